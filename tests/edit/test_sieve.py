"""The sieve may only hold back what cannot match."""

from __future__ import annotations

import ast
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.edit import matcher
from patchkit.edit.matcher import find_pattern
from patchkit.edit.outline import Outline
from patchkit.edit.pattern import compile_pattern
from patchkit.edit.sieve import lines_of
from patchkit.edit.source import Source
from patchkit.edit.spans import Span


def outline_of(text: str) -> Outline:
    return Outline(Source(text.encode(), path="x.py"), ast.parse(text))


def lines(text: str, pattern: str) -> list[int]:
    outline = outline_of(text)
    found = find_pattern(outline, compile_pattern(pattern, ast.parse), [Span(0, len(text))])
    return [outline.source.line(match.span.start) for match in found]


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("a.one()\nb.two()\na.two()\n", "$X.two()", [2, 3]),
        ("f(\n    a,\n    key=1,\n)\nf(a, b=1)\n", "f($$$, key=$V)", [1]),
        ("@deco\n\n\ndef f():\n    pass\n", "@deco\ndef $F(): $$$", [1]),
        ("if a:\n    one()\nelse:\n    two()\n", "if $C:\n    $$$\nelse:\n    two()", [1]),
        ("one()\ntwo()\n\nthree()\n", "two()\nthree()", [2]),
        ("x = ﬁle\nx = file\n", "file", [1, 2]),  # a ligature, which Python reads as "fi"
        ("x = ﬁle\n", "x = file", [1]),
        ("# ﬁle\nx = other\n", "file", []),
    ],
)
def test_no_match_is_held_back(text: str, pattern: str, expected: list[int]) -> None:
    assert lines(text, pattern) == expected


def test_within_an_f_string_positions_are_not_trusted() -> None:
    assert len(lines("y = f'''\n\n{name}'''\n", "name")) == 1


def test_lines_are_those_of_the_rarest_name() -> None:
    source = Source(b"a.one()\nb.two()\na.two()\nc.three(a)\n", path="x.py")
    assert lines_of(source, compile_pattern("a.two()", ast.parse)) == [2, 3]
    assert lines_of(source, compile_pattern("$X.three()", ast.parse)) == [4]
    assert lines_of(source, compile_pattern("nobody($X)", ast.parse)) == []


def test_a_pattern_without_names_may_match_anywhere() -> None:
    source = Source(b"a.one()\n", path="x.py")
    assert lines_of(source, compile_pattern("$X + 1", ast.parse)) is None


NAMES = st.sampled_from(["a", "ab", "file", "ﬁle", "self"])
EXPRESSIONS = st.recursive(
    NAMES | st.sampled_from(["1", "'a'", "f'{a}'", "f'{ab.file(a)}'"]),
    lambda inner: st.one_of(
        st.builds("{}({})".format, NAMES, inner),
        st.builds("{}.{}".format, NAMES, NAMES),
        st.builds("{}.{}(\n    {},\n    {}={},\n)".format, NAMES, NAMES, inner, NAMES, inner),
        st.builds("({} +\n {})".format, inner, inner),
    ),
    max_leaves=4,
)
STATEMENTS = st.one_of(
    EXPRESSIONS,
    st.builds("{} = {}".format, NAMES, EXPRESSIONS),
    st.builds("if {}:\n    {} = 1\nelse:\n    pass".format, EXPRESSIONS, NAMES),
    st.builds("@{}\n\ndef {}({}=1):\n    # {}\n    return {}".format, NAMES, NAMES, NAMES, NAMES, NAMES),
    st.builds("import {}.{} as {}".format, NAMES, NAMES, NAMES),
    st.builds("global {}".format, NAMES),
)
PATTERNS = st.one_of(
    STATEMENTS,
    st.builds("{}($$$)".format, NAMES),
    st.builds("$X.{}($$$)".format, NAMES),
    st.builds("$F($$$, {}=$V)".format, NAMES),
    st.builds("{} = $X".format, NAMES),
    st.builds("if {}: $$$".format, NAMES),
    st.builds("@{}\ndef $F($$$): $$$".format, NAMES),
    st.builds("{}\n{}".format, NAMES, NAMES),
    st.builds("import {}.$N as {}".format, NAMES, NAMES),
)


@given(st.lists(STATEMENTS, min_size=1, max_size=4), PATTERNS)
def test_what_matches_matches_with_the_sieve_as_without(statements: list[str], pattern: str) -> None:
    text = "\n".join(statements) + "\n"
    compiled = compile_pattern(pattern, ast.parse)

    def found() -> list[tuple[Span, int]]:
        whole = [Span(0, len(text))]
        return [(match.span, len(match.nodes)) for match in find_pattern(outline_of(text), compiled, whole)]

    with mock.patch.object(matcher, "lines_of", return_value=None):
        expected = found()
    assert found() == expected
