"""What the shipped patches must turn each release into, written by hand and without patchkit.

Every hunk is (old, new, how often ``old`` stands in the file). The texts were derived from the releases' sources, not
from the patch files. Only the text of a probe is patchkit's own (tests/edit/test_probe.py holds it); where it goes is
written here.
"""

from __future__ import annotations

from collections.abc import Callable

from patchkit.runtime.probe import helper_source

RUNNER = "tpu_inference/runner/tpu_runner.py"
SAMPLING = "tpu_inference/layers/jax/sample/sampling.py"
WARMUP = "tpu_inference/runner/compilation_manager.py"
KERNEL = "tpu_inference/kernels/ragged_paged_attention/v3/kernel.py"

Hunk = tuple[str, str, int]

_FIRST = """\
        if spec_decode_metadata is None:
            logits = logits.astype(jnp.float32)
            with self.maybe_forbid_compile:
"""
_FIRST_GREEDY = """\
        if spec_decode_metadata is None:
            # Greedy argmax runs on the dtype that the model produced: widening is exact, so
            # the token cannot change. The warm-up is keyed the same way, see
            # CompilationManager._sampling_logits_dtype.
            if tpu_sampling_metadata.do_sampling:
                logits = logits.astype(jnp.float32)
            with self.maybe_forbid_compile:
"""
_FIRST_NAIVE = """\
        if spec_decode_metadata is None:
            if tpu_sampling_metadata.do_sampling:
                logits = logits.astype(jnp.float32)
            with self.maybe_forbid_compile:
"""
_SECOND = """\
            )

        logits = logits.astype(jnp.float32)
"""
_SECOND_GREEDY = """\
            )

        # Only the logprobs below read float32.
        if tpu_sampling_metadata.logprobs:
            logits = logits.astype(jnp.float32)
"""
_SAMPLE = """\
    greedy_tokens = jnp.argmax(logits, axis=-1)
    logits = logits.astype(jnp.float32)
    if not tpu_sampling_metadata.do_sampling:
        ret_tokens = greedy_tokens
        ret_logits = logits
    else:
"""
_SAMPLE_GREEDY = """\
    greedy_tokens = jnp.argmax(logits, axis=-1)
    if not tpu_sampling_metadata.do_sampling:
        ret_tokens = greedy_tokens
        # On the greedy path only the logprobs read ret_logits; returning the
        # input instead would cost a copy of the whole tensor.
        ret_logits = (logits.astype(jnp.float32)
                      if tpu_sampling_metadata.logprobs else None)
    else:
        logits = logits.astype(jnp.float32)
"""
_SAMPLE_NAIVE = """\
    greedy_tokens = jnp.argmax(logits, axis=-1)
    if tpu_sampling_metadata.do_sampling:
        logits = logits.astype(jnp.float32)
    if not tpu_sampling_metadata.do_sampling:
        ret_tokens = greedy_tokens
        ret_logits = logits
    else:
"""
_DUMMY_POSITIONAL = """\
                self.runner.mesh, PartitionSpec(ShardingAxisName.ATTN_DATA))
            logits = self._create_dummy_tensor((num_reqs, hsize), jnp.float32,
                                               logits_sharding)
            for do_sampling in (True, False):
"""
_DUMMY_KEYWORD = """\
                self.runner.mesh, PartitionSpec(ShardingAxisName.ATTN_DATA))
            logits = self._create_dummy_tensor((num_reqs, hsize),
                                               jnp.float32,
                                               sharding=logits_sharding)
            for do_sampling in (True, False):
"""
_DUMMY_GREEDY = """\
                self.runner.mesh, PartitionSpec(ShardingAxisName.ATTN_DATA))
            for do_sampling in (True, False):
                logits = self._create_dummy_tensor(
                    (num_reqs, hsize),
                    self._sampling_logits_dtype(num_reqs, do_sampling),
                    sharding=logits_sharding)
"""
_METHOD = '''\
    def _sampling_logits_dtype(self, num_reqs: int, do_sampling: bool):
        """Dtype of the logits that the runner hands to `sample`.

        It widens them to float32 for sampling only; greedy keeps what
        compute_logits_fn returns. A warm-up in any other dtype would put every
        greedy bucket off the precompiled path.
        """
        if (do_sampling or self.runner.is_pooling_model
                or not self.runner.is_last_rank):
            return jnp.float32
        hidden_states = jax.ShapeDtypeStruct(
            (num_reqs, self.runner.model_config.get_hidden_size()),
            to_jax_dtype(self.runner.model_config.dtype),
            sharding=NamedSharding(
                self.runner.mesh,
                PartitionSpec(ShardingAxisName.ATTN_DATA, None)))
        with jax.set_mesh(self.runner.mesh):
            return jax.eval_shape(
                self.runner.compute_logits_fn, self.runner.{weights},
                hidden_states,
                self.runner.lora_utils.extract_lora_metadata()).dtype

'''
_BEFORE_METHOD = """\
    def _precompile_sampling(self) -> None:
"""
_IMPORTS = '''\
during inference.
"""
import functools
from enum import Enum
'''
_IMPORTS_OS = '''\
during inference.
"""
import os
import functools
from enum import Enum
'''
_BLOCK_SIZES = """\
def get_default_block_sizes(
"""
_BLOCK_SIZES_HELPER = '''\
def _patchkit_block_size(name, page_size):
    """The block size in tokens that environment variable `name` asks for, or None."""
    text = os.environ.get(name, "").strip()
    if not text:
        return None
    try:
        size = int(text)
    except ValueError:
        size = 0
    if size <= 0 or size % page_size:
        raise ValueError(
            f"{name}={text!r} must be a positive multiple of the page size, {page_size} tokens"
        )
    return size


def get_default_block_sizes(
'''
_RETURN = """\
            raise NotImplementedError(f"Unsupported {tpu_version=}.")

    return {
        "bq_sz": max(1, bq_sz),
"""
_RETURN_OVERRIDE = """\
            raise NotImplementedError(f"Unsupported {tpu_version=}.")

    if case == RpaCase.DECODE:
        bkv_override = _patchkit_block_size("PATCHKIT_RPA_DECODE_BKV", page_size)
        bkv_c_override = _patchkit_block_size(
            "PATCHKIT_RPA_DECODE_BKV_COMPUTE", page_size)
        if bkv_override is not None or bkv_c_override is not None:
            bkv_sz = align_to(min(bkv_override or bkv_sz, max_kv), page_size)
            bkv_csz = min(bkv_c_override or bkv_sz, max_kv)
            if bkv_sz % bkv_csz:
                raise ValueError(
                    f"PATCHKIT_RPA_DECODE_BKV_COMPUTE={bkv_c_override} must divide the decode "
                    f"block of {bkv_sz} tokens (page size {page_size}, context {max_kv})"
                )
            # Block sizes are static: every size is a kernel of its own, whose
            # name (RPAd-...-bkv_<bkv_sz>_<bkv_csz>) tells in a trace which one ran.
            print(
                f"[patchkit] rpa-block-size: decode {bkv_sz=} {bkv_csz=} "
                f"{page_size=} {max_kv=}",
                flush=True)
    return {
        "bq_sz": max(1, bq_sz),
"""


