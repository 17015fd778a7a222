"""What comes near to an anchor that does not match: other files, similar lines, names and headers spelled like it.

Imported only on failure. Bounded by counts, never by a clock: ``difflib`` sees the best few windows only, and the other
files are searched for a substring, up to a number of bytes.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from patchkit.edit.indent import dedent
from patchkit.edit.parse import PARSE_ERRORS
from patchkit.edit.source import Source
from patchkit.edit.spans import Span
from patchkit.edit.text import find_text
from patchkit.edit.uniqueness import Header, headers, inside_any, quote
from patchkit.errors import PlanError
from patchkit.tuples import NamedTuple
from patchkit.visible import visible

if TYPE_CHECKING:
    from patchkit.edit.explain import Problem
    from patchkit.edit.outline import Outline
    from patchkit.edit.parse import Parse

ELSEWHERE_LIMIT = 5
DIFF_LIMIT = 12
WINDOWS = 12
"""Windows of a file that are compared with difflib."""
WINDOW_LINES = 1200
"""Lines of all windows together: a longer anchor is compared with fewer of them."""
PLAUSIBLE = 0.6
"""Below this similarity a place is not worth a look."""

_WORD = re.compile(r"\w+")
_TOKEN = re.compile(r"\$\$\$\w*|\$\w+|\w+|[^\w\s]")
_HOLE = re.compile(r"\$\$\$\w*|\$\w+")


# -- other files -------------------------------------------------------------------------------------------------------


class Elsewhere(NamedTuple):
    """A place in another file; ``whole`` is False where only the anchor's longest line stands there."""

    path: str
    line: int
    whole: bool


def elsewhere(problem: Problem, siblings: Iterable[tuple[str, bytes]], budget: int) -> tuple[list[Elsewhere], bool]:
    """Other files with the anchor (or, in none of them, with its longest line), and whether all were searched.

    A substring search over ``(path, data)`` pairs that stops after ``budget`` bytes, or with
    :data:`ELSEWHERE_LIMIT` files. Anchors that are syntax patterns are searched for by their longest fixed text, and
    proved with a parse of the file while that stays cheap.
    """
    anchor = problem.anchor.replace("\r\n", "\n").replace("\r", "\n")
    holes = problem.kind == "match" and _HOLE.search(anchor) is not None
    lines = [line.strip() for part in anchor.split("\n") for line in (_HOLE.split(part) if holes else [part])]
    longest = max(lines, key=len)
    if len(longest) < 4:
        return [], True
    line_key = longest.encode("utf-8", "surrogateescape")
    exact: list[Elsewhere] = []
    partial: list[Elsewhere] = []
    parses = 400_000
    for path, data in siblings:
        if path == problem.source.path:
            continue
        budget -= len(data)
        if budget < 0:
            return exact or partial, False
        at = data.find(line_key)
        if at < 0:
            continue
        if problem.kind == "match":
            parses -= len(data)
            lines_found = _matches_in(problem, path, data) if parses >= 0 else []
        else:
            source = Source(data, path=path)
            lines_found = [source.line(s.start) for s in find_text(source, anchor, [Span(0, len(source.text))])]
        if lines_found:
            exact.append(Elsewhere(path, lines_found[0], True))
            if len(exact) == ELSEWHERE_LIMIT:
                break
        elif len(longest) >= 20 and len(partial) < ELSEWHERE_LIMIT and not holes:
            partial.append(Elsewhere(path, data.count(b"\n", 0, at) + 1, False))
    return exact or partial, True


def _matches_in(problem: Problem, path: str, data: bytes) -> list[int]:
    from patchkit.edit.matcher import find_pattern
    from patchkit.edit.outline import Outline

    source = Source(data, path=path)
    if problem.pattern is None or not source.decodes:
        return []
    try:
        outline = Outline(source, problem.parse(source.text))
        found = find_pattern(outline, problem.pattern, [Span(0, len(source.text))])
    except (*PARSE_ERRORS, PlanError):
        return []
    return [source.line(match.span.start) for match in found]


