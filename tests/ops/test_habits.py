"""The rules of ``lint`` that need the patch file alone: what each finds, and what is so near that it might."""

from __future__ import annotations

import json

import pytest

from patchkit.model.load import parse_patch
from patchkit.ops.lint import lint_patch
from patchkit.ops.rules import RULES, Finding

HEAD = 'schema = 1\nname = "p"\nsummary = "s"\ndescription = "Why."\nlinks = ["https://example.org/1"]\n'


def lint(body: str, requirement: str = "demo", head: str = HEAD, target: str = "") -> list[Finding]:
    text = f"{head}[target]\nrequirement = '{requirement}'\n{target}\n{body}"
    return lint_patch(parse_patch(text.encode(), None))


def told(body: str, requirement: str = "demo", **more: str) -> list[tuple[str, str | None]]:
    return [(finding.rule, finding.key) for finding in lint(body, requirement, **more)]


def edit(find: str, action: str = "replace", text: str = "new = 1", **keys: str) -> str:
    rest = "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
    new = "delete = true" if action == "delete" else f"{action} = {json.dumps(text)}"
    return f'[[edit]]\nfile = "demo/core.py"\n{rest}find = {json.dumps(find)}\n{new}\n'


# -- what an anchor holds ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("anchor", "rule", "message"),
    [
        ("VERSION = (0.24.0)", "anchor-version", "holds the version 0.24.0"),
        ("needs v1.2.3rc1 here", "anchor-version", "holds the version v1.2.3rc1"),
        ("x = 1  # demo 2.0.1.", "anchor-version", "holds the version 2.0.1"),
        ("# since 2024-02-29", "anchor-volatile", "holds the date 2024-02-29"),
        ("# see https://example.org/a/1", "anchor-volatile", "holds the URL https://example.org/a/1"),
        ("COMMIT = 0a1b2c3d4e5f67", "anchor-volatile", "holds the hash 0a1b2c3d4e5f67"),
        ("x = 1  # as in line 312", "anchor-volatile", "holds the line number line 312"),
        # Near misses: an address, a float, a tuple, a number of five parts, no date, a constant, a word, a count.
        ('HOST = "127.0.0.1"', None, None),
        ("x = 1.25", None, None),
        ("x = (1, 2, 3)", None, None),
        ("x = 1.2.3.4.5", None, None),
        ("x = 2024-13-01", None, None),
        ("x = 0xdeadbeef00112233", None, None),
        ("deadbeefdeadbeef = 1", None, None),
        ("x = 123456789012345", None, None),
        ("online 12", None, None),
    ],
)
def test_noise_in_an_anchor_that_the_edit_leaves_as_it_is(anchor: str, rule: str | None, message: str | None) -> None:
    findings = [f for f in lint(edit(anchor, "insert_after", "; y = 2")) if f.rule != "anchor-comment"]
    assert [(f.rule, f.key, f.message) for f in findings] == ([] if rule is None else [(rule, "edit 1: find", message)])


def test_what_the_edit_changes_is_no_noise() -> None:
    pin = 'PIN = "0.24.0"'
    assert told(edit(pin, "replace", 'PIN = "0.25.0"')) == []
    assert told(edit(pin, "delete")) == []
    assert told(edit(pin, "replace", 'PINS = ["0.24.0", "0.25.0"]')) == [("anchor-version", "edit 1: find")]


def test_a_pattern_holds_noise_as_well() -> None:
    body = '[[edit]]\nfile = "demo/core.py"\nmatch = \'check("0.24.0")\'\ninsert_after = "x = 1"\n'
    assert told(body) == [("anchor-version", "edit 1: match")]
    assert told(body.replace("0.24.0", "$X").replace('"$X"', "$X")) == []


@pytest.mark.parametrize(
    ("requirement", "versions", "found"),
    [
        ("demo", None, True),
        ("demo<2", None, True),
        ("demo==1.*", None, True),
        ("demo==1.0", None, False),
        ("demo===1.0", None, False),
        ("demo", "==1.0", False),
        ("demo", "!=1.0", True),
    ],
)
def test_no_other_release_breaks_the_anchor_of_an_edit_for_one(
    requirement: str, versions: str | None, found: bool
) -> None:
    keys = {} if versions is None else {"versions": versions}
    rules = [rule for rule, _ in told(edit('PIN = "0.24.0"', "insert_after", "; y = 2", **keys), requirement)]
    assert ("anchor-version" in rules) is found


