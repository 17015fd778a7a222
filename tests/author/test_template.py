"""A patch file to start from."""

from __future__ import annotations

import os

import pytest
from support.bench import DEMO, Bench

from patchkit.cli.commands.author import shown
from patchkit.model.load import load_patch


@pytest.mark.parametrize(
    "dist", ["foo bar; rm -rf", "../../etc", "demo>=1.0", "demo[extra]", "-demo", "", "demo.", "a\nb"]
)
def test_a_name_that_no_distribution_can_have(bench: Bench, dist: str) -> None:
    done = bench.json("new", "bad", "--", dist) if dist.startswith("-") else bench.json("new", "bad", dist)
    assert (done.status, done.error["code"]) == (2, "usage")
    assert list(bench.patches.iterdir()) == []


@pytest.mark.parametrize("dist", ["demo", "Demo", "not-here", "Zope.interface", "a"])
def test_what_is_written_loads(bench: Bench, dist: str) -> None:
    done = bench.json("new", "good", dist)
    assert done.status == 0, done.err
    assert (done.json["name"], done.json["site"]["path"]) == ("good", str(bench.site))
    requirement = "demo==1.0" if dist.lower() == "demo" else dist
    assert load_patch(str(bench.patches / "good.toml")).target.requirement == requirement == done.json["requirement"]


def test_a_file_that_no_patch_can_name_is_not_the_example(bench: Bench) -> None:
    bench.install("1.0", {"demo/a:b.py": "", **DEMO})
    assert bench("new", "good", "demo").status == 0
    assert load_patch(str(bench.patches / "good.toml")).edits[0].files == ("demo/core.py",)


def test_metadata_does_not_make_up_a_requirement(bench: Bench) -> None:
    info = bench.site / "demo-1.0.dist-info" / "METADATA"
    info.write_text("Metadata-Version: 2.1\nName: demo\nVersion: 1.0; extra\n\n")
    assert bench.json("new", "bad", "demo").error["code"] == "metadata"
    assert list(bench.patches.iterdir()) == []


def test_a_path_on_another_drive_is_shown_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows has no relative path between drives."""

    def relpath(path: str) -> str:
        raise ValueError("path is on mount 'D:', start on mount 'C:'")

    monkeypatch.setattr(os.path, "relpath", relpath)
    assert shown("D:\\patches\\mine.toml") == "D:\\patches\\mine.toml"
