"""The engine ``tpu-cpu-rig`` on a rig of made-up wheels; tests/bench/test_on_the_rig.py has the real one."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.jobs import arm, job, recipe
from support.rigs import engine_patch, make_rig
from support.sites import bare_site

from patchkit.author.transplant import transplant
from patchkit.bench.engines import engine_of
from patchkit.bench.observation import Observation
from patchkit.bench.rigged import site_for
from patchkit.errors import PatchkitError
from patchkit.model.load import load_patch
from patchkit.model.patch import Patch
from patchkit.model.recipe import Arm, Workload
from patchkit.ops.apply import apply_site
from patchkit.ops.revert import revert_site
from patchkit.rig.run import LABEL, adaptations, site_of_rig
from patchkit.rig.state import Rig
from patchkit.site.environment import Site, resolve

WORKLOAD = Workload(("ab", "c"), batch_mult=2, max_tokens=5, repeats=2)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Rig:
    return make_rig(tmp_path_factory.mktemp("made") / "rig")


@pytest.fixture
def rig(made: Rig) -> Rig:
    """The rig as it was made."""
    site = site_of_rig(made)
    revert_site(site, (), everything=True, notice=print)
    apply_site(site, adaptations(), notice=print)
    return made


def patch(folder: Path, name: str, find: str, replace: str) -> Patch:
    path = folder / f"{name}.toml"
    path.write_text(engine_patch(name, find, replace))
    return load_patch(str(path))


def output(word: str = "stock") -> str:
    answers = [[(sum(p.encode()) * 7 + at + len(word)) % 2048 for at in range(5)] for p in ("ab", "c", "ab", "c")]
    return hashlib.sha256(json.dumps(answers).encode()).hexdigest()


def rigged(**given: Any) -> Arm:
    return arm("tpu-cpu-rig", workload=WORKLOAD, **given)


def observe(folder: Path, rig: Rig, which: Arm, **given: Any) -> Observation:
    return engine_of("tpu-cpu-rig").observe(job(folder, which, site=site_of_rig(rig), **given), lambda text: None)


def refusal(folder: Path, site: Site, which: Arm) -> PatchkitError:
    with pytest.raises(PatchkitError) as caught:
        engine_of("tpu-cpu-rig").check(recipe(folder, which), site)
    return caught.value


def test_a_process_of_the_rig(rig: Rig, tmp_path: Path) -> None:
    assert engine_of("tpu-cpu-rig").check(recipe(tmp_path, rigged()), site_of_rig(rig)) == []
    assert engine_of("tpu-cpu-rig").can_forbid()
    seen = observe(tmp_path, rig, rigged())
    assert (seen.failure, seen.label) == (None, LABEL)
    assert seen.tokens is not None
    assert (seen.tokens.came, seen.tokens.sha256) == (20, output())
    assert seen.versions["vllm-tpu"] == "0.24.0"
    spec = json.loads((tmp_path / "job" / "job.json").read_text())
    assert spec["engine"] == {
        "model": rig.model,
        "dtype": "bfloat16",
        "max_model_len": 128,
        "max_num_seqs": 16,
        "max_num_batched_tokens": 256,
        "num_gpu_blocks_override": 64,
        "compilation_config": {"mode": 0},
        "seed": 7,
        "async_scheduling": False,
        "disable_log_stats": False,
    }


def test_what_the_recipe_says_comes_before_the_rig_s_own(rig: Rig, tmp_path: Path) -> None:
    which = rigged(max_num_seqs=4, max_model_len=64, options={"num_gpu_blocks_override": 8})
    observe(tmp_path, rig, which)
    engine = json.loads((tmp_path / "job" / "job.json").read_text())["engine"]
    assert (engine["max_num_seqs"], engine["max_model_len"], engine["num_gpu_blocks_override"]) == (4, 64, 8)
    observe(tmp_path, rig, rigged(max_num_seqs=64))
    engine = json.loads((tmp_path / "job" / "job.json").read_text())["engine"]
    assert (engine["max_num_seqs"], engine["num_gpu_blocks_override"]) == (64, 512)
    assert engine_of("tpu-cpu-rig").check(
        recipe(tmp_path, which._replace(engine=which.engine._replace(max_num_seqs=2))), site_of_rig(rig)
    ) == ["treatment: 4 requests wait for 2 places (max_num_seqs)"]


def test_patches_on_disk_are_in_the_process(rig: Rig, tmp_path: Path) -> None:
    site = site_of_rig(rig)
    apply_site(site, [patch(tmp_path, "words", 'WORD = "stock"', 'WORD = "another"')], notice=print)
    seen = observe(tmp_path, rig, rigged())
    assert seen.tokens is not None
    assert seen.tokens.sha256 == output("another")


def test_what_falls_off_the_menu_is_counted_and_caught(rig: Rig, tmp_path: Path) -> None:
    site = site_of_rig(rig)
    apply_site(site, [patch(tmp_path, "naive", "OFF_THE_MENU = False", "OFF_THE_MENU = True")], notice=print)
    seen = observe(tmp_path, rig, rigged())
    assert seen.compilations == {"jit(sample)": 2, "jit(split)": 2}
    caught = observe(tmp_path, rig, rigged(), forbid=True).failure
    assert caught is not None
    assert caught.forbidden


def test_a_transplant_is_active_in_its_own_arm_only(rig: Rig, tmp_path: Path) -> None:
    site = site_of_rig(rig)
    transplant(site, "vllm.engine", str(tmp_path / "mine"), notice=print, progress=print)
    (copied,) = [
        path
        for path in (tmp_path / "mine").rglob("*.py")
        if 'WORD = "stock"' in path.read_text() and "_transplant" not in path.parts
    ]
    copied.write_text(copied.read_text().replace('WORD = "stock"', 'WORD = "transplanted"'))
    baseline, treatment = rigged(), rigged(transplants=("mine",))
    assert engine_of("tpu-cpu-rig").check(recipe(tmp_path, baseline, treatment), site) == []
    found = []
    for which in (treatment, baseline):
        seen = observe(tmp_path, rig, which)
        assert seen.tokens is not None
        found.append(seen.tokens.sha256)
    assert found == [output("transplanted"), output("stock")]


def test_of_the_surroundings_only_what_leads_nowhere_else(rig: Rig, tmp_path: Path) -> None:
    spy = tmp_path / "spy"
    spy.mkdir()
    (spy / "sitecustomize.py").write_text(
        f"import json, os\njson.dump(dict(os.environ), open({str(tmp_path / 'seen')!r}, 'w'))\n"
    )
    surroundings = {"VLLM_LOGGING_LEVEL": "DEBUG", "JAX_PLATFORMS": "tpu", "MINE": "1", "PYTHONPATH": str(spy)}
    observe(tmp_path, rig, rigged(env={"VLLM_TPU_BUCKET_PADDING_GAP": "16"}), env=surroundings)
    seen = json.loads((tmp_path / "seen").read_text())
    assert (seen["JAX_PLATFORMS"], seen["MINE"], seen["PYTHONPATH"]) == ("cpu", "1", str(spy))
    assert seen["VLLM_TPU_BUCKET_PADDING_GAP"] == "16"
    assert "VLLM_LOGGING_LEVEL" not in seen
    assert seen["XDG_CACHE_HOME"] == os.path.join(rig.folder, "cache")


def test_a_site_that_is_no_rig_s(rig: Rig, tmp_path: Path) -> None:
    assert refusal(tmp_path, bare_site(tmp_path), rigged()).code == "no-interpreter"
    assert refusal(tmp_path, resolve(None, None, {}), rigged()).code == "no-rig"
    other = tmp_path / "rig"
    shutil.copytree(rig.folder, other, symlinks=True)
    (other / "env").rename(other / "elsewhere")
    found = refusal(tmp_path, resolve(str(other / "elsewhere" / "bin" / "python")), rigged())
    assert (found.code, "is not the environment of the rig" in found.message) == ("no-rig", True)


def test_a_rig_without_its_own_patches(rig: Rig, tmp_path: Path) -> None:
    site = site_of_rig(rig)
    revert_site(site, ["rig-vllm"], notice=print)
    found = refusal(tmp_path, site, rigged())
    assert (found.code, "its patch rig-vllm" in found.message, "is not applied" in found.message) == (
        "rig-patches",
        True,
        True,
    )
    apply_site(site, [one for one in adaptations() if one.name == "rig-vllm"], notice=print)
    path = Path(site.home) / "vllm" / "platforms" / "__init__.py"
    kept = path.read_bytes()
    path.write_bytes(kept + b"# by hand\n")
    assert "rig-vllm" in refusal(tmp_path, site, rigged()).message
    path.write_bytes(kept)


def test_another_rig_than_the_recipe_s(rig: Rig, tmp_path: Path) -> None:
    other = make_rig(tmp_path / "other")
    found = refusal(tmp_path, site_of_rig(rig), rigged(rig="other"))
    assert found.code == "other-rig"
    assert other.python in str(found.hint)
    assert engine_of("tpu-cpu-rig").check(recipe(tmp_path, rigged(rig="other")), site_of_rig(other)) == []


def test_the_site_that_a_recipe_means(rig: Rig, tmp_path: Path) -> None:
    assert site_for(recipe(tmp_path, arm("vllm", model="m")), {"PATCHKIT_RIG": rig.folder}) is None
    named = site_for(recipe(tmp_path, rigged()), {"PATCHKIT_RIG": rig.folder})
    assert named is not None
    assert named.home == site_of_rig(rig).home
    os.symlink(rig.folder, tmp_path / "linked")
    named = site_for(recipe(tmp_path, rigged(rig="linked")), {"PATCHKIT_RIG": "/nowhere"})
    assert named is not None
    assert os.path.realpath(named.home) == os.path.realpath(site_of_rig(rig).home)
    for arms, environ, code in (
        ([rigged()], {}, "no-rig"),
        ([rigged()], {"PATCHKIT_RIG": str(tmp_path / "none")}, "no-rig"),
        ([rigged(rig="a"), rigged(rig="b")], {}, "other-rig"),
    ):
        with pytest.raises(PatchkitError) as caught:
            site_for(recipe(tmp_path, *arms), environ)
        assert caught.value.code == code


def test_a_rig_is_a_site_of_vllm_as_well(rig: Rig, tmp_path: Path) -> None:
    assert engine_of("vllm").check(recipe(tmp_path, arm("vllm", model="m")), site_of_rig(rig)) == []
