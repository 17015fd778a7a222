"""``check``: the command that runs at every process start, so it imports next to nothing."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from patchkit.cli.context import catalog_of, site_json, site_of
from patchkit.cli.output import Output


def configure_check(parser: ArgumentParser) -> None:
    """The options of ``check``."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these patches")
    parser.add_argument("--quiet", "-q", action="store_true", help="print only what drifted")


def run_check(arguments: Namespace) -> int:
    """Report the state of every patch; 0 when all is as wanted, 1 otherwise."""
    from patchkit.ops.check import check_site
    from patchkit.ops.session import read_ledger

    output: Output = arguments.output
    site = site_of(arguments)
    ledger, notices = read_ledger(site)
    for notice in notices:
        output.note(notice)
    states = check_site(site, ledger, arguments.names, catalog_of(arguments))
    clean = all(state.clean for state in states)
    width = max((len(state.name) for state in states), default=0)
    for state in states:
        if arguments.quiet and state.clean:
            continue
        style = "green" if state.clean else "red"
        version = f"{state.distribution} {state.version}" if state.version else state.distribution or ""
        line = f"{state.name.ljust(width)}  {output.paint(state.state.ljust(11), style)} {version}"
        output.line(line.rstrip())
        if state.reason:
            output.line(f"{' ' * width}  {state.reason}")
        if state.state in ("partial", "modified"):
            for file in state.files:
                output.line(f"{' ' * width}    {file.state.ljust(10)} {file.path}")
    if not states:
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
    )
    return 0 if clean else 1
