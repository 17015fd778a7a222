"""A damaged ledger: `check` says what can be rebuilt; what needs the ledger refuses with the same advice."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.bench import CORE, Bench

DOUBLE = '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'
UTIL_X = '[[edit]]\nfile = "demo/util.py"\nfind = "X = 1\\n"\nreplace = "X = 10\\n"\n'
ROOT = Path(__file__).resolve().parents[2]


def damaged(bench: Bench) -> Path:
    """A site with two applied patches whose ledger has one wrong byte."""
    bench.patch("double", DOUBLE)
    bench.patch("util", UTIL_X)
    bench("apply", "double", "util")
    ledger = bench.site / ".patchkit" / "ledger.json"
    data = ledger.read_bytes()
    assert data.count(b'"tx": "') == 1
    ledger.write_bytes(data.replace(b'"tx": "', b'"tx": "f'))
    return ledger


def test_check_prints_what_is_salvaged(bench: Bench) -> None:
    ledger = damaged(bench)
    run = bench("check")
    assert run.status == 1
    lines = run.out.split("\n")
    assert lines[0] == "double  corrupt     demo 1.0"
    assert lines[1].strip() == "the ledger is damaged; it was applied to demo 1.0 from"
    assert lines[2].strip() == str(bench.patches / "double.toml")
    assert "util    corrupt     demo 1.0" in lines
    assert f"damaged: {ledger}: damaged: its checksum is" in run.err
    assert f"delete {ledger}, patchkit apply double util" in run.err
    assert "pip install --force-reinstall --no-deps demo==1.0" in run.err


def test_the_json(bench: Bench) -> None:
    damaged(bench)
    run = bench.json("check")
    assert (run.status, run.json["ok"], run.json["error"]) == (1, False, None)
    for patch, name in zip(run.json["patches"], ("double", "util"), strict=True):
        reason = f"the ledger is damaged; it was applied to demo 1.0 from {bench.patches}/{name}.toml"
        assert patch == {
            "name": name,
            "state": "corrupt",
            "distribution": "demo",
            "version": "1.0",
            "applied_version": "1.0",
            "files": [],
            "reason": reason,
            "site": str(bench.site),
        }
    assert run.json["damage"]["code"] == "corrupt"
    assert "patchkit apply double util" in run.json["damage"]["hint"]


def test_names_and_the_projects_list(bench: Bench) -> None:
    damaged(bench)
    assert [p["name"] for p in bench.json("check", "util").json["patches"]] == ["util"]
    bench.patch("third", DOUBLE)
    bench.project("double", "third")
    states = bench.json("check").json["patches"]
    assert [(p["name"], p["state"]) for p in states] == [
        ("double", "corrupt"),
        ("util", "corrupt"),
        ("third", "corrupt"),
    ]
    assert bench("check", "nobody").status == 2


def test_nothing_can_be_salvaged(bench: Bench) -> None:
    ledger = damaged(bench)
    ledger.write_bytes(b"\x00" * 100)
    run = bench.json("check")
    assert (run.status, run.json["ok"], run.json["patches"]) == (1, False, [])
    assert "pip install --force-reinstall" in run.json["damage"]["hint"]


@pytest.mark.parametrize(
    "command",
    [
        ("apply", "double"),
        ("apply", "double", "--dry-run"),
        ("revert", "double"),
        ("revert", "--all"),
        ("sync",),
        ("list",),
        ("show", "double"),
        ("diff",),
    ],
    ids=" ".join,
)
def test_every_other_command_refuses(bench: Bench, command: tuple[str, ...]) -> None:
    ledger = damaged(bench)
    before = ledger.read_bytes()
    run = bench.json(*command)
    assert (run.status, run.error["code"]) == (5, "corrupt")
    assert f"delete {ledger}, patchkit apply double util" in run.error["hint"]
    assert ledger.read_bytes() == before
    assert bench.read("demo/core.py") == CORE.replace("x + x", "2 * x").encode()


def test_the_log_and_the_doctor_still_work(bench: Bench) -> None:
    damaged(bench)
    assert bench("log").status == 0
    run = bench("doctor")
    assert run.status == 1
    assert "problem ledger: " in run.out
    assert "patchkit apply double util" in " ".join(run.out.split())


def test_the_advice_works(bench: Bench) -> None:
    ledger = damaged(bench)
    bench.install("1.0")
    ledger.unlink()
    assert bench("apply", "double", "util").status == 0
    assert bench("check").status == 0


def test_a_newer_ledger_is_not_taken_for_damage(bench: Bench) -> None:
    ledger = damaged(bench)
    ledger.write_bytes(ledger.read_bytes().replace(b'"schema": 1', b'"schema": 2'))
    run = bench.json("check")
    assert (run.status, run.error["code"]) == (5, "ledger-version")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"schema": 1}', "not json", "\0" * 100])
def test_damage_of_every_kind_in_a_fresh_process(bench: Bench, content: str) -> None:
    """In a process of its own, where nothing has imported ``json`` yet."""
    damaged(bench).write_text(content)
    command = [sys.executable, "-m", "patchkit", "--site", str(bench.site), "check"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=bench.root / "work")
    assert (done.returncode, "damaged" in done.stderr) == (1, True), done.stderr


def test_check_prints_what_is_salvaged_in_a_fresh_process(bench: Bench) -> None:
    damaged(bench)
    command = [sys.executable, "-m", "patchkit", "--site", str(bench.site), "check"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=bench.root / "work")
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("double  corrupt     demo 1.0\n")
