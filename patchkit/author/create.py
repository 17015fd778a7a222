"""``create``: from a hand edit to a patch file that gives exactly the same bytes, proved before it is saved."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from patchkit.author.beside import save_patch, saved_patch
from patchkit.author.derive import TextEdit, derive
from patchkit.author.document import Draft, render
from patchkit.author.gather import Changed, Choice, Gathered, in_folder, in_site
from patchkit.author.original import Originals
from patchkit.author.proof import Before, not_expressible, prove
from patchkit.author.renew import applied_entry, as_it_is, carried, edited, lost, refuse_loss
from patchkit.author.save import check_free
from patchkit.author.target import opened_for
from patchkit.edit.lay import PYTHON
from patchkit.edit.outline import Outline
from patchkit.edit.parse import PARSE_ERRORS, Parse
from patchkit.edit.source import Source
from patchkit.errors import PlanError, SiteError
from patchkit.model.load import parse_patch
from patchkit.model.patch import Patch
from patchkit.ops.apply import apply_patches
from patchkit.ops.check import GLANCE_SECONDS, steady
from patchkit.ops.session import once
from patchkit.site.grammar import Grammar
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.author.renew import Carried
    from patchkit.ops.outcome import Outcome
    from patchkit.site.distribution import Distribution
    from patchkit.site.environment import Site


class Created(NamedTuple):
    """A patch made of a hand edit.

    ``path`` is where it was saved (None: nowhere, in a dry run); ``left`` are files that differ and are not in it, with
    the reasons; ``originals`` names the places that the pristine bytes came from; ``recorded`` says whether the site
    now counts as having it applied. ``lost`` are parts of the patch that it replaces which it has not; ``idle`` are
    patterns that fitted nothing; ``notes`` are what ``apply`` has to say of it.
    """

    patch: Patch
    path: str | None
    gathered: Gathered
    left: Sequence[tuple[str, str]]
    originals: Sequence[str]
    recorded: bool
    lost: Sequence[str] = ()
    idle: Sequence[str] = ()
    notes: Sequence[str] = ()


def create(
    site: Site,
    name: str,
    dist: str,
    *,
    path: str,
    folder: str | None = None,
    summary: str | None = None,
    links: Sequence[str] = (),
    only: Sequence[str] = (),
    syntax: bool = False,
    dry_run: bool = False,
    overwrite: bool = False,
    force: bool = False,
    head: str = "",
    notice: Callable[[str], None],
    progress: Callable[[str], None],
) -> Created:
    """Make a patch of what was edited by hand in the site, or in a scratch copy.

    It is proved to give the same bytes before it is saved. What was edited in the site counts as applied then. A patch
    of that name which is applied is made anew, with what was edited since: what is under it is the base.

    Args:
        site: The site.
        name: The patch's name.
        dist: The distribution.
        path: Where to save it.
        folder: The scratch copy (``patchkit edit``); None: what was edited is the site.
        summary: Its summary; by default it says what is changed.
        links: Its links.
        only: Shell patterns of paths: what differs elsewhere is left out.
        syntax: Write syntax edits where a change is one expression or statement.
        dry_run: Save nothing and record nothing.
        overwrite: Replace a file at ``path``.
        force: Make a patch anew also where parts of its file are lost by that.
        head: What the file begins with (:func:`patchkit.author.beside.first_line`).
        notice: Told of an interrupted command that was mended, and of a lock that is waited for.
        progress: Told of downloads.

    Raises:
        UsageError: No patch can be called so; ``exists``: there is a file at ``path``; ``lost``.
        GuardError: ``not-installed``, ``editable``.
        PlanError: ``nothing-changed``; ``beneath``; ``syntax``; ``not-text``; ``not-expressible``: the patch does not
            give the same bytes.
        SiteError: ``locked``; originals cannot be had; ``changed``: a file was written to meanwhile; the patch cannot
            be saved, or the site not be written. Then there is no patch file, or the one that was there.
    """
    check_free(name, path, overwrite=overwrite or dry_run)
    write = folder is None and not dry_run
    tell = once(notice)

    def work() -> Created:
        with opened_for(site, dist, write=write, notice=tell) as (workspace, distribution):
            originals = Originals(workspace.site.home, distribution, progress)
            choice = Choice(only)
            renewed = None if folder is not None else applied_entry(workspace, name, distribution)
            old = None if renewed is None else as_it_is(workspace, renewed, path)
            gathered = (
                in_site(workspace, distribution, originals, choice=choice, renewed=renewed)
                if folder is None
                else in_folder(folder, distribution, originals, choice=choice)
            )
            if renewed is not None and not edited(gathered):
                gathered = gathered._replace(changed=[], added=[], removed=[])
            patch, gathered = compose(
                name,
                distribution,
                gathered,
                Grammar(workspace.site),
                place=folder or workspace.site.label,
                summary=summary or (old.summary if old is not None else None),
                description=old.description
                if old is not None
                else f"Made of a hand edit of {distribution.name} {distribution.version}. Say here why, and until "
                "when it is needed.\n",
                links=[*(old.links if old is not None else ()), *links],
                syntax=syntax,
                head=head,
                earlier=None if old is None else carried(old),
                after=() if old is None else old.target.after,
            )
            parts = [] if old is None else lost(old, patch)
            if not (force or dry_run):
                refuse_loss(name, parts)
            known_bad = old is not None and "known-bad" in old.tags  # it is applied: somebody said so once
            notes: Sequence[str] = ()
            if folder is None:
                unstacked = {change.path: change.before for change in gathered.changed if not change.stacked}
                workspace.originals = unstacked | dict(gathered.removed)
                patch = patch._replace(path=os.path.abspath(path))
                # What would refuse it does so before it is saved: its conditions, for one.
                _check_still(gathered, apply_patches(workspace, [patch], dry_run=True, allow_known_bad=known_bad))
            if write:
                with saved_patch(path, patch.data, notice, overwrite=overwrite):
                    notes = apply_patches(workspace, [patch], command="create", allow_known_bad=known_bad).notes
            if old is not None and patch.target.requirement == old.target.requirement != _this(distribution):
                notes = [
                    *notes,
                    f"{patch.target.requirement} is as it was: `patchkit matrix {name}` says where it fits now",
                ]
            used = sorted(originals.used)
            saved = path if write else None
            return Created(patch, saved, gathered, gathered.left, used, write, parts, choice.idle, notes)

    if write:
        return work()
    made = steady(site, work, wait=GLANCE_SECONDS, notice=tell)
    if dry_run:
        return made
    save_patch(path, made.patch.data, notice, overwrite=overwrite)
    return made._replace(path=path)


def _check_still(gathered: Gathered, outcome: Outcome) -> None:
    """Refuse where recording the patch would write to a source file: that would undo somebody's edit.

    Raises:
        SiteError: ``changed``: a file does not hold any more what the patch was made of; ``modified``: another patch on
            the distribution is not whole.
    """
    made = set(gathered.paths)
    for file in outcome.files:
        if file.path in made:
            raise SiteError(
                f"{file.path}: was written to since the patch was made of it; nothing was saved or recorded",
                code="changed",
                hint="run the command again; if another program is changing these files, let it end first",
                details={"path": file.path, "paths": [file.path]},
            )
    if outcome.files:
        paths = [file.path for file in outcome.files]
        raise SiteError(
            f"{', '.join(paths)}: not as applied patches left {'it' if len(paths) == 1 else 'them'}, and not a part of "
            "this one; nothing was saved or recorded",
            code="modified",
            hint="`patchkit check` names the patches: `patchkit sync` puts them back, `patchkit revert NAME` takes one "
            "out; then run the command again",
            details={"path": paths[0], "paths": paths},
        )


def compose(
    name: str,
    distribution: Distribution,
    gathered: Gathered,
    grammar: Grammar,
    *,
    place: str,
    summary: str | None = None,
    links: Sequence[str] = (),
    syntax: bool = False,
    description: str = "",
    head: str = "",
    earlier: Carried | None = None,
    after: Sequence[str] = (),
) -> tuple[Patch, Gathered]:
    """The patch of the gathered changes, proved to give them byte for byte; and what of them it has.

    A file whose change cannot be expressed goes to what is left out, as long as another one can.

    Raises:
        PlanError: ``nothing-changed``, ``syntax``, ``empty-file``, ``not-text``, ``not-expressible``.
    """
    if gathered.nothing:
        raise PlanError(
            "\n".join(
                [
                    f"{distribution.name} {distribution.version}: no file differs from what was installed and patched"
                    + (" that a patch could hold; left out:" if gathered.left else ""),
                    *(f"  {path} {reason}" for path, reason in gathered.left),
                ]
            ),
            code="nothing-changed",
            hint="edit a file first, in the site or in a copy that `patchkit edit` makes",
            details={
                "distribution": distribution.name,
                "left": [{"path": path, "reason": reason} for path, reason in gathered.left],
            },
        )
    _check_parses(gathered, grammar, place)
    originals = {change.path: change.before for change in gathered.changed} | dict(gathered.removed)
    before = Before(distribution, originals)
    edits: dict[str, Sequence[TextEdit]] = {}
    first: PlanError | None = None
    for change in gathered.changed:
        try:
            edits[change.path] = edits_of(change, grammar.parse)
            if not edits[change.path]:
                raise not_expressible(change.path, change.before, change.after)
        except PlanError as error:
            gathered = _without(gathered, error, first)
            first = first or error
            edits.pop(change.path, None)
    if syntax:
        from patchkit.author.syntax import as_syntax

        edits = {path: as_syntax(path, own, before, grammar) for path, own in edits.items()}
    while True:
        draft = Draft(
            name=name,
            summary=summary or _summary(gathered),
            description=description,
            requirement=_this(distribution),
            edits=edits,
            adds=[(path, data.decode("utf-8")) for path, data in gathered.added],
            removes=[path for path, _ in gathered.removed],
            after=sorted({name for change in gathered.changed for name in change.stacked} | set(after)),
            links=list(dict.fromkeys(links)),
            head=head,
        )
        try:
            patch = parse_patch(render(draft), f"{name}.toml")
            wanted: dict[str, bytes | None] = {change.path: change.after for change in gathered.changed}
            wanted.update(gathered.added)
            wanted.update(dict.fromkeys((path for path, _ in gathered.removed), None))
            prove(patch, before, grammar, wanted)
        except PlanError as error:
            gathered = _without(gathered, error, first)
            first = first or error
            edits.pop(str(error.details["path"]), None)
        else:
            return patch if earlier is None else _with_earlier(draft, earlier), gathered


def _this(distribution: Distribution) -> str:
    return f"{distribution.name}=={distribution.version}"


def _with_earlier(draft: Draft, earlier: Carried) -> Patch:
    """The patch with what its earlier file said besides: its edits are proved, its conditions not yet looked at."""
    draft = draft._replace(requirement=earlier.requirement or draft.requirement, carried=earlier)
    return parse_patch(render(draft), f"{draft.name}.toml")


_UNFIT = {
    "not-expressible": "cannot be written as edits: its line breaks, byte order mark or encoding were changed",
    "not-text": "holds bytes that are not text in its encoding, in lines that were changed",
    "empty-file": "is empty as installed: an edit has no anchor",
}
"""Errors that are about one file alone, and what is said of it where it is left out."""


def _without(gathered: Gathered, error: PlanError, first: PlanError | None) -> Gathered:
    """What is gathered, with the file that ``error`` is about among what is left out.

    Raises:
        PlanError: ``error``, or the ``first`` of its kind, where it is about no file that could be left out.
    """
    path = str(error.details.get("path"))
    changed = [change for change in gathered.changed if change.path != path]
    added = [item for item in gathered.added if item[0] != path]
    alone = len(changed) + len(added) == len(gathered.changed) + len(gathered.added)
    if error.code not in _UNFIT or alone or path in gathered.held:
        raise error
    if not changed and not added and not gathered.removed:
        raise first or error
    return gathered._replace(changed=changed, added=added, left=[*gathered.left, (path, _UNFIT[error.code])])


def _check_parses(gathered: Gathered, grammar: Grammar, place: str) -> None:
    """Refuse a Python file that was edited so that it does not parse any more.

    Raises:
        PlanError: ``syntax``, with the place in the edited file.
    """
    after = {change.path: change.after for change in gathered.changed} | dict(gathered.added)
    broken = grammar.judge({path: data for path, data in after.items() if path.endswith(PYTHON)})
    before = grammar.judge({change.path: change.before for change in gathered.changed if change.path in broken})
    for path, problem in broken.items():
        if path not in before:
            excerpt = f"\n    {problem.text.strip()}" if problem.text and problem.text.strip() else ""
            raise PlanError(
                f"{path}:{problem.line}: does not parse as it was edited: {problem.message}{excerpt}",
                code="syntax",
                hint=f"correct it in {place}; nothing was written",
                details={"path": path, "line": problem.line, "reason": problem.message},
            )


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
    paths = gathered.paths
    more = len(paths) - 1
    return f"Change {paths[0]}" + (f" and {more} more file{'s' if more > 1 else ''}" if more else "")
