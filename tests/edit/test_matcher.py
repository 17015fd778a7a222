"""Where patterns match and what they capture; places and texts written by hand."""

from __future__ import annotations

import ast
import sys

import pytest
from support.interpreters import find_python

from patchkit.edit import unify
from patchkit.edit.matcher import find_pattern
from patchkit.edit.outline import Outline
from patchkit.edit.pattern import compile_pattern
from patchkit.edit.shape import fingerprint, same
from patchkit.edit.source import Source
from patchkit.edit.spans import Found, Span
from patchkit.errors import PlanError
from patchkit.site.environment import from_interpreter
from patchkit.site.grammar import Grammar
from patchkit.site.interpreter import ask


def find(text: str, pattern: str, regions: list[Span] | None = None) -> list[Found]:
    outline = Outline(Source(text.encode(), path="x.py"), ast.parse(text))
    whole = [Span(0, len(text))]
    return find_pattern(outline, compile_pattern(pattern, ast.parse), whole if regions is None else regions)


def texts(text: str, pattern: str) -> list[str]:
    return [text[found.span.start : found.span.end] for found in find(text, pattern)]


def captured(text: str, pattern: str) -> dict[str, str]:
    found = find(text, pattern)
    assert len(found) == 1, [text[match.span.start : match.span.end] for match in found]
    return {name: text[c.span.start : c.span.end] for name, c in found[0].captures.items()}


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        # layout, comments, quotes, redundant parentheses and trailing commas do not matter
        ("f( a ,  # c\n  'b', )\n", 'f(a, "b")', ["f( a ,  # c\n  'b', )"]),
        ("f(((a)))\n", "f(a)", ["f(((a)))"]),
        ("x = (a, b)\n", "x = a, b", ["x = (a, b)"]),
        ("f(u'a')\n", "f('a')", ["f(u'a')"]),
        ("0x10\n", "16", ["0x10"]),
        # values that only look alike
        ("f(1)\n", "f(1.0)", []),
        ("f(True)\n", "f(1)", []),
        ("f(b'a')\n", "f('a')", []),
        ("f(-0.0); f(0.0)\n", "f(0.0)", ["f(0.0)"]),
        # expressions anywhere
        ("a = f(f(1))\n", "f($_)", ["f(f(1))", "f(1)"]),
        ("@f(1)\ndef g(x: f(2) = f(3)) -> f(4): pass\n", "f($_)", ["f(1)", "f(2)", "f(3)", "f(4)"]),
        ("x.a = x.a\ndel x.a\n", "x.a", ["x.a", "x.a", "x.a"]),
        ("match f(1):\n    case a.b if f(2): pass\n", "f($_)", ["f(1)", "f(2)"]),
        ("match f(1):\n    case a.b: pass\n", "a.b", ["a.b"]),
        # the same name twice is equal code
        ("x = x.a(1)\ny = x.a(1)\n", "$X = $X.a(1)", ["x = x.a(1)"]),
        ("self.a = a\nself.b = a\n", "self.$N = $N", ["self.a = a"]),
        ("f(a + b, a+b)\nf(a + b, b + a)\n", "f($X, $X)", ["f(a + b, a+b)"]),
        ("f(1, 1.0)\n", "f($X, $X)", []),
        ("def f(x): return x\ndef g(y): return x\n", "def $_($X): return $X", ["def f(x): return x"]),
        ("f(a, b, 0, a, b)\nf(a, 0, b)\n", "f($$$A, 0, $$$A)", ["f(a, b, 0, a, b)"]),
        # arguments
        ("f()\nf(1)\nf(1, 2)\n", "f($X)", ["f(1)"]),
        ("f(k=1)\nf(*a)\nf(**a)\n", "f($X)", ["f(k=1)", "f(*a)", "f(**a)"]),
        ("f(**a)\nf(k=a)\n", "f($K=$V)", ["f(k=a)"]),
        ("f(**a)\nf(k=a)\n", "f(**$V)", ["f(**a)"]),
        ("f(*a)\nf(a)\n", "f(*$V)", ["f(*a)"]),
        ("f(1, k=2, j=3)\nf(j=3, k=2)\nf(1)\n", "f($$$, k=2, $$$)", ["f(1, k=2, j=3)", "f(j=3, k=2)"]),
        ("f(a, k=1, *b)\n", "f(a, k=1, *b)", ["f(a, k=1, *b)"]),
        ("f(a, *b, k=1)\n", "f(a, k=1, *b)", []),
        ("[*a]\n[a]\n", "[$X]", ["[a]"]),
        # operators
        ("a < b\na < b < c\n", "a < $X", ["a < b"]),
        ("a and b\na and b and c\na or b\n", "a and $X", ["a and b"]),
        ("a and b\na and b and c\na or b\n", "a and $$$", ["a and b", "a and b and c"]),
        # subscripts
        ("a[1]\na[1, 2]\na[1:2]\na[b, ...]\n", "a[$$$]", ["a[1]", "a[1, 2]", "a[1:2]", "a[b, ...]"]),
        ("a[1]\na[1, 2]\na[1:2]\n", "a[$X]", ["a[1]", "a[1, 2]", "a[1:2]"]),
        ("a[1, 2]\na[1]\n", "a[$X, $Y]", ["a[1, 2]"]),
        # displays
        ("{}\n{1: 2}\n{1}\n", "{$$$}", ["{}", "{1: 2}", "{1}"]),
        ("{1: 2}\n{1}\n", "{$X}", ["{1}"]),
        ("{**a, 1: 2}\n{1: 2, **a}\n", "{**$X, 1: $Y}", ["{**a, 1: 2}"]),
        ("(a,)\n(a, b)\n()\n", "($$$, )", ["(a,)", "(a, b)", "()"]),
        # parameters
        ("def f(a, /, b): pass\ndef g(a, b): pass\n", "def $_(a, b): pass", ["def g(a, b): pass"]),
        ("def f(a): pass\ndef g(a=1): pass\ndef h(*a): pass\n", "def $_($X): pass", [
            "def f(a): pass", "def g(a=1): pass", "def h(*a): pass"]),
        ("def f(a): pass\ndef g(a=1): pass\n", "def $_($X=$V): pass", ["def g(a=1): pass"]),
        ("def f(*a): pass\ndef g(a): pass\n", "def $_(*$X): pass", ["def f(*a): pass"]),
        ("def f(self, *, a): pass\ndef g(self): pass\n", "def $_(self, $$$): pass", [
            "def f(self, *, a): pass", "def g(self): pass"]),
        ("lambda: 0\nlambda a, *b: 0\n", "lambda $$$: 0", ["lambda: 0", "lambda a, *b: 0"]),
        ("def f() -> int: pass\ndef g(): pass\n", "def $_(): pass", ["def g(): pass"]),
        # definitions
        ("@a\ndef f(): pass\n", "def f(): pass", ["def f(): pass"]),
        ("@a\ndef f(): pass\n", "@$D\ndef f(): pass", ["@a\ndef f(): pass"]),
        ("@a\n@b\ndef f(): pass\ndef g(): pass\n", "@$$$\ndef $_(): pass", ["@a\n@b\ndef f(): pass", "def g(): pass"]),
        ("@a\n@b\ndef f(): pass\n", "@a\ndef f(): pass", []),
        ("class A:\n    @a\n    def f(): pass\n", "class A:\n    def f(): pass", []),
        ("async def f(): pass\ndef f(): pass\n", "def f(): pass", ["def f(): pass"]),
        ("class A: pass\nclass B(): pass\nclass C(A, k=1): pass\n", "class $_($$$): pass", [
            "class A: pass", "class B(): pass", "class C(A, k=1): pass"]),
        # statements
        ("a = b = c\na = c\n", "$X = $Y", ["a = c"]),
        ("a = b = c\na = c\n", "$$$X = c", ["a = b = c", "a = c"]),
        ("if a: b\nelif c: d\n", "if $X: $$$", ["elif c: d"]),
        ("if a: b\nelif c: d\n", "if a: $$$\nelse: $$$", ["if a: b\nelif c: d"]),
        ("if a: b\n", "if a: $$$\nelse: $$$", []),
        ("a\nb\nc\na\n\nb  # x\n", "a\nb", ["a\nb", "a\n\nb"]),
        ("a\nx\ny\nb\nb\n", "a\n$$$\nb", ["a\nx\ny\nb"]),
        ("if q: a\nb\n", "a\nb", []),
        ("a; b; c\n", "a\nb", ["a; b"]),
        ("a\nx = 1\nb\n", "a\n$_\nb", ["a\nx = 1\nb"]),
        ("a\nx = 1\nb\n", "a\n$S\nb", []),
        ("for a in b:\n    c\nelse:\n    d\n", "for $_ in $_: $$$", []),
        ("with a as b, c: d\nwith c: d\n", "with $$$, c: d", ["with a as b, c: d", "with c: d"]),
        ("with a as b: c\nwith a: c\n", "with $X: c", ["with a: c"]),
        ("try: a\nexcept E: b\nexcept E as e: b\n", "try: a\nexcept E: b\nexcept E as $N: b", [
            "try: a\nexcept E: b\nexcept E as e: b"]),
        ("return\nreturn a\n", "return $_", ["return a"]),
        ("global a, b\n", "global $X, b", ["global a, b"]),
        ("raise A from b\nraise A\n", "raise $X", ["raise A"]),
        # imports
        ("import a.b, c as d\n", "import $$$N", ["import a.b, c as d"]),
        ("import a.b\nimport a as b\n", "import $N", ["import a.b"]),
        ("import a.b.c\n", "import $N.c", ["import a.b.c"]),
        ("from a.b import c\nfrom .a.b import c\n", "from $M import c", ["from a.b import c"]),
        ("from a import *\n", "from a import $N", []),
        ("from a import *\n", "from a import $$$N", ["from a import *"]),
        ("from . import a\n", "from . import $N", ["from . import a"]),
        # match statements
        ("match a:\n    case [b, *c]: pass\n", "match a:\n    case [$X, *$Y]: pass", [
            "match a:\n    case [b, *c]: pass"]),
        ("match a:\n    case P(1, k=2): pass\n", "match a:\n    case P($$$A, k=$V): pass", [
            "match a:\n    case P(1, k=2): pass"]),
        ("match a:\n    case b | 1: pass\n", "match a:\n    case $X | $Y: pass", [
            "match a:\n    case b | 1: pass"]),
        ("match a:\n    case 1: pass\n    case _: pass\n", "match a:\n    $$$", [
            "match a:\n    case 1: pass\n    case _: pass"]),
        # f-strings
        ("f'{a}' f'{b}'\n", "f'{$X}{$Y}'", ["f'{a}' f'{b}'"]),
        ("f'{a!r}'\nf'{a}'\n", "f'{$X}'", ["f'{a}'"]),
        ("f'{f(1)} {f(2)}'\n", "f($X)", ["f(1)", "f(2)"]),
        ("f'''\n {f(1)}\n  {f(2)}'''\n", "f($X)", ["f(1)", "f(2)"]),
        # others
        ("(a := 1)\n", "($X := 1)", ["a := 1"]),
        ("x = await a\n", "await $X", ["await a"]),
        ("[a for a in b if c]\n", "[$X for $X in $Y if $Z]", ["[a for a in b if c]"]),
        ("f(a for a in b)\n", "($X for $X in b)", ["a for a in b"]),
        ("ﬁ.a\n", "fi.a", ["ﬁ.a"]),
    ],
)  # fmt: skip
def test_places(text: str, pattern: str, expected: list[str]) -> None:
    assert texts(text, pattern) == expected


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("f(a, (b), *c, k=(d))\n", "f($$$A)", {"A": "a, (b), *c, k=(d)"}),
        ("f((a))\n", "f($A)", {"A": "a"}),
        ("f(k=(a))\n", "f($A)", {"A": "k=(a)"}),
        ("f(a,  # c\n  b)\n", "f($$$A)", {"A": "a,  # c\n  b"}),
        ("f(a for a in b)\n", "f($A)", {"A": "a for a in b"}),
        ("f(**(a))\n", "f($A)", {"A": "**(a)"}),
        ("(f)(a)(b)\n", "$F(b)", {"F": "(f)(a)"}),
        ("f()\n", "f($$$A)", {"A": ""}),
        ("def f(a, *b: int, c=(1), **d): pass\n", "def f(a, $$$P): pass", {"P": "*b: int, c=(1), **d"}),
        ("def f(a, /, *, b): pass\n", "def f($$$P, b): pass", {"P": "a, /, *"}),
        ("def f(a: int = (1)): pass\n", "def f($P): pass", {"P": "a: int = (1)"}),
        ("def f(*a): pass\n", "def f($P): pass", {"P": "*a"}),
        ("lambda a, b=(1): c\n", "lambda $$$P: $B", {"P": "a, b=(1)", "B": "c"}),
        ("{(a): (b), **(c)}\n", "{$$$I}", {"I": "(a): (b), **(c)"}),
        ("[(a), b]\n", "[$$$I]", {"I": "(a), b"}),
        ("(a) and (b)\n", "$$$I and (b)", {"I": "(a)"}),
        ("x[(a), 1:2]\n", "x[$$$I]", {"I": "(a), 1:2"}),
        ("x[1:2]\n", "x[$I]", {"I": "1:2"}),
        ("(a), b = c\n", "$$$T, b = c", {"T": "(a)"}),
        ("@(a)\n@b(1)  # c\ndef f(): pass\n", "@$$$D\ndef f(): pass", {"D": "@(a)\n@b(1)  # c"}),
        ("class A(B, *C, k=(D)): pass\n", "class A($$$B): pass", {"B": "B, *C, k=(D)"}),
        ("with (a) as b, c: d\n", "with $$$I, c: d", {"I": "(a) as b"}),
        ("from a import (b as c, d)\n", "from a import $$$N", {"N": "b as c, d"}),
        ("a.b\n", "a.$N", {"N": "b"}),
        ("def f(): pass\n", "def $N(): pass", {"N": "f"}),
        ("import a . b\n", "import $N", {"N": "a . b"}),
        ("if a:\n    # 1\n\n    # 2\n    b  # 3\n    # 4\n\n    # 5\n# 6\n", "if a: $$$B", {
            "B": "# 1\n\n    # 2\n    b  # 3\n    # 4\n\n    # 5"}),
        ("if a: b; c  # 1\n", "if a: $$$B", {"B": "b; c  # 1"}),
        ("a\n# 1\nx  # 2\n# 3\nb\n", "a\n$$$B\nb", {"B": "# 1\nx  # 2\n# 3"}),
        ("a; x; y; b\n", "a\n$$$B\nb", {"B": "x; y"}),
        ("if a:\n    @b\n    def c(): pass\n", "if a: $$$B", {"B": "@b\n    def c(): pass"}),
        ("match a:\n    case P(1, k=b): pass\n", "match a:\n    case P($$$A): pass", {"A": "1, k=b"}),
        ("match a:\n    case {'k': 1, **b}: pass\n", "match a:\n    case {$$$A}: pass", {"A": "'k': 1, **b"}),
        ("é = f('é', a)\n", "f($$$A)", {"A": "'é', a"}),
    ],
)  # fmt: skip
def test_captures(text: str, pattern: str, expected: dict[str, str]) -> None:
    assert captured(text, pattern) == expected


