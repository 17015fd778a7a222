"""Pairs of adjacent releases, by ``create`` and by ``import`` of git's diff: the next release, byte for byte, and back.

A sample of those of ``benchmarks/authoring.py``, one of each kind of difference that they have.
"""

from __future__ import annotations

import json
import subprocess
import zipfile
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path

import pytest
from released import patchkit, record_mismatches

RELEASES: Mapping[str, list[str]] = json.loads((Path(__file__).parent / "adjacent.json").read_text())["releases"]

PAIRS = [
    ("attrs", "25.4.0"),  # hunks that stand twice; told apart by git's names of the file
    ("beautifulsoup4", "4.13.3"),  # new methods; text in a docstring
    ("cachetools", "8.0.0"),  # many like classes
    ("docopt-ng", "0.8.1"),  # a package
    ("idna", "3.19"),  # tables of like lines; letters that are newer than this Python's Unicode
    ("more-itertools", "11.1.0"),  # long functions, stubs
    ("pluggy", "1.2.0"),  # a new file without content
    ("requests", "2.33.1"),  # typed anew
    ("sqlparse", "0.5.3"),  # new files
    (
        "tabulate",
        "0.8.10",
    ),  # a module becomes a package: it is taken away, and what comes lies outside of what was installed
    ("toolz", "0.11.1"),  # a file without a line break at its end
    ("tqdm", "4.68.3"),  # pictures outside of the package
]

pytestmark = [pytest.mark.real, pytest.mark.slow]


def test_the_pairs_are_enough() -> None:
    assert len(RELEASES) >= 25
    assert sum(len(versions) - 1 for versions in RELEASES.values()) >= 200


def contents(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel but its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
        return {name: archive.read(name) for name in names if ".dist-info/" not in name}


def cannot_be(path: str, old: Mapping[str, bytes], new: Mapping[str, bytes]) -> bool:
    """Whether no patch can hold the difference: the file is binary, or a new one outside of what was installed."""
    if path not in new:
        return False
    if b"\0" in new[path]:
        return True
    return path not in old and not any(other.startswith(f"{path.split('/')[0]}/") for other in old)


@pytest.mark.parametrize(("name", "first"), PAIRS)
def test_a_release_becomes_the_next_one_and_comes_back(
    name: str, first: str, wheel: Callable[[str, str], Path], tmp_path: Path
) -> None:
    second = dict(pairwise(RELEASES[name]))[first]
    old, new = contents(wheel(name, first)), contents(wheel(name, second))
    site, copy, patches = tmp_path / "site-packages", tmp_path / "copy", tmp_path / "patches"
    patches.mkdir()
    with zipfile.ZipFile(wheel(name, first)) as archive:
        archive.extractall(site)
    differing = {path for path in old.keys() | new.keys() if old.get(path) != new.get(path)}
    left = {path for path in differing if cannot_be(path, old, new)}
    assert patchkit(site, patches, "edit", name, str(copy)).status == 0
    for path in differing:
        for root, files in ((copy, new), (tmp_path / "a", old), (tmp_path / "b", new)):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).unlink(missing_ok=True)
            if path in files:
                (root / path).write_bytes(files[path])
    created = patchkit(site, patches, "create", "created", name, "--from", str(copy))
    command = ["git", "diff", "--no-index", "--no-renames", "--no-ext-diff", "--no-prefix", "a", "b"]
    diff = subprocess.run(command, cwd=tmp_path, capture_output=True).stdout
    (tmp_path / "pair.diff").write_bytes(diff)
    imported = patchkit(site, patches, "import", str(tmp_path / "pair.diff"), "--name", "imported", "--dist", name)
    for made in (created, imported):
        if left == differing:
            assert (made.status, made.answer["error"]["code"]) == (4, "nothing-changed")
            assert {one["path"] for one in made.answer["error"]["left"]} == left
            continue
        assert made.status == 0, made.answer["error"]
        assert {one["path"] for one in made.answer["left"]} == left
        patch = made.answer["name"]
        linted = patchkit(site, patches, "lint", "--strict", patch)
        assert linted.status == 0, linted.answer["findings"]
        assert patchkit(site, patches, "apply", patch).status == 0
        for path in differing:
            files = old if path in left else new
            assert (site / path).is_file() == (path in files)
            assert path not in files or (site / path).read_bytes() == files[path]
        assert patchkit(site, patches, "revert", patch).status == 0
        assert record_mismatches(site) == []
        assert not any((site / path).exists() for path in new.keys() - old.keys())
