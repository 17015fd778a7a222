"""What an experiment will do, checked before anything is started: arms, patches, order, and what it takes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from patchkit.bench.describe import processes
from patchkit.bench.engines import engine_of
from patchkit.bench.launching import root_of
from patchkit.bench.report import Kind, PatchUsed
from patchkit.errors import GuardError, SiteError, UsageError
from patchkit.model.recipe_keys import PAIRS
from patchkit.ops.experiment import Held, busy, gate, held, is_own, read_mark
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.bench.engine import Engine
    from patchkit.model.patch import Patch
    from patchkit.model.recipe import Arm, ArmName, Point, Recipe
    from patchkit.ops.forecast_arm import Found
    from patchkit.site.environment import Site

LEAST_BYTES = 64 << 20
"""Free space below the runs' folder that an experiment is begun with at least: logs, results, probes."""


class Options(NamedTuple):
    """How an experiment is run, beside its recipe.

    ``load`` finds a patch by its name. ``runs`` is the folder that keeps sessions. ``preflight`` off: the recipe's is
    left out. ``keep``: patches stay where the verdict is ``inconclusive``.
    """

    load: Callable[[str], Patch]
    runs: str
    in_memory: bool = False
    preflight: bool = True
    keep: bool = False
    allow_known_bad: bool = False


class Step(NamedTuple):
    """One process that is to be observed; ``pair`` counts from 1."""

    point: Point
    arm: ArmName
    kind: Kind
    pair: int | None = None


class Plan(NamedTuple):
    """An experiment that may begin.

    ``home`` is the directory whose ledger it works in, ``before`` what that holds; ``others`` are those of it that the
    recipe does not name. ``patches`` are those that it names. ``used`` tells where each of them goes.
    """

    recipe: Recipe
    site: Site
    options: Options
    engine: Engine
    root: str
    home: str
    before: tuple[Held, ...]
    others: tuple[Patch, ...]
    patches: Mapping[str, Patch]
    used: tuple[PatchUsed, ...]
    versions: Mapping[str, str]
    notes: tuple[str, ...]

    @property
    def swaps(self) -> bool:
        """Whether patches go in and out on disk."""
        return bool(self.patches) and not self.options.in_memory

    def of(self, arm: Arm) -> tuple[Patch, ...]:
        """All patches that are live in an arm: what the site has and the recipe does not name, and the arm's own."""
        return (*self.others, *(self.patches[name] for name in arm.patches))

    @property
    def winners(self) -> tuple[Patch, ...]:
        """What the site has when the patches have earned their place."""
        earned = dict.fromkeys(name for point in self.recipe.points for name in point.treatment.patches)
        return (*self.others, *(self.patches[name] for name in earned))

    @property
    def known_bad(self) -> tuple[str, ...]:
        """Patches on trial that are tagged so: measured, since an experiment is their place, and never left applied."""
        if self.options.allow_known_bad:
            return ()
        return tuple(name for name in self.recipe.patches if "known-bad" in self.patches[name].tags)

    @property
    def losers(self) -> tuple[Held, ...]:
        """What the site has when they have not: as before, without those on trial."""
        trial = set(self.recipe.patches)
        return tuple(one for one in self.before if one.name not in trial)


def with_pairs(recipe: Recipe, least: int | None, most: int | None) -> Recipe:
    """The recipe with other numbers of pairs.

    Raises:
        UsageError: They are too few, too many, or the wrong way round.
    """
    protocol = recipe.protocol
    low = protocol.pairs_min if least is None else least
    high = max(protocol.pairs_max, low) if most is None else most
    if least is None and most is not None:
        low = min(low, most)
    if not PAIRS[0] <= low <= high <= PAIRS[1]:
        raise UsageError(
            f"--pairs-min {low} and --pairs-max {high}: from {PAIRS[0]} to {PAIRS[1]}, the first not above the second",
            hint="patchkit rebench RECIPE --pairs-min 3 --pairs-max 10",
        )
    return recipe._replace(protocol=protocol._replace(pairs_min=low, pairs_max=high))


