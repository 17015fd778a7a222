"""What was edited by hand: every file of a distribution that is not as it should be, before and after."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from patchkit.author.mark import check_mark
from patchkit.author.original import Originals
from patchkit.edit.regions import apply_script
from patchkit.errors import PatchkitError, PlanError, SiteError
from patchkit.model import checks
from patchkit.ops.change import ledger_patch
from patchkit.ops.witness import leads_away, refuse_foreign_link
from patchkit.ops.workspace import Workspace, digest
from patchkit.runtime.ledger import open_regular
from patchkit.site.guard import version_matches
from patchkit.site.paths import LARGEST_FILE, key_of, owners, package_directories
from patchkit.site.record import leads_out
from patchkit.state.ledger import FileEntry, PatchEntry, scripts_of
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.site.distribution import Distribution

_BINARY = (".so", ".pyd", ".dll", ".dylib", ".a", ".o", ".exe", ".pyc", ".pyo")
"""Endings of files that are no text; they are not compared, since nobody edits them by hand."""

_LEFTOVERS = ("~", ".orig", ".rej", ".bak", ".swp", ".swo", ".tmp")
"""Endings of what editors and patch tools leave behind."""

GONE = "is gone, and its original cannot be had"
GONE_FOLDER = "is a folder that is gone: `--only` with its files makes a patch that takes them away"
WRITTEN = "is gone, and {names} writes it: what another patch writes cannot be taken away"
BACK = "is there again, with other content, though {names} takes it away"
NOT_PLAIN = "is a new file with NUL bytes or carriage returns, which a patch file cannot hold"
NOT_ASKED = "is left out, as asked"
NO_FILE = "is something else than a file, which a patch cannot take away"
LINK = "is a link, which a patch file cannot hold"
LED_AWAY = "is, or lies behind, a link that leads elsewhere: what is there is no file of this distribution"
TOO_LARGE = f"is larger than {LARGEST_FILE >> 20} MiB, which no source file is"


class Changed(NamedTuple):
    """A file before and after. ``stacked`` are applied patches that it has; ``before`` is with them."""

    path: str
    before: bytes
    after: bytes
    stacked: tuple[str, ...] = ()


class Gathered(NamedTuple):
    """Changed files, new ones, and what was seen and cannot be part of a patch, each with the reason.

    ``removed`` are the release's files that are gone, with what they held.

    ``held`` are the files that the patch has already which is made anew (none of them may be left out in silence), each
    with whether it was edited since.
    """

    changed: list[Changed]
    added: list[tuple[str, bytes]]
    left: list[tuple[str, str]]
    held: dict[str, bool]
    removed: list[tuple[str, bytes]]

    @property
    def paths(self) -> list[str]:
        """The files of a patch: those changed, new and gone, in that order."""
        return [change.path for change in self.changed] + [path for path, _ in (*self.added, *self.removed)]

    @property
    def nothing(self) -> bool:
        """Whether nothing differs that a patch could hold."""
        return not (self.changed or self.added or self.removed)


class Choice:
    """The files that are asked for, by shell patterns; all of them where there is none."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = patterns
        self._hit: set[str] = set()

    def take(self, path: str) -> bool:
        """Whether a file that differs is asked for; the patterns that fit it are idle no more."""
        hits = {pattern for pattern in self._patterns if fnmatchcase(path, pattern)}
        self._hit |= hits
        return bool(hits) or not self._patterns

    def names(self, path: str) -> bool:
        """Whether a pattern asks for the file."""
        return any(fnmatchcase(path, pattern) for pattern in self._patterns)

    @property
    def idle(self) -> list[str]:
        """The patterns that fitted no file that differs."""
        return [pattern for pattern in self._patterns if pattern not in self._hit]


