from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from patchkit.author.placing import DiffHunk, Placed, place, placements

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
    assert place(FILE, [one])[0] == [Placed(8, 9, ("    e\n",), one, reduced=True)]


def test_what_stands_twice_has_no_place() -> None:
    (placed, (unplaced,)) = place(FILE, [hunk(" x|     a|-    b| y")])
    assert placed == []
    assert unplaced.candidates == (4, 8)


def test_context_that_changed_on_one_side_leaves_that_of_the_other() -> None:
    one = hunk(" def g():|     a|-    b| gone")
    assert place(FILE, [one])[0] == [Placed(7, 8, (), one, reduced=True)]


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


CLASSES = [
    f"{line}\n"
    for line in (
        "class A:",
        "    def f(self):",
        "        x = 1",
        "        return x",
        "class B:",
        "    def g(self):",
        "        x = 1",
        "        return x",
    )
]


def test_one_of_two_places_lies_under_the_heading_of_the_hunk() -> None:
    one = hunk("         x = 1|-        return x")._replace(headings=("class B:", "class B:"))
    assert [(p.start, p.stop) for p in place(CLASSES, [one])[0]] == [(7, 8)]
    python = one._replace(headings=("def f(self):", "def f(self):"))
    assert [(p.start, p.stop) for p in place(CLASSES, [python])[0]] == [(3, 4)]
    other = one._replace(headings=("class C:", "class C:"))
    assert place(CLASSES, [other])[1][0].candidates == (4, 8)


def test_with_less_context_a_hunk_stays_under_its_heading() -> None:
    """The class that it is for has not the lines; another has."""
    lines = [*CLASSES[:2], "        pass\n", *CLASSES[4:]]
    one = hunk("         gone = 1|         x = 1|-        return x")
    placed, (unplaced,) = place(lines, [one._replace(headings=("class A:", "class A:"))])
    assert placed == []
    assert (unplaced.candidates, unplaced.elsewhere) == ((7,), True)
    right = one._replace(headings=("class B:", "class B:"))
    assert [(p.start, p.stop) for p in place(lines, [right])[0]] == [(6, 7)]


def test_a_head_in_the_context_is_nearer_than_the_heading() -> None:
    """The heading is that of what comes before: the hunk begins above the class that its change is in."""
    one = hunk(" class B:|     def h(self):|         x = 1|-        return x")
    one = one._replace(headings=("class A:", "class A:"))
    assert [(p.start, p.stop) for p in place(CLASSES, [one])[0]] == [(7, 8)]


def test_a_line_alone_is_no_evidence() -> None:
    """It is the first of two like lines that is left, and the hunk is about the second."""
    lines = ["import os\n", "import sys\n", "import re\n", "x = 1\n"]
    placed, (unplaced,) = place(lines, [hunk(" from a import b|-import sys| from c import d")])
    assert placed == []
    assert (unplaced.candidates, unplaced.elsewhere) == ((2,), True)


def test_what_comes_to_the_end_of_a_file_comes_nowhere_else() -> None:
    top = hunk(' """What it is."""|+|+import os')
    assert place(['"""What it is."""\n', "x = 1\n"], [top])[0] == []
    assert [p.start for p in place(["# a\n", '"""What it is."""\n'], [top])[0]] == [2]
    first = hunk("+import os| x = 1")
    assert place(["# a\n", "x = 1\n"], [first])[0] == []
    assert [p.start for p in place(["x = 1\n", "y = 1\n"], [first])[0]] == [0]


def test_a_hunk_whose_leading_context_was_cut_stands_above_the_rest() -> None:
    one = hunk("+# hello| def g():|     a|     b")._replace(start=6)
    assert [(p.start, p.reduced) for p in place(FILE, [one])[0]] == [(5, False)]
    (placed, (unplaced,)) = place(FILE, [one._replace(start=1)])  # of the beginning of a file
    assert (placed, unplaced.inner, unplaced.candidates) == ([], 6, ())
    less = hunk("+# hello| def g():|     other|     b")._replace(start=6)
    assert place(FILE, [less])[0] == []


