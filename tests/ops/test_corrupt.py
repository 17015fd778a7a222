"""A damaged ledger: `check` says what can be rebuilt; what needs the ledger refuses with the same advice."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.bench import CORE, DEMO, Bench

from patchkit.errors import SiteError
from patchkit.runtime.ledger import read

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
    assert f"`mv {ledger} {ledger}.damaged`" in run.err
    assert "`patchkit apply double util`" in run.err
    assert f"pip install --target {bench.site} --upgrade --no-deps --no-cache-dir demo==1.0" in " ".join(
        run.err.split()
    )


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
    hint = run.json["damage"]["hint"]
    assert "`patchkit apply double util` (or" in hint  # by the log
    assert "pip install" not in hint  # of which release, nothing tells


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
    assert f"`mv {ledger} {ledger}.damaged`" in run.err
    assert "`patchkit apply double util`" in run.error["hint"]
    assert ledger.read_bytes() == before
    assert bench.read("demo/core.py") == CORE.replace("x + x", "2 * x").encode()


def test_the_log_and_the_doctor_still_work(bench: Bench) -> None:
    damaged(bench)
    assert bench("log").status == 0
    run = bench("doctor")
    assert run.status == 1
    assert "problem ledger: " in run.out
    assert "patchkit apply double util" in " ".join(run.out.split())


def test_the_advice_works_as_it_is_typed(bench: Bench) -> None:
    """Moved away and applied again: no file is written, and revert knows the way back."""
    ledger = damaged(bench)
    hint = bench.json("check").json["damage"]["hint"]
    move, again, _ = re.findall("`([^`]+)`", hint)
    assert (shlex.split(move), again) == (["mv", str(ledger), f"{ledger}.damaged"], "patchkit apply double util")
    ledger.rename(f"{ledger}.damaged")
    stats = [(bench.site / path).stat() for path in ("demo/core.py", "demo/util.py")]
    assert bench(*again.split()[1:]).status == 0
    assert [(bench.site / path).stat() for path in ("demo/core.py", "demo/util.py")] == stats
    assert bench("check").status == 0
    assert bench("revert", "--all").status == 0
    assert bench.pristine()


def test_the_names_come_from_the_log_where_no_line_is_intact(bench: Bench) -> None:
    ledger = damaged(bench)
    bench("log")
    ledger.write_bytes(b"{")
    assert "`patchkit apply double util`" in bench.json("check").json["damage"]["hint"]
    (bench.site / ".patchkit/log.jsonl").unlink()
    assert "`patchkit apply NAME...`" in bench.json("check").json["damage"]["hint"]


def test_the_advice_works_after_a_reinstall(bench: Bench) -> None:
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


@pytest.mark.parametrize("kind", ["a bit", "a byte", "gone", "cut off"])
def test_damage_at_every_position(bench: Bench, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Every reader refuses; no traceback, and not one byte is written."""
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    ledger = bench.site / ".patchkit" / "ledger.json"
    whole = ledger.read_bytes()
    patched = bench.read("demo/core.py")
    commands = [("check",), ("apply", "double"), ("revert", "double"), ("revert", "--all"), ("sync",), ("list",)]
    for at in range(len(whole)):
        here = whole[at]
        new = {"a bit": bytes([here ^ 1 << at % 8]), "a byte": b"\x00", "gone": b"", "cut off": b""}[kind]
        data = whole[:at] + new + (b"" if kind == "cut off" else whole[at + 1 :])
        ledger.write_bytes(data)
        code, value = read_or_code(bench)
        if code is None:
            assert value == {**(value or {}), **_parsed(whole)}, at  # a blank before the checksum
            continue
        assert code in ("corrupt", "ledger-version")
        if at % 29 == 0:
            for command in commands:
                run = bench(*command)
                assert run.status == (1 if command == ("check",) and code == "corrupt" else 5), (at, command)
                assert "unexpected" not in run.err
            assert (ledger.read_bytes(), bench.read("demo/core.py")) == (data, patched)
    ledger.write_bytes(whole)
    assert bench("revert", "double").status == 0
    assert bench.pristine()
    with capsys.disabled():
        print(f"\nledger: {len(whole)} positions ({kind}), refused by every reader")


def read_or_code(bench: Bench) -> tuple[str | None, dict[str, object] | None]:
    """The code of the error, or the value, that reading the ledger gives."""
    try:
        return None, read(str(bench.site))
    except SiteError as error:
        return error.code if error.hint else "no hint", None


def _parsed(data: bytes) -> dict[str, object]:
    value = json.loads(data)
    assert isinstance(value, dict)
    return {name: value[name] for name in ("patches", "files", "upstreamed", "schema", "tx")}


