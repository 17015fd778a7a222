"""From the bytes of an ``.xplane.pb`` to a :class:`Trace`: pure, in one pass over the events, none of which is kept.

The numbers of the fields are those of XLA's ``xplane.proto``. What viewers show of an operation stands in the metadata
that all of its runs share; ``jax.profiler.ProfileData`` does not give it, which is one reason for this reader. On a TPU
the operations are the events of the line ``XLA Ops`` of each ``/device:TPU:N``. On a CPU they are the events of threads
that name an ``hlo_op``; their shapes are looked up in the programs, which the plane ``/host:metadata`` holds.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import Any

from patchkit.bench.trace.data import Op, Program, Tally, Trace
from patchkit.bench.trace.events import CPU_STATS, CpuKey, Tick, line_name, tally_line, tally_thread
from patchkit.bench.trace.hlo import Described, describe
from patchkit.bench.trace.names import instruction_of, program_of, without_layout
from patchkit.bench.trace.wire import FIXED64, SPAN, VARINT, Malformed, fields, signed, text

#: Programs and operations of one plane, at most: a real trace has some thousands.
MOST_ENTRIES = 1_000_000
#: What runs other operations of the same line, and would be counted with them.
CONTAINERS = frozenset(("while", "conditional", "call"))
DEVICE = re.compile(r"/device:TPU:\d+")
_OPS, _MODULES = "XLA Ops", "XLA Modules"
_WORDS = frozenset(("hlo_category", "source", "tf_op", "shape_with_layout"))
_HLO = frozenset(("Hlo Proto", "hlo_proto"))
#: Characters of a name, a scope or a source that are kept: an instruction's text may be longer than a page.
_MOST_TEXT = 4000

Span = tuple[int, int]


def parse_xplane(data: bytes, path: str, tick: Tick | None = None) -> Trace:
    """Read an ``XSpace``.

    Args:
        data: The bytes of the file.
        path: Its name, for the trace.
        tick: Called now and then with how many bytes are done, and how many there are.

    Raises:
        Malformed: The bytes are no such message.
    """
    planes: list[_Plane] = []
    notes: list[str] = []
    for number, kind, start, end in fields(data, 0, len(data)):
        if kind != SPAN or number > 4:
            raise Malformed(f"byte {start}: field {number} is none of a trace's")
        if number == 1:
            planes.append(_Plane(data, start, end))
        elif number in (2, 3):
            word = "error" if number == 2 else "warning"
            notes.append(f"{word} of the profiler: {text(data, start, end, 500)}")
    if not planes:
        raise Malformed("there is no plane in it")
    return _Reading(data, path, planes, notes, tick).trace()


class _Plane:
    """The spans of a plane's parts."""

    def __init__(self, data: bytes, start: int, end: int) -> None:
        self.data = data
        self.name = ""
        self.lines: list[Span] = []
        self.stats: list[Span] = []
        self._events: list[Span] = []
        self._names: list[Span] = []
        self._stat_names: dict[int, str] | None = None
        self._event_spans: dict[int, Span] | None = None
        for number, kind, at, stop in fields(data, start, end):
            if kind != SPAN:
                continue
            if number == 2:
                self.name = text(data, at, stop, 1000)
            elif number == 3:
                self.lines.append((at, stop))
            elif number == 4:
                self._events.append((at, stop))
            elif number == 5:
                self._names.append((at, stop))
            elif number == 6:
                self.stats.append((at, stop))
        if max(len(self.lines), len(self._events), len(self._names), len(self.stats)) > MOST_ENTRIES:
            raise Malformed(f"byte {start}: a plane of more than {MOST_ENTRIES} entries")

    @property
    def stat_names(self) -> dict[int, str]:
        """The names of statistics, and the texts that values refer to, by number."""
        if self._stat_names is None:
            self._stat_names = {}
            for key, (at, stop) in _entries(self.data, self._names):
                name = ""
                for number, kind, begin, close in fields(self.data, at, stop):
                    if number == 2 and kind == SPAN:
                        name = text(self.data, begin, close, _MOST_TEXT)
                self._stat_names[key] = name
        return self._stat_names

    @property
    def event_spans(self) -> dict[int, Span]:
        """Where the metadata of events is, by its number."""
        if self._event_spans is None:
            self._event_spans = dict(_entries(self.data, self._events))
        return self._event_spans

    def number_of(self, name: str) -> int | None:
        """The number of a statistic."""
        return next((number for number, known in self.stat_names.items() if known == name), None)

    def stat(self, start: int, end: int) -> tuple[str, Any]:
        """The name and value of a statistic; bytes are given as their span."""
        name, value = 0, None
        for number, kind, at, stop in fields(self.data, start, end):
            if number == 1 and kind == VARINT:
                name = at
            elif number == 2 and kind == FIXED64:
                value = struct.unpack("<d", at.to_bytes(8, "little"))[0]
            elif number == 3 and kind == VARINT:
                value = at
            elif number == 4 and kind == VARINT:
                value = signed(at)
            elif number == 5 and kind == SPAN:
                value = text(self.data, at, stop, _MOST_TEXT)
            elif number == 6 and kind == SPAN:
                value = (at, stop)
            elif number == 7 and kind == VARINT:
                value = self.stat_names.get(at, "")
        return self.stat_names.get(name, ""), value

    def metadata(self, key: int) -> tuple[str, str, dict[str, Any]]:
        """Name, display name and statistics of the events with this metadata."""
        name = display = ""
        stats: dict[str, Any] = {}
        for number, kind, at, stop in fields(self.data, *self.event_spans.get(key, (0, 0))):
            if kind != SPAN:
                continue
            if number == 2:
                name = text(self.data, at, stop)
            elif number == 4:
                display = text(self.data, at, stop, _MOST_TEXT)
            elif number == 5:
                word, value = self.stat(at, stop)
                stats[word] = value
        return name, display, stats


