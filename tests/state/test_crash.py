"""A transaction stopped at every step leaves all files old or all new, as the ledger says, after the next command."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

import pytest
from state.sites import MTIME, TOML, Crash, Draft, Exit, Site, Stop, build, entry_for, observed_commit, patch_entry, sha

from patchkit.errors import SiteError
from patchkit.runtime import ledger as reader
from patchkit.state import fs
from patchkit.state.ledger import Ledger
from patchkit.state.log import read_log
from patchkit.state.transaction import Change, commit, pending, recover


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


def build_revert(home: Path) -> tuple[Ledger, list[Change]]:
    """One patched file that was a link into a cache, and one added file that somebody removed, not its directories."""
    (home / "cache").mkdir(parents=True)
    (home / "site" / "pkg").mkdir(parents=True)
    (home / "cache" / "a.py").write_bytes(b"a = 1\n")
    os.utime(home / "cache" / "a.py", ns=(MTIME, MTIME))
    path, added = home / "site" / "pkg" / "a.py", home / "site" / "pkg" / "new" / "deep" / "add.py"
    path.symlink_to("../../cache/a.py")
    keys = ["pkg/a.py", "pkg/new/deep/add.py"]
    ledger = Draft().with_patch(patch_entry("first", keys))
    ledger = ledger.with_file(keys[0], entry_for(b"a = 1\n", b"a = 2\n")).with_file(
        keys[1], entry_for(None, b"n = 1\n")
    )
    changes = [
        Change(keys[0], str(path), b"a = 1\n", b"a = 2\n"),
        Change(keys[1], str(added), None, b"n = 1\n"),
    ]
    commit(str(home / "site"), changes, ledger, {"command": "apply"}, extra_blobs=[TOML])
    assert not path.is_symlink()
    added.unlink()
    return Draft(), [Change(keys[0], str(path), b"a = 2\n", b"a = 1\n", mtime_ns=MTIME)]


@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_while_a_link_is_put_back(tmp_path: Path, when: str) -> None:
    counter = Stop(None)
    ledger, changes = build_revert(tmp_path / "count")
    observed_commit(counter, str(tmp_path / "count" / "site"), changes, ledger, {"command": "revert"})
    sides = []
    for at in range(1, len(counter.steps) + 1):
        root = tmp_path / str(at)
        ledger, changes = build_revert(root)
        home, path = root / "site", root / "site" / "pkg" / "a.py"
        hook = Stop(at, when)
        with contextlib.suppress(Crash):
            observed_commit(hook, str(home), changes, ledger, {"command": "revert"})
        if not hook.fired:  # a removal of what is not there has no "after"
            continue
        recover(str(home))
        assert not pending(str(home))
        recorded = Ledger.load(str(home))
        sides.append("old" if recorded.patches else "new")
        if recorded.patches:
            assert (path.is_symlink(), path.read_bytes()) == (False, b"a = 2\n")
            assert recorded.files["pkg/a.py"].link == "../../cache/a.py"
            commit(str(home), changes, ledger, {"command": "revert"})
        assert os.readlink(path) == "../../cache/a.py"
        assert not (home / "pkg" / "new").exists()
        assert [entry.name for entry in (home / "pkg").iterdir()] == ["a.py"]
        now = os.stat(root / "cache" / "a.py")
        assert ((root / "cache" / "a.py").read_bytes(), now.st_mtime_ns) == (b"a = 1\n", MTIME)
    assert sides == sorted(sides, reverse=True)
    assert {"old", "new"} == set(sides)


def test_a_copy_that_is_lost_before_the_rollback(tmp_path: Path) -> None:
    """The advice names the distribution that the file belongs to, and following it helps."""
    site = build(tmp_path)
    (tmp_path / "pkg-1.0.dist-info" / "RECORD").write_text("pkg/__init__.py,,\npkg/a.py,,\n")
    replaced = [index for index, step in enumerate(steps_of(tmp_path / "count")) if step[0] == "replace"]
    with contextlib.suppress(Crash):
        site.commit(Stop(replaced[-2] + 1, "before"))
    assert (tmp_path / "pkg/a.py").read_bytes() == b"a = 2\n"
    (tmp_path / ".patchkit" / "blobs" / sha(b"a = 1\n")).unlink()
    with pytest.raises(SiteError) as caught:
        recover(str(tmp_path))
    assert caught.value.code == "corrupt"
    assert caught.value.hint is not None
    again = f"pip install --target {tmp_path} --upgrade --no-deps --no-cache-dir pkg==1.0"
    assert f"{again}, and run the command again" in caught.value.hint


def stopped_behind_the_last_file(site: Site, count: Path) -> None:
    """Every file is replaced, and the ledger is not."""
    steps = steps_of(count)
    ledger = next(n for n, (operation, path) in enumerate(steps, 1) if path.endswith("ledger.json.tmp"))
    with contextlib.suppress(Crash):
        site.commit(Stop(ledger, "before"))
    assert site.now() == site.after


class FullDisk:
    """From the moment in which the ledger would be written, the files in ``home`` may take no byte more than then."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.limit: int | None = None

    def used(self) -> int:
        return sum(os.lstat(path).st_size for path in self.home.rglob("*") if not path.is_dir())

    def __call__(self, operation: str, path: str, when: str) -> None:
        if when == "before" and operation in ("write", "append"):
            if path.endswith("ledger.json.tmp"):
                self.limit = self.used()
            if self.limit is not None and self.used() >= self.limit:
                raise OSError(errno.ENOSPC, "No space left on device", path)


