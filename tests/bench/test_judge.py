"""Verdicts on runs with given numbers; intervals are worked out by hand with the printed t table."""

from __future__ import annotations

import math

import pytest
from support.judging import a_recipe, a_run, an_observation, some_runs

from patchkit.bench.judge import decided, judge_point, overall
from patchkit.bench.observation import Failure, Measured, Observation
from patchkit.bench.report import MetricResult, PointResult, Run
from patchkit.model.recipe import Figure, Gate, Protocol, Recipe


def judged(recipe: Recipe, runs: list[Run]) -> PointResult:
    return judge_point(recipe, recipe.points[0], runs)


def metric(result: PointResult, name: str) -> MetricResult:
    return next(found for found in result.metrics if found.metric == name)


def throughputs(baseline: list[float], treatment: list[float]) -> list[Run]:
    return some_runs({"throughput": baseline}, {"throughput": treatment})


ONLY = (Gate("throughput", min_ratio=0.97),)


def test_the_study_s_loss_is_found_by_the_tripwire_after_two_pairs() -> None:
    recipe = a_recipe()
    runs = some_runs(
        {"throughput": [19320, 19217], "ttft": [0.275, 0.275]},
        {"throughput": [14258, 14258], "ttft": [1.209, 1.209]},
    )
    assert decided(recipe, recipe.points[0], runs[:2]) is None
    result = decided(recipe, recipe.points[0], runs)
    assert result is not None
    assert (result.verdict, result.kind) == ("regressed", None)
    lost = metric(result, "throughput")
    assert (lost.verdict, lost.tripped) == ("regressed", True)
    assert lost.ratios == (14258 / 19320, 14258 / 19217)
    assert (lost.baseline, lost.treatment) == ((19320 + 19217) / 2, 14258)
    assert lost.reason == ("-26.2 % and -25.8 % in the first two pairs: beyond the tripwire of -20.0 %")
    assert metric(result, "ttft").reason.startswith(
        "x4.40 and x4.40 in the first two pairs: beyond the tripwire of +50.0 %"
    )


def test_the_study_s_unstable_arm_is_invalid() -> None:
    recipe = a_recipe(ONLY)
    result = decided(recipe, recipe.points[0], throughputs([13470, 13470], [11641, 8839]))
    assert result is not None
    assert result.verdict == "invalid"
    assert "8,839 to 11,641 (31.7 %) in 2 runs" in result.reason


def test_no_effect_is_equal_after_the_fewest_pairs() -> None:
    recipe = a_recipe()
    runs = some_runs(
        {"throughput": [100.0, 100.3, 99.9], "ttft": [0.2, 0.2, 0.2]},
        {"throughput": [100.1, 100.2, 100.0], "ttft": [0.2, 0.201, 0.2]},
    )
    assert decided(recipe, recipe.points[0], runs[:4]) is None
    result = decided(recipe, recipe.points[0], runs)
    assert result is not None
    assert (result.verdict, result.kind) == ("pass", "equal")
    assert all(found.interval is not None and found.interval.pairs == 3 for found in result.metrics)


def test_the_interval_is_that_of_the_hand() -> None:
    # Log ratios 0, +-d: mean 0, deviation d; t at 1 - 0.0253 with 2 degrees of freedom is 4.275 (4.303 at 0.025).
    d = 0.012
    recipe = a_recipe(ONLY)
    result = judged(recipe, throughputs([100.0] * 3, [100.0, 100 * math.exp(d), 100 * math.exp(-d)]))
    found = metric(result, "throughput").interval
    assert found is not None
    assert math.log(found.high) == pytest.approx(4.275 * d / math.sqrt(3), rel=1e-3)
    assert (found.ratio, found.low) == (pytest.approx(1), pytest.approx(1 / found.high))
    assert (found.level, found.pairs, found.deviation) == (0.0253, 3, pytest.approx(d))
    # 2.96 % is within 3 %: -ln 0.97 is 0.03046.
    assert result.verdict == "pass"
    wider = [100.0, 100 * math.exp(d * 1.04), 100 * math.exp(-d * 1.04)]
    assert judged(recipe, throughputs([100.0] * 3, wider)).verdict == "inconclusive"


def test_zero_spread_at_the_gate_keeps_it_and_beyond_it_does_not() -> None:
    recipe = a_recipe(ONLY)
    assert judged(recipe, throughputs([100.0] * 3, [97.0] * 3)).verdict == "pass"
    beyond = judged(recipe, throughputs([100.0] * 3, [96.99] * 3))
    assert (beyond.verdict, metric(beyond, "throughput").tripped) == ("regressed", False)
    assert beyond.reason == "throughput -3.0 % [-3.0 %, -3.0 %], wholly beyond the gate of -3.0 %, after 3 pairs"


