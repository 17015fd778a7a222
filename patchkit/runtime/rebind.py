"""References to some objects replaced by references to others, wherever the process holds them.

A part of a transplant (:mod:`patchkit.runtime.transplant`), of which a copy lies in every vendored tree: it runs inside
the target, on CPython 3.8 and later, where patchkit is not installed. Standard library only.

The collector knows who refers to whom. What can be written is written in place: namespaces, containers, cells,
partials, slots. What cannot (a tuple, a bound method, a ``staticmethod``) is made anew, and references to it are
replaced in the next pass. No code of the objects is called: no ``__setattr__``, no ``__setitem__`` of a subclass for a
key that is there. What still refers to an old object afterwards is for :mod:`patchkit.runtime.leftovers` to name.
"""

from __future__ import annotations

import functools
import gc
import types
from collections import OrderedDict, deque
from contextlib import contextmanager
from itertools import repeat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

PASSES = 6
"""How deep what cannot be written may be nested: a bound method in a tuple of a tuple takes three."""

_ALIAS: Any = getattr(types, "GenericAlias", None)  # from Python 3.9 on: list[int]
_IMMUTABLE = (tuple, frozenset, types.MethodType, staticmethod, classmethod, property)
CACHE: Any = type(functools.lru_cache(maxsize=1)(len))
"""The type of what ``functools.lru_cache`` makes."""
_MRO: Any = type.__dict__["__mro__"]
_SKIPPED = (
    types.FrameType,
    types.GeneratorType,
    types.CoroutineType,
    types.AsyncGeneratorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.WrapperDescriptorType,
)


