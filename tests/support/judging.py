"""Recipes and runs with the numbers given, for tests of the judge: nothing is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from patchkit.bench.observation import Fired, Measured, Observation, Phase, Tokens
from patchkit.bench.report import Run
from patchkit.model.recipe import METRICS, Arm, ArmName, Engine, Gate, Gates, Point, Protocol, Recipe, Workload

PATCH = "logits-greedy"
GATES = (Gate("throughput", min_ratio=0.97), Gate("ttft", max_ratio=1.10))
PROTOCOL = Protocol()
WORKLOAD = Workload(prompts=("a", "b"), batch_mult=2, max_tokens=8)
FIRED = (Fired(PATCH, 1, "sample", 7, "EngineCore", True),)


def a_recipe(
    gates: Sequence[Gate] = GATES,
    protocol: Protocol = PROTOCOL,
    *,
    patches: tuple[str, ...] = (PATCH,),
    workload: Workload = WORKLOAD,
    figures: tuple[Any, ...] = (),
    label: str = "",
    others: Mapping[str, Any] | None = None,
    **of_gates: Any,
) -> Recipe:
    """A recipe of one point; ``others`` are further fields of it."""
    engine = Engine("command")
    point = Point(
        label,
        Arm("baseline", (), workload, engine),
        Arm("treatment", patches, workload, engine),
        figures,
    )
    return Recipe("r", "s", (point,), Gates(tuple(gates), **of_gates), protocol, **(others or {}))


def an_observation(arm: ArmName, values: Mapping[str, float], **changed: Any) -> Observation:
    """What a well-behaved engine of ``arm`` gives, with ``changed`` fields."""
    good: dict[str, Any] = {
        "metrics": {
            name: Measured(value, METRICS[name][0] if name in METRICS else "s", (value,) * 3)
            for name, value in values.items()
        },
        "phases": (Phase("warm-up", 0, 1.0, 4, 32, "ab", {"sample": 3}), Phase("main", 0, 1.0, 4, 32, "ab", {})),
        "tokens": Tokens(32, 32, "ab" * 32),
        "compilations": {},
        "version_lines": ("Initializing a V1 LLM engine (v0.24.0)",),
        "versions": {"jax": "0.10.2"},
        "profiler": False,
        "probes": FIRED if arm == "treatment" else (),
    }
    return Observation(**{**good, **changed})


def a_run(order: int, arm: ArmName, pair: int | None, observation: Observation, **changed: Any) -> Run:
    values = {"point": "", "kind": "measured", "started": "2026-12-01T00:00:00Z", "seconds": 1.0, **changed}
    return Run(order=order, arm=arm, pair=pair, observation=observation, **values)


def some_runs(
    baseline: Mapping[str, Sequence[float]],
    treatment: Mapping[str, Sequence[float]],
    *,
    point: str = "",
    of_baseline: Mapping[str, Any] | None = None,
    of_treatment: Mapping[str, Any] | None = None,
) -> list[Run]:
    """Pairs in ABBA order: the n-th values of both arms are pair n."""
    runs: list[Run] = []
    pairs = len(next(iter(baseline.values())))
    for at in range(pairs):
        arms: list[ArmName] = ["baseline", "treatment"] if at % 2 == 0 else ["treatment", "baseline"]
        for arm in arms:
            given, changed = (baseline, of_baseline) if arm == "baseline" else (treatment, of_treatment)
            values = {name: series[at] for name, series in given.items()}
            runs.append(a_run(len(runs) + 1, arm, at + 1, an_observation(arm, values, **(changed or {})), point=point))
    return runs
