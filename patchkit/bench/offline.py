"""The engine ``vllm``: vLLM in a process of its own, built and measured by a script of the standard library.

What the process does is :mod:`patchkit.runtime.driver`'s; here is what it is told, and what its result means.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from patchkit.bench.economics import inter_token_latency
from patchkit.bench.launching import (
    arms_of,
    below,
    check_transplants,
    environment_of,
    failure_of,
    python_of,
    said,
)
from patchkit.bench.loglines import LogFacts, lines_of, read_log
from patchkit.bench.observation import Failure, Measured, Observation, Phase, PhaseName, Tokens
from patchkit.errors import GuardError
from patchkit.model.recipe import METRICS
from patchkit.rig.drive import Paths, drive, under_way
from patchkit.runtime.ledger import open_regular
from patchkit.visible import visible

if TYPE_CHECKING:
    from patchkit.bench.engine import Job
    from patchkit.model.recipe import Engine, Recipe, Workload
    from patchkit.site.environment import Site
    from patchkit.site.process import Completed

#: Distributions that have vLLM.
DISTRIBUTIONS = ("vllm", "vllm-tpu")
#: Requests and tokens of the warm-up: as in the study, so few that the first repeat touches every shape first.
WARM_UP = 2
#: Tokens of the generation that is traced: a trace costs per event, and drops what is beyond its capacity.
TRACED = 16
#: Where a traced job leaves its trace, below its folder.
TRACE_FOLDER = "trace"
_SETTINGS = (
    *("model", "max_num_seqs", "max_model_len", "dtype", "quantization", "kv_cache_dtype", "tensor_parallel_size"),
    *("enable_prefix_caching", "async_scheduling"),
)


class Vllm:
    """vLLM's ``LLM``, in the site's interpreter."""

    def check(self, recipe: Recipe, site: Site) -> Sequence[str]:
        """Refuse a site without vLLM, and copies that are none.

        Raises:
            UsageError: ``no-interpreter``; ``not-a-transplant``.
            GuardError: ``not-installed``.
        """
        python_of(site)
        check_transplants(recipe)
        if not any(site.find(name) for name in DISTRIBUTIONS):
            raise GuardError(
                f"vLLM is not installed in {site.label}",
                code="not-installed",
                hint="name the environment that has it: patchkit --python EXE rebench ...",
                details={"path": site.home},
            )
        return notes_of(recipe)

    def can_forbid(self) -> bool:
        """Yes: tpu-inference raises where it would compile."""
        return True

    def observe(self, job: Job, tick: Callable[[str], None]) -> Observation:
        """Build the engine, go through the phases, and say what came of it."""
        settings = settings_of(job.arm.engine, job.root, job.arm.workload, trace_folder(job))
        return observe_driver(job, settings, environment_of(job, variables_of(job)), tick)


def notes_of(recipe: Recipe) -> list[str]:
    """What people should know of a recipe's arms before they are run."""
    notes = []
    for arm in arms_of(recipe):
        places, requests = arm.engine.max_num_seqs, arm.workload.requests
        if places is not None and places < requests:
            notes.append(f"{arm.name}: {requests} requests wait for {places} places (max_num_seqs)")
        if arm.workload.repeats == 1:
            notes.append("repeats = 1: a loss at first touch cannot be told from a slower steady state")
    return list(dict.fromkeys(notes))


def trace_folder(job: Job) -> str | None:
    """Where the job's trace goes; None where it makes none."""
    wanted = job.profile or (job.arm.engine.profile and not job.forbid)
    return os.path.join(os.path.abspath(job.folder), TRACE_FOLDER) if wanted else None


def variables_of(job: Job) -> dict[str, str]:
    """What is set for the driver's process beside the recipe's variables."""
    more = {"PYTHONUNBUFFERED": "1"}
    if job.forbid:
        more |= {"VLLM_XLA_CHECK_RECOMPILATION": "1", "JAX_LOG_COMPILES": "1"}
    if job.profile:
        # A warm compile cache would give a program of other sources the names of those that filled it.
        more["JAX_COMPILATION_CACHE_INCLUDE_METADATA_IN_KEY"] = "true"
    return more


def paths_of(job: Job) -> Paths:
    """The files of the driver in a job's folder."""
    return Paths(*(os.path.join(job.folder, name) for name in ("job.json", "output.json", "log.txt")))


