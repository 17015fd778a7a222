"""From the text of a ``*.trace.json`` to a :class:`Trace`: pure, one event at a time.

The profiler writes this beside the ``.xplane.pb``, for viewers. It stops at a million events, and on a CPU it has no
shapes: it is read where there is nothing better.
"""

from __future__ import annotations

import json
import re
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any

from patchkit.bench.trace.data import Op, Program, Tally, Trace
from patchkit.bench.trace.events import MOST_KINDS
from patchkit.bench.trace.names import base_of, instruction_of, program_of, without_layout
from patchkit.bench.trace.wire import Malformed
from patchkit.bench.trace.xplane import CONTAINERS, DEVICE
from patchkit.tuples import NamedTuple

#: From here on the profiler leaves events out.
CAP = 1_000_000
#: Characters of one event, and of what stands before the first, at most.
_LONGEST = 4 << 20
_BEGIN = re.compile(r'"traceEvents"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,]*")
_PICOSECONDS = 1_000_000  # in the unit of `ts` and `dur`, a microsecond

_HOST = "/host:CPU"
#: Microseconds: a time beyond is none.
_LATEST = 1e18


class _Key(NamedTuple):
    """Whose event it is, as far as it says so itself."""

    pid: Any
    tid: Any
    name: str
    text: str
    shape: str
    category: str
    scope: str
    source: str
    module: str


def events_of(chunks: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The objects of the array ``traceEvents``, read from pieces of the text as they come.

    Raises:
        Malformed: The text is no JSON, has no such array, ends within it, or one event is longer than 4 MiB.
    """
    decode = json.JSONDecoder().raw_decode
    pieces = iter(chunks)
    text, at = "", 0
    while True:
        found = _BEGIN.search(text)
        if found is not None:
            break
        piece = next(pieces, None)
        if piece is None or len(text) > _LONGEST:
            raise Malformed("there is no array `traceEvents` in it")
        text += piece
    at = found.end()
    while True:
        between = _BETWEEN.match(text, at)
        assert between is not None
        at = between.end()
        if text.startswith("]", at):
            return
        try:
            if at == len(text):
                raise ValueError
            value, at = decode(text, at)
        except (ValueError, RecursionError) as error:
            piece = next(pieces, None)
            if piece is None or len(text) - at > _LONGEST or isinstance(error, RecursionError):
                raise Malformed(f"an event that is cut off, or no JSON: {text[at : at + 60]!r}") from None
            text, at = text[at:] + piece, 0
            continue
        if isinstance(value, dict):
            yield value


def parse_json_trace(chunks: Iterable[str], path: str) -> Trace:
    """Read a trace in the format of viewers.

    Args:
        chunks: Its text, in pieces.
        path: The file's name, for the trace.

    Raises:
        Malformed: It is none.
    """
    return _Reading(path).read(chunks)


class _Reading:
    """One trace on its way."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.processes: dict[Any, str] = {}
        self.threads: dict[tuple[Any, Any], str] = {}
        self.times: dict[_Key, tuple[array[float], array[float]]] = {}
        self.runs: dict[tuple[str, str], set[str]] = {}  # on a CPU: device and module to numbers of runs
        self.left_out: dict[str, int] = {}
        self.seen = 0

    def read(self, chunks: Iterable[str]) -> Trace:
        for event in events_of(chunks):
            self.seen += 1
            try:
                self._take(event)
            except (
                TypeError,
                ValueError,
                AttributeError,
                KeyError,
                OverflowError,
            ):  # a member of another type than the format says
                raise Malformed(f"an event that is none: {str(event)[:60]!r}") from None
            if len(self.times) > MOST_KINDS:
                raise Malformed(f"events of more than {MOST_KINDS} kinds")
        tpu = any(DEVICE.fullmatch(name) for name in self.processes.values())
        ops, programs = self._device() if tpu else self._cpu()
        notes = []
        if self.seen >= CAP:
            notes.append(f"it has {self.seen} events: the profiler leaves out what is more than about {CAP}")
        if not tpu and ops:
            notes.append("JSON of a CPU has no shapes and no program's number: a row may be several of one name")
        elif ops:
            notes.append("JSON of a TPU names no program: each operation is taken for the program that ran at its time")
        events = sum(op.occurrences for op in ops)
        platform = "tpu" if tpu else "cpu"
        return Trace(
            self.path, "json", platform, tuple(ops), tuple(programs), None, {}, self.left_out, events, tuple(notes)
        )

    def _take(self, event: dict[str, Any]) -> None:
        kind = event.get("ph")
        if kind == "M":
            name = event.get("args", {}).get("name")
            if event.get("name") == "process_name":
                self.processes[event["pid"]] = str(name)
            elif event.get("name") == "thread_name":
                self.threads[event["pid"], event.get("tid")] = str(name)
        elif kind == "X":
            args = event.get("args") or {}

            def word(name: str) -> str:
                return str(args.get(name, ""))

            key = _Key(
                event.get("pid"),
                event.get("tid"),
                str(event.get("name")),
                word("long_name"),
                word("shape_with_layout"),
                word("hlo_category"),
                word("tf_op"),
                word("source"),
                word("hlo_module"),
            )
            if key.module and self.processes.get(event.get("pid"), _HOST) == _HOST:  # an operation on a CPU
                device = f"cpu:{args.get('device_ordinal', 0)}"
                key = key._replace(pid=device, tid=None, name=str(args.get("hlo_op", key.name)))
                self.runs.setdefault((device, key.module), set()).add(str(args.get("run_id", "")))
            elif self.processes.get(event.get("pid")) == _HOST:
                return
            times = self.times.get(key)
            if times is None:
                times = self.times[key] = (array("d"), array("d"))
            begin, length = float(event.get("ts", 0)), float(event.get("dur", 0))
            if not (abs(begin) < _LATEST and 0 <= length < _LATEST):
                raise ValueError
            times[0].append(begin)
            times[1].append(length)

    def _leave_out(self, container: str, count: int) -> None:
        what = f"{container} (its body is counted)"
        self.left_out[what] = self.left_out.get(what, 0) + count

    def _cpu(self) -> tuple[list[Op], list[Program]]:
        ops = []
        for key, (_, durations) in self.times.items():
            base = base_of(key.name)
            if key.module and base in CONTAINERS:
                self._leave_out(base, len(durations))
            elif key.module:
                ops.append(_op(key, key.pid, key.module, None, None, durations))
        programs = [Program(device, name, None, len(runs), None) for (device, name), runs in self.runs.items()]
        return ops, programs

    def _device(self) -> tuple[list[Op], list[Program]]:
        ops: list[Op] = []
        programs: list[Program] = []
        for pid, device in self.processes.items():
            if not DEVICE.fullmatch(device):
                if device.startswith("/device:"):
                    self.left_out[f"plane {device}"] = 1
                continue
            named = [(key, self.threads.get((pid, key.tid), ""), times) for key, times in self.times.items()]
            mine = [(key, line, times) for key, line, times in named if key.pid == pid]
            modules = [(key, times) for key, line, times in mine if line == "XLA Modules"]
            for key, (_, durations) in modules:
                name, number = program_of(key.name)
                tally = _tally(durations)
                programs.append(Program(device, name, number, tally.count, tally.total))
            spans = sorted(
                (begin, begin + length, *program_of(key.name))
                for key, times in modules
                for begin, length in zip(*times, strict=True)
            )
            for key, line, times in mine:
                if line == "XLA Ops":
                    self._ops(device, key, times, spans, ops)
                elif line != "XLA Modules":
                    self.left_out[f"line {line}"] = 1
        return ops, programs

    def _ops(
        self,
        device: str,
        key: _Key,
        times: tuple[array[float], array[float]],
        spans: list[tuple[float, float, str, int | None]],
        ops: list[Op],
    ) -> None:
        parts = instruction_of(key.text)
        if key.category in CONTAINERS or parts.opcode in CONTAINERS:
            self._leave_out(key.category or parts.opcode or "", len(times[0]))
            return
        shape = without_layout(key.shape) or parts.shape
        by_program: dict[tuple[str, int | None], array[float]] = {}
        for begin, length in zip(*times, strict=True):
            at = bisect_right(spans, begin, key=lambda span: span[0]) - 1
            program = spans[at][2:] if at >= 0 and begin <= spans[at][1] else ("", None)
            by_program.setdefault(program, array("d")).append(length)
        ops.extend(_op(key, device, name, number, shape, each) for (name, number), each in by_program.items())


def _op(key: _Key, device: str, program: str, number: int | None, shape: str | None, durations: Iterable[float]) -> Op:
    tally = _tally(durations)
    return Op(device, program, number, key.name, shape, key.category, key.scope, key.source, *tally.numbers())


def _tally(durations: Iterable[float]) -> Tally:
    tally = Tally()
    for duration in durations:
        tally.add(round(duration * _PICOSECONDS))
    return tally
