"""A template's text: its lines at their new place, captured code put in, parentheses where the tree asks for them.

Whether parentheses are needed is not worked out from precedences but tried: bare text that parses to the wanted tree
needs none.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from typing import Any

from patchkit.edit.indent import reindent, shift
from patchkit.edit.lexer import CLOSING, OPENING, LexError, Token, code_tokens, lex
from patchkit.edit.metavars import Slot
from patchkit.edit.parse import BLANKS, PARSE_ERRORS, Parse
from patchkit.edit.shape import name_of, same
from patchkit.edit.template import Builder, Piece, Template, wrong
from patchkit.tuples import NamedTuple


class Filled(NamedTuple):
    """A filled template: its text, every line but those within strings at its place, and its statements."""

    text: str
    nodes: list[Any]


def fill_statements(
    template: Template, pieces: Mapping[str, Piece], indent: str, unit: str | None, parse: Parse
) -> Filled:
    """Fill a template of statements for a block at ``indent``; ``unit`` is the indentation of one level.

    Raises:
        PlanError: ``template``: the text would not mean what it says.
    """

    def read(text: str) -> list[Any] | None:
        body = _parse(f"if 1:\n{text}" if indent else text, parse)
        if body is None or not indent:
            return body
        return body[0].body if len(body) == 1 and not body[0].orelse else None

    return _settle(template, pieces, indent, unit, read, lines_own=True)


def fill_expression(template: Template, pieces: Mapping[str, Piece], indent: str, parse: Parse) -> Filled:
    """Fill a template that is one expression; its lines but the first go to ``indent``.

    Raises:
        PlanError: ``template``: the text would not mean what it says.
    """
    filled = _settle(template, pieces, indent, None, lambda text: _parse(f"(\n{text}\n)", parse))
    return Filled(filled.text.removeprefix(indent), filled.nodes)


def _parse(text: str, parse: Parse) -> list[Any] | None:
    try:
        return parse(text).body
    except PARSE_ERRORS:
        return None


class _How(NamedTuple):
    """Ways to fill that few templates need: a comma kept for a tuple of one, a list of names in parentheses.

    ``whole``: what a capture has around it (see :class:`~patchkit.edit.captures.Capture`) comes along unchanged where
    the template has it alone in such a place. Otherwise of that only the ``comments`` do.
    """

    comma: bool = False
    brackets: bool = False
    whole: bool = True
    comments: bool = True


_HOW = tuple(_How(c, b, w) for b in (False, True) for c in (False, True) for w in (True, False))
_BARE = _How(whole=False, comments=False)
"""Not a way to fill a template, since it loses comments, but to learn whether a capture needs parentheses."""


def _settle(
    template: Template,
    pieces: Mapping[str, Piece],
    indent: str,
    unit: str | None,
    read: Callable[[str], list[Any] | None],
    *,
    lines_own: bool = False,
) -> Filled:
    builder = Builder(template, pieces)
    nodes = builder.statements()
    skeleton = reindent(_own_lines(template, builder.roles), indent, unit)
    slots = list(template.slots.values())

    def attempt(parenthesised: set[str], chosen: list[Slot], expected: list[Any], how: _How) -> str | None:
        text = _Filler(skeleton, chosen, builder.roles, pieces, parenthesised, how).text()
        if not expected and not text.strip():
            return text
        if not expected and all(line.lstrip(BLANKS)[:1] in ("#", "") for line in text.split("\n")):
            return text
        body = read(text)
        return text if body is not None and same(expected, body) else None

    laid_out = _laid_out(skeleton, slots, builder, pieces) if lines_own else set()
    text = next((done for how in _HOW[:2] if (done := attempt(laid_out, slots, nodes, how)) is not None), None)
    if text is None:
        needed = set()
        for slot in slots:
            if slot.identifier in builder.loose:
                partial = Builder(template, pieces, [slot.identifier]).statements()
                if attempt(set(), [slot], partial, _BARE) is None:
                    needed.add(slot.identifier)
        ways = [(chosen, how) for how in _HOW for chosen in (needed, set(builder.loose))]
        text = next((done for chosen, how in ways if (done := attempt(chosen, slots, nodes, how)) is not None), None)
    if text is None:
        shown = _Filler(skeleton, slots, builder.roles, pieces, set(), _HOW[1]).text()
        raise wrong(
            f"the template cannot hold what was captured; filled, it reads:\n{shown}",
            "quotes, f-strings, comments and code over several lines do not fit everywhere: change the template",
        )
    return Filled(text, nodes)


def _laid_out(skeleton: str, slots: list[Slot], builder: Builder, pieces: Mapping[str, Piece]) -> set[str]:
    """The slots outside brackets whose code spans lines in parentheses of its own: those are part of its layout."""
    kept = {
        slot.identifier
        for slot in slots
        if slot.identifier in builder.loose and _in_parentheses(pieces[slot.name or ""])
    }
    if not kept:
        return kept
    depth = 0
    for token in lex(skeleton):
        if token.kind in ("op", "fopen", "fclose"):
            depth += (token.text in OPENING) - (token.text in CLOSING)
        elif depth:
            kept.discard(token.text)
    return kept


def _in_parentheses(piece: Piece) -> bool:
    return piece.kind == "expression" and piece.outer is not None and "\n" in piece.text


def _own_lines(template: Template, roles: Mapping[str, str]) -> str:
    """The template's text with each metavariable for statements on a line of its own."""
    text = template.text
    for identifier, role in roles.items():
        if role not in ("statements", "cases"):
            continue
        code = template.slots[identifier].code
        at = text.index(code)
        begin = text.rfind("\n", 0, at) + 1
        head = text[begin:at].rstrip(BLANKS)
        own = text[begin:at][: len(text[begin:at]) - len(text[begin:at].lstrip(BLANKS))]
        tail = text[at + len(code) :].lstrip(BLANKS)
        if head.endswith(":"):
            own += "    "
        if tail.startswith(";"):
            tail = tail[1:].lstrip(BLANKS)
            if tail[:1] not in ("\n", "", "#"):
                tail = f"\n{own}{tail}"
        else:
            tail = text[at + len(code) :]
        if head:
            head = text[:begin] + head.removesuffix(";").rstrip(BLANKS) + "\n"
        else:
            head = text[:begin]
        text = f"{head}{own}{code}{tail}"
    return text


