"""Real ``python -m patchkit`` processes, stopped or failed from outside, and compared with what the seam sees.

    PYTHONPATH=tests python -m faults.real --kills 25 --failures 25 --times 6

For each of apply, revert and sync: every system call that changes a file of the site happens within a step of
``patchkit/state/fs.py``; SIGKILL at the entry of chosen calls; chosen calls return ENOSPC, EIO, EROFS or EACCES; and
SIGKILL at chosen times, which no tracer is needed for.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from faults import tracing
from faults.case import Case, copy
from faults.engine import ERRNOS, EXCUSED, NEXT, SCENARIOS, Fault, Judge, Scenario, ready

ROOT = Path(__file__).absolute().parents[2]
#: Tells of every step through a descriptor that the tracer sees, before and behind it.
TELLING = """
import os, sys
from patchkit.cli.main import main
from patchkit.state import fs

os.dup2(os.open(os.devnull, os.O_WRONLY), 99)
with fs.observed(lambda operation, path, when: os.write(99, f"{when} {operation} {path}".encode())):
    sys.exit(main(sys.argv[1:]))
"""
#: What may change without a step: the lock says who holds it, and the step names of what comes before its first file.
UNSEEN = ("/.patchkit/lock",)


def environment(root: Path) -> dict[str, str]:
    """That of a traced process: the checkout's patchkit, no bytecode written, a cache of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PATCHKIT", "VIRTUAL"))}
    return {
        **kept,
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "PATCHKIT_CACHE": str(root / "user-cache"),
    }


def traced(
    case: Case, scenario: Scenario, decide: tracing.Decide, start: Sequence[str]
) -> tuple[tracing.Ended, str, str]:
    """The scenario's command under the tracer, and what it printed."""
    out, err = case.root / "out", case.root / "err"
    ended = tracing.trace(
        [sys.executable, *start, *case.arguments("--json", *scenario.argv)],
        cwd=str(case.work),
        env=environment(case.root),
        out=str(out),
        err=str(err),
        below=str(case.site),
        decide=decide,
    )
    return ended, out.read_text(), err.read_text()


def unseen(case: Case, calls: Sequence[tracing.Call]) -> tuple[int, list[str]]:
    """How many calls changed the site, and those that no step was open for, or that changed anything else."""
    open_steps, count, found = 0, 0, []
    for call in calls:
        if call.path == os.devnull:
            word = call.data.partition(b" ")[0]
            open_steps += (word == b"before") - (word == b"after")
            # A step that fails (removing what is not there) has no "after": the next one begins all the same.
            open_steps = min(open_steps, 1)
        elif call.path.startswith(str(case.site)):
            count += 1
            if not open_steps and not call.path.endswith(UNSEEN):
                found.append(f"{call.name} {call.path}")
        elif call.path not in (str(case.root / "out"), str(case.root / "err")):
            found.append(f"outside of the site: {call.name} {call.path}")
    return count, found


