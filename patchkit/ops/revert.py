"""Take patches out again: back to pristine, or to what the remaining patches make of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from patchkit.errors import PatchkitError, SiteError, UsageError
from patchkit.ops.change import FileChange, plan_change
from patchkit.ops.check import GLANCE_SECONDS, steady
from patchkit.ops.commit import commit_change
from patchkit.ops.outcome import (
    Discarded,
    FileResult,
    Outcome,
    PatchResult,
    Prepared,
    carry_out,
    changed_files,
    restored_notes,
    reverted_files,
)
from patchkit.ops.session import Mended, mend, once, opened
from patchkit.ops.workspace import Workspace, digest
from patchkit.runtime.ledger import read, state_path
from patchkit.site.environment import Site, ledger_homes
from patchkit.state.access import check_writable
from patchkit.state.lock import WAIT_SECONDS, in_order

if TYPE_CHECKING:
    from patchkit.ops.catalog import Catalog
    from patchkit.state.ledger import PatchEntry


def revert_site(
    site: Site,
    names: Sequence[str],
    *,
    everything: bool = False,
    catalog: Catalog | None = None,
    force: bool = False,
    dry_run: bool = False,
    notice: Callable[[str], None],
    fetch: Callable[[str], None] | None = None,
    show: Callable[[Sequence[Discarded]], None] | None = None,
) -> Outcome:
    """Take the patches ``names`` out of every ledger of the site's path that has them.

    All is planned before the first directory is written; each is all or nothing for itself.

    Args:
        site: The site.
        names: Names, or paths of patch files.
        everything: Every applied patch, instead of names.
        catalog: Where a name that is not applied must be known; None: it need not be.
        force: Discard the hand edits of a file where they lie inside of what we wrote; a copy is kept.
        dry_run: Plan only.
        notice: Told of an interrupted command that was mended, and of a lock that is waited for.
        fetch: Told of downloads, when pristine bytes may come from the released wheel; None: they may not.
        show: Told of what is discarded, if anything is, before a byte is written.

    Raises:
        UsageError: As :func:`names_to_revert`.
        SiteError: A ledger cannot be read or written, or as :func:`revert_patches`.
        PlanError: A remaining patch does not fit without those taken out.
    """
    notice = once(notice)
    mended = mend(site, wait=not dry_run, notice=notice)
    for text in mended.notices:
        notice(text)

    def look() -> tuple[dict[str, list[str]], list[str], list[str]]:
        held, problems = _held(site, mended)
        known = list(dict.fromkeys(name for here in held.values() for name in here))
        wanted = names_to_revert(known, names, everything, None if problems else catalog)
        if problems and (everything or not set(wanted) <= set(known)):
            raise problems[0]
        if catalog is not None:
            _refuse_unrecorded(site, catalog, known, wanted, everything)
        return held, known, wanted

    wait = GLANCE_SECONDS if dry_run else WAIT_SECONDS
    held, known, wanted = steady(site, look, wait=wait, notice=notice)
    homes = [home for home, here in held.items() if not set(here).isdisjoint(wanted)]
    with ExitStack() as stack:
        workspaces: dict[str, Workspace] = {}
        prepared = []
        home = ""
        try:
            for home in in_order(homes):
                workspaces[home] = stack.enter_context(opened(site.at(home), write=not dry_run, notice=notice))
            for home in homes:
                workspaces[home].fetch = fetch
                workspaces[home].find_patch = catalog.find if catalog is not None else None
                here = [name for name in wanted if name in held[home]]
                prepared.append(plan_revert(workspaces[home], here, force=force, dry_run=dry_run))
        except PatchkitError as error:
            others = [name for name in wanted if name not in held[home]]
            if len(homes) > 1 and others and error.code in ("permission", "read-only"):
                error.hint = f"name those of the other folders: patchkit revert {' '.join(others)}; or {error.hint}"
            raise
        discarded = [item for one in prepared for item in one.outcome.discarded]
        if discarded and show is not None:
            show(discarded)
        outcome = carry_out(prepared, dry_run=dry_run)
    outcome.patches += [PatchResult(name, "unchanged", (), "not applied") for name in wanted if name not in known]
    outcome.patches.sort(key=lambda result: wanted.index(result.name))
    return outcome


def _refuse_unrecorded(
    site: Site, catalog: Catalog, known: Sequence[str], wanted: Sequence[str], everything: bool
) -> None:
    """Refuse to call a patch "not applied" whose ledger is gone while its bytes are there.

    Raises:
        SiteError: ``corrupt``; ``missing``: a file that the patch takes away is gone, and no ledger says why.
    """
    from patchkit.ops.drift import Drift

    names = [*wanted, *(catalog.project.wanted if everything and catalog.project is not None else ())]
    drift = Drift(site, catalog)
    found = [
        name
        for name in dict.fromkeys(names)
        if name not in known and drift.never_applied(name, wanted=False).state == "corrupt"
    ]
    if found:
        listed = " ".join(found)
        raise SiteError(
            f"{', '.join(found)}: every file holds what the patch writes, but the ledger is gone, or does not know it",
            code="corrupt",
            hint=f"have it recorded again, which writes no file: `patchkit apply {listed}`; then revert it",
            details={"patches": found},
        )
    for name in dict.fromkeys(names):
        if name not in known:
            drift.refuse_unrecorded_removal(name)


def _held(site: Site, mended: Mended) -> tuple[dict[str, list[str]], list[PatchkitError]]:
    """The names that each readable ledger has, and what is the matter with the others."""
    held: dict[str, list[str]] = {}
    problems: list[PatchkitError] = list(mended.waiting.values())
    for home in ledger_homes(site):
        if home in mended.waiting:
            continue
        try:
            ledger = read(home) or {"patches": (), "upstreamed": ()}
        except PatchkitError as error:
            problems.append(error)
        else:
            held[home] = [str(entry["name"]) for entry in (*ledger["patches"], *ledger["upstreamed"])]
    return held, problems


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
        force: Discard the hand edits of a file where they lie inside of what we wrote; ``Outcome.discarded`` has them.
        dry_run: Plan only.

    Raises:
        SiteError: ``hand-edit-inside`` without ``force``, or the site cannot be written.
        PlanError: A remaining patch does not fit without those taken out.
    """
    return carry_out([plan_revert(workspace, names, force=force, dry_run=dry_run)], dry_run=dry_run)


