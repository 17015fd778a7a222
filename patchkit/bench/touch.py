"""A loss at first touch told from a slower steady state, in words.

A compilation in the serving path shows once for each program, when it is first used; a mean over everything would call
it a slowdown. So the first repeat of a process is a metric of its own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from statistics import median

from patchkit.bench.pairs import Pair, change, figure, gate_of, ratios_of, value_of
from patchkit.bench.report import Run
from patchkit.bench.validity import more_compiled
from patchkit.model.recipe import METRICS, Recipe

#: The limits on ratios where the recipe has none.
USUAL = {"ttft": 1.10, "throughput": 0.97}


def first_touch(recipe: Recipe, pairs: Sequence[Pair]) -> str | None:
    """Where the treatment loses at first touch, or is slower throughout: which of them; None where neither is.

    A loss is one beyond the metric's gate, or beyond the usual one (10 % of TTFT, 3 % of throughput).
    """
    told = [text for metric in USUAL if (text := _told(recipe, pairs, metric))]
    if not told:
        return None
    return ". ".join([*told, _compiled(pairs)]) + "."


def _told(recipe: Recipe, pairs: Sequence[Pair], metric: str) -> str | None:
    first = f"{metric}_first"
    early, steady = ratios_of(pairs, first), ratios_of(pairs, metric)
    if not early or not steady:
        return None
    lost_first, lost = _lost(recipe, metric, early), _lost(recipe, metric, steady)
    if not lost_first and not lost:
        return None
    if all(_once(run, metric) for pair in pairs for run in pair[1:]):
        return (
            f"{metric}: {_against(pairs, metric)}; each process measured it once, so a loss at first touch "
            f"cannot be told from a slower steady state"
        )
    if not lost:
        return (
            f"{metric}: lost at first touch only: {_against(pairs, first)}; from the second time on "
            f"{_against(pairs, metric)}, so the steady state is no slower"
        )
    if not lost_first:
        return f"{metric}: lost in the steady state: {_against(pairs, metric)}; at first touch {_against(pairs, first)}"
    return f"{metric}: lost in the steady state, {_against(pairs, metric)}, as at first touch, {_against(pairs, first)}"


def _once(run: Run, metric: str) -> bool:
    steady = run.observation.metrics[metric]
    return steady.value == value_of(run, f"{metric}_first") and len(steady.samples) < 2


def _lost(recipe: Recipe, metric: str, ratios: Sequence[float]) -> bool:
    ratio = _mean(ratios)
    gate = gate_of(recipe, metric)
    least = gate.min_ratio if gate is not None else None
    most = gate.max_ratio if gate is not None else None
    if METRICS[metric][1] == "higher":
        return ratio < (least or USUAL[metric])
    return ratio > (most or USUAL[metric])


def _mean(ratios: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios))


def _against(pairs: Sequence[Pair], metric: str) -> str:
    unit = METRICS[metric][0]
    baseline = median(value_of(pair.baseline, metric) or 0.0 for pair in pairs)
    treatment = median(value_of(pair.treatment, metric) or 0.0 for pair in pairs)
    ratio = change(_mean(ratios_of(pairs, metric) or (1.0,)))
    return f"{figure(treatment, unit)} against {figure(baseline, unit)} ({ratio})"


def _compiled(pairs: Sequence[Pair]) -> str:
    """What the first repeats of the treatment compile and those of the baseline do not, as the median pair has it."""
    extras: list[Counter[str]] = []
    counted = False
    for pair in pairs:
        extra: Counter[str] = Counter()
        for phase in pair.treatment.observation.phases:
            if phase.repeat == 0 and phase.name != "warm-up" and phase.compilations is not None:
                counted = True
                other = next(
                    (p for p in pair.baseline.observation.phases if (p.name, p.repeat) == (phase.name, phase.repeat)),
                    None,
                )
                extra.update(more_compiled(phase.compilations, other.compilations if other else None))
        extras.append(extra)
    if not counted:
        return "Nobody counted compilations by phase"
    most = max(extras, key=lambda extra: extra.total())
    if not most:
        return (
            "No compilation explains it: the first touch of the treatment compiles nothing that the baseline does not"
        )
    functions = ", ".join(f"{name} ({count})" for name, count in most.most_common(6))
    more = f" and {len(most) - 6} functions more" if len(most) > 6 else ""
    return f"At first touch the treatment compiles, and the baseline does not: {functions}{more}"
