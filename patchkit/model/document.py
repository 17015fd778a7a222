"""Reading TOML by tables of keys, with every problem collected before any is raised.

Serves all files that people write for patchkit: patch files, and the project's list.
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from patchkit.errors import PatchFileError
from patchkit.model.checks import CHECKS, Complaint, quote
from patchkit.model.keys import MAX_PARTS, TABLES, Key, Table, expected
from patchkit.runtime.ledger import read_regular
from patchkit.tuples import NamedTuple
from patchkit.visible import visible

if TYPE_CHECKING:
    from patchkit.model.lines import KeyPath

MAX_BYTES = 8 * 1024 * 1024
"""The largest file that is read. A patch of more than that is not one."""
MAX_PROBLEMS = 100
"""Reading ends at that many problems of one file: whoever wrote them knows by then."""

_PLACE = r"(?s)(.*) \(at (?:line (\d+), column (\d+)|end of document)\)"
_CLOSEST = 0.6  # difflib's own default: below it, suggestions confuse more than they help
_EXCERPT = 100
_LONGEST = 64  # characters of a key that is compared with known ones
_BITS = 64  # of an integer, by TOML
_DEEPEST = 16  # of a value of any form


class Problem(NamedTuple):
    """One thing that is wrong with a file. ``message`` names the table and key, but not the file and line."""

    at: KeyPath
    message: str
    suggestion: str | None = None
    line: int | None = None


class Fields(NamedTuple):
    """What a table says: the values that are right, and the keys that are there or evidently meant."""

    values: dict[str, Any]
    seen: set[str]


def describe(at: KeyPath) -> str:
    """A key path in words, as messages begin: ``("edit", 2, "example", 1)`` is ``edit 2: example 1``."""
    out = ""
    after_index = False
    for part in at:
        if isinstance(part, int):
            out += f" {part}"
        elif out:
            out += (": " if after_index else ".") + _plain_key(part)
        else:
            out = _plain_key(part)
        after_index = isinstance(part, int)
    return out


def _plain_key(part: str) -> str:
    """A part of a key path as messages show it: bare where TOML allows that, else quoted; cut off where it is long."""
    bare = part.isascii() and part.replace("-", "").replace("_", "").isalnum() and len(part) <= _LONGEST
    return part if bare else quote(part)


def dotted(at: KeyPath) -> str:
    """A key path for machines: ``("edit", 2, "find")`` is ``edit[2].find``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{_plain_key(part)}" for part in at).removeprefix(".")


def file_error(path: str | None, problems: list[Problem], *, hint: str | None = None) -> PatchFileError:
    """The error for a file with ``problems``: a line for each, in the order of the file."""
    ordered = sorted(problems, key=lambda problem: problem.line or 0)
    shown = visible(path) if path is not None else "<patch>"
    rows = []
    for problem in ordered:
        head, newline, excerpt = problem.message.partition("\n")
        meant = f" (did you mean {quote(problem.suggestion)}?)" if problem.suggestion is not None else ""
        place = f"{shown}:{problem.line}" if problem.line else shown
        rows.append(f"{place}: {head}{meant}{newline}{excerpt}")
    data = [
        {
            "path": path,
            "line": problem.line,
            "key": dotted(problem.at) or None,
            "message": problem.message,
            "suggestion": problem.suggestion,
        }
        for problem in ordered
    ]
    first = data[0]
    return PatchFileError(
        "\n".join(rows),
        hint=hint,
        details={"path": path, "line": first["line"], "key": first["key"], "problems": data},
    )


