"""A package with every awkward form of import, and the view of a patch of it in the memory of real processes.

In each of its modules a text is "stock" on disk; the patch makes it "patched".
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from support.dists import make_dist
from support.sites import bare_site

from patchkit.model.load import load_patch
from patchkit.ops.bundle import make_bundle
from patchkit.ops.inmemory import View, plan_in_memory

FILES: dict[str, str | bytes] = {
    "awk/__init__.py": """\
from .core import Thing, value
from .star import *
import awk.sub.leaf as leaf

WHAT = "stock"


def __getattr__(name):
    if name == "late":
        import importlib

        return importlib.import_module(".lazy", __name__).WHAT
    raise AttributeError(name)
""",
    "awk/core.py": """\
class Thing:
    what = "stock"

    def __init__(self, n):
        self.n = n

    def tell(self):
        return (self.what, self.n)


def value():
    return "stock"


def boom():
    raise RuntimeError("stock")


def frame():
    import sys

    return sys._getframe()
""",
    "awk/star.py": '__all__ = ["starred"]\nstarred = "stock"\n',
    "awk/lazy.py": 'WHAT = "stock"\n',
    "awk/left.py": 'from . import right\n\nWHAT = "stock"\n\n\ndef other():\n    return right.WHAT\n',
    "awk/right.py": 'import awk.left\n\nWHAT = "stock"\n\n\ndef other():\n    return awk.left.WHAT\n',
    "awk/maybe.py": "try:\n    from awk import missing as found\nexcept ImportError:\n    found = 'stock'\n",
    "awk/sub/__init__.py": "",
    "awk/sub/leaf.py": 'WHAT = "stock"\n',
    "awk/plain.py": 'WHAT = "plain"\n',
    "awk/__main__.py": 'import sys\n\nfrom . import value\n\nprint("stock", value(), __name__, sys.argv[1:])\n',
    "awk/data.txt": "stock\n",
    "awkspace/part/mod.py": 'WHAT = "stock"\n',
    "awkalone.py": 'WHAT = "stock"\n',
    "awklatin.py": '# coding: latin-1\nWHAT = "st\xf6ck"\n'.encode("latin-1"),
}
EDITED = [
    "awk/__init__.py",
    "awk/core.py",
    "awk/star.py",
    "awk/lazy.py",
    "awk/left.py",
    "awk/right.py",
    "awk/maybe.py",
    "awk/sub/leaf.py",
    "awk/__main__.py",
    "awkspace/part/mod.py",
    "awkalone.py",
]
HEAD = 'schema = 1\nname = "{name}"\nsummary = "the patch {name}"\n[target]\nrequirement = "awk"\n'


def edit(path: str, old: str = "stock", new: str = "patched", count: int | str = 1) -> str:
    """A text edit of one file."""
    return f'[[edit]]\nfile = "{path}"\nfind = "{old}"\nreplace = "{new}"\ncount = {count}\n'


def added(path: str, content: str) -> str:
    """A file that a patch adds."""
    return f'[[add]]\nfile = "{path}"\ncontent = """\n{content}"""\n'


#: The patch of all edited modules; "stock" stands three times in one of them.
EVERYTHING = "".join(edit(path, count=3 if path == "awk/core.py" else 1) for path in EDITED) + edit(
    "awklatin.py", "st\\u00f6ck", "p\\u00e4tched"
)


class Stage:
    """``site`` holds the package ``awk``; ``show`` makes a bundle; ``python`` runs code with it."""

    def __init__(self, root: Path, files: Mapping[str, str | bytes] | None = None) -> None:
        self.root = root
        self.site = root / "site-packages"
        make_dist(self.site, "awk", "1.0", files or FILES)
        self.work = root / "work"
        self.work.mkdir(exist_ok=True)
        self.bundle = ""

    def plan(self, **bodies: str) -> View:
        """Plan the patches of these bodies, by name."""
        patches = []
        for name, body in bodies.items():
            path = self.root / f"{name}.toml"
            path.write_text(HEAD.format(name=name) + body, encoding="utf-8")
            patches.append(load_patch(str(path)))
        return plan_in_memory(bare_site(self.site), patches, notice=lambda text: None)

    def show(self, **bodies: str) -> View:
        """Plan them, and lay the bundle that :meth:`python` uses."""
        view = self.plan(**bodies)
        self.bundle = make_bundle(view)
        return view

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of a process with the bundle and the site."""
        env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PATCHKIT"))}
        path = [self.bundle, str(self.site)] if self.bundle else [str(self.site)]
        return {**env, "PYTHONPATH": os.pathsep.join(path), "PATCHKIT_RUN": self.bundle, **more}

    def run(
        self, *arguments: str, python: str = sys.executable, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run an interpreter in the working folder."""
        return subprocess.run(
            [python, *arguments],
            cwd=self.work,
            env=dict(env or self.environment()),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def python(self, code: str, *, python: str = sys.executable, env: Mapping[str, str] | None = None) -> Any:
        """Run a script that prints JSON; what it printed. It is a file, for ``multiprocessing``."""
        script = self.work / "script.py"
        script.write_text(code, encoding="utf-8")
        done = self.run(str(script), python=python, env=env)
        assert (done.returncode, done.stderr) == (0, ""), done
        return json.loads(done.stdout)

    def listing(self) -> list[tuple[str, int, int, int]]:
        """Everything below the site: names, sizes, times, inodes."""
        found = []
        for folder, _, files in os.walk(self.site):
            for path in (folder, *(os.path.join(folder, file) for file in files)):
                status = os.lstat(path)
                found.append((path, status.st_size, status.st_mtime_ns, status.st_ino))
        return sorted(found)


def every_python(running: str = sys.executable, *, versions: Sequence[str] = ()) -> list[str]:
    """The running interpreter, and those of the versions the overlay supports that this machine has."""
    from support.interpreters import find_python

    wanted = versions or ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
    found = [path for version in wanted if (path := find_python(version))]
    return list(dict.fromkeys([running, *found]))
