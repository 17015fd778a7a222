"""Which line of a new release is which line of an old one, told without patchkit: by git, and by what stands once.

Git compares the two files with its four algorithms, with and without its heuristic for indents, forwards and with both
files upside down, and again blind to blanks. Where they all agree, and nothing that stands once on either side says
otherwise, that is the truth. Where they do not, only lines that stand once on either side together with a neighbour
decide. All else is unknown, and counted apart.
"""

from __future__ import annotations

import ast
import io
import os
import re
import subprocess
import tokenize
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

ALGORITHMS = ("myers", "minimal", "patience", "histogram")
TELLING = 12
"""Letters and digits that lines must have to be evidence by themselves."""
WINDOW = 4
"""Lines, blank ones aside, that are looked at together."""
NEAR = 3
"""Lines on either side that speak for a line's place where git's comparisons do not."""

_HUNK = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_GIT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}


class Truth(NamedTuple):
    """Where a line is in the new release.

    ``state`` is "at" (lines ``line`` to ``end``, 0-based, half open, of ``path``), "gone" (removed, or written anew) or
    "unknown"; ``how`` says what decided it.
    """

    state: str
    how: str
    path: str = ""
    line: int = -1
    end: int = -1


class Sources:
    """The Python files of one release as lines, and where each line of them stands."""

    def __init__(self, files: Mapping[str, Sequence[str]]) -> None:
        self.files = files
        self._pairs: dict[tuple[str, str], list[tuple[str, int, int]]] | None = None

    def pairs(self) -> Mapping[tuple[str, str], list[tuple[str, int, int]]]:
        """Every two lines that follow each other, blank ones and indentation aside: the path and their numbers."""
        if self._pairs is None:
            self._pairs = {}
            for path, lines in self.files.items():
                code = _code(lines)
                for (at, one), (then, other) in pairwise(code):
                    self._pairs.setdefault((one, other), []).append((path, at, then))
        return self._pairs


def truths(old: Sources, new: Sources, path: str, wanted: Sequence[int], folder: str) -> dict[int, Truth]:
    """The truth of some lines of one file that both releases have; ``folder`` is for scratch files."""
    return _File(old, new, path, folder).of(wanted)


def _code(lines: Sequence[str]) -> list[tuple[int, str]]:
    return [(number, line.strip()) for number, line in enumerate(lines) if line.strip()]


def _telling(lines: Iterable[str]) -> bool:
    return sum(map(str.isalnum, "".join(lines))) >= TELLING


def git_map(a: Sequence[str], b: Sequence[str], folder: str, options: Sequence[str], *, upside_down: bool) -> list[int]:
    """The line of ``b`` for each of ``a`` (-1: none), by one comparison of git's."""
    for name, lines in (("a", a), ("b", b)):
        with open(os.path.join(folder, name), "w", encoding="utf-8", newline="") as file:
            file.write("".join(f"{line}\n" for line in (reversed(lines) if upside_down else lines)))
    command = ["git", "diff", "--no-index", "--no-color", "--no-ext-diff", "--text", "-U0", *options, "a", "b"]
    done = subprocess.run(command, cwd=folder, env={**os.environ, **_GIT}, capture_output=True)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr.decode())
    out = [-1] * len(a)
    at = to = 0
    hunks = [tuple(int(part) if part else 1 for part in found) for found in _HUNK.findall(done.stdout)]
    for start, size, goal, length in [*hunks, (len(a) + 1, 0, len(b) + 1, 0)]:
        # An empty side is named by the line before it.
        first = start - 1 if size else start
        if start == len(a) + 1:
            first = len(a)
        out[at:first] = range(to, to + first - at)
        at, to = first + size, (goal - 1 if length else goal) + length
    if upside_down:
        last = len(b) - 1
        out = [-1 if there < 0 else last - there for there in reversed(out)]
    return out


