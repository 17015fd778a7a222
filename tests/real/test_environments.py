"""docs/environments.md, block by block: each is run as it stands there, in a project that is as it says."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.documents import ROOT, blocks, document

pytestmark = [pytest.mark.real, pytest.mark.slow]
BLOCKS = {block.title: block.text for block in blocks(document("docs/environments.md")) if block.title}
PATCH = ROOT / "examples/patches-package/src/acme_patches/data/attrdict-collections-abc.toml"
BIN = Path(sys.executable).parent
UV = str(BIN / "uv")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The project of the page, with programs called as there: ``patchkit`` is this checkout."""
    folder = tmp_path / "app"
    (folder / "patches").mkdir(parents=True)
    shutil.copy(PATCH, folder / "patches")
    (folder / "pyproject.toml").write_text(BLOCKS["pyproject.toml"])
    (folder / "on-host.sh").write_text(BLOCKS["on-host.sh"])
    programs = tmp_path / "bin"
    programs.mkdir()
    script = f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m patchkit "$@"\n'
    for name, text in {"patchkit": script, "python3": f'#!/bin/sh\nexec {sys.executable} "$@"\n'}.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    for name in ("uv", "pip"):
        (programs / name).symlink_to(BIN / name)
    return folder


def run(block: str, project: Path, status: int = 0, **more: str) -> str:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PATCHKIT", "VIRTUAL_ENV"))}
    environment |= {"PATH": f"{project.parent / 'bin'}:{environment['PATH']}", "UV_PYTHON": sys.executable, **more}
    words = ["bash", "-euo", "pipefail", "-c", BLOCKS[block]]
    done = subprocess.run(words, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def venv(project: Path, name: str = ".venv") -> None:
    subprocess.run([UV, "venv", "-q", "--seed", "--python", sys.executable, name], cwd=project, check=True)


def patched(project: Path) -> bool:
    (path,) = (project / ".venv").rglob("attrdict/mapping.py")
    return "collections.abc import Mapping" in path.read_text()


def test_uv(project: Path) -> None:
    assert "applied attrdict-collections-abc" in run("uv", project)
    assert patched(project)
    run("uv run", project)
    run("uv", project)  # what uv leaves alone stays patched
    assert patched(project)


def test_pip_tools(project: Path) -> None:
    venv(project)
    subprocess.run([UV, "pip", "install", "-q", "--python", ".venv", "pip-tools"], cwd=project, check=True)
    (project.parent / "bin" / "pip-compile").symlink_to(project / ".venv" / "bin" / "pip-compile")
    assert "applied attrdict-collections-abc" in run("pip-tools", project)
    assert patched(project)


def test_without_a_network(project: Path) -> None:
    (project / "patchkit").symlink_to(ROOT)
    run("on a machine with a network", project)
    # An index that nobody answers at.
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0", "PIP_CONFIG_FILE": os.devnull}
    assert "applied attrdict-collections-abc" in run("behind the wall", project, **nowhere)
    assert patched(project)


def test_read_only(project: Path) -> None:
    venv(project)
    subprocess.run([UV, "pip", "install", "-q", "--python", ".venv", "attrdict==2.0.1", "six"], cwd=project, check=True)
    site = next((project / ".venv").rglob("attrdict")).parent
    folders = [site, *(path for path in site.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        environment = {"PATCHKIT_CACHE": str(project.parent / "cache")}
        (project / "pyproject.toml").write_text('[project]\nname = "app"\nversion = "1"\n')
        run("read-only", project, **environment)
    finally:
        for folder in folders:
            folder.chmod(0o755)
    assert not (site / ".patchkit").exists()


def test_the_first_cell_may_be_run_twice(project: Path) -> None:
    (project / "patchkit").symlink_to(ROOT)
    venv(project)
    subprocess.run([UV, "pip", "install", "-q", "--python", ".venv", "attrdict==2.0.1", "six"], cwd=project, check=True)
    run("first cell", project)
    assert patched(project)
    run("first cell", project)


@pytest.fixture
def hosts(project: Path) -> list[Path]:
    """Three hosts, which a stand-in for ssh reaches: each a home with the project and an environment."""
    homes = []
    for name in ("a", "b", "c"):
        home = project.parent / name
        shutil.copytree(project, home / "app")
        venv(home / "app")
        words = [UV, "pip", "install", "-q", "--python", ".venv", "attrdict==2.0.1", "six"]
        subprocess.run(words, cwd=home / "app", check=True)
        homes.append(home / "app")
    ssh = project.parent / "bin" / "ssh"
    ssh.write_text(f'#!/bin/sh\ncd {project.parent}/"$1" && shift && exec sh -c "$*"\n')
    ssh.chmod(0o755)
    return homes


def test_every_host_or_none(project: Path, hosts: list[Path]) -> None:
    run("every host", project, HOSTS="a b c")
    assert all(patched(host) for host in hosts)
    run("the same everywhere", project, HOSTS="a b c")
    assert json.loads((project / "check-a.json").read_text())["patches"][0]["state"] == "applied"


def test_one_host_that_cannot_keeps_all_from_it(project: Path, hosts: list[Path]) -> None:
    words = [UV, "pip", "install", "-q", "--python", ".venv", "attrdict==2.0.0", "six"]
    subprocess.run(words, cwd=hosts[1], check=True)
    assert "because of: b" in run("every host", project, status=1, HOSTS="a b c")
    assert not any(patched(host) for host in hosts)
    run("the same everywhere", project, status=1, HOSTS="a b c")
