"""``transplant``: modules of the site as a copy of one's own, which takes their place at run time."""

from __future__ import annotations

import hashlib
import keyword
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from patchkit.author.original import Originals
from patchkit.author.reimport import Rewritten, Tree, rewrite
from patchkit.author.target import opened_for
from patchkit.author.transplanted import ACTIVATE, ENGINE, Manifest, Vendored, engine_files, write_manifest
from patchkit.edit.parse import PARSE_ERRORS
from patchkit.edit.source import Source
from patchkit.errors import GuardError, PlanError, SiteError, UsageError
from patchkit.runtime.ledger import read_regular
from patchkit.runtime.transplant import MANIFEST
from patchkit.site.grammar import Grammar
from patchkit.site.paths import key_of, owners
from patchkit.site.shadow import Shadows
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.edit.parse import Parse
    from patchkit.ops.workspace import Workspace
    from patchkit.site.distribution import Distribution
    from patchkit.site.environment import Site

_COMPILED = (".so", ".pyd", ".dylib", ".dll")


class Found(NamedTuple):
    """A tree of modules in the site.

    ``name`` is what it is imported by; ``files`` pairs the path in the copy with the one below ``base``; ``package`` is
    false for a single module. ``left`` are files that are not copied, with the reason.
    """

    name: str
    base: str
    package: bool
    distribution: Distribution
    files: list[tuple[str, str]]
    left: list[tuple[str, str]]

    @property
    def compiled(self) -> frozenset[str]:
        """The names of compiled modules, which stay the stock ones."""
        stems = (path.rpartition("/")[2].partition(".")[0] for path, _ in self.left if path.endswith(_COMPILED))
        folders = (path.rpartition("/")[0].replace("/", ".") for path, _ in self.left if path.endswith(_COMPILED))
        return frozenset(f"{folder}.{stem}" for folder, stem in zip(folders, stems, strict=True))


class Taken(NamedTuple):
    """The bytes of a tree: ``data`` by path in the copy. ``patches`` are those applied to it; ``edited`` are files that
    hold neither the installer's bytes nor patched ones.
    """

    found: Found
    data: dict[str, bytes]
    patches: tuple[str, ...]
    patched: dict[str, tuple[str, ...]]
    edited: tuple[str, ...]
    grammar: Grammar


class Made(NamedTuple):
    """A copy: its manifest, what was left out, and what a person should look at."""

    manifest: Manifest
    left: Sequence[tuple[str, str]]
    notes: Sequence[str]


def transplant(
    site: Site,
    module: str,
    folder: str,
    *,
    name: str | None = None,
    pristine: bool = False,
    notice: Callable[[str], None],
    progress: Callable[[str], None],
) -> Made:
    """Copy a module or package of the site into ``folder``, with imports that fit there and what activates it.

    Args:
        site: The site.
        module: The dotted name of a package or module.
        folder: Where to; its name is what the copy is imported by.
        name: The copy's dotted name, where it will lie within a package of one's own.
        pristine: Copy what was installed, and not what is there now.
        notice: Told of an interrupted command that was mended.
        progress: Told of downloads.

    Raises:
        UsageError: ``exists``: the folder is there, and not empty. ``usage``: no module can be called so.
        GuardError: ``not-installed``, ``editable``.
        SiteError: A file cannot be read, or its original cannot be had; the folder cannot be written.
    """
    folder = os.path.abspath(folder)
    recover(folder, notice)
    name = name or os.path.basename(folder)
    _check_name(name, folder, module)
    if os.path.lexists(folder) and not (os.path.isdir(folder) and not os.listdir(folder)):
        raise UsageError(
            f"{folder} is there already, and not empty",
            code="exists",
            hint="name another folder; `patchkit transplant update` carries a copy over to another release",
            details={"path": folder},
        )
    taken = take(site, module, pristine=pristine, notice=notice, progress=progress)
    return write_copy(taken, folder, name, pristine=pristine)


