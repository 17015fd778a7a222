"""Two versions of a definition, line against line: which stands where, what was renamed, what was laid out anew."""

from __future__ import annotations

import difflib
import keyword
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Literal

from patchkit.tuples import NamedTuple

_NAME = re.compile(r"[^\W\d]\w*")
#: A name in code, or a string or comment, which is passed over whole: what it says is no name.
_CODE_NAME = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\#.*|[^\W\d]\w*""")
_COMMENT = re.compile(r"(?:^|\s)#[^'\"]*$")

CONTEXT = 5
"""Lines on either side that may tell one of several equal runs from the others."""
VOTES = 2
"""Lines that must say so before a name is believed to be another one now."""
PLAIN = 12
"""Letters and digits that a run must have to be believed by itself, with none of its neighbours there any more."""


class Run(NamedTuple):
    """First line and end in the new text, the indentation before and now, why it is the place, and on how many sides
    (0 to 2) its neighbours are as they were.
    """

    first: int
    end: int
    was: str
    now: str
    why: str
    sides: int


class Alignment:
    """The lines of two texts that stand for each other: by their code, whatever the indentation; blank ones do not.

    ``keys`` are the lines less their layout (:class:`patchkit.author.tokens.Code`), where they are known: a line of a
    string has none.
    """

    def __init__(
        self, a: Sequence[str], b: Sequence[str], keys: tuple[Sequence[str], Sequence[str]] | None = None
    ) -> None:
        self.a = [line.strip() for line in a] if keys is None else list(keys[0])
        self.b = [line.strip() for line in b] if keys is None else list(keys[1])
        self._raw_a, self._raw_b = a, b
        matcher = difflib.SequenceMatcher(None, self.a, self.b, autojunk=False)
        self.to: dict[int, int] = {}
        for i, j, size in matcher.get_matching_blocks():
            self.to.update((i + k, j + k) for k in range(size) if self.a[i + k])

    def allows(self, i: int, j: int) -> bool:
        """Whether line ``j`` of the new text can be line ``i`` of the old: none of their neighbours say otherwise."""
        own = self.to.get(i)
        if own is not None:
            return own == j
        above = max((k for k in self.to if k < i), default=None)
        below = min((k for k in self.to if k > i), default=None)
        return (above is None or self.to[above] < j) and (below is None or j < self.to[below])

    def run(self, first: int, end: int) -> Run | str:
        """Where lines ``first`` to ``end`` stand, all of them, one after the other; or why that is not sure."""
        code = [i for i in range(first, end) if self.a[i]]
        if not code:
            return self.gap(first, None, size=end - first)
        lead = code[0]
        there = self.to.get(lead)
        if there is None or any(self.to.get(i) != there + i - lead for i in code):
            return "lines that the edit changes are not there any more, or were changed"
        start = there - (lead - first)
        stop = start + end - first
        if start < 0 or stop > len(self.b) or any(self.b[start + k] != self.a[first + k] for k in range(end - first)):
            return "the blank lines among those that the edit changes were changed"
        why = self._sure(first, end, start)
        if why is None:
            return "lines like those that the edit changes stand there more or less often than before"
        sides = bool(self._shared(first, start, -1)) + bool(self._shared(end, stop, 1))
        return Run(start, stop, indent_of(self._raw_a[lead]), indent_of(self._raw_b[there]), why, sides)

    def around(self, first: int, end: int) -> tuple[int, int]:
        """The lines of the new text between those that stand for the neighbours of ``first`` to ``end``."""
        above = max((i for i in self.to if i < first), default=None)
        below = min((i for i in self.to if i >= end), default=None)
        low = 0 if above is None else self.to[above] + 1
        return low, len(self.b) if below is None else self.to[below]

    def gap(self, at: int, tie: Literal["above", "below"] | None, *, size: int = 0) -> Run | str:
        """Where the gap before line ``at`` is; with ``size``, that of so many blank lines from there on."""
        above = max((i for i in range(min(at, len(self.a))) if self.a[i]), default=None)
        below = min((i for i in range(at, len(self.a)) if self.a[i]), default=None)
        j_above = None if above is None else self.to.get(above)
        j_below = None if below is None else self.to.get(below)
        if above is not None and below is not None and j_above is not None and j_below is not None:
            why = self._sure(above, below + 1, j_above) if j_below - j_above == below - above else None
            if why is not None:
                if self._depth(above, below, self._raw_a) != self._depth(j_above, j_below, self._raw_b):
                    return "the lines above and below the place are indented otherwise to each other"
                start = j_above + at - above
                return Run(start, start + size, *self._indents(above, j_above, below, j_below, tie), why, 2)
        if size or tie is None:
            return "the lines around the place were changed"
        anchor, there = (above, j_above) if tie == "above" else (below, j_below)
        if anchor is None or there is None or self._sure(anchor, anchor + 1, there) is None:
            return "the line that the edit stands at was changed, or is not the only one of its kind any more"
        start = there + at - anchor
        between = self.b[there + 1 : start] if tie == "above" else self.b[start:there]
        if start < 0 or any(between):
            return "there is other code at the place now"
        indents = indent_of(self._raw_a[anchor]), indent_of(self._raw_b[there])
        return Run(
            start, start, *indents, "the line that it stands at is the same, the one on its other side is not", 1
        )

    def _depth(self, above: int, below: int, lines: Sequence[str]) -> int:
        return len(indent_of(lines[below])) - len(indent_of(lines[above]))

    def _indents(
        self, above: int, j_above: int, below: int, j_below: int, tie: Literal["above", "below"] | None
    ) -> tuple[str, str]:
        if tie == "above":
            return indent_of(self._raw_a[above]), indent_of(self._raw_b[j_above])
        return indent_of(self._raw_a[below]), indent_of(self._raw_b[j_below])

    def _sure(self, first: int, end: int, start: int) -> str | None:
        """Why lines ``first`` to ``end`` are those from ``start`` on; None where they might be others."""
        block = self.a[first:end]
        before, now = _places(block, self.a), _places(block, self.b)
        above, below = self._shared(first, start, -1), self._shared(end, start + end - first, 1)
        if len(before) == len(now) == 1:
            if above and below:
                return "the same lines, once before and now, between the same ones"
            if above or below or sum(map(str.isalnum, "".join(block))) >= PLAIN:
                return "the same lines, once before and now"
            return None
        if len(before) == len(now) and before.index(first) == now.index(start) and (above or below):
            return f"the same lines, number {before.index(first) + 1} of {len(before)} before and now"
        for size in range(1, above + below + 1):
            for up in range(max(0, size - below), min(above, size) + 1):
                wider = self.a[first - up : end + size - up]
                if len(_places(wider, self.a)) == len(_places(wider, self.b)) == 1:
                    return "the same lines beside the same ones, which stand together once before and now"
        return None

    def _shared(self, i: int, j: int, step: int) -> int:
        """How many lines above (``step`` -1) or below stand for each other without a gap, at most :data:`CONTEXT`.

        Blank ones among them count; where there are no others, the answer is 0.
        """
        size, code = 0, False
        if step < 0:
            i, j = i - 1, j - 1
        while size < CONTEXT and 0 <= i < len(self.a) and 0 <= j < len(self.b):
            if self.a[i] != self.b[j] or (self.a[i] and self.to.get(i) != j):
                break
            code = code or bool(self.a[i])
            i, j, size = i + step, j + step, size + 1
        return size if code else 0


