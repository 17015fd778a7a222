"""The patch as data: what one TOML file says, checked and frozen.

These types hold no behaviour beyond reading themselves; :mod:`patchkit.model.load` makes them and
:mod:`patchkit.edit` turns them into bytes.

They are named tuples because importing ``dataclasses`` costs twice a bare interpreter's start. The fields called
``index`` and ``count`` hide the tuple methods of those names, which nobody wants of a patch.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

from patchkit.tuples import NamedTuple

Action = Literal["replace", "insert_before", "insert_after", "delete", "wrap", "add_import", "probe"]
ConditionKind = Literal["precondition", "postcondition", "upstreamed"]


class Example(NamedTuple):
    """A before/after pair that ``lint`` runs without a site."""

    index: int  # type: ignore[assignment]
    before: str
    after: str


class Edit(NamedTuple):
    """One change at one place, in each of ``files``.

    ``find`` (text edit) and ``match`` (syntax edit) exclude each other; ``add_import`` and ``probe`` have
    neither. ``text`` is the replacement, inserted text, ``wrap`` template or probe text; ``imports`` holds the
    statements of ``add_import``. All strings are in ``\\n`` form.
    """

    index: int  # type: ignore[assignment]
    files: tuple[str, ...]
    action: Action
    find: str | None = None
    match: str | None = None
    text: str = ""
    imports: tuple[str, ...] = ()
    scope: str | None = None
    inside: str | None = None
    after: str | None = None
    before: str | None = None
    versions: str | None = None
    count: int = 1  # type: ignore[assignment]
    nth: int | None = None
    examples: tuple[Example, ...] = ()

    @property
    def anchor_key(self) -> str:
        """The TOML key that holds this edit's anchor (its action's, for edits without one)."""
        return "find" if self.find is not None else "match" if self.match is not None else self.action


class Condition(NamedTuple):
    """Something that must hold of a file: ``find`` or ``match`` counts between ``at_least`` and ``at_most``.

    ``at_most`` is None for "N+". An ``upstreamed`` condition may have no anchor at all, only ``versions``.
    """

    kind: ConditionKind
    index: int  # type: ignore[assignment]
    file: str | None = None
    find: str | None = None
    match: str | None = None
    scope: str | None = None
    inside: str | None = None
    versions: str | None = None
    at_least: int = 1
    at_most: int | None = 1

    @property
    def anchor_key(self) -> str:
        """The TOML key that holds the anchor."""
        return "match" if self.match is not None else "find"


class Add(NamedTuple):
    """A new file, removed again by revert."""

    index: int  # type: ignore[assignment]
    file: str
    content: str
    versions: str | None = None


class Remove(NamedTuple):
    """Files of the release that are taken away, and brought back by revert."""

    index: int  # type: ignore[assignment]
    files: tuple[str, ...]
    versions: str | None = None


class Target(NamedTuple):
    """What the patch is for, as PEP 508 requirements, and how it gets on with other patches."""

    requirement: str
    requires: tuple[str, ...] = ()
    otherwise: str | None = None
    optional: bool = False
    conflicts: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The distribution's name, as the requirement spells it (PEP 508: it comes first)."""
        text = self.requirement.strip()
        return text[: next((at for at, c in enumerate(text) if not (c.isalnum() or c in "._-")), len(text))]


class Patch(NamedTuple):
    """One patch file, checked.

    ``data`` is the file's bytes; ``digest`` is their SHA-256 (hex), which identifies the patch in the ledger.
    """

    name: str
    summary: str
    target: Target
    edits: tuple[Edit, ...] = ()
    preconditions: tuple[Condition, ...] = ()
    postconditions: tuple[Condition, ...] = ()
    adds: tuple[Add, ...] = ()
    removes: tuple[Remove, ...] = ()
    upstreamed: tuple[Condition, ...] = ()
    description: str = ""
    links: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    path: str | None = None
    data: bytes = b""
    digest: str = ""

    @property
    def lines(self) -> Mapping[tuple[str | int, ...], int]:
        """Every key path such as ``("edit", 2, "find")`` (tables 1-based) with its 1-based line in the file.

        Found at the first call, out of ``data``: most runs never ask.
        """
        return _lines_of(self.data)

    def line_of(self, *key: str | int) -> int | None:
        """The line of a key path, or of the nearest table above it that has one."""
        for length in range(len(key), 0, -1):
            line = self.lines.get(key[:length])
            if line is not None:
                return line
        return None


@lru_cache(maxsize=8)
def _lines_of(data: bytes) -> Mapping[tuple[str | int, ...], int]:
    from patchkit.model.lines import key_lines

    return key_lines(data.decode("utf-8-sig", "replace"))
