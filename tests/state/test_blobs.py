from __future__ import annotations

import hashlib
import stat
from pathlib import Path

import pytest

from patchkit.errors import SiteError
from patchkit.state import blobs


def test_put_and_get(tmp_path: Path) -> None:
    home = str(tmp_path)
    name = blobs.put(home, b"bytes")
    assert name == hashlib.sha256(b"bytes").hexdigest()
    assert (tmp_path / ".patchkit" / "blobs" / name).read_bytes() == b"bytes"
    assert blobs.put(home, b"bytes") == name
    assert blobs.get(home, name) == b"bytes"
    assert blobs.has(home, name)
    assert blobs.get(home, blobs.put(home, b"")) == b""


def test_private_bytes_stay_private(tmp_path: Path) -> None:
    name = blobs.put(str(tmp_path), b"secret", mode=0o600)
    assert stat.S_IMODE((tmp_path / ".patchkit" / "blobs" / name).stat().st_mode) == 0o600


def test_a_damaged_blob_is_refused_and_healed_by_the_next_put(tmp_path: Path) -> None:
    home = str(tmp_path)
    name = blobs.put(home, b"bytes")
    path = tmp_path / ".patchkit" / "blobs" / name
    path.write_bytes(b"bytez")
    with pytest.raises(SiteError, match="damaged") as raised:
        blobs.get(home, name, what="pkg/a.py as installed")
    assert raised.value.code == "corrupt"
    assert "pkg/a.py as installed" in raised.value.message
    blobs.put(home, b"bytes")
    assert blobs.get(home, name) == b"bytes"
    path.unlink()
    with pytest.raises(SiteError, match="missing"):
        blobs.get(home, name)


def test_collect_keeps_what_is_named(tmp_path: Path) -> None:
    home = str(tmp_path)
    one, two = blobs.put(home, b"1"), blobs.put(home, b"2")
    left = tmp_path / ".patchkit" / "blobs" / ".tmp-left"
    left.write_bytes(b"torn")
    assert sorted(blobs.collect(home, {one})) == sorted([".tmp-left", two])
    assert blobs.get(home, one) == b"1"
    assert blobs.collect(home, set()) == [one]
    assert not (tmp_path / ".patchkit" / "blobs").exists()
    assert blobs.collect(home, set()) == []
