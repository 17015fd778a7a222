"""Where the hunks of a unified diff belong in a file whose lines have moved: by content, once, or not at all.

No line number is taken for evidence, and no line for another that is nearly the same. Where :func:`place` leaves a
choice, :func:`placements` has all there are, for who can prove which one is right; of too many, :func:`as_said` the one
to be tried.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Literal

from patchkit.edit.parse import BLANKS
from patchkit.tuples import NamedTuple

Mark = Literal[" ", "-", "+"]


class DiffHunk(NamedTuple):
    """A hunk: its lines with their marks, and the 1-based line of the diff file that it begins at.

    ``headings`` are the heads of the function or class above it, by each of the rules of :data:`_HEADS`; a diff says
    one of them behind ``@@``, or something else, which is as good as nothing. ``start`` is the 1-based line of the file
    that the diff says it begins at (where it has no old lines: the line before). ``breaks`` are the line breaks that
    the diff has, line by line.
    """

    lines: tuple[tuple[Mark, str], ...]
    diff_line: int
    headings: tuple[str, str] = ("", "")
    start: int = 0
    breaks: tuple[str, ...] = ()

    @property
    def old(self) -> list[str]:
        """The lines before."""
        return [text for mark, text in self.lines if mark != "+"]

    @property
    def new(self) -> list[str]:
        """The lines after."""
        return [text for mark, text in self.lines if mark != "-"]


class Placed(NamedTuple):
    """Lines ``start`` to ``stop`` (0-based, half open; without the context) become ``new``, as ``hunk`` says.

    ``sure`` is False where a part of the context is all that speaks for the place. ``reduced``: not all of the context
    that the diff has stands there.
    """

    start: int
    stop: int
    new: tuple[str, ...]
    hunk: DiffHunk
    sure: bool = True
    reduced: bool = False


class Unplaced(NamedTuple):
    """A hunk, or a part of one, without one place: the 1-based lines where it could be, or ``present``: it is there.

    ``elsewhere``: what is there lies under another heading than the hunk, or has nothing of its context around it.
    ``inner``: the 1-based line where an insertion would stand that has no context on one side, as at an end of a file,
    which is none; else 0.
    """

    hunk: DiffHunk
    candidates: tuple[int, ...] = ()
    present: bool = False
    elsewhere: bool = False
    inner: int = 0


def place(lines: Sequence[str], hunks: Sequence[DiffHunk]) -> tuple[list[Placed], list[Unplaced]]:
    """Find the one place of every hunk.

    A hunk that stands nowhere as a whole is looked for with less context, and then change by change: between two
    changes of a hunk, lines may have come in. With less context, but never with none, it must lie under the heading
    that the diff names, or where that is unknown, in the diff's order. What stands at several places has none, unless
    one of them alone lies under the heading, or the hunks, in their order, fit the file in one way only.

    Args:
        lines: The file, each line with its line break.
        hunks: The hunks of that file, in order.

    Returns:
        The places, in order, none overlapping; and what has none.
    """
    index = _Index(lines)
    results: list[Placed | Unplaced] = []
    for hunk in hunks:
        found = index.find(hunk)
        parts = list(_changes(hunk))
        if isinstance(found, Placed) or found.candidates or found.present or len(parts) < 2:
            results.append(found)
        else:
            singly = [_reduced(index.find(part)) for part in parts]
            # What fits in no part is told as a whole.
            fits = any(isinstance(one, Placed) or one.candidates or one.present for one in singly)
            results += singly if fits else [found]
    results = _by_order(_in_order(results))
    return _apart(
        [one for one in results if isinstance(one, Placed)], [one for one in results if isinstance(one, Unplaced)]
    )


def placements(lines: Sequence[str], hunks: Sequence[DiffHunk], most: int) -> Iterator[list[Placed]]:
    """All ways to lay the hunks, each whole, in their order, where all their lines stand; none if there are too many.

    Args:
        lines: The file, each line with its line break.
        hunks: The hunks of that file, in order.
        most: How many ways are not too many.
    """
    at: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        at.setdefault(line, []).append(number)
    #: For each hunk its starts, each with the number of ways to lay it there and all that follow behind it.
    ways: list[dict[int, int]] = []
    behind: dict[int, int] | None = None
    for hunk in reversed(hunks):
        old = hunk.old
        starts = at.get(old[0], []) if old else range(len(lines) + 1)
        later = list(accumulate(reversed([(behind or {}).get(n, 0) for n in range(len(lines) + 1)])))[::-1]
        found = {
            start: 1 if behind is None else later[start + len(old)]
            for start in starts
            if list(lines[start : start + len(old)]) == old
        }
        behind = {start: count for start, count in found.items() if count}
        ways.insert(0, behind)
    if sum(ways[0].values() if ways else ()) <= most:
        yield from _laid(hunks, ways, 0)


def as_said(lines: Sequence[str], hunks: Sequence[DiffHunk]) -> list[Placed] | None:
    """The hunks at the lines that the diff says; None where a line there is another, or two of them overlap.

    Nothing but a proof that the result is the one that is meant makes these places right.
    """
    out: list[Placed] = []
    for hunk in hunks:
        old = hunk.old
        at = hunk.start - 1 if old else hunk.start
        start = at + _edges(hunk)[0]
        if at < 0 or list(lines[at : at + len(old)]) != old or (out and start < out[-1].stop):
            return None
        out.append(_at(hunk, start))
    return out


def _laid(hunks: Sequence[DiffHunk], ways: Sequence[dict[int, int]], end: int) -> Iterator[list[Placed]]:
    if not hunks:
        yield []
        return
    for start in ways[0]:
        if start >= end:
            placed = _at(hunks[0], start + _edges(hunks[0])[0])
            for rest in _laid(hunks[1:], ways[1:], start + len(hunks[0].old)):
                yield [placed, *rest]


def _reduced(one: Placed | Unplaced) -> Placed | Unplaced:
    return one._replace(reduced=True) if isinstance(one, Placed) else one


_HEADS = (re.compile(r"(?:class|(?:async[ \t]+)?def)[ \t]"), re.compile(r"[ \t]*(?:class|(?:async[ \t]+)?def)[ \t]"))
"""Headings of Python that git names: what is not indented, by default; any, with ``diff=python`` in gitattributes."""

_HEADING = 80
"""The most bytes that git quotes of a heading (its ``xdiff``)."""


class _Index:
    """A file's lines, by content."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._at: dict[str, list[int]] = {}
        for number, line in enumerate(lines):
            self._at.setdefault(line, []).append(number)

    def find(self, hunk: DiffHunk) -> Placed | Unplaced:
        """The place of a hunk with as much of its context as fits anywhere."""
        whole = sum(_edges(hunk))
        inner = 0
        for trims in _trims(hunk):
            kept = sum(trims[0])
            found = [
                (at + head, _says_something(_around(hunk, head, tail)))
                for head, tail in trims
                for at in self._places(_core(hunk, head, tail).old)
            ]
            starts = {start for start, _ in found if self._is_at_edge(hunk, start, kept == whole)}
            if not starts:
                inner = inner or min((start + 1 for start, _ in found), default=0)
                continue
            known = any(_headings(hunk))
            under = {start for start in starts if self._is_under(hunk, start)} if known else set[int]()
            speaking = {start for start, speaks in found if speaks}
            if kept == whole and (speaking or not known):
                likely = under if len(under) == 1 else starts
            elif kept == whole:
                likely = under
            else:
                # A line alone, without any of what was around it, is no evidence.
                chosen = under if known else starts
                likely = chosen if chosen & speaking else set()
            if len(likely) == 1:
                return _at(hunk, *likely)._replace(sure=known or kept == whole, reduced=kept < whole)
            shown = tuple(sorted(start + 1 for start in likely or starts))
            return Unplaced(hunk, shown, elsewhere=not likely)
        head, tail = _edges(hunk)
        new = _core(hunk, min(head, 1), min(tail, 1)).new
        present = bool(self._places(new))
        return Unplaced(hunk, present=present, inner=0 if present else inner)

    def _is_under(self, hunk: DiffHunk, start: int) -> bool:
        """Whether a change at that line (0-based) lies under a heading of the hunk."""
        for rule, heading in zip(_HEADS, _headings(hunk), strict=True):
            line = _last(rule, self._lines[:start])
            if heading and (line == heading or (len(heading.encode()) > _HEADING - 4 and line.startswith(heading))):
                return True
        return False

    def _is_at_edge(self, hunk: DiffHunk, start: int, whole: bool) -> bool:
        """False where an insertion at an end of the file, which has no context on that side, would lie elsewhere.

        By its line number, a hunk may not be at the beginning of the diff's own file: its context was cut then.
        """
        head, tail = _edges(hunk)
        if any(mark == "-" for mark, _ in hunk.lines) or head == tail == 0:
            return True
        return (head > 0 or start == 0 or (whole and hunk.start > 1)) and (tail > 0 or start == len(self._lines))

    def _places(self, block: Sequence[str]) -> list[int]:
        """Where ``block`` stands, 0-based; looked for by its rarest line."""
        if not block or not _says_something(block):
            return []
        offset, rarest = min(enumerate(block), key=lambda item: len(self._at.get(item[1], ())))
        size = len(block)
        return [
            at - offset
            for at in self._at.get(rarest, ())
            if at >= offset and list(self._lines[at - offset : at - offset + size]) == list(block)
        ]


