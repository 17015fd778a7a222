"""From a file before and after to the edits of a patch, each with the shortest anchor that is unique in its scope.

Measured on all 54,086 changed lines between two releases of a real package: a minimal anchor within the enclosing
definition can be written for 99.8 % of them, and lands right on a release nine versions later for 91.9 %, wrong for
0.13 % (a diff with fuzz: 89.0 % and 1.07 %).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

from patchkit.author.hunks import Hunk, hunks, lines_of, merged
from patchkit.edit.outline import Outline
from patchkit.edit.parse import BLANKS
from patchkit.edit.source import Source
from patchkit.edit.spans import Span
from patchkit.edit.text import find_text
from patchkit.errors import PlanError
from patchkit.model.patch import Action
from patchkit.tuples import NamedTuple

CONTEXT = 5
"""Lines of context tried before an anchor may be as long as it takes."""

TELLING = 3
"""Letters and digits that a good anchor has at least: ``)``, ``})`` or ``x,`` say little about a place."""


class TextEdit(NamedTuple):
    """An edit that is to be written into a patch file; ``text`` is empty for ``delete``.

    ``kind`` says whether ``find`` is text, or a pattern (:mod:`patchkit.author.syntax`).
    """

    scope: str | None
    find: str
    action: Action
    text: str
    kind: Literal["find", "match"] = "find"


class _Choice(NamedTuple):
    """A hunk's edit, and the lines (0-based, half open) that it replaces: none where it only inserts."""

    edit: TextEdit
    start: int
    stop: int


def derive(source: Source, outline: Outline | None, after: str) -> list[TextEdit]:
    """The edits that make ``after`` of a file.

    Args:
        source: The file before.
        outline: Its scopes; None where it does not parse: then no edit has one.
        after: The text after, with ``\\n`` line breaks and without a byte order mark.

    Raises:
        PlanError: ``empty-file``: there is nothing that an anchor could stand in.
    """
    if not source.text:
        raise PlanError(
            f"{source.path}: is empty as installed, so an edit of it has no anchor",
            code="empty-file",
            hint="put the code into a new file, or into one that has content",
            details={"path": source.path},
        )
    deriver = _Deriver(source, outline)
    found = hunks(deriver.lines, lines_of(after))
    while True:
        choices = [choice for hunk in found if (choice := deriver.choose(hunk)) is not None]
        crossing = {
            index
            for index in range(1, len(choices))
            if choices[index - 1].stop > choices[index].start
            or (choices[index - 1].start, choices[index - 1].stop) == (choices[index].start, choices[index].stop)
        }
        if not crossing:
            return [choice.edit for choice in choices]
        joined = {found[index] for index in crossing}
        found = merged(deriver.lines, found, lambda _, second: second in joined)  # noqa: B023


def shortest(source: Source, outline: Outline | None, hunk: Hunk, *, above: bool) -> TextEdit | None:
    """The edit of one change with the shortest anchor.

    Args:
        source: The file before.
        outline: Its scopes; None where it does not parse.
        hunk: The change.
        above: Of two anchors that are as short, take the one with more lines above rather than below.

    Returns:
        None where no :data:`CONTEXT` lines on either side are unique in their scope.
    """
    choice = _Deriver(source, outline, above=above).choose(hunk, limited=True)
    return None if choice is None else choice.edit


def innermost(source: Source, outline: Outline | None, span: Span) -> tuple[str, Sequence[Span]]:
    """The innermost definition that holds ``span``, and all that bear its name; "" and the file at module level."""
    whole = [Span(0, len(source.text))]
    if outline is None:
        return "", whole
    text = source.text[span.start : span.end]
    scope = outline.scope_at(span.start + len(text) - len(text.lstrip(BLANKS + "\n")))
    while scope:
        regions = outline.scopes(scope)
        if any(region.start <= span.start and span.end <= region.end for region in regions):
            return scope, regions
        scope = scope.rpartition(".")[0]
    return "", whole


