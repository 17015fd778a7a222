"""Fixtures for every room: a site with a small distribution, patch files, and the command line in process."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

from support.bench import Bench

# These machines are noisy: no example has a deadline. CI runs the same examples every time; a developer's run looks
# further, and what it finds becomes a test of its own.
settings.register_profile("here", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.fixture(autouse=True)
def _own_surroundings(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the developer's environment, cache or project."""
    for name in (
        *("PATCHKIT_PYTHON", "PATCHKIT_DEBUG", "PATCHKIT_PROBES", "PATCHKIT_RUN"),
        *("VIRTUAL_ENV", "PYTHONPYCACHEPREFIX", "NO_COLOR"),
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATCHKIT_CACHE", str(tmp_path / "cache"))
    if request.node.get_closest_marker("real") is None:  # what those install may come out of pip's cache
        monkeypatch.setenv("PIP_CACHE_DIR", str(tmp_path / "pip-cache"))


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Bench:
    """A site-packages folder with the distribution ``demo 1.0``, a patches folder, and the command line."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return Bench(tmp_path, lambda: capsys.readouterr())


@pytest.fixture
def make_bench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[dict[str, str | bytes]], Bench]:
    """As ``bench``, with files of the test's own."""

    def make(files: dict[str, str | bytes]) -> Bench:
        work = tmp_path / "work"
        work.mkdir(exist_ok=True)
        monkeypatch.chdir(work)
        return Bench(tmp_path, lambda: capsys.readouterr(), files)

    return make
