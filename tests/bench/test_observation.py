"""An observation survives its JSON; what is not one is refused by the name of its key."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from patchkit.bench.observation import Failure, Fired, Measured, Observation, Phase, Tokens, read_observation

FULL = Observation(
    metrics={"throughput": Measured(100.0, "tokens/s", (90.0, 100.0, 110.0))},
    phases=(Phase("ttft", 0, 0.5, 4, 4, "ab", {"sample": 1}), Phase("main", 1, 2.0, 4)),
    tokens=Tokens(512, 511, "cd", 1),
    compilations={"sample": 1},
    prefix_cache_hit_rate=0.25,
    profiler=True,
    version_lines=("Initializing a V1 LLM engine (v0.24.0)",),
    versions={"jax": "0.10.2"},
    probes=(Fired("logits-greedy", 3, "sample", 12, "EngineCore", True),),
    found_lines={"GPU KV cache size": 1},
    label="CPU simulation",
    failure=Failure("RuntimeError", "forbidden", True),
    log="log.txt",
    notes=("2 requests failed: HTTP 500",),
)


@pytest.mark.parametrize("observation", [FULL, Observation()])
def test_round_trip(observation: Observation) -> None:
    assert read_observation(json.loads(json.dumps(observation.to_json()))) == observation


def test_what_is_left_out_has_its_default() -> None:
    assert read_observation({"schema": 1}) == Observation()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, '"schema": 1'),
        ({"schema": 1, "metric": {}}, "'metric'"),
        ({"schema": 1, "metrics": {"ttft": {"value": "1", "unit": "s"}}}, "metrics.ttft.value"),
        ({"schema": 1, "metrics": {"ttft": {"value": float("nan"), "unit": "s"}}}, "finite"),
        ({"schema": 1, "metrics": {"ttft": {"value": 5e-324, "unit": "s"}}}, "5e-324 is not between 1e-60 and 1e+60"),
        ({"schema": 1, "metrics": {"ttft": {"value": 1, "unit": "s", "samples": [1e300]}}}, "samples[0]: 1e+300"),
        ({"schema": 1, "metrics": {"ttft": {"value": 1}}}, "'unit' is missing"),
        ({"schema": 1, "phases": [{"name": "middle", "repeat": 0, "seconds": 1, "requests": 1}]}, "phases[0].name"),
        ({"schema": 1, "phases": {}}, "array"),
        ({"schema": 1, "tokens": {"asked": True, "came": 1, "sha256": None}}, "tokens.asked"),
        ({"schema": 1, "compilations": {"sample": 1.5}}, "compilations.sample"),
        ({"schema": 1, "failure": "no"}, "object"),
        ({"schema": 1, "profiler": 1}, "profiler"),
    ],
)
def test_refusals_name_the_key(value: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        read_observation(value)
