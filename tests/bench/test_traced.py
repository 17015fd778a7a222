"""The profiled runs in the report; evidence out of the engine's log; patches that are known to be bad."""

from __future__ import annotations

from support.bench import Bench
from support.scripted import PATCH, Scripted
from support.traces import STEPS, study, study_space


def test_what_moved_between_the_profiled_runs_stands_in_the_report(bench: Bench) -> None:
    trial = Scripted(bench, protocol="discarded = 0\ntraced = true\n")
    (trial.folder / "baseline.xplane.pb").write_bytes(study_space())
    after = study_space(study(bkv=256, kernel_ps=300_000_000, copy=False, shift=5))
    (trial.folder / "treatment.xplane.pb").write_bytes(after)
    report = trial.json().json["report"]
    assert report["verdict"] == "pass"
    rows = {row["operation"]: row for row in report["trace"]}
    # A copy of 1,562 us in each step is gone.
    assert (rows["copy.2"]["change"], round(rows["copy.2"]["more us"])) == ("vanished", -1562 * STEPS)
    assert rows["RPAd-p_16-bq_1_1-bkv_256_256.8"]["change"] == "renamed"
    assert any("moved between the profiled runs" in note for note in report["notes"])
    assert "<h2>Operations</h2>" in (trial.session / "report.html").read_text()


def test_profiled_runs_without_a_trace_are_told_of(bench: Bench) -> None:
    trial = Scripted(bench, protocol="discarded = 0\ntraced = true\n")
    report = trial.json().json["report"]
    assert (report["verdict"], report["trace"]) == ("pass", [])
    assert any("cannot be compared" in note for note in report["notes"])


def test_evidence_is_looked_for_in_the_log(bench: Bench) -> None:
    more = '[[evidence]]\nlog = "the patched path"\narm = "treatment"\n'
    trial = Scripted(bench, more=more)
    trial.plan({}, {"log": "INFO the patched path is taken"})
    assert trial.json().json["report"]["verdict"] == "pass"


def test_evidence_that_is_missing_is_not_valid(bench: Bench) -> None:
    trial = Scripted(bench, more='[[evidence]]\nlog = "the patched path"\narm = "treatment"\n')
    report = trial.json().json["report"]
    failed = [check["name"] for check in report["points"][0]["checks"] if check["state"] == "failed"]
    assert (report["verdict"], failed) == ("invalid", ["evidence"])


def test_a_known_bad_patch_is_measured_and_does_not_stay_unless_that_is_said(bench: Bench) -> None:
    trial = Scripted(bench)
    path = bench.patch("fix", PATCH)
    path.write_text(path.read_text().replace("[target]", 'tags = ["known-bad"]\n[target]', 1))
    found = trial("--json")
    report = found.json["report"]
    assert (found.status, report["verdict"], report["aftermath"]["action"]) == (0, "pass", "reverted")
    assert "--allow-known-bad" in report["aftermath"]["text"]
    assert bench.json("check").json["patches"] == []
    assert trial.json("--allow-known-bad").json["report"]["aftermath"]["action"] == "kept"
