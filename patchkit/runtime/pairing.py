"""What a stock module has of its own, and whether it is what the copy has.

A part of a transplant (:mod:`patchkit.runtime.transplant`); the same rules hold: it runs inside the target, on CPython
3.8 and later. Standard library only.

A name of a module may be bound to anything: ``SCALE = jnp.float32``, ``from json import dumps``. What it is bound to
is replaced elsewhere in the process only where the stock module made it; else an edit of such a line would replace
``jnp.float32`` or ``dumps`` for everybody.
"""

from __future__ import annotations

import gc
import sys
import types

from patchkit.runtime.rebind import asked, is_a, is_module_space, mro_of, slots_of, space_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container
    from typing import Any

_PLAIN = (int, float, complex, str, bytes, bool, type(None), type(Ellipsis))
#: Modules of types whose ``==`` compares values, and does nothing else.
_VALUES = ("builtins", "datetime", "decimal", "fractions", "pathlib", "re", "uuid")
_STEPS, _MOST = 6, 2000
_HEAP = 1 << 9  # Py_TPFLAGS_HEAPTYPE: a class of Python code, or of an extension module that says so


class Pairs:
    """Old objects, each with the new one for its place and with what it is called."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.olds: list[Any] = []
        self.news: list[Any] = []
        self._places: dict[int, int] = {}

    def add(self, name: str, old: Any, new: Any) -> None:
        """Note a pair, unless ``old`` is known."""
        if id(old) not in self._places:
            self._places[id(old)] = len(self.olds)
            self.names.append(name)
            self.olds.append(old)
            self.news.append(new)

    def new_of(self, old: Any) -> Any:
        """What takes the place of ``old``; None for what is not known."""
        place = self._places.get(id(old))
        return None if place is None else self.news[place]

    def add_members(self) -> None:
        """Of the classes that are noted: their functions, the members of enumerations and the classes within."""
        at = 0
        while at < len(self.olds):  # it grows
            old, new = self.olds[at], self.news[at]
            if is_a(old, type) and is_a(new, type):
                self._add_members_of(self.names[at], old, new)
            at += 1

    def _add_members_of(self, label: str, old: type, new: type) -> None:
        members = asked(old, "__members__") if "enum" in sys.modules else None
        for key, value in list(vars(old).items()):
            other: Any = vars(new).get(key)
            if is_a(value, (staticmethod, classmethod)) and type(value) is type(other):
                value, other = value.__func__, other.__func__
            if is_a(value, type):
                fits = is_a(other, type)
            else:
                fits = is_a(value, types.FunctionType) and is_a(other, types.FunctionType)
            if key != "__class__" and fits and value is not other and asked(value, "__module__") == old.__module__:
                self.add(f"{label}.{key}", value, other)
        if isinstance(members, types.MappingProxyType) and is_a(old, sys.modules["enum"].EnumMeta):
            for key, value in members.items():
                if key in getattr(new, "__members__", ()):
                    self.add(f"{label}.{key}", value, new[key])  # type: ignore[index]


def made_names(source: bytes) -> frozenset[str]:
    """The names that a module's source binds to what it makes: by a call, or by a definition with decorators."""
    import ast

    found: set[str] = set()
    try:
        waiting: list[Any] = list(ast.parse(source).body)
    except Exception:
        return frozenset()
    for node in waiting:  # which grows
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.update([node.name] if node.decorator_list else [])
            continue
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(part, ast.Call) for part in ast.walk(node.value)):
                found.update(part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name))
        for name in ("body", "orelse", "finalbody", "handlers"):
            waiting.extend(getattr(node, name, ()))
    return frozenset(found)


def is_own(value: Any, modules: Container[str]) -> bool | None:
    """Whether one of ``modules`` made a callable: a function or class of theirs, or something made of one.

    What is found under its own name in another module is that module's. None: it refers to nothing of ``modules``, and
    only their sources tell who made it (:func:`made_names`).
    """
    home = asked(value, "__module__")
    if isinstance(home, str):
        if home in modules:
            return True
        found: Any = sys.modules.get(home)
        for part in str(asked(value, "__qualname__", "") or asked(value, "__name__", "")).split("."):
            found = asked(found, part)
        if found is value:
            return False
    seen = {id(value)}
    ends: list[Any] = [value]
    for _ in range(_STEPS):
        above, ends = ends, []
        for one in above:
            for part in gc.get_referents(one):
                if id(part) in seen or is_a(part, types.ModuleType):
                    continue
                if is_a(part, (types.FunctionType, type)):
                    if asked(part, "__module__") in modules:
                        return True
                    if is_a(part, type):
                        continue
                if is_a(part, dict) and is_module_space(part):
                    continue
                seen.add(id(part))
                ends.append(part)
        if len(seen) > _MOST:
            break
    return None


def is_bare(value: Any, modules: Container[str]) -> bool:
    """Whether its identity alone tells it from others: ``object()``, or of a class of ``modules`` without state."""
    kind = type(value)
    if kind is object:
        return True
    if asked(kind, "__module__") not in modules or is_a(value, (type, types.ModuleType)) or kind.__itemsize__:
        return False
    plain = all(base is object or base.__flags__ & _HEAP for base in mro_of(kind))
    return plain and not space_of(value) and next(iter(slots_of(kind)), None) is None


def is_constant(value: Any) -> bool:
    """Whether it is a number, a text or the like, or a tuple or frozen set of such."""
    if type(value) in (tuple, frozenset):
        return all(map(is_constant, value))
    return type(value) in _PLAIN


def are_alike(old: Any, new: Any) -> bool:
    """Whether two constants are the same: 1 is not 1.0, and not a number is itself."""
    if type(old) is not type(new):
        return False
    return bool(old == new) if type(old) is frozenset else repr(old) == repr(new)


def differ(old: Any, new: Any, depth: int = 4) -> bool:
    """Whether two values of data are not alike, as far as plain ones in plain containers tell."""
    if is_constant(old) and is_constant(new):
        return not are_alike(old, new)
    if type(old) is not type(new):
        return type(old).__name__ != type(new).__name__
    if type(old) not in (dict, list, tuple, set, frozenset):
        equality: Any = type(old).__eq__
        if type(old).__module__ not in _VALUES or equality is object.__eq__:
            return False
        try:
            return bool(old != new)
        except Exception:
            return False
    if depth == 0:
        return False
    if len(old) != len(new):
        return True
    if is_a(old, dict):
        if all(type(key) in _PLAIN for key in old):
            return any(key not in new or differ(old[key], new[key], depth - 1) for key in old)
        return any(differ(a, b, depth - 1) for pair in zip(old.items(), new.items()) for a, b in zip(*pair))
    if is_a(old, (set, frozenset)):
        return all(type(one) in _PLAIN for one in old) and old != new
    return any(differ(a, b, depth - 1) for a, b in zip(old, new))
