from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from state.sites import MTIME, TOML, Crash, Draft, Stop, build, entry_for, observed_commit, patch_entry

from patchkit.errors import InternalError, SiteError
from patchkit.runtime import ledger as reader
from patchkit.state import blobs, fs
from patchkit.state.journal import journal_path
from patchkit.state.ledger import Ledger
from patchkit.state.lock import lock
from patchkit.state.log import read_log
from patchkit.state.transaction import Change, commit, pending, recover

EVENT = {"command": "test", "patches": []}


def change(home: Path, key: str, before: bytes | None, after: bytes | None, **more: object) -> Change:
    return Change(key, str(home / key), before, after, **more)  # type: ignore[arg-type]


def put(path: Path, data: bytes, mode: int = 0o644) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(mode)
    os.utime(path, ns=(MTIME, MTIME))
    return path


def interrupted(tmp_path: Path, at_path: str, operation: str = "replace", when: str = "after") -> None:
    """Stop ``build``'s transaction at the first such step."""
    steps = Stop(None)
    build(tmp_path / "count").commit(steps)
    number = next(n for n, (done, path) in enumerate(steps.steps, 1) if done == operation and path.endswith(at_path))
    with pytest.raises(Crash):
        build(tmp_path / "site").commit(Stop(number, when))


@pytest.mark.parametrize("mode", [0o444, 0o600, 0o755])
def test_mode_stays_and_mtime_comes_back(tmp_path: Path, mode: int) -> None:
    path = put(tmp_path / "a.py", b"one", mode)
    ledger = Draft().with_patch(patch_entry("p", ["a.py"])).with_file("a.py", entry_for(b"one", b"two!", mode=mode))
    saved = commit(str(tmp_path), [change(tmp_path, "a.py", b"one", b"two!")], ledger, EVENT, extra_blobs=[TOML])
    now = path.stat()
    assert (path.read_bytes(), stat.S_IMODE(now.st_mode)) == (b"two!", mode)
    assert now.st_mtime_ns != MTIME
    assert saved == Ledger.load(str(tmp_path))
    recorded = saved.files["a.py"].stat
    assert recorded is not None
    assert (recorded.size, recorded.mtime_ns, recorded.ino) == (4, now.st_mtime_ns, now.st_ino)
    commit(str(tmp_path), [change(tmp_path, "a.py", b"two!", b"one", mtime_ns=MTIME)], Draft(), EVENT)
    now = path.stat()
    assert (path.read_bytes(), stat.S_IMODE(now.st_mode), now.st_mtime_ns) == (b"one", mode, MTIME)


def test_after_the_last_patch_only_the_log_and_the_lock_stay(tmp_path: Path) -> None:
    put(tmp_path / "a.py", b"one")
    ledger = Draft().with_patch(patch_entry("p", ["a.py"])).with_file("a.py", entry_for(b"one", b"two"))
    commit(str(tmp_path), [change(tmp_path, "a.py", b"one", b"two")], ledger, EVENT, extra_blobs=[TOML])
    assert sorted(os.listdir(tmp_path / ".patchkit")) == ["blobs", "ledger.json", "lock", "log.jsonl"]
    assert len(os.listdir(tmp_path / ".patchkit" / "blobs")) == 3
    commit(str(tmp_path), [change(tmp_path, "a.py", b"two", b"one")], Draft(), {**EVENT, "command": "revert"})
    assert sorted(os.listdir(tmp_path / ".patchkit")) == ["lock", "log.jsonl"]
    assert [event["command"] for event in read_log(str(tmp_path))] == ["test", "revert"]
    assert [event["files"] for event in read_log(str(tmp_path))] == [1, 1]


def test_a_hard_linked_twin_is_left_alone(tmp_path: Path) -> None:
    path = put(tmp_path / "site" / "a.py", b"one")
    os.link(path, tmp_path / "cache.py")
    commit(str(tmp_path / "site"), [change(tmp_path / "site", "a.py", b"one", b"two")], Draft(), EVENT)
    assert (tmp_path / "cache.py").read_bytes() == b"one"
    assert path.stat().st_nlink == 1


