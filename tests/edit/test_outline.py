from __future__ import annotations

import ast
import sys
import textwrap

import pytest

from patchkit.edit.outline import HeaderError, Outline, check_header
from patchkit.edit.source import Source
from patchkit.edit.spans import Span


def outline(text: str, *, dedent: bool = True) -> Outline:
    source = Source((textwrap.dedent(text).lstrip("\n") if dedent else text).encode(), path="a.py")
    return Outline(source, ast.parse(source.text))


def texts(o: Outline, spans: list[Span]) -> list[str]:
    return [o.source.text[start:end] for start, end in spans]


def statement(o: Outline, kind: type[ast.AST], number: int = 0) -> ast.AST:
    return [node for node in o.statements() if isinstance(node, kind)][number]


def inside(o: Outline, header: str) -> list[str]:
    return texts(o, o.blocks(header, ast.parse))


def test_spans() -> None:
    assert Span(2, 5).contains(Span(2, 5))
    assert not Span(2, 5).contains(Span(2, 6))
    assert Span(2, 5).overlaps(Span(4, 9))
    assert not Span(2, 5).overlaps(Span(5, 9))
    assert Span(2, 5).overlaps(Span(3, 3))
    assert not Span(2, 5).overlaps(Span(2, 2))


# -- statements ----------------------------------------------------------------------------------------------------


def test_a_decorated_definition_starts_at_its_first_at_sign() -> None:
    o = outline(
        """
        @ (  # not @ this one
            first
        )
        @second(1)
        def f(): pass
        """
    )
    assert texts(o, [o.span(o.tree.body[0])]) == [o.source.text.rstrip("\n")]
    assert o.starts_line(o.tree.body[0])


def test_spans_count_characters_not_bytes() -> None:
    o = outline("ä = 'ö'; b = 'ü'\n")
    assert texts(o, [o.span(node) for node in o.tree.body]) == ["ä = 'ö'", "b = 'ü'"]


def test_elif_semicolon_and_header_line() -> None:
    o = outline(
        """
        if a: x = 1; y = 2
        elif b:
            z = 3
        """
    )
    first, second = statement(o, ast.If, 0), statement(o, ast.If, 1)
    assert not o.is_elif(first)
    assert o.is_elif(second)
    x, y, z = (statement(o, ast.Assign, n) for n in range(3))
    assert [o.starts_line(node) for node in (first, second, x, y, z)] == [True, True, False, False, True]
    assert [o.indent_of(node) for node in (first, x, y, z)] == ["", "", "", "    "]
    assert o.block_of(y) == ([x, y], 1, first)
    assert o.block_of(second) == ([second], 0, first)
    assert o.block_of(first) == ([first], 0, o.tree)


def test_a_statement_behind_a_multi_line_string_is_indented_like_its_line() -> None:
    o = outline('if a:\n\tx = """\n        deep"""; y = 2\n', dedent=False)
    assert o.indent_of(statement(o, ast.Assign, 1)) == "\t"
    assert not o.starts_line(statement(o, ast.Assign, 1))


def test_backslash_joined_lines() -> None:
    o = outline("if a: \\\n    x = 1\nif b:\n  \\\n      y = 2\n# not joined \\\nz = 3\n", dedent=False)
    x, y, z = (statement(o, ast.Assign, n) for n in range(3))
    assert [o.starts_line(node) for node in (x, y, z)] == [False, False, True]
    assert [o.indent_of(node) for node in (x, y, z)] == ["", "  ", ""]
    assert o.opening(x) is None
    assert o.opening(y) == o.source.text.index("  \\\n      y")


def test_form_feeds_and_tabs_are_indentation() -> None:
    o = outline("def f():\n\x0c\tx = 1\n\tif x:\n\t    y = 2\n", dedent=False)
    assert o.indent_of(statement(o, ast.Assign, 0)) == "\t"  # the form feed sets the column to 0
    assert o.indent_of(statement(o, ast.Assign, 1)) == "\t    "
    assert texts(o, o.scopes("f")) == [o.source.text]


def test_handlers_and_cases_have_spans_and_places() -> None:
    o = outline(
        """
        try:
            pass
        except (A,
                B) as e:
            pass
        match x:
            case (  # case closed
                1 | 2
            ) if y:
                z
        """
    )
    handler, case = statement(o, ast.ExceptHandler), statement(o, ast.match_case)
    assert texts(o, [o.span(handler)])[0].startswith("except (A,")
    assert texts(o, [o.span(case)])[0].startswith("case (  # case closed")
    assert texts(o, [o.span(case)])[0].endswith("z")
    assert o.block_of(case).parent is o.tree.body[1]
    assert o.indent_of(case) == "    "


