"""Bytes and TOML syntax, and that nothing but a PatchFileError ever comes out."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from patchkit.errors import PatchFileError
from patchkit.model.document import describe, dotted
from patchkit.model.keys import TABLES
from patchkit.model.load import parse_patch

TOP = 'schema = 1\nname = "p"\nsummary = "s"\n'  # lines 1 to 3
TARGET = '[target]\nrequirement = "dist"\n'  # lines 4 and 5
EDIT = '[[edit]]\nfile = "a.py"\nfind = "x"\nreplace = "y"\n'  # lines 6 to 9


def refusal(text: str | bytes) -> PatchFileError:
    data = text.encode() if isinstance(text, str) else text
    with pytest.raises(PatchFileError) as caught:
        parse_patch(data, "patches/p.toml")
    return caught.value


def test_key_paths_in_words() -> None:
    assert describe(()) == ""
    assert describe(("edit", 2)) == "edit 2"
    assert describe(("edit", 2, "example", 1)) == "edit 2: example 1"
    assert describe(("tool", "patchkit")) == "tool.patchkit"
    assert dotted(("edit", 2, "example", 1, "before")) == "edit[2].example[1].before"


def test_not_utf8_names_the_byte() -> None:
    error = refusal(b'schema = 1\nname = "p"\nsummary = "caf\xe9"\n')
    assert error.message == "patches/p.toml:3: not UTF-8: byte 0xe9 at offset 36"
    assert error.hint == "save the file as UTF-8"


def test_the_offset_counts_the_byte_order_mark() -> None:
    assert refusal(b"\xef\xbb\xbf\xff").message == "patches/p.toml:1: not UTF-8: byte 0xff at offset 3"


def test_utf16() -> None:
    assert refusal("schema = 1".encode("utf-16")).message == "patches/p.toml: is UTF-16; TOML is UTF-8"


def test_byte_order_mark_is_accepted() -> None:
    data = b"\xef\xbb\xbf" + (TOP + TARGET + EDIT).encode()
    patch = parse_patch(data, "p.toml")
    assert patch.data == data
    assert patch.line_of("edit", 1, "find") == 8


def test_size() -> None:
    text = TOP + TARGET + EDIT
    limit = 8 * 1024 * 1024
    parse_patch((text + "#" * (limit - len(text))).encode(), "p.toml")
    assert refusal(text + "#" * (limit - len(text) + 1)).message == (
        "patches/p.toml: is larger than 8 MB, the most that is read"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "schema = 1\nname 'p'\n",
            [
                "2: not valid TOML: expected '=' after a key in a key/value pair (column 6)",
                "    name 'p'",
                "         ^",
            ],
        ),
        ("a = 1\nb = ", ["2: not valid TOML: invalid value (column 5)", "    b = ", "        ^"]),
        ("a = '''\nb\n\n", ["3: not valid TOML: expected \"'''\" (column 1)", "    ", "    ^"]),
        (
            "a =\t\x1b1\n",
            ["1: not valid TOML: invalid value (column 5)", "    a =\t\\x1b1", "       \t^"],
        ),
        (
            "a = '" + "x" * 200 + "\n",
            [
                "1: not valid TOML: found invalid character '\\n' (column 206)",
                "    " + "x" * 50,
                "    " + " " * 50 + "^",
            ],
        ),
        ("[a]\n[a]\n", ["2: not valid TOML: cannot declare ('a',) twice (column 3)", "    [a]", "      ^"]),
    ],
)
def test_toml_errors_show_the_place(text: str, expected: list[str]) -> None:
    found = refusal(text).message.split("\n")
    # tomllib's wording is not ours: only its place and the excerpt are compared where they could change.
    assert found[1:] == expected[1:]
    head, column = expected[0].split(": ", 2), expected[0][expected[0].rindex("(") :]
    assert found[0].startswith(f"patches/p.toml:{head[0]}: not valid TOML: ")
    assert found[0].endswith(column)


def test_a_backslash_in_a_basic_string() -> None:
    error = refusal('schema = 1\nfind = """re.match("\\d")"""\n')
    assert error.message.split("\n")[0].startswith("patches/p.toml:2: not valid TOML: unescaped ")
    assert error.hint == "write code between ''' and ''', where a backslash is only a backslash"


def test_a_key_set_twice_names_both_lines() -> None:
    error = refusal(TOP + TARGET + EDIT + "find = '''\nz\n'''\nreplace = 'w'\n")
    assert error.message.split("\n") == [
        "patches/p.toml:10: edit 1: find: is set twice, first on line 8",
        "patches/p.toml:13: edit 1: replace: is set twice, first on line 9",
    ]
    assert error.hint == "a new [[edit]] header begins the next edit"
    assert error.details["problems"][0]["key"] == "edit[1].find"


def test_a_top_level_key_set_twice() -> None:
    error = refusal("schema = 1\nschema = 1\n")
    assert error.message == "patches/p.toml:2: schema: is set twice, first on line 1"
    assert error.hint is None


def test_nesting_without_end() -> None:
    assert refusal("a = " + "[" * 100_000).message == "patches/p.toml: arrays or tables are nested too deeply"


def test_an_integer_without_end() -> None:
    assert refusal("a = " + "1" * 5_000).message == (
        "patches/p.toml: not valid TOML: it holds an integer of more than 64 bits"
    )


# Never anything but a PatchFileError

_WORDS = [
    *("schema", "name", "summary", "target", "requirement", "edit", "example", "file", "find", "match", "replace"),
    *("count", "nth", "versions", "delete", "add_import", "precondition", "upstreamed", "add", "content", "tags"),
    *("=", " = ", ".", ",", "\n", "\r\n", "\r", "[", "]", "[[", "]]", "{", "}", "'", '"', "'''", '"""', "\\", "#"),
    *("1", "-1", "true", "1.5", "1979-05-27", '"p"', '"a.py"', '">=1"', "'x'", "inf", "\\u0041", "\t", "\0", "é"),
]
_TOMLISH = st.lists(st.sampled_from(_WORDS), max_size=60).map(lambda words: "".join(words).encode())
_SOUP = st.binary(max_size=40) | _TOMLISH | st.tuples(_TOMLISH, st.binary(max_size=4)).map(b"".join)


