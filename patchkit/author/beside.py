"""The JSON Schema beside patch files, and the line of a patch file by which an editor finds it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from patchkit.author.save import save, saved
from patchkit.errors import UsageError
from patchkit.model.keys import SCHEMA
from patchkit.model.schema import FILE_NAME, IDENTITY, LINE, WRITER, schema_text
from patchkit.runtime.ledger import read_regular

_MOST = 4 * 1024 * 1024
_DIRECTIVE = "#:schema "


def first_line(path: str, notice: Callable[[str], None]) -> str:
    """The line that a patch file to be saved at ``path`` begins with, with its newline; "" where it gets none.

    A file that is replaced keeps the line that it has. Where something else lies in the place of our schema, there is
    none to name.

    Args:
        path: The patch file.
        notice: Told why there is none.
    """
    try:
        begin = read_regular(path, _MOST).partition(b"\n")[0].decode("utf-8", "replace").rstrip("\r")
    except OSError:
        begin = ""
    if begin.startswith(_DIRECTIVE) and begin.isprintable():
        return f"{begin}\n"
    schema = _place(path)
    if os.path.lexists(schema) and _written_by(schema) is None:
        notice(f"{schema} is none that patchkit wrote: it stays, and the patch file names no schema")
        return ""
    return f"{LINE}\n"


def save_patch(path: str, data: bytes, notice: Callable[[str], None], *, overwrite: bool) -> None:
    """Save a patch file and, where it names the schema beside it, that schema, unless a later one is there.

    Args:
        path: The patch file.
        data: Its bytes.
        notice: Told of a schema that was written.
        overwrite: Replace a file at ``path``.

    Raises:
        UsageError: ``exists``.
        SiteError: ``unwritable``.
    """
    with saved_patch(path, data, notice, overwrite=overwrite):
        pass


@contextmanager
def saved_patch(path: str, data: bytes, notice: Callable[[str], None], *, overwrite: bool) -> Iterator[None]:
    """The same, as long as what is done within succeeds: else there is the patch file that was there before, or none.

    Raises:
        UsageError: ``exists``.
        SiteError: ``unwritable``.
    """
    if data.startswith(f"{LINE}\n".encode()):
        schema = _place(path)
        text = schema_text().encode()
        there = _written_by(schema)
        if not os.path.lexists(schema) or (there is not None and there <= _ours() and not _holds(schema, text)):
            save(schema, text, overwrite=True)
            notice(f"{schema}: written, for editors that complete and check patch files")
    with saved(path, data, overwrite=overwrite):
        yield


def write_schema(path: str, *, recipe: bool = False) -> None:
    """Write the schema, of patch files or of recipes, to a file of any name, over an earlier one of any patchkit.

    Raises:
        UsageError: ``exists``: the file there is something else.
        SiteError: ``unwritable``.
    """
    from patchkit.model import recipe_schema

    identity = recipe_schema.IDENTITY if recipe else IDENTITY
    if os.path.lexists(path) and _written_by(path, identity) is None:
        raise UsageError(
            f"{path} exists, and is no JSON Schema of {'recipes' if recipe else 'patch files'}",
            code="exists",
            hint="name another file, or remove that one",
            details={"path": path},
        )
    text = recipe_schema.recipe_schema_text() if recipe else schema_text()
    save(path, text.encode(), overwrite=True, hint="name a file in a folder that is there")


def schema_of(path: str, data: bytes) -> str | None:
    """The schema of ours that a patch file at ``path`` with these bytes names; None where it names none or another."""
    return _place(path) if data.startswith(f"{LINE}\n".encode()) else None


def _place(path: str) -> str:
    return os.path.join(os.path.dirname(path), FILE_NAME)


def _holds(path: str, data: bytes) -> bool:
    try:
        return read_regular(path, _MOST) == data
    except OSError:
        return False


def _ours() -> tuple[int, ...]:
    from patchkit import __version__

    return (SCHEMA, *_numbers(__version__))


def _written_by(path: str, identity: str = IDENTITY) -> tuple[int, ...] | None:
    """The schema number and patchkit's version that a schema file tells; None where it is no patchkit's."""
    try:
        found = json.loads(read_regular(path, _MOST))
        number = int(found["$id"].removeprefix(identity)) if found["$id"].startswith(identity) else None
        writer = str(found.get("$comment", ""))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return None if number is None else (number, *_numbers(writer.removeprefix(WRITER)))


def _numbers(version: str) -> tuple[int, ...]:
    """A version's release as numbers, which compare; () for what is none."""
    from packaging.version import InvalidVersion, Version

    try:
        return Version(version).release
    except InvalidVersion:
        return ()
