"""What two versions of a file have in common whatever their layout: lines less their layout, and tokens.

Nothing inside of a literal is layout: a string is one token, compared whole, and of one that goes over several lines
each line counts as it stands. A comment is a token too, and so is a block's beginning or end.
"""

from __future__ import annotations

import ast
import keyword
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from patchkit.author.hunks import Hunk, lines_of
from patchkit.edit.lexer import LexError, Token, lex
from patchkit.tuples import NamedTuple

BLOCKS = ("\1>", "\1<")
"""The tokens for the beginning and the end of a block."""
_LITERAL = "\2"
_NO_CALL = {*keyword.kwlist, *keyword.softkwlist}


class Code(NamedTuple):
    """A text by its lines: ``keys`` are equal where only layout differs, ``tokens`` have the number of their line."""

    keys: tuple[str, ...]
    tokens: tuple[tuple[str, int], ...]

    def between(self, first: int, end: int) -> list[str]:
        """The tokens of some lines; how deep the first of them lies does not count."""
        found = [token for token, line in self.tokens if first <= line < end]
        while found and found[0] in BLOCKS:
            del found[0]
        return found


@lru_cache(maxsize=16)
def code_of(text: str, python: bool) -> Code:
    """The lines and tokens of a text; of one that is no Python all is as it stands, and a line is a token."""
    lines = lines_of(text)
    try:
        tokens = _joined(lex(text), text) if python else None
    except LexError:
        tokens = None
    if tokens is None:
        keys = tuple(line.removesuffix("\n") for line in lines)
        return Code(keys, tuple((f"{_LITERAL}{key}", number) for number, key in enumerate(keys)))
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    inside: set[int] = set()
    flat = list(_flat(tokens, text, starts, inside))
    return Code(tuple(_key(line, n in inside, n + 1 in inside) for n, line in enumerate(lines)), _without_commas(flat))


def _key(line: str, begins_inside: bool, ends_inside: bool) -> str:
    """A line less its layout; what stands in a literal that goes over several lines has none."""
    if not ends_inside:
        line = line.rstrip()
    return _LITERAL + line if begins_inside else line.lstrip()


def _joined(tokens: Sequence[Token], text: str) -> Iterator[Token]:
    """The tokens with every f-string as one."""
    begins: list[int] = []
    for token in tokens:
        if token.kind == "fstart":
            begins.append(token.start)
        elif token.kind == "fend":
            start = begins.pop()
            if not begins:
                yield Token("string", start, token.end, text[start : token.end])
        elif not begins:
            yield token


def _flat(
    tokens: Iterator[Token], text: str, starts: Sequence[int], inside: set[int]
) -> Iterator[tuple[str, int, bool]]:
    """Each token with its line and whether it is code; ``inside`` gets the lines that begin within a string."""
    depth, fresh, levels, number = 0, True, [0], 0
    for token in tokens:
        while starts[number + 1] <= token.start:
            number += 1
        if token.kind == "newline":
            if not depth and not fresh:
                yield "\n", number, True
                fresh = True
            continue
        if token.kind == "comment":
            yield token.text.rstrip(), number, False
            continue
        if fresh:
            fresh = False
            wide = len(text[starts[number] : token.start].expandtabs(8))
            while wide < levels[-1]:
                levels.pop()
                yield BLOCKS[1], number, False
            if wide > levels[-1]:
                levels.append(wide)
                yield BLOCKS[0], number, False
        depth += (token.text in "([{") - (token.text in ")]}") if token.kind == "op" else 0
        if token.kind != "string":
            yield token.text, number, True
            continue
        pieces = token.text.split("\n")
        if len(pieces) == 1:
            yield _LITERAL + _value(token.text), number, True
            continue
        for piece in pieces:
            yield _LITERAL + piece, number, True
            number += 1
            inside.add(number)
        inside.discard(number)
        number -= 1


def _value(literal: str) -> str:
    """A string by what it is, so that the kind of its quotes does not count; as it stands where that is not told."""
    try:
        return repr(ast.literal_eval(literal))
    except (ValueError, SyntaxError):
        return literal


def _without_commas(tokens: Sequence[tuple[str, int, bool]]) -> tuple[tuple[str, int], ...]:
    """The tokens without commas before a closing bracket, but for those that make a tuple of one value."""
    out: list[tuple[str, int]] = []
    brackets: list[tuple[bool, list[int]]] = []
    before = ""
    for text, line, code in tokens:
        if text in ("(", "[", "{"):
            follows = before in (")", "]") or (before.isidentifier() and before not in _NO_CALL)
            brackets.append((text == "{" or (text == "(") == follows, []))
        elif text == "," and brackets:
            brackets[-1][1].append(len(out))
        elif text in (")", "]", "}") and brackets:
            free, commas = brackets.pop()
            if before == "," and commas and (free or len(commas) > 1):
                del out[commas[-1]]
        out.append((text, line))
        before = text if code else before
    return tuple(out)


def same_change(
    before: tuple[Code, Code], after: tuple[Code, Code], hunks: Sequence[tuple[Hunk, Hunk]], changed: Mapping[str, str]
) -> str | None:
    """Why a change is not the same one on the new text; None where it is proved.

    Args:
        before: The old and the new text before the change.
        after: Both with it.
        hunks: Each hunk of the old text and what it is on the new one.
        changed: Names that are others on the new text.
    """
    shifts = [0, 0]
    for pair in hunks:
        was = [code.between(hunk.start, hunk.stop) for code, hunk in zip(before, pair, strict=True)]
        becomes = [
            code.between(hunk.start + shift, hunk.start + shift + len(hunk.new))
            for code, hunk, shift in zip(after, pair, shifts, strict=True)
        ]
        shifts = [s + len(hunk.new) - (hunk.stop - hunk.start) for hunk, s in zip(pair, shifts, strict=True)]
        if [changed.get(token, token) for token in was[0]] != was[1]:
            return "what it replaces is not the same code, token by token"
        if [changed.get(token, token) for token in becomes[0]] != becomes[1]:
            return "what it puts there would not be the same code, token by token"
        spoken = sorted(name for name in changed if any(_speaks_of(token, name) for token in becomes[0]))
        if spoken:
            return f"its text speaks of {', '.join(spoken)} in a string or a comment, and that bears another name now"
    return None


def _speaks_of(token: str, name: str) -> bool:
    """Whether a string or a comment has the name in it."""
    if not token.startswith((_LITERAL, "#")) or name not in token:
        return False
    import re

    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", token) is not None
