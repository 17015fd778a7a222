"""The engine ``command``: any program that prints or writes JSON."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from patchkit.bench.launching import (
    JOB_VARIABLE,
    arms_of,
    below,
    check_transplants,
    environment_of,
    failure_of,
    python_of,
    root_of,
    said,
    write_job,
)
from patchkit.bench.observation import Failure, Observation
from patchkit.bench.readers import read_result, refuse_sampled
from patchkit.errors import UsageError
from patchkit.rig.drive import progress_of
from patchkit.runtime.ledger import open_regular, read_regular
from patchkit.site.process import run_logged

if TYPE_CHECKING:
    from patchkit.bench.engine import Job
    from patchkit.model.recipe import Arm, Recipe
    from patchkit.site.environment import Site

#: Bytes of a result at most; of standard output, the last so many are looked through.
MOST = 64 * 1024 * 1024
_PLACES = re.compile(r"\{(python|result|job|folder)\}")
_OBJECT = re.compile(r"(?:^|(?<=[\r\n]))[ \t]*(?=\{)")


class Command:
    """Starts the arm's command in the recipe's folder and reads what it wrote, or printed last."""

    def check(self, recipe: Recipe, site: Site) -> Sequence[str]:
        """Refuse arms whose command cannot be started.

        Raises:
            UsageError: ``no-command``: there is none, or no such program; ``no-interpreter``: ``{python}`` is asked for
                and the site has none; ``samples-only``: a greedy workload, and a tool that only samples.
        """
        root = root_of(recipe)
        check_transplants(recipe)
        for arm in arms_of(recipe):
            engine = arm.engine
            refuse_sampled(engine.reads, arm.workload)
            if any("{python}" in word for word in (*engine.command, engine.result or "")):
                python_of(site)
            program = _program(arm, root, site, {**os.environ, **engine.env})
            if program is None:
                found = f"there is no program {engine.command[0]}" if engine.command else "no command is given"
                raise UsageError(
                    f"the engine `command`, {arm.name}: {found}",
                    code="no-command",
                    hint='a list of a program and its arguments: command = ["{python}", "bench.py"]',
                    details={"command": list(engine.command)},
                )
        return ()

    def can_forbid(self) -> bool:
        """No: what a command does with ``forbid`` is not known."""
        return False

    def observe(self, job: Job, tick: Callable[[str], None]) -> Observation:
        """Run the command and read its result."""
        engine = job.arm.engine
        log, told, printed, progress = (
            os.path.join(job.folder, name) for name in ("log.txt", "job.json", "stdout.txt", "progress.txt")
        )
        places = {"job": told, "folder": job.folder, "result": os.path.join(job.folder, "output.json")}
        if job.site.interpreter is not None:
            places["python"] = job.site.interpreter.executable
        if engine.result is not None:
            places["result"] = below(job.root, _filled(engine.result, places))
        write_job(told, job, {"result": places["result"], "progress": progress})
        env = environment_of(job, {JOB_VARIABLE: told})
        before = _stamp(places["result"])
        program = _program(job.arm, job.root, job.site, env) or engine.command[0]
        try:
            done = run_logged(
                [program, *(_filled(word, places) for word in engine.command[1:])],
                log=log,
                out=printed,
                timeout=engine.timeout,
                cwd=job.root,
                environ=env,
                tick=lambda: tick(progress_of(progress)),
            )
        except OSError as error:
            return Observation(failure=Failure("start", f"{program} cannot be started: {error.strerror}"), log=log)
        failed = failure_of(done, engine.timeout, log)
        written = _stamp(places["result"]) not in (None, before)
        try:
            if written:
                value = _in_file(places["result"])
            elif engine.result is not None:
                raise ValueError(f"{places['result']} was not written")
            else:
                value = last_object(printed)
            seen = read_result(engine.reads, value, metrics=engine.metrics, workload=job.arm.workload)
        except (OSError, ValueError) as error:
            what = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) else str(error)
            return Observation(failure=failed or Failure("result", f"{what}; {said(done, log)}"), log=log)
        return seen._replace(failure=seen.failure or failed, log=log)


def last_object(path: str) -> Any:
    """The last JSON object in a file that begins a line.

    Raises:
        OSError: It cannot be read.
        ValueError: There is none.
    """
    with open_regular(path) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - MOST))
        text = file.read().decode("utf-8", "replace")
    decoder, found, at = json.JSONDecoder(), None, 0
    while (begin := _OBJECT.search(text, at)) is not None:
        try:
            found, at = decoder.raw_decode(text, begin.end())
        except (ValueError, RecursionError):
            at = begin.end() + 1
    if found is None:
        raise ValueError("it printed no JSON object that begins a line of its standard output")
    return found


def _in_file(path: str) -> Any:
    data = read_regular(path, MOST)
    if len(data) > MOST:
        raise ValueError(f"{path} has more than {MOST} bytes")
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        try:  # a line for each run, the last one last, as of `vllm bench serve --append-result`
            return last_object(path)
        except ValueError:
            raise ValueError(f"{path} is no JSON: {error}") from None


def _stamp(path: str) -> tuple[int, int, int] | None:
    """What tells a file that was written from one that lay there before."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _filled(word: str, places: Mapping[str, str]) -> str:
    return _PLACES.sub(lambda found: places.get(found[1], found[0]), word)


def _program(arm: Arm, root: str, site: Site, env: Mapping[str, str]) -> str | None:
    """The program of an arm's command, by its path."""
    if not arm.engine.command:
        return None
    python = "" if site.interpreter is None else site.interpreter.executable
    word = arm.engine.command[0].replace("{python}", python)
    if os.path.dirname(word):
        word = below(root, word)
    return shutil.which(word, path=env.get("PATH", os.defpath))