def test_a_link_is_replaced_never_written_through(tmp_path: Path) -> None:
    store = put(tmp_path / "store.py", b"one", 0o640)
    home = tmp_path / "site"
    home.mkdir()
    (home / "a.py").symlink_to("../store.py")
    commit(str(home), [change(home, "a.py", b"one", b"two")], Draft(), EVENT)
    assert store.read_bytes() == b"one"
    assert not (home / "a.py").is_symlink()
    assert (home / "a.py").read_bytes() == b"two"
    assert stat.S_IMODE((home / "a.py").stat().st_mode) == 0o640
    # and comes back as a link when the transaction fails
    (home / "a.py").unlink()
    (home / "a.py").symlink_to("../store.py")

    def fail(operation: str, path: str, when: str) -> None:
        if (operation, when) == ("replace", "before") and path.endswith("ledger.json"):
            raise OSError(errno.ENOSPC, "full")

    with pytest.raises(SiteError, match="put back as it was"):
        observed_commit(fail, str(home), [change(home, "a.py", b"one", b"two")], Draft(), EVENT)
    assert os.readlink(home / "a.py") == "../store.py"
    assert sorted(os.listdir(home)) == [".patchkit", "a.py"]


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="needs extended attributes")
def test_extended_attributes_stay(tmp_path: Path) -> None:
    path = put(tmp_path / "a.py", b"one")
    try:
        os.setxattr(path, "user.note", b"kept")
    except OSError:
        pytest.skip("this file system has none")
    commit(str(tmp_path), [change(tmp_path, "a.py", b"one", b"two")], Draft(), EVENT)
    assert os.getxattr(path, "user.note") == b"kept"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_the_owner_stays_also_of_what_root_adds(tmp_path: Path) -> None:
    path = put(tmp_path / "pkg" / "a.py", b"one")
    os.chown(path, 1234, 1235)
    os.chown(tmp_path / "pkg", 1234, 1235)
    changes = [change(tmp_path, "pkg/a.py", b"one", b"two"), change(tmp_path, "pkg/new/b.py", None, b"b")]
    commit(str(tmp_path), changes, Draft(), EVENT)
    for name in ("pkg/a.py", "pkg/new", "pkg/new/b.py"):
        now = (tmp_path / name).stat()
        assert (now.st_uid, now.st_gid) == (1234, 1235), name


def test_nothing_is_written_where_a_file_is_not_as_planned(tmp_path: Path) -> None:
    put(tmp_path / "a.py", b"one")
    put(tmp_path / "b.py", b"edited")
    put(tmp_path / "new.py", b"there")
    (tmp_path / "dir.py").mkdir()
    changes = [
        change(tmp_path, "a.py", b"one", b"two"),
        change(tmp_path, "b.py", b"planned", b"two"),
        change(tmp_path, "new.py", None, b"new"),
        change(tmp_path, "gone.py", b"gone", b"two"),
        change(tmp_path, "dir.py", b"", b"two"),
    ]
    with pytest.raises(SiteError) as raised:
        commit(str(tmp_path), changes, Draft(), EVENT)
    assert raised.value.code == "changed"
    assert [os.path.basename(path) for path in raised.value.details["paths"]] == ["b.py", "new.py", "gone.py", "dir.py"]
    assert (tmp_path / "a.py").read_bytes() == b"one"
    assert not pending(str(tmp_path))
    assert not (tmp_path / ".patchkit" / "blobs").exists()


def test_a_write_between_the_check_and_the_rename_is_kept(tmp_path: Path) -> None:
    put(tmp_path / "a.py", b"one")
    put(tmp_path / "b.py", b"one")

    def edit(operation: str, path: str, when: str) -> None:
        if (operation, when) == ("replace", "after") and path.endswith("a.py"):
            (tmp_path / "b.py").write_bytes(b"ONE")

    changes = [change(tmp_path, name, b"one", b"two") for name in ("a.py", "b.py")]
    with pytest.raises(SiteError, match="written to") as raised:
        observed_commit(edit, str(tmp_path), changes, Draft(), EVENT)
    # b.py was never ours: a.py is put back, and b.py, neither before nor after, is named and left alone
    assert (tmp_path / "a.py").read_bytes() == b"one"
    assert (tmp_path / "b.py").read_bytes() == b"ONE"
    assert "b.py" in raised.value.message


