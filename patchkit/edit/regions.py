"""Edit scripts on bytes: applied, inverted, composed, found by comparison, and merged.

A script is a tuple of :class:`ByteSplice` on one base, in order, none overlapping the next (they may touch). It is
what the ledger remembers of a patch, and :func:`merge` is what keeps a hand edit when the patch is taken out: bytes
are never placed by similarity, only where both scripts say, and everything else is a :class:`Conflict`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterator, Sequence
from typing import TypeVar

from patchkit.edit.source import ByteSplice
from patchkit.tuples import NamedTuple

Script = tuple[ByteSplice, ...]
Line = TypeVar("Line", bound=Hashable)

_COMPARISONS = 250_000
"""Pairs of equal lines that difflib may look at in one gap (about 25 ms); beyond, the gap is one hunk."""


class Conflict(NamedTuple):
    """Changes of two scripts on one base that exclude each other; each side in order, neither empty."""

    ours: Script
    theirs: Script

    @property
    def start(self) -> int:
        """The offset in the base of the first byte that is disputed."""
        return min(self.ours[0].start, self.theirs[0].start)

    @property
    def end(self) -> int:
        """The offset in the base behind the last byte that is disputed."""
        return max(self.ours[-1].end, self.theirs[-1].end)

    def lines(self, base: bytes) -> tuple[int, int]:
        """The first and last 1-based line of ``base`` that the conflict touches."""
        first = _line(base, self.start)
        return first, max(first, _line(base, max(self.end - 1, self.start)))


def _line(data: bytes, offset: int) -> int:
    """The 1-based line that ``offset`` lies on; lines end in ``\\r\\n``, ``\\r`` or ``\\n``."""
    head = data[:offset]
    pairs = head.count(b"\r\n") + (data[offset - 1 : offset + 1] == b"\r\n")
    return head.count(b"\n") + head.count(b"\r") - pairs + 1


def apply_script(base: bytes, script: Sequence[ByteSplice]) -> bytes:
    """Lay ``script`` on ``base``.

    Raises:
        ValueError: The splices are out of order or overlap, or ``base`` does not hold what one of them replaces.
    """
    out: list[bytes] = []
    at = 0
    for start, end, old, new in script:
        if start < at or end < start:
            raise ValueError(f"the splice at byte {start} is out of order or overlaps the one before")
        if base[start:end] != old or end - start != len(old):
            raise ValueError(f"bytes {start} to {end} are not what the splice replaces")
        out += (base[at:start], new)
        at = end
    out.append(base[at:])
    return b"".join(out)


def invert(script: Sequence[ByteSplice]) -> Script:
    """The way back: laid on the result of ``script``, it gives its base again."""
    out: list[ByteSplice] = []
    shift = 0
    for start, _, old, new in script:
        out.append(ByteSplice(start + shift, start + shift + len(new), new, old))
        shift += len(new) - len(old)
    return tuple(out)


def compose(first: Sequence[ByteSplice], second: Sequence[ByteSplice]) -> Script:
    """One script for ``first`` and then ``second`` (whose base is the result of ``first``).

    Splices of the two that touch or overlap become one; what is changed and changed back disappears.

    Raises:
        ValueError: ``second`` replaces bytes other than those that ``first`` wrote there.
    """
    back = invert(first)
    out: list[ByteSplice] = []
    i = j = 0
    shift = 0  # what a position between the groups has to be moved by to become one in the base
    while i < len(back) or j < len(second):
        from_i, from_j = i, j
        take_first = j == len(second) or (i < len(back) and back[i].start <= second[j].start)
        low = high = back[i].start if take_first else second[j].start
        while True:
            if i < len(back) and back[i].start <= high:
                high = max(high, back[i].end)
                i += 1
            elif j < len(second) and second[j].start <= high:
                high = max(high, second[j].end)
                j += 1
            else:
                break
        made, redone = _moved(back[from_i:i], low), _moved(second[from_j:j], low)
        middle = _overlaid(high - low, made, redone)
        old, new = apply_script(middle, made), apply_script(middle, redone)
        if old != new:
            out.append(ByteSplice(low + shift, low + shift + len(old), old, new))
        shift += len(old) - (high - low)
    return tuple(out)


def _moved(script: Sequence[ByteSplice], origin: int) -> Script:
    return tuple(ByteSplice(start - origin, end - origin, old, new) for start, end, old, new in script)


def _overlaid(length: int, *scripts: Script) -> bytes:
    """The bytes that ``scripts`` replace; every one of the ``length`` bytes is in some ``old``."""
    data = bytearray(length)
    for script in scripts:
        for start, end, old, _ in script:
            data[start:end] = old
    return bytes(data)


def diff_script(old: bytes, new: bytes) -> Script:
    """The changes from ``old`` to ``new``, by :func:`line_hunks`, each narrowed to the bytes that differ."""
    if old == new:
        return ()
    head = _common_head(old, new)
    head = old.rfind(b"\n", 0, head) + 1
    tail = _common_tail(old[head:], new[head:])
    line_end = old.find(b"\n", len(old) - tail) if tail else -1
    tail = len(old) - line_end - 1 if line_end >= 0 else 0
    a = old[head : len(old) - tail].splitlines(keepends=True)
    b = new[head : len(new) - tail].splitlines(keepends=True)
    starts = [head]
    for line in a:
        starts.append(starts[-1] + len(line))
    out = []
    for a_low, a_high, b_low, b_high in line_hunks(a, b):
        before, after = b"".join(a[a_low:a_high]), b"".join(b[b_low:b_high])
        same = _common_head(before, after)
        rest = _common_tail(before[same:], after[same:])
        start, end = starts[a_low] + same, starts[a_high] - rest
        out.append(ByteSplice(start, end, old[start:end], after[same : len(after) - rest]))
    return tuple(out)


def _common_head(a: bytes, b: bytes) -> int:
    """The length of the common prefix, by bisection (comparing slices is far quicker than bytes one by one)."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _common_tail(a: bytes, b: bytes) -> int:
    """The length of the common suffix."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[len(a) - middle : len(a) - low] == b[len(b) - middle : len(b) - low]:
            low = middle
        else:
            high = middle - 1
    return low


def line_hunks(a: Sequence[Line], b: Sequence[Line]) -> Iterator[tuple[int, int, int, int]]:
    """The line ranges that differ: ``a[0]:a[1]`` became ``b[2]:b[3]``, in order, none touching the next.

    Lines that occur once on either side are matched first (longest rising run); difflib compares what lies between
    them, unless that would take long: then it is one hunk.
    """
    at_a = at_b = 0
    for next_a, next_b in [*_anchors(a, b), (len(a), len(b))]:
        low_a, low_b, high_a, high_b = at_a, at_b, next_a, next_b
        while low_a < high_a and low_b < high_b and a[low_a] == b[low_b]:
            low_a, low_b = low_a + 1, low_b + 1
        while low_a < high_a and low_b < high_b and a[high_a - 1] == b[high_b - 1]:
            high_a, high_b = high_a - 1, high_b - 1
        if low_a < high_a or low_b < high_b:
            yield from _gap(a, b, low_a, high_a, low_b, high_b)
        at_a, at_b = next_a + 1, next_b + 1


def _anchors(a: Sequence[Line], b: Sequence[Line]) -> list[tuple[int, int]]:
    """Lines that occur once on each side, thinned to the longest run that rises on both (patience diff)."""
    once_a, once_b = _once(a), _once(b)
    pairs = [(index, once_b[line]) for line, index in once_a.items() if line in once_b]
    ends: list[int] = []  # per length of run: the least b index that such a run ends with
    last: list[int] = []  # the pair that does so
    before: list[int] = []  # per pair: the pair before it in its run
    for number, (_, target) in enumerate(pairs):
        length = bisect_left(ends, target)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [target]
        last[length : length + 1] = [number]
    run = []
    number = last[-1] if last else -1
    while number >= 0:
        run.append(pairs[number])
        number = before[number]
    return run[::-1]


def _once(lines: Sequence[Line]) -> dict[Line, int]:
    """The lines that occur once, with their index, in order."""
    seen: dict[Line, int] = {}
    for index, line in enumerate(lines):
        seen[line] = -1 if line in seen else index
    return {line: index for line, index in seen.items() if index >= 0}


def _gap(
    a: Sequence[Line], b: Sequence[Line], low_a: int, high_a: int, low_b: int, high_b: int
) -> Iterator[tuple[int, int, int, int]]:
    """The hunks of a gap between two anchors."""
    counts: dict[Line, int] = {}
    for line in b[low_b:high_b]:
        counts[line] = counts.get(line, 0) + 1
    equal = sum(counts.get(line, 0) for line in a[low_a:high_a])
    if not equal or equal > _COMPARISONS:
        yield low_a, high_a, low_b, high_b
        return
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(None, a[low_a:high_a], b[low_b:high_b], autojunk=False)
    for tag, from_a, to_a, from_b, to_b in matcher.get_opcodes():
        if tag != "equal":
            yield low_a + from_a, low_a + to_a, low_b + from_b, low_b + to_b


def merge(base: bytes, ours: Sequence[ByteSplice], theirs: Sequence[ByteSplice]) -> bytes | list[Conflict]:
    """Both scripts at once, or the places where they exclude each other.

    Changes to bytes that lie apart both apply, and so do those that touch where a line ends. The same change on both
    sides is made once. All else is a conflict: bytes that both change, an insertion inside what the other replaces, two
    different insertions at one point, and changes that touch within a line (60 made 600 is a change *of* 60).

    Raises:
        ValueError: ``base`` is not what one of the scripts was made for.
    """
    apply_script(base, ours)
    apply_script(base, theirs)
    mine, other = _joined(ours), _joined(theirs)
    merged: list[ByteSplice] = []
    conflicts: list[Conflict] = []
    i = j = 0
    while i < len(mine) and j < len(other):
        a, b = mine[i], other[j]
        if a == b:
            merged.append(a)
            i, j = i + 1, j + 1
        elif _apart(base, a, b):
            merged.append(a)
            i += 1
        elif _apart(base, b, a):
            merged.append(b)
            j += 1
        else:
            from_i, from_j = i, j
            i, j = i + 1, j + 1
            while True:
                if i < len(mine) and not _apart(base, other[j - 1], mine[i]):
                    i += 1
                elif j < len(other) and not _apart(base, mine[i - 1], other[j]):
                    j += 1
                else:
                    break
            conflicts.append(Conflict(mine[from_i:i], other[from_j:j]))
    if conflicts:
        return conflicts
    return apply_script(base, [*merged, *mine[i:], *other[j:]])


def _apart(base: bytes, first: ByteSplice, second: ByteSplice) -> bool:
    """Whether ``first`` lies before ``second`` with something between them, be it only the end of a line."""
    at = second.start
    if first.end != at:
        return first.end < at
    behind_break = at == 0 or base[at - 1 : at] == b"\n" or (base[at - 1 : at] == b"\r" and base[at : at + 1] != b"\n")
    return (behind_break or second.old[:1] in (b"\n", b"\r")) and not _one_point(first, second)


def _one_point(a: ByteSplice, b: ByteSplice) -> bool:
    """True for two insertions at the same point."""
    return a.start == a.end == b.start == b.end


def _joined(script: Sequence[ByteSplice]) -> Script:
    """``script`` without idle splices, several insertions at one point made one."""
    out: list[ByteSplice] = []
    for splice in script:
        if splice.old == splice.new:
            continue
        if out and _one_point(out[-1], splice):
            out[-1] = out[-1]._replace(new=out[-1].new + splice.new)
        else:
            out.append(splice)
    return tuple(out)
