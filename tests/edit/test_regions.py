from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from patchkit.edit.regions import Conflict, Script, apply_script, compose, diff_script, invert, merge
from patchkit.edit.source import ByteSplice as B


@st.composite
def scripts_on(draw: st.DrawFn, base: bytes, alphabet: bytes = b"ab\n") -> Script:
    """A valid script on ``base``: touching splices, insertions and several of them at one point included."""
    out = []
    at = 0
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(at, len(base)))
        end = draw(st.integers(start, min(len(base), start + 4)))
        new = bytes(draw(st.lists(st.sampled_from(list(alphabet)), max_size=4)))
        out.append(B(start, end, base[start:end], new))
        at = end
    return tuple(out)


BASES = st.lists(st.sampled_from(list(b"xyz\n")), max_size=14).map(bytes)


# -- applying ------------------------------------------------------------------------------------------------------


def test_apply() -> None:
    script = (B(0, 0, b"", b"<"), B(1, 3, b"bc", b"X"), B(3, 3, b"", b"Y"), B(4, 5, b"e", b""))
    assert apply_script(b"abcdef", script) == b"<aXYdf"


@pytest.mark.parametrize(
    "script",
    [
        (B(0, 1, b"b", b""),),
        (B(0, 2, b"a", b""),),
        (B(5, 7, b"f", b""),),
        (B(7, 7, b"", b"x"), B(3, 3, b"", b"y")),
        (B(0, 3, b"abc", b""), B(2, 4, b"cd", b"")),
        (B(3, 2, b"", b""),),
    ],
)
def test_apply_refuses_what_does_not_fit(script: Script) -> None:
    with pytest.raises(ValueError):
        apply_script(b"abcdef", script)


# -- inverting and composing ---------------------------------------------------------------------------------------


def test_invert() -> None:
    script = (B(1, 2, b"b", b"XYZ"), B(4, 4, b"", b"!"))
    assert invert(script) == (B(1, 4, b"XYZ", b"b"), B(6, 7, b"!", b""))


@given(st.data())
def test_the_inverse_undoes(data: st.DataObject) -> None:
    base = data.draw(BASES)
    script = data.draw(scripts_on(base))
    assert apply_script(apply_script(base, script), invert(script)) == base
    assert invert(invert(script)) == script


def test_compose_merges_what_touches_and_keeps_the_rest_apart() -> None:
    first = (B(2, 4, b"cd", b"CCDD"), B(9, 9, b"", b"+"))  # abcdefghij -> abCCDDefghi+j
    second = (B(0, 1, b"a", b"A"), B(5, 7, b"De", b"_"))  # -> AbCCD_fghi+j
    assert compose(first, second) == (B(0, 1, b"a", b"A"), B(2, 5, b"cde", b"CCD_"), B(9, 9, b"", b"+"))


def test_compose_with_the_inverse_is_nothing() -> None:
    script = (B(0, 2, b"ab", b"X"), B(3, 3, b"", b"Y"), B(4, 5, b"e", b""))
    assert compose(script, invert(script)) == ()


def test_compose_refuses_a_second_script_for_other_bytes() -> None:
    with pytest.raises(ValueError):
        compose((B(0, 1, b"a", b"X"),), (B(0, 1, b"a", b"Y"),))


@given(st.data())
def test_composition_is_one_after_the_other(data: st.DataObject) -> None:
    base = data.draw(BASES)
    first = data.draw(scripts_on(base))
    middle = apply_script(base, first)
    second = data.draw(scripts_on(middle, b"cd\n"))
    composed = compose(first, second)
    assert apply_script(base, composed) == apply_script(middle, second)
    assert all(a.end < b.start for a, b in pairwise(composed))


@given(st.data())
def test_composition_is_associative_in_effect(data: st.DataObject) -> None:
    base = data.draw(BASES)
    a = data.draw(scripts_on(base))
    one = apply_script(base, a)
    b = data.draw(scripts_on(one))
    two = apply_script(one, b)
    c = data.draw(scripts_on(two))
    expected = apply_script(two, c)
    assert apply_script(base, compose(compose(a, b), c)) == expected
    assert apply_script(base, compose(a, compose(b, c))) == expected


# -- comparing -----------------------------------------------------------------------------------------------------


def test_diff_narrows_to_the_bytes_that_differ() -> None:
    old, new = b"one\ntwo = 1\nthree\nfour\n", b"one\ntwo = 22\nthree\nnew\nfour\n"
    assert diff_script(old, new) == (B(10, 11, b"1", b"22"), B(18, 18, b"", b"new\n"))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (b"", b"", ()),
        (b"", b"a\n", (B(0, 0, b"", b"a\n"),)),
        (b"a\n", b"", (B(0, 2, b"a\n", b""),)),
        (b"a", b"a\n", (B(1, 1, b"", b"\n"),)),
        (b"a\r\nb\r\n", b"a\nb\n", (B(1, 2, b"\r", b""), B(4, 5, b"\r", b""))),
        (b"a\na\n", b"a\na\na\n", (B(4, 4, b"", b"a\n"),)),
    ],
)
def test_small_diffs(old: bytes, new: bytes, expected: Script) -> None:
    script = diff_script(old, new)
    assert apply_script(old, script) == new
    if expected and len(expected) == 1 and len(script) == 1:
        assert len(script[0].old) + len(script[0].new) == len(expected[0].old) + len(expected[0].new)


