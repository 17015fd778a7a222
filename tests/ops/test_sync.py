"""`sync`: the site as the project's list says, all or nothing."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

from support.bench import CORE, UTIL, Bench

if TYPE_CHECKING:
    from patchkit.site.environment import Site

DOUBLE = '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'
UTIL_X = '[[edit]]\nfile = "demo/util.py"\nfind = "X = 1\\n"\nreplace = "X = 10\\n"\n'
DOUBLED = CORE.replace("x + x", "2 * x").encode()
WIDER = UTIL.replace("X = 1\r\n", "X = 10\r\n").encode()


def actions(bench: Bench, *options: str) -> list[tuple[str, str]]:
    run = bench.json("sync", *options)
    assert run.status == 0, run.err
    assert run.json["command"] == "sync"
    return [(patch["name"], patch["action"]) for patch in run.json["patches"]]


def two(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench.patch("util", UTIL_X)


def test_what_is_missing_is_applied(bench: Bench) -> None:
    two(bench)
    bench.project("double", "util")
    run = bench("sync")
    assert run.status == 0
    assert run.out == (
        "applied double  (demo 1.0): was absent\n"
        "  demo/core.py:6\n"
        "applied util  (demo 1.0): was absent\n"
        "  demo/util.py:1\n"
    )
    assert bench.read("demo/core.py") == DOUBLED
    assert bench.read("demo/util.py") == WIDER
    assert bench("check").status == 0
    assert actions(bench) == [("double", "unchanged"), ("util", "unchanged")]


def test_what_is_not_wanted_is_reverted(bench: Bench) -> None:
    two(bench)
    bench("apply", "double", "util")
    bench.project("util")
    assert actions(bench) == [("util", "unchanged"), ("double", "reverted")]
    assert bench.read("demo/core.py") == CORE.encode()
    assert bench.read("demo/util.py") == WIDER


def test_an_empty_list_wants_nothing(bench: Bench) -> None:
    two(bench)
    bench("apply", "double", "util")
    bench.project()
    assert actions(bench) == [("double", "reverted"), ("util", "reverted")]
    assert bench.pristine()


def test_no_list_is_not_an_empty_list(bench: Bench) -> None:
    """A project that only names its folder of patches wants what the ledger holds."""
    two(bench)
    bench("apply", "double")
    text = f'[tool.patchkit]\npatches = "{bench.patches.as_posix()}"\n'
    (bench.root / "work" / "pyproject.toml").write_text(text)
    assert actions(bench) == [("double", "unchanged")]
    assert bench.read("demo/core.py") == DOUBLED
    bench.install("1.0")
    assert actions(bench) == [("double", "applied")]
    assert bench.read("demo/core.py") == DOUBLED


def test_without_a_project_the_ledger_is_the_list(bench: Bench) -> None:
    two(bench)
    bench("apply", "double", "util")
    bench.install("1.0")
    assert bench.pristine()
    assert actions(bench) == [("double", "applied"), ("util", "applied")]
    assert bench.read("demo/core.py") == DOUBLED


def test_nothing_to_do(bench: Bench) -> None:
    run = bench("sync")
    assert (run.status, run.out) == (0, "nothing to do: no patch is wanted and none is applied\n")


def test_an_upgrade_is_healed(bench: Bench) -> None:
    two(bench)
    bench("apply", "double")
    newer = CORE.replace("A module", "The module")
    bench.install("2.0", {**bench.files, "demo/core.py": newer})
    assert actions(bench) == [("double", "applied")]
    assert bench.read("demo/core.py") == newer.replace("x + x", "2 * x").encode()
    [found] = bench.json("check").json["patches"]
    assert (found["state"], found["applied_version"]) == ("applied", "2.0")


def test_a_half_lost_patch_is_healed(bench: Bench) -> None:
    bench.patch("both", DOUBLE + UTIL_X)
    bench("apply", "both")
    bench.write("demo/core.py", CORE.encode())
    assert actions(bench) == [("both", "applied")]
    assert bench.read("demo/core.py") == DOUBLED
    assert bench.read("demo/util.py") == WIDER


def test_an_edited_patch_file_is_put_in_anew(bench: Bench) -> None:
    two(bench)
    bench("apply", "double")
    bench.patch("double", DOUBLE.replace("2 * x", "x * 2"))
    assert actions(bench) == [("double", "applied")]
    assert bench.read("demo/core.py") == CORE.replace("x + x", "x * 2").encode()


def test_the_ledgers_copy_serves_where_the_file_is_gone(bench: Bench) -> None:
    two(bench)
    bench("apply", "double")
    (bench.patches / "double.toml").unlink()
    bench.install("1.0")
    assert actions(bench) == [("double", "applied")]
    assert bench.read("demo/core.py") == DOUBLED


def test_an_upstreamed_patch_is_dropped(bench: Bench) -> None:
    bench.patch("double", DOUBLE + '[[upstreamed]]\nfile = "demo/core.py"\nfind = "y = 2 * x"\n')
    bench.project("double")
    bench("apply", "double")
    newer = {**bench.files, "demo/core.py": CORE.replace("x + x", "2 * x")}
    bench.install("2.0", newer)
    assert actions(bench) == [("double", "upstreamed")]
    assert bench.read("demo/core.py") == DOUBLED
    assert bench("check").status == 0
    assert actions(bench) == [("double", "upstreamed")]
    import patchkit

    patchkit.require("double", site=str(bench.site))  # the release satisfies it


def test_a_hand_edit_is_refused_and_nothing_is_written(bench: Bench) -> None:
    two(bench)
    bench("apply", "double")
    edited = DOUBLED.replace(b"import os", b"import sys")
    bench.write("demo/core.py", edited)
    bench.project("double", "util")
    run = bench.json("sync")
    assert (run.status, run.error["code"], run.error["patches"]) == (5, "modified", ["double"])
    assert run.error["hint"] == (
        "to discard the hand edits: `patchkit revert --force double`, where some are left (those outside of what "
        f"patchkit wrote) `pip install --target {bench.site} --upgrade --no-deps --no-cache-dir demo==1.0`, then "
        "`patchkit sync`; to keep them, put them into the patch file first"
    )
    assert bench.read("demo/core.py") == edited
    assert bench.read("demo/util.py") == UTIL.encode()


def test_a_refused_patch_is_an_error(bench: Bench) -> None:
    two(bench)
    bench.patch("later", DOUBLE, requirement="demo>=2")
    bench.project("util", "later")
    run = bench.json("sync")
    assert (run.status, run.error["code"]) == (3, "version")
    assert bench.pristine()


def test_a_patch_that_does_not_fit_is_an_error(bench: Bench) -> None:
    two(bench)
    bench.patch("wrong", DOUBLE.replace("x + x", "x + z"))
    bench.project("util", "wrong")
    assert bench("sync").status == 4
    assert bench.pristine()


def test_a_target_that_is_not_installed(bench: Bench) -> None:
    two(bench)
    bench.patch("other", DOUBLE, requirement="other")
    bench.project("util", "other")
    assert bench.json("sync").error["code"] == "not-installed"
    assert bench.pristine()
    bench.patch("other", DOUBLE, requirement="other", target="optional = true")
    assert actions(bench) == [("util", "applied"), ("other", "skipped")]
    assert bench.read("demo/util.py") == WIDER


def test_an_unknown_name_on_the_list(bench: Bench) -> None:
    two(bench)
    bench.project("dubble")
    run = bench.json("sync")
    assert (run.status, run.error["suggestion"]) == (2, "double")


def test_one_patch_makes_room_for_one_that_conflicts_with_it(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench.patch("triple", DOUBLE.replace("2 * x", "3 * x"), target='conflicts = ["double"]')
    bench("apply", "double")
    bench.project("triple")
    assert actions(bench) == [("triple", "applied"), ("double", "reverted")]
    assert bench.read("demo/core.py") == CORE.replace("x + x", "3 * x").encode()
    bench.project("triple", "double")
    assert bench.json("sync").error["code"] == "conflict"


def test_known_bad(bench: Bench) -> None:
    path = bench.patch("double", DOUBLE)
    path.write_text(path.read_text().replace("[target]", 'tags = ["known-bad"]\n[target]'))
    bench.project("double")
    assert bench.json("sync").error["code"] == "known-bad"
    assert actions(bench, "--allow-known-bad") == [("double", "applied")]
    assert actions(bench) == [("double", "unchanged")]


def test_a_dry_run(bench: Bench) -> None:
    two(bench)
    bench("apply", "util")
    bench.project("double")
    run = bench("sync", "--dry-run", "--diff")
    assert run.status == 0
    assert run.out.startswith("would apply double")
    assert "would revert util" in run.out
    assert "+    y = 2 * x\n" in run.out
    assert bench.read("demo/core.py") == CORE.encode()
    assert bench.read("demo/util.py") == WIDER


def test_the_order_of_after_is_kept(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    upon = '[[edit]]\nfile = "demo/core.py"\nfind = "y = 2 * x"\nreplace = "y = 2 * x + 0"\n'
    bench.patch("upon", upon, target='after = ["double"]')
    bench.project("upon", "double")
    assert actions(bench) == [("upon", "applied"), ("double", "applied")]
    assert bench.read("demo/core.py") == CORE.replace("x + x", "2 * x + 0").encode()


def test_the_way_out_of_a_hand_edit_leads_out(bench: Bench) -> None:
    two(bench)
    bench.project("double")
    bench("sync")
    bench.write("demo/core.py", DOUBLED.replace(b"import os", b"import sys").replace(b"2 * x", b"3 * x"))
    assert bench("sync").status == 5
    assert bench("revert", "--force", "double").status == 0
    bench.install("1.0")  # as pip would
    assert bench("sync").status == 0
    assert bench.read("demo/core.py") == DOUBLED


def test_the_command_that_brings_the_release_back_names_the_sites_interpreter() -> None:
    from patchkit.ops.workspace import reinstall_command

    site = SimpleNamespace(interpreter=SimpleNamespace(executable="/my env/bin/python"), find=lambda name: None)
    assert reinstall_command(cast("Site", site), "demo", "1.0") == (
        "'/my env/bin/python' -m pip install --force-reinstall --no-deps --no-cache-dir demo==1.0"
    )
