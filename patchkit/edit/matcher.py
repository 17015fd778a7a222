"""Finding every place of a file that a pattern matches.

One goal after another is taken from a list, and where ``$$$`` leaves a choice, the way back is kept on a stack: the
search is complete (a metavariable bound in one place is respected everywhere) and never recurses.
"""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Sequence as AbstractSequence
from typing import Any
from weakref import WeakKeyDictionary

from patchkit.edit.captures import Binding, Capture, Locator
from patchkit.edit.outline import Outline
from patchkit.edit.pattern import Display, Dotted, Index, Many, Node, One, Pattern, Sequence, Value
from patchkit.edit.shape import BLOCKS, Group, is_expression, is_statement, name_node, name_of, same, view
from patchkit.edit.sieve import lines_of
from patchkit.edit.spans import Found, Span
from patchkit.tuples import NamedTuple

__all__ = ["Binding", "Capture", "find_pattern"]


class _Entry(NamedTuple):
    """A node that a pattern may match; ``siblings[position]`` for statements, ``literal`` the f-string around it.

    ``first`` and ``last`` are its lines: all there may be, where it has none of its own or (in an f-string, before
    Python 3.12) not exactly.
    """

    node: Any
    owner: Any
    siblings: list[Any] | None
    position: int
    literal: Any
    first: int
    last: int


class _Trees(NamedTuple):
    """The nodes of a tree by the name of their class, and what is known of their parents."""

    entries: dict[str, list[_Entry]]
    shared: set[int]
    literals: dict[int, Any]


_SKIP = frozenset({"ctx", "op", "ops", "type_comment", "kind", "type_ignores"})
_children: dict[type, tuple[str, ...]] = {}
_whole: WeakKeyDictionary[Outline, _Trees] = WeakKeyDictionary()
_partial: WeakKeyDictionary[Outline, int] = WeakKeyDictionary()
_NOWHERE = 1 << 60
"""A line behind every file's last."""
_PATIENCE = 3
"""How often a part of a file is walked before the whole of it is, once and for all."""


def find_pattern(outline: Outline, pattern: Pattern, regions: AbstractSequence[Span]) -> list[Found]:
    """Every match of ``pattern`` that lies wholly within one of ``regions``, in source order.

    Overlapping matches all count. A run of statements is the shortest that begins at its first.

    Raises:
        RecursionError: The file is nested too deeply (never so far: nothing here recurses).
    """
    if not regions:
        return []
    lines = _Lines(outline, regions)
    trees = _trees(outline, lines)
    locator = Locator(outline, pattern.parse, trees.shared)
    touched = lines_of(outline.source, pattern)
    found: list[Found] = []
    labels = pattern.labels or (tuple(trees.entries) if not pattern.is_expression else ())
    for label in labels:
        for entry in _touching(trees.entries.get(label, []), touched):
            if not lines.hold(entry.owner if pattern.is_expression else entry.node):
                continue
            if pattern.is_expression:
                goal = (pattern.items.items[0], entry.node)
            elif entry.siblings is None or len(entry.siblings) - entry.position < pattern.items.rest[0]:
                continue
            else:
                goal = (_Tail(pattern.items, 0, False), _Items(entry.owner, "", entry.siblings, entry.position))
            solved = _solve(*goal)
            if solved is not None:
                match = _found(locator, pattern, entry, solved, trees)
                if lines.contain(match.span):
                    found.append(match)
    found.sort(key=lambda match: (match.span.start, -match.span.end))
    return found


def _touching(entries: list[_Entry], lines: list[int] | None) -> list[_Entry]:
    """The entries that have one of ``lines``; all where that is None."""
    if lines is None:
        return entries
    ends = [*lines, _NOWHERE]
    return [entry for entry in entries if ends[bisect_left(ends, entry.first)] <= entry.last]


def _found(locator: Locator, pattern: Pattern, entry: _Entry, solved: _Solution, trees: _Trees) -> Found:
    captures = {
        name: locator.capture(binding, _literal_of(binding, trees.literals))
        for name, binding in solved.bindings.items()
    }
    if pattern.is_expression:
        span, exact = locator.expression(entry.node, entry.literal)
        return Found(span, (entry.node,), captures, entry.owner, exact)
    assert entry.siblings is not None
    nodes = tuple(entry.siblings[entry.position : solved.stop])
    start = locator.outline.span(nodes[0]).start
    first = pattern.items.items[0]
    if isinstance(first, Node) and all(name != "decorator_list" for name, _ in first.fields):
        start = locator.source.position(nodes[0].lineno, nodes[0].col_offset)
    return Found(Span(start, locator.outline.span(nodes[-1]).end), nodes, captures, entry.owner)


