"""The JSON Schema of patch files, for editors that complete and check them as they are typed.

It says what :mod:`patchkit.model.keys` says, with the examples of :mod:`patchkit.model.examples`. What needs more than
one value to judge (PEP 508 to the letter, ``nth`` against ``count``) only the loader checks; what the schema refuses,
the loader refuses too.

Draft 7, and no word of it that an editor lacks: taplo reads drafts up to that one, with ``dependencies`` and without
``dependentSchemas``, and shows nothing of a table that has ``allOf``. Rules are written so that an editor's message
stands at the key that is wrong: no ``oneOf``, whose failure is the whole table's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from patchkit import __version__
from patchkit.model.examples import examples_of, values_of
from patchkit.model.keys import ACTIONS, ANCHORS, CHANGES, SCHEMA, TABLES, Key, Table, expected, inner

Schema = dict[str, Any]

FILE_NAME = "patch.schema.json"
"""What the schema's file is called that stands beside patch files."""
LINE = f"#:schema ./{FILE_NAME}"
"""The first line of a patch file beside it, by which taplo and tombi find it."""
IDENTITY = "urn:patchkit:patch:"
"""What ``$id`` begins with, in every schema of patch files that any patchkit writes; the schema's number follows."""
WRITER = "patchkit "
"""What ``$comment`` begins with; patchkit's version follows."""

_CONTROLS = r"\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff"
_PLAIN = r"[^/\\:\u0000-\u001f\u007f]*[^/\\:\u0000-\u001f\u007f. ]"  # a segment of a path
_SPECIFIER = r"(?:~=|={2,3}|!=|[<>]=?)\s*[^\s,]+"
PATTERNS = {
    "line": rf"^(?=.*\S)[^{_CONTROLS}]+$",
    "prose": rf"^(?:[^{_CONTROLS}]|[\t\n\r])*$",
    "code": r"\S",
    "argument": r"^[^\u0000]*$",
    "specifier": rf"^[\s,]*{_SPECIFIER}(?:\s*,[\s,]*{_SPECIFIER})*[\s,]*$",
    "requirement": r"^\s*[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\s*(?:[(<>=!~;].*)?$",
    "path": (
        r"^(?!~)(?!\.patchkit(?:/|$))(?![^/]*\.dist-info(?:/|$))(?!(?:.*/)?__pycache__(?:/|$))"
        rf"(?!.*\.(?:py[cod]|so|dll|dylib)$)(?:{_PLAIN}/)*{_PLAIN}$"
    ),
}
"""The checks of :mod:`patchkit.model.checks` as far as a pattern can say them; none refuses what the check admits."""
_EXAMPLES = 4
"""Examples of one key, at most: an editor shows them all."""


def patch_schema() -> Schema:
    """The JSON Schema (draft 7) of a patch file, as JSON values."""
    definitions = {name: table_schema(table, examples_of) for name, table in TABLES.items() if name}
    definitions["edit"] |= {"anyOf": _each(ACTIONS), "dependencies": _edit_rules()}
    for name in ("precondition", "postcondition"):
        definitions[name] |= {"anyOf": _each(ANCHORS), "dependencies": _one_anchor()}
    anchored: Schema = {"anyOf": _each(ANCHORS)}
    definitions["upstreamed"] |= {
        "anyOf": _each(("versions", *ANCHORS)),
        "dependencies": {
            **{name: {"required": ["file"], **rule} for name, rule in _one_anchor().items()},
            **dict.fromkeys(("file", "scope", "inside", "count"), anchored),
        },
    }
    return {
        **head(IDENTITY, SCHEMA, "patch file"),
        **table_schema(TABLES[""], examples_of),
        "anyOf": [{"required": [name], "properties": {name: {"minItems": 1}}} for name in CHANGES],
        "definitions": definitions,
    }


def schema_text() -> str:
    """The JSON Schema as the text of a file."""
    return as_text(patch_schema())


def as_text(schema: Schema) -> str:
    """A JSON Schema as the text of a file."""
    import json

    return json.dumps(schema, indent=2) + "\n"


