"""From the releases that a patch fits to the PEP 440 specifier that admits exactly those."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from patchkit.tuples import NamedTuple

MOST_HOLES = 4
"""More versions left out by ``!=`` than this, and the newest run without holes is proposed instead."""


class Range(NamedTuple):
    """A specifier, and what is to be said about it.

    ``left_out`` are releases that fit and that it does not admit; ``untried`` those that it admits and nobody looked
    at. ``open_end``: the newest release there is fits, so the upper bound is a guess about releases to come.
    """

    specifier: str
    left_out: tuple[str, ...]
    untried: tuple[str, ...]
    open_end: bool


def propose(
    fits: Collection[str],
    fails: Collection[str],
    published: Sequence[str],
    *,
    kept: Collection[str] = (),
    pre: bool = False,
) -> Range:
    """The narrowest specifier that admits all of ``fits`` and ``kept``, and none of ``fails``.

    Other releases count for nothing inside of the range and end it at its ends.

    Args:
        fits: Versions that the patch fits; at least one.
        fails: Versions that it does not.
        published: Every version there is.
        kept: Versions that were not tried and that the requirement admits: nothing says that they are to go.
        pre: Whether prereleases were tried: else they are not looked at.
    """
    tried, bad = set(map(Version, fits)), set(map(Version, fails))
    good = tried | (set(map(Version, kept)) - bad)
    order = sorted({Version(text) for text in published} | good | bad)
    order = [version for version in order if pre or not version.is_prerelease or version in good]
    first, last = min(good), max(good)
    holes = [version for version in order if first < version < last and version in bad]
    left_out: list[Version] = []
    if len(holes) > MOST_HOLES:
        first = min(version for version in good if version > holes[-1])
        left_out = sorted(version for version in good if version < first)
        holes = []
    above = next((version for version in order if version > last), None)
    clauses = [f">={short(first)}"] + [f"!={hole}" for hole in holes]
    clauses.append(f"<{short(above) if above is not None else following(last)}")
    specifier = ",".join(clauses)
    admitted = SpecifierSet(specifier)
    untried = [v for v in order if v not in tried and v not in bad and admitted.contains(v, prereleases=True)]
    assert all(admitted.contains(v, prereleases=True) for v in good if v not in left_out)
    assert not any(admitted.contains(v, prereleases=True) for v in bad)
    return Range(specifier, tuple(map(str, left_out)), tuple(map(str, untried)), above is None and last in tried)


def short(version: Version) -> str:
    """The version without the trailing zeros that PEP 440 does not count: ``0.33`` for 0.33.0."""
    if version.pre or version.post is not None or version.dev is not None or version.local or version.epoch:
        return str(version)
    release = list(version.release)
    while len(release) > 2 and release[-1] == 0:
        release.pop()
    return ".".join(map(str, release))


def following(version: Version) -> str:
    """The next minor version, which the newest release tells nothing about: ``0.33`` for 0.32.1, ``38`` for 37."""
    epoch = f"{version.epoch}!" if version.epoch else ""
    release = version.release
    return epoch + (f"{release[0]}.{release[1] + 1}" if len(release) > 1 else f"{release[0] + 1}")
