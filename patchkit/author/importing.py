"""``import``: from a unified diff, as a pull request has it, to a patch for what is installed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from patchkit.author.aims import NO_LINES, Aim, aims, shipped_path
from patchkit.author.beside import save_patch
from patchkit.author.create import compose
from patchkit.author.diffs import FileDiff, read_diff
from patchkit.author.gather import NOT_ASKED, Changed, Gathered, note_added
from patchkit.author.hunks import lines_of
from patchkit.author.mail import Mail, read_mail
from patchkit.author.original import Originals
from patchkit.author.placing import DiffHunk, Placed, as_said, place, placements
from patchkit.author.save import check_free
from patchkit.author.target import opened_for
from patchkit.author.unplaced import EMPTY, PRESENT, SEARCHED, Problem, describe, refusal
from patchkit.edit.parse import Parse
from patchkit.edit.source import Source, Splice
from patchkit.errors import PlanError
from patchkit.ops.check import GLANCE_SECONDS, steady
from patchkit.ops.session import once
from patchkit.site.grammar import Grammar
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.model.patch import Patch
    from patchkit.ops.workspace import Workspace
    from patchkit.site.distribution import Distribution
    from patchkit.site.environment import Site

_AGAIN = "is added by the diff, and removed again"
_BACK = "is in the end as it is installed: the diff takes its change back"

_FOREIGN = ("is no file of", "is a new file outside", "is a new file elsewhere")
"""How the reasons begin for what is not the distribution's."""

_HAS = "has already"

_TRIED = 5000
"""Ways to lay the hunks of a file that are tried by the hash of the result."""

_TRIED_BYTES = 1 << 27
"""Bytes of all these results: about a second."""

