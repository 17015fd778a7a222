"""Running a spec: a process for each trial, and the result kept."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from patchkit.bench.compiletime.result import RESULT, SCHEMA, Result, Trial, order_of, same_ground
from patchkit.bench.compiletime.spec import PHASES, Spec
from patchkit.bench.launching import said
from patchkit.bench.shape import plain
from patchkit.errors import MeasurementError, SiteError, UsageError
from patchkit.runtime.ledger import read_regular, sha256_hex
from patchkit.site.process import Completed, run_logged
from patchkit.visible import visible

DRIVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "driver.py")
#: Set so that nothing is read from a compile cache, or taken out of the environment.
OFF = {"JAX_ENABLE_COMPILATION_CACHE": "false"}
_UNSET = ("JAX_COMPILATION_CACHE_DIR",)
_MOST = 64 << 20


def environment(spec: Spec, environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a trial: the caller's, with the compile cache off, whatever the spec says."""
    return {**{name: value for name, value in environ.items() if name not in _UNSET}, **spec.env, **OFF}


def run_spec(
    spec: Spec,
    python: str,
    folder: str,
    *,
    started: str,
    trials: int,
    done: Callable[[int, int, Trial], None],
    tick: Callable[[int, int, str], None],
) -> Result:
    """Run all trials, there and back again, and write ``result.json``.

    Args:
        spec: What to compile.
        python: The target's interpreter.
        folder: A new folder for logs and the result.
        started: When, for the result.
        trials: Processes of each variant.
        done: Told of each trial with how many are done and how many there are.
        tick: Told every second what is under way.

    Raises:
        MeasurementError: ``trial``: a process failed. ``cache``: a compile cache had a part in one. ``versions``: they
            differ between trials.
        UsageError: ``no-script``.
        SiteError: ``os-error``: nothing can be written.
    """
    try:
        script = read_regular(spec.script, _MOST)
    except OSError as error:
        raise UsageError(
            f"{spec.path}: the script {spec.script} cannot be read: {error.strerror}",
            code="no-script",
            hint="`script` is relative to the spec",
            details={"path": spec.script},
        ) from None
    data = read_regular(spec.path, _MOST)
    functions = {variant.name: variant.function for variant in spec.variants}
    order = order_of(list(functions), trials)
    env = environment(spec, os.environ)
    found: list[Trial] = []
    try:
        os.makedirs(folder)
        for number, variant in enumerate(order):

            def told(number: int = number, variant: str = variant) -> None:
                tick(number, len(order), variant)

            told()
            trial = _trial(spec, python, folder, number, variant, functions[variant], env, told)
            same_ground([one.versions for one in (*found[:1], trial)], [one.device for one in (*found[:1], trial)])
            found.append(trial)
            done(number + 1, len(order), trial)
        result = Result(
            SCHEMA,
            spec.name,
            started,
            sha256_hex(data),
            sha256_hex(script),
            found[0].versions,
            found[0].device,
            tuple(found),
        )
        with open(os.path.join(folder, "result.json"), "w", encoding="utf-8") as file:
            json.dump(plain(result), file, indent=1)
    except OSError as error:
        raise SiteError(
            f"{error.filename or folder}: {error.strerror}", code="os-error", hint="name another folder with --output"
        ) from None
    return result


def _trial(
    spec: Spec,
    python: str,
    folder: str,
    number: int,
    variant: str,
    function: str,
    env: Mapping[str, str],
    tick: Callable[[], None],
) -> Trial:
    stem = os.path.join(folder, f"{number:03d}-{variant}")
    log, target = f"{stem}.log", f"{stem}.json"
    ended = run_logged(
        [python, DRIVER, spec.script, function, target], log=log, timeout=spec.timeout, environ=env, tick=tick
    )
    told = _told(target)
    error = told.get("error") if told is not None else None
    if told is None or error is not None or ended.status != 0:
        raise MeasurementError(
            f"{spec.path}: variant {variant}, trial {number + 1}: {_failure(told, ended, log)}",
            code="trial",
            hint=f"the whole output is in {log}",
            details={"variant": variant, "path": log},
        )
    if told["cache_hits"] or told["cache_enabled"]:
        raise MeasurementError(
            f"{spec.path}: variant {variant}: the compile cache is on"
            + (f", and {told['cache_hits']} programs came out of it" if told["cache_hits"] else ""),
            code="cache",
            hint=f"{spec.script}, or what it imports, must not turn it on",
            details={"variant": variant, "path": log},
        )
    return Trial(
        variant,
        number,
        {phase: float(told["seconds"][phase]) for phase in PHASES},
        {phase: float(told["cpu_seconds"][phase]) for phase in PHASES},
        told["versions"],
        told["device"],
        told["note"],
    )


def _told(target: str) -> dict[str, Any] | None:
    try:
        value = json.loads(read_regular(target, _MOST))
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _failure(told: Mapping[str, Any] | None, ended: Completed, log: str) -> str:
    error = told.get("error") if told is not None else None
    if isinstance(error, dict):
        return visible(f"{error.get('type')}: {error.get('message')}".strip()[:500])
    return f"the process {ended.ended()}; {said(ended, log)}"


def read_result(path: str) -> Result:
    """A result that was kept: its file, or the folder that it is in.

    Raises:
        UsageError: ``no-result``: there is none, or it is of another format.
    """
    file = os.path.join(path, "result.json") if os.path.isdir(path) else path
    try:
        result: Result = RESULT.read("result", json.loads(read_regular(file, _MOST)))
        if result.schema != SCHEMA:
            raise ValueError(f"schema {result.schema} is not {SCHEMA}")
        return result
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(
            f"{file}: no result of `compile-time`: {reason}",
            code="no-result",
            hint="name the folder that `compile-time` said it keeps its result in",
            details={"path": file},
        ) from None
