"""What is wrong at the top of a file and in its target, and that every problem is told at once."""

from __future__ import annotations

import pytest

from patchkit.errors import PatchFileError
from patchkit.model.load import parse_patch

TOP = 'schema = 1\nname = "p"\nsummary = "s"\n'  # lines 1 to 3
TARGET = '[target]\nrequirement = "dist"\n'  # lines 4 and 5
EDIT = '[[edit]]\nfile = "a.py"\nfind = "x"\nreplace = "y"\n'  # lines 6 to 9


def refusal(text: str | bytes, path: str | None = "patches/p.toml") -> PatchFileError:
    data = text.encode() if isinstance(text, str) else text
    with pytest.raises(PatchFileError) as caught:
        parse_patch(data, path)
    assert caught.value.code == "patch-file"
    assert caught.value.exit_status == 2
    return caught.value


def lines(text: str | bytes) -> list[str]:
    return refusal(text).message.split("\n")


def test_all_problems_at_once_in_the_order_of_the_file() -> None:
    error = refusal(
        'schema = 1\nname = "p"\nlnks = []\n[target]\noptional = "yes"\n'
        '[[edit]]\nfile = "a.py"\nfind = "x"\nreplce = "y"\n[[edit]]\nfile = "/a.py"\nfind = ""\ndelete = true\n'
    )
    assert error.message.split("\n") == [
        'patches/p.toml: required key "summary" is missing',
        'patches/p.toml:3: unknown key "lnks" (did you mean "links"?)',
        'patches/p.toml:4: target: required key "requirement" is missing',
        "patches/p.toml:5: target: optional: expected a boolean, found a string",
        'patches/p.toml:9: edit 1: unknown key "replce" (did you mean "replace"?)',
        'patches/p.toml:11: edit 2: file: "/a.py" is absolute: paths are relative to site-packages, as in RECORD',
        "patches/p.toml:12: edit 2: find: must not be empty",
    ]
    assert error.details["path"] == "patches/p.toml"
    assert error.details["line"] is None
    assert error.details["key"] is None
    assert len(error.details["problems"]) == 7
    assert error.details["problems"][4] == {
        "path": "patches/p.toml",
        "line": 9,
        "key": "edit[1].replce",
        "message": 'edit 1: unknown key "replce"',
        "suggestion": "replace",
    }


def test_details_are_those_of_the_first_problem() -> None:
    error = refusal(TOP + TARGET + EDIT + "cuont = 2\n")
    assert error.message == 'patches/p.toml:10: edit 1: unknown key "cuont" (did you mean "count"?)'
    assert (error.details["path"], error.details["line"], error.details["key"]) == (
        "patches/p.toml",
        10,
        "edit[1].cuont",
    )


