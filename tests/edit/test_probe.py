from __future__ import annotations

import ast
import asyncio
import json
import os
import platform
import re
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from patchkit.edit.outline import Outline
from patchkit.edit.probe import probe_splices
from patchkit.edit.source import Source
from patchkit.errors import PlanError
from patchkit.runtime.probe import RANKS, helper_name, helper_source

CALL = "_patchkit_probe_my_patch_2()"
HELPER = helper_source("my-patch", 2, "a.py", "f", "seen")


def probed(text: str, scope: str = "f", said: str = "seen") -> str:
    source = Source(text.encode(), path="a.py")
    splices = probe_splices(Outline(source, ast.parse(source.text)), scope, "my-patch", 2, said)
    after = source.render(splices)[0].decode()
    compile(after.encode(), "a.py", "exec", dont_inherit=True)
    return after


def body(text: str, scope: str = "f") -> str:
    """The instrumented text without the helper."""
    after = probed(text, scope).replace("\r\n", "\n")
    helper = helper_source("my-patch", 2, "a.py", scope, "seen") + "\n\n"
    assert after.count(helper) == 1
    return after.replace(helper, "")


def test_names() -> None:
    assert helper_name("logits-greedy", 12) == "_patchkit_probe_logits_greedy_12"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f():\n    return 1\n", "def f():\n    CALL\n    return 1\n"),
        ("def f(): return 1\n", "def f(): CALL; return 1\n"),
        ("def f(): ...", "def f(): CALL; ..."),
        ("def f(): x = 1; return x\n", "def f(): CALL; x = 1; return x\n"),
        ("def f(): \\\n  return 1\n", "def f(): \\\n  CALL; return 1\n"),
        ("def f():\n\t# note\n\treturn 1\n", "def f():\n\t# note\n\tCALL\n\treturn 1\n"),
        ("def f():\n  @d\n  def g(): pass\n", "def f():\n  CALL\n  @d\n  def g(): pass\n"),
        ("def f():\n  \\\n  if x: pass\n", "def f():\n  CALL\n  \\\n  if x: pass\n"),
        ("def f():\n    global x\n    x = 1\n", "def f():\n    CALL\n    global x\n    x = 1\n"),
        # docstrings
        ('def f():\n    """d"""\n    return 1\n', 'def f():\n    """d"""\n    CALL\n    return 1\n'),
        ('def f():\n    """d\n  e"""\n\n    # n\n    x\n', 'def f():\n    """d\n  e"""\n\n    # n\n    CALL\n    x\n'),
        ('def f():\n    """d"""\n', 'def f():\n    """d"""\n    CALL\n'),
        ('def f():\n    """d"""  # n', 'def f():\n    """d"""  # n\n    CALL\n'),
        ('def f():\n    """d"""; return 1\n', 'def f():\n    """d"""; CALL; return 1\n'),
        ("def f(): 'd'\n", "def f(): 'd'; CALL\n"),
        ("def f(): 'd'; \n", "def f(): 'd'; CALL; \n"),
        ("def f(): 'd'; return 1", "def f(): 'd'; CALL; return 1"),
        ("def f():\n    ('d')\n", "def f():\n    ('d')\n    CALL\n"),
        # kinds
        ("async def f():\n    await x\n", "async def f():\n    CALL\n    await x\n"),
        ("def f():\n    yield 1\n", "def f():\n    CALL\n    yield 1\n"),
        (
            "@d\n# n\ndef f(\n    a,\n) -> x:\n    return a\n",
            "@d\n# n\ndef f(\n    a,\n) -> x:\n    CALL\n    return a\n",
        ),
        ("def f():\r\n    return 1\r\n", "def f():\n    CALL\n    return 1\n"),
        ("def f():\n\x0c    x = 'ä'\n    return x\n", "def f():\n    CALL\n\x0c    x = 'ä'\n    return x\n"),
        # every definition of the name
        (
            "if a:\n    def f(): return 1\nelse:\n    def f():\n        return 2\n",
            "if a:\n    def f(): CALL; return 1\nelse:\n    def f():\n        CALL\n        return 2\n",
        ),
    ],
)
def test_where_the_call_goes(before: str, after: str) -> None:
    assert body(before) == after.replace("CALL", CALL)


def test_methods_and_nested_functions() -> None:
    text = "class A:\n    def f(self):\n        def f(): return 1\n        return f\ndef f(): return 2\n"
    call = CALL
    assert body(text, "A.f") == text.replace("        def f", f"        {call}\n        def f")
    assert body(text, "A.f.f") == text.replace("return 1", f"{call}; return 1")
    assert body(text, "f") == text.replace("return 2", f"{call}; return 2")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# c\n\nimport a\ndef f(): pass\n", "# c\n\nHELPERimport a\ndef f(): CALL; pass\n"),
        ('"""d"""\ndef f(): pass\n', '"""d"""\n\nHELPERdef f(): CALL; pass\n'),
        (
            '"""d"""\nfrom __future__ import annotations\nimport a\ndef f(): pass\n',
            '"""d"""\nfrom __future__ import annotations\nHELPERimport a\ndef f(): CALL; pass\n',
        ),
        ('"""d"""; x = 1\ndef f(): pass\n', '"""d"""; x = 1\n\nHELPERdef f(): CALL; pass\n'),
    ],
)
def test_where_the_helper_goes(before: str, after: str) -> None:
    assert probed(before) == after.replace("CALL", CALL).replace("HELPER", HELPER + "\n\n")


