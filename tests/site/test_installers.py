"""What pip and uv really write, read back; and installs of every kind through apply, check and revert."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from support.bench import Bench
from support.dists import make_dist, make_egg_info, make_wheel, record_hash
from support.documents import ROOT, document, rows
from support.installs import FILES as DEMO_FILES
from support.installs import KINDS, NO_WITNESS, Made

import patchkit
from patchkit.errors import SiteError
from patchkit.site.distribution import Distribution
from patchkit.site.environment import resolve
from patchkit.site.paths import resolve_file

FILES: dict[str, str | bytes] = {
    "odd_pkg/__init__.py": "",
    "odd_pkg/windows.py": "x = 1\r\ny = 2\r\n",
    "odd_pkg/naïve/日本.py": "z = 3\n",
    "odd_pkg/E=8,N=128.json": "{}",
    "odd_pkg-1!1.2.6.post0.data/scripts/odd-tool": "#!python\n",
}


def _uv() -> str | None:
    beside = Path(sys.executable).with_name("uv")
    return str(beside) if beside.exists() else shutil.which("uv")


def _check(found: Distribution | None, installer: str) -> None:
    assert found is not None
    assert (found.name, found.version, found.kind) == ("odd.pkg", "1!1.2.6.post0", "wheel")
    assert (Path(found.info) / "INSTALLER").read_text().strip() == installer
    assert not found.editable
    for path in ("odd_pkg/windows.py", "odd_pkg/naïve/日本.py", "odd_pkg/E=8,N=128.json"):
        resolved = resolve_file(found, path)
        assert resolved.entry is not None
        assert resolved.entry.matches(Path(resolved.absolute).read_bytes()) is True
    assert found.record.files() == sorted(
        ["odd_pkg/__init__.py", "odd_pkg/windows.py", "odd_pkg/naïve/日本.py"], key=found.record.paths().index
    )


@pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="there is no pip beside pytest")
def test_pip_target(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "wheels", "odd.pkg", "1!1.2.6.post0", FILES)
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--disable-pip-version-check"]
    subprocess.run([*command, "--target", str(tmp_path / "target"), str(wheel)], check=True, capture_output=True)
    site = resolve(directory=str(tmp_path / "target"), environ={})
    assert site.interpreter is None
    _check(site.find("odd-pkg"), "pip")


@pytest.mark.parametrize("mode", ["hardlink", "symlink", "copy"])
def test_uv_in_a_virtual_environment(tmp_path: Path, mode: str) -> None:
    uv = _uv()
    if uv is None:
        pytest.skip("there is no uv")
    root = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(root)], check=True)
    site = resolve(python=str(root), environ={})
    assert site.interpreter is not None
    wheel = make_wheel(tmp_path / "wheels", "odd.pkg", "1!1.2.6.post0", FILES)
    command = [uv, "pip", "install", "-q", "--offline", "--no-deps", "--link-mode", mode]
    subprocess.run(
        [*command, "--python", site.interpreter.executable, str(wheel)],
        check=True,
        capture_output=True,
        env={**os.environ, "UV_CACHE_DIR": str(tmp_path / "uv"), "UV_LINK_MODE": mode},
    )
    found = site.find("Odd_Pkg")
    _check(found, "uv")
    assert found is not None
    resolved = resolve_file(found, "odd_pkg/windows.py")
    assert Path(resolved.absolute).is_symlink() is (mode == "symlink")
    assert resolved.key == "odd_pkg/windows.py"
    assert "../../../bin/odd-tool" in found.record.paths() or sys.platform == "win32"


# --- installs of every kind


def _snapshot(folder: Path) -> dict[str, tuple[str, bytes, int, int]]:
    """Every file below a folder, but patchkit's own: what it is, its bytes, mode and time."""
    found = {}
    for path in folder.rglob("*"):
        if ".patchkit" not in path.parts and "__pycache__" not in path.parts and not path.is_dir():
            status = path.lstat()
            link = path.is_symlink()
            data = os.fsencode(os.readlink(path)) if link else path.read_bytes()
            found[path.relative_to(folder).as_posix()] = (
                "link" if link else "file",
                data,
                status.st_mode,
                status.st_mtime_ns,
            )
    return found


@pytest.fixture
def made(bench: Bench) -> Callable[[Made], Bench]:
    """``made(kind)``: a bench whose site is of that kind, in an environment's layout, with the patch ``fix``."""

    def make(kind: Made) -> Bench:
        bench.site = bench.root / "env" / "lib" / "python3.11" / "site-packages"
        bench.site.parent.mkdir(parents=True)
        kind.build(bench.site)
        edit = (
            f"[[edit]]\nfile = {json.dumps(kind.file, ensure_ascii=False)}\nfind = 'VALUE = 1'\nreplace = 'VALUE = 2'\n"
        )
        bench.patch("fix", edit, requirement=kind.requirement, target=kind.target)
        return bench

    return make