def _literal_of(binding: Binding, literals: dict[int, Any]) -> Any:
    for node in (binding.container, *binding.nodes):
        if id(node) in literals:
            return literals[id(node)]
    return None


class _Lines:
    """The regions, as lines for a first choice of nodes and as spans for the last word."""

    def __init__(self, outline: Outline, regions: AbstractSequence[Span]) -> None:
        source = outline.source
        self.spans = sorted(regions)
        self.reach: list[int] = []
        for span in self.spans:
            self.reach.append(max(span.end, self.reach[-1] if self.reach else 0))
        self.first = [source.line(span.start) for span in self.spans]
        self.last = [source.line(end) for end in self.reach]
        self.whole = any(span.start == 0 and span.end >= len(source.text) for span in self.spans)

    def contain(self, span: Span) -> bool:
        """True where one region holds the whole of ``span``."""
        index = bisect_right(self.spans, span.start, key=lambda region: region.start) - 1
        return index >= 0 and self.reach[index] >= span.end

    def hold(self, node: Any) -> bool:
        """False where no region has a line of ``node`` (a statement)."""
        if self.whole:
            return True
        line = getattr(node, "lineno", None)
        if line is None:  # a case, the module
            return True
        for decorator in getattr(node, "decorator_list", ())[:1]:
            line = min(line, decorator.lineno)
        index = bisect_right(self.first, node.end_lineno) - 1
        return index >= 0 and self.last[index] >= line


def _trees(outline: Outline, lines: _Lines) -> _Trees:
    known = _whole.get(outline)
    if known is not None:
        return known
    walks = _partial.get(outline, 0)
    if not lines.whole and walks < _PATIENCE:
        _partial[outline] = walks + 1
        return _walk(outline.tree, lines)
    trees = _whole[outline] = _walk(outline.tree, None)
    return trees


def _walk(tree: ast.Module, lines: _Lines | None) -> _Trees:
    entries: dict[str, list[_Entry]] = {}
    shared: set[int] = set()
    literals: dict[int, Any] = {}
    blocks: list[tuple[list[Any], Any]] = [(tree.body, tree)]
    while blocks:
        siblings, owner = blocks.pop()
        for index, statement in enumerate(siblings):
            if lines is not None and not lines.hold(statement):
                continue
            below: list[tuple[Any, Any]] = []
            if is_statement(statement):
                first = (getattr(statement, "decorator_list", None) or [statement])[0].lineno
                entry = _Entry(statement, owner, siblings, index, None, first, statement.end_lineno)
                entries.setdefault(name_of(statement), []).append(entry)
            for field in statement._fields:
                value = getattr(statement, field, None)
                if isinstance(value, list):
                    if field in BLOCKS:
                        blocks.append((value, statement))
                    else:
                        below += [(child, None) for child in value if isinstance(child, ast.AST)]
                elif isinstance(value, ast.AST):
                    below.append((value, None))
            _walk_expressions(below, statement, entries, shared, literals)
    return _Trees(entries, shared, literals)


def _walk_expressions(
    pending: list[tuple[Any, Any]],
    owner: Any,
    entries: dict[str, list[_Entry]],
    shared: set[int],
    literals: dict[int, Any],
) -> None:
    while pending:
        node, literal = pending.pop()
        kind = type(node)
        label = kind.__name__
        if literal is not None:
            literals[id(node)] = literal
        first = 0 if literal is not None else getattr(node, "lineno", 0)
        entry = _Entry(node, owner, None, 0, literal, first, node.end_lineno if first else _NOWHERE)
        if label in entries:
            entries[label].append(entry)
        else:
            entries[label] = [entry]
        if label == "JoinedStr" or label == "TemplateStr":
            literal = literal or node
        elif label == "Call" and len(node.args) == 1 and name_of(node.args[0]) == "GeneratorExp":
            generator = node.args[0]
            shares = (node.end_lineno, node.end_col_offset) == (generator.end_lineno, generator.end_col_offset)
            shared.update([id(generator)] if shares else ())
        fields = _children.get(kind)
        if fields is None:
            fields = () if label in ("Name", "Constant") else tuple(f for f in kind._fields if f not in _SKIP)
            _children[kind] = fields
        for field in fields:
            value = getattr(node, field, None)
            if isinstance(value, list):
                pending += [(child, literal) for child in value if isinstance(child, ast.AST)]
            elif isinstance(value, ast.AST):
                pending.append((value, literal))


