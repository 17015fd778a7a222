"""What `check` and its like make of files that nobody vouches for, of doubled installs, of releases that went."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ops.drifting import DOUBLE, DOUBLED, NEEDLESS, UTIL_X, state
from support.bench import CORE, Bench
from support.dists import make_dist, make_egg_info

import patchkit
from patchkit.errors import SiteError

TAINT = (
    "demo/core.py is not as installed (RECORD's hash), and patchkit did not write it: "
    "`pip install --target {site} --upgrade --no-deps --no-cache-dir demo==1.0` brings it back; "
    "`patchkit create NAME demo` keeps the edit as a patch; "
    "`patchkit apply p --fetch` finds out whether only the ledger was lost"
)


@pytest.fixture(autouse=True)
def _nothing_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("patchkit.ops.catalog.shipped_folder", lambda: os.path.join(str(tmp_path), "shipped"))


# -- tainted files -----------------------------------------------------------------------------------------------------


def tainted(bench: Bench) -> None:
    bench.patch("p", DOUBLE)
    bench.write("demo/core.py", CORE.replace("import os", "import sys").encode())


def test_a_tainted_file_of_a_wanted_patch(bench: Bench) -> None:
    tainted(bench)
    bench.project("p")
    run = bench.json("check")
    [patch] = run.json["patches"]
    assert (run.status, patch["state"], patch["reason"]) == (1, "modified", TAINT.format(site=bench.site))
    run = bench.json("sync")
    assert (run.status, run.error["code"]) == (5, "modified")


def test_a_tainted_file_of_a_named_patch(bench: Bench) -> None:
    tainted(bench)
    assert state(bench) == (1, "modified", TAINT.format(site=bench.site))


def test_list_calls_it_a_conflict(bench: Bench) -> None:
    tainted(bench)
    bench.patch("q", UTIL_X)
    listed = bench.json("list").json["patches"]
    assert [(p["name"], p["state"], p["reason"]) for p in listed] == [
        ("p", "conflict", TAINT.format(site=bench.site)),
        ("q", "available", None),
    ]
    assert "p  conflict    demo\n" in bench("list").out
    assert "here: conflict (demo/core.py is not as installed" in bench("show", "p").out


def test_a_lost_ledger(bench: Bench) -> None:
    bench.patch("p", DOUBLE)
    bench("apply", "p")
    (bench.site / ".patchkit/ledger.json").unlink()
    assert state(bench) == (
        1,
        "corrupt",
        "the ledger is gone, or does not know it, and every file holds what p writes: `patchkit apply p` records it "
        "again and writes no file",
    )
    assert bench("apply", "p").status == 0
    assert state(bench) == (0, "applied", None)


def test_only_the_files_that_the_patch_edits_count(bench: Bench) -> None:
    tainted(bench)
    bench.patch("q", UTIL_X)
    assert state(bench, "q")[1] == "absent"
    bench.patch("r", UTIL_X + '[[edit]]\nfile = "demo/core.py"\nversions = ">=2"\nfind = "x"\nreplace = "z"\n')
    assert state(bench, "r")[1] == "absent"


def test_what_another_patch_made_of_a_file_is_no_taint(bench: Bench) -> None:
    bench.patch("q", DOUBLE)
    bench("apply", "q")
    bench.patch("p", '[[edit]]\nfile = "demo/core.py"\nfind = "result = None"\nreplace = "result = 0"\n')
    assert state(bench)[1] == "absent"
    bench.write("demo/core.py", DOUBLED + b"# mine\n")
    assert state(bench)[1:] == (
        "modified",
        "demo/core.py was edited since patchkit wrote it for another patch: see `patchkit diff`; "
        f"`pip install --target {bench.site} --upgrade --no-deps --no-cache-dir demo==1.0` "
        "brings the release's bytes back, `patchkit create NAME demo` keeps the edit as a patch",
    )


def test_a_file_that_is_gone(bench: Bench) -> None:
    bench.patch("p", DOUBLE)
    (bench.site / "demo/core.py").unlink()
    status, word, reason = state(bench)
    assert (status, word) == (1, "modified")
    again = f"pip install --target {bench.site} --upgrade --no-deps --no-cache-dir demo==1.0"
    assert reason is not None
    assert reason.startswith(
        f"demo/core.py of demo 1.0 is listed by RECORD but is not there; install it again: `{again}`; where it is not"
    )


def test_without_a_recorded_hash_nothing_is_tainted(bench: Bench) -> None:
    make_dist(bench.site, "bare", "1.0", {"bare.py": "A = 1\n"}, record=False, info_files={"top_level.txt": "bare\n"})
    bench.patch("p", '[[edit]]\nfile = "bare.py"\nfind = "A = 1"\nreplace = "A = 2"\n', requirement="bare")
    assert state(bench)[1] == "absent"


# -- doctor ------------------------------------------------------------------------------------------------------------


def facts(bench: Bench, *options: str) -> tuple[int, list[tuple[str, str, str]]]:
    run = bench.json("doctor", *options)
    return run.status, [(fact["level"], fact["subject"], fact["text"]) for fact in run.json["facts"]]


def test_doctor_names_tainted_files_of_what_the_patches_target(bench: Bench) -> None:
    tainted(bench)
    make_dist(bench.site, "other", "1.0", {"other.py": "A = 1\n"})
    (bench.site / "other.py").write_text("A = 2\n")
    what = "not as installed (RECORD's hash), and patchkit did not write it"
    status, found = facts(bench)
    assert status == 1
    assert ("problem", "demo", f"demo/core.py: {what}") in found
    assert ("ok", "RECORD", "1 compared (those that the project's patches target)") in found
    assert not [fact for fact in found if fact[1] == "other"]
    status, found = facts(bench, "--deep")
    assert status == 1
    assert ("problem", "other", f"other.py: {what}") in found
    assert ("ok", "RECORD", "2 compared (every distribution)") in found


def test_doctor_deep_of_a_patched_site_is_content(bench: Bench) -> None:
    bench.patch("p", DOUBLE + UTIL_X)
    bench("apply", "p")
    assert facts(bench, "--deep")[0] == 0
    bench.write("demo/util.py", b"mine\n")
    status, found = facts(bench, "--deep")
    assert (status, [fact[2].partition(":")[0] for fact in found if fact[0] == "problem"]) == (1, ["demo/util.py"])


def test_a_stripped_library_is_a_note(bench: Bench) -> None:
    """Debian strips the libraries of the wheels that it builds, and ships their RECORD as it was."""
    make_dist(bench.site, "lib", "1.0", {"lib.abi3.so": b"long", "lib.py": ""})
    (bench.site / "lib.abi3.so").write_bytes(b"short")
    status, found = facts(bench, "--deep")
    assert (status, [level for level, _, text in found if text.startswith("lib.abi3.so: ")]) == (0, ["note"])


def test_doctor_names_twenty_files(bench: Bench) -> None:
    files = {f"lib/m{number:02}.py": "x = 1\n" for number in range(23)}
    make_dist(bench.site, "lib", "1.0", files)
    for path in files:
        (bench.site / path).write_text("x = 2\n")
    status, found = facts(bench, "--deep")
    texts = [text for level, subject, text in found if (level, subject) == ("problem", "lib")]
    assert (status, len(texts), texts[-1]) == (1, 21, "and 3 more files")


def test_doctor_says_how_far_it_is_when_it_takes_long(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(0, 100_000, 3))
    monkeypatch.setattr("time.monotonic", lambda: float(next(clock)))
    assert "comparing with RECORD: demo (1 of 1)\n" in bench("doctor", "--deep").err


def test_an_egg_info_beside_the_dist_info_of_the_same_release_is_one_installation(bench: Bench) -> None:
    """Debian ships both."""
    make_egg_info(bench.site, "demo", "1.0", {})
    status, found = facts(bench)
    assert (status, [fact for fact in found if fact[1] == "demo"]) == (0, [])
    assert ("ok", "distributions", "1") in found


def test_doctor_tells_of_a_ledger_that_lost_its_copies(bench: Bench) -> None:
    bench.patch("p", DOUBLE)
    bench("apply", "p")
    for path in (bench.site / ".patchkit/blobs").iterdir():
        path.unlink()
    status, found = facts(bench)
    assert status == 1
    [text] = [text for level, subject, text in found if (level, subject) == ("problem", "ledger")]
    assert text.startswith("p: has lost ")
    assert "the original of demo/core.py" in text
    assert state(bench)[:2] == (1, "corrupt")


# -- two installs of one name ------------------------------------------------------------------------------------------


def test_two_versions_in_one_folder(bench: Bench) -> None:
    bench.patch("p", DOUBLE)
    bench("apply", "p")
    make_dist(bench.site, "demo", "2.0", {})
    status, word, reason = state(bench)
    assert (status, word) == (1, "stale")
    assert reason is not None
    assert reason.startswith(f"duplicate: {bench.site} holds 2 installations of demo: demo-1.0.dist-info and demo-2.0")
    assert bench.json("apply", "p").error["code"] == "duplicate"


def test_two_versions_neither_of_which_was_patched(bench: Bench) -> None:
    bench.patch("p", DOUBLE)
    bench("apply", "p")
    bench.install("2.0")
    make_dist(bench.site, "demo", "3.0", {})
    status, word, reason = state(bench)
    assert (status, word, str(reason).partition(":")[0]) == (1, "stale", "duplicate")


@pytest.mark.parametrize("leftover", ["demo-1.0-py3.11.egg-info", "~emo-0.9.dist-info", "demo-0.9.dist-info"])
def test_what_is_no_second_installation(bench: Bench, leftover: str) -> None:
    """The same release once more, and what an interrupted removal left."""
    bench.patch("p", DOUBLE)
    bench("apply", "p")
    if leftover.endswith(".egg-info"):
        make_egg_info(bench.site, "demo", "1.0", {})
    else:
        (bench.site / leftover).mkdir()
    assert state(bench) == (0, "applied", None)


# -- a release that had the change -------------------------------------------------------------------------------------


def needless(bench: Bench) -> None:
    """A patch applied to 1.0, found needless with 2.0."""
    bench.patch("p", NEEDLESS)
    assert bench("apply", "p").status == 0
    bench.install("2.0")
    assert bench("sync").status == 0
    assert state(bench) == (0, "upstreamed", "demo 2.0 has the change: drop the patch")
    assert bench.json("sync").json["patches"][0]["action"] == "upstreamed"


def test_a_downgrade_is_noticed_and_healed(bench: Bench) -> None:
    needless(bench)
    bench.install("1.0")
    run = bench("check")
    assert run.status == 1
    assert " ".join(run.out.split()) == (
        "p absent demo 1.0 the release that had it (demo 2.0) is gone: run `patchkit sync` or `patchkit apply p`"
    )
    with pytest.raises(SiteError):
        patchkit.require("p", site=str(bench.site))
    assert bench.json("sync").json["patches"][0]["action"] == "applied"
    assert bench.read("demo/core.py") == DOUBLED
    assert state(bench) == (0, "applied", None)
    patchkit.require("p", site=str(bench.site))


def test_the_next_release_may_have_it_as_well(bench: Bench) -> None:
    needless(bench)
    bench.install("3.0")
    assert state(bench) == (0, "upstreamed", "demo 3.0 has the change (>=2): drop the patch")
    assert bench("sync").status == 0
    patchkit.require("p", site=str(bench.site))


def test_a_downgrade_without_the_patch_file(bench: Bench) -> None:
    needless(bench)
    (bench.patches / "p.toml").unlink()
    assert bench("check").status == 0
    assert bench("sync").status == 0
    bench.install("1.0")
    status, word, reason = state(bench)
    assert (status, word) == (1, "absent")
    assert reason == (
        "the release that had it (demo 2.0) is gone, and p.toml is in none of the folders looked in: name its folder "
        "with --patches, or forget it with `patchkit revert p`"
    )
    run = bench.json("sync")
    assert (run.status, run.error["code"]) == (2, "unknown-patch")
    assert "p.toml" in run.error["message"]
    assert bench.pristine()


def test_a_needless_patch_is_forgotten_by_revert(bench: Bench) -> None:
    needless(bench)
    run = bench("revert", "p")
    assert (run.status, run.out) == (
        0,
        "reverted p  (demo 2.0): forgotten: the release had the change, nothing to take back\n",
    )
    assert bench("check").err.startswith("nothing was checked: no patch is applied in ")


def test_an_uninstalled_one(bench: Bench) -> None:
    needless(bench)
    (bench.patches / "p.toml").unlink()
    bench.uninstall()
    assert state(bench) == (1, "uninstalled", "demo is not installed any more: `patchkit revert p` forgets the patch")


def test_a_projects_list_decides(bench: Bench) -> None:
    needless(bench)
    bench.project()
    bench.install("1.0")
    run = bench("check")
    nothing = f"nothing was checked: no patch is applied in {bench.site} and the project's list is empty\n"
    assert run == (0, "", nothing)
    assert bench.json("sync").json["patches"] == []
    bench.project("p")
    assert state(bench)[1:] == ("absent", "wanted, not applied: run `patchkit sync` or `patchkit apply p`")
