"""What `check` says of hand edits and of patches that do not fit any more, and what it proposes to type."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ops.drifting import DOUBLE, DOUBLED, NEEDLESS, STOP_AT_2, UTIL_X, state
from support.bench import CORE, UTIL, Bench


@pytest.fixture(autouse=True)
def _nothing_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("patchkit.ops.catalog.shipped_folder", lambda: os.path.join(str(tmp_path), "shipped"))


# -- a hand edit inside ------------------------------------------------------------------------------------------------


def shown(bench: Bench, before: str, after: str, *names: str) -> list[str]:
    bench.write("demo/core.py", bench.read("demo/core.py").decode().replace(before, after).encode())
    run = bench("revert", *(names or ("p",)))
    assert run.status == 5
    return run.err.split("\n")[1:-2]


SEVERAL = "\\n".join(f"    a{number} = {number}" for number in range(1, 11))
BLOCK = f'[[edit]]\nfile = "demo/core.py"\nfind = "    y = x + x"\nreplace = "{SEVERAL}"\n'


def test_the_line_of_the_hand_edit_and_the_whole_line(bench: Bench) -> None:
    bench.patch("p", BLOCK)
    bench("apply", "p")
    assert shown(bench, "a4 = 4", "a4 = 44") == [
        "  line 9 (- as patchkit wrote it, + as it is now):",
        "    -     a4 = 4",
        "    +     a4 = 44",
    ]


def test_a_line_put_in(bench: Bench) -> None:
    bench.patch("p", BLOCK)
    bench("apply", "p")
    assert shown(bench, "    a5 = 5\n", "    mine = 0\n    a5 = 5\n") == [
        "  line 10 (- as patchkit wrote it, + as it is now):",
        "    +     mine = 0",
    ]


def test_a_line_taken_out_below_a_line_put_in(bench: Bench) -> None:
    """The line is that of the file as it is now."""
    bench.patch("p", BLOCK)
    bench("apply", "p")
    bench.write("demo/core.py", b"# mine\n" + bench.read("demo/core.py"))
    assert shown(bench, "    a5 = 5\n", "") == [
        "  line 11 (- as patchkit wrote it, + as it is now):",
        "    -     a5 = 5",
    ]


def test_two_lines_joined(bench: Bench) -> None:
    bench.patch("p", BLOCK)
    bench("apply", "p")
    assert shown(bench, "a5 = 5\n    a6", "a5 = a6") == [
        "  line 10 (- as patchkit wrote it, + as it is now):",
        "    -     a5 = 5",
        "    -     a6 = 6",
        "    +     a5 = a6 = 6",
    ]


def test_at_most_twelve_lines(bench: Bench) -> None:
    bench.patch("p", BLOCK)
    bench("apply", "p")
    new = "\n".join(f"    b{number} = {number}" for number in range(1, 11))
    lines = shown(bench, SEVERAL.replace("\\n", "\n"), new)
    assert len(lines) == 13
    assert lines[1:3] == ["    -     a1 = 1", "    -     a2 = 2"]
    assert (lines[6], lines[7], lines[12]) == (
        "    - ... and 5 lines more",
        "    +     b1 = 1",
        "    + ... and 5 lines more",
    )


def test_several_places_share_the_lines(bench: Bench) -> None:
    bench.patch("p", BLOCK)
    bench("apply", "p")
    text = bench.read("demo/core.py").decode()
    for number in (1, 3, 5, 7, 9):
        text = text.replace(f"a{number} = {number}", f"a{number} = -{number}")
    bench.write("demo/core.py", text.encode())
    run = bench.json("revert", "p")
    lines = run.error["message"].split("\n")[1:]
    assert [line for line in lines if line.startswith("  line")] == [
        f"  line {number} (- as patchkit wrote it, + as it is now):" for number in (6, 8, 10)
    ]
    assert lines[-1] == "  and 2 more places"
    assert run.error["conflicts"] == [6, 8, 10, 12, 14]


def test_a_file_that_a_patch_added(bench: Bench) -> None:
    bench.patch("p", '[[add]]\nfile = "demo/extra.py"\ncontent = "A = 1\\nB = 2\\nC = 3\\n"\n')
    bench("apply", "p")
    bench.write("demo/extra.py", b"A = 1\nB = 22\nC = 3\n")
    run = bench("revert", "p")
    assert run.err.split("\n")[1:4] == [
        "  line 2 (- as patchkit wrote it, + as it is now):",
        "    - B = 2",
        "    + B = 22",
    ]


def test_windows_line_breaks(bench: Bench) -> None:
    bench.patch("p", UTIL_X)
    bench("apply", "p")
    bench.write("demo/util.py", UTIL.replace("X = 1\r\n", "X = 11\r\n").encode())
    run = bench("revert", "p")
    assert run.err.split("\n")[1:4] == [
        "  line 1 (- as patchkit wrote it, + as it is now):",
        "    - X = 10",
        "    + X = 11",
    ]


# -- what the reason says, and what it proposes ------------------------------------------------------------------------


def test_an_upgrade_that_the_patch_does_not_fit(bench: Bench) -> None:
    """`sync` is not proposed where it would fail."""
    path = bench.patch("p", DOUBLE)
    bench("apply", "p")
    bench.install("2.0", {**bench.files, "demo/core.py": CORE.replace("x + x", "x << 1")})
    status, word, reason = state(bench)
    assert (status, word) == (1, "stale")
    assert reason == (
        f"applied to 1.0, 2.0 is installed, and the patch does not fit: {path}:9: edit 1: `find` matches nowhere in "
        "demo/core.py, expected 1; correct the anchor in the patch file; `patchkit apply p --dry-run` shows it all"
    )
    assert bench("apply", "p", "--dry-run").status == bench("sync").status == 4


def test_a_release_that_has_the_new_text_by_itself(bench: Bench) -> None:
    """Whether it means the same, only a person can say."""
    bench.patch("p", DOUBLE)
    bench("apply", "p")
    bench.install("2.0", {**bench.files, "demo/core.py": CORE.replace("x + x", "2 * x")})
    status, word, reason = state(bench)
    assert (status, word) == (1, "stale")
    there = "demo/core.py has in line 6 what the patch would write: where release 2.0 has the change, say so with "
    assert reason is not None
    assert there + "[[upstreamed]]" in reason
    run = bench.json("apply", "p")
    assert (run.status, run.error["code"], run.error["there_already"]) == (4, "anchor-missing", [6])
    assert run.error["hint"].startswith(there)
    bench.patch("p", NEEDLESS)
    assert state(bench)[:2] == (0, "upstreamed")


def test_the_new_text_of_another_release_does_not_count(bench: Bench) -> None:
    bench.patch("p", DOUBLE.replace("\nfind", '\nversions = "<2"\nfind') + STOP_AT_2)
    bench("apply", "p")
    bench.install("2.0", {**bench.files, "demo/core.py": CORE.replace("x + x", "2 * x").replace("= None", "= 1")})
    run = bench.json("apply", "p")
    assert (run.status, run.error["code"]) == (4, "anchor-missing")
    assert "there_already" not in run.error


def test_patches_that_fit_together_after_an_upgrade(bench: Bench) -> None:
    """The one needs what the other writes: `sync` lays both, so both are told to."""
    bench.patch("p", DOUBLE)
    bench.patch("q", DOUBLE.replace("x + x", "2 * x").replace('replace = "y = 2 * x"', 'replace = "y = x"'))
    bench("apply", "p")
    assert bench("apply", "q").status == 0
    bench.install("2.0")
    way = "applied to 1.0, 2.0 is installed: run `patchkit sync`"
    assert (state(bench, "p"), state(bench, "q")) == ((1, "stale", way), (1, "stale", way))
    assert bench("sync").status == 0
    assert bench("check").status == 0


def test_a_patch_file_that_was_made_wrong(bench: Bench) -> None:
    path = bench.patch("p", DOUBLE)
    bench("apply", "p")
    bench.patch("p", DOUBLE.replace("x + x", "q"))
    status, word, reason = state(bench)
    assert (status, word) == (1, "stale")
    assert str(reason).startswith(
        f"{path} was edited since it was applied, and does not fit any more: {path}:9: edit 1:"
    )
    bench.patch("p", "[[edit]\n")
    status, word, reason = state(bench)
    assert (status, word) == (1, "stale")
    assert str(reason).startswith(f"{path} was edited since it was applied, and is wrong now: {path}:7: not valid TOML")
    assert str(reason).endswith(f"; `patchkit lint {path}` says more")


def test_another_build_is_called_so(bench: Bench) -> None:
    bench.patch("p", DOUBLE)
    bench("apply", "p")
    bench.install("1.0", {**bench.files, "demo/core.py": CORE.replace("A module", "Another build")})
    assert state(bench) == (1, "lost", "another build of demo 1.0 was installed: run `patchkit sync`")


def test_other_line_breaks_are_called_so(bench: Bench) -> None:
    bench.patch("p", DOUBLE)
    bench("apply", "p")
    bench.write("demo/core.py", bench.read("demo/core.py").replace(b"\n", b"\r\n"))
    assert state(bench)[1:] == (
        "modified",
        "demo/core.py was edited since: see `patchkit diff p`; inside of what patchkit wrote (line 1), in its line "
        "breaks alone: `patchkit revert --force p` discards that, and keeps a copy",
    )
    run = bench("revert", "p")
    assert (run.status, "was edited by hand inside of what patchkit wrote; only line breaks differ" in run.err) == (
        5,
        True,
    )


def test_a_refused_patch_of_the_list(bench: Bench) -> None:
    bench.patch("p", DOUBLE, requirement="demo<2")
    bench.project("p")
    bench("sync")
    bench.install("2.0")
    status, word, reason = state(bench)
    assert (status, word) == (1, "refused")
    assert str(reason).endswith("; or take it off the project's list, then `patchkit revert p`")


def test_an_addition_that_was_edited_outlives_an_uninstall_and_revert(bench: Bench) -> None:
    bench.patch("p", DOUBLE + '[[add]]\nfile = "demo/extra.py"\ncontent = "E = 1\\n"\n')
    bench("apply", "p")
    bench.uninstall()
    (bench.site / "demo").mkdir()
    (bench.site / "demo/extra.py").write_text("E = 2\n")
    run = bench("revert", "p")
    assert run.status == 0
    assert run.out == (
        "reverted p  (demo 1.0): its distribution is gone; demo/extra.py, which the patch had added, stays: it was "
        "edited since\n"
    )
    assert bench.read("demo/extra.py") == b"E = 2\n"


@pytest.mark.parametrize("mine", [False, True], ids=["alone", "beside a file of mine"])
@pytest.mark.parametrize("end", ["revert", "sync"])
def test_what_a_patch_added_outlives_an_uninstall(bench: Bench, end: str, mine: bool) -> None:
    """Left alone it would make ``import demo`` find a namespace package; it goes, with what nobody needs."""
    bench.patch("p", DOUBLE + '[[add]]\nfile = "demo/new/extra.py"\ncontent = "E = 1\\n"\n')
    bench.project("p")
    bench("sync")
    for path in ("demo/__init__.py", "demo/core.py", "demo/util.py"):
        (bench.site / path).unlink()
    for path in (bench.site / "demo-1.0.dist-info").iterdir():
        path.unlink()
    (bench.site / "demo-1.0.dist-info").rmdir()
    if mine:
        (bench.site / "demo/notes.txt").write_text("mine")
    assert state(bench) == (
        1,
        "uninstalled",
        "demo is not installed any more: install it and run `patchkit sync`, or `patchkit revert p` forgets the patch "
        "and removes what it added (demo/new/extra.py)",
    )
    if end == "sync":
        bench.project()
    assert bench(*(["revert", "p"] if end == "revert" else ["sync"])).status == 0
    assert sorted(path.name for path in bench.site.rglob("*") if ".patchkit" not in path.parts) == (
        ["demo", "notes.txt"] if mine else []
    )
    bench.project()
    assert bench("check").status == 0


def test_the_file_of_the_lines_is_named(bench: Bench) -> None:
    """Of two edited files only one is in the way of a revert."""
    bench.patch("p", DOUBLE + UTIL_X)
    bench("apply", "p")
    bench.write("demo/core.py", DOUBLED + b"# mine\n")
    bench.write("demo/util.py", UTIL.replace("X = 1\r\n", "X = 11\r\n").encode())
    assert state(bench)[1:] == (
        "modified",
        "demo/core.py and 1 more file were edited since: see `patchkit diff p`; inside of what patchkit wrote in "
        "demo/util.py (line 1): `patchkit revert --force p` discards that, and keeps a copy",
    )
