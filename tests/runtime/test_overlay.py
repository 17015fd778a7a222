"""Patched modules in memory: every form of import, and everything that reads a module's source, agree.

On the interpreters that the machine has, from 3.8; "stock" is what is on disk, "patched" what the patch makes of it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from support.overlays import EDITED, EVERYTHING, FILES, Stage, added, every_python

FORMS = """
import importlib, importlib.util, json, pkgutil
out = {}
import awk
out["package"] = awk.WHAT
out["relative"] = awk.value()
out["star"] = awk.starred
out["submodule as attribute"] = awk.sub.leaf.WHAT
out["import as"] = awk.leaf.WHAT
out["lazy"] = awk.late
out["import_module"] = importlib.import_module("awk.lazy").WHAT
scope = {}
exec("from awk.core import *", scope)
out["exec"] = scope["value"]()
import awk.left
out["circular"] = [awk.left.other(), awk.right.other()]
from awk.maybe import found
out["conditional"] = found
out["__import__"] = __import__("awk.core", fromlist=["value"]).value()
import awkspace.part.mod, awkalone, awklatin, awk.plain
out["namespace"] = awkspace.part.mod.WHAT
out["namespace loader"] = type(awkspace.__path__).__name__
out["alone"] = awkalone.WHAT
out["encoding"] = awklatin.WHAT
out["untouched"] = awk.plain.WHAT
awk.core.value = None
out["reload"] = importlib.reload(awk.core).value()
lazy = importlib.util.LazyLoader.factory(type(awk.core.__loader__))
out["resolve"] = pkgutil.resolve_name("awk.core:value")() if hasattr(pkgutil, "resolve_name") else "patched"
out["listed"] = sorted(name for _, name, _ in pkgutil.walk_packages(awk.__path__, "awk."))
print(json.dumps(out))
"""


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@pytest.mark.parametrize("python", every_python())
def test_every_form_of_import(stage: Stage, python: str) -> None:
    stage.show(everything=EVERYTHING)
    found = stage.python(FORMS, python=python)
    assert found == {
        "package": "patched",
        "relative": "patched",
        "star": "patched",
        "submodule as attribute": "patched",
        "import as": "patched",
        "lazy": "patched",
        "import_module": "patched",
        "exec": "patched",
        "circular": ["patched", "patched"],
        "conditional": "patched",
        "__import__": "patched",
        "namespace": "patched",
        "namespace loader": "_NamespacePath",
        "alone": "patched",
        "encoding": "p\xe4tched",
        "untouched": "plain",
        "reload": "patched",
        "resolve": "patched",
        "listed": [
            *("awk.__main__", "awk.core", "awk.lazy", "awk.left", "awk.maybe", "awk.plain"),
            *("awk.right", "awk.star", "awk.sub", "awk.sub.leaf"),
        ],
    }
    assert stage.python("import awk, json; print(json.dumps(awk.WHAT))", python=python, env=_bare(stage)) == "stock"


SOURCES = """
import json, sys
import awk.core as core
out = {"linecache before": "linecache" in sys.modules}
import traceback, warnings, inspect, linecache, importlib.util, io, logging, pydoc, tokenize
patched = lambda text: ("patched" in text, "stock" in text)
out["function"] = patched(inspect.getsource(core.value))
out["class"] = patched(inspect.getsource(core.Thing))
out["module"] = patched(inspect.getsource(core))
out["line of the module's file"] = linecache.getline(core.__file__, 2)
linecache.checkcache()
out["line, checked"] = linecache.getline(core.__file__, 2)
linecache.clearcache()
out["line, cleared"] = linecache.getline(core.__file__, 2)
out["line of the code"] = linecache.getline(core.value.__code__.co_filename, 12)
out["lines"] = len(linecache.getlines(core.__file__))
try:
    core.boom()
except RuntimeError:
    out["traceback"] = patched(traceback.format_exc())
