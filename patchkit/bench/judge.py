"""From the runs of a point to its verdict. Pure, and the same whether asked after every pair or once at the end.

A metric's verdict is that of the first look at which it is decided: looks are taken from ``pairs_min`` pairs on, each
at the level of :func:`patchkit.bench.stats.look_level`, so that later pairs cannot be waited for until they please.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

from patchkit.bench.economics import costs
from patchkit.bench.pairs import (
    Pair,
    better_of,
    change,
    counted,
    figure,
    gate_of,
    is_ratio,
    margin_of,
    measured,
    median_of,
    pairs_of,
    percent,
    ratios_of,
    run_name,
    value_of,
)
from patchkit.bench.report import Check, Interval, MetricResult, PointResult, Run, Verdict
from patchkit.bench.stability import NAME as UNSTABLE
from patchkit.bench.stability import is_hopeless
from patchkit.bench.stats import interval, look_level, pairs_needed, sign_flip
from patchkit.bench.touch import first_touch
from patchkit.bench.validity import check_runs
from patchkit.model.recipe import Gate, Point, Protocol, Recipe
from patchkit.tuples import NamedTuple

PassKind = Literal["improved", "equal"]

#: From the worst on.
_ORDER: tuple[Verdict, ...] = ("error", "invalid", "regressed", "inconclusive", "pass")

_MOST_PAIRS = 100
"""Nobody measures more: beyond it the number is not told."""

_SLACK = 1e-9
"""Of logarithms: a ratio that is the gate's own, but for rounding, keeps it."""


class _Ruling(NamedTuple):
    """What one look says of one metric."""

    verdict: Verdict
    reason: str
    kind: PassKind | None = None
    interval: Interval | None = None
    tripped: bool = False
    advice: str | None = None


def judge_point(recipe: Recipe, point: Point, runs: Sequence[Run]) -> PointResult:
    """What the runs so far say of one comparison; metrics that are not decided are inconclusive."""
    pairs = pairs_of(point, runs)
    metrics = tuple(_metric(recipe, point, pairs, name) for name in _names(recipe, point, runs))
    lost = any(metric.verdict == "regressed" for metric in metrics)
    settled = {metric.metric for metric in metrics if lost or metric.verdict == "pass"}
    checks = check_runs(recipe, point, runs, settled)
    verdict, kind, reason = _verdict(recipe, point, runs, metrics, checks, len(pairs))
    return PointResult(
        point.label,
        verdict,
        kind,
        reason,
        metrics,
        checks,
        tuple(
            costs(recipe.economics, arm, median_of(measured(point, runs, arm), "throughput"))
            for arm in ("baseline", "treatment")
        )
        if recipe.economics.chip_watts is not None or recipe.economics.price_per_hour is not None
        else (),
        first_touch(recipe, pairs),
    )


def decided(recipe: Recipe, point: Point, runs: Sequence[Run]) -> PointResult | None:
    """The result, where no further pair is needed; None to go on.

    Ask after every pair, and after the preflight and the discarded runs: an error or a failed check ends it at once.
    Only an unstable treatment may yet prove to be a hiccup, unless it spans more than the tripwire.
    """
    result, pairs = judge_point(recipe, point, runs), pairs_of(point, runs)
    if len(pairs) >= recipe.protocol.pairs_max or result.verdict in ("error", "regressed"):
        return result
    if result.verdict == "invalid":
        failed = [check.name for check in result.checks if check.state == "failed"]
        return None if failed == [UNSTABLE] and not is_hopeless(recipe, pairs) else result
    return result if result.verdict == "pass" and len(pairs) >= recipe.protocol.pairs_min else None


def overall(points: Iterable[PointResult]) -> tuple[Verdict, PassKind | None, str]:
    """The worst of the points, with the reasons of those that are as bad."""
    results = list(points)
    if not results:
        return "error", None, "nothing was measured"
    verdict = _worst(result.verdict for result in results)
    worst = [result for result in results if result.verdict == verdict]
    reason = "; ".join(f"{result.label}: {result.reason}" if result.label else result.reason for result in worst)
    return verdict, _joint([result.kind for result in results]) if verdict == "pass" else None, reason


