"""The JSON Schema of patch files, for editors that complete and check them as they are typed.

It says what :mod:`patchkit.model.keys` says. What needs more than one value to judge (names of files, PEP 440,
``nth`` against ``count``) only the loader checks.
"""

from __future__ import annotations

from typing import Any

from patchkit.model.keys import ACTIONS, ANCHORS, EXPECTED, SCHEMA, TABLES, Key, Table

Schema = dict[str, Any]


def patch_schema() -> Schema:
    """The JSON Schema (draft 2020-12) of a patch file, as JSON values."""
    definitions = {name: _table(table) for name, table in TABLES.items() if name}
    definitions["edit"] |= {"oneOf": [_action(name) for name in ACTIONS]}
    for name in ("precondition", "postcondition"):
        definitions[name]["oneOf"] = _one_of(ANCHORS)
    definitions["upstreamed"]["oneOf"] = [
        {"required": ["versions"], "not": _any_of(("file", *ANCHORS, "scope", "inside", "count"))},
        *({"required": ["file", *option["required"]]} for option in _one_of(ANCHORS)),
    ]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:patchkit:patch:{SCHEMA}",
        "title": "patchkit patch file",
        **_table(TABLES[""]),
        "anyOf": [{"required": [name], "properties": {name: {"minItems": 1}}} for name in ("edit", "add")],
        "$defs": definitions,
    }


def _table(table: Table) -> Schema:
    return {
        **({"title": table.header} if table.header else {}),
        "description": table.doc,
        "type": "object",
        "properties": {name: _key(table, key) for name, key in table.keys.items()},
        "required": [key.name for key in table.keys.values() if key.required],
        "additionalProperties": False,
    }


def _key(table: Table, key: Key) -> Schema:
    """The schema of one key's value."""
    schema: Schema = {"title": key.name, "description": key.doc, **_type(table, key)}
    if key.default is not None:
        schema["default"] = list(key.default) if isinstance(key.default, tuple) else key.default
    return schema


def _type(table: Table, key: Key) -> Schema:
    if len(key.enum) == 1:
        return {"const": key.enum[0]}
    text: Schema = {"type": "string"}
    if key.pattern:
        text["pattern"] = key.pattern
    if key.non_empty:
        text["minLength"] = 1
    items: Schema = {"type": "array", "items": text}
    if key.non_empty:
        items["minItems"] = 1
    if key.unique:
        items["uniqueItems"] = True
    number: Schema = {"type": "integer"}
    if key.minimum is not None:
        number["minimum"] = key.minimum
    match key.type:
        case "string" | "text":
            return text
        case "integer":
            return number
        case "boolean":
            return {"type": "boolean"}
        case "strings":
            return items
        case "string-or-strings":
            return {"oneOf": [text, items]}
        case "count":
            return {"oneOf": [number, text]}
        case "table" | "tables":
            reference = {"$ref": f"#/$defs/{table.name}.{key.name}".replace("/.", "/")}
            return reference if key.type == "table" else {"type": "array", "items": reference}


def _action(name: str) -> Schema:
    """The shape of an edit with this action: its keys, and none that says nothing with it."""
    rule = ACTIONS[name]
    schema: Schema = {"title": name, "required": [name, *rule.needs]}
    if rule.anchored:
        schema["oneOf"] = _one_of(ANCHORS)
    if rule.refuses:
        schema["not"] = _any_of(rule.refuses)
    return schema


def _one_of(names: tuple[str, ...]) -> list[Schema]:
    return [{"required": [name]} for name in names]


def _any_of(names: tuple[str, ...]) -> Schema:
    return {"anyOf": [{"required": [name]} for name in names]}


def reference(table: Table) -> str:
    """The keys of one table as a Markdown table, as ``docs/patch-file.md`` has it."""
    rows = ["| key | type | default | what it says |", "|---|---|---|---|"]
    rows += [
        f"| `{key.name}` | {EXPECTED[key.type].partition(' ')[2]} | {_default(key)} | {key.doc} |"
        for key in table.keys.values()
    ]
    return "\n".join(rows) + "\n"


def _default(key: Key) -> str:
    if key.required:
        return "**required**"
    if key.default is None or key.default in ((), ""):
        return "none"
    return f"`{key.default}`" if not isinstance(key.default, bool) else f"`{str(key.default).lower()}`"
