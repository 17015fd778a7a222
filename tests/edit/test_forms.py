from __future__ import annotations

import ast

import pytest

from patchkit.edit import forms
from patchkit.edit.explain import Problem
from patchkit.edit.outline import Outline
from patchkit.edit.source import Source
from patchkit.edit.spans import Span
from patchkit.edit.text import find_text


def make(text: str, anchor: str, *, region: tuple[int, int] | None = None) -> Problem:
    source = Source(text.encode("utf-8", "surrogateescape"), path="m.py")
    try:
        outline: Outline | None = Outline(source, ast.parse(text))
    except (SyntaxError, ValueError):
        outline = None
    regions = [Span(*(region or (0, len(source.text))))]
    return Problem(source, outline, anchor, "find", None, None, regions, "1", None, ast.parse)


@pytest.mark.parametrize(
    ("text", "anchor", "kind", "found"),
    [
        ("def f():\n    x = 1\n", "  x = 1\n", "indentation", "    x = 1\n"),
        ("def f():\n\tx = 1\n", "    x = 1\n", "indentation", "\tx = 1\n"),
        ("def f():\n    if a:\n        b\n", "if a:\n    b\n", "indentation", "    if a:\n        b\n"),
        ("def f():\n    if a:\n        b\n", "if a:\n    b", "indentation", "if a:\n        b"),
        ("x = 1  \ny\n", "x = 1\ny\n", "trailing blanks", "x = 1  \ny\n"),
        ("x = 1\n\n\ny\n", "x = 1  \n\n \ny\n", "trailing blanks", "x = 1\n\n\ny\n"),
        ("x = 1\ny = 2", "y = 2\n", "final line break", "y = 2"),
        ("x = 1\n  y = 2", "y = 2\n", "final line break and indentation", "  y = 2"),
        ("a\nx = y = 2\n", "y = 2\n", "line start", "x = y = 2\n"),
        ("x = 'a'\n", 'x = "a"', "quotes", "x = 'a'"),
        ("x = 'a'\n", "x = ‘a’", "look-alike characters", "x = 'a'"),
        ("f(a, b)\n", "f(a,\xa0b)", "look-alike characters", "f(a, b)"),
        ("f(a, b)\n", "f（a, b）", "look-alike characters", "f(a, b)"),
        ("f(a, b)\n", "f(a,\u200b b)", "look-alike characters", "f(a, b)"),
        ("x  =  1\n", "x = 1", "inner blanks", "x  =  1"),
        ("X = Foo\n", "x = foo", "case", "X = Foo"),
        ("    x = 'a'\n", '  x = "a"\n', "indentation and quotes", "    x = 'a'\n"),
        ("a = 1\nb = 2\n", "a = 1\\nb = 2", "escapes", "a = 1\nb = 2"),
        ("a = 1\nb = 2\n", "a = 1\\r\\nb = 2", "escapes", "a = 1\nb = 2"),
        ('print("a\\n")\n', 'print("a\n")', "read escapes", 'print("a\\n")'),
        ('print("a\\n")\n', 'print("a\n")\n', "read escapes", 'print("a\\n")\n'),
        ("é = 1\n", "e\u0301 = 1", "composed", "é = 1"),
        ("e\u0301 = 1\n", "é = 1", "decomposed", "e\u0301 = 1"),
    ],
)
def test_each_form(text: str, anchor: str, kind: str, found: str) -> None:
    problem = make(text, anchor)
    assert find_text(problem.source, anchor, problem.regions) == []
    got = forms.forms(problem)
    assert [(form.kind, form.text) for form in got] == [(kind, found)]
    assert got[0].span in find_text(problem.source, found, problem.regions)


@pytest.mark.parametrize(
    ("text", "anchor"),
    [("x = 1\n", "x = 2"), ("x = 1\n", "\n"), ("x = 1\n", "   "), ("", "x"), ("x = 1\n", "y = 1\nx = 1\n")],
)
def test_no_form(text: str, anchor: str) -> None:
    assert forms.forms(make(text, anchor)) == []


def test_forms_within_the_regions_come_first_and_each_text_once() -> None:
    text = "if a:\n  x = 1\nif b:\n    x = 1\nif c:\n  x = 1\n"
    region = (text.index("if b"), text.index("if c"))
    got = forms.forms(make(text, "x = 1\n", region=region))
    assert [(form.text, form.span.start) for form in got] == [("    x = 1\n", 20), ("  x = 1\n", 6)]


def test_bytes_that_do_not_decode_are_kept_in_a_form() -> None:
    problem = make("    x = '\udcff'\n", "  x = '\udcff'\n")
    assert [form.text for form in forms.forms(problem)] == ["    x = '\udcff'\n"]


def test_a_case_difference_is_only_named_where_nothing_closer_is() -> None:
    got = forms.forms(make("    x = 1\nX = 1\n", "  x = 1\n"))
    assert [form.kind for form in got] == ["indentation"]


def test_code_in_other_formatting() -> None:
    problem = make("def f():\n    x = g( 1,\n          2)\n", "x = g(1, 2)\n")
    anchor, spans = forms.reformatted(problem)
    assert anchor == "x = g(1, 2)"
    assert [problem.source.text[s.start : s.end] for s in spans] == ["x = g( 1,\n          2)"]
    whole = forms.source_slice(problem.source, spans[0])
    assert problem.source.text[whole.start : whole.end] == "    x = g( 1,\n          2)\n"


@pytest.mark.parametrize("anchor", ["x = (", "$X = 1", "x", ""])
def test_what_is_no_code_is_not_read_as_code(anchor: str) -> None:
    assert forms.reformatted(make("x = 1\n", anchor)) == ("", [])


def test_a_part_of_a_statement_stays_a_part() -> None:
    source = Source(b"y = f( x ) + 1\n", path="m.py")
    assert forms.source_slice(source, Span(4, 10)) == Span(4, 10)
