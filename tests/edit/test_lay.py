"""Edits of several kinds on one file, laid on together; and errors that name the edit they come from."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from support.memory import Host, Memory

from patchkit.edit import proof
from patchkit.edit.lay import check_parses
from patchkit.edit.plan import FilePlan, plan_patch
from patchkit.errors import AnchorError, PatchFileError, PlanError
from patchkit.model.load import parse_patch

PATH = "demo/core.py"
HEAD = 'schema = 1\nname = "p"\nsummary = "s"\n[target]\nrequirement = "demo"\n'


def plan(before: str, *edits: str) -> FilePlan:
    body = "".join(f'[[edit]]\nfile = "{PATH}"\n{edit}\n' for edit in edits)
    patch = parse_patch((HEAD + body).encode(), "p.toml")
    (file,) = plan_patch(patch, Memory(before.encode(), PATH), Host()).files
    check_parses(patch, [file], judge)
    return file


def judge(files: Mapping[str, bytes]) -> dict[str, object]:
    class Problem:
        def __init__(self, error: SyntaxError) -> None:
            self.line, self.message, self.text = error.lineno, error.msg, error.text

    found: dict[str, object] = {}
    for path, data in files.items():
        try:
            compile(data, path, "exec")
        except SyntaxError as error:
            found[path] = Problem(error)
    return found


def test_an_import_beside_a_syntax_edit() -> None:
    file = plan("x = f(1)\n", "add_import = ['import os']", "match = 'f($X)'\nreplace = 'g($X)'")
    assert file.after == b"import os\nx = g(1)\n"


def test_a_wrong_import_is_told_of_its_own_edit() -> None:
    with pytest.raises(PatchFileError) as caught:
        plan("x = 1\n", "add_import = ['import os']", "add_import = ['import re', 'x = 2']")
    assert caught.value.message.startswith("p.toml:11: edit 2: `add_import`: 'x = 2' is not exactly one import")


def test_a_failed_proof_names_every_syntax_edit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "difference", lambda *_: ())  # there is no pattern known that fails it
    edits = "match = 'f($X)'\nreplace = 'g($X)'", "find = 'y = 1'\nreplace = 'y = 2'", "match = 'h()'\nreplace = 'i()'"
    with pytest.raises(PlanError) as caught:
        plan("x = f(1)\ny = 1\nh()\n", *edits)
    assert caught.value.code == "proof"
    assert caught.value.details["edits"] == [1, 3]
    assert caught.value.message.endswith("syntax edits at line 1, 3 (edits 1 and 3) (demo/core.py)")


def test_the_edit_nearest_to_what_does_not_parse_is_named() -> None:
    before = "".join(f"a{n} = 1\n" for n in range(9))
    edits = [f"find = 'a{n} = 1'\nreplace = 'b = 2\\nc = 3'".replace("'b", '"b').replace("3'", '3"') for n in (7, 1, 4)]
    with pytest.raises(PlanError) as caught:
        plan(before, *edits, "find = 'a6 = 1'\nreplace = 'd = ('")
    assert caught.value.details["index"] == 4


def test_content_that_does_not_parse() -> None:
    patch = parse_patch((HEAD + '[[add]]\nfile = "demo/new.py"\ncontent = "x = ("\n').encode(), "p.toml")
    with pytest.raises(PlanError) as caught:
        check_parses(patch, plan_patch(patch, Memory(b"", PATH), Host()).files, judge)
    assert caught.value.message.startswith(
        "p.toml:8: add 1: `content` of demo/new.py does not parse: '(' was never closed"
    )
    assert caught.value.hint == "correct `content`; nothing was written"


def test_one_import_wanted_by_two_edits() -> None:
    file = plan("x = 1\n", "add_import = ['import os', 'import re']", "add_import = ['import os']")
    assert file.after == b"import os\nimport re\nx = 1\n"


def test_the_error_names_the_edit_whose_text_does_not_parse() -> None:
    with pytest.raises(PlanError) as caught:
        plan("a = 1\nb = 1\n", "find = 'a = 1'\nreplace = 'a = 2'", "find = 'b = 1'\nreplace = 'b = ('")
    assert caught.value.message.startswith("p.toml:13: edit 2: `replace`: demo/core.py would not parse any more: ")
    assert caught.value.details["index"] == 2


def test_the_error_names_the_edit_whose_text_cannot_be_encoded() -> None:
    with pytest.raises(PlanError) as caught:
        plan(
            "# coding: ascii\na = 1\nb = 1\n",
            "find = 'a = 1'\nreplace = 'a = 2'",
            "find = 'b = 1'\nreplace = 'b = \"é\"'",
        )
    assert caught.value.message == (
        "p.toml:13: edit 2: `replace`: its encoding ascii cannot hold 'é' (demo/core.py, line 3)"
    )


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        ("match = 'f($X'\nreplace = 'g()'", "pattern"),
        ("match = 'f($X)'\nreplace = 'g($Y)'", "template"),
        ("match = 'f($X)'\nreplace = 'g('", "template"),
        ("add_import = ['x = 2']", "add-import"),
    ],
)
def test_a_wrong_pattern_or_template_is_a_wrong_patch_file(edit: str, code: str) -> None:
    with pytest.raises(PatchFileError) as caught:
        plan("x = f(1)\n", edit)
    assert (caught.value.code, caught.value.exit_status) == (code, 2)


def test_a_probe_counts_definitions() -> None:
    twice = "def f():\n    return 1\n\n\ndef f():\n    return 2\n"
    with pytest.raises(AnchorError) as caught:
        plan(twice, "probe = 'ran'\nscope = 'f'")
    assert "2 definitions are called f in demo/core.py (lines 1, 5), expected 1" in caught.value.message
    file = plan(twice, "probe = 'ran'\nscope = 'f'\ncount = 2")
    assert file.after.count(b"    _patchkit_probe_p_1()\n    return") == 2


def test_syntax_edits_of_one_line_are_laid_together() -> None:
    file = plan("if q:\n    a(); b()\n", "match = 'a()'\ndelete = true", "match = 'b()'\ndelete = true")
    assert file.after == b"if q:\n    pass\n"


def test_an_overlap_names_both_edits() -> None:
    with pytest.raises(PlanError) as caught:
        plan("x = f(g(1))\n", "match = 'f($X)'\nreplace = 'h($X)'", "find = 'g(1)'\nreplace = 'g(2)'")
    assert caught.value.code == "overlap"
    assert caught.value.details["edits"] == [1, 2]
