"""``matrix`` on wheels made by hand, with a folder for the index."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from support.bench import Bench, Run
from support.dists import damage_member, keep_wheel, make_wheel

from patchkit.author.published import get_wheels
from patchkit.cli.main import main

needs_pip = pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="there is no pip beside pytest")

CORE = "def double(x):\n    y = x + x\n    return y\n"
MOVED = "def twice(x):\n    y = x + x\n    return y\n"
FIXED = "def double(x):\n    y = 2 * x\n    return y\n"
EDIT = '[[edit]]\nfile = "demo/core.py"\nscope = "double"\nfind = "y = x + x"\nreplace = "y = 2 * x"\n'
UPSTREAMED = '[[upstreamed]]\nfile = "demo/core.py"\nfind = "y = 2 * x"\n'
#: Fits 1.0, 1.1 and 1.3; its scope is gone in 1.2; 2.0 has the change; 2.1 has no such file.
RELEASES = {
    "1.0": {"demo/core.py": CORE},
    "1.1": {"demo/core.py": "import os\n" + CORE},
    "1.2": {"demo/core.py": MOVED},
    "1.3": {"demo/core.py": CORE},
    "2.0": {"demo/core.py": FIXED},
    "2.1": {"demo/other/core.py": CORE},
    "2.2rc1": {"demo/core.py": CORE},
}


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for the package index."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return folder


def keep(cache: Path, version: str, files: dict[str, str]) -> Path:
    """Put a release of ``demo`` into the cache."""
    return keep_wheel(cache, "demo", version, files)


@pytest.fixture
def cached(tmp_path: Path) -> Path:
    """The cache with every release of ``demo``: no pip is needed to have them."""
    for version, files in RELEASES.items():
        keep(tmp_path / "cache", version, files)
    return tmp_path / "cache"


def states(run: Run, number: int = 0) -> dict[str, str]:
    return {v["version"]: v["state"] for v in run.json["patches"][number]["versions"]}


def test_each_release_has_its_state_and_the_requirement_follows(bench: Bench, cached: Path) -> None:
    bench.patch("fix", EDIT + UPSTREAMED, requirement="demo>=1.0,<2")
    run = bench.json("matrix", "fix", "--offline")
    assert states(run) == {
        "2.1": "fails",
        "2.0": "upstreamed",
        "1.3": "applies",
        "1.2": "fails",
        "1.1": "applies",
        "1.0": "applies",
    }
    (patch,) = run.json["patches"]
    by_version = {v["version"]: v for v in patch["versions"]}
    assert by_version["1.2"]["code"] == "scope-missing"
    assert (by_version["1.2"]["edit"], by_version["1.2"]["part"], by_version["1.2"]["line"]) == (1, "edit 1", 9)
    assert by_version["1.2"]["reason"] == "`scope`: there is no `double` in demo/core.py"
    assert by_version["1.2"]["admitted"] is True
    assert by_version["2.1"]["code"] == "not-in-distribution"
    assert by_version["2.1"]["admitted"] is False
    assert "demo/other/core.py" in by_version["2.1"]["reason"]
    assert patch["requirement"]["current"] == "demo>=1.0,<2"
    assert patch["requirement"]["proposed"] == "demo>=1.0,!=1.2,<2.0"
    assert patch["requirement"]["exact"] is False
    assert run.status == 1
    assert run.json["ok"] is False


def test_a_release_that_fails_outside_of_the_requirement_is_no_finding(bench: Bench, cached: Path) -> None:
    bench.patch("fix", EDIT, requirement="demo>=1.0,!=1.2,<2")
    run = bench.json("matrix", "fix", "--offline")
    assert run.status == 0
    assert run.json["patches"][0]["requirement"]["exact"] is True
    text = bench("matrix", "fix", "--offline")
    assert "1.2  fails *" in text.out
    assert "admits exactly the releases tried that it fits" in text.out


def test_prereleases_count_only_when_asked_for(bench: Bench, cached: Path) -> None:
    bench.patch("fix", EDIT, requirement="demo>=1.3")
    assert "2.2rc1" not in states(bench.json("matrix", "fix", "--offline"))
    run = bench.json("matrix", "fix", "--offline", "--pre", "--versions", ">=1.3")
    assert states(run) == {"2.2rc1": "applies", "2.1": "fails", "2.0": "fails", "1.3": "applies"}


def test_versions_and_limit_choose_the_releases(bench: Bench, cached: Path) -> None:
    bench.patch("fix", EDIT, requirement="demo<1.2")
    assert list(states(bench.json("matrix", "fix", "--offline", "--versions", "<1.2"))) == ["1.1", "1.0"]
    # The newest one, and the newest within the requirement.
    assert list(states(bench.json("matrix", "fix", "--offline", "--limit", "1"))) == ["2.1", "1.1"]
    assert len(states(bench.json("matrix", "fix", "--offline", "--limit", "0"))) == 6
    none = bench.json("matrix", "fix", "--offline", "--versions", ">=9")
    assert none.status == 2
    assert "2.1, 2.0, 1.3" in none.error["hint"]
    assert bench.json("matrix", "fix", "--offline", "--versions", "new").status == 2


def test_a_version_without_an_edit_is_told_so(bench: Bench, cached: Path) -> None:
    bench.patch("fix", EDIT + 'versions = "<1.2"\n', requirement="demo>=1,<1.2")
    run = bench.json("matrix", "fix", "--offline", "--versions", "<2")
    assert states(run) == {"1.3": "no-edits", "1.2": "no-edits", "1.1": "applies", "1.0": "applies"}
    assert run.status == 0


def test_an_added_file_must_be_new_and_what_parsed_must_parse(bench: Bench, cached: Path) -> None:
    bench.patch("fix", '[[add]]\nfile = "demo/core.py"\ncontent = "x = 1\\n"\n', requirement="demo==1.0")
    run = bench.json("matrix", "fix", "--offline", "--versions", "==1.0")
    assert [v["code"] for v in run.json["patches"][0]["versions"]] == ["exists"]
    bench.patch("fix", EDIT.replace('"y = 2 * x"', '"y = ("'), requirement="demo==1.0")
    run = bench.json("matrix", "fix", "--offline", "--versions", "==1.0")
    assert [v["code"] for v in run.json["patches"][0]["versions"]] == ["syntax"]


def test_the_wheel_s_own_python_is_remarked_where_it_is_another(bench: Bench, tmp_path: Path) -> None:
    keep(tmp_path / "cache", "1.0", {"demo/core.py": CORE})
    wheel = tmp_path / "cache/wheels/demo/1.1/demo-1.1-py3-none-any.whl"
    made = keep(tmp_path / "cache", "1.1", {"demo/core.py": CORE + "match x:\n case 1 | 2 | 3 = 4: pass\n"})
    assert made == wheel
    import zipfile

    with zipfile.ZipFile(wheel) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, data in members.items():
            extra = b"Requires-Python: >=99\n" if name.endswith("METADATA") else b""
            archive.writestr(name, data + extra)
    wheel.with_name(f"{wheel.name}.sha256").write_text(hashlib.sha256(wheel.read_bytes()).hexdigest())
    bench.patch("fix", EDIT, requirement="demo")
    new, old = bench.json("matrix", "fix", "--offline").json["patches"][0]["versions"]
    assert (new["code"], old["state"]) == ("unparsable", "applies")
    assert new["note"].startswith("it is for Python >=99; read here by the grammar of ")
    assert old["note"] is None


def test_markdown_has_a_column_for_each_patch(bench: Bench, cached: Path) -> None:
    bench.patch("fix", EDIT, requirement="demo>=1.0,<1.2")
    bench.patch("other", EDIT, requirement="demo>=1.3,<2")
    run = bench("matrix", "fix", "other", "--offline", "--markdown", "--versions", ">=1.1,<2")
    assert run.out.splitlines()[:5] == [
        "| demo | fix | other |",
        "|---|---|---|",
        "| 1.3 | applies (outside of its range) | applies |",
        "| 1.2 | fails (outside of its range) | fails (outside of its range) |",
        "| 1.1 | applies | applies (outside of its range) |",
    ]
    assert "- `other` on 1.2: edit 1 (line 9): `scope`: there is no `double` in demo/core.py" in run.out
    assert run.status == 0


def test_all_looks_at_the_project_and_at_newer_releases_only(bench: Bench, cached: Path) -> None:
    bench.patch("fix", EDIT, requirement="demo>=1.3,<2")
    bench.patch("other", EDIT, requirement="demo>=1.3")
    bench.project("fix")
    run = bench.json("matrix", "--all", "--offline")
    assert [patch["name"] for patch in run.json["patches"]] == ["fix"]
    assert list(states(run)) == ["2.1", "2.0", "1.3"]
    assert run.status == 0
    bench.project("fix", "other")
    assert bench.json("matrix", "--all", "--offline").status == 1  # `other` says that it is for 2.0


def test_wrong_use_is_refused(bench: Bench) -> None:
    for arguments in ([], ["fix", "--all"], ["fix", "--upgrade", "demo==1.0"], ["--upgrade", "demo"]):
        assert bench.json("matrix", *arguments).status == 2
    bench.patch("fix", EDIT)
    assert bench.json("matrix", "fix", "--limit", "-1").status == 2


def test_an_error_half_way_leaves_no_thread_behind(bench: Bench, cached: Path) -> None:
    """Left to the garbage collector, ending them locked up the whole process now and then."""
    bench.patch("fix", EDIT.replace('find = "y = x + x"', 'match = "y = ("'))
    before = threading.active_count()
    run = bench.json("matrix", "fix", "--offline")
    assert (run.status, run.error["code"]) == (2, "pattern")
    assert threading.active_count() == before


# --- fetching


@needs_pip
def test_wheels_are_fetched_once_through_pip(bench: Bench, index: Path, tmp_path: Path) -> None:
    for version in ("1.0", "1.1", "1.2"):
        make_wheel(index, "demo", version, RELEASES[version])
    bench.patch("fix", EDIT, requirement="demo>=1.0,<1.2")
    run = bench.json("matrix", "fix")
    assert states(run) == {"1.2": "fails", "1.1": "applies", "1.0": "applies"}
    assert run.json["patches"][0]["offline"] is None
    cache = run.json["cache"]
    assert cache["path"] == str(tmp_path / "cache" / "wheels")
    kept = sorted((tmp_path / "cache" / "wheels" / "demo").rglob("*.whl"))
    assert [path.parent.name for path in kept] == ["1.0", "1.1", "1.2"]
    assert cache["bytes"] == sum(p.stat().st_size for p in (tmp_path / "cache" / "wheels").rglob("*") if p.is_file())
    for path in index.iterdir():
        path.unlink()
    # The index has nothing any more: the cache is used, and it is said so.
    again = bench.json("matrix", "fix")
    assert states(again) == states(run)
    assert "demo" in again.json["patches"][0]["offline"]


@needs_pip
def test_one_release_is_kept_once_however_it_is_spelled(bench: Bench, index: Path, tmp_path: Path) -> None:
    for version in ("1.0.0", "1.1.0"):
        make_wheel(index, "demo", version, RELEASES["1.0"])
    bench.patch("fix", EDIT, requirement="demo>=1,<2")
    kept = tmp_path / "cache" / "wheels"
    assert bench.json("port", "fix", "--to", "1.1", "--from", "1").status == 0
    assert bench.json("port", "fix", "--to", "1.99").status == 5
    assert sorted(path.name for path in (kept / "demo").iterdir()) == ["1.0.0", "1.1.0"]
    assert [path.name for path in kept.iterdir()] == ["demo"]
    for path in index.iterdir():
        path.unlink()
    assert bench.json("port", "fix", "--to", "1.1.0.0", "--from", "1.0", "--offline").status == 0
    assert list(states(bench.json("matrix", "fix", "--offline"))) == ["1.1.0", "1.0.0"]


@needs_pip
def test_a_release_without_a_wheel_is_no_finding(bench: Bench, index: Path, tmp_path: Path) -> None:
    make_wheel(index, "demo", "1.0", RELEASES["1.0"])
    # What the index lists and pip does not give: a wheel for another machine.
    (tmp_path / "cache/wheels/demo/1.1").mkdir(parents=True)
    (tmp_path / "cache/wheels/demo/1.1/demo-1.1-py3-none-any.whl").write_bytes(b"")
    make_wheel(index, "other", "1.0", {})
    bench.patch("fix", EDIT, requirement="demo<1.2")
    for file in index.glob("demo-*"):
        keep(tmp_path / "cache", "1.0", RELEASES["1.0"])
        file.unlink()
    run = bench.json("matrix", "fix")
    assert states(run) == {"1.1": "no-wheel", "1.0": "applies"}
    assert run.status == 0


def test_without_index_and_cache_the_error_says_what_there_is(bench: Bench, index: Path, tmp_path: Path) -> None:
    bench.patch("fix", EDIT)
    run = bench.json("matrix", "fix")
    assert (run.status, run.error["code"]) == (5, "fetch")
    run = bench.json("matrix", "fix", "--offline")
    assert (run.status, run.error["code"]) == (5, "fetch")
    keep(tmp_path / "cache", "1.0", RELEASES["1.0"])
    run = bench.json("port", "fix", "--to", "1.1", "--offline")
    assert run.status == 5
    assert "the cache has 1.0" in run.error["message"]


def test_a_wheel_that_was_tampered_with_is_not_believed(bench: Bench, index: Path, tmp_path: Path) -> None:
    wheel = keep(tmp_path / "cache", "1.0", RELEASES["1.0"])
    wheel.write_bytes(wheel.read_bytes() + b"\0")
    bench.patch("fix", EDIT)
    run = bench.json("matrix", "fix", "--offline")
    assert (run.status, run.error["code"]) == (5, "fetch")
    assert "not in the cache" in run.error["message"]


def test_some_that_cannot_be_had_are_told_beside_the_others(bench: Bench, cached: Path) -> None:
    (cached / "wheels/demo/1.1/demo-1.1-py3-none-any.whl").write_bytes(b"no wheel")
    bench.patch("fix", EDIT, requirement="demo<1.2")
    run = bench.json("matrix", "fix", "--offline", "--versions", "<1.2")
    assert states(run) == {"1.1": "unavailable", "1.0": "applies"}
    assert run.status == 1, "a release that the patch is for was not judged"


@pytest.mark.parametrize("how", ["deflate", "encrypted", "checksum"])
def test_a_release_whose_file_cannot_be_unpacked_ends_nothing(bench: Bench, cached: Path, how: str) -> None:
    wheel = cached / "wheels/demo/1.1/demo-1.1-py3-none-any.whl"
    damage_member(wheel, "demo/core.py", how)
    wheel.with_name(f"{wheel.name}.sha256").write_text(hashlib.sha256(wheel.read_bytes()).hexdigest())
    bench.patch("fix", EDIT, requirement="demo<1.2")
    run = bench.json("matrix", "fix", "--offline", "--versions", "<1.2")
    assert states(run) == {"1.1": "unavailable", "1.0": "applies"}
    assert (run.status, run.error) == (1, None), "a release that the patch is for was not judged"
    reason = run.json["patches"][0]["versions"][0]["reason"]
    assert "demo-1.1-py3-none-any.whl cannot be read: demo/core.py: " in reason


# --- the requirement


def test_what_was_not_tried_is_not_taken_out_of_the_requirement(bench: Bench, cached: Path) -> None:
    bench.patch("fix", EDIT, requirement="demo<2")
    run = bench.json("matrix", "fix", "--offline", "--versions", ">=1.2")
    assert states(run) == {"2.1": "fails", "2.0": "fails", "1.3": "applies", "1.2": "fails"}
    requirement = run.json["patches"][0]["requirement"]
    assert (requirement["proposed"], requirement["untried"]) == ("demo>=1.0,!=1.2,<2.0", ["1.0", "1.1"])


def test_a_local_version_is_bounded_by_its_public_part(bench: Bench, tmp_path: Path) -> None:
    for version, text in {"2.2": MOVED, "2.3+cpu": CORE, "2.3+cu118": MOVED}.items():
        keep(tmp_path / "cache", version, {"demo/core.py": text})
    bench.patch("fix", EDIT, requirement="demo==2.3+cpu")
    run = bench.json("matrix", "fix", "--offline")
    assert states(run) == {"2.3+cu118": "fails", "2.3+cpu": "applies", "2.2": "fails"}
    assert run.json["patches"][0]["requirement"]["proposed"] == "demo>=2.3,!=2.3+cu118,<2.4"


def test_a_prerelease_that_fits_before_a_final_release_that_does_not(bench: Bench, tmp_path: Path) -> None:
    for version, text in {"2.0rc1": CORE, "2.0": MOVED}.items():
        keep(tmp_path / "cache", version, {"demo/core.py": text})
    bench.patch("fix", EDIT)
    run = bench.json("matrix", "fix", "--offline", "--pre")
    assert run.json["patches"][0]["requirement"]["proposed"] == "demo>=2.0rc1,<=2.0rc1"


def test_a_prerelease_that_nobody_asked_for_is_no_bound(bench: Bench, tmp_path: Path) -> None:
    for version in ("0.9rc1", "1.0", "1.1"):
        keep(tmp_path / "cache", version, {"demo/core.py": CORE})
    bench.patch("fix", EDIT, requirement="demo<1.1")
    run = bench.json("matrix", "fix", "--offline", "--limit", "1")
    assert states(run) == {"1.1": "applies", "1.0": "applies"}
    assert run.json["patches"][0]["requirement"]["proposed"] == "demo>=1.0,<1.2"
    # One that the requirement names is not taken out of it.
    bench.patch("fix", EDIT, requirement="demo>=0.9rc1")
    run = bench.json("matrix", "fix", "--offline", "--limit", "1")
    assert run.json["patches"][0]["requirement"]["proposed"] == "demo>=0.9rc1,<1.2"


def test_where_nothing_was_judged_nothing_is_exact(bench: Bench, tmp_path: Path) -> None:
    keep(tmp_path / "cache", "2.0", {"demo/core.py": FIXED})
    bench.patch("fix", EDIT + UPSTREAMED)
    requirement = bench.json("matrix", "fix", "--offline").json["patches"][0]["requirement"]
    assert (requirement["exact"], requirement["proposed"]) == (None, None)


def test_downloads_under_way_are_ended_with_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C waits for none: each is a program of its own, which the terminal does not tell."""
    begun, ended = tmp_path / "begun", tmp_path / "ended"
    begun.mkdir()
    slow = f"import os, pathlib, time; pathlib.Path({str(begun)!r}, str(os.getpid())).touch(); time.sleep(60)"
    slow += f"; pathlib.Path({str(ended)!r}).touch()"
    monkeypatch.setattr("patchkit.site.wheel.pip_command", lambda python=None: [sys.executable, "-c", slow])

    def interrupt(done: int, total: int, what: str) -> None:
        if len(list(begun.iterdir())) == 2:
            raise KeyboardInterrupt

    with (
        pytest.raises(KeyboardInterrupt),
        closing(get_wheels([("demo", "1.0"), ("demo", "1.1")], progress=interrupt)) as them,
    ):
        next(them)
    assert not ended.exists()
    for name in (path.name for path in begun.iterdir() if sys.platform != "win32"):
        with pytest.raises(ProcessLookupError):
            os.kill(int(name), 0)


# --- what is printed


def test_what_to_do_next_is_named(bench: Bench, cached: Path) -> None:
    path = bench.patch("fix", EDIT, requirement="demo>=1.1,<2")
    said = " ".join(bench("matrix", "fix", "--offline").out.split())
    assert f"to take it: `requirement` in [target] of {path}" in said
    assert "to carry it to 2.0: `patchkit port fix --to 2.0`" in said


def test_json_is_one_object(bench: Bench, cached: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench.patch("fix", EDIT, requirement="demo<1.2")
    capsys.readouterr()
    status = main(["--patches", str(bench.patches), "matrix", "fix", "--offline", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert (status, found["schema"], found["command"]) == (0, 1, "matrix")
