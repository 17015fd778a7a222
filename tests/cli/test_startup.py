"""What a command imports is a promise: `check` stands at the start of every process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.bench import Bench

ROOT = Path(__file__).resolve().parents[2]
DOUBLE = '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'
CODE = """
import sys
before = set(sys.modules)
from patchkit.cli.main import main
status = main(sys.argv[1:])
import json
print("\\n" + json.dumps([status, sorted(set(sys.modules) - before)]))
"""


def imported(bench: Bench, *words: str) -> tuple[int, set[str]]:
    """The status of a command line in a process of its own, and the modules that it imported."""
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n" + CODE]
    environment = {key: value for key, value in os.environ.items() if key != "PATCHKIT_DEBUG"}
    done = subprocess.run(
        [*command, "--site", str(bench.site), *words],
        capture_output=True,
        text=True,
        env=environment,
        cwd=bench.root / "work",
        check=True,
    )
    status, modules = json.loads(done.stdout.rstrip("\n").split("\n")[-1])
    return status, set(modules)


SLOW = {
    "ast",
    "asyncio",
    "csv",
    "dataclasses",
    "difflib",
    "email",
    "importlib.metadata",
    "inspect",
    "logging",
    "packaging",
    "packaging.version",
    "pathlib",
    "shutil",
    "subprocess",
    "tempfile",
    "textwrap",
    "tomllib",
    "typing_extensions",
}


def test_check_of_a_clean_site(bench: Bench) -> None:
    status, modules = imported(bench, "check")
    assert status == 0
    assert modules & SLOW == set()
    assert not [name for name in modules if name.startswith(("patchkit.edit", "patchkit.model.load", "patchkit.bench"))]


def test_check_of_applied_patches(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    status, modules = imported(bench, "check")
    assert status == 0
    assert modules & SLOW == set()
    assert not [name for name in modules if name.startswith(("patchkit.edit", "patchkit.model.load"))]


def test_only_the_commands_own_module_is_imported(bench: Bench) -> None:
    _, modules = imported(bench, "check")
    commands = {name for name in modules if name.startswith("patchkit.cli.commands.")}
    assert commands == {"patchkit.cli.commands.check"}


@pytest.mark.parametrize("words", [("--version",), ("check", "--help")])
def test_help_imports_no_parser(bench: Bench, words: tuple[str, ...]) -> None:
    _, modules = imported(bench, *words)
    assert modules & {"ast", "tomllib", "packaging", "subprocess"} == set()
