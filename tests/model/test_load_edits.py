"""The rules of edits, conditions and new files, each with the line that a person reads."""

from __future__ import annotations

import pytest

from patchkit.errors import PatchFileError
from patchkit.model.load import parse_patch
from patchkit.model.patch import Patch

HEAD = 'schema = 1\nname = "p"\nsummary = "s"\n[target]\nrequirement = "dist"\n'  # lines 1 to 5
GOOD = '[[edit]]\nfile = "good.py"\nfind = "x"\nreplace = "y"\n'  # lines 6 to 9, where it stands first


def load(body: str) -> Patch:
    return parse_patch((HEAD + body).encode(), "patches/p.toml")


def lines(body: str) -> list[str]:
    with pytest.raises(PatchFileError) as caught:
        load(body)
    return [line.removeprefix("patches/p.toml:") for line in caught.value.message.split("\n")]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # actions
        (
            "find = 'x'",
            "6: edit 1: no action: an edit has exactly one of replace, insert_before, insert_after, delete, wrap, "
            "add_import, probe",
        ),
        (
            "find = 'x'\ndelete = true\nreplace = 'y'",
            "9: edit 1: 2 actions, replace and delete: an edit has exactly one",
        ),
        (
            "find = 'x'\nwrap = '$$$BODY'\nprobe = 'y'\nreplace = 'z'",
            "9: edit 1: 3 actions, replace and wrap and probe: an edit has exactly one",
        ),
        ("find = 'x'\ndelete = false", "9: edit 1: delete: must be true, found false"),
        ("find = 'x'\ndelete = 1", "9: edit 1: delete: expected a boolean, found an integer"),
        ("find = 'x'\nreplace = 3", "9: edit 1: replace: expected a string, found an integer"),
        ("find = 'x'\nreplce = 'y'", '9: edit 1: unknown key "replce" (did you mean "replace"?)'),
        ("add-import = ['import os']", '8: edit 1: unknown key "add-import" (did you mean "add_import"?)'),
        ("fnd = 'x'\nreplace = 'y'", '8: edit 1: unknown key "fnd" (did you mean "find"?)'),
        ("find = 'x'\ninsert_before = ''", "9: edit 1: insert_before: must not be empty"),
        ("find = 'x'\ninsert_after = ''", "9: edit 1: insert_after: must not be empty"),
        # anchors
        ("replace = 'y'", "6: edit 1: no anchor: replace needs find or match"),
        ("delete = true", "6: edit 1: no anchor: delete needs find or match"),
        ("match = 'x'\nfind = 'x'\nwrap = '$$$BODY'", "8: edit 1: two anchors, find and match: wrap needs exactly one"),
        ("find = ''\ndelete = true", "8: edit 1: find: must not be empty"),
        ("match = ''\ndelete = true", "8: edit 1: match: must not be empty"),
        ("match = ' \\n'\ndelete = true".replace("'", '"'), "8: edit 1: match: must not be blank"),
        ("find = 'x'\ninside = ' '\ndelete = true", "9: edit 1: inside: must not be blank"),
        ("find = 'x'\nafter = ''\ndelete = true", "9: edit 1: after: must not be empty"),
        ("match = 'x'\nbefore = ' '\ndelete = true", "9: edit 1: before: must not be blank"),
        ("find = 'x'\nreplace = 'x'", "9: edit 1: replace: is identical to find: the edit changes nothing"),
        (
            'find = "x\\r\\n"\nreplace = "x\\n"',
            "9: edit 1: replace: is identical to find: the edit changes nothing",
        ),
        # scope
        (
            "find = 'x'\nscope = 'a.<locals>.b'\ndelete = true",
            '9: edit 1: scope: "a.<locals>.b" is not a dotted chain of class and function names such as Class.method '
            '(did you mean "a.b"?)',
        ),
        (
            "find = 'x'\nscope = 'a b'\ndelete = true",
            '9: edit 1: scope: "a b" is not a dotted chain of class and function names such as Class.method',
        ),
        (
            "find = 'x'\nscope = 'a..b'\ndelete = true",
            '9: edit 1: scope: "a..b" is not a dotted chain of class and function names such as Class.method',
        ),
        ("find = 'x'\nscope = ''\ndelete = true", "9: edit 1: scope: must not be empty"),
        # wrap
        ("find = 'x'\nwrap = 'y'", "9: edit 1: wrap: must hold $$$BODY exactly once, found none"),
        ("find = 'x'\nwrap = '$$$BODY $$$BODY'", "9: edit 1: wrap: must hold $$$BODY exactly once, found 2"),
        ("find = 'x'\nwrap = '$$$BODY2'", "9: edit 1: wrap: must hold $$$BODY exactly once, found none"),
        ("find = 'x'\nwrap = '$$$$BODY'", "9: edit 1: wrap: must hold $$$BODY exactly once, found none"),
        # add_import, probe
        ("add_import = 'import os'", "8: edit 1: add_import: expected an array of strings, found a string"),
        ("add_import = []", "8: edit 1: add_import: must not be empty"),
        ("add_import = ['import os', ' ']", "8: edit 1: add_import: item 2: must not be blank"),
        ("add_import = ['import os', '']", "8: edit 1: add_import: item 2: must not be empty"),
        (
            "add_import = ['import a', 'import a']",
            '8: edit 1: add_import: item 2: "import a" is there already, as item 1',
        ),
        ("add_import = ['import a']\nfind = 'x'", "9: edit 1: find: has no meaning with add_import"),
        ("add_import = ['import a']\nscope = 'x'", "9: edit 1: scope: has no meaning with add_import"),
        ("add_import = ['import a']\ncount = 2", "9: edit 1: count: has no meaning with add_import"),
        ("probe = 'x'", "6: edit 1: probe needs scope"),
        ("probe = 'x'\nscope = 'f'\nmatch = 'x'", "10: edit 1: match: has no meaning with probe"),
        ("probe = 'x'\nscope = 'f'\nafter = 'x'", "10: edit 1: after: has no meaning with probe"),
        ("probe = ''\nscope = 'f'", "8: edit 1: probe: must not be empty"),
        ('probe = "a\\nb"\nscope = "f"', "8: edit 1: probe: must be one line"),
        (
            "probe = 'x'\nscope = 'f'\n[[edit.example]]\nbefore = 'a'\nafter = 'b'",
            "10: edit 1: example: has no meaning with probe",
        ),
        # count, nth
        ("find = 'x'\ndelete = true\ncount = 0", "10: edit 1: count: must be at least 1, found 0"),
        ("find = 'x'\ndelete = true\ncount = -2", "10: edit 1: count: must be at least 1, found -2"),
        ("find = 'x'\ndelete = true\ncount = '1+'", "10: edit 1: count: expected an integer, found a string"),
        ("find = 'x'\ndelete = true\ncount = '2'\nnth = 3", "10: edit 1: count: expected an integer, found a string"),
        ("find = 'x'\ndelete = true\ncount = true", "10: edit 1: count: expected an integer, found a boolean"),
        ("find = 'x'\ndelete = true\nnth = 2", "10: edit 1: nth: must be at most count, which is 1, found 2"),
        ("find = 'x'\ndelete = true\nnth = 0\ncount = 3", "10: edit 1: nth: must be at least 1, found 0"),
        (
            "find = 'x'\ndelete = true\nnth = 4\ncount = 3",
            "10: edit 1: nth: must be at most count, which is 3, found 4",
        ),
        # versions
        ("find = 'x'\ndelete = true\nversions = ''", "10: edit 1: versions: must not be empty"),
        (
            "find = 'x'\ndelete = true\nversions = ' '",
            '10: edit 1: versions: " " is not a PEP 440 version specifier such as ">=0.23,<0.30"',
        ),
        (
            "find = 'x'\ndelete = true\nversions = '0.23'",
            '10: edit 1: versions: "0.23" is a version, not a PEP 440 version specifier (did you mean "==0.23"?)',
        ),
        (
            "find = 'x'\ndelete = true\nversions = '=>1'",
            '10: edit 1: versions: "=>1" is not a PEP 440 version specifier such as ">=0.23,<0.30"',
        ),
        # examples
        (
            "find = 'x'\ndelete = true\n[[edit.example]]\nbefore = 'x'",
            '10: edit 1: example 1: required key "after" is missing',
        ),
        (
            "find = 'x'\ndelete = true\n[[edit.example]]\nbefore = ''\nafter = ''",
            "11: edit 1: example 1: before: must not be empty",
        ),
        (
            "find = 'x'\ndelete = true\n[[edit.example]]\nbefore = 'x'\nafter = ''\n[[edit.example]]\nbefore = 'x'\n"
            "after = 1",
            "15: edit 1: example 2: after: expected a string, found an integer",
        ),
        (
            "find = 'x'\ndelete = true\n[edit.example]\nbefore = 'x'\nafter = ''",
            "10: edit 1: example: expected an array of tables, found a table: "
            "write [[edit.example]], not [edit.example]",
        ),
        # inline forms have lines too
        ("find = 'x'\ndelete = true\nexample = [\n  {before = 'x', after = ''},\n  {before = 'y', afte = ''},\n]",
         '12: edit 1: example 2: unknown key "afte" (did you mean "after"?)'),
    ],
)  # fmt: skip
def test_one_problem_of_an_edit(body: str, expected: str) -> None:
    assert lines(f"[[edit]]\nfile = 'a.py'\n{body}\n") == [expected]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("''", "must not be empty"),
        ("[]", "must not be empty"),
        ("3", "expected a string or an array of strings, found an integer"),
        ("{}", "expected a string or an array of strings, found a table"),
        ("['a.py', '']", "item 2: must not be empty"),
        ("['a.py', 1]", "item 2: expected a string, found an integer"),
        ("['a.py', 'b.py', 'a.py']", 'item 3: "a.py" is there already, as item 1'),
        ("'/a.py'", '"/a.py" is absolute: paths are relative to site-packages, as in RECORD'),
        ("'../a.py'", '"../a.py" leads out of the distribution (..)'),
        ("'a/../b.py'", '"a/../b.py" leads out of the distribution (..)'),
        ("'a/..'", '"a/.." leads out of the distribution (..)'),
        ("'a//b.py'", '"a//b.py" has an empty or . segment: paths are written as in RECORD (did you mean "a/b.py"?)'),
        ("'a/'", '"a/" has an empty or . segment: paths are written as in RECORD (did you mean "a"?)'),
        ("'./a.py'", '"./a.py" has an empty or . segment: paths are written as in RECORD (did you mean "a.py"?)'),
        ("'.'", '"." has an empty or . segment: paths are written as in RECORD'),
        (r"'a\b.py'", r'"a\\b.py" has a backslash: paths are written with / as in RECORD (did you mean "a/b.py"?)'),
        (r"'..\b.py'", r'"..\\b.py" has a backslash: paths are written with / as in RECORD'),
        ("'C:/a.py'", '"C:/a.py" has a drive letter or a colon: paths are relative to site-packages'),
        ("'a.py:b'", '"a.py:b" has a drive letter or a colon: paths are relative to site-packages'),
        ('"a\\u0000.py"', '"a\\u0000.py" holds a control character'),
        ('"a\\n.py"', '"a\\n.py" holds a control character'),
        ('"a\\u202e.py"', '"a\\u202e.py" holds a control character'),
        ("'a./b.py'", '"a./b.py" has a segment that ends in a dot or a space, which Windows drops'),
        ("'a.py '", '"a.py " has a segment that ends in a dot or a space, which Windows drops'),
        (
            "'.patchkit/ledger.json'",
            '".patchkit/ledger.json" lies in patchkit\'s own records, which no patch may change',
        ),
        (
            "'dist-1.0.dist-info/RECORD'",
            '"dist-1.0.dist-info/RECORD" lies in the installer\'s records, the witness of the pristine bytes, '
            "which no patch may change",
        ),
        (
            "'X.DIST-INFO/RECORD'",
            '"X.DIST-INFO/RECORD" lies in the installer\'s records, the witness of the pristine bytes, '
            "which no patch may change",
        ),
    ],
)
def test_paths_that_are_refused(value: str, expected: str) -> None:
    assert lines(f"[[edit]]\nfile = {value}\nfind = 'x'\ndelete = true\n") == [f"7: edit 1: file: {expected}"]


