"""Running the real engine of a rig in a process of its own, with patches in its memory."""

from __future__ import annotations

import json
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
from patchkit.rig.modes import Mode
from patchkit.rig.recipe import ADAPTATIONS
from patchkit.rig.state import Rig, write_file
from patchkit.rig.tiny import VOCABULARY
from patchkit.runtime.ledger import read_regular
from patchkit.site.environment import Site, resolve
from patchkit.site.process import run
from patchkit.tuples import NamedTuple

#: What is said beside every time that a rig measures.
LABEL = "CPU simulation: says nothing of a TPU's speed"
#: Seconds for one run.
PATIENCE = 1800.0
#: Requests that the engine takes at once; its buckets are 8 and this.
SEQUENCES = 16
#: Of the engine's random numbers: two engines that do the same steps draw the same.
SEED = 7
_HERE = os.path.dirname(os.path.abspath(__file__))


class Work(NamedTuple):
    """What the engine is to do. ``forbid``: an engine that compiles in its guarded places raises."""

    modes: tuple[Mode, ...]
    requests: int = 16
    max_tokens: int = 16
    forbid: bool = False


class Ran(NamedTuple):
    """What came of it: the patches of the process, and the driver's result (its keys are documented in rig.md)."""

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


def specification(rig: Rig, work: Work) -> dict[str, Any]:
    """What the driver is told."""
    return {
        "model": rig.model,
        "vocabulary": VOCABULARY,
        "max_num_seqs": SEQUENCES,
        "seed": SEED,
        "requests": work.requests,
        "max_tokens": work.max_tokens,
        "modes": [mode._asdict() for mode in work.modes],
    }


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
        SiteError: ``rig-engine``: the process ended without a result.
        PatchkitError: As ``plan_in_memory`` does, for patches that cannot be in memory.
    """
    refuse_nested(os.environ)
    site = site_of_rig(rig)
    view = plan_in_memory(site, [*adaptations(), *patches], allow_known_bad=allow_known_bad, notice=notice)
    folder = os.path.join(rig.folder, "runs")
    spec, target, log = (os.path.join(folder, f"{name}.{part}") for part in ("spec.json", "json", "log"))
    write_file(spec, json.dumps(specification(rig, work), indent=1).encode("ascii"))
    for path in (target, f"{target}.phase"):
        if os.path.exists(path):
            os.unlink(path)
    env = environment(site, make_bundle(view), variables(rig, os.environ, forbid=work.forbid))
    begun = time.monotonic()

    def told() -> None:
        tick(f"{name}: {_phase(target)}, {time.monotonic() - begun:.0f} s")

    command = [rig.python, os.path.join(_HERE, "driver.py"), spec, target]
    done = run(command, timeout=PATIENCE, cwd=rig.folder, environ=env, tick=told)
    write_file(log, done.out + done.err)
    try:
        result = json.loads(read_regular(target))
    except (OSError, ValueError):
        raise SiteError(
            f"the engine's process {done.ended()} without a result; it said: {done.last_line() or 'nothing'}",
            code="rig-engine",
            hint=f"its whole output is in {log}",
            details={"path": log},
        ) from None
    return Ran(view.patches, result, log)


def _phase(target: str) -> str:
    try:
        return read_regular(f"{target}.phase", 200).decode("utf-8", "replace") or "starting"
    except OSError:
        return "starting"
