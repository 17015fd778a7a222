"""Real pull requests of tpu-inference, imported onto released wheels.

The change for the logits was proposed twice: #3363 (three files, against a tree near 0.27.0) and the commit of #3237
that takes the convert out of the runner (two files). Expected bytes come from line numbers that were counted by hand,
or from the next release's wheel, never from patchkit.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from released import patchkit, record_mismatches, wheel_bytes

NAME = "tpu-inference"
UPSTREAM = Path(__file__).parent / "upstream"
PULL = "https://github.com/vllm-project/tpu-inference/pull/"

SAMPLING = "tpu_inference/layers/jax/sample/sampling.py"
MANAGER = "tpu_inference/runner/compilation_manager.py"
RUNNER = "tpu_inference/runner/tpu_runner.py"
CONVERT = "logits = logits.astype(jnp.float32)"
DUMMY = "logits = self._create_dummy_tensor((num_reqs, hsize),"

pytestmark = pytest.mark.real


@pytest.fixture
def patches(tmp_path: Path) -> Path:
    """An empty folder for patches."""
    folder = tmp_path / "patches"
    folder.mkdir()
    return folder


Fetch = Callable[[str, str], Path]
Install = Callable[[Path, Path], Path]


class Change(NamedTuple):
    """At a line (1-based), which begins with ``text``, so many lines go, and so many of the diff's new ones come."""

    line: int
    text: str
    gone: int
    new: int


def new_lines(diff: str, path: str) -> list[bytes]:
    """The lines that a diff adds to one file, in order."""
    text = (UPSTREAM / diff).read_text(encoding="utf-8")
    (part,) = [part for part in re.split(r"^diff --git ", text, flags=re.MULTILINE) if part.startswith(f"a/{path} ")]
    return [f"{line[1:]}\n".encode() for line in part.splitlines() if line[:1] == "+" and line[:3] != "+++"]


def changed(original: bytes, diff: str, path: str, changes: list[Change]) -> bytes:
    """The file with the new lines of the diff at the places that were counted; all of them are used."""
    lines = original.splitlines(keepends=True)
    new = new_lines(diff, path)
    assert sum(change.new for change in changes) == len(new)
    for change in reversed(changes):
        at = change.line - 1
        assert lines[at].decode().strip().startswith(change.text), (path, change)
        lines[at : at + change.gone] = new[len(new) - change.new :]
        del new[len(new) - change.new :]
    return b"".join(lines)


FITS = {
    ("logits-3363.patch", "0.32.0"): {
        SAMPLING: [Change(359, CONVERT, 0, 4)],
        MANAGER: [Change(1013, DUMMY, 0, 3), Change(1014, "jnp.float32,", 1, 1)],
        RUNNER: [Change(2110, CONVERT, 1, 4), Change(2152, CONVERT, 1, 4)],
    },
    ("logits-3237.patch", "0.24.0"): {
        MANAGER: [Change(874, DUMMY, 1, 3)],
        RUNNER: [Change(1624, CONVERT, 1, 0)],
    },
    ("logits-3237.patch", "0.23.0"): {
        MANAGER: [Change(874, DUMMY, 1, 3)],
        RUNNER: [Change(1587, CONVERT, 1, 0)],
    },
}


@pytest.mark.parametrize(("diff", "version"), FITS)
def test_the_change_for_the_logits(
    diff: str, version: str, wheel: Fetch, install: Install, patches: Path, tmp_path: Path
) -> None:
    """Every hunk has its place: applied, exactly the change; reverted, what RECORD says."""
    released = wheel(NAME, version)
    site = install(released, tmp_path / "site-packages")
    made = patchkit(site, patches, "import", str(UPSTREAM / diff), "--name", "logits", "--dist", NAME)
    assert made.status == 0, made.answer["error"]
    wanted = {
        path: changed(wheel_bytes(released, path), diff, path, changes) for path, changes in FITS[diff, version].items()
    }
    assert (made.answer["files"], made.answer["left"]) == (sorted(wanted), [])
    assert PULL + diff[7:11] in made.answer["patch"]
    assert patchkit(site, patches, "apply", "logits").status == 0
    assert sorted(record_mismatches(site)) == sorted(wanted)
    assert {path: (site / path).read_bytes() for path in wanted} == wanted
    assert patchkit(site, patches, "revert", "logits").status == 0
    assert record_mismatches(site) == []


#: Where the two converts of the runner stand in releases whose warm-up #3363 does not fit.
EARLIER = {"0.23.0": (1587, 1625), "0.24.0": (1624, 1662)}


