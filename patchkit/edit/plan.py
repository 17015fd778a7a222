"""Planning: one patch, laid on the bytes of a distribution's files. Pure: bytes in, bytes out.

All edits of a patch are located on the file as it stood before that patch, turned into splices, checked against
each other and laid on together; so their order does not matter and none sees another's result. Where something does
not fit, nothing is returned but an error that says where and what would fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from patchkit.edit.lay import Chosen, lay
from patchkit.edit.locate import FileText, locate, locate_condition, place
from patchkit.edit.source import ByteSplice, Source
from patchkit.edit.spans import Span
from patchkit.errors import AnchorError, ConditionError, GuardError, PlanError
from patchkit.model.patch import Action, Condition, Edit, Patch, Remove
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    import ast


class Grammar(Protocol):
    """The grammar of the site's Python; :mod:`patchkit.site.grammar` implements it."""

    def parse(self, text: str) -> ast.Module:
        """Parse, raising what ``ast.parse`` raises."""
        ...


class Files(Protocol):
    """The distribution that a patch is planned on."""

    @property
    def version(self) -> str:
        """The installed version, as its metadata spell it."""
        ...

    def read(self, path: str, *, wanted_by: Callable[[], str]) -> bytes:
        """The bytes of one of the distribution's own files as they stand before this patch.

        ``wanted_by`` names the part of the patch that wants it, for messages.

        Raises:
            PlanError: ``not-in-distribution``.
            SiteError: The file cannot be read, or is neither pristine nor ours.
        """
        ...

    def matches(self, specifier: str) -> bool:
        """Whether the installed version satisfies the PEP 440 ``specifier``."""
        ...

    def siblings(self) -> Iterable[tuple[str, bytes]]:
        """The distribution's other Python files, for an error's "it is over there"."""
        ...


class MatchReport(NamedTuple):
    """Where an edit matched: 1-based line and column; the scope is worked out when asked for."""

    line: int
    column: int
    scope: Callable[[], str]


class EditReport(NamedTuple):
    """One edit's matches in one file."""

    index: int  # type: ignore[assignment]  # hides tuple.index
    action: Action
    matches: tuple[MatchReport, ...]


class FilePlan(NamedTuple):
    """What one patch does to one file: ``before`` is None for a file it adds, ``after`` for one it takes away.

    ``owners`` holds, for each splice, the index of the edit that it comes from.
    """

    path: str
    before: bytes | None
    after: bytes | None
    splices: tuple[ByteSplice, ...]
    owners: tuple[int, ...]
    edits: tuple[EditReport, ...]


class PatchPlan(NamedTuple):
    """What one patch does."""

    patch: Patch
    files: tuple[FilePlan, ...] = ()


class _FileWork:
    def __init__(self, text: FileText) -> None:
        self.text = text
        self.chosen: list[Chosen] = []
        self.reports: list[EditReport] = []


def plan_patch(patch: Patch, files: Files, grammar: Grammar) -> PatchPlan:
    """Lay ``patch`` on ``files``; whether the release has the change already, :func:`upstreamed_by` tells.

    Raises:
        GuardError: ``versions``: no edit is meant for the installed version.
        ConditionError: A pre- or postcondition does not hold.
        AnchorError: An anchor matches another number of times than its ``count``.
        PlanError: A file is not the distribution's, edits overlap, a text cannot be encoded, a template is wrong;
            ``removed``: a file is taken away and edited or added as well.
    """
    edits = [edit for edit in patch.edits if edit.versions is None or files.matches(edit.versions)]
    adds = [add for add in patch.adds if add.versions is None or files.matches(add.versions)]
    removes = [remove for remove in patch.removes if remove.versions is None or files.matches(remove.versions)]
    if not edits and not adds and not removes:
        given = [edit.versions for edit in patch.edits]
        given += [part.versions for parts in (patch.adds, patch.removes) for part in parts]
        known = sorted({versions for versions in given if versions})
        raise GuardError(
            f"{patch.name}: has no edit for version {files.version}; it has edits for {' and '.join(known)}",
            code="versions",
            hint=patch.target.otherwise or f"install a version that it knows, or add edits for {files.version} to it",
            details={"patch": patch.name, "version": files.version, "known": known},
        )
    works: dict[str, _FileWork] = {}

    def work(path: str, table: str, index: int) -> _FileWork:
        if path not in works:
            data = files.read(path, wanted_by=lambda: where(patch, table, index, "file"))
            works[path] = _FileWork(FileText(Source(data, path=path), grammar.parse))
        return works[path]

    for condition in patch.preconditions:
        assert condition.file is not None
        if _applies(condition, files):
            _require(patch, condition, work(condition.file, condition.kind, condition.index).text, files)
    for edit in edits:
        for path in edit.files:
            _plan_edit(patch, edit, work(path, "edit", edit.index), files)
    plans = []
    for path, unit in works.items():
        if unit.reports:
            laid = lay(patch, unit.text, unit.chosen, grammar.parse)
            before = unit.text.source.data
            plans.append(FilePlan(path, before, laid.data, laid.splices, laid.owners, tuple(unit.reports)))
    plans += [FilePlan(add.file, None, add.content.encode(), (), (), ()) for add in adds]
    changed = {plan.path for plan in plans}
    for remove in removes:
        for path in remove.files:
            if path in changed:
                at = place(patch, "remove", remove.index, "file")
                raise PlanError(
                    f"{at.text}: the patch changes {path} as well, in version {files.version}",
                    code="removed",
                    hint="give the two `versions` that do not overlap; nothing was written",
                    details={**at.details, "path": path},
                )
            before = _to_remove(patch, remove, path, files)
            plans.append(FilePlan(path, before, None, (), (), ()))
            changed.add(path)
    planned = {plan.path: plan.after or b"" for plan in plans}  # in one that is gone, nothing is found
    for condition in patch.postconditions:
        assert condition.file is not None
        if _applies(condition, files):
            data = planned.get(condition.file)
            if data is None:
                data = files.read(condition.file, wanted_by=_of(patch, condition))
            _require(patch, condition, FileText(Source(data, path=condition.file), grammar.parse), files)
    return PatchPlan(patch, tuple(plans))


