"""Runs tpu-inference's attention kernel, stock or with a transplanted copy, as far as a CPU goes; see test_grafted.py.

A script for the interpreter of an environment that holds jax: ``python grafted.py TREE [COPY]``. It imports the kernel
and some of those who use it, holds it in more ways, activates the copy ``COPY`` after that, and exports the kernel for
a TPU, where its name tells the block sizes. Prints one JSON object on the last line.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import light_detector

V3 = "tpu_inference.kernels.ragged_paged_attention.v3"
USERS = ("tpu_inference.kernels.mla.v1.kernel", "tpu_inference.layers.jax.attention.attention")


class Hook(light_detector.Hook):
    """As that, with the kernel's own package for real."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """See importlib.abc.MetaPathFinder."""
        if name == V3:
            folder = self.tree.joinpath(*name.split("."))
            return importlib.util.spec_from_file_location(
                name, folder / "__init__.py", submodule_search_locations=[str(folder)]
            )
        return super().find_spec(name, path, target)


def kernel_name(entry: Any) -> str:
    """The name of the decode kernel that an export for a TPU holds, and the block sizes in it."""
    import jax
    import jax.numpy as jnp

    def shape(*sizes: int, dtype: Any = jnp.bfloat16) -> Any:
        return jax.ShapeDtypeStruct(sizes, dtype)

    tokens, heads, kv_heads, size, page, pages, sequences = 8, 8, 1, 256, 128, 16, 8
    cache = shape(*KERNEL.get_kv_cache_shape(64, page, kv_heads, size, jnp.bfloat16))
    arguments = (
        shape(tokens, heads, size),
        shape(tokens, kv_heads, size),
        shape(tokens, kv_heads, size),
        cache,
        shape(sequences, dtype=jnp.int32),
        shape(sequences * pages, dtype=jnp.int32),
        shape(sequences + 1, dtype=jnp.int32),
        shape(3, dtype=jnp.int32),
    )
    exported = jax.export.export(jax.jit(functools.partial(entry)), platforms=["tpu"])(*arguments)
    return ",".join(sorted(set(re.findall(r"RPAd-p_\d+-bq_\d+_\d+-bkv_\d+_\d+", exported.mlir_module()))))


def main() -> None:
    """Imports, holds, activates, asks."""
    global KERNEL
    os.environ["JAX_PLATFORMS"] = "cpu"
    light_detector.REAL |= {f"{V3}.{name}" for name in ("kernel", "util")} | set(USERS)
    sys.meta_path.insert(0, Hook(Path(sys.argv[1])))
    KERNEL = importlib.import_module(f"{V3}.kernel")
    users = [importlib.import_module(name) for name in USERS]
    import jax
    from jax._src.pallas.mosaic import tpu_info

    tpu_info.get_device_kind = lambda: "TPU v5 lite"  # it asks the devices that are there
    tpu_info.get_num_device_cores = lambda: 1
    holder = sys.modules["__main__"].__dict__
    holder["jitted"] = jax.jit(KERNEL.merge_kv)
    holder["part"] = functools.partial(KERNEL.get_default_block_sizes)
    holder["table"] = {"attention": [KERNEL.ragged_paged_attention]}
    stock = KERNEL.ragged_paged_attention
    if len(sys.argv) > 2:
        copy = Path(sys.argv[2])
        sys.path.append(str(copy.parent))
        importlib.import_module(f"{copy.name}.activate")
        sys.modules[f"{copy.name}.kernel"].get_tpu_version = lambda: 5  # type: ignore[attr-defined]
    else:
        KERNEL.get_tpu_version = lambda: 5
    entries = {
        "module": KERNEL.ragged_paged_attention,
        "table": holder["table"]["attention"][0],
        "attention": users[1].ragged_paged_attention,
    }
    answer = {
        "names": {name: kernel_name(entry) for name, entry in entries.items()},
        "lower": hasattr(stock, "lower") and hasattr(KERNEL.ragged_paged_attention, "lower"),
        "kernel_body": KERNEL._ragged_paged_attention_kernel.__module__,
        "util": users[0].cdiv is importlib.import_module(f"{V3}.util").cdiv,
    }
    print(json.dumps(answer))


KERNEL: Any = None

if __name__ == "__main__":
    main()
