"""``recipes``."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Any

from patchkit.cli.output import Output
from patchkit.errors import PatchFileError, UsageError
from patchkit.visible import visible

if TYPE_CHECKING:
    from patchkit.model.recipe import Recipe

_WRONG = "wrong"


def configure_recipes(parser: ArgumentParser) -> None:
    """The options of ``recipes``."""
    parser.add_argument("name", nargs="?", metavar="NAME", help="explain this one, by name or by the path of its file")
    parser.add_argument("--copy", metavar="DIR", help="copy it into this folder, to be changed there")


def run_recipes(arguments: Namespace) -> int:
    """List the recipes, or explain one."""
    if arguments.name is None:
        if arguments.copy is not None:
            raise UsageError("--copy: which recipe? name it", hint="patchkit recipes NAME --copy recipes")
        return _list(arguments.output)
    return _explain(arguments)


def _list(output: Output) -> int:
    from patchkit.bench.catalog import recipe_folders
    from patchkit.model.load_recipe import load_recipe
    from patchkit.ops.catalog import names_in

    listed: list[dict[str, Any]] = []
    for name, path, origin in names_in(recipe_folders()):
        try:
            listed.append(_entry(load_recipe(path), origin))
        except PatchFileError as error:
            listed.append(_wrong(name, path, origin, error.message))
    width = max((len(item["name"]) for item in listed), default=0)
    for item in listed:
        kind = item["engine"] or _WRONG
        name = output.paint(visible(item["name"]).ljust(width), "bold")
        more = ", ".join(item["patches"]) or ("no patch" if item["reason"] is None else "")
        points = f", {len(item['points'])} points" if len(item["points"]) > 1 else ""
        shown = output.paint(kind.ljust(11), "red" if kind == _WRONG else "cyan")
        output.line(f"{name}  {shown}  {more}{points}".rstrip())
        output.paragraph(item["summary"] or item["reason"], 4)
    if not listed:
        output.line("no recipes found: put NAME.toml into ./recipes")
    output.json(ok=True, recipes=listed, recipe=None, copied=None)
    return 0


def _explain(arguments: Namespace) -> int:
    from patchkit.bench.catalog import find_recipe, origin_of
    from patchkit.bench.describe import describe_recipe

    output: Output = arguments.output
    recipe = find_recipe(arguments.name)
    copied = _copy(recipe, arguments.copy, output) if arguments.copy is not None else None
    output.paragraph(f"{output.paint(recipe.name, 'bold')}: {recipe.summary}")
    output.line(f"file: {recipe.path}")
    for line in describe_recipe(recipe):
        indent = len(line) - len(line.lstrip())
        output.paragraph(line.lstrip(), indent, hanging=2)
    if recipe.tags:
        output.line(f"tags: {', '.join(recipe.tags)}")
    for link in recipe.links:
        output.line(f"link: {link}")
    if recipe.description.strip():
        output.line()
        for line in recipe.description.strip().split("\n"):
            output.line(line)
    output.json(ok=True, recipes=[_entry(recipe, origin_of(recipe.path))], recipe=_whole(recipe), copied=copied)
    return 0


def _copy(recipe: Recipe, folder: str, output: Output) -> str:
    """Copy a recipe, and the schema that it names beside it."""
    from patchkit.author.beside import write_schema
    from patchkit.author.save import save
    from patchkit.model.recipe_schema import FILE_NAME, LINE

    if not os.path.isdir(folder):
        raise UsageError(f"--copy {folder}: no such folder", code="no-folder", hint=f"make it: mkdir {folder}")
    path = os.path.join(folder, f"{recipe.name}.toml")
    save(path, recipe.data, overwrite=False)
    schema = os.path.join(folder, FILE_NAME)
    if recipe.data.startswith(f"{LINE}\n".encode()) and not os.path.lexists(schema):
        write_schema(schema, recipe=True)
    output.note(f"{path}: copied; it comes before the one that it is a copy of, where the folder is the project's")
    return path


def _entry(recipe: Recipe, origin: str | None) -> dict[str, Any]:
    return {
        "name": recipe.name,
        "path": recipe.path,
        "origin": origin,
        "summary": recipe.summary,
        "engine": recipe.points[0].treatment.engine.kind,
        "patches": list(recipe.patches),
        "points": [point.label for point in recipe.points],
        "tags": list(recipe.tags),
        "reason": None,
    }


def _wrong(name: str, path: str, origin: str, reason: str) -> dict[str, Any]:
    nothing: dict[str, Any] = {"summary": None, "engine": None, "patches": [], "points": [], "tags": []}
    return {"name": name, "path": path, "origin": origin, **nothing, "reason": reason}


def _whole(recipe: Recipe) -> dict[str, Any]:
    """Everything of a recipe but its bytes, as JSON values."""
    plain: dict[str, Any] = _plain(recipe._replace(data=b""))
    del plain["data"]
    return plain


def _plain(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return {name: _plain(item) for name, item in value._asdict().items()}
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value
