"""Which file is the trace that is meant."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from patchkit.bench.trace import find_trace
from patchkit.errors import UsageError

OLD, NEW = 1_000_000.0, 2_000_000.0


def written(root: Path, name: str, when: float = NEW) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    os.utime(path, (when, when))
    return path


def refused(path: Path, **options: object) -> UsageError:
    with pytest.raises(UsageError) as caught:
        find_trace(str(path), **options)  # type: ignore[arg-type]
    return caught.value


def test_a_file_is_itself(tmp_path: Path) -> None:
    path = written(tmp_path, "a.pb")
    assert find_trace(str(path)).taken.path == str(path)


def test_the_one_trace_and_not_its_twin_for_viewers(tmp_path: Path) -> None:
    pb = written(tmp_path, "plugins/profile/1/h.xplane.pb")
    twin = written(tmp_path, "plugins/profile/1/h.trace.json.gz", NEW + 5)
    other = written(tmp_path, "plugins/profile/1/g.xplane.pb", NEW - 5)
    written(tmp_path, "plugins/profile/1/notes.txt")
    found = find_trace(str(tmp_path))
    assert found.taken.path == str(pb)
    assert {(one.path, why) for one, why in found.ignored} == {
        (str(twin), "the same trace for viewers"),
        (str(other), "of another host, in the same session"),
    }


def test_of_several_sessions_none_is_guessed(tmp_path: Path) -> None:
    old = written(tmp_path, "1/h.xplane.pb", OLD)
    new = written(tmp_path, "2/h.xplane.pb", NEW)
    error = refused(tmp_path)
    assert (error.code, error.exit_status) == ("which-trace", 2)
    assert error.details["sessions"] == [str(old.parent), str(new.parent)]
    newest = find_trace(str(tmp_path), newest=True)
    assert newest.taken.path == str(new)
    assert [(one.path, why) for one, why in newest.ignored] == [(str(old), "of an older session")]
    since = find_trace(str(tmp_path), since=OLD + 1)
    assert since.taken.path == str(new)
    assert [(one.path, why) for one, why in since.ignored] == [(str(old), "written before the job began")]


def test_only_older_ones_are_none(tmp_path: Path) -> None:
    old = written(tmp_path, "1/h.xplane.pb", OLD)
    error = refused(tmp_path, since=NEW)
    assert error.code == "no-trace"
    assert "1 older than the job" in error.message
    assert error.details["older"] == [str(old)]


def test_where_the_profiler_was_given_none(tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    stray = written(tmp_path, "None/plugins/profile/1/h.xplane.pb")
    assert refused(tmp_path / "traces").code == "no-trace"
    assert find_trace(str(tmp_path / "traces"), cwd=str(tmp_path)).taken.path == str(stray)


def test_a_file_seen_twice_is_one(tmp_path: Path) -> None:
    path = written(tmp_path, "None/plugins/profile/1/h.xplane.pb")
    found = find_trace(str(tmp_path), cwd=str(tmp_path))
    assert (found.taken.path, found.ignored) == (str(path), ())


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert refused(tmp_path / "gone").code == "no-trace"
