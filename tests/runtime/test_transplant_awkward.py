"""A copy in force where stock modules, and those who use them, do unusual things."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.grafts import STOCK, Garden
from support.overlays import every_python

EACH_PYTHON = pytest.mark.parametrize("python", every_python(), ids=lambda path: Path(path).parts[-3])
FOREIGN = """
import collections, fractions, functools, json, math, random
from json import dumps
from collections import OrderedDict

_open = open
root = math.sqrt
Number = fractions.Fraction
draw = random.random


def _two(a, b):
    return "stock", a, b


part = functools.partial(_two, 1)


def wrapped(function):
    def inner(*arguments):
        return function(*arguments)
    inner.__module__ = "elsewhere"
    return inner


hidden = wrapped(_two)
"""
EQUAL = """
import enum


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Word(str, enum.Enum):
    YES = "yes"


MISSING = object()
SHAPE = (8, (128, "x"))
__version__ = "1.0"
__all__ = ["Level", "run"]


def run(x=MISSING):
    return x is MISSING


def other():
    return "stock"
"""


def garden(tmp_path: Path, core: str, holder: str = "", **files: str) -> Garden:
    more: dict[str, str | bytes] = {f"stk/part/{name}.py": text for name, text in files.items()}
    found = Garden(tmp_path, {**STOCK, "stk/part/__init__.py": "", "stk/part/core.py": core, **more})
    (found.site / "holder.py").write_text(holder, encoding="utf-8")
    found.plant()
    return found


@EACH_PYTHON
def test_what_a_module_only_imports_or_names_is_replaced_for_nobody_else(tmp_path: Path, python: str) -> None:
    found = garden(tmp_path, FOREIGN, "from stk.part.core import root, part, hidden, draw\nfrom json import dumps\n")
    for old, new in (
        ("from json import dumps", "from pprint import pformat as dumps"),
        ("from collections import OrderedDict", "from collections import UserDict as OrderedDict"),
        ("_open = open", "def _open(path): return 'mine'"),
        ("math.sqrt", "math.floor"),
        ("fractions.Fraction", "float"),
        ("random.random", "random.getrandbits"),
        ('"stock"', '"copy"'),
    ):
        found.edit("core.py", old, new)
    code = """
import builtins, collections, fractions, json, math, random
before = builtins.open, collections.OrderedDict, fractions.Fraction, json.dumps, math.sqrt, random.random
import holder
import my_part.activate
import stk.part.core as core
after = builtins.open, collections.OrderedDict, fractions.Fraction, json.dumps, math.sqrt, random.random
show(
    same=[one is other for one, other in zip(before, after)], holder=holder.dumps is json.dumps,
    mine=[core.dumps.__module__, core.OrderedDict.__name__, core._open("x"), core.root(2.5), core.Number is float],
    part=holder.part(2), hidden=holder.hidden(1, 2),
)
"""
    assert found.answer(code, python=python) == {
        "same": [True] * 6,
        "holder": True,
        "mine": ["pprint", "UserDict", "mine", 2, True],
        "part": ["copy", 1, 2],  # what the module made of its own function is its own
        "hidden": ["copy", 1, 2],
    }
    (done,) = found.report()["substitutions"]
    left = {item["object"]: item["where"] for item in done["not_rebound"]}
    where = "is the same: an import of it, perhaps"
    assert left["stk.part.core.root"] == f"global root of module holder {where}"
    assert "stk.part.core.dumps" not in left  # who has it under its own name has it from where it is at home
    assert {f"stk.part.core.{name}" for name in ("dumps", "root", "Number", "draw", "_open")} <= set(done["constants"])


@EACH_PYTHON
def test_keys_that_equal_the_ones_in_their_place_stay_and_keep_their_order(tmp_path: Path, python: str) -> None:
    holder = """
import collections
from stk.part.core import Level, Word, other
levels = {Level.LOW: "low", "between": 0, Level.HIGH: "high"}
ordered = collections.OrderedDict([(Word.YES, 1), ("last", 2)])
group = {Level.LOW, Word.YES}
pairs = {(Level.LOW, 1): "pair"}
table = {other: 1, "then": 2}
"""
    found = garden(tmp_path, EQUAL, holder)
    code = """