def in_site(
    workspace: Workspace,
    distribution: Distribution,
    originals: Originals,
    *,
    choice: Choice,
    renewed: PatchEntry | None = None,
) -> Gathered:
    """What differs in the site from what the installer, or patchkit, put there.

    Args:
        workspace: The site.
        distribution: The distribution.
        originals: Its pristine bytes.
        choice: The files that are asked for.
        renewed: An applied patch that is made anew: what it wrote is part of the difference.

    Raises:
        PlanError: ``beneath``: another patch lies on top of ``renewed`` in a file that was edited.
        SiteError: A file cannot be read, or its original cannot be had (``fetch``).
    """
    found = Gathered([], [], [], {}, [])
    for path in _own_files(distribution):
        absolute = os.path.join(distribution.base, *path.split("/"))
        key = key_of(workspace.site, absolute)
        entry = workspace.entry_in_force(key)
        if entry is None:
            if not os.path.isfile(absolute):
                if not os.path.isdir(os.path.dirname(absolute)) and not choice.names(path):
                    _note_folder(found, distribution, path)
                elif not _hidden(found, path, absolute, away=leads_away(workspace.site, absolute)):
                    _gone(found, path, originals, choice)
            elif _differs(absolute, path, originals):
                away = leads_away(workspace.site, absolute)
                _compare(found, path, absolute, originals, choice, away=away)
            continue
        refuse_foreign_link(workspace, absolute)
        current = workspace.current(absolute)
        if current is None:
            _gone(found, path, originals, choice, _names_on(workspace, key), entry, renewed)
        elif entry.pristine is not None and digest(current) == entry.pristine.sha256:
            if renewed is not None and key in renewed.files:
                found.held[path] = True  # undone by hand
        else:
            _patched(found, workspace, path, key, current, choice, renewed)
    for key, entry in workspace.ledger.files.items():
        if entry.pristine is None and entry.distribution == distribution.normalized and workspace.entry_in_force(key):
            absolute = workspace.absolute(key)
            path = os.path.relpath(absolute, distribution.base).replace(os.sep, "/")
            current = workspace.current(absolute)
            if current is not None:
                _patched(found, workspace, path, key, current, choice, renewed)
            elif renewed is not None and [layer.patch for layer in entry.layers] == [renewed.name]:
                found.held[path] = True
            else:
                found.left.append((path, WRITTEN.format(names=" and ".join(_names_on(workspace, key)))))
    for path, absolute in _strangers(distribution, found):
        entry = workspace.ledger.files.get(key_of(workspace.site, absolute))
        if entry is None and not owners(workspace.site, path, distribution.base):
            _note_new(found, path, absolute, choice)
    return found


def _patched(
    found: Gathered,
    workspace: Workspace,
    path: str,
    key: str,
    current: bytes,
    choice: Choice,
    renewed: PatchEntry | None,
) -> None:
    """What differs in a file that applied patches have: from what they wrote; of ``renewed``, from what is under it."""
    entry = workspace.ledger.files[key]
    names = _names_on(workspace, key)
    if entry.after is None:
        if renewed is None or renewed.name not in names:
            found.left.append((path, BACK.format(names=" and ".join(names))))
            return
        original = workspace.original(key)
        assert original is not None
        found.held[path] = True
        _note(found, Changed(path, original.data, current))
        return
    edited = not entry.ours(current)
    if edited and not choice.take(path):
        found.left.append((path, NOT_ASKED))
        edited = False
    if renewed is None or renewed.name not in names:
        if edited:
            _note(found, Changed(path, workspace.written(key), current, names))
        return
    found.held[path] = edited
    at = names.index(renewed.name)
    if edited and names[at + 1 :]:
        above = names[at + 1 :]
        raise PlanError(
            f"{path}: was edited on top of {', '.join(above)}, which {renewed.name} lies beneath",
            code="beneath",
            hint="make a patch of its own of the edit, under another name; or take out what is above "
            f"(`patchkit revert {' '.join(above)}` keeps the edit), make this one, and apply that again",
            details={"path": path, "above": list(above)},
        )
    written = workspace.written(key)
    steps = _steps(workspace, path, key, written)
    before = steps[at]
    after = current if edited else steps[at + 1]
    assert after is not None
    if before is None:
        note_added(found, path, after)
    else:
        _note(found, Changed(path, before, after, names[:at]))


def _names_on(workspace: Workspace, key: str) -> tuple[str, ...]:
    """The applied patches that a file has."""
    entry = workspace.ledger.files.get(key)
    names = () if entry is None else tuple(layer.patch for layer in entry.layers)
    return names or tuple(patch.name for patch in workspace.ledger.patches if key in patch.files)


def _gone(
    found: Gathered,
    path: str,
    originals: Originals,
    choice: Choice,
    names: Sequence[str] = (),
    entry: FileEntry | None = None,
    renewed: PatchEntry | None = None,
) -> None:
    """Note a file of the release that is not there, which a patch takes away; that nobody did before, as it shall."""
    ours = renewed is not None and tuple(names) == (renewed.name,)
    if entry is not None and not ours:
        if entry.after is not None:
            found.left.append((path, WRITTEN.format(names=" and ".join(names))))
        return
    edited = entry is None or entry.after is not None
    if edited and not choice.take(path):
        found.left.append((path, NOT_ASKED))
        return
    if any(reason == GONE for _, reason in found.left):
        found.left.append((path, GONE))  # to ask the index once for each of them would take minutes
        return
    try:
        before = originals.of(path)
    except PatchkitError:
        found.left.append((path, GONE))
        return
    if ours:
        found.held[path] = edited
    found.removed.append((path, before))


