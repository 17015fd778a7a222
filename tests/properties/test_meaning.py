"""A syntax edit does what it says to what it matched, and nothing to the rest: trees, bytes, lines and comments.

What an edit means is worked out by ``naive.py``, on trees alone; nothing of it comes from patchkit.
"""

from __future__ import annotations

import ast
import io
import tokenize
from collections import Counter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from properties import naive
from properties.corpus import parse, slices
from properties.edits import Made, edits
from properties.effort import effort
from properties.grammar import sources
from properties.test_counts import indent
from support.memory import Host, Memory

from patchkit.edit.plan import FilePlan, plan_patch
from patchkit.errors import AnchorError, PlanError
from patchkit.model.patch import Edit, Patch, Target

PATH = "demo/core.py"
#: What an edit may be refused with although it could be written: places that patchkit does not edit, and says so.
REFUSALS = {"place", "template", "ambiguous"}
tally: Counter[str] = Counter()


def encoded(text: str, newline: str, bom: bool) -> bytes:
    lines = text.split("\n")
    kinds = ["\n", "\r\n"] if newline == "mixed" else [newline]
    out = "".join(line + kinds[number % len(kinds)] for number, line in enumerate(lines[:-1])) + lines[-1]
    return ("\ufeff" if bom else "").encode() + out.encode()


def decoded(data: bytes) -> str:
    return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


def plan(data: bytes, made: Made, count: int, nth: int | None = None) -> FilePlan:
    edit = Edit(
        index=1,
        files=(PATH,),
        action=made.action,  # type: ignore[arg-type]
        match=made.match,
        text=made.text,
        count=count,
        nth=nth,
    )
    patch = Patch(name="p", summary="p", target=Target(requirement="demo"), edits=(edit,))
    (file,) = plan_patch(patch, Memory(data, PATH), Host()).files
    return file


def check(text: str, made: Made, data: bytes, nth: int | None, more: int) -> None:
    tree = parse(text)
    found = naive.find(made.pattern, tree, text)
    assert found, "a pattern matches the code that it was made of"
    if more:
        with pytest.raises(AnchorError) as caught:
            plan(data, made, len(found) + more)
        assert caught.value.details["found"] == len(found)
        tally["count refused"] += 1
        return
    chosen = found
    if nth is not None and len(found) > 1 and not any(match.in_string for match in found):
        nth = nth % len(found)
        chosen = [found[nth]]
    else:
        nth = None
    overlapping = naive.overlapping(chosen)
    expected = None if overlapping else naive.edited(tree, made.action, chosen, made.pattern, made.template)
    try:
        file = plan(data, made, len(found), None if nth is None else nth + 1)
    except AnchorError as error:
        raise AssertionError(f"{len(found)} matches, not {error.details['found']}") from error
    except PlanError as error:
        tally[error.code] += 1
        if error.code == "overlap" and not overlapping:
            raise
        if error.code not in REFUSALS | {"overlap"} and not overlapping and writable(expected):
            raise AssertionError(f"refused with {error.code}: {error.message}") from error
        return
    tally["planned"] += 1
    assert not overlapping or made.action in ("insert_before", "insert_after")
    after = decoded(file.after)
    if not overlapping:
        assert expected is not None
        assert naive.key(parse(after)) == naive.key(expected)
    unchanged_outside(data, file)
    lines_outside(text, data, file, chosen)
    comments_outside(text, after, chosen)


def writable(expected: object) -> bool:
    """Whether the tree that an edit means is one that source can have at all."""
    try:
        text = ast.unparse(ast.fix_missing_locations(expected))  # type: ignore[arg-type, type-var]
        return naive.key(parse(text)) == naive.key(expected)
    except (SyntaxError, ValueError, AttributeError, IndexError, TypeError):
        return False


def unchanged_outside(data: bytes, file: FilePlan) -> None:
    """The splices account for every difference of the two files."""
    out, at = [], 0
    for splice in file.splices:
        assert at <= splice.start <= splice.end
        assert data[splice.start : splice.end] == splice.old
        out += [data[at : splice.start], splice.new]
        at = splice.end
    assert b"".join([*out, data[at:]]) == file.after


def lines_outside(text: str, data: bytes, file: FilePlan, chosen: list[naive.Match]) -> None:
    """Every splice lies in the lines of a match and of what shares them, or in the comment lines that follow it."""
    lines = text.split("\n")
    reach = set()
    shared = logical_lines(text)
    for match in chosen:
        first, last = match.start[0], match.end[0]
        first = min([first, *(low for low, high in shared if low <= first <= high)])
        last = max([last, *(high for low, high in shared if low <= last <= high)])
        while last < len(lines) and (not lines[last].strip(" \t\f") or lines[last].lstrip(" \t\f").startswith("#")):
            last += 1
        reach |= set(range(first, last + 2))
    for splice in file.splices:
        first = decoded(data[: splice.start]).count("\n") + 1
        last = decoded(data[: splice.end]).count("\n") + 1
        assert {first, last} <= reach, f"lines {first} to {last} are changed"


def logical_lines(text: str) -> list[tuple[int, int]]:
    """The first and last line of each logical line: all that ``;`` joins, a header with a block behind its colon."""
    out: list[tuple[int, int]] = []
    first = None
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NEWLINE:
            out.append((first or token.start[0], token.end[0]))
            first = None
        elif first is None and token.type not in (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT):
            first = token.start[0]
    return out


def comments(text: str) -> list[tuple[int, str]]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]


def comments_outside(text: str, after: str, chosen: list[naive.Match]) -> None:
    """Comments on lines without a match are all there afterwards, in order; those of a block's end are the block's."""
    lines = text.split("\n")
    touched: set[int] = set()
    for match in chosen:
        last = match.end[0]
        for number in range(last, len(lines)):
            bare = lines[number].lstrip(" \t\f")
            if bare and not (bare.startswith("#") and indent(lines[number]) > indent(lines[match.start[0] - 1])):
                break
            last = number + 1
        touched |= set(range(match.start[0], last + 1))
    try:
        left = iter([comment.rstrip() for _, comment in comments(after)])
        kept = [comment.rstrip() for line, comment in comments(text) if line not in touched]
    except (tokenize.TokenError, IndentationError):
        return
    for comment in kept:
        assert comment in left, f"the comment {comment} is gone"


@st.composite
def cases(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> tuple[str, Made, bytes, int | None, int]:
    text = draw(texts)
    made = draw(edits(parse(text)))
    assume(made is not None)
    assert made is not None
    newline = draw(st.sampled_from(["\n", "\n", "\r\n", "\r", "mixed"]))
    data = encoded(text, newline, draw(st.booleans()))
    nth = draw(st.none() | st.integers(0, 20))
    return text, made, data, nth, draw(st.sampled_from([0, 0, 0, 0, 1]))


@effort(200)
@given(cases(slices()))
def test_on_real_code(case: tuple[str, Made, bytes, int | None, int]) -> None:
    text, made, data, nth, more = case
    check(text, made, data, nth, more)


@effort(200)
@given(cases(sources()))
def test_on_generated_code(case: tuple[str, Made, bytes, int | None, int]) -> None:
    text, made, data, nth, more = case
    check(text, made, data, nth, more)
