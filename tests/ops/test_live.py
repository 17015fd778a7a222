"""``live``: from the records of a folder, and what the system tells of processes, to a verdict on each patch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from patchkit.errors import UsageError
from patchkit.ops.live import Applied, Evidence, Probe, all_ran, judge, of_folder, of_processes, set_apart, when_applied
from patchkit.ops.processes import PRECISION, Process, older, tree_of
from patchkit.ops.records import parse_record, read_folder
from patchkit.state.ledger import Content, FileEntry, Layer, PatchEntry, Stat

APPLIED = 1000.0


def applied(*functions: str, name: str = "p", since: float | None = APPLIED) -> Applied:
    probes = tuple(Probe(number, "a.py", function, "seen") for number, function in enumerate(functions, 1))
    return Applied(name, "demo", "1.0", "1970-01-01T00:16:40Z", since, probes, None, "home")


def record(function: str = "f", *, ran: bool = True, **given: Any) -> dict[str, Any]:
    edit = {"f": 1, "g": 2}[function]
    return {
        "schema": 1, "patch": "p", "edit": edit, "file": "a.py", "function": function, "text": "seen", "pid": 7,
        "parent": 1, "role": "main", "title": "python", "ranks": {}, "host": "h", "ticks": 500, "executable": "python",
        "python": "3.11.7", "module": "a", "loaded": 1001.0, "ran": 1002.0 if ran else None, **given,
    }  # fmt: skip


def write(folder: Path, *values: dict[str, Any]) -> Path:
    folder.mkdir(exist_ok=True)
    for number, value in enumerate(values):
        (folder / f"{number}.json").write_text(json.dumps(value), encoding="utf-8")
    return folder


def process(pid: int = 7, **given: Any) -> Process:
    fields: dict[str, Any] = {
        "pid": pid, "parent": 1, "pids": frozenset({pid}), "ticks": 500, "started": 1001.0, "executable": "python3",
        "title": "python3", "folder": None, "readable": True, "python": True, **given,
    }  # fmt: skip
    return Process(**fields)


# --- the records


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    write(tmp_path, record("g", ran=False, loaded=1003.0, ticks=None, ranks={"RANK": "1"}), record("f"))
    records, problems = read_folder(str(tmp_path))
    assert problems == []
    assert [(r.function, r.loaded, r.ran, r.ticks, r.ranks) for r in records] == [
        ("f", 1001.0, 1002.0, 500, {}),
        ("g", 1003.0, None, None, {"RANK": "1"}),
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        b"", b"{", b"[]", b"null", b"\xff", b"[" * 5000, b'{"schema": 1}',
        *(json.dumps({**record(), **given}).encode() for given in (
            {"schema": 2}, {"pid": "7"}, {"pid": True}, {"patch": "a b"}, {"patch": "-x"}, {"loaded": None},
            {"ran": "now"}, {"ranks": []}, {"loaded": 10**400}, {"text": "x" * 70000},
        )),
    ],
)  # fmt: skip
def test_what_is_no_record_is_told_of_and_passed_over(tmp_path: Path, wrong: bytes) -> None:
    assert parse_record(wrong) is None
    write(tmp_path, record())
    (tmp_path / "wrong.json").write_bytes(wrong)
    (tmp_path / "half.tmp").write_bytes(b"{")
    (tmp_path / "notes.txt").write_bytes(b"")
    os.mkfifo(tmp_path / "pipe.json")
    records, problems = read_folder(str(tmp_path))
    assert len(records) == 1
    assert problems == ["pipe.json: not a regular file", "wrong.json: not a probe's record"]


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        of_folder(str(tmp_path / "no"))
    assert (raised.value.code, raised.value.exit_status) == ("no-probes-folder", 2)
    assert read_folder(str(tmp_path / "no"), missing=True) == ([], [])


# --- the verdict


@pytest.mark.parametrize(
    ("functions", "records", "state", "probes"),
    [
        ("f", [record()], "ran", ["ran"]),
        ("f", [record(), record(pid=8, ran=False)], "ran", ["ran"]),
        ("f", [record(ran=False)], "loaded", ["loaded"]),
        ("f", [], "not-loaded", ["not-loaded"]),
        ("fg", [record(), record("g")], "ran", ["ran", "ran"]),
        ("fg", [record(), record("g", ran=False)], "partly", ["ran", "loaded"]),
        ("fg", [record()], "partly", ["ran", "not-loaded"]),
        ("fg", [record(ran=False)], "loaded", ["loaded", "not-loaded"]),
        ("", [record()], "no-probe", []),
        # another patch, another file, another function, another edit: none is this one
        ("f", [record(patch="q")], "not-loaded", ["not-loaded"]),
        ("f", [record(file="b.py")], "not-loaded", ["not-loaded"]),
        ("f", [record(function="f", edit=3)], "not-loaded", ["not-loaded"]),
        # loaded before it was applied: an earlier text of it
        ("f", [record(loaded=999.5)], "not-loaded", ["not-loaded"]),
        ("f", [record(loaded=1000.0)], "ran", ["ran"]),
    ],
)
def test_the_word_for_a_patch(
    tmp_path: Path, functions: str, records: list[dict[str, Any]], state: str, probes: list[str]
) -> None:
    (verdict, *_) = judge([applied(*functions)], of_folder(str(write(tmp_path, *records))))
    assert (verdict.state, [probe.state for probe in verdict.probes]) == (state, probes)
    assert all_ran([verdict]) == (state == "ran")


def test_records_from_before_the_apply_are_told_of(tmp_path: Path) -> None:
    (verdict,) = judge([applied("f")], of_folder(str(write(tmp_path, record(loaded=999.0)))))
    assert "1 process had loaded it before this apply: restart" in str(verdict.reason)


def test_names_and_what_no_ledger_has(tmp_path: Path) -> None:
    evidence = of_folder(str(write(tmp_path, record(patch="memory"))))
    mine, other = judge([applied("f")], evidence)
    assert (mine.state, mine.counts) == ("not-loaded", True)
    assert (other.patch.name, other.state, other.counts) == ("memory", "ran", False)
    assert judge([], evidence)[0].counts  # nothing is applied: what ran in memory is what there is to judge
    (asked,) = judge([], evidence, ["memory"])
    assert (asked.state, asked.counts, all_ran([asked])) == ("ran", True, True)
    assert "what else it has is not known" in str(asked.reason)
    copy = of_folder(str(write(tmp_path / "copy", record(patch="my_part", text="the copy ran"))))
    (asked,) = judge([], copy, ["my_part"])
    assert str(asked.reason).startswith("a copy that `patchkit transplant` made")
    probes = {"memory": (Probe(1, "a.py", "f", "seen"), Probe(2, "b.py", "g", "seen too"))}
    (asked,) = judge([], evidence, ["memory"], probes.get)  # its file names one more, which no process loaded
    assert (asked.state, [probe.state for probe in asked.probes]) == ("partly", ["ran", "not-loaded"])
    assert asked.reason == "not in this site's ledger: from memory, or reverted since"
    (missing,) = judge([], evidence, ["nope"])
    assert (missing.state, all_ran([missing])) == ("not-applied", False)


def test_nothing_to_judge_is_not_all_well() -> None:
    assert not all_ran(judge([], Evidence((), (), (), None)))


@pytest.mark.parametrize(
    ("ctime", "top", "since"),
    [(0.7, "p", 0.7), (3.5, "p", 3.5), (-5.0, "p", 0.0), (60.0, "p", 0.0), (0.7, "q", 0.0)],
)
def test_when_a_patch_was_applied_is_known_by_its_files(ctime: float, top: str, since: float) -> None:
    """The ledger's own time has whole seconds; a file that another patch wrote since tells nothing."""
    layers = tuple(Layer(name, ()) for name in ("p", top))
    stat = Stat(1, 0, 0, int((1000.0 + ctime) * 1e9))
    file = FileEntry("demo", None, "none", Content("00", 1), layers, stat)
    entry = PatchEntry("p", "d", None, "s", "demo", "1.0", None, "demo", "1970-01-01T00:16:40Z", ("a.py",))
    assert when_applied(entry, {"a.py": file}) == pytest.approx(1000.0 + since, abs=1e-6)


