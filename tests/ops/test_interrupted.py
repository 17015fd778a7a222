"""Two patchkits at once, and what an interrupted one leaves: processes of their own, stopped for good."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.bench import CORE, UTIL, Bench

ROOT = Path(__file__).resolve().parents[2]
BOTH = (
    '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'
    '[[edit]]\nfile = "demo/util.py"\nfind = "X = 1\\n"\nreplace = "X = 10\\n"\n'
    '[[add]]\nfile = "demo/new/extra.py"\ncontent = "E = 1\\n"\n'
)
#: Leaves the process for good, as ``kill -9`` does, right behind the first replacement of a file that ends so.
STOPPED = """
import os, sys
from patchkit.cli.main import main
from patchkit.state import fs

def hook(operation, path, when):
    if operation == "replace" and path.endswith(sys.argv[1]) and when == "after":
        os._exit(9)

with fs.observed(hook):
    sys.exit(main(sys.argv[2:]))
"""


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def arguments(bench: Bench, *words: str) -> list[str]:
    return ["--site", str(bench.site), "--patches", str(bench.patches), *words]


def interrupted(bench: Bench, at: str = "core.py", *words: str) -> None:
    """A site in which `apply both` was stopped behind the file ``at``."""
    bench.patch("both", BOTH)
    command = [sys.executable, "-c", STOPPED, at, *arguments(bench, *(words or ("apply", "both")))]
    done = subprocess.run(command, env=environment(), cwd=bench.root / "work", capture_output=True, text=True)
    assert done.returncode == 9, done.stderr
    assert (bench.site / ".patchkit" / "journal.json").exists()


COMMANDS = [
    ("apply", "both"),
    ("apply", "both", "--dry-run"),
    ("revert", "--all"),
    ("sync",),
    ("check",),
    ("list",),
    ("show", "both"),
    ("diff",),
    ("log",),
    ("doctor",),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_the_next_command_takes_it_back_and_says_so(bench: Bench, command: tuple[str, ...]) -> None:
    interrupted(bench)
    assert not bench.pristine()
    run = bench(*command)
    assert run.status == 0, run.err
    assert run.err.startswith("an interrupted `apply` was taken back (3 files)\n")
    assert not (bench.site / ".patchkit" / "journal.json").exists()
    if command == ("apply", "both"):
        assert bench.read("demo/core.py") == CORE.replace("x + x", "2 * x").encode()
        assert bench.read("demo/new/extra.py") == b"E = 1\n"
    else:
        assert bench.pristine()
        assert not (bench.site / "demo/new").exists()
    assert "interrupted" not in bench("check").err


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_one_that_was_committed_is_finished(bench: Bench, command: tuple[str, ...]) -> None:
    interrupted(bench, "ledger.json")
    run = bench(*command)
    assert run.status == 0, run.err
    assert run.err.startswith("an interrupted `apply` had been completed (3 files); it was tidied up\n")
    assert not (bench.site / ".patchkit" / "journal.json").exists()
    if command != ("revert", "--all"):
        assert bench.read("demo/util.py") == UTIL.replace("X = 1\r\n", "X = 10\r\n").encode()
        assert bench("check").status == 0


def test_an_interrupted_revert_is_taken_back(bench: Bench) -> None:
    bench.patch("both", BOTH)
    bench("apply", "both")
    interrupted(bench, "core.py", "revert", "both")
    run = bench("check")
    assert run.status == 0
    assert run.err == "an interrupted `revert` was taken back (3 files)\n"
    assert bench("revert", "both").status == 0
    assert bench.pristine()


def test_the_json_of_check_tells_it(bench: Bench) -> None:
    interrupted(bench)
    run = bench.json("check")
    assert run.json["notices"] == ["an interrupted `apply` was taken back (3 files)"]
    assert bench.json("check").json["notices"] == []


def test_a_file_changed_since_is_left_alone(bench: Bench) -> None:
    interrupted(bench)
    bench.write("demo/core.py", b"mine = 1\n")
    run = bench.json("apply", "both")
    assert (run.status, run.error["code"]) == (5, "interrupted")
    assert run.error["hint"]
    assert bench.read("demo/core.py") == b"mine = 1\n"
    run = bench("check")  # says what is the matter, and does not fall over it
    assert run.status == 1
    assert run.err.startswith("an interrupted command could not be taken back: apply was interrupted")
    [patch] = bench.json("check").json["patches"]
    assert (patch["name"], patch["state"], patch["site"]) == ("both", "modified", str(bench.site))
    assert [(file["path"], file["state"]) for file in patch["files"]] == [
        ("demo/core.py", "modified"),
        ("demo/util.py", "pristine"),
        ("demo/new/extra.py", "pristine"),
    ]
    assert patch["reason"].startswith("an interrupted `apply` waits to be taken back: apply was interrupted, and since")
    assert "keep a copy of what you need, put back what was there, and run the command again: cp " in patch["reason"]
    for command in (("list",), ("show", "both"), ("diff",), ("log",), ("sync",), ("revert", "--all")):
        run = bench.json(*command)
        assert (command, run.status, run.error["code"]) == (command, 5, "interrupted")
    run = bench("doctor")
    assert run.status == 1
    assert "problem journal: " in run.out


#: A process that may write nothing in the site: the tests may run as root, whom no mode bits stop.
READING = """
import os, sys
opened = os.open

