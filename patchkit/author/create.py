"""``create``: from a hand edit to a patch file that gives exactly the same bytes, proved before it is saved."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from patchkit.author.derive import TextEdit, derive
from patchkit.author.document import Draft, render
from patchkit.author.gather import Changed, Gathered, in_folder, in_site
from patchkit.author.original import Originals
from patchkit.author.proof import Before, prove
from patchkit.author.save import check_free, save
from patchkit.edit.outline import Outline
from patchkit.edit.parse import PARSE_ERRORS, Parse
from patchkit.edit.source import Source
from patchkit.errors import GuardError, PlanError
from patchkit.model.load import parse_patch
from patchkit.model.patch import Patch
from patchkit.ops.apply import apply_patches
from patchkit.ops.session import opened
from patchkit.site.environment import home_of
from patchkit.site.grammar import Grammar
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.ops.workspace import Workspace
    from patchkit.site.distribution import Distribution
    from patchkit.site.environment import Site


class Created(NamedTuple):
    """A patch made of a hand edit.

    ``path`` is where it was saved (None: nowhere, in a dry run); ``left`` are files that differ and are not in it, with
    the reasons; ``originals`` names the places that the pristine bytes came from; ``recorded`` says whether the site
    now counts as having it applied.
    """

    patch: Patch
    path: str | None
    gathered: Gathered
    left: Sequence[tuple[str, str]]
    originals: Sequence[str]
    recorded: bool


def create(
    site: Site,
    name: str,
    dist: str,
    *,
    path: str,
    folder: str | None = None,
    summary: str | None = None,
    links: Sequence[str] = (),
    syntax: bool = False,
    dry_run: bool = False,
    overwrite: bool = False,
    notice: Callable[[str], None],
    progress: Callable[[str], None],
) -> Created:
    """Make a patch of what was edited by hand in the site, or in a scratch copy.

    It is proved to give the same bytes before it is saved. What was edited in the site counts as applied then.

    Args:
        site: The site.
        name: The patch's name.
        dist: The distribution.
        path: Where to save it.
        folder: The scratch copy (``patchkit edit``); None: what was edited is the site.
        summary: Its summary; by default it says what is changed.
        links: Its links.
        syntax: Write syntax edits where a change is one expression or statement.
        dry_run: Save nothing and record nothing.
        overwrite: Replace a file at ``path``.
        notice: Told of an interrupted command that was mended, and of a lock that is waited for.
        progress: Told of downloads.

    Raises:
        UsageError: No patch can be called so; ``exists``: there is a file at ``path``.
        GuardError: ``not-installed``, ``editable``.
        PlanError: ``nothing-changed``; ``not-text``; ``not-expressible``: the patch does not give the same bytes.
        SiteError: Originals cannot be had; the patch cannot be saved.
    """
    check_free(name, path, overwrite=overwrite or dry_run)
    found = site.find(dist)
    here = site if found is None else site.at(home_of(site, found))
    with opened(here, write=folder is None and not dry_run, notice=notice) as workspace:
        distribution = installed_plainly(workspace, dist)
        originals = Originals(workspace.site.home, distribution, progress)
        gathered = (
            in_site(workspace, distribution, originals)
            if folder is None
            else in_folder(folder, distribution, originals)
        )
        patch = compose(
            name,
            distribution,
            gathered,
            Grammar(workspace.site),
            summary=summary,
            description=f"Made of a hand edit of {distribution.name} {distribution.version}. Say here why, and until "
            "when it is needed.\n",
            links=links,
            syntax=syntax,
        )
        recorded = folder is None and not dry_run
        if recorded:
            workspace.originals = {change.path: change.before for change in gathered.changed if not change.stacked}
            patch = patch._replace(path=os.path.abspath(path))
            apply_patches(workspace, [patch], dry_run=True)  # what would refuse it does so before it is saved
        if not dry_run:
            save(path, patch.data)
        if recorded:
            apply_patches(workspace, [patch])
        used = sorted(originals.used)
        return Created(patch, None if dry_run else path, gathered, gathered.left, used, recorded)


def installed_plainly(workspace: Workspace, name: str) -> Distribution:
    """The installed distribution of that name, which is no editable one.

    Raises:
        GuardError: ``not-installed``, ``editable``.
    """
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
    return distribution


def compose(
    name: str,
    distribution: Distribution,
    gathered: Gathered,
    grammar: Grammar,
    *,
    summary: str | None = None,
    links: Sequence[str] = (),
    syntax: bool = False,
    description: str = "",
) -> Patch:
    """The patch of the gathered changes, proved to give them byte for byte.

    Raises:
        PlanError: ``nothing-changed``, ``empty-file``, ``not-text``, ``not-expressible``.
    """
    if not gathered.changed and not gathered.added:
        raise PlanError(
            f"{distribution.name} {distribution.version}: no file differs from what was installed"
            + (" and patched" if any(True for _ in gathered.left) else ""),
            code="nothing-changed",
            hint="edit a file first, in the site or in a copy that `patchkit edit` makes",
            details={"distribution": distribution.name, "left": [list(item) for item in gathered.left]},
        )
    before = Before(distribution, {change.path: change.before for change in gathered.changed})
    edits = {change.path: edits_of(change, grammar.parse) for change in gathered.changed}
    if syntax:
        from patchkit.author.syntax import as_syntax

        edits = {path: as_syntax(path, own, before, grammar) for path, own in edits.items()}
    draft = Draft(
        name=name,
        summary=summary or _summary(gathered),
        description=description,
        requirement=f"{distribution.name}=={distribution.version}",
        edits=edits,
        adds=[(path, data.decode("utf-8")) for path, data in gathered.added],
        after=sorted({name for change in gathered.changed for name in change.stacked}),
        links=links,
    )
    patch = parse_patch(render(draft), f"{name}.toml")
    wanted = {change.path: change.after for change in gathered.changed} | dict(gathered.added)
    prove(patch, before, grammar, wanted)
    return patch


def edits_of(change: Changed, parse: Parse) -> Sequence[TextEdit]:
    """The edits of one changed file; scopes only where it parses by the site's grammar."""
    source, after = Source(change.before, path=change.path), Source(change.after, path=change.path)
    return derive(source, _outline(source, parse), after.text)


def _outline(source: Source, parse: Parse) -> Outline | None:
    if not source.path.endswith((".py", ".pyi")):
        return None
    try:
        return Outline(source, parse(source.text))
    except (*PARSE_ERRORS, PlanError):
        return None


def _summary(gathered: Gathered) -> str:
    paths = [change.path for change in gathered.changed] + [path for path, _ in gathered.added]
    more = len(paths) - 1
    return f"Change {paths[0]}" + (f" and {more} more file{'s' if more > 1 else ''}" if more else "")
