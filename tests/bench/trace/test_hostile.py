"""Files that are no traces, cut off, or made to do harm: an error of ours, in bounded time and memory."""

from __future__ import annotations

import contextlib
import gzip
import json
import tracemalloc
import zlib
from pathlib import Path

import pytest
from fuzz.runs import runs
from hypothesis import given
from hypothesis import strategies as st
from support.traces import Op, device, event, line, message, metadata, modules, number, space, varint

from patchkit.bench.trace import Trace, compare, read_trace, tabulate
from patchkit.bench.trace.hlo import shape_of
from patchkit.bench.trace.jsontrace import parse_json_trace
from patchkit.bench.trace.wire import Malformed, fields
from patchkit.bench.trace.xplane import parse_xplane
from patchkit.errors import UsageError

RECORDED = Path(__file__).parent / "recorded"
PB = gzip.decompress((RECORDED / "cpu.xplane.pb.gz").read_bytes())
JSON = gzip.decompress((RECORDED / "cpu.trace.json.gz").read_bytes())
TPU = space(device([Op("%dot.1 = f32[512,8]{1,0} dot(f32[512,8] %a)", 3, 100, shape="f32[512,8]{1,0}")], modules(3)))


def read(data: bytes) -> Trace | None:
    """The trace, whose table can be made; None where it is refused."""
    try:
        trace = parse_xplane(data, "x")
    except Malformed:
        return None
    tabulate(trace)
    compare(trace, trace)
    return trace


@runs(300)
@given(st.binary(max_size=300))
def test_any_bytes(data: bytes) -> None:
    read(data)


@runs(300)
@given(st.sampled_from([PB, TPU]), st.data())
def test_changed_bytes(whole: bytes, data: st.DataObject) -> None:
    """A few bytes of a real trace are others; what can be read then is a table still."""
    changed = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    read(bytes(changed))


@runs(150)
@given(st.sampled_from([PB, TPU]), st.data())
def test_cut_off(whole: bytes, data: st.DataObject) -> None:
    """A trace that an engine did not write to its end: what is left is the whole of its first planes, or refused."""
    read(whole[: data.draw(st.integers(0, len(whole) - 1))])


@runs(150)
@given(st.data())
def test_json_changed_or_cut_off(data: st.DataObject) -> None:
    changed = bytearray(JSON[: data.draw(st.integers(0, len(JSON)))])
    for _ in range(data.draw(st.integers(0, 3)) if changed else 0):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(Malformed):
        tabulate(parse_json_trace([changed.decode("utf-8", "replace")], "x"))


VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
EVENT = st.dictionaries(
    st.sampled_from(["ph", "pid", "tid", "ts", "dur", "name", "args"]),
    VALUES | st.sampled_from(["X", "M", "process_name", "thread_name", "/device:TPU:0", "XLA Ops"]),
)


@runs(300)
@given(st.lists(EVENT, max_size=6))
def test_json_of_other_types(events: list[object]) -> None:
    with contextlib.suppress(Malformed):
        tabulate(parse_json_trace([json.dumps({"traceEvents": events})], "x"))


@runs(200)
@given(st.integers(1, 50))
def test_json_comes_in_pieces(size: int) -> None:
    text = JSON.decode()
    pieces = [text[at : at + 997 * size] for at in range(0, len(text), 997 * size)]
    assert parse_json_trace(pieces, "x") == parse_json_trace([text], "x")


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a",  # a plane without a length
        b"\x0a\x05abc",  # longer than what is left
        b"\x0b",  # a group
        b"\x00\x00",  # field 0
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",  # a length of eleven bytes
        b"\x0d\x01\x02",  # four bytes, of which two are left
        b"\x2a\x00",  # no field of a trace
    ],
)
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(Malformed, match="byte"):
        parse_xplane(data, "x")


def test_a_span_stays_within_its_message() -> None:
    inner = varint(2 * 8 + 2) + varint(100)  # claims more than the message around it has
    with pytest.raises(Malformed, match="field 2 is 100 bytes long, and 0 are left"):
        list(fields(message(1, inner) + b"x" * 200, 2, 2 + len(inner)))


