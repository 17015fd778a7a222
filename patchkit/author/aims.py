"""Which file of the distribution each file of a diff means: by the end of its path, and never one for two."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from patchkit.author.diffs import FileDiff
from patchkit.author.gather import unwritable
from patchkit.errors import PlanError
from patchkit.site.paths import package_directories
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.site.distribution import Distribution

_ABSENT = "is on one side of the diff alone, which has no lines of it: as `git diff` writes it, it can be imported"
NO_LINES = "has no lines in the diff: it is renamed, binary, or changes its mode"
_NO_RENAMES = "as `git diff --no-renames` writes it, it can be imported"
_METADATA = "is metadata of what is installed, which no patch may change"


class Aim(NamedTuple):
    """A file of a diff, and the path of the distribution's file that it means.

    Where it means none, ``reason`` says why, and ``path`` is what it is called then.
    """

    file: FileDiff
    path: str
    reason: str | None = None


def aims(files: Sequence[FileDiff], distribution: Distribution) -> list[Aim]:
    """What each file of a diff means, in the diff's order. A series of mails has a file as often as it changes it.

    Args:
        files: The files that are asked for.
        distribution: What the diff is for.

    Raises:
        PlanError: ``paths``: several files of the diff could be one file of the distribution, or new ones lie in
            several places and nothing tells which is the right one.
    """
    listed = [_listed(file, distribution) for file in files]
    files = [
        file._replace(kind="added") if known is None and _may_be_new(file) else file
        for file, known in zip(files, listed, strict=True)
    ]
    heads = dict.fromkeys(
        aim.file.path.removesuffix(aim.path)
        for aim in listed
        if aim is not None and aim.reason is None and aim.file.kind != "added" and aim.file.path.endswith(aim.path)
    )
    found: list[Aim] = []
    #: New files by their path in the diff; those that are removed again keep their place.
    new: dict[str, str] = {}
    gone: set[str] = set()
    for file, known in zip(files, listed, strict=True):
        if known is not None and known.reason is None and file.kind == "added" and known.path in gone:
            aim = known
            gone.discard(known.path)
        elif file.kind == "added":
            aim = _new(file, distribution, list(heads))
            if aim.reason is None:
                new[file.path] = aim.path
        elif known is not None:
            aim = known
            if file.kind == "removed" and aim.reason is None:
                gone.add(aim.path)
        elif file.path in new and file.hunks:
            aim = Aim(file, new[file.path])
        elif file.kind in ("renamed", "copied") and (file.source in new or shipped_path(distribution, file.source)):
            aim = Aim(file, file.path, f"is {file.kind} from {file.source} by the diff: {_NO_RENAMES}")
        else:
            aim = Aim(file, file.path, f"is no file of {distribution.name} {distribution.version}")
        found.append(aim)
    _check_single(found, distribution)
    _check_together(found, list(heads), distribution)
    return found


def shipped_path(distribution: Distribution, path: str) -> str | None:
    """The distribution's own file that a path of a diff means: the longest end of it that RECORD lists; None: none."""
    parts = path.split("/")
    for start in range(len(parts)):
        end = "/".join(parts[start:])
        if distribution.record.entry(end) is not None:
            return end
    return None


def _may_be_new(file: FileDiff) -> bool:
    """Whether a file that was empty before by the diff may not have been there: only git's format tells the two."""
    return file.kind == "changed" and file.blobs == ("", "") and [hunk.old for hunk in file.hunks] == [[]]


def _listed(file: FileDiff, distribution: Distribution) -> Aim | None:
    """A file that RECORD lists; None: it lists none."""
    path = shipped_path(distribution, file.path)
    if path is None and file.source and file.kind == "changed":
        path = shipped_path(distribution, file.source)  # two files of other names, of which nothing is renamed
        file = file if path is None else file._replace(path=file.source)
    if file.kind == "absent":
        return Aim(file, path or file.path, _ABSENT)
    if path is None:
        return None
    if path.partition("/")[0].endswith((".egg-info", ".data")):
        return Aim(file, path, _METADATA)
    reason = unwritable(path)
    if reason is None and not file.hunks and file.kind not in ("added", "removed"):
        reason = NO_LINES
    return Aim(file, path, reason)


