"""Changing the text of a patch file at its tables and keys, with every other byte as it was.

Nothing here is believed: whoever uses it loads the result and compares (:func:`patchkit.author.port.port`).
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Sequence

from patchkit.edit.uniqueness import toml_string
from patchkit.errors import PatchFileError
from patchkit.model.lines import key_lines
from patchkit.model.patch import Condition, Edit

_HEADER = re.compile(r"[ \t]*\[")
_SHORT = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'[^']*'")
_LONG = {"'''": re.compile(r"(?:'{0,2}[^'])*'{3,5}"), '"""': re.compile(r'(?:\\.|"{0,2}[^"\\])*"{3,5}')}
"""Up to the end of a string between three quotes on its last line (TOML 1.0: one or two quotes may end its text)."""


class PatchText:
    """The text of one patch file. Tables count from 1, as they stand when a method is called."""

    def __init__(self, data: bytes) -> None:
        """Raise :class:`PatchFileError` where line breaks are mixed: no change of it would be sure."""
        self._bom = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
        text = data[len(self._bom) :].decode("utf-8")
        self._crlf = "\r\n" in text
        if self._crlf and text.count("\r\n") != text.count("\n"):
            raise PatchFileError("the patch file has line breaks of two kinds", hint="make them one kind first")
        self.text = text.replace("\r\n", "\n")
        if not self.text.endswith("\n"):
            self.text += "\n"

    def data(self) -> bytes:
        """The bytes as they are now."""
        text = self.text.replace("\n", "\r\n") if self._crlf else self.text
        return self._bom + text.encode("utf-8")

    def set_string(self, path: tuple[str | int, ...], value: str) -> None:
        """Give a key of a table a one-line string; a key that is not there comes before the table's anchor or action.

        Raises:
            PatchFileError: The value that is there is not a string on the key's own line.
        """
        lines = self.text.split("\n")
        known = key_lines(self.text)
        literal = toml_string(value) or ""
        key = str(path[-1])
        number = known.get(path)
        if number is not None:
            pattern = re.compile(
                rf"([ \t]*(?:\w+\.)*{re.escape(key)}[ \t]*=[ \t]*)(\"[^\"\\]*\"|'[^']*')([ \t]*(?:#.*)?)"
            )
            found = pattern.fullmatch(lines[number - 1])
            if found is None:
                raise PatchFileError(
                    f"line {number}: `{key}` is not a string on its own line", hint="change it by hand"
                )
            lines[number - 1] = found.group(1) + literal + found.group(3)
        else:
            own = {p[-1]: n for p, n in known.items() if len(p) == len(path) and p[:-1] == path[:-1]}
            anchors = [n for name, n in own.items() if name not in ("file", "scope", "inside", "count", "nth")]
            at = min(anchors or own.values())
            width = len(lines[at - 1].partition("=")[0].rstrip(" "))
            gap = len(lines[at - 1].partition("=")[0])
            padded = key.ljust(gap - 1) if gap > width + 1 or gap - 1 > len(key) else key
            lines.insert(at - 1, f"{padded} = {literal}")
        self.text = "\n".join(lines)

    def set_text(self, path: tuple[str | int, ...], value: str, *, rename: str | None = None) -> None:
        """Give a key that is there another string, of any number of lines; what stands behind it stays.

        Args:
            path: The key.
            value: The string.
            rename: The key's new name.

        Raises:
            PatchFileError: The value that is there does not end where it can be told for sure, or TOML cannot hold the
                new one.
        """
        lines = self.text.split("\n")
        known = key_lines(self.text)
        number = known.get(path)
        key = str(path[-1])
        head = None if number is None else re.match(rf"([ \t]*){re.escape(key)}([ \t]*)=([ \t]*)", lines[number - 1])
        end = None if number is None or head is None else _end_of_value(lines, number - 1, head.end())
        if number is None or head is None or end is None:
            raise PatchFileError(f"`{key}` is not written as a string of its own", hint="change it by hand")
        last, column = end
        indent, blanks, gap = head.groups()
        name = key + blanks
        if rename is not None:
            own = [n for p, n in known.items() if len(p) == len(path) and p[:-1] == path[:-1]]
            aligned = any(re.match(r"[ \t]*\w+ {2,}=", lines[n - 1]) for n in own)
            name = (rename.ljust(len(name) - 1) if aligned else rename) + blanks[:1]
        changed = f"{indent}{name}={gap}{_string(value)}{lines[last][column:]}"
        lines[number - 1 : last + 1] = changed.split("\n")
        self.text = "\n".join(lines)

    def drop(self, table: str, index: int) -> None:
        """Take a table out, with the blank lines behind it; comments stay.

        Raises:
            PatchFileError: It does not stand under a header of its own.
        """
        lines = self.text.split("\n")
        first, end = self.span(table, index)
        while end < len(lines) and not lines[end].strip():
            end += 1
        if end == len(lines):  # the last one: the blank lines before it go instead
            while first > 0 and not lines[first - 1].strip():
                first -= 1
            lines[first:] = [""]
        else:
            lines[first:end] = []
        self.text = "\n".join(lines)

    def span(self, table: str, index: int) -> tuple[int, int]:
        """The 0-based first line of a table of an array and the end of what belongs to it, comments behind it not.

        Raises:
            PatchFileError: It does not stand under a header of its own.
        """
        known = key_lines(self.text)
        lines = self.text.split("\n")
        first = known.get((table, index))
        if first is None or not _HEADER.match(lines[first - 1]):
            raise PatchFileError(
                f"{table} {index} does not stand under a header `[[{table}]]`", hint="change it by hand"
            )
        heads = [n for p, n in known.items() if n > first and p[:2] != (table, index) and _HEADER.match(lines[n - 1])]
        end = min(heads, default=len(lines) + 1) - 1
        while end > first and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
            end -= 1
        return first - 1, end

    def insert_behind(self, table: str, index: int, block: str) -> None:
        """Put a table behind another one, a blank line between them."""
        lines = self.text.split("\n")
        _, end = self.span(table, index)
        lines[end:end] = ["", *block.removesuffix("\n").split("\n")]
        self.text = "\n".join(lines)

    def replace(self, table: str, index: int, block: str) -> None:
        """Put a table in the place of another one."""
        lines = self.text.split("\n")
        first, end = self.span(table, index)
        lines[first:end] = block.removesuffix("\n").split("\n")
        self.text = "\n".join(lines)


