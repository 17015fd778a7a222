"""A call that is refused changes nothing at all, whatever stood before it in the call and in the site."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties.effort import effort
from properties.test_life import shapes, specs
from properties.world import CORE, UTIL, Shape, Spec, World

import patchkit
from patchkit.errors import PatchkitError
from patchkit.site.environment import resolve

LAST = f'[[edit]]\nfile = "{UTIL}"\nfind = "last = 0"\nreplace = "x"'
#: What is wrong with a patch: the code of the refusal, its requirement and its tables.
WRONG: dict[str, tuple[str, str]] = {
    "anchor-missing": ("demo", f'[[edit]]\nfile = "{CORE}"\nfind = "nowhere"\nreplace = "x"'),
    "anchor-count": ("demo", f'[[edit]]\nfile = "{CORE}"\nfind = "filler_0"\nreplace = "x"\ncount = 2'),
    "scope-missing": ("demo", f'[[edit]]\nfile = "{CORE}"\nscope = "nobody"\nfind = "os"\nreplace = "x"'),
    "inside-missing": ("demo", f'[[edit]]\nfile = "{CORE}"\ninside = "if q:"\nfind = "os"\nreplace = "x"'),
    "overlap": (
        "demo",
        f'[[edit]]\nfile = "{UTIL}"\nfind = "last = 0"\nreplace = "x"\n'
        f'[[edit]]\nfile = "{UTIL}"\nfind = "last ="\nreplace = "y ="',
    ),
    "syntax": ("demo", f'[[edit]]\nfile = "{UTIL}"\nfind = "last = 0"\nreplace = "last = ("'),
    "precondition": (
        "demo",
        f'{LAST}\n[[precondition]]\nfile = "{CORE}"\nfind = "nowhere"',
    ),
    "postcondition": (
        "demo",
        f'{LAST}\n[[postcondition]]\nfile = "{UTIL}"\nfind = "x"\ncount = 0',
    ),
    "not-in-distribution": ("demo", '[[edit]]\nfile = "demo/none.py"\nfind = "a"\nreplace = "x"'),
    "exists": ("demo", f'[[add]]\nfile = "{CORE}"\ncontent = "x = 1"'),
    "place": ("demo", f'[[edit]]\nfile = "{CORE}"\nmatch = "\'1.0\'"\ninsert_after = "x"'),
    "versions": ("demo", f'[[edit]]\nfile = "{CORE}"\nversions = ">=9"\nfind = "os"\nreplace = "x"'),
    "version": ("demo>=9", f'[[edit]]\nfile = "{CORE}"\nfind = "os"\nreplace = "x"'),
    "not-installed": ("nothing-like-it", f'[[edit]]\nfile = "{CORE}"\nfind = "os"\nreplace = "x"'),
    "pattern": ("demo", f'[[edit]]\nfile = "{CORE}"\nmatch = "f($"\nreplace = "x"'),
    "probe": ("demo", f'[[edit]]\nfile = "{CORE}"\nscope = "VERSION"\nprobe = "x"'),
}
#: Where several things are wrong at once, which of them is told is not what is tested here.
LIKE = {"probe": {"probe", "scope-missing"}}


def whole(home: Path) -> str:
    """Of everything below ``home``, the ledger and the folders' own times included, all but the lock and its doing."""
    seen = []
    for path in sorted(home.rglob("*")):
        if path.name == "lock":
            continue
        stat = path.lstat()
        times = 0 if path.name == ".patchkit" else stat.st_mtime_ns
        seen.append((str(path), stat.st_mode, times, stat.st_ino, path.read_bytes() if path.is_file() else b""))
    return hashlib.sha256(repr(seen).encode()).hexdigest()


@pytest.fixture(autouse=True)
def _no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here stages a power cut."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@effort(60)
@given(shapes(), specs(), st.sampled_from(sorted(WRONG)), st.integers(0, 5), st.integers(0, 5))
def test_nothing_changes(shapes: dict[str, Shape], specs: list[Spec], code: str, on: int, first: int) -> None:
    world = World(shapes, [spec._replace(probe=False, add=True) for spec in specs if not spec.on_top])
    try:
        site = resolve(None, str(world.home), {})
        names = list(world.specs)
        applied = names[: on % (len(names) + 1)]
        together = [name for name in names if name not in applied][: first % 3]
        if applied:
            patchkit.apply(*(str(world.folder / f"{name}.toml") for name in applied), site=site)
        requirement, tables = WRONG[code]
        wrong = world.folder / "wrong.toml"
        wrong.write_text(
            f'schema = 1\nname = "wrong"\nsummary = "s"\n[target]\nrequirement = "{requirement}"\n{tables}\n'
        )
        calls = [str(world.folder / f"{name}.toml") for name in together]
        before = whole(world.home)
        for attempt in ([*calls, str(wrong)], [str(wrong), *calls]):
            for run in (patchkit.plan, patchkit.apply):
                with pytest.raises(PatchkitError) as caught:
                    run(*attempt, site=site)
                assert caught.value.code in LIKE.get(code, {code}), caught.value
                assert whole(world.home) == before, f"{run.__name__} changed something"
    finally:
        world.close()