def test_bytes_that_do_not_read_back_are_an_error(tmp_path: Path) -> None:
    put(tmp_path / "a.py", b"one")

    def spoil(operation: str, path: str, when: str) -> None:
        if (operation, when) == ("replace", "after") and path == str(tmp_path / "a.py"):
            (tmp_path / "a.py").write_bytes(b"tw0")

    with pytest.raises(SiteError, match="reads back") as raised:
        observed_commit(spoil, str(tmp_path), [change(tmp_path, "a.py", b"one", b"two")], Draft(), EVENT)
    assert raised.value.code == "verify"


def test_the_ledger_never_refers_to_bytes_that_are_not_kept(tmp_path: Path) -> None:
    put(tmp_path / "a.py", b"edited")
    ledger = Draft().with_patch(patch_entry("p", ["a.py"])).with_file("a.py", entry_for(b"pristine", b"two"))
    with pytest.raises(InternalError, match="not kept"):
        commit(str(tmp_path), [change(tmp_path, "a.py", b"edited", b"two")], ledger, EVENT, extra_blobs=[TOML])
    assert (tmp_path / "a.py").read_bytes() == b"edited"
    commit(str(tmp_path), [change(tmp_path, "a.py", b"edited", b"two")], ledger, EVENT, extra_blobs=[TOML, b"pristine"])
    assert blobs.get(str(tmp_path), ledger.files["a.py"].pristine.sha256) == b"pristine"  # type: ignore[union-attr]


def test_faults_of_the_caller(tmp_path: Path) -> None:
    put(tmp_path / "a.py", b"one")
    twice = [change(tmp_path, "a.py", b"one", b"two")] * 2
    for wrong in (
        twice,
        [change(tmp_path, "b.py", None, None)],
        [Change("b.py", str(tmp_path / "a.py"), b"one", b"two")],
    ):
        with pytest.raises(InternalError):
            commit(str(tmp_path), wrong, Draft(), EVENT)
    assert (tmp_path / "a.py").read_bytes() == b"one"


def test_a_ledger_alone_can_be_committed(tmp_path: Path) -> None:
    ledger = Draft().with_patch(patch_entry("p", []))
    commit(str(tmp_path), [], ledger, EVENT, extra_blobs=[TOML])
    assert Ledger.load(str(tmp_path)).patches == ledger.patches


def test_added_directories_go_with_the_last_added_file(tmp_path: Path) -> None:
    home = str(tmp_path)
    names = ("pkg/new/a.py", "pkg/new/sub/b.py")
    ledger = Draft()
    for name in names:
        before = Draft(*Ledger.load(home))
        ledger = before.with_file(name, entry_for(None, b"x"))
        commit(home, [change(tmp_path, name, None, b"x")], ledger, EVENT)
    assert Ledger.load(home).files[names[0]].created_dirs == ("pkg", "pkg/new")
    assert Ledger.load(home).files[names[1]].created_dirs == ("pkg/new/sub",)
    put(tmp_path / "pkg/new/sub/__pycache__/b.cpython-311.pyc", b"")
    commit(home, [change(tmp_path, names[0], b"x", None)], Draft(*Ledger.load(home)).without_file(names[0]), EVENT)
    assert (tmp_path / names[1]).exists()
    commit(home, [change(tmp_path, names[1], b"x", None)], Draft(*Ledger.load(home)).without_file(names[1]), EVENT)
    assert os.listdir(tmp_path) == [".patchkit"]