def _entries(data: bytes, spans: list[Span]) -> Iterator[tuple[int, Span]]:
    """The entries of a map from numbers to messages."""
    for start, end in spans:
        key, value = 0, (0, 0)
        for number, kind, at, stop in fields(data, start, end):
            if number == 1 and kind == VARINT:
                key = at
            elif number == 2 and kind == SPAN:
                value = (at, stop)
        yield key, value


class _Reading:
    """One trace on its way."""

    def __init__(self, data: bytes, path: str, planes: list[_Plane], notes: list[str], tick: Tick | None) -> None:
        self.data, self.path, self.planes, self.notes, self._tick = data, path, planes, notes, tick
        self.left_out: dict[str, int] = {}
        self.events = 0
        self.programs: dict[int, tuple[str, Span | None]] = {}  # by number: name, where its HloProto is
        self._described: dict[int, tuple[str, dict[str, Described]]] = {}

    def trace(self) -> Trace:
        started, versions = None, {}
        for plane in self.planes:
            stats = dict(plane.stat(*span) for span in plane.stats)
            start = stats.get("profile_start_time")
            if isinstance(start, int) and start > 0:
                started = start
            versions.update({key: value for key, value in stats.items() if key.endswith("_version") and value})
            if plane.name == "/host:metadata":
                self._programs(plane)
        devices = [plane for plane in self.planes if DEVICE.fullmatch(plane.name)]
        hosts = [plane for plane in self.planes if plane.name == "/host:CPU"]
        for plane in self.planes:
            if plane.name.startswith("/device:") and plane not in devices:
                self._leave_out(f"plane {plane.name}")
        ops: list[Op] = []
        programs: list[Program] = []
        for plane in devices or hosts:
            (self._device if devices else self._threads)(plane, ops, programs)
        return Trace(
            self.path,
            "xplane",
            "tpu" if devices else "cpu",
            tuple(ops),
            tuple(programs),
            started,
            {key: str(value) for key, value in sorted(versions.items())},
            self.left_out,
            self.events,
            tuple(self.notes),
        )

    def _leave_out(self, what: str, count: int = 1) -> None:
        self.left_out[what] = self.left_out.get(what, 0) + count

    def _programs(self, plane: _Plane) -> None:
        for key in plane.event_spans:
            name, _, stats = plane.metadata(key)
            name, number = program_of(name)
            told = stats.get("program_id")
            if isinstance(told, int):
                number = told & 0xFFFFFFFFFFFFFFFF
            hlo = next((value for word, value in stats.items() if word in _HLO and isinstance(value, tuple)), None)
            if number is not None:
                self.programs[number] = (name, hlo)

    def _describe(self, wanted: dict[int, set[str]]) -> None:
        """Look up the wanted instructions of each program."""
        for program, names in wanted.items():
            _, span = self.programs.get(program, ("", None))
            if span is not None:
                self._described[program] = describe(self.data, *span, names)

    def _known(self, program: int | None, name: str) -> Described | None:
        return None if program is None else self._described.get(program, ("", {}))[1].get(name)

    # --- TPU

    def _device(self, plane: _Plane, ops: list[Op], programs: list[Program]) -> None:
        tallies: dict[int, Tally] = {}
        modules: dict[int, Tally] = {}
        duration = plane.number_of("device_duration_ps")
        for start, end in plane.lines:
            name = line_name(self.data, start, end)
            if name in (_OPS, _MODULES):
                tally_line(self.data, start, end, duration, tallies if name == _OPS else modules, self._tick)
            else:
                self._leave_out(f"line {name}")
        for key, tally in modules.items():
            text_, display, _ = plane.metadata(key)
            name, number = program_of(text_ or display)
            programs.append(Program(plane.name, name, number, tally.count, tally.total))
            if number is not None:
                self.programs.setdefault(number, (name, None))
        only = programs[0].id if len(programs) == 1 else None
        found: list[tuple[Tally, str, str, dict[str, Any]]] = []
        wanted: dict[int, set[str]] = {}
        for key, tally in tallies.items():
            text_, display, stats = plane.metadata(key)
            told = stats.get("program_id", only)
            stats["program_id"] = told & 0xFFFFFFFFFFFFFFFF if isinstance(told, int) else None
            found.append((tally, text_, display, stats))
            shape = stats.get("shape_with_layout") or instruction_of(text_).shape
            if shape is None and stats["program_id"] is not None:
                wanted.setdefault(stats["program_id"], set()).add(instruction_of(text_ or display).name)
        self._describe(wanted)
        for tally, text_, display, stats in found:
            self._op(plane.name, tally, text_, display, stats, ops)

    def _op(self, device: str, tally: Tally, text_: str, display: str, stats: dict[str, Any], ops: list[Op]) -> None:
        words = {word: value for word, value in stats.items() if word in _WORDS and isinstance(value, str)}
        parts = instruction_of(text_ or display)
        program = stats["program_id"]
        known = self._known(program, parts.name)
        opcode = parts.opcode or (known.opcode if known is not None else "")
        category = words.get("hlo_category") or opcode
        if category in CONTAINERS or opcode in CONTAINERS:
            self._leave_out(f"{category} (its body is counted)", tally.count)
            return
        shape = without_layout(words.get("shape_with_layout", "")) or parts.shape or (known.shape if known else None)
        self.events += tally.count
        ops.append(
            Op(
                device,
                self.programs.get(program, ("", None))[0] if program is not None else "",
                program,
                (display.removeprefix("%") or parts.name)[:_MOST_TEXT],
                shape,
                category,
                words.get("tf_op") or (known.scope if known else ""),
                words.get("source") or (known.source if known else ""),
                *tally.numbers(),
            )
        )

    # --- CPU

    def _threads(self, plane: _Plane, ops: list[Op], programs: list[Program]) -> None:
        stats = {name: number for number, name in plane.stat_names.items() if name in CPU_STATS}
        tallies: dict[CpuKey, Tally] = {}
        runs: set[tuple[CpuKey, int | str]] = set()
        if "hlo_op" in stats:
            for start, end in plane.lines:
                tally_thread(self.data, start, end, stats, tallies, runs, self._tick)
        wanted: dict[int, set[str]] = {}
        names = {key: self._cpu_names(plane, key) for key in tallies}
        for program, _, op, _ in names.values():
            if program is not None:
                wanted.setdefault(program, set()).add(op)
        self._describe(wanted)
        for key, tally in tallies.items():
            program, module, op, device = names[key]
            known = self._known(program, op)
            opcode = known.opcode if known is not None else ""
            if opcode in CONTAINERS:
                self._leave_out(f"{opcode} (its body is counted)", tally.count)
                continue
            self.events += tally.count
            described = known or Described("", "", "", "")
            shape, scope, source = described.shape or None, described.scope, described.source
            ops.append(Op(device, module, program, op, shape, opcode, scope, source, *tally.numbers()))
        counts: dict[tuple[int | None, str, str], int] = {}
        for key, _ in runs:
            program, module, _, device = self._cpu_names(plane, key)
            counts[program, module, device] = counts.get((program, module, device), 0) + 1
        programs.extend(
            Program(device, name, program, count, None) for (program, name, device), count in counts.items()
        )

    def _cpu_names(self, plane: _Plane, key: CpuKey) -> tuple[int | None, str, str, str]:
        """Program's number and name, operation's name, and device of a key."""

        def word(value: int | str | None) -> str:
            return plane.stat_names.get(value, "") if isinstance(value, int) else value or ""

        program = key.program_id & 0xFFFFFFFFFFFFFFFF if isinstance(key.program_id, int) else None
        device = key.device_ordinal if isinstance(key.device_ordinal, int) else 0
        return program, word(key.hlo_module), word(key.hlo_op), f"cpu:{device}"
