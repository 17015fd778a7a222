"""``try``, on a wheel from a folder that stands for the package index."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from pathlib import Path

import pytest
from support.bench import CORE, Bench
from support.dists import make_wheel

from patchkit.errors import SiteError
from patchkit.ops import trial
from patchkit.ops.trial import run_trial

DOUBLE = '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'

needs_pip = pytest.mark.skipif(
    importlib.util.find_spec("pip") is None or os.name == "nt", reason="there is no pip beside pytest"
)


@needs_pip
def test_without_a_pip_of_its_own_the_one_on_the_path_serves(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where patchkit was installed with ``uv tool``; nothing is left behind but the wheel."""
    wheel = make_wheel(tmp_path / "index", "demo", "1.0", {"demo/__init__.py": "", "demo/core.py": CORE})
    for name, value in {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(tmp_path / "index"),
        "PIP_CONFIG_FILE": os.devnull,
        "HOME": str(tmp_path / "home"),
        "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "pip").write_text(f'#!/bin/sh\nexec {sys.executable} -m pip "$@"\n')
    (tmp_path / "bin" / "pip").chmod(0o755)
    (tmp_path / "temp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temp"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "executable", _without_pip(sys.executable, tmp_path))
    patch = bench.patch("double", DOUBLE)

    from patchkit.model.load import load_patch

    done = run_trial(load_patch(str(patch)), progress=lambda text: None, report=lambda step: None)
    assert (done.version, done.proof.compared > 0, done.proof.differing, done.folder) == ("1.0", True, (), None)
    cached = sorted(path.name for path in (tmp_path / "cache").rglob("*") if path.is_file())
    assert cached == [wheel.name, f"{wheel.name}.sha256"]
    assert not (tmp_path / "home" / ".cache" / "patchkit").exists()
    assert list((tmp_path / "temp").iterdir()) == []


@needs_pip
def test_a_file_that_is_taken_away(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_wheel(tmp_path / "index", "demo", "1.0", {"demo/__init__.py": "", "demo/core.py": CORE, "demo/old.py": ""})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    patch = bench.patch("gone", f'{DOUBLE}[[remove]]\nfile = "demo/old.py"\n')

    from patchkit.model.load import load_patch

    steps: list[trial.Step] = []
    done = run_trial(load_patch(str(patch)), progress=lambda text: None, report=steps.append)
    assert done.proof.differing == ()
    assert "1 place in 1 file, found as often as the patch says; 1 file taken away" in [one.result for one in steps]


def _without_pip(python: str, tmp_path: Path) -> str:
    """An interpreter that makes environments and knows no pip."""
    script = tmp_path / "python"
    script.write_text(
        f'#!/bin/sh\n[ "$2" = pip ] && {{ echo "No module named pip" >&2; exit 1; }}\nexec {python} "$@"\n'
    )
    script.chmod(0o755)
    return str(script)


@pytest.mark.skipif(os.name == "nt", reason="the stand-in is a shell script")
def test_a_step_that_hangs_or_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for script, patience, told in (
        ("sleep 60", 0.2, "did not end in time"),
        ("echo bad >&2; exit 3", 60.0, "status 3; it said: bad"),
    ):
        monkeypatch.setattr(trial, "PATIENCE", patience)
        command = tmp_path / "tool"
        command.write_text(f"#!/bin/sh\n{script}\n")
        command.chmod(0o755)
        with pytest.raises(SiteError, match=f"tool: .*{told}") as caught:
            trial._run([str(command)])
        assert caught.value.code == "install"
    with pytest.raises(SiteError, match="cannot be run"):
        trial._run([str(tmp_path / "nothing")])
