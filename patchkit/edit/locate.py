"""From an edit or a condition to the places it means in one file.

The order of narrowing is ``scope``, ``inside``, ``after``/``before``; then the anchor is counted. Only what needs a
tree makes one: a text anchor without ``scope`` and ``inside`` works on files that Python cannot parse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from patchkit.edit.parse import PARSE_ERRORS
from patchkit.edit.source import Source
from patchkit.edit.spans import Found, Span
from patchkit.edit.text import find_text
from patchkit.errors import AnchorError, PatchFileError, PlanError
from patchkit.model.patch import Condition, Edit, Patch
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.edit.explain import Diagnosis
    from patchkit.edit.outline import Outline
    from patchkit.edit.parse import Parse
    from patchkit.edit.pattern import Pattern


class Place(NamedTuple):
    """A part of a patch file: for people, and as JSON details."""

    text: str
    details: dict[str, Any]


def place(patch: Patch, table: str, index: int, key: str) -> Place:
    """Name a key of a patch file with its line."""
    line = patch.line_of(table, index, key)
    file = patch.path or f"{patch.name}.toml"
    label = f"{file}:{line}" if line is not None else file
    return Place(
        f"{label}: {table} {index}: `{key}`",
        {"patch": patch.name, "patch_file": file, "patch_line": line, "table": table, "index": index, "key": key},
    )


class FileText:
    """One file as source text, with its outline made once, when the first edit asks for it."""

    def __init__(self, source: Source, parse: Parse) -> None:
        self.source = source
        self.parse = parse
        self._outline: Outline | None = None
        self._problem: PlanError | None = None

    def outline(self) -> Outline:
        """Scopes and statements.

        Raises:
            PlanError: ``unparsable``: the file does not parse.
        """
        if self._problem is not None:
            raise self._problem
        if self._outline is None:
            from patchkit.edit.outline import Outline

            try:
                if not self.source.decodes:
                    raise ValueError("its bytes are not valid in its encoding")
                tree = self.parse(self.source.text)
            except PARSE_ERRORS as error:
                reason = f"{error.msg} (line {error.lineno})" if isinstance(error, SyntaxError) else str(error)
                if isinstance(error, RecursionError | MemoryError):
                    reason = "it is nested too deeply"
                self._problem = PlanError(
                    f"{self.source.path}: does not parse: {reason or type(error).__name__}",
                    code="unparsable",
                    hint="use a text edit (`find`) without `scope` and `inside`, with a longer anchor",
                    details={"path": self.source.path, "line": getattr(error, "lineno", None)},
                )
                raise self._problem from None
            self._outline = Outline(self.source, tree)
        return self._outline

    def outline_or_none(self) -> Outline | None:
        """The outline, or None where the file does not parse."""
        try:
            return self.outline()
        except PlanError:
            return None

    def scope_at(self, position: int) -> Callable[[], str]:
        """A function that names the innermost definition around ``position`` ("" at module level or unparsable)."""

        def scope() -> str:
            outline = self.outline_or_none()
            return "" if outline is None else outline.scope_at(position)

        return scope


class Located:
    """Every match of one anchor in one file, and what to do with them.

    ``edit`` is None for a condition's anchor and for a neighbour's, whose ``key`` is ``after`` or ``before``.
    """

    def __init__(
        self,
        text: FileText,
        found: list[Found],
        regions: Sequence[Span],
        anchor: str,
        *,
        patch: Patch,
        pattern: Pattern | None,
        edit: Edit | None = None,
        scope: str | None = None,
        inside: str | None = None,
        key: str | None = None,
    ) -> None:
        self.text = text
        self.found = found
        self.regions = regions
        self.anchor = anchor
        self.scope = scope
        self.inside = inside
        self.pattern = pattern
        self.edit = edit
        self.patch = patch
        self.key = key

    @property
    def count(self) -> int:
        """How often the anchor matches."""
        return len(self.found)

    @property
    def first_line(self) -> int | None:
        """The 1-based line of the first match, None without one."""
        return self.text.source.line(self.found[0].span.start) if self.found else None

    def explain(
        self, expected: str, siblings: Callable[[], Iterable[tuple[str, bytes]]], other_versions: Sequence[str]
    ) -> Diagnosis:
        """Say why the count is not ``expected`` and what would make it so."""
        from patchkit.edit.explain import Diagnosis, Problem, explain_many, explain_none

        problem = Problem(
            source=self.text.source,
            outline=self.text.outline_or_none(),
            anchor=self.anchor,
            kind="find" if self.pattern is None else "match",
            scope=self.scope,
            inside=self.inside,
            regions=self.regions,
            expected=expected,
            pattern=self.pattern,
            parse=self.text.parse,
            key=self.key,
            settable=self._settable(),
        )
        try:
            if self.found:
                return explain_many(problem, [found.span for found in self.found])
            others = ((path, data) for path, data in siblings() if path != self.text.source.path)
            return explain_none(problem, siblings=lambda: others, other_versions=other_versions)
        except PlanError as error:  # "too ambiguous", where a remedy was to be verified on the whole file
            return Diagnosis([error.message], {})

    def _settable(self) -> tuple[str, ...]:
        """The keys of the patch file that a remedy may name: a neighbour's anchor has none, a condition no ``nth``."""
        if self.key is not None:
            return ()
        return ("scope", "inside", "count") if self.edit is None else ("scope", "inside", "count", "nth")


