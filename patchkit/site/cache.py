"""The user's cache directory: everything in it can be made again."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping


def cache_directory(environ: Mapping[str, str] | None = None) -> str:
    """The directory for patchkit's cache; it need not exist.

    ``$PATCHKIT_CACHE``, else ``%LOCALAPPDATA%\\patchkit`` (Windows), ``~/Library/Caches/patchkit`` (macOS), and
    ``$XDG_CACHE_HOME/patchkit`` or ``~/.cache/patchkit`` elsewhere. A relative ``$XDG_CACHE_HOME`` is
    ignored, as the XDG base directory specification has it.
    """
    env = os.environ if environ is None else environ
    given = env.get("PATCHKIT_CACHE")
    if given:
        return os.path.abspath(os.path.expanduser(given))
    xdg = env.get("XDG_CACHE_HOME", "")
    if os.path.isabs(xdg):
        return os.path.join(xdg, "patchkit")
    if sys.platform == "win32":
        base = env.get("LOCALAPPDATA") or os.path.expanduser("~\\AppData\\Local")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.path.expanduser("~/.cache")
    return os.path.join(base, "patchkit")


def write_cached(path: str, data: bytes) -> bool:
    """Write one file of the cache by rename; False where the cache cannot be written, which is no error."""
    from patchkit.site.whole import write_whole

    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        write_whole(path, data, overwrite=True, durable=False)
    except OSError:
        return False
    return True
