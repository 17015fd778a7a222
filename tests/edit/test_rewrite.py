"""Before/after pairs, each written by hand from DESIGN section 3; every one is also proved by rewrite_text itself."""

# ruff: noqa: E501 (a case to a line)

from __future__ import annotations

import ast
import sys
from textwrap import dedent
from typing import Any

import pytest
from support.rewriting import rewrite_text

from patchkit.errors import PlanError

Case = tuple[str, str, str, str, str, str]

EXPRESSIONS: list[Case] = [
    ("argument order", "x = f(a, b)\n", "f($X, $Y)", "replace", "g($Y, $X)", "x = g(b, a)\n"),
    ("bytes of captures stay", "x = f( 'a',b  [ 0 ])\n", "f($X, $Y)", "replace", "g($Y, $X)", "x = g(b  [ 0 ], 'a')\n"),
    ("comments outside stay", "x = f(a)  # why\n", "f($X)", "replace", "g($X)", "x = g(a)  # why\n"),
    ("looser capture", "y = f(a + b)\n", "f($X)", "replace", "$X * 2", "y = (a + b) * 2\n"),
    ("equal capture needs none", "y = f(a * b)\n", "f($X)", "replace", "$X * 2", "y = a * b * 2\n"),
    ("right operand needs some", "y = f(a * b)\n", "f($X)", "replace", "2 * $X", "y = 2 * (a * b)\n"),
    ("tighter capture", "y = f(a.b)\n", "f($X)", "replace", "-$X", "y = -a.b\n"),
    ("attribute of a sum", "y = f(a + b)\n", "f($X)", "replace", "$X.sum()", "y = (a + b).sum()\n"),
    ("attribute of a number", "y = f(1)\n", "f($X)", "replace", "$X.real", "y = (1).real\n"),
    ("replacement in a tighter place", "y = -f(a)\n", "f($X)", "replace", "$X + 2", "y = -(a + 2)\n"),
    ("replacement in a call", "y = g(f(a))\n", "f($X)", "replace", "$X + 2", "y = g(a + 2)\n"),
    ("ternary at the top", "y = f(a)\n", "f($X)", "replace", "$X if q else 2", "y = a if q else 2\n"),
    ("ternary in a sum", "y = f(a) + 1\n", "f($X)", "replace", "$X if q else 2", "y = (a if q else 2) + 1\n"),
    ("lambda", "y = f(a) or b\n", "f($X)", "replace", "lambda: $X", "y = (lambda: a) or b\n"),
    ("parentheses that are there serve", "y = (f(a)) * 3\n", "f($X)", "replace", "$X + 2", "y = (a + 2) * 3\n"),
    ("redundant ones do not matter", "y = f(((a)))\n", "f($X)", "replace", "g($X)", "y = g(a)\n"),
    ("keyword next to the match", "return(a, b)\n", "(a, b)", "replace", "c", "return(c)\n"),
    ("string next to a keyword", 'return"a"\n', '"a"', "replace", "b", "return(b)\n"),
    ("tuple without parentheses", "y = a, b\n", "y = $X", "replace", "y = f($X)", "y = f((a, b))\n"),
    ("tuple stays bare", "y = a, b\n", "y = $X", "replace", "z = $X", "z = a, b\n"),
    ("shared generator", "y = f(x for x in z)\n", "f($X)", "replace", "g($X)", "y = g(x for x in z)\n"),
    ("shared generator, two arguments", "y = f(x for x in z)\n", "f($X)", "replace", "g($X, 1)", "y = g((x for x in z), 1)\n"),
    ("replacing a shared generator", "y = f(x for x in z)\n", "($X for $X in z)", "replace", "list(z)", "y = f(list(z))\n"),
    ("own generator keeps its own", "y = (x for x in z)\n", "y = $X", "replace", "y = list($X)", "y = list((x for x in z))\n"),
    ("yield", "y = yield a\n", "y = $X", "replace", "y = f($X)", "y = f((yield a))\n"),
    ("await", "async def f():\n    y = g(await a)\n", "g($X)", "replace", "$X ** 2", "async def f():\n    y = await a ** 2\n"),
    ("walrus", "g(a := 1)\n", "g($X)", "replace", "h($X + 1)", "h((a := 1) + 1)\n"),
    ("walrus in a pattern", "if (a := f(b)): pass\n", "($N := f($X))", "replace", "($N := g($X))", "if ((a := g(b))): pass\n"),
    ("a comment does not swallow the rest of the line", "a; f(b); c\n", "f($X)", "replace", "g($X)  # why", "a; (g(b)  # why\n); c\n"),
    ("starred argument", "f(*a)\n", "f($X)", "replace", "g(1, $X)", "g(1, *a)\n"),
    ("keyword argument as argument", "f(k=1)\n", "f($X)", "replace", "g(1, $X)", "g(1, k=1)\n"),
    ("double-star argument", "f(**k)\n", "f($X)", "replace", "g(1, $X)", "g(1, **k)\n"),
    ("arguments around a keyword", "f(a, k=1, *b)\n", "f($$$A, k=$V, $$$B)", "replace", "g($$$A, $$$B, k=$V)", "g(a, *b, k=1)\n"),
    ("empty arguments leave no comma", "f(k=1)\n", "f($$$A, k=$V, $$$B)", "replace", "g($$$A, k=$V, $$$B, z=0)", "g(k=1, z=0)\n"),
    ("empty at the end", "f(k=1)\n", "f(k=$V, $$$B)", "replace", "g(k=$V, $$$B)", "g(k=1)\n"),
    ("only empty", "f()\n", "f($$$A)", "replace", "g($$$A)", "g()\n"),
    (
        "arguments keep comments and lines",
        "f(a,  # first\n  b,\n  k=1)\n",
        "f($$$A, k=$V)",
        "replace",
        "g($V, $$$A)",
        "g(1, a,  # first\n  b)\n",
    ),
    ("parenthesised arguments", "f((a), (b))\n", "f($$$A)", "replace", "g($$$A, c)", "g((a), (b), c)\n"),
    ("keyword by any name", "f(a, k=v)\n", "f($$$A, $K=$V)", "replace", "f($$$A, $K=g($V))", "f(a, k=g(v))\n"),
    ("call of anything", "a.b(c)(d)\n", "$F(c)(d)", "replace", "$F(d)", "a.b(d)\n"),
    ("dict items", "x = {**a, 'k': 1}\n", "{$$$A, 'k': $V}", "replace", "{$$$A, 'k': $V + 1}", "x = {**a, 'k': 1 + 1}\n"),
    ("any dict", "x = {'a': 1}\n", "x = {$$$A}", "replace", "x = {'b': 2, $$$A}", "x = {'b': 2, 'a': 1}\n"),
    ("empty dict", "x = {}\n", "x = {$$$A}", "replace", "x = {'b': 2, $$$A}", "x = {'b': 2}\n"),
    ("double-star item", "x = {**a}\n", "{**$X}", "replace", "dict($X)", "x = dict(a)\n"),
    ("list elements", "x = [a, b, c]\n", "[$X, $$$R]", "replace", "[$$$R, $X]", "x = [b, c, a]\n"),
    ("tuple elements", "a, b, c = x\n", "a, $$$R = x", "replace", "$$$R, a = x", "b, c, a = x\n"),
    ("set elements", "x = {a, b}\n", "{a, $$$R}", "replace", "{$$$R, z}", "x = {b, z}\n"),
    ("subscript", "x[a, b]\n", "x[$$$I]", "replace", "y[0, $$$I]", "y[0, a, b]\n"),
    ("slice", "x[a:b]\n", "x[$A:$B]", "replace", "x[$B:$A]", "x[b:a]\n"),
    ("comparison chain", "a < b <= c\n", "$A < $B <= $C", "replace", "$C > $A", "c > a\n"),
    ("operands", "a and b and c\n", "a and $$$R", "replace", "$$$R and a", "b and c and a\n"),
    ("no operand left", "x = a and b\n", "a and b and $$$R", "replace", "q and $$$R", ""),
    ("lambda parameters", "f = lambda a, *b, c=1: d\n", "lambda $$$P: $B", "replace", "lambda $$$P, z=0: g($B)", "f = lambda a, *b, c=1, z=0: g(d)\n"),
    ("one name, attribute and value", "self.k = k\n", "self.$N = $N", "replace", "self.$N = f($N)", "self.k = f(k)\n"),
    ("attribute name", "a.foo(1)\n", "$X.$N(1)", "replace", "getattr($X, n).$N(2)", "getattr(a, n).foo(2)\n"),
    ("f-string field", "s = f'{a} {b!r:>3}'\n", "b", "replace", "c", "s = f'{a} {c!r:>3}'\n"),
    ("pattern with an f-string", "s = f'{a}!'\n", "f'{$X}!'", "replace", "f'{$X}?'", "s = f'{a}?'\n"),
    ("dollar in strings is text", "s = '$X'\n", "'$X'", "replace", "'$Y'", "s = '$Y'\n"),
    ("lambda in an f-string", "s = f'{a}'\n", "a", "replace", "lambda: b", "s = f'{(lambda: b)}'\n"),
    ("dict in an f-string", "s = f'{a}'\n", "a", "replace", "{b: c}", "s = f'{({b: c})}'\n"),
    ("in a decorator", "@f(a)\ndef g(): pass\n", "f($X)", "replace", "h($X)", "@h(a)\ndef g(): pass\n"),
    ("in a header", "for x in f(a):\n    y\n", "f($X)", "replace", "$X + 1", "for x in a + 1:\n    y\n"),
    ("in an elif", "if a: pass\nelif f(b): pass\n", "f($X)", "replace", "not $X", "if a: pass\nelif not b: pass\n"),
    ("in an except", "try: pass\nexcept f(b): pass\n", "f($X)", "replace", "($X, c)", "try: pass\nexcept (b, c): pass\n"),
    ("in a case guard", "match a:\n    case 1 if f(b): pass\n", "f($X)", "replace", "g($X)", "match a:\n    case 1 if g(b): pass\n"),
    ("in a match subject", "match f(b):\n    case 1: pass\n", "f($X)", "replace", "g($X)", "match g(b):\n    case 1: pass\n"),
    ("in an inner decorator", "class A:\n    @f(a)\n    @b\n    def g(self): pass\n", "f($X)", "replace", "h($X)", "class A:\n    @h(a)\n    @b\n    def g(self): pass\n"),
    ("several lines need parentheses", "y = f((a +\n     b))\n", "f($X)", "replace", "$X", "y = (a +\n     b)\n"),
    ("several lines within brackets", "y = g(f((a +\n     b)))\n", "f($X)", "replace", "$X", "y = g(a +\n     b)\n"),
    (
        "template over several lines",
        "if a:\n    y = f(b)\n",
        "f($X)",
        "replace",
        "g(\n    $X,\n)",
        "if a:\n    y = g(\n        b,\n    )\n",
    ),
    ("template over several lines, bare", "y = f(b)\n", "f($X)", "replace", "$X +\n1", "y = (b +\n1)\n"),
    ("wrap an expression", "y = f(b) + 1\n", "f($X)", "wrap", "g($$$BODY)", "y = g(f(b)) + 1\n"),
    ("wrap in a sum", "y = a + b\n", "a + b", "wrap", "$$$BODY * 2", "y = (a + b) * 2\n"),
    ("store context", "x.a = 1\n", "x.a", "replace", "x.b", "x.b = 1\n"),
    ("non-ASCII before the match", "s = 'äöü€'; y = f(ä)\n", "f($X)", "replace", "g($X)", "s = 'äöü€'; y = g(ä)\n"),
    ("every match", "f(a) + f(b)\n", "f($X)", "replace", "g($X)", "g(a) + g(b)\n"),
    ("type hints", "def f(a: T[int]) -> T[str]: ...\n", "T[$X]", "replace", "U[$X]", "def f(a: U[int]) -> U[str]: ...\n"),
]  # fmt: skip

