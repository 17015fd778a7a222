"""``create``, ``edit`` and ``new`` as whole commands, on a small distribution."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest
from support.bench import CORE, UTIL, Bench
from support.dists import keep_wheel

from patchkit.model.load import load_patch


@pytest.fixture(autouse=True)
def _released(bench: Bench) -> None:
    """The released wheel at hand without network, as a fetched one lies in the cache."""
    keep_wheel(bench.root / "cache", "demo", "1.0", bench.files)


def toml(bench: Bench, name: str) -> dict[str, object]:
    return tomllib.loads((bench.patches / f"{name}.toml").read_text(encoding="utf-8"))


def test_a_hand_edit_in_the_site(bench: Bench) -> None:
    edited = CORE.replace("    y = x + x\n", "    y = 2 * x\n").encode()
    bench.write("demo/core.py", edited)
    done = bench.json("create", "mine", "demo", "--summary", "Multiply")
    assert done.status == 0, done.err
    assert done.json["originals"] == ["wheel"]
    assert toml(bench, "mine") == {
        "schema": 1,
        "name": "mine",
        "summary": "Multiply",
        "description": "Made of a hand edit of demo 1.0. Say here why, and until when it is needed.\n",
        "target": {"requirement": "demo==1.0"},
        "edit": [{"file": "demo/core.py", "scope": "double", "find": "    y = x + x\n", "replace": "    y = 2 * x\n"}],
    }
    assert bench.read("demo/core.py") == edited
    assert [p["state"] for p in bench.json("check").json["patches"]] == ["applied"]
    assert bench("revert", "mine").status == 0
    assert bench.pristine()
    assert bench("apply", "mine").status == 0
    assert bench.read("demo/core.py") == edited


def test_only_the_new_difference_becomes_the_patch(bench: Bench) -> None:
    bench.patch("first", '[[edit]]\nfile = "demo/core.py"\nfind = "x + x"\nreplace = "2 * x"\n')
    assert bench("apply", "first").status == 0
    both = bench.read("demo/core.py").replace(b"result = None", b"result = 0")
    bench.write("demo/core.py", both)
    assert bench.json("create", "second", "demo").json["originals"] == []
    patch = load_patch(str(bench.patches / "second.toml"))
    assert [(edit.scope, edit.find, edit.text) for edit in patch.edits] == [
        ("Worker.stop", "        result = None\n", "        result = 0\n")
    ]
    assert patch.target.after == ("first",)
    assert {p["name"]: p["state"] for p in bench.json("check").json["patches"]} == {
        "first": "applied",
        "second": "applied",
    }
    assert bench("revert", "first").status == 0
    assert bench.read("demo/core.py") == CORE.replace("result = None", "result = 0").encode()
    assert bench("revert", "second").status == 0
    assert bench.pristine()


def test_new_files_and_what_is_left_out(bench: Bench) -> None:
    (bench.site / "demo" / "extra.py").write_text("E = 1\n")
    (bench.site / "demo" / "core.py.orig").write_text("leftover\n")
    (bench.site / "demo" / "data.bin").write_bytes(b"\xff\x00")
    (bench.site / "demo" / "util.py").unlink()
    done = bench.json("create", "mine", "demo")
    assert done.status == 0
    assert [item["path"] for item in done.json["left"]] == ["demo/core.py.orig", "demo/data.bin"]
    assert toml(bench, "mine")["remove"] == [{"file": "demo/util.py"}]
    assert toml(bench, "mine")["add"] == [{"file": "demo/extra.py", "content": "E = 1\n"}]
    assert bench("revert", "mine").status == 0
    assert not (bench.site / "demo" / "extra.py").exists()


def test_line_breaks_of_the_file_are_kept(bench: Bench) -> None:
    edited = UTIL.replace("Y = 2", "Y = 20").encode()
    bench.write("demo/util.py", edited)
    assert bench("create", "mine", "demo").status == 0
    assert bench("revert", "mine").status == 0
    assert bench.read("demo/util.py") == UTIL.encode()
    assert bench("apply", "mine").status == 0
    assert bench.read("demo/util.py") == edited


def test_converted_line_breaks_are_no_patch(bench: Bench) -> None:
    bench.write("demo/util.py", UTIL.replace("\r\n", "\n").replace("Y = 2", "Y = 20").encode())
    done = bench.json("create", "mine", "demo")
    assert (done.status, done.error["code"], done.error["line"]) == (4, "not-expressible", 1)
    assert list(bench.patches.iterdir()) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"FIRST = 1\nLAST = 2", b"FIRST = 1\nLAST = 3\n"),
        (b"FIRST = 1\nLAST = 2\n", b"FIRST = 1\nLAST = 3"),
        (b"FIRST = 1\nLAST = 2", b"FIRST = 1\nLAST = 2\nMORE = 3\n"),
        (b"FIRST = 1\nLAST = 2", b"FIRST = 1\nLAST = 3"),
    ],
)
def test_the_line_break_at_the_end_of_a_file_comes_and_goes(bench: Bench, before: bytes, after: bytes) -> None:
    bench.install("1.1", {"demo/__init__.py": "", "demo/end.py": before})
    copy = bench.root / "copy"
    assert bench("edit", "demo", str(copy)).status == 0
    (copy / "demo" / "end.py").write_bytes(after)
    assert bench("create", "end", "demo", "--from", str(copy)).status == 0
    done = bench("lint", "--strict", "end")
    assert done.status == 0, done.out
    assert bench("apply", "end").status == 0
    assert bench.read("demo/end.py") == after
    assert bench("revert", "end").status == 0
    assert bench.read("demo/end.py") == before


def test_what_comes_outside_of_the_packages_is_named(bench: Bench) -> None:
    copy = bench.root / "copy"
    assert bench("edit", "demo", str(copy)).status == 0
    (copy / "demo" / "core.py").write_text(CORE.replace("x + x", "2 * x"))
    (copy / "other").mkdir()
    (copy / "other" / "new.py").write_text("N = 1\n")
    (copy / "alone.py").write_text("N = 1\n")
    done = bench.json("create", "mine", "demo", "--from", str(copy))
    assert done.status == 0
    assert done.json["left"] == [
        {"path": path, "reason": "is a new file outside of the packages of demo"}
        for path in ("alone.py", "other/new.py")
    ]


def test_a_scratch_copy_that_was_emptied(bench: Bench) -> None:
    """It has the mark of a copy: what is gone is taken away, one by one."""
    copy = bench.root / "copy"
    assert bench("edit", "demo", str(copy)).status == 0
    for path in copy.glob("demo/*.py"):
        path.unlink()
    done = bench.json("create", "mine", "demo", "--from", str(copy))
    assert done.status == 0
    assert done.json["removed"] == ["demo/__init__.py", "demo/core.py", "demo/util.py"]


@pytest.mark.parametrize("path", ["demo/core.py", "demo/__init__.py"])
def test_a_wheel_that_is_another_build_is_not_believed(bench: Bench, path: str) -> None:
    """RECORD's hash decides: by that wheel, what it has otherwise would become part of the patch."""
    keep_wheel(bench.root / "cache", "demo", "1.0", {**bench.files, path: CORE.replace("x + x", "x * 2")})
    bench.write(path, CORE.replace("result = None", "result = 0").encode())
    done = bench.json("create", "mine", "demo")
    assert (done.status, done.error["code"], done.error["path"]) == (5, "fetch", path)
    assert "another build" in done.error["message"]
    assert list(bench.patches.iterdir()) == []
    assert not (bench.site / ".patchkit" / "ledger.json").exists()


