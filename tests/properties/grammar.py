"""Python sources out of a grammar: every kind of statement and expression, laid out in every way people lay them out.

Unlike real files, these are dense in what is rare: semicolons, blocks on their header's line, continued lines, tabs,
form feeds, comments at every end, strings over several lines, names that are not ASCII.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")

NAMES = ("a", "b", "value", "self", "é", "Ж", "変数", "_x1")
ATTRIBUTES = ("run", "x", "naïve", "__len__")
#: Comments, also with what looks like code, a coding cookie or a metavariable.
COMMENTS = ("# note", "#", "# é Ж 中", "# if a: b; 'c", '# """', "# $X", "#:", "# type: ignore")
STRINGS = (
    "'text'",
    '"é中"',
    "r'\\d+'",
    "b'bytes'",
    "'it\\'s # no comment'",
    "'a' \"b\"",
    '"""one\n  two # no comment\n\tthree"""',
    "'''if a:\n    b\n'''",
    "'back\\\nslash'",
    "u'old'",
)
FORMATS = ("f'{a}'", "f'{a!r:>{b}} {{'", 'f"{value.x} # {b + 1}"', "f'''{\na}\n{b}'''", "f'{a=}'", "'x' f'{b}' 'y'")
NUMBERS = ("0", "1", "-1", "1.5", "0x1F", "1_000", "1e300", "2j", "True", "None", "...")
OPERATORS = ("+", "-", "*", "/", "//", "%", "@", "**", "<<", "&", "|", "^", "and", "or", "<", "==", "is not", "not in")
INDENTS = ("    ", "  ", "\t", "        ", " ")


