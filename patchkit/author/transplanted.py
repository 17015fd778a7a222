"""What lies in a copy that ``transplant`` made: its manifest, what it was made of, and what activates it."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from typing import Any

from patchkit.errors import SiteError, UsageError
from patchkit.runtime import entries, leftovers, pairing, planted, probe, rebind, registered
from patchkit.runtime import transplant as engine
from patchkit.runtime.ledger import read_regular
from patchkit.runtime.transplant import MANIFEST, SCHEMA
from patchkit.tuples import NamedTuple

ENGINE = "_transplant"
"""The folder of a copy that is not the user's."""
ACTIVATE = "activate"
"""The module of a copy whose import activates it."""


class Vendored(NamedTuple):
    """One file of a copy.

    ``path`` is in the copy and ``source`` in the site, as in RECORD; ``module`` and ``copy`` are what it is imported by
    there and here (None: it is no module). ``copy_sha256`` is of the file as it was made, ``rewrites`` the number of
    its import statements that were rewritten.
    """

    path: str
    source: str
    module: str | None
    copy: str | None
    source_sha256: str
    copy_sha256: str
    rewrites: int


class Manifest(NamedTuple):
    """What a copy is a copy of. ``bytes`` is ``current`` or ``pristine``; ``left`` are compiled modules."""

    module: str
    package: bool
    copy: str
    distribution: str
    version: str
    bytes: str
    patches: list[str]
    activate: str
    left: list[str]
    files: list[Vendored]


def write_manifest(folder: str, manifest: Manifest) -> None:
    """Write ``transplant.json``.

    Raises:
        OSError: It cannot be written.
    """
    files = [dict(zip(Vendored._fields, file, strict=True)) for file in manifest.files]
    document = {"schema": SCHEMA, **dict(zip(Manifest._fields, manifest, strict=True)), "files": files}
    with open(os.path.join(folder, MANIFEST), "w", encoding="utf-8") as text:
        text.write(json.dumps(document, indent=2) + "\n")


def read_manifest(folder: str) -> Manifest:
    """The manifest of a copy.

    Raises:
        UsageError: ``not-a-transplant``: there is none that can be read.
    """
    path = os.path.join(folder, MANIFEST)
    try:
        document: dict[str, Any] = json.loads(read_regular(path))
        if document["schema"] != SCHEMA:
            raise ValueError(f"its schema is {document['schema']}")
        files = [Vendored(*(file[name] for name in Vendored._fields)) for file in document["files"]]
        values: list[Any] = [files if name == "files" else document[name] for name in Manifest._fields]
        found = Manifest(*values)
        for file in files:
            parts = file.path.split("/")
            if os.path.isabs(file.path) or ".." in parts or "" in parts:
                raise ValueError(f"a path leads out: {file.path}")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(
            f"{folder}: is no copy that `transplant` made: {MANIFEST}: {reason}",
            code="not-a-transplant",
            hint=f"patchkit transplant PACKAGE {shlex.quote(folder)}",
            details={"path": path},
        ) from None
    return found


def base_of(folder: str, file: Vendored) -> bytes:
    """The bytes that a file of a copy was made of.

    Raises:
        SiteError: ``corrupt``: they are gone, or others.
    """
    path = os.path.join(folder, ENGINE, "base", *f"{file.path}.orig".split("/"))
    try:
        data = read_regular(path)
    except OSError as error:
        reason = str(error.strerror)
    else:
        if hashlib.sha256(data).hexdigest() == file.source_sha256:
            return data
        reason = "it is not what the manifest says"
    raise SiteError(
        f"{path}: {reason}",
        code="corrupt",
        hint=f"take {ENGINE}/ out of version control again, or make the copy anew and move your edits over",
        details={"path": path},
    )


def engine_files(manifest: Manifest) -> dict[str, bytes]:
    """What activates a copy, by path: this patchkit's own modules, and a module of few lines that imports them."""
    about = f"{manifest.module} of {manifest.distribution}"
    made = "# Made by `patchkit transplant`; an edit of this file is lost with the next `update`.\n"
    found = {
        f"{manifest.activate}.py": f'"""Its import puts this copy in the place of {about}."""\n\n{made}'
        f"from .{ENGINE} import activate\n\nIN_FORCE = activate()\n",
        f"{ENGINE}/__init__.py": f'"""What puts this copy in the place of {about}."""\n\n{made}'
        "import os\n\nfrom .transplant import activate as _activate\n\n\n"
        "def activate():\n"
        '    """Put the copy in force in this process; once."""\n'
        "    return _activate(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))\n",
    }
    for module in (entries, leftovers, pairing, probe, rebind, registered, engine):
        text = _source(module.__file__).replace("from patchkit.runtime.", "from .")
        found[f"{ENGINE}/{module.__name__.rpartition('.')[2]}.py"] = made + text
    # Whatever is ignored or normalised elsewhere: what the copy was made of is committed byte for byte.
    found[f"{ENGINE}/base/.gitignore"] = "!*\n"
    found[f"{ENGINE}/base/.gitattributes"] = "* -text\n"
    found[f"{ENGINE}/startup/sitecustomize.py"] = made + _source(planted.__file__)
    return {path: text.encode("utf-8") for path, text in found.items()}


def _source(path: str | None) -> str:
    assert path is not None
    return read_regular(path).decode("utf-8")
