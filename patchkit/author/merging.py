"""Two changes of one file, line by line, into one; where they meet, both are shown. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from patchkit.edit.regions import line_hunks
from patchkit.tuples import NamedTuple

MARKS = (b"<<<<<<< ", b"||||||| ", b"=======", b">>>>>>> ")
"""How the lines of a conflict begin, as git writes them with ``merge.conflictStyle=diff3``."""

_Hunk = tuple[int, int, int, int]


class Labels(NamedTuple):
    """What the three versions are called in a conflict."""

    ours: str
    base: str
    theirs: str


def merge_lines(base: bytes, ours: bytes, theirs: bytes, labels: Labels) -> tuple[bytes, int]:
    """The lines of ``base`` with both changes.

    Changes that overlap, or that touch without a line between them, are a conflict unless they are the same; so it is
    in git. The lines that both sides begin and end alike are left out of it.

    Returns:
        The merged bytes, and the number of conflicts that are marked in them.
    """
    old, a, b = (text.splitlines(keepends=True) for text in (base, ours, theirs))
    lines: list[bytes] = []
    conflicts = 0
    at = 0
    for low, high, mine, other in _groups(list(line_hunks(old, a)), list(line_hunks(old, b))):
        lines += old[at:low]
        at = high
        left, right = _side(a, mine, low, high), _side(b, other, low, high)
        if left is None or right is None or left == right:
            lines += left if left is not None else right or []
        else:
            conflicts += 1
            lines += _marked(old[low:high], left, right, labels, b"\r\n" if b"\r\n" in base[:4096] else b"\n")
    return b"".join([*lines, *old[at:]]), conflicts


def _groups(ours: list[_Hunk], theirs: list[_Hunk]) -> list[tuple[int, int, list[_Hunk], list[_Hunk]]]:
    """Hunks of both sides that meet, together: the lines of the base that they span, and each side's."""
    found: list[tuple[int, int, list[_Hunk], list[_Hunk]]] = []
    for hunk, side in sorted([(hunk, 2) for hunk in ours] + [(hunk, 3) for hunk in theirs]):
        if found and hunk[0] <= found[-1][1]:
            low, high, mine, other = found.pop()
            found.append((low, max(high, hunk[1]), mine, other))
        else:
            found.append((hunk[0], hunk[1], [], []))
        (found[-1][2] if side == 2 else found[-1][3]).append(hunk)
    return found


def _side(lines: Sequence[bytes], hunks: Sequence[_Hunk], low: int, high: int) -> list[bytes] | None:
    """What one side has in the place of the base's lines ``low`` to ``high``; None where it left them alone."""
    if not hunks:
        return None
    first, last = hunks[0], hunks[-1]
    return list(lines[first[2] - (first[0] - low) : last[3] + (high - last[1])])


def _marked(old: list[bytes], left: list[bytes], right: list[bytes], labels: Labels, newline: bytes) -> list[bytes]:
    head = 0
    while head < min(len(left), len(right)) and left[head] == right[head]:
        head += 1
    tail = 0
    while tail < min(len(left), len(right)) - head and left[-1 - tail] == right[-1 - tail]:
        tail += 1
    ends = (len(left) - tail, len(right) - tail)
    names = [label.encode("utf-8") for label in labels]
    block = [
        *left[:head],
        MARKS[0] + names[0] + newline,
        *_closed(left[head : ends[0]], newline),
        MARKS[1] + names[1] + newline,
        *_closed(old, newline),
        MARKS[2] + newline,
        *_closed(right[head : ends[1]], newline),
        MARKS[3] + names[2] + newline,
    ]
    return block + left[ends[0] :]


def _closed(lines: list[bytes], newline: bytes) -> list[bytes]:
    """Lines of which the last ends in a line break, for a mark to follow."""
    if lines and not lines[-1].endswith((b"\n", b"\r")):
        return [*lines[:-1], lines[-1] + newline]
    return lines


def conflict_lines(data: bytes) -> list[int]:
    """The 1-based lines that begin a conflict."""
    lines = data.splitlines()
    if not any(line.startswith(MARKS[3]) for line in lines):
        return []
    return [number for number, line in enumerate(lines, 1) if line.startswith(MARKS[0])]