@pytest.mark.parametrize(
    "value", ["a.py", "a/b/c.py", ".hidden/a", "..a/b..c", "a b/ü.py", "x/y.dist-info/z", "a/.patchkit", "...a"]
)
def test_paths_that_are_fine(value: str) -> None:
    assert load(f"[[edit]]\nfile = '{value}'\nfind = 'x'\ndelete = true\n").edits[0].files == (value,)


@pytest.mark.parametrize("kind", ["precondition", "postcondition", "add"])
def test_paths_are_checked_everywhere(kind: str) -> None:
    rest = "content = ''" if kind == "add" else "find = 'x'"
    assert lines(f"{GOOD}[[{kind}]]\nfile = '../x'\n{rest}\n") == [
        f'11: {kind} 1: file: "../x" leads out of the distribution (..)'
    ]


@pytest.mark.parametrize(
    "body",
    [
        "find = ' '\ndelete = true",  # blank text is text
        'find = "\\n"\ndelete = true',
        "find = 'x'\nreplace = ''",
        "find = 'x'\nafter = ' '\ndelete = true",
        "match = 'x'\nreplace = 'x'",  # whether a syntax edit changes anything, the plan sees
        "match = 'x'\nwrap = 'a($$$BODY)'",
        "find = 'x'\ndelete = true\ncount = 3\nnth = 3",
        "find = 'x'\ndelete = true\nversions = '>=1, !=1.5 ,<2'",
        "find = 'x'\ndelete = true\nscope = 'Klasse.größe'",
        "probe = 'x'\nscope = 'f'\ncount = 2",
        "add_import = ['import os']\nversions = '>1'",
    ],
)
def test_edits_that_are_fine(body: str) -> None:
    assert len(load(f"[[edit]]\nfile = 'a.py'\n{body}\n").edits) == 1


