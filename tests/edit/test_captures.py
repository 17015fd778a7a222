"""What captured lists and blocks take along into a template: commas, comments and line breaks, each case by hand.

Every case is also proved by rewrite_text itself: the tree of what comes out is the one that the template asks for.
"""

# ruff: noqa: E501 (a case to a line)

from __future__ import annotations

import ast

import pytest
from support.rewriting import rewrite_text

from patchkit.errors import PlanError

CALL = "f(\n    a,  # A\n    b,  # B\n)\n"
OPEN = "f(  # open\n    # lead\n    a, b)\n"
MIDDLE = "f(\n    a,  # A\n    # about b\n    b,  # B\n    c,  # C\n    k=1)\n"
LIST = "x = [\n    1,  # one\n    2,  # two\n]\n"
DICT = "x = {\n    1: 2,  # one\n    # all\n    **z  # two\n}\n"
DEF = "def f(\n    a,  # A\n    *,\n    b=1,  # B\n) -> int:\n    pass\n"
CLASS = "class A(\n    B,  # b\n    m=C,  # c\n):\n    pass\n"
IMPORT = "from a import (\n    b,  # B\n    c as d,  # D\n)\n"
CASE = "match x:\n    case A(\n        b,  # B\n        c=d,  # C\n    ):\n        pass\n"
DECORATED = "class Q:\n    @a\n    @b  # B\n    # more\n    def f():\n        pass\n"


@pytest.mark.parametrize(
    ("before", "match", "replace", "old", "new"),
    [
        (CALL, "f($$$A)", "g($$$A)", "f(", "g("),
        (OPEN, "f($$$A)", "g($$$A)", "f(", "g("),
        (CALL, "f($$$A)", "g($$$A,)", "f(", "g("),
        ("f( a , )\n", "f($$$A)", "g($$$A)", "f(", "g("),
        ("f(\n    # none\n)\n", "f($$$A)", "g($$$A)", "f(", "g("),
        ("f(\n    y for y in z  # B\n)\n", "f($$$A)", "g($$$A)", "f(", "g("),
        ("q = f(f(\n    1,  # one\n), 2)\n", "f(1, $$$A)", "g(1, $$$A)", "f(\n    1,  # one\n)", "g(1)"),
        (CALL, "f($$$A)", "x = [$$$A]", CALL, "x = [\n    a,  # A\n    b,  # B\n]\n"),
        (CALL, "f($$$A)", "g(h($$$A))", CALL, "g(h(\n    a,  # A\n    b,  # B\n))\n"),
        (LIST, "x = [$$$V]", "y = [$$$V]", "x", "y"),
        (LIST, "x = [$$$V]", "x = ($$$V,)", LIST, "x = (\n    1,  # one\n    2,  # two\n)\n"),
        ("x = [\n    1  # one\n]\n", "x = [$$$V]", "x = ($$$V,)", "[\n    1  # one\n]", "(\n    1,  # one\n)"),
        (DICT, "x = {$$$V}", "y = {$$$V}", "x", "y"),
        (DEF, "def f($$$P) -> int: $$$B", "def g($$$P) -> int:\n    $$$B", "def f", "def g"),
        (CLASS, "class A($$$P): $$$B", "class Z($$$P):\n    $$$B", "class A", "class Z"),
        (IMPORT, "from a import $$$N", "from z import $$$N", "from a", "from z"),
        (IMPORT, "from a import $$$N", "from z import ($$$N)", "from a", "from z"),
        (CASE, "match x:\n    case A($$$P): pass", "match x:\n    case Z($$$P):\n        pass", "A(", "Z("),
        ("a[1, 2,  # c\n ]\n", "a[$$$I]", "b[$$$I]", "a", "b"),
        ("a[1,]\na[(1, 2)]\n", "a[$$$I]", "b[$$$I]", "a", "b"),
        (DECORATED, "@$$$D\ndef f(): $$$B", "@$$$D\ndef g():\n    $$$B", "def f", "def g"),
        (DECORATED, "@$$$D\n@b\ndef f(): $$$B", "@$$$D\n@b  # B\n# more\ndef g():\n    $$$B", "def f", "def g"),
    ],
)  # fmt: skip
def test_all_between_the_brackets_comes_along(before: str, match: str, replace: str, old: str, new: str) -> None:
    assert rewrite_text(before, match, "replace", replace, ast.parse) == before.replace(old, new)