# --- processes


def test_records_belong_to_a_process_by_number_and_start(tmp_path: Path) -> None:
    folder = str(write(tmp_path, record(), record(pid=8, ticks=499), record("g", pid=9, ticks=None)))
    own = [process(7, folder=folder), process(8, folder=folder), process(1009, pids=frozenset({1009, 9}))]
    evidence = of_processes(own, [], [applied("f")])
    assert [r.pid for r in evidence.records] == [7, 9]  # 8 is an earlier process of that number
    assert evidence.seen is not None
    assert [seen.state for seen in evidence.seen] == ["known", "known", "known"]


@pytest.mark.parametrize(
    ("given", "state", "word"),
    [
        ({"folder": "FOLDER"}, "known", "not-loaded"),
        ({}, "unknown", "unknown"),
        ({"readable": False}, "unknown", "unknown"),
        ({"python": None}, "unknown", "unknown"),
        ({"python": False}, "not-python", "not-loaded"),
    ],
)
def test_what_cannot_be_known_is_called_unknown(tmp_path: Path, given: Any, state: str, word: str) -> None:
    given = {key: str(tmp_path) if value == "FOLDER" else value for key, value in given.items()}
    evidence = of_processes([process(**given)], [], [applied("f")])
    assert evidence.seen is not None
    assert evidence.seen[0].state == state
    (verdict,) = judge([applied("f")], evidence)
    assert verdict.state == word


