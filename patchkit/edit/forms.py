"""The same anchor in another form: other blanks, quotes, look-alikes, escapes, line breaks, case or code formatting.

Imported only on failure. The file is folded once, line by line, so that the cost is linear whatever the anchor is.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from patchkit.edit.indent import dedent
from patchkit.edit.parse import PARSE_ERRORS
from patchkit.edit.source import Source
from patchkit.edit.spans import Span
from patchkit.edit.text import find_text
from patchkit.edit.uniqueness import inside_any
from patchkit.errors import PlanError
from patchkit.tuples import NamedTuple
from patchkit.visible import visible

if TYPE_CHECKING:
    from patchkit.edit.explain import Problem

FORM_LIMIT = 3
CODE_LIMIT = 20_000
"""Characters of an anchor that is read as code, and a fiftieth of those of a file that is searched for it."""
_SCAN_LIMIT = 1000
"""Places looked at, so that an anchor that is everywhere in another form costs no more."""

_ODD_BLANKS = "\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"
_ZERO_WIDTH = "\u200b\u200c\u200d\u2060\ufeff\u00ad"
_SINGLE = "‘’‚′´"
_DOUBLE = "“”„″"
_DASHES = "‐‑‒–—−"
_LOOKALIKE: dict[int, str] = {
    **{code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)},
    **{ord(char): "'" for char in _SINGLE},
    **{ord(char): '"' for char in _DOUBLE},
    **{ord(char): "-" for char in _DASHES},
    **{ord(char): " " for char in _ODD_BLANKS},
    **{ord(char): "" for char in _ZERO_WIDTH},
}
_FOLD = {code: '"' if char == "'" else char for code, char in _LOOKALIKE.items()} | {ord("'"): '"', ord("`"): '"'}


class Form(NamedTuple):
    """The anchor in another form: ``text`` is how the file has it, at ``span``."""

    kind: str
    span: Span
    text: str


# -- the same text in another form -------------------------------------------------------------------------------------


def forms(problem: Problem) -> list[Form]:
    """Where the anchor stands but for blanks, quotes, case, escapes or its line break; those within the regions first.

    Each ``text`` is proved to match at its span. At most :data:`FORM_LIMIT` distinct texts.
    """
    if problem.kind != "find" or not problem.anchor.strip():
        return []
    folded = "\n".join(map(_fold, problem.source.text.split("\n")))
    found = [*_respelled(problem), *_mid_line(problem), *_folded(problem, folded, fold_case=False)]
    if not found:
        found = list(_folded(problem, folded, fold_case=True))
    found.sort(key=lambda form: (not inside_any(problem.regions, form.span), form.span.start))
    kept: list[Form] = []
    for form in found:
        known = any(form.text == other.text for other in kept)
        if not known and form.span in find_text(problem.source, form.text, [Span(0, len(problem.source.text))]):
            kept.append(form)
        if len(kept) == FORM_LIMIT:
            break
    return kept


def _respelled(problem: Problem) -> Iterator[Form]:
    """The anchor under the other reading of its backslashes, line breaks or Unicode form."""
    anchor = problem.anchor
    spellings = {"line breaks": anchor.replace("\r\n", "\n").replace("\r", "\n")}
    if "\\" in anchor:
        names = {"n": "\n", "t": "\t", "\\": "\\", '"': '"', "'": "'"}
        spellings["escapes"] = re.sub(r"\\r\\n|\\([nt\\\"'])", lambda m: names[m[1]] if m[1] else "\n", anchor)
    if "\n" in anchor[:-1] or "\t" in anchor:
        tail = "\n" if anchor.endswith("\n") else ""
        inner = anchor.removesuffix("\n")
        spellings["read escapes"] = inner.replace("\n", "\\n").replace("\t", "\\t") + tail
    if not anchor.isascii():
        import unicodedata

        spellings["composed"] = unicodedata.normalize("NFC", anchor)
        spellings["decomposed"] = unicodedata.normalize("NFD", anchor)
    for kind, text in spellings.items():
        if text != anchor and text:
            for span in find_text(problem.source, text, [Span(0, len(problem.source.text))])[:FORM_LIMIT]:
                yield Form(kind, span, text)


def _mid_line(problem: Problem) -> Iterator[Form]:
    """A whole-line anchor that begins in the middle of a line."""
    anchor, source = problem.anchor, problem.source
    if not anchor.endswith("\n"):
        return
    start = source.text.find(anchor)
    for _ in range(_SCAN_LIMIT):
        if start < 0:
            return
        begin = source.line_start(start)
        if source.text[begin:start].strip():
            end = start + len(anchor)
            yield Form("line start", Span(begin, end), source.text[begin:end])
        start = source.text.find(anchor, start + 1)


def _fold(line: str) -> str:
    line = line.replace("'", '"').replace("`", '"') if line.isascii() else line.translate(_FOLD)
    return " ".join(line.split())


def _fold_map(line: str) -> tuple[str, list[int]]:
    """``_fold(line)``, and for each of its characters the index in ``line`` that it comes from."""
    chars: list[str] = []
    origin: list[int] = []
    for index, char in enumerate(line):
        for folded in _FOLD.get(ord(char), char):
            if not folded.isspace():
                chars.append(folded)
                origin.append(index)
            elif chars and chars[-1] != " ":
                chars.append(" ")
                origin.append(index)
    if chars and chars[-1] == " ":
        chars.pop()
        origin.pop()
    return "".join(chars), origin


def _folded(problem: Problem, body: str, *, fold_case: bool) -> Iterator[Form]:
    """Where the anchor stands when blanks, quotes and look-alikes are made equal, and with ``fold_case`` also case.

    ``body`` is the file's text with its lines folded.
    """
    anchor, source = problem.anchor, problem.source
    parts = anchor.removesuffix("\n").split("\n")
    needle = "\n".join(map(_fold, parts))
    if not needle.strip():
        return
    if fold_case:
        body, needle = body.lower(), needle.lower()
    if needle not in body:
        return
    lines = source.text.split("\n")
    starts = [0]
    for line in body.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    entire = anchor.endswith("\n")
    if entire:
        body, needle = f"\n{body}\n", f"\n{needle}\n"
    at = body.find(needle)
    for _ in range(_SCAN_LIMIT):
        if at < 0:
            return
        first = bisect_right(starts, at) - 1
        last = first + len(parts) - 1
        if entire:
            begin = source.starts[first]
            end = source.starts[last + 1] if last + 1 < len(source.starts) else len(source.text)
            span: Span | None = Span(begin, end)
        else:
            span = _partial(source, lines, parts, first, at - starts[first], at + len(needle) - starts[last])
        if span is not None:
            text = source.text[span.start : span.end]
            kind = difference(anchor, text)
            if kind:
                yield Form(kind, span, text)
        at = body.find(needle, at + 1)


def _partial(source: Source, lines: list[str], parts: list[str], first: int, column: int, stop: int) -> Span | None:
    """The span of a match that begins at folded ``column`` of line ``first`` and ends before folded ``stop``."""
    last = first + len(parts) - 1
    _, opening = _fold_map(lines[first])
    _, closing = _fold_map(lines[last])
    if column > len(opening) or stop > len(closing) or (column == len(opening) and opening):
        return None
    begin = source.starts[first] + (opening[column] if opening else 0)
    if column == 0 and parts[0][:1].isspace():
        begin = source.starts[first]
    end = source.starts[last] + (closing[stop - 1] + 1 if stop else len(lines[last]))
    return Span(begin, end) if begin < end else None


def difference(anchor: str, found: str) -> str:
    """In what ``found``, another form of ``anchor``, differs: "indentation and quotes"; "" if in nothing."""
    if anchor == found:
        return ""
    names = []
    if anchor.endswith("\n") and not found.endswith("\n"):
        names.append("final line break")
    ours, theirs = (text.removesuffix("\n").split("\n") for text in (anchor, found))
    if len(ours) == len(theirs):
        full = [(a, b) for a, b in zip(ours, theirs, strict=True) if a.strip() and b.strip()]
        if any(_leading(a) != _leading(b) for a, b in full):
            names.append("indentation")
        if any(_trailing(a) != _trailing(b) for a, b in zip(ours, theirs, strict=True)):
            names.append("trailing blanks")
    left, right = ("\n".join(line.strip() for line in lines) for lines in (ours, theirs))
    for name in _RELAX:
        others = [relax for other, relax in _RELAX.items() if other != name]
        if _relaxed(left, others) != _relaxed(right, others):
            names.append(name)
    return " and ".join(names)


def _leading(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _trailing(line: str) -> str:
    return line[len(line.rstrip()) :]


def _relaxed(text: str, relaxations: Iterable[Callable[[str], str]]) -> str:
    for relax in relaxations:
        text = relax(text)
    return text


_RELAX: dict[str, Callable[[str], str]] = {
    "look-alike characters": lambda text: text.translate(_LOOKALIKE),
    "quotes": lambda text: text.replace("'", '"').replace("`", '"'),
    "inner blanks": lambda text: re.sub(r"[ \t\f]+", " ", text),
    "case": lambda text: text.lower(),
}


def detail(kind: str, anchor: str, found: str) -> str:
    """Of the first line indented otherwise: how in the anchor, and how in the file."""
    if kind == "final line break":
        return " (the file's last line has none)"
    if "indentation" in kind:
        for ours, theirs in zip(anchor.split("\n"), found.split("\n"), strict=False):
            a, b = (line[: len(line) - len(line.lstrip())] for line in (ours, theirs))
            if a != b and ours.strip():
                return f" (anchor: {_blanks(a)}, file: {_blanks(b)})"
    return ""


def _blanks(text: str) -> str:
    if not text:
        return "none"
    kinds = {" ": "space", "\t": "tab"}
    if len(set(text)) == 1 and text[0] in kinds:
        return f"{len(text)} {kinds[text[0]]}{'s' if len(text) > 1 else ''}"
    return f"'{visible(text)}'"


# -- the same code in other formatting ---------------------------------------------------------------------------------


def reformatted(problem: Problem) -> tuple[str, list[Span]]:
    """A text anchor read as a syntax pattern, and where that matches within the regions; ``("", [])`` if it is no code.

    An anchor with ``$`` is not read: it would mean something else as a pattern.
    """
    outline, anchor = problem.outline, dedent(problem.anchor).strip("\n")
    if problem.kind != "find" or outline is None or "$" in anchor or len(anchor.strip()) < 3:
        return "", []
    if len(anchor) > CODE_LIMIT or len(problem.source.text) > 50 * CODE_LIMIT:
        return "", []
    from patchkit.edit.matcher import find_pattern
    from patchkit.edit.pattern import compile_pattern

    try:
        pattern = compile_pattern(anchor, problem.parse)
        return anchor, [found.span for found in find_pattern(outline, pattern, problem.regions)]
    except (*PARSE_ERRORS, PlanError):
        return "", []


_TRIES = 10_000
_METAVARIABLE = re.compile(r"\$\$\$\w*|\$[^\W\d]\w*")


def in_literals(problem: Problem) -> list[tuple[str, Span]]:
    """Where what a syntax pattern is written like stands in a ``string`` or ``comment``: it does not match there."""
    parts = _METAVARIABLE.split(problem.anchor.strip())
    if problem.kind != "match" or len("".join(parts).strip()) < 2 or len(parts) > 5:
        return []
    if max(parts, key=len) not in problem.source.text:
        return []
    from patchkit.edit.lexer import LexError, lex

    if not spread(problem.source.text, parts):
        return []
    try:
        tokens = lex(problem.source.text)
    except LexError:
        return []
    kinds = {"string": "string", "fmid": "string", "comment": "comment"}
    found = []
    for token in tokens:
        if token.kind in kinds:
            spans = spread(token.text, parts)
            found += [(kinds[token.kind], Span(token.start + begin, token.start + end)) for begin, end in spans]
    found.sort(key=lambda place: (not inside_any(problem.regions, place[1]), place[1].start))
    return found[:FORM_LIMIT]


def spread(text: str, parts: Sequence[str]) -> list[tuple[int, int]]:
    """Where ``parts`` follow on each other with no line break between them: the first :data:`FORM_LIMIT` places.

    What ``part.*?part`` finds as a regular expression, which takes time with the power of the parts in a long line.
    """
    found: list[tuple[int, int]] = []
    at = 0
    one_line = not any("\n" in part for part in parts)
    for _ in range(_TRIES):
        begin = text.find(parts[0], at)
        if begin < 0 or len(found) == FORM_LIMIT:
            break
        end = begin + len(parts[0])
        for part in parts[1:]:
            line_end = text.find("\n", end)
            line_end = len(text) if line_end < 0 else line_end
            place = text.find(part, end, line_end + len(part))
            if place < 0:
                at = line_end + 1 if not parts[0] and one_line else begin + 1
                break
            end = place + len(part)
        else:
            found.append((begin, end))
            at = max(end, begin + 1)
    return found


def source_slice(source: Source, span: Span) -> Span:
    """``span`` as whole lines, where nothing but blanks stands beside it on its lines; else as it is."""
    begin, end = source.line_start(span.start), source.line_end(max(span.start, span.end - 1))
    if source.text[begin : span.start].strip() or source.text[span.end : end].strip():
        return span
    return Span(begin, end)