def _headings(hunk: DiffHunk) -> list[str]:
    """The heads above the hunk's change: of its own context, else those that it has been given."""
    above = [text for mark, text in hunk.lines[: _edges(hunk)[0]]]
    given = [heading if _HEADS[1].match(heading) else "" for heading in hunk.headings]
    return [_last(rule, above) or heading for rule, heading in zip(_HEADS, given, strict=True)]


def _last(rule: re.Pattern[str], lines: Sequence[str]) -> str:
    return next((line.strip() for line in reversed(lines) if rule.match(line)), "")


def _says_something(block: Sequence[str]) -> bool:
    """Whether any of the lines is not blank."""
    return any(line.strip(BLANKS + "\r\n") for line in block)


def _edges(hunk: DiffHunk) -> tuple[int, int]:
    """How many context lines a hunk begins and ends with."""
    marks = [mark for mark, _ in hunk.lines]
    changed = [at for at, mark in enumerate(marks) if mark != " "]
    return changed[0], len(marks) - 1 - changed[-1]


def _trims(hunk: DiffHunk) -> Iterator[list[tuple[int, int]]]:
    """How many lines of context to keep at either end, in groups of equal sum, the most first.

    A hunk that only inserts keeps a line at each end that has one: by that alone it is known where it belongs.
    """
    head, tail = _edges(hunk)
    least = 0 if any(mark == "-" for mark, _ in hunk.lines) else 1
    for total in range(head + tail, -1, -1):
        group = [
            (kept, total - kept)
            for kept in range(min(least, head), head + 1)
            if min(least, tail) <= total - kept <= tail
        ]
        if group:
            yield group


