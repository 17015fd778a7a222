"""Imports of modules that move: what they become, that they then import the same, and the way back."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patchkit.author.reimport import Rewritten, Tree, rewrite, undo
from patchkit.edit.source import Source, lay

PACKAGE = Tree("a.b.v3", "mine", frozenset({"a.b.v3._speed"}))
TOP = Tree("click", "my_click")
MODULE = Tree("idna.core", "my_core.core")


def there(text: str, tree: Tree, module: str, *, package: bool = False) -> str:
    source = Source(text.encode())
    done = rewrite(source, ast.parse(text), module, package, tree)
    return lay(source.text, done.splices)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # within the tree: relative ones stay, absolute ones get the copy's name
        ("from .util import x", "from .util import x"),
        ("from . import util", "from . import util"),
        ("from a.b.v3.util import (  # why\n    x,\n    y)", "from mine.util import (  # why\n    x,\n    y)"),
        ("from a.b.v3 import util", "from mine import util"),
        ("import a.b.v3.util as u", "import mine.util as u"),
        ("import os, a.b.v3.util as u", "import os, mine.util as u"),
        # out of the tree: relative ones become absolute
        ("from ..other import x", "from a.b.other import x"),
        ("from .. import other", "from a.b import other"),
        ("from ... import c", "from a import c"),
        ("from  \\\n  ..other  import x", "from  \\\n  a.b.other  import x"),
        ("from ..other import *", "from a.b.other import *"),
        # the tree's own top, by its parent
        ("from .. import v3", "import mine as v3"),
        ("from a.b import v3 as k", "import mine as k"),
        ("from .. import v3, other", "from a.b import other; import mine as v3"),
        # compiled modules stay the stock ones
        ("from . import _speed", "from a.b.v3 import _speed"),
        ("from ._speed import f", "from a.b.v3._speed import f"),
        ("from . import util, _speed", "from mine import util; from a.b.v3 import _speed"),
        ("from a.b.v3._speed import f", "from a.b.v3._speed import f"),
        # dotted use
        ("import a.b.v3.util\na.b.v3.util.f(a.b.c)", "import a.b.v3.util, mine.util\nmine.util.f(a.b.c)"),
        # not of the tree
        ("from a.b.v31 import x", "from a.b.v31 import x"),
        ("import a.b", "import a.b"),
        ("x = 'a.b.v3'", "x = 'a.b.v3'"),
        ("def f():\n    from ..other import x\n", "def f():\n    from a.b.other import x\n"),
        ("from .....far import x", "from .....far import x"),
    ],
)
def test_imports_of_a_packages_module(text: str, expected: str) -> None:
    assert there(text, PACKAGE, "a.b.v3.kernel") == expected


def test_imports_of_the_package_itself() -> None:
    assert there("from .util import x\nfrom ..other import y", PACKAGE, "a.b.v3", package=True) == (
        "from .util import x\nfrom a.b.other import y"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import click\nclick.echo()", "import my_click as click\nclick.echo()"),
        ("import click.utils\nclick.utils.echo()", "import my_click.utils, my_click as click\nclick.utils.echo()"),
        ("from click import echo", "from my_click import echo"),
        ("from . import echo", "from . import echo"),
    ],
)
def test_imports_of_a_top_package(text: str, expected: str) -> None:
    assert there(text, TOP, "click.core") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from . import idnadata", "from idna import idnadata"),
        ("from .intranges import f", "from idna.intranges import f"),
        ("from .core import f", "from .core import f"),
        ("from idna.core import f", "from my_core.core import f"),
        ("from . import core, idnadata", "from idna import idnadata; import my_core.core as core"),
    ],
)
def test_imports_of_a_single_module(text: str, expected: str) -> None:
    assert there(text, MODULE, "idna.core") == expected


def test_names_in_strings_and_f_strings_are_told_of() -> None:
    text = "import a.b.v3.util\nload('a.b.v3.util')\nx = f'{a.b.v3.util.f}'\ny = 'a.b.v3 and so on'\n"
    done = rewrite(Source(text.encode()), ast.parse(text), "a.b.v3.kernel", False, PACKAGE)
    assert sorted(done.notes) == [
        "line 2 names a.b.v3.util in a string, which stays",
        "line 3 uses a.b.v3 within an f-string, which stays",
    ]


# --- and back


def back(made: str, text: str, tree: Tree, module: str) -> str:
    """The copy's text ``made``, with the imports of the stock ``text`` undone."""
    done = rewrite(Source(text.encode()), ast.parse(text), module, False, tree)
    source = Source(made.encode())
    return lay(source.text, undo(source, ast.parse(made), done, tree))


STATEMENTS = [
    "from .util import x",
    "from a.b.v3.util import (x,  # why\n    y)",
    "from a.b.v3 import util",
    "import a.b.v3.util as u",
    "import a.b.v3.util",
    "a.b.v3.util.f()",
    "from ..other import x",
    "from a.b.other import x",
    "from .. import v3, other",
    "from . import util, _speed",
    "import os, sys",
    "x = 1; from ..other import z; y = 2",
    "if x:\n    from ..other import x\nelse:\n    from a.b.other import x",
    "é = 'ü'; from ..other import q",
]


@given(st.lists(st.sampled_from(STATEMENTS), max_size=12))
def test_there_and_back_is_the_same_text(statements: list[str]) -> None:
    text = "\n".join(statements) + "\n"
    made = there(text, PACKAGE, "a.b.v3.kernel")
    assert back(made, text, PACKAGE, "a.b.v3.kernel") == text


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("from mine.util import x, z\n", "from a.b.v3.util import x, z\n"),  # a name more
        ("from a.b.other import x, z\n", "from ..other import x, z\n"),  # of one that was relative
        ("from mine.new import n\n", "from a.b.v3.new import n\n"),  # a new module of the copy
        ("import mine.new as n\n", "import a.b.v3.new as n\n"),
        ("import mine.new\nmine.new.f()\n", "import a.b.v3.new\na.b.v3.new.f()\n"),
        ("from .new import n\n", "from .new import n\n"),
        ("import mineral\n", "import mineral\n"),
    ],
)
def test_what_a_person_wrote_goes_back_by_its_names(made: str, expected: str) -> None:
    text = "from a.b.v3.util import x\nfrom ..other import x\n"
    assert back(made, text, PACKAGE, "a.b.v3.kernel") == expected


def test_an_empty_record_leads_back_by_names_alone() -> None:
    source = Source(b"from mine.util import x\nimport os\n")
    splices = undo(source, ast.parse(source.text), Rewritten([], [], {}, []), PACKAGE)
    assert lay(source.text, splices) == "from a.b.v3.util import x\nimport os\n"
