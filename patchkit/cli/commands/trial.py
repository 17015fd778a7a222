"""``try``: the first command that a newcomer types."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from patchkit.cli.context import catalog_of
from patchkit.cli.output import Output

if TYPE_CHECKING:
    from patchkit.ops.trial import Step


def configure_try(parser: ArgumentParser) -> None:
    """The options of ``try``."""
    parser.add_argument("name", metavar="NAME", help="a patch, by name or by the path of its file")
    parser.add_argument(
        "--version", metavar="V", dest="release", help="the release to try it on (default: the newest fit)"
    )
    parser.add_argument("--keep", action="store_true", help="leave the throwaway environment for a look around")


def run_try(arguments: Namespace) -> int:
    """Show the life of a patch; 0 when every byte is back at its end."""
    from patchkit.ops.trial import run_trial

    output: Output = arguments.output
    patch = catalog_of(arguments).load(arguments.name)
    output.line(f"{output.paint(patch.name, 'bold')}: {patch.summary}")

    def report(step: Step) -> None:
        output.clear_status()
        output.line()
        output.line(f"{output.paint('$', 'dim')} {output.paint(step.command, 'bold')}")
        if step.diff:
            output.diff(step.diff)
        output.line(f"  {step.result}")

    trial = run_trial(patch, version=arguments.release, keep=arguments.keep, progress=output.status, report=report)
    ok = not trial.proof.differing
    output.clear_status()
    output.line()
    word = output.paint("proved", "green") if ok else output.paint("FAILED", "red")
    output.line(
        f"{word}: {patch.name} on {trial.distribution} {trial.version} was applied, lost, healed and taken back; "
        f"{trial.proof.compared} files compared with RECORD, {len(trial.proof.differing)} differ"
    )
    if trial.folder:
        output.line(f"left for you: {trial.folder}")
    output.json(
        ok=ok,
        name=trial.name,
        distribution=trial.distribution,
        version=trial.version,
        steps=[step._asdict() for step in trial.steps],
        compared=trial.proof.compared,
        differing=list(trial.proof.differing),
        folder=trial.folder,
    )
    return 0 if ok else 1
