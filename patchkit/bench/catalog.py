"""Where recipes are found by name: folders named, the project's, ``./recipes``, and those that come with patchkit."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from patchkit.errors import PatchFileError, UsageError
from patchkit.ops.catalog import Folder, each_once, names_in, refuse_missing

if TYPE_CHECKING:
    from patchkit.model.recipe import Recipe


def find_recipe(name: str, folders: Sequence[str] = (), *, start: str | None = None) -> Recipe:
    """The recipe ``name``, which may also be a path to a ``.toml`` file, loaded.

    Args:
        name: The name or path.
        folders: Folders that are searched first.
        start: The directory that the project is looked for from; the current one by default.

    Raises:
        UsageError: ``unknown-recipe``: there is none; the nearest names are suggested.
        PatchFileError: It is wrong, or the project's ``[tool.patchkit]`` is.
    """
    from patchkit.model.load_recipe import load_recipe

    path = path_of(name, folders, start=start)
    try:
        return load_recipe(path)
    except PatchFileError as error:
        error.hint = error.hint or f"correct it there; `patchkit lint {path}` says whether it is right then"
        raise


def path_of(name: str, folders: Sequence[str] = (), *, start: str | None = None) -> str:
    """The file of the recipe ``name``, or the path ``name`` itself.

    Raises:
        UsageError: ``unknown-recipe``.
        PatchFileError: The project's ``[tool.patchkit]`` is wrong.
    """
    if is_path(name):
        if os.path.isfile(name):
            return name
        raise UsageError(
            f"no recipe file {name}",
            code="unknown-recipe",
            hint="check the path; `patchkit recipes` shows the recipes that can be named",
            details={"recipe": name, "suggestion": None},
        )
    places = recipe_folders(folders, start=start)
    for folder in places:
        path = os.path.join(folder.path, f"{name}.toml")
        if os.path.isfile(path):
            return path
    import difflib

    near = difflib.get_close_matches(name, [known for known, _, _ in names_in(places)], n=1)
    raise UsageError(
        f"no recipe named {name}" + (f" (did you mean {near[0]}?)" if near else ""),
        code="unknown-recipe",
        hint="looked in " + ", ".join(_shown(folder.path) for folder in places) + "; see `patchkit recipes`",
        details={"recipe": name, "suggestion": near[0] if near else None},
    )


def is_path(name: str) -> bool:
    """Whether a name is meant as a path."""
    return name.endswith(".toml") or os.sep in name or "/" in name


def recipe_folders(folders: Sequence[str] = (), *, start: str | None = None) -> tuple[Folder, ...]:
    """The folders of recipes, in the order of search, each once. ``origin`` is as in the catalogue of patches.

    Raises:
        UsageError: ``no-folder``: a folder named in ``folders`` does not exist.
        PatchFileError: The project's ``[tool.patchkit]`` is wrong.
    """
    from patchkit.model.project import load_project

    refuse_missing(folders)
    begin = start or os.getcwd()
    project = load_project(begin)
    found = [Folder(folder, "--recipes") for folder in folders]
    if project is not None:
        found += [Folder(folder, "project") for folder in project.recipes]
    found += [Folder(os.path.join(begin, "recipes"), "folder"), Folder(shipped_recipes(), "shipped")]
    return each_once(found)


def origin_of(path: str | None) -> str | None:
    """Which of the folders a recipe lies in, as ``names_in`` tells it; None where it is in none of them."""
    folder = os.path.realpath(os.path.dirname(path or ""))
    return next((one.origin for one in recipe_folders() if os.path.realpath(one.path) == folder), None)


def shipped_recipes() -> str:
    """The folder of the recipes that come with patchkit: in the wheel, or beside the package in a checkout."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    shipped = os.path.join(package, "shipped", "recipes")
    return shipped if os.path.isdir(shipped) else os.path.join(os.path.dirname(package), "recipes")


def _shown(path: str) -> str:
    relative = os.path.relpath(path)
    return relative if not relative.startswith("..") else path
