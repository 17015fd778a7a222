"""Traces for viewers: a TPU's, as the profiler flattens it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from patchkit.bench.trace import Trace, tabulate
from patchkit.bench.trace.jsontrace import parse_json_trace

DECODE, PREFILL = "jit_step_fun(11)", "jit_step_fun(12)"


def named(pid: int, process: str, **threads: int) -> list[dict[str, Any]]:
    lines = [{"ph": "M", "pid": pid, "name": "process_name", "args": {"name": process}}]
    for name, tid in threads.items():
        title = name.replace("_", " ")
        lines.append({"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": title}})
    return lines


def ran(tid: int, name: str, ts: float, dur: float, pid: int = 3, **args: str) -> dict[str, Any]:
    return {"ph": "X", "pid": pid, "tid": tid, "name": name, "ts": ts, "dur": dur, "args": args}


def op(name: str, ts: float, dur: float, shape: str = "f32[512,8]{1,0:T(8,128)}", **args: str) -> dict[str, Any]:
    return ran(2, name, ts, dur, shape_with_layout=shape, hlo_category=args.pop("category", "fusion"), **args)


def parsed(events: list[dict[str, Any]]) -> Trace:
    return parse_json_trace([json.dumps({"displayTimeUnit": "ns", "traceEvents": [*events, {}]})], "x.trace.json")


@pytest.fixture
def trace() -> Trace:
    """Two steps and a prefill between them, with an operation of one name in each and a loop around another."""
    return parsed(
        [
            *named(3, "/device:TPU:0", XLA_Modules=1, XLA_Ops=2, Async_XLA_Ops=4),
            *named(5, "/device:TPU:0 SparseCore 0", XLA_Ops=2),
            *named(701, "/host:CPU", python=9),
            ran(1, DECODE, 0.0, 10.0),
            ran(1, PREFILL, 20.0, 50.0),
            ran(1, DECODE, 100.0, 10.0),
            op("fusion.1", 1.0, 2.5, source="model.py:3", tf_op="jit(step_fun)/mlp"),
            op("fusion.1", 21.0, 40.0, "f32[1024,8]{1,0}"),
            op("fusion.1", 101.0, 3.5, source="model.py:3", tf_op="jit(step_fun)/mlp"),
            op("while.4", 102.0, 5.0, category="while"),
            op("copy.2", 103.0, 1.0, "", long_name="%copy.2 = f32[512]{0} copy(f32[512]{0} %p)"),
            op("stray.1", 15.0, 1.0),
            ran(4, "copy-start.1", 0.0, 1000.0),
            ran(2, "gather.1", 0.0, 7.0, pid=5),
            ran(9, "$file.py:1 f", 0.0, 9.0, pid=701),
        ]
    )


def test_operations_belong_to_the_program_that_ran_at_their_time(trace: Trace) -> None:
    rows = {(row.program, row.program_id, row.name): row for row in tabulate(trace)}
    assert set(rows) == {
        ("jit_step_fun", 11, "fusion.1"),
        ("jit_step_fun", 12, "fusion.1"),
        ("jit_step_fun", 11, "copy.2"),
        ("", None, "stray.1"),
    }
    decode = rows["jit_step_fun", 11, "fusion.1"]
    assert (decode.shape, decode.occurrences, decode.runs, decode.total) == ("f32[512,8]", 2, 2, 6_000_000)
    assert (decode.least, decode.most) == (2_500_000, 3_500_000)
    assert (decode.sources, decode.scope, decode.category) == (("model.py:3",), "jit(step_fun)/mlp", "fusion")
    assert rows["jit_step_fun", 12, "fusion.1"].shape == "f32[1024,8]"
    assert rows["jit_step_fun", 11, "copy.2"].shape == "f32[512]", "out of the instruction's text"


def test_what_is_not_counted_is_told(trace: Trace) -> None:
    assert trace.left_out == {
        "while (its body is counted)": 1,
        "line Async XLA Ops": 1,
        "plane /device:TPU:0 SparseCore 0": 1,
    }
    assert trace.platform == "tpu"
    assert {(program.name, program.id, program.runs, program.total) for program in trace.programs} == {
        ("jit_step_fun", 11, 2, 20_000_000),
        ("jit_step_fun", 12, 1, 50_000_000),
    }
    assert len(trace.notes) == 1


def test_names_may_come_behind_the_events() -> None:
    trace = parsed([op("fusion.1", 1.0, 2.0), *named(3, "/device:TPU:0", XLA_Ops=2)])
    assert [(row.name, row.shape, row.program) for row in tabulate(trace)] == [("fusion.1", "f32[512,8]", "")]


def test_a_trace_that_reached_the_profilers_limit_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("patchkit.bench.trace.jsontrace.CAP", 3)
    trace = parsed([op("fusion.1", 1.0, 2.0), *named(3, "/device:TPU:0", XLA_Ops=2)])
    assert any("leaves out what is more than" in note for note in trace.notes)
