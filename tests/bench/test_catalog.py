"""Where recipes are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from patchkit.bench.catalog import find_recipe, path_of, recipe_folders, shipped_recipes
from patchkit.errors import PatchFileError, UsageError
from patchkit.ops.catalog import names_in

TEXT = 'schema = 1\nname = "{name}"\nsummary = "{summary}"\npatches = ["p"]\n[workload]\nprompts = ["a"]\n'
TEXT += '[engine]\nkind = "tpu-cpu-rig"\n'


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder: Path, name: str, summary: str = "s") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.toml"
    path.write_text(TEXT.format(name=name, summary=summary), encoding="utf-8")
    return path


def test_the_shipped_ones_are_there(here: Path) -> None:
    recipe = find_recipe("logits-greedy-cpu")
    assert recipe.name == "logits-greedy-cpu"
    assert recipe.path == str(Path(shipped_recipes()) / "logits-greedy-cpu.toml")


def test_the_first_folder_that_has_it_wins(here: Path) -> None:
    (here / "pyproject.toml").write_text('[tool.patchkit]\nrecipes = ["mine", "more"]\n', encoding="utf-8")
    for folder in ("given", "mine", "more", "recipes"):
        write(here / folder, "logits-greedy-cpu", folder)
        write(here / folder, f"only-{folder}", folder)

    def summary(name: str, *folders: str) -> str:
        return find_recipe(name, folders).summary

    assert summary("logits-greedy-cpu", "given") == "given"
    assert summary("logits-greedy-cpu") == "mine"
    assert (summary("only-more"), summary("only-recipes")) == ("more", "recipes")
    assert summary("recipes/logits-greedy-cpu.toml") == "recipes"
    folders = recipe_folders(["given"])
    assert [folder.origin for folder in folders] == ["--recipes", "project", "project", "folder", "shipped"]
    names = [(name, origin) for name, _, origin in names_in(folders)]
    assert names[:6] == [
        ("logits-greedy-cpu", "--recipes"),
        ("only-given", "--recipes"),
        ("only-mine", "project"),
        ("only-more", "project"),
        ("only-recipes", "folder"),
        (names[5][0], "shipped"),
    ]


def test_the_project_is_looked_for_upwards(here: Path) -> None:
    (here / "pyproject.toml").write_text("[tool.patchkit]\n", encoding="utf-8")
    path = write(here / "recipes", "mine")
    (here / "deep" / "er").mkdir(parents=True)
    assert path_of("mine", start=str(here / "deep" / "er")) == str(path)
    assert find_recipe("mine", start=str(here / "deep")).name == "mine"


def test_what_is_not_there(here: Path) -> None:
    with pytest.raises(UsageError) as caught:
        find_recipe("logits-gredy-cpu")
    assert caught.value.code == "unknown-recipe"
    assert caught.value.message == "no recipe named logits-gredy-cpu (did you mean logits-greedy-cpu?)"
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("looked in recipes, ")
    assert caught.value.details["suggestion"] == "logits-greedy-cpu"
    with pytest.raises(UsageError, match=r"no recipe file a/b\.toml"):
        find_recipe("a/b.toml")
    with pytest.raises(UsageError) as caught:
        find_recipe("x", ["nowhere"])
    assert caught.value.code == "no-folder"


def test_a_wrong_one_names_the_way_out(here: Path) -> None:
    path = write(here / "recipes", "mine")
    path.write_text(path.read_text().replace("patches", "patchs"), encoding="utf-8")
    with pytest.raises(PatchFileError) as caught:
        find_recipe("mine")
    assert f"{path}:4: unknown key" in caught.value.message
    assert caught.value.hint == f"correct it there; `patchkit lint {path}` says whether it is right then"
