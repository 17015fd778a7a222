"""The command line itself: options before and behind the command, wrong use, suggestions, the one JSON object."""

from __future__ import annotations

import json

import pytest
from support.bench import CORE, Bench

from patchkit.cli.main import main

DOUBLE = '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'
DOUBLED = CORE.replace("x + x", "2 * x").encode()


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capsys.readouterr()
    status = main(list(arguments))
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["chek"], "no command `chek` (did you mean `check`?)", "see `patchkit --help`"),
        (["aply", "x"], "no command `aply` (did you mean `apply`?)", "see `patchkit --help`"),
        (["zzz"], "no command `zzz`", "see `patchkit --help`"),
        (["--site", "x", "revrt"], "no command `revrt` (did you mean `revert`?)", "see `patchkit --help`"),
        ([], "no command given", "start with `patchkit try logits-greedy` or `patchkit list`"),
        (["apply"], "the following arguments are required: NAME", "see `patchkit apply --help`"),
        (
            ["apply", "x", "--dryrun"],
            "no option `--dryrun` of `patchkit apply` (did you mean `--dry-run`?)",
            "see `patchkit apply --help`",
        ),
        (
            ["apply", "x", "--allow-known-bd"],
            "no option `--allow-known-bd` of `patchkit apply` (did you mean `--allow-known-bad`?)",
            "see `patchkit apply --help`",
        ),
        (
            ["--jsn", "check"],
            "no option `--jsn` of `patchkit check` (did you mean `--json`?)",
            "see `patchkit check --help`",
        ),
        (
            ["check", "--pyton=x"],
            "no option `--pyton` of `patchkit check` (did you mean `--python`?)",
            "see `patchkit check --help`",
        ),
        (["--verison"], "no option `--verison` of `patchkit` (did you mean `--version`?)", "see `patchkit --help`"),
        (["schema", "word"], "`patchkit schema` does not take `word`", "see `patchkit schema --help`"),
        (["--site"], "argument --site: expected one argument", "see `patchkit --help`"),
        (["log", "-n", "x"], "argument -n/--number: invalid int value: 'x'", "see `patchkit log --help`"),
        (
            ["--color", "alway", "check"],
            "no --color `alway` (did you mean `always`?): it is one of auto, always, never",
            "see `patchkit --help`",
        ),
        (
            ["check", "--color=blue"],
            "no --color `blue`: it is one of auto, always, never",
            "see `patchkit --help`",
        ),
        (
            ["check", "--si", "x"],
            "no option `--si` of `patchkit check` (did you mean `--site`?)",
            "see `patchkit check --help`",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_use(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str, hint: str, tmp_path: object
) -> None:
    status, out, err = run(capsys, *arguments)
    assert (status, out) == (2, "")
    assert err.endswith(f"error: {message}\nhint: {hint}\n")
    status, out, err = run(capsys, "--json", *arguments)
    assert status == 2
    document = json.loads(out)
    assert out.count("\n") == 1
    assert (document["schema"], document["ok"]) == (1, False)
    assert document["error"] == {"code": "usage", "message": message, "hint": hint}


def test_wrong_use_names_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(run(capsys, "--json", "apply")[1])["command"] == "apply"
    assert json.loads(run(capsys, "--json", "chek")[1])["command"] == "chek"
    assert json.loads(run(capsys, "--json")[1])["command"] == ""


def test_without_a_command_the_help_is_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run(capsys)
    assert (status, out) == (2, "")
    assert err.startswith("usage: patchkit ")


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    from patchkit import __version__

    assert run(capsys, "--version") == (0, f"patchkit {__version__}\n", "")
    status, out, _ = run(capsys, "--version", "--json")
    assert (status, json.loads(out)["version"]) == (0, __version__)


def test_global_options_before_and_behind(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.patch("double", DOUBLE)
    site, patches = ["--site", str(bench.site)], ["--patches", str(bench.patches)]
    for arguments in (
        [*site, *patches, "--json", "apply", "double"],
        ["apply", *site, *patches, "--json", "double"],
        ["apply", "double", *site, *patches, "--json"],
        [*site, "apply", "double", *patches, "--json"],
        ["--json", *patches, "apply", *site, "double"],
        [f"--site={bench.site}", "apply", f"--patches={bench.patches}", "double", "--json", "--color", "never"],
    ):
        status, out, _ = run(capsys, *arguments)
        assert (status, json.loads(out)["patches"][0]["action"]) == (0, "applied"), arguments
        assert bench.read("demo/core.py") == DOUBLED
        assert run(capsys, *site, "revert", "--all")[0] == 0


def test_both_patches_folders_count(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    path = bench.patch("double", DOUBLE)
    other = bench.root / "other"
    other.mkdir()
    path.rename(other / "double.toml")
    bench.patch("util", '[[edit]]\nfile = "demo/util.py"\nfind = "X = 1\\n"\nreplace = "X = 2\\n"\n')
    arguments = ["--site", str(bench.site), "--patches", str(bench.patches)]
    assert run(capsys, *arguments, "apply", "double", "util", "--patches", str(other))[0] == 0
    assert run(capsys, *arguments, "--patches", str(other), "revert", "double", "util")[0] == 0
    assert bench.pristine()


def test_a_folder_that_is_not_there(bench: Bench) -> None:
    run = bench.json("list", "--patches", "nowhere")
    assert (run.status, run.error["code"]) == (2, "no-folder")
    assert run.error["message"] == "--patches nowhere: no such folder"


def test_a_site_that_is_not_there(capsys: pytest.CaptureFixture[str], bench: Bench) -> None:
    for command in (["check"], ["list"], ["apply", str(bench.patch("double", DOUBLE))], ["sync"], ["doctor"], ["log"]):
        status, out, _ = run(capsys, "--json", "--site", "nowhere", *command)
        error = json.loads(out)["error"]
        assert (status, error["code"], bool(error["hint"])) == (2, "no-site", True), command


def test_an_unknown_patch(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    for command in ("apply", "show", "revert", "check", "lint"):
        run = bench.json(command, "duoble")
        assert (run.status, run.error["code"], run.error["suggestion"]) == (2, "unknown-patch", "double"), command
        assert run.error["message"] == "no patch named duoble (did you mean double?)"
        assert run.error["hint"].startswith("looked in ")
        assert run.error["hint"].endswith("; see `patchkit list`")
    run = bench.json("apply", "nowhere/double.toml")
    assert (run.status, run.error["message"]) == (2, "no patch file nowhere/double.toml")


@pytest.mark.parametrize(
    "command",
    [
        ["apply", "double"],
        ["apply", "double", "--dry-run", "--diff"],
        ["revert", "double"],
        ["revert", "--all"],
        ["sync"],
        ["check"],
        ["list"],
        ["show", "double"],
        ["diff"],
        ["log"],
        ["lint"],
        ["schema"],
        ["doctor"],
        ["apply", "nobody"],
        ["apply", "wrong"],
        ["revert"],
        ["diff", "nobody"],
    ],
    ids=" ".join,
)
def test_exactly_one_object_on_stdout(bench: Bench, command: list[str]) -> None:
    bench.patch("double", DOUBLE)
    bench.patch("wrong", DOUBLE.replace("x + x", "x + z"))
    run = bench.json(*command)
    assert run.out.count("\n") == 1
    assert run.out.endswith("}\n")
    document = run.json
    assert list(document)[:4] == ["schema", "command", "ok", "error"]
    assert (document["schema"], document["command"]) == (1, command[0])
    assert document["ok"] is (run.status == 0)
    if run.status > 1:
        assert {"code", "message", "hint"} <= set(document["error"])
        assert document["error"]["hint"]
        assert f"error: {document['error']['message']}" in run.err
    else:
        assert document["error"] is None
    run.out.encode("ascii")


def test_without_json_results_go_to_stdout_and_errors_to_stderr(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    run = bench("apply", "double")
    assert (run.out != "", run.err) == (True, "")
    run = bench("apply", "nobody")
    assert (run.out, run.err.startswith("error: no patch named nobody\nhint: ")) == ("", True)


def test_options_are_not_abbreviated(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    assert bench("apply", "double", "--dry").status == 2
    assert bench.pristine()


def test_a_double_dash_ends_the_options(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    assert bench("apply", "--", "double").status == 0
    run = bench("apply", "--", "--json")
    assert (run.status, run.out) == (2, "")
    assert run.err.startswith("error: no patch named --json")


def test_a_folder_of_the_project_that_is_not_there(bench: Bench) -> None:
    (bench.root / "work" / "pyproject.toml").write_text('[tool.patchkit]\npatches = "nope"\napply = ["p"]\n')
    run = bench.json("check")
    assert (run.status, run.error["code"]) == (2, "no-folder")
    assert run.error["message"].endswith("tool.patchkit.patches: no such folder: " + str(bench.root / "work" / "nope"))
