"""Where wrong bytes come from, with a cache laid out as uv does (the real uv: tests/real/test_tainted.py)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.dists import make_dist
from support.sites import bare_site

from patchkit.site.distribution import Distribution, find_distribution, misnamed
from patchkit.site.environment import Site
from patchkit.site.interpreter import own
from patchkit.site.taint import find_taint, uv_cache

WRONG = b"x = 2\n"


def install(folder: Path, installer: str) -> Distribution:
    make_dist(folder, "demo", "1.0", {"demo/a.py": b"x = 1\n"}, installer=installer)
    (folder / "demo/a.py").write_bytes(WRONG)
    found = find_distribution(bare_site(folder), "demo")
    assert found is not None
    return found


def cached(cache: Path, version: str, data: bytes) -> Path:
    """One unpacked wheel of uv's cache; the file in it."""
    wheel = cache / "archive-v0" / f"id{version}"
    (wheel / f"demo-{version}.dist-info").mkdir(parents=True)
    (wheel / "demo").mkdir()
    (wheel / "demo/a.py").write_bytes(data)
    return wheel / "demo/a.py"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    return tmp_path / "uv"


def test_where_uv_keeps_its_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("UV_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert uv_cache() == str(tmp_path / ".cache" / "uv")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert uv_cache() == str(tmp_path / "xdg" / "uv")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "own"))
    assert uv_cache() == str(tmp_path / "own")


def test_the_same_bytes_in_the_cache(tmp_path: Path, cache: Path) -> None:
    distribution, file = install(tmp_path / "site", "uv"), str(tmp_path / "site/demo/a.py")
    assert find_taint(distribution, "demo/a.py", file) is None  # there is no cache
    genuine = cached(cache, "1.0", b"x = 1\n")
    cached(cache, "2.0", WRONG)
    assert find_taint(distribution, "demo/a.py", file) is None  # other bytes, and another version
    genuine.write_bytes(WRONG)
    found = find_taint(distribution, "demo/a.py", file)
    assert found is not None
    assert found.source == str(genuine)
    assert "holds the same bytes" in found.evidence
    assert "`uv cache clean demo`" in found.cure


def test_pip_links_nothing_out_of_its_cache(tmp_path: Path, cache: Path) -> None:
    distribution, file = install(tmp_path / "site", "pip"), tmp_path / "site/demo/a.py"
    cached(cache, "1.0", WRONG)
    assert find_taint(distribution, "demo/a.py", str(file)) is None
    os.link(file, tmp_path / "twin.py")
    found = find_taint(distribution, "demo/a.py", str(file))
    assert found is not None
    assert "1 other name (hard links)" in found.evidence
    assert find_taint(distribution, "demo/a.py", str(file), lone=False) is None
    file.unlink()
    file.symlink_to(tmp_path / "twin.py")
    found = find_taint(distribution, "demo/a.py", str(file))
    assert found is not None
    assert (found.source, "uv" in found.cure) == (str(tmp_path / "twin.py"), False)


def test_the_first_word_of_installer_counts(tmp_path: Path, cache: Path) -> None:
    """As for the commands of hints: some installers write their version behind it."""
    distribution, file = install(tmp_path / "site", "uv 0.9.1"), str(tmp_path / "site/demo/a.py")
    copy = cached(cache, "1.0", WRONG)
    found = find_taint(distribution, "demo/a.py", file)
    assert found is not None
    assert (found.source, "`uv cache clean demo`" in found.cure) == (str(copy), True)
    assert " --no-cache" not in found.cure


def test_what_lacks_its_metadata_is_installed_again_by_the_sites_own_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with every other hint for the user's site directory, which no layout tells the interpreter of."""
    monkeypatch.setattr("site.getuserbase", lambda: str(tmp_path))
    home = tmp_path / "lib" / "python3.11" / "site-packages"
    (home / "demo-1.0.dist-info").mkdir(parents=True)
    site = Site(home=str(home), paths=[str(home)], interpreter=own(), python_version=None, label="")
    found = misnamed(site, "demo")
    assert found is not None
    assert f"`{own().executable} -m pip install --user " in found.cure