def _worst(verdicts: Iterable[Verdict]) -> Verdict:
    found = set(verdicts)
    return next((verdict for verdict in _ORDER if verdict in found), "pass")


def _joint(kinds: Sequence[PassKind | None]) -> PassKind | None:
    """Of several passes: improved where one is, equal where all are."""
    if "improved" in kinds:
        return "improved"
    return "equal" if kinds and all(kind == "equal" for kind in kinds) else None


def _names(recipe: Recipe, point: Point, runs: Iterable[Run]) -> list[str]:
    """The metrics to tell of: those with gates first, then the others that both arms have."""
    gated = [gate.metric for gate in recipe.gates.metrics]
    seen = measured(point, runs)
    below, above = (
        [name for run in seen if run.arm == arm for name in run.observation.metrics]
        for arm in ("baseline", "treatment")
    )
    return list(dict.fromkeys([*gated, *(name for name in below if name in above)]))


def _verdict(
    recipe: Recipe,
    point: Point,
    runs: Sequence[Run],
    metrics: Sequence[MetricResult],
    checks: Sequence[Check],
    pairs: int,
) -> tuple[Verdict, PassKind | None, str]:
    failures = [run for run in sorted(runs, key=lambda run: run.order) if _broke(run, point)]
    if failures:
        failure = failures[0].observation.failure
        assert failure is not None
        return "error", None, f"{run_name(failures[0])} failed: {failure.kind}: {failure.message}"
    failed = [check.text for check in checks if check.state == "failed"]
    if failed:
        lost = [f"besides, {metric.metric} {metric.reason}" for metric in metrics if metric.verdict == "regressed"]
        return "invalid", None, "; ".join(failed + lost)
    judged = [metric for metric in metrics if metric.verdict is not None]
    verdict = _worst(metric.verdict for metric in judged if metric.verdict is not None)
    if verdict != "regressed" and pairs < recipe.protocol.pairs_min:
        return "inconclusive", None, f"{pairs} of at least {recipe.protocol.pairs_min} pairs were measured"
    if not judged:
        return "pass", None, f"every check holds in {counted(pairs, 'pair')}; no metric has a gate"
    told = [metric for metric in judged if metric.verdict == verdict]
    reason = "; ".join(f"{metric.metric} {metric.reason}" for metric in told)
    kinds = [metric.kind for metric in judged if metric.gate is not None and is_ratio(metric.gate)]
    return verdict, _joint(kinds) if verdict == "pass" else None, reason


def _broke(run: Run, point: Point) -> bool:
    failure = run.observation.failure
    if failure is None or run.point != point.label or run.kind not in ("preflight", "discarded", "measured"):
        return False
    return not (run.kind == "preflight" and failure.forbidden)


def _metric(recipe: Recipe, point: Point, pairs: Sequence[Pair], name: str) -> MetricResult:
    gate = gate_of(recipe, name)
    unit = next(
        (run.observation.metrics[name].unit for pair in pairs for run in pair[1:] if name in run.observation.metrics),
        "",
    )
    better = better_of(name, unit, gate)
    ratios = ratios_of(pairs, name)
    ruling = None if gate is None else _rule(recipe.protocol, gate, better, unit, ratios, pairs)
    shown = None
    if ratios is not None and len(ratios) >= 2:
        shown = interval(ratios, look_level(recipe.protocol.pairs_min, recipe.protocol.pairs_max))
    return MetricResult(
        name,
        unit,
        better,
        median_of((pair.baseline for pair in pairs), name),
        median_of((pair.treatment for pair in pairs), name),
        ratios or (),
        shown if ruling is None or ruling.interval is None else ruling.interval,
        gate,
        None if ruling is None else ruling.verdict,
        None if ruling is None else ruling.kind,
        ruling is not None and ruling.tripped,
        "" if ruling is None else ruling.reason,
        None if ruling is None else ruling.advice,
        next((figure for figure in point.figures if figure.metric == name), None),
    )


