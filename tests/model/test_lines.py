"""The lines of keys, against documents whose lines are known because they were counted while being written."""

from __future__ import annotations

import random
import string
import tomllib
from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from patchkit.model.lines import KeyPath, Repeat, key_lines, repeated_keys


def paths(value: object, at: KeyPath = ()) -> Iterator[KeyPath]:
    """Every key path of a parsed document, items of arrays counted from 1."""
    items = value.items() if isinstance(value, dict) else enumerate(value, 1) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*at, key)
        yield from paths(inner, (*at, key))


def check(text: str, expected: dict[KeyPath, int]) -> None:
    assert key_lines(text) == expected
    assert set(expected) == set(paths(tomllib.loads(text.replace("\r\n", "\n"))))


def test_plain_keys_and_tables() -> None:
    check(
        "# c\na = 1\n\n[t]  # c\nb = 2 # [x]\n  'c.d' = 3\n\"e\\u0066\" = 4\n[ t . u ]\nv = 1979-05-27 07:32:00\n",
        {
            ("a",): 2,
            ("t",): 4,
            ("t", "b"): 5,
            ("t", "c.d"): 6,
            ("t", "ef"): 7,
            ("t", "u"): 8,
            ("t", "u", "v"): 9,
        },
    )


def test_array_tables() -> None:
    check(
        "[[e]]\nf = 1\n[[e.x]]\nb = 1\n[[e.x]]\nb = 2\n[[e]]\n[[e.x]]\nb = 3\n[e.y]\nz = 1\n",
        {
            ("e",): 1,
            ("e", 1): 1,
            ("e", 1, "f"): 2,
            ("e", 1, "x"): 3,
            ("e", 1, "x", 1): 3,
            ("e", 1, "x", 1, "b"): 4,
            ("e", 1, "x", 2): 5,
            ("e", 1, "x", 2, "b"): 6,
            ("e", 2): 7,
            ("e", 2, "x"): 8,
            ("e", 2, "x", 1): 8,
            ("e", 2, "x", 1, "b"): 9,
            ("e", 2, "y"): 10,
            ("e", 2, "y", "z"): 11,
        },
    )


def test_a_table_has_the_line_of_its_own_header() -> None:
    check("[a.b]\n[a]\nc.d = 1\n", {("a",): 2, ("a", "b"): 1, ("a", "c"): 3, ("a", "c", "d"): 3})


def test_inline_tables_and_arrays_over_lines() -> None:
    check(
        "a = [ # c ]\n  1,\n  [2,\n 3], # ,\n  {x = '''\n''', y.z = [\n]},\n]\nb = {}\nc = []\n",
        {
            ("a",): 1,
            ("a", 1): 2,
            ("a", 2): 3,
            ("a", 2, 1): 3,
            ("a", 2, 2): 4,
            ("a", 3): 5,
            ("a", 3, "x"): 5,
            ("a", 3, "y"): 6,
            ("a", 3, "y", "z"): 6,
            ("b",): 9,
            ("c",): 10,
        },
    )


@pytest.mark.parametrize(
    "value",
    [
        '"""\n[x]\ny = 1\n"""',
        '"""a""\n"""',
        '""""a"\n""""',
        '"""""a""\n"""""',
        '"""\\"""\n"""',
        '"""\\\\\n"""',
        '"""\\\n  a"""  # """\nb = """\n"""',
        "'''\n\\'''",
        "'''''a''\n'''''",
        "''''\n''''",
        "'''# \" \n'''",
        '"\\"#\\\\"\nb = \'"\'\n#',
        "''\nb = ''",
        '""\nb = ""',
        "'\\'\nb = 1",
        "[ '#', \"]\" , ']' ,\n ]",
    ],
)
def test_strings_of_all_kinds(value: str) -> None:
    text = f"a = {value}\nend = 1\n"
    tomllib.loads(text)
    assert key_lines(text)[("end",)] == text.count("\n")


