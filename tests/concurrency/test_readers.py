"""Whoever looks while commands work is told what was true before or after them; also who may not write."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from concurrency.arena import build, environment
from platforms.unprivileged import unprivileged
from support.sites import bare_site

from patchkit.errors import SiteError
from patchkit.ops import check
from patchkit.ops.check import steady
from patchkit.state.lock import lock

#: Stops behind the first replacement of a file that ends so, with the lock, until a line comes on stdin.
HALTED = """
import sys
from patchkit.cli.main import main
from patchkit.state import fs

def hook(operation, path, when):
    if operation == "replace" and path.endswith(sys.argv[1]) and when == "after":
        print("here", flush=True)
        sys.stdin.readline()

with fs.observed(hook):
    sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize("at", ["m0.py", "journal.json", "ledger.json"])
def test_who_may_not_write_is_not_told_of_half_a_command(tmp_path: Path, at: str) -> None:
    site = build(tmp_path)
    (tmp_path / "work").mkdir()
    options = ["--site", str(site), "--patches", str(tmp_path / "patches")]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", HALTED, at, *options, "apply", "a-first"],
        env=environment(),
        cwd=tmp_path / "work",
        stdin=pipe,
        stdout=pipe,
        text=True,
    ) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        assert worker.stdout.readline() == "here\n"
        closed = [site / ".patchkit", site / ".patchkit/lock", site / "demo", site]
        try:
            for path in closed:
                os.chmod(path, 0o555 if path.is_dir() else 0o444)
            done = unprivileged(tmp_path, "--json", "check", "a-first")
        finally:
            for path in closed:
                os.chmod(path, 0o755 if path.is_dir() else 0o644)
            worker.stdin.write("go\n")
            worker.stdin.flush()
        assert worker.wait(timeout=60) == 0
    found = json.loads(done.stdout)
    state = "applied" if at == "ledger.json" else "absent"
    assert [(patch["name"], patch["state"]) for patch in found["patches"]] == [("a-first", state)]
    assert found["notices"] == [f"a command is running (pid {worker.pid})"]


def touched(home: Path) -> None:
    """As a command does: the ledger is another file."""
    (home / ".patchkit").mkdir(exist_ok=True)
    (home / ".patchkit/new").write_text("{}")
    os.replace(home / ".patchkit/new", home / ".patchkit/ledger.json")


def test_a_look_during_which_a_command_ended_does_not_count(tmp_path: Path) -> None:
    touched(tmp_path)
    looks: list[int] = []

    def look() -> int:
        looks.append(len(looks))
        if len(looks) < 3:
            touched(tmp_path)
        if len(looks) == 2:
            raise KeyError("torn")
        return len(looks)

    assert steady(bare_site(tmp_path), look) == 3


def test_what_fails_in_peace_fails(tmp_path: Path) -> None:
    def look() -> int:
        raise SiteError("no")

    with pytest.raises(SiteError, match="no"):
        steady(bare_site(tmp_path), look)


@pytest.mark.parametrize("may_write", [True, False])
def test_where_it_never_stands_still_commands_wait_for_one_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, may_write: bool
) -> None:
    home = str(tmp_path)
    if not may_write:

        def refused(home: str, **options: object) -> None:
            raise SiteError("no", code="permission")

        monkeypatch.setattr("patchkit.state.lock.lock", refused)
    with lock(home):
        touched(tmp_path)
    looks: list[str] = []

    def look() -> str:
        if len(looks) < check.LOOKS:
            touched(tmp_path)

        def other() -> None:
            try:
                with lock(home, timeout=0):
                    looks.append("free")
            except SiteError as error:
                looks.append(error.code)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return looks[-1]

    assert steady(bare_site(tmp_path), look) == "locked"
    assert looks == ["free"] * check.LOOKS + ["locked"]
