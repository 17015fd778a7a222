"""Counts what a tpu-inference tree compiles after its own warm-up, with nothing but jax and numpy installed.

A script for the interpreter of an environment that holds jax; patchkit and the tests only start it. It runs the
tree's real warm-up (``CompilationManager._precompile_sampling``, ``_precompile_gather_logprobs``),
``TPUModelRunner._sample_from_logits`` and ``sample`` against a stand-in for the runner. Everything heavy (vllm, torch,
flax, and the tree's own modules that need them) is fabricated by an import hook. It prints one JSON object. It takes no
timings: on a CPU only counts and identities mean something.

    python light_detector.py TREE [--buckets 8,16] [--logprobs-mode M] [--dtype T] [--devices N] [--forbid]
                             [--speculative]
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import importlib.machinery
import importlib.util
import inspect
import json
import logging
import os
import sys
import types
from abc import ABCMeta
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

VOCABULARY = 2048
HIDDEN = 64
MAX_LOGPROBS = 5
COMPILED = "/jax/core/compile/backend_compile_duration"

# The modules of the tree that run for real; its other modules are fabricated, its packages hold nothing of their own.
REAL = {
    "tpu_inference.envs",
    "tpu_inference.utils",
    "tpu_inference.layers.common.binary_search",
    "tpu_inference.layers.common.sharding",
    "tpu_inference.layers.common.utils",
    "tpu_inference.layers.jax.sample.sampling",
    "tpu_inference.layers.jax.sample.sampling_metadata",
    "tpu_inference.layers.jax.sample.rejection_sampler",
    "tpu_inference.runner.compilation_manager",
    "tpu_inference.runner.tpu_runner",
    "tpu_inference.runner.utils",
    "tpu_inference.spec_decode.jax.utils",
}
FABRICATED = {"vllm", "torch", "torchax", "torchvision", "flax", "jaxtyping", "transformers", "qwix", "libtpu"}


class FabricatedType(ABCMeta):
    """The type of every fabricated name: any attribute, call, subscript and base class will do."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return fabricate(name)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if "_fabricated" not in vars(cls):
            return super().__call__(*args, **kwargs)
        if len(args) == 1 and not kwargs and isinstance(args[0], (type, types.FunctionType)):
            return args[0]  # used as a decorator
        return fabricate(cls.__name__)

    def __getitem__(cls, item: Any) -> Any:
        return cls

    def __iter__(cls) -> Iterator[Any]:
        return iter(())


def fabricate(name: str) -> Any:
    """A class that stands for something this script has no use for."""
    return FabricatedType(name, (), {"_fabricated": True})