# -- similar lines -----------------------------------------------------------------------------------------------------


class Candidate(NamedTuple):
    """Lines ``first`` to ``last`` (1-based), how much of the anchor they have (0 to 1), and a diff of the two."""

    first: int
    last: int
    similarity: float
    diff: list[str]
    within: bool


class _Anchor(NamedTuple):
    """What is compared: the anchor's lines, its words by line, and where windows may begin (None: anywhere)."""

    lines: list[str]
    words: dict[str, list[int]]
    partial: bool
    syntax: bool


def nearest(problem: Problem, *, exclude: Sequence[Span] = (), limit: int = 3) -> list[Candidate]:
    """The places most like the anchor, best first: those within the regions, then others if none there is close."""
    source = problem.source
    text = dedent(problem.anchor) if problem.kind == "match" else problem.anchor
    parts = text.strip("\n").split("\n")
    words: dict[str, list[int]] = defaultdict(list)
    for index, line in enumerate(parts):
        for word in dict.fromkeys(_WORD.findall(_HOLE.sub(" ", line) if problem.kind == "match" else line)):
            if len(words[word]) < 8:
                words[word].append(index)
    if not words:
        return []
    anchor = _Anchor(parts, words, not problem.anchor.endswith("\n") and len(parts) == 1, problem.kind == "match")
    lines = source.text.split("\n")
    starts = _statement_starts(problem) if anchor.syntax else None
    inner = {
        line
        for region in problem.regions
        for line in range(source.line(region.start), source.line(max(region.start, region.end - 1)) + 1)
    }
    taken = [(source.line(span.start), source.line(max(span.start, span.end - 1))) for span in exclude]
    found = _search(anchor, lines, inner, starts, taken, within=True)
    if (not found or found[0].similarity < 0.8) and len(inner) < len(source.starts):
        outer = set(range(1, len(source.starts) + 1)) - inner
        found += _search(anchor, lines, outer, starts, taken, within=False)
    found.sort(key=lambda c: (-c.similarity, c.first))
    best: list[Candidate] = []
    for candidate in found:
        overlaps = any(c.first <= candidate.last and candidate.first <= c.last for c in best)
        if candidate.similarity < PLAUSIBLE or overlaps:
            continue
        if best and candidate.similarity < best[0].similarity - 0.25:
            break
        best.append(candidate._replace(diff=_diff(anchor, lines[candidate.first - 1 : candidate.last])))
        if len(best) == limit:
            break
    return best


def _statement_starts(problem: Problem) -> dict[int, int]:
    """The line of each statement of the file, with the last line of a simple one (0 for one with blocks)."""
    out: dict[int, int] = {}
    outline = problem.outline
    if outline is None:
        return out
    stack = list(outline.tree.body)
    while stack:
        node = stack.pop()
        below = [child for field in ("body", "orelse", "finalbody") for child in getattr(node, field, None) or []]
        for holder in (*(getattr(node, "handlers", None) or ()), *(getattr(node, "cases", None) or ())):
            below += holder.body
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", None) or ())])
        out[first] = 0 if below else max(node.end_lineno or first, out.get(first, 0))
        stack += below
    return out


