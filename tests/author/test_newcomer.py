"""``create``, ``edit``, ``new``, ``import`` and ``export`` as somebody meets them who does not know them yet."""

from __future__ import annotations

import importlib.util
import os
import shlex
import sys
import tomllib
from pathlib import Path

import pytest
from support.bench import CORE, DEMO, UTIL, Bench
from support.dists import keep_wheel, make_dist

from patchkit.model.load import load_patch

ADDS = '[[add]]\nfile = "demo/new.py"\ncontent = "A = 1\\nB = 2\\nC = 3\\n"\n'
DOUBLE = '[[edit]]\nfile = "demo/core.py"\nfind = "x + x"\nreplace = "2 * x"\n'
CHANGED = CORE.replace("x + x", "2 * x")


@pytest.fixture(autouse=True)
def _released(bench: Bench) -> None:
    """The released wheel at hand, as a fetched one lies in the cache."""
    keep_wheel(bench.root / "cache", "demo", "1.0", bench.files)


def states(bench: Bench) -> dict[str, str]:
    return {patch["name"]: patch["state"] for patch in bench.json("check").json["patches"]}


def written(bench: Bench, text: str) -> str:
    path = bench.root / "work" / "pr.diff"
    path.write_bytes(text.encode())
    return str(path)


def imported(bench: Bench, diff: str, *options: str) -> tuple[str, ...]:
    return ("import", written(bench, diff), "--name", "mine", "--dist", "demo", *options)


# -- create ------------------------------------------------------------------------------------------------------------


def test_an_edit_of_a_file_that_a_patch_added(bench: Bench) -> None:
    bench.patch("adds", ADDS)
    assert bench("apply", "adds").status == 0
    edited = b"A = 1\nB = 20\nC = 3\n"
    bench.write("demo/new.py", edited)
    assert bench("create", "mine", "demo").status == 0
    patch = load_patch(str(bench.patches / "mine.toml"))
    assert (patch.target.after, [edit.files for edit in patch.edits]) == (("adds",), [("demo/new.py",)])
    assert bench.read("demo/new.py") == edited
    assert states(bench) == {"adds": "applied", "mine": "applied"}
    assert bench("revert", "mine").status == 0
    assert bench.read("demo/new.py") == b"A = 1\nB = 2\nC = 3\n"
    assert bench("apply", "mine").status == 0
    assert bench.read("demo/new.py") == edited


def test_a_file_that_a_patch_added_and_somebody_removed_is_named(bench: Bench) -> None:
    bench.patch("adds", ADDS)
    assert bench("apply", "adds").status == 0
    (bench.site / "demo" / "new.py").unlink()
    error = bench.json("create", "mine", "demo").error
    assert error["left"] == [
        {
            "path": "demo/new.py",
            "reason": "is gone, and adds writes it: what another patch writes cannot be taken away",
        }
    ]


def test_a_patch_made_anew_has_both_changes(bench: Bench) -> None:
    bench.write("demo/core.py", CHANGED.encode())
    (bench.site / "demo" / "new.py").write_bytes(b"A = 1\n")
    assert bench("create", "mine", "demo", "--summary", "Twice", "--link", "https://example.org/1").status == 0
    both = CHANGED.replace("result = None", "result = 0").encode()
    bench.write("demo/core.py", both)
    bench.write("demo/new.py", b"A = 1\nB = 2\n")
    assert bench.json("create", "mine", "demo").error["code"] == "exists"
    done = bench("create", "mine", "demo", "--overwrite")
    assert done.status == 0, done.err
    patch = load_patch(str(bench.patches / "mine.toml"))
    assert [(edit.find, edit.text) for edit in patch.edits] == [
        ("    y = x + x\n", "    y = 2 * x\n"),
        ("        result = None\n", "        result = 0\n"),
    ]
    assert [add.content for add in patch.adds] == ["A = 1\nB = 2\n"]
    assert (patch.summary, patch.links, patch.target.after) == ("Twice", ("https://example.org/1",), ())
    assert (bench.read("demo/core.py"), bench.read("demo/new.py")) == (both, b"A = 1\nB = 2\n")
    assert states(bench) == {"mine": "applied"}
    assert bench("revert", "mine").status == 0
    assert bench.pristine()
    assert not (bench.site / "demo" / "new.py").exists()
    assert bench("apply", "mine").status == 0
    assert (bench.read("demo/core.py"), bench.read("demo/new.py")) == (both, b"A = 1\nB = 2\n")


