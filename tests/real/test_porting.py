"""``port`` on changes of lines of released files, by the functions of ``benchmarks/porting``, on a small sample.

What is right is told by git's comparisons and by what stands once, never by patchkit's own alignment.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from released import REPOSITORY

sys.path.insert(0, str(REPOSITORY / "benchmarks" / "porting"))

from cases import PORT, measure, opened, sample
from truth import Sources, Truth, truths

pytestmark = pytest.mark.real

NAME = "tpu-inference"
RIVAL = "git apply"


@pytest.mark.parametrize(
    ("old", "new", "kind", "count"),
    [
        ("0.23.0", "0.24.0", "change", 50),
        ("0.23.0", "0.32.0", "change", 40),
        ("0.20.0", "0.21.0", "insert", 20),
        ("0.27.0", "0.32.0", "delete", 20),
    ],
)
def test_what_port_carries_is_where_the_line_is(
    old: str, new: str, kind: str, count: int, wheel: Callable[[str, str], Path]
) -> None:
    with (
        opened(str(wheel(NAME, old)), NAME, old) as before,
        opened(str(wheel(NAME, new)), NAME, new) as after,
    ):
        changes = sample(before, after, kind, count, seed=7)
        found = measure(before, after, changes, [PORT, RIVAL], lambda _: None)
    assert len(found) == count
    wrong = [(case.change, case.truth, case.verdicts[PORT][1]) for case in found if case.verdicts[PORT][0] == "wrong"]
    assert not wrong
    right = {tool: sum(case.verdicts[tool][0] == "right" for case in found) for tool in (PORT, RIVAL)}
    assert right[PORT] >= right[RIVAL]
    # The sample is not one of unknown truths, and most of it can be carried.
    assert Counter(case.truth.state for case in found)["at"] > count * 3 // 4


def known(old: str, new: str, tmp_path: Path, others: dict[str, str] | None = None) -> dict[int, Truth]:
    """The truth of every line of a made-up file, by its number (0-based)."""
    before = Sources({"m.py": old.split("\n")[:-1]})
    after = Sources({"m.py": new.split("\n")[:-1], **{p: t.split("\n")[:-1] for p, t in (others or {}).items()}})
    wanted = [number for number, line in enumerate(before.files["m.py"]) if line.strip()]
    return truths(before, after, "m.py", wanted, str(tmp_path))


def test_the_truth_is_what_a_person_would_say(tmp_path: Path) -> None:
    old = "def first(a):\n    one_value = call(a, 1)\n    return one_value\n\n\ndef other(a):\n    return a\n"
    same = known(old, "import os\n\n\n" + old, tmp_path)
    assert {number: truth.line for number, truth in same.items()} == {n: n + 3 for n in (0, 1, 2, 5, 6)}
    gone = known(old, old.replace("    return one_value\n", ""), tmp_path)
    assert gone[2].state == "gone"
    assert gone[6][:4] == ("at", "the same line", "m.py", 5)
    deeper = old.replace("    one_value = call(a, 1)\n", "    if a:\n        one_value = call(a, 1)\n")
    assert known(old, deeper, tmp_path)[1][:4] == ("at", "indented otherwise", "m.py", 2)
    laid = old.replace("call(a, 1)", "call(\n        a,\n        1,\n    )")
    assert known(old, laid, tmp_path)[1] == ("at", "laid out anew", "m.py", 1, 5)
    renamed = old.replace("one_value = call(a, 1)", "one_value = called(a, 1)")
    assert known(old, renamed, tmp_path)[1][:4] == ("at", "under other names", "m.py", 1)
    part, rest = old[: old.index("\n\n\n") + 1], old[old.index("def other") :]
    moved = known(old, rest, tmp_path, {"n.py": part})
    assert moved[1][:4] == ("at", "went to another file", "n.py", 1)


def test_of_two_like_lines_the_truth_is_unknown(tmp_path: Path) -> None:
    block = "    first_step(a)\n    other_step(b)\n"
    head, tail = "def whole_work(a, b):\n", "    return a + b\n"
    found = known(head + block + tail, head + block + block + tail, tmp_path)
    assert [found[line].state for line in range(4)] == ["at", "unknown", "unknown", "at"]
