"""The report on a terminal: plain words first, then a line for each metric, the checks, and what to do next."""

from __future__ import annotations

from patchkit.bench.render.words import (
    MARKS,
    amount,
    change,
    clock,
    columns,
    costs_text,
    figures_text,
    headline,
    limit,
    number,
    runs_text,
    shown_metrics,
    span,
    title,
    verdict_of,
)
from patchkit.bench.report import MetricResult, PointResult, Report
from patchkit.tuples import NamedTuple


class Line(NamedTuple):
    """One line of output. ``table``: it is aligned, and must not be wrapped; else what is wrapped is indented."""

    text: str
    style: str | None = None
    hanging: int = 2
    table: bool = False


STYLES = {"pass": "green", "regressed": "red", "inconclusive": "yellow", "invalid": "red", "error": "red"}
_CHECKS = {"failed": "red", "noted": "yellow", "not-checked": "yellow", "held": None}
_HEADER = ["metric", "baseline", "treatment", "change", "interval", "gate", "verdict"]


def terminal(report: Report, *, details: bool = False) -> list[Line]:
    """The lines of a report; with ``details`` each run too."""
    lines = [Line(headline(report), STYLES[report.verdict])]
    if report.reason:
        lines.append(Line(f"  {report.reason}"))
    lines.append(Line(f"  site: {report.aftermath.text}", hanging=4))
    if report.label:
        lines.append(Line(f"  every time below: {report.label}", "yellow", 4))
    for point in report.points:
        lines += [Line(""), *_point(point)]
    if len(report.points) > 1:
        lines += [Line(""), *_table(ladder(report))]
    lines += [Line(""), Line(f"{runs_text(report)}; kept in {report.folder}")]
    if report.source and any(result.figure for point in report.points for result in point.metrics):
        lines.append(Line(f"published figures: {report.source}"))
    lines += [Line(f"note: {note}", hanging=6) for note in report.notes]
    if details:
        lines += [Line(""), *_table(runs(report))]
    return lines


def _table(lines: list[str]) -> list[Line]:
    return [Line(line, "dim" if number == 0 else None, table=True) for number, line in enumerate(lines)]


def _point(point: PointResult) -> list[Line]:
    lines: list[Line] = []
    if point.label:
        lines.append(Line(f"{point.label}: {point.kind or point.verdict}", STYLES[point.verdict]))
        if point.reason:
            lines.append(Line(f"  {point.reason}"))
    if point.metrics:
        shown = shown_metrics(point)
        # The unit stands once, in the first column: seven columns must fit into 80 letters.
        head, *rest = columns([_HEADER, *(row(result) for result in shown)], right=(1, 2, 3, 4, 5))
        lines.append(Line(head, "dim", table=True))
        for result, line in zip(shown, rest, strict=True):
            lines.append(Line(line, STYLES[result.verdict] if result.verdict else None, table=True))
    lines += [Line(f"  {title(result.metric)}: {result.advice}") for result in point.metrics if result.advice]
    if point.touch:
        lines.append(Line(f"  first touch: {point.touch}", hanging=4))
    for check in sorted(point.checks, key=lambda check: list(_CHECKS).index(check.state)):
        text = f"  [{MARKS[check.state]}] {check.name}: {check.text}"
        lines.append(Line(text, _CHECKS[check.state], 6))
    lines += [Line(f"  published: {text}", hanging=4) for text in figures_text(point)]
    lines += [Line(f"  cost, {text}", hanging=4) for text in costs_text(point)]
    return lines


def row(result: MetricResult) -> list[str]:
    """A metric as cells: its name and unit, both values, change, interval, gate, verdict."""
    unit, factor = result.unit, 1.0
    values = [value for value in (result.baseline, result.treatment) if value is not None]
    if unit == "s" and values and all(abs(value) < 10 for value in values):
        unit, factor = "ms", 1000.0
    cells = ["-" if value is None else number(value * factor) for value in (result.baseline, result.treatment)]
    gate = limit(result.gate, result.unit)
    name = result.metric if unit in ("", *result.metric.split("_")) else f"{result.metric}, {unit}"
    return [name, *cells, change(result), span(result), gate, verdict_of(result)]


def ladder(report: Report) -> list[str]:
    """Points of a ladder below each other: the first gated metric, or throughput, of each."""
    metrics = dict.fromkeys(result.metric for point in report.points for result in shown_metrics(point))
    if not metrics:
        return []
    metric = next((name for name in metrics if name == "throughput"), next(iter(metrics)))
    table = [["point", "baseline", "treatment", "change", "step", "verdict"]]
    before: float | None = None
    for point in report.points:
        result = next((one for one in point.metrics if one.metric == metric), None)
        if result is None:
            table.append([point.label, "-", "-", "-", "-", point.verdict])
            continue
        step = "-" if not before or result.treatment is None else f"x{result.treatment / before:.2f}"
        before = result.treatment
        cells = [amount(value, result.unit) for value in (result.baseline, result.treatment)]
        table.append([point.label, *cells, change(result), step, point.kind or point.verdict])
    return [f"{title(metric)} by point (step: treatment against the point before)", *columns(table, right=(1, 2, 3, 4))]


def runs(report: Report) -> list[str]:
    """Every process, in the order in which they ran."""
    table = [["run", "point", "arm", "kind", "pair", "started", "took", "throughput", "TTFT", "failure"]]
    for run in report.runs:
        metrics = run.observation.metrics
        cells = [amount(metrics[name].value, metrics[name].unit) if name in metrics else "-" for name in _RUN_METRICS]
        failure = run.observation.failure
        table.append(
            [
                str(run.order),
                run.point or "-",
                run.arm,
                run.kind,
                "-" if run.pair is None else str(run.pair),
                clock(run.started),
                f"{run.seconds:.0f} s",
                *cells,
                "" if failure is None else f"{failure.kind}: {failure.message}"[:60],
            ]
        )
    return columns(table, right=(0, 6, 7, 8))


_RUN_METRICS = ("throughput", "ttft")
