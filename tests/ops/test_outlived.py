"""Files that outlive the metadata of their install, and copies that outlive their ledger: nothing is forgotten."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from support.bench import CORE, Bench
from support.dists import make_dist

ONE = '[[edit]]\nfile = "demo/core.py"\nfind = "x + x"\nreplace = "2 * x"\n'
TWO = '[[edit]]\nfile = "demo/core.py"\nscope = "Worker.stop"\nfind = "result = None"\nreplace = "result = 0"\n'
OTHER = '[[edit]]\nfile = "other/m.py"\nmatch = "A = 1"\nreplace = "A = 2"\n'


def info(bench: Bench) -> Path:
    return next(bench.site.glob("demo-*.dist-info"))


@pytest.mark.parametrize("how", ["moved", "removed"])
@pytest.mark.parametrize("command", ["revert one", "revert --all", "sync"])
def test_an_installer_that_was_killed_took_the_metadata_alone(bench: Bench, how: str, command: str) -> None:
    """That is, pip renames the folder to "~emo-..." first; the files are as patchkit wrote them, and so taken back."""
    bench.patch("one", ONE)
    assert bench("apply", "one").status == 0
    if how == "moved":
        info(bench).rename(bench.site / "~emo-1.0.dist-info")
    else:
        shutil.rmtree(info(bench))
    bench.project()
    done = bench(*command.split())
    assert done.status == 0, done.err
    assert bench.read("demo/core.py") == CORE.encode()
    if command == "revert one":
        assert "have their original bytes again" in done.out


def test_a_hand_edit_in_such_a_file_is_kept(bench: Bench) -> None:
    bench.patch("one", ONE)
    assert bench("apply", "one").status == 0
    bench.write("demo/core.py", bench.read("demo/core.py") + b"MINE = 1\n")
    shutil.rmtree(info(bench))
    assert bench("revert", "one").status == 0
    assert bench.read("demo/core.py") == CORE.encode() + b"MINE = 1\n"


def test_what_another_release_vouches_for_is_its_own(bench: Bench) -> None:
    """The next release has by itself what the patch wrote."""
    bench.patch("one", ONE)
    assert bench("apply", "one").status == 0
    patched = bench.read("demo/core.py")
    bench.install("1.1", {**bench.files, "demo/core.py": patched})
    assert bench("revert", "one").status == 0
    assert bench.read("demo/core.py") == patched


@pytest.mark.parametrize("gone", ["METADATA", "METADATA and RECORD"])
@pytest.mark.parametrize("command", ["revert one", "revert two"])
def test_metadata_that_are_gone_leave_the_other_patch_as_it_is(bench: Bench, gone: str, command: str) -> None:
    bench.patch("one", ONE)
    bench.patch("two", TWO)
    assert bench("apply", "one", "two").status == 0
    for name in gone.split(" and "):
        (info(bench) / name).unlink()
    before, ledger = bench.read("demo/core.py"), (bench.site / ".patchkit" / "ledger.json").read_bytes()
    done = bench.json(*command.split())
    assert (done.status, done.error["code"]) == (5, "metadata")
    assert bench.read("demo/core.py") == before
    assert (bench.site / ".patchkit" / "ledger.json").read_bytes() == ledger
    assert bench("revert", "--all").status == 0  # both are no question of what is beneath
    assert bench.read("demo/core.py") == CORE.encode()


def test_the_originals_of_a_lost_ledger_outlive_other_commands(bench: Bench) -> None:
    """A syntax edit has no inverse: the kept copy is the only original."""
    make_dist(bench.site, "other", "1.0", {"other/__init__.py": "", "other/m.py": "A = 1\n"})
    bench.patch("one", ONE)
    bench.patch("syntax", OTHER, requirement="other")
    assert bench("apply", "syntax").status == 0
    (bench.site / ".patchkit" / "ledger.json").unlink()
    for command in (("apply", "one"), ("revert", "one"), ("apply", "one")):
        assert bench(*command).status == 0
    assert [p["state"] for p in bench.json("check", "syntax").json["patches"]] == ["corrupt"]
    assert bench("apply", "syntax").status == 0
    assert bench("revert", "--all").status == 0
    assert bench.read("other/m.py") == b"A = 1\n"
    assert not (bench.site / ".patchkit" / "blobs").exists()


def test_a_ledger_that_its_own_reader_would_refuse_is_not_written(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    from patchkit.ops import commit

    bench.patch("one", ONE)
    real = commit._ledger

    def broken(*arguments: object) -> object:
        return real(*arguments)._replace(files={})  # type: ignore[arg-type]

    monkeypatch.setattr(commit, "_ledger", broken)
    assert bench("apply", "one").status == 70
    assert bench.pristine()
    assert bench("check").status == 0
    assert not os.path.exists(bench.site / ".patchkit" / "ledger.json")
    assert json.loads(bench.json("list").out)["ok"]


def test_what_is_applied_already_needs_no_right_to_write(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entry points run `apply` at every start, on read-only images too."""
    from patchkit.errors import SiteError

    def refused(*_: object, **__: object) -> None:
        raise SiteError("the lock: Read-only file system", code="read-only")

    bench.patch("one", ONE)
    bench.patch("two", TWO)
    assert bench("apply", "one").status == 0
    monkeypatch.setattr("patchkit.state.lock.lock", refused)
    done = bench.json("apply", "one")
    assert (done.status, done.json["patches"][0]["action"], done.json["dry_run"]) == (0, "unchanged", False)
    done = bench.json("apply", "one", "two")
    assert (done.status, done.error["code"]) == (5, "read-only")


def test_a_working_directory_that_is_gone_is_named(bench: Bench, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    try:
        done = bench.json("check")
    finally:
        os.chdir(tmp_path)
    assert done.status == 5
    assert "working directory is gone" in done.error["message"]
