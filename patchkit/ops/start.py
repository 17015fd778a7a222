"""What ``require`` the command asks: are the patches that a program counts on in force, seen from outside of it?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from patchkit.errors import SiteError

if TYPE_CHECKING:
    from patchkit.site.environment import Site


def in_force(site: Site, names: Sequence[str], pid: int | None = None) -> None:
    """Raise unless each of the patches ``names`` is applied, and imports of the site take what it edited.

    Args:
        site: The site of the program.
        names: Names of patches.
        pid: A process that is to have them: it must have been started after they were applied.

    Raises:
        SiteError: ``not-applied``, as :func:`patchkit.require`; ``details["patches"]`` has each one's state and reason.
        UsageError: No name; or ``no-process`` or ``pid-unsupported``.
    """
    from patchkit.runtime.require import require

    require(*names, site=site)
    missing = [*_inert(site, names), *([] if pid is None else _outdated(site, names, pid))]
    if missing:
        lines = [f"{item['name']}: {item['state']}: {item['reason']}" for item in missing]
        inert = any(item["state"] == "inert" for item in missing)
        raise SiteError(
            f"not every required patch is in force in {site.home}:\n  " + "\n  ".join(lines),
            code="not-applied",
            hint="take away what is imported instead" if inert else "restart the process; in a notebook: the kernel",
            details={"patches": missing, "site": site.home},
        )


def _inert(site: Site, names: Sequence[str]) -> list[dict[str, str]]:
    """The patches of which an import passes an edited file over."""
    from patchkit.ops.homes import Homes
    from patchkit.ops.outcome import shadow_notes
    from patchkit.ops.witness import patched_files
    from patchkit.site.shadow import looks_odd

    found = []
    homes = Homes(site)
    for name in dict.fromkeys(names):
        for workspace, recorded in homes.applied(name):
            if not looks_odd(workspace.site, workspace.site.home, recorded.files):
                continue
            distribution = workspace.distribution(recorded.distribution)
            if distribution is not None:
                files = patched_files(workspace, distribution, recorded.files)
                notes = shadow_notes(distribution, (path for path, _ in files))
                if notes:
                    found.append({"name": name, "state": "inert", "reason": "; ".join(notes)})
    return found


def _outdated(site: Site, names: Sequence[str], pid: int) -> list[dict[str, str]]:
    """The patches that were applied after the process had started, and may have imported their files."""
    from patchkit.ops.homes import Homes
    from patchkit.ops.live import applied
    from patchkit.ops.processes import older, tree_of

    process = tree_of(pid)[0]
    return [
        {"name": patch.name, "state": "outdated", "reason": f"pid {pid} was started before it was applied"}
        for patch in applied(Homes(site), names)
        if patch.since is not None and older(process, patch.since)
    ]
