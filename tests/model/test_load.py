"""Whole files that are right: every key arrives, lines are found, and little is imported."""

from __future__ import annotations

import ast
import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from patchkit.errors import PatchFileError
from patchkit.model.load import load_patch, parse_patch
from patchkit.model.patch import Add, Condition, Edit, Example, Patch, Target

TOP = 'schema = 1\nname = "p"\nsummary = "s"\n'  # lines 1 to 3
TARGET = '[target]\nrequirement = "dist"\n'  # lines 4 and 5
EDIT = '[[edit]]\nfile = "a.py"\nfind = "x"\nreplace = "y"\n'  # lines 6 to 9


FULL = b"""\
schema = 1
name = "full"
summary = "All keys"
description = '''
Two
lines.
'''
links = ["https://example.invalid/1"]
tags = ["known-bad", "tpu"]

[target]
requirement = "Dist.Name>=1,<2; python_version >= '3.8'"
requires = ["jax>=0.10"]
otherwise = "Use the release."
optional = true
conflicts = ["other"]
after = ["first", "second"]

[[edit]]
file = ["pkg/a.py", "pkg/b.py"]
scope = "Class.method"
inside = "if x:"
versions = ">=1,<1.5"
after = "one"
before = "two"
find = '''
old
'''
replace = "new\\r\\nnew\\rnew"
count = 3
nth = 2

[[edit.example]]
before = "old\\n"
after = "new\\n"

[[edit.example]]
before = "b"
after = ""

[[edit]]
file = "pkg/a.py"
match = "$X"
delete = true

[[edit]]
file = "pkg/a.py"
match = "$X"
scope = "f"
wrap = "with y:\\n    $$$BODY\\n"

[[edit]]
file = "pkg/a.py"
add_import = ["import os", "from a import b"]

[[edit]]
file = "pkg/a.py"
scope = "f"
probe = "f ran"

[[edit]]
file = "pkg/a.py"
find = "z"
insert_before = "a"

[[edit]]
file = "pkg/a.py"
find = "z"
insert_after = "b"

[[precondition]]
file = "pkg/c.py"
match = "$X.y"
scope = "g"
inside = "else:"
versions = ">1"
count = "2+"

[[precondition]]
file = "pkg/c.py"
find = "gone\\r\\n"
count = 0

[[postcondition]]
file = "pkg/c.py"
find = "there"
count = 4

[[add]]
file = "pkg/new.py"
content = "one\\r\\ntwo\\n"
versions = "!=1.3"

[[add]]
file = "pkg/__init__.py"
content = ""

[[upstreamed]]
versions = ">=2"

[[upstreamed]]
file = "pkg/a.py"
find = "new"
"""


def test_every_key_arrives() -> None:
    patch = parse_patch(FULL, "x/full.toml")
    assert patch == Patch(
        name="full",
        summary="All keys",
        description="Two\nlines.\n",
        links=("https://example.invalid/1",),
        tags=("known-bad", "tpu"),
        path="x/full.toml",
        data=FULL,
        digest=hashlib.sha256(FULL).hexdigest(),
        target=Target(
            requirement="Dist.Name>=1,<2; python_version >= '3.8'",
            requires=("jax>=0.10",),
            otherwise="Use the release.",
            optional=True,
            conflicts=("other",),
            after=("first", "second"),
        ),
        edits=(
            Edit(
                index=1,
                files=("pkg/a.py", "pkg/b.py"),
                action="replace",
                scope="Class.method",
                inside="if x:",
                versions=">=1,<1.5",
                after="one",
                before="two",
                find="old\n",
                text="new\nnew\nnew",
                count=3,
                nth=2,
                examples=(Example(index=1, before="old\n", after="new\n"), Example(index=2, before="b", after="")),
            ),
            Edit(index=2, files=("pkg/a.py",), action="delete", match="$X"),
            Edit(
                index=3,
                files=("pkg/a.py",),
                action="wrap",
                match="$X",
                scope="f",
                text="with y:\n    $$$BODY\n",
            ),
            Edit(index=4, files=("pkg/a.py",), action="add_import", imports=("import os", "from a import b")),
            Edit(index=5, files=("pkg/a.py",), action="probe", scope="f", text="f ran"),
            Edit(index=6, files=("pkg/a.py",), action="insert_before", find="z", text="a"),
            Edit(index=7, files=("pkg/a.py",), action="insert_after", find="z", text="b"),
        ),
        preconditions=(
            Condition(
                kind="precondition",
                index=1,
                file="pkg/c.py",
                match="$X.y",
                scope="g",
                inside="else:",
                versions=">1",
                at_least=2,
                at_most=None,
            ),
            Condition(kind="precondition", index=2, file="pkg/c.py", find="gone\n", at_least=0, at_most=0),
        ),
        postconditions=(
            Condition(kind="postcondition", index=1, file="pkg/c.py", find="there", at_least=4, at_most=4),
        ),
        adds=(
            Add(index=1, file="pkg/new.py", content="one\r\ntwo\n", versions="!=1.3"),
            Add(index=2, file="pkg/__init__.py", content=""),
        ),
        upstreamed=(
            Condition(kind="upstreamed", index=1, versions=">=2"),
            Condition(kind="upstreamed", index=2, file="pkg/a.py", find="new"),
        ),
    )


