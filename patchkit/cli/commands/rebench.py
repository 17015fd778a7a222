"""``rebench``."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from patchkit.bench.voice import Voice
from patchkit.cli.context import catalog_of, same_site, site_json, site_of, told
from patchkit.cli.output import Output
from patchkit.errors import UsageError

if TYPE_CHECKING:
    from patchkit.bench.plan import Plan
    from patchkit.bench.report import Report
    from patchkit.model.recipe import Recipe
    from patchkit.site.environment import Site

HEARTBEAT = 30.0
"""Seconds between two lines about one process, off a terminal."""
_STATUS = {"pass": 0, "regressed": 1}
_MEANT = 6


def configure_rebench(parser: ArgumentParser) -> None:
    """The options of ``rebench``."""
    parser.add_argument("recipe", nargs="?", metavar="RECIPE", help="a recipe, by name or by the path of its file")
    parser.add_argument("--dry-run", action="store_true", help="check and print the plan, start nothing")
    parser.add_argument("--in-memory", action="store_true", help="patches in memory only: the site is not written")
    parser.add_argument("--no-preflight", action="store_true", help="leave out the run with compilation forbidden")
    parser.add_argument("--pairs-min", type=int, metavar="N", help="pairs before the first verdict")
    parser.add_argument("--pairs-max", type=int, metavar="N", help="pairs after which it ends")
    parser.add_argument(
        "--on-inconclusive",
        choices=("revert", "keep"),
        default="revert",
        metavar="revert|keep",
        help="what to do with patches that are neither better nor worse for sure (default: revert)",
    )
    parser.add_argument(
        "--allow-known-bad", action="store_true", help="let a patch that is tagged known-bad stay, if it passes"
    )
    parser.add_argument("--runs", metavar="DIR", help="where sessions are kept (default: patchkit-runs)")
    parser.add_argument(
        "--resume", nargs="?", const="", metavar="FOLDER", help="go on with a session (default: the last of the recipe)"
    )
    parser.add_argument("--restore", action="store_true", help="put the site back after an experiment that was killed")
    parser.add_argument("--force", action="store_true", help="restore: discard hand edits in the way, keep a copy")
    parser.add_argument("--forget", action="store_true", help="leave the site as a killed experiment left it")


@same_site
def run_rebench(arguments: Namespace) -> int:
    """Run an experiment; 0 for pass, 1 for regressed, 6 for anything else."""
    if arguments.restore or arguments.forget:
        return _settle(arguments)
    if arguments.recipe is None:
        raise UsageError("rebench: which recipe? name it", hint="`patchkit recipes` lists them")
    if arguments.force:
        raise UsageError("--force is for --restore", hint="see `patchkit rebench --help`")
    return _experiment(arguments)


def _experiment(arguments: Namespace) -> int:
    import os

    from patchkit.bench import store
    from patchkit.bench.catalog import find_recipe
    from patchkit.bench.plan import Options, make_plan, plan_lines, with_pairs
    from patchkit.bench.session import begin, run_session
    from patchkit.bench.signals import Ended

    output: Output = arguments.output
    recipe = with_pairs(find_recipe(arguments.recipe), arguments.pairs_min, arguments.pairs_max)
    site = _site(arguments, recipe)
    options = Options(
        catalog_of(arguments).load,
        store.runs_folder(arguments.runs, os.environ),
        arguments.in_memory,
        not arguments.no_preflight,
        arguments.on_inconclusive == "keep",
        arguments.allow_known_bad,
    )
    plan = make_plan(recipe, site, options, notice=output.note)
    for line in plan_lines(plan, store.seconds_before(options.runs, recipe.name)):
        output.paragraph(line.lstrip(), len(line) - len(line.lstrip()), hanging=2)
    if arguments.dry_run:
        output.json(ok=True, site=site_json(site), dry_run=True, plan=_plan_json(plan), report=None, written=[])
        return 0
    session = begin(plan, arguments.resume)
    output.note(f"runs are kept in {session.folder}")
    try:
        report = run_session(plan, session, _Progress(output))
    except (KeyboardInterrupt, Ended) as ended:
        text = f"interrupted: the runs done are kept: patchkit rebench {arguments.recipe} --resume {session.folder}"
        output.clear_status()
        output.json(ok=False, error={"code": "interrupted", "message": text, "hint": None, "folder": session.folder})
        output.note(told(arguments, text))
        return 128 + (ended.signal if isinstance(ended, Ended) else 2)
    return _show(arguments, plan, report)


def _show(arguments: Namespace, plan: Plan, report: Report) -> int:
    import os

    from patchkit.bench.render.jsonform import report_json
    from patchkit.cli.commands.report import show_report

    output: Output = arguments.output
    status = _MEANT if report.aftermath.action == "not-put-back" else _STATUS.get(report.verdict, _MEANT)
    output.clear_status()
    output.line()
    show_report(output, report)
    written = [os.path.join(report.folder, f"report.{kind}") for kind in ("json", "md", "html")]
    output.json(
        ok=status == 0,
        site=site_json(plan.site),
        dry_run=False,
        plan=_plan_json(plan),
        report=report_json(report),
        written=written,
    )
    return status


def _site(arguments: Namespace, recipe: Recipe) -> Site:
    if arguments.python is None and arguments.site is None:
        import os

        from patchkit.bench.rigged import site_for

        found = site_for(recipe, os.environ)
        if found is not None:
            return found
    return site_of(arguments)


def _plan_json(plan: Plan) -> dict[str, object]:
    from patchkit.bench.plan import count_of, has_preflight

    least, most = count_of(plan)
    return {
        "recipe": plan.recipe.name,
        "points": [point.label for point in plan.recipe.points],
        "in_memory": plan.options.in_memory,
        "preflight": has_preflight(plan),
        "processes": {"least": least, "most": most},
        "patches": [{**one._asdict(), "on_trial": one.name in plan.recipe.patches} for one in plan.used],
        "others": [patch.name for patch in plan.others],
        "notes": list(plan.notes),
    }


def _settle(arguments: Namespace) -> int:
    """Put every folder of the site back, or leave it as it is."""
    from patchkit.ops.experiment import alive, busy, read_mark, remove_mark, settle
    from patchkit.site.environment import ledger_homes

    output: Output = arguments.output
    site = site_of(arguments)
    done = []
    for home in ledger_homes(site):
        mark = read_mark(home)
        if mark is None:
            continue
        if alive(mark, mark.owner) or alive(mark, mark.guardian):
            raise busy(home, mark)
        if arguments.forget:
            remove_mark(home, mark.token)
            output.line(f"forgotten: the experiment `rebench {mark.recipe}` of {mark.started}; {home} stays as it is")
        else:
            settle(site.at(home), mark, output.line, force=arguments.force)
        done.append({"site": home, "recipe": mark.recipe, "since": mark.started, "folder": mark.folder})
    if not done:
        output.line("nothing to put back: no experiment was left here")
    output.json(ok=True, site=site_json(site), settled=done)
    return 0


class _Progress(Voice):
    """A line for each process; on a terminal the same in place, off it a sign of life now and then."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._what = ""
        self._began = self._said = time.monotonic()

    def notice(self, text: str) -> None:
        self._output.note(text)

    def begin(self, text: str) -> None:
        self._what = text
        self._began = self._said = time.monotonic()
        if self._output.live:
            self._output.status(text)
        else:
            self._output.note(text)

    def tick(self, text: str) -> None:
        now = time.monotonic()
        if not self._output.live and now - self._said < HEARTBEAT:
            return
        self._said = now
        more = f": {text}" if text else ""
        self._output.status(f"{self._what.partition(';')[0]}: {now - self._began:.0f} s{more}")

    def done(self, text: str) -> None:
        self._output.note(text)
