"""The JSON Schema, judged by jsonschema; and that it agrees with the loader."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given, strategies
from properties.effort import effort

from patchkit.model.checks import CHECKS
from patchkit.model.examples import PATCHES
from patchkit.model.keys import ACTIONS, TABLES
from patchkit.model.load import load_patch
from patchkit.model.schema import FILE_NAME, LINE, PATTERNS, patch_schema, schema_text
from patchkit.ops.lint import lint_file

VALIDATOR = jsonschema.Draft7Validator(patch_schema())

SHIPPED = Path(__file__).parents[2] / "patches"
TEXTS = {
    "line": strategies.text(max_size=8),
    "prose": strategies.text("ab \t\n\r\x0b\u2028", max_size=8),
    "code": strategies.text("x \n\t\x0c", max_size=6),
    "argument": strategies.text("x \n\0", max_size=6),
    "specifier": strategies.text("<>=!~,. 12*", max_size=14)
    | strategies.lists(
        strategies.sampled_from((">1", "== 1.*", "~=1.2 ", "===x", "!=1+a", "", " <=2")), max_size=4
    ).map(",".join),
    "requirement": strategies.text("a1-_. (<>=),;@[]", max_size=12)
    | strategies.from_regex(r"[a-z0-9._-]{1,4} ?(\(?[<>]=? ?1\)?)?( ?; ?python_version ?> ?'3')?", fullmatch=True),
    "path": strategies.lists(
        strategies.sampled_from(("a", "b.py", "..", ".", "", "~", ".x", "x.pyc", "c ", "d.dist-info", ".patchkit")),
        max_size=4,
    ).map("/".join),
}
"""Texts of which many are right, for each check that a pattern stands for."""

DESIGN = """
schema  = 1
name    = "logits-greedy"
summary = "Hand sample() the logits in the model's own dtype when nothing reads float32"
description = \"\"\"Why, what was measured, when not to use it.\"\"\"
links   = ["https://github.com/vllm-project/tpu-inference/issues/3127"]

[target]
requirement = "tpu-inference>=0.23,<0.33"
requires    = ["jax>=0.10"]
otherwise   = "From 0.33 on ..."
optional    = false
conflicts   = ["other-patch"]
after       = ["another-patch"]

[[edit]]
file    = "tpu_inference/runner/tpu_runner.py"
scope   = "TPUModelRunner._sample_from_logits"
versions = ">=0.23,<0.30"
find    = '''
            logits = logits.astype(jnp.float32)
            with self.maybe_forbid_compile:
                next_tokens, processed_logits = sample(
'''
replace = '''...'''
count   = 1
nth     = 1

[[edit]]
file    = "tpu_inference/runner/tpu_runner.py"
scope   = "TPUModelRunner._sample_from_logits"
inside  = "if spec_decode_metadata is None: ..."
match   = "$L = $L.astype(jnp.float32)"
replace = '''
if tpu_sampling_metadata.do_sampling:
    $L = $L.astype(jnp.float32)
'''

[[edit.example]]
before = "logits = logits.astype(jnp.float32)"
after  = "if tpu_sampling_metadata.do_sampling:\\n    logits = logits.astype(jnp.float32)"

[[precondition]]
file  = "tpu_inference/layers/jax/sample/sampling.py"
scope = "sample"
match = "$X.astype(jnp.float32)"
count = 1

[[postcondition]]
file  = "tpu_inference/runner/tpu_runner.py"
find  = "..."
count = 0

[[add]]
file    = "tpu_inference/_patchkit_probe.py"
content = '''...'''

