"""Windows and macOS as far as they can be had on Linux: their paths, their renames, and what their ``os`` has not.

Nothing here ran on Windows or macOS. What is simulated is what Microsoft's and Python's documentation say.
"""

from __future__ import annotations

import ntpath
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from concurrency.arena import build, contents, environment, files_of
from support.bench import Bench
from support.dists import make_dist
from support.sites import bare_site

from patchkit.errors import PatchFileError, SiteError
from patchkit.runtime import ledger
from patchkit.site import paths
from patchkit.site.environment import ledger_homes, resolve
from patchkit.state import fs

#: ``os`` as a module under test sees it, with Windows' paths.
NT = SimpleNamespace(**{name: getattr(os, name) for name in dir(os) if not name.startswith("__")})
NT.path, NT.sep, NT.altsep, NT.name = ntpath, "\\", "/", "nt"
HOME = r"C:\env\Lib\site-packages"


@pytest.mark.parametrize(
    ("home", "path", "key"),
    [
        (HOME, HOME + r"\demo\core.py", "demo/core.py"),
        (HOME, r"C:\env\Scripts\tool.py", "C:/env/Scripts/tool.py"),
        (HOME, r"D:\other\core.py", "D:/other/core.py"),
        (r"\\server\share\site-packages", r"\\server\share\site-packages\demo\core.py", "demo/core.py"),
        (HOME, "C:/env/Lib/site-packages/demo/core.py", "demo/core.py"),
    ],
)
def test_keys_have_slashes_and_lead_back(monkeypatch: pytest.MonkeyPatch, home: str, path: str, key: str) -> None:
    monkeypatch.setattr(ledger, "os", NT)
    assert ledger.key_of(home, path) == key
    assert ntpath.normpath(ledger.file_path(home, key)) == ntpath.normpath(path)
    assert not ledger.climbs(key)


@pytest.mark.parametrize(
    "key", ["C:core.py", "demo/C:core.py", "demo/core.py:stream", r"demo\..\..\x.py", r"..\x.py", r"demo\core.py"]
)
def test_keys_that_leave_the_site_on_windows_are_none(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setattr(ledger, "os", NT)
    assert ledger.climbs(key)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("C:core.py", "leads-out"),
        ("C:/demo/core.py", "leads-out"),
        (r"\\server\share\core.py", "leads-out"),
        ("//server/share/core.py", "leads-out"),
        (r"\\?\C:\core.py", "leads-out"),
        (r"demo\..\..\core.py", "leads-out"),
        (r"demo\core.py", "path"),
        ("demo/core.py:stream", "path"),
        ("demo/D:core.py", "path"),
        ("demo/core.py.", "path"),
        ("demo /core.py", "path"),
        ("demo/core.py ", "path"),
        ("demo/con.py", "path"),
        ("demo/NUL", "path"),
        ("demo/aux.tar.gz", "path"),
        ("demo/Com1.py", "path"),
        ("demo/lpt\xb2", "path"),
        ("demo/conin$", "path"),
        ("demo/what?.py", "path"),
        ("demo/tab\t.py", "path"),
    ],
)
def test_what_windows_would_take_for_something_else_is_refused(
    monkeypatch: pytest.MonkeyPatch, path: str, code: str
) -> None:
    monkeypatch.setattr(paths, "os", NT)
    with pytest.raises(PatchFileError) as raised:
        paths.check_spelling(path)
    assert raised.value.code == code