def head(identity: str, number: int, what: str) -> Schema:
    """What a schema says of itself, before its rules."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": f"{identity}{number}",
        "$comment": f"{WRITER}{__version__}",
        "title": f"patchkit {what}, schema {number}",
    }


def table_schema(table: Table, examples_of: Callable[[str], list[Any]]) -> Schema:
    """The schema of one table, with the examples that ``examples_of`` has of it by its name."""
    examples = examples_of(table.name)
    free: Schema = {"additionalProperties": False}
    if table.others is not None:
        values = [{"": value} for one in examples for name, value in one.items() if name not in table.keys]
        free = {"additionalProperties": _key(table, table.others._replace(name=""), values)}
        free["propertyNames"] = {"pattern": table.naming}
    return {
        **({"title": table.header} if table.header else {}),
        "description": table.doc,
        "type": "object",
        "properties": {name: _key(table, key, examples) for name, key in table.keys.items()},
        "required": [key.name for key in table.keys.values() if key.required],
        **free,
        "examples": examples,
    }


def _key(table: Table, key: Key, tables: list[dict[str, Any]]) -> Schema:
    """The schema of one key's value."""
    schema: Schema = {**({"title": key.name} if key.name else {}), "description": key.doc, **_type(table, key)}
    if key.default is not None:
        schema["default"] = list(key.default) if isinstance(key.default, tuple) else key.default
    if key.type not in ("table", "tables"):  # those have examples of their own
        schema["examples"] = values_of(tables, key.name, _EXAMPLES)
        if key.name:
            schema["x-taplo"] = {"docs": {"main": _hover(key, schema["examples"])}}
    return schema


def _hover(key: Key, examples: list[Any]) -> str:
    """What taplo shows of a key: it knows no ``examples``."""
    shown = [f"{key.name} = {_toml(example)}" for example in examples]
    return f"{key.doc}\n\n```toml\n" + "\n".join(shown) + "\n```"


def _toml(value: Any) -> str:
    """An example as TOML: what has several lines between quotes of three, all else as JSON has it."""
    import json

    return f"'''\n{value}'''" if isinstance(value, str) and "\n" in value else json.dumps(value)


def _type(table: Table, key: Key) -> Schema:
    if key.enum:
        return {"const": key.enum[0]} if len(key.enum) == 1 else {"enum": list(key.enum)}
    if key.words:
        plain = _type(table, key._replace(words=()))
        return {**plain, "type": [plain["type"], "string"], "pattern": f"^(?:{'|'.join(key.words)})$"}
    said: Schema = {}
    pattern = PATTERNS.get(key.check or "") or key.pattern
    if pattern:
        said["pattern"] = pattern
    if key.non_empty:
        said["minLength"] = 1
    text: Schema = {"type": "string", **said}
    items: Schema = {"items": text}
    if key.non_empty:
        items["minItems"] = 1
    if key.unique:
        items["uniqueItems"] = True
    bounds = {"minimum": key.minimum, "maximum": key.maximum, "exclusiveMinimum": key.above}
    least: Schema = {word: bound for word, bound in bounds.items() if bound is not None}
    match key.type:
        case "string" | "text":
            return text
        case "integer" | "number":
            return {"type": key.type, **least}
        case "boolean":
            return {"type": "boolean"}
        case "strings":
            return {"type": "array", **items}
        case "string-or-strings":
            return {"type": ["string", "array"], **said, **items}
        case "count" | "string-or-integer":
            return {"type": ["integer", "string"], **least, **said}
        case "any":
            return {"type": ["string", "number", "boolean", "array", "object"]}
        case "table" | "tables":
            reference = {"$ref": f"#/definitions/{inner(table, key)}"}
            return reference if key.type == "table" else {"type": "array", "items": reference}


def _edit_rules() -> Schema:
    """What the keys of an edit ask of each other: one action, its keys, and none that says nothing with it."""
    rules: Schema = {}
    for name, rule in ACTIONS.items():
        refused = (*(other for other in ACTIONS if other != name), *rule.refuses)
        rules[name] = {"properties": dict.fromkeys(refused, False)}
        if rule.needs:
            rules[name]["required"] = list(rule.needs)
        if rule.anchored:
            rules[name]["anyOf"] = _each(ANCHORS)
    return rules | _one_anchor()


def _one_anchor() -> Schema:
    """Of two anchors, each refuses the other."""
    return {one: {"properties": {other: False}} for one in ANCHORS for other in ANCHORS if other != one}


def _each(names: Iterable[str]) -> list[Schema]:
    return [{"required": [name]} for name in names]


def reference(table: Table) -> str:
    """The keys of one table as a Markdown table, as ``docs/patch-file.md`` and ``docs/recipes.md`` have it."""
    rows = ["| key | type | default | what it says |", "|---|---|---|---|"]
    rows += [
        f"| `{key.name}` | {expected(key).partition(' ')[2]} | {_default(key)} | {key.doc} |"
        for key in (*table.keys.values(), *([table.others] if table.others is not None else []))
    ]
    return "\n".join(rows) + "\n"


def _default(key: Key) -> str:
    if key.required:
        return "**required**"
    if key.default is None or key.default in ((), ""):
        return "none"
    return f"`{key.default}`" if not isinstance(key.default, bool) else f"`{str(key.default).lower()}`"
