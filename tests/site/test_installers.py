"""What pip and uv really write, read back."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.dists import make_wheel

from patchkit.site.distribution import Distribution
from patchkit.site.environment import resolve
from patchkit.site.paths import resolve_file

FILES: dict[str, str | bytes] = {
    "odd_pkg/__init__.py": "",
    "odd_pkg/windows.py": "x = 1\r\ny = 2\r\n",
    "odd_pkg/naïve/日本.py": "z = 3\n",
    "odd_pkg/E=8,N=128.json": "{}",
    "odd_pkg-1!1.2.6.post0.data/scripts/odd-tool": "#!python\n",
}


def _uv() -> str | None:
    beside = Path(sys.executable).with_name("uv")
    return str(beside) if beside.exists() else shutil.which("uv")


def _check(found: Distribution | None, installer: str) -> None:
    assert found is not None
    assert (found.name, found.version, found.kind) == ("odd.pkg", "1!1.2.6.post0", "wheel")
    assert (Path(found.info) / "INSTALLER").read_text().strip() == installer
    assert not found.editable
    for path in ("odd_pkg/windows.py", "odd_pkg/naïve/日本.py", "odd_pkg/E=8,N=128.json"):
        resolved = resolve_file(found, path)
        assert resolved.entry is not None
        assert resolved.entry.matches(Path(resolved.absolute).read_bytes()) is True
    assert found.record.files() == sorted(
        ["odd_pkg/__init__.py", "odd_pkg/windows.py", "odd_pkg/naïve/日本.py"], key=found.record.paths().index
    )


@pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="there is no pip beside pytest")
def test_pip_target(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "wheels", "odd.pkg", "1!1.2.6.post0", FILES)
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--disable-pip-version-check"]
    subprocess.run([*command, "--target", str(tmp_path / "target"), str(wheel)], check=True, capture_output=True)
    site = resolve(directory=str(tmp_path / "target"), environ={})
    assert site.interpreter is None
    _check(site.find("odd-pkg"), "pip")


@pytest.mark.parametrize("mode", ["hardlink", "symlink", "copy"])
def test_uv_in_a_virtual_environment(tmp_path: Path, mode: str) -> None:
    uv = _uv()
    if uv is None:
        pytest.skip("there is no uv")
    root = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root)], check=True)
    site = resolve(python=str(root), environ={})
    assert site.interpreter is not None
    wheel = make_wheel(tmp_path / "wheels", "odd.pkg", "1!1.2.6.post0", FILES)
    command = [uv, "pip", "install", "-q", "--offline", "--no-deps", "--link-mode", mode]
    subprocess.run(
        [*command, "--python", site.interpreter.executable, str(wheel)],
        check=True,
        capture_output=True,
        env={**os.environ, "UV_CACHE_DIR": str(tmp_path / "uv"), "UV_LINK_MODE": mode},
    )
    found = site.find("Odd_Pkg")
    _check(found, "uv")
    assert found is not None
    resolved = resolve_file(found, "odd_pkg/windows.py")
    assert Path(resolved.absolute).is_symlink() is (mode == "symlink")
    assert resolved.key == "odd_pkg/windows.py"
    assert "../../../bin/odd-tool" in found.record.paths() or sys.platform == "win32"
