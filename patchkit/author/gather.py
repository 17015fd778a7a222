"""What was edited by hand: every file of a distribution that is not as it should be, before and after."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import TYPE_CHECKING

from patchkit.author.mark import check_mark
from patchkit.author.original import Originals
from patchkit.errors import SiteError
from patchkit.ops.workspace import LARGEST_FILE, Workspace, digest
from patchkit.runtime.ledger import open_regular
from patchkit.site.paths import key_of, owners, package_directories
from patchkit.site.record import leads_out
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.site.distribution import Distribution

_BINARY = (".so", ".pyd", ".dll", ".dylib", ".a", ".o", ".exe", ".pyc", ".pyo")
"""Endings of files that are no text; they are not compared, since nobody edits them by hand."""

_LEFTOVERS = ("~", ".orig", ".rej", ".bak", ".swp", ".swo", ".tmp")
"""Endings of what editors and patch tools leave behind."""


class Changed(NamedTuple):
    """A file before and after. ``stacked`` are applied patches that it has; ``before`` is with them."""

    path: str
    before: bytes
    after: bytes
    stacked: tuple[str, ...] = ()


class Gathered(NamedTuple):
    """Changed files, new ones, and what was seen and cannot be part of a patch, each with the reason."""

    changed: list[Changed]
    added: list[tuple[str, bytes]]
    left: list[tuple[str, str]]


def in_site(workspace: Workspace, distribution: Distribution, originals: Originals) -> Gathered:
    """What differs in the site from what the installer, or patchkit, put there.

    Raises:
        SiteError: A file cannot be read, or its original cannot be had (``fetch``).
    """
    found = Gathered([], [], [])
    for path in _own_files(distribution):
        absolute = os.path.join(distribution.base, *path.split("/"))
        key = key_of(workspace.site, absolute)
        entry = workspace.entry_in_force(key)
        current = _read(absolute)
        if current is None:
            if entry is not None or not _never_there(workspace, absolute):
                found.left.append((path, "is gone: a patch cannot remove a file"))
            continue
        if entry is not None:
            if digest(current) != entry.after.sha256 and digest(current) != (entry.pristine and entry.pristine.sha256):
                stacked = tuple(p.name for p in workspace.ledger.patches if key in p.files)
                _note(found, Changed(path, workspace.written(key), current, stacked))
            continue
        if originals.genuine(path, current) is not True:
            before = originals.of(path)
            if before != current:
                _note(found, Changed(path, before, current))
    for path, absolute in _strangers(distribution):
        entry = workspace.ledger.files.get(key_of(workspace.site, absolute))
        if entry is None and not owners(workspace.site, path, distribution.base):
            _note_added(found, path, _read(absolute))
    return found


def in_folder(folder: str, distribution: Distribution, originals: Originals) -> Gathered:
    """What differs in a scratch copy (``patchkit edit``) from the pristine distribution.

    Raises:
        SiteError: ``not-a-copy``: the folder holds no file of the distribution; or as :func:`in_site`.
    """
    check_mark(folder, distribution)
    found = Gathered([], [], [])
    listed = list(_own_files(distribution))
    there = [path for path in listed if os.path.isfile(os.path.join(folder, *path.split("/")))]
    if not there:
        raise SiteError(
            f"{folder}: holds no file of {distribution.name} {distribution.version} at its place",
            code="not-a-copy",
            hint=f"make a copy with: patchkit edit {distribution.name} {folder}",
            details={"path": folder, "distribution": distribution.name},
        )
    for path in listed:
        current = _read(os.path.join(folder, *path.split("/")))
        if current is None:
            if os.path.isfile(os.path.join(distribution.base, *path.split("/"))):
                found.left.append((path, "is gone: a patch cannot remove a file"))
        elif originals.genuine(path, current) is not True:
            before = originals.of(path)
            if before != current:
                _note(found, Changed(path, before, current))
    known = set(listed)
    for top in package_directories(distribution):
        for path, absolute in _walk(folder, top):
            if path not in known:
                _note_added(found, path, _read(absolute))
    return found


def _own_files(distribution: Distribution) -> Iterator[str]:
    """The listed files that a patch can edit: below the base, no metadata, no binary."""
    for path in distribution.record.paths():
        top = path.partition("/")[0]
        if leads_out(path) or path.endswith(_BINARY) or top.endswith((".dist-info", ".egg-info", ".data")):
            continue
        yield path


def _strangers(distribution: Distribution) -> Iterator[tuple[str, str]]:
    """Files in the distribution's own packages that it does not list."""
    listed = set(distribution.record.paths())
    for top in package_directories(distribution):
        for path, absolute in _walk(distribution.base, top):
            if path not in listed:
                yield path, absolute


def _walk(base: str, top: str) -> Iterator[tuple[str, str]]:
    for directory, folders, names in os.walk(os.path.join(base, top)):
        folders[:] = sorted(name for name in folders if name != "__pycache__" and not name.startswith("."))
        for name in sorted(names):
            if not name.startswith(".") and not name.endswith((*_BINARY, *_LEFTOVERS)):
                absolute = os.path.join(directory, name)
                yield os.path.relpath(absolute, base).replace(os.sep, "/"), absolute


def _never_there(workspace: Workspace, absolute: str) -> bool:
    """Whether a listed file that is not there may never have been: its directory is not there either."""
    return not os.path.isdir(os.path.dirname(absolute))


def _read(absolute: str) -> bytes | None:
    """The bytes of a regular file; None where there is none.

    Raises:
        SiteError: ``unreadable``.
    """
    try:
        status = os.stat(absolute)
        if not stat.S_ISREG(status.st_mode):
            return None
        if status.st_size > LARGEST_FILE:
            return b"\0"  # told as no text, which a file of that size is not
        with open_regular(absolute) as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise SiteError(
            f"{absolute}: cannot be read: {error.strerror}",
            code="unreadable",
            hint="check the file and your permissions",
            details={"path": absolute},
        ) from None


def _note(found: Gathered, change: Changed) -> None:
    if b"\0" in change.after[:8192] or b"\0" in change.before[:8192]:
        found.left.append((change.path, "is not a text file"))
    else:
        found.changed.append(change)


def _note_added(found: Gathered, path: str, data: bytes | None) -> None:
    if data is None:
        return
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        found.left.append((path, "is a new file that is not UTF-8 text"))
        return
    if b"\0" in data or b"\r" in data:
        found.left.append((path, "is a new file with NUL bytes or carriage returns, which a patch file cannot hold"))
    else:
        found.added.append((path, data))
