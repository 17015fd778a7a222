"""apply, revert and sync stopped and failed at every step on the disk; the figures that it prints are its result.

`tests/faults/sweep.py` is the harness; its first lines tell how to sweep 300 files in full.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).absolute().parents[2]
COMMANDS = ("apply", "revert", "sync")

pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="needs fork: one run of a command serves all its faults"
)


def swept(tmp_path: Path, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """A process of the harness: it forks, which one with threads must not."""
    command = [sys.executable, "-m", "faults.sweep", "--json", "--folder", str(tmp_path), *words]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), str(ROOT)])}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.stdout, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    with capsys.disabled():
        for name in dict.fromkeys(row[0] for row in found["rows"]):
            rows = [row for row in found["rows"] if row[0] == name]
            print(f"\nfault sweep: {' '.join(words)}: {sum(row[2] for row in rows)} points", end="")
    assert found["bad"] == []
    assert done.returncode == 0, done.stderr[-3000:]
    return found


def points(found: dict[str, Any], kind: str) -> int:
    """How many points of one kind of fault were tried."""
    return sum(row[2] for row in found["rows"] if row[1].startswith(kind))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_fault_at_every_step(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    found = swept(tmp_path, capsys, "--files", "6", "--commands", command, "--faults", "kill,every-once,any-for-ever")
    steps = points(found, "kill")
    assert steps > 100
    for kind in ("ENOSPC", "EIO", "EROFS", "EACCES"):
        assert sum(row[2] for row in found["rows"] if row[1] == kind) == steps
    assert sum(row[2] for row in found["rows"] if row[1].endswith("for ever")) == steps
    killed = next(row for row in found["rows"] if row[1] == "kill")
    assert killed[4] > 0  # wholly old
    assert killed[5] > 0  # wholly new


@pytest.mark.parametrize("command", COMMANDS)
def test_300_files_at_some_steps_of_each_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    found = swept(tmp_path, capsys, "--files", "300", "--commands", command, "--most", "2", "--faults", "kill,any-once")
    assert points(found, "kill") > 25
    assert points(found, "E") == points(found, "kill")


def test_what_recovers_is_stopped_as_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = swept(tmp_path, capsys, "--files", "6", "--recoveries", "2", "--faults", "kill,any-once")
    assert points(found, "kill") > 100
