"""Fixtures of the tests on released wheels: the wheels, sites made of them, and an environment that holds jax.

Everything fetched is kept in ``tests/real/.cache`` (or ``$PATCHKIT_TEST_CACHE``) and fetched once.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # hunks, land, released: whatever import mode pytest runs in

from land import Land

JAX = ["jax==0.10.2", "jaxlib==0.10.2", "numpy", "typing_extensions"]  # what tpu-inference 0.24.0 pins


@pytest.fixture(scope="session")
def cache() -> Path:
    """Where fetched things are kept between runs."""
    path = Path(os.environ.get("PATCHKIT_TEST_CACHE") or Path(__file__).parent / ".cache").absolute()
    path.mkdir(parents=True, exist_ok=True)
    return path


def _find(folder: Path, name: str, version: str) -> Path | None:
    wanted = re.sub(r"[-_.]+", "_", name).lower()
    for path in sorted(folder.glob("*.whl")):
        distribution, found = path.name.split("-")[:2]
        if re.sub(r"[-_.]+", "_", distribution).lower() == wanted and found == version:
            return path
    return None


@pytest.fixture(scope="session")
def wheel(cache: Path) -> Callable[[str, str], Path]:
    """``wheel(name, version)``: the released wheel, downloaded by pip on first use; one more try where that fails."""

    def fetch(name: str, version: str) -> Path:
        found = _find(cache, name, version)
        if found:
            return found
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--ignore-requires-python", "--only-binary", ":all:", f"{name}=={version}", "--dest"]
        with tempfile.TemporaryDirectory(dir=cache, prefix="fetch-") as folder:
            for attempt in (1, 2):
                if subprocess.run([*command, folder], check=attempt == 2).returncode == 0:
                    break
            fetched = _find(Path(folder), name, version)
            assert fetched, f"pip downloaded no wheel of {name} {version}"
            fetched.replace(cache / fetched.name)
        return cache / fetched.name

    return fetch


@pytest.fixture(scope="session")
def install() -> Callable[[Path, Path], Path]:
    """``install(wheel, site)``: unpack a wheel as its RECORD says and return the site; made where it is missing."""

    def unpack(archive: Path, site: Path) -> Path:
        site.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(archive) as stream:
            stream.extractall(site)
        return site

    return unpack


@pytest.fixture(scope="session")
def jax_python(cache: Path) -> Path:
    """An interpreter with jax and numpy and nothing of vllm (about 600 MB, fetched once)."""
    home = cache / "jax-venv"
    python = home / "bin" / "python"
    if not python.exists():
        building = Path(tempfile.mkdtemp(dir=cache, prefix="jax-venv-"))
        venv.create(building, with_pip=True)
        command = [building / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *JAX]
        for attempt in (1, 2):
            if subprocess.run(command, check=attempt == 2).returncode == 0:
                break
        try:
            building.rename(home)
        except OSError:  # another worker was faster
            shutil.rmtree(building)
    return python


@pytest.fixture
def land(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Land:
    """Environments, their cache and a project below a temporary folder, which is the working directory."""
    found = Land(tmp_path, lambda: capsys.readouterr())
    monkeypatch.chdir(found.work)
    monkeypatch.setenv("UV_CACHE_DIR", str(found.cache))
    return found
