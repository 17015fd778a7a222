"""Stop apply, revert and sync at every step on the disk, or fail the step, and see what the next command makes of it.

    export PYTHONPATH=tests
    python -m faults.sweep                                              # 12 files, every step, every fault
    python -m faults.sweep --files 300 --faults kill,any --workers 2    # half an hour on two idle cores

Prints a line for each command and fault: how many points were tried, how many sites were old and how many new, and what
was wrong (nothing, and then the status is 0).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from faults.case import Case
from faults.engine import (
    ERRNOS,
    KILL,
    NEXT,
    READERS,
    SCENARIOS,
    WRITERS,
    Fault,
    Point,
    Scenario,
    Spine,
    ready,
    replay,
    run,
    warm,
    whole,
)

from patchkit.state import fs

Row = tuple[str, str, int, int, int, int, int]


class Job(NamedTuple):
    """What one process does: the steps whose number leaves the remainder ``part`` of ``parts``."""

    scenario: Scenario
    files: int
    faults: tuple[tuple[Fault, ...], ...]
    most: int
    part: int
    parts: int
    nexts: tuple[tuple[str, ...], ...]
    recoveries: int


def faults_of(words: str) -> tuple[tuple[Fault, ...], ...]:
    """The faults that ``--faults`` names: of each tuple, one is tried at each step, in turn."""
    found: list[tuple[Fault, ...]] = []
    for word in words.split(","):
        kind, sticky = word.removesuffix("-for-ever").removesuffix("-once"), word.endswith("-for-ever")
        every = tuple(Fault(name, sticky) for name in ERRNOS)
        if kind == "kill":
            found.append((KILL,))
        elif kind == "every":
            found += [(fault,) for fault in every]
        else:
            found.append(every if kind == "any" else (Fault(kind, sticky),))
    return tuple(found)


def stratum(operation: str, name: str) -> tuple[str, str]:
    """Which steps are of one kind: the operation, and on what."""
    own = name.startswith(".patchkit/")
    zone = "blobs" if name.startswith(".patchkit/blobs") else os.path.basename(name) if own else "package"
    return operation, zone


def sampled(steps: Sequence[tuple[str, str]], most: int) -> set[int]:
    """Of each kind of step the first, the last and some between, ``most`` in all; 0: every step (by number from 1)."""
    if not most:
        return set(range(1, len(steps) + 1))
    kinds: dict[tuple[str, str], list[int]] = {}
    for number, step in enumerate(steps, 1):
        kinds.setdefault(stratum(*step), []).append(number)
    chosen: set[int] = set()
    for numbers in kinds.values():
        count = min(most, len(numbers))
        chosen |= {numbers[(len(numbers) - 1) * n // max(1, count - 1)] for n in range(count)}
    return chosen


def carry_out(job: Job, root: Path, tell: Callable[[int, int], None]) -> tuple[list[Point], int]:
    """One job: its points, and how many stops found the disk as the stop before had."""
    steps = steps_of(job, root / "count")
    if job.recoveries:
        return recoveries(job, root, steps, tell), 0
    mine = set(sorted(sampled(steps, job.most))[job.part :: job.parts])
    case = ready(root / "site", job.scenario, job.files)
    spine = Spine(case, job.scenario, chooser(job, mine, tell), nexts=job.nexts)
    status, out, err = spine.run()
    assert status == 0, (out, err)
    assert whole(case, job.scenario.after) is None
    points = []
    for point in spine.points:
        if point.side == "went on" and not point.problem:
            case = ready(root / f"again{len(points)}", job.scenario, job.files)
            fault = next(one for group in job.faults for one in group if str(one) == point.fault)
            problem = replay(case, job.scenario, point.step, fault)
            point = point._replace(side="new", problem=problem or "")
            shutil.rmtree(case.root)
        points.append(point)
    return points, spine.same


def steps_of(job: Job, root: Path) -> list[tuple[str, str]]:
    """The steps of the command, by operation and path."""
    spine = Spine(ready(root, job.scenario, job.files), job.scenario, lambda *_: ())
    spine.run()
    shutil.rmtree(root)
    return spine.steps


def chooser(job: Job, mine: set[int], tell: Callable[[int, int], None]) -> Callable[[int, str, str], list[Fault]]:
    """What a spine asks at each step: of each group of faults one, at the steps ``mine``."""
    done = 0

    def choose(step: int, operation: str, name: str) -> list[Fault]:
        nonlocal done
        if step not in mine:
            return []
        done += 1
        tell(done, len(mine))
        return [group[done % len(group)] for group in job.faults]

    return choose


def recoveries(job: Job, root: Path, steps: Sequence[tuple[str, str]], tell: Callable[[int, int], None]) -> list[Point]:
    """The command is killed at some steps; then the faults at every step of what takes it back, or finishes it."""
    journal = steps.index(("replace", ".patchkit/journal.json")) + 2
    changing = [
        n for n in range(journal, len(steps) + 1) if steps[n - 1][0] in ("replace", "unlink", "mkdir", "append")
    ]
    count = min(job.recoveries, len(changing))
    stops = sorted({changing[(len(changing) - 1) * (2 * n + 1) // (2 * count)] for n in range(count)} | {changing[-2]})
    points: list[Point] = []
    groups = job.faults
    for turn, stop in enumerate(stops[job.part :: job.parts]):
        tell(turn, len(stops) // job.parts)
        case = ready(root / f"recovery{stop}", job.scenario, job.files)
        killed(case, job.scenario, stop)
        words = (("check",), job.scenario.argv)[turn % 2]
        spine = Spine(case, job.scenario, lambda step, *_: [group[step % len(group)] for group in groups])
        spine.judge.recovering = True
        spine.run(words)
        points += [
            point._replace(path=f"{point.path} (stopped at step {stop}, then {words[0]})") for point in spine.points
        ]
        shutil.rmtree(case.root)
    return points


def killed(case: Case, scenario: Scenario, stop: int) -> None:
    """Run the command in a process that ends for good before step ``stop``."""
    child = os.fork()
    if child == 0:
        try:
            count = 0

            def hook(operation: str, path: str, when: str) -> None:
                nonlocal count
                count += when == "before"
                if count == stop:
                    os._exit(9)

            with fs.observed(hook):
                run(case, scenario.argv)
        finally:
            os._exit(1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status == 9, f"not stopped at step {stop}: {status}"


def start(job: Job, root: Path) -> int:
    """Carry out ``job`` in a process of its own, which writes lines of JSON; the descriptor to read them from."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.close(reading)
        status = 1
        try:
            root.mkdir()
            os.environ["PATCHKIT_CACHE"] = str(root / "user-cache")
            warm(root / "warm")
            told = 0.0

            def tell(done: int, of: int) -> None:
                nonlocal told
                if time.monotonic() - told > 2:
                    told = time.monotonic()
                    os.write(writing, json.dumps({"done": done, "of": of}).encode() + b"\n")

            points, same = carry_out(job, root, tell)
            with os.fdopen(writing, "w") as file:
                for point in points:
                    file.write(json.dumps({"point": point}) + "\n")
                file.write(json.dumps({"same": same}) + "\n")
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    return reading


