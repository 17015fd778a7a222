"""Scratch copies: whole, or none; and nowhere but where they were asked for."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support.bench import CORE, DEMO, Bench
from support.dists import keep_wheel

from patchkit.author import scratch
from patchkit.author.mark import MARK, check_mark
from patchkit.author.original import Originals
from patchkit.errors import PlanError
from patchkit.site.environment import resolve

FILES = sorted([MARK, "demo/__init__.py", "demo/core.py", "demo/util.py"])


def tree(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("there", [False, True], ids=["new", "empty"])
def test_half_a_copy_is_none(bench: Bench, monkeypatch: pytest.MonkeyPatch, there: bool) -> None:
    """The second file's original cannot be had: there is no network, and no cache has it."""
    copy = bench.root / "copies" / "demo"
    if there:
        copy.mkdir(parents=True)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    bench.write("demo/util.py", b"X = 2\n")
    done = bench.json("edit", "demo", str(copy))
    assert (done.status, done.error["code"]) == (5, "fetch")
    assert copy.exists() == there
    assert tree(bench.root / "copies") == []
    keep_wheel(bench.root / "cache", "demo", "1.0", DEMO)
    assert bench("edit", "demo", str(copy)).status == 0
    assert tree(copy) == FILES
    assert (copy / "demo" / "core.py").read_bytes() == CORE.encode()
    assert json.loads((copy / MARK).read_text()) == {"distribution": "demo", "version": "1.0"}
    assert tree(bench.root / "copies") == sorted(f"demo/{path}" for path in FILES)


def test_an_interrupt_leaves_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(self: Originals, path: str) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(Originals, "of", interrupt)
    site = resolve(directory=str(bench.site))
    with pytest.raises(KeyboardInterrupt):
        scratch.scratch_copy(site, "demo", str(bench.root / "copy"), notice=print, progress=print)
    assert not (bench.root / "copy").exists()
    assert sorted(path.name for path in bench.root.iterdir()) == ["patches", "site-packages", "work"]


def test_an_empty_folder_stays_the_same(bench: Bench) -> None:
    """As where one stands in it: ``patchkit edit demo .``."""
    copy = bench.root / "copy"
    copy.mkdir()
    before = copy.stat().st_ino
    os.chdir(copy)
    assert bench("edit", "demo", ".").status == 0
    assert (copy.stat().st_ino, tree(copy)) == (before, FILES)


def test_where_it_is_made_is_told_whole(bench: Bench) -> None:
    done = bench.json("edit", "demo")
    assert done.json["folder"] == str(bench.root / "work" / "demo-1.0")
    assert tree(bench.root / "work" / "demo-1.0") == FILES


@pytest.mark.parametrize("version", ["1.0/../../../evil", "1.0; import os", "..", "1.0-final!x", "1.0\t2"])
@pytest.mark.parametrize("command", [("edit", "demo"), ("create", "other", "demo"), ("export", "mine")])
def test_metadata_names_no_folder(bench: Bench, version: str, command: tuple[str, ...]) -> None:
    bench.patch("mine", '[[edit]]\nfile = "demo/core.py"\nfind = "x + x"\nreplace = "2 * x"\n')
    info = bench.site / "demo-1.0.dist-info" / "METADATA"
    info.write_text(f"Metadata-Version: 2.1\nName: demo\nVersion: {version}\n\n")
    before = sorted(bench.root.rglob("*"))
    done = bench.json(*command)
    assert (done.status, done.error["code"]) == (5, "metadata")
    assert "\t" not in done.error["message"]
    assert sorted(bench.root.rglob("*")) == before


def test_a_mark_that_is_none_says_nothing(tmp_path: Path, bench: Bench) -> None:
    found = resolve(directory=str(bench.site)).find("demo")
    assert found is not None
    for text in ("", "[]", '{"distribution": "demo"}', "\x00"):
        (tmp_path / MARK).write_text(text)
        check_mark(str(tmp_path), found)
    (tmp_path / MARK).write_text('{"distribution": "demo", "version": "0.9"}')
    with pytest.raises(PlanError) as caught:
        check_mark(str(tmp_path), found)
    assert caught.value.code == "stale-copy"
