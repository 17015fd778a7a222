"""The files that probes leave in a folder, read back: what each process loaded and ran.

Written by the text of :mod:`patchkit.runtime.probe`, in whatever process; so nothing in them is trusted to be whole.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from patchkit.errors import UsageError
from patchkit.runtime.ledger import plain, read_regular
from patchkit.runtime.probe import RECORD_SCHEMA
from patchkit.tuples import NamedTuple

#: Bytes of the largest file that is read; a probe writes less than 2 kB beside its text.
MAX_BYTES = 1 << 16


class Record(NamedTuple):
    """One probe in one process. Times are seconds since the epoch; ``ran`` is None where it was only loaded.

    ``ticks`` is the start of the process in clock ticks since boot, where the system tells (Linux); ``pid`` and
    ``parent`` are as that process sees them; ``ranks`` are the variables that number the processes of a job. ``path``
    is the module's file, empty where the record does not tell.
    """

    patch: str
    edit: int
    file: str
    function: str
    text: str
    pid: int
    parent: int
    role: str
    title: str
    ranks: Mapping[str, str]
    host: str
    ticks: int | None
    executable: str
    python: str
    module: str
    loaded: float
    ran: float | None
    path: str = ""


_KINDS: dict[str, type] = {
    **dict.fromkeys(("patch", "file", "function", "text", "role", "title", "host", "python", "module"), str),
    **dict.fromkeys(("edit", "pid", "parent"), int),
    "ranks": dict,
}


def read_folder(folder: str, *, missing: bool = False) -> tuple[list[Record], list[str]]:
    """The records in ``folder``, oldest loading first, and what could not be read, in words.

    Args:
        folder: As ``PATCHKIT_PROBES`` named it.
        missing: Whether a folder that is not there counts as an empty one (the job has loaded no probe yet).

    Raises:
        UsageError: ``no-probes-folder``: it is not there, or cannot be listed.
    """
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        if missing and isinstance(error, FileNotFoundError):
            return [], []
        raise UsageError(
            f"{folder}: {error.strerror}",
            code="no-probes-folder",
            hint="name the folder that the job had in $PATCHKIT_PROBES; a job that loads a probed module makes it",
            details={"path": folder},
        ) from None
    records, problems = [], []
    for name in names:
        if not name.endswith(".json"):
            continue  # one that is being written, or somebody else's
        try:
            data = read_regular(os.path.join(folder, name), MAX_BYTES)
        except FileNotFoundError:
            continue
        except OSError as error:
            problems.append(f"{name}: {error.strerror}")
            continue
        record = parse_record(data)
        if record is None:
            problems.append(f"{name}: not a probe's record")
        else:
            records.append(record)
    records.sort(key=lambda record: (record.loaded, record.pid, record.patch, record.edit))
    return records, problems


def parse_record(data: bytes) -> Record | None:
    """The record in the bytes of one file; None where they hold none of this schema."""
    import json

    try:
        value: Any = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if len(data) > MAX_BYTES or type(value) is not dict or value.get("schema") != RECORD_SCHEMA:
        return None
    if any(type(value.get(name)) is not kind for name, kind in _KINDS.items()) or not plain(value["patch"]):
        return None
    loaded, ran, ticks = (value.get(name) for name in ("loaded", "ran", "ticks"))
    executable, path = (value.get(name) for name in ("executable", "path"))
    if not isinstance(loaded, (int, float)) or not isinstance(ran, (int, float, type(None))):
        return None
    try:
        times = float(loaded), None if ran is None else float(ran)
    except OverflowError:
        return None
    return Record(
        **{name: value[name] for name in _KINDS if name != "ranks"},
        ranks={str(name): str(rank) for name, rank in value["ranks"].items()},
        ticks=ticks if type(ticks) is int else None,
        executable=executable if isinstance(executable, str) else "",
        loaded=times[0],
        ran=times[1],
        path=path if isinstance(path, str) else "",
    )
