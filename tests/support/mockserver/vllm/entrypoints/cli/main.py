"""A server that misbehaves as ``MOCK`` says, started as ``vllm serve`` is; for what a real one does not do on request.

``MOCK`` is words with ``=VALUE`` or without, between spaces. Tokens are ``t0 t1 ...``; the prompt decides the first.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time

MODE = dict(word.partition("=")[::2] for word in os.environ.get("MOCK", "").split())
WORDS = sys.argv[sys.argv.index("serve") + 1 :]
BEGUN = time.monotonic()
#: Seconds after which it ends by itself, where what is tested is that somebody ends it and nobody does.
LIFE = 150
ASKED = [0]
#: What is only acknowledged, and the word that makes it unknown.
POSTED = {"/reset_prefix_cache": "no-reset", "/start_profile": "no-profile", "/stop_profile": "no-profile"}


def option(name: str) -> str:
    return WORDS[WORDS.index(name) + 1]


NAMES = WORDS[WORDS.index("--served-model-name") + 1 :][:2]


def log(text: str) -> None:
    print(f"(EngineCore pid={os.getpid()}) {text}", file=sys.stderr, flush=True)


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def event(value: object) -> bytes:
    return chunk(b"data: " + (value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n\n")


def plain(status: int, value: object) -> bytes:
    body = json.dumps(value).encode()
    return b"HTTP/1.1 %d Said\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
        status,
        len(body),
        body,
    )


async def answer(method: str, path: str, body: bytes, writer: asyncio.StreamWriter) -> None:
    if path == "/health":
        ready = "never-ready" not in MODE and time.monotonic() - BEGUN >= float(MODE.get("slow-start", "0"))
        writer.write(plain(200 if ready else 503, {}))
    elif path == "/v1/models":
        names = ["other"] if "wrong-model" in MODE else NAMES
        writer.write(plain(200, {"data": [{"id": name} for name in names]}))
    elif path == "/version" and "not-vllm" not in MODE:
        writer.write(plain(200, {"version": "0"}))
    elif path == "/metrics" and "no-metrics" not in MODE:
        text = f'vllm:prefix_cache_queries_total{{engine="0"}} {ASKED[0] * 10}\n'
        body = (text + f"vllm:prefix_cache_hits_total {ASKED[0] * 4}\n").encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    elif path in POSTED and POSTED[path] not in MODE:
        writer.write(plain(200, {}))
    elif method == "POST" and path.endswith("completions"):
        ASKED[0] += 1
        await complete(json.loads(body), path.endswith("chat/completions"), writer)
    else:
        writer.write(plain(404, {"detail": "Not Found"}))
    await writer.drain()


async def complete(asked: dict, chat: bool, writer: asyncio.StreamWriter) -> None:
    with open(os.path.join(os.environ["MOCK_FOLDER"], "asked.jsonl"), "a", encoding="utf-8") as file:
        file.write(json.dumps(asked) + "\n")
    every = int(MODE.get("status-every", "0"))
    if "status" in MODE or (every and ASKED[0] % every == 0):
        writer.write(plain(int(MODE.get("status", "500")), {"error": {"message": "out of luck", "code": 500}}))
        return
    if "no-stream" in MODE:
        writer.write(plain(200, {"choices": [{"text": "all at once"}]}))
        return
    if ASKED[0] == int(MODE.get("die-at", "-1")):
        log("ValueError: the engine gave up")
        os._exit(7)
    if ASKED[0] == int(MODE.get("compile-at", "-1")):
        log("Finished XLA compilation of jit(sample) in 0.5 sec")
        if os.environ.get("VLLM_XLA_CHECK_RECOMPILATION") == "1":
            log("RuntimeError: JAX compilation occurred but was forbidden in this context")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    if chat or "empty-first" in MODE:
        first = {"delta": {"role": "assistant", "content": ""}} if chat else {"text": "", "token_ids": []}
        writer.write(event({"choices": [first]}))
        await writer.drain()
        await asyncio.sleep(float(MODE.get("first-delay", "0")))
    if "stall" in MODE:
        await asyncio.sleep(LIFE)
    count = max(0, asked["max_tokens"] - int(MODE.get("fewer", "0")))
    prompt = asked["messages"][0]["content"] if chat else asked["prompt"]
    tokens = [(len(prompt) + place + (ASKED[0] if "random" in MODE else 0)) % 100 for place in range(count)]
    size = int(MODE.get("piece", "1"))
    for at in range(0, count, size):
        part = tokens[at : at + size]
        text = "".join(f"t{one} " for one in part)
        choice = {"delta": {"content": text}} if chat else {"text": text}
        if asked.get("return_token_ids") and "no-ids" not in MODE:
            choice["token_ids"] = part
        choice["finish_reason"] = "length" if at + size >= count else None
        writer.write(event({"choices": [choice]}))
        if at >= count // 2:
            if "garbage" in MODE:
                writer.write(event(b"{not json"))
            if "half" in MODE:
                await writer.drain()
                writer.close()
                return
            if "error-in-stream" in MODE:
                writer.write(event({"error": {"message": "the engine died", "code": 500}}))
                break
        await writer.drain()
        await asyncio.sleep(0)
    if "no-usage" not in MODE:
        writer.write(event({"choices": [], "usage": {"prompt_tokens": len(prompt), "completion_tokens": count}}))
    writer.write(event(b"[DONE]"))
    if "open" not in MODE:
        writer.write(b"0\r\n\r\n")
    if "hang-up" in MODE:
        await writer.drain()
        writer.close()


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while not writer.is_closing():
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, path, _ = head[0].split(" ")
            length = [int(line.split(":")[1]) for line in head if line.lower().startswith("content-length")]
            await answer(method, path, await reader.readexactly(length[0]) if length else b"", writer)
    except (asyncio.IncompleteReadError, OSError):
        writer.close()


async def main() -> None:
    log("INFO 12-01 03:13:02 [core.py:114] Initializing a V1 LLM engine (v0) with config: x")
    log("Finished XLA compilation of jit(warm) in 0.5 sec")
    if "die" in MODE:
        log("ValueError: no such device")
        sys.exit(3)
    if "port-taken" in MODE:
        marker = os.path.join(os.environ["MOCK_FOLDER"], "tried")
        if not os.path.exists(marker):
            open(marker, "w").close()
            log("OSError: [Errno 98] Address already in use")
            sys.exit(1)
    if "child" in MODE:
        sleeping = f"import time; time.sleep({LIFE})"
        child = subprocess.Popen([sys.executable, "-c", sleeping], start_new_session=True)
        with open(os.path.join(os.environ["MOCK_FOLDER"], "child"), "w", encoding="ascii") as file:
            file.write(str(child.pid))
    asyncio.get_running_loop().call_later(LIFE, os._exit, 9)
    server = await asyncio.start_server(serve, option("--host"), int(option("--port")), backlog=1024)
    log("init engine (profile, create kv cache, warmup model) took 1.50 s")
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    with open(os.path.join(os.environ["MOCK_FOLDER"], "started"), "w", encoding="ascii") as file:
        file.write(str(os.getpid()))
    asyncio.run(main())
