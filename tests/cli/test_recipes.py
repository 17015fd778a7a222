"""``patchkit recipes``, and recipes as ``lint`` and ``schema`` take them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from patchkit.bench.catalog import shipped_recipes
from patchkit.cli.main import main
from patchkit.model.recipe_schema import recipe_schema, recipe_schema_text
from patchkit.model.schema import schema_text

MINE = """\
#:schema ./recipe.schema.json
schema = 1
name = "mine"
summary = "Mine"
description = "To see."
tags = ["t"]
links = ["https://example.org/x"]
patches = ["p"]

[workload]
prompts = ["a"]

[engine]
kind = "tpu-cpu-rig"
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "mine.toml").write_text(MINE, encoding="utf-8")
    return tmp_path


def test_the_list(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "recipes" / "broken.toml").write_text('schema = 1\nname = "broken"\n', encoding="utf-8")
    assert main(["recipes"]) == 0
    rows = capsys.readouterr().out.split("\n")
    assert rows[0].split() == ["broken", "wrong"]
    assert 'required key "engine" is missing' in " ".join(" ".join(rows[1:4]).split())
    assert ["mine", "tpu-cpu-rig", "p"] in [row.split() for row in rows]
    assert any(row.split()[:4] == ["batch-ladder", "vllm", "no", "patch,"] and "4 points" in row for row in rows)
    assert main(["recipes", "--json"]) == 0
    found = {one["name"]: one for one in json.loads(capsys.readouterr().out)["recipes"]}
    mine = found["mine"]
    assert (mine["name"], mine["origin"], mine["summary"]) == ("mine", "folder", "Mine")
    assert (mine["engine"], mine["patches"], mine["points"]) == ("tpu-cpu-rig", ["p"], [""])
    assert (mine["path"], mine["tags"], mine["reason"]) == (str(here / "recipes" / "mine.toml"), ["t"], None)
    assert found["broken"]["engine"] is None
    assert 'required key "engine" is missing' in found["broken"]["reason"]
    assert found["logits-greedy"]["origin"] == "shipped"


def test_one_in_words(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recipes", "mine"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("mine: Mine\nfile: ")
    for row in ("engine: tpu-cpu-rig", "on trial: p", "tags: t", "link: https://example.org/x", "To see."):
        assert row in shown.split("\n")
    assert main(["recipes", "mine", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in document["recipes"]] == ["mine"]
    assert document["recipe"]["points"][0]["treatment"]["patches"] == ["p"]
    assert document["recipe"]["points"][0]["treatment"]["workload"]["max_tokens"] == 128
    assert document["recipe"]["gates"]["metrics"][0]["min_ratio"] == 0.97
    assert "data" not in document["recipe"]
    assert document["copied"] is None


def test_published_figures_are_told(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recipes", "logits-greedy-naive"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "published: output throughput 19,320 tokens/s to 14,258 tokens/s (-26.2 %)" in shown
    assert "published: TTFT 275 ms to 1,209 ms (x4.40)" in shown


def test_a_copy_to_begin_with(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recipes", "block-size", "--copy", "recipes", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    path = here / "recipes" / "block-size.toml"
    assert document["copied"] == str(Path("recipes") / "block-size.toml")
    assert path.read_bytes() == (Path(shipped_recipes()) / "block-size.toml").read_bytes()
    assert (here / "recipes" / "recipe.schema.json").read_text(encoding="utf-8") == recipe_schema_text()
    assert main(["recipes", "block-size"]) == 0
    assert "recipes/block-size.toml" in capsys.readouterr().out.replace("\n", "")
    assert main(["recipes", "block-size", "--copy", "recipes", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "exists"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["recipes", "mime"], "unknown-recipe"),
        (["recipes", "x/mine.toml"], "unknown-recipe"),
        (["recipes", "mine", "--copy", "nowhere"], "no-folder"),
        (["recipes", "--copy", "recipes"], "usage"),
    ],
)
def test_what_is_refused(here: Path, words: list[str], code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == code
    assert error["hint"]


# -- lint --------------------------------------------------------------------------------------------------------------


def test_lint_takes_recipes_by_path_and_by_name(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("recipes/mine.toml", "mine"):
        assert main(["lint", name]) == 0
        assert capsys.readouterr().out == "1 recipe, 0 findings\n"
    assert main(["lint", "mine", "logits-greedy", "--strict"]) == 0
    assert capsys.readouterr().out.endswith("1 patch file, 1 recipe, 0 findings\n")


def test_lint_without_a_name_looks_at_ones_own_recipes(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "--json"]) == 0
    files = json.loads(capsys.readouterr().out)["files"]
    assert [Path(path).name for path in files][-1] == "mine.toml"
    assert not any(path.endswith("-cpu.toml") for path in files)


def test_what_lint_finds_in_a_recipe(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = here / "recipes" / "mine.toml"
    path.write_text(MINE.replace('description = "To see."\n', ""), encoding="utf-8")
    assert main(["lint", "mine", "--strict"]) == 1
    found = capsys.readouterr().out
    assert f"{path}:3: warning: description: no description: say what it is to show [no-description]\n" in found
    assert main(["lint", "mine", "--ignore", "no-description", "--strict"]) == 0
    capsys.readouterr()
    path.write_text(MINE.replace("prompts", "promts"), encoding="utf-8")
    assert main(["lint", "mine"]) == 1
    found = capsys.readouterr().out
    assert f'{path}:11: error: workload: promts: unknown key "promts" (did you mean "prompts"?) [load]\n' in found
    assert found.endswith("1 recipe, 1 finding\n")


def test_lint_of_neither(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "mime", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "unknown-patch"


# -- schema ------------------------------------------------------------------------------------------------------------


def test_the_schema_of_recipes(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "--recipe"]) == 0
    assert capsys.readouterr().out == recipe_schema_text()
    assert main(["schema", "--recipe", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["recipe"], document["patch"]) == (recipe_schema(), None)
    target = here / "recipes" / "recipe.schema.json"
    for _ in range(2):  # anew over an earlier one
        assert main(["schema", "--recipe", "--output", str(target)]) == 0
        assert target.read_text(encoding="utf-8") == recipe_schema_text()
    capsys.readouterr()
    other = here / "patch.schema.json"
    other.write_text(schema_text(), encoding="utf-8")
    assert main(["schema", "--recipe", "--output", str(other), "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == "exists"
    assert error["message"] == f"{other} exists, and is no JSON Schema of recipes"
