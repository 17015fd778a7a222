"""Take patches out again: back to pristine, or to what the remaining patches make of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from patchkit.errors import UsageError
from patchkit.ops.apply import FileResult, Outcome, PatchResult, changed_files
from patchkit.ops.change import plan_change
from patchkit.ops.commit import commit_change
from patchkit.ops.workspace import Workspace, digest

if TYPE_CHECKING:
    from patchkit.ops.catalog import Catalog


def revert_patches(
    workspace: Workspace,
    names: Sequence[str],
    *,
    force: bool = False,
    dry_run: bool = False,
) -> Outcome:
    """Take the patches ``names`` out; patches stacked on the same files are laid anew without them.

    Hand edits made since, outside of what we wrote, are kept. A name that is not applied is "unchanged".

    Args:
        workspace: The site.
        names: Patch names; must be known to the ledger or be patches at all (the caller checks that).
        force: Discard hand edits inside of what we wrote; ``Outcome.notes`` shows them.
        dry_run: Plan only.

    Raises:
        SiteError: ``hand-edit-inside`` without ``force``, or the site cannot be written.
        PlanError: A remaining patch does not fit without those taken out.
    """
    applied = {p.name: p for p in workspace.ledger.patches}
    drop = [name for name in dict.fromkeys(names) if name in applied]
    outcome = Outcome(dry_run=dry_run)
    changes = plan_change(workspace, drop=drop, keep_hand_edits=True, force=force)
    for name in dict.fromkeys(names):
        recorded = applied.get(name)
        if recorded is None:
            outcome.patches.append(PatchResult(name, "unchanged", (), "not applied"))
            continue
        files = tuple(
            FileResult(
                change.path,
                None if change.current is None else digest(change.current),
                None if change.target is None else digest(change.target),
            )
            for key in recorded.files
            if (change := changes.files.get(key)) is not None
        )
        reason = (
            None
            if workspace.in_force(recorded)
            else (f"{recorded.distribution} {recorded.version} is not installed any more: nothing to take back")
        )
        outcome.patches.append(PatchResult(name, "reverted", files, reason, recorded.distribution, recorded.version))
    outcome.files = changed_files(changes)
    kept, discarded = ("would keep", "would discard") if dry_run else ("kept", "discarded")
    for change in changes.files.values():
        if change.kept:
            outcome.notes.append(f"{change.path}: {kept} the edits made by hand since")
        if change.discarded is not None:
            outcome.discarded = True
            outcome.notes.append(f"{change.path}: {discarded} the edits made by hand since (--force)")
    if not dry_run and drop:
        outcome.written = commit_change(workspace, changes, command="revert", names=list(names))
    return outcome


def names_to_revert(
    workspace: Workspace, names: Sequence[str], everything: bool, catalog: Catalog | None = None
) -> list[str]:
    """The names that `revert NAME... | --all` means. A path of a patch file means the patch of its name.

    Args:
        workspace: The site.
        names: Names or paths.
        everything: Every applied patch.
        catalog: Where a name that is not applied must be known; None: it need not be.

    Raises:
        UsageError: Neither names nor ``--all``, or both; or a name that nobody knows.
    """
    applied = [p.name for p in workspace.ledger.patches]
    if bool(names) == everything:
        raise UsageError(
            "name the patches to revert, or say --all" if not names else "either names or --all, not both",
            hint=f"applied: {', '.join(applied) or 'none'}; `patchkit revert --all` takes out all",
        )
    if everything:
        return applied
    found = []
    for name in names:
        # The file's stem is the patch's name; the file itself may be gone, or wrong by now.
        stem = os.path.basename(name).removesuffix(".toml")
        if catalog is not None and name not in applied and not (stem in applied and name.endswith(".toml")):
            stem = os.path.splitext(os.path.basename(catalog.path_of(name, applied)))[0]
        found.append(stem)
    return found
