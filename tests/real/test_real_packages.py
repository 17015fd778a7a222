"""Patches on released wheels: applied, checked, applied again and reverted, byte for byte.

The expected bytes never come from patchkit: see :mod:`released`.
"""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from released import (
    Case,
    Refused,
    executable_bits,
    foreign_wheel,
    load_cases,
    patchkit,
    record_mismatches,
    snapshot,
    wheel_bytes,
)

pytestmark = pytest.mark.real

Wheel = Callable[[str, str], Path]
Install = Callable[[Path, Path], Any]


def _releases() -> list[Any]:
    return [
        pytest.param(case, version, id=f"{case.name}-on-{version}", marks=[pytest.mark.slow] if case.slow else [])
        for case in load_cases()
        for version in case.versions
    ]


def _refusals() -> list[Any]:
    return [
        pytest.param(case, refused, id=refused.patch, marks=[pytest.mark.slow] if case.slow else [])
        for case in load_cases()
        for refused in case.refused
    ]


def _install(case: Case, version: str, wheel: Wheel, install: Install, site: Path) -> None:
    if case.wheel_for:
        archive = foreign_wheel(case.distribution, version, case.wheel_for)
    else:
        archive = wheel(case.distribution, version)
    install(archive, site)
    executable_bits(archive, site)
    assert record_mismatches(site) == []


def _expected(case: Case, site: Path, wheel: Wheel) -> dict[str, bytes]:
    if case.becomes is not None:
        released = wheel(case.distribution, case.becomes)
        return {path: wheel_bytes(released, path) for path in case.files}
    out = {}
    for path in case.files:
        data = (site / path).read_bytes()
        for change in case.changes(path):
            data = change.apply(data)
        out[path] = data
    return out


def _parses(data: bytes) -> bool:
    with warnings.catch_warnings(action="ignore"):
        try:
            ast.parse(data)
        except SyntaxError:
            return False
    return True


@pytest.mark.parametrize(("case", "version"), _releases())
def test_a_patch_is_applied_checked_and_reverted(
    case: Case, version: str, wheel: Wheel, install: Install, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    _install(case, version, wheel, install, site)
    original = {path: (site / path).read_bytes() for path in case.files}
    expected = _expected(case, site, wheel)
    assert all(expected[path] != original[path] for path in case.files)
    before = snapshot(site)
    if case.mends_syntax:
        assert [_parses(original[path]) for path in case.files] == [False] * len(case.files)

    status, answer = patchkit(site, case.patches, "apply", case.name)
    assert (status, answer["ok"], answer["error"]) == (0, True, None), answer
    [applied] = answer["patches"]
    assert (applied["name"], applied["action"]) == (case.name, "applied")
    hashes = {file["path"]: (file["before_sha256"], file["after_sha256"]) for file in applied["files"]}
    assert hashes == {
        path: (sha256(original[path]).hexdigest(), sha256(expected[path]).hexdigest()) for path in case.files
    }
    assert {path: (site / path).read_bytes() for path in case.files} == expected
    for matched in case.matched:
        [file] = [file for file in applied["files"] if file["path"] == matched.file]
        matches = [match for edit in file["edits"] for match in edit["matches"]]
        assert [match["line"] for match in matches] == matched.lines[version]
        assert {match["scope"] for match in matches} == {matched.scope}
    if case.mends_syntax:
        assert [_parses(expected[path]) for path in case.files] == [True] * len(case.files)

    after = snapshot(site)
    assert {path for path in before | after if before.get(path) != after.get(path)} == set(case.files)
    assert {path: after[path].mode for path in case.files} == {path: before[path].mode for path in case.files}
    if case.mode is not None:
        assert {after[path].mode for path in case.files} == {int(case.mode, 8)}

    status, answer = patchkit(site, case.patches, "check", case.name)
    assert (status, [(patch["name"], patch["state"]) for patch in answer["patches"]]) == (0, [(case.name, "applied")])

    status, answer = patchkit(site, case.patches, "apply", case.name)
    assert (status, [patch["action"] for patch in answer["patches"]]) == (0, ["unchanged"])
    assert snapshot(site) == after

    status, answer = patchkit(site, case.patches, "revert", case.name)
    assert (status, answer["ok"]) == (0, True), answer
    assert record_mismatches(site) == []
    assert snapshot(site) == before
    assert patchkit(site, case.patches, "check").status == 0


@pytest.mark.parametrize(("case", "refused"), _refusals())
def test_a_patch_that_does_not_fit_writes_nothing(
    case: Case, refused: Refused, wheel: Wheel, install: Install, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    _install(case, case.versions[0], wheel, install, site)
    before = snapshot(site)
    status, answer = patchkit(site, case.patches, "apply", refused.patch)
    assert (status, answer["ok"]) == (refused.status, False), answer
    said = json.dumps(answer["error"], ensure_ascii=False)
    assert [word for word in refused.says if word not in said] == []
    assert snapshot(site) == before
    assert patchkit(site, case.patches, "check").status == 0
