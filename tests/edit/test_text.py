from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.edit.source import Source, Splice
from patchkit.edit.spans import Span
from patchkit.edit.text import find_text, text_splices
from patchkit.errors import PlanError


def find(text: str, anchor: str, *regions: tuple[int, int]) -> list[int]:
    source = Source(text.encode())
    spans = [Span(*region) for region in regions] or [Span(0, len(source.text))]
    found = find_text(source, anchor, spans)
    assert all(span.end - span.start == len(anchor.replace("\r\n", "\n")) for span in found)
    return [span.start for span in found]


def changed(data: str, anchor: str, action: str, text: str) -> str:
    source = Source(data.encode())
    (span,) = find_text(source, anchor, [Span(0, len(source.text))])
    after, _ = source.render(text_splices(source, span, action, text, 1))  # type: ignore[arg-type]
    return after.decode()


# -- finding -------------------------------------------------------------------------------------------------------


def test_overlapping_occurrences_count() -> None:
    assert find("aaa", "aa") == [0, 1]


def test_nothing_is_stripped() -> None:
    assert find(" x \n", "x ") == [1]
    assert find(" x\n", "x ") == []


@pytest.mark.parametrize(
    ("text", "anchor", "expected"),
    [
        ("a\nba\na\n", "a\n", [0, 5]),
        ("xa\n", "a\n", []),
        ("a\na\na\n", "a\na\n", [0, 2]),
        ("\n\nx\n", "\n", [0, 1]),
        ("x\n\n\ny", "\n", [2, 3]),
        ("a", "a\n", []),
        ("a\nb", "b", [2]),
        ("x = a\nb = 1\n", "a\nb", [4]),
    ],
)
def test_whole_line_anchors(text: str, anchor: str, expected: list[int]) -> None:
    assert find(text, anchor) == expected


def test_an_anchor_matches_any_newline_style_and_is_matched_in_any() -> None:
    assert find("a\r\nb\r\n", "a\nb\n") == [0]
    assert find("a\nb\n", "a\r\nb\r\n") == [0]
    assert find("a\rb\r", "a\nb\n") == [0]


def test_a_byte_order_mark_does_not_hide_the_first_line() -> None:
    source = Source(b"\xef\xbb\xbfx = 1\n", path="a.py")
    assert find_text(source, "x = 1\n", [Span(0, 6)]) == [Span(0, 6)]


def test_other_line_separators_are_characters() -> None:
    assert find("a\x0cb\n", "b\n") == []
    assert find("a\u2028b\n", "b\n") == []


def test_regions_limit_and_do_not_count_twice() -> None:
    text = "x\nx\nx\n"
    assert find(text, "x\n", (2, 6)) == [2, 4]
    assert find(text, "x\n", (0, 3)) == [0]
    assert find(text, "x\n", (1, 6)) == [2, 4]
    assert find(text, "x\n", (0, 6), (2, 4), (2, 4)) == [0, 2, 4]
    assert find(text, "x\n", (2, 4), (0, 4)) == [0, 2]
    assert find(text, "x\nx", (0, 2), (2, 6)) == [2]
    assert find(text, "x", (0, 0)) == []


def test_a_region_that_starts_behind_a_colon_holds_its_first_body_line() -> None:
    text = "if a:\n    x\n"
    assert find(text, "    x\n", (5, len(text))) == [6]


def test_an_empty_anchor_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        find("x", "")


@given(
    st.text("ab\n", max_size=40),
    st.text("ab\n", min_size=1, max_size=4),
    st.tuples(st.integers(0, 40), st.integers(0, 40)),
)
def test_finding_is_what_its_definition_says(text: str, anchor: str, region: tuple[int, int]) -> None:
    low, high = min(region), min(max(region), len(text))
    expected = [
        i
        for i in range(low, high - len(anchor) + 1)
        if text[i : i + len(anchor)] == anchor and (anchor[-1] != "\n" or i == 0 or text[i - 1] == "\n")
    ]
    assert find(text, anchor, (low, high)) == expected


# -- actions -------------------------------------------------------------------------------------------------------


def test_simple_actions_are_exact() -> None:
    source = Source(b"a b c\n")
    span = Span(2, 3)
    assert text_splices(source, span, "replace", " X", 7) == [Splice(2, 3, " X", 7, 0)]
    assert text_splices(source, span, "delete", "", 7) == [Splice(2, 3, "", 7, 0)]
    assert text_splices(source, span, "insert_before", "X\r\n", 7) == [Splice(2, 2, "X\n", 7, 1)]
    assert text_splices(source, span, "insert_after", "X", 7) == [Splice(3, 3, "X", 7, -1)]
    with pytest.raises(ValueError, match="probe"):
        text_splices(source, span, "probe", "", 7)


WRAP = "if ready:\n    $$$BODY\nelse:\n    stop()\n"