out["file"] = core.__file__
out["spec"] = [core.__spec__.origin, core.__spec__.has_location, core.__spec__.loader.name]
out["source"] = patched(core.__loader__.get_source("awk.core"))
out["data"] = patched(core.__loader__.get_data(core.__file__).decode())
out["other data"] = core.__loader__.get_data(core.__file__.replace("core.py", "data.txt")).decode()
out["package"] = [core.__loader__.is_package("awk.core"), sys.modules["awk"].__loader__.is_package("awk")]
out["module of the frame"] = inspect.getmodule(core.frame()).__name__
out["module of the code"] = inspect.getmodule(core.value.__code__).__name__
out["code's file"] = patched(io.open(core.value.__code__.co_filename).read())
out["found again"] = importlib.util.find_spec("awk.core").loader == core.__loader__
import importlib.resources as resources
out["resource"] = resources.read_text("awk", "data.txt") if sys.version_info < (3, 9) else (
    resources.files("awk").joinpath("data.txt").read_text())
out["cached"] = core.__spec__.cached
out["path"] = sys.path[1:2]
out["sitecustomize's folder"] = [p for p in sys.path if "run" in p.split("/")[-2:]]
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    warnings.warn_explicit("w", UserWarning, core.value.__code__.co_filename, 12)
out["warning"] = patched(warnings.formatwarning("w", UserWarning, caught[0].filename, 12))
print(json.dumps(out))
"""


@pytest.mark.parametrize("python", every_python())
def test_whoever_reads_the_source_reads_what_runs(stage: Stage, python: str) -> None:
    stage.show(everything=EVERYTHING)
    found = stage.python(SOURCES, python=python)
    core = str(stage.site / "awk" / "core.py")
    cached = found.pop("cached")
    assert cached.startswith(stage.bundle + os.sep)
    assert Path(cached).is_file()
    only = [True, False]
    assert found == {
        "linecache before": False,
        "function": only,
        "class": only,
        "module": only,
        "line of the module's file": '    what = "patched"\n',
        "line, checked": '    what = "patched"\n',
        "line, cleared": '    what = "patched"\n',
        "line of the code": '    return "patched"\n',
        "lines": str(FILES["awk/core.py"]).count("\n"),
        "traceback": only,
        "file": core,
        "spec": [core, True, "awk.core"],
        "source": only,
        "data": only,
        "other data": "stock\n",
        "package": [False, True],
        "module of the frame": "awk.core",
        "module of the code": "awk.core",
        "code's file": only,
        "found again": True,
        "resource": "stock\n",
        "path": [str(stage.site)],
        "sitecustomize's folder": [],
        "warning": only,
    }


@pytest.mark.parametrize("python", every_python())
def test_its_loader_is_one_of_a_source_file(stage: Stage, python: str) -> None:
    stage.show(everything=EVERYTHING)
    for first, then in (("importlib.abc", "awk"), ("awk", "importlib.abc")):
        code = f"import {first}, {then}, json; abc = importlib.abc; kinds = [abc.InspectLoader, abc.ExecutionLoader, "
        code += "abc.FileLoader, abc.SourceLoader]; print(json.dumps([isinstance(awk.__loader__, k) for k in kinds]))"
        assert stage.python(code, python=python) == [True] * 4


def test_pkg_resources_finds_what_lies_beside_a_patched_module(stage: Stage) -> None:
    """It goes by the type of the loader; this stands in for it, with the same rule."""
    stage.show(everything=EVERYTHING)
    fake = "kinds = {}\n\n\nclass DefaultProvider:\n    pass\n\n\n"
    fake += "def register_loader_type(loader, provider):\n    kinds[loader] = provider\n"
    (stage.site / "pkg_resources.py").write_text(fake)
    code = "import awk, json, pkg_resources as p; print(json.dumps(p.kinds[type(awk.__loader__)] is p.DefaultProvider))"
    assert stage.python(code) is True


@pytest.mark.parametrize("python", every_python())
def test_an_uncaught_error_shows_the_patched_line(stage: Stage, python: str) -> None:
    """Up to 3.12 the interpreter prints it in C, from the file that the code names."""
    stage.show(everything=EVERYTHING)
    thread = "import threading, awk.core as c; threading.Thread(target=c.boom).start()"
    for code in ("import awk.core; awk.core.boom()", thread):
        done = stage.run("-c", code, python=python)
        assert 'raise RuntimeError("patched")' in done.stderr
        assert "stock" not in done.stderr


@pytest.mark.parametrize("python", every_python())
def test_python_m(stage: Stage, python: str) -> None:
    stage.show(everything=EVERYTHING)
    for arguments in (["-m", "awk", "x"], ["-m", "awk.__main__", "x"]):
        done = stage.run(*arguments, python=python)
        assert (done.stdout, done.stderr) == ("patched patched __main__ ['x']\n", "")
    done = stage.run("-m", "pdb", "-c", "c", "-c", "q", "-m", "awk", python=python)
    assert "patched patched __main__ []\n" in done.stdout


@pytest.mark.parametrize("python", every_python())
def test_bytecode_lies_in_the_bundle_and_nowhere_else(stage: Stage, python: str) -> None:
    """That of modules that are not patched lies where it always does."""
    stage.show(everything=EVERYTHING)
    before = stage.listing()
    code = "import json, awk, awkalone, awkspace.part.mod; print(json.dumps(0))"
    stage.python(code, python=python, env=stage.environment(PYTHONDONTWRITEBYTECODE="1"))
    assert stage.listing() == before
    in_bundle = {path.name.partition(".")[0] for path in Path(stage.bundle).rglob("*.pyc")}
    assert {"core", "awkalone", "mod", "sitecustomize", "_patchkit_overlay"} <= in_bundle
    stage.python("import json, awk.plain; print(json.dumps(0))", python=python)
    names = {path.name.partition(".")[0] for path in stage.site.rglob("*.pyc")}
    assert names == {"plain", "__init__"}  # the empty one of awk.sub
    assert [path.parent.parent.name for path in stage.site.rglob("__init__.*.pyc")] == ["sub"]


def test_a_prefix_for_bytecode_is_respected(stage: Stage) -> None:
    stage.show(everything=EVERYTHING)
    prefix = stage.root / "prefix"
    stage.python("import json, awk; print(json.dumps(0))", env=stage.environment(PYTHONPYCACHEPREFIX=str(prefix)))
    stage.python("import json, awk; print(json.dumps(0))", env=stage.environment(PYTHONPYCACHEPREFIX=str(prefix)))
    assert not list(Path(stage.bundle).rglob("*.pyc"))
    assert list(prefix.rglob("core.*.pyc"))
    assert stage.python("import json, awk; print(json.dumps(awk.WHAT))", env=_bare(stage)) == "stock"


@pytest.mark.parametrize("name", ["site-packages", "another-name"])
def test_a_folder_that_is_reached_by_a_link(stage: Stage, name: str) -> None:
    """As ``lib64`` is, or a folder of the user's own."""
    stage.show(everything=EVERYTHING)
    link = stage.root / "links" / name
    link.parent.mkdir()
    link.symlink_to(stage.site)
    env = stage.environment(PYTHONPATH=os.pathsep.join([stage.bundle, str(link)]))
    code = "import awk, awkalone, json; print(json.dumps([awk.sub.leaf.WHAT, awkalone.WHAT, awk.__file__]))"
    assert stage.python(code, env=env) == ["patched", "patched", str(link / "awk" / "__init__.py")]
    stage.site.rename(stage.root / "moved")
    stage.site.symlink_to(stage.root / "moved")
    stage.show(everything=EVERYTHING)
    for path in (stage.site, link, stage.root / "moved"):
        env = stage.environment(PYTHONPATH=os.pathsep.join([stage.bundle, str(path)]))
        assert stage.python(code, env=env) == ["patched", "patched", str(path / "awk" / "__init__.py")]


