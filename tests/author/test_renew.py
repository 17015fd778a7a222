"""A patch that is applied, made anew: what it says besides its edits stays."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from support.bench import CORE, DEMO, UTIL, Bench
from support.dists import keep_wheel, make_dist

from patchkit.model.load import load_patch

#: As `create` itself writes the edit: it is found again as the same one.
EDIT = """\
[[edit]]
file = "demo/core.py"
scope = "double"
find = "    y = x + x\\n"
replace = "    y = 2 * x\\n"
"""
EXAMPLE = '[[edit.example]]\nbefore = "    y = x + x\\n"\nafter = "    y = 2 * x\\n"\n'
BESIDES = """\
[[precondition]]
file = "demo/util.py"
find = "Y = 2"
count = "1+"

[[postcondition]]
file = "demo/core.py"
find = "x + x"
count = 0

[[upstreamed]]
versions = ">=2.0"
"""
HEAD = """\
schema = 1
name = "mine"
summary = "Twice"
description = "Why."
links = ["https://example.org/1"]
tags = ["mine", "known-bad"]
[target]
requirement = "demo>=1.0,<3; python_version>'3'"
requires = ["other>=1.0"]
otherwise = '''
From 2.0 on, "not" needed.
'''
optional = true
conflicts = ["worse"]
after = ["first"]
"""
BOTH = CORE.replace("x + x", "2 * x").replace("result = None", "result = 0").encode()
SECOND = {"file": "demo/core.py", "scope": "Worker.stop", "find": "        result = None\n"}


@pytest.fixture(autouse=True)
def _released(bench: Bench) -> None:
    keep_wheel(bench.root / "cache", "demo", "1.0", DEMO)
    make_dist(bench.site, "other", "1.0", {"other.py": ""})


def applied(bench: Bench, text: str) -> None:
    (bench.patches / "mine.toml").write_text(text, encoding="utf-8", newline="")
    done = bench("apply", "mine", "--allow-known-bad")
    assert done.status == 0, done.err
    bench.write("demo/core.py", BOTH)


def values(bench: Bench) -> dict[str, Any]:
    return tomllib.loads((bench.patches / "mine.toml").read_text(encoding="utf-8"))


def states(bench: Bench) -> list[tuple[str, str]]:
    return [(patch["name"], patch["state"]) for patch in bench.json("check").json["patches"]]


def test_what_is_no_edit_stays(bench: Bench) -> None:
    applied(bench, HEAD + EDIT + EXAMPLE + BESIDES)
    before = values(bench)
    done = bench.json("create", "mine", "demo", "--overwrite", "--no-schema")
    assert done.status == 0, done.err
    assert done.json["lost"] == []
    assert any("`patchkit matrix mine` says where it fits now" in note for note in done.json["notes"])
    after = values(bench)
    assert [edit | {"replace": ""} for edit in after.pop("edit")] == [
        before["edit"][0] | {"replace": ""},
        SECOND | {"replace": ""},
    ]
    before.pop("edit")
    assert after == before
    assert states(bench) == [("mine", "applied")]
    assert bench.read("demo/core.py") == BOTH
    assert bench("revert", "mine").status == 0
    assert bench.pristine()


@pytest.mark.parametrize(
    ("edit", "lost"),
    [
        (EDIT.replace('scope = "double"\n', ""), []),
        (EDIT.replace('scope = "double"\n', "") + EXAMPLE, ["example"]),
        (EDIT.replace("[[edit]]", '[[edit]]\nversions = "<2"'), ["requirement demo>=1.0", "versions"]),
    ],
    ids=["nothing", "example", "versions"],
)
def test_what_would_be_lost_is_lost_on_request_alone(bench: Bench, edit: str, lost: list[str]) -> None:
    head = 'schema = 1\nname = "mine"\nsummary = "Twice"\n[target]\nrequirement = "demo>=1.0"\n'
    applied(bench, head + edit)
    path = bench.patches / "mine.toml"
    before = path.read_bytes()
    done = bench.json("create", "mine", "demo", "--overwrite", "--dry-run")
    assert (done.status, done.json["lost"]) == (0, lost)
    assert path.read_bytes() == before
    if lost:
        done = bench.json("create", "mine", "demo", "--overwrite")
        assert (done.status, done.error["code"], done.error["lost"]) == (2, "lost", lost)
        assert path.read_bytes() == before
        assert states(bench) == [("mine", "modified")]
    done = bench.json("create", "mine", "demo", "--overwrite", "--force")
    assert (done.status, done.json["lost"]) == (0, lost)
    patch = load_patch(str(path))
    assert patch.target.requirement == ("demo==1.0" if "versions" in lost else "demo>=1.0")
    assert states(bench) == [("mine", "applied")]


def test_a_condition_that_does_not_hold_any_more_is_refused(bench: Bench) -> None:
    postcondition = '[[postcondition]]\nfile = "demo/core.py"\nfind = "result = 0"\ncount = 0\n'
    head = 'schema = 1\nname = "mine"\nsummary = "Twice"\n[target]\nrequirement = "demo"\n'
    applied(bench, head + EDIT + postcondition)
    before = (bench.patches / "mine.toml").read_bytes()
    done = bench.json("create", "mine", "demo", "--overwrite")
    assert (done.status, done.error["code"]) == (4, "postcondition")
    assert (bench.patches / "mine.toml").read_bytes() == before
    assert states(bench) == [("mine", "modified")]


def test_no_file_of_it_is_left_out_in_silence(bench: Bench) -> None:
    """One whose change cannot be written as edits any more ends the command, though another could be."""
    head = 'schema = 1\nname = "mine"\nsummary = "Twice"\n[target]\nrequirement = "demo"\n'
    applied(bench, head + EDIT + '[[edit]]\nfile = "demo/util.py"\nfind = "Y = 2"\nreplace = "Y = 20"\n')
    converted = UTIL.replace("\r\n", "\n").replace("Y = 2", "Y = 20").encode()
    bench.write("demo/util.py", converted)
    before = (bench.patches / "mine.toml").read_bytes()
    done = bench.json("create", "mine", "demo", "--overwrite")
    assert (done.status, done.error["code"], done.error["path"]) == (4, "not-expressible", "demo/util.py")
    assert (bench.patches / "mine.toml").read_bytes() == before
