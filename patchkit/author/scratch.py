"""``edit``: a scratch copy of a distribution as it was installed, to be changed with any editor."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from patchkit.author.mark import write_mark
from patchkit.author.original import Originals
from patchkit.author.target import opened_for
from patchkit.errors import PlanError, SiteError, UsageError
from patchkit.site.record import leads_out
from patchkit.site.whole import beside
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.site.distribution import Distribution
    from patchkit.site.environment import Site

LOST = "is gone from the site, and nothing has what was installed"


class Copy(NamedTuple):
    """A scratch copy: the folder, the release that it is of, and the number of files.

    ``left`` are files that are gone from the site and cannot be had, with the reason; ``originals`` names the places
    that the files came from.
    """

    folder: str
    distribution: str
    version: str
    files: int
    left: tuple[tuple[str, str], ...]
    originals: tuple[str, ...]


def scratch_copy(
    site: Site, dist: str, folder: str | None, *, notice: Callable[[str], None], progress: Callable[[str], None]
) -> Copy:
    """Copy the pristine files of a distribution into a new folder, also those that are gone from the site; all or none.

    Args:
        site: The site.
        dist: The distribution.
        folder: Where to; by default ``<name>-<version>`` in the working directory.
        notice: Told of an interrupted command that was mended.
        progress: Told of downloads.

    Raises:
        UsageError: ``exists``: the folder is there, and not empty.
        GuardError: ``not-installed``, ``editable``.
        SiteError: ``metadata``; a file's original cannot be had; the folder cannot be written.
    """
    with opened_for(site, dist, write=False, notice=notice) as (workspace, distribution):
        folder = os.path.abspath(folder or f"{distribution.normalized}-{distribution.version}")
        if os.path.isdir(folder) and os.listdir(folder):
            raise UsageError(
                f"{folder} is there already, and not empty",
                code="exists",
                hint="name another folder, or remove that one",
                details={"path": folder},
            )
        originals = Originals(workspace.site.home, distribution, progress)
        try:
            with _filled(folder) as staging:
                count, left = _copy(staging, distribution, originals)
                write_mark(staging, distribution)
        except OSError as error:
            raise SiteError(
                f"{folder}: cannot be written: {error.strerror}",
                code="unwritable",
                hint="name a folder that you may write to",
                details={"path": folder},
            ) from None
        used = tuple(sorted(originals.used))
        return Copy(folder, distribution.name, distribution.version, count, tuple(left), used)


def _copy(staging: str, distribution: Distribution, originals: Originals) -> tuple[int, list[tuple[str, str]]]:
    """Write the pristine bytes of the files that a patch could be for; their number, and those that cannot be had."""
    count = 0
    left: list[tuple[str, str]] = []
    for path in distribution.record.paths():
        top = path.partition("/")[0]
        outside = leads_out(path) or "__pycache__" in path.split("/")
        if outside or top.endswith((".dist-info", ".egg-info", ".data")):
            continue
        there = os.path.isfile(os.path.join(distribution.base, *path.split("/")))
        entry = distribution.record.entry(path)
        if not there and (entry is None or entry.digest is None):
            continue  # no list but RECORD, with a hash, says that it was ever installed
        try:
            data = originals.of(path)
        except (PlanError, SiteError):
            if there:
                raise
            left.append((path, LOST))
            continue
        target = os.path.join(staging, *path.split("/"))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "xb") as file:
            file.write(data)
        count += 1
    return count, left


@contextlib.contextmanager
def _filled(folder: str) -> Iterator[str]:
    """A folder to write to, whose content is that of ``folder`` in the end; where something fails, that is as it was.

    An empty folder that is there stays the same one: somebody may stand in it, and it may be another disk.

    Raises:
        OSError: It cannot be written.
    """
    there = os.path.isdir(folder)
    if not there:
        os.makedirs(os.path.dirname(folder), exist_ok=True)
    staging = beside(os.path.join(folder, "x") if there else folder)
    os.mkdir(staging)
    try:
        yield staging
        if there:
            for name in sorted(os.listdir(staging), reverse=True):
                os.rename(os.path.join(staging, name), os.path.join(folder, name))
        else:
            os.rename(staging, folder)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
