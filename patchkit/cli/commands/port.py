"""``port``: a patch for a release that it does not fit."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from patchkit.cli.context import catalog_of, refuse_foreign, site_of
from patchkit.cli.output import Output

if TYPE_CHECKING:
    from patchkit.author.proposal import Part, Port
    from patchkit.model.patch import Patch

_STYLES = {"fits": "green", "ported": "cyan", "widened": "cyan", "narrowed": "cyan", "decide": "red"}


def configure_port(parser: ArgumentParser) -> None:
    """The options of ``port``."""
    parser.add_argument("name", metavar="NAME", help="a patch, by name or by the path of its file")
    parser.add_argument("--to", metavar="V", required=True, help="the release that it shall fit")
    parser.add_argument(
        "--from", metavar="V", dest="base", help="a release that it fits (default: the nearest older one that it does)"
    )
    parser.add_argument("--write", action="store_true", help="write the proposal into the patch file")
    parser.add_argument(
        "--in-place", action="store_true", help="replace what does not fit, and give the older releases up"
    )
    parser.add_argument("--offline", action="store_true", help="ask no index: only releases that are in the cache")


def run_port(arguments: Namespace) -> int:
    """Propose where the edits of a patch go on another release; 1 when a person must decide."""
    from patchkit.author.bases import port_to
    from patchkit.author.save import replace_file
    from patchkit.cli.progress import Ticker

    output: Output = arguments.output
    catalog = catalog_of(arguments)
    patch = catalog.load(arguments.name)
    if arguments.write:
        refuse_foreign(catalog, patch)
    named = arguments.python is not None or arguments.site is not None
    found = port_to(
        patch,
        arguments.to,
        base=arguments.base,
        in_place=arguments.in_place,
        offline=arguments.offline,
        site=site_of(arguments) if named else None,
        progress=Ticker(output),
    )
    output.clear_status()
    written = None
    diff = _diff(patch, found)
    _show(output, found, diff, write=arguments.write)
    if found.data is not None and patch.path is not None:
        if arguments.write:
            replace_file(patch.path, patch.data, found.data)
            written = patch.path
            output.line(f"written: {patch.path}")
        else:
            output.line("nothing is written; to write it:")
            output.line(f"  {_to_write(arguments)}")
    ok = found.state != "decide"
    output.json(
        ok=ok,
        name=patch.name,
        distribution=patch.target.name,
        releases={"from": found.old_version, "to": found.new_version},
        state=found.state,
        problem=found.problem,
        requirement=found.requirement,
        parts=[_part_json(part) for part in found.parts],
        between=[{"version": version, "fits": reason is None, "reason": reason} for version, reason in found.between],
        upstreamed=found.upstreamed,
        diff=diff or None,
        written=written,
    )
    return 0 if ok else 1


def _to_write(arguments: Namespace) -> str:
    """The same command, as it is typed, with --write."""
    folders = [*(arguments.patches or ()), *(getattr(arguments, "patches_behind", None) or ())]
    options = [("--python", arguments.python), ("--site", arguments.site), *(("--patches", one) for one in folders)]
    words = ["patchkit", *_given(options), "port", arguments.name, "--to", arguments.to]
    words += [*_given([("--from", arguments.base)]), *(["--in-place"] if arguments.in_place else [])]
    return shlex.join([*words, *(["--offline"] if arguments.offline else []), "--write"])


def _given(options: Sequence[tuple[str, str | None]]) -> list[str]:
    return [word for option, value in options if value is not None for word in (option, value)]


def _diff(patch: Patch, found: Port) -> str:
    from patchkit.ops.inspect import unified

    return "" if found.data is None else unified(f"{patch.name}.toml", patch.data, found.data)


def _show(output: Output, found: Port, diff: str, *, write: bool) -> None:
    name = found.patch.target.name
    output.line(
        f"{output.paint(found.patch.name, 'bold')}: from {name} {found.old_version} to {name} {found.new_version}"
    )
    if found.state == "upstreamed":
        output.line(f"  {name} {found.new_version} has the change itself: there is nothing to port")
        if found.upstreamed is not None:
            output.line("  the patch file does not say so yet; to be added to it, when you have looked at the change:")
            output.line()
            for line in found.upstreamed.splitlines():
                output.line(line)
    for part in found.parts:
        _show_part(output, part, found)
    if found.problem is not None:
        output.line(output.paint("not proposed:", "red"))
        for line in found.problem.split("\n"):
            output.line(f"  {line}")
    if found.state == "fits":
        output.line("every edit fits as it is, and the requirement admits the release: there is nothing to port")
    elif found.state == "decide":
        done = "; nothing was written" if write else ""
        output.line(f"a person must decide; nothing is proposed for the patch file{done}")
        _show_next(output, found)
    if found.data is not None:
        output.line()
        output.diff(diff)
        output.paragraph(
            f"proved in memory: on {found.new_version} it applies, its conditions hold and its files parse"
            + ("" if found.requirement is None else f"; the requirement is {found.requirement} now")
            + ". A proposal: look at the new place, where a line that looks like the old one may do another thing."
        )
        _show_between(output, found)


def _show_between(output: Output, found: Port) -> None:
    """Which releases between the two were tried, and that there may be more."""
    fits = [version for version, reason in reversed(found.between) if reason is None]
    if fits:
        output.paragraph(f"in between, it applies to {', '.join(fits)}, which the cache has")
    for version, reason in reversed(found.between):
        if reason is not None:
            output.paragraph(f"{output.paint('look', 'yellow')}: it does not fit {version}: {reason}")
    if any(part.since is not None and part.variant is not None for part in found.parts):
        output.paragraph("where the new edits begin is told by the releases that the cache has")
    output.paragraph(
        f"releases that the cache has not are not looked at: `patchkit matrix {found.patch.name}`, once it is written"
    )


def _show_next(output: Output, found: Port) -> None:
    """What a person who must decide does next."""
    from patchkit.author.relax import from_on

    undecided = [part for part in found.parts if part.state == "decide"]
    for part in undecided:
        if part.draft is not None:
            output.line()
            output.line(f"to start from, for {part.table} {part.index}; it changes nothing yet:")
            output.line()
            for line in part.draft.splitlines():
                output.line(line)
            output.line()
    parts = ", ".join(f"{part.table} {part.index}" for part in undecided) or "it"
    lines = [str(part.line) for part in undecided if part.line is not None]
    where = f" (line {', '.join(lines)})" if lines else ""
    output.paragraph(
        f"next: in {found.patch.path or found.patch.name}, write what {parts}{where} is to be on "
        f'{found.new_version}, as a further one with `versions = "{from_on(found.new_version, found.old_version)}"`, '
        "or say with [[upstreamed]] that the release has the change. Then: "
        f"`patchkit matrix {found.patch.name}`"
    )


def _show_part(output: Output, part: Part, found: Port) -> None:
    lines = ""
    if part.old_line is not None and part.new_line is not None and part.state != "decide":
        lines = f", line {part.old_line} -> {part.new_line}"
    state = output.paint(part.state, _STYLES[part.state])
    output.line(f"  {part.table} {part.index}: {state}  {part.path or ''}{lines}")
    if part.reason is not None:
        output.paragraph(part.reason, 6, hanging=2)
    for evidence in part.evidence:
        output.paragraph(f"evidence: {evidence}", 6, hanging=2)
    for caution in part.cautions:
        output.paragraph(f"{output.paint('look', 'yellow')}: {caution}", 6, hanging=2)
    if part.old_lines or part.new_lines:
        if part.state == "decide":
            was, now = (f"{version} from line" for version in (found.old_version, found.new_version))
            output.line(f"      - {was} {part.old_line}, + {now} {part.new_line}:")
        for line in _compared(part):
            output.line(f"      {line}")
    if part.change:
        output.line(f"      what the edit does on {found.old_version}:")
        for line in part.change:
            output.line(f"      {line.rstrip()}")
    for line in part.candidates:
        output.line(f"      {line}")


def _compared(part: Part) -> list[str]:
    """The lines at the old place against those at the new one."""
    import difflib

    old, new = ([line.removesuffix("\n") for line in lines] for lines in (part.old_lines, part.new_lines))
    size = max(len(old), len(new))
    return list(difflib.unified_diff(old, new, n=size, lineterm=""))[3:] or [f" {line}" for line in old]


def _part_json(part: Part) -> dict[str, Any]:
    return {
        "table": part.table,
        "index": part.index,
        "state": part.state,
        "code": part.code,
        "line": part.line,
        "path": part.path,
        "old_line": part.old_line,
        "new_line": part.new_line,
        "reason": part.reason,
        "evidence": list(part.evidence),
        "cautions": list(part.cautions),
        "old_lines": list(part.old_lines),
        "new_lines": list(part.new_lines),
        "candidates": list(part.candidates),
        "variant": _variant_json(part),
        "since": part.since,
        "change": list(part.change),
        "draft": part.draft,
    }


def _variant_json(part: Part) -> dict[str, Any] | None:
    if part.variant is None:
        return None
    keys = ("files", "file", "scope", "inside", "find", "match", "action", "text", "count", "nth")
    return {key: getattr(part.variant, key) for key in keys if key in part.variant._fields}
