"""The entry point, and the one place where an error becomes output and an exit status."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

from patchkit.cli.output import Output
from patchkit.errors import InternalError, PatchkitError, SiteError


def entrypoint() -> None:
    """Run the command line of this process and exit with its status."""
    # The process is short: collecting garbage among a thousand syntax trees costs a tenth and frees nothing.
    gc.disable()
    sys.exit(main(sys.argv[1:]))


def main(argv: Sequence[str]) -> int:
    """Run one command line and return the exit status of DESIGN section 4.

    Args:
        argv: The arguments without the program's name.
    """
    # Known before parsing, so that an error of the parser itself is also printed in the form that was asked for.
    json_wanted = "--json" in argv[: argv.index("--") if "--" in argv else len(argv)]
    output = Output(json_mode=json_wanted, color=_color_wanted(argv))
    status = _run(argv, output)
    return output.flush() or status


def _run(argv: Sequence[str], output: Output) -> int:
    try:
        from patchkit.cli.parser import parse

        arguments = parse(argv, output)
        return 0 if arguments is None else int(arguments.run(arguments))
    except PatchkitError as error:
        return output.fail(error)
    except KeyboardInterrupt:
        return output.interrupted()
    except OSError as error:
        if error.filename is None and _directory_is_gone():
            return output.fail(
                SiteError(
                    "the working directory is gone, or closed to you",
                    code="os-error",
                    hint="cd to another one, and run the command again",
                )
            )
        return output.fail(
            SiteError(
                f"{error.filename or 'the system'}: {error.strerror or error}",
                code="os-error",
                hint="check the path and its permissions",
                details={"path": str(error.filename) if error.filename else None, "errno": error.errno},
            )
        )
    except MemoryError:
        return output.fail(
            SiteError(
                "there is not enough memory for the patch file or for a file that it edits",
                code="no-memory",
                hint="use text edits, which need the least, or a machine with more memory",
            )
        )
    except RecursionError:
        return output.fail(
            SiteError("the input is nested too deeply", code="too-deep", hint="use a text edit on this file")
        )
    except Exception as error:
        if os.environ.get("PATCHKIT_DEBUG"):
            raise
        return output.fail(
            InternalError(
                f"unexpected {type(error).__name__}: {error}",
                hint="this is a fault of patchkit: run it again with PATCHKIT_DEBUG=1 and report what it prints",
            )
        )


def _directory_is_gone() -> bool:
    try:
        os.getcwd()
    except OSError:
        return True
    return False


def _color_wanted(argv: Sequence[str]) -> str:
    for index, word in enumerate(argv):
        if word.startswith("--color="):
            return word.partition("=")[2]
        if word == "--color" and index + 1 < len(argv):
            return argv[index + 1]
    return "auto"
