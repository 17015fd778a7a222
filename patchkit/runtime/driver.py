"""Builds vLLM's engine, generates in phases, and counts what jax compiles in each; runs in the target's interpreter.

A script for an interpreter without patchkit: ``python driver.py SPECIFICATION RESULT``, both JSON files. Only the
standard library is imported until the engine is. What it is told and what it writes: :mod:`patchkit.rig.drive`.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import struct
import sys
import threading
import time
import traceback
from typing import Any

#: What jax reports for every program that it hands to the compiler, out of its cache or not.
COMPILED = "/jax/core/compile/backend_compile_duration"
#: What tpu-inference raises under VLLM_XLA_CHECK_RECOMPILATION=1.
FORBIDDEN = "compilation occurred but was forbidden"
#: What it says that it does first.
BUILDING = "building the engine"
#: Distributions whose versions the result tells.
NAMED = ("vllm", "vllm-tpu", "tpu-inference", "jax", "jaxlib", "libtpu", "torch", "torchax", "flax", "transformers")
#: Counters of the engine's own, without their prefix.
COUNTERS = (
    *("prefix_cache_queries", "prefix_cache_hits"),
    *("spec_decode_num_draft_tokens", "spec_decode_num_accepted_tokens"),
)


def tokens_hash(outputs: list[Any]) -> str:
    """SHA-256 of the token ids of all requests, in order."""
    ids = [list(one.outputs[0].token_ids) for one in outputs]
    return hashlib.sha256(json.dumps(ids).encode("ascii")).hexdigest()


def logprobs_hash(outputs: list[Any], prompt: bool) -> str | None:
    """SHA-256 of all log probabilities with their tokens and ranks, bit for bit; None where none came back."""
    digest, seen = hashlib.sha256(), False
    for one in outputs:
        for entries in (one.prompt_logprobs if prompt else one.outputs[0].logprobs) or ():
            for token, entry in sorted((entries or {}).items()):
                seen = True
                digest.update(struct.pack("<qdq", token, entry.logprob, entry.rank or 0))
            digest.update(b"/")
        digest.update(b"\n")
    return digest.hexdigest() if seen else None


def listen(folder: str) -> None:
    """Have jax report each compilation of this process, and of those forked from it, as a line of a file in there."""
    try:
        import jax
    except ImportError:  # an engine on something else: then nobody counts
        return

    def told(event: str, duration: float, **facts: Any) -> None:
        if event == COMPILED:
            line = json.dumps(str(facts.get("fun_name", "?"))) + "\n"
            file = os.open(os.path.join(folder, str(os.getpid())), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
            try:
                os.write(file, line.encode("ascii"))
            finally:
                os.close(file)

    jax.monitoring.register_event_duration_secs_listener(told)


class Counter:
    """Compilations by the name of the function, out of the files that the listeners write."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._read: dict[str, int] = {}
        #: Of all so far. With none, not even of the engine's own warm-up, nobody listened where it compiles.
        self.total = 0

    def take(self) -> dict[str, int]:
        """The counts since the last call."""
        counts: dict[str, int] = {}
        for name in os.listdir(self._folder):
            with open(os.path.join(self._folder, name), "rb") as file:
                file.seek(self._read.get(name, 0))
                for line in file:
                    function = json.loads(line)
                    counts[function] = counts.get(function, 0) + 1
                self._read[name] = file.tell()
        self.total += sum(counts.values())
        return dict(sorted(counts.items()))


def parameters(phase: dict[str, Any]) -> Any:
    """The sampling parameters of a phase."""
    from vllm import SamplingParams

    more: dict[str, Any] = {}
    if phase.get("regex") is not None:
        from vllm.sampling_params import StructuredOutputsParams

        more["structured_outputs"] = StructuredOutputsParams(regex=phase["regex"])
    return SamplingParams(**phase["sampling"], **more)


def counters(engine: Any) -> dict[str, float] | None:
    """The engine's counters, each added up over its labels; None where it keeps none."""
    try:
        found = engine.get_metrics()
    except Exception:  # it is built without them
        return None
    totals: dict[str, float] = {}
    for one in found:
        name = one.name.partition(":")[2]
        if name in COUNTERS and hasattr(one, "value"):
            totals[name] = totals.get(name, 0.0) + one.value
    return totals


def profiling() -> bool:
    """Whether this process is being traced by jax."""
    state = getattr(sys.modules.get("jax._src.profiler"), "_profile_state", None)
    return getattr(state, "profile_session", None) is not None


def first_tokens(outputs: list[Any]) -> float | None:
    """Seconds until the last request had its first token, by the engine's own clock."""
    found = [getattr(one.metrics, "first_token_latency", None) for one in outputs if getattr(one, "metrics", None)]
    known = [one for one in found if one]
    return max(known) if known else None


