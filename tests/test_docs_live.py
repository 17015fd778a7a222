"""docs/live.md as it stands there: its walk on a small package; its guards let a program start, and keep it from it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from support.dists import make_dist
from support.documents import ROOT, blocks, document, matches, released_wheel

pytestmark = pytest.mark.skipif(os.name == "nt", reason="a POSIX shell")


def section(heading: str) -> str:
    """A section of the page."""
    return document("docs/live.md").split(f"\n## {heading}\n", 1)[1].partition("\n## ")[0]


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
    for block in blocks(section("Refuse to start"))
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
    command(tmp_path / "bin")
    return found


def command(folder: Path) -> None:
    """The command ``patchkit`` in a folder for the ``PATH``."""
    folder.mkdir()
    tool = folder / "patchkit"
    tool.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m patchkit "$@"\n')
    tool.chmod(0o755)


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


# --- the walk

#: humanize 4.9.0, cut down to what the walk touches.
HUMANIZE: dict[str, str | bytes] = {
    "humanize/__init__.py": "from humanize.filesize import naturalsize\n",
    "humanize/filesize.py": 'def naturalsize(value):\n    ret = f"{value / 1e6:.1f} MB"\n    return ret\n',
}


def walk(folder: Path, monkeypatch: pytest.MonkeyPatch, install: Callable[[Path], None]) -> None:
    """Run the commands of the walk in one shell, in an environment that ``install`` filled, and compare each."""
    monkeypatch.chdir(folder)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", ".venv"], check=True)
    (site,) = folder.glob(".venv/lib/python3*/site-packages")
    install(site)
    (folder / "patches").mkdir()
    command(folder / "bin")
    before = {path.relative_to(site) for path in site.rglob("*.py")}
    shown = []
    for block in blocks(section("On a small package")):
        if block.language == "console":
            shown += [part.partition("\n")[::2] for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]]
        else:
            (folder / str(block.title)).write_text(block.text, encoding="utf-8")
    mark = "--- the next command"
    script = f"exec 2>&1\n{''.join(f'{line}{chr(10)}echo {chr(39)}{mark}{chr(39)}{chr(10)}' for line, _ in shown)}"
    search = os.pathsep.join([str(folder / "bin"), str(folder / ".venv" / "bin"), os.environ["PATH"]])
    environment = {**os.environ, "PATH": search, "VIRTUAL_ENV": str(folder / ".venv")}
    done = subprocess.run(["bash", "-c", script], env=environment, capture_output=True, text=True, timeout=120)
    printed = done.stdout.split(f"{mark}\n")
    assert len(printed) == len(shown) + 1 > 8, done.stdout
    for (line, expected), text in zip(shown, printed, strict=False):
        found = re.sub(r"\bpid([ =])\d+", r"pid\g<1>4711", text)
        assert matches(expected, found), f"$ {line}\n--- shown\n{expected}--- printed\n{text}"
    assert (folder / "serve.out").read_text() == "1,5 MB\n"
    assert before == {path.relative_to(site) for path in site.rglob("*.py")}
    assert b'ret.replace(".", ",")' not in (site / "humanize" / "filesize.py").read_bytes()


@pytest.mark.skipif(sys.platform != "linux", reason="--pid needs Linux")
def test_the_walk_prints_what_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    walk(tmp_path, monkeypatch, lambda site: make_dist(site, "humanize", "4.9.0", HUMANIZE))


@pytest.mark.real
def test_the_walk_on_the_real_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = released_wheel("humanize", "4.9.0")
    walk(tmp_path, monkeypatch, lambda site: zipfile.ZipFile(wheel).extractall(site))
