"""The wheels in pip's cache: those that it built (``wheels``), and those that it downloaded (``http-v2``, ``http``).

pip keeps a download as the response's body under the hash of its address, so a wheel there has no name: it is known
by the ``.dist-info`` folder in its central directory. Nothing else of a file is read until it is, and the cache is
never written to. Whoever may write to it may put anything there: what is read is bounded, links are not followed, and
the caller believes bytes by their hash alone.
"""

from __future__ import annotations

import os
import stat
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, BinaryIO

from patchkit.runtime.ledger import open_regular
from patchkit.site.distribution import normalize

if TYPE_CHECKING:
    import zipfile

    from patchkit.site.distribution import Distribution
    from patchkit.site.interpreter import Interpreter

MOST_FILES = 20_000
"""Files of one cache folder that are looked into, the newest first."""
MOST_ENTRIES = 1_000_000
"""Files of one cache folder that are listed at all."""
LARGEST_DIRECTORY = 16 << 20
"""Bytes of a central directory; that of a wheel with 12,000 files has less than 2 MiB."""

PATIENCE = 30.0
"""Seconds for ``pip cache dir``."""
_QUIET = 2.0
"""Seconds before progress is told, and between two lines of it."""

_BODY = b"PK\x03\x04"
_HEAD = 4096
"""Bytes in which a zip file begins: at once, or behind what ``http`` puts before a body (CacheControl, "cc=4")."""
_END = struct.Struct("<4s4H2LH")
"""The end of central directory record (APPNOTE.TXT 4.3.16): ..., size of the directory, ..."""


def pip_cache(environ: Mapping[str, str] | None = None) -> str:
    """Where pip's cache is, as far as that can be told without running pip; the folder need not exist.

    ``$PIP_CACHE_DIR`` where it is set, else the platform's folder (pip documentation, "Caching"):
    ``%LOCALAPPDATA%\\pip\\Cache``, ``~/Library/Caches/pip``, ``$XDG_CACHE_HOME/pip`` or ``~/.cache/pip``. One that is
    set in pip's configuration file is not looked for: :func:`configured_cache` asks pip.
    """
    env = os.environ if environ is None else environ
    if env.get("PIP_CACHE_DIR"):
        return os.path.abspath(os.path.expanduser(env["PIP_CACHE_DIR"]))
    if sys.platform == "win32":
        local = env.get("LOCALAPPDATA") or os.path.expanduser("~\\AppData\\Local")
        return os.path.join(local, "pip", "Cache")
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Caches/pip")
    return os.path.abspath(os.path.join(env.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "pip"))


def configured_cache(python: Interpreter | None) -> str | None:
    """The folder that ``pip cache dir`` tells, by the site's own pip where it has one; None: it tells none.

    Only a configuration file can make it another than :func:`pip_cache` has it, and ``$PIP_CACHE_DIR`` outdoes those.
    """
    from patchkit.errors import SiteError
    from patchkit.site.process import run
    from patchkit.site.wheel import pip_command, site_pip

    if os.environ.get("PIP_CACHE_DIR"):
        return None
    try:
        done = run([*(site_pip(python) or pip_command()), "cache", "dir", "--no-input"], timeout=PATIENCE)
    except (OSError, SiteError):
        return None
    told = done.out.decode(sys.getfilesystemencoding(), "replace").strip()
    return told if done.status == 0 and os.path.isabs(told) and "\n" not in told else None