import holder
import my_part.activate
import stk.part.core as core
show(
    levels=list(holder.levels.items()), ordered=list(holder.ordered.items()), group=len(holder.group),
    pairs=list(holder.pairs.values()), table=[one == "then" for one in holder.table],
    is_new=[next(iter(holder.levels)) is core.Level.LOW, all(isinstance(one, (core.Level, core.Word))
    for one in holder.group), next(iter(holder.pairs))[0] is core.Level.LOW, next(iter(holder.table)) is core.other],
)
"""
    assert found.answer(code, python=python) == {
        "levels": [[1, "low"], ["between", 0], [2, "high"]],
        "ordered": [["yes", 1], ["last", 2]],
        "group": 2,
        "pairs": ["pair"],
        "table": [False, True],
        "is_new": [True, True, True, True],
    }


@EACH_PYTHON
def test_sentinels_and_constants_of_a_module(tmp_path: Path, python: str) -> None:
    found = garden(tmp_path, EQUAL, "from stk.part.core import MISSING, SHAPE, run\n")
    found.edit("core.py", "8, (128", "16, (128")
    found.edit("core.py", '"1.0"', '"1.0+mine"')
    found.edit("core.py", '"run"]', '"run", "other"]')
    code = """
import holder
import my_part.activate
import stk.part.core as core
from stk.part.core import *
show(run=holder.run(holder.MISSING), shape=core.SHAPE, version=core.__version__, other=other())
"""
    expected = {"run": True, "shape": [16, [128, "x"]], "version": "1.0+mine", "other": "stock"}
    assert found.answer(code, python=python) == expected
    (done,) = found.report()["substitutions"]
    assert done["constants"] == [f"stk.part.core.{name}" for name in ("SHAPE", "__version__", "__all__")]
    assert done["not_rebound"] == [
        {
            "object": "stk.part.core.SHAPE",
            "where": "global SHAPE of module holder has the same value: an import of it, perhaps",
        }
    ]


@EACH_PYTHON
def test_no_code_of_those_who_hold_references_is_called(tmp_path: Path, python: str) -> None:
    holder = """
from stk.part.core import Shape, run
def no(*arguments):
    raise RuntimeError("called")
class Row(list):
    __setitem__ = __getitem__ = __iter__ = no
class Group(set):
    __iter__ = __contains__ = add = discard = no
class Table(dict):
    __setitem__ = __delitem__ = __contains__ = __getitem__ = __iter__ = keys = items = no
class Meta(type):
    __setattr__ = no
class Proxy:
    __getattribute__ = no
    def __call__(self):
        pass
row, group, table = Row([run]), Group([run]), Table({run: 1, "a": run})
class Derived(Shape, metaclass=Meta):
    pass
"""
    core = "class Shape:\n    pass\n\n\ndef run():\n    return 'stock'\n"
    core += "try:\n    import holder_of_proxies\n    proxy = holder_of_proxies.Proxy()\nexcept ImportError:\n    pass\n"
    found = garden(tmp_path, core, holder)
    proxy = "class Proxy:\n    def __getattr__(self, name):\n        raise RuntimeError('called')\n"
    (found.site / "holder_of_proxies.py").write_text(proxy + "    def __call__(self):\n        pass\n")
    code = """
import holder
import my_part.activate
import stk.part.core as core
show(
    row=list.__getitem__(holder.row, 0) is core.run, group=core.run in set.copy(holder.group),
    table=[one is core.run for one in (list(dict.keys(holder.table))[0], dict.get(holder.table, "a"))],
    derived=type.mro(holder.Derived)[1] is core.Shape,
)
"""
    expected = {"row": True, "group": True, "table": [True, True], "derived": True}
    assert found.answer(code, python=python) == expected


@EACH_PYTHON
def test_what_knows_stock_classes_weakly_knows_the_copys(tmp_path: Path, python: str) -> None:
    core = "import abc\n\n\nclass Shape:\n    pass\n\n\nclass Base(abc.ABC):\n    pass\n\n\ndef run():\n    return 1\n"
    holder = """
import abc, weakref
from stk.part.core import Base, Shape, run
class Known(abc.ABC):
    pass
Known.register(Shape)
class Own:
    pass
Base.register(Own)
keys = weakref.WeakKeyDictionary({Shape: "class", run: "function"})
values = weakref.WeakValueDictionary({"run": run})
group = weakref.WeakSet([Shape])
"""
    code = """