class _File:
    def __init__(self, old: Sources, new: Sources, path: str, folder: str) -> None:
        self.old, self.new, self.path, self.folder = old, new, path, folder
        self.a, self.b = old.files[path], new.files[path]
        plain = [[f"--diff-algorithm={name}"] for name in ALGORITHMS]
        self.plain = [self._map(options) for options in [*plain, ["--minimal", "--no-indent-heuristic"]]]
        self.plain += [self._map(options, upside_down=True) for options in plain[1:]]
        self.blind = [self._map([*options, "-w"]) for options in plain[1:]]
        self.blind += [self._map([*options, "-w"], upside_down=True) for options in plain[1:]]
        self.used = {there for one in self.plain for there in one if there >= 0}
        self.code_a, self.code_b = _code(self.a), _code(self.b)
        self.rank = {number: rank for rank, (number, _) in enumerate(self.code_a)}
        self.rank_b = {number: rank for rank, (number, _) in enumerate(self.code_b)}
        self.windows = [_windows(self.code_a), _windows(self.code_b)]
        self._laid: dict[int, tuple[int, int]] | None = None

    def _map(self, options: Sequence[str], *, upside_down: bool = False) -> list[int]:
        return git_map(self.a, self.b, self.folder, options, upside_down=upside_down)

    def of(self, wanted: Sequence[int]) -> dict[int, Truth]:
        return {line: self._one(line) for line in wanted}

    def _one(self, line: int) -> Truth:
        votes = {one[line] for one in self.plain}
        if votes == {-1}:
            return self._gone(line)
        return self._agreed(line, votes, "the same line")

    def _here(self, line: int, how: str) -> Truth:
        return Truth("at", how, self.path, line, line + 1)

    def _agreed(self, line: int, votes: set[int], how: str) -> Truth:
        alone, beside = self._evidence(line)
        if len(votes) > 1:
            once = beside or alone
            if len(once) == 1 and once <= votes:
                return self._here(min(once), f"{how}, by what stands once")
            named = {there for there in votes - {-1} if self._once_in_definition(line, there)}
            if len(named) == 1 and not once - named:
                return self._here(min(named), f"{how}, by its function")
            return Truth("unknown", "git's comparisons do not agree")
        (there,) = votes
        if beside - {there}:
            return Truth("unknown", "what stands once says that it is elsewhere")
        if there in beside or alone == {there} or self._supported(line, there):
            return self._here(there, how)
        return Truth("unknown", "it stands alone among changed lines, and is not the only one of its kind")

    def _evidence(self, line: int) -> tuple[set[int], set[int]]:
        """Where it stands by itself, once on either side; and where together with its neighbours."""
        rank = self.rank[line]
        alone: set[int] = set()
        beside: set[int] = set()
        for size in range(1, WINDOW + 1):
            for first in range(max(0, rank - size + 1), rank + 1):
                window = tuple(text for _, text in self.code_a[first : first + size])
                places = [one.get(window, ()) for one in self.windows]
                if len(window) == size and len(places[0]) == len(places[1]) == 1 and _telling(window):
                    (alone if size == 1 else beside).add(self.code_b[places[1][0] + rank - first][0])
        return alone, beside

    def _supported(self, line: int, there: int) -> bool:
        """Whether, by every comparison, the line above it or below it is there as well."""
        rank, goal = self.rank[line], self.rank_b[there]
        for step in (-1, 1):
            if 0 <= rank + step < len(self.code_a) and 0 <= goal + step < len(self.code_b):
                i, j = self.code_a[rank + step][0], self.code_b[goal + step][0]
                if self.code_a[rank + step][1] == self.code_b[goal + step][1] and all(
                    one[i] in (j, -1) for one in [*self.plain, *self.blind]
                ):
                    return True
        return False

    def _once_in_definition(self, line: int, there: int) -> bool:
        """Whether both lie in a function or class of one name, and the line stands in it once before and now."""
        places = [
            [
                at
                for at in range(len(lines))
                if names[at] == names[number] and lines[at].strip() == lines[number].strip()
            ]
            for lines, names, number in ((self.a, self.names_a, line), (self.b, self.names_b, there))
        ]
        name = self.names_a[line]
        return bool(name) and name == self.names_b[there] and places == [[line], [there]]

    @cached_property
    def names_a(self) -> list[str]:
        return _definitions(self.a)

    @cached_property
    def names_b(self) -> list[str]:
        return _definitions(self.b)

    def _gone(self, line: int) -> Truth:
        votes = {one[line] for one in self.blind}
        if votes != {-1}:
            return self._agreed(line, votes, "indented otherwise")
        text = self.a[line].strip()
        _, beside = self._evidence(line)
        if len(beside) == 1 and not beside & self.used:
            return self._here(min(beside), "moved")
        alike = [j for j, other in self.code_b if other == text and j not in self.used and self._beside(line, j)]
        if beside or alike:
            return Truth("unknown", "it may have moved within its file")
        elsewhere = self._elsewhere(line)
        if elsewhere is not None:
            return elsewhere
        laid = self._laid_anew().get(line)
        if laid == (-1, -1):
            return Truth("unknown", "it may be laid out anew")
        if laid is not None:
            return Truth("at", "laid out anew", self.path, *laid)
        renamed = self._renamed(line)
        if renamed is not None:
            return renamed
        return Truth("gone", "removed or written anew")

    def _beside(self, line: int, there: int) -> bool:
        """Whether a line that is new and says the same has a neighbour like the old one's, or says much by itself."""
        rank, goal = self.rank[line], self.rank_b[there]
        sides = [
            self.code_a[rank + step][1] == self.code_b[goal + step][1]
            for step in (-1, 1)
            if 0 <= rank + step < len(self.code_a) and 0 <= goal + step < len(self.code_b)
        ]
        return any(sides) or _telling([self.a[line]])

    def _elsewhere(self, line: int) -> Truth | None:
        """Another file that has the line beside its neighbour, where the old release had not; None where none has."""
        rank = self.rank[line]
        found: set[tuple[str, int]] = set()
        for first in (rank - 1, rank):
            if not 0 <= first < len(self.code_a) - 1:
                continue
            pair = self.code_a[first][1], self.code_a[first + 1][1]
            before = {path for path, _, _ in self.old.pairs().get(pair, ())}
            if _telling(pair):
                found |= {
                    (path, at if first == rank else then)
                    for path, at, then in self.new.pairs().get(pair, ())
                    if path not in before
                }
        if not found:
            return None
        liked = sorted(((self._around(line, *place), place) for place in found), reverse=True)
        if len(liked) > 1 and (liked[0][0] < NEAR or liked[0][0] == liked[1][0]):
            return Truth("unknown", "it may have gone to another file")
        path, at = liked[0][1]
        return Truth("at", "went to another file", path, at, at + 1)

    def _around(self, line: int, path: str, there: int) -> int:
        """How many lines up and down are the same, at most :data:`NEAR` either way."""
        code = _code(self.new.files[path])
        rank, goal = self.rank[line], [number for number, _ in code].index(there)
        size = 0
        for step in (-1, 1):
            i, j = rank + step, goal + step
            while 0 <= i < len(self.code_a) and 0 <= j < len(code) and abs(i - rank) <= NEAR:
                if self.code_a[i][1] != code[j][1]:
                    break
                size, i, j = size + 1, i + step, j + step
        return size

    def _laid_anew(self) -> Mapping[int, tuple[int, int]]:
        """The lines whose code stands there in another layout, on lines of its own: from their tokens, by git.

        -1 where git's comparisons do not agree.
        """
        if self._laid is None:
            self._laid = {}
            ours, theirs = _tokens(self.a), _tokens(self.b)
            if ours is not None and theirs is not None:
                words = [[text for text, _ in one] for one in (ours, theirs)]
                maps = [
                    git_map(words[0], words[1], self.folder, [f"--diff-algorithm={name}"], upside_down=down)
                    for name in ALGORITHMS[1:]
                    for down in (False, True)
                ]
                self._laid = dict(_relaid(ours, theirs, maps))
        return self._laid

    def _renamed(self, line: int) -> Truth | None:
        """The line under other names: in a run of as many lines, of which it is the only one so like it."""
        low, high = line, line + 1
        while low and all(one[low - 1] < 0 for one in self.plain):
            low -= 1
        while high < len(self.a) and all(one[high] < 0 for one in self.plain):
            high += 1
        gaps = {
            ((one[low - 1] + 1) if low else 0, one[high] if high < len(self.a) else len(self.b)) for one in self.plain
        }
        if len(gaps) != 1:
            return None
        ((first, end),) = gaps
        alike = [j for j in range(first, end) if _other_names(self.a[line], self.b[j])]
        if len(alike) != 1 or not _telling([self.a[line]]):
            return None
        return self._here(alike[0], "under other names")


