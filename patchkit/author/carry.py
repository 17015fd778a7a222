"""From a change on an old release to the same change on a new one, with the evidence for its place; or why not.

Pure. Two texts are aligned line by line within the function or class that holds the change; the change is carried where
the lines that it touches stand in the new text as they stood in the old one (perhaps under other names, laid out anew,
or in a definition that took over the old one's code), as often as before and in the same order. Anything less is no
evidence, and nothing is carried: a person decides.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from patchkit.author.align import (
    Alignment,
    indent_of,
    names_of,
    opens_block,
    renames,
    substitute,
)
from patchkit.author.derive import TextEdit, shortest
from patchkit.author.hunks import Hunk, lines_of
from patchkit.author.tokens import BLOCKS, Code, code_of, same_change
from patchkit.edit.lexer import LexError, lex
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.edit.locate import FileText
    from patchkit.edit.outline import Outline

MOVED = 0.6
"""A definition is the successor of one that is gone from this similarity of their lines on ..."""
MARGIN = 0.2
"""... where it is ahead of the next by so much."""

Tie = Literal["above", "below"] | None
How = Literal["same", "renamed", "laid-out", "moved"]


class Carried(NamedTuple):
    """The change on the new text: the edit's parts, where it is (1-based line), what speaks for it, and the new text
    with it.

    ``how``: on the "same" lines, on lines under other names ("renamed") or in another layout ("laid-out"), or in
    another definition ("moved").
    """

    anchor: TextEdit
    line: int
    how: How
    evidence: tuple[str, ...]
    old_lines: tuple[str, ...]
    new_lines: tuple[str, ...]
    after: str


class Refused(NamedTuple):
    """Why the change is not carried; where its neighbours are still there, the lines between them then and now.

    ``old_line`` and ``line`` are the numbers of the first of them (1-based); ``gap`` are the lines (0-based, half open)
    of the new text that stand where the changed ones stood.
    """

    reason: str
    line: int | None = None
    old_line: int | None = None
    old_lines: tuple[str, ...] = ()
    new_lines: tuple[str, ...] = ()
    gap: tuple[int, int] | None = None


SHOWN = 12
"""Lines on either side that are worth a look side by side; more are not the place but the whole function."""


def hunks_of(before: str, after: str) -> list[Hunk]:
    """The changed runs of lines, in order, as few lines as they can be."""
    old, new = lines_of(before), lines_of(after)
    low = 0
    while low < min(len(old), len(new)) and old[low] == new[low]:
        low += 1
    high = 0
    while high < min(len(old), len(new)) - low and old[-1 - high] == new[-1 - high]:
        high += 1
    a, b = old[low : len(old) - high], new[low : len(new) - high]
    codes = difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    return [Hunk(low + i1, low + i2, tuple(b[j1:j2])) for tag, i1, i2, j1, j2 in codes if tag != "equal"]


def inserted_names(after: str, hunks: Sequence[Hunk]) -> set[str]:
    """The names in the code of the new lines, that of f-strings too: what comments and other strings say is no name."""
    import keyword
    from bisect import bisect_right
    from itertools import accumulate

    new: set[int] = set()
    shift = 0
    for hunk in hunks:
        new.update(range(hunk.start + shift, hunk.start + shift + len(hunk.new)))
        shift += len(hunk.new) - (hunk.stop - hunk.start)
    try:
        tokens = lex(after)
    except LexError:
        return names_of([line for hunk in hunks for line in hunk.new])
    starts = list(accumulate(map(len, lines_of(after)), initial=0))
    return {
        token.text
        for token in tokens
        if token.kind == "name" and bisect_right(starts, token.start) - 1 in new and not keyword.iskeyword(token.text)
    }


def carry(old: FileText, new: FileText, after: str, *, tie: Tie = None, moved: bool = False) -> Carried | Refused:
    """Carry the change that makes ``after`` of the old text over to the new one.

    Args:
        old: The file of the old release.
        new: The file of the new release that has its code.
        after: The old file's text with the change.
        tie: For an insertion, which of its neighbours it belongs to, where only that one is still there.
        moved: ``new`` is another file than ``old``: only definitions that the old release did not have there count.
    """
    hunks = hunks_of(old.source.text, after)
    if not hunks:
        return Refused("the edit changes nothing on the old release")
    scope = _scope_of(old, hunks[0].start, max(hunks[-1].stop, hunks[0].start + 1))
    targets = _targets(old, new, scope, moved)
    if isinstance(targets, Refused):
        return targets
    refusals: list[Refused] = []
    for name, why in targets:
        found = _within(old, new, hunks, after, scope, name, tie)
        if isinstance(found, Carried):
            return found._replace(how="moved", evidence=(why, *found.evidence)) if why else found
        refusals.append(found)
    return refusals[0]


def consistent(old: FileText, new: FileText, old_line: int, new_line: int) -> bool:
    """Whether a match on ``new_line`` lies where the alignment of the two files has ``old_line`` (both 1-based)."""
    scope = _scope_of(old, old_line - 1, old_line)
    targets = _targets(old, new, scope, False)
    names = [scope] if isinstance(targets, Refused) else [name for name, _ in targets]
    for name in names:
        ours, theirs = _regions(old, scope, old_line - 1), _regions(new, name, new_line - 1)
        if ours is not None and theirs is not None:
            aligned = Alignment(_lines(old, ours), _lines(new, theirs), (_keys(old, ours), _keys(new, theirs)))
            within = aligned.allows(old_line - 1 - ours[0], new_line - 1 - theirs[0])
            return within and _agrees(old, new, ours[0], theirs[0], old_line - 1, new_line - 1)
    return False


def _agrees(old: FileText, new: FileText, start: int, to: int, i: int, j: int) -> bool:
    """Whether the alignment of the whole files has line ``i`` at ``j`` too, where the definitions did not move."""
    aligned = _aligned_files(old, new)
    return aligned.to.get(start) != to or aligned.allows(i, j)


@lru_cache(maxsize=4)
def _aligned_files(old: FileText, new: FileText) -> Alignment:
    keys = (_code(old).keys, _code(new).keys)
    return Alignment(lines_of(old.source.text), lines_of(new.source.text), keys)


def _scope_of(text: FileText, first: int, end: int) -> str:
    """The innermost definition that holds these lines; "" at module level, or where the file does not parse."""
    outline = text.outline_or_none()
    if outline is None:
        return ""
    starts = text.source.starts
    first = min(first, len(starts) - 1)
    name = outline.scope_at(starts[first])
    last = starts[min(end, len(starts)) - 1]
    while name and not any(r.start <= starts[first] and last < r.end for r in outline.scopes(name)):
        name = name.rpartition(".")[0]
    return name


def _targets(old: FileText, new: FileText, scope: str, moved: bool) -> list[tuple[str, str]] | Refused:
    """The definitions of the new text that may hold the code of ``scope``, likeliest first, and why."""
    theirs = new.outline_or_none()
    ours = old.outline_or_none()
    if not scope:
        return (
            Refused("code at module level that went to another file is nothing to be sure of") if moved else [("", "")]
        )
    if theirs is None or ours is None:
        return Refused(f"{new.source.path} does not parse")
    names = set(theirs.qualnames())
    known = set() if moved else set(ours.qualnames())
    born = [name for name in theirs.qualnames() if name not in known]
    if scope in names and not moved:
        inner = [name for name in born if name.count(".") >= scope.count(".")]
        return [(scope, ""), *((name, f"part of {scope} went to {name}") for name in inner)]
    if moved and scope in names:
        return [(scope, f"{scope} is in this file now")]
    ranked = _ranked(ours, theirs, scope, born)
    if ranked and ranked[0][0] >= MOVED and (len(ranked) == 1 or ranked[0][0] - ranked[1][0] >= MARGIN):
        score, name = ranked[0]
        return [(name, f"{scope} is gone, and {name} is new with {score:.0%} of its lines")]
    if not ranked:
        return Refused(f"there is no {scope}, and no new definition that has its code")
    best = ", ".join(f"{name} ({score:.0%})" for score, name in ranked[:3])
    return Refused(f"there is no {scope}; new definitions with some of its lines: {best}")


def _ranked(ours: Outline, theirs: Outline, scope: str, born: Sequence[str]) -> list[tuple[float, str]]:
    """The new definitions by how much of the lines of ``scope`` they have."""

    def body(outline: Outline, name: str) -> list[str]:
        span = outline.scopes(name)[0]
        lines = (line.strip() for line in lines_of(outline.source.text[span.start : span.end]))
        return [line for line in lines if line]

    wanted = body(ours, scope)
    out = []
    for name in born:
        matcher = difflib.SequenceMatcher(None, wanted, body(theirs, name), autojunk=False)
        if matcher.quick_ratio() >= 0.3:
            score = matcher.ratio()
            if score >= 0.3:
                out.append((score, name))
    # A class is nearly as like as the method that makes it up: the name that ends alike is meant.
    last = scope.rpartition(".")[2]
    alike = [item for item in out if item[1].rpartition(".")[2] == last]
    return sorted(alike if len(alike) == 1 and alike[0][0] >= MOVED else out, reverse=True)


def _regions(text: FileText, scope: str, line: int | None) -> tuple[int, int] | None:
    """The lines (0-based, exclusive) of the definition ``scope``, of several that which holds ``line``."""
    source = text.source
    if not scope:
        return 0, len(lines_of(source.text))
    outline = text.outline_or_none()
    spans = outline.scopes(scope) if outline is not None else []
    found = [(source.line(s.start) - 1, source.line(max(s.start, s.end - 1))) for s in spans]
    if line is not None:
        found = [(first, end) for first, end in found if first <= line < end]
    return found[0] if len(found) == 1 else None


def _lines(text: FileText, region: tuple[int, int]) -> list[str]:
    return lines_of(text.source.text)[region[0] : region[1]]


def _code(text: FileText, changed: str | None = None) -> Code:
    """A file's lines and tokens, or those of its text with a change."""
    return code_of(text.source.text if changed is None else changed, text.outline_or_none() is not None)


