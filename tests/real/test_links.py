"""Links between a site and what lies outside of it: caches, copies made by links, shared folders.

What lies outside of the site is compared before and after by kind, hash, mode, time, inode and link target; the number
of hard links is not, since a file that patchkit replaced is a link less.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from land import FILES, LIBRARY, NEW, OLD, PATCHED, Land, outside, own, plain

from patchkit.cli.main import main
from patchkit.state import fs

pytestmark = pytest.mark.real

_CAPTURE: dict[str, Any] = {"check": True, "capture_output": True, "text": True}

KILLS = (("apply", 0.55), ("revert", 0.55), ("apply", 0.9), ("revert", 0.9))


def live(
    land: Land,
    python: Path,
    inside: list[Path],
    pristine: Path,
    again: Callable[[], None],
    kills: tuple[tuple[str, float], ...] = KILLS[:2],
) -> None:
    """The whole life of a patch, with nothing outside of ``inside`` changed at any time.

    ``pristine`` is the site-packages as the installer left it; ``again`` reinstalls.
    """
    files = {path: own(pristine / path) for path in PATCHED}
    before = outside(land.land, *inside)

    def same() -> None:
        assert outside(land.land, *inside) == before

    def patched() -> bool:
        found = {path: (pristine / path).read_bytes() for path in PATCHED}
        assert all((pristine / path).lstat().st_nlink == 1 for path in PATCHED) or found != PATCHED
        return found == PATCHED

    def back() -> None:
        assert {path: own(pristine / path) for path in PATCHED} == files

    for _ in range(2):
        assert land(python, "apply", "swap").status == 0
        assert patched()
        same()
        assert land(python, "check", "swap").status == 0
        assert land(python, "revert", "swap").status == 0
        back()
        same()
    # A hand edit inside of what was written, thrown away.
    assert land(python, "apply", "swap").status == 0
    (pristine / "demo/core.py").write_bytes(NEW.replace(b"new", b"hand"))
    assert land(python, "revert", "swap").status == 5
    assert land(python, "revert", "swap", "--force").status == 0
    assert {path: own(pristine / path).data for path in PATCHED} == {path: FILES[path] for path in PATCHED}
    same()
    # Killed on the way, and recovered by the next command.
    for command, share in kills:
        if command == "revert":
            assert land(python, "apply", "swap").status == 0
        land.killed(python, command, "swap", share=share)
        same()
        assert land(python, "check").status in (0, 1)
        same()
        held = {path: (pristine / path).read_bytes() for path in PATCHED}
        assert held in (PATCHED, {path: FILES[path] for path in PATCHED})
        assert land(python, "revert", "--all").status == 0
        assert {path: (pristine / path).read_bytes() for path in PATCHED} == {path: FILES[path] for path in PATCHED}
        same()
    # A reinstall, and sync.
    land.want("swap")
    assert land(python, "sync").status == 0
    assert patched()
    same()
    again()
    before = outside(land.land, *inside)
    files = {path: own(pristine / path) for path in PATCHED}
    assert land(python, "check").out.split()[:2] == ["swap", "lost"]
    assert land(python, "sync").status == 0
    assert patched()
    same()
    land.want()
    assert land(python, "sync").status == 0
    back()
    same()


@pytest.mark.parametrize("mode", ["hardlink", "symlink", "copy", "clone"])
def test_an_environment_by_uv(land: Land, mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    python = land.env()
    land.uv_install(python, mode)
    site = land.site("env")
    twin = land.env("twin")
    land.uv_install(twin, mode)
    file = site / "demo/core.py"
    links = file.lstat().st_nlink
    if mode == "hardlink":
        assert links >= 3  # the cache, this environment, the twin
    assert file.is_symlink() == (mode == "symlink")
    live(land, python, [site], site, lambda: land.uv_install(python, mode, "--reinstall"), KILLS)
    assert (land.site("twin") / "demo/core.py").read_bytes() == OLD
    if mode == "hardlink":
        # What was patched once is a file of its own from then on, and the cache has a link less.
        assert land(python, "apply", "swap").status == 0
        assert land(python, "revert", "swap").status == 0
        assert file.lstat().st_nlink == 1
        assert (land.site("twin") / "demo/core.py").lstat().st_nlink == links - 1
    with capsys.disabled():
        print(f"\nlinks, uv {mode}: {land.kills} kills, nothing outside changed")


def test_an_environment_by_pip(land: Land) -> None:
    python = land.env()
    land.pip_install("--python", str(python))
    site = land.site("env")
    live(land, python, [site], site, lambda: land.pip_install("--python", str(python), "--force-reinstall"))


def test_a_target_folder_by_pip(land: Land, capsys: pytest.CaptureFixture[str]) -> None:
    folder = land.land / "target"
    land.pip_install("--isolated", "--no-input", "--target", str(folder))
    before = outside(land.land, folder)
    files = {path: own(folder / path) for path in PATCHED}
    capsys.readouterr()
    assert main(["--site", str(folder), "apply", "swap"]) == 0
    assert {path: (folder / path).read_bytes() for path in PATCHED} == PATCHED
    assert main(["--site", str(folder), "revert", "swap"]) == 0
    assert {path: own(folder / path) for path in PATCHED} == files
    assert outside(land.land, folder) == before


@pytest.mark.parametrize("patched", [False, True])
def test_twins_by_hard_links(land: Land, patched: bool) -> None:
    """A copy of a whole environment as by ``cp -al``, made before or after a patch: with its ledger, log and lock."""
    python = land.env()
    land.uv_install(python, "copy")
    if patched:
        subprocess.run([python, "-c", "import demo.core, demo.sub.deep"], check=True, env=plain())
        assert land(python, "apply", "swap").status == 0
        subprocess.run([python, "-c", "import demo.core, demo.sub.deep"], check=True, env=plain())
    twin = land.land / "twin"
    shutil.copytree(
        land.land / "env", twin, symlinks=True, copy_function=lambda a, b: os.link(a, b, follow_symlinks=False)
    )
    assert (twin / LIBRARY / "demo/core.py").stat().st_nlink == 2
    before = outside(land.land, land.site("env"))
    for command in ("revert", "apply", "apply", "check", "revert"):
        assert land(python, command, "swap").status == 0
        assert outside(land.land, land.site("env")) == before
    assert (land.site("twin") / "demo/core.py").read_bytes() == (NEW if patched else OLD)
    own_side = outside(land.land, land.site("twin"))
    other = twin / "bin" / "python"
    for command in ("check", "revert", "apply", "revert"):
        expected = 1 if command == "check" and not patched else 0
        assert land(other, command, "swap").status == expected
        assert outside(land.land, land.site("twin")) == own_side
    assert (land.site("twin") / "demo/core.py").read_bytes() == OLD
    assert [line.split()[1] for line in land(other, "log").out.splitlines()][-3:] == ["revert", "apply", "revert"][
        -2:
    ] or patched


def test_two_environments_on_one_folder(land: Land) -> None:
    """Both site-packages are links to one folder: one ledger, seen from either side."""
    first, second = land.env("first"), land.env("second")
    store = land.land / "store"
    shutil.move(land.site("first"), store)
    land.site("first").symlink_to(store, target_is_directory=True)
    shutil.rmtree(land.site("second"))
    land.site("second").symlink_to("../../../store", target_is_directory=True)
    land.uv_install(first, "hardlink")
    live(land, first, [store], store, lambda: land.uv_install(first, "hardlink", "--reinstall"))
    assert land(first, "apply", "swap").status == 0
    assert land(second, "check", "swap").out.split()[:2] == ["swap", "applied"]
    assert land(second, "revert", "swap").status == 0
    assert (store / "demo/core.py").read_bytes() == OLD


@pytest.mark.parametrize("how", ["environment", "parent", "lib64"])
def test_an_environment_by_another_name(land: Land, how: str) -> None:
    python = land.env("real")
    land.uv_install(python, "hardlink")
    site = land.site("real")
    if how == "environment":
        (land.land / "name").symlink_to("real", target_is_directory=True)
        other = land.land / "name" / "bin" / "python"
    elif how == "parent":
        (land.root / "away").symlink_to(land.land, target_is_directory=True)
        other = land.root / "away" / "real" / "bin" / "python"
    else:
        link = land.land / "real" / "lib64"
        if not link.is_symlink():
            link.symlink_to("lib", target_is_directory=True)
        other = land.land / "real" / LIBRARY.replace("lib/", "lib64/", 1)
    before = outside(land.land, site)
    option = "--site" if how == "lib64" else "--python"
    assert main([option, str(other), "apply", "swap"]) == 0
    assert land(python, "check", "swap").status == 0
    assert main([option, str(other), "check", "swap"]) == 0
    assert land(python, "revert", "swap").status == 0
    assert main([option, str(other), "check", "swap"]) == 1
    assert (site / "demo/core.py").read_bytes() == OLD
    assert outside(land.land, site) == before


def test_a_package_directory_that_is_a_link(land: Land) -> None:
    """Within the site it is followed, and out of it nothing is read or written."""
    python = land.env()
    land.uv_install(python, "copy")
    site = land.site("env")
    shutil.move(site / "demo", site / "real_demo")
    (site / "demo").symlink_to("real_demo", target_is_directory=True)
    before = outside(land.land, site)
    assert land(python, "apply", "swap").status == 0
    assert (site / "real_demo/core.py").read_bytes() == NEW
    assert land(python, "revert", "swap").status == 0
    assert (site / "real_demo/core.py").read_bytes() == OLD
    (site / "demo").unlink()
    shutil.move(site / "real_demo", land.land / "elsewhere" / "demo")
    (site / "demo").symlink_to(land.land / "elsewhere" / "demo", target_is_directory=True)
    before = outside(land.land, site)
    for command in ("apply", "check", "sync"):
        land.want("swap")
        run = land(python, command, *(["swap"] if command != "sync" else []))
        assert (run.status, "leads out of the site" in run.out + run.err) == (1 if command == "check" else 5, True), run
        assert outside(land.land, site) == before


@pytest.mark.parametrize("kind", ["hard link", "symbolic link"])
def test_two_environments_on_one_file(land: Land, kind: str) -> None:
    first, second = land.env("first"), land.env("second")
    for python in (first, second):
        land.uv_install(python, "copy")
    shared, own_file = land.site("first") / "demo/core.py", land.site("second") / "demo/core.py"
    own_file.unlink()
    if kind == "hard link":
        os.link(shared, own_file)
    else:
        own_file.symlink_to(shared)
    before = outside(land.land, land.site("second"))
    assert land(second, "apply", "swap").status == 0
    assert (shared.read_bytes(), own_file.read_bytes()) == (OLD, NEW)
    assert land(second, "revert", "swap").status == 0
    assert (own_file.read_bytes(), own_file.is_symlink()) == (OLD, kind == "symbolic link")
    assert outside(land.land, land.site("second")) == before
    # The other way round: a link is what it points to, and nothing is written through it.
    before = outside(land.land, land.site("first"))
    assert land(first, "apply", "swap").status == 0
    assert outside(land.land, land.site("first")) == before
    assert own_file.read_bytes() == (OLD if kind == "hard link" else NEW)
    assert land(first, "revert", "swap").status == 0
    assert own_file.read_bytes() == OLD


def test_an_environment_that_sees_the_packages_of_the_system(land: Land) -> None:
    venv.create(land.land / "env", symlinks=True, system_site_packages=True)
    python = land.land / "env" / "bin" / "python"
    land.uv_install(python, "hardlink")
    answer = subprocess.run([python, "-c", "import site; print(site.getsitepackages()[-1])"], **_CAPTURE)
    system = Path(answer.stdout.strip())
    before = listing(system)
    live(land, python, [land.site("env")], land.site("env"), lambda: land.uv_install(python, "hardlink", "--reinstall"))
    assert listing(system) == before


def listing(folder: Path) -> dict[str, tuple[int, int, int, int]]:
    """Every file of a large folder but bytecode (whoever runs its Python writes that), without the content."""
    paths = (os.path.join(place, name) for place, _, names in os.walk(folder) for name in names if name[-4:] != ".pyc")
    stats = ((path, os.lstat(path)) for path in paths)
    return {path: (own.st_size, own.st_mode, own.st_mtime_ns, own.st_ino) for path, own in stats}


def test_a_ledger_behind_a_link_is_anothers(land: Land) -> None:
    """A tree of links to another environment: its ledger must not be taken for one's own."""
    first, second = land.env("first"), land.env("second")
    for python in (first, second):
        land.uv_install(python, "copy")
    assert land(first, "apply", "swap").status == 0
    (land.site("second") / ".patchkit").symlink_to(land.site("first") / ".patchkit", target_is_directory=True)
    before = outside(land.land, land.site("second"))
    for command in ("apply", "check", "revert", "sync", "list", "doctor", "log"):
        run = land(second, "--json", command, *(["swap"] if command in ("apply", "revert") else []))
        assert (run.status, run.error["code"]) == (5, "leads-out")
        assert outside(land.land, land.site("second")) == before


