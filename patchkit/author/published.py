"""Released wheels as planning sees them: which there are, fetched side by side, their files read in place.

Nothing is unpacked or installed: planning reads the few files that a patch names out of the archive.
"""

from __future__ import annotations

import ast
import os
import sys
import warnings
import zipfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from patchkit.edit.locate import FileText
from patchkit.edit.source import Source
from patchkit.errors import PatchkitError, PlanError, SiteError, UsageError
from patchkit.site import foreign
from patchkit.site.cache import cache_directory
from patchkit.site.distribution import normalize
from patchkit.site.grammar import Grammar, SyntaxProblem
from patchkit.site.guard import version_matches
from patchkit.site.wheel import (
    cached_versions,
    cached_wheel,
    fetch_wheel,
    opened_archive,
    read_member,
    released_versions,
)
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.site.environment import Site

AT_ONCE = 4
"""Downloads side by side: each is a pip of its own, and an index is nobody's to flood."""

Progress = Callable[[int, int, str], None]
"""Called with how many are done, how many there are, and what is at hand."""


@lru_cache(maxsize=16)
def _parsed(text: str) -> ast.Module:
    """The tree of a text. One file is planned on many times, as a patch is carried; nobody changes a tree."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


@lru_cache(maxsize=16)
def _judged(path: str, data: bytes) -> list[Any] | None:
    """What does not compile in a file: planned on the old release and the new one, again and again."""
    return foreign.judge(path, data)


class HostGrammar:
    """The running Python's grammar (:class:`patchkit.edit.plan.Grammar`): a wheel has no interpreter of its own."""

    def parse(self, text: str) -> ast.Module:
        """Parse, raising what ``ast.parse`` raises."""
        return _parsed(text)

    def judge(self, files: Mapping[str, bytes]) -> dict[str, SyntaxProblem]:
        """The files that do not compile, by their path."""
        problems = {path: _judged(path, data) for path, data in files.items()}
        return {path: SyntaxProblem(*problem) for path, problem in problems.items() if problem is not None}


class WheelFiles:
    """The files of one release, read out of its wheel (:class:`patchkit.edit.plan.Files`).

    Paths are those that RECORD has once the wheel is installed. ``grammar`` is what judges them: that of the running
    Python, or that of a site which the release is to be installed in, whose version is ``python`` then,
    where it has an interpreter.
    """

    def __init__(self, archive: zipfile.ZipFile, name: str, version: str, site: Site | None = None) -> None:
        self.name = name
        self.version = version
        self.grammar = HostGrammar() if site is None else Grammar(site)
        interpreter = site.interpreter if site is not None else None
        self.python = ".".join(map(str, interpreter.version)) if interpreter is not None else None
        self._archive = archive
        self._members: dict[str, str] = {}
        for member in archive.namelist():
            head, _, rest = member.partition("/")
            kind, slash, inner = rest.partition("/")
            moved = head.endswith(".data") and slash and kind in ("purelib", "platlib")
            if not member.endswith("/"):
                self._members[inner if moved else member] = member
        self._read: dict[str, bytes] = {}
        self._texts: dict[str, FileText] = {}

    def has(self, path: str) -> bool:
        """Whether the release has this file."""
        return path in self._members

    def paths(self) -> list[str]:
        """Every file of the release."""
        return sorted(self._members)

    def data(self, path: str) -> bytes:
        """The bytes of one file, read once.

        Raises:
            KeyError: The release has no such file.
            SiteError: ``fetch``: the wheel cannot be read; ``too-large``.
        """
        if path not in self._read:
            self._read[path] = read_member(self._archive, self._members[path])
        return self._read[path]

    def put(self, path: str, data: bytes | None) -> None:
        """Take ``data`` for a file's bytes from now on (None: no file), as a patch makes them, for the next one."""
        self._texts.pop(path, None)
        if data is None:
            self._members.pop(path, None)
            return
        self._members.setdefault(path, path)
        self._read[path] = data

    def text(self, path: str) -> FileText:
        """One file as source text; its outline is made once.

        Raises:
            KeyError: The release has no such file.
            SiteError: ``fetch``: the wheel cannot be read; ``too-large``.
        """
        if path not in self._texts:
            self._texts[path] = FileText(Source(self.data(path), path=path), self.grammar.parse)
        return self._texts[path]

    def read(self, path: str, *, wanted_by: Callable[[], str]) -> bytes:
        """The bytes of one file, as planning asks for them.

        Raises:
            PlanError: ``not-in-distribution``.
            SiteError: ``fetch``: the wheel cannot be read; ``too-large``.
        """
        if path not in self._members:
            named = [known for known in self._members if known.rpartition("/")[2] == path.rpartition("/")[2]]
            near = f"; it has {', '.join(sorted(named)[:3])}" if named and not path.endswith("__init__.py") else ""
            raise PlanError(
                f"{wanted_by()}: {self.name} {self.version} has no file {path}{near}",
                code="not-in-distribution",
                hint="the file was moved or removed in that release",
                details={"path": path, "distribution": self.name, "version": self.version, "near": sorted(named)[:3]},
            )
        return self.data(path)

    def matches(self, specifier: str) -> bool:
        """Whether the release satisfies a PEP 440 specifier."""
        return version_matches(specifier, self.version)

    def siblings(self) -> Iterator[tuple[str, bytes]]:
        """The release's Python files, but for what is too large to be source."""
        for path in self.paths():
            if path.endswith((".py", ".pyi")):
                try:
                    data = self.data(path)
                except SiteError as error:
                    if error.code != "too-large":
                        raise
                    continue
                yield path, data

    def requires_python(self) -> str | None:
        """``Requires-Python`` of the release's metadata, as it stands there."""
        for path in self._members:
            if path.count("/") == 1 and path.endswith(".dist-info/METADATA"):
                head = self.data(path).partition(b"\n\n")[0].decode("utf-8", "replace")
                for line in head.splitlines():
                    key, colon, value = line.partition(":")
                    if colon and key.lower() == "requires-python":
                        return value.strip()
        return None

    def foreign_python(self) -> str | None:
        """A remark where the release is not for the Python that judges it here, or that the site has."""
        wanted = self.requires_python()
        running = self.python or ".".join(map(str, sys.version_info[:3]))
        try:
            if wanted is None or version_matches(wanted, running):
                return None
        except PatchkitError:
            return None
        if self.python is not None:
            return f"it is for Python {wanted}; the site has {running}"
        return f"it is for Python {wanted}; read here by the grammar of {running}"


