"""The cheap ``NamedTuple`` is one like that of ``typing``."""

from __future__ import annotations

import pickle
import typing

import pytest

from patchkit.tuples import NamedTuple


class Cheap(NamedTuple):
    """A document."""

    name: str
    size: int = 1

    @property
    def double(self) -> int:
        """Twice the size."""
        return self.size * 2

    @classmethod
    def of(cls, name: str) -> Cheap:
        """From a name."""
        return cls(name)


class Costly(typing.NamedTuple):
    """A document."""

    name: str
    size: int = 1


def test_fields_defaults_and_names_are_those_of_typing() -> None:
    assert Cheap._fields == Costly._fields
    assert Cheap._field_defaults == Costly._field_defaults
    assert Cheap.__doc__ == Costly.__doc__
    assert Cheap.__module__ == Costly.__module__
    assert typing.get_type_hints(Cheap) == typing.get_type_hints(Costly)
    assert repr(Cheap("a")) == "Cheap(name='a', size=1)"


def test_a_value_is_a_tuple_with_methods() -> None:
    value = Cheap.of("a")
    assert value == ("a", 1)
    assert value.double == 2
    assert value._replace(size=3).double == 6
    assert pickle.loads(pickle.dumps(value)) == value


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(TypeError, match="size"):
        Cheap("a", 1, size=2)  # type: ignore[misc]


def test_a_field_without_a_default_may_not_follow_one_with() -> None:
    with pytest.raises(TypeError, match="Wrong: the field last without a default follows first, which has one"):

        class Wrong(NamedTuple):  # type: ignore[misc]
            first: int = 1
            middle: int = 2
            last: int  # type: ignore[misc]
