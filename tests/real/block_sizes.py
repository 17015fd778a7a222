"""Asks a tpu-inference tree for its block sizes under several settings of the environment; see test_block_sizes.py.

A script for the interpreter of an environment that holds jax: ``python block_sizes.py TREE < settings.json``, where the
settings are a list of objects (``env``, and optionally ``case``, ``page_size``, ``pages``, ``tpu``). Prints one JSON
object on the last line: ``results``, each the sizes or ``{"error": ...}``. The head counts are Gemma 2B's.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import light_detector

KERNEL = "tpu_inference.kernels.ragged_paged_attention.v3"


def ask(kernel: Any, setting: dict[str, Any]) -> dict[str, Any]:
    """The block sizes under one setting, or the error that was raised."""
    import jax.numpy as jnp

    for name in [name for name in os.environ if name.startswith("PATCHKIT_RPA_")]:
        del os.environ[name]
    os.environ.update(setting.get("env", {}))
    kernel.get_tpu_version = lambda: setting.get("tpu", 5)
    case = kernel.RpaCase[setting.get("case", "DECODE")]
    shape = (8, 1, 256, setting.get("page_size", 128), 512, 512, setting.get("pages", 16))
    try:
        return dict(kernel.get_default_block_sizes(jnp.bfloat16, jnp.bfloat16, *shape, case=case))
    except ValueError as error:
        return {"error": str(error)}


def main() -> None:
    """Reads the settings, prints the answers."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    light_detector.REAL |= {f"{KERNEL}.kernel", f"{KERNEL}.util"}
    sys.meta_path.insert(0, light_detector.Hook(Path(sys.argv[1])))
    import importlib

    kernel = importlib.import_module(f"{KERNEL}.kernel")
    results = [ask(kernel, setting) for setting in json.load(sys.stdin)]
    print(json.dumps({"results": results}))


if __name__ == "__main__":
    main()
