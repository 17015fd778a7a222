"""Real Python: the running interpreter's own library and the installed development packages, in slices."""

from __future__ import annotations

import ast
import functools
import os
import sysconfig
import warnings

from hypothesis import strategies as st

#: No file above this is taken: what is of interest is in the small ones too, and a parse is paid for every example.
LARGEST = 150_000
#: Characters of the statements that one example takes.
SLICE = 6_000


@functools.cache
def files() -> tuple[str, ...]:
    """Every source file, in an order that does not depend on the file system."""
    found = []
    for root in dict.fromkeys((sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"))):
        for folder, folders, names in os.walk(root):
            folders[:] = sorted(name for name in folders if name not in ("site-packages", "__pycache__"))
            found += [os.path.join(folder, name) for name in sorted(names) if name.endswith(".py")]
    return tuple(path for path in found if 200 < os.path.getsize(path) <= LARGEST)


@functools.lru_cache(maxsize=64)
def read(path: str) -> tuple[str, ast.Module] | None:
    """A file's text with ``\\n`` line breaks and its tree, None where the running Python does not parse it."""
    with open(path, "rb") as file:
        data = file.read()
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
        return text, parse(text)
    except (ValueError, SyntaxError):
        return None


def parse(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


@st.composite
def slices(draw: st.DrawFn, size: int = SLICE) -> str:
    """Neighbouring statements of a real file, from module level or from a body of it, with what stands between them."""
    paths = files()
    while True:
        known = read(paths[draw(st.integers(0, len(paths) - 1))])
        if known is not None and known[1].body:
            break
    text, tree = known
    lines = text.split("\n")
    first = draw(st.integers(0, len(tree.body) - 1))
    starts = [_first_line(node) for node in tree.body]
    begin = starts[first]
    end = begin
    for node in tree.body[first:]:
        stop = node.end_lineno or 0
        if end > begin and sum(map(len, lines[begin - 1 : stop])) > size:
            break
        end = stop
    piece = "\n".join(lines[begin - 1 : end]) + "\n"
    if len(piece) > 4 * size:  # one huge statement
        piece = "\n".join(lines[begin - 1 : begin + 40]) + "\n"
    try:
        parse(piece)
    except (ValueError, SyntaxError):  # a line that two statements share, or one cut short
        return "x = 1\n"
    return piece


def _first_line(node: ast.stmt) -> int:
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(one.lineno for one in decorators)])
