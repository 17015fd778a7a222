"""Events added up: whatever the order of their fields, by the numbers that were written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from fuzz.runs import runs
from hypothesis import given
from hypothesis import strategies as st
from support.traces import double, message, number

from patchkit.bench.trace.data import Tally
from patchkit.bench.trace.events import encoded, tally_line

OWN = 6
BIG = st.integers(0, 2**63) | st.integers(0, 300)
#: A statistic: its number and value; the value's field says how it is written.
STATISTIC = st.tuples(st.integers(1, 9) | st.just(300), st.sampled_from([2, 3, 4, 5, 7]), BIG)
EVENT = st.fixed_dictionaries(
    {
        "metadata": st.integers(0, 3) | st.just(200),
        "offset": st.none() | BIG,
        "duration": st.none() | BIG,
        "stats": st.lists(STATISTIC, max_size=4),
        "shuffled": st.booleans(),
        "unknown": st.booleans(),
    }
)


def written(event: dict[str, Any], order: Any) -> bytes:
    parts = [number(1, event["metadata"])]
    parts += [number(2, event["offset"])] if event["offset"] is not None else []
    parts += [number(3, event["duration"])] if event["duration"] is not None else []
    for key, kind, value in event["stats"]:
        if kind == 2:
            told = double(2, 1.5)
        else:
            told = message(5, str(value)) if kind == 5 else number(kind, value)
        parts.append(message(4, number(1, key) + told))
    if event["unknown"]:
        parts += [message(90, "?"), number(300, 1)]
    if event["shuffled"]:
        order.shuffle(parts)
    return message(4, b"".join(parts))


def expected(events: Sequence[dict[str, Any]]) -> dict[int, tuple[int, int, int, int]]:
    times: dict[int, list[int]] = {}
    for event in events:
        own = [value for key, kind, value in event["stats"] if key == OWN and kind in (3, 4)]
        times.setdefault(event["metadata"], []).append(own[-1] if own else event["duration"] or 0)
    return {key: (len(each), sum(each), min(each), max(each)) for key, each in times.items()}


def added(data: bytes, duration_stat: int | None) -> dict[int, tuple[int, int, int, int]]:
    tallies: dict[int, Tally] = {}
    tally_line(data, 0, len(data), duration_stat, tallies)
    return {key: tally.numbers() for key, tally in tallies.items()}


@runs(300)
@given(st.lists(EVENT, max_size=6), st.randoms(use_true_random=False))
def test_any_event_counts_with_its_time(events: list[dict[str, Any]], order: Any) -> None:
    for event in events:  # of two statistics of one name, the one that is written last would count
        keys = [key for key, _, _ in event["stats"]]
        if keys.count(OWN) > 1:
            event["stats"] = []
    data = b"".join(written(event, order) for event in events)
    assert added(data, OWN) == expected(events)
    bare = [{**event, "stats": []} for event in events]
    assert added(data, None) == expected(bare)


def test_events_that_stand_for_several() -> None:
    data = message(4, number(1, 1) + number(5, 4) + number(3, 40))
    assert added(data, None) == {1: (4, 40, 10, 10)}


def test_a_statistics_number_of_two_bytes() -> None:
    data = message(4, number(1, 1) + number(3, 40) + message(4, number(1, 300) + number(3, 7)))
    assert added(data, 300) == {1: (1, 7, 7, 7)}
    assert added(data, 44) == {1: (1, 40, 40, 40)}, "300 begins with the byte of 44 and its mark"


@pytest.mark.parametrize(("value", "data"), [(0, b"\0"), (127, b"\x7f"), (128, b"\x80\x01"), (300, b"\xac\x02")])
def test_numbers_as_they_are_written(value: int, data: bytes) -> None:
    assert encoded(value) == data
