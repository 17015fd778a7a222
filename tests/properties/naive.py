"""Syntax edits done the slow way, on trees alone: what the properties of patchkit's are compared with.

Nothing here comes from patchkit. Code is compared as nested tuples; a pattern is Python in which names that begin with
``PK`` are metavariables (``PKS`` for ``$$$``); a match is replaced in a copy of the tree.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple

ONE, MANY = "PK", "PKS"
IGNORED = ("ctx", "kind", "type_comment", "type_ignores")
BLOCKS = ("body", "handlers", "cases", "orelse", "finalbody")


def key(node: Any) -> Any:
    """The meaning of code, as a value that can be compared."""
    if isinstance(node, list):
        return tuple(key(item) for item in node)
    if not isinstance(node, ast.AST):
        return type(node).__name__, repr(node)
    fields = (key(getattr(node, name, None)) for name in node._fields if name not in IGNORED)
    return type(node).__name__, *fields


def arguments(call: ast.Call) -> list[Any]:
    """What stands between the parentheses, in source order."""
    if not any(isinstance(one, ast.Starred) for one in call.args):
        return [*call.args, *call.keywords]
    return sorted([*call.args, *call.keywords], key=lambda one: (one.lineno, one.col_offset))


def metavariable(node: Any) -> str | None:
    """The name of the metavariable that a node of a pattern is."""
    if isinstance(node, ast.Expr):
        node = node.value
    if isinstance(node, ast.Name) and node.id.startswith(ONE):
        return node.id
    return None


Bound = dict[str, list[Any]]


def unify(pattern: Any, node: Any, bound: Bound) -> bool:
    """Whether ``pattern`` matches; ``bound`` gets what its metavariables stand for."""
    name = metavariable(pattern) if isinstance(pattern, ast.Name) else None
    if name is not None:
        return isinstance(node, ast.expr) and not isinstance(node, ast.Starred) and bind(name, [node], bound)
    if isinstance(pattern, list):
        return isinstance(node, list) and items(pattern, node, bound, lambda pattern: None)
    if type(pattern) is not type(node):
        return False
    if not isinstance(pattern, ast.AST):
        return repr(pattern) == repr(node)
    if isinstance(pattern, ast.Call):
        return unify(pattern.func, node.func, bound) and items(
            arguments(pattern), arguments(node), bound, lambda one: metavariable(one)
        )
    for field in pattern._fields:
        if field in IGNORED:
            continue
        wanted, given = getattr(pattern, field, None), getattr(node, field, None)
        if field in BLOCKS and isinstance(wanted, list):
            if wanted and not given and field in ("orelse", "finalbody"):
                return False
            if not (isinstance(given, list) and items(wanted, given, bound, statement_slot)):
                return False
        elif not unify(wanted, given, bound):
            return False
    return True


def statement_slot(pattern: Any) -> str | None:
    return metavariable(pattern) if isinstance(pattern, ast.Expr) else None


def items(pattern: list[Any], nodes: list[Any], bound: Bound, slot: Callable[[Any], str | None]) -> bool:
    """A list against a list; ``slot`` tells what is a metavariable for whole elements."""
    if not pattern:
        return not nodes
    name = slot(pattern[0])
    if name is not None and name.startswith(MANY):
        for taken in range(len(nodes) + 1):
            trial = dict(bound)
            if bind(name, nodes[:taken], trial) and items(pattern[1:], nodes[taken:], trial, slot):
                bound.clear()
                bound.update(trial)
                return True
        return False
    if not nodes:
        return False
    if name is not None and not isinstance(pattern[0], ast.Expr):
        first = bind(name, [nodes[0]], bound)
    else:
        first = unify(pattern[0], nodes[0], bound)
    return first and items(pattern[1:], nodes[1:], bound, slot)


def bind(name: str, nodes: list[Any], bound: Bound) -> bool:
    if name in bound:
        return key(bound[name]) == key(nodes)
    bound[name] = nodes
    return True


class Match(NamedTuple):
    """A match: an expression, or neighbouring statements ``siblings[first:last]``; lines and columns as ``ast`` has."""

    nodes: list[Any]
    bound: Bound
    siblings: list[Any] | None
    first: int
    owner: Any
    in_string: bool
    is_elif: bool = False

    @property
    def start(self) -> tuple[int, int]:
        node = self.nodes[0]
        return min([(node.lineno, node.col_offset), *((d.lineno, 0) for d in getattr(node, "decorator_list", []))])

    @property
    def end(self) -> tuple[int, int]:
        return self.nodes[-1].end_lineno, self.nodes[-1].end_col_offset


def find(pattern: list[ast.stmt], tree: ast.Module, text: str) -> list[Match]:
    """Every match, in source order, outer ones first."""
    lines = text.split("\n")
    alone = pattern[0] if len(pattern) == 1 else None
    found: list[Match] = []
    if isinstance(alone, ast.Expr):
        for node, owner, in_string in expressions(tree):
            bound: Bound = {}
            if type(node) is type(alone.value) and unify(alone.value, node, bound):
                found.append(Match([node], bound, None, 0, owner, in_string))
    else:
        for siblings, owner in blocks(tree):
            for first in range(len(siblings) - len(pattern) + 1):
                bound = {}
                if run(pattern, siblings[first : first + len(pattern)], bound):
                    nodes = siblings[first : first + len(pattern)]
                    line = lines[nodes[0].lineno - 1].encode()[nodes[0].col_offset :]
                    found.append(Match(nodes, bound, siblings, first, owner, False, line.startswith(b"elif")))
    return sorted(found, key=lambda match: (match.start, tuple(-n for n in match.end)))


def run(pattern: list[ast.stmt], nodes: list[Any], bound: Bound) -> bool:
    first = nodes[0]
    if getattr(first, "decorator_list", None) and not getattr(pattern[0], "decorator_list", None):
        first = type(first)(**{**dict(ast.iter_fields(first)), "decorator_list": []})
    return all(unify(one, node, bound) for one, node in zip(pattern, [first, *nodes[1:]], strict=True))


def blocks(tree: ast.AST) -> Iterator[tuple[list[Any], Any]]:
    """Every list of statements, with the node that it is of."""
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            value = getattr(node, field, None)
            if isinstance(value, list) and value:
                yield value, node


def expressions(tree: ast.AST) -> Iterator[tuple[Any, Any, bool]]:
    """Every expression, with its statement, and whether it lies within an f-string."""
    pending: list[tuple[Any, Any, bool]] = [(tree, None, False)]
    while pending:
        node, owner, in_string = pending.pop()
        if isinstance(node, ast.expr):
            yield node, owner, in_string
        inner = in_string or isinstance(node, ast.JoinedStr)
        below = node if isinstance(node, ast.stmt) else owner
        pending += [(child, below, inner) for child in ast.iter_child_nodes(node)]


class Replacement(NamedTuple):
    """What one match becomes: an expression, or a list of statements."""

    match: Match
    nodes: list[Any]


def rebuild(node: Any, swap: dict[int, Any]) -> Any:
    """A copy of a tree with the nodes (by id) and lists (by id) of ``swap`` exchanged."""
    if id(node) in swap:
        new = swap[id(node)]
        if not isinstance(node, list):
            return new
        own = {id(item) for item in node}
        return [rebuild(item, swap) if id(item) in own else item for item in new]
    if isinstance(node, list):
        return [rebuild(item, swap) for item in node]
    if not isinstance(node, ast.AST):
        return node
    new = type(node)(**{name: rebuild(value, swap) for name, value in ast.iter_fields(node)})
    return ast.copy_location(new, node)


def fill(template: list[ast.stmt], bound: Bound) -> list[Any]:
    """A template's statements with its metavariables exchanged for what they stand for."""
    return [part for statement in template for part in _filled(statement, bound)]


