"""How far a long command is: nothing for two seconds, then a count and the time that is left."""

from __future__ import annotations

import time

from patchkit.cli.output import Output

QUIET = 2.0
"""Seconds before anything is said."""
PAUSE = 5.0
"""Seconds between two lines off a terminal."""


class Ticker:
    """Shows progress on ``output``; called with how many are done, how many there are, and what is at hand."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self._begun = self._said = time.monotonic()

    def __call__(self, done: int, total: int, what: str) -> None:
        """Say so, where it is time to."""
        now = time.monotonic()
        pause = 0.2 if self.output.live else PAUSE
        if now - self._begun < QUIET or (self._said > self._begun and now - self._said < pause):
            return
        self._said = now
        if total == 0:
            self.output.status(what)
            return
        left = ""
        if done:
            left = f", about {max(1, round((now - self._begun) / done * (total - done)))} s left"
        self.output.status(f"{done} of {total} done{left}; now {what}")