def test_inconclusive_says_what_it_would_need() -> None:
    # Log ratios 0, 0, 0, +-d have the deviation d / sqrt(2): 2.1 %.
    d = 0.021 * math.sqrt(2)
    recipe = a_recipe(ONLY)
    runs = throughputs([100.0] * 5, [99.0, 99 * math.exp(d), 99 * math.exp(-d), 99.0, 99.0])
    result = decided(recipe, recipe.points[0], runs)
    assert result is not None
    assert result.verdict == "inconclusive"
    assert metric(result, "throughput").advice == "pair sd 2.1 %: 7 pairs needed for a margin of 3 %"
    assert "across the gate of -3.0 %, after 5 pairs (exact sign-flip p = " in result.reason
    assert decided(recipe, recipe.points[0], runs[:8]) is None


def test_too_many_pairs_are_not_counted() -> None:
    # Logs 0, -0.3285, 0.2624: mean -0.022, deviation 0.296.
    recipe = a_recipe(ONLY)
    result = judged(recipe, throughputs([100.0, 125.0, 100.0], [100.0, 90.0, 130.0]))
    advice = metric(result, "throughput").advice
    assert advice is not None
    assert advice.startswith("pair sd 29.6 %: more than 100 pairs needed for a margin of 3 %")


def test_an_effect_at_the_gate_needs_another_gate() -> None:
    recipe = a_recipe(ONLY)
    result = judged(recipe, throughputs([100.0] * 5, [97.2, 96.8, 97.5, 96.5, 97.0]))
    advice = metric(result, "throughput").advice
    assert advice is not None
    assert advice.startswith("pair sd 0.4 %: 3 pairs needed for a margin of 3 %; but -3.0 % lies at the gate itself")


@pytest.mark.parametrize(
    ("gain", "kind"),
    [
        (1.239, "improved"),  # the study's block size
        (1.047, "improved"),  # the fix upstream, beyond the margin
        (1.016, "improved"),  # surely more than half of the margin
        (1.004, "equal"),
        (1.0, "equal"),
        (0.98, "equal"),
    ],
)
def test_improved_or_equal(gain: float, kind: str) -> None:
    result = judged(a_recipe(ONLY), throughputs([100.0] * 3, [100 * gain] * 3))
    assert (result.verdict, result.kind, metric(result, "throughput").kind) == ("pass", kind, kind)


def test_a_pass_that_is_neither() -> None:
    # 2 % with a half width of 2.5 %: from -0.5 % to +4.5 %.
    d = 0.025 * math.sqrt(3) / 4.275
    result = judged(a_recipe(ONLY), throughputs([100.0] * 3, [102.0, 102 * math.exp(d), 102 * math.exp(-d)]))
    assert (result.verdict, result.kind) == ("pass", None)


def test_a_lower_metric_is_judged_the_other_way() -> None:
    recipe = a_recipe((Gate("ttft", max_ratio=1.1),))
    for ratio, verdict, kind in ((0.5, "pass", "improved"), (1.1, "pass", "equal"), (1.12, "regressed", None)):
        result = judged(recipe, some_runs({"ttft": [0.2] * 3}, {"ttft": [0.2 * ratio] * 3}))
        assert (result.verdict, result.kind) == (verdict, kind)


def test_a_gate_that_wants_a_gain() -> None:
    recipe = a_recipe((Gate("throughput", min_ratio=1.2),))
    assert judged(recipe, throughputs([100.0] * 3, [124.0] * 3)).kind == "improved"
    assert judged(recipe, throughputs([100.0] * 3, [110.0] * 3)).verdict == "regressed"


def test_a_gate_on_both_sides() -> None:
    recipe = a_recipe((Gate("kv_cache_tokens", min_ratio=0.99, max_ratio=1.01),))
    for ratio, verdict in ((1.0, "pass"), (1.05, "regressed"), (0.95, "regressed")):
        runs = some_runs({"kv_cache_tokens": [1000.0] * 3}, {"kv_cache_tokens": [1000 * ratio] * 3})
        assert judged(recipe, runs).verdict == verdict


def test_the_tripwire_is_that_of_the_first_two_pairs_and_waits_for_no_least() -> None:
    recipe = a_recipe(ONLY, Protocol(pairs_min=4, pairs_max=10))
    baseline = [100.0, 101.0, 99.0]
    assert not metric(judged(recipe, throughputs(baseline, [70.0, 101.0, 70.0])), "throughput").tripped
    assert metric(judged(recipe, throughputs(baseline, [79.0, 75.0, 101.0])), "throughput").tripped
    assert not metric(judged(recipe, throughputs(baseline, [82.0, 82.0, 101.0])), "throughput").tripped
    assert not metric(judged(recipe, throughputs(baseline, [101.0, 79.0, 75.0])), "throughput").tripped