def read_document(path: str) -> bytes:
    """The bytes of a file that people write for patchkit.

    Raises:
        PatchFileError: It cannot be read, or is no regular file.
    """
    try:
        return read_regular(path, MAX_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise file_error(path, [Problem((), f"cannot be read: {reason}")]) from None


class Document:
    """One TOML file: its text, its table, and the problems found in it so far."""

    def __init__(self, data: bytes, path: str | None, *, home: Callable[[str, str], str | None] | None = None) -> None:
        """Decode and parse.

        Args:
            data: The file's bytes: UTF-8, a byte order mark is allowed.
            path: What to call the file in messages.
            home: Says for an unknown key and the name of its table where the key belongs, in words, if anywhere.

        Raises:
            PatchFileError: Too large, not UTF-8, not TOML.
        """
        self.path = path
        self.problems: list[Problem] = []
        self._home = home
        self._lines: dict[KeyPath, int] | None = None
        self.text = decode(data, path)
        self.root = parse(self.text, path)

    def problem(self, at: KeyPath, message: str, suggestion: str | None = None) -> None:
        """Note a problem of the key (or table) ``at``; its line is that of the nearest key above that has one."""
        if self._lines is None:
            from patchkit.model.lines import key_lines  # lines are only told of what is wrong

            self._lines = key_lines(self.text)
        line = next((self._lines[at[:n]] for n in range(len(at), 0, -1) if at[:n] in self._lines), None)
        self.problems.append(Problem(at, message, suggestion, line))
        if len(self.problems) == MAX_PROBLEMS:
            self.finish(hint=f"only the first {MAX_PROBLEMS} problems are shown; correct them and look again")

    def key_problem(self, at: KeyPath, message: str, suggestion: str | None = None) -> None:
        """Note a problem of the value of the key ``at``; the message is given its table and key."""
        item = f": item {at[-1]}" if isinstance(at[-1], int) else ""
        key = at[:-1] if item else at
        table = describe(key[:-1])
        self.problem(at, f"{table}{': ' if table else ''}{key[-1]}{item}: {message}", suggestion)

    def table_problem(self, table: KeyPath, at: KeyPath, message: str, suggestion: str | None = None) -> None:
        """Note a problem of a whole table, shown on the line of ``at``."""
        shown = describe(table)
        self.problem(at, f"{shown}{': ' if shown else ''}{message}", suggestion)

    def finish(self, *, hint: str | None = None) -> None:
        """Raise what was collected, if anything was, with a way out for all of it.

        Raises:
            PatchFileError: With every problem in ``details["problems"]``.
        """
        if self.problems:
            raise file_error(self.path, self.problems, hint=hint)

    def read(self, raw: Mapping[str, object], at: KeyPath, table: Table) -> Fields:
        """Read one table by its keys: unknown keys, types, constraints and required keys are checked here."""
        values: dict[str, Any] = {}
        seen = set(raw)
        for name, value in raw.items():
            key = table.keys.get(name)
            if key is None and table.others is not None and _matches(table.naming or "", name):
                key = table.others
            if key is None:
                meant = self._unknown(name, at, table)
                if meant is not None:
                    seen.add(meant)
                continue
            before = len(self.problems)
            converted = self._value(key, value, (*at, name))
            if len(self.problems) == before:
                values[name] = converted
        for key in table.keys.values():
            if key.required and key.name not in seen:
                self.table_problem(at, at, f"required key {quote(key.name)} is missing")
        return Fields(values, seen)

    def _unknown(self, name: str, at: KeyPath, table: Table) -> str | None:
        """Note an unknown key; returns the key that was evidently meant."""
        if table.others is not None and not table.keys:
            self.table_problem(at, (*at, name), f"key {quote(name)}: expected a name that matches {table.naming}")
            return None
        message = f"unknown key {quote(name)}"
        home = self._home(name, table.name) if self._home else None
        if home is not None:
            self.table_problem(at, (*at, name), f"{message}: {home}")
            return None
        import difflib

        word = name[: _LONGEST + 1].lower().replace("-", "_")
        close = difflib.get_close_matches(word, table.keys, n=1, cutoff=_CLOSEST)
        meant = close[0] if close else None
        self.table_problem(at, (*at, name), message, meant)
        return meant

    def _value(self, key: Key, value: object, at: KeyPath) -> Any:
        """Check one value against its key and return it in the form that the model wants."""
        if not _fits(key, value):
            self.key_problem(at, _mismatch(key, value, at))
            return value
        if isinstance(value, list) and key.type not in ("tables", "any"):
            return self._strings(key, value, at)
        self._one(key, value, at)
        if key.type == "text" and isinstance(value, str):
            return newlines(value)
        if key.type == "number" and isinstance(value, int):
            return float(value)
        return (value,) if key.type == "string-or-strings" else value

    def _strings(self, key: Key, values: list[object], at: KeyPath) -> tuple[str, ...]:
        if key.non_empty and not values:
            self.key_problem(at, "must not be empty")
        done: dict[str, int] = {}
        for number, value in enumerate(values, 1):
            if not isinstance(value, str):
                self.key_problem((*at, number), f"expected a string, found {toml_type(value)}")
                continue
            self._one(key, value, (*at, number))
            if key.unique and value in done:
                self.key_problem((*at, number), f"{quote(value)} is there already, as item {done[value]}")
            done.setdefault(value, number)
        return tuple(value for value in values if isinstance(value, str))

    def _one(self, key: Key, value: object, at: KeyPath) -> None:
        """The constraints on a single value of the right type."""
        if key.enum and value not in key.enum:
            self._unlisted(key.enum, value, at)
        elif isinstance(value, int | float):
            outside = _outside(key, value)
            if outside:
                self.key_problem(at, outside)
        elif isinstance(value, str):
            complaint = None if value in key.words else _complaint(key, value)
            if complaint:
                self.key_problem(at, complaint.message, complaint.suggestion)

    def _unlisted(self, options: tuple[object, ...], value: object, at: KeyPath) -> None:
        """Note a value that is none of the few that there are."""
        wanted = " or ".join(_plain(option) for option in options)
        meant = None
        if isinstance(value, str):
            import difflib

            close = difflib.get_close_matches(value[:_LONGEST], [str(option) for option in options], n=1)
            meant = close[0] if close else None
        self.key_problem(at, f"must be {wanted}, found {_plain(value)}", meant)


def _outside(key: Key, value: float) -> str | None:
    """Why a number is not within the bounds of its key."""
    if not math.isfinite(value):
        return f"must be finite, found {value}"
    if key.minimum is not None and value < key.minimum:
        return f"must be at least {key.minimum}, found {value}"
    if key.above is not None and value <= key.above:
        return f"must be more than {key.above}, found {value}"
    if key.maximum is not None and value > key.maximum:
        return f"must be at most {key.maximum}, found {value}"
    return None


def _complaint(key: Key, value: str) -> Complaint | None:
    if key.non_empty and not value:
        return Complaint("must not be empty")
    complaint = CHECKS[key.check](value) if key.check else None
    if complaint:
        return complaint
    if key.pattern and not _matches(key.pattern, value):
        wanted = expected(key) if key.type == "count" else f"a string that matches {key.pattern}"
        return Complaint(f"expected {wanted}, found {quote(value)}")
    return None


def _matches(pattern: str, value: str) -> bool:
    """Whether a pattern is found; its "$" is ECMA's: the very end, where Python's would allow a last newline."""
    return re.search(re.sub(r"(?<!\\)\$$", r"\\Z", pattern), value) is not None


def _fits(key: Key, value: object) -> bool:
    """Whether a value has the type of its key; the items of arrays of strings are looked at one by one."""
    if isinstance(value, str) and value in key.words:
        return True
    match key.type:
        case "string" | "text":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool) and not _oversized(value)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool) and not _oversized(value)
        case "boolean":
            return isinstance(value, bool)
        case "strings":
            return isinstance(value, list)
        case "string-or-strings":
            return isinstance(value, str | list)
        case "count" | "string-or-integer":
            return isinstance(value, int | str) and not isinstance(value, bool) and not _oversized(value)
        case "table":
            return isinstance(value, dict)
        case "tables":
            return isinstance(value, list) and all(isinstance(item, dict) for item in value)
        case "any":
            return unlike_json(value) is None


