"""The probe as it runs in other people's processes: every way in which these are hostile to it.

Each test starts a process of its own, with a module that a real plan has made.
"""

from __future__ import annotations

import ast
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.interpreters import other_pythons

from patchkit.edit.outline import Outline
from patchkit.edit.probe import probe_splices
from patchkit.edit.source import Source
from patchkit.runtime.probe import RANKS, helper_source

posix = pytest.mark.skipif(os.name == "nt", reason="POSIX")
LINE = "[patchkit] probe patch=p edit=1 file=mod.py function="


def probed(text: str, scope: str) -> str:
    source = Source(text.encode(), path="mod.py")
    splices = probe_splices(Outline(source, ast.parse(source.text)), scope, "p", 1, "seen")
    return source.render(splices)[0].decode()


class Job(NamedTuple):
    status: int
    out: str
    err: list[str]
    records: list[dict[str, Any]]

    @property
    def lines(self) -> list[str]:
        return [line for line in self.err if line.startswith("[patchkit] probe ")]


def job(
    folder: Path, module: str, script: str, *options: str, scope: str = "f", python: str = sys.executable, **how: Any
) -> Job:
    """Run ``script`` beside ``mod.py``, the probed ``module``; its records are in ``probes``."""
    folder.mkdir(exist_ok=True)
    (folder / "mod.py").write_text(probed(textwrap.dedent(module), scope), encoding="utf-8")
    (folder / "job.py").write_text(textwrap.dedent(script), encoding="utf-8")
    probes = folder / "probes"
    environment = {**os.environ, "PATCHKIT_PROBES": str(probes), "PYTHONDONTWRITEBYTECODE": "1"}
    for name in RANKS:
        environment.pop(name, None)
    environment.update(how.pop("env", {}))
    done = subprocess.run(
        [python, *options, "job.py"], cwd=folder, env=environment, capture_output=True, text=True, timeout=120, **how
    )
    found = sorted(probes.iterdir()) if probes.is_dir() else []
    assert [path.suffix for path in found] == [".json"] * len(found)
    records = [json.loads(path.read_text(encoding="utf-8")) for path in found]
    return Job(done.returncode, done.stdout, done.stderr.splitlines(), records)


F = "def f():\n    return 1\n"


def test_a_loaded_module_is_told_from_one_whose_function_ran(tmp_path: Path) -> None:
    done = job(tmp_path / "a", F, "import mod")
    assert (done.status, done.err, [r["ran"] for r in done.records]) == (0, [], [None])
    done = job(tmp_path / "b", F, "import mod; mod.f(); mod.f()")
    assert (done.status, len(done.lines), len(done.records)) == (0, 1, 1)
    assert done.records[0]["ran"] >= done.records[0]["loaded"]


@posix
def test_what_a_killed_process_had_done_is_known(tmp_path: Path) -> None:
    done = job(tmp_path, F, "import mod, os; mod.f(); os.kill(os.getpid(), 9)")
    assert done.status == -signal.SIGKILL
    assert [r["ran"] is not None for r in done.records] == [True]


def test_many_threads_at_once_make_one_line_and_one_file(tmp_path: Path) -> None:
    script = """
        import sys, threading, mod
        sys.setswitchinterval(1e-6)
        start = threading.Barrier(64)
        def work():
            start.wait()
            for _ in range(50):
                mod.f()
        threads = [threading.Thread(target=work) for _ in range(64)]
        [t.start() for t in threads]
        [t.join() for t in threads]
    """
    done = job(tmp_path, F, script)
    assert (done.status, len(done.err), len(done.records)) == (0, 1, 1)


def test_threads_that_all_see_that_nobody_reported_make_one_line(tmp_path: Path) -> None:
    script = """
        import threading, mod
        class Seen(dict):
            start = threading.Barrier(8)
            def __contains__(self, pid):
                found = super().__contains__(pid)
                self.start.wait()
                return found
        seen = Seen()
        threads = [threading.Thread(target=mod._patchkit_probe_p_1, args=(False, seen)) for _ in range(8)]
        [t.start() for t in threads]
        [t.join() for t in threads]
    """
    done = job(tmp_path, F, script)
    assert (done.status, len(done.err), len(done.records)) == (0, 1, 1), done.err


@posix
def test_each_forked_process_reports_again_with_its_role(tmp_path: Path) -> None:
    script = """
        import multiprocessing, os, mod
        mod.f()
        if __name__ == "__main__":
            pid = os.fork()
            if pid == 0:
                mod.f(); mod.f()
                os._exit(0)
            os.waitpid(pid, 0)
            one = multiprocessing.get_context("fork").Process(target=mod.f, name="Engine Core_0")
            one.start(); one.join()
    """
    done = job(tmp_path, F, script)
    assert sorted(re.findall(r"role=(\S+)", "\n".join(done.lines))) == ["Engine_Core_0", "fork", "main"]
    assert len({record["pid"] for record in done.records}) == 3
    assert len({record["loaded"] for record in done.records}) == 1  # the module was loaded before the forks


