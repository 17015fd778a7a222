"""The engine ``openai``: ``vllm serve`` of the site's interpreter, or a server that runs already, asked over HTTP."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from patchkit.bench.launching import arms_of, below, check_transplants, environment_of, python_of
from patchkit.bench.loglines import LogFacts, compilations, lines_of, read_log
from patchkit.bench.observation import Failure, Observation
from patchkit.bench.offline import DISTRIBUTIONS, TRACED, trace_folder
from patchkit.bench.served.command import endpoint_of, refuse_options, serve_arguments
from patchkit.bench.served.server import Refused, Running, attached, exception, shown, started
from patchkit.bench.served.summary import observed
from patchkit.errors import GuardError, UsageError
from patchkit.runtime.ledger import open_regular, read_regular
from patchkit.site.process import run

if TYPE_CHECKING:
    from patchkit.bench.engine import Job
    from patchkit.model.recipe import Arm, Recipe
    from patchkit.site.environment import Site

#: Tokens of each request of the warm-up.
WARM_TOKENS = 8
#: Seconds in which a request may get nothing, at most; half of the recipe's ``timeout`` where that is less.
IDLE = 600.0
#: Of the distributions in the server's environment, those whose versions are told.
NAMED = (*DISTRIBUTIONS, "tpu-inference", "jax", "jaxlib", "torch", "torchax", "flax", "transformers")


class Openai:
    """A server that speaks OpenAI's protocol, measured by streaming from it."""

    def __init__(self) -> None:
        """Not checked yet."""
        self._starts = True

    def check(self, recipe: Recipe, site: Site) -> Sequence[str]:
        """Refuse what cannot be measured; tells what is taken as it is.

        Raises:
            UsageError: ``served``: no prompts, no model, or a given server that the arms' patches or settings cannot
                reach; ``serve-option``; ``no-interpreter``; ``not-a-transplant``.
            GuardError: ``not-installed``: the site has no vLLM.
        """
        arms = arms_of(recipe)
        check_transplants(recipe)
        self._starts = all(arm.engine.url is None for arm in arms)
        for arm in arms:
            if not arm.workload.prompts:
                raise _wrong(arm, "workload.prompts", "there is nothing to ask", "give the prompts of the workload")
            refuse_options(arm.engine)
            if arm.engine.url is None:
                if arm.engine.model is None:
                    raise _wrong(arm, "engine.model", "no model to serve", 'model = "NAME or folder"')
                _installed(site)
            elif arm.patches or arm.engine.transplants:
                raise _wrong(
                    arm,
                    "engine.url",
                    "the server runs already, and patches cannot be switched in it",
                    "leave `url` out, so that a server is started for each arm; or compare workloads without patches",
                )
        for point in recipe.points:
            for one, other in ((point.baseline, point.treatment), (point.treatment, point.baseline)):
                if one.engine.url is not None and _settings(one) != _settings(other):
                    raise _wrong(
                        one,
                        "engine.url",
                        "the arms differ in settings of the engine, which do not reach a server that runs already",
                        "let them differ in the workload or in `url` only; or leave `url` out",
                    )
        given = dict.fromkeys(arm.engine.url for arm in arms if arm.engine.url is not None)
        return [
            f"the server at {shown(url)} is measured as it is: neither its settings nor its log are seen, and it is no "
            "fresh process"
            for url in given
        ]

    def can_forbid(self) -> bool:
        """Whether the server is started here: only then can it be told to forbid compilation."""
        return self._starts

    def observe(self, job: Job, tick: Callable[[str], None]) -> Observation:
        """Start the server, warm it up, generate as often as the workload says, end it."""
        log = os.path.join(job.folder, "log.txt")
        url, timeout = job.arm.engine.url, job.arm.engine.timeout
        until = time.monotonic() + timeout
        try:
            if url is not None:
                return _measure(job, attached(url, job.arm.engine.model), None, until, tick)
            with started(
                lambda port, names: _command(job, port, names),
                model=_model(job),
                log=log,
                cwd=job.root,
                environ=_environment(job),
                timeout=timeout,
                tick=tick,
            ) as server:
                return _measure(job, server, log, until, tick)
        except (Refused, OSError) as error:
            kind = error.kind if isinstance(error, Refused) else "start"
            facts = _facts(log) if url is None and os.path.exists(log) else LogFacts()
            failure = Failure(kind, str(error), facts.forbidden)
            return Observation(
                metrics=facts.metrics,
                version_lines=facts.version_lines,
                versions=_versions(job.site) if url is None else {},
                failure=failure,
                log=log if url is None else None,
            )


def _measure(job: Job, server: Running, log: str | None, until: float, tick: Callable[[str], None]) -> Observation:
    spec, target, progress = (os.path.join(job.folder, name) for name in ("client.json", "served.json", "progress"))
    with open(spec, "w", encoding="utf-8") as file:
        json.dump(specification(job, server, log, progress), file, indent=1)
    done = run(
        [sys.executable, "-P", "-m", "patchkit.bench.served.client", spec, target],
        timeout=max(1.0, until - time.monotonic()),
        environ=_own_environment(),
        cwd=job.folder,
        tick=lambda: tick(_progress(progress)),
    )
    facts = _facts(log) if log is not None else LogFacts()
    try:
        seen = json.loads(read_regular(target))
    except (OSError, ValueError):
        reason = f"the client {done.ended()}; it said: {done.last_line() or 'nothing'}"
        return Observation(failure=Failure("timeout" if done.status is None else "client", reason), log=log)
    made = observed(
        seen,
        facts,
        [_compiled(phase, facts, log) for phase in seen["phases"]],
        job.arm.workload._replace(repeats=1) if _untimed(job) else job.arm.workload,
        profiler=trace_folder(job) is not None,
        versions=_versions(job.site) if log is not None else {},
    )
    if _untimed(job):
        made = made._replace(metrics=facts.metrics)
    why = exception(log) if log is not None and made.failure is not None and made.failure.kind == "requests" else None
    if made.failure is not None and why is not None:
        made = made._replace(failure=made.failure._replace(message=f"{made.failure.message}; the server: {why}"))
    return made._replace(log=log)


