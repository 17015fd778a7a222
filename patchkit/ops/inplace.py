"""Which of the recorded patches are in place: the install that is there, every byte, every copy in the ledger."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from patchkit.runtime.ledger import check_files, lost, missing_blobs

if TYPE_CHECKING:
    from patchkit.model.patch import Patch
    from patchkit.ops.workspace import Workspace
    from patchkit.state.ledger import PatchEntry


class InPlace:
    """The answers for one workspace. Its ledger is turned into JSON values, and its copies are listed, once for all."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    @cached_property
    def _ledger(self) -> dict[str, Any]:
        return self._workspace.ledger.to_json()

    @cached_property
    def _lost(self) -> dict[str, list[str]]:
        return lost(self._ledger, missing_blobs(self._workspace.site.home, self._ledger))

    def applied(self, patch: Patch) -> bool:
        """Whether the ledger has exactly ``patch``, on the install that is there, with every byte and copy in place."""
        recorded = self._workspace.ledger.patch(patch.name)
        if recorded is None or recorded.digest != patch.digest or not self.recorded(recorded):
            return False
        return recorded.name not in self._lost

    def recorded(self, recorded: PatchEntry) -> bool:
        """Whether the install that an applied patch was made for is there, with every byte as patchkit wrote it."""
        if not self._workspace.in_force(recorded):
            return False
        if not all(key in self._ledger["files"] for key in recorded.files):
            return False
        states = check_files(self._workspace.site.home, self._ledger, recorded.files)
        return all(states.get(key) == "applied" for key in recorded.files)
