"""What the profiled runs of both arms show: the operations that moved between them, as rows of the report."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from patchkit.errors import PatchkitError

if TYPE_CHECKING:
    from patchkit.bench.report import Run
    from patchkit.bench.trace import Change

#: Rows that a report has; `patchkit trace compare` has them all.
MOST = 40
#: Picoseconds below which an operation has not moved: the profiler's own clock is no finer.
LEAST_PS = 1_000


def traced_rows(folders: Mapping[str, str]) -> tuple[tuple[Mapping[str, Any], ...], list[str]]:
    """The rows of what changed from the baseline's trace to the treatment's, and what is to be said of them.

    Args:
        folders: The folder of each arm's profiled run; both, or there is nothing to compare.
    """
    if set(folders) != {"baseline", "treatment"}:
        return (), []
    from patchkit.bench.trace import compare, find_trace, read_trace

    way = f"patchkit trace compare {folders['baseline']} {folders['treatment']}"
    try:
        before, after = (
            read_trace(find_trace(folders[arm], newest=True, cwd=folders[arm]).taken.path)
            for arm in ("baseline", "treatment")
        )
        changes = compare(before, after)
    except PatchkitError as error:
        return (), [f"the profiled runs cannot be compared: {error.message}"]
    moved = [change for change in changes if abs(change.change_ps) >= LEAST_PS or change.kind != "moved"]
    more = f", the {MOST} largest of them here" if len(moved) > MOST else ""
    return tuple(_row(change) for change in moved[:MOST]), [
        f"{len(moved)} of {len(changes)} operations moved between the profiled runs{more}; all: {way}"
    ]


def folders_of(session: str, runs: Sequence[Run]) -> dict[str, str]:
    """The folder of each arm's last profiled run."""
    found: dict[str, str] = {}
    for run in runs:
        if run.kind == "traced":
            start = f"{run.order:03d}-"
            names = [name for name in os.listdir(session) if name.startswith(start)]
            if names:
                found[run.arm] = os.path.join(session, names[0])
    return found


def _row(change: Change) -> dict[str, Any]:
    row = change.row
    return {
        "program": row.program,
        "operation": row.name,
        "shape": row.shape or "",
        "change": change.kind,
        "before us": round(change.before_ps / 1e6, 3),
        "after us": round(change.after_ps / 1e6, 3),
        "more us": round(change.change_ps / 1e6, 3),
    }
