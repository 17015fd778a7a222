"""The grammar of the site's Python: the judge of what is written there, and the parser of what the host cannot read."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from patchkit.errors import SiteError
from patchkit.site import foreign
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    import ast

    from patchkit.site.environment import Site
    from patchkit.site.interpreter import Interpreter

#: Seconds that the site's interpreter may take over all files of one call.
PATIENCE = 120.0

_CRASHED = "the interpreter crashed on this file"


class SyntaxProblem(NamedTuple):
    """Why a file does not compile: 1-based line and column, the compiler's message, and the line's text."""

    line: int
    column: int
    message: str
    text: str


class Grammar:
    """The grammar of one site (``patchkit.edit.plan.Grammar``, and the judgement of whole files)."""

    def __init__(self, site: Site) -> None:
        """Use the host's compiler where the site's Python is of the same version, else the site's interpreter."""
        self._version = site.python_version
        self._interpreter = site.interpreter
        here = sys.implementation.name, sys.version_info[:2]
        found = site.interpreter
        self._foreign = found is not None and (found.implementation, found.python_version) != here

    def parse(self, text: str) -> ast.Module:
        """Parse with the host's grammar, or where that fails and the site's Python is another, with the site's.

        Node classes that the host does not know are made for the purpose; they bear the site's names and fields.

        Raises:
            SyntaxError, ValueError, RecursionError, MemoryError, OverflowError: As ``ast.parse`` does.
            SiteError: The site's interpreter cannot be run.
        """
        import ast  # here: a text edit without scope needs none
        import gc

        # The collector would walk the growing tree over and over, a quarter of the time, and find nothing.
        collects = gc.isenabled()
        gc.disable()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return ast.parse(text)
        except foreign.FAILURES:
            if not self._foreign or self._interpreter is None:
                raise
            return _parse_there(self._interpreter, text)
        finally:
            if collects:
                gc.enable()

    def judge(self, files: Mapping[str, bytes]) -> dict[str, SyntaxProblem]:
        """The files that do not compile, by their path; their encoding cookies are honoured.

        Without an interpreter the host judges, by the older grammar where the site's Python is older.

        Raises:
            SiteError: The site's interpreter cannot be run.
        """
        if not files:
            return {}
        if self._foreign and self._interpreter is not None:
            return _judge_there(self._interpreter, files)
        older = self._interpreter is None and self._version is not None and self._version < sys.version_info[:2]
        found = {}
        for path, data in files.items():
            problem = foreign.judge(path, data)
            if problem is None and older:
                problem = _judge_older(data, self._version)
            if problem is not None:
                found[path] = SyntaxProblem(*problem)
        return found


def _judge_older(data: bytes, version: tuple[int, int] | None) -> list[Any] | None:
    import ast

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(data, feature_version=version)
        except foreign.FAILURES as error:
            return foreign.problem(error)
    return None


def _run(interpreter: Interpreter, want: str, files: list[tuple[str, bytes]]) -> tuple[list[Any], str]:
    """The answers for ``files`` (fewer where the interpreter crashed), and how it ended."""
    from patchkit.site.process import run

    head = json.dumps({"want": want, "files": [[path, len(data)] for path, data in files]}).encode("ascii")
    body = b"".join([head, b"\n", *(data for _, data in files)])
    try:
        done = run([interpreter.executable, "-I", "-S", foreign.__file__], data=body, timeout=PATIENCE)
    except OSError as error:
        raise _cannot(interpreter, error.strerror or str(error)) from None
    answers = []
    for line in done.out.splitlines():
        try:
            answers.append(json.loads(line))
        except ValueError:
            break
    if len(answers) < len(files) and (done.status is None or done.status > 0):
        raise _cannot(interpreter, f"it {done.ended()}; {done.last_line() or 'it printed nothing'}")
    return answers, done.ended()


def _cannot(interpreter: Interpreter, why: str) -> SiteError:
    return SiteError(
        f"{interpreter.executable} cannot judge the site's source: {why}",
        code="interpreter",
        hint="check that it starts by itself",
        details={"path": interpreter.executable},
    )