# -- unification -------------------------------------------------------------------------------------------------


class _Tail(NamedTuple):
    """The part of a sequence from ``at`` on; ``closed``: it must take the whole list."""

    sequence: Sequence
    at: int
    closed: bool


class _Items(NamedTuple):
    """The part of a list of the tree from ``at`` on."""

    container: Any
    field: str
    nodes: list[Any]
    at: int


class _Solution(NamedTuple):
    bindings: dict[str, Binding]
    stop: int


_Goals = tuple[Any, Any, Any] | None


class _Choice(NamedTuple):
    """A ``$$$`` that may still take more: how many elements it takes next, and the state to go back to."""

    tail: _Tail
    items: _Items
    stop: int
    goals: _Goals
    bound: int


def _solve(pattern: Any, target: Any) -> _Solution | None:
    """Unify; None where it cannot be done."""
    search = _Search()
    goals: _Goals = (pattern, target, None)
    while goals is not None:
        wanted, given, rest = goals
        goals = search.step(wanted, given, rest)
        if goals is _FAIL:
            goals = search.back()
            if goals is _FAIL:
                return None
    return _Solution(search.bindings, search.stop)


_FAIL: _Goals = (None, None, None)


class _Search:
    """The bindings made so far, in order, and the choices that are left."""

    def __init__(self) -> None:
        self.bindings: dict[str, Binding] = {}
        self.choices: list[_Choice] = []
        self.stop = 0

    def back(self) -> _Goals:
        while self.choices:
            choice = self.choices.pop()
            while len(self.bindings) > choice.bound:
                self.bindings.popitem()
            goals = self._take(choice.tail, choice.items, choice.stop, choice.goals)
            if goals is not _FAIL:
                return goals
        return _FAIL

    def step(self, wanted: Any, given: Any, rest: _Goals) -> _Goals:
        """Work one goal off: the goals that are left, or :data:`_FAIL`."""
        if isinstance(wanted, Node):
            if isinstance(given, Group):
                if given.label != wanted.label:
                    return _FAIL
            elif type(given).__name__ != wanted.label:
                return _FAIL
            return self._fields(wanted, given, rest)
        if isinstance(wanted, _Tail):
            return self._tail(wanted, given, rest)
        if isinstance(wanted, One):
            return rest if self._one(wanted, given, None, "") else _FAIL
        if isinstance(wanted, Display):
            if name_of(given) not in ("Set", "Dict"):
                return _FAIL
            field, nodes = view(given)[1][0]
            return (_Tail(wanted.sequence, 0, True), _Items(given, field, nodes, 0), rest)
        raise AssertionError(wanted)  # pragma: no cover

    def _fields(self, wanted: Node, given: Any, rest: _Goals) -> _Goals:
        fields = dict(view(given)[1])
        for name, part in reversed(wanted.fields):
            value = fields.get(name)
            if isinstance(part, Value):
                expected = part.value
                if value is not expected and (type(value) is not type(expected) or repr(value) != repr(expected)):
                    return _FAIL
            elif isinstance(part, Sequence):
                least = max(part.rest[0], 1 if part.not_empty and part.items else 0)
                if not isinstance(value, list) or len(value) < least:
                    return _FAIL
                rest = (_Tail(part, 0, True), _Items(given, name, value, 0), rest)
            elif isinstance(part, Index):
                elements = getattr(value, "elts", [value]) if name_of(value) == "Tuple" else [value]
                rest = (_Tail(part.sequence, 0, True), _Items(given, name, elements, 0), rest)
            elif isinstance(part, Dotted):
                if not isinstance(value, str) or not self._dotted(part, value, given, name):
                    return _FAIL
            elif isinstance(part, One):
                if not self._one(part, value, given, name):
                    return _FAIL
            else:
                rest = (part, value, rest)
        return rest

    def _tail(self, tail: _Tail, items: _Items, rest: _Goals) -> _Goals:
        sequence, at, closed = tail
        nodes = items.nodes
        position = items.at
        while at < len(sequence.items):
            item = sequence.items[at]
            if isinstance(item, Many):
                return self._take(_Tail(sequence, at, closed), items._replace(at=position), position, rest)
            if position >= len(nodes):
                return _FAIL
            if isinstance(item, One):
                if not self._one(item, nodes[position], items.container, items.field, nodes, position):
                    return _FAIL
            elif isinstance(item, Value):
                if item.value != nodes[position]:
                    return _FAIL
            else:
                after = (_Tail(sequence, at + 1, closed), items._replace(at=position + 1), rest)
                return (item, nodes[position], after)
            at += 1
            position += 1
        if closed:
            return rest if position == len(nodes) else _FAIL
        self.stop = position
        return rest

    def _take(self, tail: _Tail, items: _Items, stop: int, rest: _Goals) -> _Goals:
        """Let the ``$$$`` at the head of ``tail`` take the elements up to ``stop``, and keep the further choices."""
        sequence, at, closed = tail
        most = len(items.nodes) - sequence.rest[at + 1]
        if closed and sequence.rest[at + 1] == len(sequence.items) - at - 1:  # no other $$$ behind it: no choice
            stop = most
        if stop > most or stop < items.at:
            return _FAIL
        if stop < most:
            self.choices.append(_Choice(tail, items, stop + 1, rest, len(self.bindings)))
        item = sequence.items[at]
        nodes = tuple(items.nodes[items.at : stop])
        kind = "items" if items.field == "items" and item.kind == "elements" else item.kind  # {$$$} of a dict
        binding = Binding(kind, nodes, items.container, items.field, items.nodes, items.at, stop)
        if not self._bind(item.name, binding):
            return _FAIL
        return (_Tail(sequence, at + 1, closed), items._replace(at=stop), rest)

    def _one(
        self, one: One, value: Any, container: Any, field: str, siblings: list[Any] | None = None, index: int = 0
    ) -> bool:
        kind = _kind_of(value)
        if kind is None or not _accepts(one.kind, kind):
            return False
        plain = _plain_name(value)
        if plain is not None:  # the same code as that name elsewhere
            name, holder = plain
            return self._bind(one.name, Binding("name", (name_node(name),), holder or container, field, [name], 0, 1))
        nodes = (value,)
        within = [value] if siblings is None else siblings
        return self._bind(one.name, Binding(kind, nodes, container, field, within, index, index + 1))

    def _bind(self, name: str | None, binding: Binding) -> bool:
        if name is None:
            return True
        known = self.bindings.get(name)
        if known is None:
            self.bindings[name] = binding
            return True
        return same(list(known.nodes), list(binding.nodes))

    def _dotted(self, dotted: Dotted, value: str, container: Any, field: str) -> bool:
        parts = value.split(".")
        extra = len(parts) - len(dotted.parts)
        if extra < 0:
            return False
        groups = [".".join(parts[: extra + 1]), *parts[extra + 1 :]]
        for wanted, given in zip(dotted.parts, groups, strict=True):
            if isinstance(wanted, One):
                if not self._one(wanted, given, container, field):
                    return False
            elif wanted != given:
                return False
        return True


