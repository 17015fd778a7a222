"""Judging and parsing Python source. Runs inside the target interpreter.

This file is run as a script (``python -I -S foreign.py``), so it uses nothing but the standard library and must work
on Python 3.8 and later. Standard input holds one line of JSON, then the bytes of the files one after the other;
standard output gets one line of JSON per file, as soon as it is known: where the compiler brings the whole process
down, the file that it happened on is the one without an answer.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ast

FAILURES = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)


def problem(error: BaseException) -> list[Any]:
    """Line, column (both 1-based), message and source text of what ``compile`` raised."""
    if isinstance(error, SyntaxError):
        text = (error.text or "").rstrip("\r\n")
        return [error.lineno or 1, max(error.offset or 1, 1), str(error.msg), text]
    if isinstance(error, RecursionError):
        return [1, 1, "nested too deeply for this Python", ""]
    if isinstance(error, MemoryError):
        return [1, 1, "too complex for this Python's parser", ""]
    return [1, 1, str(error) or type(error).__name__, ""]


def judge(path: str, data: bytes) -> list[Any] | None:
    """Compile the bytes of one file; None when they compile."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(data, path, "exec", dont_inherit=True)
        except FAILURES as error:
            return problem(error)
    return None


def dump(tree: ast.AST) -> dict[str, Any]:
    """A tree as JSON: a table of nodes (children by number, so that depth does not matter) and of their classes."""
    import ast  # here: judging needs none, and is what every apply does

    numbers = {}  # type: dict[int, int]
    nodes = []  # type: list[ast.AST]

    def number(node: ast.AST) -> int:
        # Load, Store and operators are single objects that many nodes share; each place gets its own number.
        if isinstance(node, (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)):
            nodes.append(node)
            return len(nodes) - 1
        if id(node) not in numbers:
            numbers[id(node)] = len(nodes)
            nodes.append(node)
        return numbers[id(node)]

    def value(item: Any) -> Any:
        if isinstance(item, ast.AST):
            return ["n", number(item)]
        if isinstance(item, list):
            return ["l", [value(one) for one in item]]
        if item is None or item is True or item is False:
            return item
        if item is Ellipsis:
            return ["e"]
        if isinstance(item, str):
            return ["s", item]
        if isinstance(item, bytes):
            return ["b", item.decode("latin-1")]
        if isinstance(item, int):
            return ["i", hex(item)]  # decimal is limited to 4300 digits
        if isinstance(item, float):
            return ["f", item.hex()]
        if isinstance(item, complex):
            return ["c", item.real.hex(), item.imag.hex()]
        raise ValueError("a syntax tree holds " + type(item).__name__)

    classes = {}  # type: dict[str, list[Any]]
    rows = []  # type: list[list[Any]]
    number(tree)
    while len(rows) < len(nodes):
        node = nodes[len(rows)]
        kind = type(node)
        if kind.__name__ not in classes:
            bases = [one.__name__ for one in kind.__mro__[1:] if issubclass(one, ast.AST)]
            classes[kind.__name__] = [list(kind._fields), list(kind._attributes), bases]
        fields = [[name, value(getattr(node, name))] for name in kind._fields if hasattr(node, name)]
        attributes = [[name, getattr(node, name)] for name in kind._attributes if hasattr(node, name)]
        rows.append([kind.__name__, fields, attributes])
    return {"classes": classes, "nodes": rows}


def parse(data: bytes) -> dict[str, Any]:
    """Parse text (UTF-8, surrogates passed); ``tree``, or ``error`` with the class of what was raised."""
    import ast

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return {"tree": dump(ast.parse(data.decode("utf-8", "surrogatepass")))}
        except FAILURES as error:
            kind = next(one.__name__ for one in FAILURES if isinstance(error, one))
            return {"error": [kind, *problem(error)]}


def main() -> None:
    """Answer one request."""
    source = sys.stdin.buffer
    request = json.loads(source.readline())
    for path, size in request["files"]:
        data = source.read(size)
        answer = parse(data) if request["want"] == "parse" else judge(path, data)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
