"""A hand edit inside of what patchkit wrote, shown by its lines on both sides."""

from __future__ import annotations

from collections.abc import Sequence

from patchkit.edit.source import ByteSplice
from patchkit.tuples import NamedTuple

#: Lines of both sides together, over all places.
_MOST = 12


class Dispute(NamedTuple):
    """One place: the line in the file as it is now, and the whole lines as patchkit wrote them and as they are now."""

    line: int
    ours: list[str]
    theirs: list[str]


def dispute(ours: bytes, current: bytes, by_hand: Sequence[ByteSplice], one: ByteSplice) -> Dispute:
    """The lines that a hand edit touches.

    Args:
        ours: The file as patchkit wrote it.
        current: The file now.
        by_hand: What leads from the one to the other.
        one: The edit that is meant, of ``by_hand``.
    """
    at = one.start + sum(len(other.new) - len(other.old) for other in by_hand if other.start < one.start)
    start, end, end_now = _line_start(ours, one.start), one.end, at + len(one.new)
    if not (_at_line_start(ours, end) and _at_line_start(current, end_now)):
        rest = _line_end(ours, end) - end  # what follows the edit is the same on both sides
        end, end_now = end + rest, end_now + rest
    line = len(current[:at].splitlines()) + _at_line_start(current, at)
    return Dispute(line, _split(ours[start:end]), _split(current[at - one.start + start : end_now]))


def _line_start(data: bytes, at: int) -> int:
    while not _at_line_start(data, at):
        at -= 1
    return at


def _line_end(data: bytes, at: int) -> int:
    """Behind the line break of the line that ``at`` is on."""
    while at < len(data):
        at += 1
        if _at_line_start(data, at):
            break
    return at


def _at_line_start(data: bytes, at: int) -> bool:
    if at <= 0:
        return True
    return data[at - 1 : at] == b"\n" or (data[at - 1 : at] == b"\r" and data[at : at + 1] != b"\n")


def _split(data: bytes) -> list[str]:
    """The lines, without their breaks."""
    return [line.decode("utf-8", "backslashreplace") for line in data.splitlines()]


def shown(disputes: Sequence[Dispute]) -> list[str]:
    """At most twelve lines of both sides, ``- `` as patchkit wrote them and ``+ `` as they are now."""
    places = disputes[:3]
    most = _MOST // (2 * len(places)) if places else 0
    text = []
    for place in places:
        text.append(f"  line {place.line} (- as patchkit wrote it, + as it is now):")
        for mark, lines in (("-", place.ours), ("+", place.theirs)):
            cut = lines if len(lines) <= most else [*lines[: most - 1], f"... and {len(lines) - most + 1} lines more"]
            text += [f"    {mark} {line}" for line in cut]
    if len(disputes) > len(places):
        text.append(f"  and {len(disputes) - len(places)} more places")
    return text
