"""Files of the release that a patch takes away: gone with their bytecode, back byte for byte."""

from __future__ import annotations

import os
import py_compile
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.bench import CORE, DEMO, UTIL, Bench

import patchkit
from patchkit.errors import PatchkitError

REMOVE = '[[remove]]\nfile = "demo/util.py"\n'
EDIT = '[[edit]]\nfile = "demo/util.py"\nfind = "X = 1"\nreplace = "X = 9"\n'
CORE_EDIT = '[[edit]]\nfile = "demo/core.py"\nfind = "x + x"\nreplace = "2 * x"\n'
MTIME = 1_600_000_000_123_456_789


def there(bench: Bench, path: str = "demo/util.py") -> bool:
    return os.path.lexists(bench.site / path)


def state(bench: Bench, name: str = "gone") -> Any:
    (found,) = (patch for patch in bench.json("check").json["patches"] if patch["name"] == name)
    return found


def forget(bench: Bench) -> None:
    (bench.site / ".patchkit" / "ledger.json").unlink()


def test_it_goes_and_comes_back_as_it_was(bench: Bench) -> None:
    target = bench.site / "demo/util.py"
    target.chmod(0o640)
    os.utime(target, ns=(MTIME, MTIME))
    bench.patch("gone", REMOVE)
    run = bench("apply", "gone")
    assert (run.status, run.out) == (0, "applied gone  (demo 1.0)\n  demo/util.py  (removed)\n")
    assert not there(bench)
    assert state(bench)["state"] == "applied"
    assert state(bench)["files"] == [{"path": "demo/util.py", "state": "applied"}]
    assert bench("apply", "gone").out.startswith("unchanged gone")
    run = bench("revert", "gone")
    assert (run.status, run.out) == (0, "reverted gone  (demo 1.0)\n  demo/util.py  (brought back)\n")
    assert target.read_bytes() == UTIL.encode()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert target.stat().st_mtime_ns == MTIME
    assert not os.path.exists(bench.site / ".patchkit" / "ledger.json")


def test_several_and_with_edits_and_new_files(bench: Bench) -> None:
    add = '[[add]]\nfile = "demo/new.py"\ncontent = "N = 1\\n"\n'
    bench.patch("gone", f'{CORE_EDIT}{add}[[remove]]\nfile = ["demo/util.py", "demo/__init__.py"]\n')
    run = bench.json("apply", "gone").json["patches"][0]
    sides = {file["path"]: (file["before_sha256"] is None, file["after_sha256"] is None) for file in run["files"]}
    assert sides == {
        "demo/core.py": (False, False),
        "demo/new.py": (True, False),
        "demo/util.py": (False, True),
        "demo/__init__.py": (False, True),
    }
    assert not there(bench)
    assert not there(bench, "demo/__init__.py")
    assert bench("check").status == 0
    assert bench("revert", "--all").status == 0
    assert bench.pristine()
    assert not there(bench, "demo/new.py")


def test_bytecode_goes_along_so_that_no_import_finds_it(bench: Bench) -> None:
    source = bench.site / "demo/util.py"
    py_compile.compile(str(source))
    py_compile.compile(str(source), cfile=str(source.with_suffix(".pyc")))  # as `compileall -b` does
    bench.patch("gone", REMOVE)
    assert bench("apply", "gone").status == 0
    done = subprocess.run([sys.executable, "-c", "import demo.util"], cwd=bench.site, capture_output=True, text=True)
    assert "No module named 'demo.util'" in done.stderr
    assert list((bench.site / "demo").rglob("util*.pyc")) == []
    assert bench("revert", "gone").status == 0
    assert subprocess.run([sys.executable, "-c", "import demo.util"], cwd=bench.site).returncode == 0


def test_for_some_versions_only(bench: Bench) -> None:
    bench.patch("gone", f'{CORE_EDIT}{REMOVE}versions = ">=2"\n')
    assert bench("apply", "gone").status == 0
    assert there(bench)
    bench.patch("none", f'{REMOVE}versions = ">=2"\n')
    run = bench.json("apply", "none")
    assert (run.status, run.error["code"]) == (3, "versions")