def _core(hunk: DiffHunk, head: int, tail: int) -> DiffHunk:
    """``hunk`` with so many lines of context at its ends."""
    has_head, has_tail = _edges(hunk)
    return hunk._replace(lines=hunk.lines[has_head - head : len(hunk.lines) - (has_tail - tail)])


def _around(hunk: DiffHunk, head: int, tail: int) -> list[str]:
    """So many lines of context before and after the change."""
    has_head, has_tail = _edges(hunk)
    texts = [text for _, text in hunk.lines]
    return texts[has_head - head : has_head] + texts[len(texts) - has_tail : len(texts) - has_tail + tail]


def _changes(hunk: DiffHunk) -> Iterator[DiffHunk]:
    """Each run of changed lines of ``hunk`` as a hunk of its own, with the context lines around it."""
    lines = hunk.lines
    at = 0
    while at < len(lines):
        if lines[at][0] == " ":
            at += 1
            continue
        stop = at
        while stop < len(lines) and lines[stop][0] != " ":
            stop += 1
        low, high = at, stop
        while low > 0 and lines[low - 1][0] == " ":
            low -= 1
        while high < len(lines) and lines[high][0] == " ":
            high += 1
        above = [text for mark, text in lines[:low] if mark != "+"]
        first, second = (_last(rule, above) or given for rule, given in zip(_HEADS, hunk.headings, strict=True))
        yield DiffHunk(lines[low:high], hunk.diff_line + low, (first, second), breaks=hunk.breaks[low:high])
        at = stop


