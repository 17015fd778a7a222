from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from state.sites import TOML, Draft, entry_for, patch_entry, sha
from support.interpreters import other_pythons

from patchkit.errors import SiteError
from patchkit.runtime import ledger as reader
from patchkit.runtime.require import require
from patchkit.state.ledger import Ledger, Upstreamed, dumps
from patchkit.state.transaction import Change, commit

ROOT = Path(__file__).parents[2]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """a.py patched, new.py added."""
    home = tmp_path / "site-packages"
    (home / "pkg-1.0.dist-info").mkdir(parents=True)
    (home / "a.py").write_bytes(b"one\n")
    ledger = Draft().with_patch(patch_entry("p", ["a.py", "new.py"]))
    ledger = ledger.with_file("a.py", entry_for(b"one\n", b"two\n")).with_file("new.py", entry_for(None, b"new\n"))
    changes = [
        Change("a.py", str(home / "a.py"), b"one\n", b"two\n"),
        Change("new.py", str(home / "new.py"), None, b"new\n"),
    ]
    commit(str(home), changes, ledger, {"command": "apply"}, extra_blobs=[TOML])
    return home


def states(home: Path) -> dict[str, str]:
    ledger = reader.read(str(home))
    assert ledger is not None
    return reader.check_files(str(home), ledger)


def test_applied(home: Path) -> None:
    assert states(home) == {"a.py": "applied", "new.py": "applied"}
    ledger = reader.read(str(home))
    assert ledger is not None
    assert reader.check_files(str(home), ledger, ["new.py"]) == {"new.py": "applied"}


def test_applied_without_reading_when_the_stat_is_old_enough(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = home / ".patchkit" / "ledger.json"
    later = path.stat().st_mtime_ns + 10**9
    os.utime(path, ns=(later, later))
    ledger = reader.read(str(home))
    assert ledger is not None
    monkeypatch.setattr(reader, "sha256_hex", lambda data: pytest.fail("read"))
    assert reader.check_files(str(home), ledger) == {"a.py": "applied", "new.py": "applied"}


def test_the_same_bytes_under_another_stat_are_applied(home: Path) -> None:
    os.utime(home / "a.py", ns=(1, 1))
    assert states(home)["a.py"] == "applied"
    (home / "copy").write_bytes(b"two\n")
    (home / "copy").replace(home / "a.py")
    assert states(home)["a.py"] == "applied"


def test_pristine_modified_missing(home: Path) -> None:
    (home / "a.py").write_bytes(b"one\n")
    (home / "new.py").write_bytes(b"other\n")
    assert states(home) == {"a.py": "pristine", "new.py": "modified"}
    (home / "a.py").write_bytes(b"hand\n")
    (home / "new.py").unlink()
    assert states(home) == {"a.py": "modified", "new.py": "pristine"}
    (home / "a.py").unlink()
    assert states(home)["a.py"] == "missing"
    (home / "a.py").mkdir()
    (home / "new.py").symlink_to("nowhere")
    assert states(home) == {"a.py": "modified", "new.py": "missing"}


def test_an_edit_of_the_same_size_right_after_the_commit_is_seen(home: Path) -> None:
    with open(home / "a.py", "r+b") as file:
        file.write(b"TWO")
    assert states(home)["a.py"] == "modified"


def test_an_edit_whose_time_was_put_back_is_seen(home: Path) -> None:
    before = (home / "a.py").stat()
    with open(home / "a.py", "r+b") as file:
        file.write(b"TWO")
    os.utime(home / "a.py", ns=(before.st_atime_ns, before.st_mtime_ns))
    later = before.st_mtime_ns + 10**12
    os.utime(home / ".patchkit" / "ledger.json", ns=(later, later))
    assert states(home)["a.py"] == "modified"


def test_unreadable(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = reader.read(str(home))
    assert ledger is not None

    def refuse(path: str, **options: bool) -> os.stat_result:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(reader.os, "stat", refuse)
    monkeypatch.setattr(reader.os, "lstat", refuse)
    assert reader.check_files(str(home), ledger) == {"a.py": "unreadable", "new.py": "unreadable"}


def test_installed(home: Path) -> None:
    assert reader.installed(str(home), "pkg-1.0.dist-info")
    assert not reader.installed(str(home), "pkg-2.0.dist-info")
    assert reader.installed(str(home), None)
    (home / "My_Pkg-3.0.dist-info").mkdir()
    (home / "my_pkg_more-4.0.dist-info").mkdir()
    (home / "old-0.1-py3.11.egg-info").mkdir()
    assert reader.installed_versions(str(home), "my.pkg") == ["3.0"]
    assert reader.installed_versions(str(home), "old") == ["0.1"]
    assert reader.installed_versions(str(home), "none") == []


def test_find_homes(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), str(home), "/nowhere.zip"])
    assert reader.find_homes() == [str(home)]
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert reader.find_homes() == []
    assert reader.find_homes(home) == [str(home)]
    assert reader.find_homes(SimpleNamespace(home=str(home))) == [str(home)]
    venv = tmp_path / "venv"
    inner = venv / "lib" / "python3.11" / "site-packages"
    inner.mkdir(parents=True)
    assert reader.find_homes(str(venv)) == [str(inner)]
    assert reader.find_homes(str(inner)) == [str(inner)]