def test_toml_1_1_inline_tables_over_lines() -> None:
    assert key_lines("a = {\n  b = 1, # c\n  c = 2,\n}\nd = 3\n") == {
        ("a",): 1,
        ("a", "b"): 2,
        ("a", "c"): 3,
        ("d",): 5,
    }


def test_crlf() -> None:
    check("a = '''\r\n'''\r\n[b]\r\nc = 1\r\n", {("a",): 1, ("b",): 3, ("b", "c"): 4})


def test_no_last_newline_and_nothing() -> None:
    check("a = 1", {("a",): 1})
    check("", {})
    check("#", {})


def test_depth_costs_no_stack() -> None:
    lines = key_lines("a = " + "[\n" * 2_000 + "]" * 2_000 + "\nb = 1\n")
    assert lines[("b",)] == 2_002


def test_what_follows_a_mistake_is_left_out() -> None:
    assert key_lines("a = 1\nb 2\nc = 3\n") == {("a",): 1}
    assert key_lines('a = 1\n"b') == {("a",): 1}


def test_keys_set_twice() -> None:
    assert repeated_keys("a = 1\n[[e]]\nf = 1\nf = 2\n[[e]]\nf = 1\n") == [Repeat(("e", 1, "f"), 3, 4)]
    assert repeated_keys("a.b = 1\na.c = 1\n") == []
    assert repeated_keys("x = {a = 1, a = 2}\n") == [Repeat(("x", "a"), 1, 1)]


