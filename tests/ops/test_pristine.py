"""Modes, times and links that the installer left come back; added files that the ledger does not know are adopted."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from support.bench import CORE, DEMO, Bench

DOUBLE = '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'
STOP = '[[edit]]\nfile = "demo/core.py"\nfind = "result = None"\nreplace = "result = 0"\n'
ADD = '[[add]]\nfile = "demo/new/deep/extra.py"\ncontent = "E = 1\\nF = 2\\n"\n'
OLD, NEW = 1_400_000_000_000_000_000, 1_500_000_000_000_000_000


def reinstall(bench: Bench, version: str = "1.0", at: int = NEW) -> None:
    bench.install(version)
    for path in bench.files:
        os.utime(bench.site / path, ns=(at, at))


def states(bench: Bench) -> list[tuple[str, str]]:
    return [(patch["name"], patch["state"]) for patch in bench.json("check").json["patches"]]


def mode(path: Path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


# -- times and modes ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("heal", [("sync",), ("apply", "double")])
def test_the_time_of_the_install_that_is_there(bench: Bench, heal: tuple[str, ...]) -> None:
    reinstall(bench, at=OLD)
    os.chmod(bench.site / "demo/core.py", 0o640)
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    reinstall(bench)
    os.chmod(bench.site / "demo/core.py", 0o604)
    assert bench(*heal).status == 0
    assert bench("revert", "double").status == 0
    assert os.stat(bench.site / "demo/core.py").st_mtime_ns == NEW
    assert mode(bench.site / "demo/core.py") == 0o604


def test_the_time_of_the_first_install_through_a_stack(bench: Bench) -> None:
    reinstall(bench, at=OLD)
    bench.patch("double", DOUBLE)
    bench.patch("stop", STOP)
    bench("apply", "double")
    bench("apply", "stop")
    bench("revert", "double")
    bench("revert", "stop")
    assert os.stat(bench.site / "demo/core.py").st_mtime_ns == OLD


def test_patches_that_cancel_each_other_out(bench: Bench) -> None:
    """The file holds the installer's bytes, but it is patchkit that wrote them."""
    reinstall(bench, at=OLD)
    bench.patch("double", DOUBLE)
    bench.patch("undo", '[[edit]]\nfile = "demo/core.py"\nfind = "y = 2 * x"\nreplace = "y = x + x"\n')
    bench("apply", "double")
    assert bench("apply", "undo").status == 0
    assert bench.pristine()
    bench.patch("stop", STOP)
    assert bench("apply", "stop").status == 0
    assert bench("revert", "--all").status == 0
    assert (bench.pristine(), os.stat(bench.site / "demo/core.py").st_mtime_ns) == (True, OLD)


@pytest.mark.parametrize("options", [(), ("--force",)])
def test_a_mode_changed_by_the_user_stays(bench: Bench, options: tuple[str, ...]) -> None:
    reinstall(bench, at=OLD)
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    os.chmod(bench.site / "demo/core.py", 0o600)
    assert bench("revert", "double", *options).status == 0
    assert bench.pristine()
    assert (mode(bench.site / "demo/core.py"), os.stat(bench.site / "demo/core.py").st_mtime_ns) == (0o600, OLD)


