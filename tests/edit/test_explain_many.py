"""An anchor that matches too often, or too seldom."""

from __future__ import annotations

# The shape of tpu_inference/runner/tpu_runner.py around its sampling, line for line what matters to an anchor.
from support.explaining import SAMPLE, make, many, none, shown

# -- too many, too few -------------------------------------------------------------------------------------------------


def test_the_real_case_three_places() -> None:
    diagnosis = many(make("logits.astype(jnp.float32)"))
    assert (
        shown(diagnosis)
        == """\
line 12 in TPUModelRunner._sample_from_logits:
    10 |     def _sample_from_logits(self, logits, full_logits, metadata):
    11 |         if metadata is None:
  > 12 |             logits = logits.astype(jnp.float32)
    13 |             with self.maybe_forbid_compile:
    14 |                 next_tokens, processed_logits = sample(
line 19 in TPUModelRunner._sample_from_logits:
    17 |             bonus_logits = logits[metadata.bonus]
    18 |
  > 19 |         logits = logits.astype(jnp.float32)
    20 |         if full_logits is not None:
    21 |             full_logits = full_logits.astype(jnp.float32)
line 21 in TPUModelRunner._sample_from_logits:
    19 |         logits = logits.astype(jnp.float32)
    20 |         if full_logits is not None:
  > 21 |             full_logits = full_logits.astype(jnp.float32)
    22 |         return logits
    23 |
to mean only line 12: anchor it with its whole line (and repeat in `replace` what is to stay):
find = '''
            logits = logits.astype(jnp.float32)
'''
to mean only line 19: anchor it with its whole line (and repeat in `replace` what is to stay):
find = '''
        logits = logits.astype(jnp.float32)
'''
to mean only line 21: anchor it with its whole line (and repeat in `replace` what is to stay):
find = '''
            full_logits = full_logits.astype(jnp.float32)
'''
to mean all 3: count = 3"""
    )
    assert [place["line"] for place in diagnosis.data["places"]] == [12, 19, 21]
    assert diagnosis.data["found"] == 3
    assert diagnosis.data["suggestions"][-1] == {"count": 3}


def test_a_scope_for_each_place() -> None:
    text = "def a():\n    x = 1\n\n\ndef b():\n    x = 1\n"
    assert (
        shown(many(make("x = 1", text)))
        == """\
line 2 in a:
    1 | def a():
  > 2 |     x = 1
    3 |
    4 |
line 6 in b:
    4 |
    5 | def b():
  > 6 |     x = 1
to mean only line 2: scope = "a"
to mean only line 6: scope = "b"
to mean both: count = 2"""
    )


def test_more_context_above_and_below() -> None:
    text = "x = 1\ny = 1\nx = 1\ny = 2\nx = 1\ny = 1\n"
    assert (
        shown(many(make("x = 1\n", text))).partition("to mean ")[2]
        == """\
only line 1: anchor it with 2 more lines below (and repeat in `replace` what is to stay):
find = '''
x = 1
y = 1
x = 1
'''
to mean only line 3: anchor it with 1 more line above (and repeat in `replace` what is to stay):
find = '''
y = 1
x = 1
'''
to mean only line 5: anchor it with 1 more line above (and repeat in `replace` what is to stay):
find = '''
y = 2
x = 1
'''
to mean all 3: count = 3"""
    )


def test_nth_where_nothing_else_tells_them_apart_and_eight_places_with_context() -> None:
    diagnosis = many(make("x = 1\n", "x = 1\n" * 40))
    text = shown(diagnosis)
    assert "line 8:\n" in text
    assert "line 9\nline 10\n" in text  # the rest without context
    assert "line 40\n" in text
    assert len(diagnosis.data["places"]) == 40
    assert "to mean all 40: count = 40" in text
    # From the first line on, 1 to 5 lines more never end where the file begins.
    assert "to mean only line 1: count = 40 and nth = 1" in text
    assert "to mean only line 8: count = 40 and nth = 8" in text  # every place that is shown
    assert "to mean only line 9" not in text


