"""``report.md``: the verdict first, what did not move folded away; for a pull request or a job's summary."""

from __future__ import annotations

import re

from patchkit.bench.render.terminal import ladder, row, runs
from patchkit.bench.render.words import (
    MARKS,
    costs_text,
    figures_text,
    headline,
    runs_text,
    shown_metrics,
    title,
)
from patchkit.bench.report import PointResult, Report
from patchkit.visible import visible

#: Shape as well as colour: these differ for those who see no colours, too.
_SIGNS = {
    "pass": "\N{WHITE HEAVY CHECK MARK}",
    "regressed": "\N{CROSS MARK}",
    "inconclusive": "\N{WHITE QUESTION MARK ORNAMENT}",
    "invalid": "\N{NO ENTRY}",
    "error": "\N{NO ENTRY}",
}


def escape(text: str) -> str:
    """``text`` as Markdown shows it letter by letter, within a line or a table's cell."""
    return re.sub(r"([\\`*_{}\[\]<>#|~&@])", r"\\\1", visible(" ".join(text.split())))


def markdown(report: Report) -> str:
    """The report as GitHub Flavored Markdown."""
    lines = [f"### {_SIGNS[report.verdict]} {escape(headline(report))}", ""]
    if report.reason:
        lines += [escape(report.reason), ""]
    lines += [f"Site: {escape(report.aftermath.text)}", ""]
    if report.label:
        lines += [f"> **Every time below: {escape(report.label)}**", ""]
    for point in report.points:
        lines += _point(point)
    if len(report.points) > 1:
        lines += _folded("By point", _block(ladder(report)))
    lines += _folded(f"Runs: {runs_text(report)}", _block(runs(report)))
    facts = [f"recipe {report.recipe} ({report.digest[:12]})", f"engine {report.engine}", f"started {report.started}"]
    facts += [f"patch {one.name} ({one.digest[:12]}) for {one.distribution} {one.version}" for one in report.patches]
    facts += [f"{name} {version}" for name, version in report.versions.items()]
    facts += [f"{name}: {value}" for name, value in report.machine.items()]
    facts += [f"note: {note}" for note in report.notes]
    lines += _folded("Inputs", [f"- {escape(fact)}" for fact in facts])
    if report.trace:
        lines += _folded("Operations that moved between the traces", _block(trace_lines(report)))
    return "\n".join(lines).rstrip() + "\n"


def _point(point: PointResult) -> list[str]:
    lines = []
    if point.label:
        lines += [f"#### {_SIGNS[point.verdict]} {escape(point.label)}: {point.kind or point.verdict}", ""]
        if point.reason:
            lines += [escape(point.reason), ""]
    shown = shown_metrics(point)
    gated = [result for result in shown if result.gate is not None]
    if gated:
        lines += [*_table([row(result) for result in gated]), ""]
    lines += [f"- {escape(title(result.metric))}: {escape(result.advice)}" for result in shown if result.advice]
    if point.touch:
        lines.append(f"- First touch: {escape(point.touch)}")
    lines += [f"- **{MARKS[check.state]}** {escape(check.name)}: {escape(check.text)}" for check in _not_held(point)]
    if lines and lines[-1]:
        lines.append("")
    rest = [result for result in shown if result.gate is None]
    if rest:
        lines += _folded("Metrics without a gate", _table([row(result) for result in rest]))
    held = [check for check in point.checks if check.state == "held"]
    if held:
        lines += _folded(
            f"{len(held)} {'check' if len(held) == 1 else 'checks'} of validity held",
            [f"- {escape(check.name)}: {escape(check.text)}" for check in held],
        )
    more = [f"- published: {escape(text)}" for text in figures_text(point)]
    more += [f"- cost, {escape(text)}" for text in costs_text(point)]
    if more:
        lines += _folded("Published figures and cost", more)
    return lines


def _not_held(point: PointResult) -> list:  # type: ignore[type-arg]
    return sorted((check for check in point.checks if check.state != "held"), key=lambda check: check.state)


def _table(rows: list[list[str]]) -> list[str]:
    return [
        "| metric | baseline | treatment | change | interval | gate | verdict |",
        "|---|--:|--:|--:|--:|--:|---|",
        *("| " + " | ".join(escape(cell) for cell in cells) + " |" for cells in rows),
    ]


def _block(lines: list[str]) -> list[str]:
    """Lines as they stand; a fence longer than any in them."""
    longest = max((len(found) for line in lines for found in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence + "text", *lines, fence]


def _folded(summary: str, body: list[str]) -> list[str]:
    text = summary.replace("&", "&amp;").replace("<", "&lt;")
    return [f"<details><summary>{text}</summary>", "", *body, "", "</details>", ""]


def trace_lines(report: Report) -> list[str]:
    """The rows of what moved between the traces, aligned."""
    from patchkit.bench.render.words import columns

    keys = list(dict.fromkeys(key for one in report.trace for key in one))
    return columns([keys, *([str(one.get(key, "")) for key in keys] for one in report.trace)])