_RAW_LINE = re.compile(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


class Reduced(NamedTuple):
    """A hunk, or a part of one, of which not all of the context stands at its place: the file, the line of the diff."""

    path: str
    diff_line: int

    def __str__(self) -> str:
        return f"line {self.diff_line} of the diff, {self.path}: has its place by a part of its context: look at it"


class Laid(NamedTuple):
    """A diff, laid on what was installed, as far as its hunks have a place.

    ``left`` in ``gathered`` are files of the diff that are not in it; ``problems`` are the hunks without a place.
    ``hunks`` counts those that have one, ``total`` all of the files that were asked for. ``aims`` are these files.
    ``reduced`` are the hunks, or parts of one, that have their place by less context than the diff has.
    """

    distribution: Distribution
    gathered: Gathered
    problems: tuple[Problem, ...]
    mail: Mail
    hunks: int
    total: int
    originals: tuple[str, ...]
    aims: tuple[Aim, ...]
    reduced: tuple[Reduced, ...]

    def paths(self, gathered: Gathered) -> dict[str, str]:
        """The files that are changed, added or removed, each with its path in the diff."""
        called = {aim.path: aim.file.path for aim in self.aims if aim.reason is None}
        return {path: called[path] for path in sorted(gathered.paths)}


class Imported(NamedTuple):
    """A patch made of a diff; ``left`` are files of the diff that are not in it, with the reasons.

    ``hunks`` counts those that are in it; ``number`` is that of a pull request whose address is not known. ``paths``
    has for each of its files the path in the diff. ``reduced`` as of :class:`Laid`.
    """

    patch: Patch
    path: str | None
    left: tuple[tuple[str, str], ...]
    hunks: int
    originals: tuple[str, ...]
    number: str | None
    paths: dict[str, str]
    reduced: tuple[Reduced, ...]


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
            of it is the distribution's; ``paths``: several could be the same one.
        SiteError: A file's original cannot be had.
    """
    check_free(name, path, overwrite=overwrite or dry_run)
    files = read_diff(diff)
    tell = once(notice)

    def work() -> tuple[Laid, Patch, Gathered]:
        with opened_for(site, dist, write=False, notice=tell) as (workspace, distribution):
            laid = lay(workspace, distribution, diff, files, exclude=exclude, notice=tell, progress=progress)
            problems = [*laid.problems, *_without_anchor(laid)]
            if problems:
                raise refusal(problems, laid.distribution, laid.total)
            mail = laid.mail
            made_of = f"commit {mail.commit}" if mail.commit else "a diff"
            patch, gathered = compose(
                name,
                distribution,
                laid.gathered,
                Grammar(workspace.site),
                place="the diff",
                summary=summary or mail.subject,
                description=f"Made of {made_of}, for {distribution.name} {distribution.version}. "
                "Say here why, and until when it is needed.\n",
                syntax=syntax,
                head=head,
                links=[*links, *(link for link in mail.links if link not in links)],
            )
            return laid, patch, gathered

    laid, patch, gathered = steady(site, work, wait=GLANCE_SECONDS, notice=tell)
    if not dry_run:
        save_patch(path, patch.data, notice, overwrite=overwrite)
    # A file that cannot be written as edits is left out only now.
    out = {path for path, _ in gathered.left}
    hunks = _counted(laid.aims, out)
    paths = laid.paths(gathered)
    saved, number = None if dry_run else path, None if links else laid.mail.number
    reduced = tuple(one for one in laid.reduced if one.path in paths)
    return Imported(patch, saved, tuple(gathered.left), hunks, laid.originals, number, paths, reduced)


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
        PlanError: ``nothing-changed``, ``present``, ``paths``.
        SiteError: A file's original cannot be had.
    """
    originals = Originals(workspace.site.home, distribution, progress)
    chosen = _chosen(files, exclude, distribution, notice)
    aimed = aims(chosen, distribution)
    said = _Said(Grammar(workspace.site).parse)
    gathered = _gather(aimed, originals, said)
    problems = said.problems
    gathered.left.extend((file.path, NOT_ASKED) for file in files if file not in chosen)
    if gathered.nothing and not problems:
        raise _nothing(gathered, distribution)
    out = {path for path, _ in gathered.left}
    total = _counted(aimed, out)
    failing = len({(one.path, one.hunk) for one in problems})
    used = tuple(sorted(originals.used))
    mail = read_mail(diff, distribution)
    placed = total - failing
    return Laid(distribution, gathered, tuple(problems), mail, placed, total, used, tuple(aimed), tuple(said.reduced))


def _without_anchor(laid: Laid) -> Iterator[Problem]:
    """The hunks that write into a file that was installed empty: they have their place, and no edit can name it."""
    empty = {change.path for change in laid.gathered.changed if not change.before}
    for aim in laid.aims:
        for hunk in aim.file.hunks if aim.path in empty and aim.reason is None else ():
            yield Problem(aim.path, hunk.diff_line, EMPTY, (), hunk.diff_line, ())


def _counted(found: Sequence[Aim], out: Iterable[str]) -> int:
    """The hunks of the files that are not left out."""
    return sum(len(aim.file.hunks) for aim in found if aim.reason is None and aim.path not in out)


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
    own = {reason for reason in reasons if not reason.startswith(_FOREIGN)}
    present = PRESENT in own and own <= {PRESENT, NOT_ASKED}
    head = (
        f"{where} has all that the diff changes in it already:"
        if present
        else f"nothing of this diff can be a patch of {where}:"
        if own
        else f"no path of this diff is a file of {where}:"
    )
    if present:
        hint = "it needs no patch"
    elif not own:
        hint = "--dist names the distribution that the diff is for; its paths end as those below site-packages do"
    elif PRESENT in own:
        hint = "what the release has already needs no patch; of the other files, the reasons say what keeps them out"
    elif any(reason.endswith(_HAS) for reason in own):
        hint = "a file that the release has already is changed by a diff against that release, or needs no patch"
    else:
        hint = "the reasons say what keeps each file out of a patch"
    return PlanError(
        "\n".join([head, *(f"  {path}: {reason}" for path, reason in gathered.left)]),
        code="present" if present else "nothing-changed",
        hint=hint,
        details={
            "distribution": distribution.name,
            "left": [{"path": path, "reason": reason} for path, reason in gathered.left],
        },
    )


class _Said:
    """What is to be said of hunks, and the parser by which it is found out."""

    def __init__(self, parse: Parse) -> None:
        self.parse = parse
        self.problems: list[Problem] = []
        self.reduced: list[Reduced] = []
        #: As :func:`patchkit.author.unplaced.describe` takes it.
        self.search = SEARCHED


def _gather(found: Sequence[Aim], originals: Originals, said: _Said) -> Gathered:
    """The files before and after. What a series of mails changes in several of them is laid in their order."""
    left: dict[str, str] = {}
    changed: dict[str, Changed] = {}
    added: dict[str, bytes] = {}
    removed: dict[str, bytes] = {}
    for file, path, reason in found:
        if reason is not None:
            left[path] = reason
        elif file.kind == "added" and path in removed:  # by a mail before this one
            source = Source(removed.pop(path), path=path)
            text = "".join(line for hunk in file.hunks for line in hunk.new)
            changed[path] = Changed(path, source.data, source.render([Splice(0, len(source.text), text, 0)])[0])
        elif file.kind == "added":
            added[path] = _text(file)
            left.pop(path, None)
        elif path in added and file.kind == "removed":
            if _taken(path, added[path], file, said.problems):
                del added[path]
                left[path] = _AGAIN
        elif path in added:
            after = _placed(path, added[path], file, said) if _decodes(added[path]) else None
            added[path] = added[path] if after is None else after
        elif file.kind == "removed" and (file.hunks or not originals.of(path)):
            known = changed.get(path)
            before = originals.of(path) if known is None else known.before
            if _taken(path, before if known is None else known.after, file, said.problems):
                changed.pop(path, None)
                removed[path] = before
        elif not file.hunks:
            left[path] = NO_LINES
        else:
            known = changed.get(path)
            before = originals.of(path) if known is None else known.before
            after = _placed(path, before if known is None else known.after, file, said)
            if after is not None:
                changed[path] = Changed(path, before, after)
                if left.get(path) == PRESENT:
                    del left[path]
            elif known is None:
                left[path] = PRESENT
    gathered = Gathered([], [], [], {}, list(removed.items()))
    failing = {problem.path for problem in said.problems}
    for one in changed.values():
        if one.before != one.after:
            gathered.changed.append(one)
        elif one.path not in failing:
            left.setdefault(one.path, _BACK)
    for path, data in added.items():
        note_added(gathered, path, data)
    gathered.left.extend(left.items())
    return gathered


def _taken(path: str, held: bytes, file: FileDiff, problems: list[Problem]) -> bool:
    """Whether a diff that removes a file has all of its lines, and no other; if not, that goes to ``problems``."""
    if "".join(line for hunk in file.hunks for line in hunk.old) == Source(held, path=path).text:
        return True
    line = file.hunks[0].diff_line if file.hunks else 1
    problems.append(Problem(path, line, "removes the file, which holds something else here", (), line, ()))
    return False


def _text(file: FileDiff) -> bytes:
    """What a new file holds, with the line breaks that the diff has."""
    lines = (
        text.rstrip("\n") + kind
        for hunk in file.hunks
        for (mark, text), kind in zip(hunk.lines, hunk.breaks, strict=True)
        if mark != "-"
    )
    return "".join(lines).encode("utf-8", "surrogateescape")


def _decodes(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _placed(path: str, before: bytes, file: FileDiff, said: _Said) -> bytes | None:
    """The file with the hunks at their places; what has none is said. None: it has all of them already."""
    if not before and [hunk.old for hunk in file.hunks] == [[]]:
        return _text(file)  # in an empty file there is the one place
    source = Source(before, path=path)
    lines = lines_of(source.text)
    placed, unplaced = place(lines, file.hunks)
    made = _made(source, lines, placed)
    kind = _named_by(before, file.blobs[0])
    if kind is not None and not _is_blob(made, kind, file.blobs[1]):
        proved = _proved(source, lines, file.hunks, kind, file.blobs[1])
        if proved is not None:
            return proved
    if unplaced and not placed and all(one.present for one in unplaced):
        return None
    if unplaced:
        problems, said.search = describe(source, file.hunks, unplaced, said.parse, said.search)
        said.problems += problems
    said.reduced += [Reduced(path, one.hunk.diff_line) for one in placed if one.reduced]
    return made


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


def _proved(source: Source, lines: Sequence[str], hunks: Sequence[DiffHunk], kind: str, name: str) -> bytes | None:
    """The one file that git calls ``name``, of all that the hunks make where their lines stand; None: not one alone.

    The file before is known to be the diff's own, so that the place that is meant is among those; a short name that
    another one bears by chance makes two. Of more ways than can be tried it is the one that the diff's line numbers
    say, which proves nothing by itself: that the result is the file after does, by the hash of all of it.
    """
    most = min(_TRIED, _TRIED_BYTES // (len(source.data) + 1))
    ways = list(placements(lines, hunks, most)) or filter(None, [as_said(lines, hunks)])
    found = {made for placed in ways if _is_blob(made := _made(source, lines, placed), kind, name)}
    return found.pop() if len(found) == 1 else None


def _named_by(data: bytes, name: str) -> str | None:
    """The hash by which git calls these bytes so, of the two that a repository can have; None: it does not."""
    return next((kind for kind in ("sha1", "sha256") if name and _is_blob(data, kind, name)), None)


def _is_blob(data: bytes, kind: str, name: str) -> bool:
    import hashlib

    return hashlib.new(kind, b"blob %d\0" % len(data) + data).hexdigest().startswith(name)
