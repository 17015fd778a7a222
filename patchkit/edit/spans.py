"""A run of characters of ``Source.text``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import ast


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


class Found(NamedTuple):
    """One match of an anchor. A text match has no ``nodes``; those of a syntax match are the expression, or the
    run of statements, that matched, and ``captures`` what its metavariables stand for.
    """

    span: Span
    nodes: tuple[ast.AST, ...] = ()
    captures: Mapping[str, Any] = {}
