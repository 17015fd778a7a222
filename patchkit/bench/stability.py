"""Whether one figure stands for an arm: of the study's patched arm, 11,641 then 8,839, none did."""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from statistics import median

from patchkit.bench.pairs import Pair, counted, figure, is_ratio, margin_of, percent, value_of
from patchkit.bench.report import Check
from patchkit.bench.stats import deviation, f_quantile
from patchkit.model.recipe import METRICS, ArmName, Gate, Recipe

NAME = "treatment-stable"
"""Of the check of the treatment."""

TIMES = 3.0
"""A treatment is unstable only when its spread is at least so many times the baseline's,"""

CHANCE = 0.01
"""and when equal normal noise in both arms would show such a ratio of spreads this rarely."""

FLOOR = 1 / 20
"""A baseline's spread below this share of the margin counts as this share: two runs may agree by luck."""


def treatment_stable(recipe: Recipe, pairs: Sequence[Pair], settled: Container[str] = ()) -> Check | None:
    """Whether the treatment's runs lie together.

    A spread beyond the tripwire fails; a smaller one where it may be why its metric is undecided. Of metrics that are
    ``settled`` it is but noted.
    """
    gates = _ratio_gates(recipe)
    if not gates:
        return None
    if len(pairs) < 2:
        return Check(NAME, "not-checked", "one pair shows no spread")
    wide = [gate for gate in gates if _is_wide(gate, pairs)]
    doubted = [gate for gate in wide if gate.metric not in settled or _is_hopeless(recipe, gate, pairs)]
    if doubted:
        told = (_told(gate, pairs) for gate in doubted)
        return Check(NAME, "failed", "; ".join(f"{text}: no one figure stands for the patched arm" for text in told))
    if wide:
        told = (_told(gate, pairs) for gate in wide)
        return Check(NAME, "noted", "; ".join(f"{text}, which decides nothing here" for text in told))
    return Check(NAME, "held", "its runs spread no wider than those of the baseline explain")


def baseline_stable(recipe: Recipe, pairs: Sequence[Pair]) -> Check | None:
    """Whether the baseline's runs lie within the margin; a wider spread is noted, as pairs mostly make up for it."""
    gates = _ratio_gates(recipe)
    if not gates or len(pairs) < 2:
        return None
    notes = []
    for gate in gates:
        values = _values(pairs, gate.metric, "baseline")
        if values is not None and _range(values) > margin_of(gate):
            notes.append(
                f"the {gate.metric} of the baseline alone spans {_span(values)}, more than the margin of "
                f"{percent(1 - math.exp(-margin_of(gate)))}: the machine is not quiet, or it drifts"
            )
    if notes:
        return Check("baseline-stable", "noted", "; ".join(notes))
    return Check("baseline-stable", "held", "its runs lie within the margin")


def is_hopeless(recipe: Recipe, pairs: Sequence[Pair]) -> bool:
    """Whether an unstable treatment spans more than the tripwire: no further pair would mend that."""
    return any(_is_wide(gate, pairs) and _is_hopeless(recipe, gate, pairs) for gate in _ratio_gates(recipe))


def _is_hopeless(recipe: Recipe, gate: Gate, pairs: Sequence[Pair]) -> bool:
    protocol, values = recipe.protocol, _values(pairs, gate.metric, "treatment")
    higher = METRICS[gate.metric][1] == "higher" if gate.metric in METRICS else gate.min_ratio is not None
    trip = -math.log(1 - protocol.trip_throughput) if higher else math.log(1 + protocol.trip_ttft)
    return values is not None and _range(values) > trip


def _is_wide(gate: Gate, pairs: Sequence[Pair]) -> bool:
    treatment, baseline = _values(pairs, gate.metric, "treatment"), _values(pairs, gate.metric, "baseline")
    if treatment is None or baseline is None or len(pairs) < 2:
        return False
    margin, own, others = margin_of(gate), _steady(treatment), _steady(baseline)
    times = max(TIMES, math.sqrt(f_quantile(1 - CHANCE, len(own) - 1, len(others) - 1)))
    return own[-1] - own[0] > margin and deviation(own) > times * max(deviation(others), FLOOR * margin)


def _steady(values: Sequence[float]) -> list[float]:
    """Logarithms in order; of four or more without the one farthest from the median: one hiccup is no instability."""
    logs = sorted(math.log(value) for value in values)
    if len(logs) < 4:
        return logs
    middle = median(logs)
    return logs[1:] if middle - logs[0] > logs[-1] - middle else logs[:-1]


def _told(gate: Gate, pairs: Sequence[Pair]) -> str:
    treatment, baseline = _values(pairs, gate.metric, "treatment"), _values(pairs, gate.metric, "baseline")
    assert treatment is not None
    assert baseline is not None
    return (
        f"the {gate.metric} of the treatment spans {_span(treatment)} in {counted(len(pairs), 'run')}, that of the "
        f"baseline {_span(baseline)}"
    )


def _ratio_gates(recipe: Recipe) -> list[Gate]:
    return [gate for gate in recipe.gates.metrics if is_ratio(gate)]


def _values(pairs: Sequence[Pair], metric: str, arm: ArmName) -> list[float] | None:
    """All values of an arm, by pair; None where one is missing or has no logarithm."""
    found = [value_of(pair.baseline if arm == "baseline" else pair.treatment, metric) for pair in pairs]
    values = [value for value in found if value is not None and value > 0]
    return values if len(values) == len(found) else None


def _range(values: Sequence[float]) -> float:
    return math.log(max(values) / min(values))


def _span(values: Sequence[float]) -> str:
    return f"{figure(min(values))} to {figure(max(values))} ({percent(max(values) / min(values) - 1)})"
