"""What a rig proves of the shipped logits patches: each claim with what was found. Pure but for :func:`prove_rig`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from patchkit.model.patch import Patch
from patchkit.rig.modes import MODES
from patchkit.rig.run import Ran, Work, run_rig
from patchkit.rig.state import Rig
from patchkit.tuples import NamedTuple

STOCK, NAIVE, FIXED = "stock", "logits-greedy-naive", "logits-greedy"
#: The arms, by the patch that each has in memory.
ARMS: dict[str, tuple[str, ...]] = {STOCK: (), NAIVE: (NAIVE,), FIXED: (FIXED,)}
#: What jax calls the program of sample().
SAMPLE = "jit(sample)"
_HASHES = ("tokens_sha256", "logprobs_sha256", "prompt_logprobs_sha256")


class Arm(NamedTuple):
    """One arm: an engine that ran every mode, and one that ran greedy with recompilation forbidden."""

    name: str
    ran: Ran
    forbidding: Ran


class Check(NamedTuple):
    """One claim, whether it holds, and what was found."""

    claim: str
    ok: bool
    found: str


def prove_rig(
    rig: Rig,
    load: Callable[[str], Patch],
    *,
    notice: Callable[[str], None],
    tick: Callable[[str], None],
) -> list[Arm]:
    """Run the arms, two engines each.

    Args:
        rig: The rig.
        load: Gives a patch by its name.
        notice: Told of a command that is waited for.
        tick: Told every second what is under way.

    Raises:
        PatchkitError: As :func:`run_rig` does.
    """
    arms = []
    total = 2 * len(ARMS)
    for number, (name, names) in enumerate(ARMS.items()):
        patches = [load(patch) for patch in names]
        ran = []
        for forbid in (False, True):
            place = f"engine {2 * number + forbid + 1} of {total}"
            work = Work(tuple(MODES.values()) if not forbid else (MODES["greedy"],), forbid=forbid)
            ran.append(
                run_rig(
                    rig,
                    patches,
                    work,
                    name=f"prove-{name}{'-forbidding' if forbid else ''}",
                    allow_known_bad=True,
                    notice=notice,
                    tick=lambda text, place=place: tick(f"{place}, {text}"),  # type: ignore[misc]
                )
            )
        arms.append(Arm(name, ran[0], ran[1]))
    return arms


def judge(arms: Sequence[Arm]) -> list[Check]:
    """The claims against what the arms did."""
    stock, naive, fixed = ({arm.name: arm for arm in arms}[name] for name in ARMS)
    checks = [
        _whole(stock),
        _whole(naive),
        _whole(fixed),
        _compiled(stock, wanted=False),
        _compiled(naive, wanted=True),
        _compiled(fixed, wanted=False),
        _caught(stock, wanted=False),
        _caught(naive, wanted=True),
        _caught(fixed, wanted=False),
    ]
    return [*checks, *(_same(stock, fixed, mode) for mode in MODES)]


def _whole(arm: Arm) -> Check:
    error = arm.ran.result["error"]
    found = "yes" if error is None else f"{error['type']}: {error['message']}"
    return Check(f"{arm.name}: every mode ran to its end", error is None, found)


def counts(ran: Ran, mode: str, program: str | None = SAMPLE) -> list[int]:
    """Compilations of a program in each phase of a mode; None: of all programs."""
    return [
        sum(count for name, count in phase.get("compilations", {}).items() if program in (None, name))
        for phase in _phases(ran, mode)
    ]


def _phases(ran: Ran, mode: str) -> Sequence[Mapping[str, Any]]:
    return next((one["phases"] for one in ran.result["modes"] if one["name"] == mode), ())


def _compiled(arm: Arm, *, wanted: bool) -> Check:
    found = {mode: counts(arm.ran, mode) for mode in MODES}
    touched = any(any(row) for row in found.values())
    text = "; ".join(f"{mode} {', '.join(map(str, row))}" for mode, row in found.items() if any(row)) or "0 everywhere"
    claim = "at first touch" if wanted else "never"
    return Check(f"{arm.name}: sample() is compiled while serving: {claim}", touched == wanted, text)


def _caught(arm: Arm, *, wanted: bool) -> Check:
    error = arm.forbidding.result["error"]
    found = "passes" if error is None else f"{error['type']}: {error['message']}"
    claim = "is caught" if wanted else "passes"
    ok = arm.forbidding.forbidden if wanted else error is None
    return Check(f"{arm.name}: with recompilation forbidden it {claim}", ok, found)


def same(one: Ran, other: Ran, mode: str) -> list[str]:
    """What differs between two runs of a mode: names of phases with what differs in each; none: bit for bit equal."""
    mine, theirs = _phases(one, mode), _phases(other, mode)
    if len(mine) != len(theirs) or not mine:
        return ["not all phases ran"]
    return [
        f"{a['name']}: {what.removesuffix('_sha256')}"
        for a, b in zip(mine, theirs, strict=True)
        for what in _HASHES
        if a.get(what) != b.get(what) or "tokens_sha256" not in a
    ]


def _same(stock: Arm, fixed: Arm, mode: str) -> Check:
    differing = same(stock.ran, fixed.ran, mode)
    claim = f"{fixed.name}: {mode}: tokens and log probabilities are those of stock, bit for bit"
    return Check(claim, not differing, "; ".join(differing) or "identical")