def locate(text: FileText, edit: Edit, patch: Patch) -> Located:
    """Every place in ``text`` that ``edit`` means.

    Raises:
        AnchorError: The ``scope``, ``inside``, ``after`` or ``before`` is not there, or not once.
        PatchFileError: ``pattern``, ``template`` or ``add-import``: wrong whatever the file holds.
        PlanError: The file does not parse and the edit needs a tree.
    """
    locator = _Locator(text, patch, "edit", edit.index)
    regions = locator.regions(edit.scope, edit.inside)
    pattern = None if edit.match is None else locator.pattern(edit.match, "match")
    if pattern is not None:
        locator.check_template(pattern, edit)
    if edit.after is not None:
        limit = locator.neighbour(edit.after, "after", regions, edit.match is not None).end
        regions = [Span(max(span.start, limit), span.end) for span in regions if span.end >= limit]
    if edit.before is not None:
        limit = locator.neighbour(edit.before, "before", regions, edit.match is not None).start
        regions = [Span(span.start, min(span.end, limit)) for span in regions if span.start <= limit]
    if edit.action == "probe":
        found = [Found(span) for span in regions]
    elif edit.action == "add_import":
        locator.check_imports(edit)
        found = []
    else:
        found = locator.search(edit.find, pattern, regions)
    anchor = edit.find if edit.find is not None else edit.match or ""
    return Located(
        text, found, regions, anchor, patch=patch, pattern=pattern, edit=edit, scope=edit.scope, inside=edit.inside
    )


def locate_condition(text: FileText, condition: Condition, patch: Patch) -> Located:
    """Every place in ``text`` where the anchor of ``condition`` stands; a scope that is not there counts as none."""
    locator = _Locator(text, patch, condition.kind, condition.index)
    try:
        regions = locator.regions(condition.scope, condition.inside)
    except AnchorError:
        if condition.at_least > 0 and condition.kind != "upstreamed":
            raise
        regions = []
    pattern = None if condition.match is None else locator.pattern(condition.match, "match")
    found = locator.search(condition.find, pattern, regions)
    anchor = condition.find if condition.find is not None else condition.match or ""
    return Located(
        text, found, regions, anchor, patch=patch, pattern=pattern, scope=condition.scope, inside=condition.inside
    )


