"""Who looks while a command is halfway waits a little and is refused, but is never told of its half; and once."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from concurrency.arena import build, command, environment
from concurrency.test_readers import HALTED, touched
from hostile import forged
from support.sites import bare_site

from patchkit.errors import SiteError
from patchkit.model.load import load_patch
from patchkit.ops.apply import apply_site
from patchkit.ops.check import LOOKS, steady
from patchkit.state.lock import lock

READERS = [
    ("list",),
    ("show", "a-first"),
    ("diff",),
    ("revert", "--all", "--dry-run"),
    ("sync", "--dry-run"),
    ("apply", "b-shared", "--dry-run"),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A site with one patch on."""
    build(tmp_path)
    (tmp_path / "work").mkdir()
    assert said(tmp_path, "apply", "a-first").returncode == 0
    return tmp_path


def said(root: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(root, *words), env=environment(**more), cwd=root / "work", capture_output=True, text=True
    )


@contextmanager
def halfway(root: Path) -> Iterator[tuple[int, Callable[[], None]]]:
    """``revert --all`` with one of two files back; its pid, and what lets it go on and waits for its end."""
    pipe = subprocess.PIPE
    options = ["--site", str(root / "site-packages"), "--patches", str(root / "patches")]
    with subprocess.Popen(
        [sys.executable, "-c", HALTED, "m0.py", *options, "revert", "--all"],
        env=environment(),
        cwd=root / "work",
        stdin=pipe,
        stdout=pipe,
        text=True,
    ) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "here\n"

        def go_on() -> None:
            if worker.poll() is None:
                worker.communicate("go\n", timeout=60)

        try:
            yield worker.pid, go_on
        finally:
            go_on()
        assert worker.returncode == 0


def test_no_reader_tells_of_half_a_command(root: Path) -> None:
    with halfway(root) as (pid, _):
        running = f"a command is running (pid {pid})\n"
        for words in READERS:
            done = said(root, "--json", *words, PATCHKIT_WAIT="0.1")
            error = json.loads(done.stdout)["error"]
            assert (words, done.returncode, error["code"], error["pid"]) == (words, 5, "locked", pid)
            assert done.stderr.count(running) == 1
        for words in (("doctor",), ("doctor", "--deep")):
            done = said(root, "--json", *words, PATCHKIT_WAIT="0.1")
            [fact] = json.loads(done.stdout)["facts"]
            assert (done.returncode, fact["level"], fact["subject"]) == (1, "problem", "lock")
            assert f": process {pid} (" in fact["text"]
            assert done.stderr.count(running) == 1
        found = json.loads(said(root, "--json", "check", PATCHKIT_WAIT="0.1").stdout)
        assert [(patch["name"], patch["state"]) for patch in found["patches"]] == [("a-first", "applied")]


def test_a_reader_that_waited_tells_what_was_true_behind_it(root: Path) -> None:
    with (
        halfway(root) as (pid, go_on),
        subprocess.Popen(
            command(root, "--json", "list"),
            env=environment(PATCHKIT_WAIT="60", PYTHONUNBUFFERED="1"),
            cwd=root / "work",
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as reader,
    ):
        assert reader.stderr is not None
        assert reader.stderr.readline() == f"a command is running (pid {pid})\n"
        go_on()
        out, err = reader.communicate(timeout=60)
    assert reader.returncode == 0, err
    assert "is running" not in err  # once was enough
    # The shipped patches are for packages that are not there.
    states = {patch["name"]: patch["state"] for patch in json.loads(out)["patches"] if patch["state"] != "refused"}
    assert states == dict.fromkeys(["a-first", "b-shared", "c-shared", "d-alone", "e-adds"], "available")


def test_a_deep_look_says_that_a_command_came_by(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is too long to be begun again: what it found may be half of that command's."""
    from patchkit.cli.main import main
    from patchkit.ops import doctor

    site = root / "site-packages"
    real = doctor._writable
    with pytest.MonkeyPatch.context() as patch:
        for ended in (True, False):
            if ended:
                patch.setattr(doctor, "_writable", lambda seen: (touched(site), real(seen))[1])
            else:
                patch.setattr(doctor, "_writable", real)
            main(["--json", "--site", str(site), "doctor", "--deep"])
            facts = [fact["text"] for fact in json.loads(capsys.readouterr().out)["facts"]]
            assert sum(text.startswith("a command worked here meanwhile") for text in facts) == ended


def test_what_runs_is_told_of_once_though_it_goes_on_and_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = build(tmp_path)
    monkeypatch.setenv("PATCHKIT_WAIT", "0.2")
    journal = forged.journal(site, [])
    told: list[str] = []

    def note(text: str) -> None:
        told.append(text)
        os.utime(journal, ns=(len(told), len(told)))  # the other command goes on

    def reader() -> None:
        with pytest.raises(SiteError) as raised:
            apply_site(bare_site(site), [load_patch(str(tmp_path / "patches/a-first.toml"))], dry_run=True, notice=note)
        told.append(raised.value.code)

    with lock(str(site)):
        thread = threading.Thread(target=reader)
        thread.start()
        thread.join()
    assert told == [f"a command is running (pid {os.getpid()})", "locked"]


@contextmanager
def holder(home: Path) -> Iterator[int]:
    """Another process that has the lock; its pid."""
    code = "import sys\nfrom patchkit.state.lock import lock\nwith lock(sys.argv[1]): print(1, flush=True), input()"
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", code, str(home)], env=environment(), stdin=pipe, stdout=pipe, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"
        try:
            yield process.pid
        finally:
            process.communicate("\n")


def waits_for(pid: int) -> re.Pattern[str]:
    return re.compile(rf"waiting for patchkit with pid {pid} \(.*\), which has the lock")


def test_who_wants_to_write_says_whom_it_waits_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATCHKIT_WAIT", "0.2")
    told: list[str] = []
    forged.journal(tmp_path, [])
    assert steady(bare_site(tmp_path), lambda: "interrupted", wait=60.0, notice=told.append) == "interrupted"
    assert told == []
    with holder(tmp_path) as pid:
        with pytest.raises(SiteError) as raised:
            steady(bare_site(tmp_path), lambda: pytest.fail("looked"), wait=60.0, notice=told.append)
        assert (raised.value.code, raised.value.details["pid"]) == ("locked", pid)
    [text] = told
    assert waits_for(pid).fullmatch(text)


@pytest.mark.parametrize("calms", [True, False])
def test_the_moment_of_peace_is_asked_for_as_long_as_the_user_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calms: bool
) -> None:
    """Where it cannot be had, nothing is told of what kept changing."""
    monkeypatch.setenv("PATCHKIT_WAIT", "0.2")
    touched(tmp_path)
    told: list[str] = []
    looks: list[int] = []

    def look() -> int:
        looks.append(1)
        if len(looks) <= LOOKS or not calms:
            touched(tmp_path)
        return len(looks)

    with holder(tmp_path) as pid:
        if calms:
            assert steady(bare_site(tmp_path), look, notice=told.append) == LOOKS + 1
        else:
            with pytest.raises(SiteError) as raised:
                steady(bare_site(tmp_path), look, notice=told.append)
            assert raised.value.code == "locked"
    [text] = told
    assert waits_for(pid).fullmatch(text)