def only_read(path, flags, *rest, **more):
    if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        raise PermissionError(13, "Permission denied", path)
    return opened(path, flags, *rest, **more)

os.open = only_read
from patchkit.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def reading(bench: Bench, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", READING, *arguments(bench, *words)]
    return subprocess.run(command, env=environment(), cwd=bench.root / "work", capture_output=True, text=True)


def test_a_half_written_site_that_cannot_be_written(bench: Bench) -> None:
    interrupted(bench)
    done = reading(bench, "--json", "check")
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert found["ok"] is False
    [patch] = found["patches"]
    assert (patch["name"], patch["state"], patch["applied_version"]) == ("both", "partial", None)
    assert [(file["path"], file["state"]) for file in patch["files"]] == [
        ("demo/core.py", "applied"),
        ("demo/util.py", "pristine"),
        ("demo/new/extra.py", "pristine"),
    ]
    assert patch["reason"].startswith(f"an interrupted `apply` (3 files) waits to be taken back in {bench.site}, and")
    assert patch["reason"].endswith("that takes it back, or waits for that command if it is still at work")
    assert len(found["notices"]) == 1
    done = reading(bench, "check", "both")
    assert (done.returncode, done.stdout.split("\n")[0]) == (1, "both  partial")
    for words in (("list",), ("show", "both"), ("diff",), ("log",), ("sync",), ("apply", "both", "--dry-run")):
        done = reading(bench, "--json", *words)
        assert (words, done.returncode, json.loads(done.stdout)["error"]["code"]) == (words, 5, "interrupted")
    done = reading(bench, "doctor")
    assert done.returncode == 1
    assert "problem journal: an interrupted `apply` (3 files) waits" in " ".join(done.stdout.split())


def test_a_half_taken_back_site_that_cannot_be_written(bench: Bench) -> None:
    """Interrupted in `revert`: what it had not come to is still ours."""
    bench.patch("both", BOTH)
    bench("apply", "both")
    interrupted(bench, "core.py", "revert", "both")
    done = reading(bench, "--json", "check")
    [patch] = json.loads(done.stdout)["patches"]
    assert (done.returncode, patch["state"], patch["applied_version"]) == (1, "partial", "1.0")
    assert [(file["path"], file["state"]) for file in patch["files"]] == [
        ("demo/core.py", "pristine"),
        ("demo/util.py", "applied"),
        ("demo/new/extra.py", "applied"),
    ]


def test_patches_that_share_its_files_are_half_written_as_well(bench: Bench) -> None:
    bench.patch("other", '[[edit]]\nfile = "demo/core.py"\nfind = "result = None"\nreplace = "result = 0"\n')
    bench("apply", "other")
    interrupted(bench)
    done = reading(bench, "--json", "check")
    states = [(patch["name"], patch["state"]) for patch in json.loads(done.stdout)["patches"]]
    assert (done.returncode, states) == (1, [("both", "partial"), ("other", "partial")])


def test_a_patch_that_was_named_and_needed_nothing_is_not(bench: Bench) -> None:
    bench.patch("adds", '[[add]]\nfile = "demo/other.py"\ncontent = ""\n')
    bench("apply", "adds")
    interrupted(bench, "core.py", "apply", "both", "adds")
    done = reading(bench, "--json", "check")
    states = [(patch["name"], patch["state"]) for patch in json.loads(done.stdout)["patches"]]
    assert (done.returncode, states) == (1, [("both", "partial"), ("adds", "applied")])


def test_a_completed_command_that_cannot_be_tidied_up_is_no_drift(bench: Bench) -> None:
    interrupted(bench, "ledger.json")
    done = reading(bench, "check")
    assert (done.returncode, done.stdout) == (0, "both  applied     demo 1.0\n")
    assert done.stderr.startswith("an interrupted command had been completed; tidying up waits: ")


def test_whom_one_waits_for() -> None:
    from patchkit.ops.session import waiting_text
    from patchkit.state.lock import Holder

    assert waiting_text(Holder(None, "")) == "waiting for another patchkit, which has the lock"
    assert waiting_text(Holder(7, "")) == "waiting for patchkit with pid 7, which has the lock"
    assert waiting_text(Holder(7, "patchkit sync")) == (
        "waiting for patchkit with pid 7 (patchkit sync), which has the lock"
    )


def test_two_at_once_both_succeed_in_turn(bench: Bench) -> None:
    bench.patch("one", '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n')
    bench.patch("two", '[[edit]]\nfile = "demo/core.py"\nfind = "result = None"\nreplace = "result = 0"\n')
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "patchkit", *arguments(bench, "apply", name)],
            env=environment(),
            cwd=bench.root / "work",
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("one", "two")
    ]
    results = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], results
    assert bench.read("demo/core.py") == CORE.replace("x + x", "2 * x").replace("result = None", "result = 0").encode()
    assert sorted(p["name"] for p in bench.json("check").json["patches"]) == ["one", "two"]
    assert bench("check").status == 0