def _new(file: FileDiff, distribution: Distribution, heads: Sequence[str]) -> Aim:
    """A new file: where the changed files lie, or if the diff changes none, in a package of the distribution."""
    tops = package_directories(distribution)
    parts = file.path.split("/")
    anywhere = ["/".join(parts[start:]) for start in range(len(parts) - 1)]
    ends = [file.path.removeprefix(head) for head in heads if file.path.startswith(head)] if heads else anywhere
    path = _within(ends, tops)
    if path is not None:
        has = distribution.record.entry(path) is not None
        reason = f"is a new file that {distribution.name} {distribution.version} has already" if has else None
        return Aim(file, file.path if has else path, reason)
    places = ", ".join(filter(None, heads))
    if places and _within(anywhere, tops) is not None:
        reason = f"is a new file elsewhere than what the diff changes of {distribution.name} ({places})"
    else:
        reason = f"is a new file outside of the packages of {distribution.name}"
    return Aim(file, file.path, reason)


def _within(ends: Iterable[str], tops: Iterable[str]) -> str | None:
    """The first of the paths that lies in a package."""
    tops = set(tops)
    return next((end for end in ends if "/" in end and end.partition("/")[0] in tops), None)


def _check_single(found: Sequence[Aim], distribution: Distribution) -> None:
    """Refuse several files of the diff for one, and one that is added on top of itself.

    Raises:
        PlanError: ``paths``.
    """
    #: A file that only its folder moves of is one file by both names.
    first: dict[str, str] = {}
    spelled: dict[str, dict[str, FileDiff]] = {}
    there: set[str] = set()
    again: list[FileDiff] = []
    for aim in found:
        file, path = aim.file, aim.path
        if aim.reason is not None or not (file.hunks or file.kind in ("added", "removed")):
            continue
        if file.kind == "renamed" and shipped_path(distribution, file.source) == path:
            first[file.path] = first.get(file.source, file.source)
        spelled.setdefault(path, {}).setdefault(first.get(file.path, file.path), file)
        if file.kind == "added":
            again += [file] if path in there else []
            there.add(path)
        elif file.kind == "removed":
            there.discard(path)
    twice = {path: files for path, files in spelled.items() if len(files) > 1}
    if twice:
        lines = [f"several files of the diff could be one file of {distribution.name} {distribution.version}:"]
        for path, files in twice.items():
            lines.append(f"  {path}: " + ", ".join(f"{name}{_at(file)}" for name, file in files.items()))
        raise _refusal(lines, found, [list(files.values())[-1] for files in twice.values()])
    if again:
        lines = [f"{file.path} is added twice by the diff{_at(file, ', again at line ', '')}" for file in again]
        raise _refusal(lines, found, again)


def _check_together(found: Sequence[Aim], heads: Sequence[str], distribution: Distribution) -> None:
    """Refuse new files in several places where no changed file tells which is that of the packages.

    Raises:
        PlanError: ``paths``.
    """
    apart: dict[str, list[FileDiff]] = {}
    for aim in found if not heads else ():
        if aim.reason is None and aim.file.kind == "added":
            apart.setdefault(aim.file.path.removesuffix(aim.path), []).append(aim.file)
    if len(apart) > 1:
        where = f"{distribution.name} {distribution.version}"
        lines = [f"the new files of the diff lie apart, and nothing tells which of them are of {where}:"]
        for head, files in apart.items():
            lines.append(f"  {head or '.'}: " + ", ".join(f"{file.path}{_at(file)}" for file in files))
        raise _refusal(lines, found, list(apart.values())[-1])


def _at(file: FileDiff, before: str = " (line ", behind: str = " of the diff)") -> str:
    return f"{before}{file.line}{behind}" if file.line else ""


def _refusal(lines: Sequence[str], found: Sequence[Aim], others: Sequence[FileDiff]) -> PlanError:
    import shlex

    without = " ".join(f"--exclude {shlex.quote(file.path)}" for file in others)
    return PlanError(
        "\n".join(lines),
        code="paths",
        hint=f"leave out what is not meant, such as with {without}; nothing was saved",
        details={
            "paths": [
                {"path": aim.path, "diff_path": aim.file.path, "diff_line": aim.file.line}
                for aim in found
                if aim.reason is None
            ]
        },
    )
