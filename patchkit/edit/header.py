"""The piece of a file that an expression stands in: a simple statement, or the header of a compound one.

It parses by itself, so that a replacement can be tried without parsing the file again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from patchkit.edit.indent import indentation
from patchkit.edit.lexer import CLOSING, OPENING, lex
from patchkit.edit.outline import Outline
from patchkit.edit.parse import PARSE_ERRORS, Parse
from patchkit.edit.shape import BLOCKS, IGNORED, blocks_of, name_of, same
from patchkit.edit.spans import Span
from patchkit.tuples import NamedTuple


class Header(NamedTuple):
    """``prefix + text[span] + suffix`` is a program whose first statement is like ``owner`` but for its blocks."""

    text: str
    span: Span
    prefix: str
    suffix: str
    owner: Any

    def makes(self, place: Span, new: str, swapped: Mapping[int, Any], parse: Parse) -> bool:
        """True where ``new`` at ``place`` makes the owner with the nodes of ``swapped`` (by id) in place of its own."""
        code = f"{self.text[self.span.start : place.start]}{new}{self.text[place.end : self.span.end]}"
        try:
            body = parse(f"{self.prefix}{code}{self.suffix}").body
        except PARSE_ERRORS:
            return False
        if self.prefix.startswith("if 1:\n"):
            if len(body) != 1 or body[0].orelse:  # type: ignore[attr-defined]
                return False
            body = body[0].body  # type: ignore[attr-defined]
        if len(body) != 1:
            return False
        made: Any = body[0]
        if name_of(self.owner) == "ExceptHandler":
            made = made.handlers[0]
        elif name_of(self.owner) == "match_case":
            made = made.cases[0]
        if name_of(made) != name_of(self.owner):
            return False
        fields = [field for field in self.owner._fields if field not in IGNORED and not _is_block(self.owner, field)]
        return all(
            same(getattr(self.owner, field, None), getattr(made, field, None), lambda node: swapped.get(id(node), node))
            for field in fields
        )


def _is_block(node: Any, field: str) -> bool:
    return field in BLOCKS and isinstance(getattr(node, field, None), list)


def header_of(outline: Outline, owner: Any) -> Header:
    """The header of a statement, handler or case (the whole of a simple statement)."""
    text = outline.source.text
    span = outline.span(owner)
    block = next((block for _, block in blocks_of(owner) if block), None)
    kind = name_of(owner)
    if block is None:
        return Header(text, span, "", "", owner)
    colon = _colon(text, span.start, outline.span(block[0]).start)
    if kind == "ExceptHandler":
        return Header(text, Span(span.start, colon), "try: pass\n", ": pass", owner)
    if kind == "match_case":
        return Header(text, Span(span.start, colon), "match _:\n ", ": pass", owner)
    if kind == "Match":
        return Header(text, Span(span.start, colon), "", ":\n case _: pass", owner)
    if outline.is_elif(owner):
        return Header(text, Span(span.start + 2, colon), "", ": pass", owner)
    if getattr(owner, "decorator_list", None):
        indent = indentation(outline.indent_of(owner))
        return Header(text, Span(span.start, colon), f"if 1:\n{indent or ' '}" if indent else "", ": pass", owner)
    return Header(text, Span(span.start, colon), "", ": pass", owner)


def _colon(text: str, start: int, end: int) -> int:
    """The position of the colon that ends the header beginning at ``start``, whose block begins at ``end``."""
    depth = lambdas = 0
    for token in lex(text, start, end):
        if token.kind == "op":
            depth += (token.text in OPENING) - (token.text in CLOSING)
            if token.text == ":" and not depth:
                if not lambdas:
                    return token.start
                lambdas -= 1
        elif token.text == "lambda" and not depth:
            lambdas += 1
    return end
