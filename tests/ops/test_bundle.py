"""Bundles: written once for one view, mended where somebody edited one, cleared away when nobody uses them."""

from __future__ import annotations

import json
import os
import stat
import threading
import time
from pathlib import Path

import pytest
from support.overlays import EVERYTHING, FILES, Stage, edit

from patchkit.errors import SiteError
from patchkit.ops import bundle as bundles
from patchkit.ops.bundle import make_bundle

ALONE = edit("awkalone.py")


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_what_is_in_it(stage: Stage) -> None:
    stage.show(everything=EVERYTHING)
    folder = Path(stage.bundle)
    assert folder.parent == stage.root / "cache" / "run"
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["schema"] == 1
    assert manifest["homes"] == [str(stage.site)]
    assert manifest["patches"][0]["name"] == "everything"
    by_name = {module["name"]: module for module in manifest["modules"]}
    assert set(manifest["patches"][0]["modules"]) == set(by_name)
    core = by_name["awk.core"]
    assert core["path"] == str(stage.site / "awk/core.py")
    source = folder / core["source"]
    assert source.name == "core.py"
    assert source.read_text() == str(FILES["awk/core.py"]).replace("stock", "patched")
    assert stat.S_IMODE(source.stat().st_mode) == 0o444
    if os.name == "posix":
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_the_same_view_has_the_same_bundle(stage: Stage) -> None:
    first = make_bundle(stage.plan(alone=ALONE))
    lock = Path(first, "lock")
    os.utime(lock, (1, 1))
    assert make_bundle(stage.plan(alone=ALONE)) == first
    assert time.time() - lock.stat().st_mtime < 60
    assert make_bundle(stage.plan(alone=edit("awkalone.py", new="other"))) != first
    (stage.site / "awkalone.py").touch()  # the same bytes
    assert make_bundle(stage.plan(alone=ALONE)) == first


def test_an_edited_bundle_is_mended(stage: Stage) -> None:
    """Somebody followed a traceback with an editor. Bytecode of what they wrote goes as well."""
    stage.show(alone=ALONE)
    code = "import awkalone, json; print(json.dumps(awkalone.WHAT))"
    source = next(Path(stage.bundle).rglob("awkalone.py"))
    os.chmod(source, 0o644)
    source.write_text('WHAT = "edited!"\n')
    assert stage.python(code) == "edited!"
    before = source.stat()
    stage.show(alone=ALONE)
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert len('WHAT = "edited!"\n') == source.stat().st_size  # neither time nor size tells
    assert stage.python(code) == "patched"


def test_many_at_once(stage: Stage) -> None:
    view = stage.plan(everything=EVERYTHING)
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(make_bundle(view))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert len(found) == 8
    assert os.listdir(Path(found[0]).parent) == [Path(found[0]).name]  # no draft is left


def test_old_ones_are_cleared_away_and_used_ones_are_not(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr(bundles, "KEPT", 2)
    made = [make_bundle(stage.plan(alone=edit("awkalone.py", new=f"n{n}"))) for n in range(5)]
    assert all(map(os.path.isdir, made))  # beyond the bound, but used today
    for age, path in enumerate(made[:4], 2):
        os.utime(Path(path, "lock"), (time.time() - age * 86400,) * 2)
    held = os.open(Path(made[3], "lock"), os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_SH)
    draft = Path(made[0]).parent / ".new-left"
    draft.mkdir()
    os.utime(draft, (1, 1))
    try:
        make_bundle(stage.plan(alone=edit("awkalone.py", new="n4")))
    finally:
        os.close(held)
    # Kept: the one in use now, the newest besides it, and the oldest, which a process holds.
    assert [os.path.isdir(path) for path in made] == [True, False, False, True, True]
    assert not draft.exists()


def test_one_that_is_cleared_away_while_it_is_wanted_is_made_anew(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = stage.plan(alone=ALONE)
    first = make_bundle(view)
    real, calls = bundles._shared, []

    def gone_the_first_time(folder: str):  # type: ignore[no-untyped-def]
        if not calls:
            os.rename(first, stage.root / "gone")
        calls.append(folder)
        return real(folder)

    monkeypatch.setattr(bundles, "_shared", gone_the_first_time)
    assert make_bundle(view) == first
    assert len(calls) == 2
    assert (Path(first) / "manifest.json").is_file()


def test_a_folder_that_pythonpath_cannot_name_is_not_taken(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of its name would be another folder, and no process would have the patches."""
    monkeypatch.setenv("PATCHKIT_CACHE", str(stage.root / f"ca{os.pathsep}che"))
    temporary = stage.root / "tmp"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    stage.show(alone=ALONE)
    assert stage.python("import awkalone, json; print(json.dumps(awkalone.WHAT))") == "patched"
    monkeypatch.setattr("tempfile.tempdir", str(stage.root / f"t{os.pathsep}mp"))
    (stage.root / f"t{os.pathsep}mp").mkdir()
    with pytest.raises(SiteError) as raised:
        stage.show(alone=ALONE)
    assert (raised.value.code, "PYTHONPATH" in raised.value.message) == ("no-bundle", True)


def test_a_full_disk_is_named_with_its_folder(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system gives no name with an error of a write."""

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    view = stage.plan(alone=ALONE)
    monkeypatch.setattr(bundles, "_create", full)
    monkeypatch.setenv("PATCHKIT_CACHE", str(stage.root / "full"))
    with pytest.raises(SiteError) as raised:
        make_bundle(view)
    assert f"{stage.root / 'full' / 'run'}: No space left on device" in raised.value.message
    assert raised.value.details["path"] == str(stage.root / "full" / "run")


def test_without_a_cache_it_lies_in_a_folder_of_the_users_own(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = stage.root / "blocked"
    blocked.write_text("a file")
    monkeypatch.setenv("PATCHKIT_CACHE", str(blocked))
    temporary = stage.root / "tmp"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    stage.show(alone=ALONE)
    own = Path(stage.bundle).parent
    assert own.parent == temporary
    assert stage.python("import awkalone, json; print(json.dumps(awkalone.WHAT))") == "patched"
    if os.name == "posix":
        assert stat.S_IMODE(own.stat().st_mode) == 0o700
        own.chmod(0o777)
        with pytest.raises(SiteError) as raised:
            stage.show(alone=ALONE)
        assert raised.value.code == "no-bundle"
    monkeypatch.setattr("tempfile.tempdir", str(blocked))
    with pytest.raises(SiteError) as raised:
        stage.show(alone=ALONE)
    assert raised.value.code == "no-bundle"
