"""Every key of a patch file, and of a project's table, as data; those of recipes are in ``recipe_keys``.

The loader, the JSON Schema, the suggestions for misspelt keys and the reference in ``docs/patch-file.md`` are
all made from it: a key exists where it stands here, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from patchkit.tuples import NamedTuple

SCHEMA = 1
"""The version of the patch file format that this patchkit reads."""

MAX_PARTS = 16
"""Parts of one dotted key. ``tomllib`` takes time with the square of them, and no file of ours needs more than four."""

Type = Literal[
    "string",
    "text",
    "integer",
    "number",
    "boolean",
    "strings",
    "string-or-strings",
    "string-or-integer",
    "count",
    "table",
    "tables",
    "any",
]

EXPECTED: dict[Type, str] = {
    "string": "a string",
    "text": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "a boolean",
    "strings": "an array of strings",
    "string-or-strings": "a string or an array of strings",
    "string-or-integer": "a string or an integer",
    "count": 'an integer or a string such as "1+"',
    "table": "a table",
    "tables": "an array of tables",
    "any": "a value of JSON",
}
"""Each type in words, as messages and the reference have it. Of a ``text``, every line break is read as ``\\n``."""

NAME = "^[a-z0-9][a-z0-9-]*$"
PATH = r"^(?!/)(?!(?:.*/)?\.{0,2}(?:/|$))[^\\:\u0000-\u001f\u007f]+$"
QUALNAME = r"^[^\s.<>]+(?:\.[^\s.<>]+)*$"
COUNT = r"^[1-9][0-9]{0,8}\+$"
BODY = r"(?<!\$)\$\$\$BODY(?![A-Za-z0-9_])"


class Key(NamedTuple):
    """One key: its name, type, a line of explanation, and what its value must be.

    ``check`` names a function of :mod:`patchkit.model.checks`, for what a pattern cannot say (or says badly).
    Everything but ``non_empty``, ``unique`` and ``required`` is about a single value; in arrays, about each item.
    ``words`` are strings that stand for a number or an integer. ``minimum`` and ``maximum`` are admitted, ``above`` is
    not. ``of`` names the table that the key holds, where that is not called by the key's own dotted name.
    """

    name: str
    type: Type
    doc: str
    required: bool = False
    default: str | float | bool | tuple[str, ...] | None = None
    enum: tuple[int | bool | str, ...] = ()
    pattern: str | None = None
    minimum: float | None = None
    non_empty: bool = False
    unique: bool = False
    check: str | None = None
    words: tuple[str, ...] = ()
    maximum: float | None = None
    above: float | None = None
    of: str | None = None


class Table(NamedTuple):
    """One table of the file: its dotted name ("" at the top), its header as written, a sentence, and its keys.

    ``others`` is what keys are like whose names are free; ``naming`` is the pattern of those names.
    """

    name: str
    header: str
    doc: str
    keys: dict[str, Key]
    others: Key | None = None
    naming: str | None = None


class ActionRule(NamedTuple):
    """What an action needs besides itself: an anchor or none, further keys, and keys that say nothing with it."""

    anchored: bool = True
    needs: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()


ANCHORS = ("find", "match")
CHANGES = ("edit", "add", "remove")
"""The tables that change something; a patch has at least one of them."""

ACTIONS: dict[str, ActionRule] = {
    "replace": ActionRule(),
    "insert_before": ActionRule(),
    "insert_after": ActionRule(),
    "delete": ActionRule(),
    "wrap": ActionRule(),
    "add_import": ActionRule(
        anchored=False,
        refuses=("find", "match", "scope", "inside", "after", "before", "count", "nth", "example"),
    ),
    "probe": ActionRule(
        anchored=False, needs=("scope",), refuses=("find", "match", "inside", "after", "before", "nth", "example")
    ),
}
"""The actions of an edit, exactly one of which it has."""


def inner(table: Table, key: Key) -> str:
    """The name of the table that ``key`` of ``table`` holds."""
    return key.of or f"{table.name}.{key.name}".removeprefix(".")


def expected(key: Key) -> str:
    """The type of a key in words."""
    return " or ".join((EXPECTED[key.type], *(f'"{word}"' for word in key.words)))


def _table(name: str, header: str, doc: str, keys: Iterable[Key]) -> Table:
    return Table(name, header, doc, {key.name: key for key in keys})


def _path(doc: str, *, required: bool = True) -> Key:
    return Key("file", "string", doc, required=required, pattern=PATH, non_empty=True, check="path")


def _paths(doc: str) -> Key:
    return Key("file", "string-or-strings", doc, required=True, pattern=PATH, non_empty=True, unique=True, check="path")


def _versions(doc: str) -> Key:
    return Key("versions", "string", doc, non_empty=True, check="specifier")


_FIND = Key(
    "find",
    "text",
    "The exact text to look for. Nothing is stripped; an anchor that ends in a newline is whole lines.",
    non_empty=True,
)
_MATCH = Key(
    "match",
    "text",
    "Python to look for: `$X` is one expression, name or argument, `$$$XS` any number, `$_` anything.",
    non_empty=True,
    check="code",
)
_SCOPE = Key(
    "scope",
    "string",
    "Qualified name of the function or class that the anchor must lie in, without `<locals>`.",
    pattern=QUALNAME,
    non_empty=True,
    check="qualname",
)
_INSIDE = Key(
    "inside",
    "text",
    "Header of a statement that must enclose the anchor, such as `if x is None:`.",
    non_empty=True,
    check="code",
)


def _condition(name: str, doc: str, *, file_required: bool) -> Table:
    return _table(
        name,
        f"[[{name}]]",
        doc,
        [
            _path("The file it is about, as in RECORD.", required=file_required),
            _FIND,
            _MATCH,
            _SCOPE,
            _INSIDE,
            Key(
                "count",
                "count",
                'How many matches there must be: exactly that many, 0 for none, `"1+"` for at least one.',
                default=1,
                minimum=0,
                pattern=COUNT,
            ),
            _versions(
                "Versions of the target that have the change."
                if name == "upstreamed"
                else "Versions of the target that the condition is for; all when left out."
            ),
        ],
    )


_TOP = _table(
    "",
    "",
    "The top of the file, before its first table.",
    [
        Key("schema", "integer", "Version of the file format.", required=True, enum=(SCHEMA,)),
        Key(
            "name",
            "string",
            "Name of the patch; the file is called `<name>.toml`.",
            required=True,
            pattern=NAME,
            check="name",
        ),
        Key("summary", "string", "What the patch does, in one line.", required=True, non_empty=True, check="line"),
        Key(
            "description",
            "text",
            "Why, what was measured, when not to use it; any number of lines.",
            default="",
            check="prose",
        ),
        Key("links", "strings", "Where the reason can be read up.", default=(), check="line"),
        Key(
            "tags",
            "strings",
            "Words to find the patch by. `known-bad` makes `apply` refuse it without `--allow-known-bad`.",
            default=(),
            pattern=NAME,
            unique=True,
            check="name",
        ),
        Key("target", "table", "What the patch is for.", required=True),
        Key("edit", "tables", "The changes to existing files.", default=()),
        Key("precondition", "tables", "What must hold before anything is written.", default=()),
        Key("postcondition", "tables", "What must hold of the planned bytes.", default=()),
        Key("add", "tables", "New files.", default=()),
        Key("remove", "tables", "Files of the release that are taken away.", default=()),
        Key("upstreamed", "tables", "How to tell that the release itself has the change.", default=()),
    ],
)

_TARGET = _table(
    "target",
    "[target]",
    "The distribution that the patch edits, and how it gets on with others.",
    [
        Key(
            "requirement",
            "string",
            "The distribution, as a PEP 508 requirement: name, version specifier, marker.",
            required=True,
            non_empty=True,
            check="requirement",
        ),
        Key(
            "requires",
            "strings",
            "Further requirements on what is installed; each must hold.",
            default=(),
            unique=True,
            check="requirement",
        ),
        Key("otherwise", "text", "What to do instead, shown where a requirement does not hold.", check="prose"),
        Key(
            "optional",
            "boolean",
            "Where the target is not installed, skip the patch and say so instead of failing.",
            default=False,
        ),
        Key(
            "conflicts",
            "strings",
            "Patches that must not be applied together with this one.",
            default=(),
            pattern=NAME,
            unique=True,
            check="name",
        ),
        Key(
            "after",
            "strings",
            "Patches that are applied before this one, where both are wanted.",
            default=(),
            pattern=NAME,
            unique=True,
            check="name",
        ),
    ],
)

_EDIT = _table(
    "edit",
    "[[edit]]",
    "One change at one place. It has exactly one action; all but `add_import` and `probe` have exactly one anchor.",
    [
        _paths("The file to edit, as in RECORD; a list means the same edit in each."),
        _FIND,
        _MATCH,
        _SCOPE,
        _INSIDE,
        Key(
            "after",
            "text",
            "A second anchor, of the kind of the first, that matches once and stands before it.",
            non_empty=True,
        ),
        Key(
            "before",
            "text",
            "A second anchor, of the kind of the first, that matches once and stands behind it.",
            non_empty=True,
        ),
        Key("replace", "text", "Action: write this in place of the anchor."),
        Key("insert_before", "text", "Action: write this before the anchor.", non_empty=True),
        Key("insert_after", "text", "Action: write this behind the anchor.", non_empty=True),
        Key("delete", "boolean", "Action: take the anchor out. Can only be `true`.", enum=(True,)),
        Key(
            "wrap",
            "text",
            "Action: write this in place of the anchor, with the anchor itself where `$$$BODY` stands.",
            pattern=BODY,
            check="body",
        ),
        Key(
            "add_import",
            "strings",
            "Action: see that the file has these import statements; no anchor.",
            non_empty=True,
            unique=True,
            check="code",
        ),
        Key(
            "probe",
            "string",
            "Action: the function that `scope` names reports this text when it runs, once per process; no anchor.",
            non_empty=True,
            check="line",
        ),
        Key(
            "count", "integer", "How many times the anchor matches in each file; all are edited.", default=1, minimum=1
        ),
        Key("nth", "integer", "Of `count` matches, edit only this one, counted from 1.", minimum=1),
        _versions("Versions of the target that the edit is for; all when left out."),
        Key("example", "tables", "What the edit does to a piece of code; run by `lint`.", default=()),
    ],
)

_EXAMPLE = _table(
    "edit.example",
    "[[edit.example]]",
    "Belongs to the edit above it. `lint` runs the edit on `before` and compares with `after`.",
    [
        Key("before", "text", "Code that the edit's anchor matches in.", required=True, non_empty=True),
        Key("after", "text", "The same code, edited.", required=True),
    ],
)

_ADD = _table(
    "add",
    "[[add]]",
    "A new file. It must not exist; `revert` removes it.",
    [
        _path("Where it goes, relative to the site-packages folder."),
        Key("content", "string", "The whole text of the file, written as it stands here.", required=True),
        _versions("Versions of the target that get the file; all when left out."),
    ],
)

_REMOVE = _table(
    "remove",
    "[[remove]]",
    "A file of the release that is taken away. It must be as installed; `revert` brings it back.",
    [
        _paths("The file to take away, as in RECORD; a list means each of them."),
        _versions("Versions of the target that lose the file; all when left out."),
    ],
)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        _TOP,
        _TARGET,
        _EDIT,
        _EXAMPLE,
        _condition(
            "precondition", "Must hold of the file before the patch; nothing is written otherwise.", file_required=True
        ),
        _condition(
            "postcondition", "Must hold of the file as planned; nothing is written otherwise.", file_required=True
        ),
        _ADD,
        _REMOVE,
        _condition(
            "upstreamed",
            "Holds where the release already has the change: `apply` then writes nothing and says so. "
            "Needs `versions`, or `file` with `find` or `match`, or both.",
            file_required=False,
        ),
    )
}
"""All tables of a patch file by their dotted names, in the order of the reference."""


def home_of(name: str, *, beside: str, tables: Mapping[str, Table] = TABLES) -> str | None:
    """Where a key belongs that is unknown in the table ``beside``, in words; None where that is not certain."""
    homes = [table for table in tables.values() if table.name != beside and name in table.keys]
    if len(homes) != 1:
        return None
    return f"it belongs in {homes[0].header}" if homes[0].header else "it belongs at the top, before the first table"


PROJECT = Table(
    "tool.patchkit",
    "[tool.patchkit]",
    "What patchkit does in this project.",
    {
        key.name: key
        for key in (
            Key(
                "patches",
                "string-or-strings",
                "Folder of the project's patches, or several in the order of search, relative to this file.",
                default="patches",
                non_empty=True,
                unique=True,
                check="line",
            ),
            Key(
                "recipes",
                "string-or-strings",
                "Folder of the project's recipes, or several in the order of search, relative to this file.",
                default="recipes",
                non_empty=True,
                unique=True,
                check="line",
            ),
            Key(
                "apply",
                "strings",
                "The patches that the project wants in its environment; what `sync` brings about.",
                default=(),
                pattern=NAME,
                unique=True,
                check="name",
            ),
        )
    },
)
"""The keys of ``[tool.patchkit]``."""
