"""Where pristine bytes come from when RECORD has no word on a file, or two."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest
from support.bench import CORE, DEMO, Bench
from support.dists import make_dist, record_hash

DOUBLE = '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'


def reinstalled(bench: Bench, version: str, core: str, *, record: bool) -> None:
    """``demo`` in that version, its list of files without hashes: as Debian's, conda's or a vendor's."""
    bench.uninstall()
    info = make_dist(bench.site, "demo", version, {**DEMO, "demo/core.py": core}, record=record)
    if record:
        (info / "RECORD").write_text("".join(f"{path},,\n" for path in DEMO))


@pytest.mark.parametrize("record", [True, False], ids=["rows without hashes", "no RECORD"])
@pytest.mark.parametrize("command", [("sync",), ("apply", "double")], ids=lambda command: command[0])
def test_an_upgrade_without_hashes_is_taken_as_it_is(bench: Bench, command: tuple[str, ...], record: bool) -> None:
    bench.patch("double", DOUBLE)
    reinstalled(bench, "1.0", CORE, record=record)
    assert bench("apply", "double").status == 0
    newer = CORE + "\n\nNEWER = 1\n"
    reinstalled(bench, "1.1", newer, record=record)
    run = bench(*command)
    assert run.status == 0, run.err
    assert bench.read("demo/core.py").decode() == newer.replace("y = x + x", "y = 2 * x")
    assert bench("revert", "double").status == 0
    assert bench.read("demo/core.py").decode() == newer


def test_an_edit_by_hand_without_hashes_is_still_kept(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    reinstalled(bench, "1.0", CORE, record=False)
    assert bench("apply", "double").status == 0
    edited = bench.read("demo/core.py") + b"MINE = 1\n"
    bench.write("demo/core.py", edited)
    bench("sync")
    assert bench.read("demo/core.py") == edited
    assert bench("revert", "double").status == 0
    assert bench.read("demo/core.py") == CORE.encode() + b"MINE = 1\n"


def test_two_hashes_for_one_file_are_refused(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(DEMO)
    bench.patch("double", DOUBLE)
    shutil.rmtree(bench.site)
    other = record_hash(b"other")
    make_dist(bench.site, "demo", "1.0", DEMO, extra_rows=[("demo/core.py", other, "5")])
    run = bench.json("apply", "double")
    assert (run.status, run.error["code"]) == (5, "record")
    assert "lists it more than once, with different hashes" in run.error["message"]
    assert f"`pip install --target {bench.site} --upgrade --no-deps --no-cache-dir demo==1.0`" in run.error["hint"]
    assert bench.read("demo/core.py") == CORE.encode()


def test_the_refusal_of_an_edited_file_names_its_witness(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench.write("demo/core.py", CORE.encode() + b"MINE = 1\n")
    run = bench.json("apply", "double")
    assert (run.status, run.error["code"]) == (5, "modified")
    assert "its bytes differ from RECORD's hash" in run.error["message"]
