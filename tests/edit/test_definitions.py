"""Definitions by their qualified names."""

from __future__ import annotations

import ast
import sysconfig
from pathlib import Path

import pytest

from patchkit.edit.definitions import named_definitions

TEXT = """\
if x:
    def f(): pass
else:
    def f():
        class A:
            def g(self): pass
        if y:
            def h(): pass
class A:
    @property
    def g(self): pass
    @g.setter
    def g(self, v): pass
    try:
        def k(self): pass
    except E:
        def k(self): pass
    finally:
        class B: pass
match x:
    case 1:
        def m(): pass
"""


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("f", [2, 4]),
        ("f.A", [5]),
        ("f.A.g", [6]),
        ("f.h", [8]),
        ("A.g", [11, 13]),
        ("A.k", [15, 17]),
        ("A.B", [19]),
        ("m", [22]),
        ("g", []),
        ("A.g.h", []),
        ("", []),
    ],
)
def test_by_name(name: str, lines: list[int]) -> None:
    assert [node.lineno for node in named_definitions(ast.parse(TEXT), name)] == lines


def test_as_python_names_them() -> None:
    """Against ``co_qualname`` of the code objects that the compiler makes of some files of the standard library."""
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("[a-d]*.py"))[:12]:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        codes = [compile(text, str(path), "exec")]
        for code in codes:
            codes += [const for const in code.co_consts if hasattr(const, "co_qualname")]
        for code in codes:
            name = code.co_qualname.replace(".<locals>", "")
            if "<" in name:
                continue
            starts = {
                min([node.lineno, *(d.lineno for d in node.decorator_list)]) for node in named_definitions(tree, name)
            }
            assert code.co_firstlineno in starts, (path.name, name)
