"""``patchkit trace`` as a command."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from support.documents import blocks, document
from support.traces import LAYERS, STARTED, STEPS, Op, study, study_space

from patchkit.cli.main import main

Capture = pytest.CaptureFixture[str]


def saved(folder: Path, data: bytes, session: str = "2026_12_01_03_00_00") -> Path:
    path = folder / "plugins" / "profile" / session / "host.xplane.pb"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    return path


@pytest.fixture
def baseline(tmp_path: Path) -> Path:
    saved(tmp_path / "baseline", study_space())
    return tmp_path / "baseline"


def test_the_json_is_as_documented(baseline: Path, capsys: Capture) -> None:
    example = next(block for block in blocks(document("docs/commands.md")) if block.title == "trace")
    assert main(["trace", str(baseline), "--json"]) == 0
    found, shown = json.loads(capsys.readouterr().out), json.loads(example.text)
    assert set(found) == set(shown)
    for name in ("trace",):
        assert set(found[name]) == set(shown[name])
    assert set(found["rows"][0]) == set(shown["rows"][0])
    assert set(found["rows"][0]["kernel"]) == set(shown["rows"][0]["kernel"])
    assert set(found["trace"]["programs"][0]) == set(shown["trace"]["programs"][0])


def test_a_trace_that_holds(baseline: Path, capsys: Capture) -> None:
    checks = ["--batch", "512", "--layers", str(LAYERS), "--steps", str(STEPS), "--expect", "f32[512,256000]"]
    kernels = ["--kernel", "d:bkv=2048,page=16", "--without-kernel", "d:bkv=256"]
    assert main(["trace", str(baseline), *checks, *kernels]) == 0
    out = capsys.readouterr().out
    assert "began 2023-11-14T22:13:20+00:00, jax 0.10.2" in out
    assert "jit_step_fun (14353906466371394738): 258 runs\n" in out
    assert "jit_step_fun (987654321): 1 run, fewer than the steps: prefill, or another bucket\n" in out
    (copy,) = (line for line in out.splitlines() if "copy.2" in line)
    # 258 x 1,562 us = 402.996 ms, of 3,691.32 ms
    assert copy.split() == [
        "402.996",
        "10.9%",
        "258",
        "1562.00",
        "1562.00",
        "1562.00",
        "1",
        "copy.2",
        "f32[512,256000]",
    ]
    assert "custom-call, my_rpa/kernel.py:1808, RPAd page=16 bq=1 bq_compute=1 bkv=2048 bkv_compute=2048" in out


def test_a_trace_of_another_job_is_refused(baseline: Path, capsys: Capture) -> None:
    assert main(["trace", str(baseline), "--batch", "256", "--json"]) == 6
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == "stale-trace"
    assert "f32[512,256000]" in error["shapes"]


def test_a_copy_of_an_old_trace_is_refused(baseline: Path, capsys: Capture) -> None:
    """Its file is new; the profiler's own clock says when it was made."""
    began = STARTED // 10**9
    assert main(["trace", str(baseline), "--since", str(began + 60), "--json"]) == 6
    error = json.loads(capsys.readouterr().out)["error"]
    assert (error["code"], error["started"]) == ("stale-trace", "2023-11-14T22:13:20+00:00")
    assert main(["trace", str(baseline), "--since", "2023-11-14T22:13:00+00:00"]) == 0


