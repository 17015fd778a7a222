"""What a session says while it runs; nothing is imported, for the command that overrides it."""

from __future__ import annotations


class Voice:
    """To whom a session tells what it does: nobody, unless a method is overridden."""

    def notice(self, text: str) -> None:
        """Something that is not the result: a wait, a warning."""

    def begin(self, text: str) -> None:
        """A process begins."""

    def tick(self, text: str) -> None:
        """What it does at this moment; every second."""

    def done(self, text: str) -> None:
        """It has ended, and how."""
