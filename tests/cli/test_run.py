"""``patchkit run``: the command as it is called, on real environments; the exec is one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest
from support.dists import make_dist
from support.overlays import FILES, HEAD, added, edit

ROOT = Path(__file__).parents[2]
SCRIPTS = "Scripts" if os.name == "nt" else "bin"
TELL = "import awkalone, awk.sub.leaf as leaf; print(awkalone.WHAT, leaf.WHAT)"


class Environment:
    """A virtual environment with ``awk``, patches, and the command."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "env"
        venv.create(self.home, with_pip=False, symlinks=os.name != "nt")
        self.python = self.home / SCRIPTS / "python"
        self.site = next(self.home.glob("**/site-packages"))
        make_dist(self.site, "awk", "1.0", FILES)
        self.patches = root / "patches"
        self.patches.mkdir()
        self.work = root / "work"
        self.work.mkdir()
        for name, body in {"alone": edit("awkalone.py"), "leaf": edit("awk/sub/leaf.py")}.items():
            self.patch(name, body)

    def patch(self, name: str, body: str) -> None:
        (self.patches / f"{name}.toml").write_text(HEAD.format(name=name) + body)

    def __call__(self, *arguments: str, check: int | None = 0, **options: Any) -> subprocess.CompletedProcess[str]:
        env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        env.update({"PYTHONPATH": str(ROOT), **options.pop("env", {})})
        command = [sys.executable, "-m", "patchkit", "--python", str(self.home), "--patches", str(self.patches)]
        done = subprocess.run(
            [*command, *arguments],
            env=env,
            cwd=self.work,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            **options,
        )
        assert check is None or done.returncode == check, done
        return done


@pytest.fixture
def env(tmp_path: Path) -> Environment:
    return Environment(tmp_path)


def test_the_named_patches_are_live(env: Environment) -> None:
    done = env("run", "--with", "alone", "--", "python", "-c", TELL)
    assert done.stdout == "patched stock\n"
    assert done.stderr == "run: alone in memory: 1 module; the site stays as it is\n"
    done = env("run", "--with", "alone", "--with", "leaf", "--quiet", "--", str(env.python), "-c", TELL)
    assert (done.stdout, done.stderr) == ("patched patched\n", "")
    assert not (env.site / ".patchkit").exists()


def test_the_projects_list_is_the_default(env: Environment) -> None:
    assert "there is no project's list" in env("run", "--", "python", "-c", TELL, check=2).stderr
    (env.work / "pyproject.toml").write_text('[tool.patchkit]\napply = ["leaf"]\n')
    assert env("run", "--", "python", "-c", TELL).stdout == "stock patched\n"


def test_what_is_applied_on_disk_and_not_named_is_told_apart(env: Environment) -> None:
    env("apply", "leaf")
    done = env("run", "--with", "alone", "--", "python", "-c", TELL)
    assert done.stdout == "patched stock\n"
    assert done.stderr == (
        "run: alone in memory: 1 module; the site stays as it is\n"
        "run: leaf is applied on disk and not named: not in this process (1 module as installed)\n"
    )
    done = env("run", "--pristine", "--", "python", "-c", TELL)
    assert done.stdout == "stock stock\n"
    assert done.stderr.startswith("run: no patch in memory; the site stays as it is\nrun: leaf is applied on disk")
    assert env("run", "--pristine", "--with", "alone", "--", "python", check=2).stderr.startswith(
        "error: --pristine and"
    )
    assert subprocess.run([env.python, "-c", TELL], capture_output=True, text=True).stdout == "stock patched\n"


