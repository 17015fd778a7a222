"""Indentation: taking it off, putting code at another, and the unit a file uses.

A line that begins within a string literal is never touched: its blanks belong to a value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from patchkit.edit.lexer import CLOSING, OPENING, LexError, lex, string_lines
from patchkit.edit.shape import blocks_of, is_compound
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.edit.outline import Outline

BLANKS = " \t\f"


class Line(NamedTuple):
    """One line of a text, without its line break.

    ``kind``: ``logical`` (a statement or a header begins), ``continued``, ``string`` (it begins within a string),
    ``comment`` (nothing but a comment, outside brackets) or ``blank``.
    """

    start: int
    text: str
    kind: str

    @property
    def indent(self) -> str:
        """The blanks that the line begins with."""
        return self.text[: len(self.text) - len(self.text.lstrip(BLANKS))]


def lines_of(text: str) -> list[Line]:
    """The lines of ``text``, which may hold metavariables.

    Raises:
        LexError: A string in it does not end.
    """
    tokens = lex(text)
    strings = string_lines(tokens, text)
    logical: set[int] = set()
    nested: set[int] = set()
    depth, fresh = 0, True
    for token in tokens:
        if token.kind == "newline":
            if depth:
                nested.add(token.end)
            else:
                fresh = True
        elif token.kind != "comment":
            if fresh:
                logical.add(text.rfind("\n", 0, token.start) + 1)
                fresh = False
            if token.kind in ("op", "fopen", "fclose"):
                depth += (token.text in OPENING) - (token.text in CLOSING)
    out: list[Line] = []
    start = 0
    for content in text.split("\n"):
        bare = content.lstrip(BLANKS)
        if start in strings:
            kind = "string"
        elif start in logical:
            kind = "logical"
        elif not bare:
            kind = "blank"
        elif start not in nested and bare[0] == "#":
            kind = "comment"
        else:
            kind = "continued"
        out.append(Line(start, content, kind))
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
            content = line.text[len(_common([common, line.indent])) :]
            out.append(content)
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

    Continuation lines keep their distance to the statement that they belong to; blank lines become empty.
    """
    levels = [""]
    base, new_base = "", indent
    out: list[str] = []
    for line in lines_of(text):
        own = line.indent
        if line.kind == "string":
            out.append(line.text)
        elif line.kind == "blank":
            out.append("")
        elif line.kind == "continued":
            moved = new_base + own[len(base) :] if own.startswith(base) else indent + own
            out.append(moved + line.text[len(own) :])
        else:
            # A comment takes part in the levels only as far as they are known: it opens none.
            known = [level for level in levels if len(level) <= len(own)]
            depth = len(known) - 1
            deeper = len(own) > len(known[-1])
            if line.kind == "logical":
                levels = [*known, own] if deeper else known
            depth += deeper
            placed = indent + (own if unit is None else unit * depth)
            if line.kind == "logical":
                base, new_base = own, placed
            out.append(placed + line.text[len(own) :])
    return "\n".join(out)


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
            out.append(new + line.text[len(old) :])
        elif new.startswith(old):
            out.append(new[len(old) :] + line.text)
        else:
            out.append(line.text[len(_common([own, old[len(_common([old, new])) :]])) :])
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
                if not index and own.startswith(indent) and len(own) > len(indent):
                    yield own[len(indent) :]
                if is_compound(child):
                    pending.append((child, own))


def block_unit(outline: Outline, statement: Any, indent: str) -> str | None:
    """The unit of the first block directly below ``statement``, which stands at ``indent``; None if it has none."""
    for _, block in blocks_of(statement):
        if block and getattr(block[0], "lineno", None) is not None and outline.starts_line(block[0]):
            own = outline.indent_of(block[0])
            if own.startswith(indent) and len(own) > len(indent):
                return own[len(indent) :]
    return None
