"""Wheels in pip's cache: where it is, what is taken out of it, and what somebody may have put there."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import zipfile
from pathlib import Path

import pytest
from support.dists import make_dist, make_wheel

from patchkit.site import pipcache
from patchkit.site.distribution import Distribution
from patchkit.site.environment import resolve
from patchkit.site.pipcache import PipCache, pip_cache

CODE = b"X = 1\n" * 200
FILES: dict[str, str | bytes] = {"my_pkg/a.py": CODE}
ADDRESS = hashlib.sha224(b"an address").hexdigest()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "pip"
    monkeypatch.setenv("PIP_CACHE_DIR", str(folder))
    return folder


@pytest.fixture
def installed(tmp_path: Path) -> Distribution:
    make_dist(tmp_path / "site", "My.Pkg", "1.0", FILES, dist_info="My_Pkg-1.0.dist-info")
    found = resolve(directory=str(tmp_path / "site")).find("my-pkg")
    assert found is not None
    return found


def look(installed: Distribution, path: str = "my_pkg/a.py", data: bytes = CODE, largest: int = len(CODE)) -> bool:
    """Whether the file is found, and is ``data``."""
    found = PipCache(installed, print).find(path, lambda one: one == data, largest)
    assert found in (None, data)
    return found is not None


def built(tmp_path: Path, files: dict[str, str | bytes] | None = None) -> bytes:
    """A wheel's bytes."""
    return make_wheel(tmp_path / "built", "My.Pkg", "1.0", files or FILES).read_bytes()


def body(cache: Path, data: bytes, name: str = ADDRESS, *, age: int = 0) -> Path:
    """A response's body, as pip keeps it."""
    path = cache / "http-v2" / "a" / "b" / f"{name}.body"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))
    return path


def test_a_download(cache: Path, installed: Distribution, tmp_path: Path) -> None:
    assert not look(installed)
    body(cache, b'{"name": "my-pkg"}', "00")
    body(cache, built(tmp_path))
    assert look(installed)


def test_a_download_of_an_older_pip(cache: Path, installed: Distribution, tmp_path: Path) -> None:
    """A serialised response: something before the body, and something behind it."""
    path = cache / "http" / "a" / ADDRESS
    path.parent.mkdir(parents=True)
    path.write_bytes(b"cc=4,\x82\xa8response\x86\xa4body\xc5\x01\x00" + built(tmp_path) + b"\xa7headers\x83\xa4Date")
    assert look(installed)


def test_a_wheel_that_pip_built(cache: Path, installed: Distribution, tmp_path: Path) -> None:
    folder = cache / "wheels" / "01" / "02" / "03"
    make_wheel(folder, "other", "1.0", {"other.py": "X = 1\n"})
    make_wheel(folder, "My.Pkg", "2.0", FILES)
    assert not look(installed)
    make_wheel(folder, "My.Pkg", "1.0", FILES)
    assert look(installed)


def test_a_file_in_the_data_folder_of_a_wheel(cache: Path, installed: Distribution, tmp_path: Path) -> None:
    body(cache, built(tmp_path, {"My_Pkg-1.0.data/platlib/my_pkg/a.py": CODE}))
    assert look(installed)
    assert not look(installed, "my_pkg/b.py")


def test_the_newest_that_is_genuine(cache: Path, installed: Distribution, tmp_path: Path) -> None:
    """Builds of one release differ: each is looked into, the newest first, until one is what was installed."""
    body(cache, built(tmp_path), "00", age=9)
    body(cache, built(tmp_path, {"my_pkg/a.py": CODE.replace(b"1", b"2")}), "11", age=5)
    body(cache, b"PK\x03\x04", "22", age=1)
    body(cache, b"", "33", age=20)
    pip = PipCache(installed, print)
    assert pip.find("my_pkg/a.py", lambda data: data == CODE, len(CODE)) == CODE
    assert (pip.seen, pip.wheels) == (3, 2)  # the oldest was not needed
    assert pip.find("my_pkg/a.py", lambda data: data == CODE, len(CODE)) == CODE
    assert pip.seen == 3
    assert pip.find("my_pkg/b.py", lambda data: True, 99) is None
    assert pip.seen == 4


