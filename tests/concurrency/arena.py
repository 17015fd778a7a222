"""A site for many processes at once, and what its files may hold; worked out here by plain text replacement."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import sys
from pathlib import Path

from support.dists import make_dist

ROOT = Path(__file__).resolve().parents[2]
MODULE = "A = 1\nB = 1\nC = 1\n\n\ndef total():\n    return A + B + C\n"
MODULES = tuple(f"demo/m{number}.py" for number in range(6))
#: Patch by patch: file, what is found, what it becomes. Some share files, some add one, some stand alone.
PATCHES: dict[str, list[tuple[str, str, str]]] = {
    "a-first": [("demo/m0.py", "A = 1", "A = 20"), ("demo/m1.py", "A = 1", "A = 20")],
    "b-shared": [("demo/m0.py", "B = 1", "B = 3")],
    "c-shared": [(path, "C = 1", "C = 400") for path in MODULES[:4]],
    "d-alone": [(path, "A = 1", "A = 5") for path in MODULES[4:]],
    "e-adds": [("demo/m5.py", "B = 1", "B = 60"), ("demo/extra/new.py", "", "A = 7\n")],
}


def build(root: Path) -> Path:
    """Make ``root/site-packages`` with ``demo 1.0`` and ``root/patches``; the site's folder."""
    site = root / "site-packages"
    make_dist(site, "demo", "1.0", {"demo/__init__.py": "", **dict.fromkeys(MODULES, MODULE)})
    (root / "patches").mkdir()
    for name, edits in PATCHES.items():
        lines = ["schema = 1", f'name = "{name}"', 'summary = "s"', "[target]", 'requirement = "demo"']
        for path, find, replace in edits:
            if find:
                lines += ["[[edit]]", f'file = "{path}"', f'find = "{find}"', f'replace = "{replace}"']
            else:
                lines += ["[[add]]", f'file = "{path}"', f"content = {json.dumps(replace)}"]
        (root / "patches" / f"{name}.toml").write_text("\n".join(lines) + "\n")
    return site


def contents(applied: frozenset[str]) -> dict[str, bytes]:
    """Every file of ``demo`` with these patches applied."""
    files = dict.fromkeys(MODULES, MODULE)
    for name in applied:
        for path, find, replace in PATCHES[name]:
            files[path] = files[path].replace(find, replace) if find else replace
    return {path: text.encode() for path, text in files.items()}


def possible() -> dict[str, set[bytes]]:
    """Every content that a file may have at any time."""
    found: dict[str, set[bytes]] = {}
    for count in range(len(PATCHES) + 1):
        for names in itertools.combinations(PATCHES, count):
            for path, data in contents(frozenset(names)).items():
                found.setdefault(path, set()).add(data)
    return found


def files_of(site: Path) -> dict[str, bytes]:
    """What ``demo`` holds now, without bytecode."""
    return {
        path.relative_to(site).as_posix(): path.read_bytes()
        for path in sorted((site / "demo").rglob("*"))
        if path.is_file() and path.suffix != ".pyc" and path.name != "__init__.py"
    }


def recorded(site: Path) -> tuple[frozenset[str], dict[str, str]]:
    """The patches that the ledger has, and the hash of each file that it has."""
    path = site / ".patchkit" / "ledger.json"
    if not path.exists():
        return frozenset(), {}
    value = json.loads(path.read_bytes())
    files = {key: entry["after"]["sha256"] for key, entry in value["files"].items()}
    return frozenset(patch["name"] for patch in value["patches"]), files


def assert_whole(site: Path) -> frozenset[str]:
    """The files are what the ledger's patches make of them, its hashes fit, and nothing is left over."""
    applied, hashes = recorded(site)
    files = files_of(site)
    assert files == contents(applied)
    assert hashes == {
        path: hashlib.sha256(files[path]).hexdigest()
        for path in sorted({path for name in applied for path, _, _ in PATCHES[name]})
    }
    blobs = site / ".patchkit" / "blobs"
    wanted = set(hashes.values())
    for name in os.listdir(blobs) if blobs.exists() else ():
        assert hashlib.sha256((blobs / name).read_bytes()).hexdigest() == name
    assert wanted <= (set(os.listdir(blobs)) if blobs.exists() else set())
    left = [path.name for path in site.rglob("*") if "tmp" in path.name or path.name == "journal.json"]
    assert left == []
    return applied


def environment(**more: str) -> dict[str, str]:
    """For a process that runs this patchkit."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]), **more}


def command(root: Path, *words: str) -> list[str]:
    """The command line of one patchkit on the site of :func:`build`."""
    options = ["--site", str(root / "site-packages"), "--patches", str(root / "patches")]
    return [sys.executable, "-m", "patchkit", *options, *words]
