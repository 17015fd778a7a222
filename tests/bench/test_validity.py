"""Each condition of validity by an engine that misbehaves in just that way; and what nobody could tell."""

from __future__ import annotations

from typing import Any

import pytest
from support.judging import FIRED, PATCH, a_recipe, a_run, some_runs

from patchkit.bench.judge import decided
from patchkit.bench.observation import Fired, Observation, Phase, Tokens
from patchkit.bench.report import Check, Run
from patchkit.bench.validity import check_runs, on_trial
from patchkit.model.recipe import Gate, LogLine, Recipe, Workload

SAME = {"throughput": [100.0] * 3, "ttft": [0.2] * 3}


def a_session(of_baseline: dict[str, Any] | None = None, of_treatment: dict[str, Any] | None = None) -> list[Run]:
    return some_runs(SAME, SAME, of_baseline=of_baseline, of_treatment=of_treatment)


def check(recipe: Recipe, runs: list[Run], name: str) -> Check:
    return {found.name: found for found in check_runs(recipe, recipe.points[0], runs)}[name]


def one_run(runs: list[Run], order: int, **changed: Any) -> list[Run]:
    """The runs with one observation changed."""
    return [
        run._replace(observation=run.observation._replace(**changed)) if run.order == order else run for run in runs
    ]


def is_invalid(recipe: Recipe, runs: list[Run], name: str) -> str:
    """The text of the only failed check, which makes the point invalid with that reason."""
    failed = [found for found in check_runs(recipe, recipe.points[0], runs) if found.state == "failed"]
    assert [found.name for found in failed] == [name]
    result = decided(recipe, recipe.points[0], runs)
    assert result is not None
    assert (result.verdict, result.kind) == ("invalid", None)
    assert result.reason.partition("; besides, ")[0] == failed[0].text
    return failed[0].text


def test_a_good_session_holds_everything() -> None:
    recipe = a_recipe()
    checks = check_runs(recipe, recipe.points[0], a_session())
    assert {found.name: found.state for found in checks} == {
        "metrics": "held",
        "probes": "held",
        "requests": "held",
        "output-count": "held",
        "output-identical": "held",
        "profiler": "held",
        "versions": "held",
        "prefix-cache": "not-checked",
        "compilations": "held",
        "treatment-stable": "held",
        "baseline-stable": "held",
    }
    assert check_runs(recipe, recipe.points[0], []) == ()


class TestProbes:
    def test_one_that_did_not_fire_in_one_run(self) -> None:
        text = is_invalid(a_recipe(), one_run(a_session(), 3, probes=()), "probes")
        assert text == f"run 3 (treatment, pair 2): no probe of {PATCH} fired"

    def test_loaded_and_never_run(self) -> None:
        runs = a_session(of_treatment={"probes": (FIRED[0]._replace(ran=False),)})
        text = is_invalid(a_recipe(), runs, "probes")
        assert f"run 2 (treatment, pair 1): {PATCH} was loaded, but sample never ran" in text

    @pytest.mark.parametrize(("ran", "verb"), [(True, "ran"), (False, "was loaded")])
    def test_fired_in_the_baseline(self, ran: bool, verb: str) -> None:
        runs = one_run(a_session(), 1, probes=(FIRED[0]._replace(ran=ran),))
        for gate in ("required", "any"):
            text = is_invalid(a_recipe(probes=gate), runs, "probes")
            assert text == f"run 1 (baseline, pair 1): {PATCH} {verb} in the baseline (sample)"

    def test_each_patch_on_trial_must_fire(self) -> None:
        text = is_invalid(a_recipe(patches=(PATCH, "other")), a_session(), "probes")
        assert "no probe of other fired" in text
        assert PATCH not in text

    def test_a_patch_of_both_arms_is_not_on_trial(self) -> None:
        recipe = a_recipe(patches=("rig-fix", PATCH))
        point = recipe.points[0]
        point = point._replace(baseline=point.baseline._replace(patches=("rig-fix",)))
        assert on_trial(point) == (PATCH,)
        both = (*FIRED, Fired("rig-fix", 1, "start", 7, "EngineCore", True))
        runs = a_session({"probes": both[1:]}, {"probes": both})
        assert check(recipe._replace(points=(point,)), runs, "probes").state == "held"

    def test_some_edits_of_a_patch_need_not_run(self) -> None:
        probes = (*FIRED, Fired(PATCH, 2, "_warm_up", 7, "EngineCore", False))
        found = check(a_recipe(), a_session(of_treatment={"probes": probes}), "probes")
        assert found.state == "held"
        assert f"loaded and never run: _warm_up of {PATCH}" in found.text

    def test_not_required(self) -> None:
        found = check(a_recipe(probes="any"), a_session(of_treatment={"probes": ()}), "probes")
        assert found.state == "noted"
        assert check(a_recipe(probes="any"), a_session(), "probes").state == "held"

    def test_no_patch_on_trial(self) -> None:
        found = check(a_recipe(patches=()), a_session(of_treatment={"probes": ()}), "probes")
        assert found == Check(
            "probes", "not-checked", "no patch is on trial: the treatment has none that the baseline lacks"
        )


