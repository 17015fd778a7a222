"""``import`` and ``export`` as whole commands, on a small distribution."""

from __future__ import annotations

import hashlib
import io
import sys
from pathlib import Path

import pytest
from support.bench import CORE, UTIL, Bench

from patchkit.author import importing
from patchkit.author.diffs import read_diff
from patchkit.author.exporting import git_diff
from patchkit.edit.plan import FilePlan
from patchkit.errors import UsageError
from patchkit.model.load import load_patch

DIFF = """\
From 0123456789 Mon Sep 17 00:00:00 2001
From: A Person <person@example.org>
Subject: [PATCH 1/2] Multiply, do not
 add

See https://example.org/demo/pull/123 for why.
---
diff --git a/src/demo/core.py b/src/demo/core.py
index 0000000..1111111 100644
--- a/src/demo/core.py
+++ b/src/demo/core.py
@@ -905,7 +905,7 @@ def double(x):
~
~
 def double(x):
-    y = x + x
+    y = 2 * x
     return y
~
~
diff --git a/src/demo/new.py b/src/demo/new.py
new file mode 100644
--- /dev/null
+++ b/src/demo/new.py
@@ -0,0 +1,2 @@
+A = 1
+B = 2
diff --git a/tests/test_core.py b/tests/test_core.py
--- a/tests/test_core.py
+++ b/tests/test_core.py
@@ -1 +1 @@
-a
+b
""".replace("~\n", " \n")  # blank lines of context


def written(bench: Bench, text: str) -> str:
    path = bench.root / "work" / "pr.diff"
    path.write_bytes(text.encode())
    return str(path)


def test_a_pull_request(bench: Bench) -> None:
    done = bench.json("import", written(bench, DIFF), "--name", "mine", "--dist", "demo")
    assert done.status == 0, done.err
    assert done.json["left"] == [{"path": "tests/test_core.py", "reason": "is no file of demo 1.0"}]
    patch = load_patch(str(bench.patches / "mine.toml"))
    assert patch.summary == "Multiply, do not add"
    assert patch.links == ("https://example.org/demo/pull/123",)
    assert patch.target.requirement == "demo==1.0"
    assert [(e.files, e.scope, e.find, e.text) for e in patch.edits] == [
        (("demo/core.py",), "double", "    y = x + x\n", "    y = 2 * x\n")
    ]
    assert [(add.file, add.content) for add in patch.adds] == [("demo/new.py", "A = 1\nB = 2\n")]
    assert bench("apply", "mine").status == 0
    assert bench.read("demo/core.py") == CORE.replace("x + x", "2 * x").encode()


def test_paths_that_are_not_wanted(bench: Bench) -> None:
    done = bench.json("import", written(bench, DIFF), "--name", "mine", "--dist", "demo", "--exclude", "*/new.py")
    assert (done.status, done.json["files"]) == (0, ["demo/core.py"])
    assert {"path": "src/demo/new.py", "reason": "is left out, as asked"} in done.json["left"]


def test_from_standard_input_with_crlf(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(DIFF.replace("\n", "\r\n").encode())))
    assert bench("import", "-", "--name", "mine", "--dist", "demo").status == 0
    assert bench("apply", "mine").status == 0
    assert bench.read("demo/core.py") == CORE.replace("x + x", "2 * x").encode()


def test_a_hunk_that_stands_twice_is_reported_with_both_places(bench: Bench) -> None:
    diff = "--- a/demo/core.py\n+++ b/demo/core.py\n@@ -15,1 +15,1 @@\n-        return result\n+        return 1\n"
    done = bench.json("import", written(bench, diff), "--name", "mine", "--dist", "demo")
    assert (done.status, done.error["code"]) == (4, "hunks")
    assert [(h["path"], h["diff_line"], h["candidates"]) for h in done.error["hunks"]] == [
        ("demo/core.py", 4, [13, 17])
    ]
    assert list(bench.patches.iterdir()) == []


def test_a_hunk_that_stands_nowhere_is_told_what_comes_nearest(bench: Bench) -> None:
    diff = "--- demo/core.py\n+++ demo/core.py\n@@ -6,1 +6,1 @@\n-    y = x + z\n+    y = 1\n"
    done = bench.json("import", written(bench, diff), "--name", "mine", "--dist", "demo")
    assert (done.status, done.error["code"]) == (4, "hunks")
    assert "`y = x + z` is `y = x + x` at line 6" in done.error["message"]


def test_a_change_that_the_release_has(bench: Bench) -> None:
    head = "--- a/demo/core.py\n+++ b/demo/core.py\n@@ -5,3 +5,3 @@\n"
    diff = f"{head} def double(x):\n-    y = 0\n+    y = x + x\n     return y\n"
    done = bench.json("import", written(bench, diff), "--name", "mine", "--dist", "demo")
    assert (done.status, done.error["code"]) == (4, "present")


