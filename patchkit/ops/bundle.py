"""Bundles: a view of patched modules as files, for the processes that ``patchkit run`` starts.

A bundle is a folder in the cache that is named after what it holds, so the same view is written once and its bytecode
stays warm. It is complete before it bears its name, and never changed after; one that somebody edited is mended. Each
process that uses it holds a shared lock on it (:mod:`patchkit.runtime.overlay`), and only what nobody holds, and nobody
used for a day, is cleared away.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from patchkit.errors import SiteError
from patchkit.ops.inmemory import Module, View, after_sha256, before_sha256
from patchkit.ops.workspace import digest
from patchkit.runtime.ledger import read_regular
from patchkit.site.cache import cache_directory, write_cached

#: Bundles that are kept whatever their age; beyond them, those that were not used for IDLE_SECONDS go.
KEPT = 16
IDLE_SECONDS = 24 * 3600.0
_LOCK = "lock"
_ATTEMPTS = 10


def bundle_files(view: View) -> dict[str, bytes]:
    """The files of a bundle, by their path in it; pure but for reading patchkit's own sources."""
    files: dict[str, bytes] = {}
    modules = []
    bases = list(dict.fromkeys(module.base for module in view.modules))
    for module in view.modules:
        source = None
        if module.after is not None:
            below = os.path.relpath(module.path, os.path.realpath(module.base)).replace(os.sep, "/")
            source = f"src/{bases.index(module.base)}/{below if not below.startswith('..') else module.name}"
            files[source] = module.after
        modules.append(_module(module, source))
    manifest = {
        "schema": 1,
        "homes": list(view.homes),
        "bases": [{"paths": list(dict.fromkeys([base, os.path.realpath(base)]))} for base in bases],
        "patches": [
            {
                "name": live.name,
                "distribution": live.distribution,
                "version": live.version,
                "modules": list(live.modules),
            }
            for live in view.patches
            if live.action == "live"
        ],
        "upstreamed": [live.name for live in view.patches if live.action == "upstreamed"],
        "modules": modules,
    }
    files["manifest.json"] = json.dumps(manifest, indent=1).encode("ascii")
    for part in ("overlay", "readers", "words"):
        files[f"_patchkit_{part}.py"] = _own_source(f"{part}.py")
    paths = tuple(path for base in bases for path in (base, os.path.realpath(base)))
    head, line, rest = _own_source("startup.py").partition(b"\n_bases = ()")
    assert line, "startup.py has no place for the folders"
    files["sitecustomize.py"] = head + f"\n_bases = {paths!a}".encode("ascii") + rest
    return files


def _own_source(name: str) -> bytes:
    return read_regular(os.path.join(os.path.dirname(os.path.dirname(__file__)), "runtime", name))


def _module(module: Module, source: str | None) -> dict[str, object]:
    folder, file = os.path.split(module.path)
    return {
        "name": module.name,
        "path": module.path,
        "real": os.path.join(os.path.realpath(folder), file),
        "base": module.base,
        "source": source,
        "before": before_sha256(module),
        "after": after_sha256(module),
    }


def make_bundle(view: View) -> str:
    """Write the bundle of ``view``, unless it is there; its folder.

    Raises:
        SiteError: ``no-bundle``: neither the cache nor the temporary directory can be written, and named in PYTHONPATH.
    """
    files = bundle_files(view)
    name = digest(b"\0".join(f"{path}:{digest(data)}".encode() for path, data in sorted(files.items())))[:20]
    problems: list[tuple[str, str]] = []
    for parent in (_in_cache, _in_temporary):
        folder = ""
        try:
            folder = parent()
            return _ensure(_nameable(folder), name, files)
        except OSError as error:
            problems.append((str(error.filename or folder), error.strerror or str(error)))
    path, why = problems[0]
    raise SiteError(
        f"the patched modules cannot be written anywhere: {path}: {why}",
        code="no-bundle",
        hint="name a folder of yours with $PATCHKIT_CACHE",
        details={"path": path},
    )


def _nameable(folder: str) -> str:
    """PYTHONPATH takes no quotes: half of a name would be another folder, and the patches in no process."""
    if os.pathsep in folder:
        raise OSError(None, f"its name has a {os.pathsep!r} in it, which PYTHONPATH takes for the end", folder)
    return folder


def _in_cache() -> str:
    return os.path.join(cache_directory(), "run")


