"""Causal attention, twice: as plain array operations for XLA, and as the Pallas flash kernel that jax ships.

Each function returns what `patchkit compile-time` times: a jitted function and its arguments; the kernel's also says
where it is not compiled by Mosaic.
"""

import contextlib

import jax
import jax.numpy as jnp

HEADS, TOKENS, DIM = 8, 256, 128
SCALE = DIM**-0.5


def arguments():
    """Query, key and value of one sequence."""
    keys = jax.random.split(jax.random.key(0), 3)
    return tuple(jax.random.normal(key, (1, HEADS, TOKENS, DIM), jnp.bfloat16) for key in keys)


def xla():
    """Scores, mask, softmax and sum, with nothing said of how."""

    def attention(query, key, value):
        scores = jnp.einsum("bhqd,bhkd->bhqk", query, key, preferred_element_type=jnp.float32) * SCALE
        seen = jnp.tril(jnp.ones(scores.shape[-2:], bool))
        weights = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), axis=-1)
        return jnp.einsum("bhqk,bhkd->bhqd", weights.astype(value.dtype), value)

    return jax.jit(attention), arguments()


def pallas_flash():
    """The kernel in `jax.experimental.pallas.ops.tpu`, interpreted where there is no TPU."""
    from jax.experimental.pallas import tpu as pltpu
    from jax.experimental.pallas.ops.tpu.flash_attention import flash_attention

    tpu = jax.default_backend() == "tpu"

    def attention(query, key, value):
        with contextlib.nullcontext() if tpu else pltpu.force_tpu_interpret_mode():
            return flash_attention(query, key, value, causal=True, sm_scale=SCALE)

    jitted = jax.jit(attention)
    if tpu:
        return jitted, arguments()
    return jitted, arguments(), f"{jax.default_backend().upper()}, interpret mode: says nothing of Mosaic"
