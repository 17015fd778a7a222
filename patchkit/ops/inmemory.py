"""Patches in memory: the modules as a process shall see them, planned as ``apply --dry-run`` plans, and never written.

The view is exactly that of the patches named: planning starts from pristine, so what others are applied on disk is the
installer's again in it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from patchkit.errors import GuardError, PatchkitError, PlanError, SiteError
from patchkit.model.patch import Patch
from patchkit.ops.apply import check_conflicts, prepare, refuse_known_bad
from patchkit.ops.catalog import check_unique_name
from patchkit.ops.change import ChangeSet, FileChange, Wanted, plan_change
from patchkit.ops.check import GLANCE_SECONDS, steady
from patchkit.ops.outcome import unwitnessed_notes
from patchkit.ops.session import once, opened
from patchkit.ops.workspace import Workspace, digest
from patchkit.site.environment import Site, home_of, ledger_homes
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from typing import Literal

    from patchkit.site.distribution import Distribution


class Module(NamedTuple):
    """One module of the view.

    ``name`` is what it is imported by, ``path`` its file and ``base`` the folder of ``sys.path`` that it is under.
    ``before`` is what that file holds (None: there is none), ``after`` what the process sees (None: no such module).
    """

    name: str
    path: str
    base: str
    before: bytes | None
    after: bytes | None
    patches: tuple[str, ...]


class Live(NamedTuple):
    """One patch of the view: ``live``, ``upstreamed`` (the release has the change) or ``skipped`` (optional)."""

    name: str
    action: Literal["live", "upstreamed", "skipped"]
    distribution: str | None
    version: str | None
    site: str
    reason: str | None = None
    modules: tuple[str, ...] = ()


class View(NamedTuple):
    """What a process shall see. ``hidden`` are the patches on disk that are not in it, by the ledgers of ``homes``."""

    patches: tuple[Live, ...]
    modules: tuple[Module, ...]
    hidden: tuple[str, ...]
    homes: tuple[str, ...]
    notes: tuple[str, ...]


def plan_in_memory(
    site: Site,
    patches: Sequence[Patch],
    *,
    allow_known_bad: bool = False,
    notice: Callable[[str], None],
    fetch: Callable[[str], None] | None = None,
    find_patch: Callable[[str], str | None] | None = None,
) -> View:
    """The view of exactly ``patches``, in whatever folders of the site their distributions lie; nothing is written.

    Args:
        site: The site.
        patches: The patches, in the order wanted; none: the modules as they were installed.
        allow_known_bad: Accept patches that are tagged ``known-bad``.
        notice: Told of a command that is waited for.
        fetch: Told of downloads, when pristine bytes may come from the released wheel; None: they may not.
        find_patch: The file of an applied patch by its name, should the ledger have lost its copy.

    Raises:
        PlanError: ``not-a-module``: what a patch changes is no module, so that memory cannot stand in for it; or as
            ``apply`` does, as are the others.
        SiteError: ``shadowed``: imports do not take an edited file.
    """
    check_unique_name(patches)
    wanted = list({patch.name: patch for patch in patches}.values())
    notice = once(notice)

    def look() -> View:
        with ExitStack() as stack:
            planner = _Planner(site, wanted, allow_known_bad)
            for home in planner.homes:
                workspace = stack.enter_context(opened(site.at(home), write=False, notice=notice))
                workspace.fetch = fetch
                workspace.find_patch = find_patch
                planner.enter(workspace)
            return planner.plan()

    return steady(site, look, wait=GLANCE_SECONDS, notice=notice)


class _Planner:
    def __init__(self, site: Site, wanted: Sequence[Patch], allow_known_bad: bool) -> None:
        self._wanted = wanted
        self._allow_known_bad = allow_known_bad
        self.homes: dict[str, list[Patch]] = {}
        for patch in wanted:
            try:
                distribution = site.find(patch.target.name)
            except PatchkitError:
                distribution = None  # its guard says what is the matter
            home = site.home if distribution is None else home_of(site, distribution)
            self.homes.setdefault(home, []).append(patch)
        for home in ledger_homes(site):
            self.homes.setdefault(home, [])
        self._add: list[tuple[Workspace, list[Wanted]]] = []
        self._live: dict[str, Live] = {}

    def enter(self, workspace: Workspace) -> None:
        """Check the guards of the patches for one folder."""
        home = workspace.site.home
        add: list[Wanted] = []
        for patch in self.homes[home]:
            if not self._allow_known_bad:
                refuse_known_bad(patch, "--allow-known-bad runs with it all the same")
            try:
                distribution, held = prepare(workspace, patch)
            except GuardError as error:
                if not patch.target.optional or error.code != "not-installed":
                    raise
                self._live[patch.name] = Live(patch.name, "skipped", None, None, home, "its target is not installed")
                continue
            where = (distribution.normalized, distribution.version, home)
            if held is not None:
                self._live[patch.name] = Live(patch.name, "upstreamed", *where, held)
            else:
                self._live[patch.name] = Live(patch.name, "live", *where)
                add.append(Wanted(patch, distribution))
        self._add.append((workspace, add))

    def plan(self) -> View:
        """Lay them, folder by folder."""
        named = {wanted.patch.name for _, add in self._add for wanted in add}
        recorded = [entry.name for workspace, _ in self._add for entry in workspace.ledger.patches]
        modules: list[Module] = []
        hidden: dict[str, None] = {}
        notes: list[str] = []
        for workspace, add in self._add:
            check_conflicts(workspace, [w.patch for _, all_of in self._add for w in all_of], {*recorded} - named)
            here = {wanted.patch.name for wanted in add}
            drop = [entry.name for entry in workspace.ledger.patches if entry.name not in here]
            hidden.update((name, None) for name in drop if name not in named)
            changes = plan_change(workspace, add=add, drop=drop)
            view = _Modules(workspace, changes, here)
            modules += view.modules
            notes += unwitnessed_notes(changes, workspace.ledger.files)
        live = []
        for patch in self._wanted:
            names = tuple(module.name for module in modules if patch.name in module.patches)
            live.append(self._live[patch.name]._replace(modules=names))
        return View(tuple(live), tuple(modules), tuple(hidden), tuple(self.homes), tuple(notes))


class _Modules:
    """The modules of one folder's plan."""

    def __init__(self, workspace: Workspace, changes: ChangeSet, named: set[str]) -> None:
        self._workspace = workspace
        self._hidden = {change.absolute for change in changes.files.values() if change.target is None}
        self._shadows: dict[str, Callable[[str], str | None]] = {}
        self.modules = []
        for change in changes.files.values():
            layers = () if change.stack is None else tuple(name for name, _ in change.stack.layers if name in named)
            if layers or change.current != change.target:
                module = self._module(change, layers)
                if module is not None:
                    self.modules.append(module)

    def _module(self, change: FileChange, patches: tuple[str, ...]) -> Module | None:
        distribution = self._distribution(change)
        base = self._workspace.site.home if distribution is None else distribution.base
        path = os.path.relpath(change.absolute, os.path.realpath(base)).replace(os.sep, "/")
        if path.startswith("../"):
            path = os.path.relpath(change.absolute, base).replace(os.sep, "/")
        name = module_name(path)
        if name is None:
            if change.current == change.target:
                return None  # on disk already, and so there for whoever opens it
            raise self._no_module(change, path, patches)
        if change.target is None:
            self._refuse_remains(change, path, patches)
        elif change.current is not None and patches and distribution is not None:
            self._refuse_shadowed(distribution, path, change, name)
        return Module(name, change.absolute, base, change.current, change.target, patches)

    def _distribution(self, change: FileChange) -> Distribution | None:
        if change.stack is not None:
            return change.stack.distribution
        return self._workspace.distribution(self._workspace.ledger.files[change.key].distribution)

    def _no_module(self, change: FileChange, path: str, patches: tuple[str, ...]) -> PlanError:
        if patches:
            return PlanError(
                f"{patches[0]}: {path} is no module that is imported by its name, and only those can be patched in "
                "memory: whoever opens the file reads it from disk",
                code="not-a-module",
                hint=f"write it: patchkit apply {' '.join(patches)}",
                details={"patch": patches[0], "path": path},
            )
        names = [entry.name for entry in self._workspace.ledger.patches if change.key in entry.files]
        return PlanError(
            f"{', '.join(names)} is applied on disk and not named, and {path} is no module, so that memory cannot give "
            "the installer's back",
            code="not-a-module",
            hint=f"name it as well (--with {names[0]}), or take it out: patchkit revert {' '.join(names)}",
            details={"patch": names[0], "path": path},
        )

    def _refuse_remains(self, change: FileChange, path: str, patches: tuple[str, ...]) -> None:
        """Without its ``__init__.py``, a folder with more in it would be a namespace package."""
        folder, file = os.path.split(change.absolute)
        if file != "__init__.py":
            return
        rest = [
            one
            for one in sorted(os.listdir(folder))
            if one != "__pycache__" and os.path.join(folder, one) not in self._hidden
        ]
        if rest and patches:
            raise PlanError(
                f"{patches[-1]}: it removes {path}, and memory cannot take that away without the folder's other files "
                f"({rest[0]})",
                code="not-a-module",
                hint=f"write it: patchkit apply {' '.join(patches)}",
                details={"patch": patches[-1], "path": path},
            )
        if rest:
            names = " ".join(entry.name for entry in self._workspace.ledger.patches if change.key in entry.files)
            raise PlanError(
                f"{names} is applied on disk and not named; it added {path}, and memory cannot take that away without "
                f"the folder's other files ({rest[0]})",
                code="not-a-module",
                hint=f"name it as well, or take it out: patchkit revert {names}",
                details={"patch": names, "path": path},
            )

    def _refuse_shadowed(self, distribution: Distribution, path: str, change: FileChange, name: str) -> None:
        if distribution.info not in self._shadows:
            from patchkit.site.shadow import Shadows

            self._shadows[distribution.info] = Shadows(distribution).find
        found = self._shadows[distribution.info](path)
        if found is not None:
            raise SiteError(
                f"{path}: imports take {found} instead, so {name} cannot be patched, neither in memory nor on disk",
                code="shadowed",
                hint="take that out of the way, or leave this patch out",
                details={"path": path, "module": name, "taken": found},
            )


def module_name(path: str) -> str | None:
    """What the module in this file of a distribution is imported by; None where it is no module.

    Args:
        path: Relative to the folder on ``sys.path``, with "/".
    """
    if not path.endswith(".py"):
        return None
    parts = path[:-3].split("/")
    if len(parts) > 1 and parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts) if all(part.isidentifier() for part in parts) else None


def before_sha256(module: Module) -> str | None:
    """The SHA-256 of what the file holds."""
    return None if module.before is None else digest(module.before)


def after_sha256(module: Module) -> str | None:
    """The SHA-256 of what the process sees."""
    return None if module.after is None else digest(module.after)