STATEMENTS: list[Case] = [
    (
        "the design's example",
        "class A:\n    def f(self):\n        logits = logits.astype(jnp.float32)\n",
        "$L = $L.astype(jnp.float32)",
        "replace",
        "if tpu_sampling_metadata.do_sampling:\n    $L = $L.astype(jnp.float32)\n",
        "class A:\n    def f(self):\n        if tpu_sampling_metadata.do_sampling:\n"
        "            logits = logits.astype(jnp.float32)\n",
    ),
    ("two-space files", "def f():\n  x = 1\n", "x = $V", "replace", "if a:\n    x = $V\n", "def f():\n  if a:\n    x = 1\n"),
    ("tabs", "def f():\n\tx = 1\n", "x = $V", "replace", "if a:\n    if b:\n        x = $V", "def f():\n\tif a:\n\t\tif b:\n\t\t\tx = 1\n"),
    ("unit of the file at module level", "x = 1\nif q:\n   y\n", "x = $V", "replace", "if a:\n    x = $V", "if a:\n   x = 1\nif q:\n   y\n"),
    ("unit of the template", "x = 1\n", "x = $V", "replace", "if a:\n  x = $V", "if a:\n  x = 1\n"),
    ("mixed indentation: the block's own", "if a:\n\tx = 1\nif b:\n    y\nif c:\n    z\n", "x = 1", "replace", "if q:\n    x", "if a:\n\tif q:\n\t\tx\nif b:\n    y\nif c:\n    z\n"),
    ("template indentation is dropped", "x = 1\n", "x = 1", "replace", "    y = 1\n    z = 2\n", "y = 1\nz = 2\n"),
    ("trailing comment stays", "x = 1  # why\n", "x = 1", "replace", "y = 1\nz = 2", "y = 1\nz = 2  # why\n"),
    ("string lines keep their bytes", 'def f():\n    x\n', "x", "replace", 's = """a\n  b\nc"""\ny', 'def f():\n    s = """a\n  b\nc"""\n    y\n'),
    ("continuation lines move along", "def f():\n    x\n", "x", "replace", "y = g(\n    1,\n)\nz", "def f():\n    y = g(\n        1,\n    )\n    z\n"),
    ("comments in the template", "def f():\n    x\n", "x", "replace", "# one\ny\n# two\nz", "def f():\n    # one\n    y\n    # two\n    z\n"),
    ("blank lines in the template", "def f():\n    x\n", "x", "replace", "y\n\nz", "def f():\n    y\n\n    z\n"),
    ("run of statements", "a = 1\nb = 2\nc = 3\n", "a = $A\nb = $B", "replace", "b, a = $B, $A", "b, a = 2, 1\nc = 3\n"),
    ("run with anything between", "a()\nx\ny\nb()\nz\n", "a()\n$$$M\nb()", "replace", "with q():\n    $$$M", "with q():\n    x\n    y\nz\n"),
    ("run with nothing between", "a()\nb()\n", "a()\n$$$M\nb()", "replace", "c()\n$$$M\nd()", "c()\nd()\n"),
    ("nothing left in a block", "a()\nb()\n", "a()\n$$$M\nb()", "replace", "if q:\n    $$$M", "if q:\n    pass\n"),
    (
        "captured block keeps comments and shape",
        "if a:\n    # one\n    x = f(1,\n          2)  # two\n\n    # three\n    y = '''\n  z'''\n    # four\nw\n",
        "if a:\n    $$$B",
        "replace",
        "with q:\n    if a:\n        $$$B",
        "with q:\n    if a:\n        # one\n        x = f(1,\n              2)  # two\n\n        # three\n        y = '''\n  z'''\n        # four\nw\n",
    ),
    ("block moved outwards", "if a:\n    # c\n    x\n    if b:\n        y\n", "if a:\n    $$$B", "replace", "$$$B", "# c\nx\nif b:\n    y\n"),
    ("one-line block captured", "if a: x; y  # c\n", "if a: $$$B", "replace", "if b:\n    $$$B", "if b:\n    x; y  # c\n"),
    ("body on the header's line in the template", "if a:\n    x\n    y\n", "if a: $$$B", "replace", "if b: $$$B", "if b:\n    x\n    y\n"),
    ("inline suite becomes several", "if a: x = 1  # c\n", "x = 1", "replace", "x = 1\ny = 2", "if a:\n    x = 1\n    y = 2  # c\n"),
    ("inline suite becomes compound", "def f():\n\tif a: x\n", "x", "replace", "if b: y", "def f():\n\tif a:\n\t\tif b: y\n"),
    ("inline suite stays inline", "if a: x  # c\n", "x", "replace", "y = 1", "if a: y = 1  # c\n"),
    ("inline suite of several", "if a: x; y; z\n", "y", "replace", "if b:\n    y", "if a:\n    x\n    if b:\n        y\n    z\n"),
    ("inline else", "if a: x\nelse: y\n", "y", "replace", "for b in c:\n    y", "if a: x\nelse:\n    for b in c:\n        y\n"),
    ("inline class", "class A: x = 1\n", "x = 1", "replace", "x = 1\ny = 2", "class A:\n    x = 1\n    y = 2\n"),
    ("inline case", "match a:\n    case _: x\n", "x", "replace", "x\ny", "match a:\n    case _:\n        x\n        y\n"),
    ("inline try and finally", "try: x\nfinally: y\n", "y", "replace", "y\nz", "try: x\nfinally:\n    y\n    z\n"),
    ("inline except", "try: x\nexcept E: y\n", "y", "replace", "y\nz", "try: x\nexcept E:\n    y\n    z\n"),
    ("inline with lambda and slice in the header", "if f(lambda q: a[1:2]): x\n", "x", "replace", "x\ny", "if f(lambda q: a[1:2]):\n    x\n    y\n"),
    ("inline def", "def f(a: int = 1) -> int: return a\n", "return a", "replace", "b = a\nreturn b", "def f(a: int = 1) -> int:\n    b = a\n    return b\n"),
    ("semicolons stay", "a; b; c  # d\n", "b", "replace", "d\ne", "a; d; e; c  # d\n"),
    ("semicolons break", "def f():\n    a; b; c  # d\n", "b", "replace", "if q:\n    b", "def f():\n    a\n    if q:\n        b\n    c  # d\n"),
    ("first of a shared line", "a; b\n", "a", "replace", "if q:\n    a", "if q:\n    a\nb\n"),
    ("last of a shared line", "a; b  # c\n", "b", "replace", "if q:\n    b", "a\nif q:\n    b  # c\n"),
    ("insert before", "def f():\n    x  # c\n", "x", "insert_before", "y\nz\n", "def f():\n    y\n    z\n    x  # c\n"),
    ("insert after", "def f():\n    x  # c\n    w\n", "x", "insert_after", "y\nz", "def f():\n    x  # c\n    y\n    z\n    w\n"),
    ("insert after the last line", "x", "x", "insert_after", "y", "x\ny"),
    ("insert keeps blank lines", "x\ny\n", "x", "insert_after", "\nz\n\n", "x\n\nz\n\ny\n"),
    ("insert below a comment above", "# c\nx\n", "x", "insert_before", "y", "# c\ny\nx\n"),
    ("insert after a block", "if a:\n    x\n    # c\n# d\ny\n", "if a: $$$", "insert_after", "z", "if a:\n    x\n    # c\nz\n# d\ny\n"),
    ("insert after a whole chain", "if a:\n    x\nelse:\n    w\ny\n", "if a: $$$\nelse: $$$", "insert_after", "z", "if a:\n    x\nelse:\n    w\nz\ny\n"),
    ("insert before a decorated def", "@d\ndef f(): pass\n", "def f(): $$$", "insert_before", "x = 1\n\n", "x = 1\n\n@d\ndef f(): pass\n"),
    ("insert after a def", "def f(): pass\nx\n", "def f(): $$$", "insert_after", "\ndef g(): pass\n", "def f(): pass\n\ndef g(): pass\nx\n"),
    ("insert on a shared line", "a; b; c\n", "b", "insert_after", "x", "a; b; x; c\n"),
    ("insert before on a shared line", "a; b\n", "b", "insert_before", "x", "a; x; b\n"),
    ("insert a block on a shared line", "a; b\n", "a", "insert_after", "if q: x", "a\nif q: x\nb\n"),
    ("insert before into an inline suite", "if a: x  # c\n", "x", "insert_before", "y", "if a:\n    y\n    x  # c\n"),
    ("insert after into an inline suite", "if a: x  # c\n", "x", "insert_after", "y", "if a:\n    x  # c\n    y\n"),
    ("insert between inline statements", "if a: x; y\n", "x", "insert_after", "z", "if a:\n    x\n    z\n    y\n"),
    ("delete", "x\ny  # c\nz\n", "y", "delete", "", "x\nz\n"),
    ("delete over several lines", "x\nf(\n  1,\n)  # c\nz\n", "f(1)", "delete", "", "x\nz\n"),
    ("delete keeps comments above", "x\n# c\ny\n", "y", "delete", "", "x\n# c\n"),
    ("delete the last of a block", "if a:\n\tx  # c\n", "x", "delete", "", "if a:\n\tpass  # c\n"),
    ("delete an inline suite", "if a: x\n", "x", "delete", "", "if a: pass\n"),
    ("delete the middle", "a; b; c\n", "b", "delete", "", "a; c\n"),
    ("delete the first", "  \na; b; c\n", "a", "delete", "", "  \nb; c\n"),
    ("delete the last", "a; b; c  # d\n", "c", "delete", "", "a; b  # d\n"),
    ("delete of an inline several", "if a: x; y\n", "x", "delete", "", "if a: y\n"),
    ("delete a run", "a\nb\nc\n", "a\nb", "delete", "", "c\n"),
    ("delete a decorated def", "@d\n@e\ndef f():\n    pass\nx\n", "def f(): $$$", "delete", "", "x\n"),
    ("delete everything", "x\n", "x", "delete", "", ""),
    ("replace with nothing", "x\ny\n", "x", "replace", "", "y\n"),
    ("replace with a comment", "x\ny\n", "x", "replace", "# gone", "# gone\ny\n"),
    ("replace a block with a comment", "if a:\n    x\n", "x", "replace", "# gone", "if a:\n    # gone\n    pass\n"),
    ("wrap", "x = 1  # c\n", "x = 1", "wrap", "try:\n    $$$BODY\nexcept E:\n    pass", "try:\n    x = 1  # c\nexcept E:\n    pass\n"),
    ("wrap several in two spaces", "def f():\n  a\n  b(\n    1)\n  c\n", "a\nb(1)", "wrap", "with q:\n    $$$BODY", "def f():\n  with q:\n    a\n    b(\n      1)\n  c\n"),
    ("wrap a block", "if a:\n\tx\n", "if a: $$$B", "wrap", "try:\n    $$$BODY\nfinally:\n    done()", "try:\n\tif a:\n\t\tx\nfinally:\n\tdone()\n"),
    ("wrap a decorated def", "@d\ndef f(): pass\n", "def f(): $$$", "wrap", "if q:\n    $$$BODY", "if q:\n    @d\n    def f(): pass\n"),
    ("wrap within a shared line", "a; b; c\n", "b", "wrap", "if q:\n    $$$BODY", "a\nif q:\n    b\nc\n"),
    ("wrap an inline suite", "if a: x\n", "x", "wrap", "if q:\n    $$$BODY", "if a:\n    if q:\n        x\n"),
    ("wrap an expression statement", "f(a)\n", "f($X)", "wrap", "if $X:\n    $$$BODY", "if a:\n    f(a)\n"),
    ("elif replaced by an if", "if a:\n  x\nelif b:\n  y\nelse:\n  z\n", "if b: $$$A\nelse: $$$B", "replace", "if c and b:\n    $$$A\nelse:\n    $$$B", "if a:\n  x\nelif c and b:\n  y\nelse:\n  z\n"),
    ("elif replaced by others", "if a:\n  x\nelif b:\n  y\n", "if b: $$$A", "replace", "$$$A\nfoo()", "if a:\n  x\nelse:\n  y\n  foo()\n"),
    ("elif deleted", "if a:\n  x\nelif b:\n  y  # c\nz\n", "if b: $$$A", "delete", "", "if a:\n  x\nz\n"),
    ("elif chain captured by else", "if a:\n  x\nelif b:\n  y\n", "if a: $$$A\nelse: $$$B", "replace", "$$$B", "if b:\n  y\n"),
    ("else with an if stays", "if a:\n    x\nelse:\n    if b:\n        y\n", "if b: $$$A", "replace", "if c: $$$A", "if a:\n    x\nelse:\n    if c:\n        y\n"),
    ("decorators stay", "@d\ndef f(a): pass\n", "def f($$$A): $$$B", "replace", "def f($$$A, b=1):\n    $$$B", "@d\ndef f(a, b=1):\n    pass\n"),
    ("decorators captured", "@d\n@e(1)\ndef f(): pass\n", "@$$$D\ndef f(): $$$B", "replace", "@new\n@$$$D\ndef f():\n    $$$B", "@new\n@d\n@e(1)\ndef f():\n    pass\n"),
    ("no decorators captured", "def f(): pass\n", "@$$$D\ndef f(): $$$B", "replace", "@new\n@$$$D\ndef f():\n    $$$B", "@new\ndef f():\n    pass\n"),
    ("parameters", "def f(a, /, b=(1), *, c: int, **k): pass\n", "def f($A, $$$P): $$$B", "replace", "def f($$$P): $$$B", ""),
    ("parameters around a name", "def f(self, a=1, *r, b=2, **k):\n    x\n", "def f($$$A, b=$D, $$$B): $$$C", "replace", "def f($$$A, c=$D, $$$B):\n    $$$C", "def f(self, a=1, *r, c=2, **k):\n    x\n"),
    ("one parameter with everything", "def f(a: int = 1, *b): pass\n", "def f($P, *b): pass", "replace", "def f(z, $P): pass", "def f(z, a: int = 1): pass\n"),
    ("parameter behind a default", "def f(a=1, b=2): pass\n", "def f(a=1, $$$P): pass", "replace", "def f(c=0, $$$P): pass", "def f(c=0, b=2): pass\n"),
    ("parameter by annotation", "def f(a: int): pass\n", "def f($N: int): pass", "replace", "def f($N: str): pass", "def f(a: str): pass\n"),
    ("function name and recursion", "def f(n):\n    return f(n - 1)\n", "def $F($N):\n    return $F($$$A)", "replace", "def $F($N):\n    return $N and $F($$$A)", "def f(n):\n    return n and f(n - 1)\n"),
    ("class with bases", "class A(B, metaclass=M):\n    x\n", "class A($$$B): $$$C", "replace", "class A(Z, $$$B):\n    $$$C", "class A(Z, B, metaclass=M):\n    x\n"),
    ("class without bases", "class A:\n    x\n", "class A($$$B): $$$C", "replace", "class A(Z, $$$B):\n    $$$C", "class A(Z):\n    x\n"),
    ("import", "import a.b as c\n", "import $M as $N", "replace", "import $M\n$N = 1", "import a.b\nc = 1\n"),
    ("from import", "from a.b import c, d as e\n", "from $M.b import $$$N", "replace", "from $M.z import $$$N, f", "from a.z import c, d as e, f\n"),
    ("relative import", "from ..a import b\n", "from ..$M import $N", "replace", "from .$M import $N", "from .a import b\n"),
    ("global", "def f():\n    global a, b\n", "global $$$N", "replace", "global z, $$$N", "def f():\n    global z, a, b\n"),
    ("with items", "with a as b, c:\n    x\n", "with $$$I, c: $$$B", "replace", "with $$$I:\n    $$$B", "with a as b:\n    x\n"),
    ("except handler", "try:\n    x\nexcept E as e:\n    y\n", "try: $$$A\nexcept E as $N: $$$B", "replace", "try:\n    $$$A\nexcept (E, F) as $N:\n    $$$B", "try:\n    x\nexcept (E, F) as e:\n    y\n"),
    ("match cases", "match a:\n    case [b, *_]: x\n    case _: y\n", "match a:\n    $$$C", "replace", "match z:\n    case 0: q\n    $$$C", "match z:\n    case 0: q\n    case [b, *_]: x\n    case _: y\n"),
    ("match pattern", "match a:\n    case P(1, k=c): x\n", "match a:\n    case P($$$A, k=$N): $$$B", "replace", "match a:\n    case Q($$$A, k=$N, z=0):\n        $$$B", "match a:\n    case Q(1, k=c, z=0):\n        x\n"),
    ("match mapping", "match a:\n    case {'k': 1, **r}: x\n", "match a:\n    case {'k': $P, $$$R}: $$$B", "replace", "match a:\n    case {'j': $P, $$$R}: $$$B", "match a:\n    case {'j': 1, **r}:\n        x\n"),
    ("targets", "a = b = c\n", "$$$T = c", "replace", "$$$T = d", "a = b = d\n"),
    ("augmented", "a += 1\n", "$X += 1", "replace", "$X -= 1", "a -= 1\n"),
    ("annotated", "a: int = 1\n", "$X: int = $V", "replace", "$X: float = $V", "a: float = 1\n"),
    ("async", "async def f():\n    async for a in b: c\n", "async for $A in $B: $$$C", "replace", "async for $A in g($B):\n    $$$C", "async def f():\n    async for a in g(b):\n        c\n"),
    ("while with else", "while a:\n    x\nelse:\n    y\n", "while a: $$$A\nelse: $$$B", "replace", "while b:\n    $$$A\nelse:\n    $$$B", "while b:\n    x\nelse:\n    y\n"),
    ("return of nothing is no return of something", "def f():\n    return\n    return a\n", "return $X", "replace", "return f($X)", "def f():\n    return\n    return f(a)\n"),
    ("backslash continuation", "def f():\n    x = a + \\\n        b\n", "x = $V", "replace", "if q:\n    x = $V", "def f():\n    if q:\n        x = a + \\\n        b\n"),
    ("comment-only tail of the template", "x  # c\n", "x", "replace", "y  # d", "y  # d  # c\n"),
    ("form feed before a def", "x\n\f\ndef f(): pass\n", "x", "delete", "", "\f\ndef f(): pass\n"),
]  # fmt: skip

