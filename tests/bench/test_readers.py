"""Recorded results of real tools, and results that are not what they should be."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from patchkit.bench.observation import Failure, Measured, Observation, Phase, Tokens
from patchkit.bench.readers import look_up, read_result, refuse_sampled
from patchkit.errors import UsageError
from patchkit.model.recipe import Format, Workload

RECORDED = Path(__file__).with_name("recorded")
NONE = Workload()
#: Sixteen requests of sixteen tokens, as the recorded run of `vllm bench serve` had.
SIXTEEN = Workload(prompts=("a", "b"), batch_mult=8, max_tokens=16)


def recorded(name: str) -> Any:
    return json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))


def read(form: Format, value: Any, workload: Workload = NONE, **metrics: str) -> Observation:
    return read_result(form, value, metrics=metrics, workload=workload)


def values(seen: Observation) -> dict[str, float]:
    return {name: one.value for name, one in seen.metrics.items()}


def near(expected: dict[str, float]) -> Any:
    """To the digits that are written down here."""
    return pytest.approx(expected, rel=1e-6)


# --- recorded results: the expected numbers are read off the files by eye


def test_vllm_bench_serve() -> None:
    seen = read("vllm-serve", recorded("vllm-serve-0.24.0"), SIXTEEN)
    assert values(seen) == near(
        {
            "throughput": 953.130333377,
            "request_throughput": 59.570645836,
            "ttft": 0.169482329,
            "ttft_p90": 0.169898952,
            "ttft_p99": 0.170365497,
            "tpot": 0.006267311,
            "tpot_p90": 0.006426674,
            "tpot_p99": 0.013992133,
            "e2el": 0.263058385,
            "e2el_p90": 0.26464037,
            "e2el_p99": 0.265087578,
        }
    )
    assert seen.metrics["ttft"].unit == "s"
    assert seen.tokens == Tokens(256, 256, None, 0)
    assert seen.phases == (Phase("main", 0, 0.26858866099973966, 16, 256),)
    assert seen.failure is None


def test_guidellm() -> None:
    seen = read("guidellm", recorded("guidellm-0.8.1"))
    assert values(seen) == near(
        {
            "throughput": 179.351224514,
            "request_throughput": 22.418903064,
            "ttft": 0.04603982,
            "ttft_p90": 0.250128984,
            "ttft_p99": 0.264286041,
            "itl": 0.008725234,
            "itl_p90": 0.010403599,
            "itl_p99": 0.018085105,
            "e2el": 0.104246855,
            "e2el_p90": 0.318687439,
            "e2el_p99": 0.32725358,
        }
    )
    # Ninety-six tokens in 0.535 s: its mean is over the whole time, not over requests.
    assert round(96 / 0.5352625846862793, 6) == 179.351225
    assert seen.tokens == Tokens(None, 96, None, 0)


def test_aiperf() -> None:
    seen = read("aiperf", recorded("aiperf-0.13.0"))
    assert values(seen) == near(
        {
            "throughput": 262.154522734,
            "request_throughput": 32.769315342,
            "ttft": 0.077796459,
            "ttft_p90": 0.10836432,
            "ttft_p99": 0.108508474,
            "itl": 0.001307912,
            "itl_p90": 0.012223113,
            "itl_p99": 0.015655,
            "e2el": 0.105264319,
            "e2el_p90": 0.12579468,
            "e2el_p99": 0.125883357,
        }
    )
    assert seen.tokens == Tokens(None, 96, None, 0)
    assert seen.phases == (Phase("main", 0, 0.3602752, 12, 96),)


def test_hyperfine() -> None:
    value = recorded("hyperfine-1.15.0")
    value["results"] = value["results"][1:]
    assert read("hyperfine", value).metrics == {
        "seconds": Measured(0.011172789, "s", (0.011172789, 0.011297743, 0.011111167))
    }


def test_vllm_bench_throughput_has_no_output_tokens() -> None:
    """Keys of throughput.py of 0.24.0; its tokens per second are those of prompts as well."""
    value = {
        "elapsed_time": 2.0,
        "num_requests": 4,
        "total_num_tokens": 100,
        "requests_per_second": 2.0,
        "tokens_per_second": 50.0,
    }
    seen = read("vllm-throughput", value, Workload(temperature=1.0))
    assert values(seen) == {"request_throughput": 2.0, "seconds": 2.0}
    assert seen.tokens is None


def test_vllm_bench_latency() -> None:
    value = {"avg_latency": 2.0, "latencies": [1.0, 1.5, 3.5], "percentiles": {"50": 1.5}}
    assert read("vllm-latency", value).metrics == {"seconds": Measured(1.5, "s", (1.0, 1.5, 3.5))}


# --- what they leave out, and what failed


def test_vllm_bench_serve_with_details_has_a_hash_of_the_texts() -> None:
    value = recorded("vllm-serve-0.24.0") | {"generated_texts": ["ab", "c\u00e9"]}
    sha256 = hashlib.sha256(b'["ab", "c\\u00e9"]').hexdigest()
    seen = read("vllm-serve", value, Workload(prompts=("a",), ignore_eos=False))
    assert seen.tokens == Tokens(None, 256, sha256, 0)
    assert seen.phases[0].tokens_sha256 == sha256


def test_vllm_bench_serve_with_speculative_decoding() -> None:
    """It prints percent."""
    value = recorded("vllm-serve-0.24.0") | {"spec_decode_acceptance_rate": 37.5}
    assert read("vllm-serve", value).metrics["acceptance_rate"] == Measured(0.375, "ratio")


def test_failed_requests() -> None:
    value = recorded("vllm-serve-0.24.0") | {"completed": 15, "failed": 1}
    seen = read("vllm-serve", value)
    assert seen.tokens is not None
    assert seen.tokens.failed_requests == 1
    assert seen.failure is None
    value = recorded("vllm-serve-0.24.0") | {"completed": 0, "failed": 16}
    assert read("vllm-serve", value).failure == Failure("requests", "all 16 requests failed")

    value = recorded("guidellm-0.8.1")
    value["benchmarks"][0]["metrics"]["request_totals"] = {"successful": 10, "errored": 2, "incomplete": 0, "total": 12}
    seen = read("guidellm", value)
    assert seen.tokens is not None
    assert seen.tokens.failed_requests == 2

    value = recorded("aiperf-0.13.0")
    value["request_count"]["avg"] = 9.0
    seen = read("aiperf", value)
    assert seen.tokens is not None
    assert seen.tokens.failed_requests == 3
    value["was_cancelled"] = True
    failure = read("aiperf", value).failure
    assert failure is not None
    assert failure.kind == "cancelled"

    value = recorded("hyperfine-1.15.0")
    value["results"] = value["results"][:1]
    value["results"][0]["exit_codes"][1] = 2
    assert read("hyperfine", value).failure == Failure("status", "1 of its runs ended with status 2")


def test_a_distribution_over_no_request_is_no_metric() -> None:
    """Without streaming, guidellm has zeros for the time to first token."""
    value = recorded("guidellm-0.8.1")
    value["benchmarks"][0]["metrics"]["time_to_first_token_ms"]["successful"] = {"median": 0.0, "count": 0}
    seen = read("guidellm", value)
    assert "ttft" not in seen.metrics
    assert "e2el" in seen.metrics


# --- an observation of ours, and any JSON


def test_our_own() -> None:
    made = Observation(metrics={"throughput": Measured(2.0, "tokens/s")})
    assert read("patchkit", made.to_json()) == made


def test_any_json_by_places() -> None:
    value = {
        "runs": [{"tok_s": 5}, {"tok_s": 7.5}],
        "ttft": {"p50.ms": 12.5, "all": [3, 1, 2]},
        "mem": 2048,
        "acc": 50,
        "in ms": {"x": 4},
    }
    seen = read(
        "json",
        value,
        throughput="runs[-1].tok_s",
        ttft='ttft."p50.ms" in ms',
        itl="ttft.all in us",
        model_memory="mem in MiB",
        acceptance_rate="acc in %",
        watts="runs.0.tok_s",
        e2el='"in ms".x',
    )
    assert seen.metrics == {
        "throughput": Measured(7.5, "tokens/s"),
        "ttft": Measured(0.0125, "s"),
        "itl": Measured(2e-6, "s", (3e-6, 1e-6, 2e-6)),
        "model_memory": Measured(2.0, "GiB"),
        "acceptance_rate": Measured(0.5, "ratio"),
        "watts": Measured(5.0, ""),
        "e2el": Measured(4.0, "s"),
    }


def test_places_beside_those_of_a_format() -> None:
    seen = read("vllm-serve", recorded("vllm-serve-0.24.0"), itl="median_itl_ms in ms", ttft="mean_ttft_ms in ms")
    assert seen.metrics["itl"].value == pytest.approx(0.0031671770002503763)
    assert seen.metrics["ttft"].value == pytest.approx(0.16067141974986043)
    assert seen.metrics["throughput"].value == pytest.approx(953.1303333771344)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("a.x", "there is no 'a.x'; a has b, c"),
        ("x", "there is no 'x'; the result has a, list"),
        ("a[0]", "a is an object; [0] is the index of an array"),
        ("list.x", "list is an array; 'x' is no index"),
        ("list[2]", "list has 2 items; there is no [2]"),
        ("a.b.c", "a.b is 1, and has no 'c'"),
        (".a", "'.a' is no place"),
        ("a..b", "'a..b' is no place"),
        ("a[x]", "'a[x]' is no place"),
        ("a.c", 'a.c: "text", where a finite number is expected'),
        ("list[1]", "list[1]: true, where a finite number is expected"),
        ("a", "a: an object, where a finite number is expected"),
        ("a.b in ms", "'ms' is no unit of it; known: tokens/s, tokens/sec"),
    ],
)
def test_a_place_that_is_not_there(place: str, message: str) -> None:
    value = {"a": {"b": 1, "c": "text"}, "list": [0, True]}
    with pytest.raises(ValueError, match=re.escape(f"engine.metrics.throughput: {message}")):
        read("json", value, throughput=place)


def test_look_up_of_the_whole() -> None:
    assert look_up({"a": 1}, "") == {"a": 1}


@pytest.mark.parametrize(
    ("form", "value", "message"),
    [
        ("json", {"a": 1}, "no metric is read: engine.metrics names the place of each"),
        ("json", [1], "the result must be an object, and is an array"),
        ("patchkit", {"schema": 1, "metric": {}}, "unknown key"),
        ("vllm-serve", {"a": 1}, "there is no 'duration', so this is not the JSON of `vllm bench serve --save-result`"),
        ("vllm-serve", {"duration": 1.0, "completed": 2}, "a pooling benchmark, which generates nothing"),
        ("vllm-serve", {"duration": float("nan"), "total_output_tokens": 1}, "duration: NaN, where a finite number"),
        ("vllm-serve", {"duration": 10**400, "total_output_tokens": 1}, "where a finite number is expected"),
        ("vllm-serve", {"duration": 5e-324, "total_output_tokens": 1}, "duration: 5e-324 is not between"),
        ("vllm-serve", {"duration": 1e300, "total_output_tokens": 1}, "duration: 1e+300 is not between"),
        ("vllm-throughput", {"tokens_per_second": 1}, "there is no 'elapsed_time'"),
        ("vllm-latency", {"latencies": []}, "latencies: an array of seconds is expected"),
        ("guidellm", {"benchmarks": [{}, {}]}, "benchmarks: 2 of them, as of a sweep"),
        ("guidellm", {"benchmarks": []}, "benchmarks: an array with one benchmark is expected"),
        ("guidellm", {"benchmarks": [{"metrics": {}}]}, "there is no 'metrics.request_totals'"),
        (
            "aiperf",
            {"throughput": 1},
            "there is no 'request_count', so this is not aiperf's profile_export_aiperf.json",
        ),
        (
            "aiperf",
            {"request_count": {"avg": 1}, "request_latency": {"unit": "fortnights", "p50": 1}},
            "request_latency.unit: 'fortnights', where one of s, sec, ms",
        ),
        ("hyperfine", {"results": [{}, {}]}, "results: 2 commands, where one is expected"),
    ],
)
def test_what_is_not_of_the_format(form: Format, value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        read(form, value)


def test_both_commands_of_hyperfine_are_no_arm() -> None:
    with pytest.raises(ValueError, match="2 commands, where one is expected"):
        read("hyperfine", recorded("hyperfine-1.15.0"))


# --- sampling


@pytest.mark.parametrize("form", ["vllm-throughput", "vllm-latency"])
def test_greedy_is_not_judged_by_what_samples(form: Format) -> None:
    with pytest.raises(UsageError, match=re.escape("fixes temperature 1.0")) as caught:
        refuse_sampled(form, Workload(temperature=0.0))
    assert caught.value.code == "samples-only"
    assert "--temperature 0" in (caught.value.hint or "")
    refuse_sampled(form, Workload(temperature=1.0))
    refuse_sampled(form, Workload(temperature=None))


@pytest.mark.parametrize("form", ["vllm-serve", "json", "patchkit", "guidellm", "aiperf", "hyperfine"])
def test_others_can_be_greedy(form: Format) -> None:
    refuse_sampled(form, Workload(temperature=0.0))
