"""``lint --fix`` on patches and releases made up: the bytes stay, the rest of the file stays, twice is once.

What a patch does to a release is worked out here by cutting the release's text, without patchkit.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from patchkit.author.fixing import fix, outcome
from patchkit.author.linting import lint_on
from patchkit.author.published import WheelFiles
from patchkit.author.releases import Releases
from patchkit.model.load import parse_patch
from patchkit.model.patch import Patch

STATEMENTS = ["a = 1", "b = a", "call(a)", "# about it", "x = '1.2.3'", "", "y = [a, b]"]


@st.composite
def modules(draw: st.DrawFn) -> str:
    """A few functions and classes of statements that often repeat."""
    out: list[str] = ["import os", ""]
    for name in draw(st.lists(st.sampled_from("fgh"), min_size=1, max_size=3)):
        head, indent = draw(st.sampled_from([(f"def {name}(a):", 4), (f"class {name.upper()}:\n    def run(a):", 8)]))
        out += head.split("\n")
        body = draw(st.lists(st.sampled_from(STATEMENTS), min_size=2, max_size=8))
        out += [" " * indent + line if line else "" for line in body] + [" " * indent + "return a", ""]
    return "\n".join(out) + "\n"


@st.composite
def releases(draw: st.DrawFn) -> list[str]:
    """A module, and others that differ from it by some lines."""
    first = draw(modules())
    out = [first]
    for _ in range(draw(st.integers(0, 2))):
        lines = first.split("\n")
        for _ in range(draw(st.integers(1, 3))):
            at = draw(st.integers(0, len(lines) - 1))
            indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
            lines[at : at + draw(st.integers(0, 1))] = [indent + draw(st.sampled_from(["b = a", "c = 3", "call(a)"]))]
        text = "\n".join(lines)
        try:
            compile(text, "demo.py", "exec")
        except SyntaxError:
            continue
        out.append(text)
    return out


class Change:
    """One text edit: whole lines of the first release, some of which become others."""

    def __init__(self, draw: st.DrawFn, text: str) -> None:
        lines = text.splitlines(keepends=True)
        start = draw(st.integers(0, len(lines) - 1))
        stop = min(len(lines), start + draw(st.integers(1, 7)))
        self.find = "".join(lines[start:stop])
        at = draw(st.integers(start, stop - 1))
        indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
        new = [*lines[start:at], f"{indent or ''}changed(1)\n", *lines[at + draw(st.integers(0, 1)) : stop]]
        self.action = draw(st.sampled_from(["replace", "replace", "insert_after", "insert_before"]))
        self.text = "".join(new) if self.action == "replace" else f"{indent}changed(1)\n"

    def toml(self) -> str:
        """The edit, beside a comment."""
        return f'\n# {self.action}\n[[edit]]\nfile = "demo.py"\nfind = {json.dumps(self.find)}  # what\n' + (
            f"{self.action} = {json.dumps(self.text)}\n"
        )

    def result(self, text: str) -> str | None:
        """What becomes of a release; None where the lines stand there no times, or more than once."""
        found = [n for n in range(len(text)) if text.startswith(self.find, n) and (n == 0 or text[n - 1] == "\n")]
        if len(found) != 1:
            return None
        (at,), end = found, found[0] + len(self.find)
        new = {"replace": self.text, "insert_after": self.find + self.text, "insert_before": self.text + self.find}
        return text[:at] + new[self.action] + text[end:]


@contextmanager
def wheels(texts: list[str]) -> Iterator[tuple[WheelFiles, ...]]:
    with ExitStack() as stack:
        out = []
        for number, text in enumerate(texts):
            data = io.BytesIO()
            with zipfile.ZipFile(data, "w") as archive:
                archive.writestr("demo.py", text)
            archive = stack.enter_context(zipfile.ZipFile(data))
            out.append(WheelFiles(archive, "demo", f"1.{number}"))
        yield tuple(out)


def patch_of(change: Change, extra: str) -> Patch:
    head = '# Top.\nschema = 1\nname = "p"\nsummary = "S"  # told\ndescription = "D"\nlinks = ["x"]\n'
    return parse_patch(f'{head}\n[target]\nrequirement = "demo"\n{change.toml()}{extra}\n# End.\n'.encode(), None)


IMPORT = '\n[[edit]]\nfile = "demo.py"\nadd_import = ["import re"]\n'


@given(st.data())
@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
def test_a_fixed_patch_does_what_it_did(data: st.DataObject) -> None:
    texts = data.draw(releases())
    change = data.draw(st.composite(lambda draw: Change(draw, texts[0]))())
    if change.text == change.find:
        return
    repeated = f'\n[[precondition]]\nfile = "demo.py"\nfind = {json.dumps(change.find)}\ncount = 1\n'
    patch = patch_of(change, data.draw(st.sampled_from(["", IMPORT * 2, repeated])))
    with wheels(texts) as files:
        seen = Releases(files)
        before = [outcome(patch, one) for one in files]
        fixed = fix(patch, lambda p: lint_on(p, seen), files)
        assert [outcome(fixed.patch, one) for one in files] == before
        if len(patch.edits) == 1:
            for text, found in zip(texts, before, strict=True):
                wanted = change.result(text)
                if found[0] == "plan":
                    assert found[1] == {"demo.py": (wanted or "").encode()}
                else:  # where the lines stand once, what comes of it does not parse
                    assert wanted is None or found[1] == "syntax"
        for finding in fixed.done:
            event(finding.rule)
        again = fix(fixed.patch, lambda p: lint_on(p, seen), files)
        assert (again.done, again.patch.data) == ((), fixed.patch.data)
    comments = [line for line in patch.data.decode().split("\n") if line.startswith("#")]
    assert [line for line in fixed.patch.data.decode().split("\n") if line in comments] == comments
    assert fixed.patch.data.count(b"# what") == patch.data.count(b"# what") == 1
