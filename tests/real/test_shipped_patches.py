"""Every shipped patch on every release it speaks of: applied, checked, reverted, through the command line.

The outcomes and the expected bytes (:mod:`hunks`) are written by hand; originals are witnessed by the wheels' RECORD.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hunks import KERNEL, RUNNER, SAMPLING, WARMUP, expected
from released import REPOSITORY, Outcome, record_mismatches, snapshot, wheel_bytes

pytestmark = pytest.mark.real

GREEDY, NAIVE, BLOCK = "logits-greedy", "logits-greedy-naive", "rpa-block-size"
NOT_NEEDED = "0.18.0 and older do not need it"
NO_CONVERSION = "exists from 0.19.0 on"
SUPERSEDED = "RPA_V3_DECODE_BLOCK_SIZES"

# What apply does: None where it applies, otherwise words of the advice that it refuses with.
OUTCOMES: dict[str, dict[str, str | None]] = {
    "0.18.0": {GREEDY: NOT_NEEDED, NAIVE: NO_CONVERSION, BLOCK: None},
    "0.19.0": {GREEDY: None, NAIVE: None, BLOCK: None},
    "0.20.0": {GREEDY: None, NAIVE: None, BLOCK: None},
    "0.21.0": {GREEDY: None, NAIVE: None, BLOCK: None},
    "0.22.1": {GREEDY: None, NAIVE: None, BLOCK: None},
    "0.23.0": {GREEDY: None, NAIVE: None, BLOCK: None},
    "0.24.0": {GREEDY: None, NAIVE: None, BLOCK: None},
    "0.25.0": {GREEDY: None, NAIVE: None, BLOCK: None},
    "0.26.0": {GREEDY: None, NAIVE: None, BLOCK: None},
    "0.27.0": {GREEDY: None, NAIVE: None, BLOCK: None},
    "0.28.0": {GREEDY: None, NAIVE: None, BLOCK: None},
    "0.29.0": {GREEDY: None, NAIVE: None, BLOCK: None},
    "0.30.0": {GREEDY: None, NAIVE: None, BLOCK: SUPERSEDED},
    "0.31.0": {GREEDY: None, NAIVE: None, BLOCK: SUPERSEDED},
    "0.32.0": {GREEDY: None, NAIVE: None, BLOCK: SUPERSEDED},
}
FILES = {GREEDY: [SAMPLING, WARMUP, RUNNER], NAIVE: [SAMPLING, RUNNER], BLOCK: [KERNEL]}

# Where the edits land: line of the first character of each match, by file, in the order of the edits.
LINES: dict[tuple[str, str], dict[str, list[int]]] = {
    (GREEDY, "0.23.0"): {RUNNER: [1587, 1625, 1556], SAMPLING: [126, 105], WARMUP: [874, 877, 858, 858]},
    (GREEDY, "0.24.0"): {RUNNER: [1624, 1662, 1593], SAMPLING: [126, 105], WARMUP: [874, 877, 858, 858]},
    (GREEDY, "0.32.0"): {RUNNER: [2110, 2152, 2077], SAMPLING: [359, 333], WARMUP: [1013, 1017, 996, 996]},
    (NAIVE, "0.24.0"): {RUNNER: [1624, 1593], SAMPLING: [126, 105]},
}

Wheel = Callable[[str, str], Path]
Install = Callable[[Path, Path], Path]


def run(site: Path, *arguments: str) -> Outcome:
    """``python -m patchkit --site SITE ... --json`` outside every project: no patches to find but the shipped ones."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PATCHKIT_", "VIRTUAL_ENV"))}
    environment["PYTHONPATH"] = str(REPOSITORY)
    command = [sys.executable, "-m", "patchkit", "--site", str(site), *arguments, "--json"]
    done = subprocess.run(command, cwd=site.parent, env=environment, capture_output=True, text=True, encoding="utf-8")
    assert done.stdout, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return Outcome(done.returncode, answer)


def apply(site: Path, *names: str) -> Outcome:
    return run(site, "apply", *(["--allow-known-bad"] if NAIVE in names else []), *names)


def states(site: Path) -> dict[str, str]:
    return {patch["name"]: patch["state"] for patch in run(site, "check").answer["patches"]}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return tmp_path / "site-packages"


def cases(applies: bool) -> list[Any]:
    return [
        pytest.param(patch, version, advice, id=f"{patch}-on-{version}")
        for version, outcomes in OUTCOMES.items()
        for patch, advice in outcomes.items()
        if (advice is None) == applies
    ]


