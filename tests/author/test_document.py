"""A patch file as text: read again, it says what was to be written."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.author.derive import TextEdit
from patchkit.author.document import Draft, render
from patchkit.author.renew import Carried
from patchkit.errors import PlanError
from patchkit.model.load import parse_patch

EDIT = TextEdit("f", "a = 1\n", "replace", "a = 2\n")
DRAFT = Draft("mine", "A summary", "demo==1.0", {"demo/a.py": [EDIT]})
#: What no TOML string and no patch file holds: lone surrogates; carriage returns, which are line breaks of the file.
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\0"), min_size=1)


def test_the_least_that_a_patch_says() -> None:
    assert render(DRAFT).decode() == (
        'schema = 1\nname = "mine"\nsummary = "A summary"\n\n[target]\nrequirement = "demo==1.0"\n\n'
        '[[edit]]\nfile = "demo/a.py"\nscope = "f"\nfind = """\na = 1\n"""\nreplace = """\na = 2\n"""\n'
    ).replace('"""', "'''")


def test_an_edit_of_several_files_is_written_once() -> None:
    other = EDIT._replace(scope=None)
    data = render(DRAFT._replace(edits={"demo/a.py": [EDIT, other], "demo/b.py": [EDIT]}))
    edits = tomllib.loads(data.decode())["edit"]
    assert [(edit["file"], edit.get("scope")) for edit in edits] == [
        (["demo/a.py", "demo/b.py"], "f"),
        ("demo/a.py", None),
    ]


@given(find=TEXTS, text=TEXTS, content=TEXTS, action=st.sampled_from(["replace", "insert_before", "insert_after"]))
def test_any_text_is_read_again_as_it_is(find: str, text: str, content: str, action: str) -> None:
    edit = TextEdit(None, find, action, text)  # type: ignore[arg-type]  # one of the actions
    data = render(DRAFT._replace(edits={"demo/a.py": [edit]}, adds=[("demo/new.py", content)]))
    read = tomllib.loads(data.decode())
    assert read["edit"] == [{"file": "demo/a.py", "find": find, action: text}]
    assert read["add"] == [{"file": "demo/new.py", "content": content}]


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(PlanError) as caught:
        render(DRAFT._replace(edits={"demo/a.py": [EDIT._replace(text="\udcff")]}))
    assert (caught.value.code, caught.value.details["path"]) == ("not-text", "demo/a.py")


def test_what_is_carried_over_is_read_again_as_it_was() -> None:
    example = {"before": "a = 1\n", "after": "a = 2\n"}
    tables = {
        "precondition": [{"file": "demo/a.py", "find": 'say "x"\n', "count": "2+"}],
        "postcondition": [{"file": "demo/a.py", "match": "f($X)", "count": 0}, {"file": "demo/a.py", "find": "a"}],
        "upstreamed": [{"versions": ">=2"}],
    }
    target = {
        "requires": ["x>=1", "y<2"],
        "otherwise": "no\nmore",
        "optional": True,
        "conflicts": [f"c{n}" for n in range(40)],
    }
    carried = Carried(
        None, {"tags": ["one"]}, target, tables, {("demo/a.py", EDIT): [example], ("demo/b.py", EDIT): [example]}
    )
    data = render(DRAFT._replace(carried=carried, edits={"demo/a.py": [EDIT], "demo/b.py": [EDIT]}, after=["first"]))
    read = tomllib.loads(data.decode())
    assert read["tags"] == ["one"]
    assert read["target"] == {"requirement": "demo==1.0", **target, "after": ["first"]}
    assert {name: read[name] for name in tables} == tables
    assert read["edit"][0]["example"] == [example]
    patch = parse_patch(data, "mine.toml")
    assert (patch.target.optional, patch.preconditions[0].at_most, patch.postconditions[0].at_most) == (True, None, 0)
