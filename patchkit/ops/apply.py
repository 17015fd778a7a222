"""Apply patches: guards, plan, write."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from patchkit.edit.plan import upstreamed_by
from patchkit.errors import GuardError, PatchkitError, SiteError
from patchkit.model.patch import Patch
from patchkit.ops.catalog import check_unique_name
from patchkit.ops.change import ChangeSet, Wanted, guard, plan_change
from patchkit.ops.commit import commit_change
from patchkit.ops.homes import common_home
from patchkit.ops.inplace import InPlace
from patchkit.ops.outcome import (
    Outcome,
    PatchResult,
    changed_files,
    planned_files,
    restored_notes,
    shadow_notes,
    shared_notes,
    unchanged_files,
    unwitnessed_notes,
)
from patchkit.ops.session import once, opened
from patchkit.ops.stacks import StackFiles
from patchkit.ops.workspace import Workspace
from patchkit.runtime.ledger import installed
from patchkit.site.distribution import Distribution
from patchkit.site.environment import Site, ledger_homes
from patchkit.site.grammar import Grammar
from patchkit.site.shadow import is_linked, looks_odd
from patchkit.state.ledger import Ledger, PatchEntry


def apply_site(
    site: Site,
    patches: Sequence[Patch],
    *,
    dry_run: bool = False,
    allow_known_bad: bool = False,
    notice: Callable[[str], None],
    fetch: Callable[[str], None] | None = None,
    find_patch: Callable[[str], str | None] | None = None,
) -> Outcome:
    """Apply ``patches``, all or none, in the directory that holds their distributions.

    Args:
        site: The site.
        patches: The patches, in the order wanted (``after`` may change it).
        dry_run: Plan only.
        allow_known_bad: Accept patches that are tagged ``known-bad``.
        notice: Told of an interrupted command that was mended, and of a lock that is waited for.
        fetch: Told of downloads, when pristine bytes may come from the released wheel; None: they may not.
        find_patch: The file of an applied patch by its name, should the ledger have lost its copy.

    Raises:
        SiteError: ``several-homes``; ``locked``; or as :func:`apply_patches`, as are the others.
    """
    home = common_home(site, patches)
    notice = once(notice)
    # Where nothing is installed there is nothing to write, and the guards say so also where one may not write.
    write = home is not None and not dry_run

    def work(write: bool) -> Outcome:
        with opened(site.at(home or site.home), write=write, notice=notice) as workspace:
            workspace.fetch = fetch
            workspace.find_patch = find_patch
            return apply_patches(workspace, patches, dry_run=not write, allow_known_bad=allow_known_bad)

    def look() -> Outcome:
        from patchkit.ops.check import GLANCE_SECONDS, steady

        return steady(site, lambda: work(False), wait=GLANCE_SECONDS, notice=notice)

    if not write:
        outcome = look()
        outcome.dry_run = dry_run
        return outcome
    try:
        return work(True)
    except SiteError as error:
        if error.code not in ("read-only", "permission"):
            raise
        try:
            outcome = look()
        except PatchkitError:
            raise error from None
        if any(patch.action not in ("unchanged", "skipped") for patch in outcome.patches):
            raise
        outcome.dry_run = False  # all of it is applied already: nothing had to be written
        return outcome


def apply_patches(
    workspace: Workspace,
    patches: Sequence[Patch],
    *,
    dry_run: bool = False,
    allow_known_bad: bool = False,
    command: str = "apply",
) -> Outcome:
    """Apply ``patches``, all or none.

    One that is applied as it stands is left alone; one whose file changed since is taken out and put in anew.

    Args:
        workspace: The site.
        patches: The patches, in the order wanted (``after`` may change it).
        dry_run: Plan only.
        allow_known_bad: Accept patches that are tagged ``known-bad``.
        command: Whose doing it is, for the log.

    Raises:
        GuardError: A guard or a conflict refuses.
        PlanError: An anchor, a condition or the plan fails.
        SiteError: The site conflicts.
    """
    check_unique_name(patches)
    patches = list({patch.name: patch for patch in patches}.values())
    outcome = Outcome(dry_run=dry_run)
    in_place = InPlace(workspace)
    add: list[Wanted] = []
    results: dict[str, PatchResult] = {}
    upstreamed: dict[str, tuple[Patch, Distribution]] = {}
    for patch in patches:
        if not allow_known_bad and not in_place.applied(patch):
            refuse_known_bad(patch, "--allow-known-bad applies it all the same")
        try:
            distribution, held = prepare(workspace, patch)
        except GuardError as error:
            if patch.target.optional and error.code == "not-installed":
                results[patch.name] = PatchResult(
                    patch.name, "skipped", reason="its target is not installed", site=workspace.site.home
                )
                continue
            raise
        where = (distribution.normalized, distribution.version, workspace.site.home)
        if held is not None:
            upstreamed[patch.name] = (patch, distribution)
            results[patch.name] = PatchResult(patch.name, "upstreamed", (), held, *where)
        elif in_place.applied(patch):
            results[patch.name] = PatchResult(
                patch.name, "unchanged", unchanged_files(workspace, patch.name), "applied already", *where
            )
        else:
            add.append(Wanted(patch, distribution))
    drop = [name for name in upstreamed if workspace.ledger.patch(name) is not None]
    check_conflicts(workspace, [wanted.patch for wanted in add], drop)
    changes = plan_change(workspace, add=add, drop=drop) if add or drop else ChangeSet(list(workspace.ledger.patches))
    for wanted in add:
        results[wanted.patch.name] = applied_result(workspace, changes, wanted)
        paths = [file.path for file in changes.plans[wanted.patch.name].files]
        outcome.notes += shadow_notes(wanted.distribution, paths) + shared_notes(wanted.distribution, paths)
    outcome.notes += unwitnessed_notes(changes, workspace.ledger.files)
    unchanged = [name for name, result in results.items() if result.action == "unchanged"]
    outcome.notes += _notes_in_place(workspace, changes, unchanged)
    outcome.patches = [results[patch.name] for patch in patches]
    outcome.files = changed_files(changes)
    outcome.notes += restored_notes(changes, dry_run=dry_run)
    if not dry_run:
        outcome.written = commit_change(
            workspace, changes, command=command, names=[p.name for p in patches], upstreamed=upstreamed
        )
    return outcome


def _notes_in_place(workspace: Workspace, changes: ChangeSet, unchanged: Sequence[str]) -> list[str]:
    """What is to be said of files that hold what a patch writes before anything is written.

    Args:
        workspace: The site.
        changes: What is planned.
        unchanged: The patches that are applied already.
    """
    notes: list[str] = []
    for name in unchanged:
        recorded = workspace.ledger.patch(name)
        if recorded is not None and looks_odd(workspace.site, workspace.site.home, recorded.files):
            from patchkit.ops.witness import notes_in_place

            notes += notes_in_place(workspace, recorded)
    for change in changes.files.values():
        stack = change.stack
        if stack is None or stack.pristine is None or not change.current == stack.data != stack.pristine.data:
            continue
        if change.key not in workspace.ledger.files or is_linked(change.absolute):
            from patchkit.ops.witness import taint_notes

            notes += taint_notes(stack.distribution, [(stack.path, change.absolute)])
    return notes


def applied_result(workspace: Workspace, changes: ChangeSet, wanted: Wanted, reason: str | None = None) -> PatchResult:
    """The result of a patch that ``changes`` lays."""
    return PatchResult(
        wanted.patch.name,
        "applied",
        planned_files(changes.plans[wanted.patch.name]),
        reason,
        wanted.distribution.normalized,
        wanted.distribution.version,
        workspace.site.home,
    )


def refuse_known_bad(patch: Patch, way: str) -> None:
    """Refuse a patch that is tagged ``known-bad``; ``way`` says how to have it all the same.

    Raises:
        GuardError: ``known-bad``.
    """
    if "known-bad" in patch.tags:
        raise GuardError(
            f"{patch.name}: is marked known-bad: {patch.summary}",
            code="known-bad",
            hint=f"`patchkit show {patch.name}` says why; {way}",
            details={"patch": patch.name, "tags": list(patch.tags)},
        )


def prepare(workspace: Workspace, patch: Patch) -> tuple[Distribution, str | None]:
    """The target's distribution, and why the patch is upstreamed there (None: it is not)."""
    if patch.upstreamed:
        # Asked before the version guard: a release that has the change is as a rule past the patch's own range.
        distribution = workspace.distribution(patch.target.name)
        if distribution is not None and not distribution.editable:
            reason = upstream_reason(workspace, patch, distribution)
            if reason is not None:
                return distribution, reason
    guarded = guard(workspace, patch)
    return guarded.distribution, None


