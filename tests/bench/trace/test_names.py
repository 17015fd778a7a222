"""Shapes, operations, programs and kernels, out of their names."""

from __future__ import annotations

import pytest

from patchkit.bench.trace.names import (
    Kernel,
    base_of,
    carries,
    instruction_of,
    kernel_of,
    program_of,
    without_layout,
)

STOCK = Kernel("d", 16, 1, 1, 2048, 2048, None)


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("RPAd-p_16-bq_1_1-bkv_2048_2048", STOCK),
        ("%RPAd-p_16-bq_1_1-bkv_2048_2048.3", STOCK),
        ("RPAd-p_16-bq_1_1-bkv_2048_2048 = bf16[512] custom-call()", STOCK),
        ("jit(step)/RPAd-p_16-bq_1_1-bkv_2048_2048/pallas_call", STOCK),
        ("RPAm-p_128-bq_32_16-bkv_128_1280-sw_4096.12", Kernel("m", 128, 32, 16, 128, 1280, 4096)),
        ("RPAp-p_16-bq_256_64-bkv_128_128", Kernel("p", 16, 256, 64, 128, 128, None)),
        ("RPAd-p_16-bq_1_1-bkv_128_128x", None),
        ("RPAd-p_16-bq_1-bkv_128_128", None),
        ("xRPAd-p_16-bq_1_1-bkv_128_128", None),
        ("fusion.1", None),
        ("", None),
    ],
)
def test_the_sizes_in_a_kernels_name(name: str, kernel: Kernel | None) -> None:
    assert kernel_of(name) == kernel


def test_one_name_that_begins_like_another_is_another_kernel() -> None:
    small, large = (kernel_of(f"RPAd-p_16-bq_1_1-bkv_128_{size}") for size in (128, 1280))
    assert small is not None
    assert large is not None
    assert (small.bkv_compute, large.bkv_compute) == (128, 1280)


@pytest.mark.parametrize(
    ("shape", "bare"),
    [
        ("f32[512,256000]{1,0:T(8,128)}", "f32[512,256000]"),
        ("bf16[8]{0:T(1024)(128)(2,1)S(1)}", "bf16[8]"),
        ("(f32[512]{0:T(512)}, /*index=1*/s32[512]{0})", "(f32[512], s32[512])"),
        ("(f32[2]{0},(s32[], pred[3,4]{1,0}))", "(f32[2], (s32[], pred[3,4]))"),
        ("f32[]", "f32[]"),
        ("token[]", "token[]"),
        ("", ""),
    ],
)
def test_a_shape_without_its_layout(shape: str, bare: str) -> None:
    assert without_layout(shape) == bare


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("%copy.2 = f32[8,4]{0,1:T(8,128)} copy(f32[8,4]{1,0} %p.1), metadata={}", ("copy.2", "f32[8,4]", "copy")),
        ("ROOT %t = (f32[2]{0}, s32[]) tuple(%a, %b)", ("t", "(f32[2], s32[])", "tuple")),
        ("%all-reduce.1 = f32[2]{0} all-reduce-start(f32[2] %a)", ("all-reduce.1", "f32[2]", "all-reduce-start")),
        ("fusion.7", ("fusion.7", None, None)),
        ("%odd = whatever", ("odd", None, None)),
        ("%odd = (((", ("odd", None, None)),
        ("%odd = ))) x(", ("odd", None, None)),
        ("", ("", None, None)),
    ],
)
def test_an_instructions_text(text: str, parts: tuple[str, str | None, str | None]) -> None:
    assert instruction_of(text) == parts


def test_a_programs_number() -> None:
    assert program_of("jit_step(12)") == ("jit_step", 12)
    assert program_of("jit__lambda_(f)(18446744073709551615)") == ("jit__lambda_(f)", 2**64 - 1)
    assert program_of("jit_step") == ("jit_step", None)


def test_the_batch_is_the_first_size_of_an_array() -> None:
    assert carries("(f32[], s32[512,4])", 512)
    assert not carries("f32[4,512]", 512)
    assert not carries("f32[5120]", 512)
    assert carries("f32[<=512,4]", 512)
    assert not carries(None, 512)


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("fusion.123", "fusion"),
        ("fusion.1.2", "fusion"),
        ("fusion.5.clone", "fusion.5"),
        ("copy-start", "copy-start"),
        ("RPAd-p_16-bq_1_1-bkv_2048_2048.3", "RPAd"),
    ],
)
def test_the_compilers_own_number(name: str, base: str) -> None:
    assert base_of(name) == base
