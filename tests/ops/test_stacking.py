"""Several patches on one file: laid in order from pristine, taken out from anywhere in the stack."""

from __future__ import annotations

import os
import stat

import pytest
from support.bench import CORE, Bench
from support.dists import make_dist

from patchkit.state.ledger import PatchEntry

FIRST = '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'
SECOND = '[[edit]]\nfile = "demo/core.py"\nfind = "result = None"\nreplace = "result = 0"\n'
THIRD = '[[edit]]\nfile = "demo/core.py"\nfind = "import os\\n"\nreplace = "import sys\\n"\n'
ON_FIRST = '[[edit]]\nfile = "demo/core.py"\nfind = "y = 2 * x"\nreplace = "y = 2 * x + 0"\n'
CHANGES = {
    "first": ("y = x + x", "y = 2 * x"),
    "second": ("result = None", "result = 0"),
    "third": ("import os\n", "import sys\n"),
}


def expected(*names: str) -> bytes:
    text = CORE
    for name in names:
        text = text.replace(*CHANGES[name])
    return text.encode()


def stack(bench: Bench) -> None:
    bench.patch("first", FIRST)
    bench.patch("second", SECOND)
    bench.patch("third", THIRD)


def test_patches_are_stacked_on_one_file(bench: Bench) -> None:
    stack(bench)
    assert bench("apply", "first", "second").status == 0
    assert bench.read("demo/core.py") == expected("first", "second")
    assert bench("apply", "third").status == 0
    assert bench.read("demo/core.py") == expected("first", "second", "third")
    assert bench("check").status == 0


@pytest.mark.parametrize("gone", ["first", "second", "third"])
def test_one_is_taken_out_of_anywhere(bench: Bench, gone: str) -> None:
    stack(bench)
    bench("apply", "first", "second", "third")
    run = bench("revert", gone)
    assert (run.status, run.out) == (0, f"reverted {gone}  (demo 1.0)\n  demo/core.py\n")
    left = [name for name in ("first", "second", "third") if name != gone]
    assert bench.read("demo/core.py") == expected(*left)
    assert bench("check").status == 0
    assert bench("apply", gone).status == 0
    assert bench.read("demo/core.py") == expected("first", "second", "third")
    assert bench("revert", "--all").status == 0
    assert bench.pristine()


def test_mtime_and_mode_are_back_when_the_last_one_is_out(bench: Bench) -> None:
    core = bench.site / "demo/core.py"
    os.chmod(core, 0o604)
    os.utime(core, ns=(1_500_000_000_123_456_789, 1_500_000_000_123_456_789))
    stack(bench)
    bench("apply", "first", "second")
    bench("apply", "third")
    bench("revert", "second")
    assert os.stat(core).st_mtime_ns != 1_500_000_000_123_456_789
    bench("revert", "third", "first")
    now = os.stat(core)
    assert now.st_mtime_ns == 1_500_000_000_123_456_789
    assert stat.S_IMODE(now.st_mode) == 0o604
    assert bench.pristine()


def test_a_second_patch_may_stand_on_the_text_of_the_first(bench: Bench) -> None:
    bench.patch("first", FIRST)
    bench.patch("upon", ON_FIRST)
    assert bench("apply", "upon").status == 4  # not without the first
    assert bench("apply", "first", "upon").status == 0
    assert bench.read("demo/core.py") == CORE.replace("x + x", "2 * x + 0").encode()
    assert bench("revert", "upon").status == 0
    assert bench.read("demo/core.py") == expected("first")


def test_taking_out_what_another_stands_on_is_refused_with_advice(bench: Bench) -> None:
    bench.patch("first", FIRST)
    bench.patch("upon", ON_FIRST)
    bench("apply", "first", "upon")
    before = bench.read("demo/core.py")
    run = bench("revert", "first")
    assert run.status == 4
    assert run.err.startswith("error: upon, which is applied as well, would not fit any more with first taken out:\n")
    assert run.err.endswith("hint: take both out: patchkit revert first upon\n")
    assert bench.read("demo/core.py") == before
    assert bench("revert", "first", "upon").status == 0
    assert bench.pristine()


