"""``compile-time``."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from patchkit.cli.context import site_json, site_of
from patchkit.cli.output import Output
from patchkit.cli.progress import Ticker
from patchkit.errors import UsageError

if TYPE_CHECKING:
    from patchkit.bench.compiletime.result import Result, Summary, Timing, Trial
    from patchkit.bench.compiletime.spec import Published, Spec

_RUNS = "patchkit-runs"
_COLUMNS = (("lower", "lower ms"), ("compile", "compile ms"), ("first_run", "first run ms"))


def configure_compile_time(parser: ArgumentParser) -> None:
    """The options of ``compile-time``."""
    parser.add_argument("spec", metavar="SPEC", help="a name, or a path to a .toml file")
    parser.add_argument("--trials", type=int, metavar="N", help="processes of each variant, in place of the spec's")
    parser.add_argument("--output", metavar="DIR", dest="folder", help=f"where logs and result go (default: {_RUNS})")
    parser.add_argument("--against", metavar="RESULT", help="show an earlier result beside, of the same versions only")
    parser.add_argument("--dry-run", action="store_true", help="say what would run, and run nothing")


def run_compile_time(arguments: Namespace) -> int:
    """Run a spec; 0, or 6 where nothing comparable came of it."""
    import datetime

    from patchkit.bench.compiletime.result import order_of, same_ground, summarize
    from patchkit.bench.compiletime.run import read_result, run_spec
    from patchkit.bench.compiletime.spec import load_spec, path_of
    from patchkit.bench.launching import python_of

    output: Output = arguments.output
    spec = load_spec(path_of(arguments.spec))
    trials = spec.trials if arguments.trials is None else arguments.trials
    if not 1 <= trials <= 1000:
        raise UsageError(f"--trials {trials}: it is 1 to 1000", hint="see `patchkit compile-time --help`")
    earlier = None if arguments.against is None else read_result(arguments.against)
    site = site_of(arguments)
    python = python_of(site)
    order = order_of([variant.name for variant in spec.variants], trials)
    output.line(f"{spec.name}: {spec.summary}")
    output.paragraph(
        f"{len(order)} processes of {python}, compile cache off, in the order "
        f"{', '.join(order[:6])}{', ...' if len(order) > 6 else ''}",
        2,
    )
    if arguments.dry_run:
        output.json(ok=True, site=site_json(site), spec=_spec_json(spec), dry_run=True, order=order, variants=[])
        return 0
    now = datetime.datetime.now(datetime.UTC)
    folder = arguments.folder or os.path.join(_RUNS, f"compile-time-{spec.name}-{now:%Y%m%dT%H%M%SZ}")
    ticker = Ticker(output)

    def done(number: int, total: int, trial: Trial) -> None:
        output.clear_status()
        times = ", ".join(f"{phase.replace('_', ' ')} {trial.seconds[phase] * 1e3:.1f} ms" for phase, _ in _COLUMNS)
        output.note(f"  {number} of {total}: {trial.variant}: {times}")

    result = run_spec(
        spec, python, folder, started=now.isoformat(timespec="seconds"), trials=trials, done=done, tick=ticker
    )
    output.clear_status()
    if earlier is not None:
        same_ground([earlier.versions, result.versions], [earlier.device, result.device])
    summaries = summarize(result.trials)
    for line in _table(spec, result, summaries):
        output.line(line)
    if earlier is not None:
        output.line(f"  earlier, {earlier.started}:")
        for summary in summarize(earlier.trials):
            output.line(_row(summary.variant, summary.wall))
    output.line(f"  kept in {folder}")
    output.json(
        ok=True,
        site=site_json(site),
        spec=_spec_json(spec),
        dry_run=False,
        order=order,
        versions=result.versions,
        device=result.device,
        variants=[_summary_json(summary) for summary in summaries],
        earlier=None if earlier is None else [_summary_json(summary) for summary in summarize(earlier.trials)],
        folder=folder,
    )
    return 0


def _table(spec: Spec, result: Result, summaries: Sequence[Summary]) -> list[str]:
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items() if version)
    device = result.device
    lines = [f"  {versions}; {device['platform']} ({device['kind']})", ""]
    lines.append(f"  {'variant':<16}" + "".join(f" {title:>26}" for _, title in _COLUMNS))
    lines += [_row(summary.variant, summary.wall) for summary in summaries]
    lines += [f"  {summary.variant}: {summary.note}" for summary in summaries if summary.note]
    first, *others = summaries
    for other in others:
        ratio = other.wall["compile"].median / first.wall["compile"].median
        lines.append(f"  compiling {other.variant} took {ratio:.3g} times as long as {first.variant}")
    published = [(variant.name, variant.published) for variant in spec.variants if variant.published is not None]
    for on in dict.fromkeys(figures.on for _, figures in published):
        lines.append(f"  published, not compared: {on}")
        lines += [_published_row(name, figures) for name, figures in published if figures.on == on]
    return lines


def _row(name: str, timings: dict[str, Timing]) -> str:
    cells = [_cell(timings[phase].median, timings[phase].least, timings[phase].most) for phase, _ in _COLUMNS]
    return f"  {name:<16}" + "".join(f" {cell:>26}" for cell in cells)


def _published_row(name: str, published: Published) -> str:
    cells = [_cell(*published.figures[phase]) if phase in published.figures else "" for phase, _ in _COLUMNS]
    return (f"  {name:<16}" + "".join(f" {cell:>26}" for cell in cells)).rstrip()


def _cell(median: float, least: float | None, most: float | None) -> str:
    return f"{median:.1f}" + ("" if least is None or most is None else f" ({least:.1f} to {most:.1f})")


def _spec_json(spec: Spec) -> dict[str, Any]:
    return {
        "path": spec.path,
        "name": spec.name,
        "script": spec.script,
        "published": {
            variant.name: {"on": variant.published.on, "ms": variant.published.figures}
            for variant in spec.variants
            if variant.published is not None
        },
    }


def _summary_json(summary: Summary) -> dict[str, Any]:
    def timings(by_phase: dict[str, Timing]) -> dict[str, Any]:
        return {phase: timing._asdict() for phase, timing in by_phase.items()}

    return {
        "name": summary.variant,
        "trials": summary.trials,
        "ms": timings(summary.wall),
        "cpu_ms": timings(summary.cpu),
        "note": summary.note,
    }
