"""What is said of hunks without a place stays within bounds."""

from __future__ import annotations

import ast

import pytest

from patchkit.author import unplaced
from patchkit.author.placing import DiffHunk, Unplaced, place
from patchkit.author.unplaced import describe
from patchkit.edit.source import Source

TEXT = "".join(f"def f{n}(a):\n    return a * {n}\n\n\n" for n in range(20))


def hunk(number: int) -> DiffHunk:
    lines = ((" ", f"def f{number}(a):\n"), ("-", f"    return a - {number}\n"), ("+", "    pass\n"))
    return DiffHunk(lines, 4 + 4 * number)  # type: ignore[arg-type]


def test_many_hunks_of_a_large_file_are_not_all_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    real = unplaced._nearest
    monkeypatch.setattr(unplaced, "_nearest", lambda *given: looks.append(given[2].old[0]) or real(*given))
    source = Source(TEXT.encode(), path="demo/many.py")
    hunks = [hunk(number) for number in range(6)]
    problems, rest = describe(source, hunks, [Unplaced(one) for one in hunks], ast.parse, 3 * len(TEXT) - 1)
    assert (len(looks), rest) == (3, -1)
    assert [bool(one.places) for one in problems] == [True] * 3 + [False] * 3
    assert problems[0].places[0].scope == "f0"
    assert [one.reason.partition(";")[0] for one in problems] == ["stands nowhere"] * 6
    assert "was not looked for" in problems[5].reason
    known = [Unplaced(hunks[0], (3, 7)), Unplaced(hunks[1], present=True)]
    problems, _ = describe(source, hunks, known, ast.parse, 0)
    assert [one.reason for one in problems] == [
        "stands 2 times, at line 3, at line 7",
        "the release has it already",
    ]


def test_an_insertion_without_context_on_one_side_is_told_as_that() -> None:
    source = Source(b"import os\nA = 1\nB = 2\nC = 3\n", path="demo/many.py")
    above = DiffHunk((("+", "# hello\n"), (" ", "B = 2\n"), (" ", "C = 3\n")), 4, start=1)
    below = DiffHunk(((" ", "import os\n"), (" ", "A = 1\n"), ("+", "# hello\n")), 4, start=1)
    for one, line, told in (
        (above, 3, "at line 3, but the diff has no line above it, as at the beginning of a file"),
        (below, 3, "at line 3, but the diff has no line below it, as at the end of a file"),
    ):
        _, missing = place([f"{text}\n" for text in source.text.splitlines()], [one])
        (problem,), _ = describe(source, [one], missing, ast.parse)
        assert problem.reason == f"would stand {told}"
        assert (problem.candidates, len(problem.lines)) == ((line,), 1)