class Rebinder:
    """Replaces each of ``olds`` by the one of ``news`` at the same place. :meth:`run` does it.

    ``counts`` are the references that were replaced, by what held them. ``own`` are the ids of what belongs to the old
    objects themselves, and keeps them.
    """

    def __init__(self, olds: list[Any], news: list[Any], spare: Iterable[Any] = ()) -> None:
        """``spare`` are containers that are not to be written."""
        self.olds = olds
        self.news = news
        self.table = {id(old): new for old, new in zip(olds, news)}
        self.counts: dict[str, int] = {}
        self.classes = tuple(old for old in olds if is_a(old, type))
        self.stuck: list[tuple[int, str]] = []
        self._hashed: list[Any] = []
        self.own = {id(olds), id(news), id(self.classes), *map(id, spare)}
        for old in olds:
            self.own.update(_parts(old))

    def run(self) -> None:
        """Replace the references."""
        for old in self.classes:
            self._derive_anew(old)
        olds, table = list(self.olds), self.table
        for _ in range(PASSES):
            olds, table = self._pass(olds, table)
            if not olds:
                break
        self._hash_anew()

    def _pass(self, olds: list[Any], table: dict[int, Any]) -> tuple[list[Any], dict[int, Any]]:
        """Replace what can be written, and make anew what cannot: what is to be replaced next."""
        holders = [one for one in referrers(olds) if id(one) not in self.own and one is not olds]
        owners = _owners([one for one in holders if is_a(one, dict)])
        next_olds: list[Any] = []
        next_table: dict[int, Any] = {}
        for holder in holders:
            if is_a(holder, _SKIPPED) or self.is_old(holder):
                continue
            if is_a(holder, _IMMUTABLE) or type(holder) is _ALIAS or asked(type(holder), "__module__") == "typing":
                made = self._anew(holder, table)
                if made is not None:
                    next_olds.append(holder)
                    next_table[id(holder)] = made
            else:
                self._write(holder, table, owners)
        return next_olds, next_table

    def is_old(self, holder: Any) -> bool:
        """Whether it is an object of an old class, by its type alone: a metaclass may answer in its own way."""
        if is_a(holder, type):
            return False  # of an old metaclass it is still somebody's class
        return bool(self.classes) and any(id(kind) in self.table for kind in mro_of(type(holder)))

    def _count(self, kind: str) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1

    def _write(self, holder: Any, table: dict[int, Any], owners: dict[int, tuple[Any, str]]) -> None:
        """Replace what ``holder`` refers to, where it can be written."""
        if is_a(holder, dict):
            self._write_dict(holder, table, *owners.get(id(holder), (None, "dict")))
        elif is_a(holder, (list, deque)):
            row: Any = list if is_a(holder, list) else deque
            for index, value in enumerate(list(row.__iter__(holder))):
                if id(value) in table and row.__getitem__(holder, index) is value:
                    row.__setitem__(holder, index, table[id(value)])
                    self._count(row.__name__)
        elif is_a(holder, set):
            for value in list(set.__iter__(holder)):
                if id(value) in table:
                    set.discard(holder, value)  # first: a member of an IntEnum equals the one in its place
                    set.add(holder, table[id(value)])
                    self._count("set")
        elif is_a(holder, types.CellType):
            value = holder.cell_contents
            if id(value) in table:
                holder.cell_contents = table[id(value)]
                self._count("closure cell")
        elif is_a(holder, functools.partial):
            self._write_partial(holder, table)
        elif is_a(holder, types.FunctionType):
            if id(holder.__defaults__) in table:
                holder.__defaults__ = table[id(holder.__defaults__)]
                self._count("default")
            else:
                self._write_annotations(holder)
        elif not is_a(holder, type):
            self._write_instance(holder, table)

    def _write_dict(self, space: dict[Any, Any], table: dict[int, Any], owner: Any, kind: str) -> None:
        if self.is_old(owner) or type(owner) is CACHE or (is_a(owner, type) and id(owner) in self.table):
            return
        for key, value in list(dict.items(space)):
            if id(value) in table:
                if key == "__wrapped__" and keeps(owner):
                    continue  # it would say what is not so
                if kind == "class attribute":
                    try:
                        type.__setattr__(owner, key, table[id(value)])
                    except TypeError:
                        continue
                else:
                    self._hashed += [owner] if kind == "instance attribute" and _is_hashed(owner) else []
                    dict.__setitem__(space, key, table[id(value)])
                self._count("__wrapped__" if key == "__wrapped__" else kind)
        if kind != "class attribute":
            found = [at for at, key in enumerate(dict.keys(space)) if id(key) in table]
            if found:
                _write_keys(space, table, found[0])
                self.counts["dict key"] = self.counts.get("dict key", 0) + len(found)

    def _write_annotations(self, holder: types.FunctionType) -> None:
        """They are a tuple until somebody asks for them (CPython 3.10 to 3.13)."""
        try:
            annotations = list(holder.__annotations__.items())
        except Exception:  # they may be code that cannot be run yet (CPython 3.14)
            return
        for name, value in annotations:
            if id(value) in self.table:
                holder.__annotations__[name] = self.table[id(value)]
                self._count("annotation")

    def _hash_anew(self) -> None:
        """Put objects that are hashed by what they hold, and now hold something else, where they are looked for."""
        holders, self._hashed = self._hashed, []
        for _ in range(2):  # as a key, and in a tuple that is one
            found = [one for one in referrers(holders) if is_a(one, (dict, set, tuple))] if holders else []
            owners = _owners([one for one in found if is_a(one, dict)])
            keys = {id(one) for one in holders}
            for one in found:
                if is_a(one, dict):
                    if type(owners.get(id(one), (None, ""))[0]) is CACHE or not any(
                        id(key) in keys for key in dict.keys(one)
                    ):
                        continue
                    kind: Any = OrderedDict if is_a(one, OrderedDict) else dict
                    items = list(dict.items(one))  # an ordered one would look for each key by its new hash
                    kind.clear(one)
                    kind.update(one, items)
                elif is_a(one, set):
                    values = list(set.__iter__(one))
                    set.clear(one)
                    set.update(one, values)
            holders = [one for one in found if is_a(one, tuple)]

    def _write_partial(self, holder: functools.partial[Any], table: dict[int, Any]) -> None:
        state: Any = functools.partial.__reduce__(holder)[2]
        function, arguments, keywords, space = state
        if id(function) in table or id(arguments) in table:
            state = (table.get(id(function), function), table.get(id(arguments), arguments), keywords, space)
            functools.partial.__setstate__(holder, state)  # type: ignore[attr-defined]
            self._count("partial")

    def _write_instance(self, holder: Any, table: dict[int, Any]) -> None:
        """Attributes, by the dictionary and by slots."""
        space = space_of(holder) or {}
        hashed = _is_hashed(holder)
        for name, value in list(space.items()):
            if id(value) in table and not (name == "__wrapped__" and keeps(holder)):
                self._hashed += [holder] if hashed else []
                dict.__setitem__(space, name, table[id(value)])
                self._count("__wrapped__" if name == "__wrapped__" else "instance attribute")
        for slot in slots_of(type(holder)):
            try:
                value = slot.__get__(holder)
                if id(value) in table:
                    self._hashed += [holder] if hashed else []
                    slot.__set__(holder, table[id(value)])
                    self._count("dataclass field" if type(holder).__name__ == "Field" else "instance attribute")
            except (AttributeError, TypeError):
                continue  # empty, or read-only

    def _anew(self, holder: Any, table: dict[int, Any]) -> Any:
        """The like of what cannot be written, with the new objects; None where there is no such thing."""
        kind = type(holder)
        if kind is types.MethodType:
            return self._method_anew(holder, table)
        if kind in (staticmethod, classmethod):
            return kind(table[id(holder.__func__)]) if id(holder.__func__) in table else None
        if kind is property:
            parts = (holder.fget, holder.fset, holder.fdel)
            make: Any = property
            return make(*[table.get(id(part), part) for part in parts], holder.__doc__)
        if asked(kind, "__module__") == "typing" or kind is _ALIAS:
            return _alias_anew(holder, table)
        if kind is frozenset:
            return frozenset(table.get(id(item), item) for item in holder)
        if kind is tuple or (is_a(holder, tuple) and hasattr(kind, "_fields") and not kind.__dictoffset__):
            return tuple.__new__(kind, [table.get(id(item), item) for item in holder])
        return None

    def _method_anew(self, holder: types.MethodType, table: dict[int, Any]) -> Any:
        owner = holder.__self__
        if self.is_old(owner):
            return None  # of an object of the old class: the new one's functions are not for it
        if id(owner) in table:
            found = getattr(table[id(owner)], holder.__name__, None)
            return found if is_a(found, types.MethodType) else None
        return types.MethodType(table[id(holder.__func__)], owner) if id(holder.__func__) in table else None

    def _derive_anew(self, old: type) -> None:
        """Let the classes that are derived from ``old`` derive from the new one."""
        subclasses: list[type] = type.__subclasses__(old)
        for derived in subclasses:
            if id(derived) in self.table or not mro_of(derived):
                continue
            try:
                bases = tuple(self.table.get(id(base), base) for base in derived.__bases__)
                type.__setattr__(derived, "__bases__", bases)
                self._count("base class")
                if id(type(derived)) in self.table:
                    type.__setattr__(derived, "__class__", self.table[id(type(derived))])
            except Exception as error:  # of the layouts, or of a metaclass's own mro()
                self.stuck.append((id(old), f"class {class_name(derived)} is derived from it, and stays so: {error}"))
                self.own.update(id(one.__mro__) for one in _derived(derived))
                self.own.add(id(derived.__bases__))


