"""What every file that people write for patchkit begins with: the number of its format, and its own name."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from patchkit.model.checks import name as check_name
from patchkit.model.checks import quote

if TYPE_CHECKING:
    from patchkit.model.document import Document

_NO_SCHEMA = 1_000_000
"""No schema has, or ever will have, such a number."""


def refuse_later_schema(document: Document, schema: int) -> None:
    """Stop at a file of a later format: what else is "wrong" with it is only what this patchkit cannot know.

    Raises:
        PatchFileError: It is one.
    """
    found = document.root.get("schema")
    if isinstance(found, int) and schema < found < _NO_SCHEMA:
        document.key_problem(
            ("schema",), f"the file is of schema {found}, this patchkit reads schema {schema}: this patchkit is too old"
        )
        document.finish(hint="upgrade patchkit: pip install --upgrade site-patchkit")


def check_stem(document: Document, name: str | None) -> None:
    """Note where a file's name and the name in it differ."""
    if name is None or document.path is None:
        return
    stem = os.path.basename(document.path).removesuffix(".toml")
    if name != stem:
        meant = stem if check_name(stem) is None else None
        document.key_problem(("name",), f"{quote(name)} is not the file's own name {quote(stem)}", meant)
