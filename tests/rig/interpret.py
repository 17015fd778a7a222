"""Runs the release's attention kernel in jax's TPU-interpret mode; a script for a rig's interpreter.

``python interpret.py UNSET [BKV]...``: for each setting of PATCHKIT_RPA_DECODE_BKV (the word "unset": none) and each
batch, prints one JSON line: the hashes of output and cache, the largest difference of the output from that of the first
setting, and the kernel's scope name. The interpreter of jax 0.10 knows index transforms of a reference only; it is
taught reshape and bitcast here: the whole buffer is read, the chain of transforms evaluated on it, the whole written.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import sys
from types import SimpleNamespace
from typing import Any

#: (tokens that are new, tokens in all) of each sequence, and how many of the sequences only decode.
BATCHES: dict[str, tuple[list[tuple[int, int]], int]] = {
    "decode, short": ([(1, 5), (1, 100), (1, 128)], 3),
    "decode, long": ([(1, 300), (1, 129), (1, 500)], 3),
    "mixed, short": ([(1, 60), (1, 90), (7, 20)], 2),
}
PAGE, PAGES_PER_SEQUENCE = 128, 16
HEADS, KV_HEADS, HEAD_DIM = 4, 1, 128


def teach(interpreter: Any, types: Any, indexing: Any, np: Any) -> None:
    """Reads, writes and swaps through chains of transforms."""
    plain_get, plain_store, plain_swap = interpreter.get, interpreter.store, interpreter.swap

    def simple(transforms: Any) -> bool:
        return all(isinstance(one, indexing.NDIndexer) for one in transforms)

    def places(indexer: Any) -> tuple[Any, ...]:
        found = []
        for one in indexer.indices:
            if isinstance(one, indexing.Slice):
                begin, step = int(one.start), int(one.stride)
                found.append(slice(begin, begin + (one.size - 1) * step + 1, step))
            else:
                found.append(int(one))
        return tuple(found)

    def repacked(data: Any, dtype: Any) -> Any:
        """Bitcast as the TPU does it: rows of the narrower type lie in one row of the wider, the first lowest."""
        dtype = np.dtype(dtype)
        old = data.dtype.itemsize
        if old == dtype.itemsize:
            return data.view(dtype)
        *above, rows, lanes = data.shape
        if old < dtype.itemsize:
            fold = dtype.itemsize // old
            parts = np.moveaxis(data.reshape(*above, rows // fold, fold, lanes), -2, -1)
            return np.ascontiguousarray(parts).view(dtype)[..., 0]
        fold = old // dtype.itemsize
        parts = np.ascontiguousarray(data)[..., None].view(dtype)
        return np.ascontiguousarray(np.moveaxis(parts, -1, -2)).reshape(*above, rows * fold, lanes)

    def through(data: Any, one: Any) -> Any:
        if isinstance(one, indexing.NDIndexer):
            return data[places(one)]
        if isinstance(one, types.ReshapeTransform):
            return data.reshape(one.shape)
        assert isinstance(one, types.BitcastTransform), one
        return repacked(data, one.dtype)

    def read(data: Any, transforms: Any) -> Any:
        for one in transforms:
            data = through(data, one)
        return np.array(data)

    def written(data: Any, transforms: Any, value: Any) -> Any:
        if not transforms:
            return np.asarray(value)
        one, *rest = transforms
        inner = written(through(data, one), rest, value)
        if isinstance(one, indexing.NDIndexer):
            whole = np.array(data)
            whole[places(one)] = inner
            return whole
        if isinstance(one, types.ReshapeTransform):
            return inner.reshape(data.shape)
        return repacked(inner, data.dtype)

    def get(
        token: Any, device: Any, core: Any, space: Any, buffer: Any, transforms: Any, *rest: Any, **more: Any
    ) -> Any:
        if simple(transforms):
            return plain_get(token, device, core, space, buffer, transforms, *rest, **more)
        token, whole = plain_get(token, device, core, space, buffer, (), *rest, **more)
        return token, read(whole, transforms)

    def store(
        token: Any,
        device: Any,
        core: Any,
        space: Any,
        buffer: Any,
        transforms: Any,
        value: Any,
        *rest: Any,
        **more: Any,
    ) -> Any:
        if simple(transforms):
            return plain_store(token, device, core, space, buffer, transforms, value, *rest, **more)
        token, whole = plain_get(token, device, core, space, buffer, ())
        return plain_store(token, device, core, space, buffer, (), written(whole, transforms, value), *rest, **more)

    def swap(
        token: Any, device: Any, core: Any, space: Any, buffer: Any, transforms: Any, value: Any, mask: Any, **more: Any
    ) -> Any:
        if simple(transforms):
            return plain_swap(token, device, core, space, buffer, transforms, value, mask, **more)
        token, whole = plain_get(token, device, core, space, buffer, ())
        before = read(whole, transforms)
        value = np.asarray(value) if mask is None else np.where(np.asarray(mask), np.asarray(value), before)
        return plain_store(token, device, core, space, buffer, (), written(whole, transforms, value)), before

    for function in (get, store, swap):
        function.__wrapped__ = function  # type: ignore[attr-defined]  # the name that a DMA calls them by
    interpreter.get, interpreter.store, interpreter.swap = get, store, swap


def arguments_of(batch: list[tuple[int, int]], decoding: int, kernel: Any, jnp: Any, np: Any) -> tuple[Any, ...]:
    """What the kernel is called with."""
    draw = np.random.default_rng(3)
    count = len(batch)
    new = [one for one, _ in batch]
    tokens = -(-sum(new) // 8) * 8
    shape = kernel.get_kv_cache_shape(count * PAGES_PER_SEQUENCE, PAGE, KV_HEADS, HEAD_DIM, jnp.bfloat16)

    def random(*size: int) -> Any:
        return jnp.asarray(draw.standard_normal(size), jnp.bfloat16)

    return (
        *(random(tokens, HEADS, HEAD_DIM), random(tokens, KV_HEADS, HEAD_DIM), random(tokens, KV_HEADS, HEAD_DIM)),
        random(*shape),
        jnp.asarray([length for _, length in batch], jnp.int32),
        jnp.asarray(draw.permutation(count * PAGES_PER_SEQUENCE), jnp.int32),
        jnp.asarray(np.concatenate([[0], np.cumsum(new)]), jnp.int32),
        jnp.asarray([decoding, decoding, count], jnp.int32),
    )


def main(settings: list[str]) -> None:
    """Runs all batches under all settings."""
    os.environ.update(JAX_PLATFORMS="cpu", TPU_NAME="rig", TPU_WORKER_ID="0", TPU_ACCELERATOR_TYPE="v5litepod-1")
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax._src.pallas.mosaic.interpret import interpret_pallas_call as interpreter
    from jax._src.state import indexing, types
    from jax.experimental.pallas import tpu as pltpu
    from tpu_inference.kernels.ragged_paged_attention.v3 import kernel

    teach(interpreter, types, indexing, np)
    pltpu.get_tpu_info = lambda: SimpleNamespace(vmem_capacity_bytes=128 * 1024 * 1024)
    first: dict[str, Any] = {}
    for setting in settings:
        os.environ.pop("PATCHKIT_RPA_DECODE_BKV", None)
        if setting != "unset":
            os.environ["PATCHKIT_RPA_DECODE_BKV"] = setting
        for name, (batch, decoding) in BATCHES.items():
            jax.clear_caches()
            given = arguments_of(batch, decoding, kernel, jnp, np)
            with pltpu.force_tpu_interpret_mode(pltpu.InterpretParams()):
                traced = jax.jit(lambda *all_of: kernel.ragged_paged_attention(*all_of, sm_scale=HEAD_DIM**-0.5))
                names = sorted(set(re.findall(r"RPAd[\w.-]*", str(traced.trace(*given).jaxpr))))
                out, cache = traced(*given)
            live = np.asarray(out)[: sum(one for one, _ in batch)]
            wide = live.astype(np.float32)
            first.setdefault(name, wide)
            facts = {
                "setting": setting,
                "batch": name,
                "names": names,
                "output": hashlib.sha256(live.tobytes()).hexdigest(),
                "cache": hashlib.sha256(np.asarray(cache).tobytes()).hexdigest(),
                "difference": float(np.abs(wide - first[name]).max()),
                "size": float(np.abs(wide).max()),
            }
            print("FACTS " + json.dumps(facts), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
