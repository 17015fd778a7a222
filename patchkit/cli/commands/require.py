"""``require``: the guard in front of a program, for sites that do not have patchkit in them."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence

from patchkit.cli.context import same_site, site_json, site_of
from patchkit.cli.output import Output
from patchkit.errors import SiteError, UsageError


def configure_require(parser: ArgumentParser) -> None:
    """The options of ``require``."""
    parser.usage = "%(prog)s [options] NAME [NAME...] [-- CMD [ARGUMENT]...]"
    parser.add_argument("names", nargs="+", metavar="NAME", help="the patches that must be in force; then -- CMD...")
    parser.add_argument("--pid", type=int, metavar="PID", help="refuse, too, where this process is older than a patch")


@same_site
def run_require(arguments: Namespace) -> int:
    """Refuse, or become the command behind ``--``."""
    from patchkit.ops.start import in_force

    output: Output = arguments.output
    command: Sequence[str] = arguments.behind_dashes
    site = site_of(arguments)
    try:
        in_force(site, arguments.names, arguments.pid)
    except SiteError as error:
        if error.code == "not-applied" and os.environ.get("PATCHKIT_RUN"):
            error.hint = (
                f"{error.hint}; this command is about the disk, and within `patchkit run` patches are in memory: "
                'there the program says `patchkit.require("NAME")`'
            )
        raise
    if command:
        from patchkit.ops.launch import refuse_other_python

        refuse_other_python(site, command, os.environ)
    output.json(ok=True, site=site_json(site), patches=list(dict.fromkeys(arguments.names)), command_line=list(command))
    return _become(command) if command else 0


def _become(command: Sequence[str]) -> int:
    """Run ``command`` in the place of this process, with its number, its signals and its exit status."""
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        if os.name == "nt":  # there, exec starts another process and ends this one
            import subprocess

            return subprocess.call(command)
        import signal

        for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores them, and what is ignored stays so over exec
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), signal.SIG_DFL)
        os.execvp(command[0], list(command))
    except OSError as error:
        raise UsageError(
            f"{command[0]}: {error.strerror}", code="command", hint="name a program, or its path, behind `--`"
        ) from None
