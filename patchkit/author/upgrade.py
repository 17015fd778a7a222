"""Would the patches that are applied to a site survive an upgrade of what they patch? Asked before anybody upgrades."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from patchkit.author.matrix import Verdict, judge_release, plan_release
from patchkit.author.published import get_wheel, opened_wheel
from patchkit.errors import GuardError, PatchFileError, UsageError
from patchkit.model.load import load_patch, parse_patch
from patchkit.model.requirement import parse_requirement
from patchkit.ops.homes import Homes
from patchkit.site.distribution import normalize
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.model.patch import Patch
    from patchkit.site.environment import Site


class Survival(NamedTuple):
    """One applied patch and the release in question.

    ``state`` is "survives", "upstreamed", "refused" (its edits fit, its requirement does not admit the release) or
    "needs-port". ``applied_version`` is what it is applied to now; ``source`` the patch file that was judged, or None
    where that is the ledger's copy; ``otherwise`` what the patch says to do on a release that it is not for.
    ``passed_over`` is why the file that there is was not judged.
    """

    name: str
    state: str
    applied_version: str
    verdict: Verdict
    source: str | None
    otherwise: str | None
    passed_over: str | None = None


class Upgrade(NamedTuple):
    """The answer: the distribution, the version asked about, what is installed, and each applied patch of it."""

    distribution: str
    version: str
    installed: str | None
    patches: tuple[Survival, ...]

    @property
    def ok(self) -> bool:
        """Whether every patch survives, or is not needed any more."""
        return all(patch.state in ("survives", "upstreamed") for patch in self.patches)


def check_upgrade(
    site: Site, wanted: str, *, find_patch: Callable[[str, str | None], str | None], offline: bool = False
) -> Upgrade:
    """Judge the applied patches of a distribution on another release, by the grammar of the site's Python.

    Nothing is installed or written.

    Args:
        site: The site.
        wanted: ``DIST==V``.
        find_patch: The file of an applied patch as it is now, by its name and where it was applied from; the ledger's
            copy counts where there is none, or where it is wrong or for another distribution.
        offline: Use the cache only.

    Raises:
        UsageError: ``wanted`` is not of that form.
        GuardError: ``not-applied``: no patch of the distribution is applied.
        SiteError: ``fetch``: the wheel cannot be had.
    """
    name, equals, version = (part.strip() for part in wanted.partition("=="))
    if not (name and equals and version):
        raise UsageError(
            f"--upgrade {wanted!r} is not DIST==VERSION",
            hint="write it as in --upgrade tpu-inference==0.33.0",
            details={"value": wanted},
        )
    homes = Homes(site)
    found = [
        (workspace, entry)
        for workspace in homes.all()
        for entry in workspace.ledger.patches
        if normalize(entry.distribution) == normalize(name)
    ]
    if not found:
        named = sorted({entry.distribution for workspace in homes.all() for entry in workspace.ledger.patches})
        raise GuardError(
            f"no patch of {name} is applied to {site.home}",
            code="not-applied",
            hint=f"patched are: {', '.join(named)}" if named else "nothing is patched there; see `patchkit list`",
            details={"distribution": name, "patched": named},
        )
    wheel = get_wheel(name, version, offline=offline)
    survivals = []
    with opened_wheel(wheel, name, version, site) as pristine, opened_wheel(wheel, name, version, site) as files:

        def judge(patch: Patch) -> tuple[Patch, Verdict]:
            admitted = parse_requirement(patch.target.requirement).specifier.contains(version, prereleases=True)
            return patch, judge_release(patch, files, admitted, pristine)

        for workspace, entry in found:
            path, passed_over, judged = find_patch(entry.name, entry.source), None, None
            if path is not None:
                try:
                    judged = judge(_as_it_is_now(path, name))
                except PatchFileError as error:
                    path, passed_over = None, error.message.partition("\n")[0]
            patch, verdict = judged or judge(parse_patch(workspace.patch_data(entry), f"{entry.name}.toml"))
            if verdict.state == "applies":
                # In the ledger's order, each on what those before it leave, as `sync` would lay them.
                for plan in plan_release(patch, files).files:
                    files.put(plan.path, plan.after)
            state = {"applies": "survives" if verdict.admitted else "refused", "upstreamed": "upstreamed"}.get(
                verdict.state, "needs-port"
            )
            otherwise = patch.target.otherwise if state == "refused" else None
            survivals.append(Survival(entry.name, state, entry.version, verdict, path, otherwise, passed_over))
    installed = homes.of(name).distribution(name)
    return Upgrade(name, version, installed.version if installed is not None else None, tuple(survivals))


def _as_it_is_now(path: str, name: str) -> Patch:
    """The patch in an applied patch's file.

    Raises:
        PatchFileError: It is wrong, or for another distribution than ``name`` by now.
    """
    patch = load_patch(path)
    if normalize(patch.target.name) != normalize(name):
        raise PatchFileError(f"{path} is for {patch.target.name} by now", details={"path": path})
    return patch
