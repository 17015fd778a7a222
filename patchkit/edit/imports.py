"""``add_import``: where import statements go, and which are there already.

The place is the head of the module: behind its docstring and its ``from __future__`` imports, before everything
else. Nothing else of the file is touched or reordered.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from patchkit.edit.outline import Outline
from patchkit.edit.parse import BLANKS, PARSE_ERRORS, Parse
from patchkit.edit.source import Splice
from patchkit.errors import PlanError
from patchkit.tuples import NamedTuple

_COOKIE = re.compile(r"^[ \t\f]*#.*?coding[:=][ \t]*[-\w.]+")  # PEP 263; it counts on the first two lines only

Bound = tuple[str, int, str, str]
"""One name that an import statement binds: its module, level, imported name and local name."""


class ImportStatementError(PlanError, ValueError):
    """A text given to ``add_import`` that is not exactly one import statement."""

    code = "add-import"


class HeadPlace(NamedTuple):
    """Where new statements go: what has to stand before them there, and whether they share another's line."""

    position: int
    lead: str
    inline: bool


class _Wanted(NamedTuple):
    text: str
    node: ast.Import | ast.ImportFrom
    bound: frozenset[Bound]


def import_splices(outline: Outline, statements: Sequence[str], parse: Parse, edit: int) -> list[Splice]:
    """Add the import ``statements`` that are not there yet, in the given order, at the head of the module.

    A statement is there if every name that it binds is bound identically by import statements of the module itself
    (not of a block in it). ``from __future__`` imports go before all others.

    Raises:
        ImportStatementError: One of ``statements`` is not exactly one import statement; it is a ValueError too.
    """
    wanted = [_read(statement, parse) for statement in statements]
    present: set[Bound] = set()
    for node in outline.tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            present |= _bound(node)
    missing = []
    for item in wanted:
        if not item.bound <= present:
            present |= item.bound
            missing.append(item)
    futures = [item for item in missing if _is_future(item.node)]
    others = [item for item in missing if not _is_future(item.node)]
    docstring, start = docstring_end(outline.tree), head_end(outline.tree)
    splices = []
    if futures:
        # A future statement must be the first: before all that other edits put at the same point.
        splices.append(_splice(place_at(outline, docstring), futures, edit, -1))
    if others:
        place = place_at(outline, start)
        if futures and start == docstring and place.lead and not place.inline:
            place = place._replace(lead="\n")  # the line before is ended by the splice above
        splices.append(_splice(place, others, edit, 0))
    return splices


def check_import(statement: str, parse: Parse) -> None:
    """Refuse text that is not exactly one import statement; needs no file.

    Raises:
        ImportStatementError: It is not.
    """
    _read(statement, parse)


def _splice(place: HeadPlace, items: Sequence[_Wanted], edit: int, side: int) -> Splice:
    if place.inline:
        new = "".join(f"{ast.unparse(item.node)}; " for item in items)
    else:
        new = place.lead + "".join(f"{item.text}\n" for item in items)
    return Splice(place.position, place.position, new, edit, side)


def _read(statement: str, parse: Parse) -> _Wanted:
    text = statement.replace("\r\n", "\n").replace("\r", "\n").strip()
    try:
        body = parse(text).body
    except PARSE_ERRORS as error:
        reason = getattr(error, "msg", None) or str(error) or type(error).__name__
        raise _refused(text, f" ({reason})") from None
    if len(body) != 1 or not isinstance(body[0], (ast.Import, ast.ImportFrom)):
        raise _refused(text, "")
    return _Wanted(text, body[0], _bound(body[0]))


def _refused(text: str, reason: str) -> ImportStatementError:
    return ImportStatementError(
        f"{text!r} is not exactly one import statement{reason}",
        hint="list each import statement as a string of its own: add_import = ['import a', 'from b import c']",
        details={"statement": text},
    )


def _bound(node: ast.Import | ast.ImportFrom) -> frozenset[Bound]:
    """The names that a statement binds, ``import x as x`` read as ``import x``."""
    if isinstance(node, ast.Import):
        return frozenset(("", -1, alias.name, alias.asname or alias.name) for alias in node.names)
    return frozenset((node.module or "", node.level, alias.name, alias.asname or alias.name) for alias in node.names)


def _is_future(node: ast.stmt) -> bool:
    return isinstance(node, ast.ImportFrom) and node.module == "__future__" and not node.level


def docstring_end(tree: ast.Module) -> int:
    """The index in ``tree.body`` behind the module's docstring: 1 or 0."""
    return int(bool(tree.body) and is_docstring(tree.body[0]))


def is_docstring(node: ast.stmt) -> bool:
    """True for a statement that is a docstring where it comes first."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def head_end(tree: ast.Module) -> int:
    """The index in ``tree.body`` behind the docstring and the ``from __future__`` imports."""
    index = docstring_end(tree)
    while index < len(tree.body) and _is_future(tree.body[index]):
        index += 1
    return index


def place_at(outline: Outline, index: int, *, own_line: bool = False) -> HeadPlace:
    """Where statements go that shall stand before ``tree.body[index]`` and behind the statement before that.

    With ``own_line`` the place is never on another statement's line: it is behind that line instead.
    """
    source, body = outline.source, outline.tree.body
    if own_line:
        while 0 < index < len(body) and outline.opening(body[index]) is None:
            index += 1
    following = body[index] if index < len(body) else None
    if following is not None:
        opening = outline.opening(following)
        if opening is None:
            return HeadPlace(outline.span(following).start, "", True)
        if isinstance(following, (ast.Import, ast.ImportFrom)):
            return HeadPlace(opening, "", False)
        if index == 0:
            return HeadPlace(_above_comments(outline, opening), "", False)
    text = source.text
    end = source.line_end(outline.span(body[index - 1]).end) if index else len(text)
    lead = "" if not text[:end] or text[end - 1] == "\n" else "\n"
    return HeadPlace(end, f"{lead}\n" if index else lead, False)


def _above_comments(outline: Outline, opening: int) -> int:
    """The start of the comment lines attached to the first statement, or of its own line if they are the file's."""
    source = outline.source
    first = source.line(opening)
    line = first
    while line > 1 and source.line_text(line - 1).lstrip(BLANKS).startswith("#"):
        line -= 1
    if line == 1 or (line == 2 and _COOKIE.match(source.line_text(2))):
        return opening
    return source.starts[line - 1]
