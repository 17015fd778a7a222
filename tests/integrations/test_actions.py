"""What other programs call, each for real: pre-commit's hooks, the GitHub action, uvx, pipx, a package of patches."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from support.documents import ROOT

pytestmark = [pytest.mark.real, pytest.mark.slow]
PATCH = ROOT / "examples/patches-package/src/acme_patches/data/attrdict-collections-abc.toml"
UV = shutil.which("uv", path=os.path.dirname(sys.executable)) or "uv"


def run(*words: object, cwd: Path, status: int = 0, **environment: str) -> str:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PATCHKIT", "GIT_", "VIRTUAL_ENV"))}
    kept |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", **environment}
    command = [str(word) for word in words]
    done = subprocess.run(command, cwd=cwd, env=kept, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def git(*words: object, cwd: Path) -> None:
    run("git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main", *words, cwd=cwd)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the files of this one as they are now."""
    folder = tmp_path_factory.mktemp("checkout") / "patchkit"
    listed = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", cwd=ROOT)
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file() and not name.startswith(("tests/", "benchmarks/")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    git("init", "-q", cwd=folder)
    git("add", "-A", cwd=folder)
    git("commit", "-q", "-m", "now", cwd=folder)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that wants attrdict patched, and its environment with the released attrdict."""
    folder = tmp_path / "project"
    (folder / "patches").mkdir(parents=True)
    shutil.copy(PATCH, folder / "patches")
    text = '[project]\nname = "app"\nversion = "1"\n[tool.patchkit]\napply = ["attrdict-collections-abc"]\n'
    (folder / "pyproject.toml").write_text(text)
    run(UV, "venv", "-q", "--python", sys.executable, ".venv", cwd=folder)
    run(UV, "pip", "install", "-q", "--no-deps", "attrdict==2.0.1", cwd=folder)
    git("init", "-q", cwd=folder)
    git("add", "pyproject.toml", "patches", cwd=folder)
    return folder


def test_the_hooks_of_pre_commit(checkout: Path, project: Path, tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("pre-commit")
    home = {"PRE_COMMIT_HOME": str(tmp_path / "hooks")}
    clean = run(program, "try-repo", checkout, "patchkit-lint", "--all-files", cwd=project, **home)
    assert "patchkit lint" in clean
    assert "Passed" in clean
    missing = run(program, "try-repo", checkout, "patchkit-check", "--all-files", cwd=project, status=1, **home)
    assert "absent" in missing
    (project / "patches" / "wrong.toml").write_text("schema = 1\nnam = 'wrong'\n")
    git("add", "patches", cwd=project)
    wrong = run(program, "try-repo", checkout, "patchkit-lint", "--all-files", cwd=project, status=1, **home)
    assert "wrong.toml:2" in wrong


def steps(checkout: Path, project: Path, runner: Path, status: int = 0, **inputs: str) -> str:
    """Run the action's steps as a runner does: by bash, with their environment and the defaults of the inputs."""
    action = yaml.safe_load((checkout / "action.yml").read_text())
    values = {name: entry["default"] for name, entry in action["inputs"].items()} | inputs
    runner.mkdir(exist_ok=True)
    said = ""
    for number, step in enumerate(action["runs"]["steps"], 1):
        last = number == len(action["runs"]["steps"])
        environment = {"RUNNER_TEMP": str(runner), "GITHUB_STEP_SUMMARY": str(runner / "summary.md")}
        for name, value in step.get("env", {}).items():
            for key, given in values.items():
                value = value.replace("${{ inputs.%s }}" % key, given)  # noqa: UP031 (braces)
            environment[name] = value.replace("${{ github.action_path }}", str(checkout))
        assert "${{" not in step["run"], "an expression in a script is an injection"
        words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        said += run(*words, cwd=project, status=status if last else 0, **environment)
    return said


def test_the_action_syncs_checks_and_writes_a_summary(checkout: Path, project: Path, tmp_path: Path) -> None:
    runner = tmp_path / "runner"
    absent = steps(checkout, project, runner, status=1, command="check")
    assert "absent" in absent
    done = steps(checkout, project, runner)
    assert "applied attrdict-collections-abc" in done
    summary = (runner / "summary.md").read_text()
    assert summary.count("```text") == 2
    assert "attrdict-collections-abc  applied" in summary
    assert "collections.abc import Mapping" in next(project.rglob("attrdict/mapping.py")).read_text()
    assert "1 patch file, 0 findings" in steps(checkout, project, runner, command="lint")
    assert "not nonsense" in steps(checkout, project, runner, status=2, command="nonsense")


def test_uvx_runs_the_command_without_installing_it(checkout: Path, project: Path) -> None:
    words = [UV, "tool", "run", "--from", checkout, "patchkit", "--python", project / ".venv"]
    assert "applied attrdict-collections-abc" in run(*words, "sync", cwd=project)
    assert "applied" in run(*words, "check", cwd=project)


def test_pipx_runs_the_command_without_installing_it(checkout: Path, project: Path, tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("pipx")
    home = {"PIPX_HOME": str(tmp_path / "pipx"), "PIPX_DEFAULT_PYTHON": sys.executable}
    words = [program, "run", "--spec", checkout, "patchkit", "--python", project / ".venv"]
    assert "applied attrdict-collections-abc" in run(*words, "sync", cwd=project, **home)


def test_uv_run_in_the_projects_own_environment(checkout: Path, project: Path) -> None:
    words = [UV, "run", "--no-project", "--with", checkout, "patchkit", "--python", project / ".venv", "check"]
    assert "absent" in run(*words, cwd=project, status=1)


def test_a_package_of_patches_is_found_by_its_entry_point(checkout: Path, tmp_path: Path) -> None:
    run(UV, "venv", "-q", "--python", sys.executable, "tool", cwd=tmp_path)
    package = checkout / "examples" / "patches-package"
    words = [UV, "pip", "install", "-q", "--python", tmp_path / "tool", checkout, package]
    run(*words, cwd=tmp_path)
    listed = run(tmp_path / "tool" / "bin" / "patchkit", "list", cwd=tmp_path)
    assert "attrdict-collections-abc" in listed
    applied = run(tmp_path / "tool" / "bin" / "patchkit", "show", "attrdict-collections-abc", cwd=tmp_path)
    assert "Import the abstract containers from collections.abc" in applied