def test_a_directory_somebody_else_uses_stays(tmp_path: Path) -> None:
    home = str(tmp_path)
    commit(
        home, [change(tmp_path, "new/a.py", None, b"x")], Draft().with_file("new/a.py", entry_for(None, b"x")), EVENT
    )
    put(tmp_path / "new" / "mine.txt", b"mine")
    commit(home, [change(tmp_path, "new/a.py", b"x", None)], Draft(), EVENT)
    assert os.listdir(tmp_path / "new") == ["mine.txt"]


def test_a_file_that_is_neither_is_reported_and_left_alone(tmp_path: Path) -> None:
    interrupted(tmp_path, "pkg/c.py")
    home = tmp_path / "site"
    assert (home / "pkg/a.py").read_bytes() == b"a = 2\n"
    (home / "pkg/a.py").write_bytes(b"mine\n")
    for _ in range(2):
        with pytest.raises(SiteError) as raised:
            recover(str(home))
        assert raised.value.code == "interrupted"
        assert raised.value.details["paths"] == [str(home / "pkg/a.py")]
        assert (home / "pkg/a.py").read_bytes() == b"mine\n"
        assert (home / "pkg/b.py").read_bytes() == b"b = 1\r\n"
        assert (home / "pkg/c.py").read_bytes() == b""
        assert pending(str(home))
    # the way out that the hint names
    hint = raised.value.hint or ""
    command = hint[hint.index("cp ") :].split("; ")[0]
    subprocess.run(command.split(), check=True)
    done = recover(str(home))
    assert done is not None
    assert done.outcome == "rolled-back"
    assert (home / "pkg/a.py").read_bytes() == b"a = 1\n"
    assert not pending(str(home))


def test_such_a_file_can_be_kept(tmp_path: Path) -> None:
    interrupted(tmp_path, "pkg/c.py")
    home = tmp_path / "site"
    (home / "pkg/a.py").write_bytes(b"mine\n")
    done = recover(str(home), keep=True)
    assert done is not None
    assert (done.outcome, done.kept) == ("rolled-back", ("pkg/a.py",))
    assert (home / "pkg/a.py").read_bytes() == b"mine\n"
    assert not pending(str(home))


def test_a_package_uninstalled_meanwhile_is_not_brought_back(tmp_path: Path) -> None:
    interrupted(tmp_path, "pkg/c.py")
    home = tmp_path / "site"
    subprocess.run(["rm", "-rf", str(home / "pkg"), str(home / "pkg-1.0.dist-info")], check=True)
    done = recover(str(home))
    assert done is not None
    assert done.missing == ("pkg/a.py", "pkg/b.py", "pkg/c.py", "pkg/old/gone.py")
    assert os.listdir(home) == [".patchkit"]


def test_a_reinstall_meanwhile_is_as_good_as_before(tmp_path: Path) -> None:
    home = tmp_path
    put(home / "a.py", b"pristine")
    first = Draft().with_patch(patch_entry("p", ["a.py"])).with_file("a.py", entry_for(b"pristine", b"one"))
    commit(str(home), [change(home, "a.py", b"pristine", b"one")], first, EVENT, extra_blobs=[TOML])
    second = first.with_file("a.py", entry_for(b"pristine", b"two"))
    steps = Stop(None)

    def stop(operation: str, path: str, when: str) -> None:
        steps(operation, path, when)
        if (operation, when) == ("replace", "after") and path.endswith("a.py"):
            steps.fired = True
            raise steps.error

    with pytest.raises(Crash):
        observed_commit(stop, str(home), [change(home, "a.py", b"one", b"two")], second, EVENT)
    (home / "a.py").write_bytes(b"pristine")
    done = recover(str(home))
    assert done is not None
    assert done.outcome == "rolled-back"
    assert (home / "a.py").read_bytes() == b"pristine"


def test_recovery_where_nothing_can_be_written_reports(tmp_path: Path) -> None:
    interrupted(tmp_path, "pkg/c.py")
    home = tmp_path / "site"

    def refuse(operation: str, path: str, when: str) -> None:
        if operation != "read":
            raise OSError(errno.EROFS, "Read-only file system")

    with fs.observed(refuse):
        done = recover(str(home))
    assert done is not None
    assert done.outcome == "pending"
    assert "Read-only file system" in done.reason
    assert done.event["command"] == "apply"
    assert "pkg/a.py" in done.files
    assert pending(str(home))


