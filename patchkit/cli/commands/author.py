"""``new``, ``edit`` and ``create``."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

from patchkit.cli.context import catalog_of, site_json, site_of
from patchkit.cli.output import Output


def configure_create(parser: ArgumentParser) -> None:
    """The options of ``create``."""
    parser.add_argument("name", metavar="NAME", help="the patch's name, which is its file's stem")
    parser.add_argument("dist", metavar="DIST", help="the distribution that was edited")
    parser.add_argument(
        "--from", metavar="DIR", dest="folder", help="a scratch copy that `edit` made; default: the site itself"
    )
    parser.add_argument("--summary", metavar="TEXT", help="one line on what the patch does")
    parser.add_argument("--link", metavar="URL", action="append", default=[], help="an issue or pull request")
    parser.add_argument("--dry-run", action="store_true", help="print the patch file, save and record nothing")
    parser.add_argument("--overwrite", action="store_true", help="replace a patch file of that name")


def run_create(arguments: Namespace) -> int:
    """Make a patch of a hand edit."""
    from patchkit.author.create import create

    output: Output = arguments.output
    site = site_of(arguments)
    made = create(
        site,
        arguments.name,
        arguments.dist,
        path=_path(arguments),
        folder=arguments.folder,
        summary=arguments.summary,
        links=arguments.link,
        dry_run=arguments.dry_run,
        overwrite=arguments.overwrite,
        notice=output.note,
        progress=output.status,
    )
    text = made.patch.data.decode("utf-8")
    edits, files = len(made.patch.edits), len(made.gathered.changed) + len(made.gathered.added)
    if made.path is None:
        output.line(text.rstrip("\n"))
    else:
        what = f"{edits} edit{'s' if edits != 1 else ''}"
        if made.patch.adds:
            what += f" and {len(made.patch.adds)} new file{'s' if len(made.patch.adds) != 1 else ''}"
        output.line(f"{output.paint('created', 'green')} {output.paint(made.path, 'bold')}: {what}")
        for change in made.gathered.changed:
            output.line(f"  {change.path}")
        for path, _ in made.gathered.added:
            output.line(f"  {path}  (new file)")
        output.line("proved: the pristine files with the patch are, byte for byte, the edited ones")
        way = f"it counts as applied; `patchkit revert {made.patch.name}` takes it back"
        output.line(way if made.recorded else f"next: patchkit apply {made.path}")
    for path, reason in made.left:
        output.note(f"left out: {path} {reason}")
    output.json(
        ok=True,
        site=site_json(site),
        name=made.patch.name,
        path=made.path,
        recorded=made.recorded,
        edits=edits,
        files=files,
        left=[{"path": path, "reason": reason} for path, reason in made.left],
        originals=list(made.originals),
        patch=text,
    )
    return 0


def configure_edit(parser: ArgumentParser) -> None:
    """The options of ``edit``."""
    parser.add_argument("dist", metavar="DIST", help="the distribution")
    parser.add_argument("folder", metavar="DIR", nargs="?", help="where to; default: DIST-VERSION here")


def run_edit(arguments: Namespace) -> int:
    """Make a scratch copy."""
    from patchkit.author.scratch import scratch_copy

    output: Output = arguments.output
    site = site_of(arguments)
    copy = scratch_copy(site, arguments.dist, arguments.folder, notice=output.note, progress=output.status)
    output.line(f"{copy.folder}: {copy.files} files of {copy.distribution} {copy.version}, as installed")
    output.line(f"edit them, then: patchkit create NAME {copy.distribution} --from {copy.folder}")
    output.json(ok=True, site=site_json(site), **copy._asdict())
    return 0


def configure_new(parser: ArgumentParser) -> None:
    """The options of ``new``."""
    parser.add_argument("name", metavar="NAME", help="the patch's name, which is its file's stem")
    parser.add_argument("dist", metavar="DIST", help="the distribution")
    parser.add_argument("--overwrite", action="store_true", help="replace a patch file of that name")


def run_new(arguments: Namespace) -> int:
    """Write a patch file to start from."""
    from patchkit.author.template import new_patch

    output: Output = arguments.output
    site = site_of(arguments)
    path = _path(arguments)
    requirement = new_patch(site, arguments.name, arguments.dist, path, overwrite=arguments.overwrite)
    output.line(f"{output.paint('created', 'green')} {output.paint(path, 'bold')}  ({requirement})")
    output.line(f"fill it in, then: patchkit lint {path} && patchkit apply {path} --dry-run --diff")
    output.json(ok=True, path=path, requirement=requirement)
    return 0


def _path(arguments: Namespace) -> str:
    """Where a new patch is saved: in the first folder that patches are looked up in and that is a project's own."""
    folders = [folder.path for folder in catalog_of(arguments).folders if folder.origin != "shipped"]
    return os.path.join(folders[0] if folders else "patches", f"{arguments.name}.toml")
