"""What happens to the overlay when the program runs already: a patched folder comes onto the path, the bundle goes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.dists import make_dist
from support.overlays import EVERYTHING, FILES, Stage, edit, every_python
from support.sites import bare_site

from patchkit.model.load import load_patch
from patchkit.ops.bundle import make_bundle
from patchkit.ops.inmemory import plan_in_memory

ALONE = edit("awkalone.py")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def without_the_site(stage: Stage, **more: str) -> dict[str, str]:
    """The environment of a process that has the bundle, and the patched folder not on its path."""
    return stage.environment(**{"PYTHONPATH": stage.bundle, **more})


@pytest.mark.parametrize("python", every_python())
@pytest.mark.parametrize("place", ["insert(0, {})", "append({})"])
def test_a_folder_that_the_program_puts_on_its_path(stage: Stage, python: str, place: str) -> None:
    stage.show(everything=EVERYTHING)
    code = "import json, sys; sys.path." + place.format(repr(str(stage.site)))
    code += "; import awk, awkspace.part.mod, inspect; from awk.lazy import WHAT; print(json.dumps([awk.WHAT, WHAT, "
    code += "awkspace.part.mod.WHAT, 'patched' in inspect.getsource(awk.core.value)]))"
    assert stage.python(code, python=python, env=without_the_site(stage)) == ["patched", "patched", "patched", True]


def test_a_folder_by_another_name_and_the_working_folder(stage: Stage) -> None:
    stage.show(everything=EVERYTHING)
    link = stage.root / "vendored"
    link.symlink_to(stage.site)
    code = f"import sys; sys.path.insert(0, {str(link)!r}); import awk; print(awk.WHAT)"
    assert stage.run("-c", code, env=without_the_site(stage)).stdout == "patched\n"
    stage.work = stage.site
    assert stage.run("-c", "import awk; print(awk.WHAT)", env=without_the_site(stage)).stdout == "patched\n"


def test_one_folder_at_the_start_and_another_later(tmp_path: Path) -> None:
    sites = [tmp_path / "one", tmp_path / "two"]
    patches = []
    for number, site in enumerate(sites):
        make_dist(site, f"dist{number}", "1.0", {f"mod{number}.py": 'WHAT = "stock"\n'})
        path = tmp_path / f"p{number}.toml"
        head = f'schema = 1\nname = "p{number}"\nsummary = "s"\n[target]\nrequirement = "dist{number}"\n'
        path.write_text(head + edit(f"mod{number}.py"))
        patches.append(load_patch(str(path)))
    bundle = make_bundle(plan_in_memory(bare_site(*sites), patches, notice=lambda text: None))
    code = "import mod0, sys; live = sys.modules['_patchkit_overlay'].live; print(mod0.WHAT, *live); "
    code += f"sys.path.append({str(sites[1])!r}); import mod1; print(mod1.WHAT, *live)"
    path_variable = os.pathsep.join([bundle, str(sites[0])])
    env = {**os.environ, "PYTHONPATH": path_variable, "PATCHKIT_RUN": bundle}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("patched p0\npatched p0 p1\n", "")


def test_its_children_and_many_threads(stage: Stage) -> None:
    stage.show(everything=EVERYTHING)
    code = f"""
import multiprocessing, sys, threading
sys.path.insert(0, {str(stage.site)!r})
found = []


def look():
    import awk.core
    found.append(awk.core.value())


if __name__ == "__main__":
    sys.setswitchinterval(1e-6)
    threads = [threading.Thread(target=look) for _ in range(30)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    import awk, json
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found.append(pool.apply(awk.value))
    print(json.dumps(found))
"""
    assert stage.python(code, env=without_the_site(stage)) == ["patched"] * 31


def test_what_was_imported_from_elsewhere_before_is_told_of(stage: Stage) -> None:
    """It is another install's, and stays; nothing of it is called patched."""
    stage.show(everything=EVERYTHING)
    other = Stage(stage.root / "other")
    env = without_the_site(stage, PYTHONPATH=os.pathsep.join([stage.bundle, str(other.site)]))
    code = f"import awk, sys; sys.path.insert(0, {str(stage.site)!r}); import awkspace.part.mod, awk.lazy, awkalone; "
    code += "print(awk.lazy.WHAT, awkspace.part.mod.WHAT, awkalone.WHAT, *sys.modules['_patchkit_overlay'].live)"
    done = stage.run("-c", code, env=env)
    assert done.stdout == "stock patched patched\n"
    told = f"patchkit run: {other.site / 'awk/__init__.py'} was imported before {stage.site} came onto the path: "
    assert f"{told}awk.lazy is not patched in this process\n" in done.stderr


def test_a_late_folder_and_a_bundle_that_is_gone(stage: Stage) -> None:
    """The import fails; what is on disk is not taken."""
    stage.show(alone=ALONE)
    code = f"import shutil, sys; shutil.rmtree({stage.bundle!r}); sys.path.insert(0, {str(stage.site)!r}); "
    done = stage.run("-c", code + "import awkalone", env=without_the_site(stage))
    assert (done.returncode, done.stdout) == (1, "")
    assert f"RuntimeError: patchkit run: the bundle {stage.bundle} cannot be used: " in done.stderr


GONE = """
import awk, os, shutil, subprocess, sys
shutil.rmtree(os.environ["PATCHKIT_RUN"])
import inspect, linecache, traceback
try:
    awk.core.boom()
except RuntimeError:
    print("RuntimeError: patched" in traceback.format_exc())
try:
    import awk.lazy
except ImportError as error:
    print(error)
print("end")
"""


@pytest.mark.parametrize("python", every_python())
def test_a_bundle_that_is_gone_while_the_program_runs(stage: Stage, python: str) -> None:
    """Its modules are not read from disk instead, whoever reads sources works, and the end says what children had."""
    stage.show(everything=EVERYTHING)
    script = stage.work / "script.py"
    script.write_text(GONE)
    done = stage.run(str(script), python=python)
    lines = done.stdout.splitlines()
    assert (lines[0], lines[2:], done.returncode) == ("True", ["end"], 0), done
    assert lines[1].startswith("patchkit run: awk.lazy is patched in memory, and its source cannot be read: ")
    assert (
        f"patchkit run: {stage.bundle} is gone, or may not be read: processes that were started since run"
        in (done.stderr.splitlines()[-1])
    )


def test_entries_of_the_path_that_are_no_text(stage: Stage, tmp_path: Path) -> None:
    """Imports pass over them."""
    root = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root)], check=True)
    inside = root / ("Scripts" if os.name == "nt" else "bin") / "python"
    stage.site = next(root.glob("**/site-packages"))
    make_dist(stage.site, "awk", "1.0", FILES)
    stage.show(everything=EVERYTHING)
    (stage.site / "odd.pth").write_text("import pathlib, sys; sys.path[:0] = [None, pathlib.Path('x'), b'y', 3]\n")
    done = stage.run("-c", "import awk; print(awk.WHAT)", python=str(inside), env=without_the_site(stage))
    assert (done.stdout, done.stderr) == ("patched\n", "")


def test_a_prefix_for_bytecode_belongs_to_somebody(stage: Stage) -> None:
    stage.show(everything=EVERYTHING)
    prefix = stage.root / "prefix"
    env = stage.environment(PYTHONPYCACHEPREFIX=str(prefix), PYTHONDONTWRITEBYTECODE="1")
    assert stage.run("-c", "import awk, inspect; print(awk.WHAT)", env=env).stdout == "patched\n"
    assert not prefix.exists()
