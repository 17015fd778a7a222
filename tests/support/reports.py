"""Reports made up for tests: their numbers are typed here, and come from no code of patchkit's."""

from __future__ import annotations

from patchkit.bench.observation import Failure, Measured, Observation, Tokens
from patchkit.bench.report import (
    Aftermath,
    Check,
    Cost,
    Interval,
    MetricResult,
    PatchUsed,
    PointResult,
    Report,
    Run,
)
from patchkit.model.recipe import Figure, Gate

THROUGHPUT = MetricResult(
    "throughput",
    "tokens/s",
    "higher",
    13470.0,
    11641.0,
    (0.8642, 0.6562),
    Interval(0.753, 0.6, 0.9, 0.0253, 2, 0.1945),
    Gate("throughput", min_ratio=0.97),
    "regressed",
    tripped=True,
    reason="two pairs in a row are more than 20 % worse",
    figure=Figure("throughput", 13470.0, 11641.0),
)
TTFT = MetricResult(
    "ttft",
    "s",
    "lower",
    0.275,
    1.209,
    (4.396, 4.41),
    Interval(4.403, 4.35, 4.46, 0.0253, 2, 0.0023),
    Gate("ttft", max_ratio=1.1),
    "regressed",
    tripped=True,
    figure=Figure("ttft", 0.187, 0.995),
)
ITL = MetricResult("itl", "s", "lower", 0.0312, 0.0315, (1.01, 1.009), None, None, None)
KV = MetricResult("kv_cache_tokens", "tokens", "higher", 415872.0, 415872.0, (), None, None, None)
CHECKS = (
    Check("probes", "held", "logits-greedy-naive ran in 2 of 2 processes of the treatment, in none of the baseline"),
    Check("tokens", "held", "identical in 4 runs (65,536 tokens, SHA-256 0123456789ab)"),
    Check("prefix cache", "not-checked", "the engine told no hit rate"),
    Check(
        "compilations", "failed", "sample was compiled 2 times after warm-up in the treatment, at most 0 are allowed"
    ),
)


def run(order: int, arm: str, kind: str, pair: int | None, throughput: float, ttft: float, point: str = "") -> Run:
    return Run(
        order,
        point,
        arm,  # type: ignore[arg-type]
        kind,  # type: ignore[arg-type]
        pair,
        f"2026-12-01T03:{order:02}:00+00:00",
        61.5,
        Observation(
            metrics={"throughput": Measured(throughput, "tokens/s"), "ttft": Measured(ttft, "s")},
            tokens=Tokens(65536, 65536, "0123456789abcdef" * 4),
            versions={"jax": "0.10.2"},
            log=f"{order:03}/log.txt",
        ),
    )


RUNS = (
    run(1, "baseline", "discarded", None, 13100.0, 0.31),
    run(2, "treatment", "discarded", None, 11900.0, 1.3),
    run(3, "baseline", "measured", 1, 13470.0, 0.275),
    run(4, "treatment", "measured", 1, 11641.0, 1.209),
    run(5, "treatment", "measured", 2, 8839.0, 1.211),
    run(6, "baseline", "measured", 2, 13484.0, 0.2746),
    run(7, "baseline", "confirm", None, 13399.0, 0.276),
)
REGRESSED = Report(
    recipe="logits-greedy-naive",
    summary="The study's patch of the logits, which compiles while requests wait",
    digest="ab" * 32,
    verdict="regressed",
    kind=None,
    reason="output throughput is 24.7 % lower and TTFT is 4.40 times as long, both beyond their gates after two pairs",
    points=(
        PointResult(
            "",
            "regressed",
            None,
            "the tripwire ended it",
            (ITL, THROUGHPUT, TTFT, KV),
            CHECKS,
            (Cost("baseline", 14.6, 40.4e6), Cost("treatment", 16.9, None)),
            "TTFT of the first repeat is 930 ms longer, of the others equal: sample was compiled once there",
        ),
    ),
    runs=RUNS,
    patches=(PatchUsed("logits-greedy-naive", "cd" * 32, "tpu-inference", "0.24.0"),),
    aftermath=Aftermath("reverted", "logits-greedy-naive was reverted; the baseline is back at 99.5 %", 0.995),
    started="2026-12-01T03:00:00+00:00",
    seconds=1330.0,
    folder="patchkit-runs/logits-greedy-naive-20261201T030000Z",
    site="env/lib/python3.11/site-packages",
    engine="vllm",
    versions={"vllm-tpu": "0.24.0", "tpu-inference": "0.24.0", "jax": "0.10.2"},
    machine={"cpus": "2", "load before": "0.31"},
    source="the study, Gemma 2B on one TPU v5e",
    notes=("two cores were busy with something else when run 5 began",),
    trace=(
        {
            "program": "jit_sample",
            "operation": "copy.2",
            "shape": "f32[512,256000]",
            "change": "vanished",
            "us": -1562.0,
        },
        {
            "program": "jit_sample",
            "operation": "argmax",
            "shape": "bf16[512,256000]",
            "change": "appeared",
            "us": 401.25,
        },
    ),
)


def _rung(label: str, baseline: float, treatment: float, verdict: str, kind: str | None) -> PointResult:
    ratio = treatment / baseline
    result = MetricResult(
        "throughput",
        "tokens/s",
        "higher",
        baseline,
        treatment,
        (ratio * 0.995, ratio, ratio * 1.005),
        Interval(ratio, ratio * 0.99, ratio * 1.01, 0.0253, 3, 0.005),
        Gate("throughput", min_ratio=0.97),
        verdict,  # type: ignore[arg-type]
        kind,  # type: ignore[arg-type]
        advice="pair sd 2.1 %: 7 pairs needed for a margin of 3 %" if verdict == "inconclusive" else None,
    )
    return PointResult(label, verdict, kind, f"at {label}", (result,), CHECKS[:1])  # type: ignore[arg-type]


LADDER = REGRESSED._replace(
    recipe="batch-ladder",
    verdict="inconclusive",
    reason="one point of four cannot be told from noise",
    points=(
        _rung("32 requests", 3577.0, 3600.0, "pass", "equal"),
        _rung("64 requests", 6470.0, 6800.0, "pass", "improved"),
        _rung("128 requests", 9700.0, 9690.0, "inconclusive", None),
        _rung("512 requests", 15338.0, 19511.0, "pass", "improved"),
    ),
    runs=tuple(
        run(2 * at + side + 1, arm, "measured", 1, value, 0.1, label)
        for at, (label, pair) in enumerate(
            {
                "32 requests": (3577.0, 3600.0),
                "64 requests": (6470.0, 6800.0),
                "512 requests": (15338.0, 19511.0),
            }.items()
        )
        for side, (arm, value) in enumerate(zip(("baseline", "treatment"), pair, strict=True))
    ),
    aftermath=Aftermath("in-memory", "nothing was written; to keep it: patchkit apply rpa-block-size"),
    label="CPU simulation: says nothing of a TPU's speed",
    patches=(),
    trace=(),
    notes=(),
)
FAILED = REGRESSED._replace(
    verdict="error",
    reason="the engine ended with status 1 <script>alert('|')</script> & `x`",
    points=(),
    runs=(
        RUNS[0]._replace(
            kind="preflight",
            observation=Observation(failure=Failure("RuntimeError", "compilation was forbidden", True)),
        ),
    ),
    trace=(),
)
