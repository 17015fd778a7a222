from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

import pytest
from support.interpreters import find_python
from support.sites import bare_site

from patchkit.errors import SiteError
from patchkit.site import grammar as module
from patchkit.site.environment import Site, from_interpreter
from patchkit.site.foreign import dump
from patchkit.site.grammar import Grammar, _build
from patchkit.site.interpreter import Interpreter, ask, own


def _site(version: str) -> Site:
    path = find_python(version)
    if path is None:
        pytest.skip(f"no Python {version}")
    return from_interpreter(ask(path))


def _stand_in(tmp_path: Path, script: str) -> Site:
    """A site whose interpreter is of another version than the host and runs ``script``."""
    path = tmp_path / "python"
    path.write_text(script)
    path.chmod(0o755)
    mine = own()
    fake = Interpreter(
        executable=str(path),
        version=(3, 99, 0),
        implementation="cpython",
        purelib=mine.purelib,
        site_directories=(),
        pycache_prefix=None,
        prefix="/",
        markers={},
    )
    return Site(home="/", paths=[], interpreter=fake, python_version=(3, 99), label="stand-in")


GOOD = {
    "a.py": b"x = 1\n",
    "bom.py": b"\xef\xbb\xbfx = 1\r\n",
    "latin.py": b"# -*- coding: cp1252 -*-\nx = '\x80'\n",
    "escape.py": b"x = '\\d'\n",
    "feed.py": b"x = 1\n\x0c\ny = 2",
    "empty.py": b"",
}
BAD = {
    "cut.py": b"def f(:\n",
    "py2.py": b"x = 1\nprint 'hello'\n",
    "late.py": b"def f():\n    pass\nreturn 1\n",
    "nul.py": b"x = 1\n\0\n",
    "cookie.py": b"# coding: no-such-encoding\n",
    "bytes.py": b"x = '\xff'\n",
    "indent.py": b"if x:\n    a\n  b\n",
}


@pytest.fixture(params=["host", "3.8", "3.9", "3.12", "3.13"])
def grammar(request: pytest.FixtureRequest) -> Grammar:
    site = from_interpreter(own()) if request.param == "host" else _site(request.param)
    return Grammar(site)


def test_each_file_is_judged(grammar: Grammar) -> None:
    found = grammar.judge({**GOOD, **BAD})
    assert sorted(found) == sorted(BAD)
    assert found["py2.py"].line == 2
    assert found["py2.py"].text == "print 'hello'"
    assert found["py2.py"].column >= 1
    assert "print" in found["py2.py"].message
    assert (found["late.py"].line, found["late.py"].message) == (3, "'return' outside function")
    assert found["cut.py"].line == 1
    assert grammar.judge({}) == {}
    assert grammar.judge(GOOD) == {}


def test_too_deep_is_a_problem_and_no_crash_of_ours(grammar: Grammar) -> None:
    deep = b"(" * 5000 + b")" * 5000
    found = grammar.judge({"deep.py": deep, "after.py": b"x = 1\n", "bad.py": b"x ="})
    assert sorted(found) == ["bad.py", "deep.py"]
    with pytest.raises((SyntaxError, RecursionError, MemoryError)):
        grammar.parse(deep.decode())


def test_warnings_stay_silent_even_as_errors(grammar: Grammar) -> None:
    # filterwarnings = error in the test configuration would make a SyntaxWarning an error
    assert grammar.judge({"a.py": b"x = '\\d'\nassert (1, 'x')\nif x is 1: pass\n"}) == {}
    assert isinstance(grammar.parse("x = '\\d'\n"), ast.Module)


@pytest.mark.parametrize(
    ("source", "since"),
    [
        (b"match x:\n    case 1: pass\n", (3, 10)),
        (b"try: pass\nexcept* E: pass\n", (3, 11)),
        (b"type X = int\n", (3, 12)),
        (b"x = f'{\"a\" + f\"{1}\"}{'b'}'\n", (3, 12)),
        (b"def f[T = int](): pass\n", (3, 13)),
        (b"with (open(a) as b, open(c) as d): pass\n", (3, 9)),
    ],
)
@pytest.mark.parametrize("version", ["3.8", "3.9", "3.10", "3.12", "3.13"])
def test_the_sites_grammar_decides(version: str, source: bytes, since: tuple[int, int]) -> None:
    site = _site(version)
    assert site.python_version is not None
    found = Grammar(site).judge({"a.py": source})
    assert (found == {}) is (site.python_version >= since)


def test_a_bare_directory_is_judged_by_its_version(tmp_path: Path) -> None:
    files = {"match.py": b"match x:\n    case 1: pass\n", "walrus.py": b"(x := 1)\n"}
    assert list(Grammar(bare_site(tmp_path, python_version=(3, 9))).judge(files)) == ["match.py"]
    assert Grammar(bare_site(tmp_path)).judge(files) == {}
    assert Grammar(bare_site(tmp_path, python_version=(3, 99))).judge(files) == {}
    assert list(Grammar(bare_site(tmp_path, python_version=(3, 99))).judge({"bad.py": b"x ="})) == ["bad.py"]


def test_one_process_judges_all_files(monkeypatch: pytest.MonkeyPatch) -> None:
    site = _site("3.8" if sys.version_info[:2] != (3, 8) else "3.9")
    calls: list[str] = []
    real = module._run

    def counting(interpreter: Interpreter, want: str, files: list[tuple[str, bytes]]) -> tuple[list[Any], str]:
        calls.append(want)
        return real(interpreter, want, files)

    monkeypatch.setattr(module, "_run", counting)
    Grammar(site).judge({f"{number}.py": b"x = 1\n" * number for number in range(50)})
    assert calls == ["judge"]