class _Filler:
    """Puts pieces into the lines of a template."""

    def __init__(
        self,
        skeleton: str,
        slots: list[Slot],
        roles: Mapping[str, str],
        pieces: Mapping[str, Piece],
        parenthesised: set[str],
        how: _How,
    ) -> None:
        self.skeleton = skeleton
        self.slots = slots
        self.roles = roles
        self.pieces = pieces
        self.parenthesised = parenthesised
        self.how = how
        self.edits: list[tuple[int, int, str]] = []
        self._tokens: list[Token] | None = None

    def text(self) -> str:
        """The filled text."""
        empty: list[tuple[Slot, int]] = []
        for slot in self.slots:
            piece = self.pieces[slot.name or ""]
            role = self.roles[slot.identifier]
            start = self.skeleton.index(slot.code)
            end = start + len(slot.code)
            if role in ("statements", "cases", "decorators"):
                self._lines(role, piece, start, end)
            elif self.how.whole and self._whole(role, piece, start, end):
                continue
            elif not piece.nodes:
                empty.append((slot, start))
            else:
                text = piece.text
                if slot.identifier in self.parenthesised:
                    text = piece.outer if piece.kind == "expression" and piece.outer else f"({text})"
                several_lines = self._with_comments(piece, text, start, end)
                if self.how.brackets and role in ("names", "with items") and several_lines:
                    self._bracket(start)
        if empty:
            self._leave_out(empty)
        out, at = [], 0
        for start, end, new in sorted(self.edits):
            out += [self.skeleton[at:start], new]
            at = max(at, end)
        return "".join([*out, self.skeleton[at:]])

    # -- lists ---------------------------------------------------------------------------------------------------

    def _around(self, start: int, end: int) -> tuple[list[Token], int, int]:
        """The tokens of the skeleton, and the indices of those next to ``start`` and ``end``."""
        if self._tokens is None:
            self._tokens = code_tokens(lex(self.skeleton))
        first = bisect_left(self._tokens, start, key=lambda token: token.start)
        return self._tokens, first - 1, bisect_left(self._tokens, end, key=lambda token: token.start)

    def _whole(self, role: str, piece: Piece, start: int, end: int) -> bool:
        """Put all that stood between the brackets of a list between those of the template; False where it cannot be."""
        if piece.outer is None or piece.kind == "expression" or ends_in_comment(piece.outer):
            return False
        tokens, before, after = self._around(start, end)
        opening = tokens[before].text if before >= 0 else ""
        words = [token.text for token in tokens[after : after + 2]]
        close = OPENING.get(opening)
        comma = words[:1] == [","]
        if close is not None and words[comma:][:1] == [close]:
            left, right = tokens[before].end, tokens[after + comma].start
            if "\n" in self.skeleton[left:right]:  # the template has a layout of its own
                return False
            text = piece.outer
            code = code_tokens(lex(text))
            if comma and code and code[-1].text != ",":
                text = f"{text[: code[-1].end]},{text[code[-1].end :]}"
            self.edits.append((left, right, text))
            return True
        ends = self.skeleton[end:].lstrip(BLANKS)[:1]
        names = role == "names" and opening == "import" and ends in ("", "\n", "#", ";")
        if names or (role == "with items" and opening == "with" and ends == ":"):
            self.edits.append((start, end, f"({piece.outer})"))
            return True
        return False

    def _with_comments(self, piece: Piece, text: str, start: int, end: int) -> bool:
        """Put a capture with the comments at its ends, which may break lines; True where it is more than one line."""
        lead, trail = _comments(piece) if self.how.comments else ("", "")
        line = self.skeleton.rfind("\n", 0, start) + 1
        margin = self.skeleton[line:start]
        indent = margin[: len(margin) - len(margin.lstrip(BLANKS))]
        if lead and margin == indent:
            lead = lead.lstrip(BLANKS + "\n")
        elif lead:
            start = line + len(margin.rstrip(BLANKS))
        text = lead + text
        self.edits.append((start, end, text))
        if trail:
            inner = text[text.rfind("\n") + 1 :] if "\n" in text else ""
            inner = inner[: len(inner) - len(inner.lstrip(BLANKS))] or f"{indent}    "
            tokens, _, after = self._around(start, end)
            if after < len(tokens) and tokens[after].text == ",":
                end = tokens[after].end
            rest = self.skeleton[end:]
            bare = rest.lstrip(BLANKS)
            if bare[:1] not in ("", "\n", "#"):
                trail += "\n" + (indent if bare[0] in CLOSING else inner)
                self.edits.append((end, end + len(rest) - len(bare), trail))
            else:
                self.edits.append((end, end, trail))
        return "\n" in text or bool(trail)

    # -- lines ---------------------------------------------------------------------------------------------------

    def _arm(self, piece: Piece, begin: int, start: int, end: int) -> bool:
        """Put an ``elif`` in the place of an ``else:`` that has nothing else below it; False where there is none."""
        above = self.skeleton.rfind("\n", 0, max(begin - 1, 0)) + 1
        header = self.skeleton[above:begin]
        indent = header[: len(header) - len(header.lstrip(BLANKS))]
        own = self.skeleton[begin:start]
        if piece.outer is None or header.strip() != "else:" or own.strip(BLANKS) or len(own) <= len(indent):
            return False
        line_end, *below = self.skeleton[end:].split("\n")
        following = next((line for line in below if line.strip()), "")
        if line_end.strip() or len(following) - len(following.lstrip(BLANKS)) > len(indent):
            return False
        self.edits.append((above + len(indent), end, shift(piece.outer, piece.indent, indent)))
        return True

    def _lines(self, role: str, piece: Piece, start: int, end: int) -> None:
        begin = self.skeleton.rfind("\n", 0, start) + 1
        indent = self.skeleton[begin:start]
        if role == "decorators":
            indent = indent[: len(indent) - len(indent.lstrip(BLANKS))]
            start = begin + len(indent)
        if role == "statements" and self.how.whole and self._arm(piece, begin, start, end):
            return
        if piece.nodes:
            self.edits.append((start, end, shift(piece.text, piece.indent, indent)))
            return
        if role == "statements" and self._alone(begin, end, indent):
            self.edits.append((start, end, "pass"))
            return
        stop = self.skeleton.find("\n", end)
        if stop < 0:
            self.edits.append((max(begin - 1, 0), len(self.skeleton), ""))
        else:
            self.edits.append((begin, stop + 1, ""))

    def _alone(self, begin: int, end: int, indent: str) -> bool:
        """True where the line stands directly below a header and nothing else of its block has any text."""
        empty = {
            slot.code
            for slot in self.slots
            if self.roles[slot.identifier] == "statements" and not self.pieces[slot.name or ""].nodes
        }
        above = self.skeleton[:begin].rstrip("\n").split("\n")
        while above and (not above[-1].strip() or above[-1].lstrip(BLANKS)[0] == "#"):
            above.pop()
        if not above or not indent or len(above[-1]) - len(above[-1].lstrip(BLANKS)) >= len(indent):
            return False
        for line in self.skeleton[end:].split("\n")[1:]:
            bare = line.lstrip(BLANKS)
            if bare and bare[0] != "#":
                if len(line) - len(bare) < len(indent):
                    break
                if bare not in empty:
                    return False
        return self.skeleton[:begin].rstrip().endswith(":")

    def _bracket(self, position: int) -> None:
        """Put parentheses around the whole list behind ``import`` or ``with``."""
        tokens = code_tokens(lex(self.skeleton))
        before = [index for index, token in enumerate(tokens) if token.start < position]
        word = max((index for index in before if tokens[index].text in ("import", "with")), default=None)
        if word is None or tokens[word + 1].text == "(":
            return
        stop = self.skeleton.find("\n", position)
        line = [token for token in tokens[word + 1 :] if stop < 0 or token.start < stop]
        if tokens[word].text == "with":
            line = line[: next(index for index, token in enumerate(line) if token.text == ":")]
        self.edits += [(line[0].start, line[0].start, "("), (line[-1].end, line[-1].end, ")")]

    def _leave_out(self, empty: list[tuple[Slot, int]]) -> None:
        """Take metavariables that stand for nothing out of their lists, each with one comma (or ``and``, ``or``)."""
        try:
            tokens = code_tokens(lex(self.skeleton))
        except LexError:  # pragma: no cover - the template was read before
            return
        gone: set[int] = set()
        for slot, start in empty:
            end = start + len(slot.code)
            own = [index for index, token in enumerate(tokens) if start <= token.start < end]
            before, after = own[0] - 1, own[-1] + 1
            while before in gone:
                before -= 1
            gone.update(own)
            if after < len(tokens) and tokens[after].text in (",", "and", "or"):
                gone.add(after)
                stop = tokens[after].end
                if after + 1 < len(tokens) and "\n" not in self.skeleton[stop : tokens[after + 1].start]:
                    stop = tokens[after + 1].start
                self.edits.append((start, stop, ""))
            elif before >= 0 and tokens[before].text in (",", "and", "or"):
                gone.add(before)
                left = tokens[before].end if self.how.comma else tokens[before - 1].end
                self.edits.append((left, end, ""))
            else:
                self.edits.append((start, end, ""))


