"""Of the user's PYTHONPATH nothing is lost."""

from __future__ import annotations

import os
from pathlib import Path

from support.jobs import arm, job

from patchkit.bench.launching import environment_of, with_evidence
from patchkit.bench.observation import Observation
from patchkit.model.recipe import LogLine


def path_of(folder: Path, theirs: dict[str, str], **engine: object) -> list[str]:
    found = environment_of(job(folder, arm(**engine), env=theirs), {"SET": "by the engine"})
    assert found["SET"] == "by the engine"
    return found["PYTHONPATH"].split(os.pathsep)


def test_what_carries_patches_is_first_then_transplants(tmp_path: Path) -> None:
    env = {"PYTHONPATH": f"/bundle{os.pathsep}/mine", "PATCHKIT_RUN": "/bundle", "SET": "by the user"}
    engine = {"transplants": ("my_rpa", "/abs/other"), "env": {"PYTHONPATH": "/recipe", "SET": "by the recipe"}}
    assert path_of(tmp_path, env, **engine) == [
        "/bundle",
        f"{tmp_path}/my_rpa/_transplant/startup",
        "/abs/other/_transplant/startup",
        "/recipe",
        "/mine",
    ]


def test_without_a_bundle_the_user_s_comes_last(tmp_path: Path) -> None:
    engine = {"transplants": ("my_rpa",)}
    assert path_of(tmp_path, {"PYTHONPATH": "/mine", "PATCHKIT_RUN": ""}, **engine) == [
        f"{tmp_path}/my_rpa/_transplant/startup",
        "/mine",
    ]
    assert path_of(tmp_path, {"PYTHONPATH": "/mine"}) == ["/mine"]


def test_what_was_merged_already_is_not_there_twice(tmp_path: Path) -> None:
    assert path_of(tmp_path, {"PYTHONPATH": "/recipe:/mine"}, env={"PYTHONPATH": "/recipe"}) == ["/recipe", "/mine"]


def test_lines_of_evidence_are_counted_in_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("RPAd-p_128 here\nand RPAd-p_128 RPAd-p_128\nnothing\n")
    seen = Observation(found_lines={"told": 3}, log=str(log))
    evidence = [LogLine("RPAd-p_128"), LogLine("absent")]
    assert with_evidence(seen, evidence).found_lines == {"told": 3, "RPAd-p_128": 2, "absent": 0}
    assert with_evidence(seen, []) == seen
    assert with_evidence(Observation(), evidence) == Observation()
    log.unlink()
    gone = with_evidence(seen, evidence)
    assert (gone.found_lines, gone.notes) == (
        {"told": 3},
        (f"the log cannot be read: No such file or directory: {log}",),
    )
