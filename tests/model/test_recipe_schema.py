"""The recipe's table of keys is sound; its JSON Schema agrees with the loader; the shipped one is up to date."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import jsonschema
import pytest
from hypothesis import assume, given, strategies
from properties.effort import effort

from patchkit.errors import PatchFileError
from patchkit.model import recipe as model
from patchkit.model.checks import CHECKS
from patchkit.model.keys import EXPECTED, Table, home_of, inner
from patchkit.model.load_recipe import parse_recipe
from patchkit.model.recipe_examples import RECIPES, examples_of
from patchkit.model.recipe_keys import FORMATS, HOMES, KIND_RULES, KINDS, TABLES
from patchkit.model.recipe_rules import MEASURED, TOKENS
from patchkit.model.recipe_schema import FILE_NAME, IDENTITY, LINE, recipe_schema, recipe_schema_text
from patchkit.model.schema import reference

SCHEMA = recipe_schema()
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)
DOC = (Path(__file__).parents[2] / "docs" / "recipes.md").read_text(encoding="utf-8")
SHIPPED = Path(__file__).parents[2] / "recipes"
MINIMAL: dict[str, Any] = {"schema": 1, "name": "r", "engine": {"kind": "tpu-cpu-rig"}}


def place(name: str) -> dict[str, Any]:
    found: dict[str, Any] = SCHEMA["definitions"][name] if name else SCHEMA
    return found


# -- the table of keys -------------------------------------------------------------------------------------------------


def test_keys_are_well_formed() -> None:
    for table in TABLES.values():
        for key in (*table.keys.values(), *([table.others] if table.others else [])):
            assert key.type in EXPECTED
            assert key.doc.endswith(".")
            assert key.check is None or key.check in CHECKS
            assert not (key.required and key.default is not None)
            if key.type in ("table", "tables"):
                assert inner(table, key) in TABLES
        assert (table.others is None) == (table.naming is None)


def test_kinds_and_formats_are_those_of_the_types() -> None:
    assert set(KINDS) == set(KIND_RULES) == set(get_args(model.EngineKind))
    assert set(FORMATS) == set(get_args(model.Format)) == {*MEASURED, "patchkit"} > set(TOKENS)
    settings = set(TABLES["engine"].keys)
    assert settings == set(model.Engine._fields)
    assert {key for rule in KIND_RULES.values() for key in (*rule.needs, *rule.refuses)} <= settings
    assert set(TABLES["arm.engine"].keys) == settings - {"kind"}


@pytest.mark.parametrize(
    ("table", "record", "elsewhere"),
    [
        ("workload", model.Workload, {}),
        ("engine", model.Engine, {}),
        ("protocol", model.Protocol, {}),
        ("economics", model.Economics, {}),
        ("gate", model.Gate, {"min": "minimum", "max": "maximum"}),
        ("figure", model.Figure, {}),
        ("evidence", model.LogLine, {"log": "text", "count": "at_least"}),
    ],
)
def test_every_key_has_a_field_and_its_default(table: str, record: Any, elsewhere: dict[str, str]) -> None:
    for name, key in TABLES[table].keys.items():
        field = elsewhere.get(name, name)
        assert field in record._fields
        if key.default is not None and name != "count":
            assert record._field_defaults[field] == key.default
    assert len(record._fields) >= len(TABLES[table].keys)


def test_every_metric_can_be_gated_and_have_figures() -> None:
    assert set(TABLES["figures"].keys) == set(model.METRICS)
    assert set(TABLES["gates"].keys) == {*model.METRICS, "tokens", "recompiles", "probes"}
    assert TABLES["gates"].keys["ttft"].doc == "In s, lower is better."


def test_homes() -> None:
    def home(name: str, beside: str) -> str | None:
        return home_of(name, beside=beside, tables=HOMES)

    assert home("model", "") == "it belongs in [engine]"
    assert home("temperature", "engine") == "it belongs in [workload]"
    assert home("patches", "engine") == "it belongs at the top, before the first table"
    assert home("throughput", "") is None  # gates or figures


@pytest.mark.parametrize("name", [name for name in TABLES if name != "arm.engine"])
def test_the_reference_in_the_docs_is_the_table(name: str) -> None:
    assert reference(TABLES[name]) in DOC


def test_the_kinds_in_the_docs_are_the_rules() -> None:
    table = DOC.split("| kind | needs | refuses |\n")[1].split("\n\n")[0]
    for kind, rule in KIND_RULES.items():
        (row,) = [row for row in table.split("\n") if row.startswith(f"| `{kind}` | ")]
        needs = row.split(" | ")[1]
        assert all(f"`{key}`" in needs for key in rule.needs)
        named = set(re.findall("`([a-z_]+)`", row.split(" | ")[2]))
        assert named - {"url", "options", "endpoint"} <= {*rule.refuses}  # those are of what runs already


# -- the JSON Schema ---------------------------------------------------------------------------------------------------


def test_it_is_a_schema_and_json() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    assert json.loads(recipe_schema_text()) == SCHEMA
    assert SCHEMA["$id"] == f"{IDENTITY}1" == "urn:patchkit:recipe:1"
    assert SCHEMA["required"] == ["schema", "name", "engine"]


def values(schema: Any) -> Iterator[Any]:
    if isinstance(schema, dict):
        yield schema
    for one in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from values(one)


def test_no_word_that_an_editor_lacks() -> None:
    words = {word for part in values(SCHEMA) for word in part}
    assert not words & {"oneOf", "allOf", "$defs", "dependentSchemas", "dependentRequired", "if", "not", "prefixItems"}


@pytest.mark.parametrize("name", list(TABLES))
def test_every_table_and_key_is_explained_and_has_examples_that_are_right(name: str) -> None:
    table: Table = TABLES[name]
    assert place(name)["description"] == table.doc
    assert set(place(name)["properties"]) == set(table.keys)
    judge = VALIDATOR.evolve(schema={**place(name), "definitions": SCHEMA["definitions"]})
    assert place(name)["examples"]
    for example in place(name)["examples"]:
        judge.validate(example)
    for key in table.keys.values():
        own = place(name)["properties"][key.name]
        assert (own["title"], own["description"]) == (key.name, key.doc)
        if key.type in ("table", "tables"):
            continue
        assert own["examples"]
        for example in own["examples"]:
            judge.evolve(schema=own).validate(example)


def test_every_key_is_in_an_example() -> None:
    """Of a table that stands in several places, in one of them."""
    for name, table in TABLES.items():
        said = {key for one in examples_of(name) for key in one}
        if name == "arm.engine":
            said |= {key for one in examples_of("engine") for key in one}
        missing = set(table.keys) - said - (set(model.METRICS) if name in ("gates", "figures") else set())
        assert missing == set(), name


@pytest.mark.parametrize("text", RECIPES)
def test_the_example_recipes_are_right(text: str) -> None:
    document = tomllib.loads(text)
    VALIDATOR.validate(document)
    assert parse_recipe(text.encode(), f"{document['name']}.toml").name == document["name"]


@pytest.mark.parametrize(
    "change",
    [
        {"schema": 2},
        {"name": "R"},
        {"patchs": []},
        {"patches": ["a", "a"]},
        {"engine": {}},
        {"engine": {"kind": "vlm"}},
        {"engine": {"kind": "vllm", "env": {"A": 1}}},
        {"engine": {"kind": "vllm", "env": {"A B": "1"}}},
        {"engine": {"kind": "vllm", "speculative": {"n": 1.5}}},
        {"engine": {"kind": "vllm", "url": "ftp://x"}},
        {"engine": {"kind": "vllm", "timeout": 0}},
        {"treatment": {"engine": {"kind": "vllm"}}},
        {"workload": {"temperature": "hot"}},
        {"workload": {"top_p": 1.5}},
        {"workload": {"prompts": [""]}},
        {"protocol": {"pairs_min": 1}},
        {"protocol": {"pairs_max": 21}},
        {"gates": {"throughput": {}}},
        {"gates": {"throughput": {"least": 1}}},
        {"gates": {"recompiles": "none"}},
        {"gates": {"tokens": "same"}},
        {"gates": {"Bad": {"min": 1}}},
        {"figures": {"ttft": {}}},
        {"evidence": [{}]},
        {"evidence": [{"log": "x", "arm": "both"}]},
        {"point": [{}]},
        {"economics": {"chips": 0}},
    ],
)
def test_what_is_wrong_to_both(change: dict[str, Any]) -> None:
    document = MINIMAL | change
    assert not VALIDATOR.is_valid(document)
    with pytest.raises(PatchFileError):
        parse_recipe(toml(document).encode(), None)


def toml(document: dict[str, Any]) -> str:
    def shown(value: Any) -> str:
        if isinstance(value, dict):
            return "{" + ", ".join(f"{json.dumps(key)} = {shown(item)}" for key, item in value.items()) + "}"
        return "[" + ", ".join(map(shown, value)) + "]" if isinstance(value, list) else json.dumps(value)

    return "".join(f"{key} = {shown(value)}\n" for key, value in document.items())


@given(strategies.sampled_from(RECIPES), strategies.data())
@effort(200)
def test_what_the_schema_refuses_the_loader_refuses(text: str, data: strategies.DataObject) -> None:
    document = tomllib.loads(text)
    table: Any = document
    while True:
        key = data.draw(strategies.sampled_from(sorted(table)))
        if not isinstance(table[key], dict) or not table[key]:
            break
        table = table[key]
    table[key] = data.draw(strategies.sampled_from([0, -1, 1.5, True, "", "x", [], ["x"], {}, [{}], [""], {"x": "y"}]))
    try:
        parse_recipe(toml(document).encode(), None)
    except PatchFileError:
        assume(False)
    VALIDATOR.validate(document)


# -- the files beside the shipped recipes ------------------------------------------------------------------------------


def test_the_shipped_schema_is_the_one_that_is_made() -> None:
    """`patchkit schema --recipe --output recipes/recipe.schema.json` brings it up to date."""
    assert (SHIPPED / FILE_NAME).read_text(encoding="utf-8") == recipe_schema_text()


def test_the_shipped_recipes_name_it_and_fit_it() -> None:
    files = sorted(SHIPPED.glob("*.toml"))
    assert files
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert text.partition("\n")[0] == LINE == "#:schema ./recipe.schema.json"
        VALIDATOR.validate(tomllib.loads(text))
        assert re.fullmatch(r"[a-z0-9-]+", file.stem)