def test_a_cache_of_bytecode_behind_a_link_is_anothers(land: Land) -> None:
    python = land.env()
    land.uv_install(python, "copy")
    site, away = land.site("env"), land.land / "elsewhere" / "pycache"
    away.mkdir()
    (site / "demo/__pycache__").symlink_to(away, target_is_directory=True)
    script = [str(python), "-c", "import demo.core; print(demo.core.VALUE)"]
    assert subprocess.run(script, env=plain(), **_CAPTURE).stdout == "old\n"
    assert len(list(away.iterdir())) == 2
    before = outside(land.land, site)
    assert land(python, "apply", "swap").status == 0
    assert outside(land.land, site) == before
    assert subprocess.run([script[0], "-B", *script[1:]], **_CAPTURE).stdout == "new\n"
    assert land(python, "revert", "swap").status == 0
    assert outside(land.land, site) == before
    command = [
        str(python),
        "-m",
        "compileall",
        "-qf",
        "--invalidation-mode",
        "unchecked-hash",
        str(site / "demo/core.py"),
    ]
    subprocess.run(command, check=True)
    before = outside(land.land, site)
    run = land(python, "--json", "apply", "swap")
    assert (run.status, run.error["code"]) == (5, "bytecode")
    assert str(away) in run.error["message"]
    assert (site / "demo/core.py").read_bytes() == OLD
    assert outside(land.land, site) == before


@pytest.mark.parametrize("written", [False, True])
def test_another_name_that_goes_meanwhile_is_no_change_of_the_file(land: Land, written: bool) -> None:
    """As where a twin is patched, or a cache cleaned, at the same moment; what is written through it is one."""
    python = land.env()
    land.uv_install(python, "copy")
    file, twin = land.site("env") / "demo/core.py", land.land / "elsewhere" / "twin.py"
    os.link(file, twin)
    before = file.stat()

    def meanwhile(operation: str, path: str, when: str) -> None:
        if operation == "create" and ".patchkit-" in path and twin.exists():
            if written:
                twin.write_bytes(OLD.replace(b"old", b"odd"))
                os.utime(twin, ns=(before.st_atime_ns, before.st_mtime_ns))
            twin.unlink()

    with fs.observed(meanwhile):
        run = land(python, "--json", "apply", "swap")
    assert not twin.exists()
    if written:
        assert (run.status, run.error["code"]) == (5, "changed")
    else:
        assert (run.status, file.read_bytes()) == (0, NEW)