def pair(first: str, second: str, file: str = "'a.py'") -> str:
    return f"[[edit]]\nfile = 'a.py'\n{first}\n[[edit]]\nfile = {file}\n{second}\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (pair("find = 'x'\ndelete = true", "find = 'x'\nreplace = 'y'"),
         "12: edit 2: find: the same place of a.py is edited by edit 1"),
        (pair("find = 'x'\ndelete = true", "replace = 'y'\nfind = 'x'", "['b.py', 'a.py']"),
         "13: edit 2: find: the same place of a.py is edited by edit 1"),
        (pair("match = 'x'\nscope = 'f'\ndelete = true", "scope = 'f'\nmatch = 'x'\ninsert_after = 'y'"),
         "14: edit 2: match: the same place of a.py is edited by edit 1"),
        (pair("find = 'x'\ninsert_after = 'y'", "find = 'x'\nreplace = 'y'"),
         "12: edit 2: find: the same place of a.py is edited by edit 1"),
        (pair("find = 'x'\ninsert_after = 'y'", "find = 'x'\ninsert_after = 'z'"),
         "12: edit 2: find: the same place of a.py is edited by edit 1"),
        (pair("find = 'x'\ndelete = true\nversions = '>=1,<2'", "find = 'x'\ndelete = true\nversions = '<2, >=1'"),
         "13: edit 2: find: the same place of a.py is edited by edit 1"),
        (pair("probe = 'x'\nscope = 'f'", "probe = 'y'\nscope = 'f'"),
         "12: edit 2: probe: the same place of a.py is edited by edit 1"),
    ],
)  # fmt: skip
def test_the_same_place_twice(body: str, expected: str) -> None:
    assert lines(body) == [expected]


