"""Logs of real engines, and lines in the forms that engines print."""

from __future__ import annotations

import io
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from patchkit.bench.loglines import LONGEST, LogFacts, compilations, exception_of, last_words, lines_of, read_log
from patchkit.bench.observation import Measured
from patchkit.model.recipe import LogLine

RECORDED = Path(__file__).with_name("recorded") / "vllm-serve-0.24.0.log"


def read(text: str, *evidence: LogLine) -> LogFacts:
    return read_log(lines_of(io.BytesIO(text.encode())), evidence)


def test_a_real_servers_log() -> None:
    """Recorded with vLLM 0.24.0 on a rig; jax 0.10.2 with JAX_LOG_COMPILES=1 and JAX_LOGGING_LEVEL=WARNING."""
    with RECORDED.open("rb") as file:
        facts = read_log(lines_of(file), (LogLine("Precompile"), LogLine("EngineCore", "treatment"), LogLine("absent")))
    assert facts.version_lines == ("Initializing a V1 LLM engine (v0.24.0)",)
    assert facts.metrics == {
        "model_memory": Measured(0.0, "GiB"),
        "kv_cache_tokens": Measured(1024.0, "tokens"),
        "max_concurrency": Measured(8.0, "requests"),
        "init": Measured(15.72, "s"),
    }
    assert facts.built
    # The one before `init engine` is of the engine's own warm-up.
    assert facts.compilations == {"jit(convert_element_type)": 2, "jit(split)": 3}
    assert facts.hit_rate == 0.0
    assert facts.generation == (25.6,)
    assert (facts.accepted, facts.drafted, facts.forbidden) == (None, None, False)
    # As `grep -c` counts them.
    assert facts.found_lines == {"Precompile": 11, "EngineCore": 38, "absent": 0}


@pytest.mark.parametrize(
    ("line", "metric", "value"),
    [
        ("GPU KV cache size: 415,872 tokens", "kv_cache_tokens", 415872.0),
        (
            "TPU KV cache size: 1,024 tokens, Maximum concurrency for 128 tokens per request: 8.50x",
            "kv_cache_tokens",
            1024,
        ),
        (
            "TPU KV cache size: 1,024 tokens, Maximum concurrency for 128 tokens per request: 8.50x",
            "max_concurrency",
            8.5,
        ),
        ("Maximum concurrency for 4,096 tokens per request: 1,024.00x", "max_concurrency", 1024.0),
        ("Memory statistics | total_hbm_limit_gb=15.7GiB | total_hbm_used_gb=4.67GiB | x", "model_memory", 4.67),
        ("init engine (profile, create kv cache, warmup model) took 106.3 s", "init", 106.3),
        ("init engine (profile, create kv cache, warmup model) took 285.04 s (compilation: 200.1 s)", "init", 285.04),
    ],
)
@pytest.mark.parametrize(
    "form",
    [
        "{}",
        "INFO 12-01 03:13:04 [core.py:337] {}",
        "(EngineCore pid=1142) INFO 12-01 03:13:04 [core.py:337] {}",
        "\x1b[0;36m(EngineCore pid=1142)\x1b[0;0m \x1b[32mINFO\x1b[0m 12-01 03:13:04 [core.py:337] {}\x1b[0m",
        "Loading:  50%|#   | 1/2\rLoading: 100%|##  | 2/2\r(EngineCore pid=1142) {}\r",
    ],
)
def test_a_metrics_line_in_each_form(form: str, line: str, metric: str, value: float) -> None:
    assert read(form.format(line) + "\n").metrics[metric].value == value


def test_the_last_of_several_counts() -> None:
    """An engine that is built twice in one log, as after a first failed attempt."""
    assert read("GPU KV cache size: 10 tokens\nGPU KV cache size: 20 tokens\n").metrics["kv_cache_tokens"].value == 20


def test_without_a_line_of_any_compilation_nobody_counted() -> None:
    assert read("init engine (profile) took 2 s\n").compilations is None
    logged = "Finished XLA compilation of jit(step) in 0.1 sec\ninit engine (profile) took 2 s\n"
    assert read(logged).compilations == {}


def test_compilations_before_the_engine_is_built_are_its_menu() -> None:
    text = (
        "Finished XLA compilation of jit(sample) in 0.018 sec\n"
        "Compiling jit(sample) with global shapes and types (ShapedArray(float32[3]),).\n"
        "init engine (profile, create kv cache, warmup model) took 2.00 s\n"
        "Finished jaxpr to MLIR module conversion jit(sample) in 0.006 sec\n"
        "(EngineCore pid=1) WARNING:2026-12-01 03:14:03,783:jax._src.dispatch:204: "
        "Finished XLA compilation of jit(sample) in 4.15e-05 sec\n"
        "Finished XLA compilation of jit(<lambda>) in 0.2 sec\n"
        "Finished XLA compilation of jit(sample) in 12 sec\n"
    )
    assert read(text).compilations == {"jit(<lambda>)": 1, "jit(sample)": 2}
    assert compilations(lines_of(io.BytesIO(text.encode()))) == {"jit(<lambda>)": 1, "jit(sample)": 3}


