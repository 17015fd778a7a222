"""Whether files can be changed at all, asked before the first of them is."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable

from patchkit.errors import SiteError
from patchkit.state import fs


def check_writable(paths: Iterable[str]) -> None:
    """Refuse what would fail half-way: a folder in which nothing can be made or replaced, a file that is set immutable.

    What only the attempt can tell is left to it, and is taken back then.

    Args:
        paths: The files to be written, replaced or removed; they need not exist.

    Raises:
        SiteError: ``permission`` or ``read-only``, naming the first.
    """
    asked: dict[str, bool] = {}
    for path in paths:
        directory = os.path.dirname(path)
        while not os.path.isdir(directory) and os.path.dirname(directory) != directory:
            directory = os.path.dirname(directory)
        if directory not in asked:
            asked[directory] = _may(directory, os.W_OK | os.X_OK)
        if not asked[directory]:
            raise _refused(directory)
        if _immutable(path):
            raise fs.named(OSError(errno.EPERM, os.strerror(errno.EPERM), path), suffix="; nothing was changed")


def _may(path: str, mode: int) -> bool:
    """As the system would answer for this process now; ``access`` alone would ask for who started it."""
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def _immutable(path: str) -> bool:
    """Whether the system refuses its owner a file whose mode does not: then it cannot be replaced either."""
    if not hasattr(os, "geteuid"):
        return False
    try:
        now = os.lstat(path)
    except OSError:
        return False
    ours = stat.S_ISREG(now.st_mode) and now.st_uid == os.geteuid() and now.st_mode & stat.S_IWUSR
    return bool(ours) and not _may(path, os.W_OK)


def _refused(directory: str) -> SiteError:
    number = errno.EACCES
    if hasattr(os, "statvfs") and os.statvfs(directory).f_flag & os.ST_RDONLY:
        number = errno.EROFS
    return fs.named(OSError(number, os.strerror(number), directory), suffix="; nothing was changed")