def test_one_that_ran_it_is_enough_whatever_others_did(tmp_path: Path) -> None:
    folder = str(write(tmp_path, record()))
    evidence = of_processes([process(folder=folder), process(8)], [], [applied("f")])
    assert [verdict.state for verdict in judge([applied("f")], evidence)] == ["ran"]


def test_a_record_without_a_start_is_not_an_earlier_process_s(tmp_path: Path) -> None:
    """Where it could not read its own start, the number alone would be anybody's."""
    early = record(ticks=None, loaded=900.0, ran=False)
    forked = record("g", ticks=None, loaded=900.0)  # its module was loaded by the process before it
    folder = str(write(tmp_path, early, forked))
    assert [r.function for r in of_processes([process(folder=folder)], [], []).records] == ["g"]


def test_a_folder_of_many_names_is_read_once(tmp_path: Path) -> None:
    """A container shows one for each of its processes."""
    folder = write(tmp_path / "probes", record(), record(pid=8))
    (tmp_path / "root").symlink_to(tmp_path)
    names = [str(folder), f"{folder}/", str(tmp_path / "root" / "probes")]
    own = [process(7, folder=names[1]), process(8, folder=names[2])]
    evidence = of_processes(own, [names[0]], [applied("f")])
    assert [r.pid for r in evidence.records] == [7, 8]
    assert evidence.folders == (names[0],)


def test_a_folder_of_one_process_that_is_none_ends_nothing(tmp_path: Path) -> None:
    folder = str(write(tmp_path / "probes", record()))
    (tmp_path / "file").write_text("")
    own = [process(7, folder=folder), process(8, folder=str(tmp_path / "file"))]
    evidence = of_processes(own, [], [applied("f", "g")])
    assert evidence.seen is not None
    assert [seen.state for seen in evidence.seen] == ["known", "unknown"]
    (verdict,) = judge([applied("f", "g")], evidence)
    assert (verdict.state, [probe.state for probe in verdict.probes]) == ("partly", ["ran", "unknown"])
    assert f"what pid 8 ran is not known: {tmp_path / 'file'}: Not a directory" in str(verdict.reason)
    with pytest.raises(UsageError):
        of_processes(own, [str(tmp_path / "file")], [])


