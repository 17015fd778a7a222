"""Bytes of a connection, in whatever pieces they come."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.bench.served.wire import HEAD, Answer, Events, Failed, words_of

HEADERS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


def fed(parts: list[bytes]) -> tuple[Answer, bytes]:
    answer, body = Answer(), b""
    for part in parts:
        body += answer.feed(part)
    return answer, body


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[begin:end] for begin, end in itertools.pairwise(edges)]


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=6), st.lists(st.integers(0, 10_000), max_size=12))
def test_chunks_cut_anywhere(chunks: list[bytes], places: list[int]) -> None:
    data = HEADERS + b"".join(b"%X;x=1\r\n%s\r\n" % (len(one), one) for one in chunks) + b"0\r\nTrailer: x\r\n\r\n"
    answer, body = fed(cut(data, places))
    assert (answer.status, body, answer.complete, answer.reusable) == (200, b"".join(chunks), True, True)


@given(st.binary(max_size=60), st.lists(st.integers(0, 10_000), max_size=6))
def test_a_body_of_known_length_cut_anywhere(content: bytes, places: list[int]) -> None:
    data = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 500 No\r\ncontent-length: %d\r\n\r\n%s" % (len(content), content)
    answer, body = fed(cut(data, places))
    assert (answer.status, body, answer.complete) == (500, content, True)


def test_a_body_up_to_the_end_of_the_connection() -> None:
    answer, body = fed([b"HTTP/1.0 200 OK\r\n\r\nab", b"cd"])
    assert (body, answer.complete, answer.reusable) == (b"abcd", False, False)


def test_a_connection_that_the_server_closes() -> None:
    answer, _ = fed([b"HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 0\r\n\r\n"])
    assert answer.complete
    assert not answer.reusable


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"SSH-2.0-x\r\n\r\n", "the answer is no HTTP: 'SSH-2.0-x'"),
        (b"x" * (HEAD + 1), "the answer has no end of its head"),
        (HEADERS + b"zz\r\n", "the answer's chunks have no sizes"),
    ],
)
def test_what_is_no_answer(data: bytes, message: str) -> None:
    with pytest.raises(Failed, match=re.escape(message)):
        fed([data])


@given(
    st.lists(st.text(st.characters(blacklist_characters="\r\n", codec="utf-8")), max_size=5),
    st.integers(0, 10_000),
    st.sampled_from(["\n", "\r\n"]),
)
def test_events_cut_anywhere(texts: list[str], place: int, newline: str) -> None:
    end = newline.encode()
    data = b": a comment" + end + b"".join(b"event: x%sdata: %s%s%s" % (end, one.encode(), end, end) for one in texts)
    events = Events()
    found = [event for part in cut(data, [place]) for event in events.feed(part)]
    assert found == [one.encode() for one in texts]


def test_an_event_of_several_lines_and_one_that_is_cut_off() -> None:
    events = Events()
    assert list(events.feed(b"data:a\ndata: b\n\ndata: cut")) == [b"a\nb"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"error": {"message": "no", "code": 1}}, "no"),
        ({"error": "no"}, "no"),
        ({"detail": "Not Found"}, "Not Found"),
        ({"message": "no"}, "no"),
        ([1], "[1]"),
        ({"error": {"message": "x" * 999}}, "x" * 200),
    ],
)
def test_what_a_server_says_of_an_error(value: object, words: str) -> None:
    assert words_of(value) == words
