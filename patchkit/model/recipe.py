"""The recipe as data: what one experiment compares, checked, with the overrides of each arm and point resolved.

Made by :mod:`patchkit.model.load_recipe`; whoever reads a recipe sees whole arms, and never an override.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from patchkit.tuples import NamedTuple

EngineKind = Literal["vllm", "openai", "command", "tpu-cpu-rig"]
ArmName = Literal["baseline", "treatment"]
TokensGate = Literal["identical", "count", "any"]
ProbesGate = Literal["required", "any"]
#: Whose JSON a command's result is: ``patchkit`` is an observation of ours, ``json`` any object, read by a mapping.
Format = Literal["patchkit", "json", "vllm-serve", "vllm-throughput", "vllm-latency", "guidellm", "aiperf", "hyperfine"]

#: What a recipe's metrics are called, with the unit and which way is better. Others come from a command's mapping.
METRICS: dict[str, tuple[str, Literal["higher", "lower"]]] = {
    "throughput": ("tokens/s", "higher"),
    "throughput_first": ("tokens/s", "higher"),
    "request_throughput": ("requests/s", "higher"),
    "ttft": ("s", "lower"),
    "ttft_first": ("s", "lower"),
    "ttft_by_engine": ("s", "lower"),
    "tpot": ("s", "lower"),
    "itl": ("s", "lower"),
    "e2el": ("s", "lower"),
    "init": ("s", "lower"),
    "model_memory": ("GiB", "lower"),
    "kv_cache_tokens": ("tokens", "higher"),
    "max_concurrency": ("requests", "higher"),
    "acceptance_rate": ("ratio", "higher"),
    "seconds": ("s", "lower"),
}
#: Of a server's requests: those without a rank are medians (``itl`` over tokens, the others over requests).
METRICS.update(
    {f"{name}_{rank}": ("s", "lower") for name in ("ttft", "tpot", "itl", "e2el") for rank in ("p90", "p99")}
)


class Workload(NamedTuple):
    """What is asked of the engine in one process.

    ``prompts`` are repeated ``batch_mult`` times; ``repeats`` is how often TTFT and the main generation are measured in
    one process. ``temperature`` None leaves the engine's own default, likewise ``top_p`` and ``top_k``. ``concurrency``
    (requests in flight at once, None: all) and ``request_rate`` (requests/s, None: at once) are for servers.
    """

    prompts: tuple[str, ...] = ()
    batch_mult: int = 1
    max_tokens: int = 128
    temperature: float | None = 0.0
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    logprobs: int | None = None
    ignore_eos: bool = True
    repeats: int = 3
    concurrency: int | None = None
    request_rate: float | None = None

    @property
    def requests(self) -> int:
        """Requests of one generation."""
        return len(self.prompts) * self.batch_mult


class Engine(NamedTuple):
    """What is measured, and with which settings.

    ``options`` are further keyword arguments of ``vllm.LLM`` (kind ``vllm``), or options of ``vllm serve``
    (``openai``). ``transplants`` are folders made by ``patchkit transplant``, active in that arm only. ``rig`` is the
    rig's folder. ``command`` is a program and its arguments, ``result`` the file that it writes (None: its standard
    output), ``reads`` the format of that, ``metrics`` the dotted place of each metric in it. ``timeout`` is seconds
    for one process. Relative paths are relative to the recipe's folder.
    """

    kind: EngineKind
    model: str | None = None
    max_num_seqs: int | None = None
    max_model_len: int | None = None
    dtype: str | None = None
    quantization: str | None = None
    kv_cache_dtype: str | None = None
    tensor_parallel_size: int | None = None
    enable_prefix_caching: bool | None = None
    async_scheduling: bool | None = None
    speculative: Mapping[str, str | int] = {}
    options: Mapping[str, Any] = {}
    env: Mapping[str, str] = {}
    profile: bool = False
    transplants: tuple[str, ...] = ()
    rig: str | None = None
    url: str | None = None
    command: tuple[str, ...] = ()
    result: str | None = None
    reads: Format = "patchkit"
    metrics: Mapping[str, str] = {}
    timeout: float = 3600.0


class Arm(NamedTuple):
    """One side of a comparison, whole: the patches that are live in it, its workload and its engine."""

    name: ArmName
    patches: tuple[str, ...]
    workload: Workload
    engine: Engine


class Figure(NamedTuple):
    """A published figure of one metric, in the unit of :data:`METRICS`; shown beside what is measured, never gated.

    ``ratio`` is treatment / baseline where it was published without the two.
    """

    metric: str
    baseline: float | None
    treatment: float | None
    ratio: float | None = None

    def change(self) -> float | None:
        """Treatment / baseline, as published or of the two that were."""
        if self.baseline and self.treatment:
            return self.treatment / self.baseline
        return self.ratio


class Point(NamedTuple):
    """One comparison. A recipe without points has a single one, whose ``label`` is empty."""

    label: str
    baseline: Arm
    treatment: Arm
    figures: tuple[Figure, ...] = ()

    def arm(self, name: ArmName) -> Arm:
        """The arm called ``name``."""
        return self.baseline if name == "baseline" else self.treatment


class Gate(NamedTuple):
    """A limit on a metric: on the ratio treatment / baseline, or on the treatment's own value, in the metric's unit."""

    metric: str
    min_ratio: float | None = None
    max_ratio: float | None = None
    minimum: float | None = None
    maximum: float | None = None


class Gates(NamedTuple):
    """All gates. ``recompiles`` is the most compilations after warm-up in the treatment arm; None: not gated."""

    metrics: tuple[Gate, ...]
    tokens: TokensGate = "identical"
    recompiles: int | None = 0
    probes: ProbesGate = "required"


class Protocol(NamedTuple):
    """How it is run. ``discarded`` runs of each arm come first and do not count; ``pause`` is seconds between runs.

    ``trip_throughput`` and ``trip_ttft`` are losses (0.2: 20 % worse) in both of the first two pairs that end it.
    ``preflight``: first of all the treatment once with recompilation forbidden, untimed. ``traced``: at the end one
    profiled run of each arm, untimed, for the table of operations.
    """

    pairs_min: int = 3
    pairs_max: int = 5
    discarded: int = 1
    preflight: bool = True
    pause: float = 0.0
    trip_throughput: float = 0.2
    trip_ttft: float = 0.5
    traced: bool = False


class Economics(NamedTuple):
    """What one engine costs: ``chips`` of ``chip_watts`` W each (rated: an upper bound), ``price_per_hour`` for all."""

    chip_watts: float | None = None
    price_per_hour: float | None = None
    chips: int = 1


class LogLine(NamedTuple):
    """Independent evidence: ``text`` must stand in the engine's log of the ``arm`` (None: of both).

    At least ``at_least`` lines have it and at most ``at_most`` (None: any number).
    """

    text: str
    arm: ArmName | None = None
    at_least: int = 1
    at_most: int | None = None


class Recipe(NamedTuple):
    """One recipe file, checked. ``data`` is its bytes, ``digest`` their SHA-256; ``source`` says whose figures."""

    name: str
    summary: str
    points: tuple[Point, ...]
    gates: Gates
    protocol: Protocol = Protocol()
    economics: Economics = Economics()
    evidence: tuple[LogLine, ...] = ()
    description: str = ""
    links: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    source: str | None = None
    path: str | None = None
    data: bytes = b""
    digest: str = ""

    @property
    def patches(self) -> tuple[str, ...]:
        """The patches that are on trial: those of any treatment and not of its baseline, in order."""
        return tuple(
            dict.fromkeys(
                name for point in self.points for name in point.treatment.patches if name not in point.baseline.patches
            )
        )
