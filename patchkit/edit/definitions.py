"""Functions and classes of a tree by their qualified names, found without visiting what cannot hold them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


#: The definitions directly in each owner (by ``id``) by name, kept for the next question about the same tree.
Known = dict[int, dict[str, list[Definition]]]


def named_definitions(tree: ast.Module, qualname: str, known: Known | None = None) -> list[Definition]:
    """Every def and class of that dotted chain of names, in source order; statements such as ``if`` do not count in it.

    Only statements on the way are visited: a whole file's walk costs as much as half of its parse.

    Args:
        tree: The file's tree.
        qualname: Names with dots between them.
        known: What earlier calls for this tree found; grows.
    """
    kept: Known = {} if known is None else known
    level: list[ast.AST] = [tree]
    for name in qualname.split("."):
        level = [found for owner in level for found in _by_name(owner, kept).get(name, ())]
    return [node for node in level if isinstance(node, Definition)]


def _by_name(owner: ast.AST, known: Known) -> dict[str, list[Definition]]:
    if id(owner) not in known:
        named: dict[str, list[Definition]] = {}
        for found in _directly_in(owner):
            named.setdefault(found.name, []).append(found)
        known[id(owner)] = named
    return known[id(owner)]


def _directly_in(owner: ast.AST) -> Iterator[Definition]:
    """The definitions in ``owner`` that lie in no other definition, in source order."""
    stack = [child for children in child_lists(owner) for child in children][::-1]
    while stack:
        node = stack.pop()
        if isinstance(node, Definition):
            yield node
        else:
            stack += [child for children in child_lists(node) for child in children][::-1]


def child_lists(node: ast.AST) -> Iterator[list[ast.AST]]:
    """The lists of statements, handlers and cases directly below ``node``, in source order."""
    for field in ("body", "handlers", "cases", "orelse", "finalbody"):
        children = getattr(node, field, None)
        if isinstance(children, list):
            yield children
