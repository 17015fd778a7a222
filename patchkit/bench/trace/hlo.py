"""What a compiled program's protocol buffer says of its instructions: shape, opcode, scope, source."""

from __future__ import annotations

import re
from collections.abc import Collection

from patchkit.bench.trace.wire import SPAN, VARINT, Malformed, fields, text, varint
from patchkit.tuples import NamedTuple

#: PrimitiveType of xla_data.proto, by number.
_TYPES = re.findall(
    r"\w+",
    "invalid pred s8 s16 s32 s64 u8 u16 u32 u64 f16 f32 f64 tuple opaque c64 bf16 token c128 f8e5m2 f8e4m3fn s4 u4 "
    "f8e4m3b11fnuz f8e5m2fnuz f8e4m3fnuz s2 u2 f8e4m3 f8e3m4 s1 u1 f4e2m1fn f8e8m0fnu buffer",
)
_TUPLE = _TYPES.index("tuple")
#: How deep tuples of tuples may be, and how many arrays one may have.
_DEEPEST = 20
_MOST_ARRAYS = 1000


class Described(NamedTuple):
    """What is known of an instruction."""

    shape: str
    opcode: str
    scope: str
    source: str


def describe(data: bytes, start: int, end: int, wanted: Collection[str]) -> tuple[str, dict[str, Described]]:
    """The name of the program in an ``HloProto``, and its ``wanted`` instructions.

    Raises:
        Malformed: The bytes are no such message.
    """
    for number, kind, at, stop in fields(data, start, end):
        if number == 1 and kind == SPAN:
            return _module(data, at, stop, wanted)
    return "", {}


def _module(data: bytes, start: int, end: int, wanted: Collection[str]) -> tuple[str, dict[str, Described]]:
    name = ""
    computations: list[tuple[int, int]] = []
    frames = (0, 0)
    for number, kind, at, stop in fields(data, start, end):
        if kind != SPAN:
            continue
        if number == 1:
            name = text(data, at, stop)
        elif number == 3:
            computations.append((at, stop))
        elif number == 17:
            frames = (at, stop)
    sources = _Sources(data, *frames)
    found: dict[str, Described] = {}
    for begin, close in computations:
        for number, kind, at, stop in fields(data, begin, close):
            if number == 2 and kind == SPAN:
                _instruction(data, at, stop, wanted, sources, found)
    return name, found


def _instruction(
    data: bytes, start: int, end: int, wanted: Collection[str], sources: _Sources, found: dict[str, Described]
) -> None:
    opcode = shape = scope = source = ""
    name: str | None = None
    for number, kind, at, stop in fields(data, start, end):
        if kind != SPAN:
            continue
        if number == 1:
            name = text(data, at, stop)
            if name not in wanted:
                return
        elif number == 2:
            opcode = text(data, at, stop)
        elif number == 3:
            shape = shape_of(data, at, stop)
        elif number == 7:
            scope, source = _metadata(data, at, stop, sources)
    if name is not None:
        found.setdefault(name, Described(shape, opcode, scope, source))


def _metadata(data: bytes, start: int, end: int, sources: _Sources) -> tuple[str, str]:
    scope = file = ""
    line = frame = 0
    for number, kind, at, stop in fields(data, start, end):
        if number == 2 and kind == SPAN:
            scope = text(data, at, stop)
        elif number == 3 and kind == SPAN:
            file = text(data, at, stop)
        elif number == 4 and kind == VARINT:
            line = at
        elif number == 15 and kind == VARINT:
            frame = at
    return scope, f"{file}:{line}" if file else sources.of(frame)


def shape_of(data: bytes, start: int, end: int, depth: int = 0) -> str:
    """A ``ShapeProto`` as ``f32[8,128]`` or ``(f32[8], s32[])``, without layout.

    Raises:
        Malformed: The bytes are no such message, or tuples are nested too deep.
    """
    if depth > _DEEPEST:
        raise Malformed(f"byte {start}: tuples nested more than {_DEEPEST} deep")
    element = 0
    sizes: list[int] = []
    parts: list[str] = []
    for number, kind, at, stop in fields(data, start, end):
        if number == 2 and kind == VARINT:
            element = at
        elif number == 3 and kind == VARINT:
            sizes.append(at)
        elif number == 3 and kind == SPAN:
            while at < stop and len(sizes) < _MOST_ARRAYS:
                size, at = varint(data, at, stop)
                sizes.append(size)
        elif number == 4 and kind == SPAN and len(parts) < _MOST_ARRAYS:
            parts.append(shape_of(data, at, stop, depth + 1))
    if element == _TUPLE:
        return f"({', '.join(parts)})"
    name = _TYPES[element] if element < len(_TYPES) else f"type{element}"
    return f"{name}[{','.join(map(str, sizes))}]"


class _Sources:
    """The stack frames of a module, which newer releases of jax keep apart from the instructions."""

    def __init__(self, data: bytes, start: int, end: int) -> None:
        self._data, self._span = data, (start, end)
        self._parts: dict[int, list[tuple[int, int]]] | None = None

    def of(self, frame: int) -> str:
        """File and line of a frame, which are counted from 1; empty where there is none."""
        if not frame:
            return ""
        if self._parts is None:
            self._parts = {1: [], 3: [], 4: []}
            for number, kind, at, stop in fields(self._data, *self._span):
                if kind == SPAN and number in self._parts:
                    self._parts[number].append((at, stop))
        location = self._numbers(4, frame).get(1, 0)
        place = self._numbers(3, location)
        names = self._parts[1]
        file = place.get(1, 0)
        return f"{text(self._data, *names[file - 1])}:{place.get(3, 0)}" if 0 < file <= len(names) else ""

    def _numbers(self, part: int, index: int) -> dict[int, int]:
        assert self._parts is not None
        spans = self._parts[part]
        if not 0 < index <= len(spans):
            return {}
        return {number: value for number, kind, value, _ in fields(self._data, *spans[index - 1]) if kind == VARINT}
