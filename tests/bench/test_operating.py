"""``benchmarks/rebench.py`` on few sessions: the rule errs as often as it says, and the tables are what it prints."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import rebench as simulation

from patchkit.bench.levels import COLUMNS, LEVELS, REACH

BY_NAME = {scenario.name: scenario for scenario in simulation.SCENARIOS}
#: What matters most: no false alarm, no missed loss of the study's size, 5 % on either side at the gate.
CELLS = [
    ("quiet", "0"),
    ("quiet", "1 %"),
    ("quiet", "3 %"),
    ("quiet", "5 %"),
    ("quiet", "26 %"),
    ("quiet", "gain 24 %"),
    ("quiet+dip", "0"),
    ("quiet+dip", "10 %"),
    ("ttft", "0"),
    ("ttft", "10 %"),
    ("ttft", "26 %"),
    ("ttft", "x4.4"),
    ("cpu5", "0"),
    ("cpu5", "10 %"),
    ("cpu10", "0"),
    ("cpu10", "26 %"),
    ("cpu10", "x4.4"),
    ("cpu10 wide", "0"),
]


@pytest.mark.parametrize(("name", "effect"), CELLS)
def test_a_cell_is_that_of_the_reference(name: str, effect: str) -> None:
    scenario = BY_NAME[name]
    found = simulation.cell(scenario, effect, 200, 1)
    for verdict, off, chance in simulation.deviations(scenario, effect, found, 200):
        assert abs(off) <= chance, (verdict, str(found))
    assert found.pairs == pytest.approx(simulation.reference(scenario, effect).pairs, abs=0.5)


def test_a_session_is_the_same_whenever_it_is_drawn() -> None:
    assert simulation.cell(BY_NAME["cpu10"], "3 %", 20, 5) == simulation.cell(BY_NAME["cpu10"], "3 %", 20, 5)


def test_the_levels_are_those_of_a_calibration() -> None:
    # 8,000 sessions with their mirror images know a level to 4 %.
    for least, row in simulation.levels(4000, 3):
        assert row == [pytest.approx(known, rel=0.15) for known in LEVELS[least]]
        assert len(row) == len([most for most in COLUMNS if most >= least])


def test_the_reach_is_that_of_a_calibration() -> None:
    assert list(simulation.reach(2000, 3, 0.85).items()) == [(n, pytest.approx(r, rel=0.08)) for n, r in REACH.items()]


def test_it_prints_its_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulation.main(["--sessions", "3", "--only", "quiet"]) == 0
    printed = capsys.readouterr().out
    assert "| quiet (3%, 5, 20%) | 0/100/0, 3.0 | 0/100/0, 3.0 |" in printed
    assert "Beyond chance (three standard errors) of the reference:" in printed