class TestOutput:
    def test_failed_requests(self) -> None:
        runs = one_run(a_session(), 4, tokens=Tokens(32, 32, "ab" * 32, 3))
        assert is_invalid(a_recipe(), runs, "requests") == "run 4 (baseline, pair 2): 3 requests failed"
        one = one_run(a_session(), 4, tokens=Tokens(32, 32, "ab" * 32, 1))
        assert is_invalid(a_recipe(), one, "requests") == "run 4 (baseline, pair 2): 1 request failed"

    def test_fewer_tokens_than_asked_for(self) -> None:
        runs = one_run(a_session(), 3, tokens=Tokens(4096, 32, "ab" * 32))
        for gate in ("identical", "count", "any"):
            text = is_invalid(a_recipe(tokens=gate), runs, "output-count")
            assert text == "run 3 (treatment, pair 2): 32 output tokens came of 4,096 asked for"

    def test_no_token_at_all(self) -> None:
        runs = one_run(a_session(), 2, tokens=Tokens(None, 0, "ab" * 32))
        assert is_invalid(a_recipe(), runs, "output-count") == "run 2 (treatment, pair 1): no output token came"

    def test_stopping_early_is_allowed_where_the_end_of_text_counts(self) -> None:
        recipe = a_recipe(workload=Workload(("a",), 4, ignore_eos=False))
        runs = a_session({"tokens": Tokens(512, 40, "ab")}, {"tokens": Tokens(512, 40, "ab")})
        assert check(recipe, runs, "output-count").text == "40 output tokens in every run"

    def test_other_counts(self) -> None:
        runs = one_run(a_session(), 2, tokens=Tokens(None, 31, "cd"))
        assert is_invalid(a_recipe(tokens="count"), runs, "output-count") == "the runs gave 31 or 32 output tokens"
        assert check(a_recipe(tokens="any"), runs, "output-count").state == "held"

    def test_arms_that_ask_for_other_numbers(self) -> None:
        recipe = a_recipe(tokens="count")
        point = recipe.points[0]
        twice = point.treatment._replace(workload=point.treatment.workload._replace(batch_mult=4))
        recipe = recipe._replace(points=(point._replace(treatment=twice),))
        runs = a_session(of_treatment={"tokens": Tokens(64, 64, "cd")})
        assert check(recipe, runs, "output-count").text == (
            "32 output tokens in every baseline run, 64 output tokens in every treatment run"
        )
        text = is_invalid(recipe, one_run(runs, 3, tokens=Tokens(64, 65, "cd")), "output-count")
        assert text == "the treatment runs gave 64 or 65 output tokens"

    @pytest.mark.parametrize("tokens", [None, Tokens(32, None, None)])
    def test_nobody_counted(self, tokens: Tokens | None) -> None:
        runs = a_session({"tokens": tokens}, {"tokens": tokens})
        assert "nobody counted its output tokens" in is_invalid(a_recipe(tokens="count"), runs, "output-count")
        assert check(a_recipe(tokens="any"), runs, "output-count").state == "not-checked"

    def test_outputs_differ_between_arms(self) -> None:
        runs = a_session(of_treatment={"tokens": Tokens(32, 32, "cd" * 32)})
        assert is_invalid(a_recipe(), runs, "output-identical") == (
            "the arms answer differently: SHA-256 abababababab in every baseline run, "
            "cdcdcdcdcdcd in every treatment run"
        )
        assert check(a_recipe(tokens="count"), runs, "output-identical").state == "not-checked"

    def test_the_engine_itself_is_not_deterministic(self) -> None:
        runs = one_run(a_session(), 4, tokens=Tokens(32, 32, "ef" * 32))
        assert is_invalid(a_recipe(), runs, "output-identical") == (
            "the engine itself is not deterministic: 2 different outputs in baseline runs, for the same requests"
        )

    def test_the_patched_engine_is_not_deterministic(self) -> None:
        runs = one_run(a_session(), 3, tokens=Tokens(32, 32, "ef" * 32))
        assert is_invalid(a_recipe(), runs, "output-identical") == (
            "the patched engine is not deterministic: 2 different outputs in treatment runs, one in baseline runs"
        )

    def test_outputs_that_are_not_known(self) -> None:
        runs = a_session({"tokens": Tokens(32, 32, None)}, {"tokens": Tokens(32, 32, None)})
        assert "its output tokens are not known" in is_invalid(a_recipe(), runs, "output-identical")
        assert check(a_recipe(tokens="count"), runs, "output-count").state == "held"


