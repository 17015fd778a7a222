"""The ledgers of one site: each directory of its path keeps the record of the distributions that it holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from patchkit.errors import PatchkitError, SiteError
from patchkit.ops.inplace import InPlace
from patchkit.ops.workspace import Workspace
from patchkit.site.environment import Site, home_of, ledger_homes

if TYPE_CHECKING:
    from patchkit.model.patch import Patch
    from patchkit.state.ledger import PatchEntry


class Homes:
    """The workspaces of a site, opened when they are first asked for; for looking, not for writing."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._opened: dict[str, Workspace] = {}
        self._in_place: dict[str, InPlace] = {}

    def at(self, home: str) -> Workspace:
        """The workspace of one directory.

        Raises:
            SiteError: Its ledger is damaged.
        """
        if home not in self._opened:
            self._opened[home] = Workspace(self.site.at(home))
        return self._opened[home]

    def in_place(self, workspace: Workspace) -> InPlace:
        """Which patches of ``workspace``, one of these, are in place."""
        return self._in_place.setdefault(workspace.site.home, InPlace(workspace))

    def all(self) -> list[Workspace]:
        """Those of every directory that has a ledger, the site's own home first.

        Raises:
            SiteError: One is damaged.
        """
        return [self.at(home) for home in ledger_homes(self.site)]

    def of(self, name: str) -> Workspace:
        """That of the directory that holds the distribution ``name``; the default one where it is not installed.

        Raises:
            SiteError: ``duplicate``.
        """
        distribution = self.site.find(name)
        return self.at(self.site.home if distribution is None else home_of(self.site, distribution))

    def applied(self, name: str) -> list[tuple[Workspace, PatchEntry]]:
        """Every record of the patch ``name``."""
        found = [(workspace, workspace.ledger.patch(name)) for workspace in self.all()]
        return [(workspace, recorded) for workspace, recorded in found if recorded is not None]


def common_home(site: Site, patches: Sequence[Patch]) -> str | None:
    """The directory that holds the distributions of all ``patches``; None where none of them is installed.

    Raises:
        SiteError: ``several-homes``: there is more than one, and a transaction covers one.
    """
    homes: dict[str, list[str]] = {}
    for patch in patches:
        try:
            distribution = site.find(patch.target.name)
        except PatchkitError:
            continue  # its guard says what is the matter
        if distribution is not None:
            names = homes.setdefault(home_of(site, distribution), [])
            if patch.name not in names:
                names.append(patch.name)
    if len(homes) > 1:
        lines = [f"  {name}: {home}" for home, names in homes.items() for name in names]
        commands = [f"patchkit apply {' '.join(names)}" for names in homes.values()]
        raise SiteError(
            "\n".join(["the patches belong to different folders, and one call writes to one, all or none:", *lines]),
            code="several-homes",
            hint="\n".join(["one call for each folder:", *commands]),
            details={"homes": homes, "commands": commands},
        )
    return next(iter(homes), None)
