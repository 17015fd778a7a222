"""``create`` and ``import`` on pairs of adjacent releases of real packages: what share becomes a patch, and why not.

The pairs are those of ``tests/real/adjacent.json`` (``--refresh`` takes the newest releases instead, and rewrites it).
For each one the old wheel is unpacked as a site, and the new release is what somebody edited it to: every file of the
packages, metadata apart.

``create`` gets a scratch copy that is the new release. ``import`` gets git's unified diff of the two; then that diff
with other context, other prefixes, dates and line breaks, of which the same patch must come; then the diff on the
release before the old one, where lines have moved. A patch must lint without a warning, make the new release of the old
one byte for byte, and take it back: every file of the site is compared. Files that the command names as left out must
be as they were; they are counted by the reason given. Nothing else is excluded.

It needs git and diff, and pip with an index. Results are kept in the file of ``--json``, and a run that was stopped
goes on there.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import onepair
from pairs import pairs, refresh

import patchkit


def main() -> None:
    """Run what is not in the results yet; print the shares, and every failure with its whole message."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", metavar="NAME", help="these packages; default: all that are listed")
    parser.add_argument("--cache", default=os.path.join(tempfile.gettempdir(), "patchkit-adjacent"), help="of wheels")
    parser.add_argument("--json", metavar="FILE", dest="results", help="keep the results there, and go on with them")
    parser.add_argument("--again", choices=("failed", "all"), help="run those pairs again that FILE has")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--quick", action="store_true", help="`create` and one `import` alone")
    parser.add_argument("--in-process", action="store_true", help="start no process for a command; measure no time")
    parser.add_argument("--refresh", action="store_true", help="pin the newest releases in the list, and end")
    arguments = parser.parse_args()
    if arguments.refresh:
        refresh(arguments.cache, lambda text: print(text, file=sys.stderr))
        return
    if arguments.in_process:
        os.environ[onepair.IN_PROCESS] = "1"
    wanted = list(pairs(arguments.packages))
    results = _kept(arguments.results)
    todo = [pair for pair in wanted if _is_due(results.get(str(pair)), arguments.again, quick=arguments.quick)]
    started = time.monotonic()
    with concurrent.futures.ProcessPoolExecutor(arguments.jobs) as pool:
        futures = [pool.submit(onepair.attempt, arguments.cache, pair, quick=arguments.quick) for pair in todo]
        for number, future in enumerate(concurrent.futures.as_completed(futures), 1):
            result = future.result()
            results[result["pair"]] = result
            _keep(arguments.results, results)
            left = (time.monotonic() - started) / number * (len(todo) - number)
            line = f"{number} of {len(todo)}, {left / 60:.0f} min left: {result['pair']}"
            for what in failures(result):
                line += f"\n  FAILED {what}: {message_of(result, what)}"
            print(line, file=sys.stderr, flush=True)
    report([results[str(pair)] for pair in wanted])


def _kept(path: str | None) -> dict[str, Any]:
    if path is None or not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        kept: dict[str, Any] = json.load(file)
    return kept


