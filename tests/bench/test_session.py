"""Sessions with scripted engines: what they find, what they leave, what they refuse."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.bench import Bench
from support.documents import blocks, document
from support.scripted import Scripted

from patchkit.bench import plan as planning
from patchkit.bench import store
from patchkit.bench.commanded import Command

WORSE = {"throughput": 738.0, "ttft": 1.1}


@pytest.fixture
def trial(bench: Bench) -> Scripted:
    return Scripted(bench)


def report(trial: Scripted) -> Any:
    return json.loads((trial.session / "report.json").read_text())


def snapshot(folder: Path) -> dict[str, Any]:
    return {
        str(path.relative_to(folder)): (path.read_bytes() if path.is_file() else None, path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
    }


def test_a_loss_is_found_after_two_pairs_and_taken_back(trial: Scripted) -> None:
    trial.plan({}, WORSE)
    run = trial()
    assert run.status == 1
    assert trial.arms == "BT" + "BTTB" + "B"
    assert trial.bench.pristine()
    found = report(trial)
    assert (found["verdict"], found["aftermath"]["action"], found["aftermath"]["confirmed"]) == (
        "regressed",
        "reverted",
        1.0,
    )
    assert [one["kind"] for one in found["runs"]] == ["discarded"] * 2 + ["measured"] * 4 + ["confirm"]
    assert "REGRESSED: trial made things worse" in run.out
    assert "fix was taken back, as it was before; the baseline then measured 100.0 %" in " ".join(run.out.split())
    assert trial.bench("check").status == 0
    assert not (trial.bench.site / ".patchkit" / "rebench.json").exists()


def test_what_is_printed(trial: Scripted) -> None:
    """But for times and folders, which stand in lines of their own here."""
    trial.plan({}, WORSE)
    run = trial()
    plan, _, report_text = run.out.partition("\n\n")
    plan = "".join(line + "\n" for line in plan.splitlines() if "site" not in line)
    assert (
        plan
        == """\
trial: A trial
  on trial: fix in demo 1.0
  order: 1 discarded run of each arm; 3 to 5 pairs in the order ABBA, judged
    after each
  8 to 12 processes; how long one takes is not known before the first
  after: patches that pass stay applied; else they are taken back and the
    baseline is measured once more
