"""The table of keys is sound, and the types and documents follow it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest

from patchkit.model import patch as model
from patchkit.model.checks import CHECKS
from patchkit.model.keys import ACTIONS, EXPECTED, TABLES, Type, home_of
from patchkit.model.load import parse_patch
from patchkit.model.schema import patch_schema, reference

DOC = (Path(__file__).parents[2] / "docs" / "patch-file.md").read_text(encoding="utf-8")


def test_tables() -> None:
    assert list(TABLES) == [
        "",
        "target",
        "edit",
        "edit.example",
        "precondition",
        "postcondition",
        "add",
        "remove",
        "upstreamed",
    ]
    assert list(TABLES["edit"].keys) == [
        *("file", "find", "match", "scope", "inside", "after", "before", "replace", "insert_before", "insert_after"),
        *("delete", "wrap", "add_import", "probe", "count", "nth", "versions", "example"),
    ]
    assert set(ACTIONS) == set(get_args(model.Action))
    assert set(ACTIONS) <= set(TABLES["edit"].keys)


def test_keys_are_well_formed() -> None:
    for table in TABLES.values():
        for name, key in table.keys.items():
            assert name == key.name
            assert key.type in EXPECTED
            assert key.doc.endswith(".")
            assert "\n" not in key.doc
            assert key.check is None or key.check in CHECKS
            assert not (key.required and key.default is not None)
    assert set(EXPECTED) == set(get_args(Type))


def test_sub_tables_exist() -> None:
    for table in TABLES.values():
        for key in table.keys.values():
            if key.type in ("table", "tables"):
                assert f"{table.name}.{key.name}".removeprefix(".") in TABLES


@pytest.mark.parametrize(
    ("table", "record", "elsewhere"),
    [
        ("target", model.Target, {}),
        ("edit.example", model.Example, {}),
        ("add", model.Add, {}),
        ("remove", model.Remove, {"file": "files"}),
        ("precondition", model.Condition, {"count": "at_least"}),
        ("edit", model.Edit, {"file": "files", "example": "examples", "add_import": "imports"}),
        (
            "",
            model.Patch,
            {
                "schema": "name",
                "edit": "edits",
                "precondition": "preconditions",
                "postcondition": "postconditions",
                "add": "adds",
                "remove": "removes",
            },
        ),
    ],
)
def test_every_key_has_a_field(table: str, record: Any, elsewhere: dict[str, str]) -> None:
    fields = set(record._fields)
    for name in TABLES[table].keys:
        if name not in ACTIONS:
            assert elsewhere.get(name, name) in fields


def test_homes() -> None:
    assert home_of("requirement", beside="edit") == "it belongs in [target]"
    assert home_of("summary", beside="target") == "it belongs at the top, before the first table"
    assert home_of("content", beside="edit") == "it belongs in [[add]]"
    assert home_of("find", beside="add") is None  # in four tables
    assert home_of("summary", beside="") is None
    assert home_of("nothing", beside="") is None


@pytest.mark.parametrize("name", list(TABLES))
def test_the_reference_in_the_docs_is_the_table(name: str) -> None:
    assert reference(TABLES[name]) in DOC
    for key in TABLES[name].keys:
        assert f"`{key}`" in DOC


def test_the_example_in_the_docs_is_a_patch_with_every_key() -> None:
    text = DOC.split("```toml\n", 1)[1].split("```", 1)[0]
    patch = parse_patch(text.encode(), "patches/greet-politely.toml")
    jsonschema.Draft7Validator(patch_schema()).validate(tomllib.loads(text))
    assert {edit.action for edit in patch.edits} == set(ACTIONS)
    for table in TABLES.values():
        for key in table.keys:
            assert re.search(rf"^(\[+(edit\.)?)?{key}( = |\]+$|\]+ +#)", text, re.MULTILINE), key
