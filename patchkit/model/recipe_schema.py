"""The JSON Schema of recipes, as :mod:`patchkit.model.schema` makes that of patch files.

It says what :mod:`patchkit.model.recipe_keys` says. What a kind of engine needs, and what arms and gates ask of each
other, only the loader checks; what the schema refuses, the loader refuses too.
"""

from __future__ import annotations

from patchkit.model.recipe_examples import examples_of
from patchkit.model.recipe_keys import SCHEMA, TABLES
from patchkit.model.schema import Schema, as_text, head, table_schema

FILE_NAME = "recipe.schema.json"
"""What the schema's file is called that stands beside recipes."""
LINE = f"#:schema ./{FILE_NAME}"
"""The first line of a recipe beside it, by which taplo and tombi find it."""
IDENTITY = "urn:patchkit:recipe:"
"""What ``$id`` begins with, in every schema of recipes that any patchkit writes; the schema's number follows."""

_LIMITS = ("min_ratio", "max_ratio", "min", "max")


def recipe_schema() -> Schema:
    """The JSON Schema (draft 7) of a recipe, as JSON values."""
    definitions = {name: table_schema(table, examples_of) for name, table in TABLES.items() if name}
    # The same settings, and the same examples of them.
    examples = definitions["engine"]["properties"]
    definitions["arm.engine"]["properties"] = {key: examples[key] for key in TABLES["arm.engine"].keys}
    definitions["gate"] |= {"anyOf": [{"required": [limit]} for limit in _LIMITS]}
    definitions["figure"] |= {"anyOf": [{"required": [arm]} for arm in TABLES["figure"].keys]}
    return {
        **head(IDENTITY, SCHEMA, "recipe"),
        **table_schema(TABLES[""], examples_of),
        "definitions": definitions,
    }


def recipe_schema_text() -> str:
    """The JSON Schema as the text of a file."""
    return as_text(recipe_schema())
