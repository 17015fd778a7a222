"""What a rig of each release is made of; pure data.

Where each list comes from: the release pins jax, flax, qwix, numba and compressed-tensors; the rest is what its modules
were seen to import. Left out is what a CPU has no use for: libtpu, tpu-info, the CUDA libraries, cloud storage.
"""

from __future__ import annotations

from patchkit.tuples import NamedTuple

#: The release that a rig is made of when none is named.
DEFAULT = "0.24.0"
#: The patches that make the release run on a CPU, in this order, from the folder ``patches`` beside this file.
ADAPTATIONS = ("rig-jax", "rig-torchax", "rig-vllm", "rig-tpu-inference")

_LIBRARIES = (
    *("aiohttp", "anyio", "cachetools", "cbor2", "cloudpickle", "einops", "email-validator", "fsspec"),
    *("huggingface_hub", "jaraco.context", "jaraco.functools", "llguidance>=1.7,<1.10", "loguru", "msgspec"),
    *("openai", "openai-harmony", "opencv-python-headless", "opentelemetry-api", "opentelemetry-sdk"),
    *("opentelemetry-semantic-conventions", "opentelemetry-semantic-conventions-ai", "partial-json-parser"),
    *("pillow", "prometheus_client", "psutil", "py-cpuinfo", "pybase64", "pydantic", "pydantic-extra-types"),
    *("python-multipart", "pyyaml", "pyzmq", "regex", "requests", "safetensors", "scipy", "sentencepiece"),
    *("setuptools", "tiktoken", "tokenizers", "tqdm", "typing_extensions", "uvloop"),
    *("absl-py", "jaxtyping", "msgpack", "orbax-checkpoint", "parameterized", "tensorstore", "treescope"),
    # What chooses among the grammars imports all of them.
    *("diskcache==5.6.3", "lark==1.2.2", "lm-format-enforcer==0.11.3", "outlines_core==0.2.14"),
    # What vLLM's server is made of beside that.
    *("uvicorn", "watchfiles", "ijson", "prometheus-fastapi-instrumentator>=7", "mistral_common"),
    "model-hosting-container-standards>=0.1.14,<1",
    *("fastapi<0.137", "numba==0.62.1", "numpy<2.4", "optax==0.2.6", "transformers>=5.8,<5.25"),
)
_BARE = ("qwix==0.1.2", "torchax==0.0.13", "compressed-tensors==0.17.0", "gguf", "xgrammar", "apache-tvm-ffi")


class Recipe(NamedTuple):
    """One release's rig.

    ``libraries`` are installed with what they need, ``bare`` without it: those name TPU and CUDA packages. ``pins`` are
    the release's own pins that the rig departs from, in words. ``megabytes`` is what the environment takes on disk.
    """

    version: str
    python: tuple[int, int]
    torch: str
    libraries: tuple[str, ...]
    bare: tuple[str, ...]
    pins: tuple[str, ...]
    megabytes: int


def _recipe(
    version: str,
    *,
    python: tuple[int, int],
    torch: str,
    jax: str,
    flax: str,
    pins: tuple[str, ...],
    megabytes: int,
    libraries: tuple[str, ...] = (),
    bare: tuple[str, ...] = (),
) -> Recipe:
    return Recipe(
        version,
        python,
        f"torch=={torch}",
        (f"jax=={jax}", f"jaxlib=={jax}", *_LIBRARIES, *libraries),
        (f"flax=={flax}", *_BARE, *bare, f"tpu-inference=={version}"),
        pins,
        megabytes,
    )


_TORCH = "torch 2.13.0 in place of 2.10.0"
RECIPES: dict[str, Recipe] = {
    "0.23.0": _recipe(
        "0.23.0",
        python=(3, 11),
        torch="2.13.0",
        jax="0.10.2",
        flax="0.12.4",
        pins=("Python 3.11 in place of 3.12", _TORCH, "jax 0.10.2 in place of 0.10.1", "torchax 0.0.13 for 0.0.11"),
        megabytes=2400,
    ),
    "0.24.0": _recipe(
        "0.24.0",
        python=(3, 11),
        torch="2.13.0",
        jax="0.10.2",
        flax="0.12.4",
        pins=("Python 3.11 in place of 3.12", _TORCH),
        megabytes=2400,
    ),
    "0.32.0": _recipe(
        "0.32.0",
        python=(3, 12),
        torch="2.10.0",
        jax="0.11.2",
        flax="0.12.10",
        pins=(),
        megabytes=8500,
        libraries=("einshape", "immutabledict", "xprof>=2.23.1"),
        bare=("tokamax==0.0.17.dev20261015",),
    ),
}