@contextmanager
def opened_wheel(path: str, name: str, version: str, site: Site | None = None) -> Iterator[WheelFiles]:
    """The files of the wheel at ``path``, judged by the grammar of ``site``, or of the running Python.

    Raises:
        SiteError: ``fetch``: it cannot be read.
    """
    with opened_archive(path) as archive:
        yield WheelFiles(archive, name, version, site)


class Listing(NamedTuple):
    """The versions of a distribution, oldest first; ``offline`` says why they are only those of the cache."""

    name: str
    versions: tuple[str, ...]
    offline: str | None


def list_versions(name: str, *, offline: bool = False) -> Listing:
    """The versions that the index has as wheels; those in the cache where the index may or can not be asked.

    Raises:
        SiteError: ``fetch``: neither has any.
    """
    why = "the index was not asked (--offline)"
    if not offline:
        try:
            return Listing(name, tuple(released_versions(name)), None)
        except SiteError as error:
            why = error.message
            kept = cached_versions(name)
            if not kept:
                error.hint = f"{error.hint or 'try again'}; the cache has no release of {name} either"
                raise
            return Listing(name, tuple(kept), why)
    kept = cached_versions(name)
    if not kept:
        raise SiteError(
            f"the cache has no release of {name}, and the index may not be asked (--offline)",
            code="fetch",
            hint=f"run it once without --offline; the cache is {wheel_folder(name)}",
            details={"distribution": name, "cached": []},
        )
    return Listing(name, tuple(kept), why)


def wheel_folder(name: str | None = None) -> str:
    """Where the wheels are kept, all or those of one distribution."""
    folder = os.path.join(cache_directory(), "wheels")
    return folder if name is None else os.path.join(folder, normalize(name))


def folder_size(folder: str) -> int:
    """The bytes of every file below ``folder``; 0 where there is none."""
    return sum(
        os.path.getsize(os.path.join(where, file))
        for where, _, files in os.walk(folder)
        for file in files
        if os.path.isfile(os.path.join(where, file))
    )