def test_defaults() -> None:
    patch = parse_patch((TOP + TARGET + EDIT).encode(), None)
    assert patch.target == Target(requirement="dist")
    assert patch.edits == (Edit(index=1, files=("a.py",), action="replace", find="x", text="y", count=1),)
    assert (patch.description, patch.links, patch.tags, patch.path) == ("", (), (), None)
    assert (patch.preconditions, patch.postconditions, patch.adds, patch.upstreamed) == ((), (), (), ())


def test_lines_of_keys() -> None:
    patch = parse_patch(FULL, None)
    assert patch.line_of("name") == 2
    assert patch.line_of("target") == 11
    assert patch.line_of("target", "after") == 17
    assert patch.line_of("edit", 1) == 19
    assert patch.line_of("edit", 1, "file", 2) == 20
    assert patch.line_of("edit", 1, "replace") == 29
    assert patch.line_of("edit", 1, "example", 2, "after") == 39
    assert patch.line_of("edit", 1, "example", 2, "nothing") == 37
    assert patch.line_of("edit", 2, "count") == 41
    assert patch.line_of("nothing") is None
    assert patch.line_of() is None
    assert patch.lines is patch.lines


def test_lines_of_a_file_with_crlf_and_bom() -> None:
    patch = parse_patch(b"\xef\xbb\xbf" + FULL.replace(b"\n", b"\r\n"), "full.toml")
    assert patch.line_of("edit", 1, "replace") == 29
    assert patch.edits[0].find == "old\n"
    assert patch.edits[0].text == "new\nnew\nnew"
    assert patch.description == "Two\nlines.\n"


def test_a_patch_without_bytes_has_no_lines() -> None:
    assert Patch(name="p", summary="s", target=Target(requirement="d")).line_of("name") is None


def test_only_an_add_is_enough() -> None:
    patch = parse_patch((TOP + TARGET + '[[add]]\nfile = "a.py"\ncontent = ""\n').encode(), "p.toml")
    assert patch.adds == (Add(index=1, file="a.py", content=""),)


# Files


def test_load(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_bytes((TOP + TARGET + EDIT).encode())
    patch = load_patch(str(path))
    assert patch.path == str(path)
    assert patch.name == "p"


def test_load_names_what_cannot_be_read(tmp_path: Path) -> None:
    missing = str(tmp_path / "none.toml")
    with pytest.raises(PatchFileError) as caught:
        load_patch(missing)
    assert caught.value.message == f"{missing}: cannot be read: No such file or directory"
    with pytest.raises(PatchFileError, match="cannot be read: "):
        load_patch(str(tmp_path))
    with pytest.raises(PatchFileError, match="cannot be read: embedded null byte"):
        load_patch("a\0b")


def test_load_reads_no_further_than_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    with path.open("wb") as stream:
        stream.truncate(1 << 40)  # sparse
    with pytest.raises(PatchFileError, match="is larger than 8 MB, the most that is read"):
        load_patch(str(path))


def test_loading_imports_nothing_heavy() -> None:
    code = (
        "import sys, dataclasses, typing, re, hashlib, tomllib, packaging.requirements\n"
        "before = set(sys.modules)\n"
        "from patchkit.model.load import parse_patch\n"
        f"parse_patch({FULL!r}, 'full.toml')\n"
        "print(sorted(m for m in set(sys.modules) - before))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert ast.literal_eval(out) == [
        "patchkit",
        "patchkit.errors",
        "patchkit.model",
        "patchkit.model.checks",
        "patchkit.model.document",
        "patchkit.model.heads",
        "patchkit.model.keys",
        "patchkit.model.load",
        "patchkit.model.patch",
        "patchkit.model.requirement",
        "patchkit.runtime",
        "patchkit.runtime.ledger",
        "patchkit.tuples",
        "patchkit.visible",
    ]
