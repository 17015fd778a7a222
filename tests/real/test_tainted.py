"""A package cache that somebody wrote through: called tainted by name, with the cure, and never taken for pristine."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from land import FILES, NEW, OLD, PATCHED, Land

pytestmark = pytest.mark.real

TAINTED = OLD + b"# written through\n"


def taint(land: Land, data: bytes) -> Path:
    """Write to the cache's copy, as ``echo >>`` through a link does; its path."""
    [copy] = land.cache.glob("archive-v*/*/demo/core.py")
    with copy.open("r+b") as file:  # the same inode
        file.write(data)
        file.truncate()
    return copy


def words(land: Land, python: Path, *arguments: str) -> tuple[int, str]:
    run = land(python, *arguments)
    return run.status, " ".join((run.out + run.err).split())


@pytest.mark.parametrize("known", [False, True], ids=["never-patched", "patched-before"])
@pytest.mark.parametrize("mode", ["hardlink", "symlink", "copy"])
def test_other_bytes_in_the_cache(land: Land, mode: str, known: bool) -> None:
    python = land.env()
    land.uv_install(python, mode)
    if known:
        assert land(python, "apply", "swap").status == 0
    copy = taint(land, TAINTED)
    land.uv_install(python, mode, "--reinstall")
    file = land.site("env") / "demo/core.py"
    assert file.read_bytes() == TAINTED
    again = f"uv pip install --python {python} --reinstall --no-deps demo==1.0"
    for command, status in (
        ("check swap", 1),
        ("apply swap", 5),
        ("apply swap --dry-run", 5),
        ("list", 0),
        ("doctor", 1),
    ):
        code, said = words(land, python, *command.split())
        assert code == status, (command, said)
        for word in ("tainted", "demo/core.py", str(copy), "`uv cache clean demo`", f"`{again}`"):
            assert word in said, (command, word, said)
    assert land(python, "--json", "apply", "swap").error["code"] == "tainted"
    [state] = land(python, "--json", "check", "swap").json["patches"]
    assert (state["state"], state["reason"].startswith("tainted: demo/core.py")) == ("modified", True)
    land.want("swap")
    code, said = words(land, python, "sync")
    assert (code, "tainted: demo/core.py" in said) == (5, True)
    assert (file.read_bytes(), copy.read_bytes()) == (TAINTED, TAINTED)
    # The cure, as it stands, but for the index: then all is well.
    land.uv("cache", "clean", "demo")
    options = [part for part in shlex.split(again)[5:] if part != "demo==1.0"]
    land.uv_install(python, mode, *options)
    assert land(python, "sync").status == 0
    assert land(python, "check").status == 0
    assert file.read_bytes() == NEW
    assert land(python, "revert", "swap").status == 0
    assert file.read_bytes() == OLD


@pytest.mark.parametrize("known", [False, True], ids=["never-patched", "patched-before"])
@pytest.mark.parametrize("mode", ["hardlink", "symlink", "copy"])
def test_our_own_bytes_in_the_cache(land: Land, mode: str, known: bool) -> None:
    """Another tool wrote just what the patch writes, through the link."""
    python = land.env()
    land.uv_install(python, mode)
    if known:
        assert land(python, "apply", "swap").status == 0
    copy = taint(land, NEW)
    land.uv_install(python, mode, "--reinstall")
    file = land.site("env") / "demo/core.py"
    assert file.read_bytes() == NEW
    if not known:
        code, said = words(land, python, "check", "swap")
        assert (code, "tainted: demo/core.py" in said, str(copy) in said) == (1, True, True)
    code, said = words(land, python, "doctor")
    assert (code, "tainted: demo/core.py" in said, "`uv cache clean demo`" in said) == (1, True, True)
    code, said = words(land, python, "apply", "swap")
    assert code == 0  # the patch's text edits undone are what RECORD says
    if not known or mode != "copy":  # patchkit never makes links, so these are seen at once
        assert "tainted: demo/core.py" in said
    assert land(python, "revert", "--all").status == 0
    # Pristine is what RECORD says, not what the cache says; and the cache is as it was.
    held = {path: (land.site("env") / path).read_bytes() for path in PATCHED}
    assert held == {path: FILES[path] for path in PATCHED}
    assert copy.read_bytes() == NEW
    if mode == "symlink":
        assert not file.is_symlink()  # linked again only to what holds the pristine bytes


def test_a_twin_that_is_patched_is_not_tainted(land: Land) -> None:
    python = land.env()
    land.uv_install(python, "copy")
    assert land(python, "apply", "swap").status == 0
    os.link(land.site("env") / "demo/core.py", land.land / "elsewhere" / "twin.py")
    assert "tainted" not in words(land, python, "check")[1]
    assert "tainted" not in words(land, python, "doctor")[1]


def test_a_file_edited_in_place_through_a_hard_link_from_an_unknown_cache(
    land: Land, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = land.env()
    land.uv_install(python, "hardlink")
    taint(land, TAINTED)
    monkeypatch.setenv("UV_CACHE_DIR", str(land.land / "another-cache"))
    code, said = words(land, python, "apply", "swap")
    assert (code, "is tainted" in said, "1 other name (hard links)" in said) == (5, True, True), said


def test_an_edit_that_the_cache_does_not_have_is_only_modified(land: Land) -> None:
    """As ``sed -i`` and most editors: another inode in the place of the link."""
    python = land.env()
    land.uv_install(python, "hardlink")
    file = land.site("env") / "demo/core.py"
    subprocess.run(["sed", "-i", "s/old/own/", str(file)], check=True)
    run = land(python, "--json", "apply", "swap")
    assert (run.status, run.error["code"]) == (5, "modified")
    assert "tainted" not in words(land, python, "doctor")[1]


def test_fetching_the_release_does_not_hide_a_taint(land: Land, monkeypatch: pytest.MonkeyPatch) -> None:
    python = land.env()
    land.uv_install(python, "hardlink")
    taint(land, TAINTED)
    monkeypatch.setattr("patchkit.site.wheel.fetch_wheel", lambda *arguments, **options: str(land.wheel))
    run = land(python, "--json", "apply", "swap", "--fetch")
    assert (run.status, run.error["code"]) == (5, "tainted")
    assert (land.site("env") / "demo/core.py").read_bytes() == TAINTED
