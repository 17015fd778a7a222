"""What is said of the hunks of a diff that have no single place: why, and where in the file they may belong."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from patchkit.author.placing import DiffHunk, Unplaced
from patchkit.edit.parse import PARSE_ERRORS, Parse
from patchkit.edit.source import Source
from patchkit.edit.spans import Span
from patchkit.errors import PlanError
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.edit.outline import Outline
    from patchkit.site.distribution import Distribution

_CLOSE = 0.1
"""Places that are so much less like a hunk than the best are not shown to people."""

_NOT_LOOKED = "stands nowhere; what comes near to it was not looked for, since many others stand nowhere as well"

_NAMED = 5
"""Candidates that a message names."""

SEARCHED = 12_000_000
"""Characters of files that are looked through for what comes near to hunks, for all hunks of a diff together."""

PRESENT = "the release has it already"

EMPTY = "writes into a file that is installed empty, where an edit has no anchor"


class Place(NamedTuple):
    """Lines ``first`` to ``last`` (1-based) of a file, the definition around them ("": none; None: it does not parse).

    ``similarity`` says how much of the hunk they have, 0 to 1; ``diff`` is the hunk's text against theirs.
    """

    first: int
    last: int
    scope: str | None
    similarity: float
    diff: tuple[str, ...]

    def __str__(self) -> str:
        lines = f"line {self.first}" if self.first == self.last else f"lines {self.first} to {self.last}"
        return f"{lines} in {self.scope}" if self.scope else lines


class Problem(NamedTuple):
    """A hunk, or a part of one, without one place: the file, the line of the diff, and why, in words.

    ``hunk`` is the line of the diff that the whole hunk begins at, ``candidates`` the lines where it stands, and
    ``places`` these or, where it stands nowhere, what comes nearest.
    """

    path: str
    diff_line: int
    reason: str
    candidates: tuple[int, ...]
    hunk: int
    places: tuple[Place, ...]

    @property
    def json(self) -> dict[str, Any]:
        """For ``--json``."""
        places = [{**place._asdict(), "diff": list(place.diff)} for place in self.places]
        return {**self._asdict(), "candidates": list(self.candidates), "places": places}

    @property
    def lines(self) -> list[str]:
        """For people: why, and what comes nearest."""
        out = [f"line {self.diff_line} of the diff, {self.path}: {self.reason}"]
        if not self.candidates:
            best = max((place.similarity for place in self.places), default=0.0)
            for place in (one for one in self.places if one.similarity > best - _CLOSE):
                out.append(f"  {place}, {place.similarity:.0%} the same:")
                out += [f"    {line}" for line in place.diff]
        return out


def describe(
    source: Source, hunks: Sequence[DiffHunk], unplaced: Sequence[Unplaced], parse: Parse, search: int = SEARCHED
) -> tuple[list[Problem], int]:
    """What is to be said of the hunks of one file that have no single place.

    Args:
        source: The file.
        hunks: All hunks of the file, in order.
        unplaced: Those, or parts of those, without a place.
        parse: By the site's grammar.
        search: How many characters may be looked through. One hunk of a diff gets its look at any file.

    Returns:
        The problems; and how many characters may be looked through for further files.
    """
    outline = _outline(source, parse)
    out = []
    for one in unplaced:
        line = one.hunk.diff_line
        whole = max(hunk.diff_line for hunk in hunks if hunk.diff_line <= line)
        if one.inner:
            one = one._replace(candidates=(one.inner,))
        places = _stands(source, outline, one)
        looks = search > 0
        if not places and looks:
            places = _nearest(source, outline, one.hunk, parse)
            search -= len(source.text)
        reason = _reason(one, places, source) if looks or places or one.present else _NOT_LOOKED
        out.append(Problem(source.path, line, reason, one.candidates, whole, tuple(places)))
    return out, search


def refusal(problems: Sequence[Problem], distribution: Distribution, total: int) -> PlanError:
    """The error for a diff that does not fit, with all that can be said of it, and the way out."""
    where = f"{distribution.name} {distribution.version}"
    failing = len({(one.path, one.hunk) for one in problems})
    lines = [f"{failing} of {total} hunk{'s' if total != 1 else ''} {has(failing)} no single place in {where}:"]
    lines += [f"  {line}" for one in problems for line in one.lines]
    paths = dict.fromkeys(one.path for one in problems)
    without = " ".join(f"--exclude {shlex.quote(path)}" for path in paths)
    return PlanError(
        "\n".join(lines),
        code="hunks",
        hint="add `--edit DIR` for a copy that has the hunks that fit, to do by hand what the others mean, and "
        f"`patchkit create` makes a patch of both; or leave the files out ({without})",
        details={"hunks": [one.json for one in problems], "total": total, "failing": failing},
    )


def has(number: int) -> str:
    """The verb."""
    return "has" if number == 1 else "have"


def _outline(source: Source, parse: Parse) -> Outline | None:
    from patchkit.edit.outline import Outline

    if not source.path.endswith((".py", ".pyi")):
        return None
    try:
        return Outline(source, parse(source.text))
    except (*PARSE_ERRORS, PlanError):
        return None


def _scope(source: Source, outline: Outline | None, first: int, last: int) -> str | None:
    """The innermost definition that holds a range of lines."""
    if outline is None:
        return None
    ends = [outline.scope_at(source.starts[line - 1]).split(".") for line in (first, last)]
    common = []
    for one, other in zip(*ends, strict=False):
        if one != other:
            break
        common.append(one)
    return ".".join(common)


def _stands(source: Source, outline: Outline | None, one: Unplaced) -> list[Place]:
    return [Place(line, line, _scope(source, outline, line, line), 1.0, ()) for line in one.candidates]


def _nearest(source: Source, outline: Outline | None, hunk: DiffHunk, parse: Parse) -> list[Place]:
    from patchkit.edit.explain import Problem as Anchor
    from patchkit.edit.nearmiss import nearest

    whole = [Span(0, len(source.text))]
    anchor = Anchor(source, outline, "".join(hunk.old), "find", None, None, whole, "1", None, parse)
    return [
        Place(
            found.first, found.last, _scope(source, outline, found.first, found.last), found.similarity, (*found.diff,)
        )
        for found in nearest(anchor)
    ]


def _reason(one: Unplaced, places: Sequence[Place], source: Source) -> str:
    if one.present:
        return PRESENT
    if one.inner:
        side, end = ("above", "beginning") if one.hunk.lines[0][0] != " " else ("below", "end")
        return f"would stand at {places[0]}, but the diff has no line {side} it, as at the {end} of a file"
    if one.elsewhere:
        told = next((f" (`{head}`)" for head in one.hunk.headings if head), "")
        return f"stands with a part of its context at {places[0]}, elsewhere than the diff says{told}"
    if len(one.candidates) > 1:
        more = f" and {len(places) - _NAMED} more" if len(places) > _NAMED else ""
        return f"stands {len(one.candidates)} times, at {', at '.join(map(str, places[:_NAMED]))}{more}"
    if one.candidates:
        return f"changes {places[0]}, which another hunk changes as well"
    old = [text.strip() for text in one.hunk.old if text.strip()]
    if not places:
        return "stands nowhere: " + (f"`{old[0]}` has nothing like it" if old else "it has no line to look for")
    if len(old) == 1:
        found = source.text.split("\n")[places[0].first - 1]
        return f"stands nowhere: `{old[0]}` is `{found.strip()}` at {places[0]}"
    return "stands nowhere; what comes nearest:"
