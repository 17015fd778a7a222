"""What a session says of its end: whom a failed preflight blames, what became of the site, the baseline after it."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

from patchkit.bench.report import Aftermath, PointResult, Run

if TYPE_CHECKING:
    from patchkit.bench.plan import Plan
    from patchkit.model.recipe import Point, Recipe


def told_preflight(point: Point, result: PointResult, runs: Sequence[Run]) -> PointResult:
    """The result of a point, where its preflight failed with whether the baseline failed it too."""
    flights = {run.arm: run for run in runs if run.kind == "preflight" and run.point == point.label}
    if len(flights) < 2:
        return result
    failure = flights["baseline"].observation.failure
    if failure is None:
        return result._replace(reason=f"{result.reason}; the baseline passes the same preflight")
    text = f"the baseline fails the same preflight, so what is on trial is not to blame: {failure.message}"
    return result._replace(reason=f"{text}; treatment: {result.reason}; --no-preflight measures without it")


def confirmed(recipe: Recipe, runs: Sequence[Run], confirm: Run | None) -> float | None:
    """The ratio of the baseline after the revert to its median before: of throughput, or the first gated metric."""
    if confirm is None:
        return None
    names = ["throughput", *(gate.metric for gate in recipe.gates.metrics), *confirm.observation.metrics]
    for name in names:
        before = [
            run.observation.metrics[name].value
            for run in runs
            if run.kind == "measured" and run.arm == "baseline" and name in run.observation.metrics
        ]
        if before and name in confirm.observation.metrics and median(before):
            return confirm.observation.metrics[name].value / median(before)
    return None


def aftermath_text(plan: Plan, verdict: str, ratio: float | None, confirm: Run | None) -> Aftermath:
    """What became of the site, in words."""
    names = ", ".join(plan.recipe.patches)
    if not plan.patches:
        return Aftermath("unchanged", "as it was: no patch is on trial")
    if plan.options.in_memory:
        more = f"; what passed goes in with `patchkit apply {names.replace(',', '')}`" if verdict == "pass" else ""
        return Aftermath("in-memory", f"as it was: the patches were in memory only{more}")
    if not names:
        return Aftermath("unchanged", "as it was: no patch is on trial")
    if verdict == "pass" and plan.known_bad:
        bad = ", ".join(plan.known_bad)
        return Aftermath("reverted", f"{names} was taken back: {bad} is tagged known-bad, --allow-known-bad keeps it")
    if verdict == "pass":
        return Aftermath("kept", f"{names} stays applied")
    if verdict == "inconclusive" and plan.options.keep:
        return Aftermath("kept", f"{names} stays applied (--on-inconclusive keep)")
    had = sorted({one.name for one in plan.before} & set(plan.recipe.patches))
    text = f"{names} was taken back" + (f"; {', '.join(had)} had been applied before" if had else ", as it was before")
    if confirm is not None and confirm.observation.failure is not None:
        text += f"; the baseline could not be measured again: {confirm.observation.failure.message}"
    elif ratio is not None:
        text += f"; the baseline then measured {100 * ratio:.1f} % of what it did before"
    return Aftermath("reverted", text, ratio)
