"""Reading one trace file: its bytes, unpacked within limits, by the reader that its content asks for."""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import IO

from patchkit.bench.trace.data import Trace
from patchkit.bench.trace.events import Tick
from patchkit.bench.trace.jsontrace import parse_json_trace
from patchkit.bench.trace.wire import Malformed
from patchkit.bench.trace.xplane import parse_xplane
from patchkit.errors import UsageError
from patchkit.runtime.ledger import open_regular

MOST_BYTES = 1 << 30
"""Of a trace, unpacked: an ``.xplane.pb`` is held in memory whole."""
_PIECE = 1 << 20
_GZIP = b"\x1f\x8b"


def read_trace(path: str, tick: Tick | None = None, *, most: int = MOST_BYTES) -> Trace:
    """Read an ``.xplane.pb`` or a ``.trace.json``, packed or not, which its first bytes tell.

    Args:
        path: The file.
        tick: Called now and then, with bytes done and bytes in all.
        most: Bytes that it may have, unpacked.

    Raises:
        UsageError: ``no-trace``: it cannot be read. ``trace``: it is none, is cut off, or is too large.
    """
    try:
        with open_regular(path) as file:
            begin = file.read(2)
            file.seek(0)
            packed = begin == _GZIP
            pieces: Iterator[bytes] = _limited(_unpacked(file) if packed else _pieces(file), most, tick)
            if packed:
                begin = next(pieces, b"")
                pieces = chain([begin], pieces)
            if begin[:1] in (b"{", b""):
                return parse_json_trace(_texts(pieces), path)
            # At once where that can be: joining pieces holds all of it twice.
            data = b"".join(pieces) if packed else file.read(most + 1)
            if len(data) > most:
                raise Malformed(_too_large(most))
        return parse_xplane(data, path, tick)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror or error}",
            code="no-trace",
            hint="name a trace file, or the folder that the profiler wrote to",
            details={"path": path},
        ) from None
    except (Malformed, zlib.error) as error:
        raise UsageError(
            f"{path} is no trace that can be read: {error}",
            code="trace",
            hint="a trace that was cut off, as by an engine that was killed, is to be made again",
            details={"path": path, "reason": str(error)},
        ) from None


def _too_large(most: int) -> str:
    return f"it is larger than {most >> 20} MiB; trace fewer steps"


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        yield piece


def _unpacked(file: IO[bytes]) -> Iterator[bytes]:
    """The content of a gzip file, in pieces: what a small file unpacks to is not small of itself."""
    unpacker = zlib.decompressobj(wbits=31)
    packed = b""
    while True:
        if not packed:
            packed = file.read(_PIECE)
            if not packed:
                break
        if unpacker.eof:  # another member follows
            unpacker = zlib.decompressobj(wbits=31)
        piece = unpacker.decompress(packed, _PIECE)
        packed = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
        if piece:
            yield piece
    while piece := unpacker.decompress(b"", _PIECE):  # what it still held back
        yield piece
    if not unpacker.eof:
        raise Malformed("the packed data are cut off")


def _limited(pieces: Iterator[bytes], most: int, tick: Tick | None) -> Iterator[bytes]:
    done = 0
    for piece in pieces:
        done += len(piece)
        if done > most:
            raise Malformed(_too_large(most))
        if tick is not None:
            tick(done, 0)
        yield piece


def _texts(pieces: Iterable[bytes]) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for piece in pieces:
        yield decoder.decode(piece)
