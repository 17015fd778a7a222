"""Pristine bytes when neither the file nor the ledger has them.

They come from the copies that outlived a ledger, from the edits' own inverse, or from the released wheel. All are
believed only when an independent witness agrees: RECORD's hash, the hash in the ledger, or, for a distribution that
records none, the release itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from patchkit.edit.source import Source, Splice
from patchkit.edit.spans import Span
from patchkit.edit.text import find_text
from patchkit.errors import PatchkitError, PlanError, SiteError
from patchkit.model.patch import Edit, Patch
from patchkit.runtime.ledger import sha256_hex

if TYPE_CHECKING:
    from patchkit.ops.workspace import Workspace
    from patchkit.site.distribution import Distribution
    from patchkit.site.record import Entry
    from patchkit.state.ledger import FileEntry


#: Ways to undo patches that are tried for one file.
_MOST_TRIED = 64


def kept(home: str, entry: Entry | None) -> bytes | None:
    """The installer's bytes out of the copies in the ledger's folder, which are named by what RECORD says of them.

    They are found so also where the ledger itself is gone. None where there is no such copy, or RECORD has no SHA-256.

    Args:
        home: The directory of the ledger.
        entry: The file's row of RECORD.
    """
    from patchkit.state import blobs

    if entry is None or entry.algorithm != "sha256" or entry.digest is None:
        return None
    try:
        return blobs.get(home, entry.digest.hex())
    except SiteError:
        return None


def there_already(patch: Patch, path: str, data: bytes) -> list[int] | None:
    """The lines at which a file has already what the text edits of ``patch`` would write; None: not every edit's text.

    Args:
        patch: The patch, which does not fit.
        path: The file, as the patch spells it.
        data: What it holds.
    """
    source = Source(data, path=path)
    lines: list[int] = []
    for edit in patch.edits:
        if path in edit.files:
            turned = _inverse(edit)
            spans = find_text(source, turned[0], [Span(0, len(source.text))]) if turned is not None else []
            if not spans:
                return None
            lines += [source.line(span.start) for span in spans]
    return lines or None


def undone(workspace: Workspace, key: str, path: str, entry: FileEntry) -> bytes | None:
    """The original of a file of the ledger, by undoing what the ledger says was done; None where that cannot be told.

    Args:
        workspace: The site.
        key: The file's key.
        path: The file, as patches spell it.
        entry: Its record, whose original's hash decides.
    """
    from patchkit.model.load import parse_patch
    from patchkit.state.ledger import beneath

    if entry.after is None:
        return None  # nothing is left of a file that a patch took away
    try:
        after = workspace.written(key)
    except SiteError:
        return None  # edited by hand since, and what it was edited from is lost as well
    wanted = entry.pristine.sha256 if entry.pristine is not None else ""

    def genuine(data: bytes) -> bool:
        return sha256_hex(data) == wanted

    found = beneath(entry.layers, after)
    if found is not None and genuine(found):
        return found
    patches: list[Patch] = []
    for recorded in workspace.ledger.patches:
        if key in recorded.files:
            try:
                patches.append(parse_patch(workspace.patch_data(recorded), f"{recorded.name}.toml"))
            except PatchkitError:
                continue
    return by_inverse(patches, path, after, genuine)


def by_inverse(
    patches: Sequence[Patch], path: str, data: bytes, genuine: Callable[[bytes], bool | None]
) -> bytes | None:
    """What ``data`` was before some of ``patches`` were applied, in whatever order; None: no such thing.

    Only text edits can be turned round. A result counts only when ``genuine`` (RECORD's hash) says so.

    Args:
        patches: The patches that may be on the file.
        path: The file, as the patches spell it.
        data: What it holds.
        genuine: Whether bytes are the installer's.
    """
    concerned = tuple(patch for patch in patches if any(path in edit.files for edit in patch.edits))
    pending = [(data, concerned)]
    tried = 0
    while pending and tried < _MOST_TRIED:
        current, rest = pending.pop()
        for patch in rest:  # the last one laid is tried last, and so followed up first
            candidate = _without(patch, path, current)
            if candidate is None:
                continue
            tried += 1
            if genuine(candidate) is True:
                return candidate
            pending.append((candidate, tuple(other for other in rest if other is not patch)))
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


def from_wheel(
    distribution: Distribution,
    path: str,
    progress: Callable[[str], None],
    genuine: Callable[[bytes], bool | None],
    recorded: Entry | None = None,
) -> bytes:
    """The file as the released wheel of the installed version has it.

    Args:
        distribution: The installed distribution.
        path: The file.
        progress: Told of a download.
        genuine: Whether bytes are those that were installed; None: nobody knows, and the wheel is believed.
        recorded: The row of RECORD behind ``genuine``. Where the wheel's own RECORD has the same one, that is wrong
            about the file, and the wheel is believed.

    Raises:
        SiteError: ``fetch``: the wheel cannot be had, or is another build than the one that was installed.
        PlanError: The wheel has no such file.
    """
    from patchkit.site.wheel import fetch_wheel, wheel_member

    wheel = fetch_wheel(distribution.name, distribution.version, progress=progress)
    data = wheel_member(wheel, path)
    if genuine(data) is False and not (recorded is not None and _wrong_in_wheel(distribution, wheel, recorded)):
        raise SiteError(
            f"{path}: the released wheel of {distribution.name} {distribution.version} has other bytes than those that "
            "were installed, by the hash recorded then: it is another build",
            code="fetch",
            hint="install the build that is wanted again, or the release: "
            f"`{distribution.reinstall}`; then apply again",
            details={"path": path, "distribution": distribution.name, "version": distribution.version},
        )
    return data


def _wrong_in_wheel(distribution: Distribution, wheel: str, recorded: Entry) -> bool:
    """Whether the wheel's own RECORD has the very row that denies the wheel's file."""
    import os

    from patchkit.site.record import Record
    from patchkit.site.wheel import wheel_member

    try:
        data = wheel_member(wheel, f"{os.path.basename(distribution.info)}/RECORD")
        row = Record(distribution.base, None, data=data).entry(recorded.path)
    except (PlanError, SiteError):
        return False
    return row is not None and row.digest is not None and (row.algorithm, row.digest) == recorded[1:3]
