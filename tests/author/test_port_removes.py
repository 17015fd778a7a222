"""``port`` of a patch that takes files away, to a release that has them no more."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.bench import Bench
from support.porting import EDIT, OLD, Porter

from patchkit.model.load import load_patch

REMOVE = '\n[[remove]]\nfile = "demo/gone.py"\n'


@pytest.fixture
def porter(bench: Bench, tmp_path: Path) -> Porter:
    made = Porter(bench, tmp_path / "cache")
    made.release("1.0", {"demo/core.py": OLD, "demo/gone.py": "A = 1\n", "demo/other.py": "B = 1\n"})
    return made


def test_where_there_is_nothing_to_take_away_the_remove_is_for_the_older_ones(porter: Porter) -> None:
    path = porter.patch(EDIT + REMOVE)
    porter.release("1.5", {"demo/core.py": OLD})
    porter.release("2.0", {"demo/core.py": OLD})
    run = porter("--write")
    assert (run.status, run.json["state"]) == (0, "ported"), run.out
    part = run.json["parts"][1]
    assert (part["table"], part["index"], part["state"], part["since"]) == ("remove", 1, "narrowed", "1.5")
    assert "nothing to take away" in part["reason"]
    patch = load_patch(str(path))
    assert [(one.files, one.versions) for one in patch.removes] == [(("demo/gone.py",), "<1.5")]
    assert [edit.versions for edit in patch.edits] == [None]
    assert porter.result("2.0", {"demo/core.py": OLD}) == OLD.replace("size)", "size + 1)")
    assert porter().json["state"] == "fits"


def test_a_file_that_moved_is_for_a_person(porter: Porter) -> None:
    path = porter.patch(EDIT + REMOVE)
    before = path.read_bytes()
    porter.release("2.0", {"demo/core.py": OLD, "demo/sub/gone.py": "A = 1\n"})
    run = porter("--write")
    assert (run.status, run.json["state"]) == (1, "decide")
    assert run.json["parts"][1]["reason"] == "demo 2.0 has no demo/gone.py; it has demo/sub/gone.py now"
    assert path.read_bytes() == before


def test_of_two_files_of_one_remove_one_is_there(porter: Porter) -> None:
    porter.patch(EDIT + '\n[[remove]]\nfile = ["demo/gone.py", "demo/other.py"]\n')
    porter.release("2.0", {"demo/core.py": OLD, "demo/other.py": "B = 1\n"})
    run = porter()
    assert (run.status, run.json["state"]) == (1, "decide")
    assert run.json["parts"][1]["reason"] == "demo 2.0 has no demo/gone.py, and has the others"


def test_a_patch_of_which_nothing_is_left(porter: Porter) -> None:
    porter.patch(REMOVE)
    porter.release("2.0", {"demo/core.py": OLD})
    run = porter()
    assert (run.status, run.json["state"]) == (1, "decide")
    assert "nothing of the patch is left to do on demo 2.0" in run.json["problem"]


def test_no_other_module_is_proposed_to_be_taken_away(bench: Bench) -> None:
    bench.patch("gone", '[[remove]]\nfile = "demo/sub/core.py"\n')
    done = bench.json("apply", "gone")
    assert (done.status, done.error["code"]) == (4, "not-in-distribution")
    assert "if that is the file meant" not in done.error["hint"]
    assert "`versions` that leave 1.0 out" in done.error["hint"]
