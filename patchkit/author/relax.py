"""Version specifiers for a patch that is ported: what admits one release more, and what tells old from new."""

from __future__ import annotations

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from patchkit.author.ranges import following, short


def _joined(clauses: list[str]) -> str:
    """The clauses, each once: lower bounds, what is left out, upper bounds."""
    return ",".join(sorted(dict.fromkeys(clauses), key=lambda text: ("!<".find(text[0]), text)))


def admit(specifier: str, version: str, old: str | None) -> str:
    """``specifier`` widened so that it admits ``version``; where ``old`` is None, it need admit no other.

    Each clause that does not hold gives way: a lower bound to ``>=`` the version, an upper one to ``<`` the next minor
    version, one that names a single version to a range from ``old`` (or to it) on.
    """
    new = Version(version)
    if old is None:
        return f">={short(new)},<{following(new)}"
    low, high = sorted((new, Version(old)))
    clauses = []
    for one in SpecifierSet(specifier):
        if one.contains(version, prereleases=True):
            clauses.append(str(one))
        elif one.operator in ("<", "<="):
            clauses.append(f"<{following(high)}")
        elif one.operator in (">", ">="):
            clauses.append(f">={short(low)}")
        elif one.operator != "!=":
            clauses += [f">={short(low)}", f"<{following(high)}"]
    return _joined(clauses)


def from_on(version: str, old: str) -> str:
    """What admits the new release and those behind it, seen from the old one; it alone where no bound tells the two."""
    new, was = Version(version), Version(old)
    if new.public == was.public:
        return f"=={new}" if new.local is not None else f"!={was}"
    return f">={short(new)}" if new > was else f"<={short(new)}"


def bound_old(specifier: str | None, version: str, old: str) -> str:
    """``specifier`` without the new release and those behind it, seen from the old one, which stays."""
    new, was = Version(version), Version(old)
    kept = [str(one) for one in SpecifierSet(specifier or "")]
    if new.public == was.public:
        return _joined([*kept, f"!={new}" if new.local is not None else f"=={was}"])
    edge = f"<{short(new)}" if new > was else f">{short(new)}"
    if not SpecifierSet(edge).contains(was, prereleases=True):
        # "<2.0" leaves the prereleases of 2.0 out, and ">2.3" the post-releases of 2.3.
        edge = f"<={short(was)}" if new > was else f">={short(was)}"
    same = [text for text in kept if text.startswith(edge[0]) and not text.startswith("~")]
    # A bound that the new one makes needless goes.
    kept = [text for text in kept if text not in same or not _weaker(text, edge)]
    return _joined([*kept, edge])


def _weaker(text: str, edge: str) -> bool:
    """Whether ``edge``, a bound of the same side, lets through less than ``text``."""
    a, b = (Version(one.lstrip("<>=")) for one in (text, edge))
    return a >= b if edge[0] == "<" else a <= b
