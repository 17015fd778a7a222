"""What a client of 64 streams costs, and how late it stamps what arrives: one event loop against threads.

A server in a process of its own sends a token on every stream each 20 ms and writes into it when it did, by the same
clock. Lateness is the client's stamp less that; CPU time is the client process' own. Run it with nothing else running:
``python benchmarks/serving.py``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time

from patchkit.bench.served import client
from patchkit.bench.served.streams import Stream

STEP = 0.02


async def _serve(streams: int, tokens: int) -> None:
    """All streams get their next token in one step, as an engine's do."""
    waiting: list[asyncio.StreamWriter] = []
    done = asyncio.Event()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                await reader.readexactly(length)
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
                )
                waiting.append(writer)
                if len(waiting) == streams:
                    done.set()
        except (asyncio.IncompleteReadError, OSError):
            writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    while True:
        await done.wait()
        done.clear()
        batch = list(waiting)
        waiting.clear()
        at = time.perf_counter()
        for number in range(tokens):
            at += STEP
            await asyncio.sleep(max(0.0, at - time.perf_counter()))
            for writer in batch:
                finish = "length" if number == tokens - 1 else None
                choice = {"text": f"{time.perf_counter():.9f} ", "token_ids": [number], "finish_reason": finish}
                data = b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"
                writer.write(b"%x\r\n%s\r\n" % (len(data), data))
        end = b'data: {"choices": [], "usage": {"completion_tokens": %d}}\n\ndata: [DONE]\n\n' % tokens
        for writer in batch:
            writer.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(end), end))


class _Line(asyncio.Protocol):
    """A stream in one event loop: like the client's threads, it notes what came when, and reads it later."""

    def __init__(self) -> None:
        self.parts: list[tuple[float, bytes]] = []
        self.tail = b""
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        self.parts.append((time.perf_counter(), data))
        text = self.tail + data
        self.tail = text[-16:]
        if b"[DONE]" in text and not self.ended.done():
            self.ended.set_result(None)


def by_loop(port: int, streams: int, tokens: int) -> list[float]:
    """All streams in one event loop."""
    found: list[float] = []

    async def one() -> tuple[float, _Line]:
        transport, line = await asyncio.get_running_loop().create_connection(_Line, "127.0.0.1", port)
        sent = time.perf_counter()
        transport.write(b"POST /v1/completions HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}")
        await line.ended
        transport.abort()
        return sent, line

    async def run() -> None:
        for sent, line in await asyncio.gather(*(one() for _ in range(streams))):
            found.extend(lateness(sent, client.read_stream(line.parts, sent, False)))

    asyncio.run(run())
    return found


def by_threads(port: int, streams: int, tokens: int) -> list[float]:
    """The client of patchkit's own engine: a thread for each stream."""
    server = client.Server(f"http://127.0.0.1:{port}", 60.0)
    made = client.Generation(server, "/v1/completions", [b"{}"] * streams, [0.0] * streams, False)
    made.run(streams)
    found: list[float] = []
    for asked in made.asked:
        assert asked.stream is not None, asked.reason
        found.extend(lateness(asked.sent, asked.stream))
    server.close()
    return found


def lateness(sent: float, stream: Stream) -> list[float]:
    """By how much each piece was stamped after it was written, in seconds."""
    times = [float(text) for text in stream.text]
    return [sent + at - written for (at, _), written in zip(stream.pieces, times, strict=True)]


WAYS = {"loop": by_loop, "threads": by_threads}


def one(way: str, port: int, streams: int, tokens: int) -> None:
    """A measurement in this process; prints CPU seconds and lateness."""
    cpu = time.process_time()
    late = sorted(WAYS[way](port, streams, tokens))
    used = time.process_time() - cpu
    assert len(late) == streams * tokens, len(late)
    print(json.dumps({"cpu": used, "p50": late[len(late) // 2], "p99": late[len(late) * 99 // 100], "max": late[-1]}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", help="also write the numbers there")
    parser.add_argument("--one", choices=[*WAYS, "server"], help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one == "server":
        asyncio.run(_serve(given.streams, given.tokens))
    elif given.one:
        one(given.one, given.port, given.streams, given.tokens)
    else:
        compare(given)


def compare(given: argparse.Namespace) -> None:
    """Both ways by turns, each in a fresh process; medians over the rounds."""
    size = ["--streams", str(given.streams), "--tokens", str(given.tokens)]
    server = subprocess.Popen([sys.executable, __file__, "--one", "server", *size], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    port = server.stdout.readline().strip()
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    try:
        for number in range(given.rounds):
            for way in list(WAYS) if number % 2 == 0 else list(reversed(WAYS)):
                words = [sys.executable, __file__, "--one", way, "--port", port, *size]
                runs[way].append(json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout))
    finally:
        server.kill()
        server.wait()
    result = {way: {key: statistics.median(run[key] for run in them) for key in them[0]} for way, them in runs.items()}
    print(f"{given.streams} streams of {given.tokens} tokens, medians of {given.rounds} rounds; loop / threads:")
    for key in ("cpu", "p50", "p99", "max"):
        name = "CPU time" if key == "cpu" else f"lateness, {key}"
        loop, threads = (result[way][key] for way in ("loop", "threads"))
        print(f"  {name:14} {loop * 1000:9.2f} ms {threads * 1000:9.2f} ms   {loop / threads:6.2f}")
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