class PipCache:
    """The wheels of one release in pip's cache, found as they are needed.

    ``searched`` are the folders looked through; ``seen`` counts the files looked into, and ``more`` those that were
    not, for there were too many. ``wheels`` counts those of the release.
    """

    def __init__(self, distribution: Distribution, progress: Callable[[str], None]) -> None:
        self._info = os.path.basename(distribution.info)
        self._name, self._version = distribution.normalized, distribution.version
        self._python = distribution.site.interpreter
        self._progress = progress
        self._known: list[str] = []
        self._search = self._found()
        self.searched: list[str] = []
        self.seen = self.more = 0

    @property
    def wheels(self) -> int:
        """How many wheels of the release were found so far."""
        return len(self._known)

    def find(self, path: str, genuine: Callable[[bytes], bool | None], largest: int) -> bytes | None:
        """The bytes of a file of the release, as RECORD names it, that ``genuine`` says are the installer's.

        Args:
            path: The file.
            genuine: Whether bytes are those that were installed.
            largest: The number of bytes above which a member is no such file, and not unpacked.
        """
        for wheel in self._all():
            data = self._member(wheel, path, largest)
            if data is not None and genuine(data) is True:
                return data
        return None

    def _all(self) -> Iterator[str]:
        """The wheels that were found, then those that are found by searching on."""
        yield from tuple(self._known)
        for wheel in self._search:
            self._known.append(wheel)
            yield wheel

    def _found(self) -> Iterator[str]:
        usual = pip_cache()
        yield from self._within(usual)
        told = configured_cache(self._python)
        if told is not None and os.path.realpath(told) != os.path.realpath(usual):
            yield from self._within(told)

    def _within(self, folder: str) -> Iterator[str]:
        """The wheels of the release below one cache folder: those that pip built, then the newest downloads first."""
        self.searched.append(folder)
        begun = time.monotonic()
        listed = [path for _, path in sorted(self._files(folder), reverse=True)]
        self.more += max(len(listed) - MOST_FILES, 0)
        for number, path in enumerate(listed[:MOST_FILES]):
            if time.monotonic() - begun > _QUIET:
                begun = time.monotonic()
                self._progress(f"looking for {self._name} {self._version} in pip's cache, {number} of {len(listed)}")
            self.seen += 1
            if _has(path, self._info):
                yield path

    def _files(self, folder: str) -> Iterator[tuple[tuple[bool, int], str]]:
        """The files that can be the wheel, each with what sorts it: built by pip, and when it was written."""
        left = MOST_ENTRIES
        for shelf, fits in (("wheels", self._is_wheel), ("http-v2", _is_body), ("http", _is_old)):
            for directory, folders, names in os.walk(os.path.join(folder, shelf)):
                folders.sort()
                left -= len(names)
                if left < 0:
                    return
                for name in names:
                    if not fits(name):
                        continue
                    path = os.path.join(directory, name)
                    try:
                        status = os.lstat(path)
                    except OSError:
                        continue
                    if stat.S_ISREG(status.st_mode):
                        yield (shelf == "wheels", status.st_mtime_ns), path

    def _is_wheel(self, name: str) -> bool:
        """Whether a file is a wheel of the distribution by its name; a version has several spellings."""
        return name.endswith(".whl") and normalize(name.partition("-")[0]) == self._name

    def _member(self, wheel: str, path: str, largest: int) -> bytes | None:
        """One file of a wheel, looked for in its ``*.data`` as well; None where there is none that can be it."""
        import zipfile
        import zlib

        stem = self._info.removesuffix(".dist-info")
        try:
            with open_regular(wheel) as file, zipfile.ZipFile(file) as archive:
                for name in (path, f"{stem}.data/purelib/{path}", f"{stem}.data/platlib/{path}"):
                    try:
                        member = archive.getinfo(name)
                    except KeyError:
                        continue
                    return _unpacked(archive, member, largest)
        except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError, EOFError, RuntimeError, zlib.error):
            return None
        return None


def _unpacked(archive: zipfile.ZipFile, member: zipfile.ZipInfo, largest: int) -> bytes | None:
    """The bytes of a member; None where they are more than they may be, or packed so that it cannot be bounded."""
    import zipfile

    if member.file_size > largest or member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return None
    with archive.open(member) as stream:
        data = stream.read(largest + 1)
    return data if len(data) <= largest else None


def _has(path: str, info: str) -> bool:
    """Whether a file is a zip file whose central directory has a RECORD in ``info``."""
    try:
        with open_regular(path) as file:
            if _BODY not in file.read(_HEAD):
                return False
            return f"{info}/RECORD".encode() in _central_directory(file)
    except OSError:
        return False


def _central_directory(file: BinaryIO) -> bytes:
    """The bytes of a zip file's central directory; nothing where there is none, or it is too large to be a wheel's.

    Behind the end record may stand what ``http`` keeps of a response besides its body.
    """
    size = file.seek(0, os.SEEK_END)
    tail = min(size, (1 << 16) + _END.size)
    file.seek(size - tail)
    data = file.read(tail)
    at = data.rfind(b"PK\x05\x06")
    if at < 0 or at + _END.size > len(data):
        return b""
    length = _END.unpack_from(data, at)[5]
    end = size - tail + at
    if length > min(end, LARGEST_DIRECTORY):
        return b""
    file.seek(end - length)
    return file.read(length)


def _is_body(name: str) -> bool:
    return name.endswith(".body")


def _is_old(name: str) -> bool:
    return len(name) == 56 and name.isalnum()  # the SHA-224 of an address, in hex (CacheControl, FileCache.encode)
