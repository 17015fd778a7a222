"""A vendored copy of modules in the place of the stock ones, in one process.

``patchkit transplant`` lays a copy of this file, and of those it imports, into every copy that it makes, below
``_transplant/``: it runs inside the target, on CPython 3.8 and later, where patchkit is not installed. Standard library
only.

The stock modules stay what they are, and are imported as ever; what their functions and classes are is exchanged, in
the module and wherever else in the process a direct reference to one is held: at once for modules that are imported,
and by a finder that is asked first, when they are, for all others. Public functions are wrapped in a probe; names that
begin with ``_`` and classes are not (kernel bodies are inspected by those who compile them).
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import types

from patchkit.runtime.entries import Probe, about_process, is_entry, leave, probes_folder, say, wrap
from patchkit.runtime.leftovers import find_leftovers
from patchkit.runtime.rebind import Rebinder, thawed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

VARIABLE = "PATCHKIT_TRANSPLANT"
"""The environment variable with words for every copy: ``off``, ``verbose``, ``stale``; separated by commas."""
MANIFEST = "transplant.json"
SCHEMA = 1
_PLAIN = (int, float, complex, str, bytes, bool, type(None))
_FORK_SECONDS = 10.0

_lock = threading.RLock()


class Transplant:
    """One copy, in force in this process. ``substitutions`` tell what was done, in the order of the imports."""

    def __init__(self, folder: str) -> None:
        """Read the manifest of the copy in ``folder``.

        Raises:
            OSError, ValueError, KeyError: It cannot be used.
        """
        import json

        with open(os.path.join(folder, MANIFEST), encoding="utf-8") as file:
            manifest = json.load(file)
        if manifest["schema"] != SCHEMA:
            raise ValueError(f"{MANIFEST}: its schema is {manifest['schema']}")
        self.folder = folder
        self.name: str = manifest["copy"]
        self.distribution: str = manifest["distribution"]
        self.version: str = manifest["version"]
        self.files: dict[str, dict[str, Any]] = {
            file["module"]: file for file in manifest["files"] if file["module"] is not None
        }
        self.substitutions: list[dict[str, Any]] = []
        self.unwrapped: list[str] = []
        self._made: dict[int, Any] = {}
        words = os.environ.get(VARIABLE, "").split(",")
        self.verbose = "verbose" in words
        self._stale = "stale" in words

    # --- finding ------------------------------------------------------------------------------------------------------

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """For ``sys.meta_path``: the copy itself, wherever it lies; a stock module, to be substituted once it is there.

        See :class:`importlib.abc.MetaPathFinder`.
        """
        if fullname == self.name and "." not in fullname:
            return self._own_spec(fullname)
        if fullname not in self.files:
            return None
        finders = list(sys.meta_path)
        own = next((at for at, finder in enumerate(finders) if finder is self), -1)
        for finder in finders[own + 1 :]:
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = None if find is None else find(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _After(spec.loader, self)  # type: ignore[assignment]  # importlib asks no more
                return spec
        return None

    def _own_spec(self, fullname: str) -> ModuleSpec | None:
        from importlib.machinery import ModuleSpec
        from importlib.util import spec_from_file_location

        init = os.path.join(self.folder, "__init__.py")
        if os.path.isfile(init):
            return spec_from_file_location(fullname, init, submodule_search_locations=[self.folder])
        spec = ModuleSpec(fullname, None, is_package=True)
        spec.submodule_search_locations = [self.folder]
        return spec

    # --- substituting -------------------------------------------------------------------------------------------------

    def substitute(self, modules: Sequence[ModuleType]) -> None:
        """Put the copy's functions and classes in the place of those of ``modules``, which are imported.

        Raises:
            ImportError: A stock module is not the one that was transplanted; or the copy cannot be imported.
        """
        with _lock:
            for module in modules:
                self._verify(module)
            names: list[str] = []
            olds: list[Any] = []
            news: list[Any] = []
            result: dict[str, Any] = {"modules": [module.__name__ for module in modules], "constants": [], "gone": []}
            copies = [importlib.import_module(self.files[module.__name__]["copy"]) for module in modules]
            exposed = self._exposed(modules, copies)
            skipped: list[dict[str, str]] = []
            for module, copy in zip(modules, copies):
                self._pair(module, copy, exposed, (names, olds, news), result, skipped)
            result["replaced"] = len(olds)
            rebinder = Rebinder(olds, news, [self._made, exposed])
            registered = _carry_registrations(olds, news, rebinder.table)
            if registered:
                rebinder.counts["singledispatch registration"] = registered
            if olds:
                with thawed():
                    rebinder.run()
                    skipped += find_leftovers(rebinder, names)
            result["rebound"] = dict(sorted(rebinder.counts.items()))
            result["not_rebound"] = skipped
            self.substitutions.append(result)
            del rebinder, olds
        self._report(result)

    def _verify(self, module: ModuleType) -> None:
        """Refuse to stand in for another release than the one that was copied."""
        file = self.files[module.__name__]
        spec: Any = module.__spec__
        reason = None
        try:
            data = spec.loader.get_data(spec.origin)
        except Exception as error:
            reason = f"cannot be read ({error})"
        else:
            import hashlib

            if hashlib.sha256(data).hexdigest() != file["source_sha256"]:
                reason = f"is not the one of {self.distribution} {self.version} that was copied"
        if reason is None:
            return
        text = f"transplant {self.name}: {getattr(spec, 'origin', module.__name__)} {reason}"
        if self._stale:
            say(f"{text}; goes on, as {VARIABLE} says")
            return
        say(text)
        raise ImportError(
            f"{text}: `patchkit transplant update {self.folder}` carries the copy over; {VARIABLE}=stale goes on with "
            f"it, {VARIABLE}=off without it",
            name=module.__name__,
        )

    def _exposed(self, modules: Sequence[ModuleType], copies: Sequence[ModuleType]) -> dict[int, bool]:
        """Of each object of the stock modules, by its id, whether all its names are public ones."""
        found: dict[int, bool] = {}
        for module, copy in zip(modules, copies):
            for key, old in list(vars(module).items()):
                if key in vars(copy) and vars(copy)[key] is not old:
                    public = not key.startswith("_") and not getattr(old, "__name__", "").startswith("_")
                    found[id(old)] = found.get(id(old), True) and public
        return found

    def _pair(
        self,
        module: ModuleType,
        copy: ModuleType,
        exposed: dict[int, bool],
        pairs: tuple[list[str], list[Any], list[Any]],
        result: dict[str, Any],
        skipped: list[dict[str, str]],
    ) -> None:
        """Exchange the names of one module, and note which object took the place of which."""
        names, olds, news = pairs
        stock, ours = vars(module), vars(copy)
        for key, old in list(stock.items()):
            if key.startswith("__") and key not in ("__getattr__", "__dir__"):
                continue
            label = f"{module.__name__}.{key}"
            if key not in ours:
                if getattr(old, "__module__", None) == module.__name__:
                    result["gone"].append(label)
                continue
            new = ours[key]
            if new is old or id(old) in self._made or isinstance(old, types.ModuleType):
                continue
            if not (callable(old) and callable(new)) or type(old).__module__ in self.files:
                if isinstance(old, _PLAIN) and isinstance(new, _PLAIN):
                    if old != new:
                        stock[key] = new
                        result["constants"].append(label)
                        skipped += self._same_name(module, key, old)
                elif _differ(old, new):
                    words = "data that differs from the copy's: the copy's functions use their own"
                    skipped.append({"object": label, "where": words})
                continue
            known = next((at for at, one in enumerate(olds) if one is old), None)
            if known is None:
                home = getattr(old, "__module__", None)
                home = home if home in self.files and vars(sys.modules[home]).get(key) is old else module.__name__
                label = f"{home}.{key}"
                new = self._entry(home, key, new) if exposed.get(id(old)) else new
                names.append(label)
                olds.append(old)
                news.append(new)
                self._made[id(new)] = new
                if isinstance(old, type) and isinstance(new, type):
                    self._pair_members(label, old, new, pairs)
            stock[key] = new if known is None else news[known]
        for key in ours:
            if key not in stock and getattr(ours[key], "__module__", None) == copy.__name__:
                stock[key] = ours[key]

    def _entry(self, module: str, key: str, new: Any) -> Any:
        if not is_entry(new):
            if isinstance(new, types.FunctionType):
                self.unwrapped.append(f"{module}.{key}")
            return new
        names = [name for name in vars(sys.modules[module]) if not name.startswith("__")]
        edit = 1000 * (1 + list(self.files).index(module)) + names.index(key)  # the same in every process
        return wrap(new, Probe(self.name, edit, self.files[module]["source"], module, key))

    def _pair_members(self, label: str, old: type, new: type, pairs: tuple[list[str], list[Any], list[Any]]) -> None:
        """The functions of a class, the members of an enumeration and the classes within."""
        members = getattr(old, "__members__", None) if "enum" in sys.modules else None
        for key, value in list(vars(old).items()):
            other: Any = vars(new).get(key)
            if isinstance(value, (staticmethod, classmethod)) and type(value) is type(other):
                value, other = value.__func__, other.__func__
            fits = isinstance(value, (types.FunctionType, type)) and isinstance(other, type(value))
            if key != "__class__" and fits and value is not other and value.__module__ == old.__module__:
                for part, one in zip(pairs, (f"{label}.{key}", value, other)):
                    part.append(one)
                if isinstance(value, type):
                    self._pair_members(f"{label}.{key}", value, other, pairs)
        if isinstance(members, types.MappingProxyType) and isinstance(old, sys.modules["enum"].EnumMeta):
            for key, value in members.items():
                if key in getattr(new, "__members__", ()):
                    for part, one in zip(pairs, (f"{label}.{key}", value, new[key])):  # type: ignore[index]
                        part.append(one)

    def _same_name(self, module: ModuleType, key: str, old: Any) -> list[dict[str, str]]:
        """Where a constant may have been imported to: a number does not tell where it comes from."""
        found = []
        for name, other in list(sys.modules.items()):
            space = getattr(other, "__dict__", None)
            if type(space) is not dict or other is module or name in self.files or key not in space:
                continue
            if type(space[key]) is type(old) and space[key] == old:
                where = f"global {key} of module {name} has the same value: an import of it, perhaps"
                found.append({"object": f"{module.__name__}.{key}", "where": where})
        return found

    # --- telling ------------------------------------------------------------------------------------------------------

    def _report(self, result: dict[str, Any]) -> None:
        count, left = sum(result["rebound"].values()), result["not_rebound"]
        if self.verbose:
            kinds = ", ".join(f"{number} {kind}" for kind, number in result["rebound"].items())
            say(
                f"transplant {self.name}: {', '.join(result['modules'])}: {result['replaced']} objects replaced, "
                f"{count} references elsewhere rebound{f' ({kinds})' if kinds else ''}, {len(left)} not"
            )
            for item in left:
                say(f"transplant {self.name}: not rebound: {item['object']}: {item['where']}")
            for label in result["gone"]:
                say(f"transplant {self.name}: the copy has no {label}: the stock one stays")
        elif left:
            say(
                f"transplant {self.name}: {', '.join(result['modules'])}: {len(left)} references to stock code "
                f"could not be rebound ({VARIABLE}=verbose names them)"
            )
        folder = probes_folder()
        if folder:
            pid = os.getpid()
            report = {
                "schema": 1,
                "transplant": self.name,
                "distribution": self.distribution,
                "version": self.version,
                "folder": self.folder,
                **about_process(pid),
                "unwrapped": self.unwrapped,
                "substitutions": self.substitutions,
            }
            try:
                leave(os.path.join(folder, "transplants", f"{pid}-{self.name}.json"), report)
            except OSError as error:
                say(f"transplant {self.name}: no report: {error}")


class _After:
    """Loads a stock module by its own loader, then has it substituted; the module keeps its own loader."""

    def __init__(self, loader: Any, transplant: Transplant) -> None:
        self._loader = loader
        self._transplant = transplant

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        found: ModuleType | None = self._loader.create_module(spec)
        return found

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._transplant.substitute([module])


def _carry_registrations(olds: list[Any], news: list[Any], table: dict[int, Any]) -> int:
    """Give the copy's ``functools.singledispatch`` functions what others have registered with the stock ones."""
    count = 0
    for old, new in zip(olds, news):
        register = getattr(new, "register", None)
        registries = [getattr(one, "registry", None) for one in (old, new)]
        if register is None or not all(isinstance(one, types.MappingProxyType) for one in registries):
            continue
        for kind, function in list(registries[0].items()):  # type: ignore[union-attr]
            if table.get(id(kind), kind) not in registries[1]:  # type: ignore[operator]
                register(table.get(id(kind), kind), table.get(id(function), function))
                count += 1
    return count


