"""``matrix``: a patch against the releases of its target."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from patchkit.cli.context import catalog_of, site_json, site_of
from patchkit.cli.output import Output
from patchkit.errors import SiteError, UsageError

if TYPE_CHECKING:
    from patchkit.author.matrix import Column, Verdict
    from patchkit.model.patch import Patch

_STYLES = {"applies": "green", "upstreamed": "cyan", "fails": "red", "no-edits": "yellow", "no-wheel": "yellow"}


def configure_matrix(parser: ArgumentParser) -> None:
    """The options of ``matrix``."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="a patch, by name or by the path of its file")
    parser.add_argument("--versions", metavar="SPEC", help='only these releases, as in --versions ">=0.23,<0.33"')
    parser.add_argument("--all", action="store_true", help="the project's patches, on their releases and newer ones")
    parser.add_argument("--upgrade", metavar="DIST==V", help="would the site's applied patches survive this upgrade?")
    parser.add_argument("--pre", action="store_true", help="prereleases as well")
    parser.add_argument(
        "--limit", type=int, default=20, metavar="N", help="the newest N releases (default: 20; 0: all)"
    )
    parser.add_argument("--markdown", action="store_true", help="print a table for a README")
    parser.add_argument("--offline", action="store_true", help="ask no index: only releases that are in the cache")


def run_matrix(arguments: Namespace) -> int:
    """Show where patches fit; 1 when one does not fit a release that it says it is for."""
    if arguments.upgrade is not None:
        if arguments.names or arguments.all or arguments.versions or arguments.markdown:
            raise UsageError("--upgrade takes no NAME, and no --all, --versions or --markdown", hint=_HELP)
        return _upgrade(arguments)
    if bool(arguments.names) == bool(arguments.all):
        raise UsageError("name a patch, or give --all" if not arguments.all else "--all takes no NAME", hint=_HELP)
    if arguments.limit < 0:
        raise UsageError(f"--limit {arguments.limit}: at least 0, which is all", hint=_HELP)
    from patchkit.author import matrix
    from patchkit.cli.progress import Ticker

    output: Output = arguments.output
    found = matrix.run_matrix(
        _patches(arguments),
        versions=arguments.versions,
        pre=arguments.pre,
        limit=arguments.limit,
        offline=arguments.offline,
        newer_only=arguments.all,
        progress=Ticker(output),
    )
    with closing(found):
        columns = list(_shown_as_they_come(output, found, quiet=arguments.markdown))
    output.clear_status()
    _refuse_nothing_judged(columns)
    if arguments.markdown:
        for line in _markdown(columns):
            output.line(line)
    cache = _cache(columns)
    if not arguments.markdown:
        _footer(output, columns, cache)
    unjudged = [v for c in columns for v in c.verdicts if v.admitted and v.state == "unavailable"]
    ok = not unjudged and not any(column.failing for column in columns)
    output.json(ok=ok, patches=[_column_json(column) for column in columns], cache=cache)
    return 0 if ok else 1


_HELP = "see `patchkit matrix --help`"


def _patches(arguments: Namespace) -> list[Patch]:
    """The patches named; with ``--all`` those of the project's list, else those of its folders, else those shipped."""
    catalog = catalog_of(arguments)
    if not arguments.all:
        return [catalog.load(name) for name in dict.fromkeys(arguments.names)]
    wanted: Sequence[str] = catalog.project.wanted if catalog.project is not None else ()
    if not wanted:
        known = list(catalog.names())
        own = [path for _, path, origin in known if origin in ("--patches", "project", "folder")]
        wanted = own or [path for _, path, origin in known if origin == "shipped"]
    return [catalog.load(name) for name in wanted]


def _shown_as_they_come(output: Output, columns: Iterator[Column], *, quiet: bool) -> Iterator[Column]:
    for column in columns:
        output.clear_status()
        if not quiet:
            _table(output, column)
        yield column


