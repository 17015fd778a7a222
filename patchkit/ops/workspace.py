"""One site under work: its ledger, its distributions, and what every file holds and once held.

This is where pristine bytes come from (DESIGN section 5): the file itself when its hash is RECORD's, the ledger's copy,
the recorded edits undone, the released wheel when that is allowed. Bytes that no witness knows are never taken for
pristine.
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from patchkit.errors import PatchkitError, SiteError
from patchkit.runtime.ledger import file_path, installed, open_regular, read_regular, sha256_hex
from patchkit.site.distribution import Distribution, find_distribution
from patchkit.site.environment import Site
from patchkit.site.paths import LARGEST_FILE, ResolvedFile
from patchkit.state import blobs
from patchkit.state.ledger import FileEntry, Ledger, PatchEntry, Stat
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.model.patch import Patch
    from patchkit.site.record import Entry

#: Nanoseconds within which a second write may leave the times of a file as they are: a tick of the kernel's clock is 10
#: ms at most (HZ=100), and a file's times are taken at one.
_TICK = 20_000_000


class Pristine(NamedTuple):
    """The bytes that the installer put there, and how that is known.

    ``witness`` is "record" (RECORD's hash), "wheel" (the released wheel) or "none" (the distribution records no hash
    for the file). ``mode`` and ``mtime_ns`` are the file's own while it holds the installer's bytes. When it is
    patched, the time is the one it had before; the mode stays the file's own, since patching leaves it alone and only
    somebody else can have changed it.
    """

    data: bytes
    witness: str
    mode: int
    mtime_ns: int


class Workspace:
    """A site opened for one command.

    ``ignore_requires`` leaves a target's ``requires`` unchecked, for environments that hold the target alone.
    ``fetch`` is told of a download when pristine bytes may be taken from the released wheel; None: they may not.
    ``suspects`` are patches that may be on a file although the ledger does not say so (it was deleted, perhaps).
    ``find_patch`` gives the file of a patch by its name, where the ledger's copy of it is lost.
    ``originals`` are pristine bytes by path that the caller has, for files that were edited by hand.
    ``recovered`` is what the ledger had lost and was found again, by SHA-256: a commit puts it back.
    """

    def __init__(self, site: Site) -> None:
        self.site = site
        self.ignore_requires = False
        self.fetch: Callable[[str], None] | None = None
        self.suspects: Sequence[Patch] = ()
        self.find_patch: Callable[[str], str | None] | None = None
        self.recovered: dict[str, bytes] = {}
        self.originals: Mapping[str, bytes] = {}
        self.ledger = Ledger.load(site.home)
        self._current: dict[str, bytes | None] = {}
        self._stats: dict[str, Stat | None] = {}
        self._distributions: dict[str, Distribution | None] = {}
        self._in_force: dict[str | None, bool] = {}

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
                self._current[absolute], self._stats[absolute] = _read_settled(absolute)
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

    def stat_of(self, absolute: str) -> Stat | None:
        """The stat that goes with what :meth:`current` gave for a file; None where none vouches for those bytes."""
        return self._stats.get(absolute)

    def unchanged(self, absolute: str) -> bool:
        """Whether a file still holds what :meth:`current` gave for it: it is read again, and so is its stat.

        Raises:
            SiteError: ``unreadable``, ``too-large``.
        """
        before = self._current.pop(absolute)
        return self.current(absolute) == before

    def in_force(self, patch: PatchEntry) -> bool:
        """Whether the install that ``patch`` was applied to is still the one that is there."""
        # Asked once: within one command, an installer at work must not make two answers of it.
        if patch.info not in self._in_force:
            self._in_force[patch.info] = installed(self.site.home, patch.info)
        return self._in_force[patch.info]

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
        if entry.ours(current):
            return True
        row = self._row(key, entry)
        if row is None or row.digest is None:
            return True
        try:
            if row.algorithm == "sha256" and row.digest.hex() == entry.pristine.sha256:
                return True
            if row.algorithm != "sha256" and row.matches(self._copy(key, entry)) is not False:
                return True
        except SiteError:
            return True  # its copy is lost for good: told when it is needed
        # Another build is there when the file is what RECORD says. Where it is neither's (the release's own RECORD is
        # wrong, or somebody rewrote it), what we wrote may still be in it: that is for the edits' inverse to tell.
        return current is not None and row.matches(current) is not True

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
        """Whether a file outlived the metadata of its install, and so is still as patchkit wrote it, or edited since.

        Installers remove only what is in their RECORD, so what a patch added stays; and one that was killed, or a hand,
        may have taken the metadata alone. A file that another RECORD vouches for is the other install's.
        """
        current = self.current(self.absolute(key))
        if entry.after is None:
            gone = current is None and self.distribution(entry.distribution) is None
            return gone and self._peopled(os.path.dirname(self.absolute(key)))
        if current is None:
            return False
        row = self._row(key, entry)
        if row is None and entry.pristine is not None:
            return True
        return entry.ours(current) and (
            row is None or (entry.pristine is not None and row.matches(current) is not True)
        )

    def _peopled(self, folder: str) -> bool:
        """Whether a folder holds files that no patch added: then a file that a patch took away belongs there."""
        added = {self.absolute(key) for key, entry in self.ledger.files.items() if entry.pristine is None}
        try:
            paths = [os.path.join(folder, name) for name in os.listdir(folder)]
        except OSError:
            return False
        return any(os.path.isfile(path) and path not in added for path in paths)

    def pristine(self, resolved: ResolvedFile, distribution: Distribution) -> Pristine:
        """The bytes that the installer put there.

        Raises:
            SiteError: ``modified`` or ``tainted``: the bytes are neither RECORD's nor ours; ``missing``;
                ``unreadable``; ``record``: RECORD contradicts itself about the file.
        """
        current = self.current(resolved.absolute)
        recorded = resolved.entry
        entry = self.ledger.files.get(resolved.key)
        fault = None if recorded is None else recorded.fault
        if fault is not None and self.fetch is None and entry is None:
            raise _contradiction(resolved, distribution, fault)
        witness = recorded.matches(current) if recorded is not None and current is not None else None
        if current is not None and witness is True:
            return self._as_it_is(resolved.absolute, current, "record", entry)
        if entry is not None and entry.pristine is not None:
            ours = entry.ours(current) or (current is not None and digest(current) == entry.pristine.sha256)
            if ours or self.entry_in_force(resolved.key) is not None:
                found = self._original(resolved.key, entry)
                # What the released wheel vouched for stays so while our bytes are there, whatever RECORD says.
                if recorded is None or recorded.matches(found.data) is not False or (ours and found.witness == "wheel"):
                    return found
        if current is None:
            gone = self._gone(resolved, distribution)
            if gone is not None:
                return gone
            taken = any(resolved.path in remove.files for patch in self.suspects for remove in patch.removes)
            fetch = "; where a patch took it away and the ledger is lost: the same command with --fetch"
            raise SiteError(
                f"{resolved.absolute}: {distribution.name} {distribution.version} lists this file, and it is not there",
                code="missing",
                hint=f"install it again: `{distribution.reinstall}`" + (fetch if taken and self.fetch is None else ""),
                details={"path": resolved.path},
            )
        given = self.originals.get(resolved.path)
        if given is not None and (recorded is None or recorded.matches(given) is not False):
            return self._as_it_is(resolved.absolute, current, "none" if witness is None else "record", None)._replace(
                data=given
            )
        if witness is None and fault is None and self.entry_in_force(resolved.key) is None:
            # Nothing tells what this install put there, and patchkit has not written to it.
            return self._as_it_is(resolved.absolute, current, "none", None)
        if fault is not None and self.fetch is None:
            raise _contradiction(resolved, distribution, fault)
        rebuilt = self._rebuilt(resolved, distribution, current)
        if rebuilt is not None:
            return rebuilt
        from patchkit.ops.witness import not_as_installed

        raise not_as_installed(resolved, distribution, added=witness is None)

    def _gone(self, resolved: ResolvedFile, distribution: Distribution) -> Pristine | None:
        """The bytes of a file that is not there, and that a patch to be laid takes away; None where nothing has them.

        Its mode and time went with it: it gets its folder's, without the right to execute, and the metadata's.
        """
        from patchkit.ops.rebuild import from_wheel, kept

        if not any(resolved.path in remove.files for patch in self.suspects for remove in patch.removes):
            return None
        recorded = resolved.entry
        data = self.originals.get(resolved.path)
        if data is None or (recorded is not None and recorded.matches(data) is False):
            data = kept(self.site.home, recorded)
        witness = "record"
        if data is None and self.fetch is not None:
            genuine = recorded.matches if recorded is not None else _no_witness
            data, witness = from_wheel(distribution, resolved.path, self.fetch, genuine, recorded=recorded), "wheel"
        if data is None:
            return None
        folder = os.path.dirname(resolved.absolute)
        mode = stat.S_IMODE(os.stat(folder if os.path.isdir(folder) else distribution.base).st_mode) & 0o666
        return Pristine(data, witness, mode, os.stat(distribution.info).st_mtime_ns)

    def original(self, key: str) -> Pristine | None:
        """What a file of the ledger was before patchkit; None for one that a patch added.

        Raises:
            SiteError: ``corrupt``: the ledger's copy is lost and nothing else has the bytes; ``fetch``.
        """
        entry = self.ledger.files[key]
        return None if entry.pristine is None else self._original(key, entry)

    def written(self, key: str) -> bytes:
        """What patchkit wrote to a file of the ledger, which it did not take away.

        Raises:
            SiteError: ``corrupt``: the ledger's copy is lost, and the file holds something else.
        """
        content = self.ledger.files[key].after
        assert content is not None
        after = content.sha256
        current = self.current(self.absolute(key))
        if current is not None and digest(current) == after:
            return current
        try:
            return blobs.get(self.site.home, after, what=f"{key} as patchkit wrote it")
        except SiteError as error:
            names = " ".join(patch.name for patch in self.ledger.patches if key in patch.files)
            error.hint = (
                f"{key} was edited by hand, and what it was edited from is lost: keep a copy of it, then discard the "
                f"edits with: patchkit revert {names} --force (and --fetch, where that says that the original is lost)"
            )
            raise

    def patch_data(self, recorded: PatchEntry) -> bytes:
        """The bytes of an applied patch's file: the ledger's copy, else those where it came from, if they are the same.

        Raises:
            SiteError: ``corrupt``: the copy is lost, and the file is gone or was edited since.
        """
        try:
            return blobs.get(self.site.home, recorded.digest, what=f"the patch {recorded.name}")
        except SiteError:
            for path in (recorded.source, self.find_patch(recorded.name) if self.find_patch is not None else None):
                data = _read(path) if path is not None else None
                if data is not None and digest(data) == recorded.digest:
                    self.recovered[recorded.digest] = data
                    return data
            raise

    def _original(self, key: str, entry: FileEntry) -> Pristine:
        assert entry.pristine is not None
        absolute = self.absolute(key)
        current = self.current(absolute)
        if current is not None and digest(current) == entry.pristine.sha256:
            return self._as_it_is(absolute, current, entry.witness, entry)
        data = self._copy(key, entry)
        mode = entry.pristine.mode if current is None else stat.S_IMODE(os.stat(absolute).st_mode)
        return Pristine(data, entry.witness, mode, entry.pristine.mtime_ns)

    def _as_it_is(self, absolute: str, current: bytes, witness: str, entry: FileEntry | None) -> Pristine:
        """A file that holds the installer's bytes. Only where it is us who wrote them is its time not the installer's.

        That is a file on which the patches cancel each other out.
        """
        status = os.stat(absolute)
        mtime_ns = status.st_mtime_ns
        after = None if entry is None else entry.after
        if entry is not None and entry.pristine is not None and after and after.sha256 == entry.pristine.sha256:
            ours = entry.ours(current) and entry.stat == Stat.of(absolute)
            mtime_ns = entry.pristine.mtime_ns if ours else mtime_ns
        return Pristine(current, witness, stat.S_IMODE(status.st_mode), mtime_ns)

    def _copy(self, key: str, entry: FileEntry) -> bytes:
        """The original that the ledger keeps; where that copy is lost, out of the recorded edits, or of the wheel.

        Both count only when their hash is the recorded one.
        """
        assert entry.pristine is not None
        sha256 = entry.pristine.sha256
        if sha256 in self.recovered:
            return self.recovered[sha256]
        try:
            return blobs.get(self.site.home, sha256, what=f"the original of {key}")
        except SiteError:
            from patchkit.ops.rebuild import from_wheel, undone

            distribution = self.distribution(entry.distribution)
            base = self.site.home if distribution is None else distribution.base
            path = os.path.relpath(self.absolute(key), base).replace(os.sep, "/")
            data = undone(self, key, path, entry)
            if data is None and self.fetch is not None and distribution is not None:
                data = from_wheel(distribution, path, self.fetch, lambda found: digest(found) == sha256)
            if data is None:
                raise
            self.recovered[sha256] = data
            return data

    def _rebuilt(self, resolved: ResolvedFile, distribution: Distribution, current: bytes) -> Pristine | None:
        from patchkit.ops.rebuild import by_inverse, from_wheel, kept

        status = os.stat(resolved.absolute)
        mode = stat.S_IMODE(status.st_mode)
        genuine = resolved.entry.matches if resolved.entry is not None else _no_witness
        data = kept(self.site.home, resolved.entry)
        if data is None:
            data = by_inverse(self.suspects, resolved.path, current, genuine)
        if data is not None:
            return Pristine(data, "record", mode, status.st_mtime_ns)
        if self.fetch is not None:
            data = from_wheel(distribution, resolved.path, self.fetch, genuine, recorded=resolved.entry)
            return Pristine(data, "wheel", mode, status.st_mtime_ns)
        return None


def reinstall_command(site: Site, name: str, version: str) -> str:
    """What brings the released bytes of a distribution back, to be typed as it stands.

    Who installed it, and how, decides; for one that is not installed, it is pip of the site's own interpreter.
    """
    import shlex

    found = None
    with contextlib.suppress(PatchkitError):
        found = site.find(name)
    if found is not None:
        return found.reinstall
    how = ["pip"] if site.interpreter is None else [site.interpreter.executable, "-m", "pip"]
    return shlex.join([*how, "install", "--force-reinstall", "--no-deps", "--no-cache-dir", f"{name}=={version}"])


def _contradiction(resolved: ResolvedFile, distribution: Distribution, fault: str) -> SiteError:
    return SiteError(
        f"{resolved.path}: RECORD of {distribution.name} {distribution.version} {fault}, so nothing tells what was "
        "installed",
        code="record",
        hint=f"install it again: `{distribution.reinstall}`; or compare with the released wheel: the same command with "
        "--fetch",
        details={"path": resolved.path, "distribution": distribution.name},
    )


def _no_witness(data: bytes) -> None:
    """For a file that no RECORD lists."""


def _read_settled(path: str) -> tuple[bytes, Stat | None]:
    """The bytes of a file and its stat, of one and the same moment; None where somebody was writing to it just now.

    Both come from one descriptor: a stat by the name could be that of the next file, which an editor put there.
    """
    started = time.time_ns()
    with open_regular(path) as file:
        before = Stat.from_result(os.fstat(file.fileno()))
        data = file.read()
        after = Stat.from_result(os.fstat(file.fileno()))
    return data, after if before == after and after.ctime_ns < started - _TICK else None


def _read(path: str) -> bytes | None:
    try:
        return read_regular(path)
    except OSError:
        return None


def digest(data: bytes) -> str:
    """SHA-256, in hex."""
    return sha256_hex(data)
