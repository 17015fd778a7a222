from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Literal

import pytest

from patchkit.edit import nearmiss
from patchkit.edit.explain import Problem
from patchkit.edit.outline import Outline
from patchkit.edit.source import Source
from patchkit.edit.spans import Span

SOURCE = """\
class Runner:
    def sample(self, logits, metadata):
        if metadata is None:
            logits = logits.astype(jnp.float32)
            with self.forbid_compile:
                tokens, processed = sample(
                    logits, metadata)
        return tokens

    def other(self, logits):
        hidden = self.model(logits)
        return hidden.reshape(-1)
"""


def make(text: str, anchor: str, kind: Literal["find", "match"] = "find", *, scope: str | None = None) -> Problem:
    source = Source(text.encode(), path="pkg/m.py")
    try:
        outline = Outline(source, ast.parse(text))
    except SyntaxError:
        outline = None
    regions = [Span(0, len(text))]
    if scope is not None:
        assert outline is not None
        regions = outline.scopes(scope)
    pattern = None
    if kind == "match":
        from patchkit.edit.pattern import compile_pattern

        pattern = compile_pattern(anchor, ast.parse)
    return Problem(source, outline, anchor, kind, scope, None, regions, "1", pattern, ast.parse)


def test_one_altered_line() -> None:
    (best,) = nearmiss.nearest(make(SOURCE, "            logits = logits.astype(jnp.float16)\n"))
    assert (best.first, best.last, best.within) == (4, 4, True)
    # 35 characters each (blanks squeezed), 33 of them in common: 2 * 33 / 70.
    assert best.similarity == pytest.approx(66 / 70)
    assert best.diff == [
        "-            logits = logits.astype(jnp.float16)",
        "+            logits = logits.astype(jnp.float32)",
    ]


def test_several_altered_lines_with_one_line_of_context() -> None:
    anchor = """\
            logits = logits.astype(jnp.float32)
            with self.maybe_forbid_compile:
                tokens, processed = sample(
                    logits, metadata)
"""
    (best,) = nearmiss.nearest(make(SOURCE, anchor))
    assert (best.first, best.last) == (4, 7)
    assert best.diff == [
        "             logits = logits.astype(jnp.float32)",
        "-            with self.maybe_forbid_compile:",
        "+            with self.forbid_compile:",
        "                 tokens, processed = sample(",
    ]


def test_a_line_that_the_file_has_more() -> None:
    anchor = """\
        if metadata is None:
            with self.forbid_compile:
                tokens, processed = sample(
"""
    best = nearmiss.nearest(make(SOURCE, anchor))[0]
    assert (best.first, best.last) == (3, 6)
    assert best.diff == [
        "         if metadata is None:",
        "+            logits = logits.astype(jnp.float32)",
        "             with self.forbid_compile:",
    ]


def test_a_part_of_a_line_is_compared_with_parts() -> None:
    (best,) = nearmiss.nearest(make(SOURCE, "logits.astype(jnp.float16)"))
    assert best.first == 4
    assert best.similarity == pytest.approx(48 / 52)
    assert best.diff == ["-logits.astype(jnp.float16)", "+logits = logits.astype(jnp.float32)"]


def test_the_regions_come_first_then_the_rest_of_the_file() -> None:
    (best,) = nearmiss.nearest(make(SOURCE, "logits = logits.astype(jnp.float16)", scope="Runner.other"))
    assert (best.first, best.within) == (4, False)
    (best,) = nearmiss.nearest(make(SOURCE, "hidden = self.modle(logits)", scope="Runner.other"))
    assert (best.first, best.within) == (11, True)


def test_a_misspelt_word_alone_is_found() -> None:
    assert [c.first for c in nearmiss.nearest(make(SOURCE, "forbid_compiles\n"))] == [5]
    (best,) = nearmiss.nearest(make("def f():\n    finish_everything()\n", "    finish_everythign()\n"))
    assert best.first == 2


def test_places_that_were_found_are_left_out() -> None:
    text = "a = compute(1)\nb = 3\na = compute(2)\n"
    found = nearmiss.nearest(make(text, "a = compute(1)\n"), exclude=[Span(0, 15)])
    assert [c.first for c in found] == [3]


@pytest.mark.parametrize("anchor", ["zorble = quux(12345)\n", ")\n", "+ - *"])
def test_nothing_like_it(anchor: str) -> None:
    assert nearmiss.nearest(make(SOURCE, anchor)) == []


def test_at_most_three_and_best_first() -> None:
    text = "".join(f"value_{n} = compute(first, second, {n})\n" for n in range(20)) + "value = compute(first, third)\n"
    found = nearmiss.nearest(make(text, "value = compute(first, second)\n"))
    assert len(found) == 3
    assert [c.similarity for c in found] == sorted((c.similarity for c in found), reverse=True)