def plan_revert(workspace: Workspace, names: Sequence[str], *, force: bool = False, dry_run: bool = False) -> Prepared:
    """What :func:`revert_patches` writes; arguments and errors are its."""
    home = workspace.site.home
    applied = {p.name: p for p in workspace.ledger.patches}
    upstreamed = {u.name: u for u in workspace.ledger.upstreamed}
    drop = [name for name in dict.fromkeys(names) if name in applied or name in upstreamed]
    outcome = Outcome(dry_run=dry_run)
    changes = plan_change(workspace, drop=drop, keep_hand_edits=True, force=force)
    if not dry_run:
        check_writable(change.absolute for change in changes.writes)  # of several folders, before the first is written
    for name in dict.fromkeys(names):
        recorded = applied.get(name)
        if recorded is not None:
            files = reverted_files(changes, recorded)
            reason = None if workspace.in_force(recorded) else _of_what_is_gone(workspace, recorded, files, dry_run)
            where = (recorded.distribution, recorded.version, home)
            outcome.patches.append(PatchResult(name, "reverted", files, reason, *where))
        elif name in upstreamed:
            had = upstreamed[name]
            reason = "forgotten: the release had the change, nothing to take back"
            where = (had.distribution, had.version, home)
            outcome.patches.append(PatchResult(name, "reverted", (), reason, *where))
        else:
            outcome.patches.append(PatchResult(name, "unchanged", (), "not applied", site=home))
    outcome.files = changed_files(changes)
    outcome.notes += restored_notes(changes, dry_run=dry_run)
    kept, discarded = ("would keep", "would discard") if dry_run else ("kept", "discarded")
    for change in changes.files.values():
        if change.kept:
            outcome.notes.append(f"{change.path}: {kept} the edits made by hand since")
        if change.discarded is not None:
            item = Discarded(change.path, change.discarded, change.target, _copy_path(home, change))
            outcome.discarded.append(item)
            copy = "a copy would be" if dry_run else "a copy is"
            outcome.notes.append(
                f"{change.path}: {discarded} the edits made by hand since (--force); {copy} in {item.copy}"
            )

    def write() -> int:
        if not drop:
            return 0
        _keep_copies(home, outcome.discarded)
        gone = {item.path: digest(item.before) for item in outcome.discarded}
        return commit_change(workspace, changes, command="revert", names=list(names), discarded=gone)

    return Prepared(home, outcome, write)


