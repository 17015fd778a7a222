"""What every engine's process is started with, and what is said of one that gave no result."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from patchkit.bench.loglines import lines_of, read_log
from patchkit.bench.observation import Failure, Observation
from patchkit.errors import UsageError
from patchkit.runtime.ledger import open_regular
from patchkit.runtime.overlay import VARIABLE
from patchkit.visible import visible

if TYPE_CHECKING:
    from patchkit.bench.engine import Job
    from patchkit.model.recipe import Arm, LogLine, Recipe
    from patchkit.site.environment import Site
    from patchkit.site.process import Completed

#: Names the file that tells a process what it is to do.
JOB_VARIABLE = "PATCHKIT_JOB"
SCHEMA = 1
"""Of that file."""
LINE = 300
"""Characters that are quoted of a line at most."""
_PATH = "PYTHONPATH"


def arms_of(recipe: Recipe) -> list[Arm]:
    """Every arm of every point."""
    return [arm for point in recipe.points for arm in (point.baseline, point.treatment)]


def root_of(recipe: Recipe) -> str:
    """The folder that the recipe's paths are relative to."""
    return os.path.dirname(os.path.abspath(recipe.path or ""))


def check_transplants(recipe: Recipe) -> None:
    """Refuse folders that are no copies of ``transplant``.

    Raises:
        UsageError: ``not-a-transplant``.
    """
    from patchkit.author.transplanted import read_manifest

    for arm in arms_of(recipe):
        for copy in arm.engine.transplants:
            read_manifest(below(root_of(recipe), copy))


def python_of(site: Site) -> str:
    """The site's interpreter.

    Raises:
        UsageError: ``no-interpreter``: the site is a bare folder.
    """
    if site.interpreter is None:
        raise UsageError(
            f"{site.label} is a folder without an interpreter, and an engine needs one to run in",
            code="no-interpreter",
            hint="name the environment with --python instead of --site",
            details={"path": site.home},
        )
    return site.interpreter.executable


def below(root: str, path: str) -> str:
    """A recipe's path: relative ones are relative to the recipe's folder."""
    return os.path.normpath(os.path.join(root, path))


def environment_of(job: Job, more: Mapping[str, str] = {}) -> dict[str, str]:
    """The environment of a job's process.

    What is set later wins, but for ``PYTHONPATH``, of which nothing is lost: first what carries patches in memory, then
    the arm's transplants, then the recipe's, then the user's own.

    Args:
        job: The job.
        more: What the engine itself sets.
    """
    engine = job.arm.engine
    env = {**job.env, **engine.env, **more}
    ours = _parts(job.env)
    bundle = [part for part in ours if part == job.env.get(VARIABLE)]
    copies = [os.path.join(below(job.root, copy), "_transplant", "startup") for copy in engine.transplants]
    path = list(dict.fromkeys([*bundle, *copies, *_parts(more), *_parts(engine.env), *ours]))
    if path:
        env[_PATH] = os.pathsep.join(path)
    return env


def _parts(env: Mapping[str, str]) -> list[str]:
    return [part for part in env.get(_PATH, "").split(os.pathsep) if part]


def write_job(path: str, job: Job, more: Mapping[str, Any]) -> None:
    """Write what a process is told: the arm's patches, workload and engine, the folder, and ``more``."""
    arm = job.arm
    told = {
        "schema": SCHEMA,
        "arm": arm.name,
        "patches": list(arm.patches),
        "workload": arm.workload._asdict(),
        "engine": arm.engine._asdict(),
        "root": job.root,
        "folder": job.folder,
        "python": job.site.interpreter.executable if job.site.interpreter is not None else None,
        "forbid": job.forbid,
        "profile": job.profile,
        **more,
    }
    with open(path, "w", encoding="utf-8") as file:
        json.dump(told, file, indent=1)


def failure_of(done: Completed, timeout: float, log: str) -> Failure | None:
    """How a process failed by its end; None where it ended well."""
    if done.status == 0:
        return None
    if done.status is None:
        kind, what = "timeout", f"did not end within {timeout:g} s and was ended"
    elif done.status < 0:
        kind, what = "signal", done.ended()
    else:
        kind, what = "status", done.ended()
    return Failure(kind, f"the process {what}; {said(done, log)}")


def said(done: Completed, log: str) -> str:
    """The last line that a process printed, with the place of the others."""
    line = visible(done.last_line())[:LINE]
    return f"its last line: {line} (all of them: {log})" if line else "it printed nothing"


def with_evidence(seen: Observation, evidence: Sequence[LogLine]) -> Observation:
    """An observation with the number of lines of its log that have each text of a recipe's evidence.

    Of an engine without a log nothing was found, and nothing is said.
    """
    if not evidence or seen.log is None:
        return seen
    try:
        with open_regular(seen.log) as file:
            found = read_log(lines_of(file), evidence).found_lines
    except OSError as error:
        return seen._replace(notes=(*seen.notes, f"the log cannot be read: {error.strerror}: {seen.log}"))
    return seen._replace(found_lines={**seen.found_lines, **found})