def make_plan(recipe: Recipe, site: Site, options: Options, *, notice: Callable[[str], None]) -> Plan:
    """Check everything that can be, before anything is started or written.

    Raises:
        GuardError: A guard refuses a patch; ``upstreamed``: the release has the change already.
        PlanError: A patch does not fit.
        SiteError: The site conflicts, or ``experiment-running``, or ``disk-full``.
        UsageError: The engine cannot do what the recipe asks for.
    """
    from patchkit.ops.homes import common_home
    from patchkit.ops.launch import refuse_nested
    from patchkit.site.environment import ledger_homes

    refuse_nested(os.environ)
    names = dict.fromkeys(
        name for point in recipe.points for arm in (point.baseline, point.treatment) for name in arm.patches
    )
    patches = {name: options.load(name) for name in names}
    home = common_home(site, list(patches.values())) or site.home
    site = site.at(home)
    engine = engine_of(recipe.points[0].treatment.engine.kind)
    notes = list(engine.check(recipe, site))
    for one in ledger_homes(site):
        mark = read_mark(one)
        if mark is not None and not is_own(mark):
            if options.in_memory:
                raise busy(one, mark)
            gate(site, one, notice)
    refuse_drift(site)
    before = held(home)
    others = tuple(_parsed(one) for one in before if one.name not in patches)
    used, more = _forecast(recipe, site, patches, others, options, notice)
    _refuse_full(options.runs)
    return Plan(
        recipe,
        site,
        options,
        engine,
        root_of(recipe),
        home,
        before,
        others,
        patches,
        used,
        versions_of(site, patches.values()),
        (*notes, *more),
    )


def _parsed(one: Held) -> Patch:
    from patchkit.model.load import parse_patch

    return parse_patch(one.text.encode("utf-8"), one.source or f"{one.name}.toml")


def _forecast(
    recipe: Recipe,
    site: Site,
    patches: Mapping[str, Patch],
    others: Sequence[Patch],
    options: Options,
    notice: Callable[[str], None],
) -> tuple[tuple[PatchUsed, ...], list[str]]:
    """Plan every arm, as it will be."""
    from patchkit.ops.forecast_arm import forecast_arm
    from patchkit.ops.inmemory import plan_in_memory

    used: dict[str, PatchUsed] = {}
    notes: dict[str, None] = {}
    arms = dict.fromkeys(arm.patches for point in recipe.points for arm in (point.baseline, point.treatment))
    for names in arms:
        wanted = [patches[name] for name in names]
        if options.in_memory:
            view = plan_in_memory(site, [*others, *wanted], allow_known_bad=True, notice=notice)
            found: list[Found] = [
                (one.name, one.action, one.distribution, one.version, one.reason) for one in view.patches
            ]
            notes.update(dict.fromkeys(view.notes))
        else:
            found = forecast_arm(site, wanted, set(patches), notice=notice)
        for name, action, distribution, version, reason in found:
            if name not in patches:
                continue
            if action in ("upstreamed", "skipped"):
                raise GuardError(
                    f"{name}: there is nothing to measure: {reason}",
                    code="nothing-on-trial",
                    hint=f"`patchkit check {name}` tells more",
                    details={"patch": name},
                )
            used[name] = PatchUsed(name, patches[name].digest, distribution, version)
    return tuple(used.values()), list(notes)


def refuse_drift(site: Site) -> None:
    """Refuse a site with anything but what its ledgers say.

    Raises:
        SiteError: ``drifted``, or a damaged ledger.
    """
    from patchkit.ops.check import check_site

    report = check_site(site)
    if report.damage:
        raise report.damage[0]
    drifted = [state for state in report.states if not state.clean]
    if drifted:
        lines = [f"  {state.name}: {state.state}: {state.reason}" for state in drifted]
        raise SiteError(
            "\n".join([f"{site.home}: the site is not what its ledger says:", *lines]),
            code="drifted",
            hint="`patchkit check` shows it, `patchkit sync` or `patchkit revert` mends it; then measure",
            details={"patches": [state.name for state in drifted]},
        )


def versions_of(site: Site, patches: Iterable[Patch]) -> dict[str, str]:
    """The versions of the distributions that patches go into, and of the interpreter."""
    found: dict[str, str] = {}
    for patch in patches:
        distribution = site.find(patch.target.name)
        if distribution is not None:
            found[distribution.normalized] = distribution.version
    if site.interpreter is not None:
        found["python"] = ".".join(map(str, site.interpreter.version))
    return found


