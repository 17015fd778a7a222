"""What still refers to objects that were to be replaced, each with where it is, in words.

A part of a transplant, beside :mod:`patchkit.runtime.rebind`; the same rules hold.
"""

from __future__ import annotations

import gc
import sys
import types
import weakref

from patchkit.runtime.rebind import CACHE, class_name, class_space, is_a, is_module_space, keeps, referrers, space_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from patchkit.runtime.rebind import Rebinder

MOST = 100
"""References that are named; of more, only the number is told."""
DEPTH = 5
"""How far from the reference a name for the place is looked for."""

_HIDDEN = (types.FrameType, types.GetSetDescriptorType, types.MemberDescriptorType, types.WrapperDescriptorType)


class _Trail:
    """From an old object over what holds it towards something that has a name."""

    __slots__ = ("chain", "inner", "name", "weak")

    def __init__(self, name: str, chain: list[Any], weak: bool = False) -> None:
        self.name = name
        self.chain = chain
        self.weak = weak
        self.inner = False  # whether an old object holds it

    def words(self) -> str:
        if _remembers(self.chain[-2], self.chain[-1]):
            return f"what the functools.lru_cache {_called(self.chain[-1].__wrapped__)} remembers"
        texts = []
        skip = False
        for index in range(1, len(self.chain)):
            if skip:
                skip = False
                continue
            above = self.chain[index + 1] if index + 1 < len(self.chain) else None
            text, skip = _step(self.chain[index - 1], self.chain[index], above)
            texts.append(text)
        return ", in ".join(texts)


def find_leftovers(rebinder: Rebinder, names: list[str]) -> list[dict[str, str]]:
    """What still refers to the old objects of ``rebinder``, which are called ``names``.

    Returns:
        ``object`` and ``where`` of each, at most :data:`MOST`; then one that says how many more there are.
    """
    gc.collect()
    labels = {id(old): name for old, name in zip(rebinder.olds, names)}
    found = [{"object": labels[old], "where": where} for old, where in rebinder.stuck]
    instances: dict[int, int] = {}
    trails = list(_first(rebinder, names, instances))
    more = len(trails) - MOST
    found += [{"object": trail.name, "where": trail.words()} for trail in _followed(trails[:MOST], rebinder)]
    for index, count in sorted(instances.items()):
        many = f"{count} objects of it that were made" if count > 1 else "an object of it that was made"
        found.append({"object": names[index], "where": f"{many} before, of the stock class"})
    found += _locals(rebinder.olds, names)
    unique = [dict(item) for item in dict.fromkeys(tuple(item.items()) for item in found)]
    if more > 0:
        unique.append({"object": "", "where": f"{more} more"})
    return unique


def _first(rebinder: Rebinder, names: list[str], instances: dict[int, int]) -> Iterator[_Trail]:
    """What refers to the old objects themselves; objects of old classes are only counted."""
    olds, own = rebinder.olds, rebinder.own
    places = {id(old): index for index, old in enumerate(olds)}
    for holder in referrers(olds):
        if id(holder) in own or is_a(holder, _HIDDEN) or holder is places:
            continue
        if rebinder.is_old(holder):
            index = places.get(id(type(holder)))
            if index is not None and id(holder) not in places:
                instances[index] = instances.get(index, 0) + 1
            continue
        for index in sorted({places[id(one)] for one in gc.get_referents(holder) if id(one) in places}):
            yield _Trail(names[index], [olds[index], holder])
    for index, old in enumerate(olds):
        for reference in weakref.getweakrefs(old):
            if is_a(old, types.FunctionType) or is_a(reference, weakref.KeyedRef):
                yield _Trail(names[index], [old, reference], weak=True)


def _followed(trails: list[_Trail], rebinder: Rebinder) -> list[_Trail]:
    """The trails, each as far as something with a name; weak references that nothing of Python holds are left out."""
    own = rebinder.own
    open_ones = [trail for trail in trails if not _ends(trail)]
    for _ in range(DEPTH):
        if not open_ones:
            break
        ends = [trail.chain[-1] for trail in open_ones]
        wanted = {id(end) for end in ends}
        ours = {id(ends), id(open_ones), id(wanted), *(id(trail.chain) for trail in trails)}
        above: dict[int, Any] = {}
        inner: set[int] = set()
        for holder in referrers(ends):
            if id(holder) in ours or is_a(holder, (types.FrameType, _Trail)):
                continue
            owned = id(holder) in own or id(holder) in rebinder.table
            for one in gc.get_referents(holder):
                if id(one) in wanted and owned:
                    inner.add(id(one))
                elif id(one) in wanted and (id(one) not in above or _named(holder)):
                    above[id(one)] = holder
        for trail in open_ones:
            holder = above.get(id(trail.chain[-1]))
            trail.inner = id(trail.chain[-1]) in inner
            if holder is not None and all(holder is not one for one in trail.chain):
                trail.chain.append(holder)
        open_ones = [trail for trail in open_ones if id(trail.chain[-2]) in above and not _ends(trail)]
        above.clear()
    return [trail for trail in trails if _matters(trail, rebinder)]


