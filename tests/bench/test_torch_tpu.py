"""The example of TorchTPU: recipes with the published figures, and their script with a torch that only pretends."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.documents import ROOT
from support.jobs import arm, job

from patchkit.bench.engines import engine_of
from patchkit.bench.observation import Observation
from patchkit.model.load import load_patch
from patchkit.model.load_recipe import load_recipe
from patchkit.model.recipe import Figure, Recipe, Workload
from patchkit.ops.lint import lint_file, lint_recipe

FOLDER = ROOT / "examples" / "torch-tpu"
RECIPES: dict[str, Recipe] = {path.stem: load_recipe(str(path)) for path in sorted((FOLDER / "recipes").glob("*.toml"))}
ARMS = ("baseline", "treatment")
PUBLISHED = {
    "compiled-step": (Figure("throughput", 2095.0, 10624.0),),
    "pallas-attention": (Figure("throughput", None, None, 1.056),),
    "eight-steps": (Figure("throughput", None, None, 1.211),),
    "final": (
        Figure("throughput", None, 21645.8),
        Figure("ttft", None, 0.222),
        Figure("itl", None, 0.0221),
    ),
    "eight-steps-cpu": (),
}
#: A torch with as little in it as the script asks for; TPU says whether a chip is there.
TORCH = """
TPU = {tpu}

def empty(size, device):
    if device == "tpu" and not TPU:
        raise RuntimeError("no device type tpu\\nand more")
"""
COUNTERS = 'counters = {"stats": {"unique_graphs": 3}}\n'
DECODER = """
from torch._dynamo.utils import counters

CALLS = []

class Decoder:
    def __init__(self, torch, options):
        self.options = options

    def generate(self, prompts, tokens):
        CALLS.append(tokens)
        counters["stats"]["unique_graphs"] += len(CALLS) == {compiles_in}
        return [[ord(prompt) + at + ({drift} and len(CALLS)) for at in range(tokens)] for prompt in prompts]
