"""A diagnosis of the site: what patchkit sees of it, and what would be in the way."""

from __future__ import annotations

import os

from patchkit.errors import PatchkitError, SiteError
from patchkit.runtime.ledger import state_path
from patchkit.site.environment import Site
from patchkit.state.ledger import Ledger
from patchkit.state.transaction import pending
from patchkit.tuples import NamedTuple


class Fact(NamedTuple):
    """One thing found: ``level`` is "ok", "note" or "problem"; ``hint`` is the way out of a problem."""

    level: str
    subject: str
    text: str
    hint: str | None = None


def diagnose(site: Site) -> list[Fact]:
    """Look at the site without changing it.

    Args:
        site: The site.
    """
    facts = [Fact("ok", "site", site.home)]
    facts.append(_interpreter(site))
    if len(site.paths) > 1:
        facts.append(Fact("ok", "searched", ", ".join(site.paths)))
    facts.append(_writable(site))
    facts += _ledger(site)
    facts += _distributions(site)
    return facts


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
    if os.access(site.home, os.W_OK):
        return Fact("ok", "writable", "yes")
    return Fact(
        "note",
        "writable",
        "no: `check` works, `apply` is refused",
        "run as a user who may write there, or change the image",
    )


def _ledger(site: Site) -> list[Fact]:
    facts = []
    if pending(site.home):
        facts.append(
            Fact(
                "problem",
                "journal",
                "a command was interrupted and has not been taken back",
                "run any command that writes, e.g. `patchkit sync`",
            )
        )
    try:
        ledger = Ledger.load(site.home)
    except SiteError as error:
        facts.append(Fact("problem", "ledger", error.message.partition("\n")[0], error.hint))
        return facts
    names = ", ".join(patch.name for patch in ledger.patches) or "no patch is applied"
    facts.append(Fact("ok", "ledger", f"{state_path(site.home)}: {names}"))
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


def _distributions(site: Site) -> list[Fact]:
    facts = []
    found = site.distributions()
    facts.append(Fact("ok", "distributions", str(len(found))))
    seen: dict[tuple[str, str], str] = {}
    for distribution in found:
        try:
            folder = os.path.dirname(distribution.info)
            other = seen.setdefault((distribution.normalized, folder), distribution.info)
            if other != distribution.info:
                facts.append(
                    Fact(
                        "problem",
                        distribution.name,
                        f"is installed twice: {os.path.basename(other)} and {os.path.basename(distribution.info)}",
                        f"reinstall {distribution.name}",
                    )
                )
            if distribution.editable:
                facts.append(
                    Fact("note", distribution.name, f"editable, so not for patching: {distribution.editable_reason}")
                )
            elif distribution.kind != "wheel":
                facts.append(
                    Fact("note", distribution.name, f"has no RECORD ({distribution.kind}): no witness of its bytes")
                )
        except PatchkitError as error:
            facts.append(Fact("problem", distribution.name, error.message.partition("\n")[0], error.hint))
    return facts
