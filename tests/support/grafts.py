"""A package to be transplanted, a module that holds its objects in every awkward way, and processes that use both.

What the stock code answers holds the word "stock"; in a copy it is edited to "copy".
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.dists import make_dist
from support.sites import bare_site

from patchkit.author.transplant import Made, transplant

CORE = '''\
"""What is transplanted."""
import enum
import functools

from .. import other
from ..other import outside
from .util import helper
import stk.part.util as util_module

LIMIT = 4
NUMBERS = {"a": 1}


def run(x=0):
    return ("stock", x, helper())


def _hidden():
    return "stock hidden"


def produce():
    yield "stock"
    return 1


async def wait():
    return "stock"


@functools.lru_cache(maxsize=None)
def cached():
    return "stock"


@functools.singledispatch
def single(value):
    return "stock object"


@single.register(int)
def _(value):
    return "stock int"


class Shape:
    what = "stock"

    def area(self):
        return ("stock area", __class__ is type(self))

    @classmethod
    def make(cls):
        return (cls.what, cls)

    @staticmethod
    def unit():
        return "stock unit"


class Color(enum.Enum):
    RED = "stock"


TABLE = {"run": run, "shape": Shape}
alias = _hidden


def far():
    return outside() + other.outside() + util_module.helper()
'''
UTIL = 'def helper():\n    return "stock help"\n'
STOCK: dict[str, str | bytes] = {
    "stk/__init__.py": "",
    "stk/other.py": 'def outside():\n    return "out"\n',
    "stk/part/__init__.py": "from stk.part.core import run, Shape\n",
    "stk/part/core.py": CORE,
    "stk/part/util.py": UTIL,
    "stk/part/data.txt": "stock data\n",
}
#: A module outside of the tree, which has imported from it before the copy is put in its place.
HOLDER = """\
import collections
import dataclasses
import functools
import weakref

import stk.part.core as core
from stk.part import run as from_package
from stk.part.core import LIMIT, Color, Shape, _hidden, cached, run, single

in_dict = {"a": run, "deep": [{"b": (run, 1)}]}
as_key = {run: "value", Shape: "class"}
in_list = [run, _hidden]
in_set = {run}
in_frozen = frozenset([run])
in_tuple = (1, (run,))
Pair = collections.namedtuple("Pair", "first second")
in_pair = Pair(run, 2)
in_deque = collections.deque([run])
part = functools.partial(run, 7)
part_argument = functools.partial(map, run)
part_keyword = functools.partial(sorted, key=run)
made = Shape.make
unit = Shape.unit
area = Shape.area
red = Color.RED


def closed():
    inner = run

    def call():
        return inner()

    return call


call = closed()


def defaulted(function=run, *, other=run):
    return function(), other()


def decorate(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        return function(*arguments)

    return wrapper


decorated = decorate(run)


@dataclasses.dataclass(frozen=True)
class Config:
    function: object = run
    shapes: object = dataclasses.field(default=Shape, repr=False)


class Owner:
    run = run
    static = staticmethod(run)
    prop = property(_hidden)
    table = {"run": run}
    __slots__ = ("held",)

    def __init__(self):
        self.held = run


owner = Owner()


class Loose:
    pass


loose = Loose()
loose.run = run
loose.method = run.__get__(loose)


class Derived(Shape):
    def area(self):
        return super().area()


single.register(str)(lambda value: "registered")
generic = functools.singledispatch(run)
kept = functools.lru_cache(maxsize=None)(run)
weak = weakref.ref(run)
weak_values = weakref.WeakValueDictionary(run=run)
before = Shape()
bound = before.area
ITERATOR = map(run, [1])
"""
HEAD = """\
import json, sys
def show(**values):
    print(json.dumps(values, default=str))
"""


class Garden:
    """``site`` holds the package, ``work`` the copy and the programs."""

    def __init__(self, root: Path, files: Mapping[str, str | bytes] | None = None) -> None:
        self.site = root / "site-packages"
        self.work = root / "work"
        self.work.mkdir(exist_ok=True)
        self.copy = self.work / "my_part"
        self.probes = root / "probes"
        make_dist(self.site, "stk", "1.0", files or STOCK)
        (self.site / "holder.py").write_text(HOLDER, encoding="utf-8")

    def plant(self, module: str = "stk.part", folder: Path | None = None, **options: Any) -> Made:
        """Make the copy."""
        target = str(folder or self.copy)
        return transplant(
            bare_site(self.site), module, target, notice=lambda text: None, progress=lambda text: None, **options
        )

    def edit(self, path: str = "core.py", old: str = '"stock', new: str = '"copy') -> None:
        """Edit a file of the copy, everywhere."""
        target = self.copy / path
        text = target.read_text(encoding="utf-8")
        assert old in text
        target.write_text(text.replace(old, new), encoding="utf-8")

    def environment(self, **more: str) -> dict[str, str]:
        """The environment of a process that imports from the site and the working folder."""
        env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PATCHKIT"))}
        path = os.pathsep.join([str(self.site), str(self.work)])
        return {**env, "PYTHONPATH": path, "PATCHKIT_PROBES": str(self.probes), "PYTHONDONTWRITEBYTECODE": "1", **more}

    def run(self, code: str, *, python: str = sys.executable, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a script."""
        script = self.work / "script.py"
        script.write_text(HEAD + code, encoding="utf-8")
        env = self.environment(**more)
        command = [python, str(script)]
        return subprocess.run(command, cwd=self.work, env=env, capture_output=True, text=True, timeout=120, check=False)

    def answer(self, code: str, *, python: str = sys.executable, **more: str) -> Any:
        """Run a script that calls ``show``; what it showed."""
        done = self.run(code, python=python, **more)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def report(self) -> Any:
        """The one report of substitutions."""
        (path,) = (self.probes / "transplants").glob("*.json")
        return json.loads(path.read_text(encoding="utf-8"))
