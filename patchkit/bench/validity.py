"""Whether a comparison can be believed at all, before any speed is looked at. Pure.

Each condition is a :class:`Check` with its evidence in words. What the recipe requires and nobody could tell has
failed; what it does not require and nobody could tell is ``not-checked``; ``noted`` is worth knowing and no reason to
refuse.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from patchkit.bench.observation import Fired, Phase
from patchkit.bench.pairs import (
    Pair,
    counted,
    figure,
    is_ratio,
    measured,
    pairs_of,
    percent,
    run_name,
    value_of,
)
from patchkit.bench.report import Check, Run
from patchkit.bench.stability import baseline_stable, treatment_stable
from patchkit.model.recipe import Arm, Point, Recipe

HIT_RATES = 0.01
"""How far prefix-cache hit rates may lie apart."""

_SHOWN = 6


def check_runs(recipe: Recipe, point: Point, runs: Sequence[Run], settled: Container[str] = ()) -> tuple[Check, ...]:
    """Every condition, on the measured runs so far (and on the preflight); one that failed makes the point invalid.

    ``settled`` are the metrics that need no decision any more, however widely their runs spread.
    """
    seen = measured(point, runs)
    checks = [_preflight(point, runs)]
    if not seen:
        return tuple(check for check in checks if check is not None)
    pairs = pairs_of(point, runs)
    checks += [
        _metrics(recipe, seen),
        _probes(recipe, point, seen),
        _requests(seen),
        _output_count(recipe, point, seen),
        _output_identical(recipe, point, seen),
        _profiler(seen),
        _versions(seen),
        _prefix_cache(point, seen),
        _compilations(recipe, pairs),
        treatment_stable(recipe, pairs, settled),
        baseline_stable(recipe, pairs),
        _evidence(recipe, seen),
    ]
    return tuple(check for check in checks if check is not None)


def on_trial(point: Point) -> tuple[str, ...]:
    """The patches of the treatment that the baseline does not have."""
    return tuple(name for name in point.treatment.patches if name not in point.baseline.patches)


def _held(name: str, text: str) -> Check:
    return Check(name, "held", text)


def _failed(name: str, problems: Iterable[str]) -> Check:
    return Check(name, "failed", "; ".join(_first(list(problems))))


def _first(texts: Sequence[str]) -> list[str]:
    more = len(texts) - _SHOWN
    return [*texts[:_SHOWN], f"and {more} more"] if more > 0 else list(texts)


def _preflight(point: Point, runs: Iterable[Run]) -> Check | None:
    flights = [run for run in runs if run.kind == "preflight" and run.point == point.label]
    if not flights:
        return None
    for run in flights:
        failure = run.observation.failure
        if failure is not None and failure.forbidden:
            return _failed("preflight", [f"the {run.arm} compiles in the serving path: {failure.message}"])
    return _held("preflight", "nothing was compiled where compilation was forbidden")


def _metrics(recipe: Recipe, runs: Sequence[Run]) -> Check | None:
    problems = []
    for gate in recipe.gates.metrics:
        for run in runs:
            value = value_of(run, gate.metric)
            if value is None:
                problems.append(f"{run_name(run)} has no {gate.metric}, which has a gate")
            elif is_ratio(gate) and value <= 0:
                problems.append(f"{run_name(run)}: {gate.metric} is {figure(value)}, which has no ratio")
        units = {run.observation.metrics[gate.metric].unit for run in runs if gate.metric in run.observation.metrics}
        if len(units) > 1:
            problems.append(f"{gate.metric} is in {' and in '.join(sorted(units))}")
    if problems:
        return _failed("metrics", problems)
    names = ", ".join(gate.metric for gate in recipe.gates.metrics)
    return _held("metrics", f"every run has {names}") if names else None


def _probes(recipe: Recipe, point: Point, runs: Sequence[Run]) -> Check:
    patches = on_trial(point)
    if not patches:
        return Check("probes", "not-checked", "no patch is on trial: the treatment has none that the baseline lacks")
    problems, silent, partly = [], [], []
    for run in runs:
        for patch in patches:
            fired = [probe for probe in run.observation.probes if probe.patch == patch]
            ran = [probe for probe in fired if probe.ran]
            if run.arm == "baseline" and fired:
                verb = "ran" if ran else "was loaded"
                problems.append(
                    f"{run_name(run)}: {patch} {verb} in the baseline ({_where((ran or fired)[0].function)})"
                )
            if run.arm == "treatment" and not ran:
                silent.append(
                    f"{run_name(run)}: {patch} was loaded, but {_functions(fired)} never ran"
                    if fired
                    else f"{run_name(run)}: no probe of {patch} fired"
                )
            elif run.arm == "treatment":
                partly += [f"{probe.function} of {patch}" for probe in fired if not probe.ran]
    if recipe.gates.probes == "required":
        problems += silent
    if problems:
        return _failed("probes", problems)
    if silent:
        return Check("probes", "noted", "; ".join(_first(silent)))
    known = sorted({probe.function for run in runs for probe in run.observation.probes if probe.ran})
    text = f"{', '.join(patches)}: ran in every treatment run and in no baseline run ({', '.join(_first(known))})"
    if partly:
        text += f"; loaded and never run: {', '.join(sorted(set(partly)))}"
    return _held("probes", text)


def _where(function: str) -> str:
    return function or "whole module"


def _functions(fired: Iterable[Fired]) -> str:
    return ", ".join(dict.fromkeys(_where(probe.function) for probe in fired))


def _requests(runs: Sequence[Run]) -> Check:
    problems = [
        f"{run_name(run)}: {counted(run.observation.tokens.failed_requests, 'request')} failed"
        for run in runs
        if run.observation.tokens is not None and run.observation.tokens.failed_requests
    ]
    if problems:
        return _failed("requests", problems)
    if all(run.observation.tokens is None for run in runs):
        return Check("requests", "not-checked", "the engine does not say which requests failed")
    return _held("requests", "no request failed")


def _output_count(recipe: Recipe, point: Point, runs: Sequence[Run]) -> Check:
    name, problems = "output-count", []
    counts: dict[str, set[int]] = {"": set()} if _same_size(point) else {"baseline": set(), "treatment": set()}
    for run in runs:
        tokens = run.observation.tokens
        if tokens is None or tokens.came is None:
            if recipe.gates.tokens != "any":
                problems.append(f"{run_name(run)}: nobody counted its output tokens")
        elif tokens.came <= 0:
            problems.append(f"{run_name(run)}: no output token came")
        elif tokens.asked is not None and tokens.came < tokens.asked and point.arm(run.arm).workload.ignore_eos:
            problems.append(f"{run_name(run)}: {tokens.came:,} output tokens came of {tokens.asked:,} asked for")
        else:
            counts["" if "" in counts else run.arm].add(tokens.came)
    if not problems and recipe.gates.tokens == "count":
        problems += [
            f"the {arm + ' ' if arm else ''}runs gave {_listed(found)} output tokens"
            for arm, found in counts.items()
            if len(found) > 1
        ]
    if problems:
        return _failed(name, problems)
    told = [
        f"{_listed(found)} output tokens in every {arm + ' ' if arm else ''}run"
        for arm, found in counts.items()
        if found
    ]
    if not told:
        return Check(name, "not-checked", "nobody counted output tokens, and the recipe does not ask for them")
    return _held(name, ", ".join(told))


def _same_size(point: Point) -> bool:
    """Whether both arms ask for as many tokens."""
    return len({(arm.workload.requests, arm.workload.max_tokens) for arm in (point.baseline, point.treatment)}) == 1


def _listed(counts: Iterable[int]) -> str:
    return " or ".join(f"{count:,}" for count in sorted(counts))


def _output_identical(recipe: Recipe, point: Point, runs: Sequence[Run]) -> Check:
    name = "output-identical"
    outputs: dict[str, set[str]] = {"baseline": set(), "treatment": set()}
    unknown = []
    for run in runs:
        tokens = run.observation.tokens
        if tokens is None or tokens.sha256 is None:
            unknown.append(f"{run_name(run)}: its output tokens are not known")
        else:
            outputs[run.arm].add(tokens.sha256)
    if recipe.gates.tokens != "identical":
        return Check(name, "not-checked", f'the recipe has tokens = "{recipe.gates.tokens}"')
    if unknown:
        return _failed(name, unknown)
    unsteady = [arm for arm, found in outputs.items() if len(found) > 1]
    if unsteady:
        told = " and ".join(f"{len(outputs[arm])} different outputs in {arm} runs" for arm in unsteady)
        if unsteady == ["treatment"]:
            return _failed(name, [f"the patched engine is not deterministic: {told}, one in baseline runs"])
        return _failed(name, [f"the engine itself is not deterministic: {told}, for the same requests"])
    if outputs["baseline"] and outputs["treatment"] and outputs["baseline"] != outputs["treatment"]:
        return _failed(
            name,
            [
                f"the arms answer differently: SHA-256 {_short(outputs['baseline'])} in every baseline run, "
                f"{_short(outputs['treatment'])} in every treatment run"
            ],
        )
    return _held(name, f"the same output tokens in {len(runs)} runs (SHA-256 {_short(outputs['baseline'])})")


def _short(digests: Iterable[str]) -> str:
    return ", ".join(digest[:12] for digest in sorted(digests))


def _profiler(runs: Sequence[Run]) -> Check:
    problems = [
        f"{run_name(run)}: a profiler was on, which is in its times" for run in runs if run.observation.profiler
    ]
    if problems:
        return _failed("profiler", problems)
    if any(run.observation.profiler is None for run in runs):
        return Check("profiler", "not-checked", "the engine does not say whether a profiler was on")
    return _held("profiler", "off in every run")


def _versions(runs: Sequence[Run]) -> Check:
    problems = []
    said = _groups(runs, lambda run: run.observation.version_lines or None)
    if len(said) > 1:
        problems.append(
            "the engine says of itself: " + _told(said, lambda lines: " / ".join(lines) if lines else "nothing")
        )
    for name in sorted({name for run in runs for name in run.observation.versions}):
        found = _groups(runs, partial(_version, name))
        if len(found) > 1:
            problems.append(f"{name}: " + _told(found, lambda version: version or "unknown"))
    if problems:
        return _failed("versions", problems)
    lines = runs[0].observation.version_lines
    if not lines and not runs[0].observation.versions:
        return Check("versions", "not-checked", "the engine does not say its version")
    return _held("versions", "the same in every run" + (f": {lines[0]}" if lines else ""))


def _version(name: str, run: Run) -> str | None:
    return run.observation.versions.get(name)


def _groups(runs: Iterable[Run], key: Callable[[Run], Any]) -> dict[Any, list[Run]]:
    groups: dict[Any, list[Run]] = {}
    for run in runs:
        groups.setdefault(key(run), []).append(run)
    return groups


def _told(groups: Mapping[Any, Sequence[Run]], say: Callable[[Any], str]) -> str:
    return ", ".join(f"{say(value)} in {_numbers(runs)}" for value, runs in groups.items())


def _numbers(runs: Sequence[Run]) -> str:
    orders = ", ".join(str(run.order) for run in runs)
    return f"run {orders}" if len(runs) == 1 else f"runs {orders}"


def _prefix_cache(point: Point, runs: Sequence[Run]) -> Check:
    name = "prefix-cache"
    rates = {run.order: run.observation.prefix_cache_hit_rate for run in runs}
    known = [run for run in runs if rates[run.order] is not None]
    if not known:
        return Check(name, "not-checked", "the engine does not say its prefix-cache hit rate")
    if len(known) < len(runs):
        unknown = [run for run in runs if rates[run.order] is None]
        return _failed(name, [f"the hit rate of {_numbers(unknown)} is not known, that of others is"])
    alike = _same_requests(point.baseline, point.treatment)
    kinds = [known] if alike else [[run for run in known if run.arm == arm] for arm in ("baseline", "treatment")]
    problems = []
    for kind in kinds:
        shares = sorted((rates[run.order] or 0.0, run.order) for run in kind)
        if shares and shares[-1][0] - shares[0][0] > HIT_RATES:
            (low, first), (high, last) = shares[0], shares[-1]
            problems.append(f"hit rates differ: {percent(low)} in run {first}, {percent(high)} in run {last}")
    if problems:
        return _failed(name, problems)
    seen = sorted({percent(rates[run.order] or 0.0) for run in known})
    between = "" if alike else "; the arms ask differently, so each was compared with itself"
    return _held(name, f"hit rates within {percent(HIT_RATES, 0)} of each other: {', '.join(seen)}{between}")


def _same_requests(baseline: Arm, treatment: Arm) -> bool:
    """Whether prefix caches of the two arms ought to be hit equally often."""
    return (
        baseline.workload == treatment.workload
        and baseline.engine.enable_prefix_caching == treatment.engine.enable_prefix_caching
    )


def _compilations(recipe: Recipe, pairs: Sequence[Pair]) -> Check:
    name, gate = "compilations", recipe.gates.recompiles
    uncounted = [
        run for pair in pairs for run in (pair.baseline, pair.treatment) if run.observation.compilations is None
    ]
    if gate is None:
        return Check(name, "not-checked", "the recipe sets no limit on compilations after warm-up")
    if uncounted:
        return _failed(name, [f"nobody counted the compilations of {_numbers(uncounted)}"])
    problems = []
    for pair in pairs:
        extra = {
            function: count
            for function, count in more_compiled(
                pair.treatment.observation.compilations, pair.baseline.observation.compilations
            ).items()
            if count > gate
        }
        if extra:
            problems.append(
                f"pair {pair.number}: {counted(sum(extra.values()), 'compilation')} after warm-up that the baseline "
                f"does not have: {_compiled(extra, pair)}"
            )
    if problems:
        return _failed(name, [*problems, f"at most {gate} of a function may be"])
    if gate == 0:
        return _held(name, "nothing after warm-up that the baseline of the pair does not compile as often")
    return _held(name, f"no function more than {gate} times after warm-up beyond the baseline of the pair")


def more_compiled(treatment: Mapping[str, int] | None, baseline: Mapping[str, int] | None) -> dict[str, int]:
    """How often each function was compiled in the treatment beyond the baseline."""
    below = baseline or {}
    return {
        function: count - below.get(function, 0)
        for function, count in sorted((treatment or {}).items())
        if count > below.get(function, 0)
    }


def _compiled(extra: Mapping[str, int], pair: Pair) -> str:
    told = []
    for function, count in sorted(extra.items(), key=lambda item: (-item[1], item[0]))[:_SHOWN]:
        places = [
            f"{phase_name(phase)}: {phase.compilations[function]}"
            for phase in pair.treatment.observation.phases
            if phase.name != "warm-up" and phase.compilations is not None and phase.compilations.get(function)
        ]
        told.append(f"{function} {count}" + (f" ({', '.join(places)})" if places else ""))
    return ", ".join(told) + (f", and {len(extra) - _SHOWN} functions more" if len(extra) > _SHOWN else "")


def phase_name(phase: Phase) -> str:
    """``first ttft``, ``main 2``: a phase by its name and how many of it there were, this one included."""
    return f"first {phase.name}" if phase.repeat == 0 else f"{phase.name} {phase.repeat + 1}"


def _evidence(recipe: Recipe, runs: Sequence[Run]) -> Check | None:
    problems, found = [], []
    for line in recipe.evidence:
        for run in runs:
            if line.arm not in (None, run.arm):
                continue
            count = run.observation.found_lines.get(line.text, 0)
            if count < line.at_least:
                problems.append(
                    f"{run_name(run)}: {line.text!r} stands {_times(count)} in its log, not {_at_least(line.at_least)}"
                )
            elif line.at_most is not None and count > line.at_most:
                wanted = f"not at most {line.at_most}" if line.at_most else "where it must not stand"
                problems.append(f"{run_name(run)}: {line.text!r} stands {_times(count)} in its log, {wanted}")
        found.append(repr(line.text))
    if problems:
        return _failed("evidence", problems)
    return _held("evidence", f"in the logs as it must be: {', '.join(found)}") if found else None


def _at_least(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _times(count: int) -> str:
    return "nowhere" if count == 0 else "once" if count == 1 else f"{count} times"
