"""Make the site match the project's list: apply what is missing, take out what is not wanted, heal a reinstall."""

from __future__ import annotations

from patchkit.errors import SiteError
from patchkit.model.patch import Patch
from patchkit.ops.apply import (
    Outcome,
    PatchResult,
    changed_files,
    check_conflicts,
    file_results,
    refuse_known_bad,
    upstream_reason,
)
from patchkit.ops.catalog import Catalog
from patchkit.ops.change import Wanted, guard, ledger_patch, plan_change
from patchkit.ops.check import PatchState, check_site
from patchkit.ops.commit import commit_change
from patchkit.ops.workspace import Workspace
from patchkit.site.distribution import Distribution


def sync_site(
    workspace: Workspace,
    catalog: Catalog,
    *,
    dry_run: bool = False,
    allow_known_bad: bool = False,
) -> Outcome:
    """Make the site match the project's list; without one, what the ledger holds is what is wanted.

    Args:
        workspace: The site.
        catalog: Patch files and the project's list.
        dry_run: Plan only.
        allow_known_bad: Accept wanted patches that are tagged ``known-bad``.

    Raises:
        SiteError: ``modified``: check says conflict somewhere; nothing is written.
        GuardError: A wanted patch is refused by its guards.
        PlanError: One does not fit.
    """
    project = catalog.project
    recorded = {p.name: p for p in workspace.ledger.patches}
    wanted = list(project.wanted) if project is not None and project.listed else list(recorded)
    states = {s.name: s for s in check_site(workspace.site, workspace.ledger.to_json(), (), catalog)}
    _refuse_conflicts(states)
    outcome = Outcome(dry_run=dry_run)
    add: list[Wanted] = []
    drop: list[str] = []
    upstreamed: dict[str, tuple[Patch, Distribution]] = {}
    results: dict[str, PatchResult] = {}
    for name in wanted:
        state = states[name]
        patch = _patch(workspace, catalog, name)
        if not allow_known_bad and state.state != "applied":
            refuse_known_bad(patch, "take it off the list, or say `patchkit sync --allow-known-bad`")
        if state.state == "applied":
            results[name] = PatchResult(name, "unchanged", (), None, state.distribution, state.version)
        elif state.state == "uninstalled" and patch.target.optional:
            results[name] = PatchResult(name, "skipped", (), state.reason, state.distribution, state.version)
        elif state.state == "upstreamed":
            distribution = workspace.distribution(patch.target.name)
            if distribution is not None and upstream_reason(workspace, patch, distribution) is not None:
                upstreamed[name] = (patch, distribution)
            if name in recorded:
                drop.append(name)
            results[name] = PatchResult(name, "upstreamed", (), state.reason, state.distribution, state.version)
        else:
            add.append(Wanted(patch, guard(workspace, patch).distribution))
    unwanted = [name for name in recorded if name not in wanted]
    check_conflicts(workspace, [item.patch for item in add], [*drop, *unwanted])
    changes = plan_change(workspace, add=add, drop=[*drop, *unwanted])
    for item in add:
        results[item.patch.name] = PatchResult(
            item.patch.name,
            "applied",
            file_results(changes.plans[item.patch.name]),
            f"was {states[item.patch.name].state}",
            item.distribution.normalized,
            item.distribution.version,
        )
    for name in unwanted:
        results[name] = PatchResult(
            name, "reverted", (), "not on the project's list", recorded[name].distribution, recorded[name].version
        )
    outcome.patches = [results[name] for name in [*wanted, *unwanted]]
    outcome.files = changed_files(changes)
    if not dry_run and (add or drop or unwanted or upstreamed):
        outcome.written = commit_change(
            workspace,
            changes,
            command="sync",
            names=[*(item.patch.name for item in add), *unwanted],
            upstreamed=upstreamed,
        )
    return outcome


def _refuse_conflicts(states: dict[str, PatchState]) -> None:
    conflicts = [s for s in states.values() if s.state in ("modified", "corrupt")]
    if conflicts:
        raise SiteError(
            "\n".join(["the site conflicts, nothing was written:", *(f"  {s.name}: {s.reason}" for s in conflicts)]),
            code="modified",
            hint="`patchkit diff` shows the hand edits; `patchkit revert NAME` takes a patch out and keeps them",
            details={"patches": [s.name for s in conflicts]},
        )


def _patch(workspace: Workspace, catalog: Catalog, name: str) -> Patch:
    """The patch file of that name; without one the patch as it was applied."""
    recorded = workspace.ledger.patch(name)
    path = catalog.file_of(name, recorded.source if recorded is not None else None)
    if path is None and recorded is not None:
        return ledger_patch(workspace, recorded)
    return catalog.load(path or name)
