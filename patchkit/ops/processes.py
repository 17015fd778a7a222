"""What Linux tells of a running process and its descendants, from outside: nothing is attached, nothing is stopped."""

from __future__ import annotations

import os
import stat
import time
from typing import TYPE_CHECKING

from patchkit.errors import UsageError
from patchkit.runtime.ledger import read_regular
from patchkit.runtime.probe import FOLDER_VARIABLE
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

#: ``CAP_DAC_OVERRIDE``: root has it, where nobody took it away.
_MAY_WRITE_ANYWHERE = 1 << 1
PROC = "/proc"
"""Where Linux shows its processes."""


class Process(NamedTuple):
    """One process. ``started`` is in seconds since the epoch, ``ticks`` the same in clock ticks since boot.

    ``pids`` are its numbers from here inwards (it has one in each PID namespace); ``folder`` is the folder of its
    probes as seen from here, None where its environment at its start names none; ``readable`` is False where that
    environment may not be read; ``python`` tells whether it runs Python, None where that may not be seen. ``root`` is
    its root directory as seen from here, where that is another one than here. ``lossy`` says why records of it may be
    elsewhere, or nowhere: then nothing follows from those that are missing.
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
    root: str = ""
    lossy: str | None = None


#: Seconds to which the start of a process is known: one tick of its clock, and the reading of ours.
PRECISION = 0.02


def older(process: Process, since: float) -> bool:
    """Whether a process was started before a moment, in seconds since the epoch."""
    return process.started + PRECISION < since


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
    folder, readable, lossy = _folder(proc, pid)
    root = _link(proc, pid, "root")
    root = "" if root in ("", "/") else os.path.join(proc, str(pid), "root")
    executable = _link(proc, pid, "exe")
    python: bool | None = None
    if executable:
        name = os.path.basename(executable).lower()
        python = "python" in name or "pypy" in name or _embeds(_text(proc, str(pid), "maps"))
    status: dict[str, list[str]] = {}
    for line in _text(proc, str(pid), "status").splitlines():
        name, _, words = line.partition(":")
        status[name] = words.split()
    pids = {pid, *(int(word) for word in status.get("NSpid", ()) if word.isdigit())}
    started = boot + ticks / os.sysconf("SC_CLK_TCK")
    if folder is not None and lossy is None:
        lossy = _unwritable(folder, status)
    about = (executable, comm, folder, readable, python, root, lossy)
    return Process(pid, parent, frozenset(pids), ticks, started, *about)


def _embeds(maps: str) -> bool:
    """Whether a program of another name has Python in it, or its modules, by the files that it has in its memory."""
    return any(mark in maps for mark in ("libpython", "libpypy", "/lib-dynload/", "/site-packages/", "/dist-packages/"))


def _unwritable(folder: str, status: Mapping[str, list[str]]) -> str | None:
    """Why a process cannot write into its folder for records, by its status as ``/proc`` shows it; None: it can."""
    place = folder
    while not os.path.lexists(place) and place not in ("", "/"):
        place = os.path.dirname(place)
    try:
        found, disk = os.stat(place), os.statvfs(place)
    except OSError as error:
        return f"{place}: {error.strerror}"
    if not stat.S_ISDIR(found.st_mode):
        return f"{place} is no folder, so that its probes left no record"
    if disk.f_flag & os.ST_RDONLY:
        return f"{place} is read-only, so that its probes left no record"
    if not disk.f_bavail or (disk.f_files and not disk.f_favail):
        return f"the disk of {place} is full, so that records may be lost"
    try:
        user, groups = int(status["Uid"][3]), {int(word) for word in (status["Gid"][3], *status["Groups"])}
        if int(status["CapEff"][0], 16) & _MAY_WRITE_ANYWHERE:
            return None
    except (KeyError, IndexError, ValueError):
        return None
    shift = 6 if user == found.st_uid else 3 if found.st_gid in groups else 0
    if found.st_mode >> shift & 0o3 != 0o3:
        return f"it may not write to {place}, so that its probes left no record"
    return None


def _folder(proc: str, pid: int) -> tuple[str | None, bool, str | None]:
    """The folder of its probes, by the environment that it was started with; whether that may be read; a doubt."""
    try:
        data = read_regular(os.path.join(proc, str(pid), "environ"))
    except OSError:
        return None, False, None
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
                return os.path.join(proc, str(pid), "root", folder.lstrip("/")) if inside else folder, True, None
            doubt = (
                f"its {FOLDER_VARIABLE} is {folder}, which each module resolved in the folder that the process was in: "
                "give the whole path"
            )
            return os.path.join(_link(proc, pid, "cwd") or os.path.join(proc, str(pid), "cwd"), folder), True, doubt
    return None, True, None


def _boot(proc: str) -> float:
    """When the system was booted, in seconds since the epoch.

    ``btime`` has whole seconds only, and in some containers it is when the container was.
    """
    if proc == PROC and hasattr(time, "CLOCK_BOOTTIME"):
        return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
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