def test_a_wrong_schema_may_be_damage(bench: Bench) -> None:
    ledger = damaged(bench)
    ledger.write_bytes(ledger.read_bytes().replace(b'"schema": 1', b'"schema": 3'))
    hint = bench.json("check").error["hint"]
    assert f"`mv {ledger} {ledger}.damaged`" in hint


# -- a ledger that is gone ---------------------------------------------------------------------------------------------

STOP = '[[edit]]\nfile = "demo/core.py"\nfind = "result = None"\nreplace = "result = 0"\n'
SYNTAX = '[[edit]]\nfile = "demo/core.py"\nscope = "double"\nmatch = "$A + $A"\nreplace = "2 * $A"\n'
IMPORT = '[[edit]]\nfile = "demo/core.py"\nfind = "import os"\nreplace = "import sys"\n'
GONE = (
    "the ledger is gone, or does not know it, and every file holds what {} writes: {} records it again and writes no "
    "file"
)


def found(bench: Bench, *names: str) -> dict[str, tuple[str, str]]:
    patches = bench.json("check", *names).json["patches"]
    return {patch["name"]: (patch["state"], patch["reason"]) for patch in patches}


def lose_ledger(bench: Bench, *, copies: bool) -> None:
    if copies:
        shutil.rmtree(bench.site / ".patchkit")
    else:
        (bench.site / ".patchkit" / "ledger.json").unlink()


@pytest.mark.parametrize("copies", [True, False], ids=["with the copies", "alone"])
def test_a_ledger_that_is_gone_is_said_and_made_again(bench: Bench, copies: bool) -> None:
    bodies = {"double": DOUBLE, "stop": STOP, "util": UTIL_X}
    for name, body in bodies.items():
        bench.patch(name, body)
    bench.project(*bodies)
    assert bench("sync").status == 0
    stats = {path: (bench.site / path).stat() for path in DEMO}
    lose_ledger(bench, copies=copies)
    assert found(bench) == {name: ("corrupt", GONE.format(name, "`patchkit sync`")) for name in bodies}
    assert bench("check").status == 1
    assert bench("sync").status == 0
    assert {path: (bench.site / path).stat() for path in DEMO} == stats
    assert {name: word for name, (word, _) in found(bench).items()} == dict.fromkeys(bodies, "applied")
    assert bench("revert", "stop").status == 0
    assert bench("revert", "--all").status == 0
    assert bench.pristine()


def test_a_syntax_edit_is_found_by_its_kept_copy(bench: Bench) -> None:
    """It cannot be turned round, but a copy lies there under the hash that RECORD tells."""
    bench.patch("syn", SYNTAX)
    bench("apply", "syn")
    lose_ledger(bench, copies=False)
    assert found(bench, "syn") == {"syn": ("corrupt", GONE.format("syn", "`patchkit apply syn`"))}
    assert bench("apply", "syn").status == 0
    assert bench("revert", "syn").status == 0
    assert bench.pristine()


def test_a_copy_that_is_not_what_its_name_says_is_not_taken(bench: Bench) -> None:
    """The patch makes of it just what the file holds, but revert would bring back other bytes than were installed."""
    bench.patch("syn", SYNTAX)
    bench("apply", "syn")
    lose_ledger(bench, copies=False)
    for path in (bench.site / ".patchkit" / "blobs").iterdir():
        path.write_bytes(CORE.replace("x + x", "x  +  x").encode())
    patched = bench.read("demo/core.py")
    assert found(bench, "syn")["syn"][0] == "modified"
    assert bench("apply", "syn").status == 5
    assert bench.read("demo/core.py") == patched


def test_some_of_several_patches_are_undone_in_any_order(bench: Bench) -> None:
    """The wanted ones are tried as they may have been laid, one on the other."""
    upon = '[[edit]]\nfile = "demo/core.py"\nfind = "y = 2 * x"\nreplace = "y = 2 * x + 0"\n'
    bench.patch("upon", upon, target='after = ["double"]')
    bench.patch("double", DOUBLE)
    bench.patch("import", IMPORT)
    bench.project("import", "upon", "double")
    assert bench("sync").status == 0
    lose_ledger(bench, copies=True)
    assert {word for word, _ in found(bench).values()} == {"corrupt"}
    assert bench("sync").status == 0
    bench("revert", "--all")
    assert bench.pristine()


@pytest.mark.parametrize("command", [("revert", "double"), ("revert", "--all"), ("revert", "--force", "double")])
def test_revert_does_not_call_it_not_applied(bench: Bench, command: tuple[str, ...]) -> None:
    bench.patch("double", DOUBLE)
    bench.project("double")
    bench("sync")
    lose_ledger(bench, copies=True)
    run = bench.json(*command)
    assert (run.status, run.error["code"], run.error["patches"]) == (5, "corrupt", ["double"])
    assert "`patchkit apply double`; then revert it" in run.error["hint"]
    assert bench("apply", "double").status == 0
    assert bench(*command).status == 0
    assert bench.pristine()


