from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.author.hunks import Hunk, hunks, lines_of


def after(before: list[str], found: list[Hunk]) -> list[str]:
    """The hunks done, from the last to the first."""
    out = list(before)
    for hunk in reversed(found):
        out[hunk.start : hunk.stop] = hunk.new
    return out


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("a", ["a"]),
        ("a\n", ["a\n"]),
        ("a\n\nb", ["a\n", "\n", "b"]),
        ("a\x0cb\u2028c\n", ["a\x0cb\u2028c\n"]),
    ],
)
def test_lines_end_at_line_feeds_alone(text: str, lines: list[str]) -> None:
    assert lines_of(text) == lines
    assert "".join(lines) == text


def test_a_method_put_in_begins_at_its_def_and_ends_with_its_blank_line() -> None:
    before = [
        "class A:\n",
        "    def f(self):\n",
        "        return 1\n",
        "\n",
        "    def h(self):\n",
        "        return 1\n",
    ]
    new = ["    def g(self):\n", "        return 1\n", "\n"]
    assert hunks(before, [*before[:4], *new, *before[4:]]) == [Hunk(4, 4, tuple(new))]


def test_a_removed_function_takes_the_blank_lines_behind_it() -> None:
    before = ["def f():\n", "    x\n", "\n", "\n", "def g():\n", "    x\n", "\n", "\n", "def h():\n", "    x\n"]
    assert hunks(before, [*before[:4], *before[8:]]) == [Hunk(4, 8, ())]


def test_changes_with_few_lines_between_are_one() -> None:
    before = [f"{n}\n" for n in range(9)]
    changed = list(before)
    changed[1], changed[4], changed[8] = "x\n", "y\n", "z\n"
    assert hunks(before, changed) == [Hunk(1, 5, ("x\n", "2\n", "3\n", "y\n")), Hunk(8, 9, ("z\n",))]


LINES = st.lists(st.sampled_from(["a\n", "b\n", "\n", "    c\n", "    )\n", "d\n"]), max_size=14)


@given(LINES, LINES)
def test_the_hunks_give_the_text_after_and_never_touch(before: list[str], wanted: list[str]) -> None:
    found = hunks(before, wanted)
    assert after(before, found) == wanted
    assert all(a.stop < b.start for a, b in pairwise(found))
