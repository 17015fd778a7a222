"""The command line of a server."""

from __future__ import annotations

from patchkit.bench.served.command import serve_arguments
from patchkit.model.recipe import Engine


def test_every_setting_has_its_option() -> None:
    engine = Engine(
        "openai",
        model="m",
        max_num_seqs=16,
        max_model_len=128,
        dtype="bfloat16",
        quantization="fp8",
        kv_cache_dtype="fp8",
        tensor_parallel_size=2,
        enable_prefix_caching=False,
        async_scheduling=True,
        speculative={"method": "ngram", "num_speculative_tokens": 5},
        options={
            "compilation_config": {"mode": 0},
            "seed": 7,
            "enable-log-requests": False,
            "middleware": ["a", 2],
            "trust_remote_code": True,
            "revision": None,
            "endpoint": "chat",
        },
    )
    # As `vllm serve --help` of 0.24.0 names them.
    assert serve_arguments(engine, 8001, ("m", "mark"), seed=3) == [
        *("m", "--host", "127.0.0.1", "--port", "8001", "--served-model-name", "m", "mark"),
        *("--max-num-seqs", "16", "--max-model-len", "128", "--dtype", "bfloat16", "--quantization", "fp8"),
        *("--kv-cache-dtype", "fp8", "--tensor-parallel-size", "2", "--no-enable-prefix-caching"),
        *("--async-scheduling", "--speculative-config", '{"method": "ngram", "num_speculative_tokens": 5}'),
        *("--seed", "7", "--compilation-config", '{"mode": 0}', "--no-enable-log-requests", "--middleware", "a", "2"),
        "--trust-remote-code",
    ]


def test_what_is_not_set_is_left_to_the_server() -> None:
    assert serve_arguments(Engine("openai", model="m"), 1, ("m",), profile="trace") == [
        *("m", "--host", "127.0.0.1", "--port", "1", "--served-model-name", "m"),
        *("--profiler-config", '{"profiler": "torch", "torch_profiler_dir": "trace"}'),
    ]
