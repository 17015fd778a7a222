"""One experiment at a time on a site, also where nothing of it is written: two would be in each other's figures."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import Iterator

from patchkit.errors import SiteError
from patchkit.site.cache import cache_directory


@contextlib.contextmanager
def alone(home: str) -> Iterator[None]:
    """Within the block no other experiment of this user begins on the site; ends with the process, however that ends.

    Where the cache cannot be written, or the system has no such locks, the block runs all the same.

    Args:
        home: The site-packages folder.

    Raises:
        SiteError: ``experiment-running``.
    """
    descriptor = _open(home)
    try:
        if descriptor is not None and sys.platform != "win32":
            import fcntl

            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise SiteError(
                    f"{home}: another experiment is running on this site",
                    code="experiment-running",
                    hint="wait for it to end: two at once would be in each other's figures",
                    details={"path": home},
                ) from None
            except OSError:
                pass
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _open(home: str) -> int | None:
    name = hashlib.sha256(os.fsencode(os.path.realpath(home))).hexdigest()[:20]
    folder = os.path.join(cache_directory(), "rebench")
    try:
        os.makedirs(folder, exist_ok=True)
        return os.open(
            os.path.join(folder, f"{name}.lock"), os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600
        )
    except OSError:
        return None
