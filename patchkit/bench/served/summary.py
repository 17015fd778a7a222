"""From what the client saw and what the log says to an observation; pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from patchkit.bench.loglines import LogFacts
from patchkit.bench.observation import Failure, Measured, Observation, Phase, Tokens
from patchkit.model.recipe import METRICS, Workload

_HITS = ("vllm:prefix_cache_hits_total", "vllm:prefix_cache_queries_total")
_DRAFTS = ("vllm:spec_decode_num_accepted_tokens_total", "vllm:spec_decode_num_draft_tokens_total")
#: A client that was busy for a larger share of the time than this may have been what was measured.
BUSY = 0.7
#: Seconds behind its time at which a request may be sent before it is told.
LATE = 0.1


def observed(
    seen: Mapping[str, Any],
    facts: LogFacts,
    compiled: Sequence[Mapping[str, int] | None],
    workload: Workload,
    *,
    profiler: bool,
    versions: Mapping[str, str],
) -> Observation:
    """One process, as an observation.

    A metric is the median of the repeats after the first; the first alone is ``ttft_first`` and ``throughput_first``.

    Args:
        seen: The client's result.
        facts: What the server's log says; nothing, where there is none.
        compiled: For each phase, what was compiled in it by function; None where nobody counted.
        workload: What was asked.
        profiler: Whether a profiler was on.
        versions: Of the engine's distributions.
    """
    phases = seen["phases"]
    mains = [phase for phase in phases if phase["name"] == "main" and phase.get("answered")]
    counted = mains[1:] or mains
    failed = sum(phase.get("failed_requests", 0) for phase in phases)
    metrics = dict(facts.metrics) | _metrics(mains[:1], counted)
    drafts = _share(mains, *_DRAFTS)
    if drafts is not None:
        metrics["acceptance_rate"] = Measured(drafts, "ratio")
    hits = _share(mains, *_HITS)
    return Observation(
        metrics=metrics,
        phases=tuple(_phase(phase, counts) for phase, counts in zip(phases, compiled, strict=True)),
        tokens=_tokens(mains, workload, failed),
        compilations=facts.compilations,
        prefix_cache_hit_rate=facts.hit_rate if hits is None else hits,
        profiler=profiler,
        version_lines=facts.version_lines,
        versions=versions,
        found_lines=facts.found_lines,
        failure=_failure(seen, mains, facts, workload),
        notes=tuple(_notes(seen, phases, mains, workload)),
    )


def _metrics(first: Sequence[Mapping[str, Any]], counted: Sequence[Mapping[str, Any]]) -> dict[str, Measured]:
    found: dict[str, Measured] = {}

    def put(name: str, values: Sequence[float | None]) -> None:
        known = tuple(value for value in values if value is not None)
        if known and len(known) == len(values):
            found[name] = Measured(statistics.median(known), METRICS[name][0], known)

    put("throughput", [_rate(phase, "tokens") for phase in counted])
    put("throughput_first", [_rate(phase, "tokens") for phase in first])
    put("request_throughput", [_rate(phase, "answered") for phase in counted])
    put("ttft_first", [_rank(phase, "ttft", "p50") for phase in first])
    for name in ("ttft", "tpot", "itl", "e2el"):
        put(name, [_rank(phase, name, "p50") for phase in counted])
        for rank in ("p90", "p99"):
            put(f"{name}_{rank}", [_rank(phase, name, rank) for phase in counted])
    return found


def _rate(phase: Mapping[str, Any], key: str) -> float | None:
    value, seconds = phase.get(key), phase.get("seconds")
    return value / seconds if value is not None and seconds else None


def _rank(phase: Mapping[str, Any], name: str, rank: str) -> float | None:
    numbers = phase.get(name)
    return None if numbers is None else float(numbers[rank])


def _share(mains: Sequence[Mapping[str, Any]], part: str, whole: str) -> float | None:
    """What one counter grew by in the main phases, of what another did; None where that one did not grow."""
    sums = [0.0, 0.0]
    for phase in mains:
        before, after = phase.get("counters") or (None, None)
        if before is None or after is None:
            return None
        for at, name in enumerate((part, whole)):
            sums[at] += after.get(name, 0.0) - before.get(name, 0.0)
    return sums[0] / sums[1] if sums[1] > 0 else None


def _phase(phase: Mapping[str, Any], compiled: Mapping[str, int] | None) -> Phase:
    return Phase(
        phase["name"],
        phase["repeat"],
        phase.get("seconds", 0.0),
        phase.get("answered", 0),
        phase.get("tokens"),
        phase.get("tokens_sha256"),
        compiled,
    )


def _tokens(mains: Sequence[Mapping[str, Any]], workload: Workload, failed: int) -> Tokens:
    """Of the repeat that had the fewest, so that a single short one is seen; the hash only where all have the same."""
    came = [phase.get("tokens") for phase in mains]
    hashes = {phase.get("tokens_sha256") for phase in mains}
    known = [count for count in came if count is not None]
    return Tokens(
        workload.requests * workload.max_tokens if workload.ignore_eos else None,
        min(known) if known and len(known) == len(came) else None,
        hashes.pop() if len(hashes) == 1 else None,
        failed,
    )


def _failure(
    seen: Mapping[str, Any], mains: Sequence[Mapping[str, Any]], facts: LogFacts, workload: Workload
) -> Failure | None:
    if facts.forbidden:
        return Failure("RuntimeError", "compilation occurred but was forbidden, while requests were served", True)
    if seen["error"] is not None:
        return Failure("client", str(seen["error"]))
    last = seen["phases"][-1] if seen["phases"] else None
    if last is None or not last.get("answered"):
        reasons = _reasons(last.get("failed", {})) if last else "nothing was asked"
        where = f" of the {last['name']}" if last else ""
        return Failure("requests", f"every request{where} failed: {reasons}")
    if any(phase.get("tokens") is None for phase in mains):
        return Failure(
            "no-usage",
            "the server does not say how many tokens came (stream_options.include_usage), and pieces are not counted",
        )
    if len(mains) < workload.repeats:
        return Failure("client", f"{len(mains)} of {workload.repeats} repeats were done")
    return None


def _notes(
    seen: Mapping[str, Any],
    phases: Sequence[Mapping[str, Any]],
    mains: Sequence[Mapping[str, Any]],
    workload: Workload,
) -> list[str]:
    notes = []
    for phase in phases:
        if phase.get("failed"):
            which = phase["name"] if phase["name"] == "warm-up" else f"main {phase['repeat'] + 1}"
            count = phase["failed_requests"]
            notes.append(f"{which}: {count} request{'s' * (count != 1)} failed: {_reasons(phase['failed'])}")
    hashes = {phase.get("tokens_sha256") for phase in mains}
    if len(hashes) > 1:
        notes.append(f"the tokens of the {len(mains)} repeats are not the same, so there is no hash of them")
    if any(phase.get("reset") is False for phase in phases):
        notes.append("the prefix cache could not be emptied before each generation (/reset_prefix_cache)")
    if mains and any(phase.get("hashed") == "texts" for phase in mains):
        notes.append("the server gives no token ids, so that texts are compared")
    if mains and any(phase.get("itl") is None for phase in mains):
        notes.append("no time between tokens: pieces of the stream held several, and nobody said how many")
    busy = seen.get("client_cpu")
    if busy is not None and busy > BUSY:
        notes.append(f"the client itself was busy {busy:.0%} of the time, and may be what was measured")
    late = max((phase.get("late", 0.0) for phase in mains), default=0.0)
    if workload.request_rate is not None and late > LATE:
        notes.append(f"requests were sent up to {late:.2f} s behind their time, at the limit of concurrency")
    if mains and mains[0].get("counters", [None])[0] is None:
        notes.append("the server has no /metrics, so the prefix cache's hit rate is unknown")
    return notes


def _reasons(failed: Mapping[str, int]) -> str:
    return "; ".join(f"{count} x {reason}" if count > 1 else reason for reason, count in failed.items())
