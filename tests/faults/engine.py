"""Every fault at every step of one command, out of one run of it.

The *spine* is the command, run once in this process on the site. Before each step that it makes on the disk it stops,
and the site is swapped (by renaming, so that no inode and no time of the spine's own files changes) for a copy of
itself. A forked child continues there: as if the spine had been killed at that point, or with the step failing. The
child judges what it finds, runs the next command, judges again, and reports. Then the spine's site is put back.

:mod:`faults.mirror` makes the copies.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import io
import json
import os
import signal
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn

from faults.case import WANTED, Case, Node, applied_by_ledger, build, strays, wrong_records
from faults.mirror import Mirror

from patchkit.cli.main import main
from patchkit.state import fs

ERRNOS = ("ENOSPC", "EIO", "EROFS", "EACCES")
PATCHES = ("alpha", "beta", "gamma")
READERS: tuple[tuple[str, ...], ...] = (
    ("check",),
    ("list",),
    ("diff",),
    ("doctor",),
    ("log",),
    ("show", "alpha"),
    ("apply", *PATCHES, "--dry-run"),
    ("revert", "--all", "--dry-run"),
    ("sync", "--dry-run"),
)
WRITERS: tuple[tuple[str, ...], ...] = (("apply", *PATCHES), ("revert", "--all"), ("sync",))
NEXT = tuple(
    command for index, reader in enumerate(READERS) for command in (reader, (*WRITERS, ("check", "--json"))[index % 4])
)
#: The steps that want room on the disk, and those that change nothing.
ALLOCATING = frozenset({"create", "write", "mkdir", "symlink", "append", "setxattr", "fsync", "fsync-dir"})
READING = frozenset({"read"})
UNCHANGING = frozenset({"read", "fsync", "fsync-dir"})

#: What may be left of a step that is refused once with EACCES, by the step and by the system call.
EXCUSED = {"rmdir": "directory", "unlinkat": "directory", "setxattr": "attribute"}


class Fault(NamedTuple):
    """``kill``, or the name of an errno; ``sticky``: every later step that it concerns fails as well."""

    kind: str
    sticky: bool = False

    def __str__(self) -> str:
        return self.kind + (" for ever" if self.sticky else "")


KILL = Fault("kill")
FAULTS = (KILL, *(Fault(name) for name in ERRNOS), *(Fault(name, sticky=True) for name in ERRNOS))


class Point(NamedTuple):
    """One thing tried: a fault at a step of a command, and the next command."""

    command: str
    step: int
    operation: str
    path: str
    fault: str
    then: str
    side: str
    problem: str


class Scenario(NamedTuple):
    """A command, the patches applied before it, and after."""

    name: str
    argv: tuple[str, ...]
    before: frozenset[str]
    after: frozenset[str]


SCENARIOS = {
    "apply": Scenario("apply", WRITERS[0], frozenset(), WANTED),
    "revert": Scenario("revert", WRITERS[1], WANTED, frozenset()),
    "sync": Scenario("sync", WRITERS[2], frozenset({"alpha", "zeta"}), WANTED),
}


def ready(root: Path, scenario: Scenario, files: int) -> Case:
    """A case in the state before ``scenario``."""
    case = build(root, files)
    if scenario.before:
        status, _, err = run(case, ["apply", *sorted(scenario.before)])
        assert status == 0, err
    problem = whole(case, scenario.before)
    assert problem is None, problem
    return case


def warm(root: Path) -> None:
    """Import all that any command imports, so that no child has to; and let collections alone what is shared."""
    case = build(root, 6)
    for words in (*WRITERS, *READERS, ("check", "--json"), WRITERS[1]):
        status, _, err = run(case, words)
        assert status == 0, err
    gc.collect()
    gc.freeze()
    gc.disable()


def run(case: Case, words: Sequence[str]) -> tuple[int, str, str]:
    """A command line in this process: its status, what went to stdout, what to stderr."""
    out, err = io.StringIO(), io.StringIO()
    os.chdir(case.work)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(case.arguments(*words))
    return status, out.getvalue(), err.getvalue()


def differences(case: Case, expected: dict[str, Node], excused: str = "") -> list[str]:
    """The files that are not as expected, and how."""
    found = case.present()
    wrong = []
    for key in sorted({*found, *expected}):
        now, then = found.get(key), expected.get(key)
        if now is None or then is None:
            wrong.append(f"{key}: {'missing' if now is None else 'there'}")
        elif now.data != then.data:
            wrong.append(f"{key}: other bytes")
        elif (now.mode, now.link) != (then.mode, then.link) and not (excused == "link" and now.link is None):
            wrong.append(f"{key}: mode {now.mode:o}, link {now.link}; not {then.mode:o}, {then.link}")
        elif now.tag != then.tag and not (excused == "attribute" and now.tag is None):
            wrong.append(f"{key}: its extended attribute is {now.tag!r}")
        elif then.mtime_ns is not None and now.mtime_ns != then.mtime_ns:
            wrong.append(f"{key}: modified at {now.mtime_ns}, not {then.mtime_ns}")
    return wrong


def whole(case: Case, patches: frozenset[str], excused: str = "") -> str | None:
    """What is wrong with a site that holds exactly ``patches`` and is at rest; None: nothing.

    Excused may be a ``directory`` that could not be removed and is left, empty; an extended ``attribute`` that could
    not be set; and a ``link`` whose target could not be read, so that a regular file with its bytes was put back.
    """
    wrong = differences(case, case.expected(patches), excused)
    recorded = applied_by_ledger(case)
    if recorded != patches:
        wrong.append(f"the ledger names {sorted(recorded)}")
    wrong += [path for path in strays(case) if not (excused == "directory" and os.path.isdir(path))]
    if (case.site / ".patchkit" / "journal.json").exists():
        wrong.append("a journal is left")
    if not patches:
        wrong += [f"RECORD: {path}" for path in wrong_records(case)]
    twin = (case.root / "cache" / "twin.py").read_bytes()
    if twin != case.expected(())[case.key(4)].data:
        wrong.append("the hard-linked twin outside of the site was written to")
    return "; ".join(wrong[:6]) or None


def torn(case: Case, scenario: Scenario) -> str | None:
    """What is neither wholly old nor wholly new of a site that was left at any point."""
    found = case.present()
    old, new = case.expected(scenario.before), case.expected(scenario.after)
    sides = [{key: node.data for key, node in side.items()} for side in (old, new)]
    wrong = [
        f"{key}: neither old nor new"
        for key in {*old, *new, *found}
        if (found[key].data if key in found else None) not in (sides[0].get(key), sides[1].get(key))
        and not key.endswith(".tmp")
    ]
    return "; ".join(wrong[:6]) or None


def after(words: Sequence[str], side: frozenset[str]) -> frozenset[str]:
    """What is applied after the command ``words`` on a site with ``side`` applied."""
    if "--dry-run" in words:
        return side
    if words[0] == "apply":
        return side | set(PATCHES)
    return frozenset() if words[0] == "revert" else WANTED if words[0] == "sync" else side


def replay(case: Case, scenario: Scenario, step: int, fault: Fault) -> str | None:
    """The command with one step failing, in this process and without copies; what is wrong then; None: nothing."""
    count = 0
    judge = Judge(case, scenario)

    def hook(operation: str, path: str, when: str) -> None:
        nonlocal count
        count += when == "before"
        if count == step and when == "before":
            judge.excused = (
                "link" if operation == "read" else EXCUSED.get(operation, "") if fault.kind == "EACCES" else ""
            )
            raise _error(fault, path)

    with fs.observed(hook):
        status, out, err = run(case, ["--json", *scenario.argv])
    return judge.failed(fault, status, out, err) or judge.next_command(("check",))[1]


class Judge:
    """What a child does with the site that a fault left."""

    def __init__(self, case: Case, scenario: Scenario) -> None:
        self.case, self.scenario = case, scenario
        self.went_on = False
        self.recovering = False  # the command is one that takes another back
        self.excused = ""

    def next_command(self, words: Sequence[str]) -> tuple[str, str | None]:
        """Look at what was left, run the next command and look again: which side it was, and what is wrong."""
        case, scenario = self.case, self.scenario
        problem = torn(case, scenario)
        if problem is not None:
            return "torn", problem
        tx = tx_of_journal(case)
        pending = tx is not None
        new = tx == tx_of_ledger(case) if pending else applied_by_name(case) == scenario.after
        side = scenario.after if new else scenario.before
        status, out, err = run(case, words)
        said = json.loads(out).get("notices", []) if "--json" in words else [err]
        told = "had been completed" if new else "was taken back"
        if pending and not any(told in text for text in said):
            return "", f"{' '.join(words)} did not say that the command {told}: {out} {err}"
        if not pending and any("interrupted" in text for text in said):
            return "", f"{' '.join(words)} spoke of an interrupted command: {err}"
        wanted = after(words, side)
        drifted = words[0] == "check" and not side >= WANTED
        if status != int(drifted):
            return "", f"{' '.join(words)} ended with {status}: {out[-600:]} {err[-600:]}"
        problem = whole(case, wanted, self.excused)
        if problem is None and words in WRITERS and wanted != side:
            problem = "; ".join(leftovers(case)) or None
        return ("new" if new else "old"), problem

    def failed(self, fault: Fault, status: int, out: str, err: str) -> str | None:
        """What is wrong with how the command ended in which a step failed with ``fault``; None: nothing."""
        case, scenario = self.case, self.scenario
        if self.recovering:
            return self._recovery_failed(fault, status, out, err)
        pending = (case.site / ".patchkit" / "journal.json").exists()
        if status not in (0, 5):
            return f"ended with {status}: {out[-600:]} {err[-1200:]}"
        answer = json.loads(out)
        if status == 0:  # the step was one that nothing depends on, or came after the decision
            return self._at_rest(scenario.after, pending)
        details = answer["error"]
        if details["code"] == "changed":
            # The failure was of no consequence, and the command went on, in the copy: it has other inodes than the
            # files that were planned, and the command refuses them. Such points are tried again (`replay`).
            self.went_on = True
            return self._at_rest(scenario.before, pending)
        if fault.kind not in json.dumps(details) and os.strerror(getattr(errno, fault.kind)) not in details["message"]:
            return f"the message names no {fault.kind}: {details}"
        if not details["hint"]:
            return f"no hint: {details}"
        if fault.sticky:
            return None
        return self._at_rest(scenario.after if details.get("committed") else scenario.before, pending)

    def _recovery_failed(self, fault: Fault, status: int, out: str, err: str) -> str | None:
        if status not in (0, 1, 5):
            return f"ended with {status}: {out[-600:]} {err[-1200:]}"
        waits = tx_of_journal(self.case) not in (None, tx_of_ledger(self.case))
        if waits and os.strerror(getattr(errno, fault.kind)) not in out + err:
            return f"what was interrupted is still there, and {fault.kind} was not told: {out[-600:]} {err[-1200:]}"
        return torn(self.case, self.scenario)

    def _at_rest(self, patches: frozenset[str], pending: bool) -> str | None:
        if pending and tx_of_journal(self.case) == tx_of_ledger(self.case):
            # Committed, and only tidying up failed: all is in place but the journal.
            return "; ".join(differences(self.case, self.case.expected(patches), self.excused)[:6]) or None
        return whole(self.case, patches, self.excused)


def applied_by_name(case: Case) -> frozenset[str]:
    """The patches that the ledger names, whatever the files hold."""
    path = case.site / ".patchkit" / "ledger.json"
    return frozenset(p["name"] for p in json.loads(path.read_bytes())["patches"]) if path.exists() else frozenset()


def tx_of_journal(case: Case) -> str | None:
    """The transaction that is not ended yet, of a journal that is there."""
    path = case.site / ".patchkit" / "journal.json"
    return json.loads(path.read_bytes())["tx"] if path.exists() else None


def tx_of_ledger(case: Case) -> str | None:
    """The transaction that the ledger carries."""
    path = case.site / ".patchkit" / "ledger.json"
    return json.loads(path.read_bytes())["tx"] if path.exists() else None


def leftovers(case: Case) -> list[str]:
    """What a completed command leaves behind in patchkit's own folder that nothing refers to."""
    own = case.site / ".patchkit"
    found = [f"{path.name} is left" for path in own.rglob("*") if path.name.endswith(".tmp")]
    path = own / "ledger.json"
    text = path.read_text() if path.exists() else ""
    blobs = own / "blobs"
    names = os.listdir(blobs) if blobs.exists() else []
    return found + [f"the blob {name} is of no use" for name in names if f'"{name}"' not in text]


