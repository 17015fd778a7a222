"""The history of a site: ``.patchkit/log.jsonl``, one event a line, only ever added to."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from patchkit.runtime.ledger import loads, open_regular, state_path
from patchkit.state import fs


def log_path(home: str) -> str:
    """Where the history of ``home`` lies."""
    return state_path(home, "log.jsonl")


def now() -> str:
    """The time in UTC, ISO form, to the second."""
    import time

    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def stamped(event: Mapping[str, Any], *, files: int, tx: str) -> dict[str, Any]:
    """``event`` with what the log adds: time, count of files, user, process, transaction (its own values prevail)."""
    return {"time": now(), "files": files, "user": _user(), "pid": os.getpid(), "tx": tx, **event}


def append(home: str, event: Mapping[str, Any]) -> None:
    """Add one event. A line that a crash left torn is closed first, so that it spoils only itself.

    Raises:
        OSError: With its path.
    """
    import json

    path = log_path(home)
    line = json.dumps(event, sort_keys=True).encode("ascii") + b"\n"
    try:
        with open_regular(path) as file:
            file.seek(-1, os.SEEK_END)
            torn = file.read(1) != b"\n"
    except OSError:  # none yet, or empty
        torn = False
    fs.append(path, b"\n" + line if torn else line, fs.open_like(home))


def read_log(home: str) -> list[dict[str, Any]]:
    """The events, oldest first; lines that are no JSON object (torn by a crash) are left out.

    Raises:
        OSError: The log is there and cannot be read.
    """
    try:
        data = fs.read_file(log_path(home))
    except (FileNotFoundError, NotADirectoryError):
        return []
    events = []
    for line in data.decode("utf-8", "replace").split("\n"):
        if line.startswith("{"):
            try:
                events.append(loads(line))
            except (ValueError, RecursionError):
                continue
    return events


def _user() -> str:
    """The name of the user, without ``getpass``; a number where the system knows no name."""
    for name in ("SUDO_USER", "USER", "LOGNAME", "USERNAME"):
        if os.environ.get(name):
            return os.environ[name]
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError):
        return str(os.getuid()) if hasattr(os, "getuid") else ""
