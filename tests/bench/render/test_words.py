"""Numbers as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.bench.render.plots import nice_ticks
from patchkit.bench.render.words import amount, clock, columns, duration, number, percent


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (19320.0, "19,320"),
        (19320.4, "19,320"),
        (0.2754, "0.2754"),
        (0.000123, "0.000123"),
        (123456789.5, "123,500,000"),
        (9.9996, "10"),
        (999.96, "1,000"),
        (-0.05, "-0.05"),
        (-1562.25, "-1,562"),
        (0.0, "0"),
        (1e-9, "1.000e-09"),
        (2.5e20, "2.500e+20"),
    ],
)
def test_number(value: float, text: str) -> None:
    assert number(value) == text


@given(st.floats(-1e300, 1e300))
def test_a_number_keeps_its_value_to_four_digits(value: float) -> None:
    assert float(number(value).replace(",", "")) == pytest.approx(value, rel=6e-4)


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(1.046, "+4.6 %"), (0.74, "-26.0 %"), (4.4, "x4.40"), (0.99999, "+0.0 %"), (123.0, "x123"), (1.9999, "+100.0 %")],
)
def test_percent(ratio: float, text: str) -> None:
    assert percent(ratio) == text


def test_amounts_and_times() -> None:
    assert [amount(0.275, "s"), amount(285.0, "s"), amount(None, "s")] == ["275 ms", "285 s", "-"]
    assert [duration(59.6), duration(119.4), duration(1330), duration(7400)] == ["60 s", "119 s", "22 min", "2 h 3 min"]
    assert [clock("2026-12-01T03:04:05+00:00"), clock("yesterday")] == ["03:04:05", "yesterday"]


def test_columns_end_together_where_they_are_numbers() -> None:
    assert columns([["a", "1"], ["bcd", "200"]], right=(1,)) == ["a      1", "bcd  200"]
    assert columns([]) == []


@given(st.floats(-1e9, 1e9), st.floats(1e-9, 1e9))
def test_ticks_span_what_is_drawn(low: float, size: float) -> None:
    ticks = nice_ticks(low, low + size)
    assert ticks[0] <= low + size * 1e-6 + abs(low) * 1e-6
    assert ticks[-1] >= low + size - size * 1e-6 - abs(low) * 1e-6
    assert 2 <= len(ticks) <= 9
