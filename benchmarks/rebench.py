"""How often ``rebench`` is right: sessions of known effect and noise, judged by the code that judges real ones.

    python benchmarks/rebench.py [--sessions N] [--seed S] [--processes P] [--only NAME] [--json]
    python benchmarks/rebench.py --calibrate [--sessions N]

Nothing is measured, so the numbers are the same on every machine: each run of a session is a throughput drawn from a
noise model, and ``patchkit.bench.judge.decided`` is asked after every pair, as a session asks it. Printed are the
shares of sessions that end regressed / pass / inconclusive (/ invalid, where there are any) and the mean number of
pairs. ``--calibrate`` prints the tables of ``patchkit/bench/levels.py``.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import random
import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

from patchkit.bench.judge import decided
from patchkit.bench.levels import COLUMNS, LEVELS
from patchkit.bench.observation import Fired, Measured, Observation, Tokens
from patchkit.bench.report import Run
from patchkit.bench.stats import ERROR, t_quantile, t_tail
from patchkit.model.recipe import Arm, ArmName, Engine, Gate, Gates, Point, Protocol, Recipe, Workload

#: What an effect does to the throughput.
EFFECTS = {
    "gain 24 %": 1.24,
    "0": 1.0,
    "1 %": 0.99,
    "3 %": 0.97,
    "5 %": 0.95,
    "10 %": 0.90,
    "26 %": 0.74,
    "x4.4": 1 / 4.4,
}


class Scenario(NamedTuple):
    """A noise on the logarithm of a run's time, and the protocol that it is met with.

    ``metric`` is ``throughput``, with ``trip`` as a loss of it, or ``ttft``, with ``trip`` as a gain of time.
    """

    name: str
    metric: Literal["throughput", "ttft"]
    margin: float
    pairs_max: int
    trip: float
    noise: Callable[[random.Random, int], Iterator[float]]


def quiet(draw: random.Random, runs: int) -> Iterator[float]:
    """The study's machines: 0.3 %."""
    for _ in range(runs):
        yield draw.gauss(0, 0.003)


def dip(draw: random.Random, runs: int) -> Iterator[float]:
    """15 % of sessions lose 3.6 % from some run on, as one of the study's did."""
    start = draw.randrange(runs) if draw.random() < 0.15 else runs
    for at, value in enumerate(quiet(draw, runs)):
        yield value - (math.log(1 - 0.036) if at >= start else 0.0)


def ttft(draw: random.Random, runs: int) -> Iterator[float]:
    """2 %, and 3 % of runs with a hiccup of 10 to 60 %."""
    for _ in range(runs):
        yield draw.gauss(0, 0.02) + _hiccup(draw, 0.03)


def cpu5(draw: random.Random, runs: int) -> Iterator[float]:
    """5 %, a drift of up to 10 % either way over the session, and hiccups."""
    drift = draw.uniform(-0.1, 0.1)
    for at in range(runs):
        yield draw.gauss(0, 0.05) + drift * at / (runs - 1) + _hiccup(draw, 0.03)


def cpu10(draw: random.Random, runs: int) -> Iterator[float]:
    """10 %, a wandering of 10 % that remembers 0.8 of itself, and 5 % of hiccups: a busy machine."""
    wander = draw.gauss(0, 0.1)
    for _ in range(runs):
        yield draw.gauss(0, 0.1) + wander + _hiccup(draw, 0.05)
        wander = 0.8 * wander + draw.gauss(0, 0.1 * math.sqrt(1 - 0.8**2))


def _hiccup(draw: random.Random, share: float) -> float:
    return math.log(1 + draw.uniform(0.1, 0.6)) if draw.random() < share else 0.0


SCENARIOS = (
    Scenario("quiet", "throughput", 0.03, 5, 0.2, quiet),
    Scenario("quiet+dip", "throughput", 0.03, 5, 0.2, dip),
    Scenario("ttft", "ttft", 0.10, 5, 0.5, ttft),
    Scenario("cpu5", "ttft", 0.10, 10, 0.5, cpu5),
    Scenario("cpu10", "ttft", 0.15, 10, 0.5, cpu10),
    Scenario("cpu10 wide", "ttft", 0.25, 10, 0.5, cpu10),
)