def test_a_scope_that_is_no_function_is_an_error() -> None:
    with pytest.raises(PlanError, match="f is a class") as caught:
        probed("class f: pass\n")
    assert caught.value.code == "probe"
    assert caught.value.hint == "name a method, such as f.__init__"
    with pytest.raises(PlanError, match="f is not there"):
        probed("def g(): pass\n")


def test_a_class_of_the_same_name_is_left_alone() -> None:
    assert body("class f: pass\ndef f(): pass\n") == f"class f: pass\ndef f(): {CALL}; pass\n"


# -- what it does when it runs -------------------------------------------------------------------------------------


def run(text: str, **names: Any) -> dict[str, Any]:
    module = {"__name__": "mod", **names}
    exec(compile(text, "a.py", "exec", dont_inherit=True), module)
    return module


def line(pid: int | None = None, function: str = "f", said: str = "seen") -> str:
    where = f"patch=my-patch edit=2 file=a.py function={function} pid={pid or os.getpid()} role=main"
    return f"[patchkit] probe {where} text={said}\n"


def test_it_reports_once(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PATCHKIT_PROBES", raising=False)
    module = run(probed("def f(): return 1\n"))
    assert capsys.readouterr().err == ""
    assert [module["f"](), module["f"]()] == [1, 1]
    assert capsys.readouterr().err == line()


def test_generators_and_coroutines(capsys: pytest.CaptureFixture[str]) -> None:
    module = run(probed("def f():\n    yield 1\n"))
    generator = module["f"]()
    assert capsys.readouterr().err == ""
    assert list(generator) == [1]
    assert capsys.readouterr().err == line()
    module = run(probed("async def f(): return 2\n"))
    assert asyncio.run(module["f"]()) == 2
    assert capsys.readouterr().err == line()


def test_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "not" / "there yet"
    monkeypatch.setenv("PATCHKIT_PROBES", str(folder))
    for rank in RANKS:
        monkeypatch.delenv(rank, raising=False)
    monkeypatch.setenv("LOCAL_RANK", "3")
    monkeypatch.setenv("RANK", "secret")  # no number: not kept
    began = time.time()
    module = run(probed("def f(): return 1\n", said="ä\n%d {}"))
    (path,) = folder.iterdir()
    assert re.fullmatch(rf"{os.getpid()}-[0-9a-f]+-my-patch-2\.json", path.name)
    loaded = json.loads(path.read_text())
    assert loaded["ran"] is None
    assert capsys.readouterr().err == ""
    middle = time.time()
    module["f"]()
    assert list(folder.iterdir()) == [path]
    report = json.loads(path.read_text())
    assert began <= report["loaded"] <= middle <= report["ran"] <= time.time()
    assert {**loaded, "ran": report["ran"]} == report
    del report["loaded"], report["ran"]
    ticks, title = report.pop("ticks"), report.pop("title")
    if sys.platform == "linux":
        assert str(ticks) == Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]
        assert title == Path("/proc/self/comm").read_text().strip()
    assert report == {
        "schema": 1,
        "patch": "my-patch",
        "edit": 2,
        "file": "a.py",
        "function": "f",
        "text": "ä\n%d {}",
        "pid": os.getpid(),
        "parent": os.getppid(),
        "role": "main",
        "ranks": {"LOCAL_RANK": "3"},
        "host": platform.node(),
        "executable": sys.executable,
        "python": platform.python_version(),
        "module": "mod",
        "path": "",  # compiled out of no file
    }
    assert capsys.readouterr().err == line(said="ä\\n%d {}")


@pytest.mark.parametrize(
    "said", ['"""', "'''", "\\", "a\\nb", 'it\'s "q"', "\x00\x1b[31m", "{x} %s %(a)s", "\u2028", "\U0001f600", ""]
)
def test_any_text_is_quoted(said: str, capsys: pytest.CaptureFixture[str]) -> None:
    after = probed("def f(): return 1\n", said=said)
    assert after.isascii()
    assert run(after)["f"]() == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert err.startswith("[patchkit] probe patch=my-patch edit=2 file=a.py function=f pid=")
    assert err.endswith(f" text={''.join(c if c.isprintable() else ascii(c)[1:-1] for c in said)}\n")


def test_it_never_breaks_its_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("PATCHKIT_PROBES", str(blocked))
    module = run(probed("def f(): return 1\n"))
    monkeypatch.setattr(sys, "stderr", None)
    assert module["f"]() == 1


def test_a_closed_stderr_does_not_keep_the_file_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATCHKIT_PROBES", str(tmp_path))
    module = run(probed("def f(): return 1\n"))
    monkeypatch.setattr(sys, "stderr", None)
    module["f"]()
    assert len(list(tmp_path.iterdir())) == 1


def test_it_does_not_depend_on_the_module_s_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATCHKIT_PROBES", str(tmp_path))
    names = "open = os = sys = json = io = time = Exception = object = str = None\ndef f(): return 1\n"
    assert run(probed(names))["f"]() == 1
    assert len(list(tmp_path.iterdir())) == 1


def test_threads_report_once(capsys: pytest.CaptureFixture[str]) -> None:
    module = run(probed("def f(): return 1\n"))
    threads = [threading.Thread(target=module["f"]) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert capsys.readouterr().err == line()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
def test_a_forked_process_reports_again(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        probed("def f(): return 1\n") + "\nimport os\nf()\npid = os.fork()\nf()\nif pid:\n    os.waitpid(pid, 0)\n"
    )
    probes = tmp_path / "probes"
    done = subprocess.run(
        [sys.executable, "-I", str(script)],
        env={**os.environ, "PATCHKIT_PROBES": str(probes)},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stderr.splitlines()
    assert len(lines) == len(set(lines)) == 2
    assert len(list(probes.iterdir())) == 2
