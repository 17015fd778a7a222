"""From a planned change to a transaction: the files, the ledger that goes with them, the line in the log."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from patchkit.edit.plan import PatchPlan
from patchkit.errors import PatchkitError, SiteError
from patchkit.model.patch import Patch
from patchkit.ops.change import ChangeSet, FileChange, Wanted
from patchkit.ops.workspace import Workspace, digest
from patchkit.runtime.ledger import file_path, key_of
from patchkit.site.distribution import Distribution
from patchkit.state.ledger import (
    Content,
    FileEntry,
    Ledger,
    PatchEntry,
    Pristine,
    Upstreamed,
    layers_of,
)
from patchkit.state.log import now
from patchkit.state.transaction import Change, commit


def commit_change(
    workspace: Workspace,
    changes: ChangeSet,
    *,
    command: str,
    names: Sequence[str],
    upstreamed: Mapping[str, tuple[Patch, Distribution]] | None = None,
    discarded: Mapping[str, str] | None = None,
) -> int:
    """Write ``changes`` and the ledger that records them, wholly or not at all.

    Args:
        workspace: The site, opened for writing.
        changes: What to write.
        command: The command's name, for the log.
        names: The patches that the command was about, for the log.
        upstreamed: Patches that the release has, which ``require`` shall accept from now on.
        discarded: The SHA-256 of bytes that were edited by hand and go, by file, for the log.

    Returns:
        The number of files written.

    Raises:
        SiteError: A file changed since it was planned, or the site cannot be written; nothing was changed.
    """
    home = workspace.site.home
    _check_adopted(workspace, changes)
    ledger = _ledger(workspace, changes)
    for name, (patch, distribution) in (upstreamed or {}).items():
        info = key_of(home, distribution.info)
        ledger = ledger.with_upstreamed(
            Upstreamed(name, distribution.normalized, distribution.version, info, patch.digest)
        )
    dropped = [one.name for one in workspace.ledger.patches if command != "revert" and ledger.patch(one.name) is None]
    event: dict[str, object] = {"command": command, "patches": list(names)}
    if dropped:
        event["dropped"] = dropped
    if command == "create":  # the files are as they are to be already: those that it counts as applied
        made = [ledger.patch(name) for name in names]
        event["files"] = len({key for one in made if one is not None for key in one.files})
    if discarded:
        event["discarded"] = dict(discarded)
    writes = changes.writes
    if not writes and ledger == workspace.ledger and not workspace.recovered:
        return 0
    commit(
        home,
        [
            Change(
                change.key,
                change.absolute,
                change.current,
                change.target,
                change.mode,
                change.mtime_ns,
                _deserted(workspace, change),
            )
            for change in writes
        ],
        ledger,
        event,
        extra_blobs=[*_blobs(changes), *workspace.recovered.values()],
        pycache_prefixes=_prefixes(workspace),
    )
    return len(writes)


def _check_adopted(workspace: Workspace, changes: ChangeSet) -> None:
    """Look again at the files that are recorded as they are, without a write: an editor may have saved meanwhile.

    Raises:
        SiteError: ``changed``.
    """
    for change in changes.files.values():
        if change.stack is None or not change.stack.layers or change.current != change.stack.data:
            continue
        known = workspace.ledger.files.get(change.key)
        if known is not None and known.ours(change.current):
            continue
        if not workspace.unchanged(change.absolute):
            raise SiteError(
                f"{change.absolute}: has other bytes since it was planned\nnothing was changed",
                code="changed",
                hint="run the command again; if another program is changing these files, let it end first",
                details={"path": change.absolute, "paths": [change.absolute]},
            )


def _deserted(workspace: Workspace, change: FileChange) -> tuple[str, ...]:
    """The directories that an uninstall left, since a file that a patch added was in them: they go with it, if empty.

    With nothing but such a directory, ``import`` would find a namespace package where nothing is installed.
    """
    entry = workspace.ledger.files.get(change.key)
    if change.target is not None or entry is None or entry.pristine is not None or os.path.isabs(change.key):
        return ()
    try:
        if workspace.distribution(entry.distribution) is not None:
            return ()
    except PatchkitError:
        return ()
    parts = change.key.split("/")[:-1]
    return tuple(file_path(workspace.site.home, "/".join(parts[:count])) for count in range(1, len(parts) + 1))


def _ledger(workspace: Workspace, changes: ChangeSet) -> Ledger:
    old = workspace.ledger
    keys = {
        (change.stack.distribution.info, change.stack.path): key
        for key, change in changes.files.items()
        if change.stack is not None
    }
    entries: list[PatchEntry] = []
    for item in changes.order:
        if isinstance(item, PatchEntry):
            entries.append(item)
        else:
            entries.append(_entry(workspace, item, changes.plans[item.patch.name], keys))
    files = dict(old.files)
    # A patch of an install that is gone still counts on its files' entries: a downgrade may bring that install back.
    kept = [item for item in changes.order if isinstance(item, PatchEntry)]
    stale = {key for item in kept if not workspace.in_force(item) for key in item.files}
    for key, change in changes.files.items():
        if change.stack is None or not change.stack.layers:
            if key not in stale:
                files.pop(key, None)
        else:
            files[key] = _file_entry(workspace, change)
    named = {key for entry in entries for key in entry.files}
    files = {key: entry for key, entry in files.items() if key in named}
    fresh = {item.patch.name for item in changes.order if isinstance(item, Wanted)}
    upstreamed = tuple(u for u in old.upstreamed if u.name not in fresh and u.name not in changes.dropped)
    return old._replace(patches=tuple(entries), files=dict(sorted(files.items())), upstreamed=upstreamed)


def _entry(workspace: Workspace, wanted: Wanted, plan: PatchPlan, keys: Mapping[tuple[str, str], str]) -> PatchEntry:
    """The record of a patch that is laid; ``keys`` are those of the changed files, by metadata directory and path."""
    home, patch, distribution = workspace.site.home, wanted.patch, wanted.distribution
    places = [(distribution.info, file.path) for file in plan.files]
    target = patch.target
    return PatchEntry(
        name=patch.name,
        digest=patch.digest,
        source=os.path.abspath(patch.path) if patch.path else None,
        summary=patch.summary,
        distribution=distribution.normalized,
        version=distribution.version,
        info=key_of(home, distribution.info),
        requirement=target.requirement,
        applied_at=now(),
        files=tuple(keys[place] for place in places if place in keys),
        optional=target.optional,
        conflicts=target.conflicts,
        after=target.after,
    )


def _file_entry(workspace: Workspace, change: FileChange) -> FileEntry:
    stack = change.stack
    assert stack is not None
    after = None if stack.data is None else Content(digest(stack.data), len(stack.data))
    pristine = None
    if stack.pristine is not None:
        found = stack.pristine
        pristine = Pristine(digest(found.data), len(found.data), found.mode, found.mtime_ns)
    known = workspace.ledger.files.get(change.key)
    stat = None
    if after is not None and change.current == stack.data:  # not written: a file that is as it shall be
        stat = known.stat if known is not None and known.after == after else workspace.stat_of(change.absolute)
    return FileEntry(
        distribution=stack.distribution.normalized,
        pristine=pristine,
        witness="none" if stack.pristine is None else stack.pristine.witness,
        after=after,
        layers=layers_of((name, plan.splices) for name, plan in stack.layers),
        stat=stat,
        created_dirs=known.created_dirs if known is not None else stack.adopted,
    )


def _blobs(changes: ChangeSet) -> list[bytes]:
    """What the ledger refers to and no file holds: patch files, pristine bytes, and planned bytes under hand edits."""
    blobs = [item.patch.data for item in changes.order if isinstance(item, Wanted)]
    for change in changes.files.values():
        stack = change.stack
        if stack is not None and stack.layers:
            if stack.pristine is not None:
                blobs.append(stack.pristine.data)
            if stack.data is not None:
                blobs.append(stack.data)
    return blobs


def _prefixes(workspace: Workspace) -> list[str] | None:
    from patchkit.state.bytecode import default_prefixes

    interpreter = workspace.site.interpreter
    prefix = interpreter.pycache_prefix if interpreter is not None else None
    return list(dict.fromkeys([*default_prefixes(), *([prefix] if prefix else [])]))
