"""What holds of every verdict, whatever the numbers: mirrored arms, other units, more harm, another order."""

from __future__ import annotations

import random
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st
from properties.effort import effort
from support.judging import a_recipe, some_runs

from patchkit.bench.judge import decided, judge_point
from patchkit.bench.report import MetricResult, PointResult, Run
from patchkit.model.recipe import Gate, Protocol, Recipe

#: A gate that is the same seen from either arm, so that mirrored arms have mirrored verdicts.
MIRROR = Gate("throughput", min_ratio=0.95, max_ratio=1 / 0.95)
ONE_SIDED = Gate("throughput", min_ratio=0.95)
BETTER = ("regressed", "inconclusive", "pass")


@st.composite
def sessions(draw: st.DrawFn) -> tuple[list[float], list[float]]:
    """Values of a baseline and a treatment: a common drift, an effect, and noise that is mostly small."""
    pairs = draw(st.integers(1, 8))
    effect = draw(st.sampled_from([1.0, 1.0, 0.98, 0.95, 0.93, 0.7, 1.2]))
    noise = draw(st.sampled_from([0.0, 0.001, 0.01, 0.04, 0.2]))
    parts = draw(st.lists(st.floats(-1, 1), min_size=2 * pairs, max_size=2 * pairs))
    values = [1000 * (1 + noise * part) for part in parts]
    return values[:pairs], [effect * value for value in values[pairs:]]


def recipe_of(gate: Gate, pairs_max: int = 8) -> Recipe:
    return a_recipe((gate,), Protocol(3, pairs_max))


def judged(gate: Gate, baseline: Sequence[float], treatment: Sequence[float]) -> PointResult:
    recipe = recipe_of(gate)
    return judge_point(recipe, recipe.points[0], some_runs({"throughput": baseline}, {"throughput": treatment}))


def metric(result: PointResult) -> MetricResult:
    return result.metrics[0]


@given(sessions())
@effort(150)
def test_mirrored_arms_have_mirrored_results(session: tuple[list[float], list[float]]) -> None:
    # The tripwire looks one way only, on purpose: it is out of reach here.
    recipe = a_recipe((MIRROR,), Protocol(3, 8, trip_throughput=0.999))
    baseline, treatment = session
    one, other = (
        metric(judge_point(recipe, recipe.points[0], some_runs({"throughput": below}, {"throughput": above})))
        for below, above in ((baseline, treatment), (treatment, baseline))
    )
    assert one.verdict == other.verdict
    assert (one.baseline, one.treatment) == (other.treatment, other.baseline)
    if one.interval is not None and other.interval is not None:
        assert abs(one.interval.ratio * other.interval.ratio - 1) < 1e-9
        assert abs(one.interval.low * other.interval.high - 1) < 1e-9
        assert one.interval.pairs == other.interval.pairs


@given(sessions(), st.sampled_from([1e-6, 0.125, 3.7, 1e6]))
@effort(100)
def test_another_unit_changes_nothing(session: tuple[list[float], list[float]], factor: float) -> None:
    baseline, treatment = session
    one = judged(ONE_SIDED, baseline, treatment)
    other = judged(ONE_SIDED, [factor * value for value in baseline], [factor * value for value in treatment])
    assert (one.verdict, one.kind) == (other.verdict, other.kind)
    assert [check.state for check in one.checks] == [check.state for check in other.checks]


@given(sessions(), st.floats(0.3, 1.0))
@effort(150)
def test_more_harm_is_never_better(session: tuple[list[float], list[float]], harm: float) -> None:
    baseline, treatment = session
    before = judged(ONE_SIDED, baseline, treatment)
    after = judged(ONE_SIDED, baseline, [harm * value for value in treatment])
    one, other = metric(before).verdict, metric(after).verdict
    assert one is not None
    assert other is not None
    if one == "regressed":
        assert other == "regressed"
    assert not (one != "pass" and other == "pass")
    assert not (before.verdict != "pass" and after.verdict == "pass")


@given(sessions(), st.integers(0, 2**32))
@effort(100)
def test_the_order_of_runs_in_a_file_does_not_matter(session: tuple[list[float], list[float]], seed: int) -> None:
    baseline, treatment = session
    recipe = recipe_of(ONE_SIDED)
    runs = some_runs({"throughput": baseline}, {"throughput": treatment})
    shuffled = random.Random(seed).sample(runs, len(runs))
    assert judge_point(recipe, recipe.points[0], shuffled) == judge_point(recipe, recipe.points[0], runs)


def _inert(run: Run) -> Run:
    return run._replace(observation=run.observation._replace(probes=()))


def _profiled(run: Run) -> Run:
    return run._replace(observation=run.observation._replace(profiler=True))


def _other_output(run: Run) -> Run:
    tokens = run.observation.tokens
    assert tokens is not None
    return run._replace(observation=run.observation._replace(tokens=tokens._replace(sha256="00")))


def _recompiling(run: Run) -> Run:
    return run._replace(observation=run.observation._replace(compilations={"_sample": 1}))


@given(
    sessions(),
    st.lists(st.tuples(st.integers(0, 15), st.sampled_from([_inert, _profiled, _other_output, _recompiling]))),
)
@effort(150)
def test_no_pass_with_a_failed_check(session: tuple[list[float], list[float]], faults: list) -> None:  # type: ignore[type-arg]
    runs = some_runs({"throughput": session[0]}, {"throughput": session[1]})
    for at, fault in faults:
        if at < len(runs) and (runs[at].arm == "treatment" or fault is not _recompiling):
            runs[at] = fault(runs[at])
    recipe = recipe_of(ONE_SIDED)
    result = judge_point(recipe, recipe.points[0], runs)
    failed = [check for check in result.checks if check.state == "failed"]
    assert (result.verdict == "invalid") == bool(failed)
    if any(fault is _profiled and at < len(runs) for at, fault in faults):
        assert result.verdict == "invalid"


@given(sessions())
@effort(100)
def test_asking_after_every_pair_is_asking_once(session: tuple[list[float], list[float]]) -> None:
    """What ended a session is what judging all of its runs says, and nothing that comes later changes the metric."""
    pairs = len(session[0])
    recipe = recipe_of(ONE_SIDED, max(3, pairs))
    runs = some_runs({"throughput": session[0]}, {"throughput": session[1]})
    for pair in range(1, pairs + 1):
        result = decided(recipe, recipe.points[0], runs[: 2 * pair])
        if result is not None:
            assert result == judge_point(recipe, recipe.points[0], runs[: 2 * pair])
            later = metric(judge_point(recipe, recipe.points[0], runs))
            if metric(result).verdict in ("pass", "regressed"):
                assert (later.verdict, later.interval) == (metric(result).verdict, metric(result).interval)
            assert result.verdict != "inconclusive" or pair == recipe.protocol.pairs_max
            return
    assert pairs < recipe.protocol.pairs_max
