"""Where a run of statements stands, and the splices that put other statements in its place.

Three layouts are told apart: statements on lines of their own, statements that share a line (``a; b``), and a block on
its header's line (``if a: x``). One-line statements stay on a shared line; what cannot stand there breaks the line,
and a block on its header's line becomes an indented one.
"""

from __future__ import annotations

from typing import Any

from patchkit.edit.fill import Filled, ends_in_comment, is_single_line
from patchkit.edit.indent import block_unit, file_unit, indentation
from patchkit.edit.lexer import CLOSING, OPENING, lex
from patchkit.edit.outline import Outline
from patchkit.edit.parse import BLANKS
from patchkit.edit.shape import blocks_of, is_compound, name_of
from patchkit.edit.source import Splice
from patchkit.errors import PlanError


class Run:
    """Neighbouring statements of one block.

    ``start`` and ``end`` are their span (``start`` as the match has it, behind decorators that do not belong to it),
    ``indent`` the indentation of the line they begin on, ``block_indent`` that of the block they are in (deeper, where
    the block is on its header's line). ``empties`` is True where nothing of the block is left without the run: by
    itself, where the run is all of it; whoever edits several runs of one block says for each what holds.
    """

    def __init__(self, outline: Outline, nodes: tuple[Any, ...], start: int | None = None) -> None:
        self.outline = outline
        self.text = outline.source.text
        place = outline.block_of(nodes[0])
        self.siblings: list[Any]
        self.first: int
        self.siblings, self.first, self.owner = place
        self.nodes = nodes
        self.last = self.first + len(nodes) - 1
        self.full_start = outline.span(nodes[0]).start
        self.start = self.full_start if start is None else start
        self.end = outline.span(nodes[-1]).end
        self.elif_arm = outline.is_elif(nodes[0])
        self.indent = indentation(outline.indent_of(nodes[0]))
        self.below = name_of(self.owner) != "Module"
        self.inline = self.below and not self.elif_arm and not outline.starts_line(self.siblings[0])
        first_line = self.first == 0 and not self.inline  # even behind a line that is only a backslash
        self.own_line = outline.starts_line(nodes[0]) or self.elif_arm or first_line
        following = self.siblings[self.last + 1] if self.last + 1 < len(self.siblings) else None
        self.next_start: int | None = None
        if following is not None and not outline.starts_line(following):
            self.next_start = outline.span(following).start
        self.unit = self._unit()
        self.deeper = self.indent + (self.unit or "    ")
        self.block_indent = self.deeper if self.inline else self.indent
        self.empties = self.below and not self.elif_arm and len(nodes) == len(self.siblings)

    def _unit(self) -> str | None:
        """The indentation of one level here, None where the file does not tell."""
        unit = block_unit(self.outline, self.nodes[0], self.indent)
        if unit is None and name_of(self.owner) != "Module" and not self.inline and not self.elif_arm:
            above = indentation(self.outline.indent_of(self.owner))
            if self.indent.startswith(above) and len(self.indent) > len(above):
                unit = self.indent[len(above) :]
        return unit or file_unit(self.outline)

    @property
    def previous_end(self) -> int:
        """The end of the statement before the run, on the same line."""
        return self.outline.span(self.siblings[self.first - 1]).end

    @property
    def shares_line(self) -> bool:
        """True where another statement (or a header) stands on the run's first or last line."""
        return not self.own_line or self.next_start is not None

    @property
    def chain(self) -> tuple[int, int]:
        """The indices of the first and last statement that share lines with the run (its own, where none does)."""
        if self.inline:
            return 0, len(self.siblings) - 1
        first, last = self.first, self.last
        while first and not self.outline.starts_line(self.siblings[first]):
            first -= 1
        while last + 1 < len(self.siblings) and not self.outline.starts_line(self.siblings[last + 1]):
            last += 1
        return first, last

    @property
    def margin(self) -> int:
        """Where the run's first line begins, behind a form feed (which is no part of any statement)."""
        begin = self.outline.source.line_start(self.full_start)
        return begin + self.text[begin : self.full_start].rfind("\f") + 1

    @property
    def line_end(self) -> int:
        """The end of the run's last line, without its line break."""
        stop = self.outline.source.line_end(self.end)
        return stop - 1 if self.text[stop - 1 : stop] == "\n" else stop

    def colon(self) -> int:
        """The position behind the colon of the header that an inline block stands on."""
        start = self.outline.span(self.siblings[0]).start
        begin = self._header_start()
        depth = lambdas = 0
        behind = begin
        for token in lex(self.text, begin, start):
            if token.kind == "op":
                depth += (token.text in OPENING) - (token.text in CLOSING)
            if depth == 0 and token.text == "lambda":
                lambdas += 1
            elif depth == 0 and token.text == ":" and token.kind == "op":
                if not lambdas:
                    behind = token.end
                lambdas = max(lambdas - 1, 0)
        return behind

    def _header_start(self) -> int:
        """The position behind the last node before the run's block, or the start of the block's owner."""
        before: Any = None
        for _, block in blocks_of(self.owner):
            if block is self.siblings or (block and block[0] is self.siblings[0]):
                break
            before = block[-1] if block else before
        return self.outline.span(self.owner).start if before is None else self.outline.span(before).end