PEP_695: list[Case] = [
    ("type parameters", "def f[T: int, *S](a: T): pass\n", "def f[$$$T]($$$P): $$$B", "replace", "def f[$$$T, U]($$$P):\n    $$$B", "def f[T: int, *S, U](a: T):\n    pass\n"),
    ("class type parameter", "class A[T](B): pass\n", "class A[$T]($$$B): pass", "replace", "class A[$T, U]($$$B): pass", "class A[T, U](B): pass\n"),
    ("type alias", "type A[T] = list[T]\n", "type $A[$$$P] = $V", "replace", "type $A[$$$P] = set[$V]", "type A[T] = set[list[T]]\n"),
    ("nested quotes in an f-string", "s = f'{a}'\n", "a", "replace", "d['k']", "s = f'{d['k']}'\n"),
    ("f-string over lines", "s = f'''\n{a\n + b}'''\n", "a + $X", "replace", "$X", "s = f'''\n{b}'''\n"),
]  # fmt: skip

REFUSED: list[tuple[str, str, str, str, str, str]] = [
    ("unbound", "f(a)\n", "f($LOGITS)", "replace", "g($LOGIT)", "did you mean \\$LOGITS"),
    ("one for many", "f(a)\n", "f($$$A)", "replace", "g($A)", "binds \\$\\$\\$A"),
    ("unnamed", "f(a)\n", "f($_)", "replace", "g($_)", "captures nothing"),
    ("does not parse", "f(a)\n", "f($X)", "replace", "g($X", "parse"),
    ("wrap without body", "f(a)\n", "f($X)", "wrap", "g($X)", "no \\$\\$\\$BODY"),
    ("insert at a part", "x = f(a)\n", "f($X)", "insert_after", "g()", "`\\$_ = ...`|expression within a statement"),
    ("statement for a part", "x = f(a)\n", "f($X)", "replace", "y = 1", "expression within a statement"),
    ("delete a part", "return f(a)\n", "f($X)", "delete", "", "expression within a statement"),
    ("insert at elif", "if a: x\nelif b: y\n", "if b: $$$", "insert_before", "z", "`elif` arm"),
    ("wrap an elif", "if a: x\nelif b: y\n", "if b: $$$", "wrap", "with q:\n    $$$BODY", "`elif` arm"),
    ("quotes in an f-string", "s = f'{a}'\n", "a", "replace", "'b' if c else \\\n  d", "f-string|fit"),
    ("keyword where an expression is", "f(k=1)\n", "f($X)", "replace", "x = $X", "as an expression"),
    ("parameters as arguments", "def f(a: int): pass\n", "def f($$$A): pass", "replace", "g($$$A)", "as arguments"),
    ("expression as a name", "a.b(c.d())\n", "a.b($X)", "replace", "a.$X()", "as a name"),
    ("decorators without a def", "@d\ndef f(): pass\n", "def f(): $$$", "replace", "f = 1", "decorators"),
    ("statements as arguments", "if a: x\n", "if a: $$$B", "replace", "f($$$B)", "as arguments"),
    ("debug f-string", "s = f'{a=}'\n", "a", "replace", "b", "f-string|fit"),
]  # fmt: skip