def _keys(text: FileText, region: tuple[int, int]) -> Sequence[str]:
    return _code(text).keys[region[0] : region[1]]


def _within(
    old: FileText, new: FileText, hunks: Sequence[Hunk], after: str, scope: str, target: str, tie: Tie
) -> Carried | Refused:
    ours, theirs = _regions(old, scope, hunks[0].start), _regions(new, target, None)
    if ours is None or theirs is None:
        return Refused(f"several definitions are called {target or scope}")
    a, b = _lines(old, ours), _lines(new, theirs)
    local = [Hunk(h.start - ours[0], h.stop - ours[0], h.new) for h in hunks]
    keys = _keys(old, ours), _keys(new, theirs)
    evidence: list[str] = []
    changed: dict[str, str] = {}
    how: How = "same"
    placed = _place(a, Alignment(a, b, keys), b, local, tie)
    if isinstance(placed, Refused):
        changed = renames(a, b)
        if changed:
            renamed = [substitute(line, changed) for line in a]
            again = [h._replace(new=tuple(substitute(line, changed) for line in h.new)) for h in local]
            aligned = Alignment(renamed, b, ([substitute(key, changed) for key in keys[0]], keys[1]))
            retry = _place(renamed, aligned, b, again, tie)
            if not isinstance(retry, Refused) and retry.sides:
                placed, local, how = retry, again, "renamed"
                names = ", ".join(f"{x} is {y} now" for x, y in changed.items())
                evidence.append(f"names changed throughout: {names}")
    if isinstance(placed, Refused):
        changed = {}
        laid = _laid_anew(old, new, ours, theirs, local)
        if laid is not None:
            placed, how = laid, "laid-out"
    if isinstance(placed, Refused):
        if placed.line is None or placed.old_line is None:
            return placed
        gap = None if placed.gap is None else (placed.gap[0] + theirs[0], placed.gap[1] + theirs[0])
        return placed._replace(line=placed.line + theirs[0], old_line=placed.old_line + ours[0], gap=gap)
    if scope != target and placed.sides < 2:
        return Refused("too little around the place is as it was, and it is in another definition")
    lines = lines_of(new.source.text)
    lines[theirs[0] + placed.first : theirs[0] + placed.end] = placed.lines
    result = "".join(lines)
    problem = _unlike(old, new, hunks, (after, result), placed, theirs[0], changed if how == "renamed" else {})
    if problem is not None:
        return Refused(problem)
    core = [line for h in local for line in a[h.start : h.stop] if line.strip()]
    if scope != target and core and not any(char.isalnum() for line in core for char in line):
        return Refused("a bracket by itself, in another definition, may be any of them")
    low, high, at = local[0].start, local[-1].stop, theirs[0]
    lead = hunks[0].start
    if how == "same" and low < local[0].stop and not _agrees(old, new, ours[0], at, lead, at + placed.first):
        return Refused("the lines around its definition say that it is somewhere else")
    above = _tie(a, local[0], tie) == "above"
    change = Hunk(at + placed.first, at + placed.end, tuple(placed.lines))
    anchored = shortest(new.source, new.outline_or_none(), change, above=above)
    if anchored is None:
        return Refused("no few lines around the place are the only ones of their kind in their scope")
    evidence += placed.evidence
    return Carried(
        anchored,
        at + placed.first + 1,
        how,
        tuple(evidence),
        tuple(a[max(0, low - 1) : high + 1]),
        tuple(b[max(0, placed.first - 1) : placed.end + 1]),
        result,
    )