def test_a_disk_that_is_full_at_the_last_moment(tmp_path: Path) -> None:
    """Putting files back takes room: it is made of what the command itself had taken."""
    site = build(tmp_path)
    with pytest.raises(SiteError) as raised:
        site.commit(FullDisk(site.home))
    assert raised.value.code == "no-space"
    assert raised.value.message.endswith("; everything was put back as it was")
    assert assert_whole(site) == "old"


@pytest.mark.parametrize("damage", ["lost", "other bytes"])
def test_a_copy_that_cannot_be_used_keeps_no_other_file_from_going_back(tmp_path: Path, damage: str) -> None:
    """Nothing but the very bytes is written back; once the copy is there again, the rest follows."""
    site = build(tmp_path / "site")
    stopped_behind_the_last_file(site, tmp_path / "count")
    blob = site.home / ".patchkit" / "blobs" / sha(b"b = 1\r\n")
    blob.unlink() if damage == "lost" else blob.write_bytes(b"b = 7\r\n")
    with pytest.raises(SiteError) as raised:
        recover(str(site.home))
    assert raised.value.code == "corrupt"
    assert str(blob) in raised.value.message
    assert site.now() == {**site.before, "pkg/b.py": site.after["pkg/b.py"]}
    assert pending(str(site.home))
    blob.write_bytes(b"b = 1\r\n")
    done = recover(str(site.home))
    assert done is not None
    assert done.outcome == "rolled-back"
    assert site.now() == site.before
    assert site.strays() == []


def test_a_site_that_is_moved_before_it_is_taken_back(tmp_path: Path) -> None:
    site = build(tmp_path / "site")
    stopped_behind_the_last_file(site, tmp_path / "count")
    moved = site._replace(home=tmp_path / "elsewhere")
    site.home.rename(moved.home)
    recover(str(moved.home))
    assert assert_whole(moved) == "old"
    assert not (moved.home / "pkg/new").exists()


def test_tidying_up_that_fails_is_told(tmp_path: Path) -> None:
    steps = steps_of(tmp_path / "count")
    site = build(tmp_path / "site")
    ledger = next(n for n, step in enumerate(steps, 1) if step[0] == "replace" and step[1].endswith("ledger.json"))
    with contextlib.suppress(Crash):
        site.commit(Stop(ledger, "after"))

    def hook(operation: str, path: str, when: str) -> None:
        if operation == "unlink" and path.endswith("journal.json"):
            raise OSError(errno.EIO, "Input/output error", path)

    with fs.observed(hook), pytest.raises(SiteError) as raised:
        recover(str(site.home))
    assert (raised.value.code, pending(str(site.home))) == ("io", True)
    done = recover(str(site.home))
    assert done is not None
    assert done.outcome == "finished"
    assert assert_whole(site) == "new"


def test_nothing_half_written_is_left_of_the_ledger(tmp_path: Path) -> None:
    steps = steps_of(tmp_path / "count")
    site = build(tmp_path / "site")
    torn = next(n for n, step in enumerate(steps, 1) if step[0] == "fsync" and step[1].endswith("ledger.json.tmp"))
    with contextlib.suppress(Crash):
        site.commit(Stop(torn, "before"))
    assert (site.home / ".patchkit" / "ledger.json.tmp").exists()
    recover(str(site.home))
    assert assert_whole(site) == "old"
