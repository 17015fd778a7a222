"""A command line in a process of its own that the system ends when it takes too much."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MEMORY = 3 << 30
#: No measure of speed: some take five on a machine with nothing else to do; without their bounds, an hour or for ever.
PROCESSOR_SECONDS = int(os.environ.get("PATCHKIT_TEST_PROCESSOR_SECONDS", "200"))


def bounded(*arguments: str, cwd: Path, seconds: float = 600) -> subprocess.CompletedProcess[str]:
    """A command line; on Windows, where there are no such limits, only the time counts.

    Args:
        arguments: What follows ``patchkit``.
        cwd: The folder that it runs in.
        seconds: For what would wait without taking processor time.
    """
    command = [sys.executable, "-m", "patchkit", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    limit = None if sys.platform == "win32" else _limit
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        cwd=cwd,
        env=environment,
        preexec_fn=limit,
        timeout=seconds,
        check=False,
    )


def _limit() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS))
