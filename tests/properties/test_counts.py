"""A text edit is refused exactly when its anchor does not stand there as often as it says, and else lands just there.

Where an anchor stands is counted here the slow way, position by position; scopes and blocks are found by the tree.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties.corpus import parse, slices
from properties.effort import effort
from properties.grammar import sources
from properties.world import CODECS, NEWLINES
from support.memory import Host, Memory

from patchkit.edit.plan import plan_patch
from patchkit.errors import AnchorError, PlanError
from patchkit.model.patch import Edit, Patch, Target

PATH = "demo/core.py"
Region = tuple[int, int]
tally: Counter[str] = Counter()


class Asked(NamedTuple):
    """A text edit, and what it is laid on."""

    text: str
    data: bytes
    codec: str
    find: str
    new: str
    scope: str | None
    inside: str | None
    after: str | None
    before: str | None
    count: int | None
    nth: int | None


# -- the slow way ------------------------------------------------------------------------------------------------------


def places(text: str, anchor: str, regions: list[Region]) -> list[int]:
    """Where ``anchor`` stands within one of ``regions``; one that ends in a newline only where a line begins."""
    starts = [at for at in range(len(text) - len(anchor) + 1) if text.startswith(anchor, at)]
    if anchor.endswith("\n"):
        starts = [at for at in starts if at == 0 or text[at - 1] == "\n"]
    return [at for at in starts if any(low <= at and at + len(anchor) <= high for low, high in regions)]


def offsets(text: str) -> list[int]:
    out = [0]
    for line in text.split("\n"):
        out.append(out[-1] + len(line) + 1)
    return out


def column(text: str, line: int, column: int) -> int:
    """The offset of what ``ast`` calls (line, column)."""
    begin = offsets(text)[line - 1]
    content = text[begin:].split("\n", 1)[0]
    return begin + len(content.encode()[:column].decode())


def tail(text: str, last: int, width: int) -> int:
    """The end of line ``last`` and of the deeper comment lines that follow it."""
    lines, starts = text.split("\n"), offsets(text)
    reach = last
    for number in range(last, len(lines)):
        bare = lines[number].lstrip(" \t\f")
        if bare.startswith("#") and indent(lines[number]) > width:
            reach = number + 1
        elif bare:
            break
    return min(starts[reach], len(text))


def indent(line: str) -> int:
    """The width of a line's indentation, by the tokenizer's rules."""
    width = 0
    for char in line:
        if char == " ":
            width += 1
        elif char == "\t":
            width = width // 8 * 8 + 8
        elif char == "\f":
            width = 0
        else:
            break
    return width


def definitions(tree: ast.AST, above: str = "") -> list[tuple[str, ast.stmt]]:
    """Every def and class with its qualified name."""
    out: list[tuple[str, ast.stmt]] = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{above}.{node.name}" if above else node.name
            out += [(name, node), *definitions(node, name)]
        elif isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            out += definitions(node, above)
    return out


def scope_regions(text: str, tree: ast.Module, scope: str) -> list[Region]:
    out = []
    for name, node in definitions(tree):
        if name == scope:
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])  # type: ignore[attr-defined]
            width = indent(text.split("\n")[node.lineno - 1])
            assert node.end_lineno is not None
            out.append((offsets(text)[first - 1], tail(text, node.end_lineno, width)))
    return out


def blocks(tree: ast.Module, text: str) -> list[tuple[str, ast.stmt]]:
    """The blocks that ``inside`` can name here: of ``if``, ``while``, ``for`` and ``with``, each with its header."""
    out: list[tuple[str, ast.stmt]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.If | ast.While | ast.For | ast.With):
            begin = column(text, node.lineno, node.col_offset)
            if not text.startswith("elif", begin):
                fields = {**dict(ast.iter_fields(node)), "body": [ast.Pass()], "orelse": []}
                bare = type(node)(**{name: value for name, value in fields.items() if name in node._fields})
                out.append((ast.unparse(ast.copy_location(bare, node)).split("\n")[0], node))
    return out


def block_regions(text: str, tree: ast.Module, header: str) -> list[Region]:
    out = []
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    starts = offsets(text)
    for found, node in blocks(tree, text):
        if found == header:
            body = node.body  # type: ignore[attr-defined]
            first = min([body[0].lineno, *(one.lineno for one in getattr(body[0], "decorator_list", []))])
            start = column(text, node.lineno, node.col_offset)
            stop = starts[first - 1] if first > body[0].lineno or first != node.lineno else len(text)
            stop = max(stop, column(text, body[0].lineno, body[0].col_offset) if first == body[0].lineno else stop)
            colons = [
                starts[token.start[0] - 1] + token.start[1]
                for token in tokens
                if token.type == tokenize.OP and token.string == ":"
            ]
            colon = max(at for at in colons if start <= at < stop)
            width = indent(text.split("\n")[node.lineno - 1])
            out.append((colon + 1, tail(text, body[-1].end_lineno, width)))
    return out


# -- the cases ---------------------------------------------------------------------------------------------------------


def encoded(text: str, codec: str, newline: str) -> bytes:
    lines = text.split("\n")
    kinds = ["\n", "\r\n"] if newline == "mixed" else [newline]
    return ("".join(x + kinds[n % len(kinds)] for n, x in enumerate(lines[:-1])) + lines[-1]).encode(codec)


@st.composite
def asked(draw: st.DrawFn, real: bool) -> Asked:
    codec = "utf-8" if real else draw(st.sampled_from(sorted(CODECS)))
    text = draw(slices(2_000)) if real else draw(sources(codec if codec != "utf-8-sig" else "utf-8"))
    cookie = CODECS[codec][0]
    text = f"{cookie}\n{text}" if cookie else text
    if draw(st.booleans()):
        text = text.rstrip("\n")
    tree = parse(text)

    def piece(region: Region | None = None) -> str:
        """A short piece of the file (of ``region``, more often than not), or whole lines of it."""
        low, high = region if region is not None and draw(st.integers(0, 3)) else (0, len(text))
        start = draw(st.integers(low, max(low, high - 2)))
        if draw(st.integers(0, 2)) == 0:
            lines = text.split("\n")
            first = text.count("\n", 0, start)
            return "\n".join(lines[first : first + draw(st.integers(1, 2))]) + "\n"
        return text[start : start + draw(st.sampled_from([1, 2, 3, 6, 12]))] or "x"

    scopes = sorted({name for name, _ in definitions(tree)})
    headers = sorted({header for header, _ in blocks(tree, text)})
    scope = draw(st.sampled_from(scopes)) if scopes and draw(st.integers(0, 2)) == 0 else None
    inside = draw(st.sampled_from(headers)) if headers and draw(st.integers(0, 2)) == 0 else None
    regions = scope_regions(text, tree, scope) if scope is not None else []
    regions += block_regions(text, tree, inside) if inside is not None else []
    region = draw(st.sampled_from(regions)) if regions else None
    after = piece() if draw(st.integers(0, 4)) == 0 else None
    before = piece() if draw(st.integers(0, 4)) == 0 else None
    new = draw(st.sampled_from(["X", "", "X\n", "X\nY\n", CODECS[codec][1]]))
    data = encoded(text, codec, draw(st.sampled_from(NEWLINES)))
    off = draw(st.sampled_from([None, None, None, 1, 2, 3]))
    nth = draw(st.none() | st.integers(0, 5))
    return Asked(text, data, codec, piece(region), new, scope, inside, after, before, off, nth)


def narrowed(case: Asked) -> list[Region] | None:
    """The regions that are left for the anchor; None where what narrows it is not there, or not once."""
    text, tree = case.text, parse(case.text)
    regions: list[Region] = [(0, len(text))]
    if case.scope is not None:
        regions = scope_regions(text, tree, case.scope)
    if case.inside is not None:
        inner = block_regions(text, tree, case.inside)
        regions = [(max(a, c), min(b, d)) for a, b in regions for c, d in inner if max(a, c) < min(b, d)]
    if not regions:
        return None
    for anchor, low in ((case.after, True), (case.before, False)):
        if anchor is not None:
            found = places(text, anchor, regions)
            if len(found) != 1:
                return None
            end = found[0] + len(anchor)
            regions = [(max(a, end), b) for a, b in regions] if low else [(a, min(b, found[0])) for a, b in regions]
    return regions


def check(case: Asked) -> None:
    regions = narrowed(case)
    found = None if regions is None else places(case.text, case.find, regions)
    hits = 0 if found is None else len(found)
    count = max(1, hits) if case.count is None else case.count
    nth = None if case.nth is None or count < 2 else 1 + case.nth % count
    edit = Edit(
        index=1,
        files=(PATH,),
        action="replace",
        find=case.find,
        text=case.new,
        scope=case.scope,
        inside=case.inside,
        after=case.after,
        before=case.before,
        count=count,
        nth=nth,
    )
    patch = Patch(name="p", summary="p", target=Target(requirement="demo"), edits=(edit,))
    if found is None or hits != count:
        with pytest.raises(AnchorError) as caught:
            plan_patch(patch, Memory(case.data, PATH), Host())
        if found is not None:
            assert caught.value.details["found"] == hits
        tally["refused"] += 1
        return
    chosen = found if nth is None else [found[nth - 1]]
    overlapping = any(b - a < len(case.find) for a, b in pairwise(chosen))
    try:
        (file,) = plan_patch(patch, Memory(case.data, PATH), Host()).files
    except PlanError as error:
        tally[error.code] += 1
        shifts = case.codec.startswith("iso2022")
        if error.code == "overlap" if overlapping else error.code == "encoding" and shifts:
            return
        raise
    assert not overlapping
    out, at = "", 0
    for start in chosen:
        out += case.text[at:start] + case.new
        at = start + len(case.find)
    after = file.after.decode(case.codec).replace("\r\n", "\n").replace("\r", "\n")
    assert after == out + case.text[at:]
    rebuilt, at = b"", 0
    for splice in file.splices:
        assert case.data[splice.start : splice.end] == splice.old
        rebuilt += case.data[at : splice.start] + splice.new
        at = splice.end
    assert rebuilt + case.data[at:] == file.after
    reported = [(match.line, match.column) for match in file.edits[0].matches]
    assert reported == [
        (case.text.count("\n", 0, start) + 1, start - case.text.rfind("\n", 0, start)) for start in chosen
    ]
    tally["planned"] += 1


@effort(250)
@given(asked(real=False))
def test_on_generated_code(case: Asked) -> None:
    check(case)


@effort(200)
@given(asked(real=True))
def test_on_real_code(case: Asked) -> None:
    check(case)