def _differ(old: Any, new: Any, depth: int = 4) -> bool:
    """Whether two values of data are not alike, as far as plain ones in plain containers tell."""
    if isinstance(old, _PLAIN) and isinstance(new, _PLAIN):
        return bool(old != new)
    if type(old) is not type(new) or type(old) not in (dict, list, tuple, set, frozenset) or depth == 0:
        return type(old) is not type(new) and type(old).__name__ != type(new).__name__
    if len(old) != len(new):
        return True
    if isinstance(old, dict):
        if all(isinstance(key, _PLAIN) for key in old):
            return any(key not in new or _differ(old[key], new[key], depth - 1) for key in old)
        return any(_differ(a, b, depth - 1) for pair in zip(old.items(), new.items()) for a, b in zip(*pair))
    if isinstance(old, (set, frozenset)):
        return all(isinstance(one, _PLAIN) for one in old) and old != new
    return any(_differ(a, b, depth - 1) for a, b in zip(old, new))


def activate(folder: str) -> Transplant | None:
    """Put the copy in ``folder`` in the place of its stock modules, those imported already and those to come.

    Once for each copy and process; forks and threads see it wholly or not at all.

    Returns:
        What is in force; None where ``PATCHKIT_TRANSPLANT`` says ``off``.

    Raises:
        ImportError: As :meth:`Transplant.substitute` does; a stock module that is imported later raises it then.
        OSError, ValueError, KeyError: The manifest cannot be used.
    """
    folder = os.path.realpath(folder)
    if "off" in os.environ.get(VARIABLE, "").split(","):
        return None
    with _lock:
        finders: list[Any] = list(sys.meta_path)
        for finder in finders:  # made by another copy of this module, perhaps
            if hasattr(finder, "substitutions") and getattr(finder, "folder", None) == folder:
                found: Transplant = finder
                return found
        transplant = Transplant(folder)
        _mind_forks()
        sys.meta_path.insert(0, transplant)
        present = [sys.modules[name] for name in transplant.files if sys.modules.get(name) is not None]
        busy = [module for module in present if getattr(module.__spec__, "_initializing", False)]
        for module in busy:
            say(f"transplant {transplant.name}: {module.__name__} is being imported: activate before that, or after")
        if len(busy) < len(present):
            transplant.substitute([module for module in present if module not in busy])
    return transplant


def _mind_forks() -> None:
    """No fork while references are half replaced: the child would stay so."""
    global _forks_minded
    if _forks_minded or not hasattr(os, "register_at_fork"):
        return
    _forks_minded = True
    held: list[bool] = []

    def before() -> None:
        held.append(_lock.acquire(timeout=_FORK_SECONDS))

    def in_parent() -> None:
        if held.pop():
            _lock.release()

    def in_child() -> None:
        global _lock
        held.clear()
        _lock = threading.RLock()

    os.register_at_fork(before=before, after_in_parent=in_parent, after_in_child=in_child)


_forks_minded = False
