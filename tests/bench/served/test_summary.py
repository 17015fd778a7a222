"""From the client's result to an observation."""

from __future__ import annotations

from typing import Any

import pytest

from patchkit.bench.loglines import LogFacts
from patchkit.bench.observation import Failure, Measured, Observation, Phase, Tokens
from patchkit.bench.served.summary import observed
from patchkit.model.recipe import Workload

WORK = Workload(("a", "b"), max_tokens=10, repeats=3)
RANKS = {"p50": 1.0, "p90": 2.0, "p99": 3.0}


def phase(name: str = "main", repeat: int = 0, **more: Any) -> dict[str, Any]:
    base = {
        "name": name,
        "repeat": repeat,
        "requests": 2,
        "seconds": 2.0,
        "answered": 2,
        "tokens": 20,
        "tokens_sha256": "ab",
        "hashed": "token ids",
        "ttft": RANKS,
        "tpot": RANKS,
        "itl": RANKS,
        "e2el": RANKS,
        "counters": [{}, {}],
        "failed": {},
        "failed_requests": 0,
        "late": 0.0,
    }
    return {**base, **more}


def made(*phases: dict[str, Any], work: Workload = WORK, facts: LogFacts | None = None, **seen: Any) -> Observation:
    return observed(
        {"phases": list(phases), "error": None, "client_cpu": 0.1, **seen},
        facts or LogFacts(),
        [{"f": at} if at else None for at in range(len(phases))],
        work,
        profiler=False,
        versions={"vllm": "0"},
    )


MAINS = (
    phase("warm-up", tokens=4),
    phase(seconds=8.0, ttft={**RANKS, "p50": 9.0}),
    phase(repeat=1, seconds=2.0, ttft={**RANKS, "p50": 0.5}),
    phase(repeat=2, seconds=4.0, ttft={**RANKS, "p50": 1.5}),
)


def test_the_first_repeat_is_apart() -> None:
    seen = made(*MAINS)
    assert seen.metrics["throughput"] == Measured(7.5, "tokens/s", (10.0, 5.0))
    assert seen.metrics["throughput_first"] == Measured(2.5, "tokens/s", (2.5,))
    assert seen.metrics["request_throughput"] == Measured(0.75, "requests/s", (1.0, 0.5))
    assert seen.metrics["ttft"] == Measured(1.0, "s", (0.5, 1.5))
    assert seen.metrics["ttft_first"] == Measured(9.0, "s", (9.0,))
    assert seen.metrics["e2el_p99"] == Measured(3.0, "s", (3.0, 3.0))
    assert seen.phases[2] == Phase("main", 1, 2.0, 2, 20, "ab", {"f": 2})
    assert seen.phases[0].compilations is None
    assert seen.tokens == Tokens(20, 20, "ab", 0)
    assert (seen.failure, seen.notes, seen.versions) == (None, (), {"vllm": "0"})


def test_one_repeat_is_both() -> None:
    seen = made(phase("warm-up"), phase(), work=WORK._replace(repeats=1))
    assert seen.metrics["throughput"].value == seen.metrics["throughput_first"].value == 10.0


def test_the_shortest_repeat_tells_the_tokens() -> None:
    seen = made(*MAINS[:3], phase(repeat=2, tokens=19))
    assert seen.tokens is not None
    assert seen.tokens.came == 19


def test_hit_rate_and_acceptance_are_those_of_the_main_phases() -> None:
    names = ("vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total")
    drafts = ("vllm:spec_decode_num_accepted_tokens_total", "vllm:spec_decode_num_draft_tokens_total")

    def counters(values: tuple[float, ...]) -> dict[str, float]:
        return dict(zip((*names, *drafts), values, strict=True))

    seen = made(
        phase("warm-up", counters=[counters((0, 0, 0, 0)), counters((0, 100, 9, 9))]),
        phase(counters=[counters((0, 100, 9, 9)), counters((10, 140, 12, 19))]),
        phase(repeat=1, counters=[counters((10, 140, 12, 19)), counters((30, 160, 12, 29))]),
        phase(repeat=2, counters=[counters((30, 160, 12, 29)), counters((30, 160, 12, 29))]),
        facts=LogFacts(hit_rate=0.9),
    )
    assert seen.prefix_cache_hit_rate == pytest.approx(30 / 60)
    assert seen.metrics["acceptance_rate"] == Measured(pytest.approx(3 / 20), "ratio")


def test_without_counters_the_log_tells_the_hit_rate() -> None:
    seen = made(*(one | {"counters": [None, None]} for one in MAINS), facts=LogFacts(hit_rate=0.25))
    assert seen.prefix_cache_hit_rate == 0.25
    assert "the server has no /metrics, so the prefix cache's hit rate is unknown" in seen.notes


def test_a_metric_that_one_repeat_has_not_is_none() -> None:
    seen = made(*MAINS[:3], phase(repeat=2, itl=None))
    assert "itl" not in seen.metrics
    assert "tpot" in seen.metrics


@pytest.mark.parametrize(
    ("phases", "more", "failure"),
    [
        (MAINS[:3], {}, Failure("client", "2 of 3 repeats were done")),
        (MAINS[:2], {"error": "OSError: gone"}, Failure("client", "OSError: gone")),
        ((), {}, Failure("requests", "every request failed: nothing was asked")),
        (
            (phase("warm-up", answered=0, failed={"HTTP 500: x": 2}, failed_requests=2),),
            {},
            Failure("requests", "every request of the warm-up failed: 2 x HTTP 500: x"),
        ),
        (
            MAINS,
            {"facts": LogFacts(forbidden=True)},
            Failure("RuntimeError", "compilation occurred but was forbidden, while requests were served", True),
        ),
    ],
)
def test_failures(phases: tuple[dict[str, Any], ...], more: dict[str, Any], failure: Failure) -> None:
    assert made(*phases, **more).failure == failure


def test_notes() -> None:
    late = phase(repeat=1, late=0.75, failed={"a": 1, "b": 2}, failed_requests=3, tokens_sha256="cd")
    seen = made(MAINS[0], MAINS[1], late, MAINS[3], work=WORK._replace(request_rate=3.0), client_cpu=0.93)
    assert seen.notes == (
        "main 2: 3 requests failed: a; 2 x b",
        "the tokens of the 3 repeats are not the same, so there is no hash of them",
        "the client itself was busy 93% of the time, and may be what was measured",
        "requests were sent up to 0.75 s behind their time, at the limit of concurrency",
    )
    assert seen.tokens is not None
    assert (seen.tokens.sha256, seen.tokens.failed_requests) == (None, 3)
