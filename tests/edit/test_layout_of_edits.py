"""Several syntax edits of one file: laid out together where they share lines, refused where they touch the same code.

Every result is written by hand, and proved besides.
"""

# ruff: noqa: E501 (a case to a line)

from __future__ import annotations

import ast
from itertools import pairwise
from typing import Any

import pytest
from support.rewriting import rewrite_text

from patchkit.edit.matcher import find_pattern
from patchkit.edit.outline import Outline
from patchkit.edit.pattern import compile_pattern
from patchkit.edit.proof import prove
from patchkit.edit.rewrite import rewrite_all
from patchkit.edit.source import Source, Splice, lay
from patchkit.edit.spans import Found, Span
from patchkit.errors import PlanError

Edit = tuple[str, str, str]
Case = tuple[str, str, list[Edit], str]


def prepare(text: str, edits: list[Edit]) -> tuple[Outline, list[tuple[Found, Any, str, int]]]:
    outline = Outline(Source(text.encode(), path="m.py"), ast.parse(text))
    whole = [Span(0, len(text))]
    found: list[tuple[Found, Any, str, int]] = []
    for index, (pattern, action, template) in enumerate(edits, 1):
        matches = find_pattern(outline, compile_pattern(pattern, ast.parse), whole)
        assert matches, pattern
        found += [(match, action, template, index) for match in matches]
    return outline, found


def splices_of(text: str, edits: list[Edit]) -> list[Splice]:
    outline, found = prepare(text, edits)
    return rewrite_all(outline, found, parse=ast.parse)


def run(text: str, edits: list[Edit]) -> str:
    outline, found = prepare(text, edits)
    result = lay(text, rewrite_all(outline, found, parse=ast.parse))
    prove(outline, [edit[:3] for edit in found], result, ast.parse)
    return result


IF = "if q:\n    y()"
WITH = "with w:\n    $$$BODY"

EMPTIED: list[Case] = [
    ("one edit, two lines", "def f():\n    x()\n    x()\n", [("x()", "delete", "")], "def f():\n    pass\n"),
    ("two edits", "def f():\n    x()\n    y()\n", [("x()", "delete", ""), ("y()", "delete", "")], "def f():\n    pass\n"),
    ("two edits, last first", "def f():\n    x()\n    y()\n", [("y()", "delete", ""), ("x()", "delete", "")], "def f():\n    pass\n"),
    ("replaced by nothing", "def f():\n    x()\n    y()\n", [("x()", "replace", ""), ("y()", "replace", "")], "def f():\n    pass\n"),
    ("replaced by comments", "def f():\n    x()\n    x()\n", [("x()", "replace", "# only")], "def f():\n    # only\n    # only\n    pass\n"),
    ("a comment and nothing", "def f():\n    x()\n    y()\n", [("x()", "replace", "# c"), ("y()", "delete", "")], "def f():\n    # c\n    pass\n"),
    ("comments between stay", "def f():\n    # a\n    x()\n    # b\n    x()  # c\n    # d\n", [("x()", "delete", "")], "def f():\n    # a\n    # b\n    pass  # c\n    # d\n"),
    ("two blocks", "class A:\n    x = 1\n    x = 1\nclass B:\n    x = 1\n", [("x = 1", "delete", "")], "class A:\n    pass\nclass B:\n    pass\n"),
    ("then and else", "if q:\n    x()\n    x()\nelse:\n    x()\n    x()\n", [("x()", "delete", "")], "if q:\n    pass\nelse:\n    pass\n"),
    ("a module needs no pass", "x()\nx()\n", [("x()", "delete", "")], ""),
    ("an insertion fills the block", "def f():\n    x()\n", [("x()", "delete", ""), ("x()", "insert_after", "y()")], "def f():\n    y()\n"),
    ("an insertion fills an inline block", "def f(): x()  # c\n", [("x()", "delete", ""), ("x()", "insert_after", "y()")], "def f():  # c\n    y()\n"),
    ("one that stays fills it", "def f():\n    x()\n    y()\n    x()\n", [("x()", "delete", "")], "def f():\n    y()\n"),
    ("inline", "def f(): x(); x()\n", [("x()", "delete", "")], "def f(): pass\n"),
    ("inline with a comment", "def f(): x(); x()  # c\n", [("x()", "delete", "")], "def f(): pass  # c\n"),
    ("inline, replaced by comments", "def f(): x(); x()\n", [("x()", "replace", "# c")], "def f():\n    # c\n    # c\n    pass\n"),
    ("one shared line", "def f():\n    x(); x()\n", [("x()", "delete", "")], "def f():\n    pass\n"),
    ("shared and own lines", "def f():\n    x(); x()\n    x()\n", [("x()", "delete", "")], "def f():\n    pass\n"),
]  # fmt: skip