"""
    )
    assert report_text.startswith("REGRESSED: trial made things worse\n")
    said = [re.sub(r"(;| in) .*", "", line) for line in run.err.splitlines()[1:]]
    names = ["discarded run, baseline", "discarded run, treatment", "pair 1, baseline", "pair 1, treatment"]
    names += ["pair 2, treatment", "pair 2, baseline"]
    expected = [f"[{number}/8-12] {name}" for number, name in enumerate(names, 1)]
    expected = [text for line in expected for text in (line, f"{line}: done")]
    assert said == [*expected, "[7/8-12] baseline after the revert", "[7/8-12] baseline after the revert: done"]


def test_no_effect_is_equal_and_stays(trial: Scripted) -> None:
    run = trial()
    assert run.status == 0
    assert trial.arms == "BT" + "BTTBBT"
    found = report(trial)
    assert (found["verdict"], found["kind"], found["aftermath"]["action"]) == ("pass", "equal", "kept")
    assert trial.bench("check", "fix").out.startswith("fix  applied")
    assert b"y = 2 * x" in trial.bench.read("demo/core.py")


@pytest.mark.parametrize(
    ("baseline", "treatment", "words"),
    [
        ({}, {"run": False}, "fix"),
        (
            {"probes": [{"patch": "fix", "edit": 2, "function": "double", "pid": 1, "role": "main", "ran": True}]},
            {},
            "fix ran in the baseline",
        ),
        ({}, {"tokens": None}, "nobody counted its output tokens"),
        ({}, {"tokens": {"asked": 64, "came": 60, "sha256": "ab", "failed_requests": 0}}, "60 output tokens came"),
        (
            {},
            {"tokens": {"asked": 64, "came": 64, "sha256": "cd" * 32, "failed_requests": 0}},
            "the arms answer differently",
        ),
        ({}, {"profiler": True}, "a profiler was on"),
        ({}, {"version_lines": ["engine 1.1"]}, "engine 1.1"),
        ({}, {"prefix_cache_hit_rate": 0.5}, "hit rates differ"),
        ({}, {"compilations": {"sample": 3}}, "sample"),
        ({}, [{}, {"throughput": 1164.1}, {"throughput": 883.9}], "throughput of the treatment spans 883.9 to 1,164"),
    ],
    ids=[
        "inert",
        "in-the-baseline",
        "uncounted",
        "fewer",
        "other",
        "profiler",
        "version",
        "prefix",
        "compiles",
        "unstable",
    ],
)
def test_what_is_not_measured_validly_is_taken_back(trial: Scripted, baseline: Any, treatment: Any, words: str) -> None:
    trial.plan(baseline, treatment)
    assert trial().status == 6
    found = report(trial)
    assert found["verdict"] == "invalid"
    assert words in found["reason"]
    assert trial.bench.pristine()
    assert found["aftermath"]["action"] == "reverted"


def test_an_engine_that_crashes_is_an_error(trial: Scripted) -> None:
    trial.plan({}, [{}, {"exit": 3}])
    assert trial().status == 6
    found = report(trial)
    assert (found["verdict"], trial.arms) == ("error", "BT" + "BT")
    assert "status 3" in found["reason"]
    assert trial.bench.pristine()


@pytest.mark.parametrize(("option", "stays"), [("revert", False), ("keep", True)])
def test_what_cannot_be_told_goes_back_unless_it_is_to_stay(bench: Bench, option: str, stays: bool) -> None:
    trial = Scripted(bench, protocol="pairs_min = 2\npairs_max = 2\n")
    trial.plan({}, [{}, {"throughput": 1020.0}, {"throughput": 960.0}])
    assert trial("--on-inconclusive", option).status == 6
    found = report(trial)
    assert found["verdict"] == "inconclusive"
    assert found["aftermath"]["action"] == ("kept" if stays else "reverted")
    assert bench.pristine() is not stays
    assert trial.arms == "BT" + "BTTB" + ("" if stays else "B")


def test_a_patch_that_was_applied_before_goes_when_it_does_harm(trial: Scripted) -> None:
    assert trial.bench("apply", "fix").status == 0
    trial.plan({}, WORSE)
    assert trial().status == 1
    assert trial.bench.pristine()
    assert "fix had been applied before" in report(trial)["aftermath"]["text"]


def test_others_stay_in_both_arms(trial: Scripted) -> None:
    trial.bench.patch("other", '[[edit]]\nfile = "demo/util.py"\nfind = "X = 1"\nreplace = "X = 9"\n')
    assert trial.bench("apply", "other").status == 0
    before = trial.bench.read("demo/util.py")
    trial.plan({}, WORSE)
    run = trial()
    assert "in both arms as they are: other" in run.out
    assert trial.bench.read("demo/util.py") == before
    assert [state["name"] for state in trial.bench.json("check").json["patches"]] == ["other"]


def test_in_memory_nothing_of_the_site_changes(trial: Scripted) -> None:
    before = snapshot(trial.bench.site)
    run = trial("--in-memory")
    assert (run.status, trial.arms) == (0, "BT" + "BTTBBT")
    assert {
        name: value
        for name, value in snapshot(trial.bench.site).items()
        if "__pycache__" not in name and name != "demo"
    } == {name: value for name, value in before.items() if name != "demo"}
    assert "`patchkit apply fix`" in run.out
    assert report(trial)["aftermath"]["action"] == "in-memory"


def test_a_dry_run_starts_nothing(trial: Scripted) -> None:
    before = snapshot(trial.bench.root)
    run = trial.json("--dry-run")
    assert run.status == 0
    assert snapshot(trial.bench.root) == before
    assert run.json["plan"] == {
        "recipe": "trial",
        "points": [""],
        "in_memory": False,
        "preflight": False,
        "processes": {"least": 8, "most": 12},
        "patches": [
            {
                "name": "fix",
                "digest": run.json["plan"]["patches"][0]["digest"],
                "distribution": "demo",
                "version": "1.0",
                "on_trial": True,
            }
        ],
        "others": [],
        "notes": [],
    }


def test_a_hand_edit_meanwhile_is_an_error_and_is_kept(trial: Scripted) -> None:
    trial.plan({}, [{}, {"hand_edit": ["y = 2 * x", "y = 3 * x"]}])
    run = trial()
    assert run.status == 6
    assert b"y = 3 * x" in trial.bench.read("demo/core.py")
    found = report(trial)
    assert found["verdict"] == "error"
    assert "cannot be put back" in found["aftermath"]["text"]
    check = trial.bench("check")
    assert (check.status, "patchkit rebench --restore" in check.err) == (1, True)
    assert trial.bench("rebench", "--restore").status == 5
    assert trial.bench("rebench", "--restore", "--force").status == 0
    assert trial.bench.pristine()
    assert trial.bench("check").status == 0


def test_a_hand_edit_elsewhere_in_the_file_is_no_part_of_an_arm(trial: Scripted) -> None:
    """The revert would keep it, and go on with another program than the one that it began with."""
    trial.plan({}, [{}, {"hand_edit": ["result = None", "result = 0"]}])
    assert trial().status == 6
    assert trial.arms == "BT" + "BT"
    found = report(trial)
    assert (found["verdict"], found["aftermath"]["action"]) == ("error", "reverted")
    assert "the site is not what its ledger says" in found["reason"]
    data = trial.bench.read("demo/core.py")
    assert (b"result = 0" in data, b"y = x + x" in data) == (True, True)


@pytest.mark.parametrize(
    ("edit", "action"),
    [(["y = 2 * x", "y = 3 * x"], "not-put-back"), (["result = None", "result = 0"], "reverted")],
)
def test_a_hand_edit_during_the_last_process_is_no_pass(trial: Scripted, edit: list[str], action: str) -> None:
    trial.plan({}, [{}, {}, {}, {"hand_edit": edit}])
    run = trial.json()
    assert (run.status, run.json["ok"], trial.arms) == (6, False, "BT" + "BTTBBT")
    found = report(trial)
    assert (found["verdict"], found["aftermath"]["action"]) == ("error", action)
    assert "the site is not what its ledger says" in found["reason"]


def test_a_drifted_site_is_refused_before_anything(trial: Scripted) -> None:
    assert trial.bench("apply", "fix").status == 0
    trial.bench.write("demo/core.py", trial.bench.read("demo/core.py").replace(b"2 * x", b"5 * x"))
    run = trial.json()
    assert (run.status, run.error["code"], trial.arms) == (5, "drifted", "")
    assert not trial.runs.exists()


@pytest.mark.parametrize(
    ("change", "status"),
    [(('requirement = "demo"', 'requirement = "demo>=2"'), 3), (("y = x + x", "y = x + z"), 4)],
)
def test_a_patch_that_does_not_fit_is_refused_before_anything(
    trial: Scripted, change: tuple[str, str], status: int
) -> None:
    path = trial.bench.patches / "fix.toml"
    path.write_text(path.read_text().replace(*change))
    assert (trial().status, trial.arms, trial.runs.exists()) == (status, "", False)


def test_a_session_goes_on_with_what_is_done(trial: Scripted) -> None:
    trial.plan({}, [{}, {}, {"exit": 9}])
    assert trial().status == 6
    folder = trial.session
    (folder / "report.json").unlink()  # as if it had been killed in the middle of the second pair
    for name in ("005-treatment-measured",):
        (folder / name / "run.json").unlink()
    (trial.folder / "arms.txt").write_text("")
    trial.plan({}, {})
    assert trial("--resume").status == 0
    assert trial.arms == "TBBT"
    assert len(report(trial)["runs"]) == 8
    again = trial.json("--resume", str(folder))
    assert (again.status, again.error["code"]) == (2, "finished")


def test_a_session_with_other_inputs_is_not_gone_on_with(trial: Scripted) -> None:
    trial()
    (trial.session / "report.json").unlink()
    path = trial.bench.patches / "fix.toml"
    path.write_text(path.read_text().replace("double ran", "double ran again"))
    assert trial.bench("apply", "fix").status == 0
    run = trial.json("--resume", "--pairs-max", "7")
    assert (run.status, run.error["code"]) == (2, "other-inputs")
    assert run.error["changes"] == ["pairs_max was 5 and is 7", "the patch fix was edited"]


def test_a_session_goes_on_in_the_same_surroundings(trial: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--one")
    trial()
    (trial.session / "report.json").unlink()
    path = trial.session / "session.json"
    inputs = json.loads(path.read_text())
    inputs["machine"]["cpus"] = "4096"
    path.write_text(json.dumps(inputs))
    assert trial.bench("revert", "fix").status == 0
    monkeypatch.setenv("XLA_FLAGS", "--other")
    monkeypatch.setenv("EDITOR", "another")
    changes = trial.json("--resume").error["changes"]
    assert [re.sub(r"is \d+", "is N", one) for one in changes] == [
        "cpus of the machine was 4096 and is N",
        "the variable XLA_FLAGS was --one and is --other",
    ]


def test_a_session_that_never_ran_is_not_the_one_to_go_on_with(trial: Scripted) -> None:
    """As one that was refused since another experiment was at work."""
    trial()
    folder = trial.session
    (folder / "report.json").unlink()
    later = trial.runs / "trial-29991231T235959Z"
    later.mkdir()
    (later / "session.json").write_text((folder / "session.json").read_text())
    assert store.unfinished(str(trial.runs), "trial") == str(folder)
    (folder / "report.json").write_text("{}")
    assert store.unfinished(str(trial.runs), "trial") == str(later)


@pytest.mark.parametrize("text", ['{"schema": 1}', '{"schema": 1, "recipe": []}', "[" * 100_000])
def test_inputs_that_cannot_be_read_are_told_of(trial: Scripted, text: str) -> None:
    trial()
    (trial.session / "report.json").unlink()
    (trial.session / "session.json").write_text(text)
    run = trial.json("--resume", str(trial.session))
    assert (run.status, run.error["code"]) == (2, "no-session")


def test_what_a_session_keeps(trial: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hunter2")
    monkeypatch.setenv("PIP_INDEX_URL", "https://me:hunter2@example.org/simple")
    for name in ("DB_PASS", "MYSQL_PWD", "GH_PAT", "AZURE_CONNECTION_STRING", "SLACK_WEBHOOK_URL", "X_HEADERS"):
        monkeypatch.setenv(name, "hunter2")
    monkeypatch.setenv("STORE", "https://example.org/a?sv=1&sig=hunter2&x=2")
    trial()
    text = (trial.session / "session.json").read_text()
    inputs = json.loads(text)
    assert "hunter2" not in text
    assert inputs["environment"]["SOME_API_KEY"] is None
    assert inputs["environment"]["STORE"] == "https://example.org/a?sv=1&sig=...&x=2"
    assert inputs["environment"]["PIP_INDEX_URL"] == "https://...@example.org/simple"
    assert inputs["patches"][0]["text"] == (trial.bench.patches / "fix.toml").read_text()
    assert inputs["recipe"]["text"] == trial.recipe.read_text()
    assert inputs["versions"]["demo"] == "1.0"
    run = json.loads((trial.session / "004-treatment-measured" / "run.json").read_text())
    assert [(one["patch"], one["ran"]) for one in run["observation"]["probes"]] == [("fix", True)]
    assert {path.name for path in trial.session.iterdir() if path.is_file()} == {
        *("session.json", "guardian.log"),
        *("report.json", "report.md", "report.html"),
    }


def test_json_is_one_object(trial: Scripted) -> None:
    run = trial.json()
    assert run.status == 0
    assert run.json["report"]["verdict"] == "pass"
    (block,) = [block for block in blocks(document("docs/commands.md")) if block.title == "rebench"]
    shown = json.loads(block.text)
    assert set(shown) == set(run.json)
    assert set(shown["plan"]) == set(run.json["plan"])
    assert set(shown["plan"]["patches"][0]) == set(run.json["plan"]["patches"][0])
    assert [Path(path).name for path in run.json["written"]] == ["report.json", "report.md", "report.html"]
    assert "[3/8-12] pair 1, baseline" in run.err


class Forbidding(Command):
    """An engine whose program knows what ``forbid`` means."""

    def can_forbid(self) -> bool:
        return True


@pytest.fixture
def forbidding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "engine_of", lambda kind: Forbidding())


@pytest.mark.usefixtures("forbidding")
def test_what_compiles_is_refused_before_any_timing(trial: Scripted) -> None:
    trial.plan({}, {"forbidden": "jit(sample) compiled in main"})
    assert trial().status == 6
    found = report(trial)
    assert found["verdict"] == "invalid"
    assert "jit(sample) compiled in main" in found["reason"]
    assert found["reason"].endswith("the baseline passes the same preflight")
    assert trial.arms == "tb"
    assert trial.bench.pristine()


@pytest.mark.usefixtures("forbidding")
def test_an_engine_that_fails_by_itself_is_not_blamed_on_the_patch(trial: Scripted) -> None:
    trial.plan({"exit": 4}, {"exit": 4})
    assert trial().status == 6
    found = report(trial)
    assert found["verdict"] == "error"
    assert found["reason"].startswith("the baseline fails the same preflight, so what is on trial is not to blame")
    assert trial.arms == "tb"


@pytest.mark.usefixtures("forbidding")
def test_without_the_preflight(trial: Scripted) -> None:
    trial.plan({}, {"forbidden": "jit(sample)", "compilations": {"sample": 2}})
    assert trial("--no-preflight").status == 6
    assert trial.arms == "BT" + "BT" + "B"
    assert "sample" in report(trial)["reason"]


def test_profiled_runs_come_last_and_are_not_judged(bench: Bench) -> None:
    trial = Scripted(bench, protocol="discarded = 0\ntraced = true\n")
    assert trial().status == 0
    assert trial.arms == "BTTBBT" + "BT"
    (note,) = report(trial)["notes"]
    assert note.startswith(f"the profiled runs cannot be compared: there is no trace in {trial.session}")


def test_points_one_after_another(bench: Bench) -> None:
    trial = Scripted(
        bench, more='[[point]]\nlabel = "one"\n[[point]]\nlabel = "two"\n', protocol="discarded = 0\npairs_min = 2\n"
    )
    trial.plan({}, [{}, {}, {"exit": 3}])
    assert trial().status == 6
    found = report(trial)
    assert [point["verdict"] for point in found["points"]] == ["pass", "error"]
    assert trial.arms == "BTTB" + "BT"


def test_what_an_engine_leaves_behind_is_ended_before_the_next_process(trial: Scripted) -> None:
    """Also a process that has a session of its own by then: it would be in the figures of the other arm."""
    code = "import subprocess, sys; one = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], "
    code += "start_new_session=True, stdout=-3, stderr=-3); open(os.path.join(folder, 'left.txt'), 'a')"
    code += ".write(f'{one.pid}\\n')\n"
    engine = trial.folder / "engine.py"
    engine.write_text(engine.read_text().replace("import demo.core\n", code + "import demo.core\n", 1))
    trial.plan({}, {})
    assert trial().status == 0
    left = [int(line) for line in (trial.folder / "left.txt").read_text().split()]
    assert len(left) == 8
    assert [pid for pid in left if Path(f"/proc/{pid}/environ").exists() and _sleeps(pid)] == []
    assert any("left processes behind" in note for note in report(trial)["notes"])


def _sleeps(pid: int) -> bool:
    return b"time.sleep(600)" in Path(f"/proc/{pid}/cmdline").read_bytes()


def test_a_long_label_names_a_folder_all_the_same(bench: Bench) -> None:
    """A file system takes 255 bytes; what comes last there, arm and kind, must be told."""
    trial = Scripted(
        bench, more=f'[[point]]\nlabel = "{"a" * 300}"\n', protocol="discarded = 0\npairs_min = 2\npairs_max = 2\n"
    )
    assert trial("--on-inconclusive", "keep").status == 0
    assert (
        sorted(path.name[-18:] for path in trial.session.glob("00*"))
        == ["-baseline-measured"] * 2 + ["treatment-measured"] * 2
    )
    assert [point["label"] for point in report(trial)["points"]] == ["a" * 300]
