"""The files of one distribution with the patches laid on them so far, as the planner sees them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from patchkit.errors import GuardError, PatchkitError, PlanError, SiteError
from patchkit.ops.workspace import Pristine, Workspace
from patchkit.site.distribution import Distribution
from patchkit.site.guard import version_matches
from patchkit.site.paths import ResolvedFile, key_of, owners, resolve_added, resolve_file, resolve_gone, shared_with

if TYPE_CHECKING:
    from patchkit.edit.plan import FilePlan
    from patchkit.model.patch import Patch


class FileStack:
    """One file with the patches laid on it, in order. ``pristine`` is None for a file that a patch adds.

    A patch that takes the file away is alone on it.

    ``adopted`` are the directories (as keys, outermost first) of a file that was there already, as added, and that no
    RECORD knows: they go with it.
    """

    def __init__(
        self, key: str, path: str, absolute: str, distribution: Distribution, pristine: Pristine | None
    ) -> None:
        self.key = key
        self.path = path
        self.absolute = absolute
        self.distribution = distribution
        self.pristine = pristine
        self.adopted: tuple[str, ...] = ()
        self.layers: list[tuple[str, FilePlan]] = []

    @property
    def data(self) -> bytes | None:
        """The bytes with every layer on; None where a patch takes the file away."""
        if self.layers:
            return self.layers[-1][1].after
        return None if self.pristine is None else self.pristine.data


def taken_away(who: str, path: str, other: str) -> PlanError:
    """The error for a file that one patch needs and another takes away.

    Args:
        who: The part of the patch that needs it, as a message begins.
        path: The file.
        other: The patch that takes it away.
    """
    return PlanError(
        f"{who}: {path} is taken away by {other}",
        code="removed",
        hint=f"the two cannot be applied together: take one out, or name {other} in `conflicts`; nothing was written",
        details={"path": path, "other": other},
    )


def changed_by(patch: Patch, path: str, other: str) -> PlanError:
    """The error for a file that ``patch`` takes away and the patch ``other`` changes."""
    from patchkit.edit.plan import where

    index = next(remove.index for remove in patch.removes if path in remove.files)
    return PlanError(
        f"{where(patch, 'remove', index, 'file')}: {path} is changed by {other}, and cannot be taken away with that",
        code="removed",
        hint=f"the two cannot be applied together: take one out, or name {other} in `conflicts`; nothing was written",
        details={"path": path, "other": other},
    )


class StackFiles:
    """The files of one distribution, as the patch under plan finds them (``patchkit.edit.plan.Files``)."""

    def __init__(self, workspace: Workspace, distribution: Distribution, stacks: dict[str, FileStack]) -> None:
        self._workspace = workspace
        self._distribution = distribution
        self._stacks = stacks
        self._by_path: dict[str, FileStack] = {
            stack.path: stack for stack in stacks.values() if stack.distribution.info == distribution.info
        }

    @property
    def version(self) -> str:
        """The installed version."""
        return self._distribution.version

    def matches(self, specifier: str) -> bool:
        """Whether the installed version satisfies ``specifier``."""
        return version_matches(specifier, self._distribution.version)

    def read(self, path: str, *, wanted_by: Callable[[], str]) -> bytes:
        """The file's bytes with the patches laid so far."""
        stack = self._by_path.get(path)
        if stack is None:
            stack = self.open(path, wanted_by=wanted_by)
        data = stack.data
        if data is None:
            raise taken_away(wanted_by(), path, stack.layers[-1][0])
        return data

    def open(self, path: str, *, wanted_by: Callable[[], str]) -> FileStack:
        """The stack of one of the distribution's files, begun from pristine when it is new here."""
        if path in self._by_path:
            return self._by_path[path]
        try:
            resolved = resolve_file(self._distribution, path)
        except (PlanError, SiteError) as error:
            gone = self._gone(path) if error.code == "missing" else None
            if gone is None:
                error.message = f"{wanted_by()}: {error.message}"
                raise
            resolved = gone
        pristine = self._workspace.pristine(resolved, self._distribution)
        stack = FileStack(resolved.key, path, resolved.absolute, self._distribution, pristine)
        self._by_path[path] = self._stacks[resolved.key] = stack
        return stack

    def _gone(self, path: str) -> ResolvedFile | None:
        """The place of a file that is not there, where a patch took it away, or one that is to be laid does."""
        resolved = resolve_gone(self._distribution, path)
        entry = None if resolved is None else self._workspace.ledger.files.get(resolved.key)
        ours = entry is not None and entry.after is None
        wanted = any(path in remove.files for patch in self._workspace.suspects for remove in patch.removes)
        return resolved if ours or wanted else None

    def create(self, path: str, *, wanted_by: Callable[[], str], content: bytes | None = None) -> FileStack:
        """The stack of a file that a patch adds; it must not exist, unless an earlier apply of ours put it there.

        Whether one did is known from the ledger. Where that was lost, a regular file that no distribution's RECORD
        lists and that holds exactly ``content`` is adopted: nobody loses anything, and revert removes it, and the
        directories that no RECORD knows either.
        """
        if path in self._by_path:
            stack = self._by_path[path]
            if stack.layers and stack.data is None:
                raise taken_away(wanted_by(), path, stack.layers[-1][0])
            raise PlanError(
                f"{wanted_by()}: {path} already exists", code="exists", hint="edit it instead", details={"path": path}
            )
        absolute = os.path.join(self._distribution.base, *path.split("/"))
        key = key_of(self._workspace.site, absolute)
        entry = self._workspace.ledger.files.get(key)
        there = os.path.lexists(absolute)
        owner = self._released_by(path, key, there=there)
        if owner is not None:
            # It may be gone by a patch that goes now: laid over it, the added file would take its original's place.
            raise SiteError(
                f"{wanted_by()}: {path} exists already: it is a file of {owner}"
                + ("" if there else ", though it is not there now"),
                code="exists",
                hint="choose another name, or change the file with an edit",
                details={"path": path},
            )
        adopted: tuple[str, ...] = ()
        if entry is not None and entry.pristine is None and os.path.lexists(absolute):
            resolved = ResolvedFile(path, absolute, key, None)
        else:
            try:
                resolved = resolve_added(self._distribution, path)
            except (PlanError, SiteError) as error:
                if error.code != "exists" or content is None or not self._adoptable(error, path, absolute, content):
                    error.message = f"{wanted_by()}: {error.message}"
                    raise
                resolved = ResolvedFile(path, absolute, key, None)
                adopted = self._unlisted_directories(path)
        stack = FileStack(resolved.key, path, resolved.absolute, self._distribution, None)
        stack.adopted = adopted
        self._by_path[path] = self._stacks[resolved.key] = stack
        return stack

    def _released_by(self, path: str, key: str, *, there: bool) -> str | None:
        """Whose release a file is of, by the original that the ledger holds of it, or by a RECORD; None: nobody's.

        Where a file is ``there``, what a RECORD says of it is told with what it holds.
        """
        own = f"{self._distribution.name} {self._distribution.version}"
        entry = self._workspace.entry_in_force(key)
        if entry is not None and entry.pristine is not None:
            return own if entry.distribution == self._distribution.normalized else entry.distribution
        if there:
            return None
        if self._distribution.record.entry(path) is not None:
            return own
        others = shared_with(self._distribution, [path]).get(path)
        return f"{others[0].name} {others[0].version}" if others else None

    def _adoptable(self, error: PatchkitError, path: str, absolute: str, content: bytes) -> bool:
        """Whether the file that is in the way is the one to be added; where not, ``error`` is told what differs."""
        listed = [one.name for one in owners(self._workspace.site, path, self._distribution.base)]
        if listed:
            error.message += f": it is a file of {listed[0]}"
            return False
        folder = os.path.realpath(self._distribution.base)
        direct = os.path.realpath(absolute) == os.path.join(folder, *path.split("/"))
        if not (direct and os.path.isfile(absolute)):
            error.message += ", and is no regular file" if direct else ", as a link or behind one"
            return False
        found = self._workspace.current(absolute)
        if found == content:
            return True
        assert found is not None
        from shlex import quote

        first = next((n for n, (a, b) in enumerate(zip(found, content, strict=False)) if a != b), None)
        at = min(len(found), len(content)) if first is None else first
        error.message += (
            f", with other content than the patch adds: {len(found)} bytes, {len(content)} to be added; the first "
            f"difference is in line {content.count(10, 0, at) + 1}"
        )
        error.hint = (
            "no RECORD lists it: where it is left over from an earlier version of this patch, remove it and apply "
            f"again (rm {quote(absolute)}); else choose another name"
        )
        return False

    def _unlisted_directories(self, path: str) -> tuple[str, ...]:
        """The directories of an adopted file that no path of the distribution lies in, as keys, outermost first."""
        found: list[str] = []
        folder = path.rpartition("/")[0]
        listed = self._distribution.record.paths()
        while "/" in folder and not any(one.startswith(folder + "/") for one in listed):
            found.insert(0, key_of(self._workspace.site, os.path.join(self._distribution.base, *folder.split("/"))))
            folder = folder.rpartition("/")[0]
        return tuple(found)

    def siblings(self) -> Iterable[tuple[str, bytes]]:
        """The distribution's Python files, for "it is over there"."""
        for path in self._distribution.record.files():
            if path.endswith((".py", ".pyi")):
                try:
                    resolved = resolve_file(self._distribution, path)
                    data = self._workspace.current(resolved.absolute)
                except (PlanError, SiteError, GuardError):
                    continue
                if data is not None:
                    yield path, data
