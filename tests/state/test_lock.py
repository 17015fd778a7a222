from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from patchkit.errors import SiteError
from patchkit.state import fs
from patchkit.state.lock import Holder, holder, lock

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
        (tmp_path / ".patchkit" / "lock").unlink()
    assert not (tmp_path / ".patchkit" / "lock").exists()
    with lock(home, timeout=0):
        assert (tmp_path / ".patchkit" / "lock").exists()
    assert (tmp_path / ".patchkit" / "lock").exists()


@pytest.mark.parametrize(("number", "code"), [(30, "read-only"), (13, "permission"), (28, "no-space")])
def test_where_no_lock_file_can_be_made_the_reason_is_named(tmp_path: Path, number: int, code: str) -> None:
    def refuse(operation: str, path: str, when: str) -> None:
        raise OSError(number, os.strerror(number))

    with fs.observed(refuse), pytest.raises(SiteError) as raised, lock(str(tmp_path)):
        pass
    assert raised.value.code == code
    assert os.strerror(number) in raised.value.message
    assert str(tmp_path) in raised.value.message