def test_several_files_of_one_edit_are_one_problem() -> None:
    body = pair("find = 'x'\ndelete = true", "find = 'x'\ndelete = true").replace("'a.py'", "['a.py', 'b.py']")
    assert lines(body) == ["12: edit 2: find: the same place of a.py is edited by edit 1"]


@pytest.mark.parametrize(
    "body",
    [
        pair("find = 'x'\ndelete = true", "find = 'x'\ndelete = true", "'b.py'"),
        pair("find = 'x'\ndelete = true", "match = 'x'\ndelete = true"),
        pair("find = 'x'\ndelete = true", "find = 'x'\ndelete = true\nscope = 'f'"),
        pair("find = 'x'\ndelete = true", "find = 'x'\ndelete = true\ninside = 'else:'"),
        pair("find = 'x'\ndelete = true", "find = 'x'\ndelete = true\nafter = 'y'"),
        pair("find = 'x'\ndelete = true\ncount = 2\nnth = 1", "find = 'x'\ndelete = true\ncount = 2\nnth = 2"),
        pair("find = 'x'\ndelete = true\nversions = '<2'", "find = 'x'\ndelete = true\nversions = '>=2'"),
        pair("find = 'x'\ninsert_before = 'y'", "find = 'x'\ninsert_after = 'y'"),
        pair("add_import = ['import a']", "add_import = ['import a']"),
        pair("probe = 'x'\nscope = 'f'", "probe = 'x'\nscope = 'g'"),
    ],
)
def test_two_edits_that_differ(body: str) -> None:
    assert len(load(body).edits) == 2


