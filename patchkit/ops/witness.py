"""RECORD's word on what files hold now: where nobody patched them, it must be the installer's bytes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from patchkit.errors import SiteError
from patchkit.ops.workspace import Workspace, digest, reinstall_command
from patchkit.runtime.ledger import open_regular
from patchkit.site.guard import version_matches
from patchkit.site.paths import key_of, resolve_file, resolve_gone
from patchkit.site.record import leads_out
from patchkit.site.taint import Taints, find_taint

if TYPE_CHECKING:
    from patchkit.model.patch import Patch
    from patchkit.site.distribution import Distribution
    from patchkit.site.environment import Site
    from patchkit.site.paths import ResolvedFile
    from patchkit.site.record import Entry
    from patchkit.site.taint import Taint
    from patchkit.state.ledger import PatchEntry

#: Files are hashed in pieces of this many bytes: some wheels hold libraries of a gigabyte.
_PIECE = 1 << 20


def tainted(workspace: Workspace, patch: Patch, distribution: Distribution) -> str | None:
    """Why ``patch``, which is not applied, could not be: the first of its files that is not as installed, in words.

    Reads the files that the patch edits or takes away in this version, and no other. Files that earlier patches of ours
    changed are as they shall be.

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
            if error.code == "missing":
                if _taken_away(workspace, distribution, path):
                    continue  # as it shall be: what of it apply has to say, it says
                if path in removed_files(patch, distribution):
                    error.hint = f"{error.hint}; {_only_the_ledger(patch.name)}"
            return f"{error.message}; {error.hint}" if error.hint else error.message
        if current is None or resolved.entry is None or resolved.entry.matches(current) is not False:
            continue
        known = workspace.ledger.files.get(resolved.key)
        if known is None or not known.ours(current):
            taint = find_taint(distribution, path, resolved.absolute, lone=may_be_linked(workspace, resolved.key))
            if taint is not None:
                return tainted_words(path, taint)
        if known is None:
            return (
                f"{path} is not as installed (RECORD's hash), and patchkit did not write it: {again} brings it "
                f"back; `patchkit create NAME {distribution.name}` keeps the edit as a patch; "
                f"`patchkit apply {patch.name} --fetch` finds out whether only the ledger was lost"
            )
        if not known.ours(current) and digest(current) != (known.pristine and known.pristine.sha256):
            return (
                f"{path} was edited since patchkit wrote it for another patch: see `patchkit diff`; {again} "
                f"brings the release's bytes back, `patchkit create NAME {distribution.name}` keeps the edit as a patch"
            )
    return None


def _only_the_ledger(name: str) -> str:
    """The way on where a removed file's patch was applied, perhaps, and the ledger is lost."""
    return f"where {name} took it away and the ledger is lost, `patchkit apply {name} --fetch` records it again"


def refuse_unrecorded_removal(workspace: Workspace, patch: Patch) -> None:
    """Refuse to call a patch "not applied" that takes a file away, where the file is gone and no ledger says why.

    Raises:
        SiteError: ``missing``.
    """
    distribution = workspace.distribution(patch.target.name)
    if distribution is None:
        return
    for path in removed_files(patch, distribution):
        if resolve_gone(distribution, path) is None or _taken_away(workspace, distribution, path):
            continue
        raise SiteError(
            f"{path}: {distribution.name} {distribution.version} lists this file, {patch.name} takes it away, and it "
            "is not there, though no ledger knows the patch",
            code="missing",
            hint=f"{_only_the_ledger(patch.name)}, then revert it; else install it again: `{distribution.reinstall}`",
            details={"path": path, "patch": patch.name},
        )


def removed_files(patch: Patch, distribution: Distribution) -> list[str]:
    """The files that a patch takes away in the installed version."""
    return [
        path
        for remove in patch.removes
        if remove.versions is None or version_matches(remove.versions, distribution.version)
        for path in remove.files
    ]


def _taken_away(workspace: Workspace, distribution: Distribution, path: str) -> bool:
    """Whether an applied patch took a file away, so that it is no installer's fault that it is not there."""
    gone = resolve_gone(distribution, path)
    entry = None if gone is None else workspace.ledger.files.get(gone.key)
    return entry is not None and entry.after is None


