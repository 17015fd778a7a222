"""The folder of a session: its inputs, every process of it as soon as it has ended, its report."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from patchkit.bench.observation import read_observation
from patchkit.bench.report import Run
from patchkit.errors import SiteError, UsageError
from patchkit.runtime.ledger import read_regular
from patchkit.site.whole import write_whole
from patchkit.tuples import NamedTuple

if TYPE_CHECKING:
    from patchkit.bench.plan import Plan, Step
    from patchkit.bench.report import Report

SCHEMA = 1
"""Of ``session.json`` and ``run.json``."""
RUNS_VARIABLE = "PATCHKIT_RUNS"
DEFAULT = "patchkit-runs"
LABEL = 80
"""Characters of a point's label that the folder of a process is named by: file systems take 255 in all."""
_MOST = 256 << 20
_SECRET = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|COOKIE|AUTH|SESSION|PRIVATE|CONNECTION_?STR|WEBHOOK|HEADERS"
    r"|(^|_)(API_?)?KEYS?(_|$)|ACCESS_?KEY|APIKEY|_(PASS|PWD|PAT|SAS|JWT|DSN)(_|$)",
    re.I,
)
_LOGIN = re.compile(r"(?<=://)[^/@\s]+@")
_ASKED = re.compile(r"([?&][^=&\s]*(?:token|key|sig|secret|passw|auth)[^=&\s]*=)[^&\s#]+", re.I)
_ENGINE = re.compile(r"(JAX|XLA|VLLM|TPU|LIBTPU|PJRT|OMP|CUDA|NVIDIA)_.*|(PYTHONPATH|LD_LIBRARY_PATH|LD_PRELOAD)")
"""Names of variables that change what an engine does."""


class Session(NamedTuple):
    """One session on disk: its folder, its inputs as they were written, and the processes that have ended."""

    folder: str
    inputs: dict[str, Any]
    runs: tuple[Run, ...]


def runs_folder(given: str | None, environ: Mapping[str, str]) -> str:
    """The folder that keeps sessions."""
    return os.path.abspath(given or environ.get(RUNS_VARIABLE) or DEFAULT)


def now() -> str:
    """The time of day, UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def inputs_of(plan: Plan, environ: Mapping[str, str]) -> dict[str, Any]:
    """Everything that an experiment depends on, as JSON values."""
    recipe, site = plan.recipe, plan.site
    return {
        "schema": SCHEMA,
        "recipe": {
            "name": recipe.name,
            "path": recipe.path,
            "digest": recipe.digest,
            "text": recipe.data.decode("utf-8", "replace"),
            "protocol": recipe.protocol._asdict(),
        },
        "options": {
            "in_memory": plan.options.in_memory,
            "preflight": plan.options.preflight,
            "on_inconclusive": "keep" if plan.options.keep else "revert",
            "allow_known_bad": plan.options.allow_known_bad,
        },
        "patches": [
            {
                "name": used.name,
                "digest": used.digest,
                "distribution": used.distribution,
                "version": used.version,
                "path": plan.patches[used.name].path,
                "text": plan.patches[used.name].data.decode("utf-8", "replace"),
            }
            for used in plan.used
        ],
        "others": [{"name": patch.name, "digest": patch.digest} for patch in plan.others],
        "before": [one.name for one in plan.before],
        "site": {
            "path": site.home,
            "python": site.interpreter.executable if site.interpreter is not None else None,
        },
        "versions": dict(plan.versions),
        "environment": environment_of(environ),
        "machine": machine(),
        "started": now(),
    }


def environment_of(environ: Mapping[str, str]) -> dict[str, str | None]:
    """The environment's variables; of those that may be secret only the name."""
    return {
        name: None if _SECRET.search(name) else _ASKED.sub(r"\1...", _LOGIN.sub("...@", value))
        for name, value in sorted(environ.items())
    }


def machine() -> dict[str, str]:
    """What the machine is, in words."""
    found = {
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cpus": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()),
        "cpu": _cpu(),
        "host": platform.node(),
    }
    return {name: value for name, value in found.items() if value}


def _cpu() -> str:
    try:
        lines = read_regular("/proc/cpuinfo").decode("utf-8", "replace").splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def load() -> float | None:
    """How many processes wanted a processor, on average over the last minute."""
    try:
        return round(os.getloadavg()[0], 2)
    except (OSError, AttributeError):
        return None


def differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """In what two sessions differ that may not go on as one, in words."""
    found = []
    if was["recipe"]["digest"] != now["recipe"]["digest"]:
        found.append("the recipe's file was edited")
    elif was["recipe"]["protocol"] != now["recipe"]["protocol"]:
        one, other = was["recipe"]["protocol"], now["recipe"]["protocol"]
        found += [f"{key} was {one.get(key)} and is {other[key]}" for key in other if one.get(key) != other[key]]
    for name in ("in_memory", "preflight"):
        if was["options"][name] != now["options"][name]:
            found.append(f"--{name.replace('_', '-')}: it was begun {'with' if was['options'][name] else 'without'}")
    for kind, what in (("patches", "the patch"), ("others", "the applied patch")):
        one, other = ({item["name"]: item["digest"] for item in side[kind]} for side in (was, now))
        for name in sorted({*one, *other}):
            if one.get(name) != other.get(name):
                state = "was edited" if name in one and name in other else "is gone" if name in one else "is new"
                found.append(f"{what} {name} {state}")
    if was["site"]["path"] != now["site"]["path"]:
        found.append(f"the site was {was['site']['path']} and is {now['site']['path']}")
    for name in sorted({*was["versions"], *now["versions"]}):
        one, other = was["versions"].get(name), now["versions"].get(name)
        if one != other:
            found.append(f"{name} was {one or 'not there'} and is {other or 'not there'}")
    return [*found, *_surroundings(was, now)]


