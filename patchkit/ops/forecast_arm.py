"""Whether patches would go in when others were out: an arm of an experiment, planned before it is begun."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from patchkit.errors import GuardError
from patchkit.ops.apply import check_conflicts, prepare
from patchkit.ops.change import Wanted, plan_change
from patchkit.ops.check import GLANCE_SECONDS, steady
from patchkit.ops.session import once, opened
from patchkit.state.access import check_writable

if TYPE_CHECKING:
    from patchkit.model.patch import Patch
    from patchkit.site.environment import Site

Found = tuple[str, str, str | None, str | None, str | None]
"""Name, action as of ``apply``, distribution, version, reason."""


def forecast_arm(
    site: Site,
    wanted: Sequence[Patch],
    named: Collection[str],
    *,
    notice: Callable[[str], None],
) -> list[Found]:
    """What ``apply`` would do with ``wanted`` once all others of ``named`` were taken out; nothing is written.

    Raises:
        GuardError: A guard refuses, ``conflict``.
        PlanError: A patch does not fit, or one that stays does not without those taken out.
        SiteError: The site conflicts, or cannot be written.
    """
    notice = once(notice)

    def look() -> list[Found]:
        with opened(site, write=False, notice=notice) as workspace:
            add: list[Wanted] = []
            found: list[Found] = []
            for patch in wanted:
                try:
                    distribution, held = prepare(workspace, patch)
                except GuardError as error:
                    if not patch.target.optional or error.code != "not-installed":
                        raise
                    found.append((patch.name, "skipped", None, None, "its target is not installed"))
                    continue
                action = "upstreamed" if held is not None else "applied"
                found.append((patch.name, action, distribution.normalized, distribution.version, held))
                if held is None:
                    add.append(Wanted(patch, distribution))
            names = {one.patch.name for one in add}
            drop = [name for name in named if name not in names and workspace.ledger.patch(name) is not None]
            check_conflicts(workspace, [one.patch for one in add], drop)
            changes = plan_change(workspace, add=add, drop=drop)
            check_writable(change.absolute for change in changes.writes)
            return found

    return steady(site, look, wait=GLANCE_SECONDS, notice=notice)