class Placed(NamedTuple):
    """First line and end in the new region, the new lines for them, on how many sides of each hunk (0 to 2) at least
    the neighbours are as they were, the evidence, and each hunk as it is there (or one for all of them).
    """

    first: int
    end: int
    lines: list[str]
    sides: int
    evidence: list[str]
    hunks: list[Hunk]


def _unlike(
    old: FileText,
    new: FileText,
    hunks: Sequence[Hunk],
    after: tuple[str, str],
    placed: Placed,
    at: int,
    changed: Mapping[str, str],
) -> str | None:
    """Why what was placed is not the same change of the same code; None where it is proved, token by token."""
    ours = list(hunks)
    if len(placed.hunks) != len(ours):
        ours = [_merged(lines_of(old.source.text), ours)]
    theirs = [h._replace(start=h.start + at, stop=h.stop + at) for h in placed.hunks]
    texts = (_code(old), _code(new)), (_code(old, after[0]), _code(new, after[1]))
    return same_change(*texts, list(zip(ours, theirs, strict=True)), changed)


def _merged(lines: Sequence[str], hunks: Sequence[Hunk]) -> Hunk:
    """One hunk for several, with the lines between them."""
    block: list[str] = []
    at = hunks[0].start
    for hunk in hunks:
        block += [*lines[at : hunk.start], *hunk.new]
        at = hunk.stop
    return Hunk(hunks[0].start, at, tuple(block))


