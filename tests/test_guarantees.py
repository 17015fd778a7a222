"""docs/guarantees.md names tests that are there, and every area whose protections are taken out one by one."""

from __future__ import annotations

import ast
import re
import tomllib

import pytest
from support.documents import ROOT, document, rows

TEXT = document("docs/guarantees.md")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", TEXT)))
LISTS = sorted((ROOT / "tests" / "protections").glob("*.toml"))


@pytest.mark.parametrize(("path", "name"), NAMED, ids=lambda part: part or "file")
def test_every_test_that_is_named_is_there(path: str, name: str) -> None:
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert not name or name in functions


def test_every_row_names_a_test() -> None:
    promises = [row for row in rows(TEXT, "## What is promised") if len(row) == 3 and row[0] not in ("promise", "---")]
    assert len(promises) > 20
    assert [row[0] for row in promises if "`tests/" not in row[2]] == []


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_the_tests_of_every_protection_are_named(path: object) -> None:
    """A file at least; which of its tests sees the difference is in the list."""
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["protection"]  # type: ignore[attr-defined]
    files = {test.partition("::")[0] for entry in entries for test in entry["tests"]}
    assert sorted(files - {path for path, _ in NAMED}) == []