def test_kinds() -> None:
    found = find("f(a, k=1)\n", "f($X, $Y)")[0]
    assert (found.captures["X"].kind, found.captures["Y"].kind) == ("expression", "argument")
    assert not found.captures["X"].many
    assert find("f(a)\n", "f($$$A)")[0].captures["A"].many


def test_a_match_lies_wholly_within_one_region() -> None:
    text = "f(1)\nf(2)\nf(\n3)\n"
    assert [match.span for match in find(text, "f($X)", [Span(0, 5), Span(10, 13)])] == [Span(0, 4)]
    assert [match.span for match in find(text, "f($X)", [Span(10, 16)])] == [Span(10, 15)]
    assert find(text, "f($X)", []) == []


def test_regions_that_overlap_count_a_match_once() -> None:
    assert len(find("f(1)\n", "f($X)", [Span(0, 5), Span(0, 4)])) == 1


def test_many_searches_in_one_file_agree() -> None:
    text = "def f():\n    a = 1\ndef g():\n    a = 1\n"
    outline = Outline(Source(text.encode(), path="x.py"), ast.parse(text))
    pattern = compile_pattern("a = $X", ast.parse)
    first, second = Span(0, 19), Span(19, len(text))
    for _ in range(5):
        assert [m.span.start for m in find_pattern(outline, pattern, [second])] == [32]
        assert [m.span.start for m in find_pattern(outline, pattern, [first])] == [13]


