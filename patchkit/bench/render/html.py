"""``report.html``: one file without scripts or anything from elsewhere, for light and dark screens and for paper."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from patchkit.bench.render.plots import axis_unit, ladder_plot, ratio_plot, runs_plot
from patchkit.bench.render.style import CSS
from patchkit.bench.render.terminal import row
from patchkit.bench.render.words import (
    MARKS,
    amount,
    clock,
    costs_text,
    duration,
    figures_text,
    headline,
    runs_text,
    shown_metrics,
    title,
)
from patchkit.bench.report import PointResult, Report
from patchkit.visible import visible

_LEGEND = (
    '<p class="legend"><svg viewBox="0 0 14 14"><circle class="baseline" cx="7" cy="7" r="5"/></svg> baseline '
    '<svg viewBox="0 0 14 14"><rect class="treatment" x="2" y="2" width="10" height="10"/></svg> treatment '
    '<svg viewBox="0 0 14 14"><circle class="baseline apart" cx="7" cy="7" r="5"/></svg> hollow: does not count '
    "(discarded, or measured after a revert)</p>"
)
_HEAD = ("metric", "baseline", "treatment", "change", "interval", "gate", "verdict")


def html(report: Report) -> str:
    """The report as one HTML file."""
    body = [
        f'<header class="{report.verdict}"><h1>{escape(headline(report))}</h1>',
        f"<p>{escape(report.summary)}</p>" if report.summary else "",
        f'<p class="reason">{escape(report.reason)}</p>' if report.reason else "",
        f"<p>Site: {escape(report.aftermath.text)}</p></header>",
    ]
    if report.label:
        body.append(f'<p class="warning">Every time below: {escape(report.label)}</p>')
    if len(report.points) > 1:
        body.append(_ladder(report))
    body += [_point(report, point) for point in report.points]
    if report.trace:
        body.append(_trace(report.trace))
    body += [_runs(report), _inputs(report)]
    name = escape(f"{report.recipe}: {report.verdict}")
    page = visible("\n".join(filter(None, body)), keep="\n")
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{visible(name)}</title><style>{CSS}</style></head>\n<body><main>\n"
        f"{page}\n</main></body></html>\n"
    )


def _ladder(report: Report) -> str:
    metrics = dict.fromkeys(result.metric for point in report.points for result in shown_metrics(point))
    units = {result.metric: axis_unit(result.unit) for point in report.points for result in point.metrics}
    figures = [_figure(f"{title(metric)} by point, {units[metric]}", ladder_plot(report, metric)) for metric in metrics]
    figures = [figure for figure in figures if figure][:4]
    return f"<section><h2>Ladder</h2>{_LEGEND}<div class='plots'>{''.join(figures)}</div></section>" if figures else ""


def _point(report: Report, point: PointResult) -> str:
    shown = shown_metrics(point)
    name = point.label or "Metrics"
    parts = [f"<section><h2>{escape(name)}</h2>"]
    if point.label:
        parts.append(f'<p class="{point.verdict}"><b class="badge">{point.kind or point.verdict}</b> ')
        parts.append(f"{escape(point.reason)}</p>")
    if shown:
        parts.append(
            _table(
                _HEAD,
                (
                    [_Cell(cell, result.verdict if at == 6 else None) for at, cell in enumerate(row(result))]
                    for result in shown
                ),
                numeric=range(1, 6),
            )
        )
    parts += [
        f'<p class="advice">{escape(title(result.metric))}: {escape(result.advice)}</p>'
        for result in shown
        if result.advice
    ]
    if point.touch:
        parts.append(f'<p class="advice">First touch: {escape(point.touch)}</p>')
    figures = [_figure("Ratio, its interval, and the gates (shaded: not allowed)", ratio_plot(shown))]
    drawn = [result for result in shown if result.gate is not None] or shown[:2]
    figures += [
        _figure(f"{title(result.metric)} by run, {axis_unit(result.unit)}", runs_plot(report, point, result))
        for result in drawn
    ]
    if any(figures):
        parts.append(f'{_LEGEND}<div class="plots">{"".join(figures)}</div>')
    if point.checks:
        checks = sorted(point.checks, key=lambda check: ("failed", "noted", "not-checked", "held").index(check.state))
        items = "".join(
            f'<li class="{check.state}"><b class="badge">{MARKS[check.state]}</b> <b>{escape(check.name)}</b>: '
            f"{escape(check.text)}</li>"
            for check in checks
        )
        parts.append(f'<h3>Checks of validity</h3><ul class="checks">{items}</ul>')
    more = [f"published: {text}" for text in figures_text(point)] + [f"cost, {text}" for text in costs_text(point)]
    if more:
        source = f"<p>Source: {escape(report.source)}</p>" if report.source else ""
        items = "".join(f"<li>{escape(text)}</li>" for text in more)
        parts.append(f"<h3>Published figures and cost</h3><ul>{items}</ul>{source}")
    return "".join([*parts, "</section>"])


class _Cell:
    """A cell of a table, with a class of its own where it has a verdict."""

    def __init__(self, text: str, look: str | None = None) -> None:
        self.text, self.look = text, look


def _table(head: Sequence[str], rows: Iterable[Sequence[_Cell | str]], numeric: Iterable[int] = ()) -> str:
    right = set(numeric)
    parts = ['<div class="wide"><table><thead><tr>']
    parts += [f"<th{_right(at in right)}>{escape(cell)}</th>" for at, cell in enumerate(head)]
    parts.append("</tr></thead><tbody>")
    for cells in rows:
        parts.append("<tr>")
        for at, cell in enumerate(cells):
            text, look = (cell.text, cell.look) if isinstance(cell, _Cell) else (cell, None)
            shown = f'<b class="badge">{escape(text)}</b>' if look else escape(text)
            kind = f' class="{look}"' if look else _right(at in right)
            parts.append(f"<td{kind}>{shown}</td>")
        parts.append("</tr>")
    parts.append("</tbody></table></div>")
    return "".join(parts)


def _right(numeric: bool) -> str:
    return ' class="number"' if numeric else ""


def _figure(caption: str, drawing: str) -> str:
    return f"<figure>{drawing}<figcaption>{escape(caption)}</figcaption></figure>" if drawing else ""


def _trace(rows: Sequence[Any]) -> str:
    keys = list(dict.fromkeys(key for one in rows for key in one))
    numeric = [at for at, key in enumerate(keys) if any(isinstance(one.get(key), int | float) for one in rows)]
    table = _table(keys, ([_value(one.get(key)) for key in keys] for one in rows), numeric)
    return (
        "<section><h2>Operations</h2><p>By program, operation and shape; from one profiled run of each arm, which is "
        f"not timed.</p>{table}</section>"
    )


def _value(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.3f}".rstrip("0").rstrip(".")
    return "" if value is None else str(value)


def _runs(report: Report) -> str:
    names = list(dict.fromkeys(name for run in report.runs for name in run.observation.metrics))
    head = ("run", "point", "arm", "kind", "pair", "started", "took", *names, "tokens", "failure")
    rows = []
    for run in report.runs:
        seen = run.observation
        tokens, failure = seen.tokens, seen.failure
        rows.append(
            [
                str(run.order),
                run.point,
                run.arm,
                run.kind,
                "" if run.pair is None else str(run.pair),
                clock(run.started),
                duration(run.seconds),
                *(
                    amount(seen.metrics[name].value, seen.metrics[name].unit) if name in seen.metrics else ""
                    for name in names
                ),
                "" if tokens is None or tokens.sha256 is None else tokens.sha256[:12],
                "" if failure is None else f"{failure.kind}: {failure.message}",
            ]
        )
    table = _table(head, rows, range(6, 7 + len(names)))
    return f"<details><summary>{escape(f'Runs: {runs_text(report)}')}</summary>{table}</details>" if rows else ""


def _inputs(report: Report) -> str:
    facts = [
        ("recipe", f"{report.recipe}, SHA-256 {report.digest}"),
        ("engine", report.engine),
        ("site", report.site),
        ("started", report.started),
        ("kept in", report.folder),
        *(
            (f"patch {one.name}", f"SHA-256 {one.digest}, for {one.distribution} {one.version}")
            for one in report.patches
        ),
        *report.versions.items(),
        *report.machine.items(),
        *(("note", note) for note in report.notes),
    ]
    return f"<details><summary>Inputs</summary>{_table(('what', 'value'), [list(fact) for fact in facts])}</details>"
