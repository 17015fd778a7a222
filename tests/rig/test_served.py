"""vLLM's own OpenAI server on the real engine (minutes): our client, and vLLM's beside it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.jobs import arm, job
from support.rigs import real_rig

from patchkit.bench.observation import Observation
from patchkit.bench.readers import read_result
from patchkit.bench.served.engine import Openai
from patchkit.bench.served.server import Running
from patchkit.model.load import load_patch
from patchkit.model.recipe import Workload
from patchkit.ops.bundle import make_bundle
from patchkit.ops.inmemory import plan_in_memory
from patchkit.ops.launch import environment
from patchkit.rig.run import adaptations, site_of_rig, variables
from patchkit.rig.state import Rig

pytestmark = [pytest.mark.rig, pytest.mark.real, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
PROMPTS = ("Hello world", "The quick brown", "fox", "jumps over the lazy")
WORK = Workload(PROMPTS, batch_mult=4, max_tokens=16)
#: So that the tiny model can chat.
TEMPLATE = "{% for one in messages %}{{ one['content'] }}{% endfor %}"


@pytest.fixture(scope="module")
def rig() -> Rig:
    return real_rig()


def served(
    rig: Rig, folder: Path, patch: str | None = None, *, forbid: bool = False, profile: bool = False, **options: Any
) -> Observation:
    """The rig's engine behind vLLM's server, with the patch in memory."""
    site = site_of_rig(rig)
    patches = [] if patch is None else [load_patch(str(ROOT / "patches" / f"{patch}.toml"))]
    view = plan_in_memory(site, [*adaptations(), *patches], allow_known_bad=True, notice=lambda text: None)
    which = arm(
        "openai",
        workload=WORK,
        model=rig.model,
        max_num_seqs=16,
        max_model_len=128,
        dtype="bfloat16",
        async_scheduling=False,
        options={
            "max_num_batched_tokens": 256,
            "num_gpu_blocks_override": 64,
            "compilation_config": {"mode": 0},
            "seed": 7,
            **options,
        },
        timeout=900.0,
    )
    env = environment(site, make_bundle(view), variables(rig, os.environ, forbid=False))
    made = job(folder, which, site=site, forbid=forbid, profile=profile)
    return Openai().observe(made._replace(env=env), lambda text: None)


def counts(seen: Observation) -> tuple[int | None, int | None, int]:
    assert seen.tokens is not None
    return seen.tokens.asked, seen.tokens.came, seen.tokens.failed_requests


def test_the_logits_patches(rig: Rig, tmp_path: Path) -> None:
    """Tokens of all three are the same; the naive one compiles `sample` while requests are served, and is forbidden."""
    runs = {}
    for name in (None, "logits-greedy", "logits-greedy-naive"):
        folder = tmp_path / str(name)
        folder.mkdir()
        seen = runs[name] = served(rig, folder, name)
        assert seen.failure is None
        assert counts(seen) == (256, 256, 0)
        assert seen.version_lines == (f"Initializing a V1 LLM engine (v{rig.version})",)
        assert seen.metrics["kv_cache_tokens"].value == 1024
        assert seen.prefix_cache_hit_rate is not None
    assert len({seen.tokens.sha256 for seen in runs.values() if seen.tokens is not None}) == 1
    sample = {name: (seen.compilations or {}).get("jit(sample)", 0) for name, seen in runs.items()}
    assert (sample[None], sample["logits-greedy"]) == (0, 0)
    assert sample["logits-greedy-naive"] > 0
    folder = tmp_path / "forbidden"
    folder.mkdir()
    seen = served(rig, folder, "logits-greedy-naive", forbid=True)
    assert seen.failure is not None
    assert seen.failure.forbidden


def test_chat(rig: Rig, tmp_path: Path) -> None:
    seen = served(rig, tmp_path, endpoint="chat", chat_template=TEMPLATE)
    assert seen.failure is None
    assert counts(seen) == (256, 256, 0)


def test_a_trace(rig: Rig, tmp_path: Path) -> None:
    """Untimed, in the job's own folder."""
    seen = served(rig, tmp_path, profile=True)
    assert seen.failure is None
    assert seen.profiler
    assert "throughput" not in seen.metrics
    assert list((tmp_path / "job" / "trace").rglob("*.xplane.pb"))


def test_beside_vllms_own_client(rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many requests of that length to the same server; the ratios are printed, and nothing is asked of them."""
    import patchkit.bench.served.engine as engine

    found: list[Any] = []
    measure = engine._measure

    def both(made: Any, server: Running, *rest: Any) -> Observation:
        measure(made, server, *rest)  # so that both come to an engine that has seen the shapes
        found.extend(bench(rig, tmp_path, server, number) for number in range(3))
        return measure(made, server, *rest)

    monkeypatch.setattr(engine, "_measure", both)
    ours = served(rig, tmp_path)
    assert ours.failure is None
    for other in found:
        assert other.failure is None
        assert other.tokens.failed_requests == 0
        assert other.tokens.came == 256
    print(f"\n{rig.version}: vllm bench serve / ours, medians")
    for name in ("throughput", "ttft", "tpot", "e2el"):
        value = sorted(other.metrics[name].value for other in found)[1]
        print(f"  {name:12} {value / ours.metrics[name].value:.2f}")


def bench(rig: Rig, folder: Path, server: Running, number: int) -> Observation:
    """`vllm bench serve`; its own prompts, for it reads those of a file with pandas, which a rig has not."""
    result = f"bench-{number}.json"
    words = ["--base-url", server.url, "--model", server.model, "--tokenizer", rig.model, "--seed", str(number)]
    words += ["--dataset-name", "random", "--random-input-len", "12", "--random-output-len", "16"]
    words += ["--num-prompts", "16", "--temperature", "0", "--ignore-eos", "--save-result"]
    words += ["--percentile-metrics", "ttft,tpot,itl,e2el", "--metric-percentiles", "90,99"]
    words += ["--result-dir", str(folder), "--result-filename", result]
    env = variables(rig, os.environ, forbid=False)
    done = subprocess.run(
        [rig.python, "-m", "vllm.entrypoints.cli.main", "bench", "serve", *words],
        env=env,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    value = json.loads((folder / result).read_text())
    return read_result("vllm-serve", value, metrics={}, workload=WORK)