class _Deriver:
    def __init__(self, source: Source, outline: Outline | None, *, above: bool = True) -> None:
        self.source = source
        self.above = above
        self.outline = outline
        self.lines = lines_of(source.text)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))

    def choose(self, hunk: Hunk, *, limited: bool = False) -> _Choice | None:
        """The edit of ``hunk`` with the shortest anchor that says something.

        Code that comes to lie around the definition whose lines would be its anchor gets an anchor in that scope.

        None only where it is ``limited`` to few lines of context.
        """
        choice = self._shortest(hunk, limited=limited)
        indent = _indent(hunk.new)
        if choice is None or self.outline is None or hunk.stop > hunk.start or indent is None:
            return choice
        owner, scope = self._owner(hunk.start, indent), choice.edit.scope or ""
        around = not owner or scope.startswith(f"{owner}.")
        if (around and scope != owner) or self._begins_definition(hunk.start, indent):
            return self._between(hunk, indent, owner) or choice
        return choice

    def _shortest(self, hunk: Hunk, *, limited: bool) -> _Choice | None:
        first: tuple[int, int, str | None] | None = None
        for above, below in self._contexts(hunk):
            anchor = "".join(self.lines[hunk.start - above : hunk.stop + below])
            telling = _tells(anchor)
            if first is not None and not telling:
                continue
            scope = self._unique(hunk.start - above, hunk.stop + below, anchor)
            if scope is None:
                continue
            if telling:
                return self._edit(hunk, above, below, scope or None)
            first = (above, below, scope or None)
        if first is not None:
            return self._edit(hunk, *first)
        return None if limited else self._longer(hunk)

    def _begins_definition(self, at: int, indent: int) -> bool:
        """Whether a definition that is indented so begins at line ``at``."""
        assert self.outline is not None
        name = self.outline.scope_at(self.starts[at] + indent)
        starts = [region.start for region in self.outline.scopes(name)] if name else []
        return self.starts[at] in starts and _indent(self.lines[at : at + 1]) == indent

    def _owner(self, at: int, indent: int) -> str:
        """The innermost definition around line ``at`` that code with that indentation lies in; "" for the module."""
        assert self.outline is not None
        point = self.starts[at]
        names = {self.outline.scope_at(max(point - 1, 0)), self.outline.scope_at(point)}
        while names:
            name = max(names, key=len)
            names = {*names - {name}, name.rpartition(".")[0]} - {""}
            for region in self.outline.scopes(name):
                head = self.source.text[region.start : region.end]
                if region.start < point <= region.end and (_indent([head]) or 0) < indent:
                    return name
        return ""

    def _between(self, hunk: Hunk, indent: int, owner: str) -> _Choice | None:
        """The edit that puts code of ``owner`` between its statements, with an anchor that stands in it once.

        The lines next to such code are as a rule the end of one function and the head of another: an anchor in the
        scope of either would read as if the code came to lie in there. The head of what follows is preferred. None
        where neither stands once.
        """
        for below in range(1, min(CONTEXT, len(self.lines) - hunk.stop) + 1):
            if _indent(self.lines[hunk.stop : hunk.stop + below]) == indent and self._stands_once(
                hunk, 0, below, owner
            ):
                return self._edit(hunk, 0, below, owner or None)
        for above in range(1, min(CONTEXT, hunk.start) + 1):
            if self._stands_once(hunk, above, 0, owner):
                return self._edit(hunk, above, 0, owner or None)
        return None

    def _stands_once(self, hunk: Hunk, above: int, below: int, owner: str) -> bool:
        """Whether the lines around an insertion say something, and stand in ``owner`` once."""
        anchor = "".join(self.lines[hunk.start - above : hunk.stop + below])
        span = Span(self.starts[hunk.start - above], self.starts[hunk.stop + below])
        regions = [Span(0, len(self.source.text))]
        if owner:
            assert self.outline is not None
            regions = self.outline.scopes(owner)
        return _tells(anchor) and find_text(self.source, anchor, regions, limit=2) == [span]

    def _contexts(self, hunk: Hunk) -> Iterator[tuple[int, int]]:
        """Lines above and below: few before many, and those of one side before those of both."""
        most_above = min(CONTEXT, hunk.start)
        most_below = min(CONTEXT, len(self.lines) - hunk.stop)
        least = 0 if hunk.stop > hunk.start else 1
        for total in range(least, most_above + most_below + 1):
            splits = [(above, total - above) for above in range(total + 1)]
            splits.sort(key=lambda split: (min(split), split[0] if not self.above else split[1]))
            for above, below in splits:
                if above <= most_above and below <= most_below:
                    yield above, below

    def _unique(self, start: int, stop: int, anchor: str) -> str | None:
        """The innermost scope in which the lines stand once ("" for the file); None: they stand more often there."""
        if not anchor.strip(BLANKS + "\n"):
            return None
        span = Span(self.starts[start], self.starts[stop])
        scope, regions = innermost(self.source, self.outline, span)
        found = find_text(self.source, anchor, regions, limit=2)
        return scope if found == [span] else None

    def _longer(self, hunk: Hunk) -> _Choice:
        """The least context that it takes beyond :data:`CONTEXT`: on one side if that does it, in the end all there is.

        More lines match no more often, so the least number of them is found by halving.
        """
        most_above, most_below = hunk.start, len(self.lines) - hunk.stop
        found = []
        if (above := self._least(most_above, lambda size: self._scope_of(hunk, size, 0))) is not None:
            found.append((above, 0))
        if (below := self._least(most_below, lambda size: self._scope_of(hunk, 0, size))) is not None:
            found.append((0, below))
        if not found:
            both = self._least(
                max(most_above, most_below),
                lambda size: self._scope_of(hunk, min(size, most_above), min(size, most_below)),
            )
            assert both is not None  # the whole file stands in it once
            kept = min(both, most_above)
            rest = self._least(min(both, most_below), lambda size: self._scope_of(hunk, kept, size))
            assert rest is not None
            found.append((kept, rest))
        best = min(found, key=sum)
        return self._edit(hunk, *best, self._scope_of(hunk, *best) or None)

    def _least(self, most: int, holds: Callable[[int], str | None]) -> int | None:
        """The least size up to ``most`` for which ``holds`` is not None; None where it is for ``most`` itself."""
        if holds(most) is None:
            return None
        low, high = 0, most
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(middle) is not None else (middle + 1, high)
        return high

    def _scope_of(self, hunk: Hunk, above: int, below: int) -> str | None:
        """The scope in which a hunk with so much context stands once, or "" for the file; None: in neither."""
        start, stop = hunk.start - above, hunk.stop + below
        anchor = "".join(self.lines[start:stop])
        scope = self._unique(start, stop, anchor)
        if scope is not None:
            return scope
        # Blank lines alone are the last resort; and two definitions may bear the scope's name, with the same code.
        span = Span(self.starts[start], self.starts[stop])
        once = bool(anchor) and find_text(self.source, anchor, [Span(0, len(self.source.text))], limit=2) == [span]
        return "" if once else None

    def _edit(self, hunk: Hunk, above: int, below: int, scope: str | None) -> _Choice:
        before = "".join(self.lines[hunk.start - above : hunk.start])
        behind = "".join(self.lines[hunk.stop : hunk.stop + below])
        old, new = "".join(self.lines[hunk.start : hunk.stop]), "".join(hunk.new)
        anchor = before + old + behind
        if not old and not below:
            return _Choice(TextEdit(scope, anchor, "insert_after", new), hunk.start, hunk.start)
        if not old and not above:
            return _Choice(TextEdit(scope, anchor, "insert_before", new), hunk.start, hunk.start)
        action: Action = "replace" if before + new + behind else "delete"
        edit = TextEdit(scope, anchor, action, before + new + behind)
        return _Choice(edit, hunk.start - above, hunk.stop + below)


def _tells(anchor: str) -> bool:
    """Whether an anchor says something: no few characters, and no ``@property`` without what it decorates."""
    last = anchor.rstrip(BLANKS + "\n").rpartition("\n")[2].lstrip(BLANKS)
    decorator = last[:1] == "@" and last[1:].replace(".", "").isidentifier()
    return sum(char.isalnum() for char in anchor) >= TELLING and not decorator


def _indent(lines: Sequence[str]) -> int | None:
    """The indentation of the first line that is not blank; None where there is none, or where it only continues."""
    first = next((line for line in "".join(lines).split("\n") if line.strip(BLANKS)), "")
    code = first.lstrip(BLANKS)
    return None if code[:1] in ("", ")", "]", "}") else len(first) - len(code)