def test_nodes_without_a_place_have_no_span() -> None:
    o = outline("x = 1\n")
    with pytest.raises(ValueError, match="Load has no position"):
        o.span(ast.Load())
    assert o.span(o.tree) == Span(0, 6)


def test_deep_trees_do_not_recurse() -> None:
    text = "if a0:\n    pass\n" + "".join(f"elif a{n}:\n    pass\n" for n in range(1, 400))
    source = Source(text.encode())
    tree = ast.parse("if a0:\n    pass\n")
    node = tree.body[0]
    assert isinstance(node, ast.If)
    for n in range(1, 5000):  # what a parser with a higher limit would make of 5,000 arms
        arm = ast.If(ast.Name(f"a{n}", ast.Load()), [ast.Pass()], [])
        node.orelse, node = [arm], arm
    assert len(Outline(source, tree).statements()) == 10_000


# -- scopes --------------------------------------------------------------------------------------------------------

SCOPES = '''
class A:
    """Doc."""

    @property
    def f(self):
        def g():
            pass
            # deep in g
        return g
        # of f

    # of A, below f

    if True:
        def f(self, x): return 2  # one line

    async def h(self): ...

# module comment
try:
    class A: pass
except E:
    def g(x): return 1
'''


def test_scopes() -> None:
    o = outline(SCOPES)
    assert o.qualnames() == ["A", "A.f", "A.f.g", "A.h", "g"]
    assert texts(o, o.scopes("A.f.g")) == ["        def g():\n            pass\n            # deep in g\n"]
    assert o.scopes("A.f.<locals>.g") == o.scopes("A.f.g")
    first, second = texts(o, o.scopes("A.f"))
    assert first.startswith("    @property\n    def f(self):\n")
    assert first.endswith("        return g\n        # of f\n")
    assert second == "        def f(self, x): return 2  # one line\n"
    whole, other = texts(o, o.scopes("A"))
    assert whole.startswith("class A:\n")
    assert whole.endswith("    async def h(self): ...\n")
    assert other == "    class A: pass\n"
    assert o.scopes("B") == []
    assert o.scopes("f") == []


def test_scope_at() -> None:
    o = outline(SCOPES)

    def at(needle: str) -> str:
        return o.scope_at(o.source.text.index(needle))

    assert at("@property") == "A.f"
    assert at('"""Doc') == "A"
    assert at("pass\n") == "A.f.g"
    assert at("# deep in g") == "A.f.g"
    assert at("# of f") == "A.f"
    assert at("# of A") == "A"
    assert at("if True") == "A"
    assert at("# module") == ""
    assert at("return 1") == "g"
    assert at("except E") == ""
    assert o.scope_at(len(o.source.text)) == ""


def test_scope_at_is_the_innermost_region_everywhere() -> None:
    text = (
        "import a\n\n@d(\n    1)\nclass A:\n    x = 1\n    # in A\n\n    if q:\n        def f(self):\n"
        "            try: pass\n"
        "            except E: pass\n            # in f\n        # no more\n    # in A again\n"
        "    else:\n        y = 2; z = 3\n"
        "        async def g(): pass\n            # in g\n\n    # last\n# out\nmatch q:\n    case 1:\n"
        "        def h(): return 1\n    case (\n        2\n    ):\n        class B: pass\ndef f(): pass\n  # in f"
    )
    o = outline(text)
    regions = [(region, name) for name in o.qualnames() for region in o.scopes(name)]
    for position in range(len(text)):
        around = [(end - start, name) for (start, end), name in regions if start <= position < end]
        assert o.scope_at(position) == min(around, default=(0, ""))[1], text[position:]
    assert o.scope_at(len(text)) == "f"


def test_scope_at_the_end_of_a_file_without_newline() -> None:
    o = outline("def f(): pass")
    assert o.scope_at(13) == "f"
    assert o.scopes("f") == [Span(0, 13)]


def test_a_scope_ends_before_a_comment_of_its_own_depth_and_before_code() -> None:
    o = outline("def f():\n\tpass\n\n\t# mine\n\n# not mine\n\t# not mine either\nx = 1\n", dedent=False)
    assert texts(o, o.scopes("f")) == ["def f():\n\tpass\n\n\t# mine\n"]


