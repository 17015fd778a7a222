"""Drift: what the ledger and the project want, against what the site holds.

The hot path: as long as nothing drifted, no patch file is parsed and no source file is read; a file whose size,
mtime and inode are as recorded is taken as ours. Only what differs is looked into.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from patchkit.errors import PatchkitError
from patchkit.runtime.ledger import check_files, installed
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.errors import SiteError
    from patchkit.model.patch import Patch
    from patchkit.ops.catalog import Catalog
    from patchkit.ops.workspace import Workspace
    from patchkit.site.environment import Site

#: The states in which nothing needs doing.
CLEAN = frozenset({"applied", "upstreamed"})


class FileDrift(NamedTuple):
    """One file and its state: applied, pristine, modified, missing or unreadable."""

    path: str
    state: str


class PatchState(NamedTuple):
    """One patch's state, by the words of DESIGN section 4; ``reason`` says what was found and what to do."""

    name: str
    state: str
    distribution: str | None
    version: str | None
    applied_version: str | None
    files: tuple[FileDrift, ...]
    reason: str | None
    optional: bool = False

    @property
    def clean(self) -> bool:
        """Whether nothing needs doing."""
        return self.state in CLEAN or (self.optional and self.state == "uninstalled")


def check_site(
    site: Site, ledger: dict[str, Any] | None, names: Sequence[str] = (), catalog: Catalog | None = None
) -> list[PatchState]:
    """The state of every patch in the ledger and of every one that the project wants.

    Args:
        site: The site.
        ledger: The raw ledger (:func:`patchkit.runtime.ledger.read`), None where there is none.
        names: Only these (or paths of patch files); the others' states are not worked out.
        catalog: Patch files and the project's list; None: only the ledger counts.
    """
    recorded: dict[str, Mapping[str, Any]] = {}
    states: Mapping[str, str] = {}
    if ledger is not None:
        recorded = {patch["name"]: patch for patch in ledger["patches"]}
        states = check_files(site.home, ledger)
    wanted = catalog.project.wanted if catalog is not None and catalog.project is not None else ()
    order = list(dict.fromkeys([*recorded, *wanted]))
    slow = _Slow(site, catalog)
    if names:
        chosen = [name if name in order else slow.name_of(name) for name in names]
        order = list(dict.fromkeys([name for name in order if name in chosen] + chosen))
    return [
        _applied_state(site, recorded[name], states, slow) if name in recorded else slow.never_applied(name)
        for name in order
    ]


def corrupt_states(
    site: Site, error: SiteError, names: Sequence[str] = (), catalog: Catalog | None = None
) -> list[PatchState]:
    """What is still known where the ledger is damaged: each patch that its intact lines name, and each one wanted.

    Args:
        site: The site.
        error: The error ``corrupt`` of :func:`patchkit.runtime.ledger.read`.
        names: Only these.
        catalog: Patch files and the project's list.
    """
    from patchkit.site.distribution import find_distribution

    def state(name: str, distribution: str | None, applied: str | None, reason: str) -> PatchState:
        try:
            found = find_distribution(site, distribution) if distribution else None
        except PatchkitError:
            found = None
        version = None if found is None else found.version
        return PatchState(name, "corrupt", distribution, version, applied, (), reason)

    states = {}
    for item in error.details.get("salvaged", ()):
        name, distribution, version, source = item["name"], item["distribution"], item["version"], item["source"]
        reason = f"the ledger is damaged; it was applied to {distribution} {version}"
        states[name] = state(name, distribution, version, reason + (f" from {source}" if source else ""))
    wanted = catalog.project.wanted if catalog is not None and catalog.project is not None else ()
    for name in wanted:
        if name not in states:
            reason = "the ledger is damaged, and does not tell any more whether it is applied"
            states[name] = state(name, None, None, reason)
    slow = _Slow(site, catalog)
    chosen = [name if name in states else slow.name_of(name) for name in names]
    return [item for name, item in states.items() if not names or name in chosen]


def _applied_state(site: Site, patch: Mapping[str, Any], states: Mapping[str, str], slow: _Slow) -> PatchState:
    name, info = str(patch["name"]), str(patch["info"])
    keys: Sequence[str] = patch["files"]
    # A file that the ledger holds no more went back when a later version was patched and unpatched.
    files = tuple(FileDrift(key, states.get(key, "pristine")) for key in keys)
    if not installed(site.home, info):
        return slow.other_install(patch, files)
    version = str(patch["version"])
    if any(file.state == "modified" for file in files):
        files = slow.rechecked(files)
    kinds = {file.state for file in files}

    def state(word: str, reason: str | None) -> PatchState:
        return PatchState(name, word, str(patch["distribution"]), version, version, files, reason)

    if kinds <= {"applied"}:
        changed = slow.edited(patch)
        if changed is not None:
            return state("stale", changed)
        return state("applied", None)
    if "unreadable" in kinds:
        return state("modified", f"cannot be read: {_first(files, 'unreadable')}")
    if "modified" in kinds or "missing" in kinds:
        if "modified" in kinds:
            return state("modified", f"{_first(files, 'modified')} was edited since: see `patchkit diff {name}`")
        return state(
            "modified", f"{_first(files, 'missing')} is gone: reinstall the distribution, then `patchkit sync`"
        )
    if kinds == {"pristine"}:
        upstream = slow.upstreamed(name, patch)
        if upstream is not None:
            return state("upstreamed", upstream)
        return state("lost", "a reinstall brought the pristine bytes back: run `patchkit sync`")
    return state("partial", f"{_first(files, 'pristine')} is pristine again: run `patchkit sync`")


def _first(files: Sequence[FileDrift], state: str) -> str:
    paths = [file.path for file in files if file.state == state]
    return paths[0] + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")