def _hidden(found: Gathered, path: str, absolute: str, *, away: bool) -> bool:
    """Whether something else than a file is where a listed one was, or is on the way to it: then none is gone."""
    if away or os.path.lexists(absolute):
        found.left.append((path, LED_AWAY if away else NO_FILE))
        return True
    return False


def _steps(workspace: Workspace, path: str, key: str, written: bytes) -> list[bytes | None]:
    """What a file holds before the first patch on it, and after each; None where there was no file."""
    original, layers = workspace.original(key), workspace.ledger.files[key].layers
    steps = [None if original is None else original.data]
    if original is None and len(layers) > 1:
        adder = workspace.ledger.patch(layers[0].patch)
        assert adder is not None
        adds = [add for add in ledger_patch(workspace, adder).adds if add.file == path]
        fitting = [add for add in adds if add.versions is None or version_matches(add.versions, adder.version)]
        steps.append(fitting[0].content.encode("utf-8"))
        layers = layers[1:]
    elif len(layers) < 2:
        return [*steps, written]
    for _, script in scripts_of(layers, steps[-1] or b"", written):
        steps.append(apply_script(steps[-1] or b"", script))
    return steps


def _differs(absolute: str, path: str, originals: Originals) -> bool:
    """Whether a listed file is not known to be what was installed. It is read in pieces: most are, and some are large.

    Raises:
        SiteError: ``unreadable``.
    """
    with _reading(absolute), open_regular(absolute) as file:
        return originals.genuine_file(path, file) is not True


def _compare(found: Gathered, path: str, absolute: str, originals: Originals, choice: Choice, *, away: bool) -> None:
    """Note a file whose hash is not RECORD's, where it differs. ``away``: it is another place's, behind a link."""
    if not choice.take(path):
        found.left.append((path, NOT_ASKED))
        return
    current = None if away else _read(absolute)
    if away or current is None:
        found.left.append((path, LED_AWAY if away else TOO_LARGE))
        return
    before = originals.of(path)
    if before != current:
        _note(found, Changed(path, before, current))


def in_folder(folder: str, distribution: Distribution, originals: Originals, *, choice: Choice) -> Gathered:
    """What differs in a scratch copy (``patchkit edit``) from the pristine distribution.

    Raises:
        SiteError: ``not-a-copy``: the folder holds no file of the distribution; or as :func:`in_site`.
    """
    if not os.path.isdir(folder):
        raise SiteError(
            f"{folder}: " + ("is no folder" if os.path.lexists(folder) else "no such folder"),
            code="not-a-copy",
            hint=f"make a copy with `patchkit edit {distribution.name} {shlex.quote(folder)}`",
            details={"path": folder, "distribution": distribution.name},
        )
    marked = check_mark(folder, distribution)
    found = Gathered([], [], [], {}, [])
    listed = list(_own_files(distribution))
    there = [path for path in listed if os.path.isfile(os.path.join(folder, *path.split("/")))]
    if not there and not marked:
        raise SiteError(
            f"{folder}: holds no file of {distribution.name} {distribution.version} at its place",
            code="not-a-copy",
            hint=f"name the folder that holds its packages, or make a copy with `patchkit edit {distribution.name}`",
            details={"path": folder, "distribution": distribution.name},
        )
    inside = os.path.join(os.path.realpath(folder), "")
    for path in listed:
        absolute = os.path.join(folder, *path.split("/"))
        away = not os.path.realpath(absolute).startswith(inside)
        if not os.path.isfile(absolute):
            entry = distribution.record.entry(path)
            hashed = entry is not None and entry.digest is not None  # then the copy had it, be it in the site or not
            installed = os.path.isfile(os.path.join(distribution.base, *path.split("/")))
            missing = installed or (hashed and os.path.isdir(os.path.dirname(absolute)))
            if missing and not _hidden(found, path, absolute, away=away):
                _gone(found, path, originals, choice)
        elif _differs(absolute, path, originals):
            _compare(found, path, absolute, originals, choice, away=away)
    tops = package_directories(distribution)
    for top in tops:
        for path, absolute in _walk(folder, top, set(listed), found):
            _note_new(found, path, absolute, choice)
    if marked:
        outside = f"is a new file outside of the packages of {distribution.name}"
        for name in sorted(os.listdir(folder)):
            if os.path.isdir(os.path.join(folder, name)) and name not in (*tops, "__pycache__") and name[0] != ".":
                found.left.extend((path, outside) for path, _ in _walk(folder, name, set(listed), found))
            elif os.path.isfile(os.path.join(folder, name)) and name not in listed and name[0] != ".":
                found.left.append((name, outside))
    return found


