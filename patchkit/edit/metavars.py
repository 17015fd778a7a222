"""Metavariables in Python text: finding them, and putting names in their place so that any parser reads the rest.

``$X`` becomes an identifier. Where Python allows no bare name for what the metavariable means, it becomes another form
of one: an argument behind a keyword argument is written ``*name``, a parameter behind a default ``name=0``, an item of
a dict ``**name``, the cases of a ``match`` ``case name: pass``. Such a metavariable is *wrapped*, and whoever reads the
tree knows that the form says nothing.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence

from patchkit.edit.lexer import CLOSING, OPENING, LexError, Token, lex
from patchkit.tuples import NamedTuple


class MetavariableError(ValueError):
    """A ``$`` that is no metavariable, or a text that cannot be read; ``line`` is 1-based."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


class Slot(NamedTuple):
    """One occurrence of a metavariable.

    ``name`` is None for ``$_`` and ``$$$``. ``code`` is what stands in the encoded text in its place, ``identifier``
    the name within that; ``wrapped`` is True where ``code`` is more than the identifier.
    """

    name: str | None
    many: bool
    identifier: str
    code: str
    wrapped: bool
    line: int

    @property
    def text(self) -> str:
        """The metavariable as it was written (``$_`` and ``$$$`` for unnamed ones)."""
        return ("$$$" if self.many else "$") + (self.name or ("" if self.many else "_"))


class Encoded(NamedTuple):
    """Text with identifiers for metavariables, and the slots by identifier."""

    text: str
    slots: dict[str, Slot]


class _Group:
    """An open bracket (or ``lambda``): its kind and its items so far, each a list of token indices at its level."""

    __slots__ = ("items", "kind")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.items: list[list[int]] = [[]]


def encode(text: str) -> Encoded:
    """Put identifiers for the metavariables of ``text``.

    Raises:
        MetavariableError: A ``$`` stands where no metavariable can, or a string does not end.
    """
    try:
        tokens = lex(text)
    except LexError as error:
        raise MetavariableError(str(error), text.count("\n", 0, error.position) + 1) from None
    _check(tokens, text)
    if "$" not in text:
        return Encoded(text, {})
    stem = max((*re.findall("pkmv+", text), "pkm"), key=len) + "v"
    code: dict[int, str] = {}
    wraps = _wrappings(tokens, text)
    slots: dict[str, Slot] = {}
    line, counted = 1, 0
    for position, token in enumerate(tokens):
        if token.kind != "meta":
            continue
        identifier = f"{stem}{len(slots)}_"
        form = wraps.get(position, "{}")
        code[position] = form.format(identifier)
        many = token.text.startswith("$$$")
        name: str | None = token.text[3 if many else 1 :]
        line, counted = line + text.count("\n", counted, token.start), token.start
        slots[identifier] = Slot(
            None if name in ("", "_") else name, many, identifier, code[position], form != "{}", line
        )
    out, at = [], 0
    for position, new in code.items():
        out += [text[at : tokens[position].start], new]
        at = tokens[position].end
    return Encoded("".join([*out, text[at:]]), slots)


def _check(tokens: Sequence[Token], text: str) -> None:
    for token in tokens:
        if token.kind == "op" and token.text == "$":
            raise MetavariableError(
                "a `$` that begins no metavariable: write $X for one expression, $$$XS for any number",
                text.count("\n", 0, token.start) + 1,
            )
        if token.kind == "meta":
            before, after = text[token.start - 1 : token.start], text[token.end : token.end + 1]
            if before == "$" or (before.isidentifier() or before.isdigit()) or after == "$":
                line = text.count("\n", 0, token.start) + 1
                raise MetavariableError(f"{token.text} must stand by itself, not as part of a longer name", line)


def _wrappings(tokens: Sequence[Token], text: str) -> dict[int, str]:
    """The forms (``*{}``, ``{}=0`` ...) for the metavariables that cannot be bare names, by token index."""
    forms: dict[int, str] = {}
    stack: list[_Group] = [_Group("line")]
    code: list[int] = []  # indices of the tokens that are neither comments nor breaks
    closed: dict[int, str] = {}  # kind of the group that the closing bracket at an index ended
    in_case = False
    for index, token in enumerate(tokens):
        if token.kind in ("comment", "newline"):
            if token.kind == "newline" and len(stack) == 1:
                in_case = False
            continue
        if token.kind in ("op", "fopen") and token.text in OPENING:
            stack[-1].items[-1].append(index)
            kind = "field" if token.kind == "fopen" else _kind(tokens, code, token.text, closed)
            stack.append(_Group(kind))
        elif token.kind in ("op", "fclose") and token.text in CLOSING and len(stack) > 1:
            while len(stack) > 2 and stack[-1].kind == "lambda":
                _close(stack.pop(), tokens, forms, in_case)
            group = stack.pop()
            closed[index] = group.kind
            _close(group, tokens, forms, in_case)
        elif token.kind == "op" and token.text == ":" and stack[-1].kind == "lambda":
            _close(stack.pop(), tokens, forms, in_case)
        elif token.kind == "op" and token.text == "," and len(stack) > 1:
            stack[-1].items.append([])
        else:
            stack[-1].items[-1].append(index)
            if token.kind == "name" and token.text == "lambda":
                stack.append(_Group("lambda"))
            elif token.text == "case" and len(stack) == 1:
                in_case = in_case or not text[text.rfind("\n", 0, token.start) + 1 : token.start].strip()
        code.append(index)
    _match_cases(tokens, text, forms)
    return forms


