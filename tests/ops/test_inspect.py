"""`list`, `show`, `diff`, `log`, `doctor`, `lint` and `schema`: what they print, and their JSON."""

from __future__ import annotations

import json
import os
import re

import pytest
from support.bench import CORE, Bench, words
from support.dists import make_dist

DOUBLE = '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'
UTIL_X = '[[edit]]\nfile = "demo/util.py"\nfind = "X = 1\\n"\nreplace = "X = 10\\n"\n'


@pytest.fixture(autouse=True)
def _nothing_shipped(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shipped patches change with every release of patchkit; these tests look at their own."""
    monkeypatch.setattr("patchkit.ops.catalog.shipped_folder", lambda: os.path.join(str(tmp_path), "shipped"))


def several(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench.patch("later", DOUBLE, requirement="demo>=2")
    bench.patch("merged", DOUBLE + '[[upstreamed]]\nversions = ">=1"\n')
    bench.patch("util", UTIL_X)
    bench.patch("wrong", "nonsense")
    bench.project("double", "util")
    bench("apply", "double", "util")
    bench.write("demo/util.py", b"X = 11\r\n")


def test_list(bench: Bench) -> None:
    several(bench)
    run = bench("list")
    assert run.status == 0
    head, wrong = run.out.split("wrong ", 1)
    assert words(head) == words(
        "double  applied     demo  [wanted]\n"
        "    the patch double\n"
        "later   refused     demo>=2\n"
        "    the patch later\n"
        "    later: demo 1.0 is installed; required: demo>=2\n"
        "merged  upstreamed  demo\n"
        "    the patch merged\n"
        "    demo 1.0 has the change (>=1)\n"
        "util    drifted     demo  [wanted]\n"
        "    the patch util\n"
        "    see `patchkit check`\n"
    )
    assert wrong.startswith("  wrong")
    assert f"{bench.patches}/wrong.toml:" in wrong.replace("\n    ", " ")


def test_list_json(bench: Bench) -> None:
    several(bench)
    document = bench.json("list").json
    assert document["ok"] is True
    assert [(p["name"], p["state"], p["wanted"], p["origin"]) for p in document["patches"]] == [
        ("double", "applied", True, "--patches"),
        ("later", "refused", False, "--patches"),
        ("merged", "upstreamed", False, "--patches"),
        ("util", "drifted", True, "--patches"),
        ("wrong", "wrong", False, "--patches"),
    ]


def test_an_applied_patch_without_a_file_is_listed_and_shown(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    (bench.patches / "double.toml").unlink()
    run = bench("list")
    assert run.out == (
        "double  applied     demo\n"
        "    the patch double\n"
        "    its patch file is in none of the folders looked in; the ledger holds a copy\n"
    )
    run = bench("show", "double")
    assert run.status == 0
    assert "here: applied\n" in run.out
    assert "- edit 1: replace text `y = x + x` in demo/core.py\n" in run.out


def test_an_empty_list(bench: Bench) -> None:
    run = bench("list")
    assert (run.status, run.out) == (
        0,
        "no patches found: put NAME.toml into ./patches, or name a folder with --patches\n",
    )


def test_show(bench: Bench) -> None:
    path = bench.patch(
        "full",
        """
[[edit]]
file = ["demo/core.py", "demo/util.py"]
scope = "Worker.run"
versions = "<2"
find = '''
        result = double(job)
        return result
'''
delete = true

[[edit]]
file = "demo/core.py"
match = "$X + $X"
inside = "def double(x): ..."
replace = "2 * $X"
count = 3
nth = 2

[[edit]]
file = "demo/core.py"
add_import = ["import sys"]

[[edit]]
file = "demo/core.py"
scope = "double"
probe = "double ran"

[[add]]
file = "demo/extra.py"
content = ""

[[precondition]]
file = "demo/core.py"
scope = "double"
find = "x"
count = "1+"

[[postcondition]]
file = "demo/core.py"
match = "$X + $X"
count = 0

[[upstreamed]]
versions = ">=3"
file = "demo/core.py"
find = "2 * x"
""",
        requirement="demo>=2",
        target='requires = ["other>=1"]\notherwise = "Use demo.fast."\nconflicts = ["double"]\nafter = ["util"]',
    )
    text = path.read_text().replace(
        "[target]", 'links = ["https://example.org/1"]\ntags = ["speed"]\ndescription = """Why.\n\nMore."""\n[target]'
    )
    path.write_text(text)
    run = bench("show", "full")
    assert run.status == 0
    assert run.out == (
        "full: the patch full\n"
        f"file: {path}\n"
        "for: demo>=2, with other>=1\n"
        "here: refused (full: demo 1.0 is installed; required: demo>=2)\n"
        "tags: speed\n"
        "not together with: double\n"
        "after, where both are wanted: util\n"
        "otherwise: Use demo.fast.\n"
        "link: https://example.org/1\n"
        "\n"
        "Why.\n"
        "\n"
        "More.\n"
        "\n"
        "- edit 1: delete text `result = double(job)` (and 1 line more) in Worker.run\n"
        "  of demo/core.py, demo/util.py [only for <2]\n"
        "- edit 2: replace code `$X + $X` (number 2 of 3), inside `def double(x): ...`\n"
        "  of demo/core.py\n"
        "- edit 3: add `import sys` in demo/core.py\n"
        "- edit 4: report the first execution in double of demo/core.py\n"
        "- add 1: new file demo/extra.py\n"
        "- before: `x` stands at least once in double of demo/core.py\n"
        "- after: `$X + $X` stands nowhere in demo/core.py\n"
        "- not needed where the release has it: version >=3, `2 * x` in demo/core.py\n"
    )


def test_show_json(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    document = bench.json("show", "double").json
    assert (document["command"], document["ok"], document["name"], document["state"]) == (
        "show",
        True,
        "double",
        "available",
    )
    assert document["does"] == ["edit 1: replace text `y = x + x` in demo/core.py"]
    assert document["target"] == {
        "requirement": "demo",
        "requires": [],
        "otherwise": None,
        "optional": False,
        "conflicts": [],
        "after": [],
    }


def test_show_without_a_site(bench: Bench) -> None:
    from patchkit.cli.main import main

    path = bench.patch("double", DOUBLE)
    bench("schema")
    assert main(["--site", str(bench.root / "nowhere"), "show", str(path)]) == 0


def test_show_of_a_patch_that_drifted(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    bench.install("1.0")
    assert "here: drifted (see `patchkit check`) " in " ".join(bench("show", "double").out.split())


def test_diff(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench.patch("util", UTIL_X)
    bench.patch("adds", '[[add]]\nfile = "demo/extra.py"\ncontent = "E = 1\\n"\n')
    assert bench("diff") == (
        0,
        "",
        "no patch is applied: there is nothing to compare\n"
        "a hand edit of a distribution shows with `patchkit create NAME DIST --dry-run`\n",
    )
    bench("apply", "double", "util", "adds")
    assert bench("diff", "util").out == (
        "--- a/demo/util.py\n+++ b/demo/util.py\n@@ -1,3 +1,3 @@\n-X = 1\r\n+X = 10\r\n Y = 2\r\n Z = 3\r\n"
    )
    assert bench("diff", "adds").out == "--- /dev/null\n+++ b/demo/extra.py\n@@ -0,0 +1 @@\n+E = 1\n"
    run = bench("diff")
    assert [line for line in run.out.split("\n") if line.startswith("+++")] == [
        "+++ b/demo/core.py",
        "+++ b/demo/util.py",
        "+++ b/demo/extra.py",
    ]


def test_diff_is_what_git_applies(bench: Bench) -> None:
    import subprocess

    bench.patch("both", DOUBLE + UTIL_X)
    bench("apply", "both")
    text = bench("diff").out
    after = bench.read("demo/core.py"), bench.read("demo/util.py")
    bench("revert", "--all")
    subprocess.run(["git", "apply", "-"], input=text.encode(), cwd=bench.site, check=True)
    assert (bench.read("demo/core.py"), bench.read("demo/util.py")) == after


def test_diff_of_a_hand_edit(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    bench.write("demo/core.py", CORE.replace("x + x", "3 * x").encode())
    run = bench("diff", "double")
    assert run.err == "demo/core.py: holds edits made by hand as well\n"
    assert "-    y = x + x\n+    y = 3 * x\n" in run.out
    [file] = bench.json("diff").json["files"]
    assert (file["path"], file["patches"], file["modified"]) == ("demo/core.py", ["double"], True)


def test_diff_of_what_is_not_applied(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    run = bench.json("diff", "double")
    assert (run.status, run.error["code"]) == (2, "not-applied")
    assert run.error["hint"] == "`patchkit apply double --dry-run --diff`"


def test_log(bench: Bench) -> None:
    assert bench("log").out == f"nothing was done to {bench.site} yet\n"
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    bench("revert", "double")
    lines = bench("log").out.splitlines()
    assert len(lines) == 2
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ  apply    double  1 file  \S+", lines[0])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ  revert   double  1 file  \S+", lines[1])
    assert bench("log", "-n", "1").out.splitlines() == lines[1:]
    events = bench.json("log", "--number", "1").json["events"]
    assert [(event["command"], event["patches"], event["result"]) for event in events] == [
        ("revert", ["double"], "done")
    ]
    assert bench("log", "-n", "0").status == 2


def test_a_failed_apply_is_not_in_the_log(bench: Bench) -> None:
    bench.patch("double", DOUBLE.replace("x + x", "x + z"))
    bench("apply", "double")
    assert bench.json("log").json["events"] == []


def test_doctor(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    run = bench("doctor")
    assert run.status == 0
    lines = run.out.splitlines()
    assert lines[0].startswith("patchkit ")
    assert f"ok      site: {bench.site}" in lines
    assert f"ok      ledger: {bench.site}/.patchkit: double" in lines
    assert f"  {bench.patches}  (--patches)" in lines
    document = bench.json("doctor").json
    assert document["ok"] is True
    assert {"level": "ok", "subject": "distributions", "text": "1", "hint": None} in document["facts"]


def test_doctor_finds_problems(bench: Bench) -> None:
    make_dist(bench.site, "demo", "2.0", bench.files)
    make_dist(bench.site, "bare", "1.0", {"bare.py": ""}, record=False)
    source = bench.root / "source"
    source.mkdir()
    direct = {"url": source.as_uri(), "dir_info": {"editable": True}}
    make_dist(bench.site, "dev", "1.0", {}, info_files={"direct_url.json": json.dumps(direct)})
    run = bench("doctor")
    assert run.status == 1
    text = " ".join(run.out.split())
    assert "holds 2 installations of demo: demo-1.0.dist-info and demo-2.0.dist-info hint: a broken upgrade" in text
    assert "note bare: has no RECORD (no-record): no witness of its bytes" in text
    assert "note dev: editable, so not for patching" in text


def test_lint(bench: Bench) -> None:
    path = bench.patch("double", DOUBLE)
    path.write_text(path.read_text().replace("[target]", 'description = "Why."\nlinks = ["x"]\n[target]'))
    run = bench("lint")
    assert (run.status, run.out) == (0, "1 patch file, 0 findings\n")
    path.write_text(path.read_text() + "[[edit.example]]\nbefore = 'y = x + x'\nafter = 'y = x'\n")
    run = bench("lint", "double")
    assert run.status == 1
    assert run.out == (
        f"{path}:13: error: edit 1: example 1: the example does not hold: [example]\n"
        "    --- after, as written\n"
        "    +++ after, as the edit makes it\n"
        "    @@ -1 +1 @@\n"
        "    -y = x\n"
        "    +y = 2 * x\n"
        "    why: the edit does something else than its author wrote down\n"
        "1 patch file, 1 finding\n"
    )


def test_lint_warnings_count_when_strict(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    run = bench("lint", "double")
    assert run.status == 0
    assert "warning: description: no description: say why, and when not [no-description]\n" in run.out
    assert bench("lint", "double", "--strict").status == 1


def test_lint_tells_every_problem(bench: Bench) -> None:
    bench.patch("wrong", '[[edit]]\nfile = "demo/core.py"\nfnd = "x"\nreplace = "y"\ncount = "many"\n')
    run = bench.json("lint", "wrong")
    assert run.status == 1
    assert [(f["line"], f["level"]) for f in run.json["findings"]][:2] == [(9, "error"), (11, "error")]
    bench.patch("wrong", '[[edit]]\nfile = "demo/core.py"\nmatch = "x +"\nreplace = "y"\n')
    run = bench.json("lint", "wrong")
    assert run.status == 1
    assert run.json["findings"][-1]["line"] == 9


def test_lint_needs_no_site(bench: Bench) -> None:
    from patchkit.cli.main import main

    path = bench.patch("double", DOUBLE)
    assert main(["--site", str(bench.root / "nowhere"), "lint", str(path)]) == 0


def test_schema(bench: Bench) -> None:
    import jsonschema

    schema = json.loads(bench("schema").out)
    jsonschema.Draft202012Validator.check_schema(schema)
    import tomllib

    path = bench.patch("double", DOUBLE)
    jsonschema.validate(tomllib.loads(path.read_text()), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**tomllib.loads(path.read_text()), "nonsense": 1}, schema)
    assert bench.json("schema").json["patch"] == schema