def test_two_places_on_one_line() -> None:
    text = "x = f(a) + f(a)\ny = f(a)\n"
    assert (
        shown(many(make("f(a)", text)))
        == """\
line 1, column 5:
  > 1 | x = f(a) + f(a)
    2 | y = f(a)
line 1, column 12:
  > 1 | x = f(a) + f(a)
    2 | y = f(a)
line 2:
    1 | x = f(a) + f(a)
  > 2 | y = f(a)
to mean only line 1, column 5: count = 3 and nth = 1
to mean only line 1, column 12: count = 3 and nth = 2
to mean only line 2: anchor it with its whole line (and repeat in `replace` what is to stay):
find = '''
y = f(a)
'''
to mean all 3: count = 3"""
    )
    assert many(make("f(a)", "x = f(a) + f(a)\n", "match")).lines[-3:-1] == [
        "to mean only line 1, column 5: count = 2 and nth = 1",
        "to mean only line 1, column 12: count = 2 and nth = 2",
    ]
    assert many(make("f(a)", "x = f(a) + f(a)\n", key="after", settable=())).lines[-4:] == [
        "to mean only line 1, column 5: anchor it with more of its line (and repeat in `replace` what is to stay):",
        'after = "f(a) "',
        "to mean only line 1, column 12: anchor it with more of its line (and repeat in `replace` what is to stay):",
        'after = "+ f(a)"',
    ]


def test_every_place_that_is_shown_gets_a_remedy_of_its_own() -> None:
    text = "".join(f"a{number}\nb\nx = 1\n" for number in range(9))
    diagnosis = many(make("x = 1\n", text))
    remedies = [remedy for remedy in diagnosis.data["suggestions"] if "place" in remedy]
    assert [remedy["place"] for remedy in remedies] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [remedy.get("find") for remedy in remedies[:2]] == ["x = 1\na1\n", "x = 1\na2\n"]
    lines = shown(diagnosis).split("\n")
    assert len(lines) - lines.index("line 27") <= 40
    pair = many(make("x = 1\n", "a\nx = 1\nx = 1\nb\n"))
    texts = [remedy["find"] for remedy in pair.data["suggestions"] if "find" in remedy]
    assert len(texts) == len(set(texts))


def test_inside_tells_syntax_matches_apart() -> None:
    diagnosis = many(make("$L = $L.astype(jnp.float32)", kind="match", scope=SAMPLE))
    assert diagnosis.lines[-4:] == [
        'to mean only line 12: inside = "if metadata is None:"',
        "to mean only line 19: count = 3 and nth = 2",
        'to mean only line 21: inside = "if full_logits is not None:"',
        "to mean all 3: count = 3",
    ]


def test_only_settable_keys_are_proposed() -> None:
    problem = make("logits.astype(jnp.float32)", text="logits.astype(jnp.float32)\n" * 30, key="after", settable=())
    text = shown(many(problem))
    assert "nth" not in text
    assert "count" not in text
    assert "scope" not in text
    last = none(make("  x = 1\n", "    x = 1\n", key="after", settable=()))
    assert last.lines[1] == "after = '''"


def test_fewer_than_expected_shows_the_found_and_the_near() -> None:
    text = "def f():\n    x = run(1)\n    if x:\n        x = run(1)\n"
    diagnosis = many(make("    x = run(1)\n", text, expected="2"))
    assert (
        shown(diagnosis)
        == """\
line 2 in f:
    1 | def f():
  > 2 |     x = run(1)
    3 |     if x:
    4 |         x = run(1)
line 4 in f: the same text but for indentation (anchor: 4 spaces, file: 8 spaces); it stands there (matches once, expected 2) as:
find = '''
        x = run(1)
'''
to mean this one only: count = 1"""
    )


def test_a_scope_that_holds_as_many_as_expected() -> None:
    text = "def a():\n    x = 1\n    x = 1\n\n\ndef b():\n    x = 1\n"
    assert 'to mean 2 of them: scope = "a"' in many(make("x = 1", text, expected="2")).lines


def test_what_must_be_absent_has_no_remedy() -> None:
    diagnosis = many(make("bonus_logits", expected="0"))
    assert diagnosis.data["suggestions"] == []
    assert diagnosis.lines[0] == "line 17 in TPUModelRunner._sample_from_logits:"
