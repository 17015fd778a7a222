"""Every protection is held by a test: with the protection taken out of a copy of the tree, that test fails.

The list is in the TOML files beside this one. An entry says what a user is promised, which text in which file of the
package keeps the promise, what stands there when it is taken out, and which tests see the difference. That they pass
with the protection in place is the business of the ordinary run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
LISTS = sorted(HERE.glob("*.toml"))
KEYS = {"promise", "file", "find", "replace", "tests"}
PARTS = ("patchkit", "tests", "patches", "recipes", "docs", "benchmarks", "pyproject.toml", "README.md", "CHANGELOG.md")
ENTRIES = [
    (f"{path.stem}-{number}", entry)
    for path in LISTS
    for number, entry in enumerate(tomllib.loads(path.read_text(encoding="utf-8"))["protection"], 1)
]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the tree, without what tests have fetched."""
    for name in PARTS:
        source, target = ROOT / name, tmp_path / "tree" / name
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", ".cache", ".*_cache"))
        else:
            target.parent.mkdir(exist_ok=True)
            shutil.copy2(source, target)
    return tmp_path / "tree"


def test_there_are_some() -> None:
    assert len(LISTS) >= 11
    assert len(ENTRIES) >= 110


@pytest.mark.slow
@pytest.mark.parametrize("entry", [entry for _, entry in ENTRIES], ids=[name for name, _ in ENTRIES])
def test_its_test_fails_without_it(entry: dict[str, Any], copy: Path, tmp_path: Path) -> None:
    assert set(entry) == KEYS
    assert entry["file"].startswith("patchkit/")
    path = copy / entry["file"]
    text = path.read_text(encoding="utf-8")
    assert text.count(entry["find"]) == 1, f"{entry['file']}: the text of {entry['promise']!r} does not stand once"
    changed = text.replace(entry["find"], entry["replace"])
    assert changed != text
    compile(changed, entry["file"], "exec")  # a file that no longer parses would fail any test
    path.write_text(changed, encoding="utf-8")
    status, output = run(copy, tmp_path / "run", entry["tests"])
    assert status == pytest.ExitCode.TESTS_FAILED, f"{entry['promise']!r} is not held by its tests:\n{output[-3000:]}"
    assert " failed" in output, f"no test failed, only a set-up did:\n{output[-3000:]}"


def run(tree: Path, scratch: Path, tests: list[str]) -> tuple[int, str]:
    """The exit status and output of a pytest of ``tree`` that stops at the first failure."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    cache = kept.get("PATCHKIT_TEST_CACHE") or str(ROOT / "tests" / "real" / ".cache")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", f"--basetemp={scratch}", *tests],
        cwd=tree,
        # What never ends without its protection is ended soon; the ordinary run, which must pass, has patience.
        env={
            **kept,
            "PYTHONPATH": str(tree),
            "PATCHKIT_TEST_CACHE": cache,
            "CI": "true",
            "PATCHKIT_TEST_PROCESSOR_SECONDS": "20",
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    return done.returncode, done.stdout + done.stderr
