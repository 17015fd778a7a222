"""RECORD's word on what files hold now: where nobody patched them, it must be the installer's bytes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from patchkit.errors import SiteError
from patchkit.ops.change import reinstall_command
from patchkit.ops.workspace import Workspace, digest
from patchkit.site.guard import version_matches
from patchkit.site.paths import key_of, resolve_file
from patchkit.site.record import leads_out

if TYPE_CHECKING:
    from patchkit.model.patch import Patch
    from patchkit.site.distribution import Distribution
    from patchkit.site.record import Entry

#: Files are hashed in pieces of this many bytes: some wheels hold libraries of a gigabyte.
_PIECE = 1 << 20


def tainted(workspace: Workspace, patch: Patch, distribution: Distribution) -> str | None:
    """Why ``patch``, which is not applied, could not be: the first of its files that is not as installed, in words.

    Reads the files that the patch edits in this version, and no other. Files that earlier patches of ours changed are
    as they shall be.

    Args:
        workspace: That of the directory which holds the distribution.
        patch: A patch whose guards hold.
        distribution: Its target, from ``workspace``.
    """
    again = f"`{reinstall_command(workspace.site, distribution.name, distribution.version)}`"
    for path in _targets(patch, distribution):
        if distribution.record.entry(path) is None:
            continue  # not the distribution's: a mistake of the patch, which apply explains
        try:
            resolved = resolve_file(distribution, path)
            current = workspace.current(resolved.absolute)
        except SiteError as error:
            return f"{error.message}; {error.hint}" if error.hint else error.message
        if current is None or resolved.entry is None or resolved.entry.matches(current) is not False:
            continue
        known = workspace.ledger.files.get(resolved.key)
        if known is None:
            return (
                f"{path} is not as installed (RECORD's hash), and patchkit did not write it: {again} brings it "
                f"back; or `patchkit apply {patch.name}` when only the ledger was lost"
            )
        if digest(current) not in (known.after.sha256, known.pristine and known.pristine.sha256):
            return (
                f"{path} was edited since patchkit wrote it for another patch: see `patchkit diff`; {again} "
                "brings the release's bytes back"
            )
    return None


def _targets(patch: Patch, distribution: Distribution) -> Iterator[str]:
    seen = set()
    for edit in patch.edits:
        if edit.versions is None or version_matches(edit.versions, distribution.version):
            for path in edit.files:
                if path not in seen:
                    seen.add(path)
                    yield path


def compare(
    found: Iterable[tuple[Workspace, Distribution]], progress: Callable[[str], None]
) -> Iterator[tuple[Distribution, list[str]]]:
    """Each distribution with those of its files that hold neither the bytes of RECORD's hash nor patchkit's.

    Files that are gone, and rows without a hash, are passed over.

    Args:
        found: Distributions, each with the workspace of the directory that holds it.
        progress: Told how far it is, once it takes more than two seconds.
    """
    import time

    begin = told = time.monotonic()
    listed = list(found)
    for number, (workspace, distribution) in enumerate(listed):
        differing = []
        for path, row in distribution.record.entries().items():
            now = time.monotonic()
            if now - begin > 2 and now - told > 1:
                told = now
                progress(f"comparing with RECORD: {distribution.name} ({number + 1} of {len(listed)})")
            if row.digest is not None and not leads_out(path) and not _as_recorded(workspace, distribution, path, row):
                differing.append(path)
        yield distribution, differing


def _as_recorded(workspace: Workspace, distribution: Distribution, path: str, row: Entry) -> bool:
    """True also where the file is gone, cannot be read, or is one that patchkit wrote."""
    absolute = os.path.join(distribution.base, *path.split("/"))
    assert row.digest is not None
    own = _hash(absolute, row.algorithm or "sha256")
    if own is None or own == row.digest.hex():
        return True
    known = workspace.ledger.files.get(key_of(workspace.site, absolute))
    return known is not None and _hash(absolute, "sha256") == known.after.sha256


def _hash(path: str, algorithm: str) -> str | None:
    import hashlib

    try:
        with open(path, "rb") as file:
            state = hashlib.new(algorithm)
            while piece := file.read(_PIECE):
                state.update(piece)
    except (OSError, ValueError):
        return None
    return state.hexdigest()
