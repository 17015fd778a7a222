"""``create`` and ``import`` on pairs of adjacent releases of real packages: what share becomes a patch, and why not.

For each pair the old wheel is unpacked as a site. ``create`` gets a scratch copy that holds the new release's files;
``import`` gets the unified diff of the two, made by git. The patch must lint without a finding, turn every file of the
old release that can be part of it into the new one, and revert to RECORD's hashes. Deleted, binary and non-UTF-8 new
files cannot be part of a patch: they are counted, and their pairs are not failures.

It needs git, and pip with an index. Wheels are kept in the folder of ``--cache``.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from packaging.version import Version

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = os.path.join(os.path.dirname(HERE), "tests", "real", "adjacent.json")
"""Name to number of pairs: small pure Python packages of many kinds."""


class Result(NamedTuple):
    """How one pair went: "" or why not, for each of the two commands, and what could not be part of a patch."""

    pair: str
    create: str
    imported: str
    edits: int
    left: int


def main() -> None:
    """Print the shares, and every failure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", default=os.path.join(tempfile.gettempdir(), "patchkit-adjacent"))
    parser.add_argument("--only", metavar="NAME", help="one package")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    with open(PACKAGES, encoding="utf-8") as file:
        wanted: Mapping[str, int] = json.load(file)
    pairs = []
    for name, count in wanted.items():
        if arguments.only in (None, name):
            versions = released(name)
            pairs += [(name, a, b) for a, b in list(pairwise(versions))[-count:]]
    print(f"{len(pairs)} pairs of {len(wanted)} packages", file=sys.stderr)
    results = []
    with concurrent.futures.ProcessPoolExecutor(arguments.jobs) as pool:
        futures = [pool.submit(attempt, arguments.cache, *pair) for pair in pairs]
        for number, future in enumerate(concurrent.futures.as_completed(futures), 1):
            results.append(future.result())
            print(f"\r{number} of {len(futures)}", end="", file=sys.stderr)
    print(file=sys.stderr)
    report(sorted(results))


def report(results: list[Result]) -> None:
    """The shares; failures with their reasons."""
    for what in ("create", "imported"):
        fine = [one for one in results if not getattr(one, what)]
        print(f"{what:9} {len(fine)} of {len(results)} ({100 * len(fine) / len(results):.1f} %)")
        reasons = collections.Counter(getattr(one, what).partition(":")[0] for one in results if getattr(one, what))
        for reason, count in reasons.most_common():
            print(f"          {count:4} {reason}")
    print(
        f"edits     {sum(one.edits for one in results)}; files that no patch can hold: {sum(r.left for r in results)}"
    )
    for one in results:
        for what in ("create", "imported"):
            if getattr(one, what):
                print(f"  {one.pair} {what}: {getattr(one, what)[:300]}")


def released(name: str) -> list[str]:
    """The final releases that pip can have as wheels, oldest first."""
    command = [sys.executable, "-m", "pip", "index", "versions", "--only-binary", ":all:", "--ignore-requires-python"]
    done = subprocess.run([*command, name], capture_output=True, text=True, check=True)
    found = re.search(r"^Available versions: (.*)$", done.stdout, re.MULTILINE)
    return [str(v) for v in sorted(Version(text) for text in found[1].split(", "))] if found else []


