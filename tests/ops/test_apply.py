"""`apply` as a whole command: what it writes, what it says, and that it writes all or nothing."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable

import pytest
from support.bench import CORE, DEMO, UTIL, Bench

DOUBLE = """
[[edit]]
file = "demo/core.py"
find = "y = x + x"
replace = "y = 2 * x"
"""
UTIL_X = """
[[edit]]
file = "demo/util.py"
find = "X = 1\\n"
replace = "X = 10\\nW = 0\\n"
"""
CORE_DOUBLED = CORE.replace("    y = x + x\n", "    y = 2 * x\n").encode()
UTIL_WIDENED = b"X = 10\r\nW = 0\r\nY = 2\r\nZ = 3\r\n"


def sha(data: bytes | str) -> str:
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def test_apply_writes_the_edit_and_says_where(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    run = bench("apply", "double")
    assert (run.status, run.err) == (0, "")
    assert run.out == "applied double  (demo 1.0)\n  demo/core.py:6\n"
    assert bench.read("demo/core.py") == CORE_DOUBLED
    assert bench.read("demo/util.py") == UTIL.encode()


def test_applying_what_is_applied_says_so_and_writes_nothing(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    before = os.stat(bench.site / "demo/core.py")
    ledger = bench.read(".patchkit/ledger.json")
    run = bench("apply", "double")
    assert (run.status, run.out) == (0, "unchanged double  (demo 1.0): applied already\n")
    assert os.stat(bench.site / "demo/core.py") == before
    assert bench.read(".patchkit/ledger.json") == ledger


def test_the_shape_of_the_json(bench: Bench) -> None:
    bench.patch(
        "both",
        """
[[edit]]
file = "demo/core.py"
find = "result"
replace = "outcome"
count = 4
scope = "Worker"

