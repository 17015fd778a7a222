"""What is measured: a batch of requests decoded greedily by ``gemma.py`` through TorchTPU, as patchkit's job says.

``[engine.options]`` of the recipe: ``way`` (``eager``, ``compiled``), ``attention`` (``compiler``, ``pallas``),
``steps`` (decode steps in one program), ``size`` (``gemma-2b``, ``tiny``), ``device`` (``tpu``; ``cpu`` to try it out).
Prints the observation that docs/engines.md describes. Beside torch and torch_tpu it needs the standard library alone.
"""

import hashlib
import importlib
import importlib.metadata
import json
import os
import statistics
import sys
import time

KNOWN = {
    "way": ("eager", "compiled"),
    "attention": ("compiler", "pallas"),
    "steps": None,
    "size": ("gemma-2b", "tiny"),
    "device": ("tpu", "cpu"),
}


def main():
    if "PATCHKIT_JOB" not in os.environ:
        sys.exit("PATCHKIT_JOB is not set: this script is started by patchkit rebench")
    with open(os.environ["PATCHKIT_JOB"], encoding="utf-8") as file:
        job = json.load(file)
    chosen = options_of(job["engine"].get("options") or {})
    torch = torch_of(chosen["device"])
    began = time.monotonic()
    # The model is read only now: it imports torch, and a missing chip is said first.
    decoder = importlib.import_module("gemma").Decoder(torch, chosen)
    print(json.dumps(measure(decoder, job["workload"], time.monotonic() - began, chosen, programs_of(torch))))


def options_of(given):
    """The options with their defaults; an unknown key or value ends the script."""
    chosen = {"way": "compiled", "attention": "compiler", "steps": 1, "size": "gemma-2b", "device": "tpu", **given}
    for key, value in chosen.items():
        if key not in KNOWN:
            sys.exit(f"engine.options.{key}: unknown; there are {', '.join(KNOWN)}")
        if KNOWN[key] is not None and value not in KNOWN[key]:
            sys.exit(f"engine.options.{key} = {value!r}: one of {', '.join(KNOWN[key])}")
    if type(chosen["steps"]) is not int or chosen["steps"] < 1:
        sys.exit(f"engine.options.steps = {chosen['steps']!r}: a whole number from 1 on")
    if chosen["steps"] > 1 and chosen["way"] == "eager":
        sys.exit("engine.options.steps: several steps in one program need way = 'compiled'")
    if chosen["attention"] == "pallas" and chosen["device"] != "tpu":
        sys.exit("engine.options.attention = 'pallas': the kernel is compiled for a TPU alone")
    return chosen


def torch_of(device):
    """torch, when it has that device; else the script ends and says why not."""
    try:
        import torch
    except Exception as error:  # whatever a backend raises on its way in
        sys.exit(f"torch cannot be imported: {error.__cause__ or error}")
    if device == "cpu":
        return torch
    try:
        import torch_tpu  # noqa: F401
    except Exception as error:
        sys.exit(f"torch_tpu cannot be imported: {error}")
    try:
        torch.empty(1, device="tpu")
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        sys.exit(f"there is no TPU chip here that torch_tpu can use, and nothing was measured (torch: {reason})")
    return torch


def programs_of(torch):
    """A function that tells how many graphs torch.compile made until now."""
    try:
        from torch._dynamo.utils import counters
    except ImportError:
        return None
    return lambda: counters["stats"]["unique_graphs"]


def measure(decoder, workload, init, chosen, programs):
    """Warm up, then time the first token and the whole generation, ``repeats`` times."""
    prompts = list(workload["prompts"]) * workload["batch_mult"]
    most = workload["max_tokens"]
    if workload["temperature"] != 0 or most < 2:
        sys.exit("workload: this script decodes greedily (temperature = 0), two tokens or more (max_tokens)")

    def generate(tokens):
        began = time.monotonic()
        made = decoder.generate(prompts, tokens)
        return time.monotonic() - began, made

    generate(most)
    before = programs() if programs else 0
    first, whole, seen = [], [], set()
    for _ in range(workload["repeats"]):
        first.append(generate(1)[0])
        seconds, rows = generate(most)
        whole.append(seconds)
        came = sum(len(row) for row in rows)
        seen.add(hashlib.sha256(json.dumps(rows).encode()).hexdigest())
    if len(seen) > 1:
        sys.exit("the repeats of one process gave different tokens: no time of it is worth anything")
    found = {
        "schema": 1,
        "metrics": {
            "init": {"value": init, "unit": "s"},
            "ttft": of(first, "s"),
            "throughput": of([came / seconds for seconds in whole], "tokens/s"),
            "itl": of([(w - f) / (most - 1) for w, f in zip(whole, first, strict=True)], "s"),
        },
        "tokens": {"asked": len(prompts) * most, "came": came, "sha256": seen.pop(), "failed_requests": 0},
    }
    if programs:
        # Of graphs there is no name: all of them are this one program's.
        found["compilations"] = {"decode": programs() - before}
    found["versions"] = versions()
    if chosen["device"] == "cpu":
        found["label"] = "on a CPU, to try the script: its times say nothing of a TPU"
    return found


def versions():
    """Of the distributions that decide what is measured, where they are installed."""
    found = {}
    for name in ("torch", "torch-tpu", "libtpu", "jax"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def of(samples, unit):
    return {"value": statistics.median(samples), "unit": unit, "samples": samples}


if __name__ == "__main__":
    main()