[[upstreamed]]
versions = ">=0.33"
"""

MINIMAL: dict[str, Any] = {
    "schema": 1,
    "name": "p",
    "summary": "s",
    "target": {"requirement": "dist"},
    "edit": [{"file": "a.py", "find": "x", "replace": "y"}],
}


def test_it_is_a_schema_and_json() -> None:
    schema = patch_schema()
    jsonschema.Draft7Validator.check_schema(schema)
    assert json.loads(json.dumps(schema)) == schema
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    assert json.loads(schema_text()) == schema
    assert schema["$id"] == "urn:patchkit:patch:1"


def test_every_key_is_explained() -> None:
    schema = patch_schema()
    for name, table in TABLES.items():
        place = schema["definitions"][name] if name else schema
        assert place["additionalProperties"] is False
        assert set(place["properties"]) == set(table.keys)
        for key in table.keys.values():
            assert place["properties"][key.name]["title"] == key.name
            assert place["properties"][key.name]["description"] == key.doc
    assert schema["required"] == ["schema", "name", "summary", "target"]
    assert schema["definitions"]["edit"]["properties"]["count"]["default"] == 1
    assert schema["definitions"]["target"]["properties"]["requires"]["default"] == []


def test_the_patch_of_the_design() -> None:
    VALIDATOR.validate(tomllib.loads(DESIGN))


@pytest.mark.parametrize(
    "edit",
    [
        {"find": "x", "replace": ""},
        {"match": "x", "insert_before": "y"},
        {"find": "x", "insert_after": "y", "scope": "A.b", "inside": "else:", "after": "1", "before": "2"},
        {"match": "x", "delete": True, "count": 3, "nth": 2},
        {"match": "x", "delete": True, "nth": 1},
        {"match": "x", "wrap": "with a:\n    $$$BODY", "example": [{"before": "a", "after": ""}]},
        {"add_import": ["import os"], "versions": ">1"},
        {"probe": "x", "scope": "f"},
        {"find": "x", "delete": True, "file": ["a.py", "b/ü.py"]},
    ],
)
def test_edits_that_are_fine(edit: dict[str, Any]) -> None:
    VALIDATOR.validate(MINIMAL | {"edit": [{"file": "a.py"} | edit]})


@pytest.mark.parametrize(
    "edit",
    [
        {},
        {"find": "x"},
        {"replace": "x"},
        {"find": "x", "match": "x", "delete": True},
        {"find": "x", "replace": "y", "delete": True},
        {"find": "x", "delete": False},
        {"find": "", "delete": True},
        {"find": 1, "delete": True},
        {"find": "x", "insert_after": ""},
        {"find": "x", "wrap": "y"},
        {"find": "x", "delete": True, "count": 0},
        {"find": "x", "delete": True, "count": "1+"},
        {"find": "x", "delete": True, "replce": "y"},
        {"find": "x", "delete": True, "scope": "a b"},
        {"find": "x", "delete": True, "scope": "a.<locals>.b"},
        {"find": "x", "delete": True, "file": []},
        {"find": "x", "delete": True, "file": ["a.py", "a.py"]},
        {"find": "x", "delete": True, "file": "/a.py"},
        {"find": "x", "delete": True, "file": "../a.py"},
        {"find": "x", "delete": True, "file": "a/../b.py"},
        {"find": "x", "delete": True, "file": "a/.."},
        {"find": "x", "delete": True, "file": "a//b.py"},
        {"find": "x", "delete": True, "file": "a/./b.py"},
        {"find": "x", "delete": True, "file": "a/"},
        {"find": "x", "delete": True, "file": "a\\b.py"},
        {"find": "x", "delete": True, "file": "C:/b.py"},
        {"find": "x", "delete": True, "file": "a\0.py"},
        {"find": "x", "delete": True, "example": [{"before": "a"}]},
        {"add_import": []},
        {"add_import": "import os"},
        {"add_import": ["import os"], "find": "x"},
        {"add_import": ["import os"], "scope": "f"},
        {"probe": "x"},
        {"probe": "x", "scope": "f", "match": "x"},
        {"probe": "x", "scope": "f", "example": []},
    ],
)
def test_edits_that_are_wrong(edit: dict[str, Any]) -> None:
    assert not VALIDATOR.is_valid(MINIMAL | {"edit": [{"file": "a.py"} | edit]})


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 2},
        {"schema": True},
        {"name": "P"},
        {"name": "-p"},
        {"summary": ""},
        {"tags": ["known_bad"]},
        {"tags": ["a", "a"]},
        {"links": "x"},
        {"unknown": 1},
        {"target": {}},
        {"target": {"requirement": ""}},
        {"target": {"requirement": "x", "optional": 1}},
        {"target": {"requirement": "x", "after": ["A"]}},
        {"target": [{"requirement": "x"}]},
        {"edit": []},
        {"edit": {"file": "a.py", "find": "x", "delete": True}},
        {"precondition": [{"file": "a.py"}]},
        {"precondition": [{"find": "x"}]},
        {"precondition": [{"file": "a.py", "find": "x", "match": "x"}]},
        {"precondition": [{"file": "a.py", "find": "x", "count": -1}]},
        {"precondition": [{"file": "a.py", "find": "x", "count": "0+"}]},
        {"postcondition": [{"file": ["a.py"], "find": "x"}]},
        {"add": [{"file": "a.py"}]},
        {"add": [{"file": "a.py", "content": 1}]},
        {"remove": [{}]},
        {"remove": [{"file": []}]},
        {"remove": [{"file": "../a.py"}]},
        {"remove": [{"file": "a.py", "content": "x"}]},
        {"remove": {"file": "a.py"}},
        {"edit": [], "remove": []},
        {"upstreamed": [{}]},
        {"upstreamed": [{"file": "a.py"}]},
        {"upstreamed": [{"find": "x"}]},
        {"upstreamed": [{"versions": ">1", "file": "a.py"}]},
        {"upstreamed": [{"versions": ">1", "count": 1}]},
    ],
)
def test_files_that_are_wrong(change: dict[str, Any]) -> None:
    assert not VALIDATOR.is_valid(MINIMAL | change)


@pytest.mark.parametrize("missing", ["schema", "name", "summary", "target", "edit"])
def test_what_is_required(missing: str) -> None:
    assert not VALIDATOR.is_valid({key: value for key, value in MINIMAL.items() if key != missing})


@pytest.mark.parametrize(
    "change",
    [
        {"precondition": [{"file": "a.py", "find": "x", "count": 0, "versions": ">1", "inside": "else:"}]},
        {"postcondition": [{"file": "a.py", "match": "x", "count": "1+"}]},
        {"upstreamed": [{"versions": ">1"}, {"file": "a.py", "find": "x"}]},
        {"upstreamed": [{"versions": ">1", "file": "a.py", "match": "x", "count": 0}]},
        {"add": [{"file": "a.py", "content": "", "versions": ">1"}]},
        {"edit": [], "add": [{"file": "a.py", "content": ""}]},
        {"edit": [], "remove": [{"file": "a.py"}, {"file": ["b.py", "c.json"], "versions": "<2"}]},
        {"tags": ["known-bad"], "links": [], "description": ""},
    ],
)
def test_files_that_are_fine(change: dict[str, Any]) -> None:
    VALIDATOR.validate(MINIMAL | change)


def test_every_action_has_rules() -> None:
    assert set(patch_schema()["definitions"]["edit"]["dependencies"]) == {*ACTIONS, "find", "match"}


def values(schema: Any) -> Iterator[Any]:
    if isinstance(schema, dict):
        yield schema
    for inner in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from values(inner)


def test_no_word_that_an_editor_lacks() -> None:
    """Taplo judges by draft 7, and shows nothing of a table with `allOf`; a failed `oneOf` is the whole table's."""
    words = {word for part in values(patch_schema()) for word in part}
    assert not words & {"oneOf", "allOf", "$defs", "dependentSchemas", "dependentRequired", "if", "not", "prefixItems"}


