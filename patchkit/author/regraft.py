"""What was edited in a copy that ``transplant`` made: shown, carried over to another release, and made a patch."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from patchkit.author.create import compose
from patchkit.author.gather import Changed, Gathered
from patchkit.author.merging import Labels, conflict_lines, merge_lines
from patchkit.author.original import Originals
from patchkit.author.reimport import Rewritten, Tree, undo
from patchkit.author.target import opened_for
from patchkit.author.transplant import Taken, executable_like, lay, recover, replaced, rewritten, take, tree_of
from patchkit.author.transplanted import ENGINE, Manifest, base_of, engine_files, read_manifest
from patchkit.edit.parse import PARSE_ERRORS, Parse
from patchkit.edit.source import Source
from patchkit.edit.unified import file_names, hunks
from patchkit.errors import GuardError, PlanError, SiteError
from patchkit.runtime.ledger import read_regular
from patchkit.runtime.transplant import MANIFEST
from patchkit.site.grammar import Grammar
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.model.patch import Patch
    from patchkit.site.environment import Site

_LEFTOVERS = ("~", ".orig", ".rej", ".bak", ".swp", ".swo", ".tmp", ".pyc")
_PARSED = (".py", ".pyi")


class Edit(NamedTuple):
    """A file of a copy that a person edited, with the rewritten imports undone: ``before`` is what it was made of.

    ``source`` is where it is in the site. ``before`` is None for a new file, ``after`` for one that was removed.
    """

    path: str
    source: str
    before: bytes | None
    after: bytes | None

    @property
    def state(self) -> str:
        """``edited``, ``added`` or ``removed``."""
        return "added" if self.before is None else "removed" if self.after is None else "edited"


class Edits(NamedTuple):
    """What a person did to a copy, and whether its release is the one that is installed (None: it is not there)."""

    manifest: Manifest
    edits: list[Edit]
    notes: list[str]
    installed: str | None
    moved: list[str]


class Outcome(NamedTuple):
    """What ``update`` made of one file."""

    path: str
    state: Literal["unchanged", "updated", "merged", "kept", "added", "removed", "conflict"]
    lines: Sequence[int] = ()


class Updated(NamedTuple):
    """A copy of another release. ``moved`` are the site's files that are not what the copy was made of; ``done`` is
    false where nothing was to be done, or nothing was written.
    """

    before: Manifest
    after: Manifest
    outcomes: list[Outcome]
    moved: list[str]
    left: Sequence[tuple[str, str]]
    notes: list[str]
    done: bool


def edits_in(site: Site, folder: str, *, notice: Callable[[str], None], progress: Callable[[str], None]) -> Edits:
    """What was edited in the copy in ``folder``, and whether the site still has what it was made of.

    Raises:
        UsageError: ``not-a-transplant``.
        SiteError: ``corrupt``, ``unreadable``.
    """
    recover(folder, notice)
    manifest = read_manifest(folder)
    notes: list[str] = []
    edits = _edits(folder, manifest, Grammar(site).parse, notes)
    try:
        taken = take(site, manifest.module, pristine=manifest.bytes == "pristine", notice=notice, progress=progress)
    except GuardError:
        return Edits(manifest, edits, notes, None, [])
    moved = _moved(manifest, taken)
    return Edits(manifest, edits, notes, taken.found.distribution.version, moved)


def _moved(manifest: Manifest, taken: Taken) -> list[str]:
    """The files of the site that are not what the copy was made of."""
    was = {file.source: file.source_sha256 for file in manifest.files}
    now = {source: hashlib.sha256(taken.data[path]).hexdigest() for path, source in taken.found.files}
    return sorted(source for source in was.keys() | now.keys() if was.get(source) != now.get(source))


def _tree(manifest: Manifest) -> Tree:
    copy = manifest.copy if manifest.package else f"{manifest.copy}.{manifest.module.rpartition('.')[2]}"
    return Tree(manifest.module, copy, frozenset(manifest.left))


def _edits(folder: str, manifest: Manifest, parse: Parse, notes: list[str]) -> list[Edit]:
    found = []
    tree = _tree(manifest)
    for file in manifest.files:
        current = _read(folder, file.path)
        if current is not None and hashlib.sha256(current).hexdigest() == file.copy_sha256:
            continue
        base = base_of(folder, file)
        made = rewritten(file.path, base, tree, manifest.package, parse)[1]
        after = None if current is None else _undone(file.path, current, made, tree, parse, notes)
        if after != base:
            found.append(Edit(file.path, file.source, base, after))
    top = (
        manifest.module.replace(".", "/") if manifest.package else manifest.module.replace(".", "/").rpartition("/")[0]
    )
    for path in _own(folder, manifest):
        current = _read(folder, path)
        if current is not None:
            after = _undone(path, current, Rewritten([], [], {}, []), tree, parse, notes)
            found.append(Edit(path, f"{top}/{path}" if top else path, None, after))
    return found


def _undone(path: str, current: bytes, made: Rewritten, tree: Tree, parse: Parse, notes: list[str]) -> bytes:
    """A file of the copy as it would be in the tree."""
    if not path.endswith(_PARSED):
        return current
    source = Source(current, path=path)
    try:
        found: list[str] = []
        after = source.render(undo(source, parse(source.text), made, tree, found))[0]
        notes += [f"{path}: {note}" for note in found]
        return after
    except (*PARSE_ERRORS, PlanError):
        notes.append(f"{path}: does not parse: its imports are shown as the copy's")
        return current


def _own(folder: str, manifest: Manifest) -> Iterator[str]:
    """Files of a person's own in a copy."""
    known = {file.path for file in manifest.files} | set(engine_files(manifest)) | {MANIFEST}
    known |= set() if manifest.package else {"__init__.py"}
    for directory, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__" and not name.startswith("."))
        if directory == folder and ENGINE in folders:
            folders.remove(ENGINE)
        for name in sorted(names):
            path = os.path.relpath(os.path.join(directory, name), folder).replace(os.sep, "/")
            if path not in known and not name.startswith(".") and not name.endswith(_LEFTOVERS):
                yield path