def test_deep_trees() -> None:
    text = "x = " + " + ".join(["a"] * 900) + "\n"
    assert len(find(text, "$X = $Y")) == 1
    assert len(find(text, "$X + a")) == 899


def test_hard_sequences_are_searched_through() -> None:
    assert captured("f(a, b, b, c, b)\n", "f($$$A, $X, $X, $$$B)") == {"A": "a", "X": "b", "B": "c, b"}
    assert captured("f(a, b)(b)\n", "f($$$, $X, $$$)($X)") == {"X": "b"}


@pytest.mark.parametrize(
    ("count", "text", "pattern", "matches"),
    [
        (2000, "x()\n", "x()\n$$$A\ny()", 0),
        (2000, "x()\n", "x()\n$$$A\nz()\n$$$B\ny()", 0),
        (1000, "x()\nz()\n", "x()\n$$$A\nz()\n$$$B\ny()", 0),
        (1000, "x(1)\n", "x($V)\n$$$A\ny($V)", 0),
        (1000, "x()\n", "def f():\n    $$$A\n    x()\n    $$$B\n    x()\n    $$$C\n    y()", 0),
    ],
)  # fmt: skip
def test_alike_statements_are_not_tried_in_every_combination(
    count: int, text: str, pattern: str, matches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Not seconds but choices are counted: some for each place at most, where trying every pair takes a million.
    monkeypatch.setattr(unify, "BUDGET", 3 * count)
    monkeypatch.setattr(unify, "_ALLOWANCE", 0)
    body = text * count
    if pattern.startswith("def"):
        body = "def f():\n" + "".join(f"    {line}\n" for line in body.split("\n") if line)
    assert len(find(body, pattern)) == matches


def test_alike_arguments_are_not_tried_in_every_combination(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unify, "BUDGET", 1000)
    different = ", ".join(f"a{number}" for number in range(400))
    assert find(f"f({different})\n", "f($$$A, $X, $$$B, $X, $$$C)") == []
    found = find(f"f({different}, a399)\n", "f($$$A, $X, $$$B, $X, $$$C)")
    assert [len(found[0].captures[name].nodes) for name in "ABC"] == [399, 0, 0]


def test_a_failure_under_one_binding_says_nothing_of_another() -> None:
    text = "x(1)\nx(2)\nz()\ny(2)\n"
    assert texts(text, "x($V)\n$$$A\nz()\n$$$B\ny($V)") == ["x(2)\nz()\ny(2)"]
    assert captured("f(a, b, c, d, e, f, g, b, h, g)\n", "f($$$A, $X, $$$B, g, $$$C, $X, $$$D)") == {
        "A": "a", "X": "b", "B": "c, d, e, f", "C": "", "D": "h, g"}  # fmt: skip


def test_what_bindings_must_agree_on_is_found_far_apart() -> None:
    text = "".join(f"x({number})\n" for number in range(300)) + "".join(f"y({number})\n" for number in (900, 7, 901))
    assert [match.span.start for match in find(text, "x($V)\n$$$A\ny($V)")] == [text.index("x(7)")]


def test_a_pattern_with_too_many_ways_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unify, "BUDGET", 1000)
    text = "f(" + ", ".join(f"a{number}" for number in range(200)) + ")\n"
    with pytest.raises(PlanError, match=r"^x\.py: too ambiguous: .* `f\(\$\$\$A, \$\$\$B, ") as caught:
        find(text, "f($$$A, $$$B, $$$A, $$$B)")
    assert caught.value.code == "ambiguous"
    assert "$$$" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("a[1,]\na[1]\n", "a[$$$I]", ["1,", "1"]),  # a[1,] is no a[1]
        ("a[()]\na[*b]\n", "a[$$$I]", ["()", "*b"]),
        ("a[1,]\n", "a[1, $$$I]", []),
    ],
)
def test_a_tuple_of_one_in_a_subscript(text: str, pattern: str, expected: list[str]) -> None:
    spans = [match.captures["I"].span for match in find(text, pattern)]
    assert [text[span.start : span.end] for span in spans] == expected


