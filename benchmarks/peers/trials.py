"""What is measured of each tool; every row is made of fresh environments, and of what their files hold afterwards."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from rivals import Command, Tool
from scene import BASE, LAST, NEXT, RUNNER, Case, Change, Stage, files_of, guarded, many, one, state, wheel

VERBS = ("apply", "check", "revert")
PATIENCE = 120.0
"""Seconds for one command."""


class Ran(NamedTuple):
    """How a command ended: its status (None: killed), its CPU time and its wall time in seconds."""

    status: int | None
    cpu: float
    wall: float


def environment(command: Command) -> dict[str, str]:
    """What a command is started with: nothing of the caller's Python."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PATCHKIT_")) and k != "VIRTUAL_ENV"}
    return {**kept, "LC_ALL": "C.UTF-8", **command.environment}


def run(command: Command, *, kill_after: float | None = None) -> Ran:
    """Run it; ``kill_after`` ends its whole process group with SIGKILL after so many seconds."""
    begun = time.monotonic()
    with subprocess.Popen(
        command.words,
        cwd=command.folder,
        env=environment(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        if kill_after is not None:
            try:
                process.wait(kill_after)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return Ran(None, 0.0, time.monotonic() - begun)
        _, ended, usage = os.wait4(process.pid, 0) if process.returncode is None else (0, 0, None)
        if process.returncode is None:
            process.returncode = os.waitstatus_to_exitcode(ended)
    cpu = 0.0 if usage is None else usage.ru_utime + usage.ru_stime
    return Ran(process.returncode, cpu, time.monotonic() - begun)


class Bench:
    """The stage, the changes, and how often."""

    def __init__(self, stage: Stage, rounds: int, kills: int, say: Callable[[str], None]) -> None:
        self.stage, self.rounds, self.kills, self.say = stage, rounds, kills, say
        self.files = {version: files_of(wheel(version, stage.cache)) for version in (BASE, NEXT, LAST)}
        self.changes = (one(self.files[BASE], BASE), many(self.files[BASE], BASE))

    def case(self, tool: Tool, change: Change, version: str = BASE) -> Case:
        """A new environment with the tool in it and the change in its project."""
        case = self.stage.case(version)
        tool.prepare(case)
        tool.lay(case, change)
        return case

    def times(self, tool: Tool) -> dict[tuple[str, str], float | None]:
        """CPU seconds by verb and change, the least of the rounds; None where the verb failed or left other bytes."""
        found: dict[tuple[str, str], float | None] = {}
        wanted = {"apply": "new", "check": "new", "revert": "old"}
        for change in self.changes:
            for number in range(self.rounds):
                self.say(f"{tool.name}: {change.name}, round {number + 1} of {self.rounds}")
                case = self.case(tool, change)
                for verb in VERBS:
                    command = getattr(tool, verb)(case, change)
                    if command is None:
                        continue
                    ran = run(command)
                    key = (verb, change.name)
                    if ran.status != 0 or state(case, change) != wanted[verb]:
                        found[key] = None
                        break
                    before = found.get(key)
                    found[key] = ran.cpu if before is None else min(before, ran.cpu)
                self.stage.drop(case)
        return found

    def killed(self, tool: Tool) -> tuple[Counter[str], Counter[str]]:
        """What an apply of many files leaves when it is killed on the way, and what the next one makes of that."""
        change = self.changes[1]
        case = self.case(tool, change)
        whole = run(tool.apply(case, change)).wall
        self.stage.drop(case)
        chance = random.Random(1)
        after: Counter[str] = Counter()
        again: Counter[str] = Counter()
        while sum(after.values()) < self.kills:
            self.say(f"{tool.name}: killed {sum(after.values())} of {self.kills}")
            case = self.case(tool, change)
            ran = run(tool.apply(case, change), kill_after=whole * chance.uniform(0.2, 1.0))
            if ran.status is None:
                after[state(case, change)] += 1
                status = run(tool.apply(case, change)).status
                again["healed" if status == 0 and state(case, change) == "new" else "stuck"] += 1
            self.stage.drop(case)
        return after, again

    def twin(self, tool: Tool) -> str:
        """Whether a hard link to the patched file, such as that of uv's cache, keeps its bytes."""
        change = self.changes[0]
        case = self.case(tool, change)
        twin = os.path.join(case.root, "twin")
        os.link(os.path.realpath(os.path.join(case.site, RUNNER)), twin)
        run(tool.apply(case, change))
        with open(twin, "rb") as file:
            kept = file.read() == change.before[RUNNER]
        self.stage.drop(case)
        return "kept" if kept else "CHANGED"

    def put_back(self, tool: Tool) -> str:
        """What its check says after somebody put the original file back: status 0 is "all is well"."""
        change = self.changes[0]
        case = self.case(tool, change)
        command = tool.check(case, change)
        if command is None:
            self.stage.drop(case)
            return "no check"
        run(tool.apply(case, change))
        with open(os.path.join(case.site, RUNNER), "wb") as file:
            file.write(change.before[RUNNER])
        status = run(command).status
        self.stage.drop(case)
        return "noticed" if status else "NOT noticed"

    def edited(self, tool: Tool) -> str:
        """What becomes of a hand edit elsewhere in the file, made after the apply, when the patch is taken back."""
        change = self.changes[0]
        case = self.case(tool, change)
        command = tool.revert(case, change)
        if command is None:
            self.stage.drop(case)
            return "no revert"
        run(tool.apply(case, change))
        path = os.path.join(case.site, RUNNER)
        with open(path, "ab") as file:
            file.write(b"# mine\n")
        ran = run(command)
        with open(path, "rb") as file:
            data = file.read()
        self.stage.drop(case)
        if data == change.before[RUNNER] + b"# mine\n":
            return "kept"
        if ran.status and data == change.after[RUNNER] + b"# mine\n":
            return "refused"
        return "LOST" if b"# mine" not in data else "kept, PATCH STAYS"

    def upgraded(self, tool: Tool, version: str) -> str:
        """What the patch of the first release does on a later one, whose version it is renamed to where that counts."""
        change = self.changes[0]
        case = self.case(tool, change, version)
        path = os.path.join(case.site, RUNNER)
        original = self.files[version][RUNNER]
        command = tool.apply(case, change._replace(version=version))
        status = run(command).status
        with open(path, "rb") as file:
            data = file.read()
        self.stage.drop(case)
        if data == guarded(original):
            return "right" if status == 0 else "right, and failed"
        if data == original:
            return "refused" if status else "NOTHING, status 0"
        return "WRONG"


def relative(times: Mapping[str, dict[tuple[str, str], float | None]], key: tuple[str, str]) -> dict[str, str]:
    """A column of times as multiples of patchkit's own."""
    own = times["patchkit"].get(key)
    column = {}
    for name, found in times.items():
        value = found.get(key, -1.0)
        if value is None:
            column[name] = "failed"
        elif value < 0 or not own:
            column[name] = "-"
        else:
            column[name] = f"{value / own:.2f}x"
    return column
