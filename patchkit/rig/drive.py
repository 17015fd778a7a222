"""The driver's process, from outside: what it is told, what it wrote, how far it is.

The specification has ``engine`` (keyword arguments of ``vllm.LLM``), ``prompts`` (texts, or lists of token ids),
``reset`` (the prefix cache, before each phase) and ``phases``, each with ``name``, ``label`` (for people), ``requests``
(that many of the first prompts), ``sampling`` (keyword arguments of ``SamplingParams``), and where wanted ``regex`` (a
grammar), ``profile`` (traced), and ``mode`` and ``repeat``, which the result repeats. ``times``, where it is there,
says what the times are, and is in the result.

The result has ``python``, ``versions``, ``engine`` (``seconds`` and ``compilations`` of building it; null before),
``counted`` (whether anybody counted compilations), ``error`` (``type``, ``message``, ``forbidden``) and ``phases``,
each with ``name``, ``seconds``, ``compilations`` by function and ``profiler``; one that came to its end also with
``requests``, ``failed``, ``tokens``, hashes, ``counters`` and ``first_token_seconds``.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from typing import Any

from patchkit.rig.state import write_file
from patchkit.runtime.driver import BUILDING
from patchkit.runtime.ledger import read_regular
from patchkit.site.process import Completed, run_logged
from patchkit.tuples import NamedTuple
from patchkit.visible import visible

DRIVER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "runtime", "driver.py")


class Paths(NamedTuple):
    """The files of one run."""

    spec: str
    result: str
    log: str

    @property
    def progress(self) -> str:
        """Where the driver says what it does."""
        return f"{self.result}.phase"

    @property
    def compiled(self) -> str:
        """The folder where each process of the engine says what it compiles, in a line each."""
        return f"{self.result}.compiled"


def drive(
    python: str,
    spec: Mapping[str, Any],
    paths: Paths,
    *,
    timeout: float,
    cwd: str,
    environ: Mapping[str, str],
    tick: Callable[[], None],
) -> tuple[Completed, Mapping[str, Any] | None]:
    """Run the driver to its end: how it ended, and its result, whole up to the phase that it came to.

    Raises:
        OSError: The interpreter cannot be started.
    """
    write_file(paths.spec, json.dumps(spec, indent=1).encode("ascii"))
    shutil.rmtree(paths.compiled, ignore_errors=True)
    for path in (paths.result, paths.progress):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
    done = run_logged(
        [python, DRIVER, paths.spec, paths.result],
        log=paths.log,
        timeout=timeout,
        cwd=cwd,
        environ=environ,
        tick=tick,
    )
    try:
        return done, json.loads(read_regular(paths.result))
    except (OSError, ValueError):
        return done, None


def under_way(paths: Paths) -> str:
    """What the driver is doing, in one line; while it builds the engine, which takes minutes, with how far it is."""
    label = progress_of(paths.progress)
    if label != BUILDING:
        return label
    programs = 0
    with contextlib.suppress(OSError):
        for name in os.listdir(paths.compiled):
            programs += read_regular(os.path.join(paths.compiled, name)).count(b"\n")
    return f"{label}, {programs} programs compiled" if programs else label


def progress_of(path: str) -> str:
    """What a process last wrote of its progress, in one line; "running" where that is nothing."""
    try:
        line = read_regular(path, 200).decode("utf-8", "replace").strip().partition("\n")[0]
    except OSError:
        line = ""
    return visible(line) or "running"