def test_a_changed_patch_that_breaks_one_above_is_refused_with_advice(bench: Bench) -> None:
    bench.patch("first", FIRST)
    bench.patch("upon", ON_FIRST)
    bench("apply", "first", "upon")
    bench.patch("first", FIRST.replace("2 * x", "x * 2"))
    run = bench("apply", "first")
    assert run.status == 4
    assert run.err.startswith(
        "error: upon, which is applied as well, would not fit any more with first as it is now:\n"
    )
    assert run.err.endswith("hint: take upon out first: patchkit revert upon\n")
    assert bench.read("demo/core.py") == CORE.replace("x + x", "2 * x + 0").encode()


def test_a_changed_patch_keeps_its_place_under_the_others(bench: Bench) -> None:
    bench.patch("first", FIRST)
    bench.patch("upon", ON_FIRST)
    bench("apply", "first", "upon")
    bench.patch("first", FIRST + THIRD)
    assert bench("apply", "first").status == 0
    text = CORE.replace("x + x", "2 * x + 0").replace("import os", "import sys")
    assert bench.read("demo/core.py") == text.encode()


def test_a_condition_looks_at_a_file_that_another_patch_changed(bench: Bench) -> None:
    bench.patch("first", FIRST)
    bench("apply", "first")
    bench.patch(
        "looks",
        '[[edit]]\nfile = "demo/util.py"\nfind = "X = 1\\n"\nreplace = "X = 2\\n"\n'
        '[[precondition]]\nfile = "demo/core.py"\nfind = "2 * x"\n',
    )
    run = bench("apply", "looks", "--diff")
    assert run.status == 0
    assert "core.py" not in run.out
    assert bench.read("demo/core.py") == expected("first")  # it is only looked at
    assert bench.read("demo/util.py") == b"X = 2\r\nY = 2\r\nZ = 3\r\n"
    assert bench("check").status == 0
    [_, looks] = bench.json("check").json["patches"]
    assert [file["path"] for file in looks["files"]] == ["demo/util.py"]
    # What it counted on cannot be taken away beneath it.
    run = bench("revert", "first")
    assert run.status == 4
    assert "hint: take both out: patchkit revert first looks\n" in run.err
    assert bench("revert", "looks").status == 0
    assert bench.read("demo/core.py") == expected("first")
    assert bench("revert", "first").status == 0
    assert bench.pristine()


def test_a_condition_on_a_file_does_not_take_part_in_its_change(bench: Bench) -> None:
    bench.patch(
        "looks",
        '[[edit]]\nfile = "demo/util.py"\nfind = "X = 1\\n"\nreplace = "X = 2\\n"\n'
        '[[postcondition]]\nfile = "demo/core.py"\nfind = "import os"\n',
    )
    bench.patch("first", FIRST)
    bench("apply", "looks")
    assert bench("apply", "first").status == 0
    assert bench("check").status == 0
    bench.write("demo/util.py", b"X = 2\r\nY = 3\r\nZ = 3\r\n")  # by hand; nothing to do with `first`
    assert bench("revert", "first").status == 0
    assert bench.read("demo/core.py") == CORE.encode()
    assert bench.read("demo/util.py") == b"X = 2\r\nY = 3\r\nZ = 3\r\n"


@pytest.mark.parametrize("named", [("first", "upon"), ("upon", "first")])
def test_after_orders_them_however_they_are_named(bench: Bench, named: tuple[str, str]) -> None:
    bench.patch("first", FIRST)
    bench.patch("upon", ON_FIRST, target='after = ["first"]')
    run = bench("apply", *named)
    assert run.status == 0
    assert bench.read("demo/core.py") == CORE.replace("x + x", "2 * x + 0").encode()
    assert [p["name"] for p in bench.json("check").json["patches"]] == ["first", "upon"]


