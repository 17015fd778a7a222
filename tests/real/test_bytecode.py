"""After every change the interpreter runs the source that is there: real interpreters, every kind of bytecode.

The values have one length, and the file's time lies in the second to come, so that neither size nor time tells Python
that the source is another.
"""

from __future__ import annotations

import errno
import os
import subprocess
import time
import venv
from collections.abc import Callable

import pytest
from land import fork, plain
from released import foreign_wheel
from state.sites import Exit
from support.bench import Bench
from support.dists import make_dist
from support.interpreters import find_python, other_pythons

from patchkit.cli.main import main
from patchkit.state import fs

pytestmark = pytest.mark.real

VERSIONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
FILES: dict[str, str | bytes] = {"demo/__init__.py": "", "demo/core.py": "VALUE = 'old'\n"}
EDIT = '[[edit]]\nfile = "demo/core.py"\nfind = "\'old\'"\nreplace = "\'new\'"\n'
ADD = '[[add]]\nfile = "demo/extra.py"\ncontent = "VALUE = \'add\'\\n"\n'
LEVELS = ((), ("-O",), ("-OO",))
MODES = ("timestamp", "checked-hash", "unchecked-hash")


class Lab:
    """A bench whose sources real interpreters compile and run; ``runs`` counts the processes."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.core = bench.site / "demo" / "core.py"
        self.runs = 0
        bench.patch("swap", EDIT)
        self.settle()

    def settle(self) -> None:
        """Let the file's time lie in the second to come: whatever is done now falls into that or an earlier one."""
        second = (time.time_ns() // 10**9 + 2) * 10**9
        os.utime(self.core, ns=(second, second))

    def python(self, python: str, *arguments: str, env: dict[str, str] | None = None) -> str:
        self.runs += 1
        environment = {**plain(), "PYTHONPATH": str(self.bench.site), **(env or {})}
        done = subprocess.run(
            [python, *arguments], env=environment, capture_output=True, text=True, cwd=self.bench.root
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def value(self, python: str, *flags: str, module: str = "demo.core", env: dict[str, str] | None = None) -> str:
        return self.python(python, *flags, "-c", f"import {module} as found; print(found.VALUE)", env=env)

    def compile(self, python: str, mode: str, *flags: str, env: dict[str, str] | None = None) -> None:
        command = ["-m", "compileall", "-q", "-f", "--invalidation-mode", mode, str(self.bench.site / "demo")]
        self.python(python, *flags, *command, env=env)

    def do(self, *arguments: str) -> None:
        run = self.bench(*arguments)
        assert run.status == 0, run


@pytest.fixture
def lab(make_bench: Callable[..., Bench]) -> Lab:
    return Lab(make_bench(FILES))


@pytest.fixture(scope="module")
def pythons() -> list[str]:
    return other_pythons(*VERSIONS)


@pytest.mark.parametrize("mode", MODES)
def test_every_interpreter_runs_the_new_source(
    lab: Lab, mode: str, pythons: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    def everywhere(expected: str) -> None:
        for python in pythons:
            for flags in LEVELS:
                assert lab.value(python, *flags) == expected, (python, flags)
                lab.compile(python, mode, *flags)

    everywhere("old")
    assert len(list((lab.core.parent / "__pycache__").glob("core.*.pyc"))) == 3 * len(pythons)
    lab.do("apply", "swap")
    everywhere("new")
    lab.do("revert", "swap")
    everywhere("old")
    with capsys.disabled():
        print(f"\nbytecode, {mode}: {len(pythons)} interpreters, {lab.runs} runs")


def test_after_a_crash_at_every_step_the_interpreter_runs_what_is_there(
    lab: Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each time the half-written site is compiled so that Python would never look at the source again."""
    [python] = other_pythons(_own_version())
    points = 0
    for command in ("apply", "revert"):
        first, last = _steps(lab, command)
        for at in range(first, last + 1):
            if command == "revert":
                lab.do("apply", "swap")
            lab.settle() if command == "apply" else None
            lab.compile(python, "unchecked-hash")
            assert _killed(lab, command, at) == 9
            lab.compile(python, "unchecked-hash")
            lab.bench("check")  # the next command, whatever it is
            held = "new" if b"new" in lab.core.read_bytes() else "old"
            assert lab.value(python) == held, (command, at)
            lab.do("revert", "--all")
            assert lab.value(python) == "old"
            points += 1
    assert points > 20
    with capsys.disabled():
        print(f"\nbytecode after a crash: {points} points of apply and revert, from the first rename on")


def _own_version() -> str:
    import sys

    return f"{sys.version_info.major}.{sys.version_info.minor}"


def _steps(lab: Lab, command: str) -> tuple[int, int]:
    """The first step that renames a source, and the last of all."""
    found: list[tuple[str, str]] = []

    def hook(operation: str, path: str, when: str) -> None:
        if when == "before":
            found.append((operation, path))

    lab.do("apply", "swap")
    if command == "apply":
        lab.do("revert", "swap")
    with fs.observed(hook):
        lab.do(command, "swap")
    lab.do("revert", "--all")
    return found.index(("replace", str(lab.core))) + 1, len(found)


def _killed(lab: Lab, command: str, at: int) -> int:
    child = fork()
    if not child:
        try:
            with fs.observed(Exit(at)):
                main(["--site", str(lab.bench.site), "--patches", str(lab.bench.patches), command, "swap"])
        finally:
            os._exit(70)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_prefix_tree_that_patchkit_knows(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    [python] = other_pythons(_own_version())
    tree = {"PYTHONPYCACHEPREFIX": str(lab.bench.root / "tree")}
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", tree["PYTHONPYCACHEPREFIX"])
    for command, before, after in (("apply", "old", "new"), ("revert", "new", "old")):
        lab.compile(python, "unchecked-hash", env=tree)
        assert lab.value(python, env=tree) == before
        lab.do(command, "swap")
        assert lab.value(python, env=tree) == after


@pytest.mark.parametrize("mode", ["timestamp", "checked-hash"])
def test_a_prefix_tree_that_only_the_target_knows(lab: Lab, mode: str) -> None:
    [python] = other_pythons(_own_version())
    tree = {"PYTHONPYCACHEPREFIX": str(lab.bench.root / "tree")}
    for command, before, after in (("apply", "old", "new"), ("revert", "new", "old")):
        lab.compile(python, mode, env=tree)
        assert lab.value(python, env=tree) == before
        lab.do(command, "swap")
        assert lab.value(python, env=tree) == after


def test_a_prefix_tree_that_the_target_configures_itself(bench: Bench) -> None:
    bench.patch("swap", EDIT)
    venv.create(bench.root / "env", symlinks=True)
    python = bench.root / "env" / "bin" / "python"
    [site] = (bench.root / "env" / "lib").glob("python*/site-packages")
    (site / "sitecustomize.py").write_text(f"import sys\nsys.pycache_prefix = {str(bench.root / 'tree')!r}\n")
    make_dist(site, "demo", "1.0", FILES)
    command = [python, "-m", "compileall", "-q", "-f", "--invalidation-mode", "unchecked-hash", site / "demo"]
    script = [python, "-c", "import demo.core; print(demo.core.VALUE)"]
    for word, expected in (("apply", "new\n"), ("revert", "old\n")):
        subprocess.run(command, check=True, env=plain())
        assert list((bench.root / "tree").rglob("core.*.pyc"))
        assert main(["--python", str(python), "--patches", str(bench.patches), word, "swap"]) == 0
        assert subprocess.run(script, check=True, env=plain(), capture_output=True, text=True).stdout == expected


@pytest.mark.parametrize("mode", MODES)
def test_bytecode_that_cannot_be_removed(lab: Lab, mode: str) -> None:
    """Python sees that it is stale, or nothing is changed; the system's refusal is simulated, for root has none."""
    [python] = other_pythons(_own_version())
    lab.compile(python, mode)

    def refuse(operation: str, path: str, when: str) -> None:
        if operation == "unlink" and path.endswith(".pyc"):
            raise PermissionError(errno.EACCES, "Permission denied")

    with fs.observed(refuse):
        run = lab.bench.json("apply", "swap")
    if mode == "unchecked-hash":
        assert (run.status, run.error["code"]) == (5, "bytecode")
        assert "__pycache__/core." in run.error["message"]
        assert lab.value(python, "-B") == "old"
        assert lab.bench.pristine()
        return
    assert run.status == 0
    assert lab.value(python, "-B") == "new"
    with fs.observed(refuse):
        lab.do("revert", "swap")
    assert lab.value(python, "-B") == "old"


def test_a_directory_named_like_bytecode(lab: Lab) -> None:
    [python] = other_pythons(_own_version())
    lab.value(python)
    [cached] = (lab.core.parent / "__pycache__").glob("core.*.pyc")
    cached.unlink()
    cached.mkdir()
    lab.do("apply", "swap")
    assert lab.value(python) == "new"
    lab.do("revert", "swap")
    assert (lab.value(python), cached.is_dir()) == ("old", True)


def test_an_added_module_is_gone_with_the_bytecode_beside_it(lab: Lab) -> None:
    """``compileall -b`` puts it there, and Python takes it once the source is gone."""
    [python] = other_pythons(_own_version())
    lab.bench.patch("more", ADD)
    lab.do("apply", "more", "swap")
    lab.python(python, "-m", "compileall", "-q", "-b", str(lab.bench.site / "demo"))
    assert lab.value(python, module="demo.extra") == "add"
    lab.do("revert", "--all")
    script = "import importlib.util as u; print(u.find_spec('demo.extra'), u.find_spec('demo.core').origin)"
    assert lab.python(python, "-c", script) == f"None {lab.core}"
    assert lab.value(python) == "old"


def test_a_module_without_a_source_is_refused(lab: Lab) -> None:
    [python] = other_pythons(_own_version())
    lab.bench.patch("more", ADD)
    (lab.bench.site / "demo/extra.py").write_text("VALUE = 'own'\n")
    lab.python(python, "-m", "compileall", "-q", "-b", str(lab.bench.site / "demo"))
    (lab.bench.site / "demo/extra.py").unlink()
    run = lab.bench.json("apply", "more")
    assert (run.status, run.error["code"]) == (5, "bytecode")
    assert "demo/extra.pyc" in run.error["message"]
    assert lab.value(python, module="demo.extra") == "own"
    # A distribution of bytecode alone, as some vendors ship theirs.
    lab.core.unlink()
    run = lab.bench.json("apply", "swap")
    assert (run.status, run.error["code"]) == (5, "missing")
    assert "imports take demo/core.pyc, and there is no source to patch" in run.error["message"]
    record = lab.bench.site / "demo-1.0.dist-info" / "RECORD"
    rows = [row for row in record.read_text().splitlines() if not row.startswith("demo/core.py,")]
    record.write_text("\n".join([*rows, "demo/core.pyc,,"]) + "\n")
    run = lab.bench.json("apply", "swap")
    assert (run.status, run.error["code"]) == (4, "bytecode")
    assert "demo/core.pyc is all that demo 1.0 has of it: there is no source to patch" in run.error["message"]
    lab.bench.patch("swap", EDIT.replace("core.py", "core.pyc"))
    assert lab.bench("apply", "swap").status == 2
    assert lab.value(python) == "old"


def test_an_edit_that_a_compiled_module_makes_inert_is_said_to_be_so(bench: Bench) -> None:
    """Of tomli 2.2.1 there are wheels compiled by mypyc; each command says it, and for another Python none does."""
    wheel = foreign_wheel("tomli", "2.2.1", ["--platform", "manylinux2014_x86_64", "--python-version", "3.12"])
    body = '[[edit]]\nfile = "tomli/_parser.py"\nfind = "def loads("\nreplace = "def loads(  "\n'
    bench.patch("slow", body, requirement="tomli")
    for version in ("3.12", "3.13"):
        site = bench.root / version / "lib" / f"python{version}" / "site-packages"
        site.mkdir(parents=True)
        subprocess.run([find_python(_own_version()) or "", "-m", "zipfile", "-e", str(wheel), str(site)], check=True)
        bench.site = site
        note = "tomli/_parser.py: imports take tomli/_parser.cpython-312-x86_64-linux-gnu.so instead, so that this "
        said = [bench.json("apply", "slow", "--dry-run").json["notes"], bench.json("apply", "slow").json["notes"]]
        said.append(bench.json("apply", "slow").json["notes"])
        [state] = bench.json("check").json["patches"]
        assert state["state"] == "applied"
        said.append([state["reason"]] if state["reason"] else [])
        [listed] = [one for one in bench.json("list").json["patches"] if one["name"] == "slow"]
        said.append([listed["reason"]] if listed["reason"] else [])
        doctor = bench.json("doctor")
        said.append([fact["text"] for fact in doctor.json["facts"] if fact["level"] == "problem"])
        if version == "3.12":
            assert all(len(texts) == 1 and texts[0].startswith(note) for texts in said), said
            assert doctor.status == 1
        else:
            assert said == [[]] * 6