DAMAGE: list[tuple[Any, ...]] = [
    ("patches",),
    ("files",),
    ("upstreamed",),
    ("patches", 0, "name"),
    ("patches", 0, "digest"),
    ("patches", 0, "info"),
    ("patches", 0, "files"),
    ("files", "a.py"),
    ("files", "a.py", "pristine"),
    ("files", "a.py", "pristine", "size"),
    ("files", "a.py", "after", "sha256"),
    ("files", "a.py", "stat"),
    ("files", "a.py", "stat", "ino"),
    ("upstreamed", 0, "distribution"),
]


@pytest.mark.parametrize("wrong", [False, True], ids=["missing", "of another kind"])
@pytest.mark.parametrize("where", DAMAGE, ids=lambda where: ".".join(map(str, where)))
def test_a_ledger_of_another_shape_is_corrupt(home: Path, where: tuple[Any, ...], wrong: bool) -> None:
    """Its checksum fits: a tool rewrote it, or another version left a member out."""
    value = Draft(*Ledger.load(str(home))).with_upstreamed(Upstreamed("u", "pkg", "1.0", None, "0" * 64)).to_json()
    value = json.loads(json.dumps(value))
    holder = value
    for step in where[:-1]:
        holder = holder[step]
    if wrong:
        holder[where[-1]] = 1.5
    else:
        del holder[where[-1]]
    (home / ".patchkit" / "ledger.json").write_bytes(dumps(value))
    with pytest.raises(SiteError) as raised:
        reader.read(str(home))
    assert raised.value.code == "corrupt"
    with pytest.raises(SiteError) as raised:
        require("p", site=home)
    assert raised.value.code == "corrupt"


@pytest.mark.parametrize("name", [name for name in vars(reader._Decoding) if not name.startswith("__")])
def test_a_scanner_that_wants_more_than_it_gets(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The scanner is private to Python: what it reads of its argument may change."""
    monkeypatch.delattr(reader._Decoding, name)
    assert reader.loads('{"a": [1, 2.5, null, "x"], "b": {"c": NaN}}')["a"] == [1, 2.5, None, "x"]


@pytest.mark.parametrize("python", other_pythons("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"))
def test_every_interpreter_from_3_8_on_reads_it(home: Path, python: str) -> None:
    code = (
        "import sys; sys.path[:0] = [sys.argv[1], sys.argv[2]]\n"
        "from patchkit.runtime import ledger\n"
        "from patchkit.runtime.require import require\n"
        "home = ledger.find_homes()[0]\n"
        "require('p')\n"
        "print(ledger.check_files(home, ledger.read(home)))\n"
        "try:\n    require('q')\nexcept Exception as error:\n    print(error.code)\n"
    )
    done = subprocess.run([str(python), "-c", code, str(ROOT), str(home)], capture_output=True, text=True)
    assert done.stdout == "{'a.py': 'applied', 'new.py': 'applied'}\nnot-applied\n", done.stderr


def test_missing_blobs(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = reader.read(str(home))
    assert ledger is not None
    names = {sha(data): data for data in (TOML, b"one\n", b"two\n", b"new\n")}
    assert {path.name for path in (home / ".patchkit" / "blobs").iterdir()} == set(names)
    assert reader.missing_blobs(str(home), ledger) == []
    assert reader.lost(ledger, []) == {}
    for name in (sha(b"one\n"), sha(b"new\n")):
        (home / ".patchkit" / "blobs" / name).unlink()
    monkeypatch.setattr(reader, "sha256_hex", lambda data: pytest.fail("read"))
    missing = reader.missing_blobs(str(home), ledger)
    assert missing == sorted([sha(b"one\n"), sha(b"new\n")])
    assert reader.lost(ledger, missing) == {"p": ["the original of a.py", "the patched copy of new.py"]}
    for path in (home / ".patchkit" / "blobs").iterdir():
        path.unlink()
    (home / ".patchkit" / "blobs").rmdir()
    assert reader.missing_blobs(str(home), ledger) == sorted(names)
    assert reader.lost(ledger, sorted(names))["p"][0] == "its patch file"


def test_blobs_that_may_not_be_listed_are_not_missing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> list[str]:
        raise PermissionError(path)

    ledger = reader.read(str(home))
    assert ledger is not None
    monkeypatch.setattr(os, "listdir", refuse)
    assert reader.missing_blobs(str(home), ledger) == []


def test_nothing_is_missing_of_an_empty_ledger(tmp_path: Path) -> None:
    assert reader.missing_blobs(str(tmp_path), Draft().to_json()) == []


def test_the_metadata_that_may_be_of_a_distribution(tmp_path: Path) -> None:
    """An escaped name ends at its only dash; with several, a digit may begin a version or go on with a name."""
    names = [
        "a_2-1.0.dist-info",
        "a-1.0.dist-info",
        "A-3.egg-info",
        "a-2-1.0.dist-info",
        "ab-1.dist-info",
        "a-b-1.dist-info",
    ]
    for name in [*names, "Flask-Login-0.6.3.dist-info", "flask_login-1.dist-info", "~a-1.dist-info", "a.py"]:
        (tmp_path / name).mkdir()
    found = reader.infos_of(str(tmp_path), ["a", "a-2", "flask-login"])
    assert {wanted: sorted(map(os.path.basename, infos)) for wanted, infos in found.items()} == {
        "a": ["A-3.egg-info", "a-1.0.dist-info", "a-2-1.0.dist-info"],
        "a-2": ["a-2-1.0.dist-info", "a_2-1.0.dist-info"],
        "flask-login": ["Flask-Login-0.6.3.dist-info", "flask_login-1.dist-info"],
    }
    assert reader.infos_of(str(tmp_path / "none"), ["a"]) == {}