def wheel(cache: str, name: str, version: str) -> str:
    """The wheel's path, downloaded once."""
    folder = os.path.join(cache, f"{name}-{version}")
    if not os.path.isdir(folder):
        os.makedirs(cache, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            target = os.path.join(scratch, "w")
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
            command += ["--ignore-requires-python", "--disable-pip-version-check", "--dest", target]
            subprocess.run([*command, f"{name}=={version}"], check=True, capture_output=True)
            with contextlib.suppress(OSError):  # another process was faster
                os.rename(target, folder)
    (file,) = os.listdir(folder)
    return os.path.join(folder, file)


def contents(path: str) -> dict[str, bytes]:
    """The files of a wheel's packages."""
    with zipfile.ZipFile(path) as archive:
        return {
            name: archive.read(name)
            for name in archive.namelist()
            if not name.endswith("/") and not name.split("/")[0].endswith((".dist-info", ".data"))
        }


def attempt(cache: str, name: str, first: str, second: str) -> Result:
    """Both commands on one pair."""
    pair = f"{name} {first} -> {second}"
    try:
        old, new = contents(wheel(cache, name, first)), contents(wheel(cache, name, second))
    except (subprocess.CalledProcessError, zipfile.BadZipFile) as error:
        return Result(pair, f"no wheel: {error}", f"no wheel: {error}", 0, 0)
    can = {path: data for path, data in new.items() if old.get(path) != data and expressible(path, old, data)}
    left = len(old.keys() - new.keys()) + len([p for p in new if old.get(p) != new[p]]) - len(can)
    if not can:
        return Result(pair, "", "", 0, left)
    with tempfile.TemporaryDirectory() as folder:
        site = os.path.join(folder, "site-packages")
        with zipfile.ZipFile(wheel(cache, name, first)) as archive:
            archive.extractall(site)
        created, edits = by_create(folder, site, name, old, can)
        imported, _ = by_import(folder, site, name, old, can)
    return Result(pair, created, imported, edits, left)


def expressible(path: str, old: Mapping[str, bytes], data: bytes) -> bool:
    """Whether a patch can hold the change: text, and a new file in a package that is there, in UTF-8 with LF."""
    before = old.get(path)
    if b"\0" in data or path.endswith((".pyc", ".so")):
        return False
    if before is None:
        try:
            data.decode("utf-8")
        except UnicodeDecodeError:
            return False
        top = path.partition("/")[0]
        return b"\r" not in data and "/" in path and any(other.startswith(f"{top}/") for other in old)
    return before != b"" and b"\0" not in before


def patchkit(folder: str, site: str, *arguments: str) -> tuple[int, dict[str, Any]]:
    """One command, in a process of its own."""
    command = [sys.executable, "-m", "patchkit", "--site", site, "--patches", os.path.join(folder, "patches"), "--json"]
    environment = {**os.environ, "PATCHKIT_CACHE": os.path.join(folder, "cache")}
    done = subprocess.run([*command, *arguments], cwd=folder, env=environment, capture_output=True, text=True)
    return done.returncode, json.loads(done.stdout) if done.stdout else {"error": {"message": done.stderr}}


def by_create(folder: str, site: str, name: str, old: Mapping[str, bytes], can: Mapping[str, bytes]) -> tuple[str, int]:
    """The pair by ``edit`` and ``create``."""
    os.makedirs(os.path.join(folder, "patches"))
    copy = os.path.join(folder, "copy")
    status, answer = patchkit(folder, site, "edit", name, copy)
    if status:
        return f"edit: {answer['error']['message']}", 0
    for path, data in can.items():
        target = os.path.join(copy, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.write(data)
    status, answer = patchkit(folder, site, "create", "made", name, "--from", copy)
    if status:
        return f"{answer['error']['code']}: {answer['error']['message']}", 0
    return whole(folder, site, "made", old, can), answer["edits"]


def by_import(folder: str, site: str, name: str, old: Mapping[str, bytes], can: Mapping[str, bytes]) -> tuple[str, int]:
    """The pair by git's diff and ``import``."""
    for side, files in (("a", {path: old[path] for path in can if path in old}), ("b", can)):
        for path, data in files.items():
            target = os.path.join(folder, "diff", side, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "wb") as file:
                file.write(data)
    os.makedirs(os.path.join(folder, "diff", "a"), exist_ok=True)
    command = ["git", "diff", "--no-index", "--no-renames", "--text", "--no-ext-diff", "--no-prefix", "a", "b"]
    done = subprocess.run(command, cwd=os.path.join(folder, "diff"), capture_output=True)
    with open(os.path.join(folder, "pair.diff"), "wb") as file:
        file.write(done.stdout)
    status, answer = patchkit(folder, site, "import", "pair.diff", "--name", "pulled", "--dist", name)
    if status:
        return f"{answer['error']['code']}: {answer['error']['message']}", 0
    return whole(folder, site, "pulled", old, can), answer["edits"]


def whole(folder: str, site: str, patch: str, old: Mapping[str, bytes], can: Mapping[str, bytes]) -> str:
    """Lint, apply, compare, revert, compare; "" when all is right."""
    status, answer = patchkit(folder, site, "lint", "--strict", patch)
    if status:
        told = [finding for finding in answer.get("findings", ()) if finding["level"] != "note"]
        return f"lint: {told[:1] or answer['error']}"
    status, answer = patchkit(folder, site, "apply", patch)
    if status:
        return f"apply, {answer['error']['code']}: {answer['error']['message']}"
    wrong = [path for path, data in can.items() if read(site, path) != data]
    if wrong:
        return f"other bytes: {wrong[0]}"
    status, answer = patchkit(folder, site, "revert", patch)
    if status:
        return f"revert, {answer['error']['code']}: {answer['error']['message']}"
    wrong = [path for path in can if read(site, path) != old.get(path)]
    return f"not back: {wrong[0]}" if wrong else ""


def read(site: str, path: str) -> bytes | None:
    """A file of the site; None where there is none."""
    try:
        with open(os.path.join(site, path), "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


if __name__ == "__main__":
    main()
