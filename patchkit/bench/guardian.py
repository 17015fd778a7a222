"""Who puts the site back when ``rebench`` is killed: a small process of its own session, which waits for its end.

It holds the reading end of a pipe whose other end only ``rebench`` has. However that process ends, the pipe ends with
it: then the engine's processes are ended, and the site is put back as the mark says, by the same operations.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from patchkit.ops.experiment import Who, read_mark, settle, ticks_of
from patchkit.runtime.ledger import read_regular
from patchkit.runtime.probe import FOLDER_VARIABLE
from patchkit.site.process import Group

if TYPE_CHECKING:
    from patchkit.site.environment import Site

DONE = b"done\n"
LOG = "guardian.log"
SECONDS = 20.0
"""That the engine's processes take at most to be gone once they were killed."""
_CODE = "import sys; sys.path.insert(0, sys.argv[1]); from patchkit.bench.guardian import main; main(sys.argv[2])"
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Guardian:
    """The process, seen from ``rebench``."""

    def __init__(self, site: Site, folder: str, token: str) -> None:
        """Start it.

        Args:
            site: The site, at the home that the mark is in.
            folder: Of the session.
            token: Of the mark.
        """
        told = {
            "python": site.interpreter.executable if site.interpreter is not None else None,
            "home": site.home,
            "folder": folder,
            "token": token,
        }
        reading, self._pipe = os.pipe()
        try:
            with open(os.path.join(folder, LOG), "ab") as log:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _CODE, _PACKAGE, json.dumps(told)],
                    stdin=reading,
                    stdout=log,
                    stderr=log,
                    start_new_session=sys.platform != "win32",
                )
        finally:
            os.close(reading)
        self.group = _Told(self._pipe)

    @property
    def who(self) -> Who:
        """Its number, for the mark."""
        return Who(self._process.pid, ticks_of(self._process.pid))

    def dismiss(self) -> None:
        """All is as it is to be: let it go."""
        with contextlib.suppress(OSError):
            os.write(self._pipe, DONE)
        self.abandon()

    def abandon(self) -> None:
        """Leave the rest to it."""
        with contextlib.suppress(OSError):
            os.close(self._pipe)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(60)


class _Told(Group):
    """The engine's programs, of which the guardian is told as soon as they run."""

    def __init__(self, pipe: int) -> None:
        super().__init__()
        self._pipe = pipe

    def _began(self, process: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(OSError):
            os.write(self._pipe, f"+{process.pid}\n".encode())
        super()._began(process)

    def _left(self, process: subprocess.Popen[bytes]) -> None:
        super()._left(process)
        with contextlib.suppress(OSError):
            os.write(self._pipe, f"-{process.pid}\n".encode())


def main(argument: str) -> None:
    """Wait for the end of ``rebench``; put the site back where it did not."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # whoever ends the session's terminal does not mean this one
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    told = json.loads(argument)
    heard = sys.stdin.buffer.read()
    if not heard.endswith(DONE):
        end_processes(running(heard), told["folder"])
        _put_back(told)


def running(heard: bytes) -> set[int]:
    """The groups of processes that had begun and not ended, by what was told of them."""
    groups: set[int] = set()
    for line in heard.split(b"\n"):
        if line[1:].isdigit():
            (groups.add if line[:1] == b"+" else groups.discard)(int(line[1:]))
    return groups


def end_processes(groups: Iterable[int], folder: str) -> bool:
    """End those groups, and (Linux) every process whose probes go below ``folder``, whatever group it is in.

    Returns:
        Whether there was any of the latter.
    """
    import time

    for group in groups:
        with contextlib.suppress(OSError):
            if sys.platform != "win32" and _of_session(group, folder):
                os.killpg(group, signal.SIGKILL)
    until, any_found = time.monotonic() + SECONDS, False
    while time.monotonic() < until:
        found = [int(name) for name in _processes() if _of_session(int(name), folder)]
        if not found:
            break
        any_found = True
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    return any_found


def _processes() -> list[str]:
    return [name for name in os.listdir("/proc") if name.isdigit()] if os.path.isdir("/proc/self") else []


def _of_session(pid: int, folder: str) -> bool:
    """Whether a process was started for the session; where the system does not tell: yes, its number was told."""
    if not os.path.isdir("/proc/self"):
        return True
    try:
        data = read_regular(f"/proc/{pid}/environ")
    except OSError:
        return False
    return any(item.startswith(f"{FOLDER_VARIABLE}={folder}{os.sep}".encode()) for item in data.split(b"\0"))


def _put_back(told: Mapping[str, Any]) -> None:
    from patchkit.errors import PatchkitError
    from patchkit.site.environment import resolve

    try:
        mark = read_mark(told["home"])
        if mark is None or mark.token != told["token"]:
            return
        site = resolve(told["python"], None if told["python"] else told["home"]).at(told["home"])
        settle(site, mark, _say)
    except PatchkitError as error:
        _say(f"{error.message}\n{error.hint}")
        raise SystemExit(error.exit_status) from None


def _say(*words: str) -> None:
    print(*words, flush=True)


def said(folder: str) -> Sequence[str]:
    """What the guardian of a session wrote, in lines."""
    try:
        return read_regular(os.path.join(folder, LOG)).decode("utf-8", "replace").splitlines()
    except OSError:
        return ()
