"""A change of whole lines as a text edit: the shortest run of lines that is the only one of its kind in its scope."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from patchkit.author.align import lines_of
from patchkit.edit.spans import Span
from patchkit.edit.text import find_text
from patchkit.edit.uniqueness import CONTEXT_LINES
from patchkit.model.patch import Action
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.edit.locate import FileText


class Anchored(NamedTuple):
    """The parts of a text edit. ``scope`` is None at module level."""

    scope: str | None
    find: str
    action: Action
    text: str


def anchor_lines(
    text: FileText, first: int, end: int, lines: Sequence[str], *, prefer: str = "", above: bool = False
) -> Anchored | None:
    """The edit that makes ``lines`` of the lines ``first`` to ``end`` (0-based, exclusive) of ``text``.

    Args:
        text: The file.
        first: The first line; for an insertion, the one before which it goes.
        end: Behind the last line.
        lines: What comes in their place, with their line breaks.
        prefer: The scope that is tried behind the innermost one.
        above: Of two that are as short, take the one with more lines above rather than below.

    Returns:
        None where no :data:`patchkit.edit.uniqueness.CONTEXT_LINES` lines more on either side are unique.
    """
    source = text.source
    all_lines = lines_of(source.text)
    if first == end and first >= len(all_lines) and not (all_lines and all_lines[-1].endswith("\n")):
        return None
    starts = [*source.starts[: len(all_lines)], len(source.text)]
    for scope in _scopes(text, first, prefer):
        regions = [Span(0, len(source.text))] if scope is None else _regions(text, scope)
        sizes = [(up, down) for up in range(CONTEXT_LINES + 1) for down in range(CONTEXT_LINES + 1)]
        for up, down in sorted(sizes, key=lambda size: (sum(size), max(size), size[above])):
            low, high = first - up, end + down
            if low < 0 or high > len(all_lines) or low == high:
                continue
            place = Span(starts[low], starts[high])
            find = source.text[place.start : place.end]
            if not find.strip() or not any(r.start <= place.start and place.end <= r.end for r in regions):
                continue
            if find_text(source, find, regions, limit=2) == [place]:
                return _edit(scope, all_lines[low:first], all_lines[first:end], all_lines[end:high], lines)
    return None


def _scopes(text: FileText, line: int, prefer: str) -> list[str | None]:
    """The scopes to try: the innermost around the line, those around that one, none."""
    outline = text.outline_or_none()
    starts = text.source.starts
    name = outline.scope_at(starts[min(line, len(starts) - 1)]) if outline is not None else ""
    parts = name.split(".") if name else []
    names: list[str | None] = [".".join(parts[:size]) for size in range(len(parts), 0, -1)]
    if prefer and prefer not in names and outline is not None:
        names.append(prefer)
    return [*names, None]


def _regions(text: FileText, scope: str) -> list[Span]:
    outline = text.outline_or_none()
    return [] if outline is None else outline.scopes(scope)


def _edit(scope: str | None, above: list[str], own: list[str], below: list[str], lines: Sequence[str]) -> Anchored:
    find = "".join([*above, *own, *below])
    new = "".join(lines)
    if not own and not above:
        return Anchored(scope, find, "insert_before", new)
    if not own and not below:
        return Anchored(scope, find, "insert_after", new)
    if not new and not above and not below:
        return Anchored(scope, find, "delete", "")
    return Anchored(scope, find, "replace", "".join([*above, new, *below]))
