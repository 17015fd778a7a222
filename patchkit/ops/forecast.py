"""What planning says of patches that drifted, without a write: for the reasons that ``check`` gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from patchkit.errors import PatchkitError, PlanError, SiteError
from patchkit.ops.change import Wanted, guard, plan_change
from patchkit.ops.workspace import Workspace

if TYPE_CHECKING:
    from patchkit.model.patch import Patch
    from patchkit.site.environment import Site


def misfit(site: Site, patch: Patch, others: Sequence[Patch]) -> str | None:
    """Why ``patch`` does not fit what is installed, in words; None where it does.

    Args:
        site: The site, at the home that is meant.
        patch: The patch.
        others: Those that are to be laid anew with it: one may need what another writes.
    """
    workspace = Workspace(site)
    try:
        together = [patch, *(other for other in others if other.name != patch.name)]
        plan_change(workspace, add=[Wanted(one, guard(workspace, one).distribution) for one in together])
    except PatchkitError:
        pass  # whose fault it is, the patch alone tells
    else:
        return None
    try:
        plan_change(workspace, add=[Wanted(patch, guard(workspace, patch).distribution)])
    except PatchkitError as error:
        text = error.message.partition("\n")[0]
        more = f"`patchkit apply {patch.name} --dry-run` shows it all"
        hint = "" if error.hint is None else "; " + error.hint.removesuffix("; nothing was written")
        return f"{text}{hint}; {more}" if isinstance(error, PlanError) else f"{text}{hint}"
    return None


def in_place(site: Site, patches: Sequence[Patch]) -> set[str]:
    """Those of ``patches`` of which every file holds what they would write, with all of them laid: then they are on.

    Args:
        site: The site, at the home that is meant.
        patches: Patches that its ledger does not know.
    """
    workspace = Workspace(site)
    try:
        changes = plan_change(workspace, add=[Wanted(one, guard(workspace, one).distribution) for one in patches])
    except PatchkitError:
        return set()
    there = {(c.stack.distribution.info, c.path) for c in changes.files.values() if c.stack and c.current == c.target}
    found = set()
    for item in changes.order:
        if isinstance(item, Wanted):
            files = changes.plans[item.patch.name].files
            if files and all((item.distribution.info, file.path) in there for file in files):
                found.add(item.patch.name)
    return found


def hand_edits(site: Site, name: str) -> str | None:
    """What revert would make of hand edits in the files of an applied patch, and the command; None: unknown.

    Args:
        site: The site, at the home that is meant.
        name: The patch.
    """
    workspace = Workspace(site)
    try:
        changes = plan_change(workspace, drop=[name], keep_hand_edits=True)
    except SiteError as error:
        if error.code in ("not-a-file", "leads-out"):
            return f"{error.message}: {error.hint}"
        if error.code != "hand-edit-inside":
            return None
        found = error.details.get("conflicts") or ()
        at = f" (line{'s' if len(found) > 1 else ''} {', '.join(map(str, found[:3]))})" if found else ""
        only = ", in its line breaks alone" if error.details.get("line_breaks") else ""
        if _edited(workspace, name) > 1:  # the lines are those of one of them
            at = f" in {error.details['path']}{at}"
        return (
            f"inside of what patchkit wrote{at}{only}: `patchkit revert --force {name}` discards that, and keeps a copy"
        )
    except PatchkitError:
        return None
    if any(change.kept for change in changes.files.values()):
        return f"outside of what patchkit wrote: `patchkit revert {name}` keeps that"
    return None


def kept_by_hand(site: Site, name: str) -> set[str]:
    """The keys of those files of an applied patch whose hand edits lie outside of what patchkit wrote, which is there.

    Args:
        site: The site, at the home that is meant.
        name: The patch.
    """
    try:
        changes = plan_change(Workspace(site), drop=[name], keep_hand_edits=True, force=True)
    except PatchkitError:
        return set()
    return {key for key, change in changes.files.items() if change.kept}


def _edited(workspace: Workspace, name: str) -> int:
    """How many files of an applied patch are there, and hold something else than patchkit wrote."""
    recorded = workspace.ledger.patch(name)
    keys = () if recorded is None else recorded.files
    held = [(workspace.current(workspace.absolute(key)), workspace.ledger.files[key]) for key in keys]
    return sum(current is not None and not entry.ours(current) for current, entry in held)
