"""The events of a line, added up as they are read, none kept: these loops are what reading a trace costs."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache

from patchkit.bench.trace.data import Tally
from patchkit.bench.trace.wire import SPAN, VARINT, Malformed, fields, signed, skip, text, varint
from patchkit.tuples import NamedTuple

#: Kinds of events, and runs of programs, in one trace at most: a real one has some thousands.
MOST_KINDS = 1_000_000
#: Events between two calls of ``tick``, less one.
_PAUSE = 0x3FFF
#: Numbers and statistics that are remembered as they were read, at most.
_MOST_NUMBERS = 100_000
#: The tag of an event in a line.
_EVENT = 0x22
#: The tags of metadata_id, offset_ps, duration_ps, stats, num_occurrences.
_KNOWN = frozenset((0x08, 0x10, 0x18, 0x22, 0x28))
#: The tags of a statistic's value where it is a number, unsigned or signed.
_VALUE = (0x18, 0x20)
Tick = Callable[[int, int], None]


class CpuKey(NamedTuple):
    """Whose event it is: names as the number of a text or as the text itself, None where it does not say."""

    hlo_op: int | str | None = None
    program_id: int | str | None = None
    hlo_module: int | str | None = None
    device_ordinal: int | str | None = None


CPU_STATS = (*CpuKey._fields, "run_id")
"""The statistics that tell an operation on a CPU, and the run of its program."""


def line_name(data: bytes, start: int, end: int) -> str:
    """The name of a line.

    Raises:
        Malformed: The bytes are no such message.
    """
    name = ""
    for number, kind, at, stop in fields(data, start, end):
        if kind == SPAN and (number == 2 or (number == 11 and not name)):
            name = text(data, at, stop, 1000)
        if number == 4 and name:  # fields are written in the order of their numbers: no name comes behind the events
            break
    return name


def tally_line(
    data: bytes, start: int, end: int, duration_stat: int | None, tallies: dict[int, Tally], tick: Tick | None = None
) -> None:
    """Add up a line's events by the number of their metadata.

    Args:
        data: The file.
        start: Where the line's message starts.
        end: Where it ends.
        duration_stat: The statistic with the device's own time, which is taken where an event has it.
        tallies: What is added to.
        tick: Called now and then, with bytes done and bytes in all.

    Raises:
        Malformed: The bytes are no such message, or there are more than ``MOST_KINDS`` kinds of events.
    """
    own = b"" if duration_stat is None else encoded(duration_stat)
    match = _usual(own).match
    numbers: dict[bytes | None, int] = {None: 0}
    at, seen = start, 0
    while at < end:
        found = match(data, at, end)
        if found is not None and found.end() - at - 2 == data[at + 1]:
            metadata, plain, told = found.groups()
            raw = plain if told is None else told
            known = numbers.get(raw)
            if known is None:
                if len(numbers) > _MOST_NUMBERS:
                    numbers = {None: 0}
                assert raw is not None
                known = numbers[raw] = varint(raw, 0, len(raw))[0]
            duration, count = known, 1
            key = numbers.get(metadata)
            if key is None:
                key = numbers[metadata] = varint(metadata, 0, len(metadata))[0]
            at = found.end()
        elif data[at] == _EVENT:
            at, key, duration, count = _event(data, at, end, own)
        else:
            at = skip(data, at, end)
            continue
        tally = tallies.get(key)
        if tally is None:
            tally = tallies[key] = Tally()
            if len(tallies) > MOST_KINDS:
                raise Malformed(f"byte {start}: events of more than {MOST_KINDS} kinds")
        tally.add(duration, count)
        seen += 1
        if tick is not None and not seen & _PAUSE:
            tick(at, len(data))


@cache
def _usual(duration_stat: bytes) -> re.Pattern[bytes]:
    """An event of up to 127 bytes as profilers write it: its fields in their order, its statistics numbers.

    Groups: its metadata, its time, and the statistic with the device's own time. What does not fit is read by
    :func:`_event`, which takes ten times as long.
    """
    number = rb"[\x80-\xff]{0,9}[\x00-\x7f]"
    own = rb"%b[\x18\x20](%b)|" % (re.escape(duration_stat), number) if duration_stat else rb"(?!)()|"
    statistic = rb"\x22[\x00-\x7f]\x08(?:%b%b[\x18\x20\x38]%b)" % (own, number, number)
    head = rb"\x22[\x00-\x7f]\x08(%b)(?:\x10%b)?(?:\x18(%b))?" % (number, number, number)
    return re.compile(head + rb"(?:%b)*" % statistic, re.DOTALL)


def tally_thread(
    data: bytes,
    start: int,
    end: int,
    stats: Mapping[str, int],
    tallies: dict[CpuKey, Tally],
    runs: set[tuple[CpuKey, int | str]],
    tick: Tick | None = None,
) -> None:
    """Add up the events of a thread that are operations: those with the statistic ``hlo_op``.

    Args:
        data: The file.
        start: Where the line's message starts.
        end: Where it ends.
        stats: The numbers of ``CPU_STATS`` by name, as far as there are any; of ``hlo_op`` there is one.
        tallies: What is added to.
        runs: Takes each run of a program: its key without the operation, and the run's number.
        tick: Called now and then, with bytes done and bytes in all.

    Raises:
        Malformed: The bytes are no such message, or there are more than ``MOST_KINDS`` kinds of events or runs.
    """
    places = {number: CPU_STATS.index(name) for name, number in stats.items()}
    wanted = frozenset(encoded(number)[0] for number in places)
    mark = b"\x08" + encoded(stats["hlo_op"])
    find = data.find
    known: dict[bytes, tuple[int, int | str | None]] = {}
    at, seen = start, 0
    while at < end:
        if data[at] != _EVENT:
            at = skip(data, at, end)
            continue
        begun = at
        size, at = varint(data, at + 1, end)
        stop = at + size
        if stop > end:
            raise Malformed(f"byte {begun}: an event of {size} bytes, and {end - at} are left")
        seen += 1
        if tick is not None and not seen & _PAUSE:
            tick(at, len(data))
        if find(mark, at, stop) < 0:
            at = stop
            continue
        values: list[int | str | None] = [None] * len(CPU_STATS)
        duration = 0
        while at < stop:
            tag = data[at]
            if tag == 0x22 and at + 4 <= stop and data[at + 1] < 0x80 and data[at + 2] == 0x08:
                size = data[at + 1]
                if at + 2 + size > stop:
                    raise Malformed(f"byte {at}: a statistic reaches out of its event")
                if data[at + 3] in wanted:
                    raw = data[at + 2 : at + 2 + size]
                    pair = known.get(raw)
                    if pair is None:
                        if len(known) > _MOST_NUMBERS:
                            known.clear()
                        pair = known[raw] = _statistic(raw, 0, size, places)
                    if pair[0] >= 0:
                        values[pair[0]] = pair[1]
                at += 2 + size
            elif tag == 0x18:
                duration, at = varint(data, at + 1, stop)
            elif tag in (0x08, 0x10):
                at = varint(data, at + 1, stop)[1]
            else:
                after = skip(data, at, stop)
                if tag == 0x22:  # a statistic that is long, or written in another order
                    begin = varint(data, at + 1, stop)[1]
                    place, value = _statistic(data, begin, after, places)
                    if place >= 0:
                        values[place] = value
                at = after
        if values[0] is None:
            continue
        run = values.pop()
        key = CpuKey(*values)
        tally = tallies.get(key)
        if tally is None:
            tally = tallies[key] = Tally()
        tally.add(duration)
        if run is not None:
            values[0] = None
            runs.add((CpuKey(*values), run))
        if len(tallies) > MOST_KINDS or len(runs) > MOST_KINDS:
            raise Malformed(f"byte {start}: more than {MOST_KINDS} operations or runs")


def _statistic(data: bytes, start: int, end: int, places: Mapping[int, int]) -> tuple[int, int | str | None]:
    """The place of a statistic that is asked for, else -1, and its value."""
    place = -1
    value: int | str | None = None
    for number, kind, at, stop in fields(data, start, end):
        if number == 1 and kind == VARINT:
            place = places.get(at, -1)
        elif kind == VARINT and number in (3, 7):
            value = at
        elif kind == VARINT and number == 4:
            value = signed(at)
        elif kind == SPAN and number == 5:
            value = text(data, at, stop, 1000)
    return (place, value) if value is not None else (-1, None)


def _event(data: bytes, at: int, end: int, duration_stat: bytes) -> tuple[int, int, int, int]:
    """Where the event at ``at`` ends, the number of its metadata, its time, and how many it stands for."""
    told = b"\x08" + duration_stat if duration_stat else b""
    length = len(told)
    begun = at
    size, at = varint(data, at + 1, end)
    stop = at + size
    if stop > end:
        raise Malformed(f"byte {begun}: an event of {size} bytes, and {end - at} are left")
    key = duration = 0
    own = -1
    count = 1
    while at < stop:
        tag = data[at]
        if tag not in _KNOWN:
            at = skip(data, at, stop)
            continue
        at += 1
        if at >= stop:
            raise Malformed(f"byte {begun}: an event that is cut off")
        value = data[at]
        at += 1
        if value > 0x7F:
            value, at = varint(data, at - 1, stop)
        if tag == 0x08:
            key = value
        elif tag == 0x18:
            duration = value
        elif tag == 0x22:
            if length and at + length < stop and data.startswith(told, at) and data[at + length] in _VALUE:
                own, _ = varint(data, at + length + 1, min(at + value, stop))
            at += value
        elif tag == 0x28:
            count = value
    if at > stop:
        raise Malformed(f"byte {begun}: a statistic reaches out of its event")
    return stop, key, own if own >= 0 else duration, count


def encoded(number: int) -> bytes:
    """A number as it is written."""
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)
