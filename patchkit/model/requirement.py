"""PEP 508 requirements, as guards use them: through ``packaging``, whose parser is imported only for what needs it.

``packaging.requirements`` costs twice a bare interpreter's start (it loads the marker grammar, ``platform`` and
``subprocess``); a name with version specifiers, which nearly every guard is, needs ``packaging.specifiers`` alone.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from packaging.markers import Marker
    from packaging.specifiers import SpecifierSet

_CLAUSE = r"(?:===|~=|==|!=|<=|>=|<|>)\s*[A-Za-z0-9.*+!_-]+"
_PLAIN = re.compile(rf"\s*([A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)\s*({_CLAUSE}(?:\s*,\s*{_CLAUSE})*)?\s*")


class ParsedRequirement(NamedTuple):
    """A requirement's parts. ``url`` and ``extras`` are there to be refused."""

    name: str
    specifier: SpecifierSet
    marker: Marker | None = None
    url: str | None = None
    extras: tuple[str, ...] = ()

    def with_specifier(self, specifier: str) -> str:
        """The requirement as text, with another specifier and the marker that it has."""
        return f"{self.name}{specifier}" + (f"; {self.marker}" if self.marker is not None else "")


def parse_requirement(text: str) -> ParsedRequirement:
    """Read a requirement.

    Raises:
        ValueError: It is not valid PEP 508 (``packaging.requirements.InvalidRequirement``).
    """
    plain = _PLAIN.fullmatch(text)
    if plain is not None:
        from packaging.specifiers import InvalidSpecifier, SpecifierSet

        try:
            return ParsedRequirement(plain.group(1), SpecifierSet(plain.group(2) or ""))
        except InvalidSpecifier:
            pass  # the full parser words what is wrong
    from packaging.requirements import Requirement

    full = Requirement(text)
    return ParsedRequirement(full.name, full.specifier, full.marker, full.url, tuple(sorted(full.extras)))
