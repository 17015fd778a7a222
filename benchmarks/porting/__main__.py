"""``port`` on one-line changes of tpu-inference 0.18.0 to 0.32.0, beside what git and GNU patch make of them as diffs.

From each release a seeded sample of lines is taken, blank ones aside, of the files that the next release (and, for the
second half of the table, the last one) has as well, and has otherwise. Each line is changed, and the change carried to
that release: as a patch that ``create`` writes, by the patch itself where it fits or by ``port``; and as a diff with
three lines of context by ``git apply``, ``git apply --3way`` in a repository that has the old file, and GNU patch with
its own fuzz. "Right": the change is on the line that truth.py says, and nothing else differs. "Wrong": anything else
was written. "Refused": nothing was.

It needs git, GNU patch, and pip with an index. Wheels are kept in the folder of ``--cache``.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import itertools
import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence

from cases import PORT, Case, measure, opened, sample, wheel_of

NAME = "tpu-inference"
RELEASES = ["0.18.0", "0.19.0", "0.20.0", "0.21.0", "0.22.1", "0.23.0", "0.24.0", "0.25.0", "0.26.0", "0.27.0"]
RELEASES += ["0.28.0", "0.29.0", "0.30.0", "0.31.0", "0.32.0"]
TOOLS = [PORT, "git apply", "git apply --3way", "GNU patch"]
KINDS = ["change", "insert", "delete"]
LEVEL = 1.959964
"""The normal quantile of a 95 % interval."""


def main() -> None:
    """Fetch, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", default=os.path.join(tempfile.gettempdir(), "patchkit-porting"), help="wheels")
    parser.add_argument("--lines", type=int, default=750, help="for each release, and for each of the two goals")
    parser.add_argument("--all", action="store_true", help="every line instead (hours)")
    parser.add_argument("--kind", choices=KINDS, action="append", help="default: change")
    parser.add_argument("--from", dest="bases", metavar="V", action="append", help="only from this release")
    parser.add_argument("--goal", choices=["next", "last"], action="append", help="default: both")
    parser.add_argument("--tool", choices=TOOLS, action="append", help="default: all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--verbose", action="store_true", help="a row for each release")
    parser.add_argument("--show-wrong", action="store_true", help="every line that port carried wrong")
    parser.add_argument("--show-unknown", action="store_true", help="every line that port carried, truth unknown")
    arguments = parser.parse_args()
    tools = [tool for tool in TOOLS if arguments.tool is None or tool in arguments.tool]
    if "GNU patch" in tools and shutil.which("patch") is None:
        tools.remove("GNU patch")
        print("left out: GNU patch, since there is no program `patch`", file=sys.stderr)
    if shutil.which("git") is None:
        raise SystemExit("there is no program `git`: what is right is told by it")
    wheels = {version: wheel(arguments.cache, version) for version in RELEASES}
    pairs = [
        (goal, base, RELEASES[at + 1] if goal == "next" else RELEASES[-1])
        for goal in arguments.goal or ["next", "last"]
        for at, base in enumerate(RELEASES[:-1])
        if arguments.bases is None or base in arguments.bases
    ]
    count = None if arguments.all else arguments.lines
    for kind in arguments.kind or KINDS[:1]:
        cases = run(pairs, kind, wheels, count, arguments.seed, tools, arguments.jobs)
        report(kind, cases, tools, verbose=arguments.verbose)
        for shown, wanted in (("wrong", arguments.show_wrong), ("written", arguments.show_unknown)):
            if wanted:
                show(cases, shown)


def wheel(cache: str, version: str) -> str:
    """The wheel's path, downloaded once.

    Raises:
        SystemExit: pip has none.
    """
    os.makedirs(cache, exist_ok=True)
    found = wheel_of(cache, NAME, version)
    if found is None:
        print(f"fetching {NAME} {version}", file=sys.stderr)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
        command += ["--ignore-requires-python", "--disable-pip-version-check", "--dest", cache]
        subprocess.run([*command, f"{NAME}=={version}"], check=True)
        found = wheel_of(cache, NAME, version)
    if found is None:
        raise SystemExit(f"pip has no wheel of {NAME} {version}")
    return found


Pair = tuple[str, str, str]
"""Goal, old release, new release."""