def _rule(
    protocol: Protocol,
    gate: Gate,
    better: Literal["higher", "lower"],
    unit: str,
    ratios: tuple[float, ...] | None,
    pairs: Sequence[Pair],
) -> _Ruling:
    rulings = []
    if is_ratio(gate):
        rulings.append(_by_ratio(protocol, gate, better, ratios))
    if gate.minimum is not None or gate.maximum is not None:
        rulings.append(_by_value(protocol, gate, unit, pairs))
    worst = min(rulings, key=lambda ruling: _ORDER.index(ruling.verdict))
    return worst._replace(reason="; ".join(ruling.reason for ruling in rulings if ruling.verdict == worst.verdict))


def _by_ratio(
    protocol: Protocol, gate: Gate, better: Literal["higher", "lower"], ratios: tuple[float, ...] | None
) -> _Ruling:
    if not ratios:
        return _Ruling("inconclusive", "has no ratio yet")
    level = look_level(protocol.pairs_min, protocol.pairs_max)
    trip = _trip(protocol, gate, better)
    for count in range(2, len(ratios) + 1):
        seen = ratios[:count]
        look = interval(seen, level)
        # Only the first two: any two in a row would err more at the gate, the longer a noisy session the more.
        if count == 2 and all(_worse(ratio, trip, better) for ratio in seen):
            return _Ruling("regressed", _tripped(seen, trip), None, look, True)
        verdict = _look(look, gate) if count >= protocol.pairs_min else None
        if verdict is not None:
            kind = _kind(look, gate, better) if verdict == "pass" else None
            return _Ruling(verdict, _told(verdict, look, seen, gate), kind, look)
    if len(ratios) < 2:
        return _Ruling("inconclusive", f"{change(ratios[0])} in one pair, which shows no spread")
    look = interval(ratios, level)
    return _Ruling("inconclusive", _told("inconclusive", look, ratios, gate), None, look, False, _advice(look, gate))


def _trip(protocol: Protocol, gate: Gate, better: Literal["higher", "lower"]) -> float:
    """The ratio beyond which the first two pairs end it; a gate that allows more is not tripped over."""
    if better == "higher":
        return min(1 - protocol.trip_throughput, gate.min_ratio or math.inf)
    return max(1 + protocol.trip_ttft, gate.max_ratio or 0.0)


def _worse(ratio: float, limit: float, better: Literal["higher", "lower"]) -> bool:
    return ratio < limit if better == "higher" else ratio > limit


def _look(look: Interval, gate: Gate) -> Literal["pass", "regressed"] | None:
    """Whether the whole interval lies inside of the gate, or beyond it."""
    low, high = math.log(look.low), math.log(look.high)
    least = -math.inf if gate.min_ratio is None else math.log(gate.min_ratio) - _SLACK
    most = math.inf if gate.max_ratio is None else math.log(gate.max_ratio) + _SLACK
    if low >= least and high <= most:
        return "pass"
    return "regressed" if high < least or low > most else None


def _kind(look: Interval, gate: Gate, better: Literal["higher", "lower"]) -> PassKind | None:
    """Of a pass: ``improved`` is an interval that is wholly better than 1, ``equal`` one within the margin both ways.

    One that is both is ``improved`` only where the gain is surely more than half of the margin: without any effect one
    interval in twenty lies wholly on the better side by chance.
    """
    gain = math.log(look.low) if better == "higher" else -math.log(look.high)
    margin = margin_of(gate)
    allowed = (gate.min_ratio or 0.0) <= 1 <= (gate.max_ratio or math.inf)
    within = allowed and max(-math.log(look.low), math.log(look.high)) <= margin + _SLACK
    if gain > _SLACK and (not within or gain > margin / 2):
        return "improved"
    return "equal" if within else None


