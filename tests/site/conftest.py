from __future__ import annotations

from pathlib import Path

import pytest
from support.sites import bare_site

from patchkit.site.environment import Site


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    folder = tmp_path / "env" / "lib" / "python3.12" / "site-packages"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def site(packages: Path) -> Site:
    return bare_site(packages)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATCHKIT_CACHE", str(tmp_path / "cache"))
    for name in ("PATCHKIT_PYTHON", "VIRTUAL_ENV", "PYTHONNOUSERSITE", "PYTHONUSERBASE", "PYTHONPYCACHEPREFIX"):
        monkeypatch.delenv(name, raising=False)