def _judge_there(interpreter: Interpreter, files: Mapping[str, bytes]) -> dict[str, SyntaxProblem]:
    found = {}
    pending = list(files.items())
    while pending:
        answers, _ = _run(interpreter, "judge", pending)
        for (path, _data), answer in zip(pending, answers, strict=False):
            if answer is not None:
                found[path] = SyntaxProblem(*answer)
        pending = pending[len(answers) :]
        if pending:
            found[pending[0][0]] = SyntaxProblem(1, 1, _CRASHED, "")
            pending = pending[1:]
    return found


def _parse_there(interpreter: Interpreter, text: str) -> ast.Module:
    answers, ended = _run(interpreter, "parse", [("<text>", text.encode("utf-8", "surrogatepass"))])
    if not answers:
        raise MemoryError(f"{interpreter.executable} {ended} while parsing")
    answer = answers[0]
    if "tree" in answer:
        return _build(answer["tree"])
    kind, line, column, message, source = answer["error"]
    if kind == "SyntaxError":
        raise SyntaxError(message, ("<text>", line, column, source))
    errors: dict[str, type[Exception]] = {one.__name__: one for one in foreign.FAILURES}
    raise errors[kind](message)


def _build(dumped: dict[str, Any]) -> ast.Module:
    """The tree that :func:`patchkit.site.foreign.dump` dumped."""
    import ast

    classes: dict[str, type[ast.AST]] = {}
    for name in dumped["classes"]:
        _class(name, dumped["classes"], classes)
    rows = dumped["nodes"]
    # Without the constructor, which warns of fields that are missing when called for an empty node.
    nodes: list[ast.AST] = [classes[name].__new__(classes[name]) for name, _, _ in rows]

    def value(item: Any) -> Any:
        if not isinstance(item, list):
            return item
        kind, *rest = item
        if kind == "n":
            return _modern(nodes[rest[0]])
        if kind == "l":
            return [value(one) for one in rest[0]]
        if kind == "e":
            return Ellipsis
        if kind == "b":
            return rest[0].encode("latin-1")
        if kind == "i":
            return int(rest[0], 16)
        if kind == "f":
            return float.fromhex(rest[0])
        if kind == "c":
            return complex(float.fromhex(rest[0]), float.fromhex(rest[1]))
        return rest[0]

    # Children have higher numbers than their parents, so that backwards every child is complete before its parent.
    for node, (_, fields, attributes) in zip(reversed(nodes), reversed(rows), strict=True):
        for name, item in fields:
            setattr(node, name, value(item))
        for name, item in attributes:
            setattr(node, name, item)
        for name in type(node)._fields:
            if name in ("type_params", "type_ignores") and name not in node.__dict__:
                setattr(node, name, [])
    tree = nodes[0]
    assert isinstance(tree, ast.Module)
    return tree


def _modern(node: ast.AST) -> ast.AST:
    """Python 3.8's ``Index`` and ``ExtSlice`` as later versions have them."""
    import ast

    name = type(node).__name__
    if name == "Index":
        value: ast.AST = node.__dict__["value"]
        return value
    if name == "ExtSlice":
        dims: list[ast.expr] = node.__dict__["dims"]
        return ast.Tuple(elts=dims, ctx=ast.Load())
    return node


def _class(name: str, dumped: dict[str, Any], made: dict[str, type[ast.AST]]) -> type[ast.AST]:
    """The host's class of that name when it has the same fields; else one derived from it, or from its base."""
    import ast

    if name in made:
        return made[name]
    fields, attributes, bases = dumped[name]
    known = getattr(ast, name, None)
    if name in ("Index", "ExtSlice") or not (isinstance(known, type) and issubclass(known, ast.AST)):
        known = None
    if known is not None and set(fields) <= set(known._fields):
        made[name] = known
        return known
    parent = known or next((getattr(ast, base) for base in bases if hasattr(ast, base)), ast.AST)
    members = {"_fields": tuple(fields), "_attributes": tuple(attributes), "__module__": "ast"}
    made[name] = type(name, (parent,), members)
    return made[name]
