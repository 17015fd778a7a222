"""Releases turned into patches, and diffs carried from one release to another, by whole commands, byte for byte."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from released import REPOSITORY, patchkit, record_mismatches, wheel_bytes

NAME = "tpu-inference"

pytestmark = pytest.mark.real


def site_of(wheel: Path, site: Path) -> Path:
    """The wheel, unpacked as an installer would."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (site / next(site.glob("*.dist-info")).name / "INSTALLER").write_text("pip\n")
    return site


def sources(wheel: Path) -> dict[str, bytes]:
    """The Python files of the package in a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {
            name: archive.read(name)
            for name in archive.namelist()
            if name.startswith("tpu_inference/") and name.endswith(".py")
        }


def installed(site: Path, paths: dict[str, bytes]) -> dict[str, bytes]:
    return {path: (site / path).read_bytes() for path in paths if (site / path).is_file()}


@pytest.mark.parametrize(("first", "second"), [("0.23.0", "0.24.0"), ("0.31.0", "0.32.0")])
def test_one_release_as_a_patch_of_the_one_before(
    first: str, second: str, wheel: Callable[[str, str], Path], tmp_path: Path
) -> None:
    """Every changed, new and deleted file of the next release: created, applied, exported to git, reverted."""
    site = site_of(wheel(NAME, first), tmp_path / "site-packages")
    patches = tmp_path / "patches"
    patches.mkdir()
    before, after = sources(wheel(NAME, first)), sources(wheel(NAME, second))
    copy = tmp_path / "copy"
    assert patchkit(site, patches, "edit", NAME, str(copy)).status == 0
    assert installed(copy, before) == before
    # An empty file has no anchor.
    wanted = {path: data for path, data in after.items() if before.get(path) != data and before.get(path) != b""}
    assert len(wanted) > 40
    for path, data in wanted.items():
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        (copy / path).write_bytes(data)
    gone = {path: data for path, data in before.items() if path not in after}
    for path in gone:
        (copy / path).unlink()
    made = patchkit(site, patches, "create", "next", NAME, "--from", str(copy))
    assert made.status == 0, made.answer["error"]
    assert made.answer["removed"] == sorted(gone)
    assert patchkit(site, patches, "apply", "next").status == 0
    assert installed(site, wanted | gone) == wanted
    assert patchkit(site, patches, "export", "next", "--output", str(tmp_path / "next.diff")).status == 0
    assert patchkit(site, patches, "revert", "next").status == 0
    assert record_mismatches(site) == []
    assert installed(site, before | after) == before
    plain = site_of(wheel(NAME, first), tmp_path / "plain")
    subprocess.run(["git", "apply", "--whitespace=nowarn", str(tmp_path / "next.diff")], cwd=plain, check=True)
    assert installed(plain, wanted | gone) == wanted


def test_a_diff_made_for_one_release_on_another(wheel: Callable[[str, str], Path], tmp_path: Path) -> None:
    """Three files whose lines have moved: by content, the diff for 0.24.0 becomes the same change of 0.23.0."""
    later = site_of(wheel(NAME, "0.24.0"), tmp_path / "later")
    earlier = site_of(wheel(NAME, "0.23.0"), tmp_path / "earlier")
    shipped, patches = REPOSITORY / "patches", tmp_path / "patches"
    patches.mkdir()
    diff = tmp_path / "pr.diff"
    options = ("--prefix", "repository/src", "--output", str(diff))
    assert patchkit(later, shipped, "export", "logits-greedy", *options).status == 0
    made = patchkit(earlier, patches, "import", str(diff), "--name", "carried", "--dist", NAME)
    assert made.status == 0, made.answer["error"]
    assert patchkit(earlier, patches, "apply", "carried").status == 0
    changed = {path: wheel_bytes(wheel(NAME, "0.23.0"), path) for path in made.answer["files"]}
    assert len(changed) == 3
    carried = installed(earlier, changed)
    assert patchkit(earlier, patches, "revert", "carried").status == 0
    assert record_mismatches(earlier) == []
    assert patchkit(earlier, shipped, "apply", "logits-greedy").status == 0
    assert installed(earlier, changed) == carried


def test_an_edit_in_an_environment_of_uv_needs_no_network(tmp_path: Path) -> None:
    """The original is in the cache of unpacked wheels."""
    uv = shutil.which("uv") or str(Path(sys.executable).parent / "uv")
    environment = {**os.environ, "UV_CACHE_DIR": str(tmp_path / "uv")}
    target = tmp_path / "target"
    command = [uv, "pip", "install", "--quiet", "--no-deps", "--target", str(target), "idna==3.10"]
    subprocess.run(command, check=True, env=environment)
    file = target / "idna" / "core.py"
    original = file.read_bytes()
    assert original.count(b"_virama_combining_class = 9\n") == 1
    file.unlink()  # an editor writes a new file; writing in place would go to the cache, through the hard link
    file.write_bytes(original.replace(b"_virama_combining_class = 9\n", b"_virama_combining_class = 8 + 1\n"))
    done = subprocess.run(
        [sys.executable, "-m", "patchkit", "--site", str(target), "--json", "create", "mine", "idna"],
        cwd=tmp_path,
        env={**environment, "PYTHONPATH": str(REPOSITORY), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""},
        capture_output=True,
        text=True,
    )
    answer = json.loads(done.stdout)
    assert done.returncode == 0, answer["error"]
    assert answer["originals"] == ["uv cache"]
    assert patchkit(target, tmp_path / "patches", "revert", "mine").status == 0
    assert file.read_bytes() == original
