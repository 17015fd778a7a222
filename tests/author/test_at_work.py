"""``create`` while somebody's editor goes on saving, and where a step of it fails."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.bench import CORE, DEMO, Bench, Run

from patchkit.errors import SiteError
from patchkit.model.load import load_patch
from patchkit.ops.apply import apply_site
from patchkit.site.environment import resolve
from patchkit.state.lock import Holder, probe

EDITED = CORE.replace("    y = x + x\n", "    y = 2 * x\n").encode()
#: Of the same size: only the bytes and the times tell.
AGAIN = CORE.replace("    y = x + x\n", "    y = 3 * x\n").encode()
HUNK = "@@ -5,3 +5,3 @@\n def double(x):\n-    y = x + x\n+    y = 2 * x\n     return y\n"


@pytest.fixture(autouse=True)
def _released(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The released files at hand, out of the cache."""
    from support.dists import keep_wheel

    keep_wheel(bench.root / "cache", "demo", "1.0", bench.files)


def interrupted(monkeypatch: pytest.MonkeyPatch, place: str, before: Callable[[], None], *, call: int = 1) -> None:
    """Do ``before`` when a function of patchkit is called for the given time."""
    module, _, name = place.rpartition(".")
    real = getattr(__import__(module, fromlist=[name]), name)
    calls: list[None] = []

    def wrapper(*arguments: Any, **named: Any) -> Any:
        calls.append(None)
        if len(calls) == call:
            before()
        return real(*arguments, **named)

    monkeypatch.setattr(place, wrapper)


def recorded(bench: Bench) -> list[tuple[str, str]]:
    return [(patch["name"], patch["state"]) for patch in bench.json("check").json["patches"]]


def refused(bench: Bench, done: Run, path: Path) -> None:
    """Nothing was recorded or saved."""
    assert (done.status, done.error["code"]) == (5, "changed")
    assert str(path) in done.error["message"]
    assert recorded(bench) == []
    assert not (bench.patches / "mine.toml").exists()


@pytest.mark.parametrize("second", [AGAIN, CORE.encode()], ids=["edited again", "taken back"])
def test_an_editor_that_saves_before_the_plan(bench: Bench, monkeypatch: pytest.MonkeyPatch, second: bytes) -> None:
    bench.write("demo/core.py", EDITED)
    interrupted(monkeypatch, "patchkit.author.create.apply_patches", lambda: bench.write("demo/core.py", second))
    done = bench.json("create", "mine", "demo")
    assert done.status == 5
    assert bench.read("demo/core.py") == second
    assert recorded(bench) == []
    assert not (bench.patches / "mine.toml").exists()


