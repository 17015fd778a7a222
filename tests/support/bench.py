"""A site, patches and the command line, for tests of whole commands."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from support.dists import make_dist

from patchkit.cli.main import main

CORE = '''\
"""A module."""
import os


def double(x):
    y = x + x
    return y


class Worker:
    def run(self, job):
        result = double(job)
        return result

    def stop(self):
        result = None
        return result
'''
UTIL = "X = 1\r\nY = 2\r\nZ = 3\r\n"
DEMO: dict[str, str | bytes] = {"demo/__init__.py": "", "demo/core.py": CORE, "demo/util.py": UTIL}


class Run(NamedTuple):
    """One command line: its status, and what it printed."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The object on stdout."""
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        """The ``error`` of the object on stdout."""
        return self.json["error"]


def words(text: str) -> list[str]:
    """What was printed, however it was wrapped: that depends on the length of the site's path."""
    return text.split()


class Bench:
    """``site`` holds ``demo``; ``patch`` writes a patch file; calling it runs a command line in this process."""

    def __init__(self, root: Path, captured: Callable[[], Any], files: Mapping[str, str | bytes] | None = None) -> None:
        self.root = root
        self.site = root / "site-packages"
        self.patches = root / "patches"
        self.patches.mkdir()
        self._captured = captured
        #: Whether the site that a proposed command is for is left in what was printed.
        self.sited = False
        self.files = dict(files or DEMO)
        self.install("1.0")

    def install(self, version: str, files: Mapping[str, str | bytes] | None = None) -> None:
        """(Re)install ``demo`` as pip would: the old files and metadata go, the new ones are written anew."""
        for info in self.site.glob("demo-*.dist-info"):
            shutil.rmtree(info)
        shutil.rmtree(self.site / "demo", ignore_errors=True)
        make_dist(self.site, "demo", version, files or self.files)

    def uninstall(self) -> None:
        """Remove ``demo``."""
        for info in self.site.glob("demo-*.dist-info"):
            shutil.rmtree(info)
        shutil.rmtree(self.site / "demo", ignore_errors=True)

    def patch(self, name: str, body: str, *, requirement: str = "demo", target: str = "") -> Path:
        """Write ``<name>.toml`` with the usual head and ``body``."""
        head = f'schema = 1\nname = "{name}"\nsummary = "the patch {name}"\n'
        path = self.patches / f"{name}.toml"
        path.write_text(
            f'{head}[target]\nrequirement = "{requirement}"\n{target}\n{body}', encoding="utf-8", newline=""
        )
        return path

    def project(self, *wanted: str) -> None:
        """Make the working directory a project that wants these patches."""
        names = ", ".join(f'"{name}"' for name in wanted)
        text = f'[tool.patchkit]\npatches = "{self.patches.as_posix()}"\napply = [{names}]\n'
        (self.root / "work" / "pyproject.toml").write_text(text, encoding="utf-8")

    def __call__(self, *arguments: str) -> Run:
        """Run a command line on the site, with the patches folder."""
        self._captured()
        status = main(["--site", str(self.site), "--patches", str(self.patches), *arguments])
        captured = self._captured()
        return Run(status, self._plain(captured.out), self._plain(captured.err))

    def _plain(self, text: str) -> str:
        """What was printed, with the commands that it proposes as they are documented: for the usual site."""
        return text if self.sited else text.replace(f"patchkit --site {self.site} ", "patchkit ")

    def json(self, *arguments: str) -> Run:
        """The same, with ``--json``."""
        return self("--json", *arguments)

    def read(self, path: str) -> bytes:
        """The bytes of a file of the site."""
        return (self.site / path).read_bytes()

    def write(self, path: str, data: bytes) -> None:
        """Edit a file by hand: another inode, as editors do."""
        target = self.site / path
        target.unlink()
        target.write_bytes(data)

    def pristine(self) -> bool:
        """Whether every file of ``demo`` holds what was installed."""
        return all(
            self.read(path) == (content.encode() if isinstance(content, str) else content)
            for path, content in self.files.items()
        )
