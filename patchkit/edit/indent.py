"""Indentation: taking it off, putting code at another, and the unit a file uses.

A line that begins within a string literal is never touched: its blanks belong to a value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from patchkit.edit.lexer import CLOSING, OPENING, LexError, lex, string_lines
from patchkit.edit.parse import BLANKS
from patchkit.edit.shape import blocks_of, is_compound
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.edit.outline import Outline


class Line(NamedTuple):
    """One line of a text, without its line break.

    ``kind``: ``logical`` (a statement or a header begins), ``continued``, ``string`` (it begins within a string),
    ``comment`` (nothing but a comment, outside brackets) or ``blank``. ``opener`` is the start of the line that holds
    the innermost bracket open here, None outside brackets; ``hangs`` is True where nothing follows that bracket.
    """

    start: int
    text: str
    kind: str
    opener: int | None = None
    hangs: bool = False

    @property
    def lead(self) -> str:
        """What stands before the indentation: everything up to the last form feed before the code."""
        blanks = self.text[: len(self.text) - len(self.text.lstrip(BLANKS))]
        return blanks[: blanks.rfind("\f") + 1]

    @property
    def indent(self) -> str:
        """The indentation; a form feed sets the column to 0 (Python reference, 2.1.8), so what precedes it is none."""
        return indentation(self.text)

    @property
    def code(self) -> str:
        """The line without the blanks that it begins with."""
        return self.text.lstrip(BLANKS)


def indentation(line: str) -> str:
    """The blanks that a line begins with, behind the last form feed among them."""
    return line[: len(line) - len(line.lstrip(BLANKS))].rpartition("\f")[2]


def lines_of(text: str) -> list[Line]:
    """The lines of ``text``, which may hold metavariables.

    Raises:
        LexError: A string in it does not end.
    """
    tokens = lex(text)
    strings = string_lines(tokens, text)
    logical: set[int] = set()
    nested: dict[int, tuple[int, bool]] = {}
    brackets: list[tuple[int, bool]] = []
    fresh = True
    for index, token in enumerate(tokens):
        if token.kind == "newline":
            if brackets:
                nested[token.end] = brackets[-1]
            else:
                fresh = True
        elif token.kind != "comment":
            start = text.rfind("\n", 0, token.start) + 1
            if fresh:
                logical.add(start)
                fresh = False
            if token.kind in ("op", "fopen", "fclose"):
                if token.text in OPENING:
                    hangs = index + 1 < len(tokens) and tokens[index + 1].kind in ("newline", "comment")
                    brackets.append((start, hangs))
                elif token.text in CLOSING and brackets:
                    brackets.pop()
    out: list[Line] = []
    start = 0
    for content in text.split("\n"):
        bare = content.lstrip(BLANKS)
        opener, hangs = nested.get(start, (None, False))
        if start in strings:
            kind = "string"
        elif start in logical:
            kind = "logical"
        elif not bare:
            kind = "blank"
        elif opener is None and bare[0] == "#":
            kind = "comment"
        else:
            kind = "continued"
        out.append(Line(start, content, kind, opener, hangs))
        start += len(content) + 1
    return out


def dedent(text: str) -> str:
    """``text`` without the indentation that its statements (else its comments) have in common."""
    try:
        lines = lines_of(text)
    except LexError:
        return text
    indents = [line.indent for line in lines if line.kind == "logical"]
    indents = indents or [line.indent for line in lines if line.kind == "comment"]
    common = _common(indents)
    if not common:
        return text
    out = []
    for line in lines:
        if line.kind != "string":
            out.append(line.lead + line.text[len(line.lead) + len(_common([common, line.indent])) :])
        else:
            out.append(line.text)
    return "\n".join(out)


def _common(indents: list[str]) -> str:
    if not indents:
        return ""
    low, high = min(indents), max(indents)
    for index, char in enumerate(low):
        if high[index : index + 1] != char:
            return low[:index]
    return low


def reindent(text: str, indent: str, unit: str | None) -> str:
    """Put dedented code at ``indent``, its levels written in ``unit`` (None: as they are).

    Lines below a bracket that ends its line take their levels along; lines aligned with what follows a bracket keep
    their distance to its line. Blank lines become empty.
    """
    lines = lines_of(text)
    own_unit = None if unit is None else _unit_of(lines)
    levels = [""]
    base, new_base = "", indent
    placed: dict[int, tuple[str, str]] = {}
    out: list[str] = []
    for line in lines:
        own = line.indent
        if line.kind == "string":
            out.append(line.text)
            placed[line.start] = base, new_base
            continue
        if line.kind == "blank":
            out.append(line.lead)
            continue
        if line.kind == "continued":
            old, new = (base, new_base) if line.opener is None else placed.get(line.opener, (base, new_base))
            if not own.startswith(old):
                old, new = base, new_base
            if own.startswith(old):
                beyond = own[len(old) :]
                new += _in_unit(beyond, own_unit, unit, whole=not line.hangs) if _levelled(line) else beyond
            else:
                new = indent + own
        else:
            # A comment takes part in the levels only as far as they are known: it opens none.
            known = [level for level in levels if len(level) <= len(own)]
            depth = len(known) - 1
            deeper = len(own) > len(known[-1])
            if line.kind == "logical":
                levels = [*known, own] if deeper else known
            depth += deeper
            new = indent + (own if unit is None else unit * depth)
            if line.kind == "logical":
                base, new_base = own, new
        placed[line.start] = own, new
        out.append(line.lead + new + line.code)
    return "\n".join(out)


def _levelled(line: Line) -> bool:
    """True for a continuation line that may stand at a level: behind a backslash, or below a bracket alone."""
    return line.opener is None or line.hangs


def _unit_of(lines: list[Line]) -> str | None:
    """The indentation of one level in a dedented text: of its first block, else of its first hanging line."""
    logical = next((line.indent for line in lines if line.kind == "logical" and line.indent), None)
    if logical is not None:
        return logical
    indents = {line.start: line.indent for line in lines}
    for line in lines:
        if line.kind == "continued" and line.opener is not None and line.hangs:
            above = indents[line.opener]
            if line.indent.startswith(above) and line.indent != above:
                return line.indent[len(above) :]
    return None


def _in_unit(blanks: str, old: str | None, new: str | None, *, whole: bool) -> str:
    """``blanks`` with its levels written anew; what is no level stays (``whole``: all stays where anything does)."""
    if not old or new is None:
        return blanks
    depth = 0
    rest = blanks
    while rest.startswith(old):
        depth, rest = depth + 1, rest[len(old) :]
    return blanks if whole and rest else new * depth + rest


def shift(text: str, old: str, new: str) -> str:
    """Move a block of statements, whose lines but the first begin at ``old``, to ``new``.

    Args:
        text: Statements as they stand in a file, the first without its indentation; it gets none.
        old: The indentation that the block has.
        new: The one that it gets. Deeper lines keep what they have beyond ``old``.
    """
    if old == new or "\n" not in text:
        return text
    first, *others = lines_of(text)
    out = [first.text]
    for line in others:
        own = line.indent
        if line.kind in ("string", "blank"):
            out.append(line.text)
        elif own.startswith(old):
            out.append(line.lead + new + own[len(old) :] + line.code)
        elif new.startswith(old):
            out.append(line.lead + new[len(old) :] + own + line.code)
        else:
            out.append(line.lead + own[len(_common([own, old[len(_common([old, new])) :]])) :] + line.code)
    return "\n".join(out)


_file_units: WeakKeyDictionary[Outline, str | None] = WeakKeyDictionary()


def file_unit(outline: Outline) -> str | None:
    """The indentation unit that most blocks of a file use, None where it has no block on lines of its own."""
    if outline not in _file_units:
        counts = Counter(_units(outline))
        _file_units[outline] = max(counts, key=lambda unit: counts[unit]) if counts else None
    return _file_units[outline]


def _units(outline: Outline) -> Iterator[str]:
    """For each block whose first statement begins a line, what its indentation has beyond its owner's."""
    source = outline.source
    pending: list[tuple[Any, str]] = [(statement, "") for statement in outline.tree.body]
    while pending:
        node, indent = pending.pop()
        for _, block in blocks_of(node):
            for index, child in enumerate(block):
                line = getattr(child, "lineno", None)
                if line is None:  # a case has no position; its block is measured against the match
                    continue
                own = source.text[source.starts[line - 1] : source.position(line, child.col_offset)]
                if own.strip(BLANKS):
                    continue
                own = indentation(own)
                if not index and own.startswith(indent) and len(own) > len(indent):
                    yield own[len(indent) :]
                if is_compound(child):
                    pending.append((child, own))


def block_unit(outline: Outline, statement: Any, indent: str) -> str | None:
    """The unit of the first block directly below ``statement``, which stands at ``indent``; None if it has none."""
    for _, block in blocks_of(statement):
        if block and getattr(block[0], "lineno", None) is not None and outline.starts_line(block[0]):
            own = indentation(outline.indent_of(block[0]))
            if own.startswith(indent) and len(own) > len(indent):
                return own[len(indent) :]
    return None
