"""The command line: global options, one sub-command, help with worked examples.

argparse and not typer: a process that has imported typer has spent six times the bare interpreter before the first
line of a command runs, and the budget of the whole of ``check`` is eight (benchmarks/startup.py).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from typing import NoReturn

from patchkit.cli.commands import COMMANDS, GROUPS
from patchkit.cli.output import WIDTH, Output
from patchkit.errors import UsageError

COLORS = ("auto", "always", "never")
"""What ``--color`` may be."""

_EPILOG = """\
examples:
  patchkit try logits-greedy        the whole life of a patch, on a throwaway site
  patchkit --python ~/vllm/bin/python apply logits-greedy
  patchkit --python ~/vllm/bin/python check         exit 1 when something drifted
  patchkit --python ~/vllm/bin/python revert --all

The site is, in this order: --site, --python, $PATCHKIT_PYTHON, the active virtual
environment, the interpreter that patchkit runs in. Global options may stand before
or behind the command. `patchkit COMMAND --help` has an example of each command.

exit codes: 0 done or clean; 1 findings; 2 wrong use or a wrong patch file;
3 a guard refused; 4 an anchor or condition failed; 5 the site conflicts;
6 inconclusive; 70 a fault of patchkit
"""


class Formatter(argparse.RawDescriptionHelpFormatter):
    """Help at 80 columns. The width given, argparse need not import ``shutil`` to ask the terminal."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26, width=WIDTH)


class Parser(argparse.ArgumentParser):
    """An argument parser that raises instead of exiting."""

    def error(self, message: str) -> NoReturn:
        """Raise :class:`UsageError` with the way to the help as the hint."""
        raise UsageError(message, hint=f"see `{self.prog} --help`")


def parse(argv: Sequence[str], output: Output) -> argparse.Namespace | None:
    """Parse ``argv``; None when help or the version was asked for and has been printed.

    Raises:
        UsageError: An unknown command or option, or a missing argument.
    """
    name = _command(argv)
    if name is not None:
        output.command = name
        if name not in COMMANDS:
            raise UsageError(f"no command `{name}`{_nearest(name, COMMANDS)}", hint="see `patchkit --help`")
    parser = build_parser(name)
    if os.environ.get("_ARGCOMPLETE"):
        from patchkit.cli.completion import complete

        complete(build_parser(None))
    behind: Sequence[str] | None = None
    if name in ("require", "run") and "--" in argv:  # another program's: argparse is not to look at it
        cut = list(argv).index("--")
        argv, behind = argv[:cut], argv[cut + 1 :]
    try:
        arguments, rest = parser.parse_known_args(list(argv))
    except SystemExit as stop:  # argparse's own --help and --version
        if stop.code:
            raise UsageError("wrong use", hint="see `patchkit --help`") from None
        return None
    if rest:
        try:
            _refuse(rest[0], name, parser)
        except UsageError as error:
            if name == "run" and behind is None:
                error.hint = "what is the command's own stands behind `--`: patchkit run --with NAME -- CMD"
            raise
    if arguments.color not in COLORS:
        near = _nearest(arguments.color, COLORS)
        raise UsageError(
            f"no --color `{arguments.color}`{near}: it is one of {', '.join(COLORS)}",
            hint="see `patchkit --help`",
        )
    if arguments.version:
        from patchkit import __version__

        output.line(f"patchkit {__version__}")
        output.json(ok=True, version=__version__)
        return None
    if arguments.command is None:
        parser.print_help(sys.stderr)
        raise UsageError("no command given", hint="start with `patchkit try logits-greedy` or `patchkit list`")
    arguments.output = output
    arguments.behind_dashes = list(behind or ())
    return arguments


def build_parser(only: str | None) -> argparse.ArgumentParser:
    """The parser, with the options of the command ``only`` (all commands' when it is None or unknown)."""
    parser = Parser(
        prog="patchkit",
        description="Patch installed Python packages: declarative, proved, atomic, taken back byte for\nbyte.",
        epilog=_EPILOG,
        formatter_class=Formatter,
        add_help=True,
        allow_abbrev=False,
    )
    _global_options(parser)
    parser.add_argument("--version", action="store_true", help="print patchkit's version")
    subparsers = parser.add_subparsers(
        dest="command", metavar="COMMAND", title="commands", parser_class=Parser, prog="patchkit"
    )
    names = [only] if only in COMMANDS else [name for _, group in GROUPS for name in group]
    for name in names:
        assert name is not None
        module = import_module(f"patchkit.cli.commands.{COMMANDS[name].module}")
        sub = subparsers.add_parser(
            name,
            help=COMMANDS[name].summary,
            description=COMMANDS[name].description or _sentence(COMMANDS[name].summary),
            epilog=f"example:\n{COMMANDS[name].example}",
            formatter_class=Formatter,
            allow_abbrev=False,
        )
        _global_options(sub.add_argument_group("global options"), repeated=True)
        function = name.replace("-", "_")
        getattr(module, f"configure_{function}")(sub)
        sub.set_defaults(run=getattr(module, f"run_{function}"))
    return parser


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _global_options(parser: argparse.ArgumentParser | argparse._ArgumentGroup, *, repeated: bool = False) -> None:
    # The same options before and behind the command: behind it a default must not overwrite what stood before.
    def default(value: object) -> object:
        return argparse.SUPPRESS if repeated else value

    parser.add_argument(
        "--python", metavar="EXE", default=default(None), help="the target environment's interpreter, or its folder"
    )
    parser.add_argument("--site", metavar="DIR", default=default(None), help="the target site-packages folder")
    parser.add_argument(
        "--patches",
        metavar="DIR",
        action="append",
        dest="patches_behind" if repeated else "patches",
        default=default(None),
        help="a folder of patch files, looked in first; may be repeated",
    )
    parser.add_argument(
        "--json", action="store_true", default=default(False), help="print one JSON object to stdout, nothing else"
    )
    # No `choices`: argparse's message for a wrong one lists them in a way of its own, and suggests nothing.
    parser.add_argument(
        "--color", metavar="|".join(COLORS), default=default("auto"), help="colour (default: on a terminal)"
    )


def _command(argv: Sequence[str]) -> str | None:
    """The command's name, found without a parser so that only that command's module is imported."""
    takes_value = {"--python", "--site", "--patches", "--color"}
    skip = False
    for word in argv:
        if skip:
            skip = False
        elif word in takes_value:
            skip = True
        elif not word.startswith("-"):
            return word
    return None


def _refuse(word: str, command: str | None, parser: argparse.ArgumentParser) -> NoReturn:
    """Raise for an option, or a word too many, that nobody takes; suggest the nearest option."""
    name = f"patchkit {command}" if command else "patchkit"
    hint = f"see `{name} --help`"
    option = word.partition("=")[0]
    if not option.startswith("-"):
        raise UsageError(f"`{name}` does not take `{word}`", hint=hint)
    known = [
        text for one in (parser, *_subparsers(parser)) for action in one._actions for text in action.option_strings
    ]
    raise UsageError(f"no option `{option}` of `{name}`{_nearest(option, known)}", hint=hint)


def _subparsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from action.choices.values()


def _nearest(word: str, known: Iterable[str]) -> str:
    import difflib

    near = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean `{near[0]}`?)" if near else ""
