"""The tools: each is given a change of one line of an old release, and the new release, and gives bytes or refuses."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from typing import NamedTuple

from patchkit.author.derive import derive
from patchkit.author.document import Draft, render
from patchkit.author.matrix import plan_release
from patchkit.author.port import port
from patchkit.author.published import WheelFiles
from patchkit.errors import InternalError, PatchkitError
from patchkit.model.load import parse_patch

CONTEXT = 3
"""Lines around the change in a diff: what ``git diff`` and ``diff -u`` write unasked."""
FILE = "f.py"
_ENVIRONMENT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}


class Change(NamedTuple):
    """Lines ``first`` to ``end`` (0-based, half open) of an old file become ``new``; lines are without their ends.

    ``kind`` is "change", "insert" or "delete".
    """

    path: str
    kind: str
    first: int
    end: int
    new: tuple[str, ...]


class Answer(NamedTuple):
    """The lines of the new release's file with the change, or None with the reason; ``path`` is where it went."""

    path: str
    lines: list[str] | None
    reason: str


Tool = Callable[[Change], Answer]


def lines_of(data: bytes) -> list[str] | None:
    """The lines of a file; None where it is not plain UTF-8 text with ``\\n`` at every line's end."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    if "\r" in text or text.startswith("\ufeff") or not text.endswith("\n"):
        return None
    return text.split("\n")[:-1]


def changed(lines: Sequence[str], change: Change) -> list[str]:
    """A file's lines with the change."""
    return [*lines[: change.first], *change.new, *lines[change.end :]]


def text_of(lines: Sequence[str]) -> str:
    """The file that has these lines."""
    return "".join(f"{line}\n" for line in lines)


def patchkit_port(old: WheelFiles, new: WheelFiles) -> Tool:
    """The patch as ``create`` writes it, through ``port`` where it does not fit the new release as it is."""

    def run(change: Change) -> Answer:
        before = old.text(change.path)
        lines = before.source.text.split("\n")[:-1]
        try:
            edits = derive(before.source, before.outline_or_none(), text_of(changed(lines, change)))
            requirement = f"{old.name}=={old.version}"
            patch = parse_patch(render(Draft("measured", "s", requirement, {change.path: edits})), "measured.toml")
            found = port(patch, old, new)
            if found.state not in ("fits", "ported"):
                reasons = [part.reason or "" for part in found.parts if part.state == "decide"]
                return Answer(change.path, None, found.problem or "; ".join(reasons))
            ported = parse_patch(found.data or patch.data, "measured.toml")
            (plan,) = plan_release(ported, new).files
        except InternalError:
            raise
        except PatchkitError as error:
            return Answer(change.path, None, error.message)
        evidence = [line for part in found.parts for line in part.evidence]
        after = lines_of(plan.after or b"")
        assert after is not None
        return Answer(plan.path, after, "; ".join(evidence) or "its anchor matches")

    return run


def unified(lines: Sequence[str], change: Change, head: Sequence[str] = ()) -> str:
    """The change as a unified diff, as ``git diff`` writes it."""
    low, high = max(0, change.first - CONTEXT), min(len(lines), change.end + CONTEXT)
    sizes = high - low, high - low - (change.end - change.first) + len(change.new)
    out = [f"diff --git a/{FILE} b/{FILE}", *head, f"--- a/{FILE}", f"+++ b/{FILE}"]
    out.append(f"@@ -{low + 1},{sizes[0]} +{low + 1},{sizes[1]} @@")
    out += [f" {line}" for line in lines[low : change.first]]
    out += [f"-{line}" for line in lines[change.first : change.end]] + [f"+{line}" for line in change.new]
    out += [f" {line}" for line in lines[change.end : high]]
    return text_of(out)


class Rivals:
    """``git apply``, ``git apply --3way`` and GNU patch on one file of two releases, in a folder of their own."""

    def __init__(self, folder: str, path: str, old: Sequence[str], new: Sequence[str]) -> None:
        self.path, self.old, self.new = path, old, new
        self.plain = os.path.join(folder, "plain")
        self.repository = os.path.join(folder, "repository")
        self.environment = {**os.environ, **_ENVIRONMENT, "GIT_CEILING_DIRECTORIES": os.path.realpath(folder)}
        for made in (self.plain, self.repository):
            shutil.rmtree(made, ignore_errors=True)
            os.mkdir(made)
            self._write(os.path.join(made, FILE), text_of(old))
        self._git("init", "--quiet")
        self.blob = self._git("hash-object", "-w", FILE).stdout.decode().strip()
        for made in (self.plain, self.repository):
            self._write(os.path.join(made, FILE), text_of(new))
        self._git("add", FILE)
        self.index = os.path.join(self.repository, ".git", "index")
        shutil.copy(self.index, f"{self.index}.kept")

    def tools(self) -> dict[str, Tool]:
        """Each by its name."""
        return {"git apply": self.apply, "git apply --3way": self.three_way, "GNU patch": self.patch}

    def apply(self, change: Change) -> Answer:
        """``git apply`` outside of a repository."""
        self._write(os.path.join(self.plain, "c.diff"), unified(self.old, change))
        done = self._run(["git", "apply", "--whitespace=nowarn", "c.diff"], self.plain)
        if done.returncode:
            return Answer(self.path, None, done.stderr.decode())
        lines = self._read(os.path.join(self.plain, FILE))
        self._write(os.path.join(self.plain, FILE), text_of(self.new))
        return Answer(self.path, lines, "")

    def three_way(self, change: Change) -> Answer:
        """``git apply --3way`` in a repository that has the old file; on the index, so that no file need be reset."""
        head = [f"index {self.blob}..{'0' * 39}1 100644"]
        self._write(os.path.join(self.repository, "c.diff"), unified(self.old, change, head))
        done = self._git("apply", "--3way", "--cached", "--whitespace=nowarn", "c.diff", check=False)
        lines = None
        if not done.returncode:
            lines = self._git("cat-file", "blob", f":{FILE}").stdout.decode("utf-8").split("\n")[:-1]
        shutil.copy(f"{self.index}.kept", self.index)
        return Answer(self.path, lines, done.stderr.decode())

    def patch(self, change: Change) -> Answer:
        """GNU patch with its own fuzz."""
        self._write(os.path.join(self.plain, "c.diff"), unified(self.old, change))
        command = ["patch", "--silent", "--forward", "--force", "--reject-file=-", "--output=out.py", FILE, "c.diff"]
        done = self._run(command, self.plain)
        if done.returncode:
            return Answer(self.path, None, done.stdout.decode("utf-8", "replace"))
        return Answer(self.path, self._read(os.path.join(self.plain, "out.py")), "")

    def _git(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[bytes]:
        done = self._run(["git", *arguments], self.repository)
        if check and done.returncode:
            raise RuntimeError(done.stderr.decode())
        return done

    def _run(self, command: list[str], folder: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(command, cwd=folder, env=self.environment, capture_output=True)

    @staticmethod
    def _write(path: str, text: str) -> None:
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.write(text)

    @staticmethod
    def _read(path: str) -> list[str]:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read().split("\n")[:-1]
