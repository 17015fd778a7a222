"""``new``: a patch file to start from, with every part that most patches need."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from patchkit.author.beside import save_patch
from patchkit.author.save import check_free
from patchkit.author.target import check_name, check_named
from patchkit.edit.uniqueness import toml_string
from patchkit.model import checks
from patchkit.model.load import parse_patch
from patchkit.ops.lint import PLACEHOLDER

if TYPE_CHECKING:
    from patchkit.site.distribution import Distribution
    from patchkit.site.environment import Site

_TEMPLATE = """\
schema = 1
name = {name}
summary = {summary}
description = \"\"\"
Why, what was measured, when not to use it.
\"\"\"
# links = ["https://..."]                  # the issue or pull request

[target]
requirement = {requirement}
# requires = ["other>=1.0"]                # what must be installed besides
# otherwise = "From 2.0 on, ..."           # shown where the version does not fit

[[edit]]
file = {file}
# scope = "Class.method"                   # the anchor lies within this definition
find = '''
    the lines as they are
'''
replace = '''
    the lines as they shall be
'''
# Instead of `replace`: insert_before, insert_after, delete = true, wrap.
# Instead of `find`: match = "$X.astype($T)", a pattern of Python.

# [[postcondition]]                        # must hold on the result
# file = {file}
# find = "..."
# count = 0

# [[upstreamed]]                           # where the release has the change itself
# versions = ">=2.0"
"""


def new_patch(
    site: Site,
    name: str,
    dist: str,
    path: str,
    *,
    overwrite: bool,
    head: str = "",
    notice: Callable[[str], None],
) -> tuple[str, list[str]]:
    """Write a patch file to start from.

    Args:
        site: Where the distribution is looked for; it need not be installed.
        name: The patch's name.
        dist: The distribution.
        path: Where to save it.
        overwrite: Replace a file at ``path``.
        head: What the file begins with (:func:`patchkit.author.beside.first_line`).
        notice: Told of a schema that was written beside it.

    Returns:
        The requirement that it states: the installed version's, if there is one; and what is to be said of the target.

    Raises:
        UsageError: No patch, or no distribution, can be called so; ``exists``: there is a file at ``path``.
        SiteError: ``metadata``: the distribution that is installed has no name or version; it cannot be written.
    """
    check_free(name, path, overwrite=overwrite)
    check_name(dist)
    found = site.find(dist)
    if found is not None:
        check_named(found)
    requirement = dist if found is None else f"{found.name}=={found.version}"
    listed = [] if found is None else [one for one in found.record.files() if checks.path(one) is None]
    paths = sorted(listed, key=lambda one: (one.endswith("__init__.py"), one))
    file = paths[0] if paths else f"{dist.replace('-', '_')}/module.py"
    text = _TEMPLATE.format(
        name=_quoted(name), requirement=_quoted(requirement), file=_quoted(file), summary=_quoted(PLACEHOLDER)
    )
    parse_patch(text.encode(), path)
    save_patch(path, f"{head}{text}".encode(), notice, overwrite=overwrite)
    return requirement, _notes(site, dist, found)


def _notes(site: Site, dist: str, found: Distribution | None) -> list[str]:
    """Why a patch of that target could not be applied here."""
    if found is None:
        import difflib

        names = [one.normalized for one in site.distributions()]
        near = difflib.get_close_matches(dist.lower().replace("_", "-"), names, n=1)
        return [f"{dist} is not installed in {site.label}" + (f" (did you mean {near[0]}?)" if near else "")]
    if found.editable:
        return [f"{found.name} is installed in editable mode: no patch of it is applied here; edit its sources"]
    return []


def _quoted(text: str) -> str:
    return toml_string(text) or '""'
