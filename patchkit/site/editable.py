"""Editable installs, in the forms that installers have made of them.

The source of such a distribution is a working copy that its owner edits in place, so patchkit refuses it. Known are
``direct_url.json`` (PEP 610), ``*.egg-link`` (``setup.py develop``), setuptools' ``__editable__`` path files and
finder modules, and a plain ``.pth`` file that puts a source tree on the path (flit, hatch, poetry, pdm, by hand).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from patchkit.runtime.ledger import open_regular, open_text
from patchkit.site.distribution import Distribution, in_directory, index, normalize, read_header

if TYPE_CHECKING:
    from patchkit.site.environment import Site


def editability(distribution: Distribution) -> tuple[str | None, str | None]:
    """Why a distribution counts as editable, with its source tree; (None, None) where it does not."""
    for look in (_direct_url, _setuptools, _own_path_file):
        reason, source = look(distribution)
        if reason is not None:
            return reason, source
    return None, None


def _direct_url(distribution: Distribution) -> tuple[str | None, str | None]:
    try:
        with open_regular(os.path.join(distribution.info, "direct_url.json")) as file:
            data = file.read()
    except OSError:
        return None, None
    import json

    try:
        content = json.loads(data)
        editable = content["dir_info"].get("editable") is True
        url = str(content["url"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return None, None
    if not editable:
        return None, None
    source = url
    if url.startswith("file:"):
        from urllib.request import url2pathname

        source = url2pathname(url[5:].removeprefix("//").removeprefix("localhost"))
    return f"direct_url.json says that its source lies in {source}", source


def _setuptools(distribution: Distribution) -> tuple[str | None, str | None]:
    if distribution.kind == "egg":
        return None, None
    wanted = normalize(f"{distribution.name}-{distribution.version}")
    # The finder's name is made an identifier, so the version's "+" and "!" are lost as well.
    identifier = normalize(wanted.replace("+", "-").replace("!", "-"))
    reason: str | None = None
    for name in index(distribution.site, distribution.base).redirects:
        path = os.path.join(distribution.base, name)
        stem = name.removeprefix("__editable__")
        if name.endswith(".pth"):
            stem = stem.removesuffix(".pth")
            source = next(_directories(path, distribution.site), None)
        elif name.endswith("_finder.py"):
            stem = stem.removesuffix("_finder.py")
            source = _mapped(path)
        else:
            continue
        if normalize(stem).strip("-") not in (wanted, identifier):
            continue
        if source is not None:
            return f"{name} redirects its imports to its source in {source}", source
        reason = f"{name} redirects its imports"
    return reason, None


def _own_path_file(distribution: Distribution) -> tuple[str | None, str | None]:
    """A RECORD with a ``.pth`` file that leads to a source tree, and no module of its own but an import hook."""
    data = distribution.record.data
    if data is None or b".pth" not in data:
        return None, None
    path_file = None
    for path in distribution.record.paths():
        if path.endswith(".pth") and "/" not in path:
            path_file = path
        elif path.endswith(".py") and ("/" in path or not path.startswith("_")):
            return None, None  # an import hook of an editable install is a top-level module with an underscore
    if path_file is None:
        return None, None
    path = os.path.join(distribution.base, path_file)
    source = next(_directories(path, distribution.site), None)
    if source is not None:
        return f"{path_file} leads to its source in {source}", source
    hook = _hook(path)
    if hook is not None and distribution.record.entry(f"{hook}.py") is not None:
        return f"{path_file} imports {hook}, which redirects its imports to its source", None
    return None, None


def _hook(path: str) -> str | None:
    """The module that a path file imports and that does the rest (the package ``editables``, for one)."""
    try:
        with open_text(path, encoding="utf-8-sig", errors="surrogateescape") as file:
            words = file.read().replace(";", " ").split()
    except OSError:
        return None
    return words[1] if len(words) > 1 and words[0] == "import" and words[1].startswith("_") else None


def find_in_path_files(site: Site, wanted: str) -> Distribution | None:
    """A distribution whose metadata lie in a directory that a ``.pth`` file of the site puts on the path.

    One with a RECORD was installed there (``pip --target``); any other is a source tree, hence editable.
    """
    for directory in site.paths:
        for name in index(site, directory).path_files:
            for source in _directories(os.path.join(directory, name), site):
                for found in in_directory(site, source, wanted):
                    if found.kind != "wheel":
                        found.mark_editable(f"{name} leads to its source in {source}", source)
                    return found
    return None


def read_egg_link(site: Site, path: str) -> Distribution | None:
    """The distribution in the source tree that an ``.egg-link`` names."""
    try:
        with open_text(path, errors="surrogateescape") as file:
            source = file.readline().strip()
    except OSError:
        return None
    source = os.path.join(os.path.dirname(path), source)
    stem = os.path.basename(path).removesuffix(".egg-link")
    try:
        names = sorted(os.listdir(source))
    except OSError:
        names = []
    for name in names:
        if name.endswith(".egg-info"):
            header = read_header(os.path.join(source, name, "PKG-INFO"))
            if header is not None and normalize(header[0]) == normalize(stem):
                return Distribution(
                    name=header[0],
                    version=header[1],
                    info=os.path.join(source, name),
                    base=source,
                    kind="egg-info",
                    site=site,
                    source=source,
                )
    # The source tree has gone or was never built: it is still what this name means in the site.
    info = os.path.join(source, stem + ".egg-info")
    return Distribution(name=stem, version="", info=info, base=source, kind="egg-info", site=site, source=source)


def _directories(path: str, site: Site) -> Iterator[str]:
    """The existing directories outside the site that a ``.pth`` file names."""
    try:
        with open_text(path, encoding="utf-8-sig", errors="surrogateescape") as file:
            lines = file.read().splitlines()
    except OSError:
        return
    inside = [os.path.realpath(directory) for directory in site.paths]
    for line in lines:
        entry = line.strip()
        if not entry or entry.startswith(("#", "import ", "import\t")):
            continue
        directory = os.path.abspath(os.path.join(os.path.dirname(path), entry))
        real = os.path.realpath(directory)
        if os.path.isdir(real) and not any(real == one or real.startswith(one + os.sep) for one in inside):
            yield directory


def _mapped(path: str) -> str | None:
    """The first source that a setuptools finder maps a package to."""
    import ast

    try:
        with open_regular(path) as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return None
    for node in tree.body:
        target = node.target if isinstance(node, ast.AnnAssign) else None
        if isinstance(node, ast.Assign):
            target = node.targets[0] if isinstance(node.targets[0], ast.Name) else None
        if isinstance(target, ast.Name) and target.id == "MAPPING" and isinstance(node, (ast.Assign, ast.AnnAssign)):
            try:
                mapping = ast.literal_eval(node.value) if node.value is not None else {}
            except (ValueError, TypeError):
                return None
            if isinstance(mapping, dict):
                return next((str(value) for value in mapping.values()), None)
    return None
