"""Running the real engine of a rig in a process of its own, with patches in its memory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from patchkit.errors import SiteError
from patchkit.model.load import load_patch
from patchkit.model.patch import Patch
from patchkit.ops.bundle import make_bundle
from patchkit.ops.inmemory import Live, plan_in_memory
from patchkit.ops.launch import environment, refuse_nested
from patchkit.rig.drive import Paths, drive, under_way
from patchkit.rig.modes import Mode
from patchkit.rig.recipe import ADAPTATIONS
from patchkit.rig.state import Rig, rig_lock
from patchkit.rig.tiny import VOCABULARY
from patchkit.site.environment import Site, resolve
from patchkit.tuples import NamedTuple

#: What is said beside every time that a rig measures.
LABEL = "CPU simulation: says nothing of a TPU's speed"
#: Seconds for one run.
PATIENCE = 1800.0
#: Requests that the engine takes at once; its buckets are 8 and this.
SEQUENCES = 16
#: Of the engine's random numbers: two engines that do the same steps draw the same.
SEED = 7
#: A grammar that the tiny model's letters can spell.
GRAMMAR = "(yes|no|maybe)( (yes|no|maybe)){0,3}"
_HERE = os.path.dirname(os.path.abspath(__file__))
#: What is told of a phase.
_PHASE = (
    *("name", "seconds", "compilations", "tokens"),
    *("tokens_sha256", "logprobs_sha256", "prompt_logprobs_sha256"),
)


class Work(NamedTuple):
    """What the engine is to do. ``forbid``: an engine that compiles in its guarded places raises."""

    modes: tuple[Mode, ...]
    requests: int = 16
    max_tokens: int = 16
    forbid: bool = False


class Ran(NamedTuple):
    """What came of it: the patches of the process, and the result (its keys are documented in commands.md)."""

    patches: tuple[Live, ...]
    result: Mapping[str, Any]
    log: str

    @property
    def forbidden(self) -> bool:
        """Whether a compilation was caught."""
        error = self.result["error"]
        return error is not None and bool(error["forbidden"])


def adaptations() -> list[Patch]:
    """The patches that every process of a rig has."""
    return [load_patch(os.path.join(_HERE, "patches", f"{name}.toml")) for name in ADAPTATIONS]


def site_of_rig(rig: Rig) -> Site:
    """The rig's environment as a site."""
    return resolve(rig.python, None)


def variables(rig: Rig, environ: Mapping[str, str], *, forbid: bool) -> dict[str, str]:
    """The engine's environment: a CPU that passes for one TPU v5e, no hub, no cloud, caches within the rig."""
    cache = os.path.join(rig.folder, "cache")
    env = {
        name: value
        for name, value in environ.items()
        if not name.startswith(("VLLM_", "JAX_", "XLA_", "TPU_", "LIBTPU_", "HF_")) and name != "PYTHONPATH"
    }
    env |= {
        "JAX_PLATFORMS": "cpu",
        # What tpu-inference would ask the cloud's metadata server for.
        "TPU_ACCELERATOR_TYPE": "v5litepod-1",
        "TPU_NAME": "patchkit-rig",
        "TPU_WORKER_ID": "0",
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "HF_HOME": os.path.join(cache, "huggingface"),
        "XDG_CACHE_HOME": cache,
        "VLLM_CACHE_ROOT": os.path.join(cache, "vllm"),
        "VLLM_CONFIG_ROOT": os.path.join(cache, "vllm-config"),
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_DO_NOT_TRACK": "1",
        "VLLM_DISABLE_COMPILE_CACHE": "1",
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    }
    if forbid:
        env["VLLM_XLA_CHECK_RECOMPILATION"] = "1"
    return env


def engine_settings(rig: Rig, sequences: int = SEQUENCES) -> dict[str, Any]:
    """What the engine of a rig is built with; ``sequences`` are the requests that it takes at once."""
    return {
        "model": rig.model,
        "dtype": "bfloat16",
        "max_model_len": 128,
        "max_num_seqs": sequences,
        "max_num_batched_tokens": 256,
        # Of 16 tokens each: requests of a larger batch would wait for those of others.
        "num_gpu_blocks_override": 64 if sequences <= SEQUENCES else 8 * sequences,
        "compilation_config": {"mode": 0},
        # Of the whole engine: tpu-inference takes no seed for a request.
        "seed": SEED,
        # Scheduled asynchronously, tokens differ between two runs of the release itself on a busy CPU.
        "async_scheduling": False,
    }


