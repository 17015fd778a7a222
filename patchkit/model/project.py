"""What a project wants: the ``[tool.patchkit]`` table of the nearest pyproject.toml."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from patchkit.errors import PatchFileError
from patchkit.runtime.ledger import read_regular
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.model.lines import KeyPath

FILE = "pyproject.toml"
_MOST = 8 * 1024 * 1024  # patchkit.model.document.MAX_BYTES, without its import


class Project(NamedTuple):
    """A project's list.

    ``path`` is its pyproject.toml and ``root`` the folder of that, both absolute; ``patches`` are absolute folders,
    which may not exist, and so are ``recipes``; ``wanted`` are the names under ``apply``. ``listed`` is False where
    there is no ``apply`` at all, which is not the same as wanting nothing.
    """

    path: str
    root: str
    patches: tuple[str, ...]
    wanted: tuple[str, ...] = ()
    listed: bool = False
    recipes: tuple[str, ...] = ()


def load_project(start_dir: str) -> Project | None:
    """The project that ``start_dir`` lies in: the nearest pyproject.toml, upwards, with a ``[tool.patchkit]`` table.

    A file without that table is passed over, and so is one that cannot be read or is not TOML, unless it is the
    very nearest and mentions the table.

    Raises:
        PatchFileError: The table is wrong, or the nearest file that seems to have one is not TOML.
    """
    folder = os.path.abspath(start_dir)
    nearest = True
    while True:
        path = os.path.join(folder, FILE)
        data = _read(path)
        if data is not None:
            project = _project(path, data, strict=nearest)
            if project is not None:
                return project
            nearest = False
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def _read(path: str) -> bytes | None:
    """The bytes of a file; None where there is none, b"" where it cannot be read."""
    try:
        return read_regular(path, _MOST)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return b""


def _project(path: str, data: bytes, *, strict: bool) -> Project | None:
    if b"patchkit" not in data:  # spares the parse, and the import of all that reads TOML
        return None
    from patchkit.model.document import Document, toml_type
    from patchkit.model.keys import PROJECT

    try:
        document = Document(data, path)
    except PatchFileError:
        if strict and b"tool.patchkit" in data:
            raise
        return None
    tool = document.root.get("tool")
    if not isinstance(tool, dict) or "patchkit" not in tool:
        return None
    raw: Any = tool["patchkit"]
    at: KeyPath = ("tool", "patchkit")
    if not isinstance(raw, dict):
        document.table_problem(at, at, f"expected a table [tool.patchkit], found {toml_type(raw)}")
        raw = {}
    values = document.read(raw, at, PROJECT).values
    document.finish()
    root = os.path.dirname(path)

    def folders(key: str) -> tuple[str, ...]:
        return tuple(os.path.normpath(os.path.join(root, folder)) for folder in values.get(key, (key,)))

    return Project(
        path=path,
        root=root,
        patches=folders("patches"),
        wanted=values.get("apply", ()),
        listed="apply" in values,
        recipes=folders("recipes"),
    )