class Emitter:
    """Writes a random valid document and notes on which line each key went."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.out: list[str] = []
        self.line = 1
        self.expected: dict[KeyPath, int] = {}
        self.serial = 0

    def write(self, text: str) -> None:
        self.out.append(text)
        self.line += text.count("\n")

    def note(self, path: KeyPath) -> None:
        self.expected.setdefault(path, self.line)

    def pick(self, *options: str) -> str:
        return self.random.choice(options)

    def blank(self) -> None:
        self.write(self.pick("", "", " ", "\t"))

    def rest(self) -> None:
        """What may stand between two items of an array."""
        self.write(self.pick("", " ", "\n", "\n  ", ' # [c], "d\n', "\n#'''\n\n"))

    def name(self) -> tuple[str, str]:
        """A new key, and how it is written."""
        self.serial += 1
        plain = f"k{self.serial}"
        odd = f"{self.pick('.', '#', ' ', '[', ']]', '=', 'é', '{')}{self.serial}"
        return self.random.choice(
            [
                (plain, plain),
                (f"{self.serial}", f"{self.serial}"),
                (odd, f"'{odd}'"),
                (odd, f'"{odd}"'),
                (f'q"\\{self.serial}', f'"\\u0071\\"\\\\{self.serial}"'),
            ]
        )

    def body(self, quote: str) -> str:
        """The inside of a long string that does not end it."""
        text = "".join(
            self.pick("a", "\n", "[b]\n", "c = 1\n", "#", "=", "{", "'", '"', ",", "é", " ")
            for _ in range(self.random.randrange(9))
        )
        while quote * 3 in text:
            text = text.replace(quote * 3, quote)
        return text.rstrip(quote) + quote * self.random.randrange(3)

    def value(self, path: KeyPath, depth: int) -> None:
        kind = self.random.randrange(10 if depth else 7)
        if kind == 0:
            self.write(self.pick("1", "-0.5", "true", "inf", "0xff", "1_000", "1e-3"))
        elif kind == 1:
            self.write(self.pick("1979-05-27", "07:32:00.5", "1979-05-27T07:32:00Z", "1979-05-27 07:32:00+01:00"))
        elif kind == 2:
            self.write(self.pick('""', '"#"', '"\\""', '"\\\\"', '"[x]"', '"a = 1"', "\"'''\"", '"\\n"'))
        elif kind == 3:
            self.write(self.pick("''", "'#'", "'\\'", '\'"""\'', "'[[x]]'", "'}'"))
        elif kind in (4, 5):
            escape = self.pick("", "", "\\\\", '\\"', "\\\n   ", "\\u0041")
            body = self.body('"')
            self.write('"""' + escape + (body if not (escape == "" and body.startswith('"""')) else "") + '"""')
        elif kind == 6:
            self.write("'''" + self.body("'") + "'''")
        elif kind in (7, 8):
            self.array(path, depth)
        else:
            self.inline(path, depth)

    def array(self, path: KeyPath, depth: int) -> None:
        self.write("[")
        for number in range(1, self.random.randrange(4) + 1):
            self.rest()
            self.note((*path, number))
            self.value((*path, number), depth - 1)
            self.rest()
            self.write(",")
        if self.out[-1] == "," and self.random.random() < 0.5:
            self.out.pop()
        self.rest()
        self.write("]")

    def inline(self, path: KeyPath, depth: int) -> None:
        self.write("{")
        for number in range(self.random.randrange(4)):
            self.write(", " if number else " ")
            self.pair(path, depth - 1)
        self.write(" }")

    def pair(self, table: KeyPath, depth: int) -> None:
        path = table
        for number in range(self.random.choice([1, 1, 1, 2, 3])):
            key, written = self.name()
            if number:
                self.blank()
                self.write(".")
                self.blank()
            path = (*path, key)
            self.note(path)
            self.write(written)
        self.blank()
        self.write("=")
        self.blank()
        self.value(path, depth)

    def pairs(self, table: KeyPath) -> None:
        for _ in range(self.random.randrange(4)):
            self.write(self.pick("", "\n", "  ", "# k = 1\n"))
            self.pair(table, 2)
            self.write(self.pick("\n", "  # [x]\n", "\n\n"))

    def document(self) -> str:
        self.pairs(())
        counts: dict[KeyPath, int] = {}
        for _ in range(self.random.randrange(7)):
            parents = [(), *((*path, count) for path, count in counts.items())]
            parent = self.random.choice(parents)
            # A header names only the last element of each array of tables: earlier ones are closed.
            parent_names = [str(part) for part in parent if isinstance(part, str)]
            again = [path for path in counts if path[:-1] == parent]
            if again and self.random.random() < 0.6:
                path = self.random.choice(again)
                names, double = [*parent_names, str(path[-1])], True
            else:
                self.serial += 1
                names, double = [*parent_names, f"h{self.serial}"], self.random.random() < 0.6
                path = (*parent, names[-1])
            self.note(path)
            if double:
                for inner in [inner for inner in counts if inner[: len(path)] == path and inner != path]:
                    del counts[inner]
                counts[path] = counts.get(path, 0) + 1
                path = (*path, counts[path])
                self.note(path)
            dots = self.pick(".", " . ", ".").join(self.pick(name, f"'{name}'", f'"{name}"') for name in names)
            opening, closing = ("[[", "]]") if double else ("[", "]")
            self.write(f"{opening}{self.pick('', ' ')}{dots}{self.pick('', ' ')}{closing}{self.pick('', ' # c')}\n")
            self.pairs(path)
        return "".join(self.out)


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 2**32), st.booleans())
def test_generated_documents(seed: int, crlf: bool) -> None:
    emitter = Emitter(seed)
    text = emitter.document()
    assert set(emitter.expected) == set(paths(tomllib.loads(text)))  # the emitter is right
    assert key_lines(text.replace("\n", "\r\n") if crlf else text) == emitter.expected
    assert repeated_keys(text) == []


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet=string.printable + "é\ufeff") | st.text(alphabet="[]{}=.,#'\"\\\n ab1"))
@example("a=[{")
@example("[[")
@example('a="""')
@example("a.")
def test_never_fails(text: str) -> None:
    assert all(1 <= line <= text.count("\n") + 1 for line in key_lines(text).values())
    repeated_keys(text)