def _read(folder: str, path: str) -> bytes | None:
    absolute = os.path.join(folder, *path.split("/"))
    try:
        return read_regular(absolute)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise SiteError(
            f"{absolute}: cannot be read: {error.strerror}",
            code="unreadable",
            hint="check the file and your permissions",
            details={"path": absolute},
        ) from None


def unified(edits: Sequence[Edit]) -> bytes:
    """The edits as a unified diff of the site's files."""
    out = []
    for edit in edits:
        lines = list(hunks(edit.before or b"", edit.after or b""))
        if lines:
            old, new = file_names(edit.source, edit.before, edit.after)
            out += [f"--- {old}\n+++ {new}\n".encode("utf-8", "surrogateescape"), *lines]
    return b"".join(out)


def update(
    site: Site,
    folder: str,
    *,
    dry_run: bool,
    notice: Callable[[str], None],
    progress: Callable[[str], None],
) -> Updated:
    """Carry a copy over to what the site has now, with what was edited in it: three-way, line by line.

    The folder is exchanged as a whole when all of it is made. Conflicts are marked in the files.

    Args:
        site: The site.
        folder: The copy.
        dry_run: Write nothing.
        notice: Told of an interrupted command that was mended.
        progress: Told of downloads.

    Raises:
        UsageError: ``not-a-transplant``.
        GuardError: ``not-installed``, ``editable``.
        PlanError: ``conflicts``: marks of an earlier update are still in its files.
        SiteError: A file cannot be read; the folder cannot be written.
    """
    recover(folder, notice)
    folder = os.path.realpath(folder)  # a link stays one
    manifest = read_manifest(folder)
    _refuse_marks(folder, manifest)
    taken = take(site, manifest.module, pristine=manifest.bytes == "pristine", notice=notice, progress=progress)
    if taken.found.package != manifest.package:
        raise PlanError(
            f"{manifest.module} was a {'package' if manifest.package else 'module'}, and is none any more",
            code="stale-copy",
            hint="make a copy anew, and move your edits over: `patchkit transplant diff` shows them",
            details={"path": folder},
        )
    held, outcomes = _merged(folder, manifest, taken)
    notes = [
        f"{name} was applied when the copy was made, and is not any more: what it changed is taken out of the copy, "
        "too, and stays in its patch file"
        for name in manifest.patches
        if name not in taken.patches
    ]
    moved = _moved(manifest, taken)
    if dry_run or not (moved or taken.found.distribution.version != manifest.version):
        return Updated(manifest, manifest, outcomes, moved, taken.found.left, notes, False)
    with replaced(folder) as target:
        gone = {file.path for file in manifest.files} | set(engine_files(manifest)) | {MANIFEST}
        _copy_rest(folder, target, gone)
        after = lay(taken, target, manifest.copy, pristine=manifest.bytes == "pristine", notes=notes, held=held)
        for path, data in held.items():
            absolute = os.path.join(target, *path.split("/"))
            os.makedirs(os.path.dirname(absolute), exist_ok=True)
            with open(absolute, "wb") as file:
                file.write(data)
            executable_like(os.path.join(folder, *path.split("/")), absolute)
    return Updated(manifest, after, outcomes, moved, taken.found.left, notes, True)