def _place(
    a: Sequence[str], alignment: Alignment, b: Sequence[str], hunks: Sequence[Hunk], tie: Tie
) -> Placed | Refused:
    """Lay each hunk on the new region through the alignment of the two."""
    placed: list[tuple[int, int, list[str]]] = []
    evidence: list[str] = []
    sides = 2
    for hunk in hunks:
        if hunk.start < hunk.stop:
            found = alignment.run(hunk.start, hunk.stop)
        else:
            found = alignment.gap(hunk.start, _tie(a, hunk, tie))
        if isinstance(found, str):
            return _side_by_side(found, a, b, alignment, hunk)
        first, end, was, now = found.first, found.end, found.was, found.now
        sides = min(sides, found.sides)
        lines = _shifted(hunk.new, was, now)
        if lines is None:
            return Refused("the indentation changed, and the edit's text holds lines that cannot be shifted")
        if was != now and "indented otherwise" not in evidence:
            evidence.append("indented otherwise")
        if found.why not in evidence:
            evidence.append(found.why)
        if placed and first < placed[-1][1]:
            return Refused("the lines that it touches stand in another order")
        placed.append((first, end, lines))
    merged: list[str] = []
    at = placed[0][0]
    for first, end, lines in placed:
        merged += [*b[at:first], *lines]
        at = end
    theirs = [Hunk(first, end, tuple(lines)) for first, end, lines in placed]
    return Placed(placed[0][0], at, merged, sides, evidence, theirs)