def test_a_scope_does_not_take_trailing_blank_lines() -> None:
    o = outline("def f():\n    pass\n\n   \n\nx = 1\n", dedent=False)
    assert texts(o, o.scopes("f")) == ["def f():\n    pass\n"]


# -- blocks --------------------------------------------------------------------------------------------------------

BLOCKS = """
if x is None:  # why: because
    a1
    a2
elif (y
      == 2):
    b
else:
    c
for i in range(3):
    d
else:
    e
while True: f; g
with open(p) as q, r:
    h
try:
    i
except (A, B) as err:
    j
except A:
    jj
else:
    k
finally:
    l
match v, w:
    case {"k": z} if z:
        m
    case _:
        n
"""


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("if x is None", ["  # why: because\n    a1\n    a2\n"]),
        ("if x is None:", ["  # why: because\n    a1\n    a2\n"]),
        ("if (x is None): ...", ["  # why: because\n    a1\n    a2\n"]),
        ("if x is not None:", []),
        ("elif y == 2:", ["\n    b\n"]),
        ("if y == 2:", []),
        ("elif x is None:", []),
        ("else:", ["\n    c\n", "\n    e\n", "\n    k\n"]),
        ("for i in range(3)", ["\n    d\n"]),
        ("async for i in range(3)", []),
        ("while True", [" f; g\n"]),
        ("with open( p ) as q, r", ["\n    h\n"]),
        ("try", ["\n    i\n"]),
        ("except (A, B) as err:", ["\n    j\n"]),
        ("except (A, B)", []),
        ("except A", ["\n    jj\n"]),
        ("finally: ...", ["\n    l\n"]),
        ("match v, w:", ['\n    case {"k": z} if z:\n        m\n    case _:\n        n\n']),
        ("match (v, w): ...", ['\n    case {"k": z} if z:\n        m\n    case _:\n        n\n']),
        ("case {'k': z} if z", ["\n        m\n"]),
        ("case _:", ["\n        n\n"]),
        ("case {'k': z}", []),
    ],
)
def test_blocks(header: str, expected: list[str]) -> None:
    assert inside(outline(BLOCKS), header) == expected


DEFINITIONS = """
@decorated({"a": 1})
def f(a: int, /, b="x:y", *c, **d) -> dict[str, "int:2"]:
    first
async def f(): second
class C(Base, metaclass=Meta):
    def f(
        self  # a colon: here
    ) :
        third
class C: fourth
"""


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("def f(...)", ["\n    first\n", "\n        third\n"]),
        ("def f(...) -> dict[str, 'int:2']: ...", ["\n    first\n"]),
        ("def f(...) -> int:", []),
        ("async def f(...):", [" second\n"]),
        ("async def f()", [" second\n"]),
        ("def f(self)", ["\n        third\n"]),
        ("def f(a: int, /, b='x:y', *c, **d) -> dict[str, 'int:2']", ["\n    first\n"]),
        ("class C", [" fourth\n"]),
        ("class C(Base, metaclass=Meta):", ["\n    def f(\n        self  # a colon: here\n    ) :\n        third\n"]),
    ],
)
def test_blocks_of_definitions(header: str, expected: list[str]) -> None:
    assert inside(outline(DEFINITIONS), header) == expected


def test_any_arguments_of_a_class() -> None:
    assert len(inside(outline(DEFINITIONS), "class C(...)")) == 2


if sys.version_info >= (3, 12):  # the running Python parses type parameters

    def test_type_parameters() -> None:
        o = outline("def f[T: (int, str)](x: T): pass\nclass C[T](Base): pass\n")
        assert inside(o, "def f(...)") == [" pass\n"]
        assert inside(o, "def f[T: (int, str)](x: T)") == [" pass\n"]
        assert inside(o, "def f(x: T)") == []
        assert inside(o, "class C[T](Base)") == [" pass\n"]
        assert texts(o, o.scopes("f")) == ["def f[T: (int, str)](x: T): pass\n"]


def test_blocks_nest_and_keep_their_order() -> None:
    o = outline("if x:\n    if x:\n        a\n    else:\n        if x: b\n", dedent=False)
    assert inside(o, "if x") == [o.source.text[5:], "\n        a\n", " b\n"]
    assert inside(o, "else") == ["\n        if x: b\n"]


