"""A whole rig of made-up wheels: created, stopped and gone on with, run and proved by the commands."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.documents import blocks, document
from support.rigs import RECIPE, engine_patch, make_wheels

from patchkit.cli.main import main
from patchkit.rig import create, recipe
from patchkit.rig.state import Rig, rig_lock, write_rig

Call = Callable[..., tuple[int, Any]]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels that pip looks in and nowhere else, and of patches."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    for module in (recipe, create):
        monkeypatch.setattr(module, "RECIPES", {"0.24.0": RECIPE})
    (tmp_path / "wheels").mkdir()
    patches = tmp_path / "patches"
    patches.mkdir()
    for name, find, replace, tags in (
        ("logits-greedy-naive", "OFF_THE_MENU = False", "OFF_THE_MENU = True", '["known-bad"]'),
        ("logits-greedy", 'WORD = "stock"', 'WORD = "fixed"', "[]"),
        ("other-tokens", 'WORD = "stock"', 'WORD = "other than stock"', "[]"),
        ("crash", "CRASH = False", "CRASH = True", "[]"),
    ):
        (patches / f"{name}.toml").write_text(engine_patch(name, find, replace, tags), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def call(world: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    """Run ``patchkit --json rig ...``: its exit status and its object."""

    def call(*words: str) -> tuple[int, Any]:
        capsys.readouterr()
        status = main(["--json", "--patches", str(world / "patches"), "rig", *words])
        return status, json.loads(capsys.readouterr().out)

    return call


def documented(title: str) -> Any:
    """The example object of docs/commands.md."""
    (block,) = [block for block in blocks(document("docs/commands.md")) if block.title == title]
    return json.loads(block.text)


def tokens(requests: list[list[int]], count: int, word: str) -> str:
    """The hash of the made-up engine's answer, from what it is said to be."""
    answers = [[(sum(ids) * 7 + place + len(word)) % 2048 for place in range(count)] for ids in requests]
    return hashlib.sha256(json.dumps(answers).encode()).hexdigest()


