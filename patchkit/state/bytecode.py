"""Cached bytecode of a source file that was replaced.

Python trusts a cached ``.pyc`` when the source's whole-second modification time and size fit, and an *unchecked*
hash-based one (PEP 552) without looking at the source at all. So all of a replaced file are removed; of a file that is
taken away, the one beside it as well.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence

from patchkit.errors import SiteError
from patchkit.runtime.ledger import open_regular
from patchkit.state import fs


def default_prefixes() -> tuple[str, ...]:
    """The bytecode trees this process knows of: its own, and the one ``PYTHONPYCACHEPREFIX`` gives its children."""
    found = [sys.pycache_prefix, os.environ.get("PYTHONPYCACHEPREFIX")]
    return tuple(dict.fromkeys(os.path.abspath(prefix) for prefix in found if prefix))


def stale_bytecode(path: str, *, pycache_prefixes: Sequence[str], legacy: bool = False) -> list[str]:
    """Every cached bytecode file of the source ``path``: any interpreter's tag, any optimisation level.

    Args:
        path: The source file; it need not exist any more. Anything but ``.py`` and ``.pyw`` has none.
        pycache_prefixes: Roots of mirror trees (``sys.pycache_prefix``), where the file lies under its absolute path,
            without ``__pycache__``.
        legacy: Also the ``.pyc`` beside it (``compileall -b``), which Python takes once the source is gone.

    Returns:
        Paths, sorted. A directory that cannot be listed counts as empty.
    """
    stem, extension = os.path.splitext(os.path.basename(path))
    if extension not in (".py", ".pyw"):
        return []
    home = os.path.dirname(os.path.abspath(path))
    directories = [os.path.join(home, "__pycache__")]
    for prefix in pycache_prefixes:
        # The tree mirrors the path as the importing process spells it, which may go through a link.
        spellings = dict.fromkeys((home, os.path.realpath(home)))
        directories += [os.path.join(prefix, os.path.splitdrive(name)[1].lstrip(os.sep)) for name in spellings]
    found = []
    for directory in directories:
        try:
            names = os.listdir(directory)
        except OSError:
            continue
        found += [os.path.join(directory, name) for name in names if _is_bytecode_of(name, stem)]
    if legacy and not os.path.lexists(path):
        found.append(os.path.join(home, stem + ".pyc"))
    # Python passes over a directory of such a name.
    return sorted(name for name in found if os.path.isfile(name) or os.path.islink(name))


def _is_bytecode_of(name: str, stem: str) -> bool:
    """``<stem>.<tag>.pyc`` or ``<stem>.<tag>.opt-<level>.pyc``, and not that of a file ``<stem>.more.py``."""
    if not (name.startswith(stem + ".") and name.endswith(".pyc")):
        return False
    tag, dot, level = name[len(stem) + 1 : -len(".pyc")].partition(".")
    return bool(tag) and (not dot or (level.startswith("opt-") and "." not in level))


def remove_stale(path: str, *, pycache_prefixes: Sequence[str], legacy: bool = False) -> list[str]:
    """Remove :func:`stale_bytecode`; another process may be doing the same.

    What cannot be removed, and what a linked ``__pycache__`` holds, which may be another environment's, stays where
    Python sees for itself that it is stale.

    Returns:
        The paths removed.

    Raises:
        SiteError: ``bytecode``: one has to stay that Python would go on running.
        OSError: The disk failed (with the path).
    """
    removed = []
    for name in stale_bytecode(path, pycache_prefixes=pycache_prefixes, legacy=legacy):
        directory = os.path.dirname(name)
        if os.path.basename(directory) == "__pycache__" and os.path.islink(directory):
            if _is_trusted(name, path):
                raise _would_run(name, path, f"{directory} is a link to {os.path.realpath(directory)}")
            continue
        try:
            if fs.unlink(name, missing_ok=True):
                removed.append(name)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise
            if _is_trusted(name, path):
                raise _would_run(name, path, error.strerror or str(error)) from error
    return removed


def _is_trusted(name: str, path: str) -> bool:
    """Whether Python would run the bytecode ``name`` whatever the source ``path`` holds now.

    Its header (PEP 552) has flags behind the magic number: bit 0 for a hash, and bit 1 where that is compared with the
    source. Else the source's time and size are compared: a change moves the time on, and a revert puts back that of the
    very source that such bytecode was made of.
    """
    if not os.path.lexists(path):
        # Without its source, only the one beside it is taken.
        return os.path.splitext(name)[0] == os.path.splitext(os.path.abspath(path))[0]
    try:
        with open_regular(name) as file:
            header = file.read(8)
    except OSError:
        return True  # perhaps others can read it
    return int.from_bytes(header[4:], "little") == 1


def _would_run(name: str, path: str, why: str) -> SiteError:
    return SiteError(
        f"{name}: Python would go on running this bytecode instead of the new {os.path.basename(path)}, and it cannot "
        f"be removed: {why}; nothing was changed",
        code="bytecode",
        hint=f"remove it as a user who may (rm {name}) and run the command again",
        details={"path": name, "source": path},
    )
