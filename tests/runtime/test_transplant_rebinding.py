"""Every way in which a process holds a function or class, with a copy put in its place afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.grafts import Garden
from support.overlays import every_python

COPY = ["copy", 0, "copy help"]
EACH_PYTHON = pytest.mark.parametrize("python", every_python(), ids=lambda path: Path(path).parts[-3])

ASK = """
import holder as h
import my_part.activate
c = h.core
Config = h.Config
show(
    module=c.run(), from_package=h.from_package(), alias=c.alias is c._hidden,
    in_dict=h.in_dict["a"](), deep=h.in_dict["deep"][0]["b"][0](), table=c.TABLE["run"](),
    keys=sorted(h.as_key.values()), keyed=(h.as_key.get(c.run), h.as_key.get(c.Shape)), old_keys=len(h.as_key),
    in_list=[one() for one in h.in_list], in_set=[one() for one in h.in_set], in_frozen=[one() for one in h.in_frozen],
    in_tuple=h.in_tuple[1][0](), in_pair=(type(h.in_pair).__name__, h.in_pair.first()), in_deque=h.in_deque[0](),
    part=h.part(), part_argument=list(h.part_argument([3])), part_keyword=h.part_keyword.keywords["key"] is c.run,
    made=h.made()[0], made_of=h.made()[1] is c.Shape, unit=h.unit(), area=h.area is c.Shape.area,
    red=h.red is c.Color.RED, closed=h.call(), defaults=h.defaulted(), decorated=h.decorated(),
    wrapped=h.decorated.__wrapped__ is c.run,
    field=Config().function(), field_default=Config.__dataclass_fields__["function"].default is c.run,
    field_class=Config().shapes is c.Shape,
    attribute=h.Owner.run(), static=h.Owner.static(), prop=h.Owner.prop.fget(), class_table=h.Owner.table["run"](),
    slot=h.owner.held(), instance=h.loose.run(), method=h.loose.method.__func__ is c.run,
    derived=h.Derived().area()[0], derived_is=isinstance(h.Derived(), c.Shape), bases=h.Derived.__bases__[0] is c.Shape,
    single=(h.single(1), h.single("x"), h.single([])), generic=h.generic(0), result_cache=c.cached(),
    kept=h.kept(), same=c.run is h.run is h.from_package,
)
"""


@pytest.fixture
def garden(tmp_path: Path) -> Garden:
    found = Garden(tmp_path)
    found.plant()
    found.edit()
    found.edit("util.py")
    return found


@EACH_PYTHON
def test_everything_that_can_be_rebound_is(garden: Garden, python: str) -> None:
    assert garden.answer(ASK, python=python) == {
        **dict.fromkeys(
            ["module", "from_package", "in_dict", "deep", "table", "in_tuple", "in_deque", "closed", "decorated"], COPY
        ),
        **dict.fromkeys(["field", "attribute", "static", "class_table", "slot", "instance", "generic"], COPY),
        **dict.fromkeys(["alias", "part_keyword", "made_of", "area", "red", "wrapped", "field_default", "same"], True),
        **dict.fromkeys(["field_class", "method", "derived_is", "bases"], True),
        "keys": ["class", "value"],
        "keyed": ["value", "class"],
        "old_keys": 2,
        "in_list": [COPY, "copy hidden"],
        "in_set": [COPY],
        "in_frozen": [COPY],
        "in_pair": ["Pair", COPY],
        "part": ["copy", 7, "copy help"],
        "part_argument": [["copy", 3, "copy help"]],
        "made": "copy",
        "unit": "copy unit",
        "defaults": [COPY, COPY],
        "prop": "copy hidden",
        "derived": "copy area",
        "single": ["copy int", "registered", "copy object"],
        "result_cache": "copy",
        "kept": ["stock", 0, "copy help"],  # stock code, which finds the copy's helper in its module
    }


@EACH_PYTHON
def test_what_cannot_be_is_named_with_its_place(garden: Garden, python: str) -> None:
    garden.answer(ASK, python=python)
    (done,) = garden.report()["substitutions"]
    left = [(item["object"], item["where"].replace("attribute data of ", "")) for item in done["not_rebound"]]
    weak = "a weak reference, in "
    assert sorted(left) == [
        ("stk.part.core.Shape", "an object of it that was made before, of the stock class"),
        (
            "stk.part.core.Shape.area",
            "a bound method of an object of stk.part.core.Shape, in global bound of module holder",
        ),
        (
            "stk.part.core.run",
            "a functools.lru_cache, which was made of it before: it calls the stock one, "
            "in global kept of module holder",
        ),
        ("stk.part.core.run", f"{weak}global weak of module holder"),
        ("stk.part.core.run", "an object of builtins.map, in global ITERATOR of module holder"),
    ]


@EACH_PYTHON
def test_the_report_counts_by_what_held_the_reference(garden: Garden, python: str) -> None:
    garden.answer(ASK, python=python)
    (done,) = garden.report()["substitutions"]
    assert done["modules"] == ["stk.part", "stk.part.core", "stk.part.util"]
    # HOLDER, counted by hand; and in stk.part.core: TABLE's two, and the registry of `single`.
    assert done["rebound"] == {
        "__wrapped__": 2,
        "base class": 1,
        "class attribute": 5,
        "closure cell": 2,
        "dataclass field": 2,
        "default": 3,
        "deque": 1,
        "dict": 7,
        "dict key": 2,
        "instance attribute": 3,
        "list": 2,
        "module global": 14,
        "partial": 3,
        "set": 1,
        "singledispatch registration": 1,
        "weak container": 1,
    }


FRESH = """
import my_part.activate
late = "stk.part.core" in sys.modules
import holder as h
show(late=late, run=h.run(), kept=h.kept(), bound=h.bound()[0], table=h.core.TABLE["run"](), weak=h.weak() is h.run)
"""


@EACH_PYTHON
def test_activated_first_nothing_stock_is_ever_held(garden: Garden, python: str) -> None:
    found = garden.answer(FRESH, python=python)
    assert found == {"late": False, "run": COPY, "kept": COPY, "bound": "copy area", "table": COPY, "weak": True}
    assert [item["not_rebound"] for item in garden.report()["substitutions"]] == [[], [], []]


def test_local_variables_of_functions_that_run_are_named(garden: Garden) -> None:
    code = """