def unlike_json(value: object) -> str | None:
    """What in a TOML value JSON cannot say (a date, an infinite number), or is nested beyond use; None: nothing."""
    left: list[tuple[object, int]] = [(value, 1)]
    while left:
        item, depth = left.pop()
        if depth > _DEEPEST:
            return f"values nested more than {_DEEPEST} deep"
        if isinstance(item, dict | list):
            left.extend((one, depth + 1) for one in (item.values() if isinstance(item, dict) else item))
        elif isinstance(item, float):
            if not math.isfinite(item):
                return f"the number {item}"
        elif not isinstance(item, str | int) or _oversized(item):
            return toml_type(item)
    return None


def _oversized(value: object) -> bool:
    """Whether an integer is beyond what TOML promises. Python cannot even print one of many thousand digits."""
    return isinstance(value, int) and value.bit_length() >= _BITS


def _mismatch(key: Key, value: object, at: KeyPath) -> str:
    found = unlike_json(value) if key.type == "any" else toml_type(value)
    message = f"expected {expected(key)}, found {found}"
    full = ".".join(part for part in at if isinstance(part, str))
    if key.type == "tables" and isinstance(value, dict):
        return f"{message}: write [[{full}]], not [{full}]"
    if key.type == "table" and isinstance(value, list):
        return f"{message}: write [{full}], not [[{full}]]"
    if key.check == "argument" and isinstance(value, bool | int | float):
        return f'{message}: write it in quotes, "{_plain(value)}"'
    return message


