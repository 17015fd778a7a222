"""Where wrong bytes come from: a file that shares them with what it was installed from, which somebody wrote through.

Installers link files out of their cache: uv makes hard links, or symbolic ones with ``--link-mode symlink``. Whoever
writes to such a file in place writes to the cache, and every later install has the same wrong bytes.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

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


def installer_of(distribution: Distribution) -> str:
    """The program that installed it, as its INSTALLER file says; "" where none does."""
    try:
        with open(os.path.join(distribution.info, "INSTALLER"), encoding="utf-8", errors="replace") as file:
            return file.read(100).strip().lower()
    except OSError:
        return ""


def find_taint(distribution: Distribution, path: str, absolute: str, *, lone: bool = True) -> Taint | None:
    """Whether the bytes of a file, which are not the installer's, lie where it was installed from as well.

    Args:
        distribution: The distribution that lists it.
        path: The file, as RECORD spells it.
        absolute: Where it is.
        lone: Whether further hard links are enough, although no other name of the file is known. A copy of a whole
            environment by ``cp -al`` has them, too.
    """
    try:
        own = os.lstat(absolute)
    except OSError:
        return None
    installer = installer_of(distribution)
    if stat.S_ISLNK(own.st_mode):
        source = os.path.realpath(absolute)
        evidence = f"it is a link to {source}, which was written to"
        return Taint(source, evidence, _cure(distribution, installer, source, linked=True))
    found = _cached(distribution, path, absolute, own) if installer == "uv" else None
    if found is not None:
        joined = "is the same file by a hard link" if found[1] else "holds the same bytes"
        evidence = f"{found[0]} in the cache of uv {joined}: the cache was written to, or the release comes so"
        return Taint(found[0], evidence, _cure(distribution, installer, found[0]))
    if lone and own.st_nlink > 1:
        others = own.st_nlink - 1
        names = f"{others} other name{'s' if others > 1 else ''}"
        evidence = f"it has {names} (hard links): the cache it was installed from, or a twin, was written to with it"
        return Taint(None, evidence, _cure(distribution, installer, None))
    return None


def uv_cache() -> str:
    """The cache directory of uv, by the environment variables that uv obeys (https://docs.astral.sh/uv/concepts/cache)."""
    named = os.environ.get("UV_CACHE_DIR")
    if named:
        return os.path.abspath(named)
    if os.name == "nt":
        return os.path.join(os.environ.get("LOCALAPPDATA", ""), "uv", "cache")
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "uv")


def _cached(distribution: Distribution, path: str, absolute: str, own: os.stat_result) -> tuple[str, bool] | None:
    """The file in uv's cache with the same bytes, and whether it is the same file; the same file is preferred."""
    equal = None
    for candidate in _candidates(distribution, path):
        try:
            status = os.stat(candidate)
        except OSError:
            continue
        if os.path.samestat(status, own):
            return candidate, True
        if equal is None and status.st_size == own.st_size and _same_bytes(candidate, absolute):
            equal = candidate
    return None if equal is None else (equal, False)


def _candidates(distribution: Distribution, path: str) -> Iterator[str]:
    """The file in each unpacked wheel of this version that uv keeps: ``archive-v<N>/<id>/``."""
    root = uv_cache()
    info = os.path.basename(distribution.info)
    try:
        shelves = sorted(name for name in os.listdir(root) if name.startswith("archive-v"))
    except OSError:
        return
    for shelf in shelves:
        try:
            names = os.listdir(os.path.join(root, shelf))
        except OSError:
            continue
        for name in names:
            wheel = os.path.join(root, shelf, name)
            if os.path.isdir(os.path.join(wheel, info)):
                yield os.path.join(wheel, *path.split("/"))


def _same_bytes(one: str, other: str) -> bool:
    try:
        with open(one, "rb") as first, open(other, "rb") as second:
            return first.read() == second.read()
    except OSError:
        return False


def _cure(distribution: Distribution, installer: str, source: str | None, *, linked: bool = False) -> str:
    import shlex

    again = distribution.reinstall
    if installer != "uv":
        what = "the cache that it was linked from" if source is None else source
        return f"mend or empty {what}, then `{again}`"
    # Once the cache is clean there is no reason to pass it by, and uv cannot link out of one that it throws away.
    again = again.replace(" --no-cache ", " ")
    where = ""
    if source is not None and not source.startswith(os.path.join(uv_cache(), "")):
        head, found, _ = source.replace(os.sep, "/").rpartition("/archive-v")
        where = f" --cache-dir {shlex.quote(head)}" if found else ""
    cure = f"`uv cache clean{where} {distribution.name}`, then `{again}`"
    return f"{cure}, and the same in the other environments that are linked to that cache" if linked else cure
