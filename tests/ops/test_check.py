"""`check`: every state of DESIGN section 4, its exit status, its reason and its JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.bench import CORE, Bench, words
from support.dists import make_dist

DOUBLE = '[[edit]]\nfile = "demo/core.py"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'
UTIL_X = '[[edit]]\nfile = "demo/util.py"\nfind = "X = 1\\n"\nreplace = "X = 10\\n"\n'
ROOT = Path(__file__).resolve().parents[2]


def state(bench: Bench, name: str = "p") -> dict[str, object]:
    """The state of one patch, with the exit status, and its reason."""
    run = bench.json("check", name)
    [patch] = run.json["patches"]
    assert patch["name"] == name
    assert run.json["ok"] is (run.status == 0)
    assert run.json["error"] is None
    return {**patch, "status": run.status}


def test_nothing_is_applied(bench: Bench) -> None:
    nothing = (
        f"nothing was checked: no patch is applied in {bench.site} and no project wants any (looked for "
        f"[tool.patchkit] from {bench.root / 'work'} upwards)\n"
    )
    assert bench("check") == (0, "", nothing)
    assert bench("check", "--quiet") == (0, "", nothing)
    assert bench.json("check").json["patches"] == []
    assert not (bench.site / ".patchkit").exists()


def test_applied(bench: Bench) -> None:
    bench.patch("p", DOUBLE + UTIL_X)
    bench("apply", "p")
    run = bench("check")
    assert (run.status, run.out, run.err) == (0, "p  applied     demo 1.0\n", "")
    assert state(bench) == {
        "name": "p",
        "state": "applied",
        "distribution": "demo",
        "version": "1.0",
        "applied_version": "1.0",
        "files": [{"path": "demo/core.py", "state": "applied"}, {"path": "demo/util.py", "state": "applied"}],
        "reason": None,
        "site": str(bench.site),
        "status": 0,
    }


def test_quiet_prints_only_drift(bench: Bench) -> None:
    bench.patch("p", DOUBLE)
    bench.patch("q", UTIL_X)
    bench("apply", "p", "q")
    assert bench("check", "--quiet").out == ""
    bench.write("demo/util.py", b"")
    assert bench("check", "-q").out.startswith("q  modified")


def test_absent(bench: Bench) -> None:
    bench.patch("p", DOUBLE)
    bench.project("p")
    found = state(bench)
    assert (found["state"], found["status"], found["version"], found["applied_version"], found["files"]) == (
        "absent",
        1,
        "1.0",
        None,
        [],
    )
    assert words(bench("check").out) == words(
        "p  absent      demo 1.0\n    wanted, not applied: run `patchkit sync` or `patchkit apply p`\n"
    )


def test_lost(bench: Bench) -> None:
    bench.patch("p", DOUBLE)
    bench("apply", "p")
    bench.install("1.0")
    found = state(bench)
    assert (found["state"], found["status"]) == ("lost", 1)
    assert found["files"] == [{"path": "demo/core.py", "state": "pristine"}]
    assert found["reason"] == "a reinstall brought the pristine bytes back: run `patchkit sync`"


def test_stale(bench: Bench) -> None:
    bench.patch("p", DOUBLE)
    bench("apply", "p")
    bench.install("2.0")
    found = state(bench)
    assert (found["state"], found["status"], found["version"], found["applied_version"]) == ("stale", 1, "2.0", "1.0")
    assert found["reason"] == "applied to 1.0, 2.0 is installed: run `patchkit sync`"


INSIDE = "inside of what patchkit wrote (line {}): `patchkit revert --force p` discards that, and keeps a copy\n"
OUTSIDE = "outside of what patchkit wrote: `patchkit revert p` keeps that\n"


@pytest.mark.parametrize(
    ("edited", "where"),
    [
        (CORE.replace("x + x", "3 * x").encode(), INSIDE.format(6)),
        (b"", INSIDE.format(1)),
        (CORE.replace("x + x", "2 * x").encode() + b"\n", OUTSIDE),
    ],
)
def test_modified(bench: Bench, edited: bytes, where: str) -> None:
    bench.patch("p", DOUBLE + UTIL_X)
    bench("apply", "p")
    bench.write("demo/core.py", edited)
    found = state(bench)
    assert (found["state"], found["status"]) == ("modified", 1)
    assert found["files"] == [
        {"path": "demo/core.py", "state": "modified"},
        {"path": "demo/util.py", "state": "applied"},
    ]
    assert words(bench("check").out) == words(
        "p  modified    demo 1.0\n"
        f"    demo/core.py was edited since: see `patchkit diff p`; {where}"
        "      modified   demo/core.py\n"
        "      applied    demo/util.py\n"
    )


def test_modified_within_the_same_size_and_time(bench: Bench) -> None:
    bench.patch("p", DOUBLE)
    bench("apply", "p")
    core = bench.site / "demo/core.py"
    before = os.stat(core)
    core.write_bytes(core.read_bytes().replace(b"2 * x", b"4 * x"))  # in place: the same inode
    os.utime(core, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert state(bench)["state"] == "modified"


def test_a_file_that_is_gone_is_modified(bench: Bench) -> None:
    bench.patch("p", DOUBLE)
    bench("apply", "p")
    (bench.site / "demo/core.py").unlink()
    found = state(bench)
    assert found["state"] == "modified"
    assert found["reason"] == (
        f"demo/core.py is gone: `pip install --target {bench.site} --upgrade --no-deps --no-cache-dir demo==1.0`, then "
        "`patchkit sync`"
    )


def test_a_touched_file_is_still_applied(bench: Bench) -> None:
    bench.patch("p", DOUBLE)
    bench("apply", "p")
    os.utime(bench.site / "demo/core.py")
    assert state(bench)["state"] == "applied"


def test_partial(bench: Bench) -> None:
    bench.patch("p", DOUBLE + UTIL_X)
    bench("apply", "p")
    bench.write("demo/core.py", CORE.encode())
    found = state(bench)
    assert (found["state"], found["status"]) == ("partial", 1)
    assert found["files"] == [
        {"path": "demo/core.py", "state": "pristine"},
        {"path": "demo/util.py", "state": "applied"},
    ]
    assert found["reason"] == "demo/core.py is pristine again: run `patchkit sync`"


def test_upstreamed_and_never_applied(bench: Bench) -> None:
    bench.patch("p", DOUBLE + '[[upstreamed]]\nversions = ">=1"\n', requirement="demo<1")
    bench.project("p")
    found = state(bench)
    assert (found["state"], found["status"]) == ("upstreamed", 0)
    assert found["reason"] == "demo 1.0 has the change (>=1): drop the patch"


def test_upstreamed_by_an_upgrade(bench: Bench) -> None:
    bench.patch("p", DOUBLE + '[[upstreamed]]\nfile = "demo/core.py"\nfind = "y = 2 * x"\n')
    bench("apply", "p")
    bench.install("2.0", {**bench.files, "demo/core.py": CORE.replace("x + x", "2 * x")})
    found = state(bench)
    assert (found["state"], found["status"], found["version"], found["applied_version"]) == (
        "upstreamed",
        0,
        "2.0",
        "1.0",
    )


def test_refused(bench: Bench) -> None:
    bench.patch("p", DOUBLE, requirement="demo<2", target='otherwise = "From 2 on it is an option."')
    bench("apply", "p")
    bench.install("2.0")
    found = state(bench)
    assert (found["state"], found["status"], found["version"], found["applied_version"]) == ("refused", 1, "2.0", "1.0")
    assert found["reason"] == (
        "p: demo 2.0 is installed; required: demo<2; From 2 on it is an option; or `patchkit revert p` forgets it"
    )


def test_refused_and_never_applied(bench: Bench) -> None:
    bench.patch("p", DOUBLE, target='requires = ["other>=3"]')
    make_dist(bench.site, "other", "1.0", {"other.py": ""})
    bench.project("p")
    assert (state(bench)["state"], state(bench)["status"]) == ("refused", 1)


def test_uninstalled(bench: Bench) -> None:
    bench.patch("p", DOUBLE)
    bench("apply", "p")
    bench.uninstall()
    found = state(bench)
    assert (found["state"], found["status"], found["version"], found["applied_version"]) == (
        "uninstalled",
        1,
        None,
        "1.0",
    )
    assert found["reason"] == (
        "demo is not installed any more: install it and run `patchkit sync`, or `patchkit revert p` forgets the patch"
    )


def test_uninstalled_and_wanted(bench: Bench) -> None:
    bench.patch("p", DOUBLE, requirement="other")
    bench.project("p")
    assert (state(bench)["state"], state(bench)["status"]) == ("uninstalled", 1)


def test_an_optional_patch_without_its_target_is_clean(bench: Bench) -> None:
    bench.patch("p", DOUBLE, requirement="other", target="optional = true")
    bench.patch("q", UTIL_X, target="optional = true")
    bench.project("p")
    assert (state(bench)["state"], state(bench)["status"]) == ("uninstalled", 0)
    bench("apply", "q")
    bench.uninstall()
    assert (state(bench, "q")["state"], state(bench, "q")["status"]) == ("uninstalled", 0)


def test_only_the_named(bench: Bench) -> None:
    path = bench.patch("p", DOUBLE)
    bench.patch("q", UTIL_X)
    bench("apply", "p", "q")
    bench.write("demo/util.py", b"")
    assert bench("check").status == 1
    assert bench("check", "p").out == "p  applied     demo 1.0\n"
    assert bench("check", "p").status == 0
    assert bench("check", "q").status == 1
    assert bench("check", str(path)).out == "p  applied     demo 1.0\n"
    assert bench("check", str(path), "p").out == "p  applied     demo 1.0\n"


def test_a_name_that_is_known_and_not_applied(bench: Bench) -> None:
    bench.patch("p", DOUBLE)
    assert (state(bench)["state"], state(bench)["status"]) == ("absent", 1)
    assert state(bench)["reason"] == "not applied: run `patchkit apply p`"


def test_an_unknown_name(bench: Bench) -> None:
    bench.patch("patch", DOUBLE)
    run = bench.json("check", "pach")
    assert (run.status, run.error["code"], run.error["suggestion"]) == (2, "unknown-patch", "patch")


def test_an_edited_patch_file(bench: Bench) -> None:
    path = bench.patch("p", DOUBLE)
    bench("apply", "p")
    path.write_text(path.read_text() + "# a comment\n")
    found = state(bench)
    assert (found["state"], found["status"]) == ("stale", 1)
    assert found["reason"] == f"{path} was edited since it was applied: run `patchkit sync` or apply it again"
    assert bench("apply", "p").status == 0
    assert state(bench)["state"] == "applied"


def test_a_patch_file_that_is_gone(bench: Bench) -> None:
    bench.patch("p", DOUBLE)
    bench("apply", "p")
    (bench.patches / "p.toml").unlink()
    assert state(bench)["state"] == "applied"
    bench.install("2.0")
    assert state(bench)["state"] == "stale"


def test_the_projects_file_counts_for_what_it_lists(bench: Bench) -> None:
    """A patch of the same name from elsewhere is not the one that the project wants."""
    path = bench.patch("p", DOUBLE)
    other = bench.root / "other" / "p.toml"
    other.parent.mkdir()
    other.write_text(path.read_text().replace("2 * x", "x * 2"))
    bench("apply", str(other))
    assert state(bench)["state"] == "applied"
    bench.project("p")
    assert state(bench)["state"] == "stale"
    assert bench("sync").status == 0
    assert bench.read("demo/core.py") == CORE.replace("x + x", "2 * x").encode()
    assert state(bench)["state"] == "applied"


def test_the_projects_wishes_come_behind_what_is_applied(bench: Bench) -> None:
    bench.patch("p", DOUBLE)
    bench.patch("q", UTIL_X)
    bench("apply", "q")
    bench.project("p", "q")
    run = bench("check")
    assert run.status == 1
    assert [p["name"] for p in bench.json("check").json["patches"]] == ["q", "p"]


def test_check_writes_nothing(bench: Bench) -> None:
    bench.patch("p", DOUBLE)
    bench("apply", "p")

    def everything() -> dict[str, tuple[int, int]]:
        found = {}
        for path in bench.site.rglob("*"):
            now = path.stat()
            found[str(path)] = (now.st_mtime_ns, now.st_ino)
        return found

    before = everything()
    assert bench("check").status == 0
    assert everything() == before


def test_a_site_where_nothing_can_be_written(bench: Bench) -> None:
    """Every call that writes is refused in that process: the tests may run as root, whom no mode bits stop."""
    bench.patch("p", DOUBLE)
    bench("apply", "p")
    bench.install("1.0")
    command = [sys.executable, "-m", "patchkit", "--site", str(bench.site), "--patches", str(bench.patches), "--json"]
    code = (
        "import json, os, runpy, sys\n"
        "os.access = lambda *a, **k: False\n"
        "import builtins; real = builtins.open\n"
        "def only_read(file, mode='r', *a, **k):\n"
        "    if any(c in mode for c in 'wax+'): raise PermissionError(13, 'Permission denied', file)\n"
        "    return real(file, mode, *a, **k)\n"
        "builtins.open = only_read\n"
        "opened = os.open\n"
        "def only_read_too(path, flags, *a, **k):\n"
        "    if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT): raise PermissionError(13, 'Permission denied', path)\n"
        "    return opened(path, flags, *a, **k)\n"
        "os.open = only_read_too\n"
        "for name in ('mkdir', 'unlink', 'replace', 'rename', 'rmdir', 'chmod', 'utime'):\n"
        "    setattr(os, name, lambda *a, **k: (_ for _ in ()).throw(PermissionError(13, 'Permission denied', a[0])))\n"
        "sys.argv = ['patchkit', *sys.argv[1:]]\n"
        "from patchkit.cli.main import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    wrapped = [command[0], "-c", code, *command[3:]]
    done = subprocess.run([*wrapped, "check"], capture_output=True, text=True, env=environment, cwd=bench.root / "work")
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["patches"][0]["state"] == "lost"
    done = subprocess.run(
        [*wrapped, "apply", "p"], capture_output=True, text=True, env=environment, cwd=bench.root / "work"
    )
    assert done.returncode == 5, done.stderr
    assert json.loads(done.stdout)["error"]["code"] == "permission"
    assert bench.pristine()


def test_a_file_that_cannot_be_read(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.patch("p", DOUBLE)
    bench("apply", "p")
    core = str(bench.site / "demo/core.py")
    os.utime(core)  # so that it must be read
    real = open

    def refusing(file: object, *arguments: object, **options: object) -> object:
        if file == core:
            raise PermissionError(13, "Permission denied", core)
        return real(file, *arguments, **options)  # type: ignore[call-overload]

    monkeypatch.setattr("builtins.open", refusing)
    found = state(bench)
    monkeypatch.undo()
    assert (found["state"], found["status"], found["reason"]) == ("modified", 1, "cannot be read: demo/core.py")


def test_a_wrong_patch_file_is_told_with_the_others(bench: Bench) -> None:
    bench.patch("p", DOUBLE)
    bench("apply", "p")
    wrong = bench.patches / "wrong.toml"
    wrong.write_text("schema = 1\nnonsense\n")
    bench.project("wrong", "missing", "p")
    run = bench.json("check")
    assert run.status == 1
    states = {patch["name"]: patch for patch in run.json["patches"]}
    assert {name: patch["state"] for name, patch in states.items()} == {
        "p": "applied",
        "wrong": "absent",
        "missing": "absent",
    }
    assert states["wrong"]["reason"].startswith(f"{wrong}:2")
    assert states["missing"]["reason"].startswith("no patch named missing")
    before = bench.read("demo/core.py")
    run = bench.json("sync")
    assert (run.status, run.error["code"]) == (2, "patch-file")
    wrong.unlink()
    run = bench.json("sync")
    assert (run.status, run.error["code"]) == (2, "unknown-patch")
    assert bench.read("demo/core.py") == before


EXTRA = '[[add]]\nfile = "demo/extra.py"\ncontent = "E = 1\\n"\n'


def test_a_reinstall_leaves_what_a_patch_added(bench: Bench) -> None:
    bench.patch("p", DOUBLE + EXTRA)
    bench("apply", "p")
    bench.install("1.0")
    (bench.site / "demo/extra.py").write_bytes(b"E = 1\n")
    found = state(bench)
    assert (found["state"], found["reason"]) == (
        "lost",
        "a reinstall brought the pristine bytes back: run `patchkit sync`",
    )
    assert bench("sync").status == 0
    assert state(bench)["state"] == "applied"


def test_several_files_that_are_pristine_again(bench: Bench) -> None:
    bench.patch("p", DOUBLE + UTIL_X + '[[edit]]\nfile = "demo/more.py"\nfind = "M = 1\\n"\nreplace = "M = 2\\n"\n')
    bench.files["demo/more.py"] = "M = 1\n"
    bench.install("1.0")
    bench("apply", "p")
    for path in ("demo/core.py", "demo/util.py"):
        bench.write(path, str(bench.files[path]).encode())
    assert state(bench)["reason"] == "demo/core.py and 1 more file are pristine again: run `patchkit sync`"
    bench("sync")
    bench.write("demo/core.py", str(bench.files["demo/core.py"]).encode())
    assert state(bench)["reason"] == "demo/core.py is pristine again: run `patchkit sync`"
