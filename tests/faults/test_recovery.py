"""Interrupted commands that something else went wrong with as well."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from state.sites import Crash
from support.bench import CORE, Bench
from support.dists import make_dist
from support.sites import bare_site

from patchkit.model.load import load_patch
from patchkit.ops.apply import apply_site
from patchkit.ops.check import check_site
from patchkit.state import fs

BOTH = (
    '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'
    '[[edit]]\nfile = "demo/util.py"\nfind = "X = 1\\n"\nreplace = "X = 10\\n"\n'
)


class StopBehind:
    """As if killed right behind the first step of this kind on a path that ends so."""

    def __init__(self, operation: str, end: str) -> None:
        self.operation, self.end = operation, end
        self.fired = False

    def __call__(self, operation: str, path: str, when: str) -> None:
        if self.fired or ((operation, when) == (self.operation, "after") and path.endswith(self.end)):
            self.fired = True
            raise Crash


@contextlib.contextmanager
def stopped(operation: str, end: str) -> Iterator[None]:
    hook = StopBehind(operation, end)
    with contextlib.suppress(Crash), fs.observed(hook):
        yield
    assert hook.fired


def test_a_ledger_that_is_damaged_meanwhile(bench: Bench) -> None:
    """What was interrupted cannot be judged without it: the way out that is told leads out."""
    bench.patch("one", '[[edit]]\nfile = "demo/core.py"\nfind = "result = None"\nreplace = "result = 0"\n')
    bench.patch("both", BOTH)
    assert bench("apply", "one").status == 0
    with stopped("replace", "core.py"):
        bench("apply", "both")
    ledger = bench.site / ".patchkit" / "ledger.json"
    ledger.write_bytes(ledger.read_bytes().replace(b'"one"', b'"two"'))
    for words in (("apply", "both"), ("revert", "--all"), ("sync",), ("list",), ("diff",)):
        run = bench.json(*words)
        assert (words, run.status, run.error["code"]) == (words, 5, "corrupt")
        assert str(ledger) in run.error["hint"]
        assert "demo==1.0" in run.error["hint"]
    run = bench.json("check")
    assert (run.status, run.json["damage"]["code"]) == (1, "corrupt")
    assert bench("doctor").status == 1
    bench.install("1.0")  # pip install --force-reinstall
    ledger.unlink()
    run = bench("apply", "one")
    assert run.status == 0, run.err
    assert "was taken back" in run.err
    assert bench.read("demo/core.py") == CORE.replace("result = None", "result = 0").encode()
    assert bench("revert", "--all").status == 0
    assert bench.pristine()


def test_a_journal_that_is_damaged(bench: Bench) -> None:
    bench.patch("both", BOTH)
    with stopped("replace", "core.py"):
        bench("apply", "both")
    journal = bench.site / ".patchkit" / "journal.json"
    journal.write_bytes(journal.read_bytes()[:-40])
    before = bench.read("demo/core.py")
    for words in (("apply", "both"), ("revert", "--all"), ("sync",), ("list",)):
        run = bench.json(*words)
        assert (words, run.status, run.error["code"]) == (words, 5, "corrupt")
        assert f"delete {journal}" in run.error["hint"]
        assert "demo==1.0" in run.error["hint"]
    assert bench.read("demo/core.py") == before
    bench.install("1.0")
    journal.unlink()
    assert bench("apply", "both").status == 0
    assert bench("revert", "--all").status == 0
    assert bench.pristine()


def test_two_folders_of_one_path_each_with_an_interrupted_command(tmp_path: Path) -> None:
    """One is taken back, the other had been completed; one look does both, and tells of both."""
    homes = {name: tmp_path / name for name in ("first", "second")}
    for name, home in homes.items():
        make_dist(home, name, "1.0", {f"{name}/__init__.py": "", f"{name}/mod.py": "V = 1\n"})
    site = bare_site(*homes.values())
    for name, (operation, end) in {"first": ("replace", "mod.py"), "second": ("replace", "ledger.json")}.items():
        toml = tmp_path / f"{name}-patch.toml"
        toml.write_text(
            f'schema = 1\nname = "{name}-patch"\nsummary = "s"\n[target]\nrequirement = "{name}"\n'
            f'[[edit]]\nfile = "{name}/mod.py"\nfind = "V = 1"\nreplace = "V = 2"\n'
        )
        with stopped(operation, end):
            apply_site(site, [load_patch(str(toml))], notice=lambda text: None)
        assert (homes[name] / name / "mod.py").read_text() == "V = 2\n"
    report = check_site(site)
    assert report.notices == [
        "an interrupted `apply` was taken back (1 file)",
        "an interrupted `apply` had been completed (1 file); it was tidied up",
    ]
    assert report.clean
    assert [(state.name, state.state) for state in report.states] == [("second-patch", "applied")]
    assert (homes["first"] / "first" / "mod.py").read_text() == "V = 1\n"
    assert (homes["second"] / "second" / "mod.py").read_text() == "V = 2\n"
    assert check_site(site).notices == []
    assert not any(os.path.exists(home / ".patchkit" / "journal.json") for home in homes.values())


@pytest.mark.parametrize("damage", ["lost", "other bytes"])
def test_check_names_the_copy_that_taking_back_needs(bench: Bench, damage: str) -> None:
    bench.patch("both", BOTH)
    with stopped("replace", "util.py"):
        bench("apply", "both")
    blob = bench.site / ".patchkit" / "blobs" / hashlib.sha256(CORE.encode()).hexdigest()
    blob.unlink() if damage == "lost" else blob.write_bytes(CORE.replace("x + x", "x - x").encode())
    run = bench("check")
    assert run.status == 1
    assert "an interrupted command could not be taken back" in run.err
    assert str(blob) in run.err
    assert bench.read("demo/core.py") == CORE.replace("x + x", "2 * x").encode()  # ours, not what the copy holds now
    assert bench.read("demo/util.py") == b"X = 1\r\nY = 2\r\nZ = 3\r\n"
    bench.install("1.0")  # as the hint says
    run = bench("check")
    assert (run.status, bench.pristine()) == (0, True)
    assert "an interrupted `apply` was taken back (2 files)" in run.err