def together(jobs: Sequence[Job], root: Path) -> Iterator[tuple[Job, list[Point], int]]:
    """Carry out the jobs at once, with the progress on stderr."""
    import selectors

    selector = selectors.DefaultSelector()
    begun = time.monotonic()
    state: list[tuple[int, int]] = [(0, 1)] * len(jobs)
    rest = [b""] * len(jobs)
    for number, job in enumerate(jobs):
        os.set_blocking(descriptor := start(job, root / f"{job.scenario.name}-{job.part}"), False)
        selector.register(descriptor, selectors.EVENT_READ, number)
    results: list[tuple[list[Point], int | None]] = [([], None) for _ in jobs]
    while selector.get_map():
        for key, _ in selector.select():
            data = os.read(key.fd, 1 << 20)
            if not data:
                selector.unregister(key.fd)
                os.close(key.fd)
                continue
            *lines, rest[key.data] = (rest[key.data] + data).split(b"\n")
            for line in lines:
                value = json.loads(line)
                if "point" in value:
                    results[key.data][0].append(Point(*value["point"]))
                elif "same" in value:
                    results[key.data] = results[key.data][0], value["same"]
                else:
                    state[key.data] = value["done"], value["of"]
                    done, of = (sum(values) for values in zip(*state, strict=True))
                    left = (time.monotonic() - begun) / max(1, done) * (of - done)
                    sys.stderr.write(f"{jobs[0].scenario.name}: step {done} of {of}, {left / 60:.1f} min left\n")
                    sys.stderr.flush()
    for _ in jobs:
        os.wait()
    for job, (points, same) in zip(jobs, results, strict=True):
        if same is None:
            raise SystemExit(f"{job.scenario.name}: a process of the sweep failed; see above")
        yield job, points, same


