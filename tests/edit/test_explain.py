"""An anchor that is nowhere, names that are not there, and the promise that a remedy matches."""

from __future__ import annotations

import ast
import tomllib
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

# The shape of tpu_inference/runner/tpu_runner.py around its sampling, line for line what matters to an anchor.
from support.explaining import RUNNER, SAMPLE, make, many, none, shown

from patchkit.edit import uniqueness
from patchkit.edit.explain import Diagnosis, Problem, explain_inside, explain_many, explain_none, explain_scope
from patchkit.edit.outline import Outline
from patchkit.edit.source import Source
from patchkit.edit.spans import Span
from patchkit.edit.text import find_text

# -- a: in the file, but not where it is searched ----------------------------------------------------------------------


def test_outside_the_scope() -> None:
    diagnosis = none(make("            logits = logits.astype(jnp.float32)\n", scope="TPUModelRunner.sample_tokens"))
    assert (
        shown(diagnosis)
        == """\
the anchor stands at line 12 in TPUModelRunner._sample_from_logits, outside the scope TPUModelRunner.sample_tokens
  set scope = "TPUModelRunner._sample_from_logits\""""
    )
    assert diagnosis.data["suggestions"] == [{"scope": SAMPLE}]
    assert diagnosis.data["outside"] == [
        {"line": 12, "column": 1, "scope": SAMPLE, "text": "logits = logits.astype(jnp.float32)"}
    ]


def test_outside_the_scope_at_module_level() -> None:
    diagnosis = none(make("import jax.numpy as jnp\n", scope="warm_up"))
    assert (
        shown(diagnosis)
        == """\
the anchor stands at line 1, outside the scope warm_up
  leave out `scope`"""
    )
    assert diagnosis.data["suggestions"] == [{"scope": None}]


def test_a_scope_where_it_stands_twice_is_not_a_remedy() -> None:
    diagnosis = none(make("logits = logits.astype(jnp.float32)", scope="warm_up"))
    assert "set scope" not in shown(diagnosis)
    assert diagnosis.data["suggestions"] == []
    assert [place["line"] for place in diagnosis.data["outside"]] == [12, 19]


def test_partly_within_the_scope() -> None:
    diagnosis = none(make("        return logits\n\n\ndef warm_up(runner):\n", scope=SAMPLE))
    assert (
        shown(diagnosis)
        == """\
the anchor stands at line 22 in TPUModelRunner._sample_from_logits, but only partly within the scope TPUModelRunner._sample_from_logits
  leave out `scope`"""
    )


def test_outside_inside_but_in_the_scope() -> None:
    diagnosis = none(make("bonus_logits = logits[metadata.bonus]", scope=SAMPLE, inside="if metadata is None: ..."))
    assert (
        shown(diagnosis)
        == """\
the anchor stands at line 17 in TPUModelRunner._sample_from_logits, outside `if metadata is None: ...`
  set inside = "else:\""""
    )
    assert diagnosis.data["suggestions"] == [{"inside": "else:"}]


def test_on_the_wrong_side_of_after_or_before() -> None:
    anchor = "        return logits\n"
    start = RUNNER.index("\n        logits = logits.astype") + 1
    above = none(make(anchor, regions=[Span(0, start)]))
    assert shown(above) == (
        "the anchor stands at line 22 in TPUModelRunner._sample_from_logits, "
        "below lines 1-18, which is what `after` and `before` leave to search"
    )
    assert above.data["suggestions"] == []
    nothing = none(make(anchor, regions=[]))
    assert shown(nothing).endswith("but `after` and `before` leave nothing to search")


# -- b: the same text in another form ----------------------------------------------------------------------------------


def test_other_indentation() -> None:
    diagnosis = none(make("    return logits\n"))
    assert (
        shown(diagnosis)
        == """\
line 22 in TPUModelRunner._sample_from_logits: the same text but for indentation (anchor: 4 spaces, file: 8 spaces); write:
find = '''
        return logits
'''"""
    )
    assert diagnosis.data["forms"] == [{"kind": "indentation", "line": 22, "find": "        return logits\n"}]
    assert diagnosis.data["suggestions"] == [{"find": "        return logits\n"}]
    assert diagnosis.data["candidates"] == []


def test_tabs_are_shown_as_escapes() -> None:
    diagnosis = none(make("    x = 1\n", "def f():\n\tx = 1\n"))
    assert (
        shown(diagnosis)
        == '''\
line 2 in f: the same text but for indentation (anchor: 4 spaces, file: 1 tab); write:
find = """
\\tx = 1
"""'''
    )
    assert tomllib.loads("\n".join(diagnosis.lines[1:])) == {"find": "\tx = 1\n"}


