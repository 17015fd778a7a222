"""``lint`` and ``schema``: patch files, without a site or held against releases; and recipes."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from patchkit.cli.context import catalog_of, refuse_foreign, site_of
from patchkit.cli.output import Output
from patchkit.errors import PatchFileError, UsageError
from patchkit.tuples import NamedTuple
from patchkit.visible import visible

if TYPE_CHECKING:
    from patchkit.author.fixing import Fixed
    from patchkit.author.releases import Releases
    from patchkit.model.patch import Patch
    from patchkit.ops.catalog import Catalog
    from patchkit.ops.rules import Finding

_STYLES = {"error": "red", "warning": "yellow", "note": "cyan"}


def configure_lint(parser: ArgumentParser) -> None:
    """The options of ``lint``."""
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="a patch or recipe, by name or path (default: all but those of other packages)",
    )
    parser.add_argument("--strict", action="store_true", help="warnings count as findings; notes do not")
    parser.add_argument(
        "--ignore", action="append", default=[], metavar="RULE", help="leave a rule out; may be given more than once"
    )
    parser.add_argument(
        "--against",
        metavar="WHAT",
        help='also hold them against releases: "installed", "all", a specifier, or versions as in 0.23.0,0.24.0',
    )
    parser.add_argument("--offline", action="store_true", help="ask no index: only releases that are in the cache")
    parser.add_argument("--fix", action="store_true", help="rewrite the files where that is proved to be safe")
    parser.add_argument("--dry-run", action="store_true", help="with --fix: show the diff, and write nothing")


class _Linted(NamedTuple):
    """One file: what was found (with ``--fix``: what is left), the releases it was held against, and its fixes."""

    path: str
    findings: list[Finding]
    against: dict[str, Any] | None = None
    patch: Patch | None = None
    fixed: Fixed | None = None
    recipe: bool = False


def run_lint(arguments: Namespace) -> int:
    """Check patch files; 1 when there is a finding."""
    output: Output = arguments.output
    _check(arguments)
    linted = [_lint(arguments, path) for path in _paths(arguments)]
    output.clear_status()
    told: set[str] = set()
    for one in linted:
        _show(output, one, told)
    for one in linted:
        _finish(arguments, one)
    findings = [finding for one in linted for finding in one.findings]
    bad = [f for f in findings if f.level == "error" or (arguments.strict and f.level == "warning")]
    _sum_up(output, linted, bad, arguments)
    output.json(
        ok=not bad,
        files=[one.path for one in linted],
        findings=[_finding_json(finding) for finding in findings],
        against=[one.against for one in linted if one.against is not None],
        fixes=[entry for one in linted for entry in _fixes_json(one)],
        diff="".join(_diff(one) for one in linted),
    )
    return 1 if bad else 0


_HELP = "see `patchkit lint --help`"


def _check(arguments: Namespace) -> None:
    from patchkit.ops.rules import RULES

    for rule in arguments.ignore:
        if rule not in RULES:
            import difflib

            near = difflib.get_close_matches(rule, RULES, 1)
            hint = f"did you mean {near[0]}?" if near else f"the rules are {', '.join(RULES)}"
            raise UsageError(f"--ignore {rule}: no such rule", hint=hint, details={"rule": rule, "rules": list(RULES)})
    if arguments.dry_run and not arguments.fix:
        raise UsageError("--dry-run goes with --fix", hint=_HELP)
    if arguments.offline and arguments.against is None:
        raise UsageError("--offline goes with --against", hint=_HELP)


def _paths(arguments: Namespace) -> Sequence[str]:
    """The files that are named; else one's own patches and recipes, or the patches that are shipped."""
    catalog = catalog_of(arguments)
    if arguments.names:
        return [_path_of(catalog, name) for name in arguments.names]
    from patchkit.bench.catalog import recipe_folders
    from patchkit.ops.catalog import names_in

    known = list(catalog.names())
    own = [path for _, path, origin in known if origin in _OWN]
    patches = own or [path for _, path, origin in known if origin == "shipped"]
    return [*patches, *(path for _, path, origin in names_in(recipe_folders()) if origin in _OWN)]


_OWN = ("--patches", "project", "folder")