def test_a_patch_made_anew_between_others(bench: Bench) -> None:
    """Its base is what is under it; what lies above stays, and an edit of a file that is covered is refused."""
    bench.patch("low", '[[edit]]\nfile = "demo/core.py"\nfind = "A module."\nreplace = "The module."\n' + ADDS)
    bench.patch("mine", DOUBLE + '[[edit]]\nfile = "demo/new.py"\nfind = "A = 1"\nreplace = "A = 10"\n')
    bench.patch("high", '[[edit]]\nfile = "demo/core.py"\nfind = "result = None"\nreplace = "result = 0"\n')
    assert bench("apply", "low", "mine", "high").status == 0
    covered = bench.read("demo/core.py")
    bench.write("demo/new.py", b"A = 10\nB = 2\nC = 30\n")
    assert bench("create", "mine", "demo", "--overwrite").status == 0
    assert bench.read("demo/core.py") == covered
    patch = load_patch(str(bench.patches / "mine.toml"))
    assert [(edit.files[0], edit.find, edit.text) for edit in patch.edits] == [
        ("demo/core.py", "    y = x + x\n", "    y = 2 * x\n"),
        ("demo/new.py", "A = 1\nB = 2\nC = 3\n", "A = 10\nB = 2\nC = 30\n"),
    ]
    assert patch.target.after == ("low",)
    assert set(states(bench).values()) == {"applied"}
    assert bench("revert", "mine").status == 0
    assert bench.read("demo/new.py") == b"A = 1\nB = 2\nC = 3\n"
    assert bench("apply", "mine").status == 0
    before = (bench.patches / "low.toml").read_bytes()
    bench.write("demo/core.py", bench.read("demo/core.py") + b"\nlast = 1\n")
    done = bench.json("create", "low", "demo", "--overwrite")
    assert (done.status, done.error["code"], done.error["path"]) == (4, "beneath", "demo/core.py")
    assert (bench.patches / "low.toml").read_bytes() == before


def test_a_patch_that_needs_not_be_made_anew(bench: Bench) -> None:
    bench.patch("mine", DOUBLE)
    assert bench("apply", "mine").status == 0
    assert bench.json("create", "mine", "demo", "--overwrite").error["code"] == "nothing-changed"


def test_converted_line_breaks_alone_are_not_expressible(bench: Bench) -> None:
    bench.write("demo/util.py", UTIL.replace("\r\n", "\n").encode())
    error = bench.json("create", "mine", "demo").error
    assert (error["code"], error["path"]) == ("not-expressible", "demo/util.py")


def test_what_cannot_be_expressed_does_not_keep_the_rest_out(bench: Bench) -> None:
    bench.write("demo/util.py", UTIL.replace("\r\n", "\n").replace("Y = 2", "Y = 20").encode())
    bench.write("demo/__init__.py", b"V = 1\n")
    bench.write("demo/core.py", CHANGED.encode())
    done = bench("create", "mine", "demo")
    assert done.status == 0, done.err
    assert "byte for byte, the edited ones, of the files in it\n" in done.out
    assert "left out: demo/util.py cannot be written as edits" in done.err
    assert "left out: demo/__init__.py is empty as installed" in done.err
    assert [edit.files for edit in load_patch(str(bench.patches / "mine.toml")).edits] == [("demo/core.py",)]
    assert bench.read("demo/util.py") == UTIL.replace("\r\n", "\n").replace("Y = 2", "Y = 20").encode()


def test_where_nothing_can_be_expressed_the_reasons_are_told(bench: Bench) -> None:
    (bench.site / "demo" / "data.bin").write_bytes(b"\xff\x00")
    (bench.site / "demo" / "core.py.orig").write_text("x\n")
    error = bench.json("create", "mine", "demo").error
    assert error["code"] == "nothing-changed"
    assert [item["path"] for item in error["left"]] == ["demo/core.py.orig", "demo/data.bin"]
    for item in error["left"]:
        assert f"\n  {item['path']} {item['reason']}" in error["message"]


def test_a_listed_file_with_the_name_of_a_leftover_is_none(bench: Bench) -> None:
    bench.install("1.0", {**DEMO, "demo/sample.bak": "x\n"})
    bench.write("demo/core.py", CHANGED.encode())
    assert bench.json("create", "mine", "demo").json["left"] == []