@pytest.mark.parametrize("anchor", ["    go()\n    on()\n", "    go()\n    on()", "go()\n    on()"])
def test_wrap_indents_a_dedented_template_like_the_match(anchor: str) -> None:
    before = "def f():\n    go()\n    on()\n    end()\n"
    assert changed(before, anchor, "wrap", WRAP) == (
        "def f():\n    if ready:\n        go()\n        on()\n    else:\n        stop()\n    end()\n"
    )


def test_wrap_leaves_an_indented_template_alone() -> None:
    template = "    with x:\n        $$$BODY\n"
    assert changed("if a:\n    go()\n", "    go()\n", "wrap", template) == "if a:\n    with x:\n        go()\n"


def test_wrap_uses_the_template_s_own_step_and_the_file_s_tabs() -> None:
    before = "def f():\n\tfor x in y:\n\t\tgo(x)\n\n\t\ton(\n  x)\n"
    anchor = before[9:]
    assert changed(before, anchor, "wrap", "try:\n\t$$$BODY\nfinally:\n\tend()\n") == (
        "def f():\n\ttry:\n\t\tfor x in y:\n\t\t\tgo(x)\n\n\t\t\ton(\n\t  x)\n\tfinally:\n\t\tend()\n"
    )


def test_wrap_does_not_shift_the_insides_of_strings() -> None:
    before = 'if a:\n    x = """one\n  two\n\n    three"""\n    y = \'a\\\nb\'\n    z = 1\n'
    after = changed(before, before[6:], "wrap", "if b:\n    $$$BODY\n")
    assert after == (
        'if a:\n    if b:\n        x = """one\n  two\n\n    three"""\n        y = \'a\\\nb\'\n        z = 1\n'
    )
    assert ast.unparse(ast.parse(after).body[0].body[0].body) == ast.unparse(ast.parse(before).body[0].body)  # type: ignore[attr-defined]


def test_wrap_does_not_shift_the_insides_of_f_strings() -> None:
    before = "if a:\n    x = f\"\"\"one {b:\n      >4} {f'''c\n    d'''}\n  two\"\"\"\n    y = 1\n"
    after = changed(before, before[6:], "wrap", "if b:\n    $$$BODY\n")
    assert (
        after
        == "if a:\n    if b:\n        x = f\"\"\"one {b:\n      >4} {f'''c\n    d'''}\n  two\"\"\"\n        y = 1\n"
    )


def test_wrap_does_not_indent_the_strings_of_the_template() -> None:
    template = 'if b:\n    """\ntext\n    """\n    $$$BODY\n'
    assert changed("if a:\n    go()\n", "    go()\n", "wrap", template) == (
        'if a:\n    if b:\n        """\ntext\n    """\n        go()\n'
    )


def test_wrap_shifts_everything_of_what_cannot_be_tokenized() -> None:
    before = "    x = '''open\n    y\n"
    assert changed(before, before, "wrap", "if b:\n    $$$BODY\n") == ("    if b:\n        x = '''open\n        y\n")


def test_wrap_gives_blank_lines_no_trailing_spaces() -> None:
    before = "if a:\n    x\n\n  \n    y\n"
    assert changed(before, before[6:], "wrap", "if b:\n\n    $$$BODY\n") == (
        "if a:\n    if b:\n\n        x\n\n  \n        y\n"
    )


def test_wrap_in_a_file_without_final_newline_and_with_crlf() -> None:
    assert changed("x\r\ny", "y", "wrap", "if b:\n    $$$BODY\n") == "x\r\nif b:\r\n    y"


def test_wrap_keeps_comments_that_stand_less_deep() -> None:
    before = "if a:\n    x\n# note\n    y\n"
    assert changed(before, before[6:], "wrap", "if b:\n    $$$BODY") == (
        "if a:\n    if b:\n        x\n    # note\n        y\n"
    )


def test_the_body_may_stand_twice_and_at_the_template_s_own_depth() -> None:
    assert changed("  x\n", "  x\n", "wrap", "a()\n$$$BODY\nif b:\n\t$$$BODY\n") == "  a()\n  x\n  if b:\n  \tx\n"


def test_wrap_needs_whole_lines() -> None:
    with pytest.raises(PlanError, match="whole lines") as caught:
        changed("y = f(x)\n", "f(x)", "wrap", WRAP)
    assert caught.value.code == "wrap"
    with pytest.raises(PlanError, match="whole lines"):
        changed("f(x)  # note\n", "f(x)", "wrap", WRAP)
    assert changed("f(x)  \n", "f(x)", "wrap", "if b:\n    $$$BODY\n") == "if b:\n    f(x)  \n"


def test_wrap_needs_a_body() -> None:
    with pytest.raises(PlanError, match=r"\$\$\$BODY"):
        changed("x\n", "x\n", "wrap", "if b: $$$BODY\n")