def test_a_lambda_and_slices_do_not_end_a_header() -> None:
    o = outline("if lambda: 0: a\nif x[1:2]: b\nif (y := {1: 2}): c\nif lambda: ...: d\n", dedent=False)
    assert inside(o, "if lambda: 0") == [" a\n"]
    assert inside(o, "if x[1:2]:") == [" b\n"]
    assert inside(o, "if (y := {1: 2}): ...") == [" c\n"]
    assert inside(o, "if lambda: ...") == [" d\n"]


def test_the_block_of_except_star() -> None:
    o = outline("try:\n    a\nexcept* E:\n    b\ntry:\n    a\nexcept E:\n    c\n", dedent=False)
    assert inside(o, "except* E") == ["\n    b\n"]
    assert inside(o, "except E") == ["\n    c\n"]


def test_a_block_at_the_end_of_a_file_without_newline() -> None:
    assert inside(outline("if x:\n    y"), "if x") == ["\n    y"]


@pytest.mark.parametrize(
    "header",
    ["", "x = 1", "if", "if x: y", "if x: y: ...", "else if x", "else: pass", "return", "if x:\n    y\nif z:", "iffy x",
     "async if x", "except A: ...\nexcept B", "def f"],
)  # fmt: skip
def test_what_is_no_header(header: str) -> None:
    with pytest.raises(HeaderError, match=r"header|colon"):
        outline("if x: y\n").blocks(header, ast.parse)


# -- metavariables -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("if $X is None:", ["  # why: because\n    a1\n    a2\n"]),
        ("if $_", ["  # why: because\n    a1\n    a2\n"]),
        ("elif $X == $X", []),
        ("elif $X == $Y: ...", ["\n    b\n"]),
        ("for $I in range($$$):", ["\n    d\n"]),
        ("with open($$$) as $F, $_", ["\n    h\n"]),
        ("except $E as $N", ["\n    j\n"]),
        ("except $E", ["\n    jj\n"]),
        ("match $A, $B", ['\n    case {"k": z} if z:\n        m\n    case _:\n        n\n']),
        ("case $P if $C", ["\n        m\n"]),
        ("while '$X'", []),
    ],
)
def test_metavariables_in_headers(header: str, expected: list[str]) -> None:
    assert inside(outline(BLOCKS), header) == expected


@pytest.mark.parametrize(
    ("header", "count"),
    [
        ("def $F(...)", 2),
        ("async def $F(...):", 1),
        ("def f($$$) -> $R", 1),
        ("def f(...) -> dict[$_, $_]", 1),
        ("def f($A)", 1),
        ("class C($$$)", 2),
        ("class $C(...)", 2),
        ("class $C", 1),
        ("class C($B, metaclass=$M)", 1),
    ],
)
def test_metavariables_in_headers_of_definitions(header: str, count: int) -> None:
    assert len(inside(outline(DEFINITIONS), header)) == count


def test_a_dollar_sign_in_a_string_is_no_metavariable() -> None:
    o = outline("if x == '$Y': a\nif x == 'z': b\n")
    assert inside(o, "if x == '$Y'") == [" a\n"]


def test_headers_are_checked_without_a_file() -> None:
    check_header("if $X:", ast.parse)
    check_header("else", ast.parse)
    with pytest.raises(HeaderError, match="header"):
        check_header("x = $Y", ast.parse)
    with pytest.raises(HeaderError, match=r"with \$1"):
        check_header("with $1", ast.parse)


def test_trees_of_another_python_have_classes_of_their_own() -> None:
    def parse(text: str) -> ast.Module:
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if type(node) in (ast.If, ast.FunctionDef):
                node.__class__ = type(type(node).__name__, (type(node),), {"_fields": (*node._fields, "more")})
        return tree

    source = Source(b"def f(a):\n    if a: b\n")
    o = Outline(source, parse(source.text))
    assert texts(o, o.blocks("if a", parse)) == [" b\n"]
    assert texts(o, o.blocks("def f(a)", parse)) == ["\n    if a: b\n"]
    assert o.qualnames() == ["f"]


@pytest.mark.parametrize("header", ["if a == 1.0", "if b:", "if $X == 1.0", "elif c", "if a == 1"])
def test_a_header_asked_for_again_is_the_same(header: str) -> None:
    text = "if a == 1.0: x\nif b: y\nelif c: z\nif ( a==\n 1.0): v\nif a == 1: w\n"
    first = outline(text).blocks(header, ast.parse)
    again = outline(text)
    again.blocks("if b", ast.parse)
    again.blocks("elif b", ast.parse)
    assert first
    assert again.blocks(header, ast.parse) == first
    assert again.blocks(header, ast.parse) == first
