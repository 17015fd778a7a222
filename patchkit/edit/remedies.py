"""What makes each of the places of an ambiguous anchor the only one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from patchkit.edit import uniqueness
from patchkit.edit.spans import Span
from patchkit.edit.text import find_text

if TYPE_CHECKING:
    from patchkit.edit.explain import Report

PLACES = 8
"""Places that are shown, and get a remedy."""
REMEDY_LIMIT = 3
REMEDY_LINES = 40
"""All remedies together stay below it, but for the longer anchors of the first :data:`REMEDY_LIMIT` places."""


class Remedies:
    """What makes each of many places the only one; no two get the same text."""

    def __init__(self, report: Report, found: Sequence[Span]) -> None:
        """``found`` are all the places."""
        self.report = report
        self.found = found
        self.begin = len(report.lines)
        self.texts: set[str] = set()

    def make_unique(self, number: int, head: str) -> None:
        """Report what makes the place of that number (from 1) the only one, behind ``head``."""
        report, problem, span = self.report, self.report.problem, self.found[number - 1]
        if "scope" in problem.settable:
            scope = uniqueness.unique_scope(problem, span)
            if scope is not None:
                report.lines.append(f"{head}scope = {uniqueness.toml_string(scope)}")
                report.suggest(place=number, scope=scope)
                return
        if problem.kind == "find":
            if self._longer(number, head, span):
                return
        elif "inside" in problem.settable:
            header = uniqueness.unique_inside(problem, span)
            if header is not None:
                report.lines.append(f"{head}inside = {uniqueness.toml_string(header)}")
                report.suggest(place=number, inside=header)
                return
        if "nth" in problem.settable:
            report.lines.append(f"{head}count = {len(self.found)} and nth = {number}")
            report.suggest(place=number, count=len(self.found), nth=number)

    def _longer(self, number: int, head: str, span: Span) -> bool:
        """Propose a longer anchor, if there is one and it is no other place's as well."""
        report, problem = self.report, self.report.problem
        line = problem.source.line(span.start)
        beside = [*self.found[max(number - 2, 0) : number - 1], *self.found[number : number + 1]]
        if any(problem.source.line(other.start) == line for other in beside):
            text = None if "nth" in problem.settable else self._more_of_line(span)
            more = "more of its line"
        else:
            context = uniqueness.unique_context(problem, span)
            text = None if context is None else context.text
            parts = (_lines(context.above, "above"), _lines(context.below, "below")) if context is not None else ()
            more = " and ".join(part for part in parts if part) or "its whole line"
        if text is None or text in self.texts:
            return False
        # One line each is left for the places to come.
        size = text.count("\n") + 3 + PLACES - number
        if number > REMEDY_LIMIT and len(report.lines) - self.begin + size >= REMEDY_LINES:
            return False
        self.texts.add(text)
        report.lines.append(f"{head}anchor it with {more} (and repeat in `replace` what is to stay):")
        report.toml(problem.key or "find", text)
        report.suggest(place=number, find=text)
        return True

    def _more_of_line(self, span: Span) -> str | None:
        """The anchor with the fewest characters around it on its line that make it the only one there."""
        source = self.report.problem.source
        first, last = source.line_start(span.start), source.line_end(max(span.start, span.end - 1))
        for more in range(1, min(last - first, uniqueness.QUOTE_LIMIT)):
            start, end = max(first, span.start - more), min(last, span.end + more)
            for begin, stop in ((start, span.end), (span.start, end), (start, end)):
                text = source.text[begin:stop]
                if find_text(source, text, self.report.problem.regions, limit=2) == [Span(begin, stop)]:
                    return text
        return None


def _lines(count: int, where: str) -> str:
    return f"{count} more {'line' if count == 1 else 'lines'} {where}" if count else ""