NEW = (
    added("awk/extra.py", 'WHAT = "added"\n')
    + added("awk/fresh/__init__.py", "from .inner import WHAT\n")
    + added("awk/fresh/inner.py", 'WHAT = "inner"\n')
)


@pytest.mark.parametrize("python", every_python())
def test_added_modules_and_packages(stage: Stage, python: str) -> None:
    stage.show(new=NEW)
    before = stage.listing()
    code = """
import inspect, json, pkgutil
import awk, awk.extra, awk.fresh.inner, awk.fresh
names = [name for _, name, _ in pkgutil.walk_packages(awk.__path__, "awk.")]
out = [awk.extra.WHAT, awk.fresh.WHAT, inspect.getsource(awk.extra), awk.extra.__file__, list(awk.fresh.__path__)]
print(json.dumps([*out, sorted(set(names) & {"awk.extra", "awk.fresh", "awk.fresh.inner"})]))
"""
    found = stage.python(code, python=python, env=stage.environment(PYTHONDONTWRITEBYTECODE="1"))
    awk = stage.site / "awk"
    assert found == [
        *("added", "inner", 'WHAT = "added"\n', str(awk / "extra.py"), [str(awk / "fresh")]),
        ["awk.extra", "awk.fresh", "awk.fresh.inner"],
    ]
    assert stage.listing() == before


