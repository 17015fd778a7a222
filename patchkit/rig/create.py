"""Creating a rig: one step after the other, each written down when it is done, so that a killed creation goes on."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence

from patchkit.errors import PatchkitError, SiteError, UsageError
from patchkit.ops.apply import apply_site
from patchkit.rig.modes import MODES
from patchkit.rig.recipe import ADAPTATIONS, RECIPES, Recipe
from patchkit.rig.run import Work, adaptations, run_rig, site_of_rig
from patchkit.rig.state import STEPS, Rig, read_rig, rig_lock, write_file, write_rig
from patchkit.rig.tiny import model_files
from patchkit.runtime.ledger import read_regular
from patchkit.site.interpreter import Interpreter, ask
from patchkit.site.process import run
from patchkit.site.wheel import pip_failed
from patchkit.tuples import NamedTuple

#: Seconds for one step of installing.
PATIENCE = 3600.0
#: What pip is always told.
_PIP = ("--quiet", "--disable-pip-version-check", "--no-input", "--progress-bar", "off")


class Step(NamedTuple):
    """One step: what it does in words, the digest of that and of all before it, and whether it is done."""

    name: str
    what: str
    digest: str
    done: bool


class RigPlan(NamedTuple):
    """What a creation would do. ``free`` is in megabytes, where the rig goes."""

    rig: Rig
    recipe: Recipe
    base: Interpreter
    steps: tuple[Step, ...]
    free: int


def plan_rig(folder: str, *, version: str, python: str | None = None) -> RigPlan:
    """What is to be done for a rig in ``folder``; nothing is written.

    Args:
        folder: Where it goes: a new or empty folder, or one where a creation stopped.
        version: The release of vllm-tpu and tpu-inference.
        python: The interpreter that the environment is made with; by default one of the release's version is looked
            for on the ``PATH``.

    Raises:
        UsageError: ``rig-version``: there is no recipe, or the folder holds a rig of another release; ``no-rig``: the
            folder holds something else; ``no-interpreter``: there is none of the version that the recipe needs.
        SiteError: ``rig-space``: the disk is too full.
    """
    recipe = RECIPES.get(version)
    if recipe is None:
        raise UsageError(
            f"there is no recipe for {version}: a rig is made of {', '.join(RECIPES)}",
            code="rig-version",
            hint="name one of these with --version",
        )
    folder = os.path.realpath(folder)
    rig = read_rig(folder) or Rig(folder, version, {})
    if rig.version != version:
        raise UsageError(
            f"{folder} holds a rig of {rig.version}",
            code="rig-version",
            hint=f"name another folder, or say --version {rig.version}",
            details={"path": folder},
        )
    base = _base(recipe, python)
    steps = _steps(rig, recipe, base, named=python is not None)
    above = folder
    while not os.path.exists(above):
        above = os.path.dirname(above)
    free = shutil.disk_usage(above).free // 1_000_000
    if not steps[STEPS.index("engine")].done and free < recipe.megabytes:
        raise SiteError(
            f"a rig of {version} takes about {recipe.megabytes} MB, and {free} MB are free at {above}",
            code="rig-space",
            hint="name a folder on another disk",
            details={"path": folder},
        )
    return RigPlan(rig, recipe, base, steps, free)


def _base(recipe: Recipe, python: str | None) -> Interpreter:
    wanted = ".".join(map(str, recipe.python))
    candidates: list[str | None] = [python] if python is not None else [sys.executable, shutil.which(f"python{wanted}")]
    for candidate in candidates:
        if not candidate:
            continue
        try:
            found = ask(shutil.which(candidate) or candidate)
        except PatchkitError:
            if python is not None:
                raise
            continue
        if found.version[:2] == recipe.python:
            return found
    what = f"{python} is no Python {wanted}" if python is not None else f"no Python {wanted} is on the PATH"
    raise UsageError(
        f"a rig of {recipe.version} needs Python {wanted}, and {what}",
        code="no-interpreter",
        hint="name one: patchkit --python EXE rig create DIR",
    )


def _steps(rig: Rig, recipe: Recipe, base: Interpreter, *, named: bool) -> tuple[Step, ...]:
    """The steps. An environment that is there is not made again because patchkit itself has moved, unless a person
    ``named`` another interpreter for it.
    """
    texts = {
        "environment": (f"a virtual environment of {base.executable}", base.executable),
        "torch": (f"{recipe.torch} with what it needs", recipe.torch),
        "libraries": (f"{len(recipe.libraries)} libraries with what they need", " ".join(recipe.libraries)),
        "stack": (f"{', '.join(recipe.bare)}, without what they need", " ".join(recipe.bare)),
        "engine": (f"the wheel of vllm-tpu {recipe.version}, without what it needs", recipe.version),
        "patches": (f"apply {', '.join(ADAPTATIONS)}", _digest(*(_patch_bytes()))),
        "model": ("a tiny Gemma with random weights", _digest(*model_files().values())),
        "trial": ("the engine generates", "1"),
    }
    before, steps = "", []
    for name in STEPS:
        what, facts = texts[name]
        before = _digest(before.encode("ascii"), name.encode("ascii"), facts.encode("utf-8", "surrogateescape"))
        if name == "environment" and not named and os.path.exists(rig.python):
            before = rig.done.get(name, before)
        steps.append(Step(name, what, before, rig.done.get(name) == before))
    return tuple(steps)


def _patch_bytes() -> list[bytes]:
    return [read_regular(patch.path) for patch in adaptations() if patch.path is not None]


def _digest(*parts: bytes) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(b"%d:" % len(part) + part)
    return digest.hexdigest()[:16]


def create_rig(
    plan: RigPlan,
    *,
    done: Callable[[Step, float | None], None],
    notice: Callable[[str], None],
    tick: Callable[[str], None],
) -> Rig:
    """Do what the plan says; what is done already is left alone.

    Args:
        plan: The plan.
        done: Told each step with the seconds that it took; None: it was done already.
        notice: Told of a command that is waited for.
        tick: Told every second what is under way.

    Raises:
        SiteError: ``install`` or ``fetch``: the environment, or what pip installs; ``rig-engine``; ``locked``: another
            command works on the rig.
        PatchkitError: As ``apply``, where the rig's own patches do not fit.
    """
    rig = plan.rig
    os.makedirs(rig.folder, exist_ok=True)
    if read_rig(rig.folder) is None:
        write_rig(rig)
    with rig_lock(rig, notice):
        return _create(plan, done, notice, tick)


def _create(
    plan: RigPlan,
    done: Callable[[Step, float | None], None],
    notice: Callable[[str], None],
    tick: Callable[[str], None],
) -> Rig:
    rig = read_rig(plan.rig.folder) or plan.rig  # another creation may have ended since it was planned
    kept = True
    for number, step in enumerate(plan.steps, 1):
        kept = kept and rig.done.get(step.name) == step.digest
        if kept:
            done(step, None)
            continue
        begun = time.monotonic()
        _Doing(plan, rig, notice, _told(tick, f"step {number} of {len(plan.steps)}", step.name)).do(step.name)
        after = {name: digest for name, digest in rig.done.items() if STEPS.index(name) < number - 1}
        rig = rig._replace(done={**after, step.name: step.digest})
        write_rig(rig)
        done(step, time.monotonic() - begun)
    return rig


def _told(tick: Callable[[str], None], place: str, name: str) -> Callable[[str], None]:
    begun = time.monotonic()

    def told(what: str) -> None:
        tick(f"{place}, {name}: {what or f'{time.monotonic() - begun:.0f} s'}")

    return told


class _Doing:
    """The steps' effects."""

    def __init__(self, plan: RigPlan, rig: Rig, notice: Callable[[str], None], tick: Callable[[str], None]) -> None:
        self._plan = plan
        self._rig = rig
        self._notice = notice
        self._tick = tick

    def do(self, name: str) -> None:
        getattr(self, f"_{name}")()

    def _environment(self) -> None:
        self._run([self._plan.base.executable, "-m", "venv", "--clear", self._rig.environment], "the environment")

    def _torch(self) -> None:
        self._pip("install", "--only-binary", ":all:", self._plan.recipe.torch)

    def _libraries(self) -> None:
        recipe = self._plan.recipe
        # Torch again, so that nothing of these takes another one.
        self._pip("install", "--only-binary", ":all:", recipe.torch, *recipe.libraries)

    def _stack(self) -> None:
        self._pip("install", "--only-binary", ":all:", "--no-deps", *self._plan.recipe.bare)

    def _engine(self) -> None:
        """Its wheel is one for CPython 3.12; its one compiled file keeps to the stable interface."""
        version = self._plan.recipe.version
        wheels = os.path.join(self._rig.folder, "wheels")
        shutil.rmtree(wheels, ignore_errors=True)
        self._pip(
            *("download", "--no-deps", "--only-binary", ":all:", "--python-version", "3.12", "--dest", wheels),
            f"vllm-tpu=={version}",
        )
        (wheel,) = (name for name in os.listdir(wheels) if name.endswith(".whl"))
        renamed = os.path.join(wheels, f"vllm_tpu-{version}-py3-none-any.whl")
        os.replace(os.path.join(wheels, wheel), renamed)
        self._pip("install", "--no-deps", "--no-index", "--force-reinstall", renamed)
        shutil.rmtree(wheels, ignore_errors=True)

    def _patches(self) -> None:
        apply_site(site_of_rig(self._rig), adaptations(), notice=self._notice)

    def _model(self) -> None:
        for name, data in model_files().items():
            write_file(os.path.join(self._rig.model, name), data)

    def _trial(self) -> None:
        work = Work((MODES["greedy"],), requests=2, max_tokens=2)
        ran = run_rig(self._rig, (), work, name="trial", notice=self._notice, tick=self._tick)
        error = ran.result["error"]
        if error is not None:
            raise SiteError(
                f"the engine failed: {error['type']}: {error['message']}",
                code="rig-engine",
                hint=f"its whole output is in {ran.log}",
                details={"path": ran.log},
            )

    def _pip(self, verb: str, *arguments: str) -> None:
        command = [self._rig.python, "-P", "-m", "pip", verb, *_PIP, *arguments]
        done = run(command, timeout=PATIENCE, cwd=self._rig.folder, tick=lambda: self._tick(""))
        if done.status != 0:
            raise pip_failed("the rig", f"pip {verb} failed", done)

    def _run(self, command: Sequence[str], what: str) -> None:
        done = run(command, timeout=PATIENCE, tick=lambda: self._tick(""))
        if done.status != 0:
            raise SiteError(
                f"{what}: {command[0]} {done.ended()}; it said: {done.last_line() or 'nothing'}",
                code="install",
                hint="the interpreter needs its venv and ensurepip modules",
                details={"command": list(command)},
            )