def test_nothing_changed(bench: Bench) -> None:
    done = bench.json("create", "mine", "demo")
    assert (done.status, done.error["code"]) == (4, "nothing-changed")


def test_a_dry_run_prints_and_leaves_everything(bench: Bench) -> None:
    bench.write("demo/core.py", CORE.replace("x + x", "2 * x").encode())
    done = bench("create", "mine", "demo", "--dry-run")
    assert (done.status, tomllib.loads(done.out)["name"]) == (0, "mine")
    assert list(bench.patches.iterdir()) == []
    assert not (bench.site / ".patchkit").exists()


def test_a_file_is_not_replaced_unasked(bench: Bench) -> None:
    path = bench.patch("mine", '[[edit]]\nfile = "demo/core.py"\nfind = "x + x"\nreplace = "3 * x"\n')
    before = path.read_bytes()
    bench.write("demo/core.py", CORE.replace("x + x", "2 * x").encode())
    done = bench.json("create", "mine", "demo")
    assert (done.status, done.error["code"]) == (2, "exists")
    assert path.read_bytes() == before
    assert bench("create", "mine", "demo", "--overwrite").status == 0
    assert path.read_bytes() != before


@pytest.mark.parametrize("name", ["../mine", "Mine", "a b", ""])
def test_a_name_that_no_patch_can_have(bench: Bench, name: str) -> None:
    done = bench.json("create", name, "demo")
    assert (done.status, done.error["code"]) == (2, "usage")


