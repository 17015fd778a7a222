"""What keys of a recipe ask of each other: contradictions, each with its reason, at the place where it is written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from patchkit.model.checks import quote
from patchkit.model.document import Document
from patchkit.model.recipe import METRICS, Arm, Gate, Gates, LogLine, Point, TokensGate, Workload
from patchkit.model.recipe_keys import KIND_RULES, OF_THE_SERVER, SERVERS

if TYPE_CHECKING:
    from patchkit.model.lines import KeyPath

DEFAULT_GATES = (Gate("throughput", min_ratio=0.97), Gate("ttft", max_ratio=1.10))
"""The gates of a recipe without ``[gates]``."""
TOKENS: dict[str, TokensGate] = {"patchkit": "identical", "vllm-serve": "count", "guidellm": "count", "aiperf": "count"}
"""What a result of each format tells of its output tokens as a rule; those left out tell nothing of them."""
IDENTICAL = ("patchkit", "vllm-serve")
"""Formats that can tell which tokens came: vLLM's does with ``--save-detailed``."""


def _ranked(*names: str) -> tuple[str, ...]:
    return tuple(f"{name}{rank}" for name in names for rank in ("", "_p90", "_p99"))


MEASURED: dict[str, tuple[str, ...]] = {
    "json": (),
    "vllm-serve": ("throughput", "request_throughput", "acceptance_rate", *_ranked("ttft", "tpot", "e2el")),
    "vllm-throughput": ("request_throughput", "seconds"),
    "vllm-latency": ("seconds",),
    "guidellm": ("throughput", "request_throughput", *_ranked("ttft", "itl", "e2el")),
    "aiperf": ("throughput", "request_throughput", *_ranked("ttft", "itl", "e2el")),
    "hyperfine": ("seconds",),
}
"""The metrics that each format gives, beside those of ``[engine.metrics]``; an observation of ours may give any."""
FIXED_TEMPERATURE = ("vllm-throughput", "vllm-latency")
"""Benches that sample at temperature 1.0, whatever they are told."""

_TIMED = ("s", "tokens/s", "requests/s")
_STRENGTH = ("any", "count", "identical")
_RESERVED = {
    "VLLM_XLA_CHECK_RECOMPILATION": "is for the preflight alone: a run in which compilation is forbidden is not timed",
    "PATCHKIT_JOB": "is set by rebench itself",
    "PATCHKIT_PROBES": "is set by rebench itself",
}
_OWN_KEYS = {
    **{name: name for name in ("model", "max_num_seqs", "max_model_len", "dtype", "quantization", "kv_cache_dtype")},
    **{name: name for name in ("tensor_parallel_size", "enable_prefix_caching", "async_scheduling")},
    "speculative_config": "speculative",
    "profiler_config": "profile",
}
"""Arguments of the engine that have a key of their own, and which."""


def check_kind(document: Document, kind: str, tables: Iterable[tuple[KeyPath, Mapping[str, Any]]]) -> None:
    """What a kind of engine needs and refuses, in every table of engine settings."""
    rule = KIND_RULES[kind]
    engines = list(tables)
    if rule.needs and not any(key in raw for _, raw in engines for key in rule.needs):
        document.table_problem(("engine",), ("engine",), f"kind {quote(kind)} needs {' or '.join(rule.needs)}")
    running = any("url" in raw for _, raw in engines) and "url" not in rule.refuses
    for at, raw in engines:
        for key in raw:
            if key in rule.refuses:
                document.key_problem((*at, key), f"has no meaning with kind {quote(kind)}")
            elif running and key == "options" and set(_names(raw[key])) <= {"endpoint"}:
                continue  # which is the client's
            elif running and key in OF_THE_SERVER:
                document.key_problem((*at, key), "has no meaning with url: that server runs already")
        for name in _names(raw.get("options")):
            own = _OWN_KEYS.get(name.replace("-", "_"))
            if own is not None:
                document.key_problem((*at, "options", name), f"has a key of its own: write it as {own} in the engine")
        for name in _names(raw.get("env")):
            if name in _RESERVED:
                document.key_problem((*at, "env", name), _RESERVED[name])


def _names(table: Any) -> Iterable[str]:
    return table if isinstance(table, dict) else ()


