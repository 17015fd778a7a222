"""The engine ``vllm`` on a made-up one (tests/support/fake_vllm): its clock is exact, and it misbehaves on request."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.jobs import arm, job, recipe
from support.rigs import FAKE
from support.sites import bare_site

from patchkit.bench.engines import engine_of
from patchkit.bench.observation import Failure, Measured, Observation, Tokens
from patchkit.errors import GuardError, UsageError
from patchkit.model.recipe import Workload
from patchkit.rig.drive import Paths, under_way

ROOT = Path(__file__).parents[2]
WORKLOAD = Workload(("ab", "c"), batch_mult=2, max_tokens=11, repeats=3)
#: What a batch of four is made of, by the engine's own words: compilations cost 1 s, a first token 0.1, another 0.01.
FIRST, MAIN = 0.1, 0.2


def observe(
    folder: Path, *, workload: Workload = WORKLOAD, switches: dict[str, str] | None = None, **given: Any
) -> Any:
    """One process with these switches."""
    kind = {name: given.pop(name) for name in ("forbid", "profile_job") if name in given}
    which = arm("vllm", workload=workload, **{"model": "google/gemma-2b", **given})
    env = {"PYTHONPATH": str(FAKE), **{f"FAKE_VLLM_{name}": value for name, value in (switches or {}).items()}}
    made = job(folder, which, env=env, forbid=kind.get("forbid", False), profile=kind.get("profile_job", False))
    return engine_of("vllm").observe(made, lambda text: None)


def failure(seen: Observation) -> Failure:
    assert seen.failure is not None, seen
    return seen.failure


def output(word: str = "stock", count: int = 11) -> str:
    """The hash of all tokens, by what the made-up engine is said to do."""
    answers = [[(sum(p.encode()) * 7 + at + len(word)) % 2048 for at in range(count)] for p in ("ab", "c", "ab", "c")]
    return hashlib.sha256(json.dumps(answers).encode()).hexdigest()


def values(seen: Observation) -> dict[str, float]:
    return {name: round(one.value, 6) for name, one in seen.metrics.items()}


def test_first_touch_is_apart_from_the_steady_state(tmp_path: Path) -> None:
    seen = observe(tmp_path)
    assert seen.failure is None
    assert values(seen) == {
        "init": 10.0,
        "ttft_first": 1.1,  # the batch of four was not touched by the warm-up's two
        "ttft": 0.1,
        "throughput_first": 220.0,  # 44 tokens in 0.2 s
        "throughput": 220.0,
        "request_throughput": 20.0,
        "itl": 0.01,  # ten steps follow the first token
        "ttft_by_engine": 0.05,
        "model_memory": 4.67,
        "kv_cache_tokens": 1024.0,
        "max_concurrency": 8.0,
    }
    assert seen.metrics["ttft"] == Measured(0.1, "s", (0.1, 0.1))
    told = [(one.name, one.repeat, one.seconds, one.requests, one.tokens, one.compilations) for one in seen.phases]
    assert told == [
        ("warm-up", 0, 1.11, 2, 4, {"jit(split)": 1}),
        ("ttft", 0, 1.1, 4, 4, {"jit(split)": 1}),
        ("main", 0, 0.2, 4, 44, {}),
        ("ttft", 1, 0.1, 4, 4, {}),
        ("main", 1, 0.2, 4, 44, {}),
        ("ttft", 2, 0.1, 4, 4, {}),
        ("main", 2, 0.2, 4, 44, {}),
    ]
    assert seen.compilations == {"jit(split)": 2}
    assert seen.tokens == Tokens(44, 44, output())
    assert {one.tokens_sha256 for one in seen.phases if one.name == "main"} == {output()}
    assert (seen.prefix_cache_hit_rate, seen.profiler) == (0.0, False)
    assert seen.version_lines == ("Initializing a V1 LLM engine (v0.24.0)",)
    assert seen.log == str(tmp_path / "job" / "log.txt")
    assert not (tmp_path / "job" / "None").exists()


@pytest.mark.parametrize(
    ("repeats", "median", "samples"),
    [(1, 2.5, [1]), (2, 3.0, [2]), (3, 4.0, [2, 3]), (4, 5.0, [2, 3, 4])],
)
def test_the_median_leaves_the_first_repeat_out(
    repeats: int, median: float, samples: list[int], tmp_path: Path
) -> None:
    """The n-th main generation takes a factor of 2.5, 3, 5, 7 of its time."""
    seen = observe(
        tmp_path,
        workload=WORKLOAD._replace(repeats=repeats),
        switches={"STEPS": "1,1,2.5,1,3,1,5,1,7"},
    )
    factors = {1: 2.5, 2: 3.0, 3: 5.0, 4: 7.0}
    assert [round(one, 6) for one in seen.metrics["throughput"].samples] == [
        round(44 / (MAIN * factors[one]), 6) for one in samples
    ]
    if repeats != 3:  # an even number of samples: the mean of two rates, not the rate of a mean
        assert seen.metrics["throughput"].value == pytest.approx(44 / (MAIN * median))
    assert seen.metrics["throughput_first"].value == pytest.approx(44 / (MAIN * 2.5))


def test_of_a_single_token_there_is_no_time_between_tokens(tmp_path: Path) -> None:
    seen = observe(tmp_path, workload=WORKLOAD._replace(max_tokens=1))
    assert seen.failure is None
    assert "itl" not in seen.metrics
    assert seen.tokens.came == seen.tokens.asked == 4


@pytest.mark.parametrize("process", ["", "fork", "spawn"])
def test_compilations_are_counted_wherever_the_engine_runs(process: str, tmp_path: Path) -> None:
    seen = observe(tmp_path, switches={"PROCESS": process, "OFF_THE_MENU": "1", "COMPILE": "jit(late)@4"})
    assert seen.compilations == {"jit(late)": 1, "jit(sample)": 2, "jit(split)": 2}
    assert [one.compilations for one in seen.phases][:5] == [
        {"jit(sample)": 1, "jit(split)": 1},
        {"jit(sample)": 1, "jit(split)": 1},
        {},
        {},
        {"jit(late)": 1},
    ]


def test_where_nobody_counts_that_is_said(tmp_path: Path) -> None:
    """As with an engine that has no jax."""
    blind = tmp_path / "blind"
    (blind / "jax").mkdir(parents=True)
    (blind / "jax" / "__init__.py").write_text(
        "import os\nif 'FAKE_READY' not in os.environ:\n    os.environ['FAKE_READY'] = '1'\n    raise ImportError\n"
        f"__path__.append({str(FAKE / 'jax')!r})\n"
    )
    which = arm("vllm", workload=WORKLOAD, model="m")
    seen = engine_of("vllm").observe(job(tmp_path, which, env={"PYTHONPATH": f"{blind}{os.pathsep}{FAKE}"}), print)
    assert seen.failure is None
    assert seen.compilations is None
    assert {one.compilations for one in seen.phases} == {None}


@pytest.mark.parametrize("process", ["", "spawn"])
def test_forbidden_compilation_is_a_failure_of_its_own(process: str, tmp_path: Path) -> None:
    switches = {"OFF_THE_MENU": "1", "PROCESS": process}
    seen = observe(tmp_path, forbid=True, switches=switches)
    assert failure(seen).forbidden
    assert failure(seen).message.startswith("jit(sample) was compiled where compilation is forbidden (the log: ")
    assert not any(unit == "s" for unit in (one.unit for one in seen.metrics.values()))
    assert observe(tmp_path, switches=switches).failure is None


def test_a_forbidding_job_touches_what_the_measured_one_does_and_times_nothing(tmp_path: Path) -> None:
    seen = observe(tmp_path, forbid=True)
    assert seen.failure is None
    assert [(one.name, one.requests, one.tokens) for one in seen.phases] == [
        ("warm-up", 2, 4),
        ("ttft", 4, 4),
        ("main", 4, 44),
    ]
    assert "throughput" not in seen.metrics
    # At least one decode step, also where the workload has none.
    seen = observe(tmp_path, forbid=True, workload=WORKLOAD._replace(max_tokens=1))
    assert [one.tokens for one in seen.phases] == [4, 4, 8]


def test_a_traced_job_leaves_its_trace_below_its_folder(tmp_path: Path) -> None:
    seen = observe(tmp_path, profile_job=True, workload=WORKLOAD._replace(max_tokens=40))
    assert seen.failure is None
    assert seen.profiler
    assert [path.name for path in (tmp_path / "job").rglob("*.xplane.pb")] == ["host.xplane.pb"]
    assert [(one.name, one.repeat, one.tokens) for one in seen.phases][-2:] == [("main", 0, 160), ("main", 1, 64)]
    assert "throughput" not in seen.metrics
    assert seen.tokens.came == seen.tokens.asked == 160


def test_the_recipe_may_have_the_profiler_on(tmp_path: Path) -> None:
    seen = observe(tmp_path, profile=True)
    assert (seen.profiler, seen.metrics["throughput"].value) == (True, pytest.approx(220))
    assert list((tmp_path / "job" / "trace").rglob("*.xplane.pb"))


def test_a_profiler_that_nobody_asked_for_is_seen(tmp_path: Path) -> None:
    assert observe(tmp_path, switches={"PROFILER": "1"}).profiler


@pytest.mark.parametrize(
    ("switches", "change"),
    [
        ({"WORD": "others"}, {"tokens": Tokens(44, 44, output("others"))}),
        ({"HITS": "0.25"}, {"prefix_cache_hit_rate": 0.25}),
        ({"VERSION": "0.25.0"}, {"version_lines": ("Initializing a V1 LLM engine (v0.25.0)",)}),
    ],
)
def test_what_is_otherwise_is_seen(switches: dict[str, str], change: dict[str, Any], tmp_path: Path) -> None:
    seen = observe(tmp_path, switches=switches)
    plain = observe(tmp_path)
    assert seen == plain._replace(**change, phases=seen.phases)


def test_missing_and_aborted_output(tmp_path: Path) -> None:
    seen = observe(tmp_path, switches={"SHORT": "3", "ABORT": "1"})
    assert (seen.tokens.asked, seen.tokens.came, seen.tokens.failed_requests) == (44, 41, 3)


def test_tokens_that_differ_between_repeats_have_a_hash_of_their_own(tmp_path: Path) -> None:
    """A word that changes from call to call: by a switch of the file, not of the environment."""
    code = (FAKE / "vllm" / "engine.py").read_text()
    package = tmp_path / "other" / "vllm"
    package.mkdir(parents=True)
    for name in ("__init__.py", "sampling_params.py"):
        (package / name).write_text((FAKE / "vllm" / name).read_text())
    (package / "engine.py").write_text(
        code.replace('WORD = "stock"\n', "")
        + "_calls = []\ndef __getattr__(name):\n    _calls.append(1)\n    return 'x' * len(_calls)\n"
    )
    which = arm("vllm", workload=WORKLOAD, model="m")
    seen = engine_of("vllm").observe(
        job(tmp_path, which, env={"PYTHONPATH": f"{tmp_path / 'other'}{os.pathsep}{FAKE}"}), print
    )
    hashes = [one.tokens_sha256 for one in seen.phases if one.name == "main"]
    assert len(set(hashes)) == 3
    assert seen.tokens is not None
    assert seen.tokens.sha256 == hashlib.sha256("\n".join(str(one) for one in hashes).encode()).hexdigest()


@pytest.mark.parametrize(
    ("switches", "kind", "message", "phases"),
    [
        ({"CRASH": "init"}, "signal", "the process was ended by signal 6; its last line: ", 0),
        ({"CRASH": "2"}, "signal", "the process was ended by signal 6; its last line: ", 2),
        ({"RAISE": "init"}, "RuntimeError", "RuntimeError: out of memory (the log: ", 0),
        ({"RAISE": "2"}, "RuntimeError", "RuntimeError: out of memory (the log: ", 3),
        ({"RAISE": "2", "PROCESS": "spawn"}, "EngineDeadError", "EngineDeadError: EngineCore encountered an issue", 3),
        ({"CRASH": "2", "PROCESS": "fork"}, "EngineDeadError", "EngineDeadError: EngineCore encountered an issue", 3),
    ],
)
def test_what_was_done_before_a_failure_is_kept(
    switches: dict[str, str], kind: str, message: str, phases: int, tmp_path: Path
) -> None:
    seen = observe(tmp_path, switches=switches)
    assert failure(seen).kind == kind
    assert failure(seen).message.startswith(message)
    assert not failure(seen).forbidden
    assert len(seen.phases) == phases
    assert ("ttft_first" in seen.metrics) == (phases > 0)
    assert seen.version_lines == ("Initializing a V1 LLM engine (v0.24.0)",)


def test_one_that_hangs_is_ended(tmp_path: Path) -> None:
    seen = observe(tmp_path, switches={"HANG": "1", "PROCESS": "spawn"}, timeout=4.0)
    assert failure(seen).kind == "timeout"
    assert [one.name for one in seen.phases] == ["warm-up"]


@pytest.mark.parametrize("process", ["", "spawn"])
def test_an_engine_does_not_outlive_who_started_it(process: str, tmp_path: Path) -> None:
    """Whoever is killed with SIGKILL can end nobody."""
    script = tmp_path / "starter.py"
    script.write_text(
        "import sys\n"
        f"sys.path[:0] = {[str(ROOT), str(ROOT / 'tests')]!r}\n"
        "from pathlib import Path\n"
        "from support.jobs import arm, job\n"
        "from patchkit.bench.engines import engine_of\n"
        "from patchkit.model.recipe import Workload\n"
        "which = arm('vllm', workload=Workload(('a',)), model='m')\n"
        f"env = {{'PYTHONPATH': {str(FAKE)!r}, 'FAKE_VLLM_HANG': '1', 'FAKE_VLLM_PROCESS': {process!r}}}\n"
        f"engine_of('vllm').observe(job(Path({str(tmp_path)!r}), which, env=env), lambda text: None)\n"
    )
    starter = subprocess.Popen([sys.executable, str(script)])
    target = tmp_path / "job" / "output.json"
    until = time.monotonic() + 60
    while not target.exists():  # it hangs in the generation after the first
        assert time.monotonic() < until
        time.sleep(0.05)
    mine = engines_of(target)
    assert len(mine) == (2 if process else 1)
    starter.kill()
    starter.wait()
    while engines_of(target):
        assert time.monotonic() < until
        time.sleep(0.05)


def engines_of(target: Path) -> list[int]:
    """The processes that were started, or spawned, with this result."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if str(target).encode() in words or (parent in found and b"spawn_main" in b" ".join(words)):
                found.append(int(entry.name))
    return found


