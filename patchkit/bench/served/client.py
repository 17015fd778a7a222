"""Sends requests to an OpenAI-compatible server and times what streams back.

``python -m patchkit.bench.served.client SPECIFICATION RESULT``, both JSON files. It is a process of its own, so that
neither patchkit nor the engine takes its time, and needs nothing but the standard library.

Each request in flight has a thread, which does nothing but wait for bytes and note when they came; they are read when
the generation is over. One event loop costs as much CPU time at 64 streams and stamps a piece later, by a multiple:
what it does for one stream is in the way of all others (benchmarks/serving.py).
"""

from __future__ import annotations

import collections
import contextlib
import gc
import hashlib
import json
import os
import re
import socket
import ssl
import sys
import threading
import time
from array import array
from typing import Any
from urllib.parse import urlsplit

from patchkit.bench.served.streams import Stream, arrivals, body_of, counters_of, judge, summary
from patchkit.bench.served.wire import QUOTED, Answer, Events, Failed
from patchkit.runtime.ledger import read_regular

#: Seconds that a kept connection may take for the end of the answer before.
DRAIN = 0.25
#: The share of tokens whose time must be known for a time between tokens to be told at all.
KNOWN = 0.8
#: Bytes of answers that are held unread while a generation runs; beyond, each is read when it has ended.
HELD = 256 * 1024 * 1024
#: Requests in flight at most, whatever is asked for.
THREADS = 2048
#: Bytes of a thread's stack.
STACK = 256 * 1024
#: A stream's first bytes: what begins otherwise is an error, or an answer in one piece.
_STREAMED = re.compile(rb"HTTP/1\.1 200 [^\r\n]*\r\n(?:[^\r\n]+\r\n)*?transfer-encoding: *chunked\r\n", re.IGNORECASE)
#: The end of a stream: its last event, or its last chunk. No JSON has such a line in it.
_END = re.compile(rb"\n(?:data: ?\[DONE\]|0\r\n\r\n)")


