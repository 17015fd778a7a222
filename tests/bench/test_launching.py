"""Of the user's PYTHONPATH nothing is lost."""

from __future__ import annotations

import os
from pathlib import Path

from support.jobs import arm, job

from patchkit.bench.launching import environment_of


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