def _path_of(catalog: Catalog, name: str) -> str:
    """The file that a name means: of a patch, or else of a recipe."""
    try:
        return catalog.path_of(name)
    except UsageError:
        from patchkit.bench.catalog import is_path, recipe_folders
        from patchkit.ops.catalog import names_in

        found = () if is_path(name) else names_in(recipe_folders())
        recipe = next((path for known, path, _ in found if known == name), None)
        if recipe is None:
            raise
        return recipe


def _lint(arguments: Namespace, path: str) -> _Linted:
    from patchkit.model.load import load_patch
    from patchkit.ops.lint import is_recipe, lint_file, lint_patch, lint_recipe

    ignored = set(arguments.ignore)
    if is_recipe(path):
        return _Linted(path, [finding for finding in lint_recipe(path) if finding.rule not in ignored], recipe=True)
    found = [finding for finding in lint_file(path) if finding.rule not in ignored]
    if arguments.against is None and not arguments.fix:
        return _Linted(path, found)
    try:
        patch = load_patch(path)
    except PatchFileError:
        return _Linted(path, found)
    if arguments.fix and not arguments.dry_run:
        refuse_foreign(catalog_of(arguments), patch)
    with _releases(arguments, patch) as releases:
        find: Callable[[Patch], list[Finding]] = lint_patch
        if releases is not None:
            from patchkit.author.linting import lint_on
            from patchkit.cli.progress import Ticker

            tick = Ticker(arguments.output)

            def find(patch: Patch) -> list[Finding]:
                return lint_on(patch, releases, tick)

        def wanted(patch: Patch) -> list[Finding]:
            return [finding for finding in find(patch) if finding.rule not in ignored]

        if not arguments.fix:
            return _Linted(path, wanted(patch), _against_json(patch, releases), patch)
        from patchkit.author.fixing import fix

        fixed = fix(patch, wanted, releases.files if releases is not None else ())
        # A dry run leaves the file as it is, and so what there is to find.
        left = wanted(patch if arguments.dry_run else fixed.patch)
        return _Linted(path, left, _against_json(patch, releases), patch, fixed)


def _releases(arguments: Namespace, patch: Patch) -> AbstractContextManager[Releases | None]:
    if arguments.against is None:
        return nullcontext()
    from patchkit.author import releases
    from patchkit.cli.progress import Ticker

    output: Output = arguments.output
    if arguments.against == releases.INSTALLED:
        return releases.installed(site_of(arguments), patch, notice=output.note, progress=output.status)
    return releases.released(patch, arguments.against, offline=arguments.offline, progress=Ticker(output))


def _show(output: Output, one: _Linted, told: set[str]) -> None:
    """The findings of one file; why a rule matters is said where it comes up first."""
    for finding in one.findings:
        path = visible(finding.path)
        where = path if finding.line is None else f"{path}:{finding.line}"
        # A loader's message already begins with its place.
        first, newline, rest = finding.message.removeprefix(f"{where}: ").partition("\n")
        key = f" {finding.key}:" if finding.key and not first.startswith(finding.key) else ""
        fixable = ", fixable" if finding.fix is not None else ""
        level = output.paint(finding.level, _STYLES[finding.level])
        output.line(f"{where}: {level}:{key} {first} [{finding.rule}{fixable}]{newline}{rest}")
        if finding.rule not in told and finding.rule != "load":
            output.paragraph(f"why: {finding.reason}", 4, hanging=2)
        told.add(finding.rule)


def _finish(arguments: Namespace, one: _Linted) -> None:
    """Write what was fixed, or show it."""
    output: Output = arguments.output
    if one.fixed is None or one.patch is None:
        return
    path = visible(one.path)
    for finding in one.fixed.done:
        verb = "would be fixed" if arguments.dry_run else "fixed"
        output.line(f"{path}: {output.paint(verb, 'green')}: {finding.key}: {finding.rule}")
    for finding, why in one.fixed.refused:
        output.line(f"{path}: {output.paint('not fixed', 'yellow')}: {finding.key}: {finding.rule}: {why}")
    if arguments.dry_run:
        if one.fixed.done:
            output.diff(_diff(one))
    elif one.fixed.done:
        from patchkit.author.save import replace_file

        replace_file(one.path, one.patch.data, one.fixed.patch.data)


