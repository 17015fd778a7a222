"""Running foreign programs: environment, ticks, an end in time."""

from __future__ import annotations

import sys

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