def test_where_records_may_be_lost_nothing_is_called_not_loaded(tmp_path: Path) -> None:
    folder = str(write(tmp_path / "probes", record(ran=False)))
    evidence = of_processes([process(folder=folder, lossy="the disk is full")], [], [applied("f", "g")])
    (verdict,) = judge([applied("f", "g")], evidence)
    assert [probe.state for probe in verdict.probes] == ["loaded", "unknown"]
    assert verdict.reason == "what pid 7 ran is not known: the disk is full; the patched module was loaded"
    quiet = of_processes([process(folder=folder, lossy="it is full", python=False, pids=frozenset({9}))], [], [])
    assert quiet.seen is not None
    assert quiet.seen[0].state == "not-python"


def test_another_environments_module_is_no_evidence(tmp_path: Path) -> None:
    for site in ("own", "other"):
        (tmp_path / site).mkdir()
        (tmp_path / site / "a.py").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "own")
    patch = applied("f")._replace(site=str(tmp_path / "own"))
    here = os.uname().nodename
    for number, (path, host, state) in enumerate(
        (
            (tmp_path / "own" / "a.py", here, "ran"),
            (tmp_path / "link" / "a.py", here, "ran"),
            (tmp_path / "other" / "a.py", here, "not-loaded"),
            (tmp_path / "other" / "a.py", "elsewhere", "ran"),  # not a file of this host, whatever its name
            (tmp_path / "gone" / "a.py", here, "ran"),  # such as one in a container
            ("", here, "ran"),
        )
    ):
        folder = write(tmp_path / str(number), record(path=str(path), host=host))
        (verdict,) = judge([patch], set_apart(of_folder(str(folder)), [patch]))
        assert verdict.state == state, path
        assert (verdict.reason is None) == (state == "ran")
        assert state == "ran" or str(path) in str(verdict.reason)
    # A patch in memory, which no ledger has:
    memory = set_apart(of_folder(str(tmp_path / "2")), [], str(tmp_path / "own"))
    (verdict,) = judge([], memory, ["p"])
    assert (verdict.state, str(tmp_path / "other" / "a.py") in str(verdict.reason)) == ("not-applied", True)
    assert judge([], set_apart(of_folder(str(tmp_path / "0")), [], str(tmp_path / "own")))[0].state == "ran"
    # A process whose root is another directory, seen through that:
    folder = write(tmp_path / "root", record(path="/other/a.py", host=here))
    own = process(folder=str(folder), root=f"{tmp_path}")
    (verdict,) = judge([patch], set_apart(of_processes([own], [], [patch]), [patch]))
    assert verdict.state == "not-loaded"


def test_a_process_older_than_the_apply_is_told_of() -> None:
    patch = applied("f")
    evidence = of_processes([process(started=900.0)], [], [patch])
    assert evidence.seen is not None
    assert evidence.seen[0].older_than == ("p",)
    assert "pid 7 started before it was applied" in str(judge([patch], evidence)[0].reason)


def fake(proc: Path, pid: int, parent: int, *, ticks: int = 100, state: str = "S", **files: bytes) -> None:
    folder = proc / str(pid)
    folder.mkdir(parents=True)
    rest = " ".join(["0"] * 17)
    (folder / "stat").write_text(f"{pid} (a) b) {state} {parent} {rest} {ticks} 0 0")
    for name, data in files.items():
        (folder / name).write_bytes(data)
    (folder / "exe").symlink_to("/opt/py/bin/python3.11")
    (folder / "root").symlink_to("/")
    (folder / "cwd").symlink_to("/srv/job")