@pytest.mark.parametrize("path", ["demo/core.py", "demo/console.py", "demo/com10.py", "demo/.hidden", "demo/a b.py"])
def test_what_only_looks_like_it_is_not(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    paths.check_spelling(path)
    monkeypatch.setattr(paths, "os", NT)
    paths.check_spelling(path)


class Busy:
    """A rename that Windows refuses so many times, since a program has the file open."""

    def __init__(self, times: int, winerror: int) -> None:
        self.times, self.winerror, self.calls = times, winerror, 0

    def __call__(self, source: str, target: str) -> None:
        self.calls += 1
        if self.times:
            self.times -= 1
            error = PermissionError(13, "Access is denied")
            error.winerror = self.winerror  # type: ignore[misc, unused-ignore]
            raise error


@pytest.mark.parametrize("winerror", [5, 32])
def test_a_file_that_is_open_is_waited_for_a_moment(monkeypatch: pytest.MonkeyPatch, winerror: int) -> None:
    monkeypatch.setattr(fs, "_PAUSES", (0.0, 0.0, 0.0))
    fake = SimpleNamespace(**vars(NT))
    monkeypatch.setattr(fs, "os", fake)
    fake.replace = Busy(3, winerror)
    fs.replace("a", "b")
    assert fake.replace.calls == 4
    fake.replace = Busy(99, winerror)
    with pytest.raises(PermissionError) as raised:
        fs.replace("a", "b")
    assert fake.replace.calls == 4
    failure = fs.named(raised.value)
    assert (failure.code, failure.details["path"]) == ("permission", "b")
    assert failure.hint is not None
    assert failure.hint.startswith("end the programs that have the file open and run the command again; or ")
    fake.replace = Busy(99, 112)  # the disk is full: waiting does not help
    with pytest.raises(PermissionError):
        fs.replace("a", "b")
    assert fake.replace.calls == 1


#: A process whose ``os`` is that of Windows: no owners, modes and attributes beyond the basic ones, no flushing of
#: folders, no forks, no record locks; an open lock file cannot be removed; a busy file is refused at first.
SEMBLANCE = """
import errno, ntpath, os, pathlib, shutil, stat, subprocess, sys, tempfile, types
from patchkit.cli.main import main
import patchkit.ops.apply, patchkit.ops.revert, patchkit.ops.sync, patchkit.ops.check, patchkit.state.fs
for name in ("chown", "lchown", "fchown", "getuid", "geteuid", "getgid", "getegid", "listxattr", "setxattr", "getxattr",
             "removexattr", "fork", "register_at_fork", "uname", "statvfs", "killpg", "setsid", "O_NOFOLLOW",
             "O_DIRECTORY", "O_CLOEXEC", "O_NONBLOCK", "fchmod"):
    if hasattr(os, name):
        delattr(os, name)
os.supports_effective_ids = set()
for name in ("fcntl", "pwd", "grp", "resource", "posix"):
    sys.modules[name] = None
held = {}

def locking(descriptor, mode, count):
    place = os.fstat(descriptor).st_ino, os.lseek(descriptor, 0, os.SEEK_CUR)
    if mode == 0:
        assert held.pop(place) == descriptor
    elif place in held:
        raise OSError(errno.EACCES, "Permission denied")
    else:
        held[place] = descriptor

sys.modules["msvcrt"] = types.SimpleNamespace(LK_UNLCK=0, LK_NBLCK=2, locking=locking)
real = {name: getattr(os, name) for name in ("open", "replace", "unlink", "kill")}
busy = {}

def opening(path, flags, *rest, **more):
    if os.path.isdir(path):
        raise PermissionError(errno.EACCES, "a folder cannot be opened", path)
    return real["open"](path, flags, *rest, **more)

def replacing(source, target):
    times = busy[target] = busy.get(target, 0) + 1
    if times <= (99 if sys.argv[1] == "for-ever" and target.endswith("m1.py") else 2):
        error = PermissionError(errno.EACCES, "The process cannot access the file", source)
        error.winerror = 32
        raise error
    real["replace"](source, target)

def unlinking(path, **more):
    if path.endswith("lock") and held:
        raise PermissionError(errno.EACCES, "in use", path)
    real["unlink"](path, **more)

os.open, os.replace, os.unlink = opening, replacing, unlinking
del os.kill
for module in (pathlib, sys.modules.get("pathlib._local")):
    if module is not None:
        module.WindowsPath = pathlib.PosixPath  # the paths are those of this machine
sys.platform, os.name = "win32", "nt"
patchkit.state.fs._PAUSES = (0.0, 0.0, 0.0)
sys.exit(main(sys.argv[2:]))
"""


def semblance(root: Path, *words: str, busy: str = "at-first") -> subprocess.CompletedProcess[str]:
    options = ["--site", str(root / "site-packages"), "--patches", str(root / "patches")]
    return subprocess.run(
        [sys.executable, "-c", SEMBLANCE, busy, *options, *words],
        env=environment(USERNAME="u", COMPUTERNAME="BOX"),
        cwd=root / "work",
        capture_output=True,
        text=True,
    )


def test_a_patchs_life_with_what_windows_has(tmp_path: Path) -> None:
    site = build(tmp_path)
    (tmp_path / "work").mkdir()
    for words in (("apply", "a-first", "e-adds"), ("check",), ("list",), ("diff",), ("doctor",), ("sync",), ("log",)):
        done = semblance(tmp_path, *words)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        assert files_of(site) == contents(frozenset({"a-first", "e-adds"}))
    done = semblance(tmp_path, "apply", "c-shared", busy="for-ever")
    assert done.returncode == 5
    assert done.stderr.startswith(
        f"error: {site / 'demo/m1.py'}: The process cannot access the file (EACCES); everything"
    )
    assert "end the programs that have the file open" in done.stderr
    assert files_of(site) == contents(frozenset({"a-first", "e-adds"}))
    assert semblance(tmp_path, "revert", "--all").returncode == 0
    assert files_of(site) == contents(frozenset())
    assert not (site / "demo/extra").exists()


def test_the_layout_of_windows_environments(tmp_path: Path) -> None:
    home = tmp_path / "Lib" / "site-packages"
    home.mkdir(parents=True)
    (tmp_path / "pyvenv.cfg").write_text("version = 3.12.1\n")
    assert resolve(None, str(tmp_path), {}).home == str(home)
    assert resolve(None, str(home), {}).python_version == (3, 12)


def test_where_case_does_not_count_a_site_has_one_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two spellings of one folder on the path, without a link between them, as on macOS and Windows."""
    make_dist(tmp_path / "site-packages", "demo", "1.0", {"demo/core.py": "X = 1\n"})
    (tmp_path / "site-packages" / ".patchkit").mkdir()
    real = os.stat

    def blind(path: object, *arguments: object, **options: object) -> os.stat_result:
        if isinstance(path, str):
            path = path.replace("SITE-PACKAGES", "site-packages")
        return real(path, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "stat", blind)
    site = bare_site(tmp_path / "SITE-PACKAGES", tmp_path / "site-packages")
    assert ledger_homes(site) == [str(tmp_path / "SITE-PACKAGES")]


def test_two_added_files_that_differ_in_case_are_refused_where_case_does_not_count(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second finds the first in its place; nothing stays."""
    bench.patch("first", '[[add]]\nfile = "demo/New.py"\ncontent = "A = 1\\n"\n')
    bench.patch("second", '[[add]]\nfile = "demo/new.py"\ncontent = "B = 1\\n"\n')
    real = {name: getattr(os, name) for name in ("lstat", "stat", "replace", "unlink", "open")}

    def folded(path: object) -> object:
        return path.replace("New.py", "new.py") if isinstance(path, str) else path

    for name in ("lstat", "stat", "unlink", "open"):
        monkeypatch.setattr(
            os, name, lambda path, *more, _call=real[name], **options: _call(folded(path), *more, **options)
        )
    monkeypatch.setattr(os, "replace", lambda source, target: real["replace"](folded(source), folded(target)))
    monkeypatch.setattr(os.path, "lexists", lambda path: _there(real["lstat"], folded(path)))
    run = bench.json("apply", "first", "second")
    assert (run.status, run.error["code"]) == (5, "changed")
    assert "exists already" in run.error["message"]
    assert bench.pristine()
    assert not (bench.site / "demo/new.py").exists()


def _there(lstat: object, path: object) -> bool:
    try:
        lstat(path)  # type: ignore[operator]
    except (OSError, ValueError):
        return False
    return True


def test_errors_of_windows_have_a_way_out() -> None:
    error = PermissionError(13, "Access is denied", "x")
    failure: SiteError = fs.named(error)
    assert failure.hint == "run as a user who may write there, or patch an environment of your own"
