"""A transaction stopped at every step leaves all files old or all new, as the ledger says, after the next command."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

import pytest
from state.sites import MTIME, Crash, Exit, Site, Stop, build

from patchkit.errors import SiteError
from patchkit.runtime import ledger as reader
from patchkit.state import fs
from patchkit.state.ledger import Ledger
from patchkit.state.log import read_log
from patchkit.state.transaction import pending, recover


@pytest.fixture(autouse=True)
def _no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stopped process loses nothing that it had written; only a power cut would, which no test can stage."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def steps_of(home: Path) -> list[tuple[str, str]]:
    counter = Stop(None)
    build(home).commit(counter)
    return counter.steps


def assert_whole(site: Site) -> str:
    """Every file old or every file new, and the ledger says the same; nothing is left over. Which of the two."""
    assert not pending(str(site.home))
    ledger = Ledger.load(str(site.home))
    side = "new" if ledger.patch("first") else "old"
    assert site.now() == (site.after if side == "new" else site.before)
    assert ledger.patch("zero" if side == "old" else "first")
    assert site.strays() == []
    states = reader.check_files(str(site.home), reader.read(str(site.home)) or {})
    assert set(states.values()) == {"applied"}
    if side == "old":
        for key, data in site.before.items():
            if data is not None:
                now = os.stat(site.home / key)
                assert (stat.S_IMODE(now.st_mode), now.st_mtime_ns) == (0o640, MTIME)
    return side


def test_the_whole_transaction(tmp_path: Path) -> None:
    site = build(tmp_path)
    site.commit()
    assert assert_whole(site) == "new"
    assert recover(str(tmp_path)) is None
    assert not (tmp_path / "pkg/old").exists()
    assert Ledger.load(str(tmp_path)).files["pkg/new/deep/add.py"].created_dirs == ("pkg/new", "pkg/new/deep")


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_at_every_step(tmp_path: Path, when: str, capsys: pytest.CaptureFixture[str]) -> None:
    steps = steps_of(tmp_path / "count")
    sides = []
    for at in range(1, len(steps) + 1):
        site = build(tmp_path / f"{at}")
        hook = Stop(at, when)
        with contextlib.suppress(Crash):
            site.commit(hook)
        if not hook.fired:  # a removal of what is not there has no "after"
            assert when == "after"
            assert steps[at - 1][0] in ("unlink", "read")
            continue
        left = pending(str(site.home))
        done = recover(str(site.home))
        assert (done is not None) == left
        assert recover(str(site.home)) is None
        sides.append(assert_whole_or_unswept(site))
        if sides[-1] == "old":
            site.commit()
            assert assert_whole(site) == "new"
    assert sides == sorted(sides, reverse=True)  # old ... old new ... new: one step decides
    assert {"old", "new"} == set(sides)
    with capsys.disabled():
        print(f"\ncrash sweep ({when}): {len(sides)} points")
    assert len(sides) > 60


def assert_whole_or_unswept(site: Site) -> str:
    """As :func:`assert_whole`; only blobs that no ledger refers to may wait for the next transaction."""
    side = "new" if Ledger.load(str(site.home)).patch("first") else "old"
    assert site.now() == (site.after if side == "new" else site.before)
    assert [path for path in site.strays() if "/.patchkit/" not in path and not path.endswith("/.patchkit")] == []
    return side


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_the_process_exits_at_every_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = steps_of(tmp_path / "count")
    tried = 0
    for at in range(1, len(steps) + 1):
        for when in ("before", "after"):
            site = build(tmp_path / f"{at}-{when}")
            child = os.fork()
            if child == 0:
                try:
                    site.commit(Exit(at, when))
                finally:
                    os._exit(1)  # it was not stopped
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if when == "after" and steps[at - 1][0] in ("unlink", "read") and status == 1:
                continue  # a removal of what is not there has no "after"
            assert status == 9
            recover(str(site.home))
            assert_whole_or_unswept(site)
            tried += 1
    with capsys.disabled():
        print(f"\nos._exit sweep: {tried} points")
    assert tried > 120


def test_recovery_killed_at_every_step_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = steps_of(tmp_path / "count")
    middle = [
        number for number, (operation, path) in enumerate(steps, 1) if operation in ("replace", "unlink", "mkdir")
    ]
    tried = 0
    for at in sorted({*middle[:: max(1, len(middle) // 12)], middle[-1]}):
        second = 0
        while True:
            second += 1
            site = build(tmp_path / f"{at}-{second}")
            with pytest.raises(Crash):
                site.commit(Stop(at, "before"))
            hook = Stop(second, "before")
            try:
                with fs.observed(hook):
                    recover(str(site.home))
            except Crash:
                tried += 1
            recover(str(site.home))
            assert_whole_or_unswept(site)
            if not hook.fired:
                break
    with capsys.disabled():
        print(f"\nrecovery sweep: {tried} points")
    assert tried > 60


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_one_failure_at_every_step_is_taken_back_at_once(tmp_path: Path, when: str, error: BaseException) -> None:
    steps = steps_of(tmp_path / "count")
    outcomes = []
    for at in range(1, len(steps) + 1):
        site = build(tmp_path / f"{at}")
        raised: BaseException | None = None
        try:
            site.commit(Stop(at, when, error, dead=False))
        except (SiteError, KeyboardInterrupt) as failure:
            raised = failure
        if isinstance(raised, SiteError):
            assert raised.code == "no-space"
            assert raised.details["errno"] == "ENOSPC"
            assert raised.details["path"] in raised.message
            assert "No space left on device" in raised.message
            assert raised.details["committed"] == (site.now() == site.after)
        recover(str(site.home)) if site.now() == site.after else None
        assert not pending(str(site.home))
        outcomes.append(assert_whole_or_unswept(site))
    assert set(outcomes) == {"old", "new"}


def test_a_disk_that_stays_broken_is_told_and_healed_by_the_next_command(tmp_path: Path) -> None:
    steps = steps_of(tmp_path / "count")
    replaced = [
        number for number, (operation, path) in enumerate(steps, 1) if operation == "replace" and path.endswith("b.py")
    ]
    site = build(tmp_path / "site")
    with pytest.raises(SiteError) as raised:
        site.commit(Stop(replaced[0], "before", OSError(errno.EROFS, "Read-only file system")))
    assert raised.value.code == "read-only"
    assert raised.value.details["rolled_back"] is False
    assert pending(str(site.home))
    with pytest.raises(SiteError, match="interrupted"):
        site.commit()
    done = recover(str(site.home))
    assert done is not None
    assert done.outcome == "rolled-back"
    assert assert_whole(site) == "old"
    assert [event["result"] for event in read_log(str(site.home))] == ["done", "rolled back"]


def test_what_power_loss_could_reorder_is_flushed_first(tmp_path: Path) -> None:
    """Journal and blobs last before any file is renamed, every new file before its rename, all before the ledger."""
    steps = steps_of(tmp_path)
    names = [(operation, os.path.relpath(path, tmp_path)) for operation, path in steps]

    def first(operation: str, end: str) -> int:
        return next(n for n, (done, path) in enumerate(names) if done == operation and path.endswith(end))

    def last(operation: str, end: str) -> int:
        return max(n for n, (done, path) in enumerate(names) if done == operation and path.endswith(end))

    journal = first("replace", "journal.json")
    assert first("fsync", "journal.json.tmp") < journal
    assert first("fsync-dir", ".patchkit/blobs") < journal
    assert max(n for n, (done, path) in enumerate(names) if done == "fsync" and "/blobs/" in path) < journal
    files = [n for n, (done, path) in enumerate(names) if done == "replace" and path.startswith("pkg/")]
    assert len(files) == 4
    assert (
        next(n for n, (done, path) in enumerate(names) if n > journal and (done, path) == ("fsync-dir", ".patchkit"))
        < files[0]
    )
    assert max(n for n, (done, path) in enumerate(names) if done == "fsync" and path.startswith("pkg/")) < files[0]
    ledger = first("replace", "ledger.json")
    for directory in ("pkg", "pkg/new/deep"):
        flushed = [n for n, step in enumerate(names) if step == ("fsync-dir", directory)]
        assert any(files[-1] < n < ledger for n in flushed)
    dropped = last("unlink", "journal.json")
    assert any(ledger < n < dropped for n, step in enumerate(names) if step == ("fsync-dir", ".patchkit"))
    assert any(dropped < n for n, step in enumerate(names) if step == ("fsync-dir", ".patchkit"))