NEW = """\
type Alias[T: int, *Ts, **P] = dict[T, P]
def first[T](x: list[T]) -> T:
    '''naïve 日本 \\ud800'''
    return x[0], 10 ** 3, 1.5, 2j, b"\\xff", ..., None, True, -0x1_0000_0000_0000_0000, 1e999
class Box[T]: pass
"""


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="the host knows this syntax itself")
def test_what_the_host_cannot_read_the_site_parses() -> None:
    tree = Grammar(_site("3.12")).parse(NEW)
    alias, function, box = tree.body
    assert isinstance(alias, ast.stmt)
    assert type(alias).__name__ == "TypeAlias"
    assert type(alias)._fields == ("name", "type_params", "value")
    assert (alias.lineno, alias.col_offset, alias.end_lineno, alias.end_col_offset) == (1, 0, 1, 41)
    assert isinstance(function, ast.FunctionDef)
    assert "type_params" in function._fields
    assert [type(node).__name__ for node in ast.iter_child_nodes(alias)] == [
        "Name",
        "TypeVar",
        "TypeVarTuple",
        "ParamSpec",
        "Subscript",
    ]
    assert ast.get_docstring(function, clean=False) == "naïve 日本 \ud800"
    returned = function.body[1]
    assert isinstance(returned, ast.Return)
    assert isinstance(returned.value, ast.Tuple)
    elements = returned.value.elts
    constants = [node.value for node in elements if isinstance(node, ast.Constant)]
    assert constants == [1.5, 2j, b"\xff", ..., None, True, float("inf")]
    assert [type(value) for value in constants] == [float, complex, bytes, type(...), type(None), bool, float]
    assert isinstance(elements[0], ast.Subscript)
    assert isinstance(elements[0].ctx, ast.Load)
    assert isinstance(elements[8], ast.UnaryOp)
    assert ast.dump(elements[8].operand) == f"Constant(value={0x1_0000_0000_0000_0000})"
    assert isinstance(box, ast.ClassDef)


def test_what_neither_can_read_is_the_sites_error() -> None:
    other = "3.12" if sys.version_info[:2] != (3, 12) else "3.13"
    with pytest.raises(SyntaxError) as caught:
        Grammar(_site(other)).parse("x = 1\ny = = 2\n")
    assert (caught.value.lineno, caught.value.offset, caught.value.text) == (2, 5, "y = = 2")
    with pytest.raises((ValueError, SyntaxError)):
        Grammar(_site(other)).parse("x = '\ud800'\n")
    with pytest.raises((ValueError, SyntaxError)):
        Grammar(from_interpreter(own())).parse("x = 1\0")


def test_the_host_parses_what_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    site = _site("3.12" if sys.version_info[:2] != (3, 12) else "3.13")
    monkeypatch.setattr(module, "_parse_there", lambda *given: pytest.fail("no process is needed"))
    assert ast.dump(Grammar(site).parse("x = 1\n")) == ast.dump(ast.parse("x = 1\n"))


@pytest.mark.parametrize("path", [ast.__file__, Path(__file__), Path(module.__file__)])
def test_a_dumped_tree_is_rebuilt_with_its_positions(path: str | Path) -> None:
    tree = ast.parse(Path(path).read_bytes())
    assert ast.dump(_build(dump(tree)), include_attributes=True) == ast.dump(tree, include_attributes=True)


def test_depth_does_not_matter_to_the_dump() -> None:
    tree = ast.parse("x = " + "+".join(["1"] * 900))
    node = tree.body[0]
    assert isinstance(node, ast.Assign)
    for _ in range(5000):
        node.value = ast.UnaryOp(op=ast.Not(), operand=node.value)
    rebuilt = _build(dump(tree))
    count, inner = 0, rebuilt.body[0].value  # type: ignore[attr-defined]
    while isinstance(inner, ast.UnaryOp):
        count, inner = count + 1, inner.operand
    assert count == 5000


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-ins are shell scripts")
def test_a_crash_is_laid_to_the_file_it_happened_on(tmp_path: Path) -> None:
    # answers one file a run, then dies as a segmentation fault would have it
    site = _stand_in(tmp_path, "#!/bin/sh\necho null\nkill -9 $$\n")
    found = Grammar(site).judge({"a.py": b"", "b.py": b"", "c.py": b""})
    assert {path: problem.message for path, problem in found.items()} == {
        "b.py": "the interpreter crashed on this file"
    }
    dying = _stand_in(tmp_path, "#!/bin/sh\nkill -9 $$\n")
    with pytest.raises(MemoryError, match="ended by signal 9 while parsing"):
        Grammar(dying).parse("x = = 1")


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-ins are shell scripts")
def test_an_interpreter_that_cannot_judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SiteError, match="it ended with status 3; broken") as caught:
        Grammar(_stand_in(tmp_path, "#!/bin/sh\necho broken >&2\nexit 3\n")).judge({"a.py": b""})
    assert caught.value.code == "interpreter"
    monkeypatch.setattr(module, "PATIENCE", 0.3)
    with pytest.raises(SiteError, match="did not end in time"):
        Grammar(_stand_in(tmp_path, "#!/bin/sh\nsleep 30\n")).judge({"a.py": b""})
    (tmp_path / "python").unlink()
    with pytest.raises(SiteError, match="No such file"):
        Grammar(_stand_in(tmp_path, "#!/no/such/shell\n")).judge({"a.py": b""})