def _surroundings(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """In what the machine and the engine's environment differ, in words."""
    found = []
    for name in ("machine", "cpu", "cpus"):
        one, other = was["machine"].get(name), now["machine"].get(name)
        if one != other:
            found.append(f"{name} of the machine was {one or 'not known'} and is {other or 'not known'}")
    for name in sorted({*was["environment"], *now["environment"]}):
        one, other = was["environment"].get(name), now["environment"].get(name)
        if one != other and _ENGINE.fullmatch(name):
            found.append(f"the variable {name} was {one or 'not set'} and is {other or 'not set'}")
    return found


def create(plan: Plan, inputs: dict[str, Any]) -> Session:
    """The folder of a new session.

    Raises:
        SiteError: ``os-error``: it cannot be made.
    """
    stem = f"{plan.recipe.name}-{inputs['started'].replace('-', '').replace(':', '')}"
    for count in range(1, 1000):
        folder = os.path.join(plan.options.runs, stem if count == 1 else f"{stem}-{count}")
        try:
            os.makedirs(folder)
            break
        except FileExistsError:
            continue
        except OSError as error:
            raise SiteError(
                f"{folder} cannot be made: {error.strerror}",
                code="os-error",
                hint="name a folder of yours with --runs DIR or $PATCHKIT_RUNS",
                details={"path": folder},
            ) from None
    session = Session(folder, inputs, ())
    write(os.path.join(folder, "session.json"), inputs)
    return session


def write(path: str, value: Any) -> None:
    """Write JSON values, wholly or not at all.

    Raises:
        SiteError: ``os-error``.
    """
    save_text(path, json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def save_text(path: str, text: str) -> None:
    """Write a file of a session, wholly or not at all.

    Raises:
        SiteError: ``os-error``.
    """
    try:
        write_whole(path, text.encode("utf-8", "surrogateescape"), overwrite=True)
    except OSError as error:
        raise SiteError(
            f"{path} cannot be written: {error.strerror}",
            code="os-error",
            hint="make room, or see to its permissions; then `patchkit rebench RECIPE --resume` goes on",
            details={"path": path},
        ) from None


def open_session(folder: str) -> Session:
    """A session that was begun.

    Raises:
        UsageError: ``no-session``: there is none, or it is of another patchkit.
    """
    try:
        inputs = _read(os.path.join(folder, "session.json"))
        differences(inputs, inputs)  # it has all that a comparison asks for
        runs = []
        for name in sorted(os.listdir(folder)):
            path = os.path.join(folder, name, "run.json")
            if name[:3].isdigit() and os.path.lexists(path):
                runs.append(_run(_read(path)))
    except OSError as error:
        raise UsageError(
            f"{folder} is no session of rebench: {error.strerror}",
            code="no-session",
            hint="name the folder that rebench said it keeps the runs in",
            details={"path": folder},
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(
            f"{folder} cannot be resumed: {error}",
            code="no-session",
            hint="begin a new one: patchkit rebench RECIPE",
            details={"path": folder},
        ) from None
    return Session(folder, inputs, tuple(runs))


def _read(path: str) -> dict[str, Any]:
    value = json.loads(read_regular(path, _MOST))
    if not isinstance(value, dict) or value.get("schema") != SCHEMA:
        raise ValueError(f"{path} has another schema")
    return value


def _run(value: dict[str, Any]) -> Run:
    fields = {name: value[name] for name in Run._fields if name != "observation"}
    return Run(observation=read_observation(value["observation"]), **fields)


def finished(folder: str) -> bool:
    """Whether a session has its report."""
    return os.path.lexists(os.path.join(folder, "report.json"))


def unfinished(runs: str, recipe: str) -> str:
    """The newest session of a recipe that was not finished; one that was refused before its first run comes last.

    Raises:
        UsageError: ``no-session``.
    """
    found = [folder for folder in _sessions(runs, recipe) if not finished(folder)]
    if found:
        return next((folder for folder in found if _has_runs(folder)), found[0])
    raise UsageError(
        f"{runs} has no unfinished session of {recipe}",
        code="no-session",
        hint=f"name its folder: patchkit rebench {recipe} --resume DIR; or begin a new one without --resume",
        details={"path": runs, "recipe": recipe},
    )


def _has_runs(folder: str) -> bool:
    return any(os.path.lexists(os.path.join(folder, name, "run.json")) for name in os.listdir(folder))


def _sessions(runs: str, recipe: str) -> list[str]:
    """The sessions of a recipe, the newest first."""
    pattern = re.compile(rf"{re.escape(recipe)}-\d{{8}}T\d{{6}}Z(-\d+)?")
    try:
        names = [name for name in os.listdir(runs) if pattern.fullmatch(name)]
    except OSError:
        return []
    folders = [os.path.join(runs, name) for name in sorted(names, reverse=True)]
    return [folder for folder in folders if os.path.lexists(os.path.join(folder, "session.json"))]


def seconds_before(runs: str, recipe: str) -> float | None:
    """What one process took in the newest session of the recipe that has any: the median; None: nobody knows."""
    from statistics import median

    for folder in _sessions(runs, recipe):
        try:
            session = open_session(folder)
        except UsageError:
            continue
        if session.runs:
            return median(run.seconds for run in session.runs)
    return None


def job_folder(session: Session, order: int, step: Step) -> str:
    """The empty folder of one process; what a process that did not end left there goes."""
    words = [f"{order:03d}", *([step.point.label[:LABEL]] if step.point.label else []), step.arm, step.kind]
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", "-".join(words))
    for stale in os.listdir(session.folder):
        if stale.startswith(f"{order:03d}-"):
            shutil.rmtree(os.path.join(session.folder, stale))
    folder = os.path.join(session.folder, name)
    os.mkdir(folder)
    return folder


def save_run(folder: str, run: Run, load: float | None) -> None:
    """Keep what one process was seen to do: it counts as done from here on."""
    value = {**run._asdict(), "observation": run.observation.to_json(), "load": load}
    write(os.path.join(folder, "run.json"), {"schema": SCHEMA, **value})


def set_aside(session: Session, runs: Sequence[Run]) -> None:
    """Runs that no longer count, for half of a pair is none: their folders stay, by another name."""
    orders = {run.order for run in runs}
    for name in os.listdir(session.folder):
        order = name.partition("-")[0]
        if order.isdigit() and int(order) in orders:
            os.replace(os.path.join(session.folder, name), os.path.join(session.folder, f"half-{name}"))


def save_report(folder: str, report: Report) -> list[str]:
    """Write the report in every form, ``report.json`` last: with it the session is finished."""
    from patchkit.bench.render.html import html
    from patchkit.bench.render.jsonform import report_json
    from patchkit.bench.render.markdown import markdown

    paths = [os.path.join(folder, f"report.{kind}") for kind in ("md", "html", "json")]
    save_text(paths[0], markdown(report))
    save_text(paths[1], html(report))
    write(paths[2], report_json(report))
    return paths
