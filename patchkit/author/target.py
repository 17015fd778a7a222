"""The distribution that an author's command is about, in the site that holds it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from patchkit.errors import GuardError, SiteError, UsageError
from patchkit.model.checks import quote
from patchkit.ops.session import opened
from patchkit.site.environment import home_of

if TYPE_CHECKING:
    from patchkit.ops.workspace import Workspace
    from patchkit.site.distribution import Distribution
    from patchkit.site.environment import Site

_NAME = re.compile("[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")


@contextmanager
def opened_for(
    site: Site, name: str, *, write: bool, notice: Callable[[str], None]
) -> Iterator[tuple[Workspace, Distribution]]:
    """The workspace of the directory that holds a distribution, and that distribution, which is no editable one.

    Args:
        site: The site.
        name: The distribution.
        write: Whether the command may write to the site.
        notice: Told of an interrupted command that was mended, and of a lock that is waited for.

    Raises:
        GuardError: ``not-installed``, ``editable``.
        SiteError: ``metadata``: its name or version is none, so that no requirement or folder can be named by them; or
            as :func:`patchkit.ops.session.opened`.
    """
    found = site.find(name)
    with opened(site if found is None else site.at(home_of(site, found)), write=write, notice=notice) as workspace:
        yield workspace, _installed_plainly(workspace, name)


def _installed_plainly(workspace: Workspace, name: str) -> Distribution:
    distribution = workspace.distribution(name)
    if distribution is None:
        raise GuardError(
            f"{name} is not installed in {workspace.site.label}",
            code="not-installed",
            hint="name the environment with --python or --site",
            details={"distribution": name},
        )
    if distribution.editable:
        source = distribution.editable_source
        raise GuardError(
            f"{distribution.name} is installed in editable mode: its files are somebody's sources",
            code="editable",
            hint=f"edit them in {source}, under version control"
            if source
            else "edit its sources, under version control",
            details={"distribution": distribution.name, "source": source},
        )
    check_named(distribution)
    return distribution


def check_name(name: str) -> None:
    """Refuse what is no name of a distribution (PEP 508).

    Raises:
        UsageError: ``usage``.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{quote(name)} is no name of a distribution: letters, digits, and . _ - within",
            hint="a name as `pip list` shows it; versions go into the patch file's requirement",
            details={"distribution": name},
        )


def check_named(distribution: Distribution) -> None:
    """Refuse a name or version that no requirement can have: files and folders are named by them.

    Raises:
        SiteError: ``metadata``.
    """
    wrong = _misnamed(distribution)
    if wrong is not None:
        raise SiteError(
            f"{distribution.info}: its METADATA {wrong}",
            code="metadata",
            hint="install it again, from a source that you trust",
            details={"path": distribution.info, "distribution": distribution.name},
        )


def _misnamed(distribution: Distribution) -> str | None:
    from packaging.version import InvalidVersion, Version

    if not _NAME.fullmatch(distribution.name):
        return f"has the name {quote(distribution.name)}, which no distribution can have"
    try:
        Version(distribution.version)
    except InvalidVersion:
        return f"has the version {quote(distribution.version)}, which is none of PEP 440"
    return None
