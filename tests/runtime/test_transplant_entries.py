"""The wrappers of public functions, in this process."""

from __future__ import annotations

import functools
import json
import os
import pickle
import threading
from pathlib import Path
from typing import Any

import pytest

from patchkit.runtime import entries
from patchkit.runtime.entries import Entry, Probe, is_entry, wrap


def plain(x: int = 1) -> int:
    return x + 1


@functools.lru_cache(maxsize=3)
def cached(x: int = 1) -> int:
    return x + 1


async def asynchronous() -> Any:
    yield 1


def probe() -> Probe:
    return Probe("mine", 1001, "pkg/core.py", __name__, "cached")


def test_what_is_wrapped() -> None:
    assert [is_entry(one) for one in (plain, cached, asynchronous, Probe, 3, "text", len)] == [
        *(True, True, False, False, False, False, False)
    ]


def test_many_threads_make_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them see that nobody has reported, and then one does."""
    monkeypatch.delenv("PATCHKIT_PROBES", raising=False)
    one = probe()
    barrier = threading.Barrier(8)

    class Held(dict[int, object]):
        def __contains__(self, key: object) -> bool:
            found = super().__contains__(key)
            barrier.wait()
            return found

    one.ran = Held()
    threads = [threading.Thread(target=one.fire) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert capsys.readouterr().err.count("[patchkit] probe patch=mine edit=1001 ") == 1


def test_an_entry_is_asked_for_what_it_wraps(capsys: pytest.CaptureFixture[str]) -> None:
    cached.cache_clear()
    found = wrap(cached, probe())
    assert isinstance(found, Entry)
    assert (found(2), found(2), found.cache_info().hits, found.__name__) == (3, 3, 1, "cached")
    assert repr(found) == repr(cached)
    with pytest.raises(AttributeError):
        found.nothing  # noqa: B018
    assert capsys.readouterr().err.count("probe") == 1


def test_an_entry_is_a_method_where_it_is_an_attribute_of_a_class() -> None:
    class Owner:
        value = 5
        ask = wrap(functools.lru_cache(lambda self: self.value), probe())

    assert Owner().ask() == 5
    assert isinstance(Owner.ask, Entry)


def test_a_pickle_names_the_stock_function(monkeypatch: pytest.MonkeyPatch) -> None:
    found = wrap(cached, probe())
    data = pickle.dumps(cached)
    monkeypatch.setitem(globals(), "cached", found)
    assert pickle.loads(pickle.dumps(found)) is found
    assert pickle.loads(data) is found


def test_the_record_is_one_of_a_probe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATCHKIT_PROBES", str(tmp_path / "probes"))
    wrap(plain, probe())(1)
    (path,) = (tmp_path / "probes").iterdir()
    record = json.loads(path.read_text(encoding="utf-8"))
    assert path.name.startswith(f"{os.getpid()}-")
    assert path.name.endswith("-mine-1001.json")
    assert (record["patch"], record["edit"], record["file"], record["pid"]) == (
        "mine",
        1001,
        "pkg/core.py",
        os.getpid(),
    )


def test_a_closed_stderr_is_nobodys_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries.sys, "stderr", None)
    assert wrap(plain, probe())(1) == 2