class Line:
    """One connection, in blocking mode."""

    def __init__(self, server: Server, idle: float) -> None:
        self.socket = socket.create_connection((server.host, server.port), timeout=idle)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if server.tls is not None:
            self.socket = server.tls.wrap_socket(self.socket, server_hostname=server.host)
        self.idle = idle
        self._tail = b""
        self._live: Answer | None = None
        self.used = False

    def exchange(self, request: bytes, parts: list[tuple[float, bytes]]) -> float:
        """Send a request and wait for the end of the answer; ``parts`` gets what comes, with the moment that it came.

        Reading it takes longer than receiving it, so that is left for later.

        Returns:
            When it was sent.
        """
        self.used, self._live, tail = True, None, b""
        sent = time.perf_counter()
        self.socket.sendall(request)
        while True:
            data = self.socket.recv(65536)
            parts.append((time.perf_counter(), data))
            text = tail + data
            self._tail = tail = text[-16:]
            if not data:
                break
            if len(parts) == 1 and not _STREAMED.match(data):
                self._live = Answer()
            if self._live is not None:
                # No stream, so nothing is timed; its end is where its length says.
                self._live.feed(data)
                if self._live.complete:
                    break
            elif _END.search(text) is not None:
                break
        return sent

    def ready(self) -> bool:
        """Whether the answer is over to its last byte, and another request can follow."""
        if not self.used:
            return True
        if self._live is not None:
            return self._live.complete and self._live.reusable
        try:
            self.socket.settimeout(DRAIN)
            while not self._tail.endswith(b"\n0\r\n\r\n"):
                data = self.socket.recv(65536)
                if not data:
                    return False
                self._tail = (self._tail + data)[-16:]
            self.socket.settimeout(self.idle)
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Close it."""
        with contextlib.suppress(OSError):
            self.socket.close()


class Server:
    """Where requests go, and the connections that can be used again."""

    def __init__(self, url: str, idle: float) -> None:
        parts = urlsplit(url)
        self.host = parts.hostname or "127.0.0.1"
        self.tls = ssl.create_default_context() if parts.scheme == "https" else None
        self.port = parts.port or (443 if self.tls else 80)
        self.base = parts.path.rstrip("/").removesuffix("/v1")
        self.name = parts.netloc.rpartition("@")[2]
        self.idle = idle
        self.kept: collections.deque[Line] = collections.deque()
        key = os.environ.get("OPENAI_API_KEY", "")
        self.secret = f"Authorization: Bearer {key}\r\n" if key else ""

    def request(self, method: str, path: str, body: bytes) -> bytes:
        """A request as bytes."""
        head = (
            f"{method} {self.base}{path} HTTP/1.1\r\nHost: {self.name}\r\nContent-Type: application/json\r\n"
            f"Accept: */*\r\n{self.secret}Content-Length: {len(body)}\r\n\r\n"
        )
        return head.encode("latin-1") + body

    def take(self) -> Line:
        """A connection on which nothing is under way."""
        while True:
            try:
                line = self.kept.pop()
            except IndexError:
                return Line(self, self.idle)
            if line.ready():
                return line
            line.close()

    def get(self, path: str, method: str = "GET", patience: float = 30.0) -> tuple[int, bytes]:
        """Status and body of a plain request, on a connection of its own, within some seconds."""
        parts: list[tuple[float, bytes]] = []
        line, answer = Line(self, patience), Answer()
        try:
            line.exchange(self.request(method, path, b""), parts)
        finally:
            line.close()
        body = b"".join([answer.feed(data) for _, data in parts])
        return answer.status, body

    def close(self) -> None:
        """Close what is kept."""
        while self.kept:
            self.kept.pop().close()


class Asked:
    """One request: what came of it, unread until :meth:`read`."""

    def __init__(self) -> None:
        self.sent = 0.0
        self.parts: list[tuple[float, bytes]] = []
        self.reason: str | None = None
        self.stream: Stream | None = None

    def ask(self, server: Server, line: Line | None, path: str, body: bytes) -> Line | None:
        """Send it and wait for the end of the answer; the connection, where it can be used again."""
        request = server.request("POST", path, body)
        if line is not None and not line.ready():
            line.close()
            line = None
        try:
            if line is None:
                line = server.take()
            kept = line.used
            try:
                self.sent = line.exchange(request, self.parts)
            except ConnectionError:
                if not kept or self.parts:
                    raise
            if kept and not any(data for _, data in self.parts):
                # The server had closed a connection that lay idle, which is no fault of the request.
                line.close()
                self.parts.clear()
                line = Line(server, server.idle)
                self.sent = line.exchange(request, self.parts)
            return line
        except TimeoutError:
            self.reason = f"nothing came for {server.idle:g} s"
        except OSError as error:
            self.reason = f"the connection failed: {error.strerror or error}"
        except Failed as error:
            self.reason = str(error)
        if line is not None:
            line.close()
        return None

    def read(self, chat: bool) -> None:
        """Read what came."""
        if self.reason is None and self.stream is None:
            try:
                self.stream = read_stream(self.parts, self.sent, chat)
            except Failed as error:
                self.reason = str(error)
        self.parts = []


def read_stream(parts: list[tuple[float, bytes]], sent: float, chat: bool) -> Stream:
    """The stream in what came when.

    Raises:
        Failed: It is no whole stream with a token in it.
    """
    answer, events, stream, refused = Answer(), Events(), Stream(chat), b""
    for at, data in parts:
        part = answer.feed(data)
        if answer.status == 200:
            for event in events.feed(part):
                stream.take(event, at - sent)
        elif answer.status:
            refused += part[: 8 * QUOTED]
    judge(answer, stream, refused)
    return stream


class Generation:
    """Requests that are asked by threads, in order, each when it is due."""

    def __init__(self, server: Server, path: str, bodies: list[bytes], due: list[float], chat: bool) -> None:
        self.asked = [Asked() for _ in bodies]
        self.begun = self.ended = 0.0
        self._server, self._path, self._bodies, self._due, self._chat = server, path, bodies, due, chat
        self._next = iter(range(len(bodies)))
        self._lock = threading.Lock()
        self._held = 0
        self._start = threading.Event()

    def run(self, at_once: int) -> None:
        """Ask all, ``at_once`` of them at the same time; connections and threads are there before the first is sent."""
        lines: list[Line | None] = []
        with contextlib.suppress(OSError):  # a request that cannot connect says so itself
            lines.extend(self._server.take() for _ in range(at_once))
        lines += [None] * (at_once - len(lines))
        threads = [threading.Thread(target=self._work, args=(line,), daemon=True) for line in lines]
        before = threading.stack_size(STACK)  # of the threads that are started from here on
        for number, thread in enumerate(threads):
            try:
                thread.start()
            except RuntimeError:
                raise Failed(f"the system has no thread for more than {number} of {at_once} requests") from None
        threading.stack_size(before)
        gc.disable()
        self.begun = self.ended = time.perf_counter()
        self._start.set()
        for thread in threads:
            thread.join()
        gc.enable()
        for asked in self.asked:
            asked.read(self._chat)

    def _work(self, line: Line | None) -> None:
        self._start.wait()
        while True:
            with self._lock:
                index = next(self._next, None)
            if index is None:
                break
            wait = self.begun + self._due[index] - time.perf_counter()
            if wait > 0:
                time.sleep(wait)
            asked = self.asked[index]
            line = asked.ask(self._server, line, self._path, self._bodies[index])
            with self._lock:
                self.ended = max(self.ended, asked.parts[-1][0] if asked.parts else time.perf_counter())
                self._held += sum(len(data) for _, data in asked.parts)
                full = self._held > HELD
            if full:
                asked.read(self._chat)
        if line is not None:
            self._server.kept.append(line)


def generate(server: Server, spec: dict[str, Any], phase: dict[str, Any]) -> None:
    """One generation: fills ``phase`` with what came."""
    chat = spec["endpoint"] == "chat"
    path = "/v1/chat/completions" if chat else "/v1/completions"
    prompts = (spec["prompts"] * spec["batch_mult"])[: phase["requests"]]
    bodies = [json.dumps(body_of(spec, prompt, phase["max_tokens"])).encode() for prompt in prompts]
    due = arrivals(len(bodies), spec["request_rate"] if phase["name"] != "warm-up" else None, spec["arrival_seed"])
    made = Generation(server, path, bodies, due, chat)
    made.run(min(len(bodies), spec["concurrency"] or THREADS, THREADS))
    tell(phase, [asked.stream for asked in made.asked if asked.stream is not None], made.ended - made.begun)
    reasons = [asked.reason for asked in made.asked if asked.reason is not None]
    phase["failed"] = dict(collections.Counter(reasons).most_common(8))
    phase["failed_requests"] = len(reasons)
    late = (asked.sent - made.begun - at for asked, at in zip(made.asked, due, strict=True))
    phase["late"] = round(max(0.0, max(late, default=0.0)), 6)


def tell(phase: dict[str, Any], good: list[Stream], seconds: float) -> None:
    """Fill a phase with the numbers of its streams; the hash is of all requests' tokens in the order of asking."""
    counts = [stream.tokens() for stream in good]
    known = [count for count in counts if count is not None]
    ids = bool(good) and all(stream.has_ids and len(stream.ids) == stream.tokens() for stream in good)
    said: list[Any] = [stream.ids if ids else "".join(stream.text) for stream in good]
    gaps = array("d")
    for stream in good:
        gaps.extend(stream.gaps())
    decoded = sum(count - 1 for count in known if count > 1)
    phase.update(
        seconds=round(seconds, 6),
        answered=len(good),
        tokens=sum(known) if len(known) == len(good) else None,
        hashed="token ids" if ids else "texts",
        tokens_sha256=hashlib.sha256(json.dumps(said).encode("ascii")).hexdigest(),
        ttft=summary([stream.first for stream in good]),
        e2el=summary([stream.last for stream in good]),
        tpot=summary(
            [
                (stream.last - (stream.first or 0.0)) / (count - 1)
                for stream, count in zip(good, counts, strict=True)
                if count is not None and count > 1
            ]
        ),
        # Of a first piece with several tokens, those behind the first have no time of their own.
        itl=summary(gaps) if decoded and len(gaps) >= decoded * KNOWN else None,
        pieces=sum(len(stream.pieces) for stream in good),
    )


