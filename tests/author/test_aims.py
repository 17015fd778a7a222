"""Which file of the distribution each path of a diff means: told, and never two for one."""

from __future__ import annotations

import pytest
from support.bench import CORE, Bench, Run

from patchkit.model.load import load_patch

DOUBLE = "@@ -5,3 +5,3 @@\n def double(x):\n-    y = x + x\n+    y = 2 * x\n     return y\n"
RUN = """\
@@ -11,3 +11,3 @@
     def run(self, job):
-        result = double(job)
+        result = job
         return result
"""


def changed(path: str, hunks: str = DOUBLE) -> str:
    return f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n{hunks}"


def new(path: str, text: str = "+A = 1\n") -> str:
    lines = text.count("\n")
    head = f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n"
    return f"{head}@@ -0,0 +1,{lines} @@\n{text}"


def gone(path: str, text: str = "-A = 1\n") -> str:
    lines = text.count("\n")
    head = f"diff --git a/{path} b/{path}\ndeleted file mode 100644\n--- a/{path}\n+++ /dev/null\n"
    return f"{head}@@ -1,{lines} +0,0 @@\n{text}"


def imported(bench: Bench, diff: str | bytes, *options: str) -> Run:
    path = bench.root / "work" / "pr.diff"
    path.write_bytes(diff if isinstance(diff, bytes) else diff.encode())
    return bench.json("import", str(path), "--name", "mine", "--dist", "demo", *options)


def left(done: Run) -> dict[str, str]:
    return {one["path"]: one["reason"] for one in done.json["left"]}


def called(done: Run) -> dict[str, str]:
    return {one["path"]: one["diff_path"] for one in done.json["paths"]}


def test_two_files_of_the_diff_that_one_file_of_the_distribution_could_be(bench: Bench) -> None:
    """Both changes in one file would be a third thing; and which of the two is released, the diff does not say."""
    diff = changed("src/demo/core.py") + changed("vendor/demo/core.py", RUN)
    done = imported(bench, diff)
    assert (done.status, done.error["code"]) == (4, "paths")
    assert done.error["message"].splitlines() == [
        "several files of the diff could be one file of demo 1.0:",
        "  demo/core.py: src/demo/core.py (line 2 of the diff), vendor/demo/core.py (line 10 of the diff)",
    ]
    assert "--exclude" in done.error["hint"]
    assert list(bench.patches.iterdir()) == []
    assert imported(bench, diff, "--edit", "copy").error["code"] == "paths"
    assert imported(bench, diff, "--exclude", "vendor/*").status == 0
    (edit,) = load_patch(str(bench.patches / "mine.toml")).edits
    assert edit.text == "    y = 2 * x\n"


def test_two_new_files_that_would_be_one(bench: Bench) -> None:
    done = imported(bench, new("src/demo/more.py") + new("lib/demo/more.py", "+A = 2\n"))
    assert (done.status, done.error["code"]) == (4, "paths")
    assert "demo/more.py: src/demo/more.py (line 3 of the diff), lib/demo/more.py (line 9" in done.error["message"]


def test_a_file_that_is_added_twice(bench: Bench) -> None:
    done = imported(bench, new("demo/more.py") + new("demo/more.py", "+A = 2\n"))
    assert (done.status, done.error["code"]) == (4, "paths")
    assert "demo/more.py is added twice" in done.error["message"]


def test_one_file_twice_in_one_diff_is_changed_twice(bench: Bench) -> None:
    assert imported(bench, changed("demo/core.py") + changed("demo/core.py", RUN)).status == 0
    assert bench("apply", "mine").status == 0
    assert bench.read("demo/core.py") == CORE.replace("x + x", "2 * x").replace("double(job)", "job").encode()


