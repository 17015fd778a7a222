"""The shipped logits patches on real releases: what they compile after warm-up, and whether tokens and logprobs stay.

Counts and identities on CPU JAX; they say nothing about speed. The releases' own warm-up, runner and sampler run
against a stand-in for the rest: see :mod:`light_detector`.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from test_shipped_patches import run

pytestmark = [pytest.mark.real, pytest.mark.slow]

BUCKETS = "8,16"
STOCK, GREEDY, NAIVE = "stock", "logits-greedy", "logits-greedy-naive"
PROBES = {STOCK: 0, GREEDY: 3, NAIVE: 2}
GREEDY_PHASES = ("greedy", "greedy again", "greedy with logprobs")
PHASES = (*GREEDY_PHASES, "sampling", "sampling with logprobs")
FORBIDDEN = "JAX compilation occurred but was forbidden in this context."

Detect = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module", params=["0.23.0", "0.24.0"])
def detect(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    wheel: Callable[[str, str], Path],
    install: Callable[[Path, Path], Path],
    jax_python: Path,
) -> Detect:
    """``detect(arm, *options)``: the detector's result for the release, as it is or patched; each asked once."""
    trees = {}
    for arm in (STOCK, GREEDY, NAIVE):
        trees[arm] = install(wheel("tpu-inference", request.param), tmp_path_factory.mktemp(arm) / "site-packages")
    assert run(trees[GREEDY], "apply", GREEDY).status == 0
    assert run(trees[NAIVE], "apply", "--allow-known-bad", NAIVE).status == 0

    @cache
    def detect(arm: str, *options: str) -> dict[str, Any]:
        script = Path(__file__).parent / "light_detector.py"
        done = subprocess.run(
            [jax_python, script, trees[arm], "--buckets", BUCKETS, *options],
            env={**os.environ, "PATCHKIT_PROBES": str(trees[arm].parent / "probes")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        lines = [line for line in done.stderr.splitlines() if line.startswith("[patchkit] probe ")]
        assert len(lines) == len(set(lines)) == PROBES[arm]  # jitted and traced again and again, they report once
        live = run(trees[arm], "live", "--probes", str(trees[arm].parent / "probes")) if PROBES[arm] else None
        assert live is None or [patch["state"] for patch in live.answer["patches"]] == ["ran"]
        result = json.loads(done.stdout.splitlines()[-1])
        assert result["warm_up"]["sample"] > 0
        return dict(result)

    return detect


# For what need not be asked of both releases: their sampler and warm-up are the same text.
once = pytest.mark.parametrize("detect", ["0.24.0"], indirect=True)


def compiled(result: dict[str, Any], name: str) -> list[int]:
    return [result[phase]["compiled"].get(name, 0) for phase in PHASES]


PROCESSED = ("--logprobs-mode", "processed_logprobs")
FORBID = ("--forbid",)


@pytest.mark.parametrize("arm", [STOCK, GREEDY])
@pytest.mark.parametrize("options", [PROCESSED, FORBID], ids=["processed", "raw"])
def test_stock_and_the_patch_compile_no_sample_after_warm_up(
    detect: Detect, arm: str, options: tuple[str, ...]
) -> None:
    result = detect(arm, *options)
    assert compiled(result, "sample") == [0, 0, 0, 0, 0]
    assert compiled(result, "compute_and_gather_logprobs") == [0, 0, 0, 0, 0]


def test_the_naive_patch_compiles_sample_once_per_bucket_at_its_first_touch(detect: Detect) -> None:
    result = detect(NAIVE, *PROCESSED)
    assert compiled(result, "sample") == [2, 0, 2, 0, 0]
    assert compiled(result, "compute_and_gather_logprobs") == [0, 0, 2, 0, 0]


def test_the_patch_saves_the_conversion_that_greedy_compiles_while_serving(detect: Detect) -> None:
    assert compiled(detect(STOCK, *PROCESSED), "convert_element_type")[0] == 2
    assert compiled(detect(GREEDY, *PROCESSED), "convert_element_type")[0] == 0


@pytest.mark.parametrize("phase", PHASES)
def test_tokens_are_the_same_in_every_arm(detect: Detect, phase: str) -> None:
    stock = detect(STOCK, *PROCESSED)[phase]["tokens"]
    assert [len(bucket) for bucket in stock] == [8, 16]
    assert len({tuple(tokens) for tokens in stock[1]}) > 4, "the stand-in model says always the same"
    assert detect(GREEDY, *PROCESSED)[phase]["tokens"] == stock
    assert detect(NAIVE, *PROCESSED)[phase]["tokens"] == stock


@pytest.mark.parametrize("options", [PROCESSED, FORBID], ids=["processed", "raw"])
def test_logprobs_keep_float32_with_the_patch(detect: Detect, options: tuple[str, ...]) -> None:
    for phase in ("greedy with logprobs", "sampling with logprobs"):
        stock = detect(STOCK, *options)[phase]["logprobs"]
        assert len(stock) == 2
        assert detect(GREEDY, *options)[phase]["logprobs"] == stock


def test_the_naive_patch_changes_processed_logprobs_silently(detect: Detect) -> None:
    stock, naive = detect(STOCK, *PROCESSED), detect(NAIVE, *PROCESSED)
    assert naive["greedy with logprobs"]["logprobs"] != stock["greedy with logprobs"]["logprobs"]
    assert "error" not in naive["greedy with logprobs"]


def test_the_engines_own_check_raises_for_the_naive_patch_only(detect: Detect) -> None:
    said = {arm: [detect(arm, *FORBID)[phase].get("error") for phase in PHASES] for arm in (STOCK, GREEDY, NAIVE)}
    assert said == {
        STOCK: [None] * 5,
        GREEDY: [None] * 5,
        NAIVE: [FORBIDDEN, FORBIDDEN, FORBIDDEN, None, None],
    }


def test_the_warm_up_keeps_float32_where_no_logits_are_computed(detect: Detect) -> None:
    asked = {"greedy": "bfloat16", "sampling": "float32", "pooling": "float32", "first rank": "float32"}
    assert detect(GREEDY, *PROCESSED)["dtypes"] == asked
    assert "dtypes" not in detect(STOCK, *PROCESSED)


@once
def test_four_devices_on_the_model_axis_change_nothing(detect: Detect) -> None:
    stock, greedy = (detect(arm, *PROCESSED, "--devices", "4") for arm in (STOCK, GREEDY))
    assert stock["devices"] == greedy["devices"] == 4
    assert compiled(stock, "sample") == compiled(greedy, "sample") == [0, 0, 0, 0, 0]
    for phase in PHASES:
        assert greedy[phase]["tokens"] == stock[phase]["tokens"]
        assert greedy[phase]["logprobs"] == stock[phase]["logprobs"]


@once
def test_the_speculative_branch_keeps_its_answers_and_gains_the_menu_for_greedy(detect: Detect) -> None:
    """It hands sample() unconverted logits already in the release, so there greedy is off the float32 menu."""
    stock, greedy = (detect(arm, *PROCESSED, "--speculative") for arm in (STOCK, GREEDY))
    assert compiled(stock, "sample") == [2, 0, 2, 2, 2]
    assert compiled(greedy, "sample") == [0, 0, 0, 2, 2]
    for phase in PHASES:
        assert {len(tokens) for bucket in stock[phase]["tokens"] for tokens in bucket} == {1, 2}
        assert greedy[phase]["tokens"] == stock[phase]["tokens"]
        assert greedy[phase]["logprobs"] == stock[phase]["logprobs"]


@once
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_the_warm_up_follows_the_models_dtype(detect: Detect, dtype: str) -> None:
    stock, greedy = (detect(arm, "--dtype", dtype) for arm in (STOCK, GREEDY))
    assert greedy["dtypes"]["greedy"] == dtype
    assert compiled(stock, "sample") == compiled(greedy, "sample") == [0, 0, 0, 0, 0]
    for phase in PHASES:
        assert greedy[phase]["tokens"] == stock[phase]["tokens"]
        assert greedy[phase]["logprobs"] == stock[phase]["logprobs"]
