from __future__ import annotations

import os
import py_compile
import subprocess
import sys
from pathlib import Path

import pytest

from patchkit.errors import SiteError
from patchkit.state import fs
from patchkit.state.bytecode import default_prefixes, remove_stale, stale_bytecode
from patchkit.state.ledger import Ledger
from patchkit.state.transaction import Change, commit


def touch(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    return str(path)


def test_all_tags_and_levels_of_this_file_only(tmp_path: Path) -> None:
    source = tmp_path / "pkg" / "a.py"
    cache = tmp_path / "pkg" / "__pycache__"
    ours = [
        touch(cache / name)
        for name in ("a.cpython-311.pyc", "a.cpython-313.opt-1.pyc", "a.cpython-39.opt-2.pyc", "a.pypy39.pyc")
    ]
    for other in ("ab.cpython-311.pyc", "a.b.cpython-311.pyc", "a.cpython-311.pyo", "a.pyc", "a.cpython-311.pyc.1234"):
        touch(cache / other)
    assert stale_bytecode(str(source), pycache_prefixes=[]) == sorted(ours)
    assert stale_bytecode(str(tmp_path / "pkg" / "a.txt"), pycache_prefixes=[]) == []
    dotted = stale_bytecode(str(tmp_path / "pkg" / "a.b.py"), pycache_prefixes=[])
    assert dotted == [str(cache / "a.b.cpython-311.pyc")]
    assert remove_stale(str(source), pycache_prefixes=[]) == sorted(ours)
    assert remove_stale(str(source), pycache_prefixes=[]) == []
    assert len(list(cache.iterdir())) == 5


def test_prefix_trees_also_through_a_link(tmp_path: Path) -> None:
    real = tmp_path / "real"
    touch(real / "a.py")
    (tmp_path / "link").symlink_to(real)
    prefix = tmp_path / "cache"
    by_link = touch(prefix / str(tmp_path / "link").lstrip("/") / "a.cpython-311.pyc")
    by_real = touch(prefix / str(real).lstrip("/") / "a.cpython-312.pyc")
    assert stale_bytecode(str(tmp_path / "link" / "a.py"), pycache_prefixes=[str(prefix)]) == sorted([by_link, by_real])


def test_prefixes_known_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", "/somewhere")
    monkeypatch.setattr(sys, "pycache_prefix", "/elsewhere")
    assert default_prefixes() == ("/elsewhere", "/somewhere")


@pytest.mark.parametrize("prefix", [False, True])
@pytest.mark.parametrize("mode", ["UNCHECKED_HASH", "TIMESTAMP"])
def test_python_runs_the_new_source_after_a_commit(tmp_path: Path, mode: str, prefix: bool) -> None:
    """Same size, same second: and, unchecked, a cache that Python would never compare."""
    site = tmp_path / "site"
    site.mkdir()
    source = site / "mod.py"
    source.write_bytes(b"print('old')\n")
    environment = {**os.environ, "PYTHONPATH": str(site)}
    environment.pop("PYTHONPYCACHEPREFIX", None)
    prefixes = []
    target = None
    if prefix:
        prefixes = [str(tmp_path / "cache")]
        environment["PYTHONPYCACHEPREFIX"] = prefixes[0]
        target = os.path.join(prefixes[0], str(site).lstrip("/"), f"mod.{sys.implementation.cache_tag}.pyc")
    py_compile.compile(str(source), cfile=target, invalidation_mode=py_compile.PycInvalidationMode[mode])
    commit(
        str(site),
        [Change("mod.py", str(source), b"print('old')\n", b"print('new')\n")],
        Ledger(),
        {"command": "test"},
        pycache_prefixes=prefixes,
    )
    done = subprocess.run(
        [sys.executable, "-c", "import mod"], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "new\n"


def test_bytecode_where_nobody_looked_is_stale_by_its_time_as_well(tmp_path: Path) -> None:
    """A same-size change in the same second moves the time on, so that no time-stamped cache anywhere still fits."""
    import time

    source = tmp_path / "mod.py"
    source.write_bytes(b"old")
    second = time.time_ns() // 10**9 + 1  # the commit surely runs in this second or before
    os.utime(source, ns=(second * 10**9, second * 10**9 + 5))
    commit(str(tmp_path), [Change("mod.py", str(source), b"old", b"new")], Ledger(), {"command": "test"})
    assert source.stat().st_mtime_ns == (second + 1) * 10**9


def pyc(path: Path, flags: int) -> Path:
    """A file with the header of PEP 552."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"mgc\n" + flags.to_bytes(4, "little") + bytes(8) + b"code")
    return path


def test_a_directory_is_no_bytecode(tmp_path: Path) -> None:
    (tmp_path / "__pycache__" / "a.cpython-311.pyc").mkdir(parents=True)
    assert remove_stale(str(tmp_path / "a.py"), pycache_prefixes=[]) == []


def test_a_link_among_the_bytecode_goes_alone(tmp_path: Path) -> None:
    outside = pyc(tmp_path / "elsewhere.pyc", 1)
    (tmp_path / "pkg" / "__pycache__").mkdir(parents=True)
    link = tmp_path / "pkg" / "__pycache__" / "a.cpython-311.pyc"
    link.symlink_to(outside)
    assert remove_stale(str(tmp_path / "pkg" / "a.py"), pycache_prefixes=[]) == [str(link)]
    assert outside.exists()


@pytest.mark.parametrize(("flags", "trusted"), [(0, False), (3, False), (1, True)])
def test_what_lies_behind_a_linked_cache_stays(tmp_path: Path, flags: int, trusted: bool) -> None:
    source = tmp_path / "pkg" / "a.py"
    touch(source)
    cached = pyc(tmp_path / "elsewhere" / "a.cpython-311.pyc", flags)
    (tmp_path / "pkg" / "__pycache__").symlink_to(cached.parent, target_is_directory=True)
    if trusted:
        with pytest.raises(SiteError, match=r"instead of the new a.py.*is a link to .*elsewhere") as caught:
            remove_stale(str(source), pycache_prefixes=[])
        assert (caught.value.code, caught.value.exit_status) == ("bytecode", 5)
    else:
        assert remove_stale(str(source), pycache_prefixes=[]) == []
    assert cached.exists()


@pytest.mark.parametrize(("flags", "trusted"), [(0, False), (3, False), (1, True)])
def test_what_may_not_be_removed_stays_where_python_sees_through_it(tmp_path: Path, flags: int, trusted: bool) -> None:
    source = tmp_path / "a.py"
    source.write_bytes(b"old")
    pyc(tmp_path / "__pycache__" / "a.cpython-311.pyc", flags)

    def refuse(operation: str, path: str, when: str) -> None:
        if operation == "unlink" and path.endswith(".pyc"):
            raise PermissionError(13, "Permission denied")

    with fs.observed(refuse):
        if trusted:
            with pytest.raises(SiteError) as caught:
                commit(str(tmp_path), [Change("a.py", str(source), b"old", b"new")], Ledger(), {"command": "test"})
            assert caught.value.code == "bytecode"
        else:
            commit(str(tmp_path), [Change("a.py", str(source), b"old", b"new")], Ledger(), {"command": "test"})
    assert source.read_bytes() == (b"old" if trusted else b"new")


def test_the_legacy_place_counts_once_the_source_is_gone(tmp_path: Path) -> None:
    source, beside = tmp_path / "a.py", pyc(tmp_path / "a.pyc", 0)
    touch(source)
    assert stale_bytecode(str(source), pycache_prefixes=[], legacy=True) == []
    source.unlink()
    assert stale_bytecode(str(source), pycache_prefixes=[]) == []
    assert stale_bytecode(str(source), pycache_prefixes=[], legacy=True) == [str(beside)]
