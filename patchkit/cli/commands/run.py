"""``run``."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from patchkit.cli.context import catalog_of, site_json, site_of
from patchkit.cli.output import Output
from patchkit.errors import UsageError

if TYPE_CHECKING:
    from patchkit.model.patch import Patch
    from patchkit.ops.catalog import Catalog
    from patchkit.ops.inmemory import Live, Module, View


def configure_run(parser: ArgumentParser) -> None:
    """The options of ``run``."""
    parser.add_argument(
        "--with", action="append", dest="names", metavar="NAME", help="a patch (default: the project's list)"
    )
    parser.add_argument("--pristine", action="store_true", help="no patch at all, not even those applied on disk")
    parser.add_argument("--dry-run", action="store_true", help="plan and report, start nothing")
    parser.add_argument("--quiet", action="store_true", help="do not say what is live before the command starts")
    parser.add_argument("--allow-known-bad", action="store_true", help="accept patches tagged known-bad")
    parser.add_argument(
        "--fetch", action="store_true", help="take a file's original from the released wheel, where nothing else has it"
    )
    parser.add_argument("program", nargs="*", metavar="CMD", help="the command and its arguments, behind `--`")
    parser.usage = "%(prog)s [options] [--with NAME]... -- CMD [ARGUMENT]..."


def run_run(arguments: Namespace) -> int:
    """Become the command, with the patches in the memory of its Pythons."""
    from patchkit.ops.bundle import make_bundle
    from patchkit.ops.inmemory import plan_in_memory
    from patchkit.ops.launch import environment, find_program, refuse_nested, replace_process

    output: Output = arguments.output
    words: list[str] = arguments.behind_dashes
    if arguments.program or not (words or arguments.dry_run):
        raise UsageError(
            "`patchkit run` takes the command behind `--`",
            hint=f"patchkit run --with NAME -- {' '.join(arguments.program) or 'python train.py'}",
        )
    refuse_nested(os.environ)
    catalog = catalog_of(arguments)
    patches = _wanted(arguments, catalog)
    site = site_of(arguments)
    view = plan_in_memory(
        site,
        patches,
        allow_known_bad=arguments.allow_known_bad,
        notice=output.note,
        fetch=output.status if arguments.fetch else None,
        find_patch=catalog.find,
    )
    if words:
        program = find_program(site, words, environment(site, "", os.environ))
    if arguments.dry_run:
        for line in _lines(view, whole=True):
            output.line(line)
        output.json(
            ok=True,
            site=site_json(site),
            dry_run=True,
            patches=[_live_json(live) for live in view.patches],
            modules=[_module_json(module) for module in view.modules],
            hidden=list(view.hidden),
            notes=list(view.notes),
        )
        return 0
    for note in () if arguments.quiet else (*view.notes, *_lines(view, whole=False)):
        output.note(note)
    env = environment(site, make_bundle(view), os.environ)
    output.flush()
    return replace_process(program, words, env)


def _wanted(arguments: Namespace, catalog: Catalog) -> list[Patch]:
    if arguments.pristine:
        if arguments.names:
            raise UsageError("--pristine and --with exclude each other", hint="give one of them")
        return []
    names = arguments.names
    if not names:
        project = catalog.project
        if project is None or not project.listed:
            raise UsageError(
                "no patch is named, and there is no project's list",
                hint="patchkit run --with NAME -- CMD; or `apply = [...]` under [tool.patchkit] in pyproject.toml; "
                "without any patch: --pristine",
            )
        names = project.wanted
    return [catalog.load(name) for name in names]


def _lines(view: View, *, whole: bool) -> list[str]:
    """What is live, in words: one line when a command starts, each module as well on a dry run."""
    live = [one for one in view.patches if one.action == "live"]
    count = sum(1 for module in view.modules if module.patches)
    names = ", ".join(one.name for one in live)
    would = "would be " if whole else ""
    first = f"run: {names} {would}in memory: {_modules(count)}; the site stays as it is"
    lines = [first if live else "run: no patch in memory; the site stays as it is"]
    if whole:
        lines += [f"  {_change(module)} {module.name}  {module.path}" for module in view.modules]
    lines += [f"run: {one.name}: {one.action}: {one.reason}" for one in view.patches if one.action != "live"]
    if view.hidden:
        back = sum(1 for module in view.modules if not module.patches)
        verb = "is" if len(view.hidden) == 1 else "are"
        lines.append(
            f"run: {', '.join(view.hidden)} {verb} applied on disk and not named: not in this process "
            f"({_modules(back)} as installed)"
        )
    return lines


def _modules(count: int) -> str:
    return f"{count} module{'' if count == 1 else 's'}"


def _change(module: Module) -> str:
    if module.after is None:
        return "removed"
    return "added" if module.before is None else "patched" if module.patches else "as installed"


def _live_json(live: Live) -> dict[str, object]:
    return {
        "name": live.name,
        "action": live.action,
        "distribution": live.distribution,
        "version": live.version,
        "reason": live.reason,
        "site": live.site,
        "modules": list(live.modules),
    }


def _module_json(module: Module) -> dict[str, object]:
    from patchkit.ops.inmemory import after_sha256, before_sha256

    return {
        "name": module.name,
        "path": module.path,
        "change": _change(module),
        "patches": list(module.patches),
        "before_sha256": before_sha256(module),
        "after_sha256": after_sha256(module),
    }