def _table(output: Output, column: Column) -> None:
    patch, verdicts = column.patch, column.verdicts
    of = len(column.listing.versions)
    count = f"{len(verdicts)} of {of} releases" if len(verdicts) != of else _count(of, "release")
    output.line(f"{output.paint(patch.name, 'bold')} on {patch.target.name}: {count}, newest first")
    width = max(len(v.version) for v in verdicts)
    for verdict in verdicts:
        state = verdict.state + ("" if verdict.admitted else " *")
        words = "; ".join(_words(verdict))
        head = f"  {verdict.version.ljust(width)}  "
        painted = output.paint(state, _STYLES.get(verdict.state, "red"))
        if not words:
            output.line(head + painted)
            continue
        indent = len(head) + 15
        first, *rest = _fold(words, 80 - indent)
        output.line(f"{head}{painted}{' ' * (15 - len(state))}{first}")
        for line in rest:
            output.line(" " * indent + line)
    if not all(verdict.admitted for verdict in verdicts):
        output.line("  * outside of the patch's requirement: `apply` refuses there")
    _requirement(output, column)
    output.line()


def _fold(text: str, width: int) -> list[str]:
    import textwrap

    return textwrap.wrap(text, max(width, 30), break_long_words=False, break_on_hyphens=False) or [""]


def _words(verdict: Verdict) -> list[str]:
    where = verdict.part or ""
    if verdict.line is not None:
        where += f" (line {verdict.line})"
    reason = f"{where}: {verdict.reason}" if where and verdict.reason else where or verdict.reason or ""
    return [text for text in (reason, verdict.note) if text]


def _requirement(output: Output, column: Column) -> None:
    current, proposal, proposed = column.patch.target.requirement, column.proposal(), column.proposed
    if proposed is None:
        output.line(f"  requirement: {current}; it fits none of these releases")
        return
    if column.exact:
        output.line(f"  requirement: {current} admits exactly the releases tried that it fits")
    else:
        output.line(f"  requirement now: {current}")
        output.line(f"         proposed: {output.paint(proposal or '', 'bold')}")
        output.paragraph(
            f"to take it: `requirement` in [target] of {column.patch.path or column.patch.name}", 2, hanging=2
        )
    newest = column.fits[0].version
    notes = []
    if proposed.open_end:
        where = "in the cache" if column.listing.offline else "there is"
        notes.append(f"{newest} is the newest release {where}: the upper bound is a guess about what comes next")
    if proposed.left_out:
        notes.append(f"it fits {', '.join(proposed.left_out)} as well, before releases that it does not fit")
    if proposed.untried:
        notes.append(f"not tried, within the proposed range: {_few(proposed.untried)}")
    newer = [v.version for v in column.verdicts[: column.verdicts.index(column.fits[0])] if v.state in _PORTABLE]
    failing = newer[-1:] or [v.version for v in column.failing if v.state in _PORTABLE][:1]
    if failing:
        notes.append(f"to carry it to {failing[0]}: `patchkit port {column.patch.name} --to {failing[0]}`")
    for note in notes:
        output.paragraph(note, 2, hanging=2)


_PORTABLE = ("fails", "no-edits")
"""The states of a release that `port` may help with."""


def _few(names: Sequence[str], most: int = 6) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number != 1 else ''}"


def _refuse_nothing_judged(columns: Sequence[Column]) -> None:
    """Refuse to call anything clean where not one wheel could be had."""
    for column in columns:
        if column.verdicts and all(v.state in ("no-wheel", "unavailable") for v in column.verdicts):
            raise SiteError(
                f"{column.patch.name}: no release of {column.patch.target.name} could be had: "
                f"{column.verdicts[0].reason}",
                code="fetch",
                hint="check the network and pip's configuration (`pip config list`), or use --offline",
                details={"distribution": column.patch.target.name},
            )


def _cache(columns: Sequence[Column]) -> dict[str, Any]:
    from patchkit.author.published import folder_size, wheel_folder

    folders = {wheel_folder(column.patch.target.name) for column in columns}
    return {"path": wheel_folder(), "bytes": sum(map(folder_size, folders))}


def _footer(output: Output, columns: Sequence[Column], cache: dict[str, Any]) -> None:
    requires = sorted({text for column in columns for text in column.patch.target.requires})
    marked = any(column.requirement.marker is not None for column in columns)
    unchecked = [*(["the marker"] if marked else []), *(f"requires {text}" for text in requires)]
    if unchecked:
        output.paragraph(f"not checked, there being no environment: {', '.join(unchecked)}", hanging=2)
    for why in dict.fromkeys(c.listing.offline for c in columns if c.listing.offline):
        output.paragraph(f"only releases of the cache: {why}", hanging=2)
    output.paragraph(
        f"wheels: {cache['path']}, {cache['bytes'] / 1e6:.1f} MB for these; remove the folder to clear it", hanging=2
    )


