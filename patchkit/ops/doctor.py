"""A diagnosis of the site: what patchkit sees of it, and what would be in the way."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence

from patchkit.errors import PatchkitError, SiteError
from patchkit.ops.catalog import Catalog
from patchkit.ops.homes import Homes
from patchkit.ops.witness import compare, may_be_linked, notes_in_place
from patchkit.ops.workspace import Workspace
from patchkit.runtime.ledger import lost, missing_blobs, state_path
from patchkit.site.distribution import Distribution, find_distribution, normalize
from patchkit.site.environment import EXPERIMENT, Site, home_of, ledger_homes
from patchkit.site.paths import key_of
from patchkit.site.record import leads_out
from patchkit.site.taint import Taints
from patchkit.state import blobs
from patchkit.state.ledger import Ledger
from patchkit.tuples import NamedTuple

#: Tainted files that are named for one distribution.
_MOST = 20
SOURCES = (".py", ".pyi", ".pyw")
"""What a distributor has no reason to change."""


class Fact(NamedTuple):
    """One thing found: ``level`` is "ok", "note" or "problem"; ``hint`` is the way out of a problem."""

    level: str
    subject: str
    text: str
    hint: str | None = None


def diagnose(
    site: Site, catalog: Catalog, *, waiting: Mapping[str, SiteError], deep: bool, progress: Callable[[str], None]
) -> list[Fact]:
    """Look at the site without changing it.

    Args:
        site: The site.
        catalog: The patches that can be named; RECORD is compared for the distributions that the project's target.
        waiting: The interrupted commands that could not be taken back, by directory.
        deep: Compare RECORD of every distribution.
        progress: Told how far it is, where that takes long.
    """
    facts = [Fact("ok", "site", site.home)]
    facts.append(_interpreter(site))
    if len(site.paths) > 1:
        facts.append(Fact("ok", "searched", ", ".join(site.paths)))
    facts.append(_writable(site))
    facts += [Fact("problem", "journal", error.message.partition("\n")[0], error.hint) for error in waiting.values()]
    homes = ledger_homes(site)
    for home in homes if site.home in homes else [site.home, *homes]:
        facts += _ledger(home)
        facts += _experiment(home)
    found, more = _distributions(site)
    facts += more
    return facts + _tainted(site, catalog, found, deep=deep, progress=progress) + _without_effect(site)


def _interpreter(site: Site) -> Fact:
    if site.interpreter is None:
        version = ".".join(map(str, site.python_version)) if site.python_version else "unknown"
        return Fact(
            "note",
            "python",
            f"no interpreter found for this folder (version {version}): results are judged by patchkit's own grammar",
        )
    version = ".".join(map(str, site.interpreter.version))
    return Fact("ok", "python", f"{site.interpreter.executable} ({site.interpreter.implementation} {version})")


def _writable(site: Site) -> Fact:
    closed = [path for path in site.paths if not os.access(path, os.W_OK)]
    if not closed:
        return Fact("ok", "writable", "yes")
    return Fact(
        "note",
        "writable",
        f"no: {', '.join(closed)}: `check` works, `apply` is refused there",
        "run as a user who may write there, or change the image",
    )


def _ledger(home: str) -> list[Fact]:
    try:
        ledger = Ledger.load(home)
    except SiteError as error:
        return [Fact("problem", "ledger", error.message.partition("\n")[0], error.hint)]
    names = ", ".join(patch.name for patch in ledger.patches) or "no patch is applied"
    facts = [Fact("ok", "ledger", f"{state_path(home)}: {names}")]
    for name, what in lost(ledger.to_json(), missing_blobs(home, ledger.to_json())).items():
        text = f"{name}: has lost {', '.join(what)}"
        facts.append(Fact("problem", "ledger", text, f"`patchkit apply {name}` finds it again where it can"))
    facts += _damaged_copies(home, ledger)
    for key, entry in ledger.files.items():
        if entry.witness == "none":
            facts.append(
                Fact(
                    "note",
                    "witness",
                    f"{key}: its distribution records no hash; the ledger alone knows its pristine bytes",
                )
            )
    return facts


def _experiment(home: str) -> list[Fact]:
    """An experiment that is at work here, or was left."""
    if not os.path.lexists(state_path(home, EXPERIMENT)):
        return []
    from patchkit.ops.check import Report
    from patchkit.ops.experiment import seen

    report = Report([], [], [], [])
    seen(home, report)
    facts = [Fact("note", "experiment", text) for text in report.notices]
    return facts + [Fact("problem", "experiment", error.message, error.hint) for error in report.left]


def _damaged_copies(home: str, ledger: Ledger) -> list[Fact]:
    """The kept copies that are there and are not what they should be: `check` does not read them, doctor does."""
    facts = []
    values = ledger.to_json()
    for sha256 in sorted(ledger.blobs()):
        if not blobs.has(home, sha256):
            continue  # said already
        try:
            blobs.get(home, sha256)
        except SiteError:
            for name, what in lost(values, [sha256]).items():
                path = blobs.blob_path(home, sha256)
                way = f"`rm {shlex.quote(path)}`, then `patchkit apply {name}` finds it again where it can"
                facts.append(Fact("problem", "ledger", f"{name}: {', '.join(what)} is damaged", way))
    return facts


def _distributions(site: Site) -> tuple[list[Distribution], list[Fact]]:
    """What imports find, by the rule of apply, and what is to be said of it."""
    facts = []
    found: dict[str, Distribution] = {}
    for one in site.distributions():
        if one.normalized in found:
            continue
        found[one.normalized] = one
        try:
            # Where one directory holds several of a name, the rule is find_distribution's.
            distribution = found[one.normalized] = find_distribution(site, one.normalized) or one
            if distribution.editable:
                facts.append(
                    Fact("note", distribution.name, f"editable, so not for patching: {distribution.editable_reason}")
                )
            elif distribution.zipped:
                facts.append(Fact("note", distribution.name, f"a zipped egg, so not for patching: {distribution.base}"))
            elif distribution.kind != "wheel":
                facts.append(
                    Fact("note", distribution.name, f"has no RECORD ({distribution.kind}): no witness of its bytes")
                )
            else:
                distribution.record.entries()
        except SiteError as error:
            facts.append(Fact("problem", one.name, error.message.partition("\n")[0], error.hint))
    return list(found.values()), [Fact("ok", "distributions", str(len(found))), *facts]


def _tainted(
    site: Site, catalog: Catalog, found: Sequence[Distribution], *, deep: bool, progress: Callable[[str], None]
) -> list[Fact]:
    """The files that are neither as installed nor as patchkit wrote them."""
    homes = Homes(site)
    targets = None if deep else _targets(homes, catalog)
    listed = []
    for one in found:
        if targets is None or one.normalized in targets:
            try:
                if one.kind == "wheel" and not one.editable and one.record.entries():
                    listed.append((homes.at(home_of(site, one)), one))
            except SiteError:
                continue  # its RECORD or its ledger is damaged, which has been said
    facts = []
    for distribution, paths in compare(listed, progress):
        taints, workspace = Taints(distribution), homes.at(home_of(site, distribution))
        again = (
            f"install it again: `{distribution.reinstall}`; where it is so then, the release comes so; to keep an "
            f"edit: `patchkit create NAME {distribution.name}`"
        )
        text = "not as installed (RECORD's hash), and patchkit did not write it"
        for path in paths[:_MOST]:
            # Distributors strip libraries and link data elsewhere; of sources nobody is meant to change a byte.
            level = "problem" if path.endswith(SOURCES) else "note"
            absolute = os.path.join(distribution.base, *path.split("/"))
            key = key_of(workspace.site, absolute)
            taint = taints.find(path, absolute, lone=level == "problem" and may_be_linked(workspace, key))
            if taint is None:
                facts.append(Fact(level, distribution.name, f"{path}: {text}", again))
            else:
                said = f"tainted: {path}: not as installed (RECORD's hash): {taint.evidence}"
                facts.append(Fact(level, distribution.name, said, taint.cure))
        if len(paths) > _MOST:
            level = "problem" if any(path.endswith(SOURCES) for path in paths[_MOST:]) else "note"
            facts.append(Fact(level, distribution.name, f"and {len(paths) - _MOST} more files", again))
    facts += [fact for workspace, one in listed for fact in _missing(workspace, one)]
    scope = "every distribution" if deep else "those that the project's patches target"
    compared = f"{len(listed)} compared ({scope})" if listed else f"none compared ({scope}); --deep compares every one"
    return [Fact("ok", "RECORD", compared), *facts]


def _missing(workspace: Workspace, distribution: Distribution) -> list[Fact]:
    """The sources that RECORD lists and that are not there, but for those that a patch took away.

    Of a folder that is gone as a whole, once: who strips tests from an image leaves RECORD as it was.
    """
    gone: list[str] = []
    folders: dict[str, int] = {}
    for path, row in distribution.record.entries().items():
        if row.digest is None or not path.endswith(SOURCES) or leads_out(path):
            continue
        absolute = os.path.join(distribution.base, *path.split("/"))
        known = workspace.ledger.files.get(key_of(workspace.site, absolute))
        if os.path.lexists(absolute) or (known is not None and known.after is None):
            continue
        parts = path.split("/")[:-1]
        tops = ("/".join(parts[: count + 1]) for count in range(len(parts)))
        folder = next((top for top in tops if not os.path.isdir(os.path.join(distribution.base, top))), None)
        if folder is None:
            gone.append(path)
        else:
            folders[folder] = folders.get(folder, 0) + 1
    again = f"install it again: `{distribution.reinstall}`"
    facts = [
        Fact("note", distribution.name, f"{path}: is not there, and no patch took it away", again)
        for path in gone[:_MOST]
    ]
    if len(gone) > _MOST:
        facts.append(Fact("note", distribution.name, f"and {len(gone) - _MOST} more files that are not there", again))
    for folder, count in folders.items():
        files = f"{count} source file{'s' if count > 1 else ''}"
        facts.append(Fact("note", distribution.name, f"{folder}/: is not there as a whole, {files}", again))
    return facts


def _without_effect(site: Site) -> list[Fact]:
    """What is the matter with files that hold what a patch writes: imports pass them over, or a cache has it, too."""
    facts = []
    for home in ledger_homes(site):
        try:
            workspace = Workspace(site.at(home))
            for patch in workspace.ledger.patches:
                if workspace.in_force(patch):
                    facts += [Fact("problem", patch.name, note) for note in notes_in_place(workspace, patch)]
        except SiteError:
            continue  # its ledger, or its distribution, is damaged, which has been said
    return facts


def _targets(homes: Homes, catalog: Catalog) -> set[str]:
    """The distributions that the project's patches, and those applied, are for."""
    targets = set()
    for name, path, origin in catalog.names():
        wanted = catalog.project is not None and name in catalog.project.wanted
        if wanted or origin in ("--patches", "project", "folder"):
            try:
                targets.add(normalize(catalog.load(path).target.name))
            except PatchkitError:
                continue  # `list` and `lint` tell what is wrong with it
    for home in ledger_homes(homes.site):
        try:
            targets.update(patch.distribution for patch in homes.at(home).ledger.patches)
        except SiteError:
            continue
    return targets
