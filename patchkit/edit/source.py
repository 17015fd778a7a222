"""A file's bytes as text that anchors can be matched on, and the way back to bytes.

Everything in :mod:`patchkit.edit` works on ``Source.text``: decoded once, without the byte order mark, every line
break written as ``\\n``. Offsets ("positions") are indices into that text. Line breaks are ``\\r\\n``, ``\\r`` and
``\\n`` only, as the Python tokenizer has it: a form feed, a vertical tab or U+2028 does not end a line, so
``str.splitlines`` is never used.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from collections.abc import Sequence

from patchkit.errors import PlanError
from patchkit.tuples import NamedTuple

_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BLANK = re.compile(rb"^[ \t\f]*(?:[#\r\n]|$)")
_BREAK = re.compile(r"\r\n|\r|\n")
_FALLBACK = "utf-8/surrogateescape"


class ByteSplice(NamedTuple):
    """One replaced run of bytes: ``data[start:end] == old`` becomes ``new``."""

    start: int
    end: int
    old: bytes
    new: bytes


class Splice(NamedTuple):
    """One replaced run of ``Source.text``: ``text[start:end]`` becomes ``new`` (in ``\\n`` form).

    ``edit`` is the 1-based index of the edit it comes from (0: none); ``side`` orders insertions at one
    position: an insertion *after* something (-1) stands before an insertion *before* something (+1), and 0 is a
    replacement or an insertion of neither kind.
    """

    start: int
    end: int
    new: str
    edit: int = 0
    side: int = 0


def python_encoding(data: bytes) -> tuple[str, int]:
    """The encoding of Python source by PEP 263, and the length of its byte order mark.

    Raises:
        LookupError: The cookie names an encoding that this Python does not know.
        ValueError: A UTF-8 byte order mark stands with a cookie for another encoding.
    """
    bom = len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0
    head = re.split(rb"\r\n|\r|\n", data[bom : bom + 4096], maxsplit=2)
    for number, line in enumerate(head[:2]):
        found = _COOKIE.match(line)
        if found:
            name = codecs.lookup(found.group(1).decode("ascii")).name
            if bom and name != "utf-8":
                raise ValueError(f"byte order mark of UTF-8 with the cookie {name}")
            return name, bom
        if number == 0 and not _BLANK.match(line):
            break
    return "utf-8", bom


class Source:
    """One file, decoded. ``newline`` is its prevailing line break, ``mixed`` whether it has several kinds."""

    __slots__ = (
        "__weakref__",
        "_breaks",
        "_byte_starts",
        "bom",
        "data",
        "encoding",
        "mixed",
        "newline",
        "path",
        "starts",
        "text",
    )

    def __init__(self, data: bytes, *, path: str = "<source>") -> None:
        """Decode ``data``; Python source by its cookie, any other file as UTF-8.

        Bytes that the encoding cannot decode are kept as surrogate escapes, so that text edits work on them.
        """
        self.data = data
        self.path = path
        self.encoding, self.bom = _encoding(data, path)
        body = data[self.bom :]
        try:
            raw = body.decode(self.encoding)
            exact = raw.encode(self.encoding) == body
        except (ValueError, LookupError):  # LookupError: a codec that is none of text, such as rot13
            exact = False
        if not exact:
            self.encoding = _FALLBACK
            raw = body.decode("utf-8", "surrogateescape")
        self._breaks: list[str] | None = None
        if "\r" in raw:
            breaks = _BREAK.findall(raw)
            kinds = {kind: breaks.count(kind) for kind in ("\n", "\r\n", "\r")}
            self.newline = max(kinds, key=lambda kind: kinds[kind])
            self.mixed = sum(1 for n in kinds.values() if n) > 1
            if self.mixed:
                self._breaks = breaks
            self.text = _BREAK.sub("\n", raw)
        else:
            self.newline, self.mixed, self.text = "\n", False, raw
        self.starts = [0]
        position = self.text.find("\n")
        while position >= 0:
            self.starts.append(position + 1)
            position = self.text.find("\n", position + 1)
        self._byte_starts: list[int] | None = None

    @property
    def decodes(self) -> bool:
        """False where the bytes are not valid in the file's encoding (no parse is possible then)."""
        return self.encoding != _FALLBACK

    def line(self, position: int) -> int:
        """The 1-based line that ``position`` lies on."""
        return bisect_right(self.starts, position)

    def column(self, position: int) -> int:
        """The 1-based column of ``position``, in characters."""
        return position - self.starts[self.line(position) - 1] + 1

    def line_start(self, position: int) -> int:
        """The position of the first character of the line that ``position`` lies on."""
        return self.starts[self.line(position) - 1]

    def line_end(self, position: int) -> int:
        """The position just behind the line break of the line that ``position`` lies on (or the text's end)."""
        line = self.line(position)
        return self.starts[line] if line < len(self.starts) else len(self.text)

    def line_text(self, line: int) -> str:
        """The 1-based ``line`` without its line break."""
        end = self.starts[line] - 1 if line < len(self.starts) else len(self.text)
        return self.text[self.starts[line - 1] : end]

    def position(self, line: int, utf8_column: int) -> int:
        """The position that ``ast`` calls (``lineno``, ``col_offset``): the column counts UTF-8 bytes."""
        start = self.starts[line - 1]
        end = self.starts[line] if line < len(self.starts) else len(self.text)
        content = self.text[start:end]
        if content.isascii():
            return start + utf8_column
        return start + len(content.encode("utf-8", "surrogateescape")[:utf8_column].decode("utf-8", "surrogateescape"))

    def byte(self, position: int) -> int:
        """The offset in ``data`` of ``position``."""
        if len(self.data) - self.bom == len(self.text):
            return self.bom + position  # one byte a character, and no line break of two
        if self._byte_starts is None:
            offsets, offset = [], self.bom
            for index, start in enumerate(self.starts):
                offsets.append(offset)
                if index + 1 < len(self.starts):
                    content = self.text[start : self.starts[index + 1] - 1]
                    offset += len(_encode(content, self.encoding)) + len(
                        _encode(self.line_break(index + 1), self.encoding)
                    )
            self._byte_starts = offsets
        line = self.line(position)
        content = self.text[self.starts[line - 1] : position]
        return self._byte_starts[line - 1] + len(_encode(content, self.encoding))

    def line_break(self, line: int) -> str:
        """The line break at the end of the 1-based ``line``; the prevailing one where the line has none."""
        if self._breaks is not None and line <= len(self._breaks):
            return self._breaks[line - 1]
        return self.newline

    def _native(self, splice: Splice) -> str:
        """``splice.new`` with its place's line breaks; in a mixed file a line that stays keeps its own."""
        if self._breaks is None:
            return splice.new if self.newline == "\n" else splice.new.replace("\n", self.newline)
        pieces = splice.new.split("\n")
        breaks = self._aligned(splice, pieces[:-1])
        return "".join(piece + ending for piece, ending in zip(pieces, [*breaks, ""], strict=True))

    def _aligned(self, splice: Splice, lines: Sequence[str]) -> list[str]:
        """A break for each new line: that of the old line it is or stands for, else that of the line above it."""
        from difflib import SequenceMatcher

        old = self.text[splice.start : splice.end].split("\n")[:-1]
        first = self.line(splice.start)
        # What is inserted *after* a line stands at the start of the next one, and is like the line it belongs to.
        after = splice.side < 0 and splice.start == self.line_start(splice.start)
        above = self.line_break(max(1, first - 1) if after else first)
        breaks: list[str] = []
        for kind, low, high, start, end in SequenceMatcher(None, old, lines, autojunk=False).get_opcodes():
            for offset in range(end - start):
                if kind in ("equal", "replace"):
                    above = self.line_break(first + min(low + offset, high - 1))
                breaks.append(above)
        return breaks

    def render(self, splices: Sequence[Splice]) -> tuple[bytes, list[ByteSplice]]:
        """Lay ``splices`` (sorted, not overlapping) on the bytes.

        Returns:
            The new bytes, and the same change as byte splices.

        Raises:
            PlanError: ``encoding``: the file's encoding cannot hold a new text.
        """
        done: list[ByteSplice] = []
        out: list[bytes] = []
        at = 0
        for splice in splices:
            start, end = self.byte(splice.start), self.byte(splice.end)
            try:
                new = _encode(self._native(splice), self.encoding)
            except UnicodeEncodeError as error:
                bad = error.object[error.start : error.end]
                raise PlanError(
                    f"{self.path}: its encoding {self.encoding.partition('/')[0]} cannot hold {bad!r}",
                    code="encoding",
                    hint="use characters of that encoding, or an escape such as \\u20ac in a string",
                    details={"path": self.path, "line": self.line(splice.start), "edit": splice.edit},
                ) from None
            old = self.data[start:end]
            done.append(ByteSplice(start, end, old, new))
            out += (self.data[at:start], new)
            at = end
        out.append(self.data[at:])
        data = b"".join(out)
        if self._breaks is not None or self.encoding not in ("utf-8", "ascii", _FALLBACK):
            self._check_read_back(splices, done, data)
        return data, done

    def _check_read_back(self, splices: Sequence[Splice], done: Sequence[ByteSplice], data: bytes) -> None:
        """Refuse bytes that do not read as the text they were made for.

        In an encoding with a shift state, what a byte means depends on those before it: a character that stays can
        change its meaning, and where it begins cannot be told from its text. And in a file of mixed line breaks, a
        ``\\r`` and a ``\\n`` can come to stand side by side.

        Raises:
            PlanError: ``encoding``.
        """
        told = self.byte(len(self.text)) == len(self.data)  # else no offset can be trusted
        if told and _decoded(data[self.bom :], self.encoding) == lay(self.text, splices):
            return
        shifted = [
            splice
            for splice, made in zip(splices, done, strict=True)
            if _decoded(made.old, self.encoding) != self.text[splice.start : splice.end]
        ]
        wrong = (shifted or splices)[0]
        line = self.line(wrong.start)
        if self.mixed and told and not shifted:
            what = f"the edit at line {line} would make one line break of two, a \\r and a \\n"
            hint = "give the whole file one kind of line break first, or let the anchor take in the line beside it"
        else:
            what = (
                f"in its encoding {self.encoding}, what a byte means depends on those before it, and the edit at line "
                f"{line} would change what stands beside it"
            )
            hint = "let the anchor be whole lines, or begin and end where ASCII characters stand on either side"
        raise PlanError(
            f"{self.path}: {what}",
            code="encoding",
            hint=hint,
            details={"path": self.path, "line": line, "edit": wrong.edit},
        )


def lay(text: str, splices: Sequence[Splice]) -> str:
    """``text`` with ``splices`` (in any order, not overlapping) laid on it."""
    out: list[str] = []
    at = 0
    for splice in sorted(splices, key=lambda s: (s.start, s.end, s.side, s.edit)):
        out += (text[at : splice.start], splice.new)
        at = splice.end
    return "".join([*out, text[at:]])


def _encoding(data: bytes, path: str) -> tuple[str, int]:
    if path.endswith((".py", ".pyi", ".pyw")):
        try:
            return python_encoding(data)
        except (LookupError, ValueError):
            pass
    return "utf-8", len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0


def _decoded(data: bytes, encoding: str) -> str | None:
    """The bytes as text with ``\\n`` line breaks, None where they are none in that encoding."""
    try:
        return _BREAK.sub("\n", _decode(data, encoding))
    except ValueError:
        return None


def _decode(data: bytes, encoding: str) -> str:
    if encoding == _FALLBACK:
        return data.decode("utf-8", "surrogateescape")
    return data.decode(encoding)


def _encode(text: str, encoding: str) -> bytes:
    if encoding == _FALLBACK:
        return text.encode("utf-8", "surrogateescape")
    return text.encode(encoding)