def test_only_what_is_asked_for(bench: Bench) -> None:
    bench.write("demo/core.py", CHANGED.encode())
    bench.write("demo/util.py", UTIL.replace("Y = 2", "Y = 20").encode())
    (bench.site / "demo" / "new.py").write_text("A = 1\n")
    done = bench("create", "mine", "demo", "--only", "demo/c*.py", "--only", "nothing/*")
    assert done.status == 0, done.err
    patch = load_patch(str(bench.patches / "mine.toml"))
    assert ([edit.files for edit in patch.edits], patch.adds) == ([("demo/core.py",)], ())
    assert "left out: demo/util.py is left out, as asked\n" in done.err
    assert "left out: demo/new.py is left out, as asked\n" in done.err
    assert "--only nothing/*: nothing that differs fits it\n" in done.err
    assert bench("create", "rest", "demo").status == 0
    rest = load_patch(str(bench.patches / "rest.toml"))
    assert [edit.files for edit in rest.edits] == [("demo/util.py",)]


@pytest.mark.parametrize("path", ["demo/core.py", "demo/new.py"])
def test_an_edit_that_does_not_parse_is_told_where_it_was_made(bench: Bench, path: str) -> None:
    (bench.site / "demo" / "new.py").write_bytes(b"")
    bench.write(path, b"x = 1\ndef (\n")
    error = bench.json("create", "mine", "demo").error
    assert (error["code"], error["path"], error["line"]) == ("syntax", path, 2)
    assert error["message"].startswith(f"{path}:2: ")
    assert "toml" not in error["message"]


def test_an_edit_that_went_into_the_cache_of_uv_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = bench.root / "uv"
    monkeypatch.setenv("UV_CACHE_DIR", str(cache))
    wheel = cache / "archive-v0" / "abc"
    make_dist(wheel, "demo", "1.0", DEMO, installer="uv")
    make_dist(bench.site, "demo", "1.0", DEMO, installer="uv")
    for path in DEMO:
        (bench.site / path).unlink()
        os.link(wheel / path, bench.site / path)
    (bench.site / "demo" / "core.py").write_text(CHANGED)  # in place: through the link
    bench.sited = True
    done = bench("create", "mine", "demo")
    assert done.status == 0, done.err
    assert "tainted: demo/core.py" in done.err
    assert "uv cache clean demo" in done.err
    assert f"`patchkit --site {bench.site} sync`" in done.err


def test_the_log_has_it_as_create(bench: Bench) -> None:
    bench.write("demo/core.py", CHANGED.encode())
    assert bench("create", "mine", "demo").status == 0
    (event,) = bench.json("log").json["events"]
    assert (event["command"], event["files"]) == ("create", 1)  # the file that it counts as applied, written by hand
    assert "  create   mine  1 file  " in bench("log").out
    assert bench("revert", "mine").status == 0
    assert [event["files"] for event in bench.json("log").json["events"]] == [1, 1]


def test_a_copy_of_another_distribution(bench: Bench) -> None:
    make_dist(bench.site, "other", "2.0", {"other/a.py": "A = 1\n"})
    copy = bench.root / "copy"
    assert bench("edit", "other", str(copy)).status == 0
    error = bench.json("create", "mine", "demo", "--from", str(copy)).error
    assert (error["code"], error["message"]) == ("stale-copy", f"{copy}: is a copy of other 2.0, not of demo")
    error = bench.json("create", "mine", "demo", "--from", str(bench.root / "nowhere")).error
    assert (error["code"], error["message"]) == ("not-a-copy", f"{bench.root / 'nowhere'}: no such folder")


# -- what is proposed --------------------------------------------------------------------------------------------------


def test_every_command_that_is_proposed_is_for_the_same_site(bench: Bench) -> None:
    bench.sited = True
    head = f"patchkit --site {bench.site}"
    copy = bench.root / "copy"
    assert f"{head} create NAME demo --from {copy}" in bench("edit", "demo", str(copy)).out
    assert f"{head} apply " in bench("new", "first", "demo").out
    assert f"`{head} edit`" in bench("create", "mine", "demo").err
    (copy / "demo" / "core.py").write_text(CHANGED)
    toml = bench.patches / "mine.toml"
    assert f"next: {head} apply {toml}\n" in bench("create", "mine", "demo", "--from", str(copy)).out
    diff = "--- a/demo/core.py\n+++ b/demo/core.py\n@@ -6,1 +6,1 @@\n-    y = x + x\n+    y = 1\n"
    assert f"next: {head} apply {toml} --dry-run --diff\n" in bench(*imported(bench, diff, "--overwrite")).out
    missing = diff.replace("x + x", "x + z")
    assert f"`{head} create`" in bench(*imported(bench, missing, "--overwrite")).err
    bench.write("demo/core.py", CHANGED.encode())
    assert f"`{head} revert second`" in bench("create", "second", "demo").out