def test_whether_a_profiler_was_on_may_be_unknown() -> None:
    assert check(a_recipe(), one_run(a_session(), 5, profiler=None), "profiler").state == "not-checked"


def test_a_profiler_that_was_on() -> None:
    runs = one_run(a_session(), 5, profiler=True)
    assert is_invalid(a_recipe(), runs, "profiler") == (
        "run 5 (baseline, pair 3): a profiler was on, which is in its times"
    )


class TestVersions:
    def test_lines_that_differ(self) -> None:
        runs = one_run(a_session(), 6, version_lines=("Initializing a V1 LLM engine (v0.25.0)",))
        assert is_invalid(a_recipe(), runs, "versions") == (
            "the engine says of itself: Initializing a V1 LLM engine (v0.24.0) in runs 1, 2, 3, 4, 5, "
            "Initializing a V1 LLM engine (v0.25.0) in run 6"
        )

    def test_a_run_that_says_nothing(self) -> None:
        assert "nothing in run 2" in is_invalid(a_recipe(), one_run(a_session(), 2, version_lines=()), "versions")

    def test_distributions_that_differ(self) -> None:
        runs = one_run(a_session(), 1, versions={"jax": "0.7.0"})
        assert is_invalid(a_recipe(), runs, "versions") == "jax: 0.7.0 in run 1, 0.10.2 in runs 2, 3, 4, 5, 6"

    def test_nobody_says(self) -> None:
        nothing: dict[str, Any] = {"version_lines": (), "versions": {}}
        assert check(a_recipe(), a_session(nothing, nothing), "versions").state == "not-checked"


