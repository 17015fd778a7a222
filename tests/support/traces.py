"""Traces made up for tests, by an encoder of the wire format that shares nothing with patchkit's reader.

``tests/real/test_traces.py`` reads what it makes with jax's own reader. The numbers of ``STUDY`` are the study's: 258
decode steps of 512 requests and one prefill of 1,024 tokens through 18 layers, operations named alike in both.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

DECODE, PREFILL = 14353906466371394738, 987654321  # the first is beyond a signed number of 64 bits
STEPS, LAYERS = 258, 18
STARTED = 1_700_000_000_000_000_000


def varint(number: int) -> bytes:
    number &= 2**64 - 1
    digits = []
    while True:
        number, low = number // 128, number % 128
        digits.append(low + (128 if number else 0))
        if not number:
            return bytes(digits)


def number(field: int, value: int) -> bytes:
    return varint(field * 8) + varint(value)


def double(field: int, value: float) -> bytes:
    return varint(field * 8 + 1) + struct.pack("<d", value)


def message(field: int, content: bytes | str) -> bytes:
    data = content.encode() if isinstance(content, str) else content
    return varint(field * 8 + 2) + varint(len(data)) + data


class Op(NamedTuple):
    """An operation on a TPU: each of ``count`` events lasts ``ps``, by the device's clock."""

    text: str
    count: int
    ps: int
    program: int = DECODE
    shape: str = ""
    category: str = "fusion"
    source: str = ""
    scope: str = ""
    host_ps: int | None = None