def test_what_check_apply_and_doctor_propose_is_for_the_same_site(bench: Bench) -> None:
    bench.sited = True
    head = f"patchkit --site {bench.site}"
    bench.patch("mine", DOUBLE)
    bench.project("mine")
    found = bench("check").out
    assert f"`{head} sync`" in found
    assert f"`{head} apply mine`" in found
    assert f"`{head} list`" in bench("apply", "none").err
    assert bench("apply", "mine").status == 0
    bench.write("demo/core.py", bench.read("demo/core.py").replace(b"2 * x", b"3 * x"))
    assert f"`{head} diff mine`" in bench("check").out
    assert f"`{head} check`" in bench("list").out
    assert f"`{head} check`" in bench("show", "mine").out
    assert f"`{head} revert mine --force`" in bench("revert", "mine").err
    assert f"{head} " in bench("sync").err
    assert bench("revert", "mine", "--force").status == 0
    bench.write("demo/core.py", bench.read("demo/core.py") + b"X = 1\n")
    assert f"`{head} create NAME demo`" in bench("apply", "mine").err
    assert f"`{head} create NAME demo`" in bench("doctor", "--deep").out


def test_who_finds_a_hand_edit_says_how_to_keep_it(bench: Bench) -> None:
    bench.patch("mine", DOUBLE)
    bench.write("demo/core.py", CORE.replace("result = None", "result = 0").encode())
    way = "`patchkit create NAME demo`"
    assert way in bench.json("apply", "mine").error["hint"]
    assert way in next(p["reason"] for p in bench.json("list").json["patches"] if p["name"] == "mine")
    assert way in " ".join(fact["hint"] or "" for fact in bench.json("doctor", "--deep").json["facts"])
    assert "patchkit create NAME DIST --dry-run" in bench("diff").err


# -- new ---------------------------------------------------------------------------------------------------------------


def test_a_target_that_no_patch_can_have_is_told(bench: Bench, tmp_path: Path) -> None:
    assert "dmeo is not installed in" in bench("new", "typo", "dmeo").err
    assert "(did you mean demo?)" in bench("new", "typo", "dmeo", "--overwrite").err
    source = '{"url": "file:///src", "dir_info": {"editable": true}}'
    make_dist(bench.site, "soft", "1.0", {"soft.py": ""}, info_files={"direct_url.json": source})
    assert "soft is installed in editable mode" in bench("new", "soft", "soft").err
    assert bench("new", "good", "demo").err == ""


def test_the_untouched_template_is_a_warning(bench: Bench) -> None:
    bench("new", "mine", "demo")
    findings = bench.json("lint", "mine").json["findings"]
    told = [(finding["level"], finding["key"]) for finding in findings]
    assert told == [("note", "links"), ("warning", "summary")]


# -- import and export -------------------------------------------------------------------------------------------------

HEAD = "--- a/src/demo/core.py\n+++ b/src/demo/core.py\n"
FITS = "@@ -6,1 +6,1 @@\n-    y = x + x\n+    y = 2 * x\n"
#: One hunk with two changes, of which one stands twice and one nowhere.
STRAYS = "@@ -30,3 +30,3 @@\n-        return result\n+        return 1\n     return y\n-two = 1\n+two = 2\n"
UTIL_DIFF = "--- a/src/demo/util.py\n+++ b/src/demo/util.py\n@@ -1,1 +1,1 @@\n-X = 0\n+X = 1\n"


def test_hunks_are_counted_not_their_parts(bench: Bench) -> None:
    error = bench.json(*imported(bench, HEAD + FITS + STRAYS)).error
    assert error["message"].startswith("1 of 2 hunks has no single place in demo 1.0:")
    assert (error["failing"], error["total"], len(error["hunks"])) == (1, 2, 2)
    assert "--exclude demo/core.py" in error["hint"]


def test_a_file_that_has_it_all_already_does_not_block_the_rest(bench: Bench) -> None:
    done = bench.json(*imported(bench, HEAD + FITS + UTIL_DIFF))
    assert done.status == 0, done.err
    assert done.json["left"] == [{"path": "demo/util.py", "reason": "the release has it already"}]
    assert (done.json["files"], done.json["hunks"]) == (["demo/core.py"], 1)


@pytest.mark.parametrize("pattern", ["demo/core.py", "src/demo/core.py", "demo/c*"])
def test_a_path_is_excluded_by_either_of_its_names(bench: Bench, pattern: str) -> None:
    diff = HEAD + STRAYS + UTIL_DIFF.replace("X = 1", "Y = 3").replace("X = 0", "Y = 2")
    done = bench("import", written(bench, diff), "--name", "mine", "--dist", "demo", "--exclude", pattern)
    assert done.status == 0, done.err
    assert "the one hunk in it has its one place\n" in done.out
    assert "--exclude" not in done.err


