from __future__ import annotations

import ast

import pytest

from patchkit.edit.imports import import_splices
from patchkit.edit.outline import Outline
from patchkit.edit.source import Source


def added(text: str | bytes, *statements: str) -> str:
    source = Source(text.encode() if isinstance(text, str) else text, path="a.py")
    outline = Outline(source, ast.parse(source.text))
    splices = import_splices(outline, statements, ast.parse, 3)
    assert all(splice.edit == 3 for splice in splices)
    after = source.render(sorted(splices, key=lambda s: (s.start, s.end, s.side)))[0].decode()
    again = Source(after.encode(), path="a.py")
    assert import_splices(Outline(again, ast.parse(again.text)), statements, ast.parse, 3) == []
    compile(after.encode(), "a.py", "exec", dont_inherit=True)
    return after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "import new\n"),
        ("x = 1\n", "import new\nx = 1\n"),
        ("import a\n", "import new\nimport a\n"),
        ("x = 1\nimport a\n", "import new\nx = 1\nimport a\n"),
        # a docstring
        ('"""d"""\nimport a\n', '"""d"""\nimport new\nimport a\n'),
        ('"""d"""\n\n\nimport a\n', '"""d"""\n\n\nimport new\nimport a\n'),
        ('"""d"""\nx = 1\n', '"""d"""\n\nimport new\nx = 1\n'),
        ('"""d"""\n\nx = 1\n', '"""d"""\n\nimport new\n\nx = 1\n'),
        ('"""d"""  # note\n# about x\nx = 1\n', '"""d"""  # note\n\nimport new\n# about x\nx = 1\n'),
        ('"""d"""\n', '"""d"""\n\nimport new\n'),
        ('"""d"""', '"""d"""\n\nimport new\n'),
        ("('d')\nx = 1\n", "('d')\n\nimport new\nx = 1\n"),
        ('"""d""";\nx = 1\n', '"""d""";\n\nimport new\nx = 1\n'),
        ("b'd'\nx = 1\n", "import new\nb'd'\nx = 1\n"),
        # future imports
        ("from __future__ import annotations\nx = 1\n", "from __future__ import annotations\n\nimport new\nx = 1\n"),
        (
            '"""d"""\nfrom __future__ import annotations\n\nimport a\n',
            '"""d"""\nfrom __future__ import annotations\n\nimport new\nimport a\n',
        ),
        (
            "from __future__ import (\n    annotations,\n)\nfrom __future__ import division\nimport a\n",
            "from __future__ import (\n    annotations,\n)\nfrom __future__ import division\nimport new\nimport a\n",
        ),
        # joined lines
        ('"""d"""; x = 1\n', '"""d"""; import new; x = 1\n'),
        ('"""d"""; import a\n', '"""d"""; import new; import a\n'),
        ("from __future__ import division; import a\n", "from __future__ import division; import new; import a\n"),
        ('"""d"""; \\\n  x = 1\n', '"""d"""; \\\n  import new; x = 1\n'),
        # comments
        ("# only\n", "# only\nimport new\n"),
        ("# only", "# only\nimport new\n"),
        ("#!/bin/python\n# coding: utf-8\nx = 1\n", "#!/bin/python\n# coding: utf-8\nimport new\nx = 1\n"),
        ("# licence\n\n# about x\nx = 1\n", "# licence\n\nimport new\n# about x\nx = 1\n"),
        ("# licence\n\nx = 1\n", "# licence\n\nimport new\nx = 1\n"),
        ("# licence\n\n# about a\nimport a\n", "# licence\n\n# about a\nimport new\nimport a\n"),
        ("\n# about x\nx = 1\n", "\nimport new\n# about x\nx = 1\n"),
        ("\n# coding: utf-8\n# more\nx = 1\n", "\n# coding: utf-8\n# more\nimport new\nx = 1\n"),
        ("# a\n\n@d\ndef f(): pass\n", "# a\n\nimport new\n@d\ndef f(): pass\n"),
        # others
        ("\x0cx = 1\n", "import new\n\x0cx = 1\n"),
        ("\\\nx = 1\n", "import new\n\\\nx = 1\n"),
        ("if a:\n    import new\n", "import new\nif a:\n    import new\n"),
        ("try:\n    import new\nexcept E: pass\n", "import new\ntry:\n    import new\nexcept E: pass\n"),
    ],
)
def test_where_an_import_goes(before: str, after: str) -> None:
    assert added(before, "import new") == after