def test_after_holds_against_what_is_applied_already(bench: Bench) -> None:
    bench.patch("first", FIRST)
    bench.patch(
        "later",
        '[[edit]]\nfile = "demo/core.py"\nfind = "return y"\nreplace = "return int(y)"\n',
        target='after = ["first"]',
    )
    assert bench("apply", "later").status == 0  # `after` orders, it does not require
    assert bench("apply", "first").status == 0
    assert [p["name"] for p in bench.json("check").json["patches"]] == ["first", "later"]


def test_a_circle_of_after(bench: Bench) -> None:
    bench.patch("first", FIRST, target='after = ["second"]')
    bench.patch("second", SECOND, target='after = ["first"]')
    run = bench.json("apply", "first", "second")
    assert (run.status, run.error["code"]) == (3, "after-cycle")
    assert run.error["message"] == "the patches first, second each want to come after another of them"
    assert bench.pristine()
    assert bench("apply", "first").status == 0  # alone it has nothing to come after


@pytest.mark.parametrize("says", ["first", "second"])
def test_a_conflict_within_one_call(bench: Bench, says: str) -> None:
    other = {"first": "second", "second": "first"}[says]
    bench.patch("first", FIRST, target=f'conflicts = ["{other}"]' if says == "first" else "")
    bench.patch("second", SECOND, target=f'conflicts = ["{other}"]' if says == "second" else "")
    for order in (("first", "second"), ("second", "first")):
        run = bench.json("apply", *order)
        assert (run.status, run.error["code"], run.error["hint"]) == (3, "conflict", "apply one of them")
    assert bench.pristine()


@pytest.mark.parametrize("says", ["first", "second"])
def test_a_conflict_with_what_is_applied(bench: Bench, says: str) -> None:
    bench.patch("first", FIRST, target='conflicts = ["second"]' if says == "first" else "")
    bench.patch("second", SECOND, target='conflicts = ["first"]' if says == "second" else "")
    bench("apply", "first")
    run = bench.json("apply", "second")
    assert (run.status, run.error["code"]) == (3, "conflict")
    assert run.error["message"] == "second: conflicts with first, which is applied"
    assert run.error["hint"] == "take the other out first: patchkit revert first"
    bench("revert", "first")
    assert bench("apply", "second").status == 0


def test_a_lost_patch_below_is_healed_with_the_next_one(bench: Bench) -> None:
    stack(bench)
    bench("apply", "first")
    bench.install("1.0")
    assert bench("apply", "second").status == 0
    assert bench.read("demo/core.py") == expected("first", "second")
    assert bench("check").status == 0


def test_only_patches_of_the_same_distribution_are_read_for_conditions(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A condition looks at files of its own distribution; a hundred patches elsewhere cost an apply nothing."""
    from patchkit.ops.workspace import Workspace

    make_dist(bench.site, "other", "1.0", {"other.py": "A = 1\nB = 1\n"})
    condition = '[[precondition]]\nfile = "other.py"\nfind = "B = 1"\n'
    bench.patch(
        "elsewhere", '[[edit]]\nfile = "other.py"\nfind = "A = 1"\nreplace = "A = 2"\n' + condition, requirement="other"
    )
    bench.patch("here", '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n')
    bench("apply", "elsewhere")
    read: list[str] = []
    real = Workspace.patch_data

    def patch_data(self: Workspace, recorded: PatchEntry) -> bytes:
        read.append(recorded.name)
        return real(self, recorded)

    monkeypatch.setattr(Workspace, "patch_data", patch_data)
    assert bench("apply", "here").status == 0
    assert read == []
    bench.patch("later", '[[edit]]\nfile = "other.py"\nfind = "B = 1"\nreplace = "B = 2"\n', requirement="other")
    assert bench("apply", "later").status == 0
    assert "elsewhere" in read
    assert "here" not in read
