"""Released wheels, fetched with whichever pip is at hand and kept in the cache.

pip does the fetching so that the user's own configuration (indexes, proxies, credentials) holds. What it prints may
name an index with a password in it, so nothing that looks like an address is ever passed on.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from patchkit.errors import PlanError, SiteError, UsageError
from patchkit.runtime.ledger import open_regular, open_text
from patchkit.site.cache import cache_directory, write_cached
from patchkit.site.distribution import normalize
from patchkit.site.paths import LARGEST_FILE

if TYPE_CHECKING:
    from zipfile import ZipFile

    from patchkit.site.interpreter import Interpreter
    from patchkit.site.process import Completed

#: Seconds for one download, and for one question to the index.
PATIENCE_DOWNLOAD = 1800.0
PATIENCE_LISTING = 300.0

#: Bytes that are unpacked at once.
_PIECE = 1 << 14

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_ADDRESS = re.compile(r"\b[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
_UNREACHABLE = re.compile(
    r"NewConnectionError|NameResolutionError|Temporary failure in name resolution|ConnectTimeout|ReadTimeout"
    r"|ProxyError|Max retries exceeded|Network is unreachable|Connection refused|Failed to establish a new connection"
)
_OPTIONS = ("--disable-pip-version-check", "--no-input")
_WHEELS = ("--only-binary", ":all:", "--ignore-requires-python")


def fetch_wheel(
    name: str,
    version: str,
    *,
    cache: str | None = None,
    python: Interpreter | None = None,
    progress: Callable[[str], None] | None = None,
) -> str:
    """The path of a released wheel, from the cache where its remembered SHA-256 still holds.

    Args:
        name: The distribution.
        version: Exactly this release.
        cache: The cache directory; the user's own by default.
        python: The site's interpreter: its pip serves where the host has none, and its version is asked for where
            there is no wheel for the host's.
        progress: Called with one line before a download begins.

    Raises:
        UsageError: The name or version is not valid.
        SiteError: ``fetch``: no pip, the index cannot be reached, no such wheel, or the cache cannot be written.
    """
    _check(name, version)
    known = cached_wheel(name, version, cache=cache)
    if known is not None:
        return known
    wheels = os.path.join(cache or cache_directory(), "wheels")
    folder = os.path.join(wheels, normalize(name), version)
    pip = pip_command(python)
    if progress is not None:
        progress(f"downloading {name} {version}")
    import tempfile

    try:
        os.makedirs(wheels, exist_ok=True)
        # Beside the distributions: what cannot be had leaves nothing that looks like a release.
        with tempfile.TemporaryDirectory(prefix=".download-", dir=wheels) as scratch:
            wheel = _download(pip, name, version, scratch, python)
            folder = os.path.join(wheels, normalize(name), _own_version(wheel, version))
            os.makedirs(folder, exist_ok=True)
            final = os.path.join(folder, os.path.basename(wheel))
            # The hash first: a wheel that others see is one that they can verify.
            if not write_cached(final + ".sha256", _sha256(wheel).encode("ascii")):
                raise OSError(errno.EACCES, os.strerror(errno.EACCES), final + ".sha256")
            os.replace(wheel, final)
    except OSError as error:
        raise SiteError(
            f"the cache directory {folder} cannot be written: {error.strerror or error}",
            code="fetch",
            hint="name another with $PATCHKIT_CACHE",
            details={"path": folder},
        ) from None
    return final


def released_versions(name: str, *, python: Interpreter | None = None) -> list[str]:
    """The versions that are released as wheels, prereleases included, oldest first.

    Raises:
        UsageError: The name is not valid.
        SiteError: ``fetch``: no pip, the index cannot be reached, or there is no such distribution.
    """
    _check(name)
    pip = pip_command(python)
    done = _run([*pip, "index", "versions", *_OPTIONS, *_WHEELS, "--pre", name], PATIENCE_LISTING)
    listed = re.search(r"^Available versions:(.*)$", done.out.decode("utf-8", "replace"), re.MULTILINE)
    if done.status != 0 and not _UNREACHABLE.search(_text(done)):
        # pip before 21.2 has no "index", and "index" passes over wheels for other Pythons, which a refusal lists.
        done, listed = _listed_by_refusal(pip, name, python)
    found = _sorted(listed.group(1)) if listed else []
    if not found:
        raise pip_failed(name, "no released wheel can be found", done)
    return found


def cached_wheel(name: str, version: str, *, cache: str | None = None) -> str | None:
    """The wheel of one release if the cache has it and its remembered SHA-256 holds; asks nobody.

    4.9 and 4.9.0 are one release, however it is spelled.

    Raises:
        UsageError: The name or version is not valid.
    """
    _check(name, version)
    folder = os.path.join(cache or cache_directory(), "wheels", normalize(name))
    found = _cached(os.path.join(folder, version))
    if found is None:
        from packaging.version import Version

        others = [text for text in _kept(folder) if text != version]
        equal = (_cached(os.path.join(folder, text)) for text in others if Version(text) == Version(version))
        found = next(filter(None, equal), None)
    return found


def cached_versions(name: str, *, cache: str | None = None) -> list[str]:
    """The versions whose wheels the cache has, oldest first; their hashes are checked when one is used.

    Raises:
        UsageError: The name is not valid.
    """
    _check(name)
    return _kept(os.path.join(cache or cache_directory(), "wheels", normalize(name)))


def _kept(folder: str) -> list[str]:
    """The versions that have a wheel in a distribution's folder of the cache, oldest first."""
    try:
        entries = sorted(os.listdir(folder))
    except OSError:
        return []
    kept = []
    for entry in entries:
        with contextlib.suppress(OSError):
            if any(file.endswith(".whl") for file in os.listdir(os.path.join(folder, entry))):
                kept.append(entry)
    return _sorted(",".join(kept))