class Writer:
    """Draws one source; ``depth`` bounds the nesting of blocks, ``small`` that of expressions."""

    def __init__(self, draw: st.DrawFn, ascii_only: str | None) -> None:
        self.draw = draw
        self.unit = self.pick(INDENTS)
        self.codec = ascii_only
        self.names = self.fit(NAMES)
        self.attributes = self.fit(ATTRIBUTES)
        self.comments = self.fit(COMMENTS)
        self.strings = self.fit(STRINGS)
        self.asynchronous = False
        self.loop = False

    def fit(self, words: Sequence[str]) -> list[str]:
        """The words that the encoding of the file can hold."""
        out = []
        for word in words:
            try:
                word.encode(self.codec or "utf-8")
            except UnicodeEncodeError:
                continue
            out.append(word)
        return out

    def pick(self, words: Sequence[T]) -> T:
        return words[self.draw(st.integers(0, len(words) - 1))]

    def number(self, most: int) -> int:
        return self.draw(st.integers(0, most))

    def one_in(self, many: int) -> bool:
        return self.draw(st.integers(0, many - 1)) == many - 1

    # -- expressions -----------------------------------------------------------------------------------------------

    def name(self) -> str:
        return self.pick(self.names)

    def gap(self) -> str:
        """Blanks within brackets, where lines may break and comments stand."""
        if not self.one_in(8):
            return self.pick(("", "", " "))
        return self.pick(("\n", " \n  ", f"  {self.pick(self.comments)}\n", "\t", "\\\n", "\f"))

    def atom(self) -> str:
        kind = self.number(5)
        if kind <= 2:
            return self.name()
        if kind == 3:
            return self.pick(NUMBERS)
        return self.pick(self.strings) if kind == 4 or not self.one_in(2) else self.pick(FORMATS)

    def expression(self, small: int = 2) -> str:
        if small <= 0:
            return self.atom()
        kind = self.number(17)
        if kind <= 3:
            return self.atom()
        left = self.expression(small - 1)
        if kind == 4:
            return f"({self.gap()}{left}{self.gap()})"
        if kind == 5:
            return f"{self.primary(small - 1)}({self.arguments(small - 1)})"
        if kind == 6:
            return f"{self.primary(small - 1)}.{self.pick(self.attributes)}"
        if kind == 7:
            index = self.pick((left, f"{left}:{self.atom()}", f"{left}, {self.atom()}", "::2", f"{left},"))
            return f"{self.primary(small - 1)}[{index}]"
        if kind == 8:
            return f"({left} {self.pick(OPERATORS)} {self.expression(small - 1)})"
        if kind == 9:
            return f"{self.atom()} {self.pick(OPERATORS)} {self.atom()}"
        if kind == 10:
            body = f"{self.gap()}{left},{self.gap()}{self.expression(small - 1)}{self.pick(('', ','))}{self.gap()}"
            return self.pick(("[{}]", "({})", "{{{}}}")).format(body)
        if kind == 11:
            return f"{{{self.gap()}{self.atom()}:{self.gap()}{left}, **{self.name()}}}"
        if kind == 12:
            return f"(lambda {self.name()}=1, *, k: {left})"
        if kind == 13:
            return f"({left} if {self.expression(small - 1)} else {self.atom()})"
        if kind == 14:
            shape = self.pick(("[{}]", "({})", "{{{}}}"))
            return shape.format(f"{left} for {self.name()} in {self.name()} if {self.atom()}")
        if kind == 15:
            return f"({self.name()} := {left})"
        if kind == 16:
            return f"({self.pick(('not ', '-', '~', '+'))}{left})"
        return f"(await {self.primary(0)})" if self.asynchronous else f"({left})"

    def primary(self, small: int) -> str:
        if self.one_in(3) and small > 0:
            return f"({self.expression(small)})"
        return self.name() if self.one_in(2) else f"{self.name()}.{self.pick(self.attributes)}"

    def arguments(self, small: int) -> str:
        parts = [self.expression(small) for _ in range(self.number(2))]
        if self.one_in(4):
            parts.append(f"*{self.name()}")
        if self.one_in(3):
            parts.append(f"k={self.expression(small)}")
        if self.one_in(5):
            parts.append(f"**{self.name()}")
        if not parts:
            return self.gap()
        return self.gap() + f",{self.gap()}".join(parts) + self.pick(("", "", ",")) + self.gap()

    def parameters(self) -> str:
        parts = self.pick(
            (
                [],
                ["self"],
                ["p", f"q={self.atom()}"],
                ["p", "/", "q", "*", f"r: {self.atom()} = 1"],
                ["*args", "s=None", "**kw"],
                [f"p: {self.atom()}"],
            )
        )
        return f",{self.gap() or ' '}".join(parts) + ("," if parts and self.one_in(5) else "")

    # -- statements ------------------------------------------------------------------------------------------------

    def simple(self) -> str:
        kind = self.number(15)
        if kind <= 3:
            return f"{self.name()} = {self.expression()}"
        if kind <= 5:
            return f"{self.primary(0)}({self.arguments(1)})"
        if kind == 6:
            return self.pick(("pass", "...", f"global g{self.number(3)}"))
        if kind == 7:
            return f"{self.name()} {self.pick(('+=', '//=', '@='))} {self.expression(1)}"
        if kind == 8:
            return f"{self.name()}: {self.atom()} = {self.expression(1)}"
        if kind == 9:
            return f"assert {self.expression(1)}, {self.pick(self.strings)}"
        if kind == 10:
            return self.pick(("import os", "from a.b import (c,\n    d)", "import x.y as z, w", "from . import q"))
        if kind == 11:
            return f"del {self.name()}"
        if kind == 12:
            return f"raise {self.primary(0)}({self.arguments(1)}) from {self.name()}"
        if kind == 13:
            return f"{self.name()}, *{self.name()} = {self.expression(1)}, {self.atom()}"
        if kind == 14:
            return self.pick(self.strings)
        return f"{self.name()} = \\\n  {self.expression(1)}"

    def comment(self, indent: str) -> str:
        """Nothing, blank lines, or comment lines, at this indentation or another."""
        if not self.one_in(5):
            return ""
        note = self.pick(self.comments)
        return self.pick(
            ("\n", f"{indent}{note}\n", f"{note}\n", f"{indent}{self.unit}{note}\n", "\f\n", f"{indent}\n")
        )

    def tail(self) -> str:
        return self.pick(("", "", "", " ")) + (self.pick(self.comments) if self.one_in(6) else "")

    def line(self, indent: str) -> str:
        """A line of simple statements."""
        parts = [self.simple()]
        while self.one_in(5) and len(parts) < 3:
            parts.append(self.simple())
        text = self.pick(("; ", ";", " ; ")).join(parts) + (self.pick((";", " ;")) if self.one_in(9) else "")
        return f"{indent}{text}{self.tail()}\n"

    def block(self, indent: str, depth: int) -> str:
        """What follows a colon: an indented block, or statements on the same line."""
        if self.one_in(5):
            return " " + self.line("")
        deeper = indent + self.unit
        head = f"{self.tail()}\n"
        return head + "".join(self.statement(deeper, depth) for _ in range(1 + self.number(2)))

    def statement(self, indent: str, depth: int) -> str:
        above = self.comment(indent)
        if depth <= 0 or self.one_in(2):
            return above + self.line(indent)
        return above + self.compound(indent, depth - 1)

    def compound(self, indent: str, depth: int) -> str:
        kind = self.number(9)

        def block(text: str) -> str:
            return f"{indent}{text}:{self.block(indent, depth)}"

        if kind == 0:
            out = block(f"if {self.expression(1)}")
            while self.one_in(3):
                out += block(f"elif {self.expression(1)}")
            return out + (block("else") if self.one_in(2) else "")
        if kind == 1:
            return block(f"for {self.name()} in {self.expression(1)}") + (block("else") if self.one_in(4) else "")
        if kind == 2:
            return block(f"while {self.expression(1)}") + (block("else") if self.one_in(4) else "")
        if kind == 3:
            star = "*" if self.one_in(3) else ""
            out = block("try")
            caught = self.number(2)
            for _ in range(caught):
                out += block(f"except{star} {self.pick(('A', '(A, B)'))}{self.pick(('', ' as e'))}")
            out += block("else") if caught and self.one_in(3) else ""
            return out + (block("finally") if not caught or self.one_in(3) else "")
        if kind == 4:
            items = self.pick((f"{self.name()}() as v", f"{self.name()}, {self.name()}", "(a as b,\n  c as d)", "(a)"))
            word = "async with" if self.asynchronous and self.one_in(2) else "with"
            return block(f"{word} {items}")
        if kind == 5:
            return self.match(indent, depth)
        if kind == 6:
            bases = self.pick(("", "()", "(A, B)", "(A, metaclass=M)", "(\n    A,\n)"))
            return self.decorators(indent) + block(f"class C{self.number(2)}{bases}")
        return self.function(indent, depth)

    def decorators(self, indent: str) -> str:
        out = ""
        while self.one_in(3):
            out += f"{indent}@{self.primary(0)}{self.pick(('', '()', '(1, k=2)'))}{self.tail()}\n" + self.pick(
                ("", "\n")
            )
        return out

    def function(self, indent: str, depth: int) -> str:
        outer = self.asynchronous
        decorators = self.decorators(indent)
        self.asynchronous = self.one_in(3)
        word = "async def" if self.asynchronous else "def"
        returns = f" -> {self.atom()}" if self.one_in(4) else ""
        head = f"{indent}{word} {self.pick(('run', 'f', *self.names))}({self.parameters()}){returns}:"
        body = self.block(indent, depth)
        if self.one_in(4) and body.startswith("\n"):
            body = f'\n{indent}{self.unit}"""Doc.\n\n{indent}{self.unit}More."""\n' + body[1:]
        if self.one_in(2) and body.split("\n", 1)[0].strip()[:1] in ("", "#"):
            body += f"{indent}{self.unit}return {self.expression(1)}{self.tail()}\n"
        self.asynchronous = outer
        return decorators + head + body

    def match(self, indent: str, depth: int) -> str:
        out = f"{indent}match {self.name()}:\n"
        for _ in range(1 + self.number(1)):
            pattern = self.pick(("1 | 2", "[x, *_]", "{'k': v, **r}", "C(x=1)", "str() as s", "(a.b)", "-1"))
            guard = f" if {self.atom()}" if self.one_in(4) else ""
            out += f"{indent}{self.unit}case {pattern}{guard}:{self.block(indent + self.unit, depth)}"
        return out


@st.composite
def sources(draw: st.DrawFn, codec: str | None = None, statements: int = 4, depth: int = 2) -> str:
    """A module, with ``\\n`` line breaks, that the running Python parses; ``codec``: an encoding that can hold it."""
    writer = Writer(draw, codec)
    head = draw(st.sampled_from(["", "", '"""Doc."""\n', "from __future__ import annotations\n", "\f\n# head\n\n"]))
    return head + "".join(writer.statement("", depth) for _ in range(1 + writer.number(statements - 1)))
