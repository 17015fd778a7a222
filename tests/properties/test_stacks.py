"""Stacks of patches: put on one by one or together, taken off in any order, they give the bytes that they must give.

``world.py`` says which bytes, line by line, without patchkit.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties.effort import effort
from properties.test_life import shapes, specs
from properties.world import CORE, FILES, NOTES, UTIL, Rule, Shape, Spec, World

import patchkit
from patchkit.errors import PatchkitError
from patchkit.ops.inspect import unified
from patchkit.site.environment import Site, resolve


@pytest.fixture(autouse=True)
def _no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here stages a power cut."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@contextmanager
def world_of(shapes: dict[str, Shape], specs: list[Spec]) -> Iterator[tuple[World, Site]]:
    """A world without probes, whose text this model does not know, and with no patch that needs another."""
    plain = [spec._replace(probe=False) for spec in specs if not spec.on_top]
    plain = [spec if spec.files or spec.add or spec.take else spec._replace(add=True) for spec in plain]
    made = World(shapes, plain)
    try:
        yield made, resolve(None, str(made.home), {})
    finally:
        made.close()


def paths(world: World, names: list[str]) -> list[str]:
    return [str(world.folder / f"{name}.toml") for name in names]


def must_be(world: World, names: list[str]) -> dict[str, bytes]:
    """What the files hold with these patches on, in this order."""
    world.on = {name: world.variants[name] for name in names}
    return world.expected()


@effort(25)
@given(shapes(), specs(), st.randoms(use_true_random=False))
def test_one_by_one_together_twice_and_off_again(shapes: dict[str, Shape], specs: list[Spec], random: object) -> None:
    with world_of(shapes, specs) as (world, site):
        names = list(world.specs)
        random.shuffle(names)  # type: ignore[attr-defined]
        pristine = world.digest_of_files()
        for number, name in enumerate(names, 1):
            patchkit.apply(*paths(world, [name]), site=site)
            assert world.found() == must_be(world, names[:number])
        patchkit.revert(site=site, everything=True)
        assert world.digest_of_files() == pristine
        patchkit.apply(*paths(world, names), site=site)
        assert world.found() == must_be(world, names)
        before = world.digest()
        again = patchkit.apply(*paths(world, names), site=site)
        assert {patch.action for patch in again.patches} == {"unchanged"}
        assert world.digest() == before
        off = list(names)
        random.shuffle(off)  # type: ignore[attr-defined]
        while off:
            names.remove(off[0])
            patchkit.revert(off.pop(0), site=site)
            assert world.found() == must_be(world, names)
            assert not world.stray()
        assert world.digest_of_files() == pristine
        assert world.record_holds()


@effort(25)
@given(shapes(), specs(), st.integers(0, 4))
def test_without_the_first_is_the_others_alone(shapes: dict[str, Shape], specs: list[Spec], which: int) -> None:
    """What a revert leaves is what the other patches make of a fresh install."""
    with world_of(shapes, specs) as (world, site):
        names = list(world.specs)
        patchkit.apply(*paths(world, names), site=site)
        gone = names.pop(which % len(names))
        patchkit.revert(gone, site=site)
        left = world.found()
        patchkit.revert(site=site, everything=True)
        if names:
            patchkit.apply(*paths(world, names), site=site)
        assert world.found() == left == must_be(world, names)


@pytest.mark.parametrize("names", [["p0", "top"], ["top", "p0"]])
def test_after_decides_the_order(names: list[str]) -> None:
    plain = dict.fromkeys(FILES, Shape())
    world = World(plain, [Spec("p0", (Rule("text", 0, (CORE,)),)), Spec("top", (), on_top=True)])
    site = resolve(None, str(world.home), {})
    try:
        patchkit.apply(*paths(world, names), site=site)
        assert world.found() == must_be(world, ["p0", "top"])
        with pytest.raises(PatchkitError):
            patchkit.revert("p0", site=site)
        assert world.found() == must_be(world, ["p0", "top"])
    finally:
        world.close()


# -- the order of what a patch file says -------------------------------------------------------------------------------


def tables(document: str) -> tuple[str, list[str]]:
    head, *rest = re.split(r"^(?=\[\[)", document, flags=re.MULTILINE)
    return head, rest


@effort(30)
@given(shapes(), specs(), st.randoms(use_true_random=False))
def test_the_order_of_tables_and_keys_does_not_matter(
    shapes: dict[str, Shape], specs: list[Spec], random: object
) -> None:
    with world_of(shapes, specs) as (world, site):
        for name in world.specs:
            path = world.folder / f"{name}.toml"
            plain = {file.path: file.after for file in patchkit.plan(str(path), site=site).patches[0].files}
            head, rest = tables(path.read_text(encoding="utf-8"))
            random.shuffle(rest)  # type: ignore[attr-defined]
            shuffled = []
            for table in rest:
                first, *keys = table.strip("\n").split("\n")
                random.shuffle(keys)  # type: ignore[attr-defined]
                shuffled.append("\n".join([first, *keys]))
            path.write_text(head + "\n".join(shuffled) + "\n", encoding="utf-8")
            assert {file.path: file.after for file in patchkit.plan(str(path), site=site).patches[0].files} == plain


EVERYTHING = [
    Spec("p0", (Rule("text", 0, (CORE,)), Rule("wrap", 1, (CORE, UTIL)), Rule("twice", 2, (UTIL,))), imports=True),
    Spec("p1", (Rule("syntax", 3, (CORE, UTIL)), Rule("delete", 4, (CORE,))), probe=True, add=True, take=True),
    Spec("p2", (Rule("after", 5, (UTIL,)), Rule("versions", 6, (CORE,))), imports=True, notes=True),
    Spec("top", (), on_top=True),
]


def test_the_same_plan_whatever_the_seed_of_hashes() -> None:
    """The very same object, twice in one process' sense of order and in those of others."""
    world = World({CORE: Shape("koi8-r", "\r\n"), UTIL: Shape("koi8-r", "mixed", False), NOTES: Shape()}, EVERYTHING)
    try:
        command = [
            sys.executable,
            "-m",
            "patchkit",
            "--site",
            str(world.home),
            "--json",
            "apply",
            "--dry-run",
            "--diff",
        ]
        seen = set()
        for seed in ("0", "1", "2", "4711"):
            environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"}
            done = subprocess.run(
                [*command, *paths(world, list(world.specs))], capture_output=True, env=environment, check=True
            )
            assert json.loads(done.stdout)["ok"]
            seen.add(done.stdout)
        assert len(seen) == 1
    finally:
        world.close()


