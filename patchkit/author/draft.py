"""What a person who must decide starts from: what the edit does on the old release, and an edit of the new place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from patchkit.author.carry import hunks_of
from patchkit.author.derive import shortest
from patchkit.author.hunks import Hunk, lines_of
from patchkit.author.splice import block_of
from patchkit.edit.source import Source
from patchkit.errors import PatchFileError
from patchkit.model.patch import Edit

if TYPE_CHECKING:
    from patchkit.edit.locate import FileText
    from patchkit.edit.plan import FilePlan

SHOWN = 24
"""Lines of a change that are worth a look; more are not shown."""


def change_of(plans: Sequence[FilePlan]) -> tuple[str, ...]:
    """What an edit does to its file, as the lines of a diff; none where it is more than :data:`SHOWN` lines."""
    if len(plans) != 1 or plans[0].before is None or plans[0].after is None:
        return ()
    before, after = (Source(data, path=plans[0].path).text for data in (plans[0].before, plans[0].after))
    lines = lines_of(before)
    out: list[str] = []
    for hunk in hunks_of(before, after):
        out += [f"-{line}" for line in lines[hunk.start : hunk.stop]] + [f"+{line}" for line in hunk.new]
    return tuple(out) if len(out) <= SHOWN else ()


def draft_of(edit: Edit, new: FileText, gap: tuple[int, int] | None, versions: str) -> str | None:
    """An edit of the lines ``gap`` (0-based, half open) of the new file, as TOML, that changes nothing yet.

    None where there are no such lines, or no few lines around them are the only ones of their kind in their scope.
    """
    if gap is None or gap[0] >= gap[1]:
        return None
    lines = lines_of(new.source.text)[gap[0] : gap[1]]
    anchored = shortest(new.source, new.outline_or_none(), Hunk(*gap, tuple(lines)), above=True)
    if anchored is None:
        return None
    path = (new.source.path,)
    try:
        return block_of(
            Edit(
                edit.index,
                path,
                "replace",
                find=anchored.find,
                text=anchored.find,
                scope=anchored.scope,
                versions=versions,
            )
        )
    except PatchFileError:
        return None
