"""Traces that jax writes on a CPU, and the made-up ones of a TPU as jax's own reader sees them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.traces import LAYERS, STEPS, study_space

from patchkit.bench.trace import find_trace, read_trace, tabulate
from patchkit.cli.main import main

pytestmark = [pytest.mark.real, pytest.mark.slow]

#: A matrix product and a loop of three, at batch 512 seven times, at 1,024 twice, at 16 once; traced two times,
#: the second time into no folder at all, as an engine does whose setting got lost.
JOB = """
import os
import jax
import jax.numpy as jnp

@jax.jit
def step(x, w):
    with jax.named_scope("RPAd-p_16-bq_1_1-bkv_256_128"):  # as interpret mode names what a kernel is made of
        y = jnp.tanh(x @ w)
    y = jax.lax.fori_loop(0, 3, lambda i, y: jnp.sin(y) * 0.5, y)
    return jnp.argmax(y, -1)

w = jnp.ones((64, 128))
xs = {n: jnp.ones((n, 64)) for n in (512, 1024, 16)}
for x in xs.values():
    step(x, w).block_until_ready()
for folder in ("traces", None):
    jax.profiler.start_trace(folder)
    for n, times in ((512, 7), (1024, 2), (16, 1)):
        for _ in range(times):
            step(xs[n], w).block_until_ready()
    jax.profiler.stop_trace()
"""
#: What jax's own reader says of a file: by plane and line the events' names, how often and how long.
SEEN = """
import json, sys
from jax.profiler import ProfileData
found = {}
for plane in ProfileData.from_file(sys.argv[1]).planes:
    for line in plane.lines:
        names = found.setdefault(plane.name, {}).setdefault(line.name, {})
        for event in line.events:
            stats = dict(event.stats)
            key = json.dumps([event.name, stats.get("program_id") if "hlo_op" in stats else None])
            one = names.setdefault(key, [0, 0.0])
            one[0] += 1
            one[1] += event.duration_ns
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory, jax_python: Path) -> Path:
    folder = tmp_path_factory.mktemp("job")
    (folder / "job.py").write_text(JOB)
    environ = {"JAX_PLATFORMS": "cpu", "PATH": "/usr/bin:/bin", "HOME": str(folder)}
    subprocess.run([jax_python, "job.py"], cwd=folder, env=environ, check=True, capture_output=True)
    return folder


def by_jax(python: Path, path: str) -> Any:
    environ = {"JAX_PLATFORMS": "cpu", "PATH": "/usr/bin:/bin"}
    done = subprocess.run([python, "-c", SEEN, path], env=environ, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def test_one_row_for_each_shape(job: Path) -> None:
    rows = tabulate(read_trace(find_trace(str(job / "traces")).taken.path))
    counts = {row.shape: row.occurrences for row in rows if row.scope.endswith("dot_general")}
    assert counts == {"f32[512,128]": 7, "f32[1024,128]": 2, "f32[16,128]": 1}
    loop = {row.shape: row.occurrences for row in rows if row.scope.endswith(("/sin", "/mul"))}
    assert loop == {"f32[512,128]": 21, "f32[1024,128]": 6, "f32[16,128]": 3}
    assert all(source.startswith(str(job / "job.py")) for row in rows for source in row.sources)


def test_counts_and_times_are_those_of_jaxs_own_reader(job: Path, jax_python: Path) -> None:
    path = find_trace(str(job / "traces")).taken.path
    trace = read_trace(path)
    told: dict[tuple[str, int], list[float]] = {}
    for names in by_jax(jax_python, path)["/host:CPU"].values():
        for key, (count, nanoseconds) in names.items():
            name, program = json.loads(key)
            if program is not None and not name.startswith("while"):
                one = told.setdefault((name, program), [0, 0.0])
                one[0] += count
                one[1] += nanoseconds
    found = {(op.name, op.program_id): [op.occurrences, op.total / 1000] for op in trace.ops}
    assert {key: one[0] for key, one in found.items()} == {key: one[0] for key, one in told.items()}
    assert {key: round(one[1]) for key, one in found.items()} == {key: round(one[1]) for key, one in told.items()}


def test_the_trace_for_viewers_says_the_same(job: Path) -> None:
    path = find_trace(str(job / "traces")).taken.path
    found: list[dict[str, list[int]]] = []
    for one in (path, path.replace(".xplane.pb", ".trace.json.gz")):
        sums: dict[str, list[int]] = {}
        for row in tabulate(read_trace(one)):
            total = sums.setdefault(row.name, [0, 0])
            total[0] += row.occurrences
            total[1] += row.total
        found.append(sums)
    assert found[0] == found[1]


def test_a_trace_without_a_folder_is_found(
    job: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(job)
    checks = ["--batch", "512", "--steps", "7", "--layers", "3"]
    assert main(["trace", str(tmp_path), *checks, "--json"]) == 0
    assert "None/plugins/profile" in json.loads(capsys.readouterr().out)["trace"]["path"]
    assert main(["trace", "traces", "--batch", "511"]) == 6
    assert main(["trace", "traces", "--kernel", "d:bkv=256,bkv_compute=128,page=16"]) == 0
    assert main(["trace", "traces", "--kernel", "d:bkv=25"]) == 1
    assert main(["trace", "traces", "--without-kernel", "d:bkv=256"]) == 1
    assert main(["trace", "traces", "--steps", "8"]) == 1
    assert main(["trace", "compare", "traces", "None", "--json"]) == 0
    kinds = {change["kind"] for change in json.loads(capsys.readouterr().out.splitlines()[-1])["changes"]}
    assert kinds == {"moved"}


def test_made_up_planes_are_what_jax_reads(tmp_path: Path, jax_python: Path) -> None:
    """The encoder of the tests writes what it says, by another reader than ours."""
    path = tmp_path / "study.xplane.pb"
    path.write_bytes(study_space())
    planes = by_jax(jax_python, str(path))
    lines = planes["/device:TPU:0"]
    assert set(lines) == {"Steps", "XLA Modules", "XLA Ops", "Async XLA Ops"}
    ops = {json.loads(key)[0].partition(" = ")[0]: one for key, one in lines["XLA Ops"].items()}
    assert ops["%copy.2"] == [STEPS, STEPS * 1_562_000.0]
    assert ops["%RPAd-p_16-bq_1_1-bkv_2048_2048.3"][0] == STEPS * LAYERS
    assert {json.loads(key)[0]: one[0] for key, one in lines["XLA Modules"].items()} == {
        "jit_step_fun(14353906466371394738)": STEPS,
        "jit_step_fun(987654321)": 1,
    }
