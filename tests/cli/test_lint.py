"""``lint``: what it prints, its JSON, its options, and that its page has every rule."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.bench import Bench
from support.dists import keep_wheel
from support.documents import document, rows, ticked

from patchkit.ops.rules import RULES

CORE = "class Worker:\n    def run(self, job):\n        first = job\n        result = job\n        return result\n"
PATCH = """\
schema = 1
name = "fix"
summary = "s"
description = "Why."

[target]
requirement = "demo<2"

[[edit]]
file = "demo/core.py"
scope = "Worker"
find = '''
        first = job
        result = job
        return result
'''
replace = '''
        first = job
        result = +job
        return result
'''

[[edit]]
file = "demo/other.py"
find = "VERSION = '1.2.3'; x"
insert_after = " = 1"
"""


@pytest.fixture
def fix(bench: Bench, tmp_path: Path) -> Path:
    files = {"demo/core.py": CORE, "demo/other.py": "VERSION = '1.2.3'; x\n"}
    keep_wheel(tmp_path / "cache", "demo", "1.0", files)
    path = bench.patches / "fix.toml"
    path.write_text(PATCH)
    return path


def test_what_is_printed(bench: Bench, fix: Path) -> None:
    run = bench("lint", "fix")
    assert (run.status, run.err) == (0, "")
    assert run.out == (
        f"{fix}:2: note: links: no links: name the issue or the pull request [no-links]\n"
        "    why: a link to the issue or pull request says when the patch can go\n"
        f"{fix}:7: note: target: requirement: the requirement ends at <2, with neither an [[upstreamed]] nor an"
        " `otherwise` [no-upstreamed]\n"
        "    why: who upgrades past the upper bound is refused, and not told what then\n"
        f"{fix}:25: warning: edit 2: find: holds the version 1.2.3 [anchor-version]\n"
        "    why: the next release has another version in that line, and the anchor is\n"
        "      gone\n"
        "1 patch file, 0 findings, 1 warning, 2 notes\n"
    )


def test_what_is_printed_of_releases(bench: Bench, fix: Path) -> None:
    run = bench("lint", "fix", "--against", "1.0", "--offline", "--ignore", "no-links", "--ignore", "no-upstreamed")
    assert run.status == 0
    assert run.out == (
        f"{fix}:12: note: edit 1: find: is 3 lines (63 characters); on 1.0 the same change is made by 1 line (21"
        " characters): [anchor-long, fixable]\n"
        "    |         result = job\n"
        "    why: every line of an anchor is one that a new release may change\n"
        f"{fix}:25: warning: edit 2: find: holds the version 1.2.3 [anchor-version]\n"
        "    why: the next release has another version in that line, and the anchor is\n"
        "      gone\n"
        "1 patch file, 0 findings, 1 warning, 1 note, 1 fixable with --fix\n"
        "fix against demo 1.0\n"
    )


def test_releases_without_a_wheel_are_told_together(bench: Bench, fix: Path) -> None:
    versions = ",".join(f"2.{number}" for number in range(30))
    run = bench("lint", "fix", "--against", f"1.0,{versions}", "--offline")
    assert run.out.count("no wheel") == 1
    assert "fix against demo 1.0\n  no wheel: 2.0 to 2.29 (30): " in run.out
    assert run.out.count("2.17") == 0
    (held,) = bench.json("lint", "fix", "--against", f"1.0,{versions}", "--offline").json["against"]
    assert len(held["missing"]) == 30


def test_what_is_printed_of_fixes(bench: Bench, fix: Path) -> None:
    arguments = ("lint", "fix", "--against", "1.0", "--offline", "--ignore", "no-links", "--ignore", "no-upstreamed")
    ignored = ("--ignore", "anchor-version")
    run = bench(*arguments, *ignored, "--fix", "--dry-run")
    assert run.out.partition("\n--- ")[0].split("\n")[-1] == f"{fix}: would be fixed: edit 1: find: anchor-long"
    assert run.out.partition("\n--- ")[2] == (
        "a/fix.toml\n"
        "+++ b/fix.toml\n"
        "@@ -10,14 +10,10 @@\n"
        ' file = "demo/core.py"\n'
        ' scope = "Worker"\n'
        " find = '''\n"
        "-        first = job\n"
        "         result = job\n"
        "-        return result\n"
        " '''\n"
        " replace = '''\n"
        "-        first = job\n"
        "         result = +job\n"
        "-        return result\n"
        " '''\n"
        " \n"
        " [[edit]]\n"
        "1 patch file, 0 findings, 1 note\n"
        "fix against demo 1.0\n"
    )
    assert fix.read_text() == PATCH
    run = bench(*arguments, *ignored, "--fix")
    assert run.out == (f"{fix}: fixed: edit 1: find: anchor-long\n1 patch file, 0 findings\nfix against demo 1.0\n")
    assert bench(*arguments, *ignored, "--fix").out == "1 patch file, 0 findings\nfix against demo 1.0\n"


def test_the_json(bench: Bench, fix: Path) -> None:
    run = bench.json(
        "lint", "fix", "--against", "1.0", "--offline", "--ignore", "no-links", "--ignore", "no-upstreamed"
    )
    assert run.json["files"] == [str(fix)]
    assert run.json["findings"] == [
        {
            "path": str(fix),
            "line": 12,
            "level": "note",
            "key": "edit 1: find",
            "message": "is 3 lines (63 characters); on 1.0 the same change is made by 1 line (21 "
            "characters):\n    |         result = job",
            "rule": "anchor-long",
            "reason": "every line of an anchor is one that a new release may change",
            "fixable": True,
        },
        {
            "path": str(fix),
            "line": 25,
            "level": "warning",
            "key": "edit 2: find",
            "message": "holds the version 1.2.3",
            "rule": "anchor-version",
            "reason": "the next release has another version in that line, and the anchor is gone",
            "fixable": False,
        },
    ]
    assert run.json["against"] == [
        {"name": "fix", "distribution": "demo", "versions": ["1.0"], "missing": [], "offline": None}
    ]
    assert (run.json["fixes"], run.json["diff"]) == ([], "")
    run = bench.json("lint", "fix", "--against", "1.0", "--offline", "--fix")
    assert run.json["fixes"] == [
        {"path": str(fix), "rule": "anchor-long", "key": "edit 1: find", "fixed": True, "reason": None}
    ]
    assert run.json["diff"].startswith("--- a/fix.toml\n+++ b/fix.toml\n@@ ")


def test_notes_never_count_and_warnings_when_strict(bench: Bench, fix: Path) -> None:
    assert bench("lint", "fix").status == 0
    strict = bench("lint", "fix", "--strict")
    assert (strict.status, strict.out.splitlines()[-1]) == (1, "1 patch file, 1 finding, 2 notes")
    assert bench("lint", "fix", "--strict", "--ignore", "anchor-version").status == 0


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["--ignore", "anchor-lang"], "--ignore anchor-lang: no such rule", "did you mean anchor-long?"),
        (["--ignore", "zzz"], "--ignore zzz: no such rule", "the rules are load, pattern, "),
        (["--dry-run"], "--dry-run goes with --fix", "see `patchkit lint --help`"),
        (["--offline"], "--offline goes with --against", "see `patchkit lint --help`"),
    ],
)
def test_options_that_make_no_sense(bench: Bench, fix: Path, arguments: list[str], message: str, hint: str) -> None:
    run = bench.json("lint", "fix", *arguments)
    assert (run.status, run.error["code"], run.error["message"]) == (2, "usage", message)
    assert run.error["hint"].startswith(hint)


def test_one_patch_that_does_not_load_keeps_none_from_being_held_against_releases(bench: Bench, fix: Path) -> None:
    (bench.patches / "bad.toml").write_text("nonsense")
    run = bench.json("lint", "--against", "1.0", "--offline", "--fix")
    assert run.status == 1
    assert "load" in [finding["rule"] for finding in run.json["findings"]]
    assert [one["rule"] for one in run.json["fixes"]] == ["anchor-long"]


def test_every_rule_is_in_the_table_with_its_level() -> None:
    table = [row for row in rows(document("docs/lint.md"), "## Rules") if ticked(row[0])]
    assert {ticked(row[0])[0]: row[1] for row in table} == {code: rule.level for code, rule in RULES.items()}


def test_the_table_says_which_rules_have_a_fix_and_which_need_releases() -> None:
    """By the sources: a rule stands where its findings are made, and beside its fix where it has one."""
    import re

    root = Path(__file__).resolve().parents[2] / "patchkit"
    alone = "".join((root / "ops" / name).read_text() for name in ("lint.py", "habits.py"))
    held = (root / "author" / "linting.py").read_text()
    table = {ticked(row[0])[0]: row for row in rows(document("docs/lint.md"), "## Rules") if ticked(row[0])}
    for code, row in table.items():
        here, there = f'"{code}"' in alone, f'"{code}", ' in held
        assert row[3] == ("partly" if here and there else "yes" if there else ""), code
        calls = re.findall(rf'"{code}", (?:[^()]|\([^()]*\))*\)', alone + held)
        assert bool(row[4]) == any(re.search(r"\b(fix|Fix)\b", call) for call in calls), code
