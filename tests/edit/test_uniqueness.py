from __future__ import annotations

import ast
import tomllib
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.edit import uniqueness
from patchkit.edit.explain import Problem
from patchkit.edit.outline import Outline
from patchkit.edit.source import Source
from patchkit.edit.spans import Span

SOURCE = """\
import os


class A:
    def f(self):
        x = g(1)
        return x

    def g(self):
        if self.ready:
            x = g(1)
        else:
            x = g(1)
        return x


def f():
    y = 2
    x = g(1)
    y = 2
    x = g(1)
"""


def make(
    text: str, anchor: str, kind: Literal["find", "match"] = "find", scope: str | None = None, **more: Any
) -> Problem:
    source = Source(text.encode("utf-8", "surrogateescape"), path="m.py")
    outline = Outline(source, ast.parse(text))
    pattern = None
    if kind == "match":
        from patchkit.edit.pattern import compile_pattern

        pattern = compile_pattern(anchor, ast.parse)
    problem = Problem(source, outline, anchor, kind, scope, more.pop("inside", None), [], "1", pattern, ast.parse)
    problem = problem._replace(**more)
    if "regions" in more:
        return problem
    return problem._replace(regions=uniqueness.regions_of(problem, problem.scope, problem.inside))


def test_a_long_line_is_cut_around_the_column_that_matters() -> None:
    assert uniqueness.quote("a" * 160) == "a" * 160
    assert uniqueness.quote("a" * 161) == "a" * 159 + "…"
    shown = uniqueness.quote("a" * 1000 + "HERE" + "b" * 1000, column=1001)
    assert "HERE" in shown
    assert len(shown) == 160
    assert shown[0] == shown[-1] == "…"


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("A.f", '"A.f"'),
        ("x = 'a'", "\"x = 'a'\""),
        ('x = "a"', "'x = \"a\"'"),
        ("x = \"a\" + 'b'", '"x = \\"a\\" + \'b\'"'),
        ("r'\\d'", "\"r'\\\\d'\""),
        ("    x = 1\n", "'''\n    x = 1\n'''"),
        ("a\nb", "'''\na\nb'''"),
        ("\tx\n", '"""\n\\tx\n"""'),
        ("x \n", '"""\nx\\u0020\n"""'),
        ("'''doc'''\n", "\"\"\"\n'''doc'''\n\"\"\""),
        ("a\n'", '"""\na\n\'"""'),
    ],
)
def test_toml_strings(text: str, literal: str) -> None:
    assert uniqueness.toml_string(text) == literal
    assert tomllib.loads(f"x = {literal}")["x"] == text


@given(st.text(alphabet=st.characters(blacklist_categories=["Cs"]) | st.sampled_from("'\"\\\n\t \r")))
def test_toml_strings_read_back_as_they_were(text: str) -> None:
    literal = uniqueness.toml_string(text)
    assert literal is not None
    assert tomllib.loads(f"x = {literal}\ny = 1") == {"x": text, "y": 1}


def test_toml_cannot_hold_a_byte_that_did_not_decode() -> None:
    assert uniqueness.toml_string("a\udcff") is None


@pytest.mark.parametrize(
    ("expected", "count", "good"),
    [("1", 1, True), ("1", 2, False), ("0", 0, True), ("0", 1, False), ("2+", 3, True), ("2+", 1, False)],
)
def test_accepts(expected: str, count: int, good: bool) -> None:
    assert uniqueness.accepts(expected, count) is good


def at(problem: Problem, line: int) -> Span:
    return next(s for s in uniqueness.hits(problem, problem.regions) if problem.source.line(s.start) == line)


def test_the_shortest_scope_that_holds_one_place_only() -> None:
    problem = make(SOURCE, "x = g(1)")
    assert [problem.source.line(s.start) for s in uniqueness.hits(problem, problem.regions)] == [6, 11, 13, 19, 21]
    assert uniqueness.unique_scope(problem, at(problem, 6)) == "A.f"
    assert uniqueness.unique_scope(problem, at(problem, 11)) is None
    assert uniqueness.unique_scope(problem, at(problem, 19)) is None
    assert uniqueness.unique_scope(make(SOURCE, "if self.ready:"), at(make(SOURCE, "if self.ready:"), 10)) == "A"


