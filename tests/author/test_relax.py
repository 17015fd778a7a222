"""Specifiers that admit one release more: what they admit is asked of ``packaging`` alone."""

from __future__ import annotations

from itertools import permutations

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from patchkit.author.relax import admit, bound_old, from_on


@pytest.mark.parametrize(
    ("specifier", "version", "old", "expected"),
    [
        (">=0.19,<0.33", "0.33.0", "0.32.0", ">=0.19,<0.34"),
        ("==0.23.0", "0.24.0", "0.23.0", ">=0.23,<0.25"),
        ("~=0.23.0", "0.24.1", "0.23.0", ">=0.23,<0.25"),
        (">=0.19", "0.18.0", "0.19.0", ">=0.18"),
        (">=1,!=2.0,<3", "2.0", "1.0", ">=1,<3"),
        ("", "2.0", "1.0", ""),
        (">=1,<2", "3.1.4", None, ">=3.1.4,<3.2"),
        (">=1.0,<2", "2.1", "1.5", ">=1.0,<2.2"),
        (">=1.0,<2", "0.9", "1.5", ">=0.9,<2"),
        ("==1.5", "1.7", "1.5", ">=1.5,<1.8"),
        (">=1.0,!=1.7", "1.7", "1.5", ">=1.0"),
        (">=1.0,<2", "2.1.0", None, ">=2.1,<2.2"),
        ("<2.3", "2.3+cpu", "2.2", "<2.4"),
        (">=2.4", "2.3+cpu", "2.4", ">=2.3"),
        ("==2.2", "2.3+cpu", "2.2", ">=2.2,<2.4"),
        ("==2.2+cpu", "2.3", "2.2+cpu", ">=2.2,<2.4"),
        (">=2.2", "2.3+cpu", None, ">=2.3,<2.4"),
    ],
)
def test_one_release_more(specifier: str, version: str, old: str | None, expected: str) -> None:
    assert admit(specifier, version, old) == expected
    for one in filter(None, (version, old)):
        assert SpecifierSet(expected).contains(one, prereleases=True)


@pytest.mark.parametrize(
    ("version", "old", "expected"),
    [
        ("1.5.0", "1.4", ">=1.5"),
        ("1.4", "1.5", "<=1.4"),
        ("2.3+cpu", "2.2", ">=2.3"),
        # In the local part alone: no bound tells these apart.
        ("2.3+cpu", "2.3", "==2.3+cpu"),
        ("2.3", "2.3+cpu", "!=2.3+cpu"),
        ("2.3+cu118", "2.3+cpu", "==2.3+cu118"),
    ],
)
def test_what_admits_the_new_one(version: str, old: str, expected: str) -> None:
    assert from_on(version, old) == expected


@pytest.mark.parametrize(
    ("specifier", "version", "old", "expected"),
    [
        (None, "2.0", "1.0", "<2.0"),
        (">=0.22", "0.32.0", "0.31.0", ">=0.22,<0.32"),
        (">=0.22,<0.40", "0.32.0", "0.31.0", ">=0.22,<0.32"),
        (">=0.22,<0.30", "0.32.0", "0.31.0", ">=0.22,<0.30,<0.32"),
        (">=1", "0.5", "1.0", ">0.5,>=1"),
        (None, "1.5", "1.4", "<1.5"),
        (None, "1.4", "1.5", ">1.4"),
        (">=1.0,<2", "1.5", "1.4", ">=1.0,<1.5"),
        ("==2.*", "2.3+cpu", "2.3", "!=2.3+cpu,==2.*"),
        (None, "2.3", "2.3+cpu", "==2.3+cpu"),
        # "<2.0" leaves the prereleases of 2.0 out, and ">2.3" its post releases.
        (None, "2.0", "2.0rc1", "<=2.0rc1"),
        (None, "2.3", "2.3.post1", ">=2.3.post1"),
    ],
)
def test_what_leaves_the_new_one_out(specifier: str | None, version: str, old: str, expected: str) -> None:
    assert sorted(bound_old(specifier, version, old).split(",")) == sorted(expected.split(","))


def test_old_and_new_are_told_apart() -> None:
    versions = ["1.9", "2.0.dev1", "2.0rc1", "2.0", "2.0+a", "2.0+b", "2.0.post1", "2.0.post1+a", "2.1", "1!0.1"]
    for old, new in permutations(versions, 2):
        ours, theirs = SpecifierSet(bound_old(None, new, old)), SpecifierSet(from_on(new, old))
        assert ours.contains(old, prereleases=True), (old, new, str(ours))
        assert not ours.contains(new, prereleases=True), (old, new, str(ours))
        assert theirs.contains(new, prereleases=True), (old, new, str(theirs))
        assert not theirs.contains(old, prereleases=True), (old, new, str(theirs))
        for known in (f">={min(old, new, key=Version)}", "==2.*", "!=1.0"):
            if "+" not in known and SpecifierSet(known).contains(old, prereleases=True):
                assert SpecifierSet(bound_old(known, new, old)).contains(old, prereleases=True)
        wide = SpecifierSet(admit(f"=={old}", new, old))
        assert wide.contains(new, prereleases=True), (old, new, str(wide))
        assert wide.contains(old, prereleases=True), (old, new, str(wide))