class FabricatedModule(types.ModuleType):
    """A module in which every name exists."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        full = f"{self.__name__}.{name}"
        value = importlib.import_module(full) if full in REAL or full in SUPPLIED else fabricate(name)
        setattr(self, name, value)
        return value


class LogprobsTensors(NamedTuple):
    """vllm.v1.outputs.LogprobsTensors: a pytree, since it leaves a jitted function."""

    logprob_token_ids: Any
    logprobs: Any
    selected_token_ranks: Any


class LogprobsLists(NamedTuple):
    """vllm.v1.outputs.LogprobsLists."""

    logprob_token_ids: Any
    logprobs: Any
    sampled_token_ranks: Any
    cu_num_generated_tokens: Any = None


class ModelRunnerOutput(types.SimpleNamespace):
    """vllm.v1.outputs.ModelRunnerOutput: what a step returns."""


class Runner(types.SimpleNamespace):
    """The stand-in for TPUModelRunner; hashable by identity, since jit takes it as a static argument."""

    __eq__ = object.__eq__
    __hash__ = object.__hash__


SUPPLIED: dict[str, dict[str, Any]] = {
    "vllm.v1.outputs": {
        "LogprobsTensors": LogprobsTensors,
        "LogprobsLists": LogprobsLists,
        "ModelRunnerOutput": ModelRunnerOutput,
    },
    "vllm.config.model": {"PROCESSED_LOGPROBS_MODES": ("processed_logits", "processed_logprobs")},
    "vllm.envs": {"VLLM_DISABLE_COMPILE_CACHE": True, "VLLM_XLA_CHECK_RECOMPILATION": False},
    "vllm.utils.math_utils": {"cdiv": lambda a, b: -(a // -b), "round_down": lambda a, b: a // b * b},
    "tpu_inference.logger": {"init_logger": logging.getLogger},
    # From 0.30.0 on sample() is compiled with options that only a TPU compiler knows.
    "tpu_inference.models.common.compiler_options": {"get_sampling_compiler_options": dict},
}


class Hook:
    """Finds every import that the tree makes: real, an empty package, or fabricated."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """The import system's question; see importlib.abc.MetaPathFinder."""
        top = name.partition(".")[0]
        if top == "tpu_inference":
            folder = self.tree.joinpath(*name.split("."))
            file = folder.with_name(folder.name + ".py")
            if name in REAL and file.exists():
                return importlib.util.spec_from_file_location(name, file)
            spec = importlib.machinery.ModuleSpec(name, self, is_package=True)
            spec.submodule_search_locations = [str(folder)]
            return spec
        if top in FABRICATED:
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """The import system's question; see importlib.abc.Loader."""
        module = FabricatedModule(spec.name)
        module.__dict__.update(SUPPLIED.get(spec.name, {}))
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Nothing to run in a fabricated module."""


class Counting:
    """Counts compilations by the name of the jitted function, phase by phase."""

    def __init__(self) -> None:
        import jax.monitoring

        self.now: Counter[str] = Counter()
        jax.monitoring.register_event_duration_secs_listener(self._heard)

    def _heard(self, event: str, duration: float, **metadata: Any) -> None:
        if event == COMPILED:
            name = str(metadata.get("fun_name", "?"))
            self.now[name.removeprefix("jit(").removesuffix(")")] += 1

    def take(self) -> dict[str, int]:
        """What was compiled since the last call."""
        counts, self.now = dict(sorted(self.now.items())), Counter()
        return counts


def make_mesh(devices: int) -> Any:
    """The two-axis mesh that the tree uses unless told otherwise, all devices on the model axis."""
    import jax
    import numpy as np
    from jax.sharding import AxisType, Mesh

    grid = np.array(jax.devices()[:devices]).reshape(1, devices)
    return Mesh(grid, ("data", "model"), axis_types=(AxisType.Auto, AxisType.Auto))


def make_runner(mesh: Any, options: argparse.Namespace) -> Any:
    """Everything of the runner that the warm-up and one step of sampling look at."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import NamedSharding, PartitionSpec
    from tpu_inference.layers.common.sharding import ShardingAxisName
    from tpu_inference.runner import utils as runner_utils
    from tpu_inference.runner.tpu_runner import TPUModelRunner

    logits_sharding = NamedSharding(mesh, PartitionSpec(ShardingAxisName.MLP_DATA, ShardingAxisName.MLP_TENSOR))

    @jax.jit(out_shardings=logits_sharding)
    def compute_logits(weights: Any, hidden_states: Any, lora_metadata: Any) -> Any:
        return hidden_states @ weights[0]

    # Drawn wide, so that the tokens vary and two logits are rarely equal in bfloat16.
    table = jax.random.normal(jax.random.key(1), (HIDDEN, VOCABULARY)).astype(jnp.dtype(options.dtype))
    weights = (jax.device_put(table, NamedSharding(mesh, PartitionSpec(None, ShardingAxisName.MLP_TENSOR))),)
    buckets = options.buckets
    return Runner(
        mesh=mesh,
        rank=0,
        dp_size=1,
        is_last_rank=True,
        is_pooling_model=False,
        vocab_size=VOCABULARY,
        num_reqs_paddings=buckets,
        num_logits_paddings=buckets,
        num_tokens_paddings=buckets,
        max_num_reqs=max(buckets),
        max_model_len=128,
        lora_config=None,
        lora_utils=types.SimpleNamespace(extract_lora_metadata=lambda: None),
        speculative_config=None,
        scheduler_config=types.SimpleNamespace(async_scheduling=False),
        vllm_config=types.SimpleNamespace(parallel_config=None),
        model_config=types.SimpleNamespace(
            dtype=options.dtype,
            max_logprobs=MAX_LOGPROBS,
            logprobs_mode=options.logprobs_mode,
            enable_return_routed_experts=False,
            get_hidden_size=lambda: HIDDEN,
            get_vocab_size=lambda: VOCABULARY,
        ),
        state=weights,
        state_leaves=weights,
        compute_logits_fn=compute_logits,
        rng_params_for_sampling=jax.device_put(jax.random.key(0), NamedSharding(mesh, PartitionSpec())),
        maybe_forbid_compile=runner_utils.ForbidCompile() if options.forbid else nullcontext(),
        maybe_select_dummy_loras=lambda *_: nullcontext(),
        requests={},
        input_batch=None,
        aux_output_worker=None,
        # A static method of the runner up to 0.21.0, a function of the sampler's module since.
        _compute_and_gather_logprobs=vars(TPUModelRunner).get("_compute_and_gather_logprobs", lambda *_: None),
    )


