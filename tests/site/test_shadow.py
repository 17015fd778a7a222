"""What imports take instead of an edited source: the expected file is what ``importlib`` finds, asked in a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest
from support.dists import make_dist
from support.interpreters import other_pythons
from support.sites import bare_site

from patchkit.site.distribution import Distribution, find_distribution
from patchkit.site.environment import Site, from_interpreter
from patchkit.site.interpreter import ask, own
from patchkit.site.shadow import Glance, shadowing_module

HOST = EXTENSION_SUFFIXES[0]
LAYOUTS: dict[str, tuple[str, list[str]]] = {
    "plain": ("pkg/a.py", []),
    "compiled": ("pkg/a.py", [f"pkg/a{HOST}"]),
    "compiled, of another module": ("pkg/a.py", [f"pkg/ab{HOST}", f"pkg/a.b{HOST}"]),
    "stable interface": ("pkg/a.py", ["pkg/a.abi3.so"]),
    "no tag": ("pkg/a.py", ["pkg/a.so"]),
    "another version": ("pkg/a.py", ["pkg/a.cpython-27-x86_64-linux-gnu.so"]),
    "another implementation": ("pkg/a.py", ["pkg/a.pypy39-pp73-x86_64-linux-gnu.so"]),
    "another system": ("pkg/a.py", ["pkg/a.cp311-win_amd64.pyd", "pkg/a.pyd"]),
    "the package itself": ("pkg/__init__.py", [f"pkg/__init__{HOST}"]),
    "another file of such a package": ("pkg/a.py", [f"pkg/__init__{HOST}"]),
    "package": ("pkg/a.py", ["pkg/a/__init__.py"]),
    "package of bytecode": ("pkg/a.py", ["pkg/a/__init__.pyc"]),
    "namespace package": ("pkg/a.py", ["pkg/a/more.py"]),
    "bytecode beside it": ("pkg/a.py", ["pkg/a.pyc"]),
    "module before its namespace package": ("space/a.py", ["space.py"]),
    "compiled module before its namespace package": ("space/a.py", [f"space{HOST}"]),
    "package before a module": ("pkg/a.py", ["pkg.py", f"pkg{HOST}"]),
    "top-level module": ("single.py", [f"single{HOST}"]),
    "top-level package": ("single.py", ["single/__init__.py"]),
    "deep": ("pkg/sub/a.py", ["pkg/sub.py", f"pkg/sub/a{HOST}"]),
    "standard library": ("json/decoder.py", []),
}
_SCRIPT = """\
import importlib.util, json, sys
try:
    spec = importlib.util.find_spec(sys.argv[1])
except ImportError:  # the parent is a module, or an extension that cannot be loaded
    spec = None
