"""Trials as processes, with a made-up jax in the place of the real one."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from support.documents import blocks, document

from patchkit.bench.compiletime.result import Trial, order_of, same_ground, summarize
from patchkit.bench.compiletime.run import environment, read_result
from patchkit.bench.compiletime.spec import parse_spec
from patchkit.cli.main import main
from patchkit.errors import MeasurementError

#: As much of jax as the driver asks: what it says of itself, and whether its cache is on, come from the environment.
JAX = """
import os
__version__ = os.environ.get("FAKE_JAX", "9.9")
class monitoring:
    listeners = []
    @staticmethod
    def register_event_listener(listener):
        monitoring.listeners.append(listener)
class config:
    jax_enable_compilation_cache = os.environ["JAX_ENABLE_COMPILATION_CACHE"] != "false" or "FAKE_ON" in os.environ
class Device:
    platform = "cpu"
    device_kind = "made up"
def devices(): return [Device]
def device_count(): return 1
def block_until_ready(value): return value
"""
SCRIPT = """
import os, sys
import beside
import jax
class Lowered:
    def compile(self):
        return lambda x, y: x + y
class Jitted:
    def lower(self, x, y):
        assert (x, y) == (1, 2)
        if "FAKE_HIT" in os.environ:
            for listener in jax.monitoring.listeners:
                listener("/jax/compilation_cache/cache_hits", more=1)
        return Lowered()
def plain():
    return Jitted(), (1, 2)
def noted():
    return Jitted(), (1, 2), "interpreted"
def broken():
    raise RuntimeError("no such \\x1b[31mkernel")
def dead():
    os._exit(3)
def slow():
    import time
    time.sleep(60)
