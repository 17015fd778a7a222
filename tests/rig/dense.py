"""Compares the rig's dense attention with the release's own reference for its kernel; run by a rig's interpreter.

Prints one JSON object on the last line: for each batch the largest difference of the outputs, and whether the two
caches are equal bit for bit.
"""

from __future__ import annotations

import json
import os
from typing import Any

#: (tokens that are new, tokens in all) of each sequence; the first two batches are decode only, the last is ragged.
BATCHES = [
    [(1, 5), (1, 128), (1, 129)],
    [(1, 300)],
    [(7, 7), (1, 40), (130, 140), (3, 256)],
]
PAGE = 128
PAGES_PER_SEQUENCE = 4
HEADS, KV_HEADS, HEAD_DIM = 4, 2, 128


def compare(batch: list[tuple[int, int]], window: int | None, scale: float | None) -> dict[str, Any]:
    """One batch through both; with a scale, keys and values are eight bits each."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from tpu_inference._cpu_rig import ragged_paged_attention
    from tpu_inference.kernels.ragged_paged_attention.v3 import kernel

    draw = np.random.default_rng(3)
    sequences, live = len(batch) + 2, len(batch)  # two places that no sequence takes
    new = [count for count, _ in batch]
    tokens = sum(new) + 5
    held = jnp.bfloat16 if scale is None else jnp.float8_e4m3fn
    shape = kernel.get_kv_cache_shape(sequences * PAGES_PER_SEQUENCE, PAGE, KV_HEADS, HEAD_DIM, held)

    def random(*size: int, dtype: Any = jnp.bfloat16) -> Any:
        return jnp.asarray(draw.standard_normal(size), dtype)

    cache = random(*shape, dtype=held)
    pages = draw.permutation(sequences * PAGES_PER_SEQUENCE).astype(np.int32)
    ends = np.zeros(sequences + 1, np.int32)  # zeros behind the last: padding as the runner leaves it
    ends[1 : live + 1] = np.cumsum(new)
    lengths = np.zeros(sequences, np.int32)
    lengths[:live] = [length for _, length in batch]
    arguments = [
        random(tokens, HEADS, HEAD_DIM),
        *(random(tokens, KV_HEADS, HEAD_DIM, dtype=held), random(tokens, KV_HEADS, HEAD_DIM, dtype=held)),
        *(cache, jnp.asarray(lengths), jnp.asarray(pages), jnp.asarray(ends)),
        jnp.asarray([0, 0, live], jnp.int32),
    ]
    options = {"sm_scale": HEAD_DIM**-0.5, "sliding_window": window}
    options |= {} if scale is None else {"k_scale": scale, "v_scale": 2 * scale}
    wanted, wanted_cache = kernel.ref_ragged_paged_attention(*arguments, **options)
    found, found_cache = jax.jit(lambda *given: ragged_paged_attention(*given, **options))(*arguments)
    difference = jnp.abs(found[: sum(new)].astype(jnp.float32) - wanted.astype(jnp.float32))
    return {
        "difference": float(difference.max()),
        "size": float(jnp.abs(wanted.astype(jnp.float32)).max()),
        # The reference rounds its weights to the type of the cache.
        "rounding": 0.02 if scale is None else 2**-4,
        "cache": np.asarray(found_cache).tobytes() == np.asarray(wanted_cache).tobytes(),
    }


if __name__ == "__main__":
    os.environ.update(JAX_PLATFORMS="cpu", TPU_NAME="rig", TPU_WORKER_ID="0", TPU_ACCELERATOR_TYPE="v5litepod-1")
    kinds = [(None, None), (50, None), (None, 0.5)]
    print("\n" + json.dumps([compare(batch, *kind) for kind in kinds for batch in BATCHES]))
