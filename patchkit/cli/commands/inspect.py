"""``list``, ``show``, ``diff`` and ``log``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from patchkit.cli.context import catalog_of, same_site, site_json, site_of, told
from patchkit.cli.output import Output
from patchkit.errors import PatchkitError, UsageError
from patchkit.visible import visible

if TYPE_CHECKING:
    from patchkit.model.patch import Patch
    from patchkit.ops.inspect import FileDifference, ListWord

_STYLES = {
    "applied": "green",
    "available": "bold",
    "conflict": "red",
    "refused": "dim",
    "upstreamed": "cyan",
    "wrong": "red",
    "drifted": "red",
}


def configure_list(parser: ArgumentParser) -> None:
    """``list`` has no options of its own."""


@same_site
def run_list(arguments: Namespace) -> int:
    """List the patches."""
    from patchkit.ops.check import GLANCE_SECONDS, steady
    from patchkit.ops.homes import Homes
    from patchkit.ops.inspect import list_patches
    from patchkit.ops.session import mend_all, once

    output: Output = arguments.output
    note = once(output.note)
    site = site_of(arguments)
    mend_all(site, note)
    catalog = catalog_of(arguments)
    listed = steady(site, lambda: list_patches(Homes(site), catalog), wait=GLANCE_SECONDS, notice=note)
    recorded = {item.site for item in listed if item.state in ("applied", "drifted")}
    width = max((len(item.name) for item in listed), default=0)
    for item in listed:
        mark = "  [wanted]" if item.wanted else ""
        name = output.paint(visible(item.name).ljust(width), "bold")
        head = f"{name}  {output.paint(item.state.ljust(10), _STYLES[item.state])}"
        where = f"  in {item.site}" if len(recorded) > 1 and item.site in recorded else ""
        output.line(f"{head}  {item.requirement}{mark}{where}".rstrip())
        if item.summary:
            output.paragraph(item.summary, 4)
        if item.reason:
            output.paragraph(told(arguments, item.reason), 4, "dim")
        if item.tags:
            output.paragraph(f"tags: {', '.join(item.tags)}", 4)
    if not listed:
        output.line("no patches found: put NAME.toml into ./patches, or name a folder with --patches")
    output.json(ok=True, site=site_json(site), patches=[item._asdict() for item in listed])
    return 0


def configure_show(parser: ArgumentParser) -> None:
    """The options of ``show``."""
    parser.add_argument("name", metavar="NAME", help="a patch, by name or by the path of its file")


@same_site
def run_show(arguments: Namespace) -> int:
    """Explain one patch."""
    from patchkit.ops.check import GLANCE_SECONDS, steady
    from patchkit.ops.homes import Homes
    from patchkit.ops.inspect import describe, find_patch, states_of
    from patchkit.ops.session import mend_all, once

    output: Output = arguments.output
    note = once(output.note)
    catalog = catalog_of(arguments)
    found: list[Patch] = []
    state, reason = "unknown", None
    here: list[str] = []
    site = None
    try:
        site = looked_at = site_of(arguments)
        mend_all(site, note)

        def look() -> list[tuple[ListWord, str | None, str]]:
            homes = Homes(looked_at)
            found.clear()  # of an earlier look
            found.append(find_patch(homes, catalog, arguments.name))
            return states_of(homes, found[0])

        states = steady(site, look, wait=GLANCE_SECONDS, notice=note)
        state, reason, _ = states[0]
        here = [f"{word} in {home}" + (f" ({why})" if why else "") for word, why, home in states]
    except PatchkitError as error:
        # A patch can be explained without a site; but a damaged one must not go by in silence.
        if site is not None and (not found or error.exit_status == 5):
            raise
        reason = error.message
    patch = found[0] if found else catalog.load(arguments.name)
    target = patch.target
    output.paragraph(f"{output.paint(patch.name, 'bold')}: {patch.summary}")
    output.line(f"file: {patch.path}")
    output.line(f"for: {target.requirement}" + "".join(f", with {r}" for r in target.requires))
    stands = f"here: {', '.join(here)}" if len(here) > 1 else f"here: {state}" + (f" ({reason})" if reason else "")
    output.paragraph(told(arguments, stands))
    if patch.tags:
        output.line(f"tags: {', '.join(patch.tags)}")
    if target.conflicts:
        output.line(f"not together with: {', '.join(target.conflicts)}")
    if target.after:
        output.line(f"after, where both are wanted: {', '.join(target.after)}")
    if target.otherwise:
        output.paragraph(f"otherwise: {target.otherwise}")
    for link in patch.links:
        output.line(f"link: {link}")
    if patch.description.strip():
        output.line()
        for line in patch.description.strip().split("\n"):
            output.line(line)
    output.line()
    words = describe(patch)
    for line in words:
        output.paragraph(f"- {line}", hanging=2)
    output.json(
        ok=True,
        site=site_json(site) if site is not None else None,
        name=patch.name,
        summary=patch.summary,
        description=patch.description,
        path=patch.path,
        digest=patch.digest,
        links=list(patch.links),
        tags=list(patch.tags),
        target={
            "requirement": target.requirement,
            "requires": list(target.requires),
            "otherwise": target.otherwise,
            "optional": target.optional,
            "conflicts": list(target.conflicts),
            "after": list(target.after),
        },
        state=state,
        reason=reason,
        does=words,
    )
    return 0


def configure_diff(parser: ArgumentParser) -> None:
    """The options of ``diff``."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="only the files of this patch")