def tainted_words(path: str, taint: Taint) -> str:
    """That a file is tainted, how that is known, and the cure."""
    return f"tainted: {path} is not as installed (RECORD's hash), and {taint.evidence}: {taint.cure}"


def may_be_linked(workspace: Workspace, key: str) -> bool:
    """Whether further hard links of a file, which holds neither the installer's bytes nor ours, may be an installer's.

    Not those of a file that patchkit wrote, or that still holds what it wrote: an edit was made here, by hand, and the
    links came later, with a copy of the environment by ``cp -al``.
    """
    entry = workspace.ledger.files.get(key)
    if entry is None:
        return True
    try:
        own = os.lstat(workspace.absolute(key))
    except OSError:
        return False
    if own.st_nlink < 2 or (entry.stat is not None and own.st_ino == entry.stat.ino):
        return False
    from patchkit.ops.forecast import kept_by_hand

    names = [patch.name for patch in workspace.ledger.patches if key in patch.files]
    return not any(key in kept_by_hand(workspace.site, name) for name in names)


def refuse_tainted(distribution: Distribution, path: str, absolute: str, *, lone: bool = True) -> None:
    """Refuse a file whose bytes, neither the installer's nor patchkit's, lie where it was installed from as well.

    Raises:
        SiteError: ``tainted``.
    """
    taint = find_taint(distribution, path, absolute, lone=lone)
    if taint is not None:
        raise SiteError(
            f"{path}: is tainted: its bytes are not those of {distribution.name} {distribution.version} by RECORD's "
            f"hash, and {taint.evidence}",
            code="tainted",
            hint=f"{taint.cure}; then the same command again",
            details={"path": path, "state": "modified", "source": taint.source},
        )


def not_as_installed(resolved: ResolvedFile, distribution: Distribution, *, added: bool) -> SiteError:
    """The error for a file whose pristine bytes nothing has: ``tainted`` or ``modified``.

    Args:
        resolved: The file.
        distribution: Its distribution.
        added: It has no hash in RECORD, and a patch of ours added it.
    """
    if not added:
        try:
            refuse_tainted(distribution, resolved.path, resolved.absolute)
        except SiteError as error:
            return error
    why = (
        "a patch added it, and no hash of what was installed is recorded"
        if added
        else "its bytes differ from RECORD's hash, and patchkit did not write them"
    )
    if not added:
        for other in _bytes_of(resolved, distribution):
            return SiteError(
                f"{resolved.path}: {distribution.name} {distribution.version} and {other.name} {other.version} both "
                f"install it, and its bytes are those of {other.name}",
                code="modified",
                hint=f"make {other.name} the target of the patch; or uninstall it, and install {distribution.name} "
                f"again: `{distribution.reinstall}`",
                details={"path": resolved.path, "state": "modified", "owners": [distribution.name, other.name]},
            )
    again = reinstall_command(distribution.site, distribution.name, distribution.version)
    return SiteError(
        f"{resolved.path}: is not as {distribution.name} {distribution.version} was installed: {why}",
        code="modified",
        hint="somebody edited it, or the package cache it was installed from was written through: "
        f"`{again}`, then apply again; --fetch compares with the released wheel; to keep the edit: "
        f"`patchkit create NAME {distribution.name}`",
        details={"path": resolved.path, "state": "modified", "links": os.stat(resolved.absolute).st_nlink},
    )


def _bytes_of(resolved: ResolvedFile, distribution: Distribution) -> Iterator[Distribution]:
    """The other distributions whose RECORD has the file with the hash of what it holds."""
    from patchkit.site.paths import shared_with

    others = shared_with(distribution, [resolved.path]).get(resolved.path, ())
    for other in others:
        row = other.record.entry(resolved.path)
        with open_regular(resolved.absolute) as file:
            if row is not None and row.matches(file.read()) is True:
                yield other


