"""``import --edit``: a scratch copy that has the hunks of a diff that fit, to be finished by hand."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from patchkit.author.diffs import read_diff
from patchkit.author.importing import Laid, lay
from patchkit.author.scratch import Copy, scratch_copy
from patchkit.author.target import opened_for
from patchkit.errors import SiteError
from patchkit.ops.check import GLANCE_SECONDS, steady
from patchkit.ops.session import once

if TYPE_CHECKING:
    from patchkit.site.environment import Site


def lay_into(
    site: Site,
    dist: str,
    diff: bytes,
    folder: str,
    *,
    exclude: Sequence[str] = (),
    notice: Callable[[str], None],
    progress: Callable[[str], None],
) -> tuple[Laid, Copy]:
    """Make a scratch copy of a distribution and lay the hunks of a diff in it that have their one place.

    No patch is written: of half a change there shall be none. ``create --from`` makes one of the copy.

    Args:
        site: The site.
        dist: The distribution.
        diff: The diff.
        folder: Where to; it must not be there, or be empty.
        exclude: Shell patterns of paths to leave out.
        notice: Told of an interrupted command that was mended, and of a pattern that fits nothing.
        progress: Told of downloads.

    Raises:
        UsageError: ``diff``; ``exists``: the folder is there, and not empty.
        GuardError: ``not-installed``, ``editable``.
        PlanError: ``nothing-changed``, ``present``, ``paths``.
        SiteError: A file's original cannot be had; the folder cannot be written.
    """
    files = read_diff(diff)
    tell = once(notice)

    def work() -> Laid:
        with opened_for(site, dist, write=False, notice=tell) as (workspace, distribution):
            return lay(workspace, distribution, diff, files, exclude=exclude, notice=tell, progress=progress)

    laid = steady(site, work, wait=GLANCE_SECONDS, notice=tell)
    copy = scratch_copy(site, dist, folder, notice=notice, progress=progress)
    written = {change.path: change.after for change in laid.gathered.changed} | dict(laid.gathered.added)
    try:
        for path, data in written.items():
            target = os.path.join(folder, *path.split("/"))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "wb") as file:
                file.write(data)
        for path, _ in laid.gathered.removed:
            os.unlink(os.path.join(folder, *path.split("/")))
    except OSError as error:
        raise SiteError(
            f"{folder}: cannot be written: {error.strerror}",
            code="unwritable",
            hint="name a folder that you may write to",
            details={"path": folder},
        ) from None
    return laid, copy