SHARED: list[Case] = [
    ("both deleted", "a(); b()\n", [("a()", "delete", ""), ("b()", "delete", "")], ""),
    ("both deleted among others", "z\na(); b()  # c\ny\n", [("a()", "delete", ""), ("b()", "delete", "")], "z\ny\n"),
    ("the first two deleted", "x(); x(); y()\n", [("x()", "delete", "")], "y()\n"),
    ("the last two deleted", "y(); x(); x()  # c\n", [("x()", "delete", "")], "y()  # c\n"),
    ("those around deleted", "x(); y(); x()\n", [("x()", "delete", "")], "y()\n"),
    ("the middle two deleted", "a; x(); x(); b\n", [("x()", "delete", "")], "a; b\n"),
    ("inline, some deleted", "def f(): x(); y(); x()\n", [("x()", "delete", "")], "def f(): y()\n"),
    ("both wrapped", "a(); b()\n", [("a()", "wrap", WITH), ("b()", "wrap", WITH)], "with w:\n    a()\nwith w:\n    b()\n"),
    ("both wrapped with a comment", "def f():\n    a(); b()  # c\n    z\n", [("a()", "wrap", WITH), ("b()", "wrap", WITH)], "def f():\n    with w:\n        a()\n    with w:\n        b()  # c\n    z\n"),
    ("both replaced by blocks", "x(); x()\n", [("x()", "replace", IF)], "if q:\n    y()\nif q:\n    y()\n"),
    ("replaced and deleted", "a(); b(); c()\n", [("a()", "insert_after", "if q: z()"), ("c()", "delete", "")], "a()\nif q: z()\nb()\n"),
    ("neighbours replaced and deleted", "a(); b(); c()\n", [("a()", "replace", IF), ("b()", "delete", "")], "if q:\n    y()\nc()\n"),
    ("one on the line, one not", "a(); b(); c()\n", [("a()", "replace", "z()"), ("b()", "replace", IF)], "z()\nif q:\n    y()\nc()\n"),
    ("both on the line", "a(); b()\n", [("a()", "insert_after", "x()"), ("b()", "insert_before", "y()")], "a(); x(); y(); b()\n"),
    ("before and after one", "a(); b(); c()\n", [("b()", "insert_before", "x()"), ("b()", "insert_after", "y()")], "a(); x(); b(); y(); c()\n"),
    ("before each", "def f():\n    x(); x()\n", [("x()", "insert_before", "y()")], "def f():\n    y()\n    x(); y(); x()\n"),
    ("after each", "x(); x()  # c\nz\n", [("x()", "insert_after", "y()")], "x(); y(); x()  # c\ny()\nz\n"),
    ("gaps that stay keep their bytes", "a ;b;  c() ; d()\n", [("c()", "replace", IF), ("d()", "replace", IF)], "a ;b\nif q:\n    y()\nif q:\n    y()\n"),
    ("inline, two for each", "if q: x(); x()\n", [("x()", "replace", "y()\nz()")], "if q:\n    y()\n    z()\n    y()\n    z()\n"),
    ("inline, a block for each", "if a: x(); x()  # c\n", [("x()", "replace", IF)], "if a:\n    if q:\n        y()\n    if q:\n        y()  # c\n"),
    ("inline, one for one", "if q: a(); b()\n", [("a()", "replace", "x()"), ("b()", "replace", "y()")], "if q: x(); y()\n"),
    ("inline, before and after", "if q: a()\n", [("a()", "insert_before", "x()"), ("a()", "insert_after", "y()")], "if q:\n    x()\n    a()\n    y()\n"),
    ("inline, after and before", "if q: a()\n", [("a()", "insert_after", "y()"), ("a()", "insert_before", "x()")], "if q:\n    x()\n    a()\n    y()\n"),
    ("inline, first and last", "if q: a(); b(); c()\n", [("a()", "delete", ""), ("c()", "insert_after", "y()")], "if q:\n    b(); c()\n    y()\n"),
    ("both blocks inline", "if q: x()\nelse: x()\n", [("x()", "insert_after", "y()")], "if q:\n    x()\n    y()\nelse:\n    x()\n    y()\n"),
    ("an expression of one that stays", "a(1); b(); b()\n", [("a($X)", "replace", "z($X, 2)"), ("b()", "delete", "")], "z(1, 2)\n"),
    ("an expression of an inline block", "if q: x = f(a)\n", [("x = $V", "insert_after", "y = 1"), ("f($A)", "replace", "g($A)")], "if q:\n    x = g(a)\n    y = 1\n"),
    ("a run over two lines", "a(); b()\nc(); d()\n", [("b()\nc()", "delete", ""), ("a()", "wrap", WITH)], "with w:\n    a()\nd()\n"),
    ("a run over two lines, alone", "a(); b()\nc(); d()\n", [("b()\nc()", "delete", "")], "a(); d()\n"),
    ("a comment behind a comment", "a(); b()  # c\n", [("a()", "replace", IF), ("b()", "replace", "z()  # d")], "if q:\n    y()\nz()  # d  # c\n"),
    ("inner before outer", "if q:\n    x()\n", [("if q: x()", "insert_after", "z()"), ("x()", "insert_after", "y()")], "if q:\n    x()\n    y()\nz()\n"),
    ("inner before outer, inline", "if q: x()\n", [("if q: x()", "insert_after", "z()"), ("x()", "insert_after", "y()")], "if q:\n    x()\n    y()\nz()\n"),
    ("own lines stay apart", "def f():\n    x()\n    z()\n", [("x()", "insert_after", "y()"), ("z()", "insert_before", "w()")], "def f():\n    x()\n    y()\n    w()\n    z()\n"),
    ("blank lines of a template", "a(); b()\n", [("a()", "replace", "\n\nif q: y()"), ("b()", "delete", "")], "\n\nif q: y()\n"),
]  # fmt: skip