def test_crlf_and_a_byte_order_mark() -> None:
    assert added(b'\xef\xbb\xbf"""d"""\r\nx = 1\r\n', "import new") == '\ufeff"""d"""\r\n\r\nimport new\r\nx = 1\r\n'
    assert added(b"\xef\xbb\xbfx = 1\r\n", "import new") == "\ufeffimport new\r\nx = 1\r\n"


def test_several_go_in_the_given_order() -> None:
    assert added("import a\n", "import z", "from .b import c", "import y") == (
        "import z\nfrom .b import c\nimport y\nimport a\n"
    )


@pytest.mark.parametrize(
    ("present", "statement"),
    [
        ("import os, sys", "import os"),
        ("import os\nimport sys", "import sys, os"),
        ("from x import a, b as c", "from x import a"),
        ("from x import a, b as c", "from x import b as c, a"),
        ("from x import a as a", "from x import a"),
        ("import os as os", "import os"),
        ("from . import x", "from . import x"),
        ("from x import *", "from x import *"),
        ("def f(): pass\nimport os", "import os"),
        ("import a.b as c", "import a.b as c"),
        ("from __future__ import annotations, division", "from __future__ import division"),
    ],
)
def test_what_is_there_already(present: str, statement: str) -> None:
    assert added(present, statement) == present


@pytest.mark.parametrize(
    ("present", "statement"),
    [
        ("import os.path", "import os"),
        ("import os", "import os.path"),
        ("import os", "import os as o"),
        ("import o as os", "import os"),
        ("from x import a", "from x import a, b"),
        ("from x import a", "from .x import a"),
        ("from x import a", "from x import a as b"),
        ("from x import *", "from x import a"),
        ("from os import path", "import path"),
    ],
)
def test_what_is_not_there_yet(present: str, statement: str) -> None:
    assert added(f"{present}\n", statement) == f"{statement}\n{present}\n"


def test_a_statement_is_added_once_however_often_it_is_given() -> None:
    assert added("x = 1\n", "import os, sys", "import os", "import sys") == "import os, sys\nx = 1\n"


def test_statements_keep_their_own_layout() -> None:
    assert added("import a\n", "  from x import (\n    b,  # noqa: F401\n)  # why\n") == (
        "from x import (\n    b,  # noqa: F401\n)  # why\nimport a\n"
    )
    assert added('"d"; import a\n', "from x import (  # why\n    b,\n)") == '"d"; from x import b; import a\n'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"""d"""\n\nx = 1\n', '"""d"""\n\nfrom __future__ import annotations\n\nimport os\n\nx = 1\n'),
        ('"""d"""', '"""d"""\n\nfrom __future__ import annotations\n\nimport os\n'),
        ('"""d"""\nimport a\n', '"""d"""\nfrom __future__ import annotations\nimport os\nimport a\n'),
        ("x = 1\n", "from __future__ import annotations\nimport os\nx = 1\n"),
        ('"d"; x = 1\n', '"d"; from __future__ import annotations; import os; x = 1\n'),
        (
            "from __future__ import division\nx = 1\n",
            "from __future__ import annotations\nfrom __future__ import division\n\nimport os\nx = 1\n",
        ),
        (
            "from __future__ import division; x = 1\n",
            "from __future__ import annotations\nfrom __future__ import division; import os; x = 1\n",
        ),
        ("", "from __future__ import annotations\nimport os\n"),
    ],
)
def test_future_imports_go_before_everything_else(before: str, after: str) -> None:
    assert added(before, "import os", "from __future__ import annotations") == after


def test_a_future_import_sorts_before_other_insertions_at_its_place() -> None:
    source = Source(b"x = 1\n")
    (splice,) = import_splices(
        Outline(source, ast.parse(source.text)), ["from __future__ import annotations"], ast.parse, 1
    )
    assert splice.side == -1


@pytest.mark.parametrize(
    "statement",
    ["", "x = 1", "import", "import a; import b", "import a\nx = 1", "__import__('a')", "# import a", "if a: import b"],
)
def test_only_import_statements_are_accepted(statement: str) -> None:
    source = Source(b"x = 1\n")
    with pytest.raises(ValueError, match="import statement"):
        import_splices(Outline(source, ast.parse(source.text)), [statement], ast.parse, 1)
