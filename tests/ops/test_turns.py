"""One file by turns of several patches: edited, taken away, added; in the end the release's bytes are there."""

from __future__ import annotations

import os

import pytest
from support.bench import UTIL, Bench

REMOVE = '[[remove]]\nfile = "demo/util.py"\n'
EDIT = '[[edit]]\nfile = "demo/util.py"\nfind = "X = 1"\nreplace = "X = 9"\n'
EDITS = {"edit": EDIT, "remove": REMOVE, "add": '[[add]]\nfile = "demo/util.py"\ncontent = "A = 1\\n"\n'}


def there(bench: Bench, path: str = "demo/util.py") -> bool:
    return os.path.lexists(bench.site / path)


def project(bench: Bench, *names: str) -> None:
    text = f"[tool.patchkit]\npatches = [{str(bench.patches)!r}]\napply = {list(names)!r}\n"
    (bench.root / "work" / "pyproject.toml").write_text(text)


@pytest.mark.parametrize("second", ["edit", "remove", "add"])
@pytest.mark.parametrize("first", ["edit", "remove", "add"])
def test_one_file_by_turns_of_a_project_s_list(bench: Bench, first: str, second: str) -> None:
    """Whatever takes the place of what: in the end the release's bytes are there."""
    bench.patch("first", EDITS[first])
    bench.patch("second", EDITS[second])
    for names in (["first"], ["second"], ["first", "second"], []):
        project(bench, *names)
        run = bench("sync")
        wanted = {"edit": UTIL.replace("X = 1", "X = 9").encode(), "remove": None}
        if names != ["first", "second"] and "add" not in (first, second):
            assert run.status == 0, run.err
            left = wanted[{"first": first, "second": second}[names[0]]] if names else UTIL.encode()
            assert (bench.read("demo/util.py") if there(bench) else None) == left
        assert not there(bench) or bench.read("demo/util.py") != b"A = 1\n"
    assert bench.read("demo/util.py") == UTIL.encode()
    assert not os.path.exists(bench.site / ".patchkit" / "ledger.json")


@pytest.mark.parametrize("second", ["edit", "remove", "add"])
@pytest.mark.parametrize("first", ["edit", "remove"])
def test_one_file_by_turns_of_one_patch_file(bench: Bench, first: str, second: str) -> None:
    bench.patch("mine", EDITS[first])
    assert bench("apply", "mine").status == 0
    bench.patch("mine", EDITS[second])
    assert bench("apply", "mine").status == (5 if second == "add" else 0)
    assert bench("revert", "mine").status == 0
    assert bench.read("demo/util.py") == UTIL.encode()


def test_a_file_of_the_release_that_is_missing_is_not_added(bench: Bench) -> None:
    bench.patch("mine", EDITS["add"])
    (bench.site / "demo/util.py").unlink()
    done = bench.json("apply", "mine")
    assert (done.status, done.error["code"]) == (5, "exists")
    assert not there(bench)
