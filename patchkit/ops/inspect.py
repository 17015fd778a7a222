"""Looking without touching: the patches there are, one patch in words, the site's difference, the history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from patchkit.errors import PatchkitError, UsageError
from patchkit.model.patch import Patch
from patchkit.ops.apply import upstream_reason
from patchkit.ops.catalog import Catalog
from patchkit.ops.change import guard, ledger_patch
from patchkit.ops.homes import Homes
from patchkit.ops.witness import notes_in_place, tainted, tainted_file
from patchkit.site.shadow import looks_odd
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from typing import Literal

    ListWord = Literal["applied", "drifted", "available", "conflict", "refused", "upstreamed", "wrong"]


class Listed(NamedTuple):
    """One patch of the catalogue, or of a ledger; ``site`` is the folder whose ledger has it, or would.

    ``state``: "applied" (in place) and "drifted" (not, see ``check``) are for recorded patches. Of the others,
    "available" could be applied; "upstreamed" is needless, the release has the change; "conflict": a file is not as
    installed; "refused": a guard does not hold; "wrong": the patch file is.
    """

    name: str
    path: str | None
    origin: str
    summary: str
    requirement: str
    state: ListWord
    wanted: bool
    tags: tuple[str, ...]
    reason: str | None
    site: str


def list_patches(homes: Homes, catalog: Catalog) -> list[Listed]:
    """Every patch that can be named here, and those applied whose file is nowhere any more."""
    wanted = catalog.project.wanted if catalog.project is not None else ()
    listed: list[Listed] = []
    seen: set[str] = set()
    for name, path, origin in catalog.names():
        seen.add(name)
        try:
            patch = catalog.load(path)
        except PatchkitError as error:
            first = error.message.partition("\n")[0]
            listed.append(Listed(name, path, origin, "", "", "wrong", name in wanted, (), first, homes.site.home))
            continue
        about = (name, path, origin, patch.summary, patch.target.requirement)
        for state, reason, home in states_of(homes, patch):
            listed.append(Listed(*about, state, name in wanted, patch.tags, reason, home))
    listed += [
        Listed(
            recorded.name,
            recorded.source,
            "ledger",
            recorded.summary,
            recorded.requirement,
            "applied" if homes.in_place(workspace).recorded(recorded) else "drifted",
            recorded.name in wanted,
            (),
            "its patch file is in none of the folders looked in; the ledger holds a copy",
            workspace.site.home,
        )
        for workspace in homes.all()
        for recorded in workspace.ledger.patches
        if recorded.name not in seen
    ]
    return listed


def find_patch(homes: Homes, catalog: Catalog, name: str) -> Patch:
    """The patch of that name or path; where no file has it any more, a ledger's copy.

    Raises:
        UsageError: ``unknown-patch``.
        PatchFileError: The file is wrong.
    """
    for workspace, recorded in homes.applied(name):
        path = catalog.file_of(name, recorded.source)
        return catalog.load(path) if path is not None else ledger_patch(workspace, recorded)
    return catalog.load(catalog.path_of(name, [p.name for one in homes.all() for p in one.ledger.patches]))


def states_of(homes: Homes, patch: Patch) -> list[tuple[ListWord, str | None, str]]:
    """The word of :class:`Listed` for ``patch``, why, and the folder: for each ledger that has it, else one."""
    found: list[tuple[ListWord, str | None, str]] = []
    for workspace, recorded in homes.applied(patch.name):
        here = homes.in_place(workspace).applied(patch)
        home = workspace.site.home
        if here:
            odd = looks_odd(workspace.site, home, recorded.files)
            notes = notes_in_place(workspace, recorded, brief=True) if odd else []
            found.append(("applied", "; ".join(notes) or None, home))
        else:
            found.append(("drifted", tainted_file(workspace, recorded) or "see `patchkit check`", home))
    return found or [compatibility(homes, patch)]


def compatibility(homes: Homes, patch: Patch) -> tuple[ListWord, str | None, str]:
    """Whether ``patch`` could be applied: ("available"|"upstreamed"|"conflict"|"refused", why, the folder)."""
    home = homes.site.home
    try:
        workspace = homes.of(patch.target.name)
        home = workspace.site.home
        distribution = workspace.distribution(patch.target.name)
        if distribution is None:
            return "refused", f"{patch.target.name} is not installed", home
        upstream = upstream_reason(workspace, patch, distribution)
        if upstream is not None:
            return "upstreamed", upstream, home
        guard(workspace, patch)
        taint = tainted(workspace, patch, distribution)
        if taint is not None:
            return "conflict", taint, home
    except PatchkitError as error:
        return "refused", error.message.partition("\n")[0], home
    return "available", None, home


def describe(patch: Patch) -> list[str]:
    """``patch`` in words: what it changes, where, and what must hold."""
    lines = []
    for edit in patch.edits:
        files = ", ".join(edit.files)
        place = f" in {edit.scope}" if edit.scope else ""
        only = f" [only for {edit.versions}]" if edit.versions else ""
        narrow = "".join(
            f", {word} {_quoted(text)}"
            for word, text in (("inside", edit.inside), ("after", edit.after), ("before", edit.before))
            if text
        )
        joint = "of" if place or narrow else "in"
        lines.append(
            f"edit {edit.index}: {_deed(edit.action, edit.anchor_key, edit)}{place}{narrow} {joint} {files}{only}"
        )
    for add in patch.adds:
        only = f" [only for {add.versions}]" if add.versions else ""
        lines.append(f"add {add.index}: new file {add.file}{only}")
    for remove in patch.removes:
        only = f" [only for {remove.versions}]" if remove.versions else ""
        lines.append(f"remove {remove.index}: take away {', '.join(remove.files)}{only}")
    for condition in (*patch.preconditions, *patch.postconditions):
        anchor = _quoted(condition.find if condition.find is not None else condition.match or "")
        times = {0: "nowhere", 1: "once", 2: "twice"}.get(condition.at_least, f"{condition.at_least} times")
        number = f"at least {times}" if condition.at_most is None else times
        when = "before" if condition.kind == "precondition" else "after"
        place = f"{condition.scope} of " if condition.scope else ""
        lines.append(f"{when}: {anchor} stands {number} in {place}{condition.file}")
    for condition in patch.upstreamed:
        holds = [f"version {condition.versions}"] if condition.versions else []
        if condition.file is not None:
            anchor = _quoted(condition.find if condition.find is not None else condition.match or "")
            holds.append(f"{anchor} in {condition.file}")
        lines.append(f"not needed where the release has it: {', '.join(holds)}")
    return lines


def _deed(action: str, key: str, edit: Any) -> str:
    anchor = edit.find if edit.find is not None else edit.match
    number = (
        ""
        if edit.count == 1
        else f" ({edit.count} places)"
        if edit.nth is None
        else f" (number {edit.nth} of {edit.count})"
    )
    if action == "add_import":
        return f"add `{'; '.join(edit.imports)}`"
    if action == "probe":
        return "report the first execution"
    kind = "text" if key == "find" else "code"
    verb = {
        "replace": "replace",
        "delete": "delete",
        "wrap": "wrap",
        "insert_before": "insert before",
        "insert_after": "insert after",
    }[action]
    return f"{verb} {kind} {_quoted(anchor or '')}{number}"


def _quoted(text: str) -> str:
    """The first line of an anchor in backticks, and how many more it has."""
    lines = [line.strip() for line in text.strip().split("\n")]
    first = lines[0][:60] + ("..." if len(lines[0]) > 60 else "")
    return f"`{first}`{_more(len(lines) - 1)}"


def _more(lines: int) -> str:
    return f" (and {lines} line{'s' if lines > 1 else ''} more)" if lines else ""


class FileDifference(NamedTuple):
    """One file that differs from what was installed, with the patches on it. ``modified``: not as we wrote it."""

    path: str
    patches: tuple[str, ...]
    modified: bool
    pristine: bytes | None
    current: bytes | None
    site: str


def differences(homes: Homes, names: Sequence[str] = ()) -> list[FileDifference]:
    """The files of the ledgers (of the patches ``names`` only), pristine against current.

    Raises:
        UsageError: A name is not applied.
    """
    for name in names:
        if not homes.applied(name):
            raise UsageError(
                f"{name} is not applied", code="not-applied", hint=f"`patchkit apply {name} --dry-run --diff`"
            )
    found = []
    for workspace in homes.all():
        chosen = [patch for patch in workspace.ledger.patches if not names or patch.name in names]
        for key in dict.fromkeys(key for patch in chosen for key in patch.files):
            entry = workspace.entry_in_force(key)
            if entry is None:
                continue
            current = workspace.current(workspace.absolute(key))
            original = workspace.original(key)
            pristine = None if original is None else original.data
            if current != pristine:
                modified = not entry.ours(current)
                layers = tuple(layer.patch for layer in entry.layers) or tuple(p.name for p in chosen if key in p.files)
                found.append(FileDifference(key, layers, modified, pristine, current, workspace.site.home))
    return found


def unified(path: str, before: bytes | None, after: bytes | None, *, exact: bool = False) -> str:
    """A unified diff with git's ``a/`` and ``b/``; "" where nothing differs. Lines end at ``\\n`` alone.

    ``exact``: bytes that are no UTF-8 are lone surrogates, by which :meth:`patchkit.cli.output.Output.diff` writes the
    very bytes; else they are spelled out.
    """
    from patchkit.edit.unified import file_names, hunks

    if before == after:
        return ""
    old, new = file_names(path, before, after)
    body = b"".join(hunks(before or b"", after or b""))
    return f"--- {old}\n+++ {new}\n" + body.decode("utf-8", "surrogateescape" if exact else "backslashreplace")