class TestPrefixCache:
    def test_rates_that_differ(self) -> None:
        runs = a_session({"prefix_cache_hit_rate": 0.3}, {"prefix_cache_hit_rate": 0.9})
        assert is_invalid(a_recipe(), runs, "prefix-cache") == "hit rates differ: 30.0 % in run 1, 90.0 % in run 6"

    def test_a_hundredth_is_allowed(self) -> None:
        runs = a_session({"prefix_cache_hit_rate": 0.5}, {"prefix_cache_hit_rate": 0.509})
        assert check(a_recipe(), runs, "prefix-cache").state == "held"

    def test_one_that_is_not_known(self) -> None:
        runs = one_run(a_session({"prefix_cache_hit_rate": 0.0}, {"prefix_cache_hit_rate": 0.0}), 3)
        runs = one_run(runs, 3, prefix_cache_hit_rate=None)
        assert is_invalid(a_recipe(), runs, "prefix-cache") == "the hit rate of run 3 is not known, that of others is"

    def test_arms_that_ask_differently_are_compared_with_themselves(self) -> None:
        recipe = a_recipe()
        point = recipe.points[0]
        engine = point.treatment.engine._replace(enable_prefix_caching=False)
        recipe = recipe._replace(points=(point._replace(treatment=point.treatment._replace(engine=engine)),))
        runs = a_session({"prefix_cache_hit_rate": 0.9}, {"prefix_cache_hit_rate": 0.0})
        assert check(recipe, runs, "prefix-cache").state == "held"
        assert "30.0 % in run 4" in is_invalid(recipe, one_run(runs, 4, prefix_cache_hit_rate=0.3), "prefix-cache")


class TestCompilations:
    PHASES = (
        Phase("warm-up", 0, 1.0, 4, compilations={"_sample": 9}),
        Phase("ttft", 0, 1.0, 4, compilations={"_sample": 2}),
        Phase("main", 0, 1.0, 4, compilations={"_sample": 1, "split": 1}),
        Phase("main", 1, 1.0, 4, compilations={"_sample": 1}),
    )

    def test_those_that_the_baseline_does_not_have(self) -> None:
        runs = a_session(
            {"compilations": {"split": 1}},
            {"compilations": {"_sample": 4, "split": 1}, "phases": self.PHASES},
        )
        text = is_invalid(a_recipe(), runs, "compilations")
        assert text.startswith(
            "pair 1: 4 compilations after warm-up that the baseline does not have: "
            "_sample 4 (first ttft: 2, first main: 1, main 2: 1); pair 2: "
        )
        assert text.endswith("; at most 0 of a function may be")

    def test_as_many_as_the_gate_allows(self) -> None:
        runs = a_session({"compilations": {"split": 1}}, {"compilations": {"_sample": 2, "split": 3}})
        assert check(a_recipe(recompiles=2), runs, "compilations").state == "held"
        found = check(a_recipe(recompiles=1), runs, "compilations")
        assert found.state == "failed"
        assert "4 compilations after warm-up" in found.text
        one = one_run(runs, 2, compilations={"_sample": 1, "split": 3})
        assert "pair 1: 2 compilations" in check(a_recipe(recompiles=1), one, "compilations").text

    def test_fewer_than_the_baseline(self) -> None:
        runs = a_session({"compilations": {"split": 5}}, {"compilations": {}})
        assert check(a_recipe(), runs, "compilations").state == "held"

    def test_another_function_is_not_made_up_for(self) -> None:
        runs = a_session({"compilations": {"split": 5}}, {"compilations": {"_sample": 1}})
        assert "1 compilation after warm-up" in is_invalid(a_recipe(), runs, "compilations")

    def test_nobody_counted(self) -> None:
        runs = one_run(one_run(a_session(), 1, compilations=None), 2, compilations=None)
        assert is_invalid(a_recipe(), runs, "compilations") == "nobody counted the compilations of runs 1, 2"
        assert check(a_recipe(recompiles=None), runs, "compilations").state == "not-checked"


