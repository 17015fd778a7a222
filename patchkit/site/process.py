"""One way to run a foreign program: bounded in time, its whole process group ended with it."""

from __future__ import annotations

import contextlib
import contextvars
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    import subprocess

P = ParamSpec("P")
R = TypeVar("R")


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


class Group:
    """Programs that are ended together, from whatever thread each was started."""

    def __init__(self) -> None:
        """Hold none yet."""
        import threading

        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._ended = False

    def call(self, function: Callable[P, R], *arguments: P.args, **options: P.kwargs) -> R:
        """Call ``function``: each program that it runs is one of these."""
        context = contextvars.copy_context()
        context.run(_GROUP.set, self)
        return context.run(function, *arguments, **options)

    def end(self) -> None:
        """End those that run; those that are still to be started end at once."""
        with self._lock:
            self._ended = True
            for process in self._running:
                _end(process)

    def _began(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._running.add(process)
            if self._ended:
                _end(process)

    def _left(self, process: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._running.discard(process)


_GROUP: contextvars.ContextVar[Group | None] = contextvars.ContextVar("group", default=None)


#: Seconds between two calls of ``tick``.
TICK_SECONDS = 1.0


def run(
    arguments: Sequence[str],
    *,
    data: bytes = b"",
    timeout: float,
    cwd: str | None = None,
    environ: Mapping[str, str] | None = None,
    tick: Callable[[], None] | None = None,
) -> Completed:
    """Run a program with ``data`` on its standard input.

    Args:
        arguments: The program and its arguments.
        data: What it reads.
        timeout: Seconds after which it is ended.
        cwd: Its working directory.
        environ: Its environment variables; this process's own by default.
        tick: Called every second while it runs.

    Raises:
        OSError: It cannot be started.
    """
    import subprocess

    environment = dict(os.environ if environ is None else environ)
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
    group = _GROUP.get()
    try:
        if group is not None:
            group._began(process)
        out, err = _communicate(process, data, timeout, tick)
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
    finally:
        if group is not None:
            group._left(process)
    return Completed(process.returncode, out, err)


def _communicate(
    process: subprocess.Popen[bytes], data: bytes, timeout: float, tick: Callable[[], None] | None
) -> tuple[bytes, bytes]:
    import subprocess
    import time

    if tick is None:
        return process.communicate(data, timeout=timeout)
    until = time.monotonic() + timeout
    rest: bytes | None = data
    while True:
        try:
            return process.communicate(rest, timeout=min(TICK_SECONDS, max(0.0, until - time.monotonic())))
        except subprocess.TimeoutExpired:
            if time.monotonic() >= until:
                raise
            rest = None  # communicate keeps what it has not sent yet, and takes no more
            tick()


def _end(process: subprocess.Popen[bytes]) -> None:
    if sys.platform != "win32":
        import signal

        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