def _kind(tokens: Sequence[Token], code: list[int], bracket: str, closed: dict[int, str]) -> str:
    """What an opening bracket begins: ``call``, ``params``, ``type-def``, ``brace`` or ``other``."""
    words = [tokens[index] for index in code[-2:]]
    last = words[-1] if words else None
    named = last is not None and (last.kind == "meta" or (last.kind == "name" and not keyword.iskeyword(last.text)))
    introducer = words[0].text if len(words) == 2 and named else ""
    if bracket == "{":
        return "brace"
    if bracket == "[":
        return "type-def" if introducer == "def" else "other"
    if introducer == "def" or (code and closed.get(code[-1]) == "type-def"):
        return "params"
    if named or (last is not None and (last.text in (")", "]", "}") or last.kind in ("string", "fend"))):
        return "call"
    return "other"


def _close(group: _Group, tokens: Sequence[Token], forms: dict[int, str], in_case: bool) -> None:
    items = [item for item in group.items if item]
    lone = {item[0]: item for item in items if len(item) == 1 and tokens[item[0]].kind == "meta"}
    if not lone:
        return
    if group.kind == "call":
        _arguments(items, tokens, forms)
    elif group.kind in ("params", "lambda"):
        _parameters(items, tokens, forms)
    elif group.kind == "brace" and (in_case or len(lone) < len(items)):
        texts = [[tokens[index].text for index in item] for item in items]
        if in_case or any(":" in words or words[0] == "**" for words in texts):
            forms.update(dict.fromkeys(lone, "**{}"))


def _arguments(items: list[list[int]], tokens: Sequence[Token], forms: dict[int, str]) -> None:
    behind = ""
    for item in items:
        words = [tokens[index].text for index in item]
        if len(item) == 1 and tokens[item[0]].kind == "meta":
            if behind:
                forms[item[0]] = behind + "{}"
        elif words[0] == "**":
            behind = "**"
        elif len(words) > 1 and words[1] == "=":
            behind = behind or "*"


def _parameters(items: list[list[int]], tokens: Sequence[Token], forms: dict[int, str]) -> None:
    star = default = False
    for number, item in enumerate(items):
        words = [tokens[index].text for index in item]
        if words[0] in ("*", "**"):
            star = True
        elif "=" in words:
            default = True
        elif len(item) == 1 and tokens[item[0]].kind == "meta" and default and not star:
            if _plain_follows(items[number + 1 :], tokens):
                forms[item[0]] = "*{}"
                star = True
            else:
                forms[item[0]] = "{}=0"


def _plain_follows(items: list[list[int]], tokens: Sequence[Token]) -> bool:
    """True where a parameter without default follows before any ``*``."""
    for item in items:
        words = [tokens[index].text for index in item]
        if words[0] in ("*", "**"):
            return False
        if not (len(item) == 1 and tokens[item[0]].kind == "meta") and "=" not in words and words[0] != "/":
            return True
    return False


def _match_cases(tokens: Sequence[Token], text: str, forms: dict[int, str]) -> None:
    """``$$$`` alone on a line directly below ``match ...:`` stands for cases."""
    heads: list[tuple[int, str, str]] = []  # indentation, first and last word of each logical line around
    line: list[int] = []
    depth = 0
    for index in range(len(tokens) + 1):
        token = tokens[index] if index < len(tokens) else None
        if token is not None and token.kind != "newline":
            if token.kind != "comment":
                line.append(index)
            if token.kind in ("op", "fopen", "fclose"):
                depth += (token.text in OPENING) - (token.text in CLOSING)
            continue
        if depth > 0 or not line:
            continue
        first = tokens[line[0]]
        width = first.start - (text.rfind("\n", 0, first.start) + 1)
        while heads and heads[-1][0] >= width:
            heads.pop()
        if len(line) == 1 and first.text.startswith("$$$") and heads and heads[-1][1:] == ("match", ":"):
            forms[line[0]] = "case {}: pass"
        heads.append((width, first.text, tokens[line[-1]].text))
        line = []
