"""``create`` of a patch that is applied: what of the old file goes over into the one that is made anew."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from patchkit.author.derive import TextEdit
from patchkit.errors import PatchkitError, UsageError
from patchkit.model.load import load_patch
from patchkit.ops.change import ledger_patch
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.author.gather import Gathered
    from patchkit.model.patch import Edit, Patch
    from patchkit.ops.workspace import Workspace
    from patchkit.site.distribution import Distribution
    from patchkit.state.ledger import PatchEntry

_TABLES = ("precondition", "postcondition", "upstreamed")


class Carried(NamedTuple):
    """What is no edit, as TOML values: ``head`` keys, those of ``[target]``, whole ``tables``, examples by edit.

    ``requirement`` is None where the old one could not stay.
    """

    requirement: str | None
    head: Mapping[str, Any]
    target: Mapping[str, Any]
    tables: Mapping[str, Sequence[Mapping[str, Any]]]
    examples: Mapping[tuple[str, TextEdit], Sequence[Mapping[str, Any]]]


def applied_entry(workspace: Workspace, name: str, distribution: Distribution) -> PatchEntry | None:
    """The patch of that name as it is applied; None where none is.

    Raises:
        UsageError: ``exists``: it is another distribution's.
    """
    recorded = workspace.ledger.patch(name)
    if recorded is None:
        return None
    if recorded.distribution != distribution.normalized:
        raise UsageError(
            f"{name} is applied, and is a patch of {recorded.distribution}",
            code="exists",
            hint="choose another name",
            details={"patch": name, "distribution": recorded.distribution},
        )
    return recorded if workspace.in_force(recorded) else None


def as_it_is(workspace: Workspace, recorded: PatchEntry, path: str) -> Patch:
    """The patch that is to be replaced: its file, as it may have been written since, or the ledger's copy."""
    try:
        found = load_patch(path)
    except PatchkitError:
        return ledger_patch(workspace, recorded)
    return found if found.name == recorded.name else ledger_patch(workspace, recorded)


def edited(gathered: Gathered) -> bool:
    """Whether anything differs from what patchkit wrote."""
    return any(gathered.held.get(path, True) for path in [*gathered.paths, *gathered.held])


def carried(old: Patch) -> Carried:
    """What of a patch file does not hang on how its edits are written."""
    values = tomllib.loads(old.data.decode("utf-8-sig"))
    target = {key: value for key, value in values["target"].items() if key not in ("requirement", "after")}
    examples = {}
    for edit, raw in zip(old.edits, values.get("edit", []), strict=True):
        text = _as_text(edit)
        if text is not None and edit.examples:
            examples.update({(path, text): raw["example"] for path in edit.files})
    return Carried(
        # An edit for some versions was of no use for the others: the one made anew would be taken to fit them all.
        None if _versions(old) else old.target.requirement,
        {"tags": values["tags"]} if "tags" in values else {},
        target,
        {name: values[name] for name in _TABLES if name in values},
        examples,
    )


def lost(old: Patch, new: Patch) -> list[str]:
    """The parts of a patch file that the one made anew has not."""
    kept = {(path, text) for edit in new.edits if (text := _as_text(edit)) and edit.examples for path in edit.files}
    had = [edit for edit in old.edits if edit.examples]
    gone = [edit for edit in had if (text := _as_text(edit)) is None or any((p, text) not in kept for p in edit.files)]
    pairs = [
        (f"requirement {old.target.requirement}", old.target.requirement != new.target.requirement),
        ("versions", _versions(old)),
        ("example", gone),
    ]
    return [name for name, parts in pairs if parts]


def refuse_loss(name: str, parts: Sequence[str]) -> None:
    """Refuse to make a patch anew that would not have what its file has.

    Raises:
        UsageError: ``lost``, where there are any ``parts``.
    """
    if parts:
        raise UsageError(
            f"{name}: made anew, it would not have any more: {', '.join(parts)}; nothing was saved or recorded",
            code="lost",
            hint="make a patch of its own of the edit, under another name; or see with --dry-run what it would be, and "
            "--force makes it",
            details={"patch": name, "lost": list(parts)},
        )


def _versions(patch: Patch) -> list[str]:
    stated = [edit.versions for edit in patch.edits] + [add.versions for add in patch.adds]
    stated += [remove.versions for remove in patch.removes]
    return [versions for versions in stated if versions is not None]


def _as_text(edit: Edit) -> TextEdit | None:
    """An edit as one that can be derived from a hand edit; None where it says more than such a one can."""
    rest = (edit.imports, edit.inside, edit.after, edit.before, edit.versions, edit.count, edit.nth)
    anchor = edit.find if edit.find is not None else edit.match
    if anchor is None or rest != ((), None, None, None, None, 1, None):
        return None
    return TextEdit(edit.scope, anchor, edit.action, edit.text, "find" if edit.find is not None else "match")