def run(
    pairs: Sequence[Pair],
    kind: str,
    wheels: dict[str, str],
    count: int | None,
    seed: int,
    tools: Sequence[str],
    jobs: int,
) -> dict[Pair, list[Case]]:
    """The cases of every pair of releases, with a line of progress and the time that is left."""
    started, finished = time.monotonic(), itertools.count(1)
    total = None if count is None else count * len(pairs)

    def done(_: int) -> None:
        number = next(finished)
        if number % 50 == 0:
            spent = time.monotonic() - started
            left = f", {spent / number * (total - number) / 60:.0f} min left" if total else ""
            print(f"\r{kind}: {number} of {total or 'all'} lines{left}   ", end="", file=sys.stderr, flush=True)

    out = {}
    if jobs == 1:
        for pair in pairs:
            out[pair] = one_pair(pair, kind, wheels, count, seed, tools, done)
    else:
        with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
            futures = {pair: pool.submit(one_pair, pair, kind, wheels, count, seed, tools) for pair in pairs}
            for pair, future in futures.items():
                out[pair] = future.result()
                for _ in out[pair]:
                    done(1)
    print(file=sys.stderr)
    return out


def one_pair(
    pair: Pair,
    kind: str,
    wheels: dict[str, str],
    count: int | None,
    seed: int,
    tools: Sequence[str],
    done: Callable[[int], None] = lambda _: None,
) -> list[Case]:
    """The cases of one pair of releases."""
    _, old, new = pair
    with contextlib.ExitStack() as stack:
        releases = [stack.enter_context(opened(wheels[version], NAME, version)) for version in (old, new)]
        return measure(*releases, sample(*releases, kind, count, seed), tools, done)  # type: ignore[call-arg, arg-type]


def wilson(found: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a share (E. B. Wilson, 1927)."""
    if not of:
        return 0.0, 1.0
    share, z = found / of, LEVEL
    middle = (share + z * z / (2 * of)) / (1 + z * z / of)
    half = z / (1 + z * z / of) * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return max(0.0, middle - half), min(1.0, middle + half)


def report(kind: str, cases: dict[Pair, list[Case]], tools: Sequence[str], *, verbose: bool) -> None:
    """The table."""
    names = {"change": "one line changed", "insert": "one line inserted", "delete": "one line deleted"}
    print(f"\n{names[kind]}")
    print(f"{'':24} {'right':>16} {'refused':>15} {'wrong':>13}   95 % interval of wrong")
    for goal in ("next", "last"):
        chosen = {pair: found for pair, found in cases.items() if pair[0] == goal}
        if not chosen:
            continue
        everything = [case for found in chosen.values() for case in found]
        known = [case for case in everything if case.truth.state != "unknown"]
        there = sum(case.truth.state == "at" for case in known)
        print(
            f"to the {goal} release: {len(known)} lines, {there} of them still there ({share(there, len(known))}); "
            f"{len(everything) - len(known)} more with truth unknown"
        )
        for tool in tools:
            print(row(tool, tool, known, everything))
        if verbose:
            for (_, old, new), found in chosen.items():
                print(f"  {old} -> {new}")
                for tool in tools:
                    print(row(f"    {tool}", tool, [case for case in found if case.truth.state != "unknown"], found))


def row(label: str, tool: str, known: Sequence[Case], everything: Sequence[Case]) -> str:
    """One tool's shares."""
    counts = Counter(case.verdicts[tool][0] for case in known)
    cells = [f"{counts[what]} {share(counts[what], len(known)):>8}" for what in ("right", "refused", "wrong")]
    low, high = wilson(counts["wrong"], len(known))
    written = sum(case.verdicts[tool][0] == "written" for case in everything)
    interval = f"{100 * low:.3f} to {100 * high:.3f} %"
    return f"{label:24} {cells[0]:>16} {cells[1]:>15} {cells[2]:>13}   {interval}; {written} written, truth unknown"


def share(part: int, whole: int) -> str:
    """A share in per cent."""
    return f"{100 * part / whole:.2f} %" if whole else "-"


def show(cases: dict[Pair, list[Case]], verdict: str) -> None:
    """Every case with a verdict of port's."""
    print(f"\nport: {verdict}")
    for found in cases.values():
        for case in found:
            if PORT in case.verdicts and case.verdicts[PORT][0] == verdict:
                truth = f"{case.truth.state} {case.truth.path}:{case.truth.line + 1}, {case.truth.how}"
                print(f"  {case.old} -> {case.new} {case.change.path}:{case.change.first + 1} {case.change.kind}")
                print(f"      port: {case.verdicts[PORT][1]}\n      truth: {truth}")


if __name__ == "__main__":
    main()