class Runs:
    """The runs on copies of one case, and what was wrong."""

    def __init__(self, root: Path, scenario: Scenario, files: int, chance: random.Random) -> None:
        self.root, self.scenario, self.chance = root, scenario, chance
        self.ready = ready(root / f"{scenario.name}-ready", scenario, files)
        self.bad: list[str] = []
        self.tried = 0
        self._number = 0

    def fresh(self) -> Case:
        """A copy to work on."""
        self._number += 1
        return copy(self.ready, self.root / f"{self.scenario.name}-{self._number}")

    def judge(self, case: Case, label: str, failed: tuple[Fault, str, tuple[int, str, str]] | None = None) -> None:
        """Judge what was left by the next command, of any kind."""
        self.tried += 1
        judge = Judge(case, self.scenario)
        words = self.chance.choice(NEXT)
        problem = None
        if failed is not None:
            fault, name, ended = failed
            if fault.kind == "EACCES":
                judge.excused = EXCUSED.get(name, "")
            problem = judge.failed(fault, *ended)
        problem = problem or judge.next_command(words)[1]
        if problem is not None:
            self.bad.append(f"{self.scenario.name} {label}, then {' '.join(words)}: {problem}")
        shutil.rmtree(case.root)

    def count(self) -> list[tracing.Call]:
        """The calls on the site of an undisturbed run."""
        case = self.fresh()
        ended, _, err = traced(case, self.scenario, lambda call: None, ("-m", "patchkit"))
        assert ended.status == 0, err
        shutil.rmtree(case.root)
        return [call for call in ended.calls if call.path.startswith(str(case.site))]

    def stop_at(self, number: int, decision: int) -> None:
        """SIGKILL (0) or an errno at the entry of the ``number``-th call."""
        count, at = 0, tracing.Call("", "", b"")

        def decide(call: tracing.Call) -> int | None:
            nonlocal count, at
            count += 1
            if count == number:
                at = call
                return decision
            return None

        case = self.fresh()
        ended, out, err = traced(case, self.scenario, decide, ("-m", "patchkit"))
        assert count >= number, err
        label = f"{errno.errorcode.get(decision, 'killed')} at call {number} ({at.name} {at.path})"
        if decision:
            self.judge(case, label, (Fault(errno.errorcode[decision]), at.name, (ended.status, out, err)))
        else:
            assert ended.status == -signal.SIGKILL, (label, ended.status)
            self.judge(case, label)

    def kill_after(self, seconds: float) -> None:
        """SIGKILL a process after so long; no tracer."""
        case = self.fresh()
        command = [sys.executable, "-m", "patchkit", *case.arguments(*self.scenario.argv)]
        null = subprocess.DEVNULL
        process = subprocess.Popen(command, cwd=case.work, env=environment(case.root), stdout=null, stderr=null)
        time.sleep(seconds)
        process.kill()
        process.wait()
        self.judge(case, f"killed after {seconds * 1000:.0f} ms")

    def duration(self) -> float:
        """How long an undisturbed process takes."""
        case = self.fresh()
        command = [sys.executable, "-m", "patchkit", *case.arguments(*self.scenario.argv)]
        begun = time.monotonic()
        subprocess.run(command, cwd=case.work, env=environment(case.root), capture_output=True, check=True)
        shutil.rmtree(case.root)
        return time.monotonic() - begun


def main(words: Sequence[str] | None = None) -> int:
    """The command line; 0 where nothing was wrong, 77 where nothing can be traced."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--commands", default="apply,revert,sync")
    parser.add_argument("--kills", type=int, default=8, help="for each command; 0: at every call")
    parser.add_argument("--failures", type=int, default=8, help="for each command; 0: each errno at every call")
    parser.add_argument("--times", type=int, default=2, help="kills at some time, for each command")
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--folder", help="where to work; emptied at the end (default: a temporary one)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    options = parser.parse_args(words)
    reason = tracing.unable()
    if reason is not None:
        print(reason)
        return tracing.REFUSED
    root = Path(tempfile.mkdtemp(dir=options.folder)).resolve()
    os.environ["PATCHKIT_CACHE"] = str(root / "user-cache")
    chance = random.Random(options.seed)
    rows: list[tuple[str, int, int, int, int]] = []
    bad: list[str] = []
    missed: list[str] = []
    try:
        for name in options.commands.split(","):
            runs = Runs(root, SCENARIOS[name], options.files, chance)
            case = runs.fresh()
            ended, _, err = traced(case, runs.scenario, lambda call: None, ("-c", TELLING))
            assert ended.status == 0, err
            seen, found = unseen(case, ended.calls)
            missed += [f"{name}: {text}" for text in found]
            calls = len(runs.count())
            every = range(1, calls + 1)
            numbers = [getattr(errno, word) for word in ERRNOS]
            kills = chance.sample(every, options.kills) if options.kills else list(every)
            for number in kills:
                runs.stop_at(number, 0)
            pairs = [(number, code) for number in every for code in numbers]
            failures = chance.sample(pairs, options.failures) if options.failures else pairs
            for number, code in failures:
                runs.stop_at(number, code)
            length = runs.duration()
            for _ in range(options.times):
                runs.kill_after(chance.uniform(0.3, 1.0) * length)  # before that it only imports
            rows.append((name, seen, len(kills), len(failures), options.times))
            bad += runs.bad
    finally:
        shutil.rmtree(root, ignore_errors=True)
    if options.json:
        print(json.dumps({"rows": rows, "bad": bad, "missed": missed}))
    else:
        for row in rows:
            print("{}: {} calls, killed at {}, failed at {}, killed at {} times".format(*row))
        print("\n".join(["outside of the seam:", *(missed or ["nothing"]), "wrong:", *(bad or ["nothing"])]))
    return 1 if bad or missed else 0


if __name__ == "__main__":
    sys.exit(main())
