"""``import`` of files that are empty on one side of a diff, and of a diff of which nothing is left."""

from __future__ import annotations

import hashlib

import pytest
from support.bench import CORE, UTIL, Bench

from patchkit.author.diffs import read_diff
from patchkit.author.exporting import git_diff
from patchkit.edit.plan import FilePlan
from patchkit.model.load import load_patch

INTO = "@@ -0,0 +1,2 @@\n+A = 1\n+B = 2\n"
GIT = "diff --git a/demo/__init__.py b/demo/__init__.py\nindex e69de29..7a32105 100644\n"
NAMES = "--- a/demo/__init__.py\n+++ b/demo/__init__.py\n"
OTHER = "--- a/demo/core.py\n+++ b/demo/core.py\n@@ -6,1 +6,1 @@\n-    y = x + x\n+    y = 2 * x\n"
CORE_NAMES = "--- a/demo/core.py\n+++ b/demo/core.py\n"
IN_IT = f"{CORE_NAMES}@@ -5,3 +5,3 @@\n def double(x):\n-    y = x - x\n+    y = x + x\n     return y\n"
FOREIGN = "--- a/tests/t.py\n+++ b/tests/t.py\n@@ -1 +1 @@\n-a\n+b\n"
UTIL_HEAD = "diff --git a/demo/util.py b/demo/util.py\n"
BINARY = f"{UTIL_HEAD}index 1..2 100644\nBinary files a/demo/util.py and b/demo/util.py differ\n"
AGAIN = f"{UTIL_HEAD}new file mode 100644\n--- /dev/null\n+++ b/demo/util.py\n{INTO}"


def written(bench: Bench, text: str) -> str:
    path = bench.root / "work" / "pr.diff"
    path.write_bytes(text.encode())
    return str(path)


@pytest.mark.parametrize("head", [GIT, ""], ids=["git", "plain"])
def test_an_edit_of_an_empty_file_is_a_hunk_without_a_place_in_a_patch(bench: Bench, head: str) -> None:
    path = written(bench, head + NAMES + INTO + OTHER)
    done = bench.json("import", path, "--name", "mine", "--dist", "demo")
    assert (done.status, done.error["code"]) == (4, "hunks")
    assert (done.error["failing"], done.error["total"]) == (1, 2)
    (hunk,) = done.error["hunks"]
    assert (hunk["path"], hunk["diff_line"]) == ("demo/__init__.py", 6 if head else 4)
    assert "is installed empty" in hunk["reason"]
    assert list(bench.patches.iterdir()) == []


def test_the_copy_has_the_edit_of_an_empty_file(bench: Bench) -> None:
    path = written(bench, GIT + NAMES + INTO + OTHER)
    done = bench.json("import", path, "--name", "mine", "--dist", "demo", "--edit", "copy")
    assert (done.status, done.json["files"]) == (0, ["demo/__init__.py", "demo/core.py"])
    copy = bench.root / "work" / "copy" / "demo"
    assert (copy / "__init__.py").read_bytes() == b"A = 1\nB = 2\n"
    assert (copy / "core.py").read_text() == CORE.replace("x + x", "2 * x")


def test_a_diff_that_empties_a_file_does_not_take_it_away(bench: Bench) -> None:
    gone = "".join(f"-{line}\n" for line in ("X = 1", "Y = 2", "Z = 3"))
    head = "diff --git a/demo/util.py b/demo/util.py\nindex 1234567..e69de29 100644\n"
    text = f"{head}--- a/demo/util.py\n+++ b/demo/util.py\n@@ -1,3 +0,0 @@\n{gone}"
    done = bench.json("import", written(bench, text), "--name", "mine", "--dist", "demo")
    assert (done.status, done.json["removed"]) == (0, []), done.err
    assert load_patch(str(bench.patches / "mine.toml")).removes == ()
    assert bench("apply", "mine").status == 0
    assert bench.read("demo/util.py") == b""
    assert bench("revert", "mine").status == 0
    assert bench.read("demo/util.py") == UTIL.encode()


@pytest.mark.parametrize("time", ["\t1970-01-01 01:00:00.000000000 +0100", "\t1969-12-31 19:00:00 -0500"])
def test_a_file_of_1970_is_not_there(time: str) -> None:
    old, new = "--- old/demo/x.py", "+++ new/demo/x.py"
    now = "\t2024-05-01 10:00:00.000000000 +0200"
    (file,) = read_diff(f"{old}{time}\n{new}{now}\n{INTO}".encode())
    assert file.kind == "added"
    (file,) = read_diff(f"{old}{now}\n{new}{now}\n{INTO}".encode())
    assert file.kind == "changed"
    (file,) = read_diff(f"{old}{now}\n{new}{time}\n@@ -1,1 +0,0 @@\n-A = 1\n".encode())
    assert file.kind == "removed"


def test_a_plain_diff_that_does_not_tell_adds_what_the_release_has_not(bench: Bench) -> None:
    text = OTHER + f"--- a/demo/new.py\n+++ b/demo/new.py\n{INTO}"
    done = bench.json("import", written(bench, text), "--name", "mine", "--dist", "demo")
    assert done.status == 0, done.err
    assert [add.file for add in load_patch(str(bench.patches / "mine.toml")).adds] == ["demo/new.py"]


def test_an_edit_of_an_empty_file_that_the_release_has_not_is_no_new_file(bench: Bench) -> None:
    text = OTHER + (GIT + NAMES).replace("__init__", "sub") + INTO
    done = bench.json("import", written(bench, text), "--name", "mine", "--dist", "demo")
    assert done.json["left"] == [{"path": "demo/sub.py", "reason": "is no file of demo 1.0"}]


def test_the_removal_of_an_empty_file_is_exported_for_git_and_gnu_patch() -> None:
    diff = git_diff(FilePlan("demo/__init__.py", b"", None, (), (), ()))
    names = "diff --git a/demo/__init__.py b/demo/__init__.py\ndeleted file mode 100644\n"
    blob = hashlib.sha1(b"blob 0\0").hexdigest()
    assert diff.decode() == f"{names}index {blob[:7]}..0000000\n"
    (file,) = read_diff(diff)
    assert (file.path, file.kind) == ("demo/__init__.py", "removed")


@pytest.mark.parametrize(
    ("text", "code", "hint"),
    [
        (IN_IT + FOREIGN, "present", "it needs no patch"),
        (IN_IT + BINARY, "nothing-changed", "what the release has already needs no patch"),
        (AGAIN, "nothing-changed", "is changed by a diff against that release"),
        (BINARY, "nothing-changed", "the reasons say what keeps each file out"),
        (FOREIGN, "nothing-changed", "--dist names the distribution"),
    ],
)
def test_the_way_out_where_nothing_of_a_diff_is_left(bench: Bench, text: str, code: str, hint: str) -> None:
    done = bench.json("import", written(bench, text), "--name", "mine", "--dist", "demo")
    assert (done.status, done.error["code"]) == (4, code)
    assert hint in done.error["hint"]