def test_the_tree_of_a_process(tmp_path: Path) -> None:
    (tmp_path / "stat").write_text("cpu 1\nbtime 1000\n")
    fake(tmp_path, 10, 1, environ=b"A=1\0PATCHKIT_PROBES=pr\0", status=b"Name:\ta\nNSpid:\t10\t4\n")
    fake(tmp_path, 11, 10, environ=b"PATCHKIT_PROBES=/pr\0")
    fake(tmp_path, 12, 11, environ=b"VLLM::EngineCore\0\0\0")
    fake(tmp_path, 13, 10, state="Z")
    fake(tmp_path, 20, 1)
    (tmp_path / "11" / "root").unlink()
    (tmp_path / "11" / "root").symlink_to("/containers/1")
    found = tree_of(10, str(tmp_path))
    assert [(p.pid, p.parent, p.title) for p in found] == [(10, 1, "a) b"), (11, 10, "a) b"), (12, 11, "a) b")]
    assert [p.folder for p in found] == ["/srv/job/pr", f"{tmp_path}/11/root/pr", None]
    assert found[0].pids == {10, 4}
    assert found[0].started == 1000 + 100 / os.sysconf("SC_CLK_TCK")
    assert {p.python for p in found} == {True}
    assert [p.root for p in found] == ["", f"{tmp_path}/11/root", ""]
    assert str(found[0].lossy).startswith("its PATCHKIT_PROBES is pr, which each module resolved in the folder that ")
    assert (found[0].readable, tree_of(20, str(tmp_path))[0].readable) == (True, False)


@pytest.mark.parametrize(
    ("executable", "maps", "python"),
    [
        ("/opt/py/bin/python3.11", "", True),
        ("/opt/pypy/bin/pypy3", "", True),
        ("/usr/bin/server", "7f00-7f01 r-xp 0 0 1 /usr/lib/libpython3.11.so.1.0\n", True),
        ("/usr/bin/server", "7f00-7f01 r-xp 0 0 1 /usr/lib/python3.11/lib-dynload/_json.so\n", True),
        ("/usr/bin/bash", "7f00-7f01 r-xp 0 0 1 /usr/lib/libc.so.6\n", False),
    ],
)
def test_which_processes_run_python(tmp_path: Path, executable: str, maps: str, python: bool) -> None:
    (tmp_path / "stat").write_text("btime 1000\n")
    fake(tmp_path, 10, 1, environ=b"", maps=maps.encode())
    (tmp_path / "10" / "exe").unlink()
    (tmp_path / "10" / "exe").symlink_to(executable)
    assert tree_of(10, str(tmp_path))[0].python is python


def test_no_such_process_and_no_such_system(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        tree_of(10, str(tmp_path))
    assert raised.value.code == "pid-unsupported"
    (tmp_path / "stat").write_text("btime 1000\n")
    with pytest.raises(UsageError) as raised:
        tree_of(10, str(tmp_path))
    assert raised.value.code == "no-process"


def test_the_start_of_a_process_is_known_to_a_tick() -> None:
    """To the second, one that a patch came between would pass for younger than it."""
    began = time.time()
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    (found,) = tree_of(child.pid)
    ended = time.time()
    child.communicate(b"\n")
    assert began - 2 * PRECISION <= found.started <= ended
    assert older(found, found.started + 2 * PRECISION)
    assert not older(found, found.started)


@pytest.mark.parametrize(
    ("make", "lossy"),
    [
        ("probes", None),
        ("new/probes", None),
        ("file/probes", "/file is no folder, so that its probes left no record"),
        ("shut/probes", "/shut, so that its probes left no record"),
    ],
)
def test_a_folder_that_a_process_cannot_write(tmp_path: Path, make: str, lossy: str | None) -> None:
    (tmp_path / "stat").write_text("btime 1000\n")
    (tmp_path / "file").write_text("")
    (tmp_path / "probes").mkdir(mode=0o777)
    (tmp_path / "shut").mkdir(mode=0o555)
    mine = f"Uid:\t1\t1\t1\t{os.getuid()}\nGid:\t1\t1\t1\t{os.getgid()}\nGroups:\t1 2\nCapEff:\t0000000000000000\n"
    fake(tmp_path, 10, 1, environ=f"PATCHKIT_PROBES={tmp_path}/{make}".encode(), status=mine.encode())
    (found,) = tree_of(10, str(tmp_path))
    assert (found.lossy is None) == (lossy is None), found.lossy
    assert str(found.lossy).endswith(str(lossy))
    root = mine.replace("CapEff:\t0", "CapEff:\tf").replace("0000\n", "00ff\n")
    fake(tmp_path, 11, 1, environ=f"PATCHKIT_PROBES={tmp_path}/shut".encode(), status=root.encode())
    assert tree_of(11, str(tmp_path))[0].lossy is None
