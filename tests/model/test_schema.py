"""The JSON Schema, judged by jsonschema; and that it agrees with the loader."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import jsonschema
import pytest

from patchkit.model.keys import ACTIONS, TABLES
from patchkit.model.schema import patch_schema

VALIDATOR = jsonschema.Draft202012Validator(patch_schema())

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
file  = "..."
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
    jsonschema.Draft202012Validator.check_schema(schema)
    assert json.loads(json.dumps(schema)) == schema
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"] == "urn:patchkit:patch:1"


def test_every_key_is_explained() -> None:
    schema = patch_schema()
    for name, table in TABLES.items():
        place = schema["$defs"][name] if name else schema
        assert place["additionalProperties"] is False
        assert set(place["properties"]) == set(table.keys)
        for key in table.keys.values():
            assert place["properties"][key.name]["title"] == key.name
            assert place["properties"][key.name]["description"] == key.doc
    assert schema["required"] == ["schema", "name", "summary", "target"]
    assert schema["$defs"]["edit"]["properties"]["count"]["default"] == 1
    assert schema["$defs"]["target"]["properties"]["requires"]["default"] == []


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
        {"tags": ["known-bad"], "links": [], "description": ""},
    ],
)
def test_files_that_are_fine(change: dict[str, Any]) -> None:
    VALIDATOR.validate(MINIMAL | change)


def test_every_action_has_a_branch() -> None:
    assert [branch["title"] for branch in patch_schema()["$defs"]["edit"]["oneOf"]] == list(ACTIONS)
