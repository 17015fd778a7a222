"""``patchkit run`` on released wheels: memory gives the very bytes that the next release, or ``apply``, has.

The expected bytes never come from ``run``: see :mod:`released`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from released import REPOSITORY, Case, load_cases, patchkit, snapshot, wheel_bytes

pytestmark = pytest.mark.real

Wheel = Callable[[str, str], Path]
Install = Callable[[Path, Path], Any]

#: Finds each module as an import does, without running its package, which may lack what it depends on.
LOOK = """
import hashlib, importlib.machinery, json, os, sys
site, found = sys.argv[1], {}
for path in sys.argv[2:]:
    folder, file = os.path.split(os.path.join(site, *path.split("/")))
    name = file[:-3]
    if name == "__init__":
        folder, name = os.path.split(folder)
    spec = importlib.machinery.PathFinder.find_spec(name, [folder])
    data = spec.loader.get_data(spec.origin)
    try:
        named = spec.loader.get_code(name).co_filename
    except SyntaxError as error:
        named = error.filename
    same = open(named, "rb").read() == data
    found[path] = [hashlib.sha256(data).hexdigest(), same, os.path.relpath(spec.origin, site).replace(os.sep, "/")]
print(json.dumps(found))
"""


def _cases() -> list[Any]:
    return [
        pytest.param(case, version, id=f"{case.name}-on-{version}", marks=[pytest.mark.slow] if case.slow else [])
        for case in load_cases()
        for version in case.versions
        if not case.wheel_for and not case.mends_syntax
    ]


def run(
    site: Path, patches: Path, names: list[str], *command: str, options: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(site)])}
    start = [sys.executable, "-m", "patchkit", "--site", str(site), "--patches", str(patches), "run", "--quiet"]
    words = [word for name in names for word in ("--with", name)]
    return subprocess.run(
        [*start, *words, *options, "--", *command], cwd=site.parent, env=env, capture_output=True, text=True
    )


def expected(case: Case, site: Path, wheel: Wheel) -> dict[str, bytes]:
    if case.becomes is not None:
        released = wheel(case.distribution, case.becomes)
        return {path: wheel_bytes(released, path) for path in case.files}
    out = {}
    for path in case.files:
        out[path] = (site / path).read_bytes()
        for change in case.changes(path):
            out[path] = change.apply(out[path])
    return out


@pytest.mark.parametrize(("case", "version"), _cases())
def test_memory_has_what_the_next_release_has(
    case: Case, version: str, wheel: Wheel, install: Install, tmp_path: Path
) -> None:
    site = install(wheel(case.distribution, version), tmp_path / "site-packages")
    wanted = expected(case, site, wheel)
    before = snapshot(site)
    files = [path for path in wanted if path.endswith(".py") and ".data/" not in path]
    done = run(site, case.patches, [case.name], sys.executable, "-W", "ignore", "-c", LOOK, str(site), *files)
    if len(files) < len(wanted):  # a script, a text: who opens it opens the disk's
        assert (done.returncode, "is no module" in done.stderr) == (4, True), done
    else:
        assert done.returncode == 0, done
        hashes = {path: [sha256(data).hexdigest(), True, path] for path, data in wanted.items()}
        assert json.loads(done.stdout) == hashes
    assert snapshot(site) == before
    assert not (site / ".patchkit").exists()


@pytest.mark.parametrize("name", ["logits-greedy", "logits-greedy-naive", "rpa-block-size"])
def test_the_shipped_patches(name: str, wheel: Wheel, install: Install, tmp_path: Path) -> None:
    archive = wheel("tpu-inference", "0.24.0")
    memory, disk = (install(archive, tmp_path / kind / "site-packages") for kind in ("memory", "disk"))
    for site in (memory, disk):  # what their guards ask for
        for needed in ("jax-0.10.2", "vllm_tpu-0.24.0"):
            info = site / f"{needed}.dist-info"
            info.mkdir()
            project, version = needed.replace("_", "-").rsplit("-", 1)
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n")
    before = snapshot(memory)
    known_bad = ["--allow-known-bad"] if name.endswith("naive") else []
    applied = patchkit(disk, REPOSITORY / "patches", "apply", name, *known_bad)
    assert applied.status == 0, applied.answer
    files = {file["path"]: file["after_sha256"] for file in applied.answer["patches"][0]["files"]}
    command = [sys.executable, "-c", LOOK, str(memory), *files]
    if known_bad:
        assert run(memory, REPOSITORY / "patches", [name], *command).returncode == 3
    done = run(memory, REPOSITORY / "patches", [name], *command, options=known_bad)
    assert json.loads(done.stdout) == {path: [digest, True, path] for path, digest in files.items()}
    assert snapshot(memory) == before


ECHO = """\
schema = 1
name = "click-echo"
summary = "echo what would be echoed"
[target]
requirement = "click==8.1.7"
[[edit]]
file = "click/utils.py"
scope = "echo"
find = "    if file is None:\\n        if err:\\n"
replace = '''
    if message == "boom":
        raise RuntimeError("boom in memory")
    if message == "where":
        message = "in memory"
    if file is None:
        if err:
'''
[[edit]]
file = "click/utils.py"
scope = "echo"
probe = "echo ran"
"""
TOOL = """
import concurrent.futures, inspect, multiprocessing, sys, traceback
import click
from click.testing import CliRunner

@click.command()
@click.argument("text")
def main(text):
    click.echo(text)

def work(text):
    return CliRunner().invoke(main, [text]).output

if __name__ == "__main__":
    for method in multiprocessing.get_all_start_methods():
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as pool:
            print(method, pool.submit(work, "where").result().splitlines()[-1])
    print("source", "boom in memory" in inspect.getsource(click.echo), "boom" in inspect.getsource(click.utils))
    print("file", click.utils.__file__)
    main(["boom"])
"""


def test_a_real_command_line_in_a_real_environment(wheel: Wheel, install: Install, tmp_path: Path) -> None:
    home = tmp_path / "env"
    venv.create(home, with_pip=False, symlinks=os.name != "nt")
    site = next(home.glob("**/site-packages"))
    install(wheel("click", "8.1.7"), site)
    patches, probes, work = tmp_path / "patches", tmp_path / "probes", tmp_path / "work"
    for folder in (patches, work):
        folder.mkdir()
    (patches / "click-echo.toml").write_text(ECHO)
    (work / "tool.py").write_text(TOOL)
    before = snapshot(site)
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY), "PATCHKIT_PROBES": str(probes)}
    start = [sys.executable, "-m", "patchkit", "--python", str(home), "--patches", str(patches)]
    command = [*start, "run", "--with", "click-echo", "--", "python", "-W", "ignore", "tool.py"]
    done = subprocess.run(command, cwd=work, env=env, capture_output=True, text=True)
    assert done.returncode == 1
    methods = ["fork", "spawn", "forkserver"] if os.name == "posix" else ["spawn"]
    assert sorted(done.stdout.splitlines()) == sorted(
        [
            *(f"{method} in memory" for method in methods),
            "source True True",
            f"file {site / 'click' / 'utils.py'}",
        ]
    )
    assert '    raise RuntimeError("boom in memory")\nRuntimeError: boom in memory\n' in done.stderr
    assert done.stderr.startswith("run: click-echo in memory: 1 module; the site stays as it is\n")
    assert snapshot(site) == before
    reports = [json.loads(path.read_text()) for path in probes.glob("*.json")]
    assert len(reports) == len({report["pid"] for report in reports}) == len(methods) + 1
    assert {(report["patch"], report["module"], report["text"]) for report in reports} == {
        ("click-echo", "click.utils", "echo ran")
    }
