from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.author.derive import TextEdit, derive
from patchkit.edit.outline import Outline
from patchkit.edit.source import Source
from patchkit.errors import PlanError

MODULE = """\
import os


def first(x):
    y = x + 1
    return y


class Worker:
    def run(self, job):
        y = job + 1
        return y

    def stop(self):
        y = None
        return y
"""


def edits(before: str, after: str, *, scopes: bool = True) -> list[TextEdit]:
    source = Source(before.encode(), path="m.py")
    return derive(source, Outline(source, ast.parse(before)) if scopes else None, after)


def test_a_line_that_stands_once_in_its_function() -> None:
    after = MODULE.replace("        y = job + 1\n", "        y = job + 2\n")
    assert edits(MODULE, after) == [TextEdit("Worker.run", "        y = job + 1\n", "replace", "        y = job + 2\n")]


def test_a_line_that_two_functions_have_is_told_apart_by_the_scope() -> None:
    at = MODULE.rindex("        return y\n")
    after = MODULE[:at] + "        return y, 1\n" + MODULE[at + len("        return y\n") :]
    assert edits(MODULE, after) == [TextEdit("Worker.stop", "        return y\n", "replace", "        return y, 1\n")]


def test_without_scopes_the_shortest_context_tells_it_apart() -> None:
    at = MODULE.rindex("        return y\n")
    after = MODULE[:at] + "        return y, 1\n" + MODULE[at + len("        return y\n") :]
    assert edits(MODULE, after, scopes=False) == [
        TextEdit(None, "        y = None\n        return y\n", "replace", "        y = None\n        return y, 1\n")
    ]


def test_an_insertion_hangs_on_the_line_above() -> None:
    after = MODULE.replace("import os\n", "import os\nimport sys\n")
    assert edits(MODULE, after) == [TextEdit(None, "import os\n", "insert_after", "import sys\n")]


def test_an_insertion_at_the_top_hangs_on_the_line_below() -> None:
    assert edits(MODULE, "# new\n" + MODULE) == [TextEdit(None, "import os\n", "insert_before", "# new\n")]


def test_lines_that_go() -> None:
    after = MODULE.replace("        y = job + 1\n", "")
    assert edits(MODULE, after) == [TextEdit("Worker.run", "        y = job + 1\n", "delete", "")]


def test_an_anchor_that_says_little_gets_company() -> None:
    before = "def f(\n    value,\n):\n    call(\n        value\n    )\n"
    after = "def f(\n    value,\n):\n    call(\n        value\n    ) + 1\n"
    assert edits(before, after) == [TextEdit("f", "        value\n    )\n", "replace", "        value\n    ) + 1\n")]


def test_a_file_of_equal_lines_needs_all_of_them() -> None:
    before, after = "x\n" * 40, "x\n" * 20 + "y\n" + "x\n" * 20
    (edit,) = edits(before, after)
    assert (edit.scope, edit.find, edit.action, edit.text) == (None, before, "replace", after)


def test_far_from_what_tells_it_apart_the_anchor_goes_there_and_no_further() -> None:
    before = ["first\n", *["same\n"] * 30, "last\n", *["same\n"] * 30]
    near_the_top, near_the_end = [*before], [*before]
    near_the_top[9:9] = ["new\n"]
    near_the_end[24] = "other\n"
    (edit,) = edits("".join(before), "".join(near_the_top))
    assert (edit.find, edit.action) == ("first\n" + "same\n" * 8, "insert_after")
    (edit,) = edits("".join(before), "".join(near_the_end))
    assert (edit.find, edit.text) == ("same\n" * 7 + "last\n", "other\n" + "same\n" * 6 + "last\n")


def test_a_new_method_belongs_to_the_class_not_to_its_neighbour() -> None:
    new = "    def new(self):\n        return 1\n\n"
    at = MODULE.index("    def stop(self):\n")
    assert edits(MODULE, MODULE[:at] + new + MODULE[at:]) == [
        TextEdit("Worker", "    def stop(self):\n", "insert_before", new)
    ]
    decorated = MODULE.replace("    def stop", "    @property\n    def stop").replace(
        "    def run", "    @property\n    def run"
    )
    at = decorated.rindex("    @property\n")
    assert edits(decorated, decorated[:at] + new + decorated[at:]) == [
        TextEdit("Worker", "    @property\n    def stop(self):\n", "insert_before", new)
    ]


def test_a_statement_of_a_method_belongs_to_it() -> None:
    after = MODULE.replace("    def stop(self):\n", "    def stop(self):\n        x = 1\n")
    assert edits(MODULE, after) == [TextEdit("Worker.stop", "    def stop(self):\n", "insert_after", "        x = 1\n")]


def test_a_file_of_blank_lines() -> None:
    (edit,) = edits("\n" * 20, "\n" * 20 + "x = 1\n")
    assert (edit.find, edit.action) in [("\n" * 20, "insert_after"), ("\n" * 20, "replace")]


def test_no_final_newline() -> None:
    before = "first = 1\nlast = 2"
    assert edits(before, "first = 1\nlast = 3") == [TextEdit(None, "last = 2", "replace", "last = 3")]
    assert edits(before, f"{before}\n") == [TextEdit(None, "last = 2", "replace", "last = 2\n")]


def test_an_empty_file_has_nothing_to_hang_on() -> None:
    with pytest.raises(PlanError, match="is empty as installed") as caught:
        edits("", "x = 1\n")
    assert caught.value.code == "empty-file"


LINES = st.lists(
    st.sampled_from(["x = 1\n", "y = 2\n", "\n", "# note\n", "def f():\n    x = 1\n", "class C:\n    y = 2\n\n"]),
    min_size=1,
    max_size=12,
)


@given(LINES, LINES)
def test_every_anchor_stands_once_and_together_they_give_the_text_after(first: list[str], second: list[str]) -> None:
    before, after = "".join(first), "".join(second)
    tree = ast.parse(before)
    out = before
    splices = []
    for edit in edits(before, after):
        spans = [(0, len(before))]
        if edit.scope is not None:
            starts = [0, *(at + 1 for at, char in enumerate(before) if char == "\n")]
            nodes = [n for n in ast.walk(tree) if getattr(n, "name", None) == edit.scope]
            assert nodes
            # The definition's own lines; comments that follow it belong to it as well, none is indented here.
            spans = [(starts[n.lineno - 1], starts[n.end_lineno]) for n in nodes]  # type: ignore[attr-defined]
        places = [
            at
            for low, high in spans
            for at in range(low, high - len(edit.find) + 1)
            if before.startswith(edit.find, at) and (at == 0 or before[at - 1] == "\n")
        ]
        assert len(places) == 1, edit
        start, stop = places[0], places[0] + len(edit.find)
        if edit.action == "insert_after":
            start = stop
        elif edit.action == "insert_before":
            stop = start
        splices.append((start, stop, edit.text))
    for start, stop, text in sorted(splices, reverse=True):
        out = out[:start] + text + out[stop:]
    assert out == after
