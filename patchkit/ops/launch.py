"""Starting a command in the place of patchkit: which interpreter it means, its environment, and the exec."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NoReturn

from patchkit.errors import PatchkitError, UsageError
from patchkit.runtime.ledger import open_regular
from patchkit.runtime.overlay import VARIABLE
from patchkit.runtime.words import isolated
from patchkit.site.interpreter import ask, venv_config

if TYPE_CHECKING:
    from patchkit.site.environment import Site

_PYTHON = re.compile(r"(python|pypy)(\d+(\.\d+)?t?)?(\.exe)?", re.IGNORECASE)


def refuse_nested(environ: Mapping[str, str]) -> None:
    """Refuse to run within a run: the view of the outer one would be neither kept nor gone.

    Raises:
        UsageError: ``nested``.
    """
    outer = environ.get(VARIABLE)
    if outer:
        raise UsageError(
            f"this is inside of `patchkit run` already (${VARIABLE} is {outer})",
            code="nested",
            hint=f"name all patches in one call, `patchkit run --with A --with B -- CMD`; or leave the outer one: "
            f"`env -u {VARIABLE} -u PYTHONPATH patchkit run ...`",
            details={"path": outer},
        )


def environment(site: Site, bundle: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The command's environment: the bundle first on ``PYTHONPATH``, and the site's environment active."""
    env = dict(environ)
    env[VARIABLE] = bundle
    env["PYTHONPATH"] = os.pathsep.join([bundle, env["PYTHONPATH"]] if env.get("PYTHONPATH") else [bundle])
    interpreter = site.interpreter
    if interpreter is not None:
        scripts = os.path.dirname(interpreter.executable)
        before = env.get("PATH", os.defpath)
        if before.split(os.pathsep)[0] != scripts:
            env["PATH"] = os.pathsep.join([scripts, before])
        if venv_config(interpreter.executable) is not None:
            env["VIRTUAL_ENV"] = interpreter.prefix
        else:
            env.pop("VIRTUAL_ENV", None)
    env.pop("__PYVENV_LAUNCHER__", None)  # macOS: the identity of the interpreter that patchkit runs in
    return env


def find_program(site: Site, words: Sequence[str], env: Mapping[str, str]) -> str:
    """The program that ``words`` mean, which can carry the patches.

    Raises:
        UsageError: ``no-command``: there is none; ``other-python``: it is an interpreter of another environment;
            ``isolated``: it is one that is told to read no environment variables.
    """
    program = shutil.which(words[0], path=env.get("PATH", os.defpath))
    if program is None:
        raise UsageError(
            f"there is no program {words[0]}",
            code="no-command",
            hint="what follows `--` is a program and its arguments: patchkit run -- python train.py",
            details={"command": words[0]},
        )
    found = _interpreter(program, words, env)
    if found is not None:
        python, arguments, shown = found
        _refuse_isolated(arguments, shown)
        _refuse_other(site, python, shown, "run", "so that nothing would be patched in it")
    return program


def refuse_other_python(site: Site, words: Sequence[str], env: Mapping[str, str]) -> None:
    """Refuse a command that is an interpreter of another environment than the one that was looked at.

    Raises:
        UsageError: ``other-python``.
    """
    program = shutil.which(words[0], path=env.get("PATH", os.defpath))
    found = None if program is None else _interpreter(program, words, env)
    if found is not None:
        _refuse_other(site, found[0], found[2], "require", "so that what is applied there does not count for it")


def _interpreter(program: str, words: Sequence[str], env: Mapping[str, str]) -> tuple[str, Sequence[str], str] | None:
    """The Python that a command is, or that its first line names; its arguments, and what to call it."""
    if _PYTHON.fullmatch(os.path.basename(program)):
        return program, words[1:], words[0]
    shebang = _shebang(program)
    python = shutil.which(shebang[0], path=env.get("PATH", os.defpath)) if shebang else None
    if python is None or not _PYTHON.fullmatch(os.path.basename(python)):
        return None
    return python, [*shebang[1:], program], f"{program} (by its first line)"


def _refuse_isolated(arguments: Sequence[str], shown: str) -> None:
    letters = isolated(arguments)[0]
    for letter in "IES":
        if letter in letters:
            raise UsageError(
                f"{shown} is started with -{letter}, and does not read what carries the patches "
                f"({'the site module' if letter == 'S' else 'PYTHONPATH'})",
                code="isolated",
                hint=f"leave -{letter} out, or have the patches on disk: patchkit apply",
                details={"option": f"-{letter}"},
            )


def _refuse_other(site: Site, python: str, shown: str, verb: str, why: str) -> None:
    interpreter = site.interpreter
    if interpreter is None or _same(python, interpreter.executable):
        return
    try:
        asked = ask(python)
    except PatchkitError:
        asked = None
    if asked is None or (asked.prefix, asked.version) != (interpreter.prefix, interpreter.version):
        own = "say `python`, which is the site's own here" if verb == "run" else f"say {interpreter.executable}"
        raise UsageError(
            f"{shown} is not the site's interpreter, {why}; that one is {interpreter.executable}",
            code="other-python",
            hint=f"{own}; or name the other one: patchkit --python {python} {verb} ...",
            details={"path": python, "expected": interpreter.executable},
        )


def _same(one: str, other: str) -> bool:
    if os.path.realpath(one) != os.path.realpath(other):
        return False
    configs = [venv_config(os.path.abspath(path)) for path in (one, other)]
    return configs[0] == configs[1] or (None not in configs and len({os.path.realpath(c or "") for c in configs}) == 1)


def _shebang(program: str) -> list[str]:
    """The words of a script's first line: its interpreter (``env`` looked through) and the options."""
    try:
        with open_regular(program) as file:
            line = file.readline(512)
    except OSError:
        return []
    if not line.startswith(b"#!"):
        return []
    words = line[2:].decode("utf-8", "replace").split()
    if words and os.path.basename(words[0]) == "env":
        words = [word for word in words[1:] if word != "-S"]
    return words


def replace_process(program: str, words: Sequence[str], env: Mapping[str, str]) -> NoReturn:
    """Become the command: its exit status, signals and streams are the caller's to see, as if patchkit were not there.

    Raises:
        UsageError: ``no-command``: the system does not run it.
    """
    try:
        if sys.platform == "win32":
            import subprocess

            sys.exit(subprocess.call([program, *words[1:]], env=dict(env)))
        import signal

        for name in ("SIGPIPE", "SIGXFSZ"):  # Python ignores them, and an exec would pass that on
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), signal.SIG_DFL)
        os.execve(program, list(words), dict(env))
    except OSError as error:
        raise UsageError(
            f"{program} cannot be run: {error.strerror}",
            code="no-command",
            hint="check that it is a program for this machine; a script needs a first line with its interpreter",
            details={"command": program},
        ) from None
