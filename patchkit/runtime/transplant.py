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
from patchkit.runtime.pairing import Pairs, are_alike, differ, is_bare, is_constant, is_own, made_names
from patchkit.runtime.rebind import Rebinder, asked, is_a, thawed
from patchkit.runtime.registered import carry_registrations

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
_MACHINERY = ("name", "doc", "package", "loader", "spec", "path", "file", "cached", "builtins", "annotations", "dict")
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
        self._copies = frozenset(file["copy"] for file in self.files.values())
        self.substitutions: list[dict[str, Any]] = []
        self.unwrapped: list[str] = []
        self._made: dict[int, Any] = {}
        self._made_names: dict[str, frozenset[str]] = {}
        words = os.environ.get(VARIABLE, "").split(",")
        self.verbose = "verbose" in words
        self._stale = "stale" in words
        self.complete = False

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

    def begin(self) -> None:
        """Substitute what is imported already.

        Raises:
            ImportError: As :meth:`substitute` does; the next call tries again.
        """
        present: list[Any] = [sys.modules[name] for name in self.files if sys.modules.get(name) is not None]
        ready = []
        for module in present:
            if not isinstance(module, types.ModuleType):
                say(f"transplant {self.name}: an object of {type(module)} is in the place of a module: it stays stock")
            elif getattr(module.__spec__, "_initializing", False):
                say(f"transplant {self.name}: {module.__name__} is being imported: activate before that, or after")
            else:
                ready.append(module)
        if ready:
            self.substitute(ready)
        self.complete = True

    def substitute(self, modules: Sequence[ModuleType], *, fresh: bool = False) -> None:
        """Put the copy's functions and classes in the place of those of ``modules``, which are imported.

        Args:
            modules: Stock modules.
            fresh: They have just been executed: nobody has their data yet, so that the copy's takes its place.

        Raises:
            ImportError: A stock module is not the one that was transplanted; or the copy cannot be imported.
        """
        for module in modules:
            self._verify(module.__name__, module.__spec__)
        # No import while the lock is held: another thread may hold the import's and wait for this one.
        copies = [importlib.import_module(self.files[module.__name__]["copy"]) for module in modules]
        with _lock:
            pairs = Pairs()
            result: dict[str, Any] = {"modules": [module.__name__ for module in modules], "constants": [], "gone": []}
            skipped: list[dict[str, str]] = []
            odd = [at for at, pair in enumerate(zip(modules, copies)) if not all(map(_is_module, pair))]
            for at in odd:
                words = "it puts an object of its own in its place in sys.modules, and that stays"
                skipped.append({"object": modules[at].__name__, "where": words})
            modules = [module for at, module in enumerate(modules) if at not in odd]
            copies = [copy for at, copy in enumerate(copies) if at not in odd]
            exposed = self._exposed(modules, copies)
            for module, copy in zip(modules, copies):
                self._pair(module, copy, exposed, pairs, fresh, result, skipped)
            pairs.add_members()
            result["replaced"] = len(pairs.olds)
            rebinder = Rebinder(pairs.olds, pairs.news, [self._made, exposed])
            if pairs.olds:
                with thawed():
                    carry_registrations(rebinder, fresh=fresh)
                    rebinder.run()
                    skipped += find_leftovers(rebinder, pairs.names)
            result["rebound"] = dict(sorted(rebinder.counts.items()))
            result["not_rebound"] = skipped
            self.substitutions.append(result)
            del rebinder, pairs
        self._report(result)

    def _verify(self, name: str, spec: Any) -> None:
        """Refuse to stand in for another release than the one that was copied."""
        file = self.files[name]
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
        text = f"transplant {self.name}: {getattr(spec, 'origin', name)} {reason}"
        if self._stale:
            say(f"{text}; goes on, as {VARIABLE} says")
            return
        say(text)
        raise ImportError(
            f"{text}: `patchkit transplant update {self.folder}` carries the copy over; {VARIABLE}=stale goes on with "
            f"it, {VARIABLE}=off without it",
            name=name,
        )

    def code_of(self, name: str, loader: Any) -> Any:
        """The code of the copy of a stock module, which is to be run as a program.

        Raises:
            ImportError: The stock module is not the one that was transplanted.
        """
        file = self.files[name]
        self._verify(name, types.SimpleNamespace(loader=loader, origin=loader.get_filename(name)))
        path = os.path.join(self.folder, *file["path"].split("/"))
        with open(path, "rb") as source:
            return compile(source.read(), path, "exec", dont_inherit=True)

    def _exposed(self, modules: Sequence[ModuleType], copies: Sequence[ModuleType]) -> dict[int, bool]:
        """Of each object of the stock modules, by its id, whether all its names are public ones."""
        found: dict[int, bool] = {}
        for module, copy in zip(modules, copies):
            for key, old in list(vars(module).items()):
                if key in vars(copy) and vars(copy)[key] is not old:
                    public = not key.startswith("_") and not str(asked(old, "__name__", "")).startswith("_")
                    found[id(old)] = found.get(id(old), True) and public
        return found

    def _pair(
        self,
        module: ModuleType,
        copy: ModuleType,
        exposed: dict[int, bool],
        pairs: Pairs,
        fresh: bool,
        result: dict[str, Any],
        skipped: list[dict[str, str]],
    ) -> None:
        """Exchange the names of one module, and note which object took the place of which."""
        stock, ours = vars(module), vars(copy)
        for key, old in list(stock.items()):
            if key.startswith("__") and key.strip("_") in _MACHINERY:
                continue
            label = f"{module.__name__}.{key}"
            if key not in ours and asked(old, "__module__") == module.__name__ and "__getattr__" in ours:
                asked(copy, key)  # what the stock module was asked for before, and has kept since
            if key not in ours:
                if asked(old, "__module__") == module.__name__:
                    result["gone"].append(label)
                continue
            new = ours[key]
            if new is old or id(old) in self._made or is_a(old, types.ModuleType):
                continue
            sentinel = is_bare(old, self.files) and is_bare(new, self._copies)
            data = not (callable(old) and callable(new)) or (
                asked(type(old), "__module__") in self.files and not is_a(old, type)
            )
            if data and not sentinel:
                if key == "__all__" or (is_constant(old) and is_constant(new)):
                    if not are_alike(old, new):
                        stock[key] = new
                        result["constants"].append(label)
                        skipped += self._same_name(module, key, old)
                elif fresh:
                    stock[key] = new
                elif differ(old, new):
                    words = "data that differs from the copy's: the copy's functions use their own"
                    skipped.append({"object": label, "where": words})
                continue
            own = sentinel or is_own(old, self.files)
            if not (self._made_by(old) if own is None else own):
                stock[key] = self._entry(module.__name__, key, new) if is_own(new, (copy.__name__,)) else new
                self._made[id(stock[key])] = stock[key]
                result["constants"].append(label)
                skipped += self._same_name(module, key, old)
                continue
            if pairs.new_of(old) is None:
                home = asked(old, "__module__")
                home = home if home in self.files and vars(sys.modules[home]).get(key) is old else module.__name__
                new = self._entry(home, key, new) if exposed.get(id(old)) else new
                pairs.add(f"{home}.{key}", old, new)
                self._made[id(new)] = new
            stock[key] = pairs.new_of(old)
        for key in ours:
            if key not in stock and asked(ours[key], "__module__") == copy.__name__:
                stock[key] = ours[key]

    def _entry(self, module: str, key: str, new: Any) -> Any:
        if not is_entry(new):
            if is_a(new, types.FunctionType):
                self.unwrapped.append(f"{module}.{key}")
            return new
        names = [name for name in vars(sys.modules[module]) if not name.startswith("__")]
        edit = 1000 * (1 + list(self.files).index(module)) + names.index(key)  # the same in every process
        return wrap(new, Probe(self.name, edit, self.files[module]["source"], module, key))

    def _made_by(self, value: Any) -> bool:
        """Whether a stock module's source makes what it names ``value``."""
        for name in self.files:
            module = sys.modules.get(name)
            keys = [key for key, one in list(vars(module).items()) if one is value] if _is_module(module) else []
            if keys and name not in self._made_names:
                spec: Any = module.__spec__  # type: ignore[union-attr]
                self._made_names[name] = made_names(spec.loader.get_data(spec.origin))
            if any(key in self._made_names[name] for key in keys):
                return True
        return False

    def _same_name(self, module: ModuleType, key: str, old: Any) -> list[dict[str, str]]:
        """Where what is no object of the module's own may have been imported to: a number does not tell whose it is."""
        found: list[dict[str, str]] = []
        if key.startswith("__") or key == asked(old, "__name__"):  # the latter is imported from where it is at home
            return found
        home = asked(old, "__module__")
        words = "has the same value" if is_constant(old) else "is the same"
        for name, other in list(sys.modules.items()):
            space = getattr(other, "__dict__", None)
            if type(space) is not dict or other is module or name in (*self.files, home) or key not in space:
                continue
            if space[key] is old or (is_constant(old) and is_constant(space[key]) and are_alike(old, space[key])):
                where = f"global {key} of module {name} {words}: an import of it, perhaps"
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
            what, them = ("1 reference", "it") if len(left) == 1 else (f"{len(left)} references", "them")
            say(
                f"transplant {self.name}: {_first(result['modules'])}: {what} to stock code could not be rebound "
                f"({VARIABLE}=verbose names {them})"
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

    def get_code(self, fullname: str) -> Any:
        """For ``python -m``: the copy's code, which is run as the stock module's would be."""
        return self._transplant.code_of(fullname, self._loader)

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._transplant.substitute([module], fresh=True)


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
                transplant: Transplant = finder
                if transplant.complete:
                    return transplant
                break
        else:
            transplant = Transplant(folder)
            _mind_forks()
            sys.meta_path.insert(0, transplant)
    transplant.begin()
    return transplant


def _first(modules: list[str]) -> str:
    """The first of the modules, and how many more there are."""
    return modules[0] + (f" and {len(modules) - 1} more" if len(modules) > 1 else "")


def _is_module(one: Any) -> bool:
    """Whether it is a module, and the one that imports of its name give."""
    return isinstance(one, types.ModuleType) and isinstance(sys.modules.get(one.__name__), types.ModuleType)


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