def _keep(path: str | None, results: Mapping[str, Any]) -> None:
    if path is not None:
        with open(f"{path}.new", "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
        os.replace(f"{path}.new", path)


def _is_due(known: Mapping[str, Any] | None, again: str | None, *, quick: bool) -> bool:
    """Whether a pair is to be run: what could not be downloaded is tried again in any case."""
    if known is None or "unavailable" in known or again == "all":
        return True
    return (again == "failed" and bool(failures(known))) or (not quick and known["quick"] and "same" not in known)


def failures(result: Mapping[str, Any]) -> list[str]:
    """What of a pair failed, by the names of its parts: ``create``, ``import``, and ``import`` of other diffs."""
    return [what for what in onepair.PARTS if message_of(result, what)]


def message_of(result: Mapping[str, Any], what: str) -> str:
    """Why a part failed; "" where it did not, or was not tried."""
    return str(result.get(what, {}).get("failed", ""))


def report(results: Sequence[Mapping[str, Any]]) -> None:
    """The shares, what was left out and why, the measures, and every failure."""
    missing = [result for result in results if "unavailable" in result]
    same = [result for result in results if "same" in result]
    there = [result for result in results if "unavailable" not in result and "same" not in result]
    names = {result["name"] for result in there}
    print(
        f"patchkit {patchkit.__version__}: {len(there)} pairs of {len(names)} packages"
        + (f"; {len(same)} more in which no file of the packages differs" if same else "")
    )
    for what in onepair.PARTS:
        tried = [result[what] for result in there if what in result]
        if tried:
            _shares(what, tried)
    _left(there)
    _measures(there)
    for result in there:
        for what in failures(result):
            print(f"\n{result['pair']}, {what}:\n  " + message_of(result, what).replace("\n", "\n  "))
    for result in missing:
        print(f"\n{result['pair']} cannot be downloaded: {result['unavailable']}")


OUTCOMES = {
    "whole": "whole",
    "all but": "without the files named as left out",
    "reported": "hunks reported",
    "failed": "failed",
}
"""How a pair can come out, and what is printed for it."""


def _shares(what: str, tried: Sequence[Mapping[str, Any]]) -> None:
    """One line: how often it was right, and in which way, or failed."""
    outcomes = collections.Counter(
        "failed" if one["failed"] else "reported" if one.get("reported") else "all but" if one["left"] else "whole"
        for one in tried
    )
    right = len(tried) - outcomes["failed"]
    parts = [f"{outcomes[key]} {name}" for key, name in OUTCOMES.items() if outcomes[key]]
    print(f"{what:16} {right:3} of {len(tried)} right, {_percent(right, len(tried)):>7}: {', '.join(parts)}")


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %"


def _left(there: Iterable[Mapping[str, Any]]) -> None:
    """Files that the commands left out, by the reason that they gave."""
    for what in ("create", "import"):
        reasons = collections.Counter(
            re.sub(r" of \S+( \S+)?$", "", reason) for result in there for _, reason in result[what]["left"]
        )
        for reason, count in reasons.most_common():
            print(f"left out by {what}, {count} file{'s' if count > 1 else ''}: {reason}")


def _measures(there: Sequence[Mapping[str, Any]]) -> None:
    """How the patches look, and what they cost."""
    made = [result["create"] for result in there if result["create"].get("edits")]
    if not made:
        return
    edits = [edit for one in made for edit in one["edits"]]
    hunks = [result["diff"] for result in there]
    lines = sorted(edit["lines"] for edit in edits)
    scoped = sum(edit["scope"] for edit in edits)
    print(f"edits: {len(edits)} for the {sum(one['hunks'] for one in hunks)} hunks of git's diffs")
    print(f"  with a scope: {_percent(scoped, len(edits))}")
    most = lines[len(lines) * 9 // 10]
    print(f"  lines of an anchor: median {statistics.median(lines):.0f}, nine of ten at most {most}")
    size = sum(edit["bytes"] for edit in edits)
    print(f"  all anchors: {sum(lines)} lines, {size} bytes; ", end="")
    sides = sum(one["lines"] for one in hunks), sum(one["bytes"] for one in hunks)
    print(f"the old sides of git's hunks: {sides[0]} lines, {sides[1]} bytes")
    for key, name in (("git", "of `git diff`"), ("bare", "of a bare interpreter")):
        ratios = [one["seconds"] / one[key] for one in made if one[key] and one["seconds"]]
        if ratios:  # none where the commands ran in the benchmark's own processes
            middle, most_of_all = statistics.median(ratios), max(ratios)
            print(f"CPU time of create, in multiples {name}: median {middle:.1f}, most {most_of_all:.1f}")
    carried = [result["carried"] for result in there if result.get("carried")]
    if carried:
        fitting, tried = (sum(one[at] for one in carried) for at in (0, 1))
        print(
            f"on the release before the old one: {fitting} of {tried} edits fit ({_percent(fitting, tried)}), ", end=""
        )
        placed = [result["neighbour"] for result in there if "neighbour" in result]
        total, failing = sum(one["hunks"] for one in placed), sum(one["unplaced"] for one in placed)
        print(f"and import places {total - failing} of {total} hunks ({_percent(total - failing, total)});")
        conflicts = sum(len(one.get("unjudged", ())) for one in placed)
        print(f"  where git's three-way merge sees a conflict, nothing is compared: {conflicts} files")


if __name__ == "__main__":
    main()