def specification(job: Job, server: Running, log: str | None, progress: str) -> dict[str, Any]:
    """What the client is told; a job that is not timed has one repeat."""
    workload = job.arm.workload
    traced = trace_folder(job) is not None
    sampling = {name: getattr(workload, name) for name in ("temperature", "top_p", "top_k", "logprobs")}
    if log is None:  # a server of somebody else's, which was given no seed
        sampling["seed"] = workload.seed
    return {
        "url": server.url,
        "endpoint": endpoint_of(job.arm.engine),
        "model": server.model,
        "prompts": list(workload.prompts),
        "batch_mult": workload.batch_mult,
        "max_tokens": min(workload.max_tokens, TRACED) if traced else workload.max_tokens,
        "sampling": sampling,
        "ignore_eos": workload.ignore_eos,
        "token_ids": server.ids,
        "repeats": 1 if _untimed(job) else workload.repeats,
        "concurrency": workload.concurrency,
        "request_rate": workload.request_rate,
        "arrival_seed": workload.seed or 0,
        "warm_tokens": WARM_TOKENS,
        "idle": min(IDLE, job.arm.engine.timeout / 2),
        "log": log,
        "profile": traced,
        # Somebody else's cache is left alone.
        "reset": log is not None,
        "progress": progress,
    }


def _untimed(job: Job) -> bool:
    return job.forbid or trace_folder(job) is not None


def _wrong(arm: Arm, key: str, what: str, hint: str) -> UsageError:
    return UsageError(
        f"the engine `openai`, {arm.name}, {key}: {what}",
        code="served",
        hint=hint,
        details={"key": key, "arm": arm.name},
    )


def _settings(arm: Arm) -> Any:
    """Settings that only a server that is started here is told."""
    options = {name: value for name, value in arm.engine.options.items() if name != "endpoint"}
    return arm.engine._replace(url=None, timeout=0.0, options=options)


def _installed(site: Site) -> None:
    python_of(site)
    if not any(site.find(name) for name in DISTRIBUTIONS):
        raise GuardError(
            f"vLLM is not installed in {site.label}",
            code="not-installed",
            hint="name the environment that has it: patchkit --python EXE rebench ...; or a server with engine.url",
            details={"path": site.home},
        )


def _model(job: Job) -> str:
    """The model's folder where it is one beside the recipe, else its name."""
    name = str(job.arm.engine.model)
    return below(job.root, name) if os.path.isdir(below(job.root, name)) else name


def _command(job: Job, port: int, names: tuple[str, ...]) -> list[str]:
    engine = job.arm.engine._replace(model=_model(job))
    words = serve_arguments(engine, port, names, seed=job.arm.workload.seed, profile=trace_folder(job))
    return [python_of(job.site), "-m", "vllm.entrypoints.cli.main", "serve", *words]


def _environment(job: Job) -> dict[str, str]:
    """The server's: jax says what it compiles, also where a library of the server silences the root logger.

    Only a server in development mode lets its prefix cache be emptied; it listens on the loopback interface.
    """
    more = {"PYTHONUNBUFFERED": "1", "JAX_LOG_COMPILES": "1"}
    if job.forbid:
        more["VLLM_XLA_CHECK_RECOMPILATION"] = "1"
    if trace_folder(job) is not None:
        # A warm compile cache would give a program of other sources the names of those that filled it.
        more["JAX_COMPILATION_CACHE_INCLUDE_METADATA_IN_KEY"] = "true"
    env = environment_of(job, more)
    return {"JAX_LOGGING_LEVEL": "WARNING", "VLLM_SERVER_DEV_MODE": "1", **env}


def _own_environment() -> dict[str, str]:
    """The client's: patchkit's own, with nothing of what carries patches into the engine."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    return {**os.environ, "PYTHONPATH": package}


def _facts(log: str) -> LogFacts:
    with open_regular(log) as file:
        return read_log(lines_of(file))


def _compiled(phase: Mapping[str, Any], facts: LogFacts, log: str | None) -> dict[str, int] | None:
    """What was compiled in a phase, by what the log gained in it; None where nobody counted."""
    begin, end = phase.get("log") or (None, None)
    if log is None or facts.compilations is None or begin is None or end is None:
        return None
    with open_regular(log) as file:
        return compilations(lines_of(file, begin, end))


def _versions(site: Site) -> dict[str, str]:
    found = {name: site.find(name) for name in NAMED}
    return {name: one.version for name, one in found.items() if one is not None}


def _progress(path: str) -> str:
    try:
        return read_regular(path, 200).decode("utf-8", "replace") or "asking"
    except OSError:
        return "asking"
