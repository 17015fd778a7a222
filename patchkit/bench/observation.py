"""What one process of an engine was seen to do: the driver's result with the evidence that was gathered beside it.

Times are seconds, throughputs tokens per second, unless a metric's own unit says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from patchkit.bench.shape import Each, Maybe, Number, Of, Quantity, Record, Table, Word, plain
from patchkit.tuples import NamedTuple

SCHEMA = 1
"""Of the JSON that a driver, or a command that reads ``patchkit``, writes."""

PhaseName = Literal["warm-up", "ttft", "main"]


class Phase(NamedTuple):
    """One generation. ``repeat`` counts from 0; ``compilations`` is by function name, None where nobody counted.

    ``requests`` and ``tokens`` (output tokens of all requests) are what came back, not what was asked for.
    """

    name: PhaseName
    repeat: int
    seconds: float
    requests: int
    tokens: int | None = None
    tokens_sha256: str | None = None
    compilations: Mapping[str, int] | None = None


class Measured(NamedTuple):
    """One metric of one process: the ``value`` that counts once, with the samples it is the median of."""

    value: float
    unit: str
    samples: tuple[float, ...] = ()


class Tokens(NamedTuple):
    """Output tokens of the main generation: how many were asked for, came, and their SHA-256 over all requests."""

    asked: int | None
    came: int | None
    sha256: str | None
    failed_requests: int = 0


class Fired(NamedTuple):
    """A probe in a process of the engine: it ran, or its module was only loaded."""

    patch: str
    edit: int
    function: str
    pid: int
    role: str
    ran: bool


class Failure(NamedTuple):
    """How the process failed. ``forbidden``: it compiled where compilation was forbidden."""

    kind: str
    message: str
    forbidden: bool = False


class Observation(NamedTuple):
    """One process.

    ``version_lines`` are what the engine said of itself, ``versions`` of its distributions. ``compilations`` counts
    after warm-up, by function name; None where nobody counted. ``label`` must stand wherever its times do.
    ``profiler``: one was on, so nothing timed is believed; None: the engine does not say. ``notes`` are for people: how
    requests failed, what was not to be had.
    """

    metrics: Mapping[str, Measured] = {}
    phases: tuple[Phase, ...] = ()
    tokens: Tokens | None = None
    compilations: Mapping[str, int] | None = None
    prefix_cache_hit_rate: float | None = None
    profiler: bool | None = None
    version_lines: tuple[str, ...] = ()
    versions: Mapping[str, str] = {}
    probes: tuple[Fired, ...] = ()
    found_lines: Mapping[str, int] = {}
    label: str | None = None
    failure: Failure | None = None
    log: str | None = None
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """JSON values, as kept in a run's folder."""
        return {"schema": SCHEMA, **plain(self)}


def read_observation(value: Any) -> Observation:
    """An observation out of its JSON values; keys that are not there have their defaults.

    Raises:
        ValueError: Another schema, an unknown key, or a value of another type; the message names the key.
    """
    if not isinstance(value, Mapping) or value.get("schema") != SCHEMA:
        raise ValueError(f'the result must be an object with "schema": {SCHEMA}')
    made: Observation = OBSERVATION.read("result", {name: item for name, item in value.items() if name != "schema"})
    return made


_TEXT, _WHOLE, _TRUTH, _COUNTS = Of(str), Of(int), Of(bool), Table(Of(int))
OBSERVATION = Record(
    Observation,
    {
        "metrics": Table(Record(Measured, {"value": Quantity(), "unit": _TEXT, "samples": Each(Quantity())})),
        "phases": Each(
            Record(
                Phase,
                {
                    "name": Word("warm-up", "ttft", "main"),
                    "repeat": _WHOLE,
                    "seconds": Quantity(),
                    "requests": _WHOLE,
                    "tokens": Maybe(_WHOLE),
                    "tokens_sha256": Maybe(_TEXT),
                    "compilations": Maybe(_COUNTS),
                },
            )
        ),
        "tokens": Maybe(
            Record(
                Tokens,
                {
                    "asked": Maybe(_WHOLE),
                    "came": Maybe(_WHOLE),
                    "sha256": Maybe(_TEXT),
                    "failed_requests": _WHOLE,
                },
            )
        ),
        "compilations": Maybe(_COUNTS),
        "prefix_cache_hit_rate": Maybe(Number()),
        "profiler": Maybe(_TRUTH),
        "version_lines": Each(_TEXT),
        "versions": Table(_TEXT),
        "probes": Each(
            Record(
                Fired,
                {"patch": _TEXT, "edit": _WHOLE, "function": _TEXT, "pid": _WHOLE, "role": _TEXT, "ran": _TRUTH},
            )
        ),
        "found_lines": _COUNTS,
        "label": Maybe(_TEXT),
        "failure": Maybe(Record(Failure, {"kind": _TEXT, "message": _TEXT, "forbidden": _TRUTH})),
        "log": Maybe(_TEXT),
        "notes": Each(_TEXT),
    },
)
"""The shape of an observation's JSON, but for ``schema``."""