def test_progress_is_told(tmp_path: Path) -> None:
    ticks: list[str] = []
    which = arm("vllm", workload=WORKLOAD, model="m", timeout=3.0)
    env = {"PYTHONPATH": str(FAKE), "FAKE_VLLM_HANG": "3"}
    engine_of("vllm").observe(job(tmp_path, which, env=env), ticks.append)
    assert ticks[-1] == "ttft, repeat 2 of 3"


def test_how_far_the_engine_is_while_it_is_built(tmp_path: Path) -> None:
    paths = Paths(*(str(tmp_path / name) for name in ("spec", "result", "log")))
    assert under_way(paths) == "running"
    Path(paths.progress).write_text("building the engine")
    assert under_way(paths) == "building the engine"
    Path(paths.compiled).mkdir()
    (Path(paths.compiled) / "7").write_text('"jit(a)"\n"jit(b)"\n')
    (Path(paths.compiled) / "8").write_text('"jit(c)"\n')
    assert under_way(paths) == "building the engine, 3 programs compiled"
    Path(paths.progress).write_text("main")
    assert under_way(paths) == "main"


def told(folder: Path, **given: Any) -> Any:
    observe(folder, **given)
    return json.loads((folder / "job" / "job.json").read_text())


def test_the_engine_is_built_of_the_recipe_s_fields(tmp_path: Path) -> None:
    assert told(tmp_path)["engine"] == {"model": "google/gemma-2b", "disable_log_stats": False}
    (tmp_path / "tiny").mkdir()
    spec = told(
        tmp_path,
        workload=WORKLOAD._replace(seed=5, temperature=None, top_p=0.9, top_k=4, logprobs=2, ignore_eos=False),
        model="tiny",
        max_num_seqs=512,
        max_model_len=256,
        dtype="bfloat16",
        quantization="fp8",
        kv_cache_dtype="fp8",
        tensor_parallel_size=2,
        enable_prefix_caching=False,
        async_scheduling=False,
        profile=True,
        options={"block_size": 32, "max_num_seqs": 8},
        speculative={"method": "ngram", "num_speculative_tokens": 5},
    )
    assert spec["engine"] == {
        "model": str(tmp_path / "tiny"),
        "max_num_seqs": 8,
        "max_model_len": 256,
        "dtype": "bfloat16",
        "quantization": "fp8",
        "kv_cache_dtype": "fp8",
        "tensor_parallel_size": 2,
        "enable_prefix_caching": False,
        "async_scheduling": False,
        "seed": 5,
        "speculative_config": {"method": "ngram", "num_speculative_tokens": 5},
        "profiler_config": {"profiler": "torch", "torch_profiler_dir": str(tmp_path / "job" / "trace")},
        "disable_log_stats": False,
        "block_size": 32,
    }
    assert spec["prompts"] == ["ab", "c", "ab", "c"]
    asked = spec["phases"][2]["sampling"]
    assert asked == {"top_p": 0.9, "top_k": 4, "logprobs": 2, "ignore_eos": False, "max_tokens": 11}


