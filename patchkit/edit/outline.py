"""Scopes, statements and blocks of one parsed file, with exact spans.

The positions of :mod:`ast` are exact for statements under three rules (checked on the 27,416 statements of a
release of tpu-inference): a decorated definition starts at the ``@`` of its first decorator; an ``elif`` is an
``If`` whose text starts with ``elif``; a statement behind ``;`` or on its header's line has no indentation of its own.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from patchkit.edit.definitions import Definition, Known, child_lists, named_definitions
from patchkit.edit.parse import BLANKS, PARSE_ERRORS, Parse
from patchkit.edit.source import Source
from patchkit.edit.spans import Span
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.edit.pattern import Pattern

_OWN_BLOCK: dict[str, tuple[tuple[str, str], ...]] = {
    "If": (("body", "if"), ("orelse", "else")),
    "For": (("body", "for"), ("orelse", "else")),
    "AsyncFor": (("body", "for"), ("orelse", "else")),
    "While": (("body", "while"), ("orelse", "else")),
    "With": (("body", "with"),),
    "AsyncWith": (("body", "with"),),
    "Try": (("body", "try"), ("orelse", "else"), ("finalbody", "finally")),
    "TryStar": (("body", "try"), ("orelse", "else"), ("finalbody", "finally")),
    "ExceptHandler": (("body", "except"),),
    "Match": (("cases", "match"),),
    "match_case": (("body", "case"),),
    "FunctionDef": (("body", "def"),),
    "AsyncFunctionDef": (("body", "def"),),
    "ClassDef": (("body", "class"),),
}
_NOT_IN_HEADER = frozenset({"body", "handlers", "cases", "orelse", "finalbody", "decorator_list"})
_KEYWORDS = "if|elif|else|for|while|with|try|except|finally|match|case|def|class"
# As text: only `inside` uses them, and compiling them would take a millisecond of every start.
_HEADER_WORD = rf"(?:async\s+(?=for|with|def))?({_KEYWORDS})\b"
_BARE_HEADER = r"\w+\s*(?::\s*(?:\.\.\.)?)?"
_COLON_DOTS = r"\s*:\s*\.\.\.$"
_ANY_ARGUMENTS = r"(?s)((?:async\s+)?(?:def|class)\s+[\w$]+)\s*(?:\[.*?\]\s*)?\(\s*\.\.\.\s*\)"
_METAVARIABLE = r"\$(?:\$\$)?\w*"
_INDENTATION = re.compile(f"[{BLANKS}]*")


class Place(NamedTuple):
    """Where a node stands: the list it is in, its index there, and the node that owns the list."""

    siblings: list[ast.AST]
    position: int
    parent: ast.AST


class Block(NamedTuple):
    """One block: the keyword of its header, the node that owns it, and its statements (the cases of a ``match``).

    ``previous`` is the last node before the header of an ``else`` or ``finally``, None for a header of its own node.
    """

    keyword: str
    owner: ast.AST
    body: list[ast.AST]
    previous: ast.AST | None


class HeaderError(ValueError):
    """An ``inside`` that is not the header of a block; the message says why, for a person."""


class Outline:
    """Scopes and statements of one parsed file; built from one walk, at first use."""

    def __init__(self, source: Source, tree: ast.Module) -> None:
        """``tree`` must be the parse of ``source.text``."""
        self.source = source
        self.tree = tree
        self._places: dict[int, Place] | None = None
        self._definitions: list[tuple[str, Definition]] = []
        self._statements: list[ast.AST] = []
        self._known: Known = {}
        self._blocks: dict[str, list[tuple[Block, int]]] = {}  # by keyword, with the positions of their colons
        self._heads: dict[tuple[str, bool, bool], tuple[str, ast.Module]] = {}
        self._prints: dict[tuple[str, bool, bool], dict[tuple[Any, ...], list[int]]] = {}

    # -- the walk ------------------------------------------------------------------------------------------------

    def _walk(self) -> dict[int, Place]:
        """Visit every statement, handler and case once, in source order, without recursion."""
        if self._places is not None:
            return self._places
        places: dict[int, Place] = {}
        stack: list[tuple[ast.AST, str, Place | None]] = [(self.tree, "", None)]
        while stack:
            node, scope, place = stack.pop()
            if place is not None:
                places[id(node)] = place
                self._statements.append(node)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                scope = f"{scope}.{node.name}" if scope else node.name
                self._definitions.append((scope, node))
            below = [
                (child, scope, Place(children, index, node))
                for children in child_lists(node)
                for index, child in enumerate(children)
            ]
            stack += reversed(below)
        self._places = places
        return places

    def statements(self) -> list[ast.AST]:
        """Every statement, ``except`` handler and ``case``, in source order (a block's owner before its block)."""
        self._walk()
        return self._statements

    def definitions(self) -> list[tuple[str, Definition]]:
        """Every def and class with its qualified name, in source order."""
        self._walk()
        return self._definitions

    def block_of(self, stmt: ast.AST) -> Place:
        """The list that a statement (or handler, or case) of this tree is in, its index there, and the list's owner."""
        return self._walk()[id(stmt)]

    # -- spans ---------------------------------------------------------------------------------------------------

    def span(self, node: ast.AST) -> Span:
        """The exact span of a node; a decorated definition starts at its first ``@``, a ``case`` at its keyword.

        Raises:
            ValueError: The node has no place in the text of its own (``ctx``, operators, ``arguments``).
        """
        source = self.source
        if isinstance(node, ast.Module):
            return Span(0, len(source.text))
        if isinstance(node, ast.match_case):
            pattern = self.span(node.pattern)
            return Span(self._keyword_above(pattern.start, "case"), self.span(node.body[-1]).end)
        if not hasattr(node, "end_lineno"):
            raise ValueError(f"{type(node).__name__} has no position")
        end = source.position(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
        decorators = getattr(node, "decorator_list", None)
        if decorators:
            first = decorators[0]
            return Span(self._keyword_above(source.position(first.lineno, first.col_offset), "@"), end)
        return Span(source.position(node.lineno, node.col_offset), end)  # type: ignore[attr-defined]

    def _keyword_above(self, position: int, word: str) -> int:
        """The line-opening ``word`` before ``position``; only parentheses, comments and breaks lie in between."""
        text = self.source.text
        line = self.source.line(position)
        while True:
            start = self.source.starts[line - 1]
            while text[start] in BLANKS:
                start += 1
            if start < position and text.startswith(word, start):
                return start
            line -= 1

    def opening(self, stmt: ast.AST) -> int | None:
        """The position where the statement's logical line begins; None where something else stands before it there.

        That is the first character of its line but for a line joined to a blank one before it by a backslash.
        """
        text = self.source.text
        start = self.span(stmt).start
        begin = self.source.line_start(start)
        while not text[begin:start].strip(BLANKS):
            if not self._continued(begin):
                return begin
            begin, start = self.source.line_start(begin - 1), begin - 2
        return None

    def starts_line(self, stmt: ast.AST) -> bool:
        """True where the statement is the first thing on its line, and that line continues no other."""
        return self.opening(stmt) == self.source.line_start(self.span(stmt).start)

    def _continued(self, begin: int) -> bool:
        """True where the line that begins at ``begin`` is joined to the one before by a backslash."""
        text = self.source.text
        if text[max(begin - 2, 0) : begin] != "\\\n":
            return False
        return not text[self.source.line_start(begin - 1) : begin].lstrip(BLANKS).startswith("#")

    def indent_of(self, stmt: ast.AST) -> str:
        """The indentation of the logical line that the statement stands on."""
        while (begin := self.opening(stmt)) is None:
            place = self.block_of(stmt)
            if not place.position and isinstance(place.parent, ast.Module):
                return ""
            stmt = place.siblings[place.position - 1] if place.position else place.parent
        match = _INDENTATION.match(self.source.text, begin)
        return match.group().rpartition("\f")[2] if match else ""  # a form feed sets the column to 0

    # -- scopes --------------------------------------------------------------------------------------------------

    def _region(self, node: Definition) -> Span:
        """The whole lines of a definition, and the deeper comment lines that follow directly."""
        source, text = self.source, self.source.text
        start, end = self.span(node)
        begin = source.line_start(start)
        own = _width(text[begin:start])
        if text[begin:start].strip(BLANKS):
            begin = start
        return Span(begin, self._over_comments(source.line_end(end), own))

    def _over_comments(self, stop: int, own: int) -> int:
        """Behind the comment lines from ``stop`` on that are deeper than ``own``; blank ones may lie between."""
        source, text = self.source, self.source.text
        end = stop
        while stop < len(text):
            after = source.line_end(stop)
            content = text[stop:after].lstrip(BLANKS)
            if content.startswith("#"):
                if _width(text[stop : after - len(content)]) <= own:
                    break
                end = after
            elif content not in ("", "\n"):
                break
            stop = after
        return end

    def scopes(self, qualname: str) -> list[Span]:
        """The region of every def and class of that qualified name, in source order.

        A region is the definition's whole lines, decorators included, and the comment lines that follow it directly
        and are indented deeper than it.
        """
        return [
            self._region(node) for node in named_definitions(self.tree, qualname.replace(".<locals>", ""), self._known)
        ]

    def qualnames(self) -> list[str]:
        """The qualified name of every def and class, each once, in source order."""
        self._walk()
        return list(dict.fromkeys(name for name, _ in self._definitions))

    def scope_at(self, position: int) -> str:
        """The qualified name of the innermost def or class whose region holds ``position``; "" at module level.

        Only the statements on the way to it are looked at.
        """
        line, length = self.source.line(position), len(self.source.text)
        names: list[str] = []
        node: ast.AST = self.tree
        while True:
            lists = list(child_lists(node))
            below = lists[0] if len(lists) == 1 else [child for children in lists for child in children]
            # The last that begins at or above the line: comments behind a definition may still be its.
            index = bisect_right(below, line, key=lambda child: self.source.line(self.span(child).start)) - 1
            if index < 0:
                return ".".join(names)
            node = below[index]
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                start, end = self._region(node)
                at_end = position == end == length and not self.source.text.endswith("\n")
                if not (start <= position < end or at_end):
                    return ".".join(names)
                names.append(node.name)

    # -- blocks --------------------------------------------------------------------------------------------------

    def _blocks_of(self, node: ast.AST) -> Iterator[Block]:
        """The blocks directly below ``node``."""
        for field, keyword in _OWN_BLOCK.get(type(node).__name__, ()):
            body = getattr(node, field)
            if not body:
                continue
            previous: ast.AST | None = None
            if keyword == "if" and self.is_elif(node):
                keyword = "elif"
            elif keyword == "else":
                if isinstance(node, ast.If) and self.is_elif(body[0]):
                    continue
                previous = (getattr(node, "handlers", None) or node.body)[-1]  # type: ignore[attr-defined]
            elif keyword == "finally":
                previous = (node.orelse or node.handlers or node.body)[-1]  # type: ignore[attr-defined]
            yield Block(keyword, node, body, previous)

    def is_elif(self, node: ast.AST) -> bool:
        """True for the ``If`` node that an ``elif`` makes."""
        return isinstance(node, ast.If) and self.source.text.startswith("elif", self.span(node).start)

    def blocks(self, header: str, parse: Parse) -> list[Span]:
        """The regions of all blocks under ``header``, in source order.

        A region goes from behind the header's colon to the end of the block's last line, as for ``scopes``. The header
        is compared as AST, with or without a trailing ``:`` or ``: ...``; ``$`` makes it a pattern. In
        ``def f(...)`` and ``class C(...)`` any arguments and, where it names none, any return annotation do.

        Raises:
            HeaderError: ``header`` is no header by ``parse``.
        """
        wanted = _read_header(header, parse)
        if wanted.keyword not in self._blocks:
            blocks = [b for node in self.statements() for b in self._blocks_of(node) if b.keyword == wanted.keyword]
            self._blocks[wanted.keyword] = [(block, self._colon(block)) for block in blocks]
        known = self._blocks[wanted.keyword]
        fits = self._fitting(wanted, known, parse) if wanted.code and known else range(len(known))
        source = self.source
        regions = []
        for block, colon in (known[index] for index in fits):
            begin = source.line_start(self.span(block.owner).start)
            own = _width(source.text[begin : self.span(block.owner).start])
            end = source.line_end(self.span(block.body[-1]).end)
            regions.append(Span(colon + 1, self._over_comments(end, own)))
        return sorted(regions)

    def _fitting(self, wanted: _Header, blocks: list[tuple[Block, int]], parse: Parse) -> list[int]:
        """The indices of the ``blocks`` that ``wanted`` heads; their headers are parsed at once, and once only."""
        key = (wanted.keyword, wanted.any_arguments, wanted.returns)
        first = key not in self._heads
        if first:
            heads = [self._head(block, colon, wanted) for block, colon in blocks]
            text = "\n".join(_complete(wanted.keyword, head) for head in heads) + "\n"
            try:
                self._heads[key] = text, parse(text)
            except PARSE_ERRORS as error:
                raise HeaderError(f"{wanted.text!r}: the headers of this file cannot be compared: {error}") from None
        text, tree = self._heads[key]
        if "$" not in wanted.code:
            from patchkit.edit.shape import fingerprint, same

            statement = parse(wanted.code).body[0]
            if first:
                return [index for index, node in enumerate(tree.body) if same(statement, node)]
            if key not in self._prints:  # who asks twice explains a failure, and asks often
                prints = self._prints[key] = {}
                for index, node in enumerate(tree.body):
                    prints.setdefault(fingerprint(node), []).append(index)
            return self._prints[key].get(fingerprint(statement), [])
        from patchkit.edit.matcher import find_pattern

        outline = Outline(Source(text.encode(), path="<headers>.py"), tree)
        whole = [outline.span(node) for node in tree.body]
        found = {match.span for match in find_pattern(outline, _compile_header(wanted, parse), whole)}
        return [index for index, span in enumerate(whole) if span in found]

    def _head(self, block: Block, colon: int, wanted: _Header) -> str:
        """The header of ``block`` without its colon, reduced to what ``wanted`` compares."""
        owner = block.owner
        if not wanted.any_arguments or not isinstance(owner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return self.source.text[self._header_start(owner) : colon]
        if isinstance(owner, ast.ClassDef):
            return f"class {owner.name}()"
        returns = ""
        if wanted.returns and owner.returns is not None:
            start, end = self.span(owner.returns)
            returns = f" -> ({self.source.text[start:end]})"
        return f"{'async ' if isinstance(owner, ast.AsyncFunctionDef) else ''}def {owner.name}(){returns}"

    def _header_start(self, owner: ast.AST) -> int:
        """The position of a header's first keyword (behind the decorators)."""
        if isinstance(owner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return self.source.position(owner.lineno, owner.col_offset)
        return self.span(owner).start

    def _colon(self, block: Block) -> int:
        """The position of the colon that ends a block's header."""
        source, text = self.source, self.source.text
        if block.previous is not None:
            position = self.span(block.previous).end
        else:
            position = self._header_start(block.owner)
            below: list[ast.AST] = [block.owner]
            while below:
                node = below.pop()
                for field, value in ast.iter_fields(node):
                    if node is block.owner and field in _NOT_IN_HEADER:
                        continue
                    for child in value if isinstance(value, list) else (value,):
                        if hasattr(child, "end_lineno"):
                            position = max(position, source.position(child.end_lineno, child.end_col_offset))
                        elif isinstance(child, ast.AST):
                            below.append(child)
        # Only keywords, names, brackets, commas and comments stand between the last node of a header and its colon.
        while text[position] != ":":
            position = text.index("\n", position) if text[position] == "#" else position + 1
        return position


class _Header(NamedTuple):
    """An ``inside``, read: its keyword, and the statement that it heads (``code``; "" where the keyword says all)."""

    text: str
    keyword: str
    code: str
    any_arguments: bool = False
    returns: bool = False


def _read_header(text: str, parse: Parse) -> _Header:
    """Read the header of a block, with or without a trailing ``:`` or ``: ...``.

    Raises:
        HeaderError: It is none.
    """
    text = text.strip()
    word = re.match(_HEADER_WORD, text)
    if word is None:
        raise HeaderError(
            f"{text!r} is not the header of a block (if, else, for, while, with, try, match, case, def ...)"
        )
    keyword = word.group(1)
    if keyword in ("else", "try", "finally"):
        if not re.fullmatch(_BARE_HEADER, text):
            raise HeaderError(f"{text!r}: only a colon may follow {keyword!r}")
        return _Header(text, keyword, "")
    code, any_arguments, returns = text, False, False
    wildcard = re.match(_ANY_ARGUMENTS, text)
    if wildcard:
        any_arguments = True
        returns = text[wildcard.end() :].lstrip().startswith("->")
        code = f"{wildcard.group(1)}(){text[wildcard.end() :]}"
    problem = "its block must be left out"
    for head in _without_colon(code):
        complete = _complete(keyword, head)
        try:
            body = parse(re.sub(_METAVARIABLE, "_", complete)).body
        except PARSE_ERRORS as error:
            problem = getattr(error, "msg", None) or str(error) or type(error).__name__
            continue
        if len(body) == 1 and _is_stub(body[0]):
            return _Header(text, keyword, complete, any_arguments, returns)
    raise HeaderError(f"{text!r} is not the header of a block: {problem}")


def check_header(text: str, parse: Parse) -> None:
    """Raise :class:`HeaderError` where ``text`` is not the header of a block by ``parse``; needs no file."""
    header = _read_header(text, parse)
    if "$" in header.code:
        _compile_header(header, parse)


def _compile_header(header: _Header, parse: Parse) -> Pattern:
    """The pattern that a header with metavariables is.

    Raises:
        HeaderError: It has a metavariable where none can stand.
    """
    from patchkit.edit.pattern import PatternError, compile_pattern

    try:
        return compile_pattern(header.code, parse)
    except PatternError as error:
        raise HeaderError(f"{header.text!r}: {error.message}") from None


def _without_colon(code: str) -> list[str]:
    """The headers that ``code`` may be meant for, without their colon, likeliest first."""
    dots = re.search(_COLON_DOTS, code)
    if dots:
        return [code[: dots.start()], code]
    return [code[:-1]] if code.endswith(":") else [code]


def _complete(keyword: str, head: str) -> str:
    """A header without its colon, made a whole statement."""
    if keyword == "elif":
        return f"{head[2:]}: ..."
    if keyword == "except":
        return f"try: ...\n{head}: ..."
    if keyword == "match":
        return f"{head}:\n case _: ..."
    if keyword == "case":
        return f"match _:\n {head}: ..."
    return f"{head}: ..."


def _is_stub(statement: ast.AST) -> bool:
    """True where every block below ``statement`` is a single ``...``."""
    below = [statement]
    while below:
        node = below.pop()
        if isinstance(node, ast.Expr):
            if not (isinstance(node.value, ast.Constant) and node.value.value is ...):
                return False
        elif isinstance(node, ast.stmt) and type(node).__name__ not in _OWN_BLOCK:
            return False
        for children in child_lists(node):
            if len(children) > 1:
                return False
            below += children
    return True


def _width(blanks: str) -> int:
    """The column that leading blanks reach: a tab goes to the next multiple of 8, a form feed back to 0."""
    column = 0
    for char in blanks:
        column = 0 if char == "\f" else (column // 8 + 1) * 8 if char == "\t" else column + 1
    return column
