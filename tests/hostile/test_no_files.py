"""Pipes, devices, links to themselves, sockets in place of files: every command ends, and says what it found."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from hostile.bounds import bounded
from support.bench import Bench

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")

EDIT = '[[edit]]\nfile = "demo/core.py"\n'
SWAP = f'{EDIT}find = "y = x + x"\nreplace = "y = 2 * x"\n'


def special(folder: Path, suffix: str) -> None:
    os.mkfifo(folder / f"pipe{suffix}")
    (folder / f"folder{suffix}").mkdir()
    (folder / f"zero{suffix}").symlink_to("/dev/zero")
    (folder / f"loop{suffix}").symlink_to(f"loop{suffix}")
    listening = socket.socket(socket.AF_UNIX)
    before = os.getcwd()
    os.chdir(folder)  # the path of a socket may have a hundred characters
    try:
        listening.bind(f"socket{suffix}")
    finally:
        os.chdir(before)
        listening.close()


def test_patch_files_that_are_no_files(bench: Bench) -> None:
    special(bench.patches, ".toml")
    done = bounded("--patches", str(bench.patches), "lint", cwd=bench.root)
    assert done.returncode == 1
    assert done.stdout.count("cannot be read: ") == 5
    assert "pipe.toml: error: cannot be read: not a regular file" in done.stdout
    options = ["--site", str(bench.site), "--patches", str(bench.patches)]
    assert bounded(*options, "list", cwd=bench.root).returncode == 0
    for name in ("pipe", "zero", "folder", "loop", "socket"):
        for given in (name, str(bench.patches / f"{name}.toml")):
            assert bounded(*options, "apply", given, cwd=bench.root).returncode == 2, given


#: How `check`, `log`, a dry run and `apply` end: without what they need, or as if it were not there.
ENDS = {
    "pyproject.toml": (0, 0, 0, 0),
    "ledger.json": (5, 0, 5, 5),
    "journal.json": (5, 5, 5, 5),
    "log.jsonl": (0, 5, 0, 0),
    "lock": (0, 0, 0, 0),  # a pipe can be locked as well
}


def put(path: Path, kind: str) -> None:
    """Something in the place of a file that a plain reader would wait for, or read for ever."""
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")


@pytest.mark.parametrize("kind", ["pipe", "zero"])
@pytest.mark.parametrize("name", ENDS)
def test_records_and_projects_that_are_no_files(bench: Bench, kind: str, name: str) -> None:
    folder = bench.root / "work" if name == "pyproject.toml" else bench.site / ".patchkit"
    folder.mkdir(exist_ok=True)
    put(folder / name, kind)
    bench.patch("swap", SWAP)
    options = ["--site", str(bench.site), "--patches", str(bench.patches)]
    commands = (["check"], ["log"], ["apply", "swap", "--dry-run"], ["apply", "swap"])
    ends = (0, 0, 0, 5) if (name, kind) == ("lock", "zero") else ENDS[name]
    for command, status in zip(commands, ends, strict=True):
        done = bounded(*options, *command, cwd=bench.root / "work")
        assert done.returncode == status, (command, done.returncode, done.stderr[-300:])
        assert status == 0 or str(folder / name) in done.stderr


COMMANDS = ("check", "list", "diff", "doctor --deep", "sync --dry-run", "apply swap", "revert swap")
#: How they end where a file of the site has become a pipe: what asks for it is refused, or does without.
PATCHED = {
    "demo/core.py": (1, 0, 5, 0, 5, 5, 5),
    "demo-1.0.dist-info/RECORD": (0, 0, 0, 1, 0, 5, 0),
    "demo-1.0.dist-info/METADATA": (0, 0, 0, 0, 0, 3, 0),
    "demo-1.0.dist-info/INSTALLER": (0, 0, 0, 0, 0, 0, 0),
    "demo-1.0.dist-info/direct_url.json": (0, 0, 0, 0, 0, 0, 0),
    "x.pth": (0, 0, 0, 0, 0, 0, 0),
    "demo.egg-link": (0, 0, 0, 0, 0, 0, 0),
    "demo-2.0.egg": (0, 0, 0, 0, 0, 0, 0),
    "demo-2.0.egg-info": (0, 0, 0, 0, 0, 0, 0),
}


@pytest.mark.parametrize("name", PATCHED)
def test_files_of_the_site_that_are_pipes(bench: Bench, name: str) -> None:
    bench.patch("swap", SWAP)
    assert bench("apply", "swap").status == 0
    put(bench.site / name, "pipe")
    options = ["--site", str(bench.site), "--patches", str(bench.patches)]
    found = []
    for command in COMMANDS:
        done = bounded(*options, *command.split(), cwd=bench.root / "work", seconds=60)
        assert "Traceback" not in done.stderr
        assert done.returncode == 0 or name in done.stderr + done.stdout or command == "apply swap", done
        found.append(done.returncode)
    assert tuple(found) == PATCHED[name]


def test_a_log_that_is_a_pipe_keeps_nobody_waiting(bench: Bench) -> None:
    """It was once written to, and read for the hint of a ledger that is damaged, as any file."""
    bench.patch("swap", SWAP)
    assert bench("apply", "swap").status == 0
    put(bench.site / ".patchkit/log.jsonl", "pipe")
    options = ["--site", str(bench.site), "--patches", str(bench.patches)]
    for command in ("revert swap", "apply swap"):
        assert bounded(*options, *command.split(), cwd=bench.root / "work", seconds=60).returncode == 0
    (bench.site / ".patchkit/ledger.json").write_bytes(b"x")
    done = bounded(*options, "check", cwd=bench.root / "work", seconds=60)
    assert (done.returncode, "apply NAME...`" in done.stderr) == (1, True)


def test_check_says_what_a_pipe_is_not(bench: Bench) -> None:
    bench.patch("swap", SWAP)
    assert bench("apply", "swap").status == 0
    put(bench.site / "demo/core.py", "pipe")
    done = bounded("--site", str(bench.site), "check", cwd=bench.root / "work", seconds=60)
    assert (done.returncode, "cannot be read: demo/core.py" in done.stdout) == (1, True)
