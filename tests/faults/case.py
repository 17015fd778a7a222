"""A site with files of every kind, patches on it, and what each file must hold for each set of applied patches.

The expected bytes are made here, by string formatting alone: nothing of patchkit is asked what a patch does.
"""

from __future__ import annotations

import base64
import csv
import functools
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from support.dists import make_dist

MTIME = 1_600_000_000_123_456_789
WANTED = frozenset({"alpha", "beta", "gamma"})
TAG_NAME, TAG = "user.patchkit", b"kept"
EVERY_THIRD, PER_FOLDER = 3, 40
ADDED = {"gamma": "demo/new/deep/extra.py", "zeta": "demo/old/gone.py"}
TAKEN, TAKEN_DATA, TAKEN_BY = "demo/part0/taken.py", b"TAKEN = 1\n", "gamma"


class Node(NamedTuple):
    """One file: its bytes, permission bits, link target, and modification time where it is the installer's.

    ``tag`` is an extended attribute that one of the files has, where the file system has them.
    """

    data: bytes
    mode: int
    link: str | None
    mtime_ns: int | None
    tag: bytes | None = None


class Case(NamedTuple):
    """One environment: ``site`` is the folder that patchkit works on."""

    root: Path
    site: Path
    files: int
    tagged: bool

    @property
    def patches(self) -> Path:
        """The folder of the patch files."""
        return self.root / "patches"

    @property
    def work(self) -> Path:
        """The project's folder, whose list wants :data:`WANTED`."""
        return self.root / "work"

    def arguments(self, *words: str) -> list[str]:
        """A command line on this site."""
        return ["--site", str(self.site), "--patches", str(self.patches), *words]

    def key(self, index: int) -> str:
        """The path of the ``index``-th file."""
        return f"demo/part{index // PER_FOLDER}/m{index}.py"

    def expected(self, applied: Iterable[str]) -> dict[str, Node]:
        """Every file of the distribution, as it must be with the patches ``applied``."""
        return _expected(self, frozenset(applied))

    def _expected(self, names: frozenset[str]) -> dict[str, Node]:
        found = {"demo/__init__.py": Node(b"", 0o644, None, None)}
        for index in range(self.files):
            data = content(index, names)
            pristine = data == content(index, frozenset())
            link = os.path.relpath(self.root / "cache" / "m3.py", (self.site / self.key(index)).parent)
            found[self.key(index)] = Node(
                data,
                0o755 if index == 2 else 0o640 if index == 5 else 0o644,
                link if pristine and index == 3 else None,
                MTIME if pristine else None,
                TAG if index == 2 and self.tagged else None,
            )
        if TAKEN_BY not in names:
            found[TAKEN] = Node(TAKEN_DATA, 0o604, None, MTIME)
        for name, path in ADDED.items():
            if name in names:
                found[path] = Node(added(name), 0o644, None, None)
        return found

    def present(self) -> dict[str, Node]:
        """Every file under ``demo``, as it is (bytecode left out)."""
        found = {}
        for folder, _, names in os.walk(self.site / "demo"):
            for name in names:
                path = os.path.join(folder, name)
                if name.endswith(".pyc"):
                    continue
                own = os.lstat(path)
                with open(path, "rb") as file:
                    data = file.read()
                link = os.readlink(path) if stat.S_ISLNK(own.st_mode) else None
                now = os.stat(path)
                key = os.path.relpath(path, self.site).replace(os.sep, "/")
                found[key] = Node(data, stat.S_IMODE(now.st_mode), link, now.st_mtime_ns)
                if key == self.key(2) and self.tagged and TAG_NAME in os.listxattr(path):
                    found[key] = found[key]._replace(tag=os.getxattr(path, TAG_NAME))
        return found


@functools.cache
def _expected(case: Case, names: frozenset[str]) -> dict[str, Node]:
    return case._expected(names)


def content(index: int, patches: frozenset[str]) -> bytes:
    """The bytes of the ``index``-th file with ``patches`` on it."""
    double = "2 * x" if "alpha" in patches else "x + x"
    name = f'"module {index}"' + (".upper()" if "beta" in patches and index % EVERY_THIRD == 0 else "")
    value = 10 if "gamma" in patches and index in (1, 3) else 1
    other = "zeta" if "zeta" in patches and index in (2, 4) else "none"
    text = (
        f'"""Module {index}."""\n\nVALUE = {value}\nOTHER = "{other}"\n\n\ndef double(x):\n    return {double}\n\n\n'
        f"def name():  # a comment\n    return {name}\n"
    )
    return text.replace("\n", "\r\n" if index == 1 else "\n").encode()


def added(name: str) -> bytes:
    """The bytes of the file that the patch ``name`` adds."""
    return f'"""Added by {name}."""\n'.encode()


def takes_tags(root: Path) -> bool:
    """Whether the file system of ``root``, which is made, has extended attributes for users."""
    root.mkdir()
    try:
        os.setxattr(root, TAG_NAME, TAG)
    except (OSError, AttributeError):
        return False
    return True


