"""``import``: from a unified diff, as a pull request has it, to a patch for what is installed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from patchkit.author.create import compose, installed_plainly
from patchkit.author.gather import Changed, Gathered
from patchkit.author.hunks import lines_of
from patchkit.author.original import Originals
from patchkit.author.placing import DiffHunk, Mark, Unplaced, place
from patchkit.author.save import check_free, save
from patchkit.edit.source import Source, Splice
from patchkit.errors import PlanError, UsageError
from patchkit.ops.session import opened
from patchkit.site.environment import home_of
from patchkit.site.grammar import Grammar
from patchkit.site.paths import package_directories
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.model.patch import Patch
    from patchkit.site.distribution import Distribution
    from patchkit.site.environment import Site

_PULL = re.compile(r"https://[^\s\"'<>]+/(?:pull|merge_requests|issues)/\d+")


class FileDiff(NamedTuple):
    """What a diff says of one file: ``kind`` is "changed", "added", "removed", "renamed" or "binary"."""

    path: str
    kind: str
    hunks: tuple[DiffHunk, ...]


class Problem(NamedTuple):
    """A hunk without one place: the file, the line of the diff, and why, in words."""

    path: str
    diff_line: int
    reason: str
    candidates: tuple[int, ...]


class Imported(NamedTuple):
    """A patch made of a diff; ``left`` are files of the diff that are not in it, with the reasons."""

    patch: Patch
    path: str | None
    left: tuple[tuple[str, str], ...]
    hunks: int
    originals: tuple[str, ...]


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
        links: Its links; those of pull requests in the diff's head are added.
        exclude: Shell patterns of paths, as the diff has them, to leave out.
        syntax: Write syntax edits where a change is one expression or statement.
        dry_run: Save nothing.
        overwrite: Replace a file at ``path``.
        notice: Told of an interrupted command that was mended.
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
    found = site.find(dist)
    here = site if found is None else site.at(home_of(site, found))
    with opened(here, write=False, notice=notice) as workspace:
        distribution = installed_plainly(workspace, dist)
        originals = Originals(workspace.site.home, distribution, progress)
        chosen = [file for file in files if not any(fnmatchcase(file.path, pattern) for pattern in exclude)]
        gathered, problems = _gather(chosen, distribution, originals)
        gathered.left.extend((file.path, "is left out, as asked") for file in files if file not in chosen)
        if problems:
            raise _unplaceable(problems, distribution, sum(len(file.hunks) for file in files))
        head = diff[: diff.find(b"\n--- ") + 1].decode("utf-8", "replace")
        patch = compose(
            name,
            distribution,
            gathered,
            Grammar(workspace.site),
            summary=summary or _subject(head),
            description=f"Made of a diff, for {distribution.name} {distribution.version}. "
            "Say here why, and until when it is needed.\n",
            syntax=syntax,
            links=[*links, *(link for link in dict.fromkeys(_PULL.findall(head)) if link not in links)],
        )
    if not dry_run:
        save(path, patch.data)
    hunks = sum(len(file.hunks) for file in files)
    return Imported(patch, None if dry_run else path, tuple(gathered.left), hunks, tuple(sorted(originals.used)))


def read_diff(data: bytes) -> list[FileDiff]:
    """The files of a unified diff.

    Raises:
        UsageError: ``diff``: it is none, is cut off, or a hunk has another number of lines than it says.
    """
    try:
        from unidiff.errors import UnidiffParseError
        from unidiff.patch import PatchSet
    except ImportError:
        raise UsageError(
            "`import` reads diffs with unidiff, which is not installed beside patchkit",
            code="extra",
            hint="pip install 'site-patchkit[author]'",
        ) from None

    # In whatever style the diff came: the file's own line breaks are kept in the end.
    text = data.decode("utf-8", "surrogateescape").replace("\r\n", "\n")
    try:
        parsed = PatchSet(text)
    except (UnidiffParseError, ValueError, IndexError) as error:
        raise UsageError(f"not a unified diff: {error}", code="diff", hint="see `git diff` or `diff -u`") from None
    files = []
    for file in parsed:
        hunks = tuple(
            DiffHunk(
                tuple(_joined(hunk)),
                next((line.diff_line_no for line in hunk if line.diff_line_no), 1),
            )
            for hunk in file
        )
        kind = (
            "binary"
            if file.is_binary_file
            else "added"
            if file.is_added_file
            else "removed"
            if file.is_removed_file
            else "renamed"
            if file.is_rename
            else "changed"
        )
        files.append(FileDiff(file.path, kind, hunks))
    if not files:
        raise UsageError("not a unified diff: it names no file", code="diff", hint="see `git diff` or `diff -u`")
    return files


def _joined(hunk: Iterable[Any]) -> Iterator[tuple[Mark, str]]:
    """The lines of a hunk with ``\\n`` line breaks, and without one where the diff says that the file has none."""
    held: tuple[Mark, str] | None = None
    for line in hunk:
        if line.line_type == "\\":
            held = None if held is None else (held[0], held[1].rstrip("\n"))
            continue
        if held is not None:
            yield held
        held = (line.line_type if line.line_type in "+-" else " ", line.value.rstrip("\n") + "\n")
    if held is not None:
        yield held


def _gather(
    files: Sequence[FileDiff], distribution: Distribution, originals: Originals
) -> tuple[Gathered, list[Problem]]:
    gathered = Gathered([], [], [])
    problems: list[Problem] = []
    stripped: dict[str, None] = {}
    for file in files:
        if file.kind == "added":
            continue
        path = shipped_path(distribution, file.path)
        if path is None:
            gathered.left.append((file.path, f"is no file of {distribution.name} {distribution.version}"))
        elif file.kind == "removed":
            gathered.left.append((file.path, "is removed by the diff, which a patch cannot do"))
        elif not file.hunks:
            gathered.left.append((file.path, "has no lines in the diff: it is renamed, binary, or changes its mode"))
        else:
            stripped[file.path.removesuffix(path)] = None
            before = originals.of(path)
            after = _placed(path, before, file.hunks, problems)
            if after != before:
                gathered.changed.append(Changed(path, before, after))
    for file in files:
        if file.kind == "added":
            _add(file, distribution, list(stripped), gathered)
    return gathered, problems


def shipped_path(distribution: Distribution, path: str) -> str | None:
    """The distribution's own file that a path of a diff means: the longest end of it that RECORD lists; None: none."""
    parts = path.split("/")
    for start in range(len(parts)):
        end = "/".join(parts[start:])
        if distribution.record.entry(end) is not None:
            return end
    return None