def test_a_distribution_that_is_not_there(bench: Bench) -> None:
    done = bench.json("create", "mine", "nothing")
    assert (done.status, done.error["code"]) == (3, "not-installed")


def test_a_scratch_copy(bench: Bench) -> None:
    bench.patch("first", '[[edit]]\nfile = "demo/core.py"\nfind = "x + x"\nreplace = "2 * x"\n')
    assert bench("apply", "first").status == 0
    copy = bench.root / "copy"
    done = bench("edit", "demo", str(copy))
    assert done.status == 0, done.err
    assert (copy / "demo" / "core.py").read_bytes() == CORE.encode()  # pristine, not as patched
    assert (copy / "demo" / "util.py").read_bytes() == UTIL.encode()
    (copy / "demo" / "core.py").write_text(CORE.replace("result = None", "result = 0"))
    (copy / "demo" / "new.py").write_text("N = 1\n")
    before = bench.read("demo/core.py")
    assert bench("create", "second", "demo", "--from", str(copy)).status == 0
    assert bench.read("demo/core.py") == before
    assert [p["name"] for p in bench.json("check").json["patches"]] == ["first"]
    assert bench("apply", "second").status == 0
    assert bench.read("demo/core.py") == before.replace(b"result = None", b"result = 0")
    assert bench.read("demo/new.py") == b"N = 1\n"


def test_a_scratch_copy_of_another_release_is_refused(bench: Bench) -> None:
    copy = bench.root / "copy"
    assert bench("edit", "demo", str(copy)).status == 0
    (copy / "demo" / "core.py").write_text("changed = 1\n")
    bench.install("1.1")
    done = bench.json("create", "mine", "demo", "--from", str(copy))
    assert (done.status, done.error["code"], done.error["held"]) == (4, "stale-copy", "1.0")


def test_a_folder_that_is_no_copy(bench: Bench, tmp_path: Path) -> None:
    done = bench.json("create", "mine", "demo", "--from", str(tmp_path))
    assert (done.status, done.error["code"]) == (5, "not-a-copy")


def test_a_copy_is_not_made_over_something(bench: Bench) -> None:
    (bench.root / "copy").mkdir()
    (bench.root / "copy" / "mine.txt").write_text("keep")
    done = bench.json("edit", "demo", str(bench.root / "copy"))
    assert (done.status, done.error["code"]) == (2, "exists")
    assert os.listdir(bench.root / "copy") == ["mine.txt"]


def test_a_file_to_start_from_loads_and_names_what_is_installed(bench: Bench) -> None:
    assert bench("new", "mine", "demo").status == 0
    patch = load_patch(str(bench.patches / "mine.toml"))
    assert (patch.target.requirement, patch.edits[0].files) == ("demo==1.0", ("demo/core.py",))
    assert bench("new", "other", "not-here").status == 0
    assert load_patch(str(bench.patches / "other.toml")).target.requirement == "not-here"
    assert bench.json("new", "mine", "demo").error["code"] == "exists"


def test_a_file_that_does_not_parse_gets_edits_without_scope(
    bench: Bench,
) -> None:
    files = {"demo/old.py": "print 'a'\nprint 'b'\n"}
    bench.install("1.0", files)
    keep_wheel(bench.root / "cache", "demo", "1.0", files)
    bench.write("demo/old.py", b"print 'a'\nprint 'c'\n")
    assert bench("create", "mine", "demo").status == 0
    assert toml(bench, "mine")["edit"] == [{"file": "demo/old.py", "find": "print 'b'\n", "replace": "print 'c'\n"}]


@pytest.mark.parametrize(
    ("old", "new", "match", "replace"),
    [
        ("    y = x + x\n", "    y = 2 * x\n", "y = x + x", "y = 2 * x"),
        ("        result = double(job)\n", "        result = double(job, 1)\n", "double(job)", "double(job, 1)"),
        ("    y = x + x\n", "    y, z = x, x\n", "y = x + x", "y, z = x, x"),
    ],
)
def test_syntax_edits_are_offered(bench: Bench, old: str, new: str, match: str, replace: str) -> None:
    edited = CORE.replace(old, new).encode()
    bench.write("demo/core.py", edited)
    assert bench("create", "mine", "demo", "--syntax").status == 0
    (edit,) = load_patch(str(bench.patches / "mine.toml")).edits
    assert (edit.match, edit.text) == (match, replace)
    assert bench("revert", "mine").status == 0
    assert bench("apply", "mine").status == 0
    assert bench.read("demo/core.py") == edited
