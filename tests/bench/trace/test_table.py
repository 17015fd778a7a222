"""What rows must be for a trace to be believed."""

from __future__ import annotations

import pytest
from support.traces import LAYERS, STEPS, Op, kernel, study, study_space

from patchkit.bench.trace import Checked, Expected, Trace, check, tabulate
from patchkit.bench.trace.xplane import parse_xplane


def traced(ops: list[Op] | None = None, steps: int = STEPS) -> Trace:
    return parse_xplane(study_space(ops, steps=steps), "study.xplane.pb")


def checked(trace: Trace, **expected: object) -> Checked:
    return check(trace, tabulate(trace), Expected(**expected))  # type: ignore[arg-type]


def told(found: Checked) -> list[tuple[str, str]]:
    return [(finding.kind, finding.message) for finding in found.findings]


def test_the_studys_trace_holds() -> None:
    found = checked(traced(), batch=512, shapes=("f32[512,256000]{1,0:T(8,128)}",), steps=STEPS, layers=LAYERS)
    assert told(found) == []
    marks = {(one.row.name, one.row.shape): (one.phase, one.per_step) for one in found.rows}
    assert marks == {
        ("RPAd-p_16-bq_1_1-bkv_2048_2048.3", "bf16[512,8,1,256]"): ("decode", 18),
        ("fusion.1", "bf16[512,2048]"): ("decode", 18),
        ("convert_element_type.7", "f32[512,256000]"): ("decode", 1),
        ("argmax.1", "(f32[512], s32[512])"): ("decode", 1),
        ("copy.2", "f32[512,256000]"): ("decode", 1),
        ("fusion.1", "bf16[1024,2048]"): ("prefill", 18),
    }


def test_the_steps_by_the_traces_own_account() -> None:
    assert checked(traced()).steps == STEPS
    assert checked(traced(), batch=512).steps == STEPS
    assert checked(traced(), batch=1024).steps == 1, "the prefill's program"


def test_a_trace_of_another_batch_is_stale() -> None:
    found = checked(traced(), batch=256, steps=STEPS)
    assert found.stale
    ((kind, message),) = told(found)
    assert kind == "stale"
    assert message.startswith(
        "no operation carries the batch 256: a stale or foreign trace; its longest have bf16[512,"
    )


def test_a_trace_without_the_shape_is_stale() -> None:
    assert checked(traced(), shapes=("f32[512,256001]",)).stale
    assert not checked(traced(), shapes=("(f32[512], s32[512])",)).stale


def test_a_trace_without_operations_is_stale() -> None:
    assert checked(traced([])).stale


def test_another_number_of_steps_is_told() -> None:
    ((kind, message),) = told(checked(traced(), steps=300))
    assert kind == "steps"
    assert message.startswith("no program ran 300 times")
    assert "jit_step_fun 258 times, jit_step_fun 1 times" in message


def test_lost_events_are_told() -> None:
    ops = study()
    lost = [ops[0], ops[1]._replace(count=STEPS * LAYERS - 44), *ops[2:]]
    assert told(checked(traced(lost))) == [], "nothing was asked for"
    (mark,) = (one for one in checked(traced(lost)).rows if one.row.shape == "bf16[512,2048]")
    assert (mark.phase, mark.per_step) == ("uneven", None)
    ((kind, message),) = told(checked(traced(lost), steps=STEPS, layers=LAYERS))
    assert kind == "count"
    assert message.startswith("fusion.1 bf16[512,2048] in jit_step_fun: 4600 occurrences are not as many in each step")


@pytest.mark.parametrize(("layers", "kinds"), [(18, []), (17, ["layers", "layers"]), (9, ["layers"])])
def test_a_kernel_runs_once_in_each_layer(layers: int, kinds: list[str]) -> None:
    assert [kind for kind, _ in told(checked(traced(), steps=STEPS, layers=layers))] == kinds


def test_the_block_sizes_that_must_have_run() -> None:
    wanted = {"case": "d", "bkv": 2048}
    assert told(checked(traced(), kernels=(wanted,))) == []
    ((kind, message),) = told(checked(traced(), kernels=({"bkv": 204},)))
    assert kind == "kernel"
    assert message == (
        "no attention kernel with bkv=204 ran in a decode step; "
        "ran: RPAd page=16 bq=1 bq_compute=1 bkv=2048 bkv_compute=2048"
    )


def test_the_block_sizes_that_must_not_have_run() -> None:
    both = [*study(bkv=256), kernel(2048, STEPS * LAYERS, 5, ".9")]
    found = checked(traced(both), kernels=({"bkv": 256},), absent=({"bkv": 2048},))
    ((kind, message),) = told(found)
    assert kind == "kernel"
    assert message.startswith("an attention kernel with bkv=2048 ran in a decode step: RPAd page=16")
    assert told(checked(traced(study(bkv=256)), absent=({"bkv": 2048},))) == []
