"""patchkit beside the tools that change installed packages otherwise: times, kills, links, hand edits, upgrades.

One change of one file and one of 262 files, on the released wheel of tpu-inference 0.23.0 in throwaway environments.
Every tool is used as its own documentation says; those that are not installed are fetched by pip and npm into
``--cache``, what cannot be had is left out and named. Times are CPU time of the whole process tree, the least of the
rounds, as multiples of patchkit's own in the same run. It needs a POSIX system, and an index for the wheels.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time

from rivals import NODE_TOOLS, PYTHON_TOOLS, TOOLS, Tool
from scene import BASE, FILES, LAST, NEXT, Stage
from trials import VERBS, Bench, relative


def main() -> None:
    """Fetch, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    folder = os.path.join(tempfile.gettempdir(), "patchkit-peers")
    parser.add_argument("--cache", default=folder, help="wheels and tools, kept for the next time")
    parser.add_argument("--python", default=sys.executable, help="makes the environments; makepatch needs 3.13")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--tool", action="append", choices=[tool.name for tool in TOOLS], help="default: all")
    arguments = parser.parse_args()
    own = os.path.join(arguments.cache, "tools")
    install(own, arguments.python)
    begun = time.monotonic()

    def say(text: str) -> None:
        print(f"[{time.monotonic() - begun:6.0f} s] {text}", file=sys.stderr, flush=True)

    tools: dict[str, Tool] = {}
    versions: dict[str, str] = {}
    for kind in TOOLS:
        tool = kind(own)
        version = tool.version()
        if arguments.tool and tool.name not in ("patchkit", *arguments.tool):
            continue
        if version is None:
            say(f"left out: {tool.name} is not here")
            continue
        tools[tool.name], versions[tool.name] = tool, version
    with tempfile.TemporaryDirectory() as scratch:
        stage = Stage(scratch, arguments.python, arguments.cache)
        bench = Bench(stage, arguments.rounds, arguments.kills, say)
        measure(bench, tools, versions)


def install(own: str, python: str) -> None:
    """The tools that pip and npm have, each at its newest release that this Python can run; failures leave them out."""
    target = os.path.join(own, "python")
    if not os.path.exists(target):
        subprocess.run([python, "-m", "venv", target], check=True)
        for name in PYTHON_TOOLS:
            subprocess.run([os.path.join(target, "bin", "pip"), "install", "-q", name], check=False)
    target = os.path.join(own, "node")
    if not os.path.exists(target) and shutil.which("npm"):
        os.makedirs(target)
        with open(os.path.join(target, "package.json"), "w", encoding="utf-8") as file:
            file.write("{}")
        subprocess.run(["npm", "install", "--silent", *NODE_TOOLS], cwd=target, check=False)


def measure(bench: Bench, tools: dict[str, Tool], versions: dict[str, str]) -> None:
    """Print the tables."""
    times = {name: bench.times(tool) for name, tool in tools.items()}
    head = [f"{verb}, {count}" for count in ("1 file", f"{FILES} files") for verb in VERBS]
    keys = [(verb, name) for name in ("one", "many") for verb in VERBS]
    columns = [relative(times, key) for key in keys]
    rows = [[name, *(column[name] for column in columns)] for name in tools]
    print(f"CPU time of the process tree, in multiples of patchkit's (least of {bench.rounds}); -: no such command")
    table(["tool", *head], rows)
    head = [f"killed: {word}" for word in ("old", "new", "mixed", "lost")] + ["next apply heals"]
    rows = []
    for name, tool in tools.items():
        after, again = bench.killed(tool)
        healed = f"{again['healed']} of {again.total()}"
        rows.append([name, *(str(after[word]) for word in ("old", "new", "mixed", "lost")), healed])
    print(f"\nkill -9 while {FILES} files are patched, {bench.kills} times: what the files then hold")
    table(["tool", *head], rows)
    rows = []
    for name, tool in tools.items():
        bench.say(f"{name}: links, hand edits, upgrades")
        cells = [bench.twin(tool), bench.put_back(tool), bench.edited(tool)]
        rows.append([name, versions[name], *cells, *(bench.upgraded(tool, version) for version in (NEXT, LAST))])
    print(
        f"\nthe patch of {BASE}: links, hand edits, and later releases (renamed to them where the name has a version)"
    )
    table(["tool", "version", "hard-linked twin", "put back by hand", "hand edit, revert", NEXT, LAST], rows)
    print(f"\n{time.strftime('%Y-%m-%d')}, {platform.system()}, Python {platform.python_version()}")


def table(head: list[str], rows: list[list[str]]) -> None:
    """Print an aligned table."""
    widths = [max(len(row[at]) for row in [head, *rows]) for at in range(len(head))]
    for first, *rest in [head, *rows]:
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))]
        print("  ".join(cells).rstrip(), flush=True)


if __name__ == "__main__":
    main()