def test_a_dry_run_tells_and_starts_nothing(env: Environment) -> None:
    env.patch("new", added("awk/extra.py", "X = 1\n"))
    env("apply", "leaf")
    done = env("run", "--with", "alone", "--with", "new", "--dry-run", "--", "python", "-c", "print('started')")
    assert done.stdout == (
        "run: alone, new would be in memory: 2 modules; the site stays as it is\n"
        f"  patched awkalone  {env.site / 'awkalone.py'}\n"
        f"  added awk.extra  {env.site / 'awk/extra.py'}\n"
        f"  as installed awk.sub.leaf  {env.site / 'awk/sub/leaf.py'}\n"
        "run: leaf is applied on disk and not named: not in this process (1 module as installed)\n"
    )
    done = env("--json", "run", "--with", "alone", "--dry-run")
    found = json.loads(done.stdout)
    assert (found["ok"], found["command"], found["dry_run"], found["hidden"]) == (True, "run", True, ["leaf"])
    assert found["patches"] == [
        {
            "name": "alone",
            "action": "live",
            "distribution": "awk",
            "version": "1.0",
            "reason": None,
            "site": str(env.site),
            "modules": ["awkalone"],
        }
    ]
    by_name = {module["name"]: module for module in found["modules"]}
    assert by_name["awkalone"]["change"] == "patched"
    assert by_name["awk.sub.leaf"]["change"] == "as installed"
    assert not (env.root / "cache" / "run").exists()


def test_streams_status_and_signals_are_the_commands_own(env: Environment) -> None:
    code = "import sys; sys.stdout.write(sys.stdin.read().upper()); sys.stderr.write('err'); sys.exit(23)"
    done = env("run", "--with", "alone", "--quiet", "--", "python", "-c", code, input="text", check=23)
    assert (done.stdout, done.stderr) == ("TEXT", "err")
    done = env("--json", "run", "--with", "alone", "--quiet", "--", "python", "-c", "print('only this')")
    assert done.stdout == "only this\n"
    if os.name == "posix":
        code = "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"
        env("run", "--with", "alone", "--", "python", "-c", code, check=-signal.SIGTERM)
        # Python ignores SIGPIPE; what it starts by exec would do so as well.
        env("run", "--with", "alone", "--", "sh", "-c", "kill -PIPE $$", check=-signal.SIGPIPE)


def test_options_behind_the_dashes_are_the_commands(env: Environment) -> None:
    code = "import sys; print(sys.argv[1:])"
    words = ["--json", "--with", "x", "--", "--color=never"]
    done = env("run", "--with", "alone", "--quiet", "--", "python", "-c", code, *words)
    assert done.stdout == f"{words}\n"


def test_programs_that_start_python(env: Environment) -> None:
    """By the path, by a script's first line, by a shell, by a tool of the environment."""
    tool = env.home / SCRIPTS / "awk-tool"
    tool.write_text(f"#!{env.python}\n{TELL}\n")
    other = env.work / "other"
    other.write_text(f"#!/usr/bin/env python\n{TELL}\n")
    for path in (tool, other):
        path.chmod(0o755)
    for words in (["awk-tool"], [str(other)], ["sh", "-c", f"python -c '{TELL}'"], ["env", "python", "-c", TELL]):
        assert env("run", "--with", "alone", "--", *words).stdout == "patched stock\n"
    show = "import os, sys; print(os.environ['VIRTUAL_ENV'], sys.prefix, os.environ['PATH'].split(os.pathsep)[0])"
    done = env("run", "--with", "alone", "--", "python", "-c", show, env={"VIRTUAL_ENV": "/nowhere"})
    assert done.stdout.split() == [str(env.home), str(env.home), str(env.home / SCRIPTS)]


def test_an_interpreter_of_another_environment_is_refused(env: Environment) -> None:
    base = os.path.realpath(env.python)
    done = env("run", "--with", "alone", "--", base, "-c", TELL, check=2)
    assert f"{base} is not the site's interpreter" in done.stderr
    script = env.work / "script"
    script.write_text(f"#!{base}\n{TELL}\n")
    script.chmod(0o755)
    done = env("--json", "run", "--with", "alone", "--", str(script), check=2)
    assert json.loads(done.stdout)["error"]["code"] == "other-python"
    again = env.work / "again"  # the same one by another name
    again.symlink_to(env.home)
    assert env("run", "--with", "alone", "--", str(again / SCRIPTS / "python"), "-c", TELL).returncode == 0


