"""The pytest plugin, in pytest processes of its own, on a site of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.bench import Bench
from support.documents import ROOT

FIX = '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'
TESTS = """\
import pytest


@pytest.mark.patchkit("my-fix")
def test_marked():
    import demo.core
    assert demo.core.double(2) == 4


def test_by_fixture(require_patches):
    require_patches("my-fix")


def test_free():
    pass
"""


@pytest.fixture
def folder(bench: Bench, tmp_path: Path) -> Path:
    bench.patch("my-fix", FIX)
    tests = tmp_path / "suite"
    tests.mkdir()
    (tests / "test_it.py").write_text(TESTS)
    (tests / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    return tests


def run(folder: Path, site: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Start pytest with this plugin named (the checkout need not be installed), and without the environment's own."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "PATCHKIT", "CI"))}
    environment |= {"PYTHONPATH": os.pathsep.join([str(site), str(ROOT)]), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-B", "-m", "pytest", "-p", "patchkit.plugin", "-p", "no:cacheprovider", "-q", *options]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_marker_and_fixture_fail_with_the_way_out_where_the_patch_is_not_applied(folder: Path, bench: Bench) -> None:
    done = run(folder, bench.site)
    assert done.returncode == 1
    assert "1 failed, 1 passed, 1 error" in done.stdout  # a marker is judged before the test, so it is an error
    assert "my-fix" in done.stdout
    assert "hint: " in done.stdout


def test_all_pass_where_it_is(folder: Path, bench: Bench) -> None:
    assert bench("apply", "my-fix").status == 0
    done = run(folder, bench.site, "--patchkit-require", "my-fix")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


def test_nothing_is_collected_without_a_patch_that_was_asked_for(folder: Path, bench: Bench) -> None:
    (folder / "test_it.py").write_text("raise SystemExit('collected')\n")
    done = run(folder, bench.site, "--patchkit-require", "my-fix")
    assert done.returncode == 4  # pytest's own status of wrong use
    assert "collected" not in done.stdout + done.stderr
    assert "patchkit" in done.stderr
    assert "hint: " in done.stderr


def test_the_configuration_asks_as_well(folder: Path, bench: Bench) -> None:
    with (folder / "pytest.ini").open("a") as file:
        file.write("patchkit_require =\n    my-fix\n")
    assert run(folder, bench.site).returncode == 4
    assert bench("apply", "my-fix").status == 0
    assert run(folder, bench.site).returncode == 0


def test_a_run_in_memory_counts(folder: Path, bench: Bench) -> None:
    """What `patchkit run` has in memory is in force there, as for require()."""
    path = os.pathsep.join([str(bench.site), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    words = [sys.executable, "-m", "patchkit", "--site", str(bench.site), "--patches", str(bench.patches)]
    words += ["run", "--with", "my-fix", "--", sys.executable, "-B", "-m", "pytest", "-p", "patchkit.plugin", "-q"]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert "3 passed" in done.stdout, done.stdout + done.stderr