@pytest.mark.parametrize(
    ("edit", "place"),
    [
        ({"find": "x", "delete": True, "file": "/a.py"}, {"file"}),
        ({"find": "x", "delete": True, "file": ["b.py", "../a.py"]}, {1}),
        ({"probe": "x", "scope": "a.<locals>.b"}, {"scope"}),
    ],
)
def test_a_complaint_stands_at_the_key(edit: dict[str, Any], place: set[str | int]) -> None:
    errors = list(VALIDATOR.iter_errors(MINIMAL | {"edit": [{"file": "a.py"} | edit]}))
    assert {error.absolute_path[-1] for error in errors} == place


def test_what_excludes_each_other_is_said_at_the_key() -> None:
    rules = patch_schema()["definitions"]["edit"]["dependencies"]
    assert rules["find"] == {"properties": {"match": False}}
    assert rules["delete"]["properties"] == dict.fromkeys(set(ACTIONS) - {"delete"}, False)
    assert {"scope", "replace", "count"} <= set(rules["add_import"]["properties"])
    assert "scope" not in rules["probe"]["properties"]


@pytest.mark.parametrize("check", sorted(PATTERNS))
@given(data=strategies.data())
@effort(100)
def test_a_pattern_refuses_nothing_that_the_loader_admits(check: str, data: Any) -> None:
    text = data.draw(TEXTS[check] | strategies.text(max_size=12))
    if CHECKS[check](text) is None and text:
        assert re.search(PATTERNS[check], text), text