def _kind_of(value: Any) -> str | None:
    """What a value of the tree can be captured as."""
    if isinstance(value, Group):
        return {"param": "parameter", "item": "item", "kwd": "pattern"}.get(value.label)
    if isinstance(value, str):
        return None if value == "*" else "name"
    if not isinstance(value, ast.AST):
        return None
    label = name_of(value)
    if label in ("keyword", "Starred"):
        return "argument"
    if is_expression(value):
        return "expression"
    if is_statement(value):
        return "statement"
    if label in ("TypeVar", "TypeVarTuple", "ParamSpec"):
        return "type parameter"
    return "pattern" if label.startswith("Match") else None


def _plain_name(value: Any) -> tuple[str, Any] | None:
    """The name that a piece of code is and nothing more, and the node that it stands in (None: the one above)."""
    if isinstance(value, str):
        return value, None
    if isinstance(value, Group):
        bare = value.label == "param" and not value.get("star")
        plain = bare and value.get("annotation") is None and value.get("default") is None
        return (value.get("name"), value.get("arg")) if plain else None
    label = name_of(value)
    if label == "MatchAs" and value.pattern is None and value.name is not None:
        return value.name, value
    if label == "TypeVar" and value.bound is None and getattr(value, "default_value", None) is None:
        return value.name, value
    return None


def _accepts(wanted: str, kind: str) -> bool:
    return wanted == kind or (wanted == "argument" and kind == "expression")
