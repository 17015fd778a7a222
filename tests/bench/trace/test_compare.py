"""Two traces: what moved, appeared and vanished."""

from __future__ import annotations

import pytest
from support.traces import LAYERS, STEPS, Op, device, modules, space, study, study_space

from patchkit.bench.trace import Change, compare
from patchkit.bench.trace.xplane import parse_xplane


def compared(before: bytes, after: bytes, steps: tuple[int, int] | None = None) -> list[Change]:
    return compare(parse_xplane(before, "a"), parse_xplane(after, "b"), steps)


def seen(changes: list[Change]) -> list[tuple[str, str, int]]:
    """Kind, name and milliseconds more, of what changed by a nanosecond at least."""
    return [(one.kind, one.row.name, round(one.change_ps / 1e9)) for one in changes if abs(one.change_ps) >= 1000]


def test_nothing_moved() -> None:
    changes = compared(study_space(), study_space())
    assert len(changes) == 6
    assert seen(changes) == []
    assert {(one.kind, one.scale, one.ratio) for one in changes} == {("moved", 1.0, 1.0)}


def test_what_an_edit_does_by_the_time_that_it_moves() -> None:
    """Smaller blocks and no copy: all numbers of the compiler are others then, and nothing else appears or vanishes."""
    after = study_space(study(bkv=256, kernel_ps=300_000_000, copy=False, shift=5))
    changes = compared(study_space(), after)
    assert seen(changes) == [
        ("renamed", "RPAd-p_16-bq_1_1-bkv_256_256.8", round(-0.2 * STEPS * LAYERS)),
        ("vanished", "copy.2", round(-1.562 * STEPS)),
    ]
    (kernel, copy, *rest) = changes
    assert kernel.before is not None
    assert kernel.after is not None
    assert (kernel.before.kernel and kernel.before.kernel.bkv, kernel.after.kernel and kernel.after.kernel.bkv) == (
        2048,
        256,
    )
    assert kernel.ratio == pytest.approx(0.6)
    assert copy.ratio is None
    assert {one.kind for one in rest} == {"renamed"}
    back = seen(compared(after, study_space()))
    assert back == [(kind.replace("vanished", "appeared"), *more) for kind, *more in back]
    assert [(kind, -ms) for kind, _, ms in back] == [("renamed", -929), ("appeared", -403)]


def test_programs_are_found_again_under_other_numbers() -> None:
    ops = [op._replace(program=5 if op.program > 10**12 else 6) for op in study()]
    after = space(device(ops, modules(decode=5, prefill=6)))
    changes = compared(study_space(), after)
    assert seen(changes) == []
    assert {one.kind for one in changes} == {"moved"}


def test_half_the_steps_are_no_gain() -> None:
    half = study_space(study(steps=STEPS // 2), steps=STEPS // 2)
    changes = compared(study_space(), half)
    assert seen(changes) == []
    assert {one.scale for one in changes} == {2.0, 1.0}, "decode and prefill, each by its own runs"


def test_given_steps_scale_all() -> None:
    changes = compared(study_space(), study_space(), (200, 100))
    assert {one.scale for one in changes} == {2.0}
    assert {round(one.ratio or 0, 6) for one in changes} == {2.0}


def test_without_known_runs_nothing_is_scaled() -> None:
    ops = [Op("%dot.1 = f32[512,8] dot(f32[512,8] %a)", 4, 100)]
    before, after = space(device(ops, [])), space(device([ops[0]._replace(count=2)], []))
    (change,) = compared(before, after)
    assert (change.scale, change.before_ps, change.after_ps) == (None, 400, 200)


def test_equal_names_of_other_shapes_are_not_one_operation() -> None:
    before = [Op("%fusion.1 = f32[512,8] fusion(f32[512,8] %a)", 4, 10**6)]
    after = [Op("%fusion.1 = f32[512,16] fusion(f32[512,16] %a)", 4, 10**6)]
    program = [("jit_f(14353906466371394738)", 4, 10)]
    changes = compared(space(device(before, program)), space(device(after, program)))
    assert sorted(one.kind for one in changes) == ["appeared", "vanished"]


def test_four_chips_against_one() -> None:
    ops = [Op("%dot.1 = f32[512,8] dot(f32[512,8] %a)", 4, 10**6)]
    one, four = (space(*(device(ops, modules(4), f"/device:TPU:{chip}") for chip in range(chips))) for chips in (1, 4))
    (change,) = compared(one, four)
    assert (change.ratio, change.scale) == (1.0, 1.0)