def _joined(run: Run, filled: Filled) -> str | None:
    """The statements as one line of ``;``, None where they cannot stand so."""
    if not filled.nodes or not is_single_line(filled.text, filled.nodes):
        return None
    return "; ".join(line.strip(BLANKS) for line in filled.text.split("\n"))


def inline_text(run: Run, filled: Filled, *, replacing: bool = False) -> str | None:
    """The one line that the statements make where the run shares its own; None where they need lines of their own.

    A block on its header's line stays there only where it does not grow.
    """
    if run.inline:
        return _joined(run, filled) if replacing and len(filled.nodes) <= len(run.nodes) else None
    return _joined(run, filled) if run.shares_line else None


def _core(text: str) -> tuple[str, str, str]:
    """A text's leading blank lines, its lines, and its trailing blank lines."""
    core = text.strip("\n")
    if not core:
        return "", "", text
    begin = text.index(core)
    return text[:begin], core, text[begin + len(core) :]


def _open(run: Run, edit: int) -> list[Splice]:
    """The splice that puts the statements before the run on a line below their header, for a block on its line."""
    if not run.inline or run.first == 0:
        return []
    return [Splice(run.colon(), run.outline.span(run.siblings[0]).start, f"\n{run.block_indent}", edit)]


def _left(run: Run) -> int:
    """Where the line that the run begins on is broken: behind the header, or behind the statement before."""
    return run.colon() if run.inline and run.first == 0 else run.previous_end


def replace(run: Run, filled: Filled, edit: int, end: int) -> list[Splice]:
    """Put ``filled`` (written for ``run.block_indent``) in the run's place.

    ``end``: where what is replaced ends; behind ``run.end`` where comments behind it are part of ``filled`` already.
    """
    inline = inline_text(run, filled, replacing=True)
    if inline is not None:
        return [Splice(run.start, run.end, inline, edit)]
    leading, core, trailing = _core(filled.text)
    if not run.own_line:
        splices, start, new = _open(run, edit), _left(run), f"\n{leading}{core}"
    else:
        splices = []
        start, new = own_start(run, run.start, leading, core)
    if run.next_start is not None:
        return [*splices, Splice(start, run.next_start, f"{new}{trailing}\n{run.block_indent}", edit)]
    return [*splices, up_to_line_end(run, start, new, trailing, edit, end)]


def own_start(run: Run, at: int, leading: str, core: str) -> tuple[int, str]:
    """Where text that takes the place of a run on its own line begins, and that text: ``leading`` blank lines first."""
    new = core.removeprefix(run.indent)
    if not leading:
        return at, new
    begin = run.outline.source.line_start(at)
    return begin, f"{leading}{run.text[begin:at]}{new}"


def up_to_line_end(run: Run, start: int, new: str, trailing: str, edit: int, end: int) -> Splice:
    """``new`` in place of all from ``start`` to the run's ``end``, with what else stands on that line.

    A comment there goes behind one that ``new`` ends with, and before the blank lines ``trailing``.
    """
    tail = run.text[end : run.line_end] if end == run.end else ""
    commented = ends_in_comment(new)
    if trailing or (commented and tail.strip(BLANKS)):
        if commented and tail.lstrip(BLANKS).startswith(";"):
            tail = tail.replace(";", "", 1)
        return Splice(start, max(run.line_end, end), f"{new}{tail.rstrip(BLANKS)}{trailing}", edit)
    return Splice(start, end, new, edit)