class FunctionDef(ast.FunctionDef):
    """A ``def`` of a Python to come."""

    _fields = (*ast.FunctionDef._fields, "clauses")


def newer(clauses: object) -> Outline:
    """``def f(x): return x`` with a field that patterns parsed here do not know."""
    text = "def f(x): return x\n"
    tree = ast.parse(text)
    node = FunctionDef.__new__(FunctionDef)
    node.__dict__.update(tree.body[0].__dict__, clauses=clauses)
    tree.body[0] = node
    return Outline(Source(text.encode(), path="x.py"), tree)


@pytest.mark.parametrize(
    ("clauses", "count"), [([ast.Name(id="T", ctx=ast.Load())], 0), (ast.Name(id="T"), 0), ([], 1), (None, 1)]
)
def test_a_field_of_a_newer_python_that_holds_something_must_be_named(clauses: object, count: int) -> None:
    for pattern in ("def f(x): return x", "def f($$$P): $$$B", "@$$$D\ndef f($$$P): $$$B"):
        found = find_pattern(newer(clauses), compile_pattern(pattern, ast.parse), [Span(0, 19)])
        assert len(found) == count
    both = newer(clauses).tree, ast.parse("def f(x): return x\n")
    assert same(*both) is same(*both[::-1]) is (count == 1)