def _of_what_is_gone(workspace: Workspace, recorded: PatchEntry, files: Sequence[FileResult], dry_run: bool) -> str:
    """What reverting a patch means whose install is not there any more."""
    try:
        gone = workspace.distribution(recorded.distribution) is None
    except PatchkitError:
        gone = False  # there, in more than one version
    if gone:
        what = "its distribution is gone"
    else:
        what = f"{recorded.distribution} {recorded.version} is not installed any more"
    removed = [file.path for file in files if file.before_sha256 is not None and file.after_sha256 is None]
    left = [key for key in recorded.files if gone and _edited_addition(workspace, key)]
    if left:
        what += f"; {', '.join(left)}, which the patch had added, stays: it was edited since"
    if any(file.after_sha256 is not None and file.before_sha256 != file.after_sha256 for file in files):
        what += f"; its files were still there, and {'would have' if dry_run else 'have'} their original bytes again"
    elif not removed:
        return what if left else f"{what}: nothing to take back"
    if removed:
        return f"{what}; {'would remove' if dry_run else 'removed'} what the patch had added"
    return what


def _edited_addition(workspace: Workspace, key: str) -> bool:
    """Whether a file that a patch added is there and holds something else by now."""
    entry = workspace.ledger.files.get(key)
    if entry is None or entry.pristine is not None:
        return False
    current = workspace.current(workspace.absolute(key))
    return current is not None and not entry.ours(current)


def _copy_path(home: str, change: FileChange) -> str:
    """Where the bytes are kept that ``force`` throws away: no blob, since nothing refers to it."""
    assert change.discarded is not None
    return state_path(home, f"discarded-{digest(change.discarded)[:12]}-{os.path.basename(change.absolute)}")


def _keep_copies(home: str, discarded: Sequence[Discarded]) -> None:
    """Keep what was edited by hand, before it goes.

    Raises:
        SiteError: It cannot be written; nothing was changed.
    """
    from patchkit.state import fs

    for item in discarded:
        try:
            fs.write_atomic(item.copy, item.before, fs.open_like(home))
        except OSError as error:
            raise fs.named(error, item.copy, suffix="; nothing was changed") from error


def names_to_revert(
    applied: Sequence[str], names: Sequence[str], everything: bool, catalog: Catalog | None = None
) -> list[str]:
    """The names that `revert NAME... | --all` means. A path of a patch file means the patch of its name.

    Args:
        applied: The names that the site's ledgers have.
        names: Names or paths.
        everything: Every applied patch.
        catalog: Where a name that is not applied must be known; None: it need not be.

    Raises:
        UsageError: Neither names nor ``--all``, or both; or a name that nobody knows.
    """
    if bool(names) == everything:
        raise UsageError(
            "name the patches to revert, or say --all" if not names else "either names or --all, not both",
            hint=f"applied: {', '.join(applied) or 'none'}; `patchkit revert --all` takes out all",
        )
    if everything:
        return list(applied)
    found = []
    for name in names:
        # The file's stem is the patch's name; the file itself may be gone, or wrong by now.
        stem = os.path.basename(name).removesuffix(".toml")
        if catalog is not None and name not in applied and not (stem in applied and name.endswith(".toml")):
            stem = os.path.splitext(os.path.basename(catalog.path_of(name, applied)))[0]
        found.append(stem)
    return list(dict.fromkeys(found))
