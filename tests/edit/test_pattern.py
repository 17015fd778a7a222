"""What a pattern may be, and what is said of those that may not."""

from __future__ import annotations

import ast

import pytest

from patchkit.edit.lexer import LexError, lex
from patchkit.edit.metavars import encode
from patchkit.edit.pattern import PatternError, compile_pattern


def names(text: str) -> dict[str, bool]:
    return compile_pattern(text, ast.parse).names


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f($X, $$$REST)", {"X": False, "REST": True}),
        ("$_ = $X", {"X": False}),
        ("f($$$, k=$V)", {"V": False}),
        ("f('$X', $Y)  # $Z", {"Y": False}),
        ("f'{$X} $Y {{$Z}}'", {"X": False}),
        ("f'''{a:{$W}}'''", {"W": False}),
        ("f'{d[\"k\"]}{$X!r:>{$W}}'", {"X": False, "W": False}),
        ("    indented($X)\n    twice($Y)\n", {"X": False, "Y": False}),
        ("def f($$$A, *, k=$D): $$$", {"A": True, "D": False}),
        ("f(a=1, $$$R)", {"R": True}),
        ("f(**a, $$$R)", {"R": True}),
        ("def f(a=1, $$$R, b): $$$", {"R": True}),
        ("{'a': 1, $$$R}", {"R": True}),
        ("$A +\n$B", {"A": False, "B": False}),
        ("match x:\n    $$$C", {"C": True}),
        ("match x:\n    case {$$$R}: y", {"R": True}),
        ("lambda a=1, $$$R: $B", {"R": True, "B": False}),
        ("class $C($$$B, metaclass=M): $$$", {"C": False, "B": True}),
    ],
)
def test_names(text: str, expected: dict[str, bool]) -> None:
    assert names(text) == expected


def test_one_expression_is_an_expression_pattern() -> None:
    assert compile_pattern("f($X)\n", ast.parse).is_expression
    assert not compile_pattern("f($X)\ng()", ast.parse).is_expression
    assert not compile_pattern("return $X", ast.parse).is_expression


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("", "no code", 1),
        ("# $X", "no code", 1),
        ("$X", "match everything", 1),
        ("$$$", "match everything", 1),
        ("$$$A\nf()", "cannot begin with", 1),
        ("f()\n\n$$$A", "cannot end with", 3),
        ("f($X", "does not parse", 1),
        ("a = 1\nb = = 2", "line 2: b = = 2", 2),
        ("f($ x)", "begins no metavariable", 1),
        ("\nf($$X)", "begins no metavariable", 2),
        ("a$X = 1", "stand by itself", 1),
        ("$X$Y = 1", "stand by itself", 1),
        ("$$$X.a", "write \\$X", 1),
        ("a\nx.$$$X = 1", "write \\$X", 2),
        ("assert $$$", "write \\$_", 1),
        ("f($X, $$$X)", "different names", 1),
        ("f('abc", "unterminated", 1),
        ("f(f'{a'", "unterminated", 1),
        ("f(k=1, $X, a)", "does not parse", 1),
    ],
)
def test_refused(text: str, message: str, line: int) -> None:
    with pytest.raises(PatternError, match=message) as caught:
        compile_pattern(text, ast.parse)
    assert caught.value.line == line
    assert str(caught.value) == caught.value.message


def test_a_problem_shows_metavariables_as_written() -> None:
    with pytest.raises(PatternError, match=r"f\(k=1, \$X, a\)"):
        compile_pattern("f(k=1, $X, a)", ast.parse)


@pytest.mark.parametrize(
    ("text", "encoded"),
    [
        ("f($A, k=1, $B)", "f(pkmv0_, k=1, *pkmv1_)"),
        ("f(**k, $A)", "f(**k, **pkmv0_)"),
        ("f(g(k=1), $A)", "f(g(k=1), pkmv0_)"),
        ("def f(a=1, $A): 0", "def f(a=1, pkmv0_=0): 0"),
        ("def f(a=1, $$$A, b): 0", "def f(a=1, *pkmv0_, b): 0"),
        ("def f[T](a=1, $A): 0", "def f[T](a=1, pkmv0_=0): 0"),
        ("def f(*, a=1, $A): 0", "def f(*, a=1, pkmv0_): 0"),
        ("lambda a=1, $A: 0", "lambda a=1, pkmv0_=0: 0"),
        ("{$A, 'a': 1}", "{**pkmv0_, 'a': 1}"),
        ("{$A, 1}", "{pkmv0_, 1}"),
        ("pkmv = $A", "pkmv = pkmvv0_"),
    ],
)
def test_metavariables_become_names_that_parse(text: str, encoded: str) -> None:
    assert encode(text).text == encoded


def kinds(text: str) -> list[tuple[str, str]]:
    return [(token.kind, token.text) for token in lex(text)]


def test_f_strings_are_taken_apart() -> None:
    assert kinds("f'a{x!r:>{w}}' b") == [
        ("fstart", "f'"),
        ("fmid", "a"),
        ("fopen", "{"),
        ("name", "x"),
        ("op", "!"),
        ("name", "r"),
        ("fspec", ":"),
        ("fmid", ">"),
        ("fopen", "{"),
        ("name", "w"),
        ("fclose", "}"),
        ("fclose", "}"),
        ("fend", "'"),
        ("name", "b"),
    ]


def test_quotes_within_the_braces_of_312() -> None:
    assert kinds('f"{d["}"]}"') == [
        ("fstart", 'f"'),
        ("fopen", "{"),
        ("name", "d"),
        ("op", "["),
        ("string", '"}"'),
        ("op", "]"),
        ("fclose", "}"),
        ("fend", '"'),
    ]


@pytest.mark.parametrize("text", ["'a", '"""a"', "f'{a", "f'a"])
def test_a_string_must_end(text: str) -> None:
    with pytest.raises(LexError):
        lex(text)


@pytest.mark.parametrize("terms", [900, 3000])
def test_too_deep_a_nest_is_called_that(terms: int) -> None:
    # 900 terms still parse, 3000 not in every Python.
    with pytest.raises(PatternError, match="nested too deeply") as caught:
        compile_pattern("x = " + " + ".join(["a"] * terms), ast.parse)
    assert "recursion" not in str(caught.value)


def test_a_parser_out_of_memory_means_too_deep_a_nest() -> None:
    def parse(_: str) -> ast.Module:
        raise MemoryError

    with pytest.raises(PatternError, match="nested too deeply"):
        compile_pattern("((((a))))", parse)
