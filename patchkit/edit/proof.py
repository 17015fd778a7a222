"""The proof of a file's syntax edits: the result's tree is the original's with the matched code exchanged, no more.

It holds whatever way the text was made, so a fault in the placing of lines, parentheses or commas ends here, as an
error, and not in the file.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from typing import Any

from patchkit.edit.outline import Outline
from patchkit.edit.parse import PARSE_ERRORS, Parse
from patchkit.edit.rewrite import change_of, rewrite_all
from patchkit.edit.rewriter import Change
from patchkit.edit.shape import difference, name_of
from patchkit.edit.source import lay
from patchkit.edit.spans import Found
from patchkit.errors import PlanError
from patchkit.model.patch import Action


def prove(
    outline: Outline,
    edits: Sequence[tuple[Found, Action, str]],
    result_text: str,
    parse: Parse,
    *,
    complete: bool = True,
) -> ast.Module:
    """Prove that ``result_text`` is the file of ``outline`` with ``edits`` and nothing else done to it.

    Args:
        outline: The file before.
        edits: Every syntax edit of it: match, action and template.
        result_text: The file after, with ``\\n`` line breaks.
        parse: The site's grammar.
        complete: False where ``result_text`` has other edits too. The syntax edits then are laid on the file by
            themselves, and that is proved; edits do not overlap, so the others have no part in it.

    Returns:
        The tree of the text that was compared.

    Raises:
        PlanError: ``proof``: the trees differ, with the line; ``syntax``: the text does not parse.
    """
    if not complete:
        splices = rewrite_all(outline, [(*edit, 0) for edit in edits], parse=parse)
        result_text = lay(outline.source.text, splices)
    try:
        tree = parse(result_text)
    except PARSE_ERRORS as error:
        line = getattr(error, "lineno", None)
        reason = getattr(error, "msg", None) or str(error) or type(error).__name__
        raise PlanError(
            f"{outline.source.path}: would not parse any more: {reason}"
            + (f" (line {line} of the result)" if line else ""),
            code="syntax",
            hint="correct the template",
            details={"path": outline.source.path, "line": line},
        ) from None
    expected = _Expected(outline, edits, parse)
    found = difference(outline.tree, tree, expected.swapped)
    if found is not None:
        line = next((getattr(node, "lineno", None) for node in found[::-1] if hasattr(node, "lineno")), None)
        places = ", ".join(str(outline.source.line(match.span.start)) for match, _, _ in edits)
        raise PlanError(
            f"{outline.source.path}: the edited text does not mean what the edit says"
            + (f": it differs at line {line} of the result ({name_of(found[1])})" if line else "")
            + f"; syntax edits at line {places}",
            code="proof",
            hint="write the edit as a text edit (`find`), and report this to patchkit with the patch file",
            details={"path": outline.source.path, "line": line},
        )
    return tree


class _Expected:
    """The original tree, seen with the edits done."""

    def __init__(self, outline: Outline, edits: Sequence[tuple[Found, Action, str]], parse: Parse) -> None:
        self.outline = outline
        self.expressions: dict[int, Any] = {}
        self.lists: dict[int, list[Any]] = {}
        before: dict[int, list[Any]] = {}
        after: dict[int, list[Any]] = {}
        instead: dict[int, tuple[int, list[Any]]] = {}
        touched: dict[int, tuple[list[Any], Any]] = {}
        for found, action, template in edits:
            change = change_of(outline, found, action, template, parse)
            if not change.statements:
                self.expressions[id(change.target[0])] = change.nodes[0]
                continue
            place = outline.block_of(change.target[0])
            touched[id(place.siblings)] = (place.siblings, place.parent)
            if action == "insert_before":
                before.setdefault(id(change.target[0]), []).extend(change.nodes)
            elif action == "insert_after":
                after.setdefault(id(change.target[-1]), [])[:0] = change.nodes
            else:
                instead[id(change.target[0])] = (len(change.target), self._replacement(found, action, change))
        for siblings, owner in touched.values():
            self.lists[id(siblings)] = self._list(siblings, owner, before, after, instead)

    def _replacement(self, found: Found, action: Action, change: Change) -> list[Any]:
        """The new statements; decorators that ``replace`` left standing are the first one's."""
        first = change.target[0]
        if action != "replace" or not change.nodes or not getattr(first, "decorator_list", None):
            return change.nodes
        if found.span.start == self.outline.span(first).start:
            return change.nodes
        new = copy.copy(change.nodes[0])
        new.decorator_list = [*first.decorator_list, *new.decorator_list]
        return [new, *change.nodes[1:]]

    def _list(self, siblings: list[Any], owner: Any, before: Any, after: Any, instead: Any) -> list[Any]:
        out: list[Any] = []
        skip = 0
        elif_arm = self.outline.is_elif(siblings[0])
        for node in siblings:
            out += before.get(id(node), [])
            if id(node) in instead:
                skip, nodes = instead[id(node)]
                out += nodes
            if skip:
                skip -= 1
            else:
                out.append(node)
            out += after.get(id(node), [])
        if out or name_of(owner) == "Module" or elif_arm:
            return out
        return [ast.Pass()]

    def swapped(self, node: Any) -> Any:
        """What stands for a list or an expression of the original."""
        if isinstance(node, list):
            return self.lists.get(id(node), node)
        return self.expressions.get(id(node), node)