def check_gate(document: Document, at: KeyPath, gate: Gate, written: set[str]) -> None:
    """One gate has a limit, on the side of harm, that an equal treatment keeps."""
    if not written:
        document.table_problem(at, at, "no limit: needs min_ratio, max_ratio, min or max")
    better = METRICS[gate.metric][1] if gate.metric in METRICS else None
    if better == "higher" and gate.max_ratio is not None:
        document.key_problem((*at, "max_ratio"), f"{gate.metric} is better higher: a loss is limited by min_ratio")
    elif better == "lower" and gate.min_ratio is not None:
        document.key_problem((*at, "min_ratio"), f"{gate.metric} is better lower: a loss is limited by max_ratio")
    elif gate.min_ratio is not None and gate.max_ratio is not None:
        document.key_problem((*at, "max_ratio"), "with min_ratio, it is not known which way is better: keep one")
    elif gate.min_ratio is not None and gate.min_ratio > 1:
        document.key_problem((*at, "min_ratio"), _beyond("above", gate.min_ratio))
    elif gate.max_ratio is not None and gate.max_ratio < 1:
        document.key_problem((*at, "max_ratio"), _beyond("below", gate.max_ratio))
    if gate.minimum is not None and gate.maximum is not None and gate.minimum > gate.maximum:
        document.key_problem((*at, "min"), f"must be at most max, which is {gate.maximum}, found {gate.minimum}")


def _beyond(side: str, ratio: float) -> str:
    return f"{ratio} is {side} 1: an equal treatment could not pass; a gain is told as improved without a gate"


def default_gates(document: Document, points: Iterable[Point]) -> tuple[Gate, ...]:
    """The gates where none are written, as far as the arms measure them."""
    arms = [arm for point in points for arm in (point.baseline, point.treatment) if arm.engine.kind == "command"]
    given = [(arm.engine.reads, found) for arm in arms if (found := _measured(arm)) is not None]
    gates = tuple(gate for gate in DEFAULT_GATES if all(gate.metric in found for _, found in given))
    if not gates:
        reads = next(reads for reads, found in given if "throughput" not in found)
        document.table_problem(
            (), ("engine", "reads"), f"reads {quote(reads)} needs [gates]: neither throughput nor ttft is measured"
        )
    return gates


def _measured(arm: Arm) -> tuple[str, ...] | None:
    """The metrics that an arm's result has; None where nobody knows beforehand."""
    engine = arm.engine
    return None if engine.reads == "patchkit" else (*MEASURED[engine.reads], *engine.metrics)


def default_tokens(points: Iterable[Point]) -> TokensGate:
    """What is asked of output tokens where nothing is written: the most that the results can tell."""
    told = [TOKENS.get(arm.engine.reads, "any") for point in points for arm in (point.baseline, point.treatment)]
    return min(told, key=_STRENGTH.index, default="identical")


def check_recipe(
    document: Document, points: tuple[Point, ...], gates: Gates, evidence: tuple[LogLine, ...], source: str | None
) -> None:
    """What can only be said of whole arms."""
    rules = _Rules(document)
    for index, point in enumerate(points, 1):
        _check_difference(rules, index, point)
        for arm in (point.baseline, point.treatment):
            _check_workload(rules, index, arm, gates)
            _check_engine(rules, index, arm, gates)
        if gates.tokens == "identical":
            _check_identical(rules, index, point)
        if evidence and any(arm.engine.url for arm in (point.baseline, point.treatment)):
            rules.say(("evidence", 1), "a server that runs already has no log here: evidence needs one that is started")
        if point.figures and source is None:
            place: KeyPath = ("point", index, "figures") if point.label else ("figures",)
            rules.say(place, "need `source` at the top: whose are they?")