class TestEvidence:
    LINES = (LogLine("GPU KV cache size: 415,872"), LogLine("ngram", "treatment", 2, 3), LogLine("error", None, 0, 0))

    def recipe(self) -> Recipe:
        return a_recipe(others={"evidence": self.LINES})

    def runs(self) -> list[Run]:
        found = {"found_lines": {"GPU KV cache size: 415,872": 1, "ngram": 2}}
        return a_session(found, found)

    def test_it_stands_there(self) -> None:
        baseline = {"found_lines": {"GPU KV cache size: 415,872": 1}}
        assert check(self.recipe(), one_run(self.runs(), 1, **baseline), "evidence").state == "held"

    def test_it_does_not(self) -> None:
        assert is_invalid(self.recipe(), one_run(self.runs(), 2, found_lines={}), "evidence") == (
            "run 2 (treatment, pair 1): 'GPU KV cache size: 415,872' stands nowhere in its log, not once; "
            "run 2 (treatment, pair 1): 'ngram' stands nowhere in its log, not 2 times"
        )

    def test_it_stands_there_too_often(self) -> None:
        found = {"GPU KV cache size: 415,872": 1, "ngram": 4, "error": 1}
        runs = one_run(self.runs(), 2, found_lines=found)
        assert is_invalid(self.recipe(), runs, "evidence") == (
            "run 2 (treatment, pair 1): 'ngram' stands 4 times in its log, not at most 3; "
            "run 2 (treatment, pair 1): 'error' stands once in its log, where it must not stand"
        )


