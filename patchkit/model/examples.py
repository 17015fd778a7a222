"""Whole patches as examples: the JSON Schema takes the examples of every table and key out of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

PATCHES = (
    """\
schema = 1
name = "greet-politely"
summary = "Greet strangers politely"
description = "A greeting that is heard is answered. Until 1.5, which has the change."
links = ["https://example.org/greeting/issues/7"]

[target]
requirement = "greeting==1.4"

[[edit]]
file = "greeting/speak.py"
scope = "Speaker.greet"
find = 'words = "Hey"'
replace = 'words = "Good day"'
""",
    """\
schema = 1
name = "greet-quietly"
summary = "Skip the greeting where nobody listens"
description = '''
Measured on 1.4: a greeting that nobody hears costs as much as one that is heard.
Not for use with greet-loudly.
'''
links = ["https://example.org/greeting/issues/12"]
tags = ["performance"]

[target]
requirement = "greeting>=1.2,<2; python_version >= '3.9'"
requires = ["listener>=0.4"]
otherwise = "From 2.0 on, set GREETING_QUIET=1 instead."
optional = true
conflicts = ["greet-loudly"]
after = ["greet-politely"]

[[edit]]
file = ["greeting/speak.py", "greeting/whisper.py"]
match = "self.say($X, loud=True)"
replace = "self.say($X, loud=self.heard())"
count = 2

[[edit.example]]
before = "self.say(a, loud=True); self.say(b, loud=True)"
after = "self.say(a, loud=self.heard()); self.say(b, loud=self.heard())"

[[edit]]
file = "greeting/speak.py"
versions = ">=1.5"
scope = "Speaker.greet"
inside = "if self.stranger:"
after = "self.bow()"
before = "return words"
find = "self.smile()"
delete = true
count = 3
nth = 2

[[edit]]
file = "greeting/speak.py"
scope = "main"
match = "greet($$$NAMES)"
insert_before = "listen()"

[[edit]]
file = "greeting/speak.py"
find = "DEBUG = True\\n"
insert_after = "QUIET = True\\n"

[[edit]]
file = "greeting/whisper.py"
match = "self.breathe()"
wrap = '''
with self.silence:
    $$$BODY
'''

[[edit]]
file = "greeting/speak.py"
add_import = ["import os", "from greeting._quiet import heard"]

[[edit]]
file = "greeting/speak.py"
scope = "Speaker.greet"
probe = "the quiet greeting ran"

[[precondition]]
file = "greeting/core.py"
scope = "Core.run"
inside = "while True:"
match = "$S.greet()"
count = "1+"
versions = "<1.5"

[[precondition]]
file = "greeting/core.py"
find = "def heard("
count = 0

[[postcondition]]
file = "greeting/speak.py"
scope = "Speaker.greet"
inside = "if self.stranger:"
match = "self.say($X, loud=True)"
count = 0
versions = ">=1.2"

[[postcondition]]
file = "greeting/speak.py"
find = "loud=self.heard()"
count = "1+"

[[add]]
file = "greeting/_quiet.py"
versions = ">=1.2"
content = '''
def heard():
    return False
'''

[[remove]]
file = "greeting/bell.py"

[[remove]]
file = ["greeting/horn.py", "greeting/drum.py"]
versions = ">=1.5"

[[upstreamed]]
versions = ">=1.9"

[[upstreamed]]
file = "greeting/speak.py"
find = "GREETING_QUIET"

[[upstreamed]]
file = "greeting/speak.py"
versions = ">=1.6"
scope = "Speaker.greet"
inside = "if self.stranger:"
match = "self.say($X, loud=$Y)"
count = 0
""",
)
"""In TOML, each named after its ``name``; together they have every key of every table."""


def documents() -> list[dict[str, Any]]:
    """The example patches as TOML values."""
    import tomllib

    return [tomllib.loads(text) for text in PATCHES]


def examples_of(table: str) -> list[dict[str, Any]]:
    """The examples of one table, by its dotted name as in :data:`patchkit.model.keys.TABLES`; "" is the whole patch."""
    found = documents()
    for name in table.split(".") if table else ():
        found = [inner for outer in found for inner in _tables(outer.get(name))]
    return found


def values_of(tables: list[dict[str, Any]], key: str, most: int) -> list[Any]:
    """The first distinct values that a key has in example tables, at most ``most``."""
    values: list[Any] = []
    for table in tables:
        # 1 and true are equal in Python.
        if key in table and all((type(table[key]), table[key]) != (type(known), known) for known in values):
            values.append(table[key])
    return values[:most]


def _tables(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    elif value is not None:
        yield from value