def _search(
    anchor: _Anchor,
    lines: list[str],
    allowed: set[int],
    starts: dict[int, int] | None,
    taken: Sequence[tuple[int, int]],
    *,
    within: bool,
) -> list[Candidate]:
    """Vote for window starts by shared words (rare ones weigh more), then compare the best few windows."""
    places: dict[str, list[int]] = defaultdict(list)
    for number in sorted(allowed):
        for word in set(_WORD.findall(lines[number - 1])):
            places[word].append(number)
    weights = {word: places[word] for word in anchor.words if word in places}
    if len(weights) < 2:
        weights = _close_words(anchor, places)
    order = sorted(starts) if starts is not None else []
    votes: dict[int, float] = defaultdict(float)
    for word, numbers in weights.items():
        weight = 1.0 / (1 + len(numbers)) * min(len(word), 8)
        for number in numbers[:3000]:
            for index in anchor.words[word]:
                start = number - index
                if starts is not None:
                    at = bisect_right(order, start) - 1
                    start = order[at] if at >= 0 else 0
                votes[start] += weight
    size = len(anchor.lines)
    ranked = sorted(votes, key=lambda s: (-(votes[s] + (votes.get(s - 1, 0) + votes.get(s + 1, 0)) / 2), s))
    out: list[Candidate] = []
    windows = max(1, min(WINDOWS, WINDOW_LINES // size))
    for start in [start for start in ranked if start in allowed][:windows]:
        lasts = {start + size - 1}
        if starts is not None:
            lasts = {max(start + size - 1, starts.get(start, 0))}
        elif 1 < size <= WINDOW_LINES // WINDOWS:
            lasts |= {start + size - 2, start + size, start + size + 1}
        best: Candidate | None = None
        for last in sorted(lasts):
            stop = min(last, len(lines))
            if any(first <= stop and start <= end for first, end in taken):
                continue
            score = similarity(anchor, lines[start - 1 : stop])
            if best is None or score > best.similarity:
                best = Candidate(start, stop, score, [], within)
        if best is not None:
            out.append(best)
    return out


def _close_words(anchor: _Anchor, places: dict[str, list[int]]) -> dict[str, list[int]]:
    """For an anchor that shares hardly a word with the file: the places of words spelled like its longest ones."""
    import difflib

    known = [word for word in places if len(word) > 3]
    out = {word: places[word] for word in anchor.words if word in places}
    for word in sorted((w for w in anchor.words if len(w) > 3 and w not in out), key=len, reverse=True)[:3]:
        for close in difflib.get_close_matches(word, known, 2, 0.75):
            out.setdefault(word, [])
            out[word] = sorted({*out[word], *places[close]})
    return out


def similarity(anchor: _Anchor, found: list[str]) -> float:
    """How much of the two is the same, from 0 to 1; blanks do not count, and ``$X`` equals anything."""
    ours, theirs = "\n".join(anchor.lines), "\n".join(found)
    if anchor.syntax:
        return _hole_ratio(_TOKEN.findall(ours), _TOKEN.findall(theirs))
    a, b = " ".join(ours.split()), " ".join(theirs.split())
    if a == b:
        return 1.0
    if len(a) > 4000 or len(b) > 4000:
        return _weighted([line.strip() for line in anchor.lines], [line.strip() for line in found])
    if len(a) > 240 or len(b) > 240:
        return _weighted(_TOKEN.findall(a), _TOKEN.findall(b))
    import difflib

    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    ratio = matcher.ratio()
    if anchor.partial and len(b) > len(a):
        for block in matcher.get_matching_blocks():
            begin = max(0, block.b - block.a)
            piece = b[begin : begin + len(a)]
            ratio = max(ratio, difflib.SequenceMatcher(None, a, piece, autojunk=False).ratio())
    return ratio


def _weighted(a: list[str], b: list[str]) -> float:
    import difflib

    total = sum(map(len, a)) + sum(map(len, b))
    # From 200 items on, autojunk leaves out what is on every other line: blanks, brackets.
    blocks = difflib.SequenceMatcher(None, a, b).get_matching_blocks()
    same = sum(len(item) for block in blocks for item in a[block.a : block.a + block.size])
    return 2 * same / total if total else 0.0


def _hole_ratio(pattern: list[str], tokens: list[str]) -> float:
    """The ratio of a pattern's tokens to code's, where code that stands for a metavariable does not count."""
    import difflib

    tokens = tokens[:2000]
    same = missing = 0.0
    for tag, a, a_end, b, b_end in difflib.SequenceMatcher(None, pattern, tokens, autojunk=False).get_opcodes():
        fixed = [token for token in pattern[a:a_end] if not _HOLE.fullmatch(token)]
        if tag == "equal":
            same += 2 * sum(map(len, fixed))
            continue
        ours, theirs = "".join(fixed), "".join(tokens[b:b_end]) if len(fixed) == a_end - a else ""
        ratio = difflib.SequenceMatcher(None, ours[:200], theirs[:200], autojunk=False).ratio() if theirs else 0.0
        same += ratio * (len(ours) + len(theirs))
        missing += (1 - ratio) * (len(ours) + len(theirs))
    return same / (same + missing) if same else 0.0


def _diff(anchor: _Anchor, found: list[str]) -> list[str]:
    """The differing lines with one line of context: ``-`` the anchor's, ``+`` the file's; escaped, cut to 12 lines."""
    import difflib

    ours, theirs = anchor.lines, found
    if anchor.syntax or anchor.partial:
        ours, theirs = (dedent("\n".join(lines)).split("\n") for lines in (ours, theirs))
    out: list[str] = []
    for line in list(difflib.unified_diff(ours, theirs, n=1, lineterm=""))[2:]:
        if not line.startswith("@@"):
            out.append(line[0] + quote(line[1:]))
        elif out:
            out.append(" ...")
    if len(out) > DIFF_LIMIT:
        out[DIFF_LIMIT - 1 :] = [f" ... ({len(out) - DIFF_LIMIT + 1} more lines)"]
    return out


# -- names and headers -------------------------------------------------------------------------------------------------


def near_scopes(outline: Outline, scope: str) -> list[str]:
    """Qualified names that ``scope`` may be meant for, likeliest first, at most four."""
    import difflib

    names = outline.qualnames()
    cleaned = scope.replace(".<locals>", "").replace("()", "").replace("::", ".")
    parts = cleaned.split(".")
    known = set(names)
    suffixes = [".".join(parts[index:]) for index in range(len(parts))]
    likely = [name for name in suffixes if name in known and name != scope][:1]
    folded = [name for name in names if name.lower() == cleaned.lower()]
    same_last = [name for name in names if name.rpartition(".")[2] == parts[-1]]
    same_last.sort(key=lambda name: -difflib.SequenceMatcher(None, cleaned, name).ratio())
    # A long prefix in common makes every method of a class "close": the last components must be alike too.
    close = [
        name
        for name in difflib.get_close_matches(cleaned, names, 12, 0.6)
        if difflib.SequenceMatcher(None, parts[-1], name.rpartition(".")[2]).ratio() >= 0.5
    ]
    return list(dict.fromkeys([*likely, *folded, *same_last[:3], *close[:3]]))[:4]


def binding_of(outline: Outline, name: str) -> str | None:
    """Where a name that no def or class has is bound by an import or an assignment at module level."""
    for node in outline.tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            if any((alias.asname or alias.name.partition(".")[0]) == name for alias in node.names):
                origin = getattr(node, "module", None)
                source = f" from {visible(origin)}: patch the file that defines it" if origin else ""
                return f"{visible(name)} is imported at line {node.lineno}{source}"
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                return f"{visible(name)} is assigned at line {node.lineno}; a scope must be a def or a class"
    return None


def near_headers(outline: Outline, header: str, regions: Sequence[Span], parse: Parse) -> list[Header]:
    """Headers within ``regions`` that are spelled like ``header``; each is proved to be found as ``inside``."""
    import difflib

    wanted = header.strip().removesuffix("...").strip().removesuffix(":") + ":"
    known: dict[str, Header] = {}
    for known_header in headers(outline):
        if inside_any(regions, known_header.block):
            known.setdefault(known_header.text, known_header)
    near = []
    for text in difflib.get_close_matches(wanted, known, 6, 0.5):
        try:
            blocks = outline.blocks(text, parse)
        except ValueError:
            continue
        if any(inside_any(regions, Span(block.start, block.start)) for block in blocks):
            near.append(known[text])
        if len(near) == 3:
            break
    return near
