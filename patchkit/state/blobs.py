"""Bytes kept by their SHA-256 in ``.patchkit/blobs``: pristine and patched files, and patch files."""

from __future__ import annotations

import os
from collections.abc import Collection

from patchkit.errors import SiteError
from patchkit.runtime.ledger import sha256_hex, state_path
from patchkit.state import fs

_TEMPORARY = ".tmp-"


def blob_path(home: str, sha256: str) -> str:
    """Where the blob with that hash lies, or would."""
    return state_path(home, "blobs", sha256)


def put(home: str, data: bytes, *, mode: int = 0o644) -> str:
    """Keep ``data``; one that is there already is verified, and replaced where it is damaged.

    ``mode`` is for a new blob: those of a private file must not be readable by everyone. The name is durable only after
    :func:`flush`.

    Returns:
        The SHA-256 in hex.

    Raises:
        OSError: With its path.
    """
    sha256 = sha256_hex(data)
    path = blob_path(home, sha256)
    try:
        if fs.read_file(path) == data:
            return sha256
    except FileNotFoundError:
        pass
    directory = os.path.dirname(path)
    for part in (os.path.dirname(directory), directory):
        if not os.path.isdir(part):
            fs.mkdir(part, fs.open_like(home, folder=True))
    temporary = os.path.join(directory, f"{_TEMPORARY}{sha256}")
    fs.unlink(temporary, missing_ok=True)
    fs.write_new(temporary, data, fs.Meta(like=fs.Like(mode, 0o044)), mode=mode)  # whatever the umask
    fs.own_like(temporary, directory)
    fs.replace(temporary, path)
    return sha256


def flush(home: str) -> None:
    """Make the names of the blobs put so far last through a power cut."""
    directory = state_path(home, "blobs")
    if os.path.isdir(directory):
        fs.fsync_dir(directory)


def has(home: str, sha256: str) -> bool:
    """Whether a blob of that name is there (its bytes are not read)."""
    return os.path.isfile(blob_path(home, sha256))


def get(home: str, sha256: str, *, what: str = "") -> bytes:
    """The bytes of a blob, verified. ``what`` says in messages whose they are.

    Raises:
        SiteError: ``corrupt``: missing, unreadable, or not the bytes its name says.
    """
    path = blob_path(home, sha256)
    label = f" ({what})" if what else ""
    try:
        data = fs.read_file(path)
    except FileNotFoundError:
        problem = "missing"
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
    else:
        found = sha256_hex(data)
        if found == sha256:
            return data
        problem = f"damaged: its SHA-256 is {found}"
    from patchkit.state import salvage

    raise SiteError(
        f"{path}{label}: {problem}",
        code="corrupt",
        hint=salvage.advice(home, sha256),
        details={"path": path, "sha256": sha256},
    )


def names(home: str) -> list[str]:
    """The blobs that are there."""
    try:
        found = os.listdir(state_path(home, "blobs"))
    except (FileNotFoundError, NotADirectoryError):
        return []
    return sorted(name for name in found if not name.startswith(_TEMPORARY))


def collect(home: str, keep: Collection[str]) -> list[str]:
    """Remove every blob not in ``keep``, and temporary files; the directory as well when nothing is left.

    Returns:
        The names removed.
    """
    directory = state_path(home, "blobs")
    try:
        names = sorted(os.listdir(directory))
    except FileNotFoundError:
        return []
    gone = [name for name in names if name not in keep and fs.unlink(os.path.join(directory, name), missing_ok=True)]
    if len(gone) == len(names):
        fs.rmdir(directory)
    return gone
