"""Whole experiments on the real engine (minutes): the rig's own recipes, as they are shipped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.documents import ROOT
from support.rigs import real_rig

from patchkit.ops.check import check_site
from patchkit.rig.recipe import ADAPTATIONS
from patchkit.rig.run import LABEL, site_of_rig

pytestmark = [pytest.mark.rig, pytest.mark.real, pytest.mark.slow]
Rebench = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def rebench(tmp_path: Path) -> Rebench:
    """The command on the rig; afterwards the site must have the rig's own patches, and no others."""
    rig = real_rig()

    def rebench(*words: str, stays: tuple[str, ...] = ()) -> tuple[int, dict[str, Any]]:
        command = [sys.executable, "-m", "patchkit", "--python", rig.python, "--json", "rebench", *words]
        command += ["--pairs-min", "2", "--pairs-max", "2", "--runs", str(tmp_path / "runs")]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        report: dict[str, Any] = json.loads(done.stdout)["report"]
        states = check_site(site_of_rig(rig)).states
        found = [state.name for state in states if state.clean]
        if stays:
            words_of_revert = [sys.executable, "-m", "patchkit", "--python", rig.python, "revert", *stays]
            subprocess.run(words_of_revert, cwd=tmp_path, env=environment, check=True, capture_output=True)
        assert found == [*ADAPTATIONS, *stays]
        assert report["label"] == LABEL
        return done.returncode, report

    return rebench


def test_the_naive_patch_is_refused_in_the_preflight(rebench: Rebench) -> None:
    status, report = rebench("logits-greedy-naive-cpu")
    assert (status, report["verdict"]) == (6, "invalid")
    assert "jit(sample) was compiled where compilation is forbidden" in report["reason"]
    assert "the baseline passes the same preflight" in report["reason"]
    assert {run["kind"] for run in report["runs"]} == {"preflight"}


def test_without_the_preflight_it_is_found_by_the_count_of_compilations(rebench: Rebench) -> None:
    status, report = rebench("logits-greedy-naive-cpu", "--no-preflight")
    assert (status, report["verdict"]) == (6, "invalid")
    failed = [check["name"] for check in report["points"][0]["checks"] if check["state"] == "failed"]
    assert failed == ["compilations"]
    assert "sample" in report["reason"]


def test_the_patch_that_is_right_passes_with_the_same_tokens(rebench: Rebench) -> None:
    status, report = rebench("logits-greedy-cpu", stays=("logits-greedy",))
    assert (status, report["verdict"], report["aftermath"]["action"]) == (0, "pass", "kept")
    (tokens,) = [check for check in report["points"][0]["checks"] if check["name"] == "output-identical"]
    assert tokens["state"] == "held"
