"""``lint --against``: what releases show of a patch, on wheels made by hand in the cache."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.bench import Bench
from support.dists import keep_wheel, make_dist

CORE = '''\
"""A module."""
import os

LIMIT = 1


def double(x):
    y = x + x
    z = y
    return y


class Worker:
    def run(self, job):
        first = job
        second = job
        result = double(job)
        third = result
        fourth = result
        return result

    def stop(self):
        second = None
        result = None
        return result
'''
#: ``run`` begins otherwise in 1.1; ``double`` is another function in 1.2; 2.0 holds the change.
RELEASES = {
    "1.0": CORE,
    "1.1": CORE.replace("        first = job\n", "        first = job\n        extra = first\n"),
    "1.2": CORE.replace("x + x", "x * 2").replace("double", "twice"),
    "2.0": CORE.replace("result = double(job)", "result = double(job, again=True)"),
}
LONG = """\
[[edit]]
file    = "demo/core.py"
scope   = "Worker.run"
find    = '''
        second = job
        result = double(job)
        third = result
        fourth = result
'''
replace = '''
        second = job
        result = double(job, again=True)
        third = result
        fourth = result
'''
"""
SHORT = LONG.replace("        third = result\n        fourth = result\n", "").replace("        second = job\n", "")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    for version, text in RELEASES.items():
        keep_wheel(tmp_path / "cache", "demo", version, {"demo/core.py": text})
    return tmp_path / "cache"


def against(bench: Bench, what: str, body: str, requirement: str = "demo", target: str = "") -> list[dict[str, Any]]:
    """The findings about a patch that needs releases to be found."""
    bench.patch("fix", body, requirement=requirement, target=target)
    run = bench.json(
        "lint", "fix", "--against", what, "--offline", "--ignore", "no-links", "--ignore", "no-description"
    )
    assert run.json["error"] is None, run.json["error"]
    return [finding for finding in run.json["findings"] if finding["rule"] != "no-upstreamed"]


def rules(findings: list[dict[str, Any]]) -> list[tuple[str, str, bool]]:
    return [(finding["rule"], finding["key"], finding["fixable"]) for finding in findings]


# -- anchors -----------------------------------------------------------------------------------------------------------


def test_an_anchor_longer_than_it_needs_be_is_shown_with_the_shorter_one(bench: Bench, cache: Path) -> None:
    (finding,) = against(bench, "1.0,1.1", LONG)
    assert (finding["rule"], finding["level"], finding["line"]) == ("anchor-long", "note", 10)
    assert finding["message"] == (
        "is 4 lines (97 characters); on 1.0, 1.1 the same change is made by 1 line (29 characters):\n"
        "    |         result = double(job)"
    )
    assert against(bench, "1.0,1.1", SHORT) == []


def test_lines_that_make_an_anchor_unique_are_not_too_many(bench: Bench, cache: Path) -> None:
    """``second = `` and ``result = `` stand in two methods, and here nothing names one of them."""
    body = '[[edit]]\nfile = "demo/core.py"\nscope = "Worker"\n'
    body += 'find = """\n        return result\n\n    def stop(self):\n"""\n'
    body += 'replace = """\n        return +result\n\n    def stop(self):\n"""\n'
    findings = against(bench, "1.0", body)
    # Within `Worker.run` it is one line; with the author's own scope it takes the two.
    assert rules(findings) == [("anchor-long", "edit 1: find", True)]
    assert "the same change is made by 1 line (22 characters) in Worker.run:" in findings[0]["message"]
    body = '[[edit]]\nfile = "demo/core.py"\nscope = "Worker.run"\n'
    body += 'find = """\n        first = job\n        second = job\n"""\n'
    body += 'replace = """\n        first = job + 1\n        second = job + 1\n"""\n'
    assert against(bench, "1.0", body) == []  # both lines are what it is about


def test_a_shorter_anchor_must_do_on_every_release(bench: Bench, cache: Path) -> None:
    more = "        fourth = result\n        result = double(job)\n"
    twice = RELEASES["1.1"].replace("        fourth = result\n", more)
    keep_wheel(cache, "demo", "1.1", {"demo/core.py": twice})
    (finding,) = against(bench, "1.0,1.1", LONG)
    assert "on 1.0, 1.1 the same change is made by 2 lines (50 characters):" in finding["message"]


def test_a_shorter_anchor_must_not_match_where_the_longer_one_does_not(bench: Bench, cache: Path) -> None:
    moved = CORE.replace("        third = result\n        fourth = result\n", "        fourth = result\n")
    keep_wheel(cache, "demo", "1.1", {"demo/core.py": moved})
    assert "anchor-long" not in [rule for rule, _, _ in rules(against(bench, "1.0,1.1", LONG))]
    # For releases that the edit is not for, nothing is asked.
    bounded = LONG.replace("scope ", 'versions = "<1.1"\nscope ')
    assert "anchor-long" in [rule for rule, _, _ in rules(against(bench, "1.0,1.1", bounded))]


@pytest.mark.parametrize("key", ["inside  = 'if job:'", "after   = 'first = job'", "count = 2\nnth = 1"])
def test_an_anchor_that_is_narrowed_otherwise_is_left_alone(bench: Bench, cache: Path, key: str) -> None:
    text = CORE.replace("        second = job\n", "        if job:\n            pass\n        second = job\n")
    keep_wheel(cache, "demo", "1.0", {"demo/core.py": text})
    body = LONG.replace("scope   =", f"{key}\nscope   =")
    assert "anchor-long" not in [rule for rule, _, _ in rules(against(bench, "1.0", body))]


IN_BOTH = '[[edit]]\nfile = "demo/core.py"\ncount = 2\nfind = "        return result\\n"\n'
IN_BOTH += 'replace = "        return 1\\n"\n'
UNSCOPED = '[[edit]]\nfile = "demo/core.py"\nfind = "third = result"\nreplace = "third = +result"\n'


def test_a_scope_that_an_edit_could_have(bench: Bench, cache: Path) -> None:
    (finding,) = against(bench, "1.0,1.1,1.2", UNSCOPED)
    assert (finding["rule"], finding["level"], finding["fixable"]) == ("no-scope", "note", True)
    assert finding["message"] == 'could have scope = "Worker.run", on 1.0, 1.1, 1.2'
    assert against(bench, "1.0,1.1,1.2", UNSCOPED.replace("find", 'scope = "Worker"\nfind')) == []


@pytest.mark.parametrize(
    "body",
    [
        '[[edit]]\nfile = "demo/core.py"\nfind = "LIMIT = 1"\nreplace = "LIMIT = 2"\n',
        # The head of a function belongs to what is around it; code put before it to the module.
        '[[edit]]\nfile = "demo/core.py"\nfind = "def double(x):\\n"\nreplace = "def double(x, again=False):\\n"\n',
        '[[edit]]\nfile = "demo/core.py"\nfind = "    return y\\n"\ninsert_after = "\\n\\nMORE = 1\\n"\n',
        # In two scopes.
        IN_BOTH,
    ],
)
def test_an_edit_that_can_have_no_scope(bench: Bench, cache: Path, body: str) -> None:
    assert "no-scope" not in [rule for rule, _, _ in rules(against(bench, "1.0", body))]


def test_a_scope_of_another_name_in_another_release_is_none(bench: Bench, cache: Path) -> None:
    renamed = CORE.replace("def run", "def go")
    keep_wheel(cache, "demo", "1.1", {"demo/core.py": renamed})
    assert against(bench, "1.0,1.1", UNSCOPED) == []


def test_the_head_of_a_method_lies_in_its_class(bench: Bench, cache: Path) -> None:
    body = '[[edit]]\nfile = "demo/core.py"\nfind = "def run(self, job):"\nreplace = "def run(self, job=None):"\n'
    (finding,) = against(bench, "1.0", body)
    assert 'scope = "Worker"' in finding["message"]


def test_what_the_text_alone_suggests_gives_way_to_the_releases(bench: Bench, cache: Path) -> None:
    """The same text stands in two functions, so no one scope will do."""
    bench.patch("fix", IN_BOTH)
    assert "no-scope" in [finding["rule"] for finding in bench.json("lint", "fix").json["findings"]]
    assert against(bench, "1.0", IN_BOTH) == []


def test_an_edit_that_fits_nowhere(bench: Bench, cache: Path) -> None:
    gone = '[[edit]]\nfile = "demo/core.py"\nscope = "double"\nfind = "x - x"\nreplace = "0"\n'
    findings = against(bench, "1.0,1.1", gone)
    assert rules(findings) == [("never-matches", "edit 1: find", False)]
    assert findings[0]["level"] == "warning"
    assert findings[0]["message"].startswith(
        "fits none of the releases that it is for (1.0, 1.1): `find` matches nowhere"
    )
    # Releases that the patch is not for, and those that the edit is not for, say nothing of it.
    assert against(bench, "1.0,1.1", gone, "demo>=1.2") == []
    assert against(bench, "1.0,1.1", gone.replace("scope", 'versions = ">1.1"\nscope') + SHORT) == []


def test_a_syntax_edit_that_fits_nowhere(bench: Bench, cache: Path) -> None:
    body = '[[edit]]\nfile = "demo/core.py"\nmatch = "nowhere($X)"\nreplace = "f($X)"\n'
    assert rules(against(bench, "1.0", body)) == [("never-matches", "edit 1: match", False)]
    assert against(bench, "1.0", body.replace("nowhere($X)", "double($X)")) == []


# -- the requirement ---------------------------------------------------------------------------------------------------

DOUBLE = '[[edit]]\nfile = "demo/core.py"\nscope = "double"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'
#: In the release as in :data:`RELEASES`, it fits 1.0, 1.1 and 2.0.


def test_a_requirement_that_is_too_wide(bench: Bench, cache: Path) -> None:
    (finding,) = against(bench, "all", DOUBLE, "demo>=1.0")
    assert (finding["rule"], finding["level"], finding["key"]) == ("requirement-wide", "warning", "target: requirement")
    assert finding["message"].startswith("admits 1.2, which the patch does not fit (1.2: edit 1: `scope`: there is no")
    assert finding["message"].endswith(": demo>=1.0,!=1.2")
    assert finding["fixable"] is True
    assert against(bench, "all", DOUBLE, "demo>=1.0,!=1.2") == []


@pytest.mark.parametrize(
    ("own", "what", "mended"),
    [
        ("demo>=1.1", ">=1.1,<2", "demo>=1.1,!=1.2"),  # nobody looked at 2.0, and nothing is wrong with it
        ("demo>=1.2,<3", "all", "demo>=2.0,<3"),
        ("demo<=1.2", "all", "demo<1.2"),
    ],
)
def test_an_end_that_nothing_is_wrong_with_stays(bench: Bench, cache: Path, own: str, what: str, mended: str) -> None:
    path = bench.patch("fix", DOUBLE, requirement=own)
    findings = bench.json("lint", "fix", "--against", what, "--offline", "--fix", "--ignore", "requirement-narrow").json
    assert [one["fixed"] for one in findings["fixes"] if one["rule"] == "requirement-wide"] == [True]
    assert f'requirement = "{mended}"\n' in path.read_text()


def test_versions_one_by_one_show_what_fails_and_propose_nothing(bench: Bench, cache: Path) -> None:
    (finding,) = against(bench, "1.0,1.2", DOUBLE, "demo>=1.0")
    assert (finding["rule"], finding["fixable"]) == ("requirement-wide", False)
    assert "demo>=" not in finding["message"]
    assert against(bench, "1.0,1.1", DOUBLE, "demo==1.0") == []


def test_a_requirement_that_is_too_narrow(bench: Bench, cache: Path) -> None:
    (finding,) = against(bench, "all", DOUBLE, "demo==1.0")
    assert (finding["rule"], finding["level"], finding["fixable"]) == ("requirement-narrow", "note", True)
    assert finding["message"] == "leaves out 1.1, 2.0, which the patch fits: demo>=1.0,!=1.2,<2.1"
    (finding,) = against(bench, "<1.2", DOUBLE, "demo==1.0")
    assert finding["message"] == (
        "leaves out 1.1, which the patch fits: demo>=1.0,<1.2; --fix leaves it, since only `--against all` looks at "
        "every release"
    )
    assert finding["fixable"] is False  # not all were looked at
    (finding,) = against(bench, "all", DOUBLE, "demo==1.0", "otherwise = '1.1 is for others'")
    assert "on purpose, perhaps" in finding["message"]
    assert finding["fixable"] is False


def test_a_release_that_cannot_be_had_keeps_the_requirement(bench: Bench, cache: Path) -> None:
    next((cache / "wheels" / "demo" / "2.0").glob("*.whl")).write_bytes(b"broken")
    run_on = bench.patch("fix", DOUBLE, requirement="demo>=1.0")
    run = bench.json("lint", str(run_on), "--against", "all", "--offline")
    (finding,) = [f for f in run.json["findings"] if f["rule"] == "requirement-wide"]
    assert finding["fixable"] is False
    assert finding["message"].endswith("; --fix leaves it, since 2.0 could not be looked at")
    (held,) = run.json["against"]
    assert (held["versions"], [one["version"] for one in held["missing"]]) == (["1.0", "1.1", "1.2"], ["2.0"])


def test_a_release_that_has_the_change_already(bench: Bench, cache: Path) -> None:
    findings = against(bench, "all", SHORT, "demo<2")
    assert [f["rule"] for f in findings] == ["upstream-has-it", "requirement-wide"]  # 1.2 calls it otherwise
    assert findings[0]["message"] == (
        "2.0 holds the new text of every edit already: say so in an [[upstreamed]] with the text of edit 1"
    )
    told = '[[upstreamed]]\nfile = "demo/core.py"\nfind = "double(job, again=True)"\n'
    assert [f["rule"] for f in against(bench, "all", SHORT + told, "demo<1.2")] == []
    # Not a text that is as good as none, nor where the anchor still stands.
    short = '[[edit]]\nfile = "demo/core.py"\nscope = "double"\nfind = "x + x"\nreplace = "x * 2"\n'
    assert "upstream-has-it" not in [f["rule"] for f in against(bench, "all", short, "demo<1.2")]


def test_a_patch_that_is_wrong_is_not_held_against_releases(bench: Bench, cache: Path) -> None:
    body = '[[edit]]\nfile = "demo/core.py"\nmatch = "double($X"\nreplace = "f($X)"\n'
    assert [f["rule"] for f in against(bench, "all", body)] == ["pattern"]


# -- what it is held against -------------------------------------------------------------------------------------------


def test_what_is_installed_is_what_the_installer_put_there(bench: Bench) -> None:
    make_dist(bench.site, "demo", "1.0", {"demo/core.py": CORE})
    path = bench.patch("fix", LONG)
    assert bench("apply", "fix").status == 0
    run = bench.json("lint", str(path), "--against", "installed")
    assert run.json["error"] is None, run.json["error"]
    assert "anchor-long" in [f["rule"] for f in run.json["findings"]]
    assert run.json["against"] == [
        {"name": "fix", "distribution": "demo", "versions": ["1.0"], "missing": [], "offline": None}
    ]
    bench.uninstall()
    error = bench.json("lint", "fix", "--against", "installed")
    assert (error.status, error.error["code"]) == (3, "not-installed")


def test_releases_come_oldest_first_and_without_prereleases(bench: Bench, cache: Path) -> None:
    keep_wheel(cache, "demo", "2.1rc1", {"demo/core.py": CORE})
    bench.patch("fix", SHORT)

    def held(what: str) -> list[str]:
        (one,) = bench.json("lint", "fix", "--against", what, "--offline").json["against"]
        return list(one["versions"])

    assert held("all") == ["1.0", "1.1", "1.2", "2.0"]
    assert held(">=1.1") == ["1.1", "1.2", "2.0"]
    assert held("2.0, 1.0") == ["1.0", "2.0"]
    assert held("2.1rc1") == ["2.1rc1"]


@pytest.mark.parametrize(("what", "status", "code"), [("soon", 2, "usage"), (">=9", 2, "usage"), ("9.0", 5, "fetch")])
def test_what_is_no_release_is_told(bench: Bench, cache: Path, what: str, status: int, code: str) -> None:
    bench.patch("fix", SHORT)
    run = bench.json("lint", "fix", "--against", what, "--offline")
    assert (run.status, run.error["code"]) == (status, code)
    assert "--versions" not in run.error["message"] + (run.error["hint"] or "")