def replace_elif(run: Run, filled: Filled, edit: int, end: int, unit_text: str) -> list[Splice]:
    """Replace an ``elif`` arm: by one ``if`` as an ``elif``; by anything else below an ``else:``.

    ``unit_text`` is the same template as ``filled``, one level deeper.
    """
    tail = run.text[end : run.line_end] if end == run.end else ""
    if len(filled.nodes) == 1 and name_of(filled.nodes[0]) == "If":
        word = next(token for token in lex(filled.text) if token.kind == "name")
        core = filled.text[: word.start] + "el" + filled.text[word.start :]
        new = core.removeprefix(run.indent).rstrip("\n")
    else:
        new = f"else:\n{unit_text.rstrip()}"
    if ends_in_comment(new) and tail.strip(BLANKS):
        tail = tail.replace(";", "", 1) if tail.lstrip(BLANKS).startswith(";") else tail
        return [Splice(run.start, run.line_end, new + tail, edit)]
    return [Splice(run.start, end, new, edit)]


def delete(run: Run, edit: int) -> list[Splice]:
    """Take the run out; where it leaves nothing of a block, ``pass`` takes its place. A form feed stays."""
    source = run.outline.source
    start = run.full_start
    if run.empties:
        return [Splice(start, run.end, "pass", edit)]
    if run.own_line and run.next_start is not None:
        return [Splice(start, run.next_start, "", edit)]
    if run.own_line:
        stop = behind(run)
        fed = run.margin != source.line_start(start) and run.text[stop - 1 : stop] == "\n"
        return [Splice(run.margin, stop - fed, "", edit)]
    if run.first == 0:
        assert run.next_start is not None
        return [Splice(start, run.next_start, "", edit)]
    whole_line = run.next_start is None and source.line(start) != source.line(run.end)
    return [Splice(run.previous_end, run.line_end if whole_line else run.end, "", edit)]


def insert_before(run: Run, filled: Filled, edit: int) -> list[Splice]:
    """Put ``filled`` before the run, and before its decorators."""
    if run.own_line:
        start = run.outline.source.line_start(run.full_start)
        return [Splice(start, start, f"{filled.text}\n", edit, 1)]
    inline = inline_text(run, filled)
    if inline is not None:
        return [Splice(run.start, run.start, f"{inline}; ", edit, 1)]
    leading, core, trailing = _core(filled.text)
    new = f"\n{leading}{core}{trailing}\n{run.block_indent}"
    return [*_open(run, edit), Splice(_left(run), run.full_start, new, edit)]


def insert_after(run: Run, filled: Filled, edit: int) -> list[Splice]:
    """Put ``filled`` after the run, and after everything that its last block holds."""
    inline = inline_text(run, filled) if run.next_start is not None else None
    if inline is not None:
        return [Splice(run.end, run.end, f"; {inline}", edit, -1)]
    splices = _open(run, edit)
    if run.inline and run.first == 0:
        splices = [Splice(run.colon(), run.start, f"\n{run.block_indent}", edit)]
    if run.next_start is not None:
        return [*splices, Splice(run.end, run.next_start, f"\n{filled.text}\n{run.block_indent}", edit)]
    return [*splices, below(run, filled, edit)]


def below(run: Run, filled: Filled, edit: int) -> Splice:
    """The insertion of ``filled`` on lines of its own, below those of the run."""
    position = behind(run)
    if run.text[position - 1 : position] == "\n":
        return Splice(position, position, f"{filled.text}\n", edit, -1)
    return Splice(position, position, f"\n{filled.text}", edit, -1)


def behind(run: Run) -> int:
    """Behind the line break of the run's last line, and of the deeper comment lines that follow a block."""
    source, text = run.outline.source, run.text
    position = at = source.line_end(run.end)
    if run.inline or not is_compound(run.nodes[-1]):
        return position
    while at < len(text):
        stop = source.line_end(at)
        content = text[at:stop].rstrip("\n")
        bare = content.lstrip(BLANKS)
        if bare:
            if bare[0] != "#" or len(indentation(content)) <= len(run.indent):
                break
            position = stop
        at = stop
    return position


def refuse_elif(run: Run, action: str) -> None:
    """Refuse what cannot be done with an ``elif`` arm.

    Raises:
        PlanError: ``template``: the run is one.
    """
    if run.elif_arm:
        raise PlanError(
            f"the pattern matches an `elif` arm, and {action} has no place there",
            code="template",
            hint="match the whole `if ... elif ...` statement, or a statement within the arm",
        )
