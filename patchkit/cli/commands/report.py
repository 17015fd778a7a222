"""``report``."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from patchkit.cli.output import Output
from patchkit.errors import SiteError, UsageError

if TYPE_CHECKING:
    from patchkit.bench.report import Report

#: Bytes of the largest report that is read: a thousand runs take less.
_MOST = 256 << 20
#: What may be written: the option's name and what it writes.
_FORMS = {
    "md": "Markdown: verdict first, for a pull request",
    "html": "one self-contained page with plots",
    "bmf": "Bencher Metric Format",
    "github_action": "github-action-benchmark; two files, FILE and FILE with .smaller before its suffix",
}


def configure_report(parser: ArgumentParser) -> None:
    """The options of ``report``."""
    parser.add_argument("runs", nargs="*", metavar="RUN", help="the folder of a run, or its report.json")
    parser.add_argument("--runs-table", action="store_true", dest="details", help="every process too")
    for name, what in _FORMS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", metavar="FILE", dest=name, help=f"write {what}")
    parser.add_argument("--schema", action="store_true", help="print the JSON Schema of report.json")


def run_report(arguments: Namespace) -> int:
    """Show one report again, or several side by side; 0, whatever its verdict was."""
    from patchkit.bench.render.compare import compare
    from patchkit.bench.render.jsonform import report_json, report_schema

    output: Output = arguments.output
    if arguments.schema:
        import json

        output.line(json.dumps(report_schema(), indent=2))
        output.json(ok=True, report_schema=report_schema())
        return 0
    if not arguments.runs:
        raise UsageError("report: of which run? name its folder", hint="patchkit report patchkit-runs/NAME-TIME")
    reports = [read(path) for path in arguments.runs]
    written = _write(arguments, reports)
    if len(reports) == 1:
        show_report(output, reports[0], details=arguments.details)
    else:
        for line in compare(reports):
            output.line(line)
    for path in written:
        output.note(f"written: {path}")
    output.json(ok=True, reports=[report_json(report) for report in reports], written=written)
    return 0


def show_report(output: Output, report: Report, *, details: bool = False) -> None:
    """Print a report, as ``rebench`` ends with; ``details``: each run too."""
    from patchkit.bench.render.terminal import terminal

    for line in terminal(report, details=details):
        if line.table:
            output.line(output.paint(line.text, line.style) if line.style else line.text)
        else:
            margin = len(line.text) - len(line.text.lstrip())
            output.paragraph(line.text.lstrip(), margin, line.style, hanging=max(line.hanging - margin, 0))


def read(path: str) -> Report:
    """The report in the folder or file ``path``.

    Raises:
        UsageError: ``no-report``: there is none; ``report``: what is there is not one.
    """
    import json

    from patchkit.bench.render.jsonform import read_report
    from patchkit.runtime.ledger import read_regular

    file = os.path.join(path, "report.json") if os.path.isdir(path) else path
    try:
        return read_report(json.loads(read_regular(file, _MOST)))
    except OSError as error:
        unfinished = os.path.exists(os.path.join(path, "session.json"))
        raise UsageError(
            f"{file}: {error.strerror or error}",
            code="no-report",
            hint=f"the experiment was not finished: patchkit rebench RECIPE --resume {path}"
            if unfinished
            else "name the folder that `rebench` said its runs are kept in",
            details={"path": file},
        ) from None
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"{file} is no report of this patchkit: {error}",
            code="report",
            hint="`patchkit report --schema` prints what one is",
            details={"path": file},
        ) from None


def _write(arguments: Namespace, reports: Sequence[Report]) -> list[str]:
    import json

    from patchkit.bench.render.exports import action_benchmark, bmf
    from patchkit.bench.render.html import html
    from patchkit.bench.render.markdown import markdown

    wanted = [(name, getattr(arguments, name)) for name in _FORMS if getattr(arguments, name)]
    if wanted and len(reports) != 1:
        option = f"--{wanted[0][0].replace('_', '-')}"
        raise UsageError(f"{option} writes one report", hint="name one run at a time")
    written: list[str] = []

    def save(path: str, text: str) -> None:
        try:
            with open(path, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
        except OSError as error:
            raise SiteError(
                f"{path} cannot be written: {error.strerror}", code="os-error", hint="name another file"
            ) from None
        written.append(path)

    def values(value: Any) -> str:
        return json.dumps(value, indent=1, ensure_ascii=False) + "\n"

    for name, path in wanted:
        report = reports[0]
        if name == "md":
            save(path, markdown(report))
        elif name == "html":
            save(path, html(report))
        elif name == "bmf":
            save(path, values(bmf(report)))
        else:
            stem, suffix = os.path.splitext(path)
            save(path, values(action_benchmark(report, "higher")))
            save(f"{stem}.smaller{suffix}", values(action_benchmark(report, "lower")))
    return written
