"""What the words of a command line tell an interpreter; a part of the overlay that is read where one may be a script.

The same rules hold as for :mod:`patchkit.runtime.overlay`: the standard library, Python 3.8 and later.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def isolated(words: Sequence[str]) -> tuple[str, str | None]:
    """Of an interpreter's arguments (without its own name): its one-letter options, and the script that it runs."""
    letters = ""
    rest = iter(words)
    for word in rest:
        if word in ("-", "--") or not word.startswith("-"):
            return letters, next(rest, None) if word == "--" else word
        if word.startswith("--"):
            if word == "--check-hash-based-pycs":
                next(rest, None)
            continue
        for at, letter in enumerate(word[1:], 1):
            if letter in "cm":
                return letters, None
            if letter in "WX":
                if at == len(word) - 1:
                    next(rest, None)
                break
            letters += letter
    return letters, None


def command_line() -> list[str]:
    """The words that this interpreter was started with, before Python 3.10: only Linux tells them."""
    try:
        with open("/proc/self/cmdline", "rb") as file:
            return [os.fsdecode(word) for word in file.read().split(b"\0")[:-1]]
    except OSError:
        return []
