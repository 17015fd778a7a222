"""``doctor``."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from patchkit.cli.context import catalog_of, same_site, site_json, site_of, told
from patchkit.cli.output import Output

if TYPE_CHECKING:
    from patchkit.ops.doctor import Fact

_STYLES = {"ok": "green", "note": "yellow", "problem": "red"}


def configure_doctor(parser: ArgumentParser) -> None:
    """The options of ``doctor``."""
    parser.add_argument(
        "--deep", action="store_true", help="compare every file of every distribution with RECORD's hash"
    )


@same_site
def run_doctor(arguments: Namespace) -> int:
    """Diagnose the site; 1 when there is a problem."""
    from patchkit import __version__
    from patchkit.errors import SiteError
    from patchkit.ops.check import GLANCE_SECONDS, marks, quiet, steady
    from patchkit.ops.doctor import Fact, diagnose
    from patchkit.ops.session import mend, once

    output: Output = arguments.output
    note = once(output.note)
    site = site_of(arguments)
    mended = mend(site, wait=False)
    for notice in mended.notices:
        note(notice)
    catalog = catalog_of(arguments)

    def look() -> list[Fact]:
        return diagnose(site, catalog, waiting=mended.waiting, deep=arguments.deep, progress=output.status)

    try:
        if arguments.deep:  # takes long, and is not begun again for every command that comes by
            before = quiet(site, GLANCE_SECONDS, note)
            facts = look()
            if marks(site) != before:
                text = "a command worked here meanwhile, and what is said of its files may be half of what it did"
                facts.append(Fact("note", "site", text, "run doctor again"))
        else:
            facts = steady(site, look, wait=GLANCE_SECONDS, notice=note)
    except SiteError as error:
        if error.code != "locked":
            raise
        facts = [Fact("problem", "lock", f"nothing was looked at: {error.message}", error.hint)]
    output.clear_status()
    own = f"patchkit {__version__} on Python {sys.version.split()[0]}"
    output.line(own)
    for fact in facts:
        output.line(
            f"{output.paint(fact.level.ljust(8), _STYLES[fact.level])}{fact.subject}: {told(arguments, fact.text)}"
        )
        if fact.hint:
            output.paragraph(f"{output.paint('hint', 'cyan')}: {told(arguments, fact.hint)}", 8)
    folders = [folder._asdict() for folder in catalog.all_folders()]
    output.line("patches are looked for in:")
    for folder in folders:
        output.line(f"  {folder['path']}  ({folder['origin']})")
    ok = all(fact.level != "problem" for fact in facts)
    output.json(ok=ok, site=site_json(site), patchkit=own, facts=[fact._asdict() for fact in facts], folders=folders)
    return 0 if ok else 1