@pytest.mark.parametrize("version", EARLIER)
def test_the_change_for_the_logits_on_an_earlier_release(
    version: str, wheel: Fetch, install: Install, patches: Path, tmp_path: Path
) -> None:
    """The warm-up's dummy is laid out otherwise: that hunk is reported, with its place, and finished by hand."""
    diff = UPSTREAM / "logits-3363.patch"
    released = wheel(NAME, version)
    site = install(released, tmp_path / "site-packages")
    arguments = ("import", str(diff), "--name", "logits", "--dist", NAME)
    refused = patchkit(site, patches, *arguments)
    error = refused.answer["error"]
    assert (refused.status, error["code"], error["failing"], error["total"]) == (4, "hunks", 1, 4)
    (hunk,) = error["hunks"]
    assert (hunk["path"], hunk["candidates"]) == (MANAGER, [])
    place = hunk["places"][0]
    assert place["scope"] == "CompilationManager._precompile_sampling"
    assert place["first"] <= 874 <= 875 <= place["last"]
    assert list(patches.iterdir()) == []

    copy = tmp_path / "copy"
    laid = patchkit(site, patches, *arguments, "--edit", str(copy))
    assert (laid.status, laid.answer["hunks"], len(laid.answer["unplaced"])) == (1, 3, 1)
    assert laid.answer["files"] == sorted([SAMPLING, RUNNER])
    assert list(patches.iterdir()) == []
    manager = (copy / MANAGER).read_text(encoding="utf-8")
    assert manager.encode() == wheel_bytes(released, MANAGER)
    before, dummy, after = manager.partition(f"            {DUMMY} jnp.float32,\n")
    assert before.count("\n") == 873
    by_hand = before + dummy.replace("jnp.float32", "self.runner.model_config.dtype") + after
    (copy / MANAGER).write_text(by_hand, encoding="utf-8")

    assert patchkit(site, patches, "create", "logits", NAME, "--from", str(copy)).status == 0
    assert patchkit(site, patches, "apply", "logits").status == 0
    first, second = EARLIER[version]
    sampling = changed(wheel_bytes(released, SAMPLING), diff.name, SAMPLING, [Change(126, CONVERT, 0, 4)])
    runner = [Change(first, CONVERT, 1, 4), Change(second, CONVERT, 1, 4)]
    wanted = {
        SAMPLING: sampling,
        MANAGER: by_hand.encode(),
        RUNNER: changed(wheel_bytes(released, RUNNER), diff.name, RUNNER, runner),
    }
    assert sorted(record_mismatches(site)) == sorted(wanted)
    assert {path: (site / path).read_bytes() for path in wanted} == wanted
    assert patchkit(site, patches, "revert", "logits").status == 0
    assert record_mismatches(site) == []


@pytest.mark.parametrize(
    ("diff", "version", "becomes", "files"),
    [
        ("fix-2943.patch", "0.23.0", "0.24.0", ["layers/common/attention_metadata.py"]),
        ("fix-3115.patch", "0.24.0", "0.25.0", ["kernels/sparse_core/ragged_gather_v2.py"]),
        (
            "fix-3209.patch",
            "0.25.0",
            "0.26.0",
            ["kernels/ragged_paged_attention/v3/kernel.py", "kernels/ragged_paged_attention/v3/util.py"],
        ),
        ("fix-3313.patch", "0.26.0", "0.27.0", ["utils.py"]),
    ],
)
def test_a_fix_of_the_next_release(
    diff: str,
    version: str,
    becomes: str,
    files: list[str],
    wheel: Fetch,
    install: Install,
    patches: Path,
    tmp_path: Path,
) -> None:
    """The only change of these files between two releases: imported onto the first, they are the second's."""
    site = install(wheel(NAME, version), tmp_path / "site-packages")
    paths = [f"tpu_inference/{file}" for file in files]
    made = patchkit(site, patches, "import", str(UPSTREAM / diff), "--name", "fix", "--dist", NAME)
    assert (made.status, made.answer["files"]) == (0, paths), made.answer["error"]
    assert patchkit(site, patches, "apply", "fix").status == 0
    assert sorted(record_mismatches(site)) == paths
    for path in paths:
        assert (site / path).read_bytes() == wheel_bytes(wheel(NAME, becomes), path)
    assert patchkit(site, patches, "revert", "fix").status == 0
    assert record_mismatches(site) == []