@pytest.mark.parametrize(
    ("find", "action", "text", "found"),
    [
        ("a = 1  \nb = 2\n", "insert_after", "c = 3\n", True),
        ("a = 1\t\nb = 2\n", "replace", "a = 1\t\nb = 3\n", True),
        ("a = 1\n   \nb = 2\n", "insert_after", "c = 3\n", True),
        ("a = 1  \nb = 2\n", "replace", "a = 1\nb = 2\n", False),  # the edit is about them
        ("a = 1\nb = ", "insert_after", "+", False),  # the end of the anchor is no end of a line
        ("a = 1\nb = 2\n", "insert_after", "c = 3  \n", False),
    ],
)
def test_blanks_at_the_end_of_a_line(find: str, action: str, text: str, found: bool) -> None:
    assert ("anchor-blanks" in [rule for rule, _ in told(edit(find, action, text))]) is found


@pytest.mark.parametrize(
    ("find", "action", "text", "file", "found"),
    [
        ("# First.\n# Second.\n", "insert_after", "x = 1\n", "core.py", True),
        ("# First.\n", "replace", "# First.\nx = 1\n", "core.py", True),
        ("# First.\n", "replace", "# Second.\n", "core.py", False),  # the edit is about it
        ("# First.\n", "delete", "", "core.py", False),
        ("# First.\ny = 1\n", "insert_after", "x = 1\n", "core.py", False),
        ("x = 1  # First.\n", "insert_after", "x = 2\n", "core.py", False),
        ("# A title\n", "insert_after", "text\n", "README.md", False),
    ],
)
def test_an_anchor_of_comments(find: str, action: str, text: str, file: str, found: bool) -> None:
    body = edit(find, action, text).replace("core.py", file)
    assert ("anchor-comment" in [rule for rule, _ in told(body)]) is found


def lines(count: int) -> str:
    return "".join(f"a{n} = {n}\n" for n in range(count))


@pytest.mark.parametrize(
    ("find", "action", "text", "kept"),
    [
        (lines(11), "insert_after", "x = 1\n", 11),
        (lines(10), "insert_after", "x = 1\n", None),
        (lines(12), "replace", lines(12).replace("a5 = 5", "x = 1"), 11),
        (lines(11), "replace", lines(11).replace("a5 = 5", "x = 1"), None),
        (lines(12), "replace", lines(12) + "x = 1\n", 12),
        (lines(12), "replace", "x = 1\n" + lines(12), 12),
        (lines(30), "replace", "x = 1\n", None),
        (lines(30), "delete", "", None),
    ],
)
def test_a_long_anchor(find: str, action: str, text: str, kept: int | None) -> None:
    count = find.count("\n")
    messages = [f.message for f in lint(edit(find, action, text)) if f.rule == "anchor-long"]
    expected = f"{kept} of its {count} lines are only there to find the place"
    assert messages == ([] if kept is None else [expected])


@pytest.mark.parametrize(
    ("find", "keys", "found"),
    [
        ("        return y\n", {}, True),
        ("        self.x = 1\n        y = 2\n", {}, True),
        ("\n        yield y\n", {}, True),
        ("        return y\n", {"scope": "f"}, False),
        ("        y = 1\n", {}, False),  # perhaps the body of an `if` of the module
        ("        returned = 1\n", {}, False),
        ("return y\n", {}, False),
    ],
)
def test_an_edit_that_lies_in_a_function_has_a_scope(find: str, keys: dict[str, str], found: bool) -> None:
    assert ("no-scope" in [rule for rule, _ in told(edit(find, "insert_after", "    x = 1\n", **keys))]) is found
    other = edit(find, "insert_after", "    x = 1\n", **keys).replace("core.py", "core.txt")
    assert "no-scope" not in [rule for rule, _ in told(other)]


# -- what the patch says of itself -------------------------------------------------------------------------------------

PLAIN = edit("abcd = 1")


def test_links() -> None:
    assert told(PLAIN) == []
    assert told(PLAIN, head=HEAD.replace('links = ["https://example.org/1"]\n', "")) == [("no-links", "links")]


