"""Statistics of paired runs: Student's t, the interval of a ratio, the level of a look, and how many pairs to plan.

Ratios are treatment / baseline of one pair; everything is done on their logarithms. Pure, standard library only;
checked against scipy in the tests. The tables come from ``benchmarks/rebench.py --calibrate``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

from patchkit.bench.levels import COLUMNS, LEVELS, REACH
from patchkit.bench.report import Interval

ERROR = 0.05
"""What a whole experiment may err, on either side, where the true ratio is exactly the gate's."""

MOST_FLIPPED = 16
"""Most pairs for which all signs are flipped: 65,536 sums."""


def t_tail(x: float, df: float) -> float:
    """P(T > x) of Student's t with ``df`` degrees of freedom."""
    tail = incomplete_beta(df / 2, 0.5, df / (df + x * x)) / 2
    return tail if x >= 0 else 1 - tail


def t_cdf(x: float, df: float) -> float:
    """P(T <= x) of Student's t with ``df`` degrees of freedom."""
    return t_tail(-x, df)


@lru_cache(maxsize=512)
def t_quantile(p: float, df: float) -> float:
    """The x at which P(T <= x) is ``p`` (0 < p < 1).

    Raises:
        ValueError: ``p`` or ``df`` is out of its range.
    """
    if not 0 < p < 1 or df <= 0:
        raise ValueError(f"no quantile of t at p = {p} with {df} degrees of freedom")
    if p == 0.5:
        return 0.0
    if p < 0.5:
        return -_solve(lambda x: t_tail(x, df), p)
    return _solve(lambda x: t_tail(x, df), 1 - p)


@lru_cache(maxsize=512)
def f_quantile(p: float, df1: float, df2: float) -> float:
    """The x at which P(F <= x) is ``p`` (0 < p < 1), of the ratio of two variances.

    Raises:
        ValueError: ``p`` or a number of degrees of freedom is out of its range.
    """
    if not 0 < p < 1 or df1 <= 0 or df2 <= 0:
        raise ValueError(f"no quantile of F at p = {p} with {df1} and {df2} degrees of freedom")
    return _solve(lambda x: incomplete_beta(df2 / 2, df1 / 2, df2 / (df2 + df1 * x)), 1 - p)


def _solve(tail: Callable[[float], float], wanted: float) -> float:
    """The x > 0 at which a falling ``tail`` is ``wanted``, to the last bits of a float."""
    low, high = 0.0, 1.0
    while tail(high) > wanted:
        low, high = high, high * 2
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if tail(middle) > wanted:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (DLMF 8.17.22)."""
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    if x > (a + 1) / (a + b + 2):  # beyond it the fraction of the other tail converges faster
        return 1.0 - incomplete_beta(b, a, 1 - x)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x) - math.log(a)
    )
    # Lentz's method: c and d are ratios of neighbouring numerators and denominators.
    c, d = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 1000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 / (1.0 + term * d)
            c = 1.0 + term / c
            value *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return front * value


def interval(ratios: Sequence[float], level: float) -> Interval:
    """The geometric mean of at least two ratios, with its bounds by Student's t.

    ``level`` is the one-sided error of each bound: the whole is an interval of confidence 1 - 2 ``level``. Equal ratios
    have an interval of no width.

    Raises:
        ValueError: Fewer than two ratios, one that is not above zero, or a level outside of (0, 0.5).
    """
    if len(ratios) < 2 or not 0 < level < 0.5:
        raise ValueError(f"no interval of {len(ratios)} ratios at the level {level}")
    if min(ratios) <= 0:
        raise ValueError(f"a ratio is above zero, unlike {min(ratios)}")
    logs = [math.log(ratio) for ratio in ratios]
    mean, spread = math.fsum(logs) / len(logs), deviation(logs)
    half = t_quantile(1 - level, len(logs) - 1) * spread / math.sqrt(len(logs)) if spread else 0.0
    return Interval(math.exp(mean), math.exp(mean - half), math.exp(mean + half), level, len(logs), spread)


def deviation(values: Sequence[float]) -> float:
    """The sample's standard deviation; exactly 0 of equal values, and of fewer than two."""
    if len(values) < 2 or min(values) == max(values):
        return 0.0
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def sign_flip(ratios: Sequence[float], limit: float) -> float | None:
    """The exact one-sided p by flipping signs that the ratios lie on their side of ``limit`` by chance.

    It supposes nothing of the noise but symmetry, so it stands beside the t interval as a check. None for more than
    :data:`MOST_FLIPPED` ratios, and for fewer than five: those can never reach 5 %.
    """
    if not 5 <= len(ratios) <= MOST_FLIPPED:
        return None
    offsets = [math.log(ratio) - math.log(limit) for ratio in ratios]
    seen = abs(math.fsum(offsets))
    sums = [0.0]
    for offset in offsets:
        sums = [total + sign * abs(offset) for total in sums for sign in (1, -1)]
    return sum(total >= seen - 1e-12 for total in sums) / len(sums)


def look_level(pairs_min: int, pairs_max: int) -> float:
    """The one-sided level of each look from ``pairs_min`` to ``pairs_max`` pairs: all looks together err 5 %.

    A single pair has no interval, so looks begin at two. Between the entries of the table, and beyond it, the level is
    that of more looks: what errs less.

    Raises:
        ValueError: There is no look between the two.
    """
    least, most = max(2, pairs_min), max(2, pairs_max)
    if least > most:
        raise ValueError(f"no look from {pairs_min} to {pairs_max} pairs")
    row = max(known for known in LEVELS if known <= least)
    column = next((known for known in COLUMNS if known >= most), None)
    if column is None:
        return ERROR / (most - least + 1)
    return LEVELS[row][COLUMNS.index(column) - COLUMNS.index(row)] / 1e5


def pairs_needed(deviation: float, margin: float) -> int:
    """How many pairs at most a session should be given, so that 85 of 100 without an effect pass.

    ``deviation`` is that of the pairs' log ratios, ``margin`` the gate's distance from 1, likewise.

    Raises:
        ValueError: The margin is not above zero.
    """
    if margin <= 0:
        raise ValueError(f"no number of pairs for a margin of {margin}")
    share, most = deviation / margin, max(REACH)
    beyond = math.ceil(most * (share / REACH[most]) ** 2)
    return next((pairs for pairs, reach in REACH.items() if reach >= share), beyond)