def build(root: Path, files: int) -> Case:
    """A distribution of ``files`` modules (at least 6): CRLF, modes, a link, a hard-linked twin, bytecode.

    One more module is there to be taken away by a patch.
    """
    case = Case(root, root / "site-packages", files, takes_tags(root))
    sources = {case.key(index): content(index, frozenset()) for index in range(files)}
    make_dist(case.site, "demo", "1.0", {"demo/__init__.py": "", TAKEN: TAKEN_DATA, **sources})
    (root / "cache").mkdir()
    linked = case.site / case.key(3)
    linked.rename(root / "cache" / "m3.py")
    for key, node in case.expected(()).items():
        if node.link is not None:
            os.utime(root / "cache" / "m3.py", ns=(MTIME, MTIME))
            linked.symlink_to(node.link)
        elif node.mtime_ns is not None:
            os.chmod(case.site / key, node.mode)
            os.utime(case.site / key, ns=(MTIME, MTIME))
        if node.tag is not None:
            os.setxattr(case.site / key, TAG_NAME, node.tag)
    os.link(case.site / case.key(4), root / "cache" / "twin.py")
    for index in (0, 2, files - 1):
        cache = (case.site / case.key(index)).parent / "__pycache__"
        cache.mkdir(exist_ok=True)
        (cache / f"m{index}.cpython-399.pyc").write_bytes(b"bytecode")
    case.patches.mkdir()
    every = json.dumps([case.key(index) for index in range(files)])
    third = json.dumps([case.key(index) for index in range(0, files, EVERY_THIRD)])
    first, second = json.dumps([case.key(1), case.key(3)]), json.dumps([case.key(2), case.key(4)])
    add = {
        name: f"[[add]]\nfile = {json.dumps(path)}\ncontent = {json.dumps(added(name).decode())}\n"
        for name, path in ADDED.items()
    }
    bodies = {
        "alpha": f'[[edit]]\nfile = {every}\nfind = "return x + x"\nreplace = "return 2 * x"\n',
        "beta": f'[[edit]]\nfile = {third}\nscope = "name"\nmatch = "return $X"\nreplace = "return $X.upper()"\n',
        "gamma": f'[[edit]]\nfile = {first}\nfind = "VALUE = 1\\n"\nreplace = "VALUE = 10\\n"\n{add["gamma"]}'
        f'[[remove]]\nfile = "{TAKEN}"\n',
        "zeta": f"[[edit]]\nfile = {second}\nfind = 'OTHER = \"none\"'\nreplace = 'OTHER = \"zeta\"'\n{add['zeta']}",
    }
    for name, body in bodies.items():
        head = f'schema = 1\nname = "{name}"\nsummary = "the patch {name}"\n[target]\nrequirement = "demo"\n'
        (case.patches / f"{name}.toml").write_text(head + body, encoding="utf-8")
    case.work.mkdir()
    (case.work / "pyproject.toml").write_text(
        f'[tool.patchkit]\npatches = "{case.patches.as_posix()}"\napply = ["alpha", "beta", "gamma"]\n'
    )
    return case


def copy(case: Case, root: Path) -> Case:
    """The same environment elsewhere, links and times included; the hard-linked twin is one of the copy."""
    shutil.copytree(case.root, root, symlinks=True)
    twin = root / "cache" / "twin.py"
    made = case._replace(root=root, site=root / case.site.name)
    if twin.read_bytes() == (made.site / made.key(4)).read_bytes():
        twin.unlink()
        os.link(made.site / made.key(4), twin)
    return made


def strays(case: Case) -> list[str]:
    """Temporary files and empty directories in the package, and what else is not the distribution's."""
    found = []
    for folder, folders, names in os.walk(case.site / "demo"):
        if not folders and not names and os.path.basename(folder) != "__pycache__":
            found.append(folder)
        found += [os.path.join(folder, name) for name in names if name.endswith(".tmp")]
    return found


def wrong_records(case: Case) -> list[str]:
    """The rows of RECORD whose file has not the hash or the size that they say, by the standard library alone."""
    wrong = []
    with open(case.site / "demo-1.0.dist-info" / "RECORD", newline="", encoding="utf-8") as file:
        for path, digest, size in csv.reader(file):
            if digest:
                data = (case.site / path).read_bytes()
                found = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                if digest != f"sha256={found}" or size != str(len(data)):
                    wrong.append(path)
    return wrong


def applied_by_ledger(case: Case) -> frozenset[str]:
    """The patches that the ledger names, read as plain JSON; each file's hash in it must be the file's."""
    path = case.site / ".patchkit" / "ledger.json"
    if not path.exists():
        return frozenset()
    ledger = json.loads(path.read_bytes())
    for key, entry in ledger["files"].items():
        if entry["after"] is None:
            assert not (case.site / key).exists(), f"{key}: not taken away, as the ledger says"
        else:
            data = (case.site / key).read_bytes()
            assert hashlib.sha256(data).hexdigest() == entry["after"]["sha256"], f"{key}: not what the ledger says"
        for sha256 in {content["sha256"] for content in (entry["after"], entry["pristine"]) if content is not None}:
            blob = (case.site / ".patchkit" / "blobs" / sha256).read_bytes()
            assert hashlib.sha256(blob).hexdigest() == sha256, f"blob {sha256}: other bytes"
    return frozenset(patch["name"] for patch in ledger["patches"])
