"""``trace``."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from patchkit.cli.output import Output
from patchkit.cli.progress import Ticker
from patchkit.errors import MeasurementError, UsageError

if TYPE_CHECKING:
    from patchkit.bench.trace import Change, Checked, Expected, Found, Marked, Row, Trace

_TOP = 20
#: Files that were not taken, of which are named.
_MOST_IGNORED = 5
#: Seconds that a clock may be off between the job and the profiler.
_SLACK = 1.0
_CHECKS = {"batch": "--batch", "shapes": "--expect", "layers": "--layers", "kernels": "--kernel"}
_CHECKS |= {"absent": "--without-kernel", "since": "--since"}


def configure_trace(parser: ArgumentParser) -> None:
    """The options of ``trace``."""
    parser.add_argument("words", nargs="+", metavar="DIR", help="a folder or file; or `compare` and two of them")
    parser.add_argument("--since", metavar="TIME", help="when the job began: what is older is not of it")
    parser.add_argument("--newest", action="store_true", help="of several sessions the newest")
    parser.add_argument("--batch", type=int, metavar="N", help="a row must carry the batch, else the trace is stale")
    parser.add_argument(
        "--expect", action="append", dest="shapes", metavar="SHAPE", help="a row must have it, as f32[512,256000]"
    )
    parser.add_argument("--steps", metavar="N", help="decode steps in the trace; for compare N,N")
    parser.add_argument("--layers", type=int, metavar="N", help="layers of the model")
    parser.add_argument(
        "--kernel", action="append", dest="kernels", metavar="SIZES", help="must have run, as d:bkv=256,page=16"
    )
    parser.add_argument(
        "--without-kernel", action="append", dest="absent", metavar="SIZES", help="must not have run, as d:bkv=2048"
    )
    parser.add_argument("--top", type=int, default=_TOP, metavar="N", help=f"rows shown, 0 for all (default: {_TOP})")


def run_trace(arguments: Namespace) -> int:
    """Show one trace, checked, or compare two; 1 where a check fails, 6 where the trace is of another job."""
    words: list[str] = arguments.words
    if arguments.top < 0:
        raise UsageError(f"--top {arguments.top}: it is 0 or more", hint="see `patchkit trace --help`")
    if words[0] == "compare":
        if len(words) != 3:
            raise UsageError("`trace compare` takes two traces", hint="patchkit trace compare BEFORE AFTER")
        given = next((option for name, option in _CHECKS.items() if getattr(arguments, name) is not None), None)
        if given:
            raise UsageError(f"{given} is not for `trace compare`", hint="check each trace first: patchkit trace DIR")
        return _compare(arguments, words[1], words[2])
    if len(words) > 1:
        raise UsageError(
            f"`trace` shows one trace, not `{words[1]}` as well", hint="two: patchkit trace compare BEFORE AFTER"
        )
    return _show(arguments, words[0])


def _show(arguments: Namespace, path: str) -> int:
    from patchkit.bench.trace import check, find_trace, read_trace, row_json, tabulate

    output: Output = arguments.output
    expected = _expected(arguments)
    since = None if arguments.since is None else _time(arguments.since)
    aside = os.getcwd() if since is not None or arguments.newest else None
    try:
        found = find_trace(path, since=since, newest=arguments.newest, cwd=aside)
    except UsageError as error:
        if error.code != "no-trace" or aside is not None:
            raise
        found = find_trace(path, newest=arguments.newest, cwd=os.getcwd())
    trace = _read(output, found, read_trace)
    rows = tabulate(trace)
    checked = check(trace, rows, expected)
    _refuse_stale(trace, checked, rows, since)
    for line in _head(trace, found, checked, told=arguments.steps is not None):
        output.paragraph(line.strip(), len(line) - len(line.lstrip()), hanging=2)
    for line in _table(checked, arguments.top):
        output.line(line)
    for finding in checked.findings:
        output.paragraph(f"{finding.kind}: {finding.message}", 0, "red", hanging=2)
    ok = not checked.findings
    output.json(
        ok=ok,
        trace=_trace_json(trace, found),
        steps=checked.steps,
        rows=[{**row_json(one.row), "phase": one.phase, "per_step": one.per_step} for one in checked.rows],
        findings=[finding._asdict() for finding in checked.findings],
    )
    return 0 if ok else 1


def _refuse_stale(trace: Trace, checked: Checked, rows: Sequence[Row], since: float | None) -> None:
    message = next((finding.message for finding in checked.findings if finding.kind == "stale"), None)
    if since is not None and trace.started is not None and trace.started / 1e9 < since - _SLACK:
        message = f"the trace began at {_iso(trace.started / 1e9)}, before the job: a stale trace, however new its file"
    if message is not None:
        raise MeasurementError(
            f"{trace.path}: {message}",
            code="stale-trace",
            hint="the profiler may have written elsewhere: see None/plugins/profile of the job's working directory",
            details={
                "path": trace.path,
                "shapes": list(dict.fromkeys(row.shape for row in rows if row.shape))[:20],
                "started": None if trace.started is None else _iso(trace.started / 1e9),
            },
        )


def _read(output: Output, found: Found, read_trace: Any) -> Trace:
    ticker = Ticker(output)
    trace: Trace = read_trace(
        found.taken.path,
        lambda done, total: ticker(
            done >> 20, total >> 20, "reading, in MiB" if total else f"reading, {done >> 20} MiB unpacked"
        ),
    )
    output.clear_status()
    return trace


def _expected(arguments: Namespace) -> Expected:
    from patchkit.bench.trace import Expected

    for option, value in (("--batch", arguments.batch), ("--layers", arguments.layers)):
        if value is not None and value < 1:
            raise UsageError(f"{option} {value}: it is 1 or more", hint="see `patchkit trace --help`")
    return Expected(
        arguments.batch,
        tuple(arguments.shapes or ()),
        None if arguments.steps is None else _steps(arguments.steps, 1)[0],
        arguments.layers,
        tuple(_kernel("--kernel", text) for text in arguments.kernels or ()),
        tuple(_kernel("--without-kernel", text) for text in arguments.absent or ()),
    )


def _steps(text: str, count: int) -> tuple[int, ...]:
    parts = text.split(",")
    if len(parts) == count and all(part.isascii() and part.isdigit() and 0 < int(part) < 10**9 for part in parts):
        return tuple(map(int, parts))
    what = "a number of steps" if count == 1 else "two numbers of steps, as 258,250"
    raise UsageError(f"--steps {text}: {what} is expected", hint="see `patchkit trace --help`")


def _kernel(option: str, text: str) -> dict[str, int | str]:
    """``d:bkv=256,page=16`` as fields of a kernel."""
    from patchkit.bench.trace import Kernel

    case, _, sizes = text.rpartition(":")
    found: dict[str, int | str] = {"case": case} if case else {}
    names = [name for name in Kernel._fields if name != "case"]
    for part in sizes.split(","):
        name, _, value = part.partition("=")
        if name not in names or not (value.isascii() and value.isdigit()):
            raise UsageError(
                f"{option} {text}: `{part}` is not NAME=NUMBER with a name of {', '.join(names)}",
                hint=f"{option} d:bkv=256,page=16 for a decode kernel with 256 keys in a block",
            )
        found[name] = int(value)
    return found


def _time(text: str) -> float:
    """Seconds since 1970 of a number, or of a time in ISO 8601, which is local where it names no zone."""
    import datetime

    try:
        return float(text)
    except ValueError:
        pass
    try:
        return datetime.datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        raise UsageError(
            f"--since {text}: no time", hint="as 2026-12-01T03:00:00, or seconds since 1970 (`date +%s`)"
        ) from None


def _iso(seconds: float) -> str:
    import datetime

    try:
        return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):  # a file may hold any number
        return f"{seconds:.0f} s"


def _head(trace: Trace, found: Found, checked: Checked, *, told: bool) -> list[str]:
    versions = ", ".join(
        f"{name.removesuffix('_version')} {version}"
        for name, version in trace.versions.items()
        if name != f"{trace.platform}_version"
    )
    began = "" if trace.started is None else f", began {_iso(trace.started / 1e9)}"
    lines = [
        trace.path,
        f"  {trace.platform}{began}{', ' + versions if versions else ''}, {trace.events} events of operations",
    ]
    if checked.steps is not None:
        lines.append(f"  {checked.steps} steps" + ("" if told else ", by the program that ran most often"))
    if trace.platform == "cpu":
        lines.append("  times of a CPU say nothing of a TPU")
    lines += [f"  not taken: {one.path}, {reason}" for one, reason in found.ignored[:_MOST_IGNORED]]
    if len(found.ignored) > _MOST_IGNORED:
        lines.append(f"  not taken: {len(found.ignored) - _MOST_IGNORED} files more")
    if trace.left_out:
        lines.append("  not counted: " + ", ".join(f"{what} x {count}" for what, count in trace.left_out.items()))
    lines += [f"  note: {note}" for note in trace.notes]
    return lines


def _table(checked: Checked, top: int) -> list[str]:
    shown = checked.rows[:top] if top else checked.rows
    total = sum(one.row.total for one in checked.rows) or 1
    groups: dict[tuple[str, int | None], list[Marked]] = {}
    for one in shown:
        groups.setdefault((one.row.program, one.row.program_id), []).append(one)
    per = "in step" if checked.steps is not None else "in run"
    lines = ["", f"  {'total ms':>11} {'share':>6} {'count':>7} {'avg us':>10} {'min us':>10} {'max us':>10} {per:>7}"]
    for (name, number), marked in groups.items():
        runs = marked[0].row.runs
        title = f"{name or '(program unknown)'}{'' if number is None else f' ({number})'}"
        rarer = ", fewer than the steps: prefill, or another bucket" if marked[0].phase == "prefill" else ""
        lines.append(title + ("" if runs is None else f": {runs} run{'' if runs == 1 else 's'}{rarer}"))
        for one in marked:
            row = one.row
            count = "" if one.per_step is None else str(one.per_step)
            mark = " (prefill)" if one.phase == "prefill" and runs is None else ""
            mark = " (not in every step)" if one.phase == "uneven" else mark
            lines.append(
                f"  {row.total / 1e9:>11.3f} {100 * row.total / total:>5.1f}% {row.occurrences:>7} "
                f"{row.average / 1e6:>10.2f} {row.least / 1e6:>10.2f} {row.most / 1e6:>10.2f} {count:>7}  "
                f"{row.name} {row.shape or '(shape unknown)'}{mark}"
            )
            more = [row.category, *row.sources[:1], "" if row.kernel is None else row.kernel.words()]
            if any(more):
                lines.append(" " * 70 + ", ".join(part for part in more if part))
    if len(shown) < len(checked.rows):
        lines.append(f"  and {len(checked.rows) - len(shown)} rows more (--top 0 for all)")
    return lines


def _trace_json(trace: Trace, found: Found) -> dict[str, Any]:
    return {
        "path": trace.path,
        "kind": trace.kind,
        "platform": trace.platform,
        "started": None if trace.started is None else _iso(trace.started / 1e9),
        "versions": trace.versions,
        "events": trace.events,
        "ignored": [{"path": one.path, "reason": reason} for one, reason in found.ignored],
        "left_out": trace.left_out,
        "notes": list(trace.notes),
        "programs": [
            {
                "device": program.device,
                "name": program.name,
                "id": None if program.id is None else str(program.id),
                "runs": program.runs,
                "total_us": None if program.total is None else program.total / 1e6,
            }
            for program in trace.programs
        ],
    }


# --- compare


def _compare(arguments: Namespace, before: str, after: str) -> int:
    from patchkit.bench.trace import change_json, compare, find_trace, read_trace

    output: Output = arguments.output
    steps = None if arguments.steps is None else _steps(arguments.steps, 2)
    found = [find_trace(path, newest=arguments.newest) for path in (before, after)]
    traces = [_read(output, one, read_trace) for one in found]
    for trace in traces:
        if not trace.ops:
            raise MeasurementError(
                f"{trace.path}: no operation was recorded",
                code="stale-trace",
                hint="the profiler must run while the programs do",
                details={"path": trace.path},
            )
    changes = compare(traces[0], traces[1], None if steps is None else (steps[0], steps[1]))
    notes = _differences(traces, changes)
    output.line(f"before: {traces[0].path}")
    output.line(f"after:  {traces[1].path}")
    for note in notes:
        output.paragraph(f"note: {note}", 2, "yellow", hanging=2)
    for line in _changes(changes, arguments.top):
        output.line(line)
    output.json(
        ok=True,
        before=_trace_json(traces[0], found[0]),
        after=_trace_json(traces[1], found[1]),
        notes=notes,
        changes=[change_json(change) for change in changes],
    )
    return 0


def _differences(traces: Sequence[Trace], changes: Sequence[Change]) -> list[str]:
    """What makes two traces no fair pair, in words."""
    a, b = traces
    notes = []
    if a.platform != b.platform:
        notes.append(f"one is of a {a.platform}, the other of a {b.platform}: times are not to be compared")
    for name in sorted({*a.versions, *b.versions}):
        was, now = a.versions.get(name, "unknown"), b.versions.get(name, "unknown")
        if was != now:
            notes.append(f"{name.removesuffix('_version')} {was} before, {now} after")
    scales = sorted({round(change.scale, 6) for change in changes if change.scale is not None})
    if any(change.scale is None for change in changes):
        notes.append("how often programs ran is not known of both: times are compared as they are, not step by step")
    if scales and scales != [1.0]:
        each = ", ".join(f"x {scale:.4g}" for scale in scales[:5])
        notes.append(f"they cover different numbers of steps: times after are scaled to the runs before ({each})")
    return notes


def _changes(changes: Sequence[Change], top: int) -> list[str]:
    shown = changes[:top] if top else changes
    lines = ["", f"  {'change ms':>11} {'before ms':>11} {'after ms':>11} {'ratio':>7}"]
    for change in shown:
        row = change.row
        ratio = "" if change.ratio is None else f"{change.ratio:.3f}"
        was = f", was {change.before.name}" if change.kind == "renamed" and change.before is not None else ""
        lines.append(
            f"  {change.change_ps / 1e9:>+11.3f} {change.before_ps / 1e9:>11.3f} {change.after_ps / 1e9:>11.3f} "
            f"{ratio:>7}  {change.kind}: {row.label()}{was}"
        )
        if change.before is not None and change.after is not None:
            old, new = (side.kernel for side in (change.before, change.after))
            if old is not None and new is not None and old != new:
                lines.append(" " * 46 + f"{old.words()} -> {new.words()}")
    total = [sum(getattr(change, name) for change in changes) / 1e9 for name in ("before_ps", "after_ps")]
    if len(shown) < len(changes):
        lines.append(f"  and {len(changes) - len(shown)} rows more (--top 0 for all)")
    lines.append(f"  in all: {total[0]:.3f} ms before, {total[1]:.3f} ms after")
    return lines