def test_the_final_line_break_of_the_file() -> None:
    assert (
        shown(none(make("y = 2\n", "x = 1\ny = 2")))
        == """\
line 2: the same text but for final line break (the file's last line has none); write:
find = "y = 2\""""
    )


def test_a_whole_line_anchor_in_the_middle_of_a_line() -> None:
    assert (
        shown(none(make("logits.reshape(-1)\n", "x = logits.reshape(-1)\n")))
        == """\
line 1: the anchor ends in a line break, so it must begin where a line does; here `x =` is before it; write:
find = '''
x = logits.reshape(-1)
'''"""
    )


def test_escapes_in_a_literal_string() -> None:
    assert (
        shown(none(make("x = 1\\ny = 2", "x = 1\ny = 2\n")))
        == """\
line 1: the anchor spells out \\n, \\t or a backslash, which TOML does not read in '...' and '''...'''; write:
find = '''
x = 1
y = 2'''"""
    )


def test_a_form_that_matches_too_often_is_shown_but_is_no_remedy() -> None:
    diagnosis = none(make("x = f('a')", 'x = f("a")\ny = 1\nx = f("a")\n'))
    assert (
        shown(diagnosis)
        == """\
line 1: the same text but for quotes; it stands there (matches twice, expected 1) as:
find = 'x = f("a")'"""
    )
    assert diagnosis.data["suggestions"] == []


def test_a_form_outside_the_scope_comes_with_its_scope() -> None:
    diagnosis = none(make("  runner.sample_tokens(None)\n", scope=SAMPLE))
    assert (
        shown(diagnosis)
        == """\
line 26 in warm_up (outside of where it is searched): the same text but for indentation (anchor: 2 spaces, file: 4 spaces); write:
scope = "warm_up"
find = '''
    runner.sample_tokens(None)
'''"""
    )
    assert diagnosis.data["suggestions"] == [{"find": "    runner.sample_tokens(None)\n", "scope": "warm_up"}]


# -- c to f ------------------------------------------------------------------------------------------------------------


def test_other_formatting() -> None:
    diagnosis = none(make("next_tokens, processed_logits = sample(self.rng, self.mesh, logits)\n"))
    assert (
        shown(diagnosis)
        == """\
line 14 in TPUModelRunner._sample_from_logits: the same code in other formatting; it stands there as:
find = '''
                next_tokens, processed_logits = sample(
                    self.rng, self.mesh, logits)
'''
or, for any formatting, as a syntax edit instead of `find`:
match = "next_tokens, processed_logits = sample(self.rng, self.mesh, logits)\""""
    )
    assert [form["kind"] for form in diagnosis.data["forms"]] == ["formatting"]


def test_other_files() -> None:
    diagnosis = none(
        make("tokens = gather(tokens)\n", "x = 1\n"),
        ("pkg/a.py", b"\n\ntokens = gather(tokens)\n"),
        ("pkg/b.py", b"nothing"),
    )
    assert (
        shown(diagnosis)
        == """\
the anchor stands in another file: pkg/a.py:3
  if the code has moved, change `file` (and `scope`)"""
    )
    assert diagnosis.data["elsewhere"] == [{"path": "pkg/a.py", "line": 3, "whole": True}]


def test_a_search_that_ran_out_of_its_budget_says_so() -> None:
    files = [("a.py", b" " * 2_000_000), ("b.py", b" " * 2_000_000)]
    diagnosis = explain_none(make("zzzz = 1", "x = 1\n"), siblings=lambda: iter(files), budget=3_000_000)
    assert "only the first 3 MB of the other files were searched" in shown(diagnosis)


def test_the_nearest_candidates() -> None:
    anchor = """\
            logits = logits.astype(jnp.float32)
            with self.forbid_compile:
                next_tokens, processed = sample(
"""
    diagnosis = none(make(anchor, scope=SAMPLE))
    # Blanks squeezed, 94 and 107 characters; all of the first are in the second: 2 * 94 / 201.
    assert (
        shown(diagnosis)
        == """\
93 % alike: lines 12-14 in TPUModelRunner._sample_from_logits (- the anchor, + the file)
               logits = logits.astype(jnp.float32)
  -            with self.forbid_compile:
  -                next_tokens, processed = sample(
  +            with self.maybe_forbid_compile:
  +                next_tokens, processed_logits = sample("""
    )
    assert [(c["line"], c["similarity"], c["scope"]) for c in diagnosis.data["candidates"]] == [(12, 93, SAMPLE)]