"""


@pytest.mark.parametrize("name", PUBLISHED)
def test_figures_are_those_that_were_published(name: str) -> None:
    assert {figure.metric: figure for figure in RECIPES[name].points[0].figures} == {
        figure.metric: figure for figure in PUBLISHED[name]
    }
    assert RECIPES.keys() == PUBLISHED.keys()


def test_published_figures_agree_with_the_number_of_requests() -> None:
    """Tokens over seconds: one TTFT, and 127 times ITL."""
    workload = RECIPES["final"].points[0].treatment.workload
    seconds = 0.222 + (workload.max_tokens - 1) * 0.0221
    assert workload.requests * workload.max_tokens / seconds == pytest.approx(21645.8, rel=0.001)
    (figure,) = RECIPES["compiled-step"].points[0].figures
    assert figure.change() == pytest.approx(5.1, abs=0.05)
    assert RECIPES["compiled-step"].points[0].treatment.workload.requests == 128


@pytest.mark.parametrize("name", PUBLISHED)
def test_what_a_verdict_needs_is_there(name: str) -> None:
    recipe = RECIPES[name]
    assert lint_recipe(str(FOLDER / "recipes" / f"{name}.toml")) == []
    (point,) = recipe.points
    asked = {one.arm for one in recipe.evidence}
    assert asked == (set() if name == "eight-steps-cpu" else {None} if name == "pallas-attention" else set(ARMS))
    for one in (point.baseline, point.treatment):
        assert one.engine.kind == "command"
        assert (FOLDER / "recipes" / one.engine.command[1]).resolve() == FOLDER / "decode.py"
        # What torch finds in its cache is not compiled, and would leave no evidence.
        assert not asked or one.engine.env["TORCHINDUCTOR_AUTOGRAD_CACHE"] == "0"
        for patch in one.patches:
            path = str(FOLDER / "patches" / f"{patch}.toml")
            assert load_patch(path).name == patch
            assert [finding for finding in lint_file(path) if finding.level != "note"] == []


def observe(
    folder: Path,
    *,
    tpu: bool = True,
    torch_tpu: str | None = "",
    drift: bool = False,
    compiles_in: int = 1,
    workload: Workload | None = None,
    **options: object,
) -> Observation:
    """The script beside a decoder that pretends, with a torch that does, as the engine runs it."""
    shutil.copy(FOLDER / "decode.py", folder)
    (folder / "gemma.py").write_text(DECODER.format(drift=drift, compiles_in=compiles_in))
    modules = folder / "modules"
    (modules / "torch" / "_dynamo").mkdir(parents=True)
    (modules / "torch" / "__init__.py").write_text(TORCH.format(tpu=tpu))
    (modules / "torch" / "_dynamo" / "__init__.py").write_text("")
    (modules / "torch" / "_dynamo" / "utils.py").write_text(COUNTERS)
    if torch_tpu is not None:
        (modules / "torch_tpu.py").write_text(torch_tpu)
    asked = workload or Workload(("a", "b"), batch_mult=2, max_tokens=5, repeats=2)
    which = arm(workload=asked, command=("{python}", "decode.py"), options=options)
    env = {"PYTHONPATH": str(modules), "PYTHONDONTWRITEBYTECODE": "1"}
    return engine_of("command").observe(job(folder, which, env=env), lambda _: None)


def refused(seen: Observation) -> str:
    assert seen.metrics == {}
    assert seen.failure is not None
    return seen.failure.message


def test_a_chip_that_pretends_is_measured(tmp_path: Path) -> None:
    seen = observe(tmp_path, way="compiled", steps=8)
    assert seen.failure is None
    assert set(seen.metrics) == {"init", "ttft", "throughput", "itl"}
    assert [len(seen.metrics[name].samples) for name in ("ttft", "throughput", "itl")] == [2, 2, 2]
    assert seen.tokens is not None
    assert (seen.tokens.asked, seen.tokens.came, seen.tokens.failed_requests) == (20, 20, 0)
    assert seen.compilations == {"decode": 0}
    assert seen.label is None


def test_a_compilation_after_the_warm_up_is_counted(tmp_path: Path) -> None:
    assert observe(tmp_path, compiles_in=3).compilations == {"decode": 1}


def test_a_time_of_a_cpu_says_so(tmp_path: Path) -> None:
    label = observe(tmp_path, tpu=False, torch_tpu=None, device="cpu", size="tiny").label
    assert label == "on a CPU, to try the script: its times say nothing of a TPU"


def test_without_a_chip_it_says_so_and_measures_nothing(tmp_path: Path) -> None:
    told = "there is no TPU chip here that torch_tpu can use, and nothing was measured (torch: no device type tpu)"
    assert told in refused(observe(tmp_path, tpu=False))


@pytest.mark.parametrize(
    ("torch_tpu", "told"),
    [
        (None, "torch_tpu cannot be imported: No module named 'torch_tpu'"),
        ("raise ImportError('torch_tpu needs libtpu')", "torch_tpu cannot be imported: torch_tpu needs libtpu"),
    ],
)
def test_without_torch_tpu_it_says_why(torch_tpu: str | None, told: str, tmp_path: Path) -> None:
    assert told in refused(observe(tmp_path, torch_tpu=torch_tpu))


def test_tokens_that_change_within_a_process_are_refused(tmp_path: Path) -> None:
    assert "gave different tokens" in refused(observe(tmp_path, drift=True))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"stepps": 8}, "engine.options.stepps: unknown; there are way, attention, steps, size, device"),
        ({"way": "fast"}, "engine.options.way = 'fast': one of eager, compiled"),
        ({"steps": 0}, "engine.options.steps = 0: a whole number from 1 on"),
        ({"steps": 8, "way": "eager"}, "several steps in one program need way = 'compiled'"),
        ({"attention": "pallas", "device": "cpu"}, "the kernel is compiled for a TPU alone"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, object], told: str, tmp_path: Path) -> None:
    assert told in refused(observe(tmp_path, **options))


def test_sampling_is_refused(tmp_path: Path) -> None:
    seen = observe(tmp_path, workload=Workload(("a",), max_tokens=5, temperature=1.0))
    assert "this script decodes greedily" in refused(seen)


def test_torch_may_be_told_by_its_own_backend_that_it_cannot_be_imported(tmp_path: Path) -> None:
    which = arm(command=("{python}", str(FOLDER / "decode.py")), options={})
    (tmp_path / "torch.py").write_text("raise RuntimeError('a backend') from ImportError('it needs libtpu')")
    seen = engine_of("command").observe(job(tmp_path, which, env={"PYTHONPATH": str(tmp_path)}), lambda _: None)
    assert "torch cannot be imported: it needs libtpu" in refused(seen)


def test_it_says_how_it_is_started(tmp_path: Path) -> None:
    command = [sys.executable, str(FOLDER / "decode.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={})
    assert done.stderr == "PATCHKIT_JOB is not set: this script is started by patchkit rebench\n"
    assert done.returncode == 1
