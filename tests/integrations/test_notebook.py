"""The example notebook, cell by cell, in a kernel of an environment that has what a hosted notebook has."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from support.documents import ROOT

pytestmark = [pytest.mark.real, pytest.mark.slow]
HERE = ROOT / "examples" / "notebook"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the example, and a kernel of its own named ``python3``."""
    shutil.copytree(HERE, tmp_path / "notebook")
    uv = str(Path(sys.executable).with_name("uv"))
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, "kernel"], cwd=tmp_path, check=True)
    python = tmp_path / "kernel" / "bin" / "python"
    words = [uv, "pip", "install", "-q", "--python", str(python), "ipykernel", "idna==3.10"]
    subprocess.run(words, cwd=tmp_path, check=True)
    words = [str(python), "-m", "ipykernel", "install", "--prefix", str(tmp_path / "jupyter"), "--name", "python3"]
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter" / "share" / "jupyter"))
    monkeypatch.setenv("PATCHKIT_SOURCE", str(ROOT))
    for name in ("PATCHKIT_PYTHON", "VIRTUAL_ENV", "PYTHONPATH"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "notebook"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_every_cell_of_the_notebook_runs(folder: Path) -> None:
    notebook = nbformat.read(folder / "patchkit.ipynb", as_version=4)
    nbformat.validate(notebook)
    client = NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
    client.execute()
    said = ["".join(str(output.get("text", "")) for output in cell.get("outputs", [])) for cell in notebook.cells]
    assert any("applied idna-cache" in text for text in said)
    assert any("PASS (improved): idna-cache" in text for text in said)
    assert "outdated" in said[-1]
    assert "restart" in said[-1]
    assert any("_lru_cache_wrapper" in text and "in memory" in text for text in said)
    (report,) = [
        output["data"]["text/markdown"]
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "text/markdown" in output.get("data", {})
    ]
    assert "PASS" in report


def test_the_notebook_is_kept_without_outputs() -> None:
    notebook = nbformat.read(HERE / "patchkit.ipynb", as_version=4)
    assert [cell for cell in notebook.cells if cell.get("outputs") or cell.get("execution_count")] == []
