"""Reports in all their forms: the numbers of ``support.reports`` come out as they were typed."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import jsonschema
import pytest
from support.reports import FAILED, LADDER, REGRESSED, THROUGHPUT

from patchkit.bench.render.compare import compare
from patchkit.bench.render.exports import action_benchmark, bmf
from patchkit.bench.render.html import html
from patchkit.bench.render.jsonform import read_report, report_json, report_schema
from patchkit.bench.render.markdown import markdown
from patchkit.bench.render.terminal import terminal
from patchkit.bench.report import Report

ALL = pytest.mark.parametrize("report", [REGRESSED, LADDER, FAILED], ids=["regressed", "ladder", "failed"])
LABEL = "CPU simulation: says nothing of a TPU's speed"
EMPTY = {"area", "br", "col", "hr", "img", "input", "link", "meta", "circle", "line", "rect", "path"}


class Page(HTMLParser):
    """Every tag in order, and whether they nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in EMPTY:
            assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def classes(self, tag: str) -> list[str]:
        return [attrs.get("class") or "" for name, attrs in self.tags if name == tag]


def shown(report: Report, **options: Any) -> str:
    return "\n".join(line.text for line in terminal(report, **options))


@ALL
def test_json_reads_back_and_follows_its_schema(report: Report) -> None:
    values = json.loads(json.dumps(report_json(report)))
    jsonschema.Draft7Validator.check_schema(report_schema())
    jsonschema.Draft7Validator(report_schema()).validate(values)
    assert read_report(values) == report


@pytest.mark.parametrize("value", [[], {}, {"schema": 2}, {"schema": 1}, {**report_json(FAILED), "extra": 1}])
def test_what_is_no_report_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"schema|missing|unknown"):
        read_report(value)


def test_the_terminal_has_words_first_then_numbers() -> None:
    lines = shown(REGRESSED).split("\n")
    assert lines[0] == "REGRESSED: logits-greedy-naive made things worse"
    assert lines[2] == "  site: logits-greedy-naive was reverted; the baseline is back at 99.5 %"
    table = [" ".join(line.split()) for line in lines[4:9]]
    assert table[1] == "throughput, tokens/s 13,470 11,641 -24.7 % -40.0 .. -10.0 % >= -3.0 % regressed"
    assert table[2] == "ttft, ms 275 1,209 x4.40 x4.35 .. x4.46 <= +10.0 % regressed"
    assert table[3] == "itl, ms 31.2 31.5 +1.0 % - - -"
    assert table[4] == "kv_cache_tokens 415,872 415,872 +0.0 % - - -"
    text = "\n".join(lines)
    assert text.index("[FAILED]") < text.index("[not checked]") < text.index("[ok]")
    assert "published: TTFT 187 ms to 995 ms (x5.32); here x4.40" in text
    assert "baseline: at most 14.6 mJ per token (rated power), 40.4 M tokens per dollar" in text
    assert "7 runs (2 pairs, 2 discarded, 1 confirm), 22 min" in text


def test_advice_names_its_metric_in_every_form() -> None:
    point = REGRESSED.points[0]
    metrics = tuple(one._replace(advice=f"more pairs for {one.metric}") for one in point.metrics)
    report = REGRESSED._replace(points=(point._replace(metrics=metrics), *REGRESSED.points[1:]))
    for text in (shown(report), markdown(report).replace("\\", ""), html(report)):
        assert "TTFT: more pairs for ttft" in text
        assert "output throughput: more pairs for throughput" in text


def test_a_ladder_has_its_steps_and_the_label_stands_above_all_times() -> None:
    text = shown(LADDER)
    assert text.index(LABEL) < text.index("3,577")
    steps = [line.split()[-2] for line in text.split("output throughput by point")[1].split("\n")[2:6]]
    assert steps == ["-", "x1.89", "x1.43", "x2.01"]


def test_each_run_on_request() -> None:
    assert "11,900 tokens/s" not in shown(REGRESSED)
    assert re.search(r"2 +- +treatment +discarded +- +03:02:00 +62 s +11,900 tokens/s", shown(REGRESSED, details=True))


def test_markdown_shows_the_verdict_and_what_moved_and_folds_the_rest() -> None:
    text = markdown(REGRESSED)
    open_part = text.split("<details>")[0]
    assert text.startswith("### \N{CROSS MARK} REGRESSED: logits-greedy-naive made things worse")
    assert "| throughput, tokens/s | 13,470 | 11,641 |" in open_part
    assert "**FAILED** compilations" in open_part
    assert "itl" not in open_part
    assert text.count("<details>") == text.count("</details>") > 3


def test_markdown_of_a_hostile_reason_is_text() -> None:
    reason = next(line for line in markdown(FAILED).split("\n") if "ended with status" in line)
    assert reason == r"the engine ended with status 1 \<script\>alert('\|')\</script\> \& \`x\`"