def test_speculative_decoding_adds_up() -> None:
    line = (
        "SpecDecoding metrics: Mean acceptance length: 1.50, Accepted throughput: 1.00 tokens/s, Drafted throughput: "
        "5.00 tokens/s, Accepted: {} tokens, Drafted: {} tokens, Per-position acceptance rate: 0.5, Avg Draft "
        "acceptance rate: 10.0%\n"
    )
    facts = read(line.format(10, 100) + line.format(20, 50))
    assert (facts.accepted, facts.drafted) == (30, 150)
    assert facts.metrics["acceptance_rate"] == Measured(0.2, "ratio")
    assert "acceptance_rate" not in read(line.format(0, 0)).metrics


def test_the_last_hit_rate_of_the_engines_own_cache() -> None:
    line = "GPU KV cache usage: 1.0%, Prefix cache hit rate: {}%, External prefix cache hit rate: 99.0%\n"
    assert read(line.format("12.5") + line.format("50.0")).hit_rate == 0.5
    assert read("External Prefix cache hit rate: 99.0%\n").hit_rate is None


def test_a_forbidden_compilation() -> None:
    assert read("RuntimeError: JAX compilation occurred but was forbidden in this context\n").forbidden


def test_a_forbidden_program_is_the_last_that_was_begun_before() -> None:
    facts = read(
        "(EngineCore pid=7) Compiling jit(split) with global shapes and types (ShapedArray(int32[2]),).\n"
        "(EngineCore pid=7) Compiling jit(sample) with global shapes and types (ShapedArray(bfloat16[8,2048]),).\n"
        "RuntimeError: JAX compilation occurred but was forbidden in this context\n"
        "Compiling jit(later) with global shapes and types ().\n"
    )
    assert facts.forbidden_program == "jit(sample)"


def test_a_part_of_a_log() -> None:
    data = b"one\ntwo\nthree\n"
    assert list(lines_of(io.BytesIO(data), 4, 8)) == ["two"]
    assert list(lines_of(io.BytesIO(data), 4)) == ["two", "three"]
    assert list(lines_of(io.BytesIO(data), 4, 4)) == []
    assert list(lines_of(io.BytesIO(data), 5, 7)) == ["wo"]
    assert list(lines_of(io.BytesIO(b"\xff\xfeno text\n"))) == ["��no text"]


class Endless(io.RawIOBase):
    """So many bytes of a log without holding them, some in lines of a megabyte."""

    def __init__(self, size: int) -> None:
        self.left = size
        self.part = (b"x" * 1_000_000 + b"\n" + b"Avg generation throughput: 0.0 tokens/s, GPU\n" * 2000) * 4
        self.at = 0

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        return 0

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        size = min(len(buffer), self.left, len(self.part) - self.at)
        buffer[:size] = self.part[self.at : self.at + size]
        self.left -= size
        self.at = (self.at + size) % len(self.part)
        return size


def test_a_large_log_is_not_held() -> None:
    size = 40_000_000
    file = io.BufferedReader(Endless(size))
    tracemalloc.start()
    try:
        facts = read_log(lines_of(file), (LogLine("Avg"),))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert facts.found_lines["Avg"] > 50_000
    # The test's own 4.4 MB are made before it starts.
    assert most < 8 * LONGEST


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a\nb\n\nc\nd\n", "b\nc\nd"),
        ("(APIServer pid=3) ValueError: no such model\n(APIServer pid=3) \nbye\n", "ValueError: no such model"),
        (
            "(EngineCore pid=3) ERROR 12-01 03:13:04 [core.py:1] torch.cuda.OutOfMemoryError: no\nend\n",
            "torch.cuda.OutOfMemoryError: no",
        ),
        ("INFO 12-01 03:13:04 [core.py:1] only\n", "only"),
        ("", ""),
    ],
)
def test_last_words(text: str, words: str) -> None:
    lines: Iterator[str] = iter(text.splitlines(keepends=True))
    assert last_words(lines) == words


def test_what_tells_of_anothers_exception_is_not_the_reason() -> None:
    lines = (
        "(EngineCore pid=3) RuntimeError: no memory",
        "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed: {}",
        "(APIServer pid=1) vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.",
        "INFO:     bye",
    )
    assert last_words(lines) == exception_of(lines) == "RuntimeError: no memory"
    assert exception_of(lines[2:]) == lines[2].partition(") ")[2]
    assert exception_of(lines[3:]) is None