def test_the_life_of_a_rig(world: Path, call: Call, capsys: pytest.CaptureFixture[str]) -> None:
    folder = world / "rig"
    # The plan writes nothing.
    status, planned = call("create", str(folder), "--dry-run")
    assert (status, folder.exists()) == (0, False)
    names = ["environment", "torch", "libraries", "stack", "engine", "patches", "model", "trial"]
    assert [(step["name"], step["done"]) for step in planned["steps"]] == [(name, False) for name in names]
    # A creation that stops, here for want of a wheel, says why, and is no rig yet.
    make_wheels(world / "wheels", without="torchax")
    status, stopped = call("create", str(folder))
    assert (status, stopped["error"]["code"]) == (5, "fetch")
    assert "torchax" in stopped["error"]["message"]
    assert call("prove", str(folder))[1]["error"]["code"] == "no-rig"
    assert "stopped before its step `stack`" in call("run", str(folder))[1]["error"]["message"]
    # The next one goes on where it stopped.
    make_wheels(world / "wheels")
    environment = (folder / "env" / "pyvenv.cfg").stat().st_mtime_ns
    capsys.readouterr()
    assert main(["rig", "create", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert [f"  {name}: done before" in printed for name in names] == [True] * 3 + [False] * 5
    assert (folder / "env" / "pyvenv.cfg").stat().st_mtime_ns == environment
    again = call("create", str(folder))[1]
    example = documented("rig create")
    assert (set(again), set(again["rig"])) == (set(example), set(example["rig"]))
    assert set(again["steps"][0]) == set(example["steps"][0])
    assert all(step["done"] for step in again["steps"])
    # The engine's wheel bears the name of another Python; the patches are on the disk, the model is there.
    site = next((folder / "env").glob("[Ll]ib/**/site-packages"))
    assert "import libtpu" not in (site / "vllm" / "platforms" / "__init__.py").read_text(encoding="utf-8")
    assert (site / "tpu_inference" / "_cpu_rig.py").is_file()
    assert (folder / "model" / "model.safetensors").is_file()
    check_run(folder, call)
    check_proof(folder, call)
    # A step whose makings changed is done again, with all that stand behind it.
    state = json.loads((folder / "rig.json").read_text(encoding="utf-8"))
    state["done"]["model"] = "of another patchkit"
    (folder / "rig.json").write_text(json.dumps(state), encoding="utf-8")
    assert [step["done"] for step in call("create", str(folder), "--dry-run")[1]["steps"]][-3:] == [True, False, True]
    assert main(["rig", "create", str(folder)]) == 0
    assert "  model: done in" in (printed := capsys.readouterr().out)
    assert "  trial: done in" in printed


def test_an_environment_is_not_made_again_because_patchkit_moved(world: Path, call: Call) -> None:
    rig = Rig(str(world / "rig"), "0.24.0", {"environment": "made by a patchkit elsewhere"})
    write_rig(rig)
    os.makedirs(os.path.dirname(rig.python))
    assert not call("create", rig.folder, "--dry-run")[1]["steps"][0]["done"]  # it is gone
    Path(rig.python).touch()
    assert call("create", rig.folder, "--dry-run")[1]["steps"][0]["done"]


def test_two_commands_do_not_work_on_one_rig_at_once(world: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(str(world / "rig"), "0.24.0", {})
    write_rig(rig)
    monkeypatch.setenv("PATCHKIT_WAIT", "0.1")
    begun, end = threading.Event(), threading.Event()

    def hold() -> None:
        with rig_lock(rig, lambda text: None):
            begun.set()
            end.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    begun.wait(30)
    status, refused = call("create", rig.folder)
    end.set()
    thread.join()
    assert (status, refused["error"]["code"]) == (5, "locked")
    assert not os.path.exists(rig.environment)


def test_a_link_to_where_the_rig_is_to_be(world: Path, call: Call) -> None:
    (world / "link").symlink_to(world / "real")
    planned = call("create", str(world / "link"), "--dry-run")[1]
    assert planned["rig"]["path"] == str(world / "real")


def check_run(folder: Path, call: Call) -> None:
    """Phases, counts and hashes are those of what the engine does."""
    status, stock = call("run", str(folder), "--mode", "logprobs", "--mode", "greedy", "--requests", "3")
    assert (status, stock["ok"]) == (0, True)
    written = json.loads((folder / "runs" / "run.json").read_text(encoding="utf-8"))
    assert written["times"] == stock["run"]["times"] == "CPU simulation: says nothing of a TPU's speed"
    modes = {mode["name"]: mode["phases"] for mode in stock["run"]["modes"]}
    assert list(modes) == ["greedy", "logprobs"]
    prompts = [[2, *(5 + (31 * r + 17 * p * p) % 2043 for p in range(3 + r % 5))] for r in range(3)]
    for phases in modes.values():
        assert [phase["name"] for phase in phases] == ["warm-up", "ttft", "main", "main-again"]
        assert [phase["tokens"] for phase in phases] == [4, 3, 48, 48]
        assert [phase["tokens_sha256"] for phase in phases] == [
            *(tokens(prompts[:2], 2, "stock"), tokens(prompts, 1, "stock")),
            *[tokens(prompts, 16, "stock")] * 2,
        ]
    counted = [phase["compilations"] for phase in modes["greedy"]]
    assert counted == [{"jit(split)": 1}, {"jit(split)": 1}, {}, {}]
    assert [phase["logprobs_sha256"] for phase in modes["greedy"]] == [None] * 4
    digest = hashlib.sha256()
    for ids in prompts:
        digest.update(struct.pack("<qdq", (sum(ids) * 7 + 5) % 2048, -0.5, 1) + b"/\n")
    assert modes["logprobs"][1]["logprobs_sha256"] == digest.hexdigest()
    assert stock["run"]["engine"]["compilations"] == 1
    assert stock["run"]["versions"]["vllm-tpu"] == "0.24.0"
    assert stock["run"]["times"].startswith("CPU simulation")
    example = documented("rig run")
    assert (set(stock), set(stock["run"])) == (set(example), set(example["run"]))
    for member in ("patches", "modes"):
        assert set(stock["run"][member][0]) == set(example["run"][member][0])
    assert set(modes["greedy"][0]) == set(example["run"]["modes"][0]["phases"][0])
    # A patch is in the memory of that process only.
    status, other = call("run", str(folder), "--with", "other-tokens", "--requests", "3")
    assert other["run"]["modes"][0]["phases"][2]["tokens_sha256"] == tokens(prompts, 16, "other than stock")
    assert [patch["name"] for patch in other["run"]["patches"]][-1] == "other-tokens"
    # What the engine raises is a finding, with what was done before it; a process that dies is an error.
    assert call("run", str(folder), "--with", "logits-greedy-naive")[1]["error"]["code"] == "known-bad"
    status, raised = call(
        "run", str(folder), "--with", "logits-greedy-naive", "--allow-known-bad", "--forbid-recompilation"
    )
    assert (status, raised["ok"], raised["run"]["error"]["forbidden"]) == (1, False, True)
    assert raised["run"]["modes"][0]["phases"][0]["compilations"] == {}
    status, crashed = call("run", str(folder), "--with", "crash")
    assert (status, crashed["error"]["code"]) == (5, "rig-engine")
    assert Path(crashed["error"]["path"]).is_file()


def check_proof(folder: Path, call: Call) -> None:
    """The made-up engine's tokens depend on the length of a word, which is that of "stock" with the patch as well."""
    status, proved = call("prove", str(folder))
    assert (status, proved["ok"]) == (0, True), [check for check in proved["checks"] if not check["ok"]]
    example = documented("rig prove")
    assert (set(proved), set(proved["checks"][0])) == (set(example), set(example["checks"][0]))
    assert set(proved["arms"][0]) == set(example["arms"][0])
    assert [arm["name"] for arm in proved["arms"]] == ["stock", "logits-greedy-naive", "logits-greedy"]
    assert len(proved["checks"]) == 14


def test_what_is_refused(world: Path, call: Call) -> None:
    def code(*words: str) -> str:
        status, answer = call(*words)
        assert status == {"rig-space": 5, "rig-state": 5}.get(answer["error"]["code"], 2)
        return str(answer["error"]["code"])

    assert code("create", "rig", "--version", "0.1.0") == "rig-version"
    assert code("run", "rig") == "no-rig"
    assert code("create", ".") == "no-rig"
    assert code("prove", "rig", "--mode", "greedy") == "usage"
    assert code("run", "rig", "--python", "python3") == "usage"
    assert code("run", "rig", "--requests", "65") == "usage"
    assert code("create", "rig", "--site", "wheels") == "usage"
    rig = world / "rig"
    rig.mkdir()
    (rig / "rig.json").write_text('{"schema": 1, "version": "0.23.0", "done": {}}', encoding="utf-8")
    assert code("create", "rig") == "rig-version"
    (rig / "rig.json").write_text('{"schema": 1', encoding="utf-8")
    assert code("create", "rig") == "rig-state"
    (rig / "rig.json").write_text('{"schema": 2, "version": "0.24.0", "done": {}}', encoding="utf-8")
    assert code("run", "rig") == "rig-state"


def test_a_python_and_a_disk_that_will_not_do(world: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = RECIPE._replace(python=(3, 99), megabytes=1)
    huge = RECIPE._replace(megabytes=10**12)
    monkeypatch.setattr(create, "RECIPES", {"0.24.0": odd})
    status, answer = call("create", "rig")
    assert (status, answer["error"]["code"]) == (2, "no-interpreter")
    assert "3.99" in answer["error"]["message"]
    assert call("create", "rig", "--python", sys.executable)[1]["error"]["code"] == "no-interpreter"
    monkeypatch.setattr(create, "RECIPES", {"0.24.0": huge})
    status, answer = call("create", "rig")
    assert (status, answer["error"]["code"]) == (5, "rig-space")
    assert not (world / "rig").exists()