CHAIN = """
import sys, json
found = sys.modules["sitecustomize"]
print(json.dumps([found.__file__, getattr(found, "MARK", None)]))
"""


def test_the_environments_own_sitecustomize_runs(stage: Stage) -> None:
    stage.show(everything=EVERYTHING)
    own = stage.site / "sitecustomize.py"
    own.write_text('import awk\nMARK = ["own", awk.WHAT, __name__, __file__]\n')
    assert stage.python(CHAIN) == [str(own), ["own", "patched", "sitecustomize", str(own)]]
    own.write_text("import a_module_that_is_not_there\n")
    done = stage.run("-c", "import awk; print(awk.WHAT)")
    alone = stage.run("-c", "import awk; print(awk.WHAT)", env=_bare(stage))
    assert (done.stdout, done.stderr) == ("patched\n", alone.stderr)  # told by `site`, as ever
    assert "a_module_that_is_not_there" in alone.stderr


def test_usercustomize_runs(stage: Stage) -> None:
    stage.show(everything=EVERYTHING)
    user = stage.root / "user"
    env = stage.environment(PYTHONUSERBASE=str(user))
    folder = stage.run("-m", "site", "--user-site", env=env).stdout.strip()
    os.makedirs(folder)
    Path(folder, "usercustomize.py").write_text("import awk; print('user', awk.WHAT)")
    done = stage.run("-s", "-c", "pass", env=env)
    assert done.stdout == ""
    if sys.prefix == sys.base_prefix:  # a virtual environment has no user site
        assert stage.run("-c", "pass", env=env).stdout == "user patched\n"


@pytest.mark.parametrize("python", [*every_python(versions=("2.7", "3.6", "3.7", "3.12"))])
def test_an_interpreter_of_another_environment_runs_undisturbed(stage: Stage, python: str) -> None:
    stage.show(everything=EVERYTHING)
    env = stage.environment(PYTHONPATH=stage.bundle)
    code = "import sys; print(len(sys.meta_path), '_patchkit_overlay' in sys.modules, 'sitecustomize' in sys.modules)"
    plain = stage.environment(PYTHONPATH="")
    with_bundle, without = (stage.run("-c", code, python=python, env=one) for one in (env, plain))
    assert (with_bundle.stdout.split()[:2], with_bundle.stderr) == (without.stdout.split()[:2], "")
    assert with_bundle.stdout.split()[1] == "False"
    other = Stage(stage.root / "other")
    env = {**env, "PYTHONPATH": os.pathsep.join([stage.bundle, str(other.site)])}
    code = "import awkalone; print(awkalone.WHAT)"
    assert stage.run("-c", code, python=python, env=env).stdout == "stock\n"


def test_the_patch_edits_every_module_that_says_stock() -> None:
    texts = {path: text if isinstance(text, bytes) else text.encode() for path, text in FILES.items()}
    stock = {path for path, text in texts.items() if path.endswith(".py") and (b"stock" in text or b"st\xf6ck" in text)}
    assert stock == {*EDITED, "awklatin.py"}


def _bare(stage: Stage) -> dict[str, str]:
    return {**stage.environment(), "PYTHONPATH": str(stage.site), "PATCHKIT_RUN": ""}
