"""Files that are gone: by ``create`` out of a site or a scratch copy, by ``import`` and ``export`` as git has them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from support.bench import CORE, DEMO, UTIL, Bench
from support.dists import keep_wheel
from support.porting import EDIT, OLD, Porter

from patchkit.errors import SiteError
from patchkit.model.load import load_patch

DIFF = """\
diff --git a/src/demo/util.py b/src/demo/util.py
deleted file mode 100644
index 1111111..0000000
--- a/src/demo/util.py
+++ /dev/null
@@ -1,3 +0,0 @@
-X = 1
-Y = 2
-Z = 3
"""
REMOVE = '[[remove]]\nfile = "demo/util.py"\n'


@pytest.fixture(autouse=True)
def _released(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The released files at hand, as a fetched wheel would have them."""

    def from_wheel(distribution: object, path: str, *_: object) -> bytes:
        content = bench.files[path]
        return content.encode() if isinstance(content, str) else content

    monkeypatch.setattr("patchkit.ops.rebuild.from_wheel", from_wheel)


def there(bench: Bench, path: str = "demo/util.py") -> bool:
    return (bench.site / path).exists()


def removed(bench: Bench, name: str = "mine") -> list[tuple[str, ...]]:
    return [remove.files for remove in load_patch(str(bench.patches / f"{name}.toml")).removes]


# -- create ------------------------------------------------------------------------------------------------------------


def test_a_file_deleted_by_hand_becomes_a_remove_and_counts_as_applied(bench: Bench) -> None:
    (bench.site / "demo/util.py").unlink()
    done = bench("create", "mine", "demo")
    assert done.status == 0, done.err
    assert ": 1 file taken away\n  demo/util.py  (gone, taken away by the patch)\n" in done.out
    note = "demo/util.py is gone, and the patch takes it away: where nobody meant that, `patchkit "
    assert note in done.err
    assert "revert mine` brings it back; --only makes a patch of other files alone" in done.err
    assert removed(bench) == [("demo/util.py",)]
    assert bench("check").status == 0
    assert bench("revert", "mine").status == 0
    assert bench.pristine()
    assert bench("apply", "mine").status == 0
    assert not there(bench)


def test_with_a_change_and_a_new_file(bench: Bench) -> None:
    bench.write("demo/core.py", CORE.replace("x + x", "2 * x").encode())
    (bench.site / "demo/new.py").write_bytes(b"N = 1\n")
    (bench.site / "demo/util.py").unlink()
    (bench.site / "demo/__init__.py").unlink()
    done = bench("create", "mine", "demo")
    assert done.status == 0, done.err
    assert ": 1 edit, 1 new file and 2 files taken away\n" in done.out
    assert removed(bench) == [("demo/__init__.py", "demo/util.py")]
    assert "2 files are gone, and the patch takes them away: where nobody meant that" in done.err
    assert bench("revert", "mine").status == 0
    assert bench.pristine()


def test_out_of_a_scratch_copy(bench: Bench) -> None:
    assert bench("edit", "demo", "copy").status == 0
    (bench.root / "work" / "copy" / "demo" / "util.py").unlink()
    assert bench("create", "mine", "demo", "--from", "copy").status == 0
    assert removed(bench) == [("demo/util.py",)]
    assert there(bench)
    done = bench.json("create", "mine", "demo", "--from", "copy", "--overwrite")
    assert (done.json["removed"], done.json["files"], done.json["recorded"]) == (["demo/util.py"], 1, False)


def test_a_scratch_copy_has_what_a_patch_took_away(bench: Bench) -> None:
    bench.patch("gone", REMOVE)
    assert bench("apply", "gone").status == 0
    assert bench.json("edit", "demo", "copy").json["files"] == 3
    copy = bench.root / "work" / "copy" / "demo"
    assert (copy / "util.py").read_bytes() == UTIL.encode()
    assert bench.json("create", "mine", "demo", "--from", "copy").error["code"] == "nothing-changed"
    (copy / "util.py").unlink()
    assert bench("create", "mine", "demo", "--from", "copy").status == 0
    assert removed(bench) == [("demo/util.py",)]