def _write_keys(space: dict[Any, Any], table: dict[int, Any], first: int) -> None:
    """Replace keys of a dict, which keeps its order: those from the first that is replaced on are put in anew.

    Each leaves before the one in its place is there, since the two may be equal (members of an IntEnum are). It is one
    call of C: no other thread finds half of it.
    """
    kind: Any = OrderedDict if is_a(space, OrderedDict) else dict
    old = list(dict.keys(space))[first:]
    new = [table.get(id(key), key) for key in old]
    values = map(kind.pop, repeat(space), old)
    deque(map(kind.__setitem__, repeat(space), new, values), maxlen=0)


def referrers(objects: list[Any]) -> list[Any]:
    """What refers to any of them, without the list itself and without the arguments of the very question."""
    mark = object()
    group = (*objects, mark)
    found = []
    for one in gc.get_referrers(*group):  # no comprehension: its cell would refer to the mark
        if one is not objects and not (type(one) is tuple and one and one[-1] is mark):
            found.append(one)  # noqa: PERF401
    return found


@contextmanager
def thawed() -> Iterator[None]:
    """For as long as references are looked for: what is frozen is hidden from that (vLLM freezes what it starts with).

    Python 3.12 begins with a few hundred frozen objects; where it is not most of them, they stay thawed.
    """
    frozen = gc.get_freeze_count()
    most = frozen > len(gc.get_objects()) if frozen else False
    if frozen:
        gc.unfreeze()
    try:
        yield
    finally:
        if most:
            gc.freeze()


def _alias_anew(holder: Any, table: dict[int, Any]) -> Any:
    """``Optional[Old]`` with the new class; it is shared and hashed by its parts, so it is never written."""
    arguments = getattr(holder, "__args__", None)
    try:
        if not isinstance(arguments, tuple):
            return None
        arguments = tuple(table.get(id(one), one) for one in table.get(id(arguments), arguments))
        if type(holder) is _ALIAS:
            return _ALIAS(table.get(id(holder.__origin__), holder.__origin__), arguments)
        return holder.copy_with(arguments)
    except Exception:
        return None


def is_a(one: Any, kinds: Any) -> bool:
    """``isinstance`` by the type alone: a proxy answers ``__class__`` as it likes, or not at all."""
    return issubclass(type(one), kinds)


def asked(value: Any, name: str, default: Any = None) -> Any:
    """An attribute of anything; a proxy may raise whatever it likes."""
    try:
        return getattr(value, name, default)
    except Exception:
        return default