@pytest.mark.parametrize(
    ("requirement", "more", "found"),
    [
        ("demo<2", "", True),
        ("demo>=1,<=2", "", True),
        ("demo~=1.0", "", True),
        ("demo>=1", "", False),
        ("demo==1.0", "", False),
        ("demo<2", 'otherwise = "2 has it"\n', False),
        ("demo<2", '[[upstreamed]]\nversions = ">=2"\n', False),
    ],
)
def test_what_comes_behind_the_upper_bound(requirement: str, more: str, found: bool) -> None:
    keys = {"target": more} if more.startswith("otherwise") else {}
    body = PLAIN if keys else PLAIN + more
    assert told(body, requirement, **keys) == ([("no-upstreamed", "target: requirement")] if found else [])


def test_the_words_of_a_description_and_a_summary() -> None:
    assert told(PLAIN, head=HEAD.replace('description = "Why."\n', "")) == [("no-description", "description")]
    template = HEAD.replace('summary = "s"', 'summary = "One line: what it does"')
    assert told(PLAIN, head=template) == [("placeholder", "summary")]


@pytest.mark.parametrize(
    ("find", "keys", "found"), [("abc", {}, True), ("abcd", {}, False), ("abc", {"scope": "f"}, False)]
)
def test_a_very_short_anchor(find: str, keys: dict[str, str], found: bool) -> None:
    assert told(edit(find, **keys)) == ([("anchor-short", "edit 1: find")] if found else [])


# -- edits beside each other -------------------------------------------------------------------------------------------


def test_an_edit_that_changes_nothing() -> None:
    """Of a text edit, the loader says so."""
    body = '[[edit]]\nfile = "demo/core.py"\nmatch = "f($X)"\nreplace = "f($X)\\n"\n'
    assert told(body) == [("no-change", "edit 1: replace")]
    assert told(body.replace('replace = "f($X)', 'replace = "f(+$X)')) == []


@pytest.mark.parametrize(
    ("first", "second", "found"),
    [
        ({"versions": "<2"}, {}, "is edit 1 once more"),
        ({"versions": "<=2"}, {"versions": ">=2"}, "is edit 1 once more"),
        ({"versions": "<2"}, {"versions": ">=2"}, None),
        ({"versions": "<2"}, {"versions": ">1.9"}, None),  # a release between them there may never be
        ({"scope": "f"}, {"scope": "g"}, None),
    ],
)
def test_the_same_edit_twice(first: dict[str, str], second: dict[str, str], found: str | None) -> None:
    findings = lint(edit("abcd = 1", **first) + edit("abcd = 1", **second))
    expected = [] if found is None else [("overlap", "edit 2: find", found)]
    assert [(f.rule, f.key, f.message) for f in findings] == expected


def test_versions_that_the_requirement_leaves_out_are_no_ground() -> None:
    both = edit("abcd = 1", versions="<=2") + edit("abcd = 1", versions=">=2")
    assert told(both, "demo!=2") == []


def test_which_of_two_the_fix_drops() -> None:
    def dropped(first: dict[str, str], second: dict[str, str]) -> int | None:
        (finding,) = lint(edit("abcd = 1", **first) + edit("abcd = 1", **second))
        return finding.fix and finding.fix.index

    assert dropped({}, {"versions": "<2"}) == 2
    assert dropped({"versions": "<2"}, {}) == 1
    assert dropped({"versions": "<=2"}, {"versions": ">=2"}) is None  # each is for releases of its own


@pytest.mark.parametrize(
    ("first", "second", "how"),
    [
        (edit("a = 1\nb = 2\n"), edit("b = 2\n"), "their changes overlap"),
        (edit("b = 2\n"), edit("a = 1\nb = 2\n"), "their changes overlap"),
        (edit("a = 1\nb = 2\n"), edit("b = 2\n", "delete"), "their changes overlap"),
        (edit("a = 1\nb = 2\nb = 2\n"), edit("b = 2\n"), "one anchor holds the other more than once"),
        (
            edit("ab = 1", "insert_after", ";x"),
            edit("ab = 1", "insert_after", ";y", versions="<2"),
            "their changes overlap",
        ),
        # What lands: beside, on the other side, in another scope, a line that need not begin there, one of several.
        (edit("a = 1\nb = 2\n"), edit("c = 2\n"), None),
        (edit("abcd = 1", "insert_after", ";x"), edit("abcd = 1", "insert_before", "y;"), None),
        (edit("a = 1\nb = 2\n", "insert_after", "x\n"), edit("b = 2\n"), None),
        (edit("a = 1\nb = 2\n"), edit("b = 2\n", scope="f"), None),
        (edit("b = 2\nc", text="x"), edit("b = 2\n"), None),
        (edit("a = 1\nb = 2\n"), edit("b = 2\n").replace("core", "other"), None),
    ],
)
def test_edits_that_cannot_both_land(first: str, second: str, how: str | None) -> None:
    messages = [f.message for f in lint(first + second) if f.rule == "overlap"]
    assert messages == ([] if how is None else [f"cannot land with edit 1: {how}"])


