"""The proof of a patch that was made by the machine."""

from __future__ import annotations

import pytest
from support.bench import CORE, UTIL, Bench

from patchkit.author.derive import TextEdit
from patchkit.author.document import Draft, render
from patchkit.author.proof import Before, not_expressible, prove
from patchkit.edit.plan import Grammar
from patchkit.errors import PlanError
from patchkit.model.load import parse_patch
from patchkit.model.patch import Patch
from patchkit.site.environment import resolve
from patchkit.site.grammar import Grammar as SiteGrammar

FILES = {"demo/core.py": CORE.encode(), "demo/util.py": UTIL.encode()}


@pytest.fixture
def grammar(bench: Bench) -> Grammar:
    return SiteGrammar(resolve(directory=str(bench.site)))


@pytest.fixture
def before(bench: Bench) -> Before:
    found = resolve(directory=str(bench.site)).find("demo")
    assert found is not None
    return Before(found, FILES)


def patch_of(path: str, find: str, text: str) -> Patch:
    edits = {path: [TextEdit(None, find, "replace", text)]}
    return parse_patch(render(Draft("mine", "A summary", "demo==1.0", edits)), "mine.toml")


def test_a_patch_that_gives_the_bytes(before: Before, grammar: Grammar) -> None:
    wanted = {"demo/util.py": b"X = 1\r\nY = 3\r\nZ = 3\r\n"}
    prove(patch_of("demo/util.py", "Y = 2\n", "Y = 3\n"), before, grammar, wanted)


@pytest.mark.parametrize(
    ("wanted", "line"),
    [
        (b"X = 1\r\nY = 3\nZ = 3\r\n", 2),
        (b"X = 1\r\nY = 3\r\nZ = 3\n", 3),
        (b"\xef\xbb\xbfX = 1\r\nY = 3\r\nZ = 3\r\n", 1),
        (b"X = 1\r\nY = 3\r\nZ = 3\r\n\r\n", 4),
    ],
    ids=["a line break", "another one", "a byte order mark", "a line more"],
)
def test_every_byte_counts(before: Before, grammar: Grammar, wanted: bytes, line: int) -> None:
    with pytest.raises(PlanError) as caught:
        prove(patch_of("demo/util.py", "Y = 2\n", "Y = 3\n"), before, grammar, {"demo/util.py": wanted})
    assert (caught.value.code, caught.value.details) == ("not-expressible", {"path": "demo/util.py", "line": line})


def test_a_file_that_the_patch_does_not_change(before: Before, grammar: Grammar) -> None:
    wanted = {"demo/util.py": b"X = 1\r\nY = 3\r\nZ = 3\r\n", "demo/core.py": CORE.replace("x + x", "2 * x").encode()}
    with pytest.raises(PlanError) as caught:
        prove(patch_of("demo/util.py", "Y = 2\n", "Y = 3\n"), before, grammar, wanted)
    assert caught.value.details == {"path": "demo/core.py", "line": 1}
    assert not_expressible("demo/core.py", None, b"").details["line"] == 1
