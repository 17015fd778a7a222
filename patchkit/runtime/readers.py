"""What the modules that read sources are told of patched ones: ``linecache``, ``inspect``, ``pkgutil``; and those that
go by the type of a loader, ``pkg_resources`` and ``importlib.abc``.

A part of the overlay (:mod:`patchkit.runtime.overlay`) that most processes never need: its copy in a bundle is loaded
when one of them has been imported. The same rules hold: the standard library, Python 3.8 and later.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from patchkit.runtime.overlay import Entry, Finder


def mend_linecache(
    linecache: Any, by_name: Mapping[str, Entry], by_file: Mapping[str, Entry], finders: type[Finder]
) -> None:
    """It prefers the file on disk to the loader: not for the file of a patched module."""
    import _frozen_importlib_external as external

    update = linecache.updatecache

    def updatecache(filename: str, module_globals: Any = None) -> list[str]:
        entry = by_file.get(filename)
        if entry is None or not entry.source:
            return list(update(filename, module_globals))
        try:
            with open(entry.source, "rb") as file:
                text = external.decode_source(file.read())
        except OSError:
            return []  # the bundle is gone; a traceback without its lines is better than none
        lines = [line + "\n" for line in text.split("\n")]
        if text.endswith("\n") or not text:
            lines.pop()
        linecache.cache[filename] = (len(text), None, lines, filename)  # without a time it is never taken for stale
        return lines

    linecache.updatecache = updatecache


def mend_inspect(
    inspect: Any, by_name: Mapping[str, Entry], by_file: Mapping[str, Entry], finders: type[Finder]
) -> None:
    """Frames and code objects are assigned to modules by their file."""
    for name, entry in by_name.items():
        if entry.source:
            inspect.modulesbyfile[os.path.normcase(os.path.abspath(entry.source))] = name


def mend_pkgutil(
    pkgutil: Any, by_name: Mapping[str, Entry], by_file: Mapping[str, Entry], finders: type[Finder]
) -> None:
    """A folder's modules are listed by what is on disk: with those added, without those that shall not be there."""
    listed = pkgutil.iter_importer_modules.dispatch(finders.__mro__[1])

    def iter_modules(finder: Finder, prefix: str = "") -> Iterator[tuple[str, bool]]:
        seen = set()
        for name, package in listed(finder, prefix):
            tail = name[len(prefix) :]
            seen.add(tail)
            entries = finder.entries.get(tail)
            if not entries or any(entry.source for entry in entries):
                yield name, package
        for tail, entries in finder.entries.items():
            if tail not in seen and tail != "__init__" and any(entry.source for entry in entries):
                yield prefix + tail, entries[0].package

    pkgutil.iter_importer_modules.register(finders, iter_modules)


def mend_pkg_resources(
    pkg_resources: Any, by_name: Mapping[str, Entry], by_file: Mapping[str, Entry], finders: type[Finder]
) -> None:
    """What lies beside a patched module is found as beside any other."""
    loaders = sys.modules["_patchkit_overlay"].Loader
    pkg_resources.register_loader_type(loaders, pkg_resources.DefaultProvider)


def mend_abc(abc: Any, by_name: Mapping[str, Entry], by_file: Mapping[str, Entry], finders: type[Finder]) -> None:
    """Our loader is what the one of a source file is, but for its type."""
    loaders = sys.modules["_patchkit_overlay"].Loader
    abc.FileLoader.register(loaders)
    abc.SourceLoader.register(loaders)


MENDS: dict[str, Callable[..., None]] = {
    "importlib.abc": mend_abc,
    "linecache": mend_linecache,
    "inspect": mend_inspect,
    "pkg_resources": mend_pkg_resources,
    "pkgutil": mend_pkgutil,
}