def test_the_share_of_accepted_drafts(tmp_path: Path) -> None:
    seen = observe(tmp_path, switches={"ACCEPTED": "0.3"}, speculative={"method": "ngram"})
    assert seen.metrics["acceptance_rate"].value == pytest.approx(0.3)
    assert "acceptance_rate" not in observe(tmp_path).metrics


def test_variables_and_paths_of_the_process(tmp_path: Path) -> None:
    """Also: the driver's own folder is not on the engine's path, and its modules shadow nothing."""
    spy = tmp_path / "spy"
    spy.mkdir()
    (spy / "sitecustomize.py").write_text(
        "import atexit, json, os, sys\nkept = {k: v for k, v in os.environ.items()}\n"
        f"open({str(tmp_path / 'seen')!r}, 'a').write(json.dumps([kept, os.getcwd()]) + '\\n')\n"
    )
    which = arm("vllm", workload=WORKLOAD, model="m", env={"PYTHONPATH": str(spy), "MINE": "1"})
    for kind in ({}, {"forbid": True}, {"profile": True}):
        engine_of("vllm").observe(job(tmp_path, which, env={"PYTHONPATH": str(FAKE)}, **kind), print)
    plain, forbidding, tracing = (json.loads(line) for line in (tmp_path / "seen").read_text().splitlines())
    assert plain[1] == str(tmp_path / "job")
    assert plain[0]["PYTHONPATH"].split(os.pathsep) == [str(spy), str(FAKE)]
    assert plain[0]["MINE"] == "1"
    assert "VLLM_XLA_CHECK_RECOMPILATION" not in plain[0]
    assert (forbidding[0]["VLLM_XLA_CHECK_RECOMPILATION"], forbidding[0]["JAX_LOG_COMPILES"]) == ("1", "1")
    assert tracing[0]["JAX_COMPILATION_CACHE_INCLUDE_METADATA_IN_KEY"] == "true"


def test_check(tmp_path: Path) -> None:
    engine = engine_of("vllm")
    assert engine.can_forbid()
    which = arm("vllm", model="m")
    with pytest.raises(UsageError) as bare:
        engine.check(recipe(tmp_path, which), bare_site(tmp_path))
    assert bare.value.code == "no-interpreter"
    with pytest.raises(GuardError) as missing:
        engine.check(recipe(tmp_path, which), job(tmp_path, which).site)
    assert missing.value.code == "not-installed"
    with pytest.raises(UsageError) as copy:
        engine.check(recipe(tmp_path, arm("vllm", model="m", transplants=("no",))), job(tmp_path, which).site)
    assert copy.value.code == "not-a-transplant"
