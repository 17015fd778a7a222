"""Builds the real engine, generates in phases, and counts what jax compiles in each; runs in a rig's interpreter.

A script for an interpreter without patchkit: ``python driver.py SPECIFICATION RESULT``, both JSON files. Only the
standard library is imported until the engine is.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

#: What jax reports for every program that it hands to the compiler, out of its cache or not.
COMPILED = "/jax/core/compile/backend_compile_duration"
#: What tpu-inference raises under VLLM_XLA_CHECK_RECOMPILATION=1.
FORBIDDEN = "compilation occurred but was forbidden"
#: A grammar that the tiny model's letters can spell.
GRAMMAR = "(yes|no|maybe)( (yes|no|maybe)){0,3}"
#: Distributions whose versions the result tells.
NAMED = ("vllm-tpu", "tpu-inference", "jax", "jaxlib", "torch", "torchax", "flax", "transformers")


def prompts(requests: int, vocabulary: int) -> list[list[int]]:
    """Token ids of each request: of several lengths, all different, the same in every run."""
    return [
        [2, *(5 + (31 * request + 17 * place * place) % (vocabulary - 5) for place in range(3 + request % 5))]
        for request in range(requests)
    ]


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


class Counter:
    """Counts compilations by the name of the function, for the phase under way."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def __call__(self, event: str, duration: float, **facts: Any) -> None:
        """A listener of ``jax.monitoring``."""
        if event == COMPILED:
            name = str(facts.get("fun_name", "?"))
            self.counts[name] = self.counts.get(name, 0) + 1

    def take(self) -> dict[str, int]:
        """The counts since the last call."""
        taken, self.counts = self.counts, {}
        return dict(sorted(taken.items()))


def parameters(mode: dict[str, Any], max_tokens: int) -> Any:
    """The sampling parameters of one phase."""
    from vllm import SamplingParams

    more: dict[str, Any] = {}
    if mode["structured"]:
        from vllm.sampling_params import StructuredOutputsParams

        more["structured_outputs"] = StructuredOutputsParams(regex=GRAMMAR)
    return SamplingParams(
        max_tokens=max_tokens,
        temperature=mode["temperature"],
        logprobs=mode["logprobs"],
        prompt_logprobs=mode["prompt_logprobs"],
        ignore_eos=not mode["structured"],
        detokenize=False,
        **more,
    )


def build(spec: dict[str, Any]) -> Any:
    """The engine."""
    from vllm import LLM

    return LLM(
        model=spec["model"],
        dtype="bfloat16",
        max_model_len=128,
        max_num_seqs=spec["max_num_seqs"],
        max_num_batched_tokens=256,
        num_gpu_blocks_override=64,
        compilation_config={"mode": 0},
        disable_log_stats=True,
        # Of the whole engine: tpu-inference takes no seed for a request.
        seed=spec["seed"],
        # Scheduled asynchronously, tokens differ between two runs of the release itself on a busy CPU.
        async_scheduling=False,
    )


def phases_of(spec: dict[str, Any]) -> list[tuple[str, int, int]]:
    """Name, number of requests and tokens of each phase."""
    return [
        ("warm-up", min(2, spec["requests"]), 2),
        ("ttft", spec["requests"], 1),
        ("main", spec["requests"], spec["max_tokens"]),
        ("main-again", spec["requests"], spec["max_tokens"]),
    ]


def measure(spec: dict[str, Any], result: dict[str, Any], tell: Callable[[str], None]) -> None:
    """Fill ``result`` phase by phase, so that what was done before an error is kept."""
    import jax

    counter = Counter()
    jax.monitoring.register_event_duration_secs_listener(counter)
    tell("building the engine")
    begun = time.monotonic()
    engine = build(spec)
    # What the engine's own warm-up compiled is its menu; it is counted as a whole.
    compiled = counter.take()
    result["engine"] = {"seconds": round(time.monotonic() - begun, 3), "compilations": sum(compiled.values())}
    batch = [{"prompt_token_ids": ids} for ids in prompts(spec["requests"], spec["vocabulary"])]
    for mode in spec["modes"]:
        phases: list[dict[str, Any]] = []
        result["modes"].append({"name": mode["name"], "phases": phases})
        for name, requests, max_tokens in phases_of(spec):
            tell(f"{mode['name']}: {name}")
            begun = time.monotonic()
            phase: dict[str, Any] = {"name": name}
            phases.append(phase)
            try:
                outputs = engine.generate(batch[:requests], parameters(mode, max_tokens), use_tqdm=False)
            finally:
                phase["seconds"] = round(time.monotonic() - begun, 3)
                phase["compilations"] = counter.take()
            phase["tokens"] = sum(len(one.outputs[0].token_ids) for one in outputs)
            phase["tokens_sha256"] = tokens_hash(outputs)
            phase["logprobs_sha256"] = logprobs_hash(outputs, prompt=False)
            phase["prompt_logprobs_sha256"] = logprobs_hash(outputs, prompt=True)


def versions() -> dict[str, str | None]:
    """The versions of what the result depends on."""
    from importlib.metadata import PackageNotFoundError, version

    found: dict[str, str | None] = {}
    for name in NAMED:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def main(specification: str, target: str) -> int:
    """Run what the file ``specification`` says and write the result to ``target``; 0 where no phase failed."""
    with open(specification, encoding="utf-8") as file:
        spec = json.load(file)
    result: dict[str, Any] = {"python": sys.version.split()[0], "versions": versions(), "modes": [], "error": None}

    def tell(phase: str) -> None:
        with open(f"{target}.phase", "w", encoding="utf-8") as file:
            file.write(phase)

    try:
        measure(spec, result, tell)
    except Exception as error:
        traceback.print_exc()
        text = str(error)
        result["error"] = {"type": type(error).__name__, "message": text, "forbidden": FORBIDDEN in text}
    with open(f"{target}.new", "w", encoding="utf-8") as file:
        json.dump(result, file, indent=1)
    os.replace(f"{target}.new", target)
    return 0 if result["error"] is None else 1


if __name__ == "__main__":
    status = main(sys.argv[1], sys.argv[2])
    sys.stdout.flush()
    sys.stderr.flush()
    # vLLM's own clean-up at exit fails on this engine, and says so at length.
    os._exit(status)