@pytest.mark.parametrize(("patch", "version", "advice"), cases(applies=True))
def test_it_applies_is_seen_and_goes_back(
    patch: str, version: str, advice: None, site: Path, wheel: Wheel, install: Install
) -> None:
    archive = wheel("tpu-inference", version)
    install(archive, site)
    before = snapshot(site)
    wanted = expected(patch, version, lambda path: wheel_bytes(archive, path))
    assert sorted(wanted) == FILES[patch]

    done = apply(site, patch)
    assert done.status == 0, done.answer
    (entry,) = done.answer["patches"]
    assert (entry["name"], entry["action"]) == (patch, "applied")
    assert sorted(file["path"] for file in entry["files"]) == FILES[patch]
    for path, data in wanted.items():
        assert (site / path).read_bytes().decode() == data.decode()
        compile(data, path, "exec")
    after = snapshot(site)
    assert sorted(path for path in before if before[path] != after[path]) == FILES[patch]
    assert sorted(after) == sorted(before)
    assert sorted(record_mismatches(site)) == FILES[patch]
    if (patch, version) in LINES:
        for file in entry["files"]:
            lines = [match["line"] for edit in file["edits"] for match in edit["matches"]]
            assert lines == LINES[patch, version][file["path"]]

    assert states(site) == {patch: "applied"}
    again = apply(site, patch)
    assert (again.status, again.answer["patches"][0]["action"]) == (0, "unchanged")

    assert run(site, "revert", patch).status == 0
    assert record_mismatches(site) == []
    assert snapshot(site) == before


@pytest.mark.parametrize(("patch", "version", "advice"), cases(applies=False))
def test_it_is_refused_with_advice(
    patch: str, version: str, advice: str, site: Path, wheel: Wheel, install: Install
) -> None:
    install(wheel("tpu-inference", version), site)
    before = snapshot(site)
    done = apply(site, patch)
    assert done.status == 3
    assert advice in json.dumps(done.answer["error"])
    assert snapshot(site) == before


def test_the_known_bad_patch_needs_to_be_allowed(site: Path, wheel: Wheel, install: Install) -> None:
    install(wheel("tpu-inference", "0.24.0"), site)
    before = snapshot(site)
    done = run(site, "apply", NAIVE)
    assert done.status == 3
    assert "known-bad" in json.dumps(done.answer["error"])
    assert snapshot(site) == before


@pytest.mark.parametrize(("first", "second"), [(GREEDY, NAIVE), (NAIVE, GREEDY)])
def test_the_two_logits_patches_exclude_each_other(
    first: str, second: str, site: Path, wheel: Wheel, install: Install
) -> None:
    install(wheel("tpu-inference", "0.24.0"), site)
    before = snapshot(site)
    assert apply(site, first, second).status == 3
    assert snapshot(site) == before
    assert apply(site, first).status == 0
    between = snapshot(site)
    done = apply(site, second)
    assert done.status == 3
    assert first in json.dumps(done.answer["error"])
    assert snapshot(site) == between


def test_both_good_patches_together_and_each_taken_out_alone(site: Path, wheel: Wheel, install: Install) -> None:
    archive = wheel("tpu-inference", "0.24.0")
    install(archive, site)
    before = snapshot(site)
    assert apply(site, GREEDY, BLOCK).status == 0
    assert sorted(record_mismatches(site)) == sorted(FILES[GREEDY] + FILES[BLOCK])
    assert run(site, "revert", GREEDY).status == 0
    assert record_mismatches(site) == FILES[BLOCK]
    assert states(site) == {BLOCK: "applied"}
    assert run(site, "revert", "--all").status == 0
    assert snapshot(site) == before


@pytest.mark.parametrize("path", FILES[GREEDY])
def test_a_third_of_the_logits_patch_is_never_written(path: str, site: Path, wheel: Wheel, install: Install) -> None:
    """Where a part no longer fits, the other two stay out: a part alone is the known regression."""
    install(wheel("tpu-inference", "0.24.0"), site)
    drifted = (site / path).read_bytes().replace(b"jnp.float32", b"jnp.dtype('float32')")
    (site / path).write_bytes(drifted)
    (record,) = site.glob("*.dist-info/RECORD")  # a release that moved on, not a file that somebody edited
    digest = base64.urlsafe_b64encode(hashlib.sha256(drifted).digest()).rstrip(b"=").decode()
    rows = record.read_text(encoding="utf-8").splitlines()
    rows = [f"{path},sha256={digest},{len(drifted)}" if row.startswith(f"{path},") else row for row in rows]
    record.write_text("\n".join(rows) + "\n", encoding="utf-8")
    assert record_mismatches(site) == []
    before = snapshot(site)
    assert apply(site, GREEDY).status == 4
    assert snapshot(site) == before


@pytest.mark.parametrize("patch", FILES)
def test_the_patch_file_is_sound_without_a_site(patch: str, site: Path) -> None:
    site.mkdir()
    done = run(site, "lint", patch)
    assert done.status == 0, done.answer


@pytest.mark.parametrize("patch", FILES)
def test_every_claim_in_a_patch_file_is_its_own(patch: str) -> None:
    """Names, tags and conflicts that the commands rely on."""
    data = tomllib.loads((REPOSITORY / "patches" / f"{patch}.toml").read_text(encoding="utf-8"))
    assert data["name"] == patch
    assert ("known-bad" in data.get("tags", [])) == (patch == NAIVE)
    assert data["target"].get("conflicts", []) == {GREEDY: [NAIVE], NAIVE: [GREEDY], BLOCK: []}[patch]
    assert {edit["file"] for edit in data["edit"]} == set(FILES[patch])
