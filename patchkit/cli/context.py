"""What every command needs: the site and the catalogue, out of the global options."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from patchkit.site.environment import Site, resolve

if TYPE_CHECKING:
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