def _refuse_marks(folder: str, manifest: Manifest) -> None:
    marked = {}
    for file in manifest.files:
        lines = conflict_lines(_read(folder, file.path) or b"")
        if lines and not conflict_lines(base_of(folder, file)):
            marked[file.path] = lines
    if marked:
        path, lines = next(iter(marked.items()))
        raise PlanError(
            f"{os.path.join(folder, path)}:{lines[0]}: conflicts of an earlier update are still marked in "
            f"{', '.join(marked)}",
            code="conflicts",
            hint="decide each, and remove its marks (<<<<<<<, |||||||, =======, >>>>>>>)",
            details={"path": path, "line": lines[0], "files": sorted(marked)},
        )


def _copy_rest(folder: str, target: str, gone: set[str]) -> None:
    """All that a person keeps in a copy besides: their own files, hidden ones, links."""

    def ignored(directory: str, names: list[str]) -> list[str]:
        below = os.path.relpath(directory, folder).replace(os.sep, "/")
        paths = {name: name if below == "." else f"{below}/{name}" for name in names}
        return [name for name, path in paths.items() if path in gone or path == ENGINE or name == "__pycache__"]

    shutil.copytree(folder, target, symlinks=True, ignore=ignored, dirs_exist_ok=True)


def _merged(folder: str, manifest: Manifest, taken: Taken) -> tuple[dict[str, bytes], list[Outcome]]:
    """What each file of the new copy holds, and what became of it."""
    tree, fresh = _tree(manifest), tree_of(taken.found, manifest.copy)
    parse = taken.grammar.parse
    release = f"{manifest.distribution} {manifest.version}"
    labels = Labels("yours", release, f"{manifest.distribution} {taken.found.distribution.version}")
    held: dict[str, bytes] = {}
    outcomes = []
    now = {path for path, _ in taken.found.files}
    was = {file.path: file for file in manifest.files}
    for path in sorted(now | was.keys()):
        file = was.get(path)
        base = None if file is None else base_of(folder, file)
        ours = _read(folder, path)
        made = None if base is None else rewritten(path, base, tree, manifest.package, parse)[0]
        if file is not None and ours is not None and hashlib.sha256(ours).hexdigest() == file.copy_sha256:
            made = ours  # as it was made, be it by another patchkit
        theirs = rewritten(path, taken.data[path], fresh, manifest.package, parse)[0] if path in now else None
        data, outcome = _one(path, made, ours, theirs, labels)
        if data is not None:
            held[path] = data
        outcomes.append(outcome)
    return held, outcomes


def _one(
    path: str, base: bytes | None, ours: bytes | None, theirs: bytes | None, labels: Labels
) -> tuple[bytes | None, Outcome]:
    """One file, merged: its three versions are None where there is no such file."""
    if ours == base:
        state = (
            "unchanged" if theirs == base else "added" if base is None else "removed" if theirs is None else "updated"
        )
        return theirs, Outcome(path, state)  # type: ignore[arg-type]  # one of its words
    if theirs in (base, ours):
        return ours, Outcome(path, "kept")
    if ours is None or theirs is None:  # removed on one side, edited on the other: nothing of it is lost
        return (theirs if ours is None else ours), Outcome(path, "conflict")
    if any(b"\0" in data[:8192] for data in (base or b"", ours, theirs)):  # no lines, and no place for marks
        return ours, Outcome(path, "conflict")
    data, conflicts = merge_lines(base or b"", ours, theirs, labels)
    return data, Outcome(path, "conflict" if conflicts else "merged", conflict_lines(data) if conflicts else ())


