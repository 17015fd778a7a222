"""Runs a program and lets none of it be left; a script of the standard library alone.

``python keeper.py LOG GRACE PROGRAM ARGUMENT...``: the program gets a session of its own, and its output goes to the
file LOG. It is ended when standard input ends, and so also when whoever started this was killed: SIGTERM to its process
group, SIGKILL after GRACE seconds, and to whatever of its descendants left the group as well (on Linux). The status is
the program's own; 124 where it had to be ended.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import selectors
import signal
import subprocess
import sys
import time

#: Seconds between two looks at whether the program has ended.
LOOK = 0.2
#: Linux: orphans below become children of this process.
PR_SET_CHILD_SUBREAPER = 36


def adopt() -> None:
    """Become the parent of every descendant that loses its own."""
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children() -> list[int]:
    """The processes whose parent this is; none where the system does not tell."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            return [int(word) for word in file.read().split()]
    except (OSError, ValueError):
        return []


def signal_all(group: int, number: int) -> None:
    """Send a signal to the group, if there is one."""
    with contextlib.suppress(OSError):
        os.killpg(group, number)


def end(process: subprocess.Popen[bytes], grace: float) -> None:
    """End the program with all that it started."""
    until = time.monotonic() + grace
    signal_all(process.pid, signal.SIGTERM)
    while time.monotonic() < until and process.poll() is None:
        time.sleep(LOOK / 4)
    signal_all(process.pid, signal.SIGKILL)
    process.wait()
    sweep()


def sweep() -> None:
    """Kill and reap what is left below this process, until nothing is."""
    for _ in range(50):
        left = children()
        if not left:
            return
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def main(log: str, grace: float, command: list[str]) -> int:
    """Run ``command`` until it ends or standard input does."""
    adopt()
    with open(log, "ab", buffering=0) as file:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
            )
        except OSError as error:
            file.write(f"{command[0]} cannot be started: {error.strerror}\n".encode())
            return 127
    ended = False

    def stop(number: int, frame: object) -> None:
        nonlocal ended
        ended = True

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, stop)
    with selectors.DefaultSelector() as selector:
        selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
        while process.poll() is None and not ended:
            if selector.select(LOOK) and not os.read(sys.stdin.fileno(), 4096):
                ended = True
    if process.poll() is None:
        end(process, grace)
        return 124
    end(process, 0)
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2]), sys.argv[3:]))
