"""One way to run a foreign program: bounded in time, its whole process group ended with it."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    import subprocess


class Completed(NamedTuple):
    """How a program ended. ``status`` is negative (a signal's number) or None when it was ended for being too slow."""

    status: int | None
    out: bytes
    err: bytes

    def said(self, limit: int = 8) -> str:
        """The last ``limit`` lines that it printed, standard error before standard output."""
        text = (self.err.strip() or self.out.strip()).decode("utf-8", "replace")
        return "\n".join(line.rstrip() for line in text.splitlines()[-limit:])

    def last_line(self) -> str:
        """The last line of what it printed."""
        lines = self.said(1).splitlines()
        return lines[-1].strip() if lines else ""

    def ended(self) -> str:
        """The end in words: an exit status, a signal, or that it did not end."""
        if self.status is None:
            return "did not end in time"
        if self.status < 0:
            return f"was ended by signal {-self.status}"
        return f"ended with status {self.status}"


def run(arguments: Sequence[str], *, data: bytes = b"", timeout: float, cwd: str | None = None) -> Completed:
    """Run a program with ``data`` on its standard input.

    Raises:
        OSError: It cannot be started.
    """
    import subprocess

    environment = dict(os.environ)
    # macOS framework builds take their identity from this variable, which is the host's and not the target's.
    environment.pop("__PYVENV_LAUNCHER__", None)
    process = subprocess.Popen(
        list(arguments),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        cwd=cwd,
        start_new_session=sys.platform != "win32",
    )
    try:
        out, err = process.communicate(data, timeout=timeout)
    except subprocess.TimeoutExpired:
        _end(process)
        try:
            out, err = process.communicate(timeout=2)
        except subprocess.TimeoutExpired:
            out, err = b"", b""
        return Completed(None, out, err)
    except BaseException:
        _end(process)
        raise
    return Completed(process.returncode, out, err)


def _end(process: subprocess.Popen[bytes]) -> None:
    if sys.platform != "win32":
        import signal

        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