def test_a_dry_run_and_its_diff(bench: Bench) -> None:
    bench.patch("gone", REMOVE)
    run = bench("apply", "gone", "--dry-run", "--diff")
    assert run.status == 0
    assert "--- a/demo/util.py\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-X = 1" in run.out
    assert there(bench)
    assert bench("apply", "gone").status == 0
    assert "+++ /dev/null" in bench("diff", "gone").out
    assert bench("revert", "gone", "--dry-run", "--diff").out.count("--- /dev/null\n+++ b/demo/util.py") == 1
    assert not there(bench)


def test_conditions(bench: Bench) -> None:
    bench.patch("gone", f'{REMOVE}[[precondition]]\nfile = "demo/util.py"\nfind = "Z = 4"\n')
    run = bench.json("apply", "gone")
    assert (run.status, run.error["code"], there(bench)) == (4, "precondition", True)
    before = '[[precondition]]\nfile = "demo/util.py"\nfind = "Z = 3"\n'
    after = '[[postcondition]]\nfile = "demo/util.py"\nfind = "Z = 3"\ncount = 0\n'
    bench.patch("gone", f"{REMOVE}{before}{after}")  # in a file that is gone nothing is found
    assert bench("apply", "gone").status == 0
    assert bench("apply", "gone").out.startswith("unchanged")
    bench.patch("gone", f"{REMOVE}{before}{after.replace('count = 0', 'count = 1')}")
    run = bench.json("apply", "gone")
    assert (run.status, run.error["code"], there(bench)) == (4, "postcondition", False)


@pytest.mark.parametrize(
    ("path", "code", "status"),
    [
        ("demo/nowhere.py", "not-in-distribution", 4),
        ("other/a.py", "not-in-distribution", 4),
        ("../x.py", "patch-file", 2),
        ("demo-1.0.dist-info/RECORD", "patch-file", 2),
        ("demo/__pycache__/util.pyc", "patch-file", 2),
    ],
)
def test_only_files_of_the_distribution(bench: Bench, path: str, code: str, status: int) -> None:
    bench.patch("gone", f'[[remove]]\nfile = "{path}"\n')
    run = bench.json("apply", "gone")
    assert (run.status, run.error["code"]) == (status, code)
    assert bench.pristine()