def upstreamed_by(patch: Patch, files: Files, grammar: Grammar) -> Condition | None:
    """The first ``[[upstreamed]]`` that holds for the installed release, read before any edit; None if none does."""
    for condition in patch.upstreamed:
        if condition.versions is not None and not files.matches(condition.versions):
            continue
        if condition.file is None:
            return condition
        try:
            data = files.read(condition.file, wanted_by=_of(patch, condition))
        except PlanError:
            continue
        text = FileText(Source(data, path=condition.file), grammar.parse)
        if _holds(condition, locate_condition(text, condition, patch).count):
            return condition
    return None


def where(patch: Patch, table: str, index: int, key: str) -> str:
    """``patches/x.toml:12: edit 2: `find```, the beginning of every message about a part of a patch."""
    return place(patch, table, index, key).text


def _of(patch: Patch, condition: Condition) -> Callable[[], str]:
    return lambda: where(patch, condition.kind, condition.index, "file")


def _to_remove(patch: Patch, remove: Remove, path: str, files: Files) -> bytes:
    """What a file holds that is to be taken away; where the release has none, no other is proposed in its place."""
    try:
        return files.read(path, wanted_by=_removal(patch, remove))
    except PlanError as error:
        if error.code == "not-in-distribution" and not error.details.get("owners"):
            error.hint = (
                "look at the path; or, where only this release has no such file, there is nothing to take away from "
                f"it: give the [[remove]] `versions` that leave {files.version} out"
            )
        raise


def _removal(patch: Patch, remove: Remove) -> Callable[[], str]:
    return lambda: where(patch, "remove", remove.index, "file")


def _applies(condition: Condition, files: Files) -> bool:
    return condition.versions is None or files.matches(condition.versions)


def _holds(condition: Condition, found: int) -> bool:
    return found >= condition.at_least and (condition.at_most is None or found <= condition.at_most)


def expected_count(at_least: int, at_most: int | None) -> str:
    """``1``, ``0`` or ``2+``, as the patch file writes it."""
    return f"{at_least}+" if at_most is None else str(at_least)


def _require(patch: Patch, condition: Condition, text: FileText, files: Files) -> None:
    located = locate_condition(text, condition, patch)
    if _holds(condition, located.count):
        return
    expected = expected_count(condition.at_least, condition.at_most)
    at = place(patch, condition.kind, condition.index, condition.anchor_key)
    diagnosis = located.explain(expected, files.siblings, ())
    on = "on the planned bytes" if condition.kind == "postcondition" else "before anything is written"
    raise ConditionError(
        "\n".join(
            [
                f"{at.text} matches {_times(located.count)} in {condition.file}, expected {expected} ({on})",
                *diagnosis.lines,
            ]
        ),
        code=condition.kind,
        hint="the file is not what this patch was written for; nothing was written",
        details={
            **diagnosis.data,
            **at.details,
            "path": condition.file,
            "line": located.first_line,
            "found": located.count,
            "expected": expected,
        },
    )


def _plan_edit(patch: Patch, edit: Edit, work: _FileWork, files: Files) -> None:
    located = locate(work.text, edit, patch)
    if edit.action == "probe" and located.count != edit.count:
        raise _definitions(patch, edit, work, [found.span for found in located.found])
    if edit.action not in ("add_import", "probe") and located.count != edit.count:
        at = place(patch, "edit", edit.index, edit.anchor_key)
        others = sorted({e.versions for e in patch.edits if e.versions and e.versions != edit.versions})
        diagnosis = located.explain(str(edit.count), files.siblings, others)
        raise AnchorError(
            "\n".join(
                [
                    f"{at.text} matches {_times(located.count)} in {work.text.source.path}, expected {edit.count}",
                    *diagnosis.lines,
                ]
            ),
            code="anchor-missing" if located.count == 0 else "anchor-count",
            hint="correct the anchor in the patch file; nothing was written",
            details={
                **diagnosis.data,
                **at.details,
                "path": work.text.source.path,
                "line": located.first_line,
                "found": located.count,
                "expected": edit.count,
                "version": files.version,
            },
        )
    source = work.text.source
    chosen = tuple(located.found) if edit.nth is None else (located.found[edit.nth - 1],)
    work.chosen.append(Chosen(edit, chosen))
    matches = [
        MatchReport(source.line(f.span.start), source.column(f.span.start), work.text.scope_at(f.span.start))
        for f in chosen
    ]
    work.reports.append(EditReport(edit.index, edit.action, tuple(matches)))


def _definitions(patch: Patch, edit: Edit, work: _FileWork, spans: Sequence[Span]) -> AnchorError:
    """A probe's ``scope`` names another number of definitions than its ``count``."""
    at = place(patch, "edit", edit.index, "scope")
    source = work.text.source
    lines = [source.line(span.start) for span in spans]
    return AnchorError(
        f"{at.text}: {len(spans)} definitions are called {edit.scope} in {source.path} "
        f"(lines {', '.join(map(str, lines))}), expected {edit.count}",
        code="anchor-count",
        hint=f"to report from each of them: count = {len(spans)}",
        details={**at.details, "path": source.path, "line": lines[0], "found": len(spans), "expected": edit.count},
    )


def _times(number: int) -> str:
    return {0: "nowhere", 1: "once", 2: "twice"}.get(number, f"{number} times")
