"""``import``: from a unified diff, as a pull request has it, to a patch for what is installed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from patchkit.author.beside import save_patch
from patchkit.author.create import compose
from patchkit.author.diffs import FileDiff, read_diff
from patchkit.author.gather import NOT_ASKED, NOT_PLAIN, Changed, Gathered
from patchkit.author.hunks import lines_of
from patchkit.author.mail import Mail, read_mail
from patchkit.author.original import Originals
from patchkit.author.placing import Placed, as_said, place
from patchkit.author.save import check_free
from patchkit.author.target import opened_for
from patchkit.author.unplaced import PRESENT, Problem, describe, refusal
from patchkit.edit.parse import Parse
from patchkit.edit.source import Source, Splice
from patchkit.errors import PlanError
from patchkit.site.grammar import Grammar
from patchkit.site.paths import package_directories
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.model.patch import Patch
    from patchkit.ops.workspace import Workspace
    from patchkit.site.distribution import Distribution
    from patchkit.site.environment import Site

_ABSENT = "is on one side of the diff alone, which has no lines of it: as `git diff` writes it, it can be imported"

_RAW_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


class Laid(NamedTuple):
    """A diff, laid on what was installed, as far as its hunks have a place.

    ``left`` in ``gathered`` are files of the diff that are not in it; ``problems`` are the hunks without a place.
    ``hunks`` counts those that have one, ``total`` all of the files that were asked for.
    """

    distribution: Distribution
    gathered: Gathered
    problems: tuple[Problem, ...]
    mail: Mail
    hunks: int
    total: int
    originals: tuple[str, ...]


class Imported(NamedTuple):
    """A patch made of a diff; ``left`` are files of the diff that are not in it, with the reasons.

    ``hunks`` counts those that are in it; ``number`` is that of a pull request whose address is not known.
    """

    patch: Patch
    path: str | None
    left: tuple[tuple[str, str], ...]
    hunks: int
    originals: tuple[str, ...]
    number: str | None


def import_diff(
    site: Site,
    name: str,
    dist: str,
    diff: bytes,
    *,
    path: str,
    summary: str | None = None,
    links: Sequence[str] = (),
    exclude: Sequence[str] = (),
    syntax: bool = False,
    dry_run: bool = False,
    overwrite: bool = False,
    head: str = "",
    notice: Callable[[str], None],
    progress: Callable[[str], None],
) -> Imported:
    """Make a patch of a unified diff, for the release that is installed.

    Args:
        site: The site.
        name: The patch's name.
        dist: The distribution.
        diff: The diff, plain or in git's format.
        path: Where to save the patch.
        summary: Its summary; by default the subject of the mail that the diff is, if it is one.
        links: Its links; those of pull requests in the diff's head, or in its subject (``(#12)``), are added.
        exclude: Shell patterns of paths to leave out, as the diff has them or as the distribution has.
        syntax: Write syntax edits where a change is one expression or statement.
        dry_run: Save nothing.
        overwrite: Replace a file at ``path``.
        head: What the file begins with (:func:`patchkit.author.beside.first_line`).
        notice: Told of an interrupted command that was mended, and of a pattern that fits nothing.
        progress: Told of downloads.

    Raises:
        UsageError: ``diff``: it is none; ``exists``.
        GuardError: ``not-installed``, ``editable``.
        PlanError: ``hunks``: some have no single place, each named with the candidates; ``nothing-changed``: no file
            of it is the distribution's.
        SiteError: A file's original cannot be had.
    """
    check_free(name, path, overwrite=overwrite or dry_run)
    files = read_diff(diff)
    with opened_for(site, dist, write=False, notice=notice) as (workspace, distribution):
        laid = lay(workspace, distribution, diff, files, exclude=exclude, notice=notice, progress=progress)
        if laid.problems:
            raise refusal(laid.problems, laid.distribution, laid.total)
        gathered, mail = laid.gathered, laid.mail
        made_of = f"commit {mail.commit}" if mail.commit else "a diff"
        patch, gathered = compose(
            name,
            distribution,
            gathered,
            Grammar(workspace.site),
            place="the diff",
            summary=summary or mail.subject,
            description=f"Made of {made_of}, for {distribution.name} {distribution.version}. "
            "Say here why, and until when it is needed.\n",
            syntax=syntax,
            head=head,
            links=[*links, *(link for link in mail.links if link not in links)],
        )
    if not dry_run:
        save_patch(path, patch.data, notice, overwrite=overwrite)
    # A file that cannot be written as edits is left out only now.
    out = {path for path, _ in gathered.left}
    hunks = sum(
        len(file.hunks) for file in files if file.path not in out and shipped_path(distribution, file.path) not in out
    )
    saved = None if dry_run else path
    return Imported(patch, saved, tuple(gathered.left), hunks, laid.originals, None if links else mail.number)


def lay(
    workspace: Workspace,
    distribution: Distribution,
    diff: bytes,
    files: Sequence[FileDiff],
    *,
    exclude: Sequence[str],
    notice: Callable[[str], None],
    progress: Callable[[str], None],
) -> Laid:
    """Lay a diff on the pristine files, in memory.

    Args:
        workspace: The site.
        distribution: The distribution.
        diff: The diff, for what its head says.
        files: The same, read.
        exclude: Shell patterns of paths to leave out.
        notice: Told of a pattern that fits nothing.
        progress: Told of downloads.

    Raises:
        PlanError: ``nothing-changed``, ``present``.
        SiteError: A file's original cannot be had.
    """
    originals = Originals(workspace.site.home, distribution, progress)
    chosen = _chosen(files, exclude, distribution, notice)
    gathered, problems = _gather(chosen, distribution, originals, Grammar(workspace.site).parse)
    gathered.left.extend((file.path, NOT_ASKED) for file in files if file not in chosen)
    if gathered.nothing and not problems:
        raise _nothing(gathered, distribution)
    out = {path for path, _ in gathered.left}
    total = sum(
        len(file.hunks) for file in chosen if file.path not in out and shipped_path(distribution, file.path) not in out
    )
    failing = len({(one.path, one.hunk) for one in problems})
    used = tuple(sorted(originals.used))
    return Laid(distribution, gathered, tuple(problems), read_mail(diff, distribution), total - failing, total, used)


def _chosen(
    files: Sequence[FileDiff], exclude: Sequence[str], distribution: Distribution, notice: Callable[[str], None]
) -> list[FileDiff]:
    """The files that no pattern leaves out; a pattern that fits none is told."""
    hit: set[str] = set()
    chosen = []
    for file in files:
        names = [file.path, shipped_path(distribution, file.path) or file.path]
        hits = {pattern for pattern in exclude if any(fnmatchcase(name, pattern) for name in names)}
        hit |= hits
        if not hits:
            chosen.append(file)
    for pattern in exclude:
        if pattern not in hit:
            notice(f"--exclude {pattern}: no path of the diff fits it")
    return chosen


def _nothing(gathered: Gathered, distribution: Distribution) -> PlanError:
    """The error for a diff of which nothing is left."""
    where = f"{distribution.name} {distribution.version}"
    reasons = {reason for _, reason in gathered.left}
    foreign = all(reason.startswith(("is no file of", "is a new file outside")) for reason in reasons)
    present = PRESENT in reasons and reasons <= {PRESENT, NOT_ASKED}
    head = (
        f"{where} has all that the diff changes in it already:"
        if present
        else f"no path of this diff is a file of {where}:"
        if foreign
        else f"nothing of this diff can be a patch of {where}:"
    )
    hint = (
        "it needs no patch"
        if present
        else "--dist names the distribution that the diff is for; its paths end as those below site-packages do"
        if foreign
        else "what is renamed or binary cannot be in a patch"
    )
    return PlanError(
        "\n".join([head, *(f"  {path}: {reason}" for path, reason in gathered.left)]),
        code="present" if present else "nothing-changed",
        hint=hint,
        details={
            "distribution": distribution.name,
            "left": [{"path": path, "reason": reason} for path, reason in gathered.left],
        },
    )


def _gather(
    files: Sequence[FileDiff], distribution: Distribution, originals: Originals, parse: Parse
) -> tuple[Gathered, list[Problem]]:
    """The files before and after. What a series of mails changes in several of them is laid in their order."""
    gathered = Gathered([], [], [], {}, [])
    problems: list[Problem] = []
    left: dict[str, str] = {}
    changed: dict[str, Changed] = {}
    added: dict[str, bytes] = {}
    removed: dict[str, bytes] = {}
    stripped: dict[str, None] = {}
    for file in files:
        path = shipped_path(distribution, file.path)
        if path is not None and file.kind != "added" and file.hunks:
            stripped[file.path.removesuffix(path)] = None
    for file in files:
        path = shipped_path(distribution, file.path)
        if file.kind == "added":
            new, reason = _place_of_new(file, distribution, list(stripped))
            text = "".join(line for hunk in file.hunks for line in hunk.new)
            if path in removed:  # by a mail before this one
                source = Source(removed.pop(path), path=path)
                again, _ = source.render([Splice(0, len(source.text), text, 0)])
                changed[path] = Changed(path, source.data, again)
            elif reason is not None:
                left[new] = reason
            elif any("\r" in kind for hunk in file.hunks for kind in hunk.breaks):
                left[new] = NOT_PLAIN
            else:
                added[new] = text.encode("utf-8", "surrogateescape")
            continue
        if file.kind == "absent":
            left[path or file.path] = _ABSENT
        elif path is None:
            new, _ = _place_of_new(file, distribution, list(stripped))
            if new in added and file.kind == "removed":
                if _taken(new, added[new], file, problems):
                    del added[new]
            elif new in added and file.hunks:
                added[new] = _placed(new, added[new], file, problems, parse) or added[new]
            else:
                left[file.path] = f"is no file of {distribution.name} {distribution.version}"
        elif file.kind == "removed" and (file.hunks or not originals.of(path)):
            known = changed.get(path)
            before = originals.of(path) if known is None else known.before
            if _taken(path, before if known is None else known.after, file, problems):
                changed.pop(path, None)
                removed[path] = before
        elif not file.hunks:
            left[file.path] = "has no lines in the diff: it is renamed, binary, or changes its mode"
        else:
            known = changed.get(path)
            before = originals.of(path) if known is None else known.before
            after = _placed(path, before if known is None else known.after, file, problems, parse)
            if after is not None:
                changed[path] = Changed(path, before, after)
            elif known is None:
                left[path] = PRESENT
    gathered.changed.extend(one for one in changed.values() if one.before != one.after)
    gathered.added.extend(added.items())
    gathered.removed.extend(removed.items())
    gathered.left.extend(left.items())
    return gathered, problems


def _taken(path: str, held: bytes, file: FileDiff, problems: list[Problem]) -> bool:
    """Whether a diff that removes a file has all of its lines, and no other; if not, that goes to ``problems``."""
    if "".join(line for hunk in file.hunks for line in hunk.old) == Source(held, path=path).text:
        return True
    line = file.hunks[0].diff_line if file.hunks else 1
    problems.append(Problem(path, line, "removes the file, which holds something else here", (), line, ()))
    return False


def shipped_path(distribution: Distribution, path: str) -> str | None:
    """The distribution's own file that a path of a diff means: the longest end of it that RECORD lists; None: none."""
    parts = path.split("/")
    for start in range(len(parts)):
        end = "/".join(parts[start:])
        if distribution.record.entry(end) is not None:
            return end
    return None


