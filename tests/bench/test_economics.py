"""The study's published figures, from its throughputs: one chip of 197 W at 1.20 dollars an hour."""

from __future__ import annotations

import pytest

from patchkit.bench.economics import costs, inter_token_latency
from patchkit.bench.report import Cost
from patchkit.model.recipe import Economics

STUDY = Economics(chip_watts=197, price_per_hour=1.20)


@pytest.mark.parametrize(
    ("throughput", "millijoule"), [(1540, "128"), (3577, "55"), (607, "325"), (13470, "14.6"), (19511, "10")]
)
def test_energy_of_a_token(throughput: float, millijoule: str) -> None:
    found = costs(STUDY, "treatment", throughput).millijoule_per_token
    assert found is not None
    assert f"{found:.{1 if '.' in millijoule else 0}f}" == millijoule


@pytest.mark.parametrize(("throughput", "millions"), [(1540, 4.62), (19511, 58.53)])
def test_tokens_for_a_dollar(throughput: float, millions: float) -> None:
    found = costs(STUDY, "baseline", throughput).tokens_per_dollar
    assert found is not None
    assert round(found / 1e6, 2) == millions


def test_more_chips_take_more_power_at_one_price() -> None:
    assert costs(STUDY._replace(chips=4), "baseline", 1000) == Cost("baseline", 788.0, 3e6)


def test_what_cannot_be_known() -> None:
    assert costs(STUDY, "baseline", None) == Cost("baseline", None, None)
    assert costs(STUDY, "baseline", 0.0) == Cost("baseline", None, None)
    assert costs(Economics(), "baseline", 100) == Cost("baseline", None, None)
    assert costs(Economics(chip_watts=100, price_per_hour=0), "treatment", 100) == Cost("treatment", 1000.0, None)


@pytest.mark.parametrize(
    ("requests", "throughput", "ttft", "milliseconds"),
    [(256, 13470, 0.187, 17.68), (512, 15338, 0.307, 31.23), (512, 21645.8, 0.222, 22.09)],
)
def test_inter_token_latency_divides_by_the_gaps(
    requests: int, throughput: float, ttft: float, milliseconds: float
) -> None:
    main = requests * 128 / throughput
    found = inter_token_latency(main, ttft, 128)
    assert found is not None
    assert round(1000 * found, 2) == milliseconds


def test_a_single_token_has_no_gap() -> None:
    assert inter_token_latency(1.0, 1.0, 1) is None
