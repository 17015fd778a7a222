"""The proof accepts what the edits say and nothing else; and on real files, every rewriting is proved."""

from __future__ import annotations

import ast
import re
import sysconfig
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from patchkit.edit.matcher import find_pattern
from patchkit.edit.outline import Outline
from patchkit.edit.pattern import compile_pattern
from patchkit.edit.proof import prove
from patchkit.edit.rewrite import rewrite_all
from patchkit.edit.source import Source, Splice, lay
from patchkit.edit.spans import Found, Span
from patchkit.errors import PlanError

Edits = list[tuple[Found, Any, str]]


def outline_of(text: str) -> Outline:
    return Outline(Source(text.encode(), path="x.py"), ast.parse(text))


def edits_of(outline: Outline, *edits: tuple[str, str, str]) -> Edits:
    whole = [Span(0, len(outline.source.text))]
    return [
        (found, action, template)
        for pattern, action, template in edits
        for found in find_pattern(outline, compile_pattern(pattern, ast.parse), whole)
    ]


def splices_of(outline: Outline, edits: Edits) -> list[Splice]:
    return [
        s for found, action, text in edits for s in rewrite_all(outline, [(found, action, text, 0)], parse=ast.parse)
    ]


def test_a_right_result() -> None:
    outline = outline_of("x = f(1)  # c\nif a:\n    y\n")
    edits = edits_of(outline, ("f($X)", "replace", "g($X)"), ("y", "insert_after", "z"))
    tree = prove(outline, edits, "x = g(1)  # c\nif a:\n    y\n    z\n", ast.parse)
    assert len(tree.body) == 2


@pytest.mark.parametrize(
    "result",
    [
        "x = g(2)\ny = f(3) * 2\n",  # another value
        "x = g(1)\n",  # a statement lost
        "x = g(1)\ny = f(3) * 2\nz\n",  # a statement more
        "x = g(1)\ny = f(3) + 2\n",  # something else changed
        "x = f(1)\ny = f(3) * 2\n",  # nothing done
        "x = g(1.0)\ny = f(3) * 2\n",  # equal, but not the same
    ],
)
def test_a_wrong_result(result: str) -> None:
    outline = outline_of("x = f(1)\ny = f(3) * 2\n")
    edits = edits_of(outline, ("f(1)", "replace", "g(1)"))
    with pytest.raises(PlanError, match="edited text") as caught:
        prove(outline, edits, result, ast.parse)
    assert caught.value.code == "proof"


def test_layout_is_free() -> None:
    outline = outline_of("x = f(1)\n")
    prove(outline, edits_of(outline, ("f(1)", "replace", "g(1)")), "x = (\n  g(1)  # c\n)\n", ast.parse)


def test_a_result_that_does_not_parse() -> None:
    outline = outline_of("x = f(1)\n")
    with pytest.raises(PlanError, match="line 1") as caught:
        prove(outline, edits_of(outline, ("f(1)", "replace", "g(1)")), "x = = 1\n", ast.parse)
    assert caught.value.code == "syntax"


def test_several_edits_of_one_block() -> None:
    text = "def f():\n    a\n    b\n    c\n"
    outline = outline_of(text)
    edits = edits_of(
        outline,
        ("a", "delete", ""),
        ("b", "insert_before", "x"),
        ("b", "insert_after", "y"),
        ("c", "replace", "if c:\n    z"),
    )
    result = lay(text, splices_of(outline, edits))
    assert result == "def f():\n    x\n    b\n    y\n    if c:\n        z\n"
    prove(outline, edits, result, ast.parse)


def test_an_edit_within_a_statement_that_another_stands_beside() -> None:
    text = "a\nif f(1):\n    b\n"
    outline = outline_of(text)
    edits = edits_of(outline, ("f($X)", "replace", "g($X)"), ("if $C: $$$", "insert_before", "h($C)"))
    result = lay(text, splices_of(outline, edits))
    assert result == "a\nh(f(1))\nif g(1):\n    b\n"
    prove(outline, edits, result, ast.parse)


