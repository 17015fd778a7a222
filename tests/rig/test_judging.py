"""The verdict of ``rig prove``: each claim fails for what it is about, and for nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from patchkit.rig.modes import MODES
from patchkit.rig.prove import FIXED, NAIVE, STOCK, Arm, judge
from patchkit.rig.run import Ran

PHASES = ("warm-up", "ttft", "main", "main-again")
CAUGHT = {"type": "RuntimeError", "message": "it was forbidden", "forbidden": True}
OTHER = {"type": "ValueError", "message": "something else", "forbidden": False}


def ran(sample: tuple[int, ...] = (0, 0, 0, 0), error: Any = None, **changes: str) -> Ran:
    """A run of every mode: ``sample`` are the compilations of the greedy mode, ``changes`` a hash by mode."""
    modes = []
    for mode in MODES:
        phases = []
        for index, name in enumerate(PHASES):
            compiled = {"jit(split)": 1}
            if mode == "greedy" and sample[index]:
                compiled["jit(sample)"] = sample[index]
            tokens = changes.get(mode.replace("-", "_"), f"tokens of {mode}, {name}")
            hashes = {"tokens_sha256": tokens, "logprobs_sha256": "logs", "prompt_logprobs_sha256": None}
            phases.append({"name": name, "compilations": compiled, **hashes})
        modes.append({"name": mode, "phases": phases})
    return Ran((), {"modes": modes, "error": error}, "log")


def verdict(**arms: Any) -> list[str]:
    """The claims that fail; ``stock``, ``naive`` and ``fixed`` replace (run, run with recompilation forbidden)."""
    usual = {"stock": (ran(), ran()), "naive": (ran((1, 1, 0, 0)), ran(error=CAUGHT)), "fixed": (ran(), ran())}
    names = {"stock": STOCK, "naive": NAIVE, "fixed": FIXED}
    checks = judge([Arm(names[key], *(arms.get(key) or usual[key])) for key in names])
    assert len(checks) == 14
    return [check.claim for check in checks if not check.ok]


def test_as_it_should_be() -> None:
    assert verdict() == []


@pytest.mark.parametrize(
    ("arms", "failing"),
    [
        ({"stock": (ran((0, 0, 1, 0)), ran())}, "stock: sample() is compiled while serving: never"),
        ({"naive": (ran(), ran(error=CAUGHT))}, f"{NAIVE}: sample() is compiled while serving: at first touch"),
        ({"naive": (ran((1, 0, 0, 0)), ran())}, f"{NAIVE}: with recompilation forbidden it is caught"),
        ({"naive": (ran((1, 0, 0, 0)), ran(error=OTHER))}, f"{NAIVE}: with recompilation forbidden it is caught"),
        ({"fixed": (ran((0, 1, 0, 0)), ran())}, f"{FIXED}: sample() is compiled while serving: never"),
        ({"fixed": (ran(), ran(error=CAUGHT))}, f"{FIXED}: with recompilation forbidden it passes"),
        ({"stock": (ran(), ran(error=OTHER))}, "stock: with recompilation forbidden it passes"),
        ({"fixed": (ran(error=OTHER), ran())}, f"{FIXED}: every mode ran to its end"),
        (
            {"fixed": (ran(sampling="others"), ran())},
            f"{FIXED}: sampling: tokens and log probabilities are those of stock, bit for bit",
        ),
    ],
)
def test_each_claim_fails_for_its_own(arms: dict[str, Any], failing: str) -> None:
    assert verdict(**arms) == [failing]


def test_a_mode_that_did_not_run_is_not_identical() -> None:
    halted = ran()
    for mode in halted.result["modes"]:
        for phase in mode["phases"]:
            del phase["tokens_sha256"]
    assert len(verdict(stock=(halted, ran()), fixed=(halted, ran()))) == len(MODES)
    empty = Ran((), {"modes": [], "error": OTHER}, "log")
    assert len(verdict(fixed=(empty, ran()))) == 1 + len(MODES)
    assert len(verdict(stock=(empty, ran()), fixed=(empty, ran()))) == 2 + len(MODES)