OVERLAPS: list[tuple[str, str, list[Edit], list[int], int]] = [
    ("one within another", "f(f(1))\n", [("f($X)", "replace", "g($X)")], [1, 1], 1),
    ("a block and a statement of it", "z\ndef f():\n    x = 1\n", [("def f(): $$$B", "replace", "def g():\n    $$$B"), ("x = 1", "replace", "x = 2")], [1, 2], 3),
    ("the same replaced twice", "z\nx()\n", [("x()", "delete", ""), ("x()", "replace", "if q: y()")], [1, 2], 2),
    ("the same on a shared line", "x(); y()\n", [("x()", "delete", ""), ("x()\ny()", "replace", "z()")], [1, 2], 1),
    ("two before one", "a(); x()\n", [("x()", "insert_before", "y()"), ("x()", "insert_before", "z()")], [1, 2], 1),
    ("two after one", "x()\n", [("x()", "insert_after", "y()"), ("x()", "insert_after", "z()")], [1, 2], 1),
    ("an insertion within a replaced run", "a()\nb()\n", [("a()\nb()", "replace", "z()"), ("a()", "insert_after", "y()")], [1, 2], 1),
    ("an expression of a deleted one", "a(f(1)); b()\n", [("a($X)", "delete", ""), ("b()", "delete", ""), ("f($X)", "replace", "g($X)")], [1, 3], 1),
    ("a copied capture that is edited", "def f():\n    x = 1\n    if c:\n        x = 1\n        d()\n        x = 1\n    x = 1\n", [("x = 1\n$$$M\nx = 1", "insert_after", "$$$M")], [1, 1], 6),
    ("a copied statement that is replaced", "a()\nx()\nb()\n", [("a()\n$$$M\nb()", "insert_after", "$$$M"), ("x()", "replace", "if q: y()")], [1, 2], 2),
]  # fmt: skip


