"""What this process imports, or has imported, in the place of a patched file.

Standard library only, Python 3.8 and later; imports nothing that is not loaded already, and no module of the site.
"""

from __future__ import annotations

import os
import sys
import time

from patchkit.runtime.ledger import file_path, open_text, read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import CodeType
    from typing import Any

#: What ``importlib.machinery`` hands on, whose own import costs two modules more.
_MACHINERY: Any = sys.modules["_frozen_importlib_external"]
#: Seconds by which the start of a process, counted from the boot, may be wrong where a clock was set meanwhile.
CLOCK_SECONDS = 2.0
_WRAPPERS = 16  # of one function, looked through


class Imports:
    """Looks at this process, at each folder and at the list of its modules once; for one call of ``require``."""

    def __init__(self) -> None:
        self._packages: dict[str, tuple[Any, str | None]] = {"": (None, None)}
        self._loaded: dict[str, list[dict[str, Any]]] | None = None
        self._started: float | None = None

    def not_in_force(self, home: str, keys: Iterable[str]) -> tuple[str, str] | None:
        """``inert`` or ``outdated`` and the reason, where this process does not get its modules from patched files.

        ``inert``: imports take another file. ``outdated``: a module was imported from the file before it was patched;
        told by its functions, so a module that has none that differ passes.

        Args:
            home: A site-packages directory.
            keys: Files of its ledger, as patched.
        """
        for key in keys:
            path = file_path(home, key)
            if not key.endswith(".py") or os.path.isabs(key):
                continue
            taken = self.passed_over(key, path)
            if taken is not None:
                return "inert", f"{key}: this process imports {taken} instead"
            for module in self._modules_of(path):
                if self._started is None:
                    self._started = process_started() or 0.0
                if os.stat(path).st_ctime > self._started - CLOCK_SECONDS and is_older(module, path):
                    name = module["__name__"]
                    return "outdated", f"{name} was imported before {key} was patched: restart the process"
        return None

    def passed_over(self, key: str, path: str) -> str | None:
        """What an import in this process takes, or has taken, instead of the source ``path``; None: that.

        Where a finder of its own brings the module, only what is imported already is known.
        """
        parts = key[:-3].split("/")
        if parts[-1] == "__init__":
            parts.pop()
        if not parts or not all(part.isidentifier() for part in parts):
            return None  # no module: a script, a template
        name = ".".join(parts)
        origin = getattr(getattr(sys.modules.get(name), "__spec__", None), "origin", None)
        if not isinstance(origin, str):
            if parts[0] in sys.builtin_module_names:
                return f"the built-in {parts[0]}"
            where, taken = self._package(".".join(parts[:-1]))
            if taken is not None or (where is None and len(parts) > 1):
                return taken
            origin = getattr(_find(name, where), "origin", None)
        return None if not isinstance(origin, str) or _same(origin, path) else origin

    def _package(self, name: str) -> tuple[Any, str | None]:
        """The folders of a package, or the module that stands in its place; both None where neither is found."""
        found = self._packages.get(name)
        if found is None:
            above, taken = self._package(name.rpartition(".")[0])
            found = None, taken
            if taken is None and (above is not None or "." not in name):
                spec = _find(name, above)
                locations = getattr(spec, "submodule_search_locations", None)
                if locations is not None:
                    # A namespace's own iterator asks for its parent, which need not be imported.
                    found = list(getattr(locations, "_path", locations)), None
                elif spec is not None:
                    found = None, str(spec.origin)
            self._packages[name] = found
        return found

    def _modules_of(self, path: str) -> list[dict[str, Any]]:
        """The namespaces of the imported modules whose source is ``path``."""
        if self._loaded is None:
            self._loaded = {}
            for module in list(sys.modules.values()):
                space = getattr(module, "__dict__", None)
                file = space.get("__file__") if type(space) is dict else None
                if space is not None and type(file) is str:
                    self._loaded.setdefault(os.path.basename(file), []).append(space)
        found = self._loaded.get(os.path.basename(path), ())
        return [space for space in found if _same(space["__file__"], path)]


def _find(name: str, where: Any) -> Any:
    """The spec of a module by the path alone, as an import would find it; None where that finds nothing."""
    try:
        return _MACHINERY.PathFinder.find_spec(name, where)
    except Exception:
        return None  # a hook of somebody else's


def _same(one: str, other: str) -> bool:
    return one == other or os.path.realpath(one) == os.path.realpath(other)


def process_started() -> float | None:
    """When this process began, in seconds since the epoch; None where the system does not tell so cheaply."""
    try:
        with open_text("/proc/self/stat") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
        # Not ``btime`` of /proc/stat: in some containers that is when the container was started.
        return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return None


def is_older(module: dict[str, Any], path: str) -> bool:
    """Whether a module, by its namespace, holds a function that its source as it is now does not."""
    if type(module.get("__loader__")) is not _MACHINERY.SourceFileLoader:
        return False  # one that rewrites what it loads, such as a test runner's
    try:
        whole = compile(read_regular(path), path, "exec", dont_inherit=True)
    except (OSError, SyntaxError, ValueError):
        return False
    current = set(_nested(whole))
    return any(body not in current for body in _functions(module))


def _nested(body: CodeType) -> Iterator[CodeType]:
    yield body
    for constant in body.co_consts:
        if type(constant) is type(body):
            yield from _nested(constant)


def _functions(module: dict[str, Any]) -> Iterator[CodeType]:
    """The code of the functions of a module and of its classes, as far as decorators show what they wrap."""
    name, file = module.get("__name__"), module.get("__file__")
    values = list(module.values())
    for value in values[:]:
        if isinstance(value, type) and getattr(value, "__module__", None) == name:
            values += list(vars(value).values())
    for value in values:
        for _ in range(_WRAPPERS):
            body = getattr(value, "__code__", None)
            if body is not None and getattr(body, "co_filename", None) == file:
                yield body
            wrapped = _inner(value)
            if wrapped is None:
                break
            value = wrapped


def _inner(value: Any) -> Any:
    """What a wrapper wraps, of those that say so in the usual ways."""
    if isinstance(value, property):
        return value.fget
    space = getattr(value, "__dict__", None)
    if isinstance(space, dict) and "__wrapped__" in space:
        return space["__wrapped__"]
    return value.__func__ if isinstance(value, (staticmethod, classmethod)) else None