def take(
    site: Site,
    module: str,
    *,
    pristine: bool,
    notice: Callable[[str], None],
    progress: Callable[[str], None],
) -> Taken:
    """The bytes of a tree of the site, as they are or as they were installed.

    Raises:
        UsageError: ``usage``: several distributions have files in it.
        GuardError: ``not-installed``, ``editable``.
        SiteError: A file cannot be read, or its original cannot be had.
    """
    found = find(site, module)
    _refuse_shared(site, found)
    with opened_for(site, found.distribution.name, write=False, notice=notice) as (workspace, distribution):
        _refuse_shadowed(distribution, found)
        originals = Originals(workspace.site.home, distribution, progress)
        data: dict[str, bytes] = {}
        patched: dict[str, tuple[str, ...]] = {}
        edited = []
        for path, source in found.files:
            absolute = os.path.join(found.base, *source.split("/"))
            current = _read(absolute)
            names = _patches_on(workspace, absolute, current)
            genuine = originals.genuine(source, current) is not False
            if pristine and not genuine:
                data[path] = originals.of(source)
                continue
            data[path] = current
            if names:
                patched[source] = names
            elif not genuine:
                edited.append(source)
        order = [patch.name for patch in workspace.ledger.patches]
        patches = tuple(name for name in order if any(name in names for names in patched.values()))
        return Taken(found, data, patches, patched, tuple(edited), Grammar(workspace.site))


def _patches_on(workspace: Workspace, absolute: str, current: bytes) -> tuple[str, ...]:
    """The applied patches that a file holds."""
    entry = workspace.entry_in_force(key_of(workspace.site, absolute))
    if entry is None or hashlib.sha256(current).hexdigest() == (entry.pristine and entry.pristine.sha256):
        return ()
    return tuple(layer.patch for layer in entry.layers) or tuple(
        patch.name for patch in workspace.ledger.patches if key_of(workspace.site, absolute) in patch.files
    )


def find(site: Site, module: str) -> Found:
    """A package or module of the site by its dotted name, as imports find it.

    Raises:
        UsageError: It is no dotted name.
        GuardError: ``not-installed``.
    """
    parts = module.split(".")
    if not all(part.isidentifier() for part in parts):
        raise UsageError(f"{module!r} is no name of a module", hint="a dotted name, such as idna.core")
    spaces = []
    for base in site.paths:
        folder = os.path.join(base, *parts)
        if os.path.isfile(os.path.join(folder, "__init__.py")):
            return _package(site, module, base)
        if os.path.isfile(f"{folder}.py"):
            source = f"{'/'.join(parts)}.py"
            return Found(module, base, False, _owner(site, module, source, base), [(f"{parts[-1]}.py", source)], [])
        if os.path.isdir(folder):
            spaces.append(base)
    if spaces:
        return _package(site, module, spaces[0])
    raise GuardError(
        f"{site.label} has no source of a module {module}",
        code="not-installed",
        hint="name the environment with --python or --site; a compiled or built-in module cannot be copied",
        details={"module": module},
    )


def _package(site: Site, module: str, base: str) -> Found:
    top = os.path.join(base, *module.split("."))
    files: list[tuple[str, str]] = []
    left: list[tuple[str, str]] = []
    for directory, folders, names in os.walk(top):
        for name in sorted(folders):
            source = os.path.relpath(os.path.join(directory, name), base).replace(os.sep, "/")
            if os.path.islink(os.path.join(directory, name)):
                left.append((source, "is a link to a folder"))
            elif name.startswith("."):
                left.append((source, "is a hidden folder"))
        folders[:] = sorted(name for name in folders if name != "__pycache__" and not name.startswith("."))
        for name in sorted(names):
            absolute = os.path.join(directory, name)
            path = os.path.relpath(absolute, top).replace(os.sep, "/")
            source = os.path.relpath(absolute, base).replace(os.sep, "/")
            if name.endswith(_COMPILED):
                left.append((source, "is compiled: the copy uses the stock one"))
            elif name.endswith((".pyc", ".pyo")):
                left.append((source, "is bytecode without a source"))
            elif os.path.isfile(absolute):
                files.append((path, source))
            else:
                left.append((source, "is no file that can be read"))
    first = [source for _, source in files if source.endswith("/__init__.py")] or [source for _, source in files]
    if not first:
        raise GuardError(
            f"{top} holds no source",
            code="not-installed",
            hint="a compiled package cannot be copied",
            details={"module": module},
        )
    return Found(module, base, True, _owner(site, module, first[0], base), files, left)


def _refuse_shared(site: Site, found: Found) -> None:
    """Refuse a folder that several distributions have files in: a copy, and a patch of it, are of one.

    Raises:
        UsageError: ``usage``.
    """
    part = found.files[0][0].partition("/")[0].partition(".")[0]
    for _, source in found.files:
        if found.distribution.record.entry(source) is None:
            for other in owners(site, source, found.base):
                raise UsageError(
                    f"{found.name} holds files of {found.distribution.name} and of {other.name} ({source}), and a copy "
                    "is of one distribution",
                    hint=f"copy a part of it, such as {found.name}.{part}",
                    details={"path": source, "distributions": [found.distribution.name, other.name]},
                )


