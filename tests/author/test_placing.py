from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from patchkit.author.placing import DiffHunk, Placed, place

FILE = [
    f"{line}\n"
    for line in ("import os", "def f():", "    a", "    b", "    c", "def g():", "    a", "    b", "    d", "end")
]


def hunk(text: str, line: int = 1) -> DiffHunk:
    return DiffHunk(tuple((part[0], f"{part[1:]}\n") for part in text.split("|")), line)  # type: ignore[misc]


def test_a_hunk_is_found_wherever_its_lines_are() -> None:
    one = hunk("     a|     b|-    d|+    e| end")
    assert place(FILE, [one]) == ([Placed(8, 9, ("    e\n",), one)], [])


def test_context_that_changed_at_the_ends_is_left_away() -> None:
    one = hunk(" other|     b|-    d|+    e| end| other")
    assert place(FILE, [one])[0] == [Placed(8, 9, ("    e\n",), one)]


def test_what_stands_twice_has_no_place() -> None:
    (placed, (unplaced,)) = place(FILE, [hunk(" x|     a|-    b| y")])
    assert placed == []
    assert unplaced.candidates == (4, 8)


def test_context_that_changed_on_one_side_leaves_that_of_the_other() -> None:
    one = hunk(" def g():|     a|-    b| gone")
    assert place(FILE, [one])[0] == [Placed(7, 8, (), one)]


def test_full_context_tells_two_places_apart() -> None:
    one = hunk(" def g():|     a|-    b|     d")
    assert place(FILE, [one])[0] == [Placed(7, 8, (), one)]


def test_lines_that_came_in_between_two_changes() -> None:
    file = ["a\n", "b\n", "new\n", "c\n", "d\n"]
    one = hunk(" a|-b|+B|-c|+C| d".replace("|-c", "| mid|-c"))
    placed, unplaced = place(file, [one])
    assert [(p.start, p.stop, p.new) for p in placed] == [(1, 2, ("B\n",)), (3, 4, ("C\n",))]
    assert unplaced == []


def test_a_change_that_is_there_already() -> None:
    (_, (unplaced,)) = place(["a\n", "B\n", "c\n"], [hunk(" a|-b|+B| c")])
    assert unplaced.present


def test_an_insertion_needs_a_line_on_each_side_that_it_has() -> None:
    assert place(["a\n", "x\n", "c\n"], [hunk(" a|+b| c")])[0] == []
    (one,) = place(["a\n", "c\n"], [hunk(" a|+b| c")])[0]
    assert (one.start, one.stop, one.new) == (1, 1, ("b\n",))


def test_blank_lines_alone_are_no_place() -> None:
    assert place(["\n", "a\n"], [hunk(" |+b")])[0] == []


def test_two_hunks_of_one_place_are_both_without() -> None:
    placed, unplaced = place(["a\n", "b\n"], [hunk(" a|-b|+c"), hunk(" a|-b|+d")])
    assert placed == []
    assert len(unplaced) == 2


def test_like_hunks_take_like_places_in_their_order() -> None:
    placed, unplaced = place(
        ["a\n", "x\n", "b\n", "a\n", "x\n", "b\n"], [hunk(" a|-x|+1| b", 1), hunk(" a|-x|+2| b", 9)]
    )
    assert [(p.start, p.new) for p in placed] == [(1, ("1\n",)), (4, ("2\n",))]
    assert unplaced == []


def test_a_place_between_two_sure_ones() -> None:
    file = ["x\n", "p\n", "x\n", "q\n", "x\n"]
    hunks = [hunk("-p|+P"), hunk("-x|+X"), hunk("-q|+Q")]
    assert [(p.start, p.new) for p in place(file, hunks)[0]] == [(1, ("P\n",)), (2, ("X\n",)), (3, ("Q\n",))]
    assert len(place(file, hunks[:2])[1]) == 1  # behind the first there are two


def test_order_says_nothing_where_code_was_moved() -> None:
    file = ["q\n", "x\n", "p\n", "x\n"]
    placed, unplaced = place(file, [hunk("-p|+P"), hunk("-x|+X"), hunk("-q|+Q")])
    assert [p.start for p in placed] == [0, 2]
    assert [one.candidates for one in unplaced] == [(2, 4)]


@given(st.lists(st.sampled_from("abc"), min_size=3, max_size=10), st.data())
def test_never_a_place_that_the_whole_content_does_not_single_out(words: list[str], data: st.DataObject) -> None:
    """With full context that is there, the place is the only one that has it, or none is taken."""
    file = [f"{word}\n" for word in words]
    at = data.draw(st.integers(1, len(file) - 2))
    one = DiffHunk(((" ", file[at - 1]), ("-", file[at]), ("+", "x\n"), (" ", file[at + 1])), 1)
    block = file[at - 1 : at + 2]
    times = [n for n in range(len(file) - 2) if file[n : n + 3] == block]
    placed, unplaced = place(file, [one])
    if len(times) == 1:
        assert [(p.start, p.stop) for p in placed] == [(at, at + 1)]
    else:
        assert placed == []
        assert unplaced[0].candidates == tuple(n + 2 for n in times)
