"""What ``patchkit run`` costs each process that it starts, beside the same process without it.

    python benchmarks/running.py [--quick] [--json]

Every row is the CPU time of one fresh process as a multiple of another's, which is run in turn with it. Warm: bytecode
is there, as from the second start on. Cold: the first start, which compiles the patched modules. Writes nothing outside
a temporary directory and always exits 0: benchmarks inform, they gate nothing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence

from measure import Row, cpu_seconds, environment, make_dist, report, settle, source, versions, write_patch

MODULES = 20
FUNCTIONS = 320  # of the large module: 140 kB


class Case:
    """A package of a large module and some small ones, on three sites: bare, patched on disk, and to be run."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.patches = os.path.join(root, "patches")
        self.script = os.path.join(root, "command.py")
        with open(self.script, "w", encoding="utf-8") as file:
            file.write("import os, sys; sys.path.insert(0, os.environ['REPOSITORY'])\n")
            file.write("from patchkit.cli.main import entrypoint; entrypoint()\n")
        files = {f"demo/module_{n}.py": source(10, start=n).encode() for n in range(MODULES)}
        files["demo/large.py"] = source(FUNCTIONS).encode()
        files["demo/__init__.py"] = "".join(f"from . import module_{n}\n" for n in range(MODULES)).encode()
        for name in ("bare", "disk"):
            make_dist(self.site(name), "demo", files)
        edits = [
            {"file": "demo/large.py", "find": "    return value_7_0\n", "replace": "    return value_7_1\n"},
            {"file": "demo/module_3.py", "find": "    return value_7_0\n", "replace": "    return value_7_1\n"},
        ]
        write_patch(self.patches, "patch", "demo", edits)
        settle()
        self.patchkit("disk", "apply", "patch")
        shown = self.patchkit(
            "bare", "run", "--with", "patch", "--", sys.executable, "-c", "import os; print(os.environ['PATCHKIT_RUN'])"
        )
        self.bundle = shown.strip()

    def site(self, name: str) -> str:
        return os.path.join(self.root, name)

    def env(self, site: str | None, *, run: bool = False) -> dict[str, str]:
        """The environment of a measured process."""
        path = [*([self.bundle] if run else []), *([self.site(site)] if site else [])]
        env = {**environment(), "PYTHONPATH": os.pathsep.join(path)}
        return {**env, "PATCHKIT_RUN": self.bundle} if run else env

    def patchkit_env(self) -> dict[str, str]:
        return {
            **environment(),
            "PYTHONPATH": "",
            "REPOSITORY": environment()["PYTHONPATH"],
            "PATCHKIT_CACHE": self.site("cache"),
        }

    def command(self, site: str, *words: str) -> list[str]:
        return [sys.executable, self.script, "--site", self.site(site), "--patches", self.patches, *words]

    def patchkit(self, site: str, *words: str) -> str:
        """Run a command line; what it printed."""
        done = subprocess.run(
            self.command(site, *words),
            cwd=self.root,
            env=self.patchkit_env(),
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    def forget(self) -> None:
        """Remove the bytecode of everything patched, and of the overlay: the next start is the first."""
        for folder, _, _ in list(os.walk(self.bundle)):
            if os.path.basename(folder) == "__pycache__":
                shutil.rmtree(folder)
        for name in ("large", "module_3"):
            for site in ("bare", "disk"):
                folder = os.path.join(self.site(site), "demo", "__pycache__")
                for file in os.listdir(folder) if os.path.isdir(folder) else ():
                    if file.startswith(f"{name}."):
                        os.unlink(os.path.join(folder, file))


def in_turn(
    one: tuple[Sequence[str], Mapping[str, str]],
    other: tuple[Sequence[str], Mapping[str, str]],
    *,
    cwd: str,
    repeat: int,
    before: Callable[[], object] | None = None,
) -> tuple[float, float]:
    """CPU seconds of two processes, the minimum of each; ``before`` is called before each run."""
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(repeat + 1):
        for (command, env), found in zip((one, other), times, strict=True):
            if before is not None:
                before()
            seconds = cpu_seconds(command, cwd=cwd, env=env)
            if number:
                found.append(seconds)
    return min(times[0]), min(times[1])


def measure(root: str, repeat: int) -> list[Row]:
    case = Case(root)
    nothing = [sys.executable, "-c", "pass"]
    load = [sys.executable, "-c", "import demo.large"]
    bare, disk, run = case.env("bare"), case.env("disk"), case.env("bare", run=True)
    elsewhere = case.env(None, run=True)
    rows = []

    def row(
        name: str,
        one: tuple[Sequence[str], Mapping[str, str]],
        other: tuple[Sequence[str], Mapping[str, str]],
        before: Callable[[], object] | None = None,
    ) -> None:
        first, second = in_turn(one, other, cwd=root, repeat=repeat, before=before)
        rows.append(Row(name, first / second, "x", None, f"{first * 1000:.1f} ms against {second * 1000:.1f} ms"))

    row("python -c pass, in a run / bare", (nothing, run), (nothing, bare))
    row("the same, an interpreter of another site", (nothing, elsewhere), (nothing, case.env(None)))
    row("import of patched modules, warm, in a run / bare", (load, run), (load, bare))
    row("the same / applied on disk", (load, run), (load, disk))
    row("import of patched modules, cold, in a run / bare", (load, run), (load, bare), case.forget)
    row("the same / applied on disk", (load, run), (load, disk), case.forget)
    words = ("run", "--with", "patch", "--quiet", "--", *nothing)
    row("patchkit run -- python -c pass / bare", (case.command("bare", *words), case.patchkit_env()), (nothing, bare))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer runs")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="patchkit-running-") as root:
        rows = measure(os.path.realpath(root), 5 if arguments.quick else 25)
    report(rows, as_json=arguments.json, more=versions())


if __name__ == "__main__":
    main()
