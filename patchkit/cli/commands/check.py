"""``check``: the command that runs at every process start, so it imports next to nothing."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from patchkit.cli.context import catalog_of, site_json, site_of
from patchkit.cli.output import Output
from patchkit.errors import SiteError

if TYPE_CHECKING:
    from patchkit.ops.check import PatchState


def configure_check(parser: ArgumentParser) -> None:
    """The options of ``check``."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these patches")
    parser.add_argument("--quiet", "-q", action="store_true", help="print only what drifted")


def run_check(arguments: Namespace) -> int:
    """Report the state of every patch; 0 when all is as wanted, 1 otherwise."""
    from patchkit.ops.check import check_site, corrupt_states
    from patchkit.ops.session import mend, read_ledger

    output: Output = arguments.output
    site = site_of(arguments)
    catalog = catalog_of(arguments)
    damage: SiteError | None = None
    try:
        ledger, notices = read_ledger(site)
        states = check_site(site, ledger, arguments.names, catalog)
    except SiteError as error:
        if error.code != "corrupt" or "salvaged" not in error.details:
            raise
        damage, notices = error, mend(site)
        states = corrupt_states(site, error, arguments.names, catalog)
    for notice in notices:
        output.note(notice)
    clean = damage is None and all(state.clean for state in states)
    _print(output, [state for state in states if not (arguments.quiet and state.clean)])
    if damage is not None:
        output.note(f"{output.paint('damaged', 'red', sys.stderr)}: {damage.message}")
        output.note(f"{output.paint('hint', 'cyan', sys.stderr)}: {damage.hint}")
    elif not states:
        output.line(f"no patches: none is applied in {site.home}, and no project wants any")
    output.json(
        ok=clean,
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
            }
            for state in states
        ],
        notices=notices,
        damage=None if damage is None else damage.to_json(),
    )
    return 0 if clean else 1


def _print(output: Output, states: Sequence[PatchState]) -> None:
    width = max((len(state.name) for state in states), default=0)
    for state in states:
        style = "green" if state.clean else "red"
        version = f"{state.distribution} {state.version}" if state.version else state.distribution or ""
        line = f"{state.name.ljust(width)}  {output.paint(state.state.ljust(11), style)} {version}"
        output.line(line.rstrip())
        if state.reason:
            output.paragraph(state.reason, 4)
        if state.state in ("partial", "modified"):
            for file in state.files:
                output.line(f"      {file.state.ljust(10)} {file.path}")
