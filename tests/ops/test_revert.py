"""`revert` as a whole command: byte for byte, hand edits kept outside of what patchkit wrote, refused inside."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from support.bench import CORE, UTIL, Bench

DOUBLE = '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'
STOP = '[[edit]]\nfile = "demo/core.py"\nfind = "result = None"\nreplace = "result = 0"\n'
UTIL_X = '[[edit]]\nfile = "demo/util.py"\nfind = "X = 1\\n"\nreplace = "X = 10\\nW = 0\\n"\n'
DOUBLED = CORE.replace("x + x", "2 * x")


def by_hand(bench: Bench, old: str, new: str) -> str:
    """Edit core.py as it is now, by hand; returns the result."""
    text = bench.read("demo/core.py").decode()
    assert text.count(old) == 1
    bench.write("demo/core.py", text.replace(old, new).encode())
    return text.replace(old, new)


def test_bytes_mtime_and_mode_are_back(bench: Bench) -> None:
    for path, mode, time in (("demo/core.py", 0o604, 1_400_000_000_987_654_321), ("demo/util.py", 0o755, 10**18)):
        os.chmod(bench.site / path, mode)
        os.utime(bench.site / path, ns=(time, time))
    bench.patch("both", DOUBLE + UTIL_X)
    bench("apply", "both")
    assert not bench.pristine()
    run = bench("revert", "both")
    assert (run.status, run.out) == (0, "reverted both  (demo 1.0)\n  demo/core.py\n  demo/util.py\n")
    assert bench.pristine()
    core, util = os.stat(bench.site / "demo/core.py"), os.stat(bench.site / "demo/util.py")
    assert (core.st_mtime_ns, stat.S_IMODE(core.st_mode)) == (1_400_000_000_987_654_321, 0o604)
    assert (util.st_mtime_ns, stat.S_IMODE(util.st_mode)) == (10**18, 0o755)
    assert not (bench.site / ".patchkit" / "ledger.json").exists()
    assert not (bench.site / ".patchkit" / "blobs").exists()


def test_the_json(bench: Bench) -> None:
    bench.patch("util", UTIL_X)
    bench("apply", "util")
    run = bench.json("revert", "util")
    [patch] = run.json["patches"]
    assert (run.json["command"], run.json["ok"], patch["name"], patch["action"]) == ("revert", True, "util", "reverted")
    [file] = patch["files"]
    assert file["path"] == "demo/util.py"
    # By sha256sum, of "X = 10\r\nW = 0\r\nY = 2\r\nZ = 3\r\n" and of "X = 1\r\nY = 2\r\nZ = 3\r\n".
    assert file["before_sha256"] == "2674e1529eac075a1da2e44e73cfbdcceb64be5ff328a58cc50e3bd679dac6cb"
    assert file["after_sha256"] == "0bf74a33a13a0762f71ab0ae2ed21a3a8c9c403ce2add070509c168bd75323e4"


def test_a_dry_run(bench: Bench) -> None:
    bench.patch("util", UTIL_X)
    bench("apply", "util")
    run = bench("revert", "util", "--dry-run", "--diff")
    assert run.out.startswith("would revert util  (demo 1.0)\n  demo/util.py\n\n--- a/demo/util.py\n")
    assert bench.read("demo/util.py").startswith(b"X = 10")


def test_all(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench.patch("stop", STOP)
    bench.patch("util", UTIL_X)
    bench("apply", "double", "stop", "util")
    run = bench("revert", "--all")
    assert run.out == (
        "reverted double  (demo 1.0)\n  demo/core.py\n"
        "reverted stop  (demo 1.0)\n  demo/core.py\n"
        "reverted util  (demo 1.0)\n  demo/util.py\n"
    )
    assert bench.pristine()
    assert bench("revert", "--all").status == 0


def test_without_a_name(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    run = bench("revert")
    assert run.status == 2
    assert run.err == (
        "error: name the patches to revert, or say --all\n"
        "hint: applied: double; `patchkit revert --all` takes out all\n"
    )
    assert bench("revert", "double", "--all").status == 2
    assert bench.read("demo/core.py") == DOUBLED.encode()


def test_a_patch_that_is_not_applied_is_unchanged(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    run = bench("revert", "double")
    assert (run.status, run.out) == (0, "unchanged double: not applied\n")
    [patch] = bench.json("revert", "double").json["patches"]
    assert (patch["action"], patch["files"]) == ("unchanged", [])


def test_an_unknown_name(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    (bench.patches / "double.toml").unlink()
    run = bench.json("revert", "dubble")
    assert (run.status, run.error["code"], run.error["suggestion"]) == (2, "unknown-patch", "double")
    assert run.error["message"] == "no patch named dubble (did you mean double?)"
    assert bench.read("demo/core.py") == DOUBLED.encode()


@pytest.mark.parametrize("how", ["name", "path"])
def test_the_patch_file_is_not_needed(bench: Bench, how: str) -> None:
    path = bench.patch("double", DOUBLE)
    bench("apply", "double")
    path.unlink()
    assert bench("revert", "double" if how == "name" else str(path)).status == 0
    assert bench.pristine()


def test_a_patch_file_that_is_wrong_by_now_is_not_needed(bench: Bench) -> None:
    path = bench.patch("double", DOUBLE)
    bench("apply", "double")
    path.write_text("nonsense")
    assert bench("revert", str(path)).status == 0
    assert bench.pristine()


def test_a_hand_edit_outside_is_kept(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    by_hand(bench, "import os\n", "import os\nimport sys\n")
    run = bench("revert", "double")
    assert run.status == 0
    assert run.err == "demo/core.py: kept the edits made by hand since\n"
    assert bench.read("demo/core.py") == CORE.replace("import os\n", "import os\nimport sys\n").encode()
    assert bench.json("revert", "double").json["patches"][0]["action"] == "unchanged"


@pytest.mark.parametrize("line_break", ["lf", "crlf"])
def test_hand_edits_on_both_sides_are_kept(bench: Bench, line_break: str) -> None:
    bench.patch("y", '[[edit]]\nfile = "demo/util.py"\nfind = "Y = 2\\n"\nreplace = "Y = 20\\nW = 0\\n"\n')
    bench("apply", "y")
    end = "\r\n" if line_break == "crlf" else "\n"
    bench.write("demo/util.py", f"A = 0{end}X = 1\r\nY = 20\r\nW = 0\r\nZ = 3\r\nB = 9{end}".encode())
    assert bench("revert", "y").status == 0
    assert bench.read("demo/util.py") == f"A = 0{end}X = 1\r\nY = 2\r\nZ = 3\r\nB = 9{end}".encode()


def test_a_hand_edit_inside_is_refused_and_both_are_shown(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    edited = by_hand(bench, "2 * x", "3 * x")
    run = bench("revert", "double")
    assert run.status == 5
    assert run.err.startswith("error: demo/core.py: was edited by hand inside of what patchkit wrote\n")
    assert run.err.split("\n")[1:4] == [
        "  line 6 (- as patchkit wrote it, + as it is now):",
        "    -     y = 2 * x",
        "    +     y = 3 * x",
    ]
    assert run.err.endswith(
        "hint: undo the hand edit, or discard it with --force (a copy is kept): `patchkit revert double --force`\n"
    )
    assert bench.read("demo/core.py") == edited.encode()
    assert bench.json("revert", "double").error["code"] == "hand-edit-inside"


def test_force_shows_and_discards(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    edited = by_hand(bench, "2 * x", "3 * x")
    run = bench("revert", "double", "--force", "--dry-run")
    assert run.status == 0
    assert "would discard the edits made by hand since (--force)" in run.err
    assert bench.read("demo/core.py") == edited.encode()
    run = bench("revert", "double", "--force")
    assert run.status == 0
    copy = bench.site / ".patchkit" / f"discarded-{hashlib.sha256(edited.encode()).hexdigest()[:12]}-core.py"
    assert run.err == (
        "demo/core.py: the edits made by hand here are discarded:\n"
        f"demo/core.py: discarded the edits made by hand since (--force); a copy is in {copy}\n"
    )
    assert copy.read_bytes() == edited.encode()
    assert run.out.index("+    y = x + x") < run.out.index("reverted double")
    [*_, event] = bench.json("log").json["events"]
    assert event["discarded"] == {"demo/core.py": hashlib.sha256(edited.encode()).hexdigest()}
    assert "-    y = 3 * x\n+    y = x + x\n" in run.out
    assert bench.pristine()


def test_force_shows_in_the_json_as_well(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    by_hand(bench, "2 * x", "3 * x")
    document = bench.json("revert", "double", "--force").json
    assert "-    y = 3 * x\n+    y = x + x\n" in document["diff"]
    [note] = document["notes"]
    assert note.startswith("demo/core.py: discarded the edits made by hand since (--force); a copy is in ")


def test_force_keeps_the_hand_edits_that_can_be_kept(bench: Bench) -> None:
    bench.patch("both", DOUBLE + UTIL_X)
    bench("apply", "both")
    by_hand(bench, "2 * x", "3 * x")
    bench.write("demo/util.py", bench.read("demo/util.py") + b"MINE = 1\r\n")
    run = bench.json("revert", "both", "--force")
    assert run.status == 0
    assert bench.read("demo/core.py") == CORE.encode()
    assert bench.read("demo/util.py") == UTIL.encode() + b"MINE = 1\r\n"
    assert [note.partition(" the")[0] for note in run.json["notes"]] == [
        "demo/core.py: discarded",
        "demo/util.py: kept",
    ]
    assert "util.py" not in run.json["diff"]


def test_force_shows_before_it_writes(bench: Bench) -> None:
    from patchkit.ops.revert import revert_site
    from patchkit.site.environment import resolve

    bench.patch("double", DOUBLE)
    bench("apply", "double")
    edited = by_hand(bench, "2 * x", "3 * x").encode()
    seen = []

    def show(discarded: object) -> None:
        seen.append((discarded, bench.read("demo/core.py")))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        revert_site(resolve(None, str(bench.site)), ["double"], force=True, notice=print, show=show)
    [([item], then)] = seen
    assert (item.path, item.before, item.after, then) == ("demo/core.py", edited, CORE.encode(), edited)
    assert bench.read("demo/core.py") == edited


def test_force_discards_no_edits_where_there_are_none(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    run = bench("revert", "double", "--force")
    assert (run.out, run.err) == ("reverted double  (demo 1.0)\n  demo/core.py\n", "")
    assert bench.pristine()


def test_a_hand_edit_beside_a_stack_where_one_patch_stays(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench.patch("stop", STOP)
    bench("apply", "double", "stop")
    by_hand(bench, "import os\n", "import sys\n")
    assert bench("revert", "double").status == 0
    expected = CORE.replace("result = None", "result = 0").replace("import os\n", "import sys\n")
    assert bench.read("demo/core.py") == expected.encode()
    # The hand edit stays a hand edit: check says so, and it is kept when the last patch goes.
    assert [p["state"] for p in bench.json("check").json["patches"]] == ["modified"]
    assert bench("revert", "stop").status == 0
    assert bench.read("demo/core.py") == CORE.replace("import os\n", "import sys\n").encode()


def test_a_hand_edit_inside_the_patch_that_stays_is_kept(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench.patch("stop", STOP)
    bench("apply", "double", "stop")
    by_hand(bench, "result = 0", "result = 1")
    assert bench("revert", "double").status == 0
    assert bench.read("demo/core.py") == CORE.replace("result = None", "result = 1").encode()
    assert bench("revert", "stop").status == 5


def test_the_hint_about_a_deleted_file_is_not_the_command_that_failed(bench: Bench) -> None:
    bench.patch("mine", '[[edit]]\nfile = "demo/core.py"\nfind = "x + x"\nreplace = "2 * x"\n')
    assert bench("apply", "mine").status == 0
    (bench.site / "demo/core.py").unlink()
    done = bench.json("revert", "mine")
    assert (done.status, done.error["hint"]) == (
        5,
        "`patchkit revert mine --force` brings it back without what mine wrote",
    )
    assert bench("revert", "mine", "--force").status == 0
    assert bench.pristine()


def test_a_file_that_is_gone(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    (bench.site / "demo/core.py").unlink()
    run = bench.json("revert", "double")
    assert (run.status, run.error["code"]) == (5, "modified")
    assert "demo/core.py: is gone" in run.error["message"]
    assert bench("revert", "double", "--force").status == 0
    assert bench.pristine()


def test_a_lost_patch_is_forgotten(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    bench.install("1.0")
    assert bench("revert", "double").status == 0
    assert bench.pristine()
    assert bench("check").err.startswith("nothing was checked: no patch is applied in ")


def test_a_patch_of_an_upgraded_distribution_is_forgotten(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    newer = {**bench.files, "demo/core.py": CORE.replace("x + x", "x * 2")}
    bench.install("2.0", newer)
    run = bench("revert", "double")
    assert run.status == 0
    assert run.out == "reverted double  (demo 1.0): demo 1.0 is not installed any more: nothing to take back\n"
    assert bench.read("demo/core.py") == str(newer["demo/core.py"]).encode()


def test_a_patch_of_an_uninstalled_distribution_is_forgotten(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    bench.uninstall()
    run = bench("revert", "double")
    assert run == (0, "reverted double  (demo 1.0): its distribution is gone: nothing to take back\n", "")
    assert not (bench.site / "demo").exists()
    assert bench("check").err.startswith("nothing was checked: no patch is applied in ")


def test_what_an_uninstalled_distribution_left_is_removed_and_named(bench: Bench) -> None:
    bench.patch("adds", DOUBLE + '[[add]]\nfile = "demo/extra.py"\ncontent = "E = 1\\n"\n')
    bench("apply", "adds")
    extra = bench.read("demo/extra.py")
    bench.uninstall()
    (bench.site / "demo").mkdir()
    (bench.site / "demo/extra.py").write_bytes(extra)
    run = bench("revert", "adds")
    what = "reverted adds  (demo 1.0): its distribution is gone; removed what the patch had added\n"
    assert run == (0, what + "  demo/extra.py  (removed)\n", "")
    assert not (bench.site / "demo/extra.py").exists()


def test_revert_and_apply_again_give_the_same_bytes(bench: Bench) -> None:
    bench.patch("both", DOUBLE + UTIL_X)
    for _ in range(3):
        bench("apply", "both")
        assert bench.read("demo/core.py") == DOUBLED.encode()
        assert bench.read("demo/util.py") == UTIL.replace("X = 1\r\n", "X = 10\r\nW = 0\r\n").encode()
        bench("revert", "both")
        assert bench.pristine()


@pytest.mark.parametrize("now", ["600", "160", "60  # slow"])
def test_an_edit_that_touches_what_we_wrote_is_inside(make_bench: Callable[..., Bench], now: str) -> None:
    bench = make_bench({"demo/core.py": "timeout = 30\n"})
    bench.patch("p", '[[edit]]\nfile = "demo/core.py"\nfind = "30"\nreplace = "60"\n')
    assert bench("apply", "p").status == 0
    bench.write("demo/core.py", f"timeout = {now}\n".encode())
    run = bench.json("revert", "p")
    assert (run.status, run.error["code"]) == (5, "hand-edit-inside")
    assert bench.read("demo/core.py") == f"timeout = {now}\n".encode()


@pytest.mark.parametrize("options", [(), ("--force",)])
def test_what_a_link_out_of_the_site_leads_to_is_neither_shown_nor_copied(
    bench: Bench, tmp_path: Path, options: tuple[str, ...]
) -> None:
    bench.patch("one", '[[edit]]\nfile = "demo/core.py"\nfind = "x + x"\nreplace = "2 * x"\n')
    assert bench("apply", "one").status == 0
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret\n")
    (bench.site / "demo" / "core.py").unlink()
    (bench.site / "demo" / "core.py").symlink_to(secret)
    done = bench("revert", "one", *options)
    assert done.status == 5
    assert "is a link to" in done.err
    assert "the secret" not in done.out + done.err
    assert list((bench.site / ".patchkit").glob("discarded-*")) == []
    assert secret.read_text() == "the secret\n"
