"""From the releases that fit to a specifier: what it admits is asked of ``packaging`` alone."""

from __future__ import annotations

from itertools import product

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from patchkit.author.ranges import following, least_changed, propose, short


@pytest.mark.parametrize(
    ("fits", "fails", "published", "expected"),
    [
        (["1.0", "1.1"], ["1.2"], ["1.0", "1.1", "1.2"], ">=1.0,<1.2"),
        (["0.19.0", "0.32.0"], ["0.18.0"], ["0.18.0", "0.19.0", "0.32.0"], ">=0.19,<0.33"),
        (["1.0", "1.2"], ["1.1"], ["1.0", "1.1", "1.2"], ">=1.0,!=1.1,<1.3"),
        (["37"], ["36"], ["36", "37"], ">=37,<38"),
        (["1.2.3"], [], ["1.2.2", "1.2.3", "1.2.4"], ">=1.2.3,<1.2.4"),
        (["1.0.post1"], ["1.0"], ["1.0", "1.0.post1"], ">=1.0.post1,<1.1"),
        (["2024.7.4"], [], ["2024.7.4"], ">=2024.7.4,<2024.8"),
        (["1!1.0"], [], ["9.0", "1!1.0"], ">=1!1.0,<1!1.1"),
        # What was not tried ends the range at its ends, and lies in it in between.
        (["1.1", "1.3"], [], ["1.0", "1.1", "1.2", "1.3", "1.4"], ">=1.1,<1.4"),
        # More holes than anybody wants to read: the newest run.
        (["1", "3", "5", "7", "9", "11", "12"], ["2", "4", "6", "8", "10"], [], ">=11,<13"),
        # No bound may name a local version: it is for == and != alone.
        (["2.3+cpu"], [], [], ">=2.3,<2.4"),
        (["2.2", "2.3+cpu"], ["2.4+cpu"], [], ">=2.2,<2.4"),
        (["2.3+cpu"], ["2.3+cu118"], [], ">=2.3,!=2.3+cu118,<2.4"),
        (["2.3+cu118"], ["2.3+cpu"], [], ">=2.3,!=2.3+cpu,<2.4"),
        (["2.3", "2.4"], ["2.3+cpu"], [], ">=2.3,!=2.3+cpu,<2.5"),
        # Excluding 2.3 takes 2.3+cpu with it: of the two, only the one with a local part can be named.
        (["2.3+cpu"], ["2.3"], [], "==2.3+cpu"),
        (["2.3+a", "2.3+cpu"], ["2.3"], [], "==2.3+cpu"),
        (["2.2", "2.3+cpu", "2.4"], ["2.3"], [], ">=2.2,!=2.3,<2.5"),
    ],
)
def test_the_proposed_specifier(fits: list[str], fails: list[str], published: list[str], expected: str) -> None:
    found = propose(fits, fails, published or [*fits, *fails])
    assert found.specifier == expected
    admitted = SpecifierSet(found.specifier)
    assert [v for v in fits if not admitted.contains(v) and v not in found.left_out] == []
    assert [v for v in fails if admitted.contains(v)] == []


def test_what_cannot_be_told_apart_is_left_out() -> None:
    assert propose(["2.2", "2.3+cpu", "2.4"], ["2.3"], []).left_out == ("2.3+cpu",)
    assert propose(["2.3+a", "2.3+cpu"], ["2.3"], []).left_out == ("2.3+a",)


@pytest.mark.parametrize(
    ("fits", "fails", "expected"),
    [
        # "<2.0" leaves the prereleases of 2.0 out as well.
        (["1.9", "2.0rc1"], ["2.0"], ">=1.9,<=2.0rc1"),
        (["2.0rc1"], ["2.0rc2"], ">=2.0rc1,<2.0rc2"),
        (["2.0rc1"], ["1.9"], ">=2.0rc1,<2.1"),
        (["1.9", "2.0"], ["2.0rc1"], ">=1.9,!=2.0rc1,<2.1"),
    ],
)
def test_prereleases_that_were_tried(fits: list[str], fails: list[str], expected: str) -> None:
    found = propose(fits, fails, [], pre=True)
    assert (found.specifier, found.left_out) == (expected, ())
    admitted = SpecifierSet(expected)
    assert all(admitted.contains(v, prereleases=True) for v in fits)
    assert not any(admitted.contains(v, prereleases=True) for v in fails)


