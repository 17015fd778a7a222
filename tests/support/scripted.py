"""An engine that gives the numbers that a test wrote down, for the site ``demo`` of :class:`support.bench.Bench`.

It is a program of its own: it sees which arm it is by the code that it imports, writes that down, and prints.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.bench import Bench, Run

PATCH = """\
[[edit]]
file = "demo/core.py"
find = "y = x + x"
replace = "y = 2 * x"
[[edit]]
file = "demo/core.py"
scope = "double"
probe = "double ran"
"""
ENGINE = """\
import json, os, shutil, sys, time
folder, site = sys.argv[1:]
import demo.core
arm = "treatment" if 2 in demo.core.double.__code__.co_consts else "baseline"
plan = json.load(open(os.path.join(folder, "plan.json")))[arm]
told = json.load(open(os.environ["PATCHKIT_JOB"]))
with open(os.path.join(folder, "arms.txt"), "a") as file:
    file.write(arm + (" forbid" if told["forbid"] else "") + "\\n")
calls = open(os.path.join(folder, "arms.txt")).read().split("\\n").count(arm)
mine = plan[min(calls, len(plan)) - 1] if isinstance(plan, list) else plan
mine = dict(mine)
if mine.pop("run", True):
    demo.core.double(1)
if "hand_edit" in mine:
    path = os.path.join(site, "demo", "core.py")
    text = open(path).read()
    os.unlink(path)
    open(path, "w").write(text.replace(*mine.pop("hand_edit")))
if "exit" in mine:
    sys.exit(mine["exit"])
if "sleep" in mine:
    time.sleep(mine.pop("sleep"))
if told["profile"] and os.path.exists(os.path.join(folder, f"{arm}.xplane.pb")):
    os.makedirs(os.path.join(told["folder"], "trace"))
    shutil.copy(os.path.join(folder, f"{arm}.xplane.pb"), os.path.join(told["folder"], "trace", "host.xplane.pb"))
if "log" in mine:
    print(mine.pop("log"), file=sys.stderr)
if told["forbid"] and "forbidden" in mine:
    mine["failure"] = {"kind": "compiled", "message": mine["forbidden"], "forbidden": True}
mine.pop("forbidden", None)
throughput, ttft = mine.pop("throughput", 1000.0), mine.pop("ttft", 0.25)
good = {
    "schema": 1,
    "metrics": {"throughput": {"value": throughput, "unit": "tokens/s", "samples": [throughput] * 3},
                "ttft": {"value": ttft, "unit": "s", "samples": [ttft] * 3}},
    "tokens": {"asked": 64, "came": 64, "sha256": "ab" * 32, "failed_requests": 0},
    "compilations": {}, "prefix_cache_hit_rate": 0.0, "profiler": False,
    "version_lines": ["engine 1.0"], "versions": {"engine": "1.0"},
}
print(json.dumps({**good, **mine}))
"""


def heed_signals() -> None:
    """What is started in the background, or with nohup, has these ignored, and hands that on."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


class Scripted:
    """A recipe and its engine; ``runs`` keeps the sessions."""

    def __init__(self, bench: Bench, *, patches: str = '["fix"]', more: str = "", protocol: str = "") -> None:
        self.bench = bench
        self.folder = bench.root / "engine"
        self.folder.mkdir()
        self.runs = bench.root / "runs"
        (self.folder / "engine.py").write_text(ENGINE)
        bench.patch("fix", PATCH)
        self.recipe = bench.root / "trial.toml"
        command = json.dumps([sys.executable, str(self.folder / "engine.py"), str(self.folder), str(bench.site)])
        self.recipe.write_text(
            'schema = 1\nname = "trial"\nsummary = "A trial"\n'
            f'patches = {patches}\n[engine]\nkind = "command"\ncommand = {command}\ntimeout = 60\n'
            f"[engine.env]\nPYTHONPATH = {json.dumps(str(bench.site))}\n"
            "[gates]\nthroughput = { min_ratio = 0.97 }\nttft = { max_ratio = 1.10 }\n"
            f'tokens = "identical"\nrecompiles = 0\nprobes = "required"\n{more}[protocol]\n{protocol}'
        )
        self.plan({}, {})

    def plan(self, baseline: Any, treatment: Any) -> None:
        """What each arm does: one object, or a list with one for each call."""
        (self.folder / "plan.json").write_text(json.dumps({"baseline": baseline, "treatment": treatment}))

    @property
    def arms(self) -> str:
        """The processes that were started, a letter for each: B or T, small with compilation forbidden."""
        path = self.folder / "arms.txt"
        lines = path.read_text().splitlines() if path.exists() else []
        return "".join(line[0] if " " in line else line[0].upper() for line in lines)

    def words(self, *options: str) -> list[str]:
        return ["rebench", str(self.recipe), "--runs", str(self.runs), *options]

    def __call__(self, *options: str) -> Run:
        return self.bench(*self.words(*options))

    def json(self, *options: str) -> Run:
        return self.bench.json(*self.words(*options))

    def start(self, *options: str, place: str | None = None, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        """The same as a process of its own; ``place``: where it is to kill itself, see ``killed.py``."""
        head = [sys.executable, str(Path(__file__).with_name("killed.py")), place or "-"]
        words = ["--site", str(self.bench.site), "--patches", str(self.bench.patches), *self.words(*options)]
        return subprocess.Popen(
            [*head, *words],
            env=dict(env),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=heed_signals if sys.platform != "win32" else None,
        )

    @property
    def session(self) -> Path:
        """The folder of the only session."""
        (found,) = self.runs.iterdir()
        return found