def get_wheel(name: str, version: str, *, offline: bool = False) -> str:
    """The path of one released wheel, out of the cache or fetched into it; its hash is checked.

    Raises:
        SiteError: ``fetch``: it cannot be had; says which versions the cache has.
    """
    found = cached_wheel(name, version)
    if found is not None:
        return found
    kept = cached_versions(name)
    have = f"the cache has {', '.join(kept)}" if kept else f"the cache has no release of {name}"
    if offline:
        raise SiteError(
            f"{name} {version} is not in the cache, and the index may not be asked (--offline); {have}",
            code="fetch",
            hint="run it once without --offline",
            details={"distribution": name, "version": version, "cached": kept},
        )
    try:
        return fetch_wheel(name, version)
    except SiteError as error:
        error.hint = f"{error.hint or 'try again'}; {have}"
        error.details["cached"] = kept
        raise


def cached_between(name: str, old: str, new: str) -> list[str]:
    """The final releases in the cache between an older and a newer one, the newest first, whose hashes hold."""
    from packaging.version import Version

    low, high = Version(old), Version(new)
    found = [v for v in reversed(cached_versions(name)) if low < Version(v) < high and not Version(v).is_prerelease]
    return [version for version in found if cached_wheel(name, version) is not None]


def get_wheels(
    wanted: Sequence[tuple[str, str]], *, offline: bool = False, progress: Progress | None = None
) -> Generator[tuple[str, str, str | PatchkitError], None, None]:
    """Each ``(name, version)`` of ``wanted`` with the path of its wheel, or why it cannot be had, in that order.

    They are fetched a few at once; the first are given while the last are still under way. Close it when it is not read
    to its end (``contextlib.closing``): that ends its threads, and the downloads under way.
    """
    from concurrent.futures import ThreadPoolExecutor, wait

    from patchkit.site.process import Group

    def get(item: tuple[str, str]) -> str | PatchkitError:
        try:
            return get_wheel(*item, offline=offline)
        except PatchkitError as error:
            return error

    pool, group = ThreadPoolExecutor(max_workers=AT_ONCE), Group()
    try:
        futures = [pool.submit(group.call, get, item) for item in wanted]
        for done, ((name, version), future) in enumerate(zip(wanted, futures, strict=True)):
            while progress is not None:
                progress(done, len(wanted), f"{name} {version}")
                if wait([future], timeout=1.0).done:
                    break
            yield name, version, future.result()
    finally:
        # Ctrl-C, or the first release that is wrong: those not begun are not, and nobody waits for those that are.
        pool.shutdown(wait=False, cancel_futures=True)
        group.end()
        pool.shutdown(wait=True)


def select(
    listing: Listing, *, versions: str | None, pre: bool, limit: int, requirement: str, newer_only: bool = False
) -> list[str]:
    """The releases to look at, newest first.

    Args:
        listing: What there is.
        versions: A PEP 440 specifier that they must satisfy; then ``limit`` does not count.
        pre: Whether prereleases count.
        limit: The newest so many, and the newest so many within ``requirement``; 0: all.
        requirement: The patch's own specifier.
        newer_only: Leave out what is older than all that ``requirement`` admits.

    Raises:
        UsageError: ``versions`` is no specifier, or no release satisfies it.
    """
    from packaging.specifiers import InvalidSpecifier, SpecifierSet
    from packaging.version import Version

    known = [text for text in reversed(listing.versions) if pre or not Version(text).is_prerelease]
    if versions is not None:
        try:
            wanted = SpecifierSet(versions)
        except InvalidSpecifier:
            raise UsageError(
                f"--versions {versions!r} is not a version specifier",
                hint='write it as in --versions ">=0.23,<0.33"',
                details={"value": versions},
            ) from None
        chosen = [text for text in known if wanted.contains(text, prereleases=True)]
        if not chosen:
            there = ", ".join(known[:12]) + (" ..." if len(known) > 12 else "")
            raise UsageError(
                f"no release of {listing.name} is {versions}",
                hint=f"there are {there or 'none'}" + (f" ({listing.offline})" if listing.offline else ""),
                details={"versions": known},
            )
        return chosen
    own = [text for text in known if version_matches(requirement, text)] if requirement else known
    if newer_only and own:
        known = known[: known.index(own[-1]) + 1]
    if limit == 0:
        return known
    kept = {*known[:limit], *own[:limit]}
    return [text for text in known if text in kept]