class _Slow:
    """What is only worked out when something differs: metadata, patch files, guards."""

    def __init__(self, site: Site, catalog: Catalog | None) -> None:
        self.site = site
        self.catalog = catalog
        self._workspace: Workspace | None = None

    def workspace(self) -> Workspace:
        if self._workspace is None:
            from patchkit.ops.workspace import Workspace

            self._workspace = Workspace(self.site)
        return self._workspace

    def rechecked(self, files: Sequence[FileDrift]) -> tuple[FileDrift, ...]:
        """``files`` with those called pristine that another build of the same version brought, by RECORD's word."""
        workspace = self.workspace()

        def state(file: FileDrift) -> str:
            try:
                return "pristine" if file.state == "modified" and workspace.reinstalled(file.path) else file.state
            except PatchkitError:
                return file.state

        return tuple(file._replace(state=state(file)) for file in files)

    def edited(self, recorded: Mapping[str, Any]) -> str | None:
        """Why the patch file is not the one that was applied; None when it is, or is nowhere to be found."""
        if self.catalog is None:
            return None
        path = self._file(recorded)
        if path is None:
            return None

        from patchkit.runtime.ledger import sha256_hex

        try:
            with open(path, "rb") as file:
                same = sha256_hex(file.read()) == recorded["digest"]
        except OSError:
            return None
        return None if same else f"{path} was edited since it was applied: run `patchkit sync` or apply it again"

    def _file(self, recorded: Mapping[str, Any]) -> str | None:
        assert self.catalog is not None
        return self.catalog.file_of(str(recorded["name"]), recorded.get("source"))

    def name_of(self, name: str) -> str:
        """The patch that ``name`` means, which is neither applied nor wanted under just that name.

        Raises:
            UsageError: ``unknown-patch``.
        """
        if self.catalog is None:
            from patchkit.errors import UsageError

            raise UsageError(f"{name} is not applied", code="unknown-patch", hint="see `patchkit list`")
        return self.catalog.load(name).name

    def other_install(self, recorded: Mapping[str, Any], files: tuple[FileDrift, ...]) -> PatchState:
        """The state of a patch whose distribution is not there any more as it was."""
        name, applied = str(recorded["name"]), str(recorded["version"])
        requirement_name = str(recorded["distribution"])
        distribution = self.workspace().distribution(requirement_name)
        if distribution is None:
            reason = f"{requirement_name} is not installed any more: `patchkit revert {name}` forgets the patch"
            optional = recorded.get("optional") is True
            return PatchState(name, "uninstalled", requirement_name, None, applied, files, reason, optional)

        def state(word: str, reason: str) -> PatchState:
            return PatchState(name, word, requirement_name, distribution.version, applied, files, reason)

        try:
            patch = self._patch(name, recorded)
            if patch is not None:
                from patchkit.ops.apply import upstream_reason
                from patchkit.ops.change import guard

                upstream = upstream_reason(self.workspace(), patch, distribution)
                if upstream is not None:
                    return state("upstreamed", f"{upstream}: drop the patch")
                guard(self.workspace(), patch)
        except PatchkitError as error:
            if error.exit_status == 3:
                return state("refused", _joined(error))
            return state("stale", f"applied to {applied}, {distribution.version} is installed; {_joined(error)}")
        return state("stale", f"applied to {applied}, {distribution.version} is installed: run `patchkit sync`")

    def _patch(self, name: str, recorded: Mapping[str, Any]) -> Patch | None:
        from patchkit.model.load import load_patch
        from patchkit.ops.change import ledger_patch

        path = self._file(recorded) if self.catalog is not None else None
        if path is not None:
            return load_patch(path)
        found = self.workspace().ledger.patch(name)
        return None if found is None else ledger_patch(self.workspace(), found)

    def upstreamed(self, name: str, recorded: Mapping[str, Any]) -> str | None:
        """Why the release that is installed has the change itself; None when it has not."""
        from patchkit.ops.apply import upstream_reason

        try:
            patch = self._patch(name, recorded)
            distribution = self.workspace().distribution(str(recorded["distribution"]))
            if patch is None or distribution is None:
                return None
            return upstream_reason(self.workspace(), patch, distribution)
        except PatchkitError:
            return None

    def never_applied(self, name: str) -> PatchState:
        """The state of a patch that is wanted and not in the ledger."""
        from patchkit.ops.apply import upstream_reason
        from patchkit.ops.change import guard

        assert self.catalog is not None
        patch = self.catalog.load(name)
        try:
            distribution = self.workspace().distribution(patch.target.name)
        except PatchkitError as error:
            return PatchState(name, "refused", patch.target.name, None, None, (), _joined(error))
        if distribution is None:
            if patch.target.optional:
                return PatchState(
                    name, "uninstalled", patch.target.name, None, None, (), "optional, and not installed", optional=True
                )
            return PatchState(name, "uninstalled", patch.target.name, None, None, (), "its target is not installed")

        def state(word: str, reason: str) -> PatchState:
            return PatchState(name, word, patch.target.name, distribution.version, None, (), reason)

        try:
            upstream = upstream_reason(self.workspace(), patch, distribution)
            if upstream is not None:
                return state("upstreamed", f"{upstream}: drop the patch")
            guard(self.workspace(), patch)
        except PatchkitError as error:
            return state("refused" if error.exit_status == 3 else "modified", _joined(error))
        return state("absent", f"wanted and never applied: run `patchkit sync` or `patchkit apply {name}`")


def _joined(error: PatchkitError) -> str:
    text = error.message.partition("\n")[0]
    return f"{text}; {error.hint}" if error.hint else text
