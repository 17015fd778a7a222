"""Something else in a file's place, or in its folder's: named before anything is written, with the way out."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from support.bench import DEMO, UTIL, Bench
from support.dists import make_dist

REMOVE = '[[remove]]\nfile = "demo/util.py"\n'
ADD = '[[add]]\nfile = "demo/new.py"\ncontent = "N = 1\\n"\n'
SUB = '[[edit]]\nfile = "demo/sub/only.py"\nfind = "O = 1"\nreplace = "O = 2"\n'
JOURNAL = Path(".patchkit") / "journal.json"


def put(kind: str, path: Path) -> None:
    if kind == "link":
        path.symlink_to("nowhere.py")
    else:
        path.mkdir()


@pytest.mark.parametrize("kind", ["link", "folder"])
@pytest.mark.parametrize("options", [(), ("--force",)])
def test_in_the_place_of_a_file_that_was_taken_away(bench: Bench, kind: str, options: tuple[str, ...]) -> None:
    bench.patch("gone", REMOVE)
    assert bench("apply", "gone").status == 0
    target = bench.site / "demo/util.py"
    put(kind, target)
    run = bench.json("revert", "gone", *options)
    assert (run.status, run.error["code"]) == (5, "not-a-file")
    assert f"demo/util.py: a {kind}" in run.error["message"]
    assert f"`{'rm' if kind == 'link' else 'rmdir'} {target}`" in run.error["hint"]
    assert os.path.islink(target) == (kind == "link")
    (found,) = bench.json("check").json["patches"]
    assert (found["state"], f"a {kind}" in found["reason"], str(target) in found["reason"]) == ("modified", True, True)
    assert not (bench.site / JOURNAL).exists()
    target.unlink() if kind == "link" else target.rmdir()
    assert bench("revert", "gone").status == 0
    assert bench.read("demo/util.py") == UTIL.encode()


def test_a_folder_in_the_place_of_a_file_that_was_added(bench: Bench) -> None:
    bench.patch("adds", ADD)
    assert bench("apply", "adds").status == 0
    target = bench.site / "demo/new.py"
    target.unlink()
    target.mkdir()
    run = bench.json("revert", "adds", "--force")
    assert (run.status, run.error["code"]) == (5, "not-a-file")
    target.rmdir()
    target.symlink_to("nowhere.py")
    assert bench("revert", "adds").status == 0  # what is in its place is not ours
    assert os.path.islink(target)


@pytest.mark.parametrize("command", [("revert", "sub"), ("revert", "sub", "--force"), ("apply", "sub"), ("sync",)])
def test_a_folder_swapped_for_a_link_that_leads_out(bench: Bench, tmp_path: Path, command: tuple[str, ...]) -> None:
    bench.files = {**DEMO, "demo/sub/only.py": "O = 1\n"}
    bench.install("1.0")
    bench.patch("sub", SUB)
    bench.project("sub")
    assert bench("apply", "sub").status == 0
    elsewhere = tmp_path / "elsewhere"
    shutil.move(bench.site / "demo/sub", elsewhere)
    (bench.site / "demo/sub").symlink_to(elsewhere)
    if command[0] == "apply":
        bench.patch("sub", SUB.replace("O = 2", "O = 3"))
    run = bench.json(*command)
    if command[0] == "sync":
        bench.project()
        run = bench.json("sync")
    assert (run.status, run.error["code"]) == (5, "leads-out")
    assert f"{bench.site / 'demo/sub'} is a link to {elsewhere}" in run.error["message"]
    assert (elsewhere / "only.py").read_bytes() == b"O = 2\n"
    assert not (bench.site / JOURNAL).exists()
    (bench.site / "demo/sub").unlink()
    shutil.move(elsewhere, bench.site / "demo/sub")
    assert bench("revert", "sub").status == 0
    assert bench.pristine()


def test_a_file_taken_away_is_not_added_by_another_name_of_its_folder(bench: Bench) -> None:
    """A link inside of the package: two names, one file."""
    (bench.site / "demo/alias").symlink_to(".")
    bench.patch("gone", REMOVE)
    bench.patch("adds", '[[add]]\nfile = "demo/alias/util.py"\ncontent = "A = 1\\n"\n')
    bench.project("gone")
    assert bench("sync").status == 0
    bench.project("adds")
    run = bench.json("sync")
    assert (run.status, run.error["code"]) == (5, "exists")
    assert bench("revert", "gone").status == 0
    assert bench.read("demo/util.py") == UTIL.encode()
    assert bench.json("apply", "adds").error["code"] == "exists"


@pytest.mark.parametrize("back", [False, True])
def test_the_original_outlives_a_record_that_forgot_the_file(bench: Bench, back: bool) -> None:
    """Somebody rewrote RECORD, and put the very bytes there that are to be added."""
    bench.patch("mine", REMOVE)
    assert bench("apply", "mine").status == 0
    (record,) = bench.site.glob("demo-*.dist-info/RECORD")
    rows = record.read_text().splitlines(keepends=True)
    record.write_text("".join(row for row in rows if not row.startswith("demo/util.py,")))
    bench.patch("mine", '[[add]]\nfile = "demo/util.py"\ncontent = "A = 1\\n"\n')
    target = bench.site / "demo/util.py"
    if back:
        target.write_bytes(b"A = 1\n")
    run = bench.json("apply", "mine")
    assert (run.status, run.error["code"]) == (5, "exists")
    assert bench("revert", "mine", *(["--force"] if back else [])).status == 0
    assert target.read_bytes() == UTIL.encode()


def test_a_file_that_another_distribution_lists_is_not_added(bench: Bench) -> None:
    """Of one folder, as namespace packages are; somebody deleted the file by hand."""
    make_dist(bench.site, "other", "3.0", {"demo/others.py": "B = 1\n"})
    (bench.site / "demo/others.py").unlink()
    bench.patch("adds", '[[add]]\nfile = "demo/others.py"\ncontent = "A = 1\\n"\n')
    run = bench.json("apply", "adds")
    assert (run.status, run.error["code"]) == (5, "exists")
    assert "it is a file of other 3.0, though it is not there now" in run.error["message"]
    assert not (bench.site / "demo/others.py").exists()


@pytest.mark.parametrize("second", ["edit", "remove", "add"])
def test_what_a_patch_added_becomes_no_release_s(bench: Bench, second: str) -> None:
    """One path that no release has: the same patch file adds it, then does something else with it."""
    bodies = {
        "edit": ADD.replace("[[add]]", "[[edit]]").replace("content", 'find = "N = 1"\nreplace'),
        "remove": '[[remove]]\nfile = "demo/new.py"\n',
        "add": ADD.replace("N = 1", "N = 2"),
    }
    bench.patch("mine", ADD)
    assert bench("apply", "mine").status == 0
    bench.patch("mine", bodies[second])
    assert bench("apply", "mine").status == (0 if second == "add" else 4)
    assert bench("revert", "mine").status == 0
    assert not (bench.site / "demo/new.py").exists()
    assert bench.pristine()


def test_without_the_ledger_a_removal_is_not_called_taken_out(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.patch("gone", REMOVE)
    assert bench("apply", "gone").status == 0
    shutil.rmtree(bench.site / ".patchkit")
    run = bench.json("revert", "gone")
    assert (run.status, run.error["code"]) == (5, "missing")
    assert "demo/util.py" in run.error["message"]
    assert "patchkit apply gone --fetch" in run.error["hint"]
    assert "install it again" in run.error["hint"]
    assert "--fetch" in bench.json("apply", "gone").error["hint"]
    (found,) = bench.json("check", "gone").json["patches"]
    assert "patchkit apply gone --fetch" in found["reason"]
    monkeypatch.setattr("patchkit.ops.rebuild.from_wheel", lambda *_, **__: UTIL.encode())
    assert bench("apply", "gone", "--fetch").status == 0
    assert bench("revert", "gone").status == 0
    assert bench.read("demo/util.py") == UTIL.encode()