#: What the simulation that the rule was chosen by gave (6,000 sessions): regressed / pass / inconclusive, mean pairs.
REFERENCE = {
    "quiet": "0/100/0,3.0 0/100/0,3.0 0/100/0,3.0 4.6/5.1/90.3,4.9 100/0/0,3.0 100/0/0,3.0 100/0/0,2.0 100/0/0,2.0",
    "quiet+dip": "0/100/0,3.0 0/99.3/0.7,3.1 0/97.0/3.0,3.1 4.6/5.0/90.5,4.9 98.5/0/1.5,3.1 100/0/0,3.0 100/0/0,2.0 "
    "100/0/0,2.0",
    "ttft": "0/98.6/1.4,3.2 0/87.8/12.2,3.4 0/87.1/12.9,3.5 0/81.5/18.5,3.7 0/73.9/26.1,4.0 4.0/4.5/91.6,4.9 "
    "94.6/0/5.4,3.2 100/0/0,2.0",
    "cpu5": "0/100/0,3.5 0/86.7/13.3,6.0 0/80.7/19.3,6.6 0/65.8/34.2,7.5 0.2/43.4/56.5,8.4 3.8/3.8/92.5,9.6 "
    "98.5/0/1.5,4.2 100/0/0,2.0",
    "cpu10": "0/99.9/0.1,4.3 0.1/69.5/30.4,7.3 0.1/63.6/36.3,7.6 0.3/54.1/45.6,8.0 0.2/41.8/58.0,8.5 "
    "1.3/17.7/80.9,9.3 57.2/0.1/42.7,7.7 100/0/0,2.0",
    "cpu10 wide": "0/100/0,3.7 0/98.0/2.0,5.1 0.1/97.2/2.8,5.2 0/95.4/4.6,5.5 0.1/92.7/7.2,5.9 0.4/77.9/21.8,6.9 "
    "11.5/3.3/85.2,9.1 100/0/0,2.0",
}


class Cell(NamedTuple):
    """Shares of sessions in percent, and the mean number of pairs."""

    regressed: float
    passed: float
    inconclusive: float
    invalid: float
    pairs: float

    def __str__(self) -> str:
        shares = [self.regressed, self.passed, self.inconclusive] + ([self.invalid] if self.invalid >= 0.05 else [])
        return "/".join(f"{share:.1f}".replace(".0", "") for share in shares) + f", {self.pairs:.1f}"


def recipe_of(scenario: Scenario) -> Recipe:
    """A recipe with every check that a real one has."""
    workload = Workload(("a prompt",), 32)
    baseline = Arm("baseline", (), workload, Engine("command"))
    treatment = Arm("treatment", ("a-patch",), workload, Engine("command"))
    # An effect is told as a loss of throughput: the gate of a time lies where that loss is the margin.
    least = 1 - scenario.margin
    higher = scenario.metric == "throughput"
    gate = Gate("throughput", min_ratio=least) if higher else Gate("ttft", max_ratio=1 / least)
    protocol = Protocol(3, scenario.pairs_max, trip_throughput=scenario.trip, trip_ttft=scenario.trip)
    return Recipe(scenario.name, "", (Point("", baseline, treatment),), Gates((gate,)), protocol)


_GOOD = Observation(
    tokens=Tokens(4096, 4096, "0" * 64), compilations={}, version_lines=("v1",), versions={"jax": "0.10.2"}
)
_FIRED = (Fired("a-patch", 1, "sample", 1, "EngineCore", True),)


def session(scenario: Scenario, recipe: Recipe, ratio: float, draw: random.Random) -> tuple[str, int]:
    """The verdict on one session whose treatment has ``ratio`` of the throughput, and the pairs that it took."""
    noise = scenario.noise(draw, 2 * scenario.pairs_max)
    runs: list[Run] = []
    for pair in range(1, scenario.pairs_max + 1):
        arms: Sequence[ArmName] = ("baseline", "treatment") if pair % 2 else ("treatment", "baseline")
        for arm in arms:
            treated = arm == "treatment"
            seconds = math.exp(next(noise)) / (ratio if treated else 1.0)
            value = Measured(1 / seconds, "tokens/s") if scenario.metric == "throughput" else Measured(seconds, "s")
            seen = _GOOD._replace(metrics={scenario.metric: value}, probes=_FIRED if treated else ())
            runs.append(Run(len(runs) + 1, "", arm, "measured", pair, "", 0.0, seen))
        result = decided(recipe, recipe.points[0], runs)
        if result is not None:
            return result.verdict, pair
    raise AssertionError("a session ends at its last pair")