def _definitions(lines: Sequence[str]) -> list[str]:
    """The qualified name of the innermost function or class around each line; "" outside of all, and in no Python."""
    out = [""] * len(lines)

    def name(node: ast.AST, outer: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = outer
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = f"{outer}.{child.name}"
                first = min([child.lineno, *(one.lineno for one in child.decorator_list)])
                size = (child.end_lineno or first) - first + 1
                out[first - 1 : first - 1 + size] = [inner] * size
            name(child, inner)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            name(ast.parse("".join(f"{line}\n" for line in lines)), "")
        except (SyntaxError, ValueError, RecursionError):
            return [""] * len(lines)
    return out


def _windows(code: Sequence[tuple[int, str]]) -> dict[tuple[str, ...], list[int]]:
    out: dict[tuple[str, ...], list[int]] = {}
    texts = [text for _, text in code]
    for size in range(1, WINDOW + 1):
        for first in range(len(texts) - size + 1):
            out.setdefault(tuple(texts[first : first + size]), []).append(first)
    return out


def _other_names(a: str, b: str) -> bool:
    """Whether two lines differ by names alone, each for one."""
    pattern = re.compile(r"[^\W\d]\w*")
    if pattern.sub("\0", a.strip()) != pattern.sub("\0", b.strip()):
        return False
    pairs = set(zip(pattern.findall(a), pattern.findall(b), strict=True))
    return all(count == 1 for side in (0, 1) for count in Counter(pair[side] for pair in pairs).values())


def _tokens(lines: Sequence[str]) -> list[tuple[str, int]] | None:
    """Every token of code with its line, comments and commas before a closing bracket aside; None: it is no Python."""
    out: list[tuple[str, int]] = []
    aside = (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.NEWLINE, tokenize.ENDMARKER)
    try:
        for token in tokenize.generate_tokens(io.StringIO("".join(f"{line}\n" for line in lines)).readline):
            if token.type in aside:
                continue
            if out and token.string in (")", "]", "}") and out[-1][0] == ",":
                out.pop()
            text = token.string if token.start[0] == token.end[0] else f"\0{token.string!r}"
            out.append((text, token.start[0] - 1))
    except (tokenize.TokenError, SyntaxError):
        return None
    return out


def code_tokens(lines: Sequence[str]) -> list[str] | None:
    """What a text says, its layout and comments aside."""
    found = _tokens(lines)
    return None if found is None else [text for text, _ in found]


def _often(words: Sequence[str], text: Sequence[str]) -> int:
    """How often some tokens stand in a text."""
    return "".join(f"\1{word}\1" for word in text).count("".join(f"\1{word}\1" for word in words))


def _relaid(
    ours: Sequence[tuple[str, int]], theirs: Sequence[tuple[str, int]], maps: Sequence[Sequence[int]]
) -> Iterable[tuple[int, tuple[int, int]]]:
    by_line: dict[int, list[int]] = {}
    for at, (_, line) in enumerate(ours):
        by_line.setdefault(line, []).append(at)
    there: dict[int, list[int]] = {}
    for at, (_, line) in enumerate(theirs):
        there.setdefault(line, []).append(at)
    for line, tokens in by_line.items():
        goals = {tuple(one[at] for at in tokens) for one in maps}
        if len(tokens) < NEAR:
            continue
        if len(goals) != 1:
            words = [ours[at][0] for at in tokens]
            once = _telling(words) and all(_often(words, [text for text, _ in one]) == 1 for one in (ours, theirs))
            whole = {goal for goal in goals if -1 not in goal and goal[-1] - goal[0] == len(goal) - 1}
            if not once or len(whole) != 1:
                if any(-1 not in goal for goal in goals):
                    yield line, (-1, -1)
                continue
            goals = whole
        (goal,) = goals
        if goal[0] < 0 or list(goal) != list(range(goal[0], goal[0] + len(goal))):
            continue
        first, last = theirs[goal[0]][1], theirs[goal[-1]][1]
        if all(at in goal for number in range(first, last + 1) for at in there.get(number, ())):
            yield line, (first, last + 1)
