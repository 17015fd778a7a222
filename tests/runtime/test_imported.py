"""``require`` inside a process: is what it imports, or has imported, what patchkit wrote?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from support.bench import Bench

from patchkit.runtime.imported import CLOCK_SECONDS, process_started

ROOT = Path(__file__).parents[2]
DOUBLE = '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'
# A program that imports before the patch is applied, applies it, and asks.
HEAD = """
    import json, subprocess, sys
    sys.path[:0] = [{site!r}, {root!r}]
    import patchkit
    def apply():
        command = [sys.executable, "-m", "patchkit", "--site", {site!r}, "--patches", {patches!r}, "apply", "p"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={{"PYTHONPATH": {root!r}}})
    def ask():
        try:
            patchkit.require("p")
        except patchkit.PatchkitError as error:
            print(json.dumps([*error.details["patches"], error.hint]))
        else:
            print("null")
"""


@pytest.fixture
def ask(bench: Bench) -> Any:
    bench.patch("p", DOUBLE)

    def run(script: str) -> Any:
        paths = {"site": str(bench.site), "root": str(ROOT), "patches": str(bench.patches)}
        text = textwrap.dedent(HEAD).format(**paths) + textwrap.dedent(script)
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, cwd=bench.root / "work")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run


OUTDATED = [
    {
        "name": "p",
        "state": "outdated",
        "reason": "demo.core was imported before demo/core.py was patched: restart the process",
    },
    "restart the process; in a notebook: the kernel",
]


@pytest.mark.parametrize(
    "before",
    [
        "import demo.core",
        "import demo.core; demo.core = None",
        "import functools, demo.core; demo.core.double = functools.wraps(demo.core.double)(lambda x: 0)",
        "import demo.core; demo.core.Holder = type('Holder', (), {'f': property(demo.core.double)});"
        "demo.core.Holder.__module__ = 'demo.core'; del demo.core.double",
    ],
    ids=["plain", "rebound", "decorated", "property"],
)
def test_a_module_that_was_imported_before_the_apply_is_outdated(ask: Any, before: str) -> None:
    assert ask(f"{before}\napply()\nask()") == OUTDATED


@pytest.mark.parametrize(
    "script",
    [
        "apply()\nask()",
        "apply()\nimport demo.core\nask()",
        "import demo.util\napply()\nask()",
        "import importlib, demo.core\napply()\nimportlib.reload(demo.core)\nask()",
        # another loader may give other code on purpose: pytest rewrites assert statements
        "import demo.core\nclass Loader: pass\ndemo.core.__loader__ = Loader()\napply()\nask()",
    ],
    ids=["not imported", "after", "another module", "reloaded", "rewritten"],
)
def test_what_was_imported_from_the_patched_file_is_not(ask: Any, script: str) -> None:
    assert ask(script) is None


def test_another_text_of_the_patch_is_outdated_too(ask: Any, bench: Bench) -> None:
    assert bench("apply", "p").status == 0
    changed = DOUBLE.replace("2 * x", "x * 2").replace('"', '\\"').replace("\n", "\\n")
    script = f"import demo.core\npath = {str(bench.patches / 'p.toml')!r}\ntext = open(path).read()\n"
    script += f'open(path, "w").write(text[: text.index("[[edit]]")] + "{changed}")\n'
    assert ask(script + "apply()\nask()") == OUTDATED


def test_a_compiled_module_beside_the_patched_source_makes_it_inert(ask: Any, bench: Bench) -> None:
    import importlib.machinery

    compiled = bench.site / "demo" / f"core{importlib.machinery.EXTENSION_SUFFIXES[0]}"
    compiled.write_bytes(b"")
    [found, hint] = ask("apply()\nask()")
    assert found["state"] == "inert"
    assert found["reason"] == f"demo/core.py: this process imports {compiled} instead"
    assert "take away what is imported instead" in hint


def test_a_module_of_the_program_s_own_folder_makes_it_inert(ask: Any, bench: Bench) -> None:
    own = bench.root / "own" / "demo"
    own.mkdir(parents=True)
    (own / "__init__.py").write_text("")
    (own / "core.py").write_text("")
    first = f"sys.path.insert(0, {str(own.parent)!r})\n"
    for script in (f"apply()\n{first}ask()", f"apply()\n{first}import demo.core\nsys.path.pop(0)\nask()"):
        [found, _] = ask(script)
        assert (found["state"], str(own / "core.py") in found["reason"]) == ("inert", True)


def test_namespace_packages_and_links_are_looked_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from patchkit.runtime.imported import Imports

    passed_over = Imports().passed_over
    inner = tmp_path / "real" / "spread" / "deep"
    inner.mkdir(parents=True)
    (inner / "mod.py").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "link")])
    assert passed_over("spread/deep/mod.py", str(tmp_path / "real" / "spread" / "deep" / "mod.py")) is None
    assert passed_over("spread/deep/gone.py", str(inner / "gone.py")) is None  # nothing brings it: an import will tell
    assert passed_over("sys.py", str(tmp_path / "sys.py")) is not None
    assert passed_over("data-file.py", str(tmp_path / "data-file.py")) is None


@pytest.mark.skipif(sys.platform != "linux", reason="/proc")
def test_the_start_of_this_process() -> None:
    started = process_started()
    assert started is not None
    age = float(subprocess.run(["ps", "-o", "etimes=", "-p", str(os.getpid())], capture_output=True, text=True).stdout)
    import time

    assert abs(time.time() - age - started) <= CLOCK_SECONDS + 1