def _refuse_shadowed(distribution: Distribution, found: Found) -> None:
    """Refuse sources that no import takes: their copy would stand in for something else.

    Raises:
        SiteError: ``shadowed``.
    """
    shadows = Shadows(distribution)
    for _, source in found.files:
        taken = shadows.find(source)
        if taken is not None and not taken.endswith("/__init__.py"):  # a package that goes before a module of its name
            raise SiteError(
                f"{source}: imports take {taken} instead, and that is no source of it",
                code="shadowed",
                hint="install a build without compiled modules (`pip install --no-binary`), or copy a part of it",
                details={"path": source, "shadow": taken},
            )


def _owner(site: Site, module: str, source: str, base: str) -> Distribution:
    found = owners(site, source, base)
    if not found:
        raise GuardError(
            f"{os.path.join(base, source)}: no installed distribution lists it",
            code="not-installed",
            hint="it is somebody's own file: copy it by hand",
            details={"module": module},
        )
    return found[0]


def _read(absolute: str) -> bytes:
    try:
        return read_regular(absolute)
    except OSError as error:
        raise SiteError(
            f"{absolute}: cannot be read: {error.strerror}",
            code="unreadable",
            hint="check the file and your permissions",
            details={"path": absolute},
        ) from None


def _check_name(name: str, folder: str, module: str) -> None:
    """Refuse a name that no module can have, or that another one has.

    Raises:
        UsageError: ``usage``.
    """
    parts = name.split(".")
    fault = None
    if not all(part.isidentifier() and not keyword.iskeyword(part) for part in parts):
        fault = f"the copy is imported by its folder's name, and {name!r} is no name of a module"
    elif parts[-1] != os.path.basename(folder):
        fault = f"the copy lies in {os.path.basename(folder)}, so its name cannot end in {parts[-1]}"
    elif parts[0] == module.partition(".")[0] or parts[0] in sys.stdlib_module_names:
        fault = f"a copy named {name} would hide the module {parts[0]}"
    if fault is not None:
        hint = f"a folder such as my_{module.rpartition('.')[2]}"
        raise UsageError(fault, hint=hint, details={"path": folder, "name": name})


def tree_of(found: Found, name: str) -> Tree:
    """What is copied, and what it is called then; a single module is one of the copy's."""
    return Tree(found.name, name if found.package else f"{name}.{found.name.rpartition('.')[2]}", found.compiled)


def names_of(path: str, tree: Tree, package: bool) -> tuple[str, str] | None:
    """What the file at ``path`` of a copy is imported by, in the tree and in the copy; None for what is no module."""
    if not path.endswith(".py"):
        return None
    if not package:
        return tree.root, tree.copy
    parts = path[: -len(".py")].split("/")
    if parts[-1] == "__init__":
        parts.pop()
    if not all(part.isidentifier() for part in parts):
        return None
    return ".".join([tree.root, *parts]), ".".join([tree.copy, *parts])


def rewritten(path: str, data: bytes, tree: Tree, package: bool, parse: Parse) -> tuple[bytes, Rewritten]:
    """A file of the tree as it is in the copy, and what was done to it. What does not parse is left as it is."""
    names = names_of(path.removesuffix("i") if path.endswith(".pyi") else path, tree, package)
    nothing = Rewritten([], [], {}, [])
    if names is None:
        return data, nothing
    source = Source(data, path=path)
    try:
        done = rewrite(source, parse(source.text), names[0], path.endswith("__init__.py"), tree)
        return source.render(done.splices)[0], done
    except (*PARSE_ERRORS, PlanError):
        nothing.notes.append("does not parse: its imports stay as they are")
        return data, nothing


def write_copy(taken: Taken, folder: str, name: str, *, pristine: bool) -> Made:
    """Write a new copy, wholly or not at all."""
    notes: list[str] = []
    with replaced(folder) as target:
        manifest = lay(taken, target, name, pristine=pristine, notes=notes)
    return Made(manifest, taken.found.left, notes)