def _markdown(columns: Sequence[Column]) -> Iterator[str]:
    """One table for each distribution, a column for each patch; what fails is told below it."""
    by_name: dict[str, list[Column]] = {}
    for column in columns:
        by_name.setdefault(column.listing.name, []).append(column)
    for number, (name, group) in enumerate(by_name.items()):
        if number:
            yield ""
        yield f"| {name} | {' | '.join(column.patch.name for column in group)} |"
        yield "|---" * (len(group) + 1) + "|"
        cells = [{v.version: v for v in column.verdicts} for column in group]
        versions = [v for v in reversed(group[0].listing.versions) if any(v in cell for cell in cells)]
        for version in versions:
            found = (cell.get(version) for cell in cells)
            yield f"| {version} | {' | '.join(_cell(verdict) for verdict in found)} |"
        yield ""
        for column in group:
            proposal = column.proposal()
            if proposal is not None and not column.exact:
                yield f"- `{column.patch.name}` fits `{proposal}` of the releases tried"
            for verdict in column.verdicts:
                words = "; ".join(_words(verdict)).replace("|", "\\|")
                if words and verdict.state != "applies":
                    yield f"- `{column.patch.name}` on {verdict.version}: {words}"


def _cell(verdict: Verdict | None) -> str:
    if verdict is None:
        return "not tried"
    return verdict.state + ("" if verdict.admitted or verdict.state == "upstreamed" else " (outside of its range)")


def _column_json(column: Column) -> dict[str, Any]:
    proposed = column.proposed
    return {
        "name": column.patch.name,
        "distribution": column.listing.name,
        "versions": [verdict._asdict() for verdict in column.verdicts],
        "requirement": {
            "current": column.patch.target.requirement,
            "proposed": column.proposal(),
            "exact": column.exact,
            "newest_fits": proposed.open_end if proposed is not None else False,
            "left_out": list(proposed.left_out) if proposed is not None else [],
            "untried": list(proposed.untried) if proposed is not None else [],
        },
        "offline": column.listing.offline,
    }


def _upgrade(arguments: Namespace) -> int:
    """Say whether the applied patches survive an upgrade; 1 when one does not."""
    from patchkit.author.upgrade import check_upgrade

    output: Output = arguments.output
    site = site_of(arguments)
    catalog = catalog_of(arguments)
    found = check_upgrade(site, arguments.upgrade, find_patch=catalog.file_of, offline=arguments.offline)
    now = f" (installed: {found.installed})" if found.installed else ""
    output.line(f"{found.distribution} {found.version}{now}; nothing is installed by this")
    width = max(len(patch.name) for patch in found.patches)
    for patch in found.patches:
        style = {"survives": "green", "upstreamed": "cyan"}.get(patch.state, "red")
        words = _words(patch.verdict)
        if patch.state == "refused":
            words = ["its edits fit, but its requirement does not admit the release", *words]
            words.append(" ".join(patch.otherwise.split()) if patch.otherwise else "widen it, if it still makes sense:")
        if patch.source is None:
            why = f", since its file cannot be: {patch.passed_over}" if patch.passed_over else ""
            words.append(f"judged by the ledger's copy of the patch{why}")
        output.line(f"  {patch.name.ljust(width)}  {output.paint(patch.state, style)}")
        for text in words:
            output.paragraph(text, width + 4, hanging=2)
        if patch.state == "needs-port" or (patch.state == "refused" and not patch.otherwise):
            output.line(f"{' ' * (width + 4)}see: patchkit port {patch.name} --to {found.version}")
    output.json(
        ok=found.ok,
        site=site_json(site),
        distribution=found.distribution,
        version=found.version,
        installed=found.installed,
        patches=[
            {
                "name": patch.name,
                "state": patch.state,
                "applied_version": patch.applied_version,
                "source": patch.source,
                "otherwise": patch.otherwise,
                "passed_over": patch.passed_over,
                **{k: v for k, v in patch.verdict._asdict().items() if k not in ("state", "version", "admitted")},
            }
            for patch in found.patches
        ],
    )
    return 0 if found.ok else 1
