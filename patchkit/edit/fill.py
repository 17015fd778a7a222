"""A template's text: its lines at their new place, captured code put in, parentheses where the tree asks for them.

Whether parentheses are needed is not worked out from precedences but tried: bare text that parses to the wanted tree
needs none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from patchkit.edit.indent import BLANKS, reindent, shift
from patchkit.edit.lexer import LexError, code_tokens, lex
from patchkit.edit.metavars import Slot
from patchkit.edit.pattern import PARSE_ERRORS, Parse
from patchkit.edit.shape import name_of, same
from patchkit.edit.template import Builder, Piece, Template, wrong


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

    return _settle(template, pieces, indent, unit, read)


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


def _settle(
    template: Template,
    pieces: Mapping[str, Piece],
    indent: str,
    unit: str | None,
    read: Callable[[str], list[Any] | None],
) -> Filled:
    builder = Builder(template, pieces)
    nodes = builder.statements()
    skeleton = reindent(_own_lines(template, builder.roles), indent, unit)
    slots = list(template.slots.values())

    def attempt(parenthesised: set[str], chosen: list[Slot], expected: list[Any]) -> str | None:
        text = _Filler(skeleton, chosen, builder.roles, pieces, parenthesised).text()
        if not expected and not text.strip():
            return text
        if not expected and all(line.lstrip(BLANKS)[:1] in ("#", "") for line in text.split("\n")):
            return text
        body = read(text)
        return text if body is not None and same(expected, body) else None

    text = attempt(set(), slots, nodes)
    if text is None:
        needed = set()
        for slot in slots:
            if slot.identifier in builder.loose:
                partial = Builder(template, pieces, [slot.identifier]).statements()
                if attempt(set(), [slot], partial) is None:
                    needed.add(slot.identifier)
        text = attempt(needed, slots, nodes)
    if text is None:
        text = attempt(set(builder.loose), slots, nodes)
    if text is None:
        shown = _Filler(skeleton, slots, builder.roles, pieces, set()).text()
        raise wrong(
            f"the template cannot hold what was captured; filled, it reads:\n{shown}",
            "quotes, f-strings and code over several lines do not fit everywhere: change the template",
        )
    return Filled(text, nodes)


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
    ) -> None:
        self.skeleton = skeleton
        self.slots = slots
        self.roles = roles
        self.pieces = pieces
        self.parenthesised = parenthesised
        self.edits: list[tuple[int, int, str]] = []

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
            elif not piece.nodes:
                empty.append((slot, start))
            else:
                text = piece.text
                if slot.identifier in self.parenthesised:
                    text = f"({text}\n)" if "#" in text.rpartition("\n")[2] and _ends_in_comment(text) else f"({text})"
                self.edits.append((start, end, text))
        if empty:
            self._leave_out(empty)
        out, at = [], 0
        for start, end, new in sorted(self.edits):
            out += [self.skeleton[at:start], new]
            at = max(at, end)
        return "".join([*out, self.skeleton[at:]])

    def _lines(self, role: str, piece: Piece, start: int, end: int) -> None:
        begin = self.skeleton.rfind("\n", 0, start) + 1
        indent = self.skeleton[begin:start]
        if role == "decorators":
            indent = indent[: len(indent) - len(indent.lstrip(BLANKS))]
            start = begin + len(indent)
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
                self.edits.append((tokens[before - 1].end, end, ""))
            else:
                self.edits.append((start, end, ""))


def _ends_in_comment(text: str) -> bool:
    try:
        tokens = lex(text)
    except LexError:
        return False
    return bool(tokens) and tokens[-1].kind == "comment"


def is_single_line(text: str, nodes: list[Any]) -> bool:
    """True where every statement is a simple one on one line, without comments or blank lines, so that ``;`` joins them."""
    lines = text.split("\n")
    if len(lines) != len(nodes) or any("#" in line and _ends_in_comment(line) for line in lines):
        return False
    return all(not hasattr(node, "body") and name_of(node) not in ("Try", "TryStar", "Match") for node in nodes)
