"""Results of other tools, read into an :class:`~patchkit.bench.observation.Observation`; pure.

Only what is the same quantity is read under a metric's name (docs/readers.md says which is not, and why). The keys were
checked on results of vLLM 0.24.0, guidellm 0.8.1, aiperf 0.13.0 and hyperfine 1.15.0.
"""

from __future__ import annotations

import hashlib
import json
import re
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from patchkit.bench.observation import Failure, Measured, Observation, Phase, Tokens, read_observation
from patchkit.bench.shape import LEAST, MOST, measurable
from patchkit.errors import UsageError
from patchkit.model.recipe import METRICS, Format, Workload

#: Multiples of a metric's own unit, by that unit and the one that a place is said to be in.
UNITS: dict[str, dict[str, float]] = {
    "s": {"s": 1.0, "sec": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0},
    "GiB": {
        "GiB": 1.0,
        "MiB": 1 / 1024,
        "KiB": 1 / 1024**2,
        "B": 1 / 1024**3,
        "GB": 1e9 / 1024**3,
        "MB": 1e6 / 1024**3,
    },
    "ratio": {"ratio": 1.0, "%": 0.01},
    "tokens/s": {"tokens/s": 1.0, "tokens/sec": 1.0},
    "requests/s": {"requests/s": 1.0, "requests/sec": 1.0},
}

_IN_UNIT = re.compile(r"(.*\S) in ([A-Za-z%/]+)")
_STEP = re.compile(r'\.?(?:"([^"]*)"|\[(-?\d+)\]|([^.\[\]"]+))')


def refuse_sampled(form: Format, workload: Workload) -> None:
    """Refuse to judge greedy decoding by a benchmark that samples.

    ``vllm bench throughput`` and ``vllm bench latency`` fix ``temperature=1.0`` and have no option for it (vLLM 0.23.0
    to 0.32.0), so the path that a greedy patch changes never runs in them.

    Raises:
        UsageError: ``samples-only``.
    """
    if form in ("vllm-throughput", "vllm-latency") and workload.temperature == 0.0:
        name = form.removeprefix("vllm-")
        raise UsageError(
            f'reads = "{form}" with workload.temperature = 0: `vllm bench {name}` fixes temperature 1.0 and has no '
            "option for it, so greedy decoding does not run in it",
            code="samples-only",
            hint='measure with `vllm bench serve --temperature 0 --ignore-eos --save-result` and reads = "vllm-serve", '
            'or with kind = "vllm" or "openai"; for a workload that samples, say workload.temperature = 1.0',
            details={"key": "engine.reads", "format": form},
        )


def read_result(form: Format, value: Any, *, metrics: Mapping[str, str], workload: Workload) -> Observation:
    """What a tool's JSON says.

    Args:
        form: Whose JSON it is.
        value: The JSON value.
        metrics: Places by metric, as of :func:`look_up`; beside what the format itself gives, or in its stead.
        workload: What was asked for: where it has prompts and ignores the end of text, so many tokens must come.

    Raises:
        ValueError: It is not what the format says; the message names the place.
    """
    if not isinstance(value, Mapping):
        raise ValueError(f"the result must be an object, and is {_kind(value)}")
    if form == "patchkit":
        return read_observation(value)
    read = _READERS[form](value, workload)
    named = {name: _mapped(value, name, place) for name, place in metrics.items()}
    measured = {**read.metrics, **named}
    if not measured:
        raise ValueError(
            'no metric is read: engine.metrics names the place of each, such as throughput = "results.tokens_per_s"'
        )
    return read._replace(metrics=measured)