# -- the plan as a diff ------------------------------------------------------------------------------------------------


def patched(before: bytes | None, diff: bytes) -> bytes:
    """A unified diff laid on a file, with no offset and no fuzz, as POSIX says of `patch`."""
    old = [] if before is None else before.split(b"\n")
    lines = [line + b"\n" for line in old[:-1]] + ([old[-1]] if old and old[-1] else [])
    out: list[bytes] = []
    at = 0
    body = diff.split(b"\n")[2:]
    assert body.pop() == b""
    for number, line in enumerate(body):
        kind, content = line[:1], line[1:] + b"\n"
        if number + 1 < len(body) and body[number + 1].startswith(b"\\"):
            content = content[:-1]
        if kind == b"@":
            found = re.match(rb"@@ -(\d+)(?:,(\d+))? \+", line)
            assert found is not None
            start = int(found[1]) - (found[2] != b"0")
            out += lines[at:start]
            at = start
        elif kind in (b" ", b"-"):
            assert lines[at] == content
            out += [content] if kind == b" " else []
            at += 1
        elif kind == b"+":
            out.append(content)
        else:
            assert kind == b"\\"
    return b"".join(out + lines[at:])


@effort(40)
@given(shapes(), specs())
def test_the_diff_of_a_plan_makes_its_bytes(shapes: dict[str, Shape], specs: list[Spec]) -> None:
    with world_of(shapes, specs) as (world, site):
        for file in patchkit.plan(*paths(world, list(world.specs)), site=site).files:
            text = unified(file.path, file.before, file.after, exact=True)
            assert file.before != file.after
            assert patched(file.before, text.encode("utf-8", "surrogateescape")) == (file.after or b"")


def test_git_reads_the_diff_that_is_printed(tmp_path: Path) -> None:
    """Bytes that are no UTF-8, ``\\r\\n``, a lone ``\\r``, a last line without a break: git's own `apply` has them."""
    shape = {CORE: Shape("latin-1", "\r\n", False), UTIL: Shape("latin-1", "\r"), NOTES: Shape("utf-8", "mixed", False)}
    world = World(shape, EVERYTHING)
    try:
        command = [sys.executable, "-m", "patchkit", "--site", str(world.home), "apply", "--dry-run", "--diff"]
        done = subprocess.run([*command, *paths(world, list(world.specs))], capture_output=True, check=True)
        start = done.stdout.index(b"--- a/")
        for path, data in world.pristine("1.0").items():
            (tmp_path / path).parent.mkdir(exist_ok=True)
            (tmp_path / path).write_bytes(data)
        subprocess.run(
            ["git", "apply", "--whitespace=nowarn", "-"], input=done.stdout[start:], cwd=tmp_path, check=True
        )
        site = resolve(None, str(world.home), {})
        patchkit.apply(*paths(world, list(world.specs)), site=site)
        for path, data in world.found().items():
            assert (tmp_path / path).read_bytes() == data, path
        assert not (tmp_path / world.spare("p1")).exists()
    finally:
        world.close()
