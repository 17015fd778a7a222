"""Two traces against each other: what moved, appeared and vanished; pure.

Programs are matched first, by name and by what they are made of, since their numbers differ from run to run; then the
operations of each pair, by name and shape. Where a program ran more often in one trace than in the other, its times are
scaled to the runs of the first. What has no equal is matched once more without the compiler's own numbering and without
the sizes in an attention kernel's name, where that leaves one candidate on either side: an edit changes the numbers of
operations that it does not touch.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from patchkit.bench.trace.data import Row, Trace, row_json
from patchkit.bench.trace.names import base_of
from patchkit.bench.trace.table import tabulate
from patchkit.tuples import NamedTuple

_Program = tuple[str, int | None]


class Change(NamedTuple):
    """An operation in two traces.

    Attributes:
        kind: ``moved``, ``renamed`` (moved too, under another name), ``appeared`` or ``vanished``.
        before: Its row in the first trace; None where it appeared.
        after: Its row in the second; None where it vanished.
        before_ps: Its time in the first, on one device.
        after_ps: Its time in the second, on one device, scaled to as many runs as in the first.
        scale: What the second's time was multiplied by; None where the runs are not known and nothing was scaled.
    """

    kind: str
    before: Row | None
    after: Row | None
    before_ps: float
    after_ps: float
    scale: float | None

    @property
    def change_ps(self) -> float:
        """Picoseconds more in the second, on one device, at the runs of the first."""
        return self.after_ps - self.before_ps

    @property
    def ratio(self) -> float | None:
        """Time after by time before; None where it appeared or vanished, or took no time."""
        if self.before is None or self.after is None or not self.before_ps:
            return None
        return self.after_ps / self.before_ps

    @property
    def row(self) -> Row:
        """The row after, or the one before where it vanished."""
        row = self.after or self.before
        assert row is not None
        return row


def compare(a: Trace, b: Trace, steps: tuple[int, int] | None = None) -> list[Change]:
    """What the second trace has otherwise than the first, the largest change of time first.

    Args:
        a: The trace before.
        b: The trace after.
        steps: How many steps each covers; by default each program is scaled by its own runs.
    """
    rows_a, rows_b = _by_program(tabulate(a)), _by_program(tabulate(b))
    overall = steps[0] / steps[1] if steps is not None else None
    pairs = _pairs(rows_a, rows_b)
    scales = {one: overall or _scale(rows_a[one], rows_b[other]) for one, other in pairs.items()}
    # A program of one side only is scaled by what most of the others are scaled by.
    common = overall or _common(list(scales.values()))
    changes: list[Change] = []
    taken = set(pairs.values())
    for program, rows in rows_a.items():
        other = pairs.get(program)
        changes += _rows(rows, [] if other is None else rows_b[other], scales.get(program, common))
    for program, rows in rows_b.items():
        if program not in taken:
            changes += _rows([], rows, common)
    changes.sort(key=lambda change: (-abs(change.change_ps), change.row.label()))
    return changes


def change_json(change: Change) -> dict[str, Any]:
    """The change as JSON values; times in microseconds."""
    return {
        "kind": change.kind,
        "before": None if change.before is None else row_json(change.before),
        "after": None if change.after is None else row_json(change.after),
        "before_us": change.before_ps / 1e6,
        "after_us": change.after_ps / 1e6,
        "change_us": change.change_ps / 1e6,
        "ratio": change.ratio,
        "scale": change.scale,
    }


def _by_program(rows: Sequence[Row]) -> dict[_Program, list[Row]]:
    found: dict[_Program, list[Row]] = {}
    for row in rows:
        found.setdefault((row.program, row.program_id), []).append(row)
    return found


def _pairs(a: dict[_Program, list[Row]], b: dict[_Program, list[Row]]) -> dict[_Program, _Program]:
    """Programs of one name, those that have most in common first."""
    keys_a, keys_b = ({key: _made_of(rows) for key, rows in side.items()} for side in (a, b))
    found: dict[_Program, _Program] = {}
    by_name: dict[str, list[_Program]] = {}
    for key in b:
        by_name.setdefault(key[0], []).append(key)
    candidates = []
    for one in a:
        for other in by_name.get(one[0], ()):
            shared = len(keys_a[one] & keys_b[other])
            if shared:
                likeness = shared / len(keys_a[one] | keys_b[other])
                candidates.append((-likeness, -sum(row.total for row in a[one]), str(one), str(other), one, other))
    taken: set[_Program] = set()
    for _, _, _, _, one, other in sorted(candidates, key=lambda candidate: candidate[:4]):
        if one not in found and other not in taken:
            found[one] = other
            taken.add(other)
    return found


def _made_of(rows: Sequence[Row]) -> set[tuple[str, str | None]]:
    return {(base_of(row.name), row.shape) for row in rows}


def _scale(a: Sequence[Row], b: Sequence[Row]) -> float | None:
    runs_a, runs_b = a[0].runs, b[0].runs
    if not runs_a or not runs_b:
        return None
    # Of one device: a trace of four chips has four times the runs.
    return (runs_a / max(row.devices for row in a)) / (runs_b / max(row.devices for row in b))


def _common(scales: Sequence[float | None]) -> float | None:
    known = sorted(scale for scale in scales if scale is not None)
    return known[len(known) // 2] if known else None


def _rows(a: Sequence[Row], b: Sequence[Row], scale: float | None) -> list[Change]:
    """The changes of one pair of programs; of one side only where the other has none."""
    found: list[Change] = []
    left_a, left_b = list(a), list(b)
    keys: tuple[tuple[str, Callable[[Row], Hashable]], ...] = (
        ("moved", lambda row: (row.name, row.shape)),
        ("renamed", lambda row: (base_of(row.name), row.shape, row.scope, _often(row))),
        ("renamed", lambda row: (base_of(row.name), row.shape, row.scope)),
        ("renamed", lambda row: (base_of(row.name), row.shape)),
    )
    for kind, key in keys:
        only_a, only_b = _unique(left_a, key), _unique(left_b, key)
        for same in only_a.keys() & only_b.keys():
            before, after = only_a[same], only_b[same]
            found.append(_change(kind, before, after, scale))
        done = only_a.keys() & only_b.keys()
        left_a = [row for row in left_a if key(row) not in done]
        left_b = [row for row in left_b if key(row) not in done]
    found += [_change("vanished", row, None, scale) for row in left_a]
    found += [_change("appeared", None, row, scale) for row in left_b]
    return found


def _unique(rows: Sequence[Row], key: Callable[[Row], Hashable]) -> dict[Hashable, Row]:
    seen: dict[Hashable, list[Row]] = {}
    for row in rows:
        seen.setdefault(key(row), []).append(row)
    return {name: same[0] for name, same in seen.items() if len(same) == 1}


def _often(row: Row) -> float | None:
    return row.occurrences / row.runs if row.runs else None


def _change(kind: str, before: Row | None, after: Row | None, scale: float | None) -> Change:
    return Change(
        kind,
        before,
        after,
        before.total / before.devices if before is not None else 0.0,
        after.total / after.devices * (scale if scale is not None else 1.0) if after is not None else 0.0,
        scale,
    )
