"""Installs that the real pip and the real uv make: of awkward packages, in every layout, editable; and what mends them.

The packages and what patchkit does with each are in ``installs/released.toml``, which ``docs/installs.md`` repeats.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from released import REPOSITORY, Outcome, foreign_wheel, snapshot
from support.dists import make_egg_info, make_wheel

pytestmark = pytest.mark.real

KINDS: list[dict[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "installs" / "released.toml").read_text(encoding="utf-8")
)["kind"]
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
HEAD = (
    'schema = 1\nname = "{name}"\nsummary = "s"\n[target]\nrequirement = "{requirement}"\n[[edit]]\nfile = "{file}"\n'
)
WORKING = [number for number, kind in enumerate(KINDS) if kind["outcome"] == "works"]


def _uv() -> str:
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.exists() else shutil.which("uv")
    if found is None:
        pytest.skip("there is no uv, neither beside this Python nor on PATH")
    return found


def _run(command: list[str] | str, folder: Path, **variables: str) -> str:
    """Run a command in ``folder`` with no index but its ``wheels``, and caches of its own; pip and uv are on PATH."""
    kept = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PATCHKIT_PYTHON", "PYTHONPATH")}
    own = {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(folder / "wheels"),
        "PIP_CACHE_DIR": str(folder / "pip-cache"),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "UV_NO_INDEX": "1",
        "UV_FIND_LINKS": str(folder / "wheels"),
        "UV_CACHE_DIR": str(folder / "uv-cache"),
        "PYTHONUSERBASE": str(folder / "user"),
        **variables,
    }
    done = subprocess.run(
        command, cwd=folder, env={**kept, **own}, shell=isinstance(command, str), capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def _patchkit(folder: Path, *arguments: str, **variables: str) -> Outcome:
    """``python -m patchkit --json`` in a fresh process, with the patches of ``folder``."""
    kept = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PATCHKIT_PYTHON")}
    own = {
        "PYTHONPATH": str(REPOSITORY),
        "PATCHKIT_CACHE": str(folder / "cache"),
        "PYTHONUSERBASE": str(folder / "user"),
    }
    command = [sys.executable, "-m", "patchkit", "--patches", str(folder / "patches"), "--json", *arguments]
    done = subprocess.run(command, cwd=folder, env={**kept, **own, **variables}, capture_output=True, text=True)
    assert done.stdout, done.stderr
    return Outcome(done.returncode, json.loads(done.stdout))


def _patch(folder: Path, name: str, *, requirement: str, file: str, edit: str) -> None:
    (folder / "patches").mkdir(exist_ok=True)
    text = HEAD.format(name=name, requirement=requirement, file=file) + edit
    (folder / "patches" / f"{name}.toml").write_text(text, encoding="utf-8")


# --- released packages


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory, wheel: Callable[[str, str], Path]) -> Path:
    """A folder with the wheels of all kinds, and their patches ``k0``, ``k1`` ..."""
    folder = tmp_path_factory.mktemp("released")
    (folder / "wheels").mkdir()
    wanted = {(kind["distribution"], kind["version"]): kind.get("wheel_for") for kind in KINDS}
    wanted["nvidia-cuda-runtime-cu12", "12.4.127"] = ["--platform", "manylinux2014_x86_64"]
    for (name, version), options in wanted.items():
        found = wheel(name, version) if options is None else foreign_wheel(name, version, options)
        (folder / "wheels" / found.name).symlink_to(found)
    for number, kind in enumerate(KINDS):
        keys = ("find", "replace", "add_import")
        edit = "\n".join(f"{key} = {json.dumps(kind[key], ensure_ascii=False)}" for key in keys if key in kind)
        requirement = kind.get("requirement", kind["distribution"])
        _patch(folder, f"k{number}", requirement=requirement, file=kind["file"], edit=edit + "\n")
    return folder


@pytest.fixture(scope="module")
def by_pip(shelf: Path) -> Path:
    """The folder that pip installed all of them into, for Python 3.11 on Linux."""
    options = ["--python-version", "3.11", "--platform", "manylinux2014_x86_64", "--only-binary", ":all:"]
    wheels = sorted(map(str, (shelf / "wheels").glob("*.whl")))
    _run([*PIP, "install", "--quiet", "--no-deps", "--target", str(shelf / "pip"), *options, *wheels], shelf)
    return shelf / "pip"


@pytest.fixture(scope="module")
def by_uv(shelf: Path) -> Path:
    """The same by uv."""
    options = ["--python-version", "3.11", "--python-platform", "x86_64-manylinux2014"]
    wheels = sorted(map(str, (shelf / "wheels").glob("*.whl")))
    _run([_uv(), "pip", "install", "--quiet", "--no-deps", "--target", str(shelf / "uv"), *options, *wheels], shelf)
    return shelf / "uv"


@pytest.mark.parametrize("number", range(len(KINDS)), ids=[re.split(r"[: ]", kind["name"])[0] for kind in KINDS])
def test_a_released_package(by_pip: Path, shelf: Path, number: int) -> None:
    kind, installed = KINDS[number], by_pip
    before = snapshot(installed)
    run = _patchkit(shelf, "--site", str(installed), "apply", f"k{number}")
    if kind["outcome"] != "works":
        error = run.answer["error"]
        assert f"refused: {error['code']} ({run.status})" == kind["outcome"]
        said = f"{error['message']}\n{error['hint']}"
        assert [words for words in kind["says"] if words not in said] == []
        assert snapshot(installed) == before
        return
    assert run.status == 0, run.answer["error"]
    assert [path for path, state in snapshot(installed).items() if before[path] != state] == [kind["file"]]
    assert _patchkit(shelf, "--site", str(installed), "check").status == 0
    assert _patchkit(shelf, "--site", str(installed), "revert", f"k{number}").status == 0
    assert snapshot(installed) == before


def test_all_of_them_at_once_as_uv_installs_them(by_uv: Path, shelf: Path) -> None:
    installed = by_uv
    before = snapshot(installed)
    names = [f"k{number}" for number in WORKING]
    run = _patchkit(shelf, "--site", str(installed), "apply", *names)
    assert run.status == 0, run.answer["error"]
    assert {path for path, state in snapshot(installed).items() if before[path] != state} == {
        KINDS[number]["file"] for number in WORKING
    }
    assert _patchkit(shelf, "--site", str(installed), "revert", "--all").status == 0
    assert snapshot(installed) == before


def test_a_file_of_two_distributions(shelf: Path, tmp_path: Path) -> None:
    """The patch's own target is the one that counts; the other's removal or reinstall is told of."""
    number = next(number for number, kind in enumerate(KINDS) if kind["distribution"].startswith("nvidia"))
    uv, target = _uv(), tmp_path / "target"
    options = ["--quiet", "--no-deps", "--python-platform", "x86_64-manylinux2014", "--target", str(target)]
    both = ["nvidia-nvtx-cu12==12.4.127", "nvidia-cuda-runtime-cu12==12.4.127"]
    _run([uv, "pip", "install", *options, *both], shelf)
    where = ("--site", str(target))
    run = _patchkit(shelf, *where, "apply", f"k{number}")
    assert run.status == 0
    assert "belongs to nvidia-cuda-runtime-cu12 12.4.127 as well" in " ".join(run.answer["notes"])
    _run([uv, "pip", "install", *options, "--reinstall", both[1]], shelf)
    assert [patch["state"] for patch in _patchkit(shelf, *where, "check").answer["patches"]] == ["lost"]
    assert _patchkit(shelf, *where, "sync").status == 0
    _run([uv, "pip", "uninstall", "--quiet", "--target", str(target), "nvidia-cuda-runtime-cu12"], shelf)
    assert not (target / "nvidia" / "__init__.py").exists()
    gone = _patchkit(shelf, *where, "check").answer["patches"]
    assert [patch["state"] for patch in gone] == ["modified"]
    assert "is gone" in gone[0]["reason"]
    _run([uv, "pip", "install", *options, "--reinstall", both[0]], shelf)
    assert _patchkit(shelf, *where, "sync").status == 0
    assert _patchkit(shelf, *where, "check").status == 0
    assert (target / "nvidia" / "__init__.py").read_text() == "import os\n"


# --- editable installs

PROJECT = """
[build-system]
requires = []
build-backend = "{backend}"
[project]
name = "{name}"
version = "1.0"
description = "for tests"
{more}
"""
SETUPTOOLS = '[tool.setuptools.packages.find]\nwhere = ["src"]\n'
HATCH = '[tool.hatch.build.targets.wheel]\npackages = ["src/{name}"]\n'
#: Project, backend, further keys, installer, options, and what the refusal says without ``direct_url.json``.
FORMS = {
    "ed-lenient": ("setuptools.build_meta", SETUPTOOLS, "pip", (), "__editable__.ed_lenient-1.0.pth redirects"),
    "ed-compat": ("setuptools.build_meta", SETUPTOOLS, "pip", ("compat",), "redirects its imports to its source in"),
    "ed-strict": ("setuptools.build_meta", SETUPTOOLS, "pip", ("strict",), "redirects its imports to its source in"),
    "ed-finder": (
        "setuptools.build_meta",
        '[tool.setuptools]\npackages = ["ed_finder"]\npackage-dir = {ed_finder = "src/ed_finder"}\n',
        "uv",
        (),
        "__editable___ed_finder_1_0_finder.py redirects its imports to its source in",
    ),
    "ed-hatch": ("hatchling.build", HATCH, "uv", (), "ed_hatch.pth leads to its source in"),
    "ed-exact": (
        "hatchling.build",
        HATCH + "[tool.hatch.build]\ndev-mode-exact = true\n",
        "pip",
        (),
        "imports _editable_impl_ed_exact, which redirects its imports",
    ),
    "ed-flit": ("flit_core.buildapi", "", "pip", (), "ed_flit.pth leads to its source in"),
}
BACKENDS = [
    ("setuptools", "80.9.0"),
    ("hatchling", "1.27.0"),
    ("packaging", "25.0"),
    ("pathspec", "0.12.1"),
    ("pluggy", "1.6.0"),
    ("trove-classifiers", "2025.9.11.17"),
    ("flit_core", "3.12.0"),
    ("editables", "0.5"),
]


@pytest.fixture(scope="module")
def developed(
    tmp_path_factory: pytest.TempPathFactory,
    wheel: Callable[[str, str], Path],
    install: Callable[[Path, Path], Path],
) -> Path:
    """A folder with an environment ``env`` into which every form of editable install was made."""
    folder = tmp_path_factory.mktemp("editable")
    (folder / "wheels").mkdir()
    venv.create(folder / "env", with_pip=False, symlinks=True)
    site = next((folder / "env").glob("lib/python*/site-packages"))
    for name, version in BACKENDS:
        install(wheel(name, version), site)
    sources: dict[str, list[str]] = {"pip": [], "uv": [], "compat": [], "strict": []}
    for form, (backend, more, installer, mode, _) in FORMS.items():
        name = form.replace("-", "_")
        package = folder / form / "src" / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(f'"""{form}"""\n__version__ = "1.0"\n')
        (package / "core.py").write_text("VALUE = 1\n")
        keys = PROJECT.format(backend=backend, name=form, more=more.replace("{name}", name))
        (folder / form / "pyproject.toml").write_text(keys)
        _patch(
            folder, form, requirement=form, file=f"{name}/core.py", edit='find = "VALUE = 1"\nreplace = "VALUE = 2"\n'
        )
        sources[mode[0] if mode else installer] += ["-e", f"./{form}"]
    python = str(folder / "env" / "bin" / "python")
    options = ["--quiet", "--no-deps", "--no-build-isolation"]
    for how in ("pip", "compat", "strict"):
        modes = [] if how == "pip" else ["--config-settings", f"editable_mode={how}"]
        _run([*PIP, "--python", python, "install", *options, *modes, *sources[how]], folder)
    _run([_uv(), "pip", "install", "--python", python, *options, *sources["uv"]], folder)
    return folder


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("told", [True, False], ids=["direct_url", "without"])
def test_an_editable_install(developed: Path, form: str, told: bool) -> None:
    """Also where the installer's note is lost, its source is not taken for an install's files."""
    name = form.replace("-", "_")
    site = next((developed / "env").glob("lib/python*/site-packages"))
    note = site / f"{name}-1.0.dist-info" / "direct_url.json"
    kept = note.read_bytes()
    before = snapshot(developed / form)
    if not told:
        note.unlink()
    try:
        run = _patchkit(developed, "--python", str(developed / "env"), "apply", form)
    finally:
        note.write_bytes(kept)
    assert (run.status, run.answer["error"]["code"]) == (3, "editable")
    said = run.answer["error"]["message"]
    assert (str(developed / form) in said) or form == "ed-exact"
    assert ("direct_url.json" if told else FORMS[form][4]) in said
    assert snapshot(developed / form) == before


# --- the command of the hint brings the file back


def _site(root: Path) -> Path:
    return next(path for kind in ("site-packages", "dist-packages") for path in root.rglob(kind))


def _gone(site: Path) -> None:
    (site / "demo" / "core.py").unlink()


def _empty_record(site: Path) -> None:
    (site / "demo-1.0.dist-info" / "RECORD").write_bytes(b"")


def _record_directory(site: Path) -> None:
    (site / "demo-1.0.dist-info" / "RECORD").unlink()
    (site / "demo-1.0.dist-info" / "RECORD").mkdir()


def _no_record(site: Path) -> None:
    info = site / "demo-1.0.dist-info"
    (info / "RECORD").unlink()
    (info / "installed-files.txt").write_text("../demo/core.py\n")
    _gone(site)


def _no_metadata(site: Path) -> None:
    (site / "demo-1.0.dist-info" / "METADATA").unlink()


def _egg_info_file(site: Path) -> None:
    shutil.rmtree(site / "demo-1.0.dist-info")
    make_egg_info(site, "demo", "1.0", {}, directory=False)
    (site / "demo" / "core.py").write_text("VALUE = 0\n")


def _edited(site: Path) -> None:
    path = site / "demo" / "core.py"
    path.unlink()
    path.write_text("VALUE = 1  # mine\n")


def _doubled(site: Path) -> None:
    shutil.copytree(site / "demo-1.0.dist-info", site / "demo-0.9.dist-info")
    for name in ("METADATA", "RECORD"):
        text = (site / "demo-0.9.dist-info" / name).read_text()
        (site / "demo-0.9.dist-info" / name).write_text(
            text.replace("1.0", "0.9").replace("demo/core.py,sha256=", "x/")
        )


#: Layout, its installer, what goes wrong there, the code of the refusal.
TROUBLES: list[tuple[str, str, Callable[[Path], None], str]] = [
    ("venv", "pip", _gone, "missing"),
    ("venv", "pip", _edited, "modified"),
    ("venv", "pip", _empty_record, "record"),
    ("venv", "pip", _record_directory, "record"),
    ("venv", "pip", _no_record, "missing"),
    ("venv", "pip", _no_metadata, "not-installed"),
    ("venv", "uv", _gone, "missing"),
    ("venv", "uv", _edited, "modified"),
    ("venv", "uv", _no_metadata, "not-installed"),
    ("target", "pip", _gone, "missing"),
    ("target", "uv", _gone, "missing"),
    ("prefix", "pip", _gone, "missing"),
    ("prefix", "uv", _gone, "missing"),
    ("root", "pip", _edited, "modified"),
    ("user", "pip", _gone, "missing"),
    ("venv", "pip", _doubled, "duplicate"),
]


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a wheel of ``demo 1.0``, its patch, and an environment without pip."""
    folder = tmp_path_factory.mktemp("workshop")
    make_wheel(folder / "wheels", "demo", "1.0", {"demo/__init__.py": "", "demo/core.py": "VALUE = 1\n"})
    _patch(folder, "fix", requirement="demo", file="demo/core.py", edit='find = "VALUE = 1"\nreplace = "VALUE = 2"\n')
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    return folder