print(json.dumps(None if spec is None else spec.origin))
"""


def installed(folder: Path, path: str) -> None:
    files: dict[str, str | bytes] = {"pkg/__init__.py": "", "pkg/sub/__init__.py": "", path: "", "demo.py": ""}
    make_dist(folder, "demo", "1.0", files)


def distribution(site: Site) -> Distribution:
    found = find_distribution(site, "demo")
    assert found is not None
    return found


def imported(folder: Path, path: str, *before: Path) -> bool:
    """Whether an import takes the file ``path`` of ``folder``."""
    module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    places = os.pathsep.join(map(str, [*before, folder]))
    # At the end of the path, where a site directory is.
    script = f"import sys; sys.path += {places.split(os.pathsep)!r}\n{_SCRIPT}"
    done = subprocess.run([sys.executable, "-S", "-c", script, module], capture_output=True, text=True, check=True)
    return json.loads(done.stdout) == str(folder / path)


def touch(folder: Path, *paths: str) -> None:
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(b"")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_as_importlib_finds_it(layout: str, tmp_path: Path) -> None:
    path, more = LAYOUTS[layout]
    installed(tmp_path, path)
    touch(tmp_path, *more)
    if layout == "another file of such a package":
        expected = True  # an empty extension cannot be loaded to look into its package
    else:
        expected = imported(tmp_path, path)
    site = Site(
        home=str(tmp_path), paths=[str(tmp_path)], interpreter=own(), python_version=own().python_version, label=""
    )
    found = shadowing_module(distribution(site), path)
    assert (found is None) == expected
    assert expected or Glance(site, str(tmp_path)).sees([path])
    if found is not None and not layout.startswith("standard"):
        assert found in more or f"{found}" == "pkg/sub.py"


@pytest.mark.parametrize("kind", ["folder", "compiled", "package", "namespace", "archive"])
def test_what_comes_first_on_the_path(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    installed(second, "pkg/a.py")
    first.mkdir()
    if kind == "archive":
        first = tmp_path / "first.zip"
        with zipfile.ZipFile(first, "w") as archive:
            archive.writestr("pkg/__init__.py", "")
            archive.writestr("pkg/a.py", "")
        monkeypatch.setenv("PYTHONPATH", str(first))
        site = bare_site(second)
    else:
        touch(first, {"folder": "pkg.py", "compiled": f"pkg{HOST}", "package": "pkg/__init__.py"}.get(kind, "pkg/b.py"))
        site = bare_site(first, second)
    expected = imported(second, "pkg/a.py", first)
    assert (kind == "namespace") == expected
    found = shadowing_module(distribution(site), "pkg/a.py")
    assert (found is None) == expected
    assert expected or Glance(site, str(second)).sees(["pkg/a.py"])
    if found is not None:
        assert found.startswith(str(first))
        assert " (first " in found


def test_the_suffixes_are_those_of_the_sites_interpreter(tmp_path: Path) -> None:
    installed(tmp_path, "pkg/a.py")
    touch(tmp_path, f"pkg/a{HOST}")
    other = own()
    for python in other_pythons("3.9", "3.12", "3.13"):
        found = from_interpreter(ask(python), home=str(tmp_path)).interpreter
        assert found is not None
        script = "import importlib.machinery as m; print(*m.EXTENSION_SUFFIXES)"
        done = subprocess.run([python, "-c", script], capture_output=True, text=True, check=True)
        assert found.extension_suffixes == tuple(done.stdout.split())
    other.extension_suffixes = (".cpython-39-x86_64-linux-gnu.so", ".abi3.so", ".so")
    site = Site(home=str(tmp_path), paths=[str(tmp_path)], interpreter=other, python_version=(3, 9), label="")
    assert shadowing_module(distribution(site), "pkg/a.py") is None
    touch(tmp_path, "pkg/a.cpython-39-x86_64-linux-gnu.so")
    assert shadowing_module(distribution(site), "pkg/a.py") == "pkg/a.cpython-39-x86_64-linux-gnu.so"


@pytest.mark.parametrize(("version", "shadows"), [((3, 12), True), ((3, 13), False), (None, True)])
def test_a_folder_without_an_interpreter(tmp_path: Path, version: tuple[int, int] | None, shadows: bool) -> None:
    """By the version where the layout tells it; where nothing does, better one word too many."""
    installed(tmp_path, "pkg/a.py")
    touch(tmp_path, "pkg/a.cpython-312-x86_64-linux-gnu.so")
    found = shadowing_module(distribution(bare_site(tmp_path, python_version=version)), "pkg/a.py")
    assert (found is not None) == shadows


def test_a_glance_at_what_is_plain_sees_nothing(tmp_path: Path) -> None:
    """Else ``check`` would read the metadata of each patched package whenever it runs."""
    installed(tmp_path, "space/a.py")
    touch(tmp_path, "space.more-1.0.dist-info/RECORD", "pkg.py", "single.py", "pkg/data.txt", "pkg/b.py", "other.so")
    site = bare_site(tmp_path)
    keys = ["pkg/__init__.py", "pkg/sub/__init__.py", "pkg/b.py", "space/a.py", "demo.py", "single.py", "pkg/data.txt"]
    assert not Glance(site, str(tmp_path)).sees(keys)
    assert not Glance(site, str(tmp_path)).sees(["demo-1.0-py3.11.egg/pkg/b.py", str(tmp_path / "pkg/b.py")])
    touch(tmp_path, "demo-1.0-py3.11.egg/json/b.py")
    assert Glance(site, str(tmp_path)).sees(["demo-1.0-py3.11.egg/json/b.py"])
