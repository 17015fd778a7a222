"""The command line in a process that kills itself, as with ``kill -9``, at a place that is named.

``WORD:N`` is before the N-th call of a function, ``fs:N`` before the N-th step of the file system within the site.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from typing import Any

PLACES = {
    "apply": ("patchkit.ops.apply", "apply_site"),
    "revert": ("patchkit.ops.revert", "revert_site"),
    "save": ("patchkit.bench.store", "save_run"),
    "report": ("patchkit.bench.store", "save_report"),
    "unmark": ("patchkit.ops.experiment", "remove_mark"),
}


_HOOKS: list[object] = []


def die(*arguments: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def at(place: str) -> None:
    word, _, text = place.partition(":")
    left = int(text)
    if word == "fs":
        from patchkit.state import fs

        def step(operation: str, path: str, when: str) -> None:
            nonlocal left
            left -= when == "before"
            if left == 0:
                die()

        hook = fs.observed(step)
        hook.__enter__()
        _HOOKS.append(hook)  # else it would end with this function
        return
    home, name = PLACES[word]
    module = importlib.import_module(home)
    real = getattr(module, name)

    def called(*arguments: Any, **options: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0:
            die()
        return real(*arguments, **options)

    setattr(module, name, called)


if __name__ == "__main__":
    if sys.argv[1] != "-":
        at(sys.argv[1])
    from patchkit.cli.main import main

    sys.exit(main(sys.argv[2:]))
