"""``apply``, ``revert`` and ``sync``."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from patchkit.cli.context import catalog_of, same_site, site_json, site_of, told
from patchkit.cli.output import Output

if TYPE_CHECKING:
    from patchkit.ops.outcome import Discarded, FileResult, Outcome, PatchResult
    from patchkit.site.environment import Site

#: File lines that are printed for one patch; --json has them all.
_MOST = 20

_VERBS = {
    "applied": ("applied", "green"),
    "unchanged": ("unchanged", "dim"),
    "upstreamed": ("upstreamed", "cyan"),
    "skipped": ("skipped", "yellow"),
    "reverted": ("reverted", "green"),
}


def configure_apply(parser: ArgumentParser) -> None:
    """The options of ``apply``."""
    parser.add_argument("names", nargs="+", metavar="NAME", help="a patch, by name or by the path of its file")
    _plan_options(parser)
    parser.add_argument("--allow-known-bad", action="store_true", help="accept patches tagged known-bad")


def configure_revert(parser: ArgumentParser) -> None:
    """The options of ``revert``."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="an applied patch")
    parser.add_argument("--all", action="store_true", help="every applied patch")
    parser.add_argument(
        "--force", action="store_true", help="discard hand edits that cannot be kept, after showing them"
    )
    _plan_options(parser)


def configure_sync(parser: ArgumentParser) -> None:
    """The options of ``sync``."""
    _plan_options(parser)
    parser.add_argument("--allow-known-bad", action="store_true", help="accept patches tagged known-bad")


def _plan_options(parser: ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="plan and report, write nothing")
    parser.add_argument("--diff", action="store_true", help="show the unified diff of what is written")
    parser.add_argument(
        "--fetch", action="store_true", help="take a file's original from the released wheel, where nothing else has it"
    )


@same_site
def run_apply(arguments: Namespace) -> int:
    """Apply the named patches."""
    from patchkit.ops.apply import apply_site

    output: Output = arguments.output
    catalog = catalog_of(arguments)
    patches = [catalog.load(name) for name in arguments.names]
    site = site_of(arguments)
    outcome = apply_site(
        site,
        patches,
        dry_run=arguments.dry_run,
        allow_known_bad=arguments.allow_known_bad,
        notice=output.note,
        fetch=output.status if arguments.fetch else None,
        find_patch=catalog.find,
    )
    return _report(arguments, outcome, site)


@same_site
def run_revert(arguments: Namespace) -> int:
    """Take the named patches out."""
    from patchkit.ops.revert import revert_site

    output: Output = arguments.output
    site = site_of(arguments)

    def show(discarded: Sequence[Discarded]) -> None:
        # Before a byte is written: whoever sees with horror what goes can still stop it, or read it here.
        for item in discarded:
            output.note(f"{item.path}: the edits made by hand here are discarded:")
            output.diff(_discarded_diff([item], exact=True))
        output.flush()

    outcome = revert_site(
        site,
        arguments.names,
        everything=arguments.all,
        catalog=catalog_of(arguments),
        force=arguments.force,
        dry_run=arguments.dry_run,
        notice=output.note,
        fetch=output.status if arguments.fetch else None,
        show=show,
    )
    return _report(arguments, outcome, site)


@same_site
def run_sync(arguments: Namespace) -> int:
    """Make the site match the project's list."""
    from patchkit.ops.sync import sync_site

    output: Output = arguments.output
    site = site_of(arguments)
    outcome = sync_site(
        site,
        catalog_of(arguments),
        dry_run=arguments.dry_run,
        allow_known_bad=arguments.allow_known_bad,
        notice=output.note,
        fetch=output.status if arguments.fetch else None,
    )
    return _report(arguments, outcome, site)


def _report(arguments: Namespace, outcome: Outcome, site: Site) -> int:
    output: Output = arguments.output
    several = len({patch.site for patch in outcome.patches if patch.site is not None}) > 1
    for patch in outcome.patches:
        word, style = _VERBS[patch.action]
        if arguments.dry_run and patch.action in ("applied", "reverted"):
            word = {"applied": "would apply", "reverted": "would revert"}[patch.action]
        target = f"  ({patch.distribution} {patch.version})" if patch.distribution and patch.version else ""
        where = f"  in {patch.site}" if several and patch.site else ""
        reason = f": {told(arguments, patch.reason)}" if patch.reason else ""
        output.line(f"{output.paint(word, style)} {output.paint(patch.name, 'bold')}{target}{where}{reason}")
        if patch.action != "unchanged":
            _print_files(output, patch.files, "new file" if patch.action != "reverted" else "brought back")
    if not outcome.patches:
        output.line("nothing to do: no patch is wanted and none is applied")
    for note in outcome.notes:
        output.note(told(arguments, note))
    if arguments.diff:
        _show_diff(output, outcome.files)
    if output.json_mode:
        output.json(
            ok=True,
            site=site_json(site),
            dry_run=arguments.dry_run,
            patches=[_patch_json(patch) for patch in outcome.patches],
            notes=outcome.notes,
            diff=(_diff_text(outcome.files) if arguments.diff else _discarded_diff(outcome.discarded) or None),
        )
    return 0


def _print_files(output: Output, files: Sequence[FileResult], born: str) -> None:
    """The files of a patch; ``born`` says what became of one that was not there before."""
    for file in files[:_MOST]:
        lines = sorted({match.line for edit in file.edits for match in edit.matches})
        at = f":{','.join(map(str, lines))}" if lines else ""
        new = "  (removed)" if file.after_sha256 is None else f"  ({born})" if file.before_sha256 is None else ""
        output.line(f"  {file.path}{at}{new}")
    if len(files) > _MOST:
        more = len(files) - _MOST
        output.line(f"  and {more} more file{'s' if more != 1 else ''}")


def _patch_json(patch: PatchResult) -> dict[str, object]:
    return {
        "name": patch.name,
        "action": patch.action,
        "distribution": patch.distribution,
        "version": patch.version,
        "reason": patch.reason,
        "site": patch.site,
        "files": [
            {
                "path": file.path,
                "before_sha256": file.before_sha256,
                "after_sha256": file.after_sha256,
                "edits": [
                    {
                        "index": edit.index,
                        "action": edit.action,
                        "matches": [
                            {"line": match.line, "column": match.column, "scope": match.scope()}
                            for match in edit.matches
                        ],
                    }
                    for edit in file.edits
                ],
            }
            for file in patch.files
        ],
    }


def _show_diff(output: Output, files: list[FileResult]) -> None:
    text = _diff_text(files, exact=True)
    if text:
        output.line()
        output.diff(text)


def _discarded_diff(discarded: Sequence[Discarded], *, exact: bool = False) -> str:
    """From the bytes that were edited by hand to the result."""
    from patchkit.ops.inspect import unified

    return "".join(unified(item.path, item.before, item.after, exact=exact) for item in discarded)


def _diff_text(files: list[FileResult], *, exact: bool = False) -> str:
    from patchkit.ops.inspect import unified

    return "".join(unified(file.path, file.before, file.after, exact=exact) for file in files)
