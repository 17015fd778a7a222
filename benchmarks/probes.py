"""What a probe costs its program: each call after the first, the loading of its module, the first call.

    python benchmarks/probes.py [--json]

A function that does nothing is the worst case for a ratio. "Some work" sums a thousand integers. In-process minima of
many repetitions, since a process start would hide what is measured; "x" is against the same function without the probe.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import os
import tempfile
import time
import timeit
from collections.abc import Callable
from types import CodeType
from typing import Any

from measure import Row, report, versions

from patchkit.edit.outline import Outline
from patchkit.edit.probe import probe_splices
from patchkit.edit.source import Source
from patchkit.runtime.probe import FOLDER_VARIABLE

EMPTY = "def f(): pass\n"
WORK = "def f(): return sum(range(1000))\n"


def probed(text: str) -> str:
    """``text`` with a probe in ``f``."""
    source = Source(text.encode(), path="mod.py")
    return source.render(probe_splices(Outline(source, ast.parse(text)), "f", "p", 1, "seen"))[0].decode()


def load(code: CodeType) -> dict[str, Any]:
    """The namespace of a module that was just loaded."""
    module = {"__name__": "mod"}
    exec(code, module)
    return module


def seconds(work: Callable[[], object], number: int) -> float:
    """Seconds of CPU of one ``work()``: the minimum of seven times ``number``."""
    return min(timeit.repeat(work, timer=time.process_time, number=number, repeat=7)) / number


def measure(folder: str) -> list[Row]:
    """All rows; records are written to ``folder``."""
    rows = []
    os.environ.pop(FOLDER_VARIABLE, None)
    rows.append(Row("os.getpid()", seconds(os.getpid, 200_000) * 1e9, "ns", None, "the system call in it"))
    for name, text, number in (("nothing", EMPTY, 200_000), ("some work", WORK, 10_000)):
        plain, with_probe = load(compile(text, "m", "exec")), load(compile(probed(text), "m", "exec"))
        with_probe["f"]()
        without, there = seconds(plain["f"], number), seconds(with_probe["f"], number)
        rows.append(Row(f"each later call, {name}", there / without, "x", None, f"+{(there - without) * 1e9:.0f} ns"))
    plain_code, code = compile(EMPTY, "m", "exec"), compile(probed(EMPTY), "m", "exec")
    for name, number in (("without a folder", 20_000), ("with a folder", 500)):
        spent = seconds(lambda: load(code), number) - seconds(lambda: load(plain_code), number)
        rows.append(Row(f"loading, {name}", spent * 1e6, "us"))
        first = seconds(lambda: load(code)["f"](), number) - seconds(lambda: load(code), number)
        rows.append(Row(f"the first call, {name}", first * 1e6, "us"))
        os.environ[FOLDER_VARIABLE] = folder
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="patchkit-probes-") as folder, contextlib.redirect_stderr(io.StringIO()):
        rows = measure(folder)
    report(rows, as_json=options.json, more=versions())


if __name__ == "__main__":
    main()
