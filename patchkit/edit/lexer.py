"""A small tokenizer for slices of Python, for patterns with metavariables, and for the inside of f-strings.

The standard one cannot be used here: it refuses ``$``, wants whole programs, and before Python 3.12 takes an f-string
for one token. This one knows no grammar: it tells strings, comments, names, numbers and operators apart, which is all
that is needed to find brackets, commas and the lines that begin inside a string. It reads every version's f-strings
(and t-strings): before 3.12 the quote of the literal cannot stand within its braces, so one rule does for all.
"""

from __future__ import annotations

import re

from patchkit.tuples import NamedTuple

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\f]+|\\\n)
  | (?P<newline>\n)
  | (?P<comment>\#[^\n]*)
  | (?P<fstart>(?:[fFtT][rR]?|[rR][fFtT])(?:'''|\"\"\"|'|"))
  | (?P<string>(?:[rR][bB]?|[bB][rR]?|[uU])?(?:'''|\"\"\"|'|"))
  | (?P<meta>\$\$\$(?:[^\W\d]\w*)?|\$[^\W\d]\w*)
  | (?P<name>[^\W\d]\w*)
  | (?P<number>0[xXoObB][\da-fA-F_]+|(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d[\d_]*)?[jJ]?)
  | (?P<op>\*\*=?|//=?|>>=?|<<=?|->|:=|!=|\.\.\.|[-+*/%@&|^<>=]=|.)
    """,
    re.VERBOSE,
)
_STRING_END = {
    "'": re.compile(r"[^'\\\n]*(?:\\.[^'\\\n]*)*'", re.DOTALL),
    '"': re.compile(r'[^"\\\n]*(?:\\.[^"\\\n]*)*"', re.DOTALL),
    "'''": re.compile(r"[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''", re.DOTALL),
    '"""': re.compile(r'[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""', re.DOTALL),
}
_LITERAL_STOP = re.compile(r"""[\\{}'"]""")

OPENING = {"(": ")", "[": "]", "{": "}"}
CLOSING = {")": "(", "]": "[", "}": "{"}


class LexError(ValueError):
    """Text that is no Python, at ``position``: a string without an end."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


class Token(NamedTuple):
    """One token: ``text[start:end]``.

    ``kind`` is ``name``, ``number``, ``string``, ``op``, ``comment``, ``newline``, ``meta`` (``$X``) or a part of an
    f-string: ``fstart``, ``fmid``, ``fend``, and ``fopen``/``fspec``/``fclose`` for the ``{``, ``:`` and ``}`` of a
    replacement field.
    """

    kind: str
    start: int
    end: int
    text: str


class _Literal:
    """An open f-string: its quote, and the bracket depth within each replacement field that is open in it."""

    __slots__ = ("depths", "quote", "raw")

    def __init__(self, opening: str) -> None:
        self.quote = opening.lstrip("fFtTrR")
        self.raw = "r" in opening or "R" in opening
        self.depths: list[int] = []


def lex(text: str, start: int = 0, end: int | None = None) -> list[Token]:
    """The tokens of ``text[start:end]``, blanks and line continuations left out; positions are those of ``text``.

    Raises:
        LexError: A string does not end.
    """
    limit = len(text) if end is None else end
    tokens: list[Token] = []
    literals: list[_Literal] = []
    in_text = False  # within the literal text (or the format spec) of the innermost f-string, not its code
    at = start
    while at < limit:
        if in_text:
            literal = literals[-1]
            stop = _literal_stop(text, at, limit, literal)
            if stop > at:
                tokens.append(Token("fmid", at, stop, text[at:stop]))
            if text[stop] == "{":
                tokens.append(Token("fopen", stop, stop + 1, "{"))
                literal.depths.append(0)
                at, in_text = stop + 1, False
            elif text[stop] == "}":
                tokens.append(Token("fclose", stop, stop + 1, "}"))
                literal.depths.pop()
                at = stop + 1
            else:
                at = stop + len(literal.quote)
                tokens.append(Token("fend", stop, at, literal.quote))
                literals.pop()
                in_text = False
            continue
        match = _TOKEN.match(text, at, limit)
        assert match is not None  # the last alternative takes any character
        kind, begin, at = match.lastgroup or "op", at, match.end()
        if kind == "space":
            continue
        if kind == "string":
            closed = _STRING_END[match.group().lstrip("rRbBuU")].match(text, at, limit)
            if closed is None:
                raise LexError("unterminated string literal", begin)
            at = closed.end()
        elif kind == "fstart":
            literals.append(_Literal(match.group()))
            in_text = True
        elif kind == "op" and literals and literals[-1].depths:
            depths = literals[-1].depths
            char = match.group()
            if char in OPENING:
                depths[-1] += 1
            elif char in CLOSING and depths[-1]:
                depths[-1] -= 1
            elif char == "}":
                depths.pop()
                kind, in_text = "fclose", True
            elif char[0] == ":" and not depths[-1]:
                kind, at, in_text = "fspec", begin + 1, True
        tokens.append(Token(kind, begin, at, text[begin:at]))
    if literals:
        raise LexError("unterminated f-string literal", start)
    return tokens


def _literal_stop(text: str, at: int, limit: int, literal: _Literal) -> int:
    """Where the literal text that begins at ``at`` ends: at a field's ``{``, a format spec's ``}`` or the quote."""
    in_spec = bool(literal.depths)
    begin = at
    while True:
        found = _LITERAL_STOP.search(text, at, limit)
        if found is None:
            raise LexError("unterminated f-string literal", begin)
        at = found.start()
        char = text[at]
        after = text[at + 1 : at + 2]
        if char == "\\":
            if not literal.raw and text.startswith("N{", at + 1):
                at = text.find("}", at) + 1 or limit
            else:
                at += 1 if after in ("{", "}") else 2
        elif char == "{":
            if in_spec or after != "{":
                return at
            at += 2
        elif char == "}":
            if in_spec:
                return at
            at += 2 if after == "}" else 1
        elif text.startswith(literal.quote, at):
            return at
        else:
            at += 1


def code_tokens(tokens: list[Token]) -> list[Token]:
    """``tokens`` without comments and line breaks."""
    return [token for token in tokens if token.kind not in ("comment", "newline")]


def string_lines(tokens: list[Token], text: str) -> set[int]:
    """The positions at which a line begins within a string or f-string."""
    inside: set[int] = set()
    opened: list[int] = []
    for token in tokens:
        if token.kind == "string":
            begin = token.start
        elif token.kind == "fstart":
            opened.append(token.start)
            continue
        elif token.kind == "fend":
            begin = opened.pop()
        else:
            continue
        at = text.find("\n", begin, token.end)
        while at >= 0:
            inside.add(at + 1)
            at = text.find("\n", at + 1, token.end)
    return inside


def matching(tokens: list[Token], index: int) -> int:
    """The index of the bracket that belongs to the one at ``index``; -1 where ``tokens`` do not hold it."""
    depth = 0
    step = 1 if tokens[index].text in OPENING else -1
    while 0 <= index < len(tokens):
        token = tokens[index]
        if token.kind in ("op", "fopen", "fclose"):
            if token.text in OPENING:
                depth += step
            elif token.text in CLOSING:
                depth -= step
            if depth == 0:
                return index
        index += step
    return -1