def counters(server: Server) -> dict[str, float] | None:
    """The server's counters; None where it has none."""
    try:
        status, body = server.get("/metrics")
    except (OSError, TimeoutError, Failed):
        return None
    return counters_of(body.decode("utf-8", "replace")) if status == 200 else None


def profile(server: Server, path: str) -> None:
    """Begin or end the trace; the end writes it, which takes its time.

    Raises:
        Failed: The server does not.
    """
    status, _ = server.get(path, "POST", server.idle)
    if status != 200:
        raise Failed(f"{path} is answered with HTTP {status}, so there is no trace")


def measure(spec: dict[str, Any], result: dict[str, Any], progress: str) -> None:
    """Warm up, then generate as often as asked; fills ``result`` phase by phase."""
    server = Server(spec["url"], spec["idle"])
    requests = len(spec["prompts"]) * spec["batch_mult"]
    warm = min(requests, spec["concurrency"] or requests)
    plan = [("warm-up", 0, warm, min(spec["max_tokens"], spec["warm_tokens"]))]
    plan += [("main", repeat, requests, spec["max_tokens"]) for repeat in range(spec["repeats"])]
    try:
        for name, repeat, count, max_tokens in plan:
            write(progress, f"{name} {repeat + 1} of {spec['repeats']}" if name == "main" else name)
            phase: dict[str, Any] = {"name": name, "repeat": repeat, "requests": count, "max_tokens": max_tokens}
            result["phases"].append(phase)
            if name == "main" and repeat == 0 and spec["profile"]:
                profile(server, "/start_profile")
            if spec["reset"]:
                phase["reset"] = server.get("/reset_prefix_cache", "POST")[0] == 200
            phase["counters"] = [counters(server), None]
            phase["log"] = [size_of(spec["log"]), None]
            generate(server, spec, phase)
            phase["counters"][1] = counters(server)
            phase["log"][1] = size_of(spec["log"])
            if not phase["answered"]:
                break
        if spec["profile"]:
            profile(server, "/stop_profile")
    finally:
        server.close()


def size_of(path: str | None) -> int | None:
    """The bytes of the log so far: what it gains in a phase was said in that phase."""
    try:
        return None if path is None else os.stat(path).st_size
    except OSError:
        return None


def write(path: str, text: str) -> None:
    """Write a file whole."""
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(f"{path}.new", path)


def raise_limit() -> None:
    """Allow as many open connections as the system lets this user have."""
    try:
        import resource
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (ValueError, OSError):
            return


def main(specification: str, target: str) -> int:
    """Do what the file ``specification`` says and write the result to ``target``."""
    spec = json.loads(read_regular(specification))
    raise_limit()
    result: dict[str, Any] = {"schema": 1, "phases": [], "error": None}
    begun, cpu = time.perf_counter(), time.process_time()
    try:
        measure(spec, result, spec["progress"])
    except (OSError, TimeoutError, Failed) as error:
        result["error"] = f"{type(error).__name__}: {error}"
    result["client_cpu"] = round((time.process_time() - cpu) / max(time.perf_counter() - begun, 1e-9), 4)
    write(target, json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
