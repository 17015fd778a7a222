"""One file in memory, to plan on where there is no distribution."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable


class Memory:
    """One file, whatever its path (:class:`patchkit.edit.plan.Files`)."""

    version = ""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def read(self, path: str, *, wanted_by: Callable[[], str]) -> bytes:
        """The bytes."""
        return self.data

    def matches(self, specifier: str) -> bool:
        """True: it is every version."""
        return True

    def siblings(self) -> Iterable[tuple[str, bytes]]:
        """No other file."""
        return ()


class Running:
    """The grammar of the running Python (:class:`patchkit.edit.plan.Grammar`)."""

    def parse(self, text: str) -> ast.Module:
        """Parse, raising what ``ast.parse`` raises."""
        return ast.parse(text)
