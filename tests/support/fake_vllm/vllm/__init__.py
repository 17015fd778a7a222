"""An engine that stands for vLLM's, on a clock of its own, and misbehaves on request.

With this folder on PYTHONPATH, ``from vllm import LLM`` gives it. Tokens follow from the prompt. Its time is made up:
``time.perf_counter`` of the process is replaced by a clock that only the engine moves, so what a driver measures is
exact: 10 s to be built, 0.1 s for the first token of a batch, 0.01 s for each one more, 1 s for each compilation. It
compiles ``jit(split)`` at the first touch of each batch size, and ``jit(menu)`` when it is built.

Each switch is a name of ``vllm/engine.py`` (for a patch to change), or the environment variable of that name behind
``FAKE_VLLM_``, which comes first. A *call* is the number of a generation, from 0.

| switch | does |
|---|---|
| ``OFF_THE_MENU`` | compiles ``jit(sample)`` at first touch, and raises where compilation is forbidden |
| ``COMPILE`` | ``jit(name)@call``: compiles that in that call |
| ``WORD`` | tokens depend on its length |
| ``SHORT`` | the last request of a batch gets so many tokens fewer |
| ``ABORT`` | the last request of a batch is aborted |
| ``SLOW`` | all times are multiplied by it, that of one-token generations by ``SLOW_TTFT`` as well |
| ``STEPS`` | factors of the time of each call by its number, ``1,1,2.5``; the last one holds on |
| ``CRASH`` | ``init`` or a call: the process aborts (``1``: in any call) |
| ``RAISE`` | ``init`` or a call: raises |
| ``HANG`` | ``init`` or a call: sleeps for ever |
| ``PROFILER`` | jax's profiler is on from the beginning |
| ``VERSION`` | of its version line |
| ``HITS`` | hit rate of the prefix cache |
| ``ACCEPTED`` | share of drafted tokens that are accepted, where it drafts |
| ``MEMORY`` | GiB of its memory line |
| ``PROCESS`` | ``fork`` or ``spawn``: the engine is in a process of its own, as vLLM's is by default |
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from types import SimpleNamespace
from typing import Any

import jax.monitoring
from jax._src import profiler

from vllm import engine as _settings

_time = [time.perf_counter()]
time.perf_counter = lambda: _time[0]


def switch(name: str) -> Any:
    """The value of a switch: the environment's, as text, before that of the file."""
    return os.environ.get(f"FAKE_VLLM_{name}", getattr(_settings, name))


def number(name: str) -> float:
    """The value of a switch, as a number."""
    return float(switch(name))


class SamplingParams(SimpleNamespace):
    """Whatever it is given."""


class EngineDeadError(Exception):
    """What the real one raises where its engine's process ended."""


def _at(name: str, moment: object) -> bool:
    value = str(switch(name))
    return value not in ("", "False") and value in (str(moment), "True")


def _misbehave(moment: object) -> None:
    if _at("CRASH", moment):
        os.abort()
    if _at("RAISE", moment):
        raise RuntimeError("out of memory")
    if _at("HANG", moment):
        time.sleep(3600)


class _Core:
    """What may be in a process of its own. Each call gives its answer and the seconds that it took."""

    def __init__(self, settings: dict[str, Any]) -> None:
        print(
            f"INFO 12-01 01:27:19 [core.py:114] Initializing a V1 LLM engine (v{switch('VERSION')}) with config: "
            f"model={settings['model']!r}\n"
            "INFO 12-01 01:27:21 [tpu_worker.py:451] Memory statistics | total_hbm_limit_gb=16.0GiB | "
            f"total_hbm_used_gb={switch('MEMORY')}GiB | total_hbm_avail_gb=14.72GiB\n"
            "INFO 12-01 01:27:21 [kv_cache_utils.py:2146] GPU KV cache size: 1,024 tokens\n"
            "INFO 12-01 01:27:21 [kv_cache_utils.py:2147] Maximum concurrency for 128 tokens per request: 8.00x",
            file=sys.stderr,
            flush=True,
        )
        _misbehave("init")
        jax.monitoring.tell("jit(menu)")
        self.calls = 0
        self.touched: set[int] = set()

    def generate(self, prompts: list[Any], asked: dict[str, Any]) -> tuple[list[dict[str, Any]], float]:
        call, self.calls = self.calls, self.calls + 1
        _misbehave(call)
        compiled = []
        if len(prompts) not in self.touched:
            self.touched.add(len(prompts))
            compiled = ["jit(sample)"] if str(switch("OFF_THE_MENU")) not in ("False", "", "0") else []
            compiled.append("jit(split)")
        name, _, when = str(switch("COMPILE")).partition("@")
        if when == str(call):
            compiled.append(name)
        for one in compiled:
            if os.environ.get("JAX_LOG_COMPILES") == "1":
                print(f"Compiling {one} with global shapes and types (ShapedArray(int32[2]),).", file=sys.stderr)
            if one == "jit(sample)" and os.environ.get("VLLM_XLA_CHECK_RECOMPILATION") == "1":
                raise RuntimeError("JAX compilation occurred but was forbidden in this context.")
            jax.monitoring.tell(one)
        steps = [float(one) for one in str(switch("STEPS")).split(",")]
        seconds = (0.1 + 0.01 * (asked["max_tokens"] - 1)) * number("SLOW") * steps[min(call, len(steps) - 1)]
        if asked["max_tokens"] == 1:
            seconds *= number("SLOW_TTFT")
        last = len(prompts) - 1
        return [self._answer(one, asked, at == last) for at, one in enumerate(prompts)], seconds + len(compiled)

    def _answer(self, prompt: Any, asked: dict[str, Any], last: bool) -> dict[str, Any]:
        ids = prompt["prompt_token_ids"] if isinstance(prompt, dict) else list(prompt.encode())
        count = asked["max_tokens"] - (int(switch("SHORT")) if last else 0)
        return {
            "tokens": [(sum(ids) * 7 + place + len(switch("WORD"))) % 2048 for place in range(count)],
            "reason": "abort" if last and str(switch("ABORT")) not in ("False", "") else "length",
        }


