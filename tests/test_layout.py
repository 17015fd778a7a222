"""The rooms of DESIGN section 6 import only downwards, no file grows past 500 lines, and there is no cycle."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "patchkit"
TESTS = ROOT / "tests"
#: From the top down: a room may import itself and what stands behind it.
ROOMS = [
    "cli",
    "plugin",
    "api",
    "bench",
    "rig",
    "author",
    "ops",
    "state",
    "site",
    "edit",
    "model",
    "runtime",
    "errors",
    "visible",
    "tuples",
]
FILES = sorted(PACKAGE.rglob("*.py"))


def room_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[0] == "patchkit" else None


def imports(path: Path) -> list[tuple[str, bool]]:
    """(module, whether the import runs when the module is imported)."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    lazy: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lazy.update(ast.walk(node))
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            lazy.update(ast.walk(node))
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, node not in lazy) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            found.append((node.module, node not in lazy))
            found += [(f"{node.module}.{alias.name}", node not in lazy) for alias in node.names]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_rooms_import_only_downwards(path: Path) -> None:
    own = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if own in ("__init__", "__main__"):
        return
    for module, _ in imports(path):
        room = room_of(module)
        if room is not None and room in ROOMS:
            assert ROOMS.index(room) >= ROOMS.index(own), f"{path.name} ({own}) imports {module}"


def test_no_import_cycle() -> None:
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in FILES}
    graph = {
        name: {target for target, eager in imports(path) if eager and target in modules and target != name}
        for name, path in modules.items()
    }
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, "cycle: " + " -> ".join([*trail[trail.index(name) :], name])
        if name in done:
            return
        for target in graph[name]:
            visit(target, (*trail, name))
        done.add(name)

    for name in graph:
        visit(name, ())


def test_no_file_over_500_lines() -> None:
    """Those of the tests as well; what they cache is nobody's source."""
    sources = [*FILES, *(path for path in TESTS.rglob("*.py") if ".cache" not in path.parts)]
    assert len(sources) > len(FILES)
    long = {str(path): len(path.read_text(encoding="utf-8").splitlines()) for path in sources}
    assert {path: lines for path, lines in long.items() if lines > 500} == {}


#: Who may read with a plain ``open``: what opens a regular file for all others, what the kernel or the user's own
#: argument names, and what runs in an interpreter without patchkit.
PLAIN = {
    *("runtime/ledger.py", "state/lock.py", "cli/commands/author.py"),
    *("site/probe.py", "runtime/overlay.py", "runtime/readers.py", "runtime/entries.py", "runtime/transplant.py"),
    *("runtime/words.py", "runtime/driver.py"),
    "bench/served/keeper.py",
}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_what_is_read_is_a_regular_file(path: Path) -> None:
    """A pipe in the place of a file keeps a plain ``open`` waiting for ever."""
    if path.relative_to(PACKAGE).as_posix() in PLAIN:
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "open":
            mode = node.args[1] if len(node.args) > 1 else ast.Constant("r")
            assert isinstance(mode, ast.Constant)
            assert set(str(mode.value)) & set("wxa"), f"{path.name}:{node.lineno}: runtime.ledger.open_regular"


def test_runtime_is_standard_library_only() -> None:
    for path in (PACKAGE / "runtime").glob("*.py"):
        for module, eager in imports(path):
            if module.startswith("patchkit") and eager:
                assert module.startswith("patchkit.runtime"), f"{path.name} imports {module}"
