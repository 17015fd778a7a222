"""Where memory cannot be what the command promised, a process says so and stops, or the import fails; nothing is
silently as on disk.
"""

from __future__ import annotations

import os
import py_compile
import subprocess
import zipfile
from pathlib import Path

import pytest
from support.dists import make_dist
from support.overlays import EVERYTHING, FILES, Stage, added, edit, every_python

ALONE = edit("awkalone.py")
IMPORT = "import awkalone; print(awkalone.WHAT)"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """The import failed; it was said once on stderr, and is the error of the traceback."""
    assert (done.returncode, done.stdout) == (1, ""), done
    lines = [line for line in done.stderr.splitlines() if "patchkit run: " in line]
    assert lines[0].startswith("patchkit run: ")
    assert lines[-1].startswith("ImportError: patchkit run: ")
    for word in words:
        assert word in lines[0]
        assert word in lines[-1]


@pytest.mark.parametrize("python", every_python())
def test_a_file_that_changed_meanwhile(stage: Stage, python: str) -> None:
    stage.show(alone=ALONE)
    path = stage.site / "awkalone.py"
    path.write_text('WHAT = "newer"\n')
    refused(stage.run("-c", IMPORT, python=python), "awkalone is patched in memory", str(path), "another one")
    path.unlink()
    refused(stage.run("-c", IMPORT, python=python), "awkalone is patched in memory", str(path), "is gone")
    path.mkdir()
    refused(stage.run("-c", IMPORT, python=python), "awkalone is patched in memory", str(path))


def test_a_reload_after_a_reinstall(stage: Stage) -> None:
    stage.show(alone=ALONE)
    path = stage.site / "awkalone.py"
    code = f"import awkalone, importlib, inspect; open({str(path)!r}, 'w').write('WHAT = 1'); "
    code += "assert 'patched' in inspect.getsource(awkalone); importlib.reload(awkalone)"
    refused(stage.run("-c", code), "awkalone is patched in memory", "another one")


def test_an_added_module_that_is_there_meanwhile(stage: Stage) -> None:
    stage.show(new=added("awk/extra.py", "WHAT = 1\n"))
    (stage.site / "awk/extra.py").write_text("WHAT = 2\n")
    refused(stage.run("-c", "import awk.extra"), "awk.extra is patched in memory", "is there now")


@pytest.mark.parametrize("python", every_python())
def test_a_module_that_a_pth_file_imported_before(stage: Stage, tmp_path: Path, python: str) -> None:
    """The process does not go on: it would run what is on disk."""
    root = tmp_path / "env"
    subprocess.run([python, "-m", "venv", "--without-pip", str(root)], check=True)
    inside = root / ("Scripts" if os.name == "nt" else "bin") / "python"
    site = next(root.glob("**/site-packages"))
    own = Stage(tmp_path / "own")
    own.site = site
    make_dist(site, "awk", "1.0", FILES)
    own.show(everything=EVERYTHING)
    env = own.environment(PYTHONPATH=own.bundle)
    assert own.run("-c", IMPORT, python=str(inside), env=env).stdout == "patched\n"
    (site / "early.pth").write_text("import awkalone\n")
    done = own.run("-c", "print('went on')", python=str(inside), env=env)
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr.startswith("patchkit run: awkalone was imported before patches could be put in place")
    (site / "early.pth").write_text("import awk.plain\n")  # and with it the package itself, which is patched
    assert own.run("-c", "pass", python=str(inside), env=env).returncode == 5
    own.show(leaf=edit("awk/sub/leaf.py"))
    env = own.environment(PYTHONPATH=own.bundle)
    code = "import awk.sub.leaf; print(awk.WHAT, awk.sub.leaf.WHAT)"
    done = own.run("-c", code, python=str(inside), env=env)
    assert done.stdout == ""  # awk imports its leaf
    assert done.returncode == 5


def test_an_early_import_of_a_package_whose_other_module_is_patched(stage: Stage) -> None:
    stage.show(lazy=edit("awk/lazy.py"))
    code = "import sys; sys.path_importer_cache.clear(); import awk; print(awk.WHAT, awk.late)"
    assert stage.run("-c", code).stdout == "stock patched\n"
    (stage.site / "sitecustomize.py").write_text("import awk\n")
    assert stage.run("-c", code).stdout == "stock patched\n"


def test_an_extension_module_beside_it(stage: Stage) -> None:
    """Put there after the command was planned; at that time it is refused by the plan."""
    stage.show(alone=ALONE)
    import importlib.machinery

    taken = stage.site / f"awkalone{importlib.machinery.EXTENSION_SUFFIXES[0]}"
    taken.write_bytes(b"")
    refused(stage.run("-c", IMPORT), "awkalone is patched in memory", f"imports take {taken}")


def test_a_package_beside_it(stage: Stage) -> None:
    stage.show(alone=ALONE)
    (stage.site / "awkalone").mkdir()
    (stage.site / "awkalone/__init__.py").write_text("WHAT = 0\n")
    refused(stage.run("-c", IMPORT), "awkalone is patched in memory", "__init__.py instead of")


def test_bytecode_without_its_source(stage: Stage) -> None:
    stage.show(alone=ALONE)
    path = stage.site / "awkalone.py"
    py_compile.compile(str(path), str(stage.site / "awkalone.pyc"))
    path.unlink()
    refused(stage.run("-c", IMPORT), "awkalone is patched in memory", "awkalone.pyc instead of")