VERSIONS = ["1.9", "2.0rc1", "2.0", "2.0+a", "2.0+b", "2.0.post1"]


def test_whatever_fits_the_specifier_holds() -> None:
    """Every way in which six releases that are hard to tell apart can fit, fail or not be tried."""
    for states in product("gb-", repeat=len(VERSIONS)):
        fits, fails = ([v for v, state in zip(VERSIONS, states, strict=True) if state == one] for one in "gb")
        if not fits:
            continue
        found = propose(fits, fails, VERSIONS, pre=True)
        admitted = SpecifierSet(found.specifier)
        held = [v for v in VERSIONS if admitted.contains(v, prereleases=True)]
        assert [v for v in fits if v not in held] == list(found.left_out), states
        assert not set(held) & set(fails), states
        assert [v for v in held if v not in fits] == list(found.untried), states
        assert len(found.left_out) < len(fits), states


def test_a_release_that_has_the_change_itself_is_not_untried() -> None:
    """paramiko-triple-des: 3.3.2 has the change, and 3.4.0, which came before it, has not."""
    found = propose(["3.3.1", "3.4.0"], [], ["3.3.1", "3.3.2", "3.4.0", "3.4.1"], looked_at=["3.3.2", "3.4.1"])
    assert (found.specifier, found.untried) == (">=3.3.1,<3.4.1", ())


def test_what_the_range_admits_untried_is_named() -> None:
    found = propose(["1.1", "1.3"], [], ["1.0", "1.1", "1.2", "1.3"])
    assert (found.untried, found.open_end) == (("1.2",), True)


def test_the_newest_release_leaves_the_end_open() -> None:
    assert propose(["1.1"], [], ["1.1", "1.2"]).open_end is False
    assert propose(["1.1"], [], ["1.1"], kept=["1.2"]).open_end is False, "nobody tried 1.2"


@pytest.mark.parametrize(
    ("version", "shorter", "next_one"),
    [
        ("0.33.0", "0.33", "0.34"),
        ("37", "37", "38"),
        ("2.0rc1", "2.0rc1", "2.1"),
        ("2.3.0+cpu", "2.3", "2.4"),
        ("2.3.post1+cpu", "2.3.post1", "2.4"),
        ("1!2.0.0", "1!2.0.0", "1!2.1"),
    ],
)
def test_bounds_as_they_are_written(version: str, shorter: str, next_one: str) -> None:
    assert (short(Version(version)), following(Version(version))) == (shorter, next_one)


@pytest.mark.parametrize(
    ("own", "proposed", "good", "bad", "expected"),
    [
        (">=3.4", ">=3.5,<3.12", ["3.5", "3.11"], ["3.4"], ">=3.5"),
        (">=3.4,<4", ">=3.5,<3.12", ["3.5", "3.11"], ["3.4"], ">=3.5,<4"),
        ("", ">=1.0,!=1.2,<2.1", ["1.0", "2.0"], ["1.2"], "!=1.2"),
        ("!=1.1,<3", ">=1.0,<2.1", ["1.0", "1.1", "2.0"], [], "<3"),  # what was left out fits after all
        (">=1", ">=1.1,<1.9", ["1.1", "1.8"], ["1.0", "1.9"], ">=1.1,<1.9"),
        ("==1.0", ">=1.0,<1.2", ["1.0", "1.1"], [], ">=1.0,<1.2"),
        ("~=1.0", ">=1.1,<1.9", ["1.1"], ["1.0"], ">=1.1,<1.9"),
    ],
)
def test_only_the_end_that_is_wrong_is_another_one(
    own: str, proposed: str, good: list[str], bad: list[str], expected: str
) -> None:
    assert least_changed(SpecifierSet(own), proposed, good, bad) == expected