def cell(scenario: Scenario, effect: str, sessions: int, seed: int) -> Cell:
    """One cell of the table."""
    draw = random.Random(f"{seed} {scenario.name} {effect}")
    recipe = recipe_of(scenario)
    ended = [session(scenario, recipe, EFFECTS[effect], draw) for _ in range(sessions)]
    verdicts = [verdict for verdict, _ in ended]
    regressed, passed, inconclusive, invalid = (
        100 * verdicts.count(name) / sessions for name in ("regressed", "pass", "inconclusive", "invalid")
    )
    return Cell(regressed, passed, inconclusive, invalid, sum(pairs for _, pairs in ended) / sessions)


def reference(scenario: Scenario, effect: str) -> Cell:
    """The same cell of the simulation that the rule was chosen by."""
    shares, pairs = REFERENCE[scenario.name].split()[list(EFFECTS).index(effect)].split(",")
    regressed, passed, inconclusive = map(float, shares.split("/"))
    return Cell(regressed, passed, inconclusive, 0.0, float(pairs))


def table(sessions: int, seed: int, only: Sequence[str], processes: int) -> dict[tuple[str, str], Cell]:
    """Every cell; each has its own random numbers, so their number of processes does not change them."""
    wanted = [(scenario, effect) for scenario in SCENARIOS if scenario.name in only for effect in EFFECTS]
    jobs = [(scenario, effect, sessions, seed) for scenario, effect in wanted]
    if processes == 1:
        cells = [cell(*job) for job in jobs]
    else:
        with multiprocessing.Pool(processes) as pool:
            cells = pool.starmap(cell, jobs, chunksize=1)
    return {(scenario.name, effect): made for (scenario, effect), made in zip(wanted, cells, strict=True)}


def deviations(scenario: Scenario, effect: str, found: Cell, sessions: int) -> list[tuple[str, float, float]]:
    """By verdict: how far a cell lies from the reference, in points, and how far chance takes two such simulations.

    Chance is three standard errors of the difference, and the rounding of the reference. What is invalid here was
    inconclusive there.
    """
    other = reference(scenario, effect)
    mine = (found.regressed, found.passed, found.inconclusive + found.invalid)
    rows = []
    for name, here, there in zip(("regressed", "pass", "inconclusive"), mine, other[:3], strict=True):
        share = min(max((here + there) / 200, 0.0005), 0.9995)
        error = 100 * math.sqrt(share * (1 - share) * (1 / sessions + 1 / 6000))
        rows.append((name, here - there, 3 * error + 0.05))
    return rows


def smallest(sessions: int, seed: int) -> Iterator[list[tuple[int, float]]]:
    """Of sessions of normal noise at the gate, and their mirror images: the looks that would decide, with their p."""
    draw, most = random.Random(seed), COLUMNS[-1]
    roots = [math.sqrt(pairs) for pairs in range(most + 1)]
    # A p above the whole error decides at no level.
    limits = [0.0, 0.0] + [t_quantile(1 - 1.1 * ERROR, pairs - 1) for pairs in range(2, most + 1)]
    for _ in range(sessions):
        total = squares = 0.0
        above: list[tuple[int, float]] = []
        below: list[tuple[int, float]] = []
        for pairs in range(1, most + 1):
            value = draw.gauss(0, 1)
            total += value
            squares += value * value
            if pairs > 1:
                mean = total / pairs
                t = mean * roots[pairs] / math.sqrt((squares - pairs * mean * mean) / (pairs - 1))
                if abs(t) > limits[pairs]:
                    (above if t > 0 else below).append((pairs, t_tail(abs(t), pairs - 1)))
        yield from (looks for looks in (above, below) if looks)


def levels(sessions: int, seed: int) -> Iterator[tuple[int, list[int]]]:
    """The rows of ``LEVELS``: the level that the smallest p of all looks is below in 5 % of sessions, in 1e-5."""
    decisive = list(smallest(sessions, seed))
    rank = int(ERROR * 2 * sessions)
    for least in range(2, 21):
        found = {most: array("d") for most in COLUMNS if most >= least}
        for looks in decisive:
            best, at = 1.0, 0
            for most, kept in found.items():
                while at < len(looks) and looks[at][0] <= most:
                    if looks[at][0] >= least:
                        best = min(best, looks[at][1])
                    at += 1
                if best < 1:
                    kept.append(best)
        yield least, [round(sorted(kept)[rank] * 1e5) for kept in found.values()]