def test_decorators_that_stay_count() -> None:
    outline = outline_of("@a\ndef f(): pass\n")
    edits = edits_of(outline, ("def f(): $$$B", "replace", "@b\ndef g():\n    $$$B"))
    prove(outline, edits, "@a\n@b\ndef g():\n    pass\n", ast.parse)
    with pytest.raises(PlanError):
        prove(outline, edits, "@b\ndef g():\n    pass\n", ast.parse)


def test_other_edits_in_the_same_file() -> None:
    outline = outline_of("x = f(1)\ny = 2\n")
    edits = edits_of(outline, ("f($X)", "replace", "g($X)"))
    with pytest.raises(PlanError):
        prove(outline, edits, "x = g(1)\ny = 3\n", ast.parse)
    prove(outline, edits, "x = g(1)\ny = 3\n", ast.parse, complete=False)


def test_edits_of_a_shared_line_and_others_in_the_same_file() -> None:
    outline = outline_of("def f():\n    a(); b()\ny = 2\n")
    edits = edits_of(outline, ("a()", "delete", ""), ("b()", "delete", ""))
    prove(outline, edits, "def f():\n    pass\ny = 3\n", ast.parse, complete=False)


def stdlib() -> list[Path]:
    """Forty files of the running Python that are not too long to prove dozens of edits on."""
    root = Path(sysconfig.get_paths()["stdlib"])
    files = [path for path in sorted(root.glob("*.py")) if 2_000 < path.stat().st_size < 14_000]
    return files[:: max(len(files) // 40, 1)][:40]


@pytest.fixture(scope="module", params=stdlib(), ids=lambda path: path.name)
def module(request: pytest.FixtureRequest) -> Outline:
    source = Source(request.param.read_bytes(), path=request.param.name)
    return Outline(source, ast.parse(source.text))


@pytest.mark.parametrize("pattern", ["$X = $Y", "return $X", "$X.$N", "raise $X", "yield $X"])
def test_replacing_by_itself_changes_no_byte(module: Outline, pattern: str) -> None:
    text = module.source.text
    compiled = compile_pattern(pattern, ast.parse)
    for found in find_pattern(module, compiled, [Span(0, len(text))]):
        pieces = []
        for capture in found.captures.values():
            several = "\n" in text[capture.span.start : capture.span.end]
            start, end = (capture.outer if several else None) or capture.span
            pieces.append(text[start:end])
        names = re.split(r"\$\w", pattern)
        written = "".join(part for pair in zip_longest(names, pieces, fillvalue="") for part in pair)
        if text[found.span.start : found.span.end] == written:  # else the file's layout is not the template's: x=1
            splices = rewrite_all(module, [(found, "replace", pattern, 0)], parse=ast.parse)
            assert [text[splice.start : splice.end] for splice in splices] == [splice.new for splice in splices]


@pytest.mark.parametrize(
    ("pattern", "action", "template"),
    [
        ("return $X", "replace", "return g($X)"),
        ("$X = $Y", "replace", "if q:\n    $X = $Y\nelse:\n    $X = -$Y"),
        ("$F($$$A)", "replace", "g($F, $$$A) or b"),
        ("if $C: $$$B", "wrap", "try:\n    $$$BODY\nfinally:\n    q()"),
        ("def $F($$$A): $$$B", "insert_before", "q()\n\n"),
        ("def $F($$$A): $$$B", "insert_after", "\nif q: q()"),
        ("for $X in $Y: $$$B", "delete", ""),
        ("import $$$N", "replace", "try: import $$$N\nexcept E: pass"),
    ],
)
def test_every_single_match_is_proved(module: Outline, pattern: str, action: Any, template: str) -> None:
    text = module.source.text
    matches = find_pattern(module, compile_pattern(pattern, ast.parse), [Span(0, len(text))])
    for found in matches[:: max(len(matches) // 2, 1)]:
        if isinstance(found.nodes[0], ast.If) and module.is_elif(found.nodes[0]):
            continue
        edits: Edits = [(found, action, template)]
        prove(module, edits, lay(text, splices_of(module, edits)), ast.parse)