@pytest.mark.parametrize(
    "path",
    [
        *("~/a.py", "a/~", ".patchkit/a.py", "a-1.dist-info/METADATA", "a/__pycache__/b.py", "a/b.pyc", "a/b.so"),
        *("a./b.py", "a/b ", "a/b.", "a/\x7f.py", "a/..b.py", "a/.b.py", "a.dist-info.py", "a/b.pyi", "a b/c.py"),
    ],
)
def test_paths_are_judged_as_the_loader_does(path: str) -> None:
    assert bool(re.search(PATTERNS["path"], path)) == (CHECKS["path"](path) is None)


# -- examples ----------------------------------------------------------------------------------------------------------


def test_every_table_and_key_has_examples_that_are_right() -> None:
    schema = patch_schema()
    for name, table in TABLES.items():
        place = schema["definitions"][name] if name else schema
        judge = VALIDATOR.evolve(schema={**place, "definitions": schema["definitions"]})
        assert place["examples"], name
        for example in place["examples"]:
            judge.validate(example)
        for key in table.keys.values():
            own = place["properties"][key.name]
            if key.type in ("table", "tables"):
                continue
            assert own["examples"], (name, key.name)
            for example in own["examples"]:
                judge.evolve(schema=own).validate(example)
                assert example in [table[key.name] for table in place["examples"] if key.name in table]


@pytest.mark.parametrize("text", PATCHES)
def test_the_example_patches_are_right(text: str, tmp_path: Path) -> None:
    document = tomllib.loads(text)
    file = tmp_path / f"{document['name']}.toml"
    file.write_text(f"{LINE}\n{text}", encoding="utf-8")
    assert load_patch(str(file)).name == document["name"]
    assert lint_file(str(file)) == []
    VALIDATOR.validate(document)


def test_what_taplo_shows_of_a_key_is_its_examples() -> None:
    schema = patch_schema()
    for place in (schema, *schema["definitions"].values()):
        for name, own in place["properties"].items():
            if "examples" in own:
                main = own["x-taplo"]["docs"]["main"]
                assert main.startswith(f"{own['description']}\n\n```toml\n")
                rows = re.split(
                    rf"^(?={name} = )", main.split("```toml\n")[1].removesuffix("\n```"), flags=re.MULTILINE
                )
                assert [tomllib.loads(row)[name] for row in rows if row] == own["examples"]


# -- the file beside the shipped patches -------------------------------------------------------------------------------


def test_the_shipped_schema_is_the_one_that_is_made() -> None:
    """`patchkit schema --output patches/patch.schema.json` brings it up to date."""
    assert (SHIPPED / FILE_NAME).read_text(encoding="utf-8") == schema_text()


def test_the_shipped_patches_name_it_and_fit_it() -> None:
    for file in SHIPPED.glob("*.toml"):
        text = file.read_text(encoding="utf-8")
        assert text.partition("\n")[0] == LINE == "#:schema ./patch.schema.json"
        VALIDATOR.validate(tomllib.loads(text))
