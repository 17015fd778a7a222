"""One file in memory and the running Python's grammar, for planning without a site."""

from __future__ import annotations

import ast
from collections.abc import Iterable


class Memory:
    """A distribution of one file, as ``patchkit.edit.plan.Files``; every specifier holds."""

    version = "1.0"

    def __init__(self, data: bytes, path: str) -> None:
        self.data = data
        self.path = path

    def read(self, path: str, *, wanted_by: object) -> bytes:
        assert path == self.path
        return self.data

    def matches(self, specifier: str) -> bool:
        return True

    def siblings(self) -> Iterable[tuple[str, bytes]]:
        return ()


class Host:
    """The grammar of the running Python."""

    def parse(self, text: str) -> ast.Module:
        return ast.parse(text)
