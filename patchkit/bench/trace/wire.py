"""The wire format of protocol buffers, read in place: a message is a span of one ``bytes``, and nothing is copied.

Fields are told by number only; what a number means is the reader's to know. Every span that is yielded lies within the
span that was asked for, so that a file cannot make anybody read outside of it.
"""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, SPAN, FIXED32 = 0, 1, 2, 5
"""The kinds of values (wire types) there are; groups are of the past, and refused."""


class Malformed(ValueError):
    """The bytes are no such message; the text says where."""


def varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """An unsigned number of at most 64 bits, and where the next byte is.

    Raises:
        Malformed: It is cut off at ``end``, or longer than ten bytes.
    """
    value = shift = 0
    start = at
    while at < end:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
        if shift > 63:
            raise Malformed(f"byte {start}: a number of more than ten bytes")
    raise Malformed(f"byte {start}: a number that is cut off")


def fields(data: bytes, start: int, end: int) -> Iterator[tuple[int, int, int, int]]:
    """The fields of the message in ``data[start:end]``, in their order.

    Yields:
        Number, kind, and for a ``SPAN`` its start and end; for the other kinds the value and 0.

    Raises:
        Malformed: A field is cut off, reaches out of the message, or is of no known kind.
    """
    at = start
    while at < end:
        begun = at
        tag = data[at]
        at += 1
        if tag > 0x7F:
            tag, at = varint(data, begun, end)
        kind = tag & 7
        number = tag >> 3
        if not number:
            raise Malformed(f"byte {begun}: a field without a number")
        if kind in (SPAN, VARINT):
            if at >= end:
                raise Malformed(f"byte {begun}: field {number} is cut off")
            value = data[at]
            at += 1
            if value > 0x7F:
                value, at = varint(data, at - 1, end)
            if kind == VARINT:
                yield number, kind, value, 0
                continue
            if value > end - at:
                raise Malformed(f"byte {begun}: field {number} is {value} bytes long, and {end - at} are left")
            yield number, kind, at, at + value
            at += value
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
            if size > end - at:
                raise Malformed(f"byte {begun}: field {number} is cut off")
            yield number, kind, int.from_bytes(data[at : at + size], "little"), 0
            at += size
        else:
            raise Malformed(f"byte {begun}: field {number} is of the unknown kind {kind}")


def skip(data: bytes, at: int, end: int) -> int:
    """Where the field that begins at ``at`` ends.

    Raises:
        Malformed: It is cut off, reaches out of the message, or is of no known kind.
    """
    begun = at
    tag, at = varint(data, at, end)
    kind = tag & 7
    if kind == VARINT:
        _, at = varint(data, at, end)
    elif kind == SPAN:
        size, at = varint(data, at, end)
        at += size
    elif kind in (FIXED32, FIXED64):
        at += 8 if kind == FIXED64 else 4
    if at > end or kind not in (VARINT, SPAN, FIXED32, FIXED64) or tag < 8:
        raise Malformed(f"byte {begun}: a field that reaches out of its message, or of the unknown kind {kind}")
    return at


def text(data: bytes, start: int, end: int, most: int = 1 << 16) -> str:
    """A string; of a longer one than ``most`` bytes that many."""
    return data[start : min(end, start + most)].decode("utf-8", "replace")


def signed(value: int) -> int:
    """A number that was written as a 64-bit two's complement."""
    return value - (1 << 64) if value >> 63 else value