def _in_order(results: Sequence[Placed | Unplaced]) -> list[Placed | Unplaced]:
    """``results`` without the unsure places that lie on the wrong side of a sure one; the others are sure by that."""
    out: list[Placed | Unplaced] = []
    for at, one in enumerate(results):
        if isinstance(one, Placed) and not one.sure:
            before = [other for other in results[:at] if isinstance(other, Placed) and other.sure]
            behind = [other for other in results[at + 1 :] if isinstance(other, Placed) and other.sure]
            if any(other.stop > one.start for other in before) or any(other.start < one.stop for other in behind):
                out.append(Unplaced(one.hunk, (one.start + 1,), elsewhere=True))
            else:
                out.append(one._replace(sure=True))
        else:
            out.append(one)
    return out


def _by_order(results: list[Placed | Unplaced]) -> list[Placed | Unplaced]:
    """``results`` with the places of ambiguous hunks where only one choice keeps all hunks in the diff's order.

    Two like hunks that fit two like places are such a case. Where the hunks that have one place are not in order
    themselves, code was moved, and order says nothing.
    """
    sure = [one for one in results if isinstance(one, Placed)]
    if all(isinstance(one, Placed) or not _is_open(one) for one in results) or any(
        second.start < first.stop for first, second in pairwise(sure)
    ):
        return results
    #: For every end so far: in how many ways it is reached (2: several), and one of them.
    ways: dict[int, tuple[int, tuple[Placed, ...]]] = {0: (1, ())}
    for one in results:
        if not _is_open(one):
            continue
        options = [one] if isinstance(one, Placed) else [_at(one.hunk, line - 1) for line in one.candidates]
        reached: dict[int, tuple[int, tuple[Placed, ...]]] = {}
        for end, (count, chosen) in ways.items():
            for option in options:
                # Two that insert at one point would have no order of their own.
                if option.start >= end and not (chosen and option[:2] == chosen[-1][:2]):
                    known = reached.get(option.stop, (0, ()))[0]
                    reached[option.stop] = (min(known + count, 2), (*chosen, option))
        ways = reached
    if sum(count for count, _ in ways.values()) != 1:
        return results
    ((_, chosen),) = ways.values()
    rest = iter(chosen)
    return [next(rest) if _is_open(one) else one for one in results]


def _is_open(one: Placed | Unplaced) -> bool:
    """Whether a hunk has a place, or the choice between several."""
    return isinstance(one, Placed) or (bool(one.candidates) and not one.elsewhere)


def _at(hunk: DiffHunk, start: int) -> Placed:
    """The change of ``hunk`` made at a line (0-based)."""
    bare = _core(hunk, 0, 0)
    return Placed(start, start + len(bare.old), tuple(bare.new), hunk)


def _apart(placed: list[Placed], unplaced: list[Unplaced]) -> tuple[list[Placed], list[Unplaced]]:
    """The places by line. Two that change the same lines, or insert at one point, are both without a place."""
    kept: list[Placed] = []
    for one in sorted(placed, key=lambda one: (one.start, one.stop)):
        if kept and (one.start < kept[-1].stop or (one.start, one.stop) == (kept[-1].start, kept[-1].stop)):
            last = kept.pop()
            unplaced += [Unplaced(last.hunk, (last.start + 1,)), Unplaced(one.hunk, (one.start + 1,))]
        else:
            kept.append(one)
    return kept, unplaced