def run(before: str, pattern: str, action: Any, template: str) -> str:
    return rewrite_text(before, pattern, action, template, ast.parse)


@pytest.mark.parametrize("case", [c for c in EXPRESSIONS if c[5]], ids=lambda case: case[0])
def test_expressions(case: Case) -> None:
    _, before, pattern, action, template, after = case
    assert run(before, pattern, action, template) == after


@pytest.mark.parametrize("case", [c for c in STATEMENTS if c[5] or c[3] == "delete"], ids=lambda case: case[0])
def test_statements(case: Case) -> None:
    _, before, pattern, action, template, after = case
    assert run(before, pattern, action, template) == after


if sys.version_info >= (3, 12):  # the running Python parses type parameters

    @pytest.mark.parametrize("case", PEP_695, ids=lambda case: case[0])
    def test_syntax_of_312(case: Case) -> None:
        _, before, pattern, action, template, after = case
        assert run(before, pattern, action, template) == after


# From 3.12 on, any code may stand in an f-string.
@pytest.mark.parametrize(
    "case", [c for c in REFUSED if "quotes" not in c[0] or sys.version_info < (3, 12)], ids=lambda case: case[0]
)
def test_refused(case: tuple[str, str, str, str, str, str]) -> None:
    _, before, pattern, action, template, message = case
    with pytest.raises(PlanError, match=message) as caught:
        run(before, pattern, action, template)
    assert caught.value.hint