def _diff(one: _Linted) -> str:
    from patchkit.ops.inspect import unified

    if one.fixed is None or one.patch is None:
        return ""
    return unified(f"{one.patch.name}.toml", one.patch.data, one.fixed.patch.data)


def _sum_up(output: Output, linted: Sequence[_Linted], bad: Sequence[Finding], arguments: Namespace) -> None:
    findings = [finding for one in linted for finding in one.findings]
    rest = [_count(sum(f.level == level for f in findings if f not in bad), level) for level in ("warning", "note")]
    fixable = sum(finding.fix is not None for finding in findings)
    more = [text for text in rest if not text.startswith("0 ")]
    if fixable and not arguments.fix:
        more.append(f"{fixable} fixable with --fix")
    recipes = sum(one.recipe for one in linted)
    looked = [_count(len(linted) - recipes, "patch file")] if recipes < len(linted) or not linted else []
    looked += [_count(recipes, "recipe")] if recipes else []
    output.line(", ".join([*looked, _count(len(bad), "finding"), *more]))
    for one in linted:
        if one.against is not None:
            names = _spanned(one.against["versions"])
            output.paragraph(f"{one.against['name']} against {one.against['distribution']} {names}", hanging=2)
            for why, versions in _missing(one.against["distribution"], one.against["missing"]).items():
                output.paragraph(f"no wheel: {_spanned(versions)}: {why}", 2, hanging=2)


_NAMED = 8
"""Versions in a row that are all named; of more, the first, the last and how many."""


def _spanned(versions: Sequence[str]) -> str:
    if len(versions) <= _NAMED:
        return ", ".join(versions)
    return f"{versions[0]} to {versions[-1]} ({len(versions)})"


def _missing(name: str, missing: Sequence[dict[str, str]]) -> dict[str, list[str]]:
    """The versions that could not be had, by the reason; what pip says of each of them is left to ``--json``."""
    found: dict[str, list[str]] = {}
    for one in missing:
        reason = one["reason"].partition("; pip said: ")[0].replace(f"{name} {one['version']}", "it")
        found.setdefault(reason.removeprefix("it: "), []).append(one["version"])
    return found


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number != 1 else ''}"


def _finding_json(finding: Finding) -> dict[str, Any]:
    return {
        "path": finding.path,
        "line": finding.line,
        "level": finding.level,
        "key": finding.key,
        "message": finding.message,
        "rule": finding.rule,
        "reason": finding.reason,
        "fixable": finding.fix is not None,
    }


def _against_json(patch: Patch, releases: Releases | None) -> dict[str, Any] | None:
    if releases is None:
        return None
    return {
        "name": patch.name,
        "distribution": patch.target.name,
        "versions": [files.version for files in releases.files],
        "missing": [{"version": version, "reason": reason} for version, reason in releases.missing],
        "offline": releases.listing.offline if releases.listing is not None else None,
    }


def _fixes_json(one: _Linted) -> Iterator[dict[str, Any]]:
    """What was fixed, and what was not and why; in a dry run: what would be."""
    if one.fixed is None:
        return
    refused = [*((finding, None) for finding in one.fixed.done), *one.fixed.refused]
    for finding, why in refused:
        yield {"path": one.path, "rule": finding.rule, "key": finding.key, "fixed": why is None, "reason": why}


def configure_schema(parser: ArgumentParser) -> None:
    """The options of ``schema``."""
    parser.add_argument("--recipe", action="store_true", help="of recipes, instead of patch files")
    parser.add_argument(
        "--output", metavar="FILE", dest="target", help="write it, or an earlier one there anew; default: print it"
    )


def run_schema(arguments: Namespace) -> int:
    """Print or write the JSON Schema of patch files, or of recipes."""
    from patchkit.model.recipe_schema import recipe_schema
    from patchkit.model.schema import as_text, patch_schema

    output: Output = arguments.output
    schema = recipe_schema() if arguments.recipe else patch_schema()
    if arguments.target is not None:
        from patchkit.author.beside import write_schema

        write_schema(arguments.target, recipe=arguments.recipe)
        output.line(f"{visible(arguments.target)}: written")
    elif not output.json_mode:
        output.line(as_text(schema).rstrip("\n"))
    parts = {"patch": None, "recipe": None} | {"recipe" if arguments.recipe else "patch": schema}
    output.json(ok=True, path=arguments.target, **parts)
    return 0
