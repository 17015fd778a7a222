"""``check``: the command that runs at every process start, so it imports next to nothing."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from patchkit.cli.context import catalog_of, same_site, site_json, site_of, told
from patchkit.cli.output import Output

if TYPE_CHECKING:
    from patchkit.ops.catalog import Catalog
    from patchkit.ops.check import PatchState

#: File lines that are printed for one patch; --json has them all.
_MOST = 20


def configure_check(parser: ArgumentParser) -> None:
    """The options of ``check``."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these patches")
    parser.add_argument("--quiet", "-q", action="store_true", help="print only what drifted")


@same_site
def run_check(arguments: Namespace) -> int:
    """Report the state of every patch; 0 when all is as wanted, 1 otherwise."""
    from patchkit.ops.check import check_site

    output: Output = arguments.output
    site = site_of(arguments)
    catalog = catalog_of(arguments)
    report = check_site(site, arguments.names, catalog, notice=output.note)
    states = report.states
    for notice in report.notices:
        output.note(told(arguments, notice))
    _print(arguments, states)
    for damage in report.damage:
        output.note(f"{output.paint('damaged', 'red', sys.stderr)}: {damage.message}")
        output.note(f"{output.paint('hint', 'cyan', sys.stderr)}: {told(arguments, damage.hint or '')}")
    for left in report.left:
        output.note(f"{output.paint('unfinished', 'red', sys.stderr)}: {left.message}")
        output.note(f"{output.paint('hint', 'cyan', sys.stderr)}: {told(arguments, left.hint or '')}")
    if not states and not report.damage and not report.left:
        # Also with --quiet: a check that looked in the wrong place must not pass for one that found all well.
        output.note(f"nothing was checked: no patch is applied in {site.home} and {_nobody(catalog)}")
    output.json(
        ok=report.clean,
        site=site_json(site),
        patches=[
            {
                "name": state.name,
                "state": state.state,
                "distribution": state.distribution,
                "version": state.version,
                "applied_version": state.applied_version,
                "files": [{"path": file.path, "state": file.state} for file in state.files],
                "reason": state.reason,
                "site": state.site,
            }
            for state in states
        ],
        notices=report.notices,
        damage=report.damage[0].to_json() if report.damage else None,
        experiment=report.left[0].to_json() if report.left else None,
    )
    return 0 if report.clean else 1


def _nobody(catalog: Catalog) -> str:
    if catalog.project is not None and catalog.project.listed:
        return "the project's list is empty"
    return f"no project wants any (looked for [tool.patchkit] from {os.getcwd()} upwards)"


def _print(arguments: Namespace, states: Sequence[PatchState]) -> None:
    output: Output = arguments.output
    several = len({state.site for state in states}) > 1
    shown = [state for state in states if not (arguments.quiet and state.clean)]
    width = max((len(state.name) for state in shown), default=0)
    for state in shown:
        style = "green" if state.clean else "red"
        version = f"{state.distribution} {state.version}" if state.version else state.distribution or ""
        line = f"{state.name.ljust(width)}  {output.paint(state.state.ljust(11), style)} {version}"
        output.line(line.rstrip() + (f"  in {state.site}" if several else ""))
        if state.reason:
            output.paragraph(told(arguments, state.reason), 4)
        if state.state in ("partial", "modified"):
            for file in state.files[:_MOST]:
                output.line(f"      {file.state.ljust(10)} {file.path}")
            if len(state.files) > _MOST:
                more = len(state.files) - _MOST
                output.line(f"      and {more} more file{'s' if more != 1 else ''}")