import holder
import my_part.activate
import stk.part.core as core
show(
    known=issubclass(core.Shape, holder.Known), own=issubclass(holder.Own, core.Base),
    keys=[holder.keys.get(core.Shape), holder.keys.get(core.run), len(holder.keys)],
    values=holder.values["run"] is core.run, group=[core.Shape in holder.group, len(holder.group)],
)
"""
    found = garden(tmp_path, core, holder)
    expected: dict[str, Any] = {"known": True, "own": True, "keys": ["class", "function", 2]}
    assert found.answer(code, python=python) == {**expected, "values": True, "group": [True, 1]}
    counts = found.report()["substitutions"][0]["rebound"]
    assert (counts["abstract base class registration"], counts["weak container"]) == (2, 4)


def test_what_was_asked_of_a_lazy_module_before_is_the_copys(tmp_path: Path) -> None:
    core = """
def __getattr__(name):
    if name != "late":
        raise AttributeError(name)
    def late():
        return "stock"
    globals()[name] = late
    return late
"""
    found = garden(tmp_path, core)
    found.edit("core.py")
    code = "import stk.part.core as core\nheld = [core.late]\nimport my_part.activate\n"
    code += "show(now=core.late(), held=held[0]())"
    assert found.answer(code) == {"now": "copy", "held": "copy"}
    assert found.report()["substitutions"][0]["gone"] == []


def test_an_object_in_the_place_of_a_module_is_named(tmp_path: Path) -> None:
    core = "import sys\n\n\nclass Odd:\n    what = 'stock'\n\n\nsys.modules[__name__] = Odd()\n"
    found = garden(tmp_path, core)
    before = found.run("import stk.part.core\nimport my_part.activate\nshow(what=sys.modules['stk.part.core'].what)")
    assert json.loads(before.stdout) == {"what": "stock"}
    assert "is in the place of a module: it stays stock" in before.stderr
    after = found.run("import my_part.activate\nimport stk.part.core\n", PATCHKIT_TRANSPLANT="verbose")
    words = "not rebound: stk.part.core: it puts an object of its own in its place in sys.modules, and that stays"
    assert (after.returncode, words in after.stderr) == (0, True)


def test_an_activation_that_failed_is_no_success_the_second_time(tmp_path: Path) -> None:
    found = garden(tmp_path, "def run():\n    return 1\n")
    (found.site / "stk/part/core.py").write_text("def run():\n    return 2\n")
    code = """
import stk.part.core
said = []
for _ in range(2):
    try:
        import my_part.activate
    except ImportError as error:
        said.append("is not the one of stk 1.0" in str(error))
show(said=said)
"""
    assert found.answer(code) == {"said": [True, True]}


def test_a_program_run_by_its_modules_name_is_the_copys(tmp_path: Path) -> None:
    found = garden(tmp_path, "def run():\n    return 1\n", __main__="from .core import run\nprint('stock', run())\n")
    found.edit("__main__.py", "'stock'", "'copy'")
    code = """
import os, subprocess
path = [os.path.abspath("my_part/_transplant/startup"), os.environ["PYTHONPATH"]]
env = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
done = subprocess.run([sys.executable, "-m", "stk.part"], env=env, capture_output=True, text=True)
show(out=done.stdout, status=done.returncode)
"""
    assert found.answer(code) == {"out": "copy 1\n", "status": 0}
    (found.site / "stk/part/__main__.py").write_text("print('newer')\n")
    assert found.answer(code) == {"out": "", "status": 1}


def test_an_import_that_another_thread_waits_with_is_not_waited_for(tmp_path: Path) -> None:
    found = garden(tmp_path, "import time\ntime.sleep(0.3)\n", away="def run():\n    return 1\n")
    (found.copy / "away.py").write_text("import time\ntime.sleep(0.6)\nimport outer\n")
    (found.work / "outer.py").write_text("import threading\nimport stk.part.core\n")
    code = """
import faulthandler, importlib, threading, time
faulthandler.dump_traceback_later(20, exit=True)
import my_part.activate
first = threading.Thread(target=importlib.import_module, args=["stk.part.away"])
second = threading.Thread(target=importlib.import_module, args=["outer"])
first.start()
time.sleep(0.2)
second.start()
first.join(); second.join()
show(done=True)
"""
    assert found.answer(code) == {"done": True}