def test_nothing_alike_and_other_versions() -> None:
    diagnosis = none(make("zorble = quux()\n"), versions=(">=0.25", ">=0.30"))
    assert (
        shown(diagnosis)
        == """\
nothing in the file is like the anchor
the patch has other edits for: >=0.25, >=0.30"""
    )
    assert diagnosis.data["other_versions"] == [">=0.25", ">=0.30"]


def test_a_file_that_does_not_parse() -> None:
    assert (
        shown(none(make("  x = run(1)\n", "def f(:\n    x = run(1)\n")))
        == """\
line 2: the same text but for indentation (anchor: 2 spaces, file: 4 spaces); write:
find = '''
    x = run(1)
'''"""
    )


def test_a_syntax_pattern() -> None:
    diagnosis = none(make("$L = $L.astype(jnp.float16)", kind="match", scope=SAMPLE))
    assert diagnosis.lines[:3] == [
        "90 % alike: line 12 in TPUModelRunner._sample_from_logits (- the anchor, + the file)",
        "  -$L = $L.astype(jnp.float16)",
        "  +logits = logits.astype(jnp.float32)",
    ]
    assert [c["line"] for c in diagnosis.data["candidates"]] == [12, 19, 21]


def test_a_syntax_pattern_in_a_string_or_a_comment() -> None:
    text = 'z = """\nu3()\n"""\ndef f():\n    # see u3(1)\n    pass\n'
    diagnosis = none(make("u3()", text, "match"))
    assert (
        shown(diagnosis)
        == """\
it stands at line 2, in a string, where a syntax pattern does not look
  to edit it there, write a text edit, without `match`:
find = "u3()\""""
    )
    assert diagnosis.data["literals"] == [{"kind": "string", "line": 2, "scope": ""}]
    assert diagnosis.data["suggestions"] == [{"find": "u3()"}]
    assert none(make("u3($X)", text, "match", scope="f")).lines[0] == (
        "it stands at line 5 in f, in a comment, where a syntax pattern does not look"
    )
    neighbour = none(make("u3()", text, "match", key="after", settable=()))
    assert neighbour.lines == ["it stands at line 2, in a string, where a syntax pattern does not look"]
    assert none(make("u3()", "u = 3\n", "match")).lines == ["nothing in the file is like the anchor"]


def test_what_is_quoted_cannot_drive_a_terminal() -> None:
    text = "def f():\n    name = fetch('\x1b[2J\u202e', 1)\n"
    diagnosis = none(make("    name = fetch('\x1b[2J\u202e', 2)\n", text))
    assert "\\x1b[2J\\u202e" in shown(diagnosis)
    assert shown(many(make("'", text.replace("1", "'"))))


# -- names and headers -------------------------------------------------------------------------------------------------


def outline(text: str = RUNNER) -> Outline:
    return Outline(Source(text.encode(), path="pkg/runner.py"), ast.parse(text))


@pytest.mark.parametrize(
    ("scope", "lines"),
    [
        ("sample_tokens", ['did you mean "TPUModelRunner.sample_tokens" (line 6)?']),
        ("pkg.runner.TPUModelRunner.sample_tokens", ['did you mean "TPUModelRunner.sample_tokens" (line 6)?']),
        ("sampler", ["sampler is imported at line 2 from vllm.sample: patch the file that defines it"]),
        (
            "TPUModelRunner.zzz",
            ["TPUModelRunner (line 5) defines: sample_tokens, _sample_from_logits"],
        ),
        ("zzz", ["the file defines: TPUModelRunner, TPUModelRunner.sample_tokens, " + SAMPLE + ", warm_up"]),
    ],
)
def test_explain_scope(scope: str, lines: list[str]) -> None:
    diagnosis = explain_scope(outline(), scope)
    assert diagnosis.lines[: len(lines)] == lines
    assert all(outline().scopes(suggestion["scope"]) for suggestion in diagnosis.data["suggestions"])


def test_explain_scope_of_a_file_without_definitions() -> None:
    assert explain_scope(outline("sample = 1\n"), "sample").lines == [
        "sample is assigned at line 1; a scope must be a def or a class",
        "the file has no def and no class: leave out `scope`",
    ]


def test_explain_inside() -> None:
    diagnosis = explain_inside(outline(), "if metadata is not None: ...")
    assert diagnosis.lines[:2] == ["the nearest headers:", '  line 11: inside = "if metadata is None:"']
    assert diagnosis.data["suggestions"][0] == {"inside": "if metadata is None:", "line": 11}