class Composed(NamedTuple):
    """A patch made of the edits in a copy. ``path`` is where it was saved (None: nowhere, in a dry run)."""

    manifest: Manifest
    patch: Patch
    path: str | None
    edits: list[Edit]
    left: Sequence[tuple[str, str]]
    notes: Sequence[str]


def to_patch(
    site: Site,
    folder: str,
    name: str,
    *,
    path: str,
    summary: str | None = None,
    dry_run: bool = False,
    overwrite: bool = False,
    head: str = "",
    notice: Callable[[str], None],
    progress: Callable[[str], None],
) -> Composed:
    """Make a patch of what was edited in a copy: the same change to the site's own files, proved to give their bytes.

    Args:
        site: The site, which has what the copy was made of.
        folder: The copy.
        name: The patch's name.
        path: Where to save it.
        summary: Its summary.
        dry_run: Save nothing.
        overwrite: Replace a file at ``path``.
        head: What the file begins with.
        notice: Told of an interrupted command that was mended.
        progress: Told of downloads.

    Raises:
        UsageError: ``not-a-transplant``; ``exists``.
        GuardError: ``not-installed``.
        PlanError: ``stale-copy``: the site has other bytes by now; ``conflicts``; or as ``create`` does.
    """
    from patchkit.author.beside import save_patch
    from patchkit.author.save import check_free

    check_free(name, path, overwrite=overwrite or dry_run)
    recover(folder, notice)
    manifest = read_manifest(folder)
    _refuse_marks(folder, manifest)
    taken = take(site, manifest.module, pristine=manifest.bytes == "pristine", notice=notice, progress=progress)
    moved = _moved(manifest, taken)
    if moved:
        raise PlanError(
            f"{folder}: is a copy of {manifest.distribution} {manifest.version}, and the site has another {moved[0]} "
            f"by now ({manifest.distribution} {taken.found.distribution.version})",
            code="stale-copy",
            hint=f"patchkit transplant update {shlex.quote(folder)}",
            details={"path": folder, "held": manifest.version, "installed": taken.found.distribution.version},
        )
    notes: list[str] = []
    edits = _edits(folder, manifest, taken.grammar.parse, notes)
    name_of = taken.found.distribution.name
    with opened_for(site, name_of, write=False, notice=notice) as (workspace, distribution):
        originals = Originals(workspace.site.home, distribution, progress)
        gathered = Gathered([], [], [], {}, [])
        for edit in edits:
            _gather(gathered, edit, taken, originals, notes)
        patch, gathered = compose(
            name,
            distribution,
            gathered,
            taken.grammar,
            place=folder,
            summary=summary,
            description=f"Made of a copy of {manifest.module}, {distribution.name} {distribution.version}. Say here "
            "why, and until when it is needed.\n",
            head=head,
        )
    if not dry_run:
        save_patch(path, patch.data, notice, overwrite=overwrite)
    return Composed(manifest, patch, None if dry_run else path, edits, gathered.left, notes)


def _gather(gathered: Gathered, edit: Edit, taken: Taken, originals: Originals, notes: list[str]) -> None:
    """One edit, as ``create`` takes it."""
    if edit.before is None:
        assert edit.after is not None
        try:
            edit.after.decode("utf-8")
        except UnicodeDecodeError:
            gathered.left.append((edit.source, "is a new file that is not UTF-8 text"))
        else:
            gathered.added.append((edit.source, edit.after))
    elif edit.after is None:
        if edit.source in taken.patched or edit.source in taken.edited:
            gathered.left.append((edit.source, "is gone from the copy, and is not as installed in the site"))
        else:
            gathered.removed.append((edit.source, edit.before))
    elif b"\0" in edit.after[:8192]:
        gathered.left.append((edit.source, "is not a text file"))
    else:
        before = edit.before
        if edit.source in taken.edited:
            before = originals.of(edit.source)
            notes.append(f"{edit.source}: was edited in the site before it was copied; that is part of the patch")
        gathered.changed.append(Changed(edit.source, before, edit.after, taken.patched.get(edit.source, ())))
