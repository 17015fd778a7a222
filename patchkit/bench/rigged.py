"""The engine ``tpu-cpu-rig``: the real TPU engine on a CPU, with a tiny model. Its times say nothing of a TPU."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from patchkit.bench.launching import arms_of, below, check_transplants, environment_of, python_of, root_of
from patchkit.bench.offline import notes_of, observe_driver, settings_of, trace_folder, variables_of
from patchkit.errors import SiteError, UsageError
from patchkit.ops.check import check_site
from patchkit.rig.recipe import ADAPTATIONS
from patchkit.rig.run import LABEL, SEQUENCES, engine_settings, site_of_rig, variables
from patchkit.rig.state import Rig, open_rig

if TYPE_CHECKING:
    from patchkit.bench.engine import Job
    from patchkit.bench.observation import Observation
    from patchkit.model.recipe import Recipe
    from patchkit.site.environment import Site

#: Names a rig's folder.
VARIABLE = "PATCHKIT_RIG"


class TpuCpuRig:
    """The engine of the rig whose environment is the site."""

    def check(self, recipe: Recipe, site: Site) -> Sequence[str]:
        """Refuse a site that is no rig's, or whose own patches are not on disk.

        Raises:
            UsageError: ``no-rig``; ``other-rig``: the recipe names another one; ``not-a-transplant``.
            SiteError: ``rig-patches``.
        """
        rig = rig_of(site)
        check_transplants(recipe)
        for folder in folders_of(recipe):
            if os.path.realpath(folder) != os.path.realpath(rig.folder):
                raise UsageError(
                    f"the recipe is for the rig {folder}, and the site is that of {rig.folder}",
                    code="other-rig",
                    hint=f"patchkit --python {open_rig(folder).python} rebench ...; or take `rig` out of the recipe",
                    details={"path": rig.folder, "expected": folder},
                )
        states = {state.name: state for state in check_site(site).states}
        for name in ADAPTATIONS:
            state = states.get(name)
            if state is None or not state.clean:
                found = "is not applied" if state is None else f"is {state.state}: {state.reason}"
                raise SiteError(
                    f"{rig.folder}: its patch {name}, without which the engine does not run on a CPU, {found}",
                    code="rig-patches",
                    hint=f"patchkit rig create {rig.folder} --version {rig.version}",
                    details={"path": rig.folder, "patch": name},
                )
        return notes_of(recipe)

    def can_forbid(self) -> bool:
        """Yes: it is the release's own check."""
        return True

    def observe(self, job: Job, tick: Callable[[str], None]) -> Observation:
        """As ``vllm``, with the rig's model and settings, which the recipe's settings come before."""
        rig = rig_of(job.site)
        own = settings_of(job.arm.engine, job.root, job.arm.workload, trace_folder(job))
        env = environment_of(job._replace(env=cpu_environment(rig, job.env)), variables_of(job))
        settings = {**engine_settings(rig, job.arm.engine.max_num_seqs or SEQUENCES), **own}
        return observe_driver(job, settings, env, tick)._replace(label=LABEL)


def cpu_environment(rig: Rig, environ: Mapping[str, str]) -> dict[str, str]:
    """The rig's variables over an environment, of which what would lead the engine elsewhere is left out."""
    env = variables(rig, environ, forbid=False)
    if environ.get("PYTHONPATH"):
        env["PYTHONPATH"] = environ["PYTHONPATH"]
    return env


def rig_of(site: Site) -> Rig:
    """The finished rig that a site is the environment of.

    Raises:
        UsageError: ``no-rig``: it is no rig's; ``no-interpreter``.
        SiteError: ``rig-state``.
    """
    python_of(site)
    assert site.interpreter is not None
    prefix = site.interpreter.prefix
    rig = open_rig(os.path.dirname(prefix))
    if os.path.realpath(rig.environment) != os.path.realpath(prefix):
        raise UsageError(
            f"{prefix} is not the environment of the rig {rig.folder}",
            code="no-rig",
            hint=f"patchkit --python {rig.python} rebench ...",
            details={"path": prefix},
        )
    return rig


def folders_of(recipe: Recipe) -> list[str]:
    """The folders that a recipe's arms name as their rig."""
    named = [arm.engine.rig for arm in arms_of(recipe) if arm.engine.kind == "tpu-cpu-rig"]
    return list(dict.fromkeys(below(root_of(recipe), one) for one in named if one is not None))


def site_for(recipe: Recipe, environ: Mapping[str, str]) -> Site | None:
    """The site that a recipe itself means, where nobody named another: the environment of its rig.

    Args:
        recipe: The recipe.
        environ: Of whose variables ``PATCHKIT_RIG`` names a rig where the recipe names none.

    Returns:
        None where no arm is a rig's.

    Raises:
        UsageError: ``no-rig``: none is named, or there is none in that folder; ``other-rig``: two are named.
        SiteError: ``rig-state``.
    """
    if not any(arm.engine.kind == "tpu-cpu-rig" for arm in arms_of(recipe)):
        return None
    folders = folders_of(recipe) or [folder for folder in [environ.get(VARIABLE)] if folder]
    if not folders:
        raise UsageError(
            f"the recipe {recipe.name} needs a rig, and none is named",
            code="no-rig",
            hint=f"patchkit rig create DIR; then {VARIABLE}=DIR, or patchkit --python DIR/env/bin/python rebench ...",
        )
    if len(folders) > 1:
        raise UsageError(
            f"the recipe {recipe.name} names two rigs, and all arms run in one site: {', '.join(folders)}",
            code="other-rig",
            hint="one rig for all arms; two releases are two sessions, which `patchkit report` compares",
        )
    return site_of_rig(open_rig(folders[0]))
