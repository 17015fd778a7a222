"""A rig's folder: what is done in it, written down step by step."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from patchkit.errors import SiteError, UsageError
from patchkit.runtime.ledger import read_regular
from patchkit.tuples import NamedTuple

_FILE = "rig.json"
_SCHEMA = 1
#: The steps of a creation, in order.
STEPS = ("environment", "torch", "libraries", "stack", "engine", "patches", "model", "trial")


class Rig(NamedTuple):
    """A rig. ``done`` has the digest of what each finished step did."""

    folder: str
    version: str
    done: Mapping[str, str]

    @property
    def environment(self) -> str:
        """The virtual environment's folder."""
        return os.path.join(self.folder, "env")

    @property
    def python(self) -> str:
        """The environment's interpreter."""
        scripts, name = ("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")
        return os.path.join(self.environment, scripts, name)

    @property
    def model(self) -> str:
        """The tiny model's folder."""
        return os.path.join(self.folder, "model")


def read_rig(folder: str) -> Rig | None:
    """The rig in a folder; None where there is none, and the folder is empty or missing.

    Raises:
        UsageError: ``no-rig``: the folder holds something else.
        SiteError: ``rig-state``: its record is damaged.
    """
    path = os.path.join(folder, _FILE)
    try:
        data = read_regular(path)
    except FileNotFoundError:
        if os.path.isdir(folder) and os.listdir(folder):
            raise UsageError(
                f"{folder} is not empty, and no rig",
                code="no-rig",
                hint="name a folder of its own for the rig",
                details={"path": folder},
            ) from None
        return None
    try:
        document = json.loads(data)
        if document["schema"] != _SCHEMA:
            raise ValueError(f"schema {document['schema']}")
        return Rig(folder, str(document["version"]), {str(k): str(v) for k, v in dict(document["done"]).items()})
    except (ValueError, KeyError, TypeError) as error:
        raise SiteError(
            f"{path} is damaged: {error}",
            code="rig-state",
            hint="remove the folder and create the rig again",
            details={"path": path},
        ) from None


def open_rig(folder: str) -> Rig:
    """The finished rig in a folder.

    Raises:
        UsageError: ``no-rig``: there is none, or its creation did not end.
        SiteError: ``rig-state``.
    """
    folder = os.path.abspath(folder)
    rig = read_rig(folder)
    missing = [step for step in STEPS if rig is None or step not in rig.done]
    if rig is None or missing:
        what = "there is no rig" if rig is None else f"the rig's creation stopped before its step `{missing[0]}`"
        raise UsageError(
            f"{folder}: {what}",
            code="no-rig",
            hint=f"patchkit rig create {shlex.quote(folder)}" + ("" if rig is None else f" --version {rig.version}"),
            details={"path": folder},
        )
    return rig


@contextmanager
def rig_lock(rig: Rig, notice: Callable[[str], None]) -> Iterator[None]:
    """Hold the rig for one creation or one engine: two at once would read each other's files.

    Args:
        rig: The rig.
        notice: Told that another command is waited for.

    Raises:
        SiteError: ``locked``: it was waited for in vain.
    """
    from patchkit.state.lock import Holder, lock

    def waiting(holder: Holder) -> None:
        notice(f"{rig.folder}: waiting for process {holder.pid or '?'}{holder.elsewhere}, which works on this rig")

    with lock(rig.folder, on_wait=waiting):
        yield


def write_rig(rig: Rig) -> None:
    """Write the record by rename, so that it is whole whenever it is read."""
    document = {"schema": _SCHEMA, "version": rig.version, "done": dict(rig.done)}
    write_file(os.path.join(rig.folder, _FILE), json.dumps(document, indent=1).encode("ascii"))


def write_file(path: str, data: bytes) -> None:
    """Write a file of a rig by rename, with the folders above it."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    temporary = f"{path}.{os.getpid()}.tmp"
    with open(temporary, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