@pytest.mark.parametrize("kind", ["precondition", "postcondition"])
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("find = 'x'", '10: {} 1: required key "file" is missing'),
        ("file = 'a.py'", "10: {} 1: no anchor: {} needs find or match"),
        ("file = 'a.py'\nfind = 'x'\nmatch = 'x'", "13: {} 1: two anchors, find and match: {} needs exactly one"),
        ("file = 'a.py'\nfind = ''", "12: {} 1: find: must not be empty"),
        ("file = 'a.py'\nmatch = ' '", "12: {} 1: match: must not be blank"),
        ("file = ['a.py']\nmatch = 'x'", "11: {} 1: file: expected a string, found an array"),
        ("file = 'a.py'\nfind = 'x'\ncount = -1", "13: {} 1: count: must be at least 0, found -1"),
        ("file = 'a.py'\nfind = 'x'\ncount = 1.5", '13: {} 1: count: expected an integer or a string such as "1+", '
         "found a float"),
        ("file = 'a.py'\nfind = 'x'\ncount = true", '13: {} 1: count: expected an integer or a string such as "1+", '
         "found a boolean"),
        ("file = 'a.py'\nfind = 'x'\ncount = '0+'", '13: {} 1: count: expected an integer or a string such as "1+", '
         'found "0+"'),
        ("file = 'a.py'\nfind = 'x'\ncount = '1'", '13: {} 1: count: expected an integer or a string such as "1+", '
         'found "1"'),
        ("file = 'a.py'\nfind = 'x'\ncount = \"1+\\n\"", '13: {} 1: count: expected an integer or a string such as '
         '"1+", found "1+\\n"'),
        ("file = 'a.py'\nfind = 'x'\nversions = '1'", '13: {} 1: versions: "1" is a version, not a PEP 440 version '
         'specifier (did you mean "==1"?)'),
        ("file = 'a.py'\nfind = 'x'\nreplace = 'y'", '13: {} 1: unknown key "replace": it belongs in [[edit]]'),
    ],
)  # fmt: skip
def test_one_problem_of_a_condition(kind: str, body: str, expected: str) -> None:
    assert lines(f"{GOOD}[[{kind}]]\n{body}\n") == [expected.replace("{}", kind)]


