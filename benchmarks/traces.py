"""What reading a profiler trace costs: our reader against jax's own, and against reading the trace for viewers.

    python benchmarks/traces.py [--jax PYTHON] [--events N] [--json]

The traces are made up by the tests' encoder: a TPU's, of as many events of operations as asked for. `jax` stands for
`jax.profiler.ProfileData` in the interpreter that is named, which walks the same events for their names and times and
does not see the rest. CPU time of the reading alone, without imports, minima of five in one process; "per event"
doubles the events and compares. "x" is against reading the `.xplane.pb` with our reader.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module

from measure import REPOSITORY, Row, report, versions

sys.path.insert(0, os.path.join(REPOSITORY, "tests"))

from patchkit.bench.trace import read_trace, tabulate

KINDS = 200
_BY_JAX = """
import sys, time
from jax.profiler import ProfileData
def read():
    times = {}
    for plane in ProfileData.from_file(sys.argv[1]).planes:
        for line in plane.lines:
            for event in line.events:
                one = times.setdefault(event.name, [0, 0.0])
                one[0] += 1
                one[1] += event.duration_ns
best = None
for _ in range(5):
    begun = time.process_time()
    read()
    spent = time.process_time() - begun
    best = spent if best is None else min(best, spent)
print(best)
"""


def made_up(events: int) -> bytes:
    """A trace of a TPU: ``KINDS`` operations, each as often as there are steps."""
    made = import_module("support.traces")
    steps = events // KINDS
    shape = "bf16[512,2048]{1,0:T(8,128)(2,1)}"
    ops = [
        made.Op(f"%fusion.{kind} = {shape} fusion(bf16[512,2048] %p.{kind})", steps, 10**6 + 1250 * kind, shape=shape)
        for kind in range(KINDS)
    ]
    return bytes(made.study_space(ops, steps=steps))


def for_viewers(events: int) -> bytes:
    """The same operations as the JSON that the profiler writes for viewers, packed."""
    names = [
        {"ph": "M", "pid": 3, "name": "process_name", "args": {"name": "/device:TPU:0"}},
        {"ph": "M", "pid": 3, "tid": 1, "name": "thread_name", "args": {"name": "XLA Ops"}},
    ]
    told = [
        {
            "ph": "X",
            "pid": 3,
            "tid": 1,
            "ts": number * 1.25,
            "dur": 1.0,
            "name": f"fusion.{number % KINDS}",
            "args": {
                "shape_with_layout": "bf16[512,2048]{1,0}",
                "hlo_category": "fusion",
                "run_id": str(number // KINDS),
            },
        }
        for number in range(events)
    ]
    return gzip.compress(json.dumps({"traceEvents": [*names, *told]}).encode(), 6)


def seconds(work: Callable[[], object]) -> float:
    """Seconds of CPU: the minimum of five."""
    spent = []
    for _ in range(5):
        begun = time.process_time()
        work()
        spent.append(time.process_time() - begun)
    return min(spent)


def plain_json(path: str) -> None:
    """What anybody would write: all of it in memory at once."""
    times: dict[str, list[float]] = {}
    with gzip.open(path) as file:
        for event in json.load(file)["traceEvents"]:
            if event["ph"] == "X":
                one = times.setdefault(event["name"], [0, 0.0])
                one[0] += 1
                one[1] += event["dur"]


def measure(folder: str, events: int, jax: str | None) -> list[Row]:
    """All rows; the traces are written to ``folder``."""
    paths = {}
    for name, data in (
        ("pb", made_up(events)),
        ("twice", made_up(2 * events)),
        ("json", for_viewers(events)),
    ):
        paths[name] = os.path.join(folder, f"{name}.trace")
        with open(paths[name], "wb") as file:
            file.write(data)
    ours = seconds(lambda: tabulate(read_trace(paths["pb"])))
    rows = [Row(f"{events} events, our reader", ours * 1e3, " ms", 1000, "CPU; the bar is a second")]
    rows.append(Row("twice the events", seconds(lambda: tabulate(read_trace(paths["twice"]))) / ours, "x", 2.4))
    rows.append(Row("JSON, our reader", seconds(lambda: tabulate(read_trace(paths["json"]))) / ours, "x"))
    rows.append(Row("JSON, gzip and json at once", seconds(lambda: plain_json(paths["json"])) / ours, "x"))
    if jax is not None:
        done = subprocess.run(
            [jax, "-c", _BY_JAX, paths["pb"]],
            env={**os.environ, "JAX_PLATFORMS": "cpu"},
            check=True,
            capture_output=True,
            text=True,
        )
        rows.append(Row("jax.profiler.ProfileData", float(done.stdout) / ours, "x", None, "names and times only"))
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--jax", metavar="PYTHON", help="an interpreter with jax, to compare with")
    parser.add_argument("--events", type=int, default=60_000, metavar="N", help="events of the trace")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="patchkit-traces-") as folder:
        rows = measure(folder, options.events, options.jax)
    report(rows, as_json=options.json, more=versions())


if __name__ == "__main__":
    main()
