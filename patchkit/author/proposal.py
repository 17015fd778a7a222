"""What a port proposes, written into the text of the patch file, and proved to say that and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from patchkit.author.matrix import plan_release
from patchkit.author.relax import admit, bound_old, from_on
from patchkit.author.splice import PatchText, block_of, table_of
from patchkit.errors import InternalError
from patchkit.model.load import parse_patch
from patchkit.model.patch import Condition, Edit, Patch
from patchkit.model.requirement import parse_requirement
from patchkit.site.guard import version_matches
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.author.published import WheelFiles
    from patchkit.edit.plan import FilePlan


class Part(NamedTuple):
    """What becomes of one edit or condition on the new release.

    ``state`` is "fits", "ported" (a new variant is proposed), "widened" (it fits where its ``versions`` admit the
    release), "narrowed" (a removal, whose ``versions`` leave out the releases from ``since`` on, that have no such
    file) or "decide". ``variant`` is the proposal, for releases from ``since`` on. ``old_lines`` and ``new_lines`` are
    the lines of the place with one more on either side, ``candidates`` what a person may choose from, ``cautions`` what
    to look at, in words. Where a person must decide, ``change`` is what the edit does on the old release (the lines of
    a diff), and ``draft`` an edit of the new place, as TOML, that changes nothing yet.
    """

    table: str
    index: int  # type: ignore[assignment]
    state: str
    path: str | None = None
    old_line: int | None = None
    new_line: int | None = None
    code: str | None = None
    reason: str | None = None
    evidence: tuple[str, ...] = ()
    cautions: tuple[str, ...] = ()
    old_lines: tuple[str, ...] = ()
    new_lines: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    variant: Edit | Condition | None = None
    since: str | None = None
    line: int | None = None
    change: tuple[str, ...] = ()
    draft: str | None = None


class Port(NamedTuple):
    """A port: ``data`` is the new patch file, None where it is not to be changed or a person must decide.

    ``state`` is "fits" (nothing to do), "ported", "upstreamed" or "decide"; ``requirement`` the one that the new file
    has, where it differs. ``between`` are the releases between the two that were at hand, the newest first, each with
    the reason why the new file does not fit it. ``upstreamed`` is an ``[[upstreamed]]``, as TOML, for a release that
    has the change, where the patch does not say so yet.
    """

    patch: Patch
    old_version: str
    new_version: str
    state: str
    parts: tuple[Part, ...]
    requirement: str | None = None
    data: bytes | None = None
    problem: str | None = None
    between: tuple[tuple[str, str | None], ...] = ()
    upstreamed: str | None = None


def write_variants(patch: Patch, parts: Sequence[Part], old: str, new: str, *, in_place: bool) -> Patch:
    """The patch with the proposals written into its file's text.

    Raises:
        PatchFileError: The text is not laid out so that it can be changed for sure.
    """
    text = PatchText(patch.data)
    for part in sorted(parts, key=lambda part: -part.index):
        tables: dict[str, Sequence[Edit | Condition]] = {
            "edit": patch.edits,
            "precondition": patch.preconditions,
            "postcondition": patch.postconditions,
        }
        if part.table == "remove":
            was = patch.removes[part.index - 1].versions
            text.set_string(("remove", part.index, "versions"), bound_old(was, part.since or new, old))
            continue
        original = tables[part.table][part.index - 1]
        if part.state == "widened" and original.versions is not None:
            text.set_string((part.table, part.index, "versions"), admit(original.versions, new, old))
        if part.variant is None:
            continue
        if in_place:
            text.replace(part.table, part.index, block_of(part.variant._replace(versions=original.versions)))
            continue
        since = part.since or new
        bounds = from_on(since, old)
        text.insert_behind(part.table, part.index, block_of(part.variant._replace(versions=bounds)))
        text.set_string((part.table, part.index, "versions"), bound_old(original.versions, since, old))
    own = parse_requirement(patch.target.requirement)
    given_up = in_place and any(part.variant is not None for part in parts)
    specifier = str(own.specifier)
    if not version_matches(specifier, new) or given_up:
        wider = admit(specifier, new, None if given_up else old)
        text.set_string(("target", "requirement"), own.with_specifier(wider))
    return parse_patch(text.data(), patch.path)


def prove(
    patch: Patch,
    ported: Patch,
    parts: Sequence[Part],
    before: Sequence[FilePlan],
    old: WheelFiles,
    new: WheelFiles,
    *,
    in_place: bool,
) -> None:
    """Refuse a new file that says anything else than was meant, or does anything else to the old release.

    Raises:
        InternalError: It does: a fault of patchkit, and nothing is proposed.
    """
    touched = {(part.table, part.index) for part in parts if part.variant is not None or part.state == "widened"}
    for name in ("edits", "preconditions", "postconditions"):
        ours = [p for p in getattr(patch, name) if (table_of(p), p.index) not in touched]
        theirs = [p._replace(index=0) for p in getattr(ported, name)]
        if any(part._replace(index=0) not in theirs for part in ours):
            raise InternalError(f"porting {patch.name} changed more of its {name} than was meant")
    needless = {part.index for part in parts if part.state == "narrowed"}
    removes = [
        theirs._replace(versions=ours.versions) if ours.index in needless else theirs
        for ours, theirs in zip(patch.removes, ported.removes, strict=True)
    ]
    if _frame(patch) != _frame(ported._replace(removes=tuple(removes))):
        raise InternalError(f"porting {patch.name} changed more than its edits")
    if not in_place:
        after = plan_release(ported, old).files
        if [(file.path, file.after) for file in after] != [(file.path, file.after) for file in before]:
            raise InternalError(f"the ported {patch.name} does something else to {old.name} {old.version}")


def _frame(patch: Patch) -> Patch:
    """What a port leaves as it is."""
    target = patch.target._replace(requirement="")
    return patch._replace(target=target, edits=(), preconditions=(), postconditions=(), data=b"", digest="")
