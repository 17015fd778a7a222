"""A copy in force: its probes, the ways to activate it, and what it refuses."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from support.grafts import Garden
from support.overlays import every_python

EACH_PYTHON = pytest.mark.parametrize("python", every_python(), ids=lambda path: Path(path).parts[-3])
RUN = "import stk.part.core as core\nshow(run=core.run())"
COPY = {"run": ["copy", 0, "stock help"]}
STOCK = {"run": ["stock", 0, "stock help"]}


@pytest.fixture
def garden(tmp_path: Path) -> Garden:
    found = Garden(tmp_path)
    found.plant()
    found.edit()
    return found


def records(garden: Garden) -> list[Any]:
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(garden.probes.glob("*.json"))]


@EACH_PYTHON
def test_the_environment_alone_activates_it_wherever_it_lies(garden: Garden, python: str) -> None:
    startup = garden.copy / "_transplant" / "startup"
    code = f"{RUN}\nshow(path=[one for one in sys.path if 'startup' in one or one.endswith('my_part')], "
    code += "mine='my_part.core' in sys.modules, site='sitecustomize' in sys.modules)"
    path = os.pathsep.join([str(startup), str(garden.site)])  # without the folder that the copy lies in
    done = garden.run(code.replace("show(path", "print(); show(path"), python=python, PYTHONPATH=path)
    first, second = done.stdout.split("\n\n")
    assert json.loads(first) == COPY, done.stderr
    assert {**json.loads(second), "site": None} == {"path": [], "mine": True, "site": None}


def test_the_environments_own_sitecustomize_still_runs(garden: Garden) -> None:
    (garden.site / "sitecustomize.py").write_text("import os\nos.environ['MARK'] = 'set'\n")
    path = os.pathsep.join([str(garden.copy / "_transplant" / "startup"), str(garden.site)])
    code = "import os, stk.part.core as core, sitecustomize\n"
    code += "show(mark=os.environ.get('MARK'), run=core.run()[0], file=sitecustomize.__file__)"
    found = garden.answer(code, PYTHONPATH=path)
    assert found == {"mark": "set", "run": "copy", "file": str(garden.site / "sitecustomize.py")}


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_child_processes_have_it_too(garden: Garden, method: str) -> None:
    path = os.pathsep.join([str(garden.copy / "_transplant" / "startup"), str(garden.site)])
    code = f"""
import multiprocessing
def work(queue):
    import stk.part.core as core
    queue.put(core.run()[0])
if __name__ == "__main__":
    import stk.part.core as core
    core.run()
    context = multiprocessing.get_context("{method}")
    queue = context.SimpleQueue()
    process = context.Process(target=work, args=(queue,), name="EngineCore_0")
    process.start()
    answer = queue.get()
    process.join()
    show(child=answer)
"""
    assert garden.answer(code, PYTHONPATH=path) == {"child": "copy"}
    fired = [(one["function"], one["role"]) for one in records(garden)]
    assert sorted(fired) == [("run", "EngineCore_0"), ("run", "main")]


def test_it_can_be_switched_off(garden: Garden) -> None:
    code = f"import my_part.activate\n{RUN}"
    assert garden.answer(code, PATCHKIT_TRANSPLANT="off") == STOCK
    assert garden.answer(code) == COPY


# --- probes


def test_a_public_function_reports_once_with_one_line_and_one_record(garden: Garden) -> None:
    code = f"import my_part.activate\n{RUN.replace('show', 'core.run(); core._hidden(); core.Shape().area(); show')}"
    done = garden.run(code)
    assert json.loads(done.stdout) == COPY
    (line,) = done.stderr.splitlines()
    assert line.split(" pid=")[0] == "[patchkit] probe patch=my_part edit=2008 file=stk/part/core.py function=run"
    (run,) = records(garden)
    # The second module of the tree; before `run` stand six imported names and two constants.
    expected = {"schema": 1, "patch": "my_part", "edit": 2008, "file": "stk/part/core.py", "function": "run"}
    assert {key: run[key] for key in expected} == expected
    assert (run["role"], run["module"]) == ("main", "stk.part.core")
    assert run["loaded"] <= run["ran"]


def test_patchkit_live_reads_its_records(garden: Garden) -> None:
    from patchkit.ops.records import read_folder

    garden.answer(f"import my_part.activate\n{RUN}", RANK="3")
    (record,), problems = read_folder(str(garden.probes))
    assert (record.patch, record.function, record.ranks, problems) == ("my_part", "run", {"RANK": "3"}, [])


def test_private_names_and_classes_are_the_copys_own_and_public_functions_are_named_as_stock(garden: Garden) -> None:
    code = """
import inspect, pickle
import my_part.activate
import stk.part.core as core, my_part.core as mine
show(hidden=core._hidden is mine._hidden, shape=core.Shape is mine.Shape, wrapped=core.run.__wrapped__ is mine.run,
     module=core.run.__module__, source="copy" in inspect.getsource(core.run),
     signature=str(inspect.signature(core.run)), pickled=pickle.loads(pickle.dumps(core.run)) is core.run,
     cached=pickle.loads(pickle.dumps(core.cached)) is core.cached,
     name=core.cached.__name__, info=core.cached.cache_info().misses, alias=core.alias is mine._hidden)