[[add]]
file = "demo/extra.py"
content = "E = 1\\n"
""",
    )
    run = bench.json("apply", "both")
    assert run.status == 0
    document = run.json
    assert document["schema"] == 1
    assert document["command"] == "apply"
    assert document["ok"] is True
    assert document["error"] is None
    [patch] = document["patches"]
    assert (patch["name"], patch["action"]) == ("both", "applied")
    core, extra = patch["files"]
    changed = CORE.replace("result", "outcome")
    assert core["path"] == "demo/core.py"
    assert (core["before_sha256"], core["after_sha256"]) == (sha(CORE), sha(changed))
    [edit] = core["edits"]
    assert edit["index"] == 1
    assert edit["matches"] == [
        {"line": 12, "column": 9, "scope": "Worker.run"},
        {"line": 13, "column": 16, "scope": "Worker.run"},
        {"line": 16, "column": 9, "scope": "Worker.stop"},
        {"line": 17, "column": 16, "scope": "Worker.stop"},
    ]
    assert extra == {
        "path": "demo/extra.py",
        "before_sha256": None,
        "after_sha256": sha("E = 1\n"),
        "edits": [],
    }
    assert bench.read("demo/core.py") == changed.encode()
    assert bench.read("demo/extra.py") == b"E = 1\n"
    # The plain-text form goes to stderr then.
    assert run.err.startswith("applied both  (demo 1.0)\n  demo/core.py:12,13,16,17\n  demo/extra.py  (new file)\n")


def test_the_json_of_an_unchanged_patch(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    [patch] = bench.json("apply", "double").json["patches"]
    held = sha(bench.read("demo/core.py"))
    assert (patch["name"], patch["action"], patch["files"]) == (
        "double",
        "unchanged",
        [{"path": "demo/core.py", "before_sha256": held, "after_sha256": held, "edits": []}],
    )
    assert bench("apply", "double").out == "unchanged double  (demo 1.0): applied already\n"


def test_the_files_of_a_large_patch_are_cut_short_in_text_alone(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench({f"demo/m{number:02}.py": "x = 1\n" for number in range(23)})
    names = ", ".join(f'"demo/m{number:02}.py"' for number in range(23))
    bench.patch("many", f'[[edit]]\nfile = [{names}]\nfind = "x = 1"\nreplace = "x = 2"\n')
    lines = bench("apply", "many", "--dry-run").out.splitlines()
    assert (len(lines), lines[20], lines[21]) == (22, "  demo/m19.py:1", "  and 3 more files")
    assert len(bench.json("apply", "many").json["patches"][0]["files"]) == 23
    bench.write("demo/m22.py", b"mine")
    lines = [line for line in bench("check").out.splitlines() if line.startswith("      ")]
    assert (len(lines), lines[-1]) == (21, "      and 3 more files")
    assert len(bench.json("check").json["patches"][0]["files"]) == 23


@pytest.mark.parametrize("name", ["core.abi3.so", "core.cpython-312-x86_64-linux-gnu.so", "core.pyd"])
def test_a_compiled_module_in_front_of_the_source_is_noted(make_bench: Callable[..., Bench], name: str) -> None:
    bench = make_bench({**DEMO, f"demo/{name}": b"\x7fELF"})
    bench.patch("double", DOUBLE)
    note = f"demo/core.py: imports take demo/{name} instead, so that this edit has no effect on them"
    assert bench.json("apply", "double", "--dry-run").json["notes"] == [note]
    run = bench("apply", "double")
    assert (run.status, run.err) == (0, note + "\n")
    bench.install("1.0")
    assert bench("sync").err == note + "\n"


def test_a_compiled_module_beside_other_sources_is_no_matter(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench({**DEMO, "demo/fast.abi3.so": b"\x7fELF"})
    bench.patch("double", DOUBLE)
    assert bench("apply", "double").err == ""


def test_a_dry_run_plans_and_writes_nothing(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    run = bench("apply", "double", "--dry-run")
    assert (run.status, run.out) == (0, "would apply double  (demo 1.0)\n  demo/core.py:6\n")
    assert bench.pristine()
    assert not (bench.site / ".patchkit").exists()
    document = bench.json("apply", "double", "--dry-run").json
    assert document["dry_run"] is True
    assert document["patches"][0]["files"][0]["after_sha256"] == sha(CORE_DOUBLED)


def test_a_dry_run_refuses_what_apply_refuses(bench: Bench) -> None:
    bench.patch("double", DOUBLE.replace("x + x", "x + z"))
    assert bench("apply", "double", "--dry-run").status == 4


def test_diff_shows_what_is_written(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench.patch("widen", UTIL_X)
    run = bench("apply", "double", "widen", "--diff")
    assert run.out == (
        "applied double  (demo 1.0)\n"
        "  demo/core.py:6\n"
        "applied widen  (demo 1.0)\n"
        "  demo/util.py:1\n"
        "\n"
        "--- a/demo/core.py\n"
        "+++ b/demo/core.py\n"
        "@@ -3,7 +3,7 @@\n"
        " \n"
        " \n"
        " def double(x):\n"
        "-    y = x + x\n"
        "+    y = 2 * x\n"
        "     return y\n"
        " \n"
        " \n"
        "--- a/demo/util.py\n"
        "+++ b/demo/util.py\n"
        "@@ -1,3 +1,4 @@\n"
        "-X = 1\r\n"
        "+X = 10\r\n"
        "+W = 0\r\n"
        " Y = 2\r\n"
        " Z = 3\r\n"
    )
    assert bench.read("demo/util.py") == UTIL_WIDENED


def test_the_diff_is_in_the_json_as_well(bench: Bench) -> None:
    bench.patch("widen", UTIL_X)
    run = bench.json("apply", "widen", "--diff", "--dry-run")
    assert run.json["diff"].startswith("--- a/demo/util.py\n+++ b/demo/util.py\n@@ -1,3 +1,4 @@\n-X = 1\r\n")
    assert bench.json("apply", "widen", "--dry-run").json["diff"] is None


def test_several_patches_are_applied_in_one_call(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench.patch("widen", UTIL_X)
    run = bench("apply", "double", "widen")
    assert run.status == 0
    assert bench.read("demo/core.py") == CORE_DOUBLED
    assert bench.read("demo/util.py") == UTIL_WIDENED
    log = bench.json("log").json["events"]
    assert [(event["command"], event["patches"], event["files"]) for event in log] == [
        ("apply", ["double", "widen"], 2)
    ]


def test_a_name_twice_is_one_patch(bench: Bench) -> None:
    path = bench.patch("double", DOUBLE)
    run = bench("apply", "double", "double", str(path))
    assert (run.status, run.out) == (0, "applied double  (demo 1.0)\n  demo/core.py:6\n")


@pytest.mark.parametrize("order", [("double", "wrong"), ("wrong", "double")])
def test_one_failing_of_several_leaves_every_byte(bench: Bench, order: tuple[str, str]) -> None:
    bench.patch("double", DOUBLE)
    bench.patch("wrong", UTIL_X.replace("X = 1", "Q = 1"))
    stats = {path: os.stat(bench.site / path) for path in bench.files}
    run = bench("apply", *order)
    assert run.status == 4
    assert bench.pristine()
    assert {path: os.stat(bench.site / path) for path in bench.files} == stats
    assert bench("check").status == 0
    assert not (bench.site / ".patchkit" / "ledger.json").exists()


def test_one_edit_of_several_failing_leaves_every_byte(bench: Bench) -> None:
    bench.patch("mixed", DOUBLE + UTIL_X.replace("X = 1", "Q = 1"))
    assert bench("apply", "mixed").status == 4
    assert bench.pristine()


def test_a_patch_by_its_path(bench: Bench) -> None:
    path = bench.patch("double", DOUBLE)
    elsewhere = bench.root / "elsewhere"
    elsewhere.mkdir()
    moved = path.rename(elsewhere / "double.toml")
    assert bench("apply", "double").status == 2
    assert bench("apply", str(moved)).status == 0
    assert bench.read("demo/core.py") == CORE_DOUBLED
    assert bench("apply", str(moved)).out == "unchanged double  (demo 1.0): applied already\n"
    assert bench("check").status == 0


def test_two_files_that_bear_one_name_are_refused(bench: Bench) -> None:
    path = bench.patch("double", DOUBLE)
    other = bench.root / "other" / "double.toml"
    other.parent.mkdir()
    other.write_text(path.read_text().replace("2 * x", "x * 2"))
    run = bench.json("apply", "double", str(other))
    assert (run.status, run.error["code"]) == (2, "same-name")
    assert run.error["hint"] == "rename one of them (the file and its `name`)"
    assert bench.pristine()


def test_a_changed_patch_file_is_put_in_anew(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    bench.patch("double", DOUBLE.replace("2 * x", "x * 2"))
    run = bench("apply", "double")
    assert (run.status, run.out) == (0, "applied double  (demo 1.0)\n  demo/core.py:6\n")
    assert bench.read("demo/core.py") == CORE.replace("x + x", "x * 2").encode()
    assert bench("revert", "double").status == 0
    assert bench.pristine()


def test_a_changed_patch_that_no_longer_touches_a_file_takes_it_back(bench: Bench) -> None:
    mtime = os.stat(bench.site / "demo/core.py").st_mtime_ns
    bench.patch("moving", DOUBLE + UTIL_X + '[[add]]\nfile = "demo/extra.py"\ncontent = "E = 1\\n"\n')
    bench("apply", "moving")
    bench.patch("moving", UTIL_X)
    run = bench("apply", "moving", "--diff")
    assert run.status == 0
    assert bench.read("demo/core.py") == CORE.encode()
    assert os.stat(bench.site / "demo/core.py").st_mtime_ns == mtime
    assert not (bench.site / "demo/extra.py").exists()
    assert bench.read("demo/util.py") == UTIL_WIDENED
    [state] = bench.json("check").json["patches"]
    assert (state["state"], state["files"]) == ("applied", [{"path": "demo/util.py", "state": "applied"}])


def test_a_changed_patch_that_does_not_fit_leaves_the_old_one(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    bench.patch("double", DOUBLE.replace("x + x", "x - x"))
    assert bench("apply", "double").status == 4
    assert bench.read("demo/core.py") == CORE_DOUBLED


def test_mode_and_hard_links_are_respected(bench: Bench) -> None:
    core = bench.site / "demo/core.py"
    os.chmod(core, 0o640)
    link = bench.root / "cache.py"
    os.link(core, link)
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    assert stat.S_IMODE(os.stat(core).st_mode) == 0o640
    assert link.read_bytes() == CORE.encode()  # the package cache does not see the edit


def test_record_is_left_alone(bench: Bench) -> None:
    record = bench.read("demo-1.0.dist-info/RECORD")
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    assert bench.read("demo-1.0.dist-info/RECORD") == record


def test_stale_bytecode_goes(bench: Bench) -> None:
    import py_compile

    cached = py_compile.compile(
        str(bench.site / "demo/core.py"), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
    )
    assert cached is not None
    assert os.path.exists(cached)
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    assert not os.path.exists(cached)


def test_an_optional_target_that_is_not_installed_is_skipped(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench.patch("elsewhere", DOUBLE, requirement="nowhere>=1", target="optional = true")
    run = bench("apply", "elsewhere", "double")
    assert (run.status, run.out) == (
        0,
        "skipped elsewhere: its target is not installed\napplied double  (demo 1.0)\n  demo/core.py:6\n",
    )
    assert [p["action"] for p in bench.json("apply", "elsewhere").json["patches"]] == ["skipped"]


def test_an_optional_target_of_another_version_is_refused(bench: Bench) -> None:
    bench.patch("later", DOUBLE, requirement="demo>=2", target="optional = true")
    assert bench("apply", "later").status == 3


def test_an_upstreamed_patch_writes_nothing_and_exits_0(bench: Bench) -> None:
    body = DOUBLE + '[[upstreamed]]\nversions = ">=1.0"\n'
    bench.patch("double", body, requirement="demo<1.0")  # a release that has it is past the patch's own range
    run = bench("apply", "double")
    assert (run.status, run.out) == (0, "upstreamed double  (demo 1.0): demo 1.0 has the change (>=1.0)\n")
    assert bench.pristine()
    [patch] = bench.json("apply", "double").json["patches"]
    assert (patch["action"], patch["files"]) == ("upstreamed", [])


def test_upstreamed_by_what_stands_in_a_file(bench: Bench) -> None:
    bench.patch("double", DOUBLE + '[[upstreamed]]\nfile = "demo/util.py"\nfind = "Z = 3\\n"\n')
    run = bench("apply", "double")
    assert run.out == "upstreamed double  (demo 1.0): demo 1.0 has the change already (in demo/util.py)\n"
    assert bench.pristine()


def test_upstreamed_is_judged_by_the_release_not_by_other_patches(bench: Bench) -> None:
    bench.patch("first", UTIL_X)
    bench.patch("double", DOUBLE + '[[upstreamed]]\nfile = "demo/util.py"\nfind = "W = 0\\n"\n')
    run = bench("apply", "first", "double")
    assert run.status == 0
    assert bench.read("demo/core.py") == CORE_DOUBLED
    bench("revert", "--all")
    bench("apply", "first")
    assert bench("apply", "double").status == 0
    assert bench.read("demo/core.py") == CORE_DOUBLED


def test_an_applied_patch_that_the_release_has_is_taken_out(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    bench.patch("double", DOUBLE + '[[upstreamed]]\nversions = ">=1.0"\n')
    assert bench("apply", "double").status == 0
    assert bench.pristine()
    assert bench("check").out == "double  upstreamed  demo 1.0\n    demo 1.0 has the change: drop the patch\n"
    assert bench("revert", "double").status == 0
    assert bench("check").err.startswith("nothing was checked: no patch is applied in ")


def test_known_bad_needs_a_word(bench: Bench) -> None:
    path = bench.patch("worse", DOUBLE)
    path.write_text(path.read_text().replace("[target]", 'tags = ["known-bad"]\n[target]'))
    run = bench("apply", "worse")
    assert run.status == 3
    assert run.err == (
        "error: worse: is marked known-bad: the patch worse\n"
        "hint: `patchkit show worse` says why; --allow-known-bad applies it all the same\n"
    )
    assert bench.pristine()
    assert bench("apply", "worse", "--allow-known-bad").status == 0
    assert bench.read("demo/core.py") == CORE_DOUBLED
    assert bench("apply", "worse").out == "unchanged worse  (demo 1.0): applied already\n"


def test_a_file_that_was_not_as_released_is_called_by_name(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    tainted = CORE.replace("import os", "import sys").encode()
    bench.write("demo/core.py", tainted)
    run = bench.json("apply", "double")
    assert (run.status, run.error["code"], run.error["path"]) == (5, "modified", "demo/core.py")
    assert f"`pip install --target {bench.site} --upgrade --no-deps --no-cache-dir demo==1.0`" in run.error["hint"]
    assert bench.read("demo/core.py") == tainted


def test_applying_over_a_hand_edit_is_refused(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    edited = CORE_DOUBLED.replace(b"import os", b"import sys")
    bench.write("demo/core.py", edited)
    bench.patch("stop", '[[edit]]\nfile = "demo/core.py"\nfind = "result = None"\nreplace = "result = 0"\n')
    for name in ("double", "stop"):
        run = bench.json("apply", name)
        assert (run.status, run.error["code"]) == (5, "modified")
        assert "patchkit diff" in run.error["hint"]
        assert bench.read("demo/core.py") == edited


def test_another_patch_is_applied_beside_a_hand_edited_file(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    edited = CORE_DOUBLED.replace(b"import os", b"import sys")
    bench.write("demo/core.py", edited)
    bench.patch("widen", UTIL_X)
    assert bench("apply", "widen").status == 0
    assert bench.read("demo/core.py") == edited
    assert [p["state"] for p in bench.json("check").json["patches"]] == ["modified", "applied"]


def test_a_reinstalled_patch_is_applied_again(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    bench.install("1.0")
    assert bench("apply", "double").out == "applied double  (demo 1.0)\n  demo/core.py:6\n"
    assert bench.read("demo/core.py") == CORE_DOUBLED


def test_a_patch_is_applied_to_an_upgrade(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    newer = CORE.replace("A module", "A newer module")
    bench.install("2.0", {**bench.files, "demo/core.py": newer})
    assert bench("apply", "double").out == "applied double  (demo 2.0)\n  demo/core.py:6\n"
    assert bench.read("demo/core.py") == newer.replace("x + x", "2 * x").encode()
    assert bench("revert", "double").status == 0
    assert bench.read("demo/core.py") == newer.encode()


def test_patches_of_the_project_and_of_the_working_directory(bench: Bench) -> None:
    bench.project("double")
    work = bench.root / "work"
    (work / "patches").mkdir()
    path = bench.patch("widen", UTIL_X)
    path.rename(work / "patches" / "widen.toml")
    bench.patch("double", DOUBLE)
    from patchkit.cli.main import main

    assert main(["--site", str(bench.site), "apply", "double", "widen"]) == 0  # without --patches
    assert bench.read("demo/core.py") == CORE_DOUBLED
    assert bench.read("demo/util.py") == UTIL_WIDENED


def test_the_first_folder_wins(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    first = bench.root / "first"
    first.mkdir()
    (first / "double.toml").write_text((bench.patches / "double.toml").read_text().replace("2 * x", "x * 2"))
    from patchkit.cli.main import main

    options = ["--site", str(bench.site), "--patches", str(first)]
    assert main([*options, "apply", "double", "--patches", str(bench.patches)]) == 0
    assert bench.read("demo/core.py") == CORE.replace("x + x", "x * 2").encode()
