"""``new``, ``edit``, ``create``, ``import`` and ``export``."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from patchkit.cli.commands.telling import left_json, paths_json, tell_files, tell_hunks, tell_left
from patchkit.cli.context import catalog_of, same_site, site_json, site_of, told
from patchkit.cli.output import Output
from patchkit.errors import UsageError

if TYPE_CHECKING:
    from patchkit.author.create import Created
    from patchkit.model.patch import Patch


def configure_create(parser: ArgumentParser) -> None:
    """The options of ``create``."""
    parser.add_argument("name", metavar="NAME", help="the patch's name, which is its file's stem")
    parser.add_argument("dist", metavar="DIST", help="the distribution that was edited")
    parser.add_argument(
        "--from", metavar="DIR", dest="folder", help="a scratch copy that `edit` made; default: the site itself"
    )
    parser.add_argument(
        "--only", metavar="PATTERN", action="append", default=[], help="only such paths, such as 'click/c*.py'"
    )
    _patch_options(parser)
    parser.add_argument("--dry-run", action="store_true", help="print the patch file, save and record nothing")
    parser.add_argument(
        "--force", action="store_true", help="with --overwrite: also where `versions` or examples of it are lost"
    )


@same_site
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
        only=arguments.only,
        summary=arguments.summary,
        links=arguments.link,
        syntax=arguments.syntax,
        dry_run=arguments.dry_run,
        overwrite=arguments.overwrite,
        force=arguments.force,
        head=_head(arguments),
        notice=output.note,
        progress=output.status,
    )
    text = made.patch.data.decode("utf-8")
    gathered = made.gathered
    edits, files = len(made.patch.edits), len(gathered.changed) + len(gathered.added) + len(gathered.removed)
    if made.path is None:
        output.line(text.rstrip("\n"))
    else:
        output.line(f"{output.paint('created', 'green')} {output.paint(shown(made.path), 'bold')}: {_size(made.patch)}")
        for change in made.gathered.changed:
            output.line(f"  {change.path}")
        for path, _ in made.gathered.added:
            output.line(f"  {path}  (new file)")
        for path, _ in gathered.removed:
            output.line(f"  {path}  (gone, taken away by the patch)")
        of_them = ", of the files in it" if made.left else ""
        output.line(f"proved: the pristine files with the patch are, byte for byte, the edited ones{of_them}")
        if made.recorded:
            output.line(told(arguments, f"it counts as applied; `patchkit revert {made.patch.name}` takes it back"))
        else:
            output.line(_next(arguments, f"patchkit apply {_typed(made.path)}"))
    if gathered.removed:
        output.note(told(arguments, _gone_note([path for path, _ in gathered.removed], made)))
    tell_left(output, made.originals, made.left)
    for pattern in made.idle:
        output.note(f"--only {pattern}: nothing that differs fits it")
    if made.lost:
        output.note(f"not carried over from the patch as it was: {', '.join(made.lost)}")
    for note in made.notes:
        output.note(told(arguments, note))
    output.json(
        ok=True,
        site=site_json(site),
        name=made.patch.name,
        path=made.path,
        recorded=made.recorded,
        edits=edits,
        files=files,
        removed=[path for path, _ in gathered.removed],
        left=left_json(made.left),
        lost=list(made.lost),
        notes=list(made.notes),
        originals=list(made.originals),
        patch=text,
        schema_path=_schema_path(made.path, made.patch.data),
    )
    return 0


def _gone_note(paths: Sequence[str], made: Created) -> str:
    """What is to be said of files that nobody may have meant to delete."""
    what, them = (paths[0], "it") if len(paths) == 1 else (f"{len(paths)} files", "them")
    be = "is" if len(paths) == 1 else "are"
    way = (
        f"`patchkit revert {made.patch.name}` brings {them} back"
        if made.recorded
        else f"put {them} back, then run the command again"
    )
    return (
        f"{what} {be} gone, and the patch takes {them} away: where nobody meant that, {way}; "
        "--only makes a patch of other files alone"
    )


def configure_edit(parser: ArgumentParser) -> None:
    """The options of ``edit``."""
    parser.add_argument("dist", metavar="DIST", help="the distribution")
    parser.add_argument("folder", metavar="DIR", nargs="?", help="where to; default: DIST-VERSION here")


@same_site
def run_edit(arguments: Namespace) -> int:
    """Make a scratch copy."""
    from patchkit.author.scratch import scratch_copy

    output: Output = arguments.output
    site = site_of(arguments)
    copy = scratch_copy(site, arguments.dist, arguments.folder, notice=output.note, progress=output.status)
    files = "1 file" if copy.files == 1 else f"{copy.files} files"
    output.line(f"{shown(copy.folder)}: {files} of {copy.distribution} {copy.version}, as installed")
    output.line(
        told(arguments, f"edit them, then: patchkit create NAME {copy.distribution} --from {_typed(copy.folder)}")
    )
    tell_left(output, copy.originals, copy.left)
    output.json(
        ok=True,
        site=site_json(site),
        folder=copy.folder,
        distribution=copy.distribution,
        version=copy.version,
        files=copy.files,
        left=left_json(copy.left),
        originals=list(copy.originals),
    )
    return 0


def configure_new(parser: ArgumentParser) -> None:
    """The options of ``new``."""
    parser.add_argument("name", metavar="NAME", help="the patch's name, which is its file's stem")
    parser.add_argument("dist", metavar="DIST", help="the distribution")
    parser.add_argument("--overwrite", action="store_true", help="replace a patch file of that name")
    _schema_option(parser)


@same_site
def run_new(arguments: Namespace) -> int:
    """Write a patch file to start from."""
    from patchkit.author.template import new_patch

    output: Output = arguments.output
    site = site_of(arguments)
    path = _path(arguments)
    head = _head(arguments)
    requirement, notes = new_patch(
        site,
        arguments.name,
        arguments.dist,
        path,
        overwrite=arguments.overwrite,
        head=head,
        notice=output.note,
    )
    output.line(f"{output.paint('created', 'green')} {output.paint(shown(path), 'bold')}  ({requirement})")
    file = _typed(path)
    output.line(told(arguments, f"fill it in, then: patchkit lint {file}; patchkit apply {file} --dry-run --diff"))
    for note in notes:
        output.note(note)
    output.json(
        ok=True,
        site=site_json(site),
        name=arguments.name,
        path=path,
        requirement=requirement,
        notes=notes,
        schema_path=_schema_path(path, head.encode()),
    )
    return 0


def configure_import(parser: ArgumentParser) -> None:
    """The options of ``import``."""
    parser.add_argument("file", metavar="FILE.diff", help="a unified diff; - reads it from standard input")
    parser.add_argument("--name", required=True, metavar="NAME", help="the patch's name, which is its file's stem")
    parser.add_argument("--dist", required=True, metavar="DIST", help="the distribution that the diff is for")
    parser.add_argument(
        "--exclude", metavar="PATTERN", action="append", default=[], help="leave such paths out, such as 'tests/*'"
    )
    _patch_options(parser)
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--dry-run", action="store_true", help="print the patch file, save nothing")
    instead.add_argument(
        "--edit", metavar="DIR", dest="folder", help="no patch: a scratch copy with what fits, to be finished by hand"
    )


@same_site
def run_import(arguments: Namespace) -> int:
    """Make a patch of a unified diff."""
    from patchkit.author.importing import import_diff

    if arguments.folder is not None:
        return _import_into(arguments)
    output: Output = arguments.output
    site = site_of(arguments)
    made = import_diff(
        site,
        arguments.name,
        arguments.dist,
        _read(arguments.file),
        path=_path(arguments),
        summary=arguments.summary,
        links=arguments.link,
        syntax=arguments.syntax,
        exclude=arguments.exclude,
        dry_run=arguments.dry_run,
        overwrite=arguments.overwrite,
        head=_head(arguments),
        notice=output.note,
        progress=output.status,
    )
    text = made.patch.data.decode("utf-8")
    removed = {path for remove in made.patch.removes for path in remove.files}
    if made.path is None:
        output.line(text.rstrip("\n"))
    else:
        output.line(f"{output.paint('created', 'green')} {output.paint(shown(made.path), 'bold')}: {_size(made.patch)}")
        tell_files(output, made.paths, {add.file for add in made.patch.adds}, removed)
        if made.hunks:  # an empty file has none
            which = "the one hunk" if made.hunks == 1 else f"each of {made.hunks} hunks"
            output.line(f"{which} in it has its one place")
        output.line(_next(arguments, f"patchkit apply {_typed(made.path)} --dry-run --diff"))
    tell_left(output, made.originals, made.left)
    tell_hunks(output, made.reduced, made.number)
    output.json(
        ok=True,
        site=site_json(site),
        name=made.patch.name,
        path=made.path,
        folder=None,
        edits=len(made.patch.edits),
        files=list(made.paths),
        removed=sorted(removed),
        paths=paths_json(made.paths),
        hunks=made.hunks,
        reduced=[one._asdict() for one in made.reduced],
        unplaced=[],
        left=left_json(made.left),
        originals=list(made.originals),
        patch=text,
        schema_path=_schema_path(made.path, made.patch.data),
    )
    return 0


def _import_into(arguments: Namespace) -> int:
    """``--edit``: a scratch copy with the hunks that fit. Status 1 where some do not."""
    import shlex

    from patchkit.author.halfway import lay_into
    from patchkit.author.unplaced import has

    output: Output = arguments.output
    site = site_of(arguments)
    diff = _read(arguments.file)
    laid, copy = lay_into(
        site,
        arguments.dist,
        diff,
        arguments.folder,
        exclude=arguments.exclude,
        notice=output.note,
        progress=output.status,
    )
    paths = laid.paths(laid.gathered)
    removed = {path for path, _ in laid.gathered.removed}
    what = f"{copy.distribution} {copy.version} with {laid.hunks} of {laid.total} hunks, no patch yet"
    output.line(f"{shown(copy.folder)}: {what}")
    tell_files(output, paths, {path for path, _ in laid.gathered.added}, removed)
    failing = laid.total - laid.hunks
    if laid.problems:
        output.line(
            output.paint(
                f"{failing} {has(failing)} no single place, and {'is' if failing == 1 else 'are'} not in it:", "yellow"
            )
        )
    for problem in laid.problems:
        for line in problem.lines:
            output.line(f"  {line}")
    words = [arguments.name, copy.distribution, "--from", shown(copy.folder)]
    summary = arguments.summary or laid.mail.subject
    words += ["--summary", summary] if summary else []
    for link in dict.fromkeys([*arguments.link, *laid.mail.links]):
        words += ["--link", link]
    words += [f"--{option}" for option in ("syntax", "overwrite") if getattr(arguments, option)]
    what = "do by hand what they mean, then" if laid.problems else "look at it, then"
    output.line(told(arguments, f"{what}: patchkit create {shlex.join(words)}"))
    left = [*laid.gathered.left, *copy.left]
    tell_left(output, copy.originals, left)
    tell_hunks(output, laid.reduced, None if arguments.link else laid.mail.number)
    output.json(
        ok=not laid.problems,
        site=site_json(site),
        name=arguments.name,
        path=None,
        folder=copy.folder,
        edits=0,
        files=list(paths),
        removed=sorted(removed),
        paths=paths_json(paths),
        hunks=laid.hunks,
        reduced=[one._asdict() for one in laid.reduced],
        unplaced=[problem.json for problem in laid.problems],
        left=left_json(left),
        originals=list(copy.originals),
        patch=None,
        schema_path=None,
    )
    return 1 if laid.problems else 0


def _read(file: str) -> bytes:
    """The bytes of a file, or of standard input.

    Raises:
        UsageError: ``diff``: it cannot be read.
    """
    try:
        if file == "-":
            return sys.stdin.buffer.read()
        with open(file, "rb") as stream:
            return stream.read()
    except OSError as error:
        raise UsageError(
            f"{file}: cannot be read: {error.strerror}", code="diff", hint="name a file, or - for standard input"
        ) from None


def configure_export(parser: ArgumentParser) -> None:
    """The options of ``export``."""
    parser.add_argument("name", metavar="NAME", help="a patch, by name or by the path of its file")
    parser.add_argument("--prefix", metavar="DIR", default="", help="put before every path, such as src/")
    parser.add_argument("--output", metavar="FILE", dest="target", help="where to; default: standard output")


@same_site
def run_export(arguments: Namespace) -> int:
    """Print a patch as a unified diff."""
    from patchkit.author.exporting import export
    from patchkit.author.save import save

    output: Output = arguments.output
    site = site_of(arguments)
    prefix = arguments.prefix if not arguments.prefix or arguments.prefix.endswith("/") else f"{arguments.prefix}/"
    patch = catalog_of(arguments).load(arguments.name)
    if arguments.target is not None and patch.path is not None and _same(arguments.target, patch.path):
        raise UsageError(
            f"{arguments.target} is the patch file itself", hint="name another file", details={"path": patch.path}
        )
    made = export(site, patch, prefix=prefix, notice=output.note, progress=output.status)
    if arguments.target is not None:
        save(arguments.target, made.data, overwrite=True, hint="name a file in a folder that is there")
        files = "1 file" if len(made.files) == 1 else f"{len(made.files)} files"
        output.line(f"{shown(arguments.target)}: {files}, from {made.distribution} {made.version}")
    elif not output.json_mode:
        output.diff(made.data.decode("utf-8", "surrogateescape"))
    output.json(
        ok=True,
        site=site_json(site),
        name=arguments.name,
        distribution=made.distribution,
        version=made.version,
        files=list(made.files),
        path=None if arguments.target is None else os.path.abspath(arguments.target),
        diff=made.data.decode("utf-8", "backslashreplace"),
    )
    return 0


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _size(patch: Patch) -> str:
    gone = sum(len(remove.files) for remove in patch.removes)
    counts = [
        (len(patch.edits), "edit", "edits"),
        (len(patch.adds), "new file", "new files"),
        (gone, "file taken away", "files taken away"),
    ]
    words = [f"{number} {one if number == 1 else many}" for number, one, many in counts if number]
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def shown(path: str) -> str:
    """A path as it is best typed from here."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # on Windows, from another drive
        return path
    return path if relative.startswith("..") else relative


