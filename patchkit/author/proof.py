"""The proof of a patch that was made by the machine: laid on the bytes before, it gives exactly those after."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from patchkit.edit.plan import Grammar, plan_patch
from patchkit.edit.regions import diff_script
from patchkit.errors import PlanError
from patchkit.model.patch import Patch
from patchkit.site.guard import version_matches

if TYPE_CHECKING:
    from patchkit.site.distribution import Distribution


class Before:
    """A distribution whose files are in memory, for the planner."""

    def __init__(self, distribution: Distribution, files: Mapping[str, bytes]) -> None:
        self._files = files
        self.version = distribution.version

    def read(self, path: str, *, wanted_by: Callable[[], str]) -> bytes:
        """The bytes of one of the files that changed; no patch made of them reads another."""
        return self._files[path]

    def matches(self, specifier: str) -> bool:
        """Whether the distribution's version satisfies ``specifier``."""
        return version_matches(specifier, self.version)

    def siblings(self) -> Iterable[tuple[str, bytes]]:
        """The files."""
        return self._files.items()


def prove(patch: Patch, before: Before, grammar: Grammar, wanted: Mapping[str, bytes | None]) -> None:
    """Plan ``patch`` and compare every byte.

    Args:
        patch: The patch.
        before: The files as they were.
        grammar: The site's.
        wanted: Every file that changes, as it shall be; None: taken away.

    Raises:
        PlanError: ``not-expressible``: a file comes out otherwise, as it does where its encoding or the style of
            its line breaks was changed.
    """
    planned = {file.path: file.after for file in plan_patch(patch, before, grammar).files}
    for path, data in wanted.items():
        result = planned.get(path)
        if path in planned and result == data:
            continue
        raise not_expressible(path, result, data or b"")


def not_expressible(path: str, result: bytes | None, wanted: bytes) -> PlanError:
    """The error for a file that comes out as ``result`` (None: as it was), not as ``wanted``."""
    first = None if result is None else next(iter(diff_script(result, wanted)), None)
    line = 1 if first is None or result is None else result.count(b"\n", 0, first.start) + 1
    return PlanError(
        f"{path}: the change cannot be written as edits: line {line} would come out otherwise, as where the line "
        "breaks, the byte order mark or the encoding of the file were changed as well",
        code="not-expressible",
        hint="keep the file's own line breaks and encoding (many editors and formatters change them)",
        details={"path": path, "line": line},
    )