def reach(sessions: int, seed: int, share: float) -> dict[int, float]:
    """``REACH``: the largest spread over margin at which ``share`` of sessions from three pairs on pass."""
    draw = random.Random(seed)
    by_most = {most: LEVELS[3][most - 3] / 1e5 for most in range(3, 21)}
    halves = {
        most: [t_quantile(1 - level, pairs - 1) / math.sqrt(pairs) for pairs in range(3, most + 1)]
        for most, level in by_most.items()
    }
    bounds = {most: array("d") for most in by_most}
    for _ in range(sessions):
        total = squares = 0.0
        looks = []
        for pairs in range(1, 21):
            value = draw.gauss(0, 1)
            total += value
            squares += value * value
            if pairs >= 3:
                mean = total / pairs
                looks.append((mean, math.sqrt((squares - pairs * mean * mean) / (pairs - 1))))
        for most, half in halves.items():
            bounds[most].append(min(mean + times * spread for (mean, spread), times in zip(looks, half, strict=False)))
    return {most: math.floor(1000 / sorted(kept)[int(share * sessions)]) / 1000 for most, kept in bounds.items()}


def plan(sessions: int, seed: int) -> list[list[str]]:
    """P(pass | no effect) / P(regressed | twice the margin) of the sequential rule, by spread over margin and pairs."""
    margin, rows = -math.log(0.97), []
    for share in (0.2, 0.3, 0.5, 0.75, 1.0, 1.5):
        row = [f"{share:g}"]
        for most in (3, 4, 5, 7, 10):

            def noise(draw: random.Random, runs: int, spread: float = share * margin) -> Iterator[float]:
                for _ in range(runs):
                    yield draw.gauss(0, spread / math.sqrt(2))

            # No tripwire: it would find twice the margin only because the margin is small.
            scenario = Scenario(f"plan {share} {most}", "throughput", 0.03, most, 0.99, noise)
            recipe, draw = recipe_of(scenario), random.Random(f"{seed} {share} {most}")
            passed = [session(scenario, recipe, 1.0, draw)[0] for _ in range(sessions)].count("pass")
            lost = [session(scenario, recipe, 0.97**2, draw)[0] for _ in range(sessions)].count("regressed")
            row.append(f"{100 * passed / sessions:.0f}/{100 * lost / sessions:.0f}")
        rows.append(row)
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--sessions", type=int, metavar="N", help="per cell (default 6000; --calibrate: 1000000)")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    parser.add_argument("--processes", type=int, default=1, metavar="P")
    parser.add_argument("--only", action="append", choices=[scenario.name for scenario in SCENARIOS], metavar="NAME")
    parser.add_argument("--plan", action="store_true", help="the planning table instead")
    parser.add_argument("--calibrate", action="store_true", help="the tables of patchkit/bench/levels.py instead")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    if options.calibrate:
        sessions = options.sessions or 1_000_000
        for least, row in levels(sessions, options.seed):
            print(f"{least}: {' '.join(map(str, row))}", flush=True)
        print(*(f"{value:.3f}" for value in reach(max(1, sessions // 10), options.seed, 0.85).values()))
        return 0
    sessions = options.sessions or 6000
    if options.plan:
        for line in plan(sessions, options.seed):
            print("| " + " | ".join(line) + " |", flush=True)
        return 0
    names = options.only or [scenario.name for scenario in SCENARIOS]
    found = table(sessions, options.seed, names, options.processes)
    if options.json:
        cells = {f"{name}: {effect}": made._asdict() for (name, effect), made in found.items()}
        print(json.dumps({"sessions": sessions, "seed": options.seed, "cells": cells}, indent=1))
        return 0
    print(f"{sessions} sessions per cell, seed {options.seed}")
    print("regressed / pass / inconclusive (/ invalid) %, mean pairs\n")
    print("| scenario (margin, pairs, tripwire) | " + " | ".join(EFFECTS) + " |")
    print("|---" * (len(EFFECTS) + 1) + "|")
    beyond = []
    for scenario in SCENARIOS:
        if scenario.name not in names:
            continue
        made_here = [found[scenario.name, effect] for effect in EFFECTS]
        title = f"{scenario.name} ({scenario.margin:.0%}, {scenario.pairs_max}, {scenario.trip:.0%})"
        print(f"| {title} | " + " | ".join(map(str, made_here)) + " |")
        for effect, made in zip(EFFECTS, made_here, strict=True):
            for name, off, chance in deviations(scenario, effect, made, sessions):
                if abs(off) > chance:
                    beyond.append(f"{scenario.name}, {effect}: {name} {off:+.1f} points (chance: {chance:.1f})")
    print(f"\nBeyond chance (three standard errors) of the reference: {len(beyond) or 'nothing'}", *beyond, sep="\n  ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
