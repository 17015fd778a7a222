"""A first choice of the nodes that a pattern may match, by a name that the pattern spells out.

Unifying every edit's pattern with every statement of a file takes a second for a hundred edits; most statements do not
even hold the pattern's names, and the text tells so at once.
"""

from __future__ import annotations

from typing import Any

from patchkit.edit.pattern import Display, Index, Node, Pattern, Sequence, Value
from patchkit.edit.source import Source

_SPELLED = frozenset({("Name", "id"), ("Attribute", "attr"), ("keyword", "arg")})
"""Fields whose text stands in the source as it is: an identifier cannot be escaped or split over lines."""


def lines_of(source: Source, pattern: Pattern) -> list[int] | None:
    """The 1-based lines, in order, of which every match of the pattern's first item has one; None where all may do.

    They are those on which the rarest of the names stands that the pattern spells out.
    """
    names = _names(pattern.items.items[0])
    if not names:
        return None
    text = source.text
    name = min(names, key=text.count)
    lines = set()
    at = text.find(name)
    while at >= 0:
        lines.add(source.line(at))
        at = text.find(name, source.line_end(at))
    if not text.isascii():
        # Identifiers are compared in their normal form (NFKC), in which other letters become ASCII ones.
        lines.update(number for number, line in enumerate(text.split("\n"), 1) if not line.isascii())
    return sorted(lines)


def _names(item: Any) -> list[str]:
    names: list[str] = []
    pending = [item]
    while pending:
        part = pending.pop()
        if isinstance(part, Sequence):
            pending += part.items
        elif isinstance(part, Index | Display):
            pending.append(part.sequence)
        elif isinstance(part, Node):
            for field, value in part.fields:
                if not isinstance(value, Value):
                    pending.append(value)
                elif (part.label, field) in _SPELLED and isinstance(value.value, str):
                    names.append(value.value)
    return names
