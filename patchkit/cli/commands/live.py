"""``live``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from patchkit.cli.context import catalog_of, same_site, site_json, site_of, told
from patchkit.cli.output import Output
from patchkit.errors import PatchkitError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from patchkit.ops.live import Applied, Evidence, Probe, Seen, Verdict
    from patchkit.ops.records import Record
    from patchkit.site.environment import Site

_STYLES = {"ran": "green", "unknown": "yellow", "no-probe": "yellow"}
#: Processes that are printed for one probe; --json has them all.
_MOST = 8
_POLL_SECONDS = 0.2


def configure_live(parser: ArgumentParser) -> None:
    """The options of ``live``."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these patches")
    parser.add_argument("--pid", type=int, metavar="PID", help="a running job: this process and its descendants")
    parser.add_argument("--probes", metavar="DIR", help="the folder that the job had in $PATCHKIT_PROBES")
    parser.add_argument("--wait", type=float, metavar="SECONDS", help="wait that long for all of them to have run")


@same_site
def run_live(arguments: Namespace) -> int:
    """Tell which patches a job ran; 0 when all did, 1 otherwise."""
    from patchkit.ops.check import GLANCE_SECONDS, steady
    from patchkit.ops.homes import Homes
    from patchkit.ops.live import all_ran, applied
    from patchkit.ops.session import mend_all, once

    output: Output = arguments.output
    if arguments.pid is None and arguments.probes is None:
        raise UsageError(
            "live: which job? give --pid PID or --probes DIR",
            hint="start the job with PATCHKIT_PROBES=DIR, then `patchkit live --probes DIR`; while it runs: --pid PID",
        )
    if arguments.wait is not None and not 0 <= arguments.wait < 1e9:
        raise UsageError(f"--wait {arguments.wait}: not a number of seconds", hint="see `patchkit live --help`")
    note = once(output.note)
    site = site_of(arguments)
    mend_all(site, note)
    patches = steady(site, lambda: applied(Homes(site), arguments.names), wait=GLANCE_SECONDS, notice=note)
    verdicts, evidence = _look(arguments, site, patches, output)
    ran = all_ran(verdicts)
    for problem in evidence.problems:
        output.note(f"not read: {problem}")
    if not verdicts:
        output.note(f"nothing to judge: no patch is applied in {site.home}, and no record names one")
    _print(output, verdicts, evidence, told(arguments, "patchkit show"))
    output.json(
        ok=ran,
        site=site_json(site),
        patches=[_verdict_json(verdict) for verdict in verdicts],
        processes=None if evidence.seen is None else [_seen_json(seen) for seen in evidence.seen],
        folders=list(evidence.folders),
        problems=list(evidence.problems),
    )
    return 0 if ran else 1


def _by_file(arguments: Namespace, site: Site) -> Callable[[str], tuple[Probe, ...] | None]:
    """The probes of a patch by its file and the version that the site has; None where one of them is not there."""
    from functools import cache

    from patchkit.ops.live import probes_of

    @cache
    def look(name: str) -> tuple[Probe, ...] | None:
        try:
            catalog = catalog_of(arguments)
            patch = None if catalog.find(name) is None else catalog.load(name)
            target = None if patch is None else site.find(patch.target.name)
        except PatchkitError:
            return None
        return None if patch is None or target is None else probes_of(patch, target.version)

    return look


def _look(
    arguments: Namespace, site: Site, patches: Sequence[Applied], output: Output
) -> tuple[list[Verdict], Evidence]:
    """The verdicts; with ``--wait``, those of the moment at which all ran, the time is over, or the process is."""
    import time

    from patchkit.ops.live import all_ran, judge, of_folder, of_processes, set_apart
    from patchkit.ops.processes import tree_of

    declared = _by_file(arguments, site)
    began = time.monotonic()
    last: tuple[list[Verdict], Evidence] | None = None
    shown = 2.0
    while True:
        waited = time.monotonic() - began
        wait = arguments.wait is not None and waited < arguments.wait
        try:
            if arguments.pid is None:
                evidence = of_folder(arguments.probes)
            else:
                folders = [] if arguments.probes is None else [arguments.probes]
                evidence = of_processes(tree_of(arguments.pid), folders, patches)
        except UsageError as error:
            if last is not None and error.code == "no-process":
                output.note(f"pid {arguments.pid} has ended")
                return last
            if not (wait and error.code == "no-probes-folder"):
                raise
        else:
            evidence = set_apart(evidence, patches, site.home)
            last = judge(patches, evidence, arguments.names, declared), evidence
            if not wait or all_ran(last[0]):
                output.clear_status()
                return last
        if waited >= shown:
            output.status(f"waiting for the probes: {waited:.0f} of {arguments.wait:.0f} s")
            shown = waited + (1 if output.live else 30)
        time.sleep(min(_POLL_SECONDS, max(arguments.wait - waited, 0.01)))