def test_no_scope_is_proposed_where_after_or_before_narrowed_the_search() -> None:
    problem = make(SOURCE, "x = g(1)", regions=[Span(0, len(SOURCE) - 1)])
    assert uniqueness.has_neighbours(problem)
    assert uniqueness.unique_scope(problem, at(problem, 6)) is None


def test_the_smallest_context_that_is_unique() -> None:
    problem = make(SOURCE, "x = g(1)")
    context = uniqueness.unique_context(problem, at(problem, 13))
    assert context == uniqueness.Context("        else:\n            x = g(1)\n", 1, 0)
    # Line 18 above it does not help: lines 20 and 21 read the same.
    context = uniqueness.unique_context(problem, at(problem, 19))
    assert context == uniqueness.Context("    x = g(1)\n    y = 2\n", 0, 1)


def test_a_part_of_a_line_becomes_its_whole_line() -> None:
    problem = make("a = f(x)\nb = f(x)\n", "f(x)")
    assert uniqueness.unique_context(problem, at(problem, 2)) == uniqueness.Context("b = f(x)\n", 0, 0)


def test_context_stays_within_the_searched_regions() -> None:
    problem = make(SOURCE, "x = g(1)", scope="A.f")
    context = uniqueness.unique_context(problem, at(problem, 6))
    assert context == uniqueness.Context("        x = g(1)\n", 0, 0)


def test_six_equal_lines_have_no_unique_context_in_the_middle() -> None:
    problem = make("x = 1\n" * 30, "x = 1\n")
    assert uniqueness.unique_context(problem, at(problem, 15)) is None


def test_context_at_the_end_of_a_file_without_a_final_line_break() -> None:
    problem = make("x = 1\ny = 2\nx = 1", "x = 1")
    assert uniqueness.unique_context(problem, at(problem, 3)) == uniqueness.Context("y = 2\nx = 1", 1, 0)


def test_a_scope_with_as_many_as_expected() -> None:
    problem = make(SOURCE, "x = g(1)", expected="3")
    assert uniqueness.counting_scope(problem, uniqueness.hits(problem, problem.regions)) == "A"


def test_headers_of_every_kind_of_block() -> None:
    text = """\
async def f(a):
    async with a as b:
        pass
    for i, j in a:
        pass
    else:
        pass
    while a:
        pass
    try:
        pass
    except (A, B) as e:
        pass
    finally:
        pass
    match a:
        case [x]:
            pass
    if a:
        pass
    elif b:
        pass
    else:
        pass
class C(D):
    pass
"""
    outline = Outline(Source(text.encode(), path="m.py"), ast.parse(text))
    written = [header.text for header in uniqueness.headers(outline)]
    assert written == [
        "async def f(...):",
        "async with a as b:",
        "for i, j in a:",
        "else:",
        "while a:",
        "try:",
        "finally:",
        "except (A, B) as e:",
        "match a:",
        "case [x]:",
        "if a:",
        "elif b:",
        "else:",
        "class C(...):",
    ]
    for header in written:
        assert outline.blocks(header, ast.parse), header


def test_the_innermost_header_around_a_place() -> None:
    problem = make(SOURCE, "$X = g(1)", "match", "A.g")
    places = uniqueness.hits(problem, problem.regions)
    assert [uniqueness.unique_inside(problem, place) for place in places] == ["if self.ready:", "else:"]


def test_excerpt_marks_the_lines_and_shortens_long_matches() -> None:
    source = Source(("".join(f"line {n}\n" for n in range(1, 13))).encode(), path="m.txt")
    assert uniqueness.excerpt(source, Span(0, 6)) == ["  > 1 | line 1", "    2 | line 2", "    3 | line 3"]
    start, end = source.starts[2], source.starts[9]
    assert uniqueness.excerpt(source, Span(start, end)) == [
        "     1 | line 1",
        "     2 | line 2",
        "  >  3 | line 3",
        "  >  4 | line 4",
        "  >  5 | line 5",
        "  >  … | (4 more lines)",
        "    10 | line 10",
        "    11 | line 11",
    ]