def parse_or_refuse(data: bytes) -> None:
    try:
        parse_patch(data, "p.toml").line_of("edit", 1)
    except PatchFileError as error:
        problems = error.details["problems"]
    else:
        return
    assert problems


@settings(max_examples=300, deadline=None)
@given(_SOUP)
@example(b"")
@example(b"\xef\xbb\xbf")
@example(b"\xff\xfe")
def test_bytes_of_any_kind(data: bytes) -> None:
    parse_or_refuse(data)


_LEAF = st.sampled_from(
    [
        "1",
        "-1",
        "0",
        "true",
        "false",
        "1.5",
        "nan",
        "1979-05-27",
        "07:32:00",
        '""',
        '" "',
        '"p"',
        '"a.py"',
        '"../a"',
        '">=1"',
        '"1"',
        '"1+"',
        '"x\\u001b"',
        '"\\u0000"',
        "[]",
        '["a.py"]',
        "[1]",
        "[[]]",
        "[{}]",
        "{}",
        "{a = 1}",
    ]
)
_NAMES = sorted({name for table in TABLES.values() for name in table.keys})
_KEYS = st.sampled_from([*_NAMES, "bogus"])
_ROWS = st.dictionaries(_KEYS, _LEAF, max_size=8).map(lambda row: "".join(f"{k} = {v}\n" for k, v in row.items()))
_HEADERS = st.sampled_from(
    ["", "[target]\n", "[[edit]]\n", "[[precondition]]\n", "[[postcondition]]\n", "[[add]]\n", "[[upstreamed]]\n"]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(_HEADERS, _ROWS), max_size=5))
def test_values_of_any_kind(tables: list[tuple[str, str]]) -> None:
    parse_or_refuse((TOP + "".join(header + row for header, row in tables)).encode())
