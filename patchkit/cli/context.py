"""What every command needs: the site and the catalogue, out of the global options."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING

from patchkit.errors import PatchkitError, UsageError
from patchkit.site.environment import Site, resolve

if TYPE_CHECKING:
    from patchkit.model.patch import Patch
    from patchkit.ops.catalog import Catalog


def site_of(arguments: Namespace) -> Site:
    """The site that the global options and the environment mean."""
    return resolve(arguments.python, arguments.site)


def catalog_of(arguments: Namespace) -> Catalog:
    """The patches that can be named."""
    from patchkit.ops.catalog import open_catalog

    return open_catalog([*(arguments.patches or []), *(getattr(arguments, "patches_behind", None) or [])])


def site_json(site: Site) -> dict[str, object]:
    """The ``site`` member of ``--json``."""
    return {
        "path": site.home,
        "python": site.interpreter.executable if site.interpreter is not None else None,
        "python_version": ".".join(map(str, site.python_version)) if site.python_version else None,
    }


def refuse_foreign(catalog: Catalog, patch: Patch) -> None:
    """Refuse to write a patch that belongs to an installed package: the next install would take it back.

    Raises:
        UsageError: It does.
    """
    folder = os.path.realpath(os.path.dirname(patch.path or ""))
    owner = next((one.origin for one in catalog.all_folders() if os.path.realpath(one.path) == folder), None)
    if owner in ("shipped", "package"):
        whose = "patchkit" if owner == "shipped" else "an installed package"
        raise UsageError(
            f"{patch.path} belongs to {whose}",
            hint=f"copy it to your own folder first: cp {patch.path} patches/; a patch there comes before this one",
            details={"path": patch.path},
        )


def told(arguments: Namespace, text: str) -> str:
    """``text`` with the site that was named, by ``--python`` or ``--site``, in each command that it proposes."""
    if "patchkit " not in text or (arguments.python is None and arguments.site is None):
        return text
    import re
    import shlex

    from patchkit.cli.commands import COMMANDS

    given = [("--python", arguments.python), ("--site", arguments.site)]
    options = "".join(f" {option} {shlex.quote(value)}" for option, value in given if value is not None)
    names = "|".join(name for name in COMMANDS if name not in ("lint", "schema"))
    return re.sub(rf"(?<=\bpatchkit)(?= (?:{names})\b)", lambda _: options, text)


def same_site(run: Callable[[Namespace], int]) -> Callable[[Namespace], int]:
    """A command whose errors propose what to type on the site that it was about, and no other."""

    def wrapped(arguments: Namespace) -> int:
        try:
            return run(arguments)
        except PatchkitError as error:
            error.hint = None if error.hint is None else told(arguments, error.hint)
            raise

    wrapped.__doc__ = run.__doc__
    return wrapped
