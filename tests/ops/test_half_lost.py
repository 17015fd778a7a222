"""After a reinstall, a patch that comes back in one of its files comes back in all of them: half a patch is none."""

from __future__ import annotations

from collections.abc import Callable

from support.bench import Bench

Maker = Callable[[dict[str, str | bytes]], Bench]


def patched(make_bench: Maker) -> Bench:
    text = "import os\nY = 2\ny = x + x\n"
    bench = make_bench({"demo/core.py": text, "demo/util.py": text})
    bench.patch("first", '[[edit]]\nfile = "demo/core.py"\nfind = "x + x"\nreplace = "2 * x"\n')
    bench.patch(
        "second",
        '[[edit]]\nfile = "demo/core.py"\nfind = "import os"\nreplace = "import sys"\n'
        '[[edit]]\nfile = "demo/util.py"\nfind = "Y = 2"\nreplace = "Y = 3"\n',
    )
    assert bench("apply", "first", "second").status == 0
    bench.install("1.0")
    return bench


def states(bench: Bench) -> dict[str, str]:
    return {patch["name"]: patch["state"] for patch in bench.json("check").json["patches"]}


def test_apply_of_one_brings_all_of_the_other_back(make_bench: Maker) -> None:
    bench = patched(make_bench)
    done = bench("apply", "first")
    assert done.status == 0
    assert "second: is back in place as well" in done.err
    assert bench.read("demo/core.py") == b"import sys\nY = 2\ny = 2 * x\n"
    assert bench.read("demo/util.py") == b"import os\nY = 3\ny = x + x\n"
    assert states(bench) == {"first": "applied", "second": "applied"}


def test_revert_of_one_brings_all_of_the_other_back(make_bench: Maker) -> None:
    bench = patched(make_bench)
    assert "second: would be back in place as well" in bench("revert", "first", "--dry-run").err
    assert bench.pristine()
    assert bench("revert", "first").status == 0
    assert bench.read("demo/core.py") == b"import sys\nY = 2\ny = x + x\n"
    assert bench.read("demo/util.py") == b"import os\nY = 3\ny = x + x\n"
    assert states(bench) == {"second": "applied"}


def test_an_edit_by_hand_stays_what_it_is(make_bench: Maker) -> None:
    bench = patched(make_bench)
    bench.write("demo/util.py", b"by hand\n")
    assert bench("apply", "first").status == 0
    assert bench.read("demo/util.py") == b"by hand\n"
