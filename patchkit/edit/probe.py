"""``probe``: make a function report, once per process, that it really runs.

Each definition of the name calls a helper as the first thing it does (behind its docstring); the helper stands once
at the head of the module. Its source is :mod:`patchkit.runtime.probe`'s; it imports nothing of patchkit.
"""

from __future__ import annotations

import ast

from patchkit.edit.imports import head_end, is_docstring, place_at
from patchkit.edit.outline import Outline
from patchkit.edit.source import Splice
from patchkit.errors import PlanError
from patchkit.runtime.probe import helper_name, helper_source


def probe_splices(outline: Outline, scope: str, patch: str, edit: int, text: str) -> list[Splice]:
    """Instrument every function with the qualified name ``scope``.

    Raises:
        PlanError: ``probe``: no function has that name.
    """
    wanted = scope.replace(".<locals>", "")
    functions = [
        node
        for name, node in outline.definitions()
        if name == wanted and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    if not functions:
        what = "is a class" if outline.scopes(wanted) else "is not there"
        raise PlanError(
            f"`probe` needs `scope` to name a function, and {scope} {what}",
            code="probe",
            hint=f"name a method, such as {scope}.__init__" if what == "is a class" else "correct `scope`",
            details={"path": outline.source.path, "scope": scope},
        )
    call = f"{helper_name(patch, edit)}()"
    place = place_at(outline, head_end(outline.tree), own_line=True)
    helper = helper_source(patch, edit, outline.source.path, wanted, text)
    splices = [Splice(place.position, place.position, f"{place.lead}{helper}\n\n", edit)]
    splices += [_call_splice(outline, node, call, edit) for node in functions]
    return sorted(splices)


def _call_splice(outline: Outline, function: ast.FunctionDef | ast.AsyncFunctionDef, call: str, edit: int) -> Splice:
    """Put ``call`` before the first statement of ``function`` that is not its docstring, or behind the docstring."""
    body = function.body
    following = body[1] if is_docstring(body[0]) and len(body) > 1 else body[0]
    if following is not body[0] or not is_docstring(following):
        opening = outline.opening(following)
        if opening is None:
            start = outline.span(following).start
            return Splice(start, start, f"{call}; ", edit)
        return Splice(opening, opening, f"{outline.indent_of(following)}{call}\n", edit)
    end = outline.span(following).end
    if outline.opening(following) is None:
        return Splice(end, end, f"; {call}", edit)
    text = outline.source.text
    end = outline.source.line_end(end)
    lead = "" if text[end - 1] == "\n" else "\n"
    return Splice(end, end, f"{lead}{outline.indent_of(following)}{call}\n", edit)
