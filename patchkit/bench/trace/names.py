"""What is read out of names in a trace: shapes, operations, programs, and the block sizes of an attention kernel."""

from __future__ import annotations

import re

from patchkit.tuples import NamedTuple

_LAYOUT = re.compile(r"\{[^{}]*\}|/\*[^*]*\*/")
_BLANKS = re.compile(r"\s+")
# `%copy.2 = f32[512,256000]{1,0:T(8,128)} copy(f32[512,256000]{0,1} %p.1), metadata={...}`
_TEXT = re.compile(r"(?:ROOT\s+)?%?(?P<name>[^\s=]+)\s*=\s*(?P<rest>.*)", re.DOTALL)
_OPCODE = re.compile(r"\s*(?P<opcode>[a-z][\w-]*)\(")
_ARRAY = re.compile(r"(?P<type>[a-z]\w*)\[(?P<sizes>[^\]]*)\]")
_PROGRAM = re.compile(r"(?P<name>.*)\((?P<id>\d{1,20})\)$", re.DOTALL)
_NUMBER = re.compile(r"(?:\.\d+)+$|(?:\.(?:clone|remat\d*))+(?:\.\d+)*$")
# tpu_inference/kernels/ragged_paged_attention/v3/kernel.py names its scope so, in 0.24.0 and 0.32.0. `p` is the size of
# a page of the KV cache. The end is looked for: `bkv_128_128` is the beginning of `bkv_128_1280`.
_KERNEL = re.compile(
    r"^%?RPA(?P<case>[a-z]+)-p_(?P<page>\d{1,9})-bq_(?P<bq>\d{1,9})_(?P<bq_compute>\d{1,9})"
    r"-bkv_(?P<bkv>\d{1,9})_(?P<bkv_compute>\d{1,9})(?:-sw_(?P<window>\d{1,9}))?(?:\.\d+)*(?=\s|=|/|$)"
)


class Kernel(NamedTuple):
    """What the name of a ragged paged attention kernel says.

    ``case`` is ``d`` (decode), ``p`` (prefill) or ``m`` (mixed); ``page`` the tokens of a page of the KV cache; ``bq``
    and ``bkv`` the queries and keys of a block, each with the part that is computed at once; ``window`` the sliding
    window, or None.
    """

    case: str
    page: int
    bq: int
    bq_compute: int
    bkv: int
    bkv_compute: int
    window: int | None

    def words(self) -> str:
        """In words, the sizes as ``name=number``."""
        sizes = " ".join(f"{name}={value}" for name, value in self._asdict().items() if name != "case" and value)
        return f"RPA{self.case} {sizes}"


def kernel_of(*names: str) -> Kernel | None:
    """The kernel that one of the names is of: an operation's, or a scope such as ``jit(f)/RPAd-.../pallas_call``."""
    for name in names:
        for part in name.split("/") if "RPA" in name else ():
            found = _KERNEL.match(part)
            if found is not None:
                case, *sizes = found.groups()
                return Kernel(case, *(None if size is None else int(size) for size in sizes))  # type: ignore[arg-type]
    return None


def without_layout(shape: str) -> str:
    """``f32[8,128]{1,0:T(8,128)}`` as ``f32[8,128]``, tuples alike, blanks only behind commas between arrays."""
    bare = _BLANKS.sub("", _LAYOUT.sub("", shape))
    return re.sub(r"(?<=[\])]),", ", ", bare)


def arrays_of(shape: str) -> list[tuple[str, tuple[int, ...]]]:
    """The arrays in a shape, each with its element type and sizes; a size that is no number is 0."""
    return [
        (found["type"], tuple(_size(size) for size in found["sizes"].split(",") if size))
        for found in _ARRAY.finditer(shape)
    ]


def _size(text: str) -> int:
    digits = text.strip().removeprefix("<=")  # of a dynamic shape
    return int(digits) if digits.isdecimal() and len(digits) < 20 else 0


def carries(shape: str | None, batch: int) -> bool:
    """Whether an array of the shape has ``batch`` as its first size."""
    return shape is not None and any(sizes[:1] == (batch,) for _, sizes in arrays_of(shape))


class Instruction(NamedTuple):
    """An instruction's text, in its parts; ``shape`` has no layout."""

    name: str
    shape: str | None = None
    opcode: str | None = None


def instruction_of(text: str) -> Instruction:
    """An operation's name, and where ``text`` is the instruction itself, its shape and opcode."""
    found = _TEXT.match(text)
    if found is None:
        return Instruction(text.strip().removeprefix("%"))
    rest = found["rest"]
    end = _shape_end(rest)
    opcode = _OPCODE.match(rest, end)
    if opcode is None or not end:
        return Instruction(found["name"])
    return Instruction(found["name"], without_layout(rest[:end]), opcode["opcode"])


def _shape_end(text: str) -> int:
    """Where the shape at the start of ``text`` ends: a tuple's closing bracket, or the blank before the opcode."""
    depth = 0
    for found in re.finditer(r"[(){}\[\]\s]", text):
        char = found[0]
        if char in "({[":
            depth += 1
        elif char in ")}]":
            depth -= 1
        elif depth == 0:
            return found.start()
        if depth < 0:
            break
    return 0


def program_of(text: str) -> tuple[str, int | None]:
    """``jit_step(12)`` as name and number; the number is None where there is none."""
    found = _PROGRAM.match(text)
    return (text, None) if found is None else (found["name"], int(found["id"]) & 0xFFFFFFFFFFFFFFFF)


def base_of(name: str) -> str:
    """An operation's name without the number that the compiler made it unique with; a kernel's without its sizes."""
    kernel = kernel_of(name)
    return f"RPA{kernel.case}" if kernel is not None else _NUMBER.sub("", name)
