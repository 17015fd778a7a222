"""Objects of stock modules that are told apart by identity, hold each other, or are classes of unusual kinds."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.grafts import STOCK, Garden
from support.overlays import every_python

EACH_PYTHON = pytest.mark.parametrize("python", every_python(), ids=lambda path: Path(path).parts[-3])
FIRST = "import my_part.activate\nimport holder\nimport stk.part.core as core\n"
LATE = "import holder\nimport my_part.activate\nimport stk.part.core as core\n"


def garden(tmp_path: Path, core: str, holder: str = "") -> Garden:
    found = Garden(tmp_path, {**STOCK, "stk/part/__init__.py": "", "stk/part/core.py": core})
    (found.site / "holder.py").write_text(holder, encoding="utf-8")
    found.plant()
    return found


KINDS = """
import abc


class Meta(type):
    def who(cls):
        return "stock"


class Base(metaclass=Meta):
    def what(self):
        return "stock", isinstance(type(self), Meta), isinstance(self, Base)


class One:
    pass


class Two:
    one = One


One.two = Two
One.itself = One


class Own(type):
    def __new__(meta, name, bases, space):
        made = super().__new__(meta, name, bases, space)
        made.__class__ = made
        return made


class Typed(Own, metaclass=Own):
    pass


def make():
    class Local(Own, metaclass=Own):
        pass


make()
"""


@pytest.mark.parametrize("order", [FIRST, LATE], ids=["first", "late"])
@EACH_PYTHON
def test_classes_of_a_metaclass_of_the_tree_and_classes_that_hold_each_other(
    tmp_path: Path, python: str, order: str
) -> None:
    holder = "from stk.part.core import *\nclass Derived(Base):\n    held = Base, Two\n"
    found = garden(tmp_path, KINDS, holder)
    found.edit()
    code = f"""{order}
show(
    what=holder.Derived().what(), who=holder.Derived.who(), base=core.Base().what(),
    held=[one is other for one, other in zip(holder.Derived.held, (core.Base, core.Two))],
    around=[core.One.two is core.Two, core.Two.one is core.One, core.One.itself is core.One],
    typed=[type(core.Typed) is core.Typed, holder.Typed is core.Typed],
    copy=[one.__module__ for one in (core.Meta, core.Base, core.One, core.Two, core.Typed)],
)
"""
    assert found.answer(code, python=python) == {
        "what": ["copy", True, True],
        "who": "copy",
        "base": ["copy", True, True],
        "held": [True, True],
        "around": [True, True, True],
        "typed": [True, True],
        "copy": ["my_part.core"] * 5,
    }


STATE = """
import contextvars
import outer_factory


class Kind:
    def name(self):
        return "stock"


class Missing:
    __slots__ = ()


class Config:
    def __init__(self):
        self.level = 1


KIND = Kind()
MISSING = Missing()
CONFIG = Config()
TABLE = {}
proxy = outer_factory.make(CONFIG.__dict__)


def look(kind, missing):
    return isinstance(kind, Kind), missing is MISSING, CONFIG.level, dict(TABLE), proxy()
"""
FACTORY = """
class Proxy:
    __slots__ = ("held",)

    def __init__(self, held):
        self.held = held

    @property
    def __class__(self):
        raise RuntimeError("nothing is bound")

    def __getattr__(self, name):
        raise RuntimeError("nothing is bound")

    def __call__(self):
        return self.held["level"]


def make(held):
    return Proxy(held)
"""


@EACH_PYTHON
def test_a_module_that_is_imported_after_activation_has_the_copys_data(tmp_path: Path, python: str) -> None:
    found = garden(tmp_path, STATE, "from stk.part.core import CONFIG, KIND, MISSING, TABLE, look, proxy\n")
    (found.site / "outer_factory.py").write_text(FACTORY)
    code = f"{FIRST}core.CONFIG.level = 2\nholder.TABLE['a'] = 1\nshow(look=core.look(holder.KIND, holder.MISSING))"
    assert found.answer(code, python=python) == {"look": [True, True, 2, {"a": 1}, 2]}


@EACH_PYTHON
def test_objects_without_state_are_replaced_by_their_like(tmp_path: Path, python: str) -> None:
    found = garden(tmp_path, STATE, "from stk.part.core import CONFIG, KIND, MISSING, TABLE, look, proxy\n")
    (found.site / "outer_factory.py").write_text(FACTORY)
    found.edit()
    code = f"""{LATE}
core.CONFIG.level = 2
show(
    look=core.look(holder.KIND, holder.MISSING), kind=holder.KIND.name(), held=[holder.KIND is core.KIND],
    proxy=object.__getattribute__(holder.proxy, "held") is object.__getattribute__(core.proxy, "held"),
)
"""
    assert found.answer(code, python=python) == {
        "look": [True, True, 1, {}, 1],  # what has state stays, and its copy is another one
        "kind": "copy",
        "held": [True],
        "proxy": True,  # made by a call of another module's function, and its own all the same
    }
    (done,) = found.report()["substitutions"]
    assert done["not_rebound"] == [
        {"object": "stk.part.core.Config", "where": "an object of it that was made before, of the stock class"}
    ]


@EACH_PYTHON
def test_a_function_that_looks_at_its_caller_is_not_wrapped(tmp_path: Path, python: str) -> None:
    core = (
        "import sys\n\n\ndef caller():\n    return sys._getframe(1).f_globals['__name__']\n\n\ndef run():\n    pass\n"
    )
    found = garden(tmp_path, core)
    code = "import my_part.activate\nimport stk.part.core as core\ncore.run()\nshow(caller=core.caller())"
    assert found.answer(code, python=python) == {"caller": "__main__"}
    (path,) = (found.probes / "transplants").glob("*.json")
    assert '"unwrapped": ["stk.part.core.caller"]' in path.read_text()
