"""The arms of an experiment in turn: on disk, by ``apply`` and ``revert`` themselves, or in memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from patchkit.bench.plan import Plan, refuse_drift, versions_of
from patchkit.errors import SiteError
from patchkit.ops.experiment import arrange, fresh
from patchkit.ops.launch import environment
from patchkit.runtime.overlay import VARIABLE
from patchkit.state.ledger import Ledger

if TYPE_CHECKING:
    from patchkit.model.recipe import Arm
    from patchkit.site.environment import Site

PATH = "PYTHONPATH"


class Arms:
    """Makes an arm live and gives its environment; refuses a site that somebody else changed since."""

    def __init__(self, plan: Plan, notice: Callable[[str], None]) -> None:
        """Nothing is changed yet."""
        self.plan = plan
        self._notice = notice
        self._expected = {one.name for one in plan.before}

    @property
    def site(self) -> Site:
        """The site, with nothing remembered of it."""
        return fresh(self.plan.site)

    def enter(self, arm: Arm) -> dict[str, str]:
        """Make an arm live; the environment of its process.

        Raises:
            PatchkitError: Somebody changed the site since; or as ``apply`` and ``revert``.
        """
        self.refuse_changed()
        wanted = self.plan.of(arm)
        if not self.plan.options.in_memory:
            if self.plan.swaps:
                arrange(self.site, wanted, self._notice, among=list(self.plan.patches))
                self._expected = {patch.name for patch in wanted}
            return self._environment("")
        from patchkit.ops.bundle import make_bundle
        from patchkit.ops.inmemory import plan_in_memory

        view = plan_in_memory(self.site, wanted, allow_known_bad=True, notice=self._notice)
        return self._environment(make_bundle(view))

    def left(self) -> None:
        """The site was put into its last state: nothing is expected of it any more."""
        self._expected = {entry.name for entry in Ledger.load(self.plan.home).patches}

    def refuse_changed(self) -> None:
        """Refuse a site that somebody else changed: a hand edit, a reinstall, another version, another patch.

        Raises:
            SiteError: ``changed-meanwhile``, ``drifted``.
        """
        site = self.site
        refuse_drift(site)
        now = {entry.name for entry in Ledger.load(site.home).patches}
        if now != self._expected:
            other = ", ".join(sorted(now ^ self._expected))
            raise _changed(f"the applied patches are not those of the experiment any more: {other}")
        versions = versions_of(site, self.plan.patches.values())
        for name, version in self.plan.versions.items():
            if versions.get(name) != version:
                raise _changed(f"{name} was {version} and is {versions.get(name, 'not there any more')}")

    def _environment(self, bundle: str) -> dict[str, str]:
        env = environment(self.plan.site, bundle, os.environ)
        if not bundle:  # only what makes the site's environment the active one
            del env[VARIABLE]
            if PATH in os.environ:
                env[PATH] = os.environ[PATH]
            else:
                del env[PATH]
        return env


def _changed(what: str) -> SiteError:
    return SiteError(
        f"the site was changed during the experiment: {what}",
        code="changed-meanwhile",
        hint="let nobody work on the site meanwhile, and begin a new session",
    )