def test_a_cache_with_too_many_files(
    cache: Path, installed: Distribution, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The newest are looked into, and how far it is, is said."""
    monkeypatch.setattr(pipcache, "MOST_FILES", 2)
    monkeypatch.setattr(pipcache, "_QUIET", -1.0)
    body(cache, built(tmp_path), "00", age=9)
    body(cache, b"", "11", age=5)
    body(cache, b"", "22", age=1)
    said: list[str] = []
    pip = PipCache(installed, said.append)
    assert pip.find("my_pkg/a.py", lambda data: True, len(CODE)) is None
    assert (pip.seen, pip.more) == (2, 1)
    assert said == [f"looking for my-pkg 1.0 in pip's cache, {number} of 3" for number in (0, 1)]
    monkeypatch.setattr(pipcache, "MOST_ENTRIES", 0)
    pip = PipCache(installed, said.append)
    assert pip.find("my_pkg/a.py", lambda data: True, len(CODE)) is None
    assert pip.seen == 0


@pytest.mark.parametrize("size", [0, 3, 30, 200, -1, -22, -100])
def test_a_truncated_download(cache: Path, installed: Distribution, tmp_path: Path, size: int) -> None:
    body(cache, built(tmp_path)[:size])
    assert not look(installed)


@pytest.mark.parametrize("at", [-10, -6])
@pytest.mark.parametrize("value", [b"\xff\xff\xff\xff", b"\x00\x00\x00\x7f"])
def test_a_central_directory_that_cannot_be(
    cache: Path, installed: Distribution, tmp_path: Path, at: int, value: bytes
) -> None:
    """Its size (10 bytes before the end) and where it begins (6 bytes)."""
    data = built(tmp_path)
    body(cache, data[:at] + value + data[len(data) + at + 4 :])
    assert not look(installed)


def test_what_unpacks_to_more_than_was_installed(cache: Path, installed: Distribution, tmp_path: Path) -> None:
    path = body(cache, b"")
    info = os.path.basename(installed.info)

    def write(data: bytes, packing: int) -> None:
        with zipfile.ZipFile(path, "w", packing) as archive:
            archive.writestr("my_pkg/a.py", data)
            archive.writestr(f"{info}/RECORD", b"")

    write(CODE, zipfile.ZIP_DEFLATED)
    assert look(installed)
    write(CODE, zipfile.ZIP_LZMA)  # its unpacking cannot be bounded
    assert not look(installed)
    write(bytes(50_000_000), zipfile.ZIP_DEFLATED)
    assert not look(installed, data=bytes(50_000_000))
    # The same, said to be small.
    lying = path.read_bytes().replace((50_000_000).to_bytes(4, "little"), len(CODE).to_bytes(4, "little"))
    path.write_bytes(lying)
    assert not look(installed, data=bytes(50_000_000))


def test_what_is_no_file_is_not_opened(cache: Path, installed: Distribution, tmp_path: Path) -> None:
    """Links are not followed, nor is a pipe waited for."""
    real = make_wheel(tmp_path / "elsewhere", "My.Pkg", "1.0", FILES)
    wheels = cache / "wheels"
    wheels.mkdir(parents=True)
    (wheels / "more").symlink_to(real.parent, target_is_directory=True)
    (wheels / real.name).symlink_to(real)
    if hasattr(os, "mkfifo"):
        os.mkfifo(wheels / "my_pkg-1.0-py2-none-any.whl")
    assert not look(installed)
    shutil.copy(real, wheels / "my_pkg-1.0-py3-none-linux.whl")
    assert look(installed)


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="the folder of another platform")
def test_where_it_is(tmp_path: Path) -> None:
    home = os.path.expanduser("~")
    assert pip_cache({}) == f"{home}/.cache/pip"
    assert pip_cache({"XDG_CACHE_HOME": "/x"}) == "/x/pip"
    assert pip_cache({"XDG_CACHE_HOME": "/x", "PIP_CACHE_DIR": "~/y"}) == f"{home}/y"