def wheel_member(wheel: str, path: str) -> bytes:
    """One file of a wheel, named as RECORD names it once installed (``*.data/purelib`` is looked through).

    Raises:
        PlanError: ``not-in-distribution``: the wheel has no such file.
        SiteError: ``fetch``: the wheel cannot be read; ``too-large``.
    """
    with opened_archive(wheel) as archive:
        names = set(archive.namelist())
        stem = "-".join(os.path.basename(wheel).split("-")[:2])
        for candidate in (path, f"{stem}.data/purelib/{path}", f"{stem}.data/platlib/{path}"):
            if candidate in names:
                return read_member(archive, candidate)
    raise PlanError(
        f"{os.path.basename(wheel)} has no file {path}",
        code="not-in-distribution",
        details={"path": path, "wheel": os.path.basename(wheel)},
    )


@contextlib.contextmanager
def opened_archive(wheel: str) -> Iterator[ZipFile]:
    """A wheel, open for :func:`read_member`.

    Raises:
        SiteError: ``fetch``: it cannot be read.
    """
    import zipfile

    with contextlib.ExitStack() as stack:
        try:
            archive = stack.enter_context(zipfile.ZipFile(stack.enter_context(open_regular(wheel))))
        except _faults() as error:
            raise _unreadable(wheel, str(error)) from None
        yield archive


def read_member(archive: ZipFile, member: str) -> bytes:
    """The bytes of one member of a wheel, which anybody may have made: never more of them than a source file has.

    Raises:
        KeyError: There is no such member.
        SiteError: ``fetch``: it cannot be unpacked; ``too-large``: by what the wheel says, before anything is unpacked.
    """
    info = archive.getinfo(member)
    wheel = archive.filename or "the wheel"
    if info.file_size > LARGEST_FILE:
        raise SiteError(
            f"{member} in {wheel}: larger than {LARGEST_FILE >> 20} MiB, which no source file is",
            code="too-large",
            hint="patchkit edits source files",
            details={"path": wheel, "member": member},
        )
    pieces = []
    try:
        with archive.open(info) as stream:
            # In pieces: one that unpacks to more than it says is cut off at each.
            while piece := stream.read(_PIECE):
                pieces.append(piece)
    except _faults() as error:
        raise _unreadable(wheel, f"{member}: {error}") from None
    return b"".join(pieces)


def _faults() -> tuple[type[Exception], ...]:
    """What ``zipfile`` raises of an archive that is damaged, encrypted or packed in a way that this Python has not."""
    import struct
    import zipfile
    import zlib

    found = [OSError, zipfile.BadZipFile, EOFError, RuntimeError, ValueError, struct.error, zlib.error]
    with contextlib.suppress(ImportError):
        import lzma

        found.append(lzma.LZMAError)
    return tuple(found)


def _unreadable(wheel: str, why: str) -> SiteError:
    return SiteError(
        f"{wheel} cannot be read: {why}",
        code="fetch",
        hint="remove it from the cache and fetch it again",
        details={"path": wheel},
    )


def _own_version(wheel: str, version: str) -> str:
    """The version of a wheel as pip writes it, so that a release has one folder: 4.9 may fetch 4.9.0."""
    from packaging.version import InvalidVersion, Version

    try:
        own = Version(os.path.basename(wheel).split("-")[1].replace("_", "+"))
    except (InvalidVersion, IndexError):
        return version
    return str(own) if own == Version(version) else version


def _check(name: str, version: str | None = None) -> None:
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is not the name of a distribution", details={"distribution": name})
    if version is not None:
        from packaging.version import InvalidVersion, Version

        try:
            Version(version)
        except InvalidVersion:
            raise UsageError(f"{version!r} is not a version (PEP 440)", details={"version": version}) from None