def test_controls_and_overrides_of_others_are_shown_and_not_obeyed() -> None:
    report = FAILED._replace(reason="it said \x1b[31mred\x1b[0m \u202eback", recipe="a\x1bb")
    assert r"it said \\x1b\[31mred\\x1b\[0m \\u202eback" in markdown(report)
    for text in (markdown(report), html(report)):
        assert not {"\x1b", "\u202e"} & set(text)


@ALL
def test_html_is_whole_safe_and_needs_nothing_from_elsewhere(report: Report) -> None:
    text = html(report)
    page = Page(text)
    names = {name for name, _ in page.tags}
    assert not names & {"script", "link", "img", "iframe", "object"}
    assert not re.search(r"https?:|url\(|@import|on\w+=", text.split("<style>")[1].split("</style>")[0])
    assert [
        attrs for _, attrs in page.tags if any(key.startswith("on") or key in ("href", "src") for key in attrs)
    ] == []
    assert page.classes("header") == [report.verdict]
    assert (LABEL in page.text) == (report.label is not None)
    if report is FAILED:
        assert "<script>alert('|')</script> & `x`" in page.text


def test_html_draws_every_run_once_and_joins_the_pairs() -> None:
    page = Page(html(REGRESSED))
    by_throughput = [attrs for name, attrs in page.tags if name == "figure"]
    assert len(by_throughput) == 3  # ratios, and one for each metric with a gate
    dots = page.classes("circle") + page.classes("rect")
    legend = 3
    # 4 of the baseline, one of them discarded and one after the revert; 3 of the treatment; in two drawings.
    assert sum(dot.startswith(("baseline", "treatment")) for dot in dots) == 2 * 7 + legend
    assert sum("apart" in dot for dot in dots) == 2 * 3 + 1
    assert page.classes("line").count("join") == 2 * 2
    assert dots.count("forbidden") == 2
    assert dots.count("pair") == 4


def test_html_of_a_ladder_has_a_curve_for_each_arm() -> None:
    page = Page(html(LADDER))
    assert [look for look in page.classes("path") if "curve" in look] == ["baseline curve", "treatment curve"]


def test_bencher_has_values_and_bounds() -> None:
    found = bmf(REGRESSED)
    assert found["logits-greedy-naive/baseline"]["throughput (tokens/s)"] == {"value": 13470.0}
    treatment = found["logits-greedy-naive/treatment"]["throughput (tokens/s)"]
    # 13,470 times 0.6 and 0.9
    assert treatment == {"value": 11641.0, "lower_value": pytest.approx(8082), "upper_value": pytest.approx(12123)}
    ratio = {"value": 0.753, "lower_value": 0.6, "upper_value": 0.9}
    assert found["logits-greedy-naive/ratio"]["throughput"] == ratio


def test_github_action_takes_one_direction_a_file() -> None:
    higher, lower = (action_benchmark(REGRESSED, way) for way in ("higher", "lower"))
    assert [entry["name"].split(": ")[1] for entry in higher] == ["throughput", "kv_cache_tokens"]
    assert [entry["name"].split(": ")[1] for entry in lower] == ["itl", "ttft"]
    assert higher[0]["range"] == "\N{PLUS-MINUS SIGN}2020.5"  # half of 0.3 times 13,470
    assert {type(entry["value"]) for entry in higher + lower} == {float}


def test_sessions_are_compared_by_their_changes_and_what_differs_is_named() -> None:
    point = REGRESSED.points[0]
    slower = THROUGHPUT._replace(baseline=12991.0, treatment=12900.0, verdict="pass", kind="equal", tripped=False)
    later = REGRESSED._replace(
        started="2026-12-04T08:15:00+00:00",
        verdict="pass",
        kind="equal",
        points=(point._replace(metrics=(slower, *point.metrics[2:])),),
        versions={**REGRESSED.versions, "jax": "0.11.2"},
    )
    text = "\n".join(compare([later, REGRESSED]))
    assert text.index("2026-12-01 03:00") < text.index("2026-12-04 08:15")
    # 13,470 / 12,991 = 1.0369
    assert "the baselines themselves differ by up to 3.7 %" in text
    assert re.search(r"^jax +0\.10\.2 +0\.11\.2$", text, re.MULTILINE)
    assert not re.search(r"^vllm-tpu", text, re.MULTILINE)


def test_one_session_without_a_version_is_a_difference() -> None:
    text = "\n".join(compare([REGRESSED, REGRESSED._replace(started="2027", versions={"vllm-tpu": "0.24.0"})]))
    assert re.search(r"^jax +0\.10\.2 +-$", text, re.MULTILINE)
