"""What every tool is measured on: a released wheel in an environment of its own, and two changes of it.

``one`` puts a condition before one line of one file; ``many`` adds a line to each of 262 files. Both are made from
the release's own files when the benchmark runs: of them, only the anchor of ``one`` stands here.
"""

from __future__ import annotations

import difflib
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from typing import NamedTuple

DISTRIBUTION, MODULE = "tpu-inference", "tpu_inference"
BASE, NEXT, LAST = "0.23.0", "0.24.0", "0.32.0"
FILES = 262
RUNNER = "tpu_inference/runner/tpu_runner.py"
_HEADER = "        if spec_decode_metadata is None:\n"
_LINE = "            logits = logits.astype(jnp.float32)\n"
_GUARDED = "            if tpu_sampling_metadata.do_sampling:\n    " + _LINE


class Change(NamedTuple):
    """Files of site-packages with their bytes before and after, and the change as a unified diff (``a/``, ``b/``)."""

    name: str
    version: str
    before: Mapping[str, bytes]
    after: Mapping[str, bytes]
    diff: str


class Case(NamedTuple):
    """A throwaway environment with the wheel, and a project folder beside it for the tool's own files."""

    root: str
    version: str
    python: str
    site: str
    project: str


def wheel(version: str, cache: str) -> str:
    """The released wheel's path, fetched once."""
    os.makedirs(cache, exist_ok=True)
    found = os.path.join(cache, f"{MODULE}-{version}-py3-none-any.whl")
    if not os.path.exists(found):
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--python-version", "3.12"]
        command += ["--only-binary", ":all:", "-d", cache, f"{DISTRIBUTION}=={version}"]
        subprocess.run(command, check=True)
    return found


def files_of(path: str) -> dict[str, bytes]:
    """The files of a wheel by name."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}


def guarded(data: bytes) -> bytes:
    """The runner's file with the change ``one``, by the line that stands right under its ``if``."""
    old, new = (_HEADER + _LINE).encode(), (_HEADER + _GUARDED).encode()
    assert data.count(old) == 1
    return data.replace(old, new)


def one(files: Mapping[str, bytes], version: str) -> Change:
    """A line of one file, which stands there twice, gets a condition."""
    return _change("one", version, {RUNNER: files[RUNNER]}, {RUNNER: guarded(files[RUNNER])})


def many(files: Mapping[str, bytes], version: str) -> Change:
    """Each of the package's 262 sources gets a comment as its first line."""
    before, after = {}, {}
    for name in sorted(files):
        data = files[name]
        if name.startswith(f"{MODULE}/") and name.endswith(".py"):
            before[name], after[name] = data, b"# changed\n" + data
    assert version != BASE or len(before) == FILES
    return _change("many", version, before, after)


def _change(name: str, version: str, before: dict[str, bytes], after: dict[str, bytes]) -> Change:
    diff = ""
    for path in before:
        old, new = (data[path].decode().splitlines(keepends=True) for data in (before, after))
        body = "".join(
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
            for line in difflib.unified_diff(old, new, f"a/{path}", f"b/{path}")
        )
        blobs = "..".join(_blob(data[path]) for data in (before, after))
        diff += f"diff --git a/{path} b/{path}\nindex {blobs} 100644\n{body}"
    return Change(name, version, before, after, diff)


def _blob(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Stage:
    """Makes environments: each is a copy of one that pip made."""

    def __init__(self, folder: str, python: str, cache: str) -> None:
        self.folder, self.python, self.cache = folder, python, cache
        self._made: dict[str, str] = {}
        self._count = 0

    def case(self, version: str) -> Case:
        """A new environment with that release."""
        base = self._made.get(version) or self._make(version)
        self._count += 1
        root = os.path.join(self.folder, f"case-{self._count}")
        shutil.copytree(base, root, symlinks=True)
        return _case(root, version)

    def drop(self, case: Case) -> None:
        """Delete an environment."""
        shutil.rmtree(case.root)

    def _make(self, version: str) -> str:
        root = os.path.join(self.folder, f"base-{version}")
        env = os.path.join(root, "env")
        subprocess.run([self.python, "-m", "venv", "--without-pip", env], check=True)
        case = _case(root, version)
        command = [sys.executable, "-m", "pip", "--python", case.python, "install", "-q", "--no-deps"]
        command += ["--no-compile", "--ignore-requires-python", wheel(version, self.cache)]
        subprocess.run(command, check=True)
        os.makedirs(case.project)
        self._made[version] = root
        return root


def _case(root: str, version: str) -> Case:
    env = os.path.join(root, "env")
    library = os.path.join(env, "lib")
    site = os.path.join(library, os.listdir(library)[0], "site-packages")
    return Case(root, version, os.path.join(env, "bin", "python"), site, os.path.join(root, "project"))


def state(case: Case, change: Change) -> str:
    """What the site holds of a change: ``old``, ``new``, ``mixed`` (some of each) or ``lost`` (missing, or neither)."""
    found = set()
    for path in change.before:
        try:
            with open(os.path.join(case.site, path), "rb") as file:
                data = file.read()
        except FileNotFoundError:
            return "lost"
        if data == change.before[path]:
            found.add("old")
        elif data == change.after[path]:
            found.add("new")
        else:
            return "lost"
    return found.pop() if len(found) == 1 else "mixed"