def test_spawned_processes_and_ranks(tmp_path: Path) -> None:
    script = """
        import multiprocessing
        def work():
            import mod
            mod.f()
        if __name__ == "__main__":
            one = multiprocessing.get_context("spawn").Process(target=work, name="VllmWorker-1")
            one.start(); one.join()
    """
    done = job(tmp_path, F, script, env={"RANK": "1", "LOCAL_RANK": "x", "TPU_WORKER_ID": "12"})
    (record,) = done.records
    assert (record["role"], record["ranks"]) == ("VllmWorker-1", {"RANK": "1", "TPU_WORKER_ID": "12"})


@posix
@pytest.mark.parametrize("end", ["os.close(2)", "sys.stderr.close()", "sys.stderr = None", "os.dup2(pipe(), 2)"])
def test_a_stderr_that_is_gone_breaks_nothing(tmp_path: Path, end: str) -> None:
    script = f"""
        import os, sys, mod
        def pipe():
            read, write = os.pipe()
            os.close(read)
            return write
        {end}
        print(mod.f(), flush=True)
        os._exit(0)
    """
    done = job(tmp_path, F, script)
    assert (done.status, done.out, [r["ran"] is not None for r in done.records]) == (0, "1\n", [True])


@posix
@pytest.mark.parametrize("where", ["full", "taken"])
def test_where_the_file_cannot_be_written_the_line_says_so(tmp_path: Path, where: str) -> None:
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
    if where == "taken":
        (tmp_path / "probes").write_text("")
    done = job(tmp_path, F, f"{full if where == 'full' else ''}import mod\nmod.f(); mod.f()\n")
    assert done.status == 0
    assert [line.partition(" record=lost:")[2] for line in done.err] == [
        "OSError text=seen" if where == "full" else "FileExistsError text=seen"
    ]