def warm_up(runner: Any) -> Any:
    """Runs the tree's own warm-up of what follows the model, as its worker does before it allocates the KV cache."""
    import jax
    from tpu_inference.runner.compilation_manager import CompilationManager

    manager = CompilationManager(runner)
    manager._precompile_sampling()
    manager._precompile_gather_logprobs()
    flush = getattr(manager, "_flush_compilations", None)
    if flush is not None:
        flush()
    with jax.set_mesh(runner.mesh):
        manager._precompile_compute_logits()
        if flush is not None:
            flush()
    return manager


def hidden_states(mesh: Any, bucket: int, dtype: str) -> Any:
    """The same hidden states for a bucket in every arm."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import NamedSharding, PartitionSpec
    from tpu_inference.layers.common.sharding import ShardingAxisName

    values = jax.random.normal(jax.random.key(bucket), (bucket, HIDDEN)).astype(jnp.dtype(dtype))
    return jax.device_put(values, NamedSharding(mesh, PartitionSpec(ShardingAxisName.ATTN_DATA, None)))


def step(runner: Any, bucket: int, hidden: Any, *, do_sampling: bool, logprobs: bool, speculative: bool = False) -> Any:
    """One decode step from the hidden states on, as ``execute_model`` and ``sample_tokens`` run it."""
    import jax
    import numpy as np
    from jax.sharding import NamedSharding, PartitionSpec
    from tpu_inference.layers.common.sharding import ShardingAxisName
    from tpu_inference.layers.jax.sample.sampling_metadata import TPUSupportedSamplingMetadata
    from tpu_inference.runner.tpu_runner import TPUModelRunner

    names = [f"request-{index}" for index in range(bucket)]
    runner.input_batch = types.SimpleNamespace(
        num_reqs=bucket,
        req_ids=names,
        req_id_to_index={name: index for index, name in enumerate(names)},
        num_prompt_logprobs={},
        generators={},
        vocab_size=VOCABULARY,
        all_greedy=not do_sampling,
        max_num_logprobs=MAX_LOGPROBS if logprobs else None,
        temperature_cpu=np.full(bucket, 0.7, np.float32),
        top_k_cpu=np.full(bucket, 20, np.int32),
        top_p_cpu=np.full(bucket, 0.8, np.float32),
        num_tokens_no_spec=np.zeros(bucket, np.int32),
        num_tokens=np.zeros(bucket, np.int32),
        token_ids_cpu=np.zeros((bucket, 128), np.int32),
    )
    runner.requests = {
        name: types.SimpleNamespace(num_computed_tokens=0, num_tokens=1, output_token_ids=[]) for name in names
    }
    scheduled = types.SimpleNamespace(num_scheduled_tokens=dict.fromkeys(names, 1), total_num_scheduled_tokens=bucket)
    given: dict[str, Any] = {"sharding": NamedSharding(runner.mesh, PartitionSpec(ShardingAxisName.ATTN_DATA))}
    if "req_indices_dp" in inspect.signature(TPUSupportedSamplingMetadata.from_input_batch).parameters:
        given["req_indices_dp"] = {0: list(range(bucket))}
    metadata = TPUSupportedSamplingMetadata.from_input_batch(runner.mesh, runner.input_batch, bucket, **given)
    with jax.set_mesh(runner.mesh):
        logits = runner.compute_logits_fn(runner.state_leaves, hidden, None)
    input_ids, draft = speculate(runner, bucket, logits) if speculative else (None, None)
    # The mesh in scope is part of a program's key: up to 0.22.1 the release samples without one, and warms up so.
    meshed = "set_mesh" in inspect.getsource(TPUModelRunner.sample_tokens)
    with jax.set_mesh(runner.mesh) if meshed else nullcontext():
        return TPUModelRunner._sample_from_logits(
            runner, scheduled, None, metadata, input_ids, hidden, logits, None, draft, None, None, bucket
        )


def speculate(runner: Any, bucket: int, logits: Any) -> tuple[Any, Any]:
    """Input tokens and metadata of one drafted token per request, right for every other request (0.23.0 and 0.24.0).

    ``logits`` has two rows per request: the one that judges the draft, and the one after it.
    """
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import NamedSharding, PartitionSpec
    from tpu_inference.layers.common.sharding import ShardingAxisName
    from tpu_inference.layers.jax.sample.rejection_sampler import RejectionSampler
    from tpu_inference.runner.tpu_runner import TPUModelRunner
    from tpu_inference.runner.utils import SpecDecodeMetadata

    def put(values: Any) -> Any:
        sharding = NamedSharding(runner.mesh, PartitionSpec(ShardingAxisName.ATTN_DATA))
        return jax.device_put(np.asarray(values, np.int32), sharding)

    right = np.asarray(jnp.argmax(logits, axis=-1))[0::2]
    drafts = np.where(np.arange(bucket) % 2, right, (right + 1) % VOCABULARY)
    every = np.arange(2 * bucket)
    draft = SpecDecodeMetadata(put(np.ones(bucket)), put(every[0::2]), put(every[1::2]), put(every))
    draft.draft_lengths_cpu = np.ones(bucket, np.int32)
    draft.req_indices_dp = {0: list(range(bucket))}
    draft.final_logits_indices = put(every[:bucket])  # parse_output reads its length: one main token per request
    runner.rejection_sampler = vars(runner).get("rejection_sampler") or RejectionSampler(runner.mesh)
    runner._select_from_array_fn = partial(TPUModelRunner._select_from_array_fn, runner)
    runner._extract_draft_token_ids = lambda *_: put(drafts)
    return put(every), draft


def digest(values: Any) -> str:
    """A short name for exactly these values."""
    import numpy as np

    array = np.ascontiguousarray(np.asarray(values))
    return hashlib.sha256(f"{array.dtype}{array.shape}".encode() + array.tobytes()).hexdigest()[:16]


@contextmanager
def phase(result: dict[str, Any], counting: Counting, name: str) -> Iterator[dict[str, Any]]:
    """One phase: what it compiled and yielded goes under its name; what ForbidCompile says, too."""
    entry: dict[str, Any] = {"tokens": [], "logprobs": []}
    try:
        yield entry
    except RuntimeError as error:
        entry["error"] = str(error)
    entry["compiled"] = counting.take()
    result[name] = entry


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Warm-up, then greedy twice, greedy with logprobs, and sampling, over every bucket."""
    import jax

    result: dict[str, Any] = {"jax": jax.__version__, "devices": options.devices}
    counting = Counting()
    mesh = make_mesh(options.devices)
    runner = make_runner(mesh, options)
    rows = 2 if options.speculative else 1
    inputs = {bucket: hidden_states(mesh, rows * bucket, options.dtype) for bucket in options.buckets}
    counting.take()
    manager = warm_up(runner)
    result["warm_up"] = counting.take()
    asked = getattr(manager, "_sampling_logits_dtype", None)
    if asked is not None:
        result["dtypes"] = dtypes(runner, asked, options.buckets[0])
    for name, do_sampling, logprobs in (
        ("greedy", False, False),
        ("greedy again", False, False),
        ("greedy with logprobs", False, True),
        ("sampling", True, False),
        ("sampling with logprobs", True, True),
    ):
        with phase(result, counting, name) as entry:
            for bucket in options.buckets:
                output = step(
                    runner,
                    bucket,
                    inputs[bucket],
                    do_sampling=do_sampling,
                    logprobs=logprobs,
                    speculative=options.speculative,
                )
                entry["tokens"].append([list(map(int, tokens)) for tokens in output.sampled_token_ids])
                if output.logprobs is not None:
                    entry["logprobs"].append(digest(output.logprobs.logprobs))
    return result


