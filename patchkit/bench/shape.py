"""Shapes of JSON values: what reads them back into records refuses by name of the key, and is the JSON Schema too."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

#: Between these lies whatever is measured in any unit; ratios, sums and squares of such numbers are finite.
LEAST, MOST = 1e-60, 1e60
_NAMES = {str: "string", int: "integer", bool: "boolean"}


class Shape(ABC):
    """What a JSON value must be."""

    @abstractmethod
    def read(self, where: str, value: Any) -> Any:
        """The value as the program has it.

        Raises:
            ValueError: It is of another shape; the message begins with ``where``.
        """

    @abstractmethod
    def schema(self) -> dict[str, Any]:
        """The JSON Schema."""


class Of(Shape):
    """A string, whole number or truth value."""

    def __init__(self, kind: type) -> None:
        self.kind = kind

    def read(self, where: str, value: Any) -> Any:
        """As it is."""
        if not isinstance(value, self.kind) or (self.kind is int and isinstance(value, bool)):
            raise ValueError(f"{where}: {shown(value)} is no {_NAMES[self.kind]}")
        return value

    def schema(self) -> dict[str, Any]:
        """By its type."""
        return {"type": _NAMES[self.kind]}


class Number(Shape):
    """A finite number; read as a ``float``."""

    def read(self, where: str, value: Any) -> float:
        """As a float."""
        # Of an int beyond the floats, isfinite itself would raise.
        if isinstance(value, bool) or not isinstance(value, int | float) or not -1e308 < value < 1e308:
            raise ValueError(f"{where}: {shown(value)} is no finite number")
        return float(value)

    def schema(self) -> dict[str, Any]:
        """By its type."""
        return {"type": "number"}


class Quantity(Number):
    """What was measured: a number that can be divided by another without leaving what a float holds."""

    def read(self, where: str, value: Any) -> float:
        """As a float."""
        number = super().read(where, value)
        if not measurable(number):
            raise ValueError(f"{where}: {shown(value)} is not between {LEAST:g} and {MOST:g}, so it measures nothing")
        return number


class Word(Shape):
    """One of some words."""

    def __init__(self, *words: str) -> None:
        self.words = words

    def read(self, where: str, value: Any) -> str:
        """As it is."""
        if not isinstance(value, str) or value not in self.words:
            raise ValueError(f"{where}: {shown(value)} is none of {', '.join(self.words)}")
        return value

    def schema(self) -> dict[str, Any]:
        """The words."""
        return {"enum": list(self.words)}


class Maybe(Shape):
    """The shape, or null."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def read(self, where: str, value: Any) -> Any:
        """As the shape reads it; null is None."""
        return None if value is None else self.shape.read(where, value)

    def schema(self) -> dict[str, Any]:
        """Either."""
        return {"anyOf": [self.shape.schema(), {"type": "null"}]}


class Each(Shape):
    """An array of the shape; read as a tuple."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def read(self, where: str, value: Any) -> tuple[Any, ...]:
        """Its items."""
        if not isinstance(value, list | tuple):
            raise ValueError(f"{where}: an array is expected")
        return tuple(self.shape.read(f"{where}[{at}]", item) for at, item in enumerate(value))

    def schema(self) -> dict[str, Any]:
        """An array."""
        return {"type": "array", "items": self.shape.schema()}


class Table(Shape):
    """An object whose keys are anybody's, with values of the shape."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def read(self, where: str, value: Any) -> dict[str, Any]:
        """Its values by key."""
        if not isinstance(value, Mapping):
            raise ValueError(f"{where}: an object is expected")
        return {str(key): self.shape.read(f"{where}.{key}", item) for key, item in value.items()}

    def schema(self) -> dict[str, Any]:
        """An object."""
        return {"type": "object", "additionalProperties": self.shape.schema()}


class Anything(Shape):
    """Any JSON value."""

    def read(self, where: str, value: Any) -> Any:
        """As it is."""
        return value

    def schema(self) -> dict[str, Any]:
        """No limit."""
        return {}


class Record(Shape):
    """An object with the fields of a named tuple, no others; those with a default may be left out."""

    def __init__(self, kind: Any, fields: Mapping[str, Shape]) -> None:
        assert tuple(fields) == kind._fields, kind
        self.kind, self.fields = kind, fields

    def read(self, where: str, value: Any) -> Any:
        """The named tuple."""
        if not isinstance(value, Mapping):
            raise ValueError(f"{where}: an object is expected")
        for name in value:
            if name not in self.fields:
                raise ValueError(f"{where}: unknown key {shown(name)}")
        for name in self.fields:
            if name not in value and name not in self.kind._field_defaults:
                raise ValueError(f"{where}: {name!r} is missing")
        return self.kind(**{name: self.fields[name].read(f"{where}.{name}", item) for name, item in value.items()})

    def schema(self) -> dict[str, Any]:
        """An object; the first paragraph of the type's docstring describes it."""
        return {
            "type": "object",
            "description": " ".join((self.kind.__doc__ or "").split("\n\n")[0].split()),
            "properties": {name: shape.schema() for name, shape in self.fields.items()},
            "required": [name for name in self.fields if name not in self.kind._field_defaults],
            "additionalProperties": False,
        }


def measurable(number: float) -> bool:
    """Whether a number can have been measured: it is zero, or neither too small nor too large to be divided."""
    return number == 0 or LEAST <= abs(number) <= MOST


def shown(value: Any) -> str:
    """A JSON value as messages quote it: not all of a long one."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def plain(value: Any) -> Any:
    """Records, tuples and mappings as JSON values.

    Raises:
        ValueError: A number is not finite: JSON has none such.
    """
    if hasattr(value, "_asdict"):
        return {name: plain(item) for name, item in value._asdict().items()}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{value} is no JSON number")
    return value
