"""The measured runs of a point, in pairs; and what is said of numbers, everywhere alike."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Literal

from patchkit.bench.report import Run
from patchkit.model.recipe import METRICS, ArmName, Gate, Point, Recipe
from patchkit.tuples import NamedTuple


class Pair(NamedTuple):
    """One baseline and one treatment process, neighbours in the order of the session."""

    number: int
    baseline: Run
    treatment: Run


def measured(point: Point, runs: Iterable[Run], arm: ArmName | None = None) -> tuple[Run, ...]:
    """The runs of ``point`` that count, of one arm or of both, in the order in which they were started.

    Where a run of a pair was made anew, the later one counts.
    """
    latest: dict[tuple[int | None, ArmName], Run] = {}
    for run in sorted(runs, key=lambda run: run.order):
        if run.point == point.label and run.kind == "measured" and arm in (None, run.arm):
            latest[run.pair, run.arm] = run
    return tuple(sorted(latest.values(), key=lambda run: run.order))


def pairs_of(point: Point, runs: Iterable[Run]) -> tuple[Pair, ...]:
    """The pairs of which both runs are there, by their number."""
    by_place = {(run.pair, run.arm): run for run in measured(point, runs)}
    numbers = sorted({pair for pair, _ in by_place if pair is not None})
    return tuple(
        Pair(number, by_place[number, "baseline"], by_place[number, "treatment"])
        for number in numbers
        if (number, "baseline") in by_place and (number, "treatment") in by_place
    )


def value_of(run: Run, metric: str) -> float | None:
    """What a run has of a metric."""
    found = run.observation.metrics.get(metric)
    return None if found is None else found.value


def ratios_of(pairs: Sequence[Pair], metric: str) -> tuple[float, ...] | None:
    """Treatment / baseline by pair; None where a value is missing or not above zero."""
    ratios = []
    for pair in pairs:
        below, above = value_of(pair.baseline, metric), value_of(pair.treatment, metric)
        if below is None or above is None or below <= 0 or above <= 0:
            return None
        ratios.append(above / below)
    return tuple(ratios)


def median_of(runs: Iterable[Run], metric: str) -> float | None:
    """The median of a metric over runs; None where none has it."""
    values = [value for run in runs if (value := value_of(run, metric)) is not None]
    return median(values) if values else None


def gate_of(recipe: Recipe, metric: str) -> Gate | None:
    """The gate of a metric."""
    return next((gate for gate in recipe.gates.metrics if gate.metric == metric), None)


def is_ratio(gate: Gate) -> bool:
    """Whether a gate limits treatment / baseline."""
    return gate.min_ratio is not None or gate.max_ratio is not None


def margin_of(gate: Gate) -> float:
    """How far from no change the nearer limit of a ratio gate lies, on the logarithm of the ratio."""
    limits = [abs(math.log(ratio)) for ratio in (gate.min_ratio, gate.max_ratio) if ratio and ratio != 1]
    return min(limits, default=-math.log(0.97))


def better_of(metric: str, unit: str, gate: Gate | None) -> Literal["higher", "lower"]:
    """Which way of a metric is better: as it is known, as it is gated, or as its unit suggests."""
    if metric in METRICS:
        return METRICS[metric][1]
    if gate is not None and (gate.min_ratio is None) != (gate.max_ratio is None):
        return "higher" if gate.min_ratio is not None else "lower"
    if gate is not None and (gate.minimum is None) != (gate.maximum is None):
        return "higher" if gate.minimum is not None else "lower"
    return "higher" if unit.endswith("/s") else "lower"


def percent(share: float, digits: int = 1) -> str:
    """0.0312 as ``3.1 %``."""
    return f"{100 * share:.{digits}f} %"


def change(ratio: float) -> str:
    """A ratio as people say it: ``-26.2 %``, ``+0.4 %``, ``x4.40``."""
    if ratio >= 2:
        return f"x{ratio:.2f}"
    text = f"{100 * (ratio - 1):+.1f} %"
    return "0.0 %" if text in ("+0.0 %", "-0.0 %") else text


def figure(value: float, unit: str = "") -> str:
    """A value with four significant digits at least, thousands set apart."""
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{text} {unit}".strip()


def counted(number: int, noun: str) -> str:
    """``1 pair``, ``2 pairs``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def run_name(run: Run) -> str:
    """A run as a message names it."""
    place = run.kind if run.pair is None else f"pair {run.pair}"
    return f"run {run.order} ({run.arm}, {place})"
