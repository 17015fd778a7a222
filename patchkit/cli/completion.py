"""Shell completion through argcomplete, an extra: bash, zsh and fish; patch names are completed too."""

from __future__ import annotations

import argparse
from typing import Any


def complete(parser: argparse.ArgumentParser) -> None:
    """Answer the shell's question and exit; does nothing when argcomplete is not installed."""
    try:
        import argcomplete
    except ImportError:
        return
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                for option in sub._actions:
                    if option.metavar == "NAME":
                        option.completer = patch_names
                    elif option.metavar == "RECIPE":
                        option.completer = names_of_recipes
    argcomplete.autocomplete(parser)


def patch_names(prefix: str, parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    """The names of the patches that begin with ``prefix``."""
    from patchkit.cli.context import catalog_of
    from patchkit.errors import PatchkitError

    try:
        return [name for name, _, _ in catalog_of(parsed_args).names() if name.startswith(prefix)]
    except PatchkitError:  # a folder that is not there, a wrong project file: the command itself will say so
        return []


def names_of_recipes(prefix: str, **_: Any) -> list[str]:
    """The names of the recipes that begin with ``prefix``."""
    from patchkit.bench.catalog import recipe_folders
    from patchkit.errors import PatchkitError
    from patchkit.ops.catalog import names_in

    try:
        return [name for name, _, _ in names_in(recipe_folders()) if name.startswith(prefix)]
    except PatchkitError:
        return []