def dtypes(runner: Any, asked: Any, bucket: int) -> dict[str, str]:
    """What the patched warm-up would use, also on the ranks and for the models that compute no logits."""
    import jax.numpy as jnp

    answers = {"greedy": str(jnp.dtype(asked(bucket, False))), "sampling": str(jnp.dtype(asked(bucket, True)))}
    for name, attribute, value in (("pooling", "is_pooling_model", True), ("first rank", "is_last_rank", False)):
        before = getattr(runner, attribute)
        setattr(runner, attribute, value)
        answers[name] = str(jnp.dtype(asked(bucket, False)))
        setattr(runner, attribute, before)
    return answers


def main() -> None:
    """Reads the command line, prints the result as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("tree", type=Path)
    parser.add_argument("--buckets", type=lambda text: [int(part) for part in text.split(",")], default=[8, 16])
    parser.add_argument("--logprobs-mode", default="raw_logprobs")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--forbid", action="store_true")
    parser.add_argument("--speculative", action="store_true")
    options = parser.parse_args()
    os.environ["JAX_PLATFORMS"] = "cpu"
    # Nothing is timed, so nothing needs optimizing: that alone saves a third of the whole.
    os.environ["XLA_FLAGS"] = (
        f"--xla_force_host_platform_device_count={options.devices} --xla_backend_optimization_level=0"
    )
    os.environ["NUM_PRECOMPILE_WORKERS"] = "1"
    sys.meta_path.insert(0, Hook(options.tree))
    print(json.dumps(measure(options)))


if __name__ == "__main__":
    main()
