"""Pristine bytes when neither the file nor the ledger has them: the edits' own inverse, or the released wheel.

Both are believed only when an independent witness agrees: RECORD's hash, or the release itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from patchkit.edit.source import Source, Splice
from patchkit.edit.spans import Span
from patchkit.edit.text import find_text
from patchkit.errors import PlanError
from patchkit.model.patch import Edit, Patch

if TYPE_CHECKING:
    from patchkit.site.distribution import Distribution


def by_inverse(
    patches: Sequence[Patch], path: str, data: bytes, genuine: Callable[[bytes], bool | None]
) -> bytes | None:
    """What ``data`` was before ``patches`` (one of them, or all, the last first) were applied; None: no such thing.

    Only text edits can be turned round. A result counts only when ``genuine`` (RECORD's hash) says so.

    Args:
        patches: The patches that may be on the file.
        path: The file, as the patches spell it.
        data: What it holds.
        genuine: Whether bytes are the installer's.
    """
    concerned = [patch for patch in patches if any(path in edit.files for edit in patch.edits)]
    attempts = [[patch] for patch in concerned] + ([list(reversed(concerned))] if len(concerned) > 1 else [])
    for attempt in attempts:
        candidate: bytes | None = data
        for patch in attempt:
            candidate = None if candidate is None else _without(patch, path, candidate)
        if candidate is not None and genuine(candidate) is True:
            return candidate
    return None


def _without(patch: Patch, path: str, data: bytes) -> bytes | None:
    source = Source(data, path=path)
    splices: list[Splice] = []
    for edit in patch.edits:
        if path not in edit.files:
            continue
        turned = _inverse(edit)
        if turned is None:
            return None
        there, back = turned
        spans = find_text(source, there, [Span(0, len(source.text))])
        splices.extend(Splice(span.start, span.end, back, edit.index) for span in spans)
    splices.sort()
    if not splices or any(a.end > b.start for a, b in pairwise(splices)):
        return None
    try:
        return source.render(splices)[0]
    except PlanError:
        return None


def _inverse(edit: Edit) -> tuple[str, str] | None:
    """(what the edit left, what was there before), or None where the edit left nothing to find."""
    if edit.find is None:
        return None
    if edit.action == "replace" and edit.text:
        return edit.text, edit.find
    if edit.action == "insert_before":
        return edit.text + edit.find, edit.find
    if edit.action == "insert_after":
        return edit.find + edit.text, edit.find
    return None


def from_wheel(distribution: Distribution, path: str, progress: Callable[[str], None]) -> bytes:
    """The file as the released wheel of the installed version has it.

    Raises:
        SiteError: ``fetch``: the wheel cannot be had.
        PlanError: The wheel has no such file.
    """
    from patchkit.site.wheel import fetch_wheel, wheel_member

    wheel = fetch_wheel(distribution.name, distribution.version, progress=progress)
    return wheel_member(wheel, path)
