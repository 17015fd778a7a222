"""A diff, read, whatever it came in."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from patchkit.author.diffs import plain, read_diff
from patchkit.errors import UsageError

HEAD = "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n"


def git(folder: Path, *options: str) -> str:
    command = ["git", *options]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).stdout.decode()


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """Two files with what git paints: changes, blanks at the end of a line, a blank line, none at the end of a file."""
    (tmp_path / "old.py").write_bytes(b"def f():\n    a = 1\n\n    b = 1\r\n    c = 1\n")
    (tmp_path / "new.py").write_bytes(b"def f():\n    a = 2  \n\n\t \n    b = 2\r\n    c = 1")
    return tmp_path


@pytest.mark.parametrize("more", [[], ["--color-moved"], ["--ws-error-highlight=all"], ["-U0"]])
def test_colours_of_git_are_taken_off(pair: Path, more: list[str]) -> None:
    words = ["diff", "--no-index", *more, "--", "old.py", "new.py"]
    painted = git(pair, *words[:2], "--color=always", *words[2:])
    assert "\x1b[32m+" in painted or "\x1b[1;36m+" in painted
    assert plain(painted) == git(pair, *words)


def test_escape_characters_of_a_file_stay() -> None:
    diff = f"{HEAD} a\n-red = ''\n+red = '\x1b[31m'\n"
    (file,) = read_diff(diff.encode())
    assert file.hunks[0].new == ["a\n", "red = '\x1b[31m'\n"]


@pytest.mark.parametrize(
    "line", ["\x1b[32m+\x1b[m\x1b[32mred = '\x1b[31m'\x1b[m", "\x1b[32m+red\x1b[0m\x1b[m", "+\x1b[m"]
)
def test_colours_within_a_line_of_a_painted_diff_are_refused(line: str) -> None:
    diff = f"\x1b[1m--- a/x.py\x1b[m\n+++ b/x.py\n\x1b[36m@@ -1,2 +1,2 @@\x1b[m\n a\n\x1b[31m-b\x1b[m\n{line}\n"
    with pytest.raises(UsageError) as caught:
        read_diff(diff.encode())
    assert (caught.value.code, caught.value.details) == ("diff", {"line": 6})
    assert "--no-color" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("a/demo/core.py", "demo/core.py"),
        ("a/a/core.py", "a/core.py"),
        ('"a/demo/\\303\\251.py"', "demo/é.py"),
        ('"a/de\\"mo/\\tb\\\\.py"', 'de"mo/\tb\\.py'),
    ],
)
def test_names(name: str, path: str) -> None:
    after = name.replace("a/", "b/", 1)
    (file,) = read_diff(f"--- {name}\n+++ {after}\n@@ -1 +1 @@\n-a\n+b\n".encode())
    assert (file.path, file.source, file.kind, file.line) == (path, "", "changed", 1)


def test_what_git_moves() -> None:
    head = "diff --git a/x/a.py b/x/b.py\nsimilarity index 90%\nrename from x/a.py\nrename to x/b.py\n"
    (file,) = read_diff(f"{head}--- a/x/a.py\n+++ b/x/b.py\n@@ -1 +1 @@\n-a\n+b\n".encode())
    assert (file.path, file.source, file.kind, file.line) == ("x/b.py", "x/a.py", "renamed", 5)
    (file,) = read_diff(head.replace("rename", "copy").replace("90%", "100%").encode())
    assert (file.path, file.source, file.kind, file.line) == ("x/b.py", "x/a.py", "copied", 0)
