"""What a command did, or would do: patch by patch, file by file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from patchkit.errors import PatchkitError
from patchkit.ops.workspace import Workspace, digest
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from typing import Literal

    from patchkit.edit.plan import EditReport, PatchPlan
    from patchkit.ops.change import ChangeSet
    from patchkit.site.distribution import Distribution
    from patchkit.state.ledger import PatchEntry

    ActionWord = Literal["applied", "unchanged", "upstreamed", "skipped", "reverted"]


class FileResult(NamedTuple):
    """One file of a patch's result; a hash is None where there is no file on that side."""

    path: str
    before_sha256: str | None
    after_sha256: str | None
    edits: tuple[EditReport, ...] = ()
    before: bytes | None = None
    after: bytes | None = None


class Discarded(NamedTuple):
    """A file whose edits made by hand are thrown away: its bytes with them, the result, where a copy is kept."""

    path: str
    before: bytes
    after: bytes | None
    copy: str


class PatchResult(NamedTuple):
    """What happened to one patch.

    ``reason`` says why nothing was written where nothing was. ``site`` is the directory whose ledger is meant.
    """

    name: str
    action: ActionWord
    files: tuple[FileResult, ...] = ()
    reason: str | None = None
    distribution: str | None = None
    version: str | None = None
    site: str | None = None


class Outcome:
    """What a call did, patch by patch. ``written`` counts files; ``dry_run`` means that none was written.

    ``discarded`` holds the files whose edits made by hand go: what they hold now, and what they will.
    """

    def __init__(self, *, dry_run: bool = False) -> None:
        self.dry_run = dry_run
        self.patches: list[PatchResult] = []
        self.files: list[FileResult] = []
        self.written = 0
        self.discarded: list[Discarded] = []
        self.notes: list[str] = []


class Prepared(NamedTuple):
    """A change of one directory that is planned: its outcome so far, and what writes it (the count of files)."""

    home: str
    outcome: Outcome
    write: Callable[[], int]


def carry_out(prepared: Sequence[Prepared], *, dry_run: bool) -> Outcome:
    """Write what is planned, directory by directory, and put the outcomes together.

    Raises:
        SiteError: One cannot be written; the message names those that are done by then.
    """
    total = Outcome(dry_run=dry_run)
    done: list[str] = []
    for one in prepared:
        if not dry_run:
            try:
                total.written += one.write()
            except PatchkitError as error:
                if done:
                    error.message += "\ndone before that, and in place: " + ", ".join(done)
                    error.details["done"] = done
                raise
            done.append(one.home)
        total.patches += one.outcome.patches
        total.files += one.outcome.files
        total.notes += one.outcome.notes
        total.discarded += one.outcome.discarded
    return total


def planned_files(plan: PatchPlan) -> tuple[FileResult, ...]:
    """A patch's files, with the bytes before and after this patch."""
    return tuple(
        FileResult(
            file.path,
            None if file.before is None else digest(file.before),
            None if file.after is None else digest(file.after),
            file.edits,
            file.before,
            file.after,
        )
        for file in plan.files
    )


def changed_files(changes: ChangeSet) -> list[FileResult]:
    """The files whose bytes change, as they are and as they will be."""
    return [
        FileResult(
            change.path,
            None if change.current is None else digest(change.current),
            None if change.target is None else digest(change.target),
            (),
            change.current,
            change.target,
        )
        for change in changes.writes
    ]


def restored_notes(changes: ChangeSet, *, dry_run: bool) -> list[str]:
    """A note for each patch that is put back with those asked for."""
    back = "would be back" if dry_run else "is back"
    why = "a reinstall had taken it out of files that are laid anew"
    return [f"{name}: {back} in place as well, for {why}" for name in changes.restored]


def reverted_files(changes: ChangeSet, recorded: PatchEntry) -> tuple[FileResult, ...]:
    """The files of a patch that is taken out."""
    found = (changes.files.get(key) for key in recorded.files)
    return tuple(
        FileResult(
            change.path,
            None if change.current is None else digest(change.current),
            None if change.target is None else digest(change.target),
        )
        for change in found
        if change is not None
    )


def unchanged_files(workspace: Workspace, name: str) -> tuple[FileResult, ...]:
    """The files of a patch that is in place; each holds what patchkit wrote."""
    recorded = workspace.ledger.patch(name)
    if recorded is None:
        return ()
    contents = ((key, workspace.ledger.files[key].after) for key in recorded.files)
    hashes = ((key, None if content is None else content.sha256) for key, content in contents)
    return tuple(FileResult(key, sha256, sha256) for key, sha256 in hashes)


def unwitnessed_notes(changes: ChangeSet, known: Collection[str]) -> list[str]:
    """A note for each file that no hash vouches for, when it is patched first; ``known`` are the ledger's keys."""
    return [
        f"{change.path}: {change.stack.distribution.name} records no hash for it, so what it holds now counts as the "
        "original, and the ledger alone keeps it"
        for key, change in changes.files.items()
        if key not in known
        and change.stack is not None
        and change.stack.pristine is not None
        and change.stack.pristine.witness == "none"
    ]


def shared_notes(distribution: Distribution, files: Iterable[str]) -> list[str]:
    """A note for each edited file that another distribution installs as well."""
    from patchkit.site.paths import shared_with

    notes = []
    for path, others in shared_with(distribution, files).items():
        names = " and ".join(f"{other.name} {other.version}" for other in others)
        notes.append(
            f"{path}: belongs to {names} as well: who uninstalls or reinstalls one of them takes the patch, or the "
            "file, away, and `patchkit check` will say so"
        )
    return notes


def shadow_notes(distribution: Distribution, files: Iterable[str]) -> list[str]:
    """A note for each edited source that an import passes over, for a compiled module beside it, say."""
    from patchkit.site.shadow import Shadows

    shadows = Shadows(distribution)
    notes = []
    for path in files:
        module = shadows.find(path)
        if module is not None:
            notes.append(f"{path}: imports take {module} instead, so that this edit has no effect on them")
    return notes
