"""Wrappers of functions that report, once per process, that they were called.

A part of a transplant (:mod:`patchkit.runtime.transplant`); the same rules hold. What they print and leave is what a
``probe`` edit does (:mod:`patchkit.runtime.probe`): the line's ``patch`` is the copy's name, ``edit`` a number
that the function has in every process: a thousand for each file before its own, and its place there.
"""

from __future__ import annotations

import functools
import os
import sys
import time
import types

from patchkit.runtime.probe import FOLDER_VARIABLE, RANKS, RECORD_SCHEMA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

COPY_RAN = "the copy ran"
"""What the probes of a transplant say: they have no patch file with words of their own."""

_FRAMES = frozenset(("_getframe", "_getframemodulename", "currentframe"))
_COROUTINE, _GENERATOR, _ASYNC_GENERATOR = 0x80, 0x20, 0x200  # inspect.CO_*; inspect costs ten modules


class Probe:
    """One entry. :meth:`fire` reports it, at the first call in a process; never an exception."""

    __slots__ = ("edit", "file", "folder", "function", "loaded", "module", "patch", "pid", "ran")

    def __init__(self, patch: str, edit: int, file: str, module: str, function: str) -> None:
        self.patch = patch
        self.edit = edit
        self.file = file
        self.module = module
        self.function = function
        self.loaded = time.time()
        self.pid = os.getpid()
        self.folder = probes_folder()
        self.ran: dict[int, object] = {}

    def fire(self) -> None:
        """Report, unless this process has."""
        pid = os.getpid()
        if pid in self.ran:
            return
        token = object()
        if self.ran.setdefault(pid, token) is not token:
            return
        lost = ""
        role = "unknown"
        try:
            role = self._role(pid)
            folder = self.folder or probes_folder()
            if folder:
                self._record(folder, pid, role)
        except Exception as error:
            lost = f" record=lost:{type(error).__name__}"
        say(
            f"probe patch={self.patch} edit={self.edit} file={self.file} function={self.function} pid={pid} "
            f"role={role}{lost} text={COPY_RAN}"
        )

    def _role(self, pid: int) -> str:
        process = sys.modules.get("multiprocessing.process")
        role = "MainProcess" if process is None else str(process.current_process().name)
        if role == "MainProcess":
            role = "main" if self.pid == pid else "fork"
        return "".join(c if c.isalnum() or c in "-_.:" else "_" for c in role[:80])

    def _record(self, folder: str, pid: int, role: str) -> None:
        report = {
            "schema": RECORD_SCHEMA,
            "patch": self.patch,
            "edit": self.edit,
            "file": self.file,
            "function": self.function,
            "text": COPY_RAN,
            **about_process(pid),
            "role": role,
            "module": self.module,
            "loaded": self.loaded,
            "ran": time.time(),
        }
        leave(os.path.join(folder, f"{pid}-{int(self.loaded * 1e9):x}-{self.patch}-{self.edit}.json"), report)


def probes_folder() -> str:
    """The folder that ``PATCHKIT_PROBES`` names, as it is now; "" without one."""
    folder = os.environ.get(FOLDER_VARIABLE)
    return os.path.abspath(folder) if folder else ""


def about_process(pid: int) -> dict[str, Any]:
    """What a record says of its process, beside its role."""
    title, ticks = "", None
    try:
        with open("/proc/self/comm", encoding="utf-8", errors="replace") as file:
            title = file.read().strip()
        with open("/proc/self/stat", encoding="utf-8", errors="replace") as file:
            ticks = int(file.read().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        pass
    return {
        "pid": pid,
        "parent": os.getppid(),
        "title": title,
        "ranks": {name: rank for name in RANKS for rank in [os.environ.get(name, "")] if rank.isdigit()},
        "host": os.uname().nodename if hasattr(os, "uname") else "",
        "ticks": ticks,
        "executable": sys.executable,
        "python": "%d.%d.%d" % sys.version_info[:3],  # noqa: UP031
    }


def leave(path: str, report: dict[str, Any]) -> None:
    """Write a JSON file, wholly or not at all.

    Raises:
        OSError: It cannot be written.
    """
    import json

    os.makedirs(os.path.dirname(path), exist_ok=True)
    temporary = f"{path}.{os.getpid()}.tmp"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(report, file)
    os.replace(temporary, path)


def say(text: str) -> None:
    """One line on stderr, if there is one."""
    try:
        sys.stderr.write(f"[patchkit] {text}\n")
        sys.stderr.flush()
    except Exception:
        pass


class Entry:
    """A callable that is no Python function (of ``jax.jit``, of ``functools.lru_cache``), with a probe.

    It is called as that is, and all else that it is asked for is that object's.
    """

    def __init__(self, function: Any, probe: Probe) -> None:
        functools.update_wrapper(self, function)
        self.__dict__["_patchkit_probe"] = probe

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Call it, and report that."""
        self.__dict__["_patchkit_probe"].fire()
        return self.__dict__["__wrapped__"](*arguments, **keywords)

    def __getattr__(self, name: str) -> Any:
        if name == "__wrapped__" or "__wrapped__" not in self.__dict__:  # while it is made, or unpickled
            raise AttributeError(name)
        return getattr(self.__dict__["__wrapped__"], name)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __reduce__(self) -> str:
        return str(self.__qualname__)

    def __repr__(self) -> str:
        return repr(self.__dict__["__wrapped__"])


def is_entry(function: Any) -> bool:
    """Whether a module's object can be wrapped: a function, or what a decorator made of one; no class.

    Nor a function that looks at its caller's frame: it would find the wrapper's.
    """
    if issubclass(type(function), types.FunctionType):
        code = function.__code__
        return not code.co_flags & _ASYNC_GENERATOR and not _FRAMES.intersection(code.co_names)
    return not issubclass(type(function), type) and callable(function) and _has_wrapped(function)


def _has_wrapped(function: Any) -> bool:
    try:
        return callable(object.__getattribute__(function, "__wrapped__"))
    except Exception:
        return False


def wrap(function: Any, probe: Probe) -> Any:
    """``function`` with a probe, and named as the stock one, so that a pickle of it names that."""
    wrapper: Any = _wrapped(function, probe)
    wrapper.__module__ = probe.module
    return wrapper


def _wrapped(function: Any, probe: Probe) -> Any:
    if not issubclass(type(function), types.FunctionType):
        return Entry(function, probe)
    fire: Callable[[], None] = probe.fire
    flags = function.__code__.co_flags
    if flags & _COROUTINE:

        @functools.wraps(function)
        async def coroutine(*arguments: Any, **keywords: Any) -> Any:
            fire()
            return await function(*arguments, **keywords)

        return coroutine
    if flags & _GENERATOR:

        @functools.wraps(function)
        def generator(*arguments: Any, **keywords: Any) -> Any:
            fire()
            return (yield from function(*arguments, **keywords))

        return generator

    @functools.wraps(function)
    def entry(*arguments: Any, **keywords: Any) -> Any:
        fire()
        return function(*arguments, **keywords)

    return entry