def test_an_error_names_the_statement_form() -> None:
    with pytest.raises(PlanError) as caught:
        run("x = f(a)\n", "f($X)", "insert_after", "g()")
    assert "`$_ = ...`" in (caught.value.hint or "")


def test_before_may_be_indented() -> None:
    before = "    x = f(1)\n    y\n"
    assert run(before, "f($X)", "replace", "g($X)") == dedent("    x = g(1)\n    y\n")


FF = "x = 1\n\fdef f():\n    y = 1\n\fz = 2\n"

# A form feed sets the column to 0 (Python reference, 2.1.8): it is no indentation, and no part of a statement.
FORM_FEEDS: list[Case] = [
    ("replace a def", "x = 1\n\fdef f():\n    y = 1\n", "def f():\n    $$$B", "replace", "def g():\n    $$$B", "x = 1\n\fdef g():\n    y = 1\n"),
    ("replace a line", FF, "z = $V", "replace", "if q:\n    z = $V", "x = 1\n\fdef f():\n    y = 1\n\fif q:\n    z = 2\n"),
    ("replace with blank lines first", FF, "z = $V", "replace", "\nz = 3", "x = 1\n\fdef f():\n    y = 1\n\n\fz = 3\n"),
    ("insert before", FF, "z = 2", "insert_before", "q = 1", "x = 1\n\fdef f():\n    y = 1\nq = 1\n\fz = 2\n"),
    ("insert after", FF, "z = 2", "insert_after", "q = 1", FF + "q = 1\n"),
    ("insert after a def", FF, "def f(): $$$", "insert_after", "q = 1", "x = 1\n\fdef f():\n    y = 1\nq = 1\n\fz = 2\n"),
    ("wrap", FF, "z = 2", "wrap", "if q:\n    $$$BODY", "x = 1\n\fdef f():\n    y = 1\n\fif q:\n    z = 2\n"),
    ("delete", FF, "def f(): $$$", "delete", "", "x = 1\n\f\n\fz = 2\n"),
    ("delete in a class", "class A:\n    x\n \f    y  # c\n    z\n", "y", "delete", "", "class A:\n    x\n \f\n    z\n"),
    ("delete the only one", "class A:\n\f    y\n", "y", "delete", "", "class A:\n\f    pass\n"),
    ("in a class, insert after", "class A:\n    x = 1\n\f    y = 2\n", "y = 2", "insert_after", "q = 1", "class A:\n    x = 1\n\f    y = 2\n    q = 1\n"),
    ("in a class, insert before", "class A:\n    x = 1\n\f    y = 2\n", "y = 2", "insert_before", "q = 1", "class A:\n    x = 1\n    q = 1\n\f    y = 2\n"),
    ("in a class, replace", "class A:\n    x = 1\n\f    y = 2\n", "y = 2", "replace", "y = 3\nq = 1", "class A:\n    x = 1\n\f    y = 3\n    q = 1\n"),
    ("in a class, wrap", "class A:\n\f    y = 2\n    z\n", "y = 2", "wrap", "if q:\n    $$$BODY", "class A:\n\f    if q:\n        y = 2\n    z\n"),
    ("blanks before it are no indentation", "class A:\n  x\n      \f  y\n", "y", "replace", "if q:\n    y", "class A:\n  x\n      \f  if q:\n    y\n"),
    ("a block at module level", "x = 1\n\fif a:\n    y = 1\n", "if a: $$$B", "replace", "with w:\n    $$$B", "x = 1\n\fwith w:\n    y = 1\n"),
    ("decorators", "x\n\f@d(1)\ndef f(): pass\n", "@$$$D\ndef f(): $$$B", "replace", "@$$$D\n@e\ndef f():\n    $$$B", "x\n\f@d(1)\n@e\ndef f():\n    pass\n"),
    ("decorators that stay", "class A:\n\f    @d\n    def f(self): pass\n", "def f($$$P): $$$B", "replace", "def g($$$P):\n    $$$B", "class A:\n\f    @d\n    def g(self):\n        pass\n"),
    ("an expression in a decorator", "class A:\n\f    @d(f(1))\n    def g(self): pass\n", "f($X)", "replace", "h($X)", "class A:\n\f    @d(h(1))\n    def g(self): pass\n"),
    ("a captured block moves", "if a:\n    x\n\n\f    def f():\n        y\n", "if a: $$$B", "replace", "$$$B", "x\n\n\fdef f():\n    y\n"),
    ("a captured block moves in", "x\n\fif a:\n    y\n\f    z\n", "if a: $$$B", "replace", "if q:\n    if a:\n        $$$B", "x\n\fif q:\n    if a:\n        y\n\f        z\n"),
    ("an expression over lines", "class A:\n\f    y = f(1)\n", "f($X)", "replace", "g(\n    $X,\n)", "class A:\n\f    y = g(\n        1,\n    )\n"),
    ("a shared line", "x\n\fa; b\n", "a", "replace", "if q: a", "x\n\fif q: a\nb\n"),
]  # fmt: skip