def test_a_running_transaction_is_not_disturbed(tmp_path: Path) -> None:
    """Recovery waits for the lock; when it has it, the journal is gone."""
    import threading

    put(tmp_path / "a.py", b"one")
    results = []
    threads = []

    def look(operation: str, path: str, when: str) -> None:
        if (operation, when) == ("replace", "after") and path.endswith("a.py"):
            assert pending(str(tmp_path))
            threads.append(threading.Thread(target=lambda: results.append(recover(str(tmp_path)))))
            threads[0].start()

    observed_commit(look, str(tmp_path), [change(tmp_path, "a.py", b"one", b"two")], Draft(), EVENT)
    threads[0].join()
    assert results == [None]
    assert (tmp_path / "a.py").read_bytes() == b"two"


def test_a_damaged_journal_is_named(tmp_path: Path) -> None:
    interrupted(tmp_path, "pkg/c.py")
    path = Path(journal_path(str(tmp_path / "site")))
    good = path.read_bytes()
    assert json.loads(good)["event"]["command"] == "apply"
    for data in (b"", b"{", good.replace(b"apply", b"appla"), b"[]"):
        path.write_bytes(data)
        with pytest.raises(SiteError) as raised:
            recover(str(tmp_path / "site"))
        assert raised.value.code == "corrupt"


def test_a_lost_blob_stops_the_rollback_and_keeps_the_journal(tmp_path: Path) -> None:
    interrupted(tmp_path, "pkg/c.py")
    home = tmp_path / "site"
    (home / ".patchkit" / "blobs" / reader.sha256_hex(b"a = 1\n")).unlink()
    with pytest.raises(SiteError, match=r"pkg/a\.py before the interrupted run") as raised:
        recover(str(home))
    assert raised.value.code == "corrupt"
    assert pending(str(home))


def test_two_at_once_are_one_after_the_other(tmp_path: Path) -> None:
    put(tmp_path / "a.py", b"one")
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from patchkit.state.transaction import Change, commit\n"
        "from patchkit.state.ledger import Ledger\n"
        "home, after = sys.argv[2], sys.argv[3].encode()\n"
        "try:\n"
        "    commit(home, [Change('a.py', home + '/a.py', b'one', after)], Ledger(), {'command': 'x'})\n"
        "except Exception as error:\n"
        "    print(error.code)\n"
        "else:\n"
        "    print('done')\n"
    )
    root = str(Path(__file__).parents[2])
    running = [
        subprocess.Popen([sys.executable, "-c", code, root, str(tmp_path), word], stdout=subprocess.PIPE, text=True)
        for word in ("two", "three")
    ]
    assert sorted(process.communicate()[0] for process in running) == ["changed\n", "done\n"]
    assert (tmp_path / "a.py").read_bytes() in (b"two", b"three")


def test_commit_within_the_callers_lock(tmp_path: Path) -> None:
    put(tmp_path / "a.py", b"one")
    with lock(str(tmp_path)):
        assert recover(str(tmp_path)) is None
        commit(str(tmp_path), [change(tmp_path, "a.py", b"one", b"two")], Draft(), EVENT)
    assert (tmp_path / "a.py").read_bytes() == b"two"


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.none() | st.binary(max_size=40), st.none() | st.binary(max_size=40)).filter(
            lambda pair: pair != (None, None)
        ),
        min_size=1,
        max_size=5,
    ),
    st.integers(1, 90),
    st.booleans(),
)
def test_any_transaction_stopped_anywhere(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[bytes | None, bytes | None]], at: int, exit_late: bool
) -> None:
    home = tmp_path_factory.mktemp("site")
    changes = []
    for number, (before, after) in enumerate(pairs):
        key = f"d{number % 2}/f{number}.py"
        if before is not None:
            put(home / key, before)
        changes.append(change(home, key, before, after))
    ledger = Draft().with_patch(patch_entry("p", []))
    hook = Stop(at, "after" if exit_late else "before")
    try:
        observed_commit(hook, str(home), changes, ledger, EVENT, extra_blobs=[TOML])
    except Crash:
        recover(str(home))
    side = 1 if Ledger.load(str(home)).patch("p") else 0
    for one, pair in zip(changes, pairs, strict=True):
        path = Path(one.path)
        assert (path.read_bytes() if path.exists() else None) == pair[side]
    assert not [path for path in home.rglob("*.tmp") if ".patchkit/" not in str(path)]


