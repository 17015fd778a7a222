"""Reading ``.xplane.pb``: what jax wrote on a CPU, and made-up planes of a TPU."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from support.traces import (
    DECODE,
    LAYERS,
    PREFILL,
    STARTED,
    STEPS,
    Op,
    device,
    double,
    message,
    metadata,
    modules,
    number,
    space,
    study_space,
)

from patchkit.bench.trace import Trace, tabulate
from patchkit.bench.trace.jsontrace import parse_json_trace
from patchkit.bench.trace.wire import Malformed
from patchkit.bench.trace.xplane import parse_xplane

RECORDED = Path(__file__).parent / "recorded"


def recorded() -> Trace:
    """By jax 0.10.2 on a CPU: five runs of a step at 512, two at 1,024, one at 16; a loop of two in each."""
    return parse_xplane(gzip.decompress((RECORDED / "cpu.xplane.pb.gz").read_bytes()), "cpu.xplane.pb")


def test_rows_of_a_cpu_are_told_apart_by_shape() -> None:
    rows = tabulate(recorded())
    assert {(row.name, row.shape): row.occurrences for row in rows if row.name == "ynn_fusion"} == {
        ("ynn_fusion", "f32[512,128]"): 5,
        ("ynn_fusion", "f32[1024,128]"): 2,
        ("ynn_fusion", "f32[16,128]"): 1,
    }
    assert sorted(row.occurrences for row in rows if row.name == "wrapped_add") == [2, 4, 10], "a loop of two in each"
    assert {row.shape for row in rows if row.name == "iota_reduce_fusion"} == {
        "(f32[512], s32[512])",
        "(f32[1024], s32[1024])",
        "(f32[16], s32[16])",
    }


def test_scope_source_and_runs_of_a_cpu() -> None:
    trace = recorded()
    assert {(program.name, program.runs, program.total) for program in trace.programs} == {
        ("jit_step", 5, None),
        ("jit_step", 2, None),
        ("jit_step", 1, None),
    }
    (row,) = (row for row in tabulate(trace) if row.shape == "f32[512,128]" and row.name == "ynn_fusion")
    assert (row.program, row.category, row.scope, row.sources) == (
        "jit_step",
        "fusion",
        "jit(step)/dot_general",
        ("bench/step.py:5",),
    )
    assert trace.platform == "cpu"
    assert trace.versions["jax_version"] == "0.10.2"
    assert trace.started is not None
    assert trace.left_out == {"while (its body is counted)": 8}


def test_times_of_a_cpu_are_those_that_the_profiler_wrote_for_viewers() -> None:
    text = gzip.decompress((RECORDED / "cpu.trace.json.gz").read_bytes()).decode()
    told: dict[str, list[int]] = {}
    for row in tabulate(parse_json_trace([text], "cpu.trace.json")):
        told[row.name] = [row.occurrences, row.total]
    found: dict[str, list[int]] = {}
    for row in tabulate(recorded()):
        one = found.setdefault(row.name, [0, 0])
        one[0] += row.occurrences
        one[1] += row.total
    assert found == told


def study() -> Trace:
    return parse_xplane(study_space(), "study.xplane.pb")


def test_rows_of_a_tpu() -> None:
    rows = {(row.program_id, row.name, row.shape): row for row in tabulate(study())}
    assert set(rows) == {
        (DECODE, "RPAd-p_16-bq_1_1-bkv_2048_2048.3", "bf16[512,8,1,256]"),
        (DECODE, "fusion.1", "bf16[512,2048]"),
        (DECODE, "convert_element_type.7", "f32[512,256000]"),
        (DECODE, "argmax.1", "(f32[512], s32[512])"),
        (DECODE, "copy.2", "f32[512,256000]"),
        (PREFILL, "fusion.1", "bf16[1024,2048]"),
    }
    copy = rows[DECODE, "copy.2", "f32[512,256000]"]
    assert (copy.program, copy.occurrences, copy.runs) == ("jit_step_fun", STEPS, STEPS)
    assert (copy.least, copy.most, copy.average) == (1_562_000_000, 1_562_000_000, 1_562_000_000)
    decode, prefill = rows[DECODE, "fusion.1", "bf16[512,2048]"], rows[PREFILL, "fusion.1", "bf16[1024,2048]"]
    assert (decode.occurrences, prefill.occurrences) == (STEPS * LAYERS, LAYERS)
    assert decode.average == 100_000_000, "the device's own time, not the one that the host saw"
    assert decode.sources == ("model.py:10",)
    assert decode.scope == "jit(step_fun)/mlp"


def test_what_is_not_counted_on_a_tpu_is_told() -> None:
    trace = study()
    assert trace.left_out == {
        "plane /device:TPU:0 SparseCore 0": 1,
        "line Steps": 1,
        "line Async XLA Ops": 1,
        "while (its body is counted)": STEPS,
    }
    assert trace.started == STARTED
    assert trace.platform == "tpu"
    assert {(program.id, program.runs) for program in trace.programs} == {(DECODE, STEPS), (PREFILL, 1)}


def test_chips_are_one_row() -> None:
    ops = [Op("%dot.1 = f32[512,8] dot(f32[512,8] %a, f32[8,8] %b)", 4, 100)]
    chips = [device(ops, modules(4), f"/device:TPU:{chip}") for chip in range(2)]
    (row,) = tabulate(parse_xplane(space(*chips), "two"))
    assert (row.devices, row.occurrences, row.runs, row.total) == (2, 8, 8, 800)


def test_the_order_of_fields_does_not_matter() -> None:
    """As another writer may have them: the line's name behind its events, an event's time before its metadata."""
    events = message(4, number(3, 70) + number(1, 5) + number(999, 1)) * 3
    unknown = double(77, 1.5) + message(78, "?") + number(79, 1)
    named = unknown + events + message(2, "XLA Ops")
    plane = message(3, named) + metadata(5, "%dot.1 = f32[512,8] dot(f32[512,8] %a)") + message(2, "/device:TPU:3")
    (row,) = tabulate(parse_xplane(message(1, plane), "x"))
    assert (row.name, row.shape, row.occurrences, row.total) == ("dot.1", "f32[512,8]", 3, 210)


@pytest.mark.parametrize("size", [0, 1, 2])
def test_a_file_without_planes_is_none(size: int) -> None:
    with pytest.raises(Malformed):
        parse_xplane(b"\x0a" * size, "x")


def test_errors_of_the_profiler_are_told() -> None:
    data = space(device([], [])) + message(2, "buffer full") + message(3, "dropped")
    assert parse_xplane(data, "x").notes == (
        "error of the profiler: buffer full",
        "warning of the profiler: dropped",
    )
