"""Patches behind those that they want to come after."""

from __future__ import annotations

import pytest

from patchkit.errors import GuardError
from patchkit.ops.ordering import sorted_by_after


@pytest.mark.parametrize(
    ("wishes", "order"),
    [
        ({}, []),
        ({"b": (), "a": ()}, ["b", "a"]),
        ({"b": ("a",), "a": ()}, ["a", "b"]),
        ({"c": ("b",), "b": ("a",), "a": (), "d": ()}, ["a", "b", "c", "d"]),
        ({"b": ("elsewhere",), "a": ("b", "b")}, ["b", "a"]),
    ],
)
def test_the_order(wishes: dict[str, tuple[str, ...]], order: list[str]) -> None:
    assert sorted_by_after(wishes) == order


@pytest.mark.parametrize("wishes", [{"a": ("a",)}, {"a": ("b",), "b": ("a",), "c": ()}])
def test_a_circle(wishes: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(GuardError) as raised:
        sorted_by_after(wishes)
    assert raised.value.code == "after-cycle"