class Driver:
    """One run: each phase is in the result file before the next one begins."""

    def __init__(self, spec: dict[str, Any], target: str) -> None:
        self.spec = spec
        self.target = target
        self.counter = Counter(f"{target}.compiled")
        self.result: dict[str, Any] = {
            "python": sys.version.split()[0],
            "versions": versions(),
            "engine": None,
            "counted": False,
            "phases": [],
            "error": None,
            **{name: self.spec[name] for name in ("times",) if name in self.spec},
        }

    def run(self) -> None:
        """Build the engine and go through the phases."""
        self.tell(BUILDING)
        from vllm import LLM

        begun = time.perf_counter()
        engine = LLM(**self.spec["engine"])
        # What the engine's own warm-up compiled is its menu; it is counted as a whole.
        compiled = self.counter.take()
        self.result["engine"] = {
            "seconds": round(time.perf_counter() - begun, 6),
            "compilations": sum(compiled.values()),
        }
        batch = [{"prompt_token_ids": one} if isinstance(one, list) else one for one in self.spec["prompts"]]
        for phase in self.spec["phases"]:
            self.tell(phase["label"])
            self.phase(engine, phase, batch[: phase["requests"]])
            self.save()

    def phase(self, engine: Any, phase: dict[str, Any], batch: list[Any]) -> None:
        """One generation, timed alone."""
        if self.spec["reset"] and engine.reset_prefix_cache() is False:
            print("[patchkit] the engine could not reset its prefix cache", file=sys.stderr, flush=True)
        asked = parameters(phase)
        before = counters(engine)
        if phase.get("profile"):
            engine.start_profile()
        told: dict[str, Any] = {name: phase[name] for name in ("name", "mode", "repeat") if name in phase}
        told["profiler"] = bool(phase.get("profile")) or profiling()
        self.result["phases"].append(told)
        begun = time.perf_counter()
        try:
            outputs = engine.generate(batch, asked, use_tqdm=False)
        finally:
            told["seconds"] = round(time.perf_counter() - begun, 6)
            told["compilations"] = self.counter.take()
            self.result["counted"] = self.counter.total > 0
        if phase.get("profile"):
            engine.stop_profile()
        after = counters(engine)
        told["counters"] = None if before is None or after is None else _since(before, after)
        told["requests"] = len(outputs)
        told["failed"] = sum(one.outputs[0].finish_reason in (None, "abort", "error") for one in outputs)
        told["tokens"] = sum(len(one.outputs[0].token_ids) for one in outputs)
        told["tokens_sha256"] = tokens_hash(outputs)
        told["logprobs_sha256"] = logprobs_hash(outputs, prompt=False)
        told["prompt_logprobs_sha256"] = logprobs_hash(outputs, prompt=True)
        told["first_token_seconds"] = first_tokens(outputs)

    def tell(self, label: str) -> None:
        """Say what is under way, for whoever waits."""
        with open(f"{self.target}.phase", "w", encoding="utf-8") as file:
            file.write(label)

    def save(self) -> None:
        """Write the result, whole whenever it is read."""
        with open(f"{self.target}.new", "w", encoding="utf-8") as file:
            json.dump(self.result, file, indent=1)
        os.replace(f"{self.target}.new", self.target)


def end_with(parent: int) -> None:
    """End this process, and those that the engine started, once the one that started it is gone.

    Whoever is killed cannot end what it started; and an engine that stays holds the accelerator.
    """
    while os.getppid() == parent:
        time.sleep(1)
    os.killpg(0, signal.SIGKILL)


def _since(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    return {name: value - before.get(name, 0.0) for name, value in sorted(after.items())}


def versions() -> dict[str, str]:
    """The versions of what the result depends on, as far as it is installed."""
    from importlib.metadata import PackageNotFoundError, version

    found: dict[str, str] = {}
    for name in NAMED:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def main(specification: str, target: str) -> int:
    """Run what the file ``specification`` says and write the result to ``target``; 0 where no phase failed."""
    with open(specification, encoding="utf-8") as file:
        driver = Driver(json.load(file), target)
    os.mkdir(f"{target}.compiled")
    try:
        listen(f"{target}.compiled")
        driver.run()
    except Exception as error:
        traceback.print_exc()
        text = str(error)
        driver.result["error"] = {"type": type(error).__name__, "message": text, "forbidden": FORBIDDEN in text}
    driver.save()
    return 0 if driver.result["error"] is None else 1


if __name__ == "__main__":
    # A script's folder is the first on the path, and the modules in it are none of the engine's.
    sys.path[:] = [one for one in sys.path if os.path.realpath(one) != os.path.dirname(os.path.realpath(__file__))]
    if os.name == "posix" and os.getpgid(0) == os.getpid():
        threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start()
    status = main(sys.argv[1], sys.argv[2])
    sys.stdout.flush()
    sys.stderr.flush()
    # vLLM's own clean-up at exit fails on a rig's engine, and says so at length.
    os._exit(status)
elif __name__ == "__mp_main__":  # a process that the engine has spawned: its compilations count as well
    listen(f"{sys.argv[2]}.compiled")
