"""Text anchors: where they match, and what their edits make of a match.

Exact to the character: nothing is stripped, nothing is fuzzy, and nothing here needs the file to parse.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from patchkit.edit.parse import BLANKS
from patchkit.edit.source import Source, Splice
from patchkit.edit.spans import Span, outermost
from patchkit.errors import PlanError
from patchkit.model.patch import Action

_BODY_LINE = re.compile(r"^([ \t\f]*)\$\$\$BODY[ \t]*$", re.MULTILINE)


def find_text(source: Source, anchor: str, regions: Sequence[Span], *, limit: int = sys.maxsize) -> list[Span]:
    """The places where ``anchor`` stands wholly within one of ``regions``, in order, overlapping ones included.

    ``\\r\\n`` and ``\\r`` in the anchor are read as ``\\n``. An anchor that ends in a newline is whole lines: it
    matches from a line's first character and nowhere else. The search ends with the ``limit``-th place.

    Raises:
        ValueError: ``anchor`` is empty.
    """
    anchor = normalised(anchor)
    if not anchor:
        raise ValueError("an empty anchor matches everywhere")
    text = source.text
    whole_lines = anchor.endswith("\n")
    wanted = f"\n{anchor}" if whole_lines else anchor
    lead = len(wanted) - len(anchor)
    found: dict[int, None] = {}
    for region in outermost(regions):
        if whole_lines and region.start == 0 and text.startswith(anchor) and len(anchor) <= region.end:
            found[0] = None
        position = text.find(wanted, max(region.start - lead, 0), region.end)
        while position >= 0 and len(found) < limit:
            found[position + lead] = None
            position = text.find(wanted, position + 1, region.end)
    return [Span(start, start + len(anchor)) for start in sorted(found)]


def normalised(text: str) -> str:
    """``text`` with every line break written as ``\\n``."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def text_splices(source: Source, span: Span, action: Action, text: str, edit: int) -> list[Splice]:
    """What ``action`` with ``text`` makes of the match at ``span``: exact, nothing added and nothing stripped.

    ``wrap`` puts the matched whole lines in place of the template's line ``$$$BODY``.

    Raises:
        PlanError: ``wrap``: the match is not whole lines, or the template has no line ``$$$BODY``.
        ValueError: ``action`` is none of a text edit's.
    """
    text = normalised(text)
    if action == "replace":
        return [Splice(span.start, span.end, text, edit)]
    if action == "delete":
        return [Splice(span.start, span.end, "", edit)]
    if action == "insert_before":
        return [Splice(span.start, span.start, text, edit, 1)]
    if action == "insert_after":
        return [Splice(span.end, span.end, text, edit, -1)]
    if action == "wrap":
        lines = _whole_lines(source, span)
        return [Splice(lines.start, lines.end, _wrapped(source.text[lines.start : lines.end], text), edit)]
    raise ValueError(f"{action} is not a text edit")


def _whole_lines(source: Source, span: Span) -> Span:
    """The lines of ``span``, whose other characters must be blank; with the last line's break if ``span`` has it."""
    text = source.text
    start, end = source.line_start(span.start), span.end
    if text[end - 1 : end] != "\n":
        end = text.find("\n", end)
        end = len(text) if end < 0 else end
    if (text[start : span.start] + text[span.end : end]).strip(BLANKS):
        raise PlanError(
            f"`wrap` needs an anchor of whole lines, and the match on line {source.line(span.start)} is part of one",
            code="wrap",
            hint="extend `find` to the whole lines, with their newline",
            details={"path": source.path, "line": source.line(span.start)},
        )
    return Span(start, end)


def _wrapped(body: str, template: str) -> str:
    """``template``, indented like ``body`` unless it is already indented, with ``body`` for its ``$$$BODY``."""
    if not _BODY_LINE.search(template):
        raise PlanError(
            "the template of `wrap` has no line that holds only `$$$BODY`",
            code="wrap",
            hint="write `$$$BODY` on a line of its own where the matched lines belong",
        )
    own = _indentation(body)
    if body.endswith("\n"):
        template = template if template.endswith("\n") else f"{template}\n"
    else:
        template = template.removesuffix("\n")
    outer = _indentation(template)
    layout = _BODY_LINE.sub(lambda line: f"{line.group(1)}_", template).split("\n")
    fixed = _inside_strings("\n".join(layout))
    out: list[str] = []
    for number, line in enumerate(template.split("\n")):
        placeholder = _BODY_LINE.fullmatch(line)
        if placeholder:
            relative = placeholder.group(1)
            relative = relative.removeprefix(outer) if relative.startswith(outer) else ""
            out.append(_shifted(body.removesuffix("\n"), own, own + relative))
        elif outer or not line.strip(BLANKS) or number in fixed:
            out.append(line)
        else:
            out.append(own + line)
    return "\n".join(out)


def _indentation(text: str) -> str:
    """The leading blanks of the first line that is not blank."""
    for line in text.split("\n"):
        content = line.lstrip(BLANKS)
        if content:
            return line[: len(line) - len(content)]
    return ""


def _shifted(text: str, own: str, to: str) -> str:
    """``text`` moved from the indentation ``own`` to ``to``; blank lines and the insides of strings stay."""
    fixed = _inside_strings(text)
    out = []
    for number, line in enumerate(text.split("\n")):
        if number in fixed or not line.strip(BLANKS):
            out.append(line)
        elif line.startswith(own):
            out.append(to + line[len(own) :])
        else:  # less deep than the first line: a comment, or a line within brackets
            out.append(to[len(own) :] + line)
    return "\n".join(out)


def _inside_strings(text: str) -> frozenset[int]:
    """The 0-based lines of ``text`` that begin within a string literal, as far as it can be tokenized."""
    if not any(quotes in text for quotes in ('"""', "'''", "\\\n")):
        return frozenset()
    import io
    import tokenize

    openers = {number for number, name in tokenize.tok_name.items() if name in ("FSTRING_START", "TSTRING_START")}
    closers = {number for number, name in tokenize.tok_name.items() if name in ("FSTRING_END", "TSTRING_END")}
    fixed: set[int] = set()
    opened: list[int] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.STRING:
                fixed.update(range(token.start[0], token.end[0]))
            elif token.type in openers:
                opened.append(token.start[0])
            elif token.type in closers:
                fixed.update(range(opened.pop(), token.end[0]))
    except (tokenize.TokenError, SyntaxError, IndexError):
        pass
    return frozenset(fixed)
