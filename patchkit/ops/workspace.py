"""One site under work: its ledger, its distributions, and what every file holds and once held.

This is where pristine bytes come from (DESIGN section 5): the file itself when its hash is RECORD's, else the
ledger's copy. Bytes that are neither are never taken for pristine.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from patchkit.errors import GuardError, PlanError, SiteError
from patchkit.runtime.ledger import file_path, installed, sha256_hex
from patchkit.site.distribution import Distribution, find_distribution
from patchkit.site.environment import Site
from patchkit.site.guard import version_matches
from patchkit.site.paths import ResolvedFile, key_of, resolve_added, resolve_file
from patchkit.state import blobs
from patchkit.state.ledger import FileEntry, Ledger, PatchEntry
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.edit.plan import FilePlan
    from patchkit.model.patch import Patch
    from patchkit.site.record import Entry

#: A patched file that is larger than this is refused: nobody's source, and the ledger would hold it twice.
LARGEST_FILE = 64 << 20


class Pristine(NamedTuple):
    """The bytes that the installer put there, and how that is known.

    ``witness`` is "record" (RECORD's hash), "wheel" (the released wheel) or "none" (the distribution records no hash
    for the file).
    """

    data: bytes
    witness: str
    mode: int
    mtime_ns: int


class FileStack:
    """One file with the patches laid on it, in order. ``pristine`` is None for a file that a patch adds."""

    def __init__(
        self, key: str, path: str, absolute: str, distribution: Distribution, pristine: Pristine | None
    ) -> None:
        self.key = key
        self.path = path
        self.absolute = absolute
        self.distribution = distribution
        self.pristine = pristine
        self.layers: list[tuple[str, FilePlan]] = []

    @property
    def data(self) -> bytes | None:
        """The bytes with every layer on."""
        if self.layers:
            return self.layers[-1][1].after
        return None if self.pristine is None else self.pristine.data


class Workspace:
    """A site opened for one command.

    ``ignore_requires`` leaves a target's ``requires`` unchecked, for environments that hold the target alone.
    ``fetch`` is told of a download when pristine bytes may be taken from the released wheel; None: they may not.
    ``suspects`` are patches that may be on a file although the ledger does not say so (it was deleted, perhaps).
    """

    def __init__(self, site: Site) -> None:
        self.site = site
        self.ignore_requires = False
        self.fetch: Callable[[str], None] | None = None
        self.suspects: Sequence[Patch] = ()
        self.ledger = Ledger.load(site.home)
        self._current: dict[str, bytes | None] = {}
        self._distributions: dict[str, Distribution | None] = {}

    def distribution(self, name: str) -> Distribution | None:
        """The installed distribution of that name (any spelling)."""
        if name not in self._distributions:
            self._distributions[name] = find_distribution(self.site, name)
        return self._distributions[name]

    def absolute(self, key: str) -> str:
        """The path of a ledger key."""
        return file_path(self.site.home, key)

    def current(self, absolute: str) -> bytes | None:
        """What the file holds now; None when there is none.

        Raises:
            SiteError: ``unreadable``.
        """
        if absolute not in self._current:
            try:
                if os.path.getsize(absolute) > LARGEST_FILE:
                    raise SiteError(
                        f"{absolute}: larger than {LARGEST_FILE >> 20} MiB, which no source file is",
                        code="too-large",
                        hint="patchkit edits source files",
                        details={"path": absolute},
                    )
                with open(absolute, "rb") as file:
                    self._current[absolute] = file.read()
            except FileNotFoundError:
                self._current[absolute] = None
            except OSError as error:
                raise SiteError(
                    f"{absolute}: cannot be read: {error.strerror}",
                    code="unreadable",
                    hint="check the file and your permissions",
                    details={"path": absolute},
                ) from None
        return self._current[absolute]

    def in_force(self, patch: PatchEntry) -> bool:
        """Whether the install that ``patch`` was applied to is still the one that is there."""
        return installed(self.site.home, patch.info)

    def entry_in_force(self, key: str) -> FileEntry | None:
        """The ledger's entry of a file, unless another version of its distribution has been installed since."""
        entry = self.ledger.files.get(key)
        if entry is None:
            return None
        if not any(self.in_force(p) for p in self.ledger.patches if key in p.files):
            return entry if self._left_behind(key, entry) else None
        return entry if entry.pristine is None or self._vouched_for(key, entry) else None

    def _vouched_for(self, key: str, entry: FileEntry) -> bool:
        """Whether the pristine bytes of ``entry`` are those of the install that is there: RECORD denies it where not.

        The version's name alone does not tell: a build may be replaced by another of the same version, and an upgrade
        taken back.
        """
        assert entry.pristine is not None
        current = self.current(self.absolute(key))
        if current is not None and digest(current) == entry.after.sha256:
            return True
        row = self._row(key, entry)
        if row is None or row.digest is None:
            return True
        if row.algorithm == "sha256":
            return row.digest.hex() == entry.pristine.sha256
        return row.matches(blobs.get(self.site.home, entry.pristine.sha256, what=key)) is not False

    def _row(self, key: str, entry: FileEntry) -> Entry | None:
        """The row of RECORD for a file of the ledger."""
        distribution = self.distribution(entry.distribution)
        if distribution is None:
            return None
        return distribution.record.entry(os.path.relpath(self.absolute(key), distribution.base).replace(os.sep, "/"))

    def reinstalled(self, key: str) -> bool:
        """Whether a file of the ledger holds the installer's bytes, be they those that patchkit saw or others."""
        entry = self.ledger.files.get(key)
        current = self.current(self.absolute(key))
        row = None if entry is None or current is None else self._row(key, entry)
        return row is not None and current is not None and row.matches(current) is True

    def _left_behind(self, key: str, entry: FileEntry) -> bool:
        """Whether a file that a patch added outlived its install: installers remove only what is in their RECORD."""
        if entry.pristine is not None:
            return False
        current = self.current(self.absolute(key))
        if current is None or digest(current) != entry.after.sha256:
            return False
        return self._row(key, entry) is None

    def pristine(self, resolved: ResolvedFile, distribution: Distribution) -> Pristine:
        """The bytes that the installer put there.

        Raises:
            SiteError: ``modified``: the bytes are neither RECORD's nor ours; ``missing``; ``unreadable``.
        """
        current = self.current(resolved.absolute)
        recorded = resolved.entry
        entry = self.ledger.files.get(resolved.key)
        if current is not None:
            witness = recorded.matches(current) if recorded is not None else None
            if witness is True:
                status = os.stat(resolved.absolute)
                mode, mtime = status.st_mode & 0o7777, status.st_mtime_ns
                if entry is not None and entry.pristine is not None and digest(current) == entry.pristine.sha256:
                    mtime = entry.pristine.mtime_ns
                return Pristine(current, "record", mode, mtime)
        if entry is not None and entry.pristine is not None:
            ours = current is not None and digest(current) in (entry.after.sha256, entry.pristine.sha256)
            if ours or self.entry_in_force(resolved.key) is not None:
                data = blobs.get(self.site.home, entry.pristine.sha256, what=resolved.path)
                if recorded is None or recorded.matches(data) is not False:
                    return Pristine(data, entry.witness, entry.pristine.mode, entry.pristine.mtime_ns)
        if current is None:
            raise SiteError(
                f"{resolved.absolute}: {distribution.name} {distribution.version} lists this file, and it is not there",
                code="missing",
                hint=f"reinstall {distribution.name} {distribution.version}",
                details={"path": resolved.path},
            )
        if witness is None and entry is None:
            status = os.stat(resolved.absolute)
            return Pristine(current, "none", status.st_mode & 0o7777, status.st_mtime_ns)
        rebuilt = self._rebuilt(resolved, distribution, current)
        if rebuilt is not None:
            return rebuilt
        raise SiteError(
            f"{resolved.path}: is not as {distribution.name} {distribution.version} was installed: its bytes differ "
            "from RECORD's hash, and patchkit did not write them",
            code="modified",
            hint=(
                "somebody edited it, or the package cache it was installed from was written through: "
                f"reinstall {distribution.name}=={distribution.version} without the cache, then apply again; "
                "--fetch compares with the released wheel"
            ),
            details={"path": resolved.path, "state": "modified", "links": os.stat(resolved.absolute).st_nlink},
        )

    def _rebuilt(self, resolved: ResolvedFile, distribution: Distribution, current: bytes) -> Pristine | None:
        from patchkit.ops.rebuild import by_inverse, from_wheel

        status = os.stat(resolved.absolute)
        recorded = resolved.entry
        if recorded is not None and recorded.digest is not None:
            data = by_inverse(self.suspects, resolved.path, current, recorded.matches)
            if data is not None:
                return Pristine(data, "record", status.st_mode & 0o7777, status.st_mtime_ns)
        if self.fetch is not None:
            data = from_wheel(distribution, resolved.path, self.fetch)
            return Pristine(data, "wheel", status.st_mode & 0o7777, status.st_mtime_ns)
        return None


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
        assert data is not None
        return data

    def open(self, path: str, *, wanted_by: Callable[[], str]) -> FileStack:
        """The stack of one of the distribution's files, begun from pristine when it is new here."""
        if path in self._by_path:
            return self._by_path[path]
        try:
            resolved = resolve_file(self._distribution, path)
        except (PlanError, SiteError) as error:
            error.message = f"{wanted_by()}: {error.message}"
            raise
        pristine = self._workspace.pristine(resolved, self._distribution)
        stack = FileStack(resolved.key, path, resolved.absolute, self._distribution, pristine)
        self._by_path[path] = self._stacks[resolved.key] = stack
        return stack

    def create(self, path: str, *, wanted_by: Callable[[], str]) -> FileStack:
        """The stack of a file that a patch adds; it must not exist, unless an earlier apply of ours put it there."""
        if path in self._by_path:
            raise PlanError(
                f"{wanted_by()}: {path} already exists", code="exists", hint="edit it instead", details={"path": path}
            )
        absolute = os.path.join(self._distribution.base, *path.split("/"))
        entry = self._workspace.ledger.files.get(key_of(self._workspace.site, absolute))
        if entry is not None and entry.pristine is None and os.path.lexists(absolute):
            resolved = ResolvedFile(path, absolute, key_of(self._workspace.site, absolute), None)
        else:
            try:
                resolved = resolve_added(self._distribution, path)
            except (PlanError, SiteError) as error:
                error.message = f"{wanted_by()}: {error.message}"
                raise
        stack = FileStack(resolved.key, path, resolved.absolute, self._distribution, None)
        self._by_path[path] = self._stacks[resolved.key] = stack
        return stack

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


def digest(data: bytes) -> str:
    """SHA-256, in hex."""
    return sha256_hex(data)
