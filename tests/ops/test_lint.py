"""What ``lint`` says of patch files, without a site."""

# ruff: noqa: E501 (a case to a line)

from __future__ import annotations

from pathlib import Path

import pytest

from patchkit.ops.lint import Finding, lint_file

HEAD = (
    # Nothing of it is worth a note.
    'schema = 1\nname = "p"\nsummary = "s"\ndescription = "Why."\nlinks = ["https://example.org/1"]\n[target]\nrequirement = "demo"\n'
    '[[edit]]\nfile = "demo/core.py"\n'
)


def lint(folder: Path, body: str) -> list[Finding]:
    file = folder / "p.toml"
    file.write_text(HEAD + body, encoding="utf-8")
    return lint_file(str(file))


def example(before: str, after: str) -> str:
    return f"[[edit.example]]\nbefore = {before!r}\nafter = {after!r}\n"


TWICE = '"""\nfunc(1)\nfunc(2)\n"""'


@pytest.mark.parametrize("anchor", ["match = 'func($X)'", "find = 'func('"])
def test_an_example_is_held_to_count(tmp_path: Path, anchor: str) -> None:
    new = "done($X)" if "match" in anchor else "done("
    body = f"{anchor}\nreplace = '{new}'\n[[edit.example]]\nbefore = {TWICE}\nafter = {TWICE.replace('func', 'done')}\n"
    (finding,) = lint(tmp_path, body)
    assert finding.level == "error"
    assert finding.key == "edit 1: example 1"
    key = anchor.split()[0]
    head = f"the edit does not fit `before`: `{key}` matches twice in <example>.py, expected 1\n"
    assert finding.message.startswith(head)
    assert lint(tmp_path, body.replace("\nreplace", "\ncount = 2\nreplace", 1)) == []


def test_an_example_is_held_to_nth(tmp_path: Path) -> None:
    body = f"match = 'func($X)'\ncount = 2\nnth = 2\nreplace = 'g($X)'\n[[edit.example]]\nbefore = {TWICE}\nafter = "
    assert lint(tmp_path, body + '"func(1)\\ng(2)\\n"\n') == []
    (finding,) = lint(tmp_path, body + '"g(1)\\ng(2)\\n"\n')
    assert finding.message.startswith("the example does not hold:\n")


def test_an_example_needs_no_scope_no_header_and_no_version(tmp_path: Path) -> None:
    body = "scope = 'A.f'\ninside = 'if a:'\nversions = '<2'\nmatch = 'f($X)'\nreplace = 'g($X)'\n"
    assert lint(tmp_path, body + example("f(1)", "g(1)")) == []


def test_the_final_line_break_of_an_example_does_not_matter(tmp_path: Path) -> None:
    body = "find = '''\na = 1\n'''\nreplace = '''\na = 2\n'''\n"
    assert lint(tmp_path, body + example("a = 1", "a = 2")) == []
    assert lint(tmp_path, body + '[[edit.example]]\nbefore = "a = 1\\n"\nafter = "a = 2"\n') == []
    assert lint(tmp_path, body + '[[edit.example]]\nbefore = "a = 1"\nafter = "a = 2\\n"\n') == []


def test_a_wrong_pattern_is_told_once(tmp_path: Path) -> None:
    (finding,) = lint(tmp_path, "match = 'f($X'\nreplace = 'g()'\n" + example("f(1)", "g()"))
    assert finding.key == "edit 1: match"


@pytest.mark.parametrize(
    ("find", "action", "text", "message"),
    [
        (r"a = 1\n", "replace", "a = 2", "`find` ends in a line break, `replace` does not: two lines will be joined"),
        (r"a = 1\n", "insert_after", "b", "`find` ends in a line break, `insert_after` does not: two lines will be joined"),
        (r"a = 1\n", "insert_before", "b", "`find` ends in a line break, `insert_before` does not: two lines will be joined"),
        ("a = 1", "replace", r"a = 2\n", "`replace` ends in a line break, `find` does not: a blank or broken line will be left"),
        ("a = 1", "insert_before", r"b\n", None),
        ("a = 1", "insert_after", r"\nb", None),
        (r"a = 1\n", "replace", "", None),
        (r"a = 1\n", "replace", r"a = 2\n", None),
    ],
)  # fmt: skip
def test_line_breaks_of_anchor_and_text(tmp_path: Path, find: str, action: str, text: str, message: str | None) -> None:
    findings = lint(tmp_path, f'find = "{find}"\n{action} = "{text}"\n')
    told = [(f.level, f.key, f.message) for f in findings]
    assert told == ([] if message is None else [("warning", f"edit 1: {action}", message)])


@pytest.mark.parametrize(
    ("body", "key", "message"),
    [
        ("find = 'abcd'\nreplace = 'b'\nscop = 'A'\n", "edit 1: scop", 'unknown key "scop" (did you mean "scope"?)'),
        ("add_import = ['import os', 1]\n", "edit 1: add_import", "item 2: "),
        ("find = 'abcd'\n", "edit 1", ""),
    ],
)
def test_a_loaders_problem_names_its_key_once(tmp_path: Path, body: str, key: str, message: str) -> None:
    finding = lint(tmp_path, body)[0]
    assert finding.key == key
    assert finding.message.startswith(message)
    assert "edit 1" not in finding.message


@pytest.mark.parametrize(
    ("char", "found"),
    [
        ("\u202e", True),  # right-to-left override
        ("\u200b", True),  # zero width space
        ("\u2065", True),  # unassigned, and kept for invisible characters
        ("\U000e0999", True),
        ("\ue000", True),  # private use: nobody knows
        ("\U0003fffd", False),  # unassigned: to this Python only, perhaps
        ("\u3000", False),
        ("é", False),
    ],
)
def test_characters_that_cannot_be_seen(tmp_path: Path, char: str, found: bool) -> None:
    rules = [finding.rule for finding in lint(tmp_path, f"find = 'abcd'\nreplace = 'x = \"{char}\"'\n")]
    assert rules == (["invisible"] if found else [])
