"""What a metavariable stands for in a match: its nodes and the exact place of their text.

A node's own position leaves out the parentheses around it, has no star before a parameter and no ``**`` before a
dict's item; and inside an f-string it can be plainly wrong before Python 3.12. The spans made here are those of
what a reader would copy.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, Any

from patchkit.edit.lexer import Token, code_tokens, lex, matching
from patchkit.edit.parse import BLANKS, PARSE_ERRORS, Parse
from patchkit.edit.shape import Group, blocks_of, is_compound, name_node, name_of, same
from patchkit.edit.spans import Span
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.edit.outline import Outline


_PATIENCE = 500
"""How many places in an f-string are tried for an expression whose position is wrong."""


class Capture(NamedTuple):
    """What one metavariable matched.

    ``kind`` is ``expression``, ``argument``, ``name``, ``parameter``, ``item``, ``pattern`` or ``type parameter`` for
    ``$X``, a plural (``arguments``, ``elements``, ``statements`` ...) for ``$$$XS``. ``nodes`` are its nodes
    (:class:`~patchkit.edit.shape.Group` for pieces without one; a name as ``ast.Name``). ``span`` is its text, empty
    where ``$$$XS`` matched nothing; ``exact`` is False where its place in the text could not be made sure of.
    ``outer`` is more of the text, for a template that has a place for it: an expression with the parentheses around
    it; a list that is all of its brackets' with everything between those, another with the comments at its ends; the
    one ``if`` that an ``elif`` is from that word on. None where there is no more.
    """

    kind: str
    nodes: tuple[Any, ...]
    span: Span
    exact: bool = True
    outer: Span | None = None

    @property
    def many(self) -> bool:
        """True for what ``$$$XS`` matched."""
        return self.kind.endswith("s")


class Binding(NamedTuple):
    """A capture before its place is known: where its nodes are in the tree.

    ``nodes`` are what is compared where the name comes again; ``siblings[start:stop]`` in ``field`` of ``container``.
    """

    kind: str
    nodes: tuple[Any, ...]
    container: Any
    field: str
    siblings: list[Any]
    start: int
    stop: int


class Locator:
    """Finds the spans of captures in one file."""

    def __init__(self, outline: Outline, parse: Parse, shared: set[int]) -> None:
        """``shared`` are the ids of generator expressions whose parentheses are also their call's."""
        self.outline = outline
        self.source = outline.source
        self.text = outline.source.text
        self.parse = parse
        self.shared = shared
        self._tokens: dict[int, list[Token]] = {}

    # -- expressions ---------------------------------------------------------------------------------------------

    def own(self, node: Any) -> Span:
        """The span of a node without parentheses around it; those of a call are not its generator's."""
        if name_of(node) == "Tuple" and not hasattr(node, "lineno"):  # several slices, before Python 3.9
            return Span(self.own(node.elts[0]).start, self.own(node.elts[-1]).end)
        start = self.source.position(node.lineno, node.col_offset)
        end = self.source.position(node.end_lineno, node.end_col_offset)
        if id(node) in self.shared:
            inner = code_tokens(lex(self.text, start, end))[1:-1]
            return Span(inner[0].start, inner[-1].end)
        return Span(start, end)

    def expression(self, node: Any, literal: Any) -> tuple[Span, bool]:
        """The span of an expression, and whether it is sure; ``literal`` is the f-string that it lies in, or None."""
        if literal is None:
            return self.own(node), True
        try:
            claimed = self.own(node)
            if self.is_text_of(claimed, node):
                return claimed, True
        except (IndexError, AttributeError, ValueError):
            pass
        whole = self.own(literal)
        found = [span for span in self._pieces(whole, node) if self.is_text_of(span, node)]
        return (found[0], True) if len(found) == 1 else (whole, False)

    def is_text_of(self, span: Span, node: Any) -> bool:
        """True where the text of ``span`` is the code of ``node``."""
        if span.start >= span.end:
            return False
        try:
            body: list[Any] = list(self.parse(f"(\n{self.text[span.start : span.end]}\n)").body)
        except PARSE_ERRORS:
            return False
        return len(body) == 1 and name_of(body[0]) == "Expr" and same(node, body[0].value)

    def _pieces(self, whole: Span, node: Any) -> list[Span]:
        """Runs of tokens within the braces of an f-string that begin and end as the code of ``node`` may."""
        spans: list[Span] = []
        one_line = node.end_lineno == node.lineno
        width = node.end_col_offset - node.col_offset
        tokens = lex(self.text, whole.start, whole.end)
        for index, token in enumerate(tokens):
            if token.kind in ("fmid", "fspec", "fopen", "fclose", "fend", "comment", "newline"):
                continue
            for last in tokens[index:]:
                length = last.end - token.start
                if last.kind in ("fmid", "fspec") or (one_line and length > width) or len(spans) > _PATIENCE:
                    break
                if length == width or not one_line:
                    spans.append(Span(token.start, last.end))
        return spans

    # -- pieces of lists -----------------------------------------------------------------------------------------

    def _bounds(self, container: Any, field: str) -> tuple[list[Token], int, int]:
        """A container's tokens, and the indices of the brackets that its list stands in (just outside, if in none)."""
        span = self._header(container)
        tokens = self._tokens.get(id(container))
        if tokens is None:
            tokens = self._tokens[id(container)] = code_tokens(lex(self.text, span.start, span.end))
        last = len(tokens) - 1
        kind = name_of(container)
        if kind in ("Call", "MatchClass", "Subscript"):
            return tokens, matching(tokens, last), last
        if field in ("arguments", "params", "type_params") and kind != "Lambda":
            square = next((i for i, token in enumerate(tokens) if token.text == "["), -1)
            if field == "type_params":
                return tokens, square, matching(tokens, square)
            after = matching(tokens, square) if getattr(container, "type_params", None) else 0
            opening = next((i for i, token in enumerate(tokens) if i > after and token.text == "("), -1)
            if opening >= 0:
                return tokens, opening, matching(tokens, opening)
        if tokens and tokens[0].text in ("(", "[", "{") and matching(tokens, 0) == last:
            return tokens, 0, last
        return tokens, -1, len(tokens)

    def _header(self, node: Any) -> Span:
        """The span of a node, of a statement with a block only up to the block (from ``def`` or ``class``)."""
        if name_of(node) == "Lambda" or not is_compound(node):
            return self.own(node)
        start = self.source.position(node.lineno, node.col_offset)
        below = next(block for _, block in blocks_of(node) if block)
        return Span(start, self.outline.span(below[0]).start)

    def outer(self, span: Span, container: Any, field: str) -> Span:
        """``span`` with the parentheses around it that are not part of its container."""
        tokens, low, high = self._bounds(container, field)
        first = bisect_left(tokens, span.start, key=lambda token: token.start)
        last = bisect_right(tokens, span.end, key=lambda token: token.end) - 1
        while first - 1 > low and last + 1 < high and (tokens[first - 1].text, tokens[last + 1].text) == ("(", ")"):
            first, last = first - 1, last + 1
        return Span(tokens[first].start, tokens[last].end)

    def _parenthesised(self, span: Span, binding: Binding) -> Span | None:
        """An expression with the parentheses around it, None where there are none."""
        blanks = BLANKS + "\\\n"
        before = self.text[self.source.line_start(span.start) : span.start].rstrip(blanks)
        after = self.text[span.end : self.source.line_end(span.end)].lstrip(blanks)[:1]
        if before[-1:] not in ("(", "") or after not in (")", "#", "") or name_of(binding.container) == "NoneType":
            return None
        try:
            outer = self.outer(span, binding.container, binding.field)
        except (IndexError, AttributeError, ValueError):
            return None
        return outer if outer != span else None

    def piece(self, value: Any, container: Any, field: str) -> Span:
        """The span of one element of a list, with its parentheses, stars, names and defaults."""
        if isinstance(value, str):
            return self._word(value, container)
        if isinstance(value, Group):
            return self._group(value, container, field)
        kind = name_of(value)
        if kind == "withitem":
            start = self.outer(self.own(value.context_expr), container, field)
            if value.optional_vars is None:
                return start
            return Span(start.start, self.outer(self.own(value.optional_vars), container, field).end)
        if getattr(value, "lineno", None) is None and kind == "keyword":  # before Python 3.9
            end = self.outer(self.own(value.value), container, field)
            return Span(self._before(end.start, container, field, 1 if value.arg is None else 2), end.end)
        if field == "decorator_list":
            return self._decorator(value)
        span = self.own(value)
        return span if kind in ("keyword", "alias") else self.outer(span, container, field)

    def _before(self, position: int, container: Any, field: str, count: int) -> int:
        """Where the token begins that stands ``count`` before the one at ``position``."""
        tokens = self._bounds(container, field)[0]
        return tokens[bisect_left(tokens, position, key=lambda token: token.start) - count].start

    def _group(self, group: Group, container: Any, field: str) -> Span:
        if group.label == "param":
            arg, default = group.get("arg"), group.get("default")
            span = self.own(arg)
            start = self._before(span.start, container, field, 1) if group.get("star") else span.start
            end = span.end if default is None else self.outer(self.own(default), container, field).end
            return Span(start, end)
        if group.label in ("slash", "star"):
            tokens, low, high = self._bounds(container, field)
            word = "/" if group.label == "slash" else "*"
            for index in range(low + 1, high):
                if tokens[index].text == word and tokens[index + 1].text in (",", ")", ":"):
                    return Span(tokens[index].start, tokens[index].end)
            raise ValueError(f"no {word!r} among the parameters")
        key, value = group.get("key"), group.get("value")
        if isinstance(value, str):
            last = self._word(value, container)
        else:
            last = self.outer(self.own(value), container, field)
        if group.label == "kwd":
            return Span(self._before(last.start, container, field, 2), last.end)
        if key is None:
            return Span(self._before(last.start, container, field, 1), last.end)
        return Span(self.outer(self.own(key), container, field).start, last.end)

    def _decorator(self, node: Any) -> Span:
        """A decorator from its ``@`` to its end."""
        node_start, end = self.own(node)
        start = self.text.rfind("@", 0, node_start)
        while start >= 0:
            between = [token.text for token in code_tokens(lex(self.text, start, node_start))]
            if all(word == "(" for word in between[1:]):
                break
            start = self.text.rfind("@", 0, start)  # that one was in a comment
        else:
            raise ValueError("a decorator without its @")
        for _ in between[1:]:
            end = self.text.index(")", end) + 1
        return Span(start, end)

    def _word(self, name: str, container: Any) -> Span:
        """The span of a dotted name that a node holds as a string: the last such name of its header, or its text."""
        span = self._header(container)
        tokens = code_tokens(lex(self.text, span.start, span.end))
        parts = name.split(".")
        places = [
            index
            for index in range(len(tokens))
            if [token.text for token in tokens[index : index + 2 * len(parts) - 1 : 2]] == parts
            and all(token.text == "." for token in tokens[index + 1 : index + 2 * len(parts) - 2 : 2])
        ]
        if not places:
            return Span(span.start, span.start)
        index = places[-1] if name_of(container) == "Attribute" else places[0]
        return Span(tokens[index].start, tokens[index + 2 * len(parts) - 2].end)

    # -- captures ------------------------------------------------------------------------------------------------

    def capture(self, binding: Binding, literal: Any) -> Capture:
        """The capture of a binding; ``literal`` is the f-string that it lies in, or None."""
        kind, nodes = binding.kind, binding.nodes
        if kind == "expression":
            span, exact = self.expression(nodes[0], literal)
            outer = self._parenthesised(span, binding) if literal is None else None
            return Capture(kind, nodes, span, exact, outer)
        if kind == "name":
            return self._name(binding)
        if kind == "pattern":
            return Capture(kind, nodes, self.own(nodes[0]))
        if kind == "cases":
            return Capture(kind, nodes, self._cases(binding))
        if kind == "statements":
            span = self.statements(binding.siblings, binding.start, binding.stop)
            return Capture(kind, nodes, span, True, self._arm(span, binding))
        if not nodes:
            return Capture(kind, nodes, Span(0, 0), True, self._fringe(None, binding) if literal is None else None)
        try:
            first = self.piece(binding.siblings[binding.start], binding.container, binding.field)
            last = self.piece(binding.siblings[binding.stop - 1], binding.container, binding.field)
        except (IndexError, ValueError):
            if literal is None:
                raise
            return Capture(kind, nodes, self.own(literal), False)
        span = Span(first.start, last.end)
        if literal is not None:
            return Capture(kind, nodes, span, self._is_list(span, nodes))
        if kind == "decorators":
            return Capture(kind, nodes, Span(span.start, self._comments_behind(span.end, binding)))
        return Capture(kind, nodes, span, True, self._fringe(span, binding))

    def _comments_behind(self, end: int, binding: Binding) -> int:
        """``end`` of some decorators, moved behind the comments that follow up to the next decorator or the ``def``."""
        container, stop = binding.container, binding.stop
        if stop < len(binding.siblings):
            limit = self._decorator(binding.siblings[stop]).start
        else:
            limit = self.source.position(container.lineno, container.col_offset)
        return max([end, *(token.end for token in lex(self.text, end, limit) if token.kind == "comment")])

    def _brackets(self, container: Any, field: str) -> Span | None:
        """What stands between the brackets of a container's list, None where it has none."""
        tokens, low, high = self._bounds(container, field)
        if low < 0 and name_of(container) in ("ImportFrom", "With", "AsyncWith"):
            high = len(tokens) - (1 if name_of(container) == "ImportFrom" else 2)
            low = matching(tokens, high) if tokens[high].text == ")" else -1
            if tokens[low - 1].text not in ("import", "with"):
                return None
        return Span(tokens[low].end, tokens[high].start) if low >= 0 else None

    def _fringe(self, span: Span | None, binding: Binding) -> Span | None:
        """All between the brackets, for all that is there; for a part of it ``span`` with its comments, if any.

        Those behind its last line and its comma, and those on lines of their own above it (next to a bracket, all).
        """
        container, field, siblings = binding.container, binding.field, binding.siblings
        start, stop = binding.start, binding.stop
        try:
            within = self._brackets(container, field)
            if within is None or stop - start == len(siblings):
                return within
            if span is None:
                return None
            before = self.piece(siblings[start - 1], container, field).end if start else within.start
            after = self.piece(siblings[stop], container, field).start if stop < len(siblings) else within.end
        except (IndexError, ValueError, AttributeError):
            return None
        begin, end = span
        own_line = not start
        above = lex(self.text, before, span.start)
        comma = next((index for index, token in enumerate(above) if token.text == ","), -1)
        for token in above[comma + 1 :]:
            if token.kind == "newline" and not own_line:
                own_line, before = True, token.start
            elif token.kind == "comment" and own_line:
                begin = before
                break
        for token in lex(self.text, span.end, after):
            if token.kind == "newline" and stop < len(siblings):
                break
            if token.kind == "comment":
                end = token.end
        return Span(begin, end) if (begin, end) != span else None

    def _arm(self, span: Span, binding: Binding) -> Span | None:
        """An ``elif`` arm that is all of an ``else`` from that word, or the comments right above it, on."""
        outline, source = self.outline, self.source
        if binding.field != "orelse" or binding.stop - binding.start != 1 or not outline.is_elif(binding.nodes[0]):
            return None
        begin = span.start
        width = begin - source.line_start(begin)
        line = source.line(begin) - 1
        while line >= 1:
            content = source.line_text(line)
            bare = content.lstrip(BLANKS)
            if bare and bare[0] != "#":
                break
            if bare and len(content) - len(bare) <= width:
                begin = source.starts[line - 1] + len(content) - len(bare)
            line -= 1
        return Span(begin, span.end)

    def _is_list(self, span: Span, nodes: tuple[Any, ...]) -> bool:
        """True where the text of ``span`` is that list of arguments (for code within f-strings)."""
        try:
            call: Any = self.parse(f"_(\n{self.text[span.start : span.end]}\n)").body[0]
        except PARSE_ERRORS:
            return False
        return same(list(nodes), [*call.value.args, *call.value.keywords])

    def _name(self, binding: Binding) -> Capture:
        value = binding.siblings[binding.start]
        container = binding.container
        if isinstance(container, Group):
            container = container.get("arg") or container.get("value")
        try:
            span = self._word(value, container)
        except (ValueError, AttributeError, IndexError):
            span = Span(0, 0)
        return Capture("name", (name_node(value),), span)

    def _cases(self, binding: Binding) -> Span:
        cases = binding.siblings[binding.start : binding.stop]
        if not cases:
            return Span(0, 0)
        start = self.outline.span(cases[0]).start
        last = cases[-1].body
        return Span(start, self.statements(last, 0, len(last)).end)

    def statements(self, siblings: list[Any], start: int, stop: int) -> Span:
        """The text of ``siblings[start:stop]`` with the comments that belong to them.

        From the first own-line comment directly above (blank lines may lie between) to the trailing comment of the
        last line and, within the block, the comment lines after it. The first line without its indentation.
        """
        if start == stop:
            return Span(0, 0)
        source, text, outline = self.source, self.text, self.outline
        first = outline.span(siblings[start])
        begin, end = first.start, outline.span(siblings[stop - 1]).end
        own_lines = outline.starts_line(siblings[start])
        if own_lines and not outline.is_elif(siblings[start]):
            line = source.line(begin) - 1
            while line >= 1:
                content = source.line_text(line)
                bare = content.lstrip(BLANKS)
                if bare and bare[0] != "#":
                    break
                if bare:
                    begin = source.starts[line - 1] + len(content) - len(bare)
                line -= 1
        following = siblings[stop] if stop < len(siblings) else None
        if following is not None and not outline.starts_line(following):
            return Span(begin, end)
        end = end_of_line(text, end, source.line_end(end))
        if not own_lines:
            return Span(begin, end)
        return Span(begin, self._comments_below(end, following, outline.indent_of(siblings[start])))

    def _comments_below(self, end: int, following: Any, indent: str) -> int:
        """``end``, moved behind the comment lines that follow at ``indent`` or deeper, up to the next statement."""
        source, text = self.source, self.text
        at = source.line_end(end)
        while at < len(text):
            stop = source.line_end(at)
            content = text[at:stop].rstrip("\n")
            bare = content.lstrip(BLANKS)
            if bare:
                if bare[0] != "#" or (following is None and len(content) - len(bare) < len(indent)):
                    break
                end = at + len(content)
            at = stop
        return end


def end_of_line(text: str, position: int, line_end: int) -> int:
    """The end of a trailing comment (and ``;``) behind ``position``; ``position`` itself where there is none."""
    rest = text[position:line_end].rstrip("\n")
    bare = rest.lstrip(BLANKS + ";")
    return position + len(rest) if bare.startswith("#") else position
