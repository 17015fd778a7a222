"""The releases that ``lint --against`` holds a patch against: what is installed, or released wheels."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING

from patchkit.author.published import (
    Listing,
    Progress,
    WheelFiles,
    get_wheels,
    list_versions,
    opened_wheel,
    select,
)
from patchkit.errors import PatchkitError, SiteError, UsageError
from patchkit.model.requirement import parse_requirement
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.author.original import Originals
    from patchkit.model.patch import Patch
    from patchkit.site.distribution import Distribution
    from patchkit.site.environment import Site

INSTALLED, ALL = "installed", "all"


class Releases(NamedTuple):
    """Releases of a patch's target, oldest first.

    ``listing`` is every version there is, where that was asked for: then they are all that a specifier admits.
    ``every``: they are all of these. ``missing`` are those that cannot be had, each with the reason.
    """

    files: tuple[WheelFiles, ...]
    listing: Listing | None = None
    every: bool = False
    missing: tuple[tuple[str, str], ...] = ()


class _Installed(WheelFiles):
    """What is installed, with the bytes that the installer put there, judged by the grammar of the site's Python."""

    def __init__(self, distribution: Distribution, originals: Originals, site: Site) -> None:
        nothing = zipfile.ZipFile(io.BytesIO(), "w")
        super().__init__(nothing, distribution.name, distribution.version, site)
        self._originals = originals
        self._members = {path: path for path in distribution.record.paths()}

    def data(self, path: str) -> bytes:
        """The pristine bytes of one file.

        Raises:
            KeyError: The distribution has no such file.
            SiteError: ``fetch``: they cannot be had.
        """
        if path not in self._read:
            self._read[path] = self._originals.of(self._members[path])
        return self._read[path]


@contextmanager
def installed(
    site: Site, patch: Patch, *, notice: Callable[[str], None], progress: Callable[[str], None]
) -> Iterator[Releases]:
    """What is installed of the patch's target.

    Args:
        site: The site.
        patch: The patch.
        notice: Told of an interrupted command that was mended.
        progress: Told of downloads, where a pristine file is nowhere else.

    Raises:
        GuardError: ``not-installed``, ``editable``.
        SiteError: The site cannot be read.
    """
    from patchkit.author.original import Originals
    from patchkit.author.target import opened_for

    with opened_for(site, patch.target.name, write=False, notice=notice) as (workspace, distribution):
        originals = Originals(workspace.site.home, distribution, progress)
        yield Releases((_Installed(distribution, originals, workspace.site),))


@contextmanager
def released(patch: Patch, what: str, *, offline: bool = False, progress: Progress | None = None) -> Iterator[Releases]:
    """Released wheels of the patch's target.

    Args:
        patch: The patch.
        what: Versions separated by commas, a specifier, or :data:`ALL`.
        offline: Use the wheels of the cache only.
        progress: Told how far it is.

    Raises:
        UsageError: ``what`` is none of these, or no release satisfies it.
        SiteError: ``fetch``: no release can be listed, or none of those wanted can be had.
    """
    name = patch.target.name
    listing, chosen = None, _named(what)
    if chosen is None:
        if progress is not None:
            progress(0, 0, f"asking for the releases of {name}")
        listing = list_versions(name, offline=offline)
        own = str(parse_requirement(patch.target.requirement).specifier)
        try:
            chosen = select(listing, versions=None if what == ALL else what, pre=False, limit=0, requirement=own)
        except UsageError as error:
            error.message = error.message.replace("--versions", "--against")
            error.hint = (error.hint or "").replace("--versions", "--against") or None
            raise
        chosen = chosen[::-1]
    missing: list[tuple[str, str]] = []
    with ExitStack() as stack:
        files = []
        with closing(get_wheels([(name, v) for v in chosen], offline=offline, progress=progress)) as wheels:
            for _, version, wheel in wheels:
                try:
                    if isinstance(wheel, PatchkitError):
                        raise wheel
                    files.append(stack.enter_context(opened_wheel(wheel, name, version)))
                except PatchkitError as error:
                    missing.append((version, error.message.partition("\n")[0]))
        if not files:
            raise SiteError(
                f"{patch.name}: no release of {name} could be had: {missing[0][1]}",
                code="fetch",
                hint="check the network and pip's configuration (`pip config list`), or use --offline",
                details={"distribution": name},
            )
        yield Releases(tuple(files), listing, what == ALL, tuple(missing))


def _named(what: str) -> list[str] | None:
    """The versions of a list, oldest first; None where it is none."""
    from packaging.version import InvalidVersion, Version

    try:
        found = {str(version): version for version in (Version(part.strip()) for part in what.split(","))}
    except InvalidVersion:
        return None
    return sorted(found, key=found.__getitem__)
