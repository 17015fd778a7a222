"""What one request got, by the times at which pieces came."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from patchkit.bench.served.streams import Stream, arrivals, body_of, counters_of, percentile, summary
from patchkit.bench.served.wire import Failed


def stream(*events: tuple[float, Any], chat: bool = False) -> Stream:
    made = Stream(chat)
    for at, event in events:
        made.take(event if isinstance(event, bytes) else json.dumps(event).encode(), at)
    return made


def piece(text: str, ids: list[int] | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"text": text, **({} if ids is None else {"token_ids": ids}), **more}]}


def usage(count: int) -> dict[str, Any]:
    return {"choices": [], "usage": {"completion_tokens": count}}


def test_the_first_token_is_the_first_piece_with_one() -> None:
    made = stream(
        (1.0, piece("")), (2.0, piece("", [])), (3.0, piece("", [5])), (4.0, piece("a", [6])), (9.0, usage(2))
    )
    assert (made.first, made.last) == (3.0, 4.0)
    assert made.ids == [5, 6]
    assert made.tokens() == 2
    assert list(made.gaps()) == [1.0]


def test_chat_with_a_role_and_reasoning_first() -> None:
    role = {"choices": [{"delta": {"role": "assistant", "content": ""}}]}
    thought = {"choices": [{"delta": {"reasoning_content": "hm"}}]}
    made = stream((1.0, role), (2.0, thought), (3.0, {"choices": [{"delta": {"content": "a"}}]}), chat=True)
    assert (made.first, "".join(made.text)) == (2.0, "hma")
    assert made.tokens() is None


def test_usage_counts_and_never_pieces() -> None:
    made = stream((1.0, piece("ab")), (2.0, piece("cd")), (3.0, usage(7)), (3.0, b"[DONE]"))
    assert made.tokens() == 7
    assert made.done
    assert list(made.gaps()) == []


def test_a_piece_of_several_tokens_counts_as_so_many_gaps() -> None:
    made = stream((1.0, piece("a", [1])), (2.0, piece("bcd", [2, 3, 4])), (2.5, piece("e", [5])), (3.0, usage(5)))
    assert list(made.gaps()) == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0.5])


def test_without_ids_as_many_pieces_as_tokens_have_times() -> None:
    made = stream((1.0, piece("a")), (1.5, piece("b")), (3.0, usage(2)))
    assert list(made.gaps()) == [0.5]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"{", "what is no JSON: '{'"),
        (b"[1]", "what is no event of OpenAI's"),
        (b'{"choices": [1]}', "what is no event of OpenAI's"),
        (b"[" * 100_000, "what is no JSON"),
        (b'{"error": {"message": "dead"}}', "the server's error in the stream: dead"),
    ],
)
def test_what_is_no_event(data: bytes, message: str) -> None:
    with pytest.raises(Failed, match=message):
        stream((1.0, data))


def test_percentiles_are_numpys_default() -> None:
    """Of numpy.percentile([15, 20, 35, 40, 50], [50, 90, 99])."""
    assert summary([50, 15, 40, 20, 35]) == {"p50": 35.0, "p90": pytest.approx(46.0), "p99": pytest.approx(49.6)}
    assert summary([7.0]) == {"p50": 7.0, "p90": 7.0, "p99": 7.0}
    assert summary([]) is None
    assert percentile([0.0, 10.0], 0.25) == 2.5


def test_arrivals_are_a_poisson_process_of_the_seed() -> None:
    assert arrivals(3, None, 1) == [0.0, 0.0, 0.0]
    due = arrivals(2000, 50.0, 1)
    assert due == arrivals(2000, 50.0, 1) != arrivals(2000, 50.0, 2)
    assert due[0] == 0.0
    assert due == sorted(due)
    draw = random.Random(1)
    assert due[1] == draw.expovariate(50.0)
    # 1,999 gaps of 20 ms: their sum has a standard deviation of 0.9 s.
    assert 36 < due[-1] < 44


def test_counters_are_summed_over_engines() -> None:
    text = (
        "# HELP vllm:prefix_cache_hits_total x\n"
        'vllm:prefix_cache_hits_total{engine="0",model_name="a b"} 3.0\n'
        'vllm:prefix_cache_hits_total{engine="1",model_name="a b"} 4.0\n'
        "vllm:prefix_cache_hits_created 9\nvllm:prefix_cache_queries_total 1e3\nvllm:prefix_cache_queries_total odd\n"
        'vllm:external_prefix_cache_hits_total{engine="0"} 99\n'
    )
    assert counters_of(text) == {"vllm:prefix_cache_hits_total": 7.0, "vllm:prefix_cache_queries_total": 1000.0}


def test_the_body_of_a_chat() -> None:
    spec = {
        "endpoint": "chat",
        "model": "m",
        "sampling": {"temperature": 0.0, "top_p": None, "logprobs": 3},
        "ignore_eos": False,
        "token_ids": False,
    }
    assert body_of(spec, "hi", 5) == {
        "model": "m",
        "max_tokens": 5,
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "user", "content": "hi"}],
        "temperature": 0.0,
        "logprobs": True,
        "top_logprobs": 3,
    }