def _own_files(distribution: Distribution) -> Iterator[str]:
    """The listed files that a patch can edit: below the base, no metadata, no binary."""
    for path in distribution.record.paths():
        top = path.partition("/")[0]
        if leads_out(path) or path.endswith(_BINARY) or top.endswith((".dist-info", ".egg-info", ".data")):
            continue
        yield path


def _strangers(distribution: Distribution, found: Gathered) -> Iterator[tuple[str, str]]:
    """Files in the distribution's own packages that it does not list."""
    listed = set(distribution.record.paths())
    for top in package_directories(distribution):
        yield from _walk(distribution.base, top, listed, found)


def _walk(base: str, top: str, listed: set[str], found: Gathered) -> Iterator[tuple[str, str]]:
    """The files below a folder that are not listed; those that editors and patch tools leave behind are left out."""
    for directory, folders, names in os.walk(os.path.join(base, top)):
        folders[:] = sorted(name for name in folders if name != "__pycache__" and not name.startswith("."))
        for name in sorted(names):
            if not name.startswith(".") and not name.endswith(_BINARY):
                absolute = os.path.join(directory, name)
                path = os.path.relpath(absolute, base).replace(os.sep, "/")
                if path in listed:
                    continue
                if name.endswith(_LEFTOVERS):
                    found.left.append((path, "is what an editor or a patch tool left behind, by its name"))
                else:
                    yield path, absolute


def _note_folder(found: Gathered, distribution: Distribution, path: str) -> None:
    """Name the outermost directory that is not there, once: it may never have been, whatever RECORD lists."""
    parts = path.split("/")
    for count in range(1, len(parts)):
        if not os.path.isdir(os.path.join(distribution.base, *parts[:count])):
            folder = "/".join(parts[:count]) + "/"
            if (folder, GONE_FOLDER) not in found.left:
                found.left.append((folder, GONE_FOLDER))
            return


@contextmanager
def _reading(absolute: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SiteError(
            f"{absolute}: cannot be read: {error.strerror}",
            code="unreadable",
            hint="check the file and your permissions",
            details={"path": absolute},
        ) from None


def _read(absolute: str) -> bytes | None:
    """The bytes of a regular file; None where it is too large to be a source.

    Raises:
        SiteError: ``unreadable``.
    """
    with _reading(absolute), open_regular(absolute) as file:
        if os.fstat(file.fileno()).st_size > LARGEST_FILE:
            return None
        return file.read()


def unwritable(path: str) -> str | None:
    """Why a patch file cannot name a path, in words; None where it can."""
    complaint = checks.path(path)
    return None if complaint is None else complaint.message.removeprefix(f"{checks.quote(path)} ")


def _note(found: Gathered, change: Changed) -> None:
    reason = unwritable(change.path)
    if reason is not None:
        found.left.append((change.path, reason))
    elif b"\0" in change.after[:8192] or b"\0" in change.before[:8192]:
        found.left.append((change.path, "is not a text file"))
    else:
        found.changed.append(change)


def _note_new(found: Gathered, path: str, absolute: str, choice: Choice) -> None:
    """Note a file that the distribution does not list."""
    if os.path.islink(absolute):
        # What it leads to may be anybody's, and would become a part of the patch file.
        found.left.append((path, LINK))
    elif os.path.isfile(absolute):
        if not choice.take(path):
            found.left.append((path, NOT_ASKED))
            return
        data = _read(absolute)
        if data is None:
            found.left.append((path, TOO_LARGE))
        else:
            note_added(found, path, data)


def note_added(found: Gathered, path: str, data: bytes) -> None:
    """Note a new file: as one that a patch adds, or left out with the reason why none can."""
    reason = unwritable(path)
    if reason is None:
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            reason = "is a new file that is not UTF-8 text"
    if reason is None and (b"\0" in data or b"\r" in data):
        reason = NOT_PLAIN
    if reason is None:
        found.added.append((path, data))
    else:
        found.left.append((path, reason))