from stk.part import run
def main(mine):
    import my_part.activate
    return mine()
show(found=main(run), module=run())
"""
    assert garden.answer(code) == {"found": ["stock", 0, "copy help"], "module": COPY}
    (done,) = garden.report()["substitutions"]
    assert done["not_rebound"] == [
        {"object": "stk.part.core.run", "where": "local mine of function __main__.main, which is running"}
    ]


def test_a_class_that_cannot_be_derived_anew_is_named(garden: Garden) -> None:
    garden.edit("core.py", "class Shape:\n", "class Shape:\n    __slots__ = ('extra',)\n")
    code = "import holder as h\nimport my_part.activate\nshow(area=h.Derived().area()[0], new=h.Shape().area()[0])"
    assert garden.answer(code) == {"area": "stock area", "new": "copy area"}
    (done,) = garden.report()["substitutions"]
    (left,) = [item for item in done["not_rebound"] if "derived" in item["where"]]
    assert left["object"] == "stk.part.core.Shape"
    assert left["where"].startswith("class holder.Derived is derived from it, and stays so: ")


def test_objects_that_are_frozen_are_found_and_stay_frozen(garden: Garden) -> None:
    code = """
import gc
import holder as h
gc.freeze()
import my_part.activate
show(deep=h.in_dict["deep"][0]["b"][0](), frozen=gc.get_freeze_count() > 1000)
"""
    assert garden.answer(code) == {"deep": COPY, "frozen": True}


def test_annotations_are_rebound(garden: Garden) -> None:
    code = """
from stk.part import Shape
def area(shape: Shape) -> "Shape":
    pass
class Holder:
    shape: Shape
