"""Who may not write the site reads it and is refused before the first write; modes, owners and umasks are respected."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from concurrency.arena import build, contents, files_of
from platforms.unprivileged import unprivileged
from support.bench import Bench
from support.dists import make_dist

READERS = [
    ("check",),
    ("check", "a-first"),
    ("list",),
    ("diff",),
    ("show", "a-first"),
    ("log",),
    ("doctor",),
    ("apply", "c-shared", "--dry-run"),
    ("revert", "--all", "--dry-run"),
    ("sync", "--dry-run"),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    build(tmp_path)
    (tmp_path / "work").mkdir()
    return tmp_path


@contextmanager
def closed(*tops: Path) -> Iterator[None]:
    """Nobody may write there, not in any folder below and not in any file, until the block ends."""
    paths = [path for top in tops for path in (top, *sorted(top.rglob("*")))]
    modes = [(path, stat.S_IMODE(path.stat().st_mode)) for path in paths]
    try:
        for path, mode in modes:
            path.chmod(mode & 0o555)
        yield
    finally:
        for path, mode in modes:
            path.chmod(mode)


def seen(top: Path) -> dict[str, tuple[int, int, int]]:
    """Everything there with inode, mode and times; the time of a folder tells whether anything was made in it."""
    found = {}
    for path in (top, *sorted(top.rglob("*"))):
        now = path.lstat()
        found[path.relative_to(top).as_posix()] = (now.st_ino, now.st_mode, now.st_mtime_ns)
    return found


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("patched", [False, True], ids=["fresh", "patched"])
def test_a_site_that_may_not_be_written_is_read_and_not_touched(root: Path, patched: bool) -> None:
    site = root / "site-packages"
    if patched:
        assert unprivileged(root, "apply", "a-first").returncode == 0
    with closed(site):
        before = seen(site)
        for words in READERS:
            done = unprivileged(root, *words)
            expected = 1 if not patched and words == ("check", "a-first") else 0
            assert (words, done.returncode) == (words, expected), done.stderr
        for words in (("apply", "b-shared"), ("revert", "--all")):
            done = unprivileged(root, "--json", *words)
            if words[0] == "revert" and not patched:
                assert done.returncode == 0
                continue
            error = json.loads(done.stdout)["error"]
            assert (done.returncode, error["code"]) == (5, "permission"), done.stderr
            assert str(site) in error["message"]
        assert seen(site) == before
    assert (site / ".patchkit").exists() == patched


def test_a_folder_in_which_nothing_can_be_replaced_is_named_before_the_first_write(root: Path) -> None:
    site = root / "site-packages"
    with closed(site / "demo"):
        before = seen(site)
        done = unprivileged(root, "apply", "a-first", "e-adds")
        assert done.returncode == 5
        assert done.stderr.startswith(f"error: {site / 'demo'}: Permission denied (EACCES); nothing was changed\n")
        after = seen(site)
        assert after.keys() == before.keys()  # no .patchkit is left
        assert {key: after[key] for key in after if key != "."} == {key: before[key] for key in before if key != "."}
    assert unprivileged(root, "apply", "a-first", "e-adds").returncode == 0
    with closed(site / "demo"):
        done = unprivileged(root, "revert", "--all")
        assert done.returncode == 5
        assert "nothing was changed" in done.stderr
        assert unprivileged(root, "check").returncode == 0
    assert files_of(site) == contents(frozenset({"a-first", "e-adds"}))


def test_of_several_folders_none_is_written_where_one_cannot_be(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    from support.sites import bare_site

    other = bench.root / "other-packages"
    make_dist(other, "other", "1.0", {"other/mod.py": "V = 1\n"})
    bench.patch("double", '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n')
    bench.patch("mod", '[[edit]]\nfile = "other/mod.py"\nfind = "V = 1"\nreplace = "V = 2"\n', requirement="other")
    monkeypatch.setattr("patchkit.cli.context.resolve", lambda python, directory: bare_site(bench.site, other))
    assert bench("apply", "double").status == 0
    assert bench("apply", "mod").status == 0
    real = os.access

    def access(path: object, *arguments: object, **options: object) -> bool:
        return str(path) != str(other / "other") and real(path, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "access", access)
    for words in (("revert", "--all"), ("revert", "mod", "double")):
        run = bench.json(*words)
        assert (run.status, run.error["code"], run.error["path"]) == (5, "permission", str(other / "other"))
        assert run.error["message"].endswith("; nothing was changed")
        assert run.error["hint"].startswith("name those of the other folders: patchkit revert double; or ")
        assert b"2 * x" in bench.read("demo/core.py")
    bench.project()
    run = bench.json("sync")
    assert (run.status, run.error["code"], run.error["path"]) == (5, "permission", str(other / "other"))
    assert b"2 * x" in bench.read("demo/core.py")


@pytest.mark.parametrize("umask", [0o000, 0o027, 0o077], ids=oct)
@pytest.mark.parametrize("site_mode", [0o755, 0o750, 0o775, 0o700], ids=oct)
def test_the_ledger_is_open_to_whom_the_site_is(root: Path, umask: int, site_mode: int) -> None:
    site = root / "site-packages"
    site.chmod(site_mode)
    assert unprivileged(root, "apply", "a-first", "e-adds", umask=umask).returncode == 0
    state = site / ".patchkit"
    assert {mode(state), mode(state / "blobs")} == {site_mode}
    plain = site_mode & 0o666
    assert {mode(state / name) for name in ("ledger.json", "lock", "log.jsonl")} == {plain}
    copies = list((state / "blobs").iterdir())
    assert len(copies) == 6
    for copy in copies:  # nobody but the owner writes them; the folder says who can reach them
        assert mode(copy) == 0o644
    assert mode(site / "demo/m0.py") == mode(site / "demo/m2.py")
    assert mode(site / "demo/extra") == mode(site / "demo")
    assert mode(site / "demo/extra/new.py") & 0o077 == mode(site / "demo/__init__.py") & 0o077


def test_the_copies_of_a_private_file_are_private(bench: Bench) -> None:
    bench.patch("double", '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n')
    (bench.site / "demo/core.py").chmod(0o600)
    assert bench("apply", "double").status == 0
    copies = {copy.read_bytes(): mode(copy) for copy in (bench.site / ".patchkit/blobs").iterdir()}
    private = [mode for data, mode in copies.items() if data.startswith(b'"""A module."""')]
    assert private == [0o600, 0o600]


@pytest.mark.parametrize("bits", [0o444, 0o755, 0o664])
def test_modes_are_kept_there_and_back(root: Path, bits: int) -> None:
    site = root / "site-packages"
    (site / "demo/m0.py").chmod(bits)
    (site / "demo").chmod(0o2755)
    assert unprivileged(root, "apply", "a-first", "e-adds").returncode == 0
    assert mode(site / "demo/m0.py") == bits
    assert mode(site / "demo") == 0o2755
    assert mode(site / "demo/extra") == 0o2755
    assert unprivileged(root, "revert", "--all").returncode == 0
    assert mode(site / "demo/m0.py") == bits
    assert files_of(site) == contents(frozenset())


def test_what_root_makes_in_somebodys_site_is_theirs(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that they can go on with it, read it and lock it. Root really gives it away; to others it belongs already."""
    root = os.geteuid() == 0
    real = os.chown
    if root:
        real(bench.site, 1234, 1234)
    owner = bench.site.stat().st_uid
    given: dict[str, int] = {}

    def chown(path: str, uid: int, gid: int, *, follow_symlinks: bool = True) -> None:
        given[os.path.relpath(path, bench.site)] = uid
        if root:
            real(path, uid, gid, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(os, "chown", chown)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    bench.patch("double", '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n')
    assert bench("apply", "double").status == 0
    names = {os.path.basename(path).partition("-")[0] for path in given}
    assert {".patchkit", "blobs", "lock", "ledger.json.tmp", "journal.json.tmp", "log.jsonl"} <= names
    assert set(given.values()) == {owner}
    assert sum(path.startswith(".patchkit/blobs/") for path in given) == 3
    state = bench.site / ".patchkit"
    assert {path.stat().st_uid for path in (state, *state.rglob("*"))} == {owner}


def test_a_file_set_immutable_is_refused_before_anything(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system refuses its owner to write although its mode allows it: that is how such a file shows."""
    from patchkit.errors import SiteError
    from patchkit.state import access

    path = root / "site-packages/demo/m1.py"
    monkeypatch.setattr(access, "_may", lambda asked, mode: asked != str(path))
    with pytest.raises(SiteError) as raised:
        access.check_writable([str(root / "site-packages/demo/m0.py"), str(path)])
    assert (raised.value.code, raised.value.details["path"]) == ("permission", str(path))
    assert "immutable: lsattr" in (raised.value.hint or "")
    assert "nothing was changed" in raised.value.message
    path.chmod(0o444)
    access.check_writable([str(path)])  # its mode says so: replacing it is allowed