def look_up(value: Any, place: str) -> Any:
    """What stands at a dotted place: ``a.b``, ``runs[0].p50``, ``runs[-1]``, ``runs.0``, ``"a.key with dots".b``.

    Raises:
        ValueError: There is nothing, or the place is none; the message says how far it goes.
    """
    at, seen = 0, ""
    while at < len(place):
        step = _STEP.match(place, at)
        if step is None or (at == 0 and place.startswith(".")):
            raise ValueError(f"{place!r} is no place: keys with dots between them, and [0] for the first of an array")
        quoted, index, key = step.groups()
        whole = step[0].removeprefix(".")
        if isinstance(value, Sequence) and not isinstance(value, str):
            number = index if index is not None else key
            if number is None or re.fullmatch(r"-?\d+", number) is None:
                raise ValueError(f"{seen or 'the result'} is an array; {whole!r} is no index")
            if not -len(value) <= int(number) < len(value):
                raise ValueError(f"{seen or 'the result'} has {len(value)} items; there is no [{number}]")
            value = value[int(number)]
        elif isinstance(value, Mapping):
            name = quoted if quoted is not None else key
            if name is None:
                raise ValueError(f"{seen or 'the result'} is an object; {whole} is the index of an array")
            if name not in value:
                raise ValueError(f"there is no {place[: step.end()]!r}; {seen or 'the result'} has {_keys(value)}")
            value = value[name]
        else:
            raise ValueError(f"{seen} is {_kind(value)}, and has no {whole!r}")
        at, seen = step.end(), place[: step.end()]
    return value


def _mapped(value: Any, name: str, place: str) -> Measured:
    """One metric by its place, perhaps `` in UNIT``; an array of numbers counts by its median."""
    unit = METRICS[name][0] if name in METRICS else ""
    factor = 1.0
    path, given = place, _IN_UNIT.fullmatch(place)
    if given is not None:
        factors = UNITS.get(unit, {unit: 1.0})
        if given[2] not in factors:
            known = ", ".join(one for one in factors if one) or "none"
            raise ValueError(f"engine.metrics.{name}: {given[2]!r} is no unit of it; known: {known}")
        path, factor = given[1], factors[given[2]]
    try:
        found = look_up(value, path)
        if isinstance(found, list | tuple) and found:
            samples = tuple(_number(f"{path}[{at}]", item) * factor for at, item in enumerate(found))
            return Measured(statistics.median(samples), unit, samples)
        return Measured(_number(path, found) * factor, unit)
    except ValueError as error:
        raise ValueError(f"engine.metrics.{name}: {error}") from None


def _plain_json(value: Mapping[str, Any], workload: Workload) -> Observation:
    return Observation()


def _vllm_serve(value: Mapping[str, Any], workload: Workload) -> Observation:
    if "total_output_tokens" not in value:
        _need(value, "duration", "the JSON of `vllm bench serve --save-result`")
        raise ValueError("there is no 'total_output_tokens': a pooling benchmark, which generates nothing")
    duration = _number("duration", _need(value, "duration", "the JSON of `vllm bench serve --save-result`"))
    found = {
        "throughput": _metric(value, "output_throughput", "tokens/s"),
        "request_throughput": _metric(value, "request_throughput", "requests/s"),
        "acceptance_rate": _metric(value, "spec_decode_acceptance_rate", "ratio", 0.01),
    }
    # Not its ITL: that is the time between two pieces of a stream, each of which may hold several tokens.
    for name in ("ttft", "tpot", "e2el"):
        found[name] = _metric(value, f"median_{name}_ms", "s", 1e-3)
        for rank in ("p90", "p99"):
            found[f"{name}_{rank}"] = _metric(value, f"{rank}_{name}_ms", "s", 1e-3)
    came, completed = _count(value, "total_output_tokens"), _count(value, "completed")
    texts = value.get("generated_texts")
    digest = _digest(texts) if isinstance(texts, list) and texts and any(texts) else None
    failed = _count(value, "failed") if "failed" in value else max(0, _count(value, "num_prompts") - completed)
    return Observation(
        metrics=_present(found),
        phases=(Phase("main", 0, duration, completed, came, digest),),
        tokens=Tokens(_asked(workload), came, digest, failed),
        failure=None if completed else Failure("requests", f"all {failed} requests failed"),
    )


def _vllm_throughput(value: Mapping[str, Any], workload: Workload) -> Observation:
    seconds = _number("elapsed_time", _need(value, "elapsed_time", "the JSON of `vllm bench throughput --output-json`"))
    # Not its tokens_per_second, which counts the tokens of prompts as well; the output's stand nowhere in the JSON.
    found = {
        "request_throughput": _metric(value, "requests_per_second", "requests/s"),
        "seconds": Measured(seconds, "s"),
    }
    return Observation(
        metrics=_present(found), phases=(Phase("main", 0, seconds, _count(value, "num_requests")),), tokens=None
    )


