"""The overlay: patched sources in the memory of one process, in place of the files that it would import.

``patchkit run`` lays a copy of this file into a bundle, beside a manifest and the patched sources; the bundle's
``sitecustomize`` (:mod:`patchkit.runtime.startup`) calls :func:`start` before the program begins. It runs inside the
target, on Python 3.8 and later, where patchkit is not installed: standard library only, and of that what a bare
interpreter has loaded already.

How it works: a path hook takes over the folders that hold an edited module, and no others. Its finder is CPython's own,
so packages, extension modules and namespace packages are found by the usual rules; only where those rules find the very
file that was patched is its loader exchanged. ``__file__`` and ``spec.origin`` stay what they were, for the data that
packages find beside themselves. ``co_filename`` is the patched source's own path in the bundle, so whoever opens the
file that a frame names (the interpreter's own tracebacks, debuggers, caches keyed by source such as numba's and vLLM's)
reads the text that runs, and bytecode lies in the bundle. A finder placed first watches the names of edited modules:
one that would come from elsewhere (an extension module, a zip, another finder) is refused, never taken silently.
"""

from __future__ import annotations

import _frozen_importlib_external as external
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import CodeType, ModuleType
    from typing import Any

VARIABLE = "PATCHKIT_RUN"
"""The environment variable that names the bundle."""
MODULE = "_patchkit_overlay"
"""What this module is called in the processes it works in."""
SCHEMA = 1
_HERE = os.path.dirname(__file__)  # the bundle
CONFLICT = 5
"""The exit status where the overlay cannot be what the command promised: the site conflicts."""

#: The patches in the memory of this process with their modules, and those that its release has made needless.
live: dict[str, list[str]] = {}
upstreamed: list[str] = []
#: The directories whose ledgers were asked: what they say of other patches does not hold in this process.
homes: list[str] = []
active = False

_by_name: dict[str, Entry] = {}
_by_file: dict[str, Entry] = {}
_folders: dict[str, dict[str, list[Entry]]] = {}
_folder_names: set[str] = set()
_kept_open: list[int] = []
_manifest: dict[str, Any] = {}
_waiting: list[dict[str, Any]] = []  # the folders that are not on sys.path, so far
_joining: Any = sys.modules["_thread"].RLock()


class Entry:
    """One module: where its file is, and where its patched source (empty: there shall be no such module)."""

    __slots__ = ("before", "name", "package", "path", "source")

    def __init__(self, bundle: str, module: dict[str, Any]) -> None:
        self.name: str = module["name"]
        self.path: str = module["path"]
        self.before: str | None = module["before"]
        self.source: str = os.path.join(bundle, *module["source"].split("/")) if module["source"] else ""
        self.package = os.path.basename(self.path) == "__init__.py"


def start(bundle: str, late: str = "") -> None:
    """Put the overlay of ``bundle`` into force, for those of the patched folders that are on ``sys.path``.

    The process ends with status 5 where it cannot: an exception would be passed over by ``site``. One of them that
    comes onto the path when the program runs already is ``late``.
    """
    with _joining:
        if not _manifest:
            _start(bundle, late)


def _start(bundle: str, late: str) -> None:
    try:
        if sys.dont_write_bytecode and not sys.pycache_prefix:
            _Kept("sitecustomize", os.path.join(bundle, "sitecustomize.py")).get_code("sitecustomize")
        _manifest.update(_read_manifest(os.path.join(bundle, "manifest.json")))
        _waiting.extend(_manifest["bases"])
        path = {word for word in (late, *sys.path) if word and isinstance(word, str)}
        _join({*path, *map(os.path.realpath, path)}, late)
    except Exception as error:
        if late:
            raise
        _end(f"the bundle {bundle} cannot be used: {type(error).__name__}: {error}")