def test_a_cleared_environment_and_another_directory(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    script = "import os, mod\nos.environ.clear(); os.chdir('elsewhere'); mod.f()\n"
    done = job(tmp_path, F, script, env={"PATCHKIT_PROBES": "probes"})
    assert [r["ran"] is not None for r in done.records] == [True]
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_folder_that_the_program_itself_names(tmp_path: Path) -> None:
    script = "import os, mod\nos.environ['PATCHKIT_PROBES'] = 'probes'\nmod.f()\n"
    done = job(tmp_path, F, script, env={"PATCHKIT_PROBES": ""})
    assert [r["ran"] is not None for r in done.records] == [True]


def test_a_module_that_redefines_everything(tmp_path: Path) -> None:
    names = "Exception = BaseException = str = int = len = open = type = hasattr = dict = list = object = __import__"
    module = f"{names} = os = sys = io = time = json = None\ndef f(): return 1\n"
    done = job(tmp_path, module, "import mod; print(mod.f())")
    assert (done.status, done.out, len(done.err), len(done.records)) == (0, "1\n", 1, 1)


@posix
def test_a_module_that_redefines_everything_and_a_folder_that_fails(tmp_path: Path) -> None:
    """Names that were redefined stay so when the module is loaded anew: the probe is defined under them."""
    (tmp_path / "probes").write_text("")
    module = "Exception = open = __import__ = None\ndef f(): return 1\n"
    done = job(tmp_path, module, "import importlib, mod; print(mod.f())")
    assert (done.status, done.out, len(done.err)) == (0, "1\n", 1), done.err


@pytest.mark.parametrize(
    ("module", "scope", "call"),
    [
        ("def f():\n    yield 1\n", "f", "list(mod.f())"),
        ("async def f():\n    return 1\n", "f", "import asyncio; asyncio.run(mod.f())"),
        (
            "async def f():\n    yield 1\n",
            "f",
            "import asyncio\nasync def g():\n    return [x async for x in mod.f()]\nasyncio.run(g())",
        ),
        ("class A:\n    @property\n    def f(self): return 1\n", "A.f", "mod.A().f"),
        ("class A:\n    @staticmethod\n    def f(): return 1\n", "A.f", "mod.A.f()"),
        ("class A:\n    @classmethod\n    def f(cls): return 1\n", "A.f", "mod.A.f()"),
        ("class A:\n    __slots__ = ()\n    def __init__(self): pass\n", "A.__init__", "mod.A()"),
        ("class A:\n    def __del__(self): pass\n", "A.__del__", "mod.A()"),
        ("def g():\n    def f(): return 1\n    return f\n", "g.f", "mod.g()()"),
        ("import functools\n@functools.wraps(lambda: 0)\ndef f(): return 1\n", "f", "mod.f()"),
        ("import functools\n@functools.lru_cache()\ndef f(): return 1\n", "f", "mod.f(); mod.f()"),
        ("def d(f): return lambda *a: f(*a)\n@d\ndef f(): return 1\n", "f", "mod.f()"),
    ],
)
def test_every_kind_of_function(tmp_path: Path, module: str, scope: str, call: str) -> None:
    done = job(tmp_path, module, f"import mod\n{call}\n", scope=scope)
    assert (done.status, len(done.err), done.lines) == (0, 1, done.err), done.err
    assert done.err[0].startswith(f"{LINE}{scope} ")


@pytest.mark.parametrize("option", ["-O", "-OO", "-I", "-Werror", "-Xdev", "-Xwarn_default_encoding"])
def test_every_mode_of_the_interpreter(tmp_path: Path, option: str) -> None:
    head = "import sys; sys.path[:0] = ['.']\n"
    done = job(tmp_path, 'def f():\n    """Doc."""\n    return 1\n', f"{head}import mod; mod.f()\n", option)
    assert (done.status, len(done.err), len(done.records)) == (0, 1, 1), done.err
    assert done.records[0]["path"] == str(tmp_path / "mod.py")
    assert isinstance(done.records[0]["ticks"], int) == (sys.platform == "linux")


def test_default_encodings_that_are_errors(tmp_path: Path) -> None:
    """The start of the process, which tells it from a later one of its number, was lost."""
    done = job(tmp_path, F, "import mod; mod.f()", "-Xwarn_default_encoding", "-Werror")
    assert (done.status, len(done.err), done.records[0]["title"] == "") == (0, 1, sys.platform != "linux"), done.err


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.10", "3.12", "3.13", "3.14"])
def test_every_python(tmp_path: Path, version: str) -> None:
    (python,) = other_pythons(version)
    done = job(tmp_path, F, "import mod; mod.f(); mod.f()", python=python)
    assert (done.status, len(done.err), len(done.records)) == (0, 1, 1), done.err


def test_its_text_is_python_3_8() -> None:
    ast.parse(helper_source("p", 1, "mod.py", "f", "x"), feature_version=(3, 8))


@posix
def test_a_signal_handler_that_calls_it(tmp_path: Path) -> None:
    script = """
        import os, signal, mod
        signal.signal(signal.SIGALRM, lambda *a: mod.f())
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        for _ in range(200000):
            pass
        mod.f()
        signal.setitimer(signal.ITIMER_REAL, 0)
    """
    done = job(tmp_path, F, script)
    assert (done.status, len(done.err), len(done.records)) == (0, 1, 1)


def test_an_interrupt_meant_for_the_program_reaches_it(tmp_path: Path) -> None:
    script = """
        import io, mod
        def interrupted(*a, **k):
            raise KeyboardInterrupt
        io.open = interrupted
        try:
            mod.f()
        except KeyboardInterrupt:
            print("interrupted")
    """
    assert job(tmp_path, F, script).out == "interrupted\n"


def test_replaced_functions_of_the_standard_library(tmp_path: Path) -> None:
    """As gevent does, which may run other work while one writes."""
    script = """
        import io, os, sys, time, mod
        write = sys.stderr.write
        class Other:
            def write(self, text):
                mod.f()
                return write(text)
            def flush(self):
                mod.f()
        sys.stderr = Other()
        os.getpid = time.time = lambda: 1 / 0
        mod.f()
    """
    done = job(tmp_path, F, script)
    assert (done.status, len(done.err)) == (0, 1)
    assert done.err[0].endswith(" record=lost:ZeroDivisionError text=seen")


def test_subinterpreters(tmp_path: Path) -> None:
    script = """
        import mod
        mod.f()
        for name in ("_interpreters", "_xxsubinterpreters"):
            try:
                interpreters = __import__(name)
            except ImportError:
                continue
            other = interpreters.create()
            interpreters.run_string(other, "import sys; sys.path[:0] = ['.']; import mod; mod.f(); mod.f()")
            interpreters.destroy(other)
            print("two")
            break
    """
    done = job(tmp_path, F, script)
    number = 2 if done.out == "two\n" else 1
    assert (done.status, len(done.err), len(done.records)) == (0, number, number)


def test_a_copy_by_value_reports_where_it_runs(tmp_path: Path) -> None:
    """A library such as cloudpickle carries a function with its globals and defaults into another process."""
    script = """
        import marshal, pickle, subprocess, sys, mod
        mod.f()
        probe = mod._patchkit_probe_p_1
        carried = pickle.dumps((marshal.dumps(probe.__code__), probe.__defaults__[:3]))
        again = "import builtins, marshal, os, pickle, sys, types; code, given = pickle.load(sys.stdin.buffer);" \\
            "f = types.FunctionType(marshal.loads(code), {'__name__': 'mod'}, 'f', (*given, os.getpid, builtins));" \\
            "f(); f()"
        subprocess.run([sys.executable, "-c", again], input=carried, check=True)
    """
    done = job(tmp_path, F, script)
    assert (done.status, len(done.err), len({r["pid"] for r in done.records})) == (0, 2, 2), done.err


def test_a_module_loaded_anew_reports_anew(tmp_path: Path) -> None:
    done = job(tmp_path, F, "import importlib, mod\nmod.f(); importlib.reload(mod); mod.f(); mod.f()")
    assert (done.status, len(done.err), len(done.records)) == (0, 2, 2)