def test_a_gate_that_allows_more_is_not_tripped_over() -> None:
    recipe = a_recipe((Gate("ttft", max_ratio=3.0),))
    result = judged(recipe, some_runs({"ttft": [0.2] * 3}, {"ttft": [0.5] * 3}))
    assert result.verdict == "pass"


def test_the_first_look_that_decides_stays() -> None:
    recipe = a_recipe((*ONLY, Gate("ttft", max_ratio=1.1)))
    runs = some_runs(
        {"throughput": [100.0] * 4, "ttft": [0.2, 0.2, 0.2, 0.2]},
        {"throughput": [100.0, 100.0, 100.0, 96.0], "ttft": [0.2, 0.23, 0.19, 0.2]},
    )
    found = metric(judged(recipe, runs), "throughput")
    assert found.verdict == "pass"
    assert found.interval is not None
    assert found.interval.pairs == 3
    assert found.ratios == (1.0, 1.0, 1.0, 0.96)


def test_absolute_gates() -> None:
    recipe = a_recipe((Gate("model_memory", maximum=4.7),))
    for values, verdict in (([4.67] * 3, "pass"), ([4.8] * 3, "regressed"), ([4.67, 4.8, 4.67], "inconclusive")):
        result = judged(recipe, some_runs({"model_memory": [9.0] * 3}, {"model_memory": values}))
        assert (result.verdict, result.kind) == (verdict, None)
    assert judged(recipe, some_runs({"model_memory": [9.0] * 2}, {"model_memory": [4.0] * 2})).verdict == "inconclusive"
    least = a_recipe((Gate("kv_cache_tokens", minimum=415872, min_ratio=1.0),))
    runs = some_runs({"kv_cache_tokens": [415872.0] * 3}, {"kv_cache_tokens": [400000.0] * 3})
    found = metric(judged(least, runs), "kv_cache_tokens")
    assert found.verdict == "regressed"
    assert "is 400,000 tokens in every treatment run; it must be at least 415,872 tokens" in found.reason


def test_metrics_without_gates_are_shown_with_the_published_figures() -> None:
    recipe = a_recipe(ONLY, figures=(Figure("itl", 0.0177, 0.0312), Figure("throughput", 13479, 16700)))
    runs = some_runs({"throughput": [100.0] * 3, "itl": [0.02] * 3}, {"throughput": [100.0] * 3, "itl": [0.04] * 3})
    result = judged(recipe, runs)
    shown = metric(result, "itl")
    assert (shown.verdict, shown.better, shown.unit) == (None, "lower", "s")
    assert shown.interval is not None
    assert shown.interval.ratio == pytest.approx(2)
    assert shown.figure == Figure("itl", 0.0177, 0.0312)
    assert metric(result, "throughput").figure == Figure("throughput", 13479, 16700)
    assert [found.metric for found in result.metrics] == ["throughput", "itl"]


def test_a_gated_metric_that_is_not_there_is_invalid() -> None:
    result = judged(a_recipe(), throughputs([100.0] * 3, [100.0] * 3))
    assert result.verdict == "invalid"
    assert "run 1 (baseline, pair 1) has no ttft, which has a gate" in result.reason


def test_a_value_that_has_no_ratio_is_invalid() -> None:
    result = judged(a_recipe(ONLY), throughputs([100.0] * 3, [100.0, 0.0, 100.0]))
    assert (result.verdict, metric(result, "throughput").interval) == ("invalid", None)


def test_without_gates_the_checks_decide() -> None:
    recipe = a_recipe((), Protocol(pairs_min=1, pairs_max=1))
    result = decided(recipe, recipe.points[0], throughputs([100.0], [50.0]))
    assert result is not None
    assert (result.verdict, result.kind) == ("pass", None)
    assert result.reason == "every check holds in 1 pair; no metric has a gate"


def test_one_pair_decides_no_ratio() -> None:
    recipe = a_recipe(ONLY, Protocol(pairs_min=1, pairs_max=1))
    result = decided(recipe, recipe.points[0], throughputs([100.0], [100.0]))
    assert result is not None
    assert result.reason == "throughput 0.0 % in one pair, which shows no spread"
    assert result.verdict == "inconclusive"


def test_a_process_that_failed_is_an_error_at_once() -> None:
    recipe = a_recipe()
    broken = Observation(failure=Failure("RuntimeError", "no free memory"))
    for kind, pair in (("preflight", None), ("discarded", None), ("measured", 1)):
        runs = [a_run(1, "treatment", pair, broken, kind=kind)]
        result = decided(recipe, recipe.points[0], runs)
        assert result is not None
        assert result.verdict == "error"
        assert result.reason.endswith(f"(treatment, {'pair 1' if pair else kind}) failed: RuntimeError: no free memory")
    assert decided(recipe, recipe.points[0], [a_run(1, "baseline", None, broken, kind="confirm")]) is None


