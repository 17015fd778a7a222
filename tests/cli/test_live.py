"""The command line of ``live`` and ``require``, on jobs that really run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.bench import Bench

ROOT = Path(__file__).parents[2]
PROBE = '[[edit]]\nfile = "demo/core.py"\nscope = "double"\nprobe = "double ran"\n'
RUN = '[[edit]]\nfile = "demo/core.py"\nscope = "Worker.run"\nprobe = "run ran"\n'
PLAIN = '[[edit]]\nfile = "demo/util.py"\nfind = "Y = 2"\nreplace = "Y = 3"\n'
linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc")


@pytest.fixture
def probes(bench: Bench) -> Path:
    return bench.root / "probes"


def job(bench: Bench, script: str, probes: Path | None) -> subprocess.Popen[str]:
    environment = {key: value for key, value in os.environ.items() if key != "PATCHKIT_PROBES"}
    if probes is not None:
        environment["PATCHKIT_PROBES"] = str(probes)
    text = f"import sys; sys.path.insert(0, {str(bench.site)!r})\n{script}"
    return subprocess.Popen(
        [sys.executable, "-c", text], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def finish(process: subprocess.Popen[str]) -> None:
    process.communicate("", timeout=60)
    assert process.returncode == 0


@pytest.fixture
def waiting(bench: Bench) -> Iterator[Any]:
    """``waiting(script, probes)``: a job that has run ``script`` and waits until the test is over."""
    started = []

    def start(script: str, probes: Path | None) -> int:
        process = job(bench, f"{script}\nprint('ready', flush=True)\nsys.stdin.read()", probes)
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process.pid

    yield start
    for process in started:
        process.communicate("", timeout=60)


def test_a_finished_job(bench: Bench, probes: Path) -> None:
    bench.patch("p", PROBE + RUN)
    bench.patch("plain", PLAIN)
    assert bench("apply", "p", "plain").status == 0
    finish(job(bench, "import demo.core; demo.core.double(1)", probes))
    done = bench("live", "--probes", str(probes), "p")
    assert done.status == 1
    head, first, run, second, loaded = done.out.splitlines()
    assert head.split() == ["p", "partly", "demo", "1.0"]
    assert first.split() == ["edit", "1", "ran", "double"]
    assert run.split()[2:4] == ["main:", "ran"]
    assert second.split() == ["edit", "2", "loaded", "Worker.run"]
    assert loaded.endswith(", did not run")
    finish(job(bench, "import demo.core; demo.core.Worker().run(1)", probes))
    assert bench("live", "--probes", str(probes), "p").status == 0
    both = bench.json("live", "--probes", str(probes))
    assert both.status == 1
    assert [(patch["name"], patch["state"]) for patch in both.json["patches"]] == [("p", "ran"), ("plain", "no-probe")]
    assert "add [[edit]]" in bench("live", "--probes", str(probes)).out


def test_a_job_that_has_not_loaded_it_and_a_name_that_is_not_applied(bench: Bench, probes: Path) -> None:
    bench.patch("p", PROBE)
    probes.mkdir()
    assert bench("live", "--probes", str(probes)).status == 1
    nothing = bench("live", "--probes", str(probes))
    assert "nothing to judge" in nothing.err
    assert bench.json("live", "p", "--probes", str(probes)).json["patches"][0]["state"] == "not-applied"
    assert bench("apply", "p").status == 0
    assert bench.json("live", "--probes", str(probes)).json["patches"][0]["state"] == "not-loaded"


@linux
def test_a_process_that_cannot_be_known_is_told_of_for_what_may_be_in_its_memory(bench: Bench, waiting: Any) -> None:
    pid = waiting("", None)
    for names in ([], ["memory"]):
        done = bench("live", *names, "--pid", str(pid))
        assert done.status == 1
        assert "to know: start the job with PATCHKIT_PROBES=DIR" in done.out
    (verdict,) = bench.json("live", "memory", "--pid", str(pid)).json["patches"]
    assert verdict["state"] == "not-applied"
    assert f"what pid {pid} ran is not known: its environment does not show PATCHKIT_PROBES" in verdict["reason"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], "usage"),
        (["--probes", "nowhere"], "no-probes-folder"),
        (["--probes", ".", "--wait", "-1"], "usage"),
        (["--probes", ".", "--wait", "nan"], "usage"),
        pytest.param(["--pid", "999999999"], "no-process", marks=linux),
    ],
)
def test_wrong_use(bench: Bench, arguments: list[str], code: str) -> None:
    done = bench.json("live", *arguments)
    assert (done.status, done.error["code"]) == (2, code)


@linux
def test_a_running_job_and_its_children(bench: Bench, probes: Path, waiting: Any) -> None:
    bench.patch("p", PROBE)
    assert bench("apply", "p").status == 0
    child = f"import sys; sys.path.insert(0, {str(bench.site)!r}); import demo.core; demo.core.double(1); input()"
    script = f"import subprocess; c = subprocess.Popen([sys.executable, '-c', {child!r}], stdin=sys.stdin)"
    pid = waiting(script, probes)
    done = bench.json("live", "--pid", str(pid), "--wait", "60")
    assert done.status == 0, done.out
    assert [item["state"] for item in done.json["processes"]] == ["known", "known"]
    (probe,) = done.json["patches"][0]["probes"]
    assert [run["parent"] for run in probe["processes"]] == [pid]
    assert done.json["folders"] == [str(probes)]


@linux
def test_a_running_job_without_the_folder_is_unknown(bench: Bench, probes: Path, waiting: Any) -> None:
    bench.patch("p", PROBE)
    pid = waiting("import demo.core; demo.core.double(1)", None)
    assert bench("apply", "p").status == 0
    done = bench("live", "--pid", str(pid))
    assert done.status == 1
    assert done.out.split()[:2] == ["p", "unknown"]
    assert "its environment does not show PATCHKIT_PROBES" in " ".join(done.out.split())
    assert "start the job with PATCHKIT_PROBES=DIR" in done.out
    # One that named the folder for itself, and is told of:
    own = f"import os; os.environ['PATCHKIT_PROBES'] = {str(probes)!r}; import demo.core; demo.core.double(1)"
    told = bench("live", "--pid", str(waiting(own, None)), "--probes", str(probes))
    assert (told.status, told.out.split()[:2]) == (0, ["p", "ran"])


def test_waiting_ends_when_they_ran_or_the_time_is_over(bench: Bench, probes: Path) -> None:
    bench.patch("p", PROBE)
    assert bench("apply", "p").status == 0
    assert bench("live", "--probes", str(probes), "--wait", "0.3").status == 2  # still no folder
    process = job(bench, "import time, demo.core; time.sleep(0.5); demo.core.double(1)", probes)
    assert bench("live", "--probes", str(probes), "--wait", "60").status == 0
    finish(process)


# --- require


def command(bench: Bench, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "patchkit", "--site", str(bench.site), "require", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


@pytest.fixture
def applied(bench: Bench) -> Bench:
    bench.patch("p", PLAIN)
    assert bench("apply", "p").status == 0
    return bench


def test_require_becomes_the_command(applied: Bench) -> None:
    code = "import sys; print(sys.argv[1:]); sys.exit(7)"
    done = command(applied, "p", "--", "sh", "-c", "trap - PIPE; kill -PIPE $$; echo alive")
    assert (done.returncode, done.stdout) == (-13, "")  # SIGPIPE is not ignored in the command
    done = command(applied, "p", "--", sys.executable, "-c", code, "--json", "--", "x")
    assert (done.returncode, done.stdout) == (7, "['--json', '--', 'x']\n")


@pytest.mark.parametrize(
    ("state", "spoil"),
    [
        ("lost", lambda bench: bench.install("1.0")),
        ("stale", lambda bench: bench.install("1.1")),
        ("modified", lambda bench: bench.write("demo/util.py", b"X = 9\n")),
        ("uninstalled", lambda bench: bench.uninstall()),
        ("inert", lambda bench: (bench.site / "demo" / "util.so").write_bytes(b"")),
        ("absent", lambda bench: bench("revert", "p")),
    ],
)
def test_require_does_not_start_it(applied: Bench, state: str, spoil: Any) -> None:
    spoil(applied)
    done = command(applied, "p", "--json", "--", sys.executable, "-c", "print('started')")
    assert done.returncode == 5
    error = json.loads(done.stdout)["error"]
    assert (error["code"], [patch["state"] for patch in error["patches"]]) == ("not-applied", [state])
    assert error["hint"]


def test_require_without_a_command_and_with_a_wrong_one(applied: Bench) -> None:
    done = applied.json("require", "p")
    assert (done.status, done.json["patches"], done.json["command_line"]) == (0, ["p"], [])
    wrong = applied.json("require", "p", "--", "no-such-program")
    assert (wrong.status, wrong.out.count('"code": "command"')) == (2, 1)
    assert applied("require").status == 2


def test_require_within_a_run_says_that_it_is_about_the_disk(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = bench.json("require", "p").error["hint"]
    assert "patchkit run" not in outside
    monkeypatch.setenv("PATCHKIT_RUN", str(bench.root))
    inside = bench.json("require", "p").error["hint"]
    assert inside.startswith(f"{outside}; this command is about the disk")
    assert inside.endswith('`patchkit.require("NAME")`')


@linux
def test_require_for_a_process_that_is_older_than_the_patch(bench: Bench, waiting: Any) -> None:
    bench.patch("p", PLAIN)
    pid = waiting("import time; time.sleep(0.1)", None)
    assert bench("apply", "p").status == 0  # in the same second, most of the times
    done = bench.json("require", "p", "--pid", str(pid))
    assert (done.status, done.error["patches"][0]["state"]) == (5, "outdated")
    assert bench("require", "p", "--pid", str(waiting("", None))).status == 0