def toml_type(value: object) -> str:
    """What TOML calls the type of a value, with its article."""
    if isinstance(value, list):
        return "an array of tables" if value and all(isinstance(item, dict) for item in value) else "an array"
    if _oversized(value):
        return f"an integer of more than {_BITS} bits"
    names = {
        "str": "a string", "int": "an integer", "float": "a float", "bool": "a boolean", "dict": "a table",
        "datetime": "a date-time", "date": "a date", "time": "a time",
    }  # fmt: skip
    return names[type(value).__name__]


def newlines(text: str) -> str:
    """``text`` with every line break written as ``\\n``."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _plain(value: object) -> str:
    if isinstance(value, str):
        return quote(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def decode(data: bytes, path: str | None) -> str:
    """The text of a file: UTF-8, without byte order mark, line breaks as TOML has them.

    Raises:
        PatchFileError: Larger than :data:`MAX_BYTES`, or not UTF-8.
    """
    if len(data) > MAX_BYTES:
        raise file_error(path, [Problem((), f"is larger than {MAX_BYTES // 1024 // 1024} MB, the most that is read")])
    bom = len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0
    try:
        return data[bom:].decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        offset = error.start + bom
        line = data.count(b"\n", 0, offset) + 1
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        problem = Problem((), "is UTF-16; TOML is UTF-8")
    else:
        problem = Problem((), f"not UTF-8: byte 0x{data[offset]:02x} at offset {offset}", line=line)
    raise file_error(path, [problem], hint="save the file as UTF-8")


def parse(text: str, path: str | None) -> dict[str, Any]:
    """The document of a TOML text.

    Raises:
        PatchFileError: Not TOML: with line, column, and the line itself with a caret under the place.
    """
    import tomllib

    if any(row.count(".") >= MAX_PARTS for row in text.split("\n")):  # a key stands on one line
        from patchkit.model.lines import deep_key

        deep = deep_key(text)
        if deep is not None:
            raise file_error(path, [Problem((), f"a key of more than {MAX_PARTS} dotted parts", line=deep)])
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(text, path, str(error)) from None
    except RecursionError:
        reason = "arrays or tables are nested too deeply"
    except ValueError:  # an integer of thousands of digits
        reason = f"not valid TOML: it holds an integer of more than {_BITS} bits"
    except MemoryError:
        reason = "is too large for the memory that there is"
    raise file_error(path, [Problem((), reason)])


def _syntax_error(text: str, path: str | None, message: str) -> PatchFileError:
    from patchkit.model.lines import repeated_keys

    repeats = repeated_keys(text) if message.startswith("Cannot overwrite") else []
    if repeats:
        problems = [
            Problem(
                again.path,
                f"{_prefix(again.path)}{again.path[-1]}: is set twice, first on line {again.first}",
                line=again.second,
            )
            for again in repeats
        ]
        table = repeats[0].path[0]
        listed = len(repeats[0].path) == 3 and table in (*TABLES, "point", "evidence")
        return file_error(path, problems, hint=f"a new [[{table}]] header begins the next {table}" if listed else None)
    place = re.fullmatch(_PLACE, message)
    reason = place.group(1) if place else message
    rows = text.split("\n")
    if place and place.group(2):
        line, column = int(place.group(2)), int(place.group(3))
    else:
        line = len(rows) - 1 if len(rows) > 1 and not rows[-1] else len(rows)
        column = len(rows[line - 1]) + 1
    reason = reason[:1].lower() + reason[1:]
    excerpt = _excerpt(rows[line - 1] if line <= len(rows) else "", column)
    hint = None
    if reason.startswith("unescaped"):
        hint = "write code between ''' and ''', where a backslash is only a backslash"
    problem = Problem((), f"not valid TOML: {reason} (column {column})\n{excerpt}", line=line)
    return file_error(path, [problem], hint=hint)


def _prefix(at: KeyPath) -> str:
    table = describe(at[:-1])
    return f"{table}: " if table else ""


def _excerpt(row: str, column: int) -> str:
    """The part of a line around a 1-based column, and a caret under the column."""
    start = max(0, column - 1 - _EXCERPT // 2) if len(row) > _EXCERPT else 0
    before = visible(row[start : column - 1], keep="\t")
    after = visible(row[column - 1 : start + _EXCERPT], keep="\t")
    lead = "".join("\t" if character == "\t" else " " for character in before)
    return f"    {before}{after}\n    {lead}^"
