"""Several reports side by side: the same recipe on other days, releases or machines.

Only ratios are compared between sessions. The baselines' own values are shown, with what they differ by: a difference
between sessions is the machine's or the release's as well as the patch's.
"""

from __future__ import annotations

from collections.abc import Sequence

from patchkit.bench.render.words import amount, change, columns, span, title, verdict_of
from patchkit.bench.report import MetricResult, Report


def compare(reports: Sequence[Report]) -> list[str]:
    """The lines of a comparison, oldest session first."""
    ordered = sorted(reports, key=lambda report: report.started)
    lines = columns(
        [
            ["started", "recipe", "verdict", "engine", "pairs"],
            *(
                [
                    report.started[:16].replace("T", " "),
                    report.recipe,
                    report.kind or report.verdict,
                    report.engine,
                    str(len({(run.point, run.pair) for run in report.runs if run.kind == "measured"})),
                ]
                for report in ordered
            ),
        ]
    )
    for label, metric in _shared(ordered):
        found = [(report, _result(report, label, metric)) for report in ordered]
        table = [["started", "baseline", "treatment", "change", "interval", "verdict"]]
        for report, result in found:
            if result is None:
                continue
            values = [amount(value, result.unit) for value in (result.baseline, result.treatment)]
            row = [report.started[:16].replace("T", " "), *values, change(result), span(result), verdict_of(result)]
            table.append(row)
        if len(table) > 1:
            head = f"{label}: {title(metric)}" if label else title(metric)
            lines += ["", head, *columns(table, right=(1, 2, 3, 4))]
            lines += _drift([result for _, result in found if result is not None])
    lines += _differences(ordered)
    return lines


def _shared(reports: Sequence[Report]) -> list[tuple[str, str]]:
    """Point and metric, of those with a gate in some report; in the order in which they are first seen."""
    found = {
        (point.label, result.metric): None
        for report in reports
        for point in report.points
        for result in point.metrics
        if result.gate is not None
    }
    return list(found)


def _result(report: Report, label: str, metric: str) -> MetricResult | None:
    for point in report.points:
        if point.label == label:
            return next((result for result in point.metrics if result.metric == metric), None)
    return None


def _drift(results: Sequence[MetricResult]) -> list[str]:
    values = [result.baseline for result in results if result.baseline]
    if len(values) < 2 or min(values) <= 0:
        return []
    spread = (max(values) / min(values) - 1) * 100
    return [f"  the baselines themselves differ by up to {spread:.1f} %: only the changes can be compared"]


def _differences(reports: Sequence[Report]) -> list[str]:
    """What is not the same in all of them, of versions, patches, recipe and machine."""
    facts: dict[str, list[str]] = {}
    for report in reports:
        own = {f"patch {patch.name}": patch.digest[:12] for patch in report.patches}
        own |= {f"recipe {report.recipe}": report.digest[:12], **report.versions}
        own |= {f"machine: {name}": value for name, value in report.machine.items()}
        for name in {*own, *facts}:
            facts.setdefault(name, []).append(own.get(name, "-"))
    count = len(reports)
    rows = [
        [name, *(["-"] * (count - len(values)) + values)]
        for name, values in sorted(facts.items())
        if len(set(values)) > 1 or len(values) < count
    ]
    if not rows:
        return []
    head = ["what differs", *(report.started[:16].replace("T", " ") for report in reports)]
    return ["", *columns([head, *rows])]