@pytest.mark.parametrize("how", ["another file", "in place"])
def test_an_editor_that_saves_between_plan_and_record(bench: Bench, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """What was read first must not be recorded with the stat of what is there now."""
    bench.write("demo/core.py", EDITED)
    path = bench.site / "demo" / "core.py"
    save = (lambda: bench.write("demo/core.py", AGAIN)) if how == "another file" else lambda: _write(path, AGAIN)
    interrupted(monkeypatch, "patchkit.author.create.apply_patches", save, call=2)
    refused(bench, bench.json("create", "mine", "demo"), path)
    assert bench.read("demo/core.py") == AGAIN
    assert bench("create", "mine", "demo").status == 0
    assert recorded(bench) == [("mine", "applied")]
    assert bench("revert", "mine").status == 0
    assert bench.pristine()


@pytest.mark.parametrize("how", ["another file", "in place"])
def test_an_editor_that_saves_at_the_last_moment(bench: Bench, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """It is drift then, and named: the recorded stat is that of the bytes that were recorded."""
    bench.write("demo/core.py", EDITED)
    path = bench.site / "demo" / "core.py"
    save = (lambda: bench.write("demo/core.py", AGAIN)) if how == "another file" else lambda: _write(path, AGAIN)
    interrupted(monkeypatch, "patchkit.ops.commit._ledger", save)
    assert bench("create", "mine", "demo").status == 0
    assert recorded(bench) == [("mine", "modified")]


def test_an_added_file_that_is_adopted_and_edited_meanwhile(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.patch("adds", '[[add]]\nfile = "demo/new.py"\ncontent = "A = 1\\n"\n')
    (bench.site / "demo" / "new.py").write_bytes(b"A = 1\n")
    path = bench.site / "demo" / "new.py"
    interrupted(monkeypatch, "patchkit.ops.apply.commit_change", lambda: _write(path, b"A = 2\n"))
    done = bench.json("apply", "adds")
    assert (done.status, done.error["code"]) == (5, "changed")
    assert path.read_bytes() == b"A = 2\n"
    assert recorded(bench) == []


def test_a_site_is_locked_from_the_first_look(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read before the lock is had may be another command's half."""
    bench.write("demo/core.py", EDITED)
    held: list[Holder | None] = []

    def ask() -> None:
        with ThreadPoolExecutor(1) as pool:  # whoever holds the lock may take it again: asked by another
            held.append(pool.submit(probe, str(bench.site)).result())

    interrupted(monkeypatch, "patchkit.author.create.in_site", ask)
    assert bench("create", "mine", "demo").status == 0
    assert [one is not None and one.pid for one in held] == [os.getpid()]


def test_a_dry_run_looks_again_where_a_command_came_by(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else what that command wrote would be taken for a hand edit."""
    bench.write("demo/core.py", AGAIN)
    first = bench.patch("first", '[[edit]]\nfile = "demo/util.py"\nfind = "Y = 2"\nreplace = "Y = 20"\n')
    site = resolve(directory=str(bench.site))
    interrupted(
        monkeypatch,
        "patchkit.author.create.in_site",
        lambda: apply_site(site, [load_patch(str(first))], notice=print).notes.clear(),
    )
    done = bench.json("create", "mine", "demo", "--dry-run")
    assert done.status == 0, done.err
    patch = tomllib.loads(done.json["patch"])
    assert [edit["file"] for edit in patch["edit"]] == ["demo/core.py"]
    assert done.json["path"] is None


def test_a_copy_is_compared_with_a_site_at_rest(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = bench.root / "copy"
    assert bench("edit", "demo", str(copy)).status == 0
    (copy / "demo" / "core.py").write_bytes(EDITED)
    first = bench.patch("first", '[[edit]]\nfile = "demo/util.py"\nfind = "Y = 2"\nreplace = "Y = 20"\n')
    site = resolve(directory=str(bench.site))
    looks: list[None] = []
    interrupted(monkeypatch, "patchkit.author.create.compose", lambda: looks.append(None), call=2)
    interrupted(
        monkeypatch,
        "patchkit.author.create.in_folder",
        lambda: apply_site(site, [load_patch(str(first))], notice=print).notes.clear(),
    )
    done = bench.json("create", "mine", "demo", "--from", str(copy))
    assert done.status == 0, done.err
    assert looks == [None]
    assert done.json["path"] == str(bench.patches / "mine.toml")
    assert (bench.patches / "mine.toml").read_text() == done.json["patch"]


def test_a_site_that_cannot_be_written_leaves_no_patch_file(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second look is the one that writes."""
    bench.write("demo/core.py", EDITED)

    def full() -> None:
        raise SiteError("no space left", code="no-space")

    interrupted(monkeypatch, "patchkit.author.create.apply_patches", full, call=2)
    done = bench.json("create", "mine", "demo")
    assert (done.status, done.error["code"]) == (5, "no-space")
    assert [path.name for path in bench.patches.iterdir()] == ["patch.schema.json"]
    assert bench("create", "mine", "demo").status == 0
    assert recorded(bench) == [("mine", "applied")]


def test_a_patch_that_could_not_be_made_anew_is_the_one_that_was_there(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = bench.patch("mine", '[[edit]]\nfile = "demo/core.py"\nfind = "x + x"\nreplace = "2 * x"\n')
    assert bench("apply", "mine").status == 0
    before = path.read_bytes()
    bench.write("demo/core.py", EDITED.replace(b"result = None", b"result = 0"))

    def full() -> None:
        raise SiteError("no space left", code="no-space")

    interrupted(monkeypatch, "patchkit.author.create.apply_patches", full, call=2)
    assert bench.json("create", "mine", "demo", "--overwrite", "--no-schema").error["code"] == "no-space"
    assert path.read_bytes() == before
    assert [path.name for path in bench.patches.iterdir()] == ["mine.toml"]


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)


@pytest.mark.parametrize("options", [[], ["--dry-run"], ["--edit", "scratch"]])
def test_a_diff_is_laid_on_a_site_at_rest(bench: Bench, monkeypatch: pytest.MonkeyPatch, options: list[str]) -> None:
    diff = bench.root / "work" / "pr.diff"
    diff.write_text(f"--- a/demo/core.py\n+++ b/demo/core.py\n{HUNK}")
    first = bench.patch("first", '[[edit]]\nfile = "demo/core.py"\nfind = "x + x"\nreplace = "x + x + 0"\n')
    site = resolve(directory=str(bench.site))
    looks: list[None] = []
    interrupted(monkeypatch, "patchkit.author.importing.aims", lambda: looks.append(None), call=2)
    interrupted(
        monkeypatch,
        "patchkit.author.importing.read_mail",
        lambda: apply_site(site, [load_patch(str(first))], notice=print).notes.clear(),
    )
    done = bench.json("import", str(diff), "--name", "mine", "--dist", "demo", *options)
    assert (done.status, done.json["files"]) == (0, ["demo/core.py"]), done.err
    assert looks == [None]


BASE = """[[edit]]
file = "demo/core.py"
find = "x + x"
replace = "2 * x"
[[edit]]
file = "demo/more.py"
find = "M = 1"
replace = "M = 2"
[[add]]
file = "demo/new.py"
content = "N = 1\\n"
[[remove]]
file = "demo/util.py"
"""


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
@pytest.mark.parametrize("path", ["demo/util.py", "demo/new.py", "demo/more.py"])
def test_what_was_taken_out_of_another_patch_by_hand_is_not_put_back(
    bench: Bench, path: str, options: tuple[str, ...]
) -> None:
    """Nothing but the patch file and the ledger is written by ``create``."""
    released = {**DEMO, "demo/more.py": "M = 1\n"}
    bench.install("1.0", released)
    bench.patch("base", BASE)
    assert bench("apply", "base").status == 0
    target = bench.site / path
    target.unlink(missing_ok=True)
    if path in released:
        target.write_text(str(released[path]), encoding="utf-8", newline="")
    bench.write("demo/core.py", bench.read("demo/core.py").replace(b"result = None", b"result = 0"))
    before = {one: one.read_bytes() for one in bench.site.rglob("*") if one.is_file()}
    done = bench.json("create", "top", "demo", *options)
    assert (done.status, done.error["code"], done.error["paths"]) == (5, "modified", [path])
    assert {one: one.read_bytes() for one in bench.site.rglob("*") if one.is_file()} == before
    assert not (bench.patches / "top.toml").exists()