@pytest.mark.parametrize("cut", ["stat", "event", "number"])
def test_an_event_stays_within_its_line(cut: str) -> None:
    bad = {
        "stat": message(4, number(1, 1) + varint(4 * 8 + 2) + varint(50)),
        "event": varint(4 * 8 + 2) + varint(50) + number(1, 1),
        "number": message(4, varint(8)),
    }[cut]
    plane = message(2, "/device:TPU:0") + message(3, message(2, "XLA Ops") + bad) + message(9, "x" * 100)
    with pytest.raises(Malformed, match=r"event|field 4"):
        parse_xplane(message(1, plane), "x")


def test_tuples_without_end() -> None:
    shape = number(2, 11)
    for _ in range(5000):
        shape = number(2, 13) + message(4, shape)
    with pytest.raises(Malformed, match="nested more than 20 deep"):
        shape_of(shape, 0, len(shape))


def test_metadata_that_nobody_uses_costs_no_memory_to_speak_of() -> None:
    """Thirty thousand names are in the file, and one is used."""
    names = b"".join(metadata(key, "n") for key in range(30_000))
    data = space(message(1, message(2, "/device:TPU:0") + line("XLA Ops", event(5, 0, 7)) + names))
    tracemalloc.start()
    trace = parse_xplane(data, "x")
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [op.name for op in trace.ops] == ["n"]
    assert used < 40 * len(data)


def test_more_kinds_than_there_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("patchkit.bench.trace.events.MOST_KINDS", 10)
    events = b"".join(event(key, 0, 1) for key in range(11))
    with pytest.raises(Malformed, match="more than 10 kinds"):
        parse_xplane(space(message(1, message(2, "/device:TPU:0") + line("XLA Ops", events))), "x")


# --- files


def refused(path: Path, **options: int) -> UsageError:
    with pytest.raises(UsageError) as caught:
        read_trace(str(path), **options)
    assert caught.value.details["path"] == str(path)
    return caught.value


def test_each_form_is_told_by_its_first_bytes(tmp_path: Path) -> None:
    for name, data in (("a", PB), ("b", JSON), ("c", gzip.compress(JSON))):
        (tmp_path / name).write_bytes(data)
    found = [read_trace(str(tmp_path / name)) for name in "abc"]
    assert [trace.kind for trace in found] == ["xplane", "json", "json"]
    assert found[1]._replace(path="") == found[2]._replace(path="")


def test_a_gzip_file_that_unpacks_to_more_than_is_allowed(tmp_path: Path) -> None:
    """64 MiB of blanks between two events, in 64 KiB: it is given up at the limit, with little held of it."""
    packer = zlib.compressobj(9, wbits=31)
    path = tmp_path / "bomb.trace.json.gz"
    with open(path, "wb") as file:
        file.write(packer.compress(b'{"traceEvents":['))
        for _ in range(64):
            file.write(packer.compress(b" " * (1 << 20)))
        file.write(packer.flush())
    tracemalloc.start()
    error = refused(path, most=8 << 20)
    used = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert error.code == "trace"
    assert "it is larger than 8 MiB" in error.message
    assert used < 40 << 20


def test_members_of_a_gzip_file_follow_each_other(tmp_path: Path) -> None:
    path = tmp_path / "a.trace.json.gz"
    path.write_bytes(gzip.compress(JSON[:1000]) + gzip.compress(JSON[1000:]))
    assert read_trace(str(path)).events == 64


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (gzip.compress(JSON)[:-40], "cut off"),
        (b"\x1f\x8b" + b"x" * 40, ""),
        (b"", "no array `traceEvents`"),
        (b'{"traceEvents":[{"ph":"X"', "cut off, or no JSON"),
        (b'{"traceEvents":[' + b"[" * 100_000, "cut off, or no JSON"),
        (b'{"traceEvents":[{"ph":"X","ts":1e999}]}', "an event that is none"),
        (b'{"traceEvents":[{"ph":"X","dur":"x"}]}', "an event that is none"),
        (b"PK\x03\x04 not a trace", "none of a trace's"),
    ],
)
def test_what_is_no_trace_is_refused(tmp_path: Path, data: bytes, reason: str) -> None:
    path = tmp_path / "x"
    path.write_bytes(data)
    error = refused(path)
    assert (error.code, error.exit_status) == ("trace", 2)
    assert reason in error.message


def test_a_large_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "x.xplane.pb"
    path.write_bytes(PB)
    assert "larger than" in refused(path, most=1000).message


def test_no_file(tmp_path: Path) -> None:
    assert refused(tmp_path / "gone").code == "no-trace"
    assert refused(tmp_path).code == "no-trace"