def test_a_series_that_adds_a_file_and_removes_it_again(bench: Bench) -> None:
    done = imported(bench, changed("demo/core.py") + new("demo/more.py") + gone("demo/more.py"))
    assert (done.status, done.json["files"]) == (0, ["demo/core.py"])
    assert left(done) == {"demo/more.py": "is added by the diff, and removed again"}
    done = imported(bench, new("demo/more.py") + gone("demo/more.py") + new("demo/more.py", "+A = 2\n"), "--overwrite")
    assert (done.status, done.json["files"], done.json["left"]) == (0, ["demo/more.py"], [])


def test_a_series_that_takes_its_change_back(bench: Bench) -> None:
    back = "@@ -5,3 +5,3 @@\n def double(x):\n-    y = 2 * x\n+    y = x + x\n     return y\n"
    done = imported(bench, changed("demo/core.py") + new("demo/more.py") + changed("demo/core.py", back))
    assert (done.status, done.json["files"]) == (0, ["demo/more.py"])
    assert left(done) == {"demo/core.py": "is in the end as it is installed: the diff takes its change back"}


def test_what_the_release_has_of_a_series_already(bench: Bench) -> None:
    """The first change of two is there: the file is changed all the same, so nothing of it is left out."""
    had = "@@ -5,3 +5,3 @@\n def double(x):\n-    y = x\n+    y = x + x\n     return y\n"
    done = imported(bench, changed("demo/core.py", had) + changed("demo/core.py", RUN))
    assert (done.status, done.json["files"], done.json["left"]) == (0, ["demo/core.py"], [])
    (edit,) = load_patch(str(bench.patches / "mine.toml")).edits
    assert edit.text == "        result = job\n"


def test_a_new_file_that_the_release_has(bench: Bench) -> None:
    done = imported(bench, changed("demo/core.py") + new("demo/util.py"))
    assert (done.status, done.json["files"]) == (0, ["demo/core.py"])
    assert left(done) == {"demo/util.py": "is a new file that demo 1.0 has already"}


def test_a_new_file_lies_where_the_changed_files_lie(bench: Bench) -> None:
    """`tests/demo/helper.py` is no file of the package, though it lies in a folder of that name."""
    done = imported(bench, changed("src/demo/core.py") + new("tests/demo/helper.py") + new("src/demo/more.py"))
    assert (done.status, done.json["files"]) == (0, ["demo/core.py", "demo/more.py"])
    assert left(done) == {"tests/demo/helper.py": "is a new file elsewhere than what the diff changes of demo (src/)"}


def test_new_files_alone_that_lie_apart(bench: Bench) -> None:
    done = imported(bench, new("src/demo/more.py") + new("tests/demo/helper.py"))
    assert (done.status, done.error["code"]) == (4, "paths")
    assert done.error["message"].splitlines() == [
        "the new files of the diff lie apart, and nothing tells which of them are of demo 1.0:",
        "  src/: src/demo/more.py (line 3 of the diff)",
        "  tests/: tests/demo/helper.py (line 9 of the diff)",
    ]
    done = imported(bench, new("src/demo/more.py") + new("tests/demo/helper.py"), "--exclude", "tests/*")
    assert (done.status, done.json["files"]) == (0, ["demo/more.py"])


def test_the_path_in_the_diff_is_told_where_it_is_another(bench: Bench) -> None:
    diff = changed("python/demo/core.py") + new("python/demo/more.py")
    done = imported(bench, diff)
    assert called(done) == {"demo/core.py": "python/demo/core.py", "demo/more.py": "python/demo/more.py"}
    done = bench("import", str(bench.root / "work" / "pr.diff"), "--name", "mine", "--dist", "demo", "--overwrite")
    assert "\n  demo/core.py  (python/demo/core.py in the diff)\n" in done.out
    done = imported(bench, diff, "--edit", "copy")
    assert called(done) == {"demo/core.py": "python/demo/core.py", "demo/more.py": "python/demo/more.py"}
    done = imported(bench, changed("demo/core.py"), "--overwrite")
    assert called(done) == {"demo/core.py": "demo/core.py"}


