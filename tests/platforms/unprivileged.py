"""A command line in a process that modes bind: the tests may run as root, whom no mode bits stop.

On Linux root is one who has all capabilities; the process gives them up and is then an ordinary owner of its files.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from concurrency.arena import environment

_CODE = """
import ctypes, os, sys
if hasattr(os, "geteuid") and os.geteuid() == 0:
    class Header(ctypes.Structure):
        _fields_ = [("version", ctypes.c_uint32), ("pid", ctypes.c_int)]
    if ctypes.CDLL(None).capset(ctypes.byref(Header(0x20080522, 0)), (ctypes.c_uint32 * 6)()):
        sys.exit("capset is refused: run the tests as an ordinary user")
os.umask(int(sys.argv.pop(1), 8))
from patchkit.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def unprivileged(root: Path, *words: str, umask: int = 0o022, wait: float = 60.0) -> subprocess.CompletedProcess[str]:
    """Run a command line on ``root/site-packages`` with ``root/patches``, from ``root/work``."""
    if sys.platform != "linux" and hasattr(os, "geteuid") and os.geteuid() == 0:
        pytest.skip("root gives up its rights by capset, which only Linux has: run the tests as an ordinary user")
    options = ["--site", str(root / "site-packages"), "--patches", str(root / "patches")]
    return subprocess.run(
        [sys.executable, "-c", _CODE, oct(umask), *options, *words],
        env=environment(PATCHKIT_WAIT=str(wait)),
        cwd=root / "work",
        capture_output=True,
        text=True,
    )