def _tie(a: Sequence[str], hunk: Hunk, tie: Tie) -> Tie:
    """Which neighbour an insertion belongs to: what comes first in a block, to the header above it."""
    above = a[hunk.start - 1] if hunk.start else ""
    inserted = [line for line in hunk.new if line.strip()]
    deeper = inserted and len(indent_of(inserted[0])) > len(indent_of(above))
    return "above" if opens_block(above) and deeper else tie


def _side_by_side(reason: str, a: Sequence[str], b: Sequence[str], alignment: Alignment, hunk: Hunk) -> Refused:
    first, end = max(0, hunk.start - 1), min(len(a), hunk.stop + 1)
    low, high = alignment.around(hunk.start, hunk.stop)
    gap = low, high
    low, high = max(0, low - 1), min(len(b), high + 1)
    if not 0 < high - low <= SHOWN or end - first > SHOWN:
        return Refused(reason)
    return Refused(reason, low + 1, first + 1, tuple(a[first:end]), tuple(b[low:high]), gap)


def _shifted(lines: Sequence[str], was: str, now: str) -> list[str] | None:
    if was == now:
        return list(lines)
    if any(quotes in line for line in lines for quotes in ('"""', "'''")):
        return None
    out = []
    for line in lines:
        if line.strip() and not line.startswith(was):
            return None
        out.append(now + line[len(was) :] if line.strip() else line)
    return out


def _laid_anew(
    old: FileText, new: FileText, ours: tuple[int, int], theirs: tuple[int, int], hunks: Sequence[Hunk]
) -> Placed | None:
    """The changed lines in another layout: the same tokens, once in either region, over whole lines."""
    if any(hunk.start == hunk.stop for hunk in hunks) or old.outline_or_none() is None:
        return None
    a, b = _lines(old, ours), _lines(new, theirs)
    low, high = hunks[0].start, hunks[-1].stop
    words = _code(old).between(ours[0] + low, ours[0] + high)
    if len(words) < 4:
        return None
    before, now = (
        [(token, line - first) for token, line in _code(text).tokens if first <= line < end]
        for text, (first, end) in ((old, ours), (new, theirs))
    )
    if len(_occurrences(words, [word for word, _ in before])) != 1:
        return None
    found = _occurrences(words, [word for word, _ in now])
    if len(found) != 1:
        return None
    start, stop = found[0], found[0] + len(words)
    first, last = now[start][1], now[stop - 1][1]
    gap = Alignment(a, b, (_keys(old, ours), _keys(new, theirs))).around(low, high)
    if not gap[0] <= first <= last < gap[1]:
        return None  # the same code somewhere else
    others = [token for token, line in [*now[:start], *now[stop:]] if first <= line <= last and token not in BLOCKS]
    if others:
        return None  # it shares its lines with other code
    merged = _merged(a, hunks)
    lines = _shifted(merged.new, indent_of(a[low]), indent_of(b[first]))
    if lines is None:
        return None
    change = Hunk(first, last + 1, tuple(lines))
    return Placed(first, last + 1, lines, 0, ["the same code, laid out anew"], [change])


def _occurrences(words: Sequence[str], text: Sequence[str]) -> list[int]:
    size = len(words)
    return [at for at in range(len(text) - size + 1) if text[at] == words[0] and list(text[at : at + size]) == words]


def laid_out_otherwise(text: FileText, code: str) -> list[int]:
    """The lines (1-based) of a file where the tokens of ``code`` stand, however they are laid out; comments aside."""

    def plain(tokens: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
        return [(t, n) for t, n in tokens if t not in BLOCKS and t != "\n" and not t.startswith("#")]

    wanted = [token for token, _ in plain(code_of(code, True).tokens)]
    found = plain(_code(text).tokens)
    if len(wanted) < 4 or text.outline_or_none() is None:
        return []
    return [found[at][1] + 1 for at in _occurrences(wanted, [token for token, _ in found])]