import my_part.activate
import my_part.core
show(function=area.__annotations__["shape"] is my_part.core.Shape, own=Holder.__annotations__["shape"] is Shape)
"""
    assert garden.answer(code) == {"function": True, "own": True}


def call(code: str) -> Any:
    return f"import my_part.activate\nimport stk.part.core as core\n{code}"


def test_constants_are_set_and_other_data_is_told_of(garden: Garden) -> None:
    garden.edit("core.py", "LIMIT = 4", "LIMIT = 5")
    garden.edit("core.py", '{"a": 1}', '{"a": 2}')
    code = "import holder\nimport my_part.activate\nshow(limit=holder.core.LIMIT, numbers=holder.core.NUMBERS)"
    assert garden.answer(code) == {"limit": 5, "numbers": {"a": 1}}
    (done,) = garden.report()["substitutions"]
    assert done["constants"] == ["stk.part.core.LIMIT"]
    assert [item for item in done["not_rebound"] if item["object"][-6:] in (".LIMIT", "UMBERS")] == [
        {
            "object": "stk.part.core.LIMIT",
            "where": "global LIMIT of module holder has the same value: an import of it, perhaps",
        },
        {
            "object": "stk.part.core.NUMBERS",
            "where": "data that differs from the copy's: the copy's functions use their own",
        },
    ]


def test_what_the_copy_no_longer_has_stays_and_what_it_has_more_is_there(garden: Garden) -> None:
    garden.edit("core.py", "def far():", "def near():")
    assert garden.answer(call("show(far=core.far(), near=core.near())")) == {
        "far": "outoutcopy help",
        "near": "outoutcopy help",
    }
    assert [one["gone"] for one in garden.report()["substitutions"] if one["gone"]] == [["stk.part.core.far"]]


def test_a_reload_of_the_stock_module_is_substituted_again(garden: Garden) -> None:
    code = call("import importlib\nfirst = core.run\nimportlib.reload(core)\nshow(run=core.run(), first=first())")
    assert garden.answer(code) == {"run": COPY, "first": COPY}


def test_it_is_activated_once(garden: Garden) -> None:
    code = "import my_part.activate as a\nfrom my_part._transplant import activate\nimport stk.part.core as core\n"
    assert garden.answer(code + "show(same=activate() is a.IN_FORCE, run=core.run())") == {"same": True, "run": COPY}


AROUND = """
import collections, dataclasses, functools, typing, types
import stk.part.core as core
from stk.part.core import Shape, run

class Strange(type):
    def __instancecheck__(cls, one):
        raise TypeError("not to be asked")
    def __subclasscheck__(cls, one):
        raise TypeError("not to be asked")

core.Odd = Strange("Odd", (), {"__module__": "stk.part.core"})
maybe = typing.Optional[Shape]
listed = typing.List[Shape]
@dataclasses.dataclass(frozen=True)
class Key:
    function: object
key = Key(run)
table = {"first": 0, key: 1, (key, 2): 2}
group = {key}
ordered = collections.OrderedDict([("first", 0), (key, 1), ("last", 2)])
@functools.lru_cache(maxsize=None)
def remembered(function):
    return function
remembered(run)
import my_part.core
my_part.core.Odd = Strange("Odd", (), {"__module__": "my_part.core"})
import my_part.activate
"""


@EACH_PYTHON
def test_a_metaclass_of_its_own_is_not_asked(garden: Garden, python: str) -> None:
    code = AROUND + "show(odd=core.Odd.__module__)"
    assert garden.answer(code, python=python) == {"odd": "my_part.core"}


@EACH_PYTHON
def test_generic_aliases_are_made_anew(garden: Garden, python: str) -> None:
    code = AROUND + "show(maybe=maybe.__args__[0] is core.Shape, listed=listed.__args__[0] is core.Shape)"
    assert garden.answer(code, python=python) == {"maybe": True, "listed": True}


@EACH_PYTHON
def test_what_is_hashed_by_what_it_holds_is_found_where_it_was_a_key(garden: Garden, python: str) -> None:
    code = AROUND + "new = Key(core.run)\nshow(key=key == new, value=table[new], pair=table[(new, 2)], "
    code += "group=new in group, order=list(table.values()), ordered=(ordered[new], list(ordered.values())))"
    expected = {"key": True, "value": 1, "pair": 2, "group": True, "order": [0, 1, 2], "ordered": [1, [0, 1, 2]]}
    assert garden.answer(code, python=python) == expected


@EACH_PYTHON
def test_what_a_cache_remembers_is_named_and_not_touched(garden: Garden, python: str) -> None:
    code = AROUND + "show(info=remembered.cache_info().currsize)"
    assert garden.answer(code, python=python) == {"info": 1}
    (done,) = garden.report()["substitutions"]
    assert [item for item in done["not_rebound"] if "remembers" in item["where"]] == [
        {
            "object": "stk.part.core.run",
            "where": "what the functools.lru_cache function __main__.remembered remembers",
        }
    ]
