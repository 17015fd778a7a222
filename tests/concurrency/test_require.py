"""A process that starts while a command writes waits for that command instead of refusing to start."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest
from concurrency.arena import build, command, environment
from concurrency.test_readers import HALTED

import patchkit
from patchkit.errors import SiteError


@pytest.fixture
def halted(tmp_path: Path) -> subprocess.Popen[str]:
    """A command that lays a second patch on a file of the first, stopped behind that file."""
    site = build(tmp_path)
    work = tmp_path / "work"
    work.mkdir()
    first = subprocess.run(command(tmp_path, "apply", "a-first"), env=environment(), cwd=work, capture_output=True)
    assert first.returncode == 0
    options = ["--site", str(site), "--patches", str(tmp_path / "patches"), "apply", "b-shared"]
    pipe = subprocess.PIPE
    worker = subprocess.Popen(
        [sys.executable, "-c", HALTED, "m0.py", *options],
        env=environment(),
        cwd=work,
        stdin=pipe,
        stdout=pipe,
        text=True,
    )
    assert worker.stdout is not None
    assert worker.stdout.readline() == "here\n"
    return worker


def test_a_patch_that_is_laid_anew_counts_as_applied(
    tmp_path: Path, halted: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("patchkit.runtime.require.BUSY_SECONDS", 30.0)
    release = threading.Timer(0.3, halted.communicate, ["go\n"])
    release.start()
    try:
        patchkit.require("a-first", site=str(tmp_path / "site-packages"))
    finally:
        release.join()
    assert halted.returncode == 0
    patchkit.require("a-first", "b-shared", site=str(tmp_path / "site-packages"))


def test_not_for_ever(tmp_path: Path, halted: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("patchkit.runtime.require.BUSY_SECONDS", 0.2)
    try:
        with pytest.raises(SiteError) as raised:
            patchkit.require("a-first", site=str(tmp_path / "site-packages"))
    finally:
        halted.kill()
        halted.communicate()
    assert raised.value.code == "not-applied"


@pytest.mark.parametrize("lock", ["there", "gone"])
def test_nobody_waits_for_a_dead_command(
    tmp_path: Path, halted: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch, lock: str
) -> None:
    """Its journal stays until somebody takes it back, and every process that starts meanwhile would wait."""
    halted.kill()
    halted.communicate()
    site = tmp_path / "site-packages"
    assert (site / ".patchkit/journal.json").exists()
    if lock == "gone":
        (site / ".patchkit/lock").unlink()
    monkeypatch.setattr("time.sleep", lambda seconds: pytest.fail("waits"))
    with pytest.raises(SiteError) as raised:
        patchkit.require("a-first", site=str(site))
    assert raised.value.code == "not-applied"