def settings_of(engine: Engine, root: str, workload: Workload, trace: str | None) -> dict[str, Any]:
    """Keyword arguments of ``vllm.LLM``: what the recipe says and nothing else but the engine's own counters."""
    found = {name: getattr(engine, name) for name in _SETTINGS if getattr(engine, name) is not None}
    if engine.model is not None and os.path.isdir(below(root, engine.model)):
        found["model"] = below(root, engine.model)
    if workload.seed is not None:
        # Of the whole engine: tpu-inference takes none for a request.
        found["seed"] = workload.seed
    if engine.speculative:
        found["speculative_config"] = dict(engine.speculative)
    if trace is not None:
        # Both, or the trace goes to `None` in the working directory.
        found["profiler_config"] = {"profiler": "torch", "torch_profiler_dir": trace}
    return {**found, "disable_log_stats": False, **engine.options}


def specification(job: Job, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What the driver is told."""
    workload = job.arm.workload
    return {
        "engine": dict(settings),
        "prompts": list(workload.prompts) * workload.batch_mult,
        "reset": True,
        "phases": phases_of(job),
    }


def phases_of(job: Job) -> list[dict[str, Any]]:
    """The generations of a job: a small one, then each repeat's two; where nothing is timed, one repeat."""
    workload, profile = job.arm.workload, trace_folder(job) is not None
    untimed = job.forbid or job.profile
    repeats, most = (1, max(2, workload.max_tokens)) if untimed else (workload.repeats, workload.max_tokens)
    phases = [_phase(workload, "warm-up", 0, "warm-up", min(WARM_UP, workload.requests), min(WARM_UP, most))]
    for repeat in range(repeats):
        place = f", repeat {repeat + 1} of {repeats}" if repeats > 1 else ""
        phases.append(_phase(workload, "ttft", repeat, f"ttft{place}", workload.requests, 1))
        phases.append(_phase(workload, "main", repeat, f"main{place}", workload.requests, most))
    if profile:
        phases.append(_phase(workload, "main", repeats, "main, traced", workload.requests, min(TRACED, most)))
        phases[-1]["profile"] = True
    return phases


def _phase(workload: Workload, name: str, repeat: int, label: str, requests: int, tokens: int) -> dict[str, Any]:
    asked = {key: getattr(workload, key) for key in ("temperature", "top_p", "top_k", "logprobs")}
    sampling = {key: value for key, value in asked.items() if value is not None}
    return {
        "name": name,
        "repeat": repeat,
        "label": label,
        "requests": requests,
        "sampling": {**sampling, "max_tokens": tokens, "ignore_eos": workload.ignore_eos},
    }


def observe_driver(
    job: Job, settings: Mapping[str, Any], env: Mapping[str, str], tick: Callable[[str], None]
) -> Observation:
    """Run the driver for a job, in its folder, and read its result and the log."""
    paths, timeout = paths_of(job), job.arm.engine.timeout
    try:
        done, result = drive(
            python_of(job.site),
            specification(job, settings),
            paths,
            timeout=timeout,
            cwd=job.folder,
            environ=env,
            tick=lambda: tick(under_way(paths)),
        )
    except OSError as error:
        return Observation(failure=Failure("start", f"the driver cannot be started: {error.strerror}"), log=paths.log)
    with open_regular(paths.log) as file:
        facts = read_log(lines_of(file))
    seen = observation_of(result, facts, job)
    return seen._replace(failure=_failure(result, facts, done, timeout, paths.log), log=paths.log)


def _failure(
    result: Mapping[str, Any] | None, facts: LogFacts, done: Completed, timeout: float, log: str
) -> Failure | None:
    error = None if result is None else result["error"]
    if facts.forbidden or (error is not None and error["forbidden"]):
        kind = "RuntimeError" if error is None else str(error["type"])
        what = facts.forbidden_program or "a program"
        return Failure(kind, f"{what} was compiled where compilation is forbidden (the log: {log})", forbidden=True)
    if error is not None:
        first = visible(str(error["message"]).strip().partition("\n")[0])[:300]
        return Failure(str(error["type"]), f"{error['type']}: {first} (the log: {log})")
    ended = failure_of(done, timeout, log)
    if ended is None and result is None:
        return Failure("result", f"the driver left no result; {said(done, log)}")
    return ended


def observation_of(result: Mapping[str, Any] | None, facts: LogFacts, job: Job) -> Observation:
    """What a driver's result and log say, as far as it came."""
    metrics = {name: one for name, one in facts.metrics.items() if name != "init"}
    if result is None:
        return Observation(metrics=metrics, version_lines=facts.version_lines)
    whole = [one for one in result["phases"] if "tokens" in one]
    if not (job.forbid or job.profile):
        metrics |= timed(result, whole, job.arm.workload)
    metrics |= _accepted(whole)
    compilations = _added(one["compilations"] for one in result["phases"]) if result["counted"] else facts.compilations
    return Observation(
        metrics=metrics,
        phases=tuple(_told(one, result["counted"]) for one in result["phases"]),
        tokens=_tokens([one for one in whole if one["name"] == "main" and not one["profiler"]], job),
        compilations=compilations,
        prefix_cache_hit_rate=_hit_rate(whole),
        profiler=any(one["profiler"] for one in result["phases"]),
        version_lines=facts.version_lines,
        versions=dict(result["versions"]),
    )


def timed(result: Mapping[str, Any], whole: Sequence[Mapping[str, Any]], workload: Workload) -> dict[str, Measured]:
    """Metrics of time: each the median of the repeats behind the first, which is the first touch of every shape."""
    found: dict[str, Measured] = {}
    if result["engine"] is not None:
        found["init"] = Measured(result["engine"]["seconds"], "s")
    ttft = {one["repeat"]: one for one in whole if one["name"] == "ttft"}
    main = {one["repeat"]: one for one in whole if one["name"] == "main" and one["seconds"] > 0}
    found |= _series("ttft", {repeat: one["seconds"] for repeat, one in ttft.items()})
    found |= _series("throughput", {repeat: one["tokens"] / one["seconds"] for repeat, one in main.items()})
    rates = {repeat: one["requests"] / one["seconds"] for repeat, one in main.items()}
    found |= _series("request_throughput", rates, first=False)
    steps = {
        repeat: step
        for repeat, one in main.items()
        if repeat in ttft
        and (step := inter_token_latency(one["seconds"], ttft[repeat]["seconds"], workload.max_tokens)) is not None
    }
    found |= _series("itl", steps, first=False)
    told = {repeat: one["first_token_seconds"] for repeat, one in ttft.items() if one["first_token_seconds"]}
    found |= _series("ttft_by_engine", told, first=False, unit="s")
    return found


def _series(
    name: str, values: Mapping[int, float], *, first: bool = True, unit: str | None = None
) -> dict[str, Measured]:
    if not values:
        return {}
    unit = METRICS[name][0] if unit is None else unit
    steady = tuple(value for repeat, value in sorted(values.items()) if repeat > 0) or tuple(values.values())
    found = {name: Measured(median(steady), unit, steady)}
    if first and 0 in values:
        found[f"{name}_first"] = Measured(values[0], unit)
    return found


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for one in counts:
        for name, count in one.items():
            total[name] = total.get(name, 0) + count
    return dict(sorted(total.items()))


def _told(one: Mapping[str, Any], counted: bool) -> Phase:
    name: PhaseName = one["name"]
    return Phase(
        name,
        one["repeat"],
        one["seconds"],
        one.get("requests", 0),
        one.get("tokens"),
        one.get("tokens_sha256"),
        dict(one["compilations"]) if counted else None,
    )


def _tokens(mains: Sequence[Mapping[str, Any]], job: Job) -> Tokens | None:
    """Of the main generations the one with the fewest tokens; the hash of all where they differ."""
    if not mains:
        return None
    workload = job.arm.workload
    asked = workload.requests * (max(2, workload.max_tokens) if job.forbid or job.profile else workload.max_tokens)
    hashes = list(dict.fromkeys(one["tokens_sha256"] for one in mains))
    digest = hashes[0] if len(hashes) == 1 else hashlib.sha256("\n".join(hashes).encode("ascii")).hexdigest()
    failed = sum(one["failed"] + workload.requests - one["requests"] for one in mains)
    return Tokens(asked, min(one["tokens"] for one in mains), digest, failed)


def _counted(whole: Sequence[Mapping[str, Any]], name: str) -> float | None:
    """A counter of the engine over all generations behind the warm-up; None where it has none."""
    found = [one["counters"].get(name) for one in whole if one["name"] != "warm-up" and one["counters"] is not None]
    known = [value for value in found if value is not None]
    return sum(known) if known else None


def _hit_rate(whole: Sequence[Mapping[str, Any]]) -> float | None:
    queries, hits = _counted(whole, "prefix_cache_queries"), _counted(whole, "prefix_cache_hits")
    if queries is None or hits is None:
        return None
    return hits / queries if queries else 0.0


def _accepted(whole: Sequence[Mapping[str, Any]]) -> dict[str, Measured]:
    drafted = _counted(whole, "spec_decode_num_draft_tokens")
    accepted = _counted(whole, "spec_decode_num_accepted_tokens")
    if not drafted or accepted is None:
        return {}
    return {"acceptance_rate": Measured(accepted / drafted, METRICS["acceptance_rate"][0])}
