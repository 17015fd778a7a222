"""One way to run a foreign program: bounded in time, its whole process group ended with it."""

from __future__ import annotations

import contextlib
import contextvars
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any, ParamSpec, TypeVar

from patchkit.runtime.ledger import open_regular
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
#: What is kept in memory of what a program printed into files.
TAIL_BYTES = 16 * 1024
#: Seconds that processes take at most to be gone once they were killed.
GROUP_SECONDS = 10.0


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

    with _started(arguments, environ, cwd, **dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)) as process:
        try:
            out, err = _communicate(process, data, timeout, tick)
        except subprocess.TimeoutExpired:
            _end(process)
            try:
                out, err = process.communicate(timeout=2)
            except subprocess.TimeoutExpired:
                out, err = b"", b""
            return Completed(None, out, err)
    return Completed(process.returncode, out, err)


def run_logged(
    arguments: Sequence[str],
    *,
    log: str,
    out: str | None = None,
    timeout: float,
    cwd: str | None = None,
    environ: Mapping[str, str] | None = None,
    tick: Callable[[], None] | None = None,
) -> Completed:
    """Run a program that may print without end; when this returns or raises, no process of its group is left.

    Args:
        arguments: The program and its arguments; its standard input is empty.
        log: The file that takes what it prints, as it comes.
        out: A file that takes its standard output alone; the lines of that are copied to ``log`` every second.
        timeout: Seconds after which it is ended.
        cwd: Its working directory.
        environ: Its environment variables; this process's own by default.
        tick: Called every second while it runs.

    Returns:
        The end of it; as ``out`` and ``err`` only the last ``TAIL_BYTES`` of ``out`` and ``log``.

    Raises:
        OSError: It cannot be started, or a file cannot be written.
    """
    import subprocess
    import time

    with contextlib.ExitStack() as stack:
        for path in (log, *([] if out is None else [out])):
            open(path, "wb").close()
        told = stack.enter_context(open(log, "ab", buffering=0))  # the program appends to it as well
        printed = told if out is None else stack.enter_context(open(out, "ab", buffering=0))
        copied = None if out is None else stack.enter_context(open_regular(out))
        until = time.monotonic() + timeout
        status: int | None = None
        with _started(arguments, environ, cwd, stdin=subprocess.DEVNULL, stdout=printed, stderr=told) as process:
            try:
                while status is None and time.monotonic() < until:
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        status = process.wait(min(TICK_SECONDS, max(0.0, until - time.monotonic())))
                    if status is None and copied is not None:
                        _copy_lines(copied, told, to_the_end=False)
                    if status is None and tick is not None:
                        tick()
            finally:
                _end(process)
                process.wait()
                _await_group(process.pid)
                complained = _tail(log)  # before what it printed last, which tells less
                if copied is not None:
                    _copy_lines(copied, told, to_the_end=True)
    return Completed(status, b"" if out is None else _tail(out), complained)


def _copy_lines(source: IO[bytes], target: IO[bytes], *, to_the_end: bool) -> None:
    """Append what ``source`` has more, in whole lines unless it is the end; a line without end goes in pieces."""
    while data := source.read(TAIL_BYTES):
        whole = data.rfind(b"\n") + 1
        if len(data) < TAIL_BYTES and not to_the_end:
            source.seek(whole - len(data), os.SEEK_CUR)
            target.write(data[:whole])
            return
        target.write(data)


def _tail(path: str) -> bytes:
    with open_regular(path) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
        return file.read()


def _await_group(leader: int) -> None:
    """Wait until no process of an ended group is left: what they held (a device, a port) is free then."""
    import time

    until = time.monotonic() + GROUP_SECONDS
    while _lives(leader) and time.monotonic() < until:
        time.sleep(0.02)


def _lives(leader: int) -> bool:
    """Whether a group has a process that is more than an entry in its parent's books."""
    if sys.platform == "win32":
        return False
    try:
        os.killpg(leader, 0)
    except OSError:
        return False
    states = [_state(name, leader) for name in os.listdir("/proc") if name.isdigit()] if os.path.isdir("/proc") else []
    return not states or any(states)


def _state(pid: str, leader: int) -> bool:
    """Whether a process is one of the group, and runs."""
    try:
        with open_regular(f"/proc/{pid}/stat") as file:
            state, _, group = file.read().rpartition(b")")[2].split()[:3]
    except (OSError, ValueError):
        return False
    return int(group) == leader and state not in (b"Z", b"X")


@contextlib.contextmanager
def _started(
    arguments: Sequence[str], environ: Mapping[str, str] | None, cwd: str | None, **streams: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """The program, as one of the group under way; ended where its user fails."""
    import subprocess

    environment = dict(os.environ if environ is None else environ)
    # macOS framework builds take their identity from this variable, which is the host's and not the target's.
    environment.pop("__PYVENV_LAUNCHER__", None)
    process = subprocess.Popen(
        list(arguments), env=environment, cwd=cwd, start_new_session=sys.platform != "win32", **streams
    )
    group = _GROUP.get()
    try:
        if group is not None:
            group._began(process)
        yield process
    except BaseException:
        _end(process)
        raise
    finally:
        if group is not None:
            group._left(process)


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
