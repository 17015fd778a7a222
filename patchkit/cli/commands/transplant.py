"""``transplant``."""

from __future__ import annotations

import os
import shlex
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from patchkit.cli.commands.author import _head, _path, _schema_option, shown
from patchkit.cli.commands.telling import left_json, tell_left
from patchkit.cli.context import same_site, site_json, site_of, told
from patchkit.cli.output import Output
from patchkit.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from patchkit.author.regraft import Edits
    from patchkit.author.transplanted import Manifest
    from patchkit.site.environment import Site

VERBS = ("diff", "update", "to-patch")
"""What may stand in the place of a package: what to do with a copy that is there."""


def configure_transplant(parser: ArgumentParser) -> None:
    """The options of ``transplant``."""
    parser.add_argument("package", metavar="PACKAGE", help=f"a module or package; or one of {', '.join(VERBS)}")
    parser.add_argument("folder", metavar="DEST", help="the copy's folder, whose name it is imported by")
    parser.add_argument("--as", dest="copy", metavar="MODULE", help="its dotted name, where it is within a package")
    parser.add_argument("--pristine", action="store_true", help="copy what was installed, not what is there now")
    parser.add_argument("--name", metavar="NAME", help="to-patch: the patch's name, which is its file's stem")
    parser.add_argument("--summary", metavar="TEXT", help="to-patch: one line on what the patch does")
    parser.add_argument("--overwrite", action="store_true", help="to-patch: replace a patch file of that name")
    parser.add_argument("--dry-run", action="store_true", help="update, to-patch: report, write nothing")
    _schema_option(parser)
    parser.usage = "%(prog)s [options] PACKAGE DEST\n       patchkit transplant diff|update|to-patch DEST [options]"


@same_site
def run_transplant(arguments: Namespace) -> int:
    """Copy modules, or work on a copy."""
    verb = arguments.package if arguments.package in VERBS else "make"
    given = {
        "--as": (arguments.copy is not None, ("make",)),
        "--pristine": (arguments.pristine, ("make",)),
        "--name": (arguments.name is not None, ("to-patch",)),
        "--summary": (arguments.summary is not None, ("to-patch",)),
        "--overwrite": (arguments.overwrite, ("to-patch",)),
        "--no-schema": (arguments.no_schema, ("to-patch",)),
        "--dry-run": (arguments.dry_run, ("update", "to-patch")),
    }
    for option, (is_given, verbs) in given.items():
        if is_given and verb not in verbs:
            raise UsageError(
                f"{option} belongs to `transplant {' and '.join('PACKAGE DEST' if v == 'make' else v for v in verbs)}`",
                hint="see `patchkit transplant --help`",
            )
    if verb == "to-patch" and arguments.name is None:
        raise UsageError(
            "`transplant to-patch` needs --name",
            hint=f"patchkit transplant to-patch {shlex.quote(arguments.folder)} --name my-fix",
        )
    site = site_of(arguments)
    return {"make": _make, "diff": _diff, "update": _update, "to-patch": _to_patch}[verb](arguments, site)


def _make(arguments: Namespace, site: Site) -> int:
    from patchkit.author.transplant import transplant

    output: Output = arguments.output
    made = transplant(
        site,
        arguments.package,
        arguments.folder,
        name=arguments.copy,
        pristine=arguments.pristine,
        notice=output.note,
        progress=output.status,
    )
    manifest = made.manifest
    count, rewrites = len(manifest.files), sum(file.rewrites for file in manifest.files)
    what = "as installed" if manifest.bytes == "pristine" else "as it is in the site"
    output.line(
        f"{output.paint('copied', 'green')} {output.paint(shown(arguments.folder), 'bold')}: {manifest.module} of "
        f"{manifest.distribution} {manifest.version}, {what}"
        + (f", with {', '.join(manifest.patches)}" if manifest.patches else "")
    )
    output.line(f"{count} file{_s(count)}; {rewrites} import{_s(rewrites)} rewritten, every other byte the same")
    output.line(f"in force with `import {manifest.copy}.{manifest.activate}` before the first use,")
    output.line(f"or in every Python of `PYTHONPATH={_startup(arguments.folder)} python ...`")
    for note in made.notes:
        output.note(note)
    tell_left(output, (), made.left)
    _json(
        output,
        site,
        "make",
        arguments.folder,
        manifest,
        files=[{"path": file.path, "source": file.source, "state": "copied", "lines": []} for file in manifest.files],
        left=made.left,
        notes=made.notes,
    )
    return 0


def _startup(folder: str) -> str:
    """The folder for PYTHONPATH; absolute, since child processes may work elsewhere."""
    return os.path.join(os.path.abspath(folder), "_transplant", "startup")


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def _diff(arguments: Namespace, site: Site) -> int:
    from patchkit.author.regraft import edits_in, unified

    output: Output = arguments.output
    found = edits_in(site, arguments.folder, notice=output.note, progress=output.status)
    data = unified(found.edits)
    if not output.json_mode:
        output.diff(data.decode("utf-8", "surrogateescape"))
    notes = [*found.notes, *_standing(found, arguments)]
    for note in notes:
        output.note(note)
    _json(
        output,
        site,
        "diff",
        arguments.folder,
        found.manifest,
        files=[{"path": edit.path, "source": edit.source, "state": edit.state, "lines": []} for edit in found.edits],
        notes=notes,
        installed=found.installed,
        moved=found.moved,
        diff=data.decode("utf-8", "backslashreplace"),
    )
    return 0


