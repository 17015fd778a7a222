"""Finding every place of a file that a pattern matches: which nodes to try, and what a match of one is.

Whether a node matches is told by :mod:`patchkit.edit.unify`.
"""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Sequence as AbstractSequence
from typing import Any
from weakref import WeakKeyDictionary

from patchkit.edit.captures import Binding, Capture, Locator
from patchkit.edit.outline import Outline
from patchkit.edit.pattern import Node, Pattern
from patchkit.edit.shape import BLOCKS, is_statement, name_of
from patchkit.edit.sieve import lines_of
from patchkit.edit.spans import Found, Span
from patchkit.edit.unify import Solution, Unifier
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
        PlanError: ``ambiguous``: the pattern can be taken in too many ways.
        RecursionError: The file is nested too deeply (never so far: nothing here recurses).
    """
    if not regions:
        return []
    lines = _Lines(outline, regions)
    trees = _trees(outline, lines)
    locator = Locator(outline, pattern.parse, trees.shared)
    unifier = Unifier(pattern, outline.source.path)
    touched = lines_of(outline.source, pattern)
    found: list[Found] = []
    labels = pattern.labels or (tuple(trees.entries) if not pattern.is_expression else ())
    for label in labels:
        for entry in _touching(trees.entries.get(label, []), touched):
            if not lines.hold(entry.owner if pattern.is_expression else entry.node):
                continue
            if pattern.is_expression:
                solved = unifier.expression(entry.node)
            elif entry.siblings is None or len(entry.siblings) - entry.position < pattern.items.rest[0]:
                continue
            else:
                solved = unifier.statements(entry.owner, entry.siblings, entry.position)
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


def _found(locator: Locator, pattern: Pattern, entry: _Entry, solved: Solution, trees: _Trees) -> Found:
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
    for node in (binding.container, *binding.nodes[:1]):
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
