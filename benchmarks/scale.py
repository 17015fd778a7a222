"""How cost grows with size: each case at n and at 2n, and the ratio of the two, which linear growth makes about 2.

    python benchmarks/scale.py [--quick] [--json]

What a process costs before it does anything is taken off both, so that the ratio is that of the work: the same command
on the smallest case of its kind. Writes nothing outside a temporary directory and always exits 0: benchmarks inform,
they gate nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import NamedTuple

from measure import Row, cpu_seconds, make_dist, patchkit_command, report, settle, source, versions, write_patch

#: Functions in the file that many edits are made in.
FUNCTIONS = 2000
#: Above 2 for what grows a little faster than its input (sorting, searching), and for noise.
LINEAR = 2.4


class Case(NamedTuple):
    """A thing that can be had in any size.

    ``build`` makes a site in the first folder and patch files in the second, for a size, and returns the patches to
    apply before and those whose application is measured.
    """

    name: str
    size: int
    quick: int
    build: Callable[[str, str, int], tuple[list[str], list[str]]]


def text_edits(site: str, patches: str, size: int) -> tuple[list[str], list[str]]:
    """As many text edits in one file (of the same size for both), each with an anchor of its own."""
    make_dist(site, "demo", {"demo/core.py": source(FUNCTIONS, lines=2).encode()})
    edits = [
        {
            "file": "demo/core.py",
            "find": f"    return value_{n}_0\n",
            "replace": f"    return value_{n}_1\n",
        }
        for n in range(size)
    ]
    write_patch(patches, "many", "demo", edits)
    return [], ["many"]


def scoped_edits(site: str, patches: str, size: int) -> tuple[list[str], list[str]]:
    """The same with a ``scope`` each."""
    make_dist(site, "demo", {"demo/core.py": source(FUNCTIONS, lines=2).encode()})
    edits = [
        {
            "file": "demo/core.py",
            "scope": f"function_{n}",
            "find": f"    return value_{n}_0\n",
            "replace": f"    return value_{n}_1\n",
        }
        for n in range(size)
    ]
    write_patch(patches, "many", "demo", edits)
    return [], ["many"]


def syntax_edits(site: str, patches: str, size: int) -> tuple[list[str], list[str]]:
    """As many syntax edits in one file."""
    make_dist(site, "demo", {"demo/core.py": source(FUNCTIONS, lines=2).encode()})
    edits = [
        {
            "file": "demo/core.py",
            "match": f"value_{n}_1 = $X.method($$$ARGS, {n * 100 + 1})",
            "replace": f"value_{n}_1 = $X.other($$$ARGS)",
        }
        for n in range(size)
    ]
    write_patch(patches, "many", "demo", edits)
    return [], ["many"]


def syntax_matches(site: str, patches: str, size: int) -> tuple[list[str], list[str]]:
    """One syntax edit that matches as many times in one file."""
    make_dist(site, "demo", {"demo/core.py": source(size, lines=1).encode()})
    edit = {
        "file": "demo/core.py",
        "match": "$X.method($$$ARGS)",
        "replace": "$X.other($$$ARGS)",
        "count": size,
    }
    write_patch(patches, "many", "demo", [edit])
    return [], ["many"]


def text_file(site: str, patches: str, size: int) -> tuple[list[str], list[str]]:
    """One text edit of a file of as many kilobytes."""
    return _large(site, patches, size, {"find": "    return value_3_0\n", "replace": "    return value_3_1\n"})


def syntax_file(site: str, patches: str, size: int) -> tuple[list[str], list[str]]:
    """One syntax edit of a file of as many kilobytes."""
    return _large(site, patches, size, {"match": "return value_3_0", "replace": "return value_3_1"})


def _large(site: str, patches: str, size: int, edit: dict[str, object]) -> tuple[list[str], list[str]]:
    functions = size * 1000 // (len(source(40, start=5000)) // 40)
    make_dist(site, "demo", {"demo/core.py": source(functions).encode()})
    write_patch(patches, "one", "demo", [{"file": "demo/core.py", **edit}])
    return [], ["one"]


def many_files(site: str, patches: str, size: int) -> tuple[list[str], list[str]]:
    """One patch that edits as many files."""
    files = {f"demo/module_{n}.py": source(4, start=n).encode() for n in range(size)}
    make_dist(site, "demo", files)
    edits = [
        {
            "file": f"demo/module_{n}.py",
            "find": f"    return value_{n}_0\n",
            "replace": f"    return value_{n}_1\n",
        }
        for n in range(size)
    ]
    write_patch(patches, "many", "demo", edits)
    return [], ["many"]


def distributions(site: str, patches: str, size: int) -> tuple[list[str], list[str]]:
    """A site of as many distributions, one of which is patched."""
    for n in range(size):
        make_dist(site, f"package-{n}", {f"package_{n}/__init__.py": b"X = 1\n"})
    edit = {"file": "package_7/__init__.py", "find": "X = 1\n", "replace": "X = 2\n"}
    write_patch(patches, "one", "package-7", [edit])
    return [], ["one"]


def stacked(site: str, patches: str, size: int) -> tuple[list[str], list[str]]:
    """As many patches on one file, applied one after the other by one call."""
    make_dist(site, "demo", {"demo/core.py": source(200).encode()})
    names = []
    for n in range(size):
        names.append(f"patch-{n}")
        edit = {
            "file": "demo/core.py",
            "find": f"    return value_{n}_0\n",
            "replace": f"    return value_{n}_1\n",
        }
        write_patch(patches, names[-1], "demo", [edit])
    return [], names


def on_top(site: str, patches: str, size: int) -> tuple[list[str], list[str]]:
    """One more patch on a file that has as many."""
    _, names = stacked(site, patches, size + 1)
    return names[:-1], names[-1:]


CASES = (
    Case("text edits in one file", 1000, 250, text_edits),
    Case("text edits with scope in one file", 1000, 250, scoped_edits),
    Case("syntax edits in one file", 200, 50, syntax_edits),
    Case("matches of one syntax edit", 1000, 250, syntax_matches),
    Case("kB of a file, one text edit", 2000, 500, text_file),
    Case("kB of a file, one syntax edit", 2000, 500, syntax_file),
    Case("files in one patch", 300, 75, many_files),
    Case("distributions in the site", 500, 125, distributions),
    Case("patches stacked on one file by one call", 50, 15, stacked),
    Case("one more patch on a file that has n", 50, 15, on_top),
)


def cost(case: Case, size: int, repeat: int, verbs: Sequence[str]) -> dict[str, float]:
    """CPU seconds of each verb, the least of ``repeat`` runs, on the case at one size."""
    best = dict.fromkeys(verbs, float("inf"))
    with tempfile.TemporaryDirectory(prefix="patchkit-scale-") as root:
        site, patches = os.path.join(root, "packages"), os.path.join(root, "patches")
        os.makedirs(site)
        before, names = case.build(site, patches, size)
        program = [*patchkit_command(root), "--site", site, "--patches", patches]
        log = os.path.join(root, "log")

        def run(*words: str) -> float:
            try:
                return cpu_seconds([*program, *words], cwd=root, output=log)
            except RuntimeError as error:
                with open(log, encoding="utf-8", errors="replace") as file:
                    raise RuntimeError(f"{case.name}, {size}: {str(error)[-40:]}:\n{file.read()[:2000]}") from None

        commands = {"apply": ["apply", *names], "check": ["check"], "revert": ["revert", *names]}
        settle()
        if before:
            run("apply", *before)
        for _ in range(repeat):
            for verb in ("apply", "check", "revert"):
                settle()
                seconds = run(*commands[verb])
                if verb in best:
                    best[verb] = min(best[verb], seconds)
    return best


def rows_of(case: Case, size: int, repeat: int, bare: float) -> list[Row]:
    """The growth of ``apply``, ``check`` and ``revert`` from ``size`` to twice that."""
    verbs = ("apply", "check", "revert")
    nothing = cost(case, 10, repeat, verbs)
    single, double = (cost(case, n, repeat, verbs) for n in (size, 2 * size))
    rows = []
    for verb in verbs:
        work = [max(found[verb] - nothing[verb], 0.0) for found in (single, double)]
        note = f"{single[verb] / bare:.1f}x -> {double[verb] / bare:.1f}x a bare interpreter"
        name = f"{verb}: {size} {case.name}"
        if work[0] < 2 * bare:  # within the noise of the start: the whole processes are compared
            rows.append(Row(name, double[verb] / single[verb], "", LINEAR, f"{note}; mostly start"))
        else:
            rows.append(Row(name, work[1] / work[0], "", LINEAR, note))
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="a quarter of the size, and one run of each")
    options = parser.parse_args()
    repeat = 1 if options.quick else 3
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="patchkit-bare-") as root:
        bare = min(cpu_seconds([sys.executable, "-c", "pass"], cwd=root) for _ in range(10))
    for case in CASES:
        print(f"{case.name} ...", file=sys.stderr)
        rows += rows_of(case, case.quick if options.quick else case.size, repeat, bare)
    report(rows, as_json=options.json, more={**versions(), "bare": f"{bare * 1000:.1f} ms"})


if __name__ == "__main__":
    main()