def test_a_pattern_of_a_newer_python_matches_a_tree_without_its_fields() -> None:
    text = "def f(x): return x\n"
    pattern = compile_pattern("def f($X): return x", lambda _: newer([]).tree)
    outline = Outline(Source(text.encode(), path="x.py"), ast.parse(text))
    assert len(find_pattern(outline, pattern, [Span(0, len(text))])) == 1


def test_type_parameters_of_the_sites_python_are_not_dropped() -> None:
    path = find_python("3.12")
    if path is None:
        pytest.skip("no Python 3.12")
    parse = Grammar(from_interpreter(ask(path))).parse
    text = "def f[T](x: T): return x\ndef f(x: T): return x\n"
    outline = Outline(Source(text.encode(), path="x.py"), parse(text))
    whole = [Span(0, len(text))]
    second = text.index("def f(")
    for pattern in ("def f(x: T): return x", "def f($$$P): $$$B"):
        assert [m.span.start for m in find_pattern(outline, compile_pattern(pattern, parse), whole)] == [second]
    found = find_pattern(outline, compile_pattern("def f[$$$T](x: T): return x", parse), whole)
    assert [m.span.start for m in found] == [0, second]  # $$$T may be nothing
    first, other = outline.tree.body
    assert not same(first, other)
    assert not same(other, first)
    assert fingerprint(first) != fingerprint(other)


def test_a_place_in_an_f_string_that_cannot_be_told_is_said_so() -> None:
    for match in find("x = f'{a}{a}' f'''\n{a}'''\n", "a"):
        assert match.exact or sys.version_info < (3, 12)


if sys.version_info >= (3, 12):

    @pytest.mark.parametrize(
        ("text", "pattern", "expected"),
        [
            ("def f[T: int, *S](): pass\n", "def f[$$$T](): pass", {"T": "T: int, *S"}),
            ("class A[T]: pass\n", "class A[$T]: pass", {"T": "T"}),
            ("type A[T] = B\n", "type $A[$$$P] = $V", {"A": "A", "P": "T", "V": "B"}),
            ("def f[T](a=(1)): pass\n", "def f[T]($$$P): pass", {"P": "a=(1)"}),
        ],
    )
    def test_type_parameters(text: str, pattern: str, expected: dict[str, str]) -> None:
        assert captured(text, pattern) == expected
