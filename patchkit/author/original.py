"""The released bytes of a distribution's files, from whatever place has them, by the hash that RECORD has."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from patchkit.errors import SiteError
from patchkit.runtime.ledger import open_regular
from patchkit.site.paths import LARGEST_FILE
from patchkit.site.pipcache import PipCache
from patchkit.site.taint import uv_cache

if TYPE_CHECKING:
    from io import BufferedReader

    from patchkit.site.distribution import Distribution


class Originals:
    """Where the pristine bytes of one distribution come from, in this order.

    The file in the site, where its hash is RECORD's; the copies in the ledger's folder; uv's cache of unpacked wheels;
    pip's cache of wheels; the released wheel, out of patchkit's own cache or the index. All but the last need no
    network. ``used`` names the places that served.
    """

    def __init__(self, home: str, distribution: Distribution, progress: Callable[[str], None]) -> None:
        self._home = home
        self._distribution = distribution
        self._progress = progress
        self._unpacked: list[str] | None = None
        self._pip = PipCache(distribution, progress)
        self._unfetched: SiteError | None = None
        self.used: set[str] = set()

    def genuine(self, path: str, data: bytes) -> bool | None:
        """Whether ``data`` is what was installed as ``path``; None where RECORD has no hash."""
        entry = self._distribution.record.entry(path)
        return None if entry is None else entry.matches(data)

    def genuine_file(self, path: str, file: BufferedReader) -> bool | None:
        """The same of an open file, however large."""
        entry = self._distribution.record.entry(path)
        return None if entry is None else entry.matches_file(file)

    def of(self, path: str) -> bytes:
        """The pristine bytes of ``path``.

        Raises:
            SiteError: ``fetch``: nothing at hand has them, and the wheel cannot be had or is another build; each place
                that was tried is named.
            PlanError: The wheel has no such file.
        """
        places = (
            ("site", self._in_site),
            ("ledger", self._in_ledger),
            ("uv cache", self._in_uv_cache),
            ("pip cache", self._in_pip_cache),
        )
        for place, find in places:
            found = find(path)
            if found is not None:
                self.used.add(place)
                return found
        try:
            found = self._in_wheel(path)
        except SiteError as error:
            raise self._nowhere(path, error) from None
        self.used.add("wheel")
        return found

    def _in_site(self, path: str) -> bytes | None:
        return self._checked(path, self._absolute(path))

    def _in_ledger(self, path: str) -> bytes | None:
        from patchkit.ops.rebuild import kept

        return kept(self._home, self._distribution.record.entry(path))

    def _in_uv_cache(self, path: str) -> bytes | None:
        """Out of uv's cache, which keeps every wheel unpacked below ``archive-v0`` (uv documentation, "Caching")."""
        if self._unpacked is None:
            info = os.path.basename(self._distribution.info)
            self._unpacked = glob.glob(os.path.join(glob.escape(uv_cache()), "archive-v*", "*", glob.escape(info)))
        for info_path in self._unpacked:
            found = self._checked(path, os.path.join(os.path.dirname(info_path), *path.split("/")))
            if found is not None:
                return found
        return None

    def _in_pip_cache(self, path: str) -> bytes | None:
        entry = self._distribution.record.entry(path)
        if entry is None or entry.digest is None:
            return None  # nothing could vouch for what is found
        size = LARGEST_FILE if entry.size is None else entry.size
        return self._pip.find(path, lambda data: self.genuine(path, data), size)

    def _in_wheel(self, path: str) -> bytes:
        """Out of the released wheel; where that cannot be had for one file, it is not asked for again.

        Raises:
            SiteError: ``fetch``.
            PlanError: It has no such file.
        """
        from patchkit.ops.rebuild import from_wheel

        if self._unfetched is not None:
            raise self._unfetched
        try:
            return from_wheel(self._distribution, path, self._progress, lambda data: self.genuine(path, data))
        except SiteError as error:
            if error.details.get("path") != path:
                self._unfetched = error
            raise

    def _absolute(self, path: str) -> str:
        return os.path.join(self._distribution.base, *path.split("/"))

    def _checked(self, path: str, absolute: str) -> bytes | None:
        """The bytes of a file, if RECORD's hash vouches for them."""
        try:
            with open_regular(absolute) as file:
                data = file.read()
        except OSError:
            return None
        return data if self.genuine(path, data) is True else None

    def _nowhere(self, path: str, error: SiteError) -> SiteError:
        """The error for a file whose pristine bytes no place has, with each place and what it has instead."""
        one = self._distribution
        release = f"{one.name} {one.version}"
        entry = one.record.entry(path)
        pip = self._pip
        if entry is None or entry.digest is None:
            tried = [("site, ledger, caches", "RECORD has no hash of it, by which its bytes could be known")]
        else:
            lines = f"no {release} among {pip.seen} files"
            lines += f", the newest of {pip.seen + pip.more}" if pip.more else ""
            tried = [
                ("site", "edited" if os.path.isfile(self._absolute(path)) else "gone"),
                ("ledger", "no copy of it"),
                (f"uv's cache, {uv_cache()}", f"other bytes in {release}" if self._unpacked else f"no {release}"),
                (f"pip's cache, {', '.join(pip.searched)}", f"other bytes in {release}" if pip.wheels else lines),
            ]
        tried.append(("released wheel", error.message))
        hint = error.hint
        if self._unfetched is not None:
            other = f"a folder that has the wheel of {release} will do: `export PIP_FIND_LINKS=FOLDER`"
            hint = other if hint is None else f"{hint}; without a network, {other}"
        return SiteError(
            "\n".join(
                [
                    f"{path}: the bytes that were installed are nowhere:",
                    *(f"  {what}: {found}" for what, found in tried),
                ]
            ),
            code=error.code,
            hint=hint,
            details={
                **error.details,
                "path": path,
                "distribution": one.name,
                "version": one.version,
                "tried": [{"place": place, "found": found} for place, found in tried],
            },
        )
