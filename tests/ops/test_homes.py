"""A site of two folders: each keeps the ledger of the distributions that it holds."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support.bench import CORE, Bench
from support.dists import make_dist

import patchkit
from patchkit.errors import SiteError
from patchkit.site.environment import Site
from patchkit.state import transaction

DOUBLE = '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'
MOD_V = '[[edit]]\nfile = "other/mod.py"\nfind = "V = 1"\nreplace = "V = 2"\n'
DOUBLED = CORE.replace("x + x", "2 * x").encode()
OTHER = {"other/__init__.py": "", "other/mod.py": "V = 1\n"}


class Two:
    """``bench.site`` is the default home and holds ``demo``; ``user`` comes first on the path and holds ``other``."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.user = bench.root / "user-site"
        make_dist(self.user, "other", "1.0", OTHER)
        bench.patch("double", DOUBLE)
        bench.patch("mod", MOD_V, requirement="other")
        self.paths = [str(self.user), str(bench.site)]

    @property
    def site(self) -> Site:
        return Site(
            home=str(self.bench.site), paths=self.paths, interpreter=None, python_version=None, label="two folders"
        )

    def mod(self) -> str:
        return (self.user / "other/mod.py").read_text()


@pytest.fixture
def two(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Two:
    made = Two(bench)
    monkeypatch.setattr("patchkit.cli.context.resolve", lambda python, directory: made.site)
    monkeypatch.setattr("patchkit.ops.catalog.shipped_folder", lambda: str(bench.root / "shipped"))
    return made


def states(bench: Bench, *names: str) -> list[tuple[str, str, str]]:
    patches = bench.json("check", *names).json["patches"]
    return [(patch["name"], patch["state"], patch["site"]) for patch in patches]


def both(two: Two) -> None:
    assert two.bench("apply", "double").status == 0
    assert two.bench("apply", "mod").status == 0


def test_each_patch_is_recorded_where_its_distribution_lies(two: Two) -> None:
    bench = two.bench
    both(two)
    assert [p["name"] for p in json.loads((two.user / ".patchkit/ledger.json").read_text())["patches"]] == ["mod"]
    assert [p["name"] for p in json.loads((bench.site / ".patchkit/ledger.json").read_text())["patches"]] == ["double"]
    assert states(bench) == [("double", "applied", str(bench.site)), ("mod", "applied", str(two.user))]
    assert bench("check").out == (
        f"double  applied     demo 1.0  in {bench.site}\nmod     applied     other 1.0  in {two.user}\n"
    )
    assert bench("check", "mod").out == "mod  applied     other 1.0\n"
    document = bench.json("check", "mod").json
    assert document["site"]["path"] == str(bench.site)


def test_another_site_over_the_same_folder_sees_the_same_record(two: Two) -> None:
    bench = two.bench
    both(two)
    third = bench.root / "third"
    third.mkdir()
    two.paths = [str(third), str(two.user)]
    assert [name for name, _, _ in states(bench, "mod")] == ["mod"]
    assert bench.json("apply", "mod").json["patches"][0]["action"] == "unchanged"
    assert bench("revert", "mod").status == 0
    assert two.mod() == "V = 1\n"
    assert not (third / ".patchkit").exists()


def test_what_is_not_importable_here_is_not_applied_here(two: Two) -> None:
    """The same root ledger, seen by somebody with another user site."""
    both(two)
    two.paths = [str(two.bench.site)]
    assert [name for name, _, _ in states(two.bench)] == ["double"]
    run = two.bench.json("apply", "mod")
    assert (run.status, run.error["code"]) == (3, "not-installed")


def test_one_call_for_two_folders_is_refused_before_anything(two: Two) -> None:
    bench = two.bench
    run = bench.json("apply", "double", "mod")
    assert (run.status, run.error["code"]) == (5, "several-homes")
    assert f"  double: {bench.site}\n  mod: {two.user}" in run.error["message"]
    assert run.error["hint"] == "one call for each folder:\npatchkit apply double\npatchkit apply mod"
    assert run.error["homes"] == {str(bench.site): ["double"], str(two.user): ["mod"]}
    assert bench.pristine()
    assert two.mod() == "V = 1\n"
    assert not (bench.site / ".patchkit").exists()
    assert not (two.user / ".patchkit").exists()
    with pytest.raises(SiteError, match="different folders"):
        patchkit.apply("double", "mod", site=two.site, patches=[str(bench.patches)])


def test_a_patch_without_its_target_belongs_anywhere(two: Two) -> None:
    two.bench.patch("maybe", DOUBLE, requirement="nowhere", target="optional = true")
    run = two.bench.json("apply", "mod", "maybe")
    assert [(p["name"], p["action"]) for p in run.json["patches"]] == [("mod", "applied"), ("maybe", "skipped")]


def test_revert_finds_the_ledger(two: Two) -> None:
    both(two)
    assert two.bench.json("revert", "mod").json["patches"][0]["site"] == str(two.user)
    assert two.mod() == "V = 1\n"
    assert two.bench.read("demo/core.py") == DOUBLED
    assert two.bench("revert", "mod").out == "unchanged mod: not applied\n"


def test_revert_all_takes_out_of_every_folder(two: Two) -> None:
    both(two)
    run = two.bench("revert", "--all")
    assert run.out == (
        f"reverted double  (demo 1.0)  in {two.bench.site}\n  demo/core.py\n"
        f"reverted mod  (other 1.0)  in {two.user}\n  other/mod.py\n"
    )
    assert two.bench.pristine()
    assert two.mod() == "V = 1\n"


def test_revert_plans_every_folder_before_it_writes_one(two: Two) -> None:
    both(two)
    (two.user / "other/mod.py").write_text("V = 3\n")
    run = two.bench.json("revert", "double", "mod")
    assert (run.status, run.error["code"]) == (5, "hand-edit-inside")
    assert two.bench.read("demo/core.py") == DOUBLED
    assert two.mod() == "V = 3\n"


def test_a_folder_that_fails_says_which_are_done(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    both(two)
    real = transaction.commit

    def failing(home: str, *arguments: object, **options: object) -> object:
        if home == str(two.user):
            raise SiteError("the disk is full", code="no-space")
        return real(home, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("patchkit.ops.commit.commit", failing)
    run = two.bench.json("revert", "--all")
    assert (run.status, run.error["code"], run.error["done"]) == (5, "no-space", [str(two.bench.site)])
    assert run.error["message"] == f"the disk is full\ndone before that, and in place: {two.bench.site}"
    assert states(two.bench) == [("mod", "applied", str(two.user))]


def test_a_folder_of_somebody_else_does_not_keep_one_from_ones_own(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default home has a ledger that this user may read and not write."""
    both(two)
    real = os.open
    foreign = str(bench_site := two.bench.site)

    def refusing(path: object, flags: int, *arguments: object, **options: object) -> int:
        if str(path).startswith(foreign) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise PermissionError(13, "Permission denied", path)
        return real(path, flags, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", refusing)
    assert two.bench("check").status == 0
    assert two.bench("sync").status == 0
    assert two.bench("revert", "mod").status == 0
    assert two.bench("apply", "mod").status == 0
    run = two.bench.json("revert", "--all")
    assert (run.status, run.error["code"]) == (5, "permission")
    assert run.error["hint"].startswith("name those of the other folders: patchkit revert mod; or ")
    assert two.mod() == "V = 2\n"
    assert (bench_site / "demo/core.py").read_bytes() == DOUBLED


def test_a_name_in_two_ledgers_is_shown_twice(two: Two) -> None:
    bench = two.bench
    bench("apply", "double")
    make_dist(two.user, "demo", "1.0", bench.files)
    assert [(name, state) for name, state, _ in states(bench)] == [("double", "stale")]
    assert bench("apply", "double").status == 0
    assert states(bench) == [("double", "applied", str(bench.site)), ("double", "applied", str(two.user))]
    assert bench("check").out == (
        f"double  applied     demo 1.0  in {bench.site}\ndouble  applied     demo 1.0  in {two.user}\n"
    )
    listed = [p for p in bench.json("list").json["patches"] if p["name"] == "double"]
    assert [(p["state"], p["site"]) for p in listed] == [("applied", str(bench.site)), ("applied", str(two.user))]
    assert f"applied     demo  in {two.user}\n" in bench("list").out
    assert f"here: applied in {bench.site}, applied in {two.user}\n" in " ".join(
        bench("show", "double").out.split("\n  ")
    ).replace("applied in\n", "applied in ").replace(",\n", ", ")
    assert bench("revert", "double").status == 0
    assert bench.pristine()


def test_a_patch_on_what_imports_pass_over_is_stale(two: Two) -> None:
    bench = two.bench
    bench("apply", "double")
    make_dist(two.user, "demo", "2.0", bench.files)
    [patch] = bench.json("check").json["patches"]
    assert (patch["state"], patch["version"], patch["applied_version"]) == ("stale", "2.0", "1.0")
    assert patch["reason"] == (
        f"applied to 1.0 in {bench.site}, but imports find 2.0 in {two.user} first: run `patchkit sync`"
    )
    run = bench.json("sync")
    assert [(p["name"], p["action"], p["site"]) for p in run.json["patches"]] == [("double", "applied", str(two.user))]
    assert (two.user / "demo/core.py").read_bytes() == DOUBLED
    assert bench("check").status == 0


def test_diff_and_log_look_everywhere(two: Two) -> None:
    bench = two.bench
    both(two)
    run = bench("diff")
    assert [line for line in run.out.split("\n") if line.startswith("+++")] == [
        "+++ b/demo/core.py",
        "+++ b/other/mod.py",
    ]
    assert run.err == f"demo/core.py: in {bench.site}\nother/mod.py: in {two.user}\n"
    files = bench.json("diff").json["files"]
    assert [(file["path"], file["site"]) for file in files] == [
        ("demo/core.py", str(bench.site)),
        ("other/mod.py", str(two.user)),
    ]
    assert bench("diff", "mod").err == ""
    events = bench.json("log").json["events"]
    assert [(event["patches"], event["site"]) for event in events] == [
        (["double"], str(bench.site)),
        (["mod"], str(two.user)),
    ]
    assert all(f"in {folder}" in bench("log").out for folder in (bench.site, two.user))


def test_doctor_names_every_ledger(two: Two) -> None:
    both(two)
    lines = two.bench("doctor").out.splitlines()
    assert f"ok      ledger: {two.bench.site}/.patchkit: double" in lines
    assert f"ok      ledger: {two.user}/.patchkit: mod" in lines


def test_sync_heals_every_folder(two: Two) -> None:
    bench = two.bench
    bench.project("double", "mod")
    run = bench("sync")
    assert run.status == 0
    assert run.out == (
        f"applied double  (demo 1.0)  in {bench.site}: was absent\n  demo/core.py:6\n"
        f"applied mod  (other 1.0)  in {two.user}: was absent\n  other/mod.py:1\n"
    )
    bench.install("1.0")
    make_dist(two.user, "other", "1.0", OTHER)
    assert [p["action"] for p in bench.json("sync").json["patches"]] == ["applied", "applied"]
    bench.project("double")
    assert [(p["name"], p["action"]) for p in bench.json("sync").json["patches"]] == [
        ("double", "unchanged"),
        ("mod", "reverted"),
    ]
    assert two.mod() == "V = 1\n"


def test_sync_refuses_before_the_first_write(two: Two) -> None:
    bench = two.bench
    both(two)
    bench.install("1.0")
    (two.user / "other/mod.py").write_text("V = 3\n")
    run = bench.json("sync")
    assert (run.status, run.error["code"], run.error["patches"]) == (5, "modified", ["mod"])
    assert bench.pristine()


def test_sync_plans_every_folder_before_it_writes_one(two: Two) -> None:
    bench = two.bench
    bench.patch("mod", MOD_V.replace("V = 1", "V = 9"), requirement="other")
    bench.project("double", "mod")
    assert bench("sync").status == 4
    assert bench.pristine()


def test_a_distribution_that_moved_takes_its_patch_along(two: Two) -> None:
    bench = two.bench
    both(two)
    for path in (two.user / "other-1.0.dist-info").iterdir():
        path.unlink()
    (two.user / "other-1.0.dist-info").rmdir()
    (two.user / "other/mod.py").unlink()
    make_dist(bench.site, "other", "1.0", OTHER)
    assert bench("sync").status == 0
    assert states(bench) == [("double", "applied", str(bench.site)), ("mod", "applied", str(bench.site))]


def test_conflicts_count_across_folders(two: Two) -> None:
    bench = two.bench
    both(two)
    bench.patch("rival", MOD_V, requirement="other", target='conflicts = ["double"]')
    run = bench.json("apply", "rival")
    assert (run.status, run.error["code"], run.error["conflicts"]) == (3, "conflict", "double")


def test_require_takes_a_site_of_several_folders(two: Two) -> None:
    both(two)
    patchkit.require("double", "mod", site=two.site)


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("command", ["apply", "sync"])
def test_a_target_that_is_not_installed_needs_no_right_to_write(
    two: Two, monkeypatch: pytest.MonkeyPatch, command: str, there: bool
) -> None:
    """Debian's default folder need not even exist, and is nobody's but root's."""
    bench = two.bench
    bench.patch("lone", DOUBLE, requirement="nowhere")
    bench.project("lone")
    home = bench.site if there else bench.root / "absent"
    site = Site(home=str(home), paths=two.paths, interpreter=None, python_version=None, label="")
    monkeypatch.setattr("patchkit.cli.context.resolve", lambda python, directory: site)
    run = bench.json(command, *(["lone"] if command == "apply" else []))
    assert (run.status, run.error["code"]) == (3, "not-installed")
    assert not (bench.site / ".patchkit").exists()
    assert bench.json("apply", "mod").json["patches"][0]["site"] == str(two.user)


@pytest.mark.parametrize(
    "command",
    [
        ("apply", "double"),
        ("apply", "double", "--dry-run"),
        ("revert", "--all"),
        ("sync",),
        ("check",),
        ("list",),
        ("show", "double"),
        ("diff",),
        ("log",),
        ("doctor",),
    ],
    ids=" ".join,
)
def test_a_file_where_the_ledger_should_be(bench: Bench, command: tuple[str, ...]) -> None:
    bench.patch("double", DOUBLE)
    (bench.site / ".patchkit").write_text("")
    run = bench.json(*command)
    assert (run.status, run.error["code"]) == (5, "not-a-directory")
    assert run.error["message"].startswith(f"{Path(bench.site) / '.patchkit'}: is not a directory")
    assert run.error["hint"]