def _print(output: Output, verdicts: Sequence[Verdict], evidence: Evidence, show: str) -> None:
    width = max((len(verdict.patch.name) for verdict in verdicts), default=0)
    for verdict in verdicts:
        state = output.paint(verdict.state.ljust(11), _STYLES.get(verdict.state, "red"))
        patch = verdict.patch
        about = f"{patch.distribution} {patch.version}" if patch.distribution else ""
        output.line(f"{patch.name.ljust(width)}  {state} {about}".rstrip())
        if verdict.reason:
            output.paragraph(verdict.reason, 4)
        if verdict.state == "no-probe":
            output.paragraph(
                'to know: add [[edit]] with file = "...", scope = "FUNCTION", probe = "words" to its patch file '
                f"(`{show} {patch.name}` names it), then apply it again",
                4,
            )
        for item in verdict.probes:
            output.line(f"    edit {item.probe.edit}  {item.state.ljust(10)}  {item.probe.function}")
            for record in (*item.ran, *item.loaded)[:_MOST]:
                output.line(f"        {_run_text(record)}")
            more = len(item.ran) + len(item.loaded) - _MOST
            if more > 0:
                output.line(f"        and {more} more")
    if any(seen.state == "unknown" for seen in evidence.seen or ()) and not (
        verdicts and all(verdict.state == "ran" for verdict in verdicts)
    ):
        output.paragraph(
            "to know: start the job with PATCHKIT_PROBES=DIR; where it set that for itself, name the folder "
            "with --probes DIR"
        )


def _run_text(record: Record) -> str:
    ranks = "".join(f" {name}={rank}" for name, rank in sorted(record.ranks.items()))
    when = f"ran {_time(record.ran)}" if record.ran is not None else f"loaded {_time(record.loaded)}, did not run"
    return f"pid {record.pid} {record.role}{ranks}: {when}"


def _time(seconds: float | None) -> str | None:
    """UTC in ISO form, to the millisecond; None for None and for what is no time."""
    from datetime import UTC, datetime

    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return None


def _verdict_json(verdict: Verdict) -> dict[str, Any]:
    patch = verdict.patch
    return {
        "name": patch.name,
        "state": verdict.state,
        "distribution": patch.distribution,
        "version": patch.version,
        "applied_at": patch.applied_at,
        "reason": verdict.reason,
        "counts": verdict.counts,
        "site": patch.site or None,
        "probes": [
            {
                **item.probe._asdict(),
                "state": item.state,
                "processes": [_record_json(record) for record in (*item.ran, *item.loaded)],
            }
            for item in verdict.probes
        ],
    }


def _record_json(record: Record) -> dict[str, Any]:
    return {
        "pid": record.pid,
        "parent": record.parent,
        "role": record.role,
        "title": record.title,
        "ranks": dict(record.ranks),
        "host": record.host,
        "executable": record.executable,
        "python": record.python,
        "module": record.module,
        "path": record.path or None,
        "loaded": _time(record.loaded),
        "ran": _time(record.ran),
    }


def _seen_json(seen: Seen) -> dict[str, Any]:
    process = seen.process
    return {
        "pid": process.pid,
        "parent": process.parent,
        "title": process.title,
        "executable": process.executable,
        "started": _time(process.started),
        "folder": process.folder,
        "state": seen.state,
        "started_before": list(seen.older_than),
        "reason": seen.reason,
    }