def test_a_mode_changed_by_the_user_stays_through_a_stack(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench.patch("stop", STOP)
    bench("apply", "double")
    os.chmod(bench.site / "demo/core.py", 0o600)
    bench("apply", "stop")
    assert mode(bench.site / "demo/core.py") == 0o600
    bench("revert", "--all")
    assert mode(bench.site / "demo/core.py") == 0o600


def test_a_file_that_is_gone_gets_the_recorded_mode(bench: Bench) -> None:
    os.chmod(bench.site / "demo/core.py", 0o640)
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    (bench.site / "demo/core.py").unlink()
    assert bench("revert", "double", "--force").status == 0
    assert mode(bench.site / "demo/core.py") == 0o640


# -- links into the installer's cache ----------------------------------------------------------------------------------


def linked(bench: Bench, *, relative: bool = False) -> Path:
    """As ``uv --link-mode symlink`` leaves core.py; returns the file in the cache."""
    cached = bench.root / "uv-cache" / "core.py"
    cached.parent.mkdir()
    path = bench.site / "demo/core.py"
    path.rename(cached)
    os.utime(cached, ns=(OLD, OLD))
    path.symlink_to(os.path.relpath(cached, path.parent) if relative else cached)
    return cached


@pytest.mark.parametrize("relative", [False, True])
def test_a_link_is_a_link_again(bench: Bench, relative: bool) -> None:
    cached = linked(bench, relative=relative)
    before = (os.readlink(bench.site / "demo/core.py"), os.stat(cached).st_mtime_ns, cached.read_bytes())
    bench.patch("double", DOUBLE)
    bench.patch("stop", STOP)
    bench("apply", "double")
    assert bench("apply", "stop").status == 0
    assert not (bench.site / "demo/core.py").is_symlink()
    bench("revert", "double")
    assert not (bench.site / "demo/core.py").is_symlink()
    assert bench("revert", "stop").status == 0
    assert (os.readlink(bench.site / "demo/core.py"), os.stat(cached).st_mtime_ns, cached.read_bytes()) == before


@pytest.mark.parametrize("damage", ["gone", "other"])
def test_a_link_whose_target_is_not_pristine_any_more(bench: Bench, damage: str) -> None:
    cached = linked(bench)
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    cached.unlink()
    if damage == "other":
        cached.write_bytes(b"written through\n")
    assert bench("revert", "double").status == 0
    assert not (bench.site / "demo/core.py").is_symlink()
    assert bench.pristine()


def test_a_link_that_a_reinstall_made_a_file(bench: Bench) -> None:
    linked(bench)
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    reinstall(bench)
    assert bench("sync").status == 0
    assert bench("revert", "double").status == 0
    assert not (bench.site / "demo/core.py").is_symlink()
    assert bench.pristine()


def test_hand_edits_are_not_thrown_away_for_a_link(bench: Bench) -> None:
    linked(bench)
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    bench.write("demo/core.py", bench.read("demo/core.py") + b"MINE = 1\n")
    assert bench("revert", "double").status == 0
    assert bench.read("demo/core.py") == CORE.encode() + b"MINE = 1\n"


# -- added files that outlive the ledger -------------------------------------------------------------------------------


def forgotten(bench: Bench) -> None:
    """The file that ``adds`` adds is there, and the ledger is gone."""
    bench.patch("adds", ADD)
    bench("apply", "adds")
    shutil.rmtree(bench.site / ".patchkit")


def test_an_added_file_is_adopted(bench: Bench) -> None:
    forgotten(bench)
    assert bench("apply", "adds").status == 0
    assert states(bench) == [("adds", "applied")]
    assert bench("revert", "adds").status == 0
    assert not (bench.site / "demo/new").exists()


def test_directories_of_the_distribution_are_not_adopted(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench({**DEMO, "demo/new/__init__.py": ""})
    forgotten(bench)
    (bench.site / "demo/new/__init__.py").unlink()
    assert bench("apply", "adds").status == 0
    assert bench("revert", "adds").status == 0
    assert (bench.site / "demo/new").is_dir()
    assert not (bench.site / "demo/new/deep").exists()


def test_other_content_is_not_adopted(bench: Bench) -> None:
    forgotten(bench)
    bench.write("demo/new/deep/extra.py", b"E = 1\nF = 3\n# mine\n")
    run = bench.json("apply", "adds")
    assert (run.status, run.error["code"]) == (5, "exists")
    assert "other content than the patch adds: 19 bytes, 12 to be added" in run.error["message"]
    assert "the first difference is in line 2" in run.error["message"]
    assert f"rm {bench.site}/demo/new/deep/extra.py" in run.error["hint"]
    assert bench.read("demo/new/deep/extra.py") == b"E = 1\nF = 3\n# mine\n"


def test_a_file_of_the_distribution_is_not_adopted(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench({**DEMO, "demo/new/deep/extra.py": "E = 1\nF = 2\n"})
    bench.patch("adds", ADD)
    run = bench.json("apply", "adds")
    assert (run.status, run.error["code"]) == (5, "exists")
    assert "it is a file of demo" in run.error["message"]


def test_a_link_is_not_adopted(bench: Bench) -> None:
    bench.patch("adds", ADD)
    mine = bench.root / "mine.py"
    mine.write_text("E = 1\nF = 2\n")
    (bench.site / "demo/new/deep").mkdir(parents=True)
    (bench.site / "demo/new/deep/extra.py").symlink_to(mine)
    assert bench.json("apply", "adds").error["code"] == "exists"
    assert (bench.site / "demo/new/deep/extra.py").is_symlink()


def test_directories_go_when_their_file_was_removed_by_hand(bench: Bench) -> None:
    bench.patch("adds", ADD)
    bench("apply", "adds")
    (bench.site / "demo/new/deep/extra.py").unlink()
    assert bench("revert", "adds").status == 0
    assert not (bench.site / "demo/new").exists()


def test_directories_stay_when_something_else_is_in_them(bench: Bench) -> None:
    bench.patch("adds", ADD)
    bench("apply", "adds")
    (bench.site / "demo/new/deep/extra.py").unlink()
    (bench.site / "demo/new/mine.txt").write_text("mine")
    assert bench("revert", "adds").status == 0
    assert [path.name for path in (bench.site / "demo/new").iterdir()] == ["mine.txt"]


# -- who may read it ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("home", "file", "folder"), [(0o755, 0o644, 0o755), (0o750, 0o640, 0o750), (0o700, 0o600, 0o700)]
)
def test_a_private_umask(bench: Bench, home: int, file: int, folder: int) -> None:
    os.chmod(bench.site, home)
    os.chmod(bench.site / "demo", 0o755)
    os.chmod(bench.site / "demo/__init__.py", 0o664)
    bench.patch("both", DOUBLE + ADD)
    umask = os.umask(0o077)
    try:
        assert bench("apply", "both").status == 0
    finally:
        os.umask(umask)
    for name in ("ledger.json", "log.jsonl", "lock"):
        assert (name, mode(bench.site / ".patchkit" / name)) == (name, file)
    assert (mode(bench.site / ".patchkit"), mode(bench.site / ".patchkit/blobs")) == (folder, folder)
    assert mode(bench.site / "demo/new/deep/extra.py") == 0o664
    assert (mode(bench.site / "demo/new"), mode(bench.site / "demo/new/deep")) == (0o755, 0o755)