def _refuse_full(runs: str) -> None:
    folder = os.path.abspath(runs)
    while not os.path.isdir(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    free = shutil.disk_usage(folder).free
    if free < LEAST_BYTES:
        raise SiteError(
            f"{folder}: {free >> 20} MB are free, and an experiment takes {LEAST_BYTES >> 20} MB at least",
            code="disk-full",
            hint="make room, or name another folder for the runs with --runs DIR or $PATCHKIT_RUNS",
            details={"path": folder},
        )


def steps_of(plan: Plan, point: Point) -> Iterator[Step]:
    """The processes of one point, in order, as many as there may be: pairs in the order ABBA."""
    protocol = plan.recipe.protocol
    if has_preflight(plan):
        yield Step(point, "treatment", "preflight")
    for _ in range(protocol.discarded):
        yield Step(point, "baseline", "discarded")
        yield Step(point, "treatment", "discarded")
    for pair in range(1, protocol.pairs_max + 1):
        first: tuple[Literal["baseline", "treatment"], ...] = ("baseline", "treatment")
        for arm in first if pair % 2 else reversed(first):
            yield Step(point, arm, "measured", pair)


def has_preflight(plan: Plan) -> bool:
    """Whether there is one: the recipe wants it, the engine can forbid compilation, and nobody left it out."""
    return plan.recipe.protocol.preflight and plan.options.preflight and plan.engine.can_forbid()


def count_of(plan: Plan) -> tuple[int, int]:
    """How many processes it takes, at least and at most, but for the baseline after a revert."""
    each = processes(plan.recipe.protocol)
    fixed = int(has_preflight(plan)) + each.discarded
    return len(plan.recipe.points) * (fixed + each.least), len(plan.recipe.points) * (fixed + each.most)


def plan_lines(plan: Plan, seconds: float | None) -> list[str]:
    """The plan for people; ``seconds`` is what one process took in earlier runs of the recipe."""
    recipe, protocol = plan.recipe, plan.recipe.protocol
    least, most = count_of(plan)
    points = f", {len(recipe.points)} points one after another" if len(recipe.points) > 1 else ""
    lines = [f"{recipe.name}: {recipe.summary}"]
    where = f"{plan.home}" + (", which stays as it is: patches are in memory" if plan.options.in_memory else "")
    lines.append(f"  site: {where}")
    lines += [
        f"  {'on trial' if one.name in recipe.patches else 'of the baseline'}: {one.name} in {one.distribution} "
        f"{one.version}"
        for one in plan.used
    ]
    if not recipe.patches:
        lines.append("  on trial: no patch; settings are compared")
    if plan.others:
        lines.append(f"  in both arms as they are: {', '.join(patch.name for patch in plan.others)}")
    order = ["the treatment once with compilation forbidden"] if has_preflight(plan) else []
    order += [f"{protocol.discarded} discarded run of each arm"] if protocol.discarded else []
    order.append(f"{_range(protocol.pairs_min, protocol.pairs_max)} pairs in the order ABBA, judged after each")
    lines.append(f"  order: {'; '.join(order)}{points}")
    lines.append(f"  {_range(least, most)} processes; {_takes(least, most, seconds)}")
    after = "stay in memory only" if plan.options.in_memory else "stay applied"
    if plan.patches:
        lines.append(
            f"  after: patches that pass {after}; else "
            + (
                "nothing is to be taken back"
                if plan.options.in_memory
                else "they are taken back and the baseline is measured once more"
            )
        )
    return [*lines, *(f"  note: {note}" for note in plan.notes)]


def _range(least: int, most: int) -> str:
    return str(least) if least == most else f"{least} to {most}"


def _takes(least: int, most: int, seconds: float | None) -> str:
    if seconds is None:
        return "how long one takes is not known before the first"
    shortest, longest = clock(least * seconds), clock(most * seconds)
    return f"about {shortest}{'' if shortest == longest else f' to {longest}'}, by earlier runs"


def clock(seconds: float) -> str:
    """A length of time, short."""
    whole = max(0, round(seconds))
    if whole < 100:
        return f"{whole} s"
    if whole < 6000:
        return f"{whole // 60} min {whole % 60:02d} s" if whole < 600 else f"{round(whole / 60)} min"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
