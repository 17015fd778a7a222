"""Where each key of a TOML document stands.

``tomllib`` forgets lines. This scanner finds them again, in a text that ``tomllib`` has already accepted: it knows
where keys, strings, arrays and tables begin and end, and nothing about values. It runs only when a line is wanted.
"""

from __future__ import annotations

import re

from patchkit.model.keys import MAX_PARTS
from patchkit.tuples import NamedTuple

KeyPath = tuple[str | int, ...]

_BLANK = re.compile(r"[ \t]*")
_SPACE = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BASIC = re.compile(r'"[^"\\\n]*(?:\\.[^"\\\n]*)*"')
_LITERAL = re.compile(r"'[^'\n]*'")
# A closing delimiter may follow one or two quotes that belong to the string: the run is taken whole.
_BASIC_END = re.compile(r'\\[\s\S]|"{3,5}')
_LITERAL_END = re.compile(r"'{3,5}")
_SCALAR = re.compile(r"[^,\]}#\r\n]+")

# What lies behind so many paths, or parts of paths, has no line of its own: some seconds, and 50 MB.
_MOST = 200_000
_BUDGET = 3_000_000
_MOST_REPEATS = 100


class Repeat(NamedTuple):
    """A key that is set twice: its path and both 1-based lines."""

    path: KeyPath
    first: int
    second: int


class _Lost(Exception):
    """The text is not TOML here, or more than is worth a line."""


class _Open:
    """An array (``count`` = items begun) or inline table (``count`` is None) whose end has not come yet."""

    __slots__ = ("count", "path")

    def __init__(self, path: KeyPath, count: int | None) -> None:
        self.path = path
        self.count = count


def key_lines(text: str) -> dict[KeyPath, int]:
    """Map every key path of a TOML document to the 1-based line its key stands on.

    Array tables and the items of arrays are numbered from 1: ``("edit", 2, "find")``, ``("links", 1)``. A table
    has the line of its header; one that no header names, the line of the first key in it. What follows a
    mistake in TOML is left out, and so is what comes after hundreds of thousands of keys.
    """
    scanner = _Scanner(text)
    scanner.run()
    return scanner.lines


def repeated_keys(text: str) -> list[Repeat]:
    """The keys of a TOML document that are set twice in one table, in order; of many the first hundred."""
    scanner = _Scanner(text)
    scanner.run()
    return scanner.repeats


def deep_key(text: str) -> int | None:
    """The line of the first key of more than :data:`MAX_PARTS` dotted parts; ``text`` need not be TOML."""
    scanner = _Scanner(text)
    scanner.run()
    return scanner.deep


