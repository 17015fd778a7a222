from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from patchkit.errors import SiteError, UsageError
from patchkit.state import fs
from patchkit.state import lock as locks
from patchkit.state.lock import Holder, holder, in_order, lock, probe, shared

HOLD = """
import sys
sys.path.insert(0, sys.argv[1])
from patchkit.state.lock import lock
with lock(sys.argv[2]):
    print("held", flush=True)
    sys.stdin.read()
"""
ROOT = str(Path(__file__).parents[2])


def hold(home: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, ROOT, str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def end(process: subprocess.Popen[str], kill: bool = False) -> None:
    if kill:
        process.send_signal(signal.SIGKILL)
    process.communicate()


def test_the_holder_is_named_and_waited_for(tmp_path: Path) -> None:
    other = hold(tmp_path)
    waits: list[Holder] = []
    try:
        with pytest.raises(SiteError) as raised, lock(str(tmp_path), timeout=0.12, on_wait=waits.append):
            pass
    finally:
        end(other)
    assert raised.value.code == "locked"
    assert raised.value.exit_status == 5
    assert raised.value.details["pid"] == other.pid
    assert f"process {other.pid}" in raised.value.message
    assert [wait.pid for wait in waits] == [other.pid]
    with lock(str(tmp_path), timeout=0):
        assert holder(str(tmp_path)).pid == os.getpid()
    assert holder(str(tmp_path)) == Holder(None, "")


def test_a_killed_holder_leaves_no_lock(tmp_path: Path) -> None:
    end(hold(tmp_path), kill=True)
    assert holder(str(tmp_path)).pid is not None  # its name is still in the file, and says nothing
    with lock(str(tmp_path), timeout=0):
        pass


def test_the_same_thread_enters_again_another_waits(tmp_path: Path) -> None:
    home = str(tmp_path)
    caught: list[SiteError] = []

    def other() -> None:
        try:
            with lock(home, timeout=0):
                pass
        except SiteError as error:
            caught.append(error)

    with lock(home):
        with lock(home, timeout=0):
            pass
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert caught[0].code == "locked"
        assert "another thread of this process" in caught[0].message
    with lock(home, timeout=0):
        pass


def test_an_error_within_lets_go(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), lock(str(tmp_path)):
        raise RuntimeError
    end(hold(tmp_path))


def test_the_lock_file_stays_and_one_that_somebody_removed_is_no_lock(tmp_path: Path) -> None:
    home = str(tmp_path)
    with lock(home):
        (tmp_path / ".patchkit" / "log.jsonl").write_text("")
        (tmp_path / ".patchkit" / "lock").unlink()
    assert not (tmp_path / ".patchkit" / "lock").exists()
    with lock(home, timeout=0):
        assert (tmp_path / ".patchkit" / "lock").exists()
    assert (tmp_path / ".patchkit" / "lock").exists()


def test_what_was_locked_must_still_be_the_file_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody takes the folder away between opening and locking: that lock is nobody else's, and is not enough."""
    file = tmp_path / ".patchkit" / "lock"
    real = locks._try_lock
    taken: list[str] = []

    def taking(descriptor: int, path: str, *, share: bool = False) -> bool:
        if not taken:
            taken.append(path)
            file.unlink()
            file.parent.rmdir()
        return real(descriptor, path, share=share)

    monkeypatch.setattr(locks, "_try_lock", taking)
    with lock(str(tmp_path)):
        assert taken == [str(file)]
        end_of_it = subprocess.run(
            [
                sys.executable,
                "-c",
                HOLD.replace("lock(sys.argv[2])", "lock(sys.argv[2], timeout=0)"),
                ROOT,
                str(tmp_path),
            ],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert "is working on this site" in end_of_it.stderr


def test_a_lock_that_is_all_there_is_goes_with_its_holder(tmp_path: Path) -> None:
    with lock(str(tmp_path)):
        assert (tmp_path / ".patchkit" / "lock").exists()
    assert not (tmp_path / ".patchkit").exists()


@pytest.mark.parametrize(("number", "code"), [(30, "read-only"), (13, "permission"), (28, "no-space")])
def test_where_no_lock_file_can_be_made_the_reason_is_named(tmp_path: Path, number: int, code: str) -> None:
    def refuse(operation: str, path: str, when: str) -> None:
        raise OSError(number, os.strerror(number))

    with fs.observed(refuse), pytest.raises(SiteError) as raised, lock(str(tmp_path)):
        pass
    assert raised.value.code == code
    assert os.strerror(number) in raised.value.message
    assert str(tmp_path) in raised.value.message


def python(code: str, *arguments: str) -> subprocess.Popen[str]:
    """A process of its own that has this patchkit, stdin and stdout as pipes."""
    command = [sys.executable, "-c", f"import sys\nsys.path.insert(0, {ROOT!r})\n{code}", *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_who_may_only_read_sees_who_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = str(tmp_path)
    assert probe(home) is None
    other = hold(tmp_path)
    real = os.open

    def only_read(path: str, flags: int, *rest: int) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return real(path, flags, *rest)

    monkeypatch.setattr(os, "open", only_read)
    try:
        found = probe(home)
        assert found is not None
        assert (found.pid, found.host, found.elsewhere) == (other.pid, os.uname().nodename, "")
    finally:
        end(other, kill=True)
    assert probe(home) is None


#: Holds the lock as a new holder does that has not come to write itself down yet: the file still names a killed one.
UNNAMED = """
import fcntl, os, time
file = open(sys.argv[1], "r+")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.readline()
file.write(f"{os.getpid()}\\nnew\\n")
file.flush()
sys.stdin.read()
"""


def test_a_dead_process_is_not_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "_LEAST_GRACE_SECONDS", 2.0)  # what is waited for here comes late on a busy machine
    dead = hold(tmp_path)
    end(dead, kill=True)
    new = python(UNNAMED, str(tmp_path / ".patchkit" / "lock"))
    assert line(new) == "held"
    assert new.stdin is not None
    assert holder(str(tmp_path)).pid == dead.pid
    writer = threading.Timer(0.1, lambda: (new.stdin.write("now\n"), new.stdin.flush()))  # type: ignore[union-attr]
    writer.start()
    try:
        with pytest.raises(SiteError) as raised, lock(str(tmp_path), timeout=0):
            pass
        assert raised.value.details["pid"] == new.pid
    finally:
        writer.join()
        end(new)


def test_a_holder_that_cannot_be_seen_is_said_to_be_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in containers that share a volume: the lock is held, and no process here has the number."""
    monkeypatch.setattr(locks, "_GRACE_SECONDS", 0.2)
    dead = hold(tmp_path)
    end(dead, kill=True)
    file = tmp_path / ".patchkit" / "lock"
    other = python(UNNAMED, str(file))
    assert line(other) == "held"
    try:
        with pytest.raises(SiteError) as raised, lock(str(tmp_path), timeout=0.2):
            pass
        assert f"process {dead.pid}, not visible from here (in another container?)" in raised.value.message
        file.write_text("7\npatchkit sync\nelse-where\n")
        with pytest.raises(SiteError) as raised, lock(str(tmp_path), timeout=0):
            pass
        assert "process 7 on else-where (patchkit sync) is working on this site" in raised.value.message
        assert raised.value.details["host"] == "else-where"
        if os.path.exists(
            "/proc/self/ns/pid"
        ):  # containers of one machine may share its name; 1 is somebody here as well
            file.write_text(f"1\npatchkit sync\n{os.uname().nodename}\npid:[1]\n")
            with pytest.raises(SiteError) as raised, lock(str(tmp_path), timeout=0):
                pass
            assert "process 1 of another container (patchkit sync) is working on this site" in raised.value.message
    finally:
        end(other)


FORKED = """
import os
from patchkit.state.lock import lock
with lock(sys.argv[1]):
    child = os.fork()
    if child == 0:
        {child}
    {parent}
    print(child, flush=True)
    sys.stdin.readline()
"""


def test_a_forked_child_does_not_keep_the_lock_of_a_killed_parent(tmp_path: Path) -> None:
    parent = python(FORKED.format(child="sys.stdin.read(); os._exit(0)", parent=""), str(tmp_path))
    child = int(line(parent))
    parent.kill()
    parent.wait()
    try:
        os.kill(child, 0)  # it lives
        with lock(str(tmp_path), timeout=0):
            pass
    finally:
        os.kill(child, signal.SIGKILL)
        end(parent)


def test_a_forked_child_that_leaves_the_block_does_not_unlock(tmp_path: Path) -> None:
    parent = python(FORKED.format(child="sys.exit()", parent="os.waitpid(child, 0)"), str(tmp_path))
    line(parent)
    with pytest.raises(SiteError) as raised, lock(str(tmp_path), timeout=0.3):
        pass
    assert raised.value.details["pid"] == parent.pid
    end(parent)


def test_two_names_of_a_site_share_one_lock(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    other = hold(tmp_path / "link")
    with pytest.raises(SiteError) as raised, lock(str(tmp_path / "real"), timeout=0):
        pass
    assert raised.value.details["pid"] == other.pid
    end(other)
    with lock(str(tmp_path / "link")), lock(str(tmp_path / "real"), timeout=0):  # this thread has it already
        pass


def test_several_are_locked_in_an_order_that_no_name_changes(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / f"{9 - ord(name) + 97}").symlink_to(name)  # 9, 8, 7: the other way round
    plain = [str(tmp_path / name) for name in "abc"]
    order = in_order(plain)
    assert sorted(order) == plain
    assert in_order(reversed(plain)) == order
    linked = [str(tmp_path / name) for name in "789"]
    assert [os.path.realpath(path) for path in in_order(linked)] == [os.path.realpath(path) for path in order]


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    import fcntl

    def none(descriptor: int, operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", none)
    with pytest.raises(SiteError) as raised, lock(str(tmp_path)):
        pytest.fail("went ahead without a lock")
    assert (raised.value.code, raised.value.exit_status) == ("no-locks", 5)
    assert errno.errorcode[number] in raised.value.message
    assert list(tmp_path.iterdir()) == []
    assert probe(str(tmp_path)) is None


def waited(error: SiteError) -> float:
    """The seconds that the message tells."""
    return float(error.message.rpartition("waited ")[2].removesuffix(" s"))


def test_who_does_not_want_to_wait_does_not_for_one_who_wrote_nothing_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a reader that keeps commands out for a moment: the name of a killed command in the file is not its own."""
    end(hold(tmp_path), kill=True)
    monkeypatch.setattr(locks, "_GRACE_SECONDS", 30.0)
    monkeypatch.setenv("PATCHKIT_WAIT", "0")
    with shared(str(tmp_path), timeout=0), pytest.raises(SiteError) as raised, lock(str(tmp_path)):
        pass
    assert ": another process is reading this site or working on it; waited " in raised.value.message
    assert (raised.value.code, raised.value.details["pid"]) == ("locked", None)
    assert 0.1 <= waited(raised.value) < 30


def test_how_long_to_wait_is_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = hold(tmp_path)
    try:
        monkeypatch.setenv("PATCHKIT_WAIT", "0.2")
        with pytest.raises(SiteError) as raised, lock(str(tmp_path)):
            pass
        assert 0.2 <= waited(raised.value) < 30
        assert "PATCHKIT_WAIT=SECONDS in the environment waits longer than 0.2 s" in (raised.value.hint or "")
        for wrong in ("soon", "-1", "nan"):
            monkeypatch.setenv("PATCHKIT_WAIT", wrong)
            with pytest.raises(UsageError, match="seconds to wait"), lock(str(tmp_path)):
                pass
    finally:
        end(other)


def test_readers_keep_commands_out_for_a_moment_and_need_no_lock_file(tmp_path: Path) -> None:
    home = str(tmp_path)
    with shared(home, timeout=0):
        assert list(tmp_path.iterdir()) == []
    end(hold(tmp_path), kill=True)  # leaves its lock file
    with shared(home, timeout=0), pytest.raises(SiteError) as raised, lock(home, timeout=0):
        pass
    assert raised.value.code == "locked"
    with lock(home, timeout=0), shared(home, timeout=0):
        pass


class Msvcrt(SimpleNamespace):
    """Windows' locks as documented: of bytes from the position on, mandatory, refused with EACCES where they are held.

    https://learn.microsoft.com/en-us/cpp/c-runtime-library/reference/locking
    """

    LK_UNLCK, LK_NBLCK = 0, 2

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[tuple[int, int], int] = {}
        self.calls: list[tuple[int, int, int]] = []

    def locking(self, descriptor: int, mode: int, count: int) -> None:
        at = os.lseek(descriptor, 0, os.SEEK_CUR)
        place = (os.fstat(descriptor).st_ino, at)
        self.calls.append((mode, at, count))
        if mode == self.LK_UNLCK:
            if self.held.pop(place, None) != descriptor:
                raise OSError(errno.EACCES, "not locked by this descriptor")
        elif place in self.held:
            raise OSError(errno.EACCES, "Permission denied")
        else:
            self.held[place] = descriptor


def test_windows_has_locks_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Msvcrt()
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setitem(sys.modules, "msvcrt", fake)
    monkeypatch.setitem(sys.modules, "fcntl", None)  # there is none
    monkeypatch.delattr(os, "uname")
    monkeypatch.delattr(os, "register_at_fork")
    monkeypatch.setenv("COMPUTERNAME", "BOX")

    def kill(pid: int, number: int) -> None:
        pytest.fail("os.kill(pid, 0) sends Ctrl-C on Windows")

    monkeypatch.setattr(os, "kill", kill)
    monkeypatch.setattr(locks, "_GRACE_SECONDS", 0.0)
    home = str(tmp_path)
    far = 1 << 30
    caught: list[str] = []

    def other() -> None:
        try:
            with lock(home, timeout=0):
                pass
        except SiteError as error:
            caught.append(error.code)
        caught.append(str(probe(home)))

    with lock(home):
        assert fake.calls == [(Msvcrt.LK_NBLCK, far, 1)]
        assert holder(home)[0::2] == (os.getpid(), "BOX")
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert caught[0] == "locked"
    assert f"pid={os.getpid()}" in caught[1]
    assert fake.held == {}
    assert fake.calls[-1] == (Msvcrt.LK_UNLCK, far, 1)
    assert probe(home) is None
