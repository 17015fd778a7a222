"""The commands as functions. ``site`` is a path (an interpreter, an environment or a site-packages folder), a
:class:`patchkit.site.environment.Site`, or None for the one that the command line would take.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from patchkit.model.load import load_patch
from patchkit.model.patch import Patch
from patchkit.ops.apply import apply_site
from patchkit.ops.catalog import open_catalog
from patchkit.ops.check import PatchState, check_site
from patchkit.ops.outcome import Outcome
from patchkit.ops.revert import revert_site
from patchkit.site.environment import Site, resolve

if TYPE_CHECKING:
    from patchkit.bench.report import Report
    from patchkit.model.recipe import Recipe


def load(name: str | os.PathLike[str], *, patches: Sequence[str] = ()) -> Patch:
    """The patch ``name``, or the one in the file of that path.

    Raises:
        UsageError: There is none.
        PatchFileError: It is wrong.
    """
    text = os.fspath(name)
    return load_patch(text) if text.endswith(".toml") else open_catalog(patches).load(text)


def plan(*names: str | Patch, site: str | Site | None = None, patches: Sequence[str] = ()) -> Outcome:
    """What :func:`apply` would do; nothing is written.

    Raises:
        PatchkitError: As :func:`apply`.
    """
    return apply_site(_site(site), _patches(names, patches), dry_run=True, notice=_silent)


def apply(
    *names: str | Patch,
    site: str | Site | None = None,
    patches: Sequence[str] = (),
    allow_known_bad: bool = False,
) -> Outcome:
    """Apply patches, all or none.

    Raises:
        GuardError: A guard refuses.
        PlanError: An anchor or a condition fails.
        SiteError: The site conflicts, or the patches belong to different folders.
    """
    return apply_site(_site(site), _patches(names, patches), allow_known_bad=allow_known_bad, notice=_silent)


def revert(*names: str, site: str | Site | None = None, force: bool = False, everything: bool = False) -> Outcome:
    """Take patches out; ``everything``: all that are applied.

    Raises:
        SiteError: Hand edits inside of what patchkit wrote, without ``force``.
        PlanError: A remaining patch would not fit.
    """
    return revert_site(_site(site), names, everything=everything, force=force, notice=_silent)


def check(*names: str, site: str | Site | None = None, patches: Sequence[str] = ()) -> list[PatchState]:
    """The state of every applied and every wanted patch (of ``names`` only).

    Raises:
        SiteError: The ledger is damaged or newer than this patchkit.
    """
    report = check_site(_site(site), names, open_catalog(patches))
    if report.damage:
        raise report.damage[0]
    return report.states


def rebench(
    recipe: str | Recipe,
    *,
    site: str | Site | None = None,
    patches: Sequence[str] = (),
    runs: str | None = None,
    resume: str | None = None,
    in_memory: bool = False,
    preflight: bool = True,
    keep_inconclusive: bool = False,
    allow_known_bad: bool = False,
) -> Report:
    """Measure the patches of a recipe on the site; only what passes stays applied.

    Args:
        recipe: Its name, the path of its file, or itself.
        site: The site; None: where the recipe is a rig's, that of the rig.
        patches: Folders of patches to look in first.
        runs: The folder that keeps sessions.
        resume: The folder of a session to go on with; empty: the newest of the recipe without a report.
        in_memory: Patches in memory only.
        preflight: Whether the recipe's preflight is run.
        keep_inconclusive: Patches stay that can neither be passed nor refused.
        allow_known_bad: Let patches that are tagged ``known-bad`` stay, if they pass.

    Raises:
        PatchkitError: As ``patchkit rebench``; a verdict is no error.
    """
    from patchkit.bench.catalog import find_recipe
    from patchkit.bench.plan import Options, make_plan
    from patchkit.bench.rigged import site_for
    from patchkit.bench.session import begin, run_session
    from patchkit.bench.store import runs_folder
    from patchkit.bench.voice import Voice

    found = find_recipe(recipe) if isinstance(recipe, str) else recipe
    where = (site_for(found, os.environ) if site is None else None) or _site(site)
    folder = runs_folder(runs, os.environ)
    options = Options(open_catalog(patches).load, folder, in_memory, preflight, keep_inconclusive, allow_known_bad)
    plan = make_plan(found, where, options, notice=_silent)
    return run_session(plan, begin(plan, resume), Voice())


def _patches(names: Sequence[str | Patch], folders: Sequence[str]) -> list[Patch]:
    return [name if isinstance(name, Patch) else load(name, patches=folders) for name in names]


def _site(site: str | Site | None) -> Site:
    if isinstance(site, Site):
        return site
    if site is not None and os.path.isdir(site):
        return resolve(None, site)
    return resolve(site, None)


def _silent(text: str) -> None:
    """A library call prints nothing."""