def _in_temporary() -> str:
    """A folder of the user's own below the temporary directory, where anybody could have made it.

    Raises:
        SiteError: ``no-bundle``: somebody else did.
    """
    own = os.path.join(tempfile.gettempdir(), f"patchkit-run-{getattr(os, 'getuid', int)()}")
    with contextlib.suppress(FileExistsError):
        os.mkdir(own, 0o700)
    found = os.lstat(own)
    foreign = hasattr(os, "getuid") and (found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o022)
    if foreign or not stat.S_ISDIR(found.st_mode):
        raise SiteError(
            f"{own}: is not a folder of yours alone, and what lies in it would be run",
            code="no-bundle",
            hint="remove it, or name a folder of yours with $PATCHKIT_CACHE",
            details={"path": own},
        )
    return own


def _ensure(parent: str, name: str, files: Mapping[str, bytes]) -> str:
    folder = os.path.join(parent, name)
    os.makedirs(parent, mode=0o700, exist_ok=True)
    for _ in range(_ATTEMPTS):
        if not os.path.isdir(folder):
            _create(parent, folder, files)
        try:
            with _shared(folder):
                for path, data in files.items():
                    _mend(os.path.join(folder, *path.split("/")), data)
        except FileNotFoundError:
            continue  # cleared away between two steps
        _clear(parent, keep=name)
        return folder
    raise OSError(None, "it is cleared away again and again", folder)


def _create(parent: str, folder: str, files: Mapping[str, bytes]) -> None:
    draft = tempfile.mkdtemp(prefix=".new-", dir=parent)
    try:
        for path, data in {**files, _LOCK: b""}.items():
            target = os.path.join(draft, *path.split("/"))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "wb") as file:
                file.write(data)
            if path.startswith("src/"):
                os.chmod(target, 0o444)  # a traceback leads an editor here, and an edit would be lost
        with contextlib.suppress(OSError):  # another one was faster: theirs is as good
            os.rename(draft, folder)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _mend(path: str, data: bytes) -> None:
    try:
        if read_regular(path) == data:
            return
    except FileNotFoundError:
        pass
    shutil.rmtree(os.path.join(os.path.dirname(path), "__pycache__"), ignore_errors=True)
    if not write_cached(path, data):
        raise OSError(None, "cannot be written", path)


@contextmanager
def _shared(folder: str) -> Iterator[None]:
    """Hold a bundle that is there, and mark it as used.

    Raises:
        FileNotFoundError: It is being cleared away.
    """
    path = os.path.join(folder, _LOCK)
    lock = os.open(path, os.O_RDONLY)
    try:
        if sys.platform != "win32":
            import fcntl

            with contextlib.suppress(OSError):  # a file system without locks: the age protects it
                fcntl.flock(lock, fcntl.LOCK_SH)
        if os.stat(path).st_ino != os.fstat(lock).st_ino:
            raise FileNotFoundError(path)
        os.utime(path)
        yield
    finally:
        os.close(lock)


def _clear(parent: str, *, keep: str) -> None:
    """Clear away what is left of killed commands, and the bundles beyond ``KEPT`` that have not been used for a day."""
    now = time.time()
    ages: dict[str, float] = {}
    for name in os.listdir(parent):
        path = os.path.join(parent, name)
        with contextlib.suppress(OSError):
            if name.startswith("."):
                if now - os.stat(path).st_mtime > IDLE_SECONDS:
                    shutil.rmtree(path, ignore_errors=True)
            elif name != keep:
                ages[path] = now - os.stat(os.path.join(path, _LOCK)).st_mtime
    for path in sorted(ages, key=ages.__getitem__)[KEPT - 1 :]:
        if ages[path] > IDLE_SECONDS:
            with contextlib.suppress(OSError):
                _remove_unused(path, parent)


def _remove_unused(path: str, parent: str) -> None:
    lock = os.open(os.path.join(path, _LOCK), os.O_RDONLY)
    try:
        if sys.platform != "win32":
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # OSError: in use
        if time.time() - os.fstat(lock).st_mtime <= IDLE_SECONDS:
            return
        gone = os.path.join(tempfile.mkdtemp(prefix=".gone-", dir=parent), "bundle")
        os.rename(path, gone)  # at once: nobody starts with half of it
    finally:
        os.close(lock)
    shutil.rmtree(os.path.dirname(gone), ignore_errors=True)
