"""Cached bytecode of a source file that was replaced.

Python trusts a cached ``.pyc`` when the source's whole-second modification time and size fit, and an *unchecked*
hash-based one (PEP 552) without looking at the source at all. So all of a replaced file are removed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from patchkit.state import fs


def default_prefixes() -> tuple[str, ...]:
    """The bytecode trees this process knows of: its own, and the one ``PYTHONPYCACHEPREFIX`` gives its children."""
    found = [sys.pycache_prefix, os.environ.get("PYTHONPYCACHEPREFIX")]
    return tuple(dict.fromkeys(os.path.abspath(prefix) for prefix in found if prefix))


def stale_bytecode(path: str, *, pycache_prefixes: Sequence[str]) -> list[str]:
    """Every cached bytecode file of the source ``path``: any interpreter's tag, any optimisation level.

    Args:
        path: The source file; it need not exist any more. Anything but ``.py`` and ``.pyw`` has none.
        pycache_prefixes: Roots of mirror trees (``sys.pycache_prefix``), where the file lies under its absolute path,
            without ``__pycache__``.

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
    return sorted(found)


def _is_bytecode_of(name: str, stem: str) -> bool:
    """``<stem>.<tag>.pyc`` or ``<stem>.<tag>.opt-<level>.pyc``, and not that of a file ``<stem>.more.py``."""
    if not (name.startswith(stem + ".") and name.endswith(".pyc")):
        return False
    tag, dot, level = name[len(stem) + 1 : -len(".pyc")].partition(".")
    return bool(tag) and (not dot or (level.startswith("opt-") and "." not in level))


def remove_stale(path: str, *, pycache_prefixes: Sequence[str]) -> list[str]:
    """Remove :func:`stale_bytecode`; another process may be doing the same.

    Returns:
        The paths removed.

    Raises:
        OSError: One cannot be removed (with its path).
    """
    stale = stale_bytecode(path, pycache_prefixes=pycache_prefixes)
    return [name for name in stale if fs.unlink(name, missing_ok=True)]
