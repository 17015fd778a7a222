"""What an engine is to a session: something that is checked once, and then observed one process at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from patchkit.bench.observation import Observation
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.model.recipe import Arm, Recipe
    from patchkit.site.environment import Site


class Job(NamedTuple):
    """One process that is to be observed.

    The patches of ``arm`` are live already: on disk, or through ``env`` (``PYTHONPATH`` of a bundle). ``env`` is the
    whole environment of the process but for what the engine itself must set; ``PATCHKIT_PROBES`` in it names the folder
    of the probes. ``folder`` exists, is this job's own, and takes the specification, the result and ``log.txt``.
    ``root`` is the recipe's folder. ``forbid``: an untimed run in which compilation after warm-up raises and
    compilations are logged. ``profile``: an untimed run that writes a trace below ``folder``.
    """

    arm: Arm
    site: Site
    root: str
    folder: str
    env: Mapping[str, str]
    forbid: bool = False
    profile: bool = False


class Engine(Protocol):
    """One kind of engine."""

    def check(self, recipe: Recipe, site: Site) -> Sequence[str]:
        """Refuse what cannot be measured, before anything is started or written; returns notes for people.

        Raises:
            PatchkitError: The recipe asks for what this engine cannot do (``UsageError``), or it is not there.
        """
        ...

    def observe(self, job: Job, tick: Callable[[str], None]) -> Observation:
        """Run one process to its end and say what it did; ``tick`` is told every second what is under way.

        A process that fails is an observation with a ``failure``; so is a result that cannot be read. No process of it
        is left when this returns or raises. Probes, and evidence out of ``log`` (``launching.with_evidence``), are
        added by the caller.
        """
        ...

    def can_forbid(self) -> bool:
        """Whether a job with ``forbid`` means anything to this engine (else there is no preflight)."""
        ...
