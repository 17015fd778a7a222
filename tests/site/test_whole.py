"""One file, wholly or not at all."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from patchkit.site import whole
from patchkit.site.whole import keep_aside, write_whole


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(params=["links", "no links"])
def _linking(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a file system with hard links, and as on one without."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    if request.param == "no links":
        monkeypatch.setattr(os, "link", refuse)


@pytest.mark.usefixtures("_linking")
@pytest.mark.parametrize("overwrite", [True, False])
def test_a_new_file(tmp_path: Path, overwrite: bool) -> None:
    path = tmp_path / "a"
    write_whole(str(path), b"new", overwrite=overwrite)
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["a"]
    os.umask(mask := os.umask(0o077))
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


@pytest.mark.usefixtures("_linking")
def test_nothing_is_replaced_unasked(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "b").symlink_to("nothing")
    for name in ("a", "b"):
        with pytest.raises(FileExistsError):
            write_whole(str(tmp_path / name), b"new", overwrite=False)
    assert (tmp_path / "a").read_bytes() == b"old"
    assert names(tmp_path) == ["a", "b"]


def test_what_is_replaced_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o640)
    write_whole(str(path), b"new", overwrite=True)
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", 0o640)
    assert names(tmp_path) == ["a"]


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" / "target"
    target.write_bytes(b"old")
    (tmp_path / "a").symlink_to(target)
    write_whole(str(tmp_path / "a"), b"new", overwrite=True)
    assert (tmp_path / "a").is_symlink()
    assert target.read_bytes() == b"new"
    assert names(tmp_path / "folder") == ["target"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_stays_one(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_whole(str(path), b"new", overwrite=True)
        assert os.read(reader, 10) == b"new"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert names(tmp_path) == ["pipe"]


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_folder_in_its_place(tmp_path: Path, overwrite: bool) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(OSError, match=r"directory|exists|denied"):
        write_whole(str(tmp_path / "a"), b"new", overwrite=overwrite)
    assert names(tmp_path) == ["a"]


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "a").write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", full)
    for overwrite in (True, False):
        with pytest.raises(OSError, match="No space"):
            write_whole(str(tmp_path / "a"), b"new", overwrite=overwrite)
    assert (tmp_path / "a").read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_the_file_and_its_folder_are_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: flushed.append(os.fstat(descriptor).st_ino))
    write_whole(str(tmp_path / "a"), b"new", overwrite=False)
    assert flushed == [(tmp_path / "a").stat().st_ino, *([] if os.name == "nt" else [tmp_path.stat().st_ino])]
    flushed.clear()
    write_whole(str(tmp_path / "b"), b"new", overwrite=False, durable=False)
    assert flushed == []


@pytest.mark.usefixtures("_linking")
def test_what_is_kept_aside_outlives_a_replacement(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"old")
    kept = keep_aside(str(path))
    write_whole(str(path), b"new", overwrite=True)
    assert Path(kept).read_bytes() == b"old"
    assert os.path.dirname(kept) == str(tmp_path)


def test_two_names_beside_a_file_differ(tmp_path: Path) -> None:
    assert whole.beside(str(tmp_path / "a")) != whole.beside(str(tmp_path / "a"))