def _tripped(ratios: Sequence[float], trip: float) -> str:
    return f"{change(ratios[0])} and {change(ratios[1])} in the first two pairs: beyond the tripwire of {change(trip)}"


def _told(verdict: Verdict, look: Interval, ratios: Sequence[float], gate: Gate) -> str:
    where = {"pass": "within", "regressed": "wholly beyond", "inconclusive": "across"}[verdict]
    text = f"{change(look.ratio)} [{change(look.low)}, {change(look.high)}], {where} the gate of {_gate(gate)}, "
    text += f"after {look.pairs} pairs"
    chance = sign_flip(ratios, _nearest(look, gate))
    return text if chance is None else f"{text} (exact sign-flip p = {chance:.2g})"


def _gate(gate: Gate) -> str:
    return " to ".join(change(ratio) for ratio in (gate.min_ratio, gate.max_ratio) if ratio is not None)


def _nearest(look: Interval, gate: Gate) -> float:
    """The limit that is nearest to what was seen."""
    limits = [ratio for ratio in (gate.min_ratio, gate.max_ratio) if ratio]
    return min(limits, key=lambda ratio: abs(math.log(look.ratio / ratio)))


def _advice(look: Interval, gate: Gate) -> str:
    margin = margin_of(gate)
    text = (
        f"pair sd {percent(look.deviation)}: {_many(pairs_needed(look.deviation, margin))} pairs needed for a margin "
    )
    text += f"of {percent(_share(gate), 0)}"
    distance = abs(math.log(look.ratio / _nearest(look, gate)))
    if distance < margin / 2:
        needed = pairs_needed(look.deviation, distance) if distance * 20 > look.deviation else None
        text += f"; but {change(look.ratio)} lies at the gate itself: " + (
            f"{_many(needed)} pairs to tell them apart, or another gate" if needed else "only another gate can tell"
        )
    return text


def _many(pairs: int) -> str:
    return str(pairs) if pairs <= _MOST_PAIRS else f"more than {_MOST_PAIRS}"


def _share(gate: Gate) -> float:
    """The margin as people write it: 0.03 for a least ratio of 0.97, 0.1 for a most of 1.10."""
    return min(abs(1 - ratio) for ratio in (gate.min_ratio, gate.max_ratio) if ratio is not None)


def _by_value(protocol: Protocol, gate: Gate, unit: str, pairs: Sequence[Pair]) -> _Ruling:
    """A limit on the treatment's own value: every run must keep it, from ``pairs_min`` pairs on."""
    values = [value for pair in pairs if (value := value_of(pair.treatment, gate.metric)) is not None]
    if len(values) < protocol.pairs_min:
        return _Ruling("inconclusive", f"{len(values)} of at least {protocol.pairs_min} runs have it")
    beyond = [
        value
        for value in values
        if (gate.minimum is not None and value < gate.minimum) or (gate.maximum is not None and value > gate.maximum)
    ]
    limits = [f"at least {figure(gate.minimum, unit)}"] if gate.minimum is not None else []
    limits += [f"at most {figure(gate.maximum, unit)}"] if gate.maximum is not None else []
    limit = " and ".join(limits)
    span = " to ".join(dict.fromkeys((figure(min(values)), figure(max(values)))))
    if not beyond:
        return _Ruling("pass", f"is {span} {unit}, as it may be: {limit}")
    if len(beyond) == len(values):
        return _Ruling("regressed", f"is {span} {unit} in every treatment run; it must be {limit}")
    return _Ruling(
        "inconclusive",
        f"is beyond its limit in {len(beyond)} of {len(values)} treatment runs: {span} {unit}, it must be {limit}",
        advice="the limit lies within the spread of the runs: move it, or make the runs longer",
    )
