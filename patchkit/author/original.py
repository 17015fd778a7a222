"""The released bytes of a distribution's files, from whatever place has them, by the hash that RECORD has."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from patchkit.runtime.ledger import open_regular
from patchkit.site.taint import uv_cache

if TYPE_CHECKING:
    from patchkit.site.distribution import Distribution


class Originals:
    """Where the pristine bytes of one distribution come from, in this order.

    The file in the site, where its hash is RECORD's; the copies in the ledger's folder; uv's cache of unpacked wheels;
    the released wheel, out of patchkit's own cache or the index. All but the last need no network. ``used`` names the
    places that served.
    """

    def __init__(self, home: str, distribution: Distribution, progress: Callable[[str], None]) -> None:
        self._home = home
        self._distribution = distribution
        self._progress = progress
        self._unpacked: list[str] | None = None
        self.used: set[str] = set()

    def genuine(self, path: str, data: bytes) -> bool | None:
        """Whether ``data`` is what was installed as ``path``; None where RECORD has no hash."""
        entry = self._distribution.record.entry(path)
        return None if entry is None else entry.matches(data)

    def of(self, path: str) -> bytes:
        """The pristine bytes of ``path``.

        Raises:
            SiteError: ``fetch``: nothing at hand has them, and the wheel cannot be had or is another build.
            PlanError: The wheel has no such file.
        """
        for place, find in (("site", self._in_site), ("ledger", self._in_ledger), ("uv cache", self._in_uv_cache)):
            found = find(path)
            if found is not None:
                self.used.add(place)
                return found
        from patchkit.ops.rebuild import from_wheel

        self.used.add("wheel")
        return from_wheel(self._distribution, path, self._progress, lambda data: self.genuine(path, data))

    def _in_site(self, path: str) -> bytes | None:
        return self._checked(path, os.path.join(self._distribution.base, *path.split("/")))

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

    def _checked(self, path: str, absolute: str) -> bytes | None:
        """The bytes of a file, if RECORD's hash vouches for them."""
        try:
            with open_regular(absolute) as file:
                data = file.read()
        except OSError:
            return None
        return data if self.genuine(path, data) is True else None
