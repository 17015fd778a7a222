"""What ``scope`` and ``inside`` leave of a file; and that matches within it are those of the whole file in it."""

from __future__ import annotations

import ast

import pytest

from patchkit.edit.narrow import regions
from patchkit.edit.outline import Outline
from patchkit.edit.source import Source
from patchkit.edit.spans import Span
from patchkit.edit.text import find_text

TEXT = "if a:\n    x\ndef f():\n    if a:\n        if a:\n            y\n    z\n"


@pytest.mark.parametrize(
    ("scope", "inside", "texts"),
    [
        (None, None, [TEXT]),
        ("f", None, ["def f():\n    if a:\n        if a:\n            y\n    z\n"]),
        (None, "if a", ["\n    x\n", "\n        if a:\n            y\n"]),
        ("f", "if a:", ["\n        if a:\n            y\n"]),
        ("g", None, []),
        ("g", "if a", []),
        ("f", "if b", []),
    ],
)
def test_regions(scope: str | None, inside: str | None, texts: list[str]) -> None:
    outline = Outline(Source(TEXT.encode(), path="x.py"), ast.parse(TEXT))
    for _ in range(2):  # the second time from what is known
        assert [TEXT[start:end] for start, end in regions(outline, scope, inside, ast.parse)] == texts


def test_a_search_ends_with_the_place_that_is_one_too_many() -> None:
    source = Source(b"aaaa", path="x.py")
    assert find_text(source, "aa", [Span(0, 4)], limit=2) == [Span(0, 2), Span(1, 3)]
    assert find_text(source, "aa", [Span(0, 2), Span(2, 4)], limit=1) == [Span(0, 2)]
