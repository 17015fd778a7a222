"""From "these patches shall be on, those off" to a set of file changes and the ledger that goes with them.

Apply, revert and sync are the same operation with other lists: the patches of every affected file are laid afresh,
in order, from pristine.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from patchkit.edit.lay import PYTHON, check_parses
from patchkit.edit.plan import PatchPlan, plan_patch
from patchkit.errors import AnchorError, ConditionError, GuardError, PatchkitError, PlanError, SiteError
from patchkit.model.load import parse_patch
from patchkit.model.patch import Patch
from patchkit.ops.obstacles import refuse_led_out, refuse_obstacle
from patchkit.ops.ordering import sorted_by_after
from patchkit.ops.stacks import FileStack, StackFiles, changed_by
from patchkit.ops.workspace import Workspace, reinstall_command
from patchkit.runtime.ledger import key_of
from patchkit.site.distribution import Distribution
from patchkit.site.grammar import Grammar
from patchkit.site.guard import Guarded, check_guards
from patchkit.state.ledger import FileEntry, PatchEntry, scripts_of
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.edit.regions import Script


class Wanted(NamedTuple):
    """A patch that shall be on, with the distribution that its guards accepted."""

    patch: Patch
    distribution: Distribution


class FileChange(NamedTuple):
    """What one file holds and shall hold; None: no file.

    ``kept`` says that hand edits stay around our change, ``discarded`` holds the bytes that ``force`` throws away.
    ``mode`` and ``mtime_ns`` are those of the result; None: as they are, and now.
    """

    key: str
    path: str
    absolute: str
    current: bytes | None
    target: bytes | None
    stack: FileStack | None
    mode: int | None
    mtime_ns: int | None
    kept: bool = False
    discarded: bytes | None = None


class ChangeSet:
    """Everything that one call would write, and the patches as they will stand in the ledger."""

    def __init__(self, order: Sequence[Wanted | PatchEntry], dropped: Iterable[str] = ()) -> None:
        self.order = list(order)
        self.dropped = sorted(dropped)
        self.plans: dict[str, PatchPlan] = {}
        self.files: dict[str, FileChange] = {}
        #: Patches of the ledger that are put back with those asked for: a reinstall had taken them out.
        self.restored: dict[str, None] = {}

    @property
    def writes(self) -> list[FileChange]:
        """The files whose bytes change."""
        return [change for change in self.files.values() if change.current != change.target]


def guard(workspace: Workspace, patch: Patch) -> Guarded:
    """Check a patch's guards on the site.

    Raises:
        GuardError: With the patch's name and file.
    """
    try:
        target = patch.target._replace(requires=()) if workspace.ignore_requires else patch.target
        return check_guards(target, workspace.site)
    except PatchkitError as error:
        error.message = f"{patch.name}: {error.message}"
        error.details.setdefault("patch", patch.name)
        error.details.setdefault("patch_file", patch.path)
        raise


def ledger_patch(workspace: Workspace, recorded: PatchEntry) -> Patch:
    """The patch as it was when it was applied, out of the ledger."""
    return parse_patch(workspace.patch_data(recorded), f"{recorded.name}.toml")


def plan_change(
    workspace: Workspace,
    *,
    add: Sequence[Wanted] = (),
    drop: Iterable[str] = (),
    keep_hand_edits: bool = False,
    force: bool = False,
) -> ChangeSet:
    """Plan that the patches ``add`` are on (afresh, where the ledger has them) and those named ``drop`` off.

    Args:
        workspace: The site.
        add: Patches to lay; one that the ledger has under its name is taken out first and keeps its place.
        drop: Names in the ledger to take out.
        keep_hand_edits: Keep edits made by hand since, outside of what we wrote, instead of refusing.
        force: Discard the edits made by hand since in each file where they cannot be kept.

    Raises:
        PatchkitError: Whatever does not fit; nothing has been written.
    """
    gone = set(drop)
    new = {wanted.patch.name: wanted for wanted in add}
    order: list[Wanted | PatchEntry] = [new.pop(p.name, p) for p in workspace.ledger.patches if p.name not in gone]
    order += new.values()
    items = {one.name if isinstance(one, PatchEntry) else one.patch.name: one for one in order}
    wishes = {n: one.after if isinstance(one, PatchEntry) else one.patch.target.after for n, one in items.items()}
    order = [items[name] for name in sorted_by_after(wishes)]
    changes = ChangeSet(order, gone)
    affected = _affected(workspace, add, gone)
    named = gone | {wanted.patch.name for wanted in add}
    stacks: dict[str, FileStack] = {}
    grammar = Grammar(workspace.site)
    workspace.suspects = [wanted.patch for wanted in add]
    for item in order:
        if isinstance(item, PatchEntry):
            if item.name not in affected or not workspace.in_force(item):
                continue
            patch = ledger_patch(workspace, item)
            distribution = _distribution_of(workspace, item)
        else:
            patch, distribution = item.patch, item.distribution
        try:
            changes.plans[patch.name] = _lay(workspace, patch, distribution, stacks, grammar)
        except (AnchorError, ConditionError, PlanError, GuardError) as error:
            if error.code == "unparsable":
                _check_parses(changes, stacks, grammar)  # by the doing of a patch below: then that is what is wrong
            if isinstance(item, PatchEntry):
                _explain_misfit(error, item.name, sorted(named), reverting=not add)
            raise
    _check_parses(changes, stacks, grammar)
    # A file that was only looked at, for a condition, is not touched.
    touched = dict.fromkeys(key for key, stack in stacks.items() if stack.layers)
    ours: set[str] = {key for wanted in add for key in _keys(workspace, wanted.patch, wanted.distribution)}
    for recorded in workspace.ledger.patches:
        if recorded.name in affected:
            touched.update(dict.fromkeys(recorded.files))
        if recorded.name in named:
            ours.update(recorded.files)
    for key in touched:
        stack = stacks.get(key)
        if key not in ours and _as_before(workspace, key, stack):
            continue
        change = _file_change(workspace, key, stack, keep_hand_edits=keep_hand_edits, force=force)
        if change is not None:
            changes.files[key] = change
            if stack is not None and change.current != change.target and _is_pristine(stack, change.current):
                back = (p.name for p in workspace.ledger.patches if key in p.files and p.name in affected - named)
                changes.restored.update(dict.fromkeys(back))
    return changes


def _distribution_of(workspace: Workspace, recorded: PatchEntry) -> Distribution:
    """The distribution of an applied patch that is to be laid anew.

    Raises:
        SiteError: ``metadata``: what it was applied to is there, and cannot be read.
    """
    distribution = workspace.distribution(recorded.distribution)
    if distribution is not None:
        return distribution
    place = workspace.absolute(recorded.info) if recorded.info is not None else workspace.site.home
    raise SiteError(
        f"{recorded.name}, which is applied as well, has to be laid anew, and {place} does not say any more what "
        f"{recorded.distribution} {recorded.version} is: its METADATA is gone or cannot be read",
        code="metadata",
        hint=f"install it again: `{reinstall_command(workspace.site, recorded.distribution, recorded.version)}`, then "
        f"`patchkit sync`; or take {recorded.name} out as well",
        details={"path": place, "distribution": recorded.distribution, "patch": recorded.name},
    )


def _explain_misfit(error: PatchkitError, name: str, others: Sequence[str], *, reverting: bool) -> None:
    """Say that it is an applied patch, not the one asked for, that does not fit any more; and what to do."""
    names = ", ".join(others)
    what = f"with {names} taken out" if reverting else f"with {names} as it is now"
    error.message = f"{name}, which is applied as well, would not fit any more {what}:\n{error.message}"
    error.hint = (
        f"take both out: patchkit revert {' '.join([*others, name])}"
        if reverting
        else f"take {name} out first: patchkit revert {name}"
    )
    error.details["misfit"] = name


def _as_before(workspace: Workspace, key: str, stack: FileStack | None) -> bool:
    """Whether what is laid on a file anew is what the ledger says: then it is left alone, hand edits and all.

    Not so where a reinstall made the file pristine: a patch that comes back in one of its files does so in all of them.
    """
    entry = workspace.entry_in_force(key)
    if entry is None or stack is None or (stack.data is None and not stack.layers):
        return False
    return entry.ours(stack.data) and not _is_pristine(stack, workspace.current(workspace.absolute(key)))


def _is_pristine(stack: FileStack, data: bytes | None) -> bool:
    """Whether ``data`` is what the file held before any patch; None for one that a patch adds."""
    return data == (None if stack.pristine is None else stack.pristine.data)


def _lay(
    workspace: Workspace,
    patch: Patch,
    distribution: Distribution,
    stacks: dict[str, FileStack],
    grammar: Grammar,
) -> PatchPlan:
    files = StackFiles(workspace, distribution, stacks)

    def who() -> str:
        return patch.path or patch.name

    try:
        plan = plan_patch(patch, files, grammar)
    except PlanError as error:
        if not error.message.startswith(patch.path or patch.name):  # one that knows the target's file alone
            error.message = f"{patch.path or patch.name}: {error.message}"
            error.details.setdefault("patch_file", patch.path)
        if error.code == "anchor-missing":
            _say_if_there_already(error, patch, files)
        raise
    for file in plan.files:
        if file.before is None:
            stack = files.create(file.path, wanted_by=who, content=file.after)
        else:
            stack = files.open(file.path, wanted_by=who)
            if file.after is None and stack.layers:
                raise changed_by(patch, file.path, stack.layers[-1][0])
        stack.layers.append((patch.name, file))
    return plan


def _say_if_there_already(error: PatchkitError, patch: Patch, files: StackFiles) -> None:
    """Where a release has the new text by itself, the missing anchor is no mistake of the patch."""
    from patchkit.ops.rebuild import there_already

    path = str(error.details["path"])
    meant = tuple(edit for edit in patch.edits if edit.versions is None or files.matches(edit.versions))
    lines = there_already(patch._replace(edits=meant), path, files.read(path, wanted_by=lambda: patch.name))
    if lines is not None:
        at = f"line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}"
        error.hint = (
            f"{path} has in {at} what the patch would write: where release {files.version} has the change, say so with "
            "[[upstreamed]] in the patch file, or drop the patch; nothing was written"
        )
        error.details["there_already"] = lines


def _check_parses(changes: ChangeSet, stacks: dict[str, FileStack], grammar: Grammar) -> None:
    """Judge each file once, with every layer on; only where one does not parse, layer by layer: whose fault is it?"""
    laid = {key: stack.data for key, stack in stacks.items() if stack.layers and key.endswith(PYTHON)}
    final = {key: data for key, data in laid.items() if data is not None}
    if grammar.judge(final):
        for plan in changes.plans.values():
            check_parses(plan.patch, plan.files, grammar.judge)


def _affected(workspace: Workspace, add: Sequence[Wanted], gone: set[str]) -> set[str]:
    """The ledger's patches that must be laid afresh: those named, and all that share files with them, directly or not.

    A file that a condition looks at is shared as well: the condition must see what the other patches made of it.
    """
    keys = {key for wanted in add for key in _keys(workspace, wanted.patch, wanted.distribution)}
    names = gone | {wanted.patch.name for wanted in add}
    recorded = {entry.name: entry for entry in workspace.ledger.patches}
    # A condition looks at files of the patch's own distribution only: of no other one is a TOML read.
    concerned = {wanted.distribution.normalized for wanted in add}
    concerned.update(recorded[name].distribution for name in names if name in recorded)
    known: dict[str, set[str]] = {}
    pending = True
    while pending:
        pending = False
        for name, entry in recorded.items():
            if entry.distribution in concerned and name not in known:
                known[name] = _recorded_keys(workspace, entry)
            own = known.get(name) or set(entry.files)
            if (name in names or not keys.isdisjoint(own)) and not (name in names and keys.issuperset(own)):
                names.add(name)
                keys.update(own)
                concerned.add(entry.distribution)
                pending = True
    return names


def _keys(workspace: Workspace, patch: Patch, distribution: Distribution) -> set[str]:
    """The ledger keys of every file that a patch edits, adds, takes away or looks at."""
    paths = [file for edit in patch.edits for file in edit.files]
    paths += [file for remove in patch.removes for file in remove.files]
    paths += [extra.file for extra in patch.adds]
    paths += [c.file for c in (*patch.preconditions, *patch.postconditions) if c.file is not None]
    return {key_of(workspace.site.home, os.path.join(distribution.base, *path.split("/"))) for path in set(paths)}


def _recorded_keys(workspace: Workspace, recorded: PatchEntry) -> set[str]:
    """The same of an applied patch. Its TOML is parsed only when it has conditions: the ledger knows the rest."""
    keys = set(recorded.files)
    if not workspace.in_force(recorded):
        return keys
    try:
        data = workspace.patch_data(recorded)
    except SiteError:
        return keys  # its copy is lost: told when it is needed
    if b"condition" in data:
        distribution = workspace.distribution(recorded.distribution)
        if distribution is not None:
            keys |= _keys(workspace, ledger_patch(workspace, recorded), distribution)
    return keys


def _file_change(
    workspace: Workspace, key: str, stack: FileStack | None, *, keep_hand_edits: bool, force: bool
) -> FileChange | None:
    absolute = workspace.absolute(key)
    known = workspace.ledger.files.get(key)
    leaves_none = known is not None and None in (known.pristine, known.after)
    if leaves_none and os.path.isdir(absolute):
        refuse_obstacle(absolute)
    current = workspace.current(absolute)
    entry = workspace.entry_in_force(key)
    if stack is None and entry is None:
        return None  # another version was installed since: the file is not ours any more
    refuse_led_out(workspace.site, absolute)
    pristine, mode, mtime_ns = _before_us(workspace, key, stack, entry)
    target = pristine if stack is None else stack.data
    if leaves_none and current is None and target is not None:
        refuse_obstacle(absolute)
    change = FileChange(
        key,
        key if stack is None else stack.path,
        absolute,
        current,
        target,
        stack,
        mode,
        mtime_ns if target == pristine else None,
    )
    if (entry is not None and entry.ours(current)) or current in (pristine, target):
        return change
    if os.path.islink(absolute):
        from patchkit.ops.witness import refuse_foreign_link

        refuse_foreign_link(workspace, absolute)
    if keep_hand_edits and entry is not None and entry.after is not None and current is not None:
        try:
            return change._replace(target=_around_hand_edits(workspace, change), kept=True, mtime_ns=None)
        except SiteError:
            if not force:
                raise
    if force:
        return change._replace(discarded=current)
    if stack is not None and current is not None:
        from patchkit.ops.witness import may_be_linked, refuse_tainted

        refuse_tainted(stack.distribution, change.path, change.absolute, lone=may_be_linked(workspace, key))
    if entry is None and stack is not None:
        name, version = stack.distribution.name, stack.distribution.version
        raise SiteError(
            f"{change.path}: differs from {name} {version} as released, and the ledger does not know the change",
            code="modified",
            hint=f"to have the release's bytes again: `{reinstall_command(workspace.site, name, version)}`, then the "
            f"same command again; to keep the change, make a patch of it first: `patchkit create NAME {name}`",
            details={"path": change.path, "state": "modified"},
        )
    names = _names_on(workspace, key)
    forced = f"`patchkit revert {names} --force`"
    back = entry is not None and entry.after is None
    edited = "is there again, with other content than it had" if back else "was edited since patchkit wrote it"
    raise SiteError(
        f"{change.path}: " + ("is gone" if current is None else edited),
        code="modified",
        hint=f"{forced} brings it back without what {names} wrote"
        if current is None
        else f"see `patchkit diff`; `patchkit revert {names}` keeps edits made outside of what patchkit wrote, "
        f"{forced} discards those inside, and keeps a copy",
        details={"path": change.path, "state": "modified"},
    )


def _names_on(workspace: Workspace, key: str) -> str:
    """The applied patches of a file, as arguments of a command."""
    return " ".join(patch.name for patch in workspace.ledger.patches if key in patch.files)


def _before_us(
    workspace: Workspace, key: str, stack: FileStack | None, entry: FileEntry | None
) -> tuple[bytes | None, int | None, int | None]:
    """The pristine bytes, mode and mtime of a file; None three times for one that a patch adds."""
    if stack is not None:
        found = stack.pristine
        return (None, None, None) if found is None else (found.data, found.mode, found.mtime_ns)
    if entry is None or entry.pristine is None:
        return None, None, None
    found = workspace.original(key)
    assert found is not None
    return found.data, found.mode, found.mtime_ns


def _around_hand_edits(workspace: Workspace, change: FileChange) -> bytes:
    """``target`` with the edits that were made by hand since we wrote the file.

    Raises:
        SiteError: ``hand-edit-inside``: one of them lies inside of what we wrote.
    """
    from patchkit.edit.regions import diff_script, merge

    ours = workspace.written(change.key)
    assert change.current is not None
    by_hand = diff_script(ours, change.current)
    if change.target is None:
        disputed = list(by_hand)  # a file that a patch added: all of it is ours
    else:
        merged = merge(ours, _way(workspace, change, ours), by_hand)
        if isinstance(merged, bytes):
            return merged
        disputed = [one for conflict in merged for one in conflict.theirs]
    from patchkit.ops.dispute import dispute, shown

    disputes = [dispute(ours, change.current, by_hand, one) for one in disputed]
    what = "was edited by hand inside of what patchkit wrote"
    line_breaks = change.current.replace(b"\r\n", b"\n") == ours.replace(b"\r\n", b"\n")
    if line_breaks:
        what += "; only line breaks differ"
    raise SiteError(
        "\n".join([f"{change.path}: {what}", *shown(disputes)]),
        code="hand-edit-inside",
        hint="undo the hand edit, or discard it with --force (a copy is kept): "
        f"`patchkit revert {_names_on(workspace, change.key)} --force`",
        details={
            "path": change.path,
            "state": "modified",
            "conflicts": [one.line for one in disputes],
            "line_breaks": line_breaks,
        },
    )


def _way(workspace: Workspace, change: FileChange, ours: bytes) -> Script:
    """The exact script from what we wrote to the target: the recorded splices undone, the remaining ones done."""
    from patchkit.edit.regions import compose, diff_script, invert

    entry = workspace.ledger.files[change.key]
    if not entry.layers:
        return diff_script(ours, change.target or b"")
    original = workspace.original(change.key)
    pristine = b"" if original is None else original.data
    done: Script = ()
    for _, splices in scripts_of(entry.layers, pristine, ours):
        done = compose(done, tuple(splices))
    wanted: Script = ()
    for _, plan in change.stack.layers if change.stack is not None else []:
        wanted = compose(wanted, plan.splices)
    # A region that is taken out and put back as it was is not a change.
    return tuple(splice for splice in compose(invert(done), wanted) if splice.old != splice.new)