class _Rules:
    """Notes contradictions, each once, at the most particular place where the key is written."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self._said: set[tuple[KeyPath, str]] = set()

    def say(self, at: KeyPath, message: str) -> None:
        """Note a problem of what stands at ``at``."""
        if (at, message) in self._said:
            return
        self._said.add((at, message))
        if self._written(at) and len(at) > 1 and isinstance(at[-1], str):
            self.document.key_problem(at, message)
        else:
            self.document.table_problem(at, at, message)

    def where(self, index: int, arm: Arm, table: str, key: str) -> KeyPath:
        """Where the setting ``key`` of an arm comes from; the table where it is written nowhere."""
        places: tuple[KeyPath, ...] = (
            ("point", index, arm.name, table, key),
            (arm.name, table, key),
            ("point", index, table, key),
            (table, key),
        )
        return next((place for place in places if self._written(place)), (table,))

    def _written(self, at: KeyPath) -> bool:
        value: Any = self.document.root
        for part in at:
            if isinstance(part, int):
                if not isinstance(value, list) or part > len(value):
                    return False
                value = value[part - 1]
            elif isinstance(value, dict) and part in value:
                value = value[part]
            else:
                return False
        return True

    def gate(self, key: str) -> KeyPath:
        """Where a gate is written; the top of the file where it is a default."""
        return next((at for at in (("gates", key), ("gates",)) if self._written(at)), ())


def _check_difference(rules: _Rules, index: int, point: Point) -> None:
    """Between the arms something must differ."""
    one, other = point.baseline, point.treatment
    if (set(one.patches), one.workload, one.engine) == (set(other.patches), other.workload, other.engine):
        at: KeyPath = ("point", index) if point.label else ()
        what = "no difference between baseline and treatment"
        rules.say(at, f"{what}: name patches, or write settings in [treatment.engine] or [treatment.workload]")
    if one.engine.url is not None and set(one.patches) != set(other.patches):
        rules.say(
            ("patches",), "with url, patches change nothing: that server runs already; leave url out to start one"
        )


def _check_workload(rules: _Rules, index: int, arm: Arm, gates: Gates) -> None:
    workload, engine = arm.workload, arm.engine
    if not workload.prompts and engine.kind != "command":
        rules.say(("workload",), "needs prompts")
    if engine.kind in ("vllm", "tpu-cpu-rig"):
        for key in SERVERS:
            if getattr(workload, key) is not None:
                rules.say(
                    rules.where(index, arm, "workload", key),
                    f"kind {quote(engine.kind)} takes all requests at once: only a server or a command can be told",
                )
    if workload.temperature == 0:
        for key in ("top_p", "top_k"):
            if getattr(workload, key) is not None:
                rules.say(rules.where(index, arm, "workload", key), "has no meaning at temperature 0, which is greedy")
    if workload.max_tokens < 2:
        for gate in gates.metrics:
            if gate.metric in ("itl", "tpot"):
                rules.say(rules.gate(gate.metric), "needs max_tokens of 2 or more: it is the time between tokens")


def _check_engine(rules: _Rules, index: int, arm: Arm, gates: Gates) -> None:
    engine = arm.engine
    if engine.profile:
        timed = [gate.metric for gate in gates.metrics if gate.metric in METRICS and METRICS[gate.metric][0] in _TIMED]
        if timed:
            rules.say(
                rules.where(index, arm, "engine", "profile"),
                f"with the profiler on no time is believed, but {' and '.join(timed)} is gated: leave one of them out",
            )
    if engine.reads == "json" and not engine.metrics:
        rules.say(rules.where(index, arm, "engine", "reads"), 'format "json" needs [engine.metrics]')
    if engine.reads == "patchkit" and engine.metrics:
        rules.say(rules.where(index, arm, "engine", "metrics"), 'has no meaning with reads = "patchkit"')
    if engine.reads in FIXED_TEMPERATURE and arm.workload.temperature == 0:
        rules.say(
            rules.where(index, arm, "engine", "reads"),
            f"{quote(engine.reads)} samples at temperature 1.0 whatever it is told, so the greedy path is not run: "
            'use "vllm-serve" with --temperature 0, or kind "vllm"',
        )
    given = _measured(arm)
    for gate in gates.metrics if given is not None else ():
        if given is not None and gate.metric not in given:
            rules.say(
                rules.gate(gate.metric), f"nothing measures it: a result of format {quote(engine.reads)} has none"
            )


def _check_identical(rules: _Rules, index: int, point: Point) -> None:
    """Identical tokens are only to be had of requests that are alike and drawn alike."""
    at = rules.gate("tokens")
    written = at[-1:] == ("tokens",)
    lead = '"identical" cannot hold' if written else 'tokens is "identical" by default, which cannot hold'
    out = 'write tokens = "count" in [gates]'
    for arm in (point.baseline, point.treatment):
        if arm.workload.temperature != 0 and arm.workload.seed is None:
            rules.say(at, f"{lead}: the {arm.name} samples without a seed; {out}, or set seed")
        if arm.engine.reads not in IDENTICAL:
            rules.say(at, f"{lead}: a result of format {quote(arm.engine.reads)} does not tell them; {out}")
    one, other = (_asked(arm.workload) for arm in (point.baseline, point.treatment))
    for key in one:
        if one[key] != other[key]:
            rules.say(at, f"{lead}: the arms differ in {key}; {out}")


def _asked(workload: Workload) -> dict[str, Any]:
    """What output tokens depend on."""
    names = ("prompts", "batch_mult", "max_tokens", "temperature", "top_p", "top_k", "seed", "ignore_eos")
    return {name: getattr(workload, name) for name in names}
