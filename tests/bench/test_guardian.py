"""Whatever ends an experiment, the site is as it was: a signal, ``kill -9`` at any moment, or the machine itself."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.bench import Bench
from support.documents import ROOT
from support.scripted import Scripted

from patchkit.bench.guardian import running
from patchkit.ops.experiment import Who, alive, read_mark, ticks_of, write_mark

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")
PATIENCE = 60.0


@pytest.fixture
def trial(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Scripted:
    # As the processes that are started have it: a session goes on in the same surroundings only.
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    return Scripted(bench, protocol="discarded = 0\npairs_min = 2\npairs_max = 2\n")


def until(true: Callable[[], object]) -> None:
    """Wait for what another process does; how long that takes is no matter."""
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def environment(bench: Bench) -> dict[str, str]:
    return {**os.environ, "PATCHKIT_CACHE": str(bench.root / "cache")}


def mark_of(bench: Bench) -> Path:
    return bench.site / ".patchkit" / "rebench.json"


def killed(trial: Scripted, place: str) -> int:
    """Run an experiment that kills itself there, and wait for its guardian; the status."""
    process = trial.start(place=place, env=environment(trial.bench))
    process.communicate(timeout=PATIENCE)
    until(lambda: not any(_guards(trial.bench, pid) for pid in _pids()))
    return process.returncode


def _pids() -> list[str]:
    return [name for name in os.listdir("/proc") if name.isdigit()]


def _guards(bench: Bench, pid: str) -> bool:
    try:
        words = (Path("/proc") / pid / "cmdline").read_bytes()
    except OSError:
        return False
    return b"patchkit.bench.guardian" in words and os.fsencode(bench.site) in words


PLACES = ["apply:1", "revert:1", "save:1", "save:2", "save:3", "report:1", "unmark:1"]


@pytest.mark.parametrize(
    ("verdict", "place"),
    [*((verdict, place) for verdict in ("pass", "regressed") for place in PLACES), ("pass", "apply:2")],
)
def test_killed_between_two_acts(trial: Scripted, place: str, verdict: str) -> None:
    if verdict == "regressed":
        trial.plan({}, {"throughput": 700.0, "ttft": 2.0})
    status = killed(trial, place)
    assert status == -signal.SIGKILL
    assert not mark_of(trial.bench).exists()
    # From the report on the verdict stands: what passed is kept.
    kept = verdict == "pass" and place in ("report:1", "unmark:1")
    assert trial.bench.pristine() is not kept
    assert trial.bench("check").status == 0
    assert trial.bench("apply", "fix").status == 0


@pytest.mark.parametrize("number", [1, 5, 9, 13, 20, 27, 33, 39, *range(42, 58, 2), 65, 75, 90])
def test_killed_at_a_step_of_the_file_system(trial: Scripted, number: int) -> None:
    trial.plan({}, {"throughput": 700.0, "ttft": 2.0})
    assert killed(trial, f"fs:{number}") == -signal.SIGKILL
    assert not mark_of(trial.bench).exists()
    assert trial.bench.pristine()
    assert trial.bench("check").status == 0


def test_killed_while_an_engine_runs(trial: Scripted) -> None:
    trial.plan({}, {"sleep": 1000})
    process = trial.start(env=environment(trial.bench))
    until(lambda: trial.arms == "BT")
    assert not trial.bench.pristine()
    (engine,) = [pid for pid in _pids() if _runs(trial, pid)]
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    until(lambda: not mark_of(trial.bench).exists())
    assert trial.bench.pristine()
    assert not _runs(trial, engine)
    (trial.folder / "arms.txt").write_text("")
    trial.plan({}, {})
    assert trial("--resume").status == 0
    assert trial.arms == "BTTB"  # the half pair is begun again


def _runs(trial: Scripted, pid: str) -> bool:
    try:
        return str(trial.folder / "engine.py").encode() in (Path("/proc") / pid / "cmdline").read_bytes()
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_in_order(trial: Scripted, number: signal.Signals) -> None:
    assert trial.bench("apply", "fix").status == 0
    before = trial.bench.read("demo/core.py")
    trial.plan({"sleep": 1000}, {})
    process = trial.start("--json", env=environment(trial.bench))
    until(lambda: trial.arms == "B")
    assert trial.bench.pristine()
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + number
    assert json.loads(out)["error"]["code"] == "interrupted"
    assert b"--resume" in err
    assert trial.bench.read("demo/core.py") == before
    assert trial.bench("check").status == 0
    assert not mark_of(trial.bench).exists()


def test_others_wait_or_are_told(trial: Scripted) -> None:
    trial.bench.project("fix")
    assert trial.bench("apply", "fix").status == 0
    trial.plan({"sleep": 1000}, {})
    process = trial.start(env=environment(trial.bench))
    until(lambda: trial.arms == "B")
    try:
        for words in (["apply", "fix"], ["revert", "fix"], ["sync"], trial.words()):
            run = trial.bench.json(*words)
            assert (run.status, run.error["code"]) == (5, "experiment-running"), words
            assert run.error["pid"] == process.pid
        check = trial.bench("check")
        assert check.status == 0
        assert "an experiment is running: `rebench trial`" in check.err
        assert "experiment" in trial.bench("doctor").out
        assert trial.bench("rebench", "--restore").status == 5
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)


@pytest.mark.parametrize("command", [["apply", "other"], ["revert", "fix"], ["sync"], ["rebench", "--restore"]])
def test_after_the_machine_went_down_the_next_command_puts_it_back(trial: Scripted, command: list[str]) -> None:
    """Both the experiment and its guardian are gone."""
    _leave(trial)
    check = trial.bench("check")
    assert check.status == 1
    assert "patchkit rebench --restore puts it back" in check.err
    assert trial.bench.json("check").json["experiment"]["code"] == "experiment"
    assert trial.bench("doctor").status == 1
    trial.bench.patch("other", '[[edit]]\nfile = "demo/util.py"\nfind = "X = 1"\nreplace = "X = 9"\n')
    assert trial.bench(*command).status == 0
    assert not mark_of(trial.bench).exists()
    assert trial.bench.read("demo/core.py") == trial.bench.files["demo/core.py"].encode()  # type: ignore[union-attr]
    assert trial.bench("check").status == 0


def test_what_was_left_can_be_forgotten(trial: Scripted) -> None:
    _leave(trial)
    assert trial.bench("rebench", "--forget").status == 0
    assert b"2 * x" in trial.bench.read("demo/core.py")
    assert trial.bench("check").status == 0
    assert trial.bench("rebench", "--restore").out == "nothing to put back: no experiment was left here\n"


def _leave(trial: Scripted) -> None:
    trial.plan({}, {"sleep": 1000})
    process = trial.start(env=environment(trial.bench))
    until(lambda: trial.arms == "BT")
    guardians = [int(pid) for pid in _pids() if _guards(trial.bench, pid)]
    engines = [int(pid) for pid in _pids() if _runs(trial, pid)]
    assert (len(guardians), len(engines)) == (1, 1)
    for pid in [*guardians, process.pid, *engines]:
        os.kill(pid, signal.SIGKILL)
    process.communicate()
    until(lambda: not any(_guards(trial.bench, str(pid)) for pid in guardians))


def test_a_mark_that_cannot_be_read_is_told_of(bench: Bench) -> None:
    (bench.site / ".patchkit").mkdir()
    mark_of(bench).write_text("{")
    check = bench("check")
    assert (check.status, "which cannot be read" in check.err) == (1, True)
    bench.patch("other", '[[edit]]\nfile = "demo/util.py"\nfind = "X = 1"\nreplace = "X = 9"\n')
    assert bench.json("apply", "other").error["code"] == "experiment"


def test_who_is_alive(trial: Scripted) -> None:
    """A number that another process has by now is not the one that was written down."""
    trial.plan({"sleep": 1000}, {})
    process = trial.start(env=environment(trial.bench))
    until(lambda: trial.arms == "B")
    mark = read_mark(str(trial.bench.site))
    assert mark is not None
    assert (alive(mark, mark.owner), alive(mark, mark.guardian), alive(mark, None)) == (True, True, False)
    assert mark.owner == Who(process.pid, ticks_of(process.pid))
    assert not alive(mark, Who(process.pid, (mark.owner.ticks or 0) + 1))
    assert alive(mark._replace(host="elsewhere"), Who(process.pid, 1))
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE)
    assert not alive(mark, mark.owner)


def test_two_in_memory_at_once_are_refused(trial: Scripted) -> None:
    trial.plan({"sleep": 1000}, {})
    process = trial.start("--in-memory", env=environment(trial.bench))
    until(lambda: trial.arms == "B")
    run = trial.json("--in-memory")
    assert (run.status, run.error["code"]) == (5, "experiment-running")
    process.kill()
    process.communicate()
    until(lambda: not any(_runs(trial, pid) for pid in _pids()))
    trial.plan({}, {})
    assert trial("--in-memory").status == 0


def test_which_groups_still_run() -> None:
    assert running(b"+12\n+15\n-12\nx\n") == {15}


def test_a_mark_is_read_as_it_was_written(bench: Bench) -> None:
    from patchkit.ops.experiment import Held, Mark, leave, remove_mark

    home = str(bench.site)
    before = (Held("one", "schema = 1\n", None),)
    mark = Mark("t", "r", "/f", "2026", Who(1, 2), None, "h", "s", ("one",), before)
    write_mark(home, mark)
    assert read_mark(home) == mark
    remove_mark(home, "another")
    assert read_mark(home) == mark
    remove_mark(home, "t")
    assert read_mark(home) is None
    leave("t")
