"""Printing: people's text or one JSON object, colour or none, and nothing half-way between.

Without ``--json`` results go to stdout, progress and errors to stderr. With it stdout holds exactly one object and
people's text goes to stderr.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, TextIO

from patchkit.errors import PatchkitError, SiteError
from patchkit.visible import visible as safe

#: Columns that text meant for people keeps within, where its words let it.
WIDTH = 80
_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}

_DIFF_STYLES = (("--- ", "bold"), ("+++ ", "bold"), ("+", "green"), ("-", "red"), ("@@", "cyan"))


class Output:
    """Where a command prints. ``command`` is set by the parser once it is known."""

    def __init__(self, *, json_mode: bool, color: str) -> None:
        self.json_mode = json_mode
        self.color = color
        self.command = ""
        self._status_shown = False
        self._unwritable: OSError | None = None
        # Only what `paint` wrote may reach the terminal as an escape sequence; nobody else can know this word.
        self._mark = f"\x1b{os.urandom(6).hex()}["

    @property
    def live(self) -> bool:
        """Whether ``status`` shows in place, on a terminal."""
        return _is_terminal(sys.stderr)

    @property
    def _people(self) -> TextIO:
        return sys.stderr if self.json_mode else sys.stdout

    def line(self, text: str = "") -> None:
        """Print a line of a result. Control characters in it are shown, not obeyed."""
        self._write(self._people, self._shown(text) + "\n")

    def paragraph(self, text: str, indent: int = 0, style: str | None = None, *, hanging: int = 0) -> None:
        """Print text of a result within 80 columns where its words let it; ``hanging`` indents what follows line 1."""
        for line in text.split("\n"):
            for number, part in enumerate(_wrapped(line, max(WIDTH - indent - hanging, 40))):
                margin = " " * (indent + (hanging if number else 0))
                self.line(margin + (self.paint(part, style) if style else part))

    def note(self, text: str) -> None:
        """Print a line that is not the result: progress, a warning."""
        self.clear_status()
        self._write(sys.stderr, self._shown(text) + "\n")

    def status(self, text: str) -> None:
        """Show ``text`` in place on a terminal; off a terminal print it as a line of its own."""
        text = visible(text)
        if _is_terminal(sys.stderr):
            width = WIDTH - 1
            self._write(sys.stderr, "\r" + text[:width].ljust(width))
            self._status_shown = True
        else:
            self._write(sys.stderr, text + "\n")

    def clear_status(self) -> None:
        """Take away what ``status`` shows."""
        if self._status_shown:
            self._write(sys.stderr, "\r" + " " * (WIDTH - 1) + "\r")
            self._status_shown = False

    def json(self, *, ok: bool, error: Mapping[str, Any] | None = None, **fields: Any) -> None:
        """Print the one object of ``--json``; without ``--json`` nothing."""
        if self.json_mode:
            import json

            document = {"schema": 1, "command": self.command, "ok": ok, "error": error, **fields}
            # ASCII only: a lone surrogate out of a file name or an undecodable source must not break the document.
            self._write(sys.stdout, json.dumps(document, ensure_ascii=True, default=str) + "\n")

    def fail(self, error: PatchkitError) -> int:
        """Print ``error`` in the form asked for and return its exit status."""
        self.clear_status()
        details = error.to_json()
        self.json(ok=False, error=details)
        self.note(f"{self.paint('error', 'red', sys.stderr)}: {error.message}")
        if error.hint:
            head, *more = error.hint.split("\n")
            self.note(f"{self.paint('hint', 'cyan', sys.stderr)}: {head}")
            for text in more:
                self.note(f"      {text}")
        return error.exit_status

    def interrupted(self) -> int:
        """Say that Ctrl-C stopped the command; a transaction has already been rolled back by its own handler."""
        self.clear_status()
        self.json(ok=False, error={"code": "interrupted", "message": "interrupted", "hint": None})
        self._write(sys.stderr, "interrupted; a change under way is taken back, at the latest by the next command\n")
        return 130

    def paint(self, text: str, style: str, stream: TextIO | None = None) -> str:
        """``text`` in a colour or weight, where the stream is a terminal and colour is wanted."""
        if not self._colored(stream or self._people):
            return text
        return f"{self._mark}{_STYLES[style]}m{text}{self._mark}0m"

    def diff(self, text: str) -> None:
        """Print a unified diff, coloured by line; off a terminal its very bytes, for other tools to apply.

        Bytes that are no UTF-8 come as lone surrogates (``surrogateescape``).
        """
        if not (self.json_mode or self._colored(sys.stdout) or _is_terminal(sys.stdout)):
            self._write_bytes(sys.stdout, text)
            return
        text = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        for line in text.removesuffix("\n").split("\n"):
            shown = line.removesuffix("\r")
            style = next((style for start, style in _DIFF_STYLES if line.startswith(start)), None)
            self.line(self.paint(shown, style) if style else shown)

    def flush(self) -> int:
        """Flush, so that a reader gone, or a full disk, is noticed in here; returns the exit status of the latter."""
        self.clear_status()
        for stream in (sys.stdout, sys.stderr):
            try:
                if stream is not None:
                    stream.flush()
            except BrokenPipeError:
                _discard(stream)
            except OSError as error:
                _discard(stream)
                self._unwritable = error
        if self._unwritable is None:
            return 0
        reason = self._unwritable.strerror
        self._write(sys.stderr, f"error: the output cannot be written: {reason}; what the command did stands\n")
        return SiteError.exit_status

    def _shown(self, text: str) -> str:
        """``text`` with our own escape sequences, and nobody else's."""
        return visible(text).replace(visible(self._mark), "\x1b[")

    def _colored(self, stream: TextIO) -> bool:
        if self.color == "always":
            return True
        if self.color == "never" or os.environ.get("NO_COLOR"):
            return False
        return _is_terminal(stream) and os.environ.get("TERM") != "dumb"

    def _write_bytes(self, stream: TextIO | None, text: str) -> None:
        """Write what is no text for people: no line break and no byte is translated on the way."""
        buffer = getattr(stream, "buffer", None)
        if stream is None or buffer is None:
            self._write(stream, text)
            return
        try:
            stream.flush()
            buffer.write(text.encode("utf-8", "surrogateescape"))
        except BrokenPipeError:
            _discard(stream)
        except OSError as error:
            _discard(stream)
            self._unwritable = error

    def _write(self, stream: TextIO | None, text: str) -> None:
        if stream is None:  # started with that descriptor closed
            return
        try:
            stream.write(text)
        except BrokenPipeError:
            _discard(stream)
        except OSError as error:
            _discard(stream)
            self._unwritable = error
        except UnicodeEncodeError:
            encoding = stream.encoding or "ascii"
            stream.write(text.encode(encoding, "backslashreplace").decode(encoding))


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def _discard(stream: TextIO) -> None:
    """The reader went away (`patchkit log | head`): the command goes on and its exit status stays true, unheard."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
    except (OSError, ValueError):  # not a file: a stream of the caller's own
        pass


def _wrapped(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    import textwrap

    # A command in backticks stays in one piece, to be copied as it stands.
    pieces = line.split("`")
    pieces[1::2] = [piece.replace(" ", "\0") for piece in pieces[1::2]] if len(pieces) % 2 else pieces[1::2]
    found = textwrap.wrap("`".join(pieces), width, break_long_words=False, break_on_hyphens=False)
    return [part.replace("\0", " ") for part in found] or [""]


def visible(text: str) -> str:
    """``text`` safe for a terminal, with its line breaks and tabs; see :mod:`patchkit.visible`."""
    return safe(text, keep="\n\t")
