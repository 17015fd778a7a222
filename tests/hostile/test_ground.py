"""Nothing outside of the site is written, whatever its records and links say, and whenever they change."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hostile import forged
from support.bench import Bench

from patchkit.state import fs

PRECIOUS = b"precious"
DOUBLE = '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'
ADD = '[[add]]\nfile = "demo/new/deep.py"\ncontent = "X = 1\\n"\n'


@pytest.fixture
def outside(bench: Bench) -> Iterator[Path]:
    """A folder beside the site; nothing in it may change."""
    folder = bench.root / "outside"
    (folder / "empty").mkdir(parents=True)
    (folder / "victim").write_bytes(PRECIOUS)
    (folder / "core.py").write_bytes(b"mine\n")
    yield folder
    found = {str(path.relative_to(folder)) for path in folder.rglob("*")}
    assert found == {"empty", "victim", "core.py"}
    assert (folder / "victim").read_bytes() == PRECIOUS
    assert (folder / "core.py").read_bytes() == b"mine\n"


@pytest.mark.parametrize("command", [["check"], ["list"], ["apply", "double"], ["sync"], ["log"], ["doctor"]])
@pytest.mark.parametrize("key", ["../outside/victim", "{outside}/victim", "demo/../../outside/victim", "demo//x"])
def test_a_forged_journal_writes_nothing_outside(bench: Bench, outside: Path, key: str, command: list[str]) -> None:
    bench.patch("double", DOUBLE)
    evil = forged.blob(bench.site, b"evil")
    precious = hashlib.sha256(PRECIOUS).hexdigest()
    forged.journal(bench.site, [forged.journal_file(key.format(outside=outside), evil, precious)])
    run = bench(*command)
    assert run.status in (0, 1, 5)
    told = run.out + run.err
    assert "damaged: it names" in told or "leads out of the site" in told


def test_a_forged_journal_names_a_temporary_file_outside(bench: Bench, outside: Path) -> None:
    forged.journal(bench.site, [forged.journal_file("demo/core.py", None, None, temp="../../outside/victim")])
    assert bench("check").status == 5


def test_a_forged_journal_removes_no_directory_outside(bench: Bench, outside: Path) -> None:
    forged.journal(bench.site, [], create_dirs=[str(outside / "empty")])
    run = bench("check")
    assert (run.status, "leads out of the site" in run.out.replace("\n    ", " ")) == (1, True)


@pytest.mark.parametrize("key", ["../outside/victim", "{outside}/victim"])
@pytest.mark.parametrize("command", [["revert", "--all"], ["revert", "p1", "--force"], ["sync"]])
def test_a_forged_ledger_writes_nothing_outside(bench: Bench, outside: Path, key: str, command: list[str]) -> None:
    toml = bench.patch("p1", DOUBLE).read_bytes()
    forged.blob(bench.site, b"evil")
    forged.blob(bench.site, PRECIOUS)
    key = key.format(outside=outside)
    file = forged.ledger_file(b"evil", PRECIOUS, created_dirs=[str(outside / "empty")])
    forged.ledger(bench.site, [forged.ledger_patch(forged.blob(bench.site, toml), [key])], {key: file})
    (bench.root / "work" / "pyproject.toml").write_text("[tool.patchkit]\napply = []\n")
    assert bench(*command).status == 5


@pytest.mark.parametrize("name", ["", "blobs"])
def test_the_records_are_a_link_that_leads_out(bench: Bench, outside: Path, name: str) -> None:
    folder = bench.site / ".patchkit"
    if name:
        folder.mkdir()
    (folder / name).symlink_to(outside, target_is_directory=True)
    run = bench("apply", str(bench.patch("double", DOUBLE)))
    assert run.status == 5
    assert "leads out of the site" in run.err or "is a link to" in run.err
    assert (bench.site / "demo/core.py").read_text() == bench.files["demo/core.py"]


def test_a_log_that_is_a_link_is_not_written_through(bench: Bench, outside: Path) -> None:
    (bench.site / ".patchkit").mkdir()
    (bench.site / ".patchkit" / "log.jsonl").symlink_to(outside / "victim")
    bench("apply", str(bench.patch("double", DOUBLE)))


@pytest.mark.parametrize("patch", [DOUBLE, ADD], ids=["edit", "add"])
def test_a_directory_becomes_a_link_between_plan_and_write(
    bench: Bench, outside: Path, patch: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """At every step of a transaction once: whoever may write to the site exchanges the directory for a link out."""
    path = str(bench.patch("swap", patch))
    steps = 0
    with fs.observed(lambda *_: None):
        names: list[str] = []
        with fs.observed(lambda operation, at, when: names.append(operation) if when == "before" else None):
            assert bench("apply", path).status == 0
        bench("revert", "swap")
    for at in range(len(names)):
        bench.install("1.0")
        for left in bench.site.glob(".patchkit"):
            os.rename(left, bench.root / f"old-{at}")
        count = iter(range(1_000_000))

        def swap(operation: str, _: str, when: str, count: Iterator[int] = count, at: int = at) -> None:
            if when == "before" and next(count) == at:
                os.rename(bench.site / "demo", bench.site / "moved")
                os.symlink(outside, bench.site / "demo")

        with fs.observed(swap):
            run = bench("apply", path)
        assert run.status in (0, 5), run
        steps += 1
        bench("check")
        bench("check")
        assert sorted(os.listdir(outside)) == ["core.py", "empty", "victim"], (at, names[at])
        if (bench.site / "demo").is_symlink():
            (bench.site / "demo").unlink()
        for left in bench.site.glob("moved*"):
            os.rename(left, bench.root / f"moved-{at}")
    with capsys.disabled():
        print(
            f"\n[hostile] a directory exchanged for a link at {steps} steps of a transaction: nothing written outside"
        )
    assert steps > 20


@pytest.mark.parametrize(
    "key", ["../outside/victim", "demo/../../outside/victim", "demo//core.py", "", "/tmp/../etc/x"]
)
def test_a_journal_key_that_climbs_is_damage(bench: Bench, outside: Path, key: str) -> None:
    forged.journal(bench.site, [forged.journal_file(key, None, None)])
    run = bench("check")
    assert (run.status, "journal.json: damaged: it names" in run.err) == (5, True)
