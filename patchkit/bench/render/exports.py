"""The report for two services that keep benchmarks over time: Bencher and github-action-benchmark.

Bencher Metric Format: https://bencher.dev/docs/reference/bencher-metric-format/ . Custom results of
github-action-benchmark: the "customSmallerIsBetter" and "customBiggerIsBetter" tools of its README.
"""

from __future__ import annotations

from typing import Any

from patchkit.bench.report import MetricResult, PointResult, Report


def bmf(report: Report) -> dict[str, Any]:
    """Bencher Metric Format: benchmark, then measure, then value and its bounds.

    A benchmark is the recipe, its point and the arm. The treatment's bounds are the interval of the ratio, laid on the
    baseline's value. Its change is a measure of its own, which is comparable between machines.
    """
    found: dict[str, Any] = {}
    for point in report.points:
        for result in point.metrics:
            measure = f"{result.metric} ({result.unit})"
            for arm, value in (("baseline", result.baseline), ("treatment", result.treatment)):
                if value is None:
                    continue
                entry: dict[str, Any] = {"value": value}
                if arm == "treatment" and result.interval is not None and result.baseline is not None:
                    entry["lower_value"] = result.interval.low * result.baseline
                    entry["upper_value"] = result.interval.high * result.baseline
                found.setdefault(_name(report, point, arm), {})[measure] = entry
            if result.interval is not None:
                found.setdefault(_name(report, point, "ratio"), {})[result.metric] = {
                    "value": result.interval.ratio,
                    "lower_value": result.interval.low,
                    "upper_value": result.interval.high,
                }
    return found


def action_benchmark(report: Report, better: str) -> list[dict[str, Any]]:
    """Results of github-action-benchmark: the metrics of the treatment of which more (``higher``) or less is better.

    The action takes one direction a file, so there are two.
    """
    return [
        _entry(report, point, result)
        for point in report.points
        for result in point.metrics
        if result.better == better and result.treatment is not None
    ]


def _entry(report: Report, point: PointResult, result: MetricResult) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "name": f"{_name(report, point, 'treatment')}: {result.metric}",
        "unit": result.unit,
        "value": result.treatment,
    }
    if result.interval is not None and result.baseline is not None:
        half = (result.interval.high - result.interval.low) / 2 * result.baseline
        entry["range"] = f"\N{PLUS-MINUS SIGN}{half:.6g}"
    extra = [f"verdict: {result.verdict or 'no gate'}", f"report: {report.verdict}"]
    if report.label:
        extra.append(report.label)
    entry["extra"] = "\n".join(extra)
    return entry


def _name(report: Report, point: PointResult, arm: str) -> str:
    return "/".join(part for part in (report.recipe, point.label, arm) if part)
