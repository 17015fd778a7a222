"""From a trace to the rows of its table, and what the rows must be for the trace to be believed: pure."""

from __future__ import annotations

from collections.abc import Sequence

from patchkit.bench.trace.data import Op, Row, Trace
from patchkit.bench.trace.names import Kernel, carries, kernel_of, without_layout
from patchkit.tuples import NamedTuple

#: Sources of a row that are kept.
_MOST_SOURCES = 5
#: Rows of one kind that findings name.
_MOST_TOLD = 5


def tabulate(trace: Trace) -> list[Row]:
    """The rows by program, operation and shape, the longest in all first."""
    groups: dict[tuple[str, int | None, str, str | None], list[Op]] = {}
    for op in trace.ops:
        groups.setdefault((op.program, op.program_id, op.name, op.shape), []).append(op)
    runs = runs_of(trace)
    rows = []
    for (program, number, name, shape), ops in groups.items():
        sources: dict[str, int] = {}
        for op in ops:
            if op.source:
                sources[op.source] = sources.get(op.source, 0) + op.occurrences
        rows.append(
            Row(
                program,
                number,
                name,
                shape,
                ops[0].category,
                ops[0].scope,
                tuple(sorted(sources, key=lambda source: (-sources[source], source))[:_MOST_SOURCES]),
                len({op.device for op in ops}),
                sum(op.occurrences for op in ops),
                runs.get((program, number)),
                sum(op.total for op in ops),
                min(op.least for op in ops),
                max(op.most for op in ops),
                kernel_of(name, ops[0].scope),
            )
        )
    rows.sort(key=lambda row: (-row.total, row.program, row.program_id or 0, row.name, row.shape or ""))
    return rows


def runs_of(trace: Trace) -> dict[tuple[str, int | None], int]:
    """How often each program ran, on all devices together."""
    runs: dict[tuple[str, int | None], int] = {}
    for program in trace.programs:
        key = (program.name, program.id)
        runs[key] = runs.get(key, 0) + program.runs
    return runs


class Expected(NamedTuple):
    """What is known of the job that was traced; None or empty where it is not.

    Attributes:
        batch: Requests in a step: the first size of the arrays of its operations.
        shapes: Shapes that a row must have, with or without layout.
        steps: Decode steps within the trace.
        layers: Layers of the model.
        kernels: Attention kernels that must have run in a decode step.
        absent: Attention kernels that must not have.
    """

    batch: int | None = None
    shapes: tuple[str, ...] = ()
    steps: int | None = None
    layers: int | None = None
    kernels: tuple[dict[str, int | str], ...] = ()
    absent: tuple[dict[str, int | str], ...] = ()


class Finding(NamedTuple):
    """Something that is not as it must be; ``stale`` where the trace is not of this job at all."""

    kind: str
    message: str


class Marked(NamedTuple):
    """A row with what it is a row of.

    ``phase`` is ``decode`` (as often in each step), ``prefill`` (as often in each run of a program that ran less often
    than there were steps), ``uneven`` (neither), or empty where the steps are not known. ``per_step`` counts it in one
    step of one device, or in one run of its program.
    """

    row: Row
    phase: str = ""
    per_step: int | None = None


class Checked(NamedTuple):
    """The rows, how many decode steps there were, and what is wrong."""

    rows: tuple[Marked, ...]
    steps: int | None
    findings: tuple[Finding, ...]

    @property
    def stale(self) -> bool:
        """Whether the trace is of another job."""
        return any(finding.kind == "stale" for finding in self.findings)


def check(trace: Trace, rows: Sequence[Row], expected: Expected) -> Checked:
    """Hold the rows against what is known of the job.

    Counts are held against each other in any case, and told as findings where steps or layers are known.
    """
    findings = _authentic(trace, rows, expected)
    runs = _runs_each(trace)
    steps = steps_of(trace, rows, expected.batch) if expected.steps is None else expected.steps
    marked = tuple(_mark(row, runs.get((row.program, row.program_id)), expected, steps) for row in rows)
    if not findings:
        if expected.steps is not None:
            findings += _steps(rows, runs, expected.steps)
        if expected.steps is not None or expected.layers is not None:
            findings += _counts(marked, expected)
        findings += _kernels(marked, expected)
    return Checked(marked, steps, tuple(findings))


def _authentic(trace: Trace, rows: Sequence[Row], expected: Expected) -> list[Finding]:
    if not rows:
        return [Finding("stale", "no operation was recorded: no program ran meanwhile, or only the host was traced")]
    found = []
    seen = ", ".join(list(dict.fromkeys(row.shape for row in rows if row.shape))[:5]) or "no shape at all"
    if expected.batch is not None and not any(carries(row.shape, expected.batch) for row in rows):
        found.append(
            Finding(
                "stale",
                f"no operation carries the batch {expected.batch}: a stale or foreign trace; its longest have {seen}",
            )
        )
    present = {row.shape for row in rows}
    for shape in expected.shapes:
        bare = without_layout(shape)
        if bare not in present:
            message = f"no operation has the shape {bare}: a stale or foreign trace; its longest have {seen}"
            found.append(Finding("stale", message))
    return found