class Names:
    """The numbers of statistics and texts of one plane."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def __getitem__(self, name: str) -> int:
        return self.known.setdefault(name, len(self.known) + 1)

    def encoded(self) -> bytes:
        return b"".join(
            message(5, number(1, key) + message(2, number(1, key) + message(2, name)))
            for name, key in self.known.items()
        )


def event(metadata: int, offset: int, ps: int, stats: bytes = b"") -> bytes:
    return message(4, number(1, metadata) + number(2, offset) + number(3, ps) + stats)


def line(name: str, events: bytes, at: int = 3) -> bytes:
    return message(at, number(1, 7) + message(2, name) + number(3, 1000) + events)


def metadata(key: int, name: str, display: str = "", stats: bytes = b"") -> bytes:
    shown = message(4, display) if display else b""
    return message(4, number(1, key) + message(2, number(1, key) + message(2, name) + shown + stats))


def device(
    ops: Sequence[Op], modules: Sequence[tuple[str, int, int]], name: str = "/device:TPU:0", more: bytes = b""
) -> bytes:
    """A plane: its operations, and of each program the name with its number, the runs and the time of one."""
    stats = Names()
    own = stats["device_duration_ps"]
    table, events, at = b"", b"", 0
    for key, op in enumerate(ops, 1):
        values = message(5, number(1, stats["program_id"]) + number(3, op.program))
        for word, value in (("shape_with_layout", op.shape), ("hlo_category", op.category), ("tf_op", op.scope)):
            if value:
                values += message(5, number(1, stats[word]) + message(5, value))
        if op.source:  # by reference, as the profiler does where a text comes often
            values += message(5, number(1, stats["source"]) + number(7, stats[op.source]))
        shown = op.text.partition(" = ")[0].removeprefix("%")
        table += metadata(key, op.text, shown, values)
        for _ in range(op.count):
            told = message(4, number(1, stats["device_offset_ps"]) + number(3, at))
            told += message(4, number(1, own) + number(3, op.ps))
            events += event(key, at, op.ps if op.host_ps is None else op.host_ps, told)
            at += op.ps
    runs = b""
    for key, (title, count, ps) in enumerate(modules, len(ops) + 1):
        table += metadata(key, title)
        runs += b"".join(event(key, number_ * ps, ps) for number_ in range(count))
    extra = metadata(900, "%copy-start.1 = (f32[8], f32[8]) copy-start(f32[8] %p)", "copy-start.1")
    lines = line("Steps", event(900, 0, 5)) + line("XLA Modules", runs) + line("XLA Ops", events)
    lines += line("Async XLA Ops", event(900, 0, 10**12))
    return message(1, number(1, 2) + message(2, name) + lines + table + extra + stats.encoded() + more)


def environment() -> bytes:
    stats = Names()
    start = message(6, number(1, stats["profile_start_time"]) + number(3, STARTED))
    return message(1, message(2, "Task Environment") + stats.encoded() + start)


def versions(jax: str) -> bytes:
    stats = Names()
    told = message(6, number(1, stats["jax_version"]) + message(5, jax))
    return message(1, message(2, "/host:metadata") + stats.encoded() + told)


def kernel(bkv: int, count: int, ps: int, tail: str = ".3", program: int = DECODE) -> Op:
    name = f"RPAd-p_16-bq_1_1-bkv_{bkv}_{bkv}"
    text = f"%{name}{tail} = bf16[512,8,1,256]{{3,2,1,0:T(8,128)(2,1)}} custom-call(bf16[512,8,1,256] %q)"
    return Op(text, count, ps, program, "bf16[512,8,1,256]{3,2,1,0}", "custom-call", "my_rpa/kernel.py:1808")


def study(
    bkv: int = 2048, kernel_ps: int = 500_000_000, steps: int = STEPS, copy: bool = True, shift: int = 0
) -> list[Op]:
    """The operations of the study's trace at batch 512; ``shift`` gives the compiler's numbers as another edit does."""
    ops = [
        kernel(bkv, steps * LAYERS, kernel_ps, f".{3 + shift}"),
        Op(
            f"%fusion.{1 + shift} = bf16[512,2048]{{1,0:T(8,128)(2,1)}} fusion(bf16[512,2048] %p), kind=kLoop",
            steps * LAYERS,
            100_000_000,
            shape="bf16[512,2048]{1,0:T(8,128)(2,1)}",
            source="model.py:10",
            scope="jit(step_fun)/mlp",
            host_ps=1,
        ),
        # No statistic with its shape: it is in the text alone.
        Op(
            f"%convert_element_type.{7 + shift} = f32[512,256000]{{1,0:T(8,128)}} convert(bf16[512,256000] %l)",
            steps,
            1_232_000_000,
            category="convert",
        ),
        Op(
            f"%argmax.{1 + shift} = (f32[512]{{0:T(512)}}, s32[512]{{0}}) reduce(f32[512,256000] %l, s32[] %c)",
            steps,
            696_000_000,
            shape="(f32[512]{0:T(512)}, s32[512]{0})",
            category="reduce",
        ),
        Op("%while.9 = (s32[]) while((s32[]) %t), body=%b", steps, 9_999_000_000, category="while"),
        Op(
            f"%fusion.{1 + shift} = bf16[1024,2048]{{1,0:T(8,128)(2,1)}} fusion(bf16[1024,2048] %p), kind=kLoop",
            LAYERS,
            250_000_000,
            PREFILL,
            "bf16[1024,2048]{1,0}",
            source="model.py:10",
            scope="jit(step_fun)/mlp",
        ),
    ]
    if copy:
        text = f"%copy.{2 + shift} = f32[512,256000]{{0,1:T(8,128)}} copy(f32[512,256000] %x)"
        ops.append(Op(text, steps, 1_562_000_000, shape="f32[512,256000]{0,1:T(8,128)}", category="data formatting"))
    return ops


def modules(steps: int = STEPS, decode: int = DECODE, prefill: int = PREFILL) -> list[tuple[str, int, int]]:
    return [(f"jit_step_fun({decode})", steps, 26_500_000_000), (f"jit_step_fun({prefill})", 1, 80_000_000_000)]


def space(*planes: bytes) -> bytes:
    return b"".join(planes) + message(4, "a-host")


def study_space(ops: Sequence[Op] | None = None, *, steps: int = STEPS, jax: str = "0.10.2") -> bytes:
    """The study's trace, with planes beside it that are not to be counted."""
    sparse = device([Op("%gather.1 = f32[512] gather(f32[9] %p)", 3, 10)], [], "/device:TPU:0 SparseCore 0")
    chip = device(study() if ops is None else ops, modules(steps))
    return space(versions(jax), chip, sparse, environment())