def _vllm_latency(value: Mapping[str, Any], workload: Workload) -> Observation:
    given = _need(value, "latencies", "the JSON of `vllm bench latency --output-json`")
    if not isinstance(given, list) or not given:
        raise ValueError("latencies: an array of seconds is expected")
    samples = tuple(_number(f"latencies[{at}]", item) for at, item in enumerate(given))
    return Observation(metrics={"seconds": Measured(statistics.median(samples), "s", samples)})


def _guidellm(value: Mapping[str, Any], workload: Workload) -> Observation:
    runs = _need(value, "benchmarks", "the JSON of guidellm")
    if not isinstance(runs, list) or not runs:
        raise ValueError("benchmarks: an array with one benchmark is expected")
    if len(runs) > 1:
        raise ValueError(
            f"benchmarks: {len(runs)} of them, as of a sweep; let guidellm run one profile at one rate, so that both "
            'arms did the same, or read one of them with reads = "json" and engine.metrics'
        )
    run = runs[0]
    totals = look_up(run, "metrics.request_totals")
    place = "benchmarks[0].metrics."
    found = {
        "throughput": _distribution(run, "output_tokens_per_second", "mean", "tokens/s", place),
        "request_throughput": _distribution(run, "requests_per_second", "mean", "requests/s", place),
    }
    # Not its time_per_output_token_ms, which divides the whole request, prefill included, by its tokens.
    for name, key, factor in (
        ("ttft", "time_to_first_token_ms", 1e-3),
        ("itl", "inter_token_latency_ms", 1e-3),
        ("e2el", "request_latency", 1.0),
    ):
        found[name] = _distribution(run, key, "median", "s", place, factor)
        for rank in ("p90", "p99"):
            found[f"{name}_{rank}"] = _distribution(run, key, f"percentiles.{rank}", "s", place, factor)
    tokens = _distribution(run, "output_token_count", "total_sum", "tokens", place)
    came = round(tokens.value) if tokens is not None else None
    done, failed = _count(totals, "successful"), _count(totals, "errored")
    seconds = _number("benchmarks[0].duration", look_up(run, "duration"))
    return Observation(
        metrics=_present(found),
        phases=(Phase("main", 0, seconds, done, came),),
        tokens=Tokens(_asked(workload), came, None, failed),
        failure=None if done else Failure("requests", f"no request was successful; {failed} failed"),
    )


def _aiperf(value: Mapping[str, Any], workload: Workload) -> Observation:
    _need(value, "request_count", "aiperf's profile_export_aiperf.json")
    found: dict[str, Measured | None] = {
        "throughput": _with_unit(value, "output_token_throughput", "avg", "tokens/s"),
        "request_throughput": _with_unit(value, "request_throughput", "avg", "requests/s"),
    }
    # Its inter_token_latency is (latency - TTFT) / (tokens - 1) of a request; what it has of pieces is another metric.
    for name, key in (("ttft", "time_to_first_token"), ("itl", "inter_token_latency"), ("e2el", "request_latency")):
        found[name] = _with_unit(value, key, "p50", "s")
        for rank in ("p90", "p99"):
            found[f"{name}_{rank}"] = _with_unit(value, key, rank, "s")
    done = round(_number("request_count.avg", look_up(value, "request_count.avg")))
    failed = 0
    if "completed_request_count" in value:
        failed = round(_number("completed_request_count.avg", look_up(value, "completed_request_count.avg"))) - done
    elif "error_request_count" in value:
        failed = round(_number("error_request_count.avg", look_up(value, "error_request_count.avg")))
    came = None
    if "total_output_tokens" in value:
        came = round(_number("total_output_tokens.avg", look_up(value, "total_output_tokens.avg")))
    phases: tuple[Phase, ...] = ()
    seconds = _with_unit(value, "benchmark_duration", "avg", "s")
    if seconds is not None:
        phases = (Phase("main", 0, seconds.value, done, came),)
    failure = None
    if value.get("was_cancelled") is True:
        failure = Failure("cancelled", "aiperf was cancelled, so its result is of a part")
    elif not done:
        failure = Failure("requests", f"no request was successful; {failed} failed")
    return Observation(
        metrics=_present(found), phases=phases, tokens=Tokens(_asked(workload), came, None, failed), failure=failure
    )