class TestStability:
    ONLY = (Gate("throughput", min_ratio=0.97),)

    @pytest.mark.parametrize(
        ("baseline", "treatment"),
        [
            ([13470.0, 13470.0], [11641.0, 8839.0]),
            ([13517.0, 13470.0], [11641.0, 8839.0]),
            ([13470.0, 13470.0, 13470.0], [100.0, 100.0, 96.0]),
            ([13470.0, 13517.0, 13470.0, 13484.0], [11641.0, 8839.0, 11641.0, 8839.0]),
        ],
    )
    def test_unstable(self, baseline: list[float], treatment: list[float]) -> None:
        runs = some_runs({"throughput": baseline}, {"throughput": treatment})
        assert check(a_recipe(self.ONLY), runs, "treatment-stable").state == "failed"

    @pytest.mark.parametrize(
        ("baseline", "treatment"),
        [
            ([100.0, 100.0], [100.0, 97.5]),  # within the margin
            ([100.0, 104.0, 96.0], [100.0, 106.0, 94.0]),  # as unsteady as the baseline
            ([100.0, 101.0], [100.0, 104.0]),  # two runs each may do that by chance
            ([100.0] * 4, [100.0, 100.0, 100.0, 60.0]),  # one hiccup
            ([100.0] * 4, [100.0, 100.0, 100.0, 160.0]),
            ([19320.0, 19217.0], [14258.0, 14258.0]),  # a steady loss
        ],
    )
    def test_stable(self, baseline: list[float], treatment: list[float]) -> None:
        runs = some_runs({"throughput": baseline}, {"throughput": treatment})
        assert check(a_recipe(self.ONLY), runs, "treatment-stable").state == "held"

    def test_it_is_waited_for_unless_it_is_beyond_the_tripwire(self) -> None:
        recipe = a_recipe(self.ONLY)
        runs = some_runs({"throughput": [100.0] * 4}, {"throughput": [100.0, 100.0, 92.0, 100.0]})
        assert check(recipe, runs[:6], "treatment-stable").state == "failed"
        assert decided(recipe, recipe.points[0], runs[:6]) is None
        wild = some_runs({"throughput": [100.0] * 2}, {"throughput": [100.0, 70.0]})
        result = decided(recipe, recipe.points[0], wild)
        assert result is not None
        assert result.verdict == "invalid"

    def test_at_the_last_pair_it_is_invalid(self) -> None:
        recipe = a_recipe(self.ONLY)
        runs = some_runs({"throughput": [100.0] * 5}, {"throughput": [100.0, 92.0, 100.0, 92.0, 100.0]})
        assert decided(recipe, recipe.points[0], runs[:8]) is None
        assert "spans 92 to 100 (8.7 %) in 5 runs, that of the baseline 100 to 100" in is_invalid(
            recipe, runs, "treatment-stable"
        )

    def test_the_study_s_session_with_its_ttft(self) -> None:
        recipe = a_recipe()
        runs = some_runs(
            {"throughput": [13470.0, 13484.0], "ttft": [0.187, 0.187]},
            {"throughput": [11641.0, 8839.0], "ttft": [0.995, 0.995]},
        )
        text = is_invalid(recipe, runs, "treatment-stable")
        assert "the throughput of the treatment spans 8,839 to 11,641 (31.7 %) in 2 runs" in text
        result = decided(recipe, recipe.points[0], runs)
        assert result is not None
        assert "; besides, ttft x5.32 and x5.32 in the first two pairs: beyond the tripwire of +50.0 %" in result.reason

    def test_a_loss_in_spite_of_a_spread_is_a_loss(self) -> None:
        recipe = a_recipe(self.ONLY)
        runs = some_runs({"throughput": [100.0] * 3}, {"throughput": [90.3, 89.8, 86.8]})
        result = decided(recipe, recipe.points[0], runs)
        assert result is not None
        assert result.verdict == "regressed"
        assert next(found for found in result.checks if found.name == "treatment-stable").state == "noted"

    def test_an_unsteady_metric_beside_one_that_is_lost(self) -> None:
        runs = some_runs(
            {"throughput": [100.0] * 3, "ttft": [0.2] * 3}, {"throughput": [100.0, 92.0, 100.0], "ttft": [0.25] * 3}
        )
        recipe = a_recipe()
        result = decided(recipe, recipe.points[0], runs)
        assert result is not None
        assert result.verdict == "regressed"
        assert result.reason.startswith("ttft +25.0 %")

    def test_a_spread_that_does_not_matter_is_noted(self) -> None:
        recipe = a_recipe(self.ONLY)
        runs = some_runs({"throughput": [100.0] * 3}, {"throughput": [125.0, 130.0, 127.0]})
        result = decided(recipe, recipe.points[0], runs)
        assert result is not None
        assert (result.verdict, result.kind) == ("pass", "improved")
        noted = next(found for found in result.checks if found.name == "treatment-stable")
        assert noted.state == "noted"
        assert noted.text.endswith("which decides nothing here")

    def test_a_baseline_that_drifts_is_noted(self) -> None:
        runs = some_runs({"throughput": [100.0, 96.4, 96.4]}, {"throughput": [100.0, 96.4, 96.4]})
        found = check(a_recipe(self.ONLY), runs, "baseline-stable")
        assert (found.state, found.text) == (
            "noted",
            "the throughput of the baseline alone spans 96.4 to 100 (3.7 %), more than the margin of 3.0 %: "
            "the machine is not quiet, or it drifts",
        )
        recipe = a_recipe(self.ONLY)
        result = decided(recipe, recipe.points[0], runs)
        assert result is not None
        assert result.verdict == "pass"

    def test_without_ratios_there_is_nothing_to_be_stable(self) -> None:
        names = [found.name for found in check_runs(a_recipe(()), a_recipe(()).points[0], a_session())]
        assert "treatment-stable" not in names
        assert "baseline-stable" not in names


def test_units_that_differ() -> None:
    runs = a_session()
    metrics = runs[2].observation.metrics
    changed = {**metrics, "ttft": metrics["ttft"]._replace(unit="ms")}
    assert is_invalid(a_recipe(), one_run(runs, 3, metrics=changed), "metrics") == "ttft is in ms and in s"


def test_a_preflight_without_a_compilation_is_held() -> None:
    recipe = a_recipe()
    runs = [a_run(1, "treatment", None, Observation(), kind="preflight")]
    assert check(recipe, runs, "preflight").state == "held"
    assert decided(recipe, recipe.points[0], runs) is None


def test_many_problems_are_cut() -> None:
    runs = some_runs({"throughput": [1.0] * 8, "ttft": [1.0] * 8}, {"throughput": [1.0] * 8, "ttft": [1.0] * 8})
    runs = [run._replace(observation=run.observation._replace(profiler=True)) for run in runs]
    assert check(a_recipe(), runs, "profiler").text.endswith("; and 10 more")