def test_require_starts_no_interpreter_of_another_environment(env: Environment) -> None:
    """That one would run without what was found applied."""
    env("apply", "alone")
    base = os.path.realpath(env.python)
    script = env.work / "script"
    script.write_text(f"#!{base}\nprint('started')\n")
    script.chmod(0o755)
    for command in ([base, "-c", "print('started')"], [str(script)]):
        done = env("--json", "require", "alone", "--", *command, check=2)
        error = json.loads(done.stdout)["error"]
        assert (error["code"], error["expected"]) == ("other-python", str(env.python)), error
    assert env("require", "alone", "--", str(env.python), "-c", TELL).stdout == "patched stock\n"
    assert env("require", "alone", "--", "sh", "-c", "echo started").stdout == "started\n"


@pytest.mark.parametrize("options", [["-I"], ["-E"], ["-S"], ["-sE"], ["-W", "ignore", "-I"], ["-Xutf8", "-uI"]])
def test_an_interpreter_that_reads_no_environment_is_refused(env: Environment, options: list[str]) -> None:
    done = env("--json", "run", "--with", "alone", "--", "python", *options, "-c", TELL, check=2)
    error = json.loads(done.stdout)["error"]
    assert error["code"] == "isolated"
    assert error["option"] in ("-I", "-E", "-S")


def test_options_that_only_look_alike(env: Environment) -> None:
    for options in (["-s"], ["-W", "ignore"], ["-X", "utf8"], ["-uB"], ["--check-hash-based-pycs", "always"]):
        done = env("run", "--with", "alone", "--", "python", *options, "-c", TELL, "-I", "-S")
        assert done.stdout == "patched stock\n"


def test_wrong_use(env: Environment) -> None:
    for words, code, says in (
        (["run", "--with", "alone"], "usage", "takes the command behind `--`"),
        (["run", "--with", "alone", "--"], "usage", "takes the command behind `--`"),
        (["run", "--with", "alone", "python"], "usage", "takes the command behind `--`"),
        (["run", "--with", "nobody", "--", "python"], "unknown-patch", "nobody"),
        (["run", "--with", "alone", "--", "no-such-program"], "no-command", "no-such-program"),
    ):
        error = json.loads(env("--json", *words, check=2).stdout)["error"]
        assert error["code"] == code
        assert says in error["message"]
    done = env("run", "--with", "alone", "python", "-c", "1", check=2)
    assert done.stderr.startswith(
        "error: no option `-c` of `patchkit run`\nhint: what is the command's own stands behind"
    )
    assert "patchkit run --with NAME -- python x" in env("run", "--with", "alone", "python", "x", check=2).stderr


def test_a_run_within_a_run_is_refused(env: Environment) -> None:
    inner = [sys.executable, "-m", "patchkit", "--json", "run", "--with", "leaf", "--", "python"]
    done = env("run", "--with", "alone", "--quiet", "--", "env", *inner, check=2)
    assert json.loads(done.stdout)["error"]["code"] == "nested"


def test_refusals_have_the_status_of_their_kind(env: Environment) -> None:
    env.patch("misfit", edit("awkalone.py", "not there"))
    env.patch("data", edit("awk/data.txt"))
    env.patch("elsewhere", edit("awkalone.py"))
    path = env.patches / "elsewhere.toml"
    path.write_text(path.read_text().replace('"awk"', '"awk>=2"'))
    assert "`find` matches no" in env("run", "--with", "misfit", "--", "python", check=4).stderr
    assert "awk/data.txt is no module" in env("run", "--with", "data", "--", "python", check=4).stderr
    assert "awk" in env("run", "--with", "elsewhere", "--", "python", check=3).stderr
    (env.site / "awkalone.py").write_text("WHAT = 'by hand'\n")
    env("run", "--with", "alone", "--", "python", check=5)


def test_a_site_that_nobody_may_write_to(env: Environment) -> None:
    before = {path: os.lstat(path).st_mtime_ns for path in env.site.rglob("*")}
    for path in [env.site, *env.site.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        done = env("run", "--with", "alone", "--", "python", "-B", "-c", TELL)
    finally:
        for path in [env.site, *env.site.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
    assert done.stdout == "patched stock\n"
    assert {path: os.lstat(path).st_mtime_ns for path in env.site.rglob("*")} == before