NOTHING_CAPTURED: list[Case] = [
    ("insert after", "a()\nb()\nc()\n", "a()\n$$$M\nb()", "insert_after", "$$$M", "a()\nb()\nc()\n"),
    ("insert before", "a()\nb()\nc()\n", "a()\n$$$M\nb()", "insert_before", "$$$M", "a()\nb()\nc()\n"),
    ("insert in an inline block", "if q: a(); b()\n", "a()\n$$$M\nb()", "insert_after", "$$$M", "if q: a(); b()\n"),
    ("replace all of a block", "if q:\n    a()\n    b()\n", "a()\n$$$M\nb()", "replace", "$$$M", "if q:\n    pass\n"),
    ("replace a part of a block", "if q:\n    a()\n    b()\n    c()\n", "a()\n$$$M\nb()", "replace", "$$$M", "if q:\n    c()\n"),
    ("replace at the end", "c()\na()\nb()\n", "a()\n$$$M\nb()", "replace", "$$$M\n", "c()\n"),
    ("replace everything", "a()\nb()\n", "a()\n$$$M\nb()", "replace", "$$$M", ""),
    ("replace an inline block", "if q: a(); b()\n", "a()\n$$$M\nb()", "replace", "$$$M", "if q: pass\n"),
    ("replace on a shared line", "c(); a(); b()\n", "a()\n$$$M\nb()", "replace", "$$$M", "c()\n"),
    ("a comment is left", "if q:\n    a()\n    b()\n", "a()\n$$$M\nb()", "replace", "# c\n$$$M", "if q:\n    # c\n    pass\n"),
]  # fmt: skip

