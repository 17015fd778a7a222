"""Printing: people's text or one JSON object, colour or none, and nothing half-way between.

Without ``--json`` results go to stdout, progress and errors to stderr. With it stdout holds exactly one object and
people's text goes to stderr.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, TextIO

from patchkit.errors import PatchkitError

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


class Output:
    """Where a command prints. ``command`` is set by the parser once it is known."""

    def __init__(self, *, json_mode: bool, color: str) -> None:
        self.json_mode = json_mode
        self.color = color
        self.command = ""
        self._status_shown = False

    @property
    def _people(self) -> TextIO:
        return sys.stderr if self.json_mode else sys.stdout

    def line(self, text: str = "") -> None:
        """Print a line of a result."""
        self._write(self._people, text + "\n")

    def note(self, text: str) -> None:
        """Print a line that is not the result: progress, a warning."""
        self.clear_status()
        self._write(sys.stderr, text + "\n")

    def status(self, text: str) -> None:
        """Show ``text`` in place on a terminal; off a terminal print it as a line of its own."""
        if sys.stderr.isatty():
            width = 79
            self._write(sys.stderr, "\r" + text[:width].ljust(width))
            self._status_shown = True
        else:
            self._write(sys.stderr, text + "\n")

    def clear_status(self) -> None:
        """Take away what ``status`` shows."""
        if self._status_shown:
            self._write(sys.stderr, "\r" + " " * 79 + "\r")
            self._status_shown = False

    def json(self, *, ok: bool, error: Mapping[str, Any] | None = None, **fields: Any) -> None:
        """Print the one object of ``--json``; without ``--json`` nothing."""
        if self.json_mode:
            import json

            document = {"schema": 1, "command": self.command, "ok": ok, "error": error, **fields}
            # ASCII only: a lone surrogate out of a file name or an undecodable source must not break the document.
            self._write(sys.stdout, json.dumps(document, ensure_ascii=True) + "\n")

    def fail(self, error: PatchkitError) -> int:
        """Print ``error`` in the form asked for and return its exit status."""
        self.clear_status()
        details = error.to_json()
        self.json(ok=False, error=details, **error.details.get("document", {}))
        first, _, rest = error.message.partition("\n")
        self._write(sys.stderr, f"{self.paint('error', 'red', sys.stderr)}: {visible(first)}\n")
        if rest:
            self._write(sys.stderr, visible(rest) + "\n")
        if error.hint:
            head, *more = error.hint.split("\n")
            self._write(sys.stderr, f"{self.paint('hint', 'cyan', sys.stderr)}: {visible(head)}\n")
            for text in more:
                self._write(sys.stderr, f"      {visible(text)}\n")
        return error.exit_status

    def interrupted(self) -> int:
        """Say that Ctrl-C stopped the command; a transaction has already been rolled back by its own handler."""
        self.clear_status()
        self.json(ok=False, error={"code": "interrupted", "message": "interrupted", "hint": None})
        self._write(sys.stderr, "interrupted: nothing was left half done\n")
        return 130

    def paint(self, text: str, style: str, stream: TextIO | None = None) -> str:
        """``text`` in a colour or weight, where the stream is a terminal and colour is wanted."""
        if not self._colored(stream or self._people):
            return text
        return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"

    def diff(self, text: str) -> None:
        """Print a unified diff, coloured by line."""
        for line in text.splitlines():
            style = (
                "bold"
                if line.startswith(("--- ", "+++ "))
                else "green"
                if line.startswith("+")
                else "red"
                if line.startswith("-")
                else "cyan"
                if line.startswith("@@")
                else None
            )
            shown = visible(line)
            self.line(self.paint(shown, style) if style else shown)

    def flush(self) -> None:
        """Flush, so that a closed pipe is noticed inside the error boundary."""
        self.clear_status()
        sys.stdout.flush()

    def _colored(self, stream: TextIO) -> bool:
        if self.color == "always":
            return True
        if self.color == "never" or os.environ.get("NO_COLOR"):
            return False
        return stream.isatty() and os.environ.get("TERM") != "dumb"

    @staticmethod
    def _write(stream: TextIO, text: str) -> None:
        try:
            stream.write(text)
        except UnicodeEncodeError:
            encoding = stream.encoding or "ascii"
            stream.write(text.encode(encoding, "backslashreplace").decode(encoding))


def visible(text: str) -> str:
    """``text`` safe for a terminal: control characters and bidirectional overrides are shown, not obeyed."""
    if text.isprintable():
        return text
    return "".join(c if c in "\n\t" or (c.isprintable() and not _steers(c)) else _shown(c) for c in text)


def _steers(char: str) -> bool:
    return char in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"


def _shown(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