def _standing(found: Edits, arguments: Namespace) -> list[str]:
    """Whether the site still has what was copied, in words."""
    manifest = found.manifest
    was = f"{manifest.distribution} {manifest.version}"
    count = len(found.edits)
    what = f"{count} file{_s(count)} edited" if count else "nothing edited"
    if found.installed is None:
        return [f"{what}; {manifest.module}, of which it is a copy ({was}), is not in this site"]
    if not found.moved:
        return [f"{what}; the site has what was copied ({was})"]
    more = f" and {len(found.moved) - 1} more" if len(found.moved) > 1 else ""
    word = told(arguments, f"`patchkit transplant update {shlex.quote(shown(arguments.folder))}`")
    return [
        f"{what}; a copy of {was}, and the site has {manifest.distribution} {found.installed} with another "
        f"{found.moved[0]}{more}: {word}"
    ]


def _update(arguments: Namespace, site: Site) -> int:
    from patchkit.author.regraft import update

    output: Output = arguments.output
    found = update(site, arguments.folder, dry_run=arguments.dry_run, notice=output.note, progress=output.status)
    changed = [one for one in found.outcomes if one.state not in ("unchanged", "kept")]
    conflicts = [one for one in changed if one.state == "conflict"]
    was, now = found.before.version, found.after.version
    if not found.moved and was == now:
        output.line(f"{shown(arguments.folder)}: the site has what was copied, {found.before.distribution} {was}")
    elif arguments.dry_run:
        output.line(f"{shown(arguments.folder)}: would be carried over from {found.before.distribution} {was}")
    elif was == now:
        output.line(
            f"{shown(arguments.folder)}: carried over to what the site has of {found.before.distribution} {was}"
        )
    else:
        output.line(f"{shown(arguments.folder)}: {found.before.distribution} {was} -> {now}")
    for one in found.outcomes:
        if one.state != "unchanged":
            where = f"  lines {', '.join(map(str, one.lines))}" if one.lines else ""
            text = output.paint(one.state, "yellow") if one.state == "conflict" else one.state
            output.line(f"  {text} {one.path}{where}")
    if conflicts:
        names = ", ".join(one.path for one in conflicts)
        output.note(
            f"{len(conflicts)} file{_s(len(conflicts))} for you to decide: {names}: where both changed, the lines are "
            "marked; what one side removed and the other edited is kept, and of what is no text, yours"
        )
    for note in found.notes:
        output.note(note)
    tell_left(output, (), found.left)
    _json(
        output,
        site,
        "update",
        arguments.folder,
        found.after,
        ok=not conflicts,
        files=[
            {"path": one.path, "source": None, "state": one.state, "lines": list(one.lines)} for one in found.outcomes
        ],
        left=found.left,
        notes=found.notes,
        before=was,
        moved=found.moved,
        dry_run=arguments.dry_run,
    )
    return 1 if conflicts else 0


def _to_patch(arguments: Namespace, site: Site) -> int:
    from patchkit.author.regraft import to_patch

    output: Output = arguments.output
    made = to_patch(
        site,
        arguments.folder,
        arguments.name,
        path=_path(arguments),
        summary=arguments.summary,
        dry_run=arguments.dry_run,
        overwrite=arguments.overwrite,
        head=_head(arguments),
        notice=output.note,
        progress=output.status,
    )
    text = made.patch.data.decode("utf-8")
    if made.path is None:
        output.line(text.rstrip("\n"))
    else:
        output.line(f"{output.paint('created', 'green')} {output.paint(shown(made.path), 'bold')}")
        for edit in made.edits:
            output.line(f"  {edit.source}" + {"added": "  (new file)", "removed": "  (removed)"}.get(edit.state, ""))
        output.line("proved: the site's files with the patch are, byte for byte, the copy's with its imports undone")
        output.line(told(arguments, f"next: patchkit apply {arguments.name}"))
        output.line(
            "the copy is of the files without the patch: once it is applied, leave the copy out, or "
            + told(arguments, f"`patchkit transplant update {shlex.quote(arguments.folder)}`")
        )
    for note in made.notes:
        output.note(note)
    tell_left(output, (), made.left)
    _json(
        output,
        site,
        "to-patch",
        arguments.folder,
        made.manifest,
        files=[{"path": edit.path, "source": edit.source, "state": edit.state, "lines": []} for edit in made.edits],
        left=made.left,
        notes=made.notes,
        dry_run=arguments.dry_run,
        path=made.path,
        patch=text,
    )
    return 0


def _json(
    output: Output,
    site: Site,
    action: str,
    folder: str,
    manifest: Manifest,
    *,
    ok: bool = True,
    left: Sequence[tuple[str, str]] = (),
    notes: Sequence[str] = (),
    **more: Any,
) -> None:
    """One object for all of them; what an action does not tell is null."""
    empty: dict[str, Any] = {
        "installed": None,
        "moved": None,
        "before": None,
        "dry_run": False,
        "diff": None,
        "path": None,
        "patch": None,
    }
    output.json(
        ok=ok,
        site=site_json(site),
        action=action,
        folder=folder,
        module=manifest.module,
        copy=manifest.copy,
        activate=f"{manifest.copy}.{manifest.activate}",
        startup=_startup(folder),
        distribution=manifest.distribution,
        version=manifest.version,
        bytes=manifest.bytes,
        patches=manifest.patches,
        left=left_json(left),
        notes=list(notes),
        **{**empty, **more},
    )
