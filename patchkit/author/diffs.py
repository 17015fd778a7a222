"""A unified diff, read: plain or in git's format, with whatever colours and line breaks it came."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from typing import Any

from patchkit.author.placing import DiffHunk, Mark
from patchkit.errors import UsageError
from patchkit.tuples import NamedTuple

_COLOUR = r"\x1b\[[0-9;]*[mK]"

_COLOURED = re.compile(rf"^(?:{_COLOUR})+(?:diff |--- |\+\+\+ |@@ )", re.MULTILINE)
"""A line of the diff's own in colour: then it was made so as a whole."""

_PAINTED = re.compile(
    rf"(?P<start>(?:{_COLOUR})*)(?P<mark>[-+ \\]?)(?:\x1b\[0?m(?P=start))?(?P<body>[^\x1b]*?)"
    r"(?:(?:\x1b\[0?m)?\x1b\[[0-9;]+m(?P<blank>[ \t\r]+))?(?:\x1b\[0?m)?(?:\x1b\[K)?(?P<end>\r?)"
)
"""A line of a hunk as git and GNU diff paint it: as a whole, after its mark anew, and the blanks at its end."""

_RANGES = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")

_PREFIX = re.compile("^[abciow12]/")
"""What git puts before the two paths of a file."""

_ESCAPE = re.compile(rb'\\([0-7]{3}|[abtnvfr"\\])')
"""What git writes in a name that it puts into quotes."""

_LETTERS = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}

_CONVERTED = re.compile(r"^\+\+\+ [^\n]*\r\n@@ ", re.MULTILINE)
"""A line that is the diff's own, and no file's, with a carriage return."""

_ONE_SIDE = re.compile(r"^Only in [^\s/:]+(?:/([^:\n]+))?: (.+)$", re.MULTILINE)
"""What `diff -r` prints of a file that one side has not."""

_BLOBS = re.compile(r"^index ([0-9a-f]{7,64})\.\.([0-9a-f]{7,64})\b", re.MULTILINE)
"""What git calls a file's bytes before and after. Less than seven digits, which git has to be told to write, are no
proof."""

_EPOCH = re.compile(r"19(?:69-12-31|70-01-01) ")
"""The time that `diff -N` writes of a file that is not there: 1970 began, wherever that is."""

_MOVED = re.compile("^(rename|copy) from ", re.MULTILINE)

_BREAK = re.compile(r"\r\n|\r|\n")


class FileDiff(NamedTuple):
    """What a diff says of one file.

    ``kind`` is "changed", "added", "removed", "renamed", "copied", "binary" or "absent"; ``path`` the one after, or of
    a removed file before, ``source`` the one before where it is another. ``blobs`` are the names that git has for its
    bytes before and after, cut short ("": the diff names none).
    """

    path: str
    kind: str
    hunks: tuple[DiffHunk, ...]
    blobs: tuple[str, str] = ("", "")
    source: str = ""

    @property
    def line(self) -> int:
        """The 1-based line of the diff that names the file before its first hunk; 0 where it has none."""
        return self.hunks[0].diff_line - 3 if self.hunks else 0


def read_diff(data: bytes) -> list[FileDiff]:
    """The files of a unified diff.

    Raises:
        UsageError: ``diff``: it is none, is cut off, or a hunk has another number of lines than it says.
    """
    try:
        from unidiff.errors import UnidiffParseError
        from unidiff.patch import PatchSet
    except ImportError:
        raise UsageError(
            "`import` reads diffs with unidiff, which is not installed beside patchkit",
            code="extra",
            hint=_install("unidiff"),
        ) from None

    text = plain(data.decode("utf-8", "surrogateescape"))
    if _CONVERTED.search(text):
        text = text.replace("\r\n", "\n")  # the diff itself came so: it tells nothing of the files' line breaks
    if not text.strip():
        raise UsageError("there is no diff: it is empty", code="diff", hint="see `git diff` or `diff -u`")
    try:
        parsed = PatchSet(text)
    except (UnidiffParseError, ValueError, IndexError) as error:
        raise UsageError(f"not a unified diff: {error}", code="diff", hint="see `git diff` or `diff -u`") from None
    files = []
    for file in parsed:
        hunks = tuple(_hunk(hunk) for hunk in file)
        info = str(file.patch_info or "")
        moved = _MOVED.search(info)
        kind = (
            "binary"
            if file.is_binary_file
            else "added"
            if file.is_added_file and _has_no(file.source_file, file.source_timestamp, "new", info)
            else "removed"
            if file.is_removed_file and _has_no(file.target_file, file.target_timestamp, "deleted", info)
            else {"rename": "renamed", "copy": "copied"}[moved[1]]
            if moved
            else "changed"
        )
        path, source = _unquoted(file.path), _PREFIX.sub("", _unquoted(file.source_file), count=1)
        source = "" if file.source_file == "/dev/null" or source == path else source
        blobs = _BLOBS.search(info)
        named = (blobs[1], blobs[2]) if blobs else ("", "")
        files.append(FileDiff(path, kind, hunks, named, source))
    files += [FileDiff("/".join(filter(None, found)), "absent", ()) for found in _ONE_SIDE.findall(text)]
    if not files:
        raise UsageError("not a unified diff: it names no file", code="diff", hint="see `git diff` or `diff -u`")
    return files


