"""What trials came to: medians with their range, and whether they may stand beside each other; pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from patchkit.bench.compiletime.spec import PHASES
from patchkit.bench.shape import Anything, Each, Maybe, Number, Of, Record, Table
from patchkit.errors import MeasurementError
from patchkit.tuples import NamedTuple

SCHEMA = 1


class Trial(NamedTuple):
    """One process: its variant, its place in the order, and what it measured. Times are in seconds.

    ``cpu_seconds`` are those of the whole process, with the compiler's threads; ``note`` is what the function said of
    what it made.
    """

    variant: str
    order: int
    seconds: dict[str, float]
    cpu_seconds: dict[str, float]
    versions: dict[str, str | None]
    device: dict[str, Any]
    note: str | None


class Timing(NamedTuple):
    """Milliseconds of one phase."""

    median: float
    least: float
    most: float


class Summary(NamedTuple):
    """One variant: its trials, and each phase by wall clock and by processor time."""

    variant: str
    trials: int
    wall: dict[str, Timing]
    cpu: dict[str, Timing]
    note: str | None


class Result(NamedTuple):
    """All trials of one run of a spec, as they are kept."""

    schema: int
    spec: str
    started: str
    spec_sha256: str
    script_sha256: str
    versions: dict[str, str | None]
    device: dict[str, Any]
    trials: tuple[Trial, ...]


_TRIAL = Record(
    Trial,
    {
        "variant": Of(str),
        "order": Of(int),
        "seconds": Table(Number()),
        "cpu_seconds": Table(Number()),
        "versions": Table(Maybe(Of(str))),
        "device": Table(Anything()),
        "note": Maybe(Of(str)),
    },
)
RESULT = Record(
    Result,
    {
        "schema": Of(int),
        "spec": Of(str),
        "started": Of(str),
        "spec_sha256": Of(str),
        "script_sha256": Of(str),
        "versions": Table(Maybe(Of(str))),
        "device": Table(Anything()),
        "trials": Each(_TRIAL),
    },
)


def order_of(variants: Sequence[str], trials: int) -> list[str]:
    """Which variant each process is of: there and back again, so that a machine that slows down slows all alike."""
    order: list[str] = []
    for trial in range(trials):
        order += variants if trial % 2 == 0 else list(variants)[::-1]
    return order


def summarize(trials: Sequence[Trial]) -> list[Summary]:
    """Each variant's medians and ranges, in the order in which they first ran."""
    by_variant: dict[str, list[Trial]] = {}
    for trial in trials:
        by_variant.setdefault(trial.variant, []).append(trial)
    return [
        Summary(
            name,
            len(same),
            {phase: _timing([trial.seconds[phase] for trial in same]) for phase in PHASES},
            {phase: _timing([trial.cpu_seconds[phase] for trial in same]) for phase in PHASES},
            next((trial.note for trial in same if trial.note), None),
        )
        for name, same in by_variant.items()
    ]


def _timing(seconds: Sequence[float]) -> Timing:
    return Timing(statistics.median(seconds) * 1e3, min(seconds) * 1e3, max(seconds) * 1e3)


def same_ground(versions: Sequence[Mapping[str, Any]], devices: Sequence[Mapping[str, Any]]) -> None:
    """Refuse what was compiled by different compilers, or for different devices.

    Raises:
        MeasurementError: ``versions``.
    """
    for what, values in (("versions", versions), ("device", devices)):
        first = values[0]
        for other in values[1:]:
            apart = sorted(name for name in {*first, *other} if first.get(name) != other.get(name))
            if apart:
                words = ", ".join(f"{name} {first.get(name)} and {other.get(name)}" for name in apart)
                raise MeasurementError(
                    f"compile times of different {what} are not comparable: {words}",
                    code="versions",
                    hint="run both in one environment, on one machine",
                    details={what: [dict(first), dict(other)]},
                )