def _place_of_new(file: FileDiff, distribution: Distribution, stripped: Sequence[str]) -> tuple[str, str | None]:
    """Where a new file belongs, or its path in the diff and why nowhere.

    That is the place that the other files' paths tell, or the first in a package of the distribution.
    """
    tops = package_directories(distribution)
    ends = [file.path.removeprefix(head) for head in stripped if file.path.startswith(head)]
    parts = file.path.split("/")
    ends += ["/".join(parts[start:]) for start in range(len(parts) - 1)]
    path = next((end for end in ends if "/" in end and end.partition("/")[0] in tops), None)
    if path is None:
        return file.path, f"is a new file outside of the packages of {distribution.name}"
    if distribution.record.entry(path) is not None:
        return file.path, f"is a new file that {distribution.name} {distribution.version} has already"
    return path, None


def _placed(path: str, before: bytes, file: FileDiff, problems: list[Problem], parse: Parse) -> bytes | None:
    """The file with the hunks at their places; what has none goes to ``problems``. None: it has all of them already."""
    source = Source(before, path=path)
    lines = lines_of(source.text)
    placed, unplaced = place(lines, file.hunks)
    if unplaced and (proved := _as_named(source, lines, before, file)) is not None:
        return proved
    if unplaced and not placed and all(one.present for one in unplaced):
        return None
    if unplaced:
        problems += describe(source, file.hunks, unplaced, parse)
    return _made(source, lines, placed)


