"""Every row of docs/drift.md, done to a real environment by the real pip and the real uv; and every hint, typed."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest
from machine import TWICE, Machine, Tools, make_tools
from released import record_mismatches
from support.bench import CORE, UTIL
from support.interpreters import find_python

pytestmark = pytest.mark.real

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "drift.md"

TEXT = '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'
SYNTAX = '[[edit]]\nfile = "demo/core.py"\nscope = "double"\nmatch = "$A + $A"\nreplace = "2 * $A"\n'
CRAMPED = TEXT.replace("2 * x", "2*x")
STOP = '[[edit]]\nfile = "demo/core.py"\nfind = "result = None"\nreplace = "result = 0"\n'
ADD = '[[add]]\nfile = "demo/extra.py"\ncontent = "E = 1\\n"\n'


class Row(NamedTuple):
    """One line of the page."""

    kind: str
    word: str
    sync: str
    then: str


def rows() -> list[Row]:
    """The lines of every table of the page."""
    cells = [re.split(r"(?<!\\)\|", line)[1:-1] for line in PAGE.read_text().splitlines() if line.startswith("|")]
    found = [Row(*(cell.strip() for cell in line)) for line in cells]
    return [row._replace(word=row.word.strip("`")) for row in found if row.word not in ("`check`", "---")]


ROWS = rows()


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    return make_tools(tmp_path_factory.mktemp("tools"))


# -- what happens ------------------------------------------------------------------------------------------------------


class Case(NamedTuple):
    """How a row comes about: the patches before, the release before, what happens, and what a person does then."""

    happens: Callable[[Machine], None]
    patches: Mapping[str, str] = MappingProxyType({"double": TEXT})
    start: str = "1.0"
    target: str = ""
    requirement: str = "demo"
    by_hand: Callable[[Machine], None] | None = None
    name: str = "double"
    ends: str = "applied"


def installs(version: str, *options: str) -> Callable[[Machine], None]:
    return lambda machine: machine.install(version, *options)


def again(machine: Machine) -> None:
    machine.install("1.0", "--no-deps", "--force-reinstall" if machine.pip else "--reinstall")


def another_build(machine: Machine) -> None:
    options = ("--force-reinstall", "--no-cache-dir") if machine.pip else ("--reinstall", "--no-cache")
    machine.install("1.0", "--no-deps", *options, links=machine.tools.rebuilt)


def uninstalled_and_back(machine: Machine) -> None:
    machine.uninstall()
    machine.install("1.0")


def cleared(machine: Machine) -> None:
    machine.run(f"{shlex.quote(sys.executable)} -m venv --clear --without-pip {machine.venv}")
    machine.install("1.0")


def another_python(machine: Machine) -> None:
    here = machine.site.parent.name
    others = [find_python(version) for version in ("3.14", "3.13", "3.12", "3.11") if here != f"python{version}"]
    shutil.rmtree(machine.venv)
    python = next((found for found in others if found), None)
    machine.make(python=python or sys.executable)
    if python is None:  # what differs then is the folder of its packages
        machine.site.parent.rename(machine.venv / "lib" / "python3.99")
        (machine.venv / "lib" / here).symlink_to("python3.99")
    assert machine.site.parent.name != here
    machine.install("1.0")


def moved(how: str) -> Callable[[Machine], None]:
    def move(machine: Machine) -> None:
        machine.run(f"{how} {machine.venv} {machine.root / 'elsewhere'}")
        machine.venv = machine.root / "elsewhere"

    return move


def edits(change: Callable[[bytes], bytes], path: str = "demo/core.py") -> Callable[[Machine], None]:
    """As editors do: another file of that name."""

    def edit(machine: Machine) -> None:
        file = machine.site / path
        data = change(file.read_bytes())
        file.unlink()
        file.write_bytes(data)

    return edit


def slyly(machine: Machine) -> None:
    """In place, with the size and the time kept: only ctime tells."""
    status = machine.core.stat()
    with machine.core.open("r+b") as file:
        data = file.read().replace(b"2 * x", b"3 * x")
        file.seek(0)
        file.write(data)
    os.utime(machine.core, ns=(status.st_atime_ns, status.st_mtime_ns))


def formatted(machine: Machine) -> None:
    ruff = Path(sys.executable).with_name("ruff")
    assert ruff.exists(), "ruff is one of the development requirements"
    machine.run(f"{ruff} format -q --isolated {machine.core}")
    assert b"2 * x" in machine.core.read_bytes()


def linked(machine: Machine) -> None:
    mine = machine.root / "mine.py"
    machine.core.rename(mine)
    machine.core.symlink_to(mine)


def removes(*names: str) -> Callable[[Machine], None]:
    def remove(machine: Machine) -> None:
        for name in names:
            path = machine.site / name
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    return remove


def ledger(change: Callable[[bytes], bytes]) -> Callable[[Machine], None]:
    return edits(change, ".patchkit/ledger.json")


def damaged_copy(machine: Machine) -> None:
    for path in (machine.state / "blobs").iterdir():
        path.write_bytes(path.read_bytes()[:-1] + b"#")


def anothers_ledger(version: str) -> Callable[[Machine], None]:
    def copy(machine: Machine) -> None:
        kept = machine.root / "kept"
        shutil.copytree(machine.state, kept)
        shutil.rmtree(machine.venv)
        machine.make()
        machine.install(version)
        kept.rename(machine.state)

    return copy


def patch_file(body: str) -> Callable[[Machine], None]:
    return lambda machine: machine.patch(body)


def renamed(machine: Machine) -> None:
    (machine.work / "patches" / "double.toml").unlink()
    machine.patch(TEXT, "twice")
    machine.project("twice")


def says_upstreamed(machine: Machine) -> None:
    machine.patch(TEXT, target='[[upstreamed]]\nversions = ">=2"\n')


def made(data: bytes) -> Callable[[Machine], None]:
    return lambda machine: bool((machine.site / "demo/util.py").write_bytes(data)) and None


def off_the_list(machine: Machine) -> None:
    machine.project()


ADDED = {"double": TEXT + ADD}
FORCED = {"double": SYNTAX}
TAKING = {"double": TEXT + '[[remove]]\nfile = "demo/util.py"\n'}
CASES = {
    "pip: `--force-reinstall`": Case(again),
    "uv: `--reinstall`": Case(again),
    "pip: an upgrade that the patch fits": Case(installs("1.1")),
    "uv: an upgrade that the patch fits": Case(installs("1.1"), patches=ADDED),
    "pip: an upgrade, under a patch that took a file away": Case(installs("1.1"), patches=TAKING),
    "uv: `--reinstall`, under a patch that took a file away": Case(again, patches=TAKING),
    "uv: a downgrade": Case(installs("1.0"), start="1.1"),
    "pip: uninstalled and installed again": Case(uninstalled_and_back, patches=ADDED),
    "pip: another build of the same version": Case(another_build),
    "uv: another build of the same version": Case(another_build),
    "an upgrade that the patch does not fit": Case(
        installs("3.0"), by_hand=patch_file(TEXT.replace(TWICE, "y = x << 1"))
    ),
    "an upgrade to a release that has the new text by itself": Case(
        installs("2.0"), by_hand=says_upstreamed, ends="upstreamed"
    ),
    "an upgrade to a release for which `[[upstreamed]]` holds": Case(
        installs("2.0"), target='[[upstreamed]]\nfile = "demo/core.py"\nfind = "y = 2 * x"\n', ends="upstreamed"
    ),
    "an upgrade out of the patch's `requirement`": Case(
        installs("2.0"), requirement="demo<2", by_hand=off_the_list, ends=""
    ),
    "pip: uninstalled": Case(Machine.uninstall, by_hand=installs("1.0")),
    "uv: uninstalled, where the patch had added a file": Case(
        Machine.uninstall, patches=ADDED, by_hand=off_the_list, ends=""
    ),
    "uninstalled, and the patch is `optional`": Case(Machine.uninstall, target="optional = true", ends="uninstalled"),
    "made anew with `python -m venv --clear`, and installed again": Case(cleared),
    "deleted, made anew with another Python, and installed again": Case(another_python, patches=FORCED),
    "moved with `mv`": Case(moved("mv"), patches=ADDED),
    "copied with `cp -a`": Case(moved("cp -a"), patches=ADDED),
    "copied with `cp -al`": Case(moved("cp -al"), patches=ADDED),
    "a hand edit outside of what patchkit wrote": Case(edits(lambda data: data + b"MINE = 1\n")),
    "a hand edit inside of what patchkit wrote": Case(edits(lambda data: data.replace(b"2 * x", b"3 * x"))),
    "a formatter over the file": Case(formatted, patches={"double": CRAMPED}),
    "other line breaks in the whole file": Case(edits(lambda data: data.replace(b"\n", b"\r\n"))),
    "other bytes, with size and time kept": Case(slyly),
    "the patched file is gone": Case(removes("demo/core.py")),
    "the file that the patch added is gone": Case(removes("demo/extra.py"), patches=ADDED),
    "the file that the patch added was edited": Case(edits(lambda data: b"E = 2\n", "demo/extra.py"), patches=ADDED),
    "the file that the patch took away is there again": Case(made(UTIL.encode()), patches=TAKING),
    "a file with other content is where the patch took one away": Case(made(b"MINE = 1\n"), patches=TAKING),
    "touched: another time alone": Case(lambda machine: os.utime(machine.core, (1, 1))),
    "other permission bits": Case(lambda machine: machine.core.chmod(0o640)),
    "a link in place of the file, to the same bytes": Case(linked),
    "a hand edit in another file of the distribution": Case(
        edits(lambda data: data + b"W = 4\n", "demo/util.py"), ends="applied"
    ),
    "`.patchkit` deleted": Case(removes(".patchkit"), patches=ADDED),
    "`.patchkit` deleted, under two patches of one file": Case(
        removes(".patchkit"), patches={"double": TEXT, "stop": STOP}
    ),
    "`.patchkit` deleted, under a syntax edit": Case(removes(".patchkit"), patches=FORCED),
    "`ledger.json` deleted, under a syntax edit": Case(removes(".patchkit/ledger.json"), patches=FORCED),
    "`.patchkit` deleted, under a patch that took a file away": Case(removes(".patchkit"), patches=TAKING),
    "`ledger.json` deleted, under a patch that took a file": Case(removes(".patchkit/ledger.json"), patches=TAKING),
    "the kept copies (`blobs`) deleted": Case(removes(".patchkit/blobs"), patches=ADDED),
    "the log and the lock deleted": Case(removes(".patchkit/log.jsonl", ".patchkit/lock")),
    "the ledger cut off": Case(ledger(lambda data: data[: len(data) // 2])),
    "one wrong byte in the ledger": Case(ledger(lambda data: data.replace(b'"size": ', b'"size": 9', 1))),
    "a kept copy is damaged": Case(damaged_copy),
    "a ledger of a newer patchkit": Case(
        ledger(lambda data: data.replace(b'"schema": 1', b'"schema": 9')), ends="ledger-version"
    ),
    "the ledger of another environment, with the same release": Case(anothers_ledger("1.0")),
    "the ledger of another environment, with another release": Case(anothers_ledger("1.1")),
    "edited": Case(patch_file(TEXT.replace("2 * x", "x * 2"))),
    "edited, and does not fit any more": Case(patch_file(TEXT.replace(TWICE, "y = q")), by_hand=patch_file(TEXT)),
    "edited, and is no TOML any more": Case(patch_file("[[edit]\n"), by_hand=patch_file(TEXT)),
    "deleted": Case(lambda machine: (machine.work / "patches" / "double.toml").unlink()),
    "renamed, in the list too": Case(renamed, name="twice"),
    "taken off the list": Case(off_the_list, ends=""),
}
#: Hints whose command follows on something that only a person can do; what else a row proposes is typed.
AFTER_A_PERSON = {
    "an upgrade out of the patch's `requirement`",
    "pip: uninstalled",
    "uv: uninstalled, where the patch had added a file",
    "a ledger of a newer patchkit",
}
#: What a command that explains ends with.
EXPLAINS = {"--dry-run": (2, 4), "patchkit lint": (1, 2), "patchkit doctor": (0, 1), "patchkit diff": (0,)}


def test_every_row_is_tested() -> None:
    assert [row.kind for row in ROWS] == list(CASES)


@pytest.fixture
def machine(request: pytest.FixtureRequest, tmp_path: Path, tools: Tools) -> Machine:
    kind: str = request.param
    case = CASES[kind]
    made = Machine(tmp_path / "machine", tools, pip=kind.startswith("pip: "))
    made.install(case.start)
    for name, body in case.patches.items():
        made.patch(body, name, case.requirement, case.target)
    made.project(*case.patches)
    made.run("patchkit sync")
    case.happens(made)
    return made


def typed(text: str) -> Iterator[str]:
    """The commands in backticks."""
    for command in re.findall(r"`([^`]+)`", text):
        if re.match(r"(patchkit|uv|mv|rm|\S*pip|\S*python\S*) ", command):
            yield command


def expected(command: str) -> tuple[int, ...]:
    return next((statuses for part, statuses in EXPLAINS.items() if part in command), (0,))


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below, caches of bytecode left out."""
    found = [path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {str(path): path.read_bytes() for path in found}


def files_of(machine: Machine) -> dict[str, bytes]:
    """Every file of the distribution, and the project's."""
    return contents(machine.site / "demo") | contents(machine.work)


@pytest.mark.parametrize(("machine", "row"), [(row.kind, row) for row in ROWS], indirect=["machine"], ids=lambda v: v)
def test_a_row(machine: Machine, row: Row) -> None:
    case = CASES[row.kind]
    before = files_of(machine)
    twin = contents(machine.root / "venv") if row.kind.startswith("copied") else {}

    status, word, reason = machine.check(case.name)
    clean = word in ("applied", "upstreamed") or "optional" in row.kind
    listed = case.name == "double"
    assert (word, status) == (row.word, 5 if word == "ledger-version" else 0 if clean and listed else 1)
    assert files_of(machine) == before
    assert reason or word == "applied"

    status, answer = machine.json("sync --dry-run")
    assert files_of(machine) == before
    error = answer["error"]
    hint = "" if error is None else f"{error['message']}; {error['hint']}"
    refused = re.fullmatch(r"refuses \((\d)\)", row.sync)
    assert status == (int(refused[1]) if refused else 0)
    if row.kind not in AFTER_A_PERSON:
        typed_now = sum(try_hints(machine, text) for text in (reason, hint))
        assert typed_now or clean, "what is wrong comes with a command to type"

    status, answer = machine.json("sync")
    if refused:
        assert status == int(refused[1])
        assert files_of(machine) == before
        assert error["hint"]
    else:
        acted = {patch["name"]: patch["action"] for patch in answer["patches"]}
        words = {"applies it": "applied", "records it": "applied", "leaves it": "unchanged", "drops it": "upstreamed"}
        words |= {"reverts it": "reverted", "skips it": "skipped"}
        assert acted[case.name] == words[row.sync]
        if row.sync in ("records it", "leaves it", "drops it", "skips it"):
            assert files_of(machine) == before
    goes_on(machine, case, row, reason + hint)

    status, word, _ = machine.check(case.name)
    assert (word, status) == (case.ends, 5 if case.ends == "ledger-version" else 0)
    if case.ends not in ("ledger-version", "uninstalled") and "hand edit in another file" not in row.kind:
        machine.run("patchkit revert --all")
        if any(machine.site.glob("demo-*.dist-info")):
            assert record_mismatches_of(machine) == []
            assert not (machine.site / "demo" / "extra.py").exists()
        else:
            assert not (machine.site / "demo").exists()
    if twin:
        assert contents(machine.root / "venv") == twin


def goes_on(machine: Machine, case: Case, row: Row, said: str) -> None:
    """Type what the row says, and do by hand what it says is to be done by hand."""
    commands = list(typed(row.then.replace("`REINSTALL`", "`uv REINSTALL`")))
    if case.by_hand is not None and "patchkit sync" not in commands:
        commands.append("")
    for command in commands:
        if case.by_hand is not None and command in ("patchkit sync", ""):
            case.by_hand(machine)
        if command == "uv REINSTALL":
            command = next(one for one in typed(said) if "demo==" in one)
        if "LEDGER" in command:
            command = next(one for one in typed(said) if one.startswith("mv "))
        if command:
            done = machine.type(command)
            assert done.status in expected(command), (command, done)
            if command.startswith("patchkit doctor"):
                assert "problem" in done.out


def try_hints(machine: Machine, text: str) -> int:
    """Type what a message proposes, one after the other, on a copy that is put in the place of the machine."""
    # A name that is for a person to choose: that command has tests of its own.
    commands = [command for command in typed(text) if " NAME " not in command]
    if not commands:
        return 0
    kept = machine.root.with_name("kept")
    machine.root.rename(kept)
    subprocess.run(["cp", "-a", kept, machine.root], check=True)
    for command in commands:
        done = machine.type(command)
        assert done.status in expected(command), (text, command, done)
    shutil.rmtree(machine.root)
    kept.rename(machine.root)
    return len(commands)


def record_mismatches_of(machine: Machine) -> list[str]:
    """Those of demo, without the other distributions of the environment."""
    alone = machine.root / "alone"
    shutil.rmtree(alone, ignore_errors=True)
    alone.mkdir()
    for path in machine.site.glob("demo*"):
        shutil.copytree(path, alone / path.name)
    return record_mismatches(alone)


def test_a_rebuilt_machine(tmp_path: Path, tools: Tools) -> None:
    """A notebook machine is new every day: the list and the patches are checked in, one command does it."""
    bodies = {"double": SYNTAX, "stop": STOP, "extra": ADD}
    first = Machine(tmp_path / "monday", tools, pip=False)
    for name, body in bodies.items():
        first.patch(body, name)
    first.project(*bodies)
    first.install("1.0")
    first.run("patchkit sync")
    second = Machine(tmp_path / "tuesday", tools, pip=False)
    shutil.copytree(first.work, second.work, dirs_exist_ok=True)
    status, word, reason = second.check("double")
    assert (status, word) == (1, "uninstalled")
    assert (
        reason
        == "its target is not installed: install demo, then `patchkit sync`, or take double off the project's list"
    )
    second.install("1.0")
    assert second.check("double")[:2] == (1, "absent")
    second.run("patchkit sync")
    after = files_of(second)
    assert [path.read_bytes() for path in (second.core, second.site / "demo/extra.py")] == [
        CORE.replace(TWICE, "y = 2 * x").replace("result = None", "result = 0").encode(),
        b"E = 1\n",
    ]
    status, answer = second.json("sync")  # again: nothing to do
    assert (status, {patch["action"] for patch in answer["patches"]}) == (0, {"unchanged"})
    assert files_of(second) == after
    assert second.check("stop")[:2] == (0, "applied")
    second.run("patchkit revert --all")
    assert record_mismatches_of(second) == []


def test_a_shipped_patch_through_the_releases(tmp_path: Path, tools: Tools, wheel: Callable[[str, str], Path]) -> None:
    """tpu-inference 0.23.0, 0.24.0, 0.32.0 and back, with ``logits-greedy`` on; with uv, and without dependencies."""
    machine = Machine(tmp_path / "machine", tools, pip=False)
    (machine.work / "patches").rmdir()
    machine.project("logits-greedy")

    def install(version: str, *options: str) -> None:
        python = machine.venv / "bin" / "python"
        archive = shlex.quote(str(wheel("tpu-inference", version)))
        machine.run(f"uv pip install -q --no-deps --python {python} {' '.join(options)} {archive}")

    install("0.23.0")
    machine.run("patchkit sync")
    patched: dict[str, bytes] = {}
    for version, word in (("0.23.0", "lost"), ("0.24.0", "stale"), ("0.32.0", "stale"), ("0.23.0", "stale")):
        install(version, "--reinstall")
        assert machine.check("logits-greedy")[:2] == (1, word)
        machine.run("patchkit sync")
        assert machine.check("logits-greedy")[:2] == (0, "applied")
        runner = (machine.site / "tpu_inference/runner/tpu_runner.py").read_bytes()
        assert patched.setdefault(version, runner) == runner
        assert record_mismatches(machine.site)
    shutil.rmtree(machine.state)
    status, word, reason = machine.check("logits-greedy")
    assert (status, word) == (1, "modified")
    assert "`patchkit apply logits-greedy --fetch`" in reason
    assert machine.run(
        "patchkit apply logits-greedy --fetch", PIP_FIND_LINKS=str(wheel("tpu-inference", "0.23.0").parent)
    )
    assert machine.check("logits-greedy")[:2] == (0, "applied")
    machine.run("patchkit revert --all")
    assert record_mismatches(machine.site) == []


def test_how_many(capsys: pytest.CaptureFixture[str]) -> None:
    proposing = [row for row in ROWS if row.word not in ("applied", "upstreamed") and row.kind not in AFTER_A_PERSON]
    assert proposing
    with capsys.disabled():
        print(f"\ndrift: {len(ROWS)} rows of docs/drift.md; what the messages of {len(proposing)} propose is typed")
