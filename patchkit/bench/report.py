"""The report as data: made by judging a session's observations, rendered by whoever shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from patchkit.bench.observation import Observation
from patchkit.model.recipe import ArmName, Figure, Gate
from patchkit.tuples import NamedTuple

SCHEMA = 1
"""Of ``report.json``."""

Verdict = Literal["pass", "regressed", "inconclusive", "invalid", "error"]
Kind = Literal["preflight", "discarded", "measured", "confirm", "traced"]
#: ``noted``: worth knowing, and no reason to refuse.
CheckState = Literal["held", "failed", "not-checked", "noted"]


class Run(NamedTuple):
    """One process of a session: the ``order``-th that was started (from 1), of ``pair`` (from 1; None: of none).

    ``confirm`` is the baseline measured anew after a revert. ``started`` is ISO 8601, ``seconds`` the whole process.
    """

    order: int
    point: str
    arm: ArmName
    kind: Kind
    pair: int | None
    started: str
    seconds: float
    observation: Observation


class Interval(NamedTuple):
    """The ratio treatment / baseline: geometric mean over pairs, with the interval of the look that decided."""

    ratio: float
    low: float
    high: float
    level: float
    pairs: int
    deviation: float


class MetricResult(NamedTuple):
    """One metric of one point. ``baseline`` and ``treatment`` are medians over the measured runs.

    ``ratios`` are the pairs', in order. ``verdict`` is None for a metric that is only shown. ``kind`` of a pass:
    ``improved``, ``equal``, or None where the interval allows either a small gain or a small loss. ``advice`` says what
    an inconclusive one would need. ``tripped``: the tripwire decided, after two pairs.
    """

    metric: str
    unit: str
    better: Literal["higher", "lower"]
    baseline: float | None
    treatment: float | None
    ratios: tuple[float, ...]
    interval: Interval | None
    gate: Gate | None
    verdict: Verdict | None
    kind: Literal["improved", "equal"] | None = None
    tripped: bool = False
    reason: str = ""
    advice: str | None = None
    figure: Figure | None = None


class Check(NamedTuple):
    """One condition of validity, with the evidence that it was judged by, in words."""

    name: str
    state: CheckState
    text: str


class Cost(NamedTuple):
    """Economics of one arm: mJ per output token (rated power: an upper bound), output tokens per dollar."""

    arm: ArmName
    millijoule_per_token: float | None
    tokens_per_dollar: float | None


class PointResult(NamedTuple):
    """One comparison, judged. ``touch`` tells a loss at first touch from a slower steady state, where there is one."""

    label: str
    verdict: Verdict
    kind: Literal["improved", "equal"] | None
    reason: str
    metrics: tuple[MetricResult, ...]
    checks: tuple[Check, ...]
    costs: tuple[Cost, ...] = ()
    touch: str | None = None


class PatchUsed(NamedTuple):
    """A patch of the experiment, by its digest (SHA-256 of the file)."""

    name: str
    digest: str
    distribution: str | None = None
    version: str | None = None


class Aftermath(NamedTuple):
    """What was done to the site: ``kept``, ``reverted``, ``unchanged``, ``in-memory``; and the baseline after it.

    ``not-put-back``: something was in the way, as ``text`` says, and the site is not what it is to be.
    ``confirmed`` is the ratio of the baseline's throughput (or first gated metric) after the revert to that before it.
    """

    action: Literal["kept", "reverted", "unchanged", "in-memory", "not-put-back"]
    text: str
    confirmed: float | None = None


class Report(NamedTuple):
    """One session. ``label`` must stand wherever its times do; ``trace`` is what changed between traces, as rows."""

    recipe: str
    summary: str
    digest: str
    verdict: Verdict
    kind: Literal["improved", "equal"] | None
    reason: str
    points: tuple[PointResult, ...]
    runs: tuple[Run, ...]
    patches: tuple[PatchUsed, ...]
    aftermath: Aftermath
    started: str
    seconds: float
    folder: str
    site: str
    engine: str
    versions: Mapping[str, str]
    machine: Mapping[str, str]
    label: str | None = None
    source: str | None = None
    notes: tuple[str, ...] = ()
    trace: tuple[Mapping[str, Any], ...] = ()