# The head of each file, behind its licence, and the first statement of each function that has a probe.
_HEAD = """\
# limitations under the License.

"""
_RUNNER_BODY = """\
    ) -> ModelRunnerOutput | AsyncTPUModelRunnerOutput:
        if padded_num_reqs is None:
"""
_SAMPLE_BODY = """\
    # (B, vocab_size)
    if tpu_sampling_metadata._cache_collision_dummy is not None:
"""
_WARMUP_BODY = """\
        logger.info("Compiling sampling with different input shapes.")
"""
_KERNEL_BODY = '''\
    Note the default block sizes are not necessarily optimal.
    """
    tpu_version = get_tpu_version()
'''


def _probe(patch: str, edit: int, file: str, function: str, text: str) -> tuple[str, str]:
    """The helper with the blank lines behind it, and the line that calls it, unindented."""
    call = f"_patchkit_probe_{patch}_{edit}()\n".replace("-", "_")
    return helper_source(patch, edit, file, function, text) + "\n\n", call


def _at_head(helper: str) -> Hunk:
    return _HEAD, _HEAD + helper, 1


def _runner_probe(patch: str, edit: int) -> list[Hunk]:
    helper, call = _probe(patch, edit, RUNNER, "TPUModelRunner._sample_from_logits", "the runner samples")
    first, second = _RUNNER_BODY.splitlines(keepends=True)
    return [_at_head(helper), (_RUNNER_BODY, f"{first}        {call}{second}", 1)]


