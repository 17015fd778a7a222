"""``NamedTuple`` at less than half the price of ``typing.NamedTuple``.

That one compiles the text of every annotation when a class is made: the fifty classes that one ``apply`` loads cost as
much as starting Python (benchmarks/startup.py). This one gives the same class body to ``collections.namedtuple``,
which does not read annotations. Type checkers see the one of ``typing``.
"""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:

    class _Maker(type):
        """Makes a tuple class of a class body whose annotations are its fields."""

        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, object]) -> type:
            # As text, by `from __future__ import annotations`: without it Python 3.14 would keep them elsewhere.
            fields = body.pop("__annotations__")
            given = [field for field in fields if field in body]
            bare = next((field for field in list(fields)[-len(given) :] if field not in body), None) if given else None
            if bare is not None:  # namedtuple would give the defaults to the last fields, whichever they are
                raise TypeError(f"{name}: the field {bare} without a default follows {given[0]}, which has one")
            defaults = [body.pop(field) for field in given]
            made = namedtuple(name, fields, defaults=defaults, module=body.pop("__module__"))
            made.__annotations__ = fields
            for key, value in body.items():
                setattr(made, key, value)
            return made

    NamedTuple = type.__new__(_Maker, "NamedTuple", (), {})