def upstream_reason(workspace: Workspace, patch: Patch, distribution: Distribution) -> str | None:
    """Why the installed release already has the change of ``patch``, in words; None when it has not."""
    if not patch.upstreamed:
        return None
    files = StackFiles(workspace, distribution, {})
    held = upstreamed_by(patch, files, Grammar(workspace.site))
    if held is None:
        return None
    if held.file is None:
        return f"{distribution.name} {distribution.version} has the change ({held.versions})"
    return f"{distribution.name} {distribution.version} has the change already (in {held.file})"


def check_conflicts(workspace: Workspace, add: Sequence[Patch], leaving: Collection[str] = ()) -> None:
    """Refuse patches that must not be applied together, whichever of the two says so.

    Args:
        workspace: The site.
        add: The patches to apply.
        leaving: Names of applied ones that the same call takes out.

    Raises:
        GuardError: ``conflict``.
    """
    names = {patch.name for patch in add}
    applied = {
        p.name: p
        for p in workspace.ledger.patches
        if p.name not in names and p.name not in leaving and workspace.in_force(p)
    }
    applied.update((p.name, p) for p in _applied_elsewhere(workspace) if p.name not in {*names, *leaving, *applied})
    for patch in add:
        for other in patch.target.conflicts:
            if other in names or other in applied:
                _refuse_conflict(patch.name, other, other in applied)
        for recorded in applied.values():
            if patch.name in recorded.conflicts:
                _refuse_conflict(patch.name, recorded.name, True)


def _applied_elsewhere(workspace: Workspace) -> Iterator[PatchEntry]:
    """The patches in force by the other ledgers of the site's path."""
    for home in ledger_homes(workspace.site):
        if home != workspace.site.home:
            try:
                ledger = Ledger.load(home)
            except SiteError:
                continue  # not the one at work here: `check` says what is the matter with it
            yield from (entry for entry in ledger.patches if installed(home, entry.info))


def _refuse_conflict(name: str, other: str, applied: bool) -> None:
    raise GuardError(
        f"{name}: conflicts with {other}" + (", which is applied" if applied else ""),
        code="conflict",
        hint=f"take the other out first: patchkit revert {other}" if applied else "apply one of them",
        details={"patch": name, "conflicts": other},
    )