def _filled(node: Any, bound: Bound) -> list[Any]:
    name = metavariable(node)
    if name is not None and isinstance(node, ast.Expr) and name.startswith(MANY):
        return bound[name]
    if name is not None and not isinstance(node, ast.Expr):
        return bound[name]
    if not isinstance(node, ast.AST):
        return [node]
    values: dict[str, Any] = {}
    for field, value in ast.iter_fields(node):
        if isinstance(value, list):
            values[field] = [part for item in value for part in _filled(item, bound)]
        else:
            (values[field],) = _filled(value, bound)
    if isinstance(node, ast.Call):
        given = values["args"]
        values["args"] = [one for one in given if not isinstance(one, ast.keyword)]
        values["keywords"] = [one for one in given if isinstance(one, ast.keyword)] + values["keywords"]
    return [ast.copy_location(type(node)(**values), node)]


def edited(tree: ast.Module, action: str, matches: list[Match], pattern: list[ast.stmt], template: Any) -> Any:
    """The tree with every match edited, None where statements are to take the place of a part of one.

    Matches must not overlap.
    Decorators that the pattern does not have stay above what replaces their definition.
    """
    bare = not getattr(pattern[0], "decorator_list", None)
    swap: dict[int, Any] = {}
    lists: dict[int, tuple[list[Any], Any, dict[int, tuple[int, list[Any]]]]] = {}
    homes = {id(node): (block, index, owner) for block, owner in blocks(tree) for index, node in enumerate(block)}
    for match in matches:
        body = {f"{MANY}_BODY": match.nodes} if action == "wrap" else {}
        if match.siblings is None:
            alone = len(template) == 1 and isinstance(template[0], ast.Expr)
            if alone and action in ("replace", "wrap"):
                (new,) = fill(template, {**match.bound, **body})
                swap[id(match.nodes[0])] = getattr(new, "value", new) if isinstance(new, ast.Expr) else new
                continue
            if not (isinstance(match.owner, ast.Expr) and match.owner.value is match.nodes[0]):
                return None
            block, index, owner = homes[id(match.owner)]
            match = match._replace(nodes=[match.owner], siblings=block, first=index, owner=owner)
            body = {f"{MANY}_BODY": match.nodes}
        made = [] if action == "delete" else fill(template, {**match.bound, **body})
        nodes = match.nodes
        if action == "insert_before":
            made = [*made, *nodes]
        elif action == "insert_after":
            made = [*nodes, *made]
        elif action == "replace" and bare and getattr(nodes[0], "decorator_list", None) and made:
            first = dict(ast.iter_fields(made[0]))
            first["decorator_list"] = [*nodes[0].decorator_list, *first.get("decorator_list", [])]
            made = [ast.copy_location(type(made[0])(**first), made[0]), *made[1:]]
        place = lists.setdefault(id(match.siblings), (match.siblings, match.is_elif or match.owner, {}))
        place[2][match.first] = (len(nodes), made)
    for siblings, owner, changes in lists.values():
        out: list[Any] = []
        index = 0
        while index < len(siblings):
            taken, made = changes.get(index, (1, [siblings[index]]))
            out += made
            index += taken
        if not out and owner is not True and not isinstance(owner, ast.Module):
            out = [ast.Pass()]
        swap[id(siblings)] = out
    return rebuild(tree, swap)


def overlapping(matches: list[Match]) -> bool:
    """Whether two of the matches share code."""
    ordered = sorted(matches, key=lambda match: (match.start, tuple(-n for n in match.end)))
    return any(second.start < first.end for first, second in pairwise(ordered))
