"""Whether a release has the change of a patch itself, told by the lines of it, and the ``[[upstreamed]]`` to say so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from patchkit.author.carry import hunks_of
from patchkit.author.hunks import lines_of
from patchkit.author.relax import from_on
from patchkit.author.splice import block_of
from patchkit.edit.locate import FileText
from patchkit.edit.plan import upstreamed_by
from patchkit.edit.source import Source
from patchkit.errors import PatchkitError
from patchkit.model.load import parse_patch
from patchkit.model.patch import Condition, Patch
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.author.published import WheelFiles
    from patchkit.edit.plan import FilePlan

_TELLING = 12
"""Letters and digits that new lines have at least, for their being there to say anything."""


class _Place(NamedTuple):
    path: str
    scope: str
    text: str


def ready_block(
    patch: Patch,
    plans: Sequence[FilePlan],
    old: WheelFiles,
    new: WheelFiles,
    between: Sequence[WheelFiles],
) -> str | None:
    """An ``[[upstreamed]]`` for ``new`` and the releases before it that have the change, which ``old`` has not.

    None where ``new`` does not hold all that the patch makes of ``old``, each new piece once, in the same definition,
    with nothing there that the change replaces; and where no piece of it tells the two apart. Of what only takes lines
    away nothing is said.

    Args:
        patch: The patch.
        plans: What it makes of the old release.
        old: That release.
        new: The other one.
        between: Releases between the two, the one nearest to ``new`` first.
    """
    places = _places(plans, old, new)
    if not places:
        return None
    since = new.version
    for files in between:
        if not _places(plans, old, files):
            break
        since = files.version
    versions = from_on(since, old.version)
    for place in places:
        condition = Condition(
            "upstreamed", 1, place.path, find=place.text, scope=place.scope or None, versions=versions
        )
        try:
            block = block_of(condition)
            told = parse_patch(patch.data.rstrip(b"\n") + b"\n\n" + block.encode(), patch.path)
            apart = upstreamed_by(told, old, old.grammar) is None
            if apart and upstreamed_by(told, new, new.grammar) is not None:
                return block
        except PatchkitError:
            continue
    return None


def _places(plans: Sequence[FilePlan], old: WheelFiles, new: WheelFiles) -> list[_Place]:
    """The new pieces of the change, each with its file and definition; none where one is not in ``new``."""
    found: list[_Place] = []
    for plan in plans:
        if plan.after is None:
            if new.has(plan.path):
                return []
            continue
        if not new.has(plan.path):
            return []
        if plan.before is None:
            if new.data(plan.path) != plan.after:
                return []
            continue
        places = _places_in(plan.path, plan.before, plan.after, old, new)
        if not places:
            return []
        found += places
    return found


def _places_in(path: str, before: bytes, after: bytes, old: WheelFiles, new: WheelFiles) -> list[_Place]:
    ours, made = Source(before, path=path).text, FileText(Source(after, path=path), old.grammar.parse)
    was, is_now = lines_of(ours), lines_of(made.source.text)
    theirs = new.text(path)
    lines = lines_of(theirs.source.text)
    found = []
    moved = 0
    for hunk in hunks_of(ours, made.source.text):
        low = hunk.start + moved
        high = low + len(hunk.new)
        moved += len(hunk.new) - (hunk.stop - hunk.start)
        if sum(char.isalnum() for line in hunk.new for char in line) < _TELLING:
            return []
        scope = made.scope_at(made.source.starts[low])()

        def stands(block: Sequence[str], scope: str = scope) -> bool:
            at = [n for n in range(len(lines) - len(block) + 1) if lines[n : n + len(block)] == list(block)]
            return [theirs.scope_at(theirs.source.starts[n])() for n in at].count(scope) == 1

        around = is_now[max(low - 1, 0) : high + 1]
        told = next((block for block in (hunk.new, around) if stands(block)), None)
        if told is None or stands(was[max(hunk.start - 1, 0) : hunk.stop + 1]):
            return []
        found.append(_Place(path, scope, "".join(told)))
    return found
