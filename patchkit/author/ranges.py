"""From the releases that a patch fits to the PEP 440 specifier that admits exactly those."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from patchkit.errors import InternalError
from patchkit.tuples import NamedTuple

MOST_HOLES = 4
"""More versions left out by ``!=`` than this, and the newest run without holes is proposed instead."""


_ENDS = ((">", ">="), ("<", "<="))


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
    looked_at: Collection[str] = (),
    pre: bool = False,
) -> Range:
    """The narrowest specifier that admits all of ``fits`` and ``kept``, and none of ``fails``.

    Other releases count for nothing inside of the range and end it at its ends. A release that no specifier tells from
    one of ``fails`` is left out: where that is each of ``fits``, the newest is named alone.

    Args:
        fits: Versions that the patch fits; at least one.
        fails: Versions that it does not.
        published: Every version there is.
        kept: Versions that were not tried and that the requirement admits: nothing says that they are to go.
        looked_at: Versions that were tried and that the patch neither fits nor fails on: it is needless there.
        pre: Whether prereleases were tried: else they are not looked at.

    Raises:
        InternalError: The specifier does not say what it should: a fault of patchkit.
    """
    tried, bad = set(map(Version, fits)), set(map(Version, fails))
    good = tried | (set(map(Version, kept)) - bad)
    order = sorted({Version(text) for text in published} | good | bad)
    order = [version for version in order if pre or not version.is_prerelease or version in good]
    # What leaves 2.3 out leaves 2.3+cpu out with it.
    chosen = {version for version in good if version.local is None or _public(version) not in bad}
    if chosen & tried:
        specifier, chosen = _between(chosen, bad, order)
    else:
        chosen = {max(tried)}
        specifier = f"=={max(tried)}"
    admitted = SpecifierSet(specifier)
    wrong = [v for v in chosen if not admitted.contains(v, prereleases=True)]
    wrong += [v for v in bad if admitted.contains(v, prereleases=True)]
    if wrong:
        versions = ", ".join(map(str, sorted(wrong)))
        raise InternalError(f"the specifier {specifier} that was to be proposed is wrong about {versions}")
    seen = tried | bad | set(map(Version, looked_at))
    untried = [v for v in order if v not in seen and admitted.contains(v, prereleases=True)]
    last = max(chosen)
    open_end = last in tried and all(_public(version) <= _public(last) for version in order)
    return Range(specifier, tuple(map(str, sorted(good - chosen))), tuple(map(str, untried)), open_end)


def least_changed(own: SpecifierSet, proposed: str, good: Collection[str], bad: Collection[str]) -> str:
    """``proposed`` with the ends of ``own`` where these do as well: an end that nothing is wrong with stays as it is.

    Args:
        own: What is written now.
        proposed: What :func:`propose` says.
        good: Versions to be admitted.
        bad: Versions not to be.
    """
    clauses = {side: [str(one) for one in own if one.operator in side] for side in _ENDS}
    if sum(map(len, clauses.values())) + sum(one.operator == "!=" for one in own) < len(own):
        return proposed  # "==1.0" and "~=1.0" are both ends at once
    new = SpecifierSet(proposed)
    holes = [str(one) for one in own if one.operator == "!=" and one.version not in good]
    holes += [str(one) for one in new if one.operator == "!=" and str(one) not in holes]
    theirs = {side: [str(one) for one in new if one.operator in side] for side in _ENDS}
    low, high = _ENDS
    for below, above in ((clauses, clauses), (theirs, clauses), (clauses, theirs)):
        found = ",".join([*sorted(below[low]), *sorted(holes), *sorted(above[high])])
        admitted = SpecifierSet(found)
        if all(admitted.contains(v, prereleases=True) for v in good) and not any(
            admitted.contains(v, prereleases=True) for v in bad
        ):
            return found
    return proposed


def _between(good: set[Version], bad: set[Version], order: Sequence[Version]) -> tuple[str, set[Version]]:
    """A range with holes that admits ``good`` or, with too many holes, the newest of them; and those that it admits."""
    last = _public(max(good))
    holes = _holes(good, bad)
    before = [version for version in holes if _public(version) < last]
    if len(holes) > MOST_HOLES and before:
        good = {version for version in good if _public(version) > _public(before[-1])}
        holes = _holes(good, bad)
    above = next((version for version in order if _public(version) > last), None)
    upper = f"<{short(above) if above is not None else following(last)}"
    if not all(SpecifierSet(upper).contains(version, prereleases=True) for version in good):
        upper = f"<={last}"  # "<2.0" leaves the prereleases of 2.0 out
    return ",".join([f">={short(min(good))}", *(f"!={hole}" for hole in holes), upper]), good


def _holes(good: set[Version], bad: set[Version]) -> list[Version]:
    """The releases to leave out between the ends of ``good``: without a local version that another one covers."""
    first, last = _public(min(good)), _public(max(good))
    return [
        version
        for version in sorted(bad)
        if first <= _public(version) <= last and (version.local is None or _public(version) not in bad)
    ]


def _public(version: Version) -> Version:
    """The version without its local part, which no bound may name: ``2.3`` for 2.3+cpu."""
    return Version(version.public) if version.local is not None else version


def short(version: Version) -> str:
    """The version as a bound has it, without its local part and the zeros that do not count: ``0.33`` for 0.33.0."""
    version = _public(version)
    if version.pre or version.post is not None or version.dev is not None or version.epoch:
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
