"""What is said of hunks without a place stays within bounds."""

from __future__ import annotations

import ast

import pytest

from patchkit.author import unplaced
from patchkit.author.placing import DiffHunk, Unplaced
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
