"""A unified diff, read: plain or in git's format, with whatever colour and line breaks it came."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from typing import Any

from patchkit.author.placing import DiffHunk, Mark
from patchkit.errors import UsageError
from patchkit.tuples import NamedTuple

_COLOUR = re.compile(r"\x1b\[[0-9;]*[mK]")
"""What `git diff --color` writes around its lines. A file's own escape characters would stand in its hunks as well."""

_CONVERTED = re.compile(r"^\+\+\+ [^\n]*\r\n@@ ", re.MULTILINE)
"""A line that is the diff's own, and no file's, with a carriage return."""

_ONE_SIDE = re.compile(r"^Only in [^\s/:]+(?:/([^:\n]+))?: (.+)$", re.MULTILINE)
"""What `diff -r` prints of a file that one side has not."""

_BLOBS = re.compile(r"^index ([0-9a-f]{7,64})\.\.([0-9a-f]{7,64})\b", re.MULTILINE)
"""What git calls a file's bytes before and after. Less than seven digits, which git has to be told to write, are no
proof."""

_BREAK = re.compile(r"\r\n|\r|\n")


class FileDiff(NamedTuple):
    """What a diff says of one file: ``kind`` is "changed", "added", "removed", "renamed", "binary" or "absent".

    ``blobs`` are the names that git has for its bytes before and after, cut short ("": the diff names none).
    """

    path: str
    kind: str
    hunks: tuple[DiffHunk, ...]
    blobs: tuple[str, str] = ("", "")


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

    text = _COLOUR.sub("", data.decode("utf-8", "surrogateescape"))
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
        kind = (
            "binary"
            if file.is_binary_file
            else "added"
            if file.is_added_file
            else "removed"
            if file.is_removed_file
            else "renamed"
            if file.is_rename
            else "changed"
        )
        blobs = _BLOBS.search(str(file.patch_info or ""))
        files.append(FileDiff(file.path, kind, hunks, (blobs[1], blobs[2]) if blobs else ("", "")))
    files += [FileDiff("/".join(filter(None, found)), "absent", ()) for found in _ONE_SIDE.findall(text)]
    if not files:
        raise UsageError("not a unified diff: it names no file", code="diff", hint="see `git diff` or `diff -u`")
    return files


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