def _hyperfine(value: Mapping[str, Any], workload: Workload) -> Observation:
    results = _need(value, "results", "the JSON of `hyperfine --export-json`")
    if not isinstance(results, list) or len(results) != 1:
        count = len(results) if isinstance(results, list) else "no"
        raise ValueError(
            f"results: {count} commands, where one is expected: an arm is one run of hyperfine with one command"
        )
    samples = tuple(_number(f"results[0].times[{at}]", item) for at, item in enumerate(results[0].get("times") or ()))
    median = _number("results[0].median", look_up(results[0], "median"))
    wrong = [code for code in results[0].get("exit_codes") or () if code != 0]
    failure = Failure("status", f"{len(wrong)} of its runs ended with status {wrong[0]}") if wrong else None
    return Observation(metrics={"seconds": Measured(median, "s", samples)}, failure=failure)


_READERS: dict[str, Callable[[Mapping[str, Any], Workload], Observation]] = {
    "json": _plain_json,
    "vllm-serve": _vllm_serve,
    "vllm-throughput": _vllm_throughput,
    "vllm-latency": _vllm_latency,
    "guidellm": _guidellm,
    "aiperf": _aiperf,
    "hyperfine": _hyperfine,
}


def _asked(workload: Workload) -> int | None:
    return workload.requests * workload.max_tokens if workload.prompts and workload.ignore_eos else None


def _present(found: Mapping[str, Measured | None]) -> dict[str, Measured]:
    return {name: one for name, one in found.items() if one is not None}


def _metric(value: Mapping[str, Any], key: str, unit: str, factor: float = 1.0) -> Measured | None:
    given = value.get(key)
    return None if given is None else Measured(_number(key, given) * factor, unit)


def _distribution(run: Any, name: str, statistic: str, unit: str, place: str, factor: float = 1.0) -> Measured | None:
    """One statistic of guidellm over the successful requests; None where none has it."""
    given = look_up(run, "metrics").get(name)
    if not isinstance(given, Mapping) or not isinstance(given.get("successful"), Mapping):
        return None
    if not given["successful"].get("count"):
        return None
    where = f"{place}{name}.successful.{statistic}"
    return Measured(_number(where, look_up(given["successful"], statistic)) * factor, unit)


def _with_unit(value: Mapping[str, Any], name: str, statistic: str, unit: str) -> Measured | None:
    """One statistic of aiperf, which says the unit of each metric."""
    given = value.get(name)
    if not isinstance(given, Mapping) or given.get(statistic) is None:
        return None
    factor = UNITS[unit].get(str(given.get("unit")))
    if factor is None:
        raise ValueError(f"{name}.unit: {given.get('unit')!r}, where one of {', '.join(UNITS[unit])} is expected")
    return Measured(_number(f"{name}.{statistic}", given[statistic]) * factor, unit)


def _need(value: Mapping[str, Any], key: str, what: str) -> Any:
    if value.get(key) is None:
        raise ValueError(f"there is no {key!r}, so this is not {what}; it has {_keys(value)}")
    return value[key]


def _count(value: Any, key: str) -> int:
    return round(_number(key, look_up(value, key)))


def _number(where: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not -1e308 < value < 1e308:
        raise ValueError(f"{where}: {_kind(value)}, where a finite number is expected")
    if not measurable(value):
        raise ValueError(f"{where}: {_kind(value)} is not between {LEAST:g} and {MOST:g}, so it measures nothing")
    return float(value)


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode("ascii")).hexdigest()


def _keys(value: Mapping[str, Any]) -> str:
    names = [str(name) for name in value][:12]
    return ", ".join(names) + (", ..." if len(value) > len(names) else "") if names else "no keys"


def _kind(value: Any) -> str:
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return "an array"
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
