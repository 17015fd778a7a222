"""What an import takes instead of a source file, so that an edit of that file has no effect on it.

The rules are those of ``importlib.machinery``: the first entry of the path that has the name; in one directory a
package (with an ``__init__``) before a module, and an extension module before a source file.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from patchkit.runtime.ledger import file_path, has_links

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from patchkit.site.distribution import Distribution
    from patchkit.site.environment import Site


_MODULES = (".py", ".pyc", ".so", ".pyd")


class Shadows:
    """Looks for them in one distribution; every directory is listed once.

    Modules that a running program puts first on its path by itself are not known here, except by ``PYTHONPATH``.
    """

    def __init__(self, distribution: Distribution) -> None:
        self._distribution = distribution
        self._compiled = _compiled(distribution.site)
        self._listed: dict[str, dict[str, list[str]]] = {}
        self._first: dict[str, str | None] = {}

    def find(self, path: str) -> str | None:
        """What an import takes instead of this ``.py`` file, for people; None where it takes the file."""
        stem, suffix = os.path.splitext(path)
        if suffix != ".py":
            return None
        base = self._distribution.base
        *folders, name = stem.split("/")
        where = ""
        for folder in folders:
            if self._module(os.path.join(base, where, folder), "__init__") is None:
                module = self._module(os.path.join(base, where), folder)
                if module is not None:
                    return where + module  # a module goes before a namespace package
            where += folder + "/"
        found = self._package(os.path.join(base, where), name)
        if found is None:
            found = self._module(os.path.join(base, where), name, sources=False)
        if found is not None:
            return where + found
        top = (folders or [name])[0]
        if top not in self._first:
            self._first[top] = self._earlier(top)
        return self._first[top]

    def _names(self, directory: str) -> dict[str, list[str]]:
        """The names in a directory, by what stands before their first dot."""
        found = self._listed.get(directory)
        if found is None:
            found = self._listed[directory] = {}
            try:
                names = sorted(os.listdir(directory))
            except OSError:
                names = []
            for name in names:
                found.setdefault(name.partition(".")[0], []).append(name)
        return found

    def _module(self, directory: str, name: str, *, sources: bool = True) -> str | None:
        """The file of that module in a directory."""
        for file in self._names(directory).get(name, ()):
            suffix = file[len(name) :]
            if self._compiled(suffix) or (sources and suffix in (".py", ".pyc")):
                return file
        return None

    def _package(self, directory: str, name: str) -> str | None:
        """The ``__init__`` of that package in a directory."""
        if name not in self._names(directory).get(name, ()):
            return None
        found = self._module(os.path.join(directory, name), "__init__")
        return None if found is None else f"{name}/{found}"

    def _earlier(self, top: str) -> str | None:
        """The module or package ``top`` that comes first on the path."""
        site = self._distribution.site
        base = os.path.realpath(self._distribution.base)
        for entry in filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)):
            found = None if os.path.realpath(entry) == base else self._in_entry(entry, top)
            if found is not None:
                return f"{found} (first by PYTHONPATH)"
        if site.python_version == sys.version_info[:2] and top in sys.stdlib_module_names:
            return f"the standard library's {top}"
        if base not in map(os.path.realpath, site.paths):
            return None  # named by a .pth file, whose place on the path is not known
        for entry in site.paths:
            if os.path.realpath(entry) == base:
                break
            found = self._in_entry(entry, top)
            if found is not None:
                return f"{found} (first on the path)"
        return None

    def _in_entry(self, entry: str, top: str) -> str | None:
        if os.path.isfile(entry):
            return _in_archive(entry, top)
        found = self._package(entry, top) or self._module(entry, top)
        return None if found is None else os.path.join(entry, found)


def shadowing_module(distribution: Distribution, path: str) -> str | None:
    """:meth:`Shadows.find`, for one file."""
    return Shadows(distribution).find(path)


class Glance:
    """Whether :class:`Shadows` may find something, by names alone: for ``check``, which has no time for more.

    It may say so where there is nothing, never the other way round. Every directory is listed once, and only those that
    hold patched sources, or may come before them.
    """

    def __init__(self, site: Site, home: str) -> None:
        self._home = home
        self._before = _entries_before(site, home)
        self._archives = {entry for entry in self._before if os.path.isfile(entry)}  # with anything in them
        self._names: dict[str, list[str]] = {}
        self._first: dict[str, bool] = {}
        self._above: dict[str, bool] = {}
        self._beside: dict[str, frozenset[str]] = {}

    def sees(self, keys: Iterable[str]) -> bool:
        """Whether an import may take something else than one of these files, by their keys in the ledger."""
        return any(key.endswith(".py") and self._passed_over(key) for key in keys)

    def _passed_over(self, key: str) -> bool:
        folder, _, name = key.rpartition("/")
        beside = self._beside.get(folder)
        if beside is None:
            # An extension module, or perhaps a package: no other name can go before a source file in its own folder.
            there = self._listed(file_path(self._home, folder) if folder else self._home)
            beside = self._beside[folder] = frozenset(
                one.partition(".")[0] for one in there if one.endswith((".so", ".pyd")) or "." not in one
            )
        if name[:-3] in beside:
            return True
        if os.path.isabs(key):
            return False
        found = self._above.get(folder)
        if found is None:
            found = self._above[folder] = self._found_above(folder)
        if found or folder:
            return found
        return self._comes_first(name[:-3])

    def _found_above(self, folder: str) -> bool:
        """Whether a module goes before one of the folders, or something before the first of them on the path."""
        where = self._home
        top = ""
        for name in folder.split("/") if folder else ():
            inside = os.path.join(where, name)
            if name.endswith(".egg") and not top:
                where = inside
                continue
            top = top or name
            # A package, which most are, goes before any module.
            listed = self._names.get(inside)
            main = os.path.lexists(os.path.join(inside, "__init__.py")) if listed is None else "__init__.py" in listed
            if not main and self._is_module(where, name):
                return True
            where = inside
        return bool(top) and self._comes_first(top)

    def _is_module(self, directory: str, name: str) -> bool:
        return any(one.startswith(name + ".") and one.endswith(_MODULES) for one in self._listed(directory))

    def _comes_first(self, top: str) -> bool:
        found = self._first.get(top)
        if found is None:
            found = top in sys.stdlib_module_names or any(
                entry in self._archives or top in self._listed(entry) or self._is_module(entry, top)
                for entry in self._before
            )
            self._first[top] = found
        return found

    def _listed(self, directory: str) -> list[str]:
        found = self._names.get(directory)
        if found is None:
            try:
                found = os.listdir(directory)
            except OSError:
                found = []
            self._names[directory] = found
        return found


def looks_odd(site: Site, home: str, keys: Iterable[str]) -> bool:
    """Whether a file may have been linked here by an installer, or be passed over by imports: reason to look closer.

    patchkit never writes a link, and compiled modules are rare.
    """
    keys = list(keys)
    return any(is_linked(file_path(home, key)) for key in keys) or Glance(site, home).sees(keys)


def is_linked(path: str) -> bool:
    """Whether a file is a link, or has further names; not one that is not there."""
    try:
        return has_links(os.lstat(path))
    except OSError:
        return False


def _entries_before(site: Site, home: str) -> list[str]:
    """What comes before ``home`` on the path, as far as it is known; also for a home whose place is not."""
    named = os.environ.get("PYTHONPATH", "")
    found = [one for one in named.split(os.pathsep) if one and not _is_same(one, home)]
    for entry in site.paths:
        if _is_same(entry, home):
            break
        found.append(entry)
    return found


def _is_same(one: str, other: str) -> bool:
    return one == other or os.path.realpath(one) == os.path.realpath(other)


def _in_archive(archive: str, top: str) -> str | None:
    import zipfile

    try:
        with zipfile.ZipFile(archive) as opened:
            listed = opened.namelist()
    except (OSError, zipfile.BadZipFile):
        return None
    found = next((one for one in listed if one.startswith((f"{top}/__init__.py", f"{top}.py"))), None)
    return None if found is None else os.path.join(archive, found)


def _compiled(site: Site) -> Callable[[str], bool]:
    """Whether a suffix (``.cpython-312-x86_64-linux-gnu.so``) is one of an extension module that this Python loads."""
    known = () if site.interpreter is None else site.interpreter.extension_suffixes
    if known:
        return known.__contains__
    version = None if site.python_version is None else "{}{}".format(*site.python_version)

    def compiled(suffix: str) -> bool:
        if not suffix.endswith((".so", ".pyd")):
            return False
        tag = suffix[1:].rpartition(".")[0]  # "x.so" has none; "x.y.so" is module y of nothing
        if tag in ("", "abi3"):
            return True
        for maker in ("cpython-", "cp", "pypy", "graalpy"):
            if tag.startswith(maker):
                digits = tag[len(maker) :].partition("-")[0].rstrip("tdm")
                return version is None or digits == version or maker == "graalpy"
        return False

    return compiled
