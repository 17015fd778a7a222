"""The command line of ``vllm serve``, from a recipe's settings; pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from patchkit.errors import UsageError
from patchkit.model.recipe import Engine

#: What ``engine.options`` holds for the client, and not for the server.
CLIENT_OPTIONS = ("endpoint",)
#: Options that decide where the server listens and what it is called: patchkit's own to set.
OURS = ("host", "port", "uds", "model", "served_model_name", "api_key", "root_path", "ssl_keyfile", "ssl_certfile")


def endpoint_of(engine: Engine) -> str:
    """``completions`` or ``chat``, by ``options.endpoint``.

    Raises:
        UsageError: ``serve-option``: it is neither.
    """
    endpoint = engine.options.get("endpoint", "completions")
    if endpoint not in ("completions", "chat"):
        raise UsageError(
            f"engine.options.endpoint is {endpoint!r}",
            code="serve-option",
            hint='"completions" (/v1/completions, the default) or "chat" (/v1/chat/completions)',
            details={"key": "engine.options.endpoint"},
        )
    return str(endpoint)


def refuse_options(engine: Engine) -> None:
    """Refuse options that patchkit sets itself.

    Raises:
        UsageError: ``serve-option``.
    """
    endpoint_of(engine)
    for name in engine.options:
        if name.replace("-", "_") in OURS:
            raise UsageError(
                f"engine.options.{name}: where the server listens and what it is called is set by patchkit",
                code="serve-option",
                hint="leave it out; engine.model names the model, engine.url a server that runs already",
                details={"key": f"engine.options.{name}"},
            )


def serve_arguments(
    engine: Engine, port: int, names: tuple[str, ...], *, seed: int | None = None, profile: str | None = None
) -> list[str]:
    """The arguments behind ``vllm serve``.

    A truth value is an option that is there, or its ``--no-`` form; an object is JSON; an array is several words; None
    leaves the option out.

    Args:
        engine: The arm's settings.
        port: Where it listens, on the loopback interface alone.
        names: What the model is called, by any of these.
        seed: Of the whole engine, for tpu-inference takes none for a request.
        profile: The folder for a trace; None: no profiler.
    """
    fields: dict[str, Any] = {
        "max_num_seqs": engine.max_num_seqs,
        "max_model_len": engine.max_model_len,
        "dtype": engine.dtype,
        "quantization": engine.quantization,
        "kv_cache_dtype": engine.kv_cache_dtype,
        "tensor_parallel_size": engine.tensor_parallel_size,
        "enable_prefix_caching": engine.enable_prefix_caching,
        "async_scheduling": engine.async_scheduling,
        "speculative_config": dict(engine.speculative) or None,
        "seed": seed,
        **{name: value for name, value in engine.options.items() if name not in CLIENT_OPTIONS},
    }
    if profile is not None:
        fields["profiler_config"] = {"profiler": "torch", "torch_profiler_dir": profile}
    words = [str(engine.model), "--host", "127.0.0.1", "--port", str(port), "--served-model-name", *names]
    for name, value in fields.items():
        words += _option(name.replace("_", "-"), value)
    return words


def _option(name: str, value: Any) -> list[str]:
    if value is None:
        return []
    if value is True:
        return [f"--{name}"]
    if value is False:
        return [f"--no-{name}"]
    if isinstance(value, Mapping):
        return [f"--{name}", json.dumps(value)]
    if isinstance(value, list | tuple):
        return [f"--{name}", *(item if isinstance(item, str) else json.dumps(item) for item in value)]
    return [f"--{name}", str(value)]