def _join(path: set[str], late: str) -> None:
    """Take those folders that are on the path into the overlay."""
    global active
    found = [base for base in _waiting if not path.isdisjoint(base["paths"])]
    if not found:
        return
    bases = {name for base in found for name in base["paths"]}
    for module in _manifest["modules"]:
        name = module["name"]
        if module["base"] not in bases:
            continue
        taken = getattr(sys.modules.get(name.partition(".")[0]), "__file__", None) if late else None
        if taken:
            _say(f"{taken} was imported before {late} came onto the path: {name} is not patched in this process")
            continue
        if name in sys.modules and module["source"]:
            _end(
                f"{name} was imported before patches could be put in place, from a .pth file or by an option of the "
                f"interpreter, so that this process would run {module['path']} as it is on disk"
            )
        _enter(Entry(_HERE, module), module["real"])
    for name in path:  # a link to one of the folders, by whatever name
        entries = _folders.get(os.path.normcase(os.path.realpath(name)))
        if entries is not None:
            _folders[os.path.normcase(name)] = entries
    _waiting[:] = [base for base in _waiting if base not in found]
    for patch in _manifest["patches"]:
        if all(name in _by_name for name in patch["modules"]):
            live[patch["name"]] = patch["modules"]
    _refuse_script(late)
    for name in list(sys.path_importer_cache):
        if _folder(name) is not None:
            del sys.path_importer_cache[name]
    if not active:
        active = True
        upstreamed.extend(_manifest["upstreamed"])
        homes.extend(_manifest["homes"])
        sys.path_hooks.insert(0, _hook)
        sys.meta_path.insert(0, _Watch())
        _hold(_HERE)
        import atexit

        atexit.register(_report_strays)
    for name in _LATER:
        if name in sys.modules:
            _mend(sys.modules[name])


def _enter(entry: Entry, real: str) -> None:
    _by_name[entry.name] = entry
    _by_file[entry.path] = _by_file[real] = entry
    for path in {entry.path, real}:
        folder, file = os.path.split(path)
        tail = file[:-3]
        if entry.package:
            folder, tail = os.path.split(folder)
        found = _folders.setdefault(os.path.normcase(folder), {}).setdefault(tail, [])
        if entry not in found:
            found.insert(0 if entry.package else len(found), entry)  # as imports do: a package goes before a module
        _folder_names.add(os.path.basename(folder))


# --- finding --------------------------------------------------------------------------------------------------------


def _folder(path: str) -> dict[str, list[Entry]] | None:
    """The modules that a folder has or shall have; None for one that nothing was done to."""
    found = _folders.get(os.path.normcase(path))
    if found is None and os.path.basename(path.rstrip("/\\")) in _folder_names:
        found = _folders.get(os.path.normcase(os.path.realpath(path)))
    return found


def _hook(path: str) -> Finder:
    """For ``sys.path_hooks``."""
    entries = _folder(path)
    if entries is None and _waiting:
        with _joining:
            _join({path, os.path.realpath(path)}, path)
            entries = _folder(path)
    if entries is None:
        raise ImportError("not a folder of patched modules")
    return Finder(path, entries)


class Finder(external.FileFinder):
    """CPython's finder of one folder; what it finds of an edited module gets the patched source.

    ``pkg_resources`` and ``pkgutil`` go by the type of a finder, so it is one of theirs.
    """

    def __init__(self, path: str, entries: dict[str, list[Entry]]) -> None:
        loaders = [(external.ExtensionFileLoader, _extension_suffixes()), (external.SourceFileLoader, [".py"])]
        if os.name == "nt":
            loaders[1][1].append(".pyw")
        super().__init__(path, *loaders, (external.SourcelessFileLoader, [".pyc"]))
        self.entries = entries

    def find_spec(self, fullname: str, target: ModuleType | None = None) -> ModuleSpec | None:
        """As CPython's, with the loader of an edited module exchanged."""
        spec = super().find_spec(fullname, target)
        tail = fullname.rpartition(".")[2]
        for entry in self.entries.get(tail, ()):
            own = (
                os.path.join(self.path, tail, "__init__.py") if entry.package else os.path.join(self.path, tail + ".py")
            )
            portion = spec is not None and spec.loader is None
            found = None if spec is None or portion else str(spec.origin)
            if not entry.source:  # not to be there
                if found == own:
                    spec = None
            elif found == own and entry.before is not None:
                return _spec(fullname, own, entry)
            elif entry.before is None and found == own:
                raise _refuse(fullname, f"{own} is there now, and was not when the command was planned: start it again")
            elif entry.before is None and (found is None or entry.package):
                return _spec(fullname, own, entry)
            elif found is None:
                raise _refuse(fullname, f"{own} is gone since the command was planned: start it again")
            else:
                raise _refuse(fullname, f"imports take {found} instead of {own}")
        return spec


def _extension_suffixes() -> list[str]:
    import _imp

    return _imp.extension_suffixes()


def _spec(fullname: str, origin: str, entry: Entry) -> ModuleSpec:
    _by_file[origin] = entry
    where = [os.path.dirname(origin)] if entry.package else None
    loader = Loader(fullname, origin, entry)
    spec = external.spec_from_file_location(fullname, origin, loader=loader, submodule_search_locations=where)
    assert spec is not None
    try:
        spec.cached = external.cache_from_source(entry.source)
    except NotImplementedError:  # sys.implementation.cache_tag is None
        spec.cached = None
    return spec