def _end_of_value(lines: Sequence[str], first: int, column: int) -> tuple[int, int] | None:
    """The line and the column behind the string that begins at a place; None where that is not told for sure."""
    start = lines[first][column:]
    for quotes, ends in _LONG.items():
        if start.startswith(quotes):
            at, column = first, column + 3
            while at < len(lines):
                found = ends.match(lines[at], column)
                if found is not None:
                    return at, found.end()
                at, column = at + 1, 0
            return None
    found = _SHORT.match(lines[first], column)
    return None if found is None else (first, found.end())


def table_of(part: Edit | Condition) -> str:
    """The name of the array that a part of a patch stands in."""
    return "edit" if isinstance(part, Edit) else part.kind


def block_of(part: Edit | Condition) -> str:
    """An edit or a condition as TOML, without examples.

    Raises:
        PatchFileError: TOML cannot hold a text of it.
    """
    rows = list(_edit_rows(part) if isinstance(part, Edit) else _condition_rows(part))
    width = max(len(key) for key, _ in rows)
    return "\n".join([f"[[{table_of(part)}]]", *(f"{key.ljust(width)} = {value}" for key, value in rows)]) + "\n"


def _edit_rows(edit: Edit) -> Iterable[tuple[str, str]]:
    files = [_string(file) for file in edit.files]
    yield "file", files[0] if len(files) == 1 else f"[{', '.join(files)}]"
    for key in ("scope", "inside", "versions", "after", "before", "find", "match"):
        value = getattr(edit, key)
        if value is not None:
            yield key, _string(value)
    if edit.count != 1:
        yield "count", str(edit.count)
    if edit.nth is not None:
        yield "nth", str(edit.nth)
    if edit.action == "delete":
        yield "delete", "true"
    elif edit.action == "add_import":
        yield "add_import", f"[{', '.join(map(_string, edit.imports))}]"
    else:
        yield edit.action, _string(edit.text)


def _condition_rows(condition: Condition) -> Iterable[tuple[str, str]]:
    for key in ("file", "scope", "inside", "versions", "find", "match"):
        value = getattr(condition, key)
        if value is not None:
            yield key, _string(value)
    yield "count", f'"{condition.at_least}+"' if condition.at_most is None else str(condition.at_least)


def _string(text: str) -> str:
    literal = toml_string(text)
    if literal is None:
        raise PatchFileError("TOML cannot hold bytes that do not decode", hint="choose another anchor")
    return literal
