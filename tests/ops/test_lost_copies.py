"""Lost and damaged copies of the ledger: what patchkit falls back to, in what order, and when it gives up."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.bench import CORE, DEMO, Bench
from support.dists import make_wheel

from patchkit.state.ledger import Ledger, save

DOUBLE = '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'
STOP = '[[edit]]\nfile = "demo/core.py"\nfind = "result = None"\nreplace = "result = 0"\n'
UTIL_X = '[[edit]]\nfile = "demo/util.py"\nfind = "X = 1\\nY = 2\\n"\nreplace = "X = 10\\n"\n'
DELETE = '[[edit]]\nfile = "demo/core.py"\nfind = "import os\\n"\ndelete = true\n'
SYNTAX = '[[edit]]\nfile = "demo/core.py"\nscope = "double"\nmatch = "$A + $A"\nreplace = "2 * $A"\n'
PROBE = '[[edit]]\nfile = "demo/core.py"\nscope = "double"\nprobe = "double ran"\n'
OLD = 1_400_000_000_000_000_000


def lose(bench: Bench, *contents: bytes) -> None:
    """Remove the blobs of ``contents``, or all."""
    names = {hashlib.sha256(data).hexdigest() for data in contents}
    for path in (bench.site / ".patchkit" / "blobs").iterdir():
        if not names or path.name in names:
            path.unlink()


def forget_what_was_replaced(bench: Bench) -> None:
    """As a ledger from before that was recorded, or one with long replacements."""
    ledger = Ledger.load(str(bench.site))
    files = {
        key: entry._replace(
            layers=tuple(
                layer._replace(splices=tuple((*splice[:3], None) for splice in layer.splices)) for layer in entry.layers
            )
        )
        for key, entry in ledger.files.items()
    }
    save(str(bench.site), ledger._replace(files=files))


def states(bench: Bench) -> list[tuple[str, str]]:
    return [(patch["name"], patch["state"]) for patch in bench.json("check").json["patches"]]


KINDS = {
    "replace": DOUBLE,
    "delete": DELETE,
    "crlf": UTIL_X,
    "syntax": SYNTAX,
    "insertion": PROBE,
    "several": DOUBLE + STOP + UTIL_X,
}


@pytest.mark.parametrize("options", [(), ("--force",)], ids=["", "force"])
@pytest.mark.parametrize("kind", KINDS)
def test_revert_with_every_copy_lost(bench: Bench, kind: str, options: tuple[str, ...]) -> None:
    bench.patch("one", KINDS[kind])
    bench.patch("same", '[[edit]]\nfile = "demo/core.py"\nfind = "    return y"\nreplace = "    return +y"\n')
    os.utime(bench.site / "demo/core.py", ns=(OLD, OLD))
    assert bench("apply", "one", "same").status == 0
    lose(bench)
    assert bench("revert", "one", "same", *options).status == 0
    assert bench.pristine()
    assert os.stat(bench.site / "demo/core.py").st_mtime_ns == OLD


@pytest.mark.parametrize("kind", KINDS)
def test_the_ledger_knows_what_was_replaced(bench: Bench, kind: str) -> None:
    """Not even the patch file is needed."""
    path = bench.patch("one", KINDS[kind])
    bench("apply", "one")
    path.unlink()
    lose(bench)
    assert bench("revert", "one").status == 0
    assert bench.pristine()


def test_a_text_edit_is_turned_round_where_the_ledger_does_not_know(bench: Bench) -> None:
    bench.patch("several", DOUBLE + UTIL_X)
    bench("apply", "several")
    forget_what_was_replaced(bench)
    lose(bench)
    assert bench("revert", "several").status == 0
    assert bench.pristine()


def test_a_long_replacement_is_not_in_the_ledger(make_bench: Callable[..., Bench]) -> None:
    text = "".join(f"line_{number} = {number}\n" for number in range(2000))
    bench = make_bench({**DEMO, "demo/long.py": text})
    edit = f"find = '''\n{text}'''\ndelete = true\n"
    bench.patch("long", f'[[edit]]\nfile = "demo/long.py"\n{edit}')
    assert bench("apply", "long").status == 0
    assert bench.read("demo/long.py") == b""
    assert (bench.site / ".patchkit/ledger.json").stat().st_size < 4000
    assert bench("revert", "long").status == 0
    assert bench.pristine()


@pytest.mark.parametrize("kind", ["damaged", "empty"])
def test_revert_with_damaged_copies(bench: Bench, kind: str) -> None:
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    for path in (bench.site / ".patchkit" / "blobs").iterdir():
        path.write_bytes(b"" if kind == "empty" else path.read_bytes() + b"x")
    assert bench("revert", "double").status == 0
    assert bench.pristine()


def test_one_of_a_stack_with_every_copy_lost(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench.patch("stop", STOP)
    bench("apply", "double", "stop")
    lose(bench)
    assert bench("revert", "double").status == 0
    assert bench.read("demo/core.py") == CORE.replace("result = None", "result = 0").encode()
    assert states(bench) == [("stop", "applied")]
    assert bench("revert", "stop").status == 0
    assert bench.pristine()


def test_an_unconcerned_patch_does_not_stand_in_the_way(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench.patch("util", UTIL_X)
    bench("apply", "double", "util")
    lose(bench)
    assert bench("revert", "double").status == 0
    assert bench.read("demo/core.py") == CORE.encode()
    assert bench("revert", "util").status == 0
    assert bench.pristine()


def test_the_patch_file_from_the_patches_folder(bench: Bench, tmp_path: Path) -> None:
    """Not from where it was applied: that is gone."""
    elsewhere = tmp_path / "elsewhere" / "double.toml"
    elsewhere.parent.mkdir()
    shutil.copy(bench.patch("double", DOUBLE), elsewhere)
    (bench.patches / "double.toml").unlink()
    assert bench("apply", str(elsewhere)).status == 0
    forget_what_was_replaced(bench)
    lose(bench)
    shutil.move(elsewhere, bench.patches / "double.toml")
    assert bench("revert", "double").status == 0
    assert bench.pristine()


def test_nothing_is_guessed_from_an_edited_patch_file(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    written = bench.read("demo/core.py")
    bench.patch("double", DOUBLE.replace("x + x", "x * 2"))
    forget_what_was_replaced(bench)
    lose(bench)
    run = bench.json("revert", "double")
    assert (run.status, run.error["code"]) == (5, "corrupt")
    assert "the original of demo/core.py" in run.error["message"]
    again = f"pip install --target {bench.site} --upgrade --no-deps --no-cache-dir demo==1.0"
    assert f"{again}, then: patchkit apply double" in run.error["hint"]
    assert "--fetch" in run.error["hint"]
    assert bench.read("demo/core.py") == written


def test_the_advice_works(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    bench.patch("double", DOUBLE.replace("2 * x", "x * 2"))
    forget_what_was_replaced(bench)
    lose(bench)
    assert bench("revert", "double").status == 5
    bench.install("1.0")
    assert bench("apply", "double").status == 0
    assert states(bench) == [("double", "applied")]
    assert bench("revert", "double").status == 0
    assert bench.pristine()


def in_cache(bench: Bench, files: dict[str, str | bytes]) -> None:
    """Put a wheel of demo 1.0 where a fetch keeps it."""
    wheel = make_wheel(bench.root / "cache" / "wheels" / "demo" / "1.0", "demo", "1.0", files)
    wheel.with_name(wheel.name + ".sha256").write_text(hashlib.sha256(wheel.read_bytes()).hexdigest())


def hopeless(bench: Bench) -> None:
    """Everything is lost that could tell what ``double`` replaced."""
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    (bench.patches / "double.toml").unlink()
    forget_what_was_replaced(bench)
    lose(bench)
    assert bench("revert", "double").status == 5


@pytest.mark.parametrize("options", [(), ("--force",)], ids=["", "force"])
def test_the_released_wheel_is_the_last_resort(bench: Bench, options: tuple[str, ...]) -> None:
    hopeless(bench)
    in_cache(bench, dict(DEMO))
    assert bench("revert", "double", "--fetch", *options).status == 0
    assert bench.pristine()


def test_a_wheel_of_another_build_is_refused(bench: Bench) -> None:
    hopeless(bench)
    in_cache(bench, {**DEMO, "demo/core.py": CORE.replace("A module", "Another build")})
    written = bench.read("demo/core.py")
    run = bench.json("revert", "double", "--fetch")
    assert (run.status, run.error["code"]) == (5, "fetch")
    assert "demo 1.0 has other bytes" in run.error["message"]
    assert bench.read("demo/core.py") == written


def test_a_wheel_of_another_build_is_no_pristine_file_either(bench: Bench) -> None:
    """No ledger at all: the file was edited, and RECORD says that the wheel is not what was installed."""
    in_cache(bench, {**DEMO, "demo/core.py": CORE.replace("A module", "Another build")})
    bench.patch("stop", STOP)
    bench.write("demo/core.py", CORE.replace("A module", "Another build").encode())
    run = bench.json("apply", "stop", "--fetch")
    assert (run.status, run.error["code"]) == (5, "fetch")


def test_hand_edits_with_every_copy_lost(bench: Bench) -> None:
    """What they were made on is lost as well: only discarding them is left."""
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    edited = bench.read("demo/core.py") + b"MINE = 1\n"
    bench.write("demo/core.py", edited)
    lose(bench)
    assert bench.json("revert", "double").error["code"] == "corrupt"
    in_cache(bench, dict(DEMO))
    assert bench.json("revert", "double", "--fetch").error["code"] == "corrupt"
    assert bench.read("demo/core.py") == edited
    assert bench("revert", "double", "--fetch", "--force").status == 0
    assert bench.pristine()


def test_hand_edits_with_the_original_lost(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench("apply", "double")
    bench.write("demo/core.py", bench.read("demo/core.py") + b"MINE = 1\n")
    lose(bench, CORE.encode())
    assert bench("revert", "double").status == 0
    assert bench.read("demo/core.py") == CORE.encode() + b"MINE = 1\n"


def test_a_remaining_patch_whose_file_is_lost(bench: Bench) -> None:
    bench.patch("double", DOUBLE)
    bench.patch("stop", STOP)
    bench("apply", "double", "stop")
    data = (bench.patches / "stop.toml").read_bytes()
    (bench.patches / "stop.toml").unlink()
    lose(bench, data)
    run = bench.json("revert", "double")
    assert (run.status, run.error["code"]) == (5, "corrupt")
    assert "the patch stop" in run.error["message"]
    assert f"{bench.patches}/stop.toml" in run.error["hint"]
    assert "patchkit revert stop" in run.error["hint"]
    assert bench("revert", "double", "stop").status == 0
    assert bench.pristine()


@pytest.mark.parametrize("how", [("apply", "double", "util")])
def test_apply_heals(bench: Bench, how: tuple[str, ...]) -> None:
    bench.patch("double", DOUBLE)
    bench.patch("util", UTIL_X)
    bench("apply", "double", "util")
    before = sorted(path.name for path in (bench.site / ".patchkit" / "blobs").iterdir())
    lose(bench)
    assert bench(*how).status == 0
    assert sorted(path.name for path in (bench.site / ".patchkit" / "blobs").iterdir()) == before
    assert [state for _, state in states(bench)] == ["applied", "applied"]
