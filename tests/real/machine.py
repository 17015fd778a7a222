"""A machine for the tests of drift: an environment by the real pip or the real uv, a project, and a shell."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from support.bench import CORE, DEMO
from support.dists import make_wheel

ROOT = Path(__file__).resolve().parents[2]

TWICE = "y = x + x"
RELEASES: dict[str, dict[str, str | bytes]] = {
    "1.0": dict(DEMO),
    "1.1": {**DEMO, "demo/core.py": CORE.replace("A module", "A newer module")},
    "2.0": {**DEMO, "demo/core.py": CORE.replace(TWICE, "y = 2 * x")},
    "3.0": {**DEMO, "demo/core.py": CORE.replace(TWICE, "y = x << 1")},
}
REBUILT = {**DEMO, "demo/core.py": CORE.replace("A module", "Another build")}


def found_uv() -> str:
    beside = Path(sys.executable).with_name("uv")
    uv = str(beside) if beside.exists() else shutil.which("uv")
    assert uv is not None, "uv is one of the development requirements"
    return uv


class Tools(NamedTuple):
    """What all machines share: the index as folders of wheels, an environment with pip, commands, variables."""

    links: Path
    rebuilt: Path
    with_pip: Path
    environment: dict[str, str]


def make_tools(root: Path) -> Tools:
    """The wheels, the environment with pip, the commands, below ``root``."""
    for version, files in RELEASES.items():
        make_wheel(root / "links", "demo", version, files)
    make_wheel(root / "rebuilt", "demo", "1.0", REBUILT)
    subprocess.run([sys.executable, "-m", "venv", root / "with-pip"], check=True)
    shim = root / "bin" / "patchkit"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m patchkit "$@"\n')
    shim.chmod(0o755)
    (root / "bin" / "uv").symlink_to(found_uv())
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_", "PATCHKIT_"))}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    kept.pop("VIRTUAL_ENV", None)
    environment = {
        **kept,
        "PYTHONPATH": str(ROOT),
        "PATH": f"{root / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "PIP_NO_INDEX": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_ROOT_USER_ACTION": "ignore",
        "UV_NO_INDEX": "1",
        "UV_NO_CONFIG": "1",
        "UV_CACHE_DIR": str(root / "uv-cache"),
        "UV_PYTHON_DOWNLOADS": "never",
    }
    return Tools(root / "links", root / "rebuilt", root / "with-pip", environment)


class Done(NamedTuple):
    """One command typed."""

    status: int
    out: str
    err: str


class Machine:
    """An environment with demo 1.0 by pip or by uv, a project beside it, and a shell in the project's folder."""

    def __init__(self, root: Path, tools: Tools, *, pip: bool) -> None:
        self.root, self.tools, self.pip = root, tools, pip
        self.venv, self.work = root / "venv", root / "work"
        (self.work / "patches").mkdir(parents=True)
        self.make()

    def make(self, *, python: str = sys.executable) -> None:
        """An empty environment."""
        if self.pip and python == sys.executable:
            subprocess.run(["cp", "-a", self.tools.with_pip, self.venv], check=True)
        else:
            self.run(f"uv venv -q --python {shlex.quote(python)} {self.venv}")

    @property
    def site(self) -> Path:
        [found] = [path for path in self.venv.glob("lib/python3*/site-packages") if not path.parent.is_symlink()]
        return found

    @property
    def state(self) -> Path:
        return self.site / ".patchkit"

    @property
    def core(self) -> Path:
        return self.site / "demo" / "core.py"

    def type(self, command: str, **more: str) -> Done:
        """A line in the shell."""
        links = {"PIP_FIND_LINKS": str(self.tools.links), "UV_FIND_LINKS": str(self.tools.links)}
        own = {"PATCHKIT_PYTHON": str(self.venv / "bin/python"), "PATCHKIT_CACHE": str(self.root / "cache")}
        environment = {**self.tools.environment, **links, **own, **more}
        done = subprocess.run(command, shell=True, cwd=self.work, env=environment, capture_output=True, text=True)
        assert "Traceback" not in done.stderr, done.stderr
        return Done(done.returncode, done.stdout, done.stderr)

    def run(self, command: str, **more: str) -> str:
        """A line that must do."""
        done = self.type(command, **more)
        assert done.status == 0, (command, done)
        return done.out

    def json(self, command: str) -> tuple[int, Any]:
        """The status and the object of a command of patchkit."""
        done = self.type(f"patchkit --json {command}")
        return done.status, json.loads(done.out)

    def install(self, version: str, *options: str, links: Path | None = None) -> None:
        """By the machine's own installer."""
        python = self.venv / "bin" / "python"
        how = f"{python} -m pip install -q" if self.pip else f"uv pip install -q --python {python}"
        more = {} if links is None else {"PIP_FIND_LINKS": str(links), "UV_FIND_LINKS": str(links)}
        self.run(f"{how} {' '.join(options)} demo=={version}", **more)

    def uninstall(self) -> None:
        python = self.venv / "bin" / "python"
        self.run(f"{python} -m pip uninstall -qy demo" if self.pip else f"uv pip uninstall -q --python {python} demo")

    def patch(self, body: str, name: str = "double", requirement: str = "demo", target: str = "") -> None:
        text = f'schema = 1\nname = "{name}"\nsummary = "the patch {name}"\n'
        path = self.work / "patches" / f"{name}.toml"
        path.write_text(f'{text}[target]\nrequirement = "{requirement}"\n{target}\n{body}')

    def project(self, *names: str) -> None:
        (self.work / "pyproject.toml").write_text(f"[tool.patchkit]\napply = {json.dumps(list(names))}\n")

    def check(self, name: str) -> tuple[int, str, str]:
        """Status, state and reason (or the error's code and words)."""
        status, answer = self.json("check")
        if answer["error"] is not None:
            return status, answer["error"]["code"], f"{answer['error']['message']}; {answer['error']['hint']}"
        found = {patch["name"]: patch for patch in answer["patches"]}
        if name not in found:
            return status, "", ""
        damage = answer["damage"]
        hint = "" if damage is None else f" {damage['hint']}"
        return status, found[name]["state"], (found[name]["reason"] or "") + hint