def _comments(piece: Piece) -> tuple[str, str]:
    """What stands before and behind a list with comments in it, without the comma; "" where there is none."""
    if piece.outer is None or piece.kind == "expression":
        return "", ""
    tokens = lex(piece.outer)
    code = [token for token in code_tokens(tokens) if piece.outer.startswith(piece.text, token.start)]
    if not code:
        return "", ""
    begin, end = code[0].start, code[0].start + len(piece.text)
    lead = piece.outer[:begin] if any(token.kind == "comment" for token in tokens if token.start < begin) else ""
    last = max((token.end for token in tokens if token.kind == "comment"), default=0)
    trail = ""
    for token in tokens:
        if end <= token.start < last:
            trail += "" if token.text == "," else piece.outer[end : token.end]
            end = token.end
    return lead, trail


def ends_in_comment(text: str) -> bool:
    """True where the last line of ``text`` (whole tokens) ends in a comment."""
    if "#" not in text.rpartition("\n")[2]:
        return False
    try:
        tokens = lex(text)
    except LexError:
        return False
    return any(token.kind == "comment" and token.end == len(text) for token in tokens)


def is_single_line(text: str, nodes: list[Any]) -> bool:
    """True where all are simple statements on one line each, without comments, so that ``;`` can join them."""
    lines = text.split("\n")
    if len(lines) != len(nodes) or any(map(ends_in_comment, lines)):
        return False
    return all(not hasattr(node, "body") and name_of(node) not in ("Try", "TryStar", "Match") for node in nodes)
