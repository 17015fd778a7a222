"""What is asked of a server, and what one request got: tokens with their times, and numbers over many; pure."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

from patchkit.bench.served.wire import QUOTED, Answer, Failed, words_of

#: Of the counters of vLLM's ``/metrics``, those that are read before and after each phase; summed over engines.
COUNTERS = (
    "vllm:prefix_cache_queries_total",
    "vllm:prefix_cache_hits_total",
    "vllm:spec_decode_num_draft_tokens_total",
    "vllm:spec_decode_num_accepted_tokens_total",
)


class Stream:
    """What one request got: times in seconds from its sending, tokens, and how it ended."""

    def __init__(self, chat: bool) -> None:
        self.chat = chat
        self.first: float | None = None
        self.last = 0.0
        self.pieces: list[tuple[float, int]] = []
        self.text: list[str] = []
        self.ids: list[int] = []
        self.has_ids = False
        self.usage: dict[str, Any] | None = None
        self.finished = self.done = False

    def take(self, data: bytes, at: float) -> None:
        """One event that arrived at ``at``.

        A first token is the first piece that has text or token ids: a piece with only a role is none.
        """
        if data == b"[DONE]":
            self.done = True
            return
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            raise Failed(f"the stream has what is no JSON: {data[:QUOTED].decode('utf-8', 'replace')!r}") from None
        choices = event.get("choices") or [] if isinstance(event, dict) else None
        if not isinstance(choices, list) or not all(isinstance(one, dict) for one in choices):
            raise Failed(f"the stream has what is no event of OpenAI's: {data[:QUOTED].decode('utf-8', 'replace')!r}")
        if event.get("error") is not None:
            raise Failed(f"the server's error in the stream: {words_of(event)}")
        if isinstance(event.get("usage"), dict):
            self.usage = event["usage"]
        for choice in choices:
            ids = choice.get("token_ids")
            delta = choice.get("delta")
            if self.chat and isinstance(delta, dict):
                text = "".join(str(delta.get(key) or "") for key in ("reasoning", "reasoning_content", "content"))
            else:
                text = str(choice.get("text") or "")
            if isinstance(ids, list):
                self.has_ids = True
                self.ids += ids
            if text or ids:
                if self.first is None:
                    self.first = at
                self.last = at
                self.pieces.append((at, len(ids) if isinstance(ids, list) else 0))
                self.text.append(text)
            if choice.get("finish_reason") is not None:
                self.finished = True

    def tokens(self) -> int | None:
        """Output tokens by the server's count (never the number of pieces); by their ids where it gives none."""
        count = (self.usage or {}).get("completion_tokens")
        if isinstance(count, int):
            return count
        return len(self.ids) if self.has_ids else None

    def gaps(self) -> Iterator[float]:
        """Seconds between tokens: a piece of several counts as so many equal ones; none where that is not known."""
        whole = self.has_ids and len(self.ids) == self.tokens()
        if not whole and len(self.pieces) != self.tokens():
            return
        for (before, _), (at, count) in zip(self.pieces, self.pieces[1:], strict=False):
            for _ in range(count or 1):
                yield (at - before) / (count or 1)


def percentile(ordered: Any, share: float) -> float:
    """Of sorted numbers, between the two nearest ones in proportion (as numpy's default)."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return float(ordered[below] + (ordered[above] - ordered[below]) * (place - below))


def summary(values: Any) -> dict[str, float] | None:
    """Percentiles of some numbers; None of none."""
    if not values:
        return None
    ordered = sorted(values)
    return {"p50": percentile(ordered, 0.5), "p90": percentile(ordered, 0.9), "p99": percentile(ordered, 0.99)}


def arrivals(count: int, rate: float | None, seed: int) -> list[float]:
    """When each request is due, in seconds: all at once, or a Poisson process that is the same for one seed."""
    if rate is None:
        return [0.0] * count
    draw, at, due = random.Random(seed), 0.0, []
    for _ in range(count):
        due.append(at)
        at += draw.expovariate(rate)
    return due


def counters_of(text: str) -> dict[str, float]:
    """The counters of :data:`COUNTERS` in Prometheus' text, each summed over its labels."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        name = line.partition("{")[0].partition(" ")[0]
        if name in COUNTERS:
            try:
                found[name] = found.get(name, 0.0) + float(line.rpartition(" ")[2])
            except ValueError:
                continue
    return found


def body_of(spec: dict[str, Any], prompt: Any, max_tokens: int) -> dict[str, Any]:
    """The body of a request: everything that decides the tokens is in it, and what is None is left to the server."""
    chat = spec["endpoint"] == "chat"
    body: dict[str, Any] = {"model": spec["model"], "max_tokens": max_tokens, "stream": True}
    body["stream_options"] = {"include_usage": True}
    if chat:
        body["messages"] = [{"role": "user", "content": prompt}]
    else:
        body["prompt"] = prompt
    body |= {name: value for name, value in spec["sampling"].items() if value is not None}
    if chat and "logprobs" in body:
        body |= {"logprobs": True, "top_logprobs": body["logprobs"]}
    if spec["ignore_eos"]:
        body["ignore_eos"] = True
    if spec["token_ids"]:
        body["return_token_ids"] = True
    return body


def judge(answer: Answer, stream: Stream, refused: bytes) -> None:
    """Raise where an answer that has ended is no whole stream with a token in it."""
    if not answer.status:
        raise Failed("the connection ended before an answer")
    if answer.status != 200:
        try:
            said = words_of(json.loads(refused))
        except ValueError:
            said = refused[:QUOTED].decode("utf-8", "replace")
        raise Failed(f"HTTP {answer.status}: {said}".rstrip(": "))
    if not (stream.done or (stream.finished and (answer.complete or not answer.reusable))):
        kind = answer.headers.get("content-type", "")
        if "event-stream" not in kind and not stream.pieces:
            raise Failed(f"the answer is no stream of events but {kind or 'of no type'}")
        raise Failed(f"the stream ended early, after {len(stream.pieces)} pieces")
    if stream.first is None:
        raise Failed("the stream has no token")
