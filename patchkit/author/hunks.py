"""What differs between two texts, by lines, in the places where a person would say that it differs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from patchkit.edit.parse import BLANKS
from patchkit.edit.regions import line_hunks
from patchkit.tuples import NamedTuple

NEAR = 2
"""Hunks with at most so many unchanged lines between them are one change: their anchors would repeat those lines."""


class Hunk(NamedTuple):
    """Lines ``start`` to ``stop`` (0-based, half open) of the text before became ``new``."""

    start: int
    stop: int
    new: tuple[str, ...]


def lines_of(text: str) -> list[str]:
    """The lines of a text whose line breaks are ``\\n``, each with its own; a form feed ends no line."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def hunks(before: Sequence[str], after: Sequence[str]) -> list[Hunk]:
    """The changes from ``before`` to ``after``, in order, none touching the next.

    Blocks that are only inserted or only removed, and could lie some lines higher or lower with the same result, lie
    where they begin at a statement and end with its blank lines.
    """
    found = [Hunk(a, b, tuple(after[c:d])) for a, b, c, d in line_hunks(before, after)]
    settled: list[Hunk] = []
    for index, hunk in enumerate(found):
        low = settled[-1].stop + 1 if settled else 0
        high = found[index + 1].start - 1 if index + 1 < len(found) else len(before)
        settled.append(_settled(before, hunk, low, high))
    return merged(before, settled, lambda first, second: second.start - first.stop <= NEAR)


def merged(before: Sequence[str], found: Sequence[Hunk], together: Callable[[Hunk, Hunk], bool]) -> list[Hunk]:
    """``found`` with every two neighbours made one, with the lines between them, that are to be ``together``."""
    out: list[Hunk] = []
    for hunk in found:
        if out and together(out[-1], hunk):
            last = out.pop()
            hunk = Hunk(last.start, hunk.stop, (*last.new, *before[last.stop : hunk.start], *hunk.new))
        out.append(hunk)
    return out


def _settled(before: Sequence[str], hunk: Hunk, low: int, high: int) -> Hunk:
    """A pure insertion or removal moved, within ``low`` and ``high``, to where it reads best."""
    if hunk.new and hunk.stop > hunk.start:
        return hunk
    places = [hunk]
    while (up := _moved_up(before, places[0], low)) is not None:
        places.insert(0, up)
    while (down := _moved_down(before, places[-1], high)) is not None:
        places.append(down)
    return min(reversed(places), key=lambda place: _unrest(before, place))


def _moved_up(before: Sequence[str], hunk: Hunk, low: int) -> Hunk | None:
    if hunk.start <= low:
        return None
    above = before[hunk.start - 1]
    if hunk.new:
        return Hunk(hunk.start - 1, hunk.stop - 1, (above, *hunk.new[:-1])) if hunk.new[-1] == above else None
    return Hunk(hunk.start - 1, hunk.stop - 1, ()) if before[hunk.stop - 1] == above else None


def _moved_down(before: Sequence[str], hunk: Hunk, high: int) -> Hunk | None:
    if hunk.stop >= high:
        return None
    below = before[hunk.stop]
    if hunk.new:
        return Hunk(hunk.start + 1, hunk.stop + 1, (*hunk.new[1:], below)) if hunk.new[0] == below else None
    return Hunk(hunk.start + 1, hunk.stop + 1, ()) if before[hunk.start] == below else None


def _unrest(before: Sequence[str], hunk: Hunk) -> tuple[bool, int, bool]:
    """How badly a block lies: beginning with a blank line, beginning deep, a first line that only continues."""
    block = hunk.new or before[hunk.start : hunk.stop]
    first = next((line for line in block if line.strip(BLANKS + "\n")), "")
    indent = len(first) - len(first.lstrip(BLANKS))
    return not block[0].strip(BLANKS + "\n"), indent, first.lstrip(BLANKS)[:1] in (")", "]", "}")
