"""What the benchmarks share: the CPU time of fresh processes, throwaway sites, and tables of ratios.

A wall clock tells how busy the machine is. CPU time, the minimum of several processes, and the same for a bare
interpreter measured in turn with it, tell what the program costs; so every number that counts is a ratio.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

#: What pip and uv write as a console script, for a checkout that is not installed.
_SCRIPT = """\
import sys
from patchkit.cli.main import entrypoint
if __name__ == "__main__":
    sys.exit(entrypoint())
"""


class Row(NamedTuple):
    """One line of a table; ``value`` and ``bar`` are in ``unit``. Without a bar the row only informs."""

    name: str
    value: float
    unit: str
    bar: float | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the bar is met; None where there is none."""
        return None if self.bar is None else self.value <= self.bar


def environment() -> dict[str, str]:
    """The environment of every measured process: bytecode is cached, nothing names another site, the checkout imports.

    A variable such as ``PYTHONDONTWRITEBYTECODE`` would measure the compiler.
    """
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PATCHKIT_")) and k != "VIRTUAL_ENV"}
    return {**kept, "PYTHONPATH": REPOSITORY}


def cpu_seconds(
    command: Sequence[str],
    *,
    cwd: str,
    status: int | None = 0,
    output: str | None = None,
    env: Mapping[str, str] | None = None,
) -> float:
    """Run one process and return its user and system time.

    Args:
        command: The command line.
        cwd: Its working directory.
        status: The exit status that it must have; None: any.
        output: A file that takes its standard output and error; None: they are dropped.
        env: Its environment; :func:`environment` by default.

    Raises:
        RuntimeError: It ended with another status.
    """
    with open(output or os.devnull, "wb") as sink:
        process = subprocess.Popen(command, cwd=cwd, env=env or environment(), stdout=sink, stderr=subprocess.STDOUT)
        _, ended, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(ended)
    if status is not None and process.returncode != status:
        raise RuntimeError(f"{' '.join(command)[:300]} ended with {process.returncode}, not {status}")
    return usage.ru_utime + usage.ru_stime


def ratio_to_bare(
    command: Sequence[str],
    *,
    cwd: str,
    repeat: int,
    reset: Callable[[], object] | None = None,
    status: int = 0,
) -> tuple[float, float]:
    """The CPU time of ``command`` as a multiple of ``python -c pass``, and in seconds; minima of ``repeat`` processes.

    The two are run in turn, so that a busy minute on the machine hits both. ``reset`` undoes what the command did; it
    is called before each run. One run before the first fills the caches.
    """
    bare, full = [], []
    for number in range(repeat + 1):
        if reset is not None:
            reset()
        seconds = cpu_seconds(command, cwd=cwd, status=status)
        base = cpu_seconds([sys.executable, "-c", "pass"], cwd=cwd)
        if number:
            full.append(seconds)
            bare.append(base)
    return min(full) / min(bare), min(full)


def patchkit_command(folder: str) -> list[str]:
    """The console script: the installed one of this interpreter, else one like it, written to ``folder``."""
    installed = os.path.join(os.path.dirname(sys.executable), "patchkit")
    if os.path.isfile(installed):
        return [installed]
    script = os.path.join(folder, "patchkit-script")
    with open(script, "w", encoding="utf-8") as file:
        file.write(_SCRIPT)
    return [sys.executable, script]


def make_dist(site: str, name: str, files: Mapping[str, bytes], version: str = "1.0") -> None:
    """Install a distribution as pip would: its files, METADATA, INSTALLER and RECORD."""
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    contents = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{info}/INSTALLER": b"pip\n",
    }
    rows = []
    for path, data in contents.items():
        target = os.path.join(site, *path.split("/"))
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.write(data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(data)}\n")
    with open(os.path.join(site, info, "RECORD"), "w", encoding="utf-8") as file:
        file.write("".join([*rows, f"{info}/RECORD,,\n"]))


def write_patch(folder: str, name: str, requirement: str, edits: Sequence[Mapping[str, object]]) -> str:
    """Write ``<name>.toml`` to ``folder`` and return its path. JSON strings are TOML strings as well."""
    lines = ["schema = 1", f'name = "{name}"', 'summary = "a benchmark"', "[target]", f'requirement = "{requirement}"']
    for edit in edits:
        lines.append("[[edit]]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in edit.items()]
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{name}.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return path


def source(functions: int, *, lines: int = 8, start: int = 0) -> str:
    """Python source: ``functions`` of ``lines`` statements, every name and constant in it different."""
    out = ['"""Generated."""\n']
    for number in range(start, start + functions):
        out.append(f"\n\ndef function_{number}(first, second=None):\n")
        out += [f"    value_{number}_{line} = first.method(second, {number * 100 + line})\n" for line in range(lines)]
        out.append(f"    return value_{number}_0\n")
    return "".join(out)


def settle() -> None:
    """Wait until what was just written is older than the clock's tick: a stat within it proves nothing (racy git)."""
    time.sleep(0.05)


def versions() -> dict[str, str]:
    """What was measured, on what: for the heading of a table."""
    found = {"date": time.strftime("%Y-%m-%d"), "python": sys.version.partition(" ")[0], "platform": sys.platform}
    for tool in ("git", "patch"):
        path = shutil.which(tool)
        if path is not None:
            done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
            found[tool] = done.stdout.partition("\n")[0]
    return found


def report(rows: Sequence[Row], *, as_json: bool, more: Mapping[str, Any]) -> int:
    """Print a table, or one JSON object; return the number of bars that are not met."""
    missed = sum(row.met is False for row in rows)
    if as_json:
        listed = [{**row._asdict(), "met": row.met} for row in rows]
        print(json.dumps({"schema": 1, **more, "rows": listed, "missed": missed}, indent=1))
        return missed
    print("  ".join(f"{key} {value}" for key, value in more.items()))
    width = max(len(row.name) for row in rows)
    print(f"{'':{width}}  {'measured':>10}  {'bar':>7}")
    for row in rows:
        bar = "" if row.bar is None else f"{row.bar:g}{row.unit}"
        verdict = {True: "met", False: "MISSED", None: ""}[row.met]
        line = f"{row.name:{width}}  {f'{row.value:.2f}{row.unit}':>10}  {bar:>7}  {verdict:6}  {row.note}"
        print(line.rstrip())
    return missed
