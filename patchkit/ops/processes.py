"""What Linux tells of a running process and its descendants, from outside: nothing is attached, nothing is stopped."""

from __future__ import annotations

import os

from patchkit.errors import UsageError
from patchkit.runtime.ledger import read_regular
from patchkit.runtime.probe import FOLDER_VARIABLE
from patchkit.tuples import NamedTuple

PROC = "/proc"
"""Where Linux shows its processes."""


class Process(NamedTuple):
    """One process. ``started`` is in seconds since the epoch, ``ticks`` the same in clock ticks since boot.

    ``pids`` are its numbers from here inwards (it has one in each PID namespace); ``folder`` is the folder of its
    probes as seen from here, None where its environment at its start names none; ``readable`` is False where that
    environment may not be read; ``python`` tells whether it runs Python, None where that may not be seen.
    """

    pid: int
    parent: int
    pids: frozenset[int]
    ticks: int
    started: float
    executable: str
    title: str
    folder: str | None
    readable: bool
    python: bool | None


def tree_of(pid: int, proc: str = PROC) -> list[Process]:
    """The process ``pid`` and all its descendants, parents first.

    Args:
        pid: A process.
        proc: The mount of the process file system.

    Raises:
        UsageError: ``pid-unsupported``: this system has none; ``no-process``: there is no such process.
    """
    if not os.path.isfile(os.path.join(proc, "stat")):
        raise UsageError(
            f"--pid {pid}: needs {proc}, which only Linux has",
            code="pid-unsupported",
            hint=f"start the job with {FOLDER_VARIABLE}=DIR and ask with `patchkit live --probes DIR`",
        )
    boot = _boot(proc)
    stats = {}
    for name in os.listdir(proc):
        if name.isdigit():
            stat = _stat(proc, name)
            if stat is not None:
                stats[int(name)] = stat
    if pid not in stats:
        raise UsageError(
            f"--pid {pid}: there is no such process",
            code="no-process",
            hint=f"for a job that has ended: `patchkit live --probes DIR`, with its ${FOLDER_VARIABLE}",
            details={"pid": pid},
        )
    children: dict[int, list[int]] = {}
    for one, (parent, _, _) in sorted(stats.items()):
        children.setdefault(parent, []).append(one)
    order = [pid]
    for one in order:
        order += [child for child in children.get(one, ()) if child not in order]
    return [_look(proc, one, *stats[one], boot) for one in order]


def _look(proc: str, pid: int, parent: int, ticks: int, comm: str, boot: float) -> Process:
    folder, readable = _folder(proc, pid)
    executable = _link(proc, pid, "exe")
    python: bool | None = None
    if executable:
        python = "python" in os.path.basename(executable).lower() or "libpython" in _text(proc, str(pid), "maps")
    pids = {pid}
    for line in _text(proc, str(pid), "status").splitlines():
        if line.startswith("NSpid:"):
            pids.update(int(word) for word in line.split()[1:] if word.isdigit())
    started = boot + ticks / os.sysconf("SC_CLK_TCK")
    return Process(pid, parent, frozenset(pids), ticks, started, executable, comm, folder, readable, python)


def _folder(proc: str, pid: int) -> tuple[str | None, bool]:
    """The folder of its probes, by the environment that it was started with, and whether that may be read."""
    try:
        data = read_regular(os.path.join(proc, str(pid), "environ"))
    except OSError:
        return None, False
    mark = FOLDER_VARIABLE.encode() + b"="
    for item in data.split(b"\0"):
        if item.startswith(mark):
            folder = os.fsdecode(item[len(mark) :])
            if not folder:
                break
            # A container's paths are under its own root; its working directory is shown as seen from here.
            root = _link(proc, pid, "root")
            if os.path.isabs(folder):
                inside = root not in ("", "/")
                return os.path.join(proc, str(pid), "root", folder.lstrip("/")) if inside else folder, True
            return os.path.join(_link(proc, pid, "cwd") or os.path.join(proc, str(pid), "cwd"), folder), True
    return None, True


def _boot(proc: str) -> float:
    for line in _text(proc, "stat").splitlines():
        if line.startswith("btime "):
            return float(line.split()[1])
    return 0.0


def _stat(proc: str, name: str) -> tuple[int, int, str] | None:
    """(parent, start in ticks, name); None for a process that has ended."""
    head, _, rest = _text(proc, name, "stat").rpartition(")")
    fields = rest.split()
    if len(fields) < 20 or fields[0] in ("Z", "X"):
        return None
    return int(fields[1]), int(fields[19]), head.partition("(")[2]


def _text(proc: str, *names: str) -> str:
    try:
        return read_regular(os.path.join(proc, *names)).decode("utf-8", "replace")
    except OSError:
        return ""


def _link(proc: str, pid: int, name: str) -> str:
    try:
        return os.readlink(os.path.join(proc, str(pid), name)).removesuffix(" (deleted)")
    except OSError:
        return ""
