"""What others have registered for stock functions and classes, given to those that took their place.

A part of a transplant, beside :mod:`patchkit.runtime.rebind`; the same rules hold. None of it is a reference that the
collector shows: abstract classes and the containers of :mod:`weakref` hold what they know weakly.
"""

from __future__ import annotations

import gc
import types
import weakref
from abc import ABCMeta

from patchkit.runtime.rebind import asked, is_a, mro_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Iterable
    from typing import Any

    from patchkit.runtime.rebind import Rebinder

_WEAK = {weakref.WeakKeyDictionary, weakref.WeakValueDictionary, weakref.WeakSet}


def carry_registrations(rebinder: Rebinder, *, fresh: bool) -> None:
    """Give the new objects of ``rebinder`` what is registered for the old ones, and count it there.

    These are implementations of ``functools.singledispatch`` functions, virtual subclasses, and what weak containers
    hold. What a module that is ``fresh`` has registered by itself, its copy has as well.
    """
    found = {"singledispatch registration": _dispatched(rebinder)}
    if not fresh:
        found["abstract base class registration"] = _virtual(rebinder)
        found["weak container"] = _weakly_held(rebinder)
    rebinder.counts.update((kind, number) for kind, number in found.items() if number)


def _dispatched(rebinder: Rebinder) -> int:
    count, table = 0, rebinder.table
    for old, new in zip(rebinder.olds, rebinder.news):
        register = asked(new, "register")
        registries = [asked(one, "registry") for one in (old, new)]
        if register is None or not all(is_a(one, types.MappingProxyType) for one in registries):
            continue
        for kind, function in list(registries[0].items()):
            if table.get(id(kind), kind) not in registries[1]:
                register(table.get(id(kind), kind), table.get(id(function), function))
                count += 1
    return count


def _virtual(rebinder: Rebinder) -> int:
    """Old classes that others' abstract ones know, and others' classes that old abstract ones know."""
    count, table = 0, rebinder.table
    if not rebinder.classes:
        return 0
    for abstract in _instances({ABCMeta}):
        target = table.get(id(abstract), abstract)
        if not is_a(target, ABCMeta):
            continue
        for kind in _known(abstract):
            new = table.get(id(kind), kind)
            if (new is not kind or target is not abstract) and new not in _known(target):
                ABCMeta.register(target, new)
                count += 1
    return count


def _instances(kinds: Container[type]) -> list[Any]:
    """All objects of some classes; those are not asked, since an abstract one answers in its own way."""
    objects = gc.get_objects()
    types_of = {id(kind): kind for kind in map(type, objects)}
    wanted = {at for at, kind in types_of.items() if any(base in kinds for base in mro_of(kind))}
    return [one for one in objects if id(type(one)) in wanted]


def _known(abstract: ABCMeta) -> list[type]:
    """The virtual subclasses of an abstract class."""
    try:
        from _abc import _get_dump  # type: ignore[import-not-found]  # what abc itself prints them by

        references: Iterable[Any] = _get_dump(abstract)[0]
    except Exception:
        return []
    return [kind for kind in [reference() for reference in references] if kind is not None]


def _weakly_held(rebinder: Rebinder) -> int:
    count, table = 0, rebinder.table
    for holder in _instances(_WEAK):
        data: Any = vars(holder).get("data")
        if is_a(holder, weakref.WeakValueDictionary):
            for key, value in _living(dict.items(data) if is_a(data, dict) else ()):
                if id(value) in table:
                    weakref.WeakValueDictionary.__setitem__(holder, key, table[id(value)])
                    count += 1
            continue
        for one in [reference() for reference in list(data or ())]:
            if id(one) not in table:
                continue
            if is_a(holder, weakref.WeakSet):
                weakref.WeakSet.discard(holder, one)
                weakref.WeakSet.add(holder, table[id(one)])
            else:
                value = weakref.WeakKeyDictionary.pop(holder, one)
                weakref.WeakKeyDictionary.__setitem__(holder, table[id(one)], value)
            count += 1
    return count


def _living(items: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    return [(key, reference()) for key, reference in list(items)]
