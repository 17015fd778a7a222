"""Two changes of one file into one: by hand, against git, and as a property."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.author.merging import Labels, conflict_lines, merge_lines

LABELS = Labels("yours", "demo 1.0", "demo 1.1")


def merged(base: str, ours: str, theirs: str) -> tuple[str, int]:
    data, conflicts = merge_lines(base.encode(), ours.encode(), theirs.encode(), LABELS)
    return data.decode(), conflicts


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "expected"),
    [
        ("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n", "A\nb\nC\n"),
        ("a\nb\nc\n", "a\nb\nc\n", "a\nX\nc\n", "a\nX\nc\n"),
        ("a\nb\nc\n", "a\nX\nc\n", "a\nX\nc\n", "a\nX\nc\n"),
        ("a\nb\nc\n", "a\nc\n", "a\nb\nc\nd\n", "a\nc\nd\n"),
        ("a\nb\nc", "A\nb\nc", "a\nb\nC", "A\nb\nC"),
        ("a\r\nb\r\nc\r\n", "A\r\nb\r\nc\r\n", "a\r\nb\r\nC\r\n", "A\r\nb\r\nC\r\n"),
        ("", "a\n", "a\n", "a\n"),
    ],
)
def test_changes_apart_or_alike_are_both_made(base: str, ours: str, theirs: str, expected: str) -> None:
    assert merged(base, ours, theirs) == (expected, 0)


def test_a_conflict_shows_all_three_and_no_more_than_it_must() -> None:
    data, count = merged("a\nb\nc\n", "a\nsame\nmine\nc\n", "a\nsame\ntheirs\nc\n")
    assert count == 1
    assert data == ("a\nsame\n<<<<<<< yours\nmine\n||||||| demo 1.0\nb\n=======\ntheirs\n>>>>>>> demo 1.1\nc\n")
    assert conflict_lines(data.encode()) == [3]


def test_a_last_line_without_an_end_does_not_run_into_a_mark() -> None:
    assert merged("a", "b", "c") == ("<<<<<<< yours\nb\n||||||| demo 1.0\na\n=======\nc\n>>>>>>> demo 1.1\n", 1)


def test_marks_follow_the_files_line_breaks() -> None:
    assert "<<<<<<< yours\r\n" in merged("a\r\nb\r\n", "x\r\nb\r\n", "y\r\nb\r\n")[0]


def test_a_line_of_equals_signs_is_no_conflict() -> None:
    assert conflict_lines(b"Title\n=======\n<<<<<<< x\n") == []


def git(folder: Path, base: str, ours: str, theirs: str) -> tuple[str, int]:
    """What ``git merge-file --diff3`` makes of it."""
    for name, text in (("base", base), ("ours", ours), ("theirs", theirs)):
        (folder / name).write_text(text, newline="")
    command = ["git", "merge-file", "-p", "--diff3"]
    for label in LABELS:
        command += ["-L", label]
    done = subprocess.run([*command, "ours", "base", "theirs"], cwd=folder, capture_output=True, check=False)
    return done.stdout.decode(), done.returncode


def test_where_git_merges_so_does_it_and_to_the_same_lines(tmp_path: Path) -> None:
    base = "".join(f"line {number}\n" for number in range(12))
    edits = [
        ("line 2\n", "mine\n"),
        ("line 2\nline 3\n", ""),
        ("line 5\n", "line 5\nmore\n"),
        ("line 11\n", "line 11\nlast\n"),
        ("line 0\n", "first\nline 0\n"),
        ("line 6\n", "other\n"),
    ]
    clean = 0
    for old, new in edits:
        for other, another in edits:
            ours, theirs = base.replace(old, new), base.replace(other, another)
            text, conflicts = merged(base, ours, theirs)
            expected, status = git(tmp_path, base, ours, theirs)
            assert (conflicts > 0) == (status > 0), (old, other)
            if not status:
                assert text == expected
                clean += 1
    assert clean > 20


LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "d\n", "e\n", "f\n"]), max_size=10)


@given(LINES, LINES, LINES)
def test_nothing_of_either_side_is_lost(base: list[str], ours: list[str], theirs: list[str]) -> None:
    texts = ["".join(lines) for lines in (base, ours, theirs)]
    data, conflicts = merged(*texts)
    swapped, again = merged(texts[0], texts[2], texts[1])
    assert conflicts == again
    assert merged(texts[0], texts[1], texts[0]) == (texts[1], 0)
    assert merged(texts[0], texts[0], texts[2]) == (texts[2], 0)
    if not conflicts:
        assert data == swapped