def mro_of(kind: type) -> tuple[type, ...]:
    """The classes that a class is derived from, with itself; none of one that the collector has taken apart."""
    found: Any = _MRO.__get__(kind)
    return found or ()


def class_name(kind: type) -> str:
    """A class by its full name, as far as it tells."""
    try:
        return f"{kind.__module__}.{kind.__qualname__}"
    except Exception:
        return type.__repr__(kind)


def space_of(holder: Any) -> dict[str, Any] | None:
    """The dictionary of an object's attributes, without a call of its code; None where it has none."""
    if is_a(holder, type) or not (type(holder).__dictoffset__ or is_a(holder, types.FunctionType)):
        return None
    try:
        space = object.__getattribute__(holder, "__dict__")
    except Exception:
        return None
    return space if is_a(space, dict) else None


def class_space(kind: type) -> dict[str, Any] | None:
    """The dictionary behind the read-only view that a class shows."""
    found = gc.get_referents(type.__dict__["__dict__"].__get__(kind))
    return found[0] if found and is_a(found[0], dict) else None


def is_module_space(space: dict[Any, Any]) -> bool:
    """Whether a dictionary is the namespace of a module, or of a script."""
    return all(dict.__contains__(space, name) for name in ("__name__", "__spec__", "__loader__"))


def _owners(spaces: list[dict[Any, Any]]) -> dict[int, tuple[Any, str]]:
    """Whose dictionaries they are, and what a value in them is then."""
    found: dict[int, tuple[Any, str]] = {
        id(space): (None, "module global") for space in spaces if is_module_space(space)
    }
    spaces = [space for space in spaces if id(space) not in found]
    wanted = {id(space) for space in spaces}
    for owner in referrers(spaces) if spaces else ():
        if is_a(owner, types.FrameType):
            continue
        if type(owner) is CACHE:
            found.update((id(one), (owner, "")) for one in gc.get_referents(owner) if id(one) in wanted)
            continue
        if is_a(owner, type):
            space, kind = class_space(owner), "class attribute"
        elif is_a(owner, functools.partial) and id(owner.keywords) in wanted:
            space, kind = owner.keywords, "partial"
        elif is_a(owner, types.FunctionType) and id(owner.__kwdefaults__) in wanted:
            space, kind = owner.__kwdefaults__, "default"
        else:
            space, kind = space_of(owner), "instance attribute"
        if space is not None and id(space) in wanted:
            found[id(space)] = (owner, kind)
    return found


def keeps(owner: Any) -> bool:
    """Whether what ``owner`` calls is not what its ``__wrapped__`` names: it is no Python code, as jit and caches."""
    if owner is None or is_a(owner, (types.FunctionType, type)):
        return False
    calls = [vars(base)["__call__"] for base in mro_of(type(owner)) if "__call__" in vars(base)]
    return not calls or not is_a(calls[0], types.FunctionType)


def _is_hashed(holder: Any) -> bool:
    """Whether an object's hash may follow from what it holds."""
    own_hash: Any = type(holder).__hash__
    return own_hash is not None and own_hash is not object.__hash__


def slots_of(kind: type) -> Iterator[Any]:
    """The descriptors of the slots that a class and those above it have."""
    for base in mro_of(kind):
        for value in list(vars(base).values()):
            if is_a(value, types.MemberDescriptorType):
                yield value


def _derived(kind: type) -> Iterator[type]:
    yield kind
    subclasses: list[type] = type.__subclasses__(kind)
    for one in subclasses:
        yield from _derived(one)


def _parts(old: Any) -> Iterator[int]:
    """The ids of what is an old object's own: it goes with it, or stays with it."""
    if is_a(old, types.FunctionType):
        yield from _function_parts(old)
    elif is_a(old, type):
        yield id(old)
        yield id(old.__mro__)
        yield id(old.__bases__)
        space = class_space(old)
        if space is None:
            return
        yield id(space)
        for value in list(space.values()):
            inner = [getattr(value, name, None) for name in ("__func__", "fget", "fset", "fdel")]
            for part in [value, *inner] if is_a(value, (staticmethod, classmethod, property)) else [value]:
                if is_a(part, types.FunctionType):
                    yield from _function_parts(part)
                elif is_a(part, (staticmethod, classmethod, property, dict, list, set, tuple)):
                    yield id(part)


def _function_parts(function: types.FunctionType) -> Iterator[int]:
    """Its cells, its defaults, its annotations, its attributes; not the namespace that it runs in."""
    yield from map(id, function.__closure__ or ())
    for part in gc.get_referents(function):
        if is_a(part, tuple) or (is_a(part, dict) and part is not function.__globals__ and not is_module_space(part)):
            yield id(part)