def test_what_is_not_asked_for_is_left_out(bench: Bench) -> None:
    (bench.site / "demo/util.py").unlink()
    bench.write("demo/core.py", CORE.replace("x + x", "2 * x").encode())
    done = bench("create", "mine", "demo", "--only", "demo/core.py")
    assert (done.status, removed(bench)) == (0, [])
    assert "left out: demo/util.py is left out, as asked" in done.err


def test_bytecode_and_whole_folders_are_never_missed(bench: Bench) -> None:
    files = {**DEMO, "demo/old.pyc": b"\0\0", "demo/sub/__init__.py": "", "demo/sub/a.py": "A = 1\n"}
    bench.files = files
    bench.install("1.0")
    (bench.site / "demo/old.pyc").unlink()
    shutil.rmtree(bench.site / "demo/sub")
    assert bench.json("create", "mine", "demo").error["code"] == "nothing-changed"


def test_a_gone_file_whose_original_nobody_has_is_left_out(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(*_: object) -> bytes:
        raise SiteError("no such release", code="fetch")

    bench.patch("edits", '[[edit]]\nfile = "demo/core.py"\nfind = "x + x"\nreplace = "2 * x"\n')
    assert bench("apply", "edits").status == 0
    bench.write("demo/core.py", bench.read("demo/core.py") + b"N = 1\n")
    (bench.site / "demo/util.py").unlink()
    monkeypatch.setattr("patchkit.ops.rebuild.from_wheel", nowhere)
    done = bench("create", "mine", "demo")
    assert (done.status, removed(bench)) == (0, []), done.err
    assert "left out: demo/util.py is gone, and its original cannot be had" in done.err


def test_on_top_of_other_patches(bench: Bench) -> None:
    bench.patch("gone", REMOVE)
    bench.patch("edits", '[[edit]]\nfile = "demo/core.py"\nfind = "x + x"\nreplace = "2 * x"\n')
    assert bench("apply", "gone", "edits").status == 0
    assert bench.json("create", "mine", "demo").error["code"] == "nothing-changed"  # what a patch took is no hand edit
    (bench.site / "demo/core.py").unlink()
    (bench.site / "demo/__init__.py").unlink()
    done = bench("create", "mine", "demo")
    assert (done.status, removed(bench)) == (0, [("demo/__init__.py",)]), done.err
    assert "left out: demo/core.py is gone, and edits writes it" in done.err


def test_one_that_is_back_with_other_content(bench: Bench) -> None:
    bench.patch("gone", REMOVE)
    assert bench("apply", "gone").status == 0
    (bench.site / "demo/util.py").write_bytes(b"MINE = 1\n")
    run = bench.json("create", "mine", "demo")
    assert run.error["code"] == "nothing-changed"
    assert "demo/util.py is there again, with other content, though gone takes it away" in run.error["message"]


def test_made_anew(bench: Bench) -> None:
    (bench.site / "demo/util.py").unlink()
    assert bench("create", "mine", "demo").status == 0
    assert bench.json("create", "mine", "demo", "--overwrite").error["code"] == "nothing-changed"
    bench.write("demo/core.py", CORE.replace("x + x", "2 * x").encode())
    assert bench("create", "mine", "demo", "--overwrite").status == 0
    assert removed(bench) == [("demo/util.py",)]
    (bench.site / "demo/util.py").write_bytes(UTIL.encode())  # undone by hand
    assert bench("create", "mine", "demo", "--overwrite").status == 0
    assert removed(bench) == []
    assert bench("revert", "mine").status == 0
    assert bench.pristine()


# -- import and export -------------------------------------------------------------------------------------------------


def imported(bench: Bench, diff: str, *options: str) -> tuple[str, ...]:
    (bench.root / "work" / "pr.diff").write_bytes(diff.encode())
    return ("import", "pr.diff", "--name", "mine", "--dist", "demo", *options)


def test_a_deleted_file_of_a_diff(bench: Bench) -> None:
    done = bench(*imported(bench, DIFF))
    assert done.status == 0, done.err
    assert ": 1 file taken away\n  demo/util.py  (taken away, src/demo/util.py in the diff)\n" in done.out
    assert removed(bench) == [("demo/util.py",)]
    assert bench.json(*imported(bench, DIFF, "--overwrite")).json["files"] == ["demo/util.py"]
    assert there(bench)
    assert bench("apply", "mine").status == 0
    assert not there(bench)


def test_a_deleted_file_that_holds_something_else_here(bench: Bench) -> None:
    run = bench.json(*imported(bench, DIFF.replace("-Y = 2", "-Y = 3")))
    assert (run.status, run.error["code"]) == (4, "hunks")
    assert "demo/util.py: removes the file, which holds something else here" in run.error["message"]
    assert not (bench.patches / "mine.toml").exists()


def test_a_deleted_empty_file(bench: Bench) -> None:
    empty = "diff --git a/demo/__init__.py b/demo/__init__.py\ndeleted file mode 100644\nindex e69de29..0000000\n"
    assert bench(*imported(bench, empty)).status == 0
    assert removed(bench) == [("demo/__init__.py",)]
    done = bench.json(*imported(bench, empty.replace("__init__", "core") + DIFF, "--overwrite"))
    assert done.status == 0, done.err
    assert [left["path"] for left in done.json["left"]] == ["demo/core.py"]  # `git diff --irreversible-delete`


def test_a_deleted_file_that_is_not_shipped(bench: Bench) -> None:
    done = bench(*imported(bench, DIFF + DIFF.replace("src/demo/util", "tests/test_util")))
    assert done.status == 0
    assert "left out: tests/test_util.py is no file of demo 1.0" in done.err


@pytest.mark.parametrize("tool", [["git", "apply", "-p1"], ["patch", "-p1", "-s"]])
@pytest.mark.parametrize("applied", [False, True])
def test_what_is_exported_git_and_patch_take(bench: Bench, tmp_path: Path, tool: list[str], applied: bool) -> None:
    bench.patch("gone", '[[remove]]\nfile = ["demo/util.py", "demo/core.py"]\n')
    if applied:
        assert bench("apply", "gone").status == 0
    done = bench("export", "gone", "--output", "gone.diff")
    assert done.status == 0, done.err
    text = (bench.root / "work" / "gone.diff").read_bytes()
    assert b"deleted file mode 100644\n--- a/demo/core.py\n+++ /dev/null\n@@ -1," in text
    tree = tmp_path / "tree"
    for path, content in DEMO.items():
        target = tree / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(str(content).encode())
    subprocess.run([*tool], cwd=tree, input=text, check=True)
    assert sorted(entry.name for entry in (tree / "demo").iterdir()) == ["__init__.py"]


def test_an_empty_file_and_a_prefix(bench: Bench, tmp_path: Path) -> None:
    bench.patch("gone", '[[remove]]\nfile = ["demo/__init__.py"]\n')
    diff = bench.json("export", "gone", "--prefix", "src").json["diff"]
    names = "diff --git a/src/demo/__init__.py b/src/demo/__init__.py\n"
    assert diff == f"{names}deleted file mode 100644\nindex e69de29..0000000\n"
    (tmp_path / "tree/src/demo").mkdir(parents=True)
    (tmp_path / "tree/src/demo/__init__.py").touch()
    subprocess.run(["git", "apply"], cwd=tmp_path / "tree", input=diff.encode(), check=True)
    assert not (tmp_path / "tree/src/demo/__init__.py").exists()


SERIES = """\
From 1111111111111111111111111111111111111111 Mon Sep 17 00:00:00 2001
From: A Person <person@example.org>
Subject: [PATCH 1/2] One
---
--- a/demo/util.py
+++ b/demo/util.py
@@ -1,3 +1,3 @@
 X = 1
-Y = 2
+Y = 20
 Z = 3
--- /dev/null
+++ b/demo/new.py
@@ -0,0 +1 @@
+N = 1
From 2222222222222222222222222222222222222222 Mon Sep 17 00:00:00 2001
From: A Person <person@example.org>
Subject: [PATCH 2/2] Two
---
--- a/demo/util.py
+++ /dev/null
@@ -1,3 +0,0 @@
-X = 1
-Y = 20
-Z = 3
--- a/demo/new.py
+++ /dev/null
@@ -1 +0,0 @@
-N = 1
"""


def test_a_series_of_mails_that_changes_a_file_and_deletes_it(bench: Bench) -> None:
    assert bench(*imported(bench, SERIES)).status == 0
    patch = load_patch(str(bench.patches / "mine.toml"))
    assert (removed(bench), patch.edits, patch.adds) == ([("demo/util.py",)], (), ())
    again = "--- /dev/null\n+++ b/demo/util.py\n@@ -0,0 +1,3 @@\n+X = 1\n+Y = 2\n+Z = 30\n"
    assert bench(*imported(bench, SERIES + again, "--overwrite")).status == 0  # and brings it back, otherwise
    patch = load_patch(str(bench.patches / "mine.toml"))
    assert (patch.removes, [edit.files for edit in patch.edits]) == ((), [("demo/util.py",)])


def test_laid_into_a_scratch_copy(bench: Bench) -> None:
    done = bench(*imported(bench, DIFF, "--edit", "copy"))
    assert done.status == 0, done.err
    assert "  demo/util.py  (taken away, src/demo/util.py in the diff)\n" in done.out
    copy = bench.root / "work" / "copy" / "demo"
    assert sorted(entry.name for entry in copy.iterdir()) == ["__init__.py", "core.py"]
    assert bench("create", "mine", "demo", "--from", "copy").status == 0
    assert removed(bench) == [("demo/util.py",)]


def test_there_and_back(bench: Bench) -> None:
    bench.patch("gone", REMOVE)
    diff = bench.json("export", "gone").json["diff"]
    assert bench(*imported(bench, diff)).status == 0
    assert removed(bench) == removed(bench, "gone")


# -- releases ----------------------------------------------------------------------------------------------------------


def test_matrix_and_an_upgrade(bench: Bench, tmp_path: Path) -> None:
    core = str(DEMO["demo/core.py"])
    with_util = {"demo/core.py": core, "demo/util.py": "X = 1\n"}
    for version, files in (("1.0", with_util), ("1.1", {"demo/core.py": core}), ("1.2", with_util)):
        keep_wheel(tmp_path / "cache", "demo", version, files)
    bench.patch("gone", REMOVE)
    bench.patch("edits", '[[edit]]\nfile = "demo/core.py"\nfind = "x + x"\nreplace = "2 * x"\n')
    (column,) = bench.json("matrix", "gone", "--offline").json["patches"]
    states = {verdict["version"]: verdict["state"] for verdict in column["versions"]}
    assert states == {"1.0": "applies", "1.1": "fails", "1.2": "applies"}
    (failing,) = (verdict for verdict in column["versions"] if verdict["state"] == "fails")
    assert failing["code"] == "not-in-distribution"
    assert "demo/util.py" in failing["reason"]
    assert bench("apply", "gone", "edits").status == 0
    upgrade = bench.json("matrix", "--upgrade", "demo==1.2", "--offline").json
    assert {patch["name"]: patch["state"] for patch in upgrade["patches"]} == {"gone": "survives", "edits": "survives"}
    upgrade = bench.json("matrix", "--upgrade", "demo==1.1", "--offline").json
    assert {patch["name"]: patch["state"] for patch in upgrade["patches"]}["gone"] == "needs-port"


@pytest.mark.parametrize(
    ("versions", "there", "state", "after"),
    [
        (None, True, "ported", None),
        (None, False, "ported", "<2.0"),
        ("<2", True, "decide", None),
        ("<2", False, "ported", "<2"),
    ],
)
def test_port(bench: Bench, tmp_path: Path, versions: str | None, there: bool, state: str, after: str | None) -> None:
    porter = Porter(bench, tmp_path / "cache")
    spare = {"demo/spare.py": "S = 1\n"}
    porter.release("1.0", {"demo/core.py": OLD, **spare})
    porter.release("2.0", {"demo/core.py": OLD, **(spare if there else {})})
    only = f'versions = "{versions}"\n' if versions else ""
    path = porter.patch(f'{EDIT}[[remove]]\nfile = "demo/spare.py"\n{only}')
    run = porter()
    assert run.json["state"] == state, run.out
    if state == "decide":
        assert "demo/spare.py" in run.json["problem"]
        return
    assert porter("--write").status == 0
    assert [remove.versions for remove in load_patch(str(path)).removes] == [after]
