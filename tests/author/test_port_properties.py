"""What is carried to another release is the same change there: on many releases made up, against their syntax trees."""

from __future__ import annotations

import ast
import random
import re

import pytest

from patchkit.author.carry import Carried, carry
from patchkit.author.published import HostGrammar
from patchkit.edit.locate import FileText
from patchkit.edit.source import Source

CASES = 600


def file_of(text: str) -> FileText:
    return FileText(Source(text.encode(), path="demo.py"), HostGrammar().parse)


class Module:
    """A module of random statements; each has a number of its own, which is what edits change."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.number = 100
        self.lines: list[str] = []
        for name in "ab":
            self.lines.append(f"def {name}(value):")
            self.block(4)
            self.lines += ["    return value", "", ""]

    def block(self, indent: int) -> None:
        for _ in range(self.chance.randint(2, 4)):
            self.number += 1
            n = self.number
            forms = [
                f'text = """\n  say {n}\n    more\n"""',
                f'call(\n    "a b",\n    {n},\n    value,\n)',
                f"x = f' {{value}} and {{{n}}}'",
                f"pair = ({n}, ' k', value)",
                f"s = 'a \\\n  b {n}'",
                f"value = work(value, {n})  # note",
            ]
            if self.chance.random() < 0.2 and indent < 12:
                self.lines.append(f"{' ' * indent}if value[{n}]:")
                self.block(indent + 4)
            else:
                self.lines += [" " * indent + line for line in self.chance.choice(forms).split("\n")]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def release(text: str, chance: random.Random) -> str:
    """Another release: other blanks, some of them within strings, another layout, other names, other blocks."""
    for _ in range(chance.randint(1, 3)):
        lines = text.split("\n")
        at = chance.randrange(len(lines))
        kind = chance.randrange(8)
        if kind == 0:
            text = text.replace(" and ", "  and ", 1).replace('"a b"', '"a  b"', 1)
            continue
        if kind == 1:
            text = re.sub(r"\bvalue\b", "item", text)
            continue
        if kind == 2:
            text = re.sub(r'call\(\n +"a b",\n +(\d+),\n +(\w+),\n +\)', r'call("a b", \1, \2)', text)
            continue
        if kind == 3:
            blanks = [len(line) - len(line.lstrip(" ")) for line in lines]
            lines = [" " * (n // 2) + line.lstrip(" ") for n, line in zip(blanks, lines, strict=True)]
        elif kind == 4:
            lines[at] = " " + lines[at]
        elif kind == 5:
            lines[at] = lines[at].removeprefix(" ")
        elif kind == 6:
            lines[at] += " "
        else:
            lines.insert(at, " " * (4 * chance.randint(0, 3)) + "pass")
        text = "\n".join(lines)
    return text


def parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def changed(text: str, number: str) -> str:
    return re.sub(rf"\b{number}\b", f"9{number}", text)


def test_what_is_carried_is_the_same_change(capsys: pytest.CaptureFixture[str]) -> None:
    carried = tried = 0
    for seed in range(CASES):
        chance = random.Random(seed)
        old = Module(chance).text
        new = release(old, chance)
        number = str(chance.randrange(101, 101 + len(set(re.findall(r"\b1\d\d\b", old)))))
        if new == old or not parses(new):
            continue
        tried += 1
        found = carry(file_of(old), file_of(new), changed(old, number))
        if isinstance(found, Carried):
            carried += 1
            assert ast.dump(ast.parse(found.after)) == ast.dump(ast.parse(changed(new, number))), (seed, found.evidence)
            # The number says which line it was; what the line says beside it must be the same, literals as they stand.
            assert line(new, number) == line(old, number), (seed, found.evidence)
    with capsys.disabled():
        print(f"\n{tried} changes on another release: {carried} carried, {tried - carried} left to a person")
    assert carried > tried // 3


def line(text: str, number: str) -> str:
    """The line with that number, names made alike; without its layout, where it does not begin in a literal."""
    (found,) = [one.replace("value", "item") for one in text.split("\n") if re.search(rf"\b{number}\b", one)]
    return found if re.match(" *(say|b) ", found) else found.strip()