EMPTY = """diff --git a/src/demo/new.py b/src/demo/new.py
new file mode 100644
index 0000000..e69de29
"""


def test_where_there_is_nothing_to_place_no_count_is_told(bench: Bench) -> None:
    done = bench(*imported(bench, EMPTY))
    assert done.status == 0, done.err
    assert "demo/new.py  (new file" in done.out
    assert "hunk" not in done.out


def test_one_file_is_no_files(bench: Bench) -> None:
    bench.install("1.0", {"demo/__init__.py": "X = 1\n"})
    assert "1 file of demo 1.0, as installed\n" in bench("edit", "demo", str(bench.root / "copy")).out


def test_a_pattern_that_excludes_nothing_is_told(bench: Bench) -> None:
    assert (
        "--exclude nothing/*: no path of the diff fits it\n"
        in bench(*imported(bench, HEAD + FITS, "--exclude", "nothing/*")).err
    )


def test_a_diff_of_something_else(bench: Bench) -> None:
    diff = "--- a/foo/bar.py\n+++ b/foo/bar.py\n@@ -1 +1 @@\n-a\n+b\n"
    error = bench.json(*imported(bench, diff)).error
    assert error["code"] == "nothing-changed"
    assert error["message"] == "no path of this diff is a file of demo 1.0:\n  foo/bar.py: is no file of demo 1.0"


def test_a_coloured_diff_and_none_at_all(bench: Bench) -> None:
    coloured = "".join(f"\x1b[1;31m{line}\x1b[m\n" for line in (HEAD + FITS).splitlines())
    assert bench(*imported(bench, coloured)).status == 0
    assert bench("apply", "mine").status == 0
    assert bench.read("demo/core.py") == CHANGED.encode()
    error = bench.json(*imported(bench, "", "--overwrite")).error
    assert (error["code"], error["message"]) == ("diff", "there is no diff: it is empty")


@pytest.mark.parametrize("pip", [True, False])
def test_the_library_that_is_missing_is_installed_where_patchkit_is(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, pip: bool
) -> None:
    monkeypatch.setitem(sys.modules, "unidiff.errors", None)
    spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: pip or None if name == "pip" else spec(name))
    hint = bench.json(*imported(bench, HEAD + FITS)).error["hint"]
    python = shlex.quote(sys.executable)
    assert hint == (f"`{python} -m pip install unidiff`" if pip else f"`uv pip install --python {python} unidiff`")


def test_export_makes_no_folder(bench: Bench) -> None:
    bench.patch("mine", DOUBLE)
    error = bench.json("export", "mine", "--output", str(bench.root / "nowhere" / "x.diff")).error
    assert error["code"] == "unwritable"
    assert not (bench.root / "nowhere").exists()


def test_a_function_of_the_module_hangs_on_no_other_ones_scope(bench: Bench) -> None:
    edited = CORE.replace("class Worker", "def new():\n    return 1\n\n\nclass Worker") + "\n\ndef last():\n    pass\n"
    bench.write("demo/core.py", edited.encode())
    assert bench("create", "mine", "demo").status == 0
    edits = tomllib.loads((bench.patches / "mine.toml").read_text())["edit"]
    assert [(edit.get("scope"), edit["find"]) for edit in edits] == [
        (None, "class Worker:\n"),
        (None, "        result = None\n        return result\n"),
    ]
    assert bench("revert", "mine").status == 0
    assert bench("apply", "mine").status == 0
    assert bench.read("demo/core.py") == edited.encode()


def test_a_name_with_a_line_break_in_it_is_one_line(bench: Bench) -> None:
    bench.write("demo/core.py", bench.read("demo/core.py").replace(b"x + x", b"2 * x"))
    (bench.site / "demo" / "new\nit counts as applied.txt").write_text("N\n")
    done = bench("create", "mine", "demo", "--dry-run")
    assert done.status == 0
    assert "left out: demo/new\\nit counts" in done.err


def test_what_is_gone_from_a_copy_is_not_to_be_installed(bench: Bench) -> None:
    copy = bench.root / "copy"
    assert bench("edit", "demo", str(copy)).status == 0
    (copy / "demo" / "util.py").unlink()
    done = bench("create", "mine", "demo", "--from", str(copy))
    assert "where nobody meant that, put it back, then run the command again" in done.err
    assert bench("export", "mine", "--output", "out.diff").out.startswith("out.diff: 1 file, from demo 1.0")
