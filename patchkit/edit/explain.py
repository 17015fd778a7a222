"""Why an anchor does not match as often as the patch says, and what would make it: half of the product's worth.

Pure, and called only on failure. Nothing is called a remedy that was not counted first with the functions the planner
matches with. Lines are for people and safe for a terminal: what is quoted from a file is escaped. TOML in them begins
in column 1 and may go over several lines, so the lines must be printed without an indentation of their own.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from patchkit.edit import forms, nearmiss, uniqueness
from patchkit.edit.remedies import PLACES as PLACE_LIMIT
from patchkit.edit.remedies import REMEDY_LIMIT, Remedies
from patchkit.edit.source import Source
from patchkit.edit.spans import Span
from patchkit.edit.text import find_text
from patchkit.edit.uniqueness import accepts, hits, inside_any, quote, regions_of
from patchkit.tuples import NamedTuple
from patchkit.visible import visible

if TYPE_CHECKING:
    from patchkit.edit.outline import Outline
    from patchkit.edit.parse import Parse
    from patchkit.edit.pattern import Pattern

NAMED_LIMIT = 200  # beyond the places shown with context, these are named by line and scope
OUTSIDE_LIMIT = 5
TOML_LINES = 40
"""A longer text is not printed as a remedy, only named; the data holds it."""
SEARCH_BYTES = 64_000_000
"""How much of other files is searched."""


class Problem(NamedTuple):
    """An anchor that failed in one file.

    ``outline`` is None where the file does not parse. ``regions`` is where the anchor was searched, after ``scope``,
    ``inside``, ``after`` and ``before``. ``expected`` is ``"1"``, ``"3"``, ``"2+"`` or ``"0"``. ``key`` is the TOML
    key of the anchor where it is not ``kind``; ``settable`` are the other keys that a remedy may name.
    """

    source: Source
    outline: Outline | None
    anchor: str
    kind: Literal["find", "match"]
    scope: str | None
    inside: str | None
    regions: Sequence[Span]
    expected: str
    pattern: Pattern | None
    parse: Parse
    key: str | None = None
    settable: tuple[str, ...] = ("scope", "inside", "count", "nth")


class Diagnosis(NamedTuple):
    """``lines`` for people, and the same as JSON values.

    ``data`` always has ``found``, ``expected``, ``places``, ``outside``, ``candidates``, ``elsewhere``, ``forms``,
    ``literals`` and ``suggestions``. Its ``text`` and ``diff`` are escaped for display; every ``find`` and ``match`` is
    exact.
    """

    lines: list[str]
    data: dict[str, Any]


class Report:
    """A diagnosis in the making."""

    def __init__(self, problem: Problem, found: int) -> None:
        self.problem = problem
        self.lines: list[str] = []
        self.data: dict[str, Any] = {"found": found, "expected": problem.expected}
        for key in ("places", "outside", "candidates", "elsewhere", "forms", "literals", "suggestions"):
            self.data[key] = []

    def where(self, position: int) -> str:
        """`` in A.f``, or nothing at module level."""
        name = self.scope(position)
        return f" in {visible(name)}" if name else ""

    def scope(self, position: int) -> str:
        """The qualified name around ``position``, "" at module level."""
        return self.problem.outline.scope_at(position) if self.problem.outline is not None else ""

    def place(self, span: Span) -> dict[str, Any]:
        """A match as JSON values."""
        source = self.problem.source
        line, column = source.line(span.start), source.column(span.start)
        text = quote(source.line_text(line), column).strip()
        return {"line": line, "column": column, "scope": self.scope(span.start), "text": text}

    def suggest(self, **remedy: Any) -> None:
        """Note a remedy, as JSON values, once."""
        if remedy not in self.data["suggestions"]:
            self.data["suggestions"].append(remedy)

    def toml(self, key: str, text: str) -> None:
        """Print ``key = text`` from column 1, where TOML can hold it and it is not too long."""
        lines = uniqueness.toml_assignment(key, text)
        if lines is None:
            self.lines.append("  (TOML cannot hold it: it has bytes that do not decode; choose another anchor)")
        elif len(lines) > TOML_LINES or sum(map(len, lines)) > uniqueness.CONTEXT_CHARACTERS:
            self.lines.append(f"  ({len(lines)} lines of {len(text)} characters: see `--json`)")
        else:
            self.lines += lines

    def done(self) -> Diagnosis:
        """The diagnosis."""
        return Diagnosis(self.lines, self.data)


# -- no match ----------------------------------------------------------------------------------------------------------


def explain_none(
    problem: Problem,
    *,
    siblings: Callable[[], Iterable[tuple[str, bytes]]],
    other_versions: Sequence[str] = (),
    budget: int = SEARCH_BYTES,
) -> Diagnosis:
    """Say where an anchor without a match stands instead, or what comes near.

    Args:
        problem: The anchor and the file.
        siblings: Yields path and bytes of the distribution's other files; read lazily.
        other_versions: Version specifiers of the target for which the patch has other edits.
        budget: How many bytes of ``siblings`` to search.
    """
    report = Report(problem, 0)
    covered, close = _same_elsewhere_in_file(report, ())
    places, complete = nearmiss.elsewhere(problem, siblings(), budget)
    if report.lines and not (places and places[0].whole):
        places = []
    for place in places:
        report.data["elsewhere"].append({"path": place.path, "line": place.line, "whole": place.whole})
    if places:
        what = "the anchor stands in" if places[0].whole else "the anchor's longest line stands in"
        named = ", ".join(f"{visible(place.path)}:{place.line}" for place in places)
        report.lines.append(f"{what} {'another file' if len(places) == 1 else 'other files'}: {named}")
        if places[0].whole and "scope" in problem.settable:
            report.lines.append("  if the code has moved, change `file` (and `scope`)")
    if not complete:
        report.lines.append(f"only the first {budget // 1_000_000} MB of the other files were searched")
    _in_literals(report)
    if not close:
        _similar(report, covered)
    if other_versions:
        report.lines.append(f"the patch has other edits for: {', '.join(map(visible, other_versions))}")
        report.data["other_versions"] = list(other_versions)
    return report.done()


def _same_elsewhere_in_file(report: Report, found: Sequence[Span]) -> tuple[list[Span], bool]:
    """Where else the anchor is, where it is in another form, where in other formatting.

    Returns the places that were spoken of, and whether one lies where the anchor was searched: then that says it all.
    """
    same = set(found)
    outside = [span for span in uniqueness.everywhere(report.problem) if span not in same]
    outside = [span for span in outside if not inside_any(report.problem.regions, span)]
    for span in outside[:OUTSIDE_LIMIT]:
        _outside(report, span)
    if len(outside) > OUTSIDE_LIMIT:
        report.lines.append(f"and {len(outside) - OUTSIDE_LIMIT} more outside")
    others = forms.forms(report.problem)
    if outside:
        others = [form for form in others if inside_any(report.problem.regions, form.span)]
    for form in others:
        _form(report, form)
    covered = [*found, *outside, *(form.span for form in others)]
    for form in others:
        covered += find_text(report.problem.source, form.text, [uniqueness.whole(report.problem)])
    reformatted = _reformatted(report, covered)
    return covered, reformatted or any(inside_any(report.problem.regions, form.span) for form in others)


def _outside(report: Report, span: Span) -> None:
    problem, source = report.problem, report.problem.source
    report.data["outside"].append(report.place(span))
    at = f"the anchor stands at line {source.line(span.start)}{report.where(span.start)}"
    scoped = regions_of(problem, problem.scope, None)
    if problem.scope is not None and not inside_any(scoped, span):
        if any(region.start < span.end and span.start < region.end for region in scoped):
            report.lines.append(f"{at}, but only partly within the scope {visible(problem.scope)}")
        else:
            report.lines.append(f"{at}, outside the scope {visible(problem.scope)}")
        _other_scope(report, span)
    elif problem.inside is not None and not inside_any(regions_of(problem, problem.scope, problem.inside), span):
        report.lines.append(f"{at}, outside `{visible(problem.inside)}`")
        _other_inside(report, span)
    elif problem.regions:
        first = source.line(min(region.start for region in problem.regions))
        last = source.line(max(max(region.start, region.end - 1) for region in problem.regions))
        line = source.line(span.start)
        side = "above" if line < first else "below" if line > last else "outside of"
        report.lines.append(f"{at}, {side} lines {first}-{last}, which is what `after` and `before` leave to search")
    else:
        report.lines.append(f"{at}, but `after` and `before` leave nothing to search")


def _fits(problem: Problem, scope: str | None, inside: str | None) -> bool:
    return accepts(problem.expected, len(hits(problem, regions_of(problem, scope, inside))))


def _other_scope(report: Report, span: Span) -> None:
    problem = report.problem
    if "scope" not in problem.settable or uniqueness.has_neighbours(problem):
        return
    names = [*uniqueness.scope_names(problem.outline, span.start)]
    for name in reversed(names):
        for inside in dict.fromkeys((problem.inside, None)):
            regions = regions_of(problem, name, inside)
            if inside_any(regions, span) and _fits(problem, name, inside):
                dropped = " and leave out `inside`" if inside != problem.inside else ""
                report.lines.append(f"  set scope = {uniqueness.toml_string(name)}{dropped}")
                report.suggest(scope=name, **({"inside": None} if dropped else {}))
                return
    if inside_any(regions_of(problem, None, problem.inside), span) and _fits(problem, None, problem.inside):
        report.lines.append("  leave out `scope`")
        report.suggest(scope=None)


def _other_inside(report: Report, span: Span) -> None:
    problem = report.problem
    if "inside" not in problem.settable or uniqueness.has_neighbours(problem):
        return
    if problem.outline is not None:
        for header in uniqueness.enclosing(problem.outline, span):
            regions = regions_of(problem, problem.scope, header.text)
            if inside_any(regions, span) and _fits(problem, problem.scope, header.text):
                report.lines.append(f"  set inside = {uniqueness.toml_string(header.text)}")
                report.suggest(inside=header.text)
                return
    if _fits(problem, problem.scope, None):
        report.lines.append("  leave out `inside`")
        report.suggest(inside=None)


_FORM_REASONS = {
    "escapes": "the anchor spells out \\n, \\t or a backslash, which TOML does not read in '...' and '''...'''",
    "read escapes": "the file spells out \\n or \\t where the anchor has a line break or a tab; keep it by '...'",
    "line breaks": "the anchor has \\r in it; anchors are written with \\n",
    "composed": "the same text with composed Unicode characters (NFC)",
    "decomposed": "the same text with decomposed Unicode characters (NFD)",
}


def _form(report: Report, form: forms.Form) -> None:
    problem, source = report.problem, report.problem.source
    line = source.line(form.span.start)
    within = inside_any(problem.regions, form.span)
    entry: dict[str, Any] = {"kind": form.kind, "line": line, "find": form.text}
    remedy: dict[str, Any] = {"find": form.text}
    regions: Sequence[Span] = problem.regions
    if not within:
        scope = report.scope(form.span.start) or None
        regions = regions_of(problem, scope, None)
        entry["scope"] = remedy["scope"] = scope
        if problem.inside is not None:
            remedy["inside"] = None
    count = len(find_text(source, form.text, regions))
    report.data["forms"].append(entry)
    head = f"line {line}{report.where(form.span.start)}{'' if within else ' (outside of where it is searched)'}: "
    if form.kind in _FORM_REASONS:
        head += _FORM_REASONS[form.kind]
    elif form.kind == "line start":
        before = quote(source.text[form.span.start : source.text.index(problem.anchor, form.span.start)]).strip()
        head += f"the anchor ends in a line break, so it must begin where a line does; here `{before}` is before it"
    else:
        head += f"the same text but for {form.kind}{forms.detail(form.kind, problem.anchor, form.text)}"
    possible = within or ("scope" in problem.settable and not uniqueness.has_neighbours(problem))
    if possible and accepts(problem.expected, count):
        report.lines.append(f"{head}; write:")
        report.suggest(**remedy)
    else:
        report.lines.append(f"{head}; it stands there{_unless(problem, count)} as:")
    if not within and remedy["scope"] != problem.scope:
        name = remedy["scope"]
        report.lines.append(f"scope = {uniqueness.toml_string(name)}" if name else "# and no `scope`")
    if not within and problem.inside is not None:
        report.lines.append("# and no `inside`")
    report.toml(problem.key or problem.kind, form.text)


def _times(count: int) -> str:
    return {0: "nowhere", 1: "once", 2: "twice"}.get(count, f"{count} times")


def _reformatted(report: Report, covered: Sequence[Span]) -> bool:
    problem, source = report.problem, report.problem.source
    pattern, spans = forms.reformatted(problem)
    fresh = [span for span in spans if not any(span.start < c.end and c.start < span.end for c in covered)]
    if not fresh or len(fresh) > REMEDY_LIMIT:
        return False
    key = problem.key or "match"
    for span in fresh:
        exact = forms.source_slice(source, span)
        text = source.text[exact.start : exact.end]
        report.data["forms"].append({"kind": "formatting", "line": source.line(span.start), "find": text})
        head = f"line {source.line(span.start)}{report.where(span.start)}: the same code in other formatting"
        count = len(find_text(source, text, problem.regions))
        report.lines.append(f"{head}; it stands there{_unless(problem, count)} as:")
        report.toml(problem.key or "find", text)
        if accepts(problem.expected, count):
            report.suggest(find=text)
    if accepts(problem.expected, len(spans)) and key == "match":
        report.lines.append("or, for any formatting, as a syntax edit instead of `find`:")
        report.toml("match", pattern)
        report.suggest(match=pattern)
    return True


def _unless(problem: Problem, count: int) -> str:
    return "" if accepts(problem.expected, count) else f" (matches {_times(count)}, expected {problem.expected})"


def _in_literals(report: Report) -> None:
    """Where a syntax pattern stands as text only, and how to reach it there."""
    problem, source = report.problem, report.problem.source
    for kind, span in forms.in_literals(problem):
        line = source.line(span.start)
        within = inside_any(problem.regions, span)
        report.data["literals"].append({"kind": kind, "line": line, "scope": report.scope(span.start)})
        outside = "" if within else ", outside of where it is searched"
        at = f"it stands at line {line}{report.where(span.start)}{outside}, in a {kind}"
        report.lines.append(f"{at}, where a syntax pattern does not look")
        text = source.text[span.start : span.end]
        if (
            within
            and problem.key in (None, "match")
            and accepts(problem.expected, len(find_text(source, text, problem.regions)))
        ):
            report.lines.append("  to edit it there, write a text edit, without `match`:")
            report.toml("find", text)
            report.suggest(find=text)


def _similar(report: Report, covered: Sequence[Span]) -> None:
    problem, source = report.problem, report.problem.source
    candidates = nearmiss.nearest(problem, exclude=covered)
    if report.data["outside"]:
        candidates = [candidate for candidate in candidates if candidate.within]
    elif not candidates and not report.lines:
        report.lines.append("nothing in the file is like the anchor")
    for candidate in candidates:
        start = source.starts[candidate.first - 1]
        end = start + len(source.line_text(candidate.first))
        scope = report.scope(max(start, end - 1))
        percent = min(99, int(candidate.similarity * 100))
        report.data["candidates"].append(
            {"line": candidate.first, "similarity": percent, "scope": scope, "diff": candidate.diff}
        )
        lines = (
            f"line {candidate.first}"
            if candidate.first == candidate.last
            else (f"lines {candidate.first}-{candidate.last}")
        )
        outside = "" if candidate.within else ", outside of where it is searched"
        name = f" in {visible(scope)}" if scope else ""
        report.lines.append(f"{percent} % alike: {lines}{name}{outside} (- the anchor, + the file)")
        report.lines += [f"  {line}" for line in candidate.diff]


# -- too many, or too few ----------------------------------------------------------------------------------------------


def explain_many(problem: Problem, found: Sequence[Span]) -> Diagnosis:
    """Show each match with what makes it the only one; where more are expected, also what comes near."""
    report = Report(problem, len(found))
    uniqueness.know(problem, found)
    source = problem.source
    report.data["places"] += [report.place(span) for span in found[:NAMED_LIMIT]]
    on_line = Counter(source.line(span.start) for span in found)
    names = [
        f"line {source.line(span.start)}"
        + (f", column {source.column(span.start)}" if on_line[source.line(span.start)] > 1 else "")
        for span in found[:NAMED_LIMIT]
    ]
    for title, span in zip(names, found[:PLACE_LIMIT], strict=False):
        report.lines.append(f"{title}{report.where(span.start)}:")
        report.lines += uniqueness.excerpt(source, span)
    for title, span in list(zip(names, found, strict=False))[PLACE_LIMIT:]:
        report.lines.append(f"{title}{report.where(span.start)}")
    if len(found) > NAMED_LIMIT:
        report.lines.append(f"and {len(found) - NAMED_LIMIT} more")
    least = int(problem.expected.rstrip("+"))
    if len(found) < least:
        covered, close = _same_elsewhere_in_file(report, found)
        if not close:
            _similar(report, covered)
    elif least == 1:
        remedies = Remedies(report, found)
        for number, title in enumerate(names[:PLACE_LIMIT], 1):
            remedies.make_unique(number, f"to mean only {title}: ")
    elif least > 1 and "scope" in problem.settable:
        name = uniqueness.counting_scope(problem, found[:PLACE_LIMIT])
        if name is not None:
            report.lines.append(f"to mean {least} of them: scope = {uniqueness.toml_string(name)}")
            report.suggest(scope=name)
    if least > 0 and "count" in problem.settable:
        every = {1: "this one only", 2: "both"}.get(len(found), f"all {len(found)}")
        report.lines.append(f"to mean {every}: count = {len(found)}")
        report.suggest(count=len(found))
    return report.done()


# -- a scope or a header that is not there -----------------------------------------------------------------------------


def explain_scope(outline: Outline, scope: str) -> Diagnosis:
    """No def or class has that qualified name: the nearest names, and where its last component stands elsewhere."""
    names = outline.qualnames()
    parts = scope.split(".")
    ordered = nearmiss.near_scopes(outline, scope)
    lines: list[str] = []

    def line_of(name: str) -> int:
        return outline.source.line(outline.scopes(name)[0].start)

    if ordered:
        first, *rest = ordered
        lines.append(f"did you mean {uniqueness.toml_string(first)} (line {line_of(first)})?")
        if rest:
            lines.append("or: " + ", ".join(f"{visible(name)} (line {line_of(name)})" for name in rest))
    same_last = [name for name in names if name.rpartition(".")[2] == parts[-1]]
    if len(same_last) > len(ordered):
        lines.append(f"{len(same_last)} definitions here are named {visible(parts[-1])}")
    if not same_last:
        bound = nearmiss.binding_of(outline, parts[-1])
        if bound is not None:
            lines.append(bound)
        holder = next((".".join(parts[:n]) for n in range(len(parts) - 1, 0, -1) if ".".join(parts[:n]) in names), None)
        members = [name.rpartition(".")[2] for name in names if holder and name.rpartition(".")[0] == holder]
        if holder is not None and members and not ordered:
            lines.append(f"{visible(holder)} (line {line_of(holder)}) defines: {_listed(members)}")
    if not names:
        lines.append("the file has no def and no class: leave out `scope`")
    elif not lines:
        lines.append(f"the file defines: {_listed(names)}")
    data = {"scope": scope, "suggestions": [{"scope": name, "line": line_of(name)} for name in ordered]}
    return Diagnosis(lines, data)


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - PLACE_LIMIT} more" if len(names) > PLACE_LIMIT else ""
    return ", ".join(map(visible, names[:PLACE_LIMIT])) + more


def explain_inside(
    outline: Outline, header: str, *, regions: Sequence[Span] | None = None, parse: Parse = ast.parse
) -> Diagnosis:
    """No block has that header (within ``regions``): the same header outside, and the nearest ones within."""
    source = outline.source
    regions = [Span(0, len(source.text))] if regions is None else regions
    lines: list[str] = []
    try:
        outside = outline.blocks(header, parse)
    except ValueError:
        outside = []
    for block in outside[:REMEDY_LIMIT]:
        scope = outline.scope_at(block.start)
        lines.append(f"it stands at line {source.line(block.start)}{f' in {visible(scope)}' if scope else ''}")
    near = nearmiss.near_headers(outline, header, regions, parse)
    if near:
        lines.append("the nearest headers:")
        lines += [f"  line {h.line}: inside = {uniqueness.toml_string(h.text)}" for h in near]
    elif not outside:
        every = [h for h in uniqueness.headers(outline) if inside_any(regions, h.block) and not h.definition]
        shown = _listed([f"{quote(h.text)} (line {h.line})" for h in every])
        lines.append(f"no header is like it; there are: {shown}" if every else "there is no block with a header there")
    data = {"inside": header, "suggestions": [{"inside": h.text, "line": h.line} for h in near]}
    return Diagnosis(lines, data)
