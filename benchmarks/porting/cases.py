"""A seeded sample of lines of one release, changed, carried to another release by every tool, and judged."""

from __future__ import annotations

import ast
import os
import random
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from tools import Answer, Change, Rivals, Tool, changed, lines_of, patchkit_port, text_of
from truth import Sources, Truth, code_tokens, truths

from patchkit.author.published import WheelFiles

MARK = "  # measured"
PORT = "patchkit port"


class Case(NamedTuple):
    """One change of one release, carried to another: the truth, and each tool's verdict and reason."""

    old: str
    new: str
    change: Change
    truth: Truth
    verdicts: dict[str, tuple[str, str]]


class Release(NamedTuple):
    """One release: its wheel, and as lines its Python files that are UTF-8 text, with ``\\n`` at every line's end."""

    files: WheelFiles
    sources: Sources


@contextmanager
def opened(path: str, name: str, version: str) -> Iterator[Release]:
    """One release out of its wheel."""
    with zipfile.ZipFile(path) as archive:
        files = WheelFiles(archive, name, version)
        found = {path: lines_of(data) for path, data in files.siblings() if path.endswith(".py") and data}
        plain = {path: lines for path, lines in found.items() if lines is not None}
        yield Release(files, Sources(plain))


def population(old: Release, new: Release) -> list[tuple[str, int]]:
    """Every line, blank ones aside, of the files that both releases have and that differ."""
    theirs = new.sources.files
    return [
        (path, number)
        for path, lines in old.sources.files.items()
        if path in theirs and theirs[path] != lines
        for number, line in enumerate(lines)
        if line.strip()
    ]


def sample(old: Release, new: Release, kind: str, count: int | None, seed: int) -> list[Change]:
    """So many changes of one kind, in the order of files and lines; None: of every line that can be changed."""
    chance = random.Random(f"{seed} {old.files.version} {new.files.version} {kind}")
    lines = population(old, new)
    chance.shuffle(lines)
    out: list[Change] = []
    for path, number in lines:
        if count is not None and len(out) == count:
            break
        change = _change(kind, path, old.sources.files[path], number)
        if _parses_as_before(old.sources.files[path], change):
            out.append(change)
    return sorted(out)


def _change(kind: str, path: str, lines: Sequence[str], number: int) -> Change:
    line = lines[number]
    if kind == "change":
        return Change(path, kind, number, number + 1, (line.rstrip() + MARK,))
    if kind == "delete":
        return Change(path, kind, number, number + 1, ())
    indent = line[: len(line) - len(line.lstrip())]
    return Change(path, kind, number + 1, number + 1, (indent + MARK.strip(),))


def _parses_as_before(lines: Sequence[str], change: Change) -> bool:
    """Whether a file that parses does so with the change: nobody makes another one."""
    if change.kind == "change":
        return not lines[change.first].endswith("\\")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text_of(changed(lines, change)))
        except (SyntaxError, ValueError):
            return False
    return True


def measure(
    old: Release, new: Release, changes: Sequence[Change], names: Sequence[str] | None, done: Callable[[int], None]
) -> list[Case]:
    """Every change by every tool (those of ``names``); ``done`` is told how many changes were carried."""
    out: list[Case] = []
    by_path: dict[str, list[Change]] = {}
    for change in changes:
        by_path.setdefault(change.path, []).append(change)
    port = patchkit_port(old.files, new.files)
    with tempfile.TemporaryDirectory() as folder:
        for path, own in by_path.items():
            ours, theirs = old.sources.files[path], new.sources.files[path]
            tools: dict[str, Tool] = {PORT: port}
            if names is None or set(names) != {PORT}:
                tools.update(Rivals(folder, path, ours, theirs).tools())
            wanted = {n for change in own for n in _told_by(ours, change)}
            known = truths(old.sources, new.sources, path, sorted(wanted), folder)
            for change in own:
                truth = _truth_of(change, ours, known, new.sources.files)
                verdicts = {
                    name: _judged(change, truth, new.sources.files, tool(change))
                    for name, tool in tools.items()
                    if names is None or name in names
                }
                out.append(Case(old.files.version, new.files.version, change, truth, verdicts))
                done(1)
    return out


def _told_by(lines: Sequence[str], change: Change) -> list[int]:
    """The lines whose place tells where the change belongs."""
    if change.kind != "insert":
        return [change.first]
    below = next((n for n in range(change.first, len(lines)) if lines[n].strip()), None)
    return [change.first - 1] if below is None else [change.first - 1, below]


def _truth_of(
    change: Change, lines: Sequence[str], known: Mapping[int, Truth], files: Mapping[str, Sequence[str]]
) -> Truth:
    """The truth of the changed line; of an insertion, the gap between its two neighbours where that has no code."""
    told = [known[number] for number in _told_by(lines, change)]
    if change.kind != "insert":
        return told[0]
    above, below = told[0], told[-1]
    if {one.state for one in told} == {"gone"}:
        return above
    if {one.state for one in told} != {"at"} or above.path != below.path:
        return Truth("unknown", "only one of its neighbours is there")
    last = below.line if len(told) == 2 else len(files[above.path])
    if last < above.end or any(line.strip() for line in files[above.path][above.end : last]):
        return Truth("unknown", "its neighbours are apart")
    return Truth("at", above.how, above.path, above.end, last)


def _judged(change: Change, truth: Truth, files: Mapping[str, Sequence[str]], answer: Answer) -> tuple[str, str]:
    """The verdict ("right", "refused", "wrong"; "written" where the truth is unknown), and what the tool says."""
    if answer.lines is None:
        return "refused", answer.reason
    where = f"{_place(change, files, answer)} ({answer.reason})"
    if truth.state == "unknown":
        return "written", where
    right = truth.state == "at" and answer.path == truth.path and _is_right(change, truth, files, answer.lines)
    return ("right" if right else "wrong"), where


def _place(change: Change, files: Mapping[str, Sequence[str]], answer: Answer) -> str:
    """Where the tool's result differs first from the release."""
    assert answer.lines is not None
    theirs = files[answer.path]
    pairs = enumerate(zip(theirs, answer.lines, strict=False), 1)
    first = next((number for number, (one, other) in pairs if one != other), len(theirs))
    return f"{answer.path}:{first}"


def _is_right(change: Change, truth: Truth, files: Mapping[str, Sequence[str]], lines: Sequence[str]) -> bool:
    theirs = files[truth.path]
    if change.kind == "insert":
        at = [n for n in range(truth.line, truth.end + 1) if n < len(lines) and lines[n].strip() == MARK.strip()]
        return any([*lines[:n], *lines[n + 1 :]] == list(theirs) for n in at)
    if change.kind == "delete":
        return list(lines) == [*theirs[: truth.line], *theirs[truth.end :]]
    if truth.how == "laid out anew":
        at = [n for n in range(truth.line, truth.end) if n < len(lines) and lines[n].endswith(MARK)]
        return bool(at) and code_tokens(lines) == code_tokens(theirs)
    new = theirs[truth.line].rstrip() + MARK
    return list(lines) == [*theirs[: truth.line], new, *theirs[truth.end :]]


def wheel_of(folder: str, name: str, version: str) -> str | None:
    """The path of a wheel in a folder; None where it is not there."""
    wanted = name.replace("-", "_").lower()
    for file in sorted(os.listdir(folder)):
        parts = file.lower().split("-")
        if file.endswith(".whl") and parts[0].replace(".", "_") == wanted and parts[1] == version:
            return os.path.join(folder, file)
    return None