@pytest.mark.parametrize(
    ("layout", "installer", "trouble", "code"),
    TROUBLES,
    ids=["-".join((layout, installer, trouble.__name__[1:])) for layout, installer, trouble, _ in TROUBLES],
)
def test_the_command_of_the_hint(
    workshop: Path, layout: str, installer: str, trouble: Callable[[Path], None], code: str
) -> None:
    python, root = str(workshop / "venv" / "bin" / "python"), workshop / f"{layout}-{installer}"
    where: list[str] = {"venv": [], "user": ["--user"]}.get(layout, [f"--{layout}", str(root)])
    if installer == "uv":
        command = [_uv(), "pip", "install", "--quiet", "--python", python, *where, "--reinstall", "demo"]
    elif layout == "user":
        command = [_base_python(), "-m", "pip", "install", "--quiet", "--user", "--ignore-installed", "demo"]
    else:
        runner = [*PIP, "--python", python] if layout == "venv" else PIP
        command = [*runner, "install", "--quiet", *where, "--ignore-installed", "demo"]
    shutil.rmtree(root, ignore_errors=True)
    _run(command, workshop, PIP_BREAK_SYSTEM_PACKAGES="1")
    if layout == "venv":
        options, site = ["--python", str(workshop / "venv")], _site(workshop / "venv")
    elif layout == "user":
        options, site = ["--python", _base_python()], _site(workshop / "user")
    else:
        site = root if layout == "target" else _site(root)
        options = ["--site", str(site)]
    before = {path: state.sha256 for path, state in snapshot(site).items() if path.startswith("demo/")}
    trouble(site)
    run = _patchkit(workshop, *options, "apply", "fix")
    assert (run.status, run.answer["error"]["code"]) == (3 if code == "not-installed" else 5, code)
    hint = run.answer["error"]["hint"]
    _run(re.findall(r"`([^`]+)`", hint)[0], workshop, PIP_BREAK_SYSTEM_PACKAGES="1")
    run = _patchkit(workshop, *options, "apply", "fix")
    assert run.status == 0, (hint, run.answer["error"])
    assert _patchkit(workshop, *options, "check").status == 0
    assert _patchkit(workshop, *options, "revert", "fix").status == 0
    assert {path: state.sha256 for path, state in snapshot(site).items() if path.startswith("demo/")} == before


