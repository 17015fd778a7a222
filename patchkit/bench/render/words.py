"""Numbers and verdicts in words, the same in every form of a report."""

from __future__ import annotations

from collections.abc import Iterable

from patchkit.bench.report import MetricResult, PointResult, Report, Verdict
from patchkit.model.recipe import METRICS, Figure, Gate

#: A mark beside the colour: not everybody sees colours, and a pipe has none.
MARKS: dict[str, str] = {"held": "ok", "failed": "FAILED", "not-checked": "not checked", "noted": "note"}
TITLES = {
    "throughput": "output throughput",
    "throughput_first": "output throughput, first touch",
    "request_throughput": "request throughput",
    "ttft": "TTFT",
    "ttft_first": "TTFT, first touch",
    "tpot": "TPOT",
    "itl": "ITL",
    "e2el": "E2E latency",
    "init": "engine init",
    "model_memory": "model memory",
    "kv_cache_tokens": "KV-cache capacity",
    "max_concurrency": "maximum concurrency",
    "acceptance_rate": "acceptance rate",
    "seconds": "time",
}
_MEANT: dict[Verdict, str] = {
    "pass": "passes its gates",
    "regressed": "made things worse",
    "inconclusive": "cannot be told from noise, or not yet",
    "invalid": "was not measured validly",
    "error": "failed",
}


def title(metric: str) -> str:
    """What a metric is called."""
    return TITLES.get(metric, metric)


def unit_of(metric: str) -> str:
    """The unit of one of the metrics that patchkit knows; of others it is in the report."""
    return METRICS[metric][0] if metric in METRICS else ""


def number(value: float, digits: int = 4) -> str:
    """``value`` with that many significant digits, thousands set apart; counts below ten millions are whole."""
    size = abs(value)
    if value == int(value) and size < 1e7:
        return f"{int(value):,}"
    if not 1e-4 <= size < 1e15:
        return f"{value:.{digits - 1}e}"
    text = f"{float(f'{value:.{digits - 1}e}'):.{max(0, digits - len(str(int(size))) if size >= 1 else 6)}f}"
    whole, point, rest = text.partition(".")
    rest = rest.rstrip("0")
    sign = "-" if whole.startswith("-") else ""
    return f"{sign}{abs(int(whole)):,}" + (point + rest if rest else "")


def amount(value: float | None, unit: str) -> str:
    """A value with its unit; seconds under ten as milliseconds."""
    if value is None:
        return "-"
    if unit == "s":
        return f"{number(value * 1000)} ms" if abs(value) < 10 else f"{number(value)} s"
    return f"{number(value)} {unit}".rstrip()


def percent(ratio: float, digits: int = 1) -> str:
    """A ratio as a signed change; a ratio of two and more as a multiple."""
    if ratio >= 2:
        return f"x{ratio:.2f}" if ratio < 100 else f"x{ratio:.0f}"
    text = f"{(ratio - 1) * 100:+.{digits}f} %"
    return text.replace("-0.0 %", "+0.0 %") if float(text[:-2]) == 0 else text


def span(result: MetricResult) -> str:
    """The interval of the change."""
    if result.interval is None:
        return "-"
    low, high = percent(result.interval.low), percent(result.interval.high)
    return f"{low.removesuffix(' %') if high.endswith('%') else low} .. {high}"


def limit(gate: Gate | None, unit: str) -> str:
    """A gate in words."""
    if gate is None:
        return "-"
    said = []
    if gate.min_ratio is not None:
        said.append(f">= {percent(gate.min_ratio)}")
    if gate.max_ratio is not None:
        said.append(f"<= {percent(gate.max_ratio)}")
    if gate.minimum is not None:
        said.append(f">= {amount(gate.minimum, unit)}")
    if gate.maximum is not None:
        said.append(f"<= {amount(gate.maximum, unit)}")
    return " and ".join(said)


def change(result: MetricResult) -> str:
    """The change of a metric: by pairs where there are any, else of the two values."""
    if result.interval is not None:
        return percent(result.interval.ratio)
    if result.baseline and result.treatment is not None and result.treatment / result.baseline > 0:
        return percent(result.treatment / result.baseline)
    return "-"


def verdict_of(result: MetricResult) -> str:
    """The verdict of one metric in a word or two."""
    if result.verdict is None:
        return "-"
    return result.kind or result.verdict


def headline(report: Report) -> str:
    """The verdict, as a title."""
    kind = f" ({report.kind})" if report.kind else ""
    return f"{report.verdict.upper()}{kind}: {report.recipe} {_MEANT[report.verdict]}"


def clock(moment: str) -> str:
    """The time of day of an ISO 8601 moment; what is none stays."""
    day, separator, time = moment.partition("T")
    return time[:8] if separator and len(time) >= 8 and len(day) == 10 else moment


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def runs_text(report: Report) -> str:
    """How many processes there were, of which kind."""
    kinds = [run.kind for run in report.runs]
    pairs = {(run.point, run.pair) for run in report.runs if run.kind == "measured"}
    parts = [f"{len(pairs)} {'pair' if len(pairs) == 1 else 'pairs'}"]
    parts += [
        f"{kinds.count(kind)} {kind}" for kind in ("preflight", "discarded", "confirm", "traced") if kind in kinds
    ]
    return f"{len(kinds)} {'run' if len(kinds) == 1 else 'runs'} ({', '.join(parts)}), {duration(report.seconds)}"


def shown_metrics(point: PointResult) -> list[MetricResult]:
    """The metrics of a point: those with a gate first."""
    return sorted(point.metrics, key=lambda result: result.gate is None)


def figures_text(point: PointResult) -> list[str]:
    """The published figures beside the measured ones, a line for each metric that has some."""
    lines = []
    for result in point.metrics:
        figure = result.figure
        if figure is None:
            continue
        # Where nothing was measured, no unit came with it.
        lines.append(f"{published_text(figure, result.unit or unit_of(result.metric))}; here {change(result)}")
    return lines


def published_text(figure: Figure, unit: str) -> str:
    """A published figure: the values of both arms, the change, or what of them was published."""
    ratio = figure.change()
    if figure.baseline is None and figure.treatment is None and ratio is not None:
        return f"{title(figure.metric)} {percent(ratio)}"
    values = [amount(value, unit) if value is not None else "?" for value in (figure.baseline, figure.treatment)]
    return f"{title(figure.metric)} {values[0]} to {values[1]}" + (f" ({percent(ratio)})" if ratio is not None else "")


def costs_text(point: PointResult) -> list[str]:
    """Energy and cost of each arm."""
    lines = []
    for cost in point.costs:
        said = []
        if cost.millijoule_per_token is not None:
            said.append(f"at most {number(cost.millijoule_per_token, 3)} mJ per token (rated power)")
        if cost.tokens_per_dollar is not None:
            said.append(f"{number(cost.tokens_per_dollar / 1e6, 3)} M tokens per dollar")
        if said:
            lines.append(f"{cost.arm}: {', '.join(said)}")
    return lines


def columns(rows: Iterable[list[str]], right: tuple[int, ...] = ()) -> list[str]:
    """Rows as lines with aligned columns; ``right`` are those that end together."""
    table = list(rows)
    widths = [max(len(row[at]) for row in table) for at in range(len(table[0]))] if table else []
    return [
        "  ".join(
            cell.rjust(width) if at in right else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]
