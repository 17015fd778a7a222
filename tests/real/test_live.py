"""A probe in a real released wheel, put there by the command, and a job with processes of every start method."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_shipped_patches import run

pytestmark = pytest.mark.real

PATCH = """\
schema = 1
name = "seen"
summary = "Says when versions are parsed and specifiers filtered"
[target]
requirement = "packaging==24.1"
[[edit]]
file = "packaging/version.py"
scope = "parse"
probe = "parse ran"
[[edit]]
file = "packaging/specifiers.py"
scope = "SpecifierSet.filter"
probe = "filter ran"
"""
# The parent imports neither module; one child of each method parses, one only loads, and the last waits to be killed.
JOB = """
    import multiprocessing, sys, time

    def work(does):
        from packaging.version import parse
        import packaging.specifiers
        if does != "load":
            parse("1.0")
        if does == "wait":
            print("waiting", flush=True)
            time.sleep(600)

    if __name__ == "__main__":
        methods = multiprocessing.get_all_start_methods()
        jobs = [
            multiprocessing.get_context(method).Process(target=work, args=(does,), name=f"{method}-{does}")
            for method in methods for does in ("load", "parse")
        ]
        [job.start() for job in jobs]
        [job.join() for job in jobs]
        last = multiprocessing.get_context("spawn").Process(target=work, args=("wait",), name="EngineCore_0")
        last.start()
        last.join()
        print(last.exitcode, flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="--pid")
def test_a_job_with_many_processes(
    tmp_path: Path, wheel: Callable[[str, str], Path], install: Callable[[Path, Path], Path]
) -> None:
    site = install(wheel("packaging", "24.1"), tmp_path / "site-packages")
    (tmp_path / "patches").mkdir()
    (tmp_path / "patches" / "seen.toml").write_text(PATCH)
    named = ["--patches", str(tmp_path / "patches")]
    assert run(site, *named, "apply", "seen").status == 0
    (tmp_path / "job.py").write_text(textwrap.dedent(JOB))
    environment = {**os.environ, "PYTHONPATH": str(site), "PATCHKIT_PROBES": str(tmp_path / "probes"), "RANK": "2"}
    job = subprocess.Popen(
        [sys.executable, "job.py"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    try:
        assert job.stdout is not None
        assert job.stdout.readline() == "waiting\n"
        # While it runs: only the waiting one is left of the workers.
        now = run(site, "live", "--pid", str(job.pid))
        assert now.status == 1
        (patch,) = now.answer["patches"]
        assert (patch["state"], [probe["state"] for probe in patch["probes"]]) == ("partly", ["ran", "loaded"])
        (engine,) = patch["probes"][0]["processes"]
        assert (engine["role"], engine["ranks"], engine["parent"]) == ("EngineCore_0", {"RANK": "2"}, job.pid)
        assert {item["state"] for item in now.answer["processes"]} == {"known"}
        os.kill(engine["pid"], signal.SIGKILL)
        assert job.stdout.readline() == f"-{signal.SIGKILL.value}\n"
        _, errors = job.communicate(timeout=60)
    finally:
        job.kill()
    assert job.returncode == 0, errors

    after = run(site, "live", "--probes", str(tmp_path / "probes"))
    assert after.status == 1
    parse, filtered = after.answer["patches"][0]["probes"]
    methods = ("fork", "spawn", "forkserver")
    assert roles(parse, ran=True) == sorted(["EngineCore_0", *(f"{method}-parse" for method in methods)])
    assert roles(parse, ran=False) == sorted(f"{method}-load" for method in methods)
    assert roles(filtered, ran=True) == []
    lines = [line for line in errors.splitlines() if line.startswith("[patchkit] probe patch=seen edit=1 ")]
    assert len(lines) == len(set(lines)) == 4

    # The other probe runs in a later process of the same job, which a waiting command notices.
    script = "import time; time.sleep(1); from packaging.specifiers import *; list(SpecifierSet('>1').filter(['2']))"
    later = subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path, env=environment, stderr=subprocess.DEVNULL)
    began = time.monotonic()
    done = run(site, "live", "seen", "--probes", str(tmp_path / "probes"), "--wait", "60")
    assert (done.status, done.answer["patches"][0]["state"]) == (0, "ran")
    assert time.monotonic() - began < 60
    assert later.wait(60) == 0


def roles(probe: dict[str, Any], *, ran: bool) -> list[str]:
    return sorted(item["role"] for item in probe["processes"] if (item["ran"] is not None) == ran)
