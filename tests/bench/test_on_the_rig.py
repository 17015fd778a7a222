"""What only the real engine shows (minutes): in the rig that PATCHKIT_RIG names, or one made in the test cache."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.jobs import arm, job, recipe
from support.rigs import real_rig

from patchkit.author.transplant import transplant
from patchkit.bench.engines import engine_of, own_patches
from patchkit.bench.observation import Observation
from patchkit.model.load import load_patch
from patchkit.model.recipe import Workload
from patchkit.ops.apply import apply_site
from patchkit.ops.bundle import make_bundle
from patchkit.ops.check import check_site
from patchkit.ops.inmemory import plan_in_memory
from patchkit.ops.launch import environment
from patchkit.ops.revert import revert_site
from patchkit.rig.recipe import ADAPTATIONS
from patchkit.rig.run import LABEL, site_of_rig
from patchkit.rig.state import Rig
from patchkit.site.environment import Site

pytestmark = [pytest.mark.rig, pytest.mark.real, pytest.mark.slow]

PATCHES = Path(__file__).parents[2] / "patches"
WORKLOAD = Workload(
    ("The capital of France is", "Once upon a time", "def fibonacci(n):", "The theory of relativity"),
    batch_mult=4,
    max_tokens=16,
    repeats=2,
)
Observe = Callable[..., Observation]


@pytest.fixture(scope="module")
def rig() -> Rig:
    return real_rig()


@pytest.fixture
def site(rig: Rig) -> Iterator[Site]:
    """The rig's site as it was made; what a test applied is taken out again."""
    site = site_of_rig(rig)
    assert [one.name for one in check_site(site).states if one.clean] == list(ADAPTATIONS)
    yield site
    if found := [one.name for one in check_site(site).states if one.name not in ADAPTATIONS]:
        revert_site(site, found, notice=print)
    assert [one.name for one in check_site(site).states if one.clean] == list(ADAPTATIONS)


@pytest.fixture
def observe(site: Site, tmp_path: Path) -> Observe:
    """One process with these settings."""

    def observe(*, workload: Workload = WORKLOAD, job_env: dict[str, str] | None = None, **given: Any) -> Observation:
        kind = {name: given.pop(name) for name in ("forbid", "profile_job") if name in given}
        which = arm("tpu-cpu-rig", workload=workload, **given)
        made = job(tmp_path, which, site=site, env=job_env, forbid="forbid" in kind, profile="profile_job" in kind)
        assert engine_of("tpu-cpu-rig").check(recipe(tmp_path, which), site) == []
        return engine_of("tpu-cpu-rig").observe(made, lambda text: None)

    return observe


def apply(site: Site, *names: str) -> None:
    patches = [load_patch(str(PATCHES / f"{name}.toml")) for name in names]
    apply_site(site, patches, allow_known_bad=True, notice=print)


def sampled(seen: Observation) -> list[int]:
    """Compilations of sample() by phase."""
    return [(one.compilations or {}).get("jit(sample)", 0) for one in seen.phases]


def test_the_logits_patches_on_disk(site: Site, observe: Observe) -> None:
    stock = observe()
    assert (stock.failure, stock.label, sampled(stock)) == (None, LABEL, [0] * 5)
    assert stock.tokens is not None
    assert (stock.tokens.asked, stock.tokens.came, stock.tokens.failed_requests) == (256, 256, 0)
    assert observe(forbid=True).failure is None

    apply(site, "logits-greedy-naive")
    naive = observe()
    assert (naive.failure, sampled(naive)) == (None, [1, 1, 0, 0, 0])
    assert naive.tokens == stock.tokens
    caught = observe(forbid=True).failure
    assert caught is not None
    assert caught.forbidden
    assert caught.message.startswith("jit(sample) was compiled where compilation is forbidden")
    revert_site(site, ["logits-greedy-naive"], notice=print)

    apply(site, "logits-greedy")
    fixed = observe()
    assert (fixed.failure, sampled(fixed)) == (None, [0] * 5)
    assert fixed.tokens == stock.tokens
    assert observe(forbid=True).failure is None


def test_a_patch_in_memory_beside_the_rig_s_own(site: Site, observe: Observe) -> None:
    naive = load_patch(str(PATCHES / "logits-greedy-naive.toml"))
    view = plan_in_memory(site, [*own_patches("tpu-cpu-rig"), naive], allow_known_bad=True, notice=print)
    env = environment(site, make_bundle(view), dict(os.environ))
    assert sampled(observe(job_env=env)) == [1, 1, 0, 0, 0]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_compilations_are_counted_in_the_engine_s_own_process(method: str, site: Site, observe: Observe) -> None:
    apply(site, "logits-greedy-naive")
    apart = {"VLLM_ENABLE_V1_MULTIPROCESSING": "1", "VLLM_WORKER_MULTIPROC_METHOD": method}
    seen = observe(env=apart)
    assert seen.failure is None
    assert (seen.compilations or {})["jit(sample)"] == 2
    assert "EngineCore pid=" in Path(str(seen.log)).read_text()
    caught = observe(env=apart, forbid=True).failure
    assert caught is not None
    assert (caught.forbidden, caught.message.partition(" was ")[0]) == (True, "jit(sample)")


def test_a_transplanted_kernel_gives_the_same_tokens(site: Site, observe: Observe, tmp_path: Path) -> None:
    """The rig's attention is not the kernel; what is shown is that the copy is in force in its arm and in no other."""
    module = "tpu_inference.layers.jax.sample.sampling"
    transplant(site, module, str(tmp_path / "my_sampling"), notice=print, progress=print)
    probes = tmp_path / "probes"
    stock, copied = (
        observe(job_env={"PATCHKIT_PROBES": str(probes / name)}, transplants=copies)
        for name, copies in (("stock", ()), ("copied", ("my_sampling",)))
    )
    assert (stock.failure, copied.failure) == (None, None)
    assert copied.tokens == stock.tokens
    assert list((probes / "copied" / "transplants").iterdir())
    assert not (probes / "stock" / "transplants").exists()


def test_speculation_sampling_and_other_sizes(observe: Observe) -> None:
    greedy = observe(max_num_seqs=32, workload=WORKLOAD._replace(batch_mult=8))
    assert greedy.tokens is not None
    assert greedy.tokens.came == 512
    ngram = {"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_min": 2, "prompt_lookup_max": 4}
    drafted = observe(speculative=ngram, workload=WORKLOAD._replace(max_tokens=32))
    assert drafted.failure is None
    assert 0 <= drafted.metrics["acceptance_rate"].value <= 1
    sampling = WORKLOAD._replace(temperature=None, repeats=1)
    first, again = observe(workload=sampling), observe(workload=sampling)
    assert first.failure is None
    assert first.tokens == again.tokens


def test_a_trace(observe: Observe, tmp_path: Path) -> None:
    seen = observe(profile_job=True)
    assert (seen.failure, seen.profiler) == (None, True)
    assert list((tmp_path / "job" / "trace").rglob("*.xplane.pb"))
    assert not (tmp_path / "job" / "None").exists()
