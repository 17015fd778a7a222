"""A folder with uv's cache, a wheel made here, environments and a project, and the command line on them.

The real uv and the real pip install that wheel, so no index is needed.
"""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import sys
import venv
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import uv
from state.sites import Exit
from support.bench import Run
from support.dists import make_wheel

from patchkit.cli.main import main
from patchkit.state import fs

OLD, NEW = b"VALUE = 'old'\n", b"VALUE = 'new'\n"
FILES = {
    "demo/__init__.py": b"",
    "demo/core.py": OLD,
    "demo/sub/__init__.py": b"",
    "demo/sub/deep.py": b"X = 1\n" + OLD,
}
PATCHED = {"demo/core.py": NEW, "demo/sub/deep.py": b"X = 1\n" + NEW}
PATCH = """\
schema = 1
name = "swap"
summary = "another value"
[target]
requirement = "demo"
[[edit]]
file = ["demo/core.py", "demo/sub/deep.py"]
find = "'old'"
replace = "'new'"
"""
LIBRARY = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"

World = dict[str, tuple[object, ...]]


def outside(root: Path, *inside: Path) -> World:
    """All below ``root`` but what is in the real directories ``inside``; links are not followed."""
    found: World = {}
    skipped = {str(path) for path in inside}
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if os.path.join(folder, name) not in skipped]
        for name in [*names, *files]:
            path = os.path.join(folder, name)
            own = os.lstat(path)
            kind = stat.S_IFMT(own.st_mode)
            content: object = None
            if stat.S_ISLNK(own.st_mode):
                content = os.readlink(path)
            elif stat.S_ISREG(own.st_mode):
                content = hashlib.sha256(Path(path).read_bytes()).hexdigest()
            # The parent of a directory that is inside changes its time when an entry of it does.
            time = None if stat.S_ISDIR(own.st_mode) else own.st_mtime_ns
            found[path] = (kind, content, stat.S_IMODE(own.st_mode), time, own.st_ino)
    return found


class Own(NamedTuple):
    """What of a patched file must come back."""

    data: bytes
    mode: int
    mtime_ns: int
    link: str | None


def own(path: Path) -> Own:
    link = os.readlink(path) if path.is_symlink() else None
    status = path.stat()
    return Own(path.read_bytes(), stat.S_IMODE(status.st_mode), status.st_mtime_ns, link)


class Land:
    """A folder with a cache, a wheel, environments, a project and the command line."""

    def __init__(self, root: Path, captured: Callable[[], tuple[str, str]]) -> None:
        self.root = root
        self._captured = captured
        self.land = root / "land"
        self.cache = self.land / "uv-cache"
        self.work = root / "work"
        (self.work / "patches").mkdir(parents=True)
        (self.work / "patches" / "swap.toml").write_text(PATCH)
        self.wheel = make_wheel(self.land / "wheels", "demo", "1.0", FILES)
        for name in ("elsewhere", "other"):
            (self.land / name).mkdir()
        (self.land / "elsewhere" / "core.py").write_bytes(OLD)
        self.kills = 0

    def __call__(self, python: Path, *arguments: str) -> Run:
        self._captured()
        status = main(["--python", str(python), *arguments])
        return Run(status, *self._captured())

    def site(self, name: str) -> Path:
        return self.land / name / LIBRARY

    def env(self, name: str = "env") -> Path:
        """A virtual environment without pip; its interpreter."""
        venv.create(self.land / name, symlinks=True)
        return self.land / name / "bin" / "python"

    def uv(self, *arguments: str) -> None:
        environment = {**os.environ, "UV_CACHE_DIR": str(self.cache)}
        command = [uv.find_uv_bin(), *arguments, "--offline", "--no-config"]
        subprocess.run(command, env=environment, check=True, capture_output=True, cwd=self.work)

    def uv_install(self, python: Path, mode: str, *options: str) -> None:
        self.uv("pip", "install", "--python", str(python), "--link-mode", mode, *options, str(self.wheel))

    def pip_install(self, *options: str) -> None:
        command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *options[:2], "install"]
        command += ["--no-index", "--no-deps", *options[2:], str(self.wheel)]
        subprocess.run(command, check=True, cwd=self.work, env={**os.environ, "PIP_CACHE_DIR": str(self.land / "pip")})

    def want(self, *names: str) -> None:
        listed = ", ".join(f'"{name}"' for name in names)
        (self.work / "pyproject.toml").write_text(f"[tool.patchkit]\napply = [{listed}]\n")

    def killed(self, python: Path, *arguments: str, share: float) -> None:
        """Run a command in a child that dies at about that share of its steps on the disk."""
        reading, writing = os.pipe()
        steps = fork()
        if not steps:  # it only counts them
            _child(python, arguments, None, writing)
        os.close(writing)
        with os.fdopen(reading) as stream:
            count = int(stream.read())
        os.waitpid(steps, 0)
        raise_at = max(1, round(count * share))
        undo = {"apply": "revert", "revert": "apply"}[arguments[0]]
        assert self(python, undo, "swap").status == 0
        child = fork()
        if not child:
            _child(python, arguments, raise_at, None)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
        self.kills += 1


def _child(python: Path, arguments: tuple[str, ...], at: int | None, report: int | None) -> None:
    """The body of a forked child; it never returns."""
    status = 70
    try:
        hook = Exit(at)
        with fs.observed(hook):
            status = main(["--python", str(python), *arguments])
        if report is not None:
            os.write(report, str(hook.count).encode())
    finally:
        os._exit(status)


def fork() -> int:
    """``os.fork``; Python 3.12 and later warn of it under pytest-xdist, whose threads do nothing meanwhile."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def plain() -> dict[str, str]:
    """The environment variables, with bytecode written as usual."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