def test_a_link_that_leads_out_is_not_followed(bench: Bench, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    shutil.move(bench.site / "demo", outside)
    (bench.site / "demo").symlink_to(outside)
    bench.patch("gone", REMOVE)
    assert bench.json("apply", "gone").error["code"] == "leads-out"
    (outside / "util.py").unlink()
    assert bench.json("apply", "gone").error["code"] == "leads-out"


def test_bytes_that_nobody_knows_are_never_taken_away(bench: Bench) -> None:
    bench.write("demo/util.py", b"MINE = 1\n")
    bench.patch("gone", REMOVE)
    run = bench.json("apply", "gone")
    assert (run.status, run.error["code"]) == (5, "modified")
    assert bench.read("demo/util.py") == b"MINE = 1\n"


@pytest.mark.parametrize("path", ["../outside.py", "/etc/passwd", "demo/../../outside.py", ".patchkit/ledger.json"])
def test_a_path_that_leads_out(bench: Bench, path: str) -> None:
    outside = bench.site.parent / "outside.py"
    outside.write_text("mine\n")
    bench.patch("gone", f'[[remove]]\nfile = "{path}"\n')
    run = bench.json("apply", "gone")
    assert (run.status, run.error["key"]) == (2, "remove[1].file")
    assert outside.read_text() == "mine\n"


def test_a_forged_record_that_leads_out(bench: Bench) -> None:
    outside = bench.site.parent / "outside.py"
    outside.write_text("mine\n")
    (info,) = bench.site.glob("demo-*.dist-info")
    with open(info / "RECORD", "a") as file:
        file.write("../outside.py,,\n")
    bench.patch("gone", '[[remove]]\nfile = "demo/../../outside.py"\n')
    assert bench("apply", "gone").status == 2
    assert outside.read_text() == "mine\n"


def test_doctor_and_lint_and_log(bench: Bench) -> None:
    bench.patch("gone", REMOVE)
    assert "warning" in bench("lint", "gone").out  # no description, as for any patch
    assert bench("lint", "gone").status == 0
    assert bench("apply", "gone").status == 0
    assert bench("doctor", "--deep").status == bench("doctor").status == 0
    assert "apply gone" in " ".join(bench("log").out.split())


# -- with other patches ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("first", ["gone", "edits"])
def test_what_one_patch_takes_away_another_cannot_edit(bench: Bench, first: str, together: bool) -> None:
    bench.patch("gone", REMOVE)
    bench.patch("edits", EDIT)
    second = "edits" if first == "gone" else "gone"
    if not together:
        assert bench("apply", first).status == 0
    before = bench.read("demo/util.py") if there(bench) else None
    run = bench.json("apply", first, second) if together else bench.json("apply", second)
    assert (run.status, run.error["code"]) == (4, "removed")
    words = "is taken away by gone" if second == "edits" else "is changed by edits"
    assert f"demo/util.py {words}" in run.error["message"]
    assert f"{second}.toml:" in run.error["message"]
    assert "conflicts" in run.error["hint"]
    assert (bench.read("demo/util.py") if there(bench) else None) == before


def test_nor_look_at_nor_add(bench: Bench) -> None:
    bench.patch("gone", REMOVE)
    bench.patch("looks", f'{CORE_EDIT}[[precondition]]\nfile = "demo/util.py"\nfind = "X = 1"\n')
    bench.patch("adds", '[[add]]\nfile = "demo/util.py"\ncontent = ""\n')
    assert bench("apply", "gone").status == 0
    for name in ("looks", "adds"):
        run = bench.json("apply", name)
        assert (run.error["code"], "is taken away by gone" in run.error["message"]) == ("removed", True), name
    assert bench.json("apply", "looks", "gone").error["code"] == "removed"


def test_two_that_take_the_same_file(bench: Bench) -> None:
    bench.patch("gone", REMOVE)
    bench.patch("too", REMOVE)
    run = bench.json("apply", "gone", "too")
    assert (run.status, run.error["code"]) == (4, "removed")
    assert bench.pristine()


def test_beside_another_patch_each_goes_back_alone(bench: Bench) -> None:
    bench.patch("gone", f"{CORE_EDIT}{REMOVE}")
    bench.patch("other", '[[edit]]\nfile = "demo/core.py"\nfind = "return y"\nreplace = "return +y"\n')
    assert bench("apply", "gone", "other").status == 0
    assert bench("revert", "other").status == 0
    assert not there(bench)
    assert bench("check").status == 0
    assert bench("apply", "other").status == 0
    assert bench("revert", "gone").status == 0
    assert bench.read("demo/util.py") == UTIL.encode()
    assert b"return +y" in bench.read("demo/core.py")
    assert state(bench, "other")["state"] == "applied"


def test_overlapping_versions_of_one_patch(bench: Bench) -> None:
    bench.patch("gone", f'{EDIT}versions = ">=1"\n{REMOVE}')
    run = bench.json("apply", "gone")
    assert (run.status, run.error["code"]) == (4, "removed")
    assert "the patch changes demo/util.py as well, in version 1.0" in run.error["message"]
    assert bench.pristine()


@pytest.mark.parametrize(("was", "now"), [(REMOVE, EDIT), (EDIT, REMOVE)])
def test_an_edited_patch_file_is_put_in_anew(bench: Bench, was: str, now: str) -> None:
    bench.patch("gone", was)
    assert bench("apply", "gone").status == 0
    bench.patch("gone", now)
    assert state(bench)["state"] == "stale"
    assert bench("apply", "gone").status == 0
    assert there(bench) == (now == EDIT)
    assert state(bench)["state"] == "applied"
    assert bench("revert", "gone").status == 0
    assert bench.pristine()


# -- drift -------------------------------------------------------------------------------------------------------------


def test_a_reinstall_brings_it_back_and_sync_takes_it_away(bench: Bench) -> None:
    bench.patch("gone", REMOVE)
    bench.project("gone")
    assert bench("sync").status == 0
    assert not there(bench)
    bench.install("1.0")
    assert state(bench)["state"] == "lost"
    assert bench("sync").status == 0
    assert not there(bench)
    assert bench("check").status == 0
    bench.project()
    assert bench("sync").status == 0
    assert bench.pristine()


def test_one_file_back_is_partial(bench: Bench) -> None:
    bench.patch("gone", f"{CORE_EDIT}{REMOVE}")
    assert bench("apply", "gone").status == 0
    (bench.site / "demo/util.py").write_bytes(UTIL.encode())
    found = state(bench)
    assert (found["state"], found["reason"]) == ("partial", "demo/util.py is pristine again: run `patchkit sync`")
    assert bench("sync").status == 0
    assert not there(bench)


def test_other_content_in_its_place(bench: Bench) -> None:
    bench.patch("gone", REMOVE)
    assert bench("apply", "gone").status == 0
    (bench.site / "demo/util.py").write_bytes(b"MINE = 1\n")
    found = state(bench)
    assert (found["state"], found["files"]) == ("modified", [{"path": "demo/util.py", "state": "modified"}])
    for command in (("apply", "gone"), ("revert", "gone"), ("sync",)):
        run = bench.json(*command)
        assert (run.status, run.error["code"]) == (5, "modified"), command
        assert "is there again, with other content" in run.error["message"]
        assert bench.read("demo/util.py") == b"MINE = 1\n"
    run = bench("revert", "gone", "--force")
    assert run.status == 0
    assert bench.read("demo/util.py") == UTIL.encode()
    (copy,) = (bench.site / ".patchkit").glob("discarded-*")
    assert copy.read_bytes() == b"MINE = 1\n"


def test_a_directory_or_a_dead_link_in_its_place(bench: Bench) -> None:
    bench.patch("gone", REMOVE)
    assert bench("apply", "gone").status == 0
    target = bench.site / "demo/util.py"
    target.symlink_to("nowhere.py")
    assert state(bench)["state"] == "modified"
    target.unlink()
    target.mkdir()
    assert state(bench)["state"] == "modified"
    target.rmdir()
    assert state(bench)["state"] == "applied"


def test_an_upgrade_and_an_uninstall(bench: Bench) -> None:
    bench.patch("gone", REMOVE)
    assert bench("apply", "gone").status == 0
    bench.install("2.0")
    assert state(bench)["state"] == "stale"
    assert bench("sync").status == 0
    assert not there(bench)
    bench.uninstall()
    assert state(bench)["state"] == "uninstalled"
    assert bench("revert", "gone").status == 0
    assert not (bench.site / "demo").exists()


def test_an_uninstall_that_left_only_what_a_patch_added(bench: Bench) -> None:
    bench.patch("gone", f'{REMOVE}[[add]]\nfile = "demo/new.py"\ncontent = "N = 1\\n"\n')
    assert bench("apply", "gone").status == 0
    for path in DEMO:
        (bench.site / path).unlink(missing_ok=True)
    (info,) = bench.site.glob("demo-*.dist-info")
    shutil.rmtree(info)
    assert bench("revert", "gone").status == 0
    assert not (bench.site / "demo").exists()


def test_where_the_metadata_alone_are_gone_it_comes_back(bench: Bench) -> None:
    bench.patch("gone", REMOVE)
    assert bench("apply", "gone").status == 0
    (info,) = bench.site.glob("demo-*.dist-info")
    shutil.rmtree(info)
    assert bench("revert", "gone").status == 0
    assert bench.pristine()


def test_a_deleted_ledger(bench: Bench) -> None:
    bench.patch("gone", REMOVE)
    bench.project("gone")
    assert bench("apply", "gone").status == 0
    forget(bench)
    found = state(bench)
    assert (found["state"], "records it again and writes no file" in found["reason"]) == ("corrupt", True)
    assert bench.json("revert", "gone").error["code"] == "corrupt"
    assert bench("sync").status == 0
    assert state(bench)["state"] == "applied"
    assert bench("revert", "gone").status == 0
    assert bench.read("demo/util.py") == UTIL.encode()


def test_a_deleted_ledger_and_its_copies(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.patch("gone", REMOVE)
    assert bench("apply", "gone").status == 0
    shutil.rmtree(bench.site / ".patchkit")
    run = bench.json("apply", "gone")
    assert (run.status, run.error["code"]) == (5, "missing")
    monkeypatch.setattr("patchkit.ops.rebuild.from_wheel", lambda *_, **__: UTIL.encode())
    assert bench("apply", "gone", "--fetch").status == 0
    assert bench("revert", "gone").status == 0
    assert bench.read("demo/util.py") == UTIL.encode()
    assert stat.S_IMODE((bench.site / "demo/util.py").stat().st_mode) == 0o644


def test_a_lost_copy_of_the_original(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.patch("gone", REMOVE)
    assert bench("apply", "gone").status == 0
    shutil.rmtree(bench.site / ".patchkit" / "blobs")
    found = state(bench)
    assert (found["state"], "the original of demo/util.py" in found["reason"]) == ("corrupt", True)
    run = bench.json("revert", "gone")
    assert (run.status, run.error["code"]) == (5, "corrupt")
    monkeypatch.setattr("patchkit.ops.rebuild.from_wheel", lambda *_, **__: UTIL.encode())
    assert bench("revert", "gone", "--fetch").status == 0
    assert bench.pristine()


def test_its_folder_stays_and_is_made_again_where_somebody_removed_it(bench: Bench) -> None:
    bench.files = {**DEMO, "demo/sub/only.py": "O = 1\n"}
    bench.install("1.0")
    bench.patch("gone", '[[remove]]\nfile = "demo/sub/only.py"\n')
    assert bench("apply", "gone").status == 0
    assert list((bench.site / "demo/sub").iterdir()) == []
    (bench.site / "demo/sub").rmdir()
    assert bench("check").status == 0
    forget(bench)
    assert bench("apply", "gone").status == 0  # of the kept copy
    assert not (bench.site / "demo/sub").exists()
    assert bench("revert", "gone").status == 0
    assert bench.pristine()


# -- asked otherwise ---------------------------------------------------------------------------------------------------


def test_require_and_the_functions(bench: Bench) -> None:
    path = bench.patch("gone", REMOVE)
    (planned,) = patchkit.plan(path, site=bench.site).patches
    assert [(file.path, file.before, file.after) for file in planned.files] == [("demo/util.py", UTIL.encode(), None)]
    patchkit.apply(path, site=bench.site)
    patchkit.require("gone", site=bench.site)
    (bench.site / "demo/util.py").write_bytes(UTIL.encode())
    with pytest.raises(PatchkitError):
        patchkit.require("gone", site=bench.site)


def test_show_and_list(bench: Bench) -> None:
    bench.patch("gone", f'{REMOVE}versions = "<2"\n')
    assert "remove 1: take away demo/util.py [only for <2]" in bench("show", "gone").out
    (listed,) = (one for one in bench.json("list").json["patches"] if one["name"] == "gone")
    assert listed["state"] == "available"
    bench.write("demo/util.py", b"MINE = 1\n")
    (listed,) = (one for one in bench.json("list").json["patches"] if one["name"] == "gone")
    assert listed["state"] == "conflict"


def test_a_link_is_a_link_again(bench: Bench, tmp_path: Path) -> None:
    """As `uv --link-mode symlink` installs: into its cache, which is not touched."""
    cache = tmp_path / "cache" / "util.py"
    cache.parent.mkdir()
    shutil.move(bench.site / "demo/util.py", cache)
    (bench.site / "demo/util.py").symlink_to(cache)
    bench.patch("gone", REMOVE)
    assert bench("apply", "gone").status == 0
    assert not there(bench)
    assert cache.read_bytes() == UTIL.encode()
    assert bench("revert", "gone").status == 0
    assert os.readlink(bench.site / "demo/util.py") == str(cache)
    assert CORE.encode() == bench.read("demo/core.py")


def test_doctor_names_sources_that_nobody_took_away(bench: Bench) -> None:
    bench.install("1.0", {**DEMO, "demo/sub/a.py": "A = 1\n", "demo/sub/deep/b.py": "B = 1\n"})
    bench.patch("gone", REMOVE)
    assert bench("apply", "gone").status == 0
    assert bench.json("doctor").status == 0
    (bench.site / "demo/core.py").unlink()
    shutil.rmtree(bench.site / "demo/sub")
    done = bench.json("doctor")
    assert done.status == 0
    found = {(one["level"], one["text"]) for one in done.json["facts"] if one["subject"] == "demo"}
    assert found == {
        ("note", "demo/core.py: is not there, and no patch took it away"),
        ("note", "demo/sub/: is not there as a whole, 2 source files"),
    }
