"""Make the site match the project's list: apply what is missing, take out what is not wanted, heal a reinstall."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack

from patchkit.errors import SiteError, UsageError
from patchkit.model.patch import Patch
from patchkit.ops.apply import applied_result, check_conflicts, refuse_known_bad, upstream_reason
from patchkit.ops.catalog import Catalog
from patchkit.ops.change import Wanted, guard, ledger_patch, plan_change
from patchkit.ops.check import GLANCE_SECONDS, PatchState, check_site, steady
from patchkit.ops.commit import commit_change
from patchkit.ops.homes import Homes
from patchkit.ops.outcome import (
    Outcome,
    PatchResult,
    Prepared,
    carry_out,
    changed_files,
    reverted_files,
    shadow_notes,
    shared_notes,
    unchanged_files,
)
from patchkit.ops.session import mend_all, once, opened
from patchkit.ops.workspace import Workspace, reinstall_command
from patchkit.runtime.ledger import file_path, installed, read
from patchkit.site.distribution import Distribution
from patchkit.site.environment import Site, home_of, ledger_homes
from patchkit.state.access import check_writable
from patchkit.state.lock import WAIT_SECONDS, in_order


class _Task:
    """What is to be done in one directory: names to lay (with their states), to take out, and needless ones."""

    def __init__(self) -> None:
        self.add: dict[str, PatchState] = {}
        self.drop: dict[str, str] = {}
        self.upstreamed: dict[str, PatchState] = {}

    @property
    def idle(self) -> bool:
        return not (self.add or self.drop or self.upstreamed)


def sync_site(
    site: Site,
    catalog: Catalog,
    *,
    dry_run: bool = False,
    allow_known_bad: bool = False,
    ignore_requires: bool = False,
    notice: Callable[[str], None],
    fetch: Callable[[str], None] | None = None,
) -> Outcome:
    """Make the site match the project's list; without one, what the ledgers hold is what is wanted.

    Each directory of the path is a transaction of its own; all are planned before the first is written.

    Args:
        site: The site.
        catalog: Patch files and the project's list.
        dry_run: Plan only.
        allow_known_bad: Accept wanted patches that are tagged ``known-bad``.
        ignore_requires: Leave the patches' ``requires`` unchecked.
        notice: Told of an interrupted command that was mended, and of a lock that is waited for.
        fetch: Told of downloads, when pristine bytes may come from the released wheel; None: they may not.

    Raises:
        SiteError: ``modified``: check says conflict somewhere; ``changed``: another command was at work at the same
            time. Nothing is written then.
        UsageError: ``unknown-patch``: the file of a wanted patch is missing.
        GuardError: A wanted patch is refused by its guards.
        PlanError: One does not fit.
    """
    notice = once(notice)
    mend_all(site, notice, wait=not dry_run)

    def look() -> _Sync:
        return _Sync(site, catalog, allow_known_bad, notice)

    first = steady(site, look, wait=GLANCE_SECONDS if dry_run else WAIT_SECONDS, notice=notice)
    homes = [home for home, task in first.tasks.items() if not task.idle]
    with ExitStack() as stack:
        workspaces = {
            home: stack.enter_context(opened(site.at(home), write=not dry_run, notice=notice))
            for home in in_order(homes)
        }
        # What the states were before the locks were held is not what counts.
        again = bool(homes) and not dry_run
        sync = steady(site, look, notice=notice) if again else first
        late = [home for home, task in sync.tasks.items() if not task.idle and home not in workspaces]
        if late:
            raise SiteError(
                f"{late[0]}: changed while sync waited for its turn; nothing was written",
                code="changed",
                hint="run the command again",
                details={"path": late[0]},
            )
        prepared = []
        for home in homes:
            workspace = workspaces[home]
            workspace.fetch = fetch
            workspace.ignore_requires = ignore_requires
            workspace.find_patch = catalog.find
            prepared.append(sync.prepare(workspace, sync.tasks.get(home, _Task()), dry_run))
        outcome = carry_out(prepared, dry_run=dry_run)
    outcome.patches += sync.results
    order = sync.order
    outcome.patches.sort(key=lambda result: order.index(result.name))
    return outcome


class _Sync:
    """One look at the site: what each directory needs, and the results of the patches that need nothing."""

    def __init__(self, site: Site, catalog: Catalog, allow_known_bad: bool, notice: Callable[[str], None]) -> None:
        self.site = site
        self.catalog = catalog
        self._homes = Homes(site)
        self.tasks: dict[str, _Task] = {}
        self.results: list[PatchResult] = []
        self.patches: dict[str, Patch] = {}
        report = check_site(site, (), catalog, notice=notice)
        if report.damage:
            raise report.damage[0]
        ledgers = {home: read(home) or {"patches": (), "upstreamed": ()} for home in ledger_homes(site)}
        self._recorded: dict[str, dict[str, Mapping[str, object]]] = {
            home: {str(entry["name"]): entry for entry in ledger["patches"]} for home, ledger in ledgers.items()
        }
        self._refuse_conflicts(report.states)
        project = catalog.project
        listed = project is not None and project.listed
        names = list(dict.fromkeys(state.name for state in report.states))
        wanted = list(dict.fromkeys(project.wanted)) if project is not None and listed else names
        self.order = [*wanted, *(name for name in names if name not in wanted)]
        for state in report.states:
            if state.name in wanted:
                self._want(state, allow_known_bad)
            elif state.name in self._recorded.get(state.site, ()):
                self._task(state.site).drop[state.name] = "not on the project's list"

    def _refuse_conflicts(self, states: list[PatchState]) -> None:
        # What is "corrupt" and no damage of a ledger itself can be recorded again, or is refused when it is planned.
        conflicts = [state for state in states if state.state == "modified"]
        if not conflicts:
            return
        lines = [f"  {state.name}: {state.reason}" for state in conflicts]
        # A patch that is not applied cannot be reverted: there the reason itself says the way out.
        edited = [s for s in conflicts if s.state == "modified" and s.name in self._recorded.get(s.site, ())]
        names = " ".join(dict.fromkeys(state.name for state in edited))
        again = " and ".join(
            dict.fromkeys(f"`{reinstall_command(self.site, s.distribution or '', s.version or '')}`" for s in edited)
        )
        hint = (
            f"to discard the hand edits: `patchkit revert --force {names}`, where some are left (those outside of what "
            f"patchkit wrote) {again}, then `patchkit sync`; to keep them, put them into the patch file first"
        )
        raise SiteError(
            "\n".join(["the site conflicts, nothing was written:", *lines]),
            code="modified",
            hint=hint if edited else "each line says what to do; then run `patchkit sync` again",
            details={"patches": [state.name for state in conflicts]},
        )

    def _task(self, home: str) -> _Task:
        return self.tasks.setdefault(home, _Task())

    def _want(self, state: PatchState, allow_known_bad: bool) -> None:
        name = state.name
        where = (state.distribution, state.version, state.site)
        recorded = self._recorded.get(state.site, {}).get(name)
        if state.state == "upstreamed" and recorded is None and self._known_needless(state.site, name):
            self.results.append(PatchResult(name, "upstreamed", (), state.reason, *where))
            return
        if state.state == "applied":
            files = unchanged_files(self._homes.at(state.site), name)
            self.results.append(PatchResult(name, "unchanged", files, None, *where))
            return
        patch = self._patch(state)
        if not allow_known_bad:
            refuse_known_bad(patch, "take it off the list, or say `patchkit sync --allow-known-bad`")
        if state.state == "uninstalled" and patch.target.optional:
            self.results.append(PatchResult(name, "skipped", (), state.reason, *where))
        elif state.state == "upstreamed":
            distribution = self.site.find(patch.target.name)
            holder = state.site if distribution is None else home_of(self.site, distribution)
            if recorded is not None:
                self._task(state.site).drop[name] = ""
            self._task(holder).upstreamed[name] = state
        else:
            found = self.site.find(patch.target.name)
            if found is None:
                guard(self._homes.at(self.site.home), patch)  # refuses, before anything is locked
            holder = state.site if found is None else home_of(self.site, found)
            self._task(holder).add[name] = state
            moved = holder != state.site and recorded is not None
            if moved and not installed(state.site, recorded["info"]):  # type: ignore[index, arg-type]
                self._task(state.site).drop[name] = f"its distribution is in {holder} now"

    def _known_needless(self, home: str, name: str) -> bool:
        ledger = read(home) or {"upstreamed": ()}
        return any(
            entry["name"] == name and entry["info"] and os.path.lexists(file_path(home, entry["info"]))
            for entry in ledger["upstreamed"]
        )

    def _patch(self, state: PatchState) -> Patch:
        """The patch file of that name; without one the patch as it was applied."""
        name = state.name
        if name not in self.patches:
            recorded = self._recorded.get(state.site, {}).get(name)
            source = recorded.get("source") if recorded is not None else None
            path = self.catalog.file_of(name, str(source) if source is not None else None)
            if path is None and recorded is not None:
                workspace = self._homes.at(state.site)
                entry = workspace.ledger.patch(name)
                assert entry is not None
                self.patches[name] = ledger_patch(workspace, entry)
            elif path is None and state.reason is not None and not self._listed(name):
                raise UsageError(
                    f"{name}: {state.reason}",
                    code="unknown-patch",
                    hint=f"put {name}.toml into ./patches, or name its folder with --patches",
                    details={"patch": name, "suggestion": None},
                )
            else:
                self.patches[name] = self.catalog.load(path or name)
        return self.patches[name]

    def _listed(self, name: str) -> bool:
        return self.catalog.project is not None and name in self.catalog.project.wanted

    def prepare(self, workspace: Workspace, task: _Task, dry_run: bool) -> Prepared:
        """Plan what one directory needs."""
        home = workspace.site.home
        outcome = Outcome(dry_run=dry_run)
        add = [Wanted(self.patches[name], guard(workspace, self.patches[name]).distribution) for name in task.add]
        drop = [name for name in task.drop if name not in task.add]
        upstreamed: dict[str, tuple[Patch, Distribution]] = {}
        for name, state in task.upstreamed.items():
            patch = self.patches[name]
            distribution = workspace.distribution(patch.target.name)
            if distribution is not None and upstream_reason(workspace, patch, distribution) is not None:
                upstreamed[name] = (patch, distribution)
            where = (state.distribution, state.version, home)
            outcome.patches.append(PatchResult(name, "upstreamed", (), state.reason, *where))
        leaving = [name for one in self.tasks.values() for name in one.drop if name not in one.add]
        check_conflicts(workspace, [item.patch for item in add], leaving)
        changes = plan_change(workspace, add=add, drop=drop)
        if not dry_run:
            check_writable(change.absolute for change in changes.writes)
        for item in add:
            name = item.patch.name
            outcome.patches.append(applied_result(workspace, changes, item, f"was {task.add[name].state}"))
            paths = [file.path for file in changes.plans[name].files]
            outcome.notes += shadow_notes(item.distribution, paths) + shared_notes(item.distribution, paths)
        for name in drop:
            recorded = workspace.ledger.patch(name)
            if recorded is not None and task.drop[name]:
                files = reverted_files(changes, recorded)
                where = (recorded.distribution, recorded.version, home)
                outcome.patches.append(PatchResult(name, "reverted", files, task.drop[name], *where))
        outcome.files = changed_files(changes)

        def write() -> int:
            if task.idle:
                return 0
            names = [*(item.patch.name for item in add), *drop]
            return commit_change(workspace, changes, command="sync", names=names, upstreamed=upstreamed)

        return Prepared(home, outcome, write)
