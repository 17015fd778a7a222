"""Syntax edits derived from a file's own code: a piece of it, in part abstracted, and what to make of it."""

from __future__ import annotations

import ast
import copy
import re
from typing import Any, NamedTuple

from hypothesis import strategies as st
from properties import naive
from properties.corpus import parse

EXPRESSIONS = (
    "wrapped(PK_A, 1)",
    "(PK_A if flag else PK_B)",
    "not PK_A",
    "PK_A + PK_B",
    "PK_B - PK_A",
    "PK_A.attribute",
    "PK_A[0]",
    "x[PK_A]",
    "[PK_A, PK_B]",
    "-PK_A ** PK_B",
    "lambda: PK_A",
    "call(*PK_A, k=PK_B)",
    "{**PK_A, 'é': PK_B}",
    "{PK_A: PK_B}",
    "(name := PK_A)",
    "PK_A == PK_B",
    "PK_A, PK_B",
    "sum(PK_A for i in PK_B)",
    "PK_A and PK_B or c",
    "(yield PK_A)",
    "await PK_A",
    "(\n    PK_A\n    + PK_B  # why\n)",
    "'''a\n  b'''",
    "PK_ALL",
    "call(PK_ALL)",
    "f(PK_A)(PK_B)",
    "call(PKS_REST)",
    "call(0, PKS_REST, k=1)",
)
STATEMENTS = (
    "marker()",
    "marker(PK_A); second(PK_B)",
    "# why\nmarker(PK_A)",
    "if flag:\n    marker(PK_A)\nelse:\n    pass",
    "x = PK_A",
    "marker()  # behind\n",
    "\nmarker(\n    PK_A,\n)\n\n",
    "x = '''one\n  two'''",
    "if flag:\n    PK_ALL",
    "PK_ALL\nafter(PK_B)",
    "before()\nPK_ALL",
    "for i in PK_A:\n    PKS_BLOCK\n    tail()",
    "try:\n    PKS_BLOCK\nexcept E as e:\n    pass",
    "if PK_A: marker()",
)
WRAPS = (
    "with lock:\n    PKS_BODY",
    "try:\n    PKS_BODY\nfinally:\n    done()",
    "if flag:\n    before()\n    PKS_BODY\n    # behind\n",
    "for i in PK_A:\n\n    PKS_BODY",
    "if flag:\n    pass\nelse:\n    PKS_BODY",
)


class Made(NamedTuple):
    """An edit: pattern and template as trees with ``PK`` names, and as patchkit wants them written."""

    action: str
    pattern: list[ast.stmt]
    template: list[ast.stmt]
    match: str
    text: str


def written(text: str) -> str:
    """``PK_A`` as ``$A``, ``PKS_BLOCK`` as ``$$$BLOCK``."""
    return re.sub(r"PKS_(\w+)", r"$$$\1", re.sub(r"PK_(\w+)", r"$\1", text))


@st.composite
def edits(draw: st.DrawFn, tree: ast.Module) -> Made | None:
    """An edit whose pattern matches in ``tree``; None where the piece that was drawn cannot be a pattern."""
    whole = draw(st.integers(0, 2)) > 0
    if whole:
        places = [(block, first) for block, _ in naive.blocks(tree) for first in range(len(block))]
        block, first = places[draw(st.integers(0, len(places) - 1))]
        nodes = block[first : first + draw(st.sampled_from([1, 1, 1, 2, 3]))]
    else:
        found = [
            node
            for node, _, in_string in naive.expressions(tree)
            if not in_string and not isinstance(node, ast.Name | ast.Constant | ast.Starred | ast.Slice)
        ]
        if not found:
            return None
        nodes = [ast.Expr(found[draw(st.integers(0, len(found) - 1))])]
    if sum(1 for node in nodes for _ in ast.walk(node)) > 400:
        return None
    pattern, names = abstracted(draw, nodes)
    text = ast.unparse(ast.Module(pattern, []))
    try:
        again = parse(text).body
    except (SyntaxError, ValueError):
        return None
    if naive.key(again) != naive.key(pattern) or not useful(again):
        return None
    expression = len(again) == 1 and isinstance(again[0], ast.Expr)
    return made(draw, again, text, names, expression, whole)


