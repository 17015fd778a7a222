"""What a spec holds, and what is said of a wrong one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.documents import ROOT, blocks, document, rows, ticked

from patchkit.bench.compiletime.spec import PUBLISHED, TOP, VARIANT, Published, load_spec, parse_spec, path_of
from patchkit.errors import PatchFileError, UsageError

GOOD = """
schema = 1
name = "mine"
summary = "two ways"
script = "mine.py"
[[variant]]
name = "a"
function = "make_a"
"""


def problems(text: str) -> list[tuple[int | None, str]]:
    with pytest.raises(PatchFileError) as caught:
        parse_spec(text.encode(), "some/mine.toml")
    return [(one["line"], one["message"]) for one in caught.value.details["problems"]]


def test_the_shipped_spec_has_the_studys_figures() -> None:
    spec = load_spec(path_of("attention"))
    on = "the study, one TPU v5e, five trials of a script of its own"
    assert [(variant.name, variant.published) for variant in spec.variants] == [
        ("xla", Published(on, {"lower": (24, None, None), "compile": (297.5, 296.1, 308.8)})),
        ("pallas-flash", Published(on, {"lower": (39, None, None), "compile": (50.7, 49.0, 52.0)})),
    ]
    assert spec.trials == 5
    assert os.path.isfile(spec.script)


def test_what_is_left_out_has_its_default() -> None:
    spec = parse_spec(GOOD.encode(), "some/mine.toml")
    assert (spec.trials, spec.timeout, spec.env, spec.description) == (5, 600.0, {}, "")
    assert spec.script == os.path.join(os.path.abspath("some"), "mine.py")


def test_the_page_has_every_key() -> None:
    text = document("docs/compile-time.md")
    documented = {word for row in rows(text, "## The spec") for word in ticked(row[0])} - {"key"}
    assert documented == {*TOP.keys, "variant.published"}
    for table in (VARIANT, PUBLISHED):
        for name in table.keys:
            assert name in text or name.removesuffix("_min").removesuffix("_max") in text, name


def test_the_pages_spec_is_one() -> None:
    (block,) = (one for one in blocks(document("docs/compile-time.md")) if one.language == "toml")
    assert block.title is not None
    spec = parse_spec(block.text.encode(), block.title)
    assert [variant.function for variant in spec.variants] == ["exact", "approximate"]
    assert spec.variants[1].published is not None
    assert spec.variants[1].published.figures == {"compile": (50.7, 49.0, 52.0)}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (('"mine"', '"other"'), (3, "name: must be the file's, 'mine', found 'other'")),
        (("mine.py", "../mine.py"), (5, "script: ")),
        (("mine.py", "/mine.py"), (5, "script: ")),
        (('"make_a"', '"os.system"'), (8, "variant 1: function: ")),
        (("summary", "sumary"), (4, "unknown key")),
        (("schema = 1", "schema = 2"), (2, "schema: must be 1, found 2")),
        (("schema = 1", "schema = 1\ntrials = 0"), (3, "trials: must be at least 1")),
        (('function = "make_a"', ""), (6, "variant 1: required key")),
    ],
)
def test_a_wrong_spec(change: tuple[str, str], expected: tuple[int, str]) -> None:
    found = problems(GOOD.replace(*change))
    assert any(line == expected[0] and message.startswith(expected[1]) for line, message in found), found


def test_two_variants_of_one_name() -> None:
    again = GOOD + '[[variant]]\nname = "a"\nfunction = "b"\n'
    assert problems(again) == [(10, "variant 2: name: 'a' is the name of another variant")]


def test_a_range_without_its_median() -> None:
    text = GOOD + '[variant.published]\non = "here"\nlower_ms_min = 1\n'
    assert problems(text) == [(9, "variant 1: published: lower_ms is missing beside its least or most")]


def test_a_spec_that_is_not_there(tmp_path: Path) -> None:
    for name in ("attenton", str(tmp_path / "x.toml")):
        with pytest.raises(UsageError) as caught:
            path_of(name)
        assert caught.value.code == "unknown-spec"
    with pytest.raises(UsageError) as caught:
        load_spec(str(tmp_path))
    assert caught.value.code == "no-spec"


def test_shipped_specs_are_in_the_folder_of_recipes() -> None:
    assert path_of("attention") == str(ROOT / "recipes" / "compile-time" / "attention.toml")
