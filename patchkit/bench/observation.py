"""What one process of an engine was seen to do: the driver's result with the evidence that was gathered beside it.

Times are seconds, throughputs tokens per second, unless a metric's own unit says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

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
    ``profiler``: one was on, so nothing timed is believed.
    """

    metrics: Mapping[str, Measured] = {}
    phases: tuple[Phase, ...] = ()
    tokens: Tokens | None = None
    compilations: Mapping[str, int] | None = None
    prefix_cache_hit_rate: float | None = None
    profiler: bool = False
    version_lines: tuple[str, ...] = ()
    versions: Mapping[str, str] = {}
    probes: tuple[Fired, ...] = ()
    found_lines: Mapping[str, int] = {}
    label: str | None = None
    failure: Failure | None = None
    log: str | None = None

    def to_json(self) -> dict[str, Any]:
        """JSON values, as kept in a run's folder."""
        return {"schema": SCHEMA, **{name: _plain(value) for name, value in self._asdict().items()}}


def _plain(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return {name: _plain(item) for name, item in value._asdict().items()}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value


def read_observation(value: Mapping[str, Any]) -> Observation:
    """An observation out of its JSON values; keys that are not there have their defaults.

    Raises:
        ValueError: Another schema, an unknown key, or a value of another type; the message names the key.
    """
    values = dict(value)
    if values.pop("schema", None) != SCHEMA:
        raise ValueError(f'the result must have "schema": {SCHEMA}')
    unknown = sorted(set(values) - set(Observation._fields))
    if unknown:
        raise ValueError(f"unknown key {unknown[0]!r}")
    made: dict[str, Any] = {}
    for name, item in values.items():
        if item is None and name in ("metrics", "phases", "version_lines", "versions", "probes", "found_lines"):
            continue
        made[name] = _READ[name](name, item) if item is not None else None
    return Observation(**made)


def _number(where: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value or value in (_INF, -_INF):
        raise ValueError(f"{where}: {value!r} is no finite number")
    return float(value)


_INF = float("inf")


def _record(kind: Any, readers: Mapping[str, Any]) -> Any:
    def read(where: str, value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise ValueError(f"{where}: an object is expected")
        unknown = sorted(set(value) - set(readers))
        if unknown:
            raise ValueError(f"{where}: unknown key {unknown[0]!r}")
        missing = [name for name in kind._fields if name not in value and name not in kind._field_defaults]
        if missing:
            raise ValueError(f"{where}: {missing[0]!r} is missing")
        return kind(**{name: readers[name](f"{where}.{name}", item) for name, item in value.items()})

    return read


def _of(kind: type) -> Any:
    def read(where: str, value: Any) -> Any:
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise ValueError(f"{where}: {value!r} is no {kind.__name__}")
        return value

    return read


def _maybe(reader: Any) -> Any:
    return lambda where, value: None if value is None else reader(where, value)


def _each(reader: Any) -> Any:
    def read(where: str, value: Any) -> Any:
        if not isinstance(value, list | tuple):
            raise ValueError(f"{where}: an array is expected")
        return tuple(reader(f"{where}[{at}]", item) for at, item in enumerate(value))

    return read


def _table(reader: Any) -> Any:
    def read(where: str, value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise ValueError(f"{where}: an object is expected")
        return {str(key): reader(f"{where}.{key}", item) for key, item in value.items()}

    return read


_text, _whole, _truth, _counts = _of(str), _of(int), _of(bool), _table(_of(int))


def _phase_name(where: str, value: Any) -> Any:
    if value not in ("warm-up", "ttft", "main"):
        raise ValueError(f"{where}: {value!r} is no phase: warm-up, ttft or main")
    return value


_PHASE = _record(
    Phase,
    {
        "name": _phase_name,
        "repeat": _whole,
        "seconds": _number,
        "requests": _whole,
        "tokens": _maybe(_whole),
        "tokens_sha256": _maybe(_text),
        "compilations": _maybe(_counts),
    },
)
_READ: dict[str, Any] = {
    "metrics": _table(_record(Measured, {"value": _number, "unit": _text, "samples": _each(_number)})),
    "phases": _each(_PHASE),
    "tokens": _record(
        Tokens, {"asked": _maybe(_whole), "came": _maybe(_whole), "sha256": _maybe(_text), "failed_requests": _whole}
    ),
    "compilations": _counts,
    "prefix_cache_hit_rate": _number,
    "profiler": _truth,
    "version_lines": _each(_text),
    "versions": _table(_text),
    "probes": _each(
        _record(
            Fired,
            {"patch": _text, "edit": _whole, "function": _text, "pid": _whole, "role": _text, "ran": _truth},
        )
    ),
    "found_lines": _counts,
    "label": _text,
    "failure": _record(Failure, {"kind": _text, "message": _text, "forbidden": _truth}),
    "log": _text,
}