@given(st.data())
def test_a_diff_leads_to_the_new_bytes(data: st.DataObject) -> None:
    old = data.draw(BASES)
    new = data.draw(st.one_of(BASES, scripts_on(old).map(lambda script: apply_script(old, script))))
    script = diff_script(old, new)
    assert apply_script(old, script) == new
    assert all(splice.old != splice.new for splice in script)
    assert all(splice.old[:1] != splice.new[:1] or not splice.old or not splice.new for splice in script)


def test_a_diff_of_two_megabytes() -> None:
    lines = [b"    line %d of it = %d\n" % (n, n * 7) for n in range(66_000)]
    old = b"".join(lines)
    assert len(old) > 1_900_000
    new = b"".join([b"first\n", *lines[:30_000], b"middle\n", *lines[30_001:], b"last\n"])
    script = diff_script(old, new)
    assert len(script) == 3
    assert apply_script(old, script) == new


def test_a_diff_of_many_equal_lines_does_not_explode() -> None:
    old = b"x\n" * 30_000 + b"y\n" + b"z\n" * 30_000
    new = b"z\n" * 30_000 + b"x\ny\ny\n" + b"x\n" * 30_000
    assert apply_script(old, diff_script(old, new)) == new


# -- merging -------------------------------------------------------------------------------------------------------

BASE = b"0123456789"


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        ([B(1, 2, b"1", b"A")], [B(5, 6, b"5", b"B")], b"0A234B6789"),
        ([B(3, 3, b"", b"+")], [B(3, 3, b"", b"+")], b"012+3456789"),
        ([B(3, 5, b"34", b"A")], [B(3, 5, b"34", b"A")], b"012A56789"),
        ([B(3, 5, b"34", b"A"), B(7, 8, b"7", b"")], [B(3, 5, b"34", b"A"), B(9, 10, b"9", b"!")], b"012A568!"),
        ([], [B(0, 0, b"", b"+")], b"+0123456789"),
        ([B(10, 10, b"", b"+")], [], b"0123456789+"),
        ([B(4, 4, b"", b"p"), B(4, 4, b"", b"q")], [B(4, 4, b"", b"pq")], b"0123pq456789"),
        ([B(4, 5, b"4", b"4")], [B(3, 6, b"345", b"")], b"0126789"),
    ],
)
def test_merges(ours: list[B], theirs: list[B], expected: bytes) -> None:
    assert merge(BASE, ours, theirs) == expected
    assert merge(BASE, theirs, ours) == expected


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ([B(3, 5, b"34", b"A")], [B(4, 4, b"", b"+")]),
        # Touching within a line: who makes 600 of our 60 has changed what we wrote.
        ([B(1, 3, b"12", b"A")], [B(3, 5, b"34", b"B")]),
        ([B(3, 5, b"34", b"A")], [B(3, 3, b"", b"+")]),
        ([B(3, 5, b"34", b"A")], [B(5, 5, b"", b"+")]),
        ([B(3, 5, b"34", b"A")], [B(4, 6, b"45", b"B")]),
        ([B(3, 5, b"34", b"A")], [B(3, 5, b"34", b"B")]),
        ([B(3, 5, b"34", b"A")], [B(3, 4, b"3", b"A")]),
        ([B(3, 3, b"", b"A")], [B(3, 3, b"", b"B")]),
        ([B(1, 3, b"12", b""), B(4, 6, b"45", b"")], [B(2, 5, b"234", b"")]),
        ([B(3, 3, b"", b"A"), B(3, 5, b"34", b"B")], [B(3, 3, b"", b"C")]),
    ],
)
def test_conflicts(ours: list[B], theirs: list[B]) -> None:
    for one, other in ((ours, theirs), (theirs, ours)):
        conflicts = merge(BASE, one, other)
        assert isinstance(conflicts, list)
        assert len(conflicts) == 1
        assert set(conflicts[0].ours) <= set(one)
        assert set(conflicts[0].theirs) <= set(other)