def prompts(requests: int) -> list[list[int]]:
    """Token ids of each request: of several lengths, all different, the same in every run."""
    return [
        [2, *(5 + (31 * request + 17 * place * place) % (VOCABULARY - 5) for place in range(3 + request % 5))]
        for request in range(requests)
    ]


def phases_of(mode: Mode, work: Work) -> list[dict[str, Any]]:
    """What a mode goes through: the first touch of a bucket apart from the steady state."""
    shapes = (
        ("warm-up", min(2, work.requests), 2),
        ("ttft", work.requests, 1),
        ("main", work.requests, work.max_tokens),
        ("main-again", work.requests, work.max_tokens),
    )
    return [
        {
            "name": name,
            "mode": mode.name,
            "label": f"{mode.name}: {name}",
            "requests": requests,
            "regex": GRAMMAR if mode.structured else None,
            "sampling": {
                "max_tokens": max_tokens,
                "temperature": mode.temperature,
                "logprobs": mode.logprobs,
                "prompt_logprobs": mode.prompt_logprobs,
                "ignore_eos": not mode.structured,
                "detokenize": False,
            },
        }
        for name, requests, max_tokens in shapes
    ]


def specification(rig: Rig, work: Work) -> dict[str, Any]:
    """What the driver is told."""
    return {
        "engine": {**engine_settings(rig), "disable_log_stats": True},
        "prompts": prompts(work.requests),
        "reset": False,
        "phases": [phase for mode in work.modes for phase in phases_of(mode, work)],
        "times": LABEL,
    }


def by_mode(result: Mapping[str, Any]) -> dict[str, Any]:
    """The driver's result with its phases by mode, as far as each got."""
    modes: dict[str, list[dict[str, Any]]] = {}
    for phase in result["phases"]:
        modes.setdefault(phase["mode"], []).append({name: phase[name] for name in _PHASE if name in phase})
    told = {name: result[name] for name in ("python", "versions", "engine", "error") if result[name] is not None}
    return {**told, "error": result["error"], "modes": [{"name": name, "phases": ran} for name, ran in modes.items()]}


def run_rig(
    rig: Rig,
    patches: Sequence[Patch],
    work: Work,
    *,
    name: str = "run",
    allow_known_bad: bool = False,
    notice: Callable[[str], None],
    tick: Callable[[str], None],
) -> Ran:
    """Build the engine with ``patches`` in memory, beside the rig's own, and let it generate.

    Args:
        rig: The rig.
        patches: The patches; the rig's environment itself stays as it is.
        work: What to generate.
        name: Names the log and the result in the rig's folder ``runs``.
        allow_known_bad: Accept patches that are tagged ``known-bad``.
        notice: Told of a command that is waited for.
        tick: Told every second what is under way.

    Raises:
        UsageError: ``nested``.
        SiteError: ``rig-engine``: the process ended without a result; ``locked``: another engine of the rig runs.
        PatchkitError: As ``plan_in_memory`` does, for patches that cannot be in memory.
    """
    refuse_nested(os.environ)
    site = site_of_rig(rig)
    view = plan_in_memory(site, [*adaptations(), *patches], allow_known_bad=allow_known_bad, notice=notice)
    paths = Paths(*(os.path.join(rig.folder, "runs", f"{name}.{part}") for part in ("spec.json", "json", "log")))
    env = environment(site, make_bundle(view), variables(rig, os.environ, forbid=work.forbid))
    begun = time.monotonic()

    def told() -> None:
        tick(f"{name}: {under_way(paths)}, {time.monotonic() - begun:.0f} s")

    with rig_lock(rig, notice):
        done, result = drive(
            rig.python, specification(rig, work), paths, timeout=PATIENCE, cwd=rig.folder, environ=env, tick=told
        )
    if result is None or done.status not in (0, 1):
        raise SiteError(
            f"the engine's process {done.ended()} without a result; it said: {done.last_line() or 'nothing'}",
            code="rig-engine",
            hint=f"its whole output is in {paths.log}",
            details={"path": paths.log},
        )
    return Ran(view.patches, by_mode(result), paths.log)