def main(words: Sequence[str] | None = None) -> int:
    """The command line; 0 where nothing was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=12, help="files of the distribution, at least 6 (default: 12)")
    parser.add_argument("--commands", default="apply,revert,sync")
    parser.add_argument(
        "--faults",
        default="kill,every-once,every-for-ever",
        help="of kill, ENOSPC, EIO, EROFS, EACCES, `every` of these four, `any` one of them at each step, in turn; all "
        "but kill also with -for-ever: from that step on",
    )
    parser.add_argument("--most", type=int, default=0, metavar="N", help="at most N steps of each kind (default: all)")
    parser.add_argument(
        "--recoveries",
        type=int,
        default=0,
        metavar="N",
        help="kill at N steps, then the faults at every step of recovery",
    )
    parser.add_argument("--workers", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--folder", help="where to work; emptied at the end (default: a temporary one)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    options = parser.parse_args(words)
    os.fsync = lambda descriptor: None  # a stopped process loses nothing that it had written
    root = Path(tempfile.mkdtemp(dir=options.folder)).resolve()
    # With many files the commands that write take long: they follow each twelfth fault only.
    nexts = NEXT if options.files < 100 else (*READERS, ("check", "--json"), WRITERS[0], *READERS, WRITERS[1], *READERS)
    faults = faults_of(options.faults)
    rows: list[Row] = []
    bad: list[Point] = []
    if not options.json:
        print(f"{'command':8} {'fault':16} {'points':>7} {'judged':>7} {'old':>7} {'new':>7} {'wrong':>6}")
    try:
        for name in options.commands.split(","):
            jobs = [
                Job(
                    SCENARIOS[name],
                    options.files,
                    faults,
                    options.most,
                    part,
                    options.workers,
                    nexts,
                    options.recoveries,
                )
                for part in range(options.workers)
            ]
            done = list(together(jobs, root))
            points = [point for _, found, _ in done for point in found]
            bad += [point for point in points if point.problem]
            table = tabulated(name, points, sum(stops for _, _, stops in done))
            rows += table
            if not options.json:
                for row in table:
                    print("{:8} {:16} {:7} {:7} {:7} {:7} {:6}".format(*row), flush=True)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    if options.json:
        print(json.dumps({"rows": rows, "bad": bad[:20]}))
    else:
        print(f"{sum(row[2] for row in rows)} points on {options.files} files, {len(bad)} wrong")
        for point in bad[:20]:
            print(point)
    return 1 if bad else 0


def tabulated(name: str, points: Sequence[Point], same: int) -> list[Row]:
    """A row for each fault: the points tried, those judged, the sites that were old, and new, and what was wrong.

    ``same`` stops found the disk as the stop before them had: nothing was left to judge there.
    """
    rows = []
    for fault in dict.fromkeys(point.fault for point in points):
        mine = [point for point in points if point.fault == fault]
        sides = Counter(point.side for point in mine)
        wrong = sum(bool(point.problem) for point in mine)
        stops = len(mine) + (same if fault == "kill" else 0)
        rows.append((name, fault, stops, len(mine), sides["old"], sides["new"], wrong))
    return rows


if __name__ == "__main__":
    sys.exit(main())