class Loader(external.FileLoader, external.SourceLoader):
    """Loads one module from its patched source.

    It is all that ``SourceFileLoader`` is and none of its kind: import hooks that read a module's file themselves (of
    pytest, typeguard, jaxtyping) do so for a ``SourceFileLoader`` and leave any other alone.
    """

    def __init__(self, fullname: str, path: str, entry: Entry) -> None:
        super().__init__(fullname, path)
        self.entry = entry

    def get_code(self, fullname: str) -> CodeType | None:
        """The code, compiled from the bundle or cached there, once the file on disk proves to be what was patched.

        Raises:
            ImportError: It is not, or the bundle cannot be read any more.
        """
        _verify(fullname, self.path, self.entry)
        try:
            return _Kept(fullname, self.entry.source).get_code(fullname)
        except OSError as error:
            raise _refuse(fullname, f"its source cannot be read: {error.strerror}: {self.entry.source}") from None

    def get_data(self, path: str) -> bytes:
        """The patched source for the module's own path; else what is there."""
        return super().get_data(self.entry.source if path == self.path else path)

    def path_stats(self, path: str) -> dict[str, Any]:
        """Size and time of the patched source for the module's own path."""
        found = os.stat(self.entry.source if path == self.path else path)
        return {"mtime": found.st_mtime, "size": found.st_size}


class _Kept(external.SourceFileLoader):
    """Loads from the bundle, and keeps bytecode there, also under PYTHONDONTWRITEBYTECODE: it is nobody's tree.

    Not under PYTHONPYCACHEPREFIX as well: that one is somebody's.
    """

    def get_code(self, fullname: str) -> CodeType | None:
        code = super().get_code(fullname)
        if sys.dont_write_bytecode and not sys.pycache_prefix and code is not None:
            try:
                cached = external.cache_from_source(self.path)
                if not os.path.exists(cached):
                    stats = self.path_stats(self.path)
                    make: Any = external._code_to_timestamp_pyc  # type: ignore[attr-defined]
                    self.set_data(cached, bytes(make(code, int(stats["mtime"]), stats["size"])))
            except Exception:  # a cache is no need; importlib passes over its errors as well
                pass
        return code


def _verify(fullname: str, path: str, entry: Entry) -> None:
    """Refuse to stand in for a file that is not the one patched: it was installed anew, or edited, meanwhile."""
    if entry.before is None:
        if os.path.lexists(path):
            raise _refuse(fullname, f"{path} is there now, and was not when the command was planned: start it again")
        return
    try:
        with open(path, "rb") as file:
            found = _sha256(file.read())
    except OSError as error:
        raise _refuse(fullname, f"{path} cannot be read: {error.strerror}") from None
    if found != entry.before:
        raise _refuse(fullname, f"{path} is another one than when the command was planned: start it again")


class _Watch:
    """First on ``sys.meta_path``: sees to it that a patched name comes from the overlay, or from nowhere."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        entry = _by_name.get(fullname)
        if entry is None and fullname not in _LATER:
            return None
        spec = self._others(fullname, path, target)
        if spec is None or spec.loader is None:
            return None
        if entry is None:
            spec.loader = _After(spec.loader)  # type: ignore[assignment]  # importlib asks no more
        elif entry.source and not _is_ours(spec.loader):
            taken = spec.origin or type(spec.loader).__name__
            raise _refuse(fullname, f"imports take {taken} instead of {entry.path}")
        return spec

    def _others(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
        finders = list(sys.meta_path)
        own = next((at for at, finder in enumerate(finders) if finder is self), -1)
        for finder in finders[own + 1 :]:
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = None if find is None else find(fullname, path, target)
            if spec is not None:
                return spec
        return None


def _is_ours(loader: object) -> bool:
    """Whether it is our loader, or one wrapped around it (lazy loaders, tracers)."""
    for _ in range(8):
        if isinstance(loader, Loader):
            return True
        inner = vars(loader) if hasattr(loader, "__dict__") else {}
        loader = inner.get("loader") or inner.get("_loader") or inner.get("__wrapped__")
    return False


def strays() -> dict[str, str]:
    """The patched names that this process has from elsewhere all the same, and from where."""
    found = {}
    for name, entry in _by_name.items():
        module = sys.modules.get(name)
        spec = getattr(module, "__dict__", {}).get("__spec__")
        loader = getattr(spec, "loader", None)
        if entry.source and loader is not None and not _is_ours(loader):
            found[name] = str(getattr(spec, "origin", None) or type(loader).__name__)
    return found


def _report_strays() -> None:
    if not os.path.exists(os.path.join(_HERE, "manifest.json")):
        _say(f"{_HERE} is gone, or may not be read: processes that were started since run what is on disk")
    for name, origin in strays().items():
        _say(f"{name} came from {origin} by another import hook, past the patches: it was not patched in this process")


# --- modules that read sources ----------------------------------------------------------------------------------------


class _After:
    """Loads a module by its own loader, then mends it; the module keeps its own loader."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

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
        _mend(module)


