"""Where wrong bytes come from: a file that shares them with what it was installed from, which somebody wrote through.

Installers link files out of their cache: uv makes hard links, or symbolic ones with ``--link-mode symlink``. Whoever
writes to such a file in place writes to the cache, and every later install has the same wrong bytes.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from patchkit.runtime.ledger import open_regular
from patchkit.runtime.reinstall import installer_of
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.site.distribution import Distribution


class Taint(NamedTuple):
    """What shows that a file was not edited where it lies, but came so.

    Attributes:
        source: The other name that holds the same bytes; None where it is only known that there is one.
        evidence: That in words, to follow the name of the file.
        cure: What to do, with the commands to type.
    """

    source: str | None
    evidence: str
    cure: str


class Taints:
    """Looks for them in one distribution; its INSTALLER is read once, and the cache of uv listed once."""

    def __init__(self, distribution: Distribution) -> None:
        self._distribution = distribution
        self._installer = installer_of(distribution.info)
        self._wheels: list[str] | None = None

    def find(self, path: str, absolute: str, *, lone: bool = True) -> Taint | None:
        """Whether the bytes of a file, which are not the installer's, lie where it was installed from as well.

        Args:
            path: The file, as RECORD spells it.
            absolute: Where it is.
            lone: Whether further hard links are enough, although no other name of the file is known. A copy of a whole
                environment by ``cp -al`` has them, too.
        """
        try:
            own = os.lstat(absolute)
        except OSError:
            return None
        if stat.S_ISLNK(own.st_mode):
            source = os.path.realpath(absolute)
            if self._installer == "pip":  # makes no links: somebody put it there, and what it leads to is theirs
                cure = f"`{self._distribution.reinstall}` puts a file in its place"
                return Taint(source, f"it is a link to {source}, which pip did not make", cure)
            return Taint(source, f"it is a link to {source}, which was written to", self._cure(source, linked=True))
        found = self._cached(path, absolute, own) if self._installer == "uv" else None
        if found is not None:
            joined = "is the same file by a hard link" if found[1] else "holds the same bytes"
            evidence = f"{found[0]} in the cache of uv {joined}: the cache was written to, or the release comes so"
            return Taint(found[0], evidence, self._cure(found[0]))
        if lone and own.st_nlink > 1:
            others = own.st_nlink - 1
            names = f"{others} other name{'s' if others > 1 else ''}"
            # pip makes no links.
            what = "a twin" if self._installer == "pip" else "the cache it was installed from, or a twin,"
            return Taint(None, f"it has {names} (hard links): {what} was written to with it", self._cure(None))
        return None

    def _cached(self, path: str, absolute: str, own: os.stat_result) -> tuple[str, bool] | None:
        """The file in uv's cache with the same bytes, and whether it is the same file; the same file is preferred."""
        if self._wheels is None:
            self._wheels = _unpacked(os.path.basename(self._distribution.info))
        equal = None
        for wheel in self._wheels:
            candidate = os.path.join(wheel, *path.split("/"))
            try:
                status = os.stat(candidate)
            except OSError:
                continue
            if os.path.samestat(status, own):
                return candidate, True
            if equal is None and status.st_size == own.st_size and _same_bytes(candidate, absolute):
                equal = candidate
        return None if equal is None else (equal, False)

    def _cure(self, source: str | None, *, linked: bool = False) -> str:
        import shlex

        from patchkit.site.distribution import reinstalling

        one = self._distribution
        if self._installer == "pip" and source is None:
            return f"`{one.reinstall}` gives this environment files of its own; the twin is to be mended for itself"
        if self._installer != "uv":
            if source is not None:
                return f"see what {source} is and who wrote to it, then `{one.reinstall}`"
            return f"mend or empty the cache that it was linked from, then `{one.reinstall}`"
        # Once the cache is clean there is no reason to pass it by, and uv cannot link out of one that it throws away.
        again = reinstalling(one.site, one.home, one.name, one.version, cached=True)
        where = ""
        if source is not None and not source.startswith(os.path.join(uv_cache(), "")):
            head, found, _ = source.replace(os.sep, "/").rpartition("/archive-v")
            where = f" --cache-dir {shlex.quote(head)}" if found else ""
        cure = f"`uv cache clean{where} {one.name}`, then `{again}`"
        return f"{cure}, and the same in the other environments that are linked to that cache" if linked else cure


def find_taint(distribution: Distribution, path: str, absolute: str, *, lone: bool = True) -> Taint | None:
    """:meth:`Taints.find`, for one file."""
    return Taints(distribution).find(path, absolute, lone=lone)


def uv_cache() -> str:
    """The cache directory of uv, by the environment variables that uv obeys (https://docs.astral.sh/uv/concepts/cache)."""
    named = os.environ.get("UV_CACHE_DIR")
    if named:
        return os.path.abspath(named)
    if os.name == "nt":
        return os.path.join(os.environ.get("LOCALAPPDATA", ""), "uv", "cache")
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "uv")


def _unpacked(info: str) -> list[str]:
    """Each unpacked wheel of this version that uv keeps (``archive-v<N>/<id>``), by the name of its metadata."""
    root = uv_cache()
    found = []
    try:
        shelves = sorted(name for name in os.listdir(root) if name.startswith("archive-v"))
    except OSError:
        return []
    for shelf in shelves:
        try:
            names = os.listdir(os.path.join(root, shelf))
        except OSError:
            continue
        wheels = (os.path.join(root, shelf, name) for name in names)
        found += [wheel for wheel in wheels if os.path.isdir(os.path.join(wheel, info))]
    return found


def _same_bytes(one: str, other: str) -> bool:
    try:
        with open_regular(one) as first, open_regular(other) as second:
            return first.read() == second.read()
    except OSError:
        return False