def test_long_diffs_are_cut_and_escaped() -> None:
    lines = [f"alpha_{n} = beta_{n}(gamma_{n})" for n in range(30)]
    text = "\n".join(lines) + "\n"
    anchor = "\n".join(line.replace("gamma", "gama\x1b") if n % 3 == 0 else line for n, line in enumerate(lines)) + "\n"
    (best,) = nearmiss.nearest(make(text, anchor))
    assert len(best.diff) == 12
    assert best.diff[-1].startswith(" ... (")
    assert best.diff[0] == "-alpha_0 = beta_0(gama\\x1b_0)"
    assert all(line.isprintable() for line in best.diff)


def test_a_file_that_does_not_parse_has_near_misses_too() -> None:
    (best,) = nearmiss.nearest(make("def f(:\n    hidden = run(logits)\n", "    hidden = ran(logits)\n"))
    assert best.first == 2


def test_metavariables_stand_for_anything_in_the_score() -> None:
    (best, *_) = nearmiss.nearest(make(SOURCE, "$L = $L.astype(jnp.float16)", "match"))
    assert best.first == 4
    assert best.similarity > 0.85
    assert best.diff == ["-$L = $L.astype(jnp.float16)", "+logits = logits.astype(jnp.float32)"]


def test_a_pattern_is_compared_with_statements_over_several_lines() -> None:
    (best, *_) = nearmiss.nearest(make(SOURCE, "$T, $P = sampled($$$ARGS)", "match"))
    assert (best.first, best.last) == (6, 7)


def siblings(*files: tuple[str, bytes]) -> Iterator[tuple[str, bytes]]:
    yield from files


def test_other_files_with_the_anchor() -> None:
    problem = make(SOURCE, "total = run(first_argument)\n")
    found, complete = nearmiss.elsewhere(
        problem,
        siblings(
            ("pkg/m.py", b"total = run(first_argument)\n"),
            ("pkg/a.py", b"x\ntotal = run(first_argument)\n"),
            ("pkg/b.py", b"x\r\ny\r\ntotal = run(first_argument)\r\n"),
            ("pkg/c.py", b"    total = run(first_argument)\n"),
            ("pkg/d.py", b"\xff\xfe"),
        ),
        10_000,
    )
    assert found == [nearmiss.Elsewhere("pkg/a.py", 2, True), nearmiss.Elsewhere("pkg/b.py", 3, True)]
    assert complete


def test_the_longest_line_alone_where_no_file_has_all() -> None:
    problem = make(SOURCE, "if x:\n    total = run(first_argument)\n")
    found, _ = nearmiss.elsewhere(problem, siblings(("c.py", b"y\n\n        total = run(first_argument)\n")), 10_000)
    assert found == [nearmiss.Elsewhere("c.py", 3, False)]


def test_the_search_stops_at_the_budget_and_reads_no_further() -> None:
    read: list[str] = []

    def files() -> Iterator[tuple[str, bytes]]:
        for name in ("a.py", "b.py", "c.py", "d.py"):
            read.append(name)
            yield name, b"x" * 100

    assert nearmiss.elsewhere(make(SOURCE, "total = run()"), files(), 250) == ([], False)
    assert read == ["a.py", "b.py", "c.py"]


def test_the_search_stops_at_five_files() -> None:
    read: list[int] = []

    def files() -> Iterator[tuple[str, bytes]]:
        for number in range(20):
            read.append(number)
            yield f"{number}.py", b"total = run()\n"

    found, _ = nearmiss.elsewhere(make(SOURCE, "total = run()"), files(), 10_000)
    assert [place.path for place in found] == ["0.py", "1.py", "2.py", "3.py", "4.py"]
    assert read == [0, 1, 2, 3, 4]


def test_a_pattern_in_another_file_is_proved_by_matching_it() -> None:
    problem = make(SOURCE, "$X = $X.astype(jnp.int8)", "match")
    found, _ = nearmiss.elsewhere(
        problem,
        siblings(
            ("a.py", b"# .astype(jnp.int8)\n"),
            ("b.py", b"\nx = x.astype(jnp.int8)\n"),
            ("broken.py", b"def (.astype(jnp.int8)\n"),
        ),
        10_000,
    )
    assert found == [nearmiss.Elsewhere("b.py", 2, True)]


def test_scopes_spelled_like_it() -> None:
    outline = make(SOURCE, "x").outline
    assert outline is not None
    assert nearmiss.near_scopes(outline, "sample") == ["Runner.sample"]
    assert nearmiss.near_scopes(outline, "Runner.smaple")[0] == "Runner.sample"
    assert nearmiss.near_scopes(outline, "pkg.m.Runner.other")[0] == "Runner.other"
    assert nearmiss.near_scopes(outline, "runner.OTHER")[0] == "Runner.other"
    assert nearmiss.near_scopes(outline, "Zzz") == []


def test_headers_spelled_like_it_are_proved() -> None:
    outline = make(SOURCE, "x").outline
    assert outline is not None
    region = outline.scopes("Runner.sample")
    near = nearmiss.near_headers(outline, "if metadata is not None:", region, ast.parse)
    assert [(header.text, header.line) for header in near] == [("if metadata is None:", 3)]
    assert nearmiss.near_headers(outline, "if metadata is not None:", outline.scopes("Runner.other"), ast.parse) == []
