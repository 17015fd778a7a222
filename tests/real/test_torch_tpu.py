"""The patches of TorchTPU on its released wheel, whose compiled extensions lie beside the Python that is patched."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.documents import ROOT

FOLDER = ROOT / "examples" / "torch-tpu" / "patches"
NAMES = ("torch-tpu-compile-log", "torch-tpu-without-libtpu")
#: All that torch_tpu asks of torch before it looks for libtpu.
TORCH = '__version__ = "2.13.0"\n'


def unlike_record(site: Path) -> set[str]:
    """The files whose bytes are not those of the wheel's RECORD."""
    (record,) = site.glob("torch_tpu-*.dist-info/RECORD")
    found = set()
    with record.open(newline="", encoding="utf-8") as stream:
        for name, told, _ in csv.reader(stream):
            if told:
                digest = hashlib.sha256((site / name).read_bytes()).digest()
                if told != f"sha256={base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}":
                    found.add(name)
    return found


@pytest.mark.real
@pytest.mark.slow
def test_the_whole_life_on_the_released_wheel(
    tmp_path: Path, wheel: Callable[[str, str], Path], install: Callable[[Path, Path], Path]
) -> None:
    archive = wheel("torch-tpu", "0.2.0")
    site = install(archive, tmp_path / "site")
    extensions = [path for path in site.rglob("*.so") if path.is_file()]
    assert len(extensions) > 50
    stand_ins = tmp_path / "stand-ins"
    stand_ins.mkdir()
    (stand_ins / "torch.py").write_text(TORCH)
    cached = tmp_path / "cache" / "wheels" / "torch-tpu"
    cached.mkdir(parents=True)
    shutil.copy(archive, cached)

    def patchkit(*words: str) -> str:
        command = [sys.executable, "-m", "patchkit", "--site", str(site), "--patches", str(FOLDER), *words]
        environment = {**os.environ, "PATCHKIT_CACHE": str(tmp_path / "cache")}
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def imported(**variables: str) -> tuple[str, str]:
        """What `import torch_tpu` says with a torch and without a libtpu: standard output, and the exception."""
        code = "import torch\ntry:\n import torch_tpu\nexcept Exception as error:\n print(type(error).__name__, error)"
        paths = os.pathsep.join([str(site), str(stand_ins)])
        environment = {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore", **variables}
        command = [sys.executable, "-S", "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        first, _, rest = done.stdout.partition("\n")
        return first, rest

    said = json.loads(patchkit("--json", "matrix", *NAMES, "--versions", "==0.2.0"))
    states = {each["name"]: [row["state"] for row in each["versions"]] for each in said["patches"]}
    assert states == {name: ["applies"] for name in NAMES}

    assert imported()[0] == "libtpu not found."
    patchkit("apply", *NAMES)
    changed = {"torch_tpu/__init__.py", "torch_tpu/_internal/compile/_backend.py"}
    assert unlike_record(site) == changed
    first, rest = imported()
    assert first.startswith("ImportError torch_tpu needs libtpu, which cannot be imported here: install libtpu>=0.0.50")
    assert rest == ""
    # With a library named, it goes on to what torch itself must have, as before.
    assert imported(TPU_LIBRARY_PATH="libtpu.so")[0].startswith("ModuleNotFoundError")

    assert patchkit("check").count("applied") == 2
    patchkit("revert", "--all")
    assert unlike_record(site) == set()
