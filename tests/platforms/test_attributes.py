"""Extended attributes and access lists of a patched file are those of the file that was there, on the way back too."""

from __future__ import annotations

import errno
import os
import struct
from pathlib import Path

import pytest
from support.bench import Bench

EDIT = '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'
#: Entries of an access list as the kernel takes them (linux/posix_acl_xattr.h): tag, permissions, id.
OWNER, USER, GROUP, MASK, OTHER = 0x01, 0x02, 0x04, 0x10, 0x20
NOBODY = 0xFFFFFFFF


def access_list(named: int) -> bytes:
    """One that gives the user 1234 the permissions ``named``."""
    entries = [(OWNER, 6, NOBODY), (USER, named, 1234), (GROUP, 4, NOBODY), (MASK, 6, NOBODY), (OTHER, 4, NOBODY)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def give(path: Path, name: str, value: bytes) -> None:
    if not hasattr(os, "setxattr"):
        pytest.skip("this Python has no extended attributes (they are Linux's)")
    try:
        os.setxattr(path, name, value)
    except OSError as error:
        if error.errno in (errno.ENOTSUP, errno.EOPNOTSUPP):
            pytest.skip(f"the file system of {path} has no attribute {name}")
        raise


def attributes(path: Path) -> dict[str, bytes]:
    return {name: os.getxattr(path, name) for name in os.listxattr(path)}


@pytest.mark.parametrize(
    ("name", "value"), [("user.note", b"\0\xffkept"), ("system.posix_acl_access", access_list(6))], ids=["user", "acl"]
)
def test_attributes_are_kept_there_and_back(bench: Bench, name: str, value: bytes) -> None:
    path = bench.site / "demo/core.py"
    give(path, name, value)
    before = attributes(path)
    assert before[name] == value
    bench.patch("double", EDIT)
    assert bench("apply", "double").status == 0
    assert attributes(path) == before
    assert b"2 * x" in path.read_bytes()
    assert bench("revert", "double").status == 0
    assert attributes(path) == before
    assert bench.pristine()


def test_what_the_folder_gives_new_files_is_not_given_to_a_replaced_one(bench: Bench) -> None:
    """A default access list would let somebody in whom the file did not."""
    path = bench.site / "demo/core.py"
    before = attributes(path) if hasattr(os, "listxattr") else {}
    mode = path.stat().st_mode
    give(path.parent, "system.posix_acl_default", access_list(6))
    (path.parent / "made.py").touch()
    assert "system.posix_acl_access" in os.listxattr(path.parent / "made.py")
    bench.patch("double", EDIT)
    for words in (("apply", "double"), ("revert", "double")):
        assert bench(*words).status == 0
        assert attributes(path) == before
        assert path.stat().st_mode == mode
