"""What is to be said beside the bytes: links that came later, edits that imports pass over; and what that costs."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from support.bench import CORE, Bench
from support.dists import make_dist

DOUBLE = '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'
DOUBLED = CORE.replace("x + x", "2 * x")


def reason(bench: Bench) -> tuple[str, str]:
    [patch] = bench.json("check", "p").json["patches"]
    return patch["state"], patch["reason"] or ""


def twin(bench: Bench) -> None:
    """A copy of the folder as ``cp -al`` makes it."""
    shutil.copytree(bench.site, bench.root / "twin", copy_function=os.link)


def by_hand(bench: Bench, old: str, new: str, *, in_place: bool) -> None:
    path = bench.site / "demo/core.py"
    data = path.read_text().replace(old, new).encode()
    if in_place:
        path.write_bytes(data)
    else:
        bench.write("demo/core.py", data)


@pytest.mark.parametrize("installer", ["pip", "uv"])
@pytest.mark.parametrize("in_place", [True, False])
def test_an_edit_by_hand_that_a_copy_shares_by_links_is_no_taint(bench: Bench, in_place: bool, installer: str) -> None:
    bench.patch("p", DOUBLE)
    bench("apply", "p")
    (bench.site / "demo-1.0.dist-info/INSTALLER").write_text(installer)
    by_hand(bench, "import os", "import os, sys", in_place=in_place)
    twin(bench)
    assert reason(bench) == (
        "modified",
        "demo/core.py was edited since: see `patchkit diff p`; outside of what patchkit wrote: `patchkit revert p` "
        "keeps that",
    )
    assert "tainted" not in bench("list").out
    bench.patch("q", '[[edit]]\nfile = "demo/core.py"\nfind = "result = None"\nreplace = "result = 0"\n')
    assert bench.json("apply", "q").error["code"] == "modified"
    assert "tainted" not in bench("doctor").out
    assert bench("revert", "p").status == 0
    assert bench.read("demo/core.py") == CORE.replace("import os", "import os, sys").encode()


def test_an_edit_in_place_of_what_patchkit_wrote_is_no_taint(bench: Bench) -> None:
    bench.patch("p", DOUBLE)
    bench("apply", "p")
    twin(bench)
    by_hand(bench, "2 * x", "3 * x", in_place=True)
    state, why = reason(bench)
    assert (state, "tainted" in why, "`patchkit revert --force p` discards that" in why) == ("modified", False, True)


def test_wrong_bytes_that_came_with_links_are_tainted(bench: Bench) -> None:
    bench.patch("p", DOUBLE)
    bench("apply", "p")
    (bench.root / "elsewhere.py").write_bytes(b"X = 1\n")
    (bench.site / "demo/core.py").unlink()
    os.link(bench.root / "elsewhere.py", bench.site / "demo/core.py")
    state, why = reason(bench)
    assert state == "modified"
    assert why.startswith("tainted: demo/core.py is not as installed (RECORD's hash), and it has 1 other name")
    assert "cache" not in why.replace("--no-cache-dir", "")  # the installer is pip, which links nothing
    assert "a twin was written to with it" in why
    (bench.site / "demo-1.0.dist-info/INSTALLER").write_text("pdm")
    assert "the cache it was installed from, or a twin, was written to with it" in reason(bench)[1]


@pytest.mark.parametrize("kind", ["module before a namespace package", "PYTHONPATH"])
def test_check_and_list_say_what_apply_says(bench: Bench, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    if kind == "PYTHONPATH":
        (bench.root / "first" / "demo").mkdir(parents=True)
        (bench.root / "first/demo/__init__.py").touch()
        monkeypatch.setenv("PYTHONPATH", str(bench.root / "first"))
    else:
        bench.files = {path: data for path, data in bench.files.items() if path != "demo/__init__.py"}
        bench.install("1.0")
        (bench.site / "demo.py").write_text("")
    bench.patch("p", DOUBLE)
    note = "so that this edit has no effect on them"
    [said] = [one for one in bench.json("apply", "p").json["notes"] if note in one]
    assert said.startswith("demo/core.py: imports take ")
    assert reason(bench) == ("applied", said)
    [listed] = [patch for patch in bench.json("list").json["patches"] if patch["name"] == "p"]
    assert (listed["state"], listed["reason"]) == ("applied", said)
    assert bench.json("apply", "p").json["notes"] == [said]


def counted(monkeypatch: pytest.MonkeyPatch, *names: str) -> list[str]:
    """The paths that these functions of ``os`` are asked about from now on."""
    asked: list[str] = []

    def counting(name: str) -> None:
        real = getattr(os, name)

        def count(path: str, *rest: object, **options: object) -> object:
            asked.append(f"{name} {path}")
            return real(path, *rest, **options)

        monkeypatch.setattr(os, name, count)

    for name in names:
        counting(name)
    return asked


def test_a_clean_check_looks_at_each_file_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    make_dist(bench.site, "data", "1.0", {"data/one.txt": "old\n", "data/two.txt": "old\n"})
    bench.patch("p", DOUBLE)
    bench.patch(
        "q",
        '[[edit]]\nfile = ["data/one.txt", "data/two.txt"]\nfind = "old"\nreplace = "new"\n',
        requirement="data",
    )
    assert bench("apply", "p", "q").status == 0
    asked = counted(monkeypatch, "stat", "lstat", "listdir")
    assert bench("check").status == 0
    for path in ("demo/core.py", "data/one.txt", "data/two.txt"):
        assert sum(one.endswith(f"stat {bench.site / path}") for one in asked) == 1, (path, asked)
    assert asked.count(f"listdir {bench.site / 'demo'}") == 1
    assert f"listdir {bench.site / 'data'}" not in asked  # no import takes anything from there


def test_the_cache_of_uv_is_listed_once_for_a_distribution(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"demo/m{number}.py" for number in range(40)]
    bench.files = {"demo/__init__.py": "", **dict.fromkeys(names, "X = 1\n")}
    bench.install("1.0")
    (bench.site / "demo-1.0.dist-info/INSTALLER").write_text("uv")
    shelf = tmp_path / "uv" / "archive-v0"
    for number in range(30):
        (shelf / str(number)).mkdir(parents=True)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    listed = ", ".join(f'"{name}"' for name in names)
    bench.patch("p", f'[[edit]]\nfile = [{listed}]\nfind = "X = 1"\nreplace = "X = 2"\n')
    assert bench("apply", "p").status == 0
    twin(bench)
    asked = counted(monkeypatch, "stat", "listdir")
    assert reason(bench) == ("applied", "")
    assert asked.count(f"listdir {shelf}") == 1
    assert len([one for one in asked if str(shelf / "7") in one]) == 1
    # Where the cache has what the patch writes, one file of them is named.
    (shelf / "7" / "demo-1.0.dist-info").mkdir()
    (shelf / "7" / "demo").mkdir()
    for name in names:
        (shelf / "7" / name).write_text("X = 2\n")
    assert reason(bench)[1].count("tainted:") == 1
