"""Several edits of one block: what they leave of it, and the layout of those whose statements share lines.

Edits on lines of their own are laid each by itself. Where statements share lines (``a; b``, or a block on its header's
line), one edit's line break is another's too, so the edits of such a chain are laid out together.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from patchkit.edit import blocks
from patchkit.edit.blocks import Run
from patchkit.edit.fill import Filled
from patchkit.edit.source import Source, Splice
from patchkit.edit.spans import Span
from patchkit.errors import PlanError
from patchkit.tuples import NamedTuple


class Touch(NamedTuple):
    """Where an edit changes the tree: what is replaced, or (empty) where in the block that begins at ``block``."""

    start: int
    end: int
    edit: int
    block: int = -1


class Part(NamedTuple):
    """One edit of a block.

    ``role`` is ``before``, ``after`` or ``instead``; ``filled`` is None where nothing takes the run's place; ``end`` is
    where what is replaced ends, comments included that ``filled`` holds already.
    """

    run: Run
    role: str
    filled: Filled | None
    edit: int
    end: int

    @property
    def chain(self) -> tuple[int, int]:
        """The indices of the first and last statement that share lines with where the edit is made."""
        if self.role == "instead":
            return self.run.chain
        nodes = self.run.nodes[:1] if self.role == "before" else self.run.nodes[-1:]
        return Run(self.run.outline, nodes).chain

    @property
    def touch(self) -> Touch:
        """Where the edit changes the tree."""
        run = self.run
        if self.role == "instead":
            return Touch(run.full_start, run.end, self.edit)
        at = run.full_start if self.role == "before" else run.end
        return Touch(at, at, self.edit, run.outline.span(run.owner).start if run.below else -1)


def overlap(source: Source, one: int, other: int, position: int, what: str = "overlap", why: str = "") -> PlanError:
    """The error of two edits (by index; 0: not known) that meet at ``position``; ``why`` ends the message."""
    names = f"edits {one} and {other}" if one != other else f"two matches of edit {one}" if one else "two matches"
    line = source.line(position)
    return PlanError(
        f"{names} {what} in {source.path}, line {line}{why}",
        code="overlap",
        hint="make one edit of the two, or narrow their anchors until they do not touch the same text",
        details={"path": source.path, "line": line, "edits": [one, other]},
    )


def check_claims(source: Source, parts: Sequence[Part]) -> None:
    """Refuse edits of one block of which two replace the same statement, or insert at the same place.

    Raises:
        PlanError: ``overlap``.
    """
    claims: dict[int, Part] = {}
    for part in parts:
        if part.role == "instead":
            for index in range(part.run.first, part.run.last + 1):
                other = claims.setdefault(index, part)
                if other is not part:
                    raise overlap(source, other.edit, part.edit, max(part.run.full_start, other.run.full_start))
    points: dict[tuple[str, int], Part] = {}
    for part in parts:
        if part.role == "instead":
            continue
        before = part.role == "before"
        index = part.run.first if before else part.run.last
        at = part.run.full_start if before else part.run.end
        claim = claims.get(index)
        if claim is not None and index != (claim.run.first if before else claim.run.last):
            raise overlap(source, claim.edit, part.edit, at)
        other = points.setdefault((part.role, index), part)
        if other is not part:
            raise overlap(source, other.edit, part.edit, at, "insert at the same place")


def check_copies(source: Source, copies: Sequence[tuple[Span, int]], touches: Sequence[Touch]) -> None:
    """Refuse an edit of code that another edit copies: which of the two texts were meant cannot be told.

    Args:
        source: The file.
        copies: The statements that are copied, each with its edit.
        touches: Where edits change the tree.

    Raises:
        PlanError: ``overlap``.
    """
    if not copies:
        return
    ordered = sorted(touches)
    for span, edit in copies:
        for touch in ordered[bisect_left(ordered, (span.start,)) :]:
            if touch.start > span.end:
                break
            if touch.start < touch.end:
                within = touch.end <= span.end
            else:
                within = span.start < touch.start < span.end or (touch.start == span.end and touch.block >= span.start)
            if within:
                why = f": one copies lines {source.line(span.start)} to {source.line(span.end)}, the other changes them"
                raise overlap(source, edit, touch.edit, touch.start, why=why)


def settle(parts: Sequence[Part]) -> None:
    """Tell the runs of one block whether ``pass`` has to take their place: where nothing else is left, the last's."""
    replaced = [part for part in parts if part.role == "instead"]
    if not replaced:
        return
    last = max(replaced, key=lambda part: part.run.first)
    left = len(last.run.siblings) - sum(len(part.run.nodes) for part in replaced)
    added = any(part.filled is not None and part.filled.nodes for part in parts)
    is_block = last.run.below and not last.run.elif_arm
    for part in replaced:
        part.run.empties = is_block and not left and not added and part is last


def chains(parts: Sequence[Part]) -> list[tuple[int, int, list[Part]]]:
    """The edits of one block by the chains of statements that they stand in, with each chain's bounds, in order."""
    out: list[tuple[int, int, list[Part]]] = []
    for first, last, part in sorted(((*part.chain, part) for part in parts), key=lambda item: item[:2]):
        if out and first <= out[-1][1]:
            before = out.pop()
            out.append((before[0], max(before[1], last), [*before[2], part]))
        else:
            out.append((first, last, [part]))
    return out