@pytest.mark.parametrize("kind", ["shared folders", "symbolic links", "prefix"])
def test_a_hint_where_the_plain_command_does_harm(workshop: Path, kind: str) -> None:
    """A target loses folders whole to pip; uv refuses, with the package gone; pip makes a folder of its own."""
    make_wheel(workshop / "wheels", "demo-plugin", "1.0", {"demo/plugin.py": "PLUGIN = 1\n"})
    root = workshop / kind.replace(" ", "-")
    variables: dict[str, str] = {}
    if kind == "shared folders":
        site = root
        _run([*PIP, "install", "--quiet", "--target", str(root), "demo", "demo-plugin"], workshop)
    elif kind == "symbolic links":
        venv.create(root, with_pip=False, symlinks=True)
        site, variables = _site(root), {"UV_LINK_MODE": "symlink"}
        _run([_uv(), "pip", "install", "--quiet", "--python", str(root / "bin/python"), "demo"], workshop, **variables)
    else:
        python = str(workshop / "venv" / "bin" / "python")
        _run([_uv(), "pip", "install", "--quiet", "--python", python, "--prefix", str(root), "demo"], workshop)
        site = _site(root)
    (site / "demo" / "core.py").unlink()
    before = {path for path in snapshot(site) if path.endswith(".py")}
    run = _patchkit(workshop, "--site", str(site), "apply", "fix")
    assert (run.status, run.answer["error"]["code"]) == (5, "missing")
    _run(re.findall(r"`([^`]+)`", run.answer["error"]["hint"])[0], workshop, **variables)
    assert {path for path in snapshot(site) if path.endswith(".py")} == {*before, "demo/core.py"}
    assert _patchkit(workshop, "--site", str(site), "apply", "fix").status == 0
    assert not (site.parent / f"{site.name}.new").exists()


def _base_python() -> str:
    """The interpreter that this one's environment was made from."""
    name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    found = Path(sys.base_prefix) / "bin" / name
    if subprocess.run([found, "-m", "pip", "--version"], capture_output=True, check=False).returncode:
        pytest.skip(f"{found} has no pip, which --user takes")
    return str(found)
