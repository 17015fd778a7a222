"""Properties of planning on generated sources: what changes, what does not, and when it refuses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties.effort import effort
from support.memory import Host, Memory

from patchkit.edit.plan import FilePlan, plan_patch
from patchkit.edit.regions import apply_script, invert
from patchkit.errors import AnchorError, PlanError
from patchkit.model.patch import Edit, Patch, Target

PATH = "demo/core.txt"
#: Lines out of few words, so that anchors repeat, overlap and nearly match.
LINES = st.lists(st.sampled_from(["a", "b", "aa", "a b", "", "  a", "é", "\ta", "a\f"]), max_size=12)
BREAKS = st.sampled_from(["\n", "\r\n", "\r", "mixed"])
ANCHORS = st.sampled_from(["a", "b", "aa", "a\n", "a\nb\n", "\n", "é", "  a\n", "b\na", "aa\n"])
TEXTS = st.sampled_from(["", "X", "X\n", "X\nY\n", "é\n", "aa", "  a\n"])


@st.composite
def files(draw: st.DrawFn) -> bytes:
    lines, kind, final = draw(LINES), draw(BREAKS), draw(st.booleans())
    out = []
    for number, line in enumerate(lines):
        ending = ["\n", "\r\n", "\r"][number % 3] if kind == "mixed" else kind
        out.append(line + (ending if final or number + 1 < len(lines) else ""))
    bom = "\ufeff" if draw(st.booleans()) else ""
    return (bom + "".join(out)).encode()


def occurrences(data: bytes, anchor: str) -> int:
    """How often ``anchor`` stands in ``data`` by the rules of the design, counted the slow way."""
    text = data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    starts = [at for at in range(len(text) - len(anchor) + 1) if text[at : at + len(anchor)] == anchor]
    if anchor.endswith("\n"):
        starts = [at for at in starts if at == 0 or text[at - 1] == "\n"]
    return len(starts)


def patch(*edits: Edit) -> Patch:
    return Patch(name="p", summary="p", target=Target(requirement="demo"), edits=edits)


def edit(index: int, anchor: str, text: str, count: int = 1, action: str = "replace") -> Edit:
    return Edit(index=index, files=(PATH,), action=action, find=anchor, text=text, count=count)  # type: ignore[arg-type]


def normal(data: bytes) -> str:
    return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")


def planned(made: Patch, data: bytes) -> FilePlan | None:
    """The plan of the one file; None where it may not be written although the count is right.

    Occurrences can overlap: they count, and cannot all be edited. And what stands between a ``\\r`` and
    a ``\\n`` cannot go, since the two would become one line break.
    """
    try:
        (file,) = plan_patch(made, Memory(data, PATH), Host()).files
    except PlanError as error:
        if error.code == "encoding":
            assert b"\r" in data
            assert b"\n" in data.replace(b"\r\n", b"")
        elif error.code != "overlap":
            raise
        return None
    return file


@effort(200)
@given(files(), ANCHORS, TEXTS, st.integers(1, 4))
def test_refused_exactly_when_the_count_differs(data: bytes, anchor: str, text: str, count: int) -> None:
    hits = occurrences(data, anchor)
    made = patch(edit(1, anchor, text, count))
    if hits != count:
        with pytest.raises(AnchorError):
            plan_patch(made, Memory(data, PATH), Host())
        return
    file = planned(made, data)
    if file is None:
        return
    assert file.before == data
    assert apply_script(data, file.splices) == file.after
    assert apply_script(file.after, invert(file.splices)) == data
    # An independent way to the same text: str.replace finds exactly those that do not overlap.
    if not anchor.endswith("\n"):
        assert normal(file.after) == normal(data).replace(anchor, text)


@effort(200)
@given(files(), ANCHORS, TEXTS, st.sampled_from(["replace", "insert_before", "insert_after", "delete"]))
def test_bytes_outside_of_the_splices_stay(data: bytes, anchor: str, text: str, action: str) -> None:
    hits = occurrences(data, anchor)
    if not hits:
        return
    file = planned(patch(edit(1, anchor, text, hits, action)), data)
    if file is None:
        return
    at = shift = 0
    for splice in file.splices:
        assert data[at : splice.start] == file.after[at + shift : splice.start + shift]
        assert data[splice.start : splice.end] == splice.old
        at, shift = splice.end, shift + len(splice.new) - len(splice.old)
    assert data[at:] == file.after[at + shift :]


@effort(150)
@given(files(), st.lists(st.tuples(ANCHORS, TEXTS), min_size=2, max_size=3), st.randoms(use_true_random=False))
def test_the_order_of_edits_does_not_matter(data: bytes, wanted: list[tuple[str, str]], random: object) -> None:
    counted = [(anchor, text, occurrences(data, anchor)) for anchor, text in wanted]
    if any(not hits for _, _, hits in counted):
        return

    def outcome(order: list[tuple[str, str, int]]) -> tuple[str, bytes | str]:
        try:
            plan = plan_patch(
                patch(*(edit(n, anchor, text, hits) for n, (anchor, text, hits) in enumerate(order, 1))),
                Memory(data, PATH),
                Host(),
            )
        except PlanError as error:
            return "refused", error.code
        return "planned", plan.files[0].after

    shuffled = list(counted)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert outcome(counted) == outcome(shuffled)
