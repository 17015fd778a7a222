"""A text edit as a syntax edit, where its change is one expression or one statement.

A syntax edit still fits when a release only lays the code out anew. It is taken only when the planner makes the same
bytes of it.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Iterator, Sequence

from patchkit.author.derive import TELLING, TextEdit
from patchkit.author.proof import Before
from patchkit.edit.parse import PARSE_ERRORS
from patchkit.edit.plan import Grammar, plan_patch
from patchkit.errors import PatchkitError
from patchkit.model.patch import Edit, Patch, Target


def as_syntax(path: str, edits: Sequence[TextEdit], before: Before, grammar: Grammar) -> list[TextEdit]:
    """``edits`` of one file, each as a syntax edit where it can be one.

    Args:
        path: The file.
        edits: Its edits.
        before: The distribution with that file, as it is before them.
        grammar: The site's.
    """
    return [_better(path, edit, before, grammar) or edit for edit in edits]


def _better(path: str, edit: TextEdit, before: Before, grammar: Grammar) -> TextEdit | None:
    if edit.action != "replace":
        return None
    wanted = _planned(path, edit, before, grammar)
    for match, text in _forms(edit, grammar):
        form = TextEdit(edit.scope, match, "replace", text, "match")
        if wanted is not None and _planned(path, form, before, grammar) == wanted:
            return form
    return None


def _planned(path: str, edit: TextEdit, before: Before, grammar: Grammar) -> bytes | None:
    """The file with that one edit; None where it does not fit."""
    find, match = (edit.find, None) if edit.kind == "find" else (None, edit.find)
    one = Edit(1, (path,), edit.action, find, match, edit.text, scope=edit.scope)
    patch = Patch("x", "x", Target("x"), edits=(one,))
    try:
        return plan_patch(patch, before, grammar).files[0].after
    except PatchkitError:
        return None


def _forms(edit: TextEdit, grammar: Grammar) -> Iterator[tuple[str, str]]:
    """What to match and to put there: the smallest expression that says something, larger ones, the statement."""
    old_text, new_text = textwrap.dedent(edit.find), textwrap.dedent(edit.text)
    try:
        old, new = grammar.parse(old_text).body, grammar.parse(new_text).body
    except PARSE_ERRORS:
        return
    if len(old) != 1 or len(new) != 1 or "#" in edit.find + edit.text:
        return  # a comment is no part of the syntax
    for one, other in reversed(list(_differing(old[0], new[0]))):
        was, becomes = ast.get_source_segment(old_text, one), ast.get_source_segment(new_text, other)
        if was and becomes and sum(char.isalnum() for char in was) >= TELLING:
            yield was, becomes
    yield old_text.rstrip("\n"), new_text.rstrip("\n")


def _differing(old: ast.AST, new: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The expressions within two statements that hold all that differs, from the largest to the smallest."""
    while True:
        if isinstance(old, ast.expr) and isinstance(new, ast.expr):
            yield old, new
        if type(old) is not type(new):
            return
        pairs = list(zip(_children(old), _children(new), strict=False))
        if len(_children(old)) != len(_children(new)) or _own(old) != _own(new):
            return
        differing = [(one, other) for one, other in pairs if ast.dump(one) != ast.dump(other)]
        if len(differing) != 1:
            return
        old, new = differing[0]


def _children(node: ast.AST) -> list[ast.AST]:
    return list(ast.iter_child_nodes(node))


def _own(node: ast.AST) -> list[object]:
    """What a node says itself: its fields that are no nodes, and the lengths of its lists."""
    return [
        len(value) if isinstance(value, list) else None if isinstance(value, ast.AST) else value
        for _, value in ast.iter_fields(node)
    ]