def _places(block: Sequence[str], lines: Sequence[str]) -> list[int]:
    size = len(block)
    first = block[0]
    wanted = list(block)
    return [at for at, line in enumerate(lines) if line == first and list(lines[at : at + size]) == wanted]


def indent_of(line: str) -> str:
    """The blanks at the beginning of a line."""
    return line[: len(line) - len(line.lstrip(" \t"))]


def renames(a: Sequence[str], b: Sequence[str]) -> dict[str, str]:
    """Names of the old text that bear another name throughout the new one; {} where that is not beyond doubt.

    A name counts as renamed when it is gone, the new one was not there before, and all pairs of lines that differ by
    names alone, at least :data:`VOTES`, say the same. What stands in strings and comments is no name.
    """
    ours, theirs = _all_names(a), _all_names(b)
    gone, born = ours - theirs, theirs - ours
    if not gone or not born:
        return {}
    keys_a, keys_b = ([_key(line, changed) for line in lines] for lines, changed in ((a, gone), (b, born)))
    votes: dict[str, Counter[str]] = {}
    matcher = difflib.SequenceMatcher(None, keys_a, keys_b, autojunk=False)
    for i, j, size in matcher.get_matching_blocks():
        for k in range(size):
            pairs = zip(_code_names(a[i + k]), _code_names(b[j + k]), strict=True)
            for x, y in {pair for pair in pairs if pair[0] != pair[1]}:
                votes.setdefault(x, Counter())[y] += 1
    found = {x: y for x, counts in votes.items() if len(counts) == 1 for y, n in counts.items() if n >= VOTES}
    return found if len(set(found.values())) == len(found) else {}


def _code_names(line: str) -> list[str]:
    return [found for found in _CODE_NAME.findall(line) if found[0] not in "'\"#"]


def _all_names(lines: Sequence[str]) -> set[str]:
    """The names anywhere, strings and comments too: one that is spoken of is not gone."""
    return {name for line in lines for name in _NAME.findall(line) if not keyword.iskeyword(name)}


def _key(line: str, changed: set[str]) -> str:
    """The line with every name in code that is gone (or new) made alike."""
    return _CODE_NAME.sub(lambda found: "\0" if found.group() in changed else found.group(), line.strip())


def substitute(line: str, changed: Mapping[str, str]) -> str:
    """The line under the new names."""
    return _CODE_NAME.sub(lambda found: changed.get(found.group(), found.group()), line)


def opens_block(line: str) -> bool:
    """Whether a line is, or ends, the header of a block."""
    return _COMMENT.sub("", line).rstrip().endswith(":")


def names_of(lines: Sequence[str]) -> set[str]:
    """The names in code, those in comments not."""
    return _all_names([_COMMENT.sub("", line) for line in lines])


@lru_cache(maxsize=8)
def names_in(text: str) -> frozenset[str]:
    """The names in a file's code: what edit after edit asks for."""
    return frozenset(names_of(text.split("\n")))