def patched_files(workspace: Workspace, distribution: Distribution, keys: Iterable[str]) -> list[tuple[str, str]]:
    """Those of the ledger's files that hold what patchkit writes, as RECORD spells them and as they lie."""
    found = []
    for key in keys:
        entry = workspace.ledger.files.get(key)
        absolute = workspace.absolute(key)
        if entry is not None and entry.after is not None and _hash(absolute, "sha256") == entry.after.sha256:
            found.append((os.path.relpath(absolute, distribution.base).replace(os.sep, "/"), absolute))
    return found


def tainted_file(workspace: Workspace, recorded: PatchEntry) -> str | None:
    """The first file of an applied patch that an installer brought with wrong bytes, in words."""
    distribution = workspace.distribution(recorded.distribution)
    if distribution is None:
        return None
    taints = Taints(distribution)
    for key in recorded.files:
        entry, absolute = workspace.ledger.files.get(key), workspace.absolute(key)
        contents = () if entry is None else (entry.after, entry.pristine)
        known = [content.sha256 for content in contents if content is not None]
        current = _hash(absolute, "sha256")
        if current is None or current in known or workspace.reinstalled(key):
            continue
        path = os.path.relpath(absolute, distribution.base).replace(os.sep, "/")
        taint = taints.find(path, absolute, lone=may_be_linked(workspace, key))
        if taint is not None:
            return tainted_words(path, taint)
    return None


def notes_in_place(workspace: Workspace, recorded: PatchEntry, *, brief: bool = False) -> list[str]:
    """What is to be said of an applied patch although every byte is as it shall be; ``brief``: of one tainted file."""
    from patchkit.ops.outcome import shadow_notes

    distribution = workspace.distribution(recorded.distribution)
    if distribution is None:
        return []
    files = patched_files(workspace, distribution, recorded.files)
    shadowed = shadow_notes(distribution, (path for path, _ in files))
    return [*shadowed, *taint_notes(distribution, files, brief=brief)]


def taint_notes(distribution: Distribution, files: Iterable[tuple[str, str]], *, brief: bool = False) -> list[str]:
    """A note for each (path, absolute) that holds what a patch writes, where what it was installed from does, too.

    With ``brief``, for the first alone: the cure is the same for all.
    """
    notes: list[str] = []
    taints = Taints(distribution)
    for path, absolute in files:
        if brief and notes:
            break
        taint = taints.find(path, absolute, lone=False)
        if taint is not None:
            notes.append(
                f"tainted: {path} holds what the patch writes, and so does what it was installed from: "
                f"{taint.evidence}; {taint.cure}, then `patchkit sync`"
            )
    return notes


def _targets(patch: Patch, distribution: Distribution) -> Iterator[str]:
    seen = set()
    edits = [(edit.files, edit.versions) for edit in patch.edits]
    for files, versions in [*edits, *((remove.files, remove.versions) for remove in patch.removes)]:
        if versions is None or version_matches(versions, distribution.version):
            for path in files:
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
    return known is not None and known.after is not None and _hash(absolute, "sha256") == known.after.sha256


def _hash(path: str, algorithm: str) -> str | None:
    import hashlib

    try:
        with open_regular(path) as file:
            state = hashlib.new(algorithm)
            while piece := file.read(_PIECE):
                state.update(piece)
    except (OSError, ValueError):
        return None
    return state.hexdigest()


def leads_away(site: Site, absolute: str) -> bool:
    """Whether a file of the site lies elsewhere, behind a link: neither in the site nor where uv links to."""
    from patchkit.site.taint import uv_cache

    real = os.path.realpath(absolute)
    inside = (*site.paths, site.home, uv_cache())
    return not any(real.startswith(os.path.join(os.path.realpath(root), "")) for root in inside)


def refuse_foreign_link(workspace: Workspace, absolute: str) -> None:
    """Refuse to show, merge or copy what lies outside of the site behind a link that somebody put in a file's place.

    Raises:
        SiteError: ``leads-out``.
    """
    if leads_away(workspace.site, absolute):
        from shlex import quote

        raise SiteError(
            f"{absolute}: is a link to {os.path.realpath(absolute)} by now, which is no file of this site",
            code="leads-out",
            hint=f"remove the link (rm {quote(absolute)}) and install the distribution again, then `patchkit sync`",
            details={"path": absolute},
        )
