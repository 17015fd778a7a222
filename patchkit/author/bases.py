"""``port`` on released wheels: which release it starts from, and which lie in between."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from patchkit.author.port import port
from patchkit.author.published import Progress, cached_between, get_wheel, list_versions, opened_wheel
from patchkit.errors import GuardError, PlanError, SiteError
from patchkit.model.requirement import parse_requirement

if TYPE_CHECKING:
    from patchkit.author.proposal import Port
    from patchkit.model.patch import Patch
    from patchkit.site.environment import Site

_TRIES = 4
"""Releases that are tried as the one to port from, before a person is asked to name one."""


def port_to(
    patch: Patch,
    to: str,
    *,
    base: str | None = None,
    in_place: bool = False,
    offline: bool = False,
    site: Site | None = None,
    progress: Progress | None = None,
) -> Port:
    """Carry ``patch`` to the release ``to`` from ``base``, or from the nearest of its releases that it fits.

    Args:
        patch: The patch.
        to: The release that it shall fit.
        base: A release that it fits.
        in_place: Give the old release up.
        offline: Use the wheels of the cache only.
        site: Judge by the grammar of its Python; by that of the running one without.
        progress: Told what is fetched.

    Raises:
        PatchkitError: The patch does not fit ``base``.
        PatchFileError: The patch is wrong whatever the release is.
        SiteError: ``fetch``: a release cannot be had, or there is none to start from; ``no-base``: it fits none of
            those tried.
    """
    name = patch.target.name
    tick = progress if progress is not None else _silent
    tick(0, 0, f"fetching {name} {to}")
    with opened_wheel(get_wheel(name, to, offline=offline), name, to, site) as new:
        if base is not None:
            bases: Sequence[str] = [base]
        else:
            tick(0, 0, f"asking for the releases of {name}")
            bases = find_base(patch, list_versions(name, offline=offline).versions, to)[:_TRIES]
        for one in bases:
            with ExitStack() as stack:
                between = [
                    stack.enter_context(opened_wheel(get_wheel(name, version, offline=True), name, version, site))
                    for version in cached_between(name, one, new.version)
                ]
                old = stack.enter_context(opened_wheel(get_wheel(name, one, offline=offline), name, one, site))
                try:
                    return port(patch, old, new, between=between, in_place=in_place)
                except (GuardError, PlanError) as error:
                    if base is not None:
                        error.message = f"{name} {base}: {error.message}"
                        error.hint = "name a release that the patch fits with --from"
                        raise
    raise SiteError(
        f"{patch.name} fits none of the releases that it could be ported from",
        code="no-base",
        hint=f"`patchkit matrix {patch.name}` says where it fits; name such a release with --from",
    )


def _silent(done: int, total: int, what: str) -> None:
    """Progress that nobody asked for."""


def find_base(patch: Patch, versions: Sequence[str], to: str) -> list[str]:
    """The releases to port from, the best first: those within the requirement that lie next to ``to``.

    Raises:
        SiteError: ``fetch``: there is none.
    """
    from packaging.version import Version

    goal = Version(to)
    own = parse_requirement(patch.target.requirement).specifier
    known = [v for v in versions if own.contains(v, prereleases=True) and Version(v) != goal]
    older = [v for v in reversed(known) if Version(v) < goal]
    newer = [v for v in known if Version(v) > goal]
    if not older and not newer:
        raise SiteError(
            f"{patch.name}: there is no release to port from: {patch.target.requirement} admits none but {to}",
            code="fetch",
            hint="name one that the patch fits with --from",
        )
    return [*older, *newer]