class _Locator:
    def __init__(self, text: FileText, patch: Patch, table: str, index: int) -> None:
        self.text = text
        self.patch = patch
        self.table = table
        self.index = index

    def regions(self, scope: str | None, inside: str | None) -> list[Span]:
        whole = [Span(0, len(self.text.source.text))]
        if scope is None and inside is None:
            return whole
        from patchkit.edit.narrow import regions

        if scope is not None:
            outline = self._outline("scope")
            whole = regions(outline, scope, None, self.text.parse)
            if not whole:
                from patchkit.edit.explain import explain_scope

                self._absent("scope", f"no `{scope}`", explain_scope(outline, scope))
        if inside is None:
            return whole
        outline = self._outline("inside")
        try:
            narrowed = regions(outline, scope, inside, self.text.parse)
        except ValueError as error:
            raise self._wrong("inside", str(error), code="pattern") from None
        if not narrowed:
            from patchkit.edit.explain import explain_inside

            self._absent(
                "inside",
                f"no statement `{inside}`" + (f" in {scope}" if scope else ""),
                explain_inside(outline, inside, regions=whole, parse=self.text.parse),
            )
        return narrowed

    def pattern(self, text: str, key: str) -> Pattern:
        from patchkit.edit.pattern import PatternError, compile_pattern

        try:
            return compile_pattern(text, self.text.parse)
        except PatternError as error:
            raise self._wrong(key, str(error), code="pattern") from None

    def check_template(self, pattern: Pattern, edit: Edit) -> None:
        from patchkit.edit.rewrite import check_template

        try:
            check_template(pattern, edit.action, edit.text, self.text.parse)
        except PlanError as error:
            raise self._wrong(edit.action, error.message, code="template", hint=error.hint) from None

    def check_imports(self, edit: Edit) -> None:
        from patchkit.edit.imports import check_import

        for statement in edit.imports:
            try:
                check_import(statement, self.text.parse)
            except PlanError as error:
                raise self._wrong("add_import", error.message, code="add-import", hint=error.hint) from None

    def neighbour(self, anchor: str, key: str, regions: Sequence[Span], syntax: bool) -> Span:
        pattern = self.pattern(anchor, key) if syntax else None
        found = self.search(None if syntax else anchor, pattern, regions)
        if len(found) != 1:
            at = place(self.patch, self.table, self.index, key)
            located = Located(self.text, found, regions, anchor, patch=self.patch, pattern=pattern, key=key)
            diagnosis = located.explain("1", lambda: (), ())
            count = "is not there" if not found else f"matches {len(found)} times"
            raise AnchorError(
                "\n".join(
                    [f"{at.text} {count} in {self.text.source.path}, and must stand there once", *diagnosis.lines]
                ),
                code="anchor-missing" if not found else "anchor-count",
                hint=f"correct `{key}` in the patch file; nothing was written",
                details={**diagnosis.data, **at.details, "path": self.text.source.path, "found": len(found)},
            )
        return found[0].span

    def search(self, find: str | None, pattern: Pattern | None, regions: Sequence[Span]) -> list[Found]:
        if find is not None:
            return [Found(span) for span in find_text(self.text.source, find, regions)]
        assert pattern is not None
        from patchkit.edit.matcher import find_pattern

        try:
            return find_pattern(self._outline("match"), pattern, regions)
        except RecursionError:
            raise PlanError(
                f"{self.text.source.path}: is nested too deeply for a syntax edit",
                code="unparsable",
                hint="use a text edit (`find`)",
                details={"path": self.text.source.path},
            ) from None

    def _outline(self, key: str) -> Outline:
        try:
            return self.text.outline()
        except PlanError as error:
            at = place(self.patch, self.table, self.index, key)
            raise PlanError(
                f"{at.text} needs a parse, but {error.message}",
                code=error.code,
                hint=error.hint,
                details={**error.details, **at.details},
            ) from None

    def _wrong(self, key: str, message: str, *, code: str, hint: str | None = None) -> PatchFileError:
        at = place(self.patch, self.table, self.index, key)
        return PatchFileError(
            f"{at.text}: {message}",
            code=code,
            hint=hint or "correct the patch file: a pattern is Python with $X and $$$XS in it",
            details=at.details,
        )

    def _absent(self, key: str, what: str, diagnosis: Diagnosis) -> None:
        at = place(self.patch, self.table, self.index, key)
        raise AnchorError(
            "\n".join([f"{at.text}: there is {what} in {self.text.source.path}", *diagnosis.lines]),
            code="scope-missing" if key == "scope" else "inside-missing",
            hint=f"correct `{key}` in the patch file; nothing was written",
            details={**diagnosis.data, **at.details, "path": self.text.source.path, "line": None, "found": 0},
        )
