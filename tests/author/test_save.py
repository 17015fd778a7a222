"""Saving a patch file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.bench import Bench

from patchkit.author.save import check_free, save, saved
from patchkit.errors import SiteError, UsageError

DOUBLE = '[[edit]]\nfile = "demo/core.py"\nfind = "x + x"\nreplace = "2 * x"\n'


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def interrupt(path: Path) -> None:
    assert path.read_bytes() == b"new"
    raise KeyboardInterrupt


def test_what_came_there_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    """The name is looked at long before the file is saved: proving takes time."""
    path = tmp_path / "mine.toml"
    check_free("mine", str(path), overwrite=False)
    path.write_bytes(b"another one's")
    with pytest.raises(UsageError) as caught:
        save(str(path), b"mine", overwrite=False)
    assert caught.value.code == "exists"
    assert path.read_bytes() == b"another one's"
    assert names(tmp_path) == ["mine.toml"]


def test_a_folder_in_the_place_of_a_patch_file(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").mkdir()
    for _ in range(2):
        with pytest.raises(SiteError) as caught:
            save(str(tmp_path / "mine.toml"), b"mine", overwrite=True)
        assert caught.value.code == "unwritable"
    assert names(tmp_path) == ["mine.toml"]


def test_the_folder_is_made_for_a_patch_file_alone(tmp_path: Path) -> None:
    save(str(tmp_path / "a" / "b" / "mine.toml"), b"mine", overwrite=False)
    assert (tmp_path / "a" / "b" / "mine.toml").read_bytes() == b"mine"
    with pytest.raises(SiteError) as caught:
        save(str(tmp_path / "c" / "x.diff"), b"", overwrite=False, hint="name a folder")
    assert (caught.value.code, caught.value.hint) == ("unwritable", "name a folder")
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("overwrite", [True, False])
def test_what_fails_meanwhile_leaves_no_new_file(tmp_path: Path, overwrite: bool) -> None:
    path = tmp_path / "mine.toml"
    with pytest.raises(KeyboardInterrupt), saved(str(path), b"new", overwrite=overwrite):
        interrupt(path)
    assert names(tmp_path) == []
    with saved(str(path), b"new", overwrite=overwrite):
        pass
    assert (names(tmp_path), path.read_bytes()) == (["mine.toml"], b"new")


def test_what_fails_meanwhile_brings_the_old_file_back(tmp_path: Path) -> None:
    path, link = tmp_path / "old.toml", tmp_path / "mine.toml"
    path.write_bytes(b"old")
    link.symlink_to(path)
    with pytest.raises(KeyboardInterrupt), saved(str(link), b"new", overwrite=True):
        interrupt(path)
    assert (path.read_bytes(), link.is_symlink(), names(tmp_path)) == (b"old", True, ["mine.toml", "old.toml"])
    with saved(str(link), b"new", overwrite=True):
        pass
    assert (path.read_bytes(), link.is_symlink(), names(tmp_path)) == (b"new", True, ["mine.toml", "old.toml"])


def test_another_ones_file_is_not_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b"old")
    with pytest.raises(UsageError), saved(str(path), b"new", overwrite=False):
        pass
    assert (path.read_bytes(), names(tmp_path)) == (b"old", ["mine.toml"])


def test_a_diff_goes_where_a_link_leads(bench: Bench) -> None:
    bench.patch("mine", DOUBLE)
    target = bench.root / "target.diff"
    target.write_bytes(b"old")
    link = bench.root / "link.diff"
    link.symlink_to(target)
    assert bench("export", "mine", "--output", str(link)).status == 0
    assert link.is_symlink()
    assert target.read_bytes().startswith(b"diff --git a/demo/core.py b/demo/core.py\n")
    assert bench("export", "mine", "--output", os.devnull).status == 0
    assert not os.path.isfile(os.devnull)


def test_a_diff_is_not_written_over_its_patch(bench: Bench) -> None:
    path = bench.patch("mine", DOUBLE)
    before = path.read_bytes()
    link = bench.root / "link.diff"
    link.symlink_to(path)
    for target in (path, link):
        done = bench.json("export", "mine", "--output", str(target))
        assert (done.status, done.error["code"]) == (2, "usage")
    assert path.read_bytes() == before