"""
SPEC = """
schema = 1
name = "mine"
summary = "two ways"
script = "mine.py"
trials = 2
[[variant]]
name = "a"
function = "plain"
[variant.published]
on = "another machine"
compile_ms = 12.5
[[variant]]
name = "b"
function = "noted"
"""


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "jax.py").write_text(JAX)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "lib"))
    (tmp_path / "beside.py").write_text("")
    (tmp_path / "mine.py").write_text(SCRIPT)
    (tmp_path / "mine.toml").write_text(SPEC)
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "somewhere")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> int:
    return main(["--python", sys.executable, "compile-time", "mine.toml", *words])


def test_a_run(bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--output", "out") == 0
    shown = capsys.readouterr()
    lines = [line.split() for line in shown.out.splitlines()]
    assert "4 processes of" in shown.out
    assert [words[0] for words in lines if words and words[0] in "ab"] == ["a", "b", "a"]
    assert "b: interpreted" in shown.out
    assert "published, not compared: another machine" in shown.out
    assert ["a", "12.5"] in lines
    assert shown.err.count(" of 4: ") == 4
    result = read_result("out")
    assert [(trial.order, trial.variant) for trial in result.trials] == [(0, "a"), (1, "b"), (2, "b"), (3, "a")]
    assert result.versions["jax"] == "9.9"
    assert result.device["kind"] == "made up"
    assert sorted(path.suffix for path in Path("out").iterdir()) == [".json"] * 5 + [".log"] * 4


def test_json_and_an_earlier_result(bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--output", "out", "--trials", "1") == 0
    capsys.readouterr()
    assert run("--output", "again", "--against", "out", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [variant["name"] for variant in found["variants"]] == ["a", "b"]
    assert [variant["trials"] for variant in found["variants"]] == [2, 2]
    assert [variant["trials"] for variant in found["earlier"]] == [1, 1]
    assert found["spec"]["published"] == {"a": {"on": "another machine", "ms": {"compile": [12.5, None, None]}}}


def test_the_json_is_as_documented(bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = next(block for block in blocks(document("docs/commands.md")) if block.title == "compile-time")
    shown = json.loads(example.text)
    assert run("--trials", "1", "--output", "out", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert set(found) == set(shown)
    for name in ("site", "spec", "versions", "device"):
        assert set(found[name]) == set(shown[name]), name
    assert set(found["variants"][0]) == set(shown["variants"][0])
    assert set(found["variants"][0]["ms"]) == {"lower", "compile", "first_run"}
    assert set(found["variants"][0]["ms"]["lower"]) == set(shown["variants"][0]["ms"]["lower"])


def test_another_version_of_jax_is_not_put_beside(
    bench: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--output", "out", "--trials", "1") == 0
    monkeypatch.setenv("FAKE_JAX", "9.10")
    assert run("--output", "again", "--trials", "1", "--against", "out") == 6
    assert "compile times of different versions are not comparable: jax 9.9 and 9.10" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("variable", "message"),
    [("FAKE_ON", "the compile cache is on"), ("FAKE_HIT", "and 1 programs came out of it")],
)
def test_a_cache_that_is_on_all_the_same(
    variable: str, message: str, bench: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(variable, "1")
    assert run("--output", "out") == 6
    assert message in capsys.readouterr().err
    assert not Path("out/result.json").exists()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("broken", "RuntimeError: no such \\x1b[31mkernel"),
        ("dead", "the process ended with status 3"),
        ("missing", "AttributeError"),
        ("slow", "did not end in time"),
    ],
)
def test_a_trial_that_fails(function: str, message: str, bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = SPEC.replace('"noted"', f'"{function}"').replace("trials = 2", "trials = 2\ntimeout = 3")
    (bench / "mine.toml").write_text(text)
    assert run("--output", "out", "--json") == 6
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["code"], error["variant"]) == ("trial", "b")
    assert message in error["message"]
    assert Path(error["path"]).is_file()


def test_nothing_runs_dry(bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--output", "out", "--dry-run", "--json") == 0
    assert json.loads(capsys.readouterr().out)["order"] == ["a", "b", "b", "a"]
    assert not Path("out").exists()


def test_wrong_use(bench: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--trials", "0") == 2
    assert run("--against", "nowhere") == 2
    (bench / "mine.py").unlink()
    assert run("--output", "out") == 2
    assert "script" in capsys.readouterr().err
    (bench / "out").mkdir(exist_ok=True)
    (bench / "mine.py").write_text(SCRIPT)
    assert run("--output", "out") == 5, "a folder that is there already"


def test_the_cache_is_off_whatever_the_spec_says(bench: Path) -> None:
    spec = parse_spec((SPEC + '[env]\nJAX_ENABLE_COMPILATION_CACHE = "true"\nX = "1"\n').encode(), "mine.toml")
    found = environment(spec, {"JAX_COMPILATION_CACHE_DIR": "x", "HOME": "h"})
    assert found == {"HOME": "h", "X": "1", "JAX_ENABLE_COMPILATION_CACHE": "false"}


def test_there_and_back_again() -> None:
    assert order_of(["a", "b", "c"], 3) == ["a", "b", "c", "c", "b", "a", "a", "b", "c"]


def trial(variant: str, seconds: float, **more: str) -> Trial:
    times = {"lower": seconds, "compile": 10 * seconds, "first_run": 0.001}
    return Trial(variant, 0, times, times, {"jax": "1", **more}, {"kind": "x"}, None)


def test_medians_with_their_range() -> None:
    (summary,) = summarize([trial("a", seconds) for seconds in (0.004, 0.001, 0.002)])
    assert summary.trials == 3
    assert summary.wall["lower"] == (2.0, 1.0, 4.0)
    assert summary.wall["compile"] == (20.0, 10.0, 40.0)


def test_only_what_is_alike_is_compared() -> None:
    same_ground([{"jax": "1"}, {"jax": "1"}], [{"kind": "v5e"}, {"kind": "v5e"}])
    with pytest.raises(MeasurementError, match="jax 1 and 2"):
        same_ground([{"jax": "1"}, {"jax": "2"}], [{}, {}])
    with pytest.raises(MeasurementError, match="libtpu None and 3"):
        same_ground([{}, {"libtpu": "3"}], [{}, {}])
    with pytest.raises(MeasurementError, match="different device are not comparable: kind v5e and v6e"):
        same_ground([{}, {}], [{"kind": "v5e"}, {"kind": "v6e"}])