def test_explain_inside_elsewhere() -> None:
    other = outline()
    diagnosis = explain_inside(other, "if full_logits is not None", regions=other.scopes("warm_up"))
    assert diagnosis.lines == ["it stands at line 20 in TPUModelRunner._sample_from_logits"]
    nothing = explain_inside(other, "while True", regions=other.scopes("TPUModelRunner.sample_tokens"))
    assert nothing.lines == ["no header is like it; there are: with jax.set_mesh(self.mesh): (line 7)"]


# -- the promise: a remedy matches -------------------------------------------------------------------------------------


def regions_after(problem: Problem, remedy: dict[str, Any]) -> list[Span]:
    return uniqueness.regions_of(problem, remedy.get("scope", problem.scope), remedy.get("inside", problem.inside))


def check_remedies(problem: Problem, diagnosis: Diagnosis) -> None:
    """Do what each suggestion says, with nothing but the matching functions, and count."""
    for remedy in diagnosis.data["suggestions"]:
        if "match" in remedy:
            from patchkit.edit.matcher import find_pattern
            from patchkit.edit.pattern import compile_pattern

            assert problem.outline is not None
            pattern = compile_pattern(remedy["match"], problem.parse)
            count = len(find_pattern(problem.outline, pattern, problem.regions))
            assert uniqueness.accepts(problem.expected, count), remedy
        elif "find" in remedy:
            moved = "scope" in remedy or "inside" in remedy
            regions = regions_after(problem, remedy) if moved else problem.regions
            found = find_text(problem.source, remedy["find"], regions)
            assert uniqueness.accepts(problem.expected, len(found)), remedy
            literal = uniqueness.toml_string(remedy["find"])
            assert literal is None or tomllib.loads(f"x = {literal}") == {"x": remedy["find"]}
        elif "count" in remedy:
            count = len(uniqueness.hits(problem, problem.regions))
            assert count == remedy["count"], remedy
            assert 1 <= remedy.get("nth", 1) <= count
        else:
            count = len(uniqueness.hits(problem, regions_after(problem, remedy)))
            assert uniqueness.accepts(problem.expected, count), remedy


LINES = st.sampled_from(
    [
        *("x = f(1)", "x = f( 1 )", "x = f(1)  ", "X = f(1)", "x = 'a'", 'x = "a"'),
        *("if x:\n    x = f(1)", "y = x", "# note", ""),
    ]
)


@st.composite
def files(draw: st.DrawFn) -> str:
    out = []
    for name in draw(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=4)):
        body = draw(st.lists(LINES, min_size=1, max_size=4))
        unit = draw(st.sampled_from(["  ", "    ", "\t"]))
        block = "\n".join([*body, "pass"]).replace("    x", unit + "x")
        out.append(f"def {name}():\n" + "\n".join(unit + line if line else line for line in block.split("\n")))
        out += draw(st.lists(LINES, max_size=2))
    return "\n".join(out) + draw(st.sampled_from(["\n", ""]))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_every_remedy_matches_as_often_as_expected(data: st.DataObject) -> None:
    text = data.draw(files())
    start = data.draw(st.integers(0, max(0, len(text) - 1)))
    piece = text[start : start + data.draw(st.integers(1, 40))]
    line = data.draw(LINES)
    anchor = data.draw(
        st.sampled_from(
            [
                *(piece, piece.swapcase(), piece.lstrip() + "\n", piece.replace("1", "2")),
                *(piece.replace("'", '"'), piece.replace(" ", "\t"), piece.replace("\n", "\\n")),
                *(line, line + "\n", "  " + line + "\n"),
            ]
        )
    )
    scope = data.draw(st.sampled_from([None, "a", "b"]))
    expected = data.draw(st.sampled_from(["1", "2", "3", "1+"]))
    if not anchor.strip():
        return
    problem = make(anchor, text, scope=scope, expected=expected)
    if scope is not None and not problem.regions:
        return
    if data.draw(st.booleans()) and problem.regions:
        first = problem.regions[0]
        problem = problem._replace(regions=[Span((first.start + first.end) // 2, first.end), *problem.regions[1:]])
    found = uniqueness.hits(problem, problem.regions)
    if uniqueness.accepts(expected, len(found)):
        return
    if found:
        diagnosis = explain_many(problem, found)
        # A count of what is there is the one remedy that changes what is expected.
        assert diagnosis.data["suggestions"][-1] == {"count": len(found)}
    else:
        diagnosis = explain_none(problem, siblings=lambda: ())
    shown(diagnosis)
    check_remedies(problem, diagnosis)