@pytest.mark.parametrize(
    ("count", "bounds"), [("0", (0, 0)), ("3", (3, 3)), ("'1+'", (1, None)), ("'20+'", (20, None))]
)
def test_counts_of_conditions(count: str, bounds: tuple[int, int | None]) -> None:
    condition = load(f"{GOOD}[[precondition]]\nfile = 'a.py'\nfind = 'x'\ncount = {count}\n").preconditions[0]
    assert (condition.at_least, condition.at_most) == bounds


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("", ["10: upstreamed 1: needs versions, or file with find or match"]),
        ("file = 'a.py'", ["10: upstreamed 1: no anchor: upstreamed needs find or match"]),
        ("versions = '>=1'\nfile = 'a.py'", ["10: upstreamed 1: no anchor: upstreamed needs find or match"]),
        ("find = 'x'", ["10: upstreamed 1: the anchor needs a file"]),
        ("versions = '>=1'\nmatch = 'x'", ["10: upstreamed 1: the anchor needs a file"]),
        ("versions = '>=1'\nscope = 'f'", ["12: upstreamed 1: scope: has no meaning without find or match"]),
        ("versions = '>=1'\ncount = 1", ["12: upstreamed 1: count: has no meaning without find or match"]),
        ("versios = '>=1'", ['11: upstreamed 1: unknown key "versios" (did you mean "versions"?)']),
    ],
)
def test_one_problem_of_upstreamed(body: str, expected: list[str]) -> None:
    assert lines(f"{GOOD}[[upstreamed]]\n{body}\n") == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("file = 'a.py'", '10: add 1: required key "content" is missing'),
        ("content = ''", '10: add 1: required key "file" is missing'),
        ("file = 'a.py'\ncontent = 1", "12: add 1: content: expected a string, found an integer"),
        ("file = ['a.py']\ncontent = ''", "11: add 1: file: expected a string, found an array"),
        ("file = 'a.py'\ncontent = ''\nversions = 'x'",
         '13: add 1: versions: "x" is not a PEP 440 version specifier such as ">=0.23,<0.30"'),
        ("file = 'good.py'\ncontent = ''", '11: add 1: file: "good.py" is edited by edit 1: a file is new or edited'),
        ("file = 'a.py'\ncontent = ''\n[[add]]\nfile = 'a.py'\ncontent = 'x'",
         '14: add 2: file: "a.py" is added by add 1 already'),
    ],
)  # fmt: skip
def test_one_problem_of_an_add(body: str, expected: str) -> None:
    assert lines(f"{GOOD}[[add]]\n{body}\n") == [expected]


def test_a_file_added_differently_for_different_versions() -> None:
    body = (
        "[[add]]\nfile = 'a.py'\ncontent = '1'\nversions = '<2'\n"
        "[[add]]\nfile = 'a.py'\ncontent = '2'\nversions = '>=2'\n"
    )
    assert [add.content for add in load(body).adds] == ["1", "2"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("", '10: remove 1: required key "file" is missing'),
        ("file = []", "11: remove 1: file: must not be empty"),
        ("file = 1", "11: remove 1: file: expected a string or an array of strings, found an integer"),
        ("file = ['a.py', 'a.py']", '11: remove 1: file: item 2: "a.py" is there already, as item 1'),
        ("file = '../a.py'", '11: remove 1: file: "../a.py" leads out of the distribution (..)'),
        ("file = 'a.py'\ncontent = ''", '12: remove 1: unknown key "content": it belongs in [[add]]'),
        ("file = 'a.py'\nversions = 'x'",
         '12: remove 1: versions: "x" is not a PEP 440 version specifier such as ">=0.23,<0.30"'),
        ("file = 'good.py'", '11: remove 1: file: "good.py" is edited by edit 1'),
        ("file = ['b.py', 'a.py']\n[[add]]\nfile = 'a.py'\ncontent = ''",
         '11: remove 1: file: "a.py" is added by add 1'),
        ("file = 'a.py'\n[[remove]]\nfile = ['b.py', 'a.py']",
         '13: remove 2: file: "a.py" is taken away by remove 1 already'),
    ],
)  # fmt: skip
def test_one_problem_of_a_remove(body: str, expected: str) -> None:
    assert lines(f"{GOOD}[[remove]]\n{body}\n") == [expected]


def test_a_file_edited_in_some_versions_and_taken_away_in_others() -> None:
    found = load(GOOD.replace("find", "versions = '<2'\nfind") + "[[remove]]\nfile = 'good.py'\nversions = '>=2'\n")
    assert [(remove.index, remove.files, remove.versions) for remove in found.removes] == [(1, ("good.py",), ">=2")]


def test_a_patch_that_only_takes_files_away() -> None:
    assert load("[[remove]]\nfile = ['a.py', 'b.json']\n").removes[0].files == ("a.py", "b.json")