def _made(source: Source, lines: Sequence[str], placed: Sequence[Placed]) -> bytes:
    exact = _with_breaks(source, placed)
    if exact is not None:
        return exact
    starts = [0]
    for text in lines:
        starts.append(starts[-1] + len(text))
    splices = [Splice(starts[one.start], starts[one.stop], "".join(one.new), 0) for one in placed]
    return source.render(splices)[0]


def _with_breaks(source: Source, placed: Sequence[Placed]) -> bytes | None:
    """The file with the line breaks that the diff has, where those of its old lines are the file's own.

    None where there is nothing but ``\\n``, or where the diff was made of a copy in another style.
    """
    if not any("\r" in kind for one in placed for kind in one.hunk.breaks) and source.newline == "\n":
        return None
    if source.encoding not in ("utf-8", "ascii"):
        return None
    body = _RAW_LINE.findall(source.data[source.bom :])
    for one in reversed(placed):
        marks = [mark for mark, _ in one.hunk.lines]
        inner = [at for at, mark in enumerate(marks) if mark != " "]
        core = [
            (mark, (text.rstrip("\n") + kind).encode("utf-8", "surrogateescape"))
            for (mark, text), kind in zip(one.hunk.lines, one.hunk.breaks, strict=True)
        ][inner[0] : inner[-1] + 1]
        around = body[max(one.start - 1, 0) : one.start] or body[one.stop : one.stop + 1]
        kinds = {kind for (mark, _), kind in zip(one.hunk.lines, one.hunk.breaks, strict=True) if mark != "+"}
        if one.start == one.stop and not any(line.endswith(kind.encode()) for line in around for kind in kinds if kind):
            return None
        if body[one.start : one.stop] != [line for mark, line in core if mark != "+"]:
            return None
        body[one.start : one.stop] = [line for mark, line in core if mark != "-"]
    return source.data[: source.bom] + b"".join(body)


def _as_named(source: Source, lines: Sequence[str], before: bytes, file: FileDiff) -> bytes | None:
    """The file as the diff says, if git's names of its bytes, before and after, prove that it is that; else None."""
    if not all(file.blobs) or not _is_blob(before, file.blobs[0]):
        return None
    placed = as_said(lines, file.hunks)
    after = None if placed is None else _made(source, lines, placed)
    return after if after is not None and _is_blob(after, file.blobs[1]) else None


def _is_blob(data: bytes, name: str) -> bool:
    """Whether git calls these bytes so, in a repository of either of its two hashes."""
    import hashlib

    framed = b"blob %d\0" % len(data) + data
    return any(hashlib.new(kind, framed).hexdigest().startswith(name) for kind in ("sha1", "sha256"))
