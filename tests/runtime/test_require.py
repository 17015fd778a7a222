from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from state.sites import TOML, Draft, entry_for, patch_entry

from patchkit.errors import PatchkitError, SiteError, UsageError
from patchkit.runtime.require import require
from patchkit.state.ledger import Upstreamed
from patchkit.state.transaction import Change, commit

ROOT = Path(__file__).parents[2]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "site-packages"
    (home / "pkg-1.0.dist-info").mkdir(parents=True)
    ledger = Draft().with_patch(patch_entry("p", ["a.py", "b.py"]))
    ledger = ledger.with_upstreamed(Upstreamed("u", "pkg", "1.0", "pkg-1.0.dist-info", "0" * 64))
    changes = []
    for name in ("a.py", "b.py"):
        (home / name).write_bytes(b"one\n")
        ledger = ledger.with_file(name, entry_for(b"one\n", b"two\n"))
        changes.append(Change(name, str(home / name), b"one\n", b"two\n"))
    commit(str(home), changes, ledger, {"command": "apply"}, extra_blobs=[TOML])
    return home


def state(home: Path, *names: str) -> str:
    with pytest.raises(SiteError) as raised:
        require(*names, site=home)
    assert raised.value.code == "not-applied"
    assert isinstance(raised.value, PatchkitError)
    assert "patchkit --site" in (raised.value.hint or "")
    return str(raised.value.details["patches"][0]["state"])


def test_applied_and_upstreamed_are_enough(home: Path) -> None:
    require("p", "u", site=home)
    require("p", site=str(home))


def test_absent(home: Path, tmp_path: Path) -> None:
    assert state(home, "p", "q") == "absent"
    (tmp_path / "empty").mkdir()
    assert state(tmp_path / "empty", "p") == "absent"


def test_absent_where_nothing_was_ever_patched(tmp_path: Path) -> None:
    code = "import sys; sys.path[:0] = [sys.argv[1]]\nimport patchkit; patchkit.require('p')"
    command = [sys.executable, "-S", "-c", code, str(ROOT)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    said = "not every required patch is applied (no folder of sys.path has a .patchkit/ledger.json):"
    assert done.stderr.splitlines()[-3:] == [
        f"patchkit.errors.SiteError: {said}",
        "  p: absent: is not applied here",
        "patchkit apply p",
    ]


def test_lost_partial_modified(home: Path) -> None:
    (home / "a.py").write_bytes(b"one\n")
    assert state(home, "p") == "partial"
    (home / "b.py").write_bytes(b"one\n")
    assert state(home, "p") == "lost"
    (home / "b.py").write_bytes(b"hand\n")
    assert state(home, "p") == "modified"
    (home / "b.py").unlink()
    assert state(home, "p") == "modified"


def test_another_version_or_none(home: Path) -> None:
    (home / "pkg-1.0.dist-info").rename(home / "pkg-1.1.dist-info")
    assert state(home, "p") == "stale"
    assert state(home, "u") == "stale"
    (home / "pkg-1.1.dist-info").rmdir()
    assert state(home, "p") == "uninstalled"


def test_the_message_names_all_and_what_to_type(home: Path) -> None:
    (home / "a.py").write_bytes(b"hand\n")
    with pytest.raises(SiteError) as raised:
        require("p", "q", site=home)
    assert "p: modified: a.py" in raised.value.message
    assert "q: absent" in raised.value.message
    assert f"patchkit --site {home} check p q" in (raised.value.hint or "")


def test_it_imports_no_parser_and_next_to_nothing(home: Path) -> None:
    code = (
        "import sys\n"
        "sys.path[:0] = [sys.argv[1], sys.argv[2]]\n"
        "before = set(sys.modules)\n"
        "from patchkit.runtime.require import require\n"
        "require('p', 'u')\n"
        "print(*sorted(set(sys.modules) - before))\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, str(ROOT), str(home)], capture_output=True, text=True, check=True
    )
    added = set(done.stdout.split())
    heavy = {
        "ast",
        "tokenize",
        "tomllib",
        "argparse",
        "packaging",
        "json",
        "re",
        "typing",
        "hashlib",
        "dataclasses",
        "pathlib",
    }
    assert not added & heavy
    assert added <= {
        "__future__", "_json", "zlib", "_sha256", "_sha2",
        "patchkit", "patchkit.runtime", "patchkit.runtime.imported", "patchkit.runtime.ledger",
        "patchkit.runtime.require",
    }  # fmt: skip


def test_without_a_name_it_would_let_anything_pass(home: Path) -> None:
    with pytest.raises(UsageError, match="names no patch"):
        require(site=home)


@pytest.mark.parametrize("info", ["pkg-2.0.dist-info/METADATA", "Pkg-2.0-py3.11.egg-info/PKG-INFO", "pkg-2.egg-info"])
@pytest.mark.parametrize("name", ["p", "u"])
def test_an_install_that_comes_first_on_the_path_hides_the_patched_one(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, info: str, name: str
) -> None:
    first = tmp_path / "user"
    (first / info).parent.mkdir(parents=True)
    (first / "pkg_more-1.0.dist-info").mkdir()
    (first / "pkg_more-1.0.dist-info" / "METADATA").write_text("Name: pkg-more\nVersion: 1.0\n")
    monkeypatch.setattr(sys, "path", [str(first), str(home)])
    require(name)  # what an interrupted removal left is no install
    (first / info).write_text("Name: pkg\nVersion: 2.0\n")
    with pytest.raises(SiteError) as raised:
        require(name)
    [found] = raised.value.details["patches"]
    assert (found["state"], found["reason"]) == (
        "shadowed",
        f"was applied to pkg in {home}, but imports take that in {first}",
    )
    assert raised.value.hint == f"where imports take it from: patchkit --site {first} apply {name}"
    require(name, site=home)
    monkeypatch.setattr(sys, "path", [str(home), str(first)])
    require(name)


def test_a_link_to_the_home_does_not_hide_it(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lib64").symlink_to(home, target_is_directory=True)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "lib64"), str(home)])
    require("p", "u")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="notes came with 3.11")
def test_an_uncaught_error_shows_the_way_out(home: Path) -> None:
    code = (
        "import sys; sys.path[:0] = [sys.argv[1], sys.argv[2]]\nfrom patchkit.runtime.require import require\n"
        "require('q', site=sys.argv[2])\n"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code, str(ROOT), str(home)], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == f"patchkit --site {home} apply q"


@pytest.mark.parametrize("odd", ["None", "b'/tmp'", "3", "pathlib.Path(HOME)"])
def test_entries_of_the_path_that_are_no_text(home: Path, odd: str) -> None:
    """Imports pass over them, so a ledger in such a one is of no folder that is imported from."""
    code = f"import pathlib, sys; HOME = {str(home)!r}; sys.path[:0] = [{odd}, {str(ROOT)!r}]; import patchkit\n"
    for more, printed in (("sys.path.append(HOME)\n", ""), ("", "not-applied\n")):
        ask = "try:\n    patchkit.require('p')\nexcept patchkit.PatchkitError as error:\n    print(error.code)\n"
        done = subprocess.run([sys.executable, "-c", code + more + ask], capture_output=True, text=True, check=False)
        assert (done.stdout, done.stderr) == (printed, "")
