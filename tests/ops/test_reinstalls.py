"""Upgrades, downgrades, rebuilt releases and broken installs under applied patches."""

from __future__ import annotations

import pytest
from support.bench import CORE, Bench
from support.dists import make_dist, make_wheel

import patchkit
from patchkit.errors import SiteError

DOUBLE = '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'
STOP = '[[edit]]\nfile = "demo/core.py"\nfind = "result = None"\nreplace = "result = 0"\n'
NEWER = CORE.replace("A module", "A newer module")


def states(bench: Bench) -> list[tuple[str, str]]:
    return [(patch["name"], patch["state"]) for patch in bench.json("check").json["patches"]]


def newer(bench: Bench, version: str = "2.0") -> None:
    bench.install(version, {**bench.files, "demo/core.py": NEWER})


def test_another_build_of_the_same_version(bench: Bench) -> None:
    """A nightly build keeps its version: RECORD tells that the bytes are the installer's."""
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    newer(bench, "1.0")
    assert states(bench) == [("double", "lost")]
    assert bench("sync").status == 0
    assert bench.read("demo/core.py") == NEWER.replace("x + x", "2 * x").encode()
    assert states(bench) == [("double", "applied")]
    assert bench("revert", "double").status == 0
    assert bench.read("demo/core.py") == NEWER.encode()


@pytest.mark.parametrize("options", [(), ("--force",)])
def test_a_patch_lost_to_another_build_is_forgotten(bench: Bench, options: tuple[str, ...]) -> None:
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    newer(bench, "1.0")
    assert bench("revert", "double", *options).status == 0
    assert bench.read("demo/core.py") == NEWER.encode()