"""
    assert garden.answer(code) == {
        **dict.fromkeys(["hidden", "shape", "wrapped", "source", "pickled", "cached", "alias"], True),
        "module": "stk.part.core",
        "signature": "(x=0)",
        "name": "cached",
        "info": 0,
    }


@EACH_PYTHON
def test_coroutines_and_generators_stay_what_they_are(garden: Garden, python: str) -> None:
    code = """
import asyncio, inspect
import my_part.activate
import stk.part.core as core
def outer():
    found = yield from core.produce()
    yield found
show(kind=inspect.iscoroutinefunction(core.wait), waited=asyncio.run(core.wait()),
     generator=inspect.isgeneratorfunction(core.produce), produced=list(outer()))
"""
    found = garden.answer(code, python=python)
    assert found == {"kind": True, "waited": "copy", "generator": True, "produced": ["copy", 1]}


def test_threads_that_import_and_call_at_once_see_the_copy_and_report_once(garden: Garden) -> None:
    code = """
import threading
import my_part.activate
found, barrier = [], threading.Barrier(16)
def work():
    barrier.wait()
    import stk.part.core as core
    found.append(core.run()[0])
threads = [threading.Thread(target=work) for _ in range(16)]
for one in threads: one.start()
for one in threads: one.join()
show(found=sorted(set(found)), count=len(found))
"""
    assert garden.answer(code) == {"found": ["copy"], "count": 16}
    assert [one["function"] for one in records(garden)] == ["run"]


def test_a_fork_waits_for_an_activation_under_way_and_leaves_no_held_lock(garden: Garden) -> None:
    code = """
import os, threading, time
import stk.part.core as core
from my_part._transplant import transplant, activate
held = [core.run]
run = transplant.Rebinder.run
def slow(self):
    begun.set()
    time.sleep(0.5)
    run(self)
transplant.Rebinder.run = slow
begun = threading.Event()
thread = threading.Thread(target=activate)
thread.start()
begun.wait()
read, write = os.pipe()
pid = os.fork()
if pid == 0:
    free = transplant._lock.acquire(timeout=1)
    os.write(write, ("%s %s" % (held[0]()[0], free)).encode())
    os._exit(0)
thread.join()
os.waitpid(pid, 0)
show(child=os.read(read, 20).decode())
"""
    assert garden.answer(code) == {"child": "copy True"}


def test_a_probe_never_stops_the_program(garden: Garden, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = garden.run(f"import my_part.activate\n{RUN}", PATCHKIT_PROBES=str(tmp_path / "file" / "below"))
    assert json.loads(done.stdout) == COPY
    assert " record=lost:NotADirectoryError " in done.stderr


# --- what is refused


def test_another_release_than_the_copied_one_is_refused(garden: Garden) -> None:
    path = garden.site / "stk/part/util.py"
    path.write_text(path.read_text(encoding="utf-8") + "# newer\n", encoding="utf-8")
    done = garden.run(f"import my_part.activate\n{RUN}")
    assert done.returncode == 1
    said = f"transplant my_part: {path} is not the one of stk 1.0 that was copied"
    assert f"ImportError: {said}: `patchkit transplant update {garden.copy}` carries the copy over" in done.stderr
    done = garden.run(f"import my_part.activate\n{RUN}", PATCHKIT_TRANSPLANT="stale")
    assert json.loads(done.stdout) == COPY
    assert f"[patchkit] {said}; goes on, as PATCHKIT_TRANSPLANT says\n" in done.stderr


def test_a_copy_that_cannot_start_from_the_environment_stops_the_process(garden: Garden) -> None:
    (garden.copy / "transplant.json").write_text("{", encoding="utf-8")
    path = os.pathsep.join([str(garden.copy / "_transplant" / "startup"), str(garden.site)])
    done = garden.run(RUN, PYTHONPATH=path)
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr.startswith(f"[patchkit] transplant {garden.copy} cannot be put in place: ")


def test_a_module_that_is_being_imported_is_named(garden: Garden) -> None:
    (garden.site / "stk/part/__init__.py").write_text("import my_part.activate\nfrom stk.part.core import run\n")
    done = garden.run("import stk.part\nshow(run=stk.part.run())", PATCHKIT_TRANSPLANT="stale")
    assert json.loads(done.stdout) == COPY
    assert "[patchkit] transplant my_part: stk.part is being imported: activate before that, or after\n" in done.stderr


def test_verbose_prints_what_was_rebound_and_what_not(garden: Garden) -> None:
    code = "import functools\nfrom stk.part import run\nkept = functools.partial(map, run)\ncached = "
    code += "functools.lru_cache()(run)\nimport my_part.activate\nshow(run=run())"
    done = garden.run(code, PATCHKIT_TRANSPLANT="verbose", PATCHKIT_PROBES="")
    assert json.loads(done.stdout) == COPY
    first, second, *_ = done.stderr.splitlines()
    assert first.startswith(
        "[patchkit] transplant my_part: stk.part, stk.part.core, stk.part.util: 15 objects replaced, "
    )
    assert second == (
        "[patchkit] transplant my_part: not rebound: stk.part.core.run: a functools.lru_cache, which was made of it "
        "before: it calls the stock one, in global cached of module __main__"
    )
    quiet = garden.run(code).stderr.splitlines()[0]
    assert quiet == (
        "[patchkit] transplant my_part: stk.part and 2 more: 1 reference to stock code could not be rebound "
        "(PATCHKIT_TRANSPLANT=verbose names it)"
    )
