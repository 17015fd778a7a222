"""Commands in hints, to be typed as they stand, also where a path has blanks."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from support.bench import DEMO, Bench

NAME = "with blanks & more"


@pytest.fixture
def spaced(bench: Bench) -> Bench:
    """A site in a folder whose name a shell would take apart."""
    bench.site = bench.root / NAME / "site-packages"
    bench.install("1.0", DEMO)
    return bench


def removed(hint: str) -> list[str]:
    """The arguments of the ``rm`` in a hint."""
    found = re.search(r"\(rm (.*?)\)", hint)
    assert found is not None
    return shlex.split(found[1])


def test_the_file_that_is_in_the_way(spaced: Bench) -> None:
    spaced.patch("adds", '[[add]]\nfile = "demo/new.py"\ncontent = "A = 1\\n"\n')
    path: Path = spaced.site / "demo" / "new.py"
    path.write_text("A = 2\n")
    assert removed(spaced.json("apply", "adds").error["hint"]) == [str(path)]


def test_the_link_that_leads_away(spaced: Bench) -> None:
    spaced.patch("mine", '[[edit]]\nfile = "demo/core.py"\nfind = "x + x"\nreplace = "2 * x"\n')
    assert spaced("apply", "mine").status == 0
    path: Path = spaced.site / "demo" / "core.py"
    path.unlink()
    (spaced.root / "else.txt").write_text("else\n")
    path.symlink_to(spaced.root / "else.txt")
    assert removed(spaced.json("create", "mine", "demo", "--overwrite").error["hint"]) == [str(path)]