class Spine:
    """One command with a fault at the steps chosen: the hook of the seam, and the points that it tried.

    Args:
        case: The site, as it is before the command.
        scenario: The command.
        choose: The faults to try at a step, by its number (from 1), operation and path.
        nexts: The commands that follow a fault, in turn.
        progress: Called after every step.
    """

    def __init__(
        self,
        case: Case,
        scenario: Scenario,
        choose: Callable[[int, str, str], Sequence[Fault]],
        *,
        nexts: Sequence[tuple[str, ...]] = NEXT,
        progress: Callable[[Spine], None] | None = None,
    ) -> None:
        self.case, self.scenario, self.choose, self.nexts, self.progress = case, scenario, choose, nexts, progress
        self.judge = Judge(case, scenario)
        self.points: list[Point] = []
        self.steps: list[tuple[str, str]] = []
        self.same = 0  # stops at which the disk was as at the stop before: judged there
        self._mirror = Mirror(str(case.site))
        self._dirty: set[str] = set()
        self._changed = True
        self._turn = 0
        self._owner = os.getpid()
        # In a child whose step fails: the fault, the next command, and where the result is reported.
        self._failing: tuple[Fault, tuple[str, ...], int] | None = None

    def run(self, argv: Sequence[str] = ()) -> tuple[int, str, str]:
        """Run the command (``argv`` instead of the scenario's own) with all its faults; what it gave at the end."""
        try:
            with fs.observed(self):
                done = run(self.case, ["--json", *(argv or self.scenario.argv)])
        except BaseException:
            if self._failing is not None:
                _report(self._failing[2], "", traceback.format_exc())
            raise
        if self._failing is not None:
            self._conclude(*self._failing, *done)
        self._mirror.follow(self._dirty)
        self._mirror.check()
        return done

    def __call__(self, operation: str, path: str, when: str) -> None:
        if os.getpid() != self._owner:
            if self._failing is not None and when == "before" and _concerns(self._failing[0], operation):
                raise _error(self._failing[0], path)
            return
        name = os.path.relpath(path, self.case.site).replace(os.sep, "/")
        if operation not in UNCHANGING:
            self._dirty.add(name)
        if when == "after":
            return
        self.steps.append((operation, name))
        faults = self.choose(len(self.steps), operation, name)
        if faults:
            self._changed |= self._mirror.follow(self._dirty)
            self._dirty = set() if operation in UNCHANGING else {name}
        for fault in faults:
            if fault is KILL and not self._changed:
                self.same += 1
                continue
            words = self.nexts[self._turn % len(self.nexts)]
            self._turn += 1
            self._mirror.swap_in()
            side, problem = self._fork(fault, operation, path, words)
            self._mirror.swap_out()
            then = " ".join(words)
            point = Point(self.scenario.name, len(self.steps), operation, name, str(fault), then, side, problem)
            self.points.append(point)
        if faults:
            self._changed = False
        if self.progress is not None:
            self.progress(self)

    def _fork(self, fault: Fault, operation: str, path: str, words: tuple[str, ...]) -> tuple[str, str]:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            signal.alarm(120)  # a child that waits for a lock for ever is a fault as well
            if fault.kind == "EACCES":
                self.judge.excused = EXCUSED.get(operation, "")
            if fault is not KILL:
                self._failing = fault, words, writing
                raise _error(fault, path)  # back into the command, which handles it and ends in `run`
            self._look(words, writing)
        os.close(writing)
        with os.fdopen(reading, "rb") as file:
            data = file.read()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status != 0 or not data:
            return "", f"the child ended with {status}"
        side, problem = json.loads(data)
        return side, problem

    def _conclude(self, fault: Fault, words: tuple[str, ...], writing: int, status: int, out: str, err: str) -> None:
        self._failing = None  # the disk is well again
        try:
            problem = self.judge.failed(fault, status, out, err)
        except BaseException:
            problem = traceback.format_exc()
        if problem is not None:
            _report(writing, "", f"right behind the failure: {problem}")
        self._look(words, writing)

    def _look(self, words: tuple[str, ...], writing: int) -> None:
        try:
            side, problem = self.judge.next_command(words)
        except BaseException:
            side, problem = "", traceback.format_exc()
        _report(writing, "went on" if self.judge.went_on else side, problem or "")


def _concerns(fault: Fault, operation: str) -> bool:
    """Whether a disk that stays broken in this way fails that step."""
    if not fault.sticky:
        return False
    if fault.kind == "ENOSPC":
        return operation in ALLOCATING
    return operation not in READING or fault.kind == "EIO"


def _error(fault: Fault, path: str) -> OSError:
    number = int(getattr(errno, fault.kind))
    return OSError(number, os.strerror(number), path)


def _report(writing: int, side: str, problem: str) -> NoReturn:
    os.write(writing, json.dumps((side, problem[-20000:])).encode())
    os._exit(0)
