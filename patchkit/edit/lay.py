"""From the places that the edits of a patch mean in one file to its new bytes: laid on together, and proved."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from patchkit.edit.locate import FileText, place
from patchkit.edit.source import ByteSplice, Source, Splice
from patchkit.edit.spans import Found
from patchkit.edit.text import text_splices
from patchkit.errors import PlanError
from patchkit.model.patch import Edit, Patch
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.edit.parse import Parse
    from patchkit.edit.plan import FilePlan

#: The endings of files that must parse after a patch when they did before.
PYTHON = (".py", ".pyi")


class Chosen(NamedTuple):
    """One edit, and the matches of it that are to be edited (none for ``add_import``)."""

    edit: Edit
    found: Sequence[Found]


class Laid(NamedTuple):
    """A file's new bytes, the byte splices that make them, and the edit that each of these comes from."""

    data: bytes
    splices: tuple[ByteSplice, ...]
    owners: tuple[int, ...]


def lay(patch: Patch, text: FileText, chosen: Sequence[Chosen], parse: Parse) -> Laid:
    """Lay the edits of ``patch`` on one file, and prove what can be proved of the result.

    Raises:
        PlanError: ``overlap``, ``encoding``, ``template``, ``proof`` or as the kinds of edits raise it; with the patch
            file, the edit and its key.
    """
    source = text.source
    splices = _splices(patch, text, chosen)
    splices.sort(key=lambda s: (s.start, s.end, s.side, s.edit))
    structural = {item.edit.index for item in chosen if item.edit.action in ("add_import", "probe")}
    _check_overlaps(patch, source, splices, structural)
    edits = {item.edit.index: item.edit for item in chosen}
    try:
        data, done = source.render(splices)
    except PlanError as error:
        raise _placed(patch, edits[error.details["edit"]], source, None, error) from None
    syntax = [item for item in chosen if item.edit.match is not None]
    if syntax:
        from patchkit.edit.proof import prove

        proofs = [(found, item.edit.action, item.edit.text) for item in syntax for found in item.found]
        only = all(edits[splice.edit].match is not None for splice in splices)
        try:
            prove(text.outline(), proofs, Source(data, path=source.path).text, parse, complete=only)
        except PlanError as error:
            # What is wrong with the whole result is no one edit's: all of them are named.
            numbers = [item.edit.index for item in syntax]
            if len(numbers) > 1:
                error.message += f" (edits {', '.join(map(str, numbers[:-1]))} and {numbers[-1]})"
            error.details["edits"] = numbers
            raise _placed(patch, syntax[0].edit, source, None, error) from None
    return Laid(data, tuple(done), tuple(splice.edit for splice in splices))


def _splices(patch: Patch, text: FileText, chosen: Sequence[Chosen]) -> list[Splice]:
    """The changes of all edits; those of one kind that concern each other (imports, syntax) are made together."""
    source = text.source
    splices: list[Splice] = []
    for item in chosen:
        edit = item.edit
        if edit.action == "add_import" or edit.match is not None:
            continue
        try:
            if edit.action == "probe":
                from patchkit.edit.probe import probe_splices

                assert edit.scope is not None
                splices += probe_splices(text.outline(), edit.scope, patch.name, edit.index, edit.text)
            else:
                for found in item.found:
                    splices += text_splices(source, found.span, edit.action, edit.text, edit.index)
        except PlanError as error:
            raise _placed(patch, edit, source, item.found, error) from None
    imports = [item.edit for item in chosen if item.edit.action == "add_import"]
    if imports:
        from patchkit.edit.imports import import_splices

        statements = [statement for edit in imports for statement in edit.imports]
        try:
            splices += import_splices(text.outline(), statements, text.parse, imports[0].index)
        except PlanError as error:
            # `locate` has read each edit's statements; what fails here is the file, for all of them alike.
            raise _placed(patch, imports[0], source, None, error) from None
    matched = [item for item in chosen if item.edit.match is not None]
    if matched:
        from patchkit.edit.rewrite import rewrite_all

        syntax = [(found, i.edit.action, i.edit.text, i.edit.index) for i in matched for found in i.found]
        edits = {item.edit.index: item.edit for item in chosen}
        try:
            splices += rewrite_all(text.outline(), syntax, parse=text.parse)
        except PlanError as error:
            index = error.details["edits"][-1] if error.code == "overlap" else error.details["edit"]
            raise _placed(patch, edits[index], source, None, error) from None
    return splices