def _typed(path: str) -> str:
    """A path as a word of a command."""
    import shlex

    return shlex.quote(shown(path))


def _next(arguments: Namespace, command: str) -> str:
    """The line that says what to type next."""
    return told(arguments, f"next: {command}")


def _patch_options(parser: ArgumentParser) -> None:
    """What ``create`` and ``import`` have in common."""
    parser.add_argument("--summary", metavar="TEXT", help="one line on what the patch does")
    parser.add_argument("--link", metavar="URL", action="append", default=[], help="an issue or pull request")
    parser.add_argument(
        "--syntax", action="store_true", help="syntax edits (match) where a change is one expression or statement"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace a patch file of that name")
    _schema_option(parser)


def _schema_option(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--no-schema", action="store_true", help="without a #:schema line, and no patch.schema.json beside it"
    )


def _head(arguments: Namespace) -> str:
    """What a new patch file begins with."""
    from patchkit.author.beside import first_line

    return "" if arguments.no_schema else first_line(_path(arguments), arguments.output.note)


def _schema_path(path: str | None, data: bytes) -> str | None:
    from patchkit.author.beside import schema_of

    return None if path is None else schema_of(path, data)


def _path(arguments: Namespace) -> str:
    """Where a new patch is saved: in the first folder that patches are looked up in and that is a project's own."""
    folders = [folder.path for folder in catalog_of(arguments).folders if folder.origin != "shipped"]
    return os.path.join(folders[0] if folders else "patches", f"{arguments.name}.toml")