def test_two_patches_of_two_versions_on_one_file(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench.patch("stop", STOP)
    bench("apply", "double")
    newer(bench)
    assert bench("apply", "stop").status == 0
    assert bench.read("demo/core.py") == NEWER.replace("result = None", "result = 0").encode()
    assert states(bench) == [("double", "stale"), ("stop", "applied")]
    assert bench("sync").status == 0
    both = NEWER.replace("result = None", "result = 0").replace("x + x", "2 * x")
    assert bench.read("demo/core.py") == both.encode()
    assert states(bench) == [("double", "applied"), ("stop", "applied")]
    assert bench("revert", "--all").status == 0
    assert bench.read("demo/core.py") == NEWER.encode()


@pytest.mark.parametrize("end", ["revert double", "revert double --force", "apply double", "sync"])
@pytest.mark.parametrize("stop_reverted", [False, True])
def test_an_upgrade_taken_back(bench: Bench, end: str, stop_reverted: bool) -> None:
    """What the ledger learnt of the newer release is never written into the older one."""
    bench.patch("double", DOUBLE)
    bench.patch("stop", STOP)
    bench("apply", "double")
    newer(bench)
    bench("apply", "stop")
    if stop_reverted:
        bench("revert", "stop")
    bench.install("1.0")
    assert ("double", "lost") in states(bench)
    with pytest.raises(SiteError):
        patchkit.require("double", site=str(bench.site))
    assert bench(*end.split()).status == 0
    expected = CORE if end.startswith("revert") else CORE.replace("x + x", "2 * x")
    if end == "sync" and not stop_reverted:
        expected = expected.replace("result = None", "result = 0")
    assert bench.read("demo/core.py") == expected.encode()
    bench("revert", "--all")
    assert bench.pristine()


def test_a_distribution_that_is_installed_twice(bench: Bench) -> None:
    make_dist(bench.site, "other", "1.0", {"other.py": "A = 1\n"})
    make_dist(bench.site, "other", "2.0", {"other.py": "A = 1\n"})
    bench.patch("double", DOUBLE)
    bench.patch("twice", '[[edit]]\nfile = "other.py"\nfind = "A = 1"\nreplace = "A = 2"\n', requirement="other")
    run = bench.json("apply", "twice")
    assert (run.status, run.error["code"]) == (5, "duplicate")
    listed = {patch["name"]: patch["state"] for patch in bench.json("list").json["patches"]}
    assert (listed["double"], listed["twice"]) == ("available", "refused")
    bench.project("double", "twice")
    assert states(bench) == [("double", "absent"), ("twice", "refused")]


def test_a_deleted_ledger_and_the_edits_own_inverse(bench: Bench) -> None:
    """The file is ours and nothing says so any more; undone, it is what RECORD says: so it is known for what it is."""
    import shutil

    bench.patch("double", DOUBLE)
    bench("apply", "double")
    shutil.rmtree(bench.site / ".patchkit")
    run = bench("apply", "double")
    assert run.status == 0, run.err
    assert bench.read("demo/core.py") == CORE.replace("x + x", "2 * x").encode()
    assert bench("revert", "double").status == 0
    assert bench.pristine()


def test_the_original_from_the_released_wheel(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = make_wheel(bench.root / "wheels", "demo", "1.0", bench.files)
    asked = []

    def fetch(name: str, version: str, **_: object) -> str:
        asked.append((name, version))
        return str(wheel)

    monkeypatch.setattr("patchkit.site.wheel.fetch_wheel", fetch)
    bench.patch("double", DOUBLE)
    tainted = CORE.replace("import os", "import sys").encode()
    bench.write("demo/core.py", tainted)
    run = bench("apply", "double")
    assert (run.status, asked) == (5, [])
    assert "--fetch compares with the released wheel" in run.err
    run = bench("apply", "double", "--fetch")
    assert asked == [("demo", "1.0")]
    # Whatever is made of it, the hand edit is not overwritten unasked.
    assert run.status == 5
    assert run.err.startswith(
        "error: demo/core.py: differs from demo 1.0 as released, and the ledger does not know the change\n"
        f"hint: to have the release's bytes again: `pip install --target {bench.site} --upgrade --no-deps "
        "--no-cache-dir demo==1.0`, "
    )
    assert bench.read("demo/core.py") == tainted


def test_patches_of_an_installed_package(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entry points of the group ``patchkit.patches`` name a folder; nothing of the package is imported."""
    own = bench.root / "own"
    path = bench.patch("packaged", DOUBLE)
    files: dict[str, str | bytes] = {
        "fixes/__init__.py": "raise RuntimeError('imported')\n",
        "fixes/data/packaged.toml": path.read_text(),
    }
    entries = {"entry_points.txt": "[patchkit.patches]\nfixes = fixes.data\n"}
    make_dist(own, "fixes", "1.0", files, info_files=entries)
    path.unlink()
    monkeypatch.syspath_prepend(str(own))
    assert bench("apply", "packaged").status == 0
    assert bench.read("demo/core.py") == CORE.replace("x + x", "2 * x").encode()
    [listed] = [p for p in bench.json("list").json["patches"] if p["name"] == "packaged"]
    assert (listed["origin"], listed["state"]) == ("package", "applied")


def test_a_wrong_project_file(bench: Bench) -> None:
    (bench.root / "work" / "pyproject.toml").write_text('[tool.patchkit]\naply = ["double"]\n')
    for command in ("check", "sync", "list"):
        run = bench.json(command)
        assert run.status == 2
        assert "pyproject.toml:2" in run.error["message"]
        assert "aply" in run.error["message"]
        assert run.error["hint"]


def test_a_rolled_back_command_is_marked_in_the_log(bench: Bench) -> None:
    from patchkit.state import fs

    bench.patch("double", DOUBLE)

    def hook(operation: str, path: str, when: str) -> None:
        if operation == "replace" and path.endswith("core.py") and when == "before":
            raise OSError(28, "No space left on device", path)

    with fs.observed(hook):
        bench("apply", "double")
    assert "  apply    double  1 file  rolled back  " in bench("log").out


def test_a_damaged_journal(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    (bench.site / ".patchkit" / "journal.json").write_text("{")
    run = bench.json("check")  # nobody can tell what it was about
    assert (run.status, run.error["code"]) == (5, "corrupt")
    run = bench.json("revert", "double")
    assert (run.status, run.error["code"]) == (5, "corrupt")
    assert run.error["hint"]


def test_try_shows_the_whole_life(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    wheels = {version: make_wheel(bench.root / "wheels", "demo", version, bench.files) for version in ("1.0", "2.0")}
    monkeypatch.setattr("patchkit.ops.trial.fetch_wheel", lambda name, version, **_: str(wheels[version]))
    monkeypatch.setattr("patchkit.ops.trial.released_versions", lambda name: ["0.9", "1.0", "2.0"])
    bench.patch("double", DOUBLE, requirement="demo<2", target='requires = ["elsewhere>=3"]')
    run = bench("try", "double")
    assert run.status == 0, run.err
    commands = [line for line in run.out.splitlines() if line.startswith("$ ")]
    assert commands == [
        "$ patchkit show double",
        "$ patchkit apply double --dry-run --diff",
        "$ patchkit apply double",
        "$ patchkit check",
        "$ pip install --force-reinstall",
        "$ patchkit check",
        "$ patchkit sync",
        "$ patchkit revert double",
        "$ compare every file with RECORD",
    ]
    assert "+    y = 2 * x\n" in run.out
    assert run.out.endswith("differ\n")
    last = run.out.splitlines()[-1]
    assert last.startswith("proved: double on demo 1.0 was applied, lost, healed and taken back; ")
    assert last.endswith(" files compared with RECORD, 0 differ")
    document = bench.json("try", "double", "--version", "1.0").json
    assert (document["ok"], document["version"], document["differing"]) == (True, "1.0", [])
    run = bench.json("try", "double", "--version", "2.0")
    assert (run.status, run.error["code"]) == (3, "version")
    assert bench.pristine()
