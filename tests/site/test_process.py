"""Running foreign programs: environment, ticks, an end in time."""

from __future__ import annotations

import sys
from pathlib import Path

from patchkit.site import process


def test_the_environment_is_the_one_given() -> None:
    code = "import os; print(os.environ.get('ONLY'), os.environ.get('PATH'))"
    done = process.run([sys.executable, "-I", "-c", code], timeout=60, environ={"ONLY": "this"})
    assert done.out.split() == [b"this", b"None"]


def test_ticks_come_while_it_runs_and_nothing_is_lost() -> None:
    ticks: list[int] = []
    code = "import sys, time; print(sys.stdin.read()); sys.stdout.flush(); time.sleep(2.5); print('end')"
    done = process.run([sys.executable, "-c", code], data=b"begin", timeout=60, tick=lambda: ticks.append(1))
    assert (done.status, done.out.split()) == (0, [b"begin", b"end"])
    assert ticks


def test_with_ticks_too_it_is_ended_in_time() -> None:
    done = process.run([sys.executable, "-c", "import time; time.sleep(600)"], timeout=1.5, tick=lambda: None)
    assert done.status is None


def test_what_is_logged_comes_in_whole_lines_and_the_tail_is_kept(tmp_path: Path) -> None:
    code = "import sys; sys.stderr.write('e' * 20_000 + '\\nlast\\n'); print('o' * 20_000); print('end', end='')"
    log, out = tmp_path / "log", tmp_path / "out"
    done = process.run_logged([sys.executable, "-c", code], log=str(log), out=str(out), timeout=60)
    assert (done.status, done.last_line()) == (0, "last")
    assert out.read_text() == "o" * 20_000 + "\nend"
    assert sorted(log.read_text().splitlines()) == ["e" * 20_000, "end", "last", "o" * 20_000]
    assert len(done.out) == len(done.err) == process.TAIL_BYTES


def test_a_log_is_begun_anew(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("of an earlier run\n")
    done = process.run_logged([sys.executable, "-c", "print('new')"], log=str(log), timeout=60)
    assert (done.last_line(), log.read_text()) == ("new", "new\n")


def test_of_a_group_that_is_ended_with_others_nothing_is_left(tmp_path: Path) -> None:
    group = process.Group()
    done = group.call(
        process.run_logged,
        [sys.executable, "-c", "import time; time.sleep(600)"],
        log=str(tmp_path / "log"),
        timeout=60,
        tick=group.end,
    )
    assert done.status == -9
