"""From ``scope`` and ``inside`` to the regions of a file that they leave."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from patchkit.edit.spans import Span, outermost

if TYPE_CHECKING:
    from patchkit.edit.outline import Outline
    from patchkit.edit.parse import Parse

_known: WeakKeyDictionary[Outline, dict[tuple[str | None, str | None], list[Span]]] = WeakKeyDictionary()


def regions(outline: Outline, scope: str | None, inside: str | None, parse: Parse) -> list[Span]:
    """The regions that ``scope`` and ``inside`` leave of a file, in order, none within another; [] without any.

    Raises:
        HeaderError: ``inside`` is not the header of a block (a ValueError).
    """
    known = _known.setdefault(outline, {})
    found = known.get((scope, inside))
    if found is None:
        if scope is None:
            whole = [Span(0, len(outline.source.text))]
            found = whole if inside is None else outermost(outline.blocks(inside, parse))
        else:
            found = outermost(outline.scopes(scope))
            if inside is not None and found:
                found = outermost(_common(found, outline.blocks(inside, parse)))
        known[scope, inside] = found
    return found


def _common(some: list[Span], others: list[Span]) -> list[Span]:
    crossed = (Span(max(a.start, b.start), min(a.end, b.end)) for a in some for b in others)
    return [span for span in crossed if span.start < span.end]