@pytest.mark.parametrize(
    ("before", "match", "replace", "after"),
    [
        (CALL, "f($$$A)", "g(x, $$$A)", "g(x, a,  # A\n    b  # B\n)\n"),
        (CALL, "f($$$A)", "g($$$A, x)", "g(a,  # A\n    b,  # B\n    x)\n"),
        (CALL, "f($$$A)", "g(\n    $$$A,\n    x,\n)", "g(\n    a,  # A\n    b,  # B\n    x,\n)\n"),
        (CALL, "f($$$A)", "g(\n    $$$A  # all\n)", "g(\n    a,  # A\n    b  # B  # all\n)\n"),
        (OPEN, "f($$$A)", "g(x, $$$A)", "g(x,  # open\n    # lead\n    a, b)\n"),
        (OPEN, "f($$$A)", "g($$$A, x)", "g(  # open\n    # lead\n    a, b, x)\n"),
        (MIDDLE, "f(a, $$$R, k=1)", "g($$$R)", "g(\n    # about b\n    b,  # B\n    c  # C\n)\n"),
        (MIDDLE, "f(a, $$$R, k=1)", "g(z, $$$R, k=2)", "g(z,\n    # about b\n    b,  # B\n    c,  # C\n    k=2)\n"),
        ("f(a  # a\n    # of a\n    ,\n    # of b\n    b)\n", "f(a, $$$R)", "g(1, $$$R)", "g(1,\n    # of b\n    b)\n"),
        ("f(a,  # A\n  **k)\n", "f($$$A, **$K)", "g($$$A)", "g(a  # A\n)\n"),
        (LIST, "x = [$$$V]", "x = [0, $$$V]", "x = [0, 1,  # one\n    2  # two\n]\n"),
        (DICT, "x = {$$$V}", "x = {$$$V, 3: 4}", "x = {1: 2,  # one\n    # all\n    **z,  # two\n    3: 4}\n"),
        (IMPORT, "from a import $$$N", "from z import $$$N, q", "from z import (b,  # B\n    c as d,  # D\n    q)\n"),
        ("f(\n    y for y in z  # B\n)\n", "f($$$A)", "g(1, $$$A)", "g(1, (y for y in z)  # B\n)\n"),
        ("f(\n    a,  # f(a, a)\n)\n", "f($$$A)", "g($$$A, $$$A)", "g(a,  # f(a, a)\n    a  # f(a, a)\n)\n"),
    ],
)  # fmt: skip
def test_comments_at_the_ends_break_the_line(before: str, match: str, replace: str, after: str) -> None:
    assert rewrite_text(before, match, "replace", replace, ast.parse) == after


def test_a_comment_that_has_no_place_is_not_dropped() -> None:
    with pytest.raises(PlanError, match="cannot hold what was captured"):
        rewrite_text("f(\n    a,  # A\n)\n", "f($$$A)", "replace", "for q in $$$A, 1: pass", ast.parse)


CHAIN = "if a:\n    x\n# why\nelif b:\n    y  # Y\nelse:\n    z\n    # end\n"
BOTH = "if a:\n    $$$A\nelse:\n    $$$E"
DEEPER = "if b:\n        y  # Y\n    else:\n        z\n        # end\n"


@pytest.mark.parametrize(
    ("before", "replace", "after"),
    [
        (CHAIN, "if c:\n    $$$A\nelse:\n    $$$E", CHAIN.replace("if a", "if c")),
        ("if z:\n  w\nel" + CHAIN, "if c:\n    $$$A\nelse: $$$E", "if z:\n  w\nel" + CHAIN.replace("if a", "if c")),
        ("if a: x\nelif b: y\n", "if c:\n    $$$A\nelse:\n    $$$E", "if c:\n    x\nelif b: y\n"),
        (CHAIN, "if c:\n    $$$A\nelif d:\n    q\nelse:\n    $$$E\nw()", CHAIN.replace("if a", "if c").replace("# why", "elif d:\n    q\n# why") + "w()\n"),
        # an else that is written out stays
        ("if a:\n  x\nelse:\n  if b:\n    y\n", "if c:\n    $$$A\nelse:\n    $$$E", "if c:\n  x\nelse:\n  if b:\n    y\n"),
        # where the else has more in it, is no if's, or is another place, the arm is a statement of its own
        (CHAIN, "if c:\n    $$$A\nelse:\n    q()\n    $$$E", "if c:\n    x\nelse:\n    q()\n    " + DEEPER),
        (CHAIN, "for c in d:\n    $$$A\nelse:\n    $$$E", "for c in d:\n    x\nelse:\n    " + DEEPER),
        (CHAIN, "if c:\n    $$$E\nelse:\n    $$$A", "if c:\n    " + DEEPER + "else:\n    x\n"),
    ],
)  # fmt: skip
def test_an_elif_stays_one(before: str, replace: str, after: str) -> None:
    assert rewrite_text(before, BOTH, "replace", replace, ast.parse) == after