def test_what_is_renamed_or_copied_is_told_so(bench: Bench) -> None:
    moves = "".join(
        f"diff --git a/demo/util.py b/demo/{to}\nsimilarity index 100%\n{verb} from demo/util.py\n{verb} to demo/{to}\n"
        for verb, to in (("rename", "tools.py"), ("copy", "again.py"))
    )
    done = imported(bench, changed("demo/core.py") + moves)
    way = "by the diff: as `git diff --no-renames` writes it, it can be imported"
    assert left(done) == {
        "demo/tools.py": f"is renamed from demo/util.py {way}",
        "demo/again.py": f"is copied from demo/util.py {way}",
    }


def test_a_file_that_only_its_folder_moves_of(bench: Bench) -> None:
    """From a flat layout to a ``src`` layout: the released file is the same one."""
    hunk = DOUBLE
    diff = (
        "diff --git a/demo/core.py b/src/demo/core.py\nsimilarity index 90%\nrename from demo/core.py\n"
        f"rename to src/demo/core.py\n--- a/demo/core.py\n+++ b/src/demo/core.py\n{hunk}"
    )
    assert imported(bench, changed("demo/core.py", RUN) + diff).status == 0
    assert bench("apply", "mine").status == 0
    assert bench.read("demo/core.py") == CORE.replace("x + x", "2 * x").replace("double(job)", "job").encode()


def test_a_diff_of_two_files_of_other_names(bench: Bench) -> None:
    """`diff -u installed/core.py fixed.py`, of which nothing is renamed."""
    done = imported(bench, f"--- /venv/lib/demo/core.py\t2026-01-01\n+++ /tmp/fixed.py\t2026-01-02\n{DOUBLE}")
    assert (done.status, called(done)) == (0, {"demo/core.py": "/venv/lib/demo/core.py"})


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("demo-1.0.dist-info/METADATA", "lies in the installer's records"),
        ("../../bin/demo", "leads out of the distribution"),
        ("demo/a:b.py", "has a drive letter or a colon"),
    ],
)
def test_files_that_no_patch_can_name_are_left_out(bench: Bench, path: str, words: str) -> None:
    """They are listed in RECORD, so that they are the distribution's."""
    (info,) = bench.site.glob("demo-*.dist-info")
    with open(info / "RECORD", "a") as record:
        record.write(f"{path},,\n")
    text = "@@ -1 +1 @@\n-a\n+b\n"
    done = imported(bench, changed("demo/core.py") + changed(path, text))
    assert (done.status, done.json["files"]) == (0, ["demo/core.py"])
    assert list(left(done)) == [path]
    assert words in left(done)[path]


def test_a_new_file_that_no_patch_can_name_or_hold_is_left_out(bench: Bench) -> None:
    diff = changed("demo/core.py") + new("demo/a:b.py") + new("demo/latin.py", "+A = '~'\n")
    done = imported(bench, diff.encode().replace(b"~", b"\xe9"))
    assert (done.status, done.json["files"]) == (0, ["demo/core.py"])
    assert "has a drive letter or a colon" in left(done)["demo/a:b.py"]
    assert left(done)["demo/latin.py"] == "is a new file that is not UTF-8 text"


def test_names_in_the_quotes_of_git(bench: Bench) -> None:
    bench.install("1.0", {**bench.files, "demo/é.py": "a = 1\n"})
    done = imported(bench, '--- "a/demo/\\303\\251.py"\n+++ "b/demo/\\303\\251.py"\n@@ -1 +1 @@\n-a = 1\n+a = 2\n')
    assert (done.status, done.json["files"]) == (0, ["demo/é.py"])


def test_a_path_that_leads_upwards_is_any_path(bench: Bench) -> None:
    done = imported(bench, f"--- ../old/demo/core.py\n+++ demo/core.py\n{DOUBLE}")
    assert (done.status, called(done)) == (0, {"demo/core.py": "demo/core.py"})
