"""The study's loss at first touch is told from a slower steady state, with the compilations that explain it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from support.judging import a_recipe, some_runs

from patchkit.bench.judge import judge_point
from patchkit.bench.observation import Phase
from patchkit.model.recipe import Gate

ONES = [1.0] * 3


def touch(baseline: dict[str, Sequence[float]], treatment: dict[str, Sequence[float]], **changed: Any) -> str | None:
    recipe = a_recipe((Gate("throughput", min_ratio=0.97),))
    return judge_point(recipe, recipe.points[0], some_runs(baseline, treatment, **changed)).touch


def metrics(ttft_first: float, ttft: float, throughput_first: float, throughput: float) -> dict[str, Sequence[float]]:
    return {
        "ttft_first": [ttft_first] * 3,
        "ttft": [ttft] * 3,
        "throughput_first": [throughput_first] * 3,
        "throughput": [throughput] * 3,
    }


BASELINE = metrics(0.275, 0.275, 19320, 19320)


def phases(*counts: int) -> tuple[Phase, ...]:
    return (
        Phase("warm-up", 0, 1.0, 4, compilations={"_sample": 40}),
        Phase("ttft", 0, 1.0, 4, compilations={"_sample": counts[0], "split": 1}),
        Phase("main", 0, 1.0, 4, compilations={"_sample": counts[1]} if counts[1] else {}),
        Phase("main", 1, 1.0, 4, compilations={"_later": 9}),
    )


def test_the_study_s_loss_was_at_first_touch() -> None:
    told = touch(
        BASELINE,
        metrics(1.209, 0.276, 14258, 19310),
        of_baseline={"phases": phases(0, 0)},
        of_treatment={"phases": phases(3, 2)},
    )
    assert told == (
        "ttft: lost at first touch only: 1.209 s against 0.275 s (x4.40); from the second time on 0.276 s against "
        "0.275 s (+0.4 %), so the steady state is no slower. "
        "throughput: lost at first touch only: 14,258 tokens/s against 19,320 tokens/s (-26.2 %); from the second time "
        "on 19,310 tokens/s against 19,320 tokens/s (-0.1 %), so the steady state is no slower. "
        "At first touch the treatment compiles, and the baseline does not: _sample (5)."
    )


def test_a_slower_steady_state() -> None:
    told = touch(BASELINE, metrics(0.275, 0.275, 14000, 14258), of_treatment={"phases": phases(0, 0)})
    assert told is not None
    assert told.startswith(
        "throughput: lost in the steady state, 14,258 tokens/s against 19,320 tokens/s (-26.2 %), as at first touch, "
        "14,000 tokens/s against 19,320 tokens/s (-27.5 %). "
    )


def test_a_loss_that_no_compilation_explains() -> None:
    same = {"phases": phases(2, 0)}
    told = touch(BASELINE, metrics(0.275, 0.275, 19320, 14258), of_baseline=same, of_treatment=same)
    assert told is not None
    assert told.startswith("throughput: lost in the steady state: 14,258 tokens/s")
    assert "; at first touch 19,320 tokens/s against 19,320 tokens/s (0.0 %). " in told
    assert told.endswith(
        "No compilation explains it: the first touch of the treatment compiles nothing that the baseline does not."
    )


def test_nobody_counted_by_phase() -> None:
    nobody = {"phases": (Phase("main", 0, 1.0, 4),)}
    told = touch(BASELINE, metrics(1.2, 0.275, 19320, 19320), of_baseline=nobody, of_treatment=nobody)
    assert told is not None
    assert told.endswith("Nobody counted compilations by phase.")


def test_no_loss_no_words() -> None:
    assert touch(BASELINE, metrics(0.28, 0.27, 19300, 23000)) is None
    assert touch({"throughput": ONES}, {"throughput": [0.5] * 3}) is None


def test_measured_once_cannot_be_told_apart() -> None:
    recipe = a_recipe((Gate("throughput", min_ratio=0.97),))
    runs = some_runs(BASELINE, metrics(1.209, 1.209, 19320, 19320))
    once = []
    for run in runs:
        single = {
            name: measured._replace(samples=measured.samples[:1]) for name, measured in run.observation.metrics.items()
        }
        once.append(run._replace(observation=run.observation._replace(metrics=single)))
    told = judge_point(recipe, recipe.points[0], once).touch
    assert told is not None
    assert "each process measured it once, so a loss at first touch cannot be told from a slower steady state" in told


def test_the_gate_says_what_a_loss_is() -> None:
    recipe = a_recipe((Gate("ttft", max_ratio=6.0), Gate("throughput", min_ratio=0.5)))
    runs = some_runs(BASELINE, metrics(1.209, 0.275, 14258, 19320))
    assert judge_point(recipe, recipe.points[0], runs).touch is None
