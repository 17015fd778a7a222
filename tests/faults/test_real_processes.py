"""Real patchkit processes, traced from outside: the seam sees all; a kill or an errno at any call is survived."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).absolute().parents[2]
CANNOT_TRACE = 77

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="ptrace as it is used here is Linux's")


@pytest.mark.parametrize("command", ["apply", "revert", "sync"])
def test_system_calls_of_real_processes(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str) -> None:
    words = ["--files", "6", "--commands", command, "--kills", "5", "--failures", "5", "--times", "2"]
    line = [sys.executable, "-m", "faults.real", "--json", "--folder", str(tmp_path), *words]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), str(ROOT)])}
    done = subprocess.run(line, capture_output=True, text=True, env=environment)
    if done.returncode == CANNOT_TRACE:
        pytest.skip(f"system calls cannot be traced here: {done.stdout.strip()}")
    assert done.stdout, done.stderr[-3000:]
    found = json.loads(done.stdout)
    [[_, calls, kills, failures, times]] = found["rows"]
    with capsys.disabled():
        print(
            f"\n{command}: {calls} changing system calls, all seen by the seam; a real process killed at {kills} of "
            f"them, failed at {failures}, killed at {times} times"
        )
    assert found["missed"] == []
    assert found["bad"] == []
    assert calls > 60
