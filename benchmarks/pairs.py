"""Pairs of adjacent releases: the pinned list, the wheels of it, and what of a wheel a patch could be about."""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from packaging.version import VERSION_PATTERN, Version

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = os.path.join(os.path.dirname(HERE), "tests", "real", "adjacent.json")
"""Small pure Python packages of many kinds: name to releases, oldest first, each with a wheel; neighbours are pairs."""

TRIES = 3
"""How often a download is tried."""


class Pair(NamedTuple):
    """A release, the one after it, and the one before it (None where the list has none)."""

    name: str
    old: str
    new: str
    before: str | None

    def __str__(self) -> str:
        return f"{self.name} {self.old} -> {self.new}"


class Unavailable(Exception):
    """A wheel cannot be had: what pip said last."""


class Member(NamedTuple):
    """A file of a wheel."""

    data: bytes
    executable: bool


def pairs(only: Sequence[str] = ()) -> Iterator[Pair]:
    """The pinned pairs, of the packages named or of all."""
    with open(PACKAGES, encoding="utf-8") as file:
        releases: Mapping[str, Sequence[str]] = json.load(file)["releases"]
    for name, versions in releases.items():
        if not only or name in only:
            for at, (old, new) in enumerate(pairwise(versions)):
                yield Pair(name, old, new, versions[at - 1] if at else None)


def refresh(cache: str, note: Callable[[str], None]) -> None:
    """Rebuild the list: of each package as many of its newest final releases that have a wheel, as it has now."""
    with open(PACKAGES, encoding="utf-8") as file:
        listed = json.load(file)
    for number, (name, versions) in enumerate(listed["releases"].items(), 1):
        note(f"{number} of {len(listed['releases'])} packages: {name}")
        found: list[str] = []
        for version in reversed(_released(name)):
            if len(found) < len(versions):
                try:
                    wheel(cache, name, version)
                except Unavailable as error:
                    note(f"{name} {version} is passed over: {error}")
                else:
                    found.insert(0, version)
        listed["releases"][name] = found
    listed["date"] = datetime.datetime.now(datetime.UTC).date().isoformat()
    rows = (f"    {json.dumps(name)}: {json.dumps(found)}" for name, found in listed["releases"].items())
    with open(PACKAGES, "w", encoding="utf-8") as file:
        file.write(f'{{\n  "date": "{listed["date"]}",\n  "releases": {{\n' + ",\n".join(rows) + "\n  }\n}\n")


def _released(name: str) -> list[str]:
    """The final releases that pip can have as wheels, oldest first."""
    command = [sys.executable, "-m", "pip", "index", "versions", "--only-binary", ":all:", "--ignore-requires-python"]
    done = subprocess.run([*command, name], capture_output=True, text=True, check=True)
    found = re.search(r"^Available versions: (.*)$", done.stdout, re.MULTILINE)
    texts = found[1].split(", ") if found else []
    # Releases from before PEP 440 came have other numbers: 2013d.
    known = [Version(text) for text in texts if re.fullmatch(VERSION_PATTERN, text, re.VERBOSE | re.IGNORECASE)]
    return [str(version) for version in sorted(known)]


def wheel(cache: str, name: str, version: str) -> str:
    """The wheel's path, downloaded once.

    Raises:
        Unavailable: pip failed :data:`TRIES` times.
    """
    folder = os.path.join(cache, f"{name}-{version}")
    for attempt in range(TRIES):
        if os.path.isdir(folder):
            break
        os.makedirs(cache, exist_ok=True)
        time.sleep(attempt)
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            target = os.path.join(scratch, "w")
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
            command += ["--ignore-requires-python", "--disable-pip-version-check", "--dest", target]
            done = subprocess.run([*command, f"{name}=={version}"], capture_output=True, text=True)
            if done.returncode == 0:
                with contextlib.suppress(OSError):  # another process was faster
                    os.rename(target, folder)
            elif attempt == TRIES - 1 or "No matching distribution" in done.stderr:
                raise Unavailable((done.stderr.strip().splitlines() or ["pip failed"])[-1])
    (file,) = os.listdir(folder)
    return os.path.join(folder, file)


def contents(path: str) -> dict[str, Member]:
    """The files of a wheel without its metadata and its ``.data``."""
    with zipfile.ZipFile(path) as archive:
        return {
            info.filename: Member(archive.read(info), bool((info.external_attr >> 16) & 0o111))
            for info in archive.infolist()
            if not info.is_dir() and not info.filename.split("/")[0].endswith((".dist-info", ".data"))
        }


def unpack(path: str, site: str) -> None:
    """A wheel as a site."""
    with zipfile.ZipFile(path) as archive:
        archive.extractall(site)


def write(folder: str, files: Mapping[str, Member]) -> None:
    """Files below a folder, executable where they are marked so."""
    os.makedirs(folder, exist_ok=True)
    for path, member in files.items():
        target = os.path.join(folder, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.write(member.data)
        os.chmod(target, 0o755 if member.executable else 0o644)


def below(folder: str) -> dict[str, bytes]:
    """Every file below a folder but patchkit's own and bytecode."""
    found = {}
    for directory, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in (".patchkit", "__pycache__")]
        for name in names:
            absolute = os.path.join(directory, name)
            with open(absolute, "rb") as file:
                found[os.path.relpath(absolute, folder).replace(os.sep, "/")] = file.read()
    return found
