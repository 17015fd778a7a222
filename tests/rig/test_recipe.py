"""The recipes, and the rig's own patches: they load, and are for the releases that there are recipes of."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from patchkit.model.load import load_patch
from patchkit.ops.lint import lint_file
from patchkit.rig.recipe import ADAPTATIONS, DEFAULT, RECIPES

FOLDER = Path(__file__).parents[2] / "patchkit" / "rig" / "patches"


def test_every_patch_of_the_folder_is_used() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.toml")) == sorted(ADAPTATIONS)


@pytest.mark.parametrize("name", ADAPTATIONS)
def test_the_patches_are_in_order(name: str) -> None:
    assert [finding for finding in lint_file(str(FOLDER / f"{name}.toml")) if finding.level != "note"] == []


@pytest.mark.parametrize("version", RECIPES)
def test_the_patches_are_for_what_a_recipe_installs(version: str) -> None:
    recipe = RECIPES[version]
    assert recipe.version == version
    installed = {"vllm-tpu": version}
    for text in (recipe.torch, *recipe.libraries, *recipe.bare):
        exact = re.fullmatch(r"([\w.-]+)==([\w.]+)", text)
        if exact:
            installed[exact[1]] = exact[2]
    for name in ADAPTATIONS:
        requirement = Requirement(load_patch(str(FOLDER / f"{name}.toml")).target.requirement)
        assert requirement.specifier.contains(installed[requirement.name]), (name, installed[requirement.name])


def test_nothing_is_installed_that_brings_a_tpu_or_a_gpu() -> None:
    for recipe in RECIPES.values():
        assert not [t for t in (*recipe.libraries, *recipe.bare) if re.match(r"libtpu|tpu-info|nvidia|torchvision", t)]


def test_the_default_is_there() -> None:
    assert DEFAULT in RECIPES