def test_conflicts_are_listed_apart_with_their_lines() -> None:
    base = b"a\nb\r\nc\rd\ne\n"
    ours = [B(2, 3, b"b", b"B"), B(9, 10, b"e", b"E")]
    theirs = [B(0, 3, b"a\nb", b""), B(5, 11, b"c\rd\ne\n", b"")]
    conflicts = merge(base, ours, theirs)
    assert conflicts == [Conflict((ours[0],), (theirs[0],)), Conflict((ours[1],), (theirs[1],))]
    assert [conflict.lines(base) for conflict in conflicts] == [(1, 2), (3, 5)]
    assert (conflicts[1].start, conflicts[1].end) == (5, 11)
    insertion = merge(base, [B(5, 5, b"", b"p")], [B(5, 5, b"", b"q")])
    assert isinstance(insertion, list)
    assert insertion[0].lines(base) == (3, 3)


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        (B(3, 3, b"", b"+\n"), b"a1\n+\nX\nc3\n"),  # a line put above ours
        (B(6, 6, b"", b"+\n"), b"a1\nX\n+\nc3\n"),  # and below
        (B(0, 3, b"a1\n", b""), b"X\nc3\n"),
        (B(6, 9, b"c3\n", b"d\n"), b"a1\nX\nd\n"),
        (B(3, 3, b"", b"0"), b"a1\n0X\nc3\n"),  # behind a line's end: the line above is not ours
    ],
)
def test_changes_may_touch_where_a_line_ends(theirs: B, expected: bytes) -> None:
    base = b"a1\nb2\nc3\n"
    ours = [B(3, 6, b"b2\n", b"X\n")]
    assert merge(base, ours, [theirs]) == expected
    assert merge(base, [theirs], ours) == expected


def test_merge_refuses_another_base() -> None:
    with pytest.raises(ValueError):
        merge(b"zzz", [B(0, 1, b"a", b"")], [])


def test_a_hand_edit_stays_when_a_patch_is_taken_out() -> None:
    pristine = b"import a\n\ndef f():\n    x = 1\n    return x\n"
    patch = (B(8, 8, b"", b"\nimport b"), B(24, 29, b" = 1\n", b" = b.g()\n    log(x)\n"))
    ours = apply_script(pristine, patch)
    assert ours == b"import a\nimport b\n\ndef f():\n    x = b.g()\n    log(x)\n    return x\n"
    users = ours.replace(b"return x", b"return -x").replace(b"import a", b"import a as aa")
    assert merge(ours, invert(patch), diff_script(ours, users)) == (
        pristine.replace(b"return x", b"return -x").replace(b"import a", b"import a as aa")
    )
    inside = ours.replace(b"log(x)", b"log(x, 1)")
    assert isinstance(merge(ours, invert(patch), diff_script(ours, inside)), list)


def changes(script: Script) -> list[B]:
    """``script`` without idle splices, insertions at one point made one."""
    out: list[B] = []
    for splice in script:
        if splice.old == splice.new:
            continue
        if out and out[-1].start == out[-1].end == splice.start == splice.end:
            splice = out.pop()._replace(new=out_new(script, splice.start))
        out.append(splice)
    return out


def out_new(script: Script, point: int) -> bytes:
    return b"".join(s.new for s in script if s.start == s.end == point)


def exclude_each_other(a: B, b: B) -> bool:
    """The rule of the contract, pair by pair."""
    if a == b:
        return False
    if a.start == a.end and b.start == b.end:
        return a.start == b.start
    return (
        max(a.start, b.start) < min(a.end, b.end)
        or b.start < a.start == a.end < b.end
        or a.start < b.start == b.end < a.end
        or 0 < a.end == b.start  # the bases have no line breaks: what touches, touches within a line
        or 0 < b.end == a.start
    )


@settings(max_examples=300)
@given(st.data())
def test_a_merge_holds_exactly_what_both_sides_say(data: st.DataObject) -> None:
    """Upper-case only from ours, lower-case only from theirs: their order and the kept bytes are checked."""
    base = bytes(range(48, 48 + data.draw(st.integers(0, 10))))
    ours = data.draw(scripts_on(base, b"AB"))
    theirs = data.draw(scripts_on(base, b"ab"))
    merged = merge(base, ours, theirs)
    mine, other = set(changes(ours)), set(changes(theirs))
    disputed = {a for a in mine - other for b in other - mine if exclude_each_other(a, b)}
    if disputed:
        assert isinstance(merged, list)
        assert disputed <= {splice for conflict in merged for splice in conflict.ours}
        return
    if isinstance(merged, list):  # a change that both make, with one beside it that only one of them makes
        assert any(exclude_each_other(a, b) for a in mine for b in other)
        return
    assert merged == merge(base, theirs, ours)
    removed = {i for start, end, old, new in (*ours, *theirs) if old != new for i in range(start, end)}
    assert [b - 48 for b in merged if 48 <= b < 58] == [i for i in range(len(base)) if i not in removed]
    # Each side alone is what is left without the other side's texts, less what the other side removed.
    for script, low in ((ours, 65), (theirs, 97)):
        gone = removed - {i for start, end, old, new in script if old != new for i in range(start, end)}
        alone = bytes(b for b in apply_script(base, script) if b - 48 not in gone)
        assert bytes(b for b in merged if low <= b < low + 26 or 48 <= b < 58) == alone


@given(st.data())
def test_merging_with_nothing_is_applying(data: st.DataObject) -> None:
    base = data.draw(BASES)
    script = data.draw(scripts_on(base))
    assert merge(base, script, ()) == apply_script(base, script)
    assert merge(base, (), script) == apply_script(base, script)
    assert merge(base, script, script) == apply_script(base, script)