def share_lines(run: Run, first: int, last: int) -> bool:
    """True where two of the statements from ``first`` to ``last``, or one and its header, stand on one line."""
    return run.inline or any(not run.outline.starts_line(node) for node in run.siblings[first + 1 : last + 1])


class _Item(NamedTuple):
    """A piece of the chain's new text: a statement that stays (``kept`` its index), or new ones.

    ``line`` are new statements as a part of a shared line, None where they need lines of their own: ``text``.
    """

    kept: int | None = None
    text: str = ""
    line: str | None = ""


def lay_chain(first: int, last: int, parts: Sequence[Part]) -> list[Splice]:
    """The splices of ``parts`` on the statements from ``first`` to ``last``; no statement that stays lies in one."""
    return _Chain(first, last, parts).splices()


class _Chain:
    def __init__(self, first: int, last: int, parts: Sequence[Part]) -> None:
        some = parts[0].run
        self.last = last
        self.outline = some.outline
        self.text = some.text
        self.siblings: list[Any] = some.siblings
        self.whole = Run(self.outline, tuple(self.siblings[first : last + 1]))
        self.whole.empties = False
        self.indent = self.whole.block_indent
        self.edit = min(part.edit for part in parts)
        self.end = self.whole.end
        self.out: list[Splice] = []
        self.below = next((p.filled for p in parts if p.role == "after" and p.run.last == last), None)
        self.items = self._items(first, parts)
        tall = any(item.line is None for item in self.items)
        self.broken = self.whole.inline and (self.below is not None or tall)
        if self.broken:
            self.items = [item._replace(line=None) if item.kept is None else item for item in self.items]

    def _items(self, first: int, parts: Sequence[Part]) -> list[_Item]:
        """What the chain holds afterwards, but for insertions above and below its lines."""
        before = {part.run.first: part for part in parts if part.role == "before"}
        after = {part.run.last: part for part in parts if part.role == "after"}
        instead = {part.run.first: part for part in parts if part.role == "instead"}
        items: list[_Item] = []
        index = first
        while index <= self.last:
            above, new = before.get(index), instead.get(index)
            if above is not None and above.filled is not None:
                if index == first and self.whole.own_line:
                    self.out += blocks.insert_before(self.whole, above.filled, self.edit)
                else:
                    items.append(self._new(above, above.filled))
            if new is None:
                items.append(_Item(index))
            else:
                index = new.run.last
                if new.filled is not None:
                    items.append(self._new(new, new.filled))
                    self.end = new.end if index == self.last else self.end
                if new.run.empties:
                    items.append(_Item(None, f"{self.indent}pass", "pass"))
            follows = after.get(index)
            if follows is not None and follows.filled is not None and index != self.last:
                items.append(self._new(follows, follows.filled))
            index += 1
        return items

    @staticmethod
    def _new(part: Part, filled: Filled) -> _Item:
        return _Item(None, filled.text, blocks.inline_text(part.run, filled, replacing=part.role == "instead"))

    def splices(self) -> list[Splice]:
        whole = self.whole
        if self.items:
            self._lay()
        elif whole.own_line:
            self.out += blocks.delete(whole, self.edit)
        else:
            self.out.append(Splice(whole.colon(), whole.end, "", self.edit))
        if self.below is not None:
            self.out.append(blocks.below(whole, self.below, self.edit))
        return self.out

    def _lay(self) -> None:
        whole = self.whole
        cursor = whole.colon() if self.broken else whole.full_start
        pending = ""
        previous: _Item | None = None
        for item in self.items:
            joined = previous is not None and previous.line is not None and item.line is not None
            if item.kept is not None:
                span = self.outline.span(self.siblings[item.kept])
                if previous is None:
                    gap = f"\n{self.indent}" if self.broken else ""
                elif previous.kept is not None and previous.kept + 1 == item.kept:
                    gap = self.text[cursor : span.start]
                else:
                    gap = "; " if joined else f"\n{self.indent}"
                self._splice(cursor, span.start, pending + gap)
                cursor, pending = span.end, ""
            elif previous is None:
                if self.broken:
                    pending = f"\n{item.text}"
                elif item.line is not None:
                    pending = item.line
                else:
                    core = item.text.lstrip("\n")
                    leading = item.text[: len(item.text) - len(core)]
                    cursor, pending = blocks.own_start(whole, cursor, leading, core)
            elif item.line is None:
                pending += f"\n{item.text}"
            else:
                pending += f"; {item.line}" if joined else f"\n{self.indent}{item.line}"
            previous = item
        if previous is not None and previous.kept == self.last:
            return
        new = pending.rstrip("\n")
        if previous is not None and previous.kept is not None:
            self.out.append(Splice(cursor, whole.end, "", self.edit))
        else:
            end = self.end
            self.out.append(blocks.up_to_line_end(whole, cursor, new, pending[len(new) :], self.edit, end))

    def _splice(self, start: int, end: int, new: str) -> None:
        if self.text[start:end] != new:
            self.out.append(Splice(start, end, new, self.edit))
