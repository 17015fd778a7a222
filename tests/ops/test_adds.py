"""New files: made with the directories they need, removed with those alone."""

from __future__ import annotations

from support.bench import Bench

DEEP = '[[add]]\nfile = "demo/new/deep/extra.py"\ncontent = """\nE = 1\n"""\n'


def test_an_added_file_and_its_directories_come_and_go(bench: Bench) -> None:
    bench.patch("adds", DEEP)
    run = bench("apply", "adds")
    assert (run.status, run.out) == (0, "applied adds  (demo 1.0)\n  demo/new/deep/extra.py  (new file)\n")
    assert bench.read("demo/new/deep/extra.py") == b"E = 1\n"
    assert bench("check").status == 0
    run = bench("revert", "adds")
    assert (run.status, run.out) == (0, "reverted adds  (demo 1.0)\n  demo/new/deep/extra.py  (removed)\n")
    assert not (bench.site / "demo/new").exists()
    assert bench.pristine()


def test_a_directory_with_something_else_in_it_stays(bench: Bench) -> None:
    bench.patch("adds", DEEP)
    bench("apply", "adds")
    (bench.site / "demo/new/mine.txt").write_text("mine")
    bench("revert", "adds")
    assert not (bench.site / "demo/new/deep").exists()
    assert bench.read("demo/new/mine.txt") == b"mine"


def test_two_patches_share_a_new_directory(bench: Bench) -> None:
    bench.patch("one", DEEP)
    bench.patch("two", DEEP.replace("extra", "other"))
    bench("apply", "one")
    bench("apply", "two")
    bench("revert", "one")
    assert not (bench.site / "demo/new/deep/extra.py").exists()
    assert bench.read("demo/new/deep/other.py") == b"E = 1\n"
    bench("revert", "two")
    assert not (bench.site / "demo/new").exists()


def test_a_file_that_exists_is_not_added(bench: Bench) -> None:
    bench.patch("adds", '[[add]]\nfile = "demo/core.py"\ncontent = ""\n')
    run = bench.json("apply", "adds")
    assert (run.status, run.error["code"]) == (5, "exists")
    (bench.site / "demo/mine.py").write_text("M = 1\n")
    bench.patch("adds", '[[add]]\nfile = "demo/mine.py"\ncontent = ""\n')
    assert bench("apply", "adds").status == 5
    assert bench.read("demo/mine.py") == b"M = 1\n"


def test_two_patches_cannot_add_one_file(bench: Bench) -> None:
    bench.patch("one", DEEP)
    bench.patch("two", DEEP)
    run = bench.json("apply", "one", "two")
    assert (run.status, run.error["code"]) == (4, "exists")
    assert not (bench.site / "demo/new").exists()
    bench("apply", "one")
    assert bench("apply", "two").status == 4


def test_a_changed_content_is_put_in_anew(bench: Bench) -> None:
    bench.patch("adds", DEEP)
    bench("apply", "adds")
    bench.patch("adds", DEEP.replace("E = 1", "E = 2"))
    assert bench("apply", "adds").status == 0
    assert bench.read("demo/new/deep/extra.py") == b"E = 2\n"
    bench("revert", "adds")
    assert not (bench.site / "demo/new").exists()


def test_an_added_file_edited_by_hand_is_not_removed_unasked(bench: Bench) -> None:
    bench.patch("adds", DEEP)
    bench("apply", "adds")
    bench.write("demo/new/deep/extra.py", b"E = 1\nMINE = 2\n")
    run = bench.json("revert", "adds")
    assert (run.status, run.error["code"]) == (5, "hand-edit-inside")
    assert bench.read("demo/new/deep/extra.py") == b"E = 1\nMINE = 2\n"
    run = bench("revert", "adds", "--force")
    assert run.status == 0
    assert "-MINE = 2\n" in run.out
    assert not (bench.site / "demo/new").exists()


def test_an_added_file_removed_by_hand_needs_no_removal(bench: Bench) -> None:
    bench.patch("adds", DEEP)
    bench("apply", "adds")
    (bench.site / "demo/new/deep/extra.py").unlink()
    assert bench("revert", "adds").status == 0
    assert bench("check").err.startswith("nothing was checked: no patch is applied in ")


def test_an_added_file_that_an_upgrade_left_is_still_ours(bench: Bench) -> None:
    """Pip removes what RECORD lists; a file that a patch added is not in it."""
    bench.patch("adds", DEEP)
    bench("apply", "adds")
    bench.install("2.0")
    (bench.site / "demo/new/deep").mkdir(parents=True)
    (bench.site / "demo/new/deep/extra.py").write_bytes(b"E = 1\n")
    assert [p["state"] for p in bench.json("check").json["patches"]] == ["stale"]
    bench.patch("adds", DEEP.replace("E = 1", "E = 2"))
    assert bench("apply", "adds").status == 0
    assert bench.read("demo/new/deep/extra.py") == b"E = 2\n"
    assert bench("revert", "adds").status == 0
    assert not (bench.site / "demo/new/deep/extra.py").exists()


def test_an_added_file_that_an_upgrade_left_is_taken_out(bench: Bench) -> None:
    bench.patch("adds", DEEP)
    bench("apply", "adds")
    bench.install("2.0")
    (bench.site / "demo/new/deep").mkdir(parents=True)
    (bench.site / "demo/new/deep/extra.py").write_bytes(b"E = 1\n")
    assert bench("revert", "adds").status == 0
    assert not (bench.site / "demo/new/deep/extra.py").exists()


def test_a_file_that_an_upgrade_brought_is_the_releases(bench: Bench) -> None:
    bench.patch("adds", '[[add]]\nfile = "demo/extra.py"\ncontent = "E = 1\\n"\n')
    bench("apply", "adds")
    bench.install("2.0", {**bench.files, "demo/extra.py": "E = 1\n"})
    run = bench("revert", "adds")
    assert run.status == 0
    assert bench.read("demo/extra.py") == b"E = 1\n"


def test_an_edit_of_a_file_that_another_patch_added(bench: Bench) -> None:
    bench.patch("adds", DEEP)
    bench.patch("edits", '[[edit]]\nfile = "demo/new/deep/extra.py"\nfind = "E = 1"\nreplace = "E = 2"\n')
    assert bench.json("apply", "edits").error["code"] == "not-in-distribution"
    assert bench("apply", "adds", "edits").status == 0
    assert bench.read("demo/new/deep/extra.py") == b"E = 2\n"
    assert bench("check").status == 0
    assert bench("revert", "adds").status == 4
    assert bench("revert", "edits").status == 0
    assert bench.read("demo/new/deep/extra.py") == b"E = 1\n"
    assert bench("apply", "edits").status == 0
    assert bench("revert", "--all").status == 0
    assert not (bench.site / "demo/new").exists()
