"""The examples of everyday packages: applied to the releases that they name, run there, and taken back."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.documents import ROOT

pytestmark = [pytest.mark.real, pytest.mark.slow]
FOLDER = ROOT / "examples" / "everyday"


def environment(tmp_path: Path, *requirements: str) -> Path:
    uv = str(Path(sys.executable).with_name("uv"))
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, str(tmp_path / "env")], check=True)
    python = tmp_path / "env" / "bin" / "python"
    subprocess.run([uv, "pip", "install", "-q", "--python", str(python), *requirements], check=True)
    return python


def patchkit(python: Path, *words: str) -> str:
    command = [sys.executable, "-m", "patchkit", "--python", str(python), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run(python: Path, code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(python), "-W", "always", "-c", code], capture_output=True, text=True, check=False)


def test_paramiko_warns_until_it_is_patched_and_offers_the_same_ciphers(tmp_path: Path) -> None:
    python = environment(tmp_path, "paramiko==3.4.0", "cryptography==45.0.7")
    code = "import paramiko; print(paramiko.Transport._preferred_ciphers, sorted(paramiko.Transport._cipher_info))"
    before = run(python, code)
    assert "TripleDES" in before.stderr
    patchkit(python, "apply", str(FOLDER / "paramiko-triple-des.toml"))
    after = run(python, code)
    assert "TripleDES" not in after.stderr
    assert after.stdout == before.stdout != ""
    assert "applied" in patchkit(python, "check")
    patchkit(python, "revert", "--all")
    assert "TripleDES" in run(python, code).stderr


def test_the_releases_that_have_the_change_are_left_alone(tmp_path: Path) -> None:
    python = environment(tmp_path, "paramiko==3.4.1")
    assert "upstreamed" in patchkit(python, "apply", str(FOLDER / "paramiko-triple-des.toml"))


def test_flask_restplus_imports_with_a_new_werkzeug(tmp_path: Path) -> None:
    # Flask 2.0 is the last that has what flask-restplus imports of it.
    wanted = ("flask-restplus==0.13.0", "flask==1.1.4", "werkzeug==1.0.1", "markupsafe==2.0.1", "setuptools<80")
    python = environment(tmp_path, *wanted)
    assert "cached_property" in run(python, "import flask_restplus").stderr
    patchkit(python, "apply", str(FOLDER / "flask-restplus-werkzeug.toml"))
    done = run(python, "import flask_restplus; print('imported')")
    assert done.stdout == "imported\n", done.stderr


@pytest.mark.parametrize(
    ("name", "versions", "states"),
    [
        ("flask-restplus-werkzeug", ">=0.12.0", {"0.13.0": "applies", "0.12.0": "fails"}),
        ("paramiko-triple-des", ">=3.3.1,<3.5", {"3.4.1": "upstreamed", "3.4.0": "applies", "3.3.2": "upstreamed"}),
        ("easyocr-pillow", "==1.7.0", {"1.7.0": "applies"}),
    ],
)
def test_the_releases_are_those_that_the_readme_tells(name: str, versions: str, states: dict[str, str]) -> None:
    command = [sys.executable, "-m", "patchkit", "--patches", str(FOLDER), "--json"]
    command += ["matrix", name, "--versions", versions]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    (column,) = json.loads(done.stdout)["patches"]
    found = {row["version"]: row["state"] for row in column["versions"]}
    assert {version: found.get(version) for version in states} == states
    assert {path.stem for path in FOLDER.glob("*.toml")} >= {name}