def _matters(trail: _Trail, rebinder: Rebinder) -> bool:
    """Whether a weak reference is a value that somebody looks up, and no key of a cache; attributes of old objects."""
    reference, holder = trail.chain[1], trail.chain[2] if len(trail.chain) > 2 else None
    if not trail.weak:
        last = trail.chain[-1]
        in_typing = _remembers(trail.chain[-2], last) and last.__wrapped__.__module__ == "typing"
        inner = trail.inner and not _ends(trail)
        return not (in_typing or inner or any(map(rebinder.is_old, trail.chain[2:])))
    if holder is not None and is_a(holder, dict):
        return any(value is reference for value in list(dict.values(holder)))
    return is_a(holder, (list, tuple, types.CellType)) or (holder is not None and bool(space_of(holder)))


def _remembers(held: Any, holder: Any) -> bool:
    """Whether it is a cache that has ``held`` among its arguments and results, and does not call it."""
    if type(holder) is not CACHE or held is space_of(holder):
        return False
    return getattr(holder, "__wrapped__", held) is not held


def _ends(trail: _Trail) -> bool:
    return _named(trail.chain[-1]) or _remembers(trail.chain[-2], trail.chain[-1])


def _named(holder: Any) -> bool:
    """Whether it says by itself where it is."""
    if is_a(holder, dict):
        return is_module_space(holder)
    return is_a(holder, type) or (is_a(holder, types.FunctionType) and "<" not in holder.__qualname__)


def _step(held: Any, holder: Any, above: Any) -> tuple[str, bool]:
    """How ``holder`` holds ``held``, in words, and whether that tells of what is ``above`` as well."""
    if is_a(holder, dict):
        key = next((key for key, value in list(dict.items(holder)) if value is held), None)
        if key is None and any(one is held for one in list(dict.keys(holder))):
            return "a key of a dict", False
        if is_module_space(holder):
            return f"global {key} of module {holder['__name__']}", False
        if above is not None and (space_of(above) is holder or (is_a(above, type) and _is_space(above, holder))):
            if key == "__wrapped__" and keeps(above):
                return _called(above), True
            return f"attribute {key} of {_called(above)}", True
        return f"a dict at {_shown(key)}", False
    if is_a(holder, (list, tuple)):
        index = next((index for index, value in enumerate(holder) if value is held), "?")
        fields = getattr(type(holder), "_fields", None)
        if fields and is_a(index, int):
            return f"field {fields[index]} of {_called(holder)}", False
        return f"a {type(holder).__name__} at {index}", False
    if is_a(holder, weakref.ref) and not is_a(held, weakref.ref):
        return "a weak reference", False
    if is_a(holder, types.MethodType):
        return f"a bound method of {_called(holder.__self__)}", False
    if is_a(holder, types.CellType):
        return "a closure cell", False
    return _called(holder), False


def _is_space(kind: type, space: dict[Any, Any]) -> bool:
    return class_space(kind) is space


def _called(one: Any) -> str:
    """An object, by a name or by its kind, without a call of its code."""
    if is_a(one, type):
        return f"class {class_name(one)}"
    if is_a(one, types.FunctionType):
        return f"function {one.__module__}.{one.__qualname__}"
    kind = type(one)
    if kind is CACHE:
        return "a functools.lru_cache, which was made of it before: it calls the stock one"
    compiled = callable(one) and keeps(one) and kind not in (types.BuiltinFunctionType, types.MethodWrapperType)
    made = ", which was made of it before: what it compiled or keeps is stock" if compiled else ""
    return f"an object of {class_name(kind)}{made}"


def _shown(key: Any) -> str:
    if is_a(key, (str, int, bytes, bool)):
        return repr(key)[:40]
    return _called(key)


def _locals(olds: list[Any], names: list[str]) -> Iterator[dict[str, str]]:
    """Local variables of functions that are running, in any thread; an older interpreter lists none elsewhere."""
    places = {id(old): names[index] for index, old in enumerate(olds)}
    for frame in list(sys._current_frames().values()):
        found: Any = frame
        while found is not None:
            code, space = found.f_code, found.f_globals
            ours = space.get("__name__", "").startswith(("importlib", _OWN)) or code.co_filename.startswith("<frozen")
            if not ours and found.f_locals is not space:
                for name, value in list(found.f_locals.items()):
                    if id(value) in places:
                        where = f"local {name} of function {space.get('__name__')}.{code.co_name}, which is running"
                        yield {"object": places[id(value)], "where": where}
            found = found.f_back


_OWN = __name__.rpartition(".")[0]