def test_the_preflight_that_compiles_is_invalid_at_once() -> None:
    recipe = a_recipe()
    failure = Failure("RuntimeError", "a compilation of _sample", forbidden=True)
    runs = [a_run(1, "treatment", None, Observation(failure=failure), kind="preflight")]
    result = decided(recipe, recipe.points[0], runs)
    assert result is not None
    assert result.verdict == "invalid"
    assert result.reason == "the treatment compiles in the serving path: a compilation of _sample"


def test_nothing_measured_yet() -> None:
    recipe = a_recipe()
    assert decided(recipe, recipe.points[0], []) is None
    assert judged(recipe, []).reason == "0 of at least 3 pairs were measured"
    assert judged(recipe, []).verdict == "inconclusive"


def test_runs_of_other_points_and_kinds_do_not_count() -> None:
    recipe = a_recipe(ONLY)
    other = some_runs({"throughput": [100.0] * 3}, {"throughput": [1.0] * 3}, point="b512")
    discarded = a_run(99, "treatment", None, an_observation("treatment", {"throughput": 1.0}), kind="discarded")
    result = judged(recipe, [*throughputs([100.0] * 3, [100.0] * 3), discarded, *other])
    assert (result.verdict, result.kind) == ("pass", "equal")


def test_a_run_made_anew_takes_the_place_of_the_first() -> None:
    recipe = a_recipe(ONLY)
    runs = throughputs([100.0] * 3, [100.0, 100.0, 50.0])
    again = a_run(7, "treatment", 3, an_observation("treatment", {"throughput": 100.0}))
    assert judged(recipe, [again, *runs]).kind == "equal"


def test_costs_follow_from_the_medians() -> None:
    from patchkit.model.recipe import Economics

    recipe = a_recipe(ONLY, others={"economics": Economics(197, 1.2)})
    below, above = judged(recipe, throughputs([1540.0] * 3, [19511.0] * 3)).costs
    assert (below.arm, above.arm) == ("baseline", "treatment")
    assert (round(below.millijoule_per_token or 0), round(above.millijoule_per_token or 0)) == (128, 10)
    assert judged(a_recipe(ONLY), throughputs([1540.0] * 3, [19511.0] * 3)).costs == ()


def test_overall_is_the_worst_point() -> None:
    def point(label: str, verdict: str, kind: str | None = None) -> PointResult:
        return PointResult(label, verdict, kind, f"because {verdict}", (), ())  # type: ignore[arg-type]

    assert overall([point("a", "pass", "equal"), point("b", "pass", "improved")])[:2] == ("pass", "improved")
    assert overall([point("a", "pass", "equal"), point("b", "pass", "equal")])[:2] == ("pass", "equal")
    assert overall([point("a", "pass", "equal"), point("b", "pass")])[:2] == ("pass", None)
    assert overall([point("a", "pass"), point("b", "inconclusive")]) == (
        "inconclusive",
        None,
        "b: because inconclusive",
    )
    assert overall([point("a", "inconclusive"), point("b", "regressed"), point("", "regressed")]) == (
        "regressed",
        None,
        "b: because regressed; because regressed",
    )
    assert overall([point("a", "regressed"), point("b", "invalid")])[0] == "invalid"
    assert overall([point("a", "error"), point("b", "invalid")])[0] == "error"
    assert overall([])[0] == "error"


def test_a_metric_of_a_command_has_its_gate_s_direction() -> None:
    def one(values: float) -> list[Run]:
        runs = throughputs([100.0] * 3, [100.0] * 3)
        return [
            run._replace(
                observation=run.observation._replace(
                    metrics={"mine": Measured(values if run.arm == "treatment" else 1.0, "points/s")}
                )
            )
            for run in runs
        ]

    assert metric(judged(a_recipe((Gate("mine", max_ratio=1.1),)), one(2.0)), "mine").verdict == "regressed"
    assert metric(judged(a_recipe((Gate("mine", min_ratio=0.9),)), one(2.0)), "mine").kind == "improved"
    assert metric(judged(a_recipe(()), one(2.0)), "mine").better == "higher"


def test_no_metric_passes_before_the_fewest_pairs() -> None:
    recipe = a_recipe(ONLY, Protocol(pairs_min=4, pairs_max=6))
    result = judged(recipe, throughputs([100.0] * 3, [100.0] * 3))
    assert (result.verdict, metric(result, "throughput").verdict) == ("inconclusive", "inconclusive")
    assert result.reason == "3 of at least 4 pairs were measured"
    assert judged(recipe, throughputs([100.0] * 4, [100.0] * 4)).verdict == "pass"
