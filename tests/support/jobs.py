"""Jobs for engines: an arm's settings as keywords, a folder of its own, the running interpreter as the site."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from patchkit.bench.engine import Job
from patchkit.model.recipe import Arm, ArmName, Engine, EngineKind, Gates, Point, Recipe, Workload
from patchkit.site.environment import Site, resolve


def arm(
    kind: EngineKind = "command", *, name: ArmName = "treatment", workload: Workload | None = None, **engine: Any
) -> Arm:
    """An arm with that engine's settings."""
    return Arm(name, (), workload or Workload(("a", "b"), batch_mult=2, max_tokens=3), Engine(kind, **engine))


def job(
    folder: Path,
    which: Arm,
    *,
    site: Site | None = None,
    env: dict[str, str] | None = None,
    forbid: bool = False,
    profile: bool = False,
) -> Job:
    """The job of that arm; ``folder`` is the recipe's, and has the job's in it."""
    own = folder / "job"
    own.mkdir(exist_ok=True)
    return Job(
        which,
        site or resolve(None, None, {}),
        str(folder),
        str(own),
        {**os.environ, **(env or {})},
        forbid,
        profile,
    )


def recipe(folder: Path, *arms: Arm) -> Recipe:
    """A recipe of one point; one arm is both."""
    baseline, treatment = (arms[0], arms[-1])
    return Recipe("sample", "A sample", (Point("", baseline, treatment),), Gates(()), path=str(folder / "sample.toml"))
