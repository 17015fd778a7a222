"""A tree of real processes, however they are made, has the same modules in memory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.overlays import EVERYTHING, Stage, every_python

TREE = """
import json, multiprocessing, os, subprocess, sys
import concurrent.futures
import awk


def told(thing):
    import inspect

    return [thing.tell(), type(thing).what, "patched" in inspect.getsource(awk.core.value), thing]


def grandchild(queue, method):
    context = multiprocessing.get_context(method)
    inner = context.Process(target=child, args=(queue,))
    inner.start()
    inner.join()


def child(queue):
    queue.put([awk.value(), awk.sub.leaf.WHAT])


def main():
    out = {}
    for method in multiprocessing.get_all_start_methods():
        context = multiprocessing.get_context(method)
        queue = context.SimpleQueue()
        process = context.Process(target=grandchild, args=(queue, method))
        process.start()
        out[method] = queue.get()
        process.join()
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
            *words, thing = pool.submit(told, awk.Thing(3)).result()
            out[method + " pool"] = words + [type(thing) is awk.Thing, thing.tell()]
    env = dict(os.environ)
    code = "import awk, subprocess, sys; print(awk.WHAT)"
    out["subprocess"] = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True).stdout.decode()
    shell = '"%s" -c "%s"' % (sys.executable, code)
    out["shell"] = subprocess.run(shell, shell=True, stdout=subprocess.PIPE, check=True).stdout.decode()
    if hasattr(os, "fork"):
        read, write = os.pipe()
        if os.fork() == 0:
            import importlib

            os.write(write, importlib.reload(awk.core).value().encode())
            os._exit(0)
        out["fork"] = os.read(read, 99).decode()
        os.wait()
    print(json.dumps(out))


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("python", every_python())
def test_a_tree_of_processes(stage: Stage, python: str) -> None:
    stage.show(everything=EVERYTHING)
    before = stage.listing()
    # A fork from a process with threads warns from 3.12 on: the pool's, not ours.
    env = stage.environment(PYTHONDONTWRITEBYTECODE="1", PYTHONWARNINGS="ignore::DeprecationWarning")
    found = stage.python(TREE, python=python, env=env)
    methods = ["fork", "spawn", "forkserver"] if os.name == "posix" else ["spawn"]
    expected: dict[str, object] = {"subprocess": "patched\n", "shell": "patched\n"}
    for method in methods:
        expected[method] = ["patched", "patched"]
        expected[method + " pool"] = [["patched", 3], "patched", True, True, ["patched", 3]]
    if os.name == "posix":
        expected["fork"] = "patched"
    assert found == expected
    assert stage.listing() == before


PICKLE = "import awk, pickle, sys; sys.stdout.buffer.write(pickle.dumps([awk.Thing(1), awk.value, awk.Thing]))"
UNPICKLE = """
import pickle, sys
thing, value, kind = pickle.load(sys.stdin.buffer)
print(thing.tell(), value(), kind.what, 'awk.core' in sys.modules)
"""


@pytest.mark.parametrize(("first", "second"), [(True, True), (True, False), (False, True)])
def test_pickles_pass_between_patched_and_stock_processes(stage: Stage, first: bool, second: bool) -> None:
    """They name what they hold; it is the reader's own."""
    stage.show(everything=EVERYTHING)
    stock = {**stage.environment(), "PYTHONPATH": str(stage.site)}
    envs = [stage.environment() if patched else stock for patched in (first, second)]
    data = subprocess.run([sys.executable, "-c", PICKLE], env=envs[0], capture_output=True, check=True).stdout
    done = subprocess.run([sys.executable, "-c", UNPICKLE], input=data, env=envs[1], capture_output=True, check=True)
    word = "patched" if second else "stock"
    assert done.stdout.decode() == f"('{word}', 1) {word} {word} True\n"


def test_the_bundle_is_held_as_long_as_a_process_lives(stage: Stage) -> None:
    """A child that was forked holds it as well, when its parent has ended."""
    fcntl = pytest.importorskip("fcntl")
    stage.show(everything=EVERYTHING)
    code = "import awk, os, sys\nif os.fork(): os._exit(0)\nprint('up', flush=True)\nsys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", code], env=stage.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdin is not None
    assert process.stdout.readline() == b"up\n"
    process.wait()
    lock = os.open(Path(stage.bundle, "lock"), os.O_RDONLY)
    try:
        with pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        process.stdin.close()
        process.stdout.read()
        fcntl.flock(lock, fcntl.LOCK_EX)
    finally:
        os.close(lock)
        process.stdout.close()


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)