def test_a_place_that_part_of_the_context_speaks_for_is_in_the_order_of_the_diff() -> None:
    lines = ["x = 1\n", "y = 2\n", "z = 3\n", "v = 4\n"]
    first, second = hunk(" gone = 0|-z = 3| v = 4"), hunk(" x = 1|-y = 2| z = 3", 9)
    placed, (unplaced,) = place(lines, [first, second])
    assert [(p.start, p.stop) for p in placed] == [(1, 2)]
    assert (unplaced.candidates, unplaced.elsewhere) == ((3,), True)
    assert len(place(lines, [second, first])[0]) == 2


def test_a_bare_line_under_another_heading_is_no_place() -> None:
    """A diff without context (`-U0`): the heading is all that is said of the place."""
    one = hunk("-        x = 1|+        x = 2")
    lines = [*CLASSES[:2], "        pass\n", *CLASSES[4:]]
    placed, (unplaced,) = place(lines, [one._replace(headings=("class A:", "class A:"))])
    assert placed == []
    assert (unplaced.candidates, unplaced.elsewhere) == ((6,), True)
    assert [p.start for p in place(lines, [one._replace(headings=("class B:", "class B:"))])[0]] == [5]


def test_blank_lines_are_no_context_that_speaks_for_a_place() -> None:
    lines = ["import os\n", "\n", "x = 1\n", "\n", "y = 1\n"]
    gone = hunk(" def gone():| |-x = 1|+x = 2| | z = 1")
    placed, (unplaced,) = place(lines, [gone])
    assert placed == []
    assert (unplaced.candidates, unplaced.elsewhere) == ((3,), True)


def test_what_has_its_place_by_less_context_is_told() -> None:
    whole, less = hunk(" import os|-def f():|+def h():"), hunk(" gone|     b|-    d|+    e| end", 9)
    parts = hunk(" def g():|-    a|+    A|     mid|-    b|+    B|     d", 20)
    placed, unplaced = place(FILE, [whole, less])
    assert unplaced == []
    assert [one.reduced for one in placed] == [False, True]
    lines = ["def g():\n", "    a\n", "    new\n", "    mid\n", "    b\n", "    d\n"]
    assert [(one.start, one.reduced) for one in place(lines, [parts])[0]] == [(1, True), (4, True)]


def test_all_ways_to_lay_hunks_by_their_whole_content() -> None:
    lines = ["a\n", "x\n", "a\n", "x\n", "a\n"]
    one, other = hunk(" a|-x|+1"), hunk(" a|-x|+2")
    assert [[p.start for p in way] for way in placements(lines, [one], 9)] == [[1], [3]]
    assert [[p.start for p in way] for way in placements(lines, [one, other], 9)] == [[1, 3]]
    assert list(placements(lines, [hunk(" b|-x|+1")], 9)) == []
    assert [[p.start for p in way] for way in placements(lines, [hunk("+b")], 9)] == [[n] for n in range(6)]
    assert list(placements(lines, [hunk("+b")], 5)) == []  # more than are asked for is none
    assert len(list(placements(["x\n"] * 9, [hunk("-x"), hunk("-x"), hunk("-x")], 84))) == 84  # 9 over 3


@given(st.lists(st.sampled_from("ab"), min_size=1, max_size=7), st.data())
def test_the_ways_to_lay_hunks_are_those_that_trying_all_finds(words: list[str], data: st.DataObject) -> None:
    lines = [f"{word}\n" for word in words]
    sizes = data.draw(st.lists(st.integers(1, 2), min_size=1, max_size=3))
    olds = [data.draw(st.lists(st.sampled_from("ab"), min_size=size, max_size=size)) for size in sizes]
    hunks = [hunk("|".join(f"-{word}" for word in old)) for old in olds]
    wanted = [
        list(starts)
        for starts in product(range(len(lines)), repeat=len(olds))
        if all([f"{word}\n" for word in old] == lines[at : at + len(old)] for at, old in zip(starts, olds, strict=True))
        and all(a + len(old) <= b for a, old, b in zip(starts, olds, starts[1:], strict=False))
    ]
    assert [[p.start for p in way] for way in placements(lines, hunks, 10_000)] == wanted


def test_of_two_ends_it_is_the_one_that_stands_there_that_must_speak() -> None:
    """Of one line of context, the blank one above stands there; the one below, which says something, does not."""
    placed, (unplaced,) = place(["import os\n", "\n", "x = 1\n"], [hunk(" |-x = 1|+x = 2| y = 1")])
    assert placed == []
    assert (unplaced.candidates, unplaced.elsewhere) == ((3,), True)