def _add(file: FileDiff, distribution: Distribution, stripped: Sequence[str], gathered: Gathered) -> None:
    """A new file, at the place that the other files' paths tell, or the first in a package of the distribution."""
    tops = package_directories(distribution)
    ends = [file.path.removeprefix(head) for head in stripped if file.path.startswith(head)]
    parts = file.path.split("/")
    ends += ["/".join(parts[start:]) for start in range(len(parts) - 1)]
    path = next((end for end in ends if "/" in end and end.partition("/")[0] in tops), None)
    if path is None:
        gathered.left.append((file.path, f"is a new file outside of the packages of {distribution.name}"))
        return
    if distribution.record.entry(path) is not None:
        gathered.left.append((file.path, f"is a new file that {distribution.name} {distribution.version} has already"))
        return
    text = "".join(line for hunk in file.hunks for line in hunk.new)
    gathered.added.append((path, text.encode("utf-8", "surrogateescape")))


def _placed(path: str, before: bytes, hunks: Sequence[DiffHunk], problems: list[Problem]) -> bytes:
    """The file with the hunks at their places; what has none goes to ``problems``."""
    source = Source(before, path=path)
    lines = lines_of(source.text)
    placed, unplaced = place(lines, hunks)
    if unplaced and not placed and all(one.present for one in unplaced):
        problems += [Problem(path, one.hunk.diff_line, "the release has it already", ()) for one in unplaced]
        return before
    problems += [Problem(path, one.hunk.diff_line, _reason(one, lines), one.candidates) for one in unplaced]
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    splices = [Splice(starts[one.start], starts[one.stop], "".join(one.new), 0) for one in placed]
    return source.render(splices)[0]


def _reason(one: Unplaced, lines: Sequence[str]) -> str:
    if one.present:
        return "the release has it already"
    if len(one.candidates) > 1:
        return f"stands {len(one.candidates)} times, at lines {', '.join(map(str, one.candidates))}"
    if one.candidates:
        return f"changes line {one.candidates[0]}, which another hunk changes as well"
    return "stands nowhere" + _nearest(one.hunk, lines)


def _nearest(hunk: DiffHunk, lines: Sequence[str]) -> str:
    """The line that comes nearest to the first that the hunk removes, or has around."""
    import difflib

    wanted = next((text for mark, text in hunk.lines if mark == "-" and text.strip()), None)
    wanted = wanted or next((text for text in hunk.old if text.strip()), "")
    close = difflib.get_close_matches(wanted, dict.fromkeys(lines), n=1, cutoff=0.75)
    if not close:
        return f": `{wanted.strip()}` has nothing like it"
    at = lines.index(close[0]) + 1
    if close[0] == wanted:
        return f": `{wanted.strip()}` is at line {at}, but what the diff has around it is not"
    return f": `{wanted.strip()}` is `{close[0].strip()}` at line {at}"


def _unplaceable(problems: Sequence[Problem], distribution: Distribution, total: int) -> PlanError:
    where = f"{distribution.name} {distribution.version}"
    there = [one for one in problems if one.reason == "the release has it already"]
    lines = [f"{len(problems)} of {total} hunks have no single place in {where}:"]
    lines += [f"  line {one.diff_line} of the diff, {one.path}: {one.reason}" for one in problems]
    return PlanError(
        "\n".join(lines),
        code="present" if len(there) == len(problems) else "hunks",
        hint=f"{where} has the change: it needs no patch"
        if len(there) == len(problems) == total
        else f"edit by hand what these hunks mean (patchkit edit {distribution.name}), and make the patch of that with "
        "`patchkit create`",
        details={"hunks": [one._asdict() for one in problems], "total": total},
    )


def _subject(head: str) -> str | None:
    """The subject of the mail that `git format-patch` writes, without its `[PATCH 1/2]`."""
    found = re.search(r"^Subject: (.*(?:\n[ \t].*)*)", head, re.MULTILINE)
    if found is None:
        return None
    return " ".join(re.sub(r"^\[[^\]]*\]\s*", "", found[1]).split()) or None