@same_site
def run_diff(arguments: Namespace) -> int:
    """Show what the site differs by."""
    from patchkit.ops.check import GLANCE_SECONDS, steady
    from patchkit.ops.homes import Homes
    from patchkit.ops.inspect import differences, unified
    from patchkit.ops.session import mend_all, once

    output: Output = arguments.output
    note = once(output.note)
    site = site_of(arguments)
    mend_all(site, note)

    def look() -> tuple[Homes, list[FileDifference]]:
        homes = Homes(site)
        return homes, differences(homes, [arguments.name] if arguments.name else [])

    homes, found = steady(site, look, wait=GLANCE_SECONDS, notice=note)
    several = len({item.site for item in found}) > 1
    if not any(workspace.ledger.patches for workspace in homes.all()):
        output.note("no patch is applied: there is nothing to compare")
        output.note(told(arguments, "a hand edit of a distribution shows with `patchkit create NAME DIST --dry-run`"))
    elif not found:
        output.note("no file differs from what was installed")
    for item in found:
        if item.modified:
            output.note(f"{item.path}: holds edits made by hand as well")
        if several:
            output.note(f"{item.path}: in {item.site}")
        output.diff(unified(item.path, item.pristine, item.current, exact=True))
    output.json(
        ok=True,
        site=site_json(site),
        files=[
            {
                "path": item.path,
                "patches": list(item.patches),
                "modified": item.modified,
                "site": item.site,
                "diff": unified(item.path, item.pristine, item.current),
            }
            for item in found
        ],
    )
    return 0


def configure_log(parser: ArgumentParser) -> None:
    """The options of ``log``."""
    parser.add_argument("-n", "--number", type=int, metavar="N", help="only the last N entries")


@same_site
def run_log(arguments: Namespace) -> int:
    """Show the history."""
    from patchkit.ops.session import history, mend_all

    output: Output = arguments.output
    if arguments.number is not None and arguments.number < 1:
        raise UsageError(f"-n {arguments.number}: at least 1 entry", hint="see `patchkit log --help`")
    site = site_of(arguments)
    mend_all(site, output.note)
    events = history(site)
    several = len({event["site"] for event in events}) > 1
    if arguments.number is not None:
        events = events[-arguments.number :]
    for event in events:
        patches = event.get("patches")
        names = " ".join(map(str, patches)) if isinstance(patches, list) and patches else "-"
        files = event.get("files")
        count = f"  {files} file{'s' if files != 1 else ''}" if isinstance(files, int) else ""
        result = event.get("result")
        how = f"  {result}" if result not in (None, "done") else ""
        command = str(event.get("command")).ljust(8)
        where = f"  in {event['site']}" if several else ""
        # One line each, whatever somebody wrote into the log.
        text = f"{event.get('time')}  {command} {names}{count}{how}  {event.get('user') or ''}".rstrip() + where
        output.line(visible(text))
    if not events:
        output.line(f"nothing was done to {site.home} yet")
    output.json(ok=True, site=site_json(site), events=events)
    return 0
