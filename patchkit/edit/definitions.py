"""Functions and classes of a tree by their qualified names, found without visiting what cannot hold them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def named_definitions(tree: ast.Module, qualname: str) -> list[Definition]:
    """Every def and class of that dotted chain of names, in source order; statements such as ``if`` do not count in it.

    Only statements on the way are visited: a whole file's walk costs as much as half of its parse.
    """
    level: list[ast.AST] = [tree]
    for name in qualname.split("."):
        level = [found for owner in level for found in _directly_in(owner) if found.name == name]
    return [node for node in level if isinstance(node, Definition)]


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
