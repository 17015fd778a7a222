"""The guards of docs/live.md, each run as it stands there: they let a program start, and keep it from starting."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.dists import make_dist
from support.documents import ROOT, blocks, document

pytestmark = pytest.mark.skipif(os.name == "nt", reason="a POSIX shell")
PATCH = """\
schema = 1
name = "logits-greedy"
summary = "stands for the real one"
[target]
requirement = "demo"
[[edit]]
file = "demo/core.py"
find = "Y = 2"
replace = "Y = 3"
"""
GUARDS = {
    block.title: block.text
    for block in blocks(document("docs/live.md"))
    if block.title and block.language in ("python", "dockerfile", "ini")
}
PROGRAM = "print('started')\n"

Run = Callable[[str], subprocess.CompletedProcess[str]]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """An environment without patchkit, with ``logits-greedy`` applied; its site-packages folder."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    (found,) = (tmp_path / "venv").glob("lib/python3*/site-packages")
    make_dist(found, "demo", "1.0", {"demo/__init__.py": "", "demo/core.py": "X = 1\nY = 2\n"})
    (tmp_path / "patches").mkdir()
    (tmp_path / "patches" / "logits-greedy.toml").write_text(PATCH)
    tool = tmp_path / "bin" / "patchkit"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m patchkit "$@"\n')
    tool.chmod(0o755)
    return found


@pytest.fixture
def run(tmp_path: Path, site: Path) -> Run:
    """A shell command in a project with ``patchkit`` and the environment's ``python3`` on PATH."""
    path = os.pathsep.join([str(tmp_path / "bin"), str(tmp_path / "venv" / "bin"), os.environ["PATH"]])

    def shell(command: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PATH": path}
        return subprocess.run(
            ["sh", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
        )

    (tmp_path / "serve.py").write_text(PROGRAM)
    assert shell("patchkit --python python3 apply logits-greedy").returncode == 0
    return shell


def command_of(title: str, folder: Path) -> str:
    """What starts the program by the guard of that title, as a shell command; paths of an image lie in ``folder``."""
    text = GUARDS[title].replace("/patchkit/bin/", f"{folder}/bin/").replace("/venv/", f"{folder}/venv/")
    if title == "entrypoint":
        parts = [json.loads(line.partition(" ")[2]) for line in text.splitlines()]
        return " ".join([*parts[0], *parts[1]])
    if title == "unit":
        given = dict(line.partition("=")[::2] for line in text.splitlines() if "=" in line)
        assert given["WorkingDirectory"] == "/app"  # where this shell is
        return f"{given['ExecStartPre']} && exec {given['ExecStart']}"
    (folder / "guarded.py").write_text(text + "\n" + PROGRAM)
    return f'PYTHONPATH="{ROOT}" python3 guarded.py' if title == "script" else "python3 guarded.py"


def test_these_are_all() -> None:
    assert set(GUARDS) == {"script", "script without patchkit", "entrypoint", "unit", "notebook without patchkit"}


@pytest.mark.parametrize("title", GUARDS)
def test_it_starts_the_program_while_the_patch_is_there(title: str, run: Run, tmp_path: Path) -> None:
    if title == "notebook without patchkit" and sys.platform != "linux":
        pytest.xfail("--pid needs Linux")
    done = run(f"sleep 1; {command_of(title, tmp_path)}")  # the start of a process is known to the second
    assert (done.returncode, done.stdout) == (0, "started\n"), done.stderr


@pytest.mark.parametrize("title", GUARDS)
@pytest.mark.parametrize("spoilt", ["lost", "stale", "modified", "inert"])
def test_it_does_not_start_it_else(title: str, spoilt: str, run: Run, site: Path, tmp_path: Path) -> None:
    if spoilt == "lost":
        (site / "demo" / "core.py").write_text("X = 1\nY = 2\n")
    elif spoilt == "modified":
        (site / "demo" / "core.py").write_text("X = 1\nY = 4\n")
    elif spoilt == "stale":
        (site / "demo-1.0.dist-info").rename(site / "demo-1.1.dist-info")
    else:
        (site / "demo" / "core.so").write_bytes(b"")
    done = run(command_of(title, tmp_path))
    assert done.returncode != 0
    assert done.stdout == ""
    assert f"logits-greedy: {spoilt}: " in done.stderr


def test_a_kernel_that_is_older_than_the_apply_is_told_to_restart(run: Run, tmp_path: Path) -> None:
    if sys.platform != "linux":
        pytest.xfail("--pid needs Linux")
    assert run("patchkit --python python3 revert logits-greedy").returncode == 0
    (tmp_path / "kernel.py").write_text(
        "import os, time\ntime.sleep(2.1)\nassert os.system('patchkit --python python3 apply logits-greedy') == 0\n"
        + GUARDS["notebook without patchkit"]
    )
    done = run("python3 kernel.py")
    assert done.returncode == 1
    assert "logits-greedy: outdated: " in done.stderr
    assert "restart the process; in a notebook: the kernel" in done.stderr
