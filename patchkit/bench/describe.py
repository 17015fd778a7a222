"""A recipe in words: what is compared, how it is judged, how many processes that takes, what was published."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from patchkit.bench.render.words import limit, number, published_text, title, unit_of
from patchkit.model.recipe import Arm, Engine, Gates, LogLine, Point, Protocol, Recipe, Workload
from patchkit.tuples import NamedTuple

_SETTINGS = ("model", "max_num_seqs", "max_model_len", "dtype", "quantization", "kv_cache_dtype")
_REST = ("tensor_parallel_size", "enable_prefix_caching", "async_scheduling", "profile", "transplants", "rig", "url")


class Processes(NamedTuple):
    """How many processes one point takes: untimed ones, and timed ones at least and at most."""

    preflight: int
    discarded: int
    least: int
    most: int
    traced: int


def processes(protocol: Protocol) -> Processes:
    """The processes of one point by its protocol; a revert adds one for the baseline."""
    return Processes(
        int(protocol.preflight),
        2 * protocol.discarded,
        2 * protocol.pairs_min,
        2 * protocol.pairs_max,
        2 * int(protocol.traced),
    )


def describe_recipe(recipe: Recipe) -> Iterator[str]:
    """Lines for people, without the name and the description; indented ones belong to the one before."""
    engine = recipe.points[0].treatment.engine
    yield f"engine: {engine.kind}"
    yield f"on trial: {', '.join(recipe.patches) or 'no patch; settings are compared'}"
    for point in recipe.points:
        yield f"{point.label}:" if point.label else "compared:"
        yield from (f"  {line}" for line in _compared(point))
    yield f"judged by: {'; '.join(_judged(recipe.gates))}"
    for line in recipe.evidence:
        yield f"evidence: {_evidence(line)}"
    yield f"plan: {_plan(recipe)}"
    if recipe.economics.chip_watts or recipe.economics.price_per_hour:
        yield f"economics: {_economics(recipe)}"
    if recipe.source:
        yield f"published by: {recipe.source}"


def _compared(point: Point) -> Iterator[str]:
    one, other = settings(point.baseline), settings(point.treatment)
    shared = [f"{key} {value}" for key, value in one.items() if other.get(key) == value]
    if shared:
        yield f"both: {', '.join(shared)}"
    for arm, values, against in (("baseline", one, other), ("treatment", other, one)):
        own = [f"{key} {value}" for key, value in values.items() if against.get(key) != value]
        yield f"{arm}: {', '.join(own) or 'as it is'}"
    for figure in point.figures:
        yield f"published: {published_text(figure, unit_of(figure.metric))}"


def settings(arm: Arm) -> dict[str, str]:
    """What is set in an arm, in words by name, in the order of interest."""
    found = {"patches": ", ".join(arm.patches)} if arm.patches else {}
    return {**found, **_workload(arm.workload), **_engine(arm.engine)}


def _workload(workload: Workload) -> dict[str, str]:
    if not workload.prompts:
        return {}
    sampling = {"temperature": workload.temperature, "top_p": workload.top_p, "top_k": workload.top_k}
    found = {
        "requests": f"{workload.requests} ({_count(len(workload.prompts), 'prompt')} x {workload.batch_mult})",
        "max_tokens": str(workload.max_tokens),
        "repeats": str(workload.repeats),
        **{name: f"{value:g}" for name, value in sampling.items() if value is not None},
    }
    if workload.temperature is None:
        found["temperature"] = "the engine's own"
    for name in ("seed", "logprobs", "concurrency", "request_rate"):
        value = getattr(workload, name)
        if value is not None:
            found[name] = f"{value:g}"
    return found


def _engine(engine: Engine) -> dict[str, str]:
    found = {name: _said(getattr(engine, name)) for name in (*_SETTINGS, *_REST) if getattr(engine, name)}
    for name in ("enable_prefix_caching", "async_scheduling"):
        if getattr(engine, name) is False:
            found[name] = "no"
    tables: dict[str, Mapping[str, Any]] = {"speculative": engine.speculative, "options": engine.options}
    for name, values in tables.items():
        found.update({f"{name}.{key}": _said(value) for key, value in values.items()})
    found.update({key: f'"{value}"' for key, value in engine.env.items()})
    if engine.command:
        found["command"] = " ".join(engine.command)
        found["reads"] = engine.reads
    return found


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(_said, value)) if isinstance(value, tuple | list) else str(value)


def _judged(gates: Gates) -> Iterator[str]:
    for gate in gates.metrics:
        yield f"{title(gate.metric)} {limit(gate, unit_of(gate.metric))}"
    if gates.tokens != "any":
        yield "output tokens identical" if gates.tokens == "identical" else "as many output tokens as asked for"
    if gates.recompiles is not None:
        most = (
            f"at most {_count(gates.recompiles, 'compilation')} of a function" if gates.recompiles else "no compilation"
        )
        yield f"{most} after warm-up that the baseline has not"
    if gates.probes == "required":
        yield "every probe of the patches fires"


def _evidence(line: LogLine) -> str:
    if line.at_most == 0:
        count = "no line"
    elif line.at_most is None:
        count = f"at least {_count(line.at_least, 'line')}"
    else:
        count = _count(line.at_least, "line")
    return f'{count} of the {line.arm or "engine"}\'s log with "{line.text}"'


def _plan(recipe: Recipe) -> str:
    protocol = recipe.protocol
    engine = recipe.points[0].treatment.engine
    count = processes(protocol)
    if engine.kind == "command" or engine.url is not None:
        count = count._replace(preflight=0)  # neither can be told to forbid compilation
    parts = ["preflight, with recompilation forbidden"] if count.preflight else []
    if count.discarded:
        parts.append(f"{_count(protocol.discarded, 'discarded run')} of each arm")
    parts.append(f"{protocol.pairs_min} to {protocol.pairs_max} pairs in ABBA order")
    if count.traced:
        parts.append("one traced run of each arm")
    untimed = count.preflight + count.discarded + count.traced
    points = len(recipe.points)
    total = f"{points * (untimed + count.least)} to {points * (untimed + count.most)} processes"
    return f"{', '.join(parts)}: {total}" + (f" for {points} points" if points > 1 else "")


def _economics(recipe: Recipe) -> str:
    economics = recipe.economics
    said = [_count(economics.chips, "chip")]
    if economics.chip_watts:
        said.append(f"{number(economics.chip_watts)} W each, rated")
    if economics.price_per_hour:
        said.append(f"{economics.price_per_hour:.2f} dollars an hour")
    return ", ".join(said)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number != 1 else ''}"