def _cached(folder: str) -> str | None:
    """The wheel in its cache directory whose hash is the remembered one.

    Another process may be about to put one there, so what does not fit is left alone: a download replaces it.
    """
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".whl"))
    except OSError:
        return None
    for name in names:
        path = os.path.join(folder, name)
        try:
            with open_text(path + ".sha256", encoding="ascii") as file:
                remembered = file.read().strip()
            if _sha256(path) == remembered:
                return path
        except (OSError, ValueError):
            continue
    return None


def _sha256(path: str) -> str:
    import hashlib

    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def pip_command(python: Interpreter | None = None) -> list[str]:
    """The command of a pip: the one beside patchkit, that of the site's ``python``, the one on PATH.

    Raises:
        SiteError: ``fetch``: there is none.
    """
    import importlib.util
    import shutil

    if sys.executable and importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-P", "-m", "pip"]
    own = site_pip(python)
    if own is not None:
        return own
    on_path = shutil.which("pip") or shutil.which("pip3")
    if on_path is not None:
        return [on_path]
    raise SiteError(
        "fetching a release takes pip, and there is none: neither beside patchkit, nor in the site, nor on PATH",
        code="fetch",
        hint=f"install it: {sys.executable or 'python'} -m ensurepip",
    )


def site_pip(python: Interpreter | None) -> list[str] | None:
    """The command of the pip that a site's interpreter has; None: it has none."""
    if python is None or not any(os.path.isdir(os.path.join(one, "pip")) for one in python.site_directories):
        return None
    # -P, which keeps a pip.py of the working directory out, came with 3.11.
    safe = ["-P"] if python.version >= (3, 11) else []
    return [python.executable, *safe, "-m", "pip"]


def _run(command: Sequence[str], patience: float) -> Completed:
    from patchkit.site.process import run

    try:
        return run(command, timeout=patience)
    except OSError as error:
        raise SiteError(f"pip cannot be run: {command[0]}: {error.strerror}", code="fetch") from None


def _download(pip: list[str], name: str, version: str, folder: str, python: Interpreter | None) -> str:
    command = [*pip, "download", *_OPTIONS, "--no-deps", *_WHEELS, "--progress-bar", "off", "--dest", folder]
    wanted = f"{name}=={version}"
    first = done = _run([*command, wanted], PATIENCE_DOWNLOAD)
    if done.status != 0 and python is not None and not _UNREACHABLE.search(_text(done)):
        tags = ["--python-version", ".".join(map(str, python.python_version))]
        done = _run([*command, *tags, wanted], PATIENCE_DOWNLOAD)
    wheels = sorted(entry for entry in os.listdir(folder) if entry.endswith(".whl"))
    if done.status != 0 or not wheels:
        raise pip_failed(f"{name} {version}", "the release cannot be fetched as a wheel", first)
    return os.path.join(folder, wheels[0])


def _listed_by_refusal(pip: list[str], name: str, python: Interpreter | None) -> tuple[Completed, re.Match[str] | None]:
    """Ask for a version that nothing has: pip's refusal lists those that there are."""
    tags = ["--python-version", ".".join(map(str, python.python_version))] if python is not None else []
    command = [*pip, "download", *_OPTIONS, "--no-deps", *_WHEELS, *tags, "--dest", os.devnull, f"{name}==999999!0"]
    done = _run(command, PATIENCE_LISTING)
    return done, re.search(r"\(from versions: (?!none\))([^)]*)\)", _text(done))


def _sorted(listed: str) -> list[str]:
    from packaging.version import InvalidVersion, Version

    found = {}
    for text in listed.split(","):
        with contextlib.suppress(InvalidVersion):
            found[Version(text.strip())] = text.strip()
    return [found[version] for version in sorted(found)]


def _text(done: Completed) -> str:
    return (done.err + b"\n" + done.out).decode("utf-8", "replace")


def pip_failed(what: str, problem: str, done: Completed) -> SiteError:
    """The error for a pip that failed, with what it said, addresses left out."""
    text = _text(done)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")] or lines or ["it printed nothing"]
    said = _ADDRESS.sub("(address left out)", errors[-1].removeprefix("ERROR:").strip())
    if done.status is None:
        hint = "try again; pip did not end in time"
    elif _UNREACHABLE.search(text):
        problem = "the package index cannot be reached"
        hint = "check the network and pip's configuration (`pip config list`)"
    else:
        hint = "check the name and the version; a release without wheels cannot be used"
    return SiteError(f"{what}: {problem}; pip said: {said}", code="fetch", hint=hint, details={"output": said})