def made(draw: st.DrawFn, pattern: list[ast.stmt], text: str, names: list[str], expression: bool, whole: bool) -> Made:
    bodies = [name for name in names if name.startswith(naive.MANY)]
    values = [name for name in names if not name.startswith(naive.MANY)] or ["spare"]
    rest = [name for name in bodies if name.startswith("PKS_REST")]
    bodies = [name for name in bodies if name not in rest]
    if expression and (not whole or draw(st.booleans())):
        action, choices = draw(st.sampled_from(["replace", "replace", "wrap"])), EXPRESSIONS
        if action == "wrap":
            choices = ("call(PKS_BODY)", "not PKS_BODY", "(PKS_BODY).x", "PKS_BODY + PK_A", "PKS_BODY")
    else:
        action = draw(st.sampled_from(["replace", "insert_before", "insert_after", "delete", "wrap"]))
        choices = WRAPS if action == "wrap" else STATEMENTS
    template = choices[draw(st.integers(0, len(choices) - 1))]
    for slot in ("PK_A", "PK_B"):
        value = values[draw(st.integers(0, len(values) - 1))]
        template = re.sub(rf"\b{slot}\b", value.replace("PK_", "PK1_"), template)
    template = template.replace("PKS_BLOCK\n", f"{bodies[0].replace('PKS_', 'PKS1_') if bodies else 'pass'}\n")
    template = template.replace("PKS_REST", rest[0].replace("PKS_", "PKS1_") if rest else "*rest")
    template = template.replace("PK1_", "PK_").replace("PKS1_", "PKS_")
    indented = "\n".join([text.split("\n")[0], *("    " + line for line in text.split("\n")[1:])])
    template = template.replace("    PK_ALL", f"    {indented}").replace("PK_ALL", text)
    if action == "delete":
        template = ""
    return Made(action, pattern, parse(template).body, written(text), written(template))


def useful(pattern: list[ast.stmt]) -> bool:
    """What is a metavariable alone, or has one as its first or last statement that could be any number, is refused."""
    edges = (pattern[0], pattern[-1])
    if len(pattern) == 1 and naive.metavariable(pattern[0]) is not None:
        return False
    return not any((naive.metavariable(one) or "").startswith(naive.MANY) for one in edges)


def abstracted(draw: st.DrawFn, nodes: list[Any]) -> tuple[list[ast.stmt], list[str]]:
    """A copy of ``nodes`` with some sub-expressions, arguments and blocks exchanged for metavariables."""
    copied = [copy.deepcopy(node) for node in nodes]
    holder = ast.Module(copied, [])
    names: list[str] = []
    known: dict[Any, str] = {}
    for _ in range(draw(st.integers(0, 3))):
        slots = list(places(holder))
        if not slots:
            break
        parent, field, index = slots[draw(st.integers(0, len(slots) - 1))]
        value = getattr(parent, field)
        old = value if index is None else value[index]
        name = known.get(naive.key(old)) if draw(st.integers(0, 3)) else None
        if name is None:
            name = f"PK_{'ABCDEFGH'[len(names)]}"
            names.append(name)
            known[naive.key(old)] = name
        new = ast.copy_location(ast.Name(name, getattr(old, "ctx", ast.Load())), old)
        if index is None:
            setattr(parent, field, new)
        else:
            value[index] = new
    many(draw, holder, names)
    used = {node.id for node in ast.walk(holder) if isinstance(node, ast.Name)}
    return holder.body, [name for name in names if name in used]


def many(draw: st.DrawFn, holder: ast.Module, names: list[str]) -> None:
    """Exchange the end of a block, and of a call's arguments, for ``$$$``."""
    blocks = [block for block, owner in naive.blocks(holder) if owner is not holder]
    if blocks and draw(st.booleans()):
        block = blocks[draw(st.integers(0, len(blocks) - 1))]
        keep = draw(st.integers(0, min(2, len(block) - 1)))
        block[keep:] = [ast.copy_location(ast.Expr(ast.Name("PKS_BLOCK", ast.Load())), block[keep])]
        names.append("PKS_BLOCK")
    calls = [node for node in ast.walk(holder) if isinstance(node, ast.Call) and not node.keywords]
    if calls and draw(st.integers(0, 2)) == 0:
        call = calls[draw(st.integers(0, len(calls) - 1))]
        call.args[draw(st.integers(0, len(call.args))) :] = [ast.Name("PKS_REST", ast.Load())]
        names.append("PKS_REST")


def places(holder: ast.Module) -> list[tuple[Any, str, int | None]]:
    """Where a metavariable may stand for an expression: not in f-strings and patterns of ``match``."""
    out: list[tuple[Any, str, int | None]] = []
    pending: list[Any] = [holder]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.JoinedStr | ast.pattern):
            continue
        for field, value in ast.iter_fields(node):
            if isinstance(value, ast.expr) and not isinstance(value, ast.Slice | ast.Starred):
                out.append((node, field, None))
            elif isinstance(value, list):
                out += [
                    (node, field, index)
                    for index, item in enumerate(value)
                    if isinstance(item, ast.expr) and not isinstance(item, ast.Starred)
                ]
        pending += ast.iter_child_nodes(node)
    return [place for place in out if not isinstance(place[0], ast.Expr)]
