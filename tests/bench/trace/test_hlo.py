"""What a compiled program says of its instructions, in the forms that releases of jax have written."""

from __future__ import annotations

import pytest
from support.traces import message, number, varint

from patchkit.bench.trace.hlo import Described, describe, shape_of

F32, BF16, TUPLE, S32, PRED = 11, 16, 13, 4, 1


def shape(element: int, *sizes: int, packed: bool = True) -> bytes:
    if packed:
        return number(2, element) + message(3, b"".join(map(varint, sizes)))
    return number(2, element) + b"".join(number(3, size) for size in sizes)


def instruction(name: str, metadata: bytes) -> bytes:
    return message(1, name) + message(2, "fusion") + message(3, shape(F32, 512, 8)) + message(7, metadata)


def module(*instructions: bytes, more: bytes = b"") -> bytes:
    computation = message(1, "main") + b"".join(message(2, one) for one in instructions)
    return message(1, message(1, "jit_step") + message(3, computation) + more)


def described(data: bytes, *names: str) -> dict[str, Described]:
    name, found = describe(data, 0, len(data), names)
    assert name == "jit_step"
    return found


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (shape(F32, 512, 256000), "f32[512,256000]"),
        (shape(BF16, 8, packed=False), "bf16[8]"),
        (shape(PRED), "pred[]"),
        (number(2, TUPLE) + message(4, shape(F32, 2)) + message(4, shape(S32)), "(f32[2], s32[])"),
        (number(2, TUPLE), "()"),
        (shape(99, 2), "type99[2]"),
        (shape(F32, 2) + message(5, b"\x0a\x01\x00"), "f32[2]"),
    ],
)
def test_shapes(data: bytes, expected: str) -> None:
    assert shape_of(data, 0, len(data)) == expected


def test_a_source_beside_the_instruction() -> None:
    metadata = message(2, "jit(step)/mul") + message(3, "model.py") + number(4, 12)
    found = described(module(instruction("a.1", metadata), instruction("b.1", b"")), "a.1")
    assert found == {"a.1": Described("f32[512,8]", "fusion", "jit(step)/mul", "model.py:12")}


def test_a_source_in_the_index_of_stack_frames() -> None:
    """Each part is counted from 1: the frame names a location, the location a file and a line."""
    index = message(1, "other.py") + message(1, "model.py")
    index += message(3, number(1, 1) + number(3, 1)) + message(3, number(1, 2) + number(3, 12))
    index += message(4, number(1, 1)) + message(4, number(1, 2))
    instructions = [instruction(f"a.{frame}", number(15, frame)) for frame in (0, 1, 2, 3)]
    found = described(module(*instructions, more=message(17, index)), *(f"a.{frame}" for frame in range(4)))
    assert [found[f"a.{frame}"].source for frame in range(4)] == ["", "other.py:1", "model.py:12", ""]


def test_an_index_that_is_not_there() -> None:
    assert described(module(instruction("a.1", number(15, 1))), "a.1")["a.1"].source == ""


def test_an_empty_program() -> None:
    assert describe(b"", 0, 0, ["a"]) == ("", {})