def test_a_zip_or_a_folder_before_it_on_the_path(stage: Stage) -> None:
    stage.show(alone=ALONE)
    archive = stage.root / "before.zip"
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("awkalone.py", "WHAT = 'zipped'\n")
        opened.writestr("other.py", "WHAT = 'other'\n")
    env = stage.environment()
    env["PYTHONPATH"] = os.pathsep.join([stage.bundle, str(archive), str(stage.site)])
    refused(stage.run("-c", IMPORT, env=env), "awkalone is patched in memory", f"{archive}{os.sep}awkalone.py instead")
    assert stage.run("-c", "import other; print(other.WHAT)", env=env).stdout == "other\n"
    (stage.work / "awkalone.py").write_text("WHAT = 'mine'\n")
    refused(stage.run("-c", IMPORT), "awkalone is patched in memory", "instead of")


FINDER = """
import sys, importlib.abc, importlib.util

class Editable(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name == "awkalone":
            return importlib.util.spec_from_loader(name, self, origin="elsewhere")

    def exec_module(self, module):
        module.WHAT = "found"

"""


def test_another_finder(stage: Stage) -> None:
    stage.show(alone=ALONE)
    late = FINDER + "sys.meta_path.append(Editable())\n" + IMPORT
    assert stage.run("-c", late).stdout == "patched\n"  # it is not asked
    second = FINDER + "sys.meta_path.insert(1, Editable())\n" + IMPORT
    refused(stage.run("-c", second), "awkalone is patched in memory", "imports take elsewhere instead")
    first = FINDER + "sys.meta_path.insert(0, Editable())\n" + IMPORT  # asked before us, and so it has its way
    done = stage.run("-c", first)
    assert done.stdout == "found\n"
    assert done.stderr == (
        "patchkit run: awkalone came from elsewhere by another import hook, past the patches: it was not patched in "
        "this process\n"
    )


def test_wrapped_loaders_are_ours_all_the_same(stage: Stage) -> None:
    """As tracers wrap them; and hooks that read the file of a source loader leave ours alone."""
    stage.show(alone=ALONE)
    code = """
import importlib.machinery, importlib.util, sys

class Tracer:
    def __init__(self, loader):
        self._loader = loader
    def create_module(self, spec):
        return self._loader.create_module(spec)
    def exec_module(self, module):
        self._loader.exec_module(module)

class Tracing:
    def find_spec(self, name, path=None, target=None):
        if name == "awkalone":
            spec = importlib.machinery.PathFinder.find_spec(name, path, target)
            assert not isinstance(spec.loader, importlib.machinery.SourceFileLoader)
            spec.loader = Tracer(spec.loader)
            return spec

sys.meta_path.insert(PLACE, Tracing())
import awkalone; print(awkalone.WHAT)
"""
    for place in ("0", "1"):
        done = stage.run("-c", code.replace("PLACE", place))
        assert (done.stdout, done.stderr) == ("patched\n", "")
    lazy = """
import importlib.util, sys
spec = importlib.util.find_spec("awkalone")
spec.loader = importlib.util.LazyLoader(spec.loader)
module = importlib.util.module_from_spec(spec)
sys.modules["awkalone"] = module
spec.loader.exec_module(module)
print(module.WHAT)
"""
    done = stage.run("-c", lazy)
    assert (done.stdout, done.stderr) == ("patched\n", "")


@pytest.mark.parametrize("python", every_python())
def test_a_patched_file_run_as_a_script(stage: Stage, python: str) -> None:
    """The interpreter reads a script itself, past every loader."""
    stage.show(everything=EVERYTHING)
    for script, way in (("awk/__main__.py", "python -m awk"), ("awkalone.py", "python -m awkalone")):
        done = stage.run("-W", "ignore", str(stage.site / script), python=python)
        assert (done.returncode, done.stdout) == (5, "")
        assert way in done.stderr
    link = stage.work / "link"
    link.symlink_to(stage.site / "awkalone.py")
    done = stage.run("-X", "utf8", "-Wignore", str(link), python=python)
    assert (done.returncode, done.stdout) == (5, "")
    other = stage.work / "other.py"
    other.write_text("import awk; print(awk.WHAT)")
    assert stage.run(str(other), str(stage.site / "awkalone.py"), python=python).stdout == "patched\n"


def test_a_bundle_that_cannot_be_used_stops_the_process(stage: Stage) -> None:
    """``site`` would pass over the error, and the program would run without the patches."""
    stage.show(alone=ALONE)
    manifest = Path(stage.bundle, "manifest.json")
    text = manifest.read_text()
    for damage in (text[: len(text) // 2], text.replace('"schema": 1', '"schema": 2'), "[]"):
        manifest.write_text(damage)
        done = stage.run("-c", "print('went on')")
        assert (done.returncode, done.stdout) == (5, "")
        assert done.stderr.startswith(f"patchkit run: the bundle {stage.bundle} cannot be used: ")
    Path(stage.bundle, "_patchkit_overlay.py").unlink()
    for cached in Path(stage.bundle, "__pycache__").glob("_patchkit_overlay.*"):
        cached.unlink()
    done = stage.run("-c", "print('went on')")
    assert (done.returncode, done.stdout) == (5, "")
    assert "cannot be used: No module named '_patchkit_overlay'" in done.stderr