def _has_no(name: str, time: str | None, mode: str, info: str) -> bool:
    """Whether there is no file on a side of the diff that has no lines: an empty file has none either."""
    return name == "/dev/null" or f"\n{mode} file mode " in f"\n{info}" or bool(_EPOCH.match(time or ""))


def _unquoted(name: str) -> str:
    """A file's name without the quotes that git puts around an unusual one."""
    if not (len(name) > 1 and name[0] == name[-1] == '"'):
        return name
    data = _ESCAPE.sub(_unescaped, name[1:-1].encode("utf-8", "surrogateescape"))
    return data.decode("utf-8", "surrogateescape")


def _unescaped(found: re.Match[bytes]) -> bytes:
    code = found[1]
    return bytes([int(code, 8) & 255]) if code.isdigit() else _LETTERS.get(code, code)


def plain(text: str) -> str:
    """A diff without the colours that git or GNU diff wrote around its lines; one without any is as it was.

    Escape characters of the files themselves stay.

    Raises:
        UsageError: ``diff``: colours within a line, where those of the file cannot be told from those of the diff.
    """
    if not _COLOURED.search(text):
        return text
    out = []
    old = new = 0  # lines of the hunk that are to come
    for number, line in enumerate(text.split("\n"), 1):
        bare = re.sub(_COLOUR, "", line)
        if old > 0 or new > 0:
            found = _PAINTED.fullmatch(line)
            if found is None or (not found["start"] and found["mark"] in ("+", "-") and "\x1b" in line):
                raise UsageError(
                    f"line {number} of the diff has colours within it, which may be the file's own",
                    code="diff",
                    hint="make the diff without colours: `git diff --no-color`",
                    details={"line": number},
                )
            bare = found["mark"] + found["body"] + (found["blank"] or "") + found["end"]
            old -= found["mark"] in (" ", "-", "")
            new -= found["mark"] in (" ", "+", "")
        elif head := _RANGES.match(bare):
            old, new = (1 if count is None else int(count) for count in head.groups())
        out.append(bare)
    return "\n".join(out)


def _install(library: str) -> str:
    """The command that puts a library beside patchkit, whatever installed it."""
    import sys
    from importlib.util import find_spec

    if find_spec("pip") is None:
        return f"`{shlex.join(['uv', 'pip', 'install', '--python', sys.executable, library])}`"
    return f"`{shlex.join([sys.executable, '-m', 'pip', 'install', library])}`"


def _hunk(hunk: Any) -> DiffHunk:
    lines = list(_joined(hunk))
    return DiffHunk(
        tuple((mark, _BREAK.sub("\n", text)) for mark, text in lines),
        next((line.diff_line_no for line in hunk if line.diff_line_no), 1),
        (hunk.section_header.strip(),) * 2,
        hunk.source_start,
        tuple("".join(_BREAK.findall(text)[-1:]) for _, text in lines),
    )


def _joined(hunk: Iterable[Any]) -> Iterator[tuple[Mark, str]]:
    """The lines of a hunk with their line breaks, and without one where the diff says that the file has none."""
    held: tuple[Mark, str] | None = None
    for line in hunk:
        if line.line_type == "\\":
            held = None if held is None else (held[0], held[1].rstrip("\r\n"))
            continue
        if held is not None:
            yield held
        mark: Mark = line.line_type if line.line_type in "+-" else " "
        held = (mark, line.value if line.value.endswith("\n") else f"{line.value}\n")
    if held is not None:
        yield held