def test_waiting_is_said(bench: Bench) -> None:
    """The holder lets go as soon as it reads a line; that line is written once the waiter has said that it waits."""
    bench.patch("both", BOTH)
    code = (
        "import sys\nfrom patchkit.state.lock import lock\n"
        "with lock(sys.argv[1]):\n    print('held', flush=True)\n    sys.stdin.readline()\n"
    )
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", code, str(bench.site)], env=environment(), stdin=pipe, stdout=pipe, text=True
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with subprocess.Popen(
            [sys.executable, "-m", "patchkit", *arguments(bench, "apply", "both")],
            env={**environment(), "PYTHONUNBUFFERED": "1"},
            cwd=bench.root / "work",
            stdout=pipe,
            stderr=pipe,
            text=True,
        ) as waiter:
            assert waiter.stderr is not None
            said = waiter.stderr.readline()
            assert said.startswith(f"waiting for patchkit with pid {holder.pid} (")
            holder.stdin.write("go\n")
            holder.stdin.flush()
            assert waiter.wait(timeout=60) == 0
    assert bench("check").status == 0


def test_a_reader_needs_no_lock(bench: Bench) -> None:
    from patchkit.state.lock import lock

    with lock(str(bench.site)):
        done = subprocess.run(
            [sys.executable, "-m", "patchkit", *arguments(bench, "check")],
            env=environment(),
            cwd=bench.root / "work",
            capture_output=True,
            timeout=60,
        )
    assert done.returncode == 0


#: Stops behind the first replacement of a file, with the lock, until a line comes on stdin.
HALTED = """
import sys
from patchkit.cli.main import main
from patchkit.state import fs

def hook(operation, path, when):
    if operation == "replace" and path.endswith("core.py") and when == "after":
        print("here", flush=True)
        sys.stdin.readline()

with fs.observed(hook):
    sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("command", ["apply", "revert"])
def test_readers_say_that_a_command_is_at_work(bench: Bench, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATCHKIT_WAIT", "0.1")
    bench.patch("both", BOTH)
    bench.project("both")
    if command == "revert":
        bench("apply", "both")
    before = "applied" if command == "revert" else "absent"
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", HALTED, *arguments(bench, command, "both")],
        env=environment(),
        cwd=bench.root / "work",
        stdin=pipe,
        stdout=pipe,
        text=True,
    ) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        assert worker.stdout.readline() == "here\n"
        try:
            run = bench.json("check")
            assert [patch["state"] for patch in run.json["patches"]] == [before]
            assert run.json["notices"] == [f"a command is running (pid {worker.pid})"]
            for reader in (("list",), ("show", "both"), ("diff",), ("log",), ("apply", "both", "--dry-run")):
                run = bench(*reader)
                assert f"a command is running (pid {worker.pid})\n" in run.err, reader
                assert (reader, run.status) == (reader, 0 if reader == ("log",) else 5)
        finally:
            worker.stdin.write("go\n")
            worker.stdin.flush()
        assert worker.wait(timeout=60) == 0
    assert bench.json("check").json["notices"] == []
    [patch] = bench.json("check").json["patches"]
    assert patch["state"] == ("absent" if command == "revert" else "applied")