@pytest.mark.parametrize("kind", KINDS, ids=[re.sub(r"[^A-Za-z0-9.]+", "-", kind.name).strip("-") for kind in KINDS])
def test_a_kind_of_install(made: Callable[[Made], Bench], kind: Made) -> None:
    bench = made(kind)
    before = _snapshot(bench.root / "env")
    run = bench.json("apply", "fix")
    if kind.outcome.startswith("refused"):
        assert f"refused: {run.error['code']} ({run.status})" == kind.outcome, run.error
        said = f"{run.error['message']}\n{run.error['hint']}"
        assert [words for words in kind.says if words not in said] == [], said
        assert run.error["hint"]
        assert _snapshot(bench.root / "env") == before
        assert bench("doctor").status in (0, 1)
        assert bench("list").status == 0
        return
    assert run.status == 0, run.error
    noted = [note for note in run.json["notes"] if "records no hash for it" in note]
    assert len(noted) == (kind.outcome == NO_WITNESS)
    changed = {path for path, state in _snapshot(bench.root / "env").items() if before.get(path) != state}
    assert [path.rpartition("site-packages/")[2].rpartition(".egg/")[2] for path in changed] == [kind.file]
    ledger = json.loads((bench.site / ".patchkit" / "ledger.json").read_text(encoding="utf-8"))
    witnesses = {entry["witness"] for entry in ledger["files"].values()}
    assert witnesses == {"none" if kind.outcome == NO_WITNESS else "record"}
    assert bench("check").status == 0
    assert bench("list").status == 0
    assert bench("doctor").status == 0
    patchkit.require("fix", site=str(bench.site))
    assert bench("revert", "fix").status == 0
    assert _snapshot(bench.root / "env") == before


def test_the_page_lists_each_kind_with_its_outcome(capsys: pytest.CaptureFixture[str]) -> None:
    page = document("docs/installs.md")
    released = tomllib.loads((ROOT / "tests/real/installs/released.toml").read_text(encoding="utf-8"))["kind"]
    expected = [(kind.name, kind.outcome) for kind in KINDS] + [(kind["name"], kind["outcome"]) for kind in released]
    cells = [row for row in rows(f"\n{page}", "# Installs of every kind") if row[1].startswith(("works", "refused"))]
    assert [cell for cell in expected if expected.count(cell) > 1] == []
    assert sorted((row[0], row[1]) for row in cells) == sorted(expected)
    refused = sum(outcome.startswith("refused") for _, outcome in expected)
    with capsys.disabled():
        print(
            f"\ninstalls: {len(KINDS)} kinds made by hand, {len(released)} of released packages: "
            f"{len(expected) - refused} work, {refused} are refused"
        )


# --- what the rows do not show


def test_an_edit_of_a_shared_file_says_whose_it_is(made: Callable[[Made], Bench]) -> None:
    bench = made(next(kind for kind in KINDS if kind.name.startswith("a file that another distribution installs")))
    run = bench("apply", "fix")
    assert "demo/core.py: belongs to other 2.0 as well" in run.err
    (bench.site / "demo/core.py").unlink()  # `pip uninstall other`
    shutil.rmtree(bench.site / "other-2.0.dist-info")
    run = bench.json("check")
    assert (run.status, run.json["patches"][0]["state"]) == (1, "modified")
    assert "is gone" in run.json["patches"][0]["reason"]


