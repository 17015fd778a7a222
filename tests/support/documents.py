"""Reading the documents: their code blocks and tables, a console that runs what they show, the codes of the source.

A code block that a test writes to a file names it: ``toml title="patches/NAME.toml"``. In a ``console`` block a line
that begins with "$ " is a command; what follows is what it prints, with "..." for anything left out.
"""

from __future__ import annotations

import ast
import contextlib
import io
import math
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from patchkit.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
DOCS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


def document(name: str) -> str:
    """The text of a document of the repository."""
    return (ROOT / name).read_text(encoding="utf-8")


class Block(NamedTuple):
    """A fenced code block: where it begins, its language, its title and its text."""

    line: int
    language: str
    title: str | None
    text: str


def blocks(text: str) -> Iterator[Block]:
    for found in re.finditer(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield Block(text.count("\n", 0, found.start()) + 1, found[1], found[2], found[3])


def without_blocks(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def rows(text: str, heading: str) -> list[list[str]]:
    """The cells of every table row of one section (without its subsections' headings, to the next of its level)."""
    level = heading.partition(" ")[0]
    section = text.split(f"\n{heading}\n", 1)[1]
    section = re.split(rf"^{level} ", without_blocks(section), maxsplit=1, flags=re.MULTILINE)[0]
    lines = [line for line in section.split("\n") if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def ticked(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


class Console:
    """Runs the commands of console blocks in one folder, as a shell with the environment ``.venv`` active would."""

    def __init__(self, folder: Path, install: Callable[[], None]) -> None:
        self.folder = folder
        self.install = install
        self.status = 0

    def check(self, block: Block, where: str) -> None:
        """Run every command of a block and compare what it prints."""
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            printed = self.run(command)
            assert matches(shown, printed), (
                f"{where}:{block.line}: $ {command}\n--- shown\n{shown}--- printed\n{printed}"
            )

    def run(self, command: str) -> str:
        """Run one command and return what it printed, on stdout and stderr: a document shows both, as a terminal does.

        Without how far it is: whether that is said depends on how long it takes.
        """
        words = shlex.split(command)
        if command == "echo $?":
            return f"{self.status}\n"
        if words[:2] == ["pip", "install"]:
            self.install()
            return ""
        if words[0] == "patchkit":
            printed = io.StringIO()
            with (
                contextlib.redirect_stdout(printed),
                contextlib.redirect_stderr(printed),
                mock.patch("patchkit.cli.progress.QUIET", math.inf),
            ):
                self.status = main(words[1:])
            return printed.getvalue()
        assert words[0] in ("sed", "python"), command
        program = f"PATH={self.folder}/.venv/bin:$PATH; {command}"
        done = subprocess.run(
            ["bash", "-c", program], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.status = done.returncode
        return done.stdout


def matches(shown: str, printed: str) -> bool:
    """Whether ``printed`` is what is shown, where "..." stands for any text (on a line of its own: any lines)."""
    pattern = ""
    for line in shown.rstrip("\n").split("\n"):
        pattern += "(?:[^\n]*\n)*" if line == "..." else re.escape(line).replace(r"\.\.\.", "[^\n]*") + "\n"
    return re.fullmatch(pattern, printed.rstrip("\n") + "\n") is not None


def released_wheel(name: str, version: str) -> Path:
    """A wheel as the index has it; of the cache that the real tests share, where it is in there."""
    from patchkit.site.wheel import fetch_wheel

    known = Path(os.environ.get("PATCHKIT_TEST_CACHE") or ROOT / "tests" / "real" / ".cache")
    for path in known.glob(f"{name.replace('-', '_')}-{version}-*.whl"):
        return path
    return Path(fetch_wheel(name, version))


#: Codes that are not spelled where they are raised.
COMPUTED = {"condition.kind": {"precondition", "postcondition"}, "error.code": set(), "first.code": set()}


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def codes_of(path: Path) -> set[str]:
    """The codes that a module raises: ``code=...``, a class's own, and those given to a function that passes one on."""
    tree = tree_of(path)
    passing: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            parameters = [argument.arg for argument in node.args.args]
            if "code" in parameters:
                passing[node.name] = parameters.index("code")
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign | ast.Assign) and isinstance(node.value, ast.Constant):
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            if isinstance(target, ast.Name) and target.id == "code" and path.name == "errors.py":
                found.add(node.value.value)
        if not isinstance(node, ast.Call):
            continue
        values = [keyword.value for keyword in node.keywords if keyword.arg == "code"]
        if isinstance(node.func, ast.Name) and node.func.id in passing:
            values += node.args[passing[node.func.id] : passing[node.func.id] + 1]
        for value in values:
            found |= spelled(value, path)
    return found


def spelled(value: ast.expr, path: Path) -> set[str]:
    if isinstance(value, ast.IfExp):
        return spelled(value.body, path) | spelled(value.orelse, path)
    if isinstance(value, ast.Constant):
        return {value.value}
    text = ast.unparse(value)
    if text == "code":  # inside of a function that passes one on; fs.named takes it from a table
        return set()
    assert text in COMPUTED, f"{path.name}: code={text}: tell this test what it can be"
    return COMPUTED[text]