class _Scanner:
    """One pass over a document, without recursion: nesting costs no stack."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[KeyPath, int] = {}
        self.repeats: list[Repeat] = []
        self.deep: int | None = None
        self._budget = _BUDGET
        self._tables: dict[KeyPath, int] = {}  # array tables, and how many of each have begun
        self._set: set[KeyPath] = set()
        self._line = 1
        self._line_at = 0

    def run(self) -> None:
        """Scan to the end, or to the first place that is not TOML."""
        table: KeyPath = ()
        try:
            while True:
                self._skip(_SPACE)
                if self.at >= len(self.text):
                    return
                if self.text[self.at] == "[":
                    table = self._header()
                else:
                    self._value(self._assignment(table))
        except _Lost:
            return

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self.text, self.at)
        if found:
            self.at = found.end()

    def _here(self) -> int:
        """The line of the current position; positions only ever grow."""
        self._line += self.text.count("\n", self._line_at, self.at)
        self._line_at = self.at
        return self._line

    def _spend(self, path: KeyPath) -> None:
        """Count a path that is kept: paths of nested arrays grow with the square of the text."""
        self._budget -= len(path)
        if self._budget < 0 or len(self.lines) >= _MOST:
            raise _Lost

    def _expect(self, token: str) -> None:
        if not self.text.startswith(token, self.at):
            raise _Lost
        self.at += len(token)

    def _header(self) -> KeyPath:
        """``[a.b]`` or ``[[a.b]]``: the path under which the following keys lie."""
        line = self._here()
        double = self.text.startswith("[[", self.at)
        self.at += 2 if double else 1
        keys = self._keys()
        self._expect("]]" if double else "]")
        path: KeyPath = ()
        for key in keys[:-1]:
            path += (key,)
            self.lines.setdefault(path, line)
            if path in self._tables:
                path += (self._tables[path],)
        path += (keys[-1],)
        self._spend(path)
        if double:
            self.lines.setdefault(path, line)
            self._tables[path] = self._tables.get(path, 0) + 1
            path += (self._tables[path],)
        self.lines[path] = line
        return path

    def _assignment(self, table: KeyPath) -> KeyPath:
        """``key =`` or ``a.b.c =``: the path of the key, with the value due at the position."""
        line = self._here()
        keys = self._keys()
        self._expect("=")
        self._skip(_BLANK)
        path = table
        for key in keys[:-1]:
            path += (key,)
            self.lines.setdefault(path, line)
        path += (keys[-1],)
        self._spend(path)
        if path in self._set:
            self.repeats.append(Repeat(path, self.lines[path], line))
            if len(self.repeats) == _MOST_REPEATS:
                raise _Lost
        self._set.add(path)
        self.lines.setdefault(path, line)
        return path

    def _keys(self) -> list[str]:
        """A bare, quoted or dotted key, with the blanks around it."""
        keys: list[str] = []
        while True:
            self._skip(_BLANK)
            if len(keys) == MAX_PARTS:
                self.deep = self._here()
                raise _Lost
            keys.append(self._key())
            self._skip(_BLANK)
            if not self.text.startswith(".", self.at):
                return keys
            self.at += 1

    def _key(self) -> str:
        for pattern in (_BARE_KEY, _LITERAL, _BASIC):
            found = pattern.match(self.text, self.at)
            if found:
                self.at = found.end()
                token = found.group()
                if pattern is _BARE_KEY:
                    return token
                return token[1:-1] if "\\" not in token or pattern is _LITERAL else _unescape(token)
        raise _Lost

    def _value(self, path: KeyPath) -> None:
        """The value that begins here, with every key and item inside it."""
        stack: list[_Open] = []
        while True:
            if self.text.startswith("[", self.at):
                stack.append(_Open(path, 0))
                self.at += 1
            elif self.text.startswith("{", self.at):
                stack.append(_Open(path, None))
                self.at += 1
            else:
                self._scalar()
            inner = self._next(stack)
            if inner is None:
                return
            path = inner

    def _next(self, stack: list[_Open]) -> KeyPath | None:
        """Go on to the next value inside the open arrays and inline tables; None when the last one closes."""
        while stack:
            self._skip(_SPACE)
            character = self.text[self.at : self.at + 1]
            if not character:
                raise _Lost
            if character == ",":
                self.at += 1
            elif character in "]}":
                stack.pop()
                self.at += 1
            elif stack[-1].count is None:
                return self._assignment(stack[-1].path)
            else:
                stack[-1].count += 1
                path = (*stack[-1].path, stack[-1].count)
                self._spend(path)
                self.lines[path] = self._here()
                return path
        return None

    def _scalar(self) -> None:
        if self.text.startswith('"""', self.at):
            self._long(_BASIC_END, '"')
        elif self.text.startswith("'''", self.at):
            self._long(_LITERAL_END, "'")
        else:
            first = self.text[self.at : self.at + 1]
            found = {'"': _BASIC, "'": _LITERAL}.get(first, _SCALAR).match(self.text, self.at)
            if not found:
                raise _Lost
            self.at = found.end()

    def _long(self, end: re.Pattern[str], quote: str) -> None:
        """A string between three quotes."""
        at = self.at + 3
        while True:
            found = end.search(self.text, at)
            if not found:
                raise _Lost
            at = found.end()
            if found.group().startswith(quote):
                self.at = at
                return


def _unescape(token: str) -> str:
    """The value of a quoted key with escapes."""
    import tomllib

    try:
        return str(tomllib.loads(f"key = {token}")["key"])
    except tomllib.TOMLDecodeError:
        return token[1:-1]
