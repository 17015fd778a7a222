"""Two patchkits at once, and what an interrupted one leaves: processes of their own, stopped for good."""

from __future__ import annotations

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
    assert run.err.startswith("an interrupted command could not be taken back: apply was interrupted")
    run = bench("doctor")
    assert run.status == 1
    assert "problem journal: " in run.out


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