@pytest.mark.parametrize("case", EMPTIED + SHARED, ids=lambda case: case[0])
def test_several(case: Case) -> None:
    _, before, edits, after = case
    assert run(before, edits) == after


@pytest.mark.parametrize("case", OVERLAPS, ids=lambda case: case[0])
def test_overlaps(case: tuple[str, str, list[Edit], list[int], int]) -> None:
    _, before, edits, numbers, line = case
    with pytest.raises(PlanError) as caught:
        splices_of(before, edits)
    error = caught.value
    assert (error.code, sorted(error.details["edits"]), error.details["line"]) == ("overlap", numbers, line)
    assert ("two matches of edit 1" if numbers == [1, 1] else "edits ") in error.message


def test_a_copy_says_what_is_copied() -> None:
    with pytest.raises(PlanError, match="one copies lines 2 to 2, the other changes them"):
        splices_of("a()\nx()\nb()\n", [("a()\n$$$M\nb()", "insert_after", "$$$M"), ("x()", "delete", "")])


def test_copies_beside_each_other_are_none_of_each_other() -> None:
    before = "x = 1\nb()\nx = 1\nc()\nx = 1\n"
    edits = [("x = 1\n$$$M\nx = 1", "insert_after", "$$$M")]
    assert run(before, edits) == "x = 1\nb()\nx = 1\nb()\nc()\nx = 1\nc()\n"


def test_an_insertion_at_the_edge_of_what_is_copied() -> None:
    before = "a()\nx()\nb()\n"
    edits = [
        ("a()\n$$$M\nb()", "insert_after", "$$$M"),
        ("x()", "insert_after", "y()"),
        ("x()", "insert_before", "w()"),
    ]
    assert run(before, edits) == "a()\nw()\nx()\ny()\nb()\nx()\n"


def test_a_group_carries_the_lowest_number_and_leaves_what_stays() -> None:
    text = "a(); keep(); b(); c()\n"
    splices = splices_of(text, [("keep()", "insert_before", "z()"), ("c()", "delete", ""), ("b()", "delete", "")])
    assert {splice.edit for splice in splices} == {1}
    kept = text.index("keep()")
    assert all(splice.end <= kept or splice.start >= kept + len("keep()") for splice in splices)


def test_splices_are_in_order_and_apart() -> None:
    text = "x()\nif q: x(); y()\ny()\n"
    splices = splices_of(text, [("y()", "wrap", WITH), ("x()", "insert_before", "z()")])
    assert all(one.end <= other.start for one, other in pairwise(splices))
    assert lay(text, splices) == "z()\nx()\nif q:\n    z()\n    x()\n    with w:\n        y()\nwith w:\n    y()\n"


def test_an_error_names_its_edit_and_line() -> None:
    with pytest.raises(PlanError) as caught:
        splices_of("x()\ny(f(1))\n", [("x()", "delete", ""), ("f($X)", "insert_after", "z()")])
    assert (caught.value.details["edit"], caught.value.details["line"]) == (2, 2)


def test_every_match_of_an_example_is_laid_together() -> None:
    assert rewrite_text("def f():\n    x()\n    x()\n", "x()", "delete", "", ast.parse) == "def f():\n    pass\n"


def test_an_example_whose_matches_overlap() -> None:
    with pytest.raises(PlanError, match=r"^two matches overlap"):
        rewrite_text("f(f(1))\n", "f($X)", "replace", "g($X)", ast.parse)


def test_many_matches_take_no_square_time() -> None:
    count = 3000
    assert run("x()\n" * count, [("x()", "insert_after", "y()")]) == "x()\ny()\n" * count
