"""HTTP/1.1 answers and server-sent events out of the bytes of a connection, as they come; pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

#: Characters of a server's own words in the reason of a failed request.
QUOTED = 200
#: Bytes of the head of an answer at most.
HEAD = 65536


class Failed(Exception):
    """A request failed, for the reason that it says."""


class Answer:
    """One HTTP answer out of the bytes of a connection, as they come: status, headers and the pieces of its body."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.complete = False
        self._buffer = bytearray()
        self._chunked = False
        self._left: int | None = None
        self._state = "head"

    @property
    def reusable(self) -> bool:
        """Whether another request can be sent on the connection once this is complete."""
        return self._left is not None and self.headers.get("connection", "").lower() != "close"

    def feed(self, data: bytes) -> bytes:
        """Take what was read; returns what it adds to the body."""
        self._buffer += data
        if self._state == "head" and not self._read_head():
            return b""
        if self._chunked:
            return self._read_chunks()
        return self._read_plain()

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > HEAD:
                raise Failed("the answer has no end of its head")
            return False
        lines = self._buffer[:end].decode("latin-1").split("\r\n")
        del self._buffer[: end + 4]
        words = lines[0].split(" ", 2)
        if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdigit():
            raise Failed(f"the answer is no HTTP: {lines[0][:QUOTED]!r}")
        self.status = int(words[1])
        if 100 <= self.status < 200:
            return self._read_head()
        for line in lines[1:]:
            name, _, value = line.partition(":")
            self.headers[name.strip().lower()] = value.strip()
        self._chunked = "chunked" in self.headers.get("transfer-encoding", "").lower()
        length = self.headers.get("content-length", "")
        if self._chunked:
            self._left, self._state = 0, "size"
        else:
            self._left, self._state = (int(length) if length.isdigit() else None), "body"
        return True

    def _read_plain(self) -> bytes:
        if self._left is None:
            part = bytes(self._buffer)
        else:
            part = bytes(self._buffer[: self._left])
            self._left -= len(part)
            self.complete = self._left == 0
        self._buffer.clear()
        return part

    def _read_chunks(self) -> bytes:
        parts, at, buffer = [], 0, self._buffer
        while not self.complete:
            if self._state == "size":
                end = buffer.find(b"\r\n", at)
                if end < 0:
                    break
                try:
                    size = int(buffer[at:end].split(b";")[0], 16)
                except ValueError:
                    raise Failed("the answer's chunks have no sizes") from None
                at, self._left = end + 2, size
                self._state = "data" if size else "trailer"
            elif self._state == "data":
                assert self._left is not None
                part = bytes(buffer[at : at + self._left])
                parts.append(part)
                at += len(part)
                self._left -= len(part)
                if self._left:
                    break
                self._state = "end"
            elif self._state == "end":
                if len(buffer) - at < 2:
                    break
                at, self._state = at + 2, "size"
            else:
                end = buffer.find(b"\r\n", at)
                if end < 0:
                    break
                self.complete = end == at
                at, self._left = end + 2, 0
        del buffer[:at]
        return b"".join(parts)


class Events:
    """The data of server-sent events, out of a body as it comes."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, body: bytes) -> Iterator[bytes]:
        """The data of each event that ended; comments and other fields are passed over."""
        lines = (self._rest + body).split(b"\n")
        self._rest = lines.pop()
        for raw in lines:
            line = raw.rstrip(b"\r")
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                yield b"\n".join(self._data)
                self._data.clear()


def words_of(value: Any) -> str:
    """What an error object of a server says, cut short."""
    error = value.get("error", value) if isinstance(value, dict) else value
    if isinstance(error, dict):
        error = error.get("message") or error.get("detail") or error
    return str(error)[:QUOTED]