def test_one_of_several_matches_is_no_overlap() -> None:
    several = edit("b = 2\n").replace("find", "count = 2\nfind")
    assert "overlap" not in [rule for rule, _ in told(edit("a = 1\nb = 2\n") + several)]


def imports(*statements: str, file: str = "demo/core.py") -> str:
    return f'[[edit]]\nfile = "{file}"\nadd_import = {list(statements)}\n'


def test_an_import_that_is_there_already() -> None:
    (finding,) = lint(imports("import os", "import re") + imports("import re"))
    assert (finding.rule, finding.key, finding.fix and finding.fix.index) == ("redundant", "edit 2: add_import", 2)
    assert finding.message == "`import re` stands in edit 1 already"
    (finding,) = lint(imports("import os") + imports("import re", "import os"))
    assert (finding.rule, finding.fix) == ("redundant", None)
    assert told(imports("import os") + imports("import re")) == []
    assert told(imports("import os") + imports("import os", file="demo/other.py")) == []


def probe(number: int) -> str:
    return f'[[edit]]\nfile = "demo/core.py"\nscope = "f"\nprobe = "{number}"\n'


def test_a_probe_twice() -> None:
    """For the very same releases, the loader says so."""
    (finding,) = lint(probe(1) + probe(1) + 'versions = "<2"\n')
    assert (finding.rule, finding.message, finding.fix) == ("redundant", "is edit 1 once more", None)
    assert told(probe(1) + probe(2) + 'versions = "<2"\n') == []


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("find = '''abcd = 1'''\ncount = 1", True),
        ("find = '''abcd = 1'''", True),
        ("find = '''abcd = 1'''\ncount = '1+'", True),
        ("find = '''abcd = 1'''\ncount = '2+'", False),
        ("find = '''abcd = 1'''\ncount = 0", False),
        ("find = '''abcd = 1'''\nscope = 'f'", False),
        ("find = '''abcd = 2'''", False),
    ],
)
def test_a_precondition_that_repeats_an_anchor(condition: str, found: bool) -> None:
    body = f'{PLAIN}[[precondition]]\nfile = "demo/core.py"\n{condition}\n'
    findings = [f for f in lint(body) if f.rule == "condition-repeats"]
    assert [f.message for f in findings] == (["is the anchor of edit 1, with its count"] if found else [])
    assert all(f.fix is not None and (f.fix.table, f.fix.index) == ("precondition", 1) for f in findings)


def test_a_precondition_for_other_releases_than_the_edit_says_more() -> None:
    condition = '[[precondition]]\nfile = "demo/core.py"\nfind = "abcd = 1"\n'
    assert told(edit("abcd = 1", versions="<2") + condition) == []
    assert told(edit("abcd = 1") + condition + 'versions = "<2"\n') == [("condition-repeats", "precondition 1: find")]
    assert told(edit("abcd = 1", after="x") + condition) == []


def test_many_edits_are_compared_in_no_time_or_not_at_all() -> None:
    twice = edit("abcd = 1") + edit("abcd = 1", versions="<2")
    rest = [edit(f"value_{number} = 1") for number in range(999)]
    assert told(twice + "".join(rest)) == []  # one more than are compared
    assert told(twice + "".join(rest[1:])) == [("overlap", "edit 2: find")]


def test_every_rule_has_a_level_and_a_reason() -> None:
    assert {rule.level for rule in RULES.values()} == {"error", "warning", "note"}
    assert all(rule.reason[0].islower() or rule.reason[0] == "`" for rule in RULES.values())
    assert [code for code in RULES if code != code.lower() or "_" in code] == []