#: What is mended once it is imported, by :mod:`patchkit.runtime.readers`.
_LATER = ("importlib.abc", "inspect", "linecache", "pkg_resources", "pkgutil")


def _mend(module: ModuleType) -> None:
    """Have a module of ``_LATER`` know of the patched modules."""
    try:
        readers = _part("readers")
    except OSError as error:  # the program shall have the module all the same
        _say(f"{_HERE} cannot be read any more ({error.strerror}): {module.__name__} shows sources as on disk")
        return
    readers.MENDS[module.__name__](module, _by_name, _by_file, Finder)


def _part(name: str) -> Any:
    """A part of the overlay that most processes do not need."""
    path = os.path.join(_HERE, f"_patchkit_{name}.py")
    spec = external.spec_from_file_location(f"_patchkit_{name}", path, loader=_Kept(f"_patchkit_{name}", path))
    assert spec is not None
    part: Any = type(sys)(spec.name)
    part.__file__ = path
    spec.loader.exec_module(part)  # type: ignore[union-attr]  # it is the one given
    return part


# --- starting ---------------------------------------------------------------------------------------------------------


def _refuse(fullname: str, reason: str) -> ImportError:
    """The error for one module; said aloud as well, since programs pass over an ImportError to do without."""
    text = f"{fullname} is patched in memory, and {reason}"
    _say(text)
    return ImportError(f"patchkit run: {text}", name=fullname)


def _say(text: str) -> None:
    try:
        sys.stderr.write(f"patchkit run: {text}\n")
        sys.stderr.flush()
    except Exception:  # closed, or none at all
        pass


def _end(reason: str) -> None:
    _say(f"{reason}; stopped (pid {os.getpid()})")
    os._exit(CONFLICT)


def _refuse_script(late: str) -> None:
    """CPython reads the file of a script by itself, without a loader."""
    words = getattr(sys, "orig_argv", None) or _part("words").command_line()
    # Few words can stand before a script, and a program's text is no path.
    likely = [word for word in words[1:] if word[:1] != "-"][:8]
    if not any(_by_path(word) for word in likely if len(word) < 4096 and "\n" not in word):
        return
    script = _part("words").isolated(words[1:])[1]
    entry = script and _by_path(script)
    if entry:
        name = entry.name[: -len(".__main__")] if entry.name.endswith(".__main__") else entry.name
        text = f"{script} is patched in memory, and Python reads a script from disk: run it as `python -m {name}`"
        _say(text) if late else _end(text)


def _by_path(path: str) -> Entry | None:
    return _by_file.get(os.path.abspath(path)) or _by_file.get(os.path.realpath(path))


def _hold(bundle: str) -> None:
    """Keep the bundle from being cleared away as long as this process lives, or one forked from it."""
    try:
        import fcntl

        lock = os.open(os.path.join(bundle, "lock"), os.O_RDONLY | os.O_CLOEXEC)
        _kept_open.append(lock)
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (ImportError, OSError):
        pass  # Windows, or a file system without locks: its age protects it


def _sha256(data: bytes) -> str:
    try:
        module: Any = __import__("_sha2" if sys.version_info >= (3, 12) else "_sha256")
    except ImportError:  # a build without CPython's own hashes
        import hashlib as module
    return str(module.sha256(data).hexdigest())


def _read_manifest(path: str) -> dict[str, Any]:
    """The manifest, by the C scanner under ``json``: the import of that takes longer than all the rest."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    manifest: dict[str, Any]
    try:
        from _json import make_scanner

        manifest = make_scanner(_Decoding)(text, 0)[0]  # type: ignore[arg-type]  # it reads attributes only
    except Exception:
        import json

        manifest = json.loads(text)
    if manifest["schema"] != SCHEMA:
        raise ValueError(f"its schema is {manifest['schema']}")
    return manifest


class _Decoding:
    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float
