"""Many real processes on one site, some of them killed: nothing is torn, and nobody is told what never was."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from concurrency.arena import PATCHES, assert_whole, build, command, environment

#: Commands in all; PATCHKIT_TEST_COMMANDS=3000 for a long run by hand.
COMMANDS = int(os.environ.get("PATCHKIT_TEST_COMMANDS", "100"))
TURNS = max(COMMANDS // 8, 8)
WORKERS = 5
KILLED = 0.3
#: Whom one waits for: never a dead process without a word on it.
WAITING = re.compile(r"waiting for patchkit with pid \d+ \(patchkit --site .*\), which has the lock")


class Done:
    """One command: its words, status, whether it was killed, and what it said."""

    def __init__(self, words: list[str], status: int, killed: bool, out: str, err: str) -> None:
        self.words, self.status, self.killed, self.out, self.err = words, status, killed, out, err

    def __repr__(self) -> str:
        return f"{self.words} -> {self.status}\n{self.out}\n{self.err}"


def words(chance: random.Random) -> list[str]:
    names = chance.sample(sorted(PATCHES), chance.randint(1, 3))
    kind = chance.choice(["apply", "apply", "apply", "revert", "revert", "sync", "check", "dry", "diff", "list"])
    if kind in ("sync", "check", "diff", "list"):
        return [kind]
    if kind == "dry":
        return ["apply", *names, "--dry-run"]
    return [kind, *names] if kind == "apply" or chance.random() < 0.8 else ["revert", "--all"]


def work(root: Path, seed: int, count: int, done: list[Done]) -> None:
    chance = random.Random(seed)
    for _ in range(count):
        chosen = words(chance)
        process = subprocess.Popen(
            command(root, *chosen),
            env=environment(),
            cwd=root / "work",
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        killed = chance.random() < KILLED
        if killed:
            time.sleep(chance.uniform(0.05, 0.6))
            process.kill()
        out, err = process.communicate(timeout=120)
        done.append(Done(chosen, process.returncode, killed and process.returncode == -9, out, err))


def start_readers(root: Path, *kinds: str) -> list[subprocess.Popen[str]]:
    """Programs of readers.py, each in its loop by now."""
    site, patches = str(root / "site-packages"), str(root / "patches")
    readers = [
        subprocess.Popen(
            [sys.executable, str(Path(__file__).parent / "readers.py"), kind, site, patches],
            env=environment(),
            cwd=root / "work",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for kind in kinds
    ]
    for reader in readers:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "reading\n"
    return readers


def results(readers: list[subprocess.Popen[str]]) -> list[dict[str, Any]]:
    """What each saw until now."""
    return [json.loads(reader.communicate("stop\n", timeout=60)[0]) for reader in readers]


def test_check_sees_a_command_done_or_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two patches on four files go on and off together: check never sees one of them, nor a file between."""
    build(tmp_path)
    (tmp_path / "work").mkdir()
    both = ["a-first", "c-shared"]
    readers = start_readers(tmp_path, "check", "see")
    for number in range(TURNS):
        turn = ["revert", "--all"] if number % 2 else ["apply", *both]
        done = subprocess.run(
            command(tmp_path, *turn), env=environment(), cwd=tmp_path / "work", capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
    found = results(readers)
    with capsys.disabled():
        rounds = [one["rounds"] for one in found]
        print(f"\nalternation: {TURNS} commands, {rounds[0]} checks with and {rounds[1]} without a right to write")
    for one in found:
        assert one["rounds"] > 0
        assert one["wrong"] == []
        assert [sorted(names) for names in one["seen"]] in ([[], both], [both], [[]])


def test_many_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site = build(tmp_path)
    (tmp_path / "work").mkdir()
    readers = start_readers(tmp_path, "source", "check")
    done: list[Done] = []
    threads = [
        threading.Thread(target=work, args=(tmp_path, seed, COMMANDS // WORKERS, done)) for seed in range(WORKERS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = results(readers)
    last = subprocess.run(
        command(tmp_path, "check"), env=environment(), cwd=tmp_path / "work", capture_output=True, text=True
    )
    assert last.returncode == 0, last.stdout + last.stderr
    applied = assert_whole(site)

    waits = [text for one in done for text in one.err.splitlines() if text.startswith("waiting for ")]
    statuses = Counter(one.status for one in done)
    killed = sum(one.killed for one in done)
    with capsys.disabled():
        print(
            f"\nconcurrency: {len(done)} commands of {WORKERS} workers, {killed} killed; statuses {dict(statuses)}; "
            f"source reader {found[0]['rounds']} rounds, check reader {found[1]['rounds']} rounds, "
            f"{len(found[1]['seen'])} sets of applied patches seen; {len(waits)} waits said; {len(applied)} on"
        )
    strange = [one for one in done if not one.killed and one.status not in (0, 1)]
    assert strange == []
    assert [text for text in waits if not WAITING.fullmatch(text)] == []
    for one in done:
        assert "Traceback" not in one.err, one
        if one.status == 1:
            assert one.words == ["check"]
    assert killed > 0
    assert [one["rounds"] > 0 for one in found] == [True, True]
    assert [one["wrong"] for one in found] == [[], []]