def test_revert_needs_no_record(made: Callable[[Made], Bench]) -> None:
    """The ledger has the originals: a RECORD that is damaged later keeps nobody from having them back."""
    bench = made(KINDS[0])
    before = _snapshot(bench.root / "env")
    assert bench("apply", "fix").status == 0
    record = bench.site / "demo-1.0.dist-info" / "RECORD"
    data = record.read_bytes()
    status = record.stat()
    for damaged in (b"", b"\0", b"demo/core.py,sha256=abc\n", None):
        record.unlink()
        if damaged is not None:
            record.write_bytes(damaged)
        assert bench("check").status == 0, damaged
        run = bench("revert", "fix")
        assert run.status == 0, run.err
        record.write_bytes(data)
        os.utime(record, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert _snapshot(bench.root / "env") == before
        assert bench("apply", "fix").status == 0


def test_a_release_whose_own_record_is_wrong(made: Callable[[Made], Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    """Its wheel has the same wrong row, and is the witness then: --fetch is the way out, for a second patch as well."""
    bench = made(next(kind for kind in KINDS if kind.name.startswith("another hash")))
    before = _snapshot(bench.root / "env")
    wheel = make_wheel(bench.root / "wheels", "demo", "1.0", DEMO_FILES)
    own = bench.root / "own.whl"
    with zipfile.ZipFile(wheel) as archive, zipfile.ZipFile(own, "w") as wrong:
        for name in archive.namelist():
            text = (bench.site / name).read_bytes() if name.endswith("RECORD") else archive.read(name)
            wrong.writestr(name, text)
    fetched = [wheel, own]
    monkeypatch.setattr("patchkit.site.wheel.fetch_wheel", lambda *_, **__: str(fetched[0]))
    run = bench.json("apply", "fix", "--fetch")  # the wheel's RECORD is right: so it is another build
    assert (run.status, run.error["code"]) == (5, "fetch")
    fetched.pop(0)
    assert bench("apply", "fix", "--fetch").status == 0
    assert bench("check").status == 0
    bench.patch("more", "[[edit]]\nfile = 'demo/core.py'\nfind = 'VALUE'\nreplace = 'VALUES'\n")
    run = bench("apply", "more")
    assert run.status == 0, run.err
    assert bench.read("demo/core.py") == b"VALUES = 2\n"
    assert bench("revert", "more").status == 0
    bench.write("demo/core.py", b"# mine\nVALUE = 2\n")
    assert bench("revert", "fix").status == 0
    assert bench.read("demo/core.py") == b"# mine\nVALUE = 1\n"
    bench.write("demo/core.py", b"VALUE = 1\n")
    assert bench("apply", "fix", "--fetch").status == 0
    assert bench("revert", "fix").status == 0
    os.utime(bench.site / "demo/core.py", ns=(0, before["lib/python3.11/site-packages/demo/core.py"][3]))
    assert _snapshot(bench.root / "env") == before


@pytest.mark.parametrize("recorded", [b"VALUE = 2\n", b"something else\n"])
def test_a_record_that_somebody_rewrote(made: Callable[[Made], Bench], recorded: bytes) -> None:
    """Whatever it says by now, a patch is not reported as reverted while its text is still in an edited file."""
    bench = made(KINDS[0])
    assert bench("apply", "fix").status == 0
    record = bench.site / "demo-1.0.dist-info" / "RECORD"
    record.write_text(record.read_text().replace(record_hash(b"VALUE = 1\n"), record_hash(recorded)))
    bench.write("demo/core.py", b"# mine\nVALUE = 2\n")
    assert bench.json("check").json["patches"][0]["state"] == "modified"
    assert bench("revert", "fix").status == 0
    assert bench.read("demo/core.py") == b"# mine\nVALUE = 1\n"


def test_such_a_release_that_was_edited_is_not_believed(
    made: Callable[[Made], Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = made(next(kind for kind in KINDS if kind.name.startswith("another hash")))
    wheel = make_wheel(bench.root / "wheels", "demo", "1.0", DEMO_FILES)
    own = bench.root / "own.whl"
    with zipfile.ZipFile(wheel) as archive, zipfile.ZipFile(own, "w") as wrong:
        for name in archive.namelist():
            wrong.writestr(name, (bench.site / name).read_bytes() if name.endswith("RECORD") else archive.read(name))
    monkeypatch.setattr("patchkit.site.wheel.fetch_wheel", lambda *_, **__: str(own))
    bench.write("demo/core.py", b"VALUE = 1  # mine\n")
    run = bench.json("apply", "fix", "--fetch")
    assert (run.status, run.error["code"]) == (5, "modified")
    assert bench.read("demo/core.py") == b"VALUE = 1  # mine\n"


def test_two_installs_of_one_name_are_seen_by_check_and_by_require(made: Callable[[Made], Bench]) -> None:
    bench = made(KINDS[0])
    assert bench("apply", "fix").status == 0
    patchkit.require("fix", site=str(bench.site))
    make_dist(bench.site, "demo-extra", "1.0", {}, dist_info="demo-2to3-1.0.dist-info", metadata_name="demo-2to3")
    make_egg_info(bench.site, "demo", "1.0", {})  # as Debian and conda leave it
    assert bench("check").status == 0
    patchkit.require("fix", site=str(bench.site))
    for name, version in (("demo", "0.9"), ("Demo", "1.0")):
        info = make_dist(bench.site, name, version, {})
        assert bench.json("check").json["patches"][0]["state"] == "stale"
        with pytest.raises(SiteError, match="holds 3 installations of demo: ") as caught:
            patchkit.require("fix", site=str(bench.site))
        assert caught.value.details["patches"][0]["state"] == "stale"
        shutil.rmtree(info)


def test_a_damaged_record_of_another_distribution_is_in_nobodys_way(made: Callable[[Made], Bench]) -> None:
    bench = made(KINDS[0])
    (make_dist(bench.site, "broken", "1.0", {"broken.py": ""}) / "RECORD").write_bytes(b"")
    assert bench("apply", "fix").status == 0
    assert bench("revert", "fix").status == 0
    bench.patch("wrong", "[[edit]]\nfile = 'demo/other.py'\nfind = 'x'\nreplace = 'y'\n")
    assert bench.json("apply", "wrong").error["code"] == "not-in-distribution"
    assert "broken-1.0.dist-info/RECORD: is empty" in bench("doctor").out