def lay(
    taken: Taken, target: str, name: str, *, pristine: bool, notes: list[str], held: Mapping[str, bytes] | None = None
) -> Manifest:
    """Lay the files of a copy, with what activates it, into a folder that is being made.

    Args:
        taken: The stock files.
        target: The folder.
        name: The copy's name.
        pristine: Whether ``taken`` is what was installed.
        notes: Filled with what a person should look at.
        held: What files are to hold instead of what they are made as, by path.
    """
    found = taken.found
    tree = tree_of(found, name)
    vendored = []
    for path, source in found.files:
        made, done = rewritten(path, taken.data[path], tree, found.package, taken.grammar.parse)
        names = names_of(path, tree, found.package)
        vendored.append(
            Vendored(
                path,
                source,
                None if names is None else names[0],
                None if names is None else names[1],
                hashlib.sha256(taken.data[path]).hexdigest(),
                hashlib.sha256(made).hexdigest(),
                sum(old != new for old, new in done.pairs),
            )
        )
        notes += [f"{path}: {note}" for note in done.notes]
        _put(target, f"{ENGINE}/base/{path}.orig", taken.data[path])
        if held is None or path in held:
            _put(target, path, made if held is None else held[path])
            executable_like(os.path.join(found.base, *source.split("/")), os.path.join(target, *path.split("/")))
    taken_name = any(path in (f"{ACTIVATE}.py", f"{ACTIVATE}/__init__.py") for path, _ in found.files)
    taken_name = taken_name or re.search(rb"\bactivate\b", taken.data.get("__init__.py", b"")) is not None
    activate = f"{ACTIVATE}_transplant" if taken_name else ACTIVATE
    for path, _ in found.files:
        if path == MANIFEST or path.startswith(f"{ENGINE}/"):
            raise UsageError(f"{found.name} has a {path} of its own, which a copy needs for itself", hint="copy a part")
    manifest = Manifest(
        found.name,
        found.package,
        name,
        found.distribution.name,
        found.distribution.version,
        "pristine" if pristine else "current",
        list(taken.patches),
        activate,
        sorted(tree.left),
        vendored,
    )
    for path, text in engine_files(manifest).items():
        _put(target, path, text)
    if not found.package and not os.path.exists(os.path.join(target, "__init__.py")):
        _put(target, "__init__.py", b"")
    write_manifest(target, manifest)
    return manifest


def _put(target: str, path: str, data: bytes) -> None:
    absolute = os.path.join(target, *path.split("/"))
    above = os.path.dirname(absolute)
    os.makedirs(above, exist_ok=True)
    if os.path.relpath(os.path.realpath(above), os.path.realpath(target)) != os.path.relpath(above, target):
        raise SiteError(
            f"{path}: lies behind a link that leads out of the copy",
            code="unwritable",
            hint="put a folder in the place of the link",
            details={"path": path},
        )
    with open(absolute, "wb") as file:
        file.write(data)


def executable_like(source: str, absolute: str) -> None:
    """Let a file be executable for those who may execute ``source``, where there is one."""
    with suppress(OSError):
        bits = os.stat(source).st_mode & 0o111
        mode = os.stat(absolute).st_mode
        os.chmod(absolute, mode & ~0o111 | bits & mode >> 2)  # for those who may read it


def recover(folder: str, notice: Callable[[str], None]) -> None:
    """Put back a copy that an interrupted command had moved aside, to put another in its place.

    Args:
        folder: The copy's folder; nothing is done where there is something.
        notice: Told of it.
    """
    folder = os.path.abspath(folder)
    if os.path.lexists(folder):
        return
    above, name = os.path.split(folder)
    with suppress(OSError):
        for work in os.listdir(above):
            old = os.path.join(above, work, "old")
            if work.startswith(f".{name}-") and os.path.isfile(os.path.join(old, MANIFEST)):
                os.rename(old, folder)
                shutil.rmtree(os.path.join(above, work), ignore_errors=True)
                notice(f"{folder}: an update that was interrupted has been taken back")
                return


@contextmanager
def replaced(folder: str) -> Iterator[str]:
    """A new folder beside ``folder``, which takes its place when all is in it; else nothing changes.

    Raises:
        SiteError: ``unwritable``.
    """
    above = os.path.dirname(folder)
    work = None
    try:
        os.makedirs(above, exist_ok=True)
        work = tempfile.mkdtemp(prefix=f".{os.path.basename(folder)}-", dir=above)
        target, old = os.path.join(work, "new"), os.path.join(work, "old")
        os.mkdir(target)
        yield target
        if os.path.lexists(folder):
            os.rename(folder, old)
        try:
            os.rename(target, folder)
        except OSError:
            if os.path.lexists(old):
                os.rename(old, folder)
            raise
    except OSError as error:
        raise SiteError(
            f"{error.filename or folder}: cannot be written: {error.strerror}",
            code="unwritable",
            hint="name a folder that you may write to",
            details={"path": folder},
        ) from None
    finally:
        if work is not None:
            shutil.rmtree(work, ignore_errors=True)
