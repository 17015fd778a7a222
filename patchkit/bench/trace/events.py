"""The events of a line, added up as they are read, none kept. This loop is the price of a trace: it calls little."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from patchkit.bench.trace.data import Tally
from patchkit.bench.trace.wire import SPAN, VARINT, Malformed, fields, signed, skip, text, varint
from patchkit.tuples import NamedTuple

#: Kinds of events, and runs of programs, in one trace at most: a real one has some thousands.
MOST_KINDS = 1_000_000
#: Events between two calls of ``tick``, less one.
_PAUSE = 0x3FFF
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
    for _, _, key, duration, count in _events(data, start, end, duration_stat, tick):
        tally = tallies.get(key)
        if tally is None:
            tally = tallies[key] = Tally()
            if len(tallies) > MOST_KINDS:
                raise Malformed(f"byte {start}: events of more than {MOST_KINDS} kinds")
        tally.add(duration, count)


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
        stats: The numbers of the statistics, by name.
        tallies: What is added to.
        runs: Takes each run of a program: its key without the operation, and the run's number.
        tick: Called now and then, with bytes done and bytes in all.

    Raises:
        Malformed: The bytes are no such message, or there are more than ``MOST_KINDS`` kinds of events or runs.
    """
    names = {number: name for name, number in stats.items()}
    mark = b"\x08" + encoded(stats["hlo_op"])
    find = data.find
    for at, stop, _, duration, count in _events(data, start, end, None, tick):
        if find(mark, at, stop) < 0:
            continue
        told: dict[str, int | str] = {}
        for number, kind, begin, close in fields(data, at, stop):
            if number == 4 and kind == SPAN:
                name, value = _statistic(data, begin, close, names)
                if name and value is not None:
                    told[name] = value
        if "hlo_op" not in told:
            continue
        run = told.pop("run_id", None)
        key = CpuKey(**told)
        tally = tallies.get(key)
        if tally is None:
            tally = tallies[key] = Tally()
        tally.add(duration, count)
        if run is not None:
            runs.add((key._replace(hlo_op=None), run))
        if len(tallies) > MOST_KINDS or len(runs) > MOST_KINDS:
            raise Malformed(f"byte {start}: more than {MOST_KINDS} operations or runs")


def _events(
    data: bytes, at: int, end: int, duration_stat: int | None, tick: Tick | None
) -> Iterator[tuple[int, int, int, int, int]]:
    """Start, end, number of the metadata, time and count of each event of a line."""
    told = b"\x08" + encoded(duration_stat) if duration_stat is not None else b""
    length = len(told)
    seen = 0
    while at < end:
        if data[at] != 0x22:  # what else a line has
            at = skip(data, at, end)
            continue
        begun = at
        size, at = varint(data, at + 1, end)
        start, stop = at, at + size
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
        yield start, stop, key, own if own >= 0 else duration, count
        if tick is not None:
            seen += 1
            if not seen & _PAUSE:
                tick(at, len(data))


def _statistic(data: bytes, start: int, end: int, names: Mapping[int, str]) -> tuple[str, int | str | None]:
    """The name of a statistic that is asked for, with its value; else no name."""
    name = ""
    value: int | str | None = None
    for number, kind, at, stop in fields(data, start, end):
        if number == 1 and kind == VARINT:
            name = names.get(at, "")
            if not name:
                break
        elif kind == VARINT and number in (3, 7):
            value = at
        elif kind == VARINT and number == 4:
            value = signed(at)
        elif kind == SPAN and number == 5:
            value = text(data, at, stop, 1000)
    return name, value


def encoded(number: int) -> bytes:
    """A number as it is written."""
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)
