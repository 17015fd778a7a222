"""The list of a distribution's files, and the installer's own hashes as witnesses."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from patchkit.errors import SiteError
from patchkit.runtime.ledger import open_regular, open_text, sha256_hex
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from io import BufferedReader

#: The algorithms that the wheel specification admits and that are in use; others cannot bear witness.
_DIGEST_SIZES = {"sha256": 32, "sha384": 48, "sha512": 64}
_HEX = frozenset("0123456789abcdefABCDEF")

#: ``Entry.algorithm`` of a path that RECORD lists more than once with different hashes.
CONFLICTING = "conflicting"


class Entry(NamedTuple):
    """One row. ``digest`` is None where there is none, or none that can be verified; ``size`` is in bytes."""

    path: str
    algorithm: str | None = None
    digest: bytes | None = None
    size: int | None = None

    @property
    def fault(self) -> str | None:
        """What is wrong with the row, in words, so that no bytes can be called the installer's by it; None: nothing.

        A row without a hash, or with one by an algorithm that proves nothing, is not wrong: it is no witness.
        """
        if self.algorithm == CONFLICTING:
            return "lists it more than once, with different hashes"
        if self.digest is None and self.algorithm in _DIGEST_SIZES:
            return f"has a damaged {self.algorithm} hash for it"
        return None

    def matches(self, data: bytes) -> bool | None:
        """Whether ``data`` is what the installer wrote; None where the row is no witness."""
        if self.digest is None or self.algorithm is None:
            return None
        if self.algorithm == "sha256":
            return sha256_hex(data) == self.digest.hex()
        import hashlib

        return hashlib.new(self.algorithm, data).digest() == self.digest

    def matches_file(self, file: BufferedReader) -> bool | None:
        """The same of an open file, which is read in pieces."""
        if self.digest is None or self.algorithm is None:
            return None
        import hashlib

        return hashlib.file_digest(file, self.algorithm).digest() == self.digest


class Record:
    """The files of one distribution, from RECORD or from a weaker list.

    Attributes:
        base: The directory that the paths are relative to.
        source: The file that lists them (RECORD, installed-files.txt, SOURCES.txt, top_level.txt), or None where
            they are those found in the directory named like the distribution.
    """

    __slots__ = ("_entries", "_paths", "base", "data", "source")

    def __init__(
        self, base: str, source: str | None, *, data: bytes | None = None, paths: list[str] | None = None
    ) -> None:
        """Hold the bytes of a RECORD, or the ``paths`` of a weaker list."""
        self.base = base
        self.source = source
        self.data = data
        self._entries: dict[str, Entry] | None = None
        self._paths = paths

    @property
    def has_hashes(self) -> bool:
        """Whether it is a RECORD; a weaker list holds no witnesses."""
        return self.data is not None

    def entry(self, path: str) -> Entry | None:
        """The row of one path exactly as spelled, or None.

        RECORD is searched as bytes first: parsing the thousands of rows of a large distribution takes longer than
        everything else that ``check`` does.
        """
        if self.data is None:
            return Entry(path) if path in self._listed() else None
        if self._entries is None:
            rows = _rows_of(self.data, path)
            if rows:
                return _merge(rows)
        return self.entries().get(path)

    def entries(self) -> dict[str, Entry]:
        """Every row by its path, in the order of the list."""
        if self._entries is None:
            if self.data is None:
                self._entries = {path: Entry(path) for path in self._listed()}
            else:
                grouped: dict[str, list[Entry]] = {}
                for row in _parse(self.data, self.source or "", self.base):
                    grouped.setdefault(row.path, []).append(row)
                self._entries = {path: _merge(rows) for path, rows in grouped.items()}
        return self._entries

    def paths(self) -> list[str]:
        """Every listed path, in the order of the list."""
        return list(self.entries())

    def files(self) -> list[str]:
        """The listed Python files (``.py``) that exist, without those outside ``base``."""
        return [
            path
            for path in self.entries()
            if path.endswith(".py") and not leads_out(path) and os.path.isfile(os.path.join(self.base, path))
        ]

    def _listed(self) -> list[str]:
        return self._paths or []


def leads_out(path: str) -> bool:
    """Whether a listed path is absolute or climbs out of its base."""
    return path.startswith(("/", "\\")) or path[1:2] == ":" or ".." in path.split("/")


def _rows_of(data: bytes, path: str) -> list[Entry]:
    """The rows of one path, found without parsing the others; none where only a full parse can tell."""
    spelled = path.encode("utf-8", "surrogateescape")
    found: list[Entry] = []
    for needle in (spelled + b",", b'"' + spelled.replace(b'"', b'""') + b'",'):
        if needle[:1] != b'"' and (b'"' in spelled or b"," in spelled):
            continue
        at = data.find(needle)
        while at >= 0:
            before = data[at - 1 : at] if at else b"\n"
            if before in (b"\n", b"\r") or (at == 3 and data.startswith(b"\xef\xbb\xbf")):
                ends = [end for end in (data.find(b"\n", at), data.find(b"\r", at)) if end >= 0]
                rest = data[at + len(needle) : min(ends, default=len(data))]
                if b'"' in rest:
                    return []  # an unusual row: left to the csv module
                fields = rest.decode("utf-8", "replace").split(",")
                found.append(_entry(path, fields[0], fields[1] if len(fields) > 1 else ""))
            elif before == b"/" and data[max(data.rfind(b"\n", 0, at), data.rfind(b"\r", 0, at)) + 1] in b"./":
                return []  # perhaps the same file in other words ("./pkg/a.py"), with another hash
            at = data.find(needle, at + 1)
    return found


def _parse(data: bytes, source: str, base: str) -> Iterator[Entry]:
    text = data.decode("utf-8-sig", "surrogateescape")
    rows: Iterable[list[str]]
    if '"' in text:
        rows = _csv(text, source)
    else:
        rows = (line.rstrip("\r\n").rsplit(",", 2) for line in _lines(text))
    for fields in rows:
        if fields and fields[0]:
            path = _plain(fields[0], base)
            yield _entry(path, fields[1] if len(fields) > 1 else "", fields[2] if len(fields) > 2 else "")


def _plain(path: str, base: str) -> str:
    """A path of RECORD relative to ``base``, however it is spelled; as it stands where it leads out.

    The specification of RECORD allows absolute paths, and backslashes on Windows, whose environments other systems
    also look into: there a backslash is a separator when the file that it leads to then is the one that is there.
    """
    if "\\" in path:
        slashed = path.replace("\\", "/")
        if os.sep == "\\" or not os.path.lexists(os.path.join(base, path)):
            path = slashed if os.sep == "\\" or os.path.lexists(os.path.join(base, slashed)) else path
    if not path.startswith((".", "/")) and "//" not in path and "/." not in path and path[1:2] != ":":
        return path
    whole = os.path.normpath(os.path.join(base, path))
    for root in (os.path.normpath(base), os.path.realpath(base)):
        if whole.startswith(os.path.join(root, "")):
            return whole[len(os.path.join(root, "")) :].replace(os.sep, "/")
    return path


def _csv(text: str, source: str) -> Iterator[list[str]]:
    import csv

    try:
        yield from csv.reader(_lines(text))
    except csv.Error as error:
        raise _damaged(os.path.dirname(source), "", f"is not a readable RECORD: {error}") from None


def _damaged(info: str, name: str, what: str) -> SiteError:
    """A RECORD that is there and tells nothing: no weaker list may stand in for it."""
    from patchkit.runtime.reinstall import command

    source = os.path.join(info, "RECORD")
    project, _, version = os.path.splitext(os.path.basename(info))[0].rpartition("-")
    again = command(os.path.dirname(info), name or project, version)
    if os.path.isdir(source):
        from shlex import quote

        again = f"rm -r {quote(source)} && {again}"  # no installer writes over a directory
    return SiteError(f"{source}: {what}", code="record", hint=f"install it again: `{again}`", details={"path": source})


def _lines(text: str) -> Iterator[str]:
    """The lines with their breaks, so that a quoted name may hold one."""
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield text[start:end]
        start = end


def _entry(path: str, hashed: str, size: str) -> Entry:
    algorithm, equals, value = hashed.strip().partition("=")
    length = size.strip()
    return Entry(
        path,
        algorithm.strip().lower() if equals else None,
        _digest(algorithm.strip().lower(), value.strip()) if equals else None,
        int(length) if length.isascii() and length.isdigit() else None,
    )


def _digest(algorithm: str, value: str) -> bytes | None:
    """Urlsafe base64 without padding, as the specification has it; padded, standard base64 and hex are understood."""
    size = _DIGEST_SIZES.get(algorithm)
    if size is None:
        return None
    if len(value) == 2 * size and _HEX.issuperset(value):
        return bytes.fromhex(value)
    import binascii

    plain = value.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        digest = binascii.a2b_base64((plain + "=" * (-len(plain) % 4)).encode("ascii"))
    except (binascii.Error, ValueError):
        return None
    return digest if len(digest) == size else None


def _merge(rows: list[Entry]) -> Entry:
    """One entry of the rows for a path: the one with a witness, and none where the witnesses disagree."""
    witnesses = [row for row in rows if row.digest is not None]
    if not witnesses:
        return rows[0]
    first = witnesses[0]
    for other in witnesses[1:]:
        if (other.algorithm, other.digest) != (first.algorithm, first.digest):
            return Entry(first.path, CONFLICTING)
    return first


def read_record(base: str, info: str, name: str) -> Record:
    """The record of a ``.dist-info`` or ``.egg-info``: RECORD, else the best weaker list there is.

    Args:
        base: The directory that the distribution's modules lie in.
        info: The ``.dist-info`` or ``.egg-info`` directory (or file).
        name: The distribution's name, for the last resort.

    Raises:
        SiteError: ``record``: there is a RECORD, and it cannot be read or is no list.
    """
    source = os.path.join(info, "RECORD")
    try:
        with open_regular(source) as file:
            data = file.read()
    except OSError as error:
        # A weaker list in its stead would take whatever lies there for the installer's bytes.
        if os.path.lexists(source):
            raise _damaged(info, name, f"cannot be read: {error.strerror}") from None
    else:
        if not data.strip():
            raise _damaged(info, name, "is empty")
        if b"\0" in data:
            raise _damaged(info, name, "is no text")
        return Record(base, source, data=data)
    source = os.path.join(info, "installed-files.txt")
    installed = _text_lines(source)
    if installed:
        folder = os.path.relpath(info, base).replace(os.sep, "/")
        return Record(base, source, paths=_unique(_normal(f"{folder}/{line}") for line in installed))
    tops = _text_lines(os.path.join(info, "top_level.txt"))
    source = os.path.join(info, "SOURCES.txt")
    listed = _sources(base, _text_lines(source), tops)
    if listed:
        return Record(base, source, paths=listed)
    if tops:
        return Record(base, os.path.join(info, "top_level.txt"), paths=_walk(base, tops))
    plain = name.replace("-", "_").replace(".", "_")
    guesses = _unique((plain, plain.lower(), name, name.lower(), name.replace(".", "/")))
    return Record(base, None, paths=_walk(base, guesses))


def _text_lines(path: str) -> list[str]:
    try:
        with open_text(path, errors="surrogateescape") as file:
            return [line.strip() for line in file if line.strip()]
    except OSError:
        return []


def _normal(path: str) -> str:
    parts: list[str] = []
    for part in path.replace("\\", "/").split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _unique(paths: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(paths))


def _sources(base: str, lines: list[str], tops: list[str]) -> list[str]:
    """SOURCES.txt lists the source tree: what of it lies in the top-level packages and was installed."""
    kept: list[str] = []
    for line in lines:
        path = _normal(line)
        for candidate in (path, path.partition("/")[2]):
            first = candidate.partition("/")[0]
            ours = first in tops or first.removesuffix(".py") in tops
            if candidate and ours and os.path.isfile(os.path.join(base, candidate)):
                kept.append(candidate)
                break
    return list(dict.fromkeys(kept))


def _walk(base: str, tops: list[str]) -> list[str]:
    """The files of top-level modules and packages, without bytecode."""
    found: list[str] = []
    for top in tops:
        if os.path.isfile(os.path.join(base, top + ".py")):
            found.append(top + ".py")
        for folder, names, files in os.walk(os.path.join(base, top)):
            names[:] = sorted(name for name in names if name != "__pycache__")
            relative = os.path.relpath(folder, base).replace(os.sep, "/")
            found += [f"{relative}/{name}" for name in sorted(files) if not name.endswith(".pyc")]
    return list(dict.fromkeys(found))