TAB = "class A:\n\tdef f(self):\n\t\tx = 1\n"
TWO = "class A:\n  def f(self):\n    x = 1\n"
UNITS: list[Case] = [
    ("tabs in brackets", TAB, "x = 1", "replace", "if k:\n    y = [\n        1,\n    ]", "class A:\n\tdef f(self):\n\t\tif k:\n\t\t\ty = [\n\t\t\t\t1,\n\t\t\t]\n"),
    ("tabs in brackets in brackets", TAB, "x = 1", "replace", "y = [\n    (\n        1,\n    ),\n]", "class A:\n\tdef f(self):\n\t\ty = [\n\t\t\t(\n\t\t\t\t1,\n\t\t\t),\n\t\t]\n"),
    ("two spaces in brackets", TWO, "x = 1", "replace", "if k:\n    y = g(\n        1,\n    )", "class A:\n  def f(self):\n    if k:\n      y = g(\n        1,\n      )\n"),
    ("a template of two spaces", TAB, "x = 1", "replace", "if k:\n  y = [\n    1,\n  ]", "class A:\n\tdef f(self):\n\t\tif k:\n\t\t\ty = [\n\t\t\t\t1,\n\t\t\t]\n"),
    ("what is left of a level stays", TAB, "x = 1", "replace", "if k:\n    y = [\n          1,\n    ]", "class A:\n\tdef f(self):\n\t\tif k:\n\t\t\ty = [\n\t\t\t\t  1,\n\t\t\t]\n"),
    ("aligned lines keep their distance", TWO, "x = 1", "replace", "if k:\n    x = g(a,\n          b)", "class A:\n  def f(self):\n    if k:\n      x = g(a,\n            b)\n"),
    ("a comment in brackets", TAB, "x = 1", "replace", "y = [  # why\n    # one\n    1,\n]", "class A:\n\tdef f(self):\n\t\ty = [  # why\n\t\t\t# one\n\t\t\t1,\n\t\t]\n"),
    ("backslashes", TAB, "x = 1", "replace", "if k:\n    assert a, \\\n        b", "class A:\n\tdef f(self):\n\t\tif k:\n\t\t\tassert a, \\\n\t\t\t\tb\n"),
    ("lines of a string", TAB, "x = 1", "replace", "y = g(\n    '''a\n    b''',\n)", "class A:\n\tdef f(self):\n\t\ty = g(\n\t\t\t'''a\n    b''',\n\t\t)\n"),
    ("an expression", TAB, "1", "replace", "g(\n    1,\n)", "class A:\n\tdef f(self):\n\t\tx = g(\n\t\t\t1,\n\t\t)\n"),
    ("a file that tells no unit", "x = 1\n", "x = 1", "replace", "y = [\n  1,\n]", "y = [\n  1,\n]\n"),
]  # fmt: skip