@pytest.mark.parametrize(
    "text",
    ["", "hello\n", "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n+b\n", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n?a\n", "\0\xff"],
)
def test_what_is_no_diff(bench: Bench, text: str) -> None:
    done = bench.json("import", written(bench, text), "--name", "mine", "--dist", "demo")
    assert (done.status, done.error["code"]) == (2, "diff")


def test_a_file_without_a_final_newline() -> None:
    diff = (
        b"--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n"
    )
    (file,) = read_diff(diff)
    assert file.hunks[0].lines == ((" ", "a\n"), ("-", "b"), ("+", "c"))


def test_a_diff_that_is_cut_off() -> None:
    with pytest.raises(UsageError) as caught:
        read_diff(DIFF.encode()[:-20])
    assert caught.value.code == "diff"


def test_export(bench: Bench) -> None:
    bench.patch(
        "mine",
        '[[edit]]\nfile = "demo/core.py"\nfind = "x + x"\nreplace = "2 * x"\n'
        '[[add]]\nfile = "demo/new file.py"\ncontent = "A = 1"\n',
    )
    wanted = """\
diff --git a/src/demo/core.py b/src/demo/core.py
--- a/src/demo/core.py
+++ b/src/demo/core.py
@@ -3,7 +3,7 @@
~
~
 def double(x):
-    y = x + x
+    y = 2 * x
     return y
~
~
diff --git a/src/demo/new file.py b/src/demo/new file.py
new file mode 100644
--- /dev/null
+++ b/src/demo/new file.py\t
@@ -0,0 +1 @@
+A = 1
\\ No newline at end of file
""".replace("~\n", " \n")
    assert bench.json("export", "mine", "--prefix", "src").json["diff"] == wanted
    assert bench("apply", "mine").status == 0  # applied or not, it is the same diff
    target = bench.root / "work" / "out.diff"
    assert bench("export", "mine", "--prefix", "src/", "--output", str(target)).status == 0
    assert target.read_bytes() == wanted.encode()
    done = bench.json("export", "mine", "--prefix", "src/", "--output", "out.diff")
    assert done.json["path"] == str(target)


def test_bytes_of_any_encoding_and_line_breaks_stay() -> None:
    plan = FilePlan("a.py", b"x = '\xe9'\r\ny\r\n", b"x = '\xe9'\r\nz\r\n", (), (), ())
    assert git_diff(plan) == (
        b"diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n x = '\xe9'\r\n-y\r\n+z\r\n"
    )


def test_unusual_names_are_quoted_as_git_does() -> None:
    assert git_diff(FilePlan('é".py', None, b"", (), (), ())) == (
        b'diff --git "a/\\303\\251\\".py" "b/\\303\\251\\".py"\nnew file mode 100644\n'
    )


def test_out_and_in_again(bench: Bench, tmp_path: Path) -> None:
    bench.patch("mine", '[[edit]]\nfile = ["demo/core.py", "demo/util.py"]\nfind = "= "\nreplace = "=  "\ncount = 3\n')
    bench.files["demo/core.py"] = CORE.replace("    y = x + x\n", "    y = x + x\n    z = x\n").replace(
        "        result = None\n", ""
    )
    bench.install("1.0")
    assert bench("export", "mine", "--output", str(tmp_path / "x.diff")).status == 0
    assert bench("import", str(tmp_path / "x.diff"), "--name", "again", "--dist", "demo").status == 0
    assert bench("apply", "again").status == 0
    assert bench.read("demo/util.py") == UTIL.replace("= ", "=  ").encode()
    assert bench.read("demo/core.py") == bench.files["demo/core.py"].replace("= ", "=  ").encode()  # type: ignore[union-attr,arg-type]


def framed(data: bytes) -> str:
    """The name that git has for these bytes."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()[:7]


def test_the_names_of_the_bytes_in_a_diff_of_git_tell_which_of_two_places_it_is(bench: Bench) -> None:
    """`return result` stands twice. That the file is the diff's own, and becomes what the diff says, is proved."""
    at = CORE.rindex("        return result\n")
    after = CORE[:at] + "        return 1\n"
    head = "diff --git a/demo/core.py b/demo/core.py\nindex {}..{} 100644\n--- a/demo/core.py\n+++ b/demo/core.py\n"
    hunk = "@@ -17 +17 @@\n-        return result\n+        return 1\n"
    names = framed(CORE.encode()), framed(after.encode())
    for wrong in (("0000000", names[1]), (names[0], "0000000")):
        done = bench.json("import", written(bench, head.format(*wrong) + hunk), "--name", "mine", "--dist", "demo")
        assert (done.status, done.error["code"]) == (4, "hunks")
    for number in ("-16 +16", "-13 +13", "-900 +900"):  # no number is looked at
        diff = head.format(*names) + hunk.replace("-17 +17", number)
        assert bench("import", written(bench, diff), "--name", "mine", "--dist", "demo", "--overwrite").status == 0
        assert load_patch(str(bench.patches / "mine.toml")).edits[0].scope == "Worker.stop"
    assert bench("apply", "mine").status == 0
    assert bench.read("demo/core.py") == after.encode()


def of_git(before: str, after: str, hunks: str) -> str:
    """A diff of ``demo/core.py`` that names its bytes."""
    names = f"index {framed(before.encode())}..{framed(after.encode())} 100644"
    return f"diff --git a/demo/core.py b/demo/core.py\n{names}\n--- a/demo/core.py\n+++ b/demo/core.py\n{hunks}"


def test_an_insertion_without_context_has_its_place_by_the_names_of_the_bytes(bench: Bench) -> None:
    after = CORE.replace("    def stop(self):\n", "    def stop(self):\n        self.go = 0\n")
    diff = of_git(CORE, after, "@@ -1,0 +1 @@\n+        self.go = 0\n")
    assert bench("import", written(bench, diff), "--name", "mine", "--dist", "demo").status == 0
    assert bench("apply", "mine").status == 0
    assert bench.read("demo/core.py") == after.encode()


def test_the_names_of_the_bytes_go_before_the_heading(bench: Bench) -> None:
    """Somebody else's tool wrote the heading; that the result is the one that was meant is proved."""
    after = CORE.replace("        return result\n", "        return 1\n", 1)
    diff = of_git(CORE, after, "@@ -1 +1 @@     def stop(self):\n-        return result\n+        return 1\n")
    assert bench("import", written(bench, diff), "--name", "mine", "--dist", "demo").status == 0
    assert bench("apply", "mine").status == 0
    assert bench.read("demo/core.py") == after.encode()


def test_of_two_results_of_one_short_name_none_is_taken(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of seven digits can meet by chance: here all results bear the one in the diff."""
    real = importing._is_blob

    def meets(data: bytes, kind: str, name: str) -> bool:
        return real(data, kind, name) if data == CORE.encode() else data != CORE.encode() and name == "7777777"

    monkeypatch.setattr(importing, "_is_blob", meets)
    names = f"index {framed(CORE.encode())}..7777777 100644"
    head = f"diff --git a/demo/core.py b/demo/core.py\n{names}\n--- a/demo/core.py\n+++ b/demo/core.py\n"
    diff = f"{head}@@ -17 +17 @@\n-        return result\n+        return 1\n"
    done = bench.json("import", written(bench, diff), "--name", "mine", "--dist", "demo")
    assert (done.status, done.error["code"]) == (4, "hunks")
    (hunk,) = done.error["hunks"]
    assert hunk["candidates"] == [13, 17]


def test_of_too_many_ways_the_one_that_the_numbers_say_is_tried(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is taken because of the hash of the result alone."""
    monkeypatch.setattr(importing, "_TRIED", 1)
    at = CORE.rindex("        return result\n")
    after = CORE[:at] + "        return 1\n"
    hunk = "@@ -{0} +{0} @@\n-        return result\n+        return 1\n"
    for number in (13, 16, 900):
        diff = written(bench, of_git(CORE, after, hunk.format(number)))
        done = bench.json("import", diff, "--name", "mine", "--dist", "demo")
        assert (done.status, done.error["code"]) == (4, "hunks")
    diff = written(bench, of_git(CORE, after, hunk.format(17)))
    assert bench("import", diff, "--name", "mine", "--dist", "demo").status == 0
    assert bench("apply", "mine").status == 0
    assert bench.read("demo/core.py") == after.encode()


def test_several_places_that_make_the_same_bytes_are_one_result(bench: Bench) -> None:
    twice = CORE.replace("    y = x + x\n", "    y = x + x\n    y = x + x\n")
    bench.install("1.0", {**bench.files, "demo/core.py": twice})
    diff = of_git(twice, CORE, "@@ -6 +5,0 @@\n-    y = x + x\n")
    assert bench("import", written(bench, diff), "--name", "mine", "--dist", "demo").status == 0
    assert bench("apply", "mine").status == 0
    assert bench.read("demo/core.py") == CORE.encode()


def test_a_hunk_that_has_its_place_by_less_context_is_told(bench: Bench) -> None:
    hunk = "@@ -5,3 +5,3 @@\n def double(x):\n-    y = x + x\n+    y = 2 * x\n     return y + 1\n"
    diff = written(bench, f"--- a/demo/core.py\n+++ b/demo/core.py\n{hunk}")
    done = bench.json("import", diff, "--name", "mine", "--dist", "demo")
    assert (done.status, done.json["reduced"]) == (0, [{"path": "demo/core.py", "diff_line": 4}])
    told = "line 4 of the diff, demo/core.py: has its place by a part of its context: look at it"
    assert told in bench("import", diff, "--name", "mine", "--dist", "demo", "--overwrite").err
    done = bench.json("import", diff, "--name", "mine", "--dist", "demo", "--edit", "copy")
    assert done.json["reduced"] == [{"path": "demo/core.py", "diff_line": 4}]
    done = bench.json("import", written(bench, DIFF), "--name", "mine", "--dist", "demo", "--overwrite")
    assert done.json["reduced"] == []


def test_a_line_alone_in_another_function_is_no_place(bench: Bench) -> None:
    """All that the diff says of the place is wrong: the function, and what stands around the line."""
    lines = " a\n b\n c\n-        result = None\n+        result = 1\n d\n e\n f\n"
    diff = f"--- a/demo/core.py\n+++ b/demo/core.py\n@@ -1,7 +1,7 @@ def gone(self):\n{lines}"
    done = bench.json("import", written(bench, diff), "--name", "mine", "--dist", "demo")
    assert (done.status, done.error["code"]) == (4, "hunks")
    assert "elsewhere than the diff says (`def gone(self):`)" in done.error["message"]


def test_a_message_names_few_of_many_candidates(bench: Bench) -> None:
    bench.install("1.1", {"demo/__init__.py": "", "demo/many.py": "x = 1\n" * 900})
    diff = "--- a/demo/many.py\n+++ b/demo/many.py\n@@ -7,1 +7,1 @@\n-x = 1\n+x = 2\n"
    done = bench.json("import", written(bench, diff), "--name", "mine", "--dist", "demo")
    assert (
        "stands 900 times, at line 1, at line 2, at line 3, at line 4, at line 5 and 895 more" in done.error["message"]
    )
    assert len(done.error["hunks"][0]["candidates"]) == 900


def test_a_diff_that_converts_line_breaks_is_no_patch(bench: Bench) -> None:
    """UTIL has CRLF. The diff says so, and that one line has LF afterwards: no edit can write that."""
    diff = "--- a/demo/util.py\n+++ b/demo/util.py\n@@ -1,2 +1,2 @@\n X = 1\r\n-Y = 2\r\n+Y = 20\n"
    done = bench.json("import", written(bench, diff), "--name", "mine", "--dist", "demo")
    assert (done.status, done.error["code"]) == (4, "not-expressible")
    assert list(bench.patches.iterdir()) == []


@pytest.mark.parametrize("breaks", ["\n", "\r\n"])
def test_the_line_breaks_of_the_file_count_where_the_diff_has_others(bench: Bench, breaks: str) -> None:
    diff = "--- a/demo/util.py\n+++ b/demo/util.py\n@@ -1,2 +1,2 @@\n X = 1~-Y = 2~+Y = 20~".replace("~", breaks)
    assert bench("import", written(bench, diff), "--name", "mine", "--dist", "demo").status == 0
    assert bench("apply", "mine").status == 0
    assert bench.read("demo/util.py") == UTIL.replace("Y = 2", "Y = 20").encode()


def test_files_that_a_diff_only_names(bench: Bench) -> None:
    """`diff -ru` of one that only one side has."""
    diff = (
        "diff -ru a/demo/core.py b/demo/core.py\n"
        "--- a/demo/core.py\t2026-01-01 00:00:00\n+++ b/demo/core.py\t2026-01-02 00:00:00\n"
        "@@ -5,2 +5,2 @@\n def double(x):\n-    y = x + x\n+    y = 2 * x\n"
        "Only in b/demo: more.py\n"
    )
    done = bench.json("import", written(bench, diff), "--name", "mine", "--dist", "demo")
    assert done.status == 0
    assert [one["path"] for one in done.json["left"]] == ["demo/more.py"]
    assert "on one side of the diff alone" in done.json["left"][0]["reason"]


def test_a_new_file_with_carriage_returns_is_named(bench: Bench) -> None:
    diff = DIFF.replace("+A = 1\n+B = 2\n", "+A = 1\r\n+B = 2\r\n")
    done = bench.json("import", written(bench, diff), "--name", "mine", "--dist", "demo")
    assert done.status == 0
    assert [one["path"] for one in done.json["left"]][:1] == ["demo/new.py"]
    assert "carriage returns" in done.json["left"][0]["reason"]