def test_a_check_that_fails_is_a_finding(baseline: Path, capsys: Capture) -> None:
    assert main(["trace", str(baseline), "--kernel", "d:bkv=256", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] is False
    assert [finding["kind"] for finding in found["findings"]] == ["kernel"]
    assert len(found["rows"]) == 6


def test_where_the_profiler_ignored_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    (tmp_path / "traces").mkdir()
    path = saved(tmp_path / "None", study_space())
    monkeypatch.chdir(tmp_path)
    assert main(["trace", "traces", "--json"]) == 0
    assert os.path.samefile(json.loads(capsys.readouterr().out)["trace"]["path"], path)


def test_several_sessions(tmp_path: Path, capsys: Capture) -> None:
    old = saved(tmp_path / "t", study_space(), "1")
    new = saved(tmp_path / "t", study_space(), "2")
    os.utime(old, (1, 1))
    assert main(["trace", str(tmp_path / "t")]) == 2
    assert "traces of 2 sessions" in capsys.readouterr().err
    assert main(["trace", str(tmp_path / "t"), "--newest", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["trace"]
    assert found["path"] == str(new)
    assert found["ignored"] == [{"path": str(old), "reason": "of an older session"}]


def test_the_tables_of_the_page_are_those_that_are_printed(tmp_path: Path, capsys: Capture) -> None:
    stock, own = (saved(tmp_path / name, data) for name, data in (("a", study_space()), ("b", tuned())))
    assert main(["trace", str(saved(tmp_path / "c", study_space(study(bkv=256))))]) == 0
    assert main(["trace", "compare", str(stock), str(own)]) == 0
    printed = capsys.readouterr().out
    for block in (one for one in blocks(document("docs/trace.md")) if one.language == "text"):
        for line in block.text.strip("\n").split("\n"):
            pattern = ".*".join(re.escape(part.strip()) for part in line.split("..."))
            assert re.search(pattern, printed), line


def tuned() -> bytes:
    return study_space(study(bkv=256, kernel_ps=300_000_000, copy=False))


def test_compare(tmp_path: Path, baseline: Path, capsys: Capture) -> None:
    half = study(bkv=256, kernel_ps=300_000_000, copy=False, steps=129)
    saved(tmp_path / "treatment", study_space(half, steps=129, jax="0.11.2"))
    arguments = ["trace", "compare", str(baseline), str(tmp_path / "treatment")]
    assert main([*arguments, "--top", "2"]) == 0
    out = capsys.readouterr().out
    assert "note: jax 0.10.2 before, 0.11.2 after" in out
    assert "times after are scaled to the runs before (x 1, x 2)" in " ".join(out.split())
    lines = [line.split(maxsplit=4) for line in out.splitlines() if ": " in line and line.lstrip()[0] in "+-"]
    assert [line[:2] for line in lines] == [["-928.800", "2322.000"], ["-402.996", "402.996"]]
    assert "bkv=2048 bkv_compute=2048 -> RPAd page=16 bq=1 bq_compute=1 bkv=256 bkv_compute=256" in out
    assert "and 4 rows more" in out
    assert main([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    example = next(block for block in blocks(document("docs/commands.md")) if block.title == "trace compare")
    assert set(found) == set(json.loads(example.text))
    assert set(found["changes"][0]) == set(json.loads(example.text)["changes"][0])
    assert [change["kind"] for change in found["changes"]][:2] == ["renamed", "vanished"]


def test_compare_with_steps_that_are_told(baseline: Path, capsys: Capture) -> None:
    assert main(["trace", "compare", str(baseline), str(baseline), "--steps", "258,129", "--json"]) == 0
    assert {change["scale"] for change in json.loads(capsys.readouterr().out)["changes"]} == {2.0}


def test_names_in_a_trace_do_not_steer_a_terminal(tmp_path: Path, capsys: Capture) -> None:
    bad = Op("%evil\x1b[2J\u202e.1 = f32[512] add(f32[512] %a)", STEPS, 100, source="a\x1b[31m.py:1", scope="\x07")
    saved(tmp_path, study_space([bad]))
    assert main(["trace", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "evil\\x1b[2J\\u202e.1" in out
    assert "\x1b" not in out
    assert main(["trace", "compare", str(tmp_path), str(tmp_path)]) == 0
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "a"], "takes two traces"),
        (["a", "b"], "shows one trace"),
        (["compare", "a", "b", "--batch", "5"], "--batch is not for"),
        (["compare", "a", "b", "--steps", "5"], "two numbers of steps"),
        (["a", "--steps", "1,2"], "a number of steps is expected"),
        (["a", "--steps", "0"], "a number of steps is expected"),
        (["a", "--batch", "0"], "1 or more"),
        (["a", "--top", "-1"], "0 or more"),
        (["a", "--since", "yesterday"], "no time"),
        (["a", "--kernel", "d:bvk=1"], "`bvk=1` is not NAME=NUMBER"),
        (["a", "--kernel", "d"], "`d` is not NAME=NUMBER"),
    ],
)
def test_wrong_use(arguments: list[str], message: str, tmp_path: Path, capsys: Capture) -> None:
    words = [str(tmp_path) if word in "ab" else word for word in arguments]
    assert main(["trace", *words]) == 2
    assert message in capsys.readouterr().err