def _sample_probe(patch: str, edit: int) -> list[Hunk]:
    helper, call = _probe(patch, edit, SAMPLING, "sample", "sample() was traced")
    note, test = _SAMPLE_BODY.splitlines(keepends=True)
    return [_at_head(helper), (_SAMPLE_BODY, f"{note}    {call}{test}", 1)]


def _warmup_probe(patch: str, edit: int) -> list[Hunk]:
    name, text = "CompilationManager._precompile_sampling", "the warm-up of sample() runs"
    helper, call = _probe(patch, edit, WARMUP, name, text)
    return [_at_head(helper), (_WARMUP_BODY, f"        {call}{_WARMUP_BODY}", 1)]


def _minor(version: str) -> int:
    return int(version.split(".")[1])


def _greedy(version: str) -> dict[str, list[Hunk]]:
    dummy = _DUMMY_POSITIONAL if _minor(version) <= 25 else _DUMMY_KEYWORD
    method = _METHOD.format(weights="state" if _minor(version) <= 21 else "state_leaves")
    return {
        RUNNER: [(_FIRST, _FIRST_GREEDY, 1), (_SECOND, _SECOND_GREEDY, 1), *_runner_probe("logits-greedy", 8)],
        SAMPLING: [(_SAMPLE, _SAMPLE_GREEDY, 1), *_sample_probe("logits-greedy", 9)],
        WARMUP: [
            (dummy, _DUMMY_GREEDY, 1),
            (_BEFORE_METHOD, method + _BEFORE_METHOD, 1),
            *_warmup_probe("logits-greedy", 10),
        ],
    }


def _naive(version: str) -> dict[str, list[Hunk]]:
    name = "logits-greedy-naive"
    return {
        RUNNER: [(_FIRST, _FIRST_NAIVE, 1), *_runner_probe(name, 3)],
        SAMPLING: [(_SAMPLE, _SAMPLE_NAIVE, 1), *_sample_probe(name, 4)],
    }


def _block_size(version: str) -> dict[str, list[Hunk]]:
    helper, call = _probe("rpa-block-size", 4, KERNEL, "get_default_block_sizes", "the block sizes were asked for")
    note, end, first = _KERNEL_BODY.splitlines(keepends=True)
    return {
        KERNEL: [
            (_IMPORTS, _IMPORTS_OS.replace("import os\n", "import os\n" + helper), 1),
            (_BLOCK_SIZES, _BLOCK_SIZES_HELPER, 1),
            (_RETURN, _RETURN_OVERRIDE, 1),
            (_KERNEL_BODY, f"{note}{end}    {call}{first}", 1),
        ]
    }


_HUNKS: dict[str, Callable[[str], dict[str, list[Hunk]]]] = {
    "logits-greedy": _greedy,
    "logits-greedy-naive": _naive,
    "rpa-block-size": _block_size,
}


def expected(patch: str, version: str, read: Callable[[str], bytes]) -> dict[str, bytes]:
    """The bytes of every file that ``patch`` changes in ``version``; ``read(path)`` gives the released bytes.

    Raises:
        AssertionError: A hunk does not stand in the release as often as it should.
    """
    result = {}
    for path, hunks in _HUNKS[patch](version).items():
        text = read(path).decode("utf-8")
        for old, new, count in hunks:
            assert text.count(old) == count, f"{path} of {version}: {text.count(old)} times, not {count}:\n{old}"
            text = text.replace(old, new)
        result[path] = text.encode("utf-8")
    return result
