"""``rig``."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from patchkit.cli.context import catalog_of
from patchkit.cli.output import Output
from patchkit.cli.progress import Ticker
from patchkit.errors import UsageError

if TYPE_CHECKING:
    from patchkit.rig.create import RigPlan, Step
    from patchkit.rig.prove import Arm, Check
    from patchkit.rig.run import Ran
    from patchkit.rig.state import Rig

_MODES = ("greedy", "logprobs", "prompt-logprobs", "sampling", "structured")
#: Which actions each option is for.
_FOR = {
    "release": ("--version", ("create",)),
    "dry_run": ("--dry-run", ("create",)),
    "names": ("--with", ("run",)),
    "modes": ("--mode", ("run",)),
    "requests": ("--requests", ("run",)),
    "max_tokens": ("--max-tokens", ("run",)),
    "forbid": ("--forbid-recompilation", ("run",)),
    "allow_known_bad": ("--allow-known-bad", ("run",)),
}


def configure_rig(parser: ArgumentParser) -> None:
    """The options of ``rig``."""
    parser.add_argument("action", metavar="ACTION", choices=("create", "run", "prove"), help="create, run or prove")
    parser.add_argument("folder", metavar="DIR", help="the rig's folder")
    parser.add_argument("--version", metavar="V", dest="release", help="create: the release (default: 0.24.0)")
    parser.add_argument("--dry-run", action="store_true", help="create: say what would be done, and do nothing")
    parser.add_argument("--with", action="append", dest="names", metavar="NAME", help="run: a patch, in memory only")
    parser.add_argument(
        "--mode", action="append", dest="modes", metavar="MODE", choices=_MODES, help=f"run: {', '.join(_MODES)}"
    )
    parser.add_argument("--requests", type=int, metavar="N", help="run: requests in a batch, 1 to 64 (default: 16)")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="run: tokens for each, 1 to 100 (default: 16)")
    parser.add_argument(
        "--forbid-recompilation",
        action="store_true",
        dest="forbid",
        help="run: the engine raises where it compiles in its guarded places",
    )
    parser.add_argument("--allow-known-bad", action="store_true", help="run: accept patches tagged known-bad")


def run_rig(arguments: Namespace) -> int:
    """Create, run or prove."""
    action: str = arguments.action
    for name, (option, actions) in _FOR.items():
        if getattr(arguments, name) and action not in actions:
            raise UsageError(f"{option} is not for `rig {action}`", hint="see `patchkit rig --help`")
    if action != "create" and (arguments.python or arguments.site):
        raise UsageError(
            f"`rig {action}` works in the rig's own environment, which --python and --site do not name",
            hint=f"patchkit rig {action} {shlex.quote(arguments.folder)}",
        )
    return {"create": _create, "run": _run, "prove": _prove}[action](arguments)


def _create(arguments: Namespace) -> int:
    from patchkit.rig.create import create_rig, plan_rig
    from patchkit.rig.recipe import DEFAULT

    output: Output = arguments.output
    if arguments.site:
        raise UsageError("--site names no interpreter to make a rig with", hint="patchkit --python EXE rig create DIR")
    plan = plan_rig(arguments.folder, version=arguments.release or DEFAULT, python=arguments.python)
    for line in _plan_lines(plan):
        output.line(line)
    rig = plan.rig
    if not arguments.dry_run:

        def done(step: Step, seconds: float | None) -> None:
            output.clear_status()
            output.line(f"  {step.name}: " + ("done before" if seconds is None else f"done in {seconds:.0f} s"))

        ticker = Ticker(output)
        rig = create_rig(plan, done=done, notice=output.note, tick=lambda text: ticker(0, 0, text))
        output.clear_status()
        output.line(f"the rig is ready: patchkit rig prove {shlex.quote(arguments.folder)}")
    output.json(
        ok=True,
        rig=_rig_json(rig),
        dry_run=arguments.dry_run,
        steps=[
            {"name": step.name, "what": step.what, "done": step.digest == rig.done.get(step.name)}
            for step in plan.steps
        ],
    )
    return 0


def _plan_lines(plan: RigPlan) -> list[str]:
    recipe = plan.recipe
    lines = [
        f"a rig of vllm-tpu {recipe.version} and tpu-inference {recipe.version} in {plan.rig.folder}",
        f"  about {recipe.megabytes / 1000:.1f} GB on disk, of which {plan.free / 1000:.0f} GB are free; "
        "minutes of downloads",
    ]
    if recipe.pins:
        lines.append(f"  other than the release pins: {', '.join(recipe.pins)}")
    for number, step in enumerate(plan.steps, 1):
        lines.append(f"  {number}. {step.name}: {step.what}" + (" (done)" if step.done else ""))
    return lines


def _run(arguments: Namespace) -> int:
    from patchkit.rig import run
    from patchkit.rig.modes import MODES
    from patchkit.rig.state import open_rig

    output: Output = arguments.output
    requests = _between("--requests", arguments.requests, 16, 64)
    max_tokens = _between("--max-tokens", arguments.max_tokens, 16, 100)
    rig = open_rig(arguments.folder)
    catalog = catalog_of(arguments)
    ticker = Ticker(output)
    wanted = dict.fromkeys(arguments.modes or ["greedy"])
    work = run.Work(tuple(MODES[name] for name in MODES if name in wanted), requests, max_tokens, arguments.forbid)
    ran = run.run_rig(
        rig,
        [catalog.load(name) for name in arguments.names or ()],
        work,
        allow_known_bad=arguments.allow_known_bad,
        notice=output.note,
        tick=lambda text: ticker(0, 0, text),
    )
    output.clear_status()
    for line in _run_lines(ran):
        output.line(line)
    ok = ran.result["error"] is None
    output.json(ok=ok, rig=_rig_json(rig), run=_ran_json(ran))
    return 0 if ok else 1


def _between(option: str, value: int | None, default: int, most: int) -> int:
    if value is None:
        return default
    if not 1 <= value <= most:
        raise UsageError(f"{option} {value}: it is 1 to {most}", hint="see `patchkit rig --help`")
    return value


def _run_lines(ran: Ran) -> list[str]:
    from patchkit.rig.run import LABEL

    result = ran.result
    names = ", ".join(live.name for live in ran.patches if not live.name.startswith("rig-")) or "stock"
    engine = result.get("engine")
    lines = [f"{names}: {_versions(result)}"]
    if engine is not None:
        lines.append(f"  engine: {engine['compilations']} programs compiled in {engine['seconds']:.0f} s")
    for mode in result["modes"]:
        for phase in mode["phases"]:
            compiled = ", ".join(f"{count} {name}" for name, count in phase["compilations"].items()) or "nothing"
            tokens = phase.get("tokens_sha256")
            more = f"{phase['tokens']} tokens {tokens[:8]}" if tokens else "no tokens"
            logs = [phase.get(f"{kind}logprobs_sha256") for kind in ("", "prompt_")]
            more += "".join(f", log probabilities {one[:8]}" for one in logs if one)
            lines.append(f"  {mode['name']}, {phase['name']}: {more}; compiled: {compiled}; {phase['seconds']:.2f} s")
    if result["error"] is not None:
        lines.append(f"  ended by {result['error']['type']}: {result['error']['message']}")
    return [*lines, f"  times: {LABEL}"]


def _versions(result: Any) -> str:
    return ", ".join(f"{name} {version}" for name, version in result["versions"].items() if version)


def _prove(arguments: Namespace) -> int:
    from patchkit.rig.prove import judge, prove_rig
    from patchkit.rig.run import LABEL
    from patchkit.rig.state import open_rig

    output: Output = arguments.output
    rig = open_rig(arguments.folder)
    ticker = Ticker(output)
    arms = prove_rig(rig, catalog_of(arguments).load, notice=output.note, tick=lambda text: ticker(0, 0, text))
    checks = judge(arms)
    ok = all(check.ok for check in checks)
    output.clear_status()
    for line in _proof_lines(arms, checks):
        output.line(line)
    output.json(
        ok=ok,
        rig=_rig_json(rig),
        checks=[check._asdict() for check in checks],
        arms=[{"name": arm.name, "run": _ran_json(arm.ran), "forbidding": _ran_json(arm.forbidding)} for arm in arms],
        times=LABEL,
    )
    return 0 if ok else 1


def _proof_lines(arms: list[Arm], checks: list[Check]) -> list[str]:
    from patchkit.rig.modes import MODES
    from patchkit.rig.prove import counts, same

    lines = [_versions(arms[0].ran.result), "", "compilations of sample() while serving (of all programs), by phase:"]
    lines.append(f"  {'arm':<20} {'mode':<16} warm-up     ttft     main  main-again  recompilation forbidden")
    for arm in arms:
        for mode in MODES:
            cells = [f"{a} ({b})" for a, b in zip(counts(arm.ran, mode), counts(arm.ran, mode, None), strict=True)]
            row = f"  {arm.name:<20} {mode:<16}" + "".join(f" {cell:>8}" for cell in cells)
            if mode == "greedy":
                error = arm.forbidding.result["error"]
                row = f"{row:<76}" + ("passes" if error is None else "raises" if arm.forbidding.forbidden else "fails")
            lines.append(row.rstrip())
    lines += ["", "tokens and log probabilities against stock:"]
    for arm in arms[1:]:
        for mode in MODES:
            lines.append(f"  {arm.name:<20} {mode:<16} {'; '.join(same(arms[0].ran, arm.ran, mode)) or 'identical'}")
    lines.append("")
    lines += [f"{'holds ' if check.ok else 'FAILED'} {check.claim}: {check.found}" for check in checks]
    return lines


def _ran_json(ran: Ran) -> dict[str, object]:
    from patchkit.rig.run import LABEL

    patches = [{"name": live.name, "action": live.action, "version": live.version} for live in ran.patches]
    return {"patches": patches, **ran.result, "times": LABEL, "log": ran.log}


def _rig_json(rig: Rig) -> dict[str, object]:
    return {"path": rig.folder, "version": rig.version, "python": rig.python}
