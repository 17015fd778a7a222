"""``lint`` and ``schema``: patch files without a site."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from patchkit.cli.context import catalog_of
from patchkit.cli.output import Output
from patchkit.visible import visible


def configure_lint(parser: ArgumentParser) -> None:
    """The options of ``lint``."""
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="a patch, by name or path (default: all but those of other packages)"
    )
    parser.add_argument("--strict", action="store_true", help="warnings count as findings")


def run_lint(arguments: Namespace) -> int:
    """Check patch files; 1 when there is a finding."""
    from patchkit.ops.lint import lint_file

    output: Output = arguments.output
    catalog = catalog_of(arguments)
    if arguments.names:
        paths = [catalog.path_of(name) for name in arguments.names]
    else:
        known = list(catalog.names())
        own = [path for _, path, origin in known if origin in ("--patches", "project", "folder")]
        paths = own or [path for _, path, origin in known if origin == "shipped"]
    findings = [finding for path in paths for finding in lint_file(path)]
    for finding in findings:
        style = "red" if finding.level == "error" else "yellow"
        path = visible(finding.path)
        where = path if finding.line is None else f"{path}:{finding.line}"
        # A loader's message already begins with its place.
        message = finding.message.removeprefix(f"{where}: ")
        key = f" {finding.key}:" if finding.key and not message.startswith(finding.key) else ""
        output.line(f"{where}: {output.paint(finding.level, style)}:{key} {message}")
    bad = [f for f in findings if f.level == "error" or arguments.strict]
    output.line(
        f"{len(paths)} patch file{'s' if len(paths) != 1 else ''}, {len(bad)} finding{'s' if len(bad) != 1 else ''}"
    )
    output.json(
        ok=not bad,
        files=paths,
        findings=[finding._asdict() for finding in findings],
    )
    return 1 if bad else 0


def configure_schema(parser: ArgumentParser) -> None:
    """The options of ``schema``."""
    parser.add_argument(
        "--output", metavar="FILE", dest="target", help="write it, or an earlier one there anew; default: print it"
    )


def run_schema(arguments: Namespace) -> int:
    """Print or write the JSON Schema of patch files."""
    from patchkit.model.schema import patch_schema, schema_text

    output: Output = arguments.output
    if arguments.target is not None:
        from patchkit.author.beside import write_schema

        write_schema(arguments.target)
        output.line(f"{visible(arguments.target)}: written")
    elif not output.json_mode:
        output.line(schema_text().rstrip("\n"))
    output.json(ok=True, path=arguments.target, patch=patch_schema())
    return 0