def test_a_hand_edit_beside_is_not_taken_for_ours(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench.project("double")
    bench("sync")
    lose_ledger(bench, copies=False)
    edited = bench.read("demo/core.py") + b"MINE = 1\n"
    bench.write("demo/core.py", edited)
    word, reason = found(bench)["double"]
    assert word == "modified"
    assert "`patchkit apply double --fetch` finds out" in reason
    for command in (("sync",), ("apply", "double")):
        assert bench(*command).status == 5
    assert bench.read("demo/core.py") == edited


def test_a_half_of_it_is_not_taken_for_the_whole(bench: Bench) -> None:
    bench.patch("both", DOUBLE + UTIL_X)
    bench("apply", "both")
    lose_ledger(bench, copies=False)
    bench.write("demo/util.py", DEMO["demo/util.py"].encode())  # type: ignore[union-attr]
    assert found(bench, "both")["both"][0] == "modified"
    assert bench("apply", "both").status == 0
    assert bench("revert", "both").status == 0
    assert bench.pristine()


def test_one_of_two_on_a_file_was_on(bench: Bench) -> None:
    """`sync` would lay both on one file, of which it knows neither: what is there comes first."""
    bench.patch("double", DOUBLE)
    bench.patch("stop", STOP)
    bench.project("double", "stop")
    bench("apply", "double")
    lose_ledger(bench, copies=True)
    reasons = found(bench)
    assert reasons["double"] == ("corrupt", GONE.format("double", "`patchkit apply double`"))
    assert reasons["stop"] == (
        "modified",
        "the files hold what double writes, and the ledger is gone, or does not know it: `patchkit apply double`, then "
        "`patchkit sync`",
    )
    assert bench("sync").status == 5
    assert bench("apply", "double").status == 0
    assert bench("sync").status == 0
    assert {word for word, _ in found(bench).values()} == {"applied"}
    bench("revert", "--all")
    assert bench.pristine()


def test_a_patch_that_is_off_is_not_called_on(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench.patch("stop", STOP)
    bench("apply", "double")
    lose_ledger(bench, copies=False)
    assert found(bench, "double")["double"][0] == "corrupt"
    assert found(bench, "stop")["stop"][0] == "modified"
    assert bench("revert", "stop").status == 0  # rightly "not applied"


# -- copies ------------------------------------------------------------------------------------------------------------


def test_the_doctor_reads_the_kept_copies(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    assert bench("doctor").status == 0
    original = bench.site / ".patchkit/blobs" / hashlib.sha256(CORE.encode()).hexdigest()
    original.write_bytes(b"not what its name says")
    run = bench.json("doctor")
    [fact] = [fact for fact in run.json["facts"] if fact["level"] == "problem"]
    assert (run.status, fact["text"]) == (1, "double: the original of demo/core.py is damaged")
    assert fact["hint"] == f"`rm {original}`, then `patchkit apply double` finds it again where it can"
    original.unlink()
    assert bench("apply", "double").status == 0
    assert original.read_bytes() == CORE.encode()
    assert bench("doctor").status == 0


def test_sync_finds_lost_copies_again(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench.project("double")
    bench("sync")
    blobs = bench.site / ".patchkit" / "blobs"
    names = sorted(path.name for path in blobs.iterdir())
    shutil.rmtree(blobs)
    assert found(bench)["double"][0] == "corrupt"
    assert bench("sync").status == 0
    assert sorted(path.name for path in blobs.iterdir()) == names
    assert bench("check").status == 0


def test_a_damaged_ledger_names_what_the_log_says_is_still_on(bench: Bench) -> None:
    """`sync` lays patches and drops others: what it dropped is not proposed, and no release that nobody knows."""
    body = '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'
    for name, text in (
        ("p", body),
        ("q", body.replace("y = x + x", "result = None").replace("y = 2 * x", "result = 0")),
    ):
        bench.patch(name, text)
    bench.project("p", "q")
    assert bench("sync").status == 0
    bench.project("p")
    assert bench("sync").status == 0
    (bench.site / ".patchkit/ledger.json").write_bytes(b"garbage")
    hint = bench.json("apply", "p").error["hint"]
    assert "`patchkit apply p` (or `patchkit sync`, where the project lists them)" in hint
    assert "==" not in hint
    assert [event.get("dropped") for event in bench.json("log").json["events"]] == [None, ["q"]]