def _placed(patch: Patch, edit: Edit, source: Source, found: Sequence[Found] | None, error: PlanError) -> PlanError:
    """``error`` with the part of the patch file that it is about, and the place in the target's file."""
    at = place(patch, "edit", edit.index, edit.action)
    line = error.details.get("line") or (source.line(found[0].span.start) if found else None)
    message = error.message.removeprefix(f"{source.path}: ")
    here = f" ({source.path}{f', line {line}' if line else ''})"
    return PlanError(
        f"{at.text}: {message}{'' if source.path in message else here}",
        code=error.code,
        hint=error.hint,
        details={"path": source.path, **error.details, **at.details, "line": line},
    )


def _check_overlaps(patch: Patch, source: Source, splices: Sequence[Splice], structural: set[int]) -> None:
    """Refuse splices (sorted) of which two touch the same text or insert at the same point in no given order.

    Raises:
        PlanError: ``overlap``.
    """
    previous: Splice | None = None
    for splice in splices:
        if previous is not None:
            overlapping = splice.start < previous.end
            same_point = splice.start == splice.end == previous.start == previous.end
            ordered = splice.side != previous.side or {splice.edit, previous.edit} <= structural
            if overlapping or (same_point and not ordered):
                from patchkit.edit.together import overlap

                what = "overlap" if overlapping else "insert at the same place"
                at = place(patch, "edit", splice.edit, "file")
                error = overlap(source, previous.edit, splice.edit, splice.start, what)
                error.message = f"{at.text}: {error.message}"
                error.details.update(at.details)
                raise error
        if previous is None or splice.end >= previous.end:
            previous = splice


def check_parses(
    patch: Patch, plans: Iterable[FilePlan], judge: Callable[[Mapping[str, bytes]], Mapping[str, object]]
) -> None:
    """Refuse a plan that makes a Python file that parsed before one that does not parse after.

    Args:
        patch: The patch that the plans belong to.
        plans: Its files.
        judge: The site's grammar: path to bytes in, path to a problem (``line``, ``message``, ``text``) out.

    Raises:
        PlanError: ``syntax``.
    """
    python = [plan for plan in plans if plan.path.endswith(PYTHON)]
    broken = judge({plan.path: plan.after for plan in python if plan.after is not None})
    if not broken:
        return
    broken_before = judge({p.path: p.before for p in python if p.path in broken and p.before is not None})
    for plan in python:
        problem = broken.get(plan.path)
        if problem is None or plan.path in broken_before:
            continue
        line = getattr(problem, "line", None)
        message = getattr(problem, "message", "invalid syntax")
        excerpt = getattr(problem, "text", None)
        edit = _culprit(patch, plan, line)
        if edit is not None:
            at = place(patch, "edit", edit.index, edit.action)
            what = f"{at.text}: {plan.path} would not parse any more"
        else:
            add = next(add for add in patch.adds if add.file == plan.path)
            at = place(patch, "add", add.index, "content")
            what = f"{at.text} of {plan.path} does not parse"
        raise PlanError(
            "\n".join(
                [
                    f"{what}: {message} (line {line})",
                    *([f"    {excerpt.strip()}"] if isinstance(excerpt, str) and excerpt.strip() else []),
                ]
            ),
            code="syntax",
            hint=f"correct {'the replacement text' if edit is not None else '`content`'}; nothing was written",
            details={**at.details, "path": plan.path, "line": line, "reason": message},
        )


def _culprit(patch: Patch, plan: FilePlan, line: int | None) -> Edit | None:
    """The edit whose new text lies nearest to ``line`` of the result, preferring one at or above it."""
    if not plan.splices or plan.after is None:
        return None
    shift, best = 0, (float("inf"), 0)
    counted, number = 0, 1  # the line at a position, counted on from one splice (they are in order) to the next
    for splice, owner in zip(plan.splices, plan.owners, strict=True):
        start = splice.start + shift
        shift += len(splice.new) - len(splice.old)
        first = number = number + plan.after.count(b"\n", counted, start)
        last = number = number + splice.new.count(b"\n")
        counted = start + len(splice.new)
        distance = 0.0 if line is None or first <= line <= last else line - last if line > last else first - line + 0.5
        best = min(best, (distance, owner))
    return next(edit for edit in patch.edits if edit.index == best[1])
