"""A run of characters of ``Source.text``, and a match of an anchor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    import ast

    from patchkit.edit.captures import Capture


class Span(NamedTuple):
    """``text[start:end]``, positions as in :class:`patchkit.edit.source.Source`."""

    start: int
    end: int

    def contains(self, other: Span) -> bool:
        """True where ``other`` lies wholly within this span (the edges may coincide)."""
        return self.start <= other.start and other.end <= self.end

    def overlaps(self, other: Span) -> bool:
        """True where the two have a character in common, or an empty one lies strictly within the other."""
        return self.start < other.end and other.start < self.end


def outermost(spans: Iterable[Span]) -> list[Span]:
    """``spans`` in order, without those that lie within another: what lies in them is found there."""
    kept: list[Span] = []
    for span in sorted(set(spans), key=lambda s: (s.start, -s.end)):
        if not kept or span.end > kept[-1].end:
            kept.append(span)
    return kept


class Found(NamedTuple):
    """One match of an anchor; a text anchor's has only its span.

    ``nodes`` are the matched expression or the run of statements, ``captures`` what the metavariables stand for,
    ``owner`` the statement, handler or case in whose own lines the first stands (an expression) or the owner of its
    block (a statement). ``exact`` is False where the place of an expression within an f-string is not known; ``span``
    is then the f-string's.
    """

    span: Span
    nodes: tuple[ast.AST, ...] = ()
    captures: Mapping[str, Capture] = {}
    owner: ast.AST | None = None
    exact: bool = True