def _serve(pipe: Any, settings: dict[str, Any]) -> None:
    """A core's process: calls in, answers or what was raised out."""
    try:
        core = _Core(settings)
        pipe.send(None)
        while True:
            pipe.send(core.generate(*pipe.recv()))
    except Exception as error:
        print(f"(EngineCore pid={os.getpid()}) {type(error).__name__}: {error}", file=sys.stderr, flush=True)


class _Elsewhere:
    """A core in another process."""

    def __init__(self, method: str, settings: dict[str, Any]) -> None:
        self.pipe, theirs = multiprocessing.get_context(method).Pipe()
        multiprocessing.get_context(method).Process(target=_serve, args=(theirs, settings), daemon=True).start()
        theirs.close()
        self._received()

    def _received(self) -> Any:
        try:
            return self.pipe.recv()
        except EOFError:
            raise EngineDeadError(
                "EngineCore encountered an issue. See stack trace (above) for the root cause."
            ) from None

    def generate(self, *given: Any) -> Any:
        self.pipe.send(given)
        return self._received()


class LLM:
    """The engine."""

    def __init__(self, **settings: Any) -> None:
        self.settings = settings
        if str(switch("PROFILER")) not in ("False", ""):
            profiler._profile_state.profile_session = "on"
        method = switch("PROCESS")
        self.core = _Elsewhere(method, settings) if method else _Core(settings)
        _time[0] += 10.0 * number("SLOW")
        self.queries = self.drafted = 0.0
        print(
            "INFO 12-01 01:27:36 [core.py:337] init engine (profile, create kv cache, warmup model) took 10.00 s "
            "(compilation: 7.30 s)",
            file=sys.stderr,
            flush=True,
        )

    def generate(self, prompts: list[Any], asked: SamplingParams, use_tqdm: bool) -> list[Any]:
        """All requests, at the cost of the longest."""
        assert use_tqdm is False
        answers, seconds = self.core.generate(prompts, vars(asked))
        _time[0] += seconds
        self.queries += 100.0
        self.drafted += 100.0 if self.settings.get("speculative_config") else 0.0
        return [self._output(one, asked, seconds) for one in answers]

    def _output(self, answer: dict[str, Any], asked: Any, seconds: float) -> Any:
        tokens = answer["tokens"]
        logs = first = None
        if getattr(asked, "logprobs", None):
            logs = [{token: SimpleNamespace(logprob=-0.5, rank=1)} for token in tokens]
        if getattr(asked, "prompt_logprobs", None):
            first = [None, {3: SimpleNamespace(logprob=-1.5, rank=2)}]
        output = SimpleNamespace(token_ids=tokens, logprobs=logs, finish_reason=answer["reason"])
        metrics = SimpleNamespace(first_token_latency=seconds / 2)
        return SimpleNamespace(outputs=[output], prompt_logprobs=first, metrics=metrics)

    def reset_prefix_cache(self) -> bool:
        """As if it had."""
        return True

    def get_metrics(self) -> list[Any]:
        """Counters, where statistics are on."""
        assert not self.settings.get("disable_log_stats", True), "Stat logging disabled"
        return [
            SimpleNamespace(name="vllm:prefix_cache_queries", value=self.queries),
            SimpleNamespace(name="vllm:prefix_cache_hits", value=self.queries * number("HITS")),
            SimpleNamespace(name="vllm:spec_decode_num_draft_tokens", value=self.drafted),
            SimpleNamespace(name="vllm:spec_decode_num_accepted_tokens", value=self.drafted * number("ACCEPTED")),
            SimpleNamespace(name="vllm:something_else", values=[1.0]),
        ]

    def start_profile(self) -> None:
        """Where it was told to."""
        folder = self.settings["profiler_config"]["torch_profiler_dir"]
        assert os.path.isabs(folder)
        os.makedirs(os.path.join(folder, "plugins", "profile", "now"))
        profiler._profile_state.profile_session = folder

    def stop_profile(self) -> None:
        """Write the trace."""
        folder, profiler._profile_state.profile_session = profiler._profile_state.profile_session, None
        with open(os.path.join(folder, "plugins", "profile", "now", "host.xplane.pb"), "wb"):
            pass