INLINE: list[Case] = [
    ("a block that does not grow stays on its line", "if a: x; y\n", "x", "replace", "z", "if a: z; y\n"),
    ("a run that shrinks", "if a: x; y; w\n", "x\ny", "replace", "z", "if a: z; w\n"),
]  # fmt: skip


@pytest.mark.parametrize("case", FORM_FEEDS, ids=lambda case: case[0])
def test_form_feeds(case: Case) -> None:
    _, before, pattern, action, template, after = case
    assert run(before, pattern, action, template) == after


@pytest.mark.parametrize("case", NOTHING_CAPTURED, ids=lambda case: case[0])
def test_nothing_captured(case: Case) -> None:
    _, before, pattern, action, template, after = case
    assert run(before, pattern, action, template) == after


@pytest.mark.parametrize("case", UNITS + INLINE, ids=lambda case: case[0])
def test_units(case: Case) -> None:
    _, before, pattern, action, template, after = case
    assert run(before, pattern, action, template) == after


def test_an_error_says_why_the_filled_template_does_not_parse() -> None:
    with pytest.raises(PlanError, match=r"non-default argument|without a default") as caught:
        run("def f(a=1): pass\n", "def f($$$P): $$$B", "replace", "def f($$$P, b):\n    $$$B")
    assert "def f(a=1, b):" in caught.value.message
    assert "quote" not in (caught.value.hint or "")


@pytest.mark.parametrize("before", ['s = f"{f(a)=}"\n', "s = f'x={1} {f(a) + 1 = !r:>{9}}'\n", 's = f"{f(a)  =  }"\n'])
def test_code_that_shows_itself(before: str) -> None:
    with pytest.raises(PlanError, match="`=` shows that code's own text") as caught:
        run(before, "f($X)", "replace", "g($X)")
    assert caught.value.code == "place"
    assert "find" in (caught.value.hint or "")


def test_a_field_behind_an_equals_sign_can_be_edited() -> None:
    assert run('s = f"f(a)={f(a)}"\n', "f($X)", "replace", "g($X)") == 's = f"f(a)={g(a)}"\n'