def test_a_journal_from_before_links_is_read(tmp_path: Path) -> None:
    interrupted(tmp_path, "b.py")
    home = str(tmp_path / "site")
    path = Path(journal_path(home))
    value = json.loads(path.read_bytes())
    for name in ("checksum", "remove_dirs"):
        del value[name]
    for file in value["files"]:
        del file["link"]
    body = json.dumps(value, sort_keys=True)[1:].encode() + b"\n"
    path.write_bytes(f'{{\n"checksum": "{reader.checksum(body)}",\n'.encode() + body)
    done = recover(home)
    assert done is not None
    assert done.outcome == "rolled-back"


def test_bytes_that_were_lost_before_do_not_stand_in_the_way(tmp_path: Path) -> None:
    """Of another file, which this transaction leaves alone."""
    put(tmp_path / "a.py", b"a")
    put(tmp_path / "b.py", b"b")
    first = Draft().with_file("a.py", entry_for(b"a", b"A"))
    commit(str(tmp_path), [change(tmp_path, "a.py", b"a", b"A")], first, EVENT)
    for path in (tmp_path / ".patchkit" / "blobs").iterdir():
        path.unlink()
    both = Draft(*Ledger.load(str(tmp_path))).with_file("b.py", entry_for(b"b", b"B"))
    commit(str(tmp_path), [change(tmp_path, "b.py", b"b", b"B")], both, EVENT)
    assert (tmp_path / "b.py").read_bytes() == b"B"
    with pytest.raises(InternalError):
        commit(str(tmp_path), [], both.with_file("c.py", entry_for(b"c", b"C")), EVENT)


@pytest.mark.parametrize(("init", "expected"), [(0o644, 0o644), (0o755, 0o644), (0o666, 0o666), (0o640, 0o640)])
def test_an_added_file_is_as_its_package(tmp_path: Path, init: int, expected: int) -> None:
    put(tmp_path / "pkg/__init__.py", b"", init)
    os.chmod(tmp_path / "pkg", 0o751)
    umask = os.umask(0o077)
    try:
        ledger = Draft().with_file("pkg/new/a.py", entry_for(None, b"x"))
        commit(str(tmp_path), [change(tmp_path, "pkg/new/a.py", None, b"x")], ledger, EVENT)
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "pkg/new/a.py").stat().st_mode) == expected
    assert stat.S_IMODE((tmp_path / "pkg/new").stat().st_mode) == 0o751


def test_the_umask_is_the_owners_limit(tmp_path: Path) -> None:
    put(tmp_path / "pkg/__init__.py", b"", 0o664)
    umask = os.umask(0o277)
    try:
        mode = fs.package_like(str(tmp_path), str(tmp_path / "pkg/a.py"))
        fs.write_new(str(tmp_path / "pkg/a.py"), b"x", fs.Meta(like=mode))
    finally:
        os.umask(umask)
    assert stat.S_IMODE((tmp_path / "pkg/a.py").stat().st_mode) == 0o464


def test_no_package_no_further_than_the_site(tmp_path: Path) -> None:
    """Not even when the directory above has an ``__init__.py``."""
    put(tmp_path / "__init__.py", b"", 0o600)
    put(tmp_path / "site/pkg/a.py", b"", 0o600)
    os.chmod(tmp_path / "site/pkg", 0o750)
    assert fs.package_like(str(tmp_path / "site"), str(tmp_path / "site/pkg/a.py")).mode & 0o777 == 0o750
