"""Student's t against a printed table and scipy; intervals, levels and plans against values worked out by hand."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from patchkit.bench.stats import (
    deviation,
    f_quantile,
    incomplete_beta,
    interval,
    look_level,
    pairs_needed,
    sign_flip,
    t_cdf,
    t_quantile,
    t_tail,
)

#: The printed table of every textbook: degrees of freedom, then the upper 5, 2.5, 1 and 0.5 % points.
PRINTED = """
1 6.314 12.706 31.821 63.657
2 2.920 4.303 6.965 9.925
3 2.353 3.182 4.541 5.841
4 2.132 2.776 3.747 4.604
5 2.015 2.571 3.365 4.032
9 1.833 2.262 2.821 3.250
10 1.812 2.228 2.764 3.169
30 1.697 2.042 2.457 2.750
120 1.658 1.980 2.358 2.617
"""


@pytest.mark.parametrize("row", PRINTED.strip().splitlines())
def test_quantiles_of_the_printed_table(row: str) -> None:
    df, *points = map(float, row.split())
    for p, point in zip((0.95, 0.975, 0.99, 0.995), points, strict=True):
        assert t_quantile(p, df) == pytest.approx(point, abs=0.0006)
        assert -t_quantile(1 - p, df) == pytest.approx(t_quantile(p, df))
        assert t_tail(t_quantile(p, df), df) == pytest.approx(1 - p, rel=1e-12)


def test_t_in_closed_form() -> None:
    # One degree of freedom is Cauchy, two have P(T > x) = (1 - x / sqrt(x^2 + 2)) / 2.
    for x in (-7.0, -0.3, 0.0, 0.5, 12.0):
        assert t_cdf(x, 1) == pytest.approx(0.5 + math.atan(x) / math.pi, abs=1e-14)
        assert t_tail(x, 2) == pytest.approx((1 - x / math.sqrt(x * x + 2)) / 2, abs=1e-14)
    assert t_quantile(0.5, 3) == 0


def test_f_in_closed_form() -> None:
    # F(1, 1) is the square of a Cauchy, F(2, 2) has P(F <= x) = x / (1 + x).
    assert f_quantile(0.99, 1, 1) == pytest.approx(math.tan(math.pi / 2 * 0.99) ** 2, rel=1e-9)
    assert f_quantile(0.99, 2, 2) == pytest.approx(99, rel=1e-12)


def test_incomplete_beta_at_its_ends() -> None:
    assert (incomplete_beta(2, 3, -1.0), incomplete_beta(2, 3, 0.0), incomplete_beta(2, 3, 1.0)) == (0, 0, 1)
    assert incomplete_beta(1, 1, 0.3) == pytest.approx(0.3)


@pytest.mark.parametrize("df", [*range(1, 20), 49, 200])
def test_t_and_f_as_scipy_has_them(df: int) -> None:
    from scipy import stats

    for p in (0.0001, 0.005, 0.0131, 0.0253, 0.05, 0.2, 0.4, 0.6, 0.95, 0.9747, 0.9869, 0.99999):
        assert t_quantile(p, df) == pytest.approx(float(stats.t.ppf(p, df)), rel=1e-10)
        assert f_quantile(p, df, df + 2) == pytest.approx(float(stats.f.ppf(p, df, df + 2)), rel=1e-9)
    for x in (-40.0, -3.0, -0.1, 0.2, 1.0, 2.5, 30.0):
        assert t_cdf(x, df) == pytest.approx(float(stats.t.cdf(x, df)), rel=1e-10)


def test_interval_as_scipy_has_it() -> None:
    from scipy import stats

    ratios = [0.97, 1.01, 0.99, 1.04, 0.955]
    found = interval(ratios, 0.0131)
    logs = [math.log(ratio) for ratio in ratios]
    low, high = stats.t.interval(1 - 2 * 0.0131, 4, loc=sum(logs) / 5, scale=stats.sem(logs))
    assert (found.low, found.high) == (pytest.approx(math.exp(low)), pytest.approx(math.exp(high)))
    assert found.ratio == pytest.approx(stats.gmean(ratios))
    assert (found.level, found.pairs, found.deviation) == (0.0131, 5, pytest.approx(stats.tstd(logs)))


def test_equal_ratios_have_an_interval_of_no_width() -> None:
    found = interval([0.97] * 4, 0.0253)
    assert found.low == found.high == found.ratio == pytest.approx(0.97, rel=1e-15)
    assert found.deviation == 0


@pytest.mark.parametrize(("ratios", "level"), [([1.0], 0.05), ([1.0, 0.0], 0.05), ([1.0, 1.1], 0.5), ([1.0, 1.1], 0.0)])
def test_what_has_no_interval(ratios: list[float], level: float) -> None:
    with pytest.raises(ValueError, match=r"interval|above zero"):
        interval(ratios, level)


@pytest.mark.parametrize("given", [(0.0, 3), (1.0, 3), (0.5, 0)])
def test_what_has_no_quantile(given: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="no quantile"):
        t_quantile(*given)
    with pytest.raises(ValueError, match="no quantile"):
        f_quantile(given[0], 1, given[1])


def test_deviation() -> None:
    assert deviation([2.0]) == 0 == deviation([0.1, 0.1, 0.1])
    assert deviation([1.0, 2.0, 3.0]) == 1


def test_levels_of_the_design() -> None:
    assert look_level(3, 5) == 0.0253
    assert look_level(3, 10) == 0.0131


def test_a_single_look_spends_everything() -> None:
    assert [look_level(pairs, pairs) for pairs in range(1, 21)] == [0.05] * 20


def test_more_looks_spend_less_each() -> None:
    for least in range(2, 21):
        levels = [look_level(least, most) for most in range(least, 120)]
        assert all(one >= other for one, other in pairwise(levels)), least
        for most in range(least, 120):
            # Never less careful than an even split of 5 %, never more than 5 % each.
            assert 0.05 / (most - least + 1) - 1e-12 <= look_level(least, most) <= 0.05
    for most in range(2, 51):
        rows = [look_level(least, most) for least in range(2, min(most, 20) + 1)]
        assert all(one <= other for one, other in pairwise(rows)), most


def test_between_the_columns_of_the_table_the_next_one_counts() -> None:
    assert look_level(3, 21) == look_level(3, 25)
    assert look_level(31, 33) == look_level(20, 40)


def test_no_look() -> None:
    with pytest.raises(ValueError, match="no look from 5 to 3 pairs"):
        look_level(5, 3)


def test_pairs_needed() -> None:
    three_percent = -math.log(0.97)
    assert pairs_needed(0.021, three_percent) == 7
    assert pairs_needed(0.0, three_percent) == 3
    assert [pairs_needed(share, 1.0) for share in (1 / 3, 0.5, 1.0)] == [3, 5, 13]
    # Beyond the table twice the spread needs four times the pairs.
    assert pairs_needed(4.0, 1.0) == pytest.approx(4 * pairs_needed(2.0, 1.0), abs=4)
    with pytest.raises(ValueError, match="margin"):
        pairs_needed(0.1, 0.0)


def test_sign_flip() -> None:
    # Five of five on one side: one of 32 assignments of signs gives as much.
    assert sign_flip([0.99, 1.0, 1.01, 1.02, 1.0], 0.97) == 1 / 32
    # Offsets 3, 1, 1, 1, -1 add up to 5, which 1 + 4 of the 32 assignments reach: all plus, or one 1 minus.
    ratios = [math.exp(offset / 100) for offset in (3, 1, 1, 1, -1)]
    assert sign_flip(ratios, 1.0) == 5 / 32
    assert sign_flip([1 / ratio for ratio in ratios], 1.0) == 5 / 32
    assert sign_flip([1.0] * 4, 0.97) is None
    assert sign_flip([1.0] * 17, 0.97) is None
