"""The plots of ``report.html`` as inline SVG: the runs in order, the ratio against its gate, the curves of a ladder.

Colours are CSS variables of the page, so that one drawing serves light, dark and print; the arms differ in shape too.
Drawn by hand: matplotlib costs 34 MB and most of a second (facts of the peers), for three plots.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from patchkit.bench.render.words import amount, limit, number, percent, title
from patchkit.bench.report import MetricResult, PointResult, Report, Run

_WIDTH, _LEFT, _RIGHT = 460, 58, 12


def runs_plot(report: Report, point: PointResult, result: MetricResult) -> str:
    """One dot for each process in the order in which they ran; pairs are joined, discarded runs are hollow."""
    shown = [run for run in report.runs if run.point == point.label and result.metric in run.observation.metrics]
    if not shown:
        return ""
    values = [run.observation.metrics[result.metric].value for run in shown]
    height, top, bottom = 220, 14, 40
    ticks = nice_ticks(min(values), max(values))
    low, high = min(ticks[0], *values), max(ticks[-1], *values)

    def x(at: int) -> float:
        return _LEFT + (at + 0.5) * (_WIDTH - _LEFT - _RIGHT) / len(shown)

    def y(value: float) -> float:
        return top + (high - value) / ((high - low) or 1) * (height - top - bottom)

    body = [_grid(y(tick), _axis(tick, result.unit)) for tick in ticks]
    places: dict[int, list[tuple[float, float]]] = {}
    for at, (run, value) in enumerate(zip(shown, values, strict=True)):
        if run.pair is not None:
            places.setdefault(run.pair, []).append((x(at), y(value)))
    for ends in places.values():
        if len(ends) == 2:
            (x1, y1), (x2, y2) = ends
            body.append(f'<line class="join" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>')
    for at, (run, value) in enumerate(zip(shown, values, strict=True)):
        body.append(_dot(run, x(at), y(value), amount(value, result.unit)))
        body.append(f'<text class="tick" x="{x(at):.1f}" y="{height - 22}" text-anchor="middle">{run.order}</text>')
    body.append(f'<text class="tick" x="{_LEFT}" y="{height - 6}">order of the runs</text>')
    return _svg(height, f"{title(result.metric)} of each run, in order", body)


def _dot(run: Run, x: float, y: float, text: str) -> str:
    kind = f"{run.arm} {run.kind}" + ("" if run.pair is None else f", pair {run.pair}")
    told = f"<title>{escape(f'run {run.order}: {kind}: {text}')}</title>"
    look = f'class="{run.arm}{"" if run.kind == "measured" else " apart"}"'
    if run.arm == "baseline":
        return f'<circle {look} cx="{x:.1f}" cy="{y:.1f}" r="6">{told}</circle>'
    return f'<rect {look} x="{x - 5.5:.1f}" y="{y - 5.5:.1f}" width="11" height="11">{told}</rect>'


def ratio_plot(results: Sequence[MetricResult]) -> str:
    """The ratio of each gated metric with its interval; the hatched side is what its gate does not allow."""
    shown = [result for result in results if result.interval is not None and result.gate is not None]
    if not shown:
        return ""
    row, top = 46, 30
    height = top + row * len(shown) + 22
    points = [1.0]
    for result in shown:
        assert result.interval is not None
        assert result.gate is not None
        points += [result.interval.low, result.interval.high, *result.ratios]
        points += [limit for limit in (result.gate.min_ratio, result.gate.max_ratio) if limit is not None]
    points = [min(max(point, 1e-3), 1e3) for point in points]
    low, high = math.log(min(points)), math.log(max(points))
    pad = max((high - low) * 0.08, 0.005)
    low, high = low - pad, high + pad
    left = _LEFT + 62

    def x(ratio: float) -> float:
        at = (math.log(min(max(ratio, 1e-3), 1e3)) - low) / (high - low)
        return left + min(max(at, 0), 1) * (_WIDTH - left - _RIGHT)

    body = []
    for tick in _ratio_ticks(math.exp(low), math.exp(high)):
        body.append(f'<line class="grid" x1="{x(tick):.1f}" y1="{top}" x2="{x(tick):.1f}" y2="{height - 22}"/>')
        if tick != 1:
            body.append(
                f'<text class="tick" x="{x(tick):.1f}" y="{height - 6}" text-anchor="middle">{percent(tick, 0)}</text>'
            )
    body.append(f'<line class="same" x1="{x(1):.1f}" y1="{top - 6}" x2="{x(1):.1f}" y2="{height - 22}"/>')
    body.append(f'<text class="tick" x="{x(1):.1f}" y="{top - 12}" text-anchor="middle">no change</text>')
    for at, result in enumerate(shown):
        y = top + row * at + row / 2
        gate, interval = result.gate, result.interval
        assert gate is not None
        assert interval is not None
        if gate.min_ratio is not None:
            body.append(_forbidden(left, x(gate.min_ratio), y, row))
        if gate.max_ratio is not None:
            body.append(_forbidden(x(gate.max_ratio), _WIDTH - _RIGHT, y, row))
        told = (
            f"{title(result.metric)}: {percent(interval.ratio)} ({percent(interval.low)} .. {percent(interval.high)})"
        )
        told += f", gate {limit(gate, result.unit)}"
        body.append(f'<text class="label" x="8" y="{y + 4:.1f}">{escape(title(result.metric)[:17])}</text>')
        body += [f'<circle class="pair" cx="{x(ratio):.1f}" cy="{y + 10:.1f}" r="3"/>' for ratio in result.ratios]
        body.append(
            f'<g class="{result.verdict}"><title>{escape(told)}</title>'
            f'<line class="interval" x1="{x(interval.low):.1f}" y1="{y:.1f}" x2="{x(interval.high):.1f}" y2="{y:.1f}"/>'
            f'<path class="mean" d="M{x(interval.ratio):.1f} {y - 7:.1f}l6 7l-6 7l-6 -7z"/></g>'
        )
    return _svg(height, "treatment / baseline with its interval, and what the gates do not allow", body)


def _forbidden(x1: float, x2: float, y: float, row: float) -> str:
    if x2 - x1 < 0.5:
        return ""
    return f'<rect class="forbidden" x="{x1:.1f}" y="{y - row / 2 + 3:.1f}" width="{x2 - x1:.1f}" height="{row - 6}"/>'


def ladder_plot(report: Report, metric: str) -> str:
    """Both arms over the points of a ladder."""
    found = [(point, one) for point in report.points for one in point.metrics if one.metric == metric]
    series = {
        "baseline": [(at, one.baseline) for at, (_, one) in enumerate(found) if one.baseline is not None],
        "treatment": [(at, one.treatment) for at, (_, one) in enumerate(found) if one.treatment is not None],
    }
    values = [value for line in series.values() for _, value in line]
    if len(found) < 2 or not values:
        return ""
    height, top, bottom = 240, 14, 40
    ticks = nice_ticks(min(0.0, *values), max(values))
    low, high = ticks[0], max(ticks[-1], *values)

    def x(at: int) -> float:
        return _LEFT + (at + 0.5) * (_WIDTH - _LEFT - _RIGHT) / len(found)

    def y(value: float) -> float:
        return top + (high - value) / ((high - low) or 1) * (height - top - bottom)

    unit = found[0][1].unit
    body = [_grid(y(tick), _axis(tick, unit)) for tick in ticks]
    for arm, line in series.items():
        path = "L".join(f"{x(at):.1f} {y(value):.1f}" for at, value in line)
        if path:
            body.append(f'<path class="{arm} curve" d="M{path}"/>')
        for at, value in line:
            told = f"<title>{escape(f'{found[at][0].label}, {arm}: {amount(value, unit)}')}</title>"
            if arm == "baseline":
                body.append(f'<circle class="{arm}" cx="{x(at):.1f}" cy="{y(value):.1f}" r="5">{told}</circle>')
            else:
                body.append(
                    f'<rect class="{arm}" x="{x(at) - 4.5:.1f}" y="{y(value) - 4.5:.1f}" width="9" height="9">'
                    f"{told}</rect>"
                )
    for at, (point, _) in enumerate(found):
        label = escape(point.label[:16])
        body.append(f'<text class="tick" x="{x(at):.1f}" y="{height - 22}" text-anchor="middle">{label}</text>')
    return _svg(height, f"{title(metric)} by point", body)


def nice_ticks(low: float, high: float, wanted: int = 5) -> list[float]:
    """Round numbers, about ``wanted`` of them, from at most ``low`` to at least ``high``."""
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        low, high = low - (abs(low) or 1) * 0.05, high + (abs(high) or 1) * 0.05
    rough = (high - low) / (wanted - 1)
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 2.5, 5, 10) if size * factor >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(f"{at * step:.12g}") for at in range(first, last + 1)]


def _ratio_ticks(low: float, high: float) -> list[float]:
    if high / low > 1.8:
        return [tick for tick in (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0) if low <= tick <= high]
    return [1 + tick / 100 for tick in nice_ticks((low - 1) * 100, (high - 1) * 100) if low <= 1 + tick / 100 <= high]


def _grid(y: float, text: str) -> str:
    return (
        f'<line class="grid" x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}"/>'
        f'<text class="tick" x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{escape(text)}</text>'
    )


def _axis(tick: float, unit: str) -> str:
    """A tick's number; the unit stands in the caption."""
    return number(tick * 1000 if unit == "s" else tick)


def axis_unit(unit: str) -> str:
    """The unit of the ticks of a plot."""
    return "ms" if unit == "s" else unit


def _svg(height: float, name: str, body: list[str]) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height:.0f}" role="img" aria-label="{escape(name)}">'
        f"<title>{escape(name)}</title>{''.join(body)}</svg>"
    )