def test_without_a_path() -> None:
    assert refusal(TOP + TARGET + EDIT + "cuont = 2\n", None).message == (
        '<patch>:10: edit 1: unknown key "cuont" (did you mean "count"?)'
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # schema
        ("schema = 0\n" + TOP[11:] + TARGET + EDIT, "1: schema: must be 1, found 0"),
        ("schema = -1\n" + TOP[11:] + TARGET + EDIT, "1: schema: must be 1, found -1"),
        ('schema = "1"\n' + TOP[11:] + TARGET + EDIT, "1: schema: expected an integer, found a string"),
        ("schema = 1.0\n" + TOP[11:] + TARGET + EDIT, "1: schema: expected an integer, found a float"),
        ("schema = true\n" + TOP[11:] + TARGET + EDIT, "1: schema: expected an integer, found a boolean"),
        (TOP[11:] + TARGET + EDIT, ' required key "schema" is missing'),
        ("shema = 1\n" + TOP[11:] + TARGET + EDIT, '1: unknown key "shema" (did you mean "schema"?)'),
        # name
        (
            TOP.replace('"p"', '"Big_Name"') + TARGET + EDIT,
            '2: name: "Big_Name" is not made of lower-case letters, digits and hyphens, '
            'beginning with a letter or digit (did you mean "big-name"?)',
        ),
        (
            TOP.replace('"p"', '"p\\n"') + TARGET + EDIT,
            '2: name: "p\\n" is not made of lower-case letters, digits and hyphens, '
            'beginning with a letter or digit (did you mean "p"?)',
        ),
        (
            TOP.replace('"p"', '"-p"') + TARGET + EDIT,
            '2: name: "-p" is not made of lower-case letters, digits and hyphens, '
            'beginning with a letter or digit (did you mean "p"?)',
        ),
        (
            TOP.replace('"p"', '"p\\u202e"') + TARGET + EDIT,
            '2: name: "p\\u202e" is not made of lower-case letters, digits and hyphens, '
            'beginning with a letter or digit (did you mean "p"?)',
        ),
        (
            TOP.replace('"p"', '""') + TARGET + EDIT,
            '2: name: "" is not made of lower-case letters, digits and hyphens, beginning with a letter or digit',
        ),
        (TOP.replace('"p"', '"q"') + TARGET + EDIT, '2: name: "q" is not the file\'s own name "p" (did you mean "p"?)'),
        (TOP.replace('name = "p"', "name = 3") + TARGET + EDIT, "2: name: expected a string, found an integer"),
        # what is printed to terminals
        (TOP.replace('"s"', '""') + TARGET + EDIT, "3: summary: must not be empty"),
        (TOP.replace('"s"', '" "') + TARGET + EDIT, "3: summary: must not be empty"),
        (TOP.replace('"s"', '"a\\nb"') + TARGET + EDIT, "3: summary: must be one line"),
        (
            TOP.replace('"s"', '"a\\u001b[2J"') + TARGET + EDIT,
            "3: summary: holds U+001B, a character that controls terminals",
        ),
        (
            TOP.replace('"s"', '"a\u202eb"') + TARGET + EDIT,
            "3: summary: holds U+202E, a character that controls terminals",
        ),
        (
            TOP.replace('"s"', '"a\\u2066b"') + TARGET + EDIT,
            "3: summary: holds U+2066, a character that controls terminals",
        ),
        (TOP.replace('"s"', "1979-05-27") + TARGET + EDIT, "3: summary: expected a string, found a date"),
        (TOP.replace('"s"', "07:32:00") + TARGET + EDIT, "3: summary: expected a string, found a time"),
        (
            TOP.replace('"s"', "1979-05-27T07:32:00Z") + TARGET + EDIT,
            "3: summary: expected a string, found a date-time",
        ),
        (TOP.replace('"s"', "{a = 1}") + TARGET + EDIT, "3: summary: expected a string, found a table"),
        (TOP.replace('"s"', "[{a = 1}]") + TARGET + EDIT, "3: summary: expected a string, found an array of tables"),
        (
            TOP + 'description = "a\\u0007"\n' + TARGET + EDIT,
            "4: description: holds U+0007, a character that controls terminals",
        ),
        # links, tags
        (TOP + 'links = "x"\n' + TARGET + EDIT, "4: links: expected an array of strings, found a string"),
        (TOP + 'links = [\n "x",\n 3]\n' + TARGET + EDIT, "6: links: item 2: expected a string, found an integer"),
        (TOP + 'links = [""]\n' + TARGET + EDIT, "4: links: item 1: must not be empty"),
        (
            TOP + 'tags = ["known_bad"]\n' + TARGET + EDIT,
            '4: tags: item 1: "known_bad" is not made of lower-case letters, digits and hyphens, '
            'beginning with a letter or digit (did you mean "known-bad"?)',
        ),
        (TOP + 'tags = ["a", "a"]\n' + TARGET + EDIT, '4: tags: item 2: "a" is there already, as item 1'),
        # tables
        (TOP + "target = 3\n" + EDIT, "4: target: expected a table, found an integer"),
        (
            TOP + "[[target]]\nrequirement = 'x'\n" + EDIT,
            "4: target: expected a table, found an array of tables: write [target], not [[target]]",
        ),
        (TOP + EDIT, ' required key "target" is missing'),
        (TOP + TARGET, " the patch does nothing: it has no [[edit]], no [[add]] and no [[remove]]"),
        (TOP + "edit = []\n" + TARGET, " the patch does nothing: it has no [[edit]], no [[add]] and no [[remove]]"),
        (TOP + "edit = [1]\n" + TARGET, "4: edit: expected an array of tables, found an array"),
        (
            TOP + TARGET + EDIT.replace("[[edit]]", "[edit]"),
            "6: edit: expected an array of tables, found a table: write [[edit]], not [edit]",
        ),
        (TOP + TARGET + EDIT.replace("edit", "edits"), '6: unknown key "edits" (did you mean "edit"?)'),
        (
            TOP + TARGET + EDIT + "[[postconditions]]\n",
            '10: unknown key "postconditions" (did you mean "postcondition"?)',
        ),
        # keys in the wrong table
        (TOP + 'requirement = "x"\n' + TARGET + EDIT, '4: unknown key "requirement": it belongs in [target]'),
        (
            TOP + TARGET + 'summary = "x"\n' + EDIT,
            '6: target: unknown key "summary": it belongs at the top, before the first table',
        ),
        (TOP + TARGET + EDIT + 'content = "x"\n', '10: edit 1: unknown key "content": it belongs in [[add]]'),
        (TOP + "xyzzy = 1\n" + TARGET + EDIT, '4: unknown key "xyzzy"'),
        (TOP + '"a\\u001bb\\"" = 1\n' + TARGET + EDIT, '4: unknown key "a\\u001bb\\""'),
        (TOP + "k" * 99 + " = 1\n" + TARGET + EDIT, '4: unknown key "' + "k" * 77 + '..."'),
        # target
        (TOP + '[target]\nrequirement = ""\n' + EDIT, "5: target: requirement: must not be empty"),
        (
            TOP + '[target]\nrequirement = "x @ https://example.invalid/x.whl"\n' + EDIT,
            '5: target: requirement: "x @ https://example.invalid/x.whl" names a URL: '
            "a guard is a name, version specifiers and a marker",
        ),
        (
            TOP + '[target]\nrequirement = "x[b,a]>1"\n' + EDIT,
            "5: target: requirement: extras such as [a,b] cannot be told from what is installed: "
            "name the distribution alone",
        ),
        (
            TOP + TARGET + 'requires = ["ok", "x[y]"]\n' + EDIT,
            "6: target: requires: item 2: extras such as [y] cannot be told from what is installed: "
            "name the distribution alone",
        ),
        (TOP + TARGET + 'requires = "x"\n' + EDIT, "6: target: requires: expected an array of strings, found a string"),
        (TOP + TARGET + "optional = 1\n" + EDIT, "6: target: optional: expected a boolean, found an integer"),
        (
            TOP + TARGET + 'otherwise = "\\u009b"\n' + EDIT,
            "6: target: otherwise: holds U+009B, a character that controls terminals",
        ),
        (TOP + TARGET + 'conflicts = ["a", "p"]\n' + EDIT, "6: target: conflicts: item 2: is this patch itself"),
        (TOP + TARGET + 'after = ["p"]\n' + EDIT, "6: target: after: item 1: is this patch itself"),
        (
            TOP + TARGET + 'after = ["A b"]\n' + EDIT,
            '6: target: after: item 1: "A b" is not made of lower-case letters, digits and hyphens, '
            'beginning with a letter or digit (did you mean "a-b"?)',
        ),
        (
            TOP + TARGET + 'conflicts = ["a", "a"]\n' + EDIT,
            '6: target: conflicts: item 2: "a" is there already, as item 1',
        ),
    ],
)
def test_one_problem(text: str, expected: str) -> None:
    assert lines(text) == [f"patches/p.toml:{expected}"]


