"""From a patch that fits one release to one that fits another as well: where the code went, and what speaks for it.

A proposal is made only where :mod:`patchkit.author.carry` has evidence, and only when the whole patch, with it, plans
on the new release (its conditions hold, its files parse) and still does to the old release what it did.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from patchkit.author.align import names_in, names_of
from patchkit.author.carry import (
    Carried,
    Refused,
    Tie,
    carry,
    consistent,
    hunks_of,
    inserted_names,
    laid_out_otherwise,
)
from patchkit.author.draft import change_of, draft_of
from patchkit.author.having import ready_block
from patchkit.author.hunks import lines_of
from patchkit.author.matrix import plan_release, short_reason
from patchkit.author.proposal import Part, Port, prove, write_variants
from patchkit.author.published import WheelFiles
from patchkit.author.relax import from_on
from patchkit.author.splice import table_of
from patchkit.edit.locate import FileText
from patchkit.edit.plan import plan_patch, upstreamed_by
from patchkit.edit.source import Source
from patchkit.errors import InternalError, PatchFileError, PatchkitError, PlanError, SiteError
from patchkit.model.patch import Condition, Edit, Patch, Remove

if TYPE_CHECKING:
    from patchkit.edit.plan import FilePlan


def port(
    patch: Patch, old: WheelFiles, new: WheelFiles, *, between: Sequence[WheelFiles] = (), in_place: bool = False
) -> Port:
    """Carry ``patch`` from a release that it fits to another one.

    Args:
        patch: The patch.
        old: A release that it fits.
        new: The release that it shall fit.
        between: Releases between the two, the one nearest to ``new`` first: where the new edits begin to be needed.
        in_place: Replace what does not fit any more, instead of adding variants beside it: the old release is given up.

    Raises:
        PatchkitError: It does not fit ``old`` either.
        PatchFileError: The patch is wrong whatever the release is.
    """
    before = plan_release(patch, old)
    if upstreamed_by(patch, new, new.grammar) is not None:
        return Port(patch, old.version, new.version, "upstreamed", ())
    parts = [
        _part(patch, edit, old, new)
        for edit in patch.edits
        if _active(edit, old) and not _replaced(patch, edit, old, new)
    ]
    parts += [_newcomer(patch, edit, new) for edit in patch.edits if _active(edit, new) and not _active(edit, old)]
    parts = [_since(patch, part, new, between) for part in parts]
    parts.sort(key=lambda part: part.index)
    parts += [part for remove in patch.removes if (part := _needless(patch, remove, old, new, between)) is not None]
    if any(part.state == "decide" for part in parts):
        block = ready_block(patch, before.files, old, new, between)
        if block is not None:
            return Port(patch, old.version, new.version, "upstreamed", (), upstreamed=block)
        return Port(patch, old.version, new.version, "decide", tuple(parts))
    kept = _kept(patch, old, new)
    if kept is not None:
        return Port(patch, old.version, new.version, "decide", tuple(parts), problem=kept)
    if _nothing_left(patch, parts, new):
        problem = f"nothing of the patch is left to do on {new.name} {new.version}: it has no file that it takes away"
        return Port(patch, old.version, new.version, "decide", tuple(parts), problem=problem)
    try:
        ported, parts = _with_conditions(patch, parts, old, new, in_place=in_place)
        requirement = ported.target.requirement if ported.target.requirement != patch.target.requirement else None
        if requirement is None and all(part.state == "fits" for part in parts):
            return Port(patch, old.version, new.version, "fits", tuple(parts))
        prove(patch, ported, parts, before.files, old, new, in_place=in_place)
    except (PatchFileError, PlanError, _Undecided) as error:
        message = error.message if isinstance(error, PatchkitError) else str(error)
        return Port(patch, old.version, new.version, "decide", tuple(parts), problem=message)
    looked = () if in_place else tuple((files.version, _failure(ported, files)) for files in between)
    return Port(patch, old.version, new.version, "ported", tuple(parts), requirement, ported.data, between=looked)


def _failure(patch: Patch, files: WheelFiles) -> str | None:
    """Why the ported patch does not fit a release in between; None where it does."""
    try:
        plan_release(patch, files)
    except PatchFileError:
        raise
    except PatchkitError as error:
        return short_reason(error)
    return None


class _Undecided(Exception):
    """Something that only a person can decide; says what."""


def _kept(patch: Patch, old: WheelFiles, new: WheelFiles) -> str | None:
    """What the patch takes away from the old release alone, and the new one has as well, in words."""
    now = {path for remove in patch.removes if _active(remove, new) for path in remove.files}
    for remove in patch.removes:
        for path in remove.files if _active(remove, old) else ():
            if path not in now and new.has(path):
                return f"remove {remove.index}: {path} is there in {new.version}, which its `versions` leaves out"
    return None


def _nothing_left(patch: Patch, parts: Sequence[Part], new: WheelFiles) -> bool:
    needless = {part.index for part in parts if part.table == "remove"}
    removes = [one for one in patch.removes if one.index not in needless and _active(one, new)]
    adds = any(add.versions is None or new.matches(add.versions) for add in patch.adds)
    return not (removes or adds or any(part.table == "edit" for part in parts))


def _needless(
    patch: Patch, remove: Remove, old: WheelFiles, new: WheelFiles, between: Sequence[WheelFiles]
) -> Part | None:
    """What becomes of a removal of files that the new release has not: there is nothing to take away."""
    gone = [path for path in remove.files if not new.has(path)]
    if not gone or not (_active(remove, old) and _active(remove, new)):
        return None
    moved = [path for path in gone if not path.endswith("__init__.py") and _elsewhere_by_name(path, old, new)]
    who = f"{new.name} {new.version}"
    at = patch.line_of("remove", remove.index, "file")
    if moved or len(gone) < len(remove.files):
        near = ", ".join(_elsewhere_by_name(moved[0], old, new)) if moved else ""
        reason = f"{who} has no {(moved or gone)[0]}" + (f"; it has {near} now" if near else ", and has the others")
        return Part(
            "remove", remove.index, "decide", (moved or gone)[0], code="not-in-distribution", reason=reason, line=at
        )
    since = new.version
    for files in between:
        if any(map(files.has, remove.files)):
            break
        since = files.version
    reason = f"{who} has no {', '.join(gone)}: there is nothing to take away"
    return Part("remove", remove.index, "narrowed", gone[0], reason=reason, since=since, line=at)


def _elsewhere_by_name(path: str, old: WheelFiles, new: WheelFiles) -> list[str]:
    """Files of the same name that only the new release has."""
    name = path.rpartition("/")[2]
    return [one for one in new.paths() if one.rpartition("/")[2] == name and not old.has(one)]


def _active(part: Edit | Condition | Remove, files: WheelFiles) -> bool:
    return part.versions is None or files.matches(part.versions)


def _replaced(patch: Patch, edit: Edit, old: WheelFiles, new: WheelFiles) -> bool:
    """Whether ``edit``, which is not for the new release, has its successor among those that are for it alone."""
    if _active(edit, new):
        return False

    def alike(other: Edit) -> bool:
        return (
            other.files == edit.files and (other.scope or "").partition(".")[0] == (edit.scope or "").partition(".")[0]
        )

    leaving = [e for e in patch.edits if alike(e) and _active(e, old) and not _active(e, new)]
    coming = [e for e in patch.edits if alike(e) and _active(e, new) and not _active(e, old)]
    return len(coming) >= len(leaving)


def _alone(patch: Patch, edit: Edit) -> Patch:
    """The patch with this edit and nothing else."""
    return patch._replace(
        edits=(edit._replace(versions=None),), adds=(), removes=(), preconditions=(), postconditions=(), upstreamed=()
    )


def _newcomer(patch: Patch, edit: Edit, new: WheelFiles) -> Part:
    """An edit that is for the new release already, and not for the old one."""
    try:
        plan_patch(_alone(patch, edit), new, new.grammar)
    except PatchFileError:
        raise
    except PlanError as error:
        return _decide(patch, edit, error, Refused("it is not for the old release: it has no change to carry"), new)
    return Part("edit", edit.index, "fits", edit.files[0])


def _decide(patch: Patch, edit: Edit, error: PlanError, refused: Refused, new: WheelFiles) -> Part:
    candidates = () if refused.new_lines else tuple(error.message.split("\n")[1:])
    path = edit.files[0]
    if edit.find is not None and error.code == "anchor-missing" and new.has(path):
        again = laid_out_otherwise(new.text(path), edit.find)[:3]
        where = tuple(f"the same code, laid out otherwise: line {line} of {path} in {new.version}" for line in again)
        candidates = where or candidates
    return Part(
        "edit",
        edit.index,
        "decide",
        edit.files[0],
        old_line=refused.old_line,
        new_line=refused.line,
        code=error.code,
        reason=f"{short_reason(error)}. Not carried: {refused.reason}",
        old_lines=refused.old_lines,
        new_lines=refused.new_lines,
        candidates=candidates,
        line=_line(patch, edit),
    )


def _part(patch: Patch, edit: Edit, old: WheelFiles, new: WheelFiles) -> Part:
    alone = _alone(patch, edit)
    was = plan_patch(alone, old, old.grammar)
    try:
        now = plan_patch(alone, new, new.grammar)
    except PatchFileError:
        raise
    except PlanError as error:
        return _carried(patch, edit, was.files, old, new, error)
    at = [match.line for file in was.files for report in file.edits for match in report.matches]
    there = [match.line for file in now.files for report in file.edits for match in report.matches]
    old_line, new_line = (lines[0] if lines else None for lines in (at, there))
    stray = _stray(edit, was.files, now.files, old, new)
    if stray is not None:
        reason = f"its anchor matches {stray}, which is not where the lines around the old place are now"
        return Part(
            "edit", edit.index, "decide", edit.files[0], old_line, new_line, "doubtful", reason, line=_line(patch, edit)
        )
    found = [_lost_names(before, before.path, new) for before in was.files]
    gone = sorted({name for names, _ in found for name in names})
    if gone:
        reason = f"its text uses {', '.join(gone)}, which {new.name} {new.version} has nowhere"
        return Part(
            "edit", edit.index, "decide", edit.files[0], old_line, new_line, "doubtful", reason, line=_line(patch, edit)
        )
    state = "fits" if _active(edit, new) else "widened"
    cautions = _caution(sorted({name for _, names in found for name in names}))
    return Part("edit", edit.index, state, edit.files[0], old_line, new_line, cautions=cautions)


def _lost_names(plan: FilePlan, path: str, new: WheelFiles, text: str | None = None) -> tuple[list[str], list[str]]:
    """Names of the old file in the edit's new lines that the new file has not: nowhere in the release, and elsewhere.

    ``text`` is the edit's text for the new release where that is another: only names in it count.
    """
    before = Source(plan.before or b"", path=plan.path).text
    after = Source(plan.after or b"", path=plan.path).text
    changes = hunks_of(before, after)
    theirs = names_in(new.text(path).source.text)
    if names_of([line for hunk in changes for line in hunk.new]) <= theirs:
        return [], []
    used = inserted_names(after, changes)
    if text is not None:
        used &= names_of(lines_of(text))
    lost = (used & names_in(before)) - theirs
    gone = set(lost)
    for _, data in new.siblings() if gone else ():
        gone -= {name for name in gone if name.encode() in data}
    return sorted(gone), sorted(lost - gone)


def _caution(names: Sequence[str]) -> tuple[str, ...]:
    """What a person should look at, where names went out of the file and are elsewhere in the release."""
    return (f"its text uses {', '.join(names)}, which this file does not have any more",) if names else ()


def _line(patch: Patch, part: Edit | Condition) -> int | None:
    return patch.line_of(table_of(part), part.index, part.anchor_key)


def _stray(
    edit: Edit, was: Sequence[FilePlan], now: Sequence[FilePlan], old: WheelFiles, new: WheelFiles
) -> str | None:
    """A match on the new release that is not where the alignment of the two has the old one, in words."""
    if edit.action in ("add_import", "probe"):
        return None
    for before, after in zip(was, now, strict=True):
        texts = old.text(before.path), new.text(after.path)
        matches = zip(before.edits[0].matches, after.edits[0].matches, strict=True)
        for old_match, new_match in matches:
            if not consistent(texts[0], texts[1], old_match.line, new_match.line):
                return f"{after.path}:{new_match.line}"
    return None


def _carried(
    patch: Patch, edit: Edit, was: Sequence[FilePlan], old: WheelFiles, new: WheelFiles, error: PlanError
) -> Part:
    """The proposal for an edit that does not fit the new release, or what a person must decide."""
    part, gap = _tried(patch, edit, was, old, new, error)
    if part.state != "decide":
        return part
    draft = None
    if gap is not None and part.path is not None and new.has(part.path):
        draft = draft_of(edit, new.text(part.path), gap, from_on(new.version, old.version))
    return part._replace(change=change_of(was), draft=draft)


def _tried(
    patch: Patch, edit: Edit, was: Sequence[FilePlan], old: WheelFiles, new: WheelFiles, error: PlanError
) -> tuple[Part, tuple[int, int] | None]:
    """The proposal, or what is undecided with the lines that stand at the place now."""

    def decide(refused: Refused) -> tuple[Part, tuple[int, int] | None]:
        return _decide(patch, edit, error, refused, new), refused.gap

    if len(was) != 1:
        return decide(Refused("it is for several files at once"))
    (plan,) = was
    if edit.action in ("add_import", "probe"):
        return decide(Refused("where a probe belongs is not told by lines"))
    ours = old.text(plan.path)
    after = Source(plan.after or b"", path=plan.path).text
    tie: Tie = {"insert_before": "below", "insert_after": "above"}.get(edit.action)  # type: ignore[assignment]
    found: Carried | Refused = Refused(f"{new.name} {new.version} has no {plan.path}")
    target = plan.path
    if new.has(plan.path):
        found = carry(ours, new.text(plan.path), after, tie=tie)
    if isinstance(found, Refused):
        elsewhere = [(path, other) for path, other in _elsewhere(edit, ours, after, tie, old, new)]
        if len(elsewhere) == 1:
            target, found = elsewhere[0]
        elif elsewhere:
            paths = " and to ".join(path for path, _ in elsewhere)
            return decide(Refused(f"it could go to {paths}"))
    if isinstance(found, Refused):
        return decide(found)
    gone, lost = _lost_names(plan, target, new, found.anchor.text)
    if gone:
        reason = f"its text uses {', '.join(gone)}, which {new.name} {new.version} has nowhere"
        lead = max(1, _first_change(ours.source.text, after))
        refused = Refused(reason, max(1, found.line - 1), lead, found.old_lines, found.new_lines)
        return decide(refused)
    anchor = found.anchor
    variant = Edit(edit.index, (target,), anchor.action, find=anchor.find, text=anchor.text, scope=anchor.scope)
    made = plan_patch(_alone(patch, variant), new, new.grammar).files[0].after
    if Source(made or b"", path=target).text != found.after:
        raise InternalError(f"the carried {table_of(edit)} {edit.index} of {patch.name} makes another change")
    kept = _retargeted(patch, edit, variant, new)
    carried = Part(
        "edit",
        edit.index,
        "ported",
        target,
        plan.edits[0].matches[0].line if plan.edits[0].matches else None,
        found.line,
        error.code,
        short_reason(error),
        found.evidence,
        _caution(lost),
        found.old_lines,
        found.new_lines,
        variant=kept or variant,
        line=_line(patch, edit),
    )
    return carried, None


def _retargeted(patch: Patch, edit: Edit, variant: Edit, new: WheelFiles) -> Edit | None:
    """The edit as it was written, at the new file and scope, where it does there what the carried one does."""
    for scope in dict.fromkeys((variant.scope, edit.scope)):
        candidate = edit._replace(files=variant.files, scope=scope, examples=())
        try:
            plans = [plan_patch(_alone(patch, one), new, new.grammar) for one in (candidate, variant)]
        except PlanError:
            continue
        if [file.after for file in plans[0].files] == [file.after for file in plans[1].files]:
            return candidate
    return None


def _elsewhere(
    edit: Edit, ours: FileText, after: str, tie: Tie, old: WheelFiles, new: WheelFiles
) -> list[tuple[str, Carried]]:
    """The other files of the new release that the change can be carried to: those that have a definition so called."""
    scope = edit.scope or ours.scope_at(ours.source.starts[max(0, _first_change(ours.source.text, after))])()
    last = scope.rpartition(".")[2]
    if not last:
        return []
    still = new.text(ours.source.path).outline_or_none() if new.has(ours.source.path) else None
    if still is not None and still.scopes(scope):
        return []  # it is where it was: another one so called is another one
    if any(path != ours.source.path and _defines(data, scope) for path, data in old.siblings()):
        return []  # of several definitions so called, another one may have gone there
    words = (f"def {last}".encode(), f"class {last}".encode())
    found = []
    for path, data in new.siblings():
        if path == ours.source.path or not any(word in data for word in words):
            continue
        if old.has(path) and any(word in old.data(path) for word in words):
            continue  # it had one before: that is another one
        one = carry(ours, new.text(path), after, tie=tie, moved=True)
        if isinstance(one, Carried):
            found.append((path, one))
    return found


def _defines(data: bytes, scope: str) -> bool:
    """Whether a file has a definition of each name of ``scope``."""
    return all(re.search(rb"\b(?:def|class) +%s\b" % name.encode(), data) for name in scope.split("."))


def _first_change(before: str, after: str) -> int:
    return min(hunks_of(before, after)[0].start, before.count("\n") - 1)


def _since(patch: Patch, part: Part, new: WheelFiles, between: Sequence[WheelFiles]) -> Part:
    """The part with the release from which on its variant fits, and the edit that it stands beside does not."""
    if not isinstance(part.variant, Edit):
        return part
    since = new.version
    for files in between:
        if _fits(patch, patch.edits[part.index - 1], files) or not _fits(patch, part.variant, files):
            break
        since = files.version
    return part._replace(since=since)


def _fits(patch: Patch, edit: Edit, files: WheelFiles) -> bool:
    try:
        plan_patch(_alone(patch, edit), files, files.grammar)
    except PatchFileError:
        raise
    except (PlanError, SiteError):  # a wheel in between that cannot be read says nothing
        return False
    return True


def _with_conditions(
    patch: Patch, parts: Sequence[Part], old: WheelFiles, new: WheelFiles, *, in_place: bool
) -> tuple[Patch, list[Part]]:
    """The patch with the proposals, and with conditions that follow the edits to another file or scope.

    Raises:
        _Undecided: A condition does not hold on the new release, and no edit shows where its code went.
    """
    moves = {}
    for part in parts:
        if isinstance(part.variant, Edit):
            edit = patch.edits[part.index - 1]
            moves[edit.files[0], edit.scope] = (part.variant.files[0], part.variant.scope, part.since)
            moves.setdefault((edit.files[0], None), (part.variant.files[0], None, part.since))
    out = list(parts)
    tried: set[tuple[str, int]] = set()
    while True:
        ported = write_variants(patch, out, old.version, new.version, in_place=in_place)
        try:
            plan_release(ported, new)
            return ported, out
        except PlanError as error:
            table, index = str(error.details.get("table")), error.details.get("index")
            conditions = {"precondition": ported.preconditions, "postcondition": ported.postconditions}.get(table)
            if conditions is None or not isinstance(index, int):
                raise
            condition = conditions[index - 1]
            own = _original(patch, condition, ported, new)
            goal = moves.get((condition.file or "", condition.scope))
            if own is None or goal is None or (table, own) in tried or goal[:2] == (condition.file, condition.scope):
                raise _Undecided(f"{table} {own or index}: {short_reason(error)}") from None
            tried.add((table, own))
            variant = condition._replace(file=goal[0], scope=goal[1], index=own)
            out.append(
                Part(
                    table,
                    own,
                    "ported",
                    goal[0],
                    reason=short_reason(error),
                    evidence=("it follows the edits",),
                    variant=variant,
                    since=goal[2],
                )
            )


def _original(patch: Patch, condition: Condition, ported: Patch, new: WheelFiles) -> int | None:
    """The number in ``patch`` of a condition of the ported patch."""
    kind = condition.kind
    theirs = ported.preconditions if kind == "precondition" else ported.postconditions
    ours = patch.preconditions if kind == "precondition" else patch.postconditions
    if len(theirs) == len(ours):
        return condition.index
    plain = condition._replace(index=0, versions=None)
    found = [one.index for one in ours if one._replace(index=0, versions=None) == plain]
    return found[0] if len(found) == 1 else None
