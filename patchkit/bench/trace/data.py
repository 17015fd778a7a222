"""A trace, and the rows of its table, as data. Times are whole picoseconds."""

from __future__ import annotations

from typing import Any

from patchkit.bench.trace.names import Kernel
from patchkit.tuples import NamedTuple


class Tally:
    """How often something ran and how long, without keeping each time."""

    __slots__ = ("count", "least", "most", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0
        self.least = 0
        self.most = 0

    def add(self, duration: int, count: int = 1) -> None:
        """One run of ``duration`` picoseconds; or ``count`` that took so long together."""
        each = duration // count if count > 1 else duration
        if not self.count or each < self.least:
            self.least = each
        self.most = max(self.most, each)
        self.count += count
        self.total += duration

    def numbers(self) -> tuple[int, int, int, int]:
        """Count, total, least and most."""
        return self.count, self.total, self.least, self.most


class Op(NamedTuple):
    """One operation of one program on one device, all of its runs together.

    Attributes:
        device: The plane's name, ``/device:TPU:0``; ``cpu:0`` on a CPU.
        program: The program's name, ``jit_step``; empty where the trace does not tell.
        program_id: The number that tells programs of one name apart; None where the trace has none.
        name: The operation's name as viewers show it.
        shape: Its result without layout; None where the trace does not tell.
        category: What the compiler calls its kind; an opcode on a CPU.
        scope: The path of names that the user's code gave it (``tf_op``, ``op_name``).
        source: File and line of the user's code. With a warm compile cache it may name another file than the one that
            ran.
    """

    device: str
    program: str
    program_id: int | None
    name: str
    shape: str | None
    category: str
    scope: str
    source: str
    occurrences: int
    total: int
    least: int
    most: int


class Program(NamedTuple):
    """A compiled program on one device: how often it ran, and how long; ``total`` is None where nothing tells."""

    device: str
    name: str
    id: int | None
    runs: int
    total: int | None


class Trace(NamedTuple):
    """What was read of one file.

    Attributes:
        path: The file.
        kind: ``xplane`` or ``json``.
        platform: ``tpu`` or ``cpu``.
        ops: The operations.
        programs: The programs that ran.
        started: When the trace began, in nanoseconds since 1970; None where it does not say.
        versions: ``jax_version`` and the like, where the trace has them.
        left_out: What was not counted, and how many events or lines of it: loops (their bodies are counted), lines of
            asynchronous operations, other planes.
        events: How many events were counted.
        notes: What a reader must know: errors that the profiler wrote, shapes that are not there.
    """

    path: str
    kind: str
    platform: str
    ops: tuple[Op, ...]
    programs: tuple[Program, ...]
    started: int | None
    versions: dict[str, str]
    left_out: dict[str, int]
    events: int
    notes: tuple[str, ...]


class Row(NamedTuple):
    """One row of the table: an operation of a program by name and shape, on all devices together.

    Rows of one name and different shapes are never one row: compiled buckets use names again.

    Attributes:
        devices: On how many devices it ran.
        occurrences: How often, on all of them.
        runs: How often its program ran, on all devices; None where the trace does not tell.
        total: Picoseconds, of all occurrences.
        least, most: Of one occurrence.
        sources: Where in the user's code, by count.
        kernel: What an attention kernel's name says.
    """

    program: str
    program_id: int | None
    name: str
    shape: str | None
    category: str
    scope: str
    sources: tuple[str, ...]
    devices: int
    occurrences: int
    runs: int | None
    total: int
    least: int
    most: int
    kernel: Kernel | None

    @property
    def average(self) -> float:
        """Picoseconds of one occurrence."""
        return self.total / self.occurrences

    def label(self) -> str:
        """The row's key in words."""
        return f"{self.name} {self.shape or '(shape unknown)'} in {self.program or '(program unknown)'}"


def row_json(row: Row) -> dict[str, Any]:
    """The row as JSON values; times in microseconds."""
    return {
        "program": row.program,
        # As text: a number of 64 bits is beyond what JSON readers keep exactly.
        "program_id": None if row.program_id is None else str(row.program_id),
        "name": row.name,
        "shape": row.shape,
        "category": row.category,
        "scope": row.scope,
        "sources": list(row.sources),
        "devices": row.devices,
        "occurrences": row.occurrences,
        "runs": row.runs,
        "total_us": row.total / 1e6,
        "avg_us": row.average / 1e6,
        "min_us": row.least / 1e6,
        "max_us": row.most / 1e6,
        "kernel": None if row.kernel is None else row.kernel._asdict(),
    }
