"""What ``check`` only works out when something differs: metadata, patch files, guards, RECORD."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from patchkit.errors import GuardError, PatchFileError, PatchkitError, SiteError, UsageError
from patchkit.ops.check import FileDrift, PatchState

if TYPE_CHECKING:
    from patchkit.model.patch import Patch
    from patchkit.ops.catalog import Catalog
    from patchkit.ops.check import FileWord, StateWord
    from patchkit.ops.homes import Homes
    from patchkit.ops.workspace import Workspace
    from patchkit.site.distribution import Distribution
    from patchkit.site.environment import Site


class Drift:
    """The slow half of ``check``, for one site."""

    def __init__(self, site: Site, catalog: Catalog | None) -> None:
        self.site = site
        self.catalog = catalog
        self.changing: set[str] = set()  # directories that a command is changing at this moment
        self._homes: Homes | None = None
        self._found: dict[tuple[str, str], set[str]] = {}

    def homes(self) -> Homes:
        """The workspaces, opened when they are first needed."""
        if self._homes is None:
            from patchkit.ops.homes import Homes

            self._homes = Homes(self.site)
        return self._homes

    def rechecked(self, home: str, files: Sequence[FileDrift]) -> tuple[FileDrift, ...]:
        """``files`` with those called pristine that another build of the same version brought, by RECORD's word."""
        workspace = self.homes().at(home)

        def state(file: FileDrift) -> FileWord:
            try:
                return "pristine" if file.state == "modified" and workspace.reinstalled(file.path) else file.state
            except PatchkitError:
                return file.state

        return tuple(file._replace(state=state(file)) for file in files)

    def beside(self, home: str, recorded: Mapping[str, Any]) -> str | None:
        """What is to be said of a patch although every byte is as it shall be: imports pass a file over, say."""
        from patchkit.ops.witness import notes_in_place

        try:
            workspace = self.homes().at(home)
            found = workspace.ledger.patch(str(recorded["name"]))
            return None if found is None else "; ".join(notes_in_place(workspace, found, brief=True)) or None
        except PatchkitError:
            return None

    def tainted(self, home: str, recorded: Mapping[str, Any]) -> str | None:
        """That a reinstall brought the wrong bytes of a file, where that is so."""
        from patchkit.ops.witness import tainted_file

        try:
            workspace = self.homes().at(home)
            patch = workspace.ledger.patch(str(recorded["name"]))
            found = None if patch is None else tainted_file(workspace, patch)
        except PatchkitError:
            return None
        return None if found is None else f"{found}, then `patchkit sync`"

    def edited(self, home: str, recorded: Mapping[str, Any]) -> str | None:
        """Why the patch file is not the one that was applied; None when it is, or is nowhere to be found."""
        path = self._file(recorded)
        if path is None:
            return None

        from patchkit.runtime.ledger import read_regular, sha256_hex

        try:
            same = sha256_hex(read_regular(path)) == recorded["digest"]
        except OSError:
            return None
        if same:
            return None
        said = f"{path} was edited since it was applied"
        try:
            patch = self._patch(home, str(recorded["name"]), recorded)
            problem = None if patch is None else self._misfit(home, patch)
        except PatchkitError as error:
            first = error.message.partition("\n")[0]
            return f"{said}, and is wrong now: {first}; `patchkit lint {path}` says more"
        if problem is not None:
            return f"{said}, and does not fit any more: {problem}"
        return f"{said}: run `patchkit sync` or apply it again"

    def reinstall(self, recorded: Mapping[str, Any]) -> str:
        """What brings the released bytes of a patch's distribution back, to be typed as it stands."""
        from patchkit.ops.workspace import reinstall_command

        return reinstall_command(self.site, str(recorded["distribution"]), str(recorded["version"]))

    def _misfit(self, home: str, patch: Patch) -> str | None:
        """Why ``patch`` does not fit what is installed, laid with those of its ledger that an install carried away."""
        from patchkit.ops.forecast import misfit

        workspace = self.homes().at(home)
        others = []
        for recorded in workspace.ledger.patches:
            if recorded.name != patch.name and not workspace.in_force(recorded):
                other = self._patch(home, recorded.name, recorded._asdict())
                if other is not None:
                    others.append(other)
        return misfit(workspace.site, patch, others)

    def hand_edits(self, home: str, name: str) -> str:
        """How ``check`` goes on about edits made by hand: where they lie, and what is to be typed."""
        from patchkit.ops.forecast import hand_edits

        found = hand_edits(self.homes().at(home).site, name)
        return "" if found is None else f"; {found}"

    def _file(self, recorded: Mapping[str, Any]) -> str | None:
        if self.catalog is None:
            return None
        return self.catalog.file_of(str(recorded["name"]), recorded.get("source"))

    def name_of(self, name: str) -> str:
        """The patch that ``name`` means, which is neither applied nor wanted under just that name.

        Raises:
            UsageError: ``unknown-patch``.
        """
        if self.catalog is None:
            raise UsageError(f"{name} is not applied", code="unknown-patch", hint="see `patchkit list`")
        return self.catalog.load(name).name

    def not_imported(self, home: str, recorded: Mapping[str, Any], files: tuple[FileDrift, ...]) -> PatchState | None:
        """The state of a patch whose install is there, but is not what imports find: doubled, or shadowed."""
        from patchkit.site.distribution import find_distribution
        from patchkit.site.environment import Site, home_of

        name, distribution = str(recorded["name"]), str(recorded["distribution"])
        applied = str(recorded["version"])

        def stale(version: str | None, reason: str) -> PatchState:
            return PatchState(name, "stale", distribution, version, applied, files, reason, site=home)

        here = Site(
            home=home,
            paths=[home],
            interpreter=self.site.interpreter,
            python_version=self.site.python_version,
            label=self.site.label,
        )
        try:
            find_distribution(here, distribution)
            found = find_distribution(self.site, distribution)
        except PatchkitError as error:
            return stale(None, f"{error.code}: {_joined(error)}")
        holder = home if found is None else home_of(self.site, found)
        if found is None or os.path.realpath(holder) == os.path.realpath(home):
            return None
        return stale(
            found.version,
            f"applied to {applied} in {home}, but imports find {found.version} in {holder} first: run `patchkit sync`",
        )

    def other_install(self, home: str, recorded: Mapping[str, Any], files: tuple[FileDrift, ...]) -> PatchState:
        """The state of a patch whose distribution is not there any more as it was."""
        name, applied = str(recorded["name"]), str(recorded["version"])
        requirement_name = str(recorded["distribution"])

        def state(word: StateWord, reason: str, version: str | None, optional: bool = False) -> PatchState:
            return PatchState(name, word, requirement_name, version, applied, files, reason, optional, home)

        try:
            workspace = self.homes().of(requirement_name)
            distribution = workspace.distribution(requirement_name)
        except PatchkitError as error:
            return state("stale", f"{error.code}: {_joined(error)}", None)
        if distribution is None:
            left = [file.path for file in files if workspace.entry_in_force(file.path) is not None]
            what = f" and removes what it added ({', '.join(left)})" if left else ""
            reason = (
                f"{requirement_name} is not installed any more: install it and run `patchkit sync`, or "
                f"`patchkit revert {name}` forgets the patch{what}"
            )
            return state("uninstalled", reason, None, recorded.get("optional") is True)
        installed = f"applied to {applied}, {distribution.version} is installed"
        try:
            patch = self._patch(home, name, recorded)
            if patch is not None:
                upstream = self._judged(workspace, patch, distribution)
                if upstream is not None:
                    return state("upstreamed", f"{upstream}: drop the patch", distribution.version)
                problem = self._misfit(workspace.site.home, patch)
                if problem is not None:
                    return state("stale", f"{installed}, and the patch does not fit: {problem}", distribution.version)
        except PatchkitError as error:
            if error.exit_status == 3:
                way = (
                    f"take it off the project's list, then `patchkit revert {name}`"
                    if self._listed(name)
                    else (f"`patchkit revert {name}` forgets it")
                )
                return state("refused", f"{_joined(error).rstrip('.')}; or {way}", distribution.version)
            return state("stale", f"{installed}; {_joined(error)}", distribution.version)
        return state("stale", f"{installed}: run `patchkit sync`", distribution.version)

    @staticmethod
    def _judged(workspace: Workspace, patch: Patch, distribution: Distribution) -> str | None:
        """Why the release has the change; None where it has not, and the guards hold.

        Raises:
            PatchkitError: A guard refuses.
        """
        from patchkit.ops.apply import upstream_reason
        from patchkit.ops.change import guard

        upstream = upstream_reason(workspace, patch, distribution)
        if upstream is None:
            guard(workspace, patch)
        return upstream

    def _listed(self, name: str) -> bool:
        project = self.catalog.project if self.catalog is not None else None
        return project is not None and project.listed and name in project.wanted

    def _patch(self, home: str, name: str, recorded: Mapping[str, Any]) -> Patch | None:
        from patchkit.model.load import load_patch
        from patchkit.ops.change import ledger_patch

        path = self._file(recorded)
        if path is not None:
            return load_patch(path)
        workspace = self.homes().at(home)
        found = workspace.ledger.patch(name)
        return None if found is None else ledger_patch(workspace, found)

    def upstreamed(self, home: str, recorded: Mapping[str, Any]) -> str | None:
        """Why the release that is installed has the change itself; None when it has not."""
        from patchkit.ops.apply import upstream_reason

        try:
            workspace = self.homes().at(home)
            patch = self._patch(home, str(recorded["name"]), recorded)
            distribution = workspace.distribution(str(recorded["distribution"]))
            if patch is None or distribution is None:
                return None
            return upstream_reason(workspace, patch, distribution)
        except PatchkitError:
            return None

    def upstreamed_entry(self, home: str, entry: Mapping[str, Any]) -> PatchState:
        """The state of a patch that was found needless with a release, which may be gone by now."""
        from patchkit.runtime.ledger import installed

        name, distribution = str(entry["name"]), str(entry["distribution"])
        had = f"{distribution} {entry['version']}"
        if installed(home, entry["info"]):
            reason = f"{had} has the change: drop the patch"
            return PatchState(name, "upstreamed", distribution, str(entry["version"]), None, (), reason, site=home)
        if self.catalog is not None and self.catalog.find(name) is not None:
            return self.never_applied(name, wanted=True, had=had)
        version: str | None = None
        word: StateWord = "uninstalled"
        reason = f"{distribution} is not installed any more: `patchkit revert {name}` forgets the patch"
        try:
            found = self.site.find(distribution)
        except PatchkitError as error:
            word, reason = "stale", f"{error.code}: {_joined(error)}"
        else:
            if found is not None:
                version, word = found.version, "absent"
                reason = (
                    f"the release that had it ({had}) is gone, and {name}.toml is in none of the folders looked in: "
                    f"name its folder with --patches, or forget it with `patchkit revert {name}`"
                )
        return PatchState(name, word, distribution, version, None, (), reason, site=home)

    def never_applied(self, name: str, *, wanted: bool, had: str | None = None) -> PatchState:
        """The state of a patch that no ledger has as applied.

        Args:
            name: The patch.
            wanted: Whether the project's list names it.
            had: The release that had the change, and is gone.

        A patch file that is wrong, or nowhere, makes the patch ``absent``: it cannot be applied, and the others' states
        are told all the same.
        """
        assert self.catalog is not None
        try:
            patch = self.catalog.load(name)
        except (PatchFileError, UsageError) as error:
            return PatchState(name, "absent", None, None, None, (), _joined(error), site=self.site.home)
        target = patch.target.name
        try:
            workspace = self.homes().of(target)
            distribution = workspace.distribution(target)
        except PatchkitError as error:
            return PatchState(name, "refused", target, None, None, (), _joined(error), site=self.site.home)
        home = workspace.site.home
        if distribution is None:
            way = f"install {target}, then `patchkit sync`, or take {name} off the project's list"
            reason = "its target is not installed" + (f": {way}" if wanted else f": install {target}")
            if patch.target.optional:
                reason = "optional, and not installed"
            return PatchState(name, "uninstalled", target, None, None, (), reason, patch.target.optional, home)

        def state(word: StateWord, reason: str) -> PatchState:
            return PatchState(name, word, target, distribution.version, None, (), reason, site=home)

        try:
            upstream = self._judged(workspace, patch, distribution)
            if upstream is not None:
                return state("upstreamed", f"{upstream}: drop the patch")
            from patchkit.ops.witness import tainted

            taint = None if home in self.changing else tainted(workspace, patch, distribution)
        except PatchkitError as error:
            word: StateWord = "modified" if isinstance(error, SiteError) else "absent"
            return state("refused" if isinstance(error, GuardError) else word, _joined(error))
        if taint is not None:
            # Where the bytes came with the install, out of a cache that was written through, no ledger was lost.
            lost = None if taint.startswith("tainted:") else self._unrecorded(workspace, patch)
            if lost is not None:
                return state(*lost)
            return state("modified", taint)
        way = f"run `patchkit sync` or `patchkit apply {name}`"
        if had is not None:
            return state("absent", f"the release that had it ({had}) is gone: {way}")
        return state("absent", f"wanted, not applied: {way}" if wanted else f"not applied: run `patchkit apply {name}`")

    def refuse_unrecorded_removal(self, name: str) -> None:
        """Refuse to call a patch "not applied" that takes a file away, where the file is gone and no ledger says why.

        Raises:
            SiteError: ``missing``.
        """
        from patchkit.ops.witness import refuse_unrecorded_removal

        assert self.catalog is not None
        try:
            patch = self.catalog.load(name)
            workspace = self.homes().of(patch.target.name)
        except PatchkitError:
            return  # it cannot be applied either
        if patch.removes:
            refuse_unrecorded_removal(workspace, patch)

    def _unrecorded(self, workspace: Workspace, patch: Patch) -> tuple[StateWord, str] | None:
        """The word and the reason where files hold what patches write that the ledger does not know; None: not so."""
        from patchkit.ops.forecast import in_place

        site, name = workspace.site, patch.name
        listed = self._unrecorded_listed(workspace, patch.target.name)
        key = (site.home, patch.target.name)
        if key not in self._found:
            self._found[key] = in_place(site, listed)
        together = name in self._found[key]
        if together or name in in_place(site, [patch]):
            way = "`patchkit sync`" if together and self._listed(name) else f"`patchkit apply {name}`"
            return "corrupt", (
                f"the ledger is gone, or does not know it, and every file holds what {name} writes: {way} records it "
                "again and writes no file"
            )
        others = [one.name for one in listed if one.name != name and one.name in in_place(site, [one])]
        if not others:
            return None
        return "modified", (
            f"the files hold what {', '.join(others)} writes, and the ledger is gone, or does not know it: "
            f"`patchkit apply {' '.join(others)}`, then `patchkit sync`"
        )

    def _unrecorded_listed(self, workspace: Workspace, target: str) -> list[Patch]:
        """The patches of the project's list for one distribution that its ledger does not know."""
        assert self.catalog is not None
        found = []
        for name in dict.fromkeys(self.catalog.project.wanted if self.catalog.project is not None else ()):
            try:
                patch = self.catalog.load(name)
            except PatchkitError:
                continue
            if patch.target.name == target and workspace.ledger.patch(name) is None:
                found.append(patch)
        return found


def salvaged(site: Site, home: str, error: SiteError) -> list[PatchState]:
    """Each patch that the intact lines of a damaged ledger name.

    Args:
        site: The site.
        home: The directory of the ledger.
        error: The error ``corrupt`` of :func:`patchkit.runtime.ledger.read`.
    """
    from patchkit.site.distribution import find_distribution

    states = []
    for item in error.details.get("salvaged", ()):
        name, distribution, version, source = item["name"], item["distribution"], item["version"], item["source"]
        try:
            found = find_distribution(site, distribution) if distribution else None
        except PatchkitError:
            found = None
        now = None if found is None else found.version
        reason = f"the ledger is damaged; it was applied to {distribution} {version}"
        reason += f" from {source}" if source else ""
        states.append(PatchState(name, "corrupt", distribution, now, version, (), reason, site=home))
    return states


def _joined(error: PatchkitError) -> str:
    text = error.message.partition("\n")[0]
    return f"{text}; {error.hint}" if error.hint else text
