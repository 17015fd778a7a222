"""``patchkit report`` as a command."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from support.documents import blocks, document
from support.reports import LADDER, REGRESSED

from patchkit.bench.render.jsonform import report_json
from patchkit.cli.main import main


def saved(folder: Path, report: object) -> Path:
    folder.mkdir()
    (folder / "report.json").write_text(json.dumps(report_json(report)))  # type: ignore[arg-type]
    return folder


def test_the_json_is_as_documented(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = next(block for block in blocks(document("docs/commands.md")) if block.title == "report")
    assert main(["report", str(saved(tmp_path / "run", LADDER)), "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == set(json.loads(example.text))


def test_one_report_anew_in_every_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = saved(tmp_path / "run", REGRESSED)
    names = ["--md", "r.md", "--html", "r.html", "--bmf", "b.json", "--github-action", "g.json"]
    words = [str(tmp_path / word) if "." in word else word for word in names]
    assert main(["report", str(run), *words]) == 0
    shown = capsys.readouterr()
    assert shown.out.startswith("REGRESSED: logits-greedy-naive made things worse\n")
    assert shown.err.count("written: ") == 5
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")
    assert (tmp_path / "r.md").read_text().startswith("### ")
    assert "logits-greedy-naive/ratio" in json.loads((tmp_path / "b.json").read_text())
    assert [len(json.loads((tmp_path / name).read_text())) for name in ("g.json", "g.smaller.json")] == [2, 2]


def test_json_and_its_schema(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = saved(tmp_path / "run", LADDER)
    assert main(["report", "--schema", "--json"]) == 0
    schema = json.loads(capsys.readouterr().out)["report_schema"]
    assert main(["report", str(run / "report.json"), "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)["reports"]
    jsonschema.Draft7Validator(schema).validate(report)
    assert report["recipe"] == "batch-ladder"


def test_several_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [saved(tmp_path / "a", REGRESSED), saved(tmp_path / "b", REGRESSED._replace(started="2026-12-09T00:00"))]
    assert main(["report", *map(str, runs)]) == 0
    assert capsys.readouterr().out.count("-24.7 %") == 2
    assert main(["report", *map(str, runs), "--html", str(tmp_path / "x.html")]) == 2
    assert not (tmp_path / "x.html").exists()


@pytest.mark.parametrize(
    ("text", "code"), [(None, "no-report"), ("{", "report"), ('{"schema": 1}', "report"), ("[" * 100_000, "report")]
)
def test_what_is_no_report(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, code: str) -> None:
    if text is not None:
        (tmp_path / "report.json").write_text(text)
    assert main(["report", str(tmp_path), "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert error["code"] == code
    assert error["path"] == str(tmp_path / "report.json")


def test_an_unfinished_run_names_resume(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "session.json").write_text("{}")
    assert main(["report", str(tmp_path)]) == 2
    assert f"--resume {tmp_path}" in capsys.readouterr().err


def test_no_run_is_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report"]) == 2
    assert "name its folder" in capsys.readouterr().err