@pytest.mark.parametrize("value", ["dist ==> 1", "dist 1.0", "", " ", "a b", "dist; python_versio > '3'", "dist>=1."])
def test_a_requirement_that_is_none(value: str) -> None:
    (message,) = lines(TOP + f'[target]\nrequirement = "{value}"\n' + EDIT)
    prefix = "patches/p.toml:5: target: requirement: "
    assert message.startswith(prefix + (f'"{value}" is not a PEP 508 requirement: ' if value else "must not be empty"))


@pytest.mark.parametrize(
    "value",
    ["dist", "Dist_Name", "dist>=1,<2", "dist (>=1)", "dist==1.*", "dist~=1.2; sys_platform == 'linux'", "d===x"],
)
def test_requirements_that_are_fine(value: str) -> None:
    patch = parse_patch((TOP + f'[target]\nrequirement = "{value}"\n' + EDIT).encode(), "p.toml")
    assert patch.target.requirement == value


@pytest.mark.parametrize("extra", ["unknown = 1", "[[future]]", "edit = 5"])
def test_a_later_schema_says_only_that_patchkit_is_too_old(extra: str) -> None:
    error = refusal('name = "other"\nschema = 2\n' + extra + "\n")
    assert error.message == (
        "patches/p.toml:2: schema: the file is of schema 2, this patchkit reads schema 1: this patchkit is too old"
    )
    assert error.hint == "upgrade patchkit: pip install --upgrade site-patchkit"


def test_a_misnamed_file_whose_name_is_no_name() -> None:
    assert refusal(TOP + TARGET + EDIT, "x/My Patch.toml").message == (
        'x/My Patch.toml:2: name: "p" is not the file\'s own name "My Patch"'
    )


def test_path_is_printed_safely() -> None:
    assert refusal("", "a\x1bb.toml").message.startswith("a\\x1bb.toml: ")