def steps_of(trace: Trace, rows: Sequence[Row], batch: int | None = None) -> int | None:
    """The decode steps in a trace, by its own account: the runs, on one device, of the program that ran most often.

    Only programs that carry the batch count, where that is given, and of those the ones with a tenth of the time.
    """
    times: dict[tuple[str, int | None], int] = {}
    carrying = set()
    for row in rows:
        key = (row.program, row.program_id)
        times[key] = times.get(key, 0) + row.total
        if batch is None or carries(row.shape, batch):
            carrying.add(key)
    runs = _runs_each(trace)
    least = sum(times[key] for key in carrying) / 10
    return max((runs[key] for key in carrying if times[key] >= least and key in runs), default=None)


def _runs_each(trace: Trace) -> dict[tuple[str, int | None], int]:
    """How often each program ran on one device."""
    devices: dict[tuple[str, int | None], set[str]] = {}
    for program in trace.programs:
        devices.setdefault((program.name, program.id), set()).add(program.device)
    return {key: runs // len(devices[key]) for key, runs in runs_of(trace).items()}


def _mark(row: Row, runs: int | None, expected: Expected, steps: int | None) -> Marked:
    """The phase of a row, by how often its program ran on one device, and how often it itself."""
    each, rest = divmod(row.occurrences, row.devices)
    if rest:
        return Marked(row, "uneven")
    if steps is None:
        return Marked(row, "", each // runs) if runs and each % runs == 0 else Marked(row)
    if runs is None:
        layers = expected.layers
        if each % steps == 0:
            return Marked(row, "decode", each // steps)
        if layers and each % layers == 0 and each < steps * layers:
            return Marked(row, "prefill", layers)
    elif runs < steps and each % runs == 0:
        return Marked(row, "prefill", each // runs)
    elif runs >= steps and each % steps == 0:
        return Marked(row, "decode", each // steps)
    return Marked(row, "uneven")


def _steps(rows: Sequence[Row], runs: dict[tuple[str, int | None], int], steps: int) -> list[Finding]:
    """Whether some program ran as often as there were steps."""
    known = list(dict.fromkeys((row.program, row.program_id) for row in rows if (row.program, row.program_id) in runs))
    if not known or any(runs[key] == steps for key in known):
        return []
    told = ", ".join(
        f"{name or 'one without a name'} {runs[name, number]} times" for name, number in known[:_MOST_TOLD]
    )
    message = f"no program ran {steps} times, as often as there were steps: the trace covers another part of the job, "
    return [Finding("steps", f"{message}or lost events; ran: {told}")]


def _counts(marked: Sequence[Marked], expected: Expected) -> list[Finding]:
    """What is wrong with how often things ran."""
    uneven = [one.row for one in marked if one.phase == "uneven"]
    found = []
    for row in uneven[:_MOST_TOLD]:
        where = f" on {row.devices} devices" if row.devices > 1 else ""
        message = (
            f"{row.label()}: {row.occurrences} occurrences{where} are not as many in each step: events were lost, "
        )
        more = "the trace begins or ends within a step, or not every step has it"
        found.append(Finding("count", message + more))
    if len(uneven) > _MOST_TOLD:
        found.append(Finding("count", f"and {len(uneven) - _MOST_TOLD} rows more"))
    layers = expected.layers
    decode = [one for one in marked if one.phase == "decode" and one.per_step]
    if layers:
        found += [
            Finding("layers", f"{one.row.label()} runs {one.per_step} times in a step; there are {layers} layers")
            for one in decode
            if kernel_of(one.row.name) is not None and one.per_step != layers
        ]
        if not any(one.per_step is not None and one.per_step % layers == 0 for one in decode):
            found.append(Finding("layers", f"no operation runs {layers} times in a step, once in each layer"))
    return found


def _kernels(marked: Sequence[Marked], expected: Expected) -> list[Finding]:
    considered = [one.row for one in marked if one.phase in ("", "decode")]
    kernels = list(dict.fromkeys(row.kernel for row in considered if row.kernel is not None))
    ran = "; ".join(kernel.words() for kernel in kernels) or "none whose name is known"
    found = [
        Finding("kernel", f"no attention kernel with {_words(wanted)} ran in a decode step; ran: {ran}")
        for wanted in expected.kernels
        if not any(_is(kernel, wanted) for kernel in kernels)
    ]
    for unwanted in expected.absent:
        found += [
            Finding("kernel", f"an attention kernel with {_words(unwanted)} ran in a decode step: {kernel.words()}")
            for kernel in kernels
            if _is(kernel, unwanted)
        ]
    return found


def _is(kernel: Kernel, wanted: dict[str, int | str]) -> bool:
    fields = kernel._asdict()
    return all(fields[name] == value for name, value in wanted.items())


def _words(wanted: dict[str, int | str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in wanted.items())
